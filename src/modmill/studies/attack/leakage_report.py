# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What a t-test of toggle traces found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modmill.flow import tools
from modmill.report.attack_tables import LEAK_LIMIT, blinding, compared
from modmill.report.rows import Row
from modmill.studies.attack.keys import Subject
from modmill.studies.attack.traces import Traced
from modmill.studies.attack.welch import ORDERS, Group, leaks, limit, welch
from modmill.version import __version__

MOST = 1e6
"""Stands for an infinite t in rows and JSON."""
SHOWN = 5
"""Largest number of places that a report lists."""
PARTS = 200
_NAMES = {1: "first order", 2: "second order"}


@dataclass(frozen=True)
class Curve:
    """|t| of one class and order: ``t`` for every cycle; ``leaks``: the cycles that show a leak."""

    kind: str
    order: int
    t: Sequence[float]
    leaks: Sequence[int]

    @property
    def name(self) -> str:
        """Class and order in words."""
        return f"{self.kind}, {_NAMES[self.order]}"

    @property
    def peak(self) -> int:
        """The cycle with the largest |t|."""
        return max(range(len(self.t)), key=lambda k: abs(self.t[k]))

    @property
    def largest(self) -> float:
        """The largest |t|."""
        return abs(self.t[self.peak])

    @property
    def profile(self) -> list[float]:
        """The largest |t| of each of at most `PARTS` equal parts of the cycles."""
        size = -(-len(self.t) // PARTS)
        return [_rounded(max(map(abs, self.t[k : k + size]))) for k in range(0, len(self.t), size)]


def _rounded(t: float) -> float:
    return round(max(-MOST, min(MOST, t)), 2)


@dataclass(frozen=True)
class LeakageReport:
    """The result of a t-test. ``about``: the core and its operation in words. ``runs``: in all; ``cycles``: of each.
    ``bits``: of registers, memories and nets that may change. ``most``: `limit` of the number of all t. ``late``: runs
    that took other times than the first. ``order``: the highest one that counts for `leaks`.
    ``where``: the registers, memories and nets that show the leak of `worst`, with their t."""

    name: str
    digest: str
    seed: int
    about: Mapping[str, Any]
    runs: int
    cycles: int
    bits: Mapping[str, int]
    curves: Sequence[Curve]
    most: float
    late: Sequence[int]
    order: int = ORDERS[-1]
    where: Sequence[tuple[str, float]] = ()
    seconds: float = 0.0

    @classmethod
    def of(
        cls, name: str, subject: Subject, seed: int, runs: int, traced: Traced,
        groups: Sequence[Sequence[Sequence[Group]]], late: Sequence[int], control: bool, order: int, begin: int,
    ) -> LeakageReport:  # fmt: skip
        """The report of ``groups``: fixed and random keys of the even runs, then of the odd ones; in each the groups of
        a class, a cycle after the other. Every t before the cycle ``begin`` counts as 0. Raises ValueError if none is
        left."""
        if begin >= traced.cycles:
            raise ValueError(f"a run has the cycles 0 to {traced.cycles - 1:,}; none is left from {begin:,} on")
        most = limit(traced.cycles * len(traced.classes) * len(ORDERS))
        curves = list[Curve]()
        for kind, label in enumerate(traced.classes):
            even, other, odd, another = (groups[k][kind] for k in range(4))
            whole = [(a + c, b + d) for a, b, c, d in zip(even, other, odd, another, strict=True)]
            for each in ORDERS:
                t, *halves = (
                    [0.0 if k < begin else welch(a, b, each) for k, (a, b) in enumerate(pairs)]
                    for pairs in (whole, zip(even, other, strict=True), zip(odd, another, strict=True))
                )
                curves.append(Curve(label, each, t, leaks(t, (halves[0], halves[1]), most)))
        bits = {
            label: sum(p.bits for p in traced.places if traced.kind(p) == 1 + k)
            for k, label in enumerate(traced.classes[:-1])
        }
        about = {
            **subject.about, "operation": subject.what, **({"control": True} if control else {}),
            **({"from": begin} if begin else {}),
        }  # fmt: skip
        return cls(name, subject.digest, seed, about, runs, traced.cycles, bits, curves, most, late, order)

    @property
    def leaks(self) -> bool:
        """Whether the traces, or the times of the runs, depend on the key."""
        return bool(self.late) or any(curve.leaks for curve in self.curves if curve.order <= self.order)

    @property
    def worst(self) -> Curve | None:
        """The class with the largest t of a leak, of the lowest order with one; None without a leak."""
        found = [curve for curve in self.curves if curve.leaks and curve.order <= self.order]
        return min(found, key=lambda curve: (curve.order, -curve.largest), default=None)

    @property
    def title(self) -> str:
        """What was compared, in a line."""
        what = f"{self.runs:,} runs of {self.about['operation']}, {self.cycles:,} cycles each"
        return f"{self.name}: {what}, {compared(self.about)}"

    @property
    def lines(self) -> Iterator[str]:
        """The report for a terminal."""
        yield f"{self.title}: {'LEAKS' if self.leaks else 'no leak found'}"
        width = max(len(curve.name) for curve in self.curves)
        for curve in self.curves:
            where = ""
            if curve.leaks:
                where = f", leak in {len(curve.leaks):,} cycles, {curve.leaks[0]:,} to {curve.leaks[-1]:,}"
            yield f"  {curve.name:<{width}}  largest |t| {curve.largest:8.2f} in cycle {curve.peak:>7,}{where}"
        if self.worst and self.where:
            names = ", ".join(f"{name} ({abs(t):.1f})" for name, t in self.where[:SHOWN])
            more = f" and {len(self.where) - SHOWN:,} more" if len(self.where) > SHOWN else ""
            yield f"  in cycle {self.worst.peak:,}: {names}{more}"
        if self.late:
            yield f"  {len(self.late):,} runs took another number of cycles"
        bits = ", ".join(f"{count:,} bits of {name}" for name, count in self.bits.items())
        yield f"  {bits}; a leak is |t| > {LEAK_LIMIT} in both halves of the runs, or > {self.most:.2f} in all"

    def values(self) -> dict[str, Any]:
        """The numbers of a row."""
        profile = {curve.kind: curve.profile for curve in self.curves if curve.order == 1}
        found = {
            curve.name: {
                "t": _rounded(curve.largest), "cycle": curve.peak,
                "leaks": len(curve.leaks),
                **({"first": curve.leaks[0], "last": curve.leaks[-1]} if curve.leaks else {}),
            } for curve in self.curves
        }  # fmt: skip
        return {
            "runs": self.runs, "cycles": self.cycles, "bits": dict(self.bits), "limit": round(self.most, 2),
            "late": len(self.late), "leaks": self.leaks, "curves": found, "profile": profile,
            "where": [name for name, _ in self.where[:SHOWN]], "seconds": round(self.seconds, 1),
        }  # fmt: skip

    def describe(self) -> dict[str, Any]:
        """The values for JSON, with every t."""
        about = {"name": self.name, "digest": self.digest, "seed": self.seed, **self.about}
        every = {
            curve.name: [round(max(-MOST, min(MOST, t)), 3) for t in curve.t] for curve in self.curves
        }  # fmt: skip
        return {**about, **self.values(), "where": [[name, _rounded(t)] for name, t in self.where], "t": every}

    def row(self) -> Row:
        """The row for ``results``."""
        by = ", ".join(f"{tool} {tools.version(tool)}" for tool in ("yosys", "verilator"))
        about = {**self.about, "modmill": __version__, "tools": by}
        test = f"{self.about['operation']}, {compared(self.about)}, blinding: {blinding(self.about)}"
        return Row("leakage", self.digest, f"modmill {__version__}, {test}", "", self.seed, self.values(), about)
