# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The table of docs/attacks.md, from rows: faults in engines, with and without protection, and its cost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from modmill.report.engine_rows import work_of
from modmill.report.result_tables import ENGINES_ON, all_rows
from modmill.report.rows import Row

PROTECTIONS = ("lockstep",)
"""Options of a build that protect an engine, as rows name them."""
OUTCOMES = ("no effect", "detected", "withheld", "released")
"""What a fault may end in, as rows name it; the harness of the simulation has the same order."""
COSTS = ("lut", "ff", "dsp", "bram")
HEAD = (
    "engine", "protection", "operation", "registers and memories hit", "faults", *OUTCOMES[:3],
    "**wrong result released**", *map(str.upper, COSTS),
)  # fmt: skip
MISSING = "not measured"


def faults_table(folder: Path) -> str:
    """A Markdown table of all campaigns in a folder of rows, a line each; nothing without one."""
    rows = all_rows(folder)
    synth = {row.digest: row for row in rows if row.kind == "synth" and row.target == ENGINES_ON}
    found = sorted((row for row in rows if row.kind == "faults"), key=_place)
    lines = [_line(row, synth.get(row.digest)) for row in found]
    head = [list(HEAD), ["---"] * 4 + ["---:"] * (len(HEAD) - 4)] if lines else []
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [*head, *lines])


def protection(about: Mapping[str, Any]) -> str:
    """The options that protect an engine, or "none"."""
    return ", ".join(f"`--{name}`" for name in PROTECTIONS if about.get(name)) or "none"


def _place(row: Row) -> tuple[Any, ...]:
    work = work_of(row.about)
    return work.kind, work.subject, work.bits, row.about["design"], protection(row.about) != "none", row.seed


def _line(row: Row, synth: Row | None) -> list[str]:
    about, values = row.about, row.values
    work = work_of(about)
    subject = f"{work.subject}-bit powers" if work.kind == "rsa" else work.subject
    hit, there = (sum(values[where][what] for where in ("registers", "memories")) for what in ("hit", "all"))
    costs = [f"{synth.values[name]:,}" if synth else MISSING for name in COSTS]
    return [
        f"{subject}, {about['design']}", protection(about), f"{about['operation']}, {values['cycles']:,} cycles",
        f"{hit:,} of {there:,}", f"{values['faults']:,}", *(f"{values[outcome]:,}" for outcome in OUTCOMES), *costs,
    ]  # fmt: skip
