# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Delay lines: registers if they are short, else distributed RAM with a register behind it."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib.memory import Memory

from modmill.rtl.free_running import free_running

SHORT = 4
"""Shortest delay line, in cycles, that is a RAM and a register."""


def later(m: Module, value: Value, name: str) -> Signal:
    """``value`` one cycle later, in a register without reset."""
    out = Signal(len(value), name=name, reset_less=True)
    m.d.sync += out.eq(value)
    return out


class DelayLines:
    """Delay lines of at most ``longest`` cycles that share a free-running counter.

    A line of n cycles is a RAM and a register. The RAM is written at the counter's address and read n - 1 addresses
    before it. Only the difference of the two addresses matters, so the counter needs no reset. No register here has
    one: the output of the first n cycles is undefined.

    Cost per bit: n flip-flops below SHORT cycles, else a flip-flop and the RAM: on ECP5 one DPR16X4 for four bits and
    16 cycles.
    """

    def __init__(self, m: Module, longest: int, *, name: str = "delay") -> None:
        self._m, self._name = m, name
        self._bits = max(1, (longest - 2).bit_length())
        self._depth = 1 << self._bits
        self._places: dict[int, Signal] = {}
        self._counter: Signal | None = None

    def line(self, value: Value, cycles: int, *, name: str, clear: Value | None = None) -> Value:
        """``value`` delayed by ``cycles``, at least 1 with ``clear``; zero in the cycle after ``clear``."""
        if cycles == 0 and clear is None:
            return value
        out = later(self._m, self.straight(value, cycles - 1, name=name), name)
        if clear is not None:
            with self._m.If(clear):
                self._m.d.sync += out.eq(0)
        return out

    def straight(self, value: Value, cycles: int, *, name: str) -> Value:
        """``value`` delayed by ``cycles``: in registers below SHORT - 1 cycles, else directly from a RAM."""
        if cycles >= SHORT - 1:
            return self._stored(value, self._place(cycles), name)
        for k in range(cycles):
            value = later(self._m, value, f"{name}_{k}")
        return value

    def either(self, value: Value, cycles: tuple[int, int], second: Value, *, name: str) -> Value:
        """``value`` delayed by cycles[0], or by cycles[1] in the cycle after ``second``.

        One RAM, with a register before its read address and none behind it.
        """
        one, two = (self._place(count - 1) for count in cycles)
        return self._stored(value, later(self._m, Mux(second, two, one), f"{name}_place"), name)

    def ring(
        self, first: Value, value: Value, cycles: int, *, name: str, write: Value | None = None, steers: bool = False
    ) -> Signal:
        """A register that takes ``value`` if ``first`` is set, else its own value of ``cycles`` cycles ago.

        ``write`` circulates instead of the register's value if it is given. ``steers``: the register controls
        something, so it has an initial value in simulation.
        """
        bits = len(value)
        out = free_running(bits, name=name) if steers else Signal(bits, name=name, reset_less=True)
        earlier = self.straight(out if write is None else write, cycles - 1, name=name)
        self._m.d.sync += out.eq(Mux(first, value, earlier))
        return out

    def _place(self, cycles: int) -> Signal:
        """Address at which the RAMs hold the value of ``cycles`` cycles ago; for 0, the write address."""
        if not 0 <= cycles <= self._depth:
            raise ValueError(f"a delay of {cycles} cycles does not fit a memory of {self._depth} words")
        if self._counter is None:
            self._counter = free_running(self._bits, name=f"{self._name}_counter")
            self._m.d.sync += self._counter.eq(self._counter + 1)
        if cycles == 0:
            return self._counter
        if cycles not in self._places:
            self._places[cycles] = free_running(self._bits, name=f"{self._name}_place{cycles}")
            self._m.d.sync += self._places[cycles].eq(self._counter + (1 - cycles) % self._depth)
        return self._places[cycles]

    def _stored(self, value: Value, place: Value, name: str) -> Value:
        """The word at ``place`` of a RAM that stores ``value`` in every cycle."""
        assert self._counter is not None
        memory = Memory(shape=len(value), depth=self._depth, init=[])
        self._m.submodules[f"{name}_ram"] = memory
        write, read = memory.write_port(), memory.read_port(domain="comb")
        self._m.d.comb += [
            write.addr.eq(self._counter), write.data.eq(value), write.en.eq(1), read.addr.eq(place),
        ]  # fmt: skip
        return read.data
