# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The place and route tool of a device: nextpnr, and for AMD devices the tool on PATH."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from modmill.flow import himbaechel, route, vivado
from modmill.flow.targets import Target


@dataclass(frozen=True)
class Backend:
    """A place and route tool. ``seeded``: whether its result depends on the seed. ``run(verilog, top, target, folder,
    seed)`` returns the values of a row: at least ``mhz``, ``mhz_reported``, ``cap_mhz``, ``seconds``."""

    tool: str
    seeded: bool
    run: Callable[[str, str, Target, Path, int], dict[str, Any]]


def backend(target: Target, router: str = "") -> Backend | None:
    """The tool for a device, or None if there is none; Vivado is preferred to nextpnr-himbaechel.

    ``router``: of nextpnr, one of `route.ROUTERS`. Raises ValueError for any other.
    """
    if target.routable:
        return Backend(route.tool(target, router), True, _nextpnr(partial(route.route, router=router)))
    if target.vendor == "AMD" and shutil.which("vivado"):
        return Backend("vivado", False, vivado.run)
    if himbaechel.serves(target):
        return Backend(himbaechel.NAME, True, _nextpnr(himbaechel.route))
    return None


def _nextpnr(router: Callable[..., route.Routed]) -> Callable[[str, str, Target, Path, int], dict[str, Any]]:
    def run(verilog: str, top: str, target: Target, folder: Path, seed: int) -> dict[str, Any]:
        return router(verilog, top, target, folder, seed=seed).values

    return run
