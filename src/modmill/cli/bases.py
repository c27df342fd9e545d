# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The commands ``modmill bases``, with ``--objective reduction`` the front of the cheapest reductions against the
largest u, and ``modmill survey``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from modmill.cli.options import Json, Modulus
from modmill.cli.progress import show
from modmill.numbers.shown import shortened

if TYPE_CHECKING:
    from modmill.numbers import moduli
    from modmill.numbers.rns.base_pairs import BasePair, Sufficiency
    from modmill.numbers.rns.reduction_front import Point


def bases(
    modulus: Modulus,
    width: Annotated[int, typer.Option("--width", "-w", min=2, max=256, help="Channel width w in bits.")],
    columns: Annotated[int, typer.Option("--columns", "-c", min=1, help="Moduli in a row: 1 KBE, more HBE.")] = 1,
    channels: Annotated[int | None, typer.Option("--channels", "-n", min=1, help="Moduli in each base.")] = None,
    objective: Annotated[
        str, typer.Option(help="nearest: the smallest largest u; reduction: the front of fewest signed digits in u.")
    ] = "nearest",
    as_json: Json = False,
) -> None:
    """Print two bases for RNS Montgomery multiplication, with every inequality that proves them sufficient."""
    from modmill.contract import UnsupportedError
    from modmill.numbers.moduli import parse_modulus
    from modmill.numbers.rns.base_pairs import base_pair

    wanted = parse_modulus(modulus)
    if objective not in ("nearest", "reduction"):
        raise UnsupportedError(f"--objective takes nearest or reduction, not {shortened(objective)}")
    show(f"searching moduli of {width} bits")
    if objective == "reduction":
        _reduction(wanted, width, columns, channels, as_json=as_json)
        return
    pair, proof = base_pair(wanted.value, width, columns, n=channels)
    if as_json:
        rows = {
            f"u_{name}": [base.u[i : i + columns] for i in range(0, pair.n, columns)]
            for name, base in (("A", pair.a), ("B", pair.b))
        }
        record = {
            "modulus": hex(wanted.value), "modulus_name": wanted.name, "width": width, "channels": pair.n,
            "columns": columns, **rows, "largest_u": pair.largest_u, "largest_u_proved_minimal": pair.proved,
            **proof.describe(),
        }  # fmt: skip
        print(json.dumps(record, indent=2))
        return
    for line in _bases_lines(wanted.name or f"a {wanted.bits}-bit modulus", pair, proof):
        print(line)


def _bases_lines(name: str, pair: BasePair, proof: Sufficiency) -> Iterator[str]:
    from math import log2
    from textwrap import wrap

    from modmill.numbers.rns.base_pairs import approximate, kawamura_condition

    c = pair.columns
    kind = f"{pair.n} + {pair.n} moduli 2^{pair.w} - u in rows of {c}"
    yield f"{name}: {kind}; ~ marks a rounded number, all others are exact"
    for side, base in (("A", pair.a), ("B", pair.b)):
        rows = [" ".join(map(str, base.u[i : i + c])) for i in range(0, base.n, c)]
        text = (" " if c == 1 else " | ").join(rows)
        yield from wrap(text, 110, initial_indent=f"    {side}  ", subsequent_indent=" " * 7)
    minimal = "the smallest possible" if pair.proved else "not proved to be the smallest possible"
    yield f"    largest u {pair.largest_u}, {minimal} for {2 * pair.n} moduli"
    yield ""
    yield "Closed loop: first extension without a cox, second exact, residues up to 2^w - 1"
    error, result, most = (approximate(x) for x in (proof.coxes[1].error, proof.result, proof.largest_products))
    for symbol, value, meaning in (
        ("t", str(proof.t), "fraction bits of the cox, the fewest that suffice"),
        ("d", str(proof.offset), f"its offset in units of 2^-t; the cox's error E_B is {error}"),
        ("g", approximate(proof.gain), "the first extension gives Q <= g A"),
        ("lambda", approximate(proof.operand), f"operands below lambda p give results below {result} p"),
        ("G", str(proof.products), f"products per reduction; these bases carry up to {most}"),
    ):
        yield f"    {symbol:<7} {value:<10} {meaning}"
    yield ""
    yield "Sufficient, all of them together:"
    for row in proof.inequalities:
        yield f"    {row.name:<17} {row.text:<47} {row.numbers:<24} {'holds' if row.holds else 'FAILS'}"
    yield "Shown beside them, not used:"
    bits, needed = pair.n * pair.w, log2(proof.p)
    yield f"    n w > log2 p      {bits} {'>' if bits > needed else '<='} ~{needed:.3f}; not sufficient"
    if c == 1:
        a, b = (approximate(kawamura_condition(base, proof.t)) for base in (pair.a, pair.b))
        yield f"    n (e + d) < 1     {a} for A, {b} for B; Kawamura's condition, sufficient for least residues only"


def _reduction(modulus: moduli.Modulus, width: int, columns: int, channels: int | None, *, as_json: bool) -> None:
    """Print the front for the number of moduli that the nearest ones need, and the choices of kbe and hbe. Errors as
    `base_pair` and `choose_moduli`."""
    from modmill.designs.cox_rower.kbe import MODULI
    from modmill.numbers.rns.base_pairs import base_pair
    from modmill.numbers.rns.reduction_front import Front

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
    from modmill.numbers.rns.base_pairs import deal, sufficiency

    pair = deal([(1 << point.w) - u for u in point.u], columns)
    return {
        "largest_u": point.largest_u, "digits": point.weight, "most_digits": point.most_digits, "folds": point.folds,
        "suffices": sufficiency(pair, p).holds, "proved": point.proved, "u": list(point.u),
    }  # fmt: skip


def _choice(name: str, p: int, width: int, columns: int, n: int) -> Mapping[str, int] | None:
    """What a setting of the designs takes for n moduli; None if it has none that suffice."""
    from modmill.designs.cox_rower.kbe import MODULI
    from modmill.numbers.rns.base_pairs import base_pair
    from modmill.numbers.rns.choice_of_moduli import signed_digits_of

    for how in MODULI[name]:
        try:
            pair, _ = base_pair(p, width, columns, n=n, even=False, **how)
        except ValueError:
            continue
        return {"largest_u": pair.largest_u, "digits": signed_digits_of((*pair.a.u, *pair.b.u))}
    return None


def survey(
    modulus: Modulus,
    width: Annotated[int, typer.Option("--width", "-w", min=12, max=34, help="Channel width w in bits.")] = 17,
    as_json: Json = False,
) -> None:
    """Count the operations of every RNS multiplication that the HBE paper compares, and name our machine of it."""
    from modmill.numbers.moduli import parse_modulus
    from modmill.studies import rns_methods

    wanted = parse_modulus(modulus)
    show("counting the operations of every method")
    found = list(rns_methods.survey(wanted.value, width))
    if as_json:
        print(json.dumps([row.describe() for row in found], indent=2))
        return
    for line in rns_methods.lines(wanted.name or f"a {wanted.bits}-bit modulus", width, found):
        print(line)
