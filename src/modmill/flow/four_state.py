# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Simulation of a core in four states (0, 1, x, z) by Icarus Verilog, if it is on PATH.

Verilator has two states: a register without reset starts from a random value, and the run may pass by chance. Here the
register starts at x, and everything that depends on it becomes x. All inputs except clk and rst are x until the reset
ends; operands and words of the modulus are x in every cycle in which they are not offered.

The bench is `four_state.v`, compiled once for each core; operands and pauses come from files. It drives the ports as
`harness.cpp` does: inputs change while the clock is low, outputs are sampled before it rises. Without pauses and stalls
the two benches behave the same in every cycle, so that `differences` can compare their runs.

Cost: Icarus simulates between 1,000 and 50,000 cycles per second, fewer for larger cores.
"""

import random
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path

from modmill.contract import ALARM
from modmill.flow import tools
from modmill.flow.library import chances
from modmill.flow.simulate import FAULTS, Loads, Run, Widths

MISSING = "the four-state check needs Icarus Verilog (iverilog and vvp), which is not installed: apt install iverilog"
"""The message if Icarus is required but missing."""
TIMEOUT = 10_000
"""A run ends after this number of cycles without an event at the ports."""
SECONDS = 300.0
"""Time limit of a run in seconds."""

_UNKNOWN_CYCLES = 64  # a run ends after this number of cycles with x on i_ready, k_ready or o_valid
_STALLS = 1021  # length of the pattern of stalls in cycles; a prime, so that no schedule divides it
_DROPPED, _CHANGED, _UNASKED, _AFTER_RESET, _BEFORE_MODULUS, _BEFORE_RESULTS, _ALARM, _FELL = FAULTS


@dataclass(frozen=True)
class FourStateRun:
    """The outcome of a simulation in four states.

    ``run``: as in two states; an x on the handshake counts as low, an unknown bit of a result as 0.
    ``unknown``: one line for each port with x or z after the reset: i_ready, k_ready, o_valid in any cycle, o_r while
    o_valid is high.
    """

    run: Run
    unknown: list[str] = field(default_factory=list)


def version() -> str | None:
    """Version of the Icarus on PATH, such as ``11.0``; None if it is missing or does not start."""
    compiler, simulator = shutil.which("iverilog"), shutil.which("vvp")
    if not (compiler and simulator):
        return None
    try:
        said = subprocess.run([simulator, "-V"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"Icarus Verilog runtime version (\S+)", said.stdout + said.stderr)
    return match[1] if match else None


def available() -> bool:
    """Whether Icarus is on PATH and starts."""
    return version() is not None


class FourState:
    """A core compiled by Icarus.

    ``verilog``: the text of the core; ``top``: its module; ``widths``: the widths of its ports. The simulated text can
    access files (`$fopen`), so check a text from elsewhere for system tasks first.

    Raises ToolError if Icarus is not installed (``MISSING``) or does not compile the text.
    """

    def __init__(self, verilog: str, *, top: str = "core", widths: Widths) -> None:
        if not available():
            raise tools.ToolError(MISSING)
        self._widths = widths
        with tempfile.TemporaryDirectory(prefix="modmill-four-state-") as name:
            folder = Path(name)
            (folder / "core.v").write_text(verilog)
            bench = str(resources.files("modmill.flow") / "four_state.v")
            command = ["iverilog", "-g2005", *_settings(top, widths), "-o", "compiled", bench, "core.v"]
            tools.run(command, name="iverilog", cwd=folder, timeout=SECONDS)
            self._compiled = (folder / "compiled").read_bytes()

    def run(
        self,
        a: Sequence[int],
        b: Sequence[int],
        *,
        loads: Loads = (),
        gap: float = 0.0,
        stall: float = 0.0,
        seed: int = 1,
        reset: int = 1,
        first: int = 1,
        timeout: int = TIMEOUT,
        seconds: float = SECONDS,
    ) -> FourStateRun:
        """Power up, reset for ``reset`` cycles, feed all operands and collect the results.

        ``first``: the first cycle after the reset, counted from 0, in which an operand or word is offered. ``loads``,
        ``gap`` and ``stall`` as in ``Simulator.run``, but with other random pauses and stalls for the same ``seed``.
        A core with one operand ignores ``b``. ``timeout`` counts cycles without an event. The run ends early if the
        handshake stays x.

        Raises ValueError for operands that do not fit the ports and numbers out of range, ToolError if the run takes
        longer than ``seconds``.
        """
        chances(gap=gap, stall=stall)
        if reset < 1 or first < 0 or timeout < 1 or not a:
            raise ValueError(
                f"a run needs a reset of at least 1 cycle, a first cycle of at least 0, a timeout of at least 1 cycle "
                f"and at least one operand, not {reset}, {first}, {timeout} and {len(a)}"
            )
        stream = self._widths.stream(loads)
        second = b if self._widths.b else [0] * len(a)
        self._widths.require_fit(a, second)
        rnd = random.Random(seed)
        texts = {
            "operands": "".join(f"{x:x} {y:x} {_pause(rnd, gap)}\n" for x, y in zip(a, second, strict=True)),
            "words": "".join(
                f"{word:x} {place} {_pause(rnd, gap) if k else 0}\n"  # the first one delays operands
                for place, words in loads
                for k, word in enumerate(words)
            ),
            "stalls": "\n".join(_stalls(rnd, stall)) + "\n",
        }
        numbers = {"operands": len(a), "words": len(stream), "reset": reset, "first": first, "timeout": timeout}
        lines = self._log(texts, numbers, seconds)
        return _Watch(len(a), [place for place, _ in stream], self._widths).judge(lines, timeout)

    def _log(self, texts: dict[str, str], numbers: dict[str, int], seconds: float) -> list[str]:
        with tempfile.TemporaryDirectory(prefix="modmill-four-state-") as name:
            folder = Path(name)
            (folder / "compiled").write_bytes(self._compiled)
            for file, text in texts.items():
                (folder / file).write_text(text)
            command = ["vvp", "-n", "compiled", *(f"+{key}={value}" for key, value in numbers.items())]
            said = tools.run(command, name="vvp", cwd=folder, timeout=seconds)
            if not (folder / "log").is_file():
                raise tools.ToolError(f"vvp: wrote no log; it printed {said[:200]!r}")
            return (folder / "log").read_text().splitlines()


def differences(one: Run, other: Run) -> Iterator[str]:
    """Differences between a run by Verilator and another by Icarus of the same operands, without pauses and stalls.

    One line for each kind: cycles in which words and operands were accepted and results were valid and taken, results,
    number of cycles.
    """
    for what in ("loaded", "accepted", "valid", "taken", "results"):
        first, second = getattr(one, what), getattr(other, what)
        if first == second:
            continue
        shown = "{:#x}" if what == "results" else "{}"
        where = "value" if what == "results" else "cycle"
        k = next((k for k, (x, y) in enumerate(zip(first, second, strict=False)) if x != y), None)
        if k is None:
            yield f"{what}: {len(first)} with Verilator, {len(second)} with Icarus"
        else:
            x, y = shown.format(first[k]), shown.format(second[k])
            yield f"{what}: number {k} has {where} {x} with Verilator, {y} with Icarus"
    if one.cycles != other.cycles:
        yield f"the run takes {one.cycles} cycles with Verilator, {other.cycles} with Icarus"


class _Watch:
    """Reads the log: a line for each cycle, k_valid k_ready i_valid i_ready o_valid o_ready o_alarm, and o_r unless
    idle."""

    def __init__(self, operands: int, before: Sequence[int], widths: Widths) -> None:
        self._operands, self._before, self._widths = operands, before, widths
        self._run = Run([], [], [], [], 0, [])
        self._faults: dict[str, list[int]] = {}  # number, first cycle
        self._held: str | None = None

    def judge(self, lines: Sequence[str], timeout: int) -> FourStateRun:
        cycles, seen = len(lines), self._run
        for cycle, line in enumerate(lines):
            self._cycle(cycle, line)
            if len(seen.taken) == self._operands and cycles == len(lines):
                cycles = cycle + 1
        noted = {text: f"{text} ({n} times, first in cycle {first})" for text, (n, first) in self._faults.items()}
        violations = [noted[text] for text in FAULTS if text in noted]
        unknown = [line for text, line in noted.items() if text not in FAULTS]
        missing = f"{len(seen.taken)} results of {self._operands} operands ({len(seen.accepted)} accepted)"
        if len(seen.taken) < self._operands:
            stopped = Counter(bool(set("xzXZ") & set(line.split(" ")[0])) for line in lines)[True] >= _UNKNOWN_CYCLES
            why = "the handshake stayed unknown" if stopped else f"nothing happened for {timeout} cycles"
            violations.append(f"timeout: {missing}, {why}")
        found = replace(seen, cycles=cycles, violations=violations, offered=seen.offered[: len(seen.accepted)])
        return FourStateRun(found, unknown)

    def _fault(self, text: str, cycle: int) -> None:
        self._faults.setdefault(text, [0, cycle])[0] += 1

    def _cycle(self, cycle: int, line: str) -> None:
        handshake, _, result = line.partition(" ")
        k_valid, k_ready, i_valid, i_ready, o_valid, o_ready, alarm = (bit == "1" for bit in handshake)
        for name, place in (("k_ready", 1), ("i_ready", 3), ("o_valid", 4), (ALARM, 6)):
            if (bit := handshake[place]) not in "01" and (name != "k_ready" or self._widths.k):
                self._fault(f"{name} is {bit}", cycle)
        if alarm:
            self._fault(_ALARM, cycle)
        elif _ALARM in self._faults:
            self._fault(_FELL, cycle)
        seen = self._run
        offered = len(seen.accepted) + i_valid
        if len(seen.offered) < offered:
            seen.offered.append(cycle)
        if cycle == 0 and o_valid:
            self._fault(_AFTER_RESET, cycle)
        loaded = k_valid and k_ready
        if loaded:
            if len(seen.taken) != len(seen.accepted):
                self._fault(_BEFORE_RESULTS, cycle)
            seen.loaded.append(cycle)
        if i_valid and i_ready:
            if loaded or any(place <= len(seen.accepted) for place in self._before[len(seen.loaded) :][:1]):
                self._fault(_BEFORE_MODULUS, cycle)
            seen.accepted.append(cycle)
        if self._held is not None and not o_valid:
            self._fault(_DROPPED, cycle)
        if o_valid:
            self._result(cycle, result, o_ready, offered)
        self._held = result if o_valid and not o_ready else None

    def _result(self, cycle: int, text: str, o_ready: bool, offered: int) -> None:
        seen = self._run
        if set("xzXZ") & set(text):
            self._fault("o_r has unknown bits while o_valid is high", cycle)
        if self._held is not None and self._held != text:
            self._fault(_CHANGED, cycle)
        known = len(seen.accepted) if o_ready else offered
        if len(seen.taken) >= min(known, self._operands):
            self._fault(_UNASKED, cycle)
            return
        if len(seen.valid) == len(seen.taken):
            seen.valid.append(cycle)
        if o_ready:
            seen.results.append(int(re.sub("[xzXZ]", "0", text), 16))
            seen.taken.append(cycle)


def _settings(top: str, widths: Widths) -> list[str]:
    """Icarus' options with the macros and parameters of the bench."""
    pins = ["clk", "rst", "i_valid", "i_ready", "i_a", "o_valid", "o_ready", "o_r"]
    pins += ["i_b"] * bool(widths.b) + ["k_valid", "k_ready", "k_m"] * bool(widths.k) + [ALARM] * widths.alarm
    macros = [f"-DMODMILL_TOP={top}", f"-DMODMILL_PINS={', '.join(f'.{pin}({pin})' for pin in pins)}"]
    macros += ["-DMODMILL_BUILT_IN"] * (not widths.k) + ["-DMODMILL_WITHOUT_ALARM"] * (not widths.alarm)
    numbers = {"A": widths.a - 1, "B": max(1, widths.b) - 1, "K": max(1, widths.k) - 1, "R": widths.r - 1}
    numbers |= {"STALLS": _STALLS, "UNKNOWN": _UNKNOWN_CYCLES}
    return ["-s", "modmill_four_state", *macros, *(f"-Pmodmill_four_state.{n}={x}" for n, x in numbers.items())]


def _pause(rnd: random.Random, chance: float) -> int:
    """Cycles of a pause: 0, 1 or a burst."""
    if rnd.random() >= chance:
        return 0
    return 1 if rnd.randrange(4) else rnd.randrange(2, 18)


def _stalls(rnd: random.Random, chance: float) -> Iterator[str]:
    left = 0
    for _ in range(_STALLS):
        left = left or _pause(rnd, chance)
        yield "1" if left else "0"
        left = max(0, left - 1)
