# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The tables of docs/results.md are what the rows say, and no cell is empty."""

import re
from dataclasses import replace
from pathlib import Path

from modmill.report.engine_rows import Work, measured_engines
from modmill.report.result_tables import ENGINES, engine_lines, no_clock, tables
from modmill.report.rows import append, read

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = [row for path in sorted((ROOT / "results").glob("*.jsonl")) for row in read(path)]
SAMPLE = list(read(ROOT / "tests" / "site" / "engines.jsonl"))


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def empty(text):
    """The lines of tables that have a cell without a value."""
    lines = (line for line in text.splitlines() if line.startswith("|") and set(line) - set("|-"))
    return [line for line in lines if {"", "-", "None", "nan"} & set(cells(line))]


def written(folder, rows):
    for row in rows:
        append(folder / "rows.jsonl", row)
    return tables(folder)


def test_a_changed_number_is_seen(tmp_path):
    """The planted fault: another clock in every row, and the text differs."""
    routed = (replace(r, values={**r.values, "mhz": 999.0}) if r.kind == "route" else r for r in SHIPPED)
    assert "999.0" in written(tmp_path, routed) and "999.0" not in tables(ROOT / "results")


def test_no_cell_is_empty(tmp_path):
    assert empty(tables(ROOT / "results")) == []
    assert empty(written(tmp_path, (row for row in SHIPPED if row.kind != "route"))) == []
    assert empty("| `hbe` | - | 3 |\n|---|---|---|\n| `kbe` |  | 3 |") == ["| `hbe` | - | 3 |", "| `kbe` |  | 3 |"]


def test_a_core_without_dsp_blocks_has_no_rate_for_them(tmp_path):
    """Rows of a core as they ship, its DSP blocks set to 0."""
    digest = next(
        row.digest for row in SHIPPED
        if row.kind == "route" and row.target == "ecp5-85k" and row.about.get("modulus") == "P-256"
        and row.about.get("io") == "native"
    )  # fmt: skip
    rows = (row for row in SHIPPED if row.digest == digest)
    text = written(tmp_path, (replace(r, values={**r.values, "dsp": 0}) if r.kind == "synth" else r for r in rows))
    found = cells(next(line for line in text.splitlines() if line.startswith("| `")))
    assert found[2] == "0" and found[8] == "no DSP" and found[9] not in ("no DSP", "")


def test_other_devices_have_a_table_and_upper_limits_a_mark(tmp_path):
    """Rows of a core as they ship, on devices with and without delays of blocks."""
    digest = next(r.digest for r in SHIPPED if r.kind == "route" and r.about.get("modulus") == "P-256")
    mine = [row for row in SHIPPED if row.digest == digest]
    moved = {name: [replace(row, target=row.target and name) for row in mine] for name in ("nexus", "gowin")}
    lines = [cells(line) for line in device_table(written(tmp_path, moved["nexus"] + moved["gowin"]))]
    assert [line[:2] for line in lines] == [["`gowin`", "P-256"], ["`nexus`", "P-256"]]
    assert lines[0][7] == f"≤ {lines[1][7]}" and lines[0][2:7] == lines[1][2:7]
    (tmp_path / "rows.jsonl").unlink()
    unrouted = [row for row in moved["nexus"] if row.kind != "route"]
    assert "on other devices" not in written(tmp_path, unrouted)


def test_a_long_modulus_is_shown_in_short(tmp_path):
    digest = next(r.digest for r in SHIPPED if r.kind == "route" and r.about.get("modulus") == "P-256")
    mine = [row for row in SHIPPED if row.digest == digest]
    wide = [replace(r, target=r.target and "nexus", about={**r.about, "modulus": hex(2**1024 - 105)}) for r in mine]
    (line,) = device_table(written(tmp_path, wide))
    assert cells(line)[1] == "0xffffffffffffffff...ffffff97 (1,024 bits)"


def test_a_device_with_tables_of_its_own_stands_beside_the_others(tmp_path):
    """For a modulus that other devices have cores for, unless its own table has them."""
    lines = device_table(tables(ROOT / "results"))
    beside = [cells(line)[1] for line in lines if cells(line)[0] == "`ecp5-85k`"]
    assert {"Ed25519", "0xffffffffffffffff...ffffff97 (1,024 bits)"} <= set(beside)
    assert not {"P-256", "secp256k1", "P-384"} & set(beside)
    assert not device_table(written(tmp_path, [row for row in SHIPPED if row.target in ("", "ecp5-85k")]))


def device_table(text):
    """The lines of the table of several devices, without its head."""
    part = text.partition("## Cores on several devices")[2].partition("## ")[0]
    return [line for line in part.splitlines() if line.startswith("|")][2:]


def test_a_core_without_a_clock_has_a_reason_and_a_command():
    synth = next(
        row for row in SHIPPED
        if row.kind == "synth" and row.target == "ecp5-85k" and row.about.get("design") == "hbe"
        and row.about.get("modulus") == "P-256" and row.about["parameters"].get("rowers", 0) == 0
    )  # fmt: skip
    assert no_clock(synth) == "not run yet: `./mill race P-256 --design hbe --route`"
    other = replace(synth, about={**synth.about, "parameters": {**synth.about["parameters"], "rowers": 8}})
    assert no_clock(other) == "not run yet: `./mill race P-256 --design hbe --set rowers=8 --route`"


def test_a_device_without_place_and_route_has_no_columns_for_it():
    parts = re.split(r"^## ", tables(ROOT / "results"), flags=re.MULTILINE)
    (virtex,) = (part for part in parts if part.startswith("secp256k1 on xc7v"))
    assert "MHz" not in virtex and "without a clock" not in virtex.lower() and "`mm-pa-n`" in virtex


def test_other_settings_of_a_design_stay_out(tmp_path):
    """Rows of a design with other settings are shown only where none with its own were measured."""
    rows = list(read(ROOT / "results" / "cox-rower.jsonl"))
    fewer = {row.values["lut"] for row in rows if row.kind == "synth" and row.about["parameters"].get("rowers") == 8}
    text = written(tmp_path, rows)
    assert fewer and all(f"| {lut:,} |" in text for lut in fewer)
    assert not any(f"| {lut:,} |" in tables(ROOT / "results") for lut in fewer)


# ---------------------------------------------------------------------------------------------- engines


def test_engines_are_told_by_their_rows(tmp_path):
    lines = [found for _, found, _ in engine_lines(SAMPLE)]
    assert [line[0] for line in lines] == sorted(
        (line[0] for line in lines), key=[words for words, *_ in ENGINES].index
    )
    works = {e.work for e in measured_engines(SAMPLE)}
    known = {words for words, *task in ENGINES if works & {Work("ecc", *task), Work("rsa", *task)}}
    assert {line[0] for line in lines} == known and len(known) > 4
    text = written(tmp_path, SAMPLE)
    assert all(f"| {' | '.join(line)} |\n" in text for line in lines) and "interleaved" in text
    (first, second) = (line for line in lines if "X25519" in line)
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
    assert engine_lines([]) == [] and "engines" not in tables(tmp_path)
    assert engine_lines(row for row in SAMPLE if row.kind != "check") == []


def test_engines_without_a_clock_or_that_do_not_fit():
    """Without a clock there is the command that routes it; what does not fit is left out."""
    lines = [found for _, found, _ in engine_lines(row for row in SAMPLE if row.kind != "route")]
    assert lines and all(re.fullmatch(r"not run yet: `\./mill (rsa|ecc) race .* --route`", f[-1]) for f in lines)
    assert not any("sor-2m" in found[1] for found in lines)
    larger = [replace(row, values={**row.values, "dsp": 1_000_000}) for row in SAMPLE if row.kind == "synth"]
    assert engine_lines([*(row for row in SAMPLE if row.kind == "check"), *larger]) == []
