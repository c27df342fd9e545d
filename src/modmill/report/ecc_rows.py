# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Rows of coprocessors as Markdown tables: vectors, times, and the comparison of two designs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from modmill.report.engine_rows import measured_engines
from modmill.report.rows import Row

_WAYS = {"exact": "algorithm", "rtl": "RTL"}


def vectors_table(rows: Iterable[Row]) -> list[str]:
    """A line for each curve and engine, with the sums over the files that were run on one design, most runs first.

    If a file was run several times, as a whole and as a sample, the run with the most vectors counts.
    """
    best: dict[tuple[str, str, bool, str], dict[str, Row]] = defaultdict(dict)
    for row in rows:
        a = row.about
        if row.kind == "check" and {"file", "by", "curve"} <= a.keys():
            files = best[a["curve"], a["by"], a.get("order", False), a["engine"]]
            known = files.get(a["file"])
            if known is None or known.values["vectors"] <= row.values["vectors"]:
                files[a["file"]] = row
    lines = []
    for (curve, by, order, design), files in sorted(best.items()):
        sums = {name: sum(row.values[name] for row in files.values()) for name in ("vectors", "runs", "faults")}
        way = _WAYS[by] + ", modulo n too" * order
        lines.append(
            f"| {curve} | {way} | {design} | {len(files)} | {sums['vectors']:,} | {sums['runs']:,} | {sums['faults']} |"
        )
    return _table(("curve", "by", "design", "files", "vectors", "runs", "faults"), lines)


def timing_table(rows: Iterable[Row]) -> list[str]:
    """A line for each operation of each core with measured times; of several rows, the one with the most scalars."""
    best: dict[tuple[str, ...], Row] = {}
    for row in rows:
        a = row.about
        if row.kind == "check" and "timing" in a:
            key = a["curve"], a["timing"], a["design"], str(a["threads"]), a["rtl"]
            if key not in best or best[key].values["scalars"] <= row.values["scalars"]:
                best[key] = row
    lines = []
    for (curve, operation, design, threads, _), row in sorted(best.items()):
        v = row.values
        numbers = " to ".join(f"{cycles:,}" for cycles in dict.fromkeys((v["cycles"][0], v["cycles"][-1])))
        lines.append(
            f"| {curve} | {operation} | {design}, {threads} interleaved | {v['scalars']:,} | {v['jobs']:,} | "
            f"{numbers} | {v['predicted']:,} |"
        )
    return _table(("curve", "operation", "core", "scalars", "jobs", "cycles measured", "predicted"), lines)


def gain_table(rows: Iterable[Row], one: str = "kbe", other: str = "hbe") -> list[str]:
    """Coprocessors around two designs for the same task, with default settings: area, time of an operation, their
    products, and the ratios.

    The time of an operation is at full load; without a route it is in cycles, which assumes equal clocks.
    """
    engines = [e for e in measured_engines(rows) if e.kind == "ecc" and e.design.name in (one, other) and e.check]
    usual = [e for e in engines if not e.settings]
    pairs = [(a, b) for a in usual for b in usual if (a.design.name, b.design.name) == (one, other)]
    lines = []
    for a, b in ((a, b) for a, b in pairs if a.work == b.work and a.target == b.target):
        routed = all(e.numbers["mhz"] for e in (a, b))
        quantities, unit = [], "µs" if routed else "cycles"
        for e in (a, b):
            n = e.numbers
            time = 1e6 / n["rate"] if routed else n["cycles"]
            quantities.append((n["dsp"], n["lut"], n["ff"], n["cycles"], time, n["lut"] * time, n["dsp"] * time))
            clock = f"{n['mhz']:.1f}" if routed else "-"
            shown = [f"{x:,.0f}" for x in quantities[-1][:4]]
            lines.append(f"| {e.work.title} | {e.label} | {' | '.join([*shown, clock, f'{time:,.0f} {unit}'])} | | |")
        ratios = [f"{y / x:.2f}" for x, y in zip(*quantities, strict=True)]
        clocks = f"{b.numbers['mhz'] / a.numbers['mhz']:.2f}" if routed else "-"
        lines.append(f"| {b.work.title} | {other} / {one} | {' | '.join([*ratios[:4], clocks, *ratios[4:]])} |")
    heads = "DSP", "LUT", "FF", "cycles an operation", "MHz", "time an operation", "LUT × time", "DSP × time"
    return _table(("work", "coprocessor", *heads), lines)


def _table(heads: Sequence[str], lines: Sequence[str]) -> list[str]:
    return [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads), *lines]
