# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""EdDSA: Ed25519 and Ed448 with context and prehash, deterministic signatures and their verification.

    h = H(seed), s = clamp(first half), prefix = second half, A = s B
    r = H(dom, prefix, M) mod n,  R = r B,  k = H(dom, R, A, M) mod n,  S = r + k s mod n
    valid if S < n and h (S B - k A - R) = O

Verification uses the equation with the cofactor h. A signature by a key outside the group of prime order may be valid
here and invalid by the equation without h; for keys made as above both agree. The engine computes s B, r B and
S B + (n - k) A, the host hashes, encodings and the multiplication by h, and `Ecc.order` the arithmetic modulo n.
Ed25519 hashes with SHA-512, Ed448 with SHAKE256. A prehashed message is replaced by its SHA-512 or the first 64 bytes
of its SHAKE256.

Source: RFC 8032 (2017), Sections 5.1 and 5.2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from modmill.contract import Fault, UnsupportedError
from modmill.engines.ecc.blinding import Ecc
from modmill.numbers.curves.affine import Affine, Curve, Edwards
from modmill.numbers.curves.encoding import clamp, decode_edwards, edwards_size, encode_edwards
from modmill.numbers.curves.named import ED448, ED25519

CONTEXT = 255
"""Maximum length of a context in bytes."""


@dataclass(frozen=True)
class Scheme:
    """Ed25519 or Ed448: curve, hash, hash of prehashed messages, and the prefix ``words`` of every hash input.
    ``always``: whether the prefix is used even without context and prehash."""

    curve: Edwards
    hash: Callable[[bytes], bytes]
    prehash: Callable[[bytes], bytes]
    words: bytes
    always: bool

    def dom(self, context: bytes, prehashed: bool) -> bytes:
        """Return the start of every hash input. Raises UnsupportedError for a context that is too long."""
        if len(context) > CONTEXT:
            raise UnsupportedError(f"a context must have at most {CONTEXT} bytes, got {len(context)}")
        if not (self.always or context or prehashed):
            return b""
        return self.words + bytes([prehashed, len(context)]) + context


def _sha512(data: bytes) -> bytes:
    return hashlib.sha512(data).digest()


def _shake256(size: int) -> Callable[[bytes], bytes]:
    return lambda data: hashlib.shake_256(data).digest(size)


SCHEMES: dict[Curve, Scheme] = {
    ED25519: Scheme(ED25519, _sha512, _sha512, b"SigEd25519 no Ed25519 collisions", False),
    ED448: Scheme(ED448, _shake256(114), _shake256(64), b"SigEd448", True),
}


def public(ecc: Ecc, seeds: Sequence[bytes]) -> list[bytes]:
    """The public key of each private key. Raises UnsupportedError for a wrong length and for another curve."""
    scheme = _scheme(ecc)
    return _encoded(ecc, [_expanded(scheme, seed)[0] for seed in seeds])


def sign(ecc: Ecc, items: Sequence[tuple[bytes, bytes]], context: bytes = b"", prehashed: bool = False) -> list[bytes]:
    """The signature of each (private key, message). ``context``: for Ed25519ctx and Ed448. ``prehashed``: Ed25519ph or
    Ed448ph.

    With ``Ecc.check`` all are verified before any is released; raises Fault if one is wrong. Raises UnsupportedError
    for keys of a wrong length, a context that is too long, and a curve other than Ed25519 and Ed448.
    """
    scheme = _scheme(ecc)
    n, dom = scheme.curve.n, scheme.dom(context, prehashed)
    texts = [scheme.prehash(message) if prehashed else message for _, message in items]
    keys = [_expanded(scheme, seed) for seed, _ in items]
    publics = _encoded(ecc, [s for s, _ in keys])
    rs = [_number(scheme.hash(dom + prefix + M)) % n for (_, prefix), M in zip(keys, texts, strict=True)]
    Rs = _encoded(ecc, rs)
    ks = [_number(scheme.hash(dom + R + A + M)) % n for R, A, M in zip(Rs, publics, texts, strict=True)]
    Ss = ecc.order.multiply_adds(n, [(k, s, r) for k, (s, _), r in zip(ks, keys, rs, strict=True)])
    size = edwards_size(scheme.curve)
    signatures = [R + S.to_bytes(size, "little") for R, S in zip(Rs, Ss, strict=True)]
    if ecc.check:
        whole = [(A, m, one) for A, (_, m), one in zip(publics, items, signatures, strict=True)]
        if not all(verify(ecc, whole, context, prehashed)):
            raise Fault("a signature failed its verification; nothing is released")
    return signatures


def verify(
    ecc: Ecc, items: Sequence[tuple[bytes, bytes, bytes]], context: bytes = b"", prehashed: bool = False
) -> list[bool]:
    """Whether each (public key, message, signature) is valid; options as in `sign`. Raises UnsupportedError for a
    public key that encodes no point, a context that is too long, and a curve other than Ed25519 and Ed448."""
    scheme = _scheme(ecc)
    curve, dom = scheme.curve, scheme.dom(context, prehashed)
    size, n = edwards_size(curve), curve.n
    work: dict[int, tuple[Affine, Affine, int, int]] = {}
    for i, (key, message, signature) in enumerate(items):
        A = _decode_public(curve, key)
        if len(signature) != 2 * size or (S := _number(signature[size:])) >= n:
            continue
        try:
            R = decode_edwards(curve, signature[:size])
        except ValueError:
            continue
        M = scheme.prehash(message) if prehashed else message
        work[i] = A, R, S, _number(scheme.hash(dom + signature[:size] + key + M)) % n
    sums = ecc.multiply_two([(S, -k % n) for _, _, S, k in work.values()], [A for A, _, _, _ in work.values()])
    right = {
        i
        for (i, (_, R, _, _)), P in zip(work.items(), sums, strict=True)
        if curve.multiply(curve.h, curve.add(P, curve.negate(R))) == curve.zero
    }
    return [i in right for i in range(len(items))]


def _decode_public(curve: Edwards, key: bytes) -> Affine:
    try:
        return decode_edwards(curve, key)
    except ValueError as error:
        raise UnsupportedError(str(error)) from None


def _scheme(ecc: Ecc) -> Scheme:
    if ecc.curve not in SCHEMES:
        raise UnsupportedError(f"EdDSA is defined for Ed25519 and Ed448, not for {ecc.curve.title}")
    return SCHEMES[ecc.curve]


def _expanded(scheme: Scheme, seed: bytes) -> tuple[int, bytes]:
    """The secret scalar modulo n and the prefix of a private key."""
    size = edwards_size(scheme.curve)
    if len(seed) != size:
        raise UnsupportedError(f"a private key of {scheme.curve.title} must have {size} bytes, got {len(seed)}")
    h = scheme.hash(seed)
    return clamp(scheme.curve, _number(h[:size])) % scheme.curve.n, h[size:]


def _encoded(ecc: Ecc, scalars: Sequence[int]) -> list[bytes]:
    return [encode_edwards(_scheme(ecc).curve, P) for P in ecc.multiply_base(scalars) if P is not None]


def _number(data: bytes) -> int:
    return int.from_bytes(data, "little")
