# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The command ``modmill bitstream``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from modmill.cli.options import Folder, Json, Record
from modmill.cli.output import recorded
from modmill.cli.progress import keep, show


def bitstream(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that rsa build or ecc build wrote.")],
    board: Annotated[str, typer.Option(help="ulx3s-85f, colorlight-i5, icesugar-pro or ecpix5.")] = "ulx3s-85f",
    mhz: Annotated[float, typer.Option(min=0, help="Clock of the engine, by the PLL. Default: as the board says.")] = 0,
    baud: Annotated[int, typer.Option(help="Bits per second of the serial line.")] = 115200,
    seed: Annotated[int, typer.Option(min=1, help="Seed of place and route.")] = 1,
    output: Folder = None,
    as_json: Json = False,
    record: Record = None,
) -> None:
    """Make a bitstream: the engine in a folder behind a board's serial line, with a script for the host.

    Place and route takes minutes, in which it cannot be resumed.
    """
    from modmill.cores.ecc.machine import EccCore
    from modmill.cores.folder import kind_of, require_former, write_folder
    from modmill.cores.rsa.circuit import read_any
    from modmill.report.rows import put
    from modmill.soc.bitstream import BITSTREAM, BoardDesign
    from modmill.soc.boards import find_board

    found = find_board(board)
    if (kind := kind_of(folder)) == "a multiplier":
        raise ValueError(
            f"bitstream takes a folder with an engine of rsa build or ecc build, and {folder} holds {kind}"
        )
    show(f"reading {folder}")
    engine = EccCore.read(folder) if (folder / "ecc.json").exists() else read_any(folder)
    design = BoardDesign(engine, found, baud, mhz)
    target = output or Path(f"{folder.resolve().name}-{found.name}")
    require_former(target, [*design.files, "report.json", BITSTREAM])
    keep(f"{target} was not written")
    show(f"making a bitstream for {found.name}")
    report, made = design.make(seed)
    write_folder(target, made)
    if record is not None:
        put(record, design.row(report))
        recorded(record)
    print(json.dumps(report, indent=2) if as_json else (
        f"{target}: {found.title}, {report['mhz_routed']} MHz routed, {report['mhz']:g} MHz used, "
        f"{report['lut']:,} LUT, {report['dsp']} DSP blocks, {report['seconds']:.0f} s\n"
        f"load {target / BITSTREAM} with openFPGALoader, then: python3 {target / 'host.py'} /dev/ttyUSB0"
    ))  # fmt: skip
