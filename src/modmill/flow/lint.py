# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Verilator's lint of an emitted core."""

import re
import tempfile
from pathlib import Path

from modmill.flow import tools
from modmill.flow.emit import without_initial_values
from modmill.flow.modules import COMMENT

_CHECKED = ("UNDRIVEN", "MULTIDRIVEN", "PINMISSING", "LATCH", "IMPLICIT")
_UNCHECKED = ("WIDTH", "CASEOVERLAP", "UNOPTFLAT", "MULTITOP")
"""Warnings that are off: implicit extension and priority cases are intended; a carry chain in one vector is no loop."""
OPTIONS = (
    "--language", "1364-2001", "-Wno-style", *(f"-Wwarn-{name}" for name in _CHECKED),
    *(f"-Wno-{name}" for name in _UNCHECKED),
)  # fmt: skip
"""Options of Verilator for these checks, with which each finding ends a run."""
_SYSTEM_TASK = re.compile(r"\$(?!(?:un)?signed\b)\w+|`\w+")
_FINDING = re.compile(r"^%(?:Error|Warning)[^\n]*", re.MULTILINE)


def lint(verilog: str, top: str = "core") -> list[str]:
    """Faults that Verilator finds in a Verilog-2001 text, one line each; empty if there are none.

    Checks: syntax, undriven and multiply driven signals, missing pins, latches, undeclared nets, black boxes.

    Raises ToolError if Verilator cannot be run.
    """
    with tempfile.TemporaryDirectory(prefix="modmill-lint-") as folder:
        Path(folder, "core.v").write_text(verilog)
        command = tools.verilator("--lint-only", "-Wno-fatal", "--top-module", top, *OPTIONS, "core.v")
        # Exit code 1 means findings here, so the printed text decides.
        text = tools.run(command, name="verilator", cwd=Path(folder), codes=(0, 1))
    return [line for line in _FINDING.findall(text) if "Exiting due to" not in line]


def foreign_words(verilog: str) -> list[str]:
    """System tasks and directives in a Verilog text, except those around initial values."""
    return sorted(set(_SYSTEM_TASK.findall(COMMENT.sub(" ", without_initial_values(verilog)))))
