# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Folders that hold what is made: there whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path


def require_former(folder: Path, files: Collection[str]) -> None:
    """Raise ValueError when a folder is there and holds anything but these files, those of a former build."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ValueError(f"{folder} exists and is not a folder")
    entries = {entry.name for entry in folder.iterdir()}
    if foreign := sorted(entries - set(files)):
        raise ValueError(
            f"{folder} exists and is no former build (it holds {foreign[0]}); choose another folder with -o"
        )


def write_folder(target: Path, texts: Mapping[str, str]) -> None:
    """Write files beside and rename, so that the folder is there whole or not at all; a folder there is replaced."""
    target = target.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        new = beside / "new"
        new.mkdir()
        for name, text in texts.items():
            (new / name).write_text(text, encoding="utf-8")
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
