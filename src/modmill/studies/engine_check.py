# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Check a built engine: its files against what makes them, its RTL by simulation against Python's integers.

Two engines run side by side, each with messages of its own: the same kinds of messages in the same order, with other
moduli, bases and exponents. Every power must be right, and every word of the two must move in the same cycle.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from modmill.design import Fitted
from modmill.flow.lint import lint
from modmill.flow.tools import ToolError
from modmill.flow.words import WordRun, WordSimulator
from modmill.report import sheet
from modmill.studies.build import digest
from modmill.studies.check import foreign_words
from modmill.studies.engine import PUBLIC, EngineCore, read

SHORT = 48
"""Bits of the exponents of all messages but one of full length."""
POWERS = 16
"""Powers of either programme for each modulus, at least."""


@dataclass
class EngineReport:
    """What a check found: ``failures``, one line each; powers judged, cycles simulated, seconds."""

    name: str
    failures: list[str] = field(default_factory=list)
    powers: int = 0
    cycles: int = 0
    seconds: float = 0.0

    @property
    def line(self) -> str:
        """The verdict in one line."""
        found = f"{len(self.failures)} difference{'s' * (len(self.failures) != 1)}; " if self.failures else ""
        return (
            f"{'FAIL' if self.failures else 'PASS'} {self.name}: {found}{self.powers} powers in {self.cycles:,} cycles,"
            f" {self.seconds:.1f} s"
        )


def check_engine(path: str | Path, *, full: bool = True) -> EngineReport:
    """Check the engine in a folder; ``full``: one message with exponents of full length among the short ones.

    Raises ValueError when a file is missing or malformed, ToolError when a tool cannot be run.
    """
    start = time.monotonic()
    folder = Path(path)
    core = read(folder)
    report = EngineReport(folder.resolve().name)
    try:
        header, text = sheet.split((folder / "engine.v").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{folder / 'engine.v'} is missing") from None
    report.failures += _files(folder, core, header, text)
    faults = [f"engine.v: uses {word}, which no generated core does" for word in foreign_words(text)]
    faults = faults or [f"engine.v: {line}" for line in lint(text, core.top)]
    report.failures += faults
    if not faults:
        try:
            simulator = WordSimulator(text, core.word, top=core.top, instances=2)
        except ToolError as error:
            if "%Error" not in str(error):
                raise
            report.failures.append(f"engine.v: does not compile: {error}")
        else:
            for line in _runs(core, simulator, report, full):
                report.failures.append(line)
                break
    report.seconds = time.monotonic() - start
    return report


def _files(folder: Path, core: EngineCore, header: str, text: str) -> Iterator[str]:
    """Whether engine.json is what the engine's options ask for, and the digests are those of engine.v."""
    written = json.loads((folder / "engine.json").read_text(encoding="utf-8"))
    core.__dict__["verilog"] = text
    recomputed = json.loads(json.dumps(core.record()))
    for key in recomputed.keys() - {"modmill", "digest"}:
        if written.get(key) != recomputed[key]:
            yield f"engine.json: {key} differs from what is recomputed"
    found = sheet.DIGEST_LINE.search(header)
    for name, recorded in (("engine.json", written.get("digest")), ("engine.v", found and found[1])):
        if recorded != digest(text):
            yield f"{name}: the RTL has another digest than it says"


@dataclass
class _Stream:
    """Messages for one engine, and the powers that must come."""

    words: list[int] = field(default_factory=list)
    powers: list[tuple[int, int]] = field(default_factory=list)


def _messages(core: EngineCore, moduli: list[Fitted], full: bool, seed: int) -> _Stream:
    """For each modulus messages of either programme, with edges of bases and exponents among them."""
    rnd = random.Random(seed)
    layout, out = core.layout, _Stream()
    size = layout.contexts
    for k, fitted in enumerate(moduli):
        p = fitted.p
        out.words += core.sent(core.setup(fitted))
        longest = layout.engines[0].bits
        kinds = [(0, longest)] if full and not k else []
        kinds += [(0, min(SHORT, longest)), (1, PUBLIC.bit_length())] * -(-POWERS // size)
        for programme, bits in kinds:
            edges = [(p - 1, (1 << bits) - 1), (0, 0), (1, 1 << bits - 1), (p - 1, 1), (2, 0)]
            pairs = [rnd.choice(edges) if rnd.randrange(3) == 0 else (rnd.randrange(p), rnd.getrandbits(bits))
                     for _ in range(size)]  # fmt: skip
            if programme:
                pairs = [(base, PUBLIC) for base, _ in pairs]
            job = layout.job(programme, pairs, 0 if programme else bits)
            out.words += core.sent(job, len(out.powers) // size)
            out.powers += [(p, pow(base, exponent, p)) for base, exponent in pairs]
    return out


def _runs(core: EngineCore, simulator: WordSimulator, report: EngineReport, full: bool) -> Iterator[str]:
    """Faults of the runs at full rate and with pauses and stalls."""
    layout = core.layout
    moduli = [core.fitted, *core.fitted.others()]
    patience = 2 * core.cycles(0) + 1000
    for label, gap, stall in (("at full rate", 0.0, 0.0), ("with pauses and stalls", 0.3, 0.3)):
        whole = full and not gap
        streams = [_messages(core, order, whole, seed) for seed, order in enumerate((moduli, moduli[::-1]), 1)]
        jobs = [(stream.words, len(stream.powers) // layout.contexts * core.answer) for stream in streams]
        runs = simulator.run_pair(*jobs, gap=gap, stall=stall, timeout=patience)
        report.cycles += max(run.cycles for run in runs)
        for run, stream in zip(runs, streams, strict=True):
            report.powers += len(stream.powers)
            yield from (f"{label}: {line}" for line in _judged(core, run, stream))
        one, two = runs
        if not gap and (one.accepted, one.valid) != (two.accepted, two.valid):
            yield f"{label}: the time of a word depends on moduli, bases or exponents"


def _judged(core: EngineCore, run: WordRun, stream: _Stream) -> Iterator[str]:
    yield from run.violations
    size = core.layout.number_words
    _, words = core.ordered(run.words)
    for k, (p, wanted) in enumerate(stream.powers):
        found = core.layout.powers(words[k * size : (k + 1) * size], p)
        if found != [wanted]:
            yield f"power {k} modulo {p:#x} is wrong"
            return
