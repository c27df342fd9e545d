# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Runs components in Amaranth's simulator, which is slow, and reads their probes."""

import random

from components import run_bench


def operands(contract, count, seed=1):
    """Random port values within the operand bound; residues at random representatives."""
    rnd = random.Random(seed)
    form = contract.operand

    def one():
        return form.any(rnd.randrange(contract.largest_operand + 1), rnd)

    return [(one(), one() if contract.operands == 2 else 0) for _ in range(count)]


async def load_modulus(ctx, core, words):
    """Load the words of a modulus through stream k."""
    for word in words:
        ctx.set(core.k_m, word)
        ctx.set(core.k_valid, 1)
        while not ctx.get(core.k_ready):
            await ctx.tick()
        await ctx.tick()
        ctx.set(core.k_valid, 0)


async def offer(ctx, core, a, b, note=lambda: None):
    """Offer operands until a cycle in which they are accepted, and stay in it; ``note`` is called in each cycle."""
    ctx.set(core.i_a, a)
    if hasattr(core, "i_b"):
        ctx.set(core.i_b, b)
    ctx.set(core.i_valid, 1)
    note()
    while not ctx.get(core.i_ready):
        await ctx.tick()
        note()


def run(core, pairs, limit=5000, load=None, early=0):
    """[(result, {probe: value}, latency)] of products one after another; ``load``: what loads the modulus first;
    ``early``: probes are read that many cycles before their cycle."""
    (found,) = run_loads(core, [(load.words if load else (), pairs)], limit, early)
    return found


def run_loads(core, loads, limit=5000, early=0):
    """What `run` returns, for each of ``loads``, (words of a modulus, pairs), one after another."""

    def read(ctx, signal):
        return [ctx.get(s) for s in signal] if isinstance(signal, list) else ctx.get(signal)

    async def product(ctx, a, b):
        first = [(name, signal, at - early) for name, signal, at in core.probes if at <= early]
        past = []  # what the probes of cycles before the acceptance see while the operands are offered
        await offer(ctx, core, a, b, lambda: past.append({name: read(ctx, signal) for name, signal, _ in first}))
        seen = {name: past[at - 1][name] for name, _, at in first if 1 - at <= len(past)}
        for cycle in range(1, limit):
            await ctx.tick()
            ctx.set(core.i_valid, 0)
            for name, signal, at in core.probes:
                if at - early == cycle:
                    seen[name] = read(ctx, signal)
            if ctx.get(core.o_valid):
                result = ctx.get(core.o_r)
                await ctx.tick()
                return result, seen, cycle
        raise AssertionError(f"no result within {limit} cycles")

    async def bench(ctx):
        ctx.set(core.o_ready, 1)
        for words, pairs in loads:
            await load_modulus(ctx, core, words)
            found.append([await product(ctx, a, b) for a, b in pairs])

    found = []
    run_bench(core, bench)
    return found


def run_slowly(core, pairs, *, idle, stall, load=None):
    """Results of products one after another: nothing is offered for ``idle`` cycles before each, and each result is
    taken ``stall`` cycles after it arrives. A result without operands, or one that does not stay, is an error."""
    out = []

    async def bench(ctx):
        await load_modulus(ctx, core, load.words if load else ())
        for a, b in pairs:
            for _ in range(idle):
                assert not ctx.get(core.o_valid), "a result without an operand"
                await ctx.tick()
            await offer(ctx, core, a, b)
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


def judge(fitted, pairs):
    """Compare products in the machine with the algorithm, value by value, and with Python's integers. Returns for each
    product the values that the probes saw."""
    contract, p = fitted.contract("native"), fitted.p
    found = run(fitted.component(), pairs, load=contract.load)
    for (a, b), (port, seen, latency) in zip(pairs, found, strict=True):
        trace = list(fitted.trace(a, b))
        assert first_difference(trace, seen) == "" and port == trace[-1][1]
        x, y, z = contract.operand.decode(a), contract.operand.decode(b), contract.result.decode(port)
        assert z % p == contract.expect(x, y) and z < contract.result_bound * p
        assert latency == contract.timing.latency
    return [seen for _, seen, _ in found]


def judge_all(fitted, step=1):
    """All operands of a small modulus, or every ``step``-th pair, as in `judge`."""
    limit = fitted.contract("native").largest_operand + 1
    judge(fitted, [(x, y) for x in range(limit) for y in range(limit)][::step])
