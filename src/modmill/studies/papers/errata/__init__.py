# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Errors found in the papers, each with a computation that shows it (see report.errata for what an item is).

    sor        `sor_results` (range of z, kappa, V, size of the base), `sor_slips` (formulas, constants, tables)
    hbe        `hbe_results` (algorithms), `hbe_claims` (costs, tables, claims; also those of the slides)
    rsa64k     `rsa64k_results` (Sections 2 to 6), `rsa64k_tables` (cycles, tables, claims)
    multistep  `multistep`

Items keep their numbers, which pages name; new ones are added at the end of their paper.
"""

from __future__ import annotations

from collections.abc import Iterable

from modmill.contract import UnsupportedError
from modmill.numbers.shown import shortened
from modmill.report.errata import Item, PaperErrata
from modmill.studies.papers.errata import (
    hbe_claims,
    hbe_results,
    multistep,
    rsa64k_results,
    rsa64k_tables,
    sor_results,
    sor_slips,
)
from modmill.studies.papers.reproduce import PAPERS

ALSO = {"hbe-slides": "hbe"}
"""Other names of a paper."""


def _paper(key: str, notation: str, right: str, *items: Iterable[Item]) -> PaperErrata:
    paper = PAPERS[key]
    in_order = sorted((item for some in items for item in some), key=lambda item: item.number)
    return PaperErrata(key, f"{paper.authors}: {paper.title}. {paper.venue}", notation, right, tuple(in_order))


ERRATA = {
    paper.key: paper
    for paper in (
        _paper(
            "sor",
            "Notation of the paper: base m_1 ... m_N of n-bit moduli, M their product, Z = X Y, gamma_i = Z M_i^-1 mod "
            "m_i, V = sum gamma_i <M_i>_p + <-alpha M>_p, z = V - kappa p, W = bits of p.",
            "", sor_results.ITEMS, sor_slips.ITEMS,
        ),
        _paper(
            "hbe",
            "Notation of the paper: bases A and B of n = r c moduli a_(i,j) of w bits in rows of c, A their product, "
            "KBE and HBE the extensions of Algorithms 1 and 2, sigma the offset of the cox, P the modulus of Algorithm "
            "3. (In costs r is also the ratio CMM / CMR.)",
            "What is right: Algorithm 2 equals Algorithm 1 where both are exact, the widths of h_i and X^ are "
            "attained, and Table II is right to the last term.",
            hbe_results.ITEMS, hbe_claims.ITEMS,
        ),
        _paper(
            "rsa64k",
            "Notation of the paper: digits of r + 2 bits, X of d digits, R bits, k M cancels the low digit.",
            "What is right: Lemmas 1 to 4, Theorems 9 and 10 digit by digit (no sum exceeds r + 2 bits), Lemma 5, and "
            "the bound of Theorem 11.",
            rsa64k_results.ITEMS, rsa64k_tables.ITEMS,
        ),
        _paper(
            "multistep",
            "Notation of the paper: m of k bits, s steps in a clock, k = s t + r.",
            "What is right: k = s t + r, p < m + y < 2 m at every step, 16 clocks for the loop.",
            multistep.ITEMS,
        ),
    )
}  # fmt: skip


def errata_of(name: str) -> PaperErrata:
    """The errata of a paper. Raises UnsupportedError, with all names, for an unknown one."""
    key = ALSO.get(name, name)
    if key not in ERRATA:
        raise UnsupportedError(f"no paper is called {shortened(name)}; there are {', '.join((*ERRATA, *ALSO))}")
    return ERRATA[key]
