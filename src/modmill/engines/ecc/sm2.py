# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""SM2 signatures with SM3, made and verified.

    Z = SM3(bits of ID, ID, a, b, G, Q),  e = SM3(Z, M)
    (x, y) = k G,  r = e + x mod n,  s = (1 + d)^-1 (k - r d) mod n
    valid if r and s are in [1, n), t = r + s mod n is not 0, and e + x of s G + t Q is r mod n

The engine computes k G and the sum of two multiples, the host hashes, and `Ecc.order` computes s by its operation
`signature`: with 1 + d, k and n - r as its k, z and r. Nonces are those of `ecdsa`, with HMAC-SM3 if deterministic.

Source: GB/T 32918.2-2016, Sections 6 and 7; the default ID, GM/T 0009-2012, Section 10.
"""

from __future__ import annotations

from collections.abc import Sequence

from modmill.contract import Fault, UnsupportedError
from modmill.engines.ecc.blinding import Ecc, require_point, require_scalar
from modmill.engines.ecc.ecdsa import TRIES, Signature, digest, draws
from modmill.numbers.curves.affine import Point, Weierstrass
from modmill.numbers.curves.encoding import encode_sec1
from modmill.numbers.curves.named import find_curve

HASH = "sm3"
ID = b"1234567812345678"
_ID_BITS = 1 << 16


def digest_for(curve: Weierstrass, Q: Point, message: bytes, identity: bytes = ID) -> bytes:
    """The hash e of a message, for a public point and the signer's identity. Raises UnsupportedError for an identity of
    8,192 bytes or more, and if this Python has no SM3."""
    if 8 * len(identity) >= _ID_BITS:
        raise UnsupportedError(f"an identity must have fewer than {_ID_BITS // 8:,} bytes, got {len(identity):,}")
    field = b"".join(c.to_bytes(curve.size, "big") for c in (curve.a, curve.b))
    points = b"".join(encode_sec1(curve, P)[1:] for P in (curve.base, Q))
    Z = digest(HASH, (8 * len(identity)).to_bytes(2, "big") + identity + field + points)
    return digest(HASH, Z + message)


def sign(
    ecc: Ecc, items: Sequence[tuple[int, bytes]], identity: bytes = ID, nonce: str = "deterministic"
) -> list[Signature]:
    """The signature of each (private scalar, message); ``nonce`` as in `ecdsa.sign`.

    With ``Ecc.check`` all are verified before any is released; raises Fault if one is wrong. Raises UnsupportedError
    for a scalar outside [1, n - 2], for another curve, and as `digest_for` does.
    """
    curve = _sm2(ecc)
    n, keys = curve.n, list(dict.fromkeys(d for d, _ in items))
    for d in keys:
        if require_scalar(curve, d) == n - 1:
            raise UnsupportedError(f"the private scalar of an SM2 signature must be in [1, n - 2] of {curve.title}")
    publics = dict(zip(keys, ecc.multiply_base(keys), strict=True))
    hashes = [digest_for(curve, publics[d], message, identity) for d, message in items]
    sources = [draws(ecc, d, hashed, HASH, nonce) for (d, _), hashed in zip(items, hashes, strict=True)]
    found: list[Signature] = [(0, 0)] * len(items)
    for _ in range(TRIES):  # r, s or r + k is zero with probability of about 1 / n
        todo = [i for i, signature in enumerate(found) if not all(signature)]
        if not todo:
            break
        ks = [next(sources[i]) for i in todo]
        xs = [P[0] if P else 0 for P in ecc.multiply_base(ks)]
        rs = [(int.from_bytes(hashes[i], "big") + x) % n for i, x in zip(todo, xs, strict=True)]
        ds = [items[i][0] for i in todo]
        ss = ecc.order.signatures(n, [(1 + d, k, -r % n, d) for k, r, d in zip(ks, rs, ds, strict=True)])
        for i, k, r, s in zip(todo, ks, rs, ss, strict=True):
            found[i] = (r, s) if (r + k) % n else (0, 0)
    else:
        raise Fault(f"r, s or r + k was zero in {TRIES} tries; nothing is released")
    whole = [(publics[d], message, one) for (d, message), one in zip(items, found, strict=True)]
    if ecc.check and not all(verify(ecc, whole, identity)):
        raise Fault("a signature failed its verification; nothing is released")
    return found


def verify(ecc: Ecc, items: Sequence[tuple[Point, bytes, Signature]], identity: bytes = ID) -> list[bool]:
    """Whether each (public point, message, signature) is valid. Raises UnsupportedError for an invalid public point,
    for another curve, and as `digest_for` does."""
    curve = _sm2(ecc)
    n = curve.n
    for Q in {Q for Q, _, _ in items}:
        require_point(curve, Q)
    hashes = [int.from_bytes(digest_for(curve, Q, message, identity), "big") for Q, message, _ in items]
    good = [i for i, (_, _, (r, s)) in enumerate(items) if 0 < r < n and 0 < s < n and (r + s) % n]
    both = [(s, (r + s) % n) for r, s in (items[i][2] for i in good)]
    points = ecc.multiply_two(both, [items[i][0] for i in good])
    right = {
        i for i, P in zip(good, points, strict=True) if P is not None and (hashes[i] + P[0]) % n == items[i][2][0]
    }  # fmt: skip
    return [i in right for i in range(len(items))]


def _sm2(ecc: Ecc) -> Weierstrass:
    curve = ecc.curve
    if curve != find_curve("SM2") or not isinstance(curve, Weierstrass):
        raise UnsupportedError(f"SM2 signatures need the curve SM2, not {curve.title}")
    return curve
