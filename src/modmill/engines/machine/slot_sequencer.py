# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The row sequencer over a machine with numbered slots: residues stay in the rowers from first row to last.

The machine takes an operation every interval, and says when; so the sequencer needs no counter of its own. A row
without an operation lets an interval pass.
"""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.design import SlotMachine
from modmill.engines.machine.layout import COUNT_BITS, DOWN, OWN, OWN_ENTRY, PACK, SHARED, SHARED_ENTRY, UP, RowLayout
from modmill.engines.machine.program_memory import DIGITS, RowTable, chosen
from modmill.engines.machine.sequencer import more_passes
from modmill.engines.machine.timing import NumberedRhythm
from modmill.rtl.delay import later

_FETCH = max(DIGITS + 2, 4) + 3
"""Cycles from the place of an entry and the digits to the slots' addresses."""
_SETTLE = 3
"""Cycles in which a number from outside may still change, or one that leaves is kept."""


class NumberedRowSequencer(wiring.Component):
    """Slot machine, table and digits: runs one programme for all contexts; ports and meaning as of `RowSequencer`.

    Numbers take ``store_cycles`` in and ``read_cycles`` out, whatever the machine is doing, and a run ``cycles``.
    Cost beside the machine: the table, five addresses in registers.
    """

    def __init__(self, core: SlotMachine, layout: RowLayout) -> None:
        self.core, self.layout = core, layout
        beat = layout.rhythm
        assert isinstance(beat, NumberedRhythm)
        if core.interval <= _FETCH:
            raise ValueError(f"operations of {core.interval} cycles are too short, at least {_FETCH + 1}")
        self.rhythm = beat
        address, width = len(core.i_a), layout.contract.operand.width
        super().__init__({
            "start": In(1), "busy": Out(1), "programme": In(range(max(2, len(layout.programmes)))),
            "s_write": In(1), "s_ready": Out(1), "s_address": In(address), "s_data": In(width), "s_trim": In(0),
            "s_ask": In(1), "s_valid": Out(1), "s_read": In(address), "s_q": Out(width),
            "d_write": In(1), "d_address": In(range(max(2, layout.digit_depth))), "d_data": In(PACK),
            **({"passes": In(COUNT_BITS)} if layout.counted else {}),
        })  # fmt: skip

    def cycles(self, programme: int, passes: int | None = None) -> int:
        """Cycles from ``start`` until it is not busy: the same for all numbers and digits."""
        return self.rhythm.cycles(self.layout.counting(programme, passes).rows, self.layout.contexts) + 3

    @property
    def store_cycles(self) -> int:
        """Cycles of ``s_write`` for one number."""
        return self.rhythm.access

    @property
    def read_cycles(self) -> int:
        """Cycles of ``s_ask`` for one number."""
        return self.rhythm.access

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        lay, core = self.layout, self.core
        m.submodules.core = core
        m.submodules.table = table = RowTable(lay)
        e = table.product
        _, firsts, loops = lay.table
        self._numbers(m)

        # ---- rows: which is done, for which context, with which digit
        base = Signal(len(table.at), reset_less=True)
        context, index = Signal(range(max(2, lay.contexts))), Signal(range(lay.per_word * lay.stride + 1))
        digits_at, slots_at = (
            Signal(len(self.d_address), name="digits_at"),
            Signal(len(self.s_read), name="slots_at"),
        )
        left = Signal(COUNT_BITS, reset_less=True)
        again, last_context, last = (Signal(name=name) for name in ("again", "last_context", "last"))
        following = Signal(len(base), reset_less=True)
        m.d.comb += table.at.eq(base)
        m.d.sync += [
            again.eq(e.again & (left != 0)), last_context.eq(context == lay.contexts - 1),
            last.eq(e.last & ~(e.again & (left != 0))),
            following.eq(Mux(again, chosen(self.programme, loops), base + 1)),
        ]  # fmt: skip
        adds = self._additions(m, table, slots_at, index, digits_at)
        codes = lay.additions
        for name in lay.fields:
            use = codes["destination" if name == "destination" else "read"]
            number = later(m, getattr(e, name), f"{name}_number")
            added = later(m, chosen(getattr(e, f"{name}_add"), [adds[how] for how in use]), f"{name}_plus")
            m.d.sync += getattr(core, f"i_{name}").eq(number + added)
        active, two = later(m, later(m, e.active, "active_0"), "active"), later(m, later(m, e.two, "two_0"), "two")
        running = Signal()
        m.d.comb += [core.i_valid.eq(running & active), core.i_sum.eq(two)]

        # ---- a run: from one moment at which the machine takes an operation to another
        margin, rest = Signal(range(core.interval + 1)), Signal(range(core.distance + 2))
        with m.FSM(name="run") as fsm:
            with m.State("IDLE"):
                m.d.sync += [margin.eq(core.interval), rest.eq(core.distance)]
                with m.If(self.start):
                    m.d.sync += [
                        base.eq(chosen(self.programme, firsts)), context.eq(0), index.eq(0), digits_at.eq(0),
                        slots_at.eq(0),
                        left.eq(more_passes(self)),
                    ]  # fmt: skip
                    m.next = "ALIGN"
            with m.State("ALIGN"):
                m.d.sync += margin.eq(margin - 1)
                with m.If(core.i_ready):
                    m.next = "RUN"
            with m.State("RUN"):
                m.d.comb += running.eq(1)
                with m.If(core.i_ready):
                    m.d.sync += [
                        context.eq(context + 1), slots_at.eq(slots_at + lay.slots),
                        digits_at.eq(digits_at + lay.stride),
                    ]  # fmt: skip
                    with m.If(last_context):
                        m.d.sync += [
                            context.eq(0), slots_at.eq(0), digits_at.eq(0), base.eq(following),
                            index.eq(index + e.advance), left.eq(left - again),
                        ]  # fmt: skip
                        with m.If(last):
                            m.next = "DRAIN"
            with m.State("DRAIN"):
                with m.If(core.i_ready):
                    m.d.sync += rest.eq(rest - 1)
                    with m.If(rest == 0):
                        m.next = "MARGIN"
            with m.State("MARGIN"):
                m.d.sync += margin.eq(margin - 1)
                with m.If(margin == 0):
                    m.next = "IDLE"
        m.d.comb += self.busy.eq(self.start | ~fsm.ongoing("IDLE"))
        return m

    def _additions(
        self, m: Module, table: RowTable, slots_at: Signal, index: Signal, digits_at: Signal
    ) -> dict[int, Value]:
        """For each way to choose a slot what is added to its number."""
        lay = self.layout
        within = (lay.per_word - 1).bit_length()
        m.d.comb += [
            table.d_at.eq(digits_at + index[within:]), table.d_place.eq(self.d_address),
            table.d_write.eq(self.d_write), table.d_data.eq(self.d_data),
        ]  # fmt: skip
        bits = lay.digit_bits
        packed = later(m, table.digits, "digits")
        words: list[Value | int] = [packed[bits * k : bits * (k + 1)] for k in range(lay.per_word)]
        digit = later(m, chosen(index[:within], words), "digit")
        return {
            OWN: slots_at, OWN_ENTRY: later(m, slots_at + digit, "entry"), SHARED: Value.cast(lay.shared_base),
            UP: later(m, slots_at + digit[0], "up"), DOWN: later(m, slots_at - digit[0], "down")[: len(slots_at)],
            SHARED_ENTRY: later(m, lay.shared_base + digit, "shared_entry"),
        }  # fmt: skip

    def _numbers(self, m: Module) -> None:
        """Numbers from outside and back, each in a time of its own length."""
        core = self.core
        storing, asking = (Signal(range(self.rhythm.access + 1), name=name) for name in ("storing", "asking"))
        writing, asked, stored, going = (Signal(name=name) for name in ("writing", "asked", "stored", "going"))
        m.d.sync += [
            writing.eq(self.s_write & ~self.s_ready), storing.eq(Mux(writing, storing + 1, 0)),
            self.s_ready.eq(storing == self.rhythm.access - 3),
            asked.eq(self.s_ask & ~self.s_valid), asking.eq(Mux(asked, asking + 1, 0)),
            self.s_valid.eq(asking == self.rhythm.access - 3),
            stored.eq(writing & (stored | (core.x_valid & core.x_ready))),
            going.eq(asked & (going | (core.q_valid & core.q_ready))),
        ]  # fmt: skip
        kept = Signal(_SETTLE + 2)  # the number that leaves stands until it is in its register
        m.d.sync += kept.eq((kept << 1) | self.s_valid)
        m.d.comb += [
            core.x_valid.eq(writing & (storing >= _SETTLE) & ~stored), core.x_slot.eq(self.s_address),
            core.x_number.eq(self.s_data), core.q_valid.eq(asked & ~going), core.q_slot.eq(self.s_read),
            core.o_ready.eq(kept[-1]), self.s_q.eq(core.o_number),
        ]  # fmt: skip
