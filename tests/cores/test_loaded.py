# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Cores whose modulus is loaded: one RTL for all moduli of a width, checked with several, faults of loading found."""

import json
import re
import shutil

import pytest
from forged import declared
from test_faults import forge

import modmill
from modmill.cores.multiplier.check import check
from modmill.cores.multiplier.folder import Folder, words_for
from modmill.proofs.handshake.constant_time import constant_time
from modmill.proofs.netlist import Netlist

P = 2**31 - 1
SETTINGS = {"loadable": True, "w": 12, "interval": 20}


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A good folder."""
    return modmill.build("hbe", P, "native", **SETTINGS).write(tmp_path_factory.mktemp("loaded") / "core")


@pytest.fixture
def copy(folder, tmp_path):
    """The good folder, to be edited."""
    return shutil.copytree(folder, tmp_path / "core")


def test_the_rtl_depends_on_the_width_of_the_modulus_only():
    texts = {modmill.build("hbe", p, "native", **SETTINGS).verilog for p in (P, 2**30 + 3, 2**31 - 19)}
    assert len(texts) == 1
    assert modmill.build("hbe", P, "native", w=12, interval=20).verilog not in texts


def test_a_good_core_passes_with_its_own_modulus_and_with_others(folder):
    report = check(folder, vectors=100)
    assert report.passed, report.failures
    assert report.counts["loaded"] > 0
    assert (
        report.load is not None
        and 0 < report.load <= json.loads((folder / "contract.json").read_text())["load"]["cycles"]
    )


INSIDE = (
    "  core_inside whole(.clk(clk), .rst(rst), .k_m(k_m), .i_a(i_a), .i_b(i_b), .i_valid(i_valid), "
    ".o_valid(o_valid), .o_r(o_r), .o_ready(o_ready), "
)
FAULTS = {
    "operands before the modulus": INSIDE
    + ".k_valid(k_valid & (&late)), .k_ready(k_ready), .i_ready(i_ready));\n  reg [4:0] late;\n"
    "  always @(posedge clk) late <= rst | ~k_valid ? 0 : late + ~&late;",
    "a word lost": INSIDE
    + ".k_valid(k_valid), .k_ready(ready), .i_ready(i_ready));\n  wire ready;\n  reg [3:0] seen;\n"
    "  assign k_ready = ready | (k_valid & seen == 3);\n"
    "  always @(posedge clk) seen <= rst ? 0 : k_ready ? seen + 1 : seen;",
}


def shelled(faulty):
    """An edit that puts the core into a shell."""

    def edited(body):
        inner = re.sub(r"^module core\(", "module core_inside(", body, count=1, flags=re.MULTILINE)
        return f"{declared(body)}\n{faulty}\nendmodule\n\n{inner}"

    return edited


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name, copy):
    forge(copy, shelled(FAULTS[name]))
    assert not check(copy, vectors=100).passed


def test_a_wrong_word_is_found(copy):
    record = json.loads((copy / "contract.json").read_text())
    record["load"]["words"][-1] = hex(int(record["load"]["words"][-1], 16) ^ 1)
    (copy / "contract.json").write_text(json.dumps(record))
    assert any("load is" in line for line in check(copy, vectors=10).failures)


def test_timing_does_not_depend_on_operands_nor_on_the_modulus(folder):
    text = Folder.read(folder).verilog
    assert constant_time(Netlist.read(text, "core")).path == ()
    leaky = text.replace("k_ready <= rst ? 1'h0 : ", "k_ready <= rst ? 1'h0 : k_m[0] & ", 1)
    assert constant_time(Netlist.read(leaky, "core")).path


def test_words_for_another_modulus(folder):
    other = words_for(folder, 2**30 + 3)
    assert other.contract.load.words != words_for(folder, P).contract.load.words
    assert other.digest == words_for(folder, P).digest
    assert words_for(folder, 65537).contract.p == 65537
    with pytest.raises(ValueError, match="33 bits"):
        words_for(folder, 2**32 + 15)
    with pytest.raises(ValueError, match="odd"):
        words_for(folder, 2**30)


def test_a_period_has_a_cycle_for_the_load():
    fixed, loaded = (modmill.build("hbe", P, "native", w=12, loadable=way).contract for way in (False, True))
    assert (fixed.timing.interval, loaded.timing.interval) == (19, 20)
    with pytest.raises(ValueError, match="interval takes 0 or 20 to"):
        modmill.build("hbe", P, "native", w=12, loadable=True, interval=19)


def test_words_of_a_core_with_a_fixed_modulus_are_refused(tmp_path):
    fixed = modmill.build("hbe", P, "native", w=12).write(tmp_path / "fixed")
    with pytest.raises(ValueError, match="built in"):
        words_for(fixed, P)
