# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Recorded vectors and times of coprocessors: the tables in the documentation are those of the rows."""

from dataclasses import replace
from pathlib import Path

from modmill.report.ecc_rows import gain_table, timing_table, vectors_table
from modmill.report.rows import Row, read

ROOT = Path(__file__).resolve().parents[2]
VECTORS = list(read(ROOT / "results" / "ecc-vectors.jsonl"))
TIMES = list(read(ROOT / "results" / "ecc-timing.jsonl"))
ENGINES = list(read(ROOT / "results" / "ecc.jsonl"))


def test_the_documentation_has_the_tables_of_the_rows():
    text = (ROOT / "docs" / "ecc.md").read_text(encoding="utf-8")
    for table in (vectors_table(VECTORS), timing_table(TIMES), gain_table(ENGINES)):
        assert len(table) > 2 and "\n" + "\n".join(table) + "\n" in text


def test_recorded_vectors_have_no_faults():
    assert VECTORS and all(row.values["faults"] == 0 for row in VECTORS)


def test_recorded_times_are_one_number_for_a_thousand_scalars():
    assert TIMES
    for row in TIMES:
        v = row.values
        assert v["cycles"] == [v["predicted"]] and v["wrong"] == 0 and v["patterns"] == 1, row.about
        assert v["scalars"] >= 1000 and v["chosen"] >= 10
        assert row.about["engine"] == row.about["design"], "else it is a row of the design's own core"


def test_the_gain_is_that_of_the_rows():
    rows = (r for r in ENGINES if r.about["design"] in ("kbe", "hbe") and not r.about["parameters"].get("check"))
    found = {(row.about["design"], row.kind): row for row in rows}
    *_, ratios = gain_table(ENGINES)
    lut, period = (
        [found[name, kind].values[quantity] for name in ("kbe", "hbe")]
        for kind, quantity in (("synth", "lut"), ("check", "period"))
    )
    cells = [cell.strip() for cell in ratios.split("|")]
    assert cells[2] == "hbe / kbe" and cells[4] == f"{lut[1] / lut[0]:.2f}"
    operations = [found[name, "check"].about["threads"] for name in ("kbe", "hbe")]
    assert cells[6] == f"{period[1] / operations[1] / (period[0] / operations[0]):.2f}"
    without = gain_table(found[name, kind] for name in ("kbe", "hbe") for kind in ("check", "synth"))
    cells = [cell.strip() for cell in without[-1].split("|")]
    assert cells[7] == "-" and cells[8] == cells[6], "without clocks time is cycles"


def row(file, vectors, **about):
    what = {"curve": "P", "by": "rtl", "engine": "d", "file": file, **about}
    return Row(
        "check", f"{file} {vectors}", "verilator 5", "", None, {"vectors": vectors, "runs": 2, "faults": 0}, what
    )


def test_of_a_file_the_run_with_most_vectors_counts():
    lines = vectors_table([row("a", 5), row("a", 3), row("b", 1000), row("b", 7, by="exact")])
    assert lines[2:] == ["| P | algorithm | d | 1 | 7 | 2 | 0 |", "| P | RTL | d | 2 | 1,005 | 4 | 0 |"]


def test_times_that_differ_show_both_ends():
    about = {"curve": "P", "timing": "ladder", "design": "d", "threads": 2, "rtl": "sha256:0"}
    values = {"cycles": [900, 950, 1000], "predicted": 1000, "scalars": 40, "jobs": 20}
    slow = Row("check", "k", "verilator 5", "", None, values, about)
    fast = replace(slow, values={**values, "cycles": [1000], "scalars": 30})
    assert timing_table([slow, fast])[2:] == ["| P | ladder | d, 2 interleaved | 40 | 20 | 900 to 1,000 | 1,000 |"]
    assert timing_table([fast])[2:] == ["| P | ladder | d, 2 interleaved | 30 | 20 | 1,000 | 1,000 |"]
