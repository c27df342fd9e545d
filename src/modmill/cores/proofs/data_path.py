# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Entries of rows executed by the netlist of a machine on unknown numbers, at unknown addresses, with anything around.

The multiplier is cut out; it is what its contract says: it accepts operands in its period and gives the product after
its latency. For each kind of entry that the programs have, with unknown numbers in all fields of addresses, unknown
digits and an unknown first slot of the thread, and with all other entries and rows unknown, is compared

    reads     both operands of the task, at number + base, in the cycles of `timing`
    product   the operands at the multiplier's port, from the first to the last cycle in which it reads them
    write     at number + base, in the cycle of `timing`: the product, or a + b + L, or a - b + L, of all slices;
              with a conditional subtraction this less T, unless it is below T; of a selection a + L or b + L, as the
              bit of the digit says, or only a or b where the unit has no adders
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from modmill.cores.proofs.closed_machine import QUEUE
from modmill.cores.proofs.surroundings import (
    BASE,
    INDEX,
    SLOTS_AT,
    Row,
    Surroundings,
    number,
)
from modmill.engines.machine.layout import (
    DOWN,
    OWN,
    OWN_ENTRY,
    SHARED,
    SHARED_ENTRY,
    UP,
    MicrocodeLayout,
)
from modmill.engines.machine.program_memory import table_shapes
from modmill.engines.machine.sequencer import ENTRY_AT
from modmill.engines.machine.timing import FIRST, OFFSET_READ, SUM
from modmill.proofs.arithmetic.polynomials import Expression
from modmill.proofs.arithmetic.word_rules import Bit, Bits

THEOREM = (
    "an entry of each kind, at any addresses, with any digits and slots, and with any other entries and rows before "
    "and after it: the netlist reads, adds, multiplies and writes as the entry says, in the cycles that the distances "
    "assume"
)
_SUM = "sequencer.unit.slice_{}.s"
SEEN = 2
"""Cycles from when the highest slice shows that a sum is below its multiple until the sum is selected and written."""
_Terms = list[tuple[int, Expression]]


@dataclass(frozen=True)
class Kind:
    """An entry at place ``at`` of its row, without the numbers of its slots: ``hows``, the bases of its operands."""

    at: int
    hows: tuple[int, ...]
    active: bool
    two: bool
    invert: bool
    trim: int
    lift: int
    select: int


def kinds(layout: MicrocodeLayout) -> list[Kind]:
    """The kinds of entries in the table."""
    found: dict[Kind, None] = {}
    at = 0
    for e in layout.table[0]:
        at = 0 if e.count else at + 1
        if at or e.active:
            hows = tuple(how for _, how in e.addresses)
            found[Kind(at, hows, e.active, e.two, e.invert, e.trim, e.lift, e.select)] = None
    return list(found)


def data_path_faults(around: Surroundings) -> Iterator[str]:
    """What is other than the entries say, as lines."""
    for kind in kinds(around.layout):
        for case in (0, 1) if kind.trim or kind.select else (None,):
            if what := _Task(around, kind, case).fault():
                name = "product" if kind.active else f"task {kind.at}"
                yield f"{name}, of bases {kind.hows}: {what}"


class _Task:
    """A run with one entry. ``case``: whether a sum is below its T, or the bit of the digit by which one selects."""

    def __init__(self, around: Surroundings, kind: Kind, case: Bit) -> None:
        self._around, self._kind = around, kind
        self._m, self._timing, self._layout = around.m, around.timing, around.layout
        self._fields: dict[str, Bits] = {}
        self._case = case
        self._before, self._after = list[Bit](), list[Bit]()
        self._carried: tuple[_Terms, _Terms] = [], []
        m = self._m
        self._digits = m.free("sequencer.table.digits")
        if kind.select:
            self._digits = (*self._digits[: kind.select - 1], case, *self._digits[kind.select :])
        entries: list[Bits] = [(None,) * len(m.named("sequencer.table.found")) for _ in range(2 + self._timing.sums)]
        entries[kind.at] = self._entry()
        registers = {BASE: m.free(BASE), SLOTS_AT: m.free(SLOTS_AT), INDEX: number(0, self._within())}
        registers |= self._loaded()
        self._begins = FIRST + 2 * kind.at
        sums = {self._begins: 1} if kind.at else {}
        self._row = Row(
            entries, registers, self._digits, sums=sums,
            below={self._begins + self._timing.least_delay - SEEN: case} if kind.trim else {},
        )  # fmt: skip

    def _within(self) -> int:
        return (self._layout.per_word - 1).bit_length()

    def _loaded(self) -> dict[str, Bits]:
        """Registers of multiples that SETUP loads."""
        if not self._layout.contract.load:
            return {}
        names = [
            f"sequencer.unit.slice_{s}.multiple_{k}"
            for k in range(len(self._layout.conditional_subtracts)) for s in range(len(self._timing.slices))
        ]  # fmt: skip
        return {name: self._m.free(name) for name in names}

    def _entry(self) -> Bits:
        """The bits of the entry, with unknown numbers of slots and unknown flags of the row."""
        lay, kind, m = self._layout, self._kind, self._m
        shape = list(table_shapes(lay).values())[bool(kind.at)]
        bits: list[Bit] = [None] * len(m.named("sequencer.table.found"))
        known: dict[str, Bits] = {
            name: number(int(getattr(kind, name)), 8) for name, _ in shape if name in Kind.__dataclass_fields__
        }
        for name, how in zip(lay.fields, kind.hows, strict=True):
            known[name] = self._fields[name] = m.words.unknown(shape[name].width, "field", name)
            known[f"{name}_add"] = number(lay.bases(name).index(how), 8)
        for name, values in known.items():
            field = shape[name]
            bits[field.offset : field.offset + field.width] = values[: field.width]
        return tuple(bits)

    def fault(self) -> str:
        """What is other than the entry says; empty if nothing is."""
        around, timing = self._around, self._timing
        around.begin(self._row)
        last = self._begins + timing.delay
        if not self._kind.at:
            read = [around.core.read_in(k, bit)[1] for k in range(2) for bit in range(sum(timing.slices))]
            last = timing.accept + max(read)
        if self._kind.at and timing.adders:
            self._through_sums()
        around.run(last + timing.skew + 1)
        whole: dict[str, Bits] = {}
        for name, late in (("b", 0), ("a", 1)):
            word: list[Bit] = []
            for s in range(len(timing.slices)):
                cycle = self._begins + late + s * timing.chained
                parts = around.m.parts(s)
                reads = [self._read(cycle, (s, k), self._address(name)) for k in range(len(parts))]
                if None in reads:
                    return f"operand {name} is not read in cycle {cycle}"
                word += around.m.word_at(s, [r for r in reads if r is not None], cycle)[: timing.slices[s]]
            whole[name] = tuple(word)
        return self._sum(whole) if self._kind.at else self._product(whole)

    def _read(self, cycle: int, place: tuple[int, int], wanted: Expression) -> Bits | None:
        """The address of a read port in this cycle, if it is the one that is wanted."""
        return next((a for a in self._m.read[cycle, place] if self._m.equal(a, wanted)), None)

    def _address(self, name: str) -> Expression:
        """The number of an operand plus its base."""
        make, words, lay = self._m.make, self._m.words, self._layout
        how = dict(zip(lay.fields, self._kind.hows, strict=True))[name]
        digit = words.integer(self._digits[: lay.digit_bits])
        odd, own = words.integer(self._digits[:1]), words.integer(self._m.free(SLOTS_AT))
        shared = make.number(lay.shared_base)
        base, factor, moved = {
            OWN: (own, 0, digit), OWN_ENTRY: (own, 1, digit), UP: (own, 1, odd), DOWN: (own, -1, odd),
            SHARED: (shared, 0, digit), SHARED_ENTRY: (shared, 1, digit),
        }[how]  # fmt: skip
        return make.sum([(1, words.integer(self._fields[name])), (1, base), (factor, moved)])

    def _product(self, whole: dict[str, Bits]) -> str:
        if not any(self._offered(dict(zip(order, whole.values(), strict=True))) for order in ((0, 1), (1, 0))):
            return "other operands arrive at the multiplier"
        pushed = [w for w in self._m.written if w.where == QUEUE and 0 < w.cycle - ENTRY_AT <= self._around.cycles]
        (*address, stored) = pushed[0].word if pushed else (None,)
        if len(pushed) != 1 or stored != 1 or not self._m.equal(tuple(address), self._address("destination")):
            return "another destination waits for the product"
        return ""

    def _offered(self, operands: dict[int, Bits]) -> bool:
        """Whether operands are at the multiplier's ports whenever it reads them."""
        around, accept = self._around, self._timing.accept
        return all(
            around.at_core[accept + late][operand][bit] == word[bit]
            for operand, word in operands.items() for bit in range(len(word))
            for late in range(around.core.read_in(operand, bit)[0], around.core.read_in(operand, bit)[1] + 1)
        )  # fmt: skip

    def _through_sums(self) -> None:
        """Run through the three additions of all slices. Each carry to the next slice is noted and is an unknown bit
        from then on; so is each sum before its conditional subtraction."""
        count = len(self._timing.slices)
        for c in range(count + 2):
            self._around.run(self._begins + SUM - 2 + c)
            for which in range(3 if self._kind.trim else 2):
                if 0 <= c - which < count - 1:
                    self._note_carry(which, c - which)
            if self._kind.trim and 0 < c <= count:
                name = _SUM.format(c - 1)
                self._before += self._m.bits(self._m.named(name))
                self._m.put(name, self._m.free(name))
            if self._kind.trim and c > 1:
                self._after += self._m.bits(self._m.named(f"sequencer.unit.slice_{c - 2}.t"))

    def _note_carry(self, which: int, s: int) -> None:
        """Note carry ``which`` out of slice s, and by how much the bits that are unknown change the sum."""
        m, name = self._m, f"sequencer.unit.slice_{s}.carries_out"
        found = m.bits(m.named(name)[which : which + 1])
        bit = m.words.unknown(1, "carry", which, s)
        m.put(name, bit, which)
        if None not in found:
            apart = m.make.sum([(1, m.words.integer(bit)), (-1, m.words.integer(found))])
            self._carried[which > 1].append((1 << sum(self._timing.slices[: s + 1]), apart))

    def _sum(self, whole: dict[str, Bits]) -> str:
        """The sum or difference that is stored, and whether it is seen to be below its multiple."""
        m, timing, kind, around = self._m, self._timing, self._kind, self._around
        make, words = m.make, m.words
        value = [(1, words.integer(whole["a"])), (-1 if kind.invert else 1, words.integer(whole["b"]))]
        if kind.select:
            value = value[:1] if self._case else value[1:]
        first = 0
        for s, width in enumerate(timing.slices if timing.adders else ()):
            place = make.number(self._layout.offset_base + kind.lift)
            cycle = self._begins + OFFSET_READ + s * timing.chained
            reads = [self._read(cycle, (s, k), place) for k in range(len(m.parts(s)))]
            if None in reads:
                return "the multiple of p is not read"
            word = m.word_at(s, [r for r in reads if r is not None], cycle)
            value.append((1 << first, words.integer(word[:width])))
            first += width
        found = make.sum(value)
        if kind.trim:
            if not m.equal(tuple(self._before), make.sum([(1, found), *self._carried[0]])):
                return "the sum is another one"
            self._carried[0].clear()
            found = make.sum(
                (1 << sum(timing.slices[:s]), words.integer(m.free(_SUM.format(s)))) for s in range(len(timing.slices))
            )
            less, below, after = make.sum([(1, found), (-1, self._multiple())]), around.seen_below, self._after
            if None in (*below, *after):
                return "no multiple is subtracted"
            # 2^N below + s - T is a word of N bits, so below says that s - T is negative
            whole_after = words.integer(tuple(after))
            borrow = (1 << len(after), words.integer(below))
            if make.sum([(1, less), borrow, *self._carried[1], (-1, whole_after)]).constant != 0:
                return "whether a sum is below its multiple is seen otherwise"
            found = found if self._case else make.sum([(1, less), *self._carried[1]])
        return self._stored(self._begins + timing.delay, make.sum([(1, found), *self._carried[0]]))

    def _multiple(self) -> Expression:
        """T of the conditional subtraction."""
        make, k = self._m.make, self._kind.trim - 1
        if not self._layout.contract.load:
            return make.number(self._layout.conditional_subtracts[k] * self._layout.contract.p)
        terms, first = [], 0
        for s, width in enumerate(self._timing.slices):
            terms.append((1 << first, self._m.words.integer(self._m.free(f"sequencer.unit.slice_{s}.multiple_{k}"))))
            first += width
        return make.sum(terms)

    def _stored(self, cycle: int, value: Expression) -> str:
        """What is other in the writes of this value into all slices, the lowest in this cycle."""
        m, timing, address = self._m, self._timing, self._address("destination")
        word: list[Bit] = []
        for s, width in enumerate(timing.slices):
            stored: list[Bit] = []
            for k in range(len(m.parts(s))):
                here = [w for w in m.written if w.where == (s, k) and w.cycle == cycle + s * timing.chained]
                if [w.enable for w in here] != [1] or not m.equal(here[0].address, address):
                    return f"slice {s} does not write the destination"
                stored += here[0].word
            word += stored[:width]  # without the parity
        return "" if m.equal(tuple(word), value) else "another value is written"
