# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""RSA on an exponentiation engine: public and private operation, CRT, blinding, and the check before release.

Private operation on x, with the Chinese remainder theorem (CRT), d_p = d mod (p - 1), d_q = d mod (q - 1):

    x'  = x r^e mod n                                      r random, if the message is blinded
    m_p = x'^(d_p + k (p - 1)) mod p, m_q likewise         k random, if the exponent is blinded
    s'  = m_q + q ((m_p - m_q) q^-1 mod p)                 recombination (Garner)
    s   = s' r^-1 mod n
    s^e = x mod n, or no result is released                detects a fault in either half and in the recombination

The engine computes the powers. The host reduces x' modulo p and q, recombines, and multiplies by r^e and r^-1 in
Python's integers; this is not part of the engine's timing.

Sources: RFC 8017, Sections 3.2 and 5; message blinding, P. Kocher: Timing Attacks on Implementations of Diffie-Hellman,
RSA, DSS, and Other Systems, CRYPTO '96, Section 10; the check, A. Lenstra: Memo on RSA signature generation in the
presence of faults, 1996.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import Protocol

from modmill.contract import Contract, Fault, UnsupportedError
from modmill.engines.ranges import require_range
from modmill.engines.rsa.exponentiation import Exponentiation, PowerProgram, fixed_window, left_to_right
from modmill.numbers.shown import shortened

BITS = range(1024, 4097)
"""Accepted lengths of a modulus, in bits."""
EXPONENT_BITS = 256
"""Maximum length of a public exponent, in bits."""


def engine_width(bits: int, crt: bool) -> int:
    """Bits of the moduli of an engine for RSA moduli of ``bits`` bits: with CRT, of their primes. Raises
    UnsupportedError for a length outside `BITS`."""
    if bits not in BITS:
        raise UnsupportedError(f"RSA moduli have {BITS[0]} to {BITS[-1]} bits, not {shortened(bits)}")
    return -(-bits // 2) if crt else bits


def require_public(e: int) -> None:
    """Raise UnsupportedError for a public exponent that is not odd or not in [3, 2^256)."""
    if e % 2 == 0 or e < 3 or e.bit_length() > EXPONENT_BITS:
        got = e if e.bit_length() <= EXPONENT_BITS else f"{e.bit_length()} bits"
        raise UnsupportedError(
            f"the public exponent must be odd, at least 3 and of at most {EXPONENT_BITS} bits, got {got}"
        )


def inverts(engine: Engine) -> int:
    """The public exponent whose inverses the secret exponents of an engine must be, because it checks powers by it or
    blinds exponents with it; 0 if the engine computes any power."""
    return getattr(engine, "inverts", 0)


@dataclass(frozen=True)
class PublicKey:
    """An odd modulus n of 1024 to 4096 bits and an odd public exponent e in [3, 2^256). Raises UnsupportedError for
    other numbers."""

    n: int
    e: int

    def __post_init__(self) -> None:
        if self.n % 2 == 0:
            raise UnsupportedError("the RSA modulus is even: it must be a product of two odd primes")
        if self.n.bit_length() not in BITS:
            raise UnsupportedError(f"the RSA modulus must have {BITS[0]} to {BITS[-1]} bits, got {self.n.bit_length()}")
        require_public(self.e)

    @property
    def bits(self) -> int:
        """Length of the modulus."""
        return self.n.bit_length()

    @property
    def size(self) -> int:
        """Length of the modulus in bytes."""
        return -(-self.bits // 8)


@dataclass(frozen=True)
class PrivateKey(PublicKey):
    """A private key with its primes. Raises UnsupportedError if the numbers are inconsistent."""

    d: int
    p: int
    q: int

    def __post_init__(self) -> None:
        super().__post_init__()
        for why in self._wrong():
            raise UnsupportedError(f"invalid private key: {why}")

    def _wrong(self) -> Iterator[str]:
        p, q, ed = self.p, self.q, self.e * self.d
        if min(p, q) < 3 or p * q != self.n:
            yield "the modulus is not the product of p and q"
        if gcd(p, q) != 1:
            yield "p and q have a common factor"
        if pow(2, p - 1, p) != 1 or pow(2, q - 1, q) != 1:
            yield "p or q is not prime"
        if ed % (p - 1) != 1 or ed % (q - 1) != 1:
            yield "d is not the inverse of e"


class Engine(Protocol):
    """Interface of an exponentiation engine to RSA."""

    def secret(self, modulus: int, pairs: Sequence[tuple[int, int]], bits: int) -> list[int]:
        """base^exponent mod modulus for each (base, exponent), exponents below 2^bits. The time depends only on
        ``bits`` and the number of pairs."""

    def public(self, modulus: int, bases: Sequence[int], exponent: int) -> list[int]:
        """base^exponent mod modulus for each base; the time may depend on the exponent."""


class Modelled:
    """An engine that interprets its programs, on a multiplier's contract or its bit-exact algorithm.

    ``fit``: function from a modulus to its contract and the bit-exact multiplication, or None for the contract only.
    ``uniform``: function that returns the program for secret exponents, the same for all of one length; its argument is
    whether the program must convert into the multiplier's domain. Public exponents: left-to-right binary.
    """

    def __init__(
        self,
        fit: Callable[[int], tuple[Contract, Callable[[int, int], int] | None]],
        uniform: Callable[[bool], PowerProgram] = lambda converted: fixed_window(5, converted),
    ) -> None:
        self._fit = lru_cache(maxsize=64)(fit)
        self._uniform = uniform
        self._made = lru_cache(maxsize=64)(self._make)

    def secret(self, modulus: int, pairs: Sequence[tuple[int, int]], bits: int) -> list[int]:
        return self._powers(modulus, pairs, bits, 0)

    def public(self, modulus: int, bases: Sequence[int], exponent: int) -> list[int]:
        return self._powers(modulus, [(base, exponent) for base in bases], exponent.bit_length(), exponent)

    def _powers(self, modulus: int, pairs: Sequence[tuple[int, int]], bits: int, exponent: int) -> list[int]:
        engine, (_, multiply) = self._made(modulus, bits, exponent), self._fit(modulus)
        return [engine.power(base, power, multiply) for base, power in pairs]

    def _make(self, modulus: int, bits: int, exponent: int) -> Exponentiation:
        contract, _ = self._fit(modulus)
        converted = contract.factor % contract.p != 1
        program = left_to_right(exponent, converted=converted) if exponent else self._uniform(converted)
        return Exponentiation(program, contract, bits)


@dataclass(frozen=True)
class Rsa:
    """The operations of RSA on an engine.

    ``crt``: compute two powers of half the length. ``blind_message``: multiply every message by a random factor.
    ``blind_exponent``: bits of the random multiple of p - 1 (of (p - 1)(q - 1) without CRT) that is added to the
    exponent, 0 for none. ``below``: function that returns a random number below its argument.
    """

    engine: Engine
    crt: bool = True
    blind_message: bool = True
    blind_exponent: int = 0
    below: Callable[[int], int] = secrets.randbelow

    def public(self, key: PublicKey, numbers: Sequence[int]) -> list[int]:
        """x^e mod n for each number. Raises UnsupportedError for one outside [0, n)."""
        require_range(numbers, key.n, f"a number must be in [0, n), n of {key.bits} bits")
        return self.engine.public(key.n, numbers, key.e)

    def private(self, key: PrivateKey, numbers: Sequence[int]) -> list[int]:
        """x^d mod n for each number; the public operation checks each before any is released. Raises UnsupportedError
        for a number outside [0, n) and an engine for another public exponent, Fault if a check fails: then no result is
        released."""
        require_range(numbers, key.n, f"a number must be in [0, n), n of {key.bits} bits")
        if (e := inverts(self.engine)) not in (0, key.e):
            raise UnsupportedError(f"this engine is for keys with the public exponent {e}; the key has {key.e}")
        factors = [self._unit(key.n) if self.blind_message else 1 for _ in numbers]
        hiding = self.engine.public(key.n, factors, key.e) if self.blind_message else factors
        hidden = [x * r % key.n for x, r in zip(numbers, hiding, strict=True)]
        p, q = key.p, key.q
        if self.crt:
            halves = (self._secret(prime, hidden, key.d, prime - 1) for prime in (p, q))
            powers = [b + q * ((a - b) * pow(q, -1, p) % p) for a, b in zip(*halves, strict=True)]
        else:
            powers = self._secret(key.n, hidden, key.d, (p - 1) * (q - 1))
        found = [s * pow(r, -1, key.n) % key.n for s, r in zip(powers, factors, strict=True)]
        if self.engine.public(key.n, found, key.e) != [x % key.n for x in numbers]:
            raise Fault("a result failed its check by the public exponent; nothing is released")
        return found

    def _unit(self, n: int) -> int:
        while True:
            r = 2 + self.below(n - 2)
            if gcd(r, n) == 1:
                return r

    def _secret(self, modulus: int, numbers: Sequence[int], exponent: int, order: int) -> list[int]:
        """Powers by the exponent modulo ``order`` plus a random multiple of it."""
        pairs = []
        for x in numbers:
            blind = self.below(1 << self.blind_exponent) if self.blind_exponent else 0
            pairs.append((x % modulus, exponent % order + order * blind))
        return self.engine.secret(modulus, pairs, modulus.bit_length() + self.blind_exponent)
