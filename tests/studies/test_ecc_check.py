# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A built coprocessor passes its check; planted faults of its files, results, timing and packets do not."""

import json
import shutil
from dataclasses import replace

import pytest
from forged import forged, spoiled
from small_curves import montgomery, weierstrass

from modmill.flow.words import WordSimulator
from modmill.studies import ecc_samples
from modmill.studies.ecc import ecc
from modmill.studies.ecc_check import check_ecc


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    core = ecc(montgomery(251), "montgomery-array", {"loadable": False}, contexts=1)
    return core.write(tmp_path_factory.mktemp("ecc") / "good", "made for a test")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two machines whose modulus is loaded."""
    curve = weierstrass(1009, -3, 900)
    core = ecc(curve, "montgomery-array", operations=("multiply", "multiply-base"), contexts=2, cores=2)
    return core.write(tmp_path_factory.mktemp("ecc") / "cluster", "made for a test")


def test_good_coprocessors_pass(small, cluster):
    report = check_ecc(small)
    assert not report.failures
    assert report.judged == 4 * 11  # of two sides, twice: ten on the curve, one on other numbers
    assert report.line.startswith("PASS good: 44 results in ")
    report = check_ecc(cluster)
    assert not report.failures
    assert report.judged == 4 * 2 * (10 + 4 * 2)  # p, and three moduli at the edges


FAULTS = {
    "at full rate: ladder 0 modulo 0xfb is wrong": "  assign taken = o_ready; assign o_valid = there;\n"
    "  assign o_data = word | {31'b0, word == 0};",  # the point of no u alone
    "at full rate: the time of a word depends on scalars, points or numbers": "  assign open = ~word[0] | late > 3;\n"
    "  assign taken = o_ready & open; assign o_valid = there & open; assign o_data = word;",
}  # fmt: skip


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


def test_planted_faults_of_the_files_are_found(small, tmp_path):
    copy = shutil.copytree(small, tmp_path / "ecc")
    texts = {name: (copy / name).read_text() for name in ("ecc.json", "vectors.json")}
    record, vectors = (json.loads(text) for text in texts.values())
    other = record["options"] | {"contexts": 2}
    for name, content, expected in [
        ("ecc.json", record | {"rounds": 9}, ["ecc.json: rounds differs from what is recomputed"]),
        ("ecc.json", record | {"digest": "sha256:0"}, ["ecc.json: the RTL has another digest than it says"]),
        ("ecc.json", record | {"options": other}, None),
        ("vectors.json", vectors | {"messages": []}, ["vectors.json: messages differ from what is recomputed"]),
    ]:
        (copy / name).write_text(json.dumps(content))
        found = check_ecc(copy).failures
        assert found == expected if expected else "vectors.json: messages differ from what is recomputed" in found
        (copy / name).write_text(texts[name])
    forged(copy, "module ecc(input clk); initial $finish; endmodule\n", "ecc")
    assert check_ecc(copy).failures == ["ecc.v: uses $finish, which no generated core does"]
    for name in ("ecc.v", "vectors.json", "ecc.json"):
        (copy / name).unlink()
        with pytest.raises(ValueError, match=rf"{name.replace('.', '[.]')} is missing"):
            check_ecc(copy)
        if name == "ecc.v":
            (copy / name).write_text("//\n\nmodule ecc(input clk); endmodule\n")


@pytest.fixture(scope="module")
def signing(tmp_path_factory):
    """A machine that also computes modulo the order, for which n is loaded."""
    curve = weierstrass(1009, -3, 900)
    core = ecc(curve, "multistep", {"loadable": True}, operations=("multiply-base",), contexts=2, order=True)
    return core.write(tmp_path_factory.mktemp("ecc") / "signing", "made for a test")


def test_arithmetic_modulo_the_order_is_checked_in_the_same_stream(signing, monkeypatch):
    report = check_ecc(signing)
    assert not report.failures
    assert report.judged == 4 * (3 * 10 + 4 * 3 * 2)  # multiply-base, signature, quotients; p, and three moduli
    assert "`signature`, `quotients`: modulo the order n." in (signing / "README.md").read_text()
    plain = ecc_samples._modulo_order
    monkeypatch.setattr(ecc_samples, "_modulo_order", lambda *a: tuple(x ^ 1 for x in plain(*a)))
    vectors, wrong = check_ecc(signing).failures
    assert vectors == "vectors.json: messages differ from what is recomputed"
    assert wrong == "at full rate: signature 10 modulo 0x3c7 is wrong"
