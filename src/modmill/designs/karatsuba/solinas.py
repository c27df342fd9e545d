# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Montgomery multiplication for sparse primes: the product by Karatsuba's trick for all pairs of digits.

Source:  as `solinas` for the primes and the quotient, as `karatsuba` for the product. Digit-serial quotient and top
         bits are ours.
Formula: x = x' + 2^(17 n) a, y = y' + 2^(17 n) b with n digits and s <= 4 bits:
         x y = x' y' + 2^(17 n) (a y' + b x') + 2^(34 n) a b, only x' y' on DSP blocks, as in `product`
         p = 2^z c - 1:  V = x y + Q (p + 1);  p = 2^z c + 1:  V = x y - Q (p - 1) + p R;
         R = 2^(17 (n + 1)),  Q = V mod R,  v = (V - Q) / R
Range:   x, y < B = 2^(17 n + s) give 0 <= v < B^2 / R + p <= B for p < B / 2, because B / R <= 2^-13; v = x y / R
         (mod p)

(n + 1) / 2 DSP blocks take a product every n cycles. Each digit of Q costs additions only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from amaranth.hdl import Module, Value

from modmill.contract import Timing, UnsupportedError
from modmill.design import Cost, Design, Setting, Source
from modmill.designs.karatsuba import design as karatsuba
from modmill.designs.karatsuba.halves import carry_most, digits_at
from modmill.designs.karatsuba.product import DIGIT, DIGITS_MIN
from modmill.designs.karatsuba.quotient import NEAREST, DigitQuotient, depths
from modmill.designs.karatsuba.shape import ABOVE_MAX, MASK, QuotientParams, digits_of, halves, interval
from modmill.designs.karatsuba.shape import Kind as Product
from modmill.designs.pseudo_mersenne.shape import Kind as Folds
from modmill.designs.solinas.design import TERMS_MAX, LazyMontgomery, shape, sparse_terms
from modmill.designs.solinas.sparse_quotient import Term
from modmill.interface import Multiplier
from modmill.rtl.conditional_subtract import LEAD, ConditionalSubtract
from modmill.rtl.delay import DelayLines
from modmill.rtl.digit_serial import Control
from modmill.schedule import Operation, Operations, Step

ROOM = 2 * DIGIT + ABOVE_MAX
"""Most spare bits of operands."""
BITS_MIN = DIGIT * NEAREST + 1
"""Fewest bits of p."""


class Kind(Operations):
    """The operations behind those of the product, for position k and digit j."""

    SUM = "T{}"  # position k of V without the carry
    QUOTIENT = "Q{}"
    OUT = "v{}"


@dataclass(frozen=True)
class SolinasParams(QuotientParams):
    """Sizes and times behind both halves of the product.

    ``terms``: the signed powers of 2 of p + 1 or p - 1; ``added``: p if p = 1 mod 2^z, else 0.
    """

    terms: tuple[Term, ...]
    added: int

    @property
    def levels(self) -> int:
        """Additions before the carry."""
        return depths([term.e // DIGIT for term in self.terms], 2 + (self.added > 0))[-1]

    @property
    def first(self) -> int:
        """Cycle in which digit 0 of Q is in its register."""
        return self.digit + 1 + self.levels

    @property
    def result(self) -> int:
        return self.first + self.digits + 2

    def weights(self, k: int) -> dict[int, int]:
        """The weight of each bit of Q in position k of V; k = 2 n: all positions from there on."""
        found: dict[int, int] = {}
        for term in self.terms:
            first = DIGIT * k - term.e
            for i in range(max(first, 0), min(first + DIGIT, self.r) if k < 2 * self.digits else self.r):
                found[i] = found.get(i, 0) + ((-1 if term.negative else 1) << i - first)
        return found

    def range(self, k: int, carry: tuple[int, int]) -> tuple[int, int]:
        """The range of position k of V for a carry in this range; k = 2 n: of all that is above."""
        n, (low, high) = self.digits, carry
        constant = (self.added << self.r) >> DIGIT * k & (MASK if k < 2 * n else -1)
        digit = (0 if k == 2 * n else MASK) + ((1 << 2 * self.above) - 1 << DIGIT) * (k == 2 * n - 1)
        if k in (n, n + 1):
            digit += (MASK, carry_most(n) >> DIGIT)[k - n]
        weights = self.weights(k).values()
        return low + constant + sum(min(w, 0) for w in weights), high + constant + digit + sum(
            max(w, 0) for w in weights
        )

    @cached_property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """The range of each position of V with the carry into it; the last is that of the highest digit of v."""
        found, carry = [], (0, 0)
        for k in range(2 * self.digits + 1):
            found.append(self.range(k, carry))
            carry = (found[-1][0] >> DIGIT, found[-1][1] >> DIGIT)
        return tuple(found)

    @property
    def carries(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The range of the carries out of the lower n positions, and of those out of the others."""
        n = self.digits
        halves = (self.ranges[:n], self.ranges[n : 2 * n])
        low, high = ((min(a for a, _ in half) >> DIGIT, max(b for _, b in half) >> DIGIT) for half in halves)
        return low, high

    def steps(self) -> Iterator[Step]:
        """Both halves; digits of Q and of v; the result through its memory. An operation does not list carries among
        its reads."""
        n, first = self.digits, self.first
        added = min(self.levels, min(term.e for term in self.terms) // DIGIT - 1)
        yield from self.product_steps()
        for k in range(2 * n):
            lags = {term.e // DIGIT + over for term in self.terms for over in (0, term.e % DIGIT > 0)}
            reads = [Product.DIGIT(k), *(Kind.QUOTIENT(k - lag) for lag in sorted(lags) if 0 <= k - lag <= n)]
            reads += [Product.CARRY(k - n)] * (k in (n, n + 1))
            yield Kind.SUM(k).on(("low", "high")[k // n] + " sums", first + k - 1 - added, added, reads, busy=1)
            if k <= n:
                yield Kind.QUOTIENT(k).on("v" if k == n else "Q", first + k - 1, 1, [Kind.SUM(k)])
        for j in range(n):
            unit, reads = ("v", [Kind.SUM(n + 1 + j)]) if j < n - 1 else ("highest digit", [Kind.SUM(n + j)])
            yield Kind.OUT(j).on(unit, self.result + j - 2, 2, reads, busy=1)
        last = self.result + n - 1
        yield Folds.RESULT().on("results", last, self.frame.timing.latency - last, map(Kind.OUT, range(n)))


class QuotientMontgomery(LazyMontgomery):
    """A Montgomery multiplication behind both halves of the product, for one modulus; abstract."""

    params: QuotientParams

    @property
    def starts(self) -> int:
        return self.params.starts

    @property
    def R(self) -> int:
        return 1 << self.params.r

    @property
    def machine(self) -> type[QuotientMachine]:
        """The class of the machine."""
        raise NotImplementedError

    def component(self, *, scaled: bool = False) -> Multiplier:
        return self.machine(self.params)

    def binary_timing(self) -> Timing:
        return self.params.binary_frame.timing

    def binary_component(self) -> Multiplier:
        return self.machine(self.params, binary=True)


class KaratsubaSolinas(QuotientMontgomery):
    """The blocks and the quotient for one modulus."""

    params: SolinasParams

    @property
    def cost(self) -> Cost:
        """A DSP block for two digits; the rest are shifts."""
        return karatsuba.cost_of(self.params.digits)

    def trace(self, a: int, b: int) -> Iterator[tuple[str, Any]]:
        q = self.params
        n = q.digits
        low, high = yield from halves(q, a, b)
        rest = low >> q.n
        numbers = [*digits_of(low, n, whole=False), *digits_of(high, n)]
        numbers[n] += rest & MASK
        numbers[n + 1] += rest >> DIGIT
        Q = v = carry = 0

        def added(k: int, mask: int) -> int:
            pieces = (((Q << t.e) >> DIGIT * k & mask) * (-1 if t.negative else 1) for t in q.terms)
            return ((q.added << q.r) >> DIGIT * k & mask) + sum(pieces)

        for k, number in enumerate(numbers):
            total = number + added(k, MASK)
            yield f"T{k}", total
            carry, digit = divmod(total + carry, 1 << DIGIT)
            if k <= n:
                yield f"Q{k}", digit
                Q |= digit << DIGIT * k
            else:
                yield f"v{k - n - 1}", digit
                v |= digit << DIGIT * (k - n - 1)
        highest = carry + added(2 * n, -1)
        yield f"v{n - 1}", highest
        yield "v", v + (highest << DIGIT * (n - 1))

    @property
    def machine(self) -> type[QuotientMachine]:
        return Machine

    def corners(self) -> list[tuple[int, int]]:
        """Those of a Montgomery multiplication; the largest and the least sum for each position: the digits of Q that
        are added there are all ones or zeros, and for k < n the digit of x y is the largest or the least too."""
        q, y = self.params, self.params.limit - 1
        low = (1 << q.n) - 1
        modulus = self.p if q.added else -self.p  # x y = Q modulus (mod R)
        found = super().corners()
        for k in range(2 * q.digits):
            for least in (False, True):
                Q = sum(1 << i for i, weight in q.weights(k).items() if (weight < 0) is least)
                if k < q.digits:
                    digit = (0 if least else MASK) - (Q * modulus >> DIGIT * k)
                    Q += (digit * pow(modulus, -1, 1 << DIGIT) & MASK) << DIGIT * k
                found.append((Q * modulus * pow(y, -1, low + 1) & low | q.limit - 1 - low, y))
        return list(dict.fromkeys(found))

    def facts(self) -> list[tuple[str, str]]:
        q = self.params
        powers = " ".join(f"{'+-'[t.negative]} Q 2^{t.e}" for t in q.terms)
        bits = f" and {q.above} bit{'s' * (q.above > 1)} above them" if q.above else ""
        return [
            ("V", f"x y {powers}{' + p R' if q.added else ''}, Q = V mod R, v = (V - Q) / R"),
            ("R", f"2^{q.r}"),
            ("digits", f"n = {q.digits} of {DIGIT} bits{bits}"),
            ("slots", karatsuba.slots(q.digits)),
            ("operands", f"below 2^{self.operand_bits}, about {float(self.bounds[0]):.6g} p"),
            ("carries", "; ".join(f"{low} to {high}" for low, high in q.carries)),
        ]


class QuotientMachine(karatsuba.HalvesMachine):
    """The product and what comes behind it, with the multiplier interface; abstract. ``binary``: operands and results
    are below p; p is subtracted once, for v < 2 p."""

    _params: QuotientParams

    @property
    def _built_in(self) -> int:
        """p, or 0 if it is loaded."""
        return (1 << self._params.k) - self._params.c

    def _reduced(self, m: Module, control: Control, digit: Value) -> Value:
        """v mod p."""
        p = self._params
        modulus = [self._built_in >> DIGIT * j & (MASK if j < p.digits - 1 else -1) for j in range(p.digits)]
        m.submodules.subtract = subtract = ConditionalSubtract(len(digit), p.digits, modulus, rising=True)
        m.d.comb += [subtract.coming.eq(control.at(p.result - LEAD)), subtract.digit.eq(digit)]
        self._modulus(m, subtract)
        return subtract.out

    def _modulus(self, m: Module, subtract: ConditionalSubtract) -> None:
        """Load p into ``subtract``; here it is built in."""


class Machine(QuotientMachine):
    """The product and the quotient."""

    _params: SolinasParams

    def product(self, m: Module, control: Control) -> tuple[Value, Value]:
        p, n = self._params, self._params.digits
        low, high = super().product(m, control)
        waited = DelayLines(m, n, name="halves").line(high, n, name="high_waited")
        self._quotient = DigitQuotient(
            m, low, [waited, self._halves.carry], n, p.terms, p.added,
            start=digits_at(n), carries=p.carries, width=DIGIT + p.above, at=self._strobes(control),
        )  # fmt: skip
        return self._quotient.out, self._quotient.out

    def product_register(self, operation: Operation) -> Any:
        quotient, high = self._quotient, operation.numbers[0] >= self._params.digits
        registers: dict[Any, Any] = {
            Kind.SUM: quotient.high_sum if high else quotient.low_sum,
            Kind.QUOTIENT: quotient.z if high else quotient.q, Kind.OUT: quotient.out,
        }  # fmt: skip
        return registers[operation.kind] if operation.kind in registers else super().product_register(operation)


def digits_for(bits: int) -> int:
    """Digits of the product, an odd number: at most ABOVE_MAX bits of operands of a bit more than p are above them."""
    return max(-(-(bits + 1 - ABOVE_MAX) // DIGIT) | 1, DIGITS_MIN)


def room(p: int) -> int:
    """Most spare bits of operands modulo p."""
    bits = p.bit_length()
    return DIGIT * digits_for(bits) + ABOVE_MAX - bits


def fit(p: int, *, spare: int) -> KaratsubaSolinas:
    """The design for p. ``spare``: bits of operands above those of p at least. Raises UnsupportedError for a p that is
    too short or too long, or not of the form."""
    k = p.bit_length()
    most = DIGIT * karatsuba.MOST + ABOVE_MAX - 1
    if not BITS_MIN <= k <= most:
        raise UnsupportedError(f"the modulus must have {BITS_MIN} to {most} bits, this one has {k}")
    sign, z, _ = shape(p)
    if z < NEAREST * DIGIT:
        raise UnsupportedError(f"p = {-sign} mod 2^{z}; p = 1 or -1 mod 2^{NEAREST * DIGIT} at least is accepted")
    n = digits_for(k)
    above = max(0, k + spare - DIGIT * n)
    params = SolinasParams(k, (1 << k) - p, n, 1, interval(n), above, sparse_terms(p), p if sign < 0 else 0)
    try:
        params.levels  # noqa: B018 - checks the distances
    except ValueError as error:
        raise UnsupportedError(f"p = {-sign} mod 2^{z}: {error}") from None
    return KaratsubaSolinas(p, params, {"spare": spare})


SPARE = Setting(
    "spare", int, 1, "bits of operands above those of p at least: room for sums", least=1, most=ROOM,
    depends=f"room in the digits of p, and {ABOVE_MAX} bits more",
    limits=lambda p, settings: (1, room(p)), room=True,
)  # fmt: skip
"""The setting of designs with a quotient behind both halves."""
DESIGNS = (
    Design(
        name="karatsuba-solinas", page="karatsuba-solinas",
        title="Montgomery multiplication for sparse primes by Karatsuba's trick for all pairs of digits",
        source=Source(
            "J. A. Solinas; A. A. Karatsuba, Y. P. Ofman",
            "Generalized Mersenne Numbers; Multiplication of Multidigit Numbers on Automata",
            "Technical Report CORR 99-39, University of Waterloo; Soviet Physics Doklady 7", 1999,
            "for primes and product; P. L. Montgomery, Mathematics of Computation 44, for the method; machine ours",
        ),
        needs=f"p = 1 or -1 mod 2^{NEAREST * DIGIT} at least, p - 1 or p + 1 of at most {TERMS_MAX} signed powers of 2",
        settings=(SPARE,),
        solve=fit,
    ),
)  # fmt: skip
