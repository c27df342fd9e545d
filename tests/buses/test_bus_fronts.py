# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Bus fronts against independent masters, and planted faults that the same benches must catch."""

import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import stub_engine as stub
from cocotb_tools.runner import get_results, get_runner

from modmill.buses.adapters import BUSES
from modmill.buses.front import whole

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def verilog():
    """Verilog of the stub behind each bus."""
    return {bus.name: whole(stub.DEVICE, bus, stub.VERILOG) for bus in BUSES}


def failures(bus, text, folder, only=""):
    """Names of the cocotb tests that fail; ``only``: one of them."""
    (folder / "bus.v").write_text(text)
    runner = get_runner("icarus")
    with pytest.MonkeyPatch.context() as patch:
        paths = [str(HERE), str(HERE.parents[1] / "src"), *sys.path]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        runner.build(
            sources=[folder / "bus.v"], hdl_toplevel="stub_bus", build_dir=folder, always=True,
            timescale=("1ns", "1ps"), log_file=folder / "build.log",
        )  # fmt: skip
        environment = {"BUS": bus, "COCOTB_LOG_LEVEL": "WARNING", "PYTHONWARNINGS": "ignore"}
        with suppress(SystemExit):  # the runner's way to say that a test failed
            runner.test(
                hdl_toplevel="stub_bus", test_module="bus_bench", build_dir=folder, test_dir=folder,
                results_xml=str(folder / "results.xml"), extra_env=environment, log_file=folder / "run.log",
                **({"test_filter": rf"{only}$"} if only else {}),
            )  # fmt: skip
    ran, failed = get_results(folder / "results.xml")
    assert ran, (folder / "run.log").read_text()[-3000:]
    return failed


@pytest.mark.parametrize("bus", [bus.name for bus in BUSES])
def test_a_master_of_another_house(bus, verilog, tmp_path):
    assert failures(bus, verilog[bus], tmp_path) == 0, (tmp_path / "run.log").read_text()[-6000:]
