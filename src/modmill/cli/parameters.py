# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The command ``modmill parameters``: the search for the parameters of a method."""

from __future__ import annotations

import json

from modmill.cli.command import command, group
from modmill.cli.options import Json, Modulus, Set
from modmill.cli.progress import show

app = group("Search the parameters of a method for a modulus, and show the choice.")


@app.callback()
def _group() -> None:
    pass


@command(app, "parameters sor -m secp256k1", "parameters sor -m P-256 --set n=20")
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
    show("searching q, Delta and T")
    found = search(wanted.value, design(DESIGN).checked(parse_set(sets)))
    if as_json:
        print(json.dumps({"modulus_name": wanted.name, **found.describe()}, indent=2))
        return
    for line in found.lines(wanted.name or f"a {wanted.bits}-bit modulus"):
        print(line)
