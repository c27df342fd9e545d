# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""``modmill bases --objective reduction``: the front of the cheapest reductions against the largest u."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from modmill.designs.cox_rower.kbe import MODULI
from modmill.numbers.moduli import Modulus
from modmill.numbers.rns.base_pairs import base_pair, deal, sufficiency
from modmill.numbers.rns.choice_of_moduli import signed_digits_of
from modmill.numbers.rns.reduction_front import Front, Point


def reduction(modulus: Modulus, width: int, columns: int, channels: int | None, *, as_json: bool) -> None:
    """Print the front for the number of moduli that the nearest ones need, and the choices of kbe and hbe. Errors as
    `base_pair` and `choose_moduli`."""
    p = modulus.value
    n = base_pair(p, width, columns, n=channels, even=False)[0].n
    points = [_described(point, p, columns) for point in Front(width, 2 * n, p).points()]
    choices = {name: found for name in MODULI if (found := _choice(name, p, width, columns, n))}
    if as_json:
        about = {"modulus": hex(p), "modulus_name": modulus.name, "width": width, "channels": n, "columns": columns}
        print(json.dumps({**about, "front": points, "choices": choices}, indent=2))
        return
    print(
        f"{modulus.name or f'a {modulus.bits}-bit modulus'}: {n} + {n} moduli 2^{width} - u, u odd, rows of {columns}"
    )
    print("The front of the fewest signed digits in all u, for each largest u, by CP-SAT:")
    print(f"{'largest u':>12} {'digits':>8} {'most in a u':>12} {'folds':>6}  {'suffices':<9} proved")
    for row in points:
        print(
            f"{row['largest_u']:>12,} {row['digits']:>8} {row['most_digits']:>12} {row['folds']:>6}  "
            f"{'yes' if row['suffices'] else 'no':<9} {'yes' if row['proved'] else 'no'}"
        )
    for name, chosen in choices.items():
        print(f"moduli={name} of kbe and hbe: largest u {chosen['largest_u']:,}, {chosen['digits']} signed digits")


def _described(point: Point, p: int, columns: int) -> dict[str, Any]:
    pair = deal([(1 << point.w) - u for u in point.u], columns)
    return {
        "largest_u": point.largest_u, "digits": point.weight, "most_digits": point.most_digits, "folds": point.folds,
        "suffices": sufficiency(pair, p).holds, "proved": point.proved, "u": list(point.u),
    }  # fmt: skip


def _choice(name: str, p: int, width: int, columns: int, n: int) -> Mapping[str, int] | None:
    """What a setting of the designs takes for n moduli; None if it has none that suffice."""
    for how in MODULI[name]:
        try:
            pair, _ = base_pair(p, width, columns, n=n, even=False, **how)
        except ValueError:
            continue
        return {"largest_u": pair.largest_u, "digits": signed_digits_of((*pair.a.u, *pair.b.u))}
    return None
