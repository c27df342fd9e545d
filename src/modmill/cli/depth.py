# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The command ``modmill depth``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from modmill.cli.options import Json
from modmill.cli.progress import show


def depth(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that `modmill build` wrote.")],
    as_json: Json = False,
) -> None:
    """Count the levels of lookup tables with four and with six inputs in a core, by Yosys, apart from any device."""
    from modmill.cores.folder import kind_of
    from modmill.cores.multiplier.folder import load
    from modmill.flow.depth import measure

    if (kind := kind_of(folder)) != "a multiplier":
        raise ValueError(f"depth takes a folder with a multiplier, and {folder} holds {kind}")
    core = load(folder)
    show(f"mapping {core.name} to lookup tables")
    found = measure(core.verilog, core.top)
    print(json.dumps(found.values, indent=2) if as_json else f"{core.name}: {found.line}")
