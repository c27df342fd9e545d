# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Counters that need few LUTs, because they are not read as numbers, or have time."""

from __future__ import annotations

from functools import cache
from itertools import combinations, count

from amaranth.hdl import Cat, Module, Mux, Signal, Value


@cache
def _taps(bits: int) -> tuple[int, ...]:
    """Bits below the highest one whose sum with it, modulo 2, feeds a shift register that repeats after 2^bits - 1."""
    for number in count():
        for taps in combinations(range(bits - 1), number):
            state, steps = 1, 0
            while steps == 0 or state != 1:
                fed = sum(state >> tap & 1 for tap in (*taps, bits - 1)) % 2
                state, steps = (state << 1 | fed) % (1 << bits), steps + 1
            if steps == (1 << bits) - 1:
                return taps
    raise AssertionError


def following(place: Signal) -> Value:
    """The place after this one, of at least two bits, in an order in which all 2^n of them have their turn: for
    pointers of a ring, whose order does not matter.

    Source: a linear shift register of greatest length with the state 0 put in (N. G. de Bruijn: A combinatorial
    problem, 1946). Cost: the LUTs of one bit, a comparison and an XOR; the other bits only move.
    """
    lower = place[:-1]
    fed = Cat(place[-1], lower == 0, *(place[tap] for tap in _taps(len(place)))).xor()
    return Cat(fed, lower)


class SerialCounter:
    """``value``, of ``bits`` (a power of two), grows by 1 after a cycle with ``count``, which must be low while it is
    ``busy``, the ``bits`` cycles behind it: the next number is made bit by bit in a register of its own.

    Cost on ECP5: 9 LUTs and 71 registers for 32 bits.
    """

    def __init__(self, m: Module, bits: int, name: str) -> None:
        if bits.bit_count() != 1 or bits < 4:
            raise ValueError(f"a serial counter has 4, 8, 16, ... bits, not {bits}")
        self.value, self.count = Signal(bits, name=name), Signal(name=f"{name}_count")
        self.busy, coming = Signal(name=f"{name}_busy"), Signal(bits, name=f"{name}_coming", init=1)
        carry, place = Signal(name=f"{name}_carry"), Signal(bits.bit_length() - 1, name=f"{name}_place")
        with m.If(self.count):
            m.d.sync += [self.value.eq(coming), self.busy.eq(1)]
        m.d.sync += carry.eq(Mux(self.busy, carry & coming[0], 1))
        with m.If(self.busy):
            m.d.sync += [coming.eq(Cat(coming[1:], coming[0] ^ carry)), place.eq(following(place))]
            with m.If(following(place) == 0):
                m.d.sync += self.busy.eq(0)
