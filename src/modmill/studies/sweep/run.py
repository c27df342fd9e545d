# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A sweep: the points of a plan that the store does not have, measured on a cluster, each batch stored at once."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any

from modmill.studies.sweep import limited
from modmill.studies.sweep.limited import Limits, Stopped, Task
from modmill.studies.sweep.points import FAILURES, MEASURE, Point, Result
from modmill.studies.sweep.store import Store

if TYPE_CHECKING:
    from distributed import Client, Future

AHEAD = 2
"""Points that wait for each thread of a worker, so that none is idle."""
LOST_SECONDS = 5
"""Time after which a scheduler that does not answer is given up."""
_LOOK_SECONDS = 0.3
_GONE = "the scheduler is gone"

Progress = Callable[[str, int, int], None]
"""Called with what is measured, how many points are done, and how many there are."""
Cluster = Callable[[], AbstractContextManager["Client"]]


class LostError(RuntimeError):
    """The scheduler is gone."""


@dataclass
class Summary:
    """What a sweep did: ``states`` of the points that it measured, the ``failures`` among them, points that were in the
    store (``before``) and points that it left (``left``)."""

    states: Counter[str] = field(default_factory=Counter)
    failures: list[Result] = field(default_factory=list)
    before: int = 0
    left: int = 0

    def describe(self) -> dict[str, Any]:
        """The values for JSON."""
        failures = [{"point": f.point.name, "state": f.state, "message": f.message} for f in self.failures]
        return {"states": dict(self.states), "before": self.before, "left": self.left, "failures": failures}


def missing(points: Sequence[Point], store: Store, *, retry: bool = False) -> list[Point]:
    """The points without a result in the store; with ``retry`` also those that failed."""
    found = ((point, store.state(point)) for point in points)
    return [point for point, state in found if state is None or (retry and state in FAILURES)]


def spread(points: Sequence[Point], most: int) -> list[Point]:
    """At most ``most`` of the points, evenly spread."""
    count = min(most, len(points))
    return [points[k * len(points) // count] for k in range(count)]


def sweep(
    points: Sequence[Point],
    store: Store,
    cluster: Cluster,
    *,
    limits: Limits | None = None,
    retry: bool = False,
    most: int | None = None,
    progress: Progress | None = None,
    opened: Callable[[Client], None] | None = None,
    measure: str = MEASURE,
) -> Summary:
    """Measure the points that the store does not have; with ``retry`` also those that failed before.

    ``cluster`` opens the place where they run; ``opened`` is called with its client. ``most``: largest number of points
    that are measured now. ``measure``: the function for a point, as `measuring.measured`. A point's failure is its
    result. Raises LostError if the scheduler ends, StoreError if results cannot be stored; before these and before
    KeyboardInterrupt all finished results are stored.
    """
    wanted = missing(points, store, retry=retry)
    now = wanted if most is None else spread(wanted, most)
    summary = Summary(before=len(points) - len(wanted), left=len(wanted) - len(now))
    if now:
        with cluster() as client:
            if opened:
                opened(client)
            _Sweep(client, store, summary, limits or Limits(), measure, progress).go(now)
        store.merge()
    return summary


@dataclass
class _Sweep:
    client: Client
    store: Store
    summary: Summary
    limits: Limits
    measure: str
    progress: Progress | None
    finished: Queue[Future] = field(default_factory=Queue)
    running: dict[str, tuple[Point, Future]] = field(default_factory=dict)

    def go(self, points: Sequence[Point]) -> None:
        waiting, total, done = deque(points), len(points), 0
        try:
            while waiting or self.running:
                while waiting and len(self.running) < self._window():
                    self._submit(waiting.popleft())
                done += self._store(_LOOK_SECONDS)
                if self.progress:
                    names = ", ".join(f"{p.design} {p.kind}" for p, _ in [*self.running.values()][:AHEAD])
                    self.progress(names, done, total)
                self._require_scheduler()
        except BaseException as error:
            with suppress(Exception):
                self._store(0)
            if isinstance(error, OSError):  # of a connection
                raise LostError(_GONE) from None
            raise

    def _window(self) -> int:
        threads = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return AHEAD * max(1, sum(worker["nthreads"] for worker in threads))

    def _submit(self, point: Point) -> None:
        name = f"{point.design}-{point.kind}-{sha256(repr(point.key).encode()).hexdigest()[:32]}"
        task = Task(point, self.store.known(point), self.limits, self.measure)
        future = self.client.submit(measured, task, key=name, pure=False)
        self.running[name] = point, future
        future.add_done_callback(self.finished.put)

    def _store(self, seconds: float) -> int:
        """Store what has finished; wait for it at most so long. Returns the number of points. Raises LostError if the
        scheduler has given points up."""
        futures = []
        with suppress(Empty):
            futures.append(self.finished.get(timeout=seconds))
            while True:
                futures.append(self.finished.get_nowait())
        futures = [future for future in futures if future.key in self.running]
        results = [result for future in futures if (result := self._result(future))]
        if results:
            self.store.add(results)
        for result in results:
            self.summary.states[result.state] += 1
            if result.state in FAILURES:
                self.summary.failures.append(result)
        if any(future.status in ("cancelled", "lost") for future in futures):
            raise LostError(_GONE)
        return len(results)

    def _result(self, future: Future) -> Result | None:
        """What a future holds; None if it holds nothing, or nothing any more because its worker was killed."""
        point, _ = self.running[future.key]
        try:
            if future.status == "finished":
                result: Result = future.result(timeout=LOST_SECONDS)
            elif future.status == "error":
                reason = " ".join(str(future.exception(timeout=LOST_SECONDS)).split())
                result = Result(point, "failed", f"the worker failed: {reason}")
            else:
                return None
        except TimeoutError:  # Dask measures it again
            future.add_done_callback(self.finished.put)
            return None
        del self.running[future.key]
        return result

    def _require_scheduler(self) -> None:
        """Raises LostError if the scheduler does not answer for `LOST_SECONDS`."""
        end = time.monotonic() + LOST_SECONDS
        while self.client.status != "running":
            if self.client.status == "closed" or time.monotonic() > end:
                raise LostError(_GONE)
            time.sleep(_LOOK_SECONDS)


def measured(task: Task) -> Result:
    """Measure a point in a worker of Dask; stop when the sweep gives the point up."""
    from distributed import Reschedule, get_worker
    from distributed.worker import thread_state

    worker, key = get_worker(), thread_state.key

    def given_up() -> bool:
        state = worker.state.tasks.get(key)
        return state is None or state.state == "cancelled" or worker.status.name not in ("running", "paused")

    try:
        return limited.run(task, given_up)
    except Stopped:
        raise Reschedule from None  # to another worker, if the sweep still wants it
