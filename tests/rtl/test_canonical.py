# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The chain of cells and the subtraction behind a multiplier with long results."""

import random

import pytest
from amaranth.hdl import Module

from components import run_bench
from modmill.contract import Timing
from modmill.interface import Multiplier
from modmill.rtl.canonical import Canonical, words

INTERVAL = 40


class Long(Multiplier):
    """V = a c + b, of ``width`` bits, one cycle after the operands; it accepts none while a result waits."""

    def __init__(self, bits, c, width):
        self._c = c
        super().__init__(bits, bits, width)

    def elaborate(self, _platform):
        m = Module()
        m.d.comb += self.i_ready.eq(~self.o_valid)
        with m.If(self.i_valid & self.i_ready):
            m.d.sync += [self.o_r.eq(self.i_a * self._c + self.i_b), self.o_valid.eq(1)]
        with m.Elif(self.o_ready):
            m.d.sync += self.o_valid.eq(0)
        return m


def results(core, pairs):
    """[(result, latency)] of operands that enter every INTERVAL cycles."""
    found, given = [], []

    async def bench(ctx):
        ctx.set(core.o_ready, 1)
        for cycle in range((len(pairs) + 3) * INTERVAL):
            offered = cycle % INTERVAL == 0 and len(given) < len(pairs)
            ctx.set(core.i_valid, int(offered))
            if offered:
                for port, number in zip((core.i_a, core.i_b), pairs[len(given)], strict=True):
                    ctx.set(port, number)
                assert ctx.get(core.i_ready)
                given.append(cycle)
            if ctx.get(core.o_valid):
                found.append((ctx.get(core.o_r), cycle - given[len(found)]))
            await ctx.tick()

    run_bench(core, bench)
    return found


def built(p, word, cells, top):
    """The core for V up to ``top``, and c."""
    bits = p.bit_length()
    c = max(1, top // ((1 << bits) - 1) - 1)
    timing = Canonical.timing_of(Timing(1, INTERVAL, 1), bits, word, cells)
    return Canonical(Long(bits, c, top.bit_length()), p, bits, timing, word=word, cells=cells), c


@pytest.mark.parametrize("bits", [2, 5, 16, 17, 40])
@pytest.mark.parametrize(("word", "cells"), [(2, 2), (5, 3), (17, 2), (17, 0), (41, 0)])
def test_least_residues(bits, word, cells):
    rnd = random.Random(word)
    for p in ((1 << bits) - 1, (1 << bits - 1) + 1):
        top = (p << word * cells) - 1 if cells else 2 * p - 1
        core, c = built(p, word, cells, top)
        most = (1 << bits) - 1
        pairs = [(0, 0), (0, 1), (most, most), (most, 0), (0, most), (1, p - 1), (p - 1, 1)]
        pairs += [(rnd.getrandbits(bits), rnd.getrandbits(bits)) for _ in range(8)]
        pairs = [(a, b) for a, b in pairs if a * c + b <= top]
        assert len(pairs) > 2 and (not cells or max(a * c + b for a, b in pairs) > top // 2)
        back = pow(1 << word * cells, -1, p)
        latency = 1 + 9 * cells + words(bits, word) + 4
        assert results(core, pairs) == [((a * c + b) * back % p, latency) for a, b in pairs]


def test_a_number_beyond_the_range_is_not_reduced():
    """The planted fault: a cell too few."""
    p, word = 97, 5
    core, c = built(p, word, 1, (p << 2 * word) - 1)
    (found, _), *_ = results(core, [(127, 127)])
    assert found != (127 * c + 127) * pow(1 << word, -1, p) % p
