# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The two conversions as blocks of their own."""

import random
from itertools import islice

import pytest

from components import run_bench
from modmill.contract import UnsupportedError
from modmill.numbers.moduli import parse_modulus
from modmill.numbers.rns.residues import Base, mersenne_like, pseudo_mersenne
from modmill.rtl.convert import BinaryToResidues, ResiduesToBinary, ScaledResidues, ToBinary
from modmill.rtl.product import BLOCKS


def run(block, name, values, wait=0):
    """[(result, latency)]; the consumer waits ``wait`` cycles with each result, which must stay."""
    out = []

    async def bench(ctx):
        for value in values:
            ctx.set(getattr(block, name), value)
            ctx.set(block.i_valid, 1)
            while not ctx.get(block.i_ready):
                await ctx.tick()
            cycles = 0
            while cycles == 0 or not ctx.get(block.o_valid):
                await ctx.tick()
                ctx.set(block.i_valid, 0)
                cycles += 1
                assert cycles < 2000
            result = ctx.get(block.o_r)
            for _ in range(wait):
                await ctx.tick()
                assert ctx.get(block.o_valid) and ctx.get(block.o_r) == result
            ctx.set(block.o_ready, 1)
            await ctx.tick()
            ctx.set(block.o_ready, 0)
            out.append((result, cycles))

    run_bench(block, bench)
    return out


BASES = [
    Base(66, tuple(islice(mersenne_like(66), 8))),
    Base(17, tuple(islice(pseudo_mersenne(17, digits=3), 31))),
    Base(14, tuple(islice(pseudo_mersenne(14), 6))),
    Base(34, tuple(islice(pseudo_mersenne(34), 4))),
]


@pytest.mark.parametrize("base", BASES, ids=lambda b: f"{b.n}x{b.w}")
@pytest.mark.parametrize("bits", [13, 66, 255, 256])
def test_binary_to_residues(base, bits):
    rnd = random.Random(bits)
    block = BinaryToResidues(base, bits)
    values = [0, 1, (1 << bits) - 1, 1 << (bits - 1), *(rnd.getrandbits(bits) for _ in range(4))]
    for x, (packed, cycles) in zip(values, run(block, "i_x", values, wait=2), strict=True):
        for j, m in enumerate(base.moduli):
            assert (packed >> (base.w * j) & ((1 << base.w) - 1)) % m == x % m
        assert cycles == block.latency


@pytest.mark.parametrize("base", BASES[1:], ids=lambda b: f"{b.n}x{b.w}")
@pytest.mark.parametrize(("bits", "dsp"), [(13, "18x18"), (60, "25x18"), (256, "18x18")])
def test_scaled_residues(base, bits, dsp):
    """The first channels have factors, the smallest and the largest among them; the others have none."""
    rnd = random.Random(bits)
    some = base.moduli[:-1]
    factors = [1, *(m - 1 for m in some[1:3]), *(rnd.randrange(1, m) for m in some[3:])]
    block = ScaledResidues(base, bits, factors, BLOCKS[dsp])
    numbers = [0, 1, (1 << bits) - 1, *(rnd.getrandbits(bits) for _ in range(4))]
    pairs = [(x, y) for x, y in zip(numbers, reversed(numbers), strict=True)]
    found = run(block, "i_x", [x | y << bits for x, y in pairs], wait=2)
    for pair, (packed, cycles) in zip(pairs, found, strict=True):
        words = [packed >> (base.w * j) & ((1 << base.w) - 1) for j in range(2 * base.n)]
        for c, x in enumerate(pair):
            own = words[c * base.n :]
            for word, m, factor in zip(own, base.moduli, [*factors, 1], strict=False):
                assert word % m == x * factor % m
        assert cycles == block.latency


def lifted(gammas, base, rnd):
    """Random representatives below 2^w."""
    top = (1 << base.w) - 1
    return [g + m * rnd.randrange((top - g) // m + 1) for g, m in zip(gammas, base.moduli, strict=True)]


@pytest.mark.parametrize(
    ("base", "p", "factor"),
    [
        (BASES[0], parse_modulus("secp256k1").value, 2),
        (BASES[0], parse_modulus("P-256").value, 100),
        (BASES[1], parse_modulus("2^255-19").value, 2),
        (BASES[2], 97, 1000),
        (BASES[3], 2**61 - 1, 3),
    ],
)
def test_residues_to_binary(base, p, factor):
    x_max = factor * p - 1
    block = ResiduesToBinary(base, p, x_max)
    rnd = random.Random(3)
    numbers = [0, 1, p - 1, p, p + 1, x_max, x_max - 1, *(rnd.randrange(x_max + 1) for _ in range(6))]
    numbers += [k * p + d for k in range(factor) for d in (0, 1, p - 1) if factor <= 3]
    packed = [sum(g << (base.w * j) for j, g in enumerate(lifted(base.gammas(x), base, rnd))) for x in numbers]
    for x, (result, cycles) in zip(numbers, run(block, "i_r", packed, wait=1), strict=True):
        assert result == x % p
        assert cycles == block.plan.latency


def test_range_that_alpha_cannot_tell_is_refused():
    base = BASES[2]
    with pytest.raises(
        UnsupportedError, match=r"cannot convert numbers of .* bits to binary exactly: take --io native"
    ):
        ToBinary(base, 97, base.M - 1)


def test_a_number_beyond_the_range_is_not_reduced():
    """The planted fault: above x_max the subtractions are too few, so the range in the docstring is needed."""
    base, p = BASES[3], 2**61 - 1
    block = ResiduesToBinary(base, p, p)
    x = 5 * p + 7
    packed = sum(g << (base.w * j) for j, g in enumerate(base.gammas(x)))
    assert run(block, "i_r", [packed])[0][0] != x % p
