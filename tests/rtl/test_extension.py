# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The machine of the base extensions: its cycles, its fold for any modulus, and that faults in it are found."""

import random
from dataclasses import replace

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator
from bench import run

from marks import long
from modmill.designs import design
from modmill.designs.extension import edge_numbers, tables
from modmill.numbers.folding import fold_bounds, reduce
from modmill.numbers.moduli import parse_modulus
from modmill.rtl.booth_fold import Fold, booth_terms
from modmill.rtl.extension import BaseExtension
from modmill.rtl.product import DSP18, DSP25, carry_save

COLUMNS = [("P-256", w) for w in (17, 20, 24, 28)] + [("P-384", w) for w in (17, 20, 24, 28)]
PRINTED = (0.670, 0.758, 0.727, 0.720, 0.896, 0.700, 0.639, 0.659)
"""Table III of the HBE paper: DSP blocks times time, HBE over KBE."""


def pair(modulus, w):
    return [design(f"{kind}-extension").fit(parse_modulus(modulus).value, w=w) for kind in ("kbe", "hbe")]


@pytest.mark.parametrize(("column", "printed"), list(zip(COLUMNS, PRINTED, strict=True)))
def test_hbe_takes_fewer_cycles_than_the_paper_prints(column, printed):
    kbe, hbe = pair(*column)
    assert kbe.cost.dsp == hbe.cost.dsp
    assert hbe.schedule.latency / kbe.schedule.latency < printed
    assert hbe.schedule.interval / kbe.schedule.interval < printed


@pytest.mark.parametrize("column", COLUMNS)
def test_the_multipliers_wait_only_for_the_pipeline(column):
    for fitted, phases in zip(pair(*column), (1, 2), strict=True):
        s = fitted.params.shape
        idle = max(0, s.xi_ready - s.m) + (max(0, s.hat_ready - s.m) if phases == 2 else 0)
        assert s.interval == s.multiplications + idle + 1


def test_the_rows_of_a_product_are_emitted_once():
    """As many cells for a wide number as for a narrow one; an expression would be repeated for each bit."""

    def cells(bits):
        m = Module()
        x, u, r = Signal(bits), Signal(8), Signal(bits + 8)
        m.d.comb += r.eq(carry_save(m, booth_terms(m, x, u, len(r), "x"), len(r), "t"))
        return rtlil.convert(m, ports=[x, u, r]).count("\n  cell ")

    assert cells(60) == cells(6)


def settled(build, values):
    m, out = Module(), []
    result, inputs = build(m)

    async def bench(ctx):
        for row in values:
            for signal, value in zip(inputs, row, strict=True):
                ctx.set(signal, value)
            await ctx.delay(1e-9)
            out.append(ctx.get(result))

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()
    return out


@pytest.mark.parametrize("bits", [1, 2, 3, 7, 8])
def test_booth_terms_add_up_to_the_product(bits):
    width = 14 + bits

    def build(m):
        x, u, r = Signal(13), Signal(bits), Signal(width)
        m.d.comb += r.eq(carry_save(m, booth_terms(m, x, u, width, "x"), width, "t"))
        return r, (x, u)

    rnd = random.Random(bits)
    values = [(x, u) for u in range(1 << bits) for x in (0, 1, (1 << 13) - 1, rnd.getrandbits(13))]
    assert settled(build, values) == [x * u % (1 << width) for x, u in values]


@pytest.mark.parametrize(("w", "us"), [(17, (1, 5, 141)), (12, (3, 69)), (28, (89, 143))])
def test_last_stage_folds_four_high_bits_for_every_modulus(w, us):
    bound = 1 << (w + 4)

    def build(m):
        t, u, r = Signal(w + 4), Signal(max(us).bit_length()), Signal(w)
        m.d.comb += r.eq(Fold(m, t, (), w, us, u, "fold").out)
        return r, (t, u)

    rnd = random.Random(w)
    tops = [(k << w) - d for k in range(1, 17) for d in (1, 2, max(us))]
    values = [(t, u) for u in us for t in [0, *tops, *(rnd.getrandbits(w + 4) for _ in range(50))]]
    assert all(len(fold_bounds(bound, w, u)) <= 2 for u in us)
    assert settled(build, values) == [reduce(t, bound, w, u) for t, u in values]


@pytest.mark.parametrize(("w", "block"), [(12, DSP18), long(12, DSP25), long(20, DSP18), long(34, DSP25)])
def test_every_width_and_block(w, block):
    name = "25x18" if block is DSP25 else "18x18"
    for kind in ("kbe", "hbe"):
        fitted = design(f"{kind}-extension").fit(97, w=w, dsp=name)
        pairs = fitted.corners()[2:4]
        for (a, b), (r, seen, latency) in zip(pairs, run(fitted.component(), pairs), strict=True):
            trace = dict(fitted.trace(a, b))
            assert {name: trace[name] for name in seen} == seen
            assert r == trace["x"] and latency == fitted.schedule.latency


def broken(fitted, shape=None, **changed):
    q = fitted.params
    return BaseExtension(shape or q.shape, replace(tables(q), **changed), q.b.moduli)


def wrong(fitted, core, pairs):
    return sum(r != list(fitted.trace(a, b))[-1][1] for (a, b), (r, _, _) in zip(pairs, run(core, pairs), strict=True))


@pytest.mark.parametrize("kind", ["kbe", "hbe"])
def test_planted_faults_are_caught(kind):
    fitted = design(f"{kind}-extension").fit(2**31 - 1)
    q = fitted.params
    numbers = edge_numbers(q)
    hats = [q.cox.hats(q.cox.base.gammas(x)) for x in numbers]
    late = [x for x, v in zip(numbers, hats, strict=True) if q.cox.h(v, q.offset) != q.cox.h(v, q.offset - 1)]
    pairs = [(fitted.representation.encode(x), 0) for x in (*late[:1], numbers[2])]
    assert wrong(fitted, broken(fitted), pairs) == 0
    assert wrong(fitted, broken(fitted, replace(q.shape, offset=q.offset - 1)), pairs)
    xi = list(tables(q).xi)
    assert wrong(fitted, broken(fitted, xi=[xi[1], xi[0], *xi[2:]]), pairs)
    rows = [list(row) for row in tables(q).sums]
    rows[-1], rows[0] = rows[0], rows[-1]
    assert wrong(fitted, broken(fitted, sums=rows), pairs)


@pytest.mark.parametrize("name", ["kbe-extension", "hbe-extension"])
def test_what_enters_the_folds_is_in_the_ranges_of_the_proofs(name):
    """Products and sums of numbers at the edges of the cox, and h."""
    fitted = design(name).fit(8191, n=6)
    s, ranges = fitted.params.shape, fitted.component().ranges
    for x in edge_numbers(fitted.params):
        values = dict(fitted.trace(fitted.representation.encode(x)))
        assert values["h"] < ranges["h", ""][0]
        for k in range(2):
            bounds = ranges[f"rower{k}.entry", f"rower{k}.fold_u"]
            assert bounds.keys() == {*s.u_a[k::2], *s.u_b[k::2]}
            for j in range(3):
                assert values[f"xi{j + 1}"][k] < bounds[s.u_a[2 * j + k]]
                assert values[f"sum{j + 1}"][k] + (1 << s.w) - s.u_b[2 * j + k] <= bounds[s.u_b[2 * j + k]]
                for hats in (values[f"X{r + 1} sum"] for r in range(s.steps) if s.columns > 1):
                    assert hats[0] < ranges[f"rower{k}.hat", f"rower{k}.hat_u"][s.u_b[2 * j + k]]
