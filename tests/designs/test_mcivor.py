# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The bit-serial multiplier: all operands of small moduli, and N + O(1) cycles."""

import pytest
from bench import judge_all

from modmill.contract import UnsupportedError
from modmill.designs import design


def fit(p, **settings):
    return design("mcivor").fit(p, **settings)


@pytest.mark.parametrize(
    ("p", "word", "subtract"), [(3, 1, True), (5, 2, True), (7, 3, False), (9, 32, True), (13, 2, True), (15, 4, False)]
)
def test_all_operands_in_the_machine(p, word, subtract):
    judge_all(fit(p, word=word, subtract=subtract), step=1 if subtract else 5)


@pytest.mark.parametrize("bits", [64, 256, 1024])
def test_n_cycles_and_the_additions(bits):
    fitted = fit((1 << bits) - 1)
    words = -(-(bits + 1) // 32)
    assert fitted.schedule.interval == bits + words
    assert fitted.schedule.latency == bits + 2 * words + 3
    assert fitted.cost.dsp == 0


def test_same_residues_as_one_step_a_clock():
    p = 2**61 - 1
    other = design("multistep").fit(p, s=1)
    assert fit(p).factor == other.factor
    for x, y in fit(p).corners()[:40]:
        assert fit(p).multiply(x, y) == other.multiply(x, y)


def test_refusals():
    with pytest.raises(UnsupportedError, match="word takes a whole number from 1 to 8194, not 0"):
        fit(97, word=0)
    with pytest.raises(UnsupportedError, match="got 98"):
        fit(98)
