# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Exploration: random cores of every design, each built and checked, on all processors, for a given time.

Parts in `modmill.studies.exploring`: ``space`` draws cases, ``trial`` judges each case in a process of ``workers``,
which is killed if a stage takes too long, and ``shrink`` reduces failing cases.
"""

from __future__ import annotations

import logging
import os
import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from modmill.contract import UnsupportedError
from modmill.design import Design
from modmill.flow import tools
from modmill.report.rows import Row, append
from modmill.studies.explore_engines import EngineCase
from modmill.studies.explore_engines import draw as draw_engine
from modmill.studies.exploring.shrink import SECONDS as SHRINK_SECONDS
from modmill.studies.exploring.shrink import shrink
from modmill.studies.exploring.space import OFTEN, Case, Drawn, Space
from modmill.studies.exploring.trial import FAILURES, Outcome, Trial, attempt, designs_of, engine_attempt
from modmill.studies.exploring.workers import Died, Overtime, Worker
from modmill.studies.vectors.files import judged
from modmill.version import __version__

Progress = Callable[[str, int, int], None]

BEHIND = 100
"""A case is drawn after the outcome of the case this number earlier is known, so that the sequence depends only on the
seed."""
SHRUNK = 20
"""Largest number of failures of one run that are shrunk, at most one of each design, form and kind."""
ENGINES = 0.15
"""Share of the time for engines."""
_LOOK_SECONDS = 0.3
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Failure:
    """A case that failed, and the case to which it was shrunk."""

    case: Case | EngineCase
    outcome: Outcome
    smaller: Case | EngineCase

    @property
    def command(self) -> str:
        """A command that reproduces the failure; for an engine a line of Python."""
        return self._shown(self.smaller)

    def describe(self) -> dict[str, Any]:
        """The values for JSON."""
        return {
            "kind": self.outcome.kind,
            "text": self.outcome.text,
            "command": self.command,
            "found_with": self._shown(self.case),
        }

    def _shown(self, case: Case | EngineCase) -> str:
        if isinstance(case, EngineCase):
            return case.line
        built = f"{case.command} --no-check -o explored"
        return f"{built} && modmill check explored" if self.outcome.kind == "failed" else built


@dataclass
class Found:
    """The result of a run: outcomes by kind, also for each design, failures, and classes with too few trials."""

    seed: int
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    engines: Counter[str] = field(default_factory=Counter)
    designs: dict[str, dict[str, int]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    below: dict[str, int] = field(default_factory=dict)
    four_state: int = 0
    interrupted: bool = False

    @property
    def cores(self) -> int:
        """Number of all cores, refused ones included."""
        return self.outcomes.total()

    @property
    def values(self) -> dict[str, Any]:
        """The numbers of a row."""
        return {
            "cores": self.cores, **summed(self.outcomes), "four_state": self.four_state,
            "engines": {"drawn": self.engines.total(), **summed(self.engines)}, "seconds": round(self.seconds, 1),
            "least": min(self.below.values(), default=OFTEN), "below": self.below, "designs": self.designs,
        }  # fmt: skip

    @property
    def line(self) -> str:
        """The result in one line."""
        kinds = [f"{self.cores:,} cores: {_words(summed(self.outcomes))}"]
        if self.engines:
            kinds.append(f"{self.engines.total():,} engines: {_words(summed(self.engines))}")
        return f"{'; '.join(kinds)} in {self.seconds:,.0f} s (seed {self.seed}, Modmill {__version__})"

    def describe(self) -> dict[str, Any]:
        """The values for JSON."""
        return {
            "seed": self.seed, "modmill": __version__, "interrupted": self.interrupted, **self.values,
            "failures": [f.describe() for f in self.failures],
        }  # fmt: skip


def summed(outcomes: Mapping[str, int]) -> dict[str, int]:
    """Outcomes by kind as four numbers; ``built`` counts every core with RTL, also checked and failed ones."""
    n = Counter(outcomes)
    checked = n["checked"] + n["failed"]
    return {
        "built": n["built"] + checked,
        "refused": n["refused"],
        "checked": checked,
        "failed": sum(n[kind] for kind in FAILURES),
    }


def _words(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.items())


def explore(
    seconds: float,
    seed: int,
    names: Sequence[str] = (),
    *,
    engines: bool = False,
    most: int | None = None,
    workers: int | None = None,
    trial: Trial | None = None,
    shrink_seconds: float = SHRINK_SECONDS,
    progress: Progress | None = None,
    record: Path | None = None,
) -> Found:
    """Try random cores for ``seconds``; running trials then finish.

    ``names``: the designs to try (default: all); ``engines``: also RSA and ECC engines, in `ENGINES` of the time;
    ``most``: largest number of cores; ``workers``: processes, by default one for each processor; ``trial``: parameters
    of the trials; ``record``: a results file to which a row is added. Ctrl-C ends the run early and returns the
    findings. The same seed tries the same cores, and the same engines, in the same order. Raises UnsupportedError for
    an unknown design.
    """
    trial = trial or Trial(seed=seed)
    designs = _chosen(designs_of(trial.designs), names)
    with tempfile.TemporaryDirectory(prefix="modmill-explore-", ignore_cleanup_errors=True) as scratch:
        pool = [Worker(Path(scratch)) for _ in range(workers or len(os.sched_getaffinity(0)))]
        run = _Run(designs, trial, seed, seconds, most, shrink_seconds, engines)
        threads = [threading.Thread(target=run.work, args=(worker,), daemon=True) for worker in pool]
        try:
            for thread in threads:
                thread.start()
            while any(thread.is_alive() for thread in threads):
                time.sleep(_LOOK_SECONDS)
                if progress:
                    progress(run.status, min(int(run.elapsed), int(seconds)), int(seconds))
        except KeyboardInterrupt:
            run.found.interrupted = True
        finally:
            run.stop()
            for worker in pool:
                worker.close()
            for thread in threads:
                thread.join()
    if run.error is not None:
        raise run.error
    found = run.finished()
    if record is not None:
        append(record, row(found, seconds, names))
    return found


def row(found: Found, seconds: float, names: Sequence[str] = ()) -> Row:
    """The row of a run; its digest is of the arguments."""
    about = {"study": "explore", "seconds": seconds, "designs": list(names), "tools": tools.versions()}
    made = judged({**about, "modmill": __version__}, f"verilator {tools.version('verilator')}", found.values)
    return replace(made, seed=found.seed)


def _chosen(designs: Sequence[Design], names: Sequence[str]) -> list[Design]:
    known = {d.name: d for d in designs}
    wanted = [name.lower().replace("_", "-") for name in names]
    for name in wanted:
        if name not in known:
            raise UnsupportedError(f"no design is called {name!r}; there are {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(wanted)] or list(designs)


class _Run:
    """State shared by the threads, one thread for each worker."""

    def __init__(
        self, designs: Sequence[Design], trial: Trial, seed: int, seconds: float, most: int | None,
        shrink_seconds: float, engines: bool,
    ) -> None:  # fmt: skip
        self.found = Found(seed)
        self.error: BaseException | None = None
        self._designs = {d.name: d for d in designs}
        self._trial, self._most, self._shrink_seconds = trial, most, shrink_seconds
        self._space = Space(designs, seed)
        self._engines, self._engine_draws = engines, random.Random(f"{seed} engines")
        self._under_way, self._spent = 0, {"cores": 0.0, "engines": 0.0}  # running engines; seconds so far
        self._drawn: list[Drawn] = []
        self._outcomes: dict[int, Outcome] = {}
        self._learned = 0
        self._shrunk: set[tuple[str, str, str]] = set()
        self._news = threading.Condition()
        self._shrinking = threading.Lock()  # Hypothesis runs in one thread at a time
        self._stopped = False
        self._start = time.monotonic()
        self._end = self._start + seconds

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    @property
    def status(self) -> str:
        """The progress in one line. It takes no lock, because Ctrl-C may interrupt it and a lock would stay taken."""
        counts = _words(summed(Counter(outcome.kind for outcome in list(self._outcomes.values()))))
        return f"{counts}, {len(self._space.below())} choices less than {OFTEN} times"

    def stop(self) -> None:
        """Draw no more cases and ignore later outcomes."""
        with self._news:
            self._stopped = True
            self._news.notify_all()

    def work(self, worker: Worker) -> None:
        """Try cases until the time is over. An error ends the run: other threads wait for this outcome."""
        try:
            while not self._stopped:
                if self._engine_is_due():
                    self._try_engine(worker)
                elif not self._try_core(worker):
                    return
        except BaseException as error:
            self.error = error
            self.stop()

    def _engine_is_due(self) -> bool:
        """Whether an engine is next: one at a time, in their share of the time. Counts it as running."""
        with self._news:
            due = self._engines and not self._under_way and time.monotonic() < self._end
            if due := due and self._spent["engines"] <= ENGINES * sum(self._spent.values()):
                self._under_way = 1
            return due

    def _try_engine(self, worker: Worker) -> None:
        case = draw_engine(self._engine_draws)
        outcome = self._try(worker, engine_attempt, case)
        with self._news:
            self._under_way = 0
            if self._stopped:
                return
            self._spent["engines"] += outcome.seconds
            self.found.engines[outcome.kind] += 1
            if outcome.wrong:
                self._add(Failure(case, outcome, case))

    def _try_core(self, worker: Worker) -> bool:
        """Draw a core and try it. Returns False if the run is over."""
        if (k := self._next()) is None:
            return False
        case = self._drawn[k].case
        outcome = self._try(worker, attempt, self._trial, case)
        with self._news:
            if self._stopped:
                return False
            self._spent["cores"] += outcome.seconds
            self._outcomes[k] = outcome
            self._news.notify_all()
        if outcome.wrong:
            self._fail(worker, case, outcome)
        return True

    def finished(self) -> Found:
        """All findings, after the threads have ended."""
        found = self.found
        for k in range(self._learned, len(self._drawn)):
            if k in self._outcomes:
                self._space.learn(self._drawn[k], self._outcomes[k].kind)
        found.seconds = self.elapsed
        found.outcomes = Counter(outcome.kind for outcome in self._outcomes.values())
        found.four_state = sum(outcome.four_state for outcome in self._outcomes.values())
        found.designs = {name: summed(counts.outcomes) for name, counts in self._space.counts.items()}
        found.below = self._space.below()
        return found

    def _next(self) -> int | None:
        """Draw the next case and return its number, or None if the run is over."""
        with self._news:
            k = len(self._drawn)
            while not self._stopped and any(j not in self._outcomes for j in range(self._learned, k - BEHIND + 1)):
                self._news.wait(_LOOK_SECONDS)
                k = len(self._drawn)
            if self._stopped or time.monotonic() > self._end or (self._most is not None and k >= self._most):
                return None
            while self._learned <= k - BEHIND:
                self._space.learn(self._drawn[self._learned], self._outcomes[self._learned].kind)
                self._learned += 1
            self._drawn.append(self._space.draw())
            return k

    def _try(self, worker: Worker, function: Callable[..., Any], *arguments: Any) -> Outcome:
        start = time.monotonic()
        try:
            found = worker.call(function, *arguments)
            return Outcome(found.kind, found.text, time.monotonic() - start, getattr(found, "four_state", False))
        except Overtime as slow:
            return Outcome("slow", str(slow), time.monotonic() - start)
        except (Died, RuntimeError) as error:
            return Outcome("crash", " ".join(str(error).split())[-300:], time.monotonic() - start)

    def _fail(self, worker: Worker, case: Case, outcome: Outcome) -> None:
        """Record a failure, shrunk if it is the first of its kind."""
        kind = case.design, case.io, outcome.kind
        smaller = case
        _log.info("%s, to be shrunk: %s: %s", outcome.kind, Failure(case, outcome, case).command, outcome.text)
        if outcome.seconds > self._shrink_seconds:  # no smaller case would be tried in that time
            self._shrunk.add(kind)
        with self._shrinking:
            if kind not in self._shrunk and len(self._shrunk) < SHRUNK and not self._stopped:
                self._shrunk.add(kind)

                def fails(other: Case) -> bool:
                    return not self._stopped and self._try(worker, attempt, self._trial, other).kind == outcome.kind

                smaller = shrink(case, self._designs[case.design], fails, self._shrink_seconds)
        with self._news:
            self._add(Failure(case, outcome, smaller))

    def _add(self, failure: Failure) -> None:
        self.found.failures.append(failure)
        _log.info("%s: %s: %s", failure.outcome.kind, failure.command, failure.outcome.text)
