# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Engines for curves that blind scalars inside: bare, in lockstep, behind a bus; with good and bad random words."""

import json
import random
from dataclasses import replace

import pytest
from small_curves import edwards, weierstrass

from marks import long
from modmill.buses.adapters import find_bus
from modmill.buses.simulate import BusDriver, BusFault, BusSimulator, driver_of
from modmill.contract import UnsupportedError
from modmill.cores.driven import DrivenPointEngine
from modmill.cores.ecc.check import check_ecc
from modmill.cores.ecc.engine import ExactPointEngine, RtlPointEngine
from modmill.cores.ecc.machine import EccCore, ecc
from modmill.cores.ecc.samples import sample
from modmill.engines.ecc.blinding import Ecc, on_twist, scalar_bits
from modmill.engines.ecc.point_engine import Shape
from modmill.engines.machine.random_port import KEPT
from modmill.flow.emit import without_initial_values
from modmill.numbers.curves.affine import Montgomery
from modmill.report.sheet import split
from modmill.soc.bitstream import BoardDesign
from modmill.soc.boards import BOARDS
from modmill.soc.system import Part
from modmill.studies.attack.campaign import run as campaign
from modmill.studies.attack.operation import read
from modmill.studies.explore_engines import random_curve

CURVE = weierstrass(251, -3)
LADDER = random_curve(random.Random(2), Montgomery, None, 10)  # with counted points
ALL = ("multiply", "multiply-base", "multiply-two")


def made(curve=CURVE, **options):
    given = {
        "operations": () if isinstance(curve, Montgomery) else ("multiply-base",),
        "threads": 1,
        "random_blind": 16,
    }
    return ecc(curve, "montgomery-array", {"loadable": False}, **(given | options))


@pytest.fixture(scope="module")
def bare():
    """An engine with two streams."""
    return made()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An engine behind a bus, with key slots."""
    core = made(bus="wishbone", key_slots=2)
    return core.write(tmp_path_factory.mktemp("random") / "engine", "made for a test")


CHECKED = [
    long(CURVE, {"operations": ALL, "lockstep": True, "cores": 2, "bus": "axi-stream"}),
    long(CURVE, {"operations": ("multiply",), "random_blind": 1, "threads": 3, "check_result": True}),
    long(CURVE, {"bus": "apb", "bus_clock": "separate", "key_slots": 2, "cores": 2, "random_entropy": 20}),
    long(LADDER, {"bus": "axi4-lite", "key_slots": 1, "random_blind": 33, "lockstep": True}),
    long(edwards(1009, -1), {"operations": ALL, "random_blind": 128, "word": 17, "shape": Shape(window=3, teeth=2)}),
]  # fmt: skip


@pytest.mark.parametrize(("curve", "options"), CHECKED)
def test_engines_pass_their_check(curve, options, tmp_path):
    report = check_ecc(made(curve, **options).write(tmp_path / "engine", "made for a test"))
    assert not report.failures


@pytest.mark.long
def test_a_wrong_order_is_found_by_the_check(tmp_path):
    """Results are then those of other multiples."""
    wrong = made(replace(LADDER, n=LADDER.n - 2), random_blind=8)
    report = check_ecc(wrong.write(tmp_path / "engine", "made for a test"))
    assert len(report.failures) == 1 and "is wrong" in report.failures[0]


def test_an_engine_behind_a_bus_passes_its_check(folder):
    """Through the bus too: answers, key slots, aborts, zeroise, the self-test, power-ups."""
    report = check_ecc(folder)
    assert not report.failures
    assert report.judged > 40


def test_its_files_say_what_it_does(folder):
    record = json.loads((folder / "ecc.json").read_text())
    assert {"random_blind": 16, "random_entropy": 32}.items() <= record["options"].items()
    assert record["options"]["bits"] == scalar_bits(CURVE, 16) and record["programs"][0]["scalar_words"] == 1
    assert record["ports"]["random_data"] == {"direction": "in", "width": 32}
    assert record["ports"]["o_alarm"] == {"direction": "out", "width": 1}
    sheet = (folder / "README.md").read_text()
    assert "`multiply-base`: in place of digits the scalar itself, in 1 words" in sheet
    assert "`multiply-base`: then a word of any value. The engine adds" in sheet
    assert "by an odd random number of 7 bits, from 1 words of the port." in sheet
    assert record["programs"][0]["inputs"] == [] and record["programs"][0]["drawn"] == ["blind"]
    assert "3 of these words in a row are equal, if 3 of\n  512" in sheet and "for 65,536 cycles" in sheet
    assert "the front\npasses them on" in sheet
    (job,) = (m for m in json.loads((folder / "vectors.json").read_text())["messages"][1:2])
    assert job["in"][1] == job["runs"][0]["scalars"][0]
    assert EccCore.read(folder).digest == record["netlist"]


@pytest.fixture(scope="module")
def device(folder):
    """The device of the folder, compiled: a function that returns a driver of a fresh one."""
    core = EccCore.read(folder)
    text = without_initial_values(split((folder / "bus.v").read_text())[1])

    def fresh():
        bus = find_bus("wishbone")  # with the library that the check has compiled
        return core, driver_of(core.device, bus, BusSimulator(text, core.device, bus, contents=True))

    return fresh


def results(core, driver, runs):
    return DrivenPointEngine(core, driver=driver).run("multiply-base", runs)


def runs_of(core, count):
    pairs = sample(core.curve, "multiply-base", core.scalar_bits, count)
    return [run for run, _ in pairs], [result for _, result in pairs]


def test_random_words_do_not_change_results(device):
    """They change what happens: two devices that differ in random words only hold other digits, and nothing else."""
    held = []
    for seed in (0, 1, 0):
        core, driver = device()
        runs, right = runs_of(core, 3)
        driver.bus.random(seed)
        assert results(core, driver, runs) == right
        held.append(driver.bus.contents())
    assert held[0] == held[2] and driver.bus.cycles
    differing = {name.split(".")[-1] for name, data in held[0].items() if held[1][name] != data}
    assert any("ram" in name or "mem" in name for name in differing), differing


@pytest.mark.parametrize(("source", "jobs"), [("missing", 1), ("stuck", 3)])
def test_a_bad_source_is_an_alarm_until_the_reset(device, source, jobs):
    """Without random words the alarm comes after the stated cycles; with words that are stuck in the third job: each
    takes one, and the aborts between them do not hide it."""
    core, driver = device()
    assert isinstance(driver, BusDriver)
    runs, right = runs_of(core, 2)
    assert results(core, driver, runs) == right
    driver.bus.random(3, source)
    with pytest.raises(BusFault, match=r"ALARM|alarm"):
        for _ in range(jobs):
            results(core, driver, runs)
    assert driver.read("STATUS", "alarm") == 1
    driver.bus.random(3)
    with pytest.raises(BusFault, match="not ready"):
        results(core, driver, runs)
    driver.bus.reset(core.power_up)
    driver.ready()
    assert results(core, driver, runs) == right


@pytest.mark.parametrize("source", ["missing", "stuck", "biased"])
def test_a_bare_engine_sends_nothing_after_an_alarm(bare, source):
    """And ends: it does not wait for ever. The jobs before the alarm have their answers."""
    core = bare
    runs, right = runs_of(core, 9)
    words = core.setup()
    for run in runs:
        words += core.job("multiply-base", [run])
    run = core._simulator.run(words, 9 * core.layout.answer_words(0), source=source, timeout=80_000)
    assert run.violations and "timeout" in run.violations[-1] and len(run.violations) == 1
    found = core.layout.results(0, run.words, CURVE.p)
    assert found == right[: len(found)] and len(found) <= {"missing": 0, "stuck": 2, "biased": 5}[source]


def test_host_and_exact_engines():
    """The host sends plain scalars; its own blinding is refused, because the scalars would be too long."""
    core = made(operations=("multiply", "multiply-base"))
    exact = Ecc(ExactPointEngine(core))
    P = CURVE.base
    assert exact.multiply([5], [P]) == [CURVE.multiply(5, P)]
    with pytest.raises(UnsupportedError, match=f"at most {CURVE.n.bit_length()} bits"):
        Ecc(RtlPointEngine(core), blind_scalar=8).multiply_base([3])
    with pytest.raises(UnsupportedError, match="draws the random factor of coordinates itself"):
        Ecc(RtlPointEngine(core), blind_coordinates=True, below=lambda n: n - 1).multiply_base([3])
    with pytest.raises(UnsupportedError, match=r"must be in \[0, 2\^"):
        core.job("multiply-base", [((1 << core.scalar_bits,), {})])


@pytest.mark.parametrize("blind", [1, 31, 64])
def test_a_ladder_knows_the_order_of_each_point(blind):
    """Points of the curve and of its twist, by the flag behind the scalar."""
    curve = LADDER
    core = made(curve, random_blind=blind)
    for u in range(0, curve.p, curve.p // 5):
        job = core.job("ladder", [((77,), {"u": u})])
        assert job[1:3] == [77, int(on_twist(curve, u))]


REFUSED = [
    ({"random_blind": 129}, "0 to 128 bits, not 129"),
    ({"operations": ("multiply-two",)}, "no operation has a secret scalar to blind"),
    ({"bits": 9}, "scalars of 9 bits have no room for 16 bits of blinding: 24 are needed"),
    ({"random_entropy": 0}, "1 to 32 bits of entropy, not 0"),
    ({"operations": ("multiply",), "shape": Shape(endomorphism=True)}, "build without --endomorphism"),
]


@pytest.mark.parametrize(("options", "why"), REFUSED)
def test_refusals(options, why):
    with pytest.raises(UnsupportedError, match=why):
        made(**options)


def test_systems_and_boards_without_a_source_refuse_it():
    core = made(bus="wishbone", word=32)
    with pytest.raises(ValueError, match="have no random words; build ecc without --random port"):
        Part(core.device, find_bus("wishbone"), "", 0)
    with pytest.raises(UnsupportedError, match="a board has no random words"):
        BoardDesign(core, BOARDS[0])


@pytest.mark.long
@pytest.mark.parametrize("lockstep", [False, True])
def test_faults_and_traces_have_random_words(lockstep, tmp_path):
    """In lockstep no fault releases a wrong result, those of the block for blinding included."""
    core = made(lockstep=lockstep)
    core.write(tmp_path / "engine", "made for a test")
    found = campaign(read(tmp_path / "engine"), 400)
    names = [place.name for place in found.places]
    assert any("factor" in name for name in names) and any(KEPT in name for name in names)
    assert lockstep is not bool(found.released)
