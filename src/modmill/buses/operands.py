# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A multiplier as an engine with streams of words.

0, words of stream k     loads the modulus: each word of k in whole words of the bus (only if it is loaded)
1, a, b                  a product; each operand in whole words, the least significant one first
at ``o``                 the words of the result
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.buses.device import WORD
from modmill.contract import ALARM
from modmill.rtl.one_hot import OneHot


def words(bits: int) -> int:
    """Words of the bus for a number of this width."""
    return -(-bits // WORD)


class OperandWords(wiring.Component):
    """Collect operands and words of stream k from words, and give the result in words.

    ``a``, ``b``, ``r``, ``k``: widths of i_a, i_b (0: none), o_r, k_m (0: none). ``loads``: words of stream k for a
    modulus. ``alarm``: with `ALARM`. The operands shift into one register, which costs no LUT. Each word of the result
    has a register that is held in reset unless it is next: so an OR of all words selects it.

    Cost on ECP5: about 3 LUTs for each bit of a word of the bus and 8 words of a result. Latency: 4 cycles a word.
    """

    def __init__(self, a: int, b: int, r: int, k: int, loads: int, *, alarm: bool = False) -> None:
        self._a, self._b, self._r, self._k, self._loads, self._alarm = a, b, r, k, loads, alarm
        super().__init__({
            "i_valid": In(1), "i_ready": Out(1), "i_data": In(WORD),
            "o_valid": Out(1), "o_ready": In(1), "o_data": Out(WORD), "o_last": Out(1),
            "core_i_valid": Out(1), "core_i_ready": In(1), "core_i_a": Out(a), **({"core_i_b": Out(b)} if b else {}),
            "core_o_valid": In(1), "core_o_ready": Out(1), "core_o_r": In(r),
            **({"core_k_valid": Out(1), "core_k_ready": In(1), "core_k_m": Out(k)} if k else {}),
            **({ALARM: Out(1), f"core_{ALARM}": In(1)} if alarm else {}),
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a, b, k = words(self._a), words(self._b), words(self._k)
        kept = Signal(WORD * max(a + b, k), name="operands", reset_less=True)
        loading = Signal(name="loading")
        left = Signal(range(-1, max(a + b, k) - 1), name="words_left")  # but one; below 0: the next one is the last one
        keys = Signal(range(max(1, self._loads)), name="keys_left")
        low = len(kept) - WORD * (a + b)
        m.d.comb += self.core_i_a.eq(kept[low : low + self._a])
        if b:
            m.d.comb += self.core_i_b.eq(kept[low + WORD * a : low + WORD * a + self._b])
        if k:
            m.d.comb += self.core_k_m.eq(kept[-WORD * k :][: self._k])
        if self._alarm:
            m.d.comb += getattr(self, ALARM).eq(getattr(self, f"core_{ALARM}"))
        with OneHot(m, "operands") as machine:
            with machine.state("COMMAND"):
                m.d.comb += self.i_ready.eq(1)
                m.d.sync += [left.eq(a + b - 2), keys.eq(max(1, self._loads) - 1), loading.eq(0)]
                with m.If(self.i_valid):
                    machine.next("WORDS")
                    if k:
                        with m.If(~self.i_data[0]):
                            m.d.sync += [left.eq(k - 2), loading.eq(1)]
            with machine.state("WORDS"):
                m.d.comb += self.i_ready.eq(1)
                with m.If(self.i_valid):
                    m.d.sync += [kept.eq(Cat(kept[WORD:], self.i_data)), left.eq(left - 1)]
                    with m.If(left < 0):
                        machine.next("GIVE")
            with machine.state("GIVE"):
                m.d.comb += self.core_i_valid.eq(~loading)
                with m.If(~loading & self.core_i_ready):
                    machine.next("RESULT")
                if k:
                    m.d.comb += self.core_k_valid.eq(loading)
                    with m.If(loading & self.core_k_ready):
                        m.d.sync += [keys.eq(keys - 1), left.eq(k - 2)]
                        machine.next("WORDS")
                        with m.If(keys == 0):
                            machine.next("COMMAND")
            self._result(m, machine)
        return m

    def _result(self, m: Module, machine: OneHot) -> None:
        """Give the words of the result, one after another."""
        count = words(self._r)
        at = Signal(count, name="at", init=1)  # one-hot
        selected = Signal(name="selected")
        parts: list[Value] = []
        for n in range(count):
            part = self.core_o_r[WORD * n : WORD * (n + 1)]
            kept = Signal(len(part), name=f"part_{n}", reset_less=True)
            m.d.sync += kept.eq(Mux(at[n] & selected, part, 0))
            parts.append(kept)
        word = Signal(WORD, name="word", reset_less=True)
        m.d.sync += word.eq(reduce(or_, parts))
        m.d.comb += [self.o_data.eq(word), self.o_last.eq(at[-1])]
        with machine.state("RESULT"):
            m.d.sync += selected.eq(self.core_o_valid)
            with m.If(self.core_o_valid & selected):
                machine.next("SELECTED")
        with machine.state("SELECTED"):
            machine.next("WORD")
        with machine.state("WORD"):
            m.d.comb += self.o_valid.eq(1)
            with m.If(self.o_ready):
                m.d.sync += [at.eq(Cat(at[-1:], at[:-1])), selected.eq(0)]
                machine.next("RESULT")
                with m.If(at[-1]):
                    machine.next("TAKE")
        with machine.state("TAKE"):
            m.d.comb += self.core_o_ready.eq(1)
            machine.next("COMMAND")
