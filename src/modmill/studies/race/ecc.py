# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""One operation of a curve on coprocessors around several multipliers, measured as whole engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from modmill.contract import UnsupportedError
from modmill.cores.ecc.machine import ecc
from modmill.designs import DESIGNS
from modmill.engines.ecc.point_engine import OPERATIONS
from modmill.numbers.curves.affine import Curve, Montgomery
from modmill.numbers.shown import shortened
from modmill.report.engines import EngineRaceResult
from modmill.studies.race.machines import EngineRace, Progress

ANY = "scalar-multiplication"
"""Multiplication of any point, or the ladder: every curve has one of them."""


def operation_of(curve: Curve, name: str) -> str:
    """Operation of a curve for a user's word. Raises UnsupportedError for an unknown word."""
    if name == ANY:
        return "ladder" if isinstance(curve, Montgomery) else "multiply"
    if name not in OPERATIONS:
        raise UnsupportedError(f"the operation must be {ANY} or one of {', '.join(OPERATIONS)}, not {shortened(name)}")
    return name


def race_operation(
    curve: Curve, name: str, designs: Sequence[str] = (), *, target: str, settings: Mapping[str, Any] | None = None,
    with_route: bool = False, seeds: int = 3, record: Path | None = None, progress: Progress | None = None,
    floorplan: bool = False, router: str = "", **options: Any,
) -> tuple[list[EngineRaceResult], list[str]]:  # fmt: skip
    """Measure coprocessors around designs (default: all that support the curve); return (results, refusals).

    ``floorplan`` as in `EngineRace`; ``options`` as in `EccCore`; ``settings`` go to the designs that have them. Raises
    UnsupportedError if a named design does not support the curve.
    """
    operation = operation_of(curve, name)
    race = EngineRace(target, with_route, seeds, record, progress, floorplan, router)
    entrants, refused = [], []
    for design in DESIGNS:
        if design.name not in (designs or [d.name for d in DESIGNS]) or design.operands != 2:
            continue
        given = {key: x for key, x in (settings or {}).items() if any(s.name == key for s in design.settings)}
        try:
            core = ecc(curve, design.name, given, operations=(operation,), **options)
            entrants.append((design.name, core, core.about()))  # one operation each: the digest identifies it
        except UnsupportedError as error:
            if designs:
                raise
            refused.append(f"{design.name} does not apply: {error}")
    if unknown := set(designs) - {d.name for d in DESIGNS}:
        raise UnsupportedError(f"there is no design {shortened(min(unknown))}; `modmill designs` lists them")
    found = []
    for number, (name, engine, about) in enumerate(entrants, 1):
        race.place = f"{number} of {len(entrants)}: " if len(entrants) > 1 else ""
        found.append(race.measure(name, engine, about))
    return found, refused
