# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A built coprocessor passes its check; planted faults of its files, results, timing and packets do not."""

import json
import shutil
from dataclasses import replace

import pytest
from forged import forged, spoiled, stamped
from small_curves import montgomery, weierstrass

from modmill.cores.ecc import samples as ecc_samples
from modmill.cores.ecc.check import check_ecc
from modmill.cores.ecc.machine import EccCore, ecc
from modmill.cores.engine_files import file_differences, names
from modmill.flow.words import WordSimulator


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    core = ecc(montgomery(251), "montgomery-array", {"loadable": False}, threads=1)
    return core.write(tmp_path_factory.mktemp("ecc") / "good", "made for a test")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two machines whose modulus is loaded."""
    curve = weierstrass(1009, -3, 900)
    core = ecc(curve, "montgomery-array", operations=("multiply", "multiply-base"), threads=2, cores=2)
    return core.write(tmp_path_factory.mktemp("ecc") / "cluster", "made for a test")


def test_good_coprocessors_pass(small, cluster):
    report = check_ecc(small)
    assert not report.failures
    assert report.judged > 4 * 11  # of two sides, twice: ten on the curve, one on other numbers; then vectors, starts
    assert report.line.startswith(f"PASS good: {report.judged} results in ")
    report = check_ecc(cluster)
    assert not report.failures
    assert report.judged > 4 * 2 * (10 + 4 * 2)  # p, and three moduli at the edges


FAULTS = {
    "at full rate: ladder 0 modulo 0xfb is wrong": "  assign taken = o_ready; assign o_valid = there;\n"
    "  assign o_data = word | {31'b0, word == 0};",  # the point of no u alone
    "at full rate: the time of a word depends on scalars, points or numbers": "  assign open = ~word[0] | late > 3;\n"
    "  assign taken = o_ready & open; assign o_valid = there & open; assign o_data = word;",
}


@pytest.mark.parametrize(("expected", "fault"), FAULTS.items())
def test_planted_faults_of_the_rtl_are_found(small, tmp_path, expected, fault):
    copy = shutil.copytree(small, tmp_path / "ecc")
    spoiled(copy, fault, "ecc")
    report = check_ecc(copy)
    assert report.failures == [expected]
    assert report.line.startswith("FAIL ecc: 1 difference; ")


def late(run):
    """All words a cycle later."""
    return replace(run, valid=[cycle + 1 for cycle in run.valid])


def last_wrong(run):
    """The last word is wrong: that of other numbers."""
    return replace(run, words=[*run.words[:-1], run.words[-1] ^ 1])


def swapped(run):
    """The first two packets bear each other's machine."""
    size = 1 + run.words[1:].index(1 - run.words[0])
    words = list(run.words)
    words[0], words[size] = words[size], words[0]
    return replace(run, words=words)


@pytest.mark.parametrize(("which", "fault", "expected"), [
    ("small", late, " were predicted"), ("small", last_wrong, "other numbers"),
    ("cluster", last_wrong, "other numbers"), ("cluster", swapped, "multiply 0 modulo 0x3f1 is wrong"),
])  # fmt: skip
def test_planted_faults_of_what_a_simulation_shows_are_found(request, monkeypatch, which, fault, expected):
    plain = WordSimulator.run_pair
    monkeypatch.setattr(WordSimulator, "run_pair", lambda *a, **k: tuple(map(fault, plain(*a, **k))))
    (line,) = check_ecc(request.getfixturevalue(which)).failures
    assert line.startswith("at full rate: ") and expected in line


EDITS = {
    "ecc.v": ("// Command: made", "// Command: mode", "its header differs from what is recomputed"),
    "ecc.json": ('"rounds": ', '"rounds": 9', "rounds differs from what is recomputed"),
    "vectors.json": ('"operation": "l', '"operation": "m', "differs from what is recomputed"),
    "README.md": ("| `o_last` | out | 1 |", "| `o_last` | out | 2 |", "differs from what is recomputed"),
    "test_ecc.py": ("assert found", "assert True or found", "differs from what is recomputed"),
    "ecc.core": ("toplevel: ecc", "toplevel: acc", "differs from what is recomputed"),
    "component.xml": ("<ipxact:left>31", "<ipxact:left>30", "differs from what is recomputed"),
    "lint.vlt": ("-rule VARHIDDEN", "-rule LATCH", "differs from what is recomputed"),
}


def test_an_edit_of_every_file_is_tried():
    assert set(EDITS) == set(names("ecc"))


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_of_any_file_is_found_sealed_again_or_not(small, tmp_path, name):
    old, new, expected = EDITS[name]
    copy = shutil.copytree(small, tmp_path / "ecc")
    text = (copy / name).read_text()
    assert old in text
    (copy / name).write_text(text.replace(old, new, 1))
    (line,) = (line for line in differences(copy) if "was edited" in line)
    assert line.startswith(f"{name}: ")
    stamped(copy, "ecc")
    if name != "ecc.v":  # a seal says nothing of who made it: the command is known from the record alone
        assert differences(copy) == [f"{name}: {expected}"]
    assert f"{name}: {expected}" in differences(copy)


def differences(folder):
    """What the check finds without simulation."""
    return list(file_differences(folder, EccCore.for_check(folder)))


def test_planted_faults_of_the_files_are_found(small, tmp_path):
    copy = shutil.copytree(small, tmp_path / "ecc")
    record = json.loads((copy / "ecc.json").read_text())
    for change, expected in [
        ({"digest": "sha256:0"}, "ecc.json: the RTL has another digest than it says"),
        ({"options": record["options"] | {"threads": 2}}, "vectors.json: differs from what is recomputed"),
        ({"more": 1}, "ecc.json: more differs from what is recomputed"),
        ({"ports": {}}, "ecc.json: ports differs from what is recomputed"),
    ]:
        (copy / "ecc.json").write_text(json.dumps(record | change))
        assert expected in differences(copy)
    (copy / "ecc.json").write_text(json.dumps(record))
    forged(copy, "module ecc(input clk); initial $finish; endmodule\n", "ecc")
    found = check_ecc(copy).failures
    assert found[-1] == "ecc.v: uses $finish, which no generated core does"
    assert "ecc.v: port o_last: no port, the data sheet says output of 1 bits" in found
    for name in ("ecc.v", "vectors.json", "README.md", "ecc.json"):
        text = (copy / name).read_text()
        (copy / name).unlink()
        with pytest.raises(ValueError, match=rf"{name.replace('.', '[.]')} is missing"):
            check_ecc(copy)
        (copy / name).write_text(text)


@pytest.fixture(scope="module")
def signing(tmp_path_factory):
    """A machine that also computes modulo the order, for which n is loaded."""
    curve = weierstrass(1009, -3, 900)
    core = ecc(curve, "multistep", {"loadable": True}, operations=("multiply-base",), threads=2, order=True)
    return core.write(tmp_path_factory.mktemp("ecc") / "signing", "made for a test")


def test_arithmetic_modulo_the_order_is_checked_in_the_same_stream(signing, monkeypatch):
    report = check_ecc(signing)
    assert not report.failures
    assert report.judged > 4 * (3 * 10 + 4 * 3 * 2)  # multiply-base, signature, quotients; p, and three moduli
    assert "`signature`, `quotients`: modulo the order n." in (signing / "README.md").read_text()
    plain = ecc_samples._modulo_order
    monkeypatch.setattr(ecc_samples, "_modulo_order", lambda *a: tuple(x ^ 1 for x in plain(*a)))
    vectors, wrong = check_ecc(signing).failures
    assert vectors == "vectors.json: differs from what is recomputed"
    assert wrong == "at full rate: signature 10 modulo 0x3c7 is wrong"
