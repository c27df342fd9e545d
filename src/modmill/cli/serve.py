# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The command ``modmill serve``."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from modmill.cli.progress import hide, note, show


def serve(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that was built with --bus.")],
    path: Annotated[
        Path | None,
        typer.Option("--socket", metavar="FILE", help="The Unix socket to make. Default: device.sock in DIR."),
    ] = None,
    idle: Annotated[
        float, typer.Option(min=1, help="Seconds after which a connection that sends nothing is closed.")
    ] = 30,
    self_test: Annotated[
        bool,
        typer.Option(
            "--self-test/--no-self-test",
            help="A known job of each command at the start and after each reset; refuse all else while it fails.",
        ),
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            "--random-seed",
            min=0,
            max=2**64 - 1,
            help="Seed of the random words of an engine with a port for them. Default: from the operating system.",
        ),
    ] = None,
) -> None:
    """Simulate the core in a folder as a device on this machine, for drivers in any language, until Ctrl-C."""
    from modmill.buses.serve import SOCKET, Server
    from modmill.buses.simulate import BusSimulator
    from modmill.studies.bus import Subject
    from modmill.studies.bus import self_test as tested

    show(f"reading {folder}")
    subject = Subject.read(folder)
    simulator = BusSimulator(subject.verilog, subject.device, subject.bus)
    if subject.device.random:
        simulator.random(int.from_bytes(os.urandom(8)) if seed is None else seed)
    show("testing the device" if self_test else f"simulating {folder}")
    test = partial(tested, subject, simulator) if self_test else None
    server = Server(subject.device, simulator, path or folder / SOCKET, idle, test)
    hide()
    if server.failed:
        note(f"the self-test failed: {server.failed}; everything is refused until a reset after which it passes")
    print(f"{subject.device.top} behind {subject.bus.title} at {server.path}", flush=True)
    try:
        with suppress(KeyboardInterrupt):
            server.run()
    finally:
        server.close()
    served = server.served
    print(f"{served.connections:,} connections, {served.requests:,} requests, {simulator.cycles:,} cycles")
