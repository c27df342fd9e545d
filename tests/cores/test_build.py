# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Cores through the Python interface, and the folders they are written to."""

import doctest
import json
import os

import pytest

import modmill
from modmill.contract import UnsupportedError
from modmill.cores import folder as folder_module
from modmill.cores.multiplier.build import FILES
from modmill.cores.multiplier.folder import Folder
from modmill.design import parse_set
from modmill.flow.emit import digest, netlist, netlist_digest

P = 2**61 - 1


@pytest.fixture(scope="module")
def core():
    return modmill.build("sor-1m-p", P, n="20")


@pytest.fixture
def folder(core, tmp_path):
    return core.write(tmp_path / "core")


def test_multiply_and_simulate_agree_with_python(core):
    pairs = [(0, 0), (P - 1, P - 1), (12345, 67890), (P // 2, 2)]
    assert [core.multiply(a, b) for a, b in pairs] == [a * b % P for a, b in pairs]
    assert core.simulate(pairs, gap=0.2, stall=0.2) == [a * b % P for a, b in pairs]


def test_native_core_takes_and_gives_larger_numbers():
    native = modmill.build("sor-1m-p", P, "native", n=20)
    a = native.contract.largest_operand
    (result,) = native.simulate([(a, a)])
    assert result == native.multiply(a, a)
    assert result % P == a * a % P
    assert result < native.contract.result_bound * P
    with pytest.raises(UnsupportedError, match="operands must be below"):
        native.multiply(2 * a, 2 * a)


def test_operands_outside_the_contract_are_refused(core):
    with pytest.raises(UnsupportedError, match="operands must be below p"):
        core.simulate([(P, 1)])
    with pytest.raises(UnsupportedError, match="negative"):
        core.multiply(-1, 1)


def test_given_parameters_and_command(core):
    assert core.given == {"n": 20}
    assert core.command == "modmill build sor-1m-p --modulus 0x1fffffffffffffff --set n=20 --io plain"
    assert core.name == "sor-1m-p-61bit-plain"
    assert core.digest == netlist_digest(netlist(core.fitted.core("plain")))


def test_unknown_things_are_refused():
    for arguments, words in (
        (("nothing", P), "no design is called"),
        (("sor-1m-p", "nothing"), "no modulus is named"),
        (("sor-1m-p", 98), "must be odd"),
        (("sor-1m-p", P, "both"), "io must be one of plain, montgomery, native"),
    ):
        with pytest.raises(ValueError, match=words):
            modmill.build(*arguments)
    with pytest.raises(UnsupportedError, match="no parameter 'm'"):
        modmill.build("sor-1m-p", P, m=3)


def test_folder_holds_all_files(core, folder):
    assert {f.name for f in folder.iterdir()} == {*FILES, "modmill_sor_1m_p_61bit_plain.core"}
    record = json.loads((folder / "contract.json").read_text())
    for key in (
        "design", "parameters", "modulus", "factor", "io", "ports", "operand_bound", "result_bound", "latency",
        "interval", "in_flight", "digest", "command", "tools",
    ):  # fmt: skip
        assert key in record
    assert record["digest"] == digest(core.verilog) != record["netlist"] == core.digest
    vectors = json.loads((folder / "vectors.json").read_text())["vectors"]
    assert len(vectors) >= 64
    for v in vectors:
        assert int(v["a"], 16) * int(v["b"], 16) % P == int(v["value"], 16)
    text = (folder / "core.v").read_text()
    assert text.startswith("// SPDX-License-Identifier: Apache-2.0\n")
    for words in ("Generated cores belong to you", core.command, digest(core.verilog), "latency"):
        assert words in text.split("\n\n")[0]


def test_vectors_of_a_native_core_decode(tmp_path):
    native = modmill.build("sor-1m-p", P, "native", n=20)
    folder = Folder.read(native.write(tmp_path / "core"))
    decode = native.contract.operand.decode
    assert all(decode(a) * decode(b) % P == value for a, b, value in folder.vectors)


def test_same_core_gives_the_same_text(core, folder, tmp_path):
    again = modmill.build("sor-1m-p", P, n=20).write(tmp_path / "again")
    for name in FILES:
        assert (again / name).read_text() == (folder / name).read_text()


def test_load_returns_what_lies_there(core, folder):
    loaded = modmill.load(folder)
    assert loaded.verilog == core.verilog
    assert loaded.contract == core.contract
    (folder / "core.v").write_text((folder / "core.v").read_text() + "\n")
    with pytest.raises(ValueError, match="another digest"):
        modmill.load(folder)


def test_former_build_is_replaced_whole(core, folder):
    (folder / "README.md").write_text("old")
    (folder / "sim_build").mkdir()
    core.write(folder)
    assert "old" not in (folder / "README.md").read_text()[:10]
    assert not (folder / "sim_build").exists()
    assert [f.name for f in folder.parent.iterdir()] == ["core"]


def test_empty_folder_is_filled(core, tmp_path):
    (tmp_path / "empty").mkdir()
    core.write(tmp_path / "empty")
    assert (tmp_path / "empty" / "core.v").exists()


def test_foreign_folders_are_left_alone(core, folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("x")
    with pytest.raises(ValueError, match=r"holds thesis.tex, which no build wrote"):
        core.write(other)
    (folder / "notes.txt").write_text("x")
    with pytest.raises(ValueError, match=r"holds notes\.txt, which no build wrote"):
        core.write(folder)
    partial = tmp_path / "partial"
    partial.mkdir()
    (partial / "core.v").write_text("x")
    with pytest.raises(ValueError, match=r"files, but not the README\.md of a build"):
        core.write(partial)
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(ValueError, match="is not a folder"):
        core.write(file)
    assert (other / "thesis.tex").exists() and (folder / "notes.txt").exists() and file.read_text() == "x"


def test_failed_rename_brings_the_old_folder_back(core, folder, monkeypatch):
    (folder / "README.md").write_text("old")
    rename = os.rename

    def fail_for_new(source, target):
        if str(source).endswith("new"):
            raise OSError(28, "No space left on device")
        rename(source, target)

    monkeypatch.setattr(folder_module.os, "rename", fail_for_new)
    with pytest.raises(OSError, match="No space left"):
        core.write(folder)
    assert (folder / "README.md").read_text() == "old"
    assert [f.name for f in folder.parent.iterdir()] == ["core"]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("contract.json", None, "contract.json is missing"),
        ("contract.json", "", "truncated or malformed"),
        ("contract.json", '{"design": "sor', "truncated or malformed"),
        ("contract.json", "[]", "not a JSON object"),
        ("contract.json", "[" * 100_000, "malformed"),
        ("contract.json", "{}", "'design' is missing or malformed"),
        ("vectors.json", "{}", "'vectors' is missing"),
        ("vectors.json", '{"vectors": [{"a": "0x1"}]}', "'vectors' is missing or malformed"),
        ("vectors.json", None, "vectors.json is missing"),
        ("core.v", None, "core.v is missing"),
        ("core.v", "", "core.v holds no Verilog"),
    ],
)
def test_broken_folders_are_refused(folder, name, text, words):
    if text is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(text)
    with pytest.raises(ValueError, match=words) as caught:
        Folder.read(folder)
    assert "\n" not in str(caught.value)


def test_missing_folder(tmp_path):
    with pytest.raises(ValueError, match="is not a folder"):
        modmill.check(tmp_path / "nothing")


def test_parse_set():
    assert parse_set(["n=66", "base=2^n-u", "x=a=b"]) == {"n": "66", "base": "2^n-u", "x": "a=b"}
    for texts, words in ((["n"], "KEY=VALUE"), (["=3"], "KEY=VALUE"), (["n=1", "n=2"], "given twice")):
        with pytest.raises(UnsupportedError, match=words):
            parse_set(texts)


def test_explain(core):
    text = core.explain()
    for words in ("Cryptography", "latency", "cycle", "mul1", "congruent modulo p", "kappa"):
        assert words in text
    assert "NOT" not in text


def test_the_example_of_the_interface():
    assert doctest.testmod(modmill) == (0, 5)


def test_the_interface_is_lazy_and_complete():
    assert {d.name for d in modmill.DESIGNS} >= {"sor-1m-p", "sor-2m"}
    assert any(m.name == "secp256k1" for m in modmill.MODULI)
    assert any(t.name == "ecp5-85k" for t in modmill.TARGETS)
    for name in modmill.__all__:
        assert getattr(modmill, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        modmill.nothing  # noqa: B018
