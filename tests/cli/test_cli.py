# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The command: what it prints, its statuses, and one clear line for everything that it refuses."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command import modmill, process, refused

from modmill import __version__
from modmill.designs import DESIGNS

ROOT = Path(__file__).resolve().parents[2]
SMALL = ("sor-1m-p", "--modulus", "2^61-1", "--set", "n=20")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("cli")
    run = modmill("build", *SMALL, "--io", "native", "-o", "core", cwd=place)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("core: sor-1m-p-61bit-native, latency ")
    return place / "core"


def test_version():
    assert process("--version").stdout == f"modmill {__version__}\n"
    assert modmill("--version", "designs").stdout == f"modmill {__version__}\n"


def test_import_is_cheap():
    heavy = ("amaranth", "typer", "rich", "numpy", "jinja2")
    code = f"import sys, modmill; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_designs():
    found = json.loads(modmill("designs", "--json").stdout)
    assert [d["name"] for d in found] == [d.name for d in DESIGNS]
    for d in found:
        assert d["source"] and d["needs"] and d["title"]
        for parameter in d["parameters"]:
            assert parameter["meaning"]
            assert "default" in parameter
    text = modmill("designs").stdout
    lines = text.splitlines()
    assert [line.split()[0] for line in lines[: len(DESIGNS)]] == [d.name for d in DESIGNS]
    assert all(d.title in line for d, line in zip(DESIGNS, lines, strict=False))


@pytest.mark.parametrize("d", DESIGNS, ids=lambda d: d.name)
def test_one_design(d):
    text = modmill("designs", d.name).stdout
    flat = " ".join(text.split())
    assert text.startswith(f"{d.name}") and d.title in flat and str(d.source) in flat and d.needs in flat
    assert (ROOT / f"docs/designs/{d.page}.md").exists() and f"docs/designs/{d.page}.md" in flat
    for s in d.settings:
        assert f"--set {s.name}={s.default}" in flat and s.meaning in flat and s.accepts in flat and s.depends in flat
    assert json.loads(modmill("designs", d.name, "--json").stdout)["name"] == d.name


def test_moduli_and_targets():
    found = json.loads(modmill("moduli", "--json").stdout)
    assert {"name": "secp256k1", "bits": 256}.items() <= next(m for m in found if m["name"] == "secp256k1").items()
    assert "BLS12-381-p" in modmill("moduli").stdout
    assert next(t for t in json.loads(modmill("targets", "--json").stdout) if t["default"])["name"] == "ecp5-85k"
    assert "xc7z020" in modmill("targets").stdout


def test_explain():
    for width in (60, 140):
        run = modmill("explain", *SMALL, "--width", width)
        assert run.returncode == 0, run.stderr
        assert "mul1" in run.stdout and "congruent modulo p" in run.stdout
        chart = run.stdout[run.stdout.index("\ncycle") : run.stdout.index("\nExample")]
        assert max(map(len, chart.splitlines())) <= width


def test_build_writes_into_a_folder_named_after_the_core(tmp_path):
    run = modmill("build", *SMALL, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert [f.name for f in tmp_path.iterdir()] == ["sor-1m-p-61bit-plain"]
    assert "--set n=20 --io plain" in (tmp_path / "sor-1m-p-61bit-plain" / "core.v").read_text()[:400]


def test_the_command_in_a_file_makes_the_file(folder, tmp_path):
    record = json.loads((folder / "contract.json").read_text())
    run = modmill(*record["command"].split()[1:], "-o", tmp_path / "again")
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "again" / "core.v").read_text() == (folder / "core.v").read_text()


def test_check_passes_and_fails(folder, tmp_path):
    run = modmill("check", folder, "--vectors", 50)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.startswith("PASS sor-1m-p-61bit-native: ") and run.stdout.count("\n") == 1
    record = json.loads((folder / "contract.json").read_text())
    bad = tmp_path / "bad"
    bad.mkdir()
    for file in folder.iterdir():
        if file.is_file():
            (bad / file.name).write_text(file.read_text())
    (bad / "contract.json").write_text(json.dumps(record | {"latency": 3}, indent=2) + "\n")
    run = modmill("check", bad, "--vectors", 5)
    assert run.returncode == 1
    assert run.stdout.splitlines()[0].startswith("FAIL sor-1m-p-61bit-native: 4 differences; ")
    assert "  contract.json: latency is 3, recomputed " in run.stdout
    run = modmill("check", bad, "--vectors", 5, "--json")
    assert run.returncode == 1
    assert json.loads(run.stdout)["passed"] is False
    (bad / "contract.json").write_text(json.dumps(record)[:200])
    assert "truncated" in refused("check", bad)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("build", "sor-1m-p", "-m", "98"), "must be odd"),
        (("build", "sor-1m-p", "-m", "1"), "at least 3"),
        (("build", "sor-1m-p", "-m", "2^9000-1"), "8192"),
        (("build", "sor-1m-p", "-m", "secp256"), "no modulus is named"),
        (("build", "sor-1m-p", "-m", ""), "empty"),
        (("build", "sor-9", "-m", "97"), "no design is called 'sor-9'"),
        (("build", "sor-1m-p", "-m", "97", "--set", "nn=3"), "no parameter 'nn'"),
        (("build", "sor-1m-p", "-m", "97", "--set", "n=many"), "n takes a whole number from 12 to 256, not 'many'"),
        (("build", "sor-1m-p", "-m", "97", "--set", "n=3"), "n takes a whole number from 12 to 256, not 3"),
        (("build", "sor-1m-p", "-m", "97", "--set", "io=native"), "no parameter 'io'"),
        (("build", "sor-1m-p", "-m", "97", "--top", "module"), "keyword"),
        (("race", "97", "--set", "n=x"), "not 'x'"),
        (("build", "sor-1m-p", "-m", "97", "--set", "n"), "KEY=VALUE"),
        (("build", "sor-1m-p", "-m", "97", "--io", "octal"), "io must be one of plain, montgomery, native"),
        (("build", "sor-1m-p"), "--modulus"),
        (("build", "sor-1m-p", "-m", "97", "--depth", "3"), "--depth"),
        (("build", "sor-1m-p", "-m", "97", "-o", "/dev/null/core"), "/dev/null"),
        (("build", "sor-1m-p", "-m", "97", "-o", "/proc/modmill/core"), "/proc/modmill"),
        (("build", "sor-1m-p", "-m", "97", "-o", "/dev"), "/dev holds "),
        (("build", "sor-1m-p", "-m", "97", "-o", "/dev/null"), "/dev/null is not a folder"),
        (("check", "nothing"), "nothing is not a folder"),
        (("check", "/dev"), "contract.json, engine.json, ecc.json is needed"),
        (("check", ".", "--vectors", "-1"), "--vectors takes a whole number from 0 to 10,000,000, not '-1'"),
        (("explain", "sor-1m-p", "-m", "98"), "must be odd"),
        (("race", "98"), "must be odd"),
        (("race", "97", "--design", "sor-9"), "no design is called"),
        (("race", "97", "--target", "abacus"), "abacus"),
        (("race", "97", "--io", "octal"), "io must be one of"),
        (("race", "97", "--set", "zz=3"), "a parameter 'zz'"),
        (("race", "97", "--target", "xc7z020", "--route"), "xc7z020 cannot be placed and routed"),
        (("race", "97", "--json", "x"), "--json prints to stdout"),
        (("race", "97", "--record", "/dev/null/x"), "/dev/null/x"),
        (("mill",), "no command 'mill'"),
        ((), "--help"),
    ],
)
def test_refusals_are_one_line(arguments, words, tmp_path):
    if not arguments:
        run = process()
        assert run.returncode == 2 and "Traceback" not in run.stderr
        return
    assert words in refused(*arguments, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_foreign_folder_is_refused_before_anything_is_built(tmp_path):
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "thesis.tex").write_text("x")
    assert "thesis.tex" in refused("build", *SMALL, "-o", "core", cwd=tmp_path)
    assert [f.name for f in tmp_path.rglob("*")] == ["core", "thesis.tex"]


def test_reader_that_goes_away_is_no_error():
    command = f"{sys.executable} -m modmill designs | head -n 1"
    run = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert run.stderr == ""
