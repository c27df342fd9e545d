# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The commands ``modmill attack``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from modmill.cli import complete
from modmill.cli.command import command, group
from modmill.cli.options import BlindCoordinates, BlindScalar, Json, Record, new_file
from modmill.cli.output import recorded
from modmill.cli.progress import keep, show

ExponentBits = Annotated[
    int, typer.Option(min=0, help="Length of an RSA engine's exponents; 0: 48, or its longest if that is less.")
]
BlindExponent = Annotated[
    int, typer.Option(min=0, max=256, help="Bits of a random multiple of the order that is added to exponents.")
]
Fixed = Annotated[
    Literal["key", "point", "message"],
    typer.Option(
        help="What half of the runs have alike; a point for coprocessors of curves, a message for RSA engines."
    ),
]
RandomBases = Annotated[
    bool, typer.Option("--random-bases", help="Each run draws the bases of residues; for bases=loaded.")
]
Plot = Annotated[Path | None, typer.Option(metavar="FILE", help="SVG file for |t| over the cycles.", callback=new_file)]
Jobs = Annotated[int, typer.Option(min=0, max=256, help="Threads; 0: one for each processor.")]

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
    exponent_bits: ExponentBits = 0,
    jobs: Jobs = 0,
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


@command(
    app, "attack leakage core", "attack leakage ecc-core --blind-scalar 64 --blind-coordinates --plot t.svg",
    "attack leakage ecc-core --control",
)  # fmt: skip
def leakage(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that build, rsa build or ecc build wrote.")],
    count: Annotated[int, typer.Option(min=0, max=10_000_000, help="Runs; 0: 10,000, or 100,000 of a multiplier.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of keys and numbers; the same seed, the same runs.")] = 1,
    operation: Annotated[
        str,
        typer.Option(
            help="Of a coprocessor of a curve; default: its first with a secret scalar.",
            autocompletion=complete.operations,
        ),
    ] = "",
    exponent_bits: ExponentBits = 0,
    fixed: Fixed = "key",
    begin: Annotated[
        int, typer.Option("--from", min=0, metavar="CYCLE", help="First cycle that counts, after public inputs.")
    ] = 0,
    blind_exponent: BlindExponent = 0,
    blind_scalar: BlindScalar = 0,
    blind_coordinates: BlindCoordinates = False,
    random_bases: RandomBases = False,
    order: Annotated[int, typer.Option(min=1, max=2, help="Highest order of a test that counts as a leak.")] = 2,
    nets: Annotated[bool, typer.Option("--nets", help="Also count the bits of nets that change (slower).")] = False,
    control: Annotated[
        bool, typer.Option("--control", help="Random keys in both groups, which must show no leak.")
    ] = False,
    plot: Plot = None,
    jobs: Jobs = 0,
    as_json: Json = False,
    record: Record = None,
) -> None:
    """Count the bits that change in each cycle of an operation, and test whether the counts depend on the key.

    Runs with one key are compared with runs with random keys, by Welch's t. Status 1 if a leak is found.
    """
    from modmill.report.leakage_picture import picture
    from modmill.report.rows import put
    from modmill.studies.attack.keys import read
    from modmill.studies.attack.leakage import run

    show(f"reading {folder}")
    subject = read(
        folder, operation, blind_scalar=blind_scalar, blind_coordinates=blind_coordinates,
        point=fixed == "point", message=fixed == "message", exponent_bits=exponent_bits,
        blind_exponent=blind_exponent, random_bases=random_bases,
    )  # fmt: skip
    keep("finished runs are kept; the same command goes on from them")
    report = run(
        subject, count or subject.usual, seed, nets=nets, control=control, order=order, begin=begin, jobs=jobs,
        name=folder.resolve().name, progress=show,
    )  # fmt: skip
    row = report.row()
    if record is not None:
        put(record, row)
        recorded(record)
    if plot is not None:
        plot.write_text(picture([row], report.title), encoding="utf-8")
    print(json.dumps(report.describe(), indent=2) if as_json else "\n".join(report.lines))
    if report.leaks:
        raise typer.Exit(1)
