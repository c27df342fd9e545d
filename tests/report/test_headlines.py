# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The README's tables name the best rows, and their commands build the engines of these rows."""

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from modmill.cli.commands import app
from modmill.cores.ecc.machine import EccCore
from modmill.cores.rsa.machine import EngineCore
from modmill.report.engine_rows import measured_engines
from modmill.report.headlines import (
    DSP,
    OPERATIONS,
    PRODUCTS,
    RATE,
    best_engine,
    headlines,
    operations,
    product,
    serves,
)
from modmill.report.result_tables import ENGINES_ON, all_rows
from modmill.report.rows import append, read

ROWS = all_rows(Path(__file__).resolve().parents[2] / "results")
FOLDER = Path(__file__).resolve().parents[2] / "results"


def test_every_line_has_a_result_and_a_changed_number_is_seen(tmp_path):
    for path in FOLDER.glob("*.jsonl"):
        for row in read(path):
            faster = {**row.values, "mhz": 999.0} if row.kind == "route" else row.values
            append(tmp_path / path.name, replace(row, values=faster))
    shipped, changed, lines = headlines(FOLDER), headlines(tmp_path), len(PRODUCTS) + len(OPERATIONS)
    assert shipped.count("\n") == lines + 2 and "| - |" not in shipped
    assert changed.count("999.0") == lines
    assert operations(FOLDER).count("`./mill ") == len(OPERATIONS)
    assert headlines(tmp_path / "none").count("\n") == operations(tmp_path / "none").count("\n") == 2


@pytest.mark.parametrize(
    ("line", "design"),
    list(
        zip(
            PRODUCTS, ("karatsuba-two-level", "karatsuba-two-level-solinas", *["karatsuba-montgomery"] * 2), strict=True
        )
    ),
)
def test_the_best_multiplier_serves_the_modulus(line, design):
    assert f"`{design}`" in product(ROWS, *line)


def test_a_design_for_special_moduli_does_not_stand_for_any_modulus():
    """Planted: without the question whether it serves a dense modulus, `karatsuba` would be the best for secp256k1."""
    p = 2**256 - 2**32 - 977
    assert serves("karatsuba", p) and not serves("karatsuba", 2**256 - 2**255 // 3 * 2 + 1)


@pytest.mark.parametrize(("work", "goal"), [(work, goal) for _, work, goal, _ in OPERATIONS])
def test_no_other_engine_is_better(work, goal):
    found = [e for e in measured_engines(ROWS) if e.work == work and e.target == ENGINES_ON and e.fits and e.routes]
    best = best_engine(ROWS, work, goal)
    for e in found:
        if goal in (DSP, RATE):
            key = "per_dsp" if goal == DSP else "rate"
            assert (e.numbers[key] or 0) <= best.numbers[key]
        else:
            assert e.numbers["ms"] >= best.numbers["ms"]


@pytest.mark.parametrize(("work", "goal"), [(work, goal) for _, work, goal, _ in OPERATIONS])
def test_the_command_builds_the_engine_of_the_rows(work, goal, monkeypatch):
    best, seen = best_engine(ROWS, work, goal), []

    def write(core, folder, command):
        seen.append(core.about())
        return folder

    for kind in (EccCore, EngineCore):
        monkeypatch.setattr(kind, "write", write)
    done = CliRunner().invoke(app, [*best.build, "-o", "unwritten"])
    assert done.exit_code == 0, done.output
    today, then = (json.loads(json.dumps({k: v for k, v in about.items() if k not in ("date", "engine")}))
                   for about in (*seen, best.about))  # fmt: skip
    today["parameters"] = {k: v for k, v in today["parameters"].items() if k in then["parameters"]}
    today["shape"] = {k: v for k, v in today.get("shape", {}).items() if k in then.get("shape", {})}
    assert today == {"shape": {}, **then}
    assert shlex.join(best.build) in operations(FOLDER)
