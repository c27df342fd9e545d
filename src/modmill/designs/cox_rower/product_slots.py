# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The slots of the rowers' memories that products under way take in turn."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.hdl import Value as Bits

from modmill.design import Multiplier
from modmill.designs.cox_rower.control import Phase, announce
from modmill.designs.cox_rower.operations import Value
from modmill.designs.cox_rower.schedule import Programme, memory_plan
from modmill.designs.cox_rower.shape import TREE


class ProductSlots:
    """A product gets a slot when its operands are accepted and frees it when its result is read, in the same order.

    ``depth``: words of a block RAM; ``trash``: the slot that takes what belongs to no product. Raises Refusal as
    `memory_plan` does.
    """

    def __init__(self, p: Programme) -> None:
        self._programme = p
        self.depth, self._first, self._count = memory_plan(p)
        self.trash = self.depth // p.shape.slot - 1
        self._word_bits = p.shape.slot.bit_length() - 1
        self._bits = self.depth.bit_length() - 1 - self._word_bits
        oldest = -(-(p.valid - p.origin) // p.interval) + 1
        self._ages = [Signal(self._bits, name=f"slot{k}", init=self.trash) for k in range(oldest)]
        self._full = [Signal(name=f"full{k}") for k in range(oldest)]
        self._room = Signal(range(self._count + 1), name="room", init=self._count)
        self._take, self._freed = Signal(name="take"), Signal(name="freed")

    def accept(self, m: Module, core: Multiplier, phase: Phase, blocked: Sequence[Bits]) -> None:
        """Accept operands in the programme's cycle where there is room and nothing of ``blocked`` is set."""
        p, ages, full, take = self._programme, self._ages, self._full, self._take
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

    def give(self, m: Module, core: Multiplier, phase: Phase) -> tuple[Signal, Signal, Bits]:
        """Give out results, which wait in their slots until they are read: the slot that is read, whether one is, and
        whether no product is under way or waits."""
        p, full = self._programme, self._full
        reading = min(p.outputs) - TREE - 2  # the decision; the slot's number is then visible
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

    def address(self, slot: Bits, value: Value) -> Bits:
        """Address of a word of a slot."""
        return Cat(Const(self._programme.shape.words.index(value), self._word_bits), slot)

    def held(self, value: Value, cycle: int) -> Bits:
        """Address of a word of the product under way, for the rowers' cycle."""
        p = self._programme
        return self.address(self._ages[(cycle - TREE - 1 - p.origin) // p.interval], value)

    @property
    def idle_address(self) -> int:
        """Address in cycles without one."""
        return self.trash << self._word_bits

    def _following(self, slot: Signal) -> Bits:
        return Mux(slot == self.trash - 1, self._first, slot + 1)
