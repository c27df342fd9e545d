# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Families of designs, each with one colour and one shape in charts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """``key``: its name in style sheets and data; ``symbol``: its shape in charts (plotly's name); ``pages``: the pages
    of its designs; ``residues``: whether numbers are residues; ``special``: only for primes of a special form.
    """

    key: str
    title: str
    symbol: str
    pages: tuple[str, ...]
    residues: bool = False
    special: bool = False


FAMILIES = (
    Family("rns-montgomery", "RNS Montgomery", "circle", ("kbe", "hbe", "sq-rns", "shenoy-kumaresan"), residues=True),
    Family("sum-of-residues", "Sum of residues", "diamond", ("sor", "sor-ring", "sor-original"), residues=True),
    Family(
        "digits", "Digits, any modulus", "square",
        ("montgomery-array", "karatsuba-montgomery", "radix64k", "iddmm", "orup", "wide", "parallel"),
    ),
    Family("bits", "Montgomery, bit by bit", "triangle-up", ("multistep", "tenca-koc", "mcivor")),
    Family(
        "special", "Special primes", "star",
        (
            "pseudo-mersenne", "karatsuba", "karatsuba-two-level", "karatsuba-two-level-solinas", "karatsuba-solinas",
            "solinas",
        ),
        special=True,
    ),
)  # fmt: skip
"""Families of multipliers. Building blocks (base extensions, channels) belong to none."""


def family(page: str) -> Family | None:
    """The family of the designs that share a page; None for a building block."""
    return next((f for f in FAMILIES if page in f.pages), None)


def family_of(page: str) -> Family:
    """The family of a multiplier, by its page. Raises LookupError for a building block."""
    if (found := family(page)) is None:
        raise LookupError(f"the designs of the page {page} belong to no family")
    return found
