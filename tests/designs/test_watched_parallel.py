# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Every operation of a chart, watched in the RTL: its result stands in its register at the step's end, and not before.

For parallel machines, arrays and rings of rowers: what `explain` and the site draw is what the machine does.
"""

import random
from dataclasses import replace
from itertools import pairwise

import pytest
from bench import operands

from components import run_bench
from marks import long
from modmill.designs import design

P40 = 2**40 - 87
CASES = [
    *(("radix64k-mul", P40, {"r": r, "redundant": redundant}) for r in (4, 8) for redundant in (True, False)),
    ("radix64k-mul", P40, {"r": 16, "loadable": True}),
    *(("radix64k-ram", P40, {"r": 8, "redundant": redundant}) for redundant in (True, False)),
    ("radix64k-ram", P40, {"r": 10, "lookups": 2, "operand": 5}),
    *(("radix64k-table", P40, {"r": r, "redundant": r == 4}) for r in (4, 8)),
    ("radix64k-table", 97, {"r": 4, "loadable": True}),
    *(
        (f"radix64k-{kind}", P40, {"r": 8, "feedback": True, "redundant": redundant})
        for kind in ("mul", "ram", "table")
        for redundant in (True, False)
    ),
    ("radix64k-mul", P40, {"r": 8, "redundant": False, "tile": 11, "chain": 9}),
    ("radix64k-ram", P40, {"r": 10, "feedback": True, "lookups": 2, "loadable": True}),
    *(("wide", P40, {"subtract": subtract, "multipliers": k}) for subtract in (True, False) for k in (1, 3)),
    ("wide", 2**61 - 1, {"levels": 0, "dsp": "25x18"}),
    *(("wide", P40, {"pipelined": False, "multipliers": k}) for k in (1, 3)),
    ("parallel", P40, {}),
    ("parallel", 2**107 - 2**60 + 9, {"fold": "tables", "index": 5}),
    ("parallel", 2**89 - 1, {}),
    *(("parallel", P40, {"stages": n, "fold": fold, "digit": 9}) for n in (1, 2, 4) for fold in ("tables", "shifts")),
    ("solinas", 2**127 - 1, {}),
    *(("solinas", 2**256 - 2**224 + 2**192 + 2**96 - 1, {"rows": rows}) for rows in (1, 2)),
    ("solinas", 2**224 - 2**96 + 1, {"interval": 26}),
    *(("pseudo-mersenne", p, {}) for p in (2**61 - 1, 2**127 - 1, 2**64 - 2**32 + 1)),
    ("pseudo-mersenne", 2**85 - 2**30 + 3, {"streams": 7}),
    *(("karatsuba", p, {}) for p in (2**85 - 19, 2**107 - 1, 2**137 - 2**60 + 1, 2**87 - 67, 2**190 - 5)),
    *(("karatsuba-solinas", p, {}) for p in (2**80 - 2**60 + 1, 2**88 - 2**60 - 1, 2**224 - 2**96 + 1)),
    ("karatsuba-solinas", 2**256 - 2**224 + 2**192 + 2**96 - 1, {}),
    *(("karatsuba-montgomery", p, {}) for p in (2**80 - 65, 13**19, 2**138 - 105)),
    *(("karatsuba-two-level", p, {}) for p in (2**61 - 1, 2**100 - 15)),
    *(("karatsuba-two-level-solinas", p, {}) for p in (2**64 - 2**32 + 1, 2**256 - 2**224 + 2**192 + 2**96 - 1)),
    ("karatsuba", 2**127 - 1, {"above": 9}),
    *(("karatsuba-montgomery", p, {"loadable": True}) for p in (2**80 - 65, 13**23)),
    ("karatsuba-montgomery", 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551, {}),
    *(("montgomery-array", P40, {"loadable": loadable}) for loadable in (True, False)),
    ("montgomery-array", 2**100 - 15, {"streams": 19, "loadable": False}),
    *(("montgomery-array", 2**80 - 65, {"columns": columns}) for columns in (1, 2, 3, 4)),
    *(("channel-multiply", p, {"registers": k}) for p in (2**17 - 145, 2**66 - 513) for k in (1, 2, 3)),
    *(("channel-reduce", 2**17 - 145, {"registers": k}) for k in (1, 2)),
    *((name, P40, settings) for name in ("kbe", "hbe") for settings in ({"w": 12}, {"interval": 24, "loadable": True})),
    *((name, 2**61 - 1, {"rowers": 2}) for name in ("kbe", "hbe")),
    *((name, P40, {"w": 12}) for name in ("sq-rns", "dq-rns", "shenoy-kumaresan")),
    *(("hbe", P40, {"w": 12, "columns": columns}) for columns in (3, 4)),
    *(("channel-multiply", 2**28 - 95, {"blocks": 2, "cycles": k, "dsp": "25x18"}) for k in (1, 2, 3)),
    *(("channel-reduce", 2**17 - 145, {"blocks": 1, "registers": k}) for k in (1, 3)),
    ("kbe-extension", 8191, {"n": 6, "w": 18}),
    ("kbe-extension", 8191, {"n": 6, "w": 18, "rowers": 3, "reduce": "dsp"}),
    ("hbe-extension", 8191, {"n": 6, "w": 12, "rowers": 0}),
    ("hbe-extension", 8191, {"n": 6, "w": 12, "rowers": 3, "columns": 3}),
    *(long("hbe-extension", 8191, {"n": 8, "w": 17, "rowers": 4, "columns": c, "reduce": "dsp"}) for c in (2, 4)),
    ("kbe-reduction", 29, {"w": 12}),
    ("hbe-reduction", 29, {"w": 12, "reduce": "dsp"}),
    long("hbe-reduction", 2**61 - 1, {"rowers": 2, "cox": False}),
    long("kbe-reduction", 2**61 - 1, {"rowers": 2}),
    long("kbe-extension", 8191, {"n": 8, "w": 12, "exact": False}),
    ("hbe-extension", 8191, {"n": 6, "w": 12}),
    *(long("hbe-extension", 8191, {"n": n, "w": 20, "exact": n < 12}) for n in (8, 10, 12)),
]

ALONE, PACKED = 2, 4
"""Products that run one after another, and then as close as the core takes them."""


def watch(core, pairs, load):
    """(cycles of acceptance, {probe: {cycle: its values for all pairs}} from two cycles before a probe's own to one
    after it). Each of the first ALONE pairs is offered when all before it are through, the others at once; the ports
    carry noise in every cycle in which operands need not stand there."""
    rnd = random.Random(1)
    ports = [port for port in (core.i_a, getattr(core, "i_b", None)) if port is not None]
    accepted, found = [], {}

    def value(ctx, register):
        return [ctx.get(one) for one in register] if isinstance(register, list) else ctx.get(register)

    async def bench(ctx):
        ctx.set(core.o_ready, 1)
        cycle = 0
        for word in load.words if load else ():
            ctx.set(core.k_m, word)
            ctx.set(core.k_valid, 1)
            taken = False
            while not taken:
                taken = ctx.get(core.k_ready)
                await ctx.tick()
                cycle += 1
            ctx.set(core.k_valid, 0)
        due, offered, past = {}, False, []
        for name, register, at in core.probes:
            for when in range(at - 2, at + 2):
                due.setdefault(when, []).append((name, register))
        before = [(when, *probe) for when, probes in due.items() if when < 0 for probe in probes]
        while len(accepted) < len(pairs) or cycle <= accepted[-1] + max(due):
            past.append({name: value(ctx, register) for _, name, register in before})
            alone = len(accepted) <= ALONE
            if len(accepted) < len(pairs) and not (alone and accepted and cycle <= accepted[-1] + max(due)):
                begins = (cycle + core.lead) % core.period == 0 if core.lead else ctx.get(core.i_ready)
                offered = offered or ((begins or not alone) and len(past) > -min(due))
            ctx.set(core.i_valid, offered)
            for port, number in zip(ports, pairs[len(accepted)] if offered else (None, None), strict=False):
                ctx.set(port, number if offered else rnd.getrandbits(len(port)))
            if offered and ctx.get(core.i_ready):
                accepted.append(cycle)
                offered = False
                for when, name, _ in before:
                    found.setdefault(name, {}).setdefault(when, []).append(past[when - 1][name])
            for start in accepted:
                for name, register in due.get(cycle - start, ()):
                    found.setdefault(name, {}).setdefault(cycle - start, []).append(value(ctx, register))
            await ctx.tick()
            cycle += 1

    run_bench(core, bench)
    return accepted, found


def misplaced(steps, traces, seen):
    """Names of the steps whose result is not in its register at the step's end for each product, or is there a cycle
    before for each."""
    out = []
    for step in steps:
        expected, at = [trace[step.name] for trace in traces], seen[step.name]
        if at.get(step.end) != expected or at.get(step.end - 1) == expected:
            out.append(step.name)
    return out


@pytest.mark.parametrize(("name", "p", "settings"), CASES)
def test_every_operation_is_done_in_its_cycles(name, p, settings):
    """And planted: any one operation of the chart, moved by a cycle."""
    fitted = design(name).fit(p, **settings)
    contract, steps = fitted.contract("native"), fitted.schedule.steps
    pairs = operands(contract, ALONE + PACKED)
    traces = [dict(fitted.trace(a, b)) for a, b in pairs]
    accepted, seen = watch(fitted.component(), pairs, contract.load)
    assert {after - before for before, after in pairwise(accepted[ALONE:])} == {fitted.schedule.interval}
    assert misplaced(steps, traces, seen) == []
    for step in steps:
        for moved in (-1, 1):
            assert misplaced([replace(step, start=step.start + moved)], traces, seen) == [step.name]
