# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Runner of published vectors: the vectors of a file, their outcome, and its row, stored at once."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from modmill.flow import tools
from modmill.report.rows import Row, Store
from modmill.studies.vectors.files import judged

Progress = Callable[[str, int, int], None]
"""Called with a description, and how many vectors, runs or scalars of how many are done."""


@dataclass(frozen=True)
class Vectors(ABC):
    """Vectors of one file; abstract."""

    file: str
    cases: tuple[Any, ...]

    @property
    @abstractmethod
    def text(self) -> str:
        """The cases as text; the digest covers it."""

    @property
    def digest(self) -> str:
        """SHA-256 of the cases, in hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()


_Vectors = TypeVar("_Vectors", bound=Vectors)


@dataclass(frozen=True)
class Outcome(Generic[_Vectors]):
    """Outcome of one file. ``faults``: a line for each vector with a wrong outcome."""

    vectors: _Vectors
    faults: tuple[str, ...]
    row: Row

    @property
    def seconds(self) -> float:
        """Time that its runs took."""
        return float(self.row.values["seconds"])

    @property
    def runs(self) -> int:
        """Runs of a curve's engine, without those needed for an earlier file too."""
        return int(self.row.values["runs"])


def outcome(
    vectors: _Vectors, faults: Sequence[str], seconds: float, tool: str, about: Mapping[str, Any], **values: int
) -> Outcome[_Vectors]:
    """Make the outcome of a file. ``about``: description of the engine; ``values``: further values of the row."""
    what = {**about, "file": vectors.file, "cases": vectors.digest}
    values = {"vectors": len(vectors.cases), "faults": len(faults), **values}
    return Outcome(vectors, tuple(faults), judged(what, tool, {**values, "seconds": round(seconds, 2)}))


def kept(
    outcomes: Iterable[Outcome[_Vectors]], record: Path | None = None, store: Path | None = None
) -> Iterator[Outcome[_Vectors]]:
    """Yield the outcomes; store the row of each as soon as it is judged.

    ``record``: a results file to which the rows are added. ``store``: file for rows, default that of the cache.
    """
    rows = Store(store or tools.cache_dir() / "rows.jsonl", record=record)
    for found in outcomes:
        rows.add(found.row)
        yield found
