# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The last step to a canonical result, digit by digit: v mod M for v < 2 M by one conditional subtraction."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.rtl.delay import later
from modmill.rtl.digits import MEMORY, DigitMemory
from modmill.rtl.free_running import INITIAL, free_running

LEAD = MEMORY + 1
"""Cycles from ``coming`` to the first digit."""


class ConditionalSubtract(wiring.Component):
    """v of ``digits`` digits to v mod M, for v < 2 M; the result leaves least significant digit first.

    v arrives most significant digit first, with ``rising`` least significant digit first. ``coming`` is set LEAD cycles
    before the first digit is at ``digit``; the lowest digit of the result leaves ``latency`` cycles after that first
    digit. v is compared with M while its digits arrive. M is subtracted while the digits are read from a memory.
    ``modulus``: digits of M at configuration, the lowest first; the ports ``w_*`` overwrite them.

    Cost: three DigitMemory, about 7 LUTs for each bit of a digit.
    """

    def __init__(self, bits: int, digits: int, modulus: Sequence[int], *, rising: bool) -> None:
        self.digits, self.modulus, self.rising = digits, tuple(modulus), rising
        place = max(1, (digits - 1).bit_length())
        super().__init__({
            "coming": In(1), "digit": In(bits), "w_digit": In(place), "w_enable": In(1), "w_d": In(bits),
            "out": Out(bits),
        })  # fmt: skip

    @property
    def latency(self) -> int:
        """Cycles from the first digit of v to the lowest digit of the result."""
        return self.latency_of(self.digits)

    @staticmethod
    def latency_of(digits: int) -> int:
        """Cycles from the first digit of v to the lowest digit of the result."""
        return digits + MEMORY + 2

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        digits, bits = self.digits, len(self.digit)
        # bit k: the first digit arrives in LEAD - k cycles
        ages = Signal(LEAD + digits + MEMORY + 2, attrs=INITIAL)
        m.d.comb += ages[0].eq(self.coming)
        m.d.sync += ages[1:].eq(ages)
        compared = DigitMemory(bits, digits, 1, self.modulus)
        place, subtracting = self._compare(m, ages, compared)

        # ---- v through a memory, from which it is read least significant digit first
        values, minus = DigitMemory(bits, digits, 2), DigitMemory(bits, digits, 1, self.modulus)
        turn = free_running(1, name="turn")
        writing = Signal()
        with m.If(ages[LEAD - 1]):
            m.d.sync += [turn.eq(~turn), writing.eq(1)]
        with m.Elif(ages[LEAD + digits - 1]):
            m.d.sync += writing.eq(0)
        read_turn = free_running(1, name="read_turn")
        reading = free_running(range(digits), name="reading")
        m.d.sync += reading.eq(reading + 1)
        with m.If(ages[LEAD + digits - 1]):
            m.d.sync += [reading.eq(0), read_turn.eq(turn)]
        written = place
        for k in range(MEMORY):
            written = later(m, written, f"written{k}")
        m.submodules.compared, m.submodules.values, m.submodules.minus = compared, values, minus
        m.d.comb += [
            compared.r_digit.eq(place), minus.r_digit.eq(reading),
            values.r_digit.eq(reading), values.r_number.eq(read_turn),
            values.w_digit.eq(written), values.w_number.eq(turn), values.w_d.eq(self.digit),
            values.w_enable.eq(writing),
        ]  # fmt: skip
        for memory in (compared, minus):
            m.d.comb += [
                memory.w_digit.eq(self.w_digit),
                memory.w_enable.eq(self.w_enable),
                memory.w_d.eq(self.w_d),
            ]
        taken = later(m, Mux(subtracting, minus.q, 0), "taken")
        difference = Signal(bits + 1, reset_less=True)
        borrow = difference[bits] & ~ages[LEAD + digits + MEMORY + 1]
        m.d.sync += difference.eq(later(m, values.q, "value") - taken - borrow)
        m.d.comb += self.out.eq(difference)
        return m

    def _compare(self, m: Module, ages: Signal, compared: DigitMemory) -> tuple[Signal, Signal]:
        """Place of the arriving digit, and whether v >= M, valid once all digits have arrived."""
        digits = self.digits
        place = free_running(range(digits), name="place")
        m.d.sync += place.eq(place + (1 if self.rising else -1))
        with m.If(self.coming):
            m.d.sync += place.eq(0 if self.rising else digits - 1)
        greater, equal = Signal(reset_less=True), Signal(reset_less=True)
        m.d.sync += [greater.eq(self.digit > compared.q), equal.eq(self.digit == compared.q)]
        above, same = Signal(reset_less=True), Signal(reset_less=True)
        fresh = ages[LEAD + 1]
        if self.rising:
            m.d.sync += above.eq(greater | (equal & (above | fresh)))
            m.d.comb += same.eq(0)
        else:
            m.d.sync += [above.eq(Mux(fresh, greater, above | (same & greater))), same.eq(equal & (same | fresh))]
        reached = later(m, above | same, "reached")
        subtracting = Signal(reset_less=True)
        with m.If(ages[LEAD + digits + 2]):
            m.d.sync += subtracting.eq(reached)
        return place, subtracting
