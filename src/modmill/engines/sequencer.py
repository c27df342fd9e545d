# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The sequencer: slot memory, operands and table around a multiplier; it runs a programme for all contexts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, fifo, memory, wiring
from amaranth.lib.wiring import In, Out

from modmill.design import Multiplier
from modmill.engines.exponentiation import EITHER, ENTRY
from modmill.engines.layout import COUNT_BITS, Layout
from modmill.rtl.memory import BITS_MAX, WIDTH_MAX, BlockRam

FETCH = 9
"""Cycles from the start of a step to its operands at the multiplier's port, at least; no two starts are closer. They
pass while the operands before wait to be accepted."""
WRITE = 1
"""Cycles from a result at the multiplier's port to the start of a step that reads it."""
READ = 5
"""Cycles from the address of a power to the power in its register."""


def choice(which: Signal, values: Sequence[int]) -> Value:
    """The constant for a number, the last one beyond the end."""
    found: Value = Const(values[-1])
    for k, value in enumerate(values[:-1]):
        found = Mux(which == k, value, found)
    return found


class _Slice(wiring.Component):
    """Some bits of the slot memory and of the operands, with controls of their own, so that none drives all bits.

    ``q``: the word at ``read`` three cycles later. ``write``: one cycle later the bits of ``number`` or of the result
    ``r`` go to ``place``. ``take``: one cycle later q is kept. ``move``: what was kept and q become a and b where
    nothing is offered or it is being accepted; with ``square_a`` or ``square_b`` one of them becomes both.
    """

    def __init__(self, width: int, depth: int) -> None:
        self.width, self.depth = width, depth
        address = depth.bit_length() - 1
        super().__init__({
            "read": In(address), "q": Out(width),
            "write": In(1), "place": In(address), "from_number": In(1), "number": In(width), "r": In(width),
            "take": In(1), "move": In(1), "offering": In(1), "ready": In(1), "square_a": In(1), "square_b": In(1),
            "a": Out(width), "b": Out(width),
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.ram = ram = BlockRam(self.width, self.depth, ())
        kept = Signal(self.width, reset_less=True)
        read, place = (Signal(len(self.read), name=name, reset_less=True) for name in ("read_here", "place_here"))
        write, take = Signal(name="write_here"), Signal(name="take_here")
        data_here = Signal(self.width, reset_less=True)
        m.d.sync += [
            read.eq(self.read), place.eq(self.place), write.eq(self.write), take.eq(self.take),
            data_here.eq(Mux(self.from_number, self.number, self.r)),
        ]  # fmt: skip
        m.d.comb += [
            ram.a_address.eq(read), ram.b_address.eq(place), ram.b_write.eq(write), ram.b_d.eq(data_here),
            self.q.eq(ram.a_q),
        ]  # fmt: skip
        with m.If(take):
            m.d.sync += kept.eq(self.q)
        with m.If(self.move & (~self.offering | self.ready)):
            m.d.sync += [self.a.eq(Mux(self.square_b, self.q, kept)), self.b.eq(Mux(self.square_a, kept, self.q))]
        return m


def sequencer_ports(layout: Layout, address: int) -> dict[str, Any]:
    """Members of a sequencer's interface, for addresses of so many bits."""
    width = layout.contract.operand.width
    return {
        "start": In(1), "busy": Out(1),
        "programme": In(range(max(2, len(layout.engines)))), "passes": In(COUNT_BITS),
        "s_write": In(1), "s_ready": Out(1), "s_address": In(address), "s_data": In(width),
        "s_ask": In(1), "s_valid": Out(1), "s_read": In(address), "s_q": Out(width),
        "d_write": In(1), "d_address": In(range(layout.contexts * layout.digits)), "d_data": In(layout.digit_bits),
    }  # fmt: skip


def table_shape(address: int) -> data.StructLayout:
    """A row of the table: one step, for addresses of so many bits."""
    return data.StructLayout({
        "destination": address, "a": address, "b": address, "entry": 1, "either": 1, "advance": 1, "far": 1,
        "again": 1, "last": 1,
    })  # fmt: skip


def rows_of(layout: Layout) -> tuple[list[dict[str, int]], list[int], list[int]]:
    """Rows of the table, and for each programme its first row and the first row of its loop."""
    rows: list[dict[str, int]] = []
    firsts, loops = [], []
    place = layout.place
    for engine in layout.engines:
        p = engine.programme
        firsts.append(len(rows))
        loops.append(len(rows) + len(p.before))
        body = (*p.before, *p.loop, *p.after)
        for k, (step, distance) in enumerate(zip(body, p.distances, strict=True)):
            rows.append({
                "destination": place(step.destination), "a": place(step.a), "b": place(step.b),
                "entry": step.pick == ENTRY, "either": step.pick == EITHER, "advance": step.advance,
                "far": distance > 1, "again": bool(p.loop) and k == len(p.before) + len(p.loop) - 1,
                "last": k == len(body) - 1,
            })  # fmt: skip
    return rows, firsts, loops


def digit_memory(m: Module, sequencer: Any, context: Signal, index: Signal) -> Value:
    """The exponents' digits, written at the sequencer's port d: the one of that context and index, a cycle later."""
    lay = sequencer.layout
    m.submodules.digits = digits = memory.Memory(shape=lay.digit_bits, depth=lay.contexts * lay.digits, init=[])
    write, read = digits.write_port(), digits.read_port(domain="sync")
    m.d.comb += [
        write.en.eq(sequencer.d_write), write.addr.eq(sequencer.d_address), write.data.eq(sequencer.d_data),
        read.addr.eq(Cat(index, context)), read.en.eq(1),
    ]  # fmt: skip
    return read.data


class Sequencer(wiring.Component):
    """Slot memory, multiplier, table and digits: runs one programme for all contexts when ``start`` is high.

    While not ``busy``: ``s_write`` stores ``s_data`` at ``s_address`` when ``s_ready`` is high; ``s_ask`` asks for what
    stands at ``s_read``, which is at ``s_q`` when ``s_valid`` is high, and stays high until then; ``d_write`` stores a
    digit. ``programme`` and ``passes`` must stand while it is busy.

    A step starts when what it needs is there. Its two operands are read one after the other and wait until the
    multiplier has taken those before, so that the next are offered in the cycle after. Cost: 4 registers as wide as a
    number, ceil(width / 18) block RAMs on ECP5, a table, the digits' memory.
    """

    def __init__(self, core: Multiplier, layout: Layout, *, multiplex: bool) -> None:
        self.core, self.layout, self.multiplex = core, layout, multiplex
        super().__init__(sequencer_ports(layout, layout.depth.bit_length() - 1))

    @property
    def rate(self) -> int:
        """Cycles of a step of all contexts that waits for no product, at most."""
        core, interval = self.core, self.layout.contract.timing.interval
        each = interval if interval >= FETCH else FETCH + core.lead
        return self.layout.contexts * -(-each // core.period) * core.period

    @property
    def round(self) -> int:
        """Cycles of a step that waits for products of the step before, at most."""
        timing, core = self.layout.contract.timing, self.core
        return max(self.rate, -(-(timing.latency + FETCH + WRITE + core.lead) // core.period) * core.period)

    access = READ + FETCH
    """Cycles for a base to be stored and a power to be read, at most."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lay, core = self.layout, self.core
        m.submodules.core = core
        rows, firsts, loops = rows_of(lay)
        address = len(self.s_read)
        m.submodules.table = table = memory.Memory(shape=table_shape(address), depth=max(2, len(rows)), init=rows)
        at = table.read_port(domain="sync")
        row = at.data
        context, index = Signal(range(max(2, lay.contexts))), Signal(range(lay.digits))
        left = Signal(COUNT_BITS, reset_less=True)
        number_of_row = Signal(range(max(2, len(rows))))
        next_digit = digit_memory(m, self, context, index)
        m.d.comb += [at.addr.eq(number_of_row), at.en.eq(1)]

        # ---- fetch
        digit = Signal(lay.digit_bits, reset_less=True)
        first, second, reading = (
            Signal(address, name=name, reset_less=True) for name in ("first", "second", "reading")
        )
        destination = Signal(address, reset_less=True)
        offering, move, again = Signal(), Signal(), Signal()
        taking, moving = Signal(), Signal()
        one_of_two = row.either & (not self.multiplex)
        both = row.either & bool(self.multiplex)
        asked = Signal(READ - 2)
        m.d.sync += asked.eq(Mux(self.s_ask & ~self.s_valid, Cat(self.s_ask, asked), 0))
        m.d.comb += [self.s_ready.eq(1), self.s_valid.eq(asked[-1])]
        arrived = core.o_valid & core.o_ready
        under_way = Signal(range(2 * lay.contexts + 1))
        m.d.sync += under_way.eq(under_way + move - arrived)
        m.d.comb += [core.i_valid.eq(offering), again.eq(row.again & (left != 0))]
        with m.If(core.i_ready):
            m.d.sync += offering.eq(0)
        with m.FSM(name="fetch") as fetch:
            with m.State("IDLE"):
                m.d.sync += [left.eq(self.passes - 1), context.eq(0), index.eq(0), reading.eq(self.s_read)]
                m.d.sync += number_of_row.eq(choice(self.programme, firsts))
                with m.If(self.start):
                    m.next = "ROW"
            with m.State("ROW"):  # the row and the digit are being read
                m.next = "START"
            with m.State("START"):
                m.d.sync += [
                    digit.eq(next_digit), destination.eq(row.destination + context),
                    first.eq(row.a + context), second.eq(row.b + context),
                ]  # fmt: skip
                with m.If(under_way < Mux(row.far, 2 * lay.contexts, lay.contexts)):
                    m.next = "ADD"
            with m.State("ADD"):
                m.d.sync += [
                    reading.eq(Mux(one_of_two & ~digit[0], second, first)),
                    second.eq(Mux(one_of_two & digit[0], first, second) + Mux(row.entry, digit * lay.contexts, 0)),
                ]
                m.next = "A"
            with m.State("A"):
                m.d.sync += reading.eq(second)
                m.next = "B"
            with m.State("B"):
                m.next = "TAKE A"
            with m.State("TAKE A"):
                m.d.comb += taking.eq(1)
                m.next = "TAKE B"
            with m.State("TAKE B"):
                m.next = "MOVE"
            with m.State("MOVE"):
                m.d.comb += moving.eq(1)
                with m.If(~offering | core.i_ready):
                    m.d.comb += move.eq(1)
                    m.d.sync += [offering.eq(1), context.eq(context + 1)]
                    m.next = "ROW"
                    with m.If(context == lay.contexts - 1):
                        m.d.sync += [context.eq(0), index.eq(index + row.advance), number_of_row.eq(number_of_row + 1)]
                        with m.If(again):
                            m.d.sync += [left.eq(left - 1), number_of_row.eq(choice(self.programme, loops))]
                        with m.If(row.last & ~again):
                            m.next = "DRAIN"
            with m.State("DRAIN"):
                with m.If(under_way == 0):
                    m.next = "IDLE"
        m.d.comb += self.busy.eq(self.start | ~fetch.ongoing("IDLE"))

        # ---- results: they come in order, and their places wait in a queue
        m.submodules.places = places = fifo.SyncFIFO(width=address, depth=2 * lay.contexts)
        m.d.comb += [
            places.w_data.eq(destination), places.w_en.eq(move), places.r_en.eq(arrived), core.o_ready.eq(1),
        ]  # fmt: skip

        # ---- the numbers, slice by slice
        width = lay.contract.operand.width
        size = min(WIDTH_MAX, BITS_MAX // lay.depth)
        for k, low in enumerate(range(0, width, size)):
            part = slice(low, min(low + size, width))
            m.submodules[f"slice_{k}"] = piece = _Slice(part.stop - part.start, lay.depth)
            m.d.comb += [
                piece.read.eq(reading), self.s_q[part].eq(piece.q),
                piece.write.eq(arrived | self.s_write), piece.from_number.eq(self.s_write),
                piece.place.eq(Mux(self.s_write, self.s_address, places.r_data)),
                piece.number.eq(self.s_data[part]), piece.r.eq(core.o_r[part]),
                piece.take.eq(taking), piece.move.eq(moving), piece.offering.eq(offering),
                piece.ready.eq(core.i_ready), piece.square_a.eq(both & digit[0]), piece.square_b.eq(both & ~digit[0]),
                core.i_a[part].eq(piece.a), core.i_b[part].eq(piece.b),
            ]  # fmt: skip
        return m
