# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The array for whole products alone: interleaved products, digits of 17 bits and a highest one of 18."""

import random

import pytest
from arrays import simulate, traffic

from modmill.designs.pseudo_mersenne.product_array import LOW, STREAMS_MIN, ProductArray

DIGIT = 17


@pytest.mark.parametrize(("d", "streams", "interval"), [(2, 5, 2), (4, 5, 7), (15, 4, 15), (16, 5, 16), (16, 17, 16)])
def test_interleaved_products(d, streams, interval):
    rnd = random.Random(d)
    top = (1 << DIGIT * d + 1) - 1
    ends = [0, 1, top, top - 1, top >> 1, (top >> 1) + 1]
    pairs = [(x, y) for x in ends for y in ends] + [(rnd.getrandbits(DIGIT * d + 1), rnd.getrandbits(DIGIT * d + 1))]
    start = 2 * d + 40
    latency = ProductArray.latency_of(d, streams)
    entering = traffic(pairs, d, streams, interval, start)
    seen = simulate(ProductArray(d, streams), entering, start + len(pairs) * interval + latency + d, ["low", "high"])
    for n, (x, y) in enumerate(pairs):
        s = start + n * interval
        low = [seen["low"][s + LOW + i * streams] for i in range(d)]
        high = [seen["high"][s + latency + d - 1 - j] for j in range(d)]
        assert sum(digit << DIGIT * j for j, digit in enumerate(low + high)) == x * y


def test_too_few_streams_are_refused():
    with pytest.raises(ValueError, match=f"at least {STREAMS_MIN} streams, not 3"):
        ProductArray(16, STREAMS_MIN - 1)
