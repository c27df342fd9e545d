# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The table of a race of engines: one line for each engine, with rates of whole operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from modmill.report.clocks import origin
from modmill.report.measured import engine_numbers
from modmill.report.race_results import count, plain_table
from modmill.report.rows import Row

if TYPE_CHECKING:
    from rich.table import Table


@dataclass
class EngineRaceResult:
    """One engine. ``results``: results in one answer of one of its ``cores``. Unmeasured values are None.

    ``note``: why it has no clock. ``per_operation``: results for one operation (an RSA private operation with CRT
    takes two powers).
    """

    name: str
    results: int
    cores: int
    about: dict[str, Any] = field(default_factory=dict)
    digest: str = ""
    note: str = ""
    per_operation: int = 1
    check: Row | None = None
    synth: Row | None = None
    routes: list[Row] = field(default_factory=list)

    @property
    def numbers(self) -> dict[str, Any]:
        """Its numbers as in `engine_numbers`."""
        return engine_numbers(self.check, self.synth, self.routes, self.results * self.cores / self.per_operation)

    def describe(self) -> dict[str, Any]:
        """The values for JSON."""
        rows, n = [row for row in (self.check, self.synth, *self.routes) if row], self.numbers
        return {
            "engine": self.name, "digest": self.digest, "note": self.note, "about": self.about,
            "results_per_answer": self.results, "cores": self.cores, "latency_cycles": n["latency"],
            "period_cycles": n["period"], **{name: n[name] for name in ("dsp", "lut", "ff", "bram")}, "mhz": n["mhz"],
            "milliseconds": n["ms"], "operations_per_second": n["rate"],
            "operations_per_second_per_dsp": n["per_dsp"], "rows": [asdict(row) for row in rows],
        }  # fmt: skip


_COLUMNS = (
    "engine", "cores", "interleaved", "cycles", "period", "DSP", "LUT", "FF", "BRAM", "MHz", "ms", "per second", "/DSP",
    "/LUT",
)  # fmt: skip


def table(results: Sequence[EngineRaceResult], title: str) -> Table:
    """One line for each engine."""
    made = plain_table(title, _COLUMNS, ("engine",))
    for s in results:
        n = s.numbers
        cells = [count(n[name]) for name in ("latency", "period", "dsp", "lut", "ff", "bram")]
        cells += [short(n[name]) for name in ("mhz", "ms", "rate", "per_dsp", "per_lut")]
        made.add_row(s.name, str(s.cores), str(s.results), *cells)
    return made


def footnotes(results: Sequence[EngineRaceResult]) -> list[str]:
    """The meaning of the columns, and failures."""
    lines = [
        "cycles: of one job alone, simulated; period: from one answer of a machine to its next, jobs waiting",
        "per second, /DSP, /LUT: at full load, input and output included",
    ]
    if any(s.routes for s in results):
        lines.append(origin({s.name: s.routes for s in results}))
    return lines + [f"{s.name}: {s.note}" for s in results if s.note]


def short(number: float | None, digits: int = 4) -> str:
    """A number with so many digits, from 1,000 on as a whole number; a dash for None."""
    if number is None:
        return "-"
    return f"{number:,.0f}" if number >= 1000 else f"{number:.{digits}g}"
