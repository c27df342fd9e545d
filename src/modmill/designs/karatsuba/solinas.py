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

from abc import abstractmethod
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from amaranth.hdl import Module, Value

from modmill.contract import Timing, UnsupportedError
from modmill.design import Cost, Design, Setting, Source
from modmill.designs.karatsuba import design as karatsuba
from modmill.designs.karatsuba.halves import carry_most, digits_at
from modmill.designs.karatsuba.positions import NEAREST, Kind, Positions
from modmill.designs.karatsuba.product import DIGIT, DIGITS_MIN
from modmill.designs.karatsuba.quotient import DigitQuotient
from modmill.designs.karatsuba.shape import ABOVE_MAX, MASK, QuotientParams, digits_of, halves, interval
from modmill.designs.karatsuba.shape import Kind as Product
from modmill.designs.pseudo_mersenne import design as pseudo_mersenne
from modmill.designs.pseudo_mersenne.shape import Kind as Folds
from modmill.designs.solinas.design import TERMS_MAX, LazyMontgomery, shape, sparse_terms
from modmill.designs.solinas.sparse_quotient import Term
from modmill.interface import Multiplier
from modmill.rtl.conditional_subtract import LEAD, ConditionalSubtract
from modmill.rtl.delay import DelayLines
from modmill.rtl.digit_serial import Control
from modmill.schedule import Operation, Step

ROOM = 2 * DIGIT + ABOVE_MAX
"""Most spare bits of operands."""
BITS_MIN = DIGIT * NEAREST + 1
"""Fewest bits of p."""


@dataclass(frozen=True)
class SolinasParams(QuotientParams):
    """Sizes and times behind both halves of the product.

    ``terms``: the signed powers of 2 of p + 1 or p - 1; ``added``: p if p = 1 mod 2^z, else 0.
    """

    terms: tuple[Term, ...]
    added: int

    @cached_property
    def positions(self) -> Positions:
        """The positions of V: both halves and the rest of the low one."""
        n = self.digits
        most = [MASK] * (2 * n - 1) + [MASK + ((1 << 2 * self.above) - 1 << DIGIT)]
        most[n] += MASK
        most[n + 1] += carry_most(n) >> DIGIT
        return Positions(DIGIT, n, n + 1, n, self.terms, self.added, tuple(most), 2)

    @property
    def first(self) -> int:
        """Cycle in which digit 0 of Q is in its register."""
        return self.digit + 1 + self.positions.levels

    @property
    def result(self) -> int:
        return self.first + self.digits + 2

    def steps(self) -> Iterator[Step]:
        """Both halves; digits of Q and of v; the result through its memory. An operation does not list carries among
        its reads."""
        n = self.digits
        yield from self.product_steps()
        yield from self.positions.steps(
            self.first, lambda k: [Product.DIGIT(k), *[Product.CARRY(k - n)] * (k in (n, n + 1))]
        )
        last = self.result + n - 1
        yield Folds.RESULT().on("results", last, self.frame.timing.latency - last, map(Kind.OUT, range(n)))


class QuotientMontgomery(LazyMontgomery):
    """A Montgomery multiplication behind both halves of the product, for one modulus; abstract."""

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


class SparseMontgomery(QuotientMontgomery):
    """The quotient for one sparse prime, position by position; abstract."""

    @abstractmethod
    def multiplied(self, a: int, b: int) -> Generator[tuple[str, Any], None, list[int]]:
        """The intermediates of a b; returns what the product adds to the positions."""

    @property
    @abstractmethod
    def sizes(self) -> tuple[str, str]:
        """Digits and slots of the product, in words."""

    def trace(self, a: int, b: int) -> Iterator[tuple[str, Any]]:
        numbers = yield from self.multiplied(a, b)
        v = yield from self.params.positions.evaluate(numbers)
        yield "v", v

    def corners(self) -> list[tuple[int, int]]:
        """Those of a Montgomery multiplication; the largest and the least sum for each position: the digits of Q that
        are added there are all ones or zeros, and in the lower half of x y its digit is the largest or the least
        too."""
        q, at, y = self.params, self.params.positions, self.params.limit - 1
        low = (1 << q.n) - 1
        modulus = self.p if at.added else -self.p  # x y = Q modulus (mod R)
        found = super().corners()
        for k in range(2 * at.count):
            for least in (False, True):
                Q = sum(1 << i for i, weight in at.weights(k).items() if (weight < 0) is least)
                if at.bits * k < q.n:
                    digit = (0 if least else at.mask) - (Q * modulus >> at.bits * k)
                    Q += (digit * pow(modulus, -1, at.mask + 1) & at.mask) << at.bits * k
                found.append((Q * modulus * pow(y, -1, low + 1) & low | q.limit - 1 - low, y))
        return list(dict.fromkeys(found))

    def facts(self) -> list[tuple[str, str]]:
        at = self.params.positions
        powers = " ".join(f"{'+-'[t.negative]} Q 2^{t.e}" for t in at.terms)
        digits, slots = self.sizes
        return [
            ("V", f"x y {powers}{' + p R' if at.added else ''}, Q = V mod R, v = (V - Q) / R"),
            ("R", f"2^{at.r}"),
            ("digits", digits),
            ("slots", slots),
            ("operands", f"below 2^{self.operand_bits}, about {float(self.bounds[0]):.6g} p"),
            ("carries", "; ".join(f"{low} to {high}" for low, high in at.carries)),
        ]


class KaratsubaSolinas(SparseMontgomery):
    """The blocks and the quotient for one modulus."""

    params: SolinasParams

    @property
    def cost(self) -> Cost:
        """A DSP block for two digits; the rest are shifts."""
        return karatsuba.cost_of(self.params.digits)

    def multiplied(self, a: int, b: int) -> Generator[tuple[str, Any], None, list[int]]:
        n = self.params.digits
        low, high = yield from halves(self.params, a, b)
        rest = low >> self.params.n
        numbers = [*digits_of(low, n, whole=False), *digits_of(high, n)]
        numbers[n] += rest & MASK
        numbers[n + 1] += rest >> DIGIT
        return numbers

    @property
    def sizes(self) -> tuple[str, str]:
        q = self.params
        bits = f" and {q.above} bit{'s' * (q.above > 1)} above them" if q.above else ""
        return f"n = {q.digits} of {DIGIT} bits{bits}", karatsuba.slots(q.digits)

    @property
    def machine(self) -> type[QuotientMachine]:
        return Machine


class Subtracting(pseudo_mersenne.Machine):
    """``binary``: operands and results are below p; p is subtracted once, for v < 2 p; abstract."""

    _params: Any

    @property
    def _built_in(self) -> int:
        """p, or 0 if it is loaded."""
        return (1 << self._params.k) - self._params.c

    def _reduced(self, m: Module, control: Control, digit: Value) -> Value:
        """v mod p."""
        p, digits = self._params, self.frame.digits
        mask = (1 << p.bits) - 1
        modulus = [self._built_in >> p.bits * j & (mask if j < digits - 1 else -1) for j in range(digits)]
        m.submodules.subtract = subtract = ConditionalSubtract(len(digit), digits, modulus, rising=True)
        m.d.comb += [subtract.coming.eq(control.at(p.result - LEAD)), subtract.digit.eq(digit)]
        self._modulus(m, subtract)
        return subtract.out

    def _modulus(self, m: Module, subtract: ConditionalSubtract) -> None:
        """Load p into ``subtract``; here it is built in."""


class QuotientMachine(Subtracting, karatsuba.HalvesMachine):
    """The product and what comes behind it, with the multiplier interface; abstract."""

    _params: QuotientParams


class Machine(QuotientMachine):
    """The product and the quotient."""

    _params: SolinasParams

    def product(self, m: Module, control: Control) -> tuple[Value, Value]:
        p, n = self._params, self._params.digits
        low, high = super().product(m, control)
        waited = DelayLines(m, n, name="halves").line(high, n, name="high_waited")
        self._quotient = DigitQuotient(
            m, low, [waited, self._halves.carry], p.positions,
            start=digits_at(n), width=DIGIT + p.above, at=self._strobes(control),
        )  # fmt: skip
        return self._quotient.out, self._quotient.out

    def product_register(self, operation: Operation) -> Any:
        found = self._quotient.register(operation)
        return super().product_register(operation) if found is None else found


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
        params.positions.levels  # noqa: B018 - checks the distances
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
