# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""``modmill ecc``: real keys in files, both ways with openssl and `cryptography`, and one line for what is refused."""

import re
import shutil
import subprocess

import pytest
from command import modmill, refused
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, x448, x25519
from messages import MESSAGE
from typer.testing import CliRunner

from modmill.cli import ecc, statuses
from modmill.numbers.curves.affine import Weierstrass
from modmill.numbers.curves.named import CURVES, find_curve

OPENSSL = pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")
EC = {
    "P-192": ec.SECP192R1, "P-224": ec.SECP224R1, "P-256": ec.SECP256R1, "P-384": ec.SECP384R1, "P-521": ec.SECP521R1,
    "secp256k1": ec.SECP256K1, "brainpoolP256r1": ec.BrainpoolP256R1, "brainpoolP384r1": ec.BrainpoolP384R1,
    "brainpoolP512r1": ec.BrainpoolP512R1,
}  # fmt: skip
OTHER = {
    "X25519": x25519.X25519PrivateKey, "X448": x448.X448PrivateKey, "Ed25519": ed25519.Ed25519PrivateKey,
    "Ed448": ed448.Ed448PrivateKey,
}  # fmt: skip


def make(kind):
    return ec.generate_private_key(EC[kind]()) if kind in EC else OTHER[kind].generate()


def save(folder, name, key, passphrase=None, kind=form.PrivateFormat.PKCS8):
    seal = form.BestAvailableEncryption(passphrase) if passphrase else form.NoEncryption()
    (folder / f"{name}.pem").write_bytes(key.private_bytes(form.Encoding.PEM, kind, seal))
    public = key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    (folder / f"{name}.pub").write_bytes(public)
    return key


def done(*arguments, status=0):
    """What a command prints, run in this process: most tests start a dozen."""
    run = CliRunner().invoke(ecc.app, ["run", *map(str, arguments)], catch_exceptions=False)
    assert run.exit_code == status, run.output
    return run.stdout_bytes


@pytest.mark.parametrize("kind", sorted(EC))
def test_exchange_with_cryptography(place, kind):
    ours, theirs = save(place, "ours", make(kind)), save(place, "theirs", make(kind))
    secret = theirs.exchange(ec.ECDH(), ours.public_key())
    for options in ((), ("--blind-scalar", 64, "--blind-coordinates")):
        assert done("ecdh", "ours.pem", "--peer", "theirs.pub", *options) == secret
    assert done("ecdh", "theirs.pem", "--peer", "ours.pem") == secret


def test_sm2_and_new_keys(place):
    """The key of `ecc keygen` signs, and a file of a private key is its owner's."""
    made = modmill("ecc", "keygen", "SM2", "-o", "sm2.pem", cwd=place)
    assert made.returncode == 0, made.stderr
    assert (place / "sm2.pem").stat().st_mode & 0o77 == 0
    save(place, "other", make("P-256"))
    options = "--message", "message", "--id", "alice"
    done("sm2-sign", "sm2.pem", *options, "--nonce", "hedged", "-o", "signature")
    assert done("sm2-verify", "sm2.pem", *options, "--signature", "signature") == b"the signature is right\n"
    wrong = done("sm2-verify", "sm2.pem", *options[:2], "--signature", "signature", status=1)
    assert wrong == b"the signature is wrong\n"
    assert "need the curve SM2" in refused("ecc", "run", "sm2-sign", "other.pem", *options[:2], cwd=place)


@pytest.mark.parametrize("kind", sorted(EC))
def test_ecdsa_with_cryptography(place, kind):
    key = save(place, "key", make(kind))
    for name, algorithm in (("sha256", hashes.SHA256()), ("sha3-512", hashes.SHA3_512())):
        for nonce in ("deterministic", "random"):
            done("ecdsa-sign", "key.pem", "--message", "message", "--hash", name, "--nonce", nonce, "-o", "signature")
            key.public_key().verify((place / "signature").read_bytes(), MESSAGE, ec.ECDSA(algorithm))
        signature = key.sign(MESSAGE, ec.ECDSA(algorithm))
        (place / "signature").write_bytes(signature)
        ours = "--message", "message", "--signature", "signature", "--hash", name
        assert done("ecdsa-verify", "key.pub", *ours) == b"the signature is right\n"
        assert done("ecdsa-verify", "key.pem", *ours) == b"the signature is right\n"
        (place / "other").write_bytes(MESSAGE + b"!")
        wrong = done("ecdsa-verify", "key.pub", "--message", "other", *ours[2:], status=1)
        assert wrong == b"the signature is wrong\n"
    done("ecdsa-sign", "key.pem", "--message", "message", "--low-s", "-o", "signature")
    low = "--message", "message", "--signature", "signature", "--low-s"
    assert done("ecdsa-verify", "key.pub", *low) == b"the signature is right\n"
    raw = done("ecdsa-sign", "key.pem", "--message", "message", "--form", "raw")
    assert len(raw) == 2 * -(-find_curve(kind).n.bit_length() // 8)
    (place / "signature").write_bytes(raw)
    ours = "--message", "message", "--signature", "signature", "--form", "raw"
    assert done("ecdsa-verify", "key.pub", *ours) == b"the signature is right\n"


@pytest.mark.parametrize("kind", ["X25519", "X448"])
def test_x_with_cryptography(place, kind):
    ours, theirs = save(place, "ours", make(kind)), save(place, "theirs", make(kind))
    secret = theirs.exchange(ours.public_key())
    for options in ((), ("--blind-scalar", 64, "--blind-coordinates")):
        assert done(kind.lower(), "ours.pem", "--peer", "theirs.pub", *options) == secret
    assert done(kind.lower(), "theirs.pem", "--peer", "ours.pem") == secret


@pytest.mark.parametrize("kind", ["Ed25519", "Ed448"])
def test_eddsa_with_cryptography(place, kind):
    key = save(place, "key", make(kind))
    signature = done("eddsa-sign", "key.pem", "--message", "message", "--blind-scalar", 64)
    assert signature == key.sign(MESSAGE)
    (place / "signature").write_bytes(signature)
    ours = "--message", "message", "--signature", "signature"
    for file in ("key.pub", "key.pem"):
        assert done("eddsa-verify", file, *ours) == b"the signature is right\n"
    for options in (("--context", "another"), ("--prehash",)):
        assert done("eddsa-verify", "key.pub", *ours, *options, status=1) == b"the signature is wrong\n"
        done("eddsa-sign", "key.pem", "--message", "message", *options, "-o", "under")
        under = "--message", "message", "--signature", "under", *options
        assert done("eddsa-verify", "key.pub", *under) == b"the signature is right\n"
        with pytest.raises(InvalidSignature):
            key.public_key().verify((place / "under").read_bytes(), MESSAGE)


def openssl(*arguments):
    return subprocess.run(["openssl", *map(str, arguments)], capture_output=True, check=True).stdout


def openssl_name(curve):
    """P-256 is prime256v1 there, P-384 secp384r1."""
    return curve.aliases[-1] if curve.name.startswith("P-") else curve.name


WITH_OPENSSL = [openssl_name(c) for c in CURVES if isinstance(c, Weierstrass) and c.name not in ("SM2", "FRP256v1")]
"""OpenSSL signs with SM2's curve as the SM2 standard says, not by ECDSA, and has no FRP256v1."""


@OPENSSL
@pytest.mark.parametrize(("name", "encoding"), [
    *((name, "named_curve") for name in WITH_OPENSSL),
    *((name, "explicit") for name in ("secp160r2", "secp256k1", "prime256v1", "secp521r1", "brainpoolP384t1")),
])  # fmt: skip
def test_weierstrass_with_openssl(place, name, encoding):
    for side in ("ours", "theirs"):
        openssl("ecparam", "-name", name, "-param_enc", encoding, "-genkey", "-out", f"{side}.pem")
        openssl("pkey", "-in", f"{side}.pem", "-pubout", "-out", f"{side}.pub")
    secret = openssl("pkeyutl", "-derive", "-inkey", "theirs.pem", "-peerkey", "ours.pub")
    assert done("ecdh", "ours.pem", "--peer", "theirs.pub") == secret
    done("ecdsa-sign", "ours.pem", "--message", "message", "-o", "signature")
    found = openssl("dgst", "-sha256", "-verify", "ours.pub", "-signature", "signature", "message")
    assert found == b"Verified OK\n"
    openssl("dgst", "-sha512", "-sign", "theirs.pem", "-out", "signature", "message")
    theirs = "--message", "message", "--signature", "signature", "--hash", "sha512"
    assert done("ecdsa-verify", "theirs.pub", *theirs) == b"the signature is right\n"


@OPENSSL
@pytest.mark.parametrize("kind", ["X25519", "X448", "ED25519", "ED448"])
def test_the_other_forms_with_openssl(place, kind):
    for side in ("ours", "theirs"):
        openssl("genpkey", "-algorithm", kind, "-out", f"{side}.pem")
        openssl("pkey", "-in", f"{side}.pem", "-pubout", "-out", f"{side}.pub")
    if kind.startswith("X"):
        secret = openssl("pkeyutl", "-derive", "-inkey", "theirs.pem", "-peerkey", "ours.pub")
        assert done(kind.lower(), "ours.pem", "--peer", "theirs.pub") == secret
        return
    done("eddsa-sign", "ours.pem", "--message", "message", "-o", "signature")
    checked = "-rawin", "-in", "message", "-sigfile", "signature"
    assert openssl("pkeyutl", "-verify", "-pubin", "-inkey", "ours.pub", *checked)
    openssl("pkeyutl", "-sign", "-inkey", "theirs.pem", "-rawin", "-in", "message", "-out", "signature")
    theirs = "--message", "message", "--signature", "signature"
    assert done("eddsa-verify", "theirs.pub", *theirs) == b"the signature is right\n"


def test_encrypted_keys_and_other_containers(place):
    key = save(place, "key", make("P-256"), b"secret")
    (place / "word").write_text("secret\n")
    done("ecdsa-sign", "key.pem", "--message", "message", "--passphrase-file", "word", "-o", "signature")
    key.public_key().verify((place / "signature").read_bytes(), MESSAGE, ec.ECDSA(hashes.SHA256()))
    save(place, "old", key, None, form.PrivateFormat.TraditionalOpenSSL)
    der = key.private_bytes(form.Encoding.DER, form.PrivateFormat.TraditionalOpenSSL, form.NoEncryption())
    (place / "der.pem").write_bytes(der)
    pkcs8 = key.private_bytes(form.Encoding.DER, form.PrivateFormat.PKCS8, form.NoEncryption())
    (place / "pkcs8.pem").write_bytes(pkcs8)
    again = [done("ecdsa-sign", f"{n}.pem", "--message", "message") for n in ("old", "der", "pkcs8")]
    assert again == [(place / "signature").read_bytes()] * 3
    compressed = key.public_key().public_bytes(form.Encoding.X962, form.PublicFormat.CompressedPoint)
    header = bytes.fromhex("3039301306072a8648ce3d020106082a8648ce3d030107032200")
    (place / "small.pub").write_bytes(header + compressed)
    good = done("ecdsa-verify", "small.pub", "--message", "message", "--signature", "signature")
    assert good == b"the signature is right\n"


def test_curves():
    lines = modmill("ecc", "curves").stdout.splitlines()
    assert len(lines) == len(CURVES)
    assert "SM2, sm2p256v1, curveSM2: Weierstrass, 256 bits, cofactor 1, 1.2.156.10197.1.301; GB/T" in "\n".join(lines)
    own = modmill("ecc", "curve", "weierstrass p=23 a=-5 b=1 x=0 y=1 n=29")
    assert own.stdout.splitlines()[:3] == [
        "a curve over 5 bits: Weierstrass, 5 bits, given by the user", "    p = 0x17", "    a = 0x12",
    ]  # fmt: skip
    assert modmill("ecc", "curve", "X448").stdout.startswith("Curve448: Montgomery, 448 bits, RFC 7748")


@OPENSSL
def test_curve_of_a_file(place):
    openssl("ecparam", "-name", "secp256k1", "-param_enc", "explicit", "-out", "curve.pem")
    assert modmill("ecc", "curve", "curve.pem", cwd=place).stdout.startswith("secp256k1: Weierstrass, 256 bits")


def test_refusals(place):
    for name, kind in (("p256", "P-256"), ("p384", "P-384"), ("x", "X25519"), ("ed", "Ed25519")):
        save(place, name, make(kind))
    save(place, "sealed", make("P-256"), b"secret")
    (place / "word").write_text("wrong\n")
    small = bytes.fromhex("302a300506032b656e032100") + bytes(32)
    (place / "small.pub").write_bytes(small)
    der = form.load_pem_public_key((place / "p256.pub").read_bytes()).public_bytes(
        form.Encoding.DER, form.PublicFormat.SubjectPublicKeyInfo
    )
    (place / "off.pub").write_bytes(der[:-1] + bytes([der[-1] ^ 1]))
    infinity = bytes.fromhex("3019301306072a8648ce3d020106082a8648ce3d030107030200") + b"\0"
    (place / "infinity.pub").write_bytes(infinity)
    whole = form.load_pem_private_key((place / "p256.pem").read_bytes(), None)
    sec1 = whole.private_bytes(form.Encoding.DER, form.PrivateFormat.TraditionalOpenSSL, form.NoEncryption())
    (place / "zero.pem").write_bytes(sec1[:7] + bytes(32) + sec1[39:])
    (place / "order.pem").write_bytes(sec1[:7] + find_curve("P-256").n.to_bytes(32, "big") + sec1[39:])
    (place / "other.pem").write_bytes(sec1[:38] + bytes([sec1[38] ^ 1]) + sec1[39:])
    (place / "cut.pem").write_bytes(sec1[:40])
    (place / "short").write_bytes(b"0")
    sign, verify = ("--message", "message"), ("--message", "message", "--signature", "short")
    for arguments, why in [
        (("ecdh", "p256.pem", "--peer", "p384.pub"), "different curves, P-256 and P-384"),
        (("ecdh", "p256.pub", "--peer", "p256.pub"), "holds a public key; a private key is needed"),
        (("ecdh", "p256.pem", "--peer", "off.pub"), "the point is not on P-256"),
        (("ecdh", "p256.pem", "--peer", "infinity.pub"), "is the neutral element of P-256"),
        (("ecdh", "zero.pem", "--peer", "p256.pub"), "the private scalar 0 is not in [1, n - 1] of P-256"),
        (("ecdh", "order.pem", "--peer", "p256.pub"), "of 256 bits is not in [1, n - 1] of P-256"),
        (("ecdh", "other.pem", "--peer", "p256.pub"), "does not match the public key in it"),
        (("ecdh", "cut.pem", "--peer", "p256.pub"), "cannot be read as an elliptic-curve key"),
        (("ecdh", "message", "--peer", "p256.pub"), "cannot be read as an elliptic-curve key"),
        (("ecdh", "none.pem", "--peer", "p256.pub"), "none.pem: No such file"),
        (("ecdh", "x.pem", "--peer", "x.pub"), "Curve25519 is not a Weierstrass curve"),
        (("ecdsa-sign", "ed.pem", *sign), "Ed25519 is not a Weierstrass curve"),
        (("ecdsa-sign", "sealed.pem", *sign), "passphrase"),
        (("ecdsa-sign", "sealed.pem", *sign, "--passphrase-file", "word"), "passphrase"),
        (("ecdsa-sign", "p256.pem", *sign, "--hash", "md5"), "hash must be one of sha1"),
        (("ecdsa-sign", "p256.pem", *sign, "--nonce", "none"), "must be one of deterministic, hedged, random"),
        (("ecdsa-sign", "p256.pem", *sign, "--engine", "nowhere"), "nowhere is neither"),
        (("ecdsa-verify", "p256.pub", *verify), "malformed DER signature"),
        (("ecdsa-verify", "p256.pub", *verify, "--form", "raw"), "must have 64 bytes, got 1"),
        (("ecdsa-verify", "x.pub", *verify), "Curve25519 is not a Weierstrass curve"),
        (("x25519", "x.pem", "--peer", "small.pub"), "point of small order"),
        (("x448", "x.pem", "--peer", "x.pub"), "X448 needs a key of its own curve; this key is on Curve25519"),
        (("eddsa-sign", "p256.pem", *sign), "not for P-256"),
        (("eddsa-verify", "x.pub", *verify), "not for Curve25519"),
    ]:
        line = one_line("run", *arguments)
        assert why in line, line
    for text, why in [
        ("P-265", "the nearest names are P-256"),
        ("weierstrass p=23 a=18 b=1 x=0 y=2 n=29", "not on the curve"),
        ("weierstrass p=21 a=18 b=1 x=0 y=1 n=29", "p = 21 is not one"),
        ("weierstrass p=23 a=0 b=0 x=0 y=0 n=29", "singular"),
        ("weierstrass p=23 a=18 b=1 x=0 y=1 n=23", "is not the order"),
        ("weierstrass p=23 a=18 b=1 x=0 y=1", "the curve's n is missing"),
        ("weierstrass p=23 a=18 b=1 x=0 y=1 q=29", "not 'q=29'"),
        ("hessian p=23", "begin with one of weierstrass"),
    ]:
        assert why in one_line("curve", text)
    assert "small order" in refused("ecc", "run", "x25519", "x.pem", "--peer", "small.pub", cwd=place)
    assert "needs --peer, for example: modmill ecc run ecdh key.pem --peer" in refused(
        "ecc", "run", "ecdh", "x.pem", cwd=place
    )
    assert done("x25519", "x.pem", "--peer", "small.pub", "--allow-zero") == bytes(32)


def one_line(*arguments):
    """The line of a refusal, raised in this process; `modmill` turns it into status 2."""
    with pytest.raises((ValueError, OSError)) as caught:
        CliRunner().invoke(ecc.app, [str(a) for a in arguments], catch_exceptions=False)
    return statuses.one_line(caught.value)


@OPENSSL
def test_a_curve_in_a_file_that_fails_its_validation(place):
    for change, why in (("b", "not on the curve|no point|not on a curve"), ("n", "must be prime|not the order|Hasse")):
        openssl("ecparam", "-name", "prime256v1", "-param_enc", "explicit", "-genkey", "-noout", "-outform", "DER",
                "-out", "key.der")  # fmt: skip
        data = (place / "key.der").read_bytes()
        curve = find_curve("P-256")
        number = getattr(curve, change).to_bytes(32, "big")
        assert number in data
        (place / "bad.der").write_bytes(data.replace(number, number[:-1] + bytes([number[-1] ^ 2])))
        line = one_line("run", "ecdsa-sign", "bad.der", "--message", "message")
        assert re.search(why, line), line
