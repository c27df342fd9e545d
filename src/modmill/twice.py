# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The plain product by a Montgomery multiplier: the same multiplier multiplies a second time, by factor^-2 mod p.

The multiplier computes t = a b f with f = R^-1 (mod p). The second product is t f^-2 f = a b (mod p), and f^-2 is R^2.
The two products of one operand pair enter the multiplier in fixed cycles of a period of two intervals: a and b in
cycle 0, t and f^-2 in the cycle of `Plan.second`. So the latency is the same whether the multiplier is idle or full.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import fifo

from modmill.contract import Contract, Load, Timing
from modmill.interface import Multiplier


@dataclass(frozen=True)
class Plan:
    """When the second product enters, from the timing of the multiplier.

    ``interval``, ``latency``, ``lead``: of the multiplier (see `Multiplier`). All results are in cycles after the
    acceptance of a and b.
    """

    interval: int
    latency: int
    lead: int = 0

    @property
    def period(self) -> int:
        """Cycles between operand pairs."""
        return 2 * self.interval

    @property
    def second(self) -> int:
        """Cycle in which t is accepted as an operand: t is in a register one cycle after it is valid, and it must be
        there ``lead`` cycles before."""
        held = self.latency + 1 + self.lead
        return held + (self.interval - held) % self.period

    @property
    def waits(self) -> bool:
        """Whether the next t arrives before this one is accepted, so that two registers hold them."""
        return self.second > self.latency + self.period

    @property
    def timing(self) -> Timing:
        """Timing of the plain product; its result passes a queue."""
        latency = self.second + self.latency + 1
        return Timing(latency, self.period, -(-latency // self.period))


def plain(once: Contract, lead: int) -> Contract:
    """The contract of `Twice` around a multiplier with the contract ``once``, and this ``lead``."""
    plan = Plan(once.timing.interval, once.timing.latency, lead)
    load = once.load
    if load:
        words = (*load.words, *square_words(once))
        load = Load(load.width, words, max(load.cycles, len(words)) + plan.period, radix=0)
    return replace(once, factor=1, io="plain", timing=plan.timing, load=load)


def square(once: Contract) -> int:
    """factor^-2 mod p: R^2 mod p."""
    return pow(once.factor, -2, once.p)


def square_words(once: Contract) -> list[int]:
    """`square` in words of stream k, the least significant first."""
    assert once.load
    width = once.load.width
    return [square(once) >> k & (1 << width) - 1 for k in range(0, once.operand.width, width)]


class Twice(Multiplier):
    """The plain form of a Montgomery multiplier with binary operands.

    Operands are accepted every second interval of the multiplier. If the modulus is loaded, the words of `square_words`
    follow those of the multiplier on stream k. Cost beyond the multiplier: one or two registers for t, a choice between
    two operands, a queue for ``in_flight + 1`` results, and a register for f^-2 if it is loaded.
    """

    def __init__(self, once: Multiplier, contract: Contract) -> None:
        """``contract``: that of ``once``."""
        self._once, self._contract = once, contract
        self._plan = Plan(contract.timing.interval, contract.timing.latency, once.lead)
        if self._plan.interval % once.period:
            raise ValueError(f"an interval of {self._plan.interval} cycles is no multiple of {once.period}")
        self.kept = once.kept
        width = contract.operand.width
        super().__init__(
            width, width, width, period=once.period, lead=once.lead, k=contract.load.width if contract.load else 0,
            alarm=once.alarm,
        )  # fmt: skip

    @property
    def timing(self) -> Timing:
        return self._plan.timing

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        plan, once = self._plan, self._once
        m.submodules.multiplier = once
        if self.alarm:
            m.d.comb += self.o_alarm.eq(once.o_alarm)
        places = plan.timing.in_flight + 1
        room = Signal(range(places + 1), init=places)
        taken = self.o_valid & self.o_ready

        # the cycle of the period; it starts with the first operands after a reset
        accept = self.i_valid & self.i_ready
        started, running = Signal(), Signal()
        cycle = Signal(range(plan.period))
        m.d.comb += running.eq(started | accept)
        m.d.sync += started.eq(running)
        with m.If(running):
            m.d.sync += cycle.eq(Mux(cycle == plan.period - 1, 0, cycle + 1))

        def during(first: int, last: int) -> Value:
            """Whether the cycle is from ``first`` to ``last``, modulo the period."""
            return Cat(*(cycle == c % plan.period for c in range(first, last + 1))).any()

        constant, allowed = self._loaded(m, room == places)
        first = (~started | during(-plan.lead, 0)) & (room != 0) & allowed
        second = Signal()  # a register, because it chooses between two operands
        m.d.sync += second.eq(running & during(plan.interval - plan.lead - 1, plan.interval - 1))
        t, held = self._held(m, cycle)
        m.d.comb += [
            once.i_valid.eq(Mux(second, held, self.i_valid & first)),
            once.i_a.eq(Mux(second, t, self.i_a)),
            once.i_b.eq(Mux(second, constant, self.i_b)),
            self.i_ready.eq(once.i_ready & first & ~second),
            once.o_ready.eq(1),
        ]
        m.d.sync += room.eq(room - accept + taken)

        m.submodules.queue = queue = fifo.SyncFIFO(width=len(self.o_r), depth=places)
        m.d.comb += [
            queue.w_data.eq(once.o_r),
            queue.w_en.eq(once.o_valid & (cycle == (plan.interval + plan.latency) % plan.period)),
            self.o_r.eq(queue.r_data), self.o_valid.eq(queue.r_rdy), queue.r_en.eq(self.o_ready),
        ]  # fmt: skip
        return m

    def _held(self, m: Module, cycle: Signal) -> tuple[Value, Value]:
        """t while it is an operand, and whether it is one."""
        plan, once = self._plan, self._once
        arrived = Signal(len(once.o_r), name="arrived", reset_less=True)
        waiting = Signal(name="waiting")
        leaves = plan.interval - plan.lead - 1 if plan.waits else plan.interval
        with m.If(cycle == leaves % plan.period):
            m.d.sync += waiting.eq(0)
        with m.If(once.o_valid & (cycle == plan.latency % plan.period)):
            m.d.sync += [arrived.eq(once.o_r), waiting.eq(1)]
        if not plan.waits:
            return arrived, waiting
        t = Signal(len(once.o_r), name="t", reset_less=True)
        held = Signal(name="held")
        with m.If(cycle == leaves % plan.period):
            m.d.sync += [t.eq(arrived), held.eq(waiting)]
        return t, held

    def _loaded(self, m: Module, empty: Value) -> tuple[Value, Value]:
        """f^-2, and whether operands may be accepted. ``empty``: no product is in the core."""
        once, load, width = self._once, self._contract.load, len(self.i_b)
        if load is None:
            return Const(square(self._contract), width), Const(1, 1)
        words = len(load.words)
        more = len(square_words(self._contract))
        place = Signal(range(words + more), name="word")
        complete = Signal()
        register = Signal(more * load.width, name="square", reset_less=True)
        inner = place < words
        m.d.comb += [
            once.k_m.eq(self.k_m), once.k_valid.eq(self.k_valid & empty & inner),
            self.k_ready.eq(empty & (once.k_ready | ~inner)),
        ]  # fmt: skip
        with m.If(self.k_valid & self.k_ready):
            last = place == words + more - 1
            m.d.sync += [place.eq(Mux(last, 0, place + 1)), complete.eq(last)]
            with m.If(~inner):
                m.d.sync += register.eq(Cat(register[load.width :], self.k_m))
        return register[:width], complete & ~self.k_valid
