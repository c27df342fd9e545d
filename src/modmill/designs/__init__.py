# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The published designs: one explicit tuple, one file for each paper."""

from __future__ import annotations

from modmill.contract import Refusal
from modmill.design import Design
from modmill.designs import (
    channel,
    extension,
    hbe,
    iddmm,
    kbe,
    mcivor,
    multistep,
    orup,
    sor,
    sor_original,
    sor_ring,
    tenca_koc,
    wide,
)

DESIGNS: tuple[Design, ...] = (
    *sor.DESIGNS, *sor_ring.DESIGNS, *sor_original.DESIGNS, *kbe.DESIGNS, *hbe.DESIGNS,
    *extension.DESIGNS, *channel.DESIGNS,
    *multistep.DESIGNS, *tenca_koc.DESIGNS, *iddmm.DESIGNS, *orup.DESIGNS, *mcivor.DESIGNS, *wide.DESIGNS,
)  # fmt: skip


def design(name: str) -> Design:
    """The design of that name; case, and ``_`` for ``-``, do not matter. Raises Refusal with the names there are."""
    wanted = name.lower().replace("_", "-")
    for d in DESIGNS:
        if d.name == wanted:
            return d
    raise Refusal(f"no design is called {name!r}; there are {', '.join(d.name for d in DESIGNS)}")
