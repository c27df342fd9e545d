# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The tables of docs/results.md, multipliers, other devices and whole engines, from the rows in ``results``.

No cell is empty: cores and engines without a clock stand in tables of their own, which say why and give the command.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from modmill.contract import UnsupportedError
from modmill.designs import DESIGNS
from modmill.designs import design as find_design
from modmill.flow.targets import TARGETS
from modmill.flow.targets import target as find_target
from modmill.numbers.moduli import parse_modulus
from modmill.numbers.shown import MOST, shortened
from modmill.report.clocks import tool_options
from modmill.report.engine_rows import MeasuredEngine, Work, measured_engines
from modmill.report.measured import by_device, core_numbers
from modmill.report.rows import Row, read

HEAD = ("design", "latency, interval (cycles)", "DSP", "LUT", "FF")
CLOCKED = ("MHz", "µs per product", "products/s", "products/s/DSP", "products/s/LUT")
TABLES = (
    ("secp256k1", "ecp5-85k", "ECP5, speed grade 6"),
    ("P-256", "ecp5-85k", "ECP5, speed grade 6"),
    ("secp160k1", "ecp5-85k", "ECP5, speed grade 6"),
    ("secp256k1", "xc7v", "Virtex-7; resources only, since no open tool places and routes it"),
)
ENGINES = (
    ("RSA-1024 power, any modulus (RSA-2048 with CRT takes two)", "1024", "power", 1024),
    ("X25519", "Curve25519", "ladder", 255),
    ("P-256, any point", "P-256", "multiply", 256),
    ("Ed25519, fixed base", "Ed25519", "multiply-base", 253),
    ("Ed25519, u1 B + u2 P", "Ed25519", "multiply-two", 253),
    ("secp256k1, u1 G + u2 P", "secp256k1", "multiply-two", 256),
    ("BLS12-381's G1, any point of the group", "BLS12-381-G1", "multiply", 255),
)
"""The table of engines: label, then subject, operation and bits of `Work`."""

_DEVICES = (
    "Devices as `./mill targets` lists them, with what their tools leave out. ≤: paths through DSP blocks or block\n"
    "RAMs are not timed, so the clock and the rates are upper limits. The counts of LUTs are those of each family.\n"
    "Settings are named where the design does not choose them itself."
)
ENGINES_ON = "ecp5-85k"
ENGINES_HEAD = ("operation", "multiplier", "interleaved", "cycles of one job", "DSP", "LUT", "FF")
ENGINES_CLOCKED = ("MHz", "ms per job", "operations/s", "operations/s/DSP")

Line = tuple[float, Sequence[str], bool]
"""Sort key, cells, and whether the last cells are a clock's."""


def all_rows(folder: Path) -> list[Row]:
    """The rows of a folder, each key once."""
    return list({row.key: row for path in sorted(folder.glob("*.jsonl")) for row in read(path)}.values())


def tables(folder: Path) -> str:
    """Markdown tables of the native cores that have a check and a synthesis row, one for each line of TABLES; then one
    of engines, if there are rows of engines.

    If a design was measured with its default settings, only those rows are shown; its page has the others.
    """
    rows = all_rows(folder)
    out = []
    for modulus, target, words in TABLES:
        lines = sorted(_core_lines(rows, modulus, target))
        out.append(f"## {modulus} on {target}\n\n{words}.\n\n{_two_tables(lines, HEAD, CLOCKED)}")
    if lines_of_devices := device_lines(rows):
        out.append(f"## Cores on several devices\n\n{_DEVICES}\n\n"
                   f"{markdown_table(['device', 'modulus', *HEAD, *CLOCKED], lines_of_devices)}")  # fmt: skip
    if lines_of_engines := engine_lines(rows):
        out.append(f"## Whole engines on {ENGINES_ON}\n\nInput and output included; the operations of a job run "
                   f"interleaved.\n\n{_two_tables(lines_of_engines, ENGINES_HEAD, ENGINES_CLOCKED)}")  # fmt: skip
    return "\n".join(out)


def device_lines(rows: Iterable[Row]) -> list[Sequence[str]]:
    """A line for each routed core without a table of its own, for a modulus with cores on a device that has none, in
    the order of targets and moduli."""
    rows, tabled = list(rows), {(modulus, name) for modulus, name, _ in TABLES}
    found = {
        device.name: sorted(
            ((synth.about["modulus"], *_cells(check, synth, routes, set_apart=True))
             for check, synth, routes in cores(rows, None, device.name) if check and routes),
            key=lambda line: line[:2],
        ) for device in TARGETS if device.routable
    }  # fmt: skip
    others = found.keys() - {name for _, name in tabled}
    moduli = {modulus for name in others for modulus, *_ in found[name]}
    out: list[Sequence[str]] = []
    for device in (find_target(name) for name in found):
        for modulus, _, cells in found[device.name]:
            if modulus not in moduli or (modulus, device.name) in tabled:
                continue
            if device.partial:
                cells = [*cells[: len(HEAD)], f"≤ {cells[len(HEAD)]}", *cells[len(HEAD) + 1 :]]
            named = modulus if len(modulus) <= MOST else shortened(parse_modulus(modulus).value)
            out.append([f"`{device.name}`", named, *cells])
    return out


def _two_tables(lines: Iterable[Line], head: Sequence[str], clocked: Sequence[str]) -> str:
    """The lines with a clock; then, under a sentence, those without, whose last cell says why."""
    lines = list(lines)
    routed, other = ([cells for _, cells, has in lines if has is wanted] for wanted in (True, False))
    out = [markdown_table([*head, *clocked], routed)] if routed else []
    if other and len(other[0]) > len(head):
        out.append(f"Without a clock:\n\n{markdown_table([*head, 'why, and the command that routes it'], other)}")
    elif other:
        out.append(markdown_table(head, other))
    return "\n".join(out)


def markdown_table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    first, *rest = (f"| {' | '.join(cells)} |\n" for cells in (head, *lines))
    return "".join([first, f"|{'---|' * len(head)}\n", *rest])


def engine_lines(rows: Iterable[Row]) -> list[Line]:
    """A line for each engine with a task in ENGINES that fits the device and has a check row.

    Sorted by operations per second for each DSP block, engines without a clock last."""
    found = [e for e in measured_engines(rows) if e.check and e.target == ENGINES_ON and e.fits]
    out: list[Line] = []
    for words, subject, operation, bits in ENGINES:
        mine = [e for e in found if e.work == Work(e.kind, subject, operation, bits)]
        out += sorted((_engine_line(words, e) for e in mine), key=lambda line: line[0])
    return out


def _engine_line(words: str, e: MeasuredEngine) -> Line:
    n, (name, step) = e.numbers, e.label.rsplit(", ", 1)
    start = [words, f"`{name}`", step.removesuffix(" interleaved"), f"{int(n['latency']):,}"]
    start += [f"{int(n[key]):,}" for key in ("dsp", "lut", "ff")]
    if not e.routes:
        return 0, [*start, f"not run yet: `{e.command.replace('modmill', './mill', 1)} --route`"], False
    per_dsp = f"{float(n['per_dsp']):,.4g}" if n["per_dsp"] else "no DSP"
    clocked = [clock(float(n["mhz"]), e.routes), f"{float(n['ms']):.4g}", f"{float(n['rate']):,.0f}", per_dsp]
    return -float(n["per_dsp"] or 0), [*start, *clocked], True


def cores(rows: Iterable[Row], modulus: str | None, target: str) -> Iterator[tuple[Row, Row, list[Row]]]:
    """Check row, synthesis row and routes of each native multiplier for a modulus (None: for all) on a target.

    If a design was measured with its default settings, only those cores are among them.
    """
    multipliers = {d.name: {s.name: s.default for s in d.settings} for d in DESIGNS if d.operands == 2}
    kept = [
        row
        for row in rows
        if row.about.get("design") in multipliers
        and "engine" not in row.about
        and row.about.get("io") == "native"
        and modulus in (None, row.about.get("modulus"))
    ]
    ordinary: dict[str, set[str]] = defaultdict(set)
    for row in kept:
        name, given = row.about["design"], row.about.get("parameters", {})
        if all(value == multipliers[name].get(key, value) for key, value in given.items()):
            ordinary[name].add(row.digest)
    for check, synth, routes in by_device(kept, lambda row: row.digest):
        usual = ordinary[synth.about["design"]] if modulus else None
        if check is not None and synth.target == target and (not usual or synth.digest in usual):
            yield check, synth, routes


def _core_lines(rows: Iterable[Row], modulus: str, target: str) -> Iterator[Line]:
    """A line for each core that is shown, its key DSP blocks x interval."""
    for check, synth, routes in cores(rows, modulus, target):
        key, cells = _cells(check, synth, routes)
        if not routes and find_target(target).routable:
            cells.append(no_clock(synth))
        yield key, cells, bool(routes)


def _cells(check: Row, synth: Row, routes: list[Row], *, set_apart: bool = False) -> tuple[float, list[str]]:
    """DSP blocks x interval of a core, and the cells of HEAD, and of CLOCKED if it was routed. ``set_apart``: with the
    settings that its design does not choose."""
    n = core_numbers(check, synth, routes)
    settings = _unusual(synth.about) if set_apart else {}
    words = [synth.about["design"], *(f"{key}={value}" for key, value in settings.items())]
    cells = [f"`{' '.join(words)}`", f"{n['latency']}, {n['interval']}"]
    cells += [f"{n[key]:,}" for key in ("dsp", "lut", "ff")]
    if routes:
        per_dsp = f"{n['per_dsp']:,.0f}" if n["dsp"] else "no DSP"
        cells += [clock(n["mhz"], routes), f"{n['us']:.3f}", f"{n['rate']:,.0f}", per_dsp, f"{n['per_lut']:,.0f}"]
    return n["dsp"] * n["interval"], cells


def no_clock(synth: Row) -> str:
    """That the core of a synthesis row has no clock yet, with the command that routes it."""
    about = synth.about
    words = ["./mill", "race", about["modulus"], "--design", about["design"]]
    words += [word for key, value in _unusual(about).items() for word in ("--set", f"{key}={value}")]
    return f"not run yet: `{shlex.join([*words, '--route'])}`"


def _unusual(about: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a core that its design does not choose for the modulus, without the target's DSP block."""
    design = find_design(about["design"])
    chosen = {s.name: s.default for s in design.settings}
    with suppress(UnsupportedError):
        chosen |= design.fit(parse_modulus(about["modulus"]).value).settings
    return {key: value for key, value in about.get("parameters", {}).items()
            if key != "dsp" and chosen.get(key, value) != value}  # fmt: skip


def clock(mhz: float, routes: Sequence[Row]) -> str:
    """The clock in MHz, with the number of seeds and the tool's options."""
    seeds = f"{len(routes)} seed{'s' * (len(routes) > 1)}"
    return f"{mhz:.1f} ({', '.join([seeds, *tool_options(routes)])})"
