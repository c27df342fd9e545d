# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A built engine: a coprocessor around a design, behind two streams of words; emitted, simulated, written, read back.

Engines for powers (`rsa/machine.py`) and for curves (`ecc/machine.py`) add their programmes, runs and records.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from modmill.contract import Contract, Refusal
from modmill.cores import engine_files
from modmill.cores.trial import Trial, judged
from modmill.design import Fitted, Multiplier, unused
from modmill.engines.machine.cluster import Packets, assembled
from modmill.engines.machine.layout import RowLayout
from modmill.engines.machine.sequencer import RowSequencer
from modmill.engines.machine.slot_sequencer import NumberedRowSequencer
from modmill.engines.machine.timing import NumberedRhythm, Rhythm, acceptance
from modmill.engines.machine.top import Coprocessor
from modmill.flow import emit, tools
from modmill.flow.words import WordRun, WordSimulator

_Run = TypeVar("_Run")


@dataclass(frozen=True)
class Message:
    """A message for one machine. ``words``: without a packet's head. ``shown``: what vectors.json says of it.

    A job also has the number of its ``programme``, the modulus ``p``, the ``results`` of each of its runs modulo p,
    ``what`` a run gives, in words, and ``cycles``, from its last word to the first of its answer. A message that sets a
    modulus has no results.
    """

    words: Sequence[int]
    shown: Mapping[str, Any] = field(default_factory=dict)
    what: str = ""
    programme: int = 0
    p: int = 0
    results: Sequence[tuple[int, ...]] = ()
    cycles: int = 0


@dataclass(frozen=True)
class Simulated:
    """What the RTL gave: the ``results`` of each run, the simulation, for each job the cycle of its first word out
    (``firsts``), and the ``cycles`` from its last word in until then."""

    results: list[tuple[int, ...]]
    run: WordRun
    firsts: dict[int, int]
    cycles: list[int]

    @property
    def powers(self) -> list[int]:
        """The results of an engine whose runs have one each."""
        return [power for (power,) in self.results]


@dataclass(frozen=True)
class BuiltEngine(ABC):
    """A coprocessor around a design fitted to a modulus; abstract.

    ``given``: the settings that the design was asked for. ``bits``: of a scalar or an exponent. ``contexts``: runs that
    are done interleaved, 0 for as many as keep the multiplier busy or as the memory has room for. ``word``: bits of a
    word of the streams, 16 to 64. ``io``: form of the multiplier; numbers are at the engine's ports as they are at its.
    ``top``: the first Verilog module. ``cores``: machines side by side behind a router, whose packets then go round the
    messages (`engines/machine/cluster.py`). ``stored``: the Verilog of a folder, which is then simulated as it is;
    empty: it is emitted. Raises Refusal for a form that the design does not have.
    """

    design: str
    fitted: Fitted
    given: Mapping[str, Any] = field(default_factory=dict)
    bits: int = 0
    contexts: int = 0
    word: int = 32
    io: str = "native"
    top: str = "engine"
    cores: int = 1
    stored: str = field(default="", repr=False, compare=False)

    STEM: ClassVar[str]
    """Of the names of its files."""

    def __post_init__(self) -> None:
        if self.io not in self.fitted.forms:
            raise Refusal(f"{self.design} has no {self.io} form; take --io {' or '.join(self.fitted.forms)}")

    # ---- what it is made of

    @cached_property
    def contract(self) -> Contract:
        """The multiplier's contract."""
        return self.fitted.contract(self.io)

    def contract_at(self, fitted: Fitted) -> Contract:
        """The contract while the multiplier has this modulus loaded, stream k as the engine's machine takes it."""
        return fitted.slot_contract(self.layout.used) if self.numbered else fitted.contract(self.io)

    @property
    @abstractmethod
    def numbered(self) -> bool:
        """Whether numbers stay in the design's own slot machine; else they go between a slot memory and the
        multiplier."""

    @property
    def _sums(self) -> tuple[int, bool]:
        """How many sums a row has at most, and whether they are trimmed."""
        return 0, False

    @cached_property
    def rhythm(self) -> Rhythm | NumberedRhythm:
        """When the multiplier or slot machine does what, at its shortest turns."""
        if self.numbered:
            machine = unused(self.fitted.slot_machine(1))
            return NumberedRhythm(self.contract, machine.interval, machine.distance)
        core: Multiplier = unused(self.fitted.core(self.io))
        sums, trims = self._sums
        return Rhythm(self.contract, sums, *acceptance(core), trims)

    @property
    @abstractmethod
    def layout(self) -> RowLayout:
        """Slots, table and messages. Raises Refusal when the programmes do not fit the multiplier or the memories."""

    @property
    def results(self) -> int:
        """Runs of one job."""
        return self.layout.contexts

    @property
    def coprocessor(self) -> Coprocessor:
        """A new one around a new multiplier or slot machine."""
        layout = self.layout
        if self.numbered:
            return Coprocessor(NumberedRowSequencer(self.fitted.slot_machine(layout.used), layout))
        return Coprocessor(RowSequencer(self.fitted.core(self.io), layout))

    @cached_property
    def _sample(self) -> Coprocessor:
        """One whose cycles are asked for and that is not emitted."""
        sample: Coprocessor = unused(self.coprocessor)
        return sample

    @property
    def patience(self) -> int:
        """Cycles without a word after which a simulation is given up: twice those of the longest job, and some."""
        return 2 * max(map(self._sample.cycles, range(len(self.layout.programmes)))) + 1000

    @cached_property
    def verilog(self) -> str:
        """Verilog-2001 of the machine or machines, module ``top`` first; ``stored`` where it is given."""
        if self.stored:
            return self.stored
        machine = lambda name: emit.verilog(self.coprocessor, name)  # noqa: E731
        return assembled(machine, emit.verilog, self.top, self.packets, self.power_up)

    @property
    def packets(self) -> Packets:
        """How messages reach the machines."""
        return Packets(self.cores, self.word)

    @property
    def power_up(self) -> int:
        """Cycles of the first reset after power-up, at least: those of the multiplier."""
        return self.contract.power_up

    # ---- running

    @cached_property
    def _simulator(self) -> WordSimulator:
        return WordSimulator(self.verilog, self.word, top=self.top, power_up=self.power_up)

    def _simulated(
        self, programme: int, p: int, setups: Iterable[Sequence[int]], runs: Sequence[_Run],
        job: Callable[[list[_Run]], list[int]],
    ) -> Simulated:  # fmt: skip
        """The results modulo p of any number of runs of a programme by the RTL, after some messages: in jobs of as many
        as there are contexts, the last one filled up; ``job``: the words of one.

        Raises ToolError when the RTL does not do at its ports what it should.
        """
        size, packets = self.results, self.packets
        words, ends = [word for message in setups for word in packets.sent(message)], []
        batches = [list(runs[k : k + size]) for k in range(0, len(runs), size)]
        for number, batch in enumerate(batches):
            words += packets.sent(job(batch + batch[:1] * (size - len(batch))), number)
            ends.append(len(words) - 1)
        each = self.layout.answer_words(programme)
        whole = each + packets.head
        run = self._simulator.run(words, len(batches) * whole, timeout=self.patience)
        if run.violations:
            raise tools.ToolError(f"simulation: {run.violations[0]}")
        order, found = packets.ordered(run.words, each)
        firsts = dict(zip(order, run.valid[::whole], strict=True))
        return Simulated(
            self.layout.results(programme, found, p)[: len(runs)], run, firsts,
            [firsts[number] - run.accepted[end] for number, end in enumerate(ends)],
        )  # fmt: skip

    def _tried(self, found: Simulated, wanted: Sequence[tuple[int, ...]], what: str) -> Trial:
        """What two jobs for each machine showed. Raises ToolError when a result is wrong."""
        count = judged(found.results, wanted, what)
        return Trial(count, found.cycles[0], found.firsts[self.cores] - found.firsts[0])

    @abstractmethod
    def trial(self) -> Trial:
        """Two jobs for each machine by the RTL. Raises ToolError when a result is wrong."""

    # ---- writing

    @property
    @abstractmethod
    def options(self) -> dict[str, Any]:
        """What it was made with, every choice made: options of its record, in their order."""

    def about(self) -> dict[str, Any]:
        """What a row says of it."""
        made = {name: value for name, value in self.options.items() if name != "top"}
        return {"design": self.design, "parameters": dict(self.fitted.settings), **made}

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """Its JSON file, without command, tools and seal."""

    @abstractmethod
    def page(self, record: Mapping[str, Any]) -> str:
        """README.md: the data sheet of a record."""

    @abstractmethod
    def messages(self) -> Iterable[Message]:
        """Those of vectors.json, with their answers by the arithmetic of `numbers`."""

    def vectors(self) -> dict[str, Any]:
        """vectors.json: words in and out for its messages."""
        lay, packets, out, jobs = self.layout, self.packets, list[dict[str, Any]](), 0
        for message in self.messages():
            number, answer = None, list[int]()
            if message.results:
                number, jobs = jobs, jobs + 1
                if lay.binary:
                    answer = [number % self.cores] * packets.head
                    answer += [word for run in message.results for x in run for word in lay.number(x)]
            sent = packets.sent(message.words, number)
            out.append({**message.shown, "in": list(map(hex, sent)), "out": list(map(hex, answer))})
        return {"digest": emit.digest(self.verilog), "messages": out}

    def write(self, folder: str | Path, command: str) -> Path:
        """Write its Verilog, its record, vectors.json and README.md; return the folder.

        A folder of a former build is replaced. Raises ValueError when the folder holds anything else.
        """
        return engine_files.write(folder, self, command)

    # ---- reading

    @classmethod
    @abstractmethod
    def of_record(cls, record: Mapping[str, Any]) -> Self:
        """The engine that a record asks for. Raises KeyError, TypeError or ValueError for a malformed one."""

    @classmethod
    def remade(cls, path: str | Path) -> Self:
        """The engine that the record of a folder asks for, which need not be the one that lies there.

        Raises ValueError (Refusal) when the record is missing or malformed.
        """
        place = Path(path) / f"{cls.STEM}.json"
        try:
            record = json.loads(place.read_text(encoding="utf-8"))
            record["options"].pop("stored", None)
            return cls.of_record(record)
        except FileNotFoundError:
            raise ValueError(f"{place} is missing") from None
        except (KeyError, TypeError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ValueError(f"{place} is malformed: {type(error).__name__} {error}") from None

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """The engine in a folder that ``write`` wrote: it simulates the Verilog that lies there.

        Raises ValueError (Refusal) when a file is missing or malformed, and when Verilog or record were edited.
        """
        return replace(cls.remade(path), stored=engine_files.stored_verilog(Path(path), cls.STEM))

    @classmethod
    def for_check(cls, path: str | Path) -> Self:
        """As `read`, but whatever Verilog and record lie there. Raises ValueError when a file is missing."""
        return replace(cls.remade(path), stored=engine_files.verilog_of(Path(path), cls.STEM))
