# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Planted faults: ``check`` must find each, also when the digests were made to match the edited RTL."""

import json
import re
import shutil

import pytest

import modmill
from modmill.studies.build import digest
from modmill.studies.check import check

P = 2**31 - 1
SECP256K1 = 2**256 - 2**32 - 977


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Good folders, by io."""
    root = tmp_path_factory.mktemp("good")
    return {io: modmill.build("sor-1m-p", P, io, n=16).write(root / io) for io in ("native", "binary")}


@pytest.fixture
def copy(folders, tmp_path):
    """A copy of the native folder, to be edited."""
    return shutil.copytree(folders["native"], tmp_path / "core")


def forge(folder, edit):
    """Edit the RTL and make both digests match it."""
    path, record = folder / "core.v", json.loads((folder / "contract.json").read_text())
    header, body = path.read_text().split("\n\n", 1)
    edited = edit(body)
    assert edited != body, "the fault was not planted"
    path.write_text(header.replace(digest(body), digest(edited)) + "\n\n" + edited)
    record["digest"] = digest(edited)
    (folder / "contract.json").write_text(json.dumps(record))


def wrapped(faulty):
    """An edit that puts the core into a shell with a fault."""

    def edit(body):
        inner = re.sub(r"^module core\(", "module core_inside(", body, count=1, flags=re.MULTILINE)
        ports = re.search(r"^module core\(.*?;", body, re.MULTILINE)[0]
        top = body.split("endmodule")[0]
        found = re.findall(r"^  (input|output) (\[\d+:0\])? ?(\w+);", top, re.MULTILINE)
        declared = "".join(f"  {way} {size or ''} {name};\n" for way, size, name in found)
        return f"{ports}\n{declared}{faulty}\nendmodule\n\n{inner}"

    return edit


INSIDE = "  core_inside whole(.clk(clk), .rst(rst), .i_a(i_a), .i_b(i_b), .i_valid(i_valid), .o_r(o_r), "
READY_STUCK = INSIDE + ".i_ready(), .o_valid(o_valid), .o_ready(o_ready));\n  assign i_ready = 1'b1;"
VALID_WAITS = INSIDE + ".i_ready(i_ready), .o_valid(v), .o_ready(o_ready));\n  wire v;\n  assign o_valid = v & o_ready;"
VALID_DROPPED = (
    INSIDE + ".i_ready(i_ready), .o_valid(v), .o_ready(o_ready));\n  wire v;\n  reg seen;\n"
    "  always @(posedge clk) seen <= v & ~o_ready & ~rst;\n  assign o_valid = v & ~seen;"
)
TOO_EARLY = INSIDE + ".i_ready(i_ready), .o_valid(o_valid), .o_ready(1'b1));"


def drop_carry(body):
    """In the first wide accumulator the carry from bit 9 to bit 10 is lost."""
    adder = re.search(r"^  assign acc_sum0 = .+ \+ .+;$", body, re.MULTILINE)
    assert adder, "no accumulator found"
    line = adder[0]
    left, right = line.strip().removeprefix("assign ").rstrip(";").split(" = ")
    a, b = right.split(" + ")
    lost = f"((({a}) >> 10) + (({b}) >> 10) << 10) | ((({a}) & 1023) + (({b}) & 1023) & 1023)"
    return body.replace(line, f"  assign {left} = {lost};")


def faulty_constants(modulus, spoil, **settings):
    """The RTL of a core whose constants were spoiled before it was made."""
    core = modmill.build("sor-1m-p", modulus, "native", **settings)
    assert core.contract  # all of it is settled before the constants change
    rns = core.fitted.params.rns
    spoil(rns, rns.__dict__)
    return core.verilog


def alpha_off_by_one(rns, values):
    v = list(rns.v)
    v[1], v[2] = v[2], v[1]
    values["v"] = tuple(v)


def kappa_truncated(rns, values):
    low = max(rns.c).bit_length() // 2
    values["c"] = tuple(c >> low << low for c in rns.c)


def test_good_folders_pass(folders):
    for io, folder in folders.items():
        report = check(folder, vectors=300)
        assert report.passed, report.failures
        assert report.counts["chained"] == 4000
        assert report.products > 5000
        assert report.line.startswith(f"PASS sor-1m-p-31bit-{io}: latency ")


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (drop_carry, "not congruent"),
        (wrapped(READY_STUCK), "timeout"),
        (wrapped(VALID_WAITS), "timeout"),
        (wrapped(VALID_DROPPED), "o_valid dropped before o_ready"),
        (wrapped(TOO_EARLY), "o_valid dropped before o_ready"),
    ],
    ids=["dropped carry", "ready stuck", "valid waits for ready", "valid dropped", "result not held"],
)
def test_faults_in_the_text(copy, edit, words):
    forge(copy, edit)
    report = check(copy, vectors=100)
    assert not report.passed
    assert report.line.startswith("FAIL ")
    assert words in "\n".join(report.failures)
    assert "digest" not in "\n".join(report.failures)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [(alpha_off_by_one, "not congruent"), (kappa_truncated, "right modulo p but not below the bound")],
)
def test_faults_in_the_constants(copy, spoil, words):
    forge(copy, lambda body: faulty_constants(P, spoil, n=16))
    report = check(copy, vectors=100)
    assert not report.passed
    assert words in "\n".join(report.failures)


def test_fault_in_a_256_bit_core(tmp_path):
    folder = modmill.build("sor-1m-p", SECP256K1, "native").write(tmp_path / "core")
    forge(folder, lambda body: faulty_constants(SECP256K1, alpha_off_by_one))
    report = check(folder, vectors=100)
    assert not report.passed
    assert "not congruent" in "\n".join(report.failures)


def test_edited_rtl_without_new_digests(copy, monkeypatch):
    monkeypatch.setattr("modmill.studies.check.verify", lambda *_, **__: None)
    path = copy / "core.v"
    path.write_text(path.read_text().replace("endmodule", "  // harmless\nendmodule", 1))
    report = check(copy, vectors=20)
    assert len(report.failures) == 2
    assert all("the RTL has digest" in line for line in report.failures)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("latency", 1),
        ("interval", 99),
        ("in_flight", 7),
        ("result_bound", "1"),
        ("operand_bound", "1000000"),
        ("product_bound", "1"),
        ("modulus", hex(P - 2)),
        ("modulus", hex(P - 1)),
        ("modulus", hex(SECP256K1)),
        ("factor", "0x2"),
        ("digest", "sha256:" + "0" * 64),
        ("io", "binary"),
        ("design", "sor-2m"),
        ("given", {"n": 24}),
        ("given", {}),
        ("parameters", {}),
        ("ports", {}),
        ("closed", 1),
        ("command", "rm -rf"),
        ("statement", "o_r = 0"),
        ("surprise", 1),
    ],
)
def test_edited_contract(copy, field, value):
    path = copy / "contract.json"
    record = json.loads(path.read_text())
    assert record.get(field) != value or field == "closed"
    path.write_text(json.dumps(record | {field: value}))
    report = check(copy, vectors=20)
    assert not report.passed
    assert any("contract.json" in line for line in report.failures)


def test_field_taken_away(copy):
    path = copy / "contract.json"
    record = json.loads(path.read_text())
    del record["latency"]
    path.write_text(json.dumps(record))
    assert check(copy, vectors=20).failures == ["contract.json: latency is missing"]


def test_edited_vectors(copy):
    path = copy / "vectors.json"
    vectors = json.loads(path.read_text())
    right = vectors["vectors"][5]["value"]
    vectors["vectors"][5]["value"] = "0x123456"
    path.write_text(json.dumps(vectors))
    (line,) = check(copy, vectors=20).failures
    assert line == f"vectors.json: value of vector 5 is 0x123456, recomputed {right}"
    path.write_text(json.dumps(vectors | {"vectors": vectors["vectors"][:5]}))
    assert check(copy, vectors=20).failures == ["vectors.json: 5 vectors, at least 64 are expected"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("endmodule", '  initial $system("true");\nendmodule', r"uses \$system, which no generated core does"),
        ("endmodule", 'endmodule\n`include "x"', "uses `include"),
        ("module core(", "module other(", "there is no module core"),
        ("i_b;\n", "i_c;\n", "port i_b is missing"),
        (";\n  wire clk", "\n  wire clk", "core.v: "),
    ],
)
def test_texts_that_are_not_simulated(copy, old, new, words, monkeypatch):
    monkeypatch.setattr("modmill.studies.check.Simulator", None)
    forge(copy, lambda body: body.replace(old, new, 1))
    failures = check(copy, vectors=20).failures
    assert failures
    assert re.search(words, "\n".join(failures))
