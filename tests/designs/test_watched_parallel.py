# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Every operation of a chart, watched in the RTL: its result stands in its register at the step's end, and not before.

For parallel machines and arrays, whose control is a counter: what `explain` and the site draw is what the machine does.
"""

import random
from dataclasses import replace

import pytest
from amaranth.sim import Simulator
from bench import operands

from modmill.designs import design

P40 = 2**40 - 87
CASES = [
    *(("radix64k-mul", P40, {"r": r, "redundant": redundant}) for r in (4, 8) for redundant in (True, False)),
    ("radix64k-mul", P40, {"r": 16, "loadable": True}),
    *(("radix64k-ram", P40, {"r": 8, "redundant": redundant}) for redundant in (True, False)),
    ("radix64k-ram", P40, {"r": 10, "lookups": 2, "operand": 5}),
    *(("radix64k-table", P40, {"r": r, "redundant": r == 4}) for r in (4, 8)),
    ("radix64k-table", 97, {"r": 4, "loadable": True}),
    *(("pseudo-mersenne", p, {}) for p in (2**61 - 1, 2**127 - 1, 2**64 - 2**32 + 1)),
    ("pseudo-mersenne", 2**85 - 2**30 + 3, {"streams": 7}),
    *(("montgomery-array", P40, {"loadable": loadable}) for loadable in (True, False)),
    ("montgomery-array", 2**100 - 15, {"streams": 19, "loadable": False}),
    *(("montgomery-array", 2**80 - 65, {"columns": columns}) for columns in (1, 2, 3, 4)),
    *(("wide", P40, {"subtract": subtract, "multipliers": k}) for subtract in (True, False) for k in (1, 3)),
    ("solinas", 2**127 - 1, {}),
    *(("solinas", 2**256 - 2**224 + 2**192 + 2**96 - 1, {"rows": rows}) for rows in (1, 2)),
    ("solinas", 2**224 - 2**96 + 1, {"interval": 26}),
    ("wide", 2**61 - 1, {"levels": 0, "dsp": "25x18"}),
]


def watch(core, pairs, load, seed=1):
    """{probe: {cycle: its values for all pairs}} from two cycles before a probe's own to one after it.

    Products run one after another. The ports carry noise, but not in the cycles in which the operands must stand there.
    """
    rnd = random.Random(seed)
    found = {name: {} for name, _, _ in core.probes}
    ports = [port for port in (core.i_a, getattr(core, "i_b", None)) if port is not None]

    async def bench(ctx):
        cycle = 0

        async def tick():
            nonlocal cycle
            await ctx.tick()
            cycle += 1

        def offer(values, valid):
            ctx.set(core.i_valid, valid)
            for port, value in zip(ports, values, strict=False):
                ctx.set(port, value)

        def noise():
            offer([rnd.getrandbits(len(port)) for port in ports], 0)

        ctx.set(core.o_ready, 1)
        for word in load.words if load else ():
            ctx.set(core.k_m, word)
            ctx.set(core.k_valid, 1)
            while not ctx.get(core.k_ready):
                await tick()
            await tick()
            ctx.set(core.k_valid, 0)
        for pair in pairs:
            noise()
            while not ctx.get(core.i_ready) if core.lead == 0 else (cycle + core.lead) % core.period:
                await tick()
                noise()
            offer(pair, 1)
            while not ctx.get(core.i_ready):
                await tick()
            for now in range(max(at for _, _, at in core.probes) + 2):
                for name, signal, at in core.probes:
                    if at - 2 <= now <= at + 1:
                        value = [ctx.get(s) for s in signal] if isinstance(signal, list) else ctx.get(signal)
                        found.setdefault(name, {}).setdefault(now, []).append(value)
                await tick()
                noise()

    simulator = Simulator(core)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    return found


def misplaced(steps, traces, seen):
    """Names of the steps whose result is not in its register at the step's end, or is there a cycle before."""
    out = []
    for step in steps:
        expected = [trace[step.name] for trace in traces]
        at = seen[step.name]
        if at.get(step.end) != expected or at.get(step.end - 1) == expected:
            out.append(step.name)
    return out


@pytest.mark.parametrize(("name", "p", "settings"), CASES)
def test_every_operation_is_done_in_its_cycles(name, p, settings):
    """And planted: any one operation of the chart, moved by a cycle."""
    fitted = design(name).fit(p, **settings)
    contract, steps = fitted.contract("native"), fitted.schedule.steps
    pairs = operands(contract, 3)
    traces = [dict(fitted.trace(a, b)) for a, b in pairs]
    assert {step.name for step in steps} <= traces[0].keys()
    seen = watch(fitted.component(), pairs, contract.load)
    assert misplaced(steps, traces, seen) == []
    for step in steps:
        for moved in (-1, 1):
            assert misplaced([replace(step, start=step.start + moved)], traces, seen) == [step.name]
