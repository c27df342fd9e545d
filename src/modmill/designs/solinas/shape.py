# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Sizes, times and schedule of the machine for sparse primes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from modmill.contract import Timing
from modmill.designs.solinas.carry_select import LATENCY
from modmill.designs.solinas.product_columns import ProductColumns
from modmill.designs.solinas.sparse_quotient import CYCLES, Term, needed, stages
from modmill.schedule import Operation, Operations, Schedule, Step

ADDENDS = 3
"""Most numbers in one of the final additions."""


@dataclass(frozen=True)
class Params:
    """``rows`` digits of y in each cycle; ``digits`` of ``r`` bits in a number; operands below 2^``operand_bits``.

    ``interval`` in cycles; ``terms``: the signed powers of 2 of p + 1 or p - 1; ``added``: p if p = 1 mod 2^z, else 0.
    """

    r: int
    digits: int
    rows: int
    operand_bits: int
    interval: int
    terms: tuple[Term, ...]
    added: int

    @property
    def n(self) -> int:
        """n with R = 2^n."""
        return self.r * self.digits

    @property
    def word(self) -> int:
        """W, bits of a word of Q."""
        return self.r * self.rows

    @property
    def steps(self) -> int:
        """Words of Q, and cycles in which the digits of y enter."""
        return self.digits // self.rows

    @property
    def first(self) -> int:
        """Cycle after acceptance in which the first T is in its registers."""
        return 1 + ProductColumns.latency_of(self.rows)

    @property
    def last(self) -> int:
        """Cycle in which the last T is in its registers."""
        return self.first + self.steps - 1

    @property
    def additions(self) -> list[list[int]]:
        """For each stage of the final additions, the number of addends of each addition.

        The addends are the columns, the shifts of Q, and p if it is added.
        """
        out, left = [], 1 + len(self.terms) + (self.added > 0)
        while left > 1:
            groups = [min(ADDENDS, left - k) for k in range(0, left, ADDENDS)]
            out.append(groups)
            left = len(groups)
        return out

    @property
    def gathered(self) -> int:
        """Cycle in which all words of Q are available."""
        return self.last + CYCLES

    @property
    def summed(self) -> int:
        """Cycle in which the digits of the result are available, with carries above each digit."""
        return self.gathered + len(self.additions)

    @property
    def arrival(self) -> int:
        """Cycle in which the result is available: the latency."""
        return self.summed + LATENCY

    @property
    def binary_arrival(self) -> int:
        """The latency of the binary form, with the subtraction of p."""
        return self.arrival + 1 + LATENCY

    def timing(self, latency: int) -> Timing:
        """Timing of a core with this ``latency``, in cycles."""
        return Timing(latency, self.interval, -(-latency // self.interval))

    @cached_property
    def schedule(self) -> Schedule:
        """The steps of one product; the operands are accepted in cycle 0."""
        return Schedule(tuple(_steps(self)), self.interval)


class Kind(Operations):
    """The operations of the machine."""

    PRODUCT = "x y{}"
    """m_k of all columns, for the digits of y in an iteration."""
    COLUMNS = "T{}"
    TERMS = "V{}"
    """A word of V after the additions of a stage, without the carry into the word."""
    QUOTIENT = "Q{}"
    HIGH = "h"
    SUM = "f"
    RESULT = "z"


def _steps(q: Params) -> Iterator[Step]:
    """Each word of V and Q through the stages, then the final additions."""
    groups = stages(q.terms, q.word)
    for i in range(q.steps):
        yield Kind.PRODUCT(i).on("DSP blocks", 1 + i, q.first - 2, busy=1)
        yield Kind.COLUMNS(i).on("columns", q.first - 1 + i, 1, [Kind.COLUMNS(i - 1)] * (i > 0) + [Kind.PRODUCT(i)])
        before: list[Operation] = []
        for stage in (3, 2, 1, 0):
            reads = before + [Kind.QUOTIENT(k) for k in needed(groups.get(stage, ()), q.word, i)]
            reads += [Kind.COLUMNS(i)] * (stage == 1)
            if reads:  # a stage without addends does not exist
                before = [Kind.TERMS(i, stage)]
                yield before[0].on(f"terms {stage}", q.first + 1 + i - stage, 1, reads)
        yield Kind.QUOTIENT(i).on("carry", q.first + CYCLES - 1 + i, 1, before + [Kind.QUOTIENT(i - 1)] * (i > 0))
    last = q.steps - 1
    shifted = range((q.n - max(t.e for t in q.terms)) // q.word, q.steps)
    yield Kind.HIGH().on("high columns", q.last, 1, [Kind.COLUMNS(last)], busy=q.gathered - q.last)
    reads = [Kind.HIGH(), *map(Kind.QUOTIENT, shifted)]
    yield Kind.SUM().on("additions", q.gathered, len(q.additions), reads, busy=1)
    yield Kind.RESULT().on("carry select", q.summed, LATENCY, [Kind.SUM(), Kind.QUOTIENT(last)], busy=1)
