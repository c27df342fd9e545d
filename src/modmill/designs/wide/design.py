# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Montgomery multiplication with wide multipliers: one for x y, q and q m in turn, or one for each.

Source:  C. J. McIvor, M. McLoone, J. V. McCanny: Hardware Elliptic Curve Cryptographic Processor Over GF(p). IEEE
         Transactions on Circuits and Systems I 53(9), 2006 (256 multipliers); Y. Gong, S. Li: High-throughput FPGA
         implementation of 256-bit Montgomery modular multiplier. ETCS, 2010 (81 multipliers). N. Mulla, A. Kasetwar:
         FPGA Implementation of an Efficient Montgomery Multiplier For Adaptive Filtering Application. IEEE, 2014 (fully
         parallel, 3 clocks).
Formula: T = x y,  q = (T mod R) m' mod R,  m' = -m^-1 mod R,  v = (T + q m) / R
Range:   x, y < m give v < 2 m for R > m, and one subtraction remains. Without it, R > 4 m: operands below 2 m give
         results below 2 m. The low halves of T and q m add up to R, or both are 0: v = T_hi + (q m)_hi + [T_lo > 0].

256 tiles compute all products of sixteen digits of 16 bits; with four levels of Karatsuba's method 81 = 3^4 are enough.
A single pipelined multiplier is used in three cycles of each product, and by other products in the cycles between.
Three multipliers accept operands in every cycle. Without pipelining each of the three products takes one long cycle.

Deviations from the papers, of which we have only the figures: schedule and pipelining are ours; their designs take 32,
15 and 3 cycles for a product.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from modmill.contract import Timing
from modmill.design import Cost, Design, Setting, Source
from modmill.designs.digit_serial import SUBTRACT, BinaryMontgomery, scanned_bits
from modmill.designs.wide.karatsuba import Karatsuba
from modmill.interface import Multiplier
from modmill.rtl.delay import later
from modmill.rtl.periodic import Period, every_cycle
from modmill.rtl.product import BLOCKS
from modmill.schedule import Operations, Schedule

LEVELS_MAX = 9
"""Most levels: enough for a modulus of 8,192 bits."""


@dataclass(frozen=True)
class Params:
    """``count``: 1 or 3 wide multipliers; R = 2^``multiplier.width``."""

    multiplier: Karatsuba
    count: int

    @property
    def product(self) -> int:
        """Cycles of a long product: a register of its operands, and the multiplier."""
        return 1 + self.multiplier.latency

    @property
    def slots(self) -> tuple[int, int, int]:
        """Cycles in which x y, q and q m start."""
        return 1, 1 + self.product, 1 + 2 * self.product

    @property
    def ready(self) -> int:
        """Cycle in which q m is available."""
        return 1 + 3 * self.product

    @property
    def arrival(self) -> int:
        """Cycle in which the result goes to the queue."""
        return self.ready + 3

    @property
    def interval(self) -> int:
        """Fewest cycles between products for which no two slots collide on a multiplier."""
        if self.count == 3:
            return 1
        return next(i for i in range(3, 3 * self.product + 1) if len({s % i for s in self.slots}) == 3)

    @property
    def held(self) -> int:
        """Number of products whose T waits for q m at the same time."""
        return -(-2 * self.product // self.interval)


class Kind(Operations):
    """The operations of the machine."""

    T = "T"
    Q = "q"
    QM = "q m"
    V = "v"
    D = "d"  # v - m, or v if nothing is subtracted
    Z = "z"
    OUT = "out"


class Wide(BinaryMontgomery):
    """Montgomery multiplication with wide multipliers for one modulus."""

    @cached_property
    def params(self) -> Params:
        """The wide multiplier and the number of copies."""
        width = scanned_bits(self.bits, self.settings)
        multiplier = Karatsuba(width, self.settings["levels"], BLOCKS[self.settings["dsp"]], self.settings["pipelined"])
        return Params(multiplier, self.settings["multipliers"])

    @property
    def R(self) -> int:
        return 1 << self.params.multiplier.width

    @property
    def m_prime(self) -> int:
        """-m^-1 mod R."""
        return -pow(self.p, -1, self.R) % self.R

    @property
    def schedule(self) -> Schedule:
        q = self.params
        units = [f"multiplier {i}" for i in (1, 2, 3)] if q.count == 3 else ["multiplier"] * 3
        steps = (
            Kind.T().on(units[0], q.slots[0], q.product, busy=1),
            Kind.Q().on(units[1], q.slots[1], q.product, [Kind.T()], busy=1),
            Kind.QM().on(units[2], q.slots[2], q.product, [Kind.Q()], busy=1),
            Kind.V().on("adder", q.ready, 1, [Kind.T(), Kind.QM()]),
            Kind.D().on("subtractor" if self.subtract else "register", q.ready + 1, 1, [Kind.V()]),
            Kind.Z().on("choice", q.ready + 2, 1, [Kind.V(), Kind.D()] if self.subtract else [Kind.D()]),
            Kind.OUT().on("queue", q.arrival, 1, [Kind.Z()]),
        )
        return Schedule(steps, q.interval)

    @property
    def cost(self) -> Cost:
        """The multipliers' tiles, and no table."""
        return Cost(self.params.count * self.params.multiplier.tiles, 0, 3)

    def trace(self, a: int, b: int) -> Iterator[tuple[str, Any]]:
        R = self.R
        t = a * b
        yield "T", t
        q = (t % R) * self.m_prime % R
        yield "q", q
        yield "q m", q * self.p
        v = (t + q * self.p) // R
        yield "v", v
        yield "d", v - self.p if self.subtract else v
        z = v - self.p if self.subtract and v >= self.p else v
        yield "z", z
        yield "out", z

    def component(self, *, scaled: bool = False) -> Multiplier:
        return Machine(self)

    def facts(self) -> list[tuple[str, str]]:
        k = self.params.multiplier
        return [
            ("multiplier", f"{k.width} x {k.width} bits, split {k.splits} times: {k.tiles} tiles"),
            ("products", f"{3**k.splits} of {k.leaf} x {k.leaf} bits, {k.latency} cycles"),
            *([] if k.pipelined else [("pipelining", "none: a cycle for each of x y, q and q m")]),
            ("R", f"2^{k.width}"),
            ("operands", "below p" if self.subtract else "below 2 p"),
            ("T that wait", f"{self.params.held}"),
        ]


class Machine(Multiplier):
    """One or three long multipliers, pipelined or not; adder, subtractor, queue.

    Operands are accepted every ``interval`` cycles if there is room for the result; the machine never stalls. Timing
    does not depend on values. Cost: the multipliers, about 4 LUTs for each bit, a register for T's upper half for each
    of `Params.held` products, and the queue.
    """

    def __init__(self, fitted: Wide) -> None:
        self._fitted = fitted
        width = fitted.operand_bits
        super().__init__(width, width, width, period=fitted.params.interval)

    @property
    def timing(self) -> Timing:
        return self._fitted.schedule.timing

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        fitted, p = self._fitted, self._fitted.params
        width = p.multiplier.width
        m_prime, modulus = Const(fitted.m_prime, width), Const(fitted.p, width)
        x, y = (Signal(fitted.operand_bits, name=name, reset_less=True) for name in "xy")
        m.d.sync += [x.eq(self.i_a), y.eq(self.i_b)]

        # ---- the products, and registers in which T_hi and [T_lo > 0] wait for q m
        waiting: Value = Const(1, 1)
        if p.count == 3:
            t = self._product(m, x, y, "T")
            q = self._product(m, t[:width], m_prime, "q")
            qm = self._product(m, q[:width], modulus, "qm")
        else:
            period = Period(m, self, p.interval, p.arrival)
            waiting, third = (period.strobe(*slot) for slot in zip(("second", "third"), p.slots[1:], strict=True))
            low = Signal(width, name="low")
            first = Mux(waiting | third, low, x)
            t = q = qm = self._product(m, first, Mux(waiting, m_prime, Mux(third, modulus, y)), "product")
            m.d.comb += low.eq(qm[:width])
        held: Value = Cat(t[:width].any(), t[width:])
        with m.If(waiting):
            for k in range(p.held):
                held = later(m, held, f"T{k}")

        # ---- final addition and subtraction
        v, before = Signal(width + 1, name="v", reset_less=True), Signal(width + 1, name="v_before", reset_less=True)
        m.d.sync += [v.eq(held[1:] + qm[width:] + held[0]), before.eq(v)]
        result: Value = before
        difference: Value = before
        if fitted.subtract:
            d = Signal(width + 2, name="d", reset_less=True)
            m.d.sync += d.eq(v - fitted.p)
            result, difference = Mux(d[-1], before, d), d.as_signed()
        z = Signal(fitted.operand_bits, name="z", reset_less=True)
        m.d.sync += z.eq(result)
        if p.count == 3:
            every_cycle(m, self, z, p.arrival)
        else:
            period.finish(z)
        q_seen = Signal(width, name="q_seen")
        m.d.comb += q_seen.eq(q[:width])
        registers = {
            Kind.T: t, Kind.Q: q_seen, Kind.QM: qm, Kind.V: v, Kind.D: difference, Kind.Z: z, Kind.OUT: self.o_r,
        }  # fmt: skip
        self.probes = [(step.name, registers[step.does.kind], step.end) for step in fitted.schedule.steps]
        return m

    def _product(self, m: Module, a: Value, b: Value, name: str) -> Signal:
        """a * b, with a register of the operands; `Params.product` cycles later."""
        multiplier = self._fitted.params.multiplier
        left, right = (Signal(multiplier.width, name=f"{name}_{side}", reset_less=True) for side in "ab")
        out = Signal(2 * multiplier.width, name=name)
        m.d.sync += [left.eq(a), right.eq(b)]
        m.d.comb += out.eq(multiplier.build(m, left, right, name))
        return out


DESIGNS = (
    Design(
        name="wide", page="wide",
        title="Montgomery multiplication with one or three wide multipliers, by Karatsuba's method",
        source=Source(
            "Y. Gong, S. Li",
            "High-throughput FPGA implementation of 256-bit Montgomery modular multiplier", "ETCS", 2010,
            "81 multipliers, with levels = 0 the 256 of McIvor et al.; [14] and [13] of Zhang and Dong; schedule ours",
        ),
        needs="any odd modulus",
        settings=(
            Setting(
                "levels", int, 4, "levels of Karatsuba's method; 0: all products of digits", least=0, most=LEVELS_MAX,
                depends="halves are split as long as they are wider than a DSP block",
                limits=lambda p, settings: (
                    0, Karatsuba(scanned_bits(p.bit_length(), settings), LEVELS_MAX, BLOCKS[settings["dsp"]]).splits
                ),
                smaller="raise",
            ),
            Setting("multipliers", int, 1, "1: x y, q and q m in turn; 3: one for each, one product per cycle", (1, 3),
                    smaller="lower"),
            Setting("pipelined", bool, True, "registers in and between DSP blocks; false: one long cycle a product"),
            Setting("dsp", str, "18x18", "DSP block for which products are tiled", tuple(BLOCKS)),
            SUBTRACT,
        ),
        solve=lambda p, **settings: Wide(p, settings),
    ),
)  # fmt: skip
