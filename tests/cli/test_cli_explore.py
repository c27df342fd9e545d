# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The command ``modmill explore``: its lines, its status, and its end by Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from command import SOURCE, modmill, refused

from modmill.studies import explore
from modmill.studies.exploring.space import Case
from modmill.studies.exploring.trial import Outcome
from modmill.studies.exploring.workers import kill, tree
from processes import alive


@pytest.fixture
def ran(monkeypatch):
    """What the command asked for, and the run that it is given."""
    asked = {}
    found = explore.Found(7, seconds=12.0, designs={"multistep": explore.summed({"checked": 2, "failed": 1})})
    found.outcomes.update({"checked": 2, "failed": 1, "refused": 3})

    def run(seconds, seed, names, **options):
        asked.update(options, seconds=seconds, seed=seed, names=names)
        return found

    monkeypatch.setattr(explore, "explore", run)
    return asked, found


def test_failures_are_shown_with_their_command_and_status_1(ran):
    asked, found = ran
    big, small = Case("multistep", 97, "native", (("s", 4),)), Case("multistep", 3, "native")
    found.failures.append(explore.Failure(big, Outcome("failed", "0 times 0 gave 1"), small))
    found.below["multistep s: most"] = 1
    done = modmill("explore", "--seconds", 12, "--seed", 7, "--design", "multistep")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "6 cores: 3 built, 3 refused, 3 checked, 1 failed in 12 s (seed 7, Modmill 0.1.0)",
        "  multistep             3 built,    0 refused,    3 checked,    1 failed",
        "built less than 3 times: multistep s: most (1)",
        "failed: 0 times 0 gave 1",
        "  modmill build multistep -m 3 --io native --no-check -o explored && modmill check explored",
        "  found with modmill build multistep -m 97 --io native --set s=4 --no-check -o explored "
        "&& modmill check explored",
    ]
    assert (asked["seconds"], asked["seed"], asked["names"], asked["engines"]) == (12, 7, ["multistep"], False)


def test_a_run_without_failures_as_json(ran):
    asked, _ = ran
    done = modmill("explore", "--json")
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert (found["cores"], found["checked"], found["failures"]) == (6, 3, [])
    assert asked["engines"] is True
    assert modmill("explore", "--no-engines").returncode == 0
    assert asked["engines"] is False


def test_an_interrupted_run_says_what_it_did(ran):
    ran[1].interrupted = True
    done = modmill("explore")
    assert done.returncode == 130
    assert done.stdout.startswith("6 cores: ")
    assert "interrupted" in done.stderr


def test_refusals():
    assert "no design is called 'sor-9'" in refused("explore", "--design", "sor-9")
    assert "nowhere" in refused("explore", "--record", "nowhere/rows.jsonl")


def test_control_c_ends_it_with_a_summary_and_leaves_no_process(cache):
    command = [sys.executable, "-m", "modmill", "explore", "-q", "--seconds", "600", "--seed", "1", "--design", "wide"]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )
    end = time.monotonic() + 120
    while len(below := tree(process.pid)[1:]) < 3 and time.monotonic() < end:  # workers, and a tool of one
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    try:
        output, errors = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            kill(process.pid)
    assert process.returncode == 130, errors
    assert " cores: " in output
    assert "Traceback" not in errors
    assert errors == "modmill: interrupted\n"
    end = time.monotonic() + 20
    while any(map(alive, below)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not any(map(alive, below))
