# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Modmill turns a modulus and a choice of design into a checked, measured hardware core for modular multiplication.

>>> import modmill
>>> core = modmill.build("sor-1m-p", "2^61-1")
>>> core
<Core sor-1m-p for a modulus of 61 bits, plain: latency 41, interval 28>
>>> core.multiply(3, 5)                     # the bit-exact algorithm
15
>>> core.simulate([(3, 5)])                 # the RTL
[15]

build(design, modulus, io, top, **settings)    a core: a design fitted to a modulus; bus=NAME: also behind a bus
load(folder)                                   a core from the files that `write` or `modmill build` wrote
check(folder)                                  verify such a folder against Python's integers
race(modulus, designs)                         measure designs for one modulus, side by side

Core        multiply, simulate, explain, write; contract, verilog, digest, fitted; in a notebook its data sheet
DESIGNS     all designs: name, title, source, settings, fit
MODULI      the named moduli: name, value, bits, prime, source
TARGETS     the devices for synthesis: name, vendor, device, capacity, routable

``help(modmill.build)`` explains one of them, docs/api.md all, docs/first-core.ipynb goes through them step by step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modmill.version import __version__

__all__ = ["DESIGNS", "MODULI", "TARGETS", "Core", "__version__", "build", "check", "load", "race"]

if TYPE_CHECKING:
    from modmill.cores.multiplier.build import Core, build
    from modmill.cores.multiplier.check import check
    from modmill.cores.multiplier.folder import load
    from modmill.designs import DESIGNS
    from modmill.flow.targets import TARGETS
    from modmill.numbers.moduli import MODULI
    from modmill.studies.race.cores import race


def __getattr__(name: str) -> Any:
    """The interface, each name imported when first used, so that ``import modmill`` stays cheap."""
    place: Any
    if name in ("Core", "build"):
        from modmill.cores.multiplier import build as place
    elif name == "load":
        from modmill.cores.multiplier import folder as place
    elif name == "check":
        from modmill.cores.multiplier import check as place
    elif name == "race":
        from modmill.studies.race import cores as place
    elif name == "DESIGNS":
        from modmill import designs as place
    elif name == "MODULI":
        from modmill.numbers import moduli as place
    elif name == "TARGETS":
        from modmill.flow import targets as place
    else:
        raise AttributeError(f"module 'modmill' has no attribute {name!r}")
    return getattr(place, name)


def __dir__() -> list[str]:
    """The interface, for `dir`, `help` and completion."""
    return sorted(__all__)
