# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Modmill turns a modulus and a choice of design into a verified, measured hardware core for modular multiplication.

>>> import modmill
>>> core = modmill.build("sor-1m-p", "2^61-1")
>>> core.multiply(3, 5)                     # the bit-exact algorithm
15
>>> core.contract.timing.latency == core.contract.timing.in_flight
False
>>> core.verilog.splitlines()[0]
'module core(clk, rst, i_valid, i_ready, i_a, i_b, o_valid, o_ready, o_r);'

``core.simulate([(3, 5)])`` runs the Verilog itself, ``core.write("folder")`` writes what ``modmill build`` writes,
``modmill.load("folder")`` reads it back, ``modmill.check("folder")`` verifies it, ``modmill.race("secp256k1")``
compares all designs for one modulus. ``modmill.DESIGNS``, ``modmill.MODULI`` and ``modmill.TARGETS`` are the tables.
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
