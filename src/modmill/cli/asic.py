# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The command ``modmill asic``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from modmill.cli.options import Json
from modmill.cli.progress import show


def asic(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that `modmill build` wrote.")],
    liberty: Annotated[Path, typer.Option(metavar="FILE", help="A cell library in Liberty format; it is only read.")],
    as_json: Json = False,
) -> None:
    """Map a multiplier to the cells of a Liberty library: area, gate equivalents, clock period without wires."""
    from modmill.cores.folder import kind_of
    from modmill.cores.multiplier.folder import load
    from modmill.flow.asic import map_core

    if (kind := kind_of(folder)) != "a multiplier":
        raise ValueError(f"asic takes a folder with a multiplier, and {folder} holds {kind}")
    core = load(folder)
    show(f"mapping {core.name} to {liberty.name}")
    found = map_core(core.verilog, core.top, liberty)
    timing = core.contract.timing
    if as_json:
        about = {"latency": timing.latency, "interval": timing.interval}
        print(json.dumps(found.values | about, indent=2))
        return
    print(f"{core.name}: {found.line}")
    if found.period_ns is not None:
        rate = 1e9 / found.period_ns / timing.interval
        print(f"{rate:,.0f} products per second, {timing.latency * found.period_ns / 1000:.3f} us latency")
