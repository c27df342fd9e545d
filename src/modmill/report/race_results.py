# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The table of a race: one line for each design, with the origin of its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

from modmill.report.clocks import origin
from modmill.report.rows import Row

if TYPE_CHECKING:
    from rich.table import Table

ROUTED, LOGIC = "routed", "logic only"


@dataclass
class RaceResult:
    """One design in a race. Unmeasured values are None.

    ``state``: ready, does not apply, does not fit, or failed; ``note``: the reason. ``check``, ``synth`` and ``routes``
    are rows, each with its origin, ``measured`` or ``recorded``. Without a check the schedule predicts the cycles,
    without a synth the formula predicts the DSP blocks.
    """

    design: str
    state: str = "ready"
    note: str = ""
    digest: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    latency: int | None = None
    interval: int | None = None
    predicted_dsp: int | None = None
    check: tuple[Row, str] | None = None
    synth: tuple[Row, str] | None = None
    routes: list[tuple[Row, str]] = field(default_factory=list)

    def value(self, name: str) -> int | None:
        """A resource from the synthesis; without one, DSP blocks are predicted and the others None."""
        if self.synth is not None:
            return int(self.synth[0].values[name])
        return self.predicted_dsp if name == "dsp" else None

    @property
    def mhz(self) -> float | None:
        """Clock in MHz: routed (median of the seeds, with the rows' cap), else the limit by the delay of the logic."""
        if self.routes:
            return median(row.values["mhz"] for row, _ in self.routes)
        delay = self.synth[0].values.get("logic_delay_ns") if self.synth else None
        return 1000 / delay if delay else None

    @property
    def clock(self) -> str:
        """Origin of the clock: routed, logic only, or empty."""
        return ROUTED if self.routes else LOGIC if self.mhz else ""

    @property
    def microseconds(self) -> float | None:
        """Latency of one product in microseconds."""
        return self.latency / self.mhz if self.latency and self.mhz else None

    @property
    def per_second(self) -> float | None:
        """Products per second at full load."""
        return self.mhz * 1e6 / self.interval if self.interval and self.mhz else None

    def per_second_per(self, resource: str) -> float | None:
        """Products per second for each unit of a resource, such as a DSP block or a LUT."""
        rate, count = self.per_second, self.value(resource)
        return rate / count if rate and count else None

    @property
    def numbers(self) -> str:
        """Origin of the numbers in words."""
        if self.state == "does not apply":
            return ""
        origins = {origin for _, origin in self._rows}
        predicted = {"predicted"} if self.check is None or self.synth is None else set()
        return " + ".join(sorted(origins | predicted))

    @property
    def _rows(self) -> list[tuple[Row, str]]:
        return [*(row for row in (self.check, self.synth) if row), *self.routes]

    def describe(self) -> dict[str, Any]:
        """The values for JSON."""
        return {
            "design": self.design, "state": self.state, "note": self.note, "digest": self.digest,
            "settings": self.settings, "latency_cycles": self.latency, "interval_cycles": self.interval,
            **{name: self.value(name) for name in ("dsp", "lut", "ff", "bram")}, "mhz": self.mhz, "clock": self.clock,
            "microseconds": self.microseconds, "products_per_second": self.per_second,
            "products_per_second_per_dsp": self.per_second_per("dsp"),
            "products_per_second_per_lut": self.per_second_per("lut"), "numbers": self.numbers,
            "rows": [{**asdict(row), "origin": origin} for row, origin in self._rows],
        }  # fmt: skip


_COLUMNS = (
    "design", "latency", "interval", "DSP", "LUT", "FF", "BRAM", "MHz", "us", "products/s", "/DSP", "/LUT", "numbers",
)  # fmt: skip


def plain_table(title: str, columns: Sequence[str], left: Sequence[str]) -> Table:
    """An empty table without lines; the columns named in ``left`` are aligned to the left. The first is not wrapped."""
    from rich.table import Table

    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in columns:
        made.add_column(name, justify="left" if name in left else "right", no_wrap=name == columns[0])
    return made


def table(results: Sequence[RaceResult], title: str) -> Table:
    """The designs that serve the modulus, in the order of ``results``."""
    made = plain_table(title, _COLUMNS, ("design", "numbers"))
    for s in results:
        if s.state == "does not apply":
            continue
        mhz = "-" if s.mhz is None else f"{s.mhz:.1f}" + ("" if s.clock == ROUTED else " ~")
        dsp = s.value("dsp")
        resources = ["-" if dsp is None else f"{dsp:,}{'' if s.synth else ' *'}"]
        resources += [count(s.value(name)) for name in ("lut", "ff", "bram")]
        rates = [_rate(s.per_second), _rate(s.per_second_per("dsp")), _rate(s.per_second_per("lut"))]
        late = "-" if s.microseconds is None else f"{s.microseconds:.3f}"
        cycles = s.check[1] if s.check else "predicted"
        numbers = {"ready": s.numbers, "does not fit": f"{s.note}; cycles {cycles}"}.get(s.state, f"FAILED: {s.note}")
        made.add_row(s.design, count(s.latency), count(s.interval), *resources, mhz, late, *rates, numbers)
    return made


def footnotes(results: Sequence[RaceResult]) -> list[str]:
    """The meaning of the marks in the table, and the designs that do not apply."""
    lines = []
    if any(s.clock == LOGIC for s in results):
        lines.append("~ no clock but an upper limit: delay of the logic by Yosys' sta, without routing")
    if any(s.clock == ROUTED for s in results):
        lines.append(origin({s.design: [row for row, _ in s.routes] for s in results}))
    if any(s.predicted_dsp is not None and s.synth is None for s in results):
        lines.append("* predicted by the design's formula")
    if all(s.mhz is None for s in results):
        lines.append("no clock: this target has none without place and route (--route, where a tool for it is there)")
    lines += [f"{s.design} does not apply: {s.note}" for s in results if s.state == "does not apply"]
    return lines


def count(number: int | None) -> str:
    """A number with separators, or a dash."""
    return "-" if number is None else f"{number:,}"


def _rate(number: float | None) -> str:
    if number is None:
        return "-"
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.3g}"
