# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Timing of a field unit: the cycle of each part of an instruction, fixed before the hardware is built.

An issue slot is the time in which one instruction runs for one thread. It begins in cycle 0; the cycles below are those
of the lowest slice of the slot memory. If slices pass carries, slice k acts k cycles later.

    FIRST + 2 j, FIRST + 2 j + 1       task j reads b, then a, through port A (task 0: the product)
    FIRST + 2 j + OFFSET_READ          a sum reads the multiple of p that it adds, through port B
    FIRST + 2 j + delay                a sum is written, through port B
    move                               all slices move the operands of the product to the multiplier's port at once;
                                       a slice whose read register lasts long enough drives the port directly
    accept                             the multiplier accepts them
    arrive                             the product is valid at its port
    write                              the product is written, in a cycle in which port B is free

The issue slot is the least multiple of the multiplier's period in which the multiplier can accept a product and port B
has a cycle for every access. So products follow each other at the multiplier's interval, unless the reads take longer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from modmill.contract import Binary, Contract, Digits, ResiduePair, Residues, UnsupportedError
from modmill.engines.microcode.program import DatapathSpec
from modmill.interface import Multiplier
from modmill.numbers.folding import fold_bounds
from modmill.rtl.memory import DEPTHS

FIRST = 8
"""Cycle of an issue slot in which the lowest slice has the first operand's address."""
OFFSET_READ = 1
"""Cycles from the address of b to that of the multiple of p."""
SUM = 6
"""Cycles from the address of b to the sum at the memory's port."""
SUBTRACT = 7
"""Cycles from the address of b to the sum after a conditional subtraction, without those of the carry to the highest
slice."""
TAKEN = 4
"""Cycles from the address of b until both operands of a product are in their registers."""
CAPTURE = 3
"""Cycles from a product at the multiplier's port to the memory's port."""
ISSUE_CYCLES_MIN = 9
"""Shortest issue slot in cycles: the flags of an instruction must be known before the next one begins."""
SLICE = 54
"""Maximum bits of a slice that passes carries: three block RAMs on ECP5."""
BLOCK = 18
"""Bits of a block RAM's word on ECP5."""
_PERIODS = 64
"""Number of issue slot lengths that are tried."""


def slices(form: Binary | Residues | ResiduePair | Digits, parity: bool = False) -> tuple[int, ...]:
    """Bits of each slice of the slot memory, the lowest first; a residue is one slice. ``parity`` as in `_cut`. Raises
    UnsupportedError for a form that a field unit cannot add."""
    if isinstance(form, Residues):
        return (form.base.w,) * form.base.n
    if not isinstance(form, Binary):
        raise UnsupportedError(
            f"a field unit adds binary numbers and residues of one base, not {form.describe()['kind']}"
        )
    return _cut(form.width, parity)


def _cut(width: int, parity: bool) -> tuple[int, ...]:
    """Cut ``width`` bits into slices of whole block RAMs, of sizes as equal as possible. With ``parity`` each slice
    leaves a bit of them for it."""
    count = -(-width // (SLICE - parity))
    blocks = -(-(width + parity * count) // BLOCK)
    sizes = [blocks // count + (k < blocks % count) for k in range(count)]
    below = [BLOCK * size - parity for size in sizes[:-1]]
    return (*below, width - sum(below))


def folds(form: Residues) -> int:
    """Maximum number of folds of a sum over all channels."""
    return max(len(fold_bounds(3 << form.base.w, form.base.w, u)) for u in form.base.u)


def acceptance(core: Multiplier) -> tuple[int, int]:
    """Period and lead of a multiplier in cycles, arguments of `MachineTiming`. Raises UnsupportedError for a multiplier
    that accepts operands only in cycles that the unit does not know."""
    period = getattr(core, "native_period", 1)
    if period > 1:
        raise UnsupportedError(
            f"in this form the multiplier accepts operands only in one cycle of {period}, which a unit that offers "
            "them in every issue slot would miss; take --io native"
        )
    return core.period, core.lead


@dataclass(frozen=True)
class MachineTiming:
    """Cycles of a unit around a multiplier with a contract and with at most ``sums`` sums in an instruction.

    ``period``, ``lead``: of the multiplier, in cycles. ``conditional_subtracts``: whether multiples of p are subtracted
    from sums that are not below them. ``least``: minimum cycles of an issue slot. ``starts``: as of `DesignInstance`,
    in periods. ``parity``: words of memories have a bit of parity, which is checked. ``adders``: whether sums can be
    others than selections. A unit that does not add accepts every form of numbers. Raises UnsupportedError if the unit
    cannot add the multiplier's numbers or subtract conditionally, results and operands differ in form, or no length of
    the issue slot suits.
    """

    contract: Contract
    sums: int
    period: int = 1
    lead: int = 0
    conditional_subtracts: bool = False
    least: int = 0
    starts: int = 1
    parity: bool = False
    adders: bool = True
    added = False

    def __post_init__(self) -> None:
        if self.sums < 0:
            raise UnsupportedError(f"an instruction has 0 or more sums, not {self.sums}")
        if self.conditional_subtracts and not isinstance(self.contract.operand, Binary):
            raise UnsupportedError("conditional subtraction needs binary numbers")
        if self.contract.operand != self.contract.result:
            raise UnsupportedError("a field unit needs a multiplier whose results have the form of its operands")
        _ = self._found

    @property
    def adding(self) -> bool:
        """Whether the unit adds numbers."""
        return self.sums > 0 and self.adders

    @property
    def slices(self) -> tuple[int, ...]:
        """Bits of each slice, the lowest first."""
        form = self.contract.operand
        return slices(form, self.parity) if self.adding else _cut(form.width, self.parity)

    @property
    def chained(self) -> bool:
        """Whether each slice acts one cycle later than the slice below it."""
        return not self.adding or not isinstance(self.contract.operand, Residues)

    @property
    def skew(self) -> int:
        """Cycles by which the highest slice acts later than the lowest."""
        return len(self.slices) - 1 if self.chained else 0

    @property
    def least_delay(self) -> int:
        """Minimum cycles from the address of b to the sum at the memory's port."""
        if self.adding and isinstance(self.contract.operand, Residues):
            return SUM + folds(self.contract.operand)
        return SUBTRACT + 1 + self.skew if self.conditional_subtracts else SUM

    @cached_property
    def _found(self) -> tuple[int, int, int, int]:
        """(issue_cycles, delay, move, write) of the shortest issue slot."""
        least = max(self.contract.timing.interval, 2 * (1 + self.sums), ISSUE_CYCLES_MIN, self.least)
        first = -(-least // self.period)
        for issue_cycles in range(first * self.period, (first + _PERIODS) * self.period, self.period):
            for delay in range(self.least_delay, self.least_delay + issue_cycles):
                offset_reads, sum_writes = self._reserved(issue_cycles, delay)
                free = set(range(issue_cycles)) - offset_reads - sum_writes
                if offset_reads & sum_writes or not free:
                    continue
                written = []
                for move in range(FIRST + TAKEN + self.skew, FIRST + issue_cycles + 3):
                    ready = move + self.lead + 1 + self.contract.timing.latency + CAPTURE
                    write = next(cycle for cycle in range(ready, ready + issue_cycles) if cycle % issue_cycles in free)
                    if write - ready + self.skew < issue_cycles:
                        written.append((write, move))
                if written:
                    write, move = min(written)
                    return issue_cycles, delay, move, write
        raise UnsupportedError(
            f"no issue slot of up to {issue_cycles} cycles suits this multiplier and {self.sums} sums in an instruction"
        )

    def kept(self, operand: int, k: int) -> range:
        """Cycles in which slice k keeps ``operand`` 0 or 1 of a product in its read register."""
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
        """Cycle in which the operands move to the multiplier's port."""
        return self._found[2]

    @property
    def accept(self) -> int:
        """Cycle in which the multiplier accepts the operands."""
        return self.move + self.lead + 1

    @property
    def arrive(self) -> int:
        """Cycle in which the product is valid at the multiplier's port."""
        return self.accept + self.contract.timing.latency

    @property
    def write(self) -> int:
        """Cycle in which the product is at the memory's port."""
        return self._found[3]

    @property
    def free(self) -> tuple[int, ...]:
        """Cycles of an issue slot in which a product can be written."""
        return tuple(sorted(set(range(self.issue_cycles)).difference(*self._reserved(self.issue_cycles, self.delay))))

    def _reserved(self, issue_cycles: int, delay: int) -> tuple[set[int], set[int]]:
        """Cycles of an issue slot in which port B reads multiples of p, and those in which it writes sums."""
        begins = [FIRST + 2 * j for j in range(1, self.sums + 1)]
        return (
            {(cycle + OFFSET_READ) % issue_cycles for cycle in begins if self.adders},
            {(cycle + delay) % issue_cycles for cycle in begins},
        )

    @property
    def drain(self) -> int:
        """Cycles from the end of the last issue slot until all results are written, at least 1."""
        last_sum = FIRST + 2 * self.sums + self.delay if self.sums else 0
        return max(1, max(self.write, last_sum) + self.skew + 2 - self.issue_cycles)

    @property
    def alignment(self) -> int:
        """Maximum cycles from the start of a run until the multiplier accepts a first, unused product."""
        return 2 * self.period + 3 if self.period > 1 else 3

    @property
    def earliest(self) -> int:
        """Cycle after a reset from which on a run may start: before it, the multiplier would accept that product later.
        A loaded modulus is awaited besides (`Load`)."""
        return 0 if self.contract.load else max(0, self.starts * self.period - self.alignment)

    @property
    def run_up(self) -> int:
        """Cycles from that acceptance to the first issue slot, which align all products to the multiplier's period."""
        found = self.issue_cycles - self.accept % self.issue_cycles
        return found if found > 2 else found + self.issue_cycles

    def cycles(self, instructions: int, threads: int) -> int:
        """Cycles of a run of a number of instructions; independent of operands and digits."""
        return self.alignment + self.run_up + instructions * threads * self.issue_cycles + self.drain

    def distances(self, threads: int) -> tuple[int, int]:
        """Distance in instructions of a product and of a sum, as in `DatapathSpec`."""
        instruction = threads * self.issue_cycles
        last_sum = 2 * self.sums + self.delay
        return -(-(self.write - FIRST + 1) // instruction), max(1, -(-(last_sum + 1) // instruction))


@dataclass(frozen=True)
class SlotTiming:
    """Cycles of a slot machine: it accepts an operation every ``interval`` cycles; ``distance`` as in `SlotMachine`."""

    contract: Contract
    interval: int
    distance: int
    sums = 0
    conditional_subtracts = False
    parity = False
    adders = False
    added = True
    earliest = 0

    @property
    def issue_cycles(self) -> int:
        """Cycles of an instruction for one thread."""
        return self.interval

    @property
    def access(self) -> int:
        """Cycles to write or read a number, during a run or not."""
        return 4 * self.interval

    def cycles(self, instructions: int, threads: int) -> int:
        """Cycles of a run of a number of instructions; independent of operands and digits."""
        return (instructions * threads + self.distance + 2) * self.interval

    def distances(self, threads: int) -> tuple[int, int]:
        """Distance in instructions of an operation, twice, as in `MachineTiming.distances`."""
        found = -(-self.distance // threads)
        return found, found


def unit(timing: MachineTiming | SlotTiming, threads: int) -> DatapathSpec:
    """What hardware with this timing can do with interleaved ``threads``, each with all slots."""
    room = DEPTHS[-1]
    distances = timing.distances(threads)
    return DatapathSpec(timing.sums, *distances, room, room, timing.added, timing.conditional_subtracts, timing.adders)


def busy_threads(timing: MachineTiming, distance: int = 1) -> int:
    """Minimum number of threads with which a product can be read ``distance`` instructions later."""
    return -(-(timing.write - FIRST + 1) // (timing.issue_cycles * distance))


def paced(timing: MachineTiming, threads: int, distance: int) -> MachineTiming:
    """The timing with the shortest issue slot with which a product can be read ``distance`` instructions later."""
    while timing.distances(threads)[0] > distance:
        least = max(timing.issue_cycles + 1, -(-(timing.write - FIRST + 1) // (threads * distance)))
        timing = replace(timing, least=least)
    return timing
