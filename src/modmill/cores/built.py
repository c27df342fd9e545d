# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A built engine: a coprocessor around a design, behind two streams of words; emitted, simulated, written, read back.

Engines for powers (`rsa/machine.py`) and for curves (`ecc/machine.py`) add their programs, runs and records.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from amaranth.lib import wiring

from modmill.buses.adapters import find_bus
from modmill.buses.calls import Calls
from modmill.buses.crossing import DEPTH
from modmill.buses.device import SAME, WORD, Command, Device, Sent, is_separate
from modmill.buses.files import rows_of
from modmill.buses.power_calls import PowerCalls
from modmill.buses.script import KNOWN_WORDS
from modmill.buses.slots import check_slots
from modmill.contract import ALARM, Contract, UnsupportedError
from modmill.cores import engine_files
from modmill.cores.behind_bus import Exchange
from modmill.cores.folder import BESIDE, json_object, listed, read_text, require_former, write_folder
from modmill.cores.zeroise import engine_messages, refilled
from modmill.design import DesignInstance
from modmill.designs import design as find_design
from modmill.engines.ecc.blinding import BLIND
from modmill.engines.machine.blinder import BlindedCoprocessor, Blinding
from modmill.engines.machine.cluster import Packets, assembled
from modmill.engines.machine.layout import MicrocodeLayout
from modmill.engines.machine.lockstep import LATENCY, Lockstep, engine_module, paired
from modmill.engines.machine.random_port import RANDOM_WORD, WAIT, HealthTests
from modmill.engines.machine.sequencer import DatapathSequencer
from modmill.engines.machine.slot_sequencer import SlotSequencer
from modmill.engines.machine.timing import MachineTiming, SlotTiming, acceptance
from modmill.engines.machine.top import Coprocessor
from modmill.flow import emit, tools
from modmill.flow.readable import readable
from modmill.flow.words import WordRun, WordSimulator
from modmill.interface import Multiplier
from modmill.report.attack_tables import PROTECTIONS
from modmill.report.recorded import recorded
from modmill.report.sheet import UNPROVED_ENGINE

_Run = TypeVar("_Run")


@dataclass(frozen=True)
class Message:
    """A message for one machine: SETUP or a job.

    ``words``: without the head of a packet. ``shown``: its entry in vectors.json. For a job also ``what``: name of its
    operation; ``program``: its number in the layout; ``p``: modulus; ``results``: expected results of each run, modulo
    p; ``cycles``: from its last word to the first word of its answer; ``choice``: of the bases that must be loaded, as
    in `DesignInstance.choose`. A SETUP message has no results.
    """

    words: Sequence[int]
    shown: Mapping[str, Any] = field(default_factory=dict)
    what: str = ""
    program: int = 0
    p: int = 0
    results: Sequence[tuple[int, ...]] = ()
    cycles: int = 0
    choice: int = 0


@dataclass(frozen=True)
class Simulated:
    """Outcome of a simulation of the RTL.

    ``results``: of each run, in [0, p). ``firsts``: for each job the cycle of the first word of its answer; ``cycles``:
    from the last word of the job to that word.
    """

    results: list[tuple[int, ...]]
    run: WordRun
    firsts: dict[int, int]
    cycles: list[int]

    @property
    def powers(self) -> list[int]:
        """The results of an engine whose runs have one result each."""
        return [power for (power,) in self.results]


@dataclass(frozen=True)
class Trial:
    """Outcome of the first simulation of an engine.

    Number of results compared, cycles of one job alone (``latency``), cycles between answers of a machine. ``more``:
    cycles of other jobs, by name.
    """

    judged: int
    latency: int
    period: int
    more: Mapping[str, int] = field(default_factory=dict)


def judged(found: Sequence[Any], wanted: Sequence[Any], what: str) -> int:
    """Return the number of results. Raises ToolError at the first wrong one, and if some or all are missing."""
    if len(found) != len(wanted) or not wanted:
        raise tools.ToolError(f"simulation: {len(found)} of {len(wanted)} results")
    for k, (x, y) in enumerate(zip(found, wanted, strict=True)):
        if x != y:
            raise tools.ToolError(f"simulation: {what} {k} is wrong")
    return len(wanted)


@dataclass(frozen=True)
class BuiltEngine(ABC):
    """A coprocessor around a design fitted to a modulus; abstract.

    ``given``: settings that the user gave. ``bits``: length of a scalar or an exponent. ``threads``: number of
    interleaved runs; 0: as many as keep the multiplier busy or fit the memory. ``word``: bits of a stream word, 16 to
    64. ``io``: form of the multiplier; numbers have this form at the engine's ports too. ``top``: name of the first
    Verilog module. ``cores``: number of machines; several are placed behind a router, and messages are sent in packets
    (`engines/machine/cluster.py`). ``bus``: name of a bus, behind which the engine is written too; empty: none.
    ``bus_clock``: of `CLOCKS`, the engine's clock there. ``key_slots``: number of key slots in the front of the bus
    (`buses/slots.py`). ``lockstep``: the engine stands there twice, and its words are
    compared before they leave (`engines/machine/lockstep.py`). ``check_result``: programs have checks of their results,
    and no result leaves unless they are right (`engines/ecc/result_checks.py`; of powers `exponentiation.checked`).
    ``parity``: words of the memories of numbers, programs and digits have a bit of parity, checked when they are used.
    ``fixed_addresses``: programs read all entries of a table and select one, so that no address depends on a digit.
    ``random_blind``: bits of the random number with which the engine blinds each secret scalar or exponent, from its
    port for random words; 0: none, and no port. ``random_entropy``: least entropy of such a word in bits, for its
    health tests.
    ``stored``: Verilog read from a folder, used in place of emitted Verilog; ``stored_digest``: that of its netlist.
    Raises UnsupportedError for a form that the design does not have, an unknown bus, an engine that no bus front takes,
    and numbers of the port out of range.
    """

    design: str
    fitted: DesignInstance
    given: Mapping[str, Any] = field(default_factory=dict)
    bits: int = 0
    threads: int = 0
    word: int = 32
    io: str = "native"
    top: str = "engine"
    cores: int = 1
    bus: str = ""
    bus_clock: str = SAME
    key_slots: int = 0
    lockstep: bool = False
    check_result: bool = False
    parity: bool = False
    fixed_addresses: bool = False
    random_blind: int = 0
    random_entropy: int = RANDOM_WORD
    stored: str = field(default="", repr=False, compare=False)
    stored_digest: str = field(default="", repr=False, compare=False)

    STEM: ClassVar[str]
    """Stem of its file names."""
    KIND: ClassVar[str]
    """Kind of device behind a bus."""
    BLINDED: ClassVar[str]
    """What `random_blind` is of, in a message."""

    def __post_init__(self) -> None:
        forms = self.fitted.engine_forms
        if self.io not in forms:
            raise UnsupportedError(f"an engine around {self.design} takes --io {' or '.join(forms)}, not {self.io}")
        if self.fitted.alarm and not self.numbered:
            raise UnsupportedError(
                f"an engine around {self.design} with check=true must keep its numbers in a slot machine: take "
                "check=false, or io native and rowers=0"
            )
        if self.parity and self.numbered:
            raise UnsupportedError(
                f"an engine around {self.design} keeps its numbers in a slot machine, which has no parity: omit "
                "--parity, or take --lockstep or, of kbe and hbe, --set check=true"
            )
        if self.fixed_addresses and self.numbered:
            raise UnsupportedError(
                f"an engine around {self.design} has its numbers in a slot machine, whose addresses depend on digits: "
                "omit --fixed-addresses, or take a design with binary numbers, such as montgomery-array"
            )
        HealthTests(self.random_entropy)
        if self.random_blind not in BLIND:
            raise UnsupportedError(f"{self.BLINDED} has {BLIND[0]} to {BLIND[-1]} bits, not {self.random_blind}")
        is_separate(self.bus_clock, self.bus)
        check_slots(self.key_slots, find_bus(self.bus) if self.bus else None)
        if self.bus:
            find_bus(self.bus)
            if self.word != WORD:
                raise UnsupportedError(f"a bus front takes an engine with words of {WORD} bits, not {self.word}")

    @cached_property
    def contract(self) -> Contract:
        """The multiplier's contract."""
        return self.fitted.contract(self.io)

    def choose(self, choice: int) -> Self:
        """The same engine with other bases loaded, as in `DesignInstance.choose`: for its messages and answers."""
        if choice == self.fitted.choice:
            return self
        return replace(self, fitted=self.fitted.choose(choice), stored=self.verilog, stored_digest=self.digest)

    def answered(self, job: Message, words: Sequence[int]) -> list[tuple[int, ...]]:
        """The results of each run of a job, from the words at ``o``."""
        return self.choose(job.choice).layout.results(job.program, words, job.p)

    def contract_at(self, fitted: DesignInstance) -> Contract:
        """The contract while this modulus is loaded, with stream k in the order that the engine's machine takes."""
        return fitted.slot_contract(self.layout.used) if self.numbered else fitted.contract(self.io)

    @property
    @abstractmethod
    def numbered(self) -> bool:
        """Whether numbers stay in the design's own slot machine, instead of a slot memory beside the multiplier."""

    @property
    def _sums(self) -> tuple[int, bool]:
        """Maximum number of sums in an instruction, and whether they can have a conditional subtraction."""
        return 0, False

    @property
    def _adders(self) -> bool:
        """Whether the sums can be others than selections."""
        return True

    @cached_property
    def timing(self) -> MachineTiming | SlotTiming:
        """Timing with the shortest issue slot that the multiplier or slot machine allows."""
        if self.numbered:
            machine = self.fitted.slot_machine(1)
            return SlotTiming(self.contract, machine.interval, machine.distance)
        core: Multiplier = self.fitted.core(self.io)
        sums, conditional_subtracts = self._sums
        return MachineTiming(
            self.contract, sums, *acceptance(core), conditional_subtracts, starts=self.fitted.starts,
            parity=self.parity, adders=self._adders,
        )  # fmt: skip

    @property
    @abstractmethod
    def layout(self) -> MicrocodeLayout:
        """Slots, program table and messages.

        Raises UnsupportedError if the programs do not fit the multiplier or the memories.
        """

    @property
    def blinding(self) -> Blinding | None:
        """What the engine does to secret scalars with random words from its port; None without one."""
        return None

    @property
    def results(self) -> int:
        """Number of runs in one job."""
        return self.layout.threads

    @property
    def coprocessor(self) -> wiring.Component:
        """A new coprocessor around a new multiplier or slot machine."""
        layout = self.layout
        if self.numbered:
            made = Coprocessor(SlotSequencer(self.fitted.slot_machine(layout.used), layout))
        else:
            made = Coprocessor(DatapathSequencer(self.fitted.core(self.io), layout))
        return BlindedCoprocessor(made, self.blinding, self.commands[0].words) if self.blinding else made

    @cached_property
    def _sample(self) -> Coprocessor:
        """A coprocessor that is queried for cycles and never emitted."""
        sample: Coprocessor = self.coprocessor
        return sample

    @property
    def multiplier(self) -> Multiplier:
        """The multiplier of a machine, which is queried and never emitted."""
        made: Multiplier = self._sample.core
        return made

    @property
    def patience(self) -> int:
        """Timeout of a simulation: maximum cycles without a word, more than twice those of the longest job, and longer
        than random words are awaited."""
        programs, made = range(len(self.layout.programs)), self.blinding
        before = 2 * max(made.cycles(k, self.layout) for k in programs) + 2 * WAIT if made else 0
        return 2 * max(map(self._sample.cycles, programs)) + 1000 + before

    @cached_property
    def _netlist(self) -> str:
        source = find_design(self.design).source.part
        machine = lambda name: emit.netlist(self.coprocessor, name, source)  # noqa: E731
        random = self.blinding is not None
        own = ALARM if self.check_result or self.parity or self.fitted.alarm or random else ""
        made = partial(assembled, machine, emit.netlist, of=self.packets, power_up=self.contract.power_up, alarm=own,
                       random=random)  # fmt: skip
        if not self.lockstep:
            return made(top=self.top)
        compare = emit.netlist(Lockstep(self.word, bool(own), random), f"{self.top}_lockstep")
        inside = engine_module(self.top)
        return paired(compare, made(top=inside), top=self.top, word=self.word, alarms=bool(own), random=random)

    @cached_property
    def verilog(self) -> str:
        """Verilog-2001 of the machine or machines, module ``top`` first; ``stored`` where it is given."""
        return self.stored or readable(self._netlist)

    @cached_property
    def digest(self) -> str:
        """Digest of the netlist, by which measured rows are found, with the prefix ``sha256:``."""
        return self.stored_digest or emit.netlist_digest(self._netlist)

    @property
    def packets(self) -> Packets:
        """Format of messages to and from the machines."""
        return Packets(self.cores, self.word)

    @property
    def power_up(self) -> int:
        """Minimum cycles of the first reset after power-up, as the multiplier requires; in lockstep of every reset."""
        return self.contract.power_up

    @cached_property
    def _simulator(self) -> WordSimulator:
        return WordSimulator(self.verilog, self.word, top=self.top, power_up=self.power_up)

    def _simulated(
        self, program: int, p: int, setups: Iterable[Sequence[int]], runs: Sequence[_Run],
        job: Callable[[list[_Run]], list[int]],
    ) -> Simulated:  # fmt: skip
        """Simulate runs of a program modulo p after the messages ``setups``; ``job`` gives the words of a job.

        A job has one run for each thread; the last job is filled up with repeated runs. Raises ToolError for a
        violation of the stream protocol and for missing words.
        """
        size, packets = self.results, self.packets
        words, ends = [word for message in setups for word in packets.sent(message)], list[int]()
        for first in range(0, len(runs), size):
            batch = list(runs[first : first + size])
            words += packets.sent(job(batch + batch[:1] * (size - len(batch))), len(ends))
            ends.append(len(words) - 1)
        each = self.layout.answer_words(program)
        whole = each + packets.head
        run = self._simulator.run(words, len(ends) * whole, timeout=self.patience)
        if run.violations:
            raise tools.ToolError(f"simulation: {run.violations[0]}")
        order, found = packets.ordered(run.words, each)
        firsts = dict(zip(order, run.valid[::whole], strict=True))
        return Simulated(
            self.layout.results(program, found, p)[: len(runs)],
            run,
            firsts,
            [firsts[number] - run.accepted[end] for number, end in enumerate(ends)],
        )

    def _tried(self, found: Simulated, wanted: Sequence[tuple[int, ...]], what: str) -> Trial:
        """Evaluate a simulation of two jobs for each machine. Raises ToolError for a wrong result."""
        count = judged(found.results, wanted, what)
        return Trial(count, found.cycles[0], found.firsts[self.cores] - found.firsts[0])

    @property
    @abstractmethod
    def commands(self) -> tuple[Command, ...]:
        """The messages of a machine as a bus front takes them: SETUP, then the jobs by number."""

    @property
    def calls(self) -> Calls | PowerCalls | None:
        """What the calls in C need; None for an engine without them."""
        return None

    @property
    def device(self) -> Device:
        """The engine as a device behind a bus."""
        load, separate = self.contract.load, is_separate(self.bus_clock, self.bus)
        commands = tuple(command.dealt(self.cores) for command in self.commands)
        return Device(
            self.KIND, self.top, self.digest, self.fitted.p.bit_length(), self.layout.number_words,
            self.cores * self.results, commands, self.power_up, self.patience + (load.cycles if load else 0),
            calls=self.calls, zeroise=refilled(self.zeroise, commands, DEPTH if separate else 0),
            selftest=self.selftest, machines=self.cores, separate=separate, alarm=self.alarmed,
            key_slots=self.key_slots, key_setup=self.key_setup if self.key_slots else (),
            random=self.blinding is not None,
        )  # fmt: skip

    @property
    def key_setup(self) -> tuple[int, ...]:
        """The data words of SETUP that all keys belong to; empty if the modulus is loaded, and each key has its own."""
        return () if self.contract.load else tuple(self._first_setup.words[1:])

    @cached_property
    def selftest(self) -> tuple[Sent, ...]:
        """The first SETUP message and, of each program, the last job after it, with its answer: the first jobs whose
        words a front holds, nothing if that is none. Several machines have a job of the first program, which keeps the
        front below 600 LUTs. Nothing for numbers that are not binary, whose words are not known."""
        if not self.layout.binary:
            return ()
        setup, jobs = Sent(0), dict[int, Message]()
        for message in self.messages_for_bus():
            if message.results:
                jobs[message.program] = message
            elif jobs:
                break
            else:
                setup = Sent(message.words[0], tuple(message.words[1:]))
        sent, words = [setup], len(setup.words)
        for _, job in sorted(jobs.items())[: 1 if self.cores > 1 else None]:
            answer = tuple(word for run in job.results for x in run for word in self.layout.number(x))
            head, part = self._parts(job.words)
            words += len(job.words) - 1 + len(answer)
            if words > KNOWN_WORDS:
                break
            sent.append(Sent(head[0], head[1:], part, answer=answer))
        return tuple(sent) if len(sent) > 1 else ()

    def _parts(self, job: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The words of a job that several machines have in common, and those that each has of its own."""
        head = 1 + self.commands[job[0]].head
        return tuple(job[:head]), tuple(job[head:])

    def dealt(self, jobs: Sequence[Sequence[int]]) -> list[int]:
        """The message of a front for a job of each machine; the jobs have the same words in common."""
        head, _ = self._parts(jobs[0])
        return [*head, *(word for job in jobs for word in self._parts(job)[1])]

    @property
    def zeroise(self) -> tuple[Sent, ...]:
        """Messages that overwrite everything that depends on former ones."""
        sample = self._sample
        cycles = lambda program, passes: sample.cycles(program, passes) + self.waits  # noqa: E731
        return tuple(engine_messages(
            self.fitted, self.layout, sample.sequencer, cycles, self.commands,
            self.layout.modulus(self.contract), self.cores, self.blinding,
        ))  # fmt: skip

    @cached_property
    def _first_setup(self) -> Message:
        """The SETUP message of the modulus that the engine is made for."""
        return next(message for message in self.messages() if not message.results)

    def exchanges(self) -> Iterator[Exchange]:
        """SETUP messages and two jobs of each operation after each of them, for a check through the bus. A job for
        several machines has one of `messages_for_bus` for each of them, the last one for all that are left."""
        jobs: dict[int, list[Message]] = {}
        for message in self.messages_for_bus():
            if message.results:
                jobs.setdefault(message.program, []).append(message)
                continue
            yield from self._dealt(jobs)
            jobs = {}
            command, *words = message.words
            yield Exchange(command, words)
        yield from self._dealt(jobs)

    def _dealt(self, jobs: Mapping[int, Sequence[Message]]) -> Iterator[Exchange]:
        """Two jobs of each program, with parts of the same length for each machine."""
        for of in jobs.values():
            heads = dict.fromkeys(self._parts(job.words)[0] for job in of)
            alike = [[job for job in of if self._parts(job.words)[0] == head] for head in heads]
            dealt = [some[k : k + self.cores] for some in alike for k in range(0, len(some), self.cores)]
            for some in dealt[:2]:
                parts = some + some[-1:] * (self.cores - len(some))
                command, *words = self.dealt([job.words for job in parts])
                count = self.layout.answer_words(some[0].program)
                right = partial(self._right, parts, count)
                yield Exchange(command, words, self.cores * count, right, some[0].what, some[0].cycles)

    def _right(self, jobs: Sequence[Message], count: int, words: Sequence[int]) -> bool:
        return all(
            self.answered(job, words[k * count : (k + 1) * count]) == list(job.results) for k, job in enumerate(jobs)
        )

    def messages_for_bus(self) -> Iterable[Message]:
        """The messages of a check through the bus, without the slowest ones."""
        return self.messages()

    @abstractmethod
    def trial(self) -> Trial:
        """Simulate two jobs for each machine. Raises ToolError for a wrong result."""

    @property
    @abstractmethod
    def options(self) -> dict[str, Any]:
        """All options, defaults resolved, in the order of the record."""

    @property
    def protection(self) -> dict[str, bool]:
        """The options that protect the engine and are on."""
        return {name: True for name in PROTECTIONS if getattr(self, name, False)}

    @property
    def from_port(self) -> dict[str, int]:
        """The options of blinding inside; nothing without it."""
        own = {"random_blind": self.random_blind, "random_entropy": self.random_entropy}
        return own if self.random_blind else {}

    @property
    def alarmed(self) -> bool:
        """Whether it has the output `ALARM`."""
        checked = self.check_result or self.parity or self.fitted.alarm
        return self.lockstep or checked or self.blinding is not None

    @property
    def waits(self) -> int:
        """Cycles that lockstep adds to those of every job."""
        return LATENCY if self.lockstep else 0

    @property
    def behind(self) -> dict[str, str | int]:
        """The options of the bus that are not the default."""
        clock = self.bus_clock if self.bus_clock != SAME else ""
        found: dict[str, str | int] = {"bus": self.bus, "bus_clock": clock, "key_slots": self.key_slots}
        return {name: value for name, value in found.items() if value}

    def about(self) -> dict[str, Any]:
        """Description of the engine in a measurement."""
        made = {name: value for name, value in self.options.items() if name not in ("top", *self.behind)}
        return {"design": self.design, "parameters": dict(self.fitted.settings), **made}

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """Content of its JSON file, without command, tools and seal."""

    @abstractmethod
    def page(self, record: Mapping[str, Any]) -> str:
        """README.md: the data sheet for a record."""

    @abstractmethod
    def messages(self) -> Iterable[Message]:
        """Messages of vectors.json, with answers computed by `numbers`."""

    def vectors(self) -> dict[str, Any]:
        """Content of vectors.json: words in and out of each message; of a job also its modulus and results."""
        lay, packets, out, jobs = self.layout, self.packets, list[dict[str, Any]](), 0
        for message in self.messages():
            number, answer, more = None, list[int](), dict[str, Any]()
            if message.results:
                number, jobs = jobs, jobs + 1
                more = {"p": hex(message.p), "answer": [hex(x) for run in message.results for x in run]}
                if lay.binary:
                    answer = [number % self.cores] * packets.head
                    answer += [word for run in message.results for x in run for word in lay.number(x)]
            sent = packets.sent(message.words, number)
            out.append({**message.shown, **more, "in": list(map(hex, sent)), "out": list(map(hex, answer))})
        return {"digest": emit.digest(self.verilog), "messages": out}

    def write(self, folder: str | Path, command: str) -> Path:
        """Write Verilog, record, vectors.json, README.md, and the files for other tools; return the folder.

        Replaces the folder of a former build. Raises ValueError if the folder holds anything else.
        """
        target = Path(folder)
        require_former(target, engine_files.names(self.STEM), (*BESIDE, *listed(target)))
        bus = find_bus(self.bus) if self.bus else None
        measured = rows_of(self.device, bus, self.verilog) if bus else recorded(self.digest)
        written = {
            "command": command, "tools": tools.versions(), "measured": measured, "proved": UNPROVED_ENGINE,
        }  # fmt: skip
        write_folder(target, engine_files.rendered(self, written))
        return target

    @classmethod
    @abstractmethod
    def of_record(cls, record: Mapping[str, Any]) -> Self:
        """Make the engine that a record describes. Raises KeyError, TypeError or ValueError for a malformed record."""

    @classmethod
    def remade(cls, path: str | Path) -> Self:
        """Make the engine that the record of a folder describes; its Verilog is emitted, not read.

        Raises ValueError (UnsupportedError) if the record is missing or malformed.
        """
        file = Path(path) / f"{cls.STEM}.json"
        record = json_object(read_text(file), file)
        try:
            for name in ("stored", "stored_digest"):
                record["options"].pop(name, None)
            return cls.of_record(record)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{file} is malformed: {type(error).__name__} {error}") from None

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read the engine in a folder that ``write`` wrote, with the folder's Verilog.

        Raises ValueError (UnsupportedError) if a file is missing or malformed, or if Verilog or record were edited.
        """
        return cls._with(Path(path), engine_files.stored_verilog)

    @classmethod
    def for_check(cls, path: str | Path) -> Self:
        """Read as `read` does, but accept edited files. Raises ValueError if a file is missing or malformed."""
        return cls._with(Path(path), engine_files.verilog_of)

    @classmethod
    def _with(cls, path: Path, verilog: Callable[[Path, str], str]) -> Self:
        made, file = cls.remade(path), path / f"{cls.STEM}.json"
        netlist = json_object(read_text(file), file).get("netlist")
        return replace(made, stored=verilog(path, cls.STEM), stored_digest=str(netlist))
