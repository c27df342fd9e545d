# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What races and sweeps share: the settings of a design on a target, the words of a row, and the check of a core."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from modmill.cores.multiplier.build import Core
from modmill.cores.multiplier.verify import Report
from modmill.cores.multiplier.verify import verify as verify_core
from modmill.design import Design
from modmill.flow.targets import Target


def settings(design: Design, given: Mapping[str, Any], target: Target) -> dict[str, Any]:
    """Those of the given settings that the design has, and the DSP block of the target if it is not given."""
    found = {name: value for name, value in given.items() if any(s.name == name for s in design.settings)}
    block = target.dsp_block
    for s in design.settings:
        if s.name == "dsp" and "dsp" not in found and block in s.choices and block != s.default:
            found["dsp"] = block
    return found


def about(core: Core) -> dict[str, Any]:
    """The words of a row of a core."""
    return {
        "design": core.design.name,
        "modulus": core.modulus.name or hex(core.modulus.value),
        "io": core.io,
        "parameters": dict(core.fitted.settings),
    }


def check(core: Core, verilog: str, vectors: int) -> dict[str, Any]:
    """The values of a check row: ``vectors`` random products and the special ones. Raises ValueError with the first
    failure."""
    start = time.monotonic()
    report = Report(core.name)
    verify_core(core, verilog, report, vectors=vectors)
    if not report.passed:
        raise ValueError(report.failures[0])
    return {
        "vectors": vectors, "products": report.products, "latency": report.latency,
        "interval": report.interval, "seconds": round(time.monotonic() - start, 1),
    }  # fmt: skip
