# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Processes in which one call at a time runs under a time limit; one that is stuck, in native code too, is killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil

Tell = Callable[[str, float], None]
"""Called with the name of the stage that begins and its limit in seconds of processor time, tools included."""

START_SECONDS = 120.0
"""In which a process must have started and called the function."""
_LOOK_SECONDS = 0.25
_PATIENCE = 6  # wall time against processor time, for a stage that waits or a machine that is busy
_CALLS = 60  # before a process is replaced: compiled cores are never unloaded
_METHOD = multiprocessing.get_context("spawn")


class Overtime(RuntimeError):
    """A call was stopped: ``stage`` did not end within ``limit`` seconds of processor time."""

    def __init__(self, stage: str, limit: float) -> None:
        super().__init__(f"{stage} did not end within {limit:g} s")
        self.stage, self.limit = stage, limit


class Died(RuntimeError):
    """The process ended in the middle of a call, or was killed by `Worker.close`."""


class Worker:
    """A process that is started when it is first needed, and again after it was killed. What it and its tools write
    goes to the folder ``scratch``."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._process: Any = None
        self._pipe: Connection | None = None
        self._calls = 0
        self._closed = False

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """``function(tell, *arguments)`` in the process. Function, arguments and result must be picklable.

        Raises Overtime when a stage exceeds its limit, Died when the process ends, RuntimeError with the last lines of
        the traceback when the function raises.
        """
        pipe = self._started()
        try:
            pipe.send((function, arguments))
            stage, limit = "to start", START_SECONDS
            began = time.monotonic(), spent(self._process.pid)
            while True:
                if not pipe.poll(_LOOK_SECONDS):
                    if self._closed:  # while the process was being started
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
                process.join(1.0)  # so that its own status is seen
            self.kill()
            raise Died(f"the process ended with status {process.exitcode if process else None}") from None

    def _over(self, limit: float, start: float, used: float) -> bool:
        """Whether a stage that began at ``start``, ``used`` processor seconds having been spent, is over its limit."""
        wall = time.monotonic() - start
        return wall > limit and (spent(self._process.pid) - used > limit or wall > _PATIENCE * limit)

    def kill(self) -> None:
        """End the process and all that it started."""
        process, pipe, self._process, self._pipe = self._process, self._pipe, None, None
        if process is not None:
            kill(process.pid)
            process.join()
        if pipe is not None:
            pipe.close()

    def close(self) -> None:
        """End the process for good; a call under way raises Died."""
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
            # Ctrl-C reaches the whole foreground group, but only the parent answers it. The tracker of resources comes
            # first: starting it unblocks the signal.
            resource_tracker.ensure_running()
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                self._process.start()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()
        return self._pipe


def tree(pid: int) -> list[psutil.Process]:
    """A process, those that it started and those that they started; none when it has ended.

    Tools run in groups of their own, so that to kill a process's group does not reach them.
    """
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    return []


def kill(pid: int) -> None:
    """End a process and all below it at once."""
    for process in tree(pid):
        with suppress(psutil.Error):
            process.kill()


def spent(pid: int) -> float:
    """Processor seconds of a process and of all below it, those that ended included."""
    seconds = 0.0
    for process in tree(pid):
        with suppress(psutil.Error):
            times = process.cpu_times()
            seconds += times.user + times.system + times.children_user + times.children_system
    return seconds


def _serve(pipe: Connection, scratch: str) -> None:
    """What the process does: calls until the other end is closed."""
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
