# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Folding, tiled products and tiles against Python's integers."""

import random

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from modmill.numbers.folding import reduce
from modmill.rtl import fold
from modmill.rtl.product import DSP18, DSP25, DspBlock, Tile, product, tiled, tiled_evenly


def outputs(m, inputs, output, cases, cycles=0, sync=False):
    """The output for each of ``cases``, values of the inputs: ``cycles`` later if ``sync``, else at once."""
    out = []

    async def bench(ctx):
        for case in cases:
            for signal, value in zip(inputs, case, strict=True):
                ctx.set(signal, value)
            for _ in range(cycles):
                await ctx.tick()
            if not sync:
                await ctx.delay(1e-9)
            out.append(ctx.get(output))

    simulator = Simulator(m)
    if sync:
        simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    return out


@pytest.mark.parametrize(
    ("w", "u", "terms"), [(66, 1, 1), (66, 513, 1), (17, 511, 36), (14, 3, 40), (17, 0, 3), (8, 5, 2)]
)
def test_folding(w, u, terms):
    bound = terms << 2 * w
    m = Module()
    t, out = Signal(fold.bits(bound)), Signal(w)
    m.d.comb += out.eq(fold.reduce(m, t, bound, w, u, name="x"))
    rnd = random.Random(w)
    cases = [0, 1, bound - 1, (1 << w) - u, (1 << w) - 1, 1 << w, ((bound >> w) - 1) << w | (1 << w) - 1]
    cases += [rnd.randrange(bound) for _ in range(100)]
    for x, r in zip(cases, outputs(m, [t], out, [(x,) for x in cases]), strict=True):
        assert r == reduce(x, bound, w, u)


@pytest.mark.parametrize("u", [0, 1, 2, 3, 5, 7, 15, 19, 145, 511, 513])
def test_constant_times(u):
    m = Module()
    x = Signal(12)
    out = Signal(12 + max(1, u.bit_length()))
    m.d.comb += out.eq(fold.times(x, u))
    cases = [0, 1, 4095, 2048, 1365]
    assert outputs(m, [x], out, [(c,) for c in cases]) == [c * u for c in cases]


@pytest.mark.parametrize("block", [DSP18, DSP25, DspBlock(4, 4), DspBlock(3, 5)])
@pytest.mark.parametrize(("a", "b"), [(66, 66), (66, 55), (17, 24), (14, 14), (9, 40), (5, 3)])
@pytest.mark.parametrize("register", [None, "sync"])
def test_product(block, a, b, register):
    m = Module()
    x, y, out = Signal(a), Signal(b), Signal(a + b)
    m.d.comb += out.eq(product(m, x, y, block, name="x", register=register))
    rnd = random.Random(1)
    cases = [(0, 0), ((1 << a) - 1, (1 << b) - 1), (1, (1 << b) - 1), ((1 << a) - 1, 1)]
    cases += [(rnd.getrandbits(a), rnd.getrandbits(b)) for _ in range(20)]
    found = outputs(m, [x, y], out, cases, cycles=int(register is not None), sync=register is not None)
    assert found == [p * q for p, q in cases]


@pytest.mark.parametrize(("a", "b"), [(17, 17), (34, 34), (28, 24), (40, 17), (51, 35)])
@pytest.mark.parametrize("block", [DSP18, DSP25])
def test_explicit_tiles(block, a, b):
    """Both ways to cut a product into tiles: it is right in its cycle, and not a cycle before."""
    rnd = random.Random(a)
    cases = [((1 << a) - 1, (1 << b) - 1), *((rnd.getrandbits(a), rnd.getrandbits(b)) for _ in range(8))]
    for make, latency in (
        (lambda m, x, y: tiled(m, x, y, block, 2, name="x"), 2),
        (lambda m, x, y: tiled_evenly(m, x, y, block, 2), 2 + (-(-a // block.a) * -(-b // block.b) > 1)),
    ):
        for cycles in (latency, latency - 1):
            m, x, y, out = Module(), Signal(a), Signal(b), Signal(a + b)
            m.d.comb += out.eq(make(m, x, y))
            found = outputs(m, [x, y], out, cases, cycles=cycles, sync=True)
            assert (found == [p * q for p, q in cases]) == (cycles == latency)


def test_tiles_of_the_papers_multipliers():
    assert DSP18.tiles(66, 66) == 16
    assert DSP25.tiles(66, 66) == 12
    assert DSP25.tiles(66, 55) == 12
    assert DSP25.tiles(66, 44) == 8
    assert DSP18.tiles(66, 55) == 16


@pytest.mark.parametrize("registers", [0, 1, 2, 3])
def test_tile_latency(registers):
    tile = Tile(17, 17, registers)
    cases = [(0x1FFFF, 0x1FFFF), (3, 5), (0, 7)]
    m = Module()
    m.submodules.tile = tile
    found = outputs(m, [tile.a, tile.b], tile.p, cases, cycles=registers, sync=registers > 0)
    assert found == [a * b for a, b in cases]
    assert tile.module_name == f"dsp_mul_17x17_r{registers}"
