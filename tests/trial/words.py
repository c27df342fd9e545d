# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Case 2: operands that arrive word by word. Adapters from a word stream to the wide ports and back."""

from dataclasses import replace

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.contract import Timing


def count(bits, word):
    return -(-bits // word)


class WordAdapter(wiring.Component):
    """Any multiplier behind 32-bit streams: the words of a, then of b, least significant first, ``last`` with the end.

    A packet may begin only in the cycle from which its operands meet the core's own period, so its latency is one
    number. The core's contract is unchanged; ``contract`` gives it with the timing of the whole.
    """

    def __init__(self, core, word=32):
        self.core, self.word = core, word
        self.each = count(len(core.i_a), word), count(len(core.i_b), word)
        self.incoming, self.outgoing = sum(self.each), count(len(core.o_r), word)
        super().__init__({
            "i_valid": In(1), "i_ready": Out(1), "i_data": In(word), "i_last": In(1),
            "o_valid": Out(1), "o_ready": In(1), "o_data": Out(word), "o_last": Out(1),
        })  # fmt: skip

    def timing(self, core):
        """From the first word in to the first word out, and between first words in."""
        period = self.core.period
        latency = self.incoming + core.latency + 1
        interval = -(-max(self.incoming, core.interval, self.outgoing) // period) * period
        return Timing(latency, interval, -(-latency // interval))

    def contract(self, contract):
        return replace(contract, timing=self.timing(contract.timing))

    def packet(self, a, b):
        whole = a | b << (self.word * self.each[0])
        words = [whole >> (self.word * k) & ((1 << self.word) - 1) for k in range(self.incoming)]
        return [("i", {"i_data": w, "i_last": k == len(words) - 1}) for k, w in enumerate(words)]

    def numbers(self, words):
        """The numbers whose words, one packet after another, left at ``o``."""
        packets = [words[k : k + self.outgoing] for k in range(0, len(words), self.outgoing)]
        return [sum(w << (self.word * k) for k, w in enumerate(packet)) for packet in packets]

    def elaborate(self, _platform):
        m = Module()
        core, word = self.core, self.word
        m.submodules.core = core
        # ---- words in
        held = Signal(word * self.incoming)
        filled = Signal(range(self.incoming + 1))
        full = filled == self.incoming
        start = Signal(init=1)
        if core.period > 1:
            phase = Signal(range(core.period))
            m.d.sync += phase.eq(Mux(phase == core.period - 1, 0, phase + 1))
            m.d.comb += start.eq(phase == -self.incoming % core.period)
        leave = full & core.i_ready
        m.d.comb += [
            core.i_valid.eq(full),
            core.i_a.eq(held),
            core.i_b.eq(held[word * self.each[0] :]),
            self.i_ready.eq(Mux(filled == 0, start, ~full) | (leave & start)),
        ]
        enter = self.i_valid & self.i_ready
        with m.If(enter):
            m.d.sync += held.eq(Cat(held[word:], self.i_data))
        m.d.sync += filled.eq(Mux(leave, 0, filled) + enter)
        # ---- words out
        result = Signal(word * self.outgoing)
        left = Signal(range(self.outgoing + 1))
        m.d.comb += [
            self.o_valid.eq(left != 0), self.o_data.eq(result), self.o_last.eq(left == 1),
            core.o_ready.eq((left == 0) | (self.o_last & self.o_ready)),
        ]  # fmt: skip
        with m.If(core.o_valid & core.o_ready):
            m.d.sync += [result.eq(core.o_r), left.eq(self.outgoing)]
        with m.Elif(self.o_valid & self.o_ready):
            m.d.sync += [result.eq(result >> word), left.eq(left - 1)]
        return m
