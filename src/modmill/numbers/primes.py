# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Primality of integers of any size, always with the same answer for the same number.

Sources: Sorenson and Webster, "Strong pseudoprimes to twelve prime bases", Math. Comp. 86 (2017), for the bases below
3.3e24; Baillie and Wagstaff, "Lucas pseudoprimes", Math. Comp. 35 (1980), for the test above it. No composite is known
to pass the latter, which is not a proof; 24 Miller-Rabin rounds with fixed bases are added to it.
"""

import random
from functools import lru_cache
from math import gcd, isqrt, prod

_SMALL = tuple(p for p in range(2, 1000) if all(p % q for q in range(2, isqrt(p) + 1)))
_SMALL_PRODUCT = prod(_SMALL)
_PROVEN_BASES = _SMALL[:13]
_PROVEN_BELOW = 3_317_044_064_679_887_385_961_981
_ROUNDS = 24


@lru_cache(1024)
def is_prime(n: int) -> bool:
    """Say whether n is prime; any integer. Proven below 3.3e24, Baillie-PSW and 24 Miller-Rabin rounds above.

    A composite costs about one exponentiation modulo n, a prime about 30.
    """
    if n <= _SMALL[-1]:
        return n in _SMALL
    if gcd(n, _SMALL_PRODUCT) != 1:
        return False
    if n < _PROVEN_BELOW:
        return all(_is_strong_probable_prime(n, a) for a in _PROVEN_BASES)
    if not (_is_strong_probable_prime(n, 2) and _is_strong_lucas_probable_prime(n)):
        return False
    bases = random.Random(0)
    return all(_is_strong_probable_prime(n, bases.randrange(3, n - 1)) for _ in range(_ROUNDS))


def next_prime(n: int) -> int:
    """Return the smallest prime above n; any integer."""
    if n < 2:
        return 2
    n += 1 + n % 2
    while not is_prime(n):
        n += 2
    return n


def prev_prime(n: int) -> int:
    """Return the largest prime below n. Raises ValueError for n <= 2, below which there is none."""
    if n <= 2:
        raise ValueError(f"there is no prime below {n}")
    if n == 3:
        return 2
    n -= 1 + n % 2
    while not is_prime(n):
        n -= 2
    return n


def _is_strong_probable_prime(n: int, a: int) -> bool:
    """Miller-Rabin to base a, for odd n > 2 and 1 < a < n - 1: a^d = 1, or a^(d 2^r) = -1 with n - 1 = d 2^s, r < s."""
    s = ((n - 1) & (1 - n)).bit_length() - 1
    x = pow(a, (n - 1) >> s, n)
    if x in (1, n - 1):
        return True
    for _ in range(s - 1):
        x = x * x % n
        if x == n - 1:
            return True
    return False


def _is_strong_lucas_probable_prime(n: int) -> bool:
    """Strong Lucas test with Selfridge's parameters, for odd n > 2 without prime factors below 1000.

    D is the first of 5, -7, 9, -11, ... with (D/n) = -1; P = 1, Q = (1-D)/4; n + 1 = d 2^s.
    Passes when U_d = 0 or V_(d 2^r) = 0 for an r < s.
    """
    if isqrt(n) ** 2 == n:
        return False  # no D has (D/n) = -1
    D = 5
    while (j := _jacobi(D, n)) == 1:
        D = -D - 2 if D > 0 else -D + 2
    if j == 0:
        return abs(D) == n
    Q = (1 - D) // 4
    s = ((n + 1) & -(n + 1)).bit_length() - 1
    d = (n + 1) >> s
    U, V, Qk = 1, 1, Q  # U_k, V_k and Q^k for k = 1; k grows to d, bit by bit
    for bit in bin(d)[3:]:
        U, V, Qk = U * V % n, (V * V - 2 * Qk) % n, Qk * Qk % n
        if bit == "1":
            U, V, Qk = _half(U + V, n), _half(V + D * U, n), Qk * Q % n
    if U == 0 or V == 0:
        return True
    for _ in range(s - 1):
        V, Qk = (V * V - 2 * Qk) % n, Qk * Qk % n
        if V == 0:
            return True
    return False


def _half(x: int, n: int) -> int:
    """Return x/2 mod n, for odd n."""
    return (x + n if x & 1 else x) // 2 % n


def _jacobi(a: int, n: int) -> int:
    """Return the Jacobi symbol (a/n), for odd n > 0."""
    a %= n
    sign = 1
    while a:
        while a % 2 == 0:
            a //= 2
            if n % 8 in (3, 5):
                sign = -sign
        a, n = n, a
        if a % 4 == 3 and n % 4 == 3:
            sign = -sign
        a %= n
    return sign if n == 1 else 0
