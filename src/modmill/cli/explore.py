# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The command ``modmill explore``: random cores of every design, built and checked."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Annotated

import typer

from modmill.cli.options import Designs, Json, Record
from modmill.cli.output import recorded
from modmill.cli.progress import show
from modmill.parts import need

if TYPE_CHECKING:
    from modmill.studies.explore import Found

_SHOWN = 20
"""Largest number of listed classes of settings that came up too seldom."""


def explore(
    seconds: Annotated[int, typer.Option(min=1, max=1_000_000, help="Time limit; running cores finish.")] = 600,
    seed: Annotated[
        int | None, typer.Option(min=0, help="The same seed tries the same cores; default: random.")
    ] = None,
    design: Designs = [],  # noqa: B006
    engines: Annotated[
        bool, typer.Option(help="Also RSA and ECC engines, in a quarter of the time; none with --design.")
    ] = True,
    record: Record = None,
    as_json: Json = False,
) -> None:
    """Build and check random cores: every design, setting and form, moduli of 2 to 521 bits. Status 1 if one fails.

    A failure is shrunk to a small modulus and few settings and printed with the command that reproduces it.
    """
    need("explore")
    from modmill.designs import design as find_design
    from modmill.studies.explore import explore as explored

    design = [find_design(name).name for name in design]
    chosen = random.SystemRandom().randrange(1_000_000) if seed is None else seed
    found = explored(seconds, chosen, design, engines=engines and not design, progress=show, record=record)
    print(json.dumps(found.describe(), indent=2)) if as_json else _tell(found)
    recorded(record)
    if found.interrupted:
        raise typer.Exit(130)
    if found.failures:
        raise typer.Exit(1)


def _tell(found: Found) -> None:
    from modmill.studies.exploring.space import OFTEN

    print(found.line)
    for name, counts in found.designs.items():
        print(f"  {name:<18}", ", ".join(f"{count:>4} {kind}" for kind, count in counts.items()))
    if found.below:
        shown = [f"{what} ({times})" for what, times in list(found.below.items())[:_SHOWN]]
        more = f" and {len(found.below) - _SHOWN} more, see --json" if len(found.below) > _SHOWN else ""
        print(f"built less than {OFTEN} times: {', '.join(shown)}{more}")
    for failure in found.failures:
        print(f"{failure.outcome.kind}: {failure.outcome.text}")
        print(f"  {failure.command}")
        if failure.smaller != failure.case:
            print(f"  found with {failure.describe()['found_with']}")
