# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Case 1: a modulus loaded at run time. Bit-serial Montgomery multiplication with a third stream ``k``.

Step:  s <- (s + a_i b + u m) / 2,  u = (s + a_i b) mod 2,  for i = 0 ... n - 1,  n = bits + 2, R = 2^n
Range: a < alpha m and b < beta m give s < (alpha beta m / R + 1) m after the last step; R > 4 m closes the loop at 2
"""

from dataclasses import dataclass
from fractions import Fraction

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.contract import Binary, Contract, Timing, UnsupportedError
from modmill.interface import multiplier_ports
from modmill.schedule import Schedule, Step


@dataclass(frozen=True)
class Growing(Contract):
    """A contract whose result depends on its operands: below (gain alpha beta + 1) p, as for every Montgomery unit."""

    gain: Fraction = Fraction(0)

    def product(self, alpha, beta):
        super().product(alpha, beta)
        return self.gain * alpha * beta + 1


def schedule(bits):
    n = bits + 2
    return Schedule((Step("accept", "ab", 0, 1), Step("s", "adder", 1, n, ("accept",))), interval=n + 1)


def contract(bits, p):
    """The contract while ``p`` is loaded. Sizes are multiples of the loaded modulus; timing is the same for all."""
    if p % 2 == 0 or not 3 <= p < 1 << bits:
        raise UnsupportedError(f"the modulus must be odd, at least 3 and below 2^{bits}, got {p}")
    r = 1 << (bits + 2)
    plan = schedule(bits)
    return Growing(
        p=p, factor=pow(r, -1, p), io="native", operand=Binary(bits + 1), result=Binary(bits + 1),
        operand_bound=Fraction(2), product_bound=Fraction(4), result_bound=Fraction(2),
        timing=Timing(plan.latency, plan.interval, plan.in_flight), gain=Fraction(p, r),
    )  # fmt: skip


class Loadable(wiring.Component):
    """The multiplier interface and the stream ``k``, which is a barrier.

    While k is offered no operands are accepted; k is accepted when nothing is under way. So every result belongs to
    the modulus that was loaded last when its operands were accepted, and no result ever waits for a load.
    """

    def __init__(self, bits):
        self.bits = bits
        width = bits + 1
        modulus = {"k_valid": In(1), "k_ready": Out(1), "k_m": In(bits)}
        super().__init__({**multiplier_ports(width, width, width), **modulus})

    def elaborate(self, _platform):
        m = Module()
        plan = schedule(self.bits)
        modulus = Signal(self.bits)
        loaded = Signal()
        cycle = Signal(range(plan.latency + 1))
        a, b = Signal(self.bits + 2), Signal(self.bits + 1)
        s = Signal(self.bits + 2)
        t, even = Signal(self.bits + 3), Signal(self.bits + 3)
        idle = (cycle == 0) & ~self.o_valid
        m.d.comb += [
            self.k_ready.eq(idle),
            self.i_ready.eq((cycle == 0) & (~self.o_valid | self.o_ready) & loaded & ~self.k_valid),
            t.eq(s + Mux(a[0], b, 0)),
            even.eq(t + Mux(t[0], modulus, 0)),
            self.o_r.eq(s),
        ]
        with m.If(self.k_valid & self.k_ready):
            m.d.sync += [modulus.eq(self.k_m), loaded.eq(1)]
        with m.If(self.o_ready):
            m.d.sync += self.o_valid.eq(0)
        with m.If(self.i_valid & self.i_ready):
            m.d.sync += [a.eq(self.i_a), b.eq(self.i_b), s.eq(0), cycle.eq(1)]
        with m.Elif(cycle != 0):
            m.d.sync += [s.eq(even >> 1), a.eq(a >> 1), cycle.eq(cycle + 1)]
            with m.If(cycle == plan["s"].end - 1):
                m.d.sync += [cycle.eq(0), self.o_valid.eq(1)]
        return m
