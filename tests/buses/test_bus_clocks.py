# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A device with a clock of its own behind a bus: in simulation with several ratios, in its netlist, in its files."""

import random
import re
import shutil
from dataclasses import replace

import pytest
import stub_engine as stub
from test_bus_cores import faults
from test_bus_tools import bench

from marks import long
from modmill.buses.adapters import find_bus
from modmill.buses.clocks import clock_faults
from modmill.buses.crossing import ASYNCHRONOUS, CHAINS, CLOCK
from modmill.buses.files import bus_texts
from modmill.buses.registers import ABORT, SELFTEST, ZEROISE
from modmill.buses.simulate import PERIODS, BusDriver, BusFault, BusSimulator
from modmill.contract import UnsupportedError
from modmill.cores.behind_bus import bus_faults, loading, product
from modmill.cores.multiplier.build import build
from modmill.cores.multiplier.folder import Folder
from modmill.cores.multiplier.operands import judged, randoms
from modmill.cores.rsa.machine import engine
from modmill.flow.emit import without_initial_values

DEVICE, BUS = replace(stub.several(2), separate=True, patience=2000), find_bus("apb")


@pytest.fixture(scope="module")
def texts():
    """The files of two stubs behind APB, with a clock of their own."""
    return bus_texts(DEVICE, BUS, stub.several_verilog(2))


def simulated(text):
    """The text without what belongs to the bench of cocotb: the stubs always take words."""
    return without_initial_values(text).replace("initial hold = 0;", "").replace("& ~hold", "")


def drawn(rnd, command):
    """Words of a message."""
    if command == stub.SUM:
        count = rnd.randrange(1, stub.COUNTED.most + 1)
        left = DEVICE.counted.words(count) - 2
        return [count, stub.COUNTED.varying(count), *(rnd.getrandbits(32) for _ in range(left))]
    return [rnd.getrandbits(32) for _ in range(DEVICE.commands[command].words)]


def driven(text, period, rounds=6):
    """Jobs of all kinds, ended by aborts and resets, then zeroising and the self-test. Raises BusFault."""
    simulator, rnd = BusSimulator(text, DEVICE, BUS, period=period), random.Random(period)
    driver = BusDriver(DEVICE, simulator)
    for k in range(rounds):
        driver.ready()
        driver.run(stub.KEY, key := drawn(rnd, stub.KEY), 0)
        for command in (stub.ECHO, stub.ONE, stub.SUM):
            words = drawn(rnd, command)
            wanted = stub.answer(sum(key) % 2**32, command, words, DEVICE.machines)
            driver.ready()
            if driver.run(command, words, len(wanted)) != wanted:
                raise BusFault(f"a wrong answer to command {command}")
        driver.send(stub.ECHO, drawn(rnd, stub.ECHO))
        simulator.wait(rnd.randrange(600))
        if k % 2:
            simulator.reset(1)
        else:
            driver.write("CONTROL", ABORT)
    for bit, field in ((ZEROISE, "zeroised"), (SELFTEST, "passed")):
        driver.ready()
        for register, word in (("IRQ_STATUS", 3), ("IRQ_ENABLE", 1), ("CONTROL", bit)):
            driver.write(register, word)
        simulator.wait(simulator.slower(DEVICE.zeroise_cycles), interrupt=True)
        if not driver.read("STATUS", field):
            raise BusFault(f"never {field}")


@pytest.mark.parametrize("period", PERIODS)
def test_jobs_aborts_and_resets_with_any_ratio_of_the_clocks(period, texts):
    driven(simulated(texts["bus.v"]), period)


@pytest.mark.parametrize(
    ("right", "wrong", "period"),
    [
        (r"= released & ~rest;", "= 1'h1;", PERIODS[2]),
        long(r"else stage0 <= reset;", "else stage0 <= 1'h0;", PERIODS[1]),
        long(r"produce_w_bin <= giving_rst \? 3'h0 : ", "produce_w_bin <= ", PERIODS[0]),
    ],
)
def test_a_planted_fault_of_an_abort_is_caught(right, wrong, period, texts):
    """The front goes on at once; the reset does not reach the device; a queue keeps words of an old job."""
    text, count = re.subn(right, wrong, simulated(texts["bus.v"]))
    assert count
    with pytest.raises(BusFault):
        driven(text, period)


def netlist_faults(text):
    """What the check of the netlist finds."""
    return [*clock_faults(text, "stub_bus", "stub_front", "clk", {"stub_core": "clk"})]


def test_every_path_between_the_clocks_has_its_synchroniser(texts):
    assert netlist_faults(texts["bus.v"]) == []


@pytest.mark.parametrize(
    ("right", "wrong", "why"),
    [
        (
            r"stage1 <= rst \? 1'h0 : stage0",
            "stage1 <= rst ? 1'h0 : rests",
            "rest_back.stage1, ends in no synchroniser",
        ),
        (r"(produce_w_gry <= \w+ \? 3'h0 : produce_w_nxt) \^ .*;", r"\1;", "produce_cdc.stage0, has several bits"),
        long(r"\.consume_r_gry\(consume_r_gry\)", ".consume_r_gry(consume_r_bin)", "no counter in Gray code"),
        long(r"produce_w_bin \+ \(", "produce_w_bin + 2 * (", "no counter in Gray code"),
        long(r"\.rests\(rests\)", ".rests(rests & held)", "rest_back.stage0, reaches its synchroniser behind logic"),
        long(rf"\.clk\({CLOCK}\)", ".clk(clk)", "stub_core to front_inside"),
        long(r"assign drained = !w_level", "assign drained = !w_level & held", "jobs.fed_"),
        long(r"\.async_ff_rst\(rst\)", ".async_ff_rst(rst | held)", "sets it asynchronously behind logic"),
    ],
)
def test_a_planted_path_without_a_synchroniser_is_found(right, wrong, why, texts):
    edited, count = re.subn(right, wrong, texts["bus.v"], count=1)
    assert count
    assert any(why in fault for fault in netlist_faults(edited)), netlist_faults(edited)


def test_constraints_name_what_is_in_the_verilog(texts):
    for chain in (*CHAINS, *ASYNCHRONOUS):
        assert re.search(rf"^  stub_front_\w+ {chain} \(", texts["bus.v"], re.MULTILINE), chain
        assert f"{chain}/stage" in texts["crossing.xdc"]
    assert all(f"{chain}|stage" in texts["crossing.sdc"] for chain in ASYNCHRONOUS)
    assert all(f'"{CLOCK}"' in line for line in texts["crossing.lpf"].splitlines() if line.startswith("FREQUENCY"))
    assert "crossing.xdc" in texts["vivado.tcl"] and "crossing.sdc" in texts["quartus.tcl"]


@pytest.mark.skipif(not shutil.which("iverilog"), reason="needs iverilog")
def test_the_bench_passes(texts, tmp_path):
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    assert bench(tmp_path) == (0, "PASS: stub_bus\n")


@pytest.mark.parametrize("kind", ["engine", long("multiplier")])
def test_a_core_with_a_clock_of_its_own_is_checked(kind):
    """Vectors, errors, aborts, zeroising compared with a new device, the self-test; power-ups with other clocks."""
    if kind == "engine":
        core = engine("mcivor", width=64, bits=17, threads=1, cores=2, bus="apb", bus_clock="separate")
        exchanges = [*core.exchanges()]
    else:
        core = build("kbe", "2^61-1", bus="apb", n=5, bus_clock="separate")
        products = judged(core.contract, randoms(core.contract, 60, 1))
        exchanges = [*loading(core.contract), *(product(core.contract, e.a, e.b, e.value) for e in products)]
    text = bus_texts(core.device, BUS, core.verilog)["bus.v"]
    assert list(bus_faults(text, core.device, BUS, exchanges)) == []
    assert core.device.separate


@pytest.mark.long
def test_a_folder_with_a_separate_clock(tmp_path):
    core = build("mcivor", "2^61-1", bus="apb", bus_clock="separate", loadable=True)
    folder = core.write(tmp_path / "made", check=False)
    record = Folder.read(folder).record
    assert record["command"].endswith("--bus apb --bus-clock separate") and record["bus"]["clock_port"] == CLOCK
    assert record["bus"]["crossing_cycles"]["to_engine"] == {"clk": 1, CLOCK: 3}
    assert faults(folder) == []


def test_refusals():
    with pytest.raises(UnsupportedError, match="give --bus too"):
        engine("mcivor", width=64, bits=17, bus_clock="separate")
    with pytest.raises(UnsupportedError, match="must be one of same, separate, not own"):
        build("mcivor", "2^61-1", bus="apb", bus_clock="own")
