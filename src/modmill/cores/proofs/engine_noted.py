# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What was proved of an engine, written into the record and the data sheet of its folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from modmill.cores.built import BuiltEngine
from modmill.cores.engine_files import SHEET, sheet_text, texts_of
from modmill.cores.folder import json_object
from modmill.cores.multiplier.noted import merged
from modmill.report import seal
from modmill.version import __version__


def note_engine(kind: type[BuiltEngine], path: Path, digest: str, states: Mapping[str, Any]) -> list[str]:
    """Write the ``states`` of proofs, of the RTL with this digest, into the record and the data sheet of an engine of
    this ``kind``. Returns why this was not done, if the folder is not as a build of this version left it; else nothing.
    """
    name = f"{kind.STEM}.json"
    try:
        texts = texts_of(path, kind.STEM)
        if faults := seal.seal_differences(texts, name):
            raise ValueError(faults[0])
        former = json_object(texts.pop(name), name)
        if former["digest"] != digest or former.get("modmill") != __version__:
            raise ValueError(f"{name} is of another RTL or version")
        record = {key: x for key, x in former.items() if key not in seal.KEYS} | {"proved": merged(former, states)}
        texts[SHEET] = sheet_text(kind.read(path), record)
        (path / SHEET).write_text(texts[SHEET])
        (path / name).write_text(seal.record_text(seal.sealed(record, texts)))
    except (ValueError, KeyError, OSError) as error:
        return [f"{name} and {SHEET} do not take the result: {error}"]
    return []
