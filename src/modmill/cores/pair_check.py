# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Check a built engine: compare its files with recomputed ones, simulate its RTL.

Two instances run side by side with the same kinds of messages in the same order, but with different numbers. Every
result must be right, o_last must accompany the last word of each answer only, and corresponding words of the two
instances must move in the same cycle. Further simulations: with pauses and stalls; with the messages of vectors.json;
with short messages from many starts (random contents of registers and memories, resets of 1, 3 and 40 cycles, first
words offered in different cycles after the reset, resets in the middle, after which all messages are sent again).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import InitVar, dataclass, field
from itertools import accumulate, islice, zip_longest
from pathlib import Path
from typing import Any, TypeVar

from modmill.buses.adapters import find_bus
from modmill.buses.files import VERILOG
from modmill.cores.behind_bus import bus_faults
from modmill.cores.built import BuiltEngine, Message
from modmill.cores.engine_files import file_differences
from modmill.cores.folder import read_text
from modmill.flow.emit import without_initial_values
from modmill.flow.library import Start
from modmill.flow.lint import foreign_words, lint
from modmill.flow.tools import ToolError
from modmill.flow.words import WordRun, WordSimulator

_Engine = TypeVar("_Engine", bound=BuiltEngine)
RESETS = (1, 3, 40)
"""Lengths of a reset, in cycles."""
_STARTS = range(4, 17)
"""Number of starts."""
_EFFORT = 2.5e11
"""Limit for all starts together, in cycles × bytes of Verilog: a few seconds."""


@dataclass
class Stream:
    """Messages for one instance, and the words of its input stream.

    ``ends``: positions of the jobs' last words. ``waits``: additional cycles that each job may take; the first job
    after SETUP waits while the multiplier loads the modulus.
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
        """Length of each answer in words."""
        return [self.core.layout.answer_words(job.program) for job in self.jobs]

    @property
    def runs(self) -> int:
        """Number of runs in all jobs."""
        return sum(len(job.results) for job in self.jobs)


@dataclass
class PairReport:
    """Result of a check.

    ``kind``: name of the results, plural. ``failures``: one line each. ``judged``: number of results compared.
    ``cycles``: of all simulations. ``seconds``: duration of the check.
    """

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

    def describe(self) -> dict[str, Any]:
        """The report as JSON."""
        return {
            "passed": not self.failures, "name": self.name, "failures": self.failures, self.kind: self.judged,
            "cycles": self.cycles, "seconds": round(self.seconds, 2),
        }  # fmt: skip


@dataclass(frozen=True)
class Messages:
    """Streams for the two instances of a check.

    ``full``: at full rate. ``paused``: with pauses and stalls. ``vectors``: messages of vectors.json, for both.
    ``short``: a few messages, sent from many starts. ``secret``: values on which no word's cycle may depend.
    """

    full: tuple[Stream, Stream]
    paused: tuple[Stream, Stream]
    vectors: Stream
    short: tuple[Stream, Stream]
    secret: str


def check_pair(
    path: str | Path, engine: type[_Engine], kind: str, messages: Callable[[_Engine], Messages]
) -> PairReport:
    """Check the engine in a folder: files, lint, simulation. ``kind``: name of its results, plural.

    Raises ValueError if a file is missing or malformed, ToolError if a tool cannot be run.
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
    if core.bus and not faults:
        exchanges = list(core.exchanges())
        report.failures += bus_faults(read_text(folder / VERILOG), core.device, find_bus(core.bus), exchanges)
        report.judged += sum(bool(exchange.count) for exchange in exchanges) * core.results
    report.seconds = time.monotonic() - start
    return report


def simulated(
    core: BuiltEngine, messages: Messages, simulator: WordSimulator, report: PairReport, *, short: bool = False
) -> Iterator[str]:
    """Yield the faults that simulation finds; ``simulator`` holds two instances. ``short``: short messages only."""
    run = _Simulated(core, messages, simulator, report)
    return run.short() if short else run.faults()


def exhaust(core: BuiltEngine, every: Stream, simulator: WordSimulator, report: PairReport) -> Iterator[str]:
    """Yield the faults of one stream, sent to both instances at full rate."""
    given = Messages((every, every), (every, every), every, (every, every), "the messages before")
    return _Simulated(core, given, simulator, report).all()


@dataclass
class _Simulated:
    """Simulations of a check."""

    core: BuiltEngine
    messages: Messages
    simulator: WordSimulator
    report: PairReport
    _seed: int = 0

    def faults(self) -> Iterator[str]:
        """Yield faults, simulation by simulation."""
        messages = self.messages
        yield from self._run("at full rate", messages.full, alike=True)
        yield from self._run("with pauses and stalls", messages.paused, Start(reset=RESETS[1], first=0), 0.3)
        both = messages.vectors, messages.vectors
        yield from self._run("vectors.json", both, Start(reset=RESETS[2], first=0))
        yield from self.short()

    def all(self) -> Iterator[str]:
        """Yield faults of the streams at full rate."""
        yield from self._run("all operands", self.messages.full)

    def short(self) -> Iterator[str]:
        """Yield faults of short messages, first alone, then from many starts."""
        messages, before = self.messages, self.report.cycles
        yield from self._run("short messages", messages.short)
        for start, other in self._starts(self.report.cycles - before):
            yield from self._run(_described(start), messages.short, start, other=other)

    def _starts(self, cycles: int) -> Iterator[tuple[Start, Start]]:
        """Yield starts of the two instances for short messages that take ``cycles`` cycles."""
        rnd, timing = random.Random(cycles), self.core.contract.timing
        spread = timing.latency + timing.interval + self.core.timing.issue_cycles
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
        """Yield faults of one simulation; ``alike``: whether words must move in the same cycles in both instances."""
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


def _described(start: Start) -> str:
    """Describe a start."""
    again = f", reset again in cycle {start.restart:,}" if start.restart else ""
    return f"reset of {start.reset} cycle{'s' * (start.reset > 1)}, first word in cycle {start.first}{again}"


def _judged(core: BuiltEngine, run: WordRun, stream: Stream) -> Iterator[str]:
    """Yield violations of the protocol, the first wrong result, and a wrong o_last."""
    yield from run.violations
    lengths, head = stream.lengths, core.packets.head
    order, words = core.packets.ordered(run.words, lengths)
    done = at = 0
    for job, length in zip(stream.jobs, lengths, strict=True):
        found = core.answered(job, words[at : at + length])
        for number, (result, wanted) in enumerate(zip_longest(found, job.results), done):
            if result != wanted:
                yield f"{job.what} {number} modulo {job.p:#x} is wrong"
                return
        at, done = at + length, done + len(job.results)
    lasts = accumulate(lengths[job] + head for job in order)
    if [k for k, last in enumerate(run.last, 1) if last] != list(lasts):
        yield "o_last does not accompany exactly the last word of each answer"


def _timed(run: WordRun, stream: Stream) -> Iterator[str]:
    """Compare the cycles of each job with those predicted; for one machine, whose jobs do not wait for others."""
    starts = accumulate(stream.lengths, initial=0)
    for job, end, start, wait in zip(stream.jobs, stream.ends, starts, stream.waits, strict=False):
        found = run.valid[start] - run.accepted[end]
        if not job.cycles <= found <= job.cycles + wait:
            yield f"{job.what} takes {found:,} cycles, {job.cycles:,} were predicted"
            return
