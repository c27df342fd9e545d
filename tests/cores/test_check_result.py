# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Engines that check their results: nothing but 0 leaves after a wrong one, in constant time; a missing check is
noticed."""

import re
from dataclasses import replace

import pytest
from test_engine_proof import planted

from modmill.buses.adapters import find_bus
from modmill.buses.files import bus_texts
from modmill.contract import ALARM, UnsupportedError
from modmill.cores.behind_bus import bus_faults
from modmill.cores.ecc.check import check_ecc
from modmill.cores.ecc.engine import interpreted
from modmill.cores.ecc.machine import EccCore, ecc
from modmill.cores.ecc.samples import sample
from modmill.cores.proofs.engine_proof import machine_time
from modmill.cores.proofs.engine_theorem import parts
from modmill.flow.tools import ToolError
from modmill.numbers.curves.affine import Weierstrass
from modmill.proofs.netlist import Netlist
from modmill.studies.attack.campaign import run as campaign
from modmill.studies.attack.operation import read as operation

CURVE = Weierstrass(11, (2, 4), 13, a=1, b=6)
OFF = (5,), {"x": 3, "y": 7, "blind": 1}
"""A run whose point is not on the curve."""


def made(**options):
    given = {"threads": 1, "check_result": True, **options}
    return ecc(CURVE, "montgomery-array", {"loadable": False}, **given)


@pytest.fixture(scope="module")
def engine():
    return made()


def unchecked(engine):
    """The engine without its comparison."""
    text, count = re.subn(r"(\bwrong <= )[^;]*;", r"\g<1>1'h0;", engine.verilog)
    assert count == 1
    return replace(engine, stored=text)


def test_nothing_but_zeros_leaves_after_a_wrong_result(engine):
    pairs = sample(CURVE, "multiply", engine.bits, 7)
    runs, results = [run for run, _ in pairs], [found for _, found in pairs]
    found = engine.simulate("multiply", [*runs, OFF, *runs])
    assert found.results == [*results, *[(0, 0)] * (1 + len(runs))] and any(map(any, results))
    assert set(found.cycles) == {engine.cycles("multiply")}
    assert interpreted(engine, "multiply", [*runs, OFF]) == [*results, (0, 0)]
    removed = unchecked(engine).simulate("multiply", [OFF, *runs]).results
    assert removed[0] != (0, 0) and removed[1:] == results, "a check that is removed is not noticed"


@pytest.mark.long
def test_the_handshake_tells_nothing_of_an_alarm(engine):
    module = Netlist.read(engine.verilog, engine.top).module
    assert machine_time(Netlist(module)).state == "PROVED"
    assert machine_time(planted(module, "message_taken", "alarm")).state == "OPEN"


def test_the_programs_are_proved(engine):
    assert [part.remains for part in parts(engine) if part.remains] == []


def test_the_record_says_what_is_on(engine):
    record = engine.record()
    assert record["options"]["check_result"] is True and ALARM in record["ports"]
    assert EccCore.of_record(record).options == engine.options
    assert "check_result" not in made(check_result=False).options


def test_residues_are_refused():
    with pytest.raises(UnsupportedError, match="compares a number with 1, whose residues are not unique"):
        ecc("P-256", "hbe", threads=1, check_result=True)


@pytest.mark.long
def test_several_machines_and_lockstep(tmp_path):
    two = made(cores=2)
    pairs = sample(CURVE, "multiply", two.bits, 5)
    runs, results = [run for run, _ in pairs], [found for _, found in pairs]
    assert two.simulate("multiply", [OFF, *runs]).results == [
        (0, 0),
        *(x if k % 2 == 0 else (0, 0) for k, x in enumerate(results)),
    ]
    pair = made(lockstep=True)
    assert pair.simulate("multiply", runs[:2]).results == results[:2]
    with pytest.raises(ToolError, match="0 of"):
        pair.simulate("multiply", [OFF])
    assert check_ecc(made(cores=2, lockstep=True).write(tmp_path / "both", "x")).failures == []


def ends_with_an_alarm(engine, bus):
    """The messages of an engine pass behind a bus; if every check is wrong, the first one ends with an error."""
    text = bus_texts(engine.device, find_bus(bus), engine.verilog)["bus.v"]
    exchanges = list(engine.exchanges())
    assert list(bus_faults(text, engine.device, find_bus(bus), exchanges)) == []
    wrong, count = re.subn(r"(\bwrong <= )[^;]*;", r"\g<1>1'h1;", text)
    assert count == 1
    assert "ALARM" in next(iter(bus_faults(wrong, engine.device, find_bus(bus), exchanges)))


@pytest.mark.long
@pytest.mark.parametrize(("bus", "cores", "lockstep"), [("axi4-lite", 2, False), ("axi-stream", 2, True)])
def test_behind_a_bus(bus, cores, lockstep):
    """The check passes, zeroise included. An alarm ends a job with an error."""
    engine = made(cores=cores, bus=bus, lockstep=lockstep)
    ends_with_an_alarm(engine, bus)


@pytest.mark.long
def test_fewer_wrong_results_are_released(tmp_path, engine):
    """Of the same faults in the same netlist, without the comparison and with it."""
    counts = {}
    for which, core in (("on", engine), ("off", unchecked(engine))):
        attacked = operation(engine.write(tmp_path / which, "x"), "multiply")
        report = campaign(replace(attacked, engine=core), 1000, name=which)
        counts[which] = sum(outcome == "released" for _, outcome in report.outcomes)
    assert 0 < 5 * counts["on"] < counts["off"]
