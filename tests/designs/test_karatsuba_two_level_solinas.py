# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The product on two levels with a digit-serial sparse quotient, in Amaranth's simulator."""

import random

import pytest
from bench import judge, operands, run, run_slowly

from modmill.contract import UnsupportedError
from modmill.cores.ecc.machine import ecc
from modmill.designs.karatsuba import positions, two_level_ordered
from modmill.designs.karatsuba.two_level import ABOVE_MOST, BITS_MAX, BITS_MIN, HALVES
from modmill.designs.karatsuba.two_level_product import INTERVAL
from modmill.designs.karatsuba.two_level_solinas import digit_bits, fit, room

P256 = 2**256 - 2**224 + 2**192 + 2**96 - 1
SMALL = 2**64 - 2**32 + 1
MODULI = {
    "P-256": P256, "P-224": 2**224 - 2**96 + 1, "Goldilocks": SMALL, "M61": 2**61 - 1, "M127": 2**127 - 1,
    "longer digits": 2**96 - 2**48 + 1, "secp128r1": 2**128 - 2**97 - 1,
    "five terms": 2**200 + 2**160 - 2**140 - 2**120 + 2**90 - 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("p", "spare"),
    [(P256, 0), (SMALL, 0), (SMALL, 17), (SMALL, 19), (2**61 - 1, 0), (MODULI["five terms"], 9)],
)
def test_the_machine_computes_what_the_algorithm_computes(p, spare):
    """Every product, word, half, sum and digit; the largest operands and corners; with bits above the words."""
    fitted = fit(p, spare=spare)
    top, corners = fitted.params.limit - 1, fitted.corners()
    edges = [(top, top), corners[-1], *random.Random(1).sample(corners, 2 if p > SMALL else 8)]
    for seen in judge(fitted, [*edges, *operands(fitted.contract("native"), 2)]):
        assert len(seen) == len(fitted.schedule.steps)


@pytest.mark.parametrize("left", [None, *range(ABOVE_MOST)])
@pytest.mark.parametrize("p", MODULI.values(), ids=MODULI)
def test_sums_are_within_their_ranges_and_corners_reach_the_ends(p, left):
    """Exactly, in the lower half of x y, where its digits can be chosen; results are operands again."""
    fitted = fit(p, spare=0 if left is None else room(p) - left)
    q, rnd = fitted.params, random.Random(p)
    at = q.positions
    found = [[] for _ in range(HALVES)]
    for a, b in fitted.corners() + [(rnd.randrange(q.limit), rnd.randrange(q.limit)) for _ in range(50)]:
        trace, carry = dict(fitted.trace(a, b)), 0
        for k in range(2 * HALVES + 2):
            low, high = at.ranges[k]
            assert low <= trace[f"T{k}"] + carry <= high
            if k < HALVES:
                found[k].append(trace[f"T{k}"])
            carry = trace[f"T{k}"] + carry >> at.bits
            assert at.carries[k // INTERVAL][0] <= carry <= at.carries[k // INTERVAL][1]
        assert carry == 0
        assert trace["v"] * fitted.R % p == a * b % p and trace["v"] < q.limit
    assert [(min(sums), max(sums)) for sums in found] == [at.range(k, (0, 0)) for k in range(HALVES)]


@pytest.mark.parametrize("p", MODULI.values(), ids=MODULI)
def test_sizes(p):
    """Results of the largest operands have no bits above the digits."""
    for spare in (0, room(p)):
        fitted = fit(p, spare=spare)
        q = fitted.params
        assert fitted.R.bit_length() == INTERVAL * q.bits + 1
        assert ((q.limit - 1) ** 2 + (fitted.R - 1) * p) // fitted.R < 1 << q.n and fitted.contract("native").closed
        assert q.above == (ABOVE_MOST if spare else 0)


def test_digits_are_longer_where_results_need_it():
    assert [digit_bits(2**128 - 2**e + 1) for e in (97, 102, 103)] == [9, 9, 8]
    assert digit_bits(P256) == 16


def test_every_slot_is_used():
    fitted = fit(P256, spare=0)
    assert (fitted.cost.dsp, fitted.cost.multiplications, fitted.schedule.interval) == (INTERVAL, 100, INTERVAL)
    assert fitted.schedule.utilisation()["pairs"] == fitted.schedule.utilisation()["squares"] == 1
    assert fitted.contract("native").timing.latency < 50


@pytest.mark.parametrize("spare", [0, 19])
def test_results_wait_and_operands_pause(spare):
    fitted = fit(SMALL, spare=spare)
    pairs = operands(fitted.contract("native"), 3)
    for idle, stall in ((51, 0), (57, 23)):
        found = run_slowly(fitted.component(), pairs, idle=idle, stall=stall)
        assert [v * fitted.R % SMALL for v in found] == [a * b % SMALL for a, b in pairs]


@pytest.mark.parametrize(("p", "spare"), [(P256, 0), (SMALL, 0), (SMALL, 19)])
def test_the_plain_form_is_canonical(p, spare):
    fitted = fit(p, spare=spare)
    pairs = [(p - 1, p - 1), (0, p - 1), (1, 1), *operands(fitted.contract("montgomery"), 1)]
    found = run(fitted.core("montgomery"), pairs)
    assert [port for port, _, _ in found] == [a * b * fitted.factor % p for a, b in pairs]
    assert found[0][2] == fitted.contract("montgomery").timing.latency


def wrong(fitted):
    """Whether a result of a corner is wrong."""
    pairs = fitted.corners()[-40:]
    found = run(fitted.component(), pairs)
    return any(v * fitted.R % fitted.p != a * b % fitted.p for (v, *_), (a, b) in zip(found, pairs, strict=True))


def test_words_in_the_wrong_order_are_noticed(monkeypatch):
    """The planted fault: the cycle without a word is taken to come a word later."""
    fitted = fit(SMALL, spare=0)
    assert not wrong(fitted)
    monkeypatch.setattr(two_level_ordered, "BUBBLE", two_level_ordered.BUBBLE + 1)
    assert wrong(fitted)


def test_a_carry_that_is_too_narrow_is_noticed(monkeypatch):
    """The planted fault: carries of at most one bit and a sign."""
    fitted = fit(P256, spare=0)
    assert not wrong(fitted)
    monkeypatch.setattr(positions.Positions, "carries", ((-1, 1), (-1, 1)))
    assert wrong(fitted)


def test_spare_bits_are_room_for_sums():
    """An engine takes them where it needs them."""
    made = ecc("P-256", "karatsuba-two-level-solinas")
    assert made.given == {"spare": 2}
    assert made.timing.issue_cycles == INTERVAL


@pytest.mark.parametrize(
    ("p", "message"),
    [
        (2**60 - 2**31 - 1, f"{BITS_MIN} to {BITS_MAX} bits, this one has 60"),
        (2**521 - 1, f"{BITS_MIN} to {BITS_MAX} bits, this one has 521"),
        (
            2**256 - 2**224 - 2**96 + 2**64 - 1,
            r"^p = -1 mod 2\^64; for 256 bits p = 1 or -1 mod 2\^96 at least is accepted$",
        ),
        (2**255 - 19, r"^p = 1 mod 2\^2; for 255 bits"),
        (2**256 - 2**168 + 1, r"^p must be at most 2\^256 - 2\^198, it is larger$"),
        (
            2**256 - sum(2 ** (100 + 20 * k) for k in range(6)) - 1,
            "^p [+] 1 has 7 signed digits, at most 6 are accepted$",
        ),
        (2**200 + 2**90 + 2**85 + 2**80 - 1, r"^p = -1 mod 2\^80: 4 terms 7, 3, 3, 3 digits away cannot be added"),
    ],
)
def test_refusals(p, message):
    with pytest.raises(UnsupportedError, match=message):
        fit(p, spare=0)
