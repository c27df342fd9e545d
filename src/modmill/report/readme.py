# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The README's tables of measured results, multipliers and whole engines, from the rows in ``results``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from modmill.designs import DESIGNS
from modmill.report.clocks import tool_options
from modmill.report.engine_rows import MeasuredEngine, Work, measured_engines
from modmill.report.measured import by_device, core_numbers
from modmill.report.rows import Row, read

BEGIN = "<!-- results: written by `./mill readme` from results/*.jsonl -->"
END = "<!-- end of results -->"
HEAD = (
    "| design | latency, interval (cycles) | DSP | LUT | FF | MHz | µs per product | products/s | products/s/DSP "
    "| products/s/LUT |\n|---|---|---|---|---|---|---|---|---|---|\n"
)
TABLES = (
    ("secp256k1", "ecp5-85k", "ECP5, speed grade 6, placed and routed"),
    ("secp256k1", "xc7v", "Virtex-7, resources only; no package has place and route for it"),
    ("P-256", "ecp5-85k", "ECP5, speed grade 6, placed and routed"),
    ("secp160k1", "ecp5-85k", "ECP5, speed grade 6, placed and routed"),
)
ENGINES = (
    ("RSA-1024 power, any modulus (RSA-2048 with CRT takes two)", "1024", "power", 1024),
    ("X25519", "Curve25519", "ladder", 255),
    ("P-256, any point", "P-256", "multiply", 256),
    ("Ed25519, fixed base", "Ed25519", "multiply-base", 253),
    ("secp256k1, u1 G + u2 P", "secp256k1", "multiply-two", 256),
)
"""The table of engines: label, then subject, operation and bits of `Work`."""

ENGINES_ON = "ecp5-85k"
ENGINES_HEAD = (
    "| operation | multiplier | interleaved | cycles of one job | DSP | LUT | FF | MHz | ms per job | operations/s "
    "| operations/s/DSP |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|\n"
)


def tables(folder: Path) -> str:
    """Markdown tables of the native cores that have a check and a synthesis row, one for each line of TABLES; then one
    of engines, if there are rows of engines.

    If a design was measured with its default settings, only those rows are shown; its page has the others.
    """
    rows = list({row.key: row for path in sorted(folder.glob("*.jsonl")) for row in read(path)}.values())
    out = []
    for modulus, target, words in TABLES:
        lines = sorted(_lines(rows, modulus, target))
        out.append(f"Native cores for {modulus} on {target} ({words}):\n\n{HEAD}{''.join(text for _, text in lines)}")
    if lines_of_engines := engine_lines(rows):
        words = "input and output included; the operations of a job run interleaved"
        out.append(f"Whole engines on {ENGINES_ON}, {words}:\n\n{ENGINES_HEAD}{lines_of_engines}")
    return "\n".join(out)


def engine_lines(rows: Iterable[Row]) -> str:
    """A line for each engine with a task in ENGINES that fits the device and has a check row; else empty.

    Sorted by operations per second for each DSP block, engines without a clock last."""
    found = [e for e in measured_engines(rows) if e.check and e.target == ENGINES_ON and e.fits]
    out = []
    for words, subject, operation, bits in ENGINES:
        mine = [e for e in found if e.work == Work(e.kind, subject, operation, bits)]
        mine.sort(key=lambda e: -(e.numbers["per_dsp"] or 0))
        out += [_engine_line(words, e) for e in mine]
    return "".join(out)


def _engine_line(words: str, e: MeasuredEngine) -> str:
    n, (name, step) = e.numbers, e.label.rsplit(", ", 1)
    start = f"| {words} | `{name}` | {step.removesuffix(' interleaved')} | {int(n['latency']):,} | "
    start += " | ".join(f"{int(n[key]):,}" for key in ("dsp", "lut", "ff"))
    if not e.routes:
        return f"{start} | - | - | - | - |\n"
    per_dsp = f"{float(n['per_dsp']):,.4g}" if n["per_dsp"] else "-"
    rate = float(n["rate"])
    return f"{start} | {_clock(float(n['mhz']), e.routes)} | {float(n['ms']):.4g} | {rate:,.0f} | {per_dsp} |\n"


def _lines(rows: Iterable[Row], modulus: str, target: str) -> Iterator[tuple[int, str]]:
    """DSP blocks x interval and a line for each core that is shown."""
    multipliers = {d.name: {s.name: s.default for s in d.settings} for d in DESIGNS if d.operands == 2}
    kept = [
        row
        for row in rows
        if row.about.get("design") in multipliers
        and (row.about.get("modulus"), row.about.get("io")) == (modulus, "native")
    ]
    ordinary: dict[str, set[str]] = defaultdict(set)
    for row in kept:
        name, given = row.about["design"], row.about.get("parameters", {})
        if all(value == multipliers[name].get(key, value) for key, value in given.items()):
            ordinary[name].add(row.digest)
    for check, synth, routes in by_device(kept, lambda row: row.digest):
        name = synth.about["design"]
        if check is None or synth.target != target or (ordinary[name] and synth.digest not in ordinary[name]):
            continue
        n = core_numbers(check, synth, routes)
        text = f"| `{name}` | {n['latency']}, {n['interval']} | {n['dsp']:,} | {n['lut']:,} | {n['ff']:,} |"
        cells = ["-"] * 5
        if routes:
            per_dsp = f"{n['per_dsp']:,.0f}" if n["dsp"] else "-"
            cells = [_clock(n["mhz"], routes), f"{n['us']:.3f}", f"{n['rate']:,.0f}", per_dsp, f"{n['per_lut']:,.0f}"]
        yield n["dsp"] * n["interval"], f"{text} {' | '.join(cells)} |\n"


def _clock(mhz: float, routes: Sequence[Row]) -> str:
    """The clock in MHz, with the number of seeds and the tool's options."""
    seeds = f"{len(routes)} seed{'s' * (len(routes) > 1)}"
    return f"{mhz:.1f} ({', '.join([seeds, *tool_options(routes)])})"


def rewritten(readme: str, folder: Path) -> str:
    """The README's text with new tables. Raises ValueError if a marker is missing."""
    if BEGIN not in readme or END not in readme:
        raise ValueError(f"the README has no place for the tables of results: it lacks {BEGIN} or {END}")
    before, rest = readme.split(BEGIN, 1)
    return f"{before}{BEGIN}\n{tables(folder)}{END}{rest.split(END, 1)[1]}"
