# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Montgomery reduction of a number that is longer than the modulus, digit by digit, in a chain of cells.

A cell divides V by 2^k modulo M: q = V M' mod 2^k with M' = -M^-1 mod 2^k, V <- (V + q M) / 2^k. The digits of V pass
it, the lowest first, one in each cycle. So e cells turn V into V 2^(-k e) (mod M), below V / 2^(k e) + M.

    cycle 0        digit 0 of V at ``v``, with ``first``; digit j in cycle j
    cycle 4        q
    cycle 7 + j    product of q and digit j of M
    cycle 8 + j    digit j of V + q M; that of j = 0 is zero, and digit 1 is digit 0 of the result
"""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.rtl.delay import later
from modmill.rtl.product import one_tile

CELL_CYCLES = 9
"""Cycles from digit 0 of V to digit 0 of the result."""
_TILE = 3


class Cell(wiring.Component):
    """One division by 2^k. M, of ``count`` digits, is at port ``m``, and M' at ``inverse``.

    A number may follow the one before after as many cycles as it has digits, zeros above it included.
    Cost: two DSP blocks, an adder of 2 k bits, a choice of the digit of M, and nine registers of a digit.
    """

    def __init__(self, k: int, count: int) -> None:
        self._count = count
        super().__init__({
            "first": In(1), "v": In(k), "m": In(k * count), "inverse": In(k), "r_first": Out(1), "r": Out(k),
        })  # fmt: skip

    @property
    def latency(self) -> int:
        """Cycles from digit 0 of V to digit 0 of the result."""
        return CELL_CYCLES

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        k, count = len(self.v), self._count
        ages = Signal(CELL_CYCLES, name="ages")  # bit j: digit 0 came j + 1 cycles ago
        m.d.sync += ages.eq(Cat(self.first, ages))
        q = Signal(k, name="q", reset_less=True)
        quotient = one_tile(m, self.v, self.inverse, _TILE, "quotient")
        with m.If(ages[_TILE - 1]):
            m.d.sync += q.eq(quotient)
        place = Signal(range(count + 1), name="place", init=count)
        with m.If(ages[_TILE - 1]):
            m.d.sync += place.eq(0)
        with m.Elif(place != count):
            m.d.sync += place.eq(place + 1)
        digit = Array([*(self.m.word_select(j, k) for j in range(count)), Const(0, k)])[place]
        product = one_tile(m, q, digit, _TILE, "product")
        v: Value = self.v
        for j in range(2 * _TILE + 1):
            v = later(m, v, f"v{j + 1}")
        carry, total = Signal(k, name="carry", reset_less=True), Signal(2 * k, name="total")
        m.d.comb += [total.eq(product + v + Mux(ages[2 * _TILE], 0, carry)), self.r_first.eq(ages[-1])]
        m.d.sync += [self.r.eq(total), carry.eq(total >> k)]
        return m
