# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Check a built machine with two streams of words: its files against what makes them, its RTL by simulation.

Two instances run side by side, each with messages of its own: the same kinds of messages in the same order, with other
numbers. Every number that comes back must be right, and every word of the two must move in the same cycle; then once
more with pauses and stalls.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, Protocol

from modmill.engines.cluster import Packets
from modmill.flow.lint import lint
from modmill.flow.tools import ToolError
from modmill.flow.words import WordRun, WordSimulator
from modmill.report import sheet
from modmill.studies.build import digest
from modmill.studies.check import foreign_words


class Built(Protocol):
    """What is checked, made anew from its folder."""

    @property
    def top(self) -> str:
        """Its first module."""

    @property
    def word(self) -> int:
        """Bits of a word."""

    @property
    def packets(self) -> Packets:
        """How messages reach its machines."""

    def record(self) -> dict[str, Any]:
        """The file in JSON."""

    def vectors(self) -> dict[str, Any]:
        """Words in and out."""


@dataclass(frozen=True)
class Answer:
    """What must come for one job: ``numbers`` modulo ``p``, ``each`` for one of its runs.

    ``what``: what a run gives. ``cycles``: from the last word in to the first word out, where that is one number; 0
    else. It is looked at where there is one machine, whose jobs do not wait for others. ``words``: of the answer, 0 for
    as many as `Messages.length` says.
    """

    what: str
    p: int
    numbers: Sequence[int]
    each: int = 1
    cycles: int = 0
    words: int = 0


@dataclass
class Stream:
    """Words for one instance, and the answers that must come; ``ends``: the places of the jobs' last words."""

    words: list[int] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def add(self, packets: Packets, job: Sequence[int], answer: Answer) -> None:
        """Append a job."""
        self.words += packets.sent(job, len(self.answers))
        self.ends.append(len(self.words) - 1)
        self.answers.append(answer)

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

    ``streams``: those of the two instances, at full rate or not. ``numbers``: what the words of an answer stand for,
    modulo its p. ``length``: words of an answer. ``patience``: cycles without a word. ``secret``: what the time of a
    word must not depend on.
    """

    streams: Callable[[bool], tuple[Stream, Stream]]
    numbers: Callable[[Sequence[int], int], list[int]]
    length: int
    patience: int
    secret: str

    def lengths(self, stream: Stream) -> list[int]:
        """Words of each answer."""
        return [answer.words or self.length for answer in stream.answers]


def check_pair(folder: Path, stem: str, core: Built, kind: str, messages: Callable[[], Messages]) -> PairReport:
    """Check what ``core`` wrote to a folder as stem.v, stem.json and vectors.json; ``kind``: results, in the plural.

    Raises ValueError when a file is missing or malformed, ToolError when a tool cannot be run.
    """
    start = time.monotonic()
    report = PairReport(folder.resolve().name, kind)
    header, text = sheet.split(_read(folder / f"{stem}.v"))
    report.failures += _files(folder, stem, core, header, text)
    faults = [f"{stem}.v: uses {word}, which no generated core does" for word in foreign_words(text)]
    faults = faults or [f"{stem}.v: {line}" for line in lint(text, core.top)]
    report.failures += faults
    if not faults:
        try:
            simulator = WordSimulator(text, core.word, top=core.top, instances=2)
        except ToolError as error:
            if "%Error" not in str(error):
                raise
            report.failures.append(f"{stem}.v: does not compile: {error}")
        else:
            report.failures += islice(_runs(core.packets, messages(), simulator, report), 1)
    report.seconds = time.monotonic() - start
    return report


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ValueError(f"{path} is missing") from None


def _files(folder: Path, stem: str, core: Built, header: str, text: str) -> Iterator[str]:
    """Whether the files in JSON are what the options ask for, and the digests are those of the RTL."""
    written = json.loads(_read(folder / f"{stem}.json"))
    core.__dict__["verilog"] = text  # of the folder: it is judged by simulation, the rest by what makes it
    recomputed = json.loads(json.dumps(core.record()))
    for key in sorted(recomputed.keys() - {"modmill", "digest"}):
        if written.get(key) != recomputed[key]:
            yield f"{stem}.json: {key} differs from what is recomputed"
    try:
        vectors = json.loads(_read(folder / "vectors.json"))
        same = vectors["messages"] == json.loads(json.dumps(core.vectors()["messages"]))
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{folder / 'vectors.json'} is malformed: {type(error).__name__} {error}") from None
    if not same:
        yield "vectors.json: messages differ from what is recomputed"
    found = sheet.DIGEST_LINE.search(header)
    recorded = {f"{stem}.json": written.get("digest"), f"{stem}.v": found and found[1]}
    for name, said in recorded.items():
        if said != digest(text):
            yield f"{name}: the RTL has another digest than it says"


def _runs(packets: Packets, messages: Messages, simulator: WordSimulator, report: PairReport) -> Iterator[str]:
    """Faults of the runs at full rate and with pauses and stalls."""
    for label, gap, stall in (("at full rate", 0.0, 0.0), ("with pauses and stalls", 0.3, 0.3)):
        streams = messages.streams(not gap)
        head = packets.head
        jobs = [(stream.words, sum(length + head for length in messages.lengths(stream))) for stream in streams]
        runs = simulator.run_pair(*jobs, gap=gap, stall=stall, timeout=messages.patience)
        report.cycles += max(run.cycles for run in runs)
        for run, stream in zip(runs, streams, strict=True):
            report.judged += stream.runs
            yield from (f"{label}: {line}" for line in _judged(packets, messages, run, stream))
        one, two = runs
        if not gap and (one.accepted, one.valid) != (two.accepted, two.valid):
            yield f"{label}: the time of a word depends on {messages.secret}"
        if not gap and packets.machines == 1:
            yield from (f"{label}: {line}" for line in _timed(messages, one, streams[0]))


def _judged(packets: Packets, messages: Messages, run: WordRun, stream: Stream) -> Iterator[str]:
    yield from run.violations
    lengths = messages.lengths(stream)
    _, words = packets.ordered(run.words, lengths)
    done = at_word = 0
    for answer, length in zip(stream.answers, lengths, strict=True):
        found = messages.numbers(words[at_word : at_word + length], answer.p)
        at_word += length
        for at in range(0, len(answer.numbers), answer.each):
            if found[at : at + answer.each] != list(answer.numbers[at : at + answer.each]):
                yield f"{answer.what} {done + at // answer.each} modulo {answer.p:#x} is wrong"
                return
        done += len(answer.numbers) // answer.each


def _timed(messages: Messages, run: WordRun, stream: Stream) -> Iterator[str]:
    starts = accumulate(messages.lengths(stream), initial=0)
    for answer, end, start in zip(stream.answers, stream.ends, starts, strict=False):
        found = run.valid[start] - run.accepted[end]
        if answer.cycles and found != answer.cycles:
            yield f"{answer.what} takes {found:,} cycles, {answer.cycles:,} were predicted"
            return
