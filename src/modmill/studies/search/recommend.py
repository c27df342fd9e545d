# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The best cores for a modulus, a device and a budget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modmill.contract import UnsupportedError
from modmill.design import Design
from modmill.numbers.shown import shortened
from modmill.studies.race.measured_cores import modulus_name
from modmill.studies.search.candidates import Candidate, candidates, unsolved
from modmill.studies.search.knowledge import WANTS, Figures, Knowledge, wanted_first

SHOWN = 3
"""Number of cores that are recommended."""


@dataclass(frozen=True)
class Budget:
    """The most that a core may need: DSP blocks, LUTs, microseconds for a product; None: what the device has."""

    dsp: int | None = None
    lut: int | None = None
    us: float | None = None

    def limits(self, capacity: Any) -> dict[str, float]:
        """The limits on a device: of DSP blocks, LUTs and flip-flops not more than it has."""
        found = {
            "DSP": min(capacity.dsp, capacity.dsp if self.dsp is None else self.dsp),
            "LUT": min(capacity.lut, capacity.lut if self.lut is None else self.lut),
        }
        return found if self.us is None else {**found, "µs": self.us}


def used(figures: Figures) -> dict[str, float]:
    """What a core needs of each limit."""
    return {"DSP": figures.dsp, "LUT": figures.lut.value, "µs": figures.us.value}


def overrun(figures: Figures, limits: Mapping[str, float]) -> float:
    """How much a core needs of the limit that it needs most of; it fits up to 1."""
    needs = used(figures)
    return max(needs[name] / limit if limit else 1.0 + needs[name] for name, limit in limits.items())


def figures(
    knowledge: Knowledge, p: int, designs: Sequence[Design], *, loaded: bool = False, pairs: bool = False
) -> Iterator[Figures]:
    """The figures of all cores for a modulus: those that are measured, and the candidates of the designs."""
    seen = set()
    for core in _all(knowledge, p, designs, loaded, pairs):
        if core.key not in seen:
            seen.add(core.key)
            yield knowledge.of(core)


def _all(knowledge: Knowledge, p: int, designs: Sequence[Design], loaded: bool, pairs: bool) -> Iterable[Candidate]:
    with unsolved():
        for contender in knowledge.measured():
            if contender.design in designs and p in contender.serves and contender.loaded >= loaded:
                given = dict(contender.settings)
                try:
                    yield Candidate.of(contender.design, p, given)
                except UnsupportedError:
                    continue
    yield from candidates(p, knowledge.target, designs, loaded=loaded, pairs=pairs)


def recommend(
    knowledge: Knowledge, p: int, budget: Budget, want: str, designs: Sequence[Design], *, loaded: bool = False
) -> list[Figures]:
    """The best core of each of the best designs within a budget, `SHOWN` at most.

    Raises UnsupportedError, with the core that comes nearest, if none fits.
    """
    if want not in WANTS:
        raise UnsupportedError(f"--want takes {', '.join(WANTS)}, not {shortened(want)}")
    limits = budget.limits(knowledge.target.capacity)
    found = [*figures(knowledge, p, designs, loaded=loaded)]
    if not found:
        raise UnsupportedError(f"no design serves {modulus_name(p)} with these options")
    fitting = sorted((f for f in found if overrun(f, limits) <= 1), key=wanted_first(want))
    if not fitting:
        nearest = min(found, key=lambda f: overrun(f, limits))
        needs = used(nearest)
        has = ", ".join(
            f"{needs[name]:{',.3g' if name == 'µs' else ',.0f'}} {name} of {limit:,g}" for name, limit in limits.items()
        )
        where = f"no core for {modulus_name(p)} fits on {knowledge.target.name}"
        how = f"LUT {nearest.lut.how}, clock {nearest.mhz.how}"
        raise UnsupportedError(f"{where}; the nearest is {nearest.core.label}: {has} ({how})")
    best: dict[str, Figures] = {}
    for one in fitting:
        best.setdefault(one.core.design.name, one)
    return [*best.values()][:SHOWN]
