# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Primes and square roots modulo primes, by PyCryptodome.

Primality follows FIPS 186-4 (2013), Appendix C.3: Miller-Rabin rounds, then a Lucas test. No composite is known to pass
both, but this is not proved. The Miller-Rabin bases come from a generator with a fixed seed, so that a number always
gets the same answer.
"""

import random
from functools import lru_cache
from math import gcd, isqrt, prod

from Crypto.Math.Numbers import Integer
from Crypto.Math.Primality import PROBABLY_PRIME, test_probable_prime

_SMALL = tuple(p for p in range(2, 1000) if all(p % q for q in range(2, isqrt(p) + 1)))
_SMALL_PRODUCT = prod(_SMALL)


@lru_cache(1024)
def is_prime(n: int) -> bool:
    """Whether the integer n is prime: proved below a million by trial division, else a probable prime."""
    if n <= _SMALL[-1]:
        return n in _SMALL
    if gcd(n, _SMALL_PRODUCT) != 1:
        return False
    return n < _SMALL[-1] ** 2 or test_probable_prime(n, random.Random(0).randbytes) == PROBABLY_PRIME


def square_root(c: int, p: int) -> int | None:
    """A root of c modulo an odd prime p, 0 <= root < p; None if c is not a square modulo p."""
    if pow(c, p >> 1, p) == p - 1:  # Euler's criterion, much faster than the library's search for a root
        return None
    try:
        return int(Integer(c % p).sqrt(p))
    except ValueError:
        return None


def next_prime(n: int) -> int:
    """The smallest prime above the integer n."""
    if n < 2:
        return 2
    n += 1 + n % 2
    while not is_prime(n):
        n += 2
    return n


def prev_prime(n: int) -> int:
    """The largest prime below n. Raises ValueError for n <= 2."""
    if n <= 2:
        raise ValueError(f"there is no prime below {n}; n must be at least 3")
    if n == 3:
        return 2
    n -= 1 + n % 2
    while not is_prime(n):
        n -= 2
    return n
