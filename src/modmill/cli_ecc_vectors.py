# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The command ``modmill ecc vectors``: published vectors through a coprocessor's algorithm or its RTL."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from modmill.cli_ecc import read_curve

Bar = Callable[[], AbstractContextManager[Callable[[str, int, int], None]]]
"""What shows the progress of a command."""


def add_to(app: typer.Typer, bar: Bar) -> None:
    """Add the command."""

    @app.command()
    def vectors(
        curves: Annotated[
            list[str], typer.Option("--curve", metavar="CURVE", help="Only this one; repeatable. Default: all.")
        ] = [],  # noqa: B006 - typer reads the default, nothing changes it
        engine: Annotated[
            str, typer.Option(help="exact: the design's algorithm bit by bit; rtl: simulated.")
        ] = "exact",
        count: Annotated[
            int, typer.Option(min=0, help="So many of each curve and operation, those with rare flags first; 0: all.")
        ] = 0,
        multiplier: Annotated[
            str, typer.Option(metavar="DESIGN", help="A design; `modmill designs` lists them.")
        ] = "montgomery-array",
        sets: Annotated[
            list[str], typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the design; repeatable.")
        ] = [],  # noqa: B006
        io: Annotated[
            str, typer.Option(help="Form of the multiplier: native or binary; default: what can be added.")
        ] = "",
        contexts: Annotated[int, typer.Option(min=0, max=64, help="Runs in step; 0: as many as keep it busy.")] = 0,
        names: Annotated[
            list[str], typer.Option("--file", metavar="TEXT", help="Only files whose names contain it; repeatable.")
        ] = [],  # noqa: B006
        record: Annotated[Path | None, typer.Option(metavar="FILE", help="Add the rows to a results file.")] = None,
    ) -> None:
        """Wycheproof, NIST's and the RFCs' vectors through a coprocessor; status 1 if one has a wrong outcome."""
        from modmill.studies import ecc_vectors as study
        from modmill.studies.build import parse_set

        chosen = study.select(list(map(read_curve, curves)), count, names)
        make = partial(
            study.machine, kind=engine, design=multiplier, settings=parse_set(sets), io=io, contexts=contexts
        )
        wrong = total = 0
        with bar() as progress:
            for found in study.check(chosen, make, progress=progress, record=record):
                one = found.vectors
                print(
                    f"{one.curve.title}, {one.file}: {len(one.cases):,} vectors, {found.runs:,} runs, "
                    f"{len(found.faults):,} faults, {found.seconds:.1f} s",
                    *found.faults[:5], sep="\n    ", flush=True,
                )  # fmt: skip
                total += len(one.cases)
                wrong += len(found.faults)
        print(f"{total:,} vectors, {wrong:,} faults")
        if wrong:
            raise typer.Exit(1)
