# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The last subtraction, digit by digit, against integers: all around M, both orders, built-in and written moduli."""

import random

import pytest
from arrays import digits, simulate

from modmill.rtl.conditional_subtract import LEAD, ConditionalSubtract

DIGIT = 17


@pytest.mark.parametrize("d", [2, 4, 5, 16])
@pytest.mark.parametrize("gap", [0, 2])
@pytest.mark.parametrize("rising", [False, True])
@pytest.mark.parametrize("written", [False, True])
def test_reduced(d, gap, rising, written):
    rnd = random.Random(d)
    for modulus in ((1 << DIGIT * d - 1) - 1, (1 << DIGIT * (d - 1)) + 1, rnd.getrandbits(DIGIT * d - 1) | 1):
        values = [0, 1, modulus - 1, modulus, modulus + 1, 2 * modulus - 1]
        values += [v for j in range(d) for v in (modulus + (1 << DIGIT * j), modulus - (1 << DIGIT * j)) if v >= 0]
        values = [v for v in values if v < 2 * modulus] + [rnd.randrange(2 * modulus) for _ in range(20)]
        parts = digits(modulus, d)
        block = ConditionalSubtract(DIGIT, d, [] if written else parts, rising=rising)
        start, spacing = 2 * d + LEAD, d + gap
        entering = {j: {"w_digit": j, "w_enable": written, "w_d": parts[j]} for j in range(d)}
        for k, value in enumerate(values):
            first = start + k * spacing
            entering.setdefault(first - LEAD, {})["coming"] = 1
            for n, digit in enumerate(digits(value, d) if rising else digits(value, d)[::-1]):
                entering.setdefault(first + n, {})["digit"] = digit
        latency = ConditionalSubtract.latency_of(d)
        seen = simulate(block, entering, start + len(values) * spacing + latency + d, ["out"])["out"]
        for k, value in enumerate(values):
            at = start + k * spacing + latency
            assert seen[at : at + d] == digits(value % modulus, d), hex(value)
