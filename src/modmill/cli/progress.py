# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What a command does while it runs, on stderr: a bar on a terminal, else a line every 10 seconds.

`command` shows this for every command. Commands say more with `show`; the steps of the tools come from the loggers
below ``modmill`` (`flow.tools`): steps have level INFO, command lines of tools DEBUG.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress

FIRST = 1.0
"""Seconds after which a bar appears on a terminal."""
EVERY = 10.0
"""Seconds between two lines if stderr is no terminal."""
_MOST = 300
"""Length of the longest line, in characters."""


class _Display(logging.Handler):
    """The state of a running command, and the thread that shows it."""

    def __init__(self, quiet: bool, verbose: bool) -> None:
        super().__init__(logging.DEBUG if verbose else logging.INFO)
        self._quiet, self._verbose = quiet, verbose
        self._began = self._first = time.monotonic()
        self._text = self._step = ""
        self._done = self._total = self._before = 0
        self._lock, self._ended = Lock(), Event()
        self._shown: Progress | None = None
        self._wrote = 0.0
        self._thread = Thread(target=self._bar if sys.stderr.isatty() else self._lines, daemon=True)

    def start(self) -> None:
        if not self._quiet:
            self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def emit(self, record: logging.LogRecord) -> None:
        """Take a step of the library."""
        text = record.getMessage()
        if self._verbose and text != self._step:
            self._say(text)
        if record.levelno >= logging.INFO:
            self._step = text

    def show(self, text: str, done: int, total: int) -> None:
        if self._verbose and text != self._text:
            self._say(text)
        if total != self._total:
            self._first, self._before = time.monotonic(), done
        if text != self._text:
            self._step = ""
        self._text, self._done, self._total = text, done, total

    def note(self, text: str) -> None:
        if not self._quiet:
            say(text)

    def _say(self, text: str) -> None:
        say(f"{self._seconds} s: {text}")

    @property
    def _seconds(self) -> int:
        return round(time.monotonic() - self._began)

    @property
    def _left(self) -> str:
        """The time that is left, at the speed since the total is known; empty if nothing was done since then."""
        moved = self._done - self._before
        if not self._total or moved <= 0:
            return ""
        seconds = round((time.monotonic() - self._first) / moved * (self._total - self._done))
        minutes = round(seconds / 60)
        return f"about {seconds} s left" if seconds < 100 else f"about {minutes} min left"

    @property
    def _counted(self) -> str:
        """How much is done, and the time that is left; empty if the total is unknown."""
        return ", ".join(filter(None, [f"{self._done:,} of {self._total:,}", self._left])) if self._total else ""

    @property
    def _what(self) -> str:
        """The text of the command and the step, which a text with a total already contains."""
        return ": ".join(filter(None, [self._text, "" if self._total and self._text else self._step])) or "working"

    def _lines(self) -> None:
        while not self._ended.wait(EVERY):
            text = " ".join(self._what.split())
            say(f"{self._seconds} s: {text[:_MOST]}{f' ({self._counted})' if self._counted else ''}")

    def _bar(self) -> None:
        if self._ended.wait(FIRST):
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn
        from rich.table import Column

        line = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis"))
        bar = Progress(
            BarColumn(20), line, console=Console(stderr=True), transient=True,
            redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        task = bar.add_task("", total=None)
        while not self._ended.wait(0.2):
            text = " ".join(filter(None, [f"{self._seconds} s:", self._counted and f"{self._counted}:", self._what]))
            bar.update(task, description=text, completed=self._done, total=self._total or None)
            with self._lock:
                if self._shown is None and time.monotonic() - self._wrote > FIRST:
                    self._shown = bar
                    bar.start()
        self.clear()

    def clear(self) -> None:
        """Take the bar away for the text that is written next; it comes back after a second."""
        with self._lock:
            self._wrote = time.monotonic()
            if self._shown:
                self._shown.stop()
                self._shown = None


class _Above:
    """Stdout on the terminal that also has the bar: each text clears the bar first."""

    def __init__(self, file: TextIO, clear: Callable[[], None]) -> None:
        self._file, self._clear = file, clear

    def write(self, text: str) -> int:
        self._clear()
        return self._file.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


_current: _Display | None = None
_kept = ""


@contextmanager
def display(*, quiet: bool, verbose: bool) -> Iterator[None]:
    """Show what the enclosed code does; nothing with ``quiet``, all steps with ``verbose``."""
    global _current, _kept
    _kept = ""
    library, outer = logging.getLogger("modmill"), _current
    level = library.level
    _current = inner = _Display(quiet, verbose)
    library.addHandler(inner)
    library.setLevel(inner.level)
    inner.start()
    stdout = sys.stdout
    if stdout.isatty():
        sys.stdout = _Above(stdout, inner.clear)
    try:
        yield
    finally:
        _current, sys.stdout = outer, stdout
        inner.stop()
        library.removeHandler(inner)
        library.setLevel(level)


def show(text: str, done: int = 0, total: int = 0) -> None:
    """Say what runs now, and how much of how much is done, if that is known."""
    if _current:
        _current.show(text, done, total)


def hide() -> None:
    """Show nothing from now on: the command waits for its user."""
    if _current:
        _current.stop()


def note(text: str) -> None:
    """Print a line on stderr beside the results, unless the user wants quiet."""
    if _current:
        _current.note(text)


def keep(text: str) -> None:
    """What Ctrl-C leaves, for its message."""
    global _kept
    _kept = text


def interrupted() -> str:
    """The message of Ctrl-C."""
    return f"interrupted; {_kept}" if _kept else "interrupted"


def say(text: str) -> None:
    """Print a line on stderr."""
    if _current:
        _current.clear()
    print(f"modmill: {text}", file=sys.stderr, flush=True)
