# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A tool that is stopped takes its children with it, and its output can be followed."""

import os
import signal
import subprocess
import sys
import time

import pytest

from modmill.flow import tools

RUN = """
import signal
from modmill.flow import tools

signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background may have inherited another
tools.run(["sh", "-c", "sleep 60 & echo $!; wait"], name="sh", on_line=lambda line: print(line, flush=True))
"""


def test_ctrl_c_ends_the_tool_and_its_children() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", RUN], stdout=pipe, stderr=pipe, env=environment, text=True) as process:
        assert process.stdout
        child = int(process.stdout.readline())
        assert _alive(child)
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in process.communicate(timeout=50)[1]
    deadline = time.monotonic() + 5
    while _alive(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(child)


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_lines_are_handed_over_in_order() -> None:
    lines: list[str] = []
    printed = tools.run(["sh", "-c", "echo one; echo two >&2"], name="sh", on_line=lines.append)
    assert lines == printed.splitlines() == ["one", "two"]


def test_versions() -> None:
    assert set(tools.versions()) == {"amaranth", "yosys", "nextpnr", "verilator", "zig"}
    with pytest.raises(ValueError, match="not 'quartus'"):
        tools.version("quartus")
