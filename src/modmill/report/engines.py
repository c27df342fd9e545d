# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The table of a race of engines: one line for each engine, with rates of whole operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

from modmill.report.clocks import origin
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
    def latency(self) -> int | None:
        """Cycles of one job alone, from its last word in to its first word out."""
        return self.check.values["latency"] if self.check else None

    @property
    def period(self) -> int | None:
        """Cycles between two answers of a machine when jobs wait."""
        return self.check.values["period"] if self.check else None

    @property
    def mhz(self) -> float | None:
        """Routed clock, the median of the seeds."""
        return median(row.values["mhz"] for row in self.routes) if self.routes else None

    def resource(self, name: str) -> int | None:
        """A resource of the engine: ``dsp``, ``lut``, ``ff`` or ``bram``."""
        return int(self.synth.values[name]) if self.synth else None

    @property
    def milliseconds(self) -> float | None:
        """Milliseconds of one job alone."""
        return self.latency / self.mhz / 1000 if self.latency and self.mhz else None

    @property
    def per_second(self) -> float | None:
        """Operations per second of the whole engine at full load."""
        if not self.period or not self.mhz:
            return None
        return self.mhz * 1e6 / self.period * self.results * self.cores / self.per_operation

    def per_second_per(self, resource: str) -> float | None:
        """Operations per second for each unit of a resource, such as a DSP block or a LUT."""
        rate, count = self.per_second, self.resource(resource)
        return rate / count if rate and count else None

    def describe(self) -> dict[str, Any]:
        """The values for JSON."""
        rows = [row for row in (self.check, self.synth, *self.routes) if row]
        return {
            "engine": self.name, "digest": self.digest, "note": self.note, "about": self.about,
            "results_per_answer": self.results, "cores": self.cores, "latency_cycles": self.latency,
            "period_cycles": self.period, **{name: self.resource(name) for name in ("dsp", "lut", "ff", "bram")},
            "mhz": self.mhz, "milliseconds": self.milliseconds, "operations_per_second": self.per_second,
            "operations_per_second_per_dsp": self.per_second_per("dsp"), "rows": [asdict(row) for row in rows],
        }  # fmt: skip


_COLUMNS = (
    "engine", "cores", "interleaved", "cycles", "period", "DSP", "LUT", "FF", "BRAM", "MHz", "ms", "per second", "/DSP",
    "/LUT",
)  # fmt: skip


def table(results: Sequence[EngineRaceResult], title: str) -> Table:
    """One line for each engine."""
    from rich.table import Table

    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in _COLUMNS:
        made.add_column(name, justify="left" if name == "engine" else "right", no_wrap=name == "engine")
    for s in results:
        made.add_row(
            s.name, str(s.cores), str(s.results), _whole(s.latency), _whole(s.period),
            *(_whole(s.resource(name)) for name in ("dsp", "lut", "ff", "bram")), _short(s.mhz), _short(s.milliseconds),
            _short(s.per_second), _short(s.per_second_per("dsp")), _short(s.per_second_per("lut")),
        )  # fmt: skip
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


def _whole(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def _short(number: float | None) -> str:
    if number is None:
        return "-"
    return f"{number:,.0f}" if number >= 1000 else f"{number:.4g}"
