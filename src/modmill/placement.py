# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Modulo scheduling: places the jobs of one product so that a product can start every ``interval`` cycles.

A job occupies units in given cycles after its start. A hold occupies a unit (a register) from one job to another. All
occupations count modulo the interval. The solver is CP-SAT with one worker and a limit on its deterministic time, so
that equal jobs give equal starts; `verify` checks every placement without the solver. Placements of common sizes ship
with the package (placements.json); others are stored in the user's cache.
"""

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import platformdirs

from modmill.parts import need
from modmill.schedule import ScheduleError, Taken, claim


@dataclass(frozen=True)
class Job:
    """A job; the solver chooses its start cycle.

    ``uses``: (unit, first cycle after the start, number of cycles). ``after``: (job, cycles), the least distance from
    the start of that job to this start; ``within``: likewise, the largest distance. ``holds``: (unit, job, cycles after
    that job's start, cycles after this start), the first and the last cycle in which the unit is occupied.
    """

    name: str
    uses: tuple[tuple[str, int, int], ...] = ()
    after: tuple[tuple[str, int], ...] = ()
    within: tuple[tuple[str, int], ...] = ()
    holds: tuple[tuple[str, str, int, int], ...] = ()


SPAN = 12
"""All jobs start at most this number of intervals before or after the first job."""
SHIPPED = Path(__file__).parent / "placements.json"
"""Placements in the package: digest of the problem -> (interval, starts)."""
answers: dict[str, tuple[int, dict[str, int]]] = {}
"""Placements found in this process, by digest of the problem."""


def verify(jobs: Sequence[Job], interval: int, starts: Mapping[str, int]) -> None:
    """Check a placement. Raises ScheduleError, with jobs and cycles, for the first condition that it breaks."""
    taken: Taken = {}
    for job in jobs:
        s = starts[job.name]
        for name, cycles in job.after:
            if s < starts[name] + cycles:
                raise ScheduleError(f"{job.name} in cycle {s} starts less than {cycles} cycles after {name}")
        for name, cycles in job.within:
            if s > starts[name] + cycles:
                raise ScheduleError(f"{job.name} in cycle {s} starts more than {cycles} cycles after {name}")
        spans = [(unit, s + first, s + first + cycles) for unit, first, cycles in job.uses]
        spans += [(unit, starts[name] + first, s + last + 1) for unit, name, first, last in job.holds]
        for unit, first, end in spans:
            if end < first:
                raise ScheduleError(f"{job.name} holds {unit} from cycle {first}, after its end in cycle {end - 1}")
            claim(taken, unit, range(first, end), interval, job.name)


def least_interval(
    jobs: Sequence[Job], intervals: Iterable[int], minimise: Mapping[str, int], effort: float = 2, span: int = SPAN
) -> tuple[int, dict[str, int]]:
    """The first of ``intervals`` for which a placement is found, and the start cycles of the jobs.

    The other arguments are those of `place`. A stored placement is used if there is one. Raises ScheduleError, with the
    reason for the last interval, if no interval has a placement.
    """
    tried = list(intervals)
    question = [[astuple(job) for job in jobs], tried[:1], len(tried) == 1, dict(minimise), effort]
    if span != SPAN:
        question.append(span)
    key = sha256(json.dumps(question).encode()).hexdigest()[:24]
    cache = os.environ.get("MODMILL_CACHE") or platformdirs.user_cache_path("modmill")
    kept = Path(cache) / "placements" / f"{key}.json"
    found = answers.get(key) or _shipped().get(key)
    if found is None and kept.exists():
        found = json.loads(kept.read_text(encoding="utf-8"))
    if found is not None:
        interval, starts = int(found[0]), dict(found[1])
        verify(jobs, interval, starts)
        answers[key] = (interval, starts)
        return interval, starts
    reason: ScheduleError | None = None
    for interval in tried:
        try:
            starts = place(jobs, interval, minimise, effort, span)
        except ScheduleError as error:
            reason = error
            continue
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(f".{id(starts):x}")
        part.write_text(json.dumps([interval, starts]), encoding="utf-8")
        part.replace(kept)
        answers[key] = (interval, starts)
        return interval, starts
    raise reason or ScheduleError("the list of intervals is empty; give at least one")


@cache
def _shipped() -> dict[str, Any]:
    return json.loads(SHIPPED.read_text(encoding="utf-8")) if SHIPPED.exists() else {}


class _Model:
    """The conditions of a placement, for CP-SAT. The start of each job is turn * interval + phase."""

    def __init__(self, jobs: Sequence[Job], interval: int, span: int) -> None:
        need("solve")
        from ortools.sat.python import cp_model

        self.model = cp_model.CpModel()
        self.start: dict[str, Any] = {}
        self._interval = interval
        self._phase: dict[str, Any] = {}
        self._spans: dict[str, list[Any]] = defaultdict(list)
        horizon = span * interval
        for k, job in enumerate(jobs):
            low, high = (0, 0) if k == 0 else (-horizon, horizon)
            self.start[job.name] = self.model.new_int_var(low, high, job.name)
            self._phase[job.name] = self.model.new_int_var(0, interval - 1, f"{job.name} phase")
            turn = self.model.new_int_var(-span, span, f"{job.name} turn")
            self.model.add(self.start[job.name] == turn * interval + self._phase[job.name])
        for job in jobs:
            self._constrain(job)
        for occupied in self._spans.values():
            self.model.add_no_overlap(occupied)

    def _constrain(self, job: Job) -> None:
        """Add the distances and the occupations of one job."""
        s = self.start[job.name]
        for name, cycles in job.after:
            self.model.add(s >= self.start[name] + cycles)
        for name, cycles in job.within:
            self.model.add(s <= self.start[name] + cycles)
        for i, (unit, first, cycles) in enumerate(job.uses):
            if cycles > self._interval:
                raise ScheduleError(f"{job.name} occupies {unit} for {cycles} cycles; the interval is {self._interval}")
            label = f"{job.name} {unit} {i}"
            self._occupy(unit, self._phase[job.name] if first == 0 else self._reduced(s + first, label), cycles, label)
        for i, (unit, name, first, last) in enumerate(job.holds):
            begin = self.start[name] + first
            length = self.model.new_int_var(0, self._interval, f"{job.name} hold {i}")
            self.model.add(length == s + last - begin + 1)
            label = f"{job.name} hold {unit} {i}"
            self._occupy(unit, self._reduced(begin, label), length, label)

    def _occupy(self, unit: str, first: Any, cycles: Any, label: str) -> None:
        """Occupy a unit from a phase in 0 ... interval - 1 (an integer expression), and again one interval later."""
        for turn in (0, 1):
            end = self.model.new_int_var(0, 3 * self._interval, f"{label} end {turn}")
            span = self.model.new_interval_var(first + turn * self._interval, cycles, end, f"{label} {turn}")
            self._spans[unit].append(span)

    def _reduced(self, expression: Any, label: str) -> Any:
        """An expression modulo the interval."""
        value = self.model.new_int_var(0, self._interval - 1, label)
        turn = self.model.new_int_var(-30, 30, f"{label} turn")
        self.model.add(expression == turn * self._interval + value)
        return value


def place(
    jobs: Sequence[Job], interval: int, minimise: Mapping[str, int], effort: float = 10, span: int = SPAN
) -> dict[str, int]:
    """Start cycles of all jobs, the first at 0, with the least weighted sum found (``minimise``: weights by name).

    ``effort``: limit of the solver's deterministic time. ``span``: largest distance from the first job, in intervals;
    a smaller one is solved sooner. Raises ScheduleError when no schedule exists, or when none was found within
    ``effort``; the message tells which.
    """
    need("solve")
    from ortools.sat.python import cp_model

    found = _Model(jobs, interval, span)
    found.model.minimize(sum(weight * found.start[name] for name, weight in minimise.items()))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    solver.parameters.max_deterministic_time = effort
    status = solver.solve(found.model)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        starts = {job.name: solver.value(found.start[job.name]) for job in jobs}
        verify(jobs, interval, starts)
        return starts
    if status == cp_model.INFEASIBLE:
        raise ScheduleError(f"there is no schedule with interval {interval}")
    raise ScheduleError(f"the solver found no schedule with interval {interval} within effort {effort:g}")
