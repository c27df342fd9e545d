# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The command ``modmill depth``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from modmill.cli.options import Json


def depth(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that `modmill build` wrote.")],
    as_json: Json = False,
) -> None:
    """Count the levels of lookup tables with four and with six inputs in a core, by Yosys, apart from any device."""
    from modmill.cores.multiplier.folder import load
    from modmill.flow.depth import measure

    core = load(folder)
    found = measure(core.verilog, core.top)
    print(json.dumps(found.values, indent=2) if as_json else f"{core.name}: {found.line}")
