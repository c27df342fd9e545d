# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Answers to request files of ACVP, against the `cryptography` package; with MODMILL_ACVP=DIR also against NIST's."""

import bz2
import json
import os
import random
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils
from cryptography.hazmat.primitives.asymmetric.ec import ECDH

from modmill.contract import UnsupportedError
from modmill.cores.ecc.engine import ExactPointEngine
from modmill.cores.ecc.machine import ecc
from modmill.cores.rsa.engine import Stored
from modmill.cores.rsa.machine import engine
from modmill.engines.ecc.blinding import HostOrder, reference
from modmill.numbers.curves.named import find_curve
from modmill.studies.acvp.engines import Engines
from modmill.studies.acvp.files import Unserved
from modmill.studies.acvp.respond import ANSWERS, respond

MESSAGE = b"a message"
NIST = os.environ.get("MODMILL_ACVP")
POINTS = ("multiply", "multiply-base", "multiply-two")


class Integers(ExactPointEngine):
    """An engine without a core that computes with Python's integers, to be quick."""

    order = HostOrder()

    def run(self, operation, runs):
        return [reference(self.curve, operation, run) for run in runs]

    def results(self, operation, bits, runs):
        return self.run(operation, runs)


class Powers(Stored):
    """The same for powers."""

    def secret(self, modulus, pairs, bits):
        return [pow(base, exponent, modulus) for base, exponent in pairs]


@cache
def core(name, operations):
    return ecc(name, "montgomery-array", operations=operations)


@cache
def wide(width):
    return engine("montgomery-array", width=width, bits=width)


def engines(*names, widths=(), operations=POINTS, exact=False):
    points, powers = (ExactPointEngine, Stored) if exact else (Integers, Powers)
    cores = [
        core(name, operations) if exact else SimpleNamespace(curve=find_curve(name), operations=operations)
        for name in names
    ]
    return Engines(
        [points(core) for core in cores],
        [powers(wide(width), whole=True, modelled=True) for width in widths],
        below=random.Random(1).randrange,
    )


def hexadecimal(number, size=32):
    return (number if isinstance(number, bytes) else number.to_bytes(size, "big")).hex().upper()


def one(algorithm, mode, tests, **group):
    """A file of one vector set with one group."""
    tests = [{"tcId": k, **test} for k, test in enumerate(tests, 1)]
    group = {"tgId": 7, "testType": "AFT", **group, "tests": tests}
    return {"vsId": 5, "algorithm": algorithm, "mode": mode, "revision": "1.0", "isSample": True, "testGroups": [group]}


def answered(request, served):
    """Group and tests of a response to such a file."""
    response = respond(request, served)
    assert [response[key] for key in ("vsId", "algorithm", "mode", "revision")] == [
        request[key] for key in ("vsId", "algorithm", "mode", "revision")
    ]
    (group,) = response["testGroups"]
    assert group["tgId"] == 7
    assert [test["tcId"] for test in group["tests"]] == list(range(1, len(request["testGroups"][0]["tests"]) + 1))
    return group, [{name: value for name, value in test.items() if name != "tcId"} for test in group["tests"]]


def public(group, prefix="q", ends="xy"):
    x, y = (int(group[prefix + end], 16) for end in ends)
    return ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()


def signature(test):
    return utils.encode_dss_signature(int(test["r"], 16), int(test["s"], 16))


def verdicts(tests):
    return [test["testPassed"] for test in tests]


def test_ecdsa_signatures_of_the_engine_are_verified():
    for name, theirs in (("SHA2-512/256", hashes.SHA512_256()), ("SHA3-384", hashes.SHA3_384())):
        request = one("ECDSA", "sigGen", [{"message": hexadecimal(MESSAGE)}], curve="P-256", hashAlg=name)
        group, (test,) = answered(request, engines("P-256"))
        public(group).verify(signature(test), MESSAGE, ec.ECDSA(theirs))
    digest = random.Random(1).randbytes(32)
    request = one("ECDSA", "sigGen", [{"message": digest.hex()}], curve="P-256", hashAlg="SHA2-256", componentTest=True)
    group, (test,) = answered(request, engines("P-256"))
    public(group).verify(signature(test), digest, ec.ECDSA(utils.Prehashed(hashes.SHA256())))


def test_deterministic_signatures_are_those_of_rfc_6979():
    """Key and message of the RFC's appendix A.2.5; the last of its draws of a key is the private scalar less one."""
    d = 0xC9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721
    request = one("DetECDSA", "sigGen", [{"message": b"sample".hex()}], curve="P-256", hashAlg="SHA2-256")
    served = engines("P-256", exact=True, operations=POINTS[1:])
    served.below = lambda _: d - 1
    _, (test,) = answered(request, served)
    assert test["r"] == "EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716"
    assert test["s"] == "F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8"


def test_ecdsa_verification_judges_signatures_and_keys():
    key = ec.generate_private_key(ec.SECP256R1())
    r, s = utils.decode_dss_signature(key.sign(MESSAGE, ec.ECDSA(hashes.SHA256())))
    numbers = key.public_key().public_numbers()
    good = {"message": MESSAGE, "qx": numbers.x, "qy": numbers.y, "r": r, "s": s}
    wrong = [{"message": MESSAGE + b"!"}, {"qy": numbers.y ^ 1}, {"r": r ^ 1}, {"s": 0}, {"qx": 0, "qy": 0}]
    tests = [{name: hexadecimal(x) for name, x in {**good, **change}.items()} for change in ({}, *wrong)]
    request = one("ECDSA", "sigVer", tests, curve="P-256", hashAlg="SHA2-256")
    assert verdicts(answered(request, engines("P-256", exact=True, operations=POINTS[1:]))[1]) == [True] + [
        False
    ] * len(wrong)
    request = one("ECDSA", "keyVer", [{"qx": t["qx"], "qy": t["qy"]} for t in tests], curve="P-256")
    assert verdicts(answered(request, engines("P-256"))[1]) == [True, True, False, True, True, False]


def test_new_key_pairs_on_curves():
    _, tests = answered(one("ECDSA", "keyGen", [{}, {}], curve="P-256"), engines("P-256"))
    assert len({test["d"] for test in tests}) == 2
    for test in tests:
        made = ec.derive_private_key(int(test["d"], 16), ec.SECP256R1()).public_key()
        assert made.public_numbers() == public(test).public_numbers()
    _, (test,) = answered(one("EDDSA", "keyGen", [{}], curve="ED-25519"), engines("Ed25519"))
    made = ed25519.Ed25519PrivateKey.from_private_bytes(bytes.fromhex(test["d"]))
    assert made.public_key().public_bytes_raw() == bytes.fromhex(test["q"])


def test_eddsa():
    served = engines("Ed25519")
    tests = [{"message": hexadecimal(MESSAGE)}, {"message": ""}]
    group, signed = answered(one("EDDSA", "sigGen", tests, curve="ED-25519", preHash=False), served)
    theirs = ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(group["q"]))
    for test, message in zip(signed, (MESSAGE, b""), strict=True):
        theirs.verify(bytes.fromhex(test["signature"]), message)
    q = group["q"]
    whole = [
        {"q": q, **tests[0], **signed[0]}, {"q": q, **tests[1], **signed[0]},
        {"q": "02" + "00" * 31, **tests[0], **signed[0]}, {"q": q[2:], **tests[0], **signed[0]},
    ]  # fmt: skip
    assert verdicts(answered(one("EDDSA", "sigVer", whole, curve="ED-25519"), served)[1]) == [True, False, False, False]
    request = one("EDDSA", "keyVer", [*whole, {"q": "01" + "00" * 31}], curve="ED-25519")  # the last has order 1
    assert verdicts(answered(request, served)[1]) == [True, True, False, False, False]


def test_a_context_belongs_to_its_test():
    served = engines("Ed25519")
    tests = [{"message": "00", "context": c} for c in ("01", "02", "01")]
    group, signed = answered(one("EDDSA", "sigGen", tests, curve="ED-25519", preHash=True), served)
    assert signed[0]["signature"] == signed[2]["signature"] != signed[1]["signature"]
    whole = [{"q": group["q"], **test, **made} for test, made in zip(tests, signed, strict=True)]
    whole[1]["context"] = "01"
    found = answered(one("EDDSA", "sigVer", whole, curve="ED-25519", preHash=True), served)[1]
    assert verdicts(found) == [True, False, True]


def test_shared_secrets_of_new_keys():
    theirs = {kind: ec.generate_private_key(ec.SECP256R1()) for kind in ("static", "ephemeral")}
    test = {}
    for kind, key in theirs.items():
        numbers = key.public_key().public_numbers()
        test |= {f"{kind}PublicServerX": hexadecimal(numbers.x), f"{kind}PublicServerY": hexadecimal(numbers.y)}
    for scheme, role, parts in (
        ("onePassUnified", "initiator", [("ephemeral", "static"), ("static", "static")]),
        ("onePassDh", "responder", [("static", "ephemeral")]),
    ):
        options = {"domainParameterGenerationMode": "P-256", "scheme": scheme, "kasRole": role}
        request = one("KAS-ECC-SSC", "", [test], **options, hashFunctionZ="SHA2-512")
        _, (made,) = answered(request, engines("P-256"))
        Z = b"".join(theirs[other].exchange(ECDH(), public(made, f"{own}PublicIut", "XY")) for own, other in parts)
        digest = hashes.Hash(hashes.SHA512())
        digest.update(Z)
        assert bytes.fromhex(made.pop("hashZ")) == digest.finalize()
        assert len(made) == 2 * len(parts)
    request = one("KAS-ECC", "CDH-Component", [
        {f"publicServer{end}": test[f"staticPublicServer{end}"] for end in "XY"}
    ], curve="P-256")  # fmt: skip
    _, (made,) = answered(request, engines("P-256"))
    assert bytes.fromhex(made["z"]) == theirs["static"].exchange(ECDH(), public(made, "publicIut", "XY"))


def test_shared_secrets_are_judged():
    ours, theirs = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    good = {
        "ephemeralPrivateIut": ours.private_numbers().private_value,
        "z": ours.exchange(ECDH(), theirs.public_key()),
    }
    for key, side in ((ours, "Iut"), (theirs, "Server")):
        numbers = key.public_key().public_numbers()
        good |= {f"ephemeralPublic{side}X": numbers.x, f"ephemeralPublic{side}Y": numbers.y}
    wrong = [{"z": b"\1" * 32}, {"ephemeralPrivateIut": 1}, {"ephemeralPublicServerY": 1}, {"ephemeralPublicIutX": 1}]
    tests = [{name: hexadecimal(x) for name, x in {**good, **change}.items()} for change in ({}, *wrong)]
    options = {"domainParameterGenerationMode": "P-256", "scheme": "ephemeralUnified", "kasRole": "initiator"}
    found = answered(one("KAS-ECC-SSC", "", tests, testType="VAL", **options), engines("P-256"))[1]
    assert verdicts(found) == [True] + [False] * len(wrong)


def test_rsa_signatures():
    salted = padding.PSS(padding.MGF1(hashes.SHA256()), 32)
    served = engines(widths=(512, 1024))
    for name, pads in (("pkcs1v1.5", padding.PKCS1v15()), ("pss", salted)):
        options = {"modulo": 1024, "hashAlg": "SHA2-256", "sigType": name, "saltLen": 32}
        message = {"message": hexadecimal(MESSAGE)}
        group, (test,) = answered(one("RSA", "sigGen", [message], testType="GDT", **options), served)
        n, e = int(group["n"], 16), int(group["e"], 16)
        rsa.RSAPublicNumbers(e, n).public_key().verify(bytes.fromhex(test["signature"]), MESSAGE, pads, hashes.SHA256())
        tests = [{**message, **test}, {"message": "00", **test}, {**message, "signature": test["signature"][2:]}]
        options |= {"n": group["n"], "e": group["e"]}
        assert verdicts(answered(one("RSA", "sigVer", tests, **options), served)[1]) == [True, False, False]
        assert verdicts(answered(one("RSA", "sigVer", tests, **{**options, "e": "02"}), served)[1]) == [False] * 3
    with pytest.raises(Unserved, match="no engine for moduli of 1,024 bits; modmill rsa build --bits 1024 --no-crt"):
        respond(one("RSA", "sigVer", tests, **options), engines(widths=(512,)))


def test_rsa_key_pairs_and_primes():
    served = engines(widths=(512,))
    options = {"modulo": 1024, "randPQ": "probable", "pubExp": "fixed", "fixedPubExp": "010001"}
    request = one("RSA", "keyGen", [{}], testType="GDT", keyFormat="crt", **options)
    _, (test,) = answered(request, served)
    n, e, p, q, dmp1, dmq1, iqmp = (int(test[name], 16) for name in ("n", "e", "p", "q", "dmp1", "dmq1", "iqmp"))
    d = pow(e, -1, (p - 1) * (q - 1))
    rsa.RSAPrivateNumbers(p, q, d, dmp1, dmq1, iqmp, rsa.RSAPublicNumbers(e, n)).private_key()
    primes = [(p, q), (p, p + (1 << 412)), (q, p + 2), (p >> 1 | 1, q), (p, q)]
    tests = [{"e": "010001", "pRand": hexadecimal(a, 64), "qRand": hexadecimal(b, 64)} for a, b in primes]
    tests[-1]["e"] = "03"
    found = answered(one("RSA", "keyGen", tests, testType="KAT", **options), served)[1]
    assert verdicts(found) == [True, False, False, False, False]


def test_lists_keep_their_other_parts_and_partial_answers_leave_groups_out():
    request = one("ECDSA", "keyVer", [], curve="P-256")
    request["testGroups"] += [{"tgId": 8, "curve": "P-384", "tests": []}, {"tgId": 9, "curve": "K-233", "tests": []}]
    other = {**one("RSA", "decryptionPrimitive", []), "vsId": 6}
    notes = []
    served = engines("P-256")
    response = respond([{"acvVersion": "1.0"}, request, other], served, partial=True, note=notes.append)
    assert response[0] == {"acvVersion": "1.0"}
    assert [[group["tgId"] for group in one["testGroups"]] for one in response[1:]] == [[7], []]
    assert [note[:40] for note in notes if note.startswith("left out")] == [
        "left out: ECDSA keyVer, group 8: there i", "left out: ECDSA keyVer, group 9: curve '",
        "left out: RSA decryptionPrimitive is not",
    ]  # fmt: skip
    with pytest.raises(Unserved, match="group 8: there is no engine for P-384"):
        respond(request, served)
    with pytest.raises(Unserved, match="no group of the file can be answered"):
        respond(other, served, partial=True)
    with pytest.raises(Unserved, match="the engine of P-256 lacks an operation"):
        respond(one("ECDSA", "keyGen", [{}], curve="P-256"), engines("P-256", operations=("multiply",)))


GOOD = {"curve": "P-256", "hashAlg": "SHA2-256"}
MALFORMED = [
    ([], "no vector set"),
    ([{"testGroups": []}, 5], "algorithm must be a text, got nothing"),
    ({**one("ECDSA", "sigGen", []), "testGroups": 5}, "testGroups must be a list, got 5"),
    ({**one("ECDSA", "sigGen", []), "testGroups": [5]}, "item 0 of testGroups must be an object, got 5"),
    ({**one("ECDSA", "sigGen", []), "testGroups": [{"tgId": -1}]}, "tgId must be an integer of at least 0, got -1"),
    (one("ECDSA", "sigGen", [{"tcId": True}], **GOOD), "tcId must be an integer of at least 0, got True"),
    (one("ECDSA", "sigGen", [{}, {"tcId": 1}], **GOOD), "tcId 1 occurs twice in tests"),
    (one("ECDSA", "sigGen", [{}], **GOOD), "test 1: message must be an even number of hexadecimal digits"),
    (one("ECDSA", "sigGen", [{"message": "0"}], **GOOD), "group 7, test 1: message must be .* got '0'"),
    (one("ECDSA", "sigGen", [{"message": "00"}], **GOOD, componentTest="no"), "componentTest must be true or false"),
    (one("ECDSA", "sigGen", [], curve="P-256", hashAlg="MD5"), "hashAlg 'MD5' is not served; served are SHA-1"),
    (one("ECDSA", "sigGen", [], **GOOD, conformance="SP800-106"), "conformance 'SP800-106' is not served"),
    (one("ECDSA", "keyVer", [{"qx": "", "qy": "00"}], curve="P-256"), "qx must be a number in hexadecimal"),
    (one("EDDSA", "sigGen", [{"message": "", "context": "00" * 256}], curve="ED-25519"), "must be of at most 255"),
    (one("RSA", "sigVer", [], modulo=8192), "RSA moduli have 1024 to 4096 bits, got 8,192"),
    (one("RSA", "keyGen", [], modulo=1024, randPQ="provable"), "served are probable, B.3.3"),
    (one("RSA", "keyGen", [{}], modulo=1024, randPQ="probable", testType="GDT", pubExp="fixed", fixedPubExp="03"),
     "the public exponent of a new key must be odd, above 2\\^16"),
    (one("KAS-ECC-SSC", "", [], domainParameterGenerationMode="P-256", scheme="fullMqv"), "scheme 'fullMqv' is not"),
]  # fmt: skip


@pytest.mark.parametrize("document, message", MALFORMED)
def test_what_is_malformed_or_not_served_is_refused(document, message):
    served = engines("P-256", "Ed25519", widths=(512,))
    with pytest.raises(UnsupportedError, match=message) as refusal:
        respond(document, served)
    assert "\n" not in str(refusal.value)


@pytest.mark.skipif(not NIST, reason="MODMILL_ACVP=DIR: the Go module github.com/geomys/acvp-testdata")
@pytest.mark.parametrize("name", ["ECDSA", "EDDSA", "KAS-ECC-SSC", "RSA"])
def test_files_of_the_demonstration_server(name):
    """Verdicts are compared with those that NIST's server expects."""
    files = [Path(NIST) / side / f"{name}.bz2" for side in ("vectors", "expected")]
    asked, expected = (json.loads(bz2.decompress(file.read_bytes())) for file in files)
    served = engines("P-224", "P-256", "P-384", "P-521", "Ed25519", widths=(4096,), exact=True)
    compared = 0
    for ours, theirs in zip(respond(asked, served), expected, strict=True):
        for mine, wanted in zip(ours.get("testGroups", ()), theirs.get("testGroups", ()), strict=True):
            for one, other in zip(mine["tests"], wanted["tests"], strict=True):
                if "testPassed" in other:
                    assert one == other
                    compared += 1
    assert compared == {"ECDSA": 44, "EDDSA": 3, "KAS-ECC-SSC": 2, "RSA": 72}[name]


def test_every_kind_of_answer_is_tested_here():
    text = Path(__file__).read_text()
    for algorithm, mode in ANSWERS:
        assert f'"{algorithm}", "{mode}"' in text


def test_a_wrong_engine_finds_no_primes():
    """The model of a real engine, and the same with one wrong bit in each power."""
    served = engines(widths=(512,), exact=True)
    (right,) = served.powers
    key = rsa.generate_private_key(65537, 1024).private_numbers()
    test = {"e": "010001", "pRand": hexadecimal(key.p, 64), "qRand": hexadecimal(key.q, 64)}
    request = one("RSA", "keyGen", [test], modulo=1024, randPQ="probable", testType="KAT")
    assert verdicts(answered(request, served)[1]) == [True]

    class Wrong(Stored):
        def secret(self, modulus, pairs, bits):
            return [power ^ 2 for power in super().secret(modulus, pairs, bits)]

    served.powers = [Wrong(right.core, whole=True, modelled=True)]
    assert verdicts(answered(request, served)[1]) == [False]
