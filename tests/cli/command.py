# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The command ``modmill`` as tests run it: in this process, because to start one takes longer than most commands."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

import modmill as package
from modmill.cli import main

SOURCE = str(Path(package.__file__).parents[1])


def modmill(*arguments, cwd=None, **environment):
    """Status and output of a command."""
    words = ["modmill", *map(str, arguments)]
    output, errors = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with (
        contextlib.chdir(cwd or os.curdir), mock.patch.dict(os.environ, environment), mock.patch("sys.argv", words),
        contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors), pytest.raises(SystemExit) as end,
    ):  # fmt: skip
        main()
    texts = (stream.buffer.getvalue().decode() for stream in (output, errors))
    return subprocess.CompletedProcess(words, end.value.code, *texts)


def process(*arguments):
    """The same in a process of its own."""
    command = [sys.executable, "-m", "modmill", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)


def refused(*arguments, cwd=None):
    """The one line of a refusal."""
    done = modmill(*arguments, cwd=cwd)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("modmill: ")
    return done.stderr
