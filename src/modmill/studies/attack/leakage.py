# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A t-test of toggle traces: runs with the same key against runs with random keys, in random order, on all processors.

Run k of a seed is the same for every number of runs. What is summed is kept now and then; a later call with the same
number of runs or more goes on from there.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from queue import SimpleQueue

from modmill.flow import tools
from modmill.studies.attack.keys import Case, Subject
from modmill.studies.attack.leakage_report import Curve, LeakageReport
from modmill.studies.attack.traces import Runner, Sums, Traced
from modmill.studies.attack.welch import ORDERS, Group, limit, welch

LEAST = 100
"""Least number of runs."""
WHERE = 500
"""Largest number of runs in which the places of a leak are searched."""
SAVE_EVERY = 20.0
"""Seconds between two times that the sums are kept."""
_ROUND = 4  # blocks that each thread has in a round
_BLOCK_CYCLES, _MOST = 200_000, 500  # cycles of a block, and most runs in it
FIXED, RANDOM = range(2)


class _Kept:
    """The sums of the first runs in the cache: a line with their number and the numbers of late ones, then the sums."""

    def __init__(self, key: object) -> None:
        digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()
        self._path = tools.cache_dir() / "leakage" / f"{digest}.sums"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._most = 0

    def load(self, sums: Sums, count: int) -> tuple[int, list[int]]:
        """Number of runs, at most ``count``, whose sums are now in ``sums``, and the late ones."""
        try:
            head, _, data = self._path.read_bytes().partition(b"\n")
            runs, late = json.loads(head)
        except (OSError, ValueError):
            return 0, []
        if len(data) != len(sums.buffer):
            return 0, []
        self._most = runs
        if runs > count:
            return 0, []
        sums.buffer.raw = data
        return runs, late

    def save(self, sums: Sums, runs: int, late: Sequence[int]) -> None:
        """Keep the sums of the first ``runs`` runs unless more are kept."""
        if runs <= self._most:
            return
        beside = self._path.with_suffix(f".{os.getpid()}")
        beside.write_bytes(json.dumps([runs, list(late)]).encode() + b"\n" + bytes(sums.buffer))
        beside.replace(self._path)
        self._most = runs


@dataclass(frozen=True)
class _Test:
    """The runs of a seed. ``fixed``: the key of the runs of the group `FIXED`."""

    subject: Subject
    seed: int
    control: bool
    fixed: object
    traced: Traced
    sums: Sums

    def case(self, number: int) -> tuple[int, Case]:
        """Whether a run has the fixed key, `FIXED`, or its own, `RANDOM`; and the run."""
        rnd = random.Random(f"{self.seed} {number}")
        which = rnd.randrange(2)
        own = self.subject.key(rnd)  # also if it is not used, so that the other numbers are drawn alike
        return which, self.subject.draw(self.fixed if which == FIXED and not self.control else own, rnd)

    def seeds(self, numbers: Sequence[int]) -> list[int]:
        """The seeds of the random words that runs get at a port for them."""
        return [random.Random(f"{self.seed} {number} port").getrandbits(64) for number in numbers]

    def block(self, runner: Runner, numbers: Sequence[int]) -> list[int]:
        """Add the traces of these runs to the sums; return the late ones. Raises ToolError for a wrong answer."""
        drawn = [self.case(number) for number in numbers]
        groups = [_group(number, which) for number, (which, _) in zip(numbers, drawn, strict=True)]
        answers, ended = runner.run([case.words for _, case in drawn], groups, self.sums, self.seeds(numbers))
        for number, (_, case), answer, late in zip(numbers, drawn, answers, ended, strict=True):
            if not late and not case.right(answer):
                raise tools.ToolError(f"simulation: the answer of run {number} is wrong")
        return [number for number, late in zip(numbers, ended, strict=True) if late]

    def where(self, curve: Curve, count: int) -> list[tuple[str, float]]:
        """The registers, memories and nets that show a leak in the cycle with the largest t of a class and order, in
        the first ``count`` runs, with their t, the largest first."""
        drawn = [self.case(number) for number in range(count)]
        with self.traced.runner() as runner:
            changed = runner.look_at([case.words for _, case in drawn], curve.peak, self.seeds(range(count)))
        most = limit(len(self.traced.places))
        found = []
        for place, counts in zip(self.traced.places, zip(*changed, strict=True), strict=True):
            sides = [
                Group.of([x for x, (which, _) in zip(counts, drawn, strict=True) if which == side])
                for side in (FIXED, RANDOM)
            ]
            if abs(t := welch(sides[0], sides[1], curve.order)) > most:
                found.append((place.name, t))
        return sorted(found, key=lambda each: -abs(each[1]))

    def groups(self, count: int) -> list[list[list[Group]]]:
        """The groups of the first ``count`` runs; in each of every class, a cycle after the other."""
        counts = Counter(_group(k, random.Random(f"{self.seed} {k}").randrange(2)) for k in range(count))
        classes = range(len(self.traced.classes))
        return [
            [[Group(counts[group], powers) for powers in self.sums.of(group, kind)] for kind in classes]
            for group in range(self.sums.groups)
        ]


def _group(number: int, which: int) -> int:
    """The group of a run: those of even numbers, then those of odd ones."""
    return number % 2 * 2 + which


def run(
    subject: Subject, count: int, seed: int = 1, *, nets: bool = False, control: bool = False, order: int = ORDERS[-1],
    begin: int = 0, jobs: int = 0, name: str = "", progress: Callable[[str, int, int], None] = lambda *_: None,
) -> LeakageReport:  # fmt: skip
    """The t-test of the first ``count`` runs of ``seed``, on ``jobs`` threads (0: one for each processor). ``nets``:
    nets are counted too. ``control``: both groups have random keys. ``order``: the highest one that counts as a
    leak; ``begin``: the first cycle that counts. ``name``: of the core in the report.

    Raises ValueError for less than `LEAST` runs, and ToolError if the netlist does not compile or an answer is wrong.
    """
    if count < LEAST:
        raise ValueError(f"the number of runs must be at least {LEAST}, not {count}")
    start = time.monotonic()
    progress("the netlist for traces is compiled", 0, 0)
    fixed = subject.key(random.Random(f"{seed} fixed"))
    traced = Traced(subject.bench, subject.draw(fixed, random.Random(f"{seed} first")).words, nets=nets)
    test = _Test(subject, seed, control, fixed, traced, traced.sums(4))
    kept = _Kept([traced.key, subject.what, dict(subject.about), seed, control])
    late = _summed(test, count, jobs or len(os.sched_getaffinity(0)), kept, progress)
    report = LeakageReport.of(
        name or subject.bench.top, subject, seed, count, traced, test.groups(count), late, control, order, begin,
    )  # fmt: skip
    worst = report.worst
    where = test.where(worst, min(count, WHERE)) if worst else []
    return replace(report, where=where, seconds=time.monotonic() - start)


def _summed(test: _Test, count: int, threads: int, kept: _Kept, progress: Callable[[str, int, int], None]) -> list[int]:
    """Add the traces of the first ``count`` runs to the sums, except those that are kept; return the late ones."""
    done, late = kept.load(test.sums, count)
    saved, cycles = time.monotonic(), test.traced.cycles
    size = max(1, min(_MOST, _BLOCK_CYCLES // cycles))
    free: SimpleQueue[Runner] = SimpleQueue()

    def block(numbers: Sequence[int]) -> list[int]:
        runner = free.get()
        try:
            return test.block(runner, numbers)
        finally:
            free.put(runner)

    runners = [test.traced.runner() for _ in range(threads if done < count else 0)]
    pool = ThreadPoolExecutor(threads)
    try:
        for runner in runners:
            free.put(runner)
        while done < count:
            end = min(count, done + _ROUND * threads * size)
            for some in pool.map(block, [range(k, min(end, k + size)) for k in range(done, end, size)]):
                late += some
            done = end
            progress(f"{count:,} runs of {test.subject.what}, {cycles:,} cycles each", done, count)
            if done == count or time.monotonic() - saved > SAVE_EVERY:
                kept.save(test.sums, done, late)
                saved = time.monotonic()
    finally:
        pool.shutdown(cancel_futures=True)
        for runner in runners:
            runner.close()
    return late
