# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Exponentiation engines around a design: made, emitted, simulated, written to a folder."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from modmill.contract import Binary, Contract, Refusal
from modmill.cores import engine_files
from modmill.cores.batches import batches
from modmill.cores.rsa.page import page
from modmill.cores.trial import Trial, judged
from modmill.design import Fitted, Multiplier, unused
from modmill.designs import design as find_design
from modmill.engines.machine.cluster import Packets, assembled
from modmill.engines.machine.layout import DIGIT_WORDS
from modmill.engines.machine.sequencer import RowSequencer
from modmill.engines.machine.slot_sequencer import NumberedRowSequencer
from modmill.engines.machine.timing import NumberedRhythm, Rhythm, acceptance, busy_contexts
from modmill.engines.machine.top import Coprocessor
from modmill.engines.rsa.exponentiation import Exponentiation, Programme, fixed_window, ladder, left_to_right
from modmill.engines.rsa.layout import PowerLayout, power_layout
from modmill.flow import emit, tools
from modmill.flow.emit import digest
from modmill.flow.words import WordRun, WordSimulator
from modmill.numbers.primes import prev_prime
from modmill.numbers.shown import shortened
from modmill.rtl.memory import DEPTHS
from modmill.version import __version__

METHODS = ("window", "ladder")
PUBLIC = 65537
SHORT = 48
"""Bits of the exponents of most messages of vectors and checks."""
STEM = "engine"
"""Of the names of its files."""


def uniform(method: str, window: int, converted: bool) -> Programme:
    """The programme for secret exponents. Raises Refusal for an unknown one."""
    if method not in METHODS:
        raise Refusal(f"the method must be one of {', '.join(METHODS)}, not {shortened(method)}")
    return ladder(converted) if method == "ladder" else fixed_window(window, converted)


@dataclass(frozen=True)
class EngineCore:
    """A coprocessor for powers modulo a modulus, around a design fitted to it.

    Programme 0 is for secret exponents of up to ``bits`` bits, programme 1 raises to 65537. ``contexts``: powers in
    step, 0 for as many as keep the multiplier busy or as the memory has room for. ``word``: bits of a word of the
    streams. ``io``: the form of the multiplier; numbers are at the engine's ports as they are at its. ``native``:
    numbers stay in the design's own slot machine, where it has one for that form; else they go between a slot memory
    and the multiplier. ``cores``: machines side by side behind a router, whose packets then go round the messages
    (cluster.py). ``stored``: the Verilog of a folder, which is then simulated as it is; none: it is emitted.
    """

    design: str
    fitted: Fitted
    given: Mapping[str, Any] = field(default_factory=dict)
    bits: int = 0
    method: str = "window"
    window: int = 5
    contexts: int = 0
    word: int = 32
    io: str = "native"
    top: str = "engine"
    native: bool = True
    cores: int = 1
    stored: str = field(default="", repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.io not in self.fitted.forms:
            raise Refusal(f"{self.design} has no {self.io} form; take --io {' or '.join(self.fitted.forms)}")
        if self.native:
            try:
                unused(self.fitted.slot_machine(1))
            except Refusal:
                object.__setattr__(self, "native", False)
        if self.io != "native":
            object.__setattr__(self, "native", False)

    @cached_property
    def contract(self) -> Contract:
        """The multiplier's contract."""
        return self.fitted.contract(self.io)

    @cached_property
    def rhythm(self) -> Rhythm | NumberedRhythm:
        """When the multiplier or slot machine does what, at its shortest turns."""
        if self.native:
            machine = unused(self.fitted.slot_machine(1))
            return NumberedRhythm(self.contract, machine.interval, machine.distance)
        core: Multiplier = unused(self.fitted.core(self.io))
        return Rhythm(self.contract, 0, *acceptance(core))

    @cached_property
    def layout(self) -> PowerLayout:
        """Slots, table and messages. Raises Refusal when the programmes do not fit the multiplier or the memory."""
        contract, beat = self.contract, self.rhythm
        others = [x.contract(self.io) for x in self.fitted.others()]
        converted = any(c.factor % c.p != 1 for c in (contract, *others))  # R may be 1 for the modulus made for alone
        bits = self.bits or contract.p.bit_length()
        programmes = (
            (uniform(self.method, self.window, converted), bits),
            (left_to_right(PUBLIC, converted=converted), PUBLIC.bit_length()),
        )
        powers = tuple(Exponentiation(programme, contract, length) for programme, length in programmes)
        least = others if isinstance(contract.operand, Binary) else []
        spare = max((Exponentiation(p, c, n).subtractions for p, n in programmes for c in least), default=0)
        contexts = self.contexts
        if not contexts:
            one = power_layout(powers, beat, 1, self.word, spare)
            room = min((DEPTHS[-1] - one.constants) // one.slots, DIGIT_WORDS // one.stride)
            contexts = min(beat.distance if isinstance(beat, NumberedRhythm) else busy_contexts(beat), room)
        layout = power_layout(powers, beat, contexts, self.word, spare)
        if self.native:
            unused(self.fitted.slot_machine(layout.used))  # refuses more slots than there are
        return layout

    @property
    def coprocessor(self) -> Coprocessor:
        """A new one around a new multiplier or slot machine."""
        layout = self.layout
        if self.native:
            return Coprocessor(NumberedRowSequencer(self.fitted.slot_machine(layout.used), layout))
        return Coprocessor(RowSequencer(self.fitted.core(self.io), layout))

    def cycles(self, programme: int, bits: int = 0) -> int:
        """Cycles from the last word of a job to the first word of its powers; ``bits``: of the exponents."""
        bits = bits or self.layout.powers[programme].bits
        return self._sample.cycles(programme, self.layout.passes(programme, bits))

    @cached_property
    def _sample(self) -> Coprocessor:
        """One for what it says of itself."""
        machine: Coprocessor = unused(self.coprocessor)
        for part in (machine.sequencer, machine.core):
            unused(part)
        return machine

    @cached_property
    def verilog(self) -> str:
        """Verilog-2001 of the machine or machines, module ``top`` first; ``stored`` where it is given."""
        if self.stored:
            return self.stored
        machine = lambda name: emit.verilog(self.coprocessor, name)  # noqa: E731
        return assembled(machine, emit.verilog, self.top, self.packets, self.power_up)

    @property
    def power_up(self) -> int:
        """Cycles of the first reset after power-up, at least: those of the multiplier."""
        return self.contract.power_up

    @cached_property
    def _simulator(self) -> WordSimulator:
        return WordSimulator(self.verilog, self.word, top=self.top, power_up=self.power_up)

    def at(self, p: int) -> Fitted:
        """The multiplier while ``p`` is loaded. Raises Refusal when it cannot be."""
        return self.fitted if p == self.fitted.p else self.fitted.at(p)

    def setup(self, fitted: Fitted) -> list[int]:
        """The message that sets a modulus. Raises Refusal when the programmes could overflow with it."""
        lay = self.layout
        return lay.setup(fitted.slot_contract(lay.used) if self.native else fitted.contract(self.io))

    def simulate(self, fitted: Fitted, programme: int, pairs: Sequence[tuple[int, int]], bits: int = 0) -> Simulated:
        """The powers of any number of (base, exponent) by the RTL, in batches of as many as there are contexts.

        Raises ToolError when the RTL does not do what it should at its ports.
        """
        lay = self.layout
        words = self.sent(self.setup(fitted))
        size = lay.contexts
        batches = [list(pairs[k : k + size]) for k in range(0, len(pairs), size)]
        filler = 1, PUBLIC if programme else 0
        ends = []
        for number, batch in enumerate(batches):
            job = lay.power_job(programme, batch + [filler] * (size - len(batch)), bits)
            words += self.sent(job, number)
            ends.append(len(words) - 1)
        patience = 2 * self.cycles(programme, bits) + 1000
        run = self._simulator.run(words, len(batches) * self.answer, timeout=patience)
        if run.violations:
            raise tools.ToolError(f"simulation: {run.violations[0]}")
        order, found = self.ordered(run.words)
        firsts = dict(zip(order, run.valid[:: self.answer], strict=True))
        return Simulated(
            lay.numbers(found, fitted.p)[: len(pairs)], run,
            [firsts[number] - run.accepted[end] for number, end in enumerate(ends)],
        )  # fmt: skip

    @property
    def results(self) -> int:
        """Powers of one answer."""
        return self.layout.contexts

    def trial(self) -> Trial:
        """Two jobs with exponents of full length for each machine. Raises ToolError when a power is wrong."""
        p, bits = self.fitted.p, self.layout.powers[0].bits
        rnd = random.Random(1)
        pairs = [(rnd.randrange(p), rnd.getrandbits(bits)) for _ in range(2 * self.cores * self.results)]
        found = self.simulate(self.fitted, 0, pairs)
        count = judged(found.powers, [pow(base, exponent, p) for base, exponent in pairs], "power")
        firsts = [found.run.valid[k * self.answer] for k in range(2 * self.cores)]
        order, _ = self.ordered(found.run.words)
        first, second = (firsts[order.index(number)] for number in (0, self.cores))
        return Trial(count, found.cycles[0], second - first)

    @property
    def answer(self) -> int:
        """Words of the answer to a job, with its packet's head."""
        return self.layout.answer_words(0) + (self.cores > 1)

    @property
    def packets(self) -> Packets:
        """How messages reach the machines."""
        return Packets(self.cores, self.word)

    def sent(self, words: Sequence[int], number: int | None = None) -> list[int]:
        """A message as it goes into the stream: that of job ``number``, None for all machines."""
        return self.packets.sent(words, number)

    def ordered(self, words: Sequence[int]) -> tuple[list[int], list[int]]:
        """As `Packets.ordered`."""
        return self.packets.ordered(words, self.answer - self.packets.head)

    @property
    def options(self) -> dict[str, Any]:
        """What it was made with, every choice made; not the name of its module."""
        lay = self.layout
        return {
            "bits": lay.powers[0].bits, "method": self.method, "window": self.window, "contexts": lay.contexts,
            "word": lay.word, "io": self.io, "native": self.native, "cores": self.cores,
        }  # fmt: skip

    def about(self) -> dict[str, Any]:
        """What a row says of it."""
        return {
            "design": self.design, "parameters": dict(self.fitted.settings), "modulus_bits": self.fitted.p.bit_length(),
            "modulus": "loaded" if self.fitted.load else hex(self.fitted.p), **self.options,
        }  # fmt: skip

    def record(self) -> dict[str, Any]:
        """engine.json."""
        lay, contract = self.layout, self.contract
        return {
            "modmill": __version__,
            "design": self.design,
            "given": dict(self.given),
            "options": self.options | {"top": self.top},
            "made_for": hex(self.fitted.p),
            "parameters": dict(self.fitted.settings),
            "modulus": "loaded" if contract.load else hex(contract.p),
            "modulus_bits": contract.p.bit_length(),
            "power_up_reset": self.power_up,
            "number_words": lay.number_words,
            "number": contract.operand.describe(),
            "setup": {
                "modulus_words": lay.number_words * max(1, lay.rounds) if contract.load else 0,
                "key_words": len(contract.load.words) * lay.key_words if contract.load else 0,
                "numbers": list(lay.numbers_of_modulus),
            },
            "subtractions": lay.subtractions,
            "rounds": lay.rounds,
            "digits_in_a_word": lay.per_word,
            "digit_bits": lay.digit_bits,
            "cycles_of_a_row": lay.rhythm.turn,
            "slots_in_use": lay.used,
            "ports": engine_files.stream_ports(lay.word),
            "programmes": [
                {
                    "command": 1 + k, "name": e.programme.name, "exponent_bits": e.bits, "products": e.products,
                    "digits": rows.digits, "digit_words": lay.digit_words(k), "passes": rows.passes, "rows": rows.rows,
                    "cycles": self.cycles(k),
                } for k, (e, rows) in enumerate(zip(lay.powers, lay.programmes, strict=True))
            ],
            "multiplier": contract.describe(),
            "digest": digest(self.verilog),
        }  # fmt: skip

    def vector_jobs(self, *, full: bool = True) -> Iterator[tuple[int, int, list[tuple[int, int]]]]:
        """Jobs as (programme, bits of the exponents, pairs of base and exponent): one of full length, with ``full``,
        then edges and random ones with short exponents and with 65537. No answer comes twice in a row."""
        p, longest = self.fitted.p, self.layout.powers[0].bits
        rnd = random.Random(1)

        def jobs(bits: int, edges: list[tuple[int, int]], exponent: int = 0) -> list[list[tuple[int, int]]]:
            return list(batches(
                edges, lambda: (rnd.randrange(p), exponent or rnd.getrandbits(bits)), lambda pair: pow(*pair, p),
                lambda power: power in (0, 1, p - 1), self.results, self.cores,
            ))  # fmt: skip

        short = min(SHORT, longest)
        ones = (1 << short) - 1
        if full and longest > short:
            yield 0, longest, jobs(longest, [])[0]
        edges = [(p - 1, ones), (0, 0), (1, ones), (p - 1, 1), (2 % p, 0), (0, 1)]
        yield from ((0, short, job) for job in jobs(short, edges))
        public = [(base, PUBLIC) for base in (0, 1, p - 1)]
        yield from ((1, PUBLIC.bit_length(), job) for job in jobs(0, public, PUBLIC))

    def vectors(self) -> dict[str, Any]:
        """Words in and out for edges and random powers, from Python's integers."""
        lay, p = self.layout, self.fitted.p
        out: list[dict[str, Any]] = [
            {"modulus": hex(p), "in": [hex(w) for w in self.sent(self.setup(self.fitted))], "out": []}
        ]
        for k, (programme, bits, pairs) in enumerate(self.vector_jobs()):
            powers = [pow(base, exponent, p) for base, exponent in pairs]
            head = (k % self.cores,) if self.cores > 1 else ()
            out.append({
                "exponent_bits": bits,
                "powers": [[hex(b), hex(e), hex(r)] for (b, e), r in zip(pairs, powers, strict=True)],
                "in": [hex(w) for w in self.sent(lay.power_job(programme, pairs, bits), k)],
                "out": [hex(w) for w in (*head, *(w for r in powers for w in lay.number(r)))] if lay.binary else [],
            })  # fmt: skip
        return {"digest": digest(self.verilog), "messages": out}

    def page(self, record: Mapping[str, Any]) -> str:
        """README.md."""
        return page(record)

    def write(self, folder: str | Path, command: str) -> Path:
        """Write engine.v, engine.json, vectors.json and README.md; return the folder.

        A folder of a former build is replaced. Raises ValueError when the folder holds anything else.
        """
        return engine_files.write(folder, STEM, self, command)


@dataclass(frozen=True)
class Simulated:
    """Powers from the RTL, the run, and for each batch the cycles from its last word in to its first word out."""

    powers: list[int]
    run: WordRun
    cycles: list[int]


def engine(
    design: str, p: int = 0, width: int = 0, settings: Mapping[str, Any] | None = None, **options: Any
) -> EngineCore:
    """An engine around ``design`` for the modulus ``p``, or for any of ``width`` bits where the design can load one.

    Raises Refusal when the design cannot serve it.
    """
    chosen = find_design(design)
    given = chosen.checked(settings or {})
    if any(s.name == "loadable" for s in chosen.settings) and "loadable" not in given and not p:
        given["loadable"] = True
    fitted = chosen.fit(p or prev_prime(1 << width), **given)
    if not p and fitted.load is None:
        raise Refusal(
            f"{design} has its modulus built in: give the key that the engine is for, or take a design that loads it"
        )
    return EngineCore(design, fitted, given, **options)


def read(path: str | Path) -> EngineCore:
    """The engine in a folder that ``write`` wrote: it simulates the Verilog that lies there.

    Raises ValueError (Refusal) when a file is missing or malformed, and when Verilog or engine.json were edited.
    """
    made = remade(path)
    return replace(made, stored=engine_files.stored_verilog(Path(path), STEM))


def remade(path: str | Path) -> EngineCore:
    """The engine that engine.json of a folder asks for, which need not be the one that lies there.

    Raises ValueError (Refusal) when engine.json is missing or malformed.
    """
    place = Path(path) / "engine.json"
    try:
        record = json.loads(place.read_text(encoding="utf-8"))
        chosen = find_design(record["design"])
        fitted = chosen.fit(int(record["made_for"], 16), **chosen.checked(record["given"]))
        options = {key: value for key, value in record["options"].items() if key != "stored"}
        return EngineCore(record["design"], fitted, record["given"], **options)
    except FileNotFoundError:
        raise ValueError(f"{place} is missing") from None
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{place} is malformed: {type(error).__name__} {error}") from None
