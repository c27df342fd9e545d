# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Drives the streams of a toy component in Amaranth's simulator."""

import random
from dataclasses import dataclass, field

from components import run_bench


@dataclass
class Trace:
    """Cycles, counted from reset, in which payloads were taken, and the payloads that came out."""

    taken: list[tuple[int, str]] = field(default_factory=list)
    valid: list[int] = field(default_factory=list)
    given: list[int] = field(default_factory=list)
    out: list[tuple[int, ...]] = field(default_factory=list)
    most_inside: int = 0


def drive(dut, offers, *, out, want, stall=0.0, gap=0.0, alone=False, limit=20_000, seed=1):
    """Offer ``offers``, (stream, {payload: value}), one after another; collect ``want`` payloads of stream ``o``.

    ``out``: names of the payload's ports. ``stall`` and ``gap``: probabilities per cycle of a consumer or a producer
    that pauses. ``alone``: an offer waits until all that went in has come out.
    """
    trace = Trace()
    rnd = random.Random(seed)

    async def bench(ctx):
        waiting = list(offers)
        streams = {stream for stream, _ in offers}
        offered = None
        seen = False
        for cycle in range(limit):
            inside = sum(stream == "i" for _, stream in trace.taken) - len(trace.out)
            if offered is None and waiting and rnd.random() >= gap and not (alone and inside):
                offered = waiting.pop(0)
            for stream in streams:
                ctx.set(getattr(dut, f"{stream}_valid"), offered is not None and offered[0] == stream)
            for name, value in (offered[1] if offered else {}).items():
                ctx.set(getattr(dut, name), value)
            ctx.set(dut.o_ready, rnd.random() >= stall)
            if offered and ctx.get(getattr(dut, f"{offered[0]}_ready")):
                trace.taken.append((cycle, offered[0]))
                offered = None
            if ctx.get(dut.o_valid):
                if not seen:
                    trace.valid.append(cycle)
                seen = True
                if ctx.get(dut.o_ready):
                    trace.given.append(cycle)
                    trace.out.append(tuple(ctx.get(getattr(dut, name)) for name in out))
                    seen = False
                    if len(trace.out) == want:
                        return
            trace.most_inside = max(trace.most_inside, inside)
            await ctx.tick()
        raise AssertionError(f"{len(trace.out)} of {want} payloads after {limit} cycles")

    run_bench(dut, bench)
    return trace
