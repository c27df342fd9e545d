# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The front of cores for a modulus and a device: none is smaller, faster and quicker than one of them.

First the figures of all candidates are predicted. Where the LUTs of a design's cores are quite uncertain, those in the
widest bars are synthesised, until no bar is wide: else the bars of settings that nobody measured could not be trusted.
Then a candidate is only synthesised if, at the good end of its error bar, no core beats it at the bad end of its own;
it is only routed if that still holds with its LUTs measured. The candidates of the predicted front come first; after
each batch the estimates are fitted again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from modmill.flow.targets import Target
from modmill.report.rows import Row
from modmill.studies.search.candidates import Candidate
from modmill.studies.search.knowledge import Figures, Knowledge
from modmill.studies.search.recommend import overrun

Objective = Callable[[Figures, str], float]
"""A number to be small, at an end of the error bars: ``value``, ``good`` or ``bad``."""


def _end(of: str, small: bool) -> str:
    return {"value": "value", "good": "low" if small else "high", "bad": "high" if small else "low"}[of]


OBJECTIVES: Mapping[str, Objective] = {
    "area": lambda f, end: float(getattr(f.area, _end(end, True))),
    "throughput": lambda f, end: -float(getattr(f.rate, _end(end, False))),
    "latency": lambda f, end: float(getattr(f.us, _end(end, True))),
    "interval": lambda f, end: float(f.core.interval),
}
"""What cores are compared by; ``interval`` in cycles needs no clock."""
BATCH = 4
"""Cores that are measured before the estimates are fitted again."""
WIDE = 1.8
"""LUTs at the upper end of an error bar over those at the lower one, above which a core is synthesised at once."""

Measure = Callable[[str, Sequence[Candidate]], Iterable[Row]]
"""Measures cores, ``synth`` or ``route``, and returns their rows; a core without a row failed."""


def beats(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether one is nowhere worse than the other, and somewhere better."""
    return all(x <= y for x, y in zip(one, other, strict=True)) and any(x < y for x, y in zip(one, other, strict=True))


def front(figures: Iterable[Figures], objectives: Sequence[str], end: str = "value") -> list[Figures]:
    """Those that none of the others beats, sorted by the first objective."""
    found = sorted((([OBJECTIVES[name](f, end) for name in objectives], k, f) for k, f in enumerate(figures)))
    kept: list[tuple[list[float], Figures]] = []
    for numbers, _, f in found:  # what beats another one comes before it
        if not any(beats(other, numbers) for other, _ in kept):
            kept.append((numbers, f))
    return [f for _, f in kept]


@dataclass
class Search:
    """The search for a front. ``objectives``: of `OBJECTIVES`. ``limits`` as in `recommend.overrun`. ``most``: largest
    number of measurements of a kind; what a kind is not given is not limited. ``kinds``: what is measured, in this
    order: without ``route`` clocks stay predicted.

    ``measured`` counts what was measured; ``failed``: cores that gave no row.
    """

    target: Target
    rows: list[Row]
    candidates: Sequence[Candidate]
    measure: Measure
    objectives: Sequence[str] = ("area", "throughput")
    limits: Mapping[str, float] = field(default_factory=dict)
    most: Mapping[str, int] = field(default_factory=dict)
    kinds: Sequence[str] = ("synth", "route")
    batch: int = BATCH
    measured: Counter[str] = field(default_factory=Counter)
    failed: set[Any] = field(default_factory=set)
    told: Callable[[str], None] = lambda _: None

    def go(self) -> list[Figures]:
        """The front, of what is measured and fits the limits."""
        known = Knowledge(self.target, self.rows)
        for kind in self.kinds:
            while batch := (self._unsure(known) if kind == "synth" else []) or self._next(known, kind):
                self.told(f"{kind}: {', '.join(core.label for core in batch)}")
                self.rows += self.measure(kind, batch)
                self.measured[kind] += len(batch)
                known = Knowledge(self.target, self.rows)
                self.failed |= {core.key for core in batch if not known.has(core, kind)}
        done = [f for f in self._figures(known) if all(known.has(f.core, kind) for kind in self.kinds)]
        return front(done, self.objectives)

    def _figures(self, known: Knowledge) -> list[Figures]:
        """All candidates that fit the limits, as far as is known."""
        found = (known.of(core) for core in self.candidates if core.key not in self.failed)
        return [f for f in found if not self.limits or overrun(f, self.limits) <= 1]

    def _room(self, kind: str) -> int:
        return max(min(self.batch, self.most.get(kind, len(self.candidates)) - self.measured[kind]), 0)

    def _unsure(self, known: Knowledge) -> list[Candidate]:
        """The core of each design whose LUTs have the widest bar, if it is wide, the widest first."""
        widest: dict[str, tuple[float, Candidate]] = {}
        for f in self._figures(known):
            wide, before = f.lut.high / f.lut.low, widest.get(f.core.design.name)
            if wide > (before[0] if before else WIDE):
                widest[f.core.design.name] = wide, f.core
        return [core for _, core in sorted(widest.values(), key=lambda w: -w[0])[: self._room("synth")]]

    def _next(self, known: Knowledge, kind: str) -> list[Candidate]:
        """The cores to measure now: those that may be on the front, the predicted front first."""
        room = self._room(kind)
        figures = self._figures(known)
        sure = [self._numbers(f, "bad") for f in figures]
        waiting = [
            f
            for f in figures
            if not known.has(f.core, kind) and not any(beats(one, self._numbers(f, "good")) for one in sure)
        ]
        ordered: list[Figures] = []
        while waiting and len(ordered) < room:  # layers of predicted fronts
            layer = front(waiting, self.objectives)
            ordered += layer
            waiting = [f for f in waiting if f not in layer]
        return [f.core for f in ordered[:room]]

    def _numbers(self, f: Figures, end: str) -> list[float]:
        return [OBJECTIVES[name](f, end) for name in self.objectives]
