# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Karatsuba's multiplier against Python's integers, a product a cycle; its tiles."""

import random

import pytest
from amaranth.hdl import Module, Signal

from components import waveform
from modmill.designs.wide.karatsuba import LEVEL, TILE, Karatsuba
from modmill.rtl.product import DSP18, DspBlock


def products(unit, pairs):
    """What comes out when a pair enters every cycle."""
    m = Module()
    a, b, out = Signal(unit.width), Signal(unit.width), Signal(2 * unit.width)
    m.d.comb += out.eq(unit.build(m, a, b))
    inputs = [[(a, x), (b, y)] for x, y in [*pairs, *[(0, 0)] * unit.latency]]
    return waveform(m, inputs, out)[unit.latency :]


@pytest.mark.parametrize(
    ("width", "levels", "block"),
    [(4, 2, DspBlock(1, 1)), (5, 1, DspBlock(2, 2)), (5, 2, DspBlock(2, 2)), (6, 3, DspBlock(2, 2))],
)
def test_all_operands(width, levels, block):
    pairs = [(x, y) for x in range(1 << width) for y in range(1 << width)]
    assert products(Karatsuba(width, levels, block), pairs) == [x * y for x, y in pairs]


@pytest.mark.parametrize("levels", [0, 1, 2, 4, 7])
@pytest.mark.parametrize("width", [17, 61, 127, 256, 258])
def test_long_operands(width, levels):
    rnd = random.Random(width)
    top = (1 << width) - 1
    ends = (0, 1, top, top - 1, 1 << width - 1, (1 << width // 2) - 1, top ^ (1 << width // 2) - 1)
    pairs = [(x, y) for x in ends for y in ends] + [(rnd.getrandbits(width), rnd.getrandbits(width)) for _ in range(9)]
    assert products(Karatsuba(width, levels, DSP18), pairs) == [x * y for x, y in pairs]


def test_the_papers_tiles():
    assert Karatsuba(256, 0, DspBlock(16, 16)).tiles == 256
    four = Karatsuba(256, 4, DSP18)
    assert (four.tiles, four.leaf, four.latency) == (81, 16, TILE + 4 * LEVEL)
    assert Karatsuba(16, 4, DSP18).splits == 0
