# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Options of several commands."""

from pathlib import Path
from typing import Annotated

import typer

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
Output = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Also write JSON; - for stdout.")]
Record = Annotated[Path | None, typer.Option(metavar="FILE", help="Add the rows to a results file.")]
