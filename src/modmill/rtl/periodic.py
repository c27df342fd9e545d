# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The multiplier interface around a machine that runs a periodic schedule and never stalls.

Operands are accepted in one phase of the period if there is room for their result. Results wait in a queue until they
are taken. So the machine needs no enable, and its timing depends only on acceptance.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import fifo

from modmill.interface import Multiplier


class Phase:
    """A counter of the cycles of a period, ``signal``; it runs ``ahead`` cycles ahead of the machine.

    Cost: a counter, and a flip-flop for each strobe.
    """

    def __init__(self, m: Module, interval: int, ahead: int = 0) -> None:
        self._m, self._interval, self._ahead = m, interval, ahead
        self.signal = phase = Signal(range(max(2, interval)), name="phase", init=ahead)
        wrap = Signal(name="wrap", init=int(0 < ahead == interval - 1))
        m.d.sync += [wrap.eq(phase == interval - 2), phase.eq(Mux(wrap, 0, phase + 1))]

    def strobe(self, name: str, *cycles: int) -> Signal:
        """A registered signal that is high in these ``cycles`` of the machine, modulo the interval."""
        hit = [c % self._interval for c in cycles]
        q = Signal(name=name, init=int(0 in hit))
        self._m.d.sync += q.eq(Cat(*(self.signal == (c - 1 + self._ahead) % self._interval for c in hit)).any())
        return q


class Period(Phase):
    """Phase counter, tokens of the products under way, and the output queue of a periodic machine.

    ``arrival``: cycle after acceptance in which the result is written to the queue; it is valid one cycle later.
    `finish` must be called once. Cost: a counter, a token for each product under way, and a queue of ``in_flight + 1``
    results.
    """

    def __init__(self, m: Module, core: Multiplier, interval: int, arrival: int) -> None:
        super().__init__(m, interval)
        self._core = core
        self._depth = -(-(arrival + 1) // interval) + 1
        room = Signal(range(self._depth + 1), init=self._depth)
        ready = Signal()
        accept = core.i_valid & ready
        m.d.sync += [
            room.eq(room - accept + (core.o_valid & core.o_ready)),
            ready.eq((self.signal == interval - 1) & (room != 0)),
        ]
        m.d.comb += core.i_ready.eq(ready)
        tokens = Signal(arrival // interval + 1)
        with m.If(self.strobe("accepting", 0)):
            m.d.sync += tokens.eq(Cat(accept, tokens))
        held = accept if arrival == 0 else tokens[arrival // interval - (arrival % interval == 0)]
        self._push = self.strobe("arriving", arrival) & held

    def finish(self, result: Value) -> None:
        """Connect ``result``, which must be valid in the arrival cycle, to the queue, and the queue to stream ``o``."""
        _queue(self._m, self._core, result, self._push, self._depth)


def _queue(m: Module, core: Multiplier, result: Value, push: Value, depth: int) -> None:
    """A queue of ``result``, which enters in the cycles of ``push``, and stream ``o`` of the core behind it."""
    m.submodules.queue = queue = fifo.SyncFIFO(width=len(core.o_r), depth=depth)
    m.d.comb += [
        queue.w_data.eq(result), queue.w_en.eq(push),
        core.o_r.eq(queue.r_data), core.o_valid.eq(queue.r_rdy), queue.r_en.eq(core.o_ready),
    ]  # fmt: skip


def every_cycle(m: Module, core: Multiplier, result: Value, arrival: int) -> None:
    """The same interface around a pipeline that accepts operands in every cycle.

    ``result`` must be valid ``arrival`` cycles after acceptance; it is queued then and valid at the port a cycle later.
    Cost: a counter, a token and a queue entry for each cycle of the pipeline, and two more queue entries.
    """
    depth = arrival + 2
    room = Signal(range(depth + 1), init=depth)
    valid = Signal(arrival)
    accept = core.i_valid & core.i_ready
    m.d.sync += [room.eq(room - accept + (core.o_valid & core.o_ready)), valid.eq(Cat(accept, valid))]
    m.d.comb += core.i_ready.eq(room != 0)
    _queue(m, core, result, valid[-1] if arrival else accept, depth)
