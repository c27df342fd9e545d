# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The commands ``modmill ecc build``, ``check`` and ``race``: coprocessors around any multiplier."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from modmill.cli.ecc import AllowPairing, read_curve
from modmill.cli.options import Floorplan, Output, Record, Route, Router, Seeds, Set, Target
from modmill.cli.rsa import verdict

if TYPE_CHECKING:
    from modmill.numbers.curves.affine import Curve

Io = Annotated[str, typer.Option(help="Form of the multiplier: native or binary; default: one that allows sums.")]
Window = Annotated[int, typer.Option(min=1, max=6, help="Bits of a digit of a scalar.")]
Teeth = Annotated[int, typer.Option(min=1, max=8, help="Teeth of the comb for the base point.")]
Columns = Annotated[int, typer.Option(min=1, max=8, help="Tables of the comb.")]
Joint = Annotated[bool, typer.Option("--joint/--no-joint", help="One table for both halves of a scalar.")]
Threads = Annotated[int, typer.Option(min=0, max=64, help="Runs interleaved; 0: as many as fill the multiplier.")]
Sums = Annotated[int, typer.Option(min=0, max=8, help="Most sums in a row.")]
Word = Annotated[int, typer.Option(min=8, max=64, help="Bits of a word of the streams.")]
Cores = Annotated[int, typer.Option(min=1, max=64, help="Machines side by side behind one pair of streams.")]


def build(
    curve: Annotated[str, typer.Option("--curve", metavar="CURVE", help="A name, parameters, or a PEM file.")],
    multiplier: Annotated[
        str, typer.Option("--multiplier", metavar="DESIGN", help="A design; `modmill designs` lists them.")
    ] = "montgomery-array",
    operations: Annotated[
        list[str],
        typer.Option(
            "--operation", help="multiply, multiply-base, multiply-two or ladder; repeatable. Default: the first."
        ),
    ] = [],  # noqa: B006
    sets: Set = [],  # noqa: B006 - typer reads the default, nothing changes it
    io: Io = "",
    blind: Annotated[int, typer.Option(min=0, max=128, help="Largest number of bits of a scalar's blinding.")] = 0,
    window: Window = 4,
    teeth: Teeth = 5,
    columns: Columns = 2,
    joint: Joint = False,
    threads: Threads = 0,
    sums: Sums = 3,
    word: Word = 32,
    cores: Cores = 1,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Folder to write.")] = None,
    top: Annotated[str, typer.Option(help="Name of the Verilog module, and prefix of its submodules.")] = "ecc",
    order: Annotated[
        bool | None,
        typer.Option("--order/--no-order", help="Also arithmetic modulo n for signatures. Default: if n is loadable."),
    ] = None,
    allow_pairing: AllowPairing = False,
) -> None:
    """Emit a coprocessor: Verilog, its messages, and vectors."""
    import shlex

    from modmill.cores.ecc.machine import ecc, takes_order
    from modmill.design import parse_set
    from modmill.engines.ecc.point_engine import Shape
    from modmill.flow.emit import require_name
    from modmill.numbers.curves.affine import Montgomery
    from modmill.studies.race.ecc import operation_of

    require_name(top)
    on = read_curve(curve, pairing=allow_pairing)
    bits = (on.p if isinstance(on, Montgomery) else on.n).bit_length() + blind
    chosen = tuple(dict.fromkeys(operation_of(on, name) for name in operations))
    with_order = takes_order(on, multiplier, parse_set(sets), chosen) if order is None else order
    core = ecc(
        on, multiplier, parse_set(sets), operations=chosen, bits=bits, shape=Shape(window, teeth, columns, joint),
        threads=threads, sums=sums, word=word, io=io, top=top, cores=cores, order=with_order,
    )  # fmt: skip
    if on.arithmetic:
        print(f"modmill: {on.title}: arithmetic only, no ECDH or ECDSA: {on.unsuited()}", file=sys.stderr)
    words: list[object] = ["--curve", curve, "--multiplier", multiplier]
    words += ["--allow-pairing"] if allow_pairing else []
    words += [w for name in core.operations for w in ("--operation", name)]
    words += [w for s in sets for w in ("--set", s)]
    words += ["--io", core.io, "--blind", blind, "--window", window, "--teeth", teeth, "--columns", columns]
    words += [*(["--joint"] if joint else []), "--threads", core.layout.threads, "--sums", sums, "--word", word]
    words += ["--order" if core.order else "--no-order"]
    words += [*(["--cores", cores] if cores > 1 else []), *(["--top", top] if top != "ecc" else [])]
    folder = core.write(
        output or Path(f"ecc-{on.name}-{multiplier}"), shlex.join(["modmill", "ecc", "build", *map(str, words)])
    )
    cycles = ", ".join(f"{name} {core.cycles(name):,} cycles" for name in core.jobs)
    machines = f"{cores} machines, " if cores > 1 else ""
    print(
        f"{folder}: {on.title}, {multiplier}, {machines}{core.layout.threads} runs interleaved, {cycles}, "
        f"{cores * core.fitted.cost.dsp:,} DSP blocks predicted"
    )


def check(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that `modmill ecc build` wrote.")],
) -> None:
    """Verify a built coprocessor: its files, its results, its time. Status 1 if it fails."""
    from modmill.cores.ecc.check import check_ecc

    verdict(check_ecc(folder))


def race(
    curve: Annotated[str, typer.Argument(metavar="CURVE", help="A name, parameters, or a PEM file.")],
    operation: Annotated[
        str, typer.Option(help="scalar-multiplication, multiply, multiply-base, multiply-two or ladder.")
    ] = "scalar-multiplication",
    multiplier: Annotated[
        list[str], typer.Option("--multiplier", metavar="DESIGN", help="Race only this design; repeatable.")
    ] = [],  # noqa: B006
    sets: Set = [],  # noqa: B006 - typer reads the default, nothing changes it
    io: Io = "",
    window: Window = 4,
    teeth: Teeth = 5,
    columns: Columns = 2,
    joint: Joint = False,
    threads: Threads = 0,
    sums: Sums = 3,
    word: Word = 32,
    cores: Cores = 1,
    target: Target = "ecp5-85k",
    route: Route = False,
    router: Router = "",
    seeds: Seeds = 3,
    floorplan: Floorplan = False,
    output: Output = None,
    record: Record = None,
) -> None:
    """Race whole coprocessors around several multipliers: simulated, synthesised, routed; operations per second."""
    from modmill.design import parse_set
    from modmill.engines.ecc.point_engine import Shape

    race_curve(
        read_curve(curve), operation, multiplier, output, target=target, settings=parse_set(sets), with_route=route,
        router=router, seeds=seeds, record=record, io=io, shape=Shape(window, teeth, columns, joint), threads=threads,
        sums=sums, word=word, cores=cores, floorplan=floorplan,
    )  # fmt: skip


def race_curve(
    curve: Curve, operation: str, multipliers: list[str], output: Path | None, *, target: str, **options: Any
) -> None:
    """Race coprocessors and print the table; ``options`` as in `race_operation`.

    Raises typer.Exit with status 1 if an engine has no check row.
    """
    import json

    from rich.console import Console

    from modmill.report import engines as report
    from modmill.studies.race.ecc import race_operation

    console = Console(width=None if sys.stdout.isatty() else 150, highlight=False, markup=False)
    status = Console(stderr=True)
    with status.status("") as line:
        found, refused = race_operation(curve, operation, multipliers, target=target, progress=line.update, **options)
    if str(output) != "-":
        console.print(report.table(found, f"{curve.title}, {operation}, on {target}"))
        print("\n".join(["", *report.footnotes(found), *refused]))
    if output is not None:
        text = json.dumps(
            {"curve": curve.title, "operation": operation, "target": target, "engines": [s.describe() for s in found]},
            indent=2,
        )
        print(text) if str(output) == "-" else output.write_text(text + "\n", encoding="utf-8")
    if any(s.check is None for s in found):
        raise typer.Exit(1)
