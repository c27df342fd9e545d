# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Quotient pipelining: against the algorithm on plain integers, all operands of a small case, columns and bounds."""

import random

import pytest
from bench import judge_all, operands

from marks import long
from modmill.contract import UnsupportedError
from modmill.designs import design
from modmill.designs.orup import CARRY, Kind
from modmill.numbers.moduli import parse_modulus


def fit(p, **settings):
    return design("orup").fit(p, **settings)


def plain(a, b, M, k, d, n):
    """The published algorithm on integers, without columns."""
    unit = 1 << k * (d + 1)
    scaled = -pow(M, -1, unit) % unit * M
    bar = (scaled + 1) // unit
    s, q = 0, []
    for i in range(n + d + 1):
        q.append(s % (1 << k))
        s = (s >> k) + (q[i - d] if i >= d else 0) * bar + (b >> k * i) % (1 << k) * a
    return (s << k * d) + sum(q[n + 1 + j] << k * j for j in range(d)), scaled


@pytest.mark.parametrize("d", [0, 1, 2, 3, 4])
@pytest.mark.parametrize(("p", "k"), [(97, 5), (2**61 - 1, 17), (parse_modulus("P-256").value, 17)])
def test_columns_equal_the_plain_algorithm(p, k, d):
    fitted = fit(p, digit=k, delay=d)
    q = fitted.params
    for a, b in operands(fitted.contract("native"), 20) + fitted.corners():
        *_, (_, v) = fitted.trace(a, b)
        expected, scaled = plain(a, b, p, k, d, q.n)
        assert v == expected < 2 * scaled
        assert v * fitted.R % p == a * b % p


@pytest.mark.parametrize("p", [3, 5, long(7)])
def test_all_operands_in_the_machine(p):
    judge_all(fit(p, digit=2, delay=1), 3)


def test_columns_stay_within_their_bits():
    rnd = random.Random(1)
    fitted = fit(2**64 - 59, digit=4, delay=3)
    top = fitted.contract("native").largest_operand
    largest = 0
    for a, b in [(top, top), *((top - rnd.getrandbits(9), top - rnd.getrandbits(9)) for _ in range(300))]:
        for name, columns in fitted.trace(a, b):
            if fitted.schedule[name].does.kind in (Kind.ITERATION, Kind.SHIFT):
                largest = max(largest, *columns)
    assert 1 << 4 + CARRY - 1 <= largest < 1 << 4 + CARRY, "a carry of another width would do"


def test_cycles_and_blocks_for_256_bits():
    fitted = fit(parse_modulus("secp256k1").value)
    q = fitted.params
    assert (q.n, q.d, q.iterations) == (20, 3, 24)
    assert fitted.schedule.interval == q.iterations
    assert fitted.cost.dsp == 20 + 16
    assert fitted.contract("native").closed


def test_the_loop_closes_only_with_4_Mt_below_2_to_the_k_n():
    """The largest operands give an operand; in the algorithm with one digit less they do not."""
    fitted = fit(2**64 - 59, digit=8, delay=1)
    q, top = fitted.params, fitted.contract("native").largest_operand
    assert top == 2 * fitted.scaled - 1
    assert 4 * fitted.scaled < fitted.R < 4 * fitted.scaled << q.k
    assert fitted.multiply(top, top) <= top
    assert plain(top, top, fitted.p, q.k, q.d, q.n - 1)[0] > top


def test_refusals():
    with pytest.raises(UnsupportedError, match="digit takes a whole number from 2 to 17, not 18"):
        fit(97, digit=18)
    with pytest.raises(UnsupportedError, match="delay takes one of 0, 1, 2, 3, 4"):
        fit(97, delay=5)
    with pytest.raises(UnsupportedError, match="built in"):
        fit(97).at(95)
