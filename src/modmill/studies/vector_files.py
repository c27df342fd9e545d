# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Where the packages with published vectors lie."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from modmill.contract import Refusal


def package(name: str) -> Path:
    """The folder of a package of vectors. Raises Refusal when it is not installed."""
    try:
        return Path(str(resources.files(name)))
    except ModuleNotFoundError:
        raise Refusal(
            f"published vectors come with the package {name.replace('_', '-')}, which is not installed; "
            "pip install 'modmill[test]' brings it"
        ) from None
