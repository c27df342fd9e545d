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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import InitVar, dataclass, field
from itertools import accumulate, islice, zip_longest
from pathlib import Path
from typing import TypeVar

from modmill.cores.built import BuiltEngine, Message
from modmill.cores.engine_files import file_differences
from modmill.flow.emit import without_initial_values
from modmill.flow.library import Start
from modmill.flow.lint import foreign_words, lint
from modmill.flow.tools import ToolError
from modmill.flow.words import WordRun, WordSimulator

_Engine = TypeVar("_Engine", bound=BuiltEngine)
RESETS = (1, 3, 40)
"""Lengths of a reset, in cycles."""
_STARTS = range(4, 17)
"""How many starts are tried."""
_EFFORT = 5e11
"""Cycles times bytes of Verilog that starts may take together: a few seconds."""


@dataclass
class Stream:
    """Messages for one of the instances, in their order, and the words that they are sent as.

    ``ends``: the places of the jobs' last words. ``waits``: for each job the cycles more that it may take: the first
    one after a modulus, which the multiplier may still be loading.
    """

    core: BuiltEngine
    messages: InitVar[Iterable[Message]]
    words: list[int] = field(default_factory=list)
    jobs: list[Message] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)

    def __post_init__(self, messages: Iterable[Message]) -> None:
        packets, load, wait = self.core.packets, self.core.contract.load, 0
        for message in messages:
            if not message.results:
                self.words += packets.sent(message.words)
                wait = load.cycles if load else 0
                continue
            self.words += packets.sent(message.words, len(self.jobs))
            self.jobs.append(message)
            self.ends.append(len(self.words) - 1)
            self.waits.append(wait)
            wait = 0

    @property
    def lengths(self) -> list[int]:
        """Words of each answer."""
        return [self.core.layout.answer_words(job.programme) for job in self.jobs]

    @property
    def runs(self) -> int:
        """Runs of all jobs."""
        return sum(len(job.results) for job in self.jobs)


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
    """What a machine is checked with, for each of the two instances.

    ``full``, ``paused``: at full rate, and with pauses and stalls. ``vectors``: what vectors.json holds, for both.
    ``short``: a few messages, to be sent from many starts. ``secret``: what the time of a word must not depend on.
    """

    full: tuple[Stream, Stream]
    paused: tuple[Stream, Stream]
    vectors: Stream
    short: tuple[Stream, Stream]
    secret: str


def check_pair(
    path: str | Path, engine: type[_Engine], kind: str, messages: Callable[[_Engine], Messages]
) -> PairReport:
    """Check the files of an engine in a folder; ``kind``: results, in the plural.

    Raises ValueError when a file is missing or malformed, ToolError when a tool cannot be run.
    """
    folder, start = Path(path), time.monotonic()
    core = engine.for_check(folder)
    report, text, name = PairReport(folder.resolve().name, kind), core.verilog, f"{core.STEM}.v"
    bare = without_initial_values(text)  # hardware starts anywhere
    report.failures += file_differences(folder, core)
    faults = [f"{name}: uses {word}, which no generated core does" for word in foreign_words(bare)]
    faults = faults or [f"{name}: {line}" for line in lint(text, core.top)]
    report.failures += faults
    if not faults:
        try:
            simulator = WordSimulator(bare, core.word, top=core.top, instances=2, power_up=core.power_up)
        except ToolError as error:
            if "%Error" not in str(error):
                raise
            report.failures.append(f"{name}: does not compile: {error}")
        else:
            report.failures += islice(simulated(core, messages(core), simulator, report), 1)
    report.seconds = time.monotonic() - start
    return report


def simulated(core: BuiltEngine, messages: Messages, simulator: WordSimulator, report: PairReport) -> Iterator[str]:
    """What simulation finds, in the order of its runs; the simulator holds two instances."""
    return _Simulated(core, messages, simulator, report).faults()


@dataclass
class _Simulated:
    """The runs of a check."""

    core: BuiltEngine
    messages: Messages
    simulator: WordSimulator
    report: PairReport
    _seed: int = 0

    def faults(self) -> Iterator[str]:
        """What is wrong, in the order of the runs."""
        messages = self.messages
        yield from self._run("at full rate", messages.full, alike=True)
        yield from self._run("with pauses and stalls", messages.paused, Start(reset=RESETS[1], first=0), 0.3)
        both = messages.vectors, messages.vectors
        yield from self._run("vectors.json", both, Start(reset=RESETS[2], first=0))
        before = self.report.cycles
        yield from self._run("short messages", messages.short)
        for start, other in self._starts(self.report.cycles - before):
            yield from self._run(_told(start), messages.short, start, other=other)

    def _starts(self, cycles: int) -> Iterator[tuple[Start, Start]]:
        """Starts of the two instances for short messages that take so many cycles."""
        rnd, timing = random.Random(cycles), self.core.contract.timing
        spread = timing.latency + timing.interval + self.core.rhythm.turn
        count = int(_EFFORT / (max(1, cycles) * len(self.core.verilog)))
        for k in range(max(_STARTS[0], min(_STARTS[-1], count))):
            first, other = (k if k < _STARTS[-1] // 2 else rnd.randrange(spread + 1) for _ in range(2))
            restart = rnd.randrange(1, cycles + first) if k % 2 else 0
            how = Start(RESETS[k % len(RESETS)], first, noise=k % 4 < 2, restart=restart)
            yield how, Start(how.reset, other + k % 3, how.noise, restart)

    def _run(
        self, label: str, streams: tuple[Stream, Stream], start: Start | None = None, rate: float = 0.0,
        *, other: Start | None = None, alike: bool = False,
    ) -> Iterator[str]:  # fmt: skip
        """Faults of one run; ``alike``: whether the two instances must do the same in every cycle."""
        core, packets = self.core, self.core.packets
        self._seed += 1
        runs = self.simulator.run_pair(
            *((stream.words, sum(length + packets.head for length in stream.lengths)) for stream in streams),
            gap=rate, stall=rate, timeout=core.patience, seed=self._seed,
            starts=(start or Start(), other or start or Start()),
        )  # fmt: skip
        self.report.cycles += max(run.cycles for run in runs)
        for run, stream in zip(runs, streams, strict=True):
            self.report.judged += stream.runs
            yield from (f"{label}: {line}" for line in _judged(core, run, stream))
        if alike and (runs[0].accepted, runs[0].valid) != (runs[1].accepted, runs[1].valid):
            yield f"{label}: the time of a word depends on {self.messages.secret}"
        if not rate and packets.machines == 1:
            yield from (f"{label}: {line}" for line in _timed(runs[0], streams[0]))


def _told(start: Start) -> str:
    """A start in words."""
    again = f", reset again in cycle {start.restart:,}" if start.restart else ""
    return f"reset of {start.reset} cycle{'s' * (start.reset > 1)}, first word in cycle {start.first}{again}"


def _judged(core: BuiltEngine, run: WordRun, stream: Stream) -> Iterator[str]:
    yield from run.violations
    lengths, head = stream.lengths, core.packets.head
    order, words = core.packets.ordered(run.words, lengths)
    done = at = 0
    for job, length in zip(stream.jobs, lengths, strict=True):
        found = core.layout.results(job.programme, words[at : at + length], job.p)
        for number, (result, wanted) in enumerate(zip_longest(found, job.results), done):
            if result != wanted:
                yield f"{job.what} {number} modulo {job.p:#x} is wrong"
                return
        at, done = at + length, done + len(job.results)
    lasts = accumulate(lengths[job] + head for job in order)
    if [k for k, last in enumerate(run.last, 1) if last] != list(lasts):
        yield "o_last does not go with the last word of each answer, and with no other"


def _timed(run: WordRun, stream: Stream) -> Iterator[str]:
    """Of one machine, whose jobs do not wait for others."""
    starts = accumulate(stream.lengths, initial=0)
    for job, end, start, wait in zip(stream.jobs, stream.ends, starts, stream.waits, strict=False):
        found = run.valid[start] - run.accepted[end]
        if not job.cycles <= found <= job.cycles + wait:
            yield f"{job.what} takes {found:,} cycles, {job.cycles:,} were predicted"
            return
