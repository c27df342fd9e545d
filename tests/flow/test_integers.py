# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Expressions of integers have the values and the ranges of what they were made from."""

import random

import pytest

from modmill.flow.integers import Integers, value

WORDS = {0: 16, 1: 7, 2: 1}


def drawn(make, rnd):
    """An expression from sums, products and cuts, and how to compute it."""
    known = {}
    found = [(make.atom(f"x{k}", 0, (1 << bits) - 1), lambda v, k=k: v[k]) for k, bits in WORDS.items()]
    for _ in range(12):
        (x, f), (y, g) = rnd.choices(found[-5:], k=2)
        c, d, k = rnd.randint(-9, 9), rnd.randint(-70000, 70000), rnd.randrange(1, 20)
        found.append(
            rnd.choice(
                [
                    (make.sum([(c, x), (d, y)]), lambda v, f=f, g=g, c=c, d=d: c * f(v) + d * g(v)),
                    (make.floor(x, k), lambda v, f=f, k=k: f(v) >> k),
                    (make.floor(make.sum([(-1, x), (d, y)]), k), lambda v, f=f, g=g, d=d, k=k: d * g(v) - f(v) >> k),
                    (make.product(x, y), lambda v, f=f, g=g: f(v) * g(v)),
                ]
            )
        )
        if len(found[-1][0].terms) > 40:
            found.pop()
    return found, known


@pytest.mark.parametrize("seed", range(40))
def test_values_and_ranges(seed):
    make, rnd = Integers(), random.Random(seed)
    found, _ = drawn(make, rnd)
    for _ in range(20):
        values = {k: rnd.choice([0, (1 << bits) - 1, rnd.getrandbits(bits)]) for k, bits in WORDS.items()}
        known = dict(values)
        for x, f in found:
            assert value(x, make.atoms, known) == f(values)
            assert x.low <= f(values) <= x.high
            low, high = make.bounds(x)
            assert low <= f(values) <= high


def test_parts_of_a_word_come_together():
    make = Integers()
    x, y = make.atom("x", 0, (1 << 34) - 1), make.atom("y", 0, (1 << 34) - 1)
    product = make.product(x, y)
    digits = [
        make.sum([(1, make.floor(v, 17 * k)), (-(1 << 17), make.floor(v, 17 * k + 17))]) for v in (x, y) for k in (0, 1)
    ]
    a, b, c, d = digits
    whole = make.sum(
        [
            (1, make.product(a, c)),
            (1 << 17, make.product(a, d)),
            (1 << 17, make.product(b, c)),
            (1 << 34, make.product(b, d)),
        ]
    )
    assert whole is product
    assert make.floor(make.sum([(1, make.floor(x, 5)), (1, make.number(3))]), 4) is make.floor(
        make.sum([(1, x), (1, make.number(96))]), 9
    )
    assert make.floor(make.sum([(-1, x)]), 3) is make.sum(
        [(-1, make.floor(make.sum([(1, x), (1, make.number(7))]), 3))]
    )


def test_bounds_need_what_a_floor_is_of():
    """x - 2^5 floor(x / 2^5) has a range of 64 bits by its terms alone."""
    make = Integers()
    x = make.atom("x", 0, (1 << 64) - 1)
    low = make.make({**x.terms, **{m: -32 * c for m, c in make.floor(x, 5).terms.items()}})
    assert low.high > 1 << 60
    assert make.bounds(low) == (0, 31)
