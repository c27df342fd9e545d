# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Sizes and schedule of the machine that multiplies digit by digit.

    T_i = X y_i + C_(i-1),  C_i = (T_i + k M) / 2^r            i = 0 ... n - 1, C_(-1) = 0

With multipliers, k M is computed in the cycle of T_i, and the registers hold C_i. With tables, the registers hold T_i;
the table delivers k M at the same time, and it is added in the next cycle. So T_n = C_(n-1) takes one more cycle.

With ``feedback`` the last result is complete before its register and can be an operand d + 1 cycles after the operands
that it depends on. The last cycle of the loop cancels two more bits (`Montgomery.last`), so n = d. With multipliers X
y_0 takes a cycle before the loop; with tables the loop has d + 1 cycles, and X y_i has no register.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from amaranth.hdl import Const, Value

from modmill.contract import Binary, Digits, Form
from modmill.designs.radix64k.blocks import COLUMN, Multiples, columns
from modmill.numbers.redundant_digits import HALF_TABLES, MULTIPLIERS, TABLE, Montgomery
from modmill.schedule import Operations, Schedule, Step


class Kind(Operations):
    """The operations of the machine."""

    OPERANDS = "X, Y"
    PRODUCT = "Xy{}"  # X_j y_i for all digits of X
    MULTIPLE = "kM{}"  # the words at the table's ports for the k M of T_i, divided by 2^r
    SUM = "T{}"
    ITERATION = "C{}"


@dataclass(frozen=True)
class Shape:
    """The arithmetic ``m``; whether digits are ``redundant``, whether the modulus is ``loadable``; ``lookups``: copies
    of the logic for z, each of which addresses its share of the table. Without redundancy, ``tile``: bits of X and of M
    at one multiplier, 0 for as many as a digit of Y has; ``chain``: most bits of a carry chain, 0 for no limit."""

    m: Montgomery
    redundant: bool
    loadable: bool
    lookups: int = 1
    tile: int = 0
    chain: int = 0

    @property
    def tables(self) -> bool:
        """Whether k M comes from block RAM, one cycle after its address."""
        return self.m.quotient != MULTIPLIERS

    @property
    def registered(self) -> bool:
        """Whether X y_i passes the multipliers' output registers."""
        return not (self.m.feedback and self.tables)

    @property
    def first(self) -> int:
        """Cycle of the first iteration: operands enter their registers in cycle 0, X y_0 its registers in cycle 1."""
        return 1 + self.registered

    @property
    def steps(self) -> int:
        """Cycles of the loop: one for each iteration, and with tables one more to add the last k M."""
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
        """Representation of numbers at the ports."""
        limit = self.m.operand * self.m.top - 1
        return Digits(self.m.r, self.m.d) if self.redundant else Binary(limit.bit_length())

    @cached_property
    def x_digits(self) -> tuple[int, ...]:
        """Bits of each digit of X."""
        r, d = self.m.r, self.m.d
        if self.redundant:
            return (r + 2,) * d
        if self.tile or self.m.feedback:
            return _cut(self.form.width, self.x_size)
        return (*(r,) * (d - 1), self.form.width - r * (d - 1))

    @cached_property
    def m_digits(self) -> tuple[int, ...]:
        """Bits of each digit of M at a multiplier."""
        return _cut(self.bits, self.m_size)

    @property
    def x_size(self) -> int:
        """Bits of X at one multiplier without redundancy, at least those of a digit of Y."""
        return self.tile or self.y_digit

    @property
    def m_size(self) -> int:
        """Bits of M at one multiplier."""
        return self.tile or self.m.r

    @property
    def y_digit(self) -> int:
        """Bits of the widest digit of Y."""
        r, d = self.m.r, self.m.d
        return r + 2 if self.redundant else max(r, self.form.width - r * (d - 1)) if self.m.feedback else r

    @property
    def y_digits(self) -> int:
        """Digits of Y."""
        return self.m.d if self.redundant or self.m.feedback else -(-self.form.width // self.m.r)

    @property
    def lookup_bits(self) -> int:
        """Bits of a table word that z depends on, rounded up to whole block RAMs."""
        return min(self.bits, COLUMN * columns(2 * self.m.r))

    def table(self, bits: int, *, readers: int = 1) -> Multiples:
        """The table of multiples with the lower ``bits`` bits of each word, for that many ``readers``."""
        fixed = None if self.loadable else self.m
        return Multiples(bits, self.table_bits, fixed=fixed, with_g=self.m.quotient == HALF_TABLES, readers=readers)

    def addends(self, table: Multiples) -> tuple[Value, Value]:
        """The two addends, divided by 2^r, at a table's outputs."""
        return (table.a_q, Const(0, 1)) if self.m.quotient == TABLE else (table.a_q[self.m.half :], table.b_q)

    @cached_property
    def schedule(self) -> Schedule:
        """The steps of one product; the operands are accepted in cycle 0."""
        return Schedule(tuple(self._steps()), self.steps)

    def _steps(self) -> Iterator[Step]:
        yield Kind.OPERANDS().on("operands", 0, 1)
        for i in range(self.steps):
            at = self.first + i
            state = Kind.SUM if self.tables else Kind.ITERATION
            reads = [state(i - 1)] * (i > 0) + [Kind.MULTIPLE(i - 1)] * (i > 0 and self.tables)
            if i < self.y_digits:  # nothing is added after the highest digit of Y
                reads.append(Kind.PRODUCT(i) if self.registered else Kind.OPERANDS())
            if i < self.y_digits and self.registered:
                yield Kind.PRODUCT(i).on("X y", at - 1, 1, [Kind.OPERANDS()])
            yield state(i).on("digits" if self.tables else "k, k M, digits", at, 1, reads)
            if self.tables and i < self.m.n:
                yield Kind.MULTIPLE(i).on("table", at, 1, reads)


def _cut(width: int, size: int) -> tuple[int, ...]:
    """Bits of each piece of ``width`` bits, of at most ``size``."""
    return tuple(min(size, width - low) for low in range(0, width, size))
