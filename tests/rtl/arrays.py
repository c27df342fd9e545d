# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Traffic for the arrays: digits in at their times, outputs of every cycle."""

from components import run_bench

DIGIT = 17


def digits(number, count):
    """Digits of 17 bits; the highest takes what is left."""
    low = [number >> DIGIT * j & (1 << DIGIT) - 1 for j in range(count - 1)]
    return [*low, number >> DIGIT * (count - 1)]


def traffic(pairs, count, streams, interval, start):
    """What enters in which cycle: {cycle: {port: value}} for the pairs (x, y), one every ``interval`` cycles."""
    found = {}

    def put(cycle, port, value):
        assert port not in found.setdefault(cycle, {}), f"two digits for {port} in cycle {cycle}"
        found[cycle][port] = value

    for n, (x, y) in enumerate(pairs):
        s = start + n * interval
        put(s, "first", 1)
        put(s + (count - 1) * streams, "last", 1)
        for j, digit in enumerate(digits(x, count)):
            put(s - j, "x", digit)
        for i, digit in enumerate(digits(y, count)):
            put(s + i * streams, "y", digit)
    return found


def simulate(block, entering, cycles, outputs):
    """{port: [its value in each cycle]} of ``outputs``; ports for which nothing enters are 0."""
    seen = {port: [] for port in outputs}
    ports = sorted({port for values in entering.values() for port in values})

    async def bench(ctx):
        for t in range(cycles):
            for port in ports:
                ctx.set(getattr(block, port), entering.get(t, {}).get(port, 0))
            for port in outputs:
                seen[port].append(ctx.get(getattr(block, port)))
            await ctx.tick()

    run_bench(block, bench)
    return seen
