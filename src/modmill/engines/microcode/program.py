# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Programs of instructions for a field unit with one multiplier and one adder.

An instruction is at most one product and some sums. The unit executes it for one thread after the other, then the next
instruction. Its tasks can read the products of instructions at least ``DatapathSpec.product_distance`` before it, and
the sums of instructions at least ``DatapathSpec.sum_distance`` before it. All instructions take the same time, and the
sequence of instructions does not depend on data: a digit of a scalar only selects addresses, or the operand that a
selection keeps. A selection is one of the sums of an instruction.

    mul     destination = a b factor            with c and e: (a b + c e) factor, on units that add two products
    add     destination = a + b
    sub     destination = a - b + offset_multiple p
    select  destination = a if the digit has a 1 at ``bit``, else b; both are read

A sum or difference s with ``conditional_subtract`` t becomes s - t p if s >= t p. A multiplier that accepts only
operands below p needs this. A task reads its operands before it writes its result; no other task of the instruction may
read what it writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

PARTS = ("before", "loop", "after")
FIXED, ENTRY, PAIR = "fixed", "entry", "pair"
"""How a digit selects a slot: not at all; slot number + digit, in a table that starts at a multiple of its size; the
slot itself for an even digit, its neighbour (number xor 1) for an odd one."""


@dataclass(frozen=True)
class OperandAddress:
    """Address of a slot in an instruction. ``number``: among the slots of the thread, or among the ``shared`` slots of
    all threads. ``size``: number of entries of the table if the pick is ENTRY, a power of two; digits are below it."""

    number: int
    pick: str = FIXED
    shared: bool = False
    size: int = 0

    def at(self, digit: int) -> tuple[bool, int]:
        """(shared, number) of the slot for a digit."""
        if self.pick == FIXED:
            return self.shared, self.number
        return self.shared, self.number + digit if self.pick == ENTRY else self.number ^ (digit & 1)

    @cached_property
    def all(self) -> tuple[tuple[bool, int], ...]:
        """(shared, number) of every slot that a digit may select."""
        return tuple(self.at(digit) for digit in range({FIXED: 1, ENTRY: self.size, PAIR: 2}[self.pick]))


@dataclass(frozen=True)
class Task:
    """One operation of an instruction; ``kind``: mul, add, sub or select.

    ``offset_multiple``: multiple of p added to a difference, so that it is never negative. ``conditional_subtract``:
    multiple of p subtracted from a sum or difference (after the offset multiple) that is not below it; 0: none.
    """

    kind: str
    destination: OperandAddress
    a: OperandAddress
    b: OperandAddress
    c: OperandAddress | None = None
    e: OperandAddress | None = None
    _: KW_ONLY
    offset_multiple: int = 0
    conditional_subtract: int = 0
    bit: int = 0

    @cached_property
    def reads(self) -> tuple[OperandAddress, ...]:
        """Addresses of its operands: two, or four for a sum of two products."""
        return tuple(address for address in (self.a, self.b, self.c, self.e) if address is not None)


@dataclass(frozen=True)
class Instruction:
    """One product and some sums. ``advance``: the next digit is current from the next instruction on."""

    product: Task | None = None
    sums: tuple[Task, ...] = ()
    advance: bool = False

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """The product, if there is one, then the sums."""
        return (*((self.product,) if self.product else ()), *self.sums)

    @property
    def written(self) -> Iterator[tuple[bool, int]]:
        """(shared, number) of every slot that it may write."""
        for task in self.tasks:
            yield from task.destination.all


@dataclass(frozen=True)
class DatapathSpec:
    """Properties of a unit for which programs are scheduled.

    ``sums``: maximum number of sums in an instruction. ``product_distance``, ``sum_distance``: number of instructions
    from a product or sum to the first instruction that can read it. ``room``, ``shared_room``: maximum number of slots
    of a thread and of shared slots. ``added``: whether the unit adds two products, instead of sums.
    ``conditional_subtracts``: whether sums and differences can have a conditional subtraction. ``adders``: whether the
    sums can be others than selections.
    """

    sums: int
    product_distance: int
    sum_distance: int
    room: int
    shared_room: int
    added: bool = False
    conditional_subtracts: bool = False
    adders: bool = True


@dataclass(frozen=True)
class Program:
    """A scheduled program: instructions before the loop, the loop with its ``passes``, instructions after it.

    ``inputs``: (slot, name) of each thread's operands, in the order of transmission. ``shared``: (shared slot, value)
    of the constants, in [0, p), in the multiplier's domain. ``results``: (slot, maximum number of final subtractions of
    p) in the order of transmission. ``window``: bits of a digit. ``checks``: the same of numbers that must be 1 modulo
    p at the end, or with ``matched`` the inputs, one for each; the results are given only then.
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
    checks: tuple[tuple[int, int], ...] = ()
    matched: bool = False

    def right(self, checks: Sequence[int], inputs: Mapping[str, int]) -> bool:
        """Whether these values of the checks are right after a run on these inputs."""
        return list(checks) == ([inputs[name] for _, name in self.inputs] if self.matched else [1] * len(checks))

    @property
    def answers(self) -> tuple[tuple[int, int], ...]:
        """The checks and the results, in the order in which they are read."""
        return self.checks + self.results

    @property
    def parts(self) -> tuple[tuple[Instruction, ...], ...]:
        """The instructions before the loop, those of the loop, those after it."""
        return self.before, self.loop, self.after

    @property
    def written(self) -> tuple[Instruction, ...]:
        """The instructions of all parts, the loop once."""
        return (*self.before, *self.loop, *self.after)

    def executed(self) -> Iterator[tuple[int, int, Instruction]]:
        """All instructions of one run in order, as (part, number in the part, instruction)."""
        for part, times in enumerate((1, self.passes, 1)):
            for _ in range(times):
                yield from ((part, k, instruction) for k, instruction in enumerate(self.parts[part]))

    @property
    def instructions(self) -> int:
        """Number of instructions executed in one run."""
        return len(self.before) + self.passes * len(self.loop) + len(self.after)

    @cached_property
    def digits(self) -> int:
        """Number of digits that one run uses."""
        return sum(instruction.advance for _, _, instruction in self.executed())

    @property
    def products(self) -> int:
        """Number of products of one run; a sum of two products counts as one."""
        return sum(instruction.product is not None for _, _, instruction in self.executed())

    @cached_property
    def slots(self) -> int:
        """Number of slots of a thread."""
        return 1 + max(
            [*self._addressed(shared=False), *(slot for slot, _ in (*self.inputs, *self.answers))], default=-1
        )

    @cached_property
    def shared_slots(self) -> int:
        """Number of slots that all threads share."""
        return 1 + max([*self._addressed(shared=True), *(slot for slot, _ in self.shared)], default=-1)

    def _addressed(self, shared: bool) -> Iterator[int]:
        for instruction in self.written:
            for task in instruction.tasks:
                for address in (task.destination, *task.reads):
                    yield from (number for where, number in address.all if where == shared)
