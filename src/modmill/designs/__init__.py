# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""All designs in one explicit tuple; each file or folder here is one paper or family.

In reading order: `multistep`, `radix64k`, `sor` and `cox_rower` (the papers' designs), `channel`, `extension` and
`reduction` (parts of the last as cores); `digit_serial` (what designs on binary numbers share), `tenca_koc`, `mcivor`,
`iddmm` and `orup` (designs with which the papers compare theirs); `montgomery_array`, `pseudo_mersenne`, `karatsuba`,
`solinas`, `wide` and `parallel` (our own).
"""

from __future__ import annotations

from difflib import get_close_matches

from modmill.contract import UnsupportedError
from modmill.design import Design
from modmill.designs import channel, extension, iddmm, mcivor, orup, reduction, tenca_koc
from modmill.designs.cox_rower import hbe, kbe, shenoy_kumaresan, sq_rns
from modmill.designs.karatsuba import design as karatsuba
from modmill.designs.karatsuba import montgomery as karatsuba_montgomery
from modmill.designs.karatsuba import solinas as karatsuba_solinas
from modmill.designs.karatsuba import two_level as karatsuba_two_level
from modmill.designs.karatsuba import two_level_solinas as karatsuba_two_level_solinas
from modmill.designs.montgomery_array import design as montgomery_array
from modmill.designs.multistep import design as multistep
from modmill.designs.parallel import design as parallel
from modmill.designs.pseudo_mersenne import design as pseudo_mersenne
from modmill.designs.radix64k import design as radix64k
from modmill.designs.solinas import design as solinas
from modmill.designs.sor import improved as sor
from modmill.designs.sor import original as sor_original
from modmill.designs.sor import ring as sor_ring
from modmill.designs.wide import design as wide
from modmill.numbers.shown import shortened

DESIGNS: tuple[Design, ...] = (
    *sor.DESIGNS, *sor_ring.DESIGNS, *sor_original.DESIGNS, *kbe.DESIGNS, *hbe.DESIGNS, *sq_rns.DESIGNS,
    *shenoy_kumaresan.DESIGNS, *montgomery_array.DESIGNS, *pseudo_mersenne.DESIGNS, *karatsuba.DESIGNS,
    *karatsuba_two_level.DESIGNS, *solinas.DESIGNS, *karatsuba_solinas.DESIGNS,
    *karatsuba_two_level_solinas.DESIGNS, *karatsuba_montgomery.DESIGNS, *radix64k.DESIGNS, *multistep.DESIGNS,
    *tenca_koc.DESIGNS, *mcivor.DESIGNS, *iddmm.DESIGNS, *orup.DESIGNS, *wide.DESIGNS, *parallel.DESIGNS,
    *extension.DESIGNS, *reduction.DESIGNS, *channel.DESIGNS,
)  # fmt: skip


def design(name: str) -> Design:
    """The design called ``name``; case is ignored, and ``_`` means ``-``.

    Raises UnsupportedError, which lists the nearest names, if there is none.
    """
    wanted = name.lower().replace("_", "-")
    by_name = {d.name: d for d in DESIGNS}
    if wanted in by_name:
        return by_name[wanted]
    near = get_close_matches(wanted, by_name, n=4, cutoff=0.5)
    known = f"the nearest are {', '.join(near)}" if near else "`modmill designs` lists them"
    raise UnsupportedError(f"no design is called {shortened(name)}; {known}")
