# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Planted faults: ``check`` must find each, also when the digests were made to match the edited RTL."""

import json
import re
import shutil
from dataclasses import replace

import pytest
from forged import declared

import modmill
from modmill.cores.multiplier.build import FILES, RECORD, FaultyCore
from modmill.cores.multiplier.check import check
from modmill.cores.multiplier.verify import FEWEST, FULL, SHORT, Report, spread, verify
from modmill.flow import four_state
from modmill.flow.emit import digest
from modmill.flow.simulate import Simulator
from modmill.flow.tools import ToolError
from modmill.report import seal

P = 2**31 - 1
SECP256K1 = 2**256 - 2**32 - 977


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Good folders, by io."""
    root = tmp_path_factory.mktemp("good")
    return {io: modmill.build("sor-1m-p", P, io, n=16).write(root / io) for io in ("native", "plain")}


@pytest.fixture
def copy(folders, tmp_path):
    """A copy of the native folder, to be edited."""
    return shutil.copytree(folders["native"], tmp_path / "core")


def reseal(folder, **changes):
    """Make the seal match what lies in the folder, after changes of the record."""
    record = json.loads((folder / RECORD).read_text()) | changes
    names = [file.name for file in folder.iterdir() if file.name != RECORD]
    (folder / RECORD).write_text(seal.record_text(seal.sealed(record, seal.folder_texts(folder, names))))


def forge(folder, edit):
    """Edit the RTL and make all digests match it."""
    path = folder / "core.v"
    header, body = path.read_text().split("\n\n", 1)
    edited = edit(body)
    assert edited != body, "the fault was not planted"
    path.write_text(header.replace(digest(body), digest(edited)) + "\n\n" + edited)
    sheet = folder / "README.md"
    sheet.write_text(sheet.read_text().replace(digest(body), digest(edited)))
    vectors = folder / "vectors.json"
    vectors.write_text(vectors.read_text().replace(digest(body), digest(edited)))
    reseal(folder, digest=digest(edited))


def wrapped(faulty):
    """An edit that puts the core into a shell with a fault."""

    def edit(body):
        inner = re.sub(r"^module core\(", "module core_inside(", body, count=1, flags=re.MULTILINE)
        return f"{declared(body)}\n{faulty}\nendmodule\n\n{inner}"

    return edit


INSIDE = "  core_inside whole(.clk(clk), .rst(rst), .i_a(i_a), .i_b(i_b), .i_valid(i_valid), .o_r(o_r), "
READY_STUCK = INSIDE + ".i_ready(), .o_valid(o_valid), .o_ready(o_ready));\n  assign i_ready = 1'b1;"
VALID_WAITS = INSIDE + ".i_ready(i_ready), .o_valid(v), .o_ready(o_ready));\n  wire v;\n  assign o_valid = v & o_ready;"
VALID_DROPPED = (
    INSIDE + ".i_ready(i_ready), .o_valid(v), .o_ready(o_ready));\n  wire v;\n  reg seen;\n"
    "  always @(posedge clk) seen <= v & ~o_ready & ~rst;\n  assign o_valid = v & ~seen;"
)
TOO_EARLY = INSIDE + ".i_ready(i_ready), .o_valid(o_valid), .o_ready(1'b1));"

HELD = (
    # a result that has waited for 60 cycles is lost; no short stall is so long
    INSIDE + ".i_ready(i_ready), .o_valid(v), .o_ready(o_ready | old));\n  wire v;\n  reg [6:0] age;\n"
    "  wire old = age == 60;\n  assign o_valid = v;\n"
    "  always @(posedge clk) age <= rst | ~v | o_ready | old ? 0 : age + 1;"
)


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
        (wrapped(HELD), "with long stalls: "),
    ],
    ids=["dropped carry", "ready stuck", "valid waits for ready", "valid dropped", "result not held", "long stall"],
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
    monkeypatch.setattr("modmill.cores.multiplier.check.verify", lambda *_, **__: None)
    path = copy / "core.v"
    path.write_text(path.read_text().replace("endmodule", "  // harmless\nendmodule", 1))
    report = check(copy, vectors=20)
    assert [line for line in report.failures if "the RTL has digest" not in line] == [
        "core.v: was edited: it has another digest than contract.json says"
    ]
    assert len(report.failures) == 3


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
        ("io", "plain"),
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
def test_edited_contract(copy, field, value, monkeypatch):
    monkeypatch.setattr("modmill.cores.multiplier.check.verify", lambda *_, **__: None)
    path = copy / "contract.json"
    record = json.loads(path.read_text())
    assert record.get(field) != value or field == "closed"
    path.write_text(json.dumps(record | {field: value}, indent=2) + "\n")
    report = check(copy, vectors=20)
    assert "contract.json: was edited: its seal is that of another record" in report.failures
    reseal(copy)
    report = check(copy, vectors=20)
    assert not report.passed
    assert any("contract.json" in line for line in report.failures)


def test_field_taken_away(copy, monkeypatch):
    monkeypatch.setattr("modmill.cores.multiplier.check.verify", lambda *_, **__: None)
    path = copy / "contract.json"
    record = json.loads(path.read_text())
    del record["latency"]
    path.write_text(json.dumps(record))
    reseal(copy)
    assert check(copy, vectors=20).failures == [
        "contract.json: latency is missing",
        "contract.json: the other files cannot be made from it: KeyError \"'latency'\"",
    ]


@pytest.mark.parametrize("name", FILES)
def test_one_letter_of_any_file_is_found(copy, name, monkeypatch):
    monkeypatch.setattr("modmill.cores.multiplier.check.verify", lambda *_, **__: None)
    path = copy / name
    path.write_text(path.read_text().replace(" ", "  ", 1))
    assert any(line.startswith(f"{name}: was edited") for line in check(copy).failures)
    reseal(copy)
    found = check(copy).failures
    assert found == [] if name == RECORD else any(line.startswith(f"{name}: line ") for line in found)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("latency LATENCY cycles", "latency 4 cycles"),
        ("//   factor   0x1", "//   factor   0x2"),
        ("below p", "below 9 p"),
    ],
)
def test_header_that_an_integrator_reads(folders, tmp_path, old, new, monkeypatch):
    monkeypatch.setattr("modmill.cores.multiplier.check.verify", lambda *_, **__: None)
    folder = shutil.copytree(folders["plain"], tmp_path / "core")
    path = folder / "core.v"
    latency = json.loads((folder / RECORD).read_text())["latency"]
    old, text = old.replace("LATENCY", str(latency)), path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    reseal(folder)
    assert any(new in line for line in check(folder).failures)


def test_fusesoc_file_that_is_gone(copy, monkeypatch):
    monkeypatch.setattr("modmill.cores.multiplier.check.verify", lambda *_, **__: None)
    (path,) = copy.glob("*.core")
    path.unlink()
    assert check(copy).failures == [f"{path.name}: is missing, but contract.json lists it"]


def test_edited_vectors(copy, monkeypatch):
    monkeypatch.setattr("modmill.cores.multiplier.check.verify", lambda *_, **__: None)
    path = copy / "vectors.json"
    vectors = json.loads(path.read_text())
    right = vectors["vectors"][5]["value"]
    vectors["vectors"][5]["value"] = "0x123456"
    path.write_text(json.dumps(vectors))
    reseal(copy)
    line, *rest = check(copy, vectors=20).failures
    assert line == f"vectors.json: value of vector 5 is 0x123456, recomputed {right}"
    assert all(line.startswith("vectors.json: line ") for line in rest)
    path.write_text(json.dumps(vectors | {"vectors": vectors["vectors"][:5]}))
    reseal(copy)
    assert "vectors.json: 5 vectors, at least 64 are expected" in check(copy, vectors=20).failures


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("endmodule", '  initial $system("true");\nendmodule', r"uses \$system, which no generated core does"),
        ("endmodule", 'endmodule\n`include "x"', "uses `include"),
        (
            "endmodule",
            '`ifndef SYNTHESIS\n  initial begin\n    phase = $system("x");\n  end\n`endif\nendmodule',
            r"uses \$system",
        ),
        ("module core(", "module other(", "there is no module core"),
        ("i_b", "i_c", "port i_b is missing"),
        ("  input  wire clk,", "  input  wire clk", "core.v: "),
    ],
)
def test_texts_that_are_not_simulated(copy, old, new, words, monkeypatch):
    monkeypatch.setattr("modmill.cores.multiplier.verify.Simulator", None)
    forge(copy, lambda body: body.replace(old, new, -1 if old == "i_b" else 1))
    failures = check(copy, vectors=20).failures
    assert failures
    assert re.search(words, "\n".join(failures))


# ---------------------------------------------------------------------------------------------- start states


def without_resets(body):
    """Small registers, counters among them, lose their reset."""
    return re.sub(r"^(    \w+ <= )rst \? [1-5]'h\w+ : (.*;)$", r"\1\2", body, flags=re.MULTILINE)


EARLY = (
    # operands of the first 40 cycles after a reset of two cycles or more get another bit
    "  core_inside whole(.clk(clk), .rst(rst), .i_a(i_a ^ (young != 0)), .i_b(i_b), .i_valid(i_valid), .o_r(o_r),"
    " .i_ready(i_ready), .o_valid(o_valid), .o_ready(o_ready));\n  reg [5:0] young;\n  reg was;\n"
    "  always @(posedge clk) was <= rst;\n  always @(posedge clk) if (rst) young <= was ? 40 : 0;\n"
    "    else if (young != 0) young <= young - 1;"
)
SHORT_RESET = (
    # a reset of one cycle is not seen
    "  core_inside whole(.clk(clk), .rst(rst & was), .i_a(i_a), .i_b(i_b), .i_valid(i_valid & ~rst), .o_r(o_r),"
    " .i_ready(i_ready), .o_valid(o_valid), .o_ready(o_ready));\n  reg was;\n  always @(posedge clk) was <= rst;"
)
SURVIVOR = (
    # a product under way survives a reset and leaves after it
    "  core_inside whole(.clk(clk), .rst(rst & ~o_valid), .i_a(i_a), .i_b(i_b), .i_valid(i_valid & ~rst), .o_r(o_r),"
    " .i_ready(i_ready), .o_valid(o_valid), .o_ready(o_ready & ~rst));"
)


@pytest.mark.parametrize(
    ("edit", "words"),
    [(wrapped(EARLY), "first operands in cycle"), (wrapped(SHORT_RESET), ""), (wrapped(SURVIVOR), "")],
    ids=["first cycles", "reset of one cycle", "product survives"],
)
def test_faults_of_the_start(copy, edit, words):
    forge(copy, edit)
    failures = check(copy, vectors=20).failures
    assert failures
    assert any(words in line for line in failures)


def test_control_without_reset(copy):
    forge(copy, without_resets)
    assert check(copy, vectors=20).failures


@pytest.mark.parametrize(
    ("reset", "words"),
    [
        (r"", "in another cycle than after another reset"),  # what it held before tells when operands are taken
        (r"rst ? 2'h2 : ", "nor at the start of a time slot of 4"),
    ],
    ids=["none", "another value"],
)
def test_turns_that_a_reset_does_not_begin(reset, words):
    core = modmill.build("wide", 8191, "native")
    faulty = re.sub(r"^(    phase <= )rst \? \S+ : ", rf"\g<1>{reset}", core.verilog, flags=re.MULTILINE)
    assert faulty != core.verilog
    report = Report("core")
    verify(core, faulty, report, vectors=20)
    assert any(words in line for line in report.failures)


def test_initial_values_do_not_count(copy):
    """Registers that only their initial values make right are found: simulation starts them at random."""
    forge(
        copy,
        lambda body: re.sub(r"^(  reg (?:\[[1-4]:0\] )?\w+);", r"\1 = 0;", without_resets(body), flags=re.MULTILINE),
    )
    assert check(copy, vectors=20).failures


def test_starts_are_spread():
    assert spread(10, 20) == list(range(10))
    found = spread(1000, 100)
    assert len(found) == 100
    assert found[:51] == list(range(51))
    assert 980 < found[-1] < 1000


def test_every_first_cycle_is_tried_after_every_reset(folders, monkeypatch):
    core = modmill.load(folders["native"])
    tried, run_pair = set(), Simulator.run_pair

    def noted(self, *arguments, starts, **options):
        if starts[0].restart == 0:
            tried.update((start.reset, start.first) for start in starts)
        return run_pair(self, *arguments, starts=starts, **options)

    monkeypatch.setattr(Simulator, "run_pair", noted)
    report = Report("core")
    verify(core, core.verilog, report, vectors=20)
    end = core.contract.timing.latency + core.contract.timing.interval
    assert report.passed
    assert tried >= {(reset, first) for reset in (1, 3, 40) for first in range(end + 1)}


UNKNOWN = (
    # i_ready does not depend on a counter that nothing sets, but four states see it there
    INSIDE + ".i_ready(ready), .o_valid(o_valid), .o_ready(o_ready));\n  wire ready;\n  reg [1:0] turn;\n"
    "  always @(posedge clk) turn <= turn + 1;\n  assign i_ready = ready & (turn[0] | ~turn[0]);"
)


def test_four_states_see_an_unknown_counter(copy, monkeypatch):
    forge(copy, wrapped(UNKNOWN))
    two_states = [line for line in check(copy, vectors=20).failures if not line.startswith("vectors.json")]
    assert two_states == []
    if not four_state.available():
        with pytest.raises(ToolError, match="apt install iverilog"):
            check(copy, four_state=True)
        return
    assert any("i_ready is x" in line for line in check(copy, vectors=20, four_state=True).failures)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolError, match="apt install iverilog"):
        check(copy, four_state=True)


# ---------------------------------------------------------------------------------------------- build


@pytest.mark.parametrize(
    "edit", [drop_carry, wrapped(TOO_EARLY), wrapped(EARLY)], ids=["dropped carry", "not held", "first cycles"]
)
def test_a_faulty_core_is_not_written(tmp_path, edit):
    core = modmill.build("sor-1m-p", P, "native", n=16)
    core = replace(core, stored=edit(core.verilog))
    with pytest.raises(FaultyCore, match=r"is wrong, so nothing was written .* --no-check -o DIR && modmill check DIR"):
        core.write(tmp_path / "core")
    assert list(tmp_path.iterdir()) == []
    folder = core.write(tmp_path / "core", check=False)
    assert json.loads((folder / RECORD).read_text())["build_check"] == "none: --no-check"
    assert "not simulated before it was written" in (folder / "core.v").read_text()
    assert "NOT before it was written" in (folder / "README.md").read_text()
    failures = check(folder, vectors=20).failures
    assert failures
    assert not any("edited" in line for line in failures)


def test_less_is_simulated_of_a_core_that_is_slow_to_simulate():
    """A few runs of each kind, where an ordinary core gets all."""
    core = modmill.build("sor-1m-p", P, "native", n=16)
    size = len(core.verilog)
    assert FULL.fitted(core.contract, size) == FULL
    fewest = FULL.fitted(core.contract, 10**12)
    assert (fewest.lone, fewest.cuts, fewest.chain) == (FEWEST, FEWEST, FEWEST)
    assert (fewest.corners, fewest.randoms) == (FEWEST, FEWEST)
    report = Report(core.name)
    verify(core, core.verilog, report, effort=replace(SHORT, corners=5, randoms=4))
    assert report.passed
    assert (report.counts["corner"], report.counts["random"]) == (4 * 3 * 5, 2 * 3 * 2)
