# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Trial of one case: fitted, emitted, and simulated against its contract; a refusal must be one helpful line."""

from __future__ import annotations

import os
import pkgutil
import random
import re
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from modmill.buses.adapters import find_bus
from modmill.buses.front import whole
from modmill.contract import UnsupportedError
from modmill.cores.behind_bus import bus_faults, loading, product
from modmill.cores.multiplier import four_state as four_states
from modmill.cores.multiplier import operands
from modmill.cores.multiplier.build import Core, build
from modmill.cores.multiplier.verify import Effort, Report, verify
from modmill.design import IO, Design, DesignInstance
from modmill.flow import four_state, tools
from modmill.flow.simulate import Simulator, widths
from modmill.studies.explore_engines import EngineCase, EngineOutcome, attempt_engine
from modmill.studies.exploring.space import Case
from modmill.studies.exploring.workers import Tell

DESIGNS = "modmill.designs:DESIGNS"
"""The module and the tuple that contain the designs, ``module:NAME``."""
EFFORT = Effort(chain=100, starts=400, cuts=12, cycles=400_000, randoms=200)
"""Simulations of each core."""
LOADED = 2
"""Number of random moduli for a core with a loaded modulus, in addition to those at the edges."""
MESSAGE = 400
"""Largest number of characters of a refusal."""
PRODUCTS = 20
"""Number of products behind a bus."""
LARGEST = 500_000
"""Largest Verilog, in characters, that is simulated; compiling it takes minutes."""
LONGEST = 1e10
"""Largest product of these characters and the cycles of one product in an idle core; about 60 of them are the least
that a check simulates."""
FOUR_STATE = 60_000
"""Largest Verilog, in characters, that is also simulated in four states."""

FIT_SECONDS, EMIT_SECONDS, CHECK_SECONDS, FOUR_STATE_SECONDS = 90.0, 300.0, 300.0, 300.0
"""Limits of the stages of a trial. The first is for nine searches of a placement; the second for twelve, and for the
netlist of 128 rowers; the third grows with the Verilog, by a second for so many characters (`_CHARACTERS`). The slowest
cases for the last two: one cycle with a long path through wide words (multistep, 317 steps of 303 bits), and a long
path through a small core."""
_CHARACTERS = 1500
RUNTIME = "verilator-runtime"
"""The part of the cache that all cores share."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case.

    ``kind``: refused; checked; built, if it is too large for simulation; or a failure: ``failed`` (wrong in
    simulation), ``crash`` (an exception that is not a refusal), ``slow`` (over a time limit), ``message`` (an unhelpful
    refusal). ``text``: the refusal or the first finding.
    """

    kind: str
    text: str = ""
    seconds: float = 0.0
    four_state: bool = False

    @property
    def wrong(self) -> bool:
        """Whether the outcome is a failure."""
        return self.kind in FAILURES


FAILURES = ("failed", "crash", "slow", "message")


@dataclass(frozen=True)
class Limits:
    """Seconds for the stages of a trial."""

    fit: float = FIT_SECONDS
    emit: float = EMIT_SECONDS
    check: float = CHECK_SECONDS
    four_state: float = FOUR_STATE_SECONDS


@dataclass(frozen=True)
class Trial:
    """Parameters of trials: where designs are found, the seed of operands, the time limits, and the simulations.

    ``four_state``: largest Verilog, in characters, that is also simulated in
    four states if Icarus is installed.
    """

    designs: str = DESIGNS
    seed: int = 1
    limits: Limits = field(default_factory=Limits)
    effort: Effort = EFFORT
    four_state: int = FOUR_STATE


def designs_of(where: str) -> Sequence[Design]:
    """The designs of ``module:NAME``."""
    found: Sequence[Design] = pkgutil.resolve_name(where)
    return found


def attempt(tell: Tell, trial: Trial, case: Case) -> Outcome:
    """Try a case. ``tell`` is called with each stage and its time limit."""
    start = time.monotonic()
    try:
        with _cache_of_its_own():
            outcome = _attempt(tell, trial, case)
    except UnsupportedError as refusal:
        fault = message_fault(str(refusal), case)
        outcome = Outcome("message", f"{fault}: {str(refusal)[:600]!r}") if fault else Outcome("refused", str(refusal))
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}:{frame.lineno}"
        outcome = Outcome("crash", f"{type(error).__name__} in {where}: {' '.join(str(error).split())[:300]}")
    return Outcome(outcome.kind, outcome.text, time.monotonic() - start, outcome.four_state)


def engine_attempt(tell: Tell, case: EngineCase) -> EngineOutcome:
    """Try an engine."""
    with _cache_of_its_own():
        return attempt_engine(tell, case)


def _attempt(tell: Tell, trial: Trial, case: Case) -> Outcome:
    tell("to choose its parameters", trial.limits.fit)
    design = next(d for d in designs_of(trial.designs) if d.name == case.design)
    core = build(design, case.p, case.io, bus=case.bus, **dict(case.settings))
    loaded = further_moduli(core.fitted, trial.seed)
    tell("to write its Verilog", trial.limits.emit)
    verilog = core.verilog
    timing = core.contract.timing
    if len(verilog) > LARGEST or len(verilog) * (timing.latency + timing.interval) > LONGEST:
        return Outcome("built")
    tell("to simulate it", trial.limits.check + len(verilog) / _CHARACTERS)
    report = Report(core.name)
    verify(core, verilog, report, seed=trial.seed, effort=trial.effort, loaded=loaded)
    faults = [*report.failures, *(_behind_bus(core, verilog, trial.seed) if case.bus else ())]
    if faults:
        return Outcome("failed", faults[0])
    if len(verilog) > trial.four_state or not four_state.available():
        return Outcome("checked")
    tell("to simulate it in four states", trial.limits.four_state)
    return _in_four_states(core, verilog, trial.seed)


def _behind_bus(core: Core, verilog: str, seed: int) -> Iterator[str]:
    """The faults of a core behind its bus, in random products."""
    contract, bus = core.contract, find_bus(core.bus)
    products = operands.judged(contract, operands.randoms(contract, PRODUCTS, seed)[:PRODUCTS])
    exchanges = [*loading(contract), *(product(contract, each.a, each.b, each.value) for each in products)]
    return bus_faults(whole(core.device, bus, verilog), core.device, bus, exchanges)


def _in_four_states(core: Core, verilog: str, seed: int) -> Outcome:
    power_up, bits = core.contract.power_up, widths(core.contract)
    simulator = Simulator(verilog, top=core.top, widths=bits, instances=2, power_up=power_up)
    report = Report(core.name)
    four_states.check(core, verilog, report, simulator=simulator, seed=seed)
    return Outcome("failed" if report.failures else "checked", "".join(report.failures[:1]), four_state=True)


def further_moduli(fitted: DesignInstance, seed: int) -> list[DesignInstance]:
    """The core with random moduli of its own width loaded, and one of a smaller width; empty if p is built in."""
    if fitted.load is None:
        return []
    rnd, bits = random.Random(f"{seed} {fitted.p}"), fitted.p.bit_length()
    found = []
    for width in (*[bits] * LOADED, rnd.randint(2, bits)):
        try:
            found.append(fitted.at(1 << width - 1 | rnd.getrandbits(width - 1) | 1))
        except UnsupportedError:
            continue
    return found


def message_fault(text: str, case: Case) -> str | None:
    """The fault of a refusal: several lines, too long, or neither a number nor one of the choices in it; else None."""
    if "\n" in text:
        return "a refusal of several lines"
    if len(text) > MESSAGE:
        return f"a refusal of {len(text)} characters, at most {MESSAGE} help"
    words = [*IO, *(name for name, _ in case.settings)]
    if not re.search(r"\d", text) and not any(word in text for word in words):
        return "a refusal that names no number and no choice"
    return None


@contextmanager
def _cache_of_its_own() -> Iterator[None]:
    """A cache that is deleted after the case, because each case occurs once; it shares the machine's compiled
    runtime."""
    before, runtime = os.environ.get("MODMILL_CACHE"), tools.cache_dir() / RUNTIME
    runtime.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="modmill-explore-") as folder:
        (Path(folder) / RUNTIME).symlink_to(runtime.resolve())
        os.environ["MODMILL_CACHE"] = folder
        try:
            yield
        finally:
            del os.environ["MODMILL_CACHE"]
            if before is not None:
                os.environ["MODMILL_CACHE"] = before
