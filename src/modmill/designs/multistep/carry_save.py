# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Carry-save addition of a number times a bit."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class CarrySaveAdder(wiring.Component):
    """sum + 2 carry = s + c + ``on`` a, for numbers of ``width`` bits; no carry propagates.

    A core should keep this submodule through synthesis (``Multiplier.kept``): when a chain of them is flattened,
    synthesis restructures it for depth with wide LUTs, and it takes four times the area.
    Combinational. Cost: 2 LUTs of four inputs for each bit.
    """

    def __init__(self, width: int) -> None:
        super().__init__(
            {
                "s": In(width), "c": In(width), "a": In(width), "on": In(1), "sum": Out(width), "carry": Out(width),
            }
        )  # fmt: skip

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        added = self.a & self.on.replicate(len(self.a))
        m.d.comb += [
            self.sum.eq(self.s ^ self.c ^ added),
            self.carry.eq((self.s & self.c) | (self.s & added) | (self.c & added)),
        ]
        return m
