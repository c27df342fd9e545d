# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""RSA key pairs with probable primes, tested on an exponentiation engine.

    p, q      random odd numbers of nlen / 2 bits from sqrt(2) 2^(nlen/2 - 1) on, with gcd(p - 1, e) = 1
              |p - q| > 2^(nlen/2 - 100)
    d         e^-1 mod lcm(p - 1, q - 1), above 2^(nlen/2)
    prime     Miller-Rabin with random bases b: b^m mod p by the engine, p - 1 = 2^a m, m odd; the squares after it and
              divisions by small primes on the host
    test      (x^e)^d = x for a random x, by the private operation, before the key is released

Sources: FIPS 186-5 (2023), Appendix A.1.3, probable primes, and B.3.1, Miller-Rabin; rounds for primes of a modulus of
2048, 3072 or 4096 bits, Table B.1; of 1024 bits, which FIPS 186-5 does not have, FIPS 186-4 (2013), Table C.2, for an
error probability of 2^-100.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import gcd, isqrt, lcm, prod

from modmill.contract import Fault, UnsupportedError
from modmill.engines.rsa.rsa import BITS, EXPONENT_BITS, Engine, PrivateKey, Rsa, inverts
from modmill.numbers.primes import is_prime
from modmill.numbers.shown import shortened

ROUNDS = {3072: 4, 2048: 5, BITS[0]: 7}
"""Bits of a modulus -> rounds of Miller-Rabin for its primes, for this length and longer ones, the longest first."""
EXPONENTS = range((1 << 16) + 1, 1 << EXPONENT_BITS, 2)
"""Accepted public exponents."""
_APART = 100
_TRIES = 5
"""Candidates for each bit of the modulus after which the search for a prime ends."""
_SMALL = 1 << 12


def generate(rsa: Rsa, bits: int, e: int = EXPONENTS[0]) -> PrivateKey:
    """A key pair with a modulus of ``bits`` bits, tested by its private operation. Random numbers come from
    ``Rsa.below``.

    Raises UnsupportedError for an odd number of bits, one outside `BITS` and an exponent outside `EXPONENTS`, Fault if
    no prime is found or the new pair fails its test.
    """
    _require(bits, e)
    p = _prime(rsa, bits, e, 0)
    while True:
        key = accepted(bits, e, p, _prime(rsa, bits, e, p))
        if key is not None:
            return tested(rsa, key)


def accepted(bits: int, e: int, p: int, q: int) -> PrivateKey | None:
    """The key pair of two primes, or None if d is not above 2^(nlen/2): then other primes are needed."""
    d = pow(e, -1, lcm(p - 1, q - 1))
    return PrivateKey(p * q, e, d, p, q) if d >> bits // 2 else None


def tested(rsa: Rsa, key: PrivateKey) -> PrivateKey:
    """Return the key if it passes the test of pairwise consistency; raises Fault if not."""
    x = 2 + rsa.below(key.n - 3)
    (hidden,) = rsa.public(key, [x])
    if hidden == x or rsa.private(key, [hidden]) != [x]:
        raise Fault("the new key pair failed its test: a number is not the same after both operations")
    return key


def candidate(bits: int, e: int, p: int, other: int = 0) -> bool:
    """Whether a number may be tested as a prime of a modulus of ``bits`` bits: its range, its distance from the
    ``other`` prime if there is one, and gcd(p - 1, e)."""
    low = p % 2 == 0 or p.bit_length() != bits // 2 or p * p < 1 << bits - 1
    near = other > 0 and abs(p - other) <= 1 << bits // 2 - _APART
    return not low and not near and gcd(p - 1, e) == 1


def probable_prime(engine: Engine, w: int, rounds: int, below: Callable[[int], int]) -> bool:
    """Whether an odd number w > 4 passes ``rounds`` rounds of Miller-Rabin with random bases; the engine computes the
    powers. One round runs first, because it excludes nearly every composite number. Raises UnsupportedError for an
    engine for inverses of a public exponent, which the exponents of this test are not."""
    if inverts(engine):
        raise UnsupportedError(
            "this engine was built with --check-result or --random port and computes only powers of RSA keys, not "
            "those of a test of primes: make keys with an engine without them"
        )
    a = ((w - 1) & -(w - 1)).bit_length() - 1
    m = (w - 1) >> a
    for count in (1, rounds - 1):
        pairs = [(2 + below(w - 3), m) for _ in range(count)]
        if not all(_passes(z, w, a) for z in (engine.secret(w, pairs, w.bit_length()) if pairs else ())):
            return False
    return True


def rounds(bits: int) -> int:
    """Rounds of Miller-Rabin for the primes of a modulus of ``bits`` bits."""
    return next(count for least, count in ROUNDS.items() if bits >= least)


def require_exponent(e: int) -> int:
    """Return a public exponent. Raises UnsupportedError if it is outside `EXPONENTS`."""
    if e not in EXPONENTS:
        raise UnsupportedError(
            f"the public exponent of a new key must be odd, above 2^16 and below 2^{EXPONENT_BITS}, not {shortened(e)}"
        )
    return e


def _require(bits: int, e: int) -> None:
    if bits not in BITS or bits % 2:
        raise UnsupportedError(f"a new key has an even number of bits from {BITS[0]} to {BITS[-1]}, not {bits}")
    require_exponent(e)


def _prime(rsa: Rsa, bits: int, e: int, other: int) -> int:
    """A probable prime for a modulus; ``other``: the prime from which it must be far, 0 for none."""
    least = isqrt(1 << bits - 1) + 1
    for _ in range(_TRIES * bits):
        p = least + rsa.below((1 << bits // 2) - least) | 1
        small = gcd(p, _small_primes()) > 1
        if not small and candidate(bits, e, p, other) and probable_prime(rsa.engine, p, rounds(bits), rsa.below):
            return p
    raise Fault(f"no prime among {_TRIES * bits:,} candidates; the random numbers or the engine are faulty")


def _passes(z: int, w: int, a: int) -> bool:
    """Whether z = b^m shows no reason why w is composite."""
    if z == 1:
        return True
    for _ in range(a):
        if z == w - 1:
            return True
        z = z * z % w
    return False


@cache
def _small_primes() -> int:
    """Product of the small odd primes."""
    return prod(p for p in range(3, _SMALL, 2) if is_prime(p))
