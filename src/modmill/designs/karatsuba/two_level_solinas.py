# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Montgomery multiplication for sparse primes of at most 256 bits: the product by Karatsuba's trick on two levels.

Source:  as `solinas` for the primes and the quotient, as `two_level` for the product. Digit-serial quotient and top
         bits are ours.
Formula: x y as in `two_level_product`, with 16 digits of b = ceil(k / 16) bits, at least 5, n = 16 b, h = 2 b;
         p = 2^z c - 1:  V = x y + Q (p + 1);  p = 2^z c + 1:  V = x y - Q (p - 1) + p R;
         R = 2^(9 h),  Q = V mod R,  v = (V - Q) / R
Range:   x, y < B = 2^n + 2^(n - b): the highest digit is at most 2^b; with s bits above the digits, at most 3,
         B = 2^(n + s); 0 <= v < B^2 / R + p <= B, because B^2 / R is at most 2^(n - h + 2 s) and a little;
         v = x y / R (mod p)

Ten DSP blocks take a product every ten cycles: 100 multiplications of digits. A digit of Q has h bits and costs
additions only.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from amaranth.hdl import Module, Value

from modmill.contract import Timing, UnsupportedError
from modmill.design import Cost, Design, Source
from modmill.designs.karatsuba import two_level
from modmill.designs.karatsuba.positions import NEAREST, Positions
from modmill.designs.karatsuba.positions import Kind as Quotient
from modmill.designs.karatsuba.quotient import DigitQuotient
from modmill.designs.karatsuba.solinas import SparseMontgomery, Subtracting
from modmill.designs.karatsuba.two_level import (
    BITS_MAX,
    BITS_MIN,
    HALVES,
    Kind,
    TwoLevelParams,
    split,
    top_halves,
    words,
)
from modmill.designs.karatsuba.two_level_ordered import STREAMS, OrderedProduct, ordered, summed
from modmill.designs.karatsuba.two_level_product import INTERVAL
from modmill.designs.pseudo_mersenne.serial_fold import SerialFold
from modmill.designs.pseudo_mersenne.shape import Kind as Folds
from modmill.designs.solinas.design import TERMS_MAX, shape, sparse_terms
from modmill.designs.solinas.sparse_quotient import Term
from modmill.interface import Multiplier
from modmill.rtl.conditional_subtract import ConditionalSubtract
from modmill.rtl.digit_serial import START, Control, Frame
from modmill.schedule import Operation, Step

DIGITS = HALVES + 1
"""Digits of Q, and of v."""


@dataclass(frozen=True)
class TwoLevelSolinasParams(TwoLevelParams):
    """Sizes and times; a digit of Q and of v has the bits of half a word.

    ``terms``: the signed powers of 2 of p + 1 or p - 1; ``added``: p if p = 1 mod 2^z, else 0.
    """

    terms: tuple[Term, ...]
    added: int

    def serial_folds(self) -> list[SerialFold]:
        return []

    @cached_property
    def positions(self) -> Positions:
        """The positions of V: the halves of the product, and with bits above the words those of e."""
        mask, tops = (1 << self.bits) - 1, (1 << self.above) - 1
        highest = mask + (tops**2 << self.bits) if self.above else (self.limit - 1) ** 2 >> 2 * self.n - self.bits
        most = [*[mask] * (2 * HALVES - 1), highest, *[0] * (2 * INTERVAL - 2 * HALVES)]
        for j in range(HALVES, 2 * HALVES):
            most[j] += 2 * tops * mask
        return Positions(self.bits, INTERVAL, DIGITS, DIGITS, self.terms, self.added, tuple(most), 1)

    @property
    def r(self) -> int:
        """r with R = 2^r."""
        return DIGITS * self.bits

    @property
    def folding(self) -> int:
        """Cycle in which half 0 of the product enters the positions."""
        return self.start + summed(self.above)

    @property
    def first(self) -> int:
        """Cycle in which digit 0 of Q is in its register."""
        return self.folding + 1 + self.positions.levels

    @property
    def result(self) -> int:
        """Cycle in which digit 0 of v is in its register."""
        return self.first + DIGITS + 1

    @cached_property
    def frame(self) -> Frame:
        return Frame(self.bits, DIGITS, self.operand_bits, 1, self.interval, self.result - START, rising=True)

    @cached_property
    def binary_frame(self) -> Frame:
        return replace(self.frame, latency=self.frame.latency + ConditionalSubtract.latency_of(DIGITS))

    def product_steps(self) -> Iterator[Step]:
        yield from self.word_steps()
        at = self.start + ordered()
        for j in range(2 * HALVES):
            yield Kind.HALF(j).on(f"{STREAMS[j // INTERVAL]} memory", at + j - 1, 1, [Kind.WORD(j // 2)])
        for j in range(HALVES) if self.above else ():
            yield Kind.ABOVE(j).on("top bits", at + HALVES + j - 1, 1)
            unit = f"{STREAMS[(HALVES + j) // INTERVAL]} halves"
            yield Kind.SUM(j).on(unit, at + HALVES + j, 1, [Kind.HALF(HALVES + j), Kind.ABOVE(j)])

    def steps(self) -> Iterator[Step]:
        """All steps of one product."""

        def reads(k: int) -> list[Operation]:
            with_above = self.above and k >= HALVES
            return [Kind.SUM(k - HALVES) if with_above else Kind.HALF(k)] * (k < 2 * HALVES)

        yield from self.product_steps()
        yield from self.positions.steps(self.first, reads)
        last = self.result + DIGITS - 1
        yield Folds.RESULT().on("results", last, self.frame.timing.latency - last, map(Quotient.OUT, range(DIGITS)))


class TwoLevelSolinas(SparseMontgomery):
    """The blocks and the quotient for one modulus."""

    params: TwoLevelSolinasParams

    @property
    def bounds(self) -> tuple[Fraction, Fraction, Fraction]:
        operand = Fraction(self.params.limit, self.p)
        return operand, operand**2, operand**2 * self.gain + 1

    @property
    def cost(self) -> Cost:
        return two_level.cost()

    @property
    def machine(self) -> type[Machine]:
        return Machine

    @property
    def _below(self) -> TwoLevelSolinasParams:
        """For operands below p: they have no bits above the digits."""
        return replace(self.params, above=0)

    def binary_timing(self) -> Timing:
        return self._below.binary_frame.timing

    def binary_component(self) -> Multiplier:
        return self.machine(self._below, binary=True)

    def multiplied(self, a: int, b: int) -> Generator[tuple[str, Any], None, list[int]]:
        p = self.params
        numbers = split((yield from words(p, a, b)), p.bits, 2 * HALVES)
        yield from ((f"d{j}", half) for j, half in enumerate(numbers))
        for j, half in enumerate(top_halves(p, a, b)) if p.above else ():
            yield f"e{j}", half
            numbers[HALVES + j] += half
            yield f"s{j}", numbers[HALVES + j]
        return numbers + [0] * (2 * INTERVAL - 2 * HALVES)

    @property
    def sizes(self) -> tuple[str, str]:
        return two_level.sizes(self.params), two_level.SLOTS

    def corners(self) -> list[tuple[int, int]]:
        """Those of the quotient; the largest and the least differences of digits and of words."""
        return list(dict.fromkeys([*super().corners(), *two_level.corners(self.params)]))


class Machine(Subtracting, two_level.WordsMachine):
    """The product and the quotient."""

    _params: TwoLevelSolinasParams
    _product: OrderedProduct

    def product(self, m: Module, control: Control) -> tuple[Value, Value]:
        p = self._params
        self._product = OrderedProduct(m, self.i_a, self.i_b, p.digit, control.any, p.start, p.above)
        self._quotient = DigitQuotient(
            m, self._product.low, [self._product.high], p.positions, start=p.folding, width=p.bits, at=control.any
        )
        return self._quotient.out, self._quotient.out

    def product_register(self, operation: Operation) -> Any:
        found = self._quotient.register(operation)
        if found is not None:
            return found
        match operation:
            case Operation(Kind.HALF, (j,)):
                return self._product.halves[j >= INTERVAL]
            case Operation(Kind.SUM, (j,)):
                return self._product.high if HALVES + j >= INTERVAL else self._product.low
        return super().product_register(operation)


def fit(p: int, *, spare: int) -> TwoLevelSolinas:
    """The design for p. ``spare``: bits of operands above those of p at least, for sums. Raises UnsupportedError for a
    p that is too short or too long, or not of the form."""
    params = two_level.sized(p, spare)
    sign, z, _ = shape(p)
    if z < NEAREST * params.bits:
        raise UnsupportedError(
            f"p = {-sign} mod 2^{z}; for {params.k} bits p = 1 or -1 mod 2^{NEAREST * params.bits} at least is accepted"
        )
    made = TwoLevelSolinasParams(**asdict(params), terms=sparse_terms(p), added=p if sign < 0 else 0)
    try:
        made.positions.levels  # noqa: B018 - checks the distances
    except ValueError as error:
        raise UnsupportedError(f"p = {-sign} mod 2^{z}: {error}") from None
    return TwoLevelSolinas(p, made, {"spare": spare})


DESIGNS = (
    Design(
        name="karatsuba-two-level-solinas", page="karatsuba-two-level-solinas",
        title="Montgomery multiplication for sparse primes by Karatsuba's trick on two levels",
        source=Source(
            "J. A. Solinas; A. A. Karatsuba, Y. P. Ofman",
            "Generalized Mersenne Numbers; Multiplication of Multidigit Numbers on Automata",
            "Technical Report CORR 99-39, University of Waterloo; Soviet Physics Doklady 7", 1999,
            "for primes and product; P. L. Montgomery, Mathematics of Computation 44, for the method; machine ours",
        ),
        needs=f"p of {BITS_MIN} to {BITS_MAX} bits, p = 1 or -1 mod 2^z with z of 3/8 of the bits of p at least, "
        f"p - 1 or p + 1 of at most {TERMS_MAX} signed powers of 2",
        settings=(two_level.SPARE,),
        solve=fit,
    ),
)  # fmt: skip
