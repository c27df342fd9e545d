# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Components in tests: run in Amaranth's simulator."""

from amaranth.sim import Simulator


def run_bench(component, bench):
    """Run ``async def bench(ctx)`` on a component with a clock until it returns."""
    simulator = Simulator(component)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()


def waveform(component, inputs, output):
    """The value of ``output`` in each cycle. ``inputs``: for each cycle the pairs (signal, value) that are set."""
    seen = []

    async def bench(ctx):
        for values in inputs:
            for signal, value in values:
                ctx.set(signal, value)
            seen.append(ctx.get(output))
            await ctx.tick()

    run_bench(component, bench)
    return seen
