# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Labels of PEM files (RFC 7468): ``-----BEGIN`` and what a block holds."""

from __future__ import annotations

import re
from collections.abc import Sequence

from modmill.contract import UnsupportedError
from modmill.numbers.shown import shortened

_BEGIN = re.compile(rb"-----BEGIN ([^\r\n]*?)-----")


def labels(data: bytes) -> list[str]:
    """The labels of all blocks of a PEM file, in order; none for DER."""
    return [label.decode("ascii", "replace") for label in _BEGIN.findall(data)]


def require_label(data: bytes, accepted: Sequence[str]) -> None:
    """Raise UnsupportedError when a file has PEM blocks, or a beginning of one, and none has a label among
    ``accepted``."""
    found = labels(data)
    if b"-----BEGIN" not in data or set(found) & set(accepted):
        return
    what = f"the PEM file is labelled {shortened(found[0])}" if found else "the PEM file has no label that can be read"
    raise UnsupportedError(f"{what}; accepted are {', '.join(accepted)}")
