# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Conditions on parameters as a table: predicate, formula, numbers. The message names the first that fails."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Condition:
    """One inequality of a table: whether it holds, its formula, and the numbers in it."""

    holds: bool
    text: str
    numbers: str


def require(conditions: Iterable[Condition]) -> None:
    """Raise ValueError, with formula and numbers, for the first condition that fails."""
    for condition in conditions:
        if not condition.holds:
            raise ValueError(f"{condition.text} does not hold: {condition.numbers}")
