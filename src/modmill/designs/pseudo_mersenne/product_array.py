# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A linear array for full products: one column for each digit of 17 bits, many products interleaved.

    column j  T = lo(x_j y_i) + hi(x_(j-1) y_i) + S_j + carry of column j - 1;  lo(T) is S_(j-1) of the next iteration

The lowest digit of each iteration is a digit of the product; after the last iteration the columns hold the others.
Data move as in the Montgomery array: y and flags one column in each cycle, x and results at half that speed, most
significant digit first.
"""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.rtl.delay import DelayLines, later
from modmill.rtl.product import one_tile

DIGIT = 17
"""Bits of a digit, except the highest."""
HIGHEST = DIGIT + 1
"""Bits of the highest digit of an operand."""
ENTRY = 3
"""Cycles from the array's port y to the operands of column 0."""
PRODUCT = 4
"""Cycles from the operands to a product: three registers in the DSP block and one behind it."""
SUM = PRODUCT + 3
"""Cycles from a column's operands to T."""
LOW = ENTRY + SUM
"""Cycles from a digit's entry at ``y`` to the product's digit at ``low``."""
STREAMS_MIN = 4
"""Fewest streams: the next iteration needs T of the next column."""
TOTAL = DIGIT + 4
"""Bits of T."""


CARRIED = {
    "x": HIGHEST, "y": HIGHEST, "first": 1, "clear": 1, "last": 1, "xy": HIGHEST + 1, "k": TOTAL - DIGIT, "z": DIGIT,
}  # fmt: skip
"""Bits of each input of a column from the previous column.

If the column's operands are in its registers in cycle 0, the inputs arrive in these cycles: ``y`` in -1; ``first`` in
-2; ``clear`` and ``xy``, the high half of a product, in 3; ``last`` and the carry ``k`` in 6. ``x`` and ``z`` pass two
registers.
"""


class Column(wiring.Component):
    """The column of one digit of the array; ``highest``: of the highest digit.

    Ports ``i_*``: from the previous column, ``o_*``: to the next; ``s``: T of the next column, ``t``: T of this one.
    Cost: 1 DSP block, about 80 LUTs and 260 flip-flops.
    """

    def __init__(self, streams: int, *, highest: bool) -> None:
        self.streams, self.highest = streams, highest
        self.bits = HIGHEST if highest else DIGIT
        self.product = Signal(self.bits + HIGHEST, name="xy", reset_less=True)
        """x_j y_i; PRODUCT cycles after the operands."""
        inputs = {f"i_{name}": In(bits) for name, bits in CARRIED.items()}
        outputs = {f"o_{name}": Out(bits) for name, bits in CARRIED.items()}
        super().__init__(inputs | outputs | {"s": In(TOTAL - 1 if highest else DIGIT), "t": Out(DIGIT)})

    @property
    def latency(self) -> int:
        """Cycles from the operands in their registers to T."""
        return SUM

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        lines = DelayLines(m, self.streams, name="column")
        x = later(m, later(m, self.i_x, "x_half"), "x_in")
        y, first = later(m, self.i_y, "y"), later(m, self.i_first, "first")
        clear, last = later(m, self.i_clear, "clear"), later(m, self.i_last, "last")
        kept = lines.ring(first, x[: self.bits], self.streams, name="x")
        xy = self.product
        m.d.sync += xy.eq(one_tile(m, kept, y, 3, "tile"))
        below = later(m, self.i_xy, "xy_below")
        s = lines.line(self.s, self.streams - 3, name="s_kept", clear=clear)
        one, two = Signal(TOTAL - 1, reset_less=True), Signal(TOTAL, reset_less=True)
        total = Signal(TOTAL, reset_less=True)
        m.d.sync += [one.eq(xy[:DIGIT] + below), two.eq(one + s), total.eq(two + self.i_k)]
        z = Signal(DIGIT, name="z", reset_less=True)
        m.d.sync += z.eq(Mux(last, total, later(m, self.i_z, "z_half")))
        m.d.comb += [
            self.o_x.eq(x), self.o_y.eq(y), self.o_first.eq(first), self.o_clear.eq(clear), self.o_last.eq(last),
            self.o_xy.eq(xy[DIGIT:]), self.o_k.eq(total[DIGIT:]), self.o_z.eq(z), self.t.eq(total),
        ]  # fmt: skip
        return m


class ProductArray(wiring.Component):
    """x y, for x, y < 2^(17 d + 1) with d = ``digits`` >= 2: d digits of 17 bits and one of 18 in the highest place.

    A product starts in some cycle s: digit y_i enters at ``y`` in cycle s + i * ``streams``, x_j at ``x`` in cycle
    s - j; ``first`` is set in cycle s and ``last`` in cycle s + (d - 1) * ``streams``. Digit i < d of the product
    leaves at ``low`` in cycle s + LOW + i * ``streams``, digit d + j at ``high`` in cycle s + ``latency`` + d - 1 - j;
    the highest one may have HIGHEST + 1 bits.
    Latency: (d - 1) streams + d + 11. Cost: d DSP blocks.
    """

    def __init__(self, digits: int, streams: int) -> None:
        if streams < STREAMS_MIN:
            raise ValueError(f"the array needs at least {STREAMS_MIN} streams, not {streams}")
        self.columns = [Column(streams, highest=j == digits - 1) for j in range(digits)]
        self.top = Signal(TOTAL - 1, name="top", reset_less=True)
        """The digit above the last column; valid one cycle after that column's T."""
        super().__init__({
            "x": In(HIGHEST), "y": In(HIGHEST), "first": In(1), "last": In(1),
            "low": Out(DIGIT), "high": Out(TOTAL - 1),
        })  # fmt: skip

    @property
    def latency(self) -> int:
        """Cycles from the start of a product to its first high digit."""
        return self.latency_of(len(self.columns), self.columns[0].streams)

    @staticmethod
    def latency_of(digits: int, streams: int) -> int:
        """Cycles from s to the first high digit."""
        return ENTRY + (digits - 1) * streams + digits + SUM + 1

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        lines = DelayLines(m, ENTRY + SUM, name="flags")
        first = self.columns[0]
        m.d.comb += [
            first.i_x.eq(self.x),
            first.i_y.eq(later(m, later(m, self.y, "y_early"), "y_in")),
            first.i_first.eq(later(m, self.first, "first_in")),
            first.i_clear.eq(lines.line(self.first, ENTRY + PRODUCT - 1, name="clear_in")),
            first.i_last.eq(lines.line(self.last, ENTRY + SUM - 1, name="last_in")),
        ]
        for j, column in enumerate(self.columns):
            m.submodules[f"column{j}"] = column
            if j:
                before = self.columns[j - 1]
                m.d.comb += [getattr(column, f"i_{name}").eq(getattr(before, f"o_{name}")) for name in CARRIED]
                m.d.comb += before.s.eq(column.t)
        top = self.columns[-1]
        high = later(m, later(m, later(m, top.o_xy, "top_xy"), "top_one"), "top_two")
        m.d.sync += self.top.eq(high + top.o_k)
        z = Signal(TOTAL - 1, name="top_z", reset_less=True)
        last = later(m, top.o_last, "top_last")
        m.d.sync += z.eq(Mux(last, self.top, later(m, top.o_z, "top_z_half")))
        m.d.comb += [top.s.eq(self.top), self.low.eq(first.t), self.high.eq(z)]
        return m
