# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The Montgomery array with fewer columns than digits: each column serves one digit of every group.

Group g of an iteration has digits g c + 1 ... g c + c on the c columns. It passes them ``streams`` cycles after group
g - 1, so the outputs of the last column return to the first column in time. Each iteration uses the head once.
"""

from __future__ import annotations

from itertools import pairwise

from amaranth.hdl import Cat, Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from modmill.designs.montgomery_array.array import DIGIT, PRODUCT, STREAMS_MIN, SUM, Column, Head, carried, latency
from modmill.rtl.delay import DelayLines, later

BACK = ("y", "q", "xy", "qm", "k")
"""Outputs of the last column that return to the first."""


class FoldedArray(wiring.Component):
    """As MontgomeryArray, with c = ``columns`` columns for c f >= d digits above the lowest, f = ``groups`` >= 2.

    A product starts in some cycle s and occupies each column for one cycle in every K = ``streams`` > c cycles. Digit
    y_i enters at ``y`` in cycle s + i f K. Digit x_0 enters at ``x`` in cycle s, and digit g c + p, p = 1 ... c, in
    cycle s + g K - p; it is zero above x. In the cycles s + i f K + g K, ``group`` is g, ``first`` is set for i = 0,
    ``last`` for i = d - 1, and ``load`` with ``first`` if x is M. Digit g c + p - 1 of S leaves at ``z`` in cycle
    s + `latency` + g K + c - p.

    f K must be at least STREAMS_MIN. Latency: (d - 1) f K + c + 20. Cost: 2 c + 3 DSP blocks. Raises ValueError for
    sizes outside these ranges.
    """

    def __init__(self, digits: int, columns: int, groups: int, streams: int, modulus: int | None = None) -> None:
        turn = groups * streams
        if columns * groups < digits or groups < 2:
            raise ValueError(f"{groups} groups of {columns} columns do not hold {digits} digits")
        if streams <= columns or turn < STREAMS_MIN:
            raise ValueError(
                f"the array needs more than {columns} streams and at least {STREAMS_MIN} / {groups}, not {streams}"
            )
        self.groups, self.wait, self._digits = groups, streams - columns, digits
        mask = (1 << DIGIT) - 1
        parts = None if modulus is None else [modulus >> DIGIT * j & mask for j in range(columns * groups + 1)]
        self.head = Head(turn, None if parts is None else parts[0], groups)
        self.stages = [
            Column(
                turn, None if parts is None else parts[p::columns][:groups], groups,
                wait=turn - streams + columns - 3 if p == columns else None, edge=p == columns,
            )
            for p in range(1, columns + 1)
        ]  # fmt: skip
        super().__init__(self.head.inputs | {"z": Out(DIGIT)})

    @property
    def latency(self) -> int:
        """Cycles from the start of a product to the first digit of its result."""
        return latency(self._digits, self.head.turn, len(self.stages))

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        m.submodules.head = head = self.head
        m.d.comb += [getattr(head, name).eq(getattr(self, name)) for name in head.inputs]
        first, last = self.stages[0], self.stages[-1]
        names = carried(self.groups)
        chain: list[Head | Column] = [head, *self.stages]
        for j, (before, column) in enumerate(pairwise(chain), 1):
            m.submodules[f"column{j}"] = column
            passed = [name for name in names if before is not head or name not in BACK]
            m.d.comb += [getattr(column, f"i_{name}").eq(getattr(before, f"o_{name}")) for name in passed]
            m.d.comb += before.s.eq(column.t)
        m.d.comb += [last.s.eq(first.t), self.z.eq(last.o_z)]
        # back to the first column, except when the head begins an iteration
        lines = DelayLines(m, max(self.wait, PRODUCT + SUM), name="back")
        handed = Cat(*(getattr(last, f"o_{name}") for name in BACK))
        returned = lines.line(handed, self.wait, name="returned")
        inner = later(m, head.o_group != 0, "inner")
        at = {"y": inner, "q": inner}
        at |= dict.fromkeys(("xy", "qm"), lines.line(inner, PRODUCT, name="inner_product"))
        at["k"] = lines.line(inner, SUM, name="inner_carry")
        start = 0
        for name in BACK:
            value = returned[start : start + names[name]]
            m.d.comb += getattr(first, f"i_{name}").eq(Mux(at[name], value, getattr(head, f"o_{name}")))
            start += names[name]
        return m
