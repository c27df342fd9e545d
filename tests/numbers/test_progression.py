# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Multiples of a number in an interval modulo another."""

import random

import pytest

from modmill.numbers.progression import first_within


@pytest.mark.parametrize("n", range(1, 15))
def test_the_least_multiple_is_found_in_every_case(n):
    for step in range(2 * n):
        for low in range(n):
            for length in range(1, n + 2):
                least = next((t for t in range(n) if (step * t - low) % n < length), None)
                assert first_within(step, n, low, length) == least


def test_long_numbers():
    rnd = random.Random(1)
    n = 1 << 1100
    for _ in range(50):
        step, low = rnd.randrange(1, n, 2), rnd.randrange(n)
        t = first_within(step, n, low, n >> 17)
        assert (step * t - low) % n < n >> 17
        assert all((step * k - low) % n >= n >> 17 for k in range(min(t, 1000)))
