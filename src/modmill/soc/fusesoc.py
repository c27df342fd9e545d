# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""FuseSoC's description of a system with its firmware, and a bench in Verilog that compares its console."""

from __future__ import annotations

from collections.abc import Sequence

from modmill.flow.lint import OPTIONS
from modmill.report.sheet import packaging_name
from modmill.soc.simulate import SystemRun
from modmill.soc.system import System, rendered
from modmill.version import __version__

VERILOG, FIRMWARE = "system.v", "firmware.hex"
NAMES = (VERILOG, FIRMWARE, "console.hex", "system_bench.v", "system.core")
"""The files of a described system."""
NAMED = packaging_name("system", __version__)
"""Vendor, library, name and version."""


def described(system: System, firmware: Sequence[int], run: SystemRun) -> dict[str, str]:
    """The files by name: Verilog, the words of the firmware, the characters that it showed when it ran, a bench that
    runs it again and compares them, and the description with targets sim, lint and synth."""
    shown = {
        "named": NAMED, "words": len(firmware), "characters": len(run.text), "most": 2 * run.cycles,
        "reset": max(part.device.power_up for part in system.parts), "files": NAMES, "status": run.status,
        "lint": [*(option for option in OPTIONS if option.startswith("-W")), "-Wno-TIMESCALEMOD"],
    }  # fmt: skip
    texts = (
        system.verilog, "".join(f"{word:08x}\n" for word in firmware),
        "".join(f"{ord(character):02x}\n" for character in run.text),
        rendered("system_bench.v.j2", shown), rendered("system.core.j2", shown),
    )  # fmt: skip
    return dict(zip(NAMES, texts, strict=True))
