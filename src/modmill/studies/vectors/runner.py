# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What all runs of published vectors have in common: a file's vectors, what they showed, and its row, kept at once."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modmill.flow import tools
from modmill.report.rows import Row, Store
from modmill.studies.vectors.files import judged

Progress = Callable[[str, int, int], None]
"""Told what runs, how many vectors, runs or scalars are done, and how many there are."""


@dataclass(frozen=True)
class Vectors(ABC):
    """The vectors of one file."""

    file: str
    cases: tuple[Any, ...]

    @property
    @abstractmethod
    def text(self) -> str:
        """The cases as a text, of which the digest is made."""

    @property
    def digest(self) -> str:
        """Of the cases."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True)
class Outcome:
    """What one file showed. ``faults``: a line for each vector whose outcome is not its own."""

    vectors: Vectors
    faults: tuple[str, ...]
    row: Row

    @property
    def seconds(self) -> float:
        """That its runs took."""
        return float(self.row.values["seconds"])

    @property
    def runs(self) -> int:
        """Runs of a curve's engine, without those that a file before it had asked for."""
        return int(self.row.values["runs"])


def outcome(
    vectors: Vectors, faults: Sequence[str], seconds: float, tool: str, about: Mapping[str, Any], **values: int
) -> Outcome:
    """The outcome of a file. ``about``: the engine that ran it; ``values``: of the row, beside those of every file."""
    what = {**about, "file": vectors.file, "cases": vectors.digest}
    values = {"vectors": len(vectors.cases), "faults": len(faults), **values}
    return Outcome(vectors, tuple(faults), judged(what, tool, {**values, "seconds": round(seconds, 2)}))


def kept(outcomes: Iterable[Outcome], record: Path | None = None, store: Path | None = None) -> Iterator[Outcome]:
    """The outcomes; each one's row is kept as soon as it is judged.

    ``record``: a results file to which the rows are added. ``store``: where rows lie, default the cache.
    """
    rows = Store(store or tools.cache_dir() / "rows.jsonl", record=record)
    for found in outcomes:
        rows.add(found.row)
        yield found
