# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The full product on two levels with its halves of words one after another, as a quotient needs them.

    cycle `ordered` + j    half j of the product, which has 16; from half 10 on in a second stream, because the next
                           product follows after ten cycles
    cycle `summed` + j     with what the bits above the words add to half 8 + j, without a carry

A word waits in a memory until its halves are due: at most five cycles, where `TwoLevelProduct` keeps the lower words
for the higher ones.
"""

from __future__ import annotations

from collections.abc import Callable

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.memory import Memory

from modmill.designs.karatsuba.top_bits import TopBits, latency
from modmill.designs.karatsuba.two_level_product import BUBBLE, COLUMNS, COUNT, INTERVAL, WORD, TwoLevelWords
from modmill.rtl.delay import later
from modmill.rtl.free_running import free_running

HALVES = 4 * COUNT
"""Halves of the words of a product."""
ZEROS = 2
"""Halves behind the last: a quotient and its result have as many digits more."""
STREAMS = ("low", "high")
"""Halves j < INTERVAL, and the others."""


class OrderedProduct(TwoLevelWords):
    """``low``: half j < 10 in cycle ``start`` + `summed` + j; ``high``: half j >= 10 and `ZEROS` zeros. ``halves``: the
    same without what the bits above the words add, in cycle ``start`` + `ordered` + j. The numbers are below 2^(16 b),
    but for the bits ``above``. Cost beyond the words: two memories of eight words; `TopBits` and two adders of half a
    word.
    """

    def __init__(
        self, m: Module, x: Value, y: Value, digit: int, at: Callable[..., Value], start: int, above: int
    ) -> None:
        super().__init__(m, x, y, digit, at, start, above)
        self.low, self.high = self.halves = self._halves()
        if above:
            self.low, self.high = self._with_above()

    def _halves(self) -> list[Value]:
        m, half, due = self._m, 2 * self._digit, ordered()
        write = free_running(range(2 * COUNT), name="word_written")
        m.d.sync += write.eq(Mux(self._at(WORD + COLUMNS[0] - 1), 0, Mux(self._at(WORD + BUBBLE), write, write + 1)))
        found: list[Value] = []
        for name, first in zip(STREAMS, (0, INTERVAL), strict=True):
            read = free_running(range(HALVES), name=f"{name}_read")
            m.d.sync += read.eq(Mux(self._at(due - 2), first, read + 1))
            memory = Memory(shape=2 * half, depth=2 * COUNT, init=[])
            m.submodules[f"{name}_order"] = memory
            into, out = memory.write_port(), memory.read_port(domain="comb")
            m.d.comb += [
                into.addr.eq(write), into.data.eq(Cat(*self.word)[: 2 * half]), into.en.eq(1),
                out.addr.eq(read[1:]),
            ]  # fmt: skip
            digit = Signal(half, name=f"{name}_half", reset_less=True)
            m.d.sync += digit.eq(Mux(read[0], out.data[half:], out.data[:half]))
            if name == "high":
                with m.If(self._at(*(due - 1 + j for j in range(HALVES, HALVES + ZEROS)))):
                    m.d.sync += digit.eq(0)
            found.append(digit)
        return found

    def _with_above(self) -> tuple[Value, Value]:
        """Both streams with e, a cycle later: its halves 0 and 1 belong to the first one."""
        m, taken = self._m, ordered() + HALVES // 2
        place = free_running(range(2 * COUNT), name="above_place")
        m.d.sync += place.eq(Mux(self._at(taken - 2), 0, place + 1))
        self.above = TopBits(
            m, self._first, self._tops, 2 * self._digit, COUNT, at=self._at, interval=INTERVAL, taken=taken, place=place
        ).half
        lower, zero = self._at(*range(taken, ordered() + INTERVAL)), Const(0, 1)
        found = []
        for name, half, choices in (("low", self.low, (self.above, zero)), ("high", self.high, (zero, self.above))):
            total = self._chosen(half, lower, *choices, max(len(half), len(self.above)) + 1)
            found.append(later(m, total, f"{name}_with_above"))
        return found[0], found[1]


def ordered() -> int:
    """Cycle of half 0: the lowest word has passed its memory."""
    return WORD + COLUMNS[0] + 2


def summed(above: int) -> int:
    """Cycle of half 0 for operands with ``above`` bits above their words."""
    return ordered() + latency(above)
