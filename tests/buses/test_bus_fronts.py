# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Bus fronts against independent masters, and planted faults that the same benches must catch."""

import os
import re
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import stub_engine as stub
from cocotb_tools.runner import get_results, get_runner

from modmill.buses.adapters import BUSES, find_bus
from modmill.buses.front import whole

HERE = Path(__file__).parent
REGISTERS = [bus for bus in BUSES if not bus.packets]


@pytest.fixture(scope="module")
def verilog():
    """Verilog of the stub behind each bus."""
    return {bus.name: whole(stub.DEVICE, bus, stub.VERILOG) for bus in REGISTERS}


@pytest.fixture(scope="module")
def three():
    """Verilog of three stubs behind APB."""
    return whole(stub.several(3), find_bus("apb"), stub.several_verilog(3))


def failures(bus, text, folder, only="", machines=1, module="bus_bench", **more):
    """Number of the cocotb tests of a ``module`` that fail; ``only``: one of them. ``more``: for its environment."""
    (folder / "bus.v").write_text(text)
    runner = get_runner("icarus")
    with pytest.MonkeyPatch.context() as patch:
        paths = [str(HERE), str(HERE.parents[1] / "src"), *sys.path]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        runner.build(
            sources=[folder / "bus.v"], hdl_toplevel="stub_bus", build_dir=folder, always=True,
            timescale=("1ns", "1ps"), log_file=folder / "build.log",
        )  # fmt: skip
        environment = {
            "BUS": bus,
            "MACHINES": str(machines),
            **({"LONG": "1"} if only == "in_a_row" else {}),
            "COCOTB_LOG_LEVEL": "WARNING",
            "PYTHONWARNINGS": "ignore",
            **more,
        }
        with suppress(SystemExit):  # the runner's way to say that a test failed
            runner.test(
                hdl_toplevel="stub_bus", test_module=module, build_dir=folder, test_dir=folder,
                results_xml=str(folder / "results.xml"), extra_env=environment, log_file=folder / "run.log",
                **({"test_filter": rf"{only}$"} if only else {}),
            )  # fmt: skip
    ran, failed = get_results(folder / "results.xml")
    assert ran, (folder / "run.log").read_text()[-3000:]
    return failed


@pytest.mark.parametrize("bus", [bus.name for bus in REGISTERS])
def test_a_master_of_another_house(bus, verilog, tmp_path):
    assert failures(bus, verilog[bus], tmp_path) == 0, (tmp_path / "run.log").read_text()[-6000:]


@pytest.mark.long
def test_several_machines(three, tmp_path):
    assert failures("apb", three, tmp_path, machines=3) == 0, (tmp_path / "run.log").read_text()[-6000:]


@pytest.mark.long
@pytest.mark.parametrize(
    ("bus", "period"), [("axi4-lite", 16180), ("wishbone", 6180), ("apb", 73010), ("ahb-lite", 1310)]
)
def test_a_clock_of_its_own(bus, period, tmp_path):
    """Slower and faster than that of the bus, which has 10,000 ps."""
    text = whole(replace(stub.DEVICE, separate=True), find_bus(bus), stub.VERILOG)
    assert failures(bus, text, tmp_path, SEPARATE=str(period)) == 0, (tmp_path / "run.log").read_text()[-6000:]


@pytest.mark.long
@pytest.mark.parametrize("bus", [bus.name for bus in REGISTERS])
def test_1000_jobs_in_a_row(bus, verilog, tmp_path):
    assert failures(bus, verilog[bus], tmp_path, "in_a_row") == 0, (tmp_path / "run.log").read_text()[-6000:]


FAULTS = [
    ("apb", r"refused <= ~\(", "refused <= 0 & ~(", "registers"),
    ("apb", r"differs <= data\w*\[(\d+):0\] != varying", "differs <= 0", "refused"),
    ("apb", r"(out_level <= rst \? 5'h00 : )state_reset \? 5'h00 : ", r"\1", "aborts"),
    ("wishbone", r"wb_cyc_i & wb_stb_i & ~wb_stall_o", "wb_stb_i & ~wb_stall_o", "no_cycle"),
    ("apb", r"key <= sum \+ i_data", "if (sum) key <= sum + i_data", "zeroises"),
    ("apb", r"words\[at\] \+ key", "words[at] + key + (key == 6)", "tests_itself"),
]
MORE = [
    ("wishbone", r"wb_stall_o <= rst \? 1'h0 :", "wb_stall_o <= 1 ? 1'h0 :", "jobs"),
    ("axi4-lite", r"s_axi_rvalid & s_axi_rready", "s_axi_rvalid", "jobs"),
    ("ahb-lite", r"jobs_count \? jobs_coming", "jobs_count ? jobs_coming[8:0]", "in_a_row"),
    ("apb", r"stop & ~zeroising", "stop", "zeroises"),
    ("ahb-lite", r"hsize == 2'h2", "1'h1", "registers"),
    ("axi4-lite", r"&s_axi_wstrb", "1'h1", "registers"),
    ("apb", r"psel & ~penable", "psel", "jobs"),
    ("apb", r"\(out_settled\[2\] & ~playing\) \? a_q_(\d+) : 0", r"a_q_\1", "refused"),
    ("apb", r"<= known & \(setup \| loaded\)", "<= known", "refused"),
    ("apb", r"\| word_(\d+)\) & state_open & ~full", r"| word_\1) & state_open", "full"),
    ("apb", r"engine_rst <= rst \? 1'h1 : [^;]*;", "engine_rst <= rst;", "aborts"),
    ("axi4-lite", r"asked <= rst \? 1'h0 : request", "asked <= request", "resets"),
    ("wishbone", r"done & alive & wb_cyc_i & ~error", "done & wb_cyc_i & ~error", "no_cycle"),
    ("wishbone", r"\(wb_ack_o \| wb_err_o \|", "(done |", "back_to_back"),
]


@pytest.mark.parametrize(
    ("bus", "right", "wrong", "bench"), [*FAULTS, *(pytest.param(*fault, marks=pytest.mark.long) for fault in MORE)]
)
def test_a_planted_fault_is_caught(bus, right, wrong, bench, verilog, tmp_path):
    text, count = re.subn(right, wrong, verilog[bus])
    assert count, f"nothing to change: {right}"
    assert failures(bus, text, tmp_path, bench) == 1
