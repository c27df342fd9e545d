# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The files beside core.v work with the tools that they are for."""

import shutil
import subprocess
import sys

import pytest

import modmill
from marks import long
from modmill.cores.multiplier import operands
from modmill.flow.emit import digest
from modmill.flow.simulate import Simulator, widths
from modmill.report import sheet


@pytest.fixture(scope="module", params=["native", "plain"])
def folder(request, tmp_path_factory):
    return modmill.build("sor-1m-p", 97, request.param, n=12).write(tmp_path_factory.mktemp("folder") / "core")


def test_fusesoc_accepts_the_core_file(folder):
    pytest.importorskip("fusesoc")
    name = f"modmill:cores:{sheet.identifier(modmill.load(folder).name)}:{modmill.__version__}"
    command = [sys.executable, "-m", "fusesoc.main", "--cores-root", str(folder), "core", "show", name]
    run = subprocess.run(command, capture_output=True, text=True, cwd=folder.parent)
    assert run.returncode == 0, run.stderr
    for target in ("default", "lint", "sim"):
        assert f"\n{target} " in run.stdout


def test_data_sheet(folder):
    core = modmill.load(folder)
    text = (folder / "README.md").read_text()
    timing = core.contract.timing
    for words in (
        core.command, digest(core.verilog), "## Licence", "belong to you", ".i_valid(i_valid)",
        f"| Module | `{core.top}` in",
        f"| Paper | {core.design.source} |", f"| Interval | {timing.interval} cycles",
        f"| In flight | {timing.in_flight} ", f"{core.fitted.cost.memory_bits} bits of constants",
        f"\n{core.top} multiplier (\n",
    ):  # fmt: skip
        assert words in text
    assert ("## How to convert" in text) == (core.io == "native")


def test_latency_of_the_data_sheet_holds_in_an_idle_core_and_in_a_full_one(folder):
    core = modmill.load(folder)
    said = f"{core.contract.timing.latency} cycles, the same for all operands and whether the core is idle or full"
    assert f"latency {said}" in sheet.split((folder / "core.v").read_text())[0]
    assert f"| Latency | {core.contract.timing.latency} cycles from" in (folder / "README.md").read_text()
    pairs = operands.randoms(core.contract, 40, 1)
    simulator = Simulator(core.verilog, top=core.top, widths=widths(core.contract))
    for count, gap in ((1, 0.0), (40, 0.0), (40, 0.5)):
        run = simulator.run([a for a, _ in pairs[:count]], [b for _, b in pairs[:count]], gap=gap)
        assert set(run.latencies) == {core.contract.timing.latency}


def test_conversion_of_the_data_sheet_works(folder, monkeypatch):
    core = modmill.load(folder)
    if core.io == "plain":
        pytest.skip("binary integers need no conversion")
    text = (folder / "README.md").read_text()
    code = text[text.index("```python\n") + 10 :].split("```")[0]
    monkeypatch.chdir(folder)
    names: dict = {}
    exec(code, names)
    for x in (0, 1, 96, 97, 150):
        assert core.contract.operand.decode(names["to_core"](x)) == x
        assert names["from_core"](core.contract.result.encode(x)) == x % 97


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["native", long("plain")], indirect=True, scope="module")
def test_cocotb_bench_passes(folder):
    pytest.importorskip("cocotb")
    if not (shutil.which("make") and shutil.which("c++")):
        pytest.skip("Verilator under cocotb needs make and a C++ compiler")
    run = subprocess.run([sys.executable, "test_core.py"], capture_output=True, text=True, cwd=folder, timeout=600)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    assert "TESTS=3 PASS=3 FAIL=0" in run.stdout + run.stderr
