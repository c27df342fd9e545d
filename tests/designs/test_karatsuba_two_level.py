# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The product on two levels and its folds, in Amaranth's simulator."""

import random

import pytest
from bench import judge, operands, run, run_slowly

from components import run_bench
from modmill.contract import UnsupportedError
from modmill.cores.ecc.machine import ecc
from modmill.designs.karatsuba import top_bits, two_level_product
from modmill.designs.karatsuba.two_level import ABOVE_MOST, BITS_MAX, BITS_MIN, HALVES, fit, room
from modmill.designs.karatsuba.two_level_product import COUNT, INTERVAL, PAIRS, belongs, column_bits, outer, read_at

P, K1 = 2**255 - 19, 2**256 - 2**32 - 977
P192 = 2**192 - 2**64 - 1
SMALL = 2**61 - 1


@pytest.mark.parametrize(
    ("p", "spare"), [(P, 0), (K1, 0), (P192, 0), (2**64 - 59, 0), (K1, 1), (P, 4), (SMALL, 21), (2**64 - 59, 19)]
)
def test_the_machine_computes_what_the_algorithm_computes(p, spare):
    """Every product, column and word; the largest operands and corners; with up to three bits above the words."""
    fitted = fit(p, spare=spare)
    top, corners = fitted.params.limit - 1, fitted.corners()
    edges = [(top, top), corners[-1], *random.Random(1).sample(corners, 2 if p > SMALL else 8)]
    for seen in judge(fitted, [*edges, *operands(fitted.contract("native"), 2)]):
        assert len(seen) == len(fitted.schedule.steps)


@pytest.mark.parametrize(
    ("p", "spare"),
    [
        *((p, 0) for p in (P, K1, 2**250 - 207, 2**200 - 75, 2**127 - 1, SMALL, 2**64 - 59, P192)),
        *((p, room(p) - left) for p in (P, K1, SMALL, P192) for left in range(ABOVE_MOST)),
    ],
)
def test_sums_of_corners_are_in_their_ranges(p, spare):
    fitted = fit(p, spare=spare)
    params = fitted.params
    wide = column_bits(params.digit)
    for a, b in [*fitted.corners(), *operands(fitted.contract("native"), 50)]:
        trace = dict(fitted.trace(a, b))
        assert trace["v"] % p == a * b % p and trace["v"] < params.bounds[-1] <= params.limit
        assert all(0 <= trace[f"z{K}.{k}"] < 1 << wide for K in range(2 * COUNT) for k in range(COUNT))
        assert all(abs(value) < 1 << 2 * (params.digit + 1) for u in range(INTERVAL) for value in trace[f"M{u}"])
        for k in range(1, params.folds):
            assert all(trace[f"v{k}.{j}"][1] >> params.over_bits(k) == 0 for j in range(HALVES))
        assert trace[f"{'s' if params.above else 'd'}{HALVES - 1}"][1] >> params.high_bits == 0


@pytest.mark.parametrize("p", [P, SMALL])
def test_the_corners_reach_the_edges(p):
    """The largest product of two differences, each of the largest value that fits its signed bits; the largest column
    takes its highest bit."""
    fitted = fit(p, spare=0)
    traces = [dict(fitted.trace(a, b)) for a, b in fitted.corners()]
    digit = fitted.params.digit
    assert max(max(t[f"M{u}"]) for t in traces for u in range(INTERVAL)) == ((1 << digit + 1) - 1) ** 2
    assert max(t[f"z{COUNT - 1}.{COUNT - 1}"] for t in traces).bit_length() == column_bits(digit)


def test_a_column_that_is_a_bit_narrower_is_noticed(monkeypatch):
    """The planted fault: sums modulo half of the power of 2."""
    fitted = fit(SMALL, spare=0)
    top = fitted.params.limit - 1
    assert run(fitted.component(), [(top, top)])[0][0] % SMALL == top * top % SMALL
    monkeypatch.setattr(two_level_product, "column_bits", lambda digit: column_bits(digit) - 1)
    assert run(fitted.component(), [(top, top)])[0][0] % SMALL != top * top % SMALL


@pytest.mark.parametrize("spare", [0, 20])
def test_results_wait_and_operands_pause(spare):
    fitted = fit(SMALL, spare=spare)
    pairs = operands(fitted.contract("native"), 3)
    for idle, stall in ((51, 0), (57, 23)):
        found = run_slowly(fitted.component(), pairs, idle=idle, stall=stall)
        assert [v % SMALL for v in found] == [a * b % SMALL for a, b in pairs]


@pytest.mark.parametrize(("p", "spare"), [(P, 0), (SMALL, 0), (SMALL, 20)])
def test_the_plain_form_is_canonical(p, spare):
    fitted = fit(p, spare=spare)
    pairs = [(p - 1, p - 1), (0, p - 1), (1, 1), *operands(fitted.contract("plain"), 1)]
    found = run(fitted.core("plain"), pairs)
    assert [port for port, _, _ in found] == [a * b % p for a, b in pairs]
    assert found[0][2] == fitted.contract("plain").timing.latency


def in_a_row(core, pairs):
    """Results of products that are offered without a pause."""
    found, waiting = [], list(pairs)

    async def bench(ctx):
        ctx.set(core.o_ready, 1)
        while len(found) < len(pairs):
            ctx.set(core.i_valid, bool(waiting))
            if waiting:
                ctx.set(core.i_a, waiting[0][0])
                ctx.set(core.i_b, waiting[0][1])
            if ctx.get(core.o_valid):
                found.append(ctx.get(core.o_r))
            taken = waiting and ctx.get(core.i_ready)
            await ctx.tick()
            if taken:
                waiting.pop(0)

    run_bench(core, bench)
    return found


def test_a_memory_that_keeps_too_few_products_is_noticed(monkeypatch):
    """The planted fault: what the bits above the words add is overwritten before it is added."""
    fitted = fit(SMALL, spare=20)
    pairs = operands(fitted.contract("native"), 4)

    def wrong():
        found = in_a_row(fitted.component(), pairs)
        return [v for v, (a, b) in zip(found, pairs, strict=True) if (v - a * b) % SMALL]

    assert not wrong()
    monkeypatch.setattr(top_bits, "DEPTH", 2)
    assert wrong()


def test_every_slot_is_used_and_every_word_read():
    fitted = fit(P, spare=0)
    assert fitted.cost.dsp == fitted.schedule.interval == INTERVAL == COUNT + len(PAIRS)
    assert fitted.schedule.utilisation()["pairs"] == fitted.schedule.utilisation()["squares"] == 1
    assert [belongs(u) for u in range(COUNT, INTERVAL)] == [range(i + j, i + j + 1) for i, j in PAIRS]
    assert all(word in outer(u) for word in range(COUNT) for u in read_at(word))
    cycles = [fitted.component().read_in(operand, bit) for operand in range(2) for bit in (0, fitted.params.n)]
    assert cycles == [(-9, -3), (-6, 0)] * 2
    assert fit(P, spare=2).component().read_in(0, fitted.params.n) == (-9, -9)


def test_spare_bits_are_room_for_sums():
    """An engine takes them where it needs them; those in the digits of p change nothing."""
    assert fit(P, spare=1).params == fit(P, spare=0).params
    made = ecc("secp256k1", "karatsuba-two-level")
    assert made.given == {"spare": 1}
    assert made.timing.issue_cycles == INTERVAL


@pytest.mark.parametrize(
    ("p", "message"),
    [
        (2**60 - 93, f"{BITS_MIN} to {BITS_MAX} bits, this one has 60"),
        (2**521 - 1, f"{BITS_MIN} to {BITS_MAX} bits, this one has 521"),
        (2**256 - 2**224 + 2**192 + 2**96 - 1, "has 224 bits, at most 112 are accepted"),
        (2**256 - 0x5555555555555, "has 26 signed digits, at most 16 are accepted"),
    ],
)
def test_refusals(p, message):
    with pytest.raises(UnsupportedError, match=message):
        fit(p, spare=0)
