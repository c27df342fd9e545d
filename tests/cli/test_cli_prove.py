# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""`modmill prove` on folders with and without planted leaks."""

import json

import pytest
from command import modmill, refused
from leaks import LEAKS, NONE, OF_MODULUS, leaking

from modmill.cores.multiplier.build import build
from modmill.report.rows import read


def folder(path, verilog, **record):
    path.mkdir(exist_ok=True)
    (path / "core.v").write_text(f"// made\n\n{verilog}")
    (path / "contract.json").write_text(json.dumps({"top": "core", **record}))
    return path


@pytest.mark.parametrize("leak", LEAKS)
def test_a_planted_leak_is_open_with_its_path(leak, tmp_path):
    done = modmill("prove", folder(tmp_path / "leaking", leaking(*LEAKS[leak])))
    assert done.returncode == 1
    assert done.stdout.startswith("OPEN constant time of leaking\n  OPEN core: i_ready, o_valid and k_ready do not")
    (path,) = (line for line in done.stdout.splitlines() if " -> " in line)
    assert path.strip().startswith("i_") and " -> count" in path


def test_a_loaded_modulus_is_secret_or_public(tmp_path):
    path = folder(tmp_path / "leaking", leaking(*OF_MODULUS))
    assert "k_m[3] -> " in modmill("prove", path).stdout
    done = modmill("prove", path, "--public-modulus")
    assert done.returncode == 0 and "do not depend on i_a and i_b in any cycle" in done.stdout


def test_a_core_that_build_wrote_is_proved_and_an_edited_one_is_named(tmp_path):
    build("multistep", "29", s=2, word=3).write(tmp_path / "core", check=False)
    rows = tmp_path / "proofs.jsonl"
    done = modmill("prove", tmp_path / "core", "--json", "--record", rows)
    found = json.loads(done.stdout)
    assert (done.returncode, found["constant_time"]["state"], found["notes"]) == (0, "PROVED", [])
    assert any("Yosys" in line for line in found["assumed"])
    assert [row.values for row in read(rows)] == [{"constant_time": "PROVED"}]
    verilog = (tmp_path / "core" / "core.v").read_text().replace("endmodule", "// edited\nendmodule", 1)
    (tmp_path / "core" / "core.v").write_text(verilog)
    assert "note: contract.json has the digest of another RTL" in modmill("prove", tmp_path / "core").stdout
    assert "no row of a proof is recorded" in refused("prove", tmp_path / "core", "--record", rows)
    assert "--operations is for engines" in refused("prove", tmp_path / "core", "--operations")


def test_a_table_is_listed_with_its_address(tmp_path):
    done = modmill("prove", folder(tmp_path / "core", leaking(*NONE)))
    assert "memory table_: 4 words of 5 bits, written; addresses from i_a\n" in done.stdout


def test_folders_that_are_none_are_refused(tmp_path):
    assert "is not a folder" in refused("prove", tmp_path / "none")
    assert "holds no core" in refused("prove", tmp_path)
    assert "no name of a module" in refused("prove", folder(tmp_path / "a", leaking(*NONE), top="x; shell"))
    assert "yosys" in refused("-q", "prove", folder(tmp_path / "b", "module core(; endmodule"))
    (tmp_path / "b" / "core.v").unlink()
    assert "core.v is missing" in refused("prove", tmp_path / "b")
