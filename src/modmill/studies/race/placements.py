# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The placements that ship: schedules of the cox-rower machines for all named moduli, solved once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from modmill import placement
from modmill.contract import UnsupportedError
from modmill.designs import DESIGNS
from modmill.designs import design as find_design
from modmill.numbers.moduli import MODULI
from modmill.numbers.primes import prev_prime
from modmill.studies.site import scaling

TOYS = (3, 97, 2**61 - 1, 3**30 * 5, 2**1023 + 2**1022 + 1037)
"""Other moduli that the tests use."""


CURVES = (2**256 - 2**32 - 977, 2**256 - 2**224 + 2**192 + 2**96 - 1)
OTHERS: tuple[tuple[str, dict[str, int], tuple[int, ...]], ...] = (
    *((name, {"rowers": 2}, (2**61 - 1,)) for name in ("kbe", "hbe")),
    *((name, {"rowers": rowers}, CURVES) for name in ("kbe", "hbe") for rowers in (4, 8)),
    *((name, {"w": w}, CURVES) for name in ("kbe", "hbe") for w in (20, 24, 28, 34)),
    *(("hbe", {"columns": columns}, CURVES[:1]) for columns in (3, 4)),
    *((name, settings, (scaling.modulus(find_design(name), bits),)) for name, settings, bits in scaling.SLOW),
)
"""Designs with the settings and moduli that tests or pages use."""
SLOT_MACHINES: tuple[tuple[dict[str, Any], int], ...] = (
    *(({}, p) for p in (2**61 - 1, *CURVES)),
    *(({"loadable": True}, prev_prime(1 << bits)) for bits in (512, 1024)),
)
"""Settings and moduli of slot machines: primes of curves, and halves of RSA keys of 1024 and 2048 bits."""


def solve_all(progress: Callable[[str], None] | None = None) -> int:
    """Solve all placements for all named moduli, write ``placements.json``, and return their number."""
    placement.answers.clear()
    for design in DESIGNS:
        for p in (*TOYS, *(m.value for m in MODULI)):
            if progress:
                progress(f"{design.name}, {p.bit_length()} bits")
            try:
                fitted = design.fit(p)
            except UnsupportedError:
                continue
            _ = fitted.schedule
    for name, settings, moduli in OTHERS:
        if progress:
            progress(f"{name}, {', '.join(f'{key} = {value}' for key, value in settings.items())}")
        for p in moduli:
            _ = find_design(name).fit(p, **settings).schedule
    for name in ("kbe", "hbe"):
        for settings, p in SLOT_MACHINES:
            if progress:
                progress(f"{name}, slot machine, {p.bit_length()} bits")
            find_design(name).fit(p, **settings).slot_machine(1)
    text = json.dumps(dict(sorted(placement.answers.items())), indent=None, separators=(",", ":"))
    placement.SHIPPED.write_text(text.replace('],"', '],\n"') + "\n", encoding="utf-8")
    return len(placement.answers)
