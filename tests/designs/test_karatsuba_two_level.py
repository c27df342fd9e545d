# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The product on two levels and its folds, in Amaranth's simulator."""

import random

import pytest

from bench import judge, operands, run, run_slowly
from modmill.contract import UnsupportedError
from modmill.designs.karatsuba import two_level_product
from modmill.designs.karatsuba.two_level import BITS, BITS_MIN, C_BITS, fit
from modmill.designs.karatsuba.two_level_product import COUNT, DIGIT, INTERVAL, PAIRS, WIDE, belongs, outer, read_at

P, K1 = 2**255 - 19, 2**256 - 2**32 - 977


@pytest.mark.parametrize("p", [P, K1, 2**200 - 75])
def test_the_machine_computes_what_the_algorithm_computes(p):
    """Every product, column and word; the largest operands and corners."""
    fitted = fit(p)
    top, corners = fitted.params.limit - 1, fitted.corners()
    edges = [(top, top), (corners[-1]), *random.Random(1).sample(corners, 3)]
    for seen in judge(fitted, [*edges, *operands(fitted.contract("native"), 2)]):
        assert len(seen) >= len(fitted.schedule.steps) - 2 * INTERVAL


@pytest.mark.parametrize("p", [P, K1, 2**250 - 207, 2**200 - 75, 2**193 - 31])
def test_sums_of_corners_are_in_their_ranges(p):
    fitted = fit(p)
    params = fitted.params
    for a, b in [*fitted.corners(), *operands(fitted.contract("native"), 50)]:
        trace = dict(fitted.trace(a, b))
        assert trace["v"] % p == a * b % p and trace["v"] < params.bounds[-1] <= params.limit
        assert all(0 <= trace[f"z{K}.{k}"] < 1 << WIDE for K in range(2 * COUNT) for k in range(COUNT))
        assert all(abs(value) < 1 << 2 * (DIGIT + 1) for u in range(INTERVAL) for value in trace[f"M{u}"])
        assert trace["v1.0"][1] >> params.over_bits == 0 == sum(trace[f"v1.{j}"][1] for j in range(1, COUNT))
        assert trace[f"h{2 * COUNT - 1}"][0] >> params.high_bits == 0


def test_the_corners_reach_the_edges_of_the_operands_of_blocks():
    """The largest product of two differences, whose operands take all values of 18 bits with a sign; the largest
    column takes all its bits."""
    fitted = fit(P)
    traces = [dict(fitted.trace(a, b)) for a, b in fitted.corners()]
    assert max(value for trace in traces for value in trace["M0"]) == ((1 << DIGIT) - 1) ** 2
    found = {value for trace in traces for u in range(INTERVAL) for value in trace[f"M{u}"]}
    assert max(found) == ((1 << DIGIT + 1) - 1) ** 2
    assert max(trace["z3.3"] for trace in traces) >> WIDE - 1 == 1


def test_a_column_that_is_a_bit_narrower_is_noticed(monkeypatch):
    """The planted fault: sums modulo 2^35."""
    fitted = fit(P)
    top = fitted.params.limit - 1
    assert run(fitted.component(), [(top, top)])[0][0] % P == top * top % P
    monkeypatch.setattr(two_level_product, "WIDE", WIDE - 1)
    assert run(fitted.component(), [(top, top)])[0][0] % P != top * top % P


def test_results_wait_and_operands_pause():
    fitted = fit(P)
    pairs = operands(fitted.contract("native"), 4)
    for idle, stall in ((0, 0), (37, 23)):
        found = run_slowly(fitted.component(), pairs, idle=idle, stall=stall)
        assert [v % P for v in found] == [a * b % P for a, b in pairs]


@pytest.mark.parametrize("p", [P, 2**193 - 31])
def test_the_plain_form_is_canonical(p):
    fitted = fit(p)
    pairs = [(p - 1, p - 1), (0, p - 1), (1, 1), *operands(fitted.contract("plain"), 2)]
    found = run(fitted.core("plain"), pairs)
    assert [port for port, _, _ in found] == [a * b % p for a, b in pairs]
    assert found[0][2] == fitted.contract("plain").timing.latency


def test_every_slot_is_used_and_every_word_read():
    fitted = fit(P)
    assert fitted.cost.dsp == fitted.schedule.interval == INTERVAL == COUNT + len(PAIRS)
    assert fitted.schedule.utilisation()["pairs"] == fitted.schedule.utilisation()["squares"] == 1
    assert [belongs(u) for u in range(COUNT, INTERVAL)] == [range(i + j, i + j + 1) for i, j in PAIRS]
    assert all(word in outer(u) for word in range(COUNT) for u in read_at(word))
    cycles = [fitted.component().read_in(operand, bit) for operand in range(2) for bit in (0, BITS)]
    assert cycles == [(-9, -3), (-6, 0)] * 2


@pytest.mark.parametrize(
    ("p", "message"),
    [
        (2**192 - 237, f"{BITS_MIN} to {BITS} bits, this one has 192"),
        (2**521 - 1, f"{BITS_MIN} to {BITS} bits, this one has 521"),
        (2**256 - 2**224 + 2**192 + 2**96 - 1, f"has 224 bits, at most {C_BITS} are accepted"),
        (2**256 - 0x5555555555555, "has 26 signed digits, at most 16 are accepted"),
    ],
)
def test_refusals(p, message):
    with pytest.raises(UnsupportedError, match=message):
        fit(p)
