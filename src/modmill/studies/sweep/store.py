# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The store of sweeps: a folder of Parquet files, each the results of one batch, read and written by DuckDB.

A file is written under another name, synchronised and renamed, all under a lock of the folder, so that no file is ever
torn and no row is in the folder twice: what another sweep has added meanwhile is left out. Many small files are
replaced by one. Between a kill in the middle of that and the next use of the store a row can be in two files; `Store`
counts it once.

Each line of a file is a result (`points.Result`): its point, its state, and for a measured point the row as in
``results/*.jsonl``, with the texts of JSON of ``values`` and ``about``.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from modmill.parts import need
from modmill.report.rows import Key, Row
from modmill.studies.sweep.points import FAILURES, KNOWN, MEASURED, Point, Result

COLUMNS: Mapping[str, str] = {
    "point": "VARCHAR", "fingerprint": "VARCHAR", "state": "VARCHAR", "message": "VARCHAR", "cpu_seconds": "DOUBLE",
    "peak_mb": "BIGINT", "attempts": "BIGINT", "kind": "VARCHAR", "digest": "VARCHAR", "tool": "VARCHAR",
    "target": "VARCHAR", "seed": "BIGINT", "values": "VARCHAR", "about": "VARCHAR",
}  # fmt: skip
"""Names and types of the columns. ``point`` and ``fingerprint`` are empty for an imported row; ``values`` and ``about``
are null without a row."""
_FLAT = {
    "design": "about->>'design'", "modulus": "about->>'modulus'", "io": "about->>'io'",
    "parameters": "about->>'parameters'", **{
        name: f"TRY_CAST(coalesce(\"values\"->>'{name}', about->'predicted'->>'{name}') AS BIGINT)"
        for name in ("latency", "interval", "period")
    },
    **{name: f"about->>'{name}'" for name in ("engine", "curve", "operations")},
    **{name: f"TRY_CAST(about->>'{name}' AS BIGINT)" for name in ("modulus_bits", "threads", "cores")},
    **{name: f"TRY_CAST(\"values\"->>'{name}' AS BIGINT)" for name in ("dsp", "lut", "ff", "bram")},
    "mhz": "TRY_CAST(\"values\"->>'mhz' AS DOUBLE)",
}  # fmt: skip
"""Further columns of the view ``rows``: cycles are predicted unless the row is a check; ``engine`` and those behind it
are null for a multiplier."""
Line = tuple[Any, ...]
"""The values of `COLUMNS`."""
Name = tuple[Any, ...]
"""What makes two lines the same (`_name`)."""
FILES = 64
"""Number of files that are replaced by one."""
SHIPPED = ("unrouted", "routed")
"""The stores that ship, folders among the results; each has its plan beside it."""
RESERVE = 1 << 18
"""Bytes that are kept for the last batch on a full disk."""
_RESERVE, _LOCK, _NEW = "reserve", "lock", ".new"


class StoreError(RuntimeError):
    """The store cannot be read or written."""


class Store:
    """The results of a folder, which is made if there is none. Several processes may use one folder.

    Raises StoreError if the folder cannot be written or holds a file that is no Parquet file of a store.
    """

    def __init__(self, folder: Path) -> None:
        need("sweep")
        import duckdb

        self.folder = folder
        self._error = duckdb.Error
        self._database = duckdb.connect(":memory:", config={"threads": 1})
        self._read: set[str] = set()
        self._rows: dict[Key, Row] = {}
        self._lines: dict[Name, Line] = {}
        self._states: dict[Name, str] = {}
        self._idle = 0
        self._digests: dict[Name, set[str]] = defaultdict(set)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"the store {folder} cannot be made: {error.strerror}") from None
        with self._locked():
            for left in folder.glob(f"*{_NEW}"):  # of a process that was killed
                left.unlink()
            self._refresh()
            if self._idle:
                self._merge()
            self._keep_reserve()

    @property
    def rows(self) -> list[Row]:
        """The measured rows."""
        return list(self._rows.values())

    def state(self, point: Point) -> str | None:
        """The state of a point that was measured with the same tool and sources, or None."""
        return self._states.get(point.key)

    def known(self, point: Point) -> tuple[str, ...]:
        """The digests of RTL of the point's design that have a row of the same kind, tool, target and seed."""
        return tuple(sorted(self._digests[point.kind, point.tool, point.target, point.seed, point.design]))

    def refresh(self) -> None:
        """Read what other processes have added."""
        with self._locked():
            self._refresh()

    def add(self, results: Sequence[Result]) -> int:
        """Write results to a new file, except those that are there already; the number of rows that are new.

        On a full disk the store's reserve is given up for them. Raises StoreError if they cannot be written.
        """
        return self._add(map(_line, results))

    def put(self, rows: Iterable[Row]) -> int:
        """Add rows that were measured elsewhere; the number of those that are new."""
        return self._add(("", "", MEASURED, "", 0.0, 0, 0, *_row(row)) for row in rows)

    def _add(self, lines: Iterable[Line]) -> int:
        with self._locked():
            self._refresh()
            before, new, keys = len(self._rows), dict[Name, Line](), set[Name]()
            for line in lines:
                if line[12] is not None and (line[7:12] in self._rows or line[7:12] in keys):
                    line = _without_row(line)
                name = _name(line)
                if (line[0] or line[12]) and name not in new and self._states.get(name) in (None, *FAILURES):
                    new[name] = line
                    keys |= {line[7:12]} if line[12] else set()
            if new:
                self._write([*new.values()])
                self._keep_reserve()
                if len(self._files()) > FILES:
                    self._merge()
            return len(self._rows) - before

    def merge(self) -> None:
        """Replace all files by one."""
        with self._locked():
            self._refresh()
            if len(self._files()) > 1:
                self._merge()

    def query(self, sql: str) -> tuple[list[str], list[Line]]:
        """Names of columns and lines of a query in SQL, in which ``rows`` are the measured rows with their numbers as
        columns, and ``points`` all results. Raises ValueError for SQL that DuckDB refuses."""
        flat = ", ".join(f"{text} AS {name}" for name, text in _FLAT.items())
        with self._locked():
            self._refresh()
            if files := self._files():
                source = f"read_parquet([{', '.join(map(_quoted, files))}])"
            else:
                self._table("nothing", [])
                source = "nothing"
            self._database.execute(f"CREATE OR REPLACE TEMP VIEW points AS SELECT * FROM {source}")
            self._database.execute(
                f'CREATE OR REPLACE TEMP VIEW rows AS SELECT kind, digest, tool, target, seed, {flat}, "values", '
                'about FROM points WHERE "values" IS NOT NULL'
            )
            try:
                found = self._database.execute(sql)
                return [column[0] for column in found.description or ()], found.fetchall()
            except self._error as error:
                raise ValueError(f"DuckDB: {error}") from None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            file = (self.folder / _LOCK).open("ab")
        except OSError as error:
            raise StoreError(f"the store {self.folder} cannot be used: {error.strerror}") from None
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("*.parquet"))

    def _refresh(self) -> None:
        for path in self._files():
            if path.name not in self._read:
                for line in self._lines_of(path):
                    self._take(line)
                self._read.add(path.name)

    def _lines_of(self, path: Path) -> list[Line]:
        names = ", ".join(f'"{name}"' for name in COLUMNS)
        try:
            return self._database.execute(f"SELECT {names} FROM read_parquet({_quoted(path)})").fetchall()
        except self._error as error:
            reason = str(error).split("\n")[0]
            raise StoreError(f"{path} is no file of a store, move it away: {reason}") from None

    def _take(self, line: Line) -> None:
        """Take a line of a file. A line that adds nothing, as after a merge that was killed, is only counted."""
        kind, digest, tool, target, seed, values, about = line[7:]
        new = values is not None and line[7:12] not in self._rows
        if new:
            row = Row(kind, digest, tool, target, seed, json.loads(values), json.loads(about))
            self._rows[row.key] = row
            self._digests[kind, tool, target, seed, row.about.get("design")].add(digest)
        elif values is not None:
            line, self._idle = _without_row(line), self._idle + 1
        name = _name(line)
        if new or ((line[0] or line[12]) and self._states.get(name) in (None, *FAILURES)):
            self._lines[name], self._states[name] = line, line[2]

    def _write(self, lines: Sequence[Line]) -> None:
        """Write lines to a new file and take them. Raises StoreError if the disk is full, even if they are written."""
        try:
            name, full = self._written(lines), ""
        except (OSError, self._error) as error:
            full = str(error).split("\n")[0]
            (self.folder / _RESERVE).unlink(missing_ok=True)
            try:
                name = self._written(lines)
            except (OSError, self._error):
                raise StoreError(f"{len(lines):,} results cannot be written to {self.folder}: {full}") from None
        for line in lines:
            self._take(line)
        self._read.add(name)
        if full:
            raise StoreError(f"all results are in {self.folder}, and there is no room for more: {full}")

    def _written(self, lines: Sequence[Line]) -> str:
        """Write lines to a file, and return its name. What fails leaves nothing."""
        name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid4().hex[:12]}.parquet"
        new = self.folder / f"{name}{_NEW}"
        self._table("batch", lines)
        try:
            self._database.execute(f"COPY batch TO {_quoted(new)} (FORMAT parquet, COMPRESSION zstd)")
            _synchronise(new)
            new.rename(self.folder / name)
        except BaseException:
            new.unlink(missing_ok=True)
            raise
        _synchronise(self.folder)
        return name

    def _table(self, name: str, lines: Iterable[Line]) -> None:
        columns = ", ".join(f'"{column}" {kind}' for column, kind in COLUMNS.items())
        self._database.execute(f"CREATE OR REPLACE TEMP TABLE {name} ({columns})")
        marks = ", ".join("?" * len(COLUMNS))
        if lines := [*lines]:
            self._database.executemany(f"INSERT INTO {name} VALUES ({marks})", lines)

    def _merge(self) -> None:
        """Replace all files by one, unless the disk is full."""
        old = self._files()
        with suppress(OSError, self._error):
            self._read.add(self._written([*self._lines.values()]))
            for path in old:
                path.unlink()
            self._idle = 0

    def _keep_reserve(self) -> None:
        """Have the reserve, unless the disk is full."""
        path = self.folder / _RESERVE
        try:
            if not path.exists():
                path.write_bytes(os.urandom(RESERVE))  # a file system may compress zeros
        except OSError:
            path.unlink(missing_ok=True)


def read_folder(folder: Path) -> list[Row]:
    """The measured rows of a store, without changing it; none if there is no such folder."""
    import duckdb

    if not (files := sorted(folder.glob("*.parquet"))):
        return []
    listed = ", ".join(map(_quoted, files))
    names = ", ".join(f'"{name}"' for name in [*COLUMNS][7:])
    lines = duckdb.sql(f'SELECT {names} FROM read_parquet([{listed}]) WHERE "values" IS NOT NULL').fetchall()
    return [
        Row(kind, digest, tool, target, seed, json.loads(values), json.loads(about))
        for kind, digest, tool, target, seed, values, about in lines
    ]


def _line(result: Result) -> Line:
    p = result.point
    start = p.name, p.fingerprint, result.state, result.message, result.cpu_seconds, result.peak_mb, result.attempts
    if result.row:
        return (*start, *_row(result.row))
    return (*start, p.kind, result.digest, p.tool, p.target, p.seed, None, None)


def _row(row: Row) -> Line:
    return (*row.key, json.dumps(row.values, sort_keys=True), json.dumps(row.about, sort_keys=True))


def _name(line: Line) -> Name:
    """What makes two lines the same: point, fingerprint and tool; the key of the row without a point."""
    return (line[0], line[1], line[9]) if line[0] else line[7:12]


def _without_row(line: Line) -> Line:
    """The line of a point whose row is there already."""
    return (*line[:2], KNOWN, *line[3:12], None, None)


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _synchronise(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
