# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The command ``modmill rsa vectors``: published vectors through RSA on an engine's algorithm or its RTL."""

from __future__ import annotations

from typing import Annotated

import typer

from modmill.cli.ecc_vectors import Bar, Multiplier, Names, tell
from modmill.cli.options import Record, Set


def add_to(app: typer.Typer, bar: Bar) -> None:
    """Add the command."""

    @app.command()
    def vectors(
        engine: Annotated[
            str,
            typer.Option(help="model: on the design's contract; exact: on its algorithm; rtl: simulated."),
        ] = "exact",
        count: Annotated[int, typer.Option(min=0, help="Number of vectors from each file, evenly spaced; 0: all.")] = 0,
        multiplier: Multiplier = "montgomery-array",
        sets: Set = [],  # noqa: B006 - typer reads the default, nothing changes it
        names: Names = [],  # noqa: B006
        record: Record = None,
    ) -> None:
        """Run Wycheproof's vectors for RSA, with CRT, blinded and checked; status 1 if one has a wrong outcome."""
        from modmill.studies.vectors import rsa as study

        chosen = study.select(count, names)
        machine = study.machine(engine, multiplier, sets)
        with bar() as progress:
            tell(
                (f"{found.vectors.file}: {len(found.vectors.cases):,} vectors, "
                 f"{found.vectors.refused:,} left out for their length", found)
                for found in study.check(chosen, machine, progress=progress, record=record)
            )  # fmt: skip
