# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The row of processing elements: all operands of small moduli, and the cycles in both regimes."""

import pytest
from bench import judge_all, operands, run

from modmill.contract import UnsupportedError
from modmill.designs import design


def fit(p, **settings):
    return design("tenca-koc").fit(p, **settings)


@pytest.mark.parametrize(
    ("p", "w", "pes", "subtract"),
    [(3, 1, 1, True), (5, 2, 1, True), (7, 1, 2, False), (9, 3, 3, True), (13, 2, 4, True), (15, 1, 1, False)],
)
def test_all_operands_in_the_machine(p, w, pes, subtract):
    judge_all(fit(p, w=w, pes=pes, subtract=subtract), step=1 if subtract else 5)


@pytest.mark.parametrize(
    ("bits", "w", "pes", "cycles"),
    [
        (256, 16, 16, 16 * 33 + 17 - 2),  # k (2 P + 1) + e - 2
        (256, 16, 8, 32 * 18 + 2 * 7),  # k (e + 1) + 2 (P - 1)
        (256, 8, 16, 16 * 34 + 2 * 15),
        (256, 32, 1, 256 * 10),
        (1024, 32, 64, 16 * 129 + 33 - 2),
    ],
)
def test_cycles_follow_the_formula(bits, w, pes, cycles):
    q = fit((1 << bits) - 1, w=w, pes=pes).params
    assert q.cycles == cycles
    assert q.cycles == (q.passes - 1) * q.period + 2 * (q.pes - 1) + q.e + 1


@pytest.mark.parametrize(("w", "pes"), [(4, 3), (16, 2), (5, 16)])
def test_latency_is_the_formula_and_three(w, pes):
    fitted = fit(2**61 - 1, w=w, pes=pes)
    pairs = operands(fitted.contract("native"), 3)
    assert {latency for _, _, latency in run(fitted.component(), pairs)} == {fitted.params.cycles + 3}


def test_refusals():
    with pytest.raises(UnsupportedError, match="w takes a whole number from 1 to 8194, not 0"):
        fit(97, w=0)
    with pytest.raises(UnsupportedError, match="got 98"):
        fit(98)
