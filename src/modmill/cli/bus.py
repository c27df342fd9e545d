# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The command ``modmill bus``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from modmill.cli.options import Json, Record, Route, Seeds, Target
from modmill.cli.output import recorded
from modmill.cli.progress import show


def bus(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that was built with --bus.")],
    target: Target = "ecp5-85k",
    route: Route = False,
    whole: Annotated[
        bool, typer.Option("--whole", help="Also place and route the bare device, and all of bus.v (minutes to hours).")
    ] = False,
    seeds: Seeds = 3,
    mhz: Annotated[float, typer.Option(min=1, help="Clock for the printed rates.")] = 100,
    synthesis: Annotated[
        bool, typer.Option("--synthesis/--no-synthesis", help="Also the resources of front and bare device.")
    ] = True,
    as_json: Json = False,
    record: Record = None,
) -> None:
    """Measure a bus front: cycles of each command over the bus, its resources beside those of the bare core or engine.

    With --route also the clock of the front alone; with --whole that of the bare core or engine beside that of the same
    one with its front.
    """
    from modmill.report.rows import put
    from modmill.studies.bus import Subject, measure

    show(f"reading {folder}")
    found = measure(
        Subject.read(folder), target, seeds=seeds if route else 0, whole=seeds if whole else 0,
        synthesis=synthesis, progress=show,
    )  # fmt: skip
    if record is not None:
        put(record, found.row())
        recorded(record)
    print(json.dumps({**found.about, **found.values}, indent=2) if as_json else "\n".join(found.lines(mhz)))
