# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Folders of files: read, and written completely or not at all."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Collection, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from modmill.buses.serve import SOCKET

KINDS = {"contract.json": "a multiplier", "engine.json": "an RSA engine", "ecc.json": "a coprocessor of a curve"}
"""The record of each kind of folder that a build writes, and what the folder holds."""

CERTIFICATE = "products.jsonl.gz"
"""The proof of products that `modmill prove` leaves in a folder."""

BESIDE = ("sim_build", "__pycache__", ".pytest_cache", "build", SOCKET, CERTIFICATE)
"""What bench, FuseSoC, `modmill serve` and `modmill prove` make in a folder."""


def kind_of(folder: Path) -> str:
    """What a build wrote to this folder, of `KINDS`. Raises ValueError if it is no such folder."""
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder; a folder that build, rsa build or ecc build wrote is needed")
    for record, kind in KINDS.items():
        if (folder / record).exists():
            return kind
    raise ValueError(f"{folder} holds no core: one of {', '.join(KINDS)} is needed, which the builds write")


def require_former(folder: Path, files: Collection[str], beside: Collection[str] = ()) -> None:
    """Raise ValueError unless the folder is missing, empty, or a former build: all of ``files`` and no others, except
    names that match one of the patterns ``beside``."""
    if not folder.exists() and not folder.is_symlink():
        return
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder; name a new folder with -o")
    entries = {entry.name for entry in folder.iterdir()}
    missing = sorted(set(files) - entries)
    foreign = sorted(n for n in entries - set(files) if not any(fnmatch(n, pattern) for pattern in beside))
    if entries and (foreign or missing):
        what = f"{foreign[0]}, which no build wrote" if foreign else f"files, but not the {missing[0]} of a build"
        raise ValueError(f"{folder} holds {what}, and is not replaced; name a new or empty folder with -o")


def listed(folder: Path) -> tuple[str, ...]:
    """The names of the files that the record of a former build lists; none without such a record."""
    for record in KINDS:
        try:
            found = json_object(read_text(folder / record), record).get("files")
        except (ValueError, OSError):
            continue
        if isinstance(found, dict):
            return tuple(map(str, found))
    return ()


def read_text(path: Path) -> str:
    """The text of a file. Raises ValueError if it is missing or not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ValueError(f"{path} is missing") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a text file in UTF-8") from None


def json_object(text: str, name: str | Path) -> dict[str, Any]:
    """The JSON object in the text of the file ``name``. Raises ValueError for any other text."""
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{name} is truncated or malformed: {error.msg} in line {error.lineno}") from None
    except RecursionError:
        raise ValueError(f"{name} is malformed: nested too deep") from None
    if not isinstance(found, dict):
        raise ValueError(f"{name} is malformed: not a JSON object")
    return found


def write_folder(target: Path, texts: Mapping[str, str | bytes]) -> None:
    """Write files (name -> content; a name may begin with folders) to a temporary folder and rename it to ``target``;
    replace a folder that is there."""
    target = target.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        new = beside / "new"
        new.mkdir()
        for name, text in texts.items():
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            (new / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        if target.exists() and any(target.iterdir()):
            old = beside / "old"
            os.rename(target, old)
            try:
                os.rename(new, target)
            except BaseException:
                os.rename(old, target)
                raise
        else:
            os.rename(new, target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
