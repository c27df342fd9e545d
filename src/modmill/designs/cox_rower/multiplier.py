# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The cox-rower machine: RNS Montgomery multiplication on a ring of rowers, each a multiplier and a block RAM.

Rower i serves a_i and b_i. Rowers stand in rows of ``columns`` (1: Kawamura's base extension, KBE; 2 and more: the
hierarchical one, HBE). The ring moves the values of an extension (KBE: xi and zeta; HBE: the unreduced X_r and Z_r of a
row, which each rower folds modulo its own modulus) by one row in each cycle, n / columns times, so a data wire connects
only neighbours. A sum is reduced once, after its last term. KBE folds in a loop beside the multiplier; HBE folds in a
pipeline that takes a value every cycle.

With n / m rowers, rower i serves the channels k n / m + i, k < m, of each base. It has m registers in the ring, loaded
one after another. The ring then holds all n values, and turns m times, once for each channel of a rower.

The machine runs a periodic program. The control word of each cycle depends on the phase and on the slot numbers of the
products in flight. It reaches the rowers through a tree of registers. Timing does not depend on data.
"""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from modmill.contract import Timing
from modmill.designs.cox_rower import operations
from modmill.designs.cox_rower.chart import chart
from modmill.designs.cox_rower.constants import Constants, Tables
from modmill.designs.cox_rower.control import Control, Phase, announce
from modmill.designs.cox_rower.operations import Kind
from modmill.designs.cox_rower.rowers import CoxRowerArray, raise_alarm
from modmill.designs.cox_rower.schedule import Program, memory_plan
from modmill.designs.cox_rower.shape import OPERAND, TREE
from modmill.interface import Multiplier


class ProductSlots:
    """The slots of the products in flight: a product takes one when its operands are accepted and frees it when its
    result is read, in the same order.

    ``depth``: words of a block RAM; ``trash``: the slot for writes that belong to no product. Raises UnsupportedError
    as `memory_plan` does.
    """

    def __init__(self, p: Program) -> None:
        self._program = p
        self.depth, self._first, self._count = memory_plan(p)
        self.trash = self.depth // p.shape.slot - 1
        self._word_bits = p.shape.slot.bit_length() - 1
        self._bits = self.depth.bit_length() - 1 - self._word_bits
        oldest = -(-(p.valid - p.origin) // p.interval) + 1
        self._ages = [Signal(self._bits, name=f"slot{k}", init=self.trash) for k in range(oldest)]
        self._full = [Signal(name=f"full{k}") for k in range(oldest)]
        self._room = Signal(range(self._count + 1), name="room", init=self._count)
        self._take, self._freed = Signal(name="take"), Signal(name="freed")

    def accept(self, m: Module, core: Multiplier, phase: Phase, blocked: Sequence[Value]) -> None:
        """Accept operands in the program's cycle if a slot is free and no signal of ``blocked`` is set."""
        p, ages, full, take = self._program, self._ages, self._full, self._take
        next_in = Signal(self._bits, name="next_in", init=self._first)
        taking = Signal()
        may_take = phase.at(p.origin - 1) & core.i_valid & (self._room != 0)
        for signal in blocked:
            may_take = may_take & ~signal
        m.d.comb += take.eq(may_take)
        with m.If(phase.at(p.origin - 1)):
            m.d.sync += [taking.eq(take), ages[0].eq(Mux(take, next_in, self.trash)), full[0].eq(take)]
            for k in range(1, len(ages)):
                m.d.sync += [ages[k].eq(ages[k - 1]), full[k].eq(full[k - 1])]
        with m.If(take):
            m.d.sync += next_in.eq(self._following(next_in))
        m.d.sync += self._room.eq(self._room - take + self._freed)
        ready = Signal()
        m.d.sync += ready.eq(phase.at(p.accept - 1) & taking)
        m.d.comb += core.i_ready.eq(ready)

    def give(self, m: Module, core: Multiplier, phase: Phase) -> tuple[Signal, Signal, Value]:
        """Read results, which wait in their slots, when the output is free.

        Returns the number of the slot that is read, whether one is read, and whether no product is in flight or waits.
        """
        p, full = self._program, self._full
        reading = min(p.outputs) - TREE - 2  # the cycle of the decision; the slot's number is visible after it
        age = (reading - p.origin) // p.interval
        waiting = Signal(range(self._count + 2))
        going = Signal()
        leave = Signal()
        m.d.comb += [
            leave.eq(phase.at(reading) & ((waiting != 0) | full[age]) & (~core.o_valid | core.o_ready)),
            self._freed.eq(leave),
        ]
        with m.If(phase.at(reading)):
            m.d.sync += going.eq(leave)
        m.d.sync += waiting.eq(waiting + (phase.at(reading) & full[age]) - leave)
        slot_out = Signal(self._bits)
        next_out = Signal(self._bits, name="next_out", init=self._first)
        with m.If(leave):
            m.d.sync += [slot_out.eq(next_out), next_out.eq(self._following(next_out))]
        announce(m, core, phase.at(p.valid - 2) & going)
        idle = (self._room == self._count) & (waiting == 0) & ~self._take & ~going & ~core.o_valid
        return slot_out, going, idle

    def address(self, slot: Value, value: operations.Value) -> Value:
        """The address of a word in a slot."""
        return Cat(Const(self._program.shape.words.index(value), self._word_bits), slot)

    def held(self, value: operations.Value, cycle: int) -> Value:
        """The address of a word of the product that is in the given cycle of the program."""
        p = self._program
        return self.address(self._ages[(cycle - TREE - 1 - p.origin) // p.interval], value)

    @property
    def idle_address(self) -> int:
        """The address in cycles that set none: a word of the trash slot."""
        return self.trash << self._word_bits

    def _following(self, slot: Signal) -> Value:
        return Mux(slot == self.trash - 1, self._first, slot + 1)


class CoxRower(Multiplier):
    """The whole machine with the multiplier interface; a number is its residues over A, then its x~_j over B.

    Operands are read word by word before they are accepted, and results wait in their slots until they are read, so
    there are no queues. Cost: one DSP block (several for w > 17) and one block RAM for each rower.

    ``loadable``: stream k writes the constants of another modulus, one word for all rowers at a time, in the order of
    `modulus_words`. The first word waits until no product is in flight. One word is accepted in each interval, and no
    operands until the last word. Cost: a multiplexer of one word in every rower. ``exchanged``: as in `Constants`; with
    loaded bases all constants are loaded, which costs a bit more of the control word, and in every rower a register of
    a bit for each of its channels and a gate for each bit that selects the modulus of the fold.

    A ``checked`` shape has one rower more, for the modulus 2^w, and the output o_alarm. The word of a number modulo 2^w
    is the last over A. Cost: that rower, and a comparison of two words.
    """

    kept = ("row", "rower", "branch", "check_rower")

    def __init__(self, p: Program, tables: Tables, *, loadable: bool = False, exchanged: Sequence[bool] = ()) -> None:
        self._program, self._constants, self._loadable = p, Constants(p, tables, exchanged), loadable
        shape = p.shape
        width, k = shape.number_words * shape.w, len(shape.all_rowers) * shape.w if loadable else 0
        super().__init__(width, width, width, period=p.interval, lead=p.lead, k=k, alarm=shape.checked)

    def modulus_words(self) -> list[int]:
        """The words of stream k that load the modulus of this instance."""
        return self._constants.modulus_words()

    @property
    def load_cycles(self) -> int:
        """The most cycles from the first accepted word of stream k to the first accepted operands."""
        return len(self._constants.modulus_addresses) * self._program.interval + self._program.lead

    @property
    def timing(self) -> Timing:
        return self._program.timing

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        p, loadable = self._program, self._loadable
        shape = p.shape
        slots = ProductSlots(p)
        phase = Phase(m, p)  # cycle 0 after reset is cycle `accept` of the first product
        loading = Signal()
        slots.accept(m, self, phase, (loading, self.k_valid) if loadable else ())
        slot_out, going, idle = slots.give(m, self, phase)

        # ---- the control word
        control = Control(p, slots.depth, phase)
        for k, op in enumerate(shape.of(Kind.TAKE)):
            control.store(slots.held(op.result, p.start(op)), p.start(op), source=k)
        control.product(slots.held)
        for op in shape.of(Kind.GIVE):
            control.put("word", p.start(op), slots.address(slot_out, op.result))
            field = "out_w" if op.result.letter == "w" else "out_zeta"
            control.put(field, p.start(op) + OPERAND - 1, going.shift_left(op.k))
        if loadable:
            control.load(m, self._constants.modulus_addresses, self.k_valid, self.k_ready, idle, loading)
        control.drive(m, slots.idle_address)

        # ---- rows, control tree, ring and cox
        chain = CoxRowerArray(control, self._constants, loadable)
        chain.build(m, lambda i: self._connect(m, chain, i))
        if chain.check:
            differ = chain.check.w_out != chain.check.zeta_out  # the two residues modulo 2^w of the result
            raise_alarm(m, self.o_alarm, self.o_valid & differ)
        registers = chain.registers(self)
        self.probes = [(step.name, registers[step.unit], step.end) for step in chart(p).steps]
        return m

    def _connect(self, m: Module, chain: CoxRowerArray, i: int) -> None:
        """Connect the operands, the words of stream k and the results of rower i to the ports."""
        w, (in_a, in_b) = self._program.shape.w, self._program.shape.places(i)
        parts = [port.word_select(j, w) for port in (self.i_a, self.i_b) for j in (*in_a, *in_b)]
        parts += [self.k_m.word_select(i, w)] if self._loadable else []
        m.d.comb += chain.outside(i).eq(Cat(*parts))
        for k, (a, b) in enumerate(zip(in_a, in_b, strict=True)):
            over_a, over_b = chain.result(i, k)
            if a != b:  # of a redundant modulus the residue that the first extension makes is the result
                m.d.comb += self.o_r.word_select(a, w).eq(over_a)
            m.d.comb += self.o_r.word_select(b, w).eq(over_b)
