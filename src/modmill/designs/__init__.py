# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The published designs: one explicit tuple, one file for each paper."""

from __future__ import annotations

from difflib import get_close_matches

from modmill.contract import Refusal
from modmill.design import Design
from modmill.designs import (
    channel,
    extension,
    hbe,
    iddmm,
    kbe,
    mcivor,
    montgomery_array,
    multistep,
    orup,
    pseudo_mersenne,
    radix64k,
    solinas,
    sor,
    sor_original,
    sor_ring,
    tenca_koc,
    wide,
)
from modmill.numbers.shown import shortened

DESIGNS: tuple[Design, ...] = (
    *sor.DESIGNS, *sor_ring.DESIGNS, *sor_original.DESIGNS, *kbe.DESIGNS, *hbe.DESIGNS, *montgomery_array.DESIGNS,
    *pseudo_mersenne.DESIGNS, *solinas.DESIGNS, *radix64k.DESIGNS, *multistep.DESIGNS, *tenca_koc.DESIGNS,
    *mcivor.DESIGNS, *iddmm.DESIGNS, *orup.DESIGNS, *wide.DESIGNS, *extension.DESIGNS, *channel.DESIGNS,
)  # fmt: skip


def design(name: str) -> Design:
    """The design of that name; case, and ``_`` for ``-``, do not matter. Raises Refusal with the names there are."""
    wanted = name.lower().replace("_", "-")
    for d in DESIGNS:
        if d.name == wanted:
            return d
    names = [d.name for d in DESIGNS]
    near = get_close_matches(wanted, names, n=4, cutoff=0.5)
    known = f"the nearest are {', '.join(near)}" if near else "`modmill designs` lists them"
    raise Refusal(f"no design is called {shortened(name)}; {known}")
