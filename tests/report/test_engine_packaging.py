# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The files for other tools beside an engine: lint, IP-XACT, FuseSoC, and a cocotb bench that judges answers."""

import os
import shutil
import subprocess
import sys

import pytest
from small_curves import montgomery

from marks import long
from modmill.cores.ecc.machine import ecc
from modmill.cores.rsa.circuit import circuit_engine
from modmill.cores.rsa.machine import engine
from modmill.report import recorded
from modmill.report.rows import Row, append
from report.test_packaging import findings, schema

MAKE = {
    "rsa": lambda: engine("montgomery-array", width=64, threads=2),
    "rsa-rns-packets": lambda: engine("hbe", p=2**31 - 1, threads=1, cores=2),
    "circuit": lambda: circuit_engine("radix64k-ram", width=32),
    "ecc": lambda: ecc(montgomery(251), "montgomery-array", {"loadable": False}, threads=1),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    found = {}

    def make(name):
        if name not in found:
            core = MAKE[name]()
            found[name] = core, core.write(tmp_path_factory.mktemp("engine") / name, "made for a test")
        return found[name]

    return make


@pytest.mark.parametrize("name", MAKE)
def test_lint_is_clean_with_the_waivers(made, name, tmp_path):
    core, folder = made(name)
    text = (folder / "lint.vlt").read_text()
    assert f'-file "*{core.STEM}.v"' in text
    assert findings(tmp_path, core.verilog, text.replace(f"*{core.STEM}.v", "*core.v"), core.top) == []


@pytest.mark.parametrize("name", MAKE)
def test_component_fulfils_the_schema(made, name):
    etree, xsd = schema()
    core, folder = made(name)
    text = (folder / "component.xml").read_text()
    xsd.assertValid(etree.fromstring(text.encode()))
    assert text.count("<ipxact:name>TLAST</ipxact:name>") == 1 and f"{core.STEM}.v</ipxact:name>" in text


def bench(folder, **environment):
    command = [sys.executable, f"test_{'ecc' if (folder / 'ecc.v').exists() else 'engine'}.py", "icarus"]
    run = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, timeout=900, env={**os.environ, **environment}
    )
    return run.returncode, run.stdout + run.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ecc", "circuit", long("rsa"), long("rsa-rns-packets")])
def test_cocotb_bench_passes_and_finds_a_wrong_answer(made, name, tmp_path):
    pytest.importorskip("cocotb")
    if not shutil.which("iverilog"):
        pytest.skip("needs Icarus")
    _, folder = made(name)
    folder = shutil.copytree(folder, tmp_path / "copy")
    status, said = bench(folder)
    assert status == 0 and "TESTS=2 PASS=2 FAIL=0" in said, said[-3000:]
    vectors = (folder / "vectors.json").read_text()
    at = vectors.index('"answer": [') + len('"answer": [')
    digit = vectors.index("0x", at) + 2
    other = "1" if vectors[digit] != "1" else "2"
    (folder / "vectors.json").write_text(vectors[:digit] + other + vectors[digit + 1 :])
    status, said = bench(folder, JOBS="1")
    assert status == 1 and "wrong answer of machine 0" in said


def test_fusesoc_knows_the_targets(made):
    pytest.importorskip("fusesoc")
    _, folder = made("ecc")
    (name,) = (line[6:] for line in (folder / "ecc.core").read_text().splitlines() if line.startswith("name: "))
    command = [sys.executable, "-m", "fusesoc.main", "--cores-root", str(folder), "core", "show", name]
    run = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert run.returncode == 0, run.stderr
    assert all(f"\n{target} " in run.stdout for target in ("default", "lint", "sim", "synth"))


def test_the_data_sheet_has_the_recorded_rows(made, tmp_path, monkeypatch):
    core, folder = made("ecc")
    assert "No measurement of this RTL is recorded." in (folder / "README.md").read_text()
    digest = core.record()["netlist"]
    values = {"dsp": 7, "lut": 1234, "ff": 56, "bram": 2, "cells": {}, "logic_delay_ns": None, "seconds": 1}
    append(tmp_path / "x.jsonl", Row("synth", digest, "yosys 1", "ecp5-85k", None, values))
    monkeypatch.setattr("modmill.report.rows.shipped_folder", lambda: tmp_path)
    text = (core.write(tmp_path / "again", "made for a test") / "README.md").read_text()
    assert "| ecp5-85k | 7 | 1234 | 56 | 2 | - | yosys 1 |" in text and recorded.recorded(digest)
