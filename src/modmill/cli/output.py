# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Output of several commands: results, verdicts, and what was written."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from modmill.cli.progress import hide, note

if TYPE_CHECKING:
    from modmill.cores.multiplier.verify import Report
    from modmill.cores.pair_check import PairReport
    from modmill.report.engines import EngineRaceResult

SHOWN = 10
"""Largest number of differences that are listed."""


def require_writable(record: Path | None) -> None:
    """Raise OSError now and not after minutes if the file cannot be written."""
    if record is not None:
        record.open("a").close()


def either(argument: str, option: str, message: str) -> str:
    """What the user gave as an argument or as an option. Raises ValueError if there is none, or both."""
    if bool(argument) == bool(option):
        raise ValueError(message)
    return argument or option


def recorded(record: Path | None) -> None:
    """Say where the rows are."""
    if record is not None:
        note(f"rows are in {record}")


def results(data: Any, as_json: bool, show: Callable[[], None], *, ascii_only: bool = True) -> None:
    """Print ``data`` as JSON, or call ``show``."""
    print(json.dumps(data, indent=2, ensure_ascii=ascii_only)) if as_json else show()


def engine_results(
    found: Sequence[EngineRaceResult], title: str, about: Mapping[str, Any], as_json: bool,
    refused: Sequence[str] = (),
) -> None:  # fmt: skip
    """Show a race of engines. Raises typer.Exit with status 1 if an engine has no check row."""
    from rich.console import Console

    from modmill.report.engines import footnotes, table

    def show() -> None:
        console = Console(width=None if sys.stdout.isatty() else 150, highlight=False, markup=False)
        console.print(table(found, title))
        print("\n".join(["", *footnotes(found), *refused]))

    results({**about, "engines": [s.describe() for s in found]}, as_json, show)
    if any(s.check is None for s in found):
        raise typer.Exit(1)


def verdict(report: Report | PairReport, *, as_json: bool) -> None:
    """Print the result of a check. Raises typer.Exit with status 1 if it failed."""
    if as_json:
        print(json.dumps(report.describe(), indent=2))
    else:
        print(report.line)
        for line in report.failures[:SHOWN]:
            print(f"  {line}")
        if len(report.failures) > SHOWN:
            print(f"  and {len(report.failures) - SHOWN} more")
    if report.failures:
        raise typer.Exit(1)


def signature_verdict(good: bool) -> None:
    """Print whether a signature is right. Raises typer.Exit with status 1 if it is wrong."""
    print("the signature is right" if good else "the signature is wrong")
    if not good:
        raise typer.Exit(1)


def write(data: bytes, output: Path | None) -> None:
    """Write bytes to a file, and say so on stderr, or to stdout without one."""
    if output is None:
        hide()
        sys.stdout.buffer.write(data)
    else:
        output.write_bytes(data)
        note(f"{output}: {len(data):,} bytes")


def write_private(data: bytes, output: Path | None) -> None:
    """The same for a private key: a new file can be read by its owner only."""
    if output is not None:
        os.close(os.open(output, os.O_WRONLY | os.O_CREAT, 0o600))
    write(data, output)


def passphrase_of(file: Path | None) -> str | None:
    """The passphrase in a file, without a line end."""
    return file.read_text().rstrip("\n") if file else None
