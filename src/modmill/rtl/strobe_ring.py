# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Strobes of a long interval, from registers in a ring in place of a counter."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Signal, Value

from modmill.rtl.free_running import INITIAL


class StrobeRing:
    """Registered strobes of the cycles of an interval. ``first``: high in cycle 0, and after a reset.

    A register for each cycle is high in this cycle. So no net reaches all strobes, as the bits of a counter would, and
    a strobe of many consecutive cycles needs two of these registers. Cost: ``interval`` registers, and one for each
    strobe of more than one cycle.
    """

    def __init__(self, m: Module, interval: int, first: Signal) -> None:
        self._m, self._here = m, [first]
        self._strobes: dict[tuple[int, ...], Signal] = {}
        for k in range(1, interval):
            self._here.append(Signal(name=f"cycle{k}", attrs=INITIAL))
            m.d.sync += self._here[k].eq(self._here[k - 1])

    def any(self, *cycles: int) -> Value:
        """High in these ``cycles``, modulo the interval."""
        interval = len(self._here)
        chosen = sorted({cycle % interval for cycle in cycles})
        if len(chosen) == interval:
            return Const(1, 1)
        if len(chosen) == 1:
            return self._here[chosen[0]]
        if (found := self._strobes.get(tuple(chosen))) is None:
            found = self._strobes[tuple(chosen)] = Signal(
                name=f"strobe{len(self._strobes)}", init=int(chosen[0] == 0), attrs=INITIAL
            )
            begins = [(cycle - 1) % interval for cycle in chosen if (cycle - 1) % interval not in chosen]
            ends = [cycle for cycle in chosen if (cycle + 1) % interval not in chosen]
            begin = Cat(*(self._here[cycle] for cycle in begins)).any()
            end = Cat(*(self._here[cycle] for cycle in ends)).any()
            self._m.d.sync += found.eq(begin if len(begins) == len(chosen) else begin | (found & ~end))
        return found
