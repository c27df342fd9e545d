# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The README's table of measured results, from the rows that ship."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

from modmill.report.rows import Row, read

BEGIN = "<!-- results: written by `./mill readme` from results/*.jsonl -->"
END = "<!-- end of results -->"
HEAD = (
    "| design | latency, interval (cycles) | DSP | LUT | FF | MHz | µs a product | products/s | products/s/DSP "
    "| products/s/LUT |\n|---|---|---|---|---|---|---|---|---|---|\n"
)


def table(folder: Path, modulus: str = "secp256k1", target: str = "ecp5-85k") -> str:
    """Markdown table of all native cores for a modulus and target that have a check, a synthesis and a route row."""
    by_digest: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted(folder.glob("*.jsonl")):
        for row in read(path):
            about = row.about
            wanted = about.get("modulus") == modulus and about.get("io") == "native"
            if wanted and row.target in ("", target):
                by_digest[row.digest][row.kind].append(row)
    lines = []
    for rows in by_digest.values():
        if rows["check"] and rows["synth"] and rows["route"]:
            lines.append(_line(rows))
    lines.sort(reverse=True)
    seeds = sorted({line[2] for line in lines})
    caption = (
        f"Native cores for {modulus} on {target} (ECP5, speed grade 6), "
        f"median of {' or '.join(map(str, seeds))} place and route seeds:\n\n"
    )
    return caption + HEAD + "".join(line[1] for line in lines)


def _line(rows: dict[str, list[Row]]) -> tuple[float, str, int]:
    check, synth = rows["check"][-1], rows["synth"][-1]
    v: dict[str, Any] = synth.values
    mhz = median(row.values["mhz"] for row in rows["route"])
    latency, interval = check.values["latency"], check.values["interval"]
    rate = mhz * 1e6 / interval
    text = (
        f"| `{synth.about['design']}` | {latency}, {interval} | {v['dsp']} | {v['lut']:,} | {v['ff']:,} | {mhz:.1f} "
        f"| {latency / mhz:.3f} | {rate:,.0f} | {rate / v['dsp']:,.0f} | {rate / v['lut']:,.0f} |\n"
    )
    return rate / v["dsp"], text, len(rows["route"])


def rewritten(readme: str, folder: Path) -> str:
    """The README's text with the table made anew. Raises ValueError when the markers are missing."""
    if BEGIN not in readme or END not in readme:
        raise ValueError("the README has no place for the table of results")
    before, rest = readme.split(BEGIN, 1)
    return f"{before}{BEGIN}\n{table(folder)}{END}{rest.split(END, 1)[1]}"
