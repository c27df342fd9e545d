# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What was proved of a core, written into the record and the data sheet of its folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from modmill.cores.multiplier.build import RECORD
from modmill.cores.multiplier.folder import Folder
from modmill.report import seal
from modmill.version import __version__

_SHEET = "README.md"


def note(path: Path, digest: str, states: Mapping[str, Any]) -> list[str]:
    """Write the ``states`` of proofs, of the RTL with this digest, into contract.json and data sheet.

    Returns why this was not done, if the folder is not as a build of this version left it; else nothing."""
    try:
        folder = Folder.read(path)
        if faults := seal.seal_differences(folder.texts, RECORD):
            raise ValueError(faults[0])
        if folder.record["digest"] != digest or folder.record.get("modmill") != __version__:
            raise ValueError(f"{RECORD} is of another RTL or version")
        record = {k: v for k, v in folder.record.items() if k not in seal.KEYS} | {
            "proved": merged(folder.record, states)
        }
        core = folder.refit()
        texts = {**folder.texts, _SHEET: core.texts(record, folder.verilog)[_SHEET]}
        del texts[RECORD]
        (path / _SHEET).write_text(texts[_SHEET])
        (path / RECORD).write_text(seal.record_text(seal.sealed(record, texts)))
    except (ValueError, OSError) as error:
        return [f"{RECORD} and {_SHEET} do not take the result: {error}"]
    return []


def merged(record: Mapping[str, Any], states: Mapping[str, Any]) -> dict[str, Any]:
    """The states in a record, with those of new proofs; former parts and certificates go with what they belong to."""
    of = {"certificate": ("products",), "parts": ("control", "operations")}
    former = record.get("proved", {})
    return {key: value for key, value in former.items() if not states.keys() & set(of.get(key, (key,)))} | dict(states)
