# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Jobs whose answers tell a working engine from a dead one: edges between random runs, no answer twice in a row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from typing import TypeVar

_Run = TypeVar("_Run")
_Result = TypeVar("_Result", bound=Hashable)
LEAST = 3
"""Jobs at least."""
_DRAWS = 64
"""Random runs that are tried for one place: on a curve of a few points many have the same result."""


def batches(
    edges: Sequence[_Run],
    draw: Callable[[], _Run],
    result: Callable[[_Run], _Result],
    trivial: Callable[[_Result], bool],
    contexts: int,
    machines: int = 1,
) -> Iterator[list[_Run]]:
    """Jobs of ``contexts`` runs each: every edge once, and between them what ``draw`` gives.

    The first job of each machine has random runs alone, with results that are not ``trivial``. Each job after it has a
    random one, whose place goes round; with one context it is an edge or a random run. No job's answer is that of the
    job before it, or of the job before it on its machine. Each machine has two jobs at least.
    """
    waiting = list(edges)
    rooms = contexts - 1
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
            place = k // machines % contexts
            others = [waiting.pop(0) if k >= machines and waiting else drawn() for _ in range(rooms)]
            for _ in range(_DRAWS):
                job = [*others[:place], drawn(set(map(result, others))), *others[place:]]
                if tuple(map(result, job)) not in before:
                    break
        answers.append(tuple(map(result, job)))
        yield job
