# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Test jobs that a stuck engine fails: edge cases among random runs, no two successive jobs with the same answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from typing import TypeVar

_Run = TypeVar("_Run")
_Result = TypeVar("_Result", bound=Hashable)
LEAST = 3
"""Minimum number of jobs."""
_DRAWS = 64
"""Attempts to draw a run with a new result: on a curve with few points many runs have the same result."""


def batches(
    edges: Sequence[_Run],
    draw: Callable[[], _Run],
    result: Callable[[_Run], _Result],
    trivial: Callable[[_Result], bool],
    threads: int,
    machines: int = 1,
) -> Iterator[list[_Run]]:
    """Yield jobs of ``threads`` runs each: every edge case once, random runs from ``draw`` between them.

    The first job of each of the ``machines`` has random runs only, and none whose result is ``trivial``. Every later
    job has one random run, in a different thread each time; with one thread it is an edge case or a random run. The
    answer of a job differs from those of the job before it and of the job before it on the same machine. Each machine
    gets at least two jobs.
    """
    waiting = list(edges)
    rooms = threads - 1
    count = max(LEAST, 2 * machines, machines + (-(-len(edges) // rooms) if rooms else 2 * len(edges)))
    answers: list[tuple[_Result, ...]] = []

    def drawn(taken: Collection[_Result] = ()) -> _Run:
        for _ in range(_DRAWS):
            run = draw()
            if not trivial(found := result(run)) and found not in taken:
                break
        return run

    for k in range(count):
        before = {answers[j] for j in (k - 1, k - machines) if j >= 0}
        if rooms == 0 and k >= machines and waiting and (result(waiting[0]),) not in before:
            job = [waiting.pop(0)]
        else:
            position = k // machines % threads
            others = [waiting.pop(0) if k >= machines and waiting else drawn() for _ in range(rooms)]
            for _ in range(_DRAWS):
                job = [*others[:position], drawn(set(map(result, others))), *others[position:]]
                if tuple(map(result, job)) not in before:
                    break
        answers.append(tuple(map(result, job)))
        yield job
