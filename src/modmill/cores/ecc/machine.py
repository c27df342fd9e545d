# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Elliptic-curve coprocessors around a design: made, emitted, simulated, written to a folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from modmill.contract import Binary, Contract, Digits, Refusal, ResiduePair
from modmill.cores import engine_files
from modmill.cores.ecc.page import page, record, restored, vectors
from modmill.cores.ecc.samples import Run, jobs
from modmill.cores.trial import Trial, judged
from modmill.design import Fitted, Multiplier, unused
from modmill.designs import design as find_design
from modmill.engines.ecc.order_engine import order_operations, order_recipe
from modmill.engines.ecc.point_engine import OPERATIONS, Shape, point_programme
from modmill.engines.ecc.points import BLIND, PointProgramme
from modmill.engines.machine.cluster import Packets, assembled
from modmill.engines.machine.layout import RowLayout
from modmill.engines.machine.sequencer import RowSequencer
from modmill.engines.machine.slot_sequencer import NumberedRowSequencer
from modmill.engines.machine.timing import NumberedRhythm, Rhythm, acceptance, busy_contexts
from modmill.engines.machine.top import Coprocessor
from modmill.engines.microcode.assembly import Assembled, assemble
from modmill.engines.microcode.program import Unit
from modmill.engines.microcode.recipe import Domain
from modmill.flow import emit, tools
from modmill.flow.words import WordRun, WordSimulator
from modmill.numbers.curves.affine import Curve, Montgomery
from modmill.numbers.curves.named import find_curve
from modmill.numbers.curves.text import proved
from modmill.numbers.shown import shortened
from modmill.rtl.memory import DEPTHS

STEM = "ecc"
"""Of the names of its files."""
SUMS = 3
"""Sums in a row: more shorten few programmes, and take cycles of the memory's ports."""
_DISTANCES = (1, 2, 3, 4, 6, 8)


@dataclass(frozen=True)
class Held:
    """A programme of a coprocessor: its operation, its digits, its rows, and what they compute modulo."""

    operation: str
    made: PointProgramme
    rows: Assembled
    modulus: int


@dataclass(frozen=True)
class EccCore:
    """A coprocessor for a curve, around a design fitted to the curve's p.

    ``operations``: of `OPERATIONS`, none for the first that the curve has. ``bits``: of scalars, 0 for those of n (of p
    for a ladder). ``shape``: windows and combs. ``contexts``: runs in step, 0 for as many as keep the multiplier busy.
    ``sums``: in a row at most. ``word``: bits of a word of the streams. ``io``: form of the multiplier, none for the
    native one where it can be added. ``cores``: machines side by side behind a router (cluster.py). ``order``: whether
    it has what the curve's signatures need modulo n too, for which SETUP loads n (order_engine.py). ``stored``: the
    Verilog of a folder, which is then simulated as it is; none: it is emitted.
    """

    curve: Curve
    design: str
    fitted: Fitted
    given: Mapping[str, Any] = field(default_factory=dict)
    operations: tuple[str, ...] = ()
    bits: int = 0
    shape: Shape = field(default_factory=Shape)
    contexts: int = 0
    sums: int = SUMS
    word: int = 32
    io: str = ""
    top: str = "ecc"
    cores: int = 1
    order: bool = False
    stored: str = field(default="", repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.fitted.p != self.curve.p:
            raise Refusal(f"{self.design} is fitted to another modulus than that of {self.curve.title}")
        forms = self.fitted.forms
        io = self.io or ("binary" if isinstance(self.fitted.representation, Digits) else "native")
        if io not in forms:
            raise Refusal(f"{self.design} has no {io} form; take --io {' or '.join(forms)}")
        chosen = self.operations or (self._first,)
        for operation in chosen:
            if operation not in OPERATIONS:
                raise Refusal(f"an operation is one of {', '.join(OPERATIONS)}, not {shortened(operation)}")
        if self.order:
            _ = self._loaded
        field_bits = self.curve.p if isinstance(self.curve, Montgomery) else self.curve.n
        for name, value in (("io", io), ("operations", chosen), ("bits", self.bits or field_bits.bit_length())):
            object.__setattr__(self, name, value)

    @property
    def _first(self) -> str:
        return "ladder" if isinstance(self.curve, Montgomery) else "multiply"

    # ---- what it is made of

    @cached_property
    def contract(self) -> Contract:
        """The multiplier's contract."""
        return self.fitted.contract(self.io)

    @property
    def numbered(self) -> bool:
        """Whether numbers stay in the design's own slot machine."""
        return isinstance(self.contract.operand, ResiduePair)

    @cached_property
    def rhythm(self) -> Rhythm | NumberedRhythm:
        """When the field unit does what."""
        if self.numbered:
            machine = unused(self.fitted.slot_machine(1))
            return NumberedRhythm(self.contract, machine.interval, machine.distance)
        core: Multiplier = unused(self.fitted.core(self.io))
        # products of numbers below p: where a difference of two of them is no operand, sums are trimmed
        bound = self.contract.product(Fraction(1), Fraction(1))
        fits = bound + -(-bound // 1) <= self.contract.operand_bound
        trims = isinstance(self.contract.operand, Binary) and not fits
        return Rhythm(self.contract, self.sums, *acceptance(core), trims)

    @property
    def modulo_order(self) -> tuple[str, ...]:
        """What it does modulo n."""
        return order_operations(self.curve) if self.order else ()

    @property
    def jobs(self) -> tuple[str, ...]:
        """All that it does: operations on points, then those modulo n."""
        return self.operations + self.modulo_order

    @cached_property
    def _loaded(self) -> Fitted:
        """The multiplier while n is loaded."""
        if not order_operations(self.curve):
            raise Refusal(f"no signature here is made on {self.curve.title}, so that there is nothing modulo its order")
        try:
            return self.fitted.at(self.curve.n)
        except Refusal as error:
            raise Refusal(f"no arithmetic modulo the order of {self.curve.title}: {error}") from None

    def modulus(self, job: str) -> int:
        """What a job computes modulo: n or p."""
        return self.curve.n if job in self.modulo_order else self.curve.p

    @cached_property
    def points(self) -> tuple[PointProgramme, ...]:
        """The programmes before they have rows, those modulo n last."""
        domain = Domain.of(self.contract, self.rhythm.added)
        found = [point_programme(name, self.curve, domain, self.bits, self.shape) for name in self.operations]
        for name in self.modulo_order:
            other = Domain.of(self._loaded.contract(self.io), self.rhythm.added)
            found.append(PointProgramme(name, self.curve.title, order_recipe(name, other), tuple))
        return tuple(found)

    def unit(self, contexts: int) -> Unit:
        """What rows are made for. The memory's room is looked at when they are made."""
        product, sum_ = self.rhythm.distances(contexts)
        beat = self.rhythm
        return Unit(beat.sums, product, sum_, DEPTHS[-1], DEPTHS[-1], added=beat.added, trims=beat.trims)

    @cached_property
    def layout(self) -> RowLayout:
        """Slots, table and messages. Raises Refusal when the programmes do not fit the multiplier or the memories."""
        if self.contexts:
            return self._layout(self.contexts)[0]
        return self._chosen[0]

    @cached_property
    def held(self) -> tuple[Held, ...]:
        """The programmes with their rows."""
        rows = self._layout(self.contexts)[1] if self.contexts else self._chosen[1]
        return tuple(map(Held, self.jobs, self.points, rows, map(self.modulus, self.jobs)))

    @cached_property
    def _chosen(self) -> tuple[RowLayout, tuple[Assembled, ...]]:
        """The fewest contexts that keep the multiplier busy, or as many as the memory has room for."""
        beat = self.rhythm
        busy = (
            {-(-beat.distance // d) for d in _DISTANCES}
            if isinstance(beat, NumberedRhythm)
            else {busy_contexts(beat, d) for d in _DISTANCES}
        )
        found = sorted(busy | {1}, reverse=True)
        for contexts in found:
            try:
                return self._layout(contexts)
            except Refusal:
                if contexts == found[-1]:
                    raise
        raise AssertionError

    def _layout(self, contexts: int) -> tuple[RowLayout, tuple[Assembled, ...]]:
        unit = self.unit(contexts)
        contracts = {self.curve.p: self.contract}
        if self.order:
            contracts[self.curve.n] = self._loaded.contract(self.io)
        rows = tuple(assemble(made.recipe, contracts[made.recipe.domain.p], unit) for made in self.points)
        layout = RowLayout(tuple(a.programme for a in rows), self.rhythm, contexts, self.word)
        if self.numbered:
            unused(self.fitted.slot_machine(layout.used))  # refuses more slots than there are
        return layout, rows

    @property
    def coprocessor(self) -> Coprocessor:
        """A new one around a new multiplier or slot machine."""
        layout = self.layout
        if self.numbered:
            return Coprocessor(NumberedRowSequencer(self.fitted.slot_machine(layout.used), layout))
        return Coprocessor(RowSequencer(self.fitted.core(self.io), layout))

    def number(self, operation: str) -> int:
        """Number of an operation's programme. Raises Refusal when the core does not have it."""
        if operation not in self.jobs:
            raise Refusal(f"this core does {', '.join(self.jobs)}, not {operation}")
        return self.jobs.index(operation)

    def cycles(self, operation: str) -> int:
        """Cycles from the last word of a job to the first word of its results: one number for all runs."""
        machine = unused(self.coprocessor)
        for part in (machine.sequencer, machine.core):
            unused(part)
        return machine.cycles(self.number(operation))

    @cached_property
    def verilog(self) -> str:
        """Verilog-2001 of the coprocessor or coprocessors, module ``top`` first; ``stored`` where it is given."""
        if self.stored:
            return self.stored
        machine = lambda name: emit.verilog(self.coprocessor, name)  # noqa: E731
        return assembled(machine, emit.verilog, self.top, self.packets, self.power_up)

    @property
    def packets(self) -> Packets:
        """How messages reach the machines."""
        return Packets(self.cores, self.word)

    # ---- running

    def contract_at(self, fitted: Fitted) -> Contract:
        """The contract while the multiplier has this modulus loaded, stream k as the core's machine takes it."""
        return fitted.slot_contract(self.layout.used) if self.numbered else fitted.contract(self.io)

    def setup(self, modulus: int = 0) -> list[int]:
        """The words of SETUP for p, the default, or n; where that is loaded they serve any core of these programmes."""
        p = modulus or self.curve.p
        programmes = {k: held.rows.programme for k, held in enumerate(self.held) if held.modulus == p}
        return self.layout.setup(self.contract_at(self.fitted if p == self.curve.p else self._loaded), programmes)

    def job(self, operation: str, runs: Sequence[tuple[tuple[int, ...], Mapping[str, int]]]) -> list[int]:
        """The words of a job: for each context its scalars and its numbers by name (the blind is 1 by default)."""
        number = self.number(operation)
        held = self.held[number]
        given = [{BLIND: 1, **inputs} for _, inputs in runs]
        for inputs in given:
            for name, x in inputs.items():
                if not 0 <= x < held.modulus:
                    kind = "field's prime" if held.modulus == self.curve.p else "order"
                    raise Refusal(f"{name} must be below the {kind} of {held.modulus.bit_length()} bits")
        names = [name for _, name in held.rows.programme.inputs]
        return self.layout.job(
            number,
            [(held.made.digits(*scalars), [numbers[name] for name in names])
             for (scalars, _), numbers in zip(runs, given, strict=True)],
        )  # fmt: skip

    @property
    def power_up(self) -> int:
        """Cycles of the first reset after power-up, at least: those of the multiplier."""
        return self.contract.power_up

    @cached_property
    def _simulator(self) -> WordSimulator:
        return WordSimulator(self.verilog, self.word, top=self.top, power_up=self.power_up)

    def simulate(
        self, operation: str, runs: Sequence[tuple[tuple[int, ...], Mapping[str, int]]], **pauses: float
    ) -> EccSimulated:
        """The results of any number of runs by the RTL, in batches of as many as there are contexts. SETUP loads p, and
        after it n for what is done modulo n.

        ``pauses``: gap and stall, as of a `WordSimulator`. Raises ToolError when the RTL does not do at its ports what
        it should.
        """
        lay, number = self.layout, self.number(operation)
        size = lay.contexts
        packets = self.packets
        words, ends, modulus = packets.sent(self.setup()), [], self.modulus(operation)
        if modulus != self.curve.p:
            words += packets.sent(self.setup(modulus))
        batches = [list(runs[k : k + size]) for k in range(0, len(runs), size)]
        for k, batch in enumerate(batches):
            words += packets.sent(self.job(operation, batch + [batch[0]] * (size - len(batch))), k)
            ends.append(len(words) - 1)
        each = lay.answer_words(number)
        whole = each + packets.head
        patience = 2 * self.cycles(operation) + 1000
        run = self._simulator.run(words, len(batches) * whole, timeout=patience, **pauses)  # type: ignore[arg-type]
        if run.violations:
            raise tools.ToolError(f"simulation: {run.violations[0]}")
        order, found = packets.ordered(run.words, each)
        firsts = dict(zip(order, run.valid[::whole], strict=True))
        return EccSimulated(
            lay.results(number, found, modulus)[: len(runs)], run, firsts,
            [firsts[k] - run.accepted[end] for k, end in enumerate(ends)],
        )  # fmt: skip

    def about(self) -> dict[str, Any]:
        """What a row says of it."""
        return {
            "curve": self.curve.title, "design": self.design, "parameters": dict(self.fitted.settings),
            "operations": list(self.operations), "bits": self.bits, "shape": asdict(self.shape),
            "contexts": self.layout.contexts, "sums": self.sums, "word": self.word, "io": self.io, "cores": self.cores,
            **({"order": True} if self.order else {}),
        }  # fmt: skip

    def trial(self, operation: str) -> Trial:
        """Two jobs for each machine, exceptional runs among them. Raises ToolError when a result is wrong."""
        pairs = list(chain(*self.vector_jobs(operation)[: 2 * self.cores]))
        found = self.simulate(operation, [run for run, _ in pairs])
        count = judged(found.results, [expected for _, expected in pairs], "result")
        return Trial(count, found.cycles[0], found.firsts[self.cores] - found.firsts[0])

    # ---- writing

    def vector_jobs(self, operation: str) -> list[list[tuple[Run, tuple[int, ...]]]]:
        """Jobs of an operation with what they must give: edges and random runs, no answer twice in a row."""
        return jobs(self.curve, operation, self.bits, self.layout.contexts, self.cores)

    def page(self, record: Mapping[str, Any]) -> str:
        """README.md."""
        return page(record)

    def record(self) -> dict[str, Any]:
        """ecc.json."""
        return record(self)

    def vectors(self) -> dict[str, Any]:
        """Words in and out for a job of each programme, from the arithmetic of `numbers`."""
        return vectors(self)

    def write(self, folder: str | Path, command: str) -> Path:
        """Write ecc.v, ecc.json, vectors.json and README.md; return the folder.

        A folder of a former build is replaced. Raises ValueError when the folder holds anything else.
        """
        return engine_files.write(folder, STEM, self, command)


@dataclass(frozen=True)
class EccSimulated:
    """Results of each run from the RTL, the simulation, for each batch the cycle of its first word out, and the cycles
    from its last word in until then."""

    results: list[tuple[int, ...]]
    run: WordRun
    firsts: dict[int, int]
    cycles: list[int]


def ecc(
    curve: Curve | str, design: str, settings: Mapping[str, Any] | None = None, *, allow_pairing: bool = False,
    **options: Any,
) -> EccCore:  # fmt: skip
    """A coprocessor around ``design`` for a curve, given by itself or by name; ``options`` as of `EccCore`.

    ``allow_pairing``: also for curves of small embedding degree and Weierstrass curves of even cofactor, for arithmetic
    on multiples of the base point alone; such a curve is validated first.
    Raises Refusal (ValueError) when there is no such curve, or the design cannot serve it.
    """
    found = find_curve(curve, pairing=allow_pairing) if isinstance(curve, str) else curve
    if allow_pairing and not isinstance(curve, str):
        found = proved(found, pairing=True)
    chosen = find_design(design)
    given = chosen.checked(settings or {})
    return EccCore(found, design, chosen.fit(found.p, **given), given, **options)


def takes_order(curve: Curve, design: str, settings: Mapping[str, Any], operations: Sequence[str]) -> bool:
    """Whether a coprocessor for signatures, by what it does, can have the curve's order loaded."""
    if not {"multiply-base", "multiply-two"} & set(operations) or not order_operations(curve):
        return False
    try:
        find_design(design).fit(curve.p, **settings).at(curve.n)
    except Refusal:
        return False
    return True


def read(path: str | Path) -> EccCore:
    """The coprocessor in a folder that ``write`` wrote: it simulates the Verilog that lies there.

    Raises ValueError (Refusal) when a file is missing or malformed, and when Verilog or ecc.json were edited.
    """
    made = remade(path)
    return replace(made, stored=engine_files.stored_verilog(Path(path), STEM))


def remade(path: str | Path) -> EccCore:
    """The coprocessor that ecc.json of a folder asks for, which need not be the one that lies there.

    Raises ValueError (Refusal) when ecc.json is missing or malformed.
    """
    place = Path(path) / "ecc.json"
    try:
        record = json.loads(place.read_text(encoding="utf-8"))
        options = dict(record["options"])
        options |= {"operations": tuple(options["operations"]), "shape": Shape(**options["shape"])}
        options.pop("stored", None)
        return ecc(restored(record["curve"]), record["design"], record["given"], **options)
    except FileNotFoundError:
        raise ValueError(f"{place} is missing") from None
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{place} is malformed: {type(error).__name__} {error}") from None
