# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The cores of a search as points of a sweep: measured on all processors, and stored so that the search goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from modmill.cores import digests
from modmill.design import Design
from modmill.flow.targets import Target
from modmill.report.rows import Row
from modmill.studies.search.candidates import Candidate
from modmill.studies.search.front import Search
from modmill.studies.search.knowledge import Knowledge, all_rows
from modmill.studies.search.proposals import proposed
from modmill.studies.search.recommend import Budget, figures
from modmill.studies.sweep.limited import Limits
from modmill.studies.sweep.measuring import tool_of
from modmill.studies.sweep.points import MEASURE, Hashable, Point
from modmill.studies.sweep.run import Cluster, Progress, sweep
from modmill.studies.sweep.store import Store

SEED = 1
"""Of a route."""


def point(core: Candidate, kind: str, target: Target) -> Point:
    """The point of a sweep that measures a core."""
    seed = SEED if kind == "route" else None
    settings, modulus = Hashable(core.given), hex(core.fitted.p)
    tool = tool_of(kind, target.name)
    return Point(kind, core.design.name, modulus, "native", settings, target.name, seed, tool, digests.fingerprint())


@dataclass
class Swept:
    """Measures cores by a sweep into a store; a measurement that failed before is not tried again."""

    target: Target
    store: Store
    cluster: Cluster
    limits: Limits = field(default_factory=Limits)
    progress: Progress | None = None
    measure: str = MEASURE

    def __call__(self, kind: str, cores: Sequence[Candidate]) -> list[Row]:
        """The rows that are new in the store."""
        before = {row.key for row in self.store.rows}
        points = [point(core, kind, self.target) for core in cores]
        sweep(points, self.store, self.cluster, limits=self.limits, progress=self.progress, measure=self.measure)
        return [row for row in self.store.rows if row.key not in before]


def search(
    target: Target, p: int, designs: Sequence[Design], objectives: Sequence[str], budget: Budget, measure: Swept, *,
    loaded: bool = False, trials: int = 0, kinds: Sequence[str] = ("synth",), most: Mapping[str, int] | None = None,
) -> Search:  # fmt: skip
    """A search for the front of cores for a modulus on a device, from all rows that there are: among the candidates of
    the designs and ``trials`` proposals. Other options as in `Search`. Raises UnsupportedError as `Knowledge` does."""
    rows = [*{row.key: row for row in [*all_rows(), *measure.store.rows]}.values()]
    known, limits = Knowledge(target, rows), budget.limits(target.capacity)
    cores = {f.core.key: f.core for f in figures(known, p, designs, loaded=loaded)}
    if trials:
        cores |= {core.key: core for core in proposed(known, p, designs, objectives, limits, trials, loaded=loaded)}
    return Search(target, rows, [*cores.values()], measure, objectives, limits, most or {}, kinds)
