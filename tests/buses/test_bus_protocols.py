# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Protocols of the calls in C: X25519, X448, ECDH, ECDSA, EdDSA; results of other libraries, faults, wrong inputs."""

import hashlib
import random

import pytest
from calls_bench import NEUTRAL, NONCE, POINT, RANGE, RESULT, flipped, on, simulated
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from marks import long
from modmill.cores.ecc.machine import ecc
from modmill.numbers.curves.encoding import decode_edwards, edwards_size
from modmill.numbers.curves.projective import multiples
from modmill.studies.vectors.ecc_files import rfc8032, wycheproof

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


def about(calls, context):
    """The arguments of a context."""
    return (context, len(context)) if calls.c.ed_context else ()


def edwards(calls, seed, message, context=b""):
    """(error, signature, public key) of a message by the calls."""
    name, size = calls.c.ed, calls.c.ed_bytes
    error, key = calls.bytes(f"{name}_public", [size], seed)
    signed, signature = calls.bytes(f"{name}_sign", [2 * size], message, len(message), *about(calls, context), seed)
    return error or signed, signature, key


def accepts(calls, signature, message, public, context=b""):
    """The error of a verification."""
    given = message, len(message), *about(calls, context), public
    return calls.bytes(f"{calls.c.ed}_verify", [], signature, *given)[0]


PRIVATE = {"ed25519": Ed25519PrivateKey, "ed448": Ed448PrivateKey}
SIZES = {"ed25519": [0, 1, 47, 48, 63, 64, 79, 80, 200, 1023], "ed448": [0, 11, 12, 13, 68, 69, 1023]}


@pytest.mark.parametrize(("calls", "size"), [(c, n) for c, sizes in SIZES.items() for n in sizes], indirect=["calls"])
def test_eddsa_signs_and_verifies_as_another_library_does(size, calls):
    """Lengths at which a hash input fills a block or its length needs another one."""
    rnd, each = random.Random(size), calls.c.ed_bytes
    seed, message = rnd.randbytes(each), rnd.randbytes(size)
    key = PRIVATE[calls.c.ed].from_private_bytes(seed)
    public = key.public_key().public_bytes_raw()
    assert edwards(calls, seed, message) == (0, key.sign(message), public)
    assert accepts(calls, key.sign(message), message, public) == 0
    for at in (0, each - 1, each, each + 8, 2 * each - 1):
        wrong = bytearray(key.sign(message))
        wrong[at] ^= 1
        assert accepts(calls, bytes(wrong), message, public) == RESULT
    assert accepts(calls, key.sign(message), message + b"x", public) == RESULT


@pytest.mark.parametrize(
    ("calls", "source"),
    [("ed25519", "rfc"), ("ed448", "rfc"), long("ed25519", "wycheproof"), long("ed448", "wycheproof")],
    indirect=["calls"],
)
def test_published_signatures(source, calls):
    """Vectors of RFC 8032 (for Ed25519 some of its table), and of Wycheproof; for Ed448 also those with a context."""
    size, title = calls.c.ed_bytes, calls.core.curve.name
    cases = [case for case in (rfc8032(1000) if source == "rfc" else wycheproof(calls.c.ed)) if case.curve == title]
    found = set()
    for case in cases:
        if (case.context and not calls.c.ed_context) or not case.reaches or case.result == "acceptable":
            continue
        if case.operation == "eddsa-sign":
            assert edwards(calls, *case.item, case.context)[:2] == (0, case.expected), case.label
        elif len(case.item[2]) == 2 * size:
            key, message, signature = case.item
            error = accepts(calls, signature, message, key, case.context)
            assert (error == 0) == (case.result == "valid"), case.label
        found.add((case.operation, case.result, bool(case.context)))
    wanted = {
        (result, context)
        for result in ("valid", "invalid")
        for context in ([False, True] if calls.c.ed_context and source == "rfc" else [False])
    }
    assert found >= {("eddsa-verify", *each) for each in wanted}, cases[:1]


@on("ed448")
def test_a_context_belongs_to_the_signature(calls):
    """Another one, none, and one whose first byte the message takes are refused, as is one that is too long."""
    seed, message, context = bytes(57), b"message", bytes(range(255))
    error, signature, public = edwards(calls, seed, message, context)
    assert error == 0 and accepts(calls, signature, message, public, context) == 0
    for text, other in (
        (message, b""),
        (message, context[:-1]),
        (message, context[::-1]),
        (context[-1:] + message, context[:-1]),
    ):
        assert accepts(calls, signature, text, public, other) == RESULT
    assert accepts(calls, signature, message, public, bytes(256)) == RANGE
    assert edwards(calls, seed, message, bytes(256))[:2] == (RANGE, bytes(114))


@on("ed25519", "ed448")
def test_an_eddsa_signature_has_one_form(calls):
    """S + n is refused, and as a public key a y that is not below p, one without an x, and x = 0 with a sign."""
    curve, message, size = calls.core.curve, b"message", calls.c.ed_bytes
    key = PRIVATE[calls.c.ed].from_private_bytes(bytes(range(size)))
    public, signature = key.public_key().public_bytes_raw(), key.sign(message)
    S, top = int.from_bytes(signature[size:], "little"), 1 << 8 * size - 1
    for longer in (S + curve.n, S | top):
        assert accepts(calls, signature[:size] + longer.to_bytes(size, "little"), message, public) == RESULT
    alone, other = (next(y for y in range(2, 40) if encodes(curve, y) == there) for there in (False, True))
    unused = [other | top >> 1] if curve.bits % 8 == 0 else []  # a bit between y and the sign
    for y in (curve.p, curve.p + 1, alone, 1 | top, curve.p - 1 | top, *unused):
        assert accepts(calls, signature, message, y.to_bytes(size, "little")) == POINT
    for y in (1, other):  # points, of which the first is the neutral element
        assert encodes(curve, y)
        assert accepts(calls, signature, message, y.to_bytes(size, "little")) == RESULT


def encodes(curve, y):
    """Whether a number encodes a point."""
    try:
        decode_edwards(curve, y.to_bytes(edwards_size(curve), "little"))
    except ValueError:
        return False
    return True


def unreleased(calls):
    size = calls.c.ed_bytes
    return calls.bytes(f"{calls.c.ed}_sign", [2 * size], b"message", 7, *about(calls, b""), bytes(range(size))) == (
        RESULT,
        bytes(2 * size),
    )


@on("ed25519", "ed448")
@pytest.mark.parametrize("operation", ["multiply-base", "multiply-add", "multiply-two"])
def test_an_eddsa_signature_with_a_fault_is_not_released(operation, calls):
    calls.bus.fault = flipped(operation, 3)
    assert unreleased(calls)


@on("ed25519", "ed448")
def test_another_point_is_not_signed_with(calls):
    """A fault that gives r B a wrong value on the curve is found by the verification."""
    curve = calls.core.curve
    wrong = multiples(curve, [(5, curve.base)])
    calls.bus.fault = lambda name, numbers: [*wrong, *numbers[2:]] if name == "multiply-base" else numbers
    assert unreleased(calls)
