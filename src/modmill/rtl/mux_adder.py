# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Adders that choose one of their operands."""

from __future__ import annotations

from amaranth.hdl import Instance, Module, Mux, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class MuxAdder(wiring.Component):
    """total = a + (b if choose else c) modulo 2^width, without a register; with ``inverts`` a + ~b in place of a + b.

    In Verilog it is an instance of module mux_add_<width>, or mux_sub_<width> if it inverts; the module is in the same
    file, and flows replace it by cells that choose and add at once. On ECP5 they cost one LUT for a bit, where a choice
    before an adder takes two.
    """

    def __init__(self, width: int, *, inverts: bool = False) -> None:
        self.inverts = inverts
        super().__init__({
            "choose": In(1), "a": In(width), "b": In(width), "c": In(width), "total": Out(width),
        })  # fmt: skip

    @property
    def latency(self) -> int:
        return 0

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if platform == "verilog":
            m.submodules.adder = Instance(
                f"mux_{'sub' if self.inverts else 'add'}_{len(self.total)}",
                i_choose=self.choose, i_a=self.a, i_b=self.b, i_c=self.c, o_total=self.total,
            )  # fmt: skip
            return m
        m.d.comb += self.total.eq(self.a + Mux(self.choose, ~self.b if self.inverts else self.b, self.c))
        return m


def chosen_sum(
    m: Module, a: Value, choose: Value, b: Value, c: Value, width: int, *, number: int, inverts: bool = False
) -> Value:
    """a + (b if choose else c) modulo 2^width; ``inverts``: a + ~b in place of a + b. ``number``: of the adder in
    ``m``."""
    m.submodules[f"mux_adder_{number}"] = adder = MuxAdder(width, inverts=inverts)
    m.d.comb += [adder.choose.eq(choose), adder.a.eq(a), adder.b.eq(b), adder.c.eq(c)]
    return adder.total
