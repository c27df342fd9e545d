# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""New key pairs of elliptic curves: random private keys, public keys by the engine, and a test of each pair.

    Weierstrass   d random in [1, n), Q = d G      a signature by d is verified with Q
    Edwards       a random seed                    a signature by the seed is verified
    Montgomery    a random private key             two pairs agree on one secret, each with the other's public key

Sources: FIPS 186-5 (2023), Appendix A.2.2, testing candidates; RFC 8032, Section 5.1.5; RFC 7748, Section 5; tests of
pairwise consistency, FIPS 140-3 implementation guidance, 10.3.A.
"""

from __future__ import annotations

from modmill.contract import Fault
from modmill.engines.ecc import ecdsa, eddsa
from modmill.engines.ecc.blinding import Ecc, require_weierstrass
from modmill.engines.ecc.ecdh import exchange_u, public_u
from modmill.engines.ecc.keys import Key
from modmill.numbers.curves.affine import Edwards, Montgomery
from modmill.numbers.curves.encoding import edwards_size, encode_sec1

_MESSAGE = b"test of a new key pair"


def generate(ecc: Ecc, count: int = 1) -> list[Key]:
    """``count`` new key pairs on the engine's curve; random numbers come from ``Ecc.below``. Each pair is tested before
    any is released.

    Raises Fault if a test fails, UnsupportedError for a curve for arithmetic only and for an engine without the
    operations of a signature, which the test needs.
    """
    curve = ecc.curve
    if isinstance(curve, Montgomery):
        return _montgomery(ecc, curve, count)
    if isinstance(curve, Edwards):
        return _edwards(ecc, curve, count)
    weierstrass = require_weierstrass(curve)
    scalars = [1 + ecc.below(curve.n - 1) for _ in range(count)]
    points = ecc.multiply_base(scalars)
    signatures = ecdsa.sign(ecc, [(d, _MESSAGE) for d in scalars])
    items = [(Q, _MESSAGE, signature) for Q, signature in zip(points, signatures, strict=True)]
    _require(all(ecdsa.verify(ecc, items)))
    size = -(-curve.n.bit_length() // 8)
    return [
        Key(curve, d.to_bytes(size, "big"), encode_sec1(weierstrass, Q)) for d, Q in zip(scalars, points, strict=True)
    ]


def _edwards(ecc: Ecc, curve: Edwards, count: int) -> list[Key]:
    seeds = [_bytes(ecc, edwards_size(curve)) for _ in range(count)]
    publics = eddsa.public(ecc, seeds)
    signatures = eddsa.sign(ecc, [(seed, _MESSAGE) for seed in seeds])
    _require(all(eddsa.verify(ecc, [(A, _MESSAGE, one) for A, one in zip(publics, signatures, strict=True)])))
    return [Key(curve, seed, public) for seed, public in zip(seeds, publics, strict=True)]


def _montgomery(ecc: Ecc, curve: Montgomery, count: int) -> list[Key]:
    keys = [_bytes(ecc, curve.size) for _ in range(count + 1)]
    publics = public_u(ecc, keys)
    forth = exchange_u(ecc, [(secret, publics[-1]) for secret in keys[:-1]])
    back = exchange_u(ecc, [(keys[-1], public) for public in publics[:-1]])
    _require(forth == back)
    return [Key(curve, secret, public) for secret, public in zip(keys[:-1], publics[:-1], strict=True)]


def _require(consistent: bool) -> None:
    if not consistent:
        raise Fault("a new key pair failed its test: its halves do not belong together; nothing is released")


def _bytes(ecc: Ecc, size: int) -> bytes:
    return ecc.below(1 << 8 * size).to_bytes(size, "little")
