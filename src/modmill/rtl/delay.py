# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Delay lines: registers where they are short, distributed RAM with a register behind it where they are long."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib.memory import Memory

from modmill.rtl.free_running import free_running

SHORT = 4
"""Shortest delay in cycles of which all but the last are a RAM."""


def later(m: Module, value: Value, name: str) -> Signal:
    """``value`` in a register without reset: one cycle later."""
    out = Signal(len(value), name=name, reset_less=True)
    m.d.sync += out.eq(value)
    return out


class DelayLines:
    """Delay lines of one neighbourhood, over one free-running counter.

    A line of n cycles is a RAM that is written at the counter's place and read n - 1 places before it, and a register.
    The counter needs no reset: only the distance of the two places matters. Nothing here has a reset; what comes out
    in the first n cycles is undefined.

    Cost: per bit n flip-flops below SHORT cycles; from there, a flip-flop and the RAM: on ECP5 one DPR16X4 for four
    bits and 16 cycles.
    """

    def __init__(self, m: Module, longest: int, *, name: str = "delay") -> None:
        self._m, self._name = m, name
        self._bits = max(1, (longest - 2).bit_length())
        self._depth = 1 << self._bits
        self._places: dict[int, Signal] = {}
        self._counter: Signal | None = None

    def line(self, value: Value, cycles: int, *, name: str, clear: Value | None = None) -> Value:
        """``value`` of ``cycles`` cycles ago; with ``clear`` in the cycle before, zero. At least 1 cycle with clear."""
        m = self._m
        if cycles == 0 and clear is None:
            return value
        value = self._earlier(value, cycles - 1, name)
        out = later(m, value, name)
        if clear is not None:
            with m.If(clear):
                m.d.sync += out.eq(0)
        return out

    def straight(self, value: Value, cycles: int, *, name: str) -> Value:
        """``value`` of ``cycles`` cycles ago without a register at the end, where the line is not SHORT."""
        return self._earlier(value, cycles, name)

    def either(self, value: Value, cycles: tuple[int, int], second: Value, *, name: str) -> Value:
        """``value`` of the first number of cycles ago, or, a cycle after ``second``, of the second number.

        From one RAM without a register behind, and with one before its address.
        """
        one, two = (self._place(count - 1) for count in cycles)
        return self._stored(value, later(self._m, Mux(second, two, one), f"{name}_place"), name)

    def ring(
        self, first: Value, value: Value, cycles: int, *, name: str, write: Value | None = None, steers: bool = False
    ) -> Signal:
        """A register that takes ``value`` where ``first`` is set, else what was written ``cycles`` cycles ago.

        ``write``: what goes round in place of the register's value. ``steers``: it is more than data, so it starts
        known.
        """
        bits = len(value)
        out = free_running(bits, name=name) if steers else Signal(bits, name=name, reset_less=True)
        self._m.d.sync += out.eq(Mux(first, value, self._earlier(out if write is None else write, cycles - 1, name)))
        return out

    def _earlier(self, value: Value, cycles: int, name: str) -> Value:
        """The value of so many cycles ago, in registers if SHORT, else straight from a RAM."""
        if cycles >= SHORT - 1:
            return self._read(value, cycles, name)
        for k in range(cycles):
            value = later(self._m, value, f"{name}_{k}")
        return value

    def _read(self, value: Value, cycles: int, name: str) -> Value:
        """The value of so many cycles ago, without a register behind the RAM."""
        return self._stored(value, self._place(cycles), name)

    def _place(self, cycles: int) -> Signal:
        """Where a RAM has what was written so many cycles ago; 0: where it is written."""
        if not 0 <= cycles <= self._depth:
            raise ValueError(f"a delay of {cycles} cycles does not fit a memory of {self._depth} words")
        m = self._m
        if self._counter is None:
            self._counter = free_running(self._bits, name=f"{self._name}_counter")
            m.d.sync += self._counter.eq(self._counter + 1)
        if cycles == 0:
            return self._counter
        if cycles not in self._places:
            place = free_running(self._bits, name=f"{self._name}_place{cycles}")
            m.d.sync += place.eq(self._counter + (1 - cycles) % self._depth)
            self._places[cycles] = place
        return self._places[cycles]

    def _stored(self, value: Value, place: Value, name: str) -> Value:
        """What a RAM, which keeps ``value`` of every cycle, has at a place."""
        assert self._counter is not None
        memory = Memory(shape=len(value), depth=self._depth, init=[])
        self._m.submodules[f"{name}_ram"] = memory
        write, read = memory.write_port(), memory.read_port(domain="comb")
        self._m.d.comb += [
            write.addr.eq(self._counter), write.data.eq(value), write.en.eq(1), read.addr.eq(place),
        ]  # fmt: skip
        return read.data
