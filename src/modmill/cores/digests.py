# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Digests of RTL that was emitted before, so that rows are found without emitting it again (seconds for each core).

A digest counts only for the sources of Modmill and the tools that wrote its RTL: both are in a fingerprint that is
stored with it. Digests are in ``digests.json`` of the cache folder, and those of all multipliers that shipped rows
describe in ``digests.json`` of ``results``, written by ``modmill digests``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from modmill.flow import tools
from modmill.report.rows import shipped_folder

if TYPE_CHECKING:
    from modmill.cores.multiplier.build import Core

NAME = "digests.json"
"""Name of the file, in the cache folder and among the results."""
MULTIPLIER = (
    "contract.py", "design.py", "interface.py", "twice.py", "parts.py", "placement.py", "placements.json",
    "schedule.py", "numbers", "rtl", "designs", "flow/__init__.py", "flow/adders.py", "flow/emit.py",
    "flow/memories.py", "flow/modules.py", "flow/readable", "flow/tiles.py", "flow/tools.py",
)  # fmt: skip
"""Files and folders of the package on which the RTL of a multiplier depends."""
EVERYTHING = (".",)
"""The whole package, on which the RTL of an engine depends."""


@cache
def fingerprint(sources: Sequence[str] = MULTIPLIER) -> str:
    """A digest of these sources and of the versions of Amaranth and Yosys; OSError if a source is missing."""
    folder = Path(__file__).resolve().parents[1]
    texts = {name: tools.version(name).encode() for name in ("amaranth", "yosys")}
    for name in sources:
        place = folder / name
        files = [file for kind in ("*.py", "*.json") for file in place.rglob(kind)] if place.is_dir() else [place]
        texts |= {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}
    parts = sorted((name, sha256(text).hexdigest()) for name, text in texts.items())
    return sha256(json.dumps(parts).encode()).hexdigest()


def key(core: Core) -> str:
    """The text that names a multiplier: design, modulus, form and all parameters. Its top must be ``core``."""
    if core.top != "core" or core.stored:
        raise ValueError("only RTL that is emitted with the top `core` has a key")
    settings = (f"{name}={value}" for name, value in sorted(core.fitted.settings.items()))
    return " ".join([core.design.name, f"{core.modulus.value:#x}", core.io, *settings])


def emitted_size(core: Core) -> int:
    """The length of the RTL that the design of a core emits, remembered as digests are."""
    if core.stored or "verilog" in vars(core) or core.top != "core":
        return len(core.verilog)
    return int(Digests(shipped=False).of(f"{key(core)}, length", lambda: str(len(core.verilog))))


def read(path: Path, wanted: str) -> dict[str, str]:
    """The digests of a file that have this fingerprint; none if there is no such file or it is damaged."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {str(k): str(v) for k, v in found[wanted].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def write(path: Path, found: Mapping[str, Mapping[str, str]]) -> None:
    """Write digests by fingerprint, atomically."""
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n", encoding="utf-8")
    beside.replace(path)


class Digests:
    """Digests by key, for one or more threads. ``sources``: those of the fingerprint, `MULTIPLIER` or `EVERYTHING`.

    ``shipped``: whether the shipped digests count too, and not only those emitted on this machine.
    """

    def __init__(self, sources: Sequence[str] = MULTIPLIER, *, shipped: bool = True) -> None:
        self._fingerprint = fingerprint(sources)
        self._file = tools.cache_dir() / NAME
        places = [self._file, *([shipped_folder() / NAME] if shipped else [])]
        self._known = {name: found for place in places for name, found in read(place, self._fingerprint).items()}
        self._new: dict[str, str] = {}
        self._writing = Lock()

    def of(self, key: str, emitted: Callable[[], str]) -> str:
        """The digest with this key; the one of ``emitted``, which is then stored, if it is unknown."""
        if key not in self._known:
            self._known[key] = self._new[key] = emitted()
            self._keep()
        return self._known[key]

    def _keep(self) -> None:
        with self._writing:
            try:
                found: dict[str, Any] = json.loads(self._file.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                found = {}
            current = {fingerprint(sources) for sources in (MULTIPLIER, EVERYTHING)}
            kept = {name: read(self._file, name) for name in current & set(found)}
            kept[self._fingerprint] = kept.get(self._fingerprint, {}) | self._new
            write(self._file, kept)
