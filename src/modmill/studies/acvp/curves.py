# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Answers to groups of tests on curves: ECDSA, EdDSA and key agreement by ECDH.

    keyGen, keyVer, sigGen, sigVer    FIPS 186-5; DetECDSA signs with the nonces of RFC 6979
    KAS-ECC-SSC                       shared secrets of SP 800-56A Rev. 3, Sections 6.1 and 6.2, without MQV
    KAS-ECC CDH-Component             one shared secret, Section 5.7.1.2

The host validates public keys; the engine multiplies points, as the protocols in `engines.ecc` state.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from modmill.contract import UnsupportedError
from modmill.engines.ecc import ecdh, ecdsa, eddsa, keygen
from modmill.engines.ecc.blinding import Ecc, require_point
from modmill.engines.ecc.keys import Key
from modmill.numbers.curves.affine import Affine, Curve, Edwards, Weierstrass
from modmill.numbers.curves.encoding import decode_edwards
from modmill.numbers.curves.named import CURVES
from modmill.studies.acvp.engines import Engines
from modmill.studies.acvp.files import Answer, Item, hash_of, hexadecimal, ordinary

SIGNS = ("multiply-base", "multiply-two")
"""Operations for signatures that are checked, and for tests of new key pairs."""
AGREES = (*SIGNS, "multiply")
STATIC, EPHEMERAL = "static", "ephemeral"
SCHEMES = {
    "ephemeralUnified": ((EPHEMERAL, EPHEMERAL),),
    "staticUnified": ((STATIC, STATIC),),
    "onePassDh": ((EPHEMERAL, STATIC),),
    "fullUnified": ((EPHEMERAL, EPHEMERAL), (STATIC, STATIC)),
    "onePassUnified": ((EPHEMERAL, STATIC), (STATIC, STATIC)),
}
"""Scheme -> the keys of initiator and responder of each part of the shared secret."""


def ecdsa_keygen(group: Item, tests: Sequence[Item], engines: Engines) -> Answer:
    """Key pairs, by testing candidates (FIPS 186-5, A.2.2)."""
    ecc = engines.on(group, _weierstrass(group), *SIGNS)
    group.served("secretGenerationMode", ["testing candidates"], "testing candidates")
    keys = keygen.generate(ecc, len(tests)) if tests else []
    size = -(-ecc.curve.n.bit_length() // 8)
    return {}, [{"d": hexadecimal(key.scalar, size), **_shown(ecc.curve, _point(key), "q")} for key in keys]


def ecdsa_keyver(group: Item, tests: Sequence[Item], engines: Engines) -> Answer:
    """Whether public keys are valid."""
    curve = _weierstrass(group)
    engines.on(group, curve)
    return {}, [{"testPassed": _valid(curve, _given(test, "q"))} for test in tests]


def ecdsa_siggen(group: Item, tests: Sequence[Item], engines: Engines, nonce: str = "random") -> Answer:
    """Signatures by one new key; of hashes if it is a test of the component."""
    ordinary(group)
    ecc = engines.on(group, _weierstrass(group), *SIGNS)
    hash = hash_of(group, usable=lambda name: nonce == "random" or name not in ecdsa.SHAKE)
    (key,) = keygen.generate(ecc)
    items = [(key.scalar, test.data("message")) for test in tests]
    hashed = group.flag("componentTest")
    signatures = ecdsa.sign(ecc, items, hash, nonce, hashed=hashed) if items else []
    size = -(-ecc.curve.n.bit_length() // 8)
    shown = [{"r": hexadecimal(r, size), "s": hexadecimal(s, size)} for r, s in signatures]
    return _shown(ecc.curve, _point(key), "q"), shown


def deterministic_siggen(group: Item, tests: Sequence[Item], engines: Engines) -> Answer:
    """The same with deterministic nonces."""
    return ecdsa_siggen(group, tests, engines, "deterministic")


def ecdsa_sigver(group: Item, tests: Sequence[Item], engines: Engines) -> Answer:
    """Whether signatures are valid; one with an invalid public key is not."""
    ordinary(group)
    curve = _weierstrass(group)
    ecc, hash = engines.on(group, curve, "multiply-two"), hash_of(group)
    items = [
        (_given(test, "q"), test.data("message"), (test.number("r"), test.number("s"))) for test in tests
    ]  # fmt: skip
    good = [_valid(curve, Q) for Q, _, _ in items]
    right = iter(ecdsa.verify(
        ecc, [item for item, valid in zip(items, good, strict=True) if valid], hash, hashed=group.flag("componentTest")
    ))  # fmt: skip
    return {}, [{"testPassed": valid and next(right)} for valid in good]


def eddsa_keygen(group: Item, tests: Sequence[Item], engines: Engines) -> Answer:
    """Key pairs: d is the seed, q the encoded point."""
    keys = keygen.generate(engines.on(group, _edwards(group), *SIGNS), len(tests)) if tests else []
    return {}, [{"d": key.private.hex().upper(), "q": (key.public or b"").hex().upper()} for key in keys]


def eddsa_keyver(group: Item, tests: Sequence[Item], engines: Engines) -> Answer:
    """Whether public keys are valid: points of the group of prime order."""
    curve = _edwards(group)
    engines.on(group, curve)
    return {}, [{"testPassed": _encodes(curve, test.data("q"))} for test in tests]


def eddsa_siggen(group: Item, tests: Sequence[Item], engines: Engines) -> Answer:
    """Signatures by one new key, with contexts and prehash."""
    ecc = engines.on(group, _edwards(group), *SIGNS)
    (key,) = keygen.generate(ecc)
    made: dict[int, bytes] = {}
    for context, some in _by_context(tests).items():
        items = [(key.private, tests[k].data("message")) for k in some]
        made |= zip(some, eddsa.sign(ecc, items, context, group.flag("preHash")), strict=True)
    shown = [{"signature": made[k].hex().upper()} for k in range(len(tests))]
    return {"q": (key.public or b"").hex().upper()}, shown


def eddsa_sigver(group: Item, tests: Sequence[Item], engines: Engines) -> Answer:
    """Whether signatures are valid; one with a public key that encodes no point is not."""
    curve = _edwards(group)
    ecc = engines.on(group, curve, "multiply-two")
    right: dict[int, bool] = {}
    for context, some in _by_context(tests).items():
        good = [k for k in some if _encodes(curve, tests[k].data("q"), group=False)]
        items = [(tests[k].data("q"), tests[k].data("message"), tests[k].data("signature")) for k in good]
        right |= zip(good, eddsa.verify(ecc, items, context, group.flag("preHash")), strict=True)
    return {}, [{"testPassed": right.get(k, False)} for k in range(len(tests))]


def shared_secrets(group: Item, tests: Sequence[Item], engines: Engines) -> Answer:
    """Shared secrets with the server's keys, by new keys (AFT), or whether those of a run are right (VAL)."""
    ecc = engines.on(group, _weierstrass(group, "domainParameterGenerationMode"), *AGREES)
    parts = SCHEMES[group.served("scheme", SCHEMES)]
    if group.served("kasRole", ["initiator", "responder"]) == "responder":
        parts = tuple((own, theirs) for theirs, own in parts)
    made = _agreed if group.served("testType", ["AFT", "VAL"]) == "AFT" else _checked
    return {}, made(ecc, group, tests, parts)


def cofactor_secrets(group: Item, tests: Sequence[Item], engines: Engines) -> Answer:
    """Shared secrets with the server's key, each by a new key."""
    group.served("testType", ["AFT"])
    ecc = engines.on(group, _weierstrass(group), *AGREES)
    keys = keygen.generate(ecc, len(tests)) if tests else []
    items = [
        (key.scalar, _served_point(ecc.curve, test, "publicServer")) for key, test in zip(keys, tests, strict=True)
    ]
    secrets = ecdh.exchange(ecc, items)
    return {}, [
        {**_shown(ecc.curve, _point(key), "publicIut", upper=True), "z": z.hex().upper()}
        for key, z in zip(keys, secrets, strict=True)
    ]


def _agreed(ecc: Ecc, group: Item, tests: Sequence[Item], parts: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    kinds = list(dict.fromkeys(own for own, _ in parts))
    keys = keygen.generate(ecc, len(kinds) * len(tests)) if tests else []
    out = []
    for k, test in enumerate(tests):
        mine = dict(zip(kinds, keys[k * len(kinds) :], strict=False))
        items = [
            (mine[own].scalar, _served_point(ecc.curve, test, f"{theirs}PublicServer")) for own, theirs in parts
        ]  # fmt: skip
        shown: dict[str, Any] = {}
        for kind, key in mine.items():
            shown |= _shown(ecc.curve, _point(key), f"{kind}PublicIut", upper=True)
        name, secret = _secret(group, b"".join(ecdh.exchange(ecc, items)))
        out.append({**shown, name: secret.hex().upper()})
    return out


def _checked(ecc: Ecc, group: Item, tests: Sequence[Item], parts: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    out = []
    for test in tests:
        kinds = dict.fromkeys(own for own, _ in parts)
        mine = {kind: test.number(f"{kind}PrivateIut") for kind in kinds}
        public = {kind: _given(test, f"{kind}PublicIut", upper=True) for kind in kinds}
        theirs = [_given(test, f"{other}PublicServer", upper=True) for _, other in parts]
        name, _ = _secret(group, b"")
        given = test.data(name)
        good = all(0 < d < ecc.curve.n for d in mine.values()) and all(_valid(ecc.curve, Q) for Q in theirs)
        if good and ecc.multiply_base(list(mine.values())) == list(public.values()):
            items = [(mine[own], Q) for (own, _), Q in zip(parts, theirs, strict=True)]
            good = _secret(group, b"".join(ecdh.exchange(ecc, items)))[1] == given
        else:
            good = False
        out.append({"testPassed": good})
    return out


def _secret(group: Item, Z: bytes) -> tuple[str, bytes]:
    """Name and value of a shared secret in a file: itself, or its hash."""
    if group.text("hashFunctionZ", "none").lower() == "none":
        return "z", Z
    return "hashZ", ecdsa.digest(hash_of(group, "hashFunctionZ"), Z)


def _curve(group: Item, name: str, form: type[Curve]) -> Curve:
    known = {_title(curve): curve for curve in CURVES if isinstance(curve, form) and not curve.arithmetic}
    return known[group.served(name, known)]


def _title(curve: Curve) -> str:
    """ACVP's name of a curve."""
    return curve.name.replace("Ed", "ED-") if isinstance(curve, Edwards) else curve.name


def _weierstrass(group: Item, name: str = "curve") -> Weierstrass:
    found = _curve(group, name, Weierstrass)
    assert isinstance(found, Weierstrass)
    return found


def _edwards(group: Item) -> Edwards:
    found = _curve(group, "curve", Edwards)
    assert isinstance(found, Edwards)
    return found


def _names(prefix: str, upper: bool) -> tuple[str, str]:
    return (f"{prefix}X", f"{prefix}Y") if upper else (f"{prefix}x", f"{prefix}y")


def _given(test: Item, prefix: str, upper: bool = False) -> Affine:
    """A point of a test, not validated."""
    x, y = _names(prefix, upper)
    return test.number(x), test.number(y)


def _served_point(curve: Curve, test: Item, prefix: str) -> Affine:
    """A valid point of a test. Raises UnsupportedError if it is not."""
    P = _given(test, prefix, upper=True)
    if not _valid(curve, P):
        raise UnsupportedError(f"{test.where}: {prefix} is no valid public key on {curve.title}")
    return P


def _shown(curve: Curve, P: Affine, prefix: str, upper: bool = False) -> dict[str, str]:
    return {name: hexadecimal(c, curve.size) for name, c in zip(_names(prefix, upper), P, strict=True)}


def _point(key: Key) -> Affine:
    P = key.point
    assert P is not None
    return P


def _valid(curve: Curve, P: Affine) -> bool:
    try:
        return max(P) < curve.p and require_point(curve, P) == P
    except UnsupportedError:
        return False


def _encodes(curve: Edwards, data: bytes, group: bool = True) -> bool:
    """Whether bytes encode a point, and with ``group`` one of prime order."""
    try:
        P = decode_edwards(curve, data)
    except ValueError:
        return False
    return not group or _valid(curve, P)


def _by_context(tests: Sequence[Item]) -> dict[bytes, list[int]]:
    """Context -> the tests that have it."""
    found: dict[bytes, list[int]] = defaultdict(list)
    for k, test in enumerate(tests):
        context = test.data("context", "")
        if len(context) > eddsa.CONTEXT:
            raise test.wrong("context", f"of at most {eddsa.CONTEXT} bytes")
        found[context].append(k)
    return found
