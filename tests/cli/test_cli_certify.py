# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""``modmill acvp`` and ``modmill rsa keygen``: files in and out, notes, and one line for what is refused."""

import json

import pytest
from command import modmill, refused
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import rsa
from test_acvp import POINTS, engines, one

from modmill.cores.ecc.machine import ecc
from modmill.studies.acvp.engines import Engines

REQUEST = one("ECDSA", "keyVer", [{"qx": "01", "qy": "02"}], curve="P-256")


@pytest.fixture
def served(monkeypatch):
    """The engines of every folder."""
    found = engines("P-256", widths=(512, 1024))
    monkeypatch.setattr(Engines, "read", lambda *_, **given: found)
    return found


def test_a_request_file_is_answered(served, tmp_path):
    (tmp_path / "request.json").write_text(json.dumps([{"acvVersion": "1.0"}, REQUEST]))
    done = modmill("acvp", "request.json", "--engine", ".", cwd=tmp_path)
    assert done.returncode == 0
    (tests,) = [group["tests"] for group in json.loads(done.stdout)[1]["testGroups"]]
    assert tests == [{"tcId": 1, "testPassed": False}]
    assert "ECDSA keyVer: 1 groups, 1 tests" in done.stderr
    done = modmill("acvp", "request.json", "--engine", ".", "-o", "response.json", cwd=tmp_path)
    assert json.loads((tmp_path / "response.json").read_text())[1]["vsId"] == 5


def test_groups_without_an_engine_are_left_out_with_a_note(served, tmp_path):
    request = {**REQUEST, "testGroups": [*REQUEST["testGroups"], {"tgId": 8, "curve": "P-384", "tests": []}]}
    (tmp_path / "request.json").write_text(json.dumps(request))
    line = refused("acvp", "request.json", "--engine", ".", cwd=tmp_path)
    assert "group 8: there is no engine for P-384; modmill ecc build --curve P-384" in line
    done = modmill("acvp", "request.json", "--engine", ".", "--partial", cwd=tmp_path)
    assert [group["tgId"] for group in json.loads(done.stdout)["testGroups"]] == [7]
    assert "left out: ECDSA keyVer, group 8" in done.stderr


def test_files_that_are_no_requests_are_refused(served, tmp_path):
    for text, why in (
        ("", "no JSON"), ("{", "no JSON"), ("[" * 100_000, "no JSON"), ("1" * 5000, "no JSON"), ("5", "no vector set"),
        ('{"testGroups": 5}', "algorithm must be a text"),
    ):  # fmt: skip
        (tmp_path / "request.json").write_text(text)
        assert why in refused("acvp", "request.json", "--engine", ".", cwd=tmp_path)
    assert "No such file" in refused("acvp", "nothing.json", "--engine", ".", cwd=tmp_path)
    (tmp_path / "request.json").write_text(json.dumps(REQUEST))
    public = rsa.generate_private_key(65537, 1024).public_key()
    (tmp_path / "key.pem").write_bytes(public.public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo))
    line = refused("acvp", "request.json", "--engine", ".", "--key", "key.pem", cwd=tmp_path)
    assert "need a private key" in line


def test_folders_without_an_engine_are_refused(tmp_path):
    (tmp_path / "request.json").write_text(json.dumps(REQUEST))
    assert "engine.json" in refused("acvp", "request.json", "--engine", ".", cwd=tmp_path)


def test_new_rsa_keys(tmp_path):
    done = modmill("rsa", "keygen", "--bits", 1024, "-o", "key.pem", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    key = form.load_pem_private_key((tmp_path / "key.pem").read_bytes(), None)
    assert (key.key_size, key.public_key().public_numbers().e) == (1024, 65537)
    assert (tmp_path / "key.pem").stat().st_mode & 0o77 == 0
    assert "above 2^16" in refused("rsa", "keygen", "--exponent", 3, cwd=tmp_path)
    assert "even number of bits" in refused("rsa", "keygen", "--bits", 1025, cwd=tmp_path)


@pytest.mark.long
def test_a_built_engine_and_its_model_give_the_same_verdicts(tmp_path):
    ecc("Ed25519", "montgomery-array", operations=POINTS[1:]).write(tmp_path / "core", "a test")
    tests = [{"message": "00"}, {"message": "01"}]
    group = one("EDDSA", "sigGen", tests, curve="ED-25519")
    (tmp_path / "request.json").write_text(json.dumps(group))
    done = modmill("acvp", "request.json", "--engine", "core", "-o", "signed.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (signed,) = json.loads((tmp_path / "signed.json").read_text())["testGroups"]
    whole = [{**test, **made, "q": signed["q"]} for test, made in zip(tests, signed["tests"], strict=True)]
    whole[1]["message"] = "02"
    (tmp_path / "request.json").write_text(json.dumps(one("EDDSA", "sigVer", whole, curve="ED-25519")))
    for options in ((), ("--rtl",)):
        done = modmill("acvp", "request.json", "--engine", "core", *options, cwd=tmp_path)
        (group,) = json.loads(done.stdout)["testGroups"]
        assert [test["testPassed"] for test in group["tests"]] == [True, False]
        assert ("cycles simulated" in done.stderr) == bool(options)
