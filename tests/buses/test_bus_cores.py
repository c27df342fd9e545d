# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Cores and engines behind a bus: written, read back, checked with vectors through the bus; planted faults."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import stub_engine as stub
from small_curves import montgomery, weierstrass

from marks import long
from modmill.buses.adapters import BUSES, find_bus
from modmill.buses.files import all_names, bus_texts
from modmill.buses.front import whole
from modmill.buses.registers import register_map
from modmill.buses.simulate import BusDriver, BusFault, BusSimulator, driver_of
from modmill.contract import UnsupportedError
from modmill.cores.behind_bus import Exchange, bus_faults, loading, product, self_tested, zeroised
from modmill.cores.ecc.machine import ecc
from modmill.cores.multiplier.build import build
from modmill.cores.multiplier.check import _check_bus, text_differences
from modmill.cores.multiplier.folder import Folder
from modmill.cores.multiplier.operands import judged, randoms
from modmill.cores.multiplier.verify import Report
from modmill.cores.rsa.circuit import circuit_engine
from modmill.cores.rsa.machine import engine
from modmill.designs import DESIGNS
from modmill.flow.tools import version
from modmill.report.rows import append, read
from modmill.report.seal import seal_differences
from modmill.studies.bus import Subject, clocks_table, measure, rows_table

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    target = tmp_path_factory.mktemp("core") / "made"
    core = build("mcivor", "2^61-1", bus="apb", loadable=True)
    core.write(target, check=False)
    assert core.write(target, check=False) == target  # a former build is replaced
    return target


def faults(folder):
    """What a check says of the front in a folder."""
    read, report = Folder.read(folder), Report("core")
    _check_bus(read.refit(), read, report)
    return [*seal_differences(read.texts, "contract.json"), *text_differences(read.refit(), read), *report.failures]


def test_a_multiplier_is_written_and_checked(folder):
    assert {*all_names("core", find_bus("apb"), with_calls=True)} <= {path.name for path in folder.iterdir()}
    assert Folder.read(folder).record["command"].endswith("--bus apb")
    assert faults(folder) == []


@pytest.mark.parametrize(
    ("name", "right", "wrong", "caught"),
    [
        ("bus.v", r"engine_rst <= rst \? 1'h1 : [^;]*;", "engine_rst <= rst;", "bus.v: "),
        ("registers.rdl", "STATUS @ 0x1c", "STATUS @ 0x5c", "registers.rdl: "),
    ],
)
def test_an_edit_is_caught(name, right, wrong, caught, folder, tmp_path):
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    text = re.sub(right, wrong, (folder / name).read_text())
    assert text != (folder / name).read_text()
    (tmp_path / name).write_text(text)
    found = faults(tmp_path)
    assert sum(line.startswith(caught) for line in found) == len(found) >= 2 + (name == "bus.v")


def test_a_device_that_is_not_in_reset_at_once_is_found():
    """Planted: the front gives its reset to the device a cycle later. With some contents of registers at power-up, the
    device then changes a constant in its block RAM."""
    core, bus = build("kbe", "2^61-1", bus="apb", n=5), find_bus("apb")
    products = judged(core.contract, randoms(core.contract, 300, 1))
    exchanges = [product(core.contract, each.a, each.b, each.value) for each in products]
    text = whole(core.device, bus, core.verilog)
    assert list(bus_faults(text, core.device, bus, exchanges)) == []
    late = text.replace("assign core_rst = engine_rst | rst;", "assign core_rst = engine_rst;")
    assert late != text
    (fault,) = bus_faults(late, core.device, bus, exchanges)
    assert "wrong result after power-up" in fault


@pytest.fixture(scope="module")
def loaded():
    """A small multiplier with its modulus loaded, its exchanges with other numbers for the device that is not fresh."""
    core = build("mcivor", "2^61-1", bus="apb", loadable=True)
    products = judged(core.contract, randoms(core.contract, 2, 5))
    return core, [*loading(core.contract), *(product(core.contract, e.a, e.b, e.value) for e in products)]


def leftover(device, text, exchanges, bus="apb"):
    """What zeroising leaves, in the words of a check; empty if nothing."""
    way = find_bus(bus)
    drivers = [driver_of(device, way, BusSimulator(text, device, way, contents=True)) for _ in range(2)]
    for exchange in exchanges:
        drivers[0].ready()
        assert exchange.right(drivers[0].run(exchange.command, exchange.words, exchange.count))
    try:
        zeroised(*drivers, [e for e in exchanges if not e.count] + [e for e in exchanges if e.count][-1:])
    except BusFault as fault:
        return str(fault)
    return ""


def test_a_memory_that_zeroising_forgets_is_found(loaded):
    """Planted: a new memory in the front, and one in the core. Names come from the Verilog, nobody lists them."""
    core, exchanges = loaded
    text = whole(core.device, find_bus("apb"), core.verilog)
    assert leftover(core.device, text, exchanges) == ""
    taken = "  reg [31:0] forgotten [0:3];\n  always @(posedge clk) if ({}) forgotten[{}[1:0]] <= {};\nendmodule"
    for module, write, address, word in (
        ("core_front_jobs", "write_data_in", "data", "data"), ("core", "i_valid", "i_a", "i_b[31:0]"),
    ):  # fmt: skip
        body = re.search(rf"^module {module}\b.*?^endmodule", text, re.DOTALL | re.MULTILINE)[0]
        text = text.replace(body, body.removesuffix("endmodule") + taken.format(write, address, word))
    found = leftover(core.device, text, exchanges)
    assert "zeroising leaves 2 registers" in found and found.endswith(".forgotten")


@pytest.mark.long
@pytest.mark.parametrize("io", ["native", "plain"])
@pytest.mark.parametrize("loadable", [True, False])
@pytest.mark.parametrize("design", [design.name for design in DESIGNS])
def test_every_multiplier_is_zeroised_and_tests_itself(design, loadable, io):
    try:
        core = build(design, "2^61-1", io=io, bus="apb", **({"loadable": True} if loadable else {}))
    except UnsupportedError as error:
        pytest.skip(str(error))
    products = judged(core.contract, randoms(core.contract, 7, 1))
    exchanges = [*loading(core.contract), *(product(core.contract, e.a, e.b, e.value) for e in products)]
    text = whole(core.device, find_bus("apb"), core.verilog)
    assert leftover(core.device, text, exchanges) == ""
    self_tested(BusDriver(core.device, BusSimulator(text, core.device, find_bus("apb"), contents=True)))


def zeroised_engine(made):
    """Whether nothing is left of the messages of an engine."""
    text = whole(made.device, find_bus(made.bus), made.verilog)
    return leftover(made.device, text, [*made.exchanges()], made.bus) == ""


@pytest.mark.long
@pytest.mark.parametrize("design", [design.name for design in DESIGNS])
@pytest.mark.parametrize("kind", ["powers", "circuit", "ladder", "multiply", "checked"])
def test_every_engine_is_zeroised(kind, design):
    try:
        if kind in ("powers", "circuit"):
            made = (engine if kind == "powers" else circuit_engine)(design, width=64, bits=17, bus="apb")
        else:
            curve = montgomery(251) if kind == "ladder" else weierstrass(251, -3)
            made = ecc(curve, design, threads=2, bus="apb", check_result=kind == "checked")
    except UnsupportedError as error:
        pytest.skip(str(error))
    assert zeroised_engine(made)


@pytest.mark.long
@pytest.mark.parametrize("more", [{}, {"cores": 2}, {"bus_clock": "separate"}], ids=str)
@pytest.mark.parametrize("bus", [bus.name for bus in BUSES])
def test_an_engine_behind_every_bus_is_zeroised(bus, more):
    assert zeroised_engine(engine("mcivor", width=64, bits=17, threads=1, bus=bus, **more))


def test_an_engine_whose_jobs_have_few_products_is_zeroised():
    """Results wait in more places than a job has products. Planted: one job, as for engines with more threads."""
    made = engine("montgomery-array", width=53, bits=75, method="ladder", io="montgomery", threads=1, bus="apb")
    assert zeroised_engine(made)
    *first, last = made.device.zeroise
    assert first[-1] == last
    device = replace(made.device, zeroise=tuple(dict.fromkeys(made.device.zeroise)))
    text = whole(device, find_bus("apb"), made.verilog)
    assert "zeroising leaves" in leftover(device, text, [*made.exchanges()])


def test_a_message_that_zeroising_leaves_out_is_found(loaded):
    core, exchanges = loaded
    device = replace(core.device, zeroise=core.device.zeroise[:1])
    assert "zeroising leaves" in leftover(device, whole(device, find_bus("apb"), core.verilog), exchanges)


def test_a_fault_in_a_core_fails_its_self_test(loaded):
    core, _ = loaded
    device, bus = core.device, find_bus("apb")
    text = whole(device, bus, core.verilog)
    edited = re.sub(r"(\bA <= [^;]*);", r"\1 ^ 4;", text, count=1)
    assert edited != text
    self_tested(BusDriver(device, BusSimulator(text, device, bus, contents=True)))
    with pytest.raises(BusFault, match="self-test fails"):
        self_tested(BusDriver(device, BusSimulator(edited, device, bus)))


def test_a_self_test_compares_the_answers_of_all_programs():
    made, bus = circuit_engine("radix64k-mul", width=64, bits=80, bus="apb"), find_bus("apb")
    *first, last = made.device.selftest
    assert [message.command for message in first] == [0, 1] and last.command == 2
    device = replace(made.device, selftest=(*first, replace(last, answer=(last.answer[0] ^ 1, *last.answer[1:]))))
    simulator = BusSimulator(whole(device, bus, made.verilog), device, bus)
    with pytest.raises(BusFault, match="self-test fails"):
        self_tested(driver_of(device, bus, simulator))


@pytest.mark.parametrize("kind", [engine, circuit_engine])
def test_an_engine_behind_a_bus(kind):
    made = kind("mcivor" if kind is engine else "radix64k-mul", width=64, bits=80, bus="axi4-lite")
    device, bus = made.device, find_bus("axi4-lite")
    exchanges = list(made.exchanges())
    assert {exchange.command for exchange in exchanges} == {0, 1, 2}
    for message in made.messages_for_bus():
        command = device.commands[message.words[0]]
        count = command.counted.words(message.words[1]) if command.counted else command.words
        assert count == len(message.words) - 1 <= command.words
    text = bus_texts(device, bus, made.verilog)["bus.v"]
    assert list(bus_faults(text, device, bus, exchanges)) == []


def test_a_front_is_measured(folder, tmp_path):
    found = measure(Subject.read(folder), "ecp5-85k", synthesis=False)
    ((name, cycles),) = ((name, n) for name, n in found.commands.items() if n["bare"])
    assert name == "a product" and 3 * cycles["bare"] > cycles["cycles"] > cycles["bare"]
    assert any("per second at 100 MHz" in line for line in found.lines(100)) and found.row().about["bus"] == "apb"
    with pytest.raises(ValueError, match="build it with --bus"):
        Subject.read(build("mcivor", "2^61-1").write(tmp_path / "bare", check=False))


def test_the_data_sheet_has_the_measured_front(folder, tmp_path, monkeypatch):
    assert "This front was not measured; `modmill bus .` does so." in (folder / "README.md").read_text()
    row = measure(Subject.read(folder), "ecp5-85k", synthesis=False).row()
    front = {"lut": 1234, "ff": 56, "bram": 2, "dsp": 0}
    append(tmp_path / "rows" / "x.jsonl", replace(row, values={**row.values, "front": front}))
    monkeypatch.setattr("modmill.report.rows.shipped_folder", lambda: tmp_path / "rows")
    again = build("mcivor", "2^61-1", bus="apb", loadable=True).write(tmp_path / "again", check=False)
    n = row.values["commands"]["a product"]
    said = " ".join((again / "README.md").read_text().split())
    assert "the front has 1,234 LUTs, 56 flip-flops and 2 block RAMs." in said
    assert f"of a product it takes {n['cycles']:,} cycles, {n['bare']:,} of them without the bus." in said
    assert faults(again) == []


def test_clocks_of_bare_core_and_whole_are_kept(folder, tmp_path, monkeypatch):
    """A run that was stopped goes on; a route of another text, as if the whole were measured twice, would show."""
    routes, subject = [], Subject.read(folder)

    def route(text, top, target, folder, *, seed, hierarchy):
        assert f"module {top}" in text and hierarchy
        folder.mkdir(parents=True, exist_ok=True)
        routes.append((top, seed))
        return SimpleNamespace(mhz=100 + 10 * seed + top.endswith("_bus"))

    monkeypatch.setattr("modmill.studies.bus.route", route)
    monkeypatch.setattr("modmill.studies.bus.tools", SimpleNamespace(cache_dir=lambda: tmp_path, version=version))
    measure(subject, "ecp5-85k", whole=1, synthesis=False)
    found = measure(subject, "ecp5-85k", whole=3, synthesis=False)
    assert sorted(routes) == [(top, seed) for top in ("core", "core_bus") for seed in (1, 2, 3)]
    assert found.clocks == {"bare": [110, 120, 130], "bus": [111, 121, 131]}
    assert clocks_table([found.row()])[-1].endswith(
        "| apb | 110.0, 120.0, 130.0 | 120.0 | 111.0, 121.0, 131.0 | 121.0 |"
    )
    with pytest.raises(ValueError, match="--whole takes a device with the clock of its bus"):
        measure(replace(subject, device=replace(subject.device, separate=True)), "ecp5-85k", whole=1)


@pytest.mark.parametrize(
    "more", [{"target": "nope"}, {"target": "xc7z020", "whole": 1}, {"target": "xcku", "seeds": 1}]
)
def test_a_wrong_target_is_refused_before_the_simulation(more, folder):
    steps = []
    with pytest.raises(ValueError, match=r"target must be one of|cannot be routed here"):
        measure(Subject.read(folder), **more, progress=steps.append)
    assert steps == []


def test_a_wrong_answer_is_not_measured(folder):
    subject = Subject.read(folder)
    wrong = [replace(exchange, right=lambda _: False) if exchange.count else exchange for exchange in subject.exchanges]
    with pytest.raises(BusFault, match="wrong result"):
        measure(replace(subject, exchanges=wrong), "ecp5-85k", synthesis=False)


def test_the_page_has_the_rows():
    rows = list(read(ROOT / "results" / "buses.jsonl"))
    page = (ROOT / "docs" / "buses.md").read_text()
    assert rows and all("\n".join(table(rows)) in page for table in (rows_table, clocks_table))


def test_fronts_for_axi4_lite_are_small():
    rows = read(ROOT / "results" / "buses.jsonl")
    fronts = [row for row in rows if row.about["bus"] == "axi4-lite" and "key_slots" not in row.about]
    more = [row.about for row in fronts if row.values["front"]["lut"] > 600]
    assert fronts and more == []


@pytest.mark.parametrize(
    ("given", "why"), [({"bus": "pci"}, "bus must be one of"), ({"bus": "apb", "word": 16}, "words of 32 bits")]
)
def test_refusals(given, why):
    with pytest.raises(UnsupportedError, match=why):
        engine("mcivor", width=64, bits=80, **given)
    with pytest.raises(UnsupportedError, match="bus must be one of"):
        build("mcivor", "2^61-1", bus="pci")


def test_more_runs_than_are_counted_are_refused():
    with pytest.raises(UnsupportedError, match="at most 255 runs, not 256: 64 machines with 4 runs each"):
        replace(stub.DEVICE, machines=64, threads=256)


@pytest.fixture(scope="module")
def pair():
    """Two machines behind a bus: device, Verilog, exchanges."""
    made = engine("mcivor", width=64, bits=17, threads=1, bus="apb", cores=2)
    return made.device, bus_texts(made.device, find_bus("apb"), made.verilog)["bus.v"], [*made.exchanges()]


def test_several_machines_behind_a_bus(pair):
    device, text, exchanges = pair
    assert (device.machines, device.threads) == (2, 2) and {exchange.command for exchange in exchanges} == {0, 1, 2}
    kind = register_map(device)["KIND"]
    assert {f.name: f.reset for f in kind.fields}["others"] == 1
    assert list(bus_faults(text, device, find_bus("apb"), exchanges)) == []


@pytest.mark.parametrize(
    ("right", "wrong", "caught"),
    [
        (r"taken & i_closes & i_every_is_0\)", "0)", "no end|never|stays|wrong"),
        pytest.param(r"of_choice = last \?", "of_choice = 0 ?", "words of an answer|never", marks=pytest.mark.long),
        pytest.param(r"of\[0\] \? core0_o_data : 0", "core0_o_data", "wrong", marks=pytest.mark.long),
        pytest.param(r"(core1_inside \(.*?)\(core_rst\)", r"\1(rst)", "", marks=pytest.mark.long),
        pytest.param(r"\? core1_o_data :", "? core1_o_data ^ 1 :", "wrong", marks=pytest.mark.long),
    ],
)
def test_a_planted_fault_of_one_machine_is_caught(right, wrong, caught, pair):
    device, text, exchanges = pair
    edited, count = re.subn(right, wrong, text, count=1, flags=re.DOTALL if "inside" in right else 0)
    assert count
    (fault,) = bus_faults(edited, device, find_bus("apb"), exchanges)
    assert re.search(caught, fault), fault


def test_parities_of_numbers_are_nothing_that_is_left():
    """A core that counts its numbers in a bit that no reset sets, after messages that were aborted."""
    core = build("karatsuba", "2^102-71", "plain", bus="axi4-lite")
    exchanges = [product(core.contract, e.a, e.b, e.value) for e in judged(core.contract, randoms(core.contract, 5, 1))]
    text = whole(core.device, find_bus("axi4-lite"), core.verilog)
    assert [*bus_faults(text, core.device, find_bus("axi4-lite"), exchanges)] == []


COUNTING = """
  reg [3:0] turn;      // no reset sets it, and it counts while the engine is idle, too
  reg [7:0] phase;
  reg [31:0] kept;
  always @(posedge clk) begin
    phase <= rst | phase == 100 ? 0 : phase + 1;
    if (phase == 100) turn <= turn + 1;
    if (take & KEEP) kept <= i_data;
  end
endmodule
"""


@pytest.mark.parametrize(("keep", "left"), [("1", ""), long("i_data > 20", "zeroising leaves 1 registers")])
def test_numbers_that_run_on_in_an_idle_engine_are_nothing_that_is_left(keep, left):
    """They depend on when the engine was reset. A planted register that keeps a word is found."""
    bus, words = find_bus("apb"), [*range(1, 25)]
    text = stub.VERILOG.rstrip().removesuffix("endmodule") + COUNTING.replace("KEEP", keep)
    right = stub.answer(6, stub.ECHO, words).__eq__
    exchanges = [Exchange(stub.KEY, [1, 2, 3]), Exchange(stub.ECHO, words, 24, right)]
    found = [*bus_faults(whole(stub.DEVICE, bus, text), stub.DEVICE, bus, exchanges)]
    assert len(found) == bool(left) and left in "".join(found)
