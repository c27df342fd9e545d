# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Points of a sweep: one multiplier or whole machine, one kind of measurement, one target, one seed; and what came of
each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from modmill.report.rows import Row

KINDS = ("check", "synth", "route")
"""The kinds of rows that a sweep measures."""
MEASURED, KNOWN, REFUSED = "measured", "known", "refused"
FAILURES = ("failed", "timeout", "memory")
"""The states of a point without a row that the design does not explain: the tool failed, or the point went over its
limit of time or of memory."""
MEASURE = "modmill.studies.sweep.measuring:measured"
"""The function that measures a point, as ``module:name``."""


class Hashable(dict[str, Any]):
    """The settings or options of a point, for a set of points."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(sorted(self.items())))


@dataclass(frozen=True)
class Point:
    """A measurement to make.

    ``modulus`` is hexadecimal. ``settings`` are those that the plan gives, and the DSP block of the target. ``target``:
    empty for a check; ``seed``: None except for a route. ``tool`` names the tool and its version, as rows do, and
    ``fingerprint`` the sources that write the RTL (`cores.digests`).

    ``machine``: empty for a multiplier. For a machine around the design, its kind of `machines.SUBJECT`; ``modulus`` is
    then the curve or the length of RSA moduli, and ``options`` are those that the plan gives.
    """

    kind: str
    design: str
    modulus: str
    io: str
    settings: Mapping[str, Any]
    target: str
    seed: int | None
    tool: str
    fingerprint: str
    machine: str = ""
    options: Mapping[str, Any] = field(default_factory=Hashable)

    @property
    def core(self) -> str:
        """What is measured, in words."""
        sets = (f"{name}={value}" for name, value in sorted(self.settings.items()))
        options = (f"--{name}={value}" for name, value in sorted(self.options.items()))
        return " ".join(filter(None, [self.machine, self.design, self.modulus, self.io, *sets, *options]))

    @property
    def name(self) -> str:
        """The point in words, without tool and fingerprint."""
        seed = [] if self.seed is None else [f"seed {self.seed}"]
        return " ".join(filter(None, [self.kind, self.core, self.target, *seed]))

    @property
    def key(self) -> tuple[str, str, str]:
        """What determines the result: equal keys give equal rows."""
        return self.name, self.fingerprint, self.tool


@dataclass(frozen=True)
class Result:
    """What came of a point.

    ``state``: measured, with a new ``row``; known, if the store has a row of the same RTL, of which ``digest`` is the
    digest; refused, if the design does not apply to the modulus; or one of `FAILURES`. ``message`` explains the last
    four. ``cpu_seconds``: processor time, tools included; ``peak_mb``: largest memory of all its processes together.
    """

    point: Point
    state: str
    message: str = ""
    digest: str | None = None
    row: Row | None = None
    cpu_seconds: float = 0.0
    peak_mb: int = 0
    attempts: int = 1
