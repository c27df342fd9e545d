# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Worker processes for calls with a time limit, one call at a time; a stuck process is killed, also in native code."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil

Tell = Callable[[str, float], None]
"""Called at the begin of a stage, with its name and its limit in seconds of processor time, tools included."""

START_SECONDS = 120.0
"""Time limit for a process to start and call the function."""
_LOOK_SECONDS = 0.25
_PATIENCE = 6  # limit of wall time over processor time, for a stage that waits or a busy machine
_CALLS = 60  # calls before a process is replaced, because compiled cores are never unloaded
_METHOD = multiprocessing.get_context("spawn")


class Overtime(RuntimeError):
    """A call was stopped: ``stage`` did not end within ``limit`` seconds of processor time."""

    def __init__(self, stage: str, limit: float) -> None:
        super().__init__(f"{stage} did not end within {limit:g} s")
        self.stage, self.limit = stage, limit


class Died(RuntimeError):
    """The process ended in the middle of a call, or was killed by `Worker.close`."""


class Worker:
    """A process that is started at its first call, and again after it was killed. It and its tools write to the folder
    ``scratch``."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._process: Any = None
        self._pipe: Connection | None = None
        self._calls = 0
        self._closed = False

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """``function(tell, *arguments)`` in the process. Function, arguments and result must be picklable.

        Raises Overtime if a stage exceeds its limit, Died if the process ends, RuntimeError with the last lines of the
        traceback if the function raises.
        """
        pipe = self._started()
        try:
            pipe.send((function, arguments))
            stage, limit = "to start", START_SECONDS
            began = time.monotonic(), spent(self._process.pid)
            while True:
                if not pipe.poll(_LOOK_SECONDS):
                    if self._closed:  # during the start of the process
                        self.kill()
                        raise Died("the worker is closed")
                    if self._over(limit, *began):
                        self.kill()
                        raise Overtime(stage, limit)
                    continue
                kind, *rest = pipe.recv()
                if kind == "stage":
                    stage, limit = rest
                    began = time.monotonic(), spent(self._process.pid)
                elif kind == "done":
                    return rest[0]
                else:
                    raise RuntimeError(rest[0])
        except (EOFError, OSError):
            process = self._process
            if process is not None:
                process.join(1.0)  # so that its exit status is known
            self.kill()
            raise Died(f"the process ended with status {process.exitcode if process else None}") from None

    def _over(self, limit: float, start: float, used: float) -> bool:
        """Whether a stage that began at ``start``, after ``used`` processor seconds, is over its limit."""
        wall = time.monotonic() - start
        return wall > limit and (spent(self._process.pid) - used > limit or wall > _PATIENCE * limit)

    def kill(self) -> None:
        """End the process and all its descendants."""
        process, pipe, self._process, self._pipe = self._process, self._pipe, None, None
        if process is not None:
            kill(process.pid)
            process.join()
        if pipe is not None:
            pipe.close()

    def close(self) -> None:
        """End the process permanently; a running call raises Died."""
        self._closed = True
        process = self._process
        if process is not None and process.pid is not None:
            kill(process.pid)

    def _started(self) -> Connection:
        if self._closed:
            raise Died("the worker is closed")
        self._calls += 1
        if self._calls % _CALLS == 0:
            self.kill()
        if self._process is None or self._pipe is None:
            self._pipe, theirs = _METHOD.Pipe()
            self._process = _METHOD.Process(target=_serve, args=(theirs, str(self._scratch)), daemon=True)
            # Ctrl-C reaches the whole foreground group, but only the parent handles it. The resource tracker is started
            # first, because its start unblocks the signal.
            resource_tracker.ensure_running()
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                self._process.start()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()
        return self._pipe


def tree(pid: int) -> list[psutil.Process]:
    """A process and all its descendants; none if the process has ended.

    Tools run in their own process groups, so killing the process's group does not reach them.
    """
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    return []


def kill(pid: int) -> None:
    """End a process and all below it at once. Each is stopped first: one that runs could start another meanwhile."""
    stopped: dict[int, psutil.Process] = {}
    while new := [process for process in tree(pid) if process.pid not in stopped]:
        for process in new:
            stopped[process.pid] = process
            with suppress(psutil.Error):
                process.suspend()
    for process in stopped.values():
        with suppress(psutil.Error):
            process.kill()


def spent(pid: int) -> float:
    """Processor seconds of a process and all its descendants, including ended ones."""
    return spent_by(tree(pid))


def spent_by(processes: Iterable[psutil.Process]) -> float:
    """Processor seconds of these processes, and of those below them that have ended."""
    seconds = 0.0
    for process in processes:
        with suppress(psutil.Error):
            times = process.cpu_times()
            seconds += times.user + times.system + times.children_user + times.children_system
    return seconds


def _serve(pipe: Connection, scratch: str) -> None:
    """Main function of the process: run calls until the other end of the pipe is closed."""
    warnings.simplefilter("ignore")
    os.environ["TMPDIR"] = tempfile.tempdir = scratch
    while True:
        try:
            function, arguments = pipe.recv()
        except EOFError:
            return
        try:
            result = function(lambda stage, limit: pipe.send(("stage", stage, limit)), *arguments)
        except Exception:
            pipe.send(("error", traceback.format_exc(limit=-3)))
        else:
            pipe.send(("done", result))
