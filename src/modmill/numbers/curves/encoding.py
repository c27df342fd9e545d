# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Points as bytes: SEC 1 for Weierstrass curves, RFC 7748 for u-coordinates, RFC 8032 for Edwards curves.

    SEC 1 v2.0, 2.3     00 | 04 x y | 02 or 03 x (3 where y is odd), most significant byte first
    RFC 7748, 5         u, least significant byte first; bits above those of p are ignored, u is reduced modulo p
    RFC 8032, 5.x.2     y, least significant byte first, with the lowest bit of x as the highest bit of all

Decoding raises ValueError for bytes that do not encode a point on the curve. Every point of a Weierstrass or Edwards
curve has exactly one encoding of each kind; RFC 7748 accepts any bytes of the right length.
"""

from modmill.numbers.curves.affine import Affine, Edwards, Montgomery, Point, Weierstrass
from modmill.numbers.primes import square_root


def encode_sec1(curve: Weierstrass, P: Point, compressed: bool = False) -> bytes:
    """The SEC 1 bytes of a point on the curve."""
    if P is None:
        return b"\0"
    x, y = (c.to_bytes(curve.size, "big") for c in P)
    return bytes([2 + P[1] % 2]) + x if compressed else b"\4" + x + y


def decode_sec1(curve: Weierstrass, data: bytes) -> Point:
    """The point of SEC 1 bytes, compressed or not; None for the single byte 00. Raises ValueError for any other form,
    hybrid ones included, a wrong length, and a point that is not on the curve."""
    size = curve.size
    if data == b"\0":
        return None
    form = data[0] if data else None
    if (form, len(data)) not in ((2, size + 1), (3, size + 1), (4, 2 * size + 1)):
        kind = f"form {form:02x}" if form is not None else "no form"
        raise ValueError(
            f"{len(data)} bytes of {kind} are not a point of {curve.title}: SEC 1 points begin with 00, 02, 03 or 04"
        )
    x = int.from_bytes(data[1 : size + 1], "big")
    if form == 4:
        P = x, int.from_bytes(data[size + 1 :], "big")
        if not curve.contains(P):
            raise ValueError(f"the point is not on {curve.title}")
        return P
    return lift_x(curve, x, form == 3)


def lift_x(curve: Weierstrass, x: int, odd: bool) -> Affine:
    """The point with this x whose y is odd, or even. Raises ValueError if the curve has none."""
    y = square_root(curve.right(x), curve.p) if 0 <= x < curve.p else None
    if y is None or (y == 0 and odd):
        raise ValueError(f"no point of {curve.title} has this x-coordinate")
    return x, y if y % 2 == odd else curve.p - y


def encode_u(curve: Montgomery, u: int) -> bytes:
    """The bytes of a u-coordinate, 0 <= u < p."""
    return u.to_bytes(curve.size, "little")


def decode_u(curve: Montgomery, data: bytes) -> int:
    """The u-coordinate of RFC 7748 bytes, reduced modulo p. Raises ValueError for a wrong length."""
    if len(data) != curve.size:
        raise ValueError(f"a public key of {curve.title} has {curve.size} bytes, not {len(data)}")
    return (int.from_bytes(data, "little") & (1 << curve.bits) - 1) % curve.p


def edwards_size(curve: Edwards) -> int:
    """Bytes of an encoded point, which has one bit more than p."""
    return curve.bits // 8 + 1


def encode_edwards(curve: Edwards, P: Affine) -> bytes:
    """The RFC 8032 bytes of a point on the curve."""
    size = edwards_size(curve)
    return (P[1] | P[0] % 2 << 8 * size - 1).to_bytes(size, "little")


def decode_edwards(curve: Edwards, data: bytes) -> Affine:
    """The point of RFC 8032 bytes. Raises ValueError for a wrong length, y >= p, a y without x, and x = -0."""
    size = edwards_size(curve)
    if len(data) != size:
        raise ValueError(f"a point of {curve.title} has {size} bytes, not {len(data)}")
    number = int.from_bytes(data, "little")
    odd, y = number >> 8 * size - 1, number & (1 << 8 * size - 1) - 1
    p = curve.p
    if y >= p:
        raise ValueError(f"the y-coordinate is not below the prime of {curve.title}")
    x = square_root((y * y - 1) * pow(curve.d * y * y - curve.a, -1, p), p)
    if x is None or (x == 0 and odd):
        raise ValueError(f"the bytes are not a point of {curve.title}: this y has no x of this sign")
    return (x if x % 2 == odd else p - x), y


def clamp(curve: Montgomery | Edwards, number: int) -> int:
    """``number`` as a scalar of RFC 7748 or 8032: a multiple of the cofactor with a fixed highest bit."""
    top = 1 << curve.bits - 1
    return (number & top - 1 | top) & -curve.h
