# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Schedules: the unit and the cycle of each step of an algorithm.

A schedule is data. The control logic of a core, its cycle counts, its chart and its busiest unit are all read
from it. Cycle 0 is the cycle in which an operand pair is accepted; a step that starts in cycle s and lasts c
cycles has its result in a register from cycle s + c on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

from modmill.contract import Timing


@dataclass(frozen=True)
class Step:
    """One step of an algorithm on one unit.

    ``name`` is the paper's name, ``unit`` the unit that executes it, ``start`` its first cycle, ``cycles`` its latency,
    ``busy`` the cycles for which it occupies the unit (default: the latency), ``reads`` the names of the steps whose
    results it needs (inputs of the core are not listed), ``does`` the design's own operation, from which model and
    control are derived.
    """

    name: str
    unit: str
    start: int
    cycles: int
    reads: tuple[str, ...] = ()
    busy: int | None = None
    does: Any = None

    @property
    def end(self) -> int:
        """First cycle in which the result is in its register."""
        return self.start + self.cycles

    @property
    def occupied(self) -> range:
        """Cycles in which the unit cannot start another step."""
        return range(self.start, self.start + (self.cycles if self.busy is None else self.busy))


class Operations(Enum):
    """The kinds of operations of one design.

    The value of a member is the name of the operation's result; ``{}`` stands for the numbers of iteration, digit,
    column or channel. A call of a member with these numbers returns the operation.
    """

    def __call__(self, *numbers: int) -> Operation:
        return Operation(self, numbers)


@dataclass(frozen=True)
class Operation:
    """One operation of a product: its kind, and the numbers of its iteration, digit, column or channel."""

    kind: Operations
    numbers: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The name of its result in model, chart and probes; numbers are separated by points."""
        return str(self.kind.value).format(".".join(map(str, self.numbers)))

    def on(
        self, unit: str, start: int, cycles: int, reads: Iterable[Operation] = (), *, busy: int | None = None
    ) -> Step:
        """The step in which ``unit`` executes it from cycle ``start`` on (see `Step`)."""
        return Step(self.name, unit, start, cycles, tuple(operation.name for operation in reads), busy, self)


class ScheduleError(ValueError):
    """A schedule that no machine can run; the message names the steps and cycles."""


Taken = dict[tuple[str, int], str]
"""The step that occupies a unit in a cycle modulo the interval."""


def claim(taken: Taken, unit: str, cycles: range, interval: int, name: str) -> None:
    """Enter that step ``name`` occupies ``unit`` in these cycles. Raises ScheduleError if the unit is taken."""
    for cycle in cycles:
        key = unit, cycle % interval
        if key in taken:
            raise ScheduleError(f"{unit} is taken twice in cycle {key[1]} of {interval}: {taken[key]} and {name}")
        taken[key] = name


@dataclass(frozen=True)
class Schedule:
    """Steps of one product, and the interval after which the next product starts.

    ``hold`` lists stored values: (name, first cycle, last cycle). None may last longer than the interval, because the
    next product would overwrite it. Raises ScheduleError for a step that is named twice, a step that reads an unknown
    or a later result, a unit that is occupied twice, and a value that is held too long.
    """

    steps: tuple[Step, ...]
    interval: int
    hold: tuple[tuple[str, int, int], ...] = ()

    def __post_init__(self) -> None:
        by_name = self._by_name
        if twice := sorted(name for name, n in Counter(s.name for s in self.steps).items() if n > 1):
            raise ScheduleError(f"a step is named twice: {', '.join(twice)}")
        for step in self.steps:
            for name in step.reads:
                if name not in by_name:
                    raise ScheduleError(f"{step.name} reads {name}, but no step computes it")
                if by_name[name].end > step.start:
                    raise ScheduleError(
                        f"{step.name} starts in cycle {step.start}, but {name} is ready in cycle {by_name[name].end}"
                    )
        taken: Taken = {}
        for step in self.steps:
            claim(taken, step.unit, step.occupied, self.interval, step.name)
        for name, first, last in self.hold:
            if last - first >= self.interval:
                raise ScheduleError(
                    f"{name} is held from cycle {first} to {last}, longer than the interval of {self.interval}"
                )

    @cached_property
    def _by_name(self) -> dict[str, Step]:
        return {s.name: s for s in self.steps}

    def __getitem__(self, name: str) -> Step:
        return self._by_name[name]

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    @cached_property
    def latency(self) -> int:
        """Cycles from the accepted operands to the result in its register."""
        return max(s.end for s in self.steps)

    @property
    def in_flight(self) -> int:
        """Products in flight when operands arrive at every interval: latency / interval, rounded up."""
        return -(-self.latency // self.interval)

    @property
    def timing(self) -> Timing:
        """Latency, interval and products in flight."""
        return Timing(self.latency, self.interval, self.in_flight)

    @cached_property
    def units(self) -> tuple[str, ...]:
        """Units in the order of their first step."""
        return tuple(dict.fromkeys(s.unit for s in self.steps))

    def utilisation(self) -> dict[str, float]:
        """Share of the interval for which each unit is occupied, 0 to 1."""
        return {unit: sum(len(s.occupied) for s in self.on(unit)) / self.interval for unit in self.units}

    def on(self, unit: str) -> Iterable[Step]:
        """The steps of one unit, by start cycle."""
        return sorted((s for s in self.steps if s.unit == unit), key=lambda s: s.start)

    def chart(self) -> list[tuple[str, list[tuple[int, int, str]]]]:
        """Rows of a cycle chart: (unit, [(first cycle, number of cycles, step name), ...])."""
        return [(u, [(s.start, len(s.occupied), s.name) for s in self.on(u)]) for u in self.units]
