# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Output of several commands: progress, results, verdicts."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from modmill.cores.pair_check import PairReport
    from modmill.report.engines import EngineRaceResult


@contextmanager
def bar() -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar on stderr, which disappears at the end; none if stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield lambda running, done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}")
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("", total=None)
        yield lambda running, done, total: shown.update(task, description=running, completed=done, total=total)


def require_writable(output: Path | None) -> None:
    """Raise OSError now and not after minutes if the file cannot be written. ``-`` is stdout."""
    if output is not None and str(output) != "-":
        output.open("a").close()


def results(data: Any, output: Path | None, show: Callable[[], None], *, ascii_only: bool = True) -> None:
    """Print ``data`` as JSON if ``output`` is ``-``; else call ``show``, and write it to ``output`` if there is one."""
    text = json.dumps(data, indent=2, ensure_ascii=ascii_only)
    if str(output) == "-":
        print(text)
        return
    show()
    if output is not None:
        output.write_text(text + "\n", encoding="utf-8")


def engine_results(
    found: Sequence[EngineRaceResult], title: str, about: Mapping[str, Any], output: Path | None,
    refused: Sequence[str] = (),
) -> None:  # fmt: skip
    """Show a race of engines. Raises typer.Exit with status 1 if an engine has no check row."""
    from rich.console import Console

    from modmill.report.engines import footnotes, table

    def show() -> None:
        console = Console(width=None if sys.stdout.isatty() else 150, highlight=False, markup=False)
        console.print(table(found, title))
        print("\n".join(["", *footnotes(found), *refused]))

    results({**about, "engines": [s.describe() for s in found]}, output, show)
    if any(s.check is None for s in found):
        raise typer.Exit(1)


def verdict(report: PairReport) -> None:
    """Print the result of a check. Raises typer.Exit with status 1 if it failed."""
    print(report.line)
    for line in report.failures:
        print(f"  {line}")
    if report.failures:
        raise typer.Exit(1)


def signature_verdict(good: bool) -> None:
    """Print whether a signature is right. Raises typer.Exit with status 1 if it is wrong."""
    print("the signature is right" if good else "the signature is wrong")
    if not good:
        raise typer.Exit(1)


def write(data: bytes, output: Path | None) -> None:
    """Write bytes to a file, or to stdout without one."""
    if output is None:
        sys.stdout.buffer.write(data)
    else:
        output.write_bytes(data)


def passphrase_of(file: Path | None) -> str | None:
    """The passphrase in a file, without a line end."""
    return file.read_text().rstrip("\n") if file else None
