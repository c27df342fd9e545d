# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Cycle-accurate simulation of an engine with two streams of words: i_data in, o_data out.

As `simulate.py`; `words.cpp` drives the handshake.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

from modmill.flow import library
from modmill.flow.library import U32, U64, U64S, Library, Pace, Start, StartJob
from modmill.flow.modules import module_ports

Words = tuple[Sequence[int], int]
"""Words at i, and number of words that are expected at o."""
_DRAIN_CYCLES = 300  # in which no further word may leave
_PORTS = {
    "i_valid": "input", "i_ready": "output", "i_data": "input", "o_valid": "output", "o_ready": "input",
    "o_data": "output", "o_last": "output",
}  # fmt: skip
_RANDOM_PORTS = {"random_valid": ("input", 1), "random_ready": ("output", 1), "random_data": ("input", 32)}
SOURCES = ("fresh", "missing", "stuck", "biased")
"""Sources of random words for an engine that has a port for them: fresh ones, with pauses as at i; none; the same one
always, or every second time."""
_FAULTS = (
    "o_valid dropped before o_ready",
    "o_data or o_last changed while waiting for o_ready",
    "a word more than expected",
    "o_valid high straight after reset",
)


@dataclass(frozen=True)
class WordRun:
    """The outcome of one simulation; cycle 0 is the first after reset.

    ``words``: the words at o. ``accepted``: cycles at whose ends the words at i were accepted. ``valid``: cycles in
    which the words at o were first valid. ``cycles`` ends with the last word. ``violations``: faults of the handshake.
    ``last``: o_last of each word.
    """

    words: list[int]
    accepted: list[int]
    valid: list[int]
    cycles: int
    violations: list[str]
    last: list[bool]


class _Job(ctypes.Structure):  # has the same layout in words.cpp
    _fields_ = library.fields(
        (StartJob, "start"), (U64, "words"), (U64S, "i"), (U64, "wanted"), (U64S, "o accepted valid last"),
        (U32, "gap stall"), (U64, "source timeout drain accepted_count taken_count cycles timed_out"),
        (U64 * len(_FAULTS), "faults first"),
    )  # fmt: skip


class WordSimulator:
    """An engine compiled for simulation: its Verilog, its module and the bits of its words (1 to 64).

    ``instances=2`` simulates two engines side by side. ``power_up``: least cycles of the reset after power-up.
    Raises ToolError if the text does not compile, and ValueError for another size of words or number of instances.
    """

    def __init__(self, verilog: str, word: int, *, top: str = "core", instances: int = 1, power_up: int = 1) -> None:
        if not 1 <= word <= 64:
            raise ValueError(f"words have 1 to 64 bits, not {word}")
        self._word, self._power_up = word, power_up
        macros = {"MODMILL_WORD": "std::declval<Vmodel>().i_data{}"}
        ports = {port: (way, word if port.endswith("data") else 1) for port, way in _PORTS.items()}
        randomness = ""
        if "random_valid" in (module_ports(verilog, top) or ()):
            ports |= _RANDOM_PORTS
            macros["MODMILL_RANDOM"] = "1"
            randomness = ", ".join(f"top.{port}{{0}}" for port in _RANDOM_PORTS)
        pins = [*(f"top.{port}{{}}" for port in _PORTS), f"{(1 << word) - 1:#x}ull", f"Randomness{{{{{randomness}}}}}"]
        self._library = Library(verilog, top, "words.cpp", macros, ports, pins, _Job, instances)

    def run(
        self, words: Sequence[int], wanted: int, *, start: Start | None = None, source: str = SOURCES[0],
        **pace: Unpack[Pace],
    ) -> WordRun:  # fmt: skip
        """Power up, reset, feed all words and wait for ``wanted`` words; ``start``: how the run begins; ``source``: of
        `SOURCES`.

        Raises ValueError for words that do not fit and for probabilities outside [0, 1).
        """
        return self._run([(words, wanted)], [start or Start()], source=source, **pace)[0]

    def run_pair(
        self, first: Words, second: Words, *, starts: tuple[Start, Start] = (Start(), Start()), **pace: Unpack[Pace]
    ) -> tuple[WordRun, WordRun]:
        """As ``run``, for two engines in one simulation.

        ``starts``: only ``first`` of the second one is used, because the engines share their reset.
        """
        one, two = self._run([first, second], starts, **pace)
        return one, two

    def _run(
        self, jobs: Sequence[Words], starts: Sequence[Start], *, gap: float = 0.0, stall: float = 0.0, seed: int = 1,
        timeout: int = library.DEFAULT_TIMEOUT, source: str = SOURCES[0],
    ) -> list[WordRun]:  # fmt: skip
        pauses = library.chances(gap=gap, stall=stall)
        table = (_Job * len(jobs))()
        kept = []
        for k, (words, wanted) in enumerate(jobs):
            for place, word in enumerate(words):
                if word < 0 or word >> self._word:
                    raise ValueError(f"word {place}, {word}, does not fit {self._word} bits")
            i, accepted = library.array(U64, len(words), words), library.array(U64, len(words))
            o, valid, last = (library.array(U64, wanted) for _ in range(3))
            start = starts[k].job(2 * seed + k, self._power_up)
            table[k] = _Job(
                start, len(words), i, wanted, o, accepted, valid, last, *pauses, SOURCES.index(source), timeout,
                _DRAIN_CYCLES,
            )  # fmt: skip
            kept.append((i, o, accepted, valid, last))
        self._library.run(table)
        return [_result(job, *map(list, arrays)) for job, (_, *arrays) in zip(table, kept, strict=True)]


def _result(job: _Job, o: list[int], accepted: list[int], valid: list[int], last: list[int]) -> WordRun:
    missing = f"{job.taken_count} of {job.wanted} words left, {job.accepted_count} of {job.words} were taken"
    count = job.taken_count
    return WordRun(
        o[:count], accepted[: job.accepted_count], valid[:count], job.cycles, library.violations(job, _FAULTS, missing),
        list(map(bool, last[:count])),
    )  # fmt: skip
