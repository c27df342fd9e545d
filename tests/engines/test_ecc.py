# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Protocols above an engine: ranges, exceptional points, blinding, what reaches the engine, checks before release."""

import hashlib
import itertools
import random
from dataclasses import dataclass, field, replace

import pytest
from Crypto.PublicKey import ECC
from Crypto.Signature import DSS

from marks import long
from modmill.contract import Fault, UnsupportedError
from modmill.engines.ecc import ecdh, ecdsa, eddsa
from modmill.engines.ecc.blinding import BLIND, Ecc, HostOrder, ReferenceEngine, both_orders, require_point, scalar_bits
from modmill.engines.rsa.padding import HASHES
from modmill.numbers.curves.affine import Edwards, Montgomery, Weierstrass
from modmill.numbers.curves.encoding import encode_edwards, encode_u
from modmill.numbers.curves.named import CURVE448, CURVE25519, CURVES, ED448, ED25519, find_curve
from modmill.numbers.primes import square_root
from modmill.studies.vectors import ecc_edges as edges

P256, K256 = find_curve("P-256"), find_curve("secp256k1")
WEIERSTRASS = [curve for curve in CURVES if isinstance(curve, Weierstrass)]
COFACTOR = Weierstrass(617, (87, 87), 103, 6, a=0, b=1)
"""618 points, so some of order 2 and 3."""


@dataclass(frozen=True)
class Recording(ReferenceEngine):
    """The reference engine that notes what it is asked; by default all that it answers is right."""

    asked: list = field(default_factory=list)

    def results(self, operation, bits, runs):
        if operation != "multiply-two":
            self.asked.append(([k for (k,), _ in runs], bits, [given["blind"] for _, given in runs]))
        return super().results(operation, bits, runs)


@dataclass(frozen=True)
class Deaf:
    """An engine that can do nothing at all."""

    curve: object


@pytest.mark.parametrize("blind", [0, 64])
@pytest.mark.parametrize(
    "curve", [P256, long(find_curve("P-521")), long(find_curve("SM2")), ED25519, ED448], ids=lambda c: c.name
)
def test_exceptional_scalars_and_points(curve, blind):
    ecc, G = Ecc(ReferenceEngine(curve), blind_scalar=blind), curve.base
    scalars, points, expected = zip(*edges.edge_multiples(curve), strict=True)
    assert ecc.multiply(scalars, points) == list(expected)
    assert ecc.multiply_base(scalars[:7]) == [curve.multiply(k, G) for k in scalars[:7]]
    pairs, points, expected = zip(*edges.edge_sums(curve), strict=True)
    assert ecc.multiply_two(pairs, points) == list(expected)
    for k in (-1, curve.n + 1):
        with pytest.raises(UnsupportedError, match="must be in \\[0, n\\]"):
            ecc.multiply([k], [G])
    with pytest.raises(UnsupportedError, match="not on"):
        ecc.multiply([1], [(G[0], G[1] ^ 1)])


@pytest.mark.parametrize("curve", [CURVE25519, CURVE448], ids=lambda c: c.name)
def test_exceptional_ladders(curve):
    cases = edges.edge_ladders(curve)
    scalars, us, expected = zip(*cases, strict=True)
    for blind in (0, 64):
        ecc = Ecc(ReferenceEngine(curve), blind_scalar=blind)
        assert ecc.ladder(scalars, us, curve.bits + 1) == list(expected)
    assert 0 in us and 0 in expected


@pytest.mark.parametrize("curve", [ED25519, ED448], ids=lambda c: c.name)
def test_points_of_small_order(curve):
    points = edges.small_order_points(curve)
    assert len(points) == curve.h
    for T in points:
        with pytest.raises(UnsupportedError, match=r"neutral|not in the group"):
            require_point(curve, T)
    assert require_point(curve, curve.base) == curve.base


def test_an_engine_is_never_asked_for_nothing():
    for curve in (P256, ED25519):
        ecc = Ecc(Deaf(curve))
        assert ecc.multiply([], []) == ecc.multiply_base([]) == ecc.multiply_two([], []) == []
    assert ecdsa.verify(Ecc(Deaf(P256)), [(P256.base, b"", (0, 0))]) == [False]
    assert eddsa.verify(Ecc(Deaf(ED25519)), [(bytes([1, *bytes(31)]), b"", b"")]) == [False]
    assert ecdh.exchange_u(Ecc(Deaf(CURVE25519)), []) == []


@pytest.mark.parametrize("curve", [ED25519, ED448], ids=lambda c: c.name)
def test_verification_is_with_the_cofactor(curve):
    """A signer adds points of small order to the public key and to R: only the equation with the cofactor holds."""
    ecc, message, n, s, r = Ecc(ReferenceEngine(curve)), b"message", curve.n, 2**200 + 1, 2**190 + 3
    scheme = eddsa.SCHEMES[curve]
    A, R = ecc.multiply_base([s, r])
    pairs = list(itertools.product(edges.small_order_points(curve)[::2], repeat=2))
    without = 0
    for T, U in pairs:
        key, start = (encode_edwards(curve, curve.add(P, Q)) for P, Q in ((A, T), (R, U)))
        k = int.from_bytes(scheme.hash(scheme.dom(b"", False) + start + key + message), "little") % n
        S = (r + k * s) % n
        signature = start + S.to_bytes(len(start), "little")
        assert eddsa.verify(ecc, [(key, message, signature)]) == [True]
        assert eddsa.verify(ecc, [(key, message, start + (S ^ 1).to_bytes(len(start), "little"))]) == [False]
        left = curve.multiply(S, curve.base)
        without += left == curve.add(curve.add(R, U), curve.multiply(k, curve.add(A, T)))
    assert without < len(pairs), "no signature tells the two equations apart"


@pytest.mark.parametrize("curve", [CURVE25519, CURVE448], ids=lambda c: c.aliases[0])
def test_exceptional_u(curve):
    orders_two = [0]
    square = square_root(curve.A**2 - 4, curve.p)
    if square is not None:
        orders_two.append((square - curve.A) * pow(2, -1, curve.p) % curve.p)
    secret = bytes(range(curve.size))
    for u in (*orders_two, 1, curve.p - 1, 2, 3, curve.base[0]):
        found = set()
        for blind in (0, 1, 64):
            engine = Recording(curve)
            ecc = Ecc(engine, blind_scalar=blind)
            found |= set(ecdh.exchange_u(ecc, [(secret, encode_u(curve, u))], allow_zero=True))
            (((k,), bits, _),) = engine.asked
            assert bits == (max(N.bit_length() for N in both_orders(curve)) + blind if blind else curve.bits)
            assert k < 1 << bits
        assert len(found) == 1, "blinding changed the secret"
        expected = curve.multiply_u(ecdh._scalar(curve, secret), u)
        assert found == {encode_u(curve, expected)}
    with pytest.raises(UnsupportedError, match="small order"):
        ecdh.exchange_u(Ecc(ReferenceEngine(curve)), [(secret, bytes(curve.size))])
    for secret_bytes, public in ((secret[1:], bytes(curve.size)), (secret, bytes(curve.size + 1))):
        with pytest.raises(UnsupportedError, match=rf"{curve.size} bytes, (got|not) \d+$"):
            ecdh.exchange_u(Ecc(ReferenceEngine(curve)), [(secret_bytes, public)])


def test_blinding_of_a_twist_point_needs_the_order_of_the_twist():
    curve = CURVE25519
    u = next(u for u in range(2, 99) if square_root(curve.right(u), curve.p) is None)
    own, twist = both_orders(curve)
    assert curve.multiply_u(twist + 8, u) == curve.multiply_u(8, u)
    assert curve.multiply_u(own + 8, u) != curve.multiply_u(8, u), "the planted order would not be caught"


@pytest.mark.parametrize("curve", [P256, COFACTOR, ED25519])
def test_what_reaches_the_engine(curve):
    engine = Recording(curve)
    k = curve.n - 1
    plain, blinded = Ecc(engine), Ecc(engine, blind_scalar=64, blind_coordinates=True)
    expected = curve.multiply(k, curve.base)
    for ecc in (plain, blinded, blinded):
        assert ecc.multiply([k, k], [curve.base] * 2) == [expected] * 2
    (first, bits, ones), (second, more, blinds), (third, again, others) = engine.asked
    assert (first, bits, ones) == ([k, k], curve.n.bit_length(), [1, 1])
    assert more == again == (curve.n * curve.h).bit_length() + 64
    assert len({*second, *third}) == 4 and all((s - k) % (curve.n * curve.h) == 0 for s in second)
    assert all(0 < b < curve.p for b in (*blinds, *others)) and len({*blinds, *others}) > 2
    largest = Ecc(engine, blind_scalar=64, below=lambda end: end - 1)
    largest.multiply([curve.n], [curve.base])
    assert engine.asked[-1][0][0].bit_length() <= more


def test_options_out_of_range():
    for bits in (-1, BLIND[-1] + 1):
        with pytest.raises(UnsupportedError, match="0 to 128 bits"):
            Ecc(ReferenceEngine(P256), blind_scalar=bits)


class Wrong(ReferenceEngine):
    """A planted fault: one bit of each result is flipped, or the result is another point of the curve."""

    kind = "bit"

    def results(self, operation, bits, runs):
        found = super().results(operation, bits, runs)
        if operation == "multiply-two":
            return found
        if self.kind == "bit":
            return [(x ^ 1, y) for x, y in found]
        return [self.curve.add(P, self.curve.base) for P in found]


class Other(Wrong):
    kind = "other"


def test_faults_are_caught_before_release():
    with pytest.raises(Fault, match="not on P-256"):
        Ecc(Wrong(P256)).multiply_base([5])
    with pytest.raises(Fault, match="failed its verification"):
        ecdsa.sign(Ecc(Other(P256)), [(5, b"")], nonce="random")
    with pytest.raises(Fault, match="failed its verification"):
        eddsa.sign(Ecc(Other(ED25519)), [(bytes(32), b"")])
    assert ecdsa.sign(Ecc(Other(P256), check=False), [(5, b"")]), "unchecked, it is released"


@pytest.mark.parametrize("curve", WEIERSTRASS, ids=lambda c: c.name)
def test_exchange_and_signature_on_every_curve(curve):
    rnd = random.Random(curve.name)
    ecc = Ecc(ReferenceEngine(curve), blind_scalar=32, blind_coordinates=True)
    a, b = rnd.randrange(1, curve.n), curve.n - 1
    A, B = ecc.multiply_base([a, b])
    assert ecdh.exchange(ecc, [(a, B)]) == ecdh.exchange(ecc, [(b, A)])
    for nonce in ecdsa.NONCES:
        items = [(a, b"one"), (b, b"two"), (a, b"")]
        signatures = ecdsa.sign(ecc, items, "sha512", nonce)
        whole = [({a: A, b: B}[d], m, s) for (d, m), s in zip(items, signatures, strict=True)]
        assert ecdsa.verify(ecc, whole, "sha512") == [True] * 3
        assert ecdsa.verify(ecc, [(A, b"two", whole[1][2]), *whole], "sha512") == [False, True, True, True]
        for form in ecdsa.FORMS:
            assert [ecdsa.decode(curve, ecdsa.encode(curve, s, form), form) for s in signatures] == signatures
    r, s = signatures[0]
    n = curve.n
    bad = [(0, s), (r, 0), (n, s), (r, n), (r + n, s), (r, s + n), (-r, s), (r, -s), (0, 0)]
    assert not any(ecdsa.verify(ecc, [(A, b"one", pair) for pair in bad], "sha512"))


def test_shake_and_low_s():
    ecc, n = Ecc(ReferenceEngine(K256)), K256.n
    assert [len(ecdsa.digest(name, b"")) for name in ("shake128", "shake256")] == [32, 64]
    with pytest.raises(UnsupportedError, match="not defined for shake128: take random nonces"):
        ecdsa.sign(ecc, [(1, b"")], "shake128")
    (signature,) = ecdsa.sign(ecc, [(1, b"")], "shake256", "random")
    assert ecdsa.verify(ecc, [(K256.base, b"", signature)], "shake256") == [True]
    assert ecdsa.verify(ecc, [(K256.base, b"", signature)], "shake128") == [False]
    items = [(1, bytes([i])) for i in range(16)]
    free, low = ecdsa.sign(ecc, items), ecdsa.sign(ecc, items, low_s=True)
    high = [2 * s > n for _, s in free]
    assert 0 < sum(high) < 16 and low == [(r, n - s if above else s) for (r, s), above in zip(free, high, strict=True)]
    for signatures, allowed in ((free, [not above for above in high]), (low, [True] * 16)):
        whole = [(K256.base, m, s) for (_, m), s in zip(items, signatures, strict=True)]
        assert ecdsa.verify(ecc, whole) == [True] * 16
        assert ecdsa.verify(ecc, whole, low_s=True) == allowed


def test_keys_out_of_range():
    ecc, Q = Ecc(ReferenceEngine(P256)), P256.base
    for d in (0, -1, P256.n, P256.n + 1):
        with pytest.raises(UnsupportedError, match="not in \\[1, n - 1\\] of P-256"):
            ecdh.exchange(ecc, [(d, Q)])
        with pytest.raises(UnsupportedError, match="not in \\[1, n - 1\\] of P-256"):
            ecdsa.sign(ecc, [(d, b"")])
    for P, why in ((None, "neutral"), ((Q[0], Q[1] ^ 1), "not on"), ((Q[0], P256.p + Q[1]), "not on")):
        with pytest.raises(UnsupportedError, match=why):
            ecdh.exchange(ecc, [(1, P)])
        with pytest.raises(UnsupportedError, match=why):
            ecdsa.verify(ecc, [(P, b"", (1, 1))])
    with pytest.raises(UnsupportedError, match="not in the group"):
        ecdh.exchange(Ecc(ReferenceEngine(COFACTOR)), [(1, (616, 0))])


def test_protocols_refuse_other_forms():
    weierstrass, montgomery, edwards = (Ecc(ReferenceEngine(c)) for c in (P256, CURVE25519, ED25519))
    with pytest.raises(UnsupportedError, match="Curve25519 is not a Weierstrass"):
        ecdh.exchange(montgomery, [])
    with pytest.raises(UnsupportedError, match="Ed25519 is not a Weierstrass"):
        ecdsa.sign(edwards, [])
    with pytest.raises(UnsupportedError, match="P-256 is not a Montgomery"):
        ecdh.exchange_u(weierstrass, [])
    with pytest.raises(UnsupportedError, match="not for P-256"):
        eddsa.sign(weierstrass, [])
    with pytest.raises(UnsupportedError, match="no ladder"):
        weierstrass.ladder([1], [1], 1)
    assert isinstance(replace(ED25519, d=ED25519.d - 1), Edwards)
    with pytest.raises(UnsupportedError, match="defined for Ed25519 and Ed448"):
        eddsa.public(Ecc(ReferenceEngine(replace(ED25519, h=4))), [])
    assert isinstance(CURVE448, Montgomery)


def test_names_that_are_none():
    ecc = Ecc(ReferenceEngine(P256))
    with pytest.raises(UnsupportedError, match=r"hash must be one of sha1, .* not 'md5'"):
        ecdsa.sign(ecc, [(1, b"")], "md5")
    with pytest.raises(UnsupportedError, match="nonces must be one of deterministic, hedged, random, not 'zero'"):
        ecdsa.sign(ecc, [(1, b"")], nonce="zero")
    with pytest.raises(UnsupportedError, match="must be one of der, raw, not 'pem'"):
        ecdsa.encode(P256, (1, 1), "pem")
    with pytest.raises(UnsupportedError, match="64 bytes, got 1"):
        ecdsa.decode(P256, b"\0", "raw")
    for data in (b"", b"0", b"\x30\x06\x02\x01\x01\x02\x01", bytes.fromhex("3006020101020101") + b"\0"):
        with pytest.raises(UnsupportedError, match="malformed DER signature"):
            ecdsa.decode(P256, data)
    with pytest.raises(UnsupportedError, match="at most 255 bytes, got 256"):
        eddsa.sign(Ecc(ReferenceEngine(ED25519)), [], context=bytes(256))
    with pytest.raises(UnsupportedError, match="32 bytes, got 31"):
        eddsa.sign(Ecc(ReferenceEngine(ED25519)), [(bytes(31), b"")])


def test_nonces_differ_by_message_key_and_extra_data():
    hashed = hashlib.sha256(b"m").digest()
    first = next(ecdsa.nonces(P256.n, 1, hashed))
    several = [
        first,
        next(ecdsa.nonces(P256.n, 2, hashed)),
        next(ecdsa.nonces(P256.n, 1, hashlib.sha256(b"n").digest())),
        next(ecdsa.nonces(P256.n, 1, hashed, extra=b"more")),
    ]
    assert len(set(several)) == 4 and next(ecdsa.nonces(P256.n, 1, hashed)) == first
    draws = ecdsa.nonces(29, 3, hashed)  # numbers of five bits: some are passed over
    assert {next(draws) for _ in range(400)} == set(range(1, 29))


@pytest.mark.parametrize("name", ["P-224", "P-256", "P-384", "P-521", "secp256k1"])
def test_deterministic_signatures_are_those_of_pycryptodome(name):
    """With every hash, those included for which RFC 6979 has no vectors. Its nonces alone cannot be had from it."""
    curve, key = find_curve(name), ECC.generate(curve=name)
    scheme = DSS.new(key, "deterministic-rfc6979")
    ecc = Ecc(ReferenceEngine(curve), check=False)
    for hash, module in HASHES.items():
        message = f"hashed by {hash}".encode()
        (signature,) = ecdsa.sign(ecc, [(int(key.d), message)], hash)
        assert ecdsa.encode(curve, signature, "raw") == scheme.sign(module.new(message)), (hash, key.d)


def test_a_nonce_that_gives_zero_is_replaced():
    toy = Weierstrass(23, (0, 1), 29, a=18, b=1)  # x = 0 for k = 1 and 28: r is zero
    values = iter([0, 27, 0, 4, 0, 0, 0, 0])  # the nonces 1, 28, 1, 5
    ecc = Ecc(ReferenceEngine(toy), check=False, below=lambda end: next(values))
    ((r, s),) = ecdsa.sign(ecc, [(7, b"x")], nonce="random")
    assert r == toy.multiply(5, toy.base)[0] % toy.n and s
    always = Ecc(ReferenceEngine(toy), check=False, below=lambda end: 0)
    with pytest.raises(Fault, match="zero in 64 tries"):
        ecdsa.sign(always, [(7, b"x")], nonce="random")


class Elsewhere(HostOrder):
    """Arithmetic modulo the order that is not the host's."""

    def __init__(self):
        super().__init__("core")
        self.__dict__["done"] = []

    def signatures(self, n, items):
        self.done.append(("signature", len(items)))
        return super().signatures(n, items)

    def quotients(self, n, items):
        self.done.append(("quotients", len(items)))
        return super().quotients(n, items)

    def multiply_adds(self, n, items):
        self.done.append(("multiply-add", len(items)))
        return super().multiply_adds(n, items)


def test_arithmetic_modulo_the_order_is_the_engines_where_it_has_it():
    order = Elsewhere()
    ecc = Ecc(ReferenceEngine(K256), order=order)
    ecdsa.sign(ecc, [(1, b"m")])
    assert order.done == [("signature", 1), ("quotients", 1)]
    eddsa.sign(Ecc(ReferenceEngine(ED25519), order=order), [(bytes(32), b"m")])
    assert order.done[2:] == [("multiply-add", 1)]
    assert Ecc(ReferenceEngine(K256)).order.where == "host"


def test_the_reference_engine_keeps_to_its_length():
    engine = ReferenceEngine(P256)
    with pytest.raises(UnsupportedError, match=r"must be in \[0, 2\^8\), got one of 9 bits"):
        engine.multiply_base([256], 8, [1])
    with pytest.raises(ValueError, match="argument"):
        engine.multiply([1], [P256.base], 8, [])


@pytest.mark.parametrize("name", ["P-256", "X25519", "X448", "Ed25519", "Ed448"])
@pytest.mark.parametrize("blind", [1, 64, 128])
def test_an_engine_has_room_for_every_blinded_scalar(name, blind):
    curve = find_curve(name)
    orders = both_orders(curve) if isinstance(curve, Montgomery) else [curve.n * curve.h]
    largest = max(orders) * (2**blind - 1) + (curve.p if isinstance(curve, Montgomery) else curve.n)
    assert largest.bit_length() <= scalar_bits(curve, blind) <= largest.bit_length() + 1
