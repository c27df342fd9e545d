# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The cox-rower as a slot machine: sums of two products on numbered slots, bit by bit as the algorithm gives them."""

import random

import pytest
from bench import operands

from components import run_bench
from marks import long
from modmill.contract import UnsupportedError
from modmill.designs import design
from modmill.numbers.moduli import parse_modulus

NUMBERS = 12


def fitted(name, modulus, **settings):
    return design(name).fit(parse_modulus(modulus).value, **settings)


def simulate(machine, work, limit=20_000):
    """Do ("x", slot, number), ("i", destination, a, b[, c, e]), ("q", slot), ("k", word) in order; a step begins when
    the one before was accepted, and "wait" lets all operations end. Returns the numbers that leave."""
    seen = []

    async def bench(ctx):
        cycle = 0

        async def tick():
            nonlocal cycle
            cycle += 1
            assert cycle < limit
            assert not machine.alarm or not ctx.get(machine.o_alarm), "an alarm"
            if ctx.get(machine.o_valid):
                seen.append(ctx.get(machine.o_number))
            await ctx.tick()

        ctx.set(machine.o_ready, 1)
        names = {"i": ("destination", "a", "b", "c", "e", "sum"), "x": ("slot", "number"), "q": ("slot",), "k": ("m",)}
        for stream, *values in work:
            if stream == "wait":
                for _ in range((machine.distance + 2) * machine.interval):
                    await tick()
                continue
            if stream == "i":
                values = [*values, 1] if len(values) == 5 else [*values, 7, 8, 0]  # what is not added may be anything
            for name, value in zip(names[stream], values, strict=True):
                ctx.set(getattr(machine, f"{stream}_{name}"), value)
            ctx.set(getattr(machine, f"{stream}_valid"), 1)
            while not ctx.get(getattr(machine, f"{stream}_ready")):
                await tick()
            await tick()
            ctx.set(getattr(machine, f"{stream}_valid"), 0)
        for _ in range(4 * machine.interval):
            await tick()

    run_bench(machine, bench)
    return seen


def named_numbers(f):
    """0, A mod p and -A mod p, which make products, sums and differences."""
    form, one = f.representation, f.params.a.M % f.p
    return [form.encode(0), form.encode(one), form.encode(f.p - one)]


@pytest.mark.parametrize(
    ("modulus", "settings"),
    [("2^61-1", {}), ("2^61-1", {"check": True}), long("secp256k1", {}), long("P-256", {"check": True})],
)
@pytest.mark.parametrize("name", ["kbe", "hbe"])
def test_operations_follow_one_another_every_interval(name, modulus, settings):
    f = fitted(name, modulus, **settings)
    machine = f.slot_machine(NUMBERS)
    rnd = random.Random(name)
    contract = f.contract("native")
    held = named_numbers(f) + [a for a, _ in operands(contract, NUMBERS - 3)]
    work = [("x", slot, number) for slot, number in enumerate(held)]
    written = [-machine.distance] * NUMBERS  # the operation that wrote each slot
    for k in range(24):
        readable = [slot for slot in range(NUMBERS) if written[slot] <= k - machine.distance]
        a, b, c, e = (rnd.choice(readable) for _ in range(4))
        if k % 3 == 1:
            b, e = 1, rnd.choice((1, 2))
        destination = rnd.choice([s for s in range(3, NUMBERS) if written[s] <= k - machine.distance])
        if k % 3 == 0:
            work.append(("i", destination, a, b))
            *_, (_, held[destination]) = f.trace(held[a], held[b])
        else:
            work.append(("i", destination, a, b, c, e))
            *_, (_, held[destination]) = f.trace(held[a], held[b], held[c], held[e])
        written[destination] = k
    work += [("wait",), *(("q", slot) for slot in range(NUMBERS))]
    assert simulate(machine, work) == held


@pytest.mark.parametrize("name", ["kbe", "hbe"])
def test_products_sums_and_differences(name):
    f = fitted(name, "2^61-1")
    form, p, radix = f.representation, f.p, f.params.a.M
    _, one, minus, x, y, out = range(6)
    top = f.contract("native").largest_operand
    operations = [
        (out, x, y),
        (out + 1, x, one, y, one),
        (out + 2, x, one, y, minus),
        (out + 3, y, minus),
    ]
    for u, v in ((5, 7), (top, top), (0, top), (1, p - 1)):
        work = [("x", slot, number) for slot, number in enumerate([*named_numbers(f), form.encode(u), form.encode(v)])]
        work += [*(("i", *op) for op in operations), ("wait",), *(("q", out + k) for k in range(4))]
        numbers = [form.decode(port) for port in simulate(f.slot_machine(NUMBERS), work)]
        assert [x % p for x in numbers] == [u * v * pow(radix, -1, p) % p, (u + v) % p, (u - v) % p, -v % p]
        assert all(x < f.bounds[2] * p for x in numbers)


def test_an_operation_that_comes_too_early_reads_the_old_number():
    f = fitted("hbe", "2^61-1")
    machine = f.slot_machine(NUMBERS)
    form = f.representation
    numbers = [*named_numbers(f), form.encode(3), form.encode(5), form.encode(7)]
    square = ("i", 5, 3, 3)
    others = [("i", 6, 0, 0)] * (machine.distance - 2)
    work = [*(("x", k, v) for k, v in enumerate(numbers)), square, *others, ("i", 7, 5, 1), ("wait",), ("q", 7)]
    (early,) = simulate(machine, work)
    work = [
        *(("x", k, v) for k, v in enumerate(numbers)),
        square,
        *others,
        others[0],
        ("i", 7, 5, 1),
        ("wait",),
        ("q", 7),
    ]
    (late,) = simulate(f.slot_machine(NUMBERS), work)
    radix = f.params.a.M
    assert form.decode(late) % f.p == 9 * pow(radix, -1, f.p) % f.p
    assert early != late, "the distance could be smaller"


def test_the_modulus_is_loaded():
    f = fitted("hbe", "2^61-1", loadable=True, interval=20)
    other = f.at(2**60 + 33)
    work, expected = [], []
    for g in (f, other, f):
        x, y = (g.representation.encode(v) for v in (123456789, 987654321))
        work += [*(("k", word) for word in g.slot_machine(3).modulus_words), ("x", 0, x), ("x", 1, y)]
        work += [("i", 2, 0, 1, 0, 0), ("wait",), ("q", 2), ("wait",)]
        expected.append(dict(g.trace(x, y, x, x))["out"])
    assert simulate(f.slot_machine(3), work) == expected
    assert expected[0] != expected[1], "the modulus made no difference"


def test_refusals():
    with pytest.raises(UnsupportedError, match="interval takes 0 or 20 to"):
        fitted("hbe", "2^61-1", loadable=True, interval=19)
    with pytest.raises(UnsupportedError, match="1024"):
        fitted("kbe", "secp256k1").slot_machine(600)
    short = fitted("kbe", "2^61-1", interval=19)
    with pytest.raises(
        UnsupportedError,
        match=r"^interval = 19 does not serve n = 4: there is no schedule with interval 19; take 21 or 0, the least$",
    ):
        short.slot_machine(4)
    with pytest.raises(UnsupportedError, match="channel: 16, not 8"):
        fitted("kbe", "secp256k1", rowers=8).slot_machine(4)
