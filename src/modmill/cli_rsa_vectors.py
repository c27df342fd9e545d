# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The command ``modmill rsa vectors``: published vectors through RSA on an engine's algorithm or its RTL."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated

import typer

Bar = Callable[[], AbstractContextManager[Callable[[str, int, int], None]]]
"""What shows the progress of a command."""


def add_to(app: typer.Typer, bar: Bar) -> None:
    """Add the command."""

    @app.command()
    def vectors(
        engine: Annotated[
            str,
            typer.Option(help="model: on the design's contract; exact: on its algorithm; rtl: simulated."),
        ] = "exact",
        count: Annotated[int, typer.Option(min=0, help="So many of each file, spread evenly; 0: all.")] = 0,
        multiplier: Annotated[
            str, typer.Option(metavar="DESIGN", help="A design; `modmill designs` lists them.")
        ] = "montgomery-array",
        sets: Annotated[
            list[str], typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the design; repeatable.")
        ] = [],  # noqa: B006 - typer reads the default, nothing changes it
        names: Annotated[
            list[str], typer.Option("--file", metavar="TEXT", help="Only files whose names contain it; repeatable.")
        ] = [],  # noqa: B006
        record: Annotated[Path | None, typer.Option(metavar="FILE", help="Add the rows to a results file.")] = None,
    ) -> None:
        """Wycheproof's vectors for RSA, with CRT, blinded and checked; status 1 if one has a wrong outcome."""
        from modmill.studies import rsa_vectors as study

        chosen = study.select(count, names)
        machine = study.machine(engine, multiplier, sets)
        wrong = total = 0
        with bar() as progress:
            for found in study.check(chosen, machine, progress=progress, record=record):
                one = found.vectors
                print(
                    f"{one.file}: {len(one.cases):,} vectors, {one.refused:,} left out for their length, "
                    f"{len(found.faults):,} faults, {found.seconds:.1f} s",
                    *found.faults[:5], sep="\n    ", flush=True,
                )  # fmt: skip
                total += len(one.cases)
                wrong += len(found.faults)
        print(f"{total:,} vectors, {wrong:,} faults")
        if wrong:
            raise typer.Exit(1)
