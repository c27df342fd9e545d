# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A campaign of faults in blocks, on all processors. A block is kept when it ends; a later call goes on from there."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from queue import SimpleQueue

from modmill.flow import tools
from modmill.report.attack_tables import OUTCOMES
from modmill.studies.attack.draw import SHARES, Draw
from modmill.studies.attack.faults import Attacked, Runner
from modmill.studies.attack.operation import Operation
from modmill.studies.attack.report import FaultReport

BLOCK = 20
"""Faults that a thread simulates, and that are kept, at once."""


class _Journal:
    """Outcomes of the blocks that ended, one line each, in the cache. Torn and foreign lines are skipped."""

    def __init__(self, key: object) -> None:
        digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()
        self.path = tools.cache_dir() / "faults" / f"{digest}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.blocks: dict[int, list[str]] = {}
        for line in self.path.read_text().splitlines() if self.path.exists() else ():
            try:
                number, outcomes = json.loads(line)
                self.blocks[int(number)] = [OUTCOMES[int(k)] for k in outcomes]
            except (ValueError, TypeError, IndexError):
                continue

    def add(self, number: int, outcomes: list[str]) -> None:
        self.blocks[number] = outcomes
        with self.path.open("a") as file:
            file.write(json.dumps([number, "".join(str(OUTCOMES.index(x)) for x in outcomes)]) + "\n")


def run(
    operation: Operation, count: int, seed: int = 1, *, jobs: int = 0, name: str = "",
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> FaultReport:  # fmt: skip
    """Plant the first ``count`` faults of ``seed``, one at a time, on ``jobs`` threads (0: one for each processor).

    Blocks that an earlier call finished are not simulated again. ``name``: of the engine in the report. Raises
    ValueError for a count below 1, and ToolError if the engine does not compile or fails without a fault.
    """
    if count < 1:
        raise ValueError(f"the number of faults must be at least 1, not {count}")
    start = time.monotonic()
    progress("the engine for faults is compiled", 0, 0)
    attacked = operation.attacked()
    faults = Draw(attacked.places, attacked.cycles, seed)
    digest = operation.engine.digest
    journal = _Journal([attacked.key, operation.words, SHARES, BLOCK, seed])
    blocks = range(-(-count // BLOCK))
    todo = [k for k in blocks if k not in journal.blocks]
    before = len(blocks) - len(todo)
    if todo:
        for done, (number, outcomes) in enumerate(_simulated(attacked, faults, todo, jobs), 1):
            journal.add(number, outcomes)
            progress(f"{count:,} faults in {operation.what}", min(count, (before + done) * BLOCK), count)
    outcomes = [outcome for k in blocks for outcome in journal.blocks[k]][:count]
    return FaultReport(
        name or operation.engine.top, digest, seed, operation.about(), attacked.places, attacked.cycles,
        [(faults[k], outcome) for k, outcome in enumerate(outcomes)], time.monotonic() - start,
    )  # fmt: skip


def _simulated(attacked: Attacked, faults: Draw, todo: list[int], jobs: int) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of a block, its outcomes) as they end. Each thread has an instance of the model."""
    threads = min(len(todo), jobs or len(os.sched_getaffinity(0)))
    free: SimpleQueue[Runner] = SimpleQueue()

    def block(number: int) -> tuple[int, list[str]]:
        runner = free.get()
        try:
            return number, runner.run([faults[k] for k in range(number * BLOCK, (number + 1) * BLOCK)])
        finally:
            free.put(runner)

    runners = [attacked.runner() for _ in range(threads)]
    for runner in runners:
        free.put(runner)
    pool = ThreadPoolExecutor(threads)
    try:
        left = iter(todo)
        going: set[Future[tuple[int, list[str]]]] = {pool.submit(block, k) for k in islice(left, threads)}
        while going:
            ended, going = wait(going, return_when=FIRST_COMPLETED)
            for future in ended:
                yield future.result()
                going |= {pool.submit(block, k) for k in islice(left, 1)}
    finally:
        pool.shutdown(cancel_futures=True)
        for runner in runners:
            runner.close()
