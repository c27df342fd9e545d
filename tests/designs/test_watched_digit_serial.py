# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Machines whose control is a counter: each operation's result stands in its register in the cycle of the chart."""

from copy import copy
from dataclasses import replace
from itertools import pairwise

import pytest
from bench import operands

from components import run_bench
from modmill.designs import design

P = 0x1A35  # no two digits in a row are the same
CASES = [
    *(("orup", 97, {"digit": 5, "delay": d}) for d in range(5)),
    ("orup", P, {"digit": 4, "delay": 2, "loadable": True}),
    ("mcivor", P, {"word": 4}),
    ("mcivor", P, {"word": 14, "subtract": False, "loadable": True}),
    ("mcivor", P, {"word": 3, "subtract": False}),
    ("iddmm", 0xA35, {"digit": 4}),  # a top digit of S
    ("iddmm", P, {"digit": 3, "stages": 2, "loadable": True}),
    ("iddmm", 29, {"digit": 6, "stages": 3}),  # one digit
    ("tenca-koc", P, {"w": 3, "pes": 2}),  # a pass takes e + 1 cycles
    ("tenca-koc", P, {"w": 5, "pes": 4, "subtract": False}),  # a pass takes 2 P + 1 cycles
    ("tenca-koc", 29, {"w": 2, "pes": 5, "loadable": True}),  # one pass
    ("multistep", P, {"s": 3}),
    ("multistep", P, {"s": 4, "word": 3, "subtract": False}),  # the addition takes longer than the loop
    ("multistep", P, {"s": 13, "word": 14, "loadable": True}),  # one clock, one word
]
PRODUCTS = 12


def record(core, pairs, load, alone):
    """(cycles in which the pairs are accepted, results, values of all probed registers in each cycle). ``alone``: a
    pair is offered when the result before it is taken, else as soon as the core is ready."""
    accepted, results, seen = [], [], []

    def value(ctx, register):
        return [ctx.get(one) for one in register] if isinstance(register, list) else ctx.get(register)

    async def bench(ctx):
        registers = {id(register): register for _, register, _ in core.probes}
        ctx.set(core.o_ready, 1)
        for word in load.words if load else ():
            ctx.set(core.k_m, word)
            ctx.set(core.k_valid, 1)
            await ctx.tick().until(core.k_ready)
            ctx.set(core.k_valid, 0)
        while len(results) < len(pairs) or len(seen) < accepted[-1] + core.probes[-1][2] + 2:
            offered = len(accepted) < len(pairs) and not (alone and len(accepted) > len(results))
            ctx.set(core.i_valid, offered)
            if offered:
                ctx.set(core.i_a, pairs[len(accepted)][0])
                ctx.set(core.i_b, pairs[len(accepted)][1])
                if ctx.get(core.i_ready):
                    accepted.append(len(seen))
            if ctx.get(core.o_valid):
                results.append(ctx.get(core.o_r))
            seen.append({key: value(ctx, register) for key, register in registers.items()})
            await ctx.tick()

    run_bench(core, bench)
    return accepted, results, seen


def misplaced(steps, core, traces, accepted, seen):
    """Names of the steps whose result does not stand in its register at the step's end for each product, or stands
    there a cycle before for each."""
    registers = {name: id(register) for name, register, _ in core.probes}

    def stands(step, cycle):
        key = registers[step.name]
        return all(seen[t + cycle][key] == trace[step.name] for t, trace in zip(accepted, traces, strict=True))

    return [step.name for step in steps if not stands(step, step.end) or stands(step, step.end - 1)]


def recorded(fitted, alone):
    """(core, traces, acceptances, results, registers) of some products."""
    contract = fitted.contract("native")
    pairs = operands(contract, PRODUCTS)
    core = fitted.component()
    accepted, results, seen = record(core, pairs, contract.load, alone)
    return core, [dict(fitted.trace(a, b)) for a, b in pairs], accepted, results, seen


def watch(fitted, alone, unseen=()):
    """Assert that all is as the chart says, and that no operation moved by a cycle would be. ``unseen``: operations
    whose result is that of the operation before, for all operands."""
    steps = [step for step in fitted.schedule.steps if step.name not in unseen]
    core, traces, accepted, results, seen = recorded(fitted, alone)
    assert results == [trace["z"] for trace in traces]
    if not alone:
        assert {b - a for a, b in pairwise(accepted)} == {fitted.schedule.interval}
    assert misplaced(steps, core, traces, accepted, seen) == []
    for step in steps:
        for start in (step.start - 1, step.start + 1):
            moved = replace(step, start=start)
            assert misplaced([moved], core, traces, accepted, seen) == [step.name]
    for step in fitted.schedule.steps:
        assert step.name not in unseen or {trace[step.name] for trace in traces} == {0}


@pytest.mark.parametrize("alone", [True, False], ids=["alone", "back to back"])
@pytest.mark.parametrize(("name", "p", "settings"), CASES)
def test_every_operation_of_the_chart_is_done_in_its_cycles(name, p, settings, alone):
    watch(design(name).fit(p, **settings), alone)


def test_an_operand_with_more_digits_than_the_result():
    """Its highest digit is 0, and so are two products of the chart in a row."""
    fitted = design("iddmm").fit(P, digit=14, subtract=False)
    assert (fitted.params.n, fitted.params.count) == (2, 1)
    watch(fitted, False, unseen=("x y 0.1", "x y 1.1"))


@pytest.mark.parametrize(("name", "p", "settings"), [CASES[0], CASES[6], CASES[9], CASES[12], CASES[15]])
def test_an_operation_that_the_chart_moves_by_a_cycle_is_found(name, p, settings):
    """Planted in the chart that the core's probes come from."""
    fitted = design(name).fit(p, **settings)
    plan = copy(fitted.schedule)
    steps = list(plan.steps)
    place = len(steps) // 2
    steps[place] = replace(steps[place], start=steps[place].start + 1)
    vars(plan)["steps"] = tuple(steps)
    vars(fitted)["schedule"] = plan
    core, traces, accepted, _, seen = recorded(fitted, alone=False)
    assert misplaced(plan.steps, core, traces, accepted, seen) == [steps[place].name]
