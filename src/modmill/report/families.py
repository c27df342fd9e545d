# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Families of designs: what a chart gives one colour and one shape."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """``key`` is its name in style sheets and data, ``symbol`` its shape in charts (a name that plotly knows),
    ``pages`` those of its designs. ``residues``: whether numbers are residues; ``special``: for primes of a
    special form only.
    """

    key: str
    title: str
    symbol: str
    pages: tuple[str, ...]
    residues: bool = False
    special: bool = False


FAMILIES = (
    Family("rns-montgomery", "RNS Montgomery", "circle", ("kbe", "hbe"), residues=True),
    Family("sum-of-residues", "Sum of residues", "diamond", ("sor", "sor-ring", "sor-original"), residues=True),
    Family("digits", "Montgomery, digits", "square", ("montgomery-array", "radix64k", "iddmm", "orup", "wide")),
    Family("bits", "Montgomery, bit by bit", "triangle-up", ("multistep", "tenca-koc", "mcivor")),
    Family("special", "Special primes", "star", ("pseudo-mersenne", "solinas"), special=True),
)
"""Families of multipliers. Blocks (extensions of a base, channels) belong to none."""


def family(page: str) -> Family | None:
    """The family of the designs that share a page, None for a block."""
    return next((f for f in FAMILIES if page in f.pages), None)
