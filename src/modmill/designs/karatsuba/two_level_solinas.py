# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Montgomery multiplication for sparse primes of at most 256 bits: the product by Karatsuba's trick on two levels.

Source:  as `solinas` for the primes and the quotient, as `two_level` for the product. Digit-serial quotient and top
         bits are ours.
Formula: x y as in `two_level_product`, with 16 digits of b bits, n = 16 b, h = 2 b;
         p = 2^z c - 1:  V = x y + Q (p + 1);  p = 2^z c + 1:  V = x y - Q (p - 1) + p R;
         R = 2^(10 h),  Q = V mod R,  v = (V - Q) / R
Range:   x, y < B = 2^(n + s) with s <= 3 give 0 <= v < B^2 / R + p = 2^(6 h + 2 s) + p <= 2^n, for which b is large
         enough; v = x y / R (mod p)

Ten DSP blocks take a product every ten cycles: 100 multiplications of digits. A digit of Q has h bits and costs
additions only.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from amaranth.hdl import Module, Value

from modmill.contract import UnsupportedError
from modmill.design import Design, Source
from modmill.designs.karatsuba import two_level
from modmill.designs.karatsuba.positions import NEAREST, Positions
from modmill.designs.karatsuba.positions import Kind as Quotient
from modmill.designs.karatsuba.quotient import DigitQuotient
from modmill.designs.karatsuba.solinas import SparseMontgomery, Subtracting
from modmill.designs.karatsuba.two_level import (
    ABOVE_MOST,
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
from modmill.designs.karatsuba.two_level_product import COUNT, DIGIT_MAX, INTERVAL
from modmill.designs.pseudo_mersenne.serial_fold import SerialFold
from modmill.designs.pseudo_mersenne.shape import Kind as Folds
from modmill.designs.solinas.design import TERMS_MAX, shape, sparse_terms
from modmill.designs.solinas.sparse_quotient import Term
from modmill.rtl.conditional_subtract import ConditionalSubtract
from modmill.rtl.digit_serial import START, Control, Frame
from modmill.schedule import Operation, Step


@dataclass(frozen=True)
class TwoLevelSolinasParams(TwoLevelParams):
    """Sizes and times; a digit of Q and of v has the bits of half a word.

    ``size``: bits of a digit of the product. ``terms``: the signed powers of 2 of p + 1 or p - 1; ``added``: p if p = 1
    mod 2^z, else 0.
    """

    size: int
    terms: tuple[Term, ...]
    added: int

    @property
    def digit(self) -> int:
        return self.size

    @property
    def limit(self) -> int:
        return 1 << self.operand_bits

    @property
    def operand_bits(self) -> int:
        return self.n + self.above

    def serial_folds(self) -> list[SerialFold]:
        return []

    @cached_property
    def positions(self) -> Positions:
        """The positions of V: the halves of the product, and with bits above the words those of e."""
        mask, tops = (1 << self.bits) - 1, (1 << self.above) - 1
        most = [mask] * HALVES + [mask + 2 * tops * mask] * HALVES + [0] * (2 * INTERVAL - 2 * HALVES)
        most[2 * HALVES - 1] += tops**2 << self.bits
        return Positions(self.bits, INTERVAL, INTERVAL, HALVES, self.terms, self.added, tuple(most), 1)

    @property
    def r(self) -> int:
        """r with R = 2^r."""
        return INTERVAL * self.bits

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
        return self.first + INTERVAL

    @cached_property
    def frame(self) -> Frame:
        return Frame(self.bits, HALVES, self.operand_bits, 1, self.interval, self.result - START, rising=True)

    @cached_property
    def binary_frame(self) -> Frame:
        return replace(self.frame, latency=self.frame.latency + ConditionalSubtract.latency_of(HALVES))

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
        last = self.result + HALVES - 1
        yield Folds.RESULT().on("results", last, self.frame.timing.latency - last, map(Quotient.OUT, range(HALVES)))


class TwoLevelSolinas(two_level.OnTwoLevels, SparseMontgomery):
    """The blocks and the quotient for one modulus."""

    params: TwoLevelSolinasParams

    @property
    def machine(self) -> type[Machine]:
        return Machine

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


def digit_bits(p: int) -> int:
    """Bits of a digit of the product for p: results are below 2^n, with all bits above the digits too."""
    b = two_level.digit_bits(p.bit_length())
    return b + (p + (1 << 12 * b + 2 * ABOVE_MOST) > 1 << COUNT**2 * b)


def room(p: int) -> int:
    """Most spare bits of operands modulo p."""
    return COUNT**2 * digit_bits(p) + ABOVE_MOST - p.bit_length()


def fit(p: int, *, spare: int) -> TwoLevelSolinas:
    """The design for p. ``spare``: bits of operands above those of p at least, for sums. Raises UnsupportedError for a
    p that is too short or too long, or not of the form."""
    k, b = p.bit_length(), digit_bits(p)
    if not BITS_MIN <= k <= BITS_MAX:
        raise UnsupportedError(f"the modulus must have {BITS_MIN} to {BITS_MAX} bits, this one has {k}")
    sign, z, _ = shape(p)
    if z < (least := NEAREST * 2 * min(b, DIGIT_MAX)):
        raise UnsupportedError(f"p = {-sign} mod 2^{z}; for {k} bits p = 1 or -1 mod 2^{least} at least is accepted")
    if b > DIGIT_MAX:
        raise UnsupportedError(f"p must be at most 2^{BITS_MAX} - 2^{12 * DIGIT_MAX + 2 * ABOVE_MOST}, it is larger")
    above = max(0, k + spare - COUNT**2 * b)
    made = TwoLevelSolinasParams(k, (1 << k) - p, HALVES, 1, INTERVAL, above, b, sparse_terms(p), p if sign < 0 else 0)
    try:
        made.positions.levels  # noqa: B018 - checks the distances
    except ValueError as error:
        raise UnsupportedError(f"p = {-sign} mod 2^{z}: {error}") from None
    return TwoLevelSolinas(p, made, {"spare": spare})


SPARE = replace(two_level.SPARE, limits=lambda p, _: (0, room(p)))
"""The setting of this design: p may need longer digits than in the other."""
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
        settings=(SPARE,),
        solve=fit,
    ),
)  # fmt: skip
