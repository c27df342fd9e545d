# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A product x y, with some digits of y in each cycle, in columns whose carries move one place in each cycle.

    T_k = c_k mod 2^r + floor(c_(k-1) / 2^r) + m_k,   m_k = sum of lo(x_(k-e) y_e) and hi(x_(k-1-e) y_e), e < rows
    c_k <- T_(k + rows);  the lowest ``rows`` of T leave

for the digits y_0 ... y_(rows-1) of the cycle. So no carry chain is longer than a column of little more than r bits.
The highest column takes only high halves, below 2^r - 1, so no carry leaves it.
"""

from __future__ import annotations

from amaranth.hdl import Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.rtl.delay import later
from modmill.rtl.product import one_tile

DSP_REGISTERS = 3
"""Registers of a DSP block: input, pipeline, output."""


def overflow(rows: int) -> int:
    """Largest floor(T / 2^r) of a column: T <= (2 rows + 1) (2^r - 1) + 2 rows + 1."""
    return 2 * rows + 1


def carry_bits(rows: int) -> int:
    """Bits of a column above its r bits."""
    return overflow(rows).bit_length()


def levels(rows: int) -> int:
    """Levels of the adder tree for m_k."""
    return (2 * rows - 1).bit_length()


class _Column(wiring.Component):
    """One T: ``t`` is low + over + m of the previous cycle, or only m if ``first`` was set two cycles before."""

    def __init__(self, bits: int, rows: int, added: int) -> None:
        carry = carry_bits(rows)
        super().__init__({"first": In(1), "low": In(bits), "over": In(carry), "m": In(added), "t": Out(bits + carry)})

    @property
    def latency(self) -> int:
        return 1

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        goes_on = Signal(reset_less=True)
        t = Signal(len(self.t), name="T", reset_less=True)
        kept = [value & goes_on.replicate(len(value)) for value in (self.low, self.over)]
        m.d.sync += [goes_on.eq(~self.first), t.eq(kept[0] + kept[1] + self.m)]
        m.d.comb += self.t.eq(t)
        return m


class ProductColumns(wiring.Component):
    """``digits`` columns of ``bits`` bits, and a DSP block for each digit of x and each of the ``rows`` digits of y.

    ``x`` must be stable while the digits of its y enter, ``rows`` in each cycle. Their products are added `latency` - 1
    cycles later; ``first`` must be set one cycle before the first of these additions. ``out``: the lowest ``rows`` T,
    which leave; ``c``: the others.
    Latency: `latency` cycles from x and y to T. Cost on ECP5: digits x rows DSP blocks; about 2 r LUTs for each.
    """

    kept = ("column",)

    def __init__(self, bits: int, digits: int, rows: int) -> None:
        self.bits, self.digits, self.rows = bits, digits, rows
        self.added: list[Value] = []
        """m_k of all columns; empty until the block is elaborated."""
        column = bits + carry_bits(rows)
        super().__init__({
            "x": In(bits * digits), "y": In(bits * rows), "first": In(1),
            "out": Out(column).array(rows), "c": Out(column).array(digits),
        })  # fmt: skip

    @property
    def latency(self) -> int:
        """Cycles from x and y to T."""
        return self.latency_of(self.rows)

    @staticmethod
    def latency_of(rows: int) -> int:
        """Cycles from x and y to T."""
        return DSP_REGISTERS + levels(rows) + 1

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        r, d, rows = self.bits, self.digits, self.rows
        terms: list[list[Value]] = [[] for _ in range(d + rows)]
        for j in range(d):
            for e in range(rows):
                x, y = self.x[r * j : r * (j + 1)], self.y[r * e : r * (e + 1)]
                product = one_tile(m, x, y, DSP_REGISTERS, f"tile{j}_{e}")
                terms[j + e].append(product[:r])
                terms[j + e + 1].append(product[r:])
        for level in range(levels(rows)):
            for k, values in enumerate(terms):
                pairs = [(a, sum(values[a + 1 : a + 2], values[a])) for a in range(0, len(values), 2)]
                terms[k] = [later(m, total, f"sum{k}_{level}_{a}") for a, total in pairs]
        self.added += [m_k for (m_k,) in terms]
        width = r + carry_bits(rows)
        columns = [_Column(r, rows, len(values[0])) for values in terms]
        zero = Const(0, width)
        state = [*(columns[k + rows].t for k in range(d)), *[zero] * (rows + 1)]
        for k, (column, (added,)) in enumerate(zip(columns, terms, strict=True)):
            m.submodules[f"column{k}"] = column
            m.d.comb += [
                column.first.eq(self.first),
                column.m.eq(added),
                column.low.eq(state[k][:r]),
                column.over.eq(state[k - 1][r:] if 0 < k < d else 0),
            ]
        m.d.comb += [self.out[k].eq(columns[k].t) for k in range(rows)]
        m.d.comb += [self.c[k].eq(state[k]) for k in range(d)]
        return m
