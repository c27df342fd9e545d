# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Expressions of integers have the values and the ranges of what they were made from."""

import random

import pytest

from modmill.proofs.arithmetic.integers import Integers
from modmill.proofs.arithmetic.polynomials import value

WORDS = {0: 16, 1: 7, 2: 1}


def gate(make, found, rnd):
    """The exclusive or of two words as their sum less what both have twice, and how to compute both."""
    (x, f), (y, g) = rnd.choices([(x, f) for x, f in found if x.low >= 0 and x.high < 1 << 16], k=2)
    both = make.atom("both", 0, min(x.high, y.high))
    number = len(make.atoms) - 1
    bits = max(x.high, y.high).bit_length()
    either = make.within(make.sum([(1, x), (1, y), (-2, both)]), 0, (1 << bits) - 1)
    return number, lambda v: f(v) & g(v), (either, lambda v: f(v) ^ g(v))


def digit(make, x, low, bits):
    """Bits of a word as a number, with their range."""
    cut = make.sum([(1, make.floor(x, low)), (-(1 << bits), make.floor(x, low + bits))])
    return make.within(cut, 0, (1 << bits) - 1)


def drawn(make, rnd):
    """An expression from sums, products, gates, cuts and digits, and how to compute it; the numbers of the gates."""
    known = {}
    found = [(make.atom(f"x{k}", 0, (1 << bits) - 1), lambda v, k=k: v[k]) for k, bits in WORDS.items()]
    for _ in range(12):
        if not rnd.randrange(4):
            number, both, either = gate(make, found, rnd)
            known[number] = both
            found.append(either)
        (x, f), (y, g) = rnd.choices(found[-5:], k=2)
        c, d, k = rnd.randint(-9, 9), rnd.randint(-70000, 70000), rnd.randrange(1, 20)
        found.append(
            rnd.choice(
                [
                    (make.sum([(c, x), (d, y)]), lambda v, f=f, g=g, c=c, d=d: c * f(v) + d * g(v)),
                    (make.floor(x, k), lambda v, f=f, k=k: f(v) >> k),
                    (make.floor(make.sum([(-1, x), (d, y)]), k), lambda v, f=f, g=g, d=d, k=k: d * g(v) - f(v) >> k),
                    (make.product(x, y), lambda v, f=f, g=g: f(v) * g(v)),
                    (digit(make, x, k, d & 7 | 1), lambda v, f=f, k=k, d=d: f(v) >> k & (1 << (d & 7 | 1)) - 1),
                    (digit(make, x, 0, k), lambda v, f=f, k=k: f(v) & (1 << k) - 1),
                ]
            )
        )
        if len(found[-1][0].terms) > 40:
            found.pop()
    return found, known


@pytest.mark.parametrize("seed", range(80))
def test_values_and_ranges(seed):
    make, rnd = Integers(), random.Random(seed)
    found, gates = drawn(make, rnd)
    for _ in range(20):
        values = {k: rnd.choice([0, (1 << bits) - 1, rnd.getrandbits(bits)]) for k, bits in WORDS.items()}
        known = {**values, **{number: both(values) for number, both in gates.items()}}
        for x, f in found:
            assert value(x, make.atoms, known) == f(values)
            assert x.low <= f(values) <= x.high
            for bounds in (make.bounds, make.case_bounds):
                low, high = bounds(x)
                assert low <= f(values) <= high


def test_squares_of_bits():
    make = Integers()
    x, y = make.atom("x", 0, 1), make.atom("y", -1, 0)
    three = make.sum([(1, x), (1, y)])
    for number in (make.product(three, make.product(three, three)), make.product(make.product(y, y), y)):
        assert all(len(m) == len(set(m)) for m in number.terms)
        for a, b in ((0, 0), (1, 0), (0, -1), (1, -1)):
            assert value(number, make.atoms, {0: a, 1: b}) in ((a + b) ** 3, b**3)


def test_a_sum_is_bounded_by_what_is_known_of_the_newest_number():
    """As in carry-save: x + y - 2 both is below 2^8, so both is at least (x + y - 255) / 2."""
    make = Integers()
    x, y, both = (make.atom(name, 0, 255) for name in ("x", "y", "both"))
    make.within(make.sum([(1, x), (1, y), (-2, both)]), 0, 255)
    assert make.bounds(make.sum([(1, x), (1, y), (-2, both), (1, make.number(3))])) == (3, 258)
    assert make.bounds(make.sum([(2, both), (-1, x), (-1, y)])) == (-255, 0)


def test_cases_of_a_last_subtraction():
    """v less p if v is at least p: below p for v below 2 p, not for a v that may be larger."""
    p, k = 97, 8
    for most, end in ((2 * p, p), (2 * p + 1, p + 1)):
        make = Integers()
        v = make.atom("v", 0, most - 1)
        fits = make.floor(make.sum([(1, v), (1, make.number((1 << k) - p))]), k)
        assert make.case_bounds(make.sum([(1, v), (-p, fits)])) == (0, end - 1)


def test_a_fold_more_than_a_number_needs():
    make = Integers()
    u, bits = 433, 17
    number = make.sum([((1 << bits) - u - 2603, make.atom("x", 0, (1 << bits) - 1))])
    for _ in range(4):
        high = make.floor(number, bits)
        number = make.sum([(1, number), (u - (1 << bits), high)])
    assert (high.low, high.high) == (0, 1)
    make.floor(make.sum([(-32, high), (1, make.number(1 << 31))]), 31)  # says no more of it
    cut = make.floor(make.sum([(1, number), (1 << 30, high)]), bits)
    assert cut == make.sum([(1 << 30 - bits, high)])


def test_a_case_of_a_number_that_is_no_floor():
    make = Integers()
    x = make.atom("x", 0, 1)
    make.assume(x, 0, 1)
    assert make.bounds(x) == (1, 1)


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


def test_a_middle_term_of_karatsuba_has_the_range_of_its_digits():
    """(x0 + x1) (y0 + y1) - x0 y0 - x1 y1 = x0 y1 + x1 y0, whatever the order in which the numbers were cut."""
    make, size, rnd = Integers(), 8, random.Random(1)
    x, y = (make.atom(name, 0, (1 << 2 * size) - 1) for name in "xy")
    halves = []
    for word in (x, y):
        high = make.floor(word, size)
        low = make.within(make.sum([(1, word), (-(1 << size), high)]), 0, (1 << size) - 1)
        halves.append((low, high))
    (a, b), (c, d) = halves
    sums = [make.sum([(1, one), (1, other)]) for one, other in halves]
    middle = make.sum([(1, make.product(*sums)), (-1, make.product(a, c)), (-1, make.product(b, d))])
    most = 2 * ((1 << size) - 1) ** 2
    assert make.bounds(middle) == (0, most)
    assert make.floor(middle, 2 * size + 1) is make.number(0)
    assert make.floor(make.sum([(-1, middle)]), 2 * size).low == -2
    for _ in range(50):
        known = {0: rnd.getrandbits(2 * size), 1: rnd.getrandbits(2 * size)}
        assert 0 <= value(middle, make.atoms, known) <= most
    wrong = make.sum([(1, middle), (-1, make.product(a, d)), (1, make.product(a, c))])
    low, high = make.bounds(wrong)
    assert low <= 0 and high > (1 << 2 * size)  # a wrong pair of digits: x1 y0 + x0 y0


def test_a_sign_is_one_number_at_every_bit():
    """Bits k, k + 1, ... of a word in two's complement are equal, and so are the numbers that they are."""
    make = Integers()
    x, y = (make.atom(name, 0, 99) for name in "xy")
    apart = make.sum([(1, x), (-1, y)])
    assert make.floor(apart, 7) is make.floor(apart, 8) is make.floor(apart, 20)
    assert make.floor(apart, 6) is not make.floor(apart, 7)
    above = make.sum([(1, apart), (1, make.number(1 << 9))])
    assert make.floor(above, 9) is make.sum([(1, make.floor(apart, 7)), (1, make.number(1))])


def test_a_sign_that_is_extended_is_one_number():
    """A word less its upper bits, from -4094 to 4095, in 14 bits whose highest one is repeated."""
    make = Integers()
    number = make.product(make.atom("x", 0, 4095), make.atom("y", 0, 4095))
    upper = make.floor(number, 12)
    below = make.within(make.sum([(1, number), (-1 << 12, upper)]), 0, 4095)
    x = make.sum([(1, below), (-1, upper)])
    make.extend(x, 13)
    assert make.floor(x, 14) is make.floor(x, 13)
    other = make.sum([(1, x), (1, make.number(4094))])  # not below 0
    make.extend(other, 13)
    assert make.floor(other, 13).constant == 0
    again = Integers()
    y = again.atom("y", -1, 1)
    again.extend(y, 0)  # bit 0 is no sign
    assert again.floor(y, 0) is y


def test_the_factor_of_a_sum_gives_closer_bounds():
    """15 times the low digit of a number that comes from a floor and was cut in another way."""
    make = Integers()
    x = make.atom("x", 0, (1 << 40) - 1)
    low = make.sum([(1, make.floor(x, 8)), (-(1 << 8), make.floor(x, 16))])
    low = make.make(low.terms | {(): 3})
    assert make.bounds(make.sum([(15, low)])) == (45, 15 * 258)


def test_bounds_need_what_a_floor_is_of():
    """x - 2^5 floor(x / 2^5) has a range of 64 bits by its terms alone."""
    make = Integers()
    x = make.atom("x", 0, (1 << 64) - 1)
    low = make.make({**x.terms, **{m: -32 * c for m, c in make.floor(x, 5).terms.items()}})
    assert low.high > 1 << 60
    assert make.bounds(low) == (0, 31)
