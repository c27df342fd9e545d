# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The command ``modmill mutate``."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from modmill.cli.options import Json, Record
from modmill.cli.output import recorded
from modmill.cli.progress import show
from modmill.numbers.shown import near, shortened


def mutate(
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="A folder that build, rsa build or ecc build wrote.")
    ] = None,
    subject: Annotated[
        str,
        typer.Option(metavar="NAME", help="Instead of DIR: a design, rsa or ecc, as in the recorded rates."),
    ] = "",
    count: Annotated[int, typer.Option(min=1, max=10_000, help="Number of mutants.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draw; the same seed draws the same mutants.")] = 1,
    proof_seconds: Annotated[
        float,
        typer.Option(min=1, help="Seconds for each proof; four times that if all is exact."),
    ] = 20,
    as_json: Json = False,
    record: Record = None,
) -> None:
    """Plant small faults in a core, one at a time: `check` must find each, unless it is proved equivalent.

    Status 1 if a mutant survives.
    """
    from modmill.report.rows import put
    from modmill.studies.mutate import ENGINES, Subject, check_mutants, named_cores, write

    if (folder is None) == (not subject):
        raise ValueError("mutate takes either a folder DIR or --subject NAME")
    if subject and subject not in (names := [*ENGINES, *named_cores()]):
        hint = near(subject, names, "rsa, ecc and every design are, and the second core of some, as iddmm-2")
        raise ValueError(f"no core with recorded rates is called {shortened(subject)}; {hint}")
    show(f"reading {folder or subject}")
    with TemporaryDirectory(prefix="modmill-mutate-") as path:
        core = Subject.read(folder or write(subject, Path(path) / subject))
        report = check_mutants(core, count, seed, progress=show, proof_seconds=proof_seconds)
    if record is not None:
        put(record, report.row())
        recorded(record)
    print(json.dumps(report.describe(), indent=2) if as_json else "\n".join(report.lines))
    if report.survivors:
        raise typer.Exit(1)
