# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Elliptic-curve coprocessors around a design."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import Any, Self

from modmill.buses.calls import Calls, Operation
from modmill.buses.device import WORD, Command
from modmill.contract import Binary, Digits, ResiduePair, UnsupportedError
from modmill.cores import engine_files
from modmill.cores.built import BuiltEngine, Message, Simulated, Trial
from modmill.cores.ecc.page import describe, page, restored
from modmill.cores.ecc.samples import jobs
from modmill.design import DesignInstance
from modmill.designs import design as find_design
from modmill.engines.ecc.blinding import Run, scalar_bits
from modmill.engines.ecc.order_engine import order_operations, order_program
from modmill.engines.ecc.point_engine import OPERATIONS, SECRET, Shape, point_program
from modmill.engines.ecc.points import BLIND, PointProgram
from modmill.engines.ecc.recoding import Without
from modmill.engines.machine.layout import MicrocodeLayout
from modmill.engines.machine.timing import SlotTiming, busy_threads, unit
from modmill.engines.microcode.assembly import Assembled, assemble
from modmill.engines.microcode.field_program import Domain
from modmill.engines.microcode.program import DatapathSpec
from modmill.flow.emit import digest
from modmill.numbers.curves.affine import Curve, Montgomery
from modmill.numbers.curves.named import find_curve
from modmill.numbers.curves.text import proved
from modmill.numbers.shown import shortened
from modmill.version import __version__

SUMS = 3
"""Default number of sums in an instruction. More sums make few programs shorter, and they need ports of the memory."""
_DISTANCES = (1, 2, 3, 4, 6, 8)


@dataclass(frozen=True)
class ProgramImage:
    """A program of a coprocessor: operation, field program with its recoding (``made``), instructions, modulus."""

    operation: str
    made: PointProgram
    instructions: Assembled
    modulus: int


@dataclass(frozen=True)
class EccCore(BuiltEngine):
    """A coprocessor for a ``curve``, around a design fitted to the curve's p; made by `ecc`.

    ``operations``: of `OPERATIONS`. ``shape``: windows and combs. ``sums``: maximum number of sums in an instruction.
    ``order``: whether it also has the operations modulo n for the curve's signatures (`order_engine`); SETUP then loads
    n. Other options as in `BuiltEngine`. Raises UnsupportedError for a design that is fitted to another modulus, for an
    unknown operation, and for ``order`` if the curve has no signatures or the design cannot load n.
    """

    top: str = "ecc"
    curve: Curve = field(kw_only=True)
    operations: tuple[str, ...] = ()
    shape: Shape = field(default_factory=Shape)
    sums: int = SUMS
    order: bool = False

    STEM = "ecc"
    KIND = "curve"

    def __post_init__(self) -> None:
        if self.fitted.p != self.curve.p:
            what = f"the modulus of {self.design} must be the p of {self.curve.title}"
            raise UnsupportedError(f"{what}, got {self.fitted.p:#x}")
        super().__post_init__()
        if unknown := [name for name in self.operations if name not in OPERATIONS]:
            known = ", ".join(OPERATIONS)
            raise UnsupportedError(f"an operation must be one of {known}, not {shortened(unknown[0])}")
        if self.order:
            _ = self._loaded

    @property
    def numbered(self) -> bool:
        return isinstance(self.contract.operand, ResiduePair)

    @property
    def _sums(self) -> tuple[int, bool]:
        bound = self.contract.product(Fraction(1), Fraction(1))  # a difference of two of them may exceed the operands
        fits = bound + -(-bound // 1) <= self.contract.operand_bound
        return self.sums, isinstance(self.contract.operand, Binary) and not fits

    @property
    def modulo_order(self) -> tuple[str, ...]:
        """Names of the operations modulo n."""
        return order_operations(self.curve) if self.order else ()

    @property
    def jobs(self) -> tuple[str, ...]:
        """Names of all operations: those on points, then those modulo n."""
        return self.operations + self.modulo_order

    @cached_property
    def _loaded(self) -> DesignInstance:
        """The design with n loaded."""
        title = self.curve.title
        if not order_operations(self.curve):
            raise UnsupportedError(f"Modmill has no signature scheme on {title}, so no arithmetic modulo its order")
        try:
            return self.fitted.at(self.curve.n)
        except UnsupportedError as error:
            raise UnsupportedError(f"no arithmetic modulo the order of {title}: {error}") from None

    def modulus(self, job: str) -> int:
        """The modulus of an operation: n or p."""
        return self.curve.n if job in self.modulo_order else self.curve.p

    @cached_property
    def points(self) -> tuple[PointProgram, ...]:
        """Programs before assembly; those modulo n are last."""
        domain = Domain.of(self.contract, self.timing.added)
        found = [
            point_program(name, self.curve, domain, self.bits, self.shape, check_result=self.check_result)
            for name in self.operations
        ]
        for name in self.modulo_order:
            other = Domain.of(self._loaded.contract(self.io), self.timing.added)
            found.append(PointProgram(name, self.curve.title, order_program(name, other), Without()))
        return tuple(found)

    def unit(self, threads: int) -> DatapathSpec:
        """Specification of the unit for which instructions are assembled."""
        return unit(self.timing, threads)

    @property
    def layout(self) -> MicrocodeLayout:
        return self._made[0]

    @cached_property
    def held(self) -> tuple[ProgramImage, ...]:
        """Assembled programs."""
        return tuple(map(ProgramImage, self.jobs, self.points, self._made[1], map(self.modulus, self.jobs)))

    @cached_property
    def _made(self) -> tuple[MicrocodeLayout, tuple[Assembled, ...]]:
        """Layout and instructions, with the given number of threads. By default with the largest number that fits the
        memories, among those that just keep the multiplier busy for one of `_DISTANCES`."""
        if self.threads:
            return self._layout(self.threads)
        timing = self.timing
        if isinstance(timing, SlotTiming):
            busy = {-(-timing.distance // d) for d in _DISTANCES}
        else:
            busy = {busy_threads(timing, d) for d in _DISTANCES}
        least, *more = sorted(busy | {1})
        for threads in reversed(more):
            with suppress(UnsupportedError):
                return self._layout(threads)
        return self._layout(least)

    def _layout(self, threads: int) -> tuple[MicrocodeLayout, tuple[Assembled, ...]]:
        unit = self.unit(threads)
        contracts = {self.curve.p: self.contract}
        if self.order:
            contracts[self.curve.n] = self._loaded.contract(self.io)
        programs = [made.field_program for made in self.points]
        instructions = tuple(assemble(program, contracts[program.domain.p], unit) for program in programs)
        layout = MicrocodeLayout(tuple(a.program for a in instructions), self.timing, threads, self.word)
        if self.numbered:
            self.fitted.slot_machine(layout.used)  # raises if there are too few slots
        return layout, instructions

    def number(self, operation: str) -> int:
        """Number of an operation's program. Raises UnsupportedError for an operation that the core does not have."""
        if operation not in self.jobs:
            raise UnsupportedError(f"this core has the operations {', '.join(self.jobs)}, not {operation}")
        return self.jobs.index(operation)

    def cycles(self, operation: str) -> int:
        """Cycles from the last word of a job to the first word of its results, the same for all runs."""
        return self._sample.cycles(self.number(operation)) + self.waits

    def setup(self, modulus: int = 0) -> list[int]:
        """Words of SETUP for a modulus, p or n; 0 stands for p."""
        p = modulus or self.curve.p
        programs = {k: held.instructions.program for k, held in enumerate(self.held) if held.modulus == p}
        return self.layout.setup(self.contract_at(self.fitted if p == self.curve.p else self._loaded), programs)

    def job(self, operation: str, runs: Sequence[Run]) -> list[int]:
        """Words of a job with one run for each thread; ``blind`` is 1 by default. Raises UnsupportedError for numbers
        and scalars out of range."""
        number = self.number(operation)
        held = self.held[number]
        given = [{BLIND: 1, **inputs} for _, inputs in runs]
        for inputs in given:
            for name, x in inputs.items():
                if not 0 <= x < held.modulus:
                    kind = "field's prime" if held.modulus == self.curve.p else "order"
                    raise UnsupportedError(f"{name} must be below the {kind} of {held.modulus.bit_length()} bits")
        names = [name for _, name in held.instructions.program.inputs]
        return self.layout.job(
            number,
            [
                (held.made.digits(*scalars), [numbers[name] for name in names])
                for (scalars, _), numbers in zip(runs, given, strict=True)
            ],
        )

    def simulate(self, operation: str, runs: Sequence[Run]) -> Simulated:
        """Simulate any number of runs after SETUP with p; for operations modulo n after SETUP with n, too.

        Raises ToolError for a violation of the stream protocol and for missing words.
        """
        modulus = self.modulus(operation)
        setups = [self.setup(p) for p in dict.fromkeys((self.curve.p, modulus))]
        return self._simulated(self.number(operation), modulus, setups, runs, lambda batch: self.job(operation, batch))

    def trial(self) -> Trial:
        """Simulate two jobs of the first operation for each machine, some runs exceptional."""
        operation = self.operations[0]
        pairs = list(chain(*self.vector_jobs(operation)[: 2 * self.cores]))
        found = self.simulate(operation, [run for run, _ in pairs])
        return self._tried(found, [expected for _, expected in pairs], "result")

    @property
    def options(self) -> dict[str, Any]:
        return {
            "operations": list(self.operations), "bits": self.bits, "shape": asdict(self.shape),
            "threads": self.layout.threads, "sums": self.sums, "word": self.word, "io": self.io, "top": self.top,
            "cores": self.cores, **({"order": True} if self.order else {}),
            **self.behind, **self.protection,
        }  # fmt: skip

    def about(self) -> dict[str, Any]:
        return {"curve": self.curve.title, **super().about()}

    def vector_jobs(self, operation: str) -> list[list[tuple[Run, tuple[int, ...]]]]:
        """Jobs of an operation with expected results: edge cases and random runs (`batches`)."""
        return jobs(self.curve, operation, self.bits, self.layout.threads, self.cores)

    def by_modulus(self) -> Iterator[tuple[Message, list[ProgramImage]]]:
        """Yield the SETUP message for p and that for n, each with the programs that use this modulus."""
        for modulus in dict.fromkeys(held.modulus for held in self.held):
            what = {} if modulus == self.curve.p else {"modulus": "n"}
            message = Message(self.setup(modulus), {"curve": self.curve.title, **what})
            yield message, [held for held in self.held if held.modulus == modulus]

    def message(self, operation: str, pairs: Sequence[tuple[Run, tuple[int, ...]]]) -> Message:
        """A job of an operation; ``pairs``: for each thread its run and the expected results."""
        shown = [
            {"scalars": list(map(hex, scalars)), **{name: hex(x) for name, x in inputs.items()},
             "results": list(map(hex, expected))}
            for (scalars, inputs), expected in pairs
        ]  # fmt: skip
        words, results = self.job(operation, [run for run, _ in pairs]), [expected for _, expected in pairs]
        return Message(
            words, {"operation": operation, "runs": shown}, operation, self.number(operation), self.modulus(operation),
            results, self.cycles(operation),
        )  # fmt: skip

    def messages(self) -> Iterator[Message]:
        for setting, programs in self.by_modulus():
            yield setting
            for held in programs:
                yield from (self.message(held.operation, pairs) for pairs in self.vector_jobs(held.operation))

    @property
    def commands(self) -> tuple[Command, ...]:
        lay = self.layout
        return Command(0, "setup", len(self.setup()) - 1, 0), *(
            Command(
                1 + k, name, lay.threads * (lay.digit_words(k) + len(program.inputs) * lay.number_words),
                lay.answer_words(k), secret=lay.digit_words(k) if name in SECRET else 0,
            ) for k, (name, program) in enumerate(zip(self.jobs, lay.programs, strict=True))
        )  # fmt: skip

    @property
    def key_setup(self) -> tuple[int, ...]:
        return tuple(self.setup()[1:])

    @property
    def calls(self) -> Calls | None:
        lay = self.layout
        if not lay.binary or self.word != WORD:
            return None
        operations = tuple(
            Operation(
                held.operation, 1 + k, held.made.recoding, tuple(name for _, name in program.inputs),
                len(program.results), lay.digit_words(k), held.modulus != self.curve.p,
            ) for k, (held, program) in enumerate(zip(self.held, lay.programs, strict=True))
        )  # fmt: skip
        setups = tuple(tuple(self.setup(p)[1:]) for p in dict.fromkeys(held.modulus for held in self.held))
        return Calls(
            self.curve, self.bits, lay.number_words, self.cores * lay.threads, lay.digit_bits, lay.per_word, operations,
            setups,
        )  # fmt: skip

    def record(self) -> dict[str, Any]:
        lay = self.layout
        return {
            "modmill": __version__,
            "design": self.design,
            "given": dict(self.given),
            "curve": describe(self.curve),
            "options": self.options,
            "modulus": "loaded" if self.contract.load else hex(self.curve.p),
            "power_up_reset": self.power_up,
            "number_words": lay.number_words,
            "digits_in_a_word": lay.per_word,
            "digit_bits": lay.digit_bits,
            "rounds": lay.rounds,
            "cycles_per_instruction": self.timing.issue_cycles,
            "setup_words": len(self.setup()),
            "programs": [self._program(k, held) for k, held in enumerate(self.held)],
            "slots_in_use": lay.used,
            "ports": engine_files.stream_ports(self.word, alarm=self.alarmed),
            "multiplier": self.contract.describe(),
            "digest": digest(self.verilog),
            "netlist": self.digest,
            **engine_files.bus_entry(self),
        }

    def _program(self, number: int, held: ProgramImage) -> dict[str, Any]:
        program = held.instructions.program
        return {
            "command": 1 + number, "operation": held.operation, "instructions": program.instructions,
            "products": program.products, "digits": program.digits, "digit_words": self.layout.digit_words(number),
            "window": program.window, "inputs": [name for _, name in program.inputs],
            "results": list(held.instructions.field_program.results), "cycles": self.cycles(held.operation),
            **({"modulus": "p" if held.modulus == self.curve.p else "n"} if self.order else {}),
        }  # fmt: skip

    def page(self, record: Mapping[str, Any]) -> str:
        return page(record)

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Self:
        options = dict(record["options"])
        options |= {"operations": tuple(options["operations"]), "shape": Shape(**options["shape"])}
        made = ecc(restored(record["curve"]), record["design"], record["given"], **options)
        assert isinstance(made, cls)
        return made


def ecc(
    curve: Curve | str, design: str, settings: Mapping[str, Any] | None = None, *, allow_pairing: bool = False,
    operations: tuple[str, ...] = (), bits: int = 0, io: str = "", **options: Any,
) -> EccCore:  # fmt: skip
    """Make a coprocessor around ``design`` for a curve or its name; ``options`` as in `EccCore`.

    ``operations``: default the curve's first. ``bits``: length of scalars, 0 for that of n (for a ladder, of p).
    ``settings``: where they leave it open, operands get as many bits above p as the sums of the programs need.
    ``io``: default the native form, except for redundant digits, which the unit cannot add. ``allow_pairing``: also
    accept curves of small embedding degree and Weierstrass curves of even cofactor, for arithmetic on multiples of the
    base point only; such a curve is validated first.
    Raises UnsupportedError (ValueError) for an unknown curve, and if the design does not support the curve.
    """
    if isinstance(curve, str):
        found = find_curve(curve, pairing=allow_pairing)
    else:
        found = proved(curve, pairing=True) if allow_pairing else curve
    chosen = find_design(design)
    is_ladder = isinstance(found, Montgomery)
    refusal: UnsupportedError | None = None
    for given in chosen.roomier(found.p, chosen.checked(settings or {})):
        fitted = chosen.fit(found.p, **given)
        made = EccCore(
            design, fitted, given, curve=found, operations=operations or (("ladder",) if is_ladder else ("multiply",)),
            bits=bits or scalar_bits(found),
            io=io or (fitted.binary if isinstance(fitted.representation, Digits) else "native"), **options,
        )  # fmt: skip
        try:
            made.layout  # noqa: B018 - checks that every sum has room
            return made
        except UnsupportedError as error:
            refusal = refusal or error
    assert refusal is not None
    raise refusal


def takes_order(curve: Curve, design: str, settings: Mapping[str, Any], operations: Sequence[str]) -> bool:
    """Whether a coprocessor with these operations can make or verify signatures and can load the curve's order."""
    if not {"multiply-base", "multiply-two"} & set(operations) or not order_operations(curve):
        return False
    try:
        find_design(design).fit(curve.p, **settings).at(curve.n)
    except UnsupportedError:
        return False
    return True


read = EccCore.read
