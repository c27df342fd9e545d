# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The command ``modmill parameters``: the search for the parameters of a method."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from modmill.cli.options import Json, Set

app = typer.Typer(no_args_is_help=True, help="Search the parameters of a method for a modulus, and show the choice.")

Modulus = Annotated[str, typer.Option("--modulus", "-m", help="As --modulus of `modmill build`.")]


@app.callback()
def _group() -> None:
    pass


@app.command()
def sor(
    modulus: Modulus,
    sets: Set = [],  # noqa: B006 - typer reads the default, nothing changes it
    as_json: Json = False,
) -> None:
    """Sum of residues: q, Delta and T for a base, what each costs and how often kappa is too small.

    --set takes n, base, operand, T and q of `sor-1m-p`.
    """
    from modmill.design import parse_set
    from modmill.designs import design
    from modmill.numbers.moduli import parse_modulus
    from modmill.studies.papers.sor_parameters import DESIGN, search

    wanted = parse_modulus(modulus)
    found = search(wanted.value, design(DESIGN).checked(parse_set(sets)))
    if as_json:
        print(json.dumps({"modulus_name": wanted.name, **found.describe()}, indent=2))
        return
    for line in found.lines(wanted.name or f"a {wanted.bits}-bit modulus"):
        print(line)
