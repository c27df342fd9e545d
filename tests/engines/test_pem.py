# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A key file that states hours of work for its passphrase is refused at once."""

import time

import pytest
from Crypto.IO import PEM, PKCS8
from Crypto.Util.asn1 import DerBitString, DerObjectId, DerOctetString, DerSequence

from modmill.contract import UnsupportedError
from modmill.engines.ecc import keys
from modmill.engines.rsa import padding
from modmill.numbers.curves.named import find_curve

EC = "1.2.840.10045.2.1"


def sealed(protection, **options):
    """An encrypted PKCS#8 file in DER, cheap to make."""
    return PKCS8.wrap(b"key", EC, b"secret", protection, {"salt_size": 16, **options}, None)


PBKDF2, SCRYPT = "PBKDF2WithHMAC-SHA256AndAES128-CBC", "scryptAndAES128-CBC"


def pbkdf2(count):
    """A file that states this number of passes; it is made with one pass, and of no use."""
    der = DerSequence().decode(sealed(PBKDF2, iteration_count=1))
    oid, parameters = DerSequence().decode(der[0])
    derivation, cipher = DerSequence().decode(parameters)
    name, options = DerSequence().decode(derivation)
    salt, _, *rest = DerSequence().decode(options)
    derivation = DerSequence([name, DerSequence([salt, count, *rest])])
    return DerSequence([DerSequence([oid, DerSequence([derivation, cipher])]), der[1]]).encode()


def scrypt(N, r, p):
    """The same for scrypt."""
    der = DerSequence().decode(sealed(SCRYPT, iteration_count=2, block_size=1, parallelization=1))
    oid, parameters = DerSequence().decode(der[0])
    derivation, cipher = DerSequence().decode(parameters)
    name, options = DerSequence().decode(derivation)
    salt, _, _, _, *rest = DerSequence().decode(options)
    derivation = DerSequence([name, DerSequence([salt, N, r, p, *rest])])
    return DerSequence([DerSequence([oid, DerSequence([derivation, cipher])]), der[1]]).encode()


@pytest.mark.parametrize("data", [pbkdf2(10_000_001), pbkdf2(1 << 62), scrypt(1 << 20, 8, 10), scrypt(1 << 16, 8, 160)])
def test_dear_passphrases_are_refused(data):
    start = time.monotonic()
    for file in data, PEM.encode(data, "ENCRYPTED PRIVATE KEY").encode():
        for read in (padding.read_key, keys.read_key):
            with pytest.raises(UnsupportedError, match="above the maximum"):
                read(file, "secret")
    assert time.monotonic() - start < 5


def public(n=None, h=None):
    """A public key of P-256 with parameters in DER, with another order or cofactor."""
    curve = find_curve("P-256")
    x, y, a, b = (c.to_bytes(curve.size, "big") for c in (*curve.base, curve.a, curve.b))
    field = DerSequence([DerObjectId("1.2.840.10045.1.1"), curve.p])
    equation, point = DerSequence([DerOctetString(a), DerOctetString(b)]), b"\4" + x + y
    parameters = DerSequence([1, field, equation, DerOctetString(point), n or curve.n, h or curve.h])
    return DerSequence([DerSequence([DerObjectId(EC), parameters]), DerBitString(point)]).encode()


def test_a_public_key_with_parameters_in_der_has_no_passphrase():
    """Its field, order and cofactor are numbers in the same place."""
    assert keys.read_key(public()).curve == find_curve("P-256")


@pytest.mark.parametrize("given", [{"n": (1 << 44497) - 1}, {"h": 1 << 20000}])
def test_parameters_that_take_minutes_to_validate_are_refused(given):
    """The order here is a prime."""
    with pytest.raises(UnsupportedError, match=r"order or cofactor have .* bits; over a field of 256 bits"):
        keys.read_key(public(**given))
