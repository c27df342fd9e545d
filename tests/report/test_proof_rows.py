# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Rows of proofs: states of one RTL come together, other RTL of the same core replaces them, only PROVED is shown."""

from types import SimpleNamespace

import pytest

from modmill.report.proof_rows import proofs_by_digest, proved, record_proof
from modmill.report.rows import Row, Store, append, read
from modmill.studies.race.measured_cores import Contender
from modmill.studies.site import site as pages

CORE = {"design": "orup", "modulus": "0xb", "io": "native", "parameters": {"digit": 17}}


def test_states_of_one_rtl_come_together_and_other_rtl_replaces_them(tmp_path):
    file = tmp_path / "proofs.jsonl"
    record_proof(file, {**CORE, "netlist": "sha256:1"}, {"constant_time": "PROVED"}, "yosys 1")
    record_proof(file, {**CORE, "netlist": "sha256:1"}, {"control": "OPEN", "parts": {"tokens": "PROVED"}}, "yosys 1")
    (row,) = read(file)
    assert row.values == {"constant_time": "PROVED", "control": "OPEN", "parts": {"tokens": "PROVED"}}
    assert proved(row) == ["constant time"] and proved(None) == []
    record_proof(file, {**CORE, "netlist": "sha256:2"}, {"products": "PROVED"}, "yosys 1")
    (row,) = read(file)
    assert (row.digest, row.values) == ("sha256:2", {"products": "PROVED"})
    record_proof(file, {**CORE, "io": "plain", "netlist": "sha256:3"}, {"products": "PROVED"}, "yosys 1")
    assert set(proofs_by_digest(read(file))) == {"sha256:2", "sha256:3"}


def test_a_proof_for_a_public_modulus_is_not_shown_as_proved():
    assert proved(Row("proof", "", "", "", None, {"constant_time": "PROVED for a public modulus"})) == []


@pytest.mark.parametrize("today", ["sha256:1", "sha256:2"])
def test_the_site_shows_proofs_of_the_rtl_that_is_emitted_now(tmp_path, monkeypatch, today):
    row = record_proof(tmp_path / "a.jsonl", {**CORE, "netlist": "sha256:1"}, {"constant_time": "PROVED"}, "yosys 1")
    monkeypatch.setattr(pages, "_today", lambda _: today)
    shown = pages.Site(())
    shown._store = Store(tmp_path / "none", tmp_path)
    made = Contender(None, Row("synth", "sha256:1", "yosys 1", "ecp5-85k", None, {}, dict(CORE)), (), ())
    other = SimpleNamespace(digest="sha256:4")
    found = shown._proved([made, other])
    assert found == (
        {"sha256:1": ("constant time", f"yosys 1, {row.about['date'][:10]}")} if today == made.digest else {}
    )


def test_a_row_of_a_proof_is_a_row(tmp_path):
    row = Row("proof", "sha256:1", "yosys 1", "", None, {"constant_time": "PROVED"})
    append(tmp_path / "a.jsonl", row)
    assert list(read(tmp_path / "a.jsonl")) == [row]
