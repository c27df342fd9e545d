# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""One channel as a core: every operand of small moduli, every edge of the folds, all depths and DSP blocks."""

import random

import pytest

from components import run_bench
from modmill.contract import UnsupportedError
from modmill.cores.multiplier.build import build
from modmill.cores.multiplier.verify import Report, verify
from modmill.designs import design
from modmill.designs.channel import DESIGNS, MOST_FOLDS
from modmill.numbers.folding import fold

NAMES = [d.name for d in DESIGNS]
PAPER = {17: 145, 20: 159, 24: 125, 28: 95}
MODULI = [3, 5, 7, *((1 << w) - u for w, u in PAPER.items()), 2**17 - 1, 2**64 - 59, 2**66 - 513, 2**66 - 1]


def stream(core, operands, ready=lambda cycle: True):
    """[(result, cycles from acceptance to valid)], operands sent as fast as they are accepted; and the cycles taken."""
    sent, results, done = [], [], []

    async def bench(ctx):
        cycle = 0
        while len(results) < len(operands):
            waiting = len(sent) < len(operands)
            ctx.set(core.i_valid, waiting)
            ctx.set(core.o_ready, ready(cycle))
            if waiting:
                a, b = operands[len(sent)]
                ctx.set(core.i_a, a)
                if hasattr(core, "i_b"):
                    ctx.set(core.i_b, b)
            if waiting and ctx.get(core.i_ready):
                sent.append(cycle)
            if ctx.get(core.o_valid) and ready(cycle):
                results.append((ctx.get(core.o_r), cycle - sent[len(results)]))
            await ctx.tick()
            cycle += 1
        done.append(cycle)

    run_bench(core, bench)
    return results, done[0]


def expected(fitted, pairs):
    """The results of the algorithm."""
    return [list(fitted.trace(a, b))[-1][1] for a, b in pairs]


@pytest.mark.parametrize("io", ["native", "plain"])
@pytest.mark.parametrize("p", [29, 31])
@pytest.mark.parametrize("name", NAMES)
def test_every_operand_of_five_bits(name, p, io):
    fitted = design(name).fit(p)
    top = p if io == "plain" else 32
    pairs = [(t, 0) for t in range(2048)]
    if name == "channel-multiply":
        pairs = [(a, b) for a in range(top) for b in range(top)]
    results, cycles = stream(fitted.core(io), pairs)
    latency = fitted.contract(io).timing.latency
    assert all(found[1] == latency for found in results), "the pipeline stalls"
    assert cycles == len(pairs) + latency, "an interval of 1"
    for (a, b), (r, _) in zip(pairs, results, strict=True):
        value = a * b if name == "channel-multiply" else a
        assert r < 32 and r % p == value % p
        assert io == "native" or r < p


@pytest.mark.parametrize("registers", [1, 2, 3])
@pytest.mark.parametrize("p", MODULI)
@pytest.mark.parametrize(("name", "dsp"), [(NAMES[0], "18x18"), (NAMES[0], "25x18"), (NAMES[1], "18x18")])
def test_machine_equals_algorithm(name, p, registers, dsp):
    fitted = design(name).fit(p, registers=registers, dsp=dsp)
    contract = fitted.contract("native")
    rnd = random.Random(p)
    width = contract.operand.width
    pairs = fitted.corners()[:60] + [(rnd.getrandbits(width), rnd.getrandbits(width)) for _ in range(20)]
    results, _ = stream(fitted.component(), pairs)
    assert [r for r, _ in results] == expected(fitted, pairs)
    assert {latency for _, latency in results} == {contract.timing.latency}


@pytest.mark.parametrize("name", NAMES)
def test_a_consumer_that_pauses_loses_nothing(name):
    fitted = design(name).fit(2**17 - 145)
    rnd = random.Random(3)
    width = fitted.representation.width
    pairs = [(rnd.getrandbits(width), rnd.getrandbits(width)) for _ in range(200)]
    for ready in (lambda cycle: cycle % 3 == 0, lambda cycle: cycle > 60, lambda cycle: cycle % 40 > 30):
        results, _ = stream(fitted.component(), pairs, ready)
        assert [r for r, _ in results] == expected(fitted, pairs)


@pytest.mark.parametrize("p", MODULI)
def test_corners_attain_every_bound(p):
    """No fold is one too many, and no width is one bit too wide: corners reach the top of every range."""
    fitted = design("channel-reduce").fit(p)
    q = fitted.params
    traces = [[value for _, value in fitted.trace(t)] for t, _ in fitted.corners()]
    assert max(t[0] for t in traces) == q.bound - 1
    for k, bound in enumerate(q.folds):
        reached = max(t[k] for t in traces)
        assert reached < bound
        assert reached == bound - 1 or reached >= bound - 2 * q.u - 2, (k, bound - reached)
    assert max(t[-2] for t in traces) < 1 << q.w
    last = [t[len(q.folds) - 2] for t in traces]
    assert max(last) >= 1 << q.w, "the last fold is needed"


def test_a_missing_fold_is_found():
    """The planted fault: without the last fold some corner leaves [0, 2^w)."""
    fitted = design("channel-reduce").fit(2**17 - 145)
    q = fitted.params
    short = []
    for t, _ in fitted.corners():
        for _ in range(len(q.folds) - 2):
            t = fold(t, q.w, q.u)
        short.append(t)
    assert max(short) >= 1 << q.w


@pytest.mark.parametrize("dsp", ["18x18", "25x18"])
@pytest.mark.parametrize("w", [*PAPER, 64, 66, 255])
def test_tiles_cover_the_product_once(w, dsp):
    q = design("channel-multiply").fit((1 << w) - {64: 59, 66: 5, 255: 19, **PAPER}[w], dsp=dsp).params
    covered = [(i + x, j + y) for row in q.rows for i, j in row for x in range(q.block.a) for y in range(q.block.b)]
    inside = [c for c in covered if max(c) < w]
    assert len(inside) == len(set(inside)) == w * w
    for row in q.rows:
        filled = 0
        for i, j in row:
            assert i + j >= filled
            filled = i + j + min(q.block.a, w - i) + min(q.block.b, w - j)


def test_blocks_of_table_1():
    """DSP blocks of a product alone; the paper's CMM has one to three more for the reduction."""
    fits = {dsp: [design("channel-multiply").fit((1 << w) - u, dsp=dsp).cost.dsp for w, u in PAPER.items()]
            for dsp in ("18x18", "25x18")}  # fmt: skip
    assert fits == {"18x18": [1, 4, 4, 4], "25x18": [1, 2, 2, 4]}
    assert design("channel-reduce").fit(2**17 - 145).cost.dsp == 0


@pytest.mark.parametrize("io", ["native", "plain"])
@pytest.mark.parametrize("name", NAMES)
def test_the_mill_builds_and_checks_it(name, io):
    core = build(name, "2^20-159", io)
    report = Report(core.name)
    verify(core, core.verilog, report, vectors=100)
    assert report.failures == [] and report.interval == 1
    assert report.latency == core.contract.timing.latency
    assert ("i_b" in core.verilog) == (name == "channel-multiply")


@pytest.mark.parametrize("name", NAMES)
def test_a_core_for_another_modulus_fails_its_check(name):
    core = build(name, "2^20-159", "native")
    report = Report(core.name)
    verify(core, build(name, "2^20-143", "native").verilog, report, vectors=20)
    assert report.failures


@pytest.mark.parametrize("name", NAMES)
def test_a_modulus_far_from_a_power_of_two_is_refused(name):
    with pytest.raises(
        UnsupportedError, match=rf"2\^256 - u with u of 224 bits .* takes \d+ folds, at most {MOST_FOLDS}"
    ):
        design(name).fit(2**256 - 2**224 + 2**192 + 2**96 - 1)
    with pytest.raises(UnsupportedError, match=r"2\^50 - 96444246369379 is too far below 2\^50: it takes 16 folds"):
        design(name).fit(5 * 3**30)
    with pytest.raises(UnsupportedError, match="at least 3, got 131072"):
        design(name).fit(1 << 17)
    with pytest.raises(UnsupportedError, match="registers takes a whole number from 1 to 3, not 4"):
        design(name).fit(97, registers=4)
    assert design(name).fit(2**255 - 19).params.u == 19
