# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""One point in a process of its own, with limits of time and memory, tried again after what is transient.

The process has a group of its own, and its tools theirs; all of them end at a limit, on a stop, and when the process
that waits here is killed (`child`).
"""

from __future__ import annotations

import errno
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import psutil

from modmill.studies.exploring.workers import kill, spent_by, tree
from modmill.studies.sweep.child import RESULT
from modmill.studies.sweep.points import MEASURE, Point, Result

_LOOK_SECONDS = 0.5  # a look reads all of /proc
_TRANSIENT = ("ended by signal", *(os.strerror(code) for code in (errno.ENOSPC, errno.ENOMEM, errno.EAGAIN)))
"""Parts of messages of failures that another try may not have: killed from outside, no room, no process."""


class Stopped(RuntimeError):
    """The point was given up because the sweep ends."""


@dataclass(frozen=True)
class Limits:
    """Of each point: wall-clock ``seconds``, memory of all its processes together, and tries after the first one that
    fails for a transient reason."""

    seconds: float = 1800
    memory_mb: int = 4000
    retries: int = 1


@dataclass(frozen=True)
class Task:
    """A point to measure, with the digests of RTL that has a row already (``known``)."""

    point: Point
    known: tuple[str, ...] = ()
    limits: Limits = Limits()
    measure: str = MEASURE


def run(task: Task, stop: Callable[[], bool] = lambda: False) -> Result:
    """The result of a point. Raises Stopped soon after ``stop`` returns true."""
    for attempt in range(1, task.limits.retries + 2):
        result = replace(_once(task, stop), attempts=attempt)
        if not (result.state == "failed" and any(text in result.message for text in _TRANSIENT)):
            break
    return result


def _once(task: Task, stop: Callable[[], bool]) -> Result:
    try:
        with tempfile.TemporaryDirectory(prefix="modmill-point-", ignore_cleanup_errors=True) as folder:
            return _in_folder(task, stop, Path(folder))
    except OSError as error:
        return Result(task.point, "failed", f"{error.strerror or error} ({error.filename})")


def _in_folder(task: Task, stop: Callable[[], bool], folder: Path) -> Result:
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.child", str(folder)],
            stdin=subprocess.PIPE, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    assert process.stdin is not None
    watch = _Watch(process, task, stop)
    try:
        ended = watch.until_end(process.stdin)
    finally:
        watch.end()
        with suppress(BrokenPipeError):
            process.stdin.close()
    if ended is None and (folder / RESULT).exists():
        ended = pickle.loads((folder / RESULT).read_bytes())
    if ended is None:
        lines = (folder / "output").read_text(errors="replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "")
        code = process.returncode
        text = f"ended by signal {-code}" if code < 0 else f"ended with status {code}: {last.strip()[:200]}"
        ended = Result(task.point, "failed", f"the process of the point {text}")
    return replace(ended, cpu_seconds=ended.cpu_seconds or round(watch.cpu_seconds, 1), peak_mb=watch.peak_mb)


class _Watch:
    """Waits for a process, and looks at its time and memory."""

    def __init__(self, process: subprocess.Popen[bytes], task: Task, stop: Callable[[], bool]) -> None:
        self._process, self._task, self._stop = process, task, stop
        self.peak_mb, self.cpu_seconds = 0, 0.0
        self._seen: dict[int, psutil.Process] = {}

    def until_end(self, stdin: IO[bytes]) -> Result | None:
        """None if the process ended by itself; a result if it is over a limit. Raises Stopped."""
        limits, point = self._task.limits, self._task.point
        end = time.monotonic() + limits.seconds
        with suppress(BrokenPipeError):
            stdin.write(pickle.dumps(self._task).hex().encode() + b"\n")
            stdin.flush()
        while True:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_LOOK_SECONDS)
                return None
            self._look()
            if self._stop():
                raise Stopped
            if self.peak_mb > limits.memory_mb:
                return Result(point, "memory", f"stopped at {self.peak_mb} MB; the limit is {limits.memory_mb} MB")
            if time.monotonic() > end:
                return Result(point, "timeout", f"stopped after {limits.seconds:g} s")

    def _look(self) -> None:
        memory, processes = 0, tree(self._process.pid)
        for process in processes:
            self._seen[process.pid] = process
            with suppress(psutil.Error):
                memory += process.memory_info().rss
        self.peak_mb = max(self.peak_mb, memory >> 20)
        self.cpu_seconds = spent_by(processes)

    def end(self) -> None:
        """End the process and all that were below it, also those that survived it."""
        if self._process.poll() is None:
            kill(self._process.pid)
        self._process.wait()
        for process in self._seen.values():
            with suppress(psutil.Error):
                process.kill()
