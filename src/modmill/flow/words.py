# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Cycle-accurate simulation of an engine with two streams of words: i_data in, o_data out.

As `simulate.py`, whose compiled libraries it uses; the handshake is driven inside the library (`words.cpp`).
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from modmill.flow.simulate import DEFAULT_TIMEOUT, library

_STEP_CYCLES = 100_000  # between two looks at Ctrl-C
_DRAIN_CYCLES = 300  # in which no further word may come
_PORTS = ("i_valid", "i_ready", "i_data", "o_valid", "o_ready", "o_data")
_FAULTS = (
    "o_valid dropped before o_ready",
    "o_data changed while waiting for o_ready",
    "a word more than expected",
    "o_valid high straight after reset",
)


@dataclass(frozen=True)
class WordRun:
    """What one simulation showed; cycle 0 is the first after reset.

    ``words``: what left. ``accepted``: cycles at whose ends the words at i were taken. ``valid``: cycles in which the
    words at o stood there first. ``cycles`` ends with the last word. ``violations``: faults of the handshake.
    """

    words: list[int]
    accepted: list[int]
    valid: list[int]
    cycles: int
    violations: list[str]


class _Job(ctypes.Structure):  # the same layout stands in words.cpp
    _fields_ = [
        ("words", ctypes.c_uint64),
        ("i", ctypes.POINTER(ctypes.c_uint64)),
        ("wanted", ctypes.c_uint64),
        ("o", ctypes.POINTER(ctypes.c_uint64)),
        ("accepted", ctypes.POINTER(ctypes.c_uint64)),
        ("valid", ctypes.POINTER(ctypes.c_uint64)),
        ("gap", ctypes.c_uint32),
        ("stall", ctypes.c_uint32),
        ("seed", ctypes.c_uint64),
        ("timeout", ctypes.c_uint64),
        ("drain", ctypes.c_uint64),
        ("accepted_count", ctypes.c_uint64),
        ("taken_count", ctypes.c_uint64),
        ("cycles", ctypes.c_uint64),
        ("timed_out", ctypes.c_uint64),
        ("faults", ctypes.c_uint64 * len(_FAULTS)),
        ("first", ctypes.c_uint64 * len(_FAULTS)),
    ]


class WordSimulator:
    """An engine compiled for simulation: its Verilog, its module and the bits of its words (at most 64).

    With ``instances=2`` two engines stand side by side. Raises ToolError when the text does not compile.
    """

    def __init__(self, verilog: str, word: int, *, top: str = "core", instances: int = 1, cache: bool = True) -> None:
        if not 1 <= word <= 64:
            raise ValueError(f"words have 1 to 64 bits, not {word}")
        if instances not in (1, 2):
            raise ValueError(f"instances must be 1 or 2, not {instances}")
        self.word, self.instances = word, instances
        if instances == 2:
            verilog, top = verilog + _pair(top, word), "modmill_pair"
        self._functions = ctypes.CDLL(str(library(verilog, top, _harness(word, instances), cache=cache)))
        self._functions.modmill_start.argtypes = [ctypes.POINTER(_Job)]
        self._functions.modmill_start.restype = ctypes.c_void_p
        self._functions.modmill_step.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
        self._functions.modmill_end.argtypes = [ctypes.c_void_p]

    def run(
        self, words: Sequence[int], wanted: int, *, gap: float = 0.0, stall: float = 0.0, seed: int = 1,
        timeout: int = DEFAULT_TIMEOUT,
    ) -> WordRun:  # fmt: skip
        """Power up, reset, feed all words and wait for ``wanted`` words.

        ``gap`` and ``stall`` are the probabilities per cycle that producer and consumer begin to pause, ``timeout`` the
        cycles without a word at either end. Raises ValueError for words that do not fit.
        """
        return self._run([(words, wanted)], gap, stall, seed, timeout)[0]

    def run_pair(
        self, first: tuple[Sequence[int], int], second: tuple[Sequence[int], int], *, gap: float = 0.0,
        stall: float = 0.0, seed: int = 1, timeout: int = DEFAULT_TIMEOUT,
    ) -> tuple[WordRun, WordRun]:  # fmt: skip
        """As ``run``, for two engines in one simulation: (words, wanted) for each."""
        one, two = self._run([first, second], gap, stall, seed, timeout)
        return one, two

    def _run(
        self, jobs: Sequence[tuple[Sequence[int], int]], gap: float, stall: float, seed: int, timeout: int
    ) -> list[WordRun]:
        if len(jobs) != self.instances:
            raise ValueError(f"this simulator holds {self.instances} engines, not {len(jobs)}")
        for name, probability in (("gap", gap), ("stall", stall)):
            if not 0 <= probability < 1:
                raise ValueError(f"{name} must be in [0, 1), not {probability}")
        table = (_Job * len(jobs))()
        kept = []
        for k, (words, wanted) in enumerate(jobs):
            for place, word in enumerate(words):
                if word < 0 or word >> self.word:
                    raise ValueError(f"word {place}, {word}, does not fit {self.word} bits")
            i = (ctypes.c_uint64 * max(1, len(words)))(*words)
            o, valid = ((ctypes.c_uint64 * max(1, wanted))() for _ in range(2))
            accepted = (ctypes.c_uint64 * max(1, len(words)))()
            chances = int(gap * 2**32), int(stall * 2**32)
            table[k] = _Job(len(words), i, wanted, o, accepted, valid, *chances, 2 * seed + k, timeout, _DRAIN_CYCLES)
            kept.append((i, o, accepted, valid))
        simulation = self._functions.modmill_start(table)
        try:
            while not self._functions.modmill_step(simulation, _STEP_CYCLES):
                pass
        finally:
            self._functions.modmill_end(simulation)
        return [_result(job, *map(list, arrays)) for job, (_, *arrays) in zip(table, kept, strict=True)]


def _result(job: _Job, o: list[int], accepted: list[int], valid: list[int]) -> WordRun:
    violations = [
        f"{text} ({count} times, first in cycle {first})"
        for text, count, first in zip(_FAULTS, job.faults, job.first, strict=True)
        if count
    ]
    if job.timed_out:
        violations.append(
            f"timeout: {job.taken_count} of {job.wanted} words left, {job.accepted_count} of {job.words} were taken, "
            f"nothing happened for {job.timeout} cycles"
        )
    count = job.taken_count
    return WordRun(o[:count], accepted[: job.accepted_count], valid[:count], job.cycles, violations)


def _harness(word: int, instances: int) -> str:
    suffixes = [""] if instances == 1 else ["_0", "_1"]
    benches = " ".join(
        f"bench[{k}] = std::make_unique<TheBench>({', '.join(f'top.{port}{suffix}' for port in _PORTS)}, "
        f"{(1 << word) - 1:#x}ull);"
        for k, suffix in enumerate(suffixes)
    )
    defines = (
        f"#define INSTANCES {instances}\n#define MODMILL_BENCHES {benches}\n"
        f"#define MODMILL_WORD std::declval<Vmodel>().i_data{suffixes[0]}\n"
    )
    return defines + resources.files("modmill.flow").joinpath("words.cpp").read_text()


def _pair(top: str, word: int) -> str:
    widths = {port: word if port.endswith("data") else 1 for port in _PORTS}
    inputs = ("i_valid", "i_data", "o_ready")
    lines = ["", "module modmill_pair(input clk, input rst"]
    for k in range(2):
        lines += [f"  , {'input' if p in inputs else 'output'} [{bits - 1}:0] {p}_{k}" for p, bits in widths.items()]
    lines.append(");")
    for k in range(2):
        lines.append(f"  {top} core_{k}(.clk(clk), .rst(rst), {', '.join(f'.{p}({p}_{k})' for p in _PORTS)});")
    return "\n".join([*lines, "endmodule", ""])
