# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The sequencer of a coprocessor: reads rows from a table and tells the field unit, cycle by cycle, what to do.

A counter goes round once in a turn, and registers decoded from it do everything in the cycles that `rhythm.py` gives.
No address but those that digits choose depends on a number, and no time does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from modmill.design import Multiplier
from modmill.engines.machine.datapath import FieldUnit
from modmill.engines.machine.layout import COUNT_BITS, DOWN, OWN, OWN_ENTRY, PACK, SHARED, SHARED_ENTRY, UP, RowLayout
from modmill.engines.machine.program_memory import DIGITS, RowTable, chosen
from modmill.engines.machine.timing import CAPTURE, FIRST, Rhythm
from modmill.rtl.delay import DelayLines, later

ENTRY_AT = FIRST - 2
"""Cycle of a turn in which the first entry is there."""
_PLACED = 4  # cycles from a number that is given to its write, less those of registers


def more_passes(sequencer: Any) -> Value:
    """How often the loop is done again after its first pass; nothing looks at it where there is no loop."""
    if sequencer.layout.counted:
        return (sequencer.passes - 1)[:COUNT_BITS]
    return chosen(sequencer.programme, [max(0, p.passes - 1) for p in sequencer.layout.programmes])


class RowSequencer(wiring.Component):
    """Field unit, table and digits: runs one programme for all contexts when ``start`` is high.

    While not ``busy``: ``s_write`` stores ``s_data`` at ``s_address`` when ``s_ready`` is high, with ``s_trim`` as one
    of the multiples of p that sums are trimmed by; ``s_ask`` asks for what stands at ``s_read``, which is at ``s_q``
    when ``s_valid`` is high, and stays high until then; ``d_write`` stores a word of digits. ``programme`` must stand
    while it is busy, and so must ``passes`` of the loop, where the layout has them counted. A run takes ``cycles``
    cycles from ``start`` on, whatever the numbers and digits are.
    """

    def __init__(self, core: Multiplier, layout: RowLayout) -> None:
        self.core, self.layout = core, layout
        assert isinstance(layout.rhythm, Rhythm)
        self.rhythm = layout.rhythm
        address = layout.depth.bit_length() - 1
        width = layout.contract.operand.width
        super().__init__({
            "start": In(1), "busy": Out(1), "programme": In(range(max(2, len(layout.programmes)))),
            "s_write": In(1), "s_ready": Out(1), "s_address": In(address), "s_data": In(width),
            "s_trim": In(len(layout.trims)),
            "s_ask": In(1), "s_valid": Out(1), "s_read": In(address), "s_q": Out(width),
            "d_write": In(1), "d_address": In(range(max(2, layout.digit_depth))), "d_data": In(PACK),
            **({"passes": In(COUNT_BITS)} if layout.counted else {}),
        })  # fmt: skip

    def cycles(self, programme: int, passes: int | None = None) -> int:
        """Cycles from ``start`` until it is not busy: the same for all numbers and digits."""
        return self.rhythm.cycles(self.layout.counting(programme, passes).rows, self.layout.contexts) + 2

    @property
    def store_cycles(self) -> int:
        """Cycles of ``s_write`` for one number."""
        return max(_PLACED, self.rhythm.skew + 3) + 4

    @property
    def read_cycles(self) -> int:
        """Cycles of ``s_ask`` for one number."""
        return self.rhythm.skew + 10

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lay, beat, core = self.layout, self.rhythm, self.core
        load, p = lay.contract.load, lay.contract.p
        m.submodules.unit = unit = FieldUnit(core, beat, lay.depth, [None if load else k * p for k in lay.trims])
        m.submodules.table = table = RowTable(lay)
        turn = beat.turn
        e, plus = table.product, table.sum  # the same entry as a row's first and as a sum
        idle, active, starting, aligned = (Signal(name=n) for n in ("idle", "active", "starting", "aligned"))

        # ---- the counter of a turn, set where the multiplier took the first product of a run
        phase, wrap = Signal(range(turn), name="phase"), Signal(name="wrap")
        synced = (2 - beat.run_up) % turn
        m.d.sync += [
            phase.eq(Mux(aligned, synced, Mux(wrap, 0, phase + 1))),
            wrap.eq(Mux(aligned, synced == turn - 1, phase == turn - 2)),
        ]
        strobes: dict[frozenset[int], Signal] = {}

        def at(*cycles: int) -> Signal:
            """High in these cycles of a turn; registered."""
            wanted = frozenset(cycle % turn for cycle in cycles)
            if wanted not in strobes:
                strobes[wanted] = strobe = Signal(name="at_" + "_".join(map(str, sorted(wanted)[:3])))
                m.d.sync += strobe.eq(Cat(*(phase == (cycle - 1) % turn for cycle in sorted(wanted))).any())
            return strobes[wanted]

        # ---- rows: which is done, for which context, with which digit
        _, firsts, loops = lay.table
        base, following, pointer = (Signal(len(table.at), name=n, reset_less=True) for n in ("base", "next", "at"))
        context = Signal(range(max(2, lay.contexts)))
        index = Signal(range(lay.per_word * lay.stride + 1))
        digits_at = Signal(len(self.d_address))
        slots_at = Signal(len(self.s_read))
        left = Signal(COUNT_BITS, reset_less=True)
        count = Signal(len(e.count), reset_less=True)
        advance, again, last = (Signal(name=name, reset_less=True) for name in ("advance", "again", "last"))
        ending = Signal()
        more, last_context, last_turn, done = (
            Signal(name=n) for n in ("more_passes", "last_context", "last_turn", "done")
        )
        with m.If(at(ENTRY_AT)):
            m.d.sync += [count.eq(e.count), advance.eq(e.advance)]
            m.d.sync += [again.eq(e.again & more), last.eq(e.last & ~(e.again & more))]
        m.d.sync += [
            more.eq(left != 0), last_context.eq(context == lay.contexts - 1), last_turn.eq(last_context & last),
            following.eq(Mux(again, chosen(self.programme, loops), base + count)),
            ending.eq((phase == turn - 2) & active),
        ]  # fmt: skip
        m.d.comb += done.eq(ending & last_turn)
        with m.If(ending):
            m.d.sync += [context.eq(Mux(last_context, 0, context + 1))]
            m.d.sync += digits_at.eq(Mux(last_context, 0, digits_at + lay.stride))
            m.d.sync += slots_at.eq(Mux(last_context, 0, slots_at + lay.slots))
            with m.If(last_context):
                m.d.sync += [base.eq(following), index.eq(index + advance), left.eq(left - again)]
        with m.If(done):
            m.d.sync += active.eq(0)
        with m.Elif(wrap & starting):
            m.d.sync += [active.eq(1), starting.eq(0)]

        # ---- the entries of the row, two cycles each
        second, stepping, live = (Signal(name=n) for n in ("second", "stepping", "live"))
        number = Signal(range(beat.sums + 2))
        m.d.comb += table.at.eq(pointer)
        m.d.sync += stepping.eq(~stepping)
        with m.If(stepping):
            m.d.sync += pointer.eq(pointer + 1)
        with m.If(at(ENTRY_AT - 4)):
            m.d.sync += [pointer.eq(base), stepping.eq(0)]
        m.d.sync += second.eq(~second)
        with m.If(second & (number != beat.sums + 1)):
            m.d.sync += number.eq(number + 1)
        with m.If(at(ENTRY_AT - 1)):
            m.d.sync += [second.eq(0), number.eq(0), live.eq(active)]

        # ---- what is added to addresses
        adds = self._additions(m, table, at, slots_at, index, digits_at)

        def added(codes: Sequence[int], code: Value) -> Value:
            return chosen(code, [adds[how] for how in codes])

        reads, writes = lay.additions["read"], lay.additions["destination"]
        address = len(self.s_read)
        one, plus_one, to, to_plus, destination = (
            Signal(address, name=name, reset_less=True) for name in ("read", "plus", "to", "to_plus", "destination")
        )
        read_add = Mux(second, e.a_add, e.b_add) if len(reads) > 1 else Const(0)
        m.d.sync += [
            one.eq(Mux(idle, self.s_read, Mux(second, e.a, e.b))),
            plus_one.eq(Mux(idle, 0, added(reads, read_add))),
            to.eq(e.destination), to_plus.eq(added(writes, e.destination_add)), destination.eq(to + to_plus),
        ]  # fmt: skip
        lift = Signal(address, reset_less=True)
        m.d.sync += lift.eq(Mux(idle, self.s_address, lay.lift_base + plus.lift))

        # ---- products: to the multiplier, and their places in a queue
        product = Signal()
        m.d.comb += product.eq(at(ENTRY_AT + 1) & live & e.active)
        moves = Signal(beat.move - ENTRY_AT)
        m.d.sync += moves.eq(Cat(product, moves))
        offering = Signal()
        with m.If(moves[beat.move - ENTRY_AT - 2] | self.start):
            m.d.sync += offering.eq(1)
        with m.Elif(core.i_ready):
            m.d.sync += offering.eq(0)
        free = at(*(cycle - 1 for cycle in beat.free))
        arrived, waiting, storing = (Signal(name=n) for n in ("arrived", "waiting", "storing"))
        coming = Signal(CAPTURE - 1)  # cycles since the multiplier gave a product
        m.d.comb += arrived.eq(coming[-1])
        m.d.sync += [coming.eq(Cat(core.o_valid, coming)), waiting.eq((arrived | waiting) & ~storing)]
        m.d.comb += [core.i_valid.eq(offering), core.o_ready.eq(1), storing.eq((arrived | waiting) & free)]
        place = self._places(m, moves[0] | self.start, Cat(destination, ~self.start), storing)

        # ---- sums
        summing, adding, choose, sum_place = Const(0), Const(0), Const(0), Const(0, address)
        if beat.sums:
            sums = Signal(beat.delay)
            trims = Signal(beat.delay, reset_less=True)
            sum_due = live & second & (number != 0) & (number < count)
            m.d.sync += [sums.eq(Cat(sum_due, sums)), trims.eq(Cat(plus.trim != 0, trims))]
            lines = DelayLines(m, max(4, beat.delay), name="sum")
            sum_place = lines.line(destination, beat.delay - 1, name="sum_place")
            below = lines.line(unit.below, beat.delay - beat.least_delay, name="below") if beat.trims else Const(0)
            summing, adding, choose = sums[-1], sums[-2], trims[-2] & ~below

        # ---- the unit
        giving, placing, setting = self._numbers(m, idle)
        capture, given = core.o_valid | giving, idle
        if not beat.sums:  # wide numbers: straight from registers to all slices; of a row without a product none writes
            capture, given = Signal(name="capture"), later(m, idle, "given")
            m.d.sync += capture.eq((phase == (beat.arrive - 1) % turn) | giving)
        told = unit.control
        m.d.comb += [
            told.read.eq(one + plus_one),
            told.place.eq(
                Mux(summing, sum_place, Mux(storing, place[:address], lift))
            ),
            told.write.eq(summing | (storing & place[address]) | placing),
            told.result.eq(~adding),
            told.choose.eq(choose),
            told.take.eq(product), told.invert.eq(later(m, plus.invert & ~second, "invert")),
            told.begin.eq(later(m, ~second, "begin")),
            told.trim.eq(later(m, (plus.trim - 1)[: len(told.trim)], "trim")),
            unit.move.eq(moves[beat.move - ENTRY_AT - 3]),
            unit.capture.eq(capture), unit.given.eq(given), unit.set_trim.eq(setting),
            unit.number.eq(self.s_data), self.s_q.eq(unit.q),
        ]  # fmt: skip
        self._run(m, idle, aligned, starting, done, offering)
        with m.If(self.start):
            m.d.sync += [
                base.eq(chosen(self.programme, firsts)), context.eq(0), index.eq(0), digits_at.eq(0), slots_at.eq(0),
                left.eq(more_passes(self)),
            ]  # fmt: skip
        return m

    def _additions(
        self,
        m: Module,
        table: RowTable,
        at: Callable[..., Signal],
        slots_at: Signal,
        index: Signal,
        digits_at: Signal,
    ) -> dict[int, Value]:
        """For each way to choose a slot what is added to an address, from the first entry's cycle on for a turn."""
        lay = self.layout
        address = len(self.s_read)
        within = (lay.per_word - 1).bit_length()
        m.d.comb += [
            table.d_at.eq(digits_at + index[within:]), table.d_place.eq(self.d_address),
            table.d_write.eq(self.d_write), table.d_data.eq(self.d_data),
        ]  # fmt: skip
        digit = Signal(lay.digit_bits, reset_less=True)
        bits, packed = lay.digit_bits, later(m, table.digits, "digits")
        words = [packed[bits * k : bits * (k + 1)] for k in range(lay.per_word)]
        with m.If(at(DIGITS + 1)), m.Switch(index[:within]):
            for k, word in enumerate(words):
                with m.Case(k):
                    m.d.sync += digit.eq(word)
        used = {how for codes in lay.additions.values() for how in codes}
        found: dict[int, Value] = {}
        for how, value in (
            (OWN, slots_at), (OWN_ENTRY, slots_at + digit), (UP, slots_at + digit[0]), (DOWN, slots_at - digit[0]),
            (SHARED_ENTRY, lay.shared_base + digit),
        ):  # fmt: skip
            if how in used:
                kept = Signal(address, name=f"add_{how}", reset_less=True)
                with m.If(at(ENTRY_AT - 1)):
                    m.d.sync += kept.eq(value)
                found[how] = kept
        found[SHARED] = Const(lay.shared_base, address)
        return found

    def _places(self, m: Module, push: Value, place: Value, pop: Value) -> Signal:
        """Where products go, in order; the next one's place. They follow one another in a turn at least."""
        beat = self.rhythm
        depth = 1 << (beat.write // beat.turn + 3).bit_length()
        m.submodules.places = places = memory.Memory(shape=len(place), depth=depth, init=[])
        write, read = places.write_port(), places.read_port(domain="comb")
        first, end = (Signal(range(depth), name=n) for n in ("first_place", "end_place"))
        m.d.comb += [write.addr.eq(end), write.data.eq(place), write.en.eq(push), read.addr.eq(first)]
        m.d.sync += [first.eq(first + pop), end.eq(end + push)]
        return later(m, read.data, "place")

    def _numbers(self, m: Module, idle: Signal) -> tuple[Value, Value, Value]:
        """Numbers from outside and back: when one is captured, when it is written, when sums are trimmed by it."""
        writing, asked, giving, placing = (Signal(name=n) for n in ("writing", "asked", "giving", "placing"))
        storing = Signal(range(self.store_cycles + 1))
        asking = Signal(range(self.read_cycles + 1))
        setting = Signal(len(self.s_trim))
        m.d.sync += [
            writing.eq(self.s_write & idle & ~self.s_ready), storing.eq(Mux(writing, storing + 1, 0)),
            self.s_ready.eq(storing == self.store_cycles - 3), giving.eq(storing == 1),
            placing.eq((storing == _PLACED) & ~self.s_trim.any()), setting.eq(Mux(storing == _PLACED, self.s_trim, 0)),
            asked.eq(self.s_ask & idle & ~self.s_valid), asking.eq(Mux(asked, asking + 1, 0)),
            self.s_valid.eq(asking == self.read_cycles - 3),
        ]  # fmt: skip
        return giving, placing, setting

    def _run(self, m: Module, idle: Signal, aligned: Signal, starting: Signal, done: Value, offering: Signal) -> None:
        """A first product that is forgotten shows when the multiplier takes one; then the turns; then all is written.

        The cycles that the first product did not wait are waited for at the end, so that a run takes the same time.
        """
        beat = self.rhythm
        margin = Signal(range(beat.alignment + 1))
        rest = Signal(range(beat.drain + 1))
        with m.FSM(name="run") as fsm:
            with m.State("IDLE"):
                m.d.sync += [margin.eq(beat.alignment), rest.eq(beat.drain)]
                with m.If(self.start):
                    m.next = "ALIGN"
            with m.State("ALIGN"):
                m.d.sync += aligned.eq(offering & self.core.i_ready & ~aligned)
                with m.If(aligned):
                    m.d.sync += starting.eq(1)
                    m.next = "RUN"
                with m.Elif(margin != 0):
                    m.d.sync += margin.eq(margin - 1)
            with m.State("RUN"):
                m.d.sync += aligned.eq(0)
                with m.If(done):
                    m.next = "DRAIN"
            with m.State("DRAIN"):
                m.d.sync += rest.eq(rest - 1)
                with m.If(rest == 1):
                    m.next = "MARGIN"
            with m.State("MARGIN"):
                m.d.sync += margin.eq(margin - 1)
                with m.If(margin == 0):
                    m.next = "IDLE"
        m.d.comb += [idle.eq(fsm.ongoing("IDLE")), self.busy.eq(self.start | ~idle)]
