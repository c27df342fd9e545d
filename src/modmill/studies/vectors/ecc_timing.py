# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Constant time, measured on RTL: an operation of a coprocessor takes the same number of cycles for all scalars.

Counted from the last word of a job, each word of the job and of its answer must move in the same cycle, whatever the
scalars, points and numbers; and every result must be right. A chosen scalar fills all threads of its job, because a
machine that skips work needed by no thread would show its leak only there.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modmill.contract import UnsupportedError
from modmill.cores.ecc.machine import EccCore
from modmill.cores.ecc.samples import drawn, expected
from modmill.engines.ecc.blinding import NUMBERS, Run
from modmill.engines.ecc.points import BLIND
from modmill.flow import tools
from modmill.report.rows import Row, Store
from modmill.studies.vectors.files import judged
from modmill.studies.vectors.runner import Progress

SEED = 1
_JOBS = 20
"""Jobs in one simulation; progress is reported between simulations."""


def chosen(n: int, bits: int) -> list[int]:
    """Return scalars in [0, 2^bits) that a machine might treat differently: near 0 and near the order n, with zeros or
    ones at one end or both, sparse and dense."""
    ones, half = (1 << bits) - 1, bits // 2
    found = [
        0, 1, 2, 3, n - 2, n - 1, n, n + 1, ones, ones - 1, 1 << bits - 1, ones >> 1, (1 << half) - 1, 1 << half,
        ones ^ (1 << half) - 1, ones // 3, ones // 3 * 2, 1 | 1 << bits - 1, n // 2, n // 2 + 1,
    ]  # fmt: skip
    return [k for k in dict.fromkeys(found) if 0 <= k <= ones]


def chosen_runs(core: EccCore, operation: str) -> list[Run]:
    """Return a run for each chosen scalar; modulo n, runs with 0, 1 and n - 1 as each operand."""
    curve, n = core.curve, core.curve.n
    if operation in NUMBERS:
        names, _ = NUMBERS[operation]
        sets = [dict.fromkeys(names, x) for x in (0, 1, 2, n - 1, n // 2)]
        sets += [{name: x if name == one else 5 for name in names} for one in names for x in (0, 1, n - 1)]
        return [((), given) for given in sets]
    x, y = curve.base
    match operation:
        case "ladder":
            us = (x, 0, 1, curve.p - 1)
            scalars = chosen(n, core.scalar_bits)
            return [((k,), {"u": u, BLIND: 1}) for k in scalars for u in (us if k in (0, 1, n) else us[:1])]
        case "multiply-two":
            some = [k for k in chosen(n, n.bit_length()) if k < n]
            return [((k, other), {"x": x, "y": y}) for k in some for other in dict.fromkeys((0, k))]
        case "multiply-base":
            return [((k,), {BLIND: 1}) for k in chosen(n, core.scalar_bits)]
    return [((k,), {"x": x, "y": y, BLIND: 1}) for k in chosen(n, core.scalar_bits)]


def random_run(core: EccCore, operation: str, rnd: random.Random) -> Run:
    """Return a run with random scalars, points and numbers; one scalar in eight has leading zeros."""
    scalars, given = drawn(core.curve, operation, core.scalar_bits, rnd)
    return tuple(k if rnd.randrange(8) else k >> rnd.randrange(core.scalar_bits + 1) for k in scalars), given


@dataclass(frozen=True)
class Timing:
    """Measurement of an operation. ``scalars``: number of different runs, of which ``chosen`` are chosen; ``jobs``:
    number of jobs. ``cycles``: every number of cycles that was seen from the last word of a job to the first of its
    answer; ``patterns``: number of different timings of the other words. ``wrong``: number of wrong results.
    """

    operation: str
    scalars: int
    chosen: int
    jobs: int
    predicted: int
    cycles: tuple[int, ...]
    patterns: int
    wrong: int
    seconds: float

    @property
    def fault(self) -> str:
        """The fault in one line; empty if there is none."""
        if self.wrong:
            return f"{self.wrong} wrong results"
        if len(self.cycles) > 1:
            return f"{self.cycles[0]:,} to {self.cycles[-1]:,} cycles: the time depends on the scalars or points"
        if self.patterns > 1:
            return f"the words of a job move at {self.patterns} different times"
        if self.cycles != (self.predicted,):
            return f"{self.cycles[0]:,} cycles, {self.predicted:,} were predicted"
        return ""

    @property
    def line(self) -> str:
        """The verdict in one line."""
        verdict = f"FAIL {self.operation}: {self.fault}"
        if not self.fault:
            verdict = f"PASS {self.operation}: {self.predicted:,} cycles, as predicted"
        return (
            f"{verdict}; {self.scalars:,} scalars, {self.chosen} of them chosen, in {self.jobs:,} jobs, "
            f"{self.seconds:.1f} s"
        )


def timings(
    core: EccCore,
    operations: Sequence[str] = (),
    scalars: int = 1000,
    *,
    progress: Progress | None = None,
    record: Path | None = None,
    store: Path | None = None,
) -> Iterator[Timing]:
    """Measure operations (default: all of the core's); each row is stored as soon as it is measured.

    ``scalars``: number of different runs of each. ``record``: a results file to which the rows are added; ``store``:
    file for rows, default that of the cache. Raises UnsupportedError for a core of several machines, whose jobs wait
    for one another.
    """
    if core.cores > 1:
        raise UnsupportedError(f"times are measured on one machine, not on {core.cores}")
    for name in operations:
        core.number(name)
    rows = Store(store or tools.cache_dir() / "rows.jsonl", record=record)
    for name in operations or core.jobs:
        found = measure(core, name, scalars, progress)
        rows.add(_row(core, found))
        yield found


def measure(core: EccCore, operation: str, scalars: int, progress: Progress | None = None) -> Timing:
    """Measure one operation over ``scalars`` different runs, at least the chosen ones."""
    start, size = time.monotonic(), core.layout.threads
    rnd = random.Random(SEED)
    first = chosen_runs(core, operation)
    others = [random_run(core, operation, rnd) for _ in range(max(0, scalars - len(first)))]
    jobs = [[run] * size for run in first]
    jobs += [others[k : k + size] for k in range(0, len(others), size)]
    cycles, patterns, wrong, done = set[int](), set[tuple[int, ...]](), 0, 0
    for at in range(0, len(jobs), _JOBS):
        if progress:
            progress(f"{core.curve.title}: {operation}", done, len(first) + len(others))
        some = jobs[at : at + _JOBS]
        found = core.simulate(operation, [run for job in some for run in [*job, *job[:1] * (size - len(job))]])
        cycles |= set(found.cycles)
        patterns |= set(_patterns(core, operation, found.run.accepted, found.run.valid, len(some)))
        different = {id(run): run for job in some for run in job}
        wanted = {key: expected(core.curve, operation, run) for key, run in different.items()}
        for k, job in enumerate(some):
            results = found.results[k * size : (k + 1) * size]
            wrong += sum(result != wanted[id(run)] for run, result in zip(job, results, strict=False))
        done += len(different)
    return Timing(
        operation, len(first) + len(others), len(first), len(jobs), core.cycles(operation), tuple(sorted(cycles)),
        len(patterns), wrong, round(time.monotonic() - start, 1),
    )  # fmt: skip


def _patterns(
    core: EccCore, operation: str, accepted: Sequence[int], valid: Sequence[int], jobs: int
) -> Iterator[tuple[int, ...]]:
    """Yield for each job the cycles of its words and of those of its answer, counted from its last word. The first two
    words are left out: they are taken while the previous job ends."""
    out = core.layout.answer_words(core.number(operation))
    into = len(core.job(operation, chosen_runs(core, operation)[:1] * core.layout.threads))
    begin = len(accepted) - jobs * into
    for k in range(jobs):
        taken = accepted[begin + k * into : begin + (k + 1) * into]
        yield tuple(t - taken[-1] for t in (*taken[2:], *valid[k * out : (k + 1) * out]))


def _row(core: EccCore, found: Timing) -> Row:
    """The row; its digest covers the core, the operation and the scalars."""
    what: dict[str, Any] = {
        **core.about(), "rtl": core.digest, "timing": found.operation, "scalars": found.scalars, "seed": SEED,
    }  # fmt: skip
    values = {
        "cycles": list(found.cycles), "predicted": found.predicted, "patterns": found.patterns, "wrong": found.wrong,
        "scalars": found.scalars, "chosen": found.chosen, "jobs": found.jobs, "seconds": found.seconds,
    }  # fmt: skip
    return judged(what, f"verilator {tools.version('verilator')}", values, engine=core.design)
