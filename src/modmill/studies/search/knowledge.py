# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What is known of cores on one device: measured where there are rows, estimated from them elsewhere.

LUTs and DSP blocks are those of every device of a family, because Yosys maps for the family; a clock is that of every
device of a family and speed grade. So rows of another device of the family count, and say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import Any

from modmill.contract import UnsupportedError
from modmill.flow.targets import Target
from modmill.flow.targets import target as find_target
from modmill.flow.tools import cache_dir
from modmill.parts import present
from modmill.report.rows import Row, Store, shipped_folder
from modmill.studies.race.measured_cores import Contender, contenders
from modmill.studies.search.candidates import Candidate, unsolved
from modmill.studies.search.estimate import LEAST, LUT, MHZ, Estimate, Process

WANTS = ("throughput", "latency", "area")
DSP_LUTS = 100
"""LUTs for which a DSP block counts in an area."""


@dataclass(frozen=True)
class Figures:
    """A core with its numbers, and the ``rows`` of those that are measured."""

    core: Candidate
    dsp: int
    lut: Estimate
    mhz: Estimate
    rows: tuple[Row, ...] = ()

    @property
    def us(self) -> Estimate:
        """Microseconds from operands to result."""
        return self.mhz.through(lambda mhz: self.core.latency / mhz)

    @property
    def rate(self) -> Estimate:
        """Products a second."""
        return self.mhz.through(lambda mhz: mhz * 1e6 / self.core.interval)

    @property
    def area(self) -> Estimate:
        """LUTs, with `DSP_LUTS` for each DSP block."""
        return self.lut.through(lambda lut: lut + DSP_LUTS * self.dsp)

    def describe(self) -> dict[str, Any]:
        """The values for JSON."""
        bars = {"lut": self.lut, "mhz": self.mhz, "us": self.us, "products_per_second": self.rate}
        return {
            "design": self.core.design.name, "settings": dict(self.core.given), "command": self.core.command,
            "latency": self.core.latency, "interval": self.core.interval, "dsp": self.dsp,
            **{name: {"value": e.value, "low": e.low, "high": e.high, "from": e.how} for name, e in bars.items()},
            "rows": [row.key for row in self.rows],
        }  # fmt: skip


@dataclass
class Knowledge:
    """Figures of cores on a device, from rows. Raises UnsupportedError if too few rows of its family have LUTs or a
    clock."""

    target: Target
    rows: Iterable[Row]
    _measured: dict[tuple[Any, ...], list[Contender]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        cores: list[Candidate] = []
        with unsolved():
            for contender in contenders(self.rows):
                if find_target(contender.target).family == self.target.family:
                    try:
                        core = Candidate.of(contender.design, contender.modulus, contender.about["parameters"])
                    except UnsupportedError:
                        continue
                    if core.key not in self._measured:
                        cores.append(core)
                    self._measured.setdefault(core.key, []).append(contender)
        found = [(core, self._best(core)) for core in cores]
        self.lut = self._process("LUTs", [(core, float(c.synth.values["lut"])) for core, c in found])
        clocks = [(core, self._clock(core)) for core, _ in found]
        self.mhz = self._process("a clock", [(core, median(c)) for core, (c, _) in clocks if c], LUTs=False)

    @cached_property
    def cores(self) -> int:
        """The number of measured cores."""
        return len(self._measured)

    def _process(self, what: str, found: list[tuple[Candidate, float]], *, LUTs: bool = True) -> Process:
        if len(found) < LEAST:
            raise UnsupportedError(
                f"{len(found)} measured cores have {what} on {self.target.family}, at least {LEAST} are needed; "
                "./mill sweep measures them"
            )
        return Process([core for core, _ in found], [value for _, value in found], LUT if LUTs else MHZ)

    def measured(self) -> Iterable[Contender]:
        """All measured cores of the family."""
        return [contender for several in self._measured.values() for contender in several]

    def has(self, core: Candidate, kind: str) -> bool:
        """Whether a core has rows of a kind, ``synth`` or ``route``; those of a synthesis on this very device, for the
        clock of a core counts only beside them."""
        several = self._measured.get(core.key, ())
        return any(c.target == self.target.name and (c.routes or kind == "synth") for c in several)

    def clocked(self, core: Candidate) -> bool:
        """Whether a clock of a core was measured, on this device or another one of family and speed grade."""
        return core.key in self._measured and bool(self._clock(core)[0])

    def of(self, core: Candidate) -> Figures:
        """The figures of a core."""
        clock = self.mhz.of(core)
        cap = self.target.dsp_cap_mhz if core.dsp else None
        if cap:  # place and route does not report more either
            clock = clock.through(lambda mhz: min(mhz, cap))
        if core.key not in self._measured:
            return Figures(core, core.dsp, self.lut.of(core), clock)
        best = self._best(core)
        lut, values = float(best.synth.values["lut"]), best.synth.values
        mhz, routes = self._clock(core)
        if mhz:
            seeds = f"{len(mhz)} seed{'s' * (len(mhz) > 1)}"
            clock = Estimate(median(mhz), min(mhz), max(mhz), f"measured{_on(routes[0].target, self.target)}, {seeds}")
        area = Estimate(lut, lut, lut, f"measured{_on(best.target, self.target)}")
        return Figures(core, int(values["dsp"]), area, clock, (best.synth, *routes))

    def _best(self, core: Candidate) -> Contender:
        """The contender of a core on this device, or on another one of the family."""
        return min(self._measured[core.key], key=lambda c: c.target != self.target.name)

    def _clock(self, core: Candidate) -> tuple[list[float], list[Row]]:
        """Clocks and rows of the routes of a core on this device, or on another one of family and speed grade."""
        grade = self.target.speed_grade
        several = [c for c in self._measured[core.key] if c.routes and find_target(c.target).speed_grade == grade]
        if not several:
            return [], []
        best = min(several, key=lambda c: c.target != self.target.name)
        return [float(row.values["mhz"]) for row in best.routes], [*best.routes]


def all_rows() -> list[Row]:
    """The rows that ship and those measured here; with the part for sweeps also those of its stores."""
    found = [*Store(cache_dir() / "rows.jsonl").rows]
    if present("sweep"):
        from modmill.studies.sweep.store import SHIPPED, read_folder

        for folder in (*(shipped_folder() / name for name in SHIPPED), cache_dir() / "sweep"):
            found += read_folder(folder)
    return [*{row.key: row for row in found}.values()]


def _on(measured: str, wanted: Target) -> str:
    return "" if measured == wanted.name else f" on {measured}"


def wanted_first(want: str) -> Callable[[Figures], float]:
    """The sort key of one of `WANTS`."""
    keys: Mapping[str, Callable[[Figures], float]] = {
        "throughput": lambda f: -f.rate.value, "latency": lambda f: f.us.value, "area": lambda f: f.area.value,
    }  # fmt: skip
    return keys[want]
