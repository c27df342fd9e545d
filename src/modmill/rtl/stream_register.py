# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A register in a stream: no path goes through it, neither forwards nor back, and it passes a word every cycle."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class StreamRegister(wiring.Component):
    """Words of ``word`` bits from i to o. Latency: one cycle. Cost: two registers of a word and a multiplexer."""

    def __init__(self, word: int) -> None:
        super().__init__({
            "i_valid": In(1), "i_ready": Out(1, init=1), "i_data": In(word),
            "o_valid": Out(1), "o_ready": In(1), "o_data": Out(word),
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        spare = Signal(len(self.i_data), reset_less=True)  # the word that came while the one before stayed
        leaves = ~self.o_valid | self.o_ready
        with m.If(self.i_ready):
            m.d.sync += spare.eq(self.i_data)
        with m.If(leaves):
            m.d.sync += [
                self.o_valid.eq(self.i_valid | ~self.i_ready), self.o_data.eq(Mux(self.i_ready, self.i_data, spare)),
                self.i_ready.eq(1),
            ]  # fmt: skip
        with m.Elif(self.i_valid):
            m.d.sync += self.i_ready.eq(0)
        return m
