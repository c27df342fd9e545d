# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Keys of elliptic curves in PEM and DER files, read and written with PyCryptodome's PEM, PKCS#8 and ASN.1.

    private   PKCS#8, encrypted or not (RFC 5958); ECPrivateKey (RFC 5915); for the four RFC 7748 curves RFC 8410
    public    SubjectPublicKeyInfo (RFC 5480, RFC 8410)
    curve     by object identifier, or with explicit parameters over a prime field (SEC 1 v2.0, appendix C.2)

A curve with explicit parameters is validated; if its parameters are those of a named curve, it is that curve.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from Crypto.IO import PEM, PKCS8
from Crypto.Util.asn1 import ContextTag, DerBitString, DerObject, DerObjectId, DerOctetString, DerSequence

from modmill.contract import UnsupportedError
from modmill.engines.ecc import eddsa
from modmill.engines.ecc.blinding import Ecc, ReferenceEngine, require_point, require_scalar, require_weierstrass
from modmill.engines.ecc.ecdh import public_u
from modmill.engines.pem import ENCRYPTION, PASSES, require_label
from modmill.numbers.curves.affine import Curve, Edwards, Point, Weierstrass
from modmill.numbers.curves.encoding import decode_sec1, edwards_size
from modmill.numbers.curves.named import curve_of_oid
from modmill.numbers.curves.projective import multiples
from modmill.numbers.curves.text import proved

_EC = "1.2.840.10045.2.1"
_PRIME_FIELD = "1.2.840.10045.1.1"
_PARAMETERS = re.compile(r"-----BEGIN EC PARAMETERS-----.*?-----END EC PARAMETERS-----", re.DOTALL)
_LABELS = ("PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "EC PRIVATE KEY", "PUBLIC KEY")
"""Labels of PEM files with a key."""
_PEM = re.compile(r"-----BEGIN ((?:EC |ENCRYPTED )?PRIVATE KEY|PUBLIC KEY)-----.*?-----END \1-----", re.DOTALL)


@dataclass(frozen=True)
class Key:
    """A key in the encoding of its standard.

    ``secret``: None for a public key; for a Weierstrass curve the scalar, most significant byte first; else the private
    key of RFC 7748 or the seed of RFC 8032. ``public``: None if the file has none; else a SEC 1 point, a u-coordinate,
    or an encoded Edwards point.
    """

    curve: Curve
    secret: bytes | None
    public: bytes | None

    @property
    def scalar(self) -> int:
        """The private scalar, in [1, n). Raises UnsupportedError if it is out of range or the curve has no such."""
        return require_scalar(require_weierstrass(self.curve), int.from_bytes(self.private, "big"))

    @property
    def private(self) -> bytes:
        """The private half. Raises UnsupportedError if there is none."""
        if self.secret is None:
            raise UnsupportedError("the file holds a public key; a private key is needed")
        return self.secret

    @property
    def point(self) -> Point:
        """The validated public point. Raises UnsupportedError if it is invalid or missing, and for a curve that is not
        in Weierstrass form."""
        curve = require_weierstrass(self.curve)
        if self.public is None:
            raise UnsupportedError("the file holds a private key without its public point; a public point is needed")
        try:
            P = decode_sec1(curve, self.public)
        except ValueError as error:
            raise UnsupportedError(str(error)) from None
        return require_point(curve, P)


def read_key(data: bytes, passphrase: str | None = None) -> Key:
    """Read the key in a PEM or DER file, with its private half if the file has one.

    Raises UnsupportedError if the data is no key, if its passphrase is missing or wrong, if its curve is unknown or
    fails validation, if a scalar or point is invalid, and if the private and public halves do not match.
    """
    with _decoding("an elliptic-curve key (PEM or DER)"):
        key = _read(data, passphrase.encode() if passphrase is not None else None)
    if key.public is not None:
        given = key.point if isinstance(key.curve, Weierstrass) else key.public
        if key.secret is not None and _public_of(key, key.secret) != given:
            raise UnsupportedError("the private key in the file does not match the public key in it")
    return key


def read_curve(data: bytes, *, pairing: bool = False) -> Curve:
    """Read the curve of a PEM file of `EC PARAMETERS`, or of a key. ``pairing`` (for parameters) as in `parse_curve`.
    Raises UnsupportedError as `read_key` does."""
    found = _PARAMETERS.search(data.decode("ascii", "replace"))
    if not found:
        return read_key(data).curve
    with _decoding("curve parameters"):
        return _curve(PEM.decode(found[0])[0], pairing=pairing)


def write_key(key: Key, passphrase: str | None = None) -> bytes:
    """A private key as PKCS#8 in PEM, encrypted if there is a passphrase.

    Raises UnsupportedError for a public key, a curve without an object identifier, and an empty passphrase.
    """
    curve, named = key.curve, isinstance(key.curve, Weierstrass)
    if not curve.oid:
        raise UnsupportedError(f"{curve.title} has no object identifier, by which a key file could name it")
    oid, parameters = (_EC, DerObjectId(curve.oid)) if named else (curve.oid, None)
    if passphrase == "":
        raise UnsupportedError("the passphrase is empty; omit it for a file that is not encrypted")
    halves: list[int | DerObject] = [1, DerOctetString(key.private)]
    if key.public is not None:
        halves.append(DerBitString(key.public, explicit=1))
    inner = DerSequence(halves) if named else DerOctetString(key.private)
    der = PKCS8.wrap(
        inner.encode(), oid, passphrase=passphrase.encode() if passphrase else None,
        protection=ENCRYPTION if passphrase else None, key_params=parameters,
    )  # fmt: skip
    return f"{PEM.encode(der, 'ENCRYPTED PRIVATE KEY' if passphrase else 'PRIVATE KEY')}\n".encode()


@contextmanager
def _decoding(what: str) -> Iterator[None]:
    """Convert errors of the parsers to UnsupportedError."""
    try:
        yield
    except UnsupportedError:
        raise
    except (ValueError, IndexError, TypeError, OverflowError) as error:
        raise UnsupportedError(f"the file cannot be read as {what}: {str(error) or 'unknown format'}") from None


def _read(data: bytes, passphrase: bytes | None) -> Key:
    found = _PEM.search(data.decode("ascii", "replace"))
    if found:
        der, kind, _ = PEM.decode(found[0], passphrase)
        if kind == "PUBLIC KEY":
            return _public(der)
        return _sec1(der, None) if kind == "EC PRIVATE KEY" else _pkcs8(der, passphrase)
    require_label(data, _LABELS)
    if b"-----BEGIN" in data:
        raise UnsupportedError("the PEM file's key is truncated: the line -----END with the same label is missing")
    first = DerSequence().decode(data)
    if len(first) == 2 and first.item_types() == [DerSequence, DerBitString]:
        return _public(data)
    if first[0] == 1 and first.item_types()[1] is DerOctetString:
        return _sec1(data, None)
    return _pkcs8(data, passphrase)


def _public(der: bytes) -> Key:
    items = DerSequence().decode(der, nr_elements=2)
    oid, parameters = _algorithm(items[0])
    point = DerBitString().decode(items[1], strict=True).value
    if oid == _EC:
        return Key(_curve(parameters), None, point)
    curve = _curve_8410(oid, parameters)
    return Key(curve, None, _sized(curve, point, "public"))


def _pkcs8(der: bytes, passphrase: bytes | None) -> Key:
    found = PKCS8.unwrap(der, passphrase, PASSES)
    if found.oid == _EC:
        return _sec1(found.private_key, found.params)
    curve = _curve_8410(found.oid, found.params)
    secret = DerOctetString().decode(found.private_key, strict=True).payload
    return Key(curve, _sized(curve, secret, "private"), found.public_key)


def _sec1(der: bytes, parameters: bytes | None) -> Key:
    items = DerSequence().decode(der, nr_elements=(2, 3, 4))
    if items[0] != 1:
        raise ValueError(f"an ECPrivateKey must have version 1, got {items[0]}")
    secret = DerOctetString().decode(items[1]).payload
    tagged = {tag.number: items[i] for i, tag in enumerate(items.item_types()) if isinstance(tag, ContextTag)}
    if parameters is None:
        if 0 not in tagged:
            raise ValueError("it does not name its curve")
        parameters = DerObject().decode(tagged[0]).payload
    curve = _curve(parameters)
    require_scalar(curve, int.from_bytes(secret, "big"))
    public = DerBitString(explicit=1).decode(tagged[1]).value if 1 in tagged else None
    return Key(curve, secret, public)


def _algorithm(der: bytes) -> tuple[str, bytes | None]:
    """The object identifier of an algorithm and its parameters."""
    items = DerSequence().decode(der, nr_elements=(1, 2))
    return DerObjectId().decode(items[0]).value, items[1] if len(items) == 2 else None


def _curve_8410(oid: str, parameters: bytes | None) -> Curve:
    curve = curve_of_oid(oid)
    if isinstance(curve, Weierstrass):
        raise ValueError(f"{oid} is a curve, not an algorithm")
    if parameters is not None:
        raise ValueError(f"an algorithm for {curve.title} has no parameters")
    return curve


def _curve(parameters: bytes | None, *, pairing: bool = False) -> Weierstrass:
    """The curve of an EC key's parameters; explicit parameters are validated."""
    if not parameters:
        raise ValueError("it does not name its curve")
    if parameters[0] == 0x06:
        curve = curve_of_oid(DerObjectId().decode(parameters).value)
        if not isinstance(curve, Weierstrass):
            raise ValueError(f"{curve.title} is not a Weierstrass curve; this kind of key needs one")
        return curve
    items = DerSequence().decode(parameters)
    if len(items) != 6:
        raise ValueError(f"explicit parameters need six fields, including the cofactor, got {len(items)}")
    field = DerSequence().decode(items[1], nr_elements=2)
    if DerObjectId().decode(field[0]).value != _PRIME_FIELD:
        raise ValueError("the curve is not over a prime field")
    equation = DerSequence().decode(items[2], nr_elements=(2, 3))
    a, b = (int.from_bytes(DerOctetString().decode(equation[i]).payload, "big") for i in range(2))
    p, n = int(field[1]), int(items[4])
    given = Weierstrass(p, (0, 0), n, int(items[5]), a=a, b=b)
    given.check_field()
    if (longest := max(n.bit_length(), given.h.bit_length())) > p.bit_length() + 1:  # to prove it prime takes minutes
        raise ValueError(
            f"order or cofactor have {longest:,} bits; over a field of {p.bit_length()} bits n h is shorter"
        )
    base = decode_sec1(given, DerOctetString().decode(items[3]).payload)
    if base is None:
        raise ValueError("the base point is the point at infinity")
    return proved(replace(given, base=base), pairing=pairing)  # type: ignore[return-value]


def _sized(curve: Curve, data: bytes, half: str) -> bytes:
    size = edwards_size(curve) if isinstance(curve, Edwards) else curve.size
    if len(data) != size:
        raise ValueError(f"a {half} key of {curve.title} must have {size} bytes, got {len(data)}")
    return data


def _public_of(key: Key, secret: bytes) -> bytes | Point:
    """The public half of a private key, by the reference engine."""
    reference = Ecc(ReferenceEngine(key.curve))
    if isinstance(key.curve, Weierstrass):
        return multiples(key.curve, [(key.scalar, key.curve.base)])
    if isinstance(key.curve, Edwards):
        return eddsa.public(reference, [secret])[0]
    return public_u(reference, [secret])[0]
