# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Register through which numbers enter and leave a machine word by word, and in which p is subtracted."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from modmill.engines.machine.layout import words_of
from modmill.engines.machine.word_register import WordRegister
from modmill.rtl.delay import later

ROUND = 4
"""Cycles between shifts of a comparison or subtraction: word at the port, registers for it and the word of p,
difference, shift."""
SHORT = 16
"""Most words of p that one distributed RAM holds. The address of longer ones has a register, for which the cycles
between shifts have room."""


class NumberRegister(wiring.Component):
    """A number of ``words`` words of ``word`` bits, the least significant first.

    ``shift``: shift by one word. The ``i_data`` of that cycle becomes the highest word two cycles later. With
    ``comparing`` the lowest word becomes the highest one instead, so that the number rotates. With ``subtracting`` it
    does so minus its word of p if the last comparison found the number not below p. ``words`` shifts of each, ROUND
    cycles apart, subtract p conditionally. This is repeated with 2^(rounds - 1) p, 2^(rounds - 2) p, ..., p and reduces
    a number below 2^rounds p to [0, p). ``load``: the number becomes ``whole`` three cycles later, as after a shift.
    ``held``: i_data two cycles later. ``modulus``: p, or None if ``m_write`` stores its words.

    Cost: a register and a LUT for each bit, an adder of one word and a memory for the words of p. Latency: 3 cycles
    from ``shift`` or ``load`` to ``number``.
    """

    def __init__(self, words: int, word: int, *, modulus: int | None, rounds: int) -> None:
        self._words, self._word = words, word
        self._modulus, self._rounds = modulus, rounds
        width = words * word
        super().__init__({
            "i_data": In(word), "shift": In(1), "load": In(1), "whole": In(width), "number": Out(width),
            "comparing": In(1), "subtracting": In(1), "held": Out(word),
            "m_write": In(1),
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        word, words = self._word, self._words
        m.submodules.register = register = WordRegister(words, word)
        earlier = Signal(word, reset_less=True)
        entering = Signal(word)
        asked, modes = Signal(2, name="asked"), Signal(2, name="modes")  # mode of the shift that acts now
        held = later(m, earlier, "held_word")
        m.d.sync += [
            register.shift.eq(self.shift), register.load.eq(self.load), earlier.eq(self.i_data),
            asked.eq(Cat(self.comparing, self.subtracting)), modes.eq(asked),
        ]  # fmt: skip
        m.d.comb += [
            self.held.eq(held), entering.eq(held), register.enter.eq(entering), register.whole.eq(self.whole),
            self.number.eq(register.number),
        ]  # fmt: skip
        if not self._rounds:
            return m
        multiples = [(self._modulus or 0) << k for k in reversed(range(self._rounds))]
        init = [value for multiple in multiples for value in words_of(multiple, words, word)]
        depth = words * self._rounds
        m.submodules.modulus = modulus = memory.Memory(shape=word, depth=max(2, depth), init=init)
        if self._modulus is None:
            write, at = modulus.write_port(), Signal(range(max(2, depth)))
            m.d.comb += [write.addr.eq(at), write.data.eq(self.i_data), write.en.eq(self.m_write)]
            with m.If(self.m_write):
                m.d.sync += at.eq(Mux(at == depth - 1, 0, at + 1))
        read = modulus.read_port(domain="comb")
        borrow, small = Signal(name="borrow"), Signal(name="small", reset_less=True)
        turn = Signal(range(max(2, words)))
        comparing, subtracting = modes[0], modes[1]
        # between two shifts: read the word of p, then subtract
        subtrahend = later(m, Mux(self.subtracting & small, 0, read.data), "subtrahend")
        minuend = later(m, register.number[:word], "minuend")
        difference = Signal(word + 1, reset_less=True)
        first = Signal(range(max(2, depth)))
        place = first + turn
        m.d.comb += read.addr.eq(place if words <= SHORT else later(m, place, "modulus_place"))
        m.d.sync += difference.eq(minuend - subtrahend - borrow)
        with m.If(comparing):
            m.d.comb += entering.eq(register.number[:word])
        with m.If(subtracting):
            m.d.comb += entering.eq(difference[:word])
        with m.If(register.acts & modes.any()):
            m.d.sync += [turn.eq(turn + 1), borrow.eq(difference[-1])]
            with m.If(turn == words - 1):
                m.d.sync += [turn.eq(0), borrow.eq(0)]
                with m.If(comparing):
                    m.d.sync += small.eq(difference[-1])
                with m.Else():
                    m.d.sync += first.eq(Mux(first == depth - words, 0, first + words))
        return m
