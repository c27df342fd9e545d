# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The README's table of results is what the rows say, and nothing else."""

from dataclasses import replace
from pathlib import Path

import pytest

from modmill.report.readme import ENGINES, engine_lines, rewritten, tables
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
    fewer = {row.values["lut"] for row in rows if row.kind == "synth" and row.about["parameters"].get("rowers") == 8}
    for row in rows:
        append(tmp_path / "rows.jsonl", row)
    assert fewer and all(f"| {lut:,} |" in tables(tmp_path) for lut in fewer)
    assert not any(f"| {lut:,} |" in tables(ROOT / "results") for lut in fewer)


# ---------------------------------------------------------------------------------------------- engines

SAMPLE = list(read(ROOT / "tests" / "site" / "engines.jsonl"))


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def test_engines_are_told_by_their_rows(tmp_path):
    for row in SAMPLE:
        append(tmp_path / "rows.jsonl", row)
    lines = engine_lines(SAMPLE).splitlines()
    assert [cells(line)[0] for line in lines] == sorted(
        (cells(line)[0] for line in lines), key=[words for words, *_ in ENGINES].index
    )
    assert {cells(line)[0] for line in lines} == {words for words, *_ in ENGINES}
    assert tables(tmp_path).endswith("\n".join(lines) + "\n") and "interleaved" in tables(tmp_path)
    (first, second) = (cells(line) for line in lines if "X25519" in line)
    about = {"curve": "Curve25519", "cores": 1}
    check, synth, route = (
        next(r.values for r in SAMPLE if r.kind == kind and about.items() <= r.about.items())
        for kind in ("check", "synth", "route")
    )
    assert first[1:7] == [
        "`pseudo-mersenne`", "12", f"{check['latency']:,}", str(synth["dsp"]), f"{synth['lut']:,}", f"{synth['ff']:,}"
    ]  # fmt: skip
    rate = route["mhz"] * 1e6 * 12 / check["period"]
    assert first[7:] == [
        f"{route['mhz']:.1f} (1 seed)", f"{check['latency'] / route['mhz'] / 1e3:.4g}", f"{rate:,.0f}",
        f"{rate / synth['dsp']:.4g}",
    ]  # fmt: skip
    assert second[2] == "8 × 12"


def test_without_rows_of_engines_there_is_no_table_of_them(tmp_path):
    assert engine_lines([]) == "" and "engines" not in tables(tmp_path)
    assert engine_lines(row for row in SAMPLE if row.kind != "check") == ""


def test_engines_without_a_clock_or_that_do_not_fit():
    """Without a clock there are dashes for rates; what does not fit is left out."""
    lines = [cells(line) for line in engine_lines(row for row in SAMPLE if row.kind != "route").splitlines()]
    assert lines and all(line[-4:] == ["-"] * 4 for line in lines)
    assert not any("sor-2m" in line[1] for line in lines)
    larger = [replace(row, values={**row.values, "dsp": 1_000_000}) for row in SAMPLE if row.kind == "synth"]
    assert engine_lines([*(row for row in SAMPLE if row.kind == "check"), *larger]) == ""
