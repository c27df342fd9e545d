# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The placements that ship: schedules of the cox-rower machines for all named moduli, solved once."""

from __future__ import annotations

import json
from collections.abc import Callable

from modmill import placement
from modmill.contract import Refusal
from modmill.designs import DESIGNS
from modmill.designs import design as find_design
from modmill.numbers.moduli import MODULI

TOYS = (3, 97, 2**61 - 1, 3**30 * 5, 2**1023 + 2**1022 + 1037)
"""Other moduli that the tests use."""


CURVES = (2**256 - 2**32 - 977, 2**256 - 2**224 + 2**192 + 2**96 - 1)
OTHERS: tuple[tuple[str, dict[str, int], tuple[int, ...]], ...] = (
    *((name, {"rowers": 2}, (2**61 - 1,)) for name in ("kbe", "hbe")),
    *((name, {"rowers": rowers}, CURVES) for name in ("kbe", "hbe") for rowers in (4, 8)),
    *((name, {"w": w}, CURVES) for name in ("kbe", "hbe") for w in (20, 24, 28, 34)),
    *(("hbe", {"columns": columns}, CURVES[:1]) for columns in (3, 4)),
)
"""Designs with settings of which the tests or the pages speak, and the moduli."""


def solve_all(progress: Callable[[str], None] | None = None) -> int:
    """Solve what every design asks for every named modulus, and write ``placements.json``; how many it holds."""
    placement.answers.clear()
    for design in DESIGNS:
        for p in (*TOYS, *(m.value for m in MODULI)):
            if progress:
                progress(f"{design.name}, {p.bit_length()} bits")
            try:
                fitted = design.fit(p)
            except Refusal:
                continue
            _ = fitted.schedule
    for name, settings, moduli in OTHERS:
        if progress:
            progress(f"{name}, {', '.join(f'{key} = {value}' for key, value in settings.items())}")
        for p in moduli:
            _ = find_design(name).fit(p, **settings).schedule
    text = json.dumps(dict(sorted(placement.answers.items())), indent=None, separators=(",", ":"))
    placement.SHIPPED.write_text(text.replace('],"', '],\n"') + "\n", encoding="utf-8")
    return len(placement.answers)
