# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What a first simulation of an engine shows: that its answers are right, and its cycles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from modmill.flow import tools


@dataclass(frozen=True)
class Trial:
    """What a simulation showed: results judged, cycles of one job alone, cycles from a machine's answer to its next."""

    judged: int
    latency: int
    period: int


def judged(found: Sequence[Any], wanted: Sequence[Any], what: str) -> int:
    """How many results were compared. Raises ToolError at the first that is wrong, and when there are none."""
    if len(found) != len(wanted) or not wanted:
        raise tools.ToolError(f"simulation: {len(found)} of {len(wanted)} results")
    for k, (x, y) in enumerate(zip(found, wanted, strict=True)):
        if x != y:
            raise tools.ToolError(f"simulation: {what} {k} is wrong")
    return len(wanted)
