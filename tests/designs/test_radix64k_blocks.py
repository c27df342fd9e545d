# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Blocks for redundant digits: exhaustively or at random against numbers.redundant_digits, cycle counts included."""

import random

import pytest

from components import run_bench
from modmill.designs.radix64k.blocks import COLUMN, DigitsToBinary, Inverse, Multiples, SubtractOnce
from modmill.numbers.redundant_digits import HALF_TABLES, TABLE, Montgomery, digits, largest_spread, spread


@pytest.mark.parametrize("r", [4, 7])
def test_inverse_for_every_odd_digit(r):
    unit = Inverse(r)

    async def bench(ctx):
        for m in range(1, 1 << r, 2):
            ctx.set(unit.m, m)
            ctx.set(unit.start, 1)
            await ctx.tick()
            ctx.set(unit.start, 0)
            cycles = 1
            while not ctx.get(unit.done):
                await ctx.tick()
                cycles += 1
            assert cycles == r
            await ctx.tick()
            assert (ctx.get(unit.x) * m + 1) % (1 << r) == 0

    run_bench(unit, bench)


def read(ctx_table, words, half):
    """A bench that reads every word on both ports, in opposite orders, and every g."""

    async def bench(ctx, table=ctx_table):
        count = len(words)
        for z in range(count):
            ctx.set(table.a_address, z)
            ctx.set(table.b_address, count - 1 - z)
            ctx.set(table.g_address, z)
            if half:
                assert ctx.get(table.g_q) == words[z] % count
            await ctx.tick()
            assert ctx.get(table.a_q) == words[z]
            assert ctx.get(table.b_q) == words[count - 1 - z]

    return bench


@pytest.mark.parametrize(("way", "r"), [(TABLE, 4), (TABLE, 7), (HALF_TABLES, 8), (HALF_TABLES, 12)])
@pytest.mark.parametrize("M", [3, 97, 2**18 - 5, 2**61 - 1])
def test_tables_built_in_and_filled_hold_the_same(way, r, M):
    m = Montgomery(M, r, way)
    half = way == HALF_TABLES
    bits = r // 2 if half else r
    words = m.words(bits)
    built = Multiples(M.bit_length(), bits, fixed=m, with_g=half)
    run_bench(built, read(built, words, half))

    filled = Multiples(M.bit_length(), bits, fixed=None, with_g=half)

    async def bench(ctx):
        for again in (False, True):  # a second time over the rests of the first
            ctx.set(filled.m, M)
            for _ in range(3 if again else 0):
                await ctx.tick()
            ctx.set(filled.start, 1)
            await ctx.tick()
            ctx.set(filled.start, 0)
            cycles = 1
            while not ctx.get(filled.done):
                await ctx.tick()
                cycles += 1
            assert cycles == Multiples.cycles(M.bit_length(), bits) == 2**bits + -(-M.bit_length() // COLUMN)
            await ctx.tick()
            await read(filled, words, half)(ctx)

    run_bench(filled, bench)


def test_a_wrong_modulus_shows_in_the_table():
    m = Montgomery(97, 4, TABLE)
    table = Multiples(7, 4, fixed=Montgomery(99, 4, TABLE), with_g=False)
    with pytest.raises(AssertionError):
        run_bench(table, read(table, m.words(4), False))


def convert(unit, ports, modulus):
    """[(result, latency)] of port values one after another, taken at once."""
    out = []

    async def bench(ctx):
        ctx.set(unit.m, modulus)
        ctx.set(unit.o_ready, 1)
        for x in ports:
            ctx.set(unit.i_x, x)
            ctx.set(unit.i_valid, 1)
            while not ctx.get(unit.i_ready):
                await ctx.tick()
            await ctx.tick()
            ctx.set(unit.i_valid, 0)
            cycles = 1
            while not ctx.get(unit.o_valid):
                assert ctx.get(unit.busy)
                await ctx.tick()
                cycles += 1
            out.append((ctx.get(unit.o_r), cycles))

    run_bench(unit, bench)
    return out


@pytest.mark.parametrize(("M", "r", "d"), [(13, 4, 1), (0xFFFD, 4, 4), (2**61 - 1, 16, 4), (2**64 - 59, 16, 4)])
def test_digits_to_binary(M, r, d):
    rnd = random.Random(M)
    numbers = [0, 1, M - 1, M, M + 1, 2 * M - 2, 2 * M - 1, *(rnd.randrange(2 * M) for _ in range(20))]
    forms = [
        shape(digits(x, r, d)) for x in numbers
        for shape in (lambda v: v, lambda v: largest_spread(v, r), lambda v: spread(v, r, rnd))
    ]  # fmt: skip
    ports = [sum(x << (r + 2) * i for i, x in enumerate(form)) for form in forms]
    expected = [x % M for x in numbers for _ in range(3)]
    assert convert(DigitsToBinary(r, d, M.bit_length()), ports, M) == [(x, d + 1) for x in expected]


def test_one_subtraction():
    M = 251
    found = convert(SubtractOnce(9, 8), range(2 * M), M)
    assert found == [(x % M, 1) for x in range(2 * M)]
