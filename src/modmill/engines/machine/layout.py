# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What the parts of a coprocessor agree on: slots, the table of instructions, digits, and the messages at its ports.

Slot memory, from address 0: the slots of thread 0, those of thread 1, and so on; the constants of all programs; the
multiples of p that differences add, 0 first.

The table holds the tasks of all instructions of all programs one after another: an instruction's product, which may be
none, then its sums. A task names each slot by its number and by what must be added to that for its address.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from modmill.contract import Binary, Contract, Residues, UnsupportedError
from modmill.engines.machine.timing import MachineTiming, SlotTiming
from modmill.engines.microcode.program import ENTRY, PAIR, Instruction, OperandAddress, Program, Task
from modmill.rtl.memory import DEPTHS

SETUP = 0
"""The message that sets the modulus and the constants; 1 + program runs one."""
PACK = 16
"""Bits of digits in a word at most."""
COUNT_BITS = 16
"""Bits of the count of a loop's passes."""
DIGIT_WORDS = 16 * DEPTHS[-1]
"""Words of digits of all threads at most."""
OWN, OWN_ENTRY, UP, DOWN, SHARED, SHARED_ENTRY = range(6)
"""What is added to a number: where the thread's slots begin; the digit more; 1 more or less where the digit is odd;
where the constants begin; the digit more."""
FIELDS = ("destination", "a", "b")
ADDED = ("c", "e")


def words_of(number: int, count: int, word: int) -> list[int]:
    """A number as ``count`` words, least significant first."""
    return [number >> (word * k) & ((1 << word) - 1) for k in range(count)]


@dataclass(frozen=True)
class Entry:
    """A task in the table. ``places``: for each of the layout's fields the number and what is added to it.

    ``active``: a product that is done; ``two``: of two that are added up. ``invert``: a difference.
    ``lift``: place of the multiple of p that is added. ``trim``: number of the multiple that
    the sum is trimmed by, from 1 on, 0 for none. In an instruction's first entry: ``count`` of its entries,
    ``advance``, ``again`` (the loop's last instruction), ``last``.
    """

    places: tuple[tuple[int, int], ...]
    active: bool = False
    two: bool = False
    invert: bool = False
    trim: int = 0
    lift: int = 0
    count: int = 0
    advance: bool = False
    again: bool = False
    last: bool = False


@dataclass(frozen=True)
class MicrocodeLayout:
    """Slots, table and messages of a coprocessor for some programs.

    ``threads``: runs interleaved. ``word``: bits of a word of the streams, 16 to 64. ``counted``: each job says how
    often its loop is done, at most as often as in the program, and how many words of digits it brings. Raises
    UnsupportedError when the programs do not fit the unit or its memories.
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
                raise UnsupportedError(f"{program.name} takes no number, or gives none")
            if program.passes >> COUNT_BITS:
                raise UnsupportedError(
                    f"{program.name}: {program.passes} passes, there are at most {(1 << COUNT_BITS) - 1}"
                )
            for instruction in _instructions(program):
                self._require_fit(program, instruction)
        if self.used > DEPTHS[-1]:
            raise UnsupportedError(
                f"{self.slots} slots of {self.threads} threads and {self.used - self.slots * self.threads} "
                f"constants do not fit {DEPTHS[-1]} addresses"
            )
        if self.digit_depth > DIGIT_WORDS:
            raise UnsupportedError(
                f"the digits of {self.threads} threads fill {self.digit_depth} words, there are {DIGIT_WORDS}"
            )

    def _require_fit(self, program: Program, instruction: Instruction) -> None:
        if len(instruction.sums) > self.timing.sums:
            raise UnsupportedError(
                f"{program.name}: an instruction of {len(instruction.sums)} sums, this unit does {self.timing.sums}"
            )
        for task in instruction.tasks:
            if task.destination.shared or task.destination.pick == ENTRY:
                raise UnsupportedError(f"{program.name}: a task writes a constant or an entry that a digit picks")
            if len(task.reads) > 2 and not self.timing.added:
                raise UnsupportedError(f"{program.name}: this unit does not add products up")
            if task.conditional_subtract and not self.timing.conditional_subtracts:
                raise UnsupportedError(f"{program.name}: a sum is trimmed, which this unit does not do")

    # ---- slots

    @property
    def contract(self) -> Contract:
        """The multiplier's contract."""
        return self.timing.contract

    @cached_property
    def slots(self) -> int:
        """Slots of a thread."""
        return max(p.slots for p in self.programs)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """For each program where its constants begin among all. Programs with the same ones share them."""
        found: list[int] = []
        known: dict[tuple[tuple[int, int], ...], int] = {}
        end = 0
        for p in self.programs:
            key = tuple(sorted(p.shared))
            if key not in known:
                known[key] = end
                end += p.shared_slots
            found.append(known[key])
        return tuple(found)

    @cached_property
    def constants(self) -> int:
        """Slots of constants."""
        return max((at + p.shared_slots for at, p in zip(self.offsets, self.programs, strict=True)), default=0)

    @cached_property
    def offset_multiples(self) -> tuple[int, ...]:
        """The multiples of p in the memory, 0 first."""
        tasks = self._tasks()
        if self.timing.added or not self.timing.sums:
            return ()
        return tuple(sorted({0} | {task.offset_multiple for task in tasks if task.kind == "sub"}))

    @cached_property
    def conditional_subtracts(self) -> tuple[int, ...]:
        """The multiples of p that sums are trimmed by."""
        return tuple(sorted({task.conditional_subtract for task in self._tasks()} - {0}))

    def _tasks(self) -> Iterator[Task]:
        return chain.from_iterable(instruction.tasks for p in self.programs for instruction in _instructions(p))

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
        """Addresses in use."""
        return self.offset_base + len(self.offset_multiples)

    @cached_property
    def depth(self) -> int:
        """Addresses of the slot memory."""
        return max(DEPTHS[0], 1 << (self.used - 1).bit_length())

    # ---- the table

    @property
    def fields(self) -> tuple[str, ...]:
        """The slots that an entry names."""
        return FIELDS + (ADDED if self.timing.added else ())

    @cached_property
    def table(self) -> tuple[tuple[Entry, ...], tuple[int, ...], tuple[int, ...]]:
        """The entries, and for each program its first entry and that of its loop."""
        entries: list[Entry] = []
        firsts, loops = [], []
        for number, p in enumerate(self.programs):
            firsts.append(len(entries))
            loop = p.loop if p.passes else ()
            body = (*p.before, *loop, *p.after)
            if not body:
                raise UnsupportedError(f"{p.name} has no instructions")
            for k, instruction in enumerate(body):
                if k == len(p.before):
                    loops.append(len(entries))
                again = bool(loop) and k == len(p.before) + len(loop) - 1
                entries += self._entries(number, instruction, again=again, last=k == len(body) - 1)
            if len(loops) == number:
                loops.append(0)
        return tuple(entries), tuple(firsts), tuple(loops)

    def _entries(self, program: int, instruction: Instruction, *, again: bool, last: bool) -> Iterator[Entry]:
        nowhere = ((0, OWN),) * len(self.fields)
        places = self._places(program, instruction.product) if instruction.product else nowhere
        yield Entry(
            places, active=instruction.product is not None,
            two=instruction.product is not None and instruction.product.c is not None,
            count=1 + len(instruction.sums), advance=instruction.advance, again=again, last=last,
        )  # fmt: skip
        for task in instruction.sums:
            less = task.conditional_subtract
            yield Entry(
                self._places(program, task),
                invert=task.kind == "sub",
                lift=self.offset_multiples.index(task.offset_multiple) if task.kind == "sub" else 0,
                trim=1 + self.conditional_subtracts.index(less) if less else 0,
            )

    def _places(self, program: int, task: Task) -> tuple[tuple[int, int], ...]:
        def numbered(place: OperandAddress) -> tuple[int, int]:
            if place.shared:
                if place.pick == PAIR:
                    raise UnsupportedError(
                        f"{self.programs[program].name}: a digit picks one of two constants as a pair"
                    )
                return self.offsets[program] + place.number, SHARED_ENTRY if place.pick == ENTRY else SHARED
            return place.number, {ENTRY: OWN_ENTRY, PAIR: DOWN if place.number % 2 else UP}.get(place.pick, OWN)

        given = (task.destination, task.a, task.b, *((task.c, task.e) if self.timing.added else ()))
        return tuple(numbered(place or task.a) for place in given)

    @cached_property
    def additions(self) -> dict[str, tuple[int, ...]]:
        """What is added to addresses that are written, and to those that are read, in order of their codes."""
        entries, _, _ = self.table
        return {
            "destination": tuple(sorted({entry.places[0][1] for entry in entries})),
            "read": tuple(sorted({how for entry in entries for _, how in entry.places[1:]})),
        }

    # ---- digits

    @cached_property
    def digit_bits(self) -> int:
        """Bits of the widest digit."""
        return max(1, *(p.window for p in self.programs), 1)

    @property
    def per_word(self) -> int:
        """Digits in a word, a power of two."""
        return 1 << (max(1, PACK // self.digit_bits).bit_length() - 1)

    def counting(self, program: int, passes: int | None = None) -> Program:
        """A program with so many passes of its loop, its own by default. Raises UnsupportedError for others, unless
        they are counted and fewer."""
        p = self.programs[program]
        if passes in (None, p.passes):
            return p
        assert passes is not None
        if not self.counted or not 1 <= passes < p.passes:
            raise UnsupportedError(f"{p.name} does {p.passes} passes, not {passes}")
        return replace(p, passes=passes)

    def digit_words(self, program: int, passes: int | None = None) -> int:
        """Words of digits of one thread."""
        return -(-self.counting(program, passes).digits // self.per_word)

    @cached_property
    def stride(self) -> int:
        """Words of digits that are kept for each thread; one more may be read at the end."""
        return max(1, *(p.digits // self.per_word + 1 for p in self.programs))

    @property
    def digit_depth(self) -> int:
        """Words of the digit memory."""
        return self.threads * self.stride

    def pack(self, program: int, digits: Sequence[int], passes: int | None = None) -> list[int]:
        """Digits as words, the first in the least significant bits. Raises UnsupportedError for too many or too wide
        ones."""
        p = self.counting(program, passes)
        if len(digits) != p.digits:
            raise UnsupportedError(f"{p.name} uses {p.digits} digits, not {len(digits)}")
        if any(digit < 0 or digit >> max(1, p.window) for digit in digits):
            raise UnsupportedError(f"{p.name} takes digits of {p.window} bits")
        per = self.per_word
        groups = [digits[k : k + per] for k in range(0, len(digits), per)]
        return [sum(digit << (self.digit_bits * k) for k, digit in enumerate(group)) for group in groups]

    # ---- messages

    @property
    def binary(self) -> bool:
        """Whether numbers stand at the ports as themselves."""
        return isinstance(self.contract.operand, Binary)

    @property
    def number_words(self) -> int:
        """Words of a number."""
        return -(-self.contract.operand.width // self.word)

    @property
    def key_words(self) -> int:
        """Words of the stream i for one of stream k."""
        return -(-self.contract.load.width // self.word) if self.contract.load else 0

    @cached_property
    def rounds(self) -> int:
        """How often a multiple 2^k p is subtracted from each result: not where the ports have residues."""
        most = max(times for p in self.programs for _, times in p.results)
        return most.bit_length() * self.binary

    def setup(self, contract: Contract, programs: Mapping[int, Program] | None = None) -> list[int]:
        """The message that sets a modulus and the constants of some programs, by number, made for that modulus.

        Default: all of the layout's own. Raises UnsupportedError when a program differs from the layout's own in more
        than the values of its constants.
        """
        made = dict(enumerate(self.programs)) if programs is None else programs
        for k, p in made.items():
            if _shape(p) != _shape(self.programs[k]):
                raise UnsupportedError(
                    f"{p.name} differs from the core's own program in more than the values of its constants"
                )
        out = [SETUP]
        if load := contract.load:
            for k in reversed(range(max(1, self.rounds))):
                out += self._words(contract.p << k)
            out += chain.from_iterable(words_of(w, self.key_words, self.word) for w in load.words)
        values = [0] * self.constants
        for k, p in made.items():
            for slot, value in p.shared:
                values[self.offsets[k] + slot] = value
        for value in values:
            out += self.number(value)
        for offset_multiple in self.offset_multiples:
            out += self._words(self._offset(offset_multiple, contract.p))
        for conditional_subtract in self.conditional_subtracts if load else ():
            out += self._words(conditional_subtract * contract.p)
        return out

    def _offset(self, offset_multiple: int, p: int) -> int:
        """The port value that a difference adds: with residues less 2^w - 1 each, which the inverted bits of b are
        too large by."""
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
        """The message for one (digits, inputs) for each thread; ``passes`` of the loop, where they are counted."""
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
            for number in inputs:
                out += self.number(number)
        return out

    def number(self, x: int) -> list[int]:
        """The words of a number."""
        return self._words(self.contract.operand.encode(x))

    def _words(self, port: int) -> list[int]:
        return words_of(port, self.number_words, self.word)

    def answer_words(self, program: int) -> int:
        """Words at ``o`` after a job."""
        return self.threads * len(self.programs[program].results) * self.number_words

    def numbers(self, words: Sequence[int], p: int) -> list[int]:
        """The numbers that words at ``o`` stand for, least ones."""
        n = self.number_words
        ports = [sum(w << (self.word * k) for k, w in enumerate(words[at : at + n])) for at in range(0, len(words), n)]
        return [port if self.binary else self.contract.operand.decode(port) % p for port in ports]

    def results(self, program: int, words: Sequence[int], p: int) -> list[tuple[int, ...]]:
        """For each thread its results."""
        size = len(self.programs[program].results)
        numbers = self.numbers(words, p)
        return [tuple(numbers[k : k + size]) for k in range(0, len(numbers), size)]


def _instructions(program: Program) -> Iterator[Instruction]:
    return chain(program.before, program.loop, program.after)


def _shape(p: Program) -> tuple[object, ...]:
    """A program without the values of its constants."""
    return (
        p.inputs, tuple(slot for slot, _ in p.shared), p.before, p.loop, p.after, p.passes, p.results, p.window,
    )  # fmt: skip
