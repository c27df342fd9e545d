# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Published vectors: Wycheproof's RSA files up to 4096 bits through the engine, a sample through RTL.

The engine runs its own program, product by product, on the contract of the linear array, where it takes for each
product the largest number that the contract allows: up to MOST vectors of each file. A few go through the array's
bit-exact algorithm; `modmill rsa vectors` runs all of them. The sample for the RTL is the first vector of two groups of
1024-bit signatures.
"""

import json

import pytest
from typer.testing import CliRunner

from marks import long
from modmill.cli.commands import app
from modmill.contract import UnsupportedError
from modmill.cores.rsa.engine import engine_for
from modmill.engines.rsa.rsa import Rsa
from modmill.studies.vectors import rsa as study

FILES = study.files()
TOO_LONG = {name for name in FILES if "_8192_" in name}
MODEL, EXACT = (study.machine(kind) for kind in ("model", "exact"))
"""Blinded, checked, with CRT."""


def test_the_files_are_there():
    assert len(FILES) > 60
    assert sum(json.loads(path.read_text())["numberOfTests"] for path in FILES.values()) > 10_000
    assert len(TOO_LONG) == 3


MOST = 8
"""Vectors of a file, spread over its groups."""


def judged(machine, name, tmp_path, count=0):
    (outcome,) = study.check([study.load(name, count)], machine, store=tmp_path / "rows.jsonl")
    return outcome


def some(*wide):
    """Files of keys that are not too long; those whose names have one of these widths only where there is time."""
    names = sorted(FILES.keys() - TOO_LONG)
    return [long(name) if any(bits in name for bits in wide) else name for name in names]


@pytest.mark.parametrize("name", some("3072", "4096"))
def test_wycheproof(name, tmp_path):
    outcome = judged(MODEL, name, tmp_path, count=MOST)
    assert outcome.vectors.cases and not outcome.faults


@pytest.mark.parametrize("name", some("3072", "4096"))
def test_some_of_each_file_bit_exactly(name, tmp_path):
    outcome = judged(EXACT, name, tmp_path, count=2)
    assert len(outcome.vectors.cases) == 2 and not outcome.faults
    assert outcome.row.values["faults"] == 0


@pytest.mark.parametrize("name", sorted(TOO_LONG))
def test_keys_beyond_the_limit_are_refused(name):
    one = study.load(name)
    assert not one.cases and one.refused
    (group, *_) = json.loads(FILES[name].read_text())["testGroups"]
    with pytest.raises(UnsupportedError, match="1024 to 4096 bits, got 8192"):
        study.key_of(group)


def test_a_file_that_is_not_there():
    with pytest.raises(UnsupportedError, match="no file of vectors for RSA has sha3000"):
        study.select(names=["sha3000"])


@pytest.mark.long  # tests/cli/test_cli_rsa.py signs through RTL, and rows of results/ have more
def test_a_sample_through_rtl():
    """Two halves of 512 bits each, by one machine with a loaded modulus where the primes have the same length."""
    machine = engine_for("rtl", "montgomery-array")
    groups = json.loads(FILES["rsa_pkcs1_1024_sig_gen_test"].read_text())["testGroups"][:2]
    for group in groups:
        assert study.accepted(Rsa(machine), group, group["tests"][0])
    assert len(machine.work) == 2 * len(groups)


def test_a_wrong_vector_is_caught(tmp_path):
    one = study.load("rsa_pkcs1_1024_sig_gen_test", 1)
    ((group, case),) = one.cases
    assert study.accepted(EXACT.rsa, group, case)
    bad = study.RsaVectors(one.file, ((group, case | {"sig": case["sig"][:-2] + "00"}),), 0)
    (outcome,) = study.check([bad], EXACT, store=tmp_path / "rows.jsonl")
    assert len(outcome.faults) == outcome.row.values["faults"] == 1
    assert outcome.faults[0].startswith("1, 1024 bits")


def test_the_command(cache):
    rows = cache / "rows-kept.jsonl"
    done = CliRunner().invoke(app, ["rsa", "vectors", "--count", "1", "--file", "pkcs1_1024", "--record", str(rows)])
    assert done.exit_code == 0, done.output
    assert "1 vectors, 0 faults" in done.output
    assert len(rows.read_text().splitlines()) == 1
