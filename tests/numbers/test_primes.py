# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Primes against a sieve, against published pseudoprimes, and against cryptography's own primes."""

import random
from itertools import pairwise

import pytest

from modmill.numbers.primes import is_prime, next_prime, prev_prime

LIMIT = 20_000


@pytest.fixture(scope="module")
def sieve():
    """Primality of 0 .. LIMIT-1, by Eratosthenes."""
    flags = [False, False] + [True] * (LIMIT - 2)
    for p in range(2, 142):
        for multiple in range(p * p, LIMIT, p):
            flags[multiple] = False
    return flags


def test_agrees_with_sieve(sieve):
    assert [is_prime(n) for n in range(LIMIT)] == sieve


@pytest.mark.parametrize("n", [-7, -2, -1, 0, 1])
def test_nothing_below_two_is_prime(n):
    assert not is_prime(n)


# Published: least strong pseudoprimes to the first k prime bases (OEIS A014233), Carmichael numbers, strong Lucas
# pseudoprimes (OEIS A217255).
STRONG = [2047, 1373653, 25326001, 3215031751, 2152302898747, 3474749660383, 341550071728321, 3825123056546413051]
STRONG += [318665857834031151167461, 3317044064679887385961981]
CARMICHAEL = [561, 1105, 1729, 2821, 6601, 8911, 41041, 825265, 321197185]
LUCAS = [5459, 5777, 10877, 16109, 18971, 22499, 24569, 25199, 40309, 58519, 75077, 97439, 100127, 113573, 115639]


@pytest.mark.parametrize("n", STRONG + CARMICHAEL + LUCAS)
def test_refuses_pseudoprimes(n):
    assert not is_prime(n)


@pytest.mark.parametrize("e", [89, 107, 127, 521, 607, 1279, 2203])
def test_mersenne_primes(e):
    assert is_prime(2**e - 1)


@pytest.mark.parametrize("e", [83, 97, 101, 103, 109, 113, 131, 509, 523, 1277])
def test_mersenne_composites(e):
    assert not is_prime(2**e - 1)


def test_large_products_and_squares():
    p, q = 2**127 - 1, 2**255 - 19
    for n in (p * q, p * p, q * q, p * p * q, 1009 * q):
        assert not is_prime(n)


def test_the_square_of_a_wieferich_prime_is_refused():
    assert pow(2, 1093**2 - 1, 1093**2) == 1  # it passes Miller-Rabin to base 2
    assert not is_prime(1093**2) and not is_prime(3511**2)


def test_the_same_number_always_gets_the_same_answer():
    n = 2**127 - 1
    draws = [is_prime.__wrapped__(n * q) for q in (2**89 - 1, 2**107 - 1) for _ in range(20)]
    assert not any(draws) and all(is_prime.__wrapped__(n) for _ in range(20))


def test_agrees_with_fermat_and_factors_on_random_numbers():
    source = random.Random(1)
    for bits in (80, 90, 128, 200):
        for _ in range(200):
            n = source.getrandbits(bits) | 1
            if pow(3, n - 1, n) != 1 and n % 3:
                assert not is_prime(n)
            elif n % 3:
                assert is_prime(n)  # a random Fermat pseudoprime of this size is out of reach


def test_primes_of_openssl_are_prime():
    from cryptography.hazmat.primitives.asymmetric import rsa

    numbers = rsa.generate_private_key(65537, 1024).private_numbers()
    assert is_prime(numbers.p) and is_prime(numbers.q)
    assert not is_prime(numbers.p * numbers.q)


def test_next_and_previous(sieve):
    found = [n for n in range(LIMIT) if sieve[n]]
    assert [next_prime(n) for n in range(-3, 2)] == [2] * 5
    for p, q in pairwise(found):
        assert next_prime(p) == q == next_prime(q - 1)
        assert prev_prime(q) == p == prev_prime(p + 1)
    assert next_prime(2**255 - 20) == 2**255 - 19 == prev_prime(2**255 - 18)


@pytest.mark.parametrize("n", [2, 1, 0, -5])
def test_no_prime_below_two(n):
    with pytest.raises(ValueError, match=f"no prime below {n}"):
        prev_prime(n)
