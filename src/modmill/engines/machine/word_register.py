# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A wide register that shifts by words and is loaded in parallel, in pieces with their own control registers.

At 2,000 bits a single control net takes most of a cycle to reach all bits. So each piece of ``PIECE`` words has its own
registers for the two controls, and the piece acts one cycle later.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

PIECE = 2
"""Words of a piece."""


class _Piece(wiring.Component):
    """Some words. One cycle after ``shift`` they move down by one, and ``enter`` becomes the highest; one cycle after
    ``load`` they become ``whole``.

    Latency: 2 cycles from ``shift`` or ``load`` to ``number``.
    """

    def __init__(self, words: int, word: int) -> None:
        self._word = word
        width = words * word
        super().__init__({
            "shift": In(1), "load": In(1), "enter": In(word), "whole": In(width), "number": Out(width),
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        acts, load = Signal(name="acts_here", reset_less=True), Signal(name="load_here", reset_less=True)
        number = Signal(len(self.number), name="words", reset_less=True)
        m.d.sync += [acts.eq(self.shift | self.load), load.eq(self.load)]
        with m.If(acts):
            m.d.sync += number.eq(Mux(load, self.whole, Cat(number[self._word :], self.enter)))
        m.d.comb += self.number.eq(number)
        return m


class WordRegister(wiring.Component):
    """A number of ``words`` words of ``word`` bits, the lowest first.

    ``acts`` is high one cycle after ``shift``; in that cycle the number moves down by one word and ``enter`` becomes
    its highest word. One cycle after ``load`` the number becomes ``whole``. ``quiet``: no shift or load is pending.
    ``kept`` names the pieces: synthesis must not merge their control registers.
    Cost: a register and a LUT for each bit, three registers for each piece. Latency: 2 cycles from ``shift`` or
    ``load`` to ``number``.
    """

    kept = ("piece",)

    def __init__(self, words: int, word: int) -> None:
        self._words, self._word = words, word
        width = words * word
        super().__init__({
            "shift": In(1), "load": In(1), "enter": In(word), "whole": In(width), "number": Out(width),
            "acts": Out(1), "quiet": Out(1),
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        word = self._word
        busy = Signal()
        m.d.sync += [self.acts.eq(self.shift), busy.eq(self.shift | self.load)]
        m.d.comb += self.quiet.eq(~(busy | self.shift | self.load))
        above: Value = self.enter
        for first in reversed(range(0, self._words, PIECE)):
            count = min(PIECE, self._words - first)
            part = slice(first * word, (first + count) * word)
            m.submodules[f"piece_{first // PIECE}"] = piece = _Piece(count, word)
            m.d.comb += [
                piece.shift.eq(self.shift), piece.load.eq(self.load), piece.enter.eq(above),
                piece.whole.eq(self.whole[part]), self.number[part].eq(piece.number),
            ]  # fmt: skip
            above = piece.number[:word]
        return m
