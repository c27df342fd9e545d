# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Published vectors through the protocols on the reference engine: all, but of Ed25519's own table each sixteenth line.

Files of Wycheproof that hold the same keys in other containers share their multiples.
"""

import functools
from dataclasses import replace

import pytest

from marks import long
from modmill.contract import UnsupportedError
from modmill.engines.ecc import ecdh, eddsa
from modmill.engines.ecc.blinding import Ecc, ReferenceEngine, reference, require_point
from modmill.numbers.curves.named import CURVE448, CURVE25519, ED448, ED25519, find_curve
from modmill.studies.vectors import ecc_files as published
from modmill.studies.vectors.ecc_cases import faults, sample

NAMES = sorted(published.wycheproof_files())
WYCHEPROOF = [name for name in NAMES if not name.startswith("more/")]
MORE = [name for name in NAMES if name.startswith("more/")]
_reference = functools.cache(
    lambda curve, operation, scalars, given: reference(curve, operation, (scalars, dict(given)))
)


class Caching(ReferenceEngine):
    """The reference engine, that computes no multiple twice."""

    def results(self, operation, bits, runs):
        given = [(scalars, tuple((key, x) for key, x in given.items() if key != "blind")) for scalars, given in runs]
        return [_reference(self.curve, operation, *one) for one in given]


@functools.cache
def ecc(name):
    return Ecc(Caching(find_curve(name)), check=False)


def passed(cases, count):
    assert len(cases) == count
    assert faults(ecc, cases) == []


def test_the_files_are_there():
    assert len(WYCHEPROOF) == 52
    assert sum(len(published.wycheproof(name)) for name in WYCHEPROOF) == 26_803


@pytest.mark.parametrize("name", WYCHEPROOF)
def test_a_sample_has_every_flag(name):
    cases = published.wycheproof(name)
    reach = [case for case in cases if not isinstance(case.item, str)]
    chosen = sample(cases, 100)
    assert len(chosen) == min(100, len(reach)) == len(set(map(id, chosen)))
    marks = [{mark for case in some for mark in (*case.flags, case.result)} for some in (chosen, reach)]
    assert marks[0] == marks[1]


KEPT = "ecdh_secp521r1", "ecdsa_secp384r1_sha384", "ecdsa_secp192r1_sha256_p1363"
"""Of the files that repeat others, those that the suite runs."""


def repeated(name):
    """Whether others have the same operations on this curve or a smaller one, with another hash or container."""
    return name not in KEPT and any(part in name for part in ("secp384", "secp521", "_p1363", "_sha3_"))


@pytest.mark.parametrize("name", [long(n) if repeated(n) else n for n in (*WYCHEPROOF, *MORE)])
def test_wycheproof(name):
    cases = published.wycheproof(name)
    assert {case.result for case in cases} >= {"valid"}
    passed(cases, len(cases))


@pytest.mark.parametrize(
    ("name", "count"), [("FIPS_186-2/SigVer.rsp", 75), ("FIPS_186-3/SigVer.rsp", 375), ("SECP256K1/SigGen.txt", 1125)]
)
def test_nist_signatures(name, count):
    passed(published.nist_signatures(name), count)


def test_nist_exchange_and_rfc7027():
    passed(published.nist_cdh(), 131)


def test_nist_points():
    cases = published.nist_points()
    assert len(cases) == 120
    for name, x, y, good in cases:
        try:
            require_point(find_curve(name), (x, y))
        except UnsupportedError:
            assert not good
        else:
            assert good


def test_rfc6979():
    passed(published.rfc6979(), 150)


def test_rfc8032():
    passed(published.rfc8032(every=16), 228)


def test_rfc7748():
    passed(published.rfc7748(), 6)


@pytest.mark.parametrize(
    ("curve", "after"),
    [
        (CURVE25519, "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51"),
        pytest.param(
            CURVE448,
            "aa3b4749d55b9daf1e5b00288826c467274ce3ebbdd5c17b975e09d4"
            "af6c67cf10d087202db88286e2b79fceea3ec353ef54faa26e219f38",
            marks=[pytest.mark.slow, pytest.mark.long],
        ),
    ],
)
def test_rfc7748_a_thousand_times(curve, after):
    engine = Ecc(ReferenceEngine(curve))
    k = u = curve.base[0].to_bytes(curve.size, "little")
    for _ in range(1000):
        k, u = ecdh.exchange_u(engine, [(k, u)])[0], k
    assert k.hex() == after


@pytest.mark.parametrize(
    ("curve", "seed", "message", "context", "prehashed", "signature"),
    [
        (
            ED25519,
            "0305334e381af78f141cb666f6199f57bc3495335a256a95bd2a55bf546663f6",
            "f726936d19c800494e3fdaff20b276a8",
            b"foo",
            False,
            "55a4cc2f70a54e04288c5f4cd1e45a7bb520b36292911876cada7323198dd87a"
            "8b36950b95130022907a7fb7c4e9b2d5f6cca685a587b4b21f4b888e4e7edb0d",
        ),
        (
            ED25519,
            "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
            "616263",
            b"",
            True,
            "98a70222f0b8121aa9d30f813d683f809e462b469c7ff87639499bb94e6dae41"
            "31f85042463c2a355a2003d062adf5aaa10b8c61e636062aaad11c2a26083406",
        ),
        (
            ED448,
            "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42"
            "ef7822e0d5104127dc05d6dbefde69e3ab2cec7c867c6e2c49",
            "616263",
            b"",
            True,
            "822f6901f7480f3d5f562c592994d9693602875614483256505600bbc281ae38"
            "1f54d6bce2ea911574932f52a4e6cadd78769375ec3ffd1b801a0d9b3f4030cd"
            "433964b6457ea39476511214f97469b57dd32dbc560a9a94d00bff07620464a3"
            "ad203df7dc7ce360c3cd3696d9d9fab90f00",
        ),
    ],
)
def test_rfc8032_with_context_and_prehash(curve, seed, message, context, prehashed, signature):
    engine, seed, message = Ecc(ReferenceEngine(curve)), bytes.fromhex(seed), bytes.fromhex(message)
    (found,) = eddsa.sign(engine, [(seed, message)], context, prehashed)
    assert found.hex() == signature
    (key,) = eddsa.public(engine, [seed])
    assert eddsa.verify(engine, [(key, message, found)], context, prehashed) == [True]
    assert eddsa.verify(engine, [(key, message, found)], context + b"!", prehashed) == [False]
    assert eddsa.verify(engine, [(key, message, found)], context, not prehashed) == [False]


class Faulty(Caching):
    """An engine that forgets a bit of a scalar."""

    def results(self, operation, bits, runs):
        bit = 16 if operation == "ladder" else 1
        return super().results(operation, bits, [((k & ~bit, *others), given) for (k, *others), given in runs])


@pytest.mark.parametrize("name", ["ecdh_secp256r1_ecpoint", "x25519", "ecdsa_secp256r1_sha256", "ed25519"])
def test_a_faulty_engine_is_caught(name):
    found = faults(lambda curve: Ecc(Faulty(find_curve(curve))), published.wycheproof(name))
    assert len(found) > 40


@pytest.mark.parametrize("name", ["ecdh_secp256r1", "x448", "ecdsa_secp384r1_sha384_p1363", "ed448"])
def test_a_wrong_vector_is_caught(name):
    case = next(case for case in published.wycheproof(name) if case.result == "valid")
    passed([case], 1)
    assert faults(ecc, [replace(case, result="invalid")])
    wrong = replace(case, expected=b"") if case.expected else replace(case, item=(*case.item[:1], b"!", case.item[2]))
    assert faults(ecc, [wrong])
