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
``modmill.check("folder")`` verifies it, ``modmill.race("secp256k1")`` compares all designs for one modulus.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Core", "build", "check", "designs", "load", "moduli", "race", "targets"]

if TYPE_CHECKING:
    from modmill.studies.build import Core, build, load
    from modmill.studies.check import check
    from modmill.studies.race import race

_PLACES = {"Core": "build", "build": "build", "load": "build", "check": "check", "race": "race"}


def designs() -> tuple[Any, ...]:
    """Every design (``modmill.design.Design``): name, source, parameters, what it needs of the modulus."""
    from modmill.designs import DESIGNS

    return DESIGNS


def moduli() -> tuple[Any, ...]:
    """Every named modulus (``modmill.numbers.moduli.Modulus``)."""
    from modmill.numbers.moduli import MODULI

    return MODULI


def targets() -> tuple[Any, ...]:
    """Every device to synthesise for (``modmill.flow.targets.Target``)."""
    from modmill.flow.targets import TARGETS

    return TARGETS


def __getattr__(name: str) -> Any:
    """The rest of the interface, imported when first used, so that ``import modmill`` stays cheap."""
    if name not in _PLACES:
        raise AttributeError(f"module 'modmill' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"modmill.studies.{_PLACES[name]}"), name)
