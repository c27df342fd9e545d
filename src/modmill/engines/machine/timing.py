# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""When a field unit does what: every cycle of an instruction is fixed before there is any hardware.

A turn is the time in which one instruction is done for one thread. It begins in cycle 0; the counts below are cycles of
the lowest slice of the slot memory. Where carries run through the slices, slice k does everything k cycles later.

    FIRST + 2 j, FIRST + 2 j + 1       task j reads b, then a (task 0: the product), through port A
    FIRST + 2 j + LIFT                 a sum reads the multiple of p that it adds, through port B
    FIRST + 2 j + delay                a sum is written, through port B
    move                               both operands of the product go to the multiplier's port, all slices at once,
                                       but for those slices that they may stand in as they were read
    accept                             the multiplier takes them
    arrive                             the product is valid at its port
    write                              the product is written, in a cycle in which port B is free

The turn is the least multiple of the multiplier's period in which it can take a product and port B has a cycle for
everything. Products so follow one another at the multiplier's interval, unless reading takes longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from modmill.contract import Binary, Contract, Digits, ResiduePair, Residues, UnsupportedError
from modmill.design import Multiplier
from modmill.engines.microcode.program import DatapathSpec
from modmill.numbers.folding import fold_bounds
from modmill.rtl.memory import DEPTHS

FIRST = 8
"""Cycle of a turn in which the first operand's address is in the lowest slice."""
LIFT = 1
"""Cycles from the address of b to that of the multiple of p."""
SUM = 6
"""Cycles from the address of b to the sum at the memory's port."""
TRIM = 7
"""Cycles from the address of b to the trimmed sum, without those for the carry to reach the highest slice."""
TAKEN = 4
"""Cycles from the address of b to both operands of a product in their registers."""
CAPTURE = 3
"""Cycles from a product at the multiplier's port to the memory's port."""
ISSUE_CYCLES_MIN = 9
"""Cycles of the shortest turn: the instruction's flags are known before the next one begins."""
SLICE = 54
"""Bits of a slice at most where carries run through it: three block RAMs on ECP5."""
BLOCK = 18
"""Bits of a block RAM's word on ECP5."""
_TURNS = 64


def slices(form: Binary | Residues | ResiduePair | Digits) -> tuple[int, ...]:
    """Bits of each slice of the slot memory, the lowest first: a residue is one slice.

    Raises UnsupportedError for numbers that a field unit cannot add.
    """
    if isinstance(form, Residues):
        return (form.base.w,) * form.base.n
    if not isinstance(form, Binary):
        raise UnsupportedError(
            f"a field unit adds binary numbers and residues of one base, not {form.describe()['kind']}"
        )
    return _cut(form.width)


def _cut(width: int) -> tuple[int, ...]:
    """A number of so many bits in slices of whole block RAMs, as equal as can be."""
    blocks = -(-width // BLOCK)
    count = -(-blocks // (SLICE // BLOCK))
    sizes = [blocks // count + (k < blocks % count) for k in range(count)]
    return (*(BLOCK * size for size in sizes[:-1]), width - BLOCK * sum(sizes[:-1]))


def folds(form: Residues) -> int:
    """Folds of a sum, most of all channels."""
    return max(len(fold_bounds(3 << form.base.w, form.base.w, u)) for u in form.base.u)


def acceptance(core: Multiplier) -> tuple[int, int]:
    """Period and lead of a multiplier, as a `MachineTiming` takes them.

    Raises UnsupportedError for one that accepts operands only in cycles that a unit does not know: it would lose them.
    """
    period = getattr(core, "native_period", 1)
    if period > 1:
        raise UnsupportedError(
            f"in this form the multiplier accepts operands only in one cycle of {period}, which a unit that offers "
            "them every turn would miss; take --io native"
        )
    return core.period, core.lead


@dataclass(frozen=True)
class MachineTiming:
    """The cycles of a unit: a multiplier with its contract, and at most ``sums`` sums in an instruction.

    ``period``, ``lead``: of the multiplier. ``conditional_subtracts``: whether sums can be trimmed. ``least``: cycles
    of a turn at least. A unit without sums takes numbers of every form as bits. Raises UnsupportedError for numbers
    that cannot be added or trimmed.
    """

    contract: Contract
    sums: int
    period: int = 1
    lead: int = 0
    conditional_subtracts: bool = False
    least: int = 0
    added = False

    def __post_init__(self) -> None:
        if self.sums < 0:
            raise UnsupportedError(f"an instruction has 0 or more sums, not {self.sums}")
        if self.conditional_subtracts and not isinstance(self.contract.operand, Binary):
            raise UnsupportedError("only binary numbers can be trimmed")
        if self.contract.operand != self.contract.result:
            raise UnsupportedError("a field unit needs a multiplier whose results look like its operands")
        _ = self._found

    @property
    def slices(self) -> tuple[int, ...]:
        """Bits of each slice."""
        return slices(self.contract.operand) if self.sums else _cut(self.contract.operand.width)

    @property
    def chained(self) -> bool:
        """Whether each slice works a cycle later than the one below it."""
        return not self.sums or not isinstance(self.contract.operand, Residues)

    @property
    def count(self) -> int:
        """Number of slices."""
        return len(self.slices)

    @property
    def skew(self) -> int:
        """Cycles by which the highest slice is later than the lowest."""
        return self.count - 1 if self.chained else 0

    @property
    def least_delay(self) -> int:
        """Cycles from the address of b to the sum at the memory's port."""
        if self.sums and isinstance(self.contract.operand, Residues):
            return SUM + folds(self.contract.operand)
        return TRIM + 1 + self.skew if self.conditional_subtracts else SUM

    @cached_property
    def _found(self) -> tuple[int, int, int, int]:
        return next(self._search())

    def _search(self) -> Iterator[tuple[int, int, int, int]]:
        """Turn, delay, move and write."""
        least = max(self.contract.timing.interval, 2 * (1 + self.sums), ISSUE_CYCLES_MIN, self.least)
        first = -(-least // self.period)
        for turn in range(first * self.period, (first + _TURNS) * self.period, self.period):
            for delay in range(self.least_delay, self.least_delay + turn):
                offset_multiples, sums = self._reserved(turn, delay)
                free = set(range(turn)) - offset_multiples - sums
                if offset_multiples & sums or not free:
                    continue
                written = []
                for move in range(FIRST + TAKEN + self.skew, FIRST + turn + 3):
                    ready = move + self.lead + 1 + self.contract.timing.latency + CAPTURE
                    write = next(cycle for cycle in range(ready, ready + turn) if cycle % turn in free)
                    if write - ready + self.skew < turn:
                        written.append((write, move))
                if written:
                    write, move = min(written)
                    yield turn, delay, move, write
        raise UnsupportedError(
            f"no turn of up to {turn} cycles suits this multiplier and {self.sums} sums in an instruction"
        )

    def kept(self, operand: int, k: int) -> range:
        """Cycles in which operand 0 or 1 of a turn's product stands where slice k took it, until the next is taken."""
        first = FIRST + TAKEN - operand + min(k, self.skew)
        return range(first, first + self.issue_cycles)

    def written(self, k: int) -> int:
        """Cycle in which slice k writes the product."""
        return self.write + min(k, self.skew)

    @property
    def issue_cycles(self) -> int:
        """Cycles of an instruction for one thread."""
        return self._found[0]

    @property
    def delay(self) -> int:
        """Cycles from the address of b to the sum at the memory's port."""
        return self._found[1]

    @property
    def move(self) -> int:
        """Cycle in which the operands go to the multiplier's port."""
        return self._found[2]

    @property
    def accept(self) -> int:
        """Cycle in which the multiplier takes them."""
        return self.move + self.lead + 1

    @property
    def arrive(self) -> int:
        """Cycle in which the product is valid."""
        return self.accept + self.contract.timing.latency

    @property
    def write(self) -> int:
        """Cycle in which the product is at the memory's port."""
        return self._found[3]

    @property
    def free(self) -> tuple[int, ...]:
        """Cycles of a turn in which a product may be written."""
        taken = set().union(*self._reserved(self.issue_cycles, self.delay))
        return tuple(cycle for cycle in range(self.issue_cycles) if cycle not in taken)

    def _reserved(self, turn: int, delay: int) -> tuple[set[int], set[int]]:
        """Cycles of a turn in which port B reads multiples of p, and in which it writes sums."""
        begins = [FIRST + 2 * j for j in range(1, self.sums + 1)]
        return {(cycle + LIFT) % turn for cycle in begins}, {(cycle + delay) % turn for cycle in begins}

    @property
    def drain(self) -> int:
        """Cycles from the end of the last turn until everything is written, 1 at least."""
        last_sum = FIRST + 2 * self.sums + self.delay if self.sums else 0
        return max(1, max(self.write, last_sum) + self.skew + 2 - self.issue_cycles)

    @property
    def alignment(self) -> int:
        """Cycles from the start of a run until a first, empty product is taken, at most."""
        return 2 * self.period + 3 if self.period > 1 else 3

    @property
    def run_up(self) -> int:
        """Cycles from that product's acceptance to the first turn, so that the others meet the multiplier's period."""
        found = self.issue_cycles - self.accept % self.issue_cycles
        return found if found > 2 else found + self.issue_cycles

    def cycles(self, instructions: int, threads: int) -> int:
        """Cycles of a run: the same for all numbers and digits."""
        return self.alignment + self.run_up + instructions * threads * self.issue_cycles + self.drain

    def distances(self, threads: int) -> tuple[int, int]:
        """After how many instructions a product and a sum can be read."""
        instruction = threads * self.issue_cycles
        last_sum = 2 * self.sums + self.delay
        return -(-(self.write - FIRST + 1) // instruction), max(1, -(-(last_sum + 1) // instruction))


@dataclass(frozen=True)
class SlotTiming:
    """The cycles of a slot machine: it takes an operation every ``interval``; ``distance`` as of `SlotMachine`."""

    contract: Contract
    interval: int
    distance: int
    sums = 0
    conditional_subtracts = False
    added = True

    @property
    def issue_cycles(self) -> int:
        """Cycles of an instruction for one thread."""
        return self.interval

    @property
    def access(self) -> int:
        """Cycles for a number to go in or out, whatever the machine is doing."""
        return 4 * self.interval

    def cycles(self, instructions: int, threads: int) -> int:
        """Cycles of a run: the same for all numbers and digits."""
        return (instructions * threads + self.distance + 2) * self.interval

    def distances(self, threads: int) -> tuple[int, int]:
        """After how many instructions a product can be read."""
        found = -(-self.distance // threads)
        return found, found


def unit(
    contract: Contract, threads: int, sums: int, *, period: int = 1, lead: int = 0, conditional_subtracts: bool = False,
    shared: int = 16,
) -> DatapathSpec:  # fmt: skip
    """What instructions are made for on this hardware, with room for ``shared`` constants of all threads.

    Raises UnsupportedError where there is none, or no room.
    """
    if threads < 1:
        raise UnsupportedError(f"a unit has at least 1 thread, not {threads}")
    product, sum_ = MachineTiming(contract, sums, period, lead, conditional_subtracts).distances(threads)
    room = (DEPTHS[-1] - shared - LIFTS) // threads
    if room < 1:
        raise UnsupportedError(f"{threads} threads and {shared} constants do not fit {DEPTHS[-1]} slots")
    return DatapathSpec(sums, product, sum_, room, shared, conditional_subtracts=conditional_subtracts)


LIFTS = 8
"""Slots that are left for multiples of p, 0 included."""


def busy_threads(timing: MachineTiming, distance: int = 1) -> int:
    """Fewest threads with which a product can be read ``distance`` instructions later."""
    return -(-(timing.write - FIRST + 1) // (timing.issue_cycles * distance))


def paced(timing: MachineTiming, threads: int, distance: int) -> MachineTiming:
    """The timing with the shortest turns in which a product can be read ``distance`` instructions later."""
    while timing.distances(threads)[0] > distance:
        least = max(timing.issue_cycles + 1, -(-(timing.write - FIRST + 1) // (threads * distance)))
        timing = replace(timing, least=least)
    return timing
