# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What the race on the first page compares cores for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from modmill.numbers.moduli import parse_modulus
from modmill.studies.race.measured_cores import Contender, modulus_name, shell

FIRST = ("secp256k1", "P-256", "Ed25519")
"""Moduli that are listed first in the race."""


@dataclass(frozen=True)
class RaceWork:
    """What cores of the race are compared for: a modulus, or any modulus of a width that only cores load."""

    key: str
    words: str


def race_works(found: Sequence[Contender]) -> list[RaceWork]:
    """The moduli that a core is built for, those of FIRST first, and the widths for which there are only cores that
    load a modulus."""
    built = {c.modulus for c in found if not c.loaded}
    first = [p for name in FIRST if (p := parse_modulus(name).value) in built]
    moduli = [*first, *sorted(built - set(first), key=lambda p: (-p.bit_length(), p))]
    widths = {c.modulus.bit_length() for c in found if c.loaded} - {p.bit_length() for p in moduli}
    return [
        *(RaceWork(shell(modulus_name(p)), f"{modulus_name(p)} ({p.bit_length()} bits)") for p in moduli),
        *(RaceWork(f"{bits}-bits", f"any modulus of {bits:,} bits") for bits in sorted(widths, reverse=True)),
    ]


def works_of(c: Contender) -> list[str]:
    """The keys of the works that a core serves."""
    return [*(shell(modulus_name(p)) for p in c.serves), *[f"{c.modulus.bit_length()}-bits"] * c.loaded]
