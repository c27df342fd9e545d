# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Layout of a coprocessor: slot memory, program table, digits, and the messages at its ports.

Slot memory, from address 0: the slots of thread 0, those of thread 1, and so on; the constants of all programs; the
multiples of p that differences add, 0 first.

The program table has one entry for each task of all programs, in order: the product of an instruction (an inactive
entry if there is none), then its sums. An entry gives each operand address as a number and a base to add to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from modmill.contract import Binary, Contract, Residues, UnsupportedError
from modmill.engines.machine.timing import MachineTiming, SlotTiming, unit
from modmill.engines.microcode.hazards import check_tasks
from modmill.engines.microcode.program import ENTRY, PAIR, Instruction, OperandAddress, Program, Task
from modmill.rtl.memory import DEPTHS

SETUP = 0
"""Command word of the message that sets the modulus and the constants; command 1 + k runs program k."""
PACK = 16
"""Maximum bits of digits in a word."""
COUNT_BITS = 16
"""Bits of the number of passes of a loop."""
DIGIT_WORDS = 16 * DEPTHS[-1]
"""Maximum words of digits of all threads."""
OWN, OWN_ENTRY, UP, DOWN, SHARED, SHARED_ENTRY = range(6)
"""Base that is added to the number of an operand: first slot of the thread; the same plus the digit; the same plus or
minus 1 if the digit is odd; first constant; the same plus the digit."""
FIELDS = ("destination", "a", "b")
"""Operands of an entry."""
ADDED = ("c", "e")
"""Operands of an entry in units that add two products, besides `FIELDS`."""


def digits_in_word(bits: int) -> int:
    """Digits of ``bits`` bits in a word, a power of two."""
    return 1 << (max(1, PACK // bits).bit_length() - 1)


def words_of(number: int, count: int, word: int) -> list[int]:
    """A number as ``count`` words of ``word`` bits, the least significant first."""
    return [number >> (word * k) & ((1 << word) - 1) for k in range(count)]


@dataclass(frozen=True)
class Entry:
    """An entry of the program table, one task.

    ``addresses``: for each of the layout's fields the number and the base that is added to it. ``active``: there is a
    product; ``two``: it is a sum of two products. ``invert``: a difference. ``lift``: index of its offset multiple in
    ``offset_multiples``. ``trim``: 1 + index of the multiple in ``conditional_subtracts``, 0 for no conditional
    subtraction. ``select``: 1 + the bit of a selection, 0 for none. In the first entry of an instruction: ``count``:
    number of its entries; ``advance``: as in `Instruction`; ``again``: last instruction of the loop; ``last``: last
    instruction of the program.
    """

    addresses: tuple[tuple[int, int], ...]
    active: bool = False
    two: bool = False
    invert: bool = False
    trim: int = 0
    lift: int = 0
    select: int = 0
    count: int = 0
    advance: bool = False
    again: bool = False
    last: bool = False


@dataclass(frozen=True)
class MicrocodeLayout:
    """Slots, program table and messages of a coprocessor for some programs.

    ``threads``: number of interleaved runs. ``word``: bits of a word of the streams, 16 to 64. ``counted``: each job
    contains the number of passes of its loop, at most that of the program, and the number of its words of digits.
    Raises UnsupportedError if the programs do not fit the unit or its memories.
    """

    programs: tuple[Program, ...]
    timing: MachineTiming | SlotTiming
    threads: int
    word: int = 32
    counted: bool = False

    def __post_init__(self) -> None:
        if not self.programs:
            raise UnsupportedError("a coprocessor needs a program")
        if self.threads < 1:
            raise UnsupportedError(f"a coprocessor has at least 1 thread, not {self.threads}")
        if not PACK <= self.word <= 64:
            raise UnsupportedError(f"words have {PACK} to 64 bits, not {self.word}")
        for program in self.programs:
            if not program.inputs or not program.results:
                raise UnsupportedError(f"{program.name} has no inputs or no results")
            if not program.written:
                raise UnsupportedError(f"{program.name} has no instructions")
            if program.passes >> COUNT_BITS:
                raise UnsupportedError(
                    f"{program.name}: {program.passes} passes; at most {(1 << COUNT_BITS) - 1} are possible"
                )
            if program.checks and program.matched != self.matched:
                raise UnsupportedError(
                    "some checks are compared with 1 and others with inputs; one engine has one kind"
                )
            if program.checks and not self.binary:
                raise UnsupportedError(
                    f"a check compares a number with {'the base' if program.matched else '1'}, whose residues are not "
                    "unique: take a design with binary numbers, --set check=true of kbe and hbe, or --lockstep"
                )
            if program.matched and len(program.checks) != len(program.inputs):
                raise UnsupportedError(
                    f"{program.name} compares {len(program.checks)} numbers with {len(program.inputs)} inputs"
                )
            check_tasks(program, unit(self.timing, self.threads))
        if self.used > DEPTHS[-1]:
            raise UnsupportedError(
                f"{self.slots} slots of {self.threads} threads and {self.used - self.slots * self.threads} "
                f"constants do not fit {DEPTHS[-1]} addresses"
            )
        if self.digit_depth > DIGIT_WORDS:
            raise UnsupportedError(
                f"the digits of {self.threads} threads fill {self.digit_depth} words; {DIGIT_WORDS} are available"
            )

    @property
    def contract(self) -> Contract:
        """The multiplier's contract."""
        return self.timing.contract

    @cached_property
    def slots(self) -> int:
        """Number of slots of a thread."""
        return max(p.slots for p in self.programs)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Index of each program's first constant. Programs with the same constants share them."""
        known: dict[frozenset[tuple[int, int]], int] = {}
        end = 0
        for p in self.programs:
            if frozenset(p.shared) not in known:
                known[frozenset(p.shared)] = end
                end += p.shared_slots
        return tuple(known[frozenset(p.shared)] for p in self.programs)

    @cached_property
    def constants(self) -> int:
        """Number of slots of constants."""
        return max((at + p.shared_slots for at, p in zip(self.offsets, self.programs, strict=True)), default=0)

    @cached_property
    def offset_multiples(self) -> tuple[int, ...]:
        """The multiples of p in the slot memory, as factors of p, 0 first."""
        if not self.timing.sums or not self.timing.adders:
            return ()
        return tuple(sorted({0} | {task.offset_multiple for task in self._tasks() if task.kind == "sub"}))

    @cached_property
    def conditional_subtracts(self) -> tuple[int, ...]:
        """The multiples of p that are subtracted conditionally, as factors of p."""
        return tuple(sorted({task.conditional_subtract for task in self._tasks()} - {0}))

    @cached_property
    def selecting_bits(self) -> int:
        """Number of bits of a digit by which programs select operands."""
        return max((1 + task.bit for task in self._tasks() if task.kind == "select"), default=0)

    def _tasks(self) -> Iterator[Task]:
        return chain.from_iterable(instruction.tasks for p in self.programs for instruction in p.written)

    @property
    def shared_base(self) -> int:
        """Address of the first constant."""
        return self.slots * self.threads

    @property
    def offset_base(self) -> int:
        """Address of the first multiple of p."""
        return self.shared_base + self.constants

    @property
    def used(self) -> int:
        """Number of slot addresses in use."""
        return self.offset_base + len(self.offset_multiples)

    @cached_property
    def depth(self) -> int:
        """Depth of the slot memory, a power of two."""
        return max(DEPTHS[0], 1 << (self.used - 1).bit_length())

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of an entry's operands."""
        return FIELDS + (ADDED if self.timing.added else ())

    @cached_property
    def table(self) -> tuple[tuple[Entry, ...], tuple[int, ...], tuple[int, ...]]:
        """(entries, index of each program's first entry, index of the first entry after ``before``, 0 if none)."""
        entries: list[Entry] = []
        firsts, loops = [], []
        for number, p in enumerate(self.programs):
            firsts.append(len(entries))
            body, first, end = p.written, len(p.before), len(p.before) + len(p.loop)
            for k, instruction in enumerate(body, 1):
                if k == first + 1:
                    loops.append(len(entries))
                entries += self.entries(number, instruction, again=first < k == end, last=k == len(body))
            if len(loops) == number:
                loops.append(0)
        return tuple(entries), tuple(firsts), tuple(loops)

    def entries(self, program: int, instruction: Instruction, *, again: bool, last: bool) -> Iterator[Entry]:
        """The entries of an instruction of a program; ``again``, ``last``: as in `Entry`."""
        unused = ((0, OWN),) * len(self.fields)
        yield Entry(
            self._addresses(program, instruction.product) if instruction.product else unused,
            active=instruction.product is not None,
            two=instruction.product is not None and instruction.product.c is not None,
            count=1 + len(instruction.sums), advance=instruction.advance, again=again, last=last,
        )  # fmt: skip
        for task in instruction.sums:
            subtract = task.conditional_subtract
            yield Entry(
                self._addresses(program, task),
                invert=task.kind == "sub",
                lift=self.offset_multiples.index(task.offset_multiple) if task.kind == "sub" else 0,
                trim=1 + self.conditional_subtracts.index(subtract) if subtract else 0,
                select=1 + task.bit if task.kind == "select" else 0,
            )

    def _addresses(self, program: int, task: Task) -> tuple[tuple[int, int], ...]:
        """Number and base of each operand; absent ones repeat a."""

        def coded(operand: OperandAddress) -> tuple[int, int]:
            if operand.shared:
                return self.offsets[program] + operand.number, SHARED_ENTRY if operand.pick == ENTRY else SHARED
            return operand.number, {ENTRY: OWN_ENTRY, PAIR: DOWN if operand.number % 2 else UP}.get(operand.pick, OWN)

        given = (task.destination, task.a, task.b, *((task.c, task.e) if self.timing.added else ()))
        return tuple(coded(operand or task.a) for operand in given)

    def bases(self, name: str) -> tuple[int, ...]:
        """Bases that are added to the addresses of an operand, in the order of their codes in the table."""
        return self._bases[name != "destination"]

    @cached_property
    def _bases(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Bases of written and of read addresses."""
        addresses = [entry.addresses for entry in self.table[0]]
        written, read = {to for (_, to), *_ in addresses}, {how for _, *reads in addresses for _, how in reads}
        return tuple(sorted(written)), tuple(sorted(read))

    @cached_property
    def digit_bits(self) -> int:
        """Bits of the widest digit."""
        return max(1, *(p.window for p in self.programs))

    @property
    def per_word(self) -> int:
        """Digits in a word, a power of two."""
        return digits_in_word(self.digit_bits)

    def counting(self, program: int, passes: int | None = None) -> Program:
        """A program with another number of passes of its loop; None: its own number. Raises UnsupportedError for more
        passes than its own, fewer than 1, and any other number if jobs do not contain it (``counted``)."""
        p = self.programs[program]
        if passes is None or passes == p.passes:
            return p
        if not self.counted or not 1 <= passes < p.passes:
            raise UnsupportedError(f"{p.name} does {p.passes} passes, not {passes}")
        return replace(p, passes=passes)

    def digit_words(self, program: int, passes: int | None = None) -> int:
        """Number of words of digits of one thread."""
        return -(-self.counting(program, passes).digits // self.per_word)

    @cached_property
    def stride(self) -> int:
        """Words of digits stored for each thread, one more than used: it may be read at the end."""
        return max(1, *(p.digits // self.per_word + 1 for p in self.programs))

    @property
    def digit_depth(self) -> int:
        """Depth of the digit memory in words."""
        return self.threads * self.stride

    def pack(self, program: int, digits: Sequence[int], passes: int | None = None) -> list[int]:
        """Digits packed into words, the first in the least significant bits. Raises UnsupportedError for a wrong number
        of digits and for a digit out of range."""
        p = self.counting(program, passes)
        if len(digits) != p.digits:
            raise UnsupportedError(f"{p.name} uses {p.digits} digits, not {len(digits)}")
        if any(digit < 0 or digit >> max(1, p.window) for digit in digits):
            raise UnsupportedError(f"{p.name} takes digits of {p.window} bits")
        per = self.per_word
        groups = [digits[k : k + per] for k in range(0, len(digits), per)]
        return [sum(digit << (self.digit_bits * k) for k, digit in enumerate(group)) for group in groups]

    @property
    def binary(self) -> bool:
        """Whether numbers at the ports are binary."""
        return isinstance(self.contract.operand, Binary)

    @property
    def number_words(self) -> int:
        """Number of words of a number."""
        return -(-self.contract.operand.width // self.word)

    @property
    def key_words(self) -> int:
        """Words of stream i for one word of the multiplier's stream k."""
        return -(-self.contract.load.width // self.word) if self.contract.load else 0

    @property
    def checked(self) -> bool:
        """Whether a program has checks, so that the coprocessor has an alarm."""
        return any(p.checks for p in self.programs)

    @property
    def matched(self) -> bool:
        """Whether checks are compared with the inputs, which the coprocessor keeps, instead of 1."""
        return any(p.matched for p in self.programs)

    @cached_property
    def rounds(self) -> int:
        """Number of multiples 2^k p that are subtracted from each result; 0 for residues."""
        most = max(times for p in self.programs for _, times in p.answers)
        return most.bit_length() * self.binary

    def setup(self, contract: Contract, programs: Mapping[int, Program] | None = None) -> list[int]:
        """The message that sets a modulus and the constants of ``programs``, by number; default: the layout's own.

        The programs must be made for the contract's modulus. Raises UnsupportedError if one of them differs from the
        layout's own in more than the values of its constants.
        """
        values = [0] * self.constants
        for k, p in (dict(enumerate(self.programs)) if programs is None else programs).items():
            if _shape(p) != _shape(self.programs[k]):
                raise UnsupportedError(
                    f"{p.name} differs from the core's own program in more than the values of its constants"
                )
            for slot, value in p.shared:
                values[self.offsets[k] + slot] = value
        ports = [self.contract.operand.encode(value) for value in values]
        ports += [self._offset(multiple, contract.p) for multiple in self.offset_multiples]
        ports += [multiple * contract.p for multiple in self.conditional_subtracts if contract.load]
        return [SETUP, *self.modulus(contract), *chain.from_iterable(map(self._words, ports))]

    def modulus(self, contract: Contract) -> list[int]:
        """The words of the message of `setup` that load the contract's modulus, its first ones; none if it is built
        in."""
        if contract.load is None:
            return []
        out = [word for k in reversed(range(max(1, self.rounds))) for word in self._words(contract.p << k)]
        return [*out, *chain.from_iterable(words_of(w, self.key_words, self.word) for w in contract.load.words)]

    def _offset(self, offset_multiple: int, p: int) -> int:
        """The port value that a difference adds; with residues less 2^w - 1 in each, because ~b = 2^w - 1 - b."""
        form = self.contract.operand
        if not isinstance(form, Residues):
            return offset_multiple * p
        if offset_multiple == 0:
            return 0
        top = (1 << form.base.w) - 1
        return form.pack([(offset_multiple * p - top) % m for m in form.moduli])

    def job(
        self, program: int, runs: Sequence[tuple[Sequence[int], Sequence[int]]], passes: int | None = None
    ) -> list[int]:
        """The message of a job: (digits, inputs) of each thread; ``passes`` of the loop if jobs contain it. Raises
        UnsupportedError for a wrong number of runs, inputs, digits or passes."""
        if len(runs) != self.threads:
            raise UnsupportedError(f"this coprocessor does {self.threads} runs at once, not {len(runs)}")
        p = self.programs[program]
        out = [1 + program]
        if self.counted:
            out += [self.counting(program, passes).passes, self.digit_words(program, passes)]
        for digits, inputs in runs:
            if len(inputs) != len(p.inputs):
                raise UnsupportedError(f"{p.name} takes {len(p.inputs)} numbers, not {len(inputs)}")
            out += self.pack(program, digits, passes)
            out += chain.from_iterable(map(self.number, inputs))
        return out

    def number(self, x: int) -> list[int]:
        """The words of a number in the form of the multiplier."""
        return self._words(self.contract.operand.encode(x))

    def _words(self, port: int) -> list[int]:
        return words_of(port, self.number_words, self.word)

    def answer_words(self, program: int) -> int:
        """Number of words at ``o`` after a job."""
        return self.threads * len(self.programs[program].results) * self.number_words

    def numbers(self, words: Sequence[int], p: int) -> list[int]:
        """The numbers in words at ``o``, in [0, p)."""
        n = self.number_words
        ports = [sum(w << (self.word * k) for k, w in enumerate(words[at : at + n])) for at in range(0, len(words), n)]
        return [port if self.binary else self.contract.operand.decode(port) % p for port in ports]

    def results(self, program: int, words: Sequence[int], p: int) -> list[tuple[int, ...]]:
        """The results of each thread, from the words at ``o``."""
        size = len(self.programs[program].results)
        numbers = self.numbers(words, p)
        return [tuple(numbers[k : k + size]) for k in range(0, len(numbers), size)]


def _shape(p: Program) -> tuple[object, ...]:
    """Everything in a program except the values of its constants."""
    return p.inputs, [slot for slot, _ in p.shared], p.parts, p.passes, p.results, p.checks, p.matched, p.window
