# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Numbers as digits: from a port, through a memory, and to a port."""

import random

import pytest

from components import run_bench
from modmill.rtl.digits import LANES, MEMORY, DigitMemory, Results, Scan


@pytest.mark.parametrize("digits", [4, 5, 8, 16, 61])
@pytest.mark.parametrize("extra", [-3, 1])
@pytest.mark.parametrize("downward", [False, True])
def test_scan_back_to_back(digits, extra, downward):
    """The highest digit has 14 or 18 bits. A number may change in the cycle after its last digit was read."""
    rnd = random.Random(digits)
    width = 17 * digits + extra
    order = range(digits)[::-1] if downward else range(digits)
    block = Scan(width, 17, order)
    numbers = [rnd.getrandbits(width) for _ in range(5)]
    seen = []

    async def bench(ctx):
        for t in range(-1, digits * (len(numbers) + 1)):
            ctx.set(block.go, (t + 1) % digits == 0)
            ctx.set(block.number, numbers[t // digits] if 0 <= t < digits * len(numbers) else rnd.getrandbits(width))
            seen.append(ctx.get(block.digit))
            await ctx.tick()

    run_bench(block, bench)
    wanted = [
        number >> 17 * j & ((1 << 17) - 1 if j < digits - 1 else -1) for number in numbers for j in order
    ]  # digit n of a number whose go came in cycle -1 is seen in cycle n + 1
    assert seen[2 : 2 + len(wanted)] == wanted


@pytest.mark.parametrize("digits", [4, 5, 16])
@pytest.mark.parametrize("sooner", [0, 1])
def test_scan_after_a_reset(digits, sooner):
    """Whatever was under way, a number that begins CLEAR cycles after the reset is right; a cycle sooner it may not."""
    width = 17 * digits
    block = Scan(width, 17, range(digits))
    begin = Scan.CLEAR - sooner
    number = random.Random(digits).getrandbits(width)
    seen = []

    async def bench(ctx):
        ctx.set(block.go, 1)  # before the reset and during it, for as long as anything takes to leave
        for _ in range(2 * digits):
            await ctx.tick()
        for t in range(begin + digits + 2):
            ctx.set(block.go, t == begin)
            ctx.set(block.number, number)
            seen.append(ctx.get(block.digit))
            await ctx.tick()

    run_bench(block, bench)
    wanted = [number >> 17 * j & (1 << 17) - 1 for j in range(digits)]
    assert (seen[begin + 2 :] == wanted) == (not sooner)


@pytest.mark.parametrize("digits", [4, 5, 15, 61])
@pytest.mark.parametrize("late", [0, 1])
def test_a_digit_is_read_in_one_cycle(digits, late):
    """Each digit is right at the port in that cycle alone; a cycle later (the planted fault) nothing is read of it."""
    rnd = random.Random(digits)
    width = 17 * digits + 1
    block = Scan(width, 17, range(digits))
    mask = (1 << width) - 1
    number = rnd.getrandbits(width)
    digit_masks = [(1 << 17) - 1 << 17 * j if j < digits - 1 else mask >> 17 * j << 17 * j for j in range(digits)]
    seen = []

    async def bench(ctx):
        for t in range(-1, 2 * digits):
            right = sum(digit_masks[n] for n in range(digits) if Scan.read_in(n) + late == t)
            ctx.set(block.go, t == -1)
            ctx.set(block.number, number & right | ~number & mask & ~right)
            seen.append(ctx.get(block.digit))
            await ctx.tick()

    run_bench(block, bench)
    wanted = [number >> 17 * j & ((1 << 17) - 1 if j < digits - 1 else -1) for j in range(digits)]
    assert (seen[2 : 2 + digits] == wanted) == (not late)


@pytest.mark.parametrize(("digits", "numbers"), [(4, 2), (16, 32), (61, 32), (121, 32)])
def test_memory(digits, numbers):
    rnd = random.Random(digits)
    block = DigitMemory(17, digits, numbers)
    held, due = {}, {}

    async def bench(ctx):
        for t in range(3000):
            place = rnd.randrange(numbers), rnd.randrange(digits)
            word = rnd.getrandbits(17)
            asked = rnd.choice(list(held)) if held else None
            ctx.set(block.w_number, place[0])
            ctx.set(block.w_digit, place[1])
            ctx.set(block.w_d, word)
            ctx.set(block.w_enable, 1)
            if asked and asked != place:
                ctx.set(block.r_number, asked[0])
                ctx.set(block.r_digit, asked[1])
                due[t + MEMORY] = held[asked]
            if t in due:
                assert ctx.get(block.q) == due[t]
            await ctx.tick()
            held[place] = word

    run_bench(block, bench)
    assert len(due) > 2000


@pytest.mark.parametrize(
    ("digits", "lanes"), [(4, LANES), (5, LANES), (16, LANES), (31, LANES), (5, 4), (7, 4), (9, 4), (9, 8)]
)
@pytest.mark.parametrize("rising", [False, True])
@pytest.mark.parametrize("stall", [0.0, 0.8])
def test_results_in_order_and_at_their_spacing(digits, lanes, rising, stall):
    rnd = random.Random(digits)
    room, spacing = 20, max(digits, Results.spacing(digits, lanes))
    width = 17 * digits + 1
    block = Results(17, digits, width, room, rising=rising, lanes=lanes)
    numbers = [rnd.getrandbits(width) for _ in range(room)]
    places = range(digits) if rising else range(digits)[::-1]
    taken, valid = [], []

    async def bench(ctx):
        waiting = False
        for t in range(spacing * (room + 2) + 4000 * (stall > 0)):
            k, n = divmod(t - 1, spacing)
            ctx.set(block.coming, t % spacing == 0 and t // spacing < room)
            number = numbers[k] if 0 <= k < room and n < digits else rnd.getrandbits(width)
            place = places[min(n, digits - 1)]
            ctx.set(block.digit, number >> 17 * place & ((1 << 17) - 1 if place < digits - 1 else -1))
            ready = rnd.random() >= stall
            ctx.set(block.o_ready, ready)
            if ctx.get(block.o_valid):
                if not waiting:
                    valid.append(t)
                assert ctx.get(block.o_r) == numbers[len(taken)]
                if ready:
                    taken.append(t)
            waiting = bool(ctx.get(block.o_valid)) and not ready
            if len(taken) == room:
                return
            await ctx.tick()

    run_bench(block, bench)
    assert len(taken) == room
    if not stall:
        first = digits + Results.latency_of(digits, lanes=lanes)
        assert valid == [first + spacing * k for k in range(room)]


@pytest.mark.parametrize(("digits", "lanes"), [(11, LANES), (15, LANES), (16, LANES), (31, LANES), (7, 4), (9, 4)])
def test_digits_of_a_result_stand_until_the_next_one_comes(digits, lanes):
    rnd = random.Random(digits)
    room = 8
    width = 17 * digits + 1
    block = Results(17, digits, width, room, rising=True, lanes=lanes)
    numbers = [rnd.getrandbits(width) for _ in range(room)]
    valid, ports = [], []

    async def bench(ctx):
        ctx.set(block.o_ready, 1)
        for t in range(digits * (room + 4)):
            k, n = divmod(t - 1, digits)
            ctx.set(block.coming, t % digits == 0 and t // digits < room)
            number = numbers[k] if 0 <= k < room else 0
            ctx.set(block.digit, number >> 17 * n & ((1 << 17) - 1 if n < digits - 1 else -1))
            if ctx.get(block.o_valid):
                valid.append(t)
            ports.append(ctx.get(block.o_r))
            await ctx.tick()

    run_bench(block, bench)
    assert len(valid) == room
    for number, following, t in zip(numbers, numbers[1:], valid, strict=False):
        for place in range(digits):
            stands = Results.stands(digits, place, digits, lanes)
            held = [port >> 17 * place & (1 << 17) - 1 for port in ports[t : t + stands + 2]]
            assert held == [number >> 17 * place & (1 << 17) - 1] * (stands + 1) + [
                following >> 17 * place & (1 << 17) - 1
            ]
