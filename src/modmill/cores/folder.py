# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Output folders: written completely or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path


def require_former(folder: Path, files: Collection[str]) -> None:
    """Raise ValueError if the folder exists and holds anything except ``files``, the files of a former build."""
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
    """Write files (name -> text) to a temporary folder and rename it to ``target``; replace a folder that is there."""
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
