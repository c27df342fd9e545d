# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Elliptic-curve coprocessors around a design."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
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
from modmill.engines.ecc.blinding import Run, both_orders, on_twist, scalar_bits
from modmill.engines.ecc.order_engine import order_operations, order_program
from modmill.engines.ecc.point_engine import OPERATIONS, SECRET, Shape, point_program
from modmill.engines.ecc.points import BLIND, PointProgram
from modmill.engines.ecc.recoding import Without
from modmill.engines.ecc.serial import serial
from modmill.engines.machine.blinder import Blinding
from modmill.engines.machine.layout import MicrocodeLayout, words_of
from modmill.engines.machine.random_port import HealthTests
from modmill.engines.machine.timing import SlotTiming, busy_threads, unit
from modmill.engines.microcode.assembly import Assembled, assemble
from modmill.engines.microcode.field_program import Domain
from modmill.engines.microcode.program import DatapathSpec, Program
from modmill.engines.ranges import require_range
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
    n. With ``random_blind`` the engine adds a random multiple of the order of so many bits to each secret scalar, and
    draws the random factor of the coordinates, too, if its numbers are binary. Other options as in `BuiltEngine`.
    Raises UnsupportedError for a design that is fitted to another modulus, for an unknown operation, for ``order`` if
    the curve has no signatures or the design cannot load n, and for ``random_blind`` without a secret scalar or if
    ``bits`` are too few for it.
    """

    top: str = "ecc"
    curve: Curve = field(kw_only=True)
    operations: tuple[str, ...] = ()
    shape: Shape = field(default_factory=Shape)
    sums: int = SUMS
    order: bool = False

    STEM = "ecc"
    KIND = "curve"
    BLINDED = "the blinding of a scalar"

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
        self._require_room()

    def _require_room(self) -> None:
        if not self.random_blind:
            return
        if not set(SECRET) & set(self.operations):
            raise UnsupportedError(f"no operation has a secret scalar to blind; those with one are {', '.join(SECRET)}")
        if self.shape.endomorphism and "multiply" in self.operations:
            raise UnsupportedError("the halves of a scalar cannot be blinded: build without --endomorphism")
        if (least := scalar_bits(self.curve, self.random_blind)) > self.bits:
            raise UnsupportedError(
                f"scalars of {self.bits} bits have no room for {self.random_blind} bits of blinding: {least} are needed"
            )

    @property
    def scalar_bits(self) -> int:
        """Bits of the secret scalars in messages: ``bits``, without those for blinding inside."""
        return scalar_bits(self.curve) if self.random_blind else self.bits

    @cached_property
    def blinding(self) -> Blinding | None:
        if not self.random_blind:
            return None
        curve = self.curve
        orders = both_orders(curve) if isinstance(curve, Montgomery) else (curve.n * curve.h,)
        recodings = tuple(serial(held.made.recoding) if held.operation in SECRET else None for held in self.held)
        factor = curve.p.bit_length() - 1 if self._draws else 0
        tests = HealthTests(self.random_entropy)
        return Blinding(self.random_blind, self.scalar_bits, orders, recodings, tests, factor)

    @property
    def _draws(self) -> bool:
        """Whether the engine draws the random factor of coordinates, which it then has before all other numbers."""
        return bool(self.random_blind) and isinstance(self.contract.operand, Binary)

    def drawn(self, number: int) -> tuple[str, ...]:
        """Names of the numbers of a program that the engine draws, so that no message has them."""
        made = self.blinding
        return (BLIND,) if self._draws and made and made.recodings[number] else ()

    def inputs(self, number: int) -> tuple[str, ...]:
        """Names of the numbers of a program in a message, in their order."""
        inputs = self.held[number].instructions.program.inputs
        return tuple(name for _, name in inputs if name not in self.drawn(number))

    def _secret(self, number: int, scalars: Sequence[int], given: Mapping[str, int]) -> list[int]:
        """The words of a thread in front of its numbers."""
        made, lay = self.blinding, self.layout
        if made is None or made.recodings[number] is None:
            return lay.pack(number, self.held[number].made.digits(*scalars))
        (k,) = scalars
        begin = [0] * made.alone(number, lay)
        require_range([k], 1 << made.scalar_bits, f"a scalar of this engine must be in [0, 2^{made.scalar_bits})")
        flag = [int(on_twist(self.curve, given["u"]))] if isinstance(self.curve, Montgomery) else []
        return [*words_of(k, made.scalar_words(self.word), self.word), *flag, *begin]

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
        options = {"check_result": self.check_result, "fixed_addresses": self.fixed_addresses}
        found = [point_program(name, self.curve, domain, self.bits, self.shape, **options) for name in self.operations]
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
        if self._draws:
            instructions = tuple(replace(a, program=_drawn_first(a.program)) for a in instructions)
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
        """Words of a job with one run for each thread; ``blind`` is 1 by default, and unused if the engine draws it.
        Raises UnsupportedError for numbers and scalars out of range."""
        number, lay = self.number(operation), self.layout
        held = self.held[number]
        if len(runs) != lay.threads:
            raise UnsupportedError(f"this coprocessor does {lay.threads} runs at once, not {len(runs)}")
        given = [{BLIND: 1, **inputs} for _, inputs in runs]
        for inputs in given:
            for name, x in inputs.items():
                if not 0 <= x < held.modulus:
                    kind = "field's prime" if held.modulus == self.curve.p else "order"
                    raise UnsupportedError(f"{name} must be below the {kind} of {held.modulus.bit_length()} bits")
        words = [1 + number]
        for (scalars, _), numbers in zip(runs, given, strict=True):
            words += self._secret(number, scalars, numbers)
            words += chain.from_iterable(lay.number(numbers[name]) for name in self.inputs(number))
        return words

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
            **self.behind, **self.protection, **self.from_port,
        }  # fmt: skip

    def about(self) -> dict[str, Any]:
        return {"curve": self.curve.title, **super().about()}

    def vector_jobs(self, operation: str) -> list[list[tuple[Run, tuple[int, ...]]]]:
        """Jobs of an operation with expected results: edge cases and random runs (`batches`)."""
        return jobs(self.curve, operation, self.scalar_bits, self.layout.threads, self.cores)

    def by_modulus(self) -> Iterator[tuple[Message, list[ProgramImage]]]:
        """Yield the SETUP message for p and that for n, each with the programs that use this modulus."""
        for modulus in dict.fromkeys(held.modulus for held in self.held):
            what = {} if modulus == self.curve.p else {"modulus": "n"}
            message = Message(self.setup(modulus), {"curve": self.curve.title, **what})
            yield message, [held for held in self.held if held.modulus == modulus]

    def message(self, operation: str, pairs: Sequence[tuple[Run, tuple[int, ...]]]) -> Message:
        """A job of an operation; ``pairs``: for each thread its run and the expected results."""
        unused = self.drawn(self.number(operation))
        shown = [
            {"scalars": list(map(hex, scalars)), **{name: hex(x) for name, x in inputs.items() if name not in unused},
             "results": list(map(hex, expected))}
            for (scalars, inputs), expected in pairs
        ]  # fmt: skip
        words, results = self.job(operation, [run for run, _ in pairs]), [expected for _, expected in pairs]
        return Message(
            words, {"operation": operation, "runs": shown}, operation, self.number(operation), self.modulus(operation),
            results, self.cycles(operation), self.fitted.choice,
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
                1 + k, name, lay.threads * (self._front_words(k) + self._number_words(k)),
                lay.answer_words(k), secret=self._scalar_words(k) if name in SECRET else 0,
            ) for k, name in enumerate(self.jobs)
        )  # fmt: skip

    def _front_words(self, number: int) -> int:
        """Words of a thread in front of its numbers."""
        made = self.blinding
        return made.extra_words(number, self.layout) if made else self.layout.digit_words(number)

    def _number_words(self, number: int) -> int:
        """Words of the numbers of a thread."""
        made, lay = self.blinding, self.layout
        inputs = len(lay.programs[number].inputs)
        return made.number_words(number, lay) if made else inputs * lay.number_words

    def _scalar_words(self, number: int) -> int:
        """Words of the scalar of a thread, or of its digits."""
        made = self.blinding
        return self._front_words(number) - bool(made and made.recodings[number] and made.flagged)

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
                held.operation, 1 + k, held.made.recoding, self.inputs(k), len(program.results),
                self._scalar_words(k), held.modulus != self.curve.p,
            ) for k, (held, program) in enumerate(zip(self.held, lay.programs, strict=True))
        )  # fmt: skip
        setups = tuple(tuple(self.setup(p)[1:]) for p in dict.fromkeys(held.modulus for held in self.held))
        return Calls(
            self.curve, self.scalar_bits, lay.number_words, self.cores * lay.threads, lay.digit_bits, lay.per_word,
            operations, setups, self.blinding is not None,
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
            "ports": engine_files.stream_ports(self.word, alarm=self.alarmed, random=bool(self.random_blind)),
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
            **self._scalar_entry(number),
            "window": program.window, "inputs": list(self.inputs(number)),
            "results": list(held.instructions.field_program.results), "cycles": self.cycles(held.operation),
            **({"modulus": "p" if held.modulus == self.curve.p else "n"} if self.order else {}),
        }  # fmt: skip

    def _scalar_entry(self, number: int) -> dict[str, Any]:
        """The entry of a program whose scalars are blinded inside: number of words of one, and the numbers that the
        engine draws; nothing of others."""
        made, drawn = self.blinding, list(self.drawn(number))
        words = {"scalar_words": made.scalar_words(self.word)} if made and made.recodings[number] else {}
        return {**words, **({"drawn": drawn} if drawn else {})}

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
            bits=bits or scalar_bits(found, options.get("random_blind", 0)),
            io=io or (fitted.binary if isinstance(fitted.representation, Digits) else "native"), **options,
        )  # fmt: skip
        try:
            made.layout  # noqa: B018 - checks that every sum has room
            return made
        except UnsupportedError as error:
            refusal = refusal or error
    assert refusal is not None
    raise refusal


def _drawn_first(program: Program) -> Program:
    """The program with the random factor of coordinates as its first input, if it has one."""
    return replace(program, inputs=tuple(sorted(program.inputs, key=lambda each: each[1] != BLIND)))


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
