# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Numbers of our own cores for the tables of papers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from statistics import median
from typing import Any, final

from modmill.designs import design
from modmill.numbers.moduli import parse_modulus
from modmill.report.clocks import routed_by
from modmill.report.reproduction import UNKNOWN, Number
from modmill.studies.papers.bench import Bench

ROUTED = "ecp5-85k"
"""The target of the routed clocks."""
NO_ROW = "no row"


@final
class MeasuredCore:
    """One of our native cores on one target. Measured numbers are None without a row, and looked up when needed.

    Raises UnsupportedError if there is no such design, or if it does not serve the modulus.
    """

    def __init__(self, bench: Bench, name: str, modulus: str, target: str, **settings: Any) -> None:
        self._bench, self._asked, self._target, self._settings = bench, (name, modulus), target, settings
        self.fitted = design(name).fit(parse_modulus(modulus).value, **settings)
        self.latency, self.interval = self.fitted.schedule.latency, self.fitted.schedule.interval
        self.predicted_dsp = self.fitted.cost.dsp

    @cached_property
    def synth(self) -> Mapping[str, Any] | None:
        """Values of its synthesis row."""
        return self._bench.core(*self._asked, self._target, **self._settings)

    @cached_property
    def depth(self) -> Mapping[str, Any]:
        """Values of its row of levels of lookup tables; empty without one."""
        return self._bench.depth(*self._asked, **self._settings) or {}

    @cached_property
    def _check(self) -> Mapping[str, Any]:
        return self._bench.checked(*self._asked, **self._settings) or {}

    @cached_property
    def clocks(self) -> Sequence[float]:
        """Routed clocks in MHz, one for each seed, in ascending order; none for targets other than ROUTED."""
        return sorted(self._bench.routed(*self._asked, ROUTED, **self._settings)) if self._target == ROUTED else ()

    def resource(self, name: str) -> int | None:
        """A measured resource: ``dsp``, ``lut``, ``ff`` or ``bram``."""
        return self.synth[name] if self.synth else None

    @property
    def seen(self) -> int | None:
        """Latency in simulation, in cycles."""
        return self._check.get("latency")

    @property
    def seen_interval(self) -> int | None:
        """Interval in simulation, in cycles."""
        return self._check.get("interval")

    @property
    def mhz(self) -> float | None:
        """The median routed clock."""
        return median(self.clocks) if self.clocks else None

    @property
    def period(self) -> float | None:
        """Clock period in ns: of the median routed clock, else the delay of the logic."""
        if self.mhz:
            return 1000 / self.mhz
        return self.synth["logic_delay_ns"] if self.synth else None

    @property
    def rate(self) -> float | None:
        """Products a second at the median routed clock."""
        return self.mhz * 1e6 / self.interval if self.mhz else None

    def time(self, cycles: int) -> float | None:
        """Time of ``cycles`` cycles in ns."""
        return times(cycles, self.period)


def shown(value: float | int | None, digits: int = 1) -> Number:
    """A measured value, or the placeholder of a missing one."""
    return UNKNOWN if value is None else value if isinstance(value, int) else round(value, digits)


def rounded(value: float | None, digits: int | None = 1) -> float | None:
    """A measured value, to an integer if ``digits`` is None; None for a missing one."""
    return None if value is None else round(value, digits)


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
