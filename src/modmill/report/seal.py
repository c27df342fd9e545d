# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The seal of a folder: digests in its JSON record that cover every byte of every file.

    files    name -> SHA-256 of each other file
    seal     SHA-256 of the record without ``seal``, as canonical JSON: keys sorted, no spaces

The seal detects an edit. It is not a proof of origin: anyone who edits a file can seal the folder again. A check
therefore also recomputes the contents of the files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

KEYS = ("files", "seal")
"""Keys of the record that contain the seal."""


def file_digest(text: str) -> str:
    """``sha256:`` and the hexadecimal digest of a text in UTF-8."""
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def record_text(record: Mapping[str, Any]) -> str:
    """The text of the record's file: JSON with an indent of 2 and a final newline."""
    return json.dumps(record, indent=2) + "\n"


def sealed(record: Mapping[str, Any], texts: Mapping[str, str]) -> dict[str, Any]:
    """The record with the last keys ``files`` and ``seal``; ``texts``: every other file of the folder, by name."""
    bare = {key: value for key, value in record.items() if key not in KEYS}
    files = {name: file_digest(texts[name]) for name in sorted(texts)}
    covered = {**bare, "files": files}
    return {**covered, "seal": _seal(covered)}


def seal_differences(texts: Mapping[str, str], record_name: str) -> list[str]:
    """One line for each file that differs from its sealed state; empty if there is none.

    ``texts``: all files of the folder by name, including the record ``record_name``, with their line ends (see
    `folder_texts`). Raises ValueError if the record is not a JSON object.
    """
    text = texts[record_name]
    try:
        record = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{record_name} is malformed: {error}") from None
    if not isinstance(record, dict):
        raise ValueError(f"{record_name} is malformed: not a JSON object")
    files, others = record.get("files"), sorted(texts.keys() - {record_name})
    if not isinstance(files, dict) or "seal" not in record:
        return [f"{record_name}: has no seal (another version made this folder, or it was edited)"]
    found = []
    if record["seal"] != _seal({key: value for key, value in record.items() if key != "seal"}):
        found.append(f"{record_name}: was edited: its seal is that of another record")
    elif text != record_text(record):
        found.append(f"{record_name}: was edited: its text is not as it was written")
    found += [f"{name}: was edited: it has another digest than {record_name} says" for name in others
              if name in files and files[name] != file_digest(texts[name])]  # fmt: skip
    found += [f"{name}: {record_name} does not list it" for name in others if name not in files]
    return found + [f"{name}: is missing, but {record_name} lists it" for name in sorted(files.keys() - texts.keys())]


def folder_texts(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """The named files of a folder with their line ends unchanged; missing files are left out.

    Raises ValueError for a file that is not UTF-8.
    """
    found = {}
    for name in names:
        try:
            found[name] = (folder / name).read_bytes().decode("utf-8")
        except FileNotFoundError:
            continue
        except UnicodeDecodeError:
            raise ValueError(f"{folder / name} is not a text in UTF-8") from None
    return found


def _seal(covered: Mapping[str, Any]) -> str:
    return file_digest(json.dumps(covered, sort_keys=True, separators=(",", ":")))
