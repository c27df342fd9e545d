# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A part of a proof: a statement, and what remains of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """``name`` of the part, the ``theorem`` in words; ``remains``: what is not proved, nothing if all is."""

    name: str
    theorem: str
    remains: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """PROVED or OPEN."""
        return "OPEN" if self.remains else "PROVED"


Check = tuple[str, str, Callable[[], list[str]]]
"""Name and theorem of a part, and what returns what remains of it."""
