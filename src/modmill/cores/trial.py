# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""First simulation of an engine: its answers are compared, its cycles counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from modmill.flow import tools


@dataclass(frozen=True)
class Trial:
    """Number of results compared, cycles of one job alone (``latency``), cycles between answers of a machine."""

    judged: int
    latency: int
    period: int


def judged(found: Sequence[Any], wanted: Sequence[Any], what: str) -> int:
    """Return the number of results. Raises ToolError at the first wrong one, and if some or all are missing."""
    if len(found) != len(wanted) or not wanted:
        raise tools.ToolError(f"simulation: {len(found)} of {len(wanted)} results")
    for k, (x, y) in enumerate(zip(found, wanted, strict=True)):
        if x != y:
            raise tools.ToolError(f"simulation: {what} {k} is wrong")
    return len(wanted)
