# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Several equal multipliers with one port that take pairs of operands in turn.

Each multiplier accepts a pair every ``interval`` cycles at a fixed phase; together they accept a pair every
interval / lanes cycles. Lane k leaves reset k interval / lanes cycles after lane 0, so all its events are that much
later. A pair waits one interval in registers of its lane, because the multipliers scan their ports. Results leave in
the order of the pairs.
"""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Array, Cat, Const, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import fifo

from modmill.contract import Timing, UnsupportedError
from modmill.interface import Multiplier
from modmill.rtl.digit_serial import DigitSerial
from modmill.rtl.free_running import INITIAL


def timing(lane: Timing, lanes: int) -> Timing:
    """Timing of ``lanes`` lanes with timing ``lane`` each. Raises UnsupportedError unless the interval is a multiple of
    ``lanes``."""
    if lanes < 1 or lane.interval % lanes:
        raise UnsupportedError(f"the interval of {lane.interval} cycles is not a multiple of {lanes} lanes")
    if lanes == 1:
        return lane
    latency, interval = lane.latency + lane.interval, lane.interval // lanes
    return Timing(latency, interval, -(-latency // interval))


def starts(lane: int, lanes: int) -> int:
    """The time slot after a reset in which ``lanes`` lanes take their first operands, if one alone takes them in its
    slot ``lane``: before that it permits none, unless this is its first slot; then a pair waits in registers for it."""
    if lanes == 1:
        return lane
    return lanes * lane if lane > 1 else 0


class Lanes(Multiplier):
    """Equal multipliers whose ``period`` is a multiple of their number, with ``lead`` = period - 1.

    Each word of stream k goes to all lanes, while nothing waits and nothing is under way. Latency: that of a lane plus
    its period. Cost in addition to the lanes: two registers of operands for each lane, a multiplexer for the results.
    Raises ValueError if the lanes cannot share the period.
    """

    kept = ("lane",)

    def __init__(self, lanes: Sequence[DigitSerial], room: int) -> None:
        """``room``: most pairs that a lane can have accepted without their results having been taken."""
        first, count = lanes[0], len(lanes)
        if first.period % count or first.lead != first.period - 1:
            raise ValueError(f"{count} lanes do not share a period of {first.period} cycles, lead {first.lead}")
        self._lanes = tuple(lanes)
        self._loaded = "k_valid" in first.signature.members
        self._depth = count * (room + 1)
        super().__init__(
            len(first.i_a), len(first.i_b), len(first.o_r), period=first.period // count,
            k=len(first.k_m) if self._loaded else 0,
        )  # fmt: skip

    @property
    def timing(self) -> Timing:
        return timing(self._lanes[0].timing, len(self._lanes))

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        count, each = len(self._lanes), self.period
        whole = count * each
        # ---- phases: lane k is k * each cycles late, and so is its reset
        delays = Signal((count - 1) * each, name="reset_delay", init=-1, attrs=INITIAL)
        m.d.sync += delays.eq(Cat(Const(0, 1), delays)[: len(delays)])
        phase = Signal(range(whole), name="phase")
        wrap = Signal()
        m.d.sync += [wrap.eq(phase == whole - 2), phase.eq(Mux(wrap, 0, phase + 1))]
        waiting = [Signal(name=f"waiting{k}") for k in range(count)]
        offered = Signal()  # a word of stream k is offered, so no further pair is accepted
        m.d.comb += offered.eq(self.k_valid if self._loaded else 0)

        ready: list[Signal] = []
        for k, lane in enumerate(self._lanes):
            m.submodules[f"lane_{k}"] = ResetInserter(delays[k * each - 1])(lane) if k else lane
            turn = Signal(name=f"turn{k}", init=int(k == 0))
            m.d.sync += turn.eq(phase == (k * each - 1) % whole)
            a, b = (Signal(len(self.i_a), name=f"{name}{k}", reset_less=True) for name in "ab")
            may, permitted = Signal(name=f"may{k}"), Signal(name=f"permitted{k}")
            lane.permitted = permitted
            m.d.comb += may.eq(turn & (~waiting[k] | lane.i_ready) & permitted & ~offered)
            ready.append(may)
            m.d.comb += [lane.i_valid.eq(waiting[k]), lane.i_a.eq(a), lane.i_b.eq(b)]
            with m.If(waiting[k] & lane.i_ready):
                m.d.sync += waiting[k].eq(0)
            with m.If(may & self.i_valid):
                m.d.sync += [waiting[k].eq(1), a.eq(self.i_a), b.eq(self.i_b)]
        m.d.comb += self.i_ready.eq(Cat(ready).any())

        # ---- results, in the order of the pairs; a pair may skip a lane
        m.submodules.order = order = fifo.SyncFIFO(width=max(1, (count - 1).bit_length()), depth=self._depth)
        chosen: Value = Const(0)
        for k in range(count):
            chosen = Mux(ready[k], k, chosen)
        m.d.comb += [order.w_data.eq(chosen), order.w_en.eq(self.i_valid & self.i_ready)]
        outs = Array(lane.o_valid for lane in self._lanes)
        m.d.comb += [
            self.o_valid.eq(order.r_rdy & outs[order.r_data]),
            self.o_r.eq(Array(lane.o_r for lane in self._lanes)[order.r_data]),
            order.r_en.eq(self.o_valid & self.o_ready),
        ]
        for k, lane in enumerate(self._lanes):
            m.d.comb += lane.o_ready.eq(self.o_ready & order.r_rdy & (order.r_data == k))
        if self._loaded:
            self._load(m, Cat(waiting).any())
        return m

    def _load(self, m: Module, waiting: Value) -> None:
        """Pass each word to every lane as soon as the lane accepts it."""
        done = [Signal(name=f"word_taken{k}") for k in range(len(self._lanes))]
        takes = []
        for lane, had in zip(self._lanes, done, strict=True):
            m.d.comb += [lane.k_valid.eq(self.k_valid & ~had & ~waiting), lane.k_m.eq(self.k_m)]
            takes.append(had | (lane.k_valid & lane.k_ready))
        m.d.comb += self.k_ready.eq(Cat(takes).all())
        for had, taken in zip(done, takes, strict=True):
            m.d.sync += had.eq(taken & ~self.k_ready)
