# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Redundant radix-2^r numbers: every lemma against Python's integers, every digit bound proved and shown tight."""

import itertools
import random
from fractions import Fraction

import pytest

from modmill.numbers.redundant_digits import (
    HALF_TABLES,
    MULTIPLIERS,
    TABLE,
    Montgomery,
    Radix,
    digits,
    exponentiation_cycles,
    largest_spread,
    least_r,
    multiplications,
    printed_product,
    spread,
    theorem_9,
    value,
)

SECP256K1 = 2**256 - 2**32 - 977
WAYS = [MULTIPLIERS, TABLE, HALF_TABLES]


def some(r, d, rnd, count=300):
    """Digit vectors: at the ends, and random ones with many digits at their ends."""
    full = (1 << (r + 2)) - 1
    ends = [0, 1, (1 << r) - 1, 1 << r, full - 1, full]
    yield from [(e,) * d for e in ends]
    for _ in range(count):
        yield tuple(rnd.choice([*ends, rnd.randrange(full + 1)]) for _ in range(d))


# ---------------------------------------------------------------------------------------------- lemmas 1 to 4


def lemma_1(radix, d):
    return radix.add((radix.full,) * d, (radix.full,) * d)


def lemma_2(radix, d):
    return radix.scale((radix.full,) * d, radix.full)


def lemma_3(radix, d):
    return radix.product_sum((radix.full,) * d, radix.full, (radix.full,) * (d + 1))


@pytest.mark.parametrize(("lemma", "least"), [(lemma_1, 2), (lemma_2, 3), (lemma_3, 4)])
def test_least_r_by_interval_arithmetic(lemma, least):
    assert least_r(lambda r: Radix(r).fits(lemma(Radix(r, largest=True), 5))) == least
    assert all(Radix(r).fits(lemma(Radix(r, largest=True), d)) for r in (least, 16, 19) for d in (1, 2, 3, 64))


@pytest.mark.parametrize("r", [1, 2])
def test_lemma_1_exhaustively(r):
    radix = Radix(r)
    every = list(itertools.product(range(radix.full + 1), repeat=2))
    fits = True
    for x, y in itertools.product(every, every):
        z = radix.add(x, y)
        assert value(z, r) == value(x, r) + value(y, r)
        fits &= radix.fits(z)
    assert fits == (r >= 2)


@pytest.mark.parametrize("r", [2, 3])
def test_lemma_2_exhaustively(r):
    """At r = 2 some product does not fit; at r = 3 each one does."""
    radix = Radix(r)
    fits = True
    for y in range(radix.full + 1):
        for x in itertools.product(range(radix.full + 1) if r == 2 else (0, 1, 7, 8, 15, 30, 31), repeat=3):
            s = radix.scale(x, y)
            assert value(s, r) == value(x, r) * y
            fits &= radix.fits(s)
    assert fits == (r >= 3)
    if r == 3:  # every value that a digit of the product can take
        products = [(a * y, b * y, c * y) for y in range(32) for a in range(32) for b in range(32) for c in (0, 7, 31)]
        assert max((a >> 6) + (b >> 3 & 7) + (c & 7) for a, b, c in products) < 32


def test_lemma_3_needs_r_4_and_no_more():
    found = max(
        (radix.product_sum(x, y, c) for radix in [Radix(3)] for y in (29, 30, 31)
         for x in itertools.product((26, 29, 30, 31), repeat=3) for c in [(31, 7, 31, 7), (31,) * 4, (7, 31, 7, 31)]),
        key=max,
    )  # fmt: skip
    assert not Radix(3).fits(found), "a digit of r = 3 overflows"
    rnd = random.Random(3)
    for r in (4, 5, 16):
        radix = Radix(r)
        for x, c in zip(some(r, 4, rnd), some(r, 5, rnd), strict=True):
            for y in (0, 1, radix.full, rnd.randrange(radix.full + 1)):
                t = radix.product_sum(x, y, c)
                assert value(t, r) == value(x, r) * y + value(c, r)
                assert radix.fits(t)


@pytest.mark.parametrize("r", [4, 5, 16])
@pytest.mark.parametrize("d", [1, 2, 7])
def test_lemma_4(r, d):
    rnd = random.Random(r * d)
    radix = Radix(r)
    for x, y in zip(some(r, d, rnd, 60), some(r, d, rnd, 60), strict=True):
        p = radix.product(x, y)
        assert len(p) == 2 * d + 1 and radix.fits(p)
        assert value(p, r) == value(x, r) * value(y, r)


def test_representations():
    rnd = random.Random(5)
    for r, d in ((4, 3), (16, 16)):
        for _ in range(50):
            n = rnd.randrange(1 << (r * d + 1))
            canonical = digits(n, r, d)
            for x in (canonical, spread(canonical, r, rnd), largest_spread(canonical, r)):
                assert value(x, r) == n and Radix(r).fits(x)
    assert digits(1 << 10, 4, 2) == (16, 63) and digits(63 * 17, 4, 2) == (63, 63)
    for x in (63 * 17 + 1, -1):
        with pytest.raises(ValueError, match=f"{x} does not fit in 2 digits of 6 bits"):
            digits(x, 4, 2)


# ---------------------------------------------------------------------------------------------- Montgomery


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("M", "r"), [(3, 4), (13, 4), (2**61 - 1, 8), (SECP256K1, 16), (2**521 - 1, 10)])
def test_montgomery(way, M, r):
    for operand in (2, 4):
        m = Montgomery(M, r, way, operand)
        rnd = random.Random(M % 1009)
        limit = operand * M
        numbers = [0, 1, M - 1, M, limit - 1, limit - 2, *(rnd.randrange(limit) for _ in range(12))]
        t_limit, c_limit = m.digit_limits()
        assert Radix(r).fits(t_limit) and Radix(r).fits(c_limit) and max(c_limit) <= 3 << r
        for x, y in zip(numbers, reversed(numbers), strict=True):
            for a, b in (
                (digits(x, r, m.d), largest_spread(digits(y, r, m.d), r)),
                (spread(digits(x, r, m.d), r, rnd), spread(digits(y, r, m.d), r, rnd)),
            ):
                for t, c in m.steps(a, b):
                    assert all(map(int.__le__, t, t_limit)) and all(map(int.__le__, c, c_limit))
                    assert value(c, r) <= m.sum_limit()
                out = m.multiply(a, b)
                assert value(out, r) % M == x * y * pow(m.R, -1, M) % M
                assert value(out, r) < limit and Radix(r).fits(out)
            assert m.plain(x, y) % M == x * y * pow(m.R, -1, M) % M and m.plain(x, y) < limit
            assert max(c for _, c in m.plain_steps(x, y)) <= m.sum_limit(redundant=False)


@pytest.mark.parametrize("way", WAYS)
def test_operands_beyond_the_range_whose_product_is_in_it(way):
    """Every digit of x at its largest: no sum overflows, and a y small enough gives a result in range."""
    for M, r in ((2**61 - 1, 8), (SECP256K1, 16), (2**64 - 59, 4)):
        m = Montgomery(M, r, way)
        x = ((1 << (r + 2)) - 1,) * m.d
        y = digits((4 * M * M - 1) // value(x, r), r, m.d)
        t_limit, c_limit = m.digit_limits()
        for a, b in ((x, y), (y, x), (x, largest_spread(y, r)), (x, (x[0], *(0,) * (m.d - 1)))):
            for t, c in m.steps(a, b):
                assert all(map(int.__le__, t, t_limit)) and all(map(int.__le__, c, c_limit))
                assert value(c, r) <= m.sum_limit()
            out = value(m.multiply(a, b), r)
            assert out < 2 * M and out * m.R % M == value(a, r) * value(b, r) % M


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("M", [3, 5, 11, 13, 15])
def test_closed_loop_exhaustively_at_one_digit(way, M):
    """Every pair of operands below 2 M at r = 4: two iterations, every digit fits, every result is below 2 M."""
    m = Montgomery(M, 4, way)
    assert (m.d, m.n) == (1, 2 if M > 4 else 1)
    for x, y in itertools.product(range(2 * M), repeat=2):
        (out,) = m.multiply((x,), (y,))
        assert out < 2 * M and out * m.R % M == x * y % M


def test_redundant_and_plain_results_are_the_same_number():
    m = Montgomery(2**61 - 1, 16)
    rnd = random.Random(8)
    for _ in range(100):
        x, y = rnd.randrange(2 * m.M), rnd.randrange(2 * m.M)
        assert value(m.multiply(digits(x, 16, m.d), digits(y, 16, m.d)), 16) == m.plain(x, y)


def test_a_shorter_modulus_on_the_same_machine():
    """Sizes of 61 bits, M of few: what a core does whose modulus is loaded."""
    for way in WAYS:
        for M in (3, 97, 2**60 + 33):
            m = Montgomery(M, 8, way, bits=61)
            assert (m.d, m.n) == (8, 8)
            for x, y in ((2 * M - 1, 2 * M - 1), (M, 1), (0, M)):
                out = value(m.multiply(digits(x, 8, 8), digits(y, 8, 8)), 8)
                assert out < 2 * M and out * m.R % M == x * y % M


def test_iterations_are_the_fewest():
    """One iteration fewer leaves the range somewhere: x = y = 2 M - 1 with the modulus of all ones."""
    for M, r, n in ((2**256 - 1, 16, 17), (2**254 - 1, 16, 16), (2**255 - 1, 16, 17), (2**64 - 1, 16, 5)):
        assert Montgomery(M, r).n == n
        assert Montgomery(M, r).result_below(Fraction(4)) <= 2
        assert Fraction(4 * M, 1 << (r * (n - 1))) + 1 > 2


@pytest.mark.parametrize("feedback", [False, True])
def test_last_multiplication_by_one_gives_at_most_M(feedback):
    m = Montgomery(SECP256K1, 16, feedback=feedback)
    for x in (0, 1, m.M, 2 * m.M - 1, m.R % m.M, m.R % m.M + m.M):
        assert value(m.multiply(digits(x, 16, 16), digits(1, 16, 16)), 16) <= m.M


# ---------------------------------------------------------------------------------------------- with feedback


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("M", [3, 5, 7, 9, 11, 13, 15])
def test_feedback_exhaustively_at_one_digit(way, M):
    """r = 4, one iteration: every pair of operands below 2 M gives a result below 2 M."""
    m = Montgomery(M, 4, way, feedback=True)
    assert m.n == 1 and m.rest == {2: 0, 3: 1, 4: 2}[M.bit_length()]
    for x, y in itertools.product(range(2 * M), repeat=2):
        (out,) = m.multiply((x,), (y,))
        assert out < 2 * M and out * m.R % M == x * y % M and m.plain(x, y) == out


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("r", [4, 8, 16])
def test_feedback_at_every_length(way, r):
    """Moduli up to 2^(r d) - 1 on machines of their own length and of one more; every digit fits its bound."""
    rnd = random.Random(r)
    for bits in range(2, 3 * r + 2):
        for M in {(1 << bits) - 1, (1 << (bits - 1)) + 1, rnd.getrandbits(bits) | 1 | 1 << (bits - 1)}:
            m = Montgomery(M, r, way, bits=bits + bits % 2, feedback=True)
            assert m.n == m.d and m.rest <= 2 and m.R >= 4 * M
            t_limit, c_limit = m.digit_limits()
            for x, y in ((2 * M - 1, 2 * M - 1), (M, M), (0, 1), (rnd.randrange(2 * M), rnd.randrange(2 * M))):
                a, b = spread(digits(x, r, m.d), r, rnd), largest_spread(digits(y, r, m.d), r)
                *before, (t, c) = m.steps(a, b)
                assert all(map(int.__le__, t, t_limit)) and all(map(int.__le__, c, m.last_limits()))
                assert all(all(map(int.__le__, c, c_limit)) for _, c in before)
                out = m.joined(c)
                assert Radix(r).fits(out) and value(out, r) < 2 * M and value(out, r) * m.R % M == x * y % M
                assert m.plain(x, y) == value(out, r)


def test_feedback_without_the_last_bits_leaves_the_range():
    """With d iterations only, a modulus near 2^(r d) gives 2 M and more."""
    m = Montgomery(2**64 - 1, 16, feedback=True)
    x = digits(2 * m.M - 1, 16, 4)
    c = (0,) * 5
    for digit in x:
        _, c = m.iterate(c, x, digit)
    assert value(c, 16) >= 2 * m.M > value(m.last(c), 16)


@pytest.mark.parametrize("M", [97, 2**61 - 1, SECP256K1])
def test_half_tables_cancel(M):
    m = Montgomery(M, 8, HALF_TABLES)
    for z in range(1 << 8):
        u, v = m.addends(z)
        assert (z + u + v) % (1 << 8) == 0 and u + v == m.k(z) * M


def test_tables_hold_the_multiples_without_what_is_known():
    m = Montgomery(SECP256K1, 16, HALF_TABLES)
    words = m.words(8)
    assert len(words) == 256 and max(words) < 1 << 256
    for z, word in enumerate(words):
        assert (word << 8) + -z % 256 == m.multiple(z, 8)


@pytest.mark.parametrize("r", [2, 5])
def test_sums_divided_by_2_r_lose_nothing(r):
    """Also for redundant bits in the highest digit, which no product has."""
    radix, rnd = Radix(r), random.Random(r)
    for t in some(r, 4, rnd):
        u, (_, *high) = (tuple(rnd.randrange(1 << r) for _ in t[1:]) for _ in "uv")
        v = (-(t[0] + u[0]) % (1 << r), *high)
        carry = sum(radix.low(n[0]) for n in (t, u, v)) >> r
        assert value(radix.reduce(t, u, v, carry), r) << r == sum(value(n, r) for n in (t, u, v))
        assert value(radix.three(v, t, u, carry), r) << r == sum(value(n, r) for n in (t, u, v))


def test_adders_of_theorem_9_give_the_same_numbers():
    """Also the erratum to Lemma 6: the least significant digit is not zero but 0, 2^r or 2 2^r, and all three occur."""
    rnd = random.Random(9)
    seen = set()
    for r in (4, 16):
        m = Montgomery((1 << 4 * r) - 5, r)
        radix = Radix(r)
        for _ in range(200):
            x, y = (spread(digits(rnd.randrange(2 * m.M), r, m.d), r, rnd) for _ in range(2))
            c = (0,) * (m.d + 1)
            for digit in (*y, 0):
                z = radix.low(radix.scale(x, digit)[0]) + radix.low(c[0])
                seen.add((z + m.addends(z % (1 << r))[0] % (1 << r)) >> r)
                here, c = theorem_9(m, c, x, digit), m.iterate(c, x, digit)[1]
                assert radix.fits(here) and value(here, r) == value(c, r)
                c = here
    assert seen == {0, 1, 2}


def test_random_chains_refute_the_printed_rule_and_not_the_corrected_one():
    rnd = random.Random(77)
    wrong = {True: 0, False: 0}
    for _ in range(1500):
        M = rnd.getrandbits(12) | 1 | 1 << 11
        m = Montgomery(M, 4)
        for corrected in (True, False):
            R = m.R if corrected else 1 << 12
            x = y = digits(rnd.randrange(M), 4, 3)
            for _ in range(12):
                product = m.multiply(x, y) if corrected else printed_product(m, x, y)
                if value(product, 4) * R % M != value(x, 4) * value(y, 4) % M:
                    wrong[corrected] += 1
                    break
                x, y = y, product
    assert wrong[True] == 0 and wrong[False] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((98, 16), "98"),
        ((1, 16), "1"),
        ((97, 3), "r = 3"),
        ((97, 5, HALF_TABLES), "r = 5"),
        ((97, 8, TABLE, 1), "1"),
        ((97, 8, TABLE, 2, 1, 6), "below 2\\^6, got one of 7 bits"),
        ((97, 8, TABLE, 3, 1, 7, True), "with feedback, operand must be 2, got 3"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(ValueError, match=message):
        Montgomery(*arguments)


# ---------------------------------------------------------------------------------------------- exponentiation


def exponentiate(P, E, m, bits):
    """Section 4 on redundant numbers; the power, and how many multiplications it took."""
    count = 0

    def mul(x, y):
        nonlocal count
        count += 1
        return m.multiply(x, y)

    one, square = (digits(m.R**k % m.M, m.r, m.d) for k in (1, 2))
    c, p = one, mul(digits(P, m.r, m.d), square)
    for i in reversed(range(bits)):
        c = mul(c, c)
        if E >> i & 1:
            c = mul(c, p)
    c = mul(c, digits(1, m.r, m.d))
    return value(c, m.r), count


def test_multiplications_are_those_of_the_algorithm():
    m = Montgomery(2**61 - 1, 16)
    rnd = random.Random(2)
    for bits, E in ((17, 65537), (20, rnd.getrandbits(20)), (64, 2**64 - 1), (5, 0)):
        P = rnd.randrange(m.M)
        power, count = exponentiate(P, E, m, bits)
        assert power == pow(P, E, m.M) and count == multiplications(E, bits)
        assert multiplications(E, bits) - multiplications(E, bits, skip_one=True) == bits - max(E.bit_length() - 1, 0)


def test_theorem_11():
    exact = [exponentiation_cycles(multiplications((1 << R) - 1, R), R // 16) for R in (64, 128, 256, 512, 1024)]
    assert exact == [659, 2339, 8771, 33923, 133379]
    for R, cycles in zip((64, 128, 256, 512, 1024), exact, strict=True):
        assert cycles == (2 * R + 4) * (R // 16 + 1) - 1
    plain = [exponentiation_cycles(Fraction(3 * R, 2) + 2, R // 16, redundant=False) for R in (64, 128, 256, 512, 1024)]
    assert plain == [490, 1746, 6562, 25410, 99970]  # printed 480 and 25344


def test_rsa_with_a_short_exponent():
    assert exponentiation_cycles(multiplications(65537, 17), 64) == 1494
    assert exponentiation_cycles(multiplications(65537, 17, skip_one=True), 64) == 1429  # printed: less than 1430
