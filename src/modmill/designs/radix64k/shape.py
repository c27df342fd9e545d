# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Sizes of the machine that multiplies digit by digit, and the operations of one product in their cycles.

    T_i = X y_i + C_(i-1),  C_i = (T_i + k M) / 2^r            i = 0 ... n - 1, C_(-1) = 0

With multipliers k M is made in the cycle of T_i, and C_i is in the registers. With tables T_i is; k M comes out of the
table beside it and is added in the next cycle, so that a last T_n = C_(n-1) is one cycle more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from amaranth.hdl import Const, Value

from modmill.contract import Binary, Digits, Form
from modmill.designs.radix64k.blocks import COLUMN, Inverse, Multiples, columns
from modmill.numbers.redundant_digits import HALF_TABLES, MULTIPLIERS, TABLE, Montgomery
from modmill.schedule import Operations, Schedule, Step

FIRST = 2
"""Cycle of the first iteration: the operands enter their registers in cycle 0, X y_0 those of the multipliers in 1."""


class Kind(Operations):
    """What the units make."""

    OPERANDS = "X, Y"
    PRODUCT = "Xy{}"
    """X_j y_i for all digits of X."""
    MULTIPLE = "kM{}"
    """What the table's ports have of the k M that belongs to T_i, over 2^r."""
    SUM = "T{}"
    ITERATION = "C{}"


@dataclass(frozen=True)
class Shape:
    """The arithmetic, whether digits are ``redundant``, whether the modulus is ``loadable``, and how often z is made
    (``lookups``: each one reads its share of the table)."""

    m: Montgomery
    redundant: bool
    loadable: bool
    lookups: int = 1

    @property
    def tables(self) -> bool:
        """Whether k M comes from block RAM, one cycle after its address."""
        return self.m.quotient != MULTIPLIERS

    @property
    def steps(self) -> int:
        """Cycles of the loop: one an iteration, and with tables one more to add the last k M."""
        return self.m.n + self.tables

    @property
    def bits(self) -> int:
        """Bits of the modulus."""
        return self.m.top.bit_length()

    @property
    def table_bits(self) -> int:
        """Bits of a table's address."""
        return self.m.half if self.m.quotient == HALF_TABLES else self.m.r

    @cached_property
    def form(self) -> Form:
        """Numbers at the ports."""
        limit = self.m.operand * self.m.top - 1
        return Digits(self.m.r, self.m.d) if self.redundant else Binary(limit.bit_length())

    @cached_property
    def x_digits(self) -> tuple[int, ...]:
        """Bits of each digit of X."""
        r, d = self.m.r, self.m.d
        return (r + 2,) * d if self.redundant else (*(r,) * (d - 1), self.form.width - r * (d - 1))

    @property
    def y_digit(self) -> int:
        """Bits of a digit of Y."""
        return self.m.r + 2 * self.redundant

    @property
    def y_digits(self) -> int:
        """Digits of Y."""
        return self.m.d if self.redundant else -(-self.form.width // self.m.r)

    @property
    def columns(self) -> int:
        """Block RAMs of the table."""
        return columns(self.bits)

    @property
    def lookup_bits(self) -> int:
        """Bits of a word that z depends on, in whole block RAMs."""
        return min(self.bits, COLUMN * columns(2 * self.m.r))

    def table(self, bits: int, *, readers: int = 1) -> Multiples:
        """The table of multiples, its words cut to ``bits``."""
        fixed = None if self.loadable else self.m
        return Multiples(bits, self.table_bits, fixed=fixed, with_g=self.m.quotient == HALF_TABLES, readers=readers)

    def addends(self, table: Multiples) -> tuple[Value, Value]:
        """Both addends over 2^r that stand at a table's outputs."""
        return (table.a_q, Const(0, 1)) if self.m.quotient == TABLE else (table.a_q[self.m.half :], table.b_q)

    @property
    def load_cycles(self) -> int:
        """From the first word of a modulus to the first cycle in which operands are accepted."""
        unit = Multiples.cycles(self.bits, self.table_bits) if self.tables else Inverse.cycles(self.m.r)
        return len(self.m.modulus_digits) + unit + 1

    @cached_property
    def schedule(self) -> Schedule:
        """The steps of one product, cycle 0 the accepted operands."""
        return Schedule(tuple(self._steps()), self.steps)

    def _steps(self) -> Iterator[Step]:
        yield Kind.OPERANDS().on("operands", 0, 1)
        for i in range(self.steps):
            at = FIRST + i
            state = Kind.SUM if self.tables else Kind.ITERATION
            reads = [state(i - 1)] * (i > 0) + [Kind.MULTIPLE(i - 1)] * (i > 0 and self.tables)
            if i < self.y_digits:  # above the highest digit of Y nothing is added
                reads.append(Kind.PRODUCT(i))
                yield Kind.PRODUCT(i).on("X y", at - 1, 1, [Kind.OPERANDS()])
            yield state(i).on("digits" if self.tables else "k, k M, digits", at, 1, reads)
            if self.tables and i < self.m.n:
                yield Kind.MULTIPLE(i).on("table", at, 1, reads)
