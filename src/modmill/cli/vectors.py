# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The commands ``modmill ecc vectors``, ``timing``, ``results`` and ``modmill rsa vectors``: published vectors through
an engine's algorithm or its RTL, the cycles of its RTL for many scalars, and the recorded rows of both."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from modmill.cli import complete
from modmill.cli.ecc import read_curve
from modmill.cli.options import Columns, CurveText, Io, Multiplier, Record, Set, Teeth, Threads, Window
from modmill.cli.output import recorded
from modmill.cli.progress import keep, show

if TYPE_CHECKING:
    from modmill.studies.vectors.runner import Outcome

Names = Annotated[
    list[str], typer.Option("--file", metavar="TEXT", help="Only files whose names contain it; repeatable.")
]


def tell(outcomes: Iterable[tuple[str, Outcome[Any]]], record: Path | None) -> None:
    """Print each file as it is judged, behind what it is called, and the sum; status 1 if an outcome is wrong."""
    wrong = total = 0
    for name, found in outcomes:
        faults = found.faults
        print(f"{name}, {len(faults):,} faults, {found.seconds:.1f} s", *faults[:5], sep="\n    ", flush=True)
        total += len(found.vectors.cases)
        wrong += len(faults)
    print(f"{total:,} vectors, {wrong:,} faults")
    recorded(record)
    if wrong:
        raise typer.Exit(1)


def results(
    file: Annotated[
        list[Path],
        typer.Option("--file", metavar="FILE", help="A results file; repeatable. Default: the shipped files."),
    ] = [],  # noqa: B006
) -> None:
    """Print the recorded vectors and times, and the gain of HBE over KBE, as tables."""
    from modmill.report.ecc_rows import gain_table, timing_table, vectors_table
    from modmill.report.rows import read, shipped_folder

    paths = file or sorted(shipped_folder().glob("*.jsonl"))
    rows = [row for path in paths for row in read(path)]
    print("\n".join([*vectors_table(rows), "", *timing_table(rows), "", *gain_table(rows)]))


def timing(
    curve: CurveText,
    multiplier: Multiplier = "montgomery-array",
    scalars: Annotated[int, typer.Option(min=1, help="Number of different scalars, the chosen ones first.")] = 1000,
    operations: Annotated[
        list[str], typer.Option("--operation", help="Build a core for this operation; repeatable. Default: all.")
    ] = [],  # noqa: B006
    sets: Set = [],  # noqa: B006
    io: Io = "",
    window: Window = 4,
    teeth: Teeth = 5,
    columns: Columns = 2,
    threads: Threads = 0,
    order: Annotated[
        bool, typer.Option("--order/--no-order", help="Also arithmetic modulo n for signatures, on the same core.")
    ] = False,
    only: Annotated[
        list[str], typer.Option("--only", metavar="NAME", help="Measure only this operation; repeatable.")
    ] = [],  # noqa: B006
    record: Record = None,
) -> None:
    """Measure the cycles of each operation in simulated hardware for many scalars; status 1 if they differ."""
    from modmill.cores.ecc.machine import ecc
    from modmill.design import parse_set
    from modmill.engines.ecc.point_engine import OPERATIONS, Shape
    from modmill.numbers.curves.affine import Montgomery
    from modmill.studies.vectors.ecc_timing import timings

    on = read_curve(curve)
    every = OPERATIONS[3:] if isinstance(on, Montgomery) else OPERATIONS[:3]
    core = ecc(
        on, multiplier, parse_set(sets), operations=tuple(dict.fromkeys(operations)) or every, io=io,
        shape=Shape(window, teeth, columns), threads=threads, order=order,
    )  # fmt: skip
    print(f"{on.title}, {multiplier}, {core.layout.threads} runs interleaved", flush=True)
    failed = False
    for found in timings(core, only, scalars, progress=show, record=record):
        print(found.line, flush=True)
        failed |= bool(found.fault)
    recorded(record)
    if failed:
        raise typer.Exit(1)


def vectors(
    curves: Annotated[
        list[str],
        typer.Option(
            "--curve",
            metavar="CURVE",
            help="Only this curve; repeatable. Default: all.",
            autocompletion=complete.curves,
        ),
    ] = [],  # noqa: B006 - typer reads the default, nothing changes it
    engine: Annotated[str, typer.Option(help="exact: the design's bit-exact algorithm; rtl: simulated RTL.")] = "exact",
    count: Annotated[
        int, typer.Option(min=0, help="Number of vectors for each curve and operation, rare flags first; 0: all.")
    ] = 0,
    multiplier: Multiplier = "montgomery-array",
    sets: Set = [],  # noqa: B006
    io: Io = "",
    threads: Threads = 0,
    order: Annotated[
        bool, typer.Option("--order/--no-order", help="Arithmetic modulo n on the same core, if it can load n.")
    ] = False,
    names: Names = [],  # noqa: B006
    record: Record = None,
) -> None:
    """Run the vectors of Wycheproof, NIST and the RFCs on a coprocessor; status 1 if one has a wrong outcome."""
    from modmill.design import parse_set
    from modmill.studies.vectors import ecc as study

    keep("the rows of finished files are kept")
    chosen = study.select(list(map(read_curve, curves)), count, names)
    make = partial(
        study.machine, kind=engine, design=multiplier, settings=parse_set(sets), io=io, threads=threads,
        order=order,
    )  # fmt: skip
    tell((
        (f"{found.vectors.curve.title}, {found.vectors.file}: {len(found.vectors.cases):,} vectors, "
         f"{found.runs:,} runs", found)
        for found in study.check(chosen, make, progress=show, record=record)
    ), record)  # fmt: skip


def rsa_vectors(
    engine: Annotated[
        str, typer.Option(help="model: on the design's contract; exact: on its algorithm; rtl: simulated.")
    ] = "exact",
    count: Annotated[int, typer.Option(min=0, help="Number of vectors from each file, evenly spaced; 0: all.")] = 0,
    multiplier: Multiplier = "montgomery-array",
    sets: Set = [],  # noqa: B006 - typer reads the default, nothing changes it
    names: Names = [],  # noqa: B006
    record: Record = None,
) -> None:
    """Run Wycheproof's vectors for RSA, with CRT, blinded and checked; status 1 if one has a wrong outcome."""
    from modmill.studies.vectors import rsa as study

    keep("the rows of finished files are kept")
    chosen = study.select(count, names)
    machine = study.machine(engine, multiplier, sets)
    tell((
        (f"{found.vectors.file}: {len(found.vectors.cases):,} vectors, "
         f"{found.vectors.refused:,} left out for their length", found)
        for found in study.check(chosen, machine, progress=show, record=record)
    ), record)  # fmt: skip
