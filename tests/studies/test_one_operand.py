# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Cores with one operand through the whole mill: build, check, race, explain, lint, shell, constant latency."""

import json

import pytest

import modmill
from modmill.contract import UnsupportedError
from modmill.cores.multiplier.check import check
from modmill.cores.multiplier.folder import Folder
from modmill.flow import lint
from modmill.flow.route import port_widths, shell
from modmill.proofs.handshake.constant_time import constant_time
from modmill.proofs.netlist import Netlist
from modmill.studies.race import cores as race

P = 2**31 - 1


@pytest.fixture(scope="module")
def core():
    return modmill.build("hbe-extension", P, "native")


@pytest.fixture
def folder(core, tmp_path):
    return core.write(tmp_path / "core")


def test_extension_of_numbers(core):
    numbers = [0, 1, P - 1, core.contract.largest_operand]
    assert [core.multiply(x) for x in numbers] == numbers
    assert core.simulate([(x, 0) for x in numbers], gap=0.2, stall=0.2) == numbers
    with pytest.raises(UnsupportedError, match="operands must be below"):
        core.multiply(core.contract.largest_operand + 1)


def test_folder_says_what_the_core_does(folder):
    record = json.loads((folder / "contract.json").read_text())
    assert record["statement"] == "o_r = i_a * factor (mod modulus)"
    assert record["operands"] == 1 and record["made_for"] == hex(P) and "i_b" not in record["ports"]
    assert all(set(v) == {"a", "value"} for v in json.loads((folder / "vectors.json").read_text())["vectors"])
    for name in ("core.v", "README.md", "test_core.py"):
        assert "i_b" not in (folder / name).read_text()
    assert Folder.read(folder).refit().digest == record["netlist"]


def test_check_passes_and_finds_faults(folder):
    report = check(folder, 40)
    assert report.passed and report.counts["alone"] and report.counts["corner"] and report.counts["random"]
    text = (folder / "core.v").read_text()
    (folder / "core.v").write_text(
        text.replace("  input  wire i_valid,", "  input  wire i_valid,\n  input  wire i_b,", 1)
    )
    assert any("port i_b is there, the contract has none" in line for line in check(folder, 0).failures)


def test_flows_take_it(core):
    widths = port_widths(core.verilog, "core")
    assert widths.b == 0 and "i_b" not in shell("core", widths)
    assert list(lint.lint(core.verilog, "core")) == []
    found = constant_time(Netlist.read(core.verilog, core.top))
    assert (found.data, found.path) == (("i_a",), ())


def test_explanation(core):
    text = core.explain()
    assert "congruent modulo p" in text and "NOT CONGRUENT" not in text and "a b factor" not in text


def test_binary_is_refused_and_does_not_apply():
    with pytest.raises(UnsupportedError, match="kbe-extension has no plain form; take --io native"):
        modmill.build("kbe-extension", P)
    (result,) = race.race(P, ["kbe-extension"], io="plain")
    assert result.state == "does not apply" and "no plain form" in result.note
