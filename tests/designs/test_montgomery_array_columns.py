# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The Montgomery array alone: interleaved products, loaded and fixed moduli, and the inverse."""

import random

import pytest
from arrays import digits, simulate, traffic

from components import run_bench
from marks import long
from modmill.designs.montgomery_array.array import STREAMS_MIN, MontgomeryArray, NegativeInverse, latency

DIGIT = 17


def products(d, modulus, seed=1, count=24):
    """Operands at the ends of [0, 2 M) and at random."""
    rnd = random.Random(seed)
    ends = [0, 1, modulus - 1, modulus, 2 * modulus - 1]
    return [(x, y) for x in ends for y in ends] + [
        (rnd.randrange(2 * modulus), rnd.randrange(2 * modulus)) for _ in range(count)
    ]


def results(block, pairs, d, streams, interval, loaded=None):
    start = 2 * d + 40
    entering = traffic(pairs, d, streams, interval, start)
    if loaded is not None:
        s = start - interval
        for j, digit in enumerate(digits(loaded, d)):
            entering.setdefault(s - j, {})["x"] = digit
        entering[s]["load"] = 1
        inverse = -pow(loaded, -1, 1 << DIGIT) % (1 << DIGIT)
        for cycle in range(start + len(pairs) * interval + d * streams + 100):
            entering.setdefault(cycle, {})["inverse"] = inverse
    cycles = latency(d, streams, d)
    seen = simulate(block, entering, start + len(pairs) * interval + cycles + d, ["z", "z_first"])
    assert [t for t, flag in enumerate(seen["z_first"]) if flag] == [
        start + n * interval + cycles for n in range(len(pairs))
    ]
    first = [start + n * interval + cycles for n in range(len(pairs))]
    return [sum(seen["z"][t + d - 1 - j] << DIGIT * j for j in range(d)) for t in first]


@pytest.mark.parametrize(
    ("d", "streams", "interval", "loaded"),
    [
        *((*shape, loaded) for shape in [(2, 15, 2), (3, 16, 3), (4, 15, 7), (4, 17, 5)] for loaded in (False, True)),
        *(long(16, 15, 16, loaded) for loaded in (False, True)),
    ],
)
def test_interleaved_products(d, streams, interval, loaded):
    rnd = random.Random(d)
    bits = DIGIT * d - 2
    for modulus in ((1 << bits) - 1, (1 << bits - 1) + 1, rnd.getrandbits(bits) | 1):
        pairs = products(d, modulus)
        block = MontgomeryArray(d, streams, None if loaded else modulus)
        found = results(block, pairs, d, streams, interval, modulus if loaded else None)
        for (x, y), z in zip(pairs, found, strict=True):
            assert z < 2 * modulus
            assert (z << DIGIT * d) % modulus == x * y % modulus


def test_a_wrong_inverse_is_found():
    """The planted fault: m' of another modulus."""
    d, modulus = 4, (1 << 66) - 5
    pairs = products(d, modulus)
    block = MontgomeryArray(d, 15, modulus)
    block.head.constants = (block.head.constants[0], block.head.constants[1] ^ 2)
    found = results(block, pairs, d, 15, 7)
    assert any((z << DIGIT * d) % modulus != x * y % modulus for (x, y), z in zip(pairs, found, strict=True))


def test_refusals():
    with pytest.raises(ValueError, match=f"at least {STREAMS_MIN} streams, not 14"):
        MontgomeryArray(16, STREAMS_MIN - 1)
    with pytest.raises(ValueError, match="at least 2 digits, not 1"):
        MontgomeryArray(1, 15)


def test_negative_inverse_of_every_kind_of_digit():
    rnd = random.Random(3)
    values = [1, 3, (1 << DIGIT) - 1, (1 << DIGIT - 1) + 1, *(rnd.getrandbits(DIGIT) | 1 for _ in range(40))]
    block = NegativeInverse()

    async def bench(ctx):
        for value in values:
            ctx.set(block.m, value)
            ctx.set(block.start, 1)
            await ctx.tick()
            ctx.set(block.m, rnd.getrandbits(DIGIT))
            ctx.set(block.start, 0)
            for _ in range(DIGIT):
                await ctx.tick()
            for _ in range(3):
                assert (value * ctx.get(block.inverse) + 1) % (1 << DIGIT) == 0
                await ctx.tick()

    run_bench(block, bench)
