# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The cox-rower machine as a slot machine: numbers stay in the rowers, and an operation addresses them by slot.

One operation:   slot[d] = slot[a] slot[b] A^-1,  or  (slot[a] slot[b] + slot[c] slot[e]) A^-1   (mod p)

Two products are added before the reduction, which costs one more multiplication in each base, but no reduction (HBE
paper, Section V: 1 MR for 2 multiplications). With A mod p in a slot, an operation adds; with -A mod p it subtracts:

    sum   a A + c A        difference   a A + c (p - A)        negative   c (p - A)

Every result is therefore reduced, and below the same bound. A number is kept as x mod a_i and x~_j in two words of
every rower's block RAM. The machine accepts one operation in each interval and does not wait for results: an operation
may read the result of another that was accepted at least `distance` intervals earlier. Numbers enter and leave through
ports of their own, one of each in an interval, in cycles in which no operation uses the block RAMs' port.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from modmill.contract import UnsupportedError
from modmill.designs.cox_rower import operations
from modmill.designs.cox_rower.constants import Constants, Tables
from modmill.designs.cox_rower.control import Control, Phase, announce
from modmill.designs.cox_rower.operations import Kind
from modmill.designs.cox_rower.rowers import CoxRowerArray, Rower, raise_alarm
from modmill.designs.cox_rower.schedule import BLOCK_WORDS, Program
from modmill.designs.cox_rower.shape import OPERAND, TREE
from modmill.interface import SlotMachine

OPERATION = ("destination", "a", "b", "c", "e")


@dataclass(frozen=True)
class UnderWay:
    """Registers of the operations in flight, indexed by age in intervals.

    ``named``: the slot numbers of each field of `OPERATION`; ``full``: whether there is an operation; ``sums``: whether
    it adds two products; ``places``: the slot of its intermediate words.
    """

    named: dict[str, list[Signal]]
    full: list[Signal]
    sums: list[Signal]
    places: list[Signal]


class CoxSlots(SlotMachine):
    """The machine with ``numbers`` slots. A number at its ports is a `ResiduePair`: words over A, then over B. A
    ``checked`` shape compares the two residues modulo 2^w of every operation, and has the output o_alarm.

    Timing does not depend on numbers or slots. Cost: that of `CoxRower`, and registers for the slot numbers of the
    operations in flight. Latency: the cycles of ``distance`` intervals from an operation to the first one that can use
    its result. Raises UnsupportedError if the block RAMs are too small for the numbers.
    """

    kept = ("row", "rower", "branch", "check_rower")

    def __init__(
        self, p: Program, tables: Tables, numbers: int, *, loadable: bool = False, exchanged: Sequence[bool] = ()
    ) -> None:
        if not p.shape.numbered:
            raise ValueError("the program is not one for numbered slots")
        self._program, self._constants, self._loadable = p, Constants(p, tables, exchanged), loadable
        self.numbers = numbers
        self._slot_bits = numbers.bit_length()  # one extra slot takes writes that belong to no operation
        self._plan()
        super().__init__(
            self._slot_bits,
            p.shape.number_words * p.shape.w,
            interval=p.interval,
            distance=p.distance,
            k=len(p.shape.all_rowers) * p.shape.w if loadable else 0,
            alarm=p.shape.checked,
        )
        self.modulus_words = self._constants.modulus_words() if loadable else ()

    def _plan(self) -> None:
        """Divide the memory: constants and words of operations in flight in the lower half, numbers in the upper."""
        p, shape = self._program, self._program.shape
        reads = [p.start(op) for op in shape.of(Kind.TERM, Kind.ROW_SUM)]
        reads += [p.start(op, "read") for op in shape.of(Kind.LOAD) if shape.loop]
        self._under_way = -(-(max(reads) - p.origin) // p.interval) + 2
        self._first = -(-shape.constants // shape.slot)
        half = 1 << max(self._slot_bits + 1, ((self._first + self._under_way) * shape.slot - 1).bit_length())
        if 2 * half > BLOCK_WORDS:
            raise UnsupportedError(
                f"{shape.constants} constants, {self._under_way} operations in flight and {self.numbers} numbers need "
                f"{2 * half} words of block RAM, of {BLOCK_WORDS}"
            )
        self._depth = 2 * half

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        p, loadable = self._program, self._loadable
        phase = Phase(m, p)
        take, loading = (Signal() for _ in range(2))
        m.d.comb += [
            self.i_ready.eq(phase.at(p.origin - 1) & ~(loading | self.k_valid if loadable else Const(0))),
            take.eq(self.i_valid & self.i_ready),
        ]
        under_way = self._under_way_registers(m, phase, take)
        x_slot = self._enter(m, phase)
        q_slot, going = self._leave(m, phase)

        # ---- the control word
        control = Control(p, self._depth, phase)
        self._address(control, under_way, x_slot, q_slot, going)
        if loadable:
            idle = ~Cat(under_way.full).any() & ~take
            control.load(m, self._constants.modulus_addresses, self.k_valid, self.k_ready, idle, loading)
        control.drive(m, self._number(Const(self.numbers, self._slot_bits), False), clear=True)

        # ---- rows, control tree, ring and cox
        chain = CoxRowerArray(control, self._constants, loadable)
        chain.build(m, lambda i: self._connect(m, chain, i, control.word.h_source - 2))
        if chain.check:
            self._compare(m, phase, chain.check, under_way)
        return m

    def _under_way_registers(self, m: Module, phase: Phase, take: Signal) -> UnderWay:
        """Registers of the operations in flight, the youngest first."""
        p, shape, nothing = self._program, self._program.shape, self.numbers
        last = max(*(p.residue(op) for op in shape.of(Kind.REDUCE)), p.start(shape.of(Kind.TERM)[-1]))
        oldest = max(self._under_way + 1, -(-(last - p.origin) // p.interval) + 1)
        named = {
            name: [Signal(self._slot_bits, name=f"{name}{k}", init=nothing) for k in range(oldest)]
            for name in OPERATION
        }
        full = [Signal(name=f"full{k}") for k in range(oldest)]
        sums = [Signal(name=f"sum{k}") for k in range(oldest)]
        next_place = Signal(self._depth.bit_length() - 1 - shape.slot.bit_length(), init=self._first)
        places = [Signal(len(next_place), name=f"place{k}", init=self._first) for k in range(oldest)]
        with m.If(phase.at(p.origin - 1)):
            end = self._first + self._under_way - 1
            m.d.sync += next_place.eq(Mux(next_place == end, self._first, next_place + 1))
            m.d.sync += [full[0].eq(take), sums[0].eq(self.i_sum), places[0].eq(next_place)]
            m.d.sync += [named[name][0].eq(Mux(take, getattr(self, f"i_{name}"), nothing)) for name in OPERATION]
            for k in range(1, oldest):
                m.d.sync += [full[k].eq(full[k - 1]), sums[k].eq(sums[k - 1]), places[k].eq(places[k - 1])]
                m.d.sync += [named[name][k].eq(named[name][k - 1]) for name in OPERATION]
        return UnderWay(named, full, sums, places)

    def _enter(self, m: Module, phase: Phase) -> Signal:
        """Accept a number from outside when its second word is read. Returns its slot, fixed before the first word."""
        inputs = [self._program.start(op) for op in self._program.shape.of(Kind.TAKE)]
        entering, x_slot = Signal(), Signal(self._slot_bits)
        with m.If(phase.at(min(inputs) - TREE - 2)):
            m.d.sync += [entering.eq(self.x_valid), x_slot.eq(Mux(self.x_valid, self.x_slot, self.numbers))]
        accepted = Signal()
        m.d.sync += accepted.eq(phase.at(max(inputs) - 2) & entering)
        m.d.comb += self.x_ready.eq(accepted)
        return x_slot

    def _leave(self, m: Module, phase: Phase) -> tuple[Signal, Signal]:
        """Read a number for the output. Returns its slot, and whether a number leaves."""
        reading = min(self._program.outputs) - TREE - 2
        leave, going, q_slot = Signal(), Signal(), Signal(self._slot_bits)
        m.d.comb += [
            leave.eq(phase.at(reading) & self.q_valid & (~self.o_valid | self.o_ready)),
            self.q_ready.eq(leave),
        ]
        with m.If(phase.at(reading)):
            m.d.sync += [going.eq(leave), q_slot.eq(self.q_slot)]
        announce(m, self, phase.at(self._program.valid - 2) & going)
        return q_slot, going

    def _number(self, slot: Value, over_b: bool) -> Value:
        """The address of a number's word over A, or ``over_b``."""
        return Cat(Const(int(over_b), 1), slot, Const(0, self._depth.bit_length() - 3 - self._slot_bits), Const(1, 1))

    def _address(self, control: Control, under_way: UnderWay, x_slot: Signal, q_slot: Signal, going: Signal) -> None:
        """Set the control word for operations, for numbers that enter, and for numbers that leave."""
        p, shape = self._program, self._program.shape
        word_bits = shape.slot.bit_length() - 1
        numbers: dict[operations.Value, tuple[str, bool]] = {}
        for op in shape.of(Kind.MULTIPLY_TWO):
            numbers |= {value: (name, op.over_b) for value, name in zip(op.reads, OPERATION[1:], strict=True)}
        numbers |= {op.result: ("destination", op.over_b) for op in shape.of(Kind.REDUCE)}

        def age(cycle: int) -> int:
            return (cycle - TREE - 1 - p.origin) // p.interval

        def held(value: operations.Value, cycle: int) -> Value:
            if value in numbers:
                name, second = numbers[value]
                return self._number(under_way.named[name][age(cycle)], second)
            return Cat(Const(shape.words.index(value), word_bits), under_way.places[age(cycle)], Const(0, 1))

        for k, op in enumerate(shape.of(Kind.TAKE)):
            control.store(self._number(x_slot, k == 1), p.start(op), source=k)
        control.product(held, lambda cycle: under_way.sums[age(cycle)])
        for op in reversed(shape.of(Kind.GIVE)):  # w, then zeta
            control.put("word", p.start(op), self._number(q_slot, numbers[op.result][1]))
            control.put(f"out_{op.result.letter}", p.start(op) + OPERAND - 1, going)

    def _compare(self, m: Module, phase: Phase, check: Rower, under_way: UnderWay) -> None:
        """Compare the two residues modulo 2^w of every operation, when the second one leaves the fold."""
        p = self._program
        zeta, w = (p.residue(op) for op in p.shape.of(Kind.REDUCE))
        first, second = Signal(name="check_first"), Signal(name="check_second")
        m.d.sync += [first.eq(phase.at(zeta - 1)), second.eq(phase.at(w - 1))]
        count = 1 + (w - zeta - 1) // p.interval
        held = [Signal(p.shape.w, name=f"check{k}", reset_less=True) for k in range(count)]
        with m.If(first):
            m.d.sync += [one.eq(before) for one, before in zip(held, [check.residue, *held], strict=False)]
        there = under_way.full[(w - p.origin) // p.interval]
        raise_alarm(m, self.o_alarm, second & there & (held[-1] != check.residue))

    def _connect(self, m: Module, chain: CoxRowerArray, i: int, unused: int) -> None:
        """Connect the number ports and stream k to rower i."""
        w, ((a,), (b,)) = self._program.shape.w, self._program.shape.places(i)
        parts: list[Value] = [self.x_number.word_select(a, w), self.x_number.word_select(b, w)]
        parts += [Const(0, unused * w)]
        parts += [self.k_m.word_select(i, w)] if self._loadable else []
        m.d.comb += chain.outside(i).eq(Cat(*parts))
        over_a, over_b = chain.result(i, 0)
        if a != b:
            m.d.comb += self.o_number.word_select(a, w).eq(over_a)
        m.d.comb += self.o_number.word_select(b, w).eq(over_b)
