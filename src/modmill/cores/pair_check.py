# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Check a built machine with two streams of words: its files against what makes them, its RTL by simulation.

Two instances run side by side, each with messages of its own: the same kinds of messages in the same order, with other
numbers. Every number that comes back must be right, o_last must go with the last word of each answer, and every word of
the two must move in the same cycle. Then once more with pauses and stalls; then the written vectors; then short
messages from many starts: random contents of registers and memories, resets of 1, 3 and 40 cycles, the first word
offered in different cycles after them, and resets in the middle, after which all is sent again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, islice
from pathlib import Path

from modmill.contract import Contract
from modmill.cores.engine_files import Built, file_differences
from modmill.engines.machine.cluster import Packets
from modmill.flow.emit import without_initial_values
from modmill.flow.library import Start
from modmill.flow.lint import foreign_words, lint
from modmill.flow.tools import ToolError
from modmill.flow.words import WordRun, WordSimulator

RESETS = (1, 3, 40)
"""Lengths of a reset, in cycles."""
_STARTS = range(4, 17)
"""How many starts are tried."""
_EFFORT = 5e11
"""Cycles times bytes of Verilog that starts may take together: a few seconds."""


@dataclass(frozen=True)
class Answer:
    """What must come for one job: ``numbers`` modulo ``p``, ``each`` for one of its runs.

    ``what``: what a run gives. ``cycles``: from the last word in to the first word out, where that is one number; 0
    else. It is looked at where there is one machine, whose jobs do not wait for others. ``words``: of the answer, 0 for
    as many as `Messages.length` says. ``wait``: cycles more at most, for the first job after a modulus, which the
    multiplier may still be loading.
    """

    what: str
    p: int
    numbers: Sequence[int]
    each: int = 1
    cycles: int = 0
    words: int = 0
    wait: int = 0


@dataclass
class Stream:
    """Words for one instance, and the answers that must come; ``ends``: the places of the jobs' last words."""

    words: list[int] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    _loading: int = 0

    def load(self, words: Sequence[int], contract: Contract) -> None:
        """Append a SETUP message; ``contract``: of the multiplier with the modulus that it loads."""
        self.words += words
        self._loading = contract.load.cycles if contract.load else 0

    def add(self, packets: Packets, job: Sequence[int], answer: Answer) -> None:
        """Append a job."""
        self.words += packets.sent(job, len(self.answers))
        self.ends.append(len(self.words) - 1)
        self.answers.append(replace(answer, wait=self._loading))
        self._loading = 0

    @property
    def runs(self) -> int:
        """Runs of all jobs."""
        return sum(len(answer.numbers) // answer.each for answer in self.answers)


@dataclass
class PairReport:
    """What a check found: ``failures``, one line each; ``judged`` results (``kind``), cycles simulated, seconds."""

    name: str
    kind: str
    failures: list[str] = field(default_factory=list)
    judged: int = 0
    cycles: int = 0
    seconds: float = 0.0

    @property
    def line(self) -> str:
        """The verdict in one line."""
        found = f"{len(self.failures)} difference{'s' * (len(self.failures) != 1)}; " if self.failures else ""
        return (
            f"{'FAIL' if self.failures else 'PASS'} {self.name}: {found}{self.judged} {self.kind} in {self.cycles:,}"
            f" cycles, {self.seconds:.1f} s"
        )


@dataclass(frozen=True)
class Messages:
    """What a machine is checked with.

    ``streams``: those of the two instances, at full rate or not. ``vectors``: what vectors.json holds. ``short``: a few
    messages for each instance, to be sent from many starts. ``numbers``: what the words of an answer stand for, modulo
    its p. ``length``: words of an answer. ``patience``: cycles without a word. ``spread``: cycles after a reset within
    which the first word is offered. ``secret``: what the time of a word must not depend on.
    """

    streams: Callable[[bool], tuple[Stream, Stream]]
    vectors: Stream
    short: tuple[Stream, Stream]
    numbers: Callable[[Sequence[int], int], list[int]]
    length: int
    patience: int
    spread: int
    secret: str

    def lengths(self, stream: Stream) -> list[int]:
        """Words of each answer."""
        return [answer.words or self.length for answer in stream.answers]


def check_pair(folder: Path, stem: str, core: Built, kind: str, messages: Callable[[], Messages]) -> PairReport:
    """Check what lies in a folder as stem.v, stem.json, vectors.json and README.md; ``core``: remade from its record
    around its Verilog; ``kind``: results, in the plural.

    Raises ValueError when a file is missing or malformed, ToolError when a tool cannot be run.
    """
    start = time.monotonic()
    report, text = PairReport(folder.resolve().name, kind), core.verilog
    bare = without_initial_values(text)  # hardware starts anywhere
    report.failures += file_differences(folder, stem, core)
    faults = [f"{stem}.v: uses {word}, which no generated core does" for word in foreign_words(bare)]
    faults = faults or [f"{stem}.v: {line}" for line in lint(text, core.top)]
    report.failures += faults
    if not faults:
        try:
            simulator = WordSimulator(bare, core.word, top=core.top, instances=2, power_up=core.power_up)
        except ToolError as error:
            if "%Error" not in str(error):
                raise
            report.failures.append(f"{stem}.v: does not compile: {error}")
        else:
            report.failures += islice(simulated(core, messages(), simulator, report), 1)
    report.seconds = time.monotonic() - start
    return report


def simulated(core: Built, messages: Messages, simulator: WordSimulator, report: PairReport) -> Iterator[str]:
    """What simulation finds, in the order of its runs; the simulator holds two instances."""
    return _Simulated(core, messages, simulator, report).faults()


@dataclass
class _Simulated:
    """The runs of a check."""

    core: Built
    messages: Messages
    simulator: WordSimulator
    report: PairReport
    _seed: int = 0

    def faults(self) -> Iterator[str]:
        """What is wrong, in the order of the runs."""
        messages = self.messages
        yield from self._run("at full rate", messages.streams(True), alike=True)
        yield from self._run("with pauses and stalls", messages.streams(False), Start(reset=RESETS[1], first=0), 0.3)
        both = messages.vectors, messages.vectors
        yield from self._run("vectors.json", both, Start(reset=RESETS[2], first=0))
        before = self.report.cycles
        yield from self._run("short messages", messages.short)
        for start, other in self._starts(self.report.cycles - before):
            yield from self._run(_told(start), messages.short, start, other=other)

    def _starts(self, cycles: int) -> Iterator[tuple[Start, Start]]:
        """Starts of the two instances for short messages that take so many cycles."""
        rnd = random.Random(cycles)
        count = int(_EFFORT / (max(1, cycles) * len(self.core.verilog)))
        for k in range(max(_STARTS[0], min(_STARTS[-1], count))):
            first, other = (k if k < _STARTS[-1] // 2 else rnd.randrange(self.messages.spread + 1) for _ in range(2))
            restart = rnd.randrange(1, cycles + first) if k % 2 else 0
            how = Start(RESETS[k % len(RESETS)], first, noise=k % 4 < 2, restart=restart)
            yield how, Start(how.reset, other + k % 3, how.noise, restart)

    def _run(
        self, label: str, streams: tuple[Stream, Stream], start: Start | None = None, rate: float = 0.0,
        *, other: Start | None = None, alike: bool = False,
    ) -> Iterator[str]:  # fmt: skip
        """Faults of one run; ``alike``: whether the two instances must do the same in every cycle."""
        messages, packets = self.messages, self.core.packets
        self._seed += 1
        runs = self.simulator.run_pair(
            *((stream.words, sum(length + packets.head for length in messages.lengths(stream))) for stream in streams),
            gap=rate, stall=rate, timeout=messages.patience, seed=self._seed,
            starts=(start or Start(), other or start or Start()),
        )  # fmt: skip
        self.report.cycles += max(run.cycles for run in runs)
        for run, stream in zip(runs, streams, strict=True):
            self.report.judged += stream.runs
            yield from (f"{label}: {line}" for line in _judged(packets, messages, run, stream))
        if alike and (runs[0].accepted, runs[0].valid) != (runs[1].accepted, runs[1].valid):
            yield f"{label}: the time of a word depends on {messages.secret}"
        if not rate and packets.machines == 1:
            yield from (f"{label}: {line}" for line in _timed(messages, runs[0], streams[0]))


def _told(start: Start) -> str:
    """A start in words."""
    again = f", reset again in cycle {start.restart:,}" if start.restart else ""
    return f"reset of {start.reset} cycle{'s' * (start.reset > 1)}, first word in cycle {start.first}{again}"


def _judged(packets: Packets, messages: Messages, run: WordRun, stream: Stream) -> Iterator[str]:
    yield from run.violations
    lengths = messages.lengths(stream)
    order, words = packets.ordered(run.words, lengths)
    done = at_word = 0
    for answer, length in zip(stream.answers, lengths, strict=True):
        found = messages.numbers(words[at_word : at_word + length], answer.p)
        at_word += length
        for at in range(0, len(answer.numbers), answer.each):
            if found[at : at + answer.each] != list(answer.numbers[at : at + answer.each]):
                yield f"{answer.what} {done + at // answer.each} modulo {answer.p:#x} is wrong"
                return
        done += len(answer.numbers) // answer.each
    lasts = accumulate(lengths[job] + packets.head for job in order)
    if [k for k, last in enumerate(run.last, 1) if last] != list(lasts):
        yield "o_last does not go with the last word of each answer, and with no other"


def _timed(messages: Messages, run: WordRun, stream: Stream) -> Iterator[str]:
    starts = accumulate(messages.lengths(stream), initial=0)
    for answer, end, start in zip(stream.answers, stream.ends, starts, strict=False):
        found = run.valid[start] - run.accepted[end]
        if answer.cycles and not answer.cycles <= found <= answer.cycles + answer.wait:
            yield f"{answer.what} takes {found:,} cycles, {answer.cycles:,} were predicted"
            return
