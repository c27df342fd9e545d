# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""New key pairs: the ranges of FIPS 186-5, Miller-Rabin on an engine, the test of each pair, and files of keys."""

import random
from dataclasses import replace
from math import lcm

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from marks import long
from modmill.contract import Fault, UnsupportedError
from modmill.engines.ecc import keygen as on_curves
from modmill.engines.ecc import keys
from modmill.engines.ecc.blinding import Ecc, ReferenceEngine
from modmill.engines.rsa import keygen, padding
from modmill.engines.rsa.rsa import Rsa
from modmill.numbers.curves.affine import Montgomery
from modmill.numbers.curves.named import CURVES, find_curve


class Powers:
    """An engine of Python's integers. ``wrong``: a bit that is wrong in each power; ``asked``: numbers of powers of
    each call."""

    def __init__(self, wrong=0):
        self.wrong, self.asked = wrong, []

    def secret(self, modulus, pairs, bits):
        self.asked.append(len(pairs))
        return [pow(base, exponent, modulus) ^ self.wrong for base, exponent in pairs]

    def public(self, modulus, bases, exponent):
        return [pow(base, exponent, modulus) for base in bases]


def machine(seed=1, **options):
    return Rsa(Powers(**options), below=random.Random(seed).randrange)


@pytest.mark.parametrize("bits, e", [(1024, 65537), (1026, (1 << 256) - 189)])
def test_a_key_pair_has_the_ranges_of_the_standard(bits, e):
    rsa = machine()
    key = keygen.generate(rsa, bits, e)
    p, q = key.p, key.q
    assert (key.bits, key.e, key.d) == (bits, e, pow(e, -1, lcm(p - 1, q - 1)))
    assert min(p * p, q * q) >= 1 << bits - 1
    assert abs(p - q) > 1 << bits // 2 - 100
    assert key.d > 1 << bits // 2
    assert sorted(rsa.engine.asked)[-2:] == [6, 6]  # the rounds after the first one, for each prime
    pem = padding.write_key(key)
    assert padding.read_key(pem) == key
    theirs = load_pem_private_key(pem, None).private_numbers()
    assert {theirs.p, theirs.q} == {p, q}


def test_candidates_outside_the_ranges_are_not_tested():
    bits, e = 1024, 65537
    least = 1 << 511
    while least * least < 1 << 1023:  # the first number above sqrt(2) 2^511
        least += 1 << 490
    good = next(p for p in range(least | 1, least + 1000, 2) if (p - 1) % e)
    assert keygen.candidate(bits, e, good)
    even, short, small, near = good + 1, good >> 1 | 1, (1 << 511) + 1, good + (1 << 412)
    assert not any(keygen.candidate(bits, e, p) for p in (even, short, small, e * (good & -2) | 1))
    assert not keygen.candidate(bits, e, near | 1, good)
    assert keygen.candidate(bits, e, near + 2, good) == ((near + 1) % e > 0)
    assert not keygen.candidate(bits, 3, 3 * (good // 3) + 1 + 3 * (good // 3 % 2))


def test_miller_rabin_excludes_composites_and_needs_a_right_engine():
    below = random.Random(2).randrange
    for w in (5, 7, 13, 97, 65537, (1 << 521) - 1):
        assert keygen.probable_prime(Powers(), w, 20, below)
    strong = 3215031751  # passes for the bases 2, 3, 5, 7
    for w in (9, 15, 561, 1729, strong, ((1 << 127) - 1) * ((1 << 89) - 1)):
        assert not keygen.probable_prime(Powers(), w, 20, below)
    assert not keygen.probable_prime(Powers(wrong=2), (1 << 521) - 1, 4, below)


def test_rounds_of_the_tables():
    assert [keygen.rounds(bits) for bits in (1024, 2046, 2048, 3070, 3072, 4096)] == [7, 7, 5, 5, 4, 4]


@pytest.mark.parametrize("bits, e, message", [
    (1023, 65537, "even number of bits from 1024 to 4096, not 1023"), (8192, 65537, "not 8192"),
    (1024, 3, "above 2\\^16"), (1024, 65538, "must be odd"), (1024, 1 << 256 | 1, "below 2\\^256"),
])  # fmt: skip
def test_other_lengths_and_exponents_are_refused(bits, e, message):
    with pytest.raises(UnsupportedError, match=message):
        keygen.generate(machine(), bits, e)


def test_faults_release_no_key():
    with pytest.raises(Fault, match="no prime among 5,120 candidates"):
        keygen.generate(machine(wrong=2), 1024)
    with pytest.raises(Fault, match="no prime among 5,120 candidates"):
        keygen.generate(Rsa(Powers(), below=lambda most: most - 1), 1024)
    key = keygen.generate(machine(), 1024)
    with pytest.raises(Fault):
        keygen.tested(machine(wrong=1), key)

    class Idle(Powers):
        """A public operation that does nothing, and a private one that undoes it."""

        def public(self, modulus, bases, exponent):
            return bases

    with pytest.raises(Fault, match="failed its test"):
        keygen.tested(Rsa(Idle(), blind_message=False, below=random.Random(1).randrange), key)


@pytest.mark.parametrize("curve", [c for c in CURVES if c.name in (
    "P-256", "P-521", "secp160k1", "SM2", "Curve25519", "Curve448", "Ed25519", "Ed448"
)], ids=lambda c: c.name)  # fmt: skip
def test_key_pairs_on_curves(curve):
    one, two = on_curves.generate(Ecc(ReferenceEngine(curve), below=random.Random(1).randrange), 2)
    assert one.secret != two.secret
    for key in (one, two):
        found = keys.read_key(keys.write_key(key))
        assert (found.curve, found.secret) == (curve, key.secret)
        assert found.public in (key.public, None)
        assert keys._public_of(key, key.secret) == (key.point if hasattr(curve, "b") else key.public)


@pytest.mark.parametrize("name", ["P-256", "Ed25519", "X25519"])
def test_a_wrong_point_releases_no_key_pair(name):
    """The engine doubles the scalar of its second call, so that its points are on the curve."""
    curve = find_curve(name)

    calls = []

    class Doubled(ReferenceEngine):
        def results(self, operation, bits, runs):
            calls.append(operation)
            if len(calls) == (3 if isinstance(curve, Montgomery) else 2):
                runs = [((scalars[0] * 2 % curve.n, *scalars[1:]), given) for scalars, given in runs]
            return super().results(operation, max(bits, curve.bits), runs)

    with pytest.raises(Fault, match="nothing is released"):
        on_curves.generate(Ecc(Doubled(curve)))


@pytest.mark.parametrize("kind", [keys, long(padding)])
def test_files_of_keys_are_encrypted_with_a_passphrase(kind):
    key = keygen.generate(machine(), 1024) if kind is padding else keys.Key(find_curve("X448"), b"a" * 56, None)
    pem = kind.write_key(key, "secret")
    assert kind.read_key(pem, "secret") == key
    assert load_pem_private_key(pem, b"secret")
    with pytest.raises(UnsupportedError, match="the passphrase is empty"):
        kind.write_key(key, "")


def test_a_curve_without_an_identifier_has_no_key_file():
    key = keys.Key(replace(find_curve("P-256"), name="", oid=""), b"\1" * 32, None)
    with pytest.raises(UnsupportedError, match="has no object identifier"):
        keys.write_key(key)
    with pytest.raises(UnsupportedError, match="a private key is needed"):
        keys.write_key(keys.Key(find_curve("P-256"), None, b"\0"))
