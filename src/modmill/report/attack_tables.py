# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The tables of docs/attacks.md, from rows: faults in engines, with and without protection, and its cost; t-tests of
toggle traces, with and without blinding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from modmill.report.engine_rows import work_of
from modmill.report.result_tables import ENGINES_ON, all_rows
from modmill.report.rows import Row

PROTECTIONS = ("lockstep", "check_result", "parity", "fixed_addresses", "blind_messages")
"""Options of a build that protect an engine, as rows name them."""
OUTCOMES = ("no effect", "detected", "withheld", "released")
"""What a fault may end in, as rows name it; the harness of the simulation has the same order."""
COSTS = ("lut", "ff", "dsp", "bram")
HEAD = (
    "engine", "protection", "operation", "registers and memories hit", "faults", *OUTCOMES[:3],
    "**wrong result released**", *map(str.upper, COSTS),
)  # fmt: skip
MISSING = "not measured"
LEAKAGE_HEAD = (
    "core", "test", "blinding", "operation", "runs", "largest \\|t\\|, registers", "memories", "all",
    "second order, all", "leaks in cycles",
)  # fmt: skip


LEAK_LIMIT = 4.5
"""Of |t| in each half of the runs of a t-test."""
_KINDS = ("registers", "memories", "all")
_SECOND = "all, second order"


def faults_table(folder: Path) -> str:
    """A Markdown table of all campaigns in a folder of rows, a line each; nothing without one."""
    rows = all_rows(folder)
    synth = {row.digest: row for row in rows if row.kind == "synth" and row.target == ENGINES_ON}
    found = sorted((row for row in rows if row.kind == "faults"), key=_place)
    return _table(HEAD, 4, [_line(row, synth.get(row.digest)) for row in found])


def leakage_table(folder: Path) -> str:
    """A Markdown table of all t-tests in a folder of rows, a line each; nothing without one."""
    found = sorted((row for row in all_rows(folder) if row.kind == "leakage"), key=leakage_place)
    return _table(LEAKAGE_HEAD, 4, list(map(_leakage_line, found)))


def blinding(about: Mapping[str, Any]) -> str:
    """The blinding of a t-test in words."""
    words = [f"{name} {about[key]} bits" for name in ("scalar", "exponent") if (key := f"blind_{name}") in about]
    secret = "scalar" if "curve" in about else "exponent"
    words += [f"{secret} {about['random_blind']} bits inside"] if "random_blind" in about else []
    words += ["message inside"] * bool(about.get("blind_messages"))
    if coordinates := about.get("blind_coordinates"):
        words.append("coordinates inside" if coordinates == "inside" else "coordinates")
    words += ["bases"] * bool(about.get("random_bases"))
    return ", ".join(words) or "none"


def compared(about: Mapping[str, Any]) -> str:
    """The two groups of a t-test in words, and the cycles that count."""
    what = about.get("fixed", "key")
    groups = f"random {what}s against random {what}s" if about.get("control") else f"one {what} against random {what}s"
    return f"{groups}, from cycle {about['from']:,} on" if "from" in about else groups


def leakage_place(row: Row) -> tuple[Any, ...]:
    """Where a t-test stands among others: less blinding first."""
    about = row.about
    hidden = blinding(about)
    return _core(about), about["operation"], compared(about), hidden != "none", len(hidden), hidden, row.seed


def _core(about: Mapping[str, Any]) -> str:
    if about["operation"] == "product":
        return f"{about['design']}, {int(about['modulus'], 16).bit_length()} bits"
    work = work_of(about)
    subject = f"{work.subject}-bit powers" if work.kind == "rsa" else work.subject
    moduli = about.get("parameters", {}).get("n")
    return f"{subject}, {about['design']}{f', n = {moduli}' if moduli else ''}"


def _leakage_line(row: Row) -> list[str]:
    about, values = row.about, row.values
    curves = values["curves"]
    largest = [f"{curves[name]['t']:,.1f}" for name in (*(f"{kind}, first order" for kind in _KINDS), _SECOND)]
    first = [curves[f"{kind}, first order"] for kind in _KINDS]
    count = max(curve["leaks"] for curve in first)
    return [
        _core(about), compared(about), blinding(about), f"{about['operation']}, {values['cycles']:,} cycles",
        f"{values['runs']:,}", *largest, f"{count:,}" if count else "none",
    ]  # fmt: skip


def _table(head: Sequence[str], texts: int, lines: Sequence[list[str]]) -> str:
    """A Markdown table, whose first ``texts`` columns are texts; nothing without lines."""
    top = [list(head), ["---"] * texts + ["---:"] * (len(head) - texts)] if lines else []
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [*top, *lines])


def protection(about: Mapping[str, Any]) -> str:
    """The options that protect an engine, or "none"."""
    names = [f"`--{name.replace('_', '-')}`" for name in PROTECTIONS if about.get(name)]
    names += ["`--random port`"] * bool(about.get("random_blind"))
    return ", ".join([*names, *["`--set check=true`"] * bool(about.get("parameters", {}).get("check"))]) or "none"


def _place(row: Row) -> tuple[Any, ...]:
    work = work_of(row.about)
    return work.kind, work.subject, work.bits, row.about["design"], protection(row.about) != "none", row.seed


def _line(row: Row, synth: Row | None) -> list[str]:
    about, values = row.about, row.values
    hit, there = (sum(values[where][what] for where in ("registers", "memories")) for what in ("hit", "all"))
    costs = [f"{synth.values[name]:,}" if synth else MISSING for name in COSTS]
    return [
        _core(about), protection(about), f"{about['operation']}, {values['cycles']:,} cycles",
        f"{hit:,} of {there:,}", f"{values['faults']:,}", *(f"{values[outcome]:,}" for outcome in OUTCOMES), *costs,
    ]  # fmt: skip
