# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Sizes, times and schedule of the Montgomery array."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from modmill.designs.montgomery_array.array import DIGIT, ENTRY, HEAD, PRODUCT, SUM, MontgomeryArray, latency
from modmill.designs.montgomery_array.folded_array import FoldedArray
from modmill.rtl.conditional_subtract import ConditionalSubtract
from modmill.rtl.digit_serial import Frame
from modmill.schedule import Operations, Schedule, Step


@dataclass(frozen=True)
class Params:
    """Digits, streams and interval (in cycles) of a core for moduli of up to ``bits`` bits.

    ``columns``: columns of the folded array, each of which serves ``groups`` digits; 0: a column for each digit.
    """

    bits: int
    digits: int
    streams: int
    interval: int
    columns: int = 0
    groups: int = 1

    @property
    def blocks(self) -> int:
        """DSP blocks of one lane: three in the head and two in each further column."""
        return 2 * self.columns + 3 if self.columns else 2 * self.digits + 1

    def array(self, modulus: int | None) -> MontgomeryArray | FoldedArray:
        """The array for a fixed ``modulus``, or for a loaded one (None)."""
        if self.columns:
            return FoldedArray(self.digits, self.columns, self.groups, self.streams, modulus)
        return MontgomeryArray(self.digits, self.streams, modulus)

    @property
    def operand_bits(self) -> int:
        """Bits of operands and results."""
        return DIGIT * self.digits - 1

    @property
    def spare(self) -> int:
        """log2 lambda."""
        return self.operand_bits - self.bits

    @property
    def R(self) -> int:
        """R: the result is x y / R (mod M)."""
        return 1 << DIGIT * self.digits

    @cached_property
    def frame(self) -> Frame:
        """Sizes and times of the multiplier around the array."""
        return Frame(
            DIGIT, self.digits, self.operand_bits, self.streams, self.interval,
            latency(self.digits, self.groups * self.streams, self.columns or self.digits),
            groups=self.groups, columns=self.columns,
        )  # fmt: skip

    @cached_property
    def binary_frame(self) -> Frame:
        """The frame of the binary form, with a final subtraction: for x, y < M, S is below (M / R + 1) M < 2 M."""
        more = ConditionalSubtract.latency_of(self.digits)
        return replace(self.frame, latency=self.frame.latency + more, rising=True)

    @property
    def held(self) -> list[tuple[tuple[int, ...], int, int]]:
        """For each group: (its number), or () if there is only one; lowest and highest digit of S in its columns.
        Without groups the highest digit is behind the last column."""
        if not self.columns:
            return [((), 0, self.digits - 1)]
        each = self.columns
        return [((g,), g * each, min((g + 1) * each, self.digits) - 1) for g in range(self.groups)]

    @cached_property
    def schedule(self) -> Schedule:
        """The steps of one product; the operands are accepted in cycle 0."""
        return Schedule(tuple(_steps(self)), self.interval)


class Kind(Operations):
    """The operations, for iteration i or digit j; in a folded array also for group g of an iteration."""

    PRODUCT = "xy{}"  # x_0 y_i
    LOW = "t{}"
    QUOTIENT = "q{}"
    COLUMN = "S{}/1"  # the lowest digit of S (of the group)
    OTHERS = "S{}"  # the highest digit of S (of the group), including the carries of all columns
    DIGIT = "z{}"  # a digit of the result at the array's output
    RESULT = "S"


def _steps(p: Params) -> Iterator[Step]:
    """Each iteration in the head and in the columns; the digits as they leave; the result through its memory. An
    operation does not list carries and digits among its reads that arrive while it is under way."""
    frame = p.frame
    for i in range(p.digits):
        start = frame.start + ENTRY + i * frame.turn
        above = [Kind.COLUMN(i - 1, *p.held[0][0])] * (i > 0)
        yield Kind.PRODUCT(i).on("head", start, PRODUCT, busy=1)
        yield Kind.LOW(i).on("t", start + PRODUCT, 1, [Kind.PRODUCT(i), *above])
        yield Kind.QUOTIENT(i).on("q", start + PRODUCT + 1, PRODUCT, [Kind.LOW(i)], busy=1)
        ends = []
        for (group, first, last), column in zip(p.held, frame.passes(start + HEAD + 1), strict=True):
            ends.append(Kind.COLUMN(i, *group))
            yield ends[-1].on("column 1", column, SUM, [Kind.QUOTIENT(i)], busy=1)
            if last > first:
                ends[-1] = Kind.OTHERS(i, *group)
                cycles = SUM + last - first - 1
                yield ends[-1].on("other columns", column + 1, cycles, [Kind.QUOTIENT(i)], busy=1)
    digits, run = [], frame.places // p.groups
    for g, arrival in enumerate(frame.passes(frame.arrival)):
        for j in range(g * run, min((g + 1) * run, p.digits)):
            digits.append(Kind.DIGIT(j))
            yield digits[-1].on("results", arrival + run - 2 - j % run, 1, [ends[g]])
    last = arrival + run - 1
    yield Kind.RESULT().on("port", last, frame.timing.latency - last, digits)
