# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Bases and exponents with which engines for powers are tried.

An engine that checks its results by an exponent e releases x^k only if x^(k e) = x mod p. So its exponents are inverses
of e modulo a multiple of the order of the base: x = h^((p - 1) / t) mod p for a random h has an order that divides t.
"""

from __future__ import annotations

import random
from functools import lru_cache
from math import gcd

from modmill.contract import UnsupportedError
from modmill.numbers.primes import is_prime

_SMALL = 1 << 13
"""Prime factors of p - 1 that are sought for short exponents are below this."""


def released(p: int, pair: tuple[int, int], e: int) -> bool:
    """Whether an engine that checks its results by ``e`` releases base^exponent mod p; always if ``e`` is 0."""
    base, exponent = pair
    return not e or pow(base, exponent * e, p) == base % p


def drawn(rnd: random.Random, p: int, bits: int, e: int, order: int = 0) -> tuple[int, int]:
    """A random base in [0, p) and an exponent of at most ``bits`` bits whose power is `released`.

    ``order``: a number t as above, coprime to e; 0: p - 1, or the largest found of at most ``bits`` bits. With a check
    and a modulus that is not prime the base is 0, 1 or p - 1.
    """
    if not e:
        return rnd.randrange(p), rnd.getrandbits(bits)
    if not is_prime(p):
        return rnd.choice((0, 1, p - 1)), rnd.getrandbits(bits) | 1
    t = order or _order(p, bits, e)
    least = pow(e, -1, t) if t > 1 else 0
    exponent = least + t * rnd.randrange(((1 << bits) - 1 - least) // t + 1)
    return pow(rnd.randrange(1, p), (p - 1) // t, p), exponent


def whole(p: int, e: int) -> bool:
    """Whether p is a prime and e has an inverse modulo p - 1, so that x^(k e) = x for a k and all x."""
    return gcd(p - 1, e) == 1 and is_prime(p)


@lru_cache(64)
def primes_for(bits: int, e: int, *but: int) -> tuple[int, ...]:
    """The largest and the least prime of ``bits`` bits of `whole`, and one between them, without those of ``but``;
    nothing for 0 bits. Raises UnsupportedError if there is none at all."""
    if not bits:
        return ()
    middle, (least, end) = random.Random(bits).getrandbits(bits) | 1 << bits - 1, (1 << bits - 1, 1 << bits)
    searches = (range(end - 1, least, -1), range(least, end), range(middle, end))
    found = [next((p for p in some if whole(p, e)), 0) for some in searches]
    if not any(found):
        raise UnsupportedError(f"no prime p of {bits} bits has a p - 1 coprime to {e}: take longer moduli")
    return tuple(dict.fromkeys(p for p in found if p and p not in but))


def prime_for(bits: int, q: int) -> int:
    """The largest prime p of ``bits`` bits with q | p - 1. Raises UnsupportedError if there is none."""
    step = 2 * q
    for p in range(((1 << bits) - 2) // step * step + 1, 1 << bits - 1, -step):
        if is_prime(p):
            return p
    raise UnsupportedError(f"no prime of {bits} bits is 1 modulo {q}: exponents must be shorter")


@lru_cache(256)
def _order(p: int, bits: int, e: int) -> int:
    """A divisor of p - 1, for a prime p, coprime to e and below 2^bits: p - 1 itself where that is possible."""
    whole = p - 1
    while (common := gcd(whole, e)) > 1:
        whole //= common
    if whole >> bits == 0:
        return whole
    found, left, factors = 1, whole, list[int]()
    for q in range(2, _SMALL):
        while left % q == 0:
            left //= q
            factors.append(q)
    for q in reversed(factors):
        if (found * q) >> bits == 0:
            found *= q
    return found
