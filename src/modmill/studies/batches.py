# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Jobs whose answers tell a working engine from a dead one: edges between random runs, no answer twice in a row."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
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

    Every job of two or more runs has a random one, with a result that is not ``trivial``; its place goes round, so that
    each context has one. With one context the first job of each machine is such a run. No job's answer is that of the
    job before it, or of the job before it on its machine. Each machine has two jobs at least.
    """
    waiting = list(edges)
    rooms = contexts - 1
    count = max(LEAST, 2 * machines, 1 + -(-len(edges) // rooms) if rooms else machines + 2 * len(edges))
    answers: list[tuple[_Result, ...]] = []
    for k in range(count):
        before = {answers[j] for j in (k - 1, k - machines) if j >= 0}
        if rooms == 0 and k >= machines and waiting and (result(waiting[0]),) not in before:
            job = [waiting.pop(0)]
        else:
            others = [waiting.pop(0) if waiting else draw() for _ in range(rooms)]
            place = k % contexts
            for _ in range(_DRAWS):
                job = [*others[:place], draw(), *others[place:]]
                found = tuple(map(result, job))
                different = rooms == 0 or len(set(found)) > 1
                if different and found not in before and not trivial(found[place]):
                    break
        answers.append(tuple(map(result, job)))
        yield job
