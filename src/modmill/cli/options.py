# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Options of several commands."""

from pathlib import Path
from typing import Annotated

import typer

Multiplier = Annotated[
    str, typer.Option("--multiplier", metavar="DESIGN", help="A design; `modmill designs` lists them.")
]
Multipliers = Annotated[
    list[str], typer.Option("--multiplier", metavar="DESIGN", help="Race only this design; repeatable.")
]
Set = Annotated[list[str], typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the design; repeatable.")]
Target = Annotated[str, typer.Option(help="A device; `modmill targets` lists them.")]
Route = Annotated[bool, typer.Option("--route", help="Also place and route (minutes to hours).")]
Router = Annotated[
    str,
    typer.Option(
        help="router1; router2, which often ends sooner if wires are scarce; router2@MHZ, which reroutes slower paths; "
        "default: a recorded row of any router, else router1."
    ),
]
Floorplan = Annotated[
    bool,
    typer.Option(
        "--floorplan", help="Fix the sites of DSP blocks and block RAMs, each core in its region of the device."
    ),
]
Seeds = Annotated[int, typer.Option(min=1, max=100, help="Number of seeds of place and route, from 1 on.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead.")]
Output = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Also write JSON; - for stdout.")]
Record = Annotated[Path | None, typer.Option(metavar="FILE", help="Add the rows to a results file.")]
Folder = Annotated[Path | None, typer.Option("--output", "-o", help="Folder to write.")]
File = Annotated[Path | None, typer.Option("--output", "-o", help="File to write; default: stdout.")]
Top = Annotated[str, typer.Option(help="Name of the Verilog module, and prefix of its submodules.")]
Cores = Annotated[int, typer.Option(min=1, max=64, help="Machines side by side behind one pair of streams.")]

# Options of coprocessors of curves.
CurveText = Annotated[str, typer.Option("--curve", metavar="CURVE", help="A name, parameters, or a PEM file.")]
Io = Annotated[
    str,
    typer.Option(
        help="Form of the multiplier: native, montgomery, or plain without a factor; default: one that allows sums."
    ),
]
Window = Annotated[int, typer.Option(min=1, max=6, help="Bits of a digit of a scalar.")]
Teeth = Annotated[int, typer.Option(min=1, max=8, help="Teeth of the comb for the base point.")]
Columns = Annotated[int, typer.Option(min=1, max=8, help="Tables of the comb.")]
Threads = Annotated[int, typer.Option(min=0, max=64, help="Runs interleaved; 0: as many as fill the multiplier.")]
