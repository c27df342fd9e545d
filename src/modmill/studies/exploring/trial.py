# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""One case, tried: fitted, emitted, simulated against its contract; what is refused must be refused in plain words."""

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

from modmill.contract import Refusal
from modmill.cores.multiplier import four_state as four_states
from modmill.cores.multiplier.build import Core, build
from modmill.cores.multiplier.verify import Effort, Report, verify
from modmill.design import IO, Design, Fitted
from modmill.flow import four_state, tools
from modmill.flow.simulate import Simulator, widths
from modmill.studies.explore_engines import EngineCase, EngineOutcome, attempt_engine
from modmill.studies.exploring.space import Case
from modmill.studies.exploring.workers import Tell

DESIGNS = "modmill.designs:DESIGNS"
"""Where designs are found by name: a module and the tuple in it."""
VECTORS = 200
"""Random products of each core."""
EFFORT = Effort(chain=100, starts=400, cuts=12, cycles=400_000)
"""What is simulated beside them."""
LOADED = 2
"""Random moduli that a core with a loaded modulus gets beside those at the edges."""
MESSAGE = 400
"""Characters of a refusal at most."""
LARGEST = 1_000_000
"""Characters of Verilog up to which a core is simulated: one so large compiles for minutes."""
FOUR_STATE = 120_000
"""Characters of Verilog up to which a core is simulated in four states too."""

FIT_SECONDS, EMIT_SECONDS, CHECK_SECONDS = 90.0, 120.0, 120.0
"""Limits of the stages of a trial. The first is for nine searches of a placement; the last grows with the Verilog, by
a second for each of these characters."""
_CHARACTERS = 3000
RUNTIME = "verilator-runtime"
"""The part of the cache that is the same for all cores."""


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    ``kind``: refused; checked; built, when it is too large to be simulated; or a failure: ``failed`` (wrong in
    simulation), ``crash`` (an exception that is no refusal), ``slow`` (over a time limit), ``message`` (refused in a
    way that does not help). ``text``: the refusal or the first thing found.
    """

    kind: str
    text: str = ""
    seconds: float = 0.0
    four_state: bool = False

    @property
    def wrong(self) -> bool:
        """Whether it is a failure."""
        return self.kind in FAILURES


FAILURES = ("failed", "crash", "slow", "message")


@dataclass(frozen=True)
class Limits:
    """Seconds for the stages of a trial."""

    fit: float = FIT_SECONDS
    emit: float = EMIT_SECONDS
    check: float = CHECK_SECONDS


@dataclass(frozen=True)
class Trial:
    """How cases are tried: where designs are found, the seed of operands, the time limits, and how much is simulated.

    ``vectors``: random products; ``four_state``: characters of Verilog up to which a core is simulated in four states
    too, where Icarus is installed.
    """

    designs: str = DESIGNS
    seed: int = 1
    limits: Limits = field(default_factory=Limits)
    vectors: int = VECTORS
    effort: Effort = EFFORT
    four_state: int = FOUR_STATE


def designs_of(where: str) -> Sequence[Design]:
    """The designs of ``module:NAME``."""
    found: Sequence[Design] = pkgutil.resolve_name(where)
    return found


def attempt(tell: Tell, trial: Trial, case: Case) -> Outcome:
    """Try a case. ``tell`` hears of each stage and its time limit."""
    start = time.monotonic()
    try:
        with _cache_of_its_own():
            outcome = _attempt(tell, trial, case)
    except Refusal as refusal:
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
    core = build(design, case.p, case.io, **dict(case.settings))
    loaded = further_moduli(core.fitted, trial.seed)
    tell("to write its Verilog", trial.limits.emit)
    verilog = core.verilog
    if len(verilog) > LARGEST:
        return Outcome("built")
    tell("to simulate it", trial.limits.check + len(verilog) / _CHARACTERS)
    report = Report(core.name)
    verify(core, verilog, trial.vectors, report, seed=trial.seed, effort=trial.effort, loaded=loaded)
    if report.failures:
        return Outcome("failed", report.failures[0])
    if len(verilog) > trial.four_state or not four_state.available():
        return Outcome("checked")
    return _in_four_states(core, verilog, trial.seed)


def _in_four_states(core: Core, verilog: str, seed: int) -> Outcome:
    simulator = Simulator(verilog, top=core.top, widths=widths(core.contract), instances=2)
    found = four_states.check(core, verilog, simulator=simulator, seed=seed)
    return Outcome("failed" if found.failures else "checked", "".join(found.failures[:1]), four_state=True)


def further_moduli(fitted: Fitted, seed: int) -> list[Fitted]:
    """The core with random moduli of its own width loaded, and one of any width below; none where it is built in."""
    if fitted.load is None:
        return []
    rnd, bits = random.Random(f"{seed} {fitted.p}"), fitted.p.bit_length()
    found = []
    for width in (*[bits] * LOADED, rnd.randint(2, bits)):
        try:
            found.append(fitted.at(1 << width - 1 | rnd.getrandbits(width - 1) | 1))
        except Refusal:
            continue
    return found


def message_fault(text: str, case: Case) -> str | None:
    """What is wrong with a refusal: several lines, too long, or neither a number nor one of the choices in it."""
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
    """A cache that goes with the case, because each comes once; the simulator's runtime in it is the machine's."""
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
