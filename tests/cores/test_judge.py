# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Verdicts on made-up runs: each fault gives a line, a good run none."""

from dataclasses import replace
from fractions import Fraction

import pytest

from modmill.contract import Binary, Contract, Timing
from modmill.cores.multiplier import judge
from modmill.cores.multiplier.operands import judged
from modmill.flow.simulate import Run

P = 97
CONTRACT = Contract(
    p=P, factor=3, io="native", operand=Binary(8), result=Binary(8), operand_bound=Fraction(2),
    product_bound=Fraction(4), result_bound=Fraction(3, 2), timing=Timing(5, 4, 2),
)  # fmt: skip
PRODUCTS = judged(CONTRACT, [(a, 2 * a) for a in range(12)])


def run(**changes):
    accepted = [1 + 4 * k for k in range(len(PRODUCTS))]
    valid = [c + 5 for c in accepted]
    return replace(Run([p.value for p in PRODUCTS], accepted, valid, valid, valid[-1] + 1, []), **changes)


def test_expected_products_carry_the_factor():
    assert [p.value for p in PRODUCTS] == [6 * a * a % P for a in range(12)]


def test_good_run():
    assert not list(judge.values(CONTRACT, PRODUCTS, run()))
    assert not list(judge.latency(CONTRACT, run()))
    assert not list(judge.interval(CONTRACT, run()))
    assert not list(judge.same_timing(run(), run(results=[])))


def test_result_may_be_any_number_below_the_bound():
    results = [p.value + P if p.value + P < 1.5 * P else p.value for p in PRODUCTS]
    assert results != run().results
    assert not list(judge.values(CONTRACT, PRODUCTS, run(results=results)))


def test_result_that_is_right_modulo_p_but_too_large():
    results = run().results
    results[4] += P  # 6 * 16 = 96
    assert "not below the bound 3/2 p" in next(judge.values(CONTRACT, PRODUCTS, run(results=results)))


def test_wrong_result():
    results = run().results
    results[3] ^= 1
    (line,) = judge.values(CONTRACT, PRODUCTS, run(results=results))
    assert line == "product 3: 0x3 * 0x6 gave 0x37, not congruent to 0x36"


def test_missing_results_and_violations():
    assert list(judge.values(CONTRACT, PRODUCTS, run(results=run().results[:-1]))) == ["11 results of 12 products"]
    assert list(judge.values(CONTRACT, PRODUCTS, run(results=[], violations=["timeout"]))) == ["timeout"]


def test_latency():
    late = run(valid=[*run().valid[:-1], run().valid[-1] + 1])
    assert list(judge.latency(CONTRACT, late)) == ["product 11: latency 6 cycles, the contract says 5"]


@pytest.mark.parametrize("shift", [-1, 1])
def test_interval(shift):
    valid = [*run().valid[:-1], run().valid[-1] + shift]
    (line,) = judge.interval(CONTRACT, run(valid=valid))
    assert f"came {4 + shift} cycles" in line
    assert "result 11" in line


def test_interval_lets_the_core_fill_up():
    assert not list(judge.interval(CONTRACT, run(valid=[0, *run().valid[1:]])))


@pytest.mark.parametrize("what", ["accepted", "valid", "taken"])
def test_timing_that_depends_on_operands(what):
    other = run(**{what: [*getattr(run(), what)[:7], 99, *getattr(run(), what)[8:]]})
    assert list(judge.same_timing(run(), other)) == [f"timing depends on the operands: {what} differs at product 7"]
    short = run(**{what: getattr(run(), what)[:7]})
    assert list(judge.same_timing(run(), short)) == [f"timing depends on the operands: {what} differs at product 7"]


@pytest.mark.parametrize(
    ("taken", "slot", "words"),
    [
        (lambda n: n, 0, ""),
        (lambda n: n + (n == 5), 0, "taken in cycle 1, neither at once nor at the start of a time slot of 4"),
        (lambda n: 4 * -(-n // 4), 0, ""),
        (lambda n: 4 * -(-n // 4) + 4 * (n == 6), 0, "not always taken in the next time slot of 4"),
        (lambda n: max(4, 4 * -(-n // 4)), 1, ""),
        (lambda n: max(8, 4 * -(-(n + 3) // 4)), 2, ""),
        (lambda n: 1 + 4 * -(-n // 4), 0, "taken in cycle 1, neither at once nor at the start of a time slot of 4"),
        (lambda n: max(4, 4 * -(-n // 4)) + 4 * (n == 6), 1, "not always taken in the next time slot of 4"),
    ],
)
def test_an_idle_core_takes_operands_at_once_or_in_turns(taken, slot, words):
    lines = list(judge.starts(CONTRACT, {n: taken(n) for n in range(20)}, slot))
    assert bool(lines) == bool(words)
    assert words in "".join(lines)


def test_a_core_whose_first_time_slot_comes_late_or_early_is_found():
    taken = {n: max(8, 4 * -(-(n + 3) // 4)) for n in range(20)}
    assert not list(judge.starts(CONTRACT, taken, 2))
    for slot in (1, 3):
        assert list(judge.starts(CONTRACT, taken, slot)) == [
            f"operands offered in cycle 0 were taken in cycle 8, not in cycle {4 * slot}"
        ]


def test_a_core_with_more_places_than_results_in_flight_is_found():
    accepted, taken = [0, 4, 8, 30, 34], [29, 31, 33, 40, 45]
    assert not list(judge.held(CONTRACT, run(accepted=accepted, taken=taken), 3))
    early = run(accepted=[0, 4, 8, 28, 34], taken=taken)
    assert list(judge.held(CONTRACT, early, 3)) == [
        "product 3 was taken while 3 products were in the core: it has no more places"
    ]


def test_a_core_that_could_take_operands_takes_them():
    accepted = [1, 5, 20, 24, 31]
    taken = [6, 10, 30, 31, 36]
    good = run(offered=[0, 2, 20, 21, 26], accepted=accepted, taken=taken)
    assert not list(judge.waits(CONTRACT, good)), "the last waits for the place of a result that is taken in cycle 30"
    late = replace(good, offered=[0, 2, 19, 21, 26])
    assert list(judge.waits(CONTRACT, late)) == [
        "product 2: operands were taken in cycle 20, they could be in cycle 19"
    ]
