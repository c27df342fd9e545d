# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The process that measures one point: ``python -m modmill.studies.sweep.child FOLDER``.

The first line of stdin is the task (`limited.Task`). The result is written to ``FOLDER/result.pickle``. The end of
stdin means that the process which started this one is gone: then all programs below are killed, and the folder is
removed.
"""

from __future__ import annotations

import os
import pickle
import pkgutil
import resource
import shutil
import sys
import tempfile
import traceback
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread

import psutil

from modmill.flow.tools import ToolError
from modmill.studies.exploring.workers import kill
from modmill.studies.sweep.points import Point, Result

RESULT = "result.pickle"


def main(folder: Path) -> None:
    """Measure the point of stdin."""
    line = sys.stdin.buffer.readline()
    Thread(target=_watch, args=(folder,), daemon=True).start()
    task = pickle.loads(bytes.fromhex(line.decode()))
    most = 2 * task.limits.memory_mb << 20  # `limited` looks at the sum several times a second; this stops a leap
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    result = replace(_measured(task.measure, task.point, task.known, folder), cpu_seconds=_spent())
    beside = folder / "result.new"
    beside.write_bytes(pickle.dumps(result))
    beside.replace(folder / RESULT)


def _measured(measure: str, point: Point, known: list[str], folder: Path) -> Result:
    try:
        result: Result = pkgutil.resolve_name(measure)(point, known, folder)
        return result
    except MemoryError:
        return Result(point, "memory", "Python ran out of memory")
    except (ToolError, ValueError) as error:
        return Result(point, "failed", " ".join(str(error).split()))
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__} in {Path(at.filename).name}:{at.lineno}: {error}"
        return Result(point, "failed", " ".join(text.split()))


def _spent() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return round(sum(each.ru_utime + each.ru_stime for each in used), 1)


def _watch(folder: Path) -> None:
    """End this process and all below it when stdin ends."""
    while os.read(0, 4096):
        pass
    for process in psutil.Process().children():
        with suppress(psutil.Error):
            kill(process.pid)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
