# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

Set = Annotated[list[str], typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the design; repeatable.")]
Target = Annotated[str, typer.Option(help="A device; `modmill targets` lists them.")]
Route = Annotated[bool, typer.Option("--route", help="Place and route too (minutes to hours).")]
Router = Annotated[
    str,
    typer.Option(
        help="router1; router2, which often ends sooner where wires are scarce; router2@MHZ, which routes again what "
        "is slower; none: a row of any, else router1."
    ),
]
Floorplan = Annotated[
    bool,
    typer.Option(
        "--floorplan", help="Fix the places of DSP blocks and block RAMs, each core in its part of the device."
    ),
]
Seeds = Annotated[int, typer.Option(min=1, max=100, help="Place and route with seeds 1 to this.")]
Output = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write JSON too; - for stdout.")]
Record = Annotated[Path | None, typer.Option(metavar="FILE", help="Add the rows to a results file.")]
