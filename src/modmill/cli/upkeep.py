# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Hidden commands that rewrite files of this repository."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from modmill.cli.progress import show


def readme(
    path: Annotated[Path, typer.Argument(metavar="README")] = Path("README.md"),
    check: Annotated[
        bool, typer.Option("--check", help="Only check whether it is up to date (status 1 if not).")
    ] = False,
    replay: Annotated[bool, typer.Option("--replay", help="Also run the README's commands for their outputs.")] = False,
) -> None:
    """Rewrite from the shipped rows the README's results and picture, docs/results.md, the tables of docs/attacks.md,
    docs/buses.md and docs/boards.md; and the picture of docs/architecture.md, docs/errata.md and docs/papers.md."""
    from modmill.report.architecture import redrawn
    from modmill.report.errata import markdown
    from modmill.report.leakage_picture import shipped_picture
    from modmill.report.readme import pages, replayed, rewritten
    from modmill.report.rows import read, shipped_folder
    from modmill.soc.bitstream import rows_table
    from modmill.studies import bus
    from modmill.studies.papers import items
    from modmill.studies.papers.errata import ERRATA
    from modmill.studies.race.measured_cores import race_picture

    house = path.parent / "docs" / "architecture.md"
    texts = {
        **pages(path.parent, shipped_folder()),
        path.parent / "docs" / "race.svg": race_picture(shipped_folder()),
        path.parent / "docs" / "leakage.svg": shipped_picture(shipped_folder()),
        path.parent / "docs" / "errata.md": markdown(ERRATA.values()),
        path.parent / "docs" / "papers.md": items.markdown(),
    }
    for name, part, table in (
        ("buses", "fronts", bus.rows_table), ("buses", "clocks", bus.clocks_table),
        ("boards", "bitstreams", rows_table),
    ):  # fmt: skip
        page = path.parent / "docs" / f"{name}.md"
        lines = table(read(shipped_folder() / f"{name}.jsonl"))
        texts[page] = rewritten(texts.get(page) or page.read_text(encoding="utf-8"), "\n".join([*lines, ""]), part)
    if replay:
        with tempfile.TemporaryDirectory() as folder:
            texts[path] = replayed(texts[path], lambda words: _output(words, folder))
    if house.exists():
        texts[house] = redrawn(house.read_text(encoding="utf-8"), Path(__file__).resolve().parents[1])
    if check:
        raise typer.Exit(int(any(not p.exists() or p.read_text(encoding="utf-8") != t for p, t in texts.items())))
    for place, text in texts.items():
        place.write_text(text, encoding="utf-8")


def _output(words: Sequence[str], folder: str) -> str:
    """What this command prints in a folder for these arguments."""
    command = [sys.executable, "-m", "modmill", *words]
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout


def digests() -> None:
    """Emit every multiplier that shipped rows describe and write results/digests.json (minutes)."""
    from modmill.studies.race.known import ship

    print(f"{ship(show)} digests")


def placements() -> None:
    """Solve the shipped schedules again and rewrite them (minutes)."""
    from modmill.studies.race.placements import solve_all

    print(f"{solve_all(show)} placements")
