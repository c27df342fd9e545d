# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What loads another modulus into a built core."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from modmill.contract import Refusal
from modmill.numbers.moduli import Modulus, parse_modulus
from modmill.studies.build import Core, Folder


def words_for(path: str | Path, modulus: str | int | Modulus) -> Core:
    """The core in a folder while another modulus is loaded: ``contract.load`` has the words for it.

    Raises ValueError (Refusal) when the core's modulus is built in, or when the core cannot take this one.
    """
    core = Folder.read(path).refit()
    if core.contract.load is None:
        raise Refusal(f"{path}: the modulus of this core is built in; a core with --set loadable=true takes others")
    wanted = parse_modulus(str(modulus)) if isinstance(modulus, (str, int)) else modulus
    if wanted.bits > core.modulus.bits:
        raise Refusal(f"this core takes moduli of at most {core.modulus.bits} bits, not one of {wanted.bits} bits")
    return replace(core, modulus=wanted, fitted=core.fitted.at(wanted.value))
