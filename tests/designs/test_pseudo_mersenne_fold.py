# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Folds digit by digit against integers: back to back and with gaps, positive and negative terms, long carries."""

import random

import pytest
from arrays import simulate

from modmill.designs.pseudo_mersenne.serial_fold import SerialFold, terms
from modmill.numbers.rns.residues import signed_digits

DIGIT = 17
CONSTANTS = [1, 19, 2**16 * (2**32 + 977), 2**60 - 2**20 + 1, (1 << 34) - 1, 2**17 * 5]


def numbers(d, constant):
    """Low and high parts: ends, runs of ones that carry to the top, random ones."""
    rnd = random.Random(constant)
    n = DIGIT * d
    ends = [0, 1, (1 << n) - 1, (1 << n) - constant, (1 << n) - constant - 1, 1 << n - 1]
    found = [(low, high) for low in ends for high in (0, 1, (1 << n + 2) - 1, 1 << DIGIT)]
    return found + [(rnd.getrandbits(n), rnd.getrandbits(n + 2)) for _ in range(30)]


@pytest.mark.parametrize("constant", CONSTANTS)
@pytest.mark.parametrize("final", [False, True])
@pytest.mark.parametrize("gap", [0, 3])
def test_fold(constant, final, gap):
    d = 9
    n = DIGIT * d
    found = numbers(d, constant)
    if final:  # what is left over must fit the highest digit
        found = [(low, high % (1 << DIGIT)) for low, high in found]
    block = SerialFold(d, DIGIT, constant, DIGIT + 2, final=final, gaps=gap > 0)
    rnd = random.Random(gap)
    entering = {}
    spacing = d + gap
    for k, (low, high) in enumerate(found):
        for j in range(spacing):
            there = j < d
            top = -1 if j == d - 1 else (1 << DIGIT) - 1
            entering[k * spacing + j] = {
                "first": j == 0,
                "low": low >> DIGIT * j & (1 << DIGIT) - 1 if there else rnd.getrandbits(DIGIT),
                "high": high >> DIGIT * j & top if there else rnd.getrandbits(DIGIT),
            }
    outputs = ["o_low"] if final else ["o_low", "o_high"]
    seen = simulate(block, entering, len(found) * spacing + block.latency + d, outputs)
    for k, (low, high) in enumerate(found):
        value = low + high * constant
        at = [k * spacing + block.latency + j for j in range(d)]
        mask = (1 << DIGIT) - 1
        if final:
            assert [seen["o_low"][t] & mask for t in at[:-1]] == [value >> DIGIT * j & mask for j in range(d - 1)]
            assert seen["o_low"][at[-1]] == value >> DIGIT * (d - 1)
        else:
            assert [seen["o_low"][t] for t in at] == [value >> DIGIT * j & mask for j in range(d)]
            assert [seen["o_high"][t] for t in at] == [value >> n + DIGIT * j & mask for j in range(d)]


@pytest.mark.parametrize("constant", CONSTANTS)
def test_terms_are_the_constant(constant):
    found = terms(constant, DIGIT)
    assert sum(sign << DIGIT * a + b for a, shifts in found.items() for b, sign in shifts) == constant
    assert sum(map(len, found.values())) == len(signed_digits(constant))
    assert all(0 <= b < DIGIT for shifts in found.values() for b, _ in shifts)


def test_a_constant_as_long_as_the_number_is_refused():
    with pytest.raises(ValueError, match="the constant has 4 digits, at most 3 are accepted"):
        SerialFold(3, DIGIT, 1 << 60, 17, final=True, gaps=False)
