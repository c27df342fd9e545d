# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The README's table of results is what the rows say, and nothing else."""

from dataclasses import replace
from pathlib import Path

import pytest

from modmill.report.readme import rewritten, tables
from modmill.report.rows import append, read

ROOT = Path(__file__).resolve().parents[2]


def test_table_is_up_to_date():
    text = (ROOT / "README.md").read_text()
    assert rewritten(text, ROOT / "results") == text
    assert "| `sor-ring` |" in text


def test_a_changed_number_is_seen(tmp_path):
    """The planted fault: another clock in one row, or a number edited by hand, and the texts differ."""
    for path in (ROOT / "results").glob("*.jsonl"):
        for row in read(path):
            faster = {**row.values, "mhz": 999.0} if row.kind == "route" else row.values
            append(tmp_path / path.name, replace(row, values=faster))
    text = (ROOT / "README.md").read_text()
    assert rewritten(text, tmp_path) != text
    assert "999.0" in tables(tmp_path)


def test_a_core_without_dsp_blocks_has_no_rate_for_them(tmp_path):
    """Rows of a core as they ship, its DSP blocks set to 0."""
    rows = [row for path in (ROOT / "results").glob("*.jsonl") for row in read(path)]
    digest = next(
        row.digest for row in rows
        if row.kind == "route" and row.target == "ecp5-85k" and row.about.get("modulus") == "P-256"
        and row.about.get("io") == "native"
    )  # fmt: skip
    for row in rows:
        if row.digest == digest:
            values = {**row.values, "dsp": 0} if row.kind == "synth" else row.values
            append(tmp_path / "rows.jsonl", replace(row, values=values))
    line = next(line for line in tables(tmp_path).splitlines() if line.startswith("| `"))
    cells = [cell.strip() for cell in line.split("|")]
    assert cells[3] == "0" and cells[9] == "-" and cells[10] != "-"


def test_readme_without_a_place_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no place"):
        rewritten("# nothing", tmp_path)


def test_other_settings_of_a_design_stay_out(tmp_path):
    """Rows of a design with other settings are shown only where none with its own were measured."""
    rows = list(read(ROOT / "results" / "cox-rower.jsonl"))
    fewer = {row.values["lut"] for row in rows if row.kind == "synth" and row.about["parameters"]["rowers"] == 8}
    for row in rows:
        append(tmp_path / "rows.jsonl", row)
    assert fewer and all(f"| {lut:,} |" in tables(tmp_path) for lut in fewer)
    assert not any(f"| {lut:,} |" in tables(ROOT / "results") for lut in fewer)
