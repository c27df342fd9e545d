# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A built engine passes its check; planted faults of its files, values and timing do not."""

import json
import shutil

import pytest
from forged import forged, spoiled

from marks import long
from modmill.cores.engine_files import file_differences, verilog_of
from modmill.cores.rsa.check import check_engine
from modmill.cores.rsa.machine import EngineCore, engine

WIDTH = 64


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    core = engine("radix64k-mul", width=WIDTH, bits=WIDTH, threads=2, window=3)
    return core.write(tmp_path_factory.mktemp("engine") / "good", "made for a test")


def test_a_good_engine_passes(folder):
    report = check_engine(folder)
    assert not report.failures
    assert report.judged >= 400
    assert report.line.startswith("PASS good: ")


FAULTS = {
    "is wrong": "  assign taken = o_ready; assign o_valid = there; assign o_data = word ^ (word[5:0] == 6'd21);",
    "depends on moduli, bases or exponents": "  assign open = word[4:0] != 5'd9 | late > 3;\n"
    "  assign taken = o_ready & open; assign o_valid = there & open; assign o_data = word;",
    "o_last does not accompany exactly the last word":
    "  assign taken = o_ready; assign o_valid = there; assign o_data = word; assign o_last = last & word[0];",
    "timeout": "  assign taken = o_ready & open; assign open = word[5:0] != 6'd21;\n"
    "  assign o_valid = there & open; assign o_data = word;",
}  # fmt: skip


@pytest.mark.parametrize(("expected", "fault"), FAULTS.items())
def test_planted_faults_of_the_rtl_are_found(folder, tmp_path, expected, fault):
    copy = shutil.copytree(folder, tmp_path / "engine")
    spoiled(copy, fault)
    report = check_engine(copy)
    assert len(report.failures) == 1 and expected in report.failures[0], report.failures
    assert report.line.startswith("FAIL engine: 1 difference; ")


def test_a_machine_whose_constants_lie_in_memory_is_reset_in_the_first_cycle(tmp_path):
    """Behind a router; without that, what its registers hold at power-up spoils the constants."""
    core = engine("hbe", p=2**61 - 1, bits=61, threads=1, cores=2, io="native", window=1)
    assert core.power_up > 1
    folder = core.write(tmp_path / "engine", "made for a test")
    assert not check_engine(folder).failures
    late = verilog_of(folder, "engine").replace(".rst(rst | c", ".rst(c")
    assert late != core.verilog
    forged(folder, late)
    found = check_engine(folder).failures
    assert any("is wrong" in line for line in found), found


def differences(folder):
    """What the check finds without simulation."""
    return list(file_differences(folder, EngineCore.for_check(folder)))


def test_planted_faults_of_the_files_are_found(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "engine")
    assert differences(copy) == []
    record = json.loads((copy / "engine.json").read_text())
    for change, expected in [
        ({"subtractions": 7}, "engine.json: subtractions differs from what is recomputed"),
        ({"digest": "sha256:" + "0" * 64}, "engine.json: the RTL has another digest than it says"),
        ({"options": record["options"] | {"window": 4}}, "engine.json: programs differs from what is recomputed"),
        ({"command": "rm"}, "engine.json: was edited: its seal is that of another record"),
    ]:
        (copy / "engine.json").write_text(json.dumps(record | change, indent=2) + "\n")
        assert expected in differences(copy)
    (copy / "engine.json").write_text(json.dumps(record, indent=2) + "\n")
    vectors = json.loads((copy / "vectors.json").read_text())
    for name, text in [
        ("vectors.json", json.dumps(vectors | {"messages": vectors["messages"][::-1]})), ("vectors.json", "{}"),
        ("README.md", (copy / "README.md").read_text() + "\n"),
    ]:  # fmt: skip
        before = (copy / name).read_text()
        (copy / name).write_text(text)
        assert differences(copy) == [
            f"{name}: was edited: it has another digest than engine.json says",
            f"{name}: differs from what is recomputed",
        ]
        (copy / name).write_text(before)
    forged(copy, "module engine(input clk); initial $finish; endmodule\n")
    assert check_engine(copy).failures[-1] == "engine.v: uses $finish, which no generated core does"
    (copy / "engine.v").unlink()
    with pytest.raises(ValueError, match=r"engine\.v is missing"):
        check_engine(copy)
    (copy / "engine.json").write_text("{}")
    with pytest.raises(ValueError, match=r"engine\.json is malformed"):
        check_engine(copy)


@pytest.mark.parametrize(
    ("name", "p", "width"), [("kbe", 2**61 - 1, 0), long("hbe", 2**31 - 1, 0), long("kbe", 0, 160), long("hbe", 0, 160)]
)
def test_an_engine_on_a_designs_own_slot_machine_passes(tmp_path, name, p, width):
    """Both engines start from random registers of their own: a control bit that nothing sets once chose the memory. A
    loaded machine takes its constants in the order of its own schedule, which once were sent in the multiplier's."""
    core = engine(name, p=p, width=width, bits=40, threads=2, window=3)
    assert core.numbered
    core.write(tmp_path / "engine", "made for a test")
    assert not check_engine(tmp_path / "engine").failures
