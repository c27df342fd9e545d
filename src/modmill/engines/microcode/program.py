# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Programs as instructions: what a field unit with one multiplier and one adder does, interval after interval.

An instruction is one product and some sums, done for one thread after the other; the next instruction follows. Its
tasks read what instructions at least ``Unit.product_distance`` (for products) or ``Unit.sum_distance`` (for sums)
before it wrote. All instructions take the same time, and which instructions are done depends on no number: a digit of a
scalar only chooses addresses.

    mul   destination = a b factor                    (a b + c e) factor with c and e, on units that add up products
    add   destination = a + b
    sub   destination = a - b + offset multiple p

A sum or difference with ``conditional_subtract`` is made smaller by conditional subtract p where it is not below that:
so multipliers that take numbers below p only get them. Within an instruction all reads come before all writes of the
same task; no other task of the instruction may read what it writes.
"""

from __future__ import annotations

from dataclasses import dataclass

FIXED, ENTRY, PAIR = "fixed", "entry", "pair"
"""How a digit chooses an address: not at all; entry number + digit of a table that starts at a multiple of its size;
the slot itself or, where the digit is odd, its neighbour (number xor 1)."""


@dataclass(frozen=True)
class OperandAddress:
    """A slot as a task names it: ``number`` among those of its thread, or among the ``shared`` ones of all threads.
    ``size``: entries of the table, a power of two, where the pick is ENTRY; its digits are below that."""

    number: int
    pick: str = FIXED
    shared: bool = False
    size: int = 0

    def at(self, digit: int) -> tuple[bool, int]:
        """(shared, number) of the slot for a digit."""
        if self.pick == FIXED:
            return self.shared, self.number
        return self.shared, self.number + digit if self.pick == ENTRY else self.number ^ (digit & 1)

    @property
    def all(self) -> tuple[tuple[bool, int], ...]:
        """What it is for all digits."""
        return tuple(self.at(digit) for digit in range({FIXED: 1, ENTRY: self.size, PAIR: 2}[self.pick]))


@dataclass(frozen=True)
class Task:
    """One operation of an instruction. ``offset_multiple``: the multiple of p that a difference adds so that it is
    never
    negative. ``conditional_subtract``: the multiple of p that is subtracted from a sum or difference (after the
    offset multiple) that is not below it, 0 for never."""

    kind: str
    destination: OperandAddress
    a: OperandAddress
    b: OperandAddress
    c: OperandAddress | None = None
    e: OperandAddress | None = None
    offset_multiple: int = 0
    conditional_subtract: int = 0

    @property
    def reads(self) -> tuple[OperandAddress, ...]:
        """Places that it reads."""
        return tuple(place for place in (self.a, self.b, self.c, self.e) if place is not None)


@dataclass(frozen=True)
class Instruction:
    """What is done in one interval for each thread. ``advance``: the instructions after it see the next digit."""

    product: Task | None = None
    sums: tuple[Task, ...] = ()
    advance: bool = False

    @property
    def tasks(self) -> tuple[Task, ...]:
        """All tasks."""
        return (*((self.product,) if self.product else ()), *self.sums)


@dataclass(frozen=True)
class DatapathSpec:
    """What instructions are made for.

    ``sums``: sums in an instruction at most, 0 for a unit that adds up two products instead (``added``).
    ``product_distance`` and ``sum_distance``: an instruction may read what an instruction that many before it wrote, or
    an earlier one. ``room``: slots of a thread, and shared ones, at most. ``conditional_subtracts``: whether sums can
    be trimmed.
    """

    sums: int
    product_distance: int
    sum_distance: int
    room: int
    shared_room: int
    added: bool = False
    conditional_subtracts: bool = False


@dataclass(frozen=True)
class Program:
    """A scheduled program.

    ``inputs``: (slot, name) of the numbers that each thread is given, in the order in which they are sent. ``shared``:
    (shared slot, value) of the constants, as they stand in the multiplier's domain, least ones. ``before``, ``loop``,
    ``after``: instructions; the loop is done ``passes`` times, and uses up ``each`` digits of ``window`` bits in every
    pass. ``first`` and ``last``: digits used up before the loop and after it. ``results``: the slots that are given
    out, in order, each with how often p must be subtracted from it at most.
    """

    name: str
    inputs: tuple[tuple[int, str], ...]
    shared: tuple[tuple[int, int], ...]
    before: tuple[Instruction, ...]
    loop: tuple[Instruction, ...]
    after: tuple[Instruction, ...]
    passes: int
    results: tuple[tuple[int, int], ...]
    window: int = 0
    each: int = 0
    first: int = 0
    last: int = 0

    @property
    def instructions(self) -> int:
        """Instructions done for one run."""
        return len(self.before) + self.passes * len(self.loop) + len(self.after)

    @property
    def digits(self) -> int:
        """Digits that one run uses up."""
        return self.first + self.passes * self.each + self.last

    @property
    def products(self) -> int:
        """Products of one run; on units that add up products, instructions with one."""
        count = [
            sum(instruction.product is not None for instruction in part)
            for part in (self.before, self.loop, self.after)
        ]
        return count[0] + self.passes * count[1] + count[2]

    @property
    def slots(self) -> int:
        """Slots of a thread."""
        return self._slots(shared=False)

    @property
    def shared_slots(self) -> int:
        """Slots that all threads share."""
        return self._slots(shared=True)

    def _slots(self, shared: bool) -> int:
        places = [
            number
            for instruction in (*self.before, *self.loop, *self.after)
            for task in instruction.tasks
            for place in (task.destination, *task.reads)
            for its, number in place.all
            if its == shared
        ]
        given = [slot for slot, _ in self.shared] if shared else [slot for slot, _ in (*self.inputs, *self.results)]
        return 1 + max(places + given, default=-1)
