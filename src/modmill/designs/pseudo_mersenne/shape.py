# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Sizes, times and schedule of the pseudo-Mersenne array."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from modmill.contract import UnsupportedError
from modmill.designs.pseudo_mersenne.product_array import DIGIT, ENTRY, HIGHEST, PRODUCT, SUM, ProductArray
from modmill.designs.pseudo_mersenne.serial_fold import SerialFold
from modmill.numbers.folding import fold_bound
from modmill.rtl.conditional_subtract import ConditionalSubtract
from modmill.rtl.digit_serial import START, Frame
from modmill.rtl.digits import LANES, MEMORY
from modmill.schedule import Operations, Schedule, Step

FOLDS_MAX = 4
"""Most folds."""


@dataclass(frozen=True)
class Params:
    """p = 2^``k`` - ``c`` on an array of ``digits`` columns with ``streams`` interleaved products, one every
    ``interval`` cycles."""

    k: int
    c: int
    digits: int
    streams: int
    interval: int

    @property
    def starts(self) -> int:
        """Products that begin after a reset before the first operands are taken: until then columns may hold what was
        there before the reset."""
        return self.streams + 2

    @property
    def lanes(self) -> int:
        """Digits of a result that leave in each cycle."""
        return LANES

    @property
    def bits(self) -> int:
        """Bits of a digit."""
        return DIGIT

    @property
    def n(self) -> int:
        """Bits of all digits."""
        return self.bits * self.digits

    @property
    def top(self) -> int:
        """Bits of the highest digit of a number below 2^cut above those of a digit."""
        return 0

    @property
    def cut(self) -> int:
        """Numbers are folded at 2^cut."""
        return self.n + self.top

    @property
    def C(self) -> int:
        """C, with 2^cut = C (mod p)."""
        return self.c << (self.cut - self.k)

    @property
    def limit(self) -> int:
        """Exclusive bound of operands."""
        return 1 << self.operand_bits

    @property
    def operand_bits(self) -> int:
        """Bits of an operand."""
        return self.cut + 1

    @cached_property
    def bounds(self) -> tuple[int, ...]:
        """Exclusive bounds of v: the product's, then after each fold. Raises UnsupportedError if it is not below
        `limit` after FOLDS_MAX folds."""
        top = self.limit
        bounds = [*self.first_bounds]
        while bounds[-1] > top:
            if len(bounds) > FOLDS_MAX:
                raise UnsupportedError(
                    f"c = 2^{self.k} - p has {self.c.bit_length()} bits: {FOLDS_MAX} folds at 2^{self.cut} by "
                    f"C = 2^{self.cut - self.k} c leave numbers of {(bounds[-1] - 1).bit_length()} bits, at most "
                    f"{(top - 1).bit_length()} are accepted; c must be narrower"
                )
            bounds.append(fold_bound(bounds[-1], self.cut, self.C))
        return tuple(bounds)

    @property
    def first_bounds(self) -> tuple[int, ...]:
        """Exclusive bounds of v: the product's, and after the folds that are not plain folds of it."""
        return ((self.limit - 1) ** 2 + 1, *self.before_folds)

    @property
    def before_folds(self) -> tuple[int, ...]:
        """Exclusive bounds of v after each fold that the product includes."""
        return ()

    @property
    def included(self) -> int:
        """Number of folds that the product includes."""
        return len(self.before_folds)

    @property
    def folds(self) -> int:
        """Number of folds."""
        return len(self.bounds) - 1

    def serial_folds(self) -> list[SerialFold]:
        """The folding units, in order; the first has the number included + 1."""
        gaps, last = self.interval > self.digits, self.folds - 1
        return [
            SerialFold(
                self.digits,
                self.bits,
                self.C,
                self.bits if k else self.high_bits,
                final=k == last,
                gaps=gaps,
                top=self.top,
            )
            for k in range(self.included, self.folds)
        ]

    @property
    def high_bits(self) -> int:
        """Bits of the highest digit that enters the first fold."""
        return HIGHEST + 1

    def gap(self, k: int) -> int:
        """Cycles before the k-th fold, from the digits of the fold before."""
        return 0

    def placed_folds(self) -> Iterator[tuple[int, int, SerialFold]]:
        """The folding units with their numbers and the cycles in which the lowest digit enters."""
        at = self.folding
        for k, unit in enumerate(self.serial_folds(), self.included + 1):
            at += self.gap(k)
            yield k, at, unit
            at += unit.latency

    @property
    def product(self) -> int:
        """Cycle after acceptance in which the first high digit of the product leaves the array."""
        return START + ProductArray.latency_of(self.digits, self.streams)

    @property
    def folding(self) -> int:
        """Cycle in which the lowest digits of both halves enter the first fold."""
        return self.product + self.digits + MEMORY

    @property
    def folded(self) -> int:
        """Cycle in which the lowest digit of v leaves the last fold."""
        *_, (_, at, unit) = self.placed_folds()
        return at + unit.latency

    @cached_property
    def frame(self) -> Frame:
        """Sizes and times of the multiplier around the array."""
        kept = self.folding + self.digits - START
        latency = self.folded - START
        return Frame(
            self.bits, self.digits, self.operand_bits, self.streams, self.interval, latency, rising=True, kept=kept,
            lanes=self.lanes,
        )  # fmt: skip

    @property
    def highest(self) -> int:
        """Bits of p in the highest digit; 0 or less if p has a digit less."""
        return self.k - self.bits * (self.digits - 1)

    def top_fold(self) -> SerialFold:
        """The unit for v mod 2^k + floor(v / 2^k) c, which is below 2 p."""
        high = self.bits + 2 + self.top - self.highest
        return SerialFold(self.digits, self.bits, self.c, high, final=True, gaps=False, top=self.top)

    @property
    def top_bound(self) -> int:
        """Exclusive bound after the fold at 2^k."""
        return (1 << self.k) + ((self.bounds[-1] - 1) >> self.k) * self.c

    @cached_property
    def binary_frame(self) -> Frame:
        """The frame of the binary form, which ends with a fold at 2^k and a conditional subtraction."""
        more = self.digits + self.top_fold().latency + ConditionalSubtract.latency_of(self.digits)
        return replace(self.frame, latency=self.frame.latency + more)

    def product_steps(self) -> Iterator[Step]:
        """The steps up to the digits of the product."""
        return _array_steps(self)

    @cached_property
    def schedule(self) -> Schedule:
        """The steps of one product; the operands are accepted in cycle 0."""
        return Schedule(tuple(_steps(self)), self.interval)


class Kind(Operations):
    """The operations, for iteration i, fold k, digit or column j; v_k is v after the k-th fold."""

    PRODUCT = "xy{}"  # x_0 y_i
    COLUMN = "T{}"
    TOP = "S{}"  # the highest digit after an iteration, including the carries of all columns
    HIGH = "high{}"  # digit d + j of the product
    READ = "x y{}"  # digits j and d + j of the product
    FOLD = "v{}"  # digit j of v_k, and digit d + j except in the last fold
    RESULT = "v"


def _steps(p: Params) -> Iterator[Step]:
    """The product; the folds, digit by digit; the result through its memory. An operation does not list carries and
    digits among its reads that arrive while it is under way."""
    digits = range(p.digits)
    yield from p.product_steps()
    before = [Kind.FOLD(p.included, j) if p.included else Kind.READ(j) for j in digits]
    for k, at, unit in p.placed_folds():
        for j in digits:
            yield Kind.FOLD(k, j).on(f"fold {k}", at + j, unit.latency, [before[j]], busy=1)
        before = [Kind.FOLD(k, j) for j in digits]
    last = p.folded + p.digits - 1
    yield Kind.RESULT().on("results", last, p.frame.timing.latency - last, before)


def _array_steps(p: Params) -> Iterator[Step]:
    """Each iteration in the two lowest columns and in the others; the product's high digits, the highest first, through
    a memory."""
    digits = range(p.digits)
    for i in digits:
        start = START + ENTRY + i * p.streams
        above = [Kind.COLUMN(i - 1, 1)] * (i > 0)
        yield Kind.PRODUCT(i).on("products", start, PRODUCT, busy=1)
        for j in (0, 1):
            ready = start + j + PRODUCT
            reads = [Kind.PRODUCT(i), *above][: 2 - j]
            yield Kind.COLUMN(i, j).on(f"column {j}", ready, SUM - PRODUCT, reads, busy=1)
        yield Kind.TOP(i).on("other columns", start + 2, SUM + p.digits - 2, busy=1)
    end = p.product + p.digits - 1
    for j in reversed(digits):
        yield Kind.HIGH(j).on("high digits", end - j - 1, 1, [Kind.TOP(p.digits - 1)])
    for j in digits:
        yield Kind.READ(j).on("memory", p.folding - MEMORY + j, MEMORY, [Kind.COLUMN(j, 0), Kind.HIGH(j)], busy=1)
