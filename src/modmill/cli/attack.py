# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The commands ``modmill attack``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from modmill.cli import complete
from modmill.cli.command import command, group
from modmill.cli.options import Json, Record
from modmill.cli.output import recorded
from modmill.cli.progress import keep, show

app = group("Attacks on an engine, in simulation of its netlist.")


@command(app, "attack faults ecc-core --count 1000", "attack faults rsa-core --exponent-bits 16 --seed 2")
def faults(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that rsa build or ecc build wrote.")],
    count: Annotated[int, typer.Option(min=1, max=10_000_000, help="Number of faults, one in each run.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of numbers and faults; the same seed, the same faults.")] = 1,
    operation: Annotated[
        str,
        typer.Option(help="Of a coprocessor of a curve; default: its first.", autocompletion=complete.operations),
    ] = "",
    exponent_bits: Annotated[
        int, typer.Option(min=0, help="Length of an RSA engine's exponents; 0: 48, or its longest if that is less.")
    ] = 0,
    jobs: Annotated[int, typer.Option(min=0, max=256, help="Threads; 0: one for each processor.")] = 0,
    as_json: Json = False,
    record: Record = None,
) -> None:
    """Plant a fault in a random register or memory in a random cycle of an operation, one in each run.

    A bit flips or sticks, or a register misses a clock edge. Status 1 if a wrong result leaves the engine.
    """
    from modmill.report.rows import put
    from modmill.studies.attack.campaign import run
    from modmill.studies.attack.operation import read

    show(f"reading {folder}")
    keep("finished faults are kept; the same command goes on from them")
    report = run(
        read(folder, operation, exponent_bits, seed), count, seed, jobs=jobs, name=folder.resolve().name, progress=show
    )
    if record is not None:
        put(record, report.row())
        recorded(record)
    print(json.dumps(report.describe(), indent=2) if as_json else "\n".join(report.lines))
    if report.released:
        raise typer.Exit(1)
