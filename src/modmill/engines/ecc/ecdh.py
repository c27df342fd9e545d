# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Key agreement: ECDH on Weierstrass curves, X25519 and X448 on Montgomery curves.

    ECDH      Z = x of d Q                  SEC 1 v2.0, Section 3.3.1 (the cofactor is 1, or Q is in <G>)
    X         u of clamp(k) P               RFC 7748, Section 5

Public points of ECDH are validated (SEC 1, Section 3.2.2.1). X25519 and X448 accept every u. If the result is zero,
the peer has sent a point of small order; by default such a secret is refused (RFC 7748, Section 6).
"""

from __future__ import annotations

from collections.abc import Sequence

from modmill.contract import UnsupportedError
from modmill.engines.ecc.blinding import Ecc, require_point, require_scalar, require_weierstrass
from modmill.numbers.curves.affine import Montgomery, Point
from modmill.numbers.curves.encoding import clamp, decode_u, encode_u


def exchange(ecc: Ecc, items: Sequence[tuple[int, Point]]) -> list[bytes]:
    """The shared secret of each (d, Q): an x-coordinate, big-endian, as many bytes as p has.

    Raises UnsupportedError for d outside [1, n - 1], for a public point that is neutral, off the curve or outside the
    group, and for a curve of another form.
    """
    curve = require_weierstrass(ecc.curve)
    scalars = [require_scalar(curve, d) for d, _ in items]
    points = [require_point(curve, Q) for _, Q in items]
    shared = ecc.multiply(scalars, points)
    if None in shared:
        raise UnsupportedError("the shared point is the point at infinity")
    return [P[0].to_bytes(curve.size, "big") for P in shared if P]


def exchange_u(ecc: Ecc, items: Sequence[tuple[bytes, bytes]], *, allow_zero: bool = False) -> list[bytes]:
    """X25519 or X448, according to the engine's curve: the shared secret of each (private key, public key), in bytes.

    Raises UnsupportedError for a key of wrong length, for a curve of another form and, unless ``allow_zero``, for an
    all-zero secret.
    """
    curve = _montgomery(ecc)
    scalars = [_scalar(curve, secret) for secret, _ in items]
    found = ecc.ladder(scalars, [_u(curve, public) for _, public in items], curve.bits)
    if not allow_zero and 0 in found:
        raise UnsupportedError("the shared secret is zero: the public key is a point of small order")
    return [encode_u(curve, u) for u in found]


def public_u(ecc: Ecc, secrets: Sequence[bytes]) -> list[bytes]:
    """The public keys of X25519 or X448 private keys. Raises UnsupportedError for a key of wrong length."""
    curve = _montgomery(ecc)
    return exchange_u(ecc, [(secret, encode_u(curve, curve.base[0])) for secret in secrets])


def _montgomery(ecc: Ecc) -> Montgomery:
    curve = ecc.curve
    if not isinstance(curve, Montgomery):
        raise UnsupportedError(f"{curve.title} is not a Montgomery curve: X25519 needs Curve25519, X448 needs Curve448")
    return curve


def _scalar(curve: Montgomery, secret: bytes) -> int:
    if len(secret) != curve.size:
        raise UnsupportedError(f"a private key of {curve.title} must have {curve.size} bytes, got {len(secret)}")
    return clamp(curve, int.from_bytes(secret, "little"))


def _u(curve: Montgomery, public: bytes) -> int:
    try:
        return decode_u(curve, public)
    except ValueError as error:
        raise UnsupportedError(str(error)) from None
