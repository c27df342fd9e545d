# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""RSA on the engine's model: keys, CRT, blinding, the check before release, padding, and what others make of it."""

import random
import shutil
import subprocess
from dataclasses import replace
from functools import cache

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from marks import long
from modmill.contract import Fault, UnsupportedError
from modmill.designs import design
from modmill.engines.rsa import padding as padded
from modmill.engines.rsa.exponentiation import ladder
from modmill.engines.rsa.rsa import BITS, Modelled, PrivateKey, PublicKey, Rsa

SHA = {"sha256": hashes.SHA256(), "sha512": hashes.SHA512(), "sha1": hashes.SHA1()}


def fitted(name, exact=False):
    """The engine's model on a design of the house."""

    def fit(modulus):
        one = design(name).fit(modulus)
        return one.contract("native"), one.multiply if exact else None

    return fit


@cache
def made(bits, e=65537):
    """A key of the `cryptography` package."""
    return rsa.generate_private_key(e, bits)


def pem(key):
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def numbers(bits=1024):
    return padded.read_key(pem(made(bits)))


MODEL = Rsa(Modelled(fitted("sor-2m")))


@pytest.mark.parametrize("options", [
    {}, {"crt": False}, {"blind_message": False}, {"blind_exponent": 64}, {"blind_exponent": 32, "crt": False},
])  # fmt: skip
def test_private_undoes_public(options):
    key = numbers()
    machine = replace(MODEL, **options)
    rnd = random.Random(1)
    messages = [0, 1, key.n - 1, key.p, key.q * 5, *(rnd.randrange(key.n) for _ in range(2))]
    powers = machine.public(key, messages)
    assert powers == [pow(x, key.e, key.n) for x in messages]
    assert machine.private(key, powers) == messages


@pytest.mark.parametrize("engine", [
    Modelled(fitted("sor-2m", exact=True)), Modelled(fitted("sor-2m"), ladder), Modelled(fitted("kbe")),
])  # fmt: skip
def test_any_multiplier_and_program_serves(engine):
    key = numbers()
    x = random.Random(2).randrange(key.n)
    assert Rsa(engine, blind_message=False).private(key, [x]) == [pow(x, key.d, key.n)]


@pytest.mark.parametrize("bits", [BITS[0], 1031, 2048, long(3072), long(BITS[-1])])
def test_key_lengths(bits):
    key = numbers(bits)
    assert key.bits == bits
    x = random.Random(bits).randrange(key.n)
    assert MODEL.public(key, MODEL.private(key, [x])) == [x]


class Faulty:
    """An engine that gives one wrong result: a planted fault."""

    def __init__(self, engine, when):
        self.engine, self.when, self.calls = engine, when, 0

    def secret(self, modulus, pairs, bits):
        self.calls += 1
        found = self.engine.secret(modulus, pairs, bits)
        return [found[0] ^ 2, *found[1:]] if self.calls == self.when else found

    def public(self, modulus, bases, exponent):
        return self.engine.public(modulus, bases, exponent)


@pytest.mark.parametrize("half", [1, 2])
def test_a_fault_in_either_half_releases_nothing(half):
    """One wrong half gives away a prime: gcd(s^e - x, n)."""
    key = numbers()
    with pytest.raises(Fault, match="nothing is released"):
        replace(MODEL, engine=Faulty(MODEL.engine, half)).private(key, [1234567, 89])
    assert replace(MODEL, engine=Faulty(MODEL.engine, 3)).private(key, [5]) == [pow(5, key.d, key.n)]


def test_blinding_hides_bases_and_exponents():
    key = numbers()
    seen = []

    class Watching(Faulty):
        def secret(self, modulus, pairs, bits):
            seen.append((modulus, *pairs[0], bits))
            return self.engine.secret(modulus, pairs, bits)

    watched = replace(MODEL, engine=Watching(MODEL.engine, 0), blind_exponent=64)
    for _ in range(2):
        watched.private(key, [1234567])
    (p, base, exponent, bits), _, (_, again, other, _), _ = seen
    assert p == key.p and base != 1234567 and base != again and exponent != other
    assert bits == key.p.bit_length() + 64 and exponent % (key.p - 1) == key.d % (key.p - 1)
    plain = replace(MODEL, engine=Watching(MODEL.engine, 0), blind_message=False)
    seen.clear()
    plain.private(key, [1234567])
    assert seen[0][1:3] == (1234567, key.d % (key.p - 1))


def test_wrong_keys_are_refused():
    key = numbers()
    for change, why in [
        ({"n": key.n + 1}, "modulus is even"),
        ({"n": key.n + 2}, "not the product"),
        ({"e": 2}, "odd, at least 3.* got 2"),
        ({"e": 1 << 300 | 1}, "301 bits"),
        ({"d": key.d + 2}, "d is not the inverse"),
        ({"p": key.p * key.q, "q": 1}, "not the product"),
    ]:
        with pytest.raises(UnsupportedError, match=why):
            replace(key, **change)
    with pytest.raises(UnsupportedError, match="1024 to 4096 bits, got 512"):
        PublicKey((1 << 511) | 1, 3)
    with pytest.raises(UnsupportedError, match="1024 to 4096 bits, got 4097"):
        PublicKey((1 << 4096) | 1, 3)
    with pytest.raises(UnsupportedError, match="not the product"):
        PrivateKey(key.n, key.e, key.d, key.p, key.p)
    p = (1 << 520) + 1
    with pytest.raises(UnsupportedError, match="p or q is not prime"):
        PrivateKey(p * (p + 2), 3, 5, p, p + 2)


def test_numbers_beyond_the_modulus_are_refused():
    key = numbers()
    for operation in (MODEL.public, MODEL.private):
        for x in (key.n, -1):
            with pytest.raises(UnsupportedError, match="must be in \\[0, n\\)"):
                operation(key, [x])


# ---- padding, against the `cryptography` package


@pytest.mark.parametrize("name", ["sha256", "sha512"])
def test_oaep_both_ways(name):
    key, other = numbers(2048), made(2048)
    scheme = padding.OAEP(padding.MGF1(SHA[name]), SHA[name], None)
    sealed = other.public_key().encrypt(b"read me", scheme)
    assert padded.decrypt(MODEL, key, sealed, hash=name) == b"read me"
    assert other.decrypt(padded.encrypt(MODEL, key, b"and me", hash=name), scheme) == b"and me"
    with pytest.raises(UnsupportedError, match="cannot be decrypted"):
        padded.decrypt(MODEL, key, sealed[:-1] + bytes([sealed[-1] ^ 1]), hash=name)


def test_oaep_with_two_hashes_and_a_label():
    key, other = numbers(), made(1024)
    scheme = padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA256(), b"label")
    sealed = other.public_key().encrypt(b"read me", scheme)
    assert padded.decrypt(MODEL, key, sealed, mask_hash="sha1", label=b"label") == b"read me"


def test_pkcs1_ciphertexts_both_ways_and_implicit_rejection():
    key, other = numbers(), made(1024)
    sealed = other.public_key().encrypt(b"old", padding.PKCS1v15())
    assert padded.decrypt(MODEL, key, sealed, padding="pkcs1") == b"old"
    assert other.decrypt(padded.encrypt(MODEL, key, b"new", padding="pkcs1"), padding.PKCS1v15()) == b"new"
    wrong = pow(5, key.e, key.n).to_bytes(key.size, "big")
    assert padded.decrypt(MODEL, key, wrong, padding="pkcs1") == padded.decrypt(MODEL, key, wrong, padding="pkcs1")
    with pytest.raises(UnsupportedError, match="cannot be decrypted"):
        padded.decrypt(MODEL, key, wrong, padding="pkcs1", implicit=False)


@pytest.mark.parametrize(("name", "theirs"), [
    ("pss", lambda h: padding.PSS(padding.MGF1(h), padding.PSS.DIGEST_LENGTH)), ("pkcs1", lambda h: padding.PKCS1v15()),
])  # fmt: skip
@pytest.mark.parametrize("digest", ["sha256", "sha512"])
def test_signatures_both_ways(name, theirs, digest):
    key, other = numbers(2048), made(2048)
    scheme, message = theirs(SHA[digest]), b"signed by hardware"
    ours = padded.sign(MODEL, key, message, padding=name, hash=digest)
    other.public_key().verify(ours, message, scheme, SHA[digest])
    signature = other.sign(message, scheme, SHA[digest])
    assert padded.verify(MODEL, key, message, signature, padding=name, hash=digest)
    assert not padded.verify(MODEL, key, message + b"!", signature, padding=name, hash=digest)
    assert not padded.verify(MODEL, key, message, signature[:-1], padding=name, hash=digest)


def test_what_does_not_fit_is_refused_in_words():
    key = numbers()
    for call, why in [
        (lambda: padded.encrypt(MODEL, key, bytes(200)), "200 bytes is too long for oaep with a key of 1024 bits"),
        (lambda: padded.decrypt(MODEL, key, bytes(100)), "must have 128 bytes, got 100"),
        (lambda: padded.sign(MODEL, key, b"", hash="sha512"), "1024 bits is too short for pss with sha512"),
        (lambda: padded.sign(MODEL, key, b"", padding="oaep"), "one of pss, pkcs1, not 'oaep'"),
        (lambda: padded.encrypt(MODEL, key, b"", padding="pss"), "one of oaep, pkcs1, not 'pss'"),
        (lambda: padded.sign(MODEL, key, b"", hash="md5"), "one of sha1, .*, not 'md5'"),
        (lambda: padded.sign(MODEL, PublicKey(key.n, key.e), b""), "need a private key"),
        (lambda: padded.read_key(b"nonsense"), "cannot be read as an RSA key"),
    ]:
        with pytest.raises(UnsupportedError, match=why):
            call()


def test_an_unknown_label_of_a_pem_file_is_refused():
    """PyCryptodome does not look at it."""
    wrong = pem(made(1024)).replace(b" PRIVATE KEY", b" PRIVAT KEY")
    with pytest.raises(UnsupportedError, match=r"labelled 'PRIVAT KEY'; accepted are PRIVATE KEY, .*CERTIFICATE"):
        padded.read_key(wrong)


def test_encrypted_and_public_key_files():
    other = made(1024)
    locked = other.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"word")
    )
    assert padded.read_key(locked, "word") == numbers()
    with pytest.raises(UnsupportedError, match="passphrase"):
        padded.read_key(locked)
    public = other.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    assert padded.read_key(public) == PublicKey(numbers().n, numbers().e)


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")
def test_openssl_accepts_and_is_accepted(tmp_path):
    def openssl(*words):
        return subprocess.run(["openssl", *map(str, words)], cwd=tmp_path, capture_output=True, check=True).stdout

    openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", "key.pem")
    openssl("pkey", "-in", "key.pem", "-pubout", "-out", "public.pem")
    (tmp_path / "message").write_bytes(b"for openssl")
    key = padded.read_key((tmp_path / "key.pem").read_bytes())
    (tmp_path / "signature").write_bytes(padded.sign(MODEL, key, b"for openssl"))
    openssl(
        "dgst",
        "-sha256",
        "-verify",
        "public.pem",
        "-signature",
        "signature",
        "-sigopt",
        "rsa_padding_mode:pss",
        "message",
    )
    (tmp_path / "signature").write_bytes(padded.sign(MODEL, key, b"for openssl", padding="pkcs1"))
    openssl("dgst", "-sha256", "-verify", "public.pem", "-signature", "signature", "message")
    openssl(
        "pkeyutl", "-encrypt", "-pubin", "-inkey", "public.pem", "-in", "message", "-out", "sealed",
        "-pkeyopt", "rsa_padding_mode:oaep", "-pkeyopt", "rsa_oaep_md:sha256",
    )  # fmt: skip
    assert padded.decrypt(MODEL, key, (tmp_path / "sealed").read_bytes()) == b"for openssl"
