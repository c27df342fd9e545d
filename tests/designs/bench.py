# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A slow bench that sees inside: runs a component in Amaranth's simulator and reads its probes."""

import random

from components import run_bench


def operands(contract, count, seed=1):
    """Random port values within the operand bound; residues at random representatives."""
    rnd = random.Random(seed)
    form = contract.operand

    def one():
        return form.any(rnd.randrange(contract.largest_operand + 1), rnd)

    return [(one(), one() if contract.operands == 2 else 0) for _ in range(count)]


def run(core, pairs, limit=5000, load=None, early=0):
    """[(result, {probe: value}, latency)] of products one after another; ``load``: what loads the modulus first;
    ``early``: probes are read so many cycles before their own."""
    out = []

    async def bench(ctx):
        ctx.set(core.o_ready, 1)
        for word in load.words if load else ():
            ctx.set(core.k_m, word)
            ctx.set(core.k_valid, 1)
            while not ctx.get(core.k_ready):
                await ctx.tick()
            await ctx.tick()
            ctx.set(core.k_valid, 0)
        for a, b in pairs:
            ctx.set(core.i_a, a)
            if hasattr(core, "i_b"):
                ctx.set(core.i_b, b)
            ctx.set(core.i_valid, 1)
            while not ctx.get(core.i_ready):
                await ctx.tick()
            seen = {}
            for cycle in range(1, limit):
                await ctx.tick()
                ctx.set(core.i_valid, 0)
                for name, signal, at in core.probes:
                    if at - early == cycle:
                        seen[name] = [ctx.get(s) for s in signal] if isinstance(signal, list) else ctx.get(signal)
                if ctx.get(core.o_valid):
                    break
            else:
                raise AssertionError(f"no result within {limit} cycles")
            out.append((ctx.get(core.o_r), seen, cycle))
            await ctx.tick()

    run_bench(core, bench)
    return out


def run_slowly(core, pairs, *, idle, stall, load=None):
    """Results of products one after another: nothing is offered for ``idle`` cycles before each, and each result is
    taken ``stall`` cycles after it came. A result that comes without operands, or does not stay, is an error."""
    out = []

    async def bench(ctx):
        for word in load.words if load else ():
            ctx.set(core.k_m, word)
            ctx.set(core.k_valid, 1)
            while not ctx.get(core.k_ready):
                await ctx.tick()
            await ctx.tick()
            ctx.set(core.k_valid, 0)
        for a, b in pairs:
            for _ in range(idle):
                assert not ctx.get(core.o_valid), "a result without an operand"
                await ctx.tick()
            ctx.set(core.i_a, a)
            ctx.set(core.i_b, b)
            ctx.set(core.i_valid, 1)
            while not ctx.get(core.i_ready):
                await ctx.tick()
            await ctx.tick()
            ctx.set(core.i_valid, 0)
            for _ in range(idle):
                if ctx.get(core.o_valid):
                    break
                await ctx.tick()
            out.append(ctx.get(core.o_r))
            for _ in range(stall):
                await ctx.tick()
                assert ctx.get(core.o_valid) and ctx.get(core.o_r) == out[-1], "a result did not stay"
            ctx.set(core.o_ready, 1)
            await ctx.tick()
            ctx.set(core.o_ready, 0)

    run_bench(core, bench)
    return out


def first_difference(trace, seen):
    """Name of the first intermediate that differs between the algorithm and the machine, or ''."""
    return next((name for name, value in trace if name in seen and seen[name] != value), "")


def judge_all(fitted, step=1):
    """All operands of a small modulus (every ``step``-th pair) in the machine, the algorithm and Python's integers."""
    contract, p = fitted.contract("native"), fitted.p
    limit = contract.largest_operand + 1
    pairs = [(x, y) for x in range(limit) for y in range(limit)][::step]
    results = run(fitted.component(), pairs, load=contract.load)
    for (x, y), (r, seen, latency) in zip(pairs, results, strict=True):
        trace = list(fitted.trace(x, y))
        assert first_difference(trace, seen) == ""
        assert r == trace[-1][1] and r % p == contract.expect(x, y)
        assert r < contract.result_bound * p
        assert latency == contract.timing.latency
