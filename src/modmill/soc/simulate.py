# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A system in simulation: its firmware runs until it ends."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources

from modmill.flow.emit import without_initial_values
from modmill.flow.library import U32, U64, array, fields, library
from modmill.flow.tools import ToolError, step
from modmill.soc.system import System

_STEP = 200_000  # cycles between two checks for Ctrl-C
_TRAP = 0xFFFFFFFF


class _Job(ctypes.Structure):  # has the same layout in soc.cpp
    _fields_ = fields((U32, "device cycles"))


@dataclass(frozen=True)
class SystemRun:
    """What a system did. ``text``: its console. ``status``: with which firmware ended. ``jobs``: for each answer of a
    device its number and the cycles since its last word. ``refused``: accesses that had no address or were refused."""

    text: str
    status: int
    cycles: int
    jobs: list[tuple[int, int]]
    refused: int


class SystemSimulator:
    """A system, compiled. Raises ToolError if it does not compile."""

    def __init__(self, system: System) -> None:
        texts = [
            f"#define MODMILL_{name} {', '.join(f'model->{port}_{part.number}' for part in system.parts)}\n"
            for name, port in (("JOBS", "job"), ("CYCLES", "cycles"))
        ]
        texts += [(resources.files("modmill.flow") / "model.cpp").read_text()]
        texts += [(resources.files("modmill.soc") / "soc.cpp").read_text()]
        verilog = system.bench + without_initial_values(system.verilog)
        self._reset = max(part.device.power_up for part in system.parts)
        self._functions = functions = ctypes.CDLL(str(library(verilog, "bench", "".join(texts))))
        functions.modmill_soc_start.argtypes, functions.modmill_soc_start.restype = [U64], ctypes.c_void_p
        for name, more, result in (
            ("end", (), None), ("load", (ctypes.POINTER(U32), U64, U64), None), ("run", (U64,), ctypes.c_int),
            ("cycles", (), U64), ("refused", (), U64), ("status", (), U32), ("text", (), ctypes.c_char_p),
            ("count", (), U64), ("jobs", (), ctypes.POINTER(_Job)),
        ):  # fmt: skip
            function = getattr(functions, f"modmill_soc_{name}")
            function.argtypes, function.restype = [ctypes.c_void_p, *more], result

    def run(
        self, firmware: Sequence[int], *, most: int = 100_000_000, seed: int = 1,
        progress: Callable[[int], None] | None = None,
    ) -> SystemRun:  # fmt: skip
        """Power up with random contents, load the firmware, and run until it ends; ``progress`` is told the cycles.

        Raises ToolError if it has not ended after ``most`` cycles, or if the processor traps."""
        f = self._functions
        step("simulating")
        soc = f.modmill_soc_start(seed)
        try:
            f.modmill_soc_load(soc, array(U32, len(firmware), firmware), len(firmware), self._reset)
            while not f.modmill_soc_run(soc, _STEP):
                if progress:
                    progress(f.modmill_soc_cycles(soc))
                if f.modmill_soc_cycles(soc) > most:
                    raise ToolError(f"simulation: the firmware did not end within {most:,} cycles")
            text, status = f.modmill_soc_text(soc).decode("latin-1"), f.modmill_soc_status(soc)
            if status == _TRAP:
                raise ToolError(f"simulation: the processor trapped after {f.modmill_soc_cycles(soc):,} cycles")
            found = f.modmill_soc_jobs(soc)
            jobs = [(found[k].device, found[k].cycles) for k in range(f.modmill_soc_count(soc))]
            return SystemRun(text, status, f.modmill_soc_cycles(soc), jobs, f.modmill_soc_refused(soc))
        finally:
            f.modmill_soc_end(soc)
