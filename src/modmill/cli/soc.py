# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The command ``modmill soc demo``: a system on a chip with three engines, simulated."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from modmill.cli.command import command, group
from modmill.cli.options import Folder, Json
from modmill.cli.output import results
from modmill.cli.progress import keep, say, show

app = group("Systems on a chip around cores behind a bus.")


@app.callback()
def _group() -> None:
    """Keep `demo` a command of its own, although it is the only one."""


@command(app, "soc demo", "soc demo -o soc --seed 1")
def demo(
    output: Folder = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of the RSA key and its random bytes. Default: new ones.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Simulate a RISC-V processor with three engines: X25519, ECDSA on P-256 and RSA-1024 with the CRT.

    Its firmware in C runs each of them by polling and by interrupt; the results are compared and verified. With -o its
    Verilog and its firmware are written.
    """
    from rich.console import Console

    from modmill.cores.folder import require_former, write_folder
    from modmill.soc.demo import NAMES, Demo, table

    made = Demo(seed)
    if output is not None:
        require_former(output, NAMES)
        keep(f"{output} was not written")
    show("building three engines")
    words = made.words
    show("compiling the system")

    def progress(cycles: int) -> None:
        show(f"simulating, {cycles / 1e6:.1f} million cycles")

    found, run = made.run(progress)
    about = {"firmware_bytes": 4 * len(words), "cycles": run.cycles, "operations": [asdict(each) for each in found]}

    def print_table() -> None:
        console = Console(width=None if sys.stdout.isatty() else 120, highlight=False, markup=False)
        console.print(table(found))
        print(f"firmware of {4 * len(words):,} bytes, {run.cycles:,} cycles in all, all results right")

    results(about, as_json, print_table)
    if output is not None:
        write_folder(output, made.files(run))
        say(f"{output}: Verilog of the system, its bench, and the firmware")
