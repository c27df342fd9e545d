# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The folded array alone: columns that serve several digits, loaded and fixed moduli."""

import random

import pytest
from arrays import digits, simulate

from modmill.designs.montgomery_array.array import latency
from modmill.designs.montgomery_array.folded_array import FoldedArray

DIGIT = 17


class Traffic(dict):
    """{cycle: {port: value}}; two different values for one port in one cycle are an error."""

    def put(self, cycle, **values):
        for port, value in values.items():
            assert self.setdefault(cycle, {}).get(port, value) == value, f"{port} is taken in cycle {cycle}"
            self[cycle][port] = value


@pytest.mark.parametrize(
    ("d", "columns", "groups", "streams", "interval"),
    [(4, 2, 2, 8, 11), (5, 2, 3, 5, 17), (16, 8, 2, 10, 33), (16, 4, 4, 6, 65), (16, 1, 16, 2, 257)],
)
@pytest.mark.parametrize("loaded", [False, True])
def test_interleaved_products(d, columns, groups, streams, interval, loaded):
    rnd = random.Random(d)
    modulus = rnd.getrandbits(DIGIT * d - 2) | 1 | 1 << DIGIT * d - 3
    ends = [0, 1, modulus, 2 * modulus - 1]
    pairs = [(x, y) for x in ends for y in ends][:: 1 if interval < 50 else 3]
    pairs += [(rnd.randrange(2 * modulus), rnd.randrange(2 * modulus)) for _ in range(4)]
    block = FoldedArray(d, columns, groups, streams, None if loaded else modulus)
    turn, start = groups * streams, columns + 60
    traffic = Traffic()

    def feed(number, s):
        parts = [number >> DIGIT * j & (1 << DIGIT) - 1 for j in range(columns * groups + 1)]
        traffic.put(s, x=parts[0])
        for g in range(groups):
            for p in range(1, columns + 1):
                traffic.put(s + g * streams - p, x=parts[g * columns + p])

    if loaded:
        feed(modulus, start)
        for g in range(groups):
            traffic.put(start + g * streams, load=1, group=g)
        start += interval
    for n, (x, y) in enumerate(pairs):
        s = start + n * interval
        feed(x, s)
        for i, digit in enumerate(digits(y, d)):
            traffic.put(s + i * turn, y=digit)
            for g in range(groups):
                traffic.put(s + i * turn + g * streams, group=g)
        for g in range(groups):
            traffic.put(s + g * streams, first=1)
            traffic.put(s + (d - 1) * turn + g * streams, last=1)
    first = latency(d, groups * streams, columns)
    cycles = start + len(pairs) * interval + first + turn + columns
    if loaded:
        for t in range(cycles):
            traffic.put(t, inverse=-pow(modulus, -1, 1 << DIGIT) % (1 << DIGIT))
    z = simulate(block, traffic, cycles, ["z"])["z"]
    for n, (x, y) in enumerate(pairs):
        at = start + n * interval + first
        s = sum(
            z[at + g * streams + columns - p] << DIGIT * (g * columns + p - 1)
            for g in range(groups)
            for p in range(1, columns + 1)
        )
        assert s < 2 * modulus
        assert (s << DIGIT * d) % modulus == x * y % modulus


def test_refusals():
    with pytest.raises(ValueError, match="2 groups of 7 columns do not hold 16 digits"):
        FoldedArray(16, 7, 2, 20)
    with pytest.raises(ValueError, match="more than 8 streams"):
        FoldedArray(16, 8, 2, 8)
    with pytest.raises(ValueError, match="at least 15 / 4, not 3"):
        FoldedArray(4, 1, 4, 3)
