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
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A folder that `build`, `rsa build` or `ecc build` wrote.")
    ],
    liberty: Annotated[Path, typer.Option(metavar="FILE", help="A cell library in Liberty format; it is only read.")],
    macros: Annotated[
        bool | None,
        typer.Option(
            help="Leave block RAMs out, as macros from elsewhere, or make flip-flops of them. Default: leave out those "
            "of engines.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Map a core or an engine to the cells of a Liberty library: area, gate equivalents, clock period without wires."""
    from modmill.cores.ecc.machine import EccCore
    from modmill.cores.folder import kind_of
    from modmill.cores.multiplier.folder import load
    from modmill.cores.rsa.circuit import read_any
    from modmill.flow.asic import map_core

    kind = kind_of(folder)
    core = load(folder) if kind == "a multiplier" else None
    made = core or (EccCore.read(folder) if (folder / "ecc.json").exists() else read_any(folder))
    name = core.name if core else folder.resolve().name
    show(f"mapping {name} to {liberty.name}")
    found = map_core(made.verilog, made.top, liberty, core is None if macros is None else macros)
    timing = core and core.contract.timing
    if as_json:
        about = {"latency": timing.latency, "interval": timing.interval} if timing else {}
        print(json.dumps(found.values | about, indent=2))
        return
    print("\n".join(filter(None, (f"{name}: {found.line}", found.left_out))))
    if timing and found.period_ns is not None:
        rate = 1e9 / found.period_ns / timing.interval
        print(f"{rate:,.0f} products per second, {timing.latency * found.period_ns / 1000:.3f} us latency")
