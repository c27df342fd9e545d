# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The sequencer over a machine with numbered slots: numbers never leave it between the steps of a programme."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import memory, wiring

from modmill.design import SlotMachine
from modmill.engines.layout import Layout
from modmill.engines.sequencer import choice, digit_memory, rows_of, sequencer_ports, table_shape


class NumberedSequencer(wiring.Component):
    """Slot machine, table and digits: runs one programme for all contexts; ports and meaning as `Sequencer`.

    The operations of a step follow one another, one for each context; the next step begins when the results of the
    first of them can be read, so that ``distance`` contexts keep the machine busy. Of two slots
    one is chosen by its address.
    """

    def __init__(self, core: SlotMachine, layout: Layout) -> None:
        self.core, self.layout = core, layout
        super().__init__(sequencer_ports(layout, len(core.i_a)))

    @property
    def round(self) -> int:
        """Cycles of one step of all contexts."""
        return self.core.interval * max(self.layout.contexts, self.core.distance)

    rate = round

    @property
    def access(self) -> int:
        """Cycles for a base to be stored and a power to be read, at most."""
        return 4 * self.core.interval

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        lay, core = self.layout, self.core
        m.submodules.core = core
        rows, firsts, loops = rows_of(lay)
        address = len(core.i_a)
        m.submodules.table = table = memory.Memory(shape=table_shape(address), depth=max(2, len(rows)), init=rows)
        at = table.read_port(domain="comb")
        row = at.data
        place, index = Signal(range(max(2, lay.contexts))), Signal(range(lay.digits))
        next_digit = digit_memory(m, self, place, index)

        # ---- numbers from outside and back
        asked = Signal()
        m.d.comb += [
            core.x_valid.eq(self.s_write), core.x_slot.eq(self.s_address), core.x_number.eq(self.s_data),
            self.s_ready.eq(core.x_ready),
            core.q_valid.eq(self.s_ask & ~asked), core.q_slot.eq(self.s_read),
            self.s_valid.eq(core.o_valid), core.o_ready.eq(self.s_ask), self.s_q.eq(core.o_number),
        ]  # fmt: skip
        with m.If(core.q_valid & core.q_ready):
            m.d.sync += asked.eq(1)
        with m.Elif(core.o_valid & core.o_ready):
            m.d.sync += asked.eq(0)

        # ---- operations
        digit = Signal(lay.digit_bits, reset_less=True)
        left = Signal(len(self.passes), reset_less=True)
        first, second, destination = (
            Signal(address, name=name, reset_less=True) for name in ("first", "second", "destination")
        )
        idle = core.distance - min(core.distance, lay.contexts)
        rest = Signal(range(core.distance * core.interval + 2))
        m.d.comb += [
            core.i_a.eq(first), core.i_b.eq(second), core.i_destination.eq(destination), core.i_sum.eq(0),
        ]  # fmt: skip
        again = Signal()
        m.d.comb += again.eq(row.again & (left != 0))
        with m.FSM(name="fetch") as fetch:
            with m.State("IDLE"):
                m.d.sync += [
                    left.eq(self.passes - 1),
                    place.eq(0),
                    index.eq(0),
                    at.addr.eq(choice(self.programme, firsts)),
                ]
                with m.If(self.start):
                    m.next = "START"
            with m.State("START"):  # the digit is being read
                m.next = "DIGIT"
            with m.State("DIGIT"):
                m.d.sync += digit.eq(next_digit)
                m.next = "ADD"
            with m.State("ADD"):
                one, other = Mux(row.either & ~digit[0], row.b, row.a), Mux(row.either & digit[0], row.a, row.b)
                m.d.sync += [
                    destination.eq(row.destination + place),
                    first.eq(one + place),
                    second.eq(other + place + Mux(row.entry, digit * lay.contexts, 0)),
                ]
                m.next = "OFFER"
            with m.State("OFFER"):
                m.d.comb += core.i_valid.eq(1)
                with m.If(core.i_ready):
                    m.d.sync += place.eq(place + 1)
                    m.next = "START"
                    with m.If(place == lay.contexts - 1):
                        m.d.sync += [place.eq(0), index.eq(index + row.advance), at.addr.eq(at.addr + 1)]
                        m.d.sync += rest.eq(idle * core.interval)
                        if idle:
                            m.next = "REST"
                        with m.If(again):
                            m.d.sync += [left.eq(left - 1), at.addr.eq(choice(self.programme, loops))]
                        with m.If(row.last & ~again):
                            m.d.sync += rest.eq(core.distance * core.interval)
                            m.next = "DRAIN"
            if idle:
                with m.State("REST"):
                    m.d.sync += rest.eq(rest - 1)
                    with m.If(rest == 0):
                        m.next = "START"
            with m.State("DRAIN"):
                m.d.sync += rest.eq(rest - 1)
                with m.If(rest == 0):
                    m.next = "IDLE"
        m.d.comb += self.busy.eq(self.start | ~fetch.ongoing("IDLE"))
        return m
