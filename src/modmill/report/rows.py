# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Measured numbers: one row for each measurement, stored as JSON lines.

A row belongs to one digest of RTL, one tool version, one target and one seed: the same four give the same numbers. Rows
measured here are in ``rows.jsonl`` of the cache folder; rows that ship with Modmill are in ``results``.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

KINDS = ("check", "synth", "route", "mutate", "depth", "bus", "bitstream", "proof", "faults", "leakage")

Key = tuple[str, str, str, str, int | None]


@dataclass(frozen=True)
class Row:
    """One measurement.

    ``kind``: check (simulated against the contract), synth (resources), route (clock), mutate (planted faults that
    check finds), depth (levels of lookup tables), bus (cycles and resources of a bus front), bitstream (clock and
    resources of an engine on a board), proof (states of proofs), faults (outcomes of faults while an engine runs),
    leakage (t-test of toggle traces; the operation and its blinding follow the tool after a comma).
    ``digest``: of the RTL. ``tool``: name and version. ``target``: empty for a check, a depth and a proof. ``seed``:
    None except for a route and a bitstream.
    ``values``: the numbers. ``about``: the measured core in words (design, modulus, io, parameters, date).
    """

    kind: str
    digest: str
    tool: str
    target: str
    seed: int | None
    values: dict[str, Any]
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        """The key that determines the numbers."""
        return self.kind, self.digest, self.tool, self.target, self.seed

    @classmethod
    def parse(cls, line: str) -> Row:
        """The row of one line. Raises ValueError if the line is not a row."""
        try:
            found = json.loads(line)
            row = cls(**{f.name: found[f.name] for f in fields(cls)})
        except (json.JSONDecodeError, TypeError, KeyError) as error:
            raise ValueError(f"not a row: {line[:60]!r}") from error
        if row.kind not in KINDS or not isinstance(row.values, dict):
            raise ValueError(f"not a row: {line[:60]!r}")
        return row

    def outdates(self, older: Row) -> bool:
        """Whether this row replaces the older one: the same key, or the same core with other RTL."""
        if self.key == older.key:
            return self != older
        words = [{k: v for k, v in row.about.items() if k not in ("date", "rtl", "predicted")} for row in (self, older)]
        return bool(words[0]) and words[0] == words[1] and self.digest != older.digest

    def line(self) -> str:
        """The row as a line of a file."""
        return json.dumps(asdict(self), sort_keys=True) + "\n"


def read(path: Path) -> Iterable[Row]:
    """The rows of a file; none if there is no file. Lines that are not rows, such as a torn one, are skipped."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return
    for line in text.splitlines():
        try:
            yield Row.parse(line)
        except ValueError:
            continue


def append(path: Path, row: Row) -> None:
    """Add a row to a file atomically, also if other processes write to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        end = file.seek(0, os.SEEK_END)
        torn = False
        if end:
            file.seek(end - 1)
            torn = file.read(1) != b"\n"
        file.write((b"\n" if torn else b"") + row.line().encode())
        file.flush()


def put(path: Path, row: Row) -> None:
    """Add a row to a file as `append` does, and remove the rows that it outdates."""
    append(path, row)
    with path.open("r+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        gone = {other.line() for other in read(path) if row.outdates(other)} | {row.line()}
        lines = list(file)
        kept = [*(line for line in lines if line not in gone), row.line()]
        if len(kept) < len(lines):
            file.seek(0)
            file.truncate()
            file.writelines(kept)


def shipped_folder() -> Path:
    """The folder of the rows that ship with Modmill: ``results`` of the checkout, or of the installed package."""
    package = Path(__file__).resolve().parents[1]
    checkout = package.parents[1]
    return checkout / "results" if (checkout / "pyproject.toml").exists() else package / "results"


class Store:
    """All known rows, for one or more threads. ``record``: a file to which every row that is used is added unless it
    has it."""

    def __init__(self, own: Path, shipped: Path | None = None, record: Path | None = None) -> None:
        self._own = own
        self._record = record
        self._writing = Lock()
        self._rows: dict[Key, Row] = {}
        folder = shipped_folder() if shipped is None else shipped
        for path in [*sorted(folder.glob("*.jsonl")), own]:
            self._rows.update((row.key, row) for row in read(path))
        self._recorded = {row.key for row in read(record)} if record else set()

    @property
    def rows(self) -> Sequence[Row]:
        """All rows, shipped ones first."""
        return tuple(self._rows.values())

    def find(self, kind: str, digest: str, tool: str, target: str = "", seed: int | None = None) -> Row | None:
        """The row with this key, or None; it is added to ``record``."""
        row = self._rows.get((kind, digest, tool, target, seed))
        if row is not None:
            self._note(row)
        return row

    def routed(self, digest: str, tool: str, target: str, seed: int | None, *, exact: bool = False) -> Row | None:
        """The row of a route by ``tool``, or, unless ``exact``, by the same tool with options, which follow a comma."""
        if exact:
            return self.find("route", digest, tool, target, seed)
        with_options = (key[2] for key in self._rows if key[:2] == ("route", digest) and key[2].startswith(f"{tool}, "))
        found = (self.find("route", digest, named, target, seed) for named in (tool, *with_options))
        return next((row for row in found if row), None)

    def measured(self, key: Key, about: Mapping[str, Any], measure: Callable[[], Mapping[str, Any]]) -> tuple[Row, str]:
        """The row with this key, and "recorded"; or, if there is none, a new one of what ``measure`` returns, and
        "measured"."""
        row = self.find(*key)
        return (row, "recorded") if row else (self.keep(key, about, measure()), "measured")

    def keep(self, key: Key, about: Mapping[str, Any], values: Mapping[str, Any]) -> Row:
        """Store a new row with today's date."""
        date = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        row = Row(*key, dict(values), {**about, "date": date})
        self.add(row)
        return row

    def add(self, row: Row) -> None:
        """Store a row."""
        with self._writing:
            append(self._own, row)
            self._rows[row.key] = row
            self._recorded.discard(row.key)
            self._note(row)

    def _note(self, row: Row) -> None:
        if self._record and row.key not in self._recorded:
            put(self._record, row)
            self._recorded.add(row.key)
