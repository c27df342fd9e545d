# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The command's statuses: 0; 1 for a failed check; 2 for a refusal, with one line on stderr; 130 for Ctrl-C."""

from __future__ import annotations

import os
import sys

from modmill.cli import usage
from modmill.cli.commands import app
from modmill.cli.progress import say
from modmill.numbers.shown import name as shown_name

_MESSAGE = 380
"""Largest number of characters of a refusal."""


def status() -> int:
    """Run the command of `sys.argv` and return its status."""
    try:
        found = app(prog_name="modmill", standalone_mode=False)
    except BrokenPipeError:  # the reader of our output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError) as error:
        return _refused(_clipped(one_line(error)))
    except RuntimeError as error:  # a tool's error
        return _refused(one_line(error))
    except Exception as error:
        if not hasattr(error, "format_message"):  # typer's errors: unknown option, missing argument
            raise
        return _refused(_clipped(usage.refusal(error)))
    if found == 130:  # typer's status for Ctrl-C
        raise KeyboardInterrupt
    return found if isinstance(found, int) else 0


def one_line(error: Exception) -> str:
    """The message of an error in one line."""
    if isinstance(error, OSError) and error.strerror:
        return f"{shown_name(str(error.filename))}: {error.strerror}" if error.filename else error.strerror
    return " ".join(str(error).split()) or type(error).__name__


def _clipped(message: str) -> str:
    """A refusal shortened to a few lines of a terminal, because it may quote a long text of the user."""
    message = " ".join(message.split())
    return message if len(message) <= _MESSAGE else f"{message[: _MESSAGE - 90]} ... {message[-80:]}"


def _refused(message: str) -> int:
    say(message)
    return 2
