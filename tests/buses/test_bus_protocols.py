# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Protocols of the calls in C: X25519, X448, ECDH, ECDSA, Ed25519; results of other libraries, faults, wrong inputs."""

import hashlib
import random

import pytest
from calls_bench import NEUTRAL, NONCE, POINT, RANGE, RESULT, flipped, on, simulated
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from modmill.cores.ecc.machine import ecc
from modmill.numbers.curves.encoding import decode_edwards
from modmill.numbers.curves.projective import multiples

RFC_7748 = {
    "x25519": (
        "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
        "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
        "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
    ),
    "x448": (
        "3d262fddf9ec8e88495266fea19a34d28882acef045104d0d1aae121700a779c984c24f8cdd78fbff44943eba368f54b29259a4f1c600ad3",
        "06fce640fa3487bfda5f6cf2d5263f8aad88334cbd07437f020f08f9814dc031ddbdc38c19c6da2583fa5429db94ada18aa7a7fb4ef8a086",
        "ce3e4ff95a60dc6697da1db1d85e6afbdf79b50a2412d7546d5f239fe14fbaadeb445fc66a01b0779d98223961111e21766282f73dd96b6f",
    ),
}


@on("x25519", "x448")
def test_the_vectors_of_rfc_7748(calls):
    name = calls.core.calls.x
    size = calls.core.curve.size
    scalar, u, wanted = map(bytes.fromhex, RFC_7748[name])
    assert calls.bytes(name, [size], scalar, u) == (0, wanted)
    above = (calls.core.curve.p + 1).to_bytes(size, "little")  # u = 1, of small order
    assert calls.bytes(name, [size], scalar, above) == (NEUTRAL, bytes(size))


def pair(curve, rnd):
    """A private key and its public point as bytes."""
    d = rnd.randrange(1, curve.n)
    x, y = multiples(curve, [(d, curve.base)])
    return d, x.to_bytes(curve.size, "big") + y.to_bytes(curve.size, "big")


@on("p256", "p384", "p521")
def test_ecdh(calls):
    curve, rnd = calls.core.curve, random.Random(7)
    size = curve.size
    order = -(-curve.n.bit_length() // 8)
    (a, A), (b, _) = pair(curve, rnd), pair(curve, rnd)
    shared = multiples(curve, [(a * b % curve.n, curve.base)])[0].to_bytes(size, "big")
    assert calls.bytes("ecdh", [size], b.to_bytes(order, "big"), A) == (0, shared)
    assert calls.bytes("public", [2 * size], a.to_bytes(order, "big")) == (0, A)
    for wrong in (0, curve.n):
        assert calls.bytes("ecdh", [size], wrong.to_bytes(order, "big"), A) == (RANGE, bytes(size))
        assert calls.bytes("public", [2 * size], wrong.to_bytes(order, "big")) == (RANGE, bytes(2 * size))
    off = A[:-1] + bytes([A[-1] ^ 1])
    beyond = curve.p.to_bytes(size, "big") + A[size:]
    for peer, error in ((off, POINT), (beyond, RANGE), (bytes(2 * size), NEUTRAL)):
        assert calls.bytes("ecdh", [size], b.to_bytes(order, "big"), peer) == (error, bytes(size))


CURVES = {"P-256": ec.SECP256R1, "secp256k1": ec.SECP256K1, "P-521": ec.SECP521R1}


def verified(curve, Q, hashed, r, s):
    """Whether `cryptography` accepts a signature of a SHA-256."""
    key = ec.EllipticCurvePublicKey.from_encoded_point(CURVES[curve.name](), b"\4" + Q)
    signature = utils.encode_dss_signature(int.from_bytes(r, "big"), int.from_bytes(s, "big"))
    key.verify(signature, hashed, ec.ECDSA(utils.Prehashed(hashes.SHA256())))
    return True


def signing(curve, rnd):
    """Sizes of r and s, arguments of a signature, the public key, the hash."""
    order = -(-curve.n.bit_length() // 8)
    d, Q = pair(curve, rnd)
    hashed = hashlib.sha256(b"message").digest()
    k = rnd.randrange(1, curve.n)
    return [order, order], [hashed, len(hashed), d.to_bytes(order, "big"), k.to_bytes(order, "big")], Q, hashed


@on("p256", "secp256k1", "p521")
def test_signatures(calls):
    curve = calls.core.curve
    sizes, given, Q, hashed = signing(curve, random.Random(11))
    error, r, s = calls.bytes("ecdsa_sign", sizes, *given)
    assert error == 0 and verified(curve, Q, hashed, r, s)
    assert calls.bytes("ecdsa_verify", [], r, s, hashed, len(hashed), Q) == (0,)
    zero, order = bytes(sizes[0]), curve.n.to_bytes(sizes[0], "big")
    wrong = [(r, s[:-1] + bytes([s[-1] ^ 1])), (zero, s), (r, zero), (order, s), (r, order)]
    for one, other in wrong:
        assert calls.bytes("ecdsa_verify", [], one, other, hashed, len(hashed), Q) == (RESULT,)
    assert calls.bytes("ecdsa_verify", [], r, s, hashed[::-1], len(hashed), Q) == (RESULT,)
    off = Q[:-1] + bytes([Q[-1] ^ 1])
    assert calls.bytes("ecdsa_verify", [], r, s, hashed, len(hashed), off) == (POINT,)


@on("p256", "p521")
def test_a_longer_hash_is_cut(calls):
    """72 bytes: the leftmost bits count, as many as n has."""
    curve, rnd = calls.core.curve, random.Random(13)
    sizes, given, _, _ = signing(curve, rnd)
    long = rnd.randbytes(72)
    error, r, s = calls.bytes("ecdsa_sign", sizes, long, 72, *given[2:])
    z = int.from_bytes(long, "big") >> 8 * 72 - curve.n.bit_length()
    d, k = (int.from_bytes(x, "big") for x in given[2:])
    R = int.from_bytes(r, "big")
    assert error == 0 and multiples(curve, [(k, curve.base)])[0] % curve.n == R
    assert int.from_bytes(s, "big") == pow(k, -1, curve.n) * (z + R * d) % curve.n


@on("p256")
@pytest.mark.parametrize("operation", ["multiply-base", "signature", "quotients", "multiply-two"])
def test_a_signature_with_a_fault_is_not_released(operation, calls):
    sizes, given, _, _ = signing(calls.core.curve, random.Random(17))
    calls.bus.fault = flipped(operation, 3)
    assert calls.bytes("ecdsa_sign", sizes, *given) == (RESULT, bytes(32), bytes(32))


@on("p256")
def test_another_point_of_the_curve_is_not_signed_with(calls):
    """A fault that gives k G a wrong value on the curve is found by the verification."""
    curve = calls.core.curve
    sizes, given, _, _ = signing(curve, random.Random(19))
    wrong = multiples(curve, [(5, curve.base)])
    calls.bus.fault = lambda name, numbers: [*wrong, *numbers[2:]] if name == "multiply-base" else numbers
    assert calls.bytes("ecdsa_sign", sizes, *given) == (RESULT, bytes(32), bytes(32))


@on("p256")
def test_zero_is_no_signature(calls):
    sizes, given, _, _ = signing(calls.core.curve, random.Random(23))
    calls.bus.fault = lambda name, numbers: [0] * len(numbers) if name == "signature" else numbers
    assert calls.bytes("ecdsa_sign", sizes, *given) == (NONCE, bytes(32), bytes(32))
    assert calls.library.ecc_check_scalar(given[2]) == 0
    for beyond in (bytes(32), calls.core.curve.n.to_bytes(32, "big"), b"\xff" * 32):
        assert calls.library.ecc_check_scalar(beyond) == RANGE
    for place in (2, 3):
        wrong = [bytes(32) if k == place else x for k, x in enumerate(given)]
        assert calls.bytes("ecdsa_sign", sizes, *wrong) == (RANGE, bytes(32), bytes(32))


@on("no-two")
def test_without_verification_the_name_says_so(calls):
    curve = calls.core.curve
    sizes, given, Q, hashed = signing(curve, random.Random(29))
    error, r, s = calls.bytes("ecdsa_sign_unverified", sizes, *given)
    assert error == 0 and verified(curve, Q, hashed, r, s)
    assert not hasattr(calls.library, "ecc_ecdsa_sign") and not hasattr(calls.library, "ecc_ecdsa_verify")


@on("p256")
def test_secrets_are_overwritten(calls):
    sizes, given, _, _ = signing(calls.core.curve, random.Random(31))
    assert calls.bytes("ecdsa_sign", sizes, *given)[0] == 0
    assert not any(calls.engine.words)


def test_x25519_on_the_simulated_bus(tmp_path):
    calls = simulated(ecc("Curve25519", "pseudo-mersenne", bus="wishbone"), tmp_path)
    scalar, u, wanted = map(bytes.fromhex, RFC_7748["x25519"])
    assert calls.bytes("x25519", [32], scalar, u) == (0, wanted)


def test_a_signature_on_the_simulated_bus(tmp_path):
    core = ecc("P-256", "montgomery-array", operations=("multiply-base", "multiply-two"), order=True, bus="wishbone")
    calls = simulated(core, tmp_path)
    sizes, given, Q, hashed = signing(core.curve, random.Random(37))
    error, r, s = calls.bytes("ecdsa_sign", sizes, *given)
    assert error == 0 and verified(core.curve, Q, hashed, r, s)
    assert calls.bytes("ecdsa_verify", [], r, s, hashed, len(hashed), Q) == (0,)


def ed25519(calls, seed, message):
    """(error, signature, public key) of a message by the calls."""
    error, key = calls.bytes("ed25519_public", [32], seed)
    signed, signature = calls.bytes("ed25519_sign", [64], message, len(message), seed)
    return error or signed, signature, key


@on("ed25519")
@pytest.mark.parametrize("size", [0, 1, 47, 48, 63, 64, 79, 80, 200, 1023])
def test_ed25519_signs_and_verifies_as_another_library_does(size, calls):
    """Lengths at which a hash input fills a block or its length needs another one."""
    rnd = random.Random(size)
    seed, message = rnd.randbytes(32), rnd.randbytes(size)
    key = Ed25519PrivateKey.from_private_bytes(seed)
    public = key.public_key().public_bytes_raw()
    assert ed25519(calls, seed, message) == (0, key.sign(message), public)
    assert calls.bytes("ed25519_verify", [], key.sign(message), message, size, public) == (0,)
    for at in (0, 31, 32, 40):
        wrong = bytearray(key.sign(message))
        wrong[at] ^= 1
        assert calls.bytes("ed25519_verify", [], bytes(wrong), message, size, public) == (RESULT,)
    assert calls.bytes("ed25519_verify", [], key.sign(message), message + b"x", size + 1, public) == (RESULT,)


@on("ed25519")
def test_an_ed25519_signature_has_one_form(calls):
    """S + n is refused, and as a public key a y that is not below p, one without an x, and x = 0 with a sign."""
    curve, message, key = calls.core.curve, b"message", Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    public, signature = key.public_key().public_bytes_raw(), key.sign(message)
    longer = signature[:32] + (int.from_bytes(signature[32:], "little") + curve.n).to_bytes(32, "little")
    assert calls.bytes("ed25519_verify", [], longer, message, 7, public) == (RESULT,)
    alone = next(y for y in range(2, 20) if not encodes(curve, y))
    for y in (curve.p, curve.p + 1, alone, 1 | 1 << 255, curve.p - 1 | 1 << 255):
        assert calls.bytes("ed25519_verify", [], signature, message, 7, y.to_bytes(32, "little")) == (POINT,)
    for y in (1, 3):  # points, of which the first is the neutral element
        assert encodes(curve, y)
        assert calls.bytes("ed25519_verify", [], signature, message, 7, y.to_bytes(32, "little")) == (RESULT,)


def encodes(curve, y):
    """Whether a number encodes a point."""
    try:
        decode_edwards(curve, y.to_bytes(32, "little"))
    except ValueError:
        return False
    return True


@on("ed25519")
@pytest.mark.parametrize("operation", ["multiply-base", "multiply-add", "multiply-two"])
def test_an_ed25519_signature_with_a_fault_is_not_released(operation, calls):
    calls.bus.fault = flipped(operation, 3)
    assert calls.bytes("ed25519_sign", [64], b"message", 7, bytes(range(32))) == (RESULT, bytes(64))


@on("ed25519")
def test_another_point_is_not_signed_with(calls):
    """A fault that gives r B a wrong value on the curve is found by the verification."""
    curve = calls.core.curve
    wrong = multiples(curve, [(5, curve.base)])
    calls.bus.fault = lambda name, numbers: [*wrong, *numbers[2:]] if name == "multiply-base" else numbers
    assert calls.bytes("ed25519_sign", [64], b"message", 7, bytes(range(32))) == (RESULT, bytes(64))
