# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A race stores each row as soon as it is there, uses what is stored, and keeps the failures of a design apart."""

import functools
import os
import signal
import subprocess
import sys
import time

import pytest

from modmill.contract import UnsupportedError
from modmill.cores.multiplier.verify import Report
from modmill.flow.route import Routed
from modmill.flow.synthesise import Synthesis
from modmill.flow.tools import ToolError
from modmill.report.rows import Store, append, read
from modmill.studies.exploring.workers import kill, tree
from modmill.studies.race import cores as race_module
from modmill.studies.race import measure
from modmill.studies.race.cores import race
from processes import alive


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A race with rows of its own and tools that answer at once; what they were asked stands in the list."""
    calls = []

    def verify(core, verilog, report, vectors, **_):
        calls.append(("check", core.design.name))
        report.counts["random"] = vectors
        report.latency, report.interval = core.contract.timing.latency, core.contract.timing.interval

    def synthesise(verilog, top, target, workdir):
        calls.append(("synth", workdir.name))
        return Synthesis(top, target.name, 10, 1000, 500, 0, {}, 1.0, workdir / "n", 4.0, "yosys")

    def route(verilog, top, target, workdir, *, seed, router):
        calls.append(("route", seed))
        return Routed(100.0 + seed, 100.0 + seed, 175.0, None, {}, 1.0, seed, target.name, "nextpnr")

    monkeypatch.setattr(measure, "verify_core", verify)
    monkeypatch.setattr(race_module.synthesise, "synthesise", synthesise)
    monkeypatch.setattr(race_module.backends.route, "route", route)
    store = functools.partial(Store, shipped=tmp_path / "results")
    monkeypatch.setattr(race_module, "Store", lambda _, record=None: store(tmp_path / "rows.jsonl", record=record))
    return calls


SMALL = {"n": 20}


def test_second_race_is_recorded(made):
    (s,) = race("2^61-1", ["sor-1m-p"], settings=SMALL)
    assert (s.state, s.numbers, s.value("lut"), s.clock) == ("ready", "measured", 1000, "logic only")
    made.clear()
    (s,) = race("2^61-1", ["sor-1m-p"], settings=SMALL)
    assert (s.numbers, made) == ("recorded", [])


def test_more_vectors_are_checked_again(made):
    race("2^61-1", ["sor-1m-p"], settings=SMALL, vectors=100)
    made.clear()
    race("2^61-1", ["sor-1m-p"], settings=SMALL, vectors=50)
    assert made == []
    race("2^61-1", ["sor-1m-p"], settings=SMALL, vectors=101)
    assert made == [("check", "sor-1m-p")]


def test_routes_by_seed(made, tmp_path):
    (s,) = race("2^61-1", ["sor-1m-p"], settings=SMALL, with_route=True, record=tmp_path / "record.jsonl")
    assert sorted(c for c in made if c[0] == "route") == [("route", 1), ("route", 2), ("route", 3)]
    assert (s.mhz, s.clock) == (102.0, "routed")
    assert [r.kind for r in read(tmp_path / "record.jsonl")].count("route") == 3
    made.clear()
    (s,) = race("2^61-1", ["sor-1m-p"], settings=SMALL)  # without --route the recorded clock is shown all the same
    assert (s.mhz, s.numbers, made) == (102.0, "recorded", [])


def test_rows_that_ship_are_used(made, tmp_path):
    race("2^61-1", ["sor-1m-p"], settings=SMALL)
    for row in read(tmp_path / "rows.jsonl"):
        append(tmp_path / "results" / "sor.jsonl", row)
    (tmp_path / "rows.jsonl").unlink()
    made.clear()
    (s,) = race("2^61-1", ["sor-1m-p"], settings=SMALL)
    assert (s.numbers, made) == ("recorded", [])


def test_designs_that_do_not_fit_are_predicted(made):
    (s,) = race("2^89-1", ["sor-nm"])
    assert (s.state, s.numbers, made) == ("does not fit", "measured + predicted", [("check", "sor-nm")])
    assert s.value("lut") is None and s.note.startswith("does not fit: needs ") and s.note.endswith(" DSP of 156")
    assert s.latency == 12


def test_designs_that_do_not_apply(made):
    found = race("2^61-1", ["sor-1m-p", "sor-2m"], settings={"n": 20, "sets": 99})
    assert [s.state for s in found] == ["does not apply"] * 2
    assert "sets takes" in found[0].note


def test_failures_stay_with_their_design(made, monkeypatch):
    def verify(core, verilog, report, vectors, **_):
        if core.design.name == "sor-2m":
            report.failures.append("product 1 is wrong")

    def synthesise(verilog, top, target, workdir):
        raise ToolError("yosys: out of patience")

    monkeypatch.setattr(measure, "verify_core", verify)
    found = race("2^61-1", ["sor-1m-p", "sor-2m"], settings=SMALL)
    assert [s.state for s in found] == ["ready", "failed"]
    assert found[1].note == "product 1 is wrong"
    monkeypatch.setattr(race_module.synthesise, "synthesise", synthesise)
    (s,) = race("2^61-3", ["sor-1m-p"], settings=SMALL)
    assert (s.state, s.note) == ("failed", "yosys: out of patience")


def test_dsp_block_follows_the_target(made):
    (s,) = race("2^61-1", ["sor-1m-p"], settings=SMALL, target="xc7z020")
    assert s.settings["dsp"] == "25x18"
    (s,) = race("2^61-1", ["sor-1m-p"], settings=SMALL | {"dsp": "18x18"}, target="xc7z020")
    assert s.settings["dsp"] == "18x18"


def test_interrupted_race_keeps_what_had_finished(made, monkeypatch, tmp_path):
    def interrupted(verilog, top, target, workdir):
        deadline = time.monotonic() + 120
        while not any(r.kind == "check" for r in read(tmp_path / "rows.jsonl")) and time.monotonic() < deadline:
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(race_module.synthesise, "synthesise", interrupted)
    with pytest.raises(KeyboardInterrupt):
        race("2^61-1", ["sor-1m-p"], settings=SMALL)
    assert [r.kind for r in read(tmp_path / "rows.jsonl")] == ["check"]


@pytest.mark.parametrize("how", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_ctrl_c_ends_the_programs_and_says_one_line(tmp_path, how):
    environment = {**os.environ, "MODMILL_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "modmill", "race", "2^61-1", "--design", "sor-1m-p", "--set", "n=24"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not tree(process.pid)[1:] and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(3)
    children = tree(process.pid)[1:]
    process.send_signal(how)
    try:
        out, err = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            kill(process.pid)
    assert process.returncode == 130, err
    assert out == ""
    assert err.strip().splitlines()[-1].startswith("modmill: interrupted; finished rows are kept")
    assert "Traceback" not in err
    assert children
    assert not [child for child in children if alive(child)]


def test_unknown_things_are_refused(made):
    for arguments, words in (
        ({"io": "octal"}, "io must be one of"),
        ({"settings": {"zz": 1}}, "no design that races has a parameter 'zz'"),
        ({"target": "xc7z020", "with_route": True}, "cannot be placed and routed"),
    ):
        with pytest.raises(UnsupportedError, match=words):
            race("2^61-1", **arguments)


def test_report_line_of_an_empty_check():
    assert Report("x").line == "PASS x: 0 products in 0 cycles, 0.0 s"
