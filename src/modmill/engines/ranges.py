# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Ranges of numbers that may be secret: a message states the length of a wrong number, not its value."""

from __future__ import annotations

from collections.abc import Iterable

from modmill.contract import UnsupportedError


def require_range(numbers: Iterable[int], end: int, rule: str) -> None:
    """Raise UnsupportedError for the first number outside [0, end); ``rule``: the range in words."""
    for x in numbers:
        if not 0 <= x < end:
            raise UnsupportedError(f"{rule}, got one of {x.bit_length()} bits{' below 0' if x < 0 else ''}")
