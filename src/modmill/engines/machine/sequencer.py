# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The sequencer of a coprocessor: reads instructions from a table and tells the field unit, cycle by cycle, what to do.

`Sequencer` has what all sequencers have: ports, the place in the program, digits, the time of an access from outside.
`DatapathSequencer` drives a field unit: a counter goes round once in a turn, and registers decoded from it do
everything in the cycles that `timing.py` gives. `slot_sequencer.py` drives a machine with numbered slots. No address
but those that digits choose depends on a number, and no time does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from modmill.design import Multiplier
from modmill.engines.machine.datapath import FieldUnit
from modmill.engines.machine.layout import (
    COUNT_BITS,
    DOWN,
    OWN,
    OWN_ENTRY,
    PACK,
    SHARED,
    SHARED_ENTRY,
    UP,
    MicrocodeLayout,
)
from modmill.engines.machine.program_memory import DIGITS, ProgramMemory, chosen
from modmill.engines.machine.timing import CAPTURE, FIRST, MachineTiming
from modmill.rtl.delay import DelayLines, later

ENTRY_AT = FIRST - 2
"""Cycle of a turn in which the first entry is there."""
_PLACED = 4  # cycles from a number that is given to its write, less those of registers


class Progress(NamedTuple):
    """Registers of a run: the place ``base`` of the instruction's first entry, the ``thread``, the ``index`` of the
    digit,
    where the thread's digits and slots begin, and how many passes of the loop are ``left`` after this one."""

    base: Signal
    thread: Signal
    index: Signal
    digits_at: Signal
    slots_at: Signal
    left: Signal


class Sequencer(wiring.Component):
    """Runs one program for all threads when ``start`` is high. Abstract; instantiate a subclass.

    While not ``busy``: ``s_write`` stores ``s_data`` at ``s_address`` when ``s_ready`` is high, with ``s_trim`` as one
    of the multiples of p that sums are trimmed by; ``s_ask`` asks for what stands at ``s_read``, which is at ``s_q``
    when ``s_valid`` is high, and stays high until then; ``d_write`` stores a word of digits. ``program`` must stand
    while it is busy, and so must ``passes`` of the loop, where the layout has them counted. A run takes ``cycles``
    cycles from ``start`` on, whatever the numbers and digits are.
    """

    def __init__(self, core: Any, layout: MicrocodeLayout, *, address: int, ends: int, store: int, read: int) -> None:
        """``address``: bits of a slot's address; ``ends``: cycles of a run beside those of its timing; ``store`` and
        ``read``: cycles of ``s_write`` and ``s_ask`` for one number."""
        self.core, self.layout, self._ends = core, layout, ends
        self.store_cycles, self.read_cycles = store, read
        width = layout.contract.operand.width
        super().__init__({
            "start": In(1), "busy": Out(1), "programme": In(range(max(2, len(layout.programs)))),
            "s_write": In(1), "s_ready": Out(1), "s_address": In(address), "s_data": In(width),
            "s_trim": In(len(layout.conditional_subtracts)),
            "s_ask": In(1), "s_valid": Out(1), "s_read": In(address), "s_q": Out(width),
            "d_write": In(1), "d_address": In(range(max(2, layout.digit_depth))), "d_data": In(PACK),
            **({"passes": In(COUNT_BITS)} if layout.counted else {}),
        })  # fmt: skip

    def cycles(self, program: int, passes: int | None = None) -> int:
        """Cycles from ``start`` until it is not busy: the same for all numbers and digits."""
        lay = self.layout
        return lay.timing.cycles(lay.counting(program, passes).instructions, lay.threads) + self._ends

    def _progress(self, table: ProgramMemory, context: str = "context") -> Progress:
        lay = self.layout
        return Progress(
            Signal(len(table.at), name="base", reset_less=True), Signal(range(max(2, lay.threads)), name=context),
            Signal(range(lay.per_word * lay.stride + 1), name="index"),
            Signal(len(self.d_address), name="digits_at"), Signal(len(self.s_read), name="slots_at"),
            Signal(COUNT_BITS, name="left", reset_less=True),
        )  # fmt: skip

    def _restart(self, m: Module, at: Progress) -> None:
        """To the first instruction of the program, for the first thread."""
        lay, (_, firsts, _) = self.layout, self.layout.table
        if lay.counted:
            more: Value = (self.passes - 1)[:COUNT_BITS]
        else:  # nothing looks at it where there is no loop
            more = chosen(self.programme, [max(0, p.passes - 1) for p in lay.programs])
        m.d.sync += [
            at.base.eq(chosen(self.programme, firsts)), at.thread.eq(0), at.index.eq(0), at.digits_at.eq(0),
            at.slots_at.eq(0), at.left.eq(more),
        ]  # fmt: skip

    def _digits(self, m: Module, table: ProgramMemory, at: Progress) -> tuple[Value, list[Value | int]]:
        """The number of the digit in its word, and all digits of that word."""
        lay = self.layout
        within = (lay.per_word - 1).bit_length()
        m.d.comb += [
            table.d_at.eq(at.digits_at + at.index[within:]), table.d_place.eq(self.d_address),
            table.d_write.eq(self.d_write), table.d_data.eq(self.d_data),
        ]  # fmt: skip
        bits, packed = lay.digit_bits, later(m, table.digits, "digits")
        return at.index[:within], [packed[bits * k : bits * (k + 1)] for k in range(lay.per_word)]

    def _access(
        self, m: Module, wanted: Value, ready: Signal, cycles: int, names: tuple[str, str]
    ) -> tuple[Signal, Signal]:
        """A number in or out, which takes ``cycles`` cycles: whether it is on its way, and for how many cycles."""
        going, count = Signal(name=names[0]), Signal(range(cycles + 1), name=names[1])
        m.d.sync += [going.eq(wanted & ~ready), count.eq(Mux(going, count + 1, 0)), ready.eq(count == cycles - 3)]
        return going, count


class _Turn:
    """The counter of a turn: 0 in cycle 0, set where the multiplier took the first product of a run."""

    def __init__(self, m: Module, beat: MachineTiming, aligned: Signal) -> None:
        self._m, self._turn = m, beat.issue_cycles
        self.phase, self.wrap = Signal(range(beat.issue_cycles), name="phase"), Signal(name="wrap")
        self._strobes: dict[frozenset[int], Signal] = {}
        synced, phase, wrap = (2 - beat.run_up) % beat.issue_cycles, self.phase, self.wrap
        m.d.sync += [
            phase.eq(Mux(aligned, synced, Mux(wrap, 0, phase + 1))),
            wrap.eq(Mux(aligned, synced == beat.issue_cycles - 1, phase == beat.issue_cycles - 2)),
        ]

    def before(self, cycle: int) -> Value:
        """High in the cycle before this one."""
        return self.phase == (cycle - 1) % self._turn

    def at(self, *cycles: int) -> Signal:
        """High in these cycles of a turn; registered."""
        wanted = frozenset(cycle % self._turn for cycle in cycles)
        if wanted not in self._strobes:
            self._strobes[wanted] = strobe = Signal(name="at_" + "_".join(map(str, sorted(wanted)[:3])))
            self._m.d.sync += strobe.eq(Cat(*(self.before(cycle) for cycle in sorted(wanted))).any())
        return self._strobes[wanted]


class DatapathSequencer(Sequencer):
    """Field unit, table and digits; ports and meaning as of `Sequencer`."""

    def __init__(self, core: Multiplier, layout: MicrocodeLayout) -> None:
        beat = layout.timing
        assert isinstance(beat, MachineTiming)
        self.timing = beat
        address, store = layout.depth.bit_length() - 1, max(_PLACED, beat.skew + 3) + 4
        super().__init__(core, layout, address=address, ends=2, store=store, read=beat.skew + 10)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lay, beat, core = self.layout, self.timing, self.core
        load, p = lay.contract.load, lay.contract.p
        m.submodules.unit = unit = FieldUnit(
            core, beat, lay.depth, [None if load else k * p for k in lay.conditional_subtracts]
        )
        m.submodules.table = table = ProgramMemory(lay)
        plus = table.sum
        idle, active, starting, aligned = (Signal(name=n) for n in ("idle", "active", "starting", "aligned"))
        turn, progress = _Turn(m, beat, aligned), self._progress(table)
        count, done = self._instructions(m, table, turn, progress, active, starting)
        second, number, live = self._entries(m, table, turn, progress, active)
        adds = self._additions(m, table, turn, progress)
        read, destination, lift = self._addresses(m, table, adds, idle, second)
        product, moves, offering, storing = self._products(m, turn, live, table.product.active)
        place = self._places(m, moves[0] | self.start, Cat(destination, ~self.start), storing)
        due = live & second & (number != 0) & (number < count)
        summing, adding, choose, sum_place = self._sums(m, unit, due, plus.trim, destination)
        giving, placing, setting = self._numbers(m, idle)
        capture, given = core.o_valid | giving, idle
        if (
            not beat.sums
        ):  # wide numbers: straight from registers to all slices; of an instruction without a product none writes
            capture, given = Signal(name="capture"), later(m, idle, "given")
            m.d.sync += capture.eq(turn.before(beat.arrive) | giving)
        told, address = unit.control, len(self.s_read)
        m.d.comb += [
            told.read.eq(read),
            told.place.eq(Mux(summing, sum_place, Mux(storing, place[:address], lift))),
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
            self._restart(m, progress)
        return m

    def _instructions(
        self, m: Module, table: ProgramMemory, turn: _Turn, at: Progress, active: Signal, starting: Signal
    ) -> tuple[Signal, Signal]:
        """Steps from instruction to instruction and from thread to thread; the instruction's number of entries, and
        whether the run ends."""
        lay, e, (_, _, loops) = self.layout, table.product, self.layout.table
        following = Signal(len(at.base), name="next", reset_less=True)
        count = Signal(len(e.count), reset_less=True)
        advance, again, last = (Signal(name=name, reset_less=True) for name in ("advance", "again", "last"))
        more, last_thread, last_turn, ending, done = (
            Signal(name=name) for name in ("more_passes", "last_context", "last_turn", "ending", "done")
        )
        with m.If(turn.at(ENTRY_AT)):
            m.d.sync += [count.eq(e.count), advance.eq(e.advance)]
            m.d.sync += [again.eq(e.again & more), last.eq(e.last & ~(e.again & more))]
        m.d.sync += [
            more.eq(at.left != 0), last_thread.eq(at.thread == lay.threads - 1), last_turn.eq(last_thread & last),
            following.eq(Mux(again, chosen(self.programme, loops), at.base + count)),
            ending.eq(turn.before(self.timing.issue_cycles - 1) & active),
        ]  # fmt: skip
        m.d.comb += done.eq(ending & last_turn)
        with m.If(ending):
            m.d.sync += [at.thread.eq(Mux(last_thread, 0, at.thread + 1))]
            m.d.sync += at.digits_at.eq(Mux(last_thread, 0, at.digits_at + lay.stride))
            m.d.sync += at.slots_at.eq(Mux(last_thread, 0, at.slots_at + lay.slots))
            with m.If(last_thread):
                m.d.sync += [at.base.eq(following), at.index.eq(at.index + advance), at.left.eq(at.left - again)]
        with m.If(done):
            m.d.sync += active.eq(0)
        with m.Elif(turn.wrap & starting):
            m.d.sync += [active.eq(1), starting.eq(0)]
        return count, done

    def _entries(
        self, m: Module, table: ProgramMemory, turn: _Turn, at: Progress, active: Signal
    ) -> tuple[Signal, Signal, Signal]:
        """Steps through the entries of the instruction, two cycles each: whether it is an entry's second cycle, the
        entry's
        number, and whether the turn belongs to a run."""
        last = self.timing.sums + 1
        pointer = Signal(len(table.at), name="at", reset_less=True)
        second, stepping, live = (Signal(name=n) for n in ("second", "stepping", "live"))
        number = Signal(range(last + 1))
        m.d.comb += table.at.eq(pointer)
        m.d.sync += stepping.eq(~stepping)
        with m.If(stepping):
            m.d.sync += pointer.eq(pointer + 1)
        with m.If(turn.at(ENTRY_AT - 4)):
            m.d.sync += [pointer.eq(at.base), stepping.eq(0)]
        m.d.sync += second.eq(~second)
        with m.If(second & (number != last)):
            m.d.sync += number.eq(number + 1)
        with m.If(turn.at(ENTRY_AT - 1)):
            m.d.sync += [second.eq(0), number.eq(0), live.eq(active)]
        return second, number, live

    def _additions(self, m: Module, table: ProgramMemory, turn: _Turn, at: Progress) -> dict[int, Value]:
        """For each way to choose a slot what is added to an address, from the first entry's cycle on for a turn."""
        lay, address, slots_at = self.layout, len(self.s_read), at.slots_at
        digit = Signal(lay.digit_bits, reset_less=True)
        which, words = self._digits(m, table, at)
        with m.If(turn.at(DIGITS + 1)), m.Switch(which):
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
                with m.If(turn.at(ENTRY_AT - 1)):
                    m.d.sync += kept.eq(value)
                found[how] = kept
        found[SHARED] = Const(lay.shared_base, address)
        return found

    def _addresses(
        self, m: Module, table: ProgramMemory, adds: dict[int, Value], idle: Signal, second: Signal
    ) -> tuple[Value, Signal, Signal]:
        """Addresses of what is read, of what is written, and of the multiple of p of a difference."""
        lay, e, plus, address = self.layout, table.product, table.sum, len(self.s_read)
        reads, writes = ([adds[how] for how in lay.additions[name]] for name in ("read", "destination"))
        one, plus_one, to, to_plus, destination = (
            Signal(address, name=name, reset_less=True) for name in ("read", "plus", "to", "to_plus", "destination")
        )
        read_add = Mux(second, e.a_add, e.b_add) if len(reads) > 1 else Const(0)
        m.d.sync += [
            one.eq(Mux(idle, self.s_read, Mux(second, e.a, e.b))),
            plus_one.eq(Mux(idle, 0, chosen(read_add, reads))),
            to.eq(e.destination), to_plus.eq(chosen(e.destination_add, writes)), destination.eq(to + to_plus),
        ]  # fmt: skip
        lift = Signal(address, reset_less=True)
        m.d.sync += lift.eq(Mux(idle, self.s_address, lay.offset_base + plus.lift))
        return one + plus_one, destination, lift

    def _products(self, m: Module, turn: _Turn, live: Signal, active: Value) -> tuple[Signal, Signal, Signal, Signal]:
        """Products to the multiplier and back: when the operands of one are read, in which of the last cycles that was,
        whether one is offered, and whether a result is stored."""
        beat, core = self.timing, self.core
        product = Signal()
        m.d.comb += product.eq(turn.at(ENTRY_AT + 1) & live & active)
        moves = Signal(beat.move - ENTRY_AT)
        m.d.sync += moves.eq(Cat(product, moves))
        offering = Signal()
        with m.If(moves[beat.move - ENTRY_AT - 2] | self.start):
            m.d.sync += offering.eq(1)
        with m.Elif(core.i_ready):
            m.d.sync += offering.eq(0)
        free = turn.at(*(cycle - 1 for cycle in beat.free))
        arrived, waiting, storing = (Signal(name=n) for n in ("arrived", "waiting", "storing"))
        coming = Signal(CAPTURE - 1)  # cycles since the multiplier gave a product
        m.d.comb += arrived.eq(coming[-1])
        m.d.sync += [coming.eq(Cat(core.o_valid, coming)), waiting.eq((arrived | waiting) & ~storing)]
        m.d.comb += [core.i_valid.eq(offering), core.o_ready.eq(1), storing.eq((arrived | waiting) & free)]
        return product, moves, offering, storing

    def _sums(
        self, m: Module, unit: FieldUnit, due: Value, trim: Value, destination: Signal
    ) -> tuple[Value, Value, Value, Value]:
        """Whether a sum is stored, whether one is stored in the next cycle, trimmed or not, and where."""
        beat = self.timing
        if not beat.sums:
            return Const(0), Const(0), Const(0), Const(0, len(destination))
        sums = Signal(beat.delay)
        trims = Signal(beat.delay, reset_less=True)
        m.d.sync += [sums.eq(Cat(due, sums)), trims.eq(Cat(trim != 0, trims))]
        lines = DelayLines(m, max(4, beat.delay), name="sum")
        place = lines.line(destination, beat.delay - 1, name="sum_place")
        below = (
            lines.line(unit.below, beat.delay - beat.least_delay, name="below")
            if beat.conditional_subtracts
            else Const(0)
        )
        return sums[-1], sums[-2], trims[-2] & ~below, place

    def _places(self, m: Module, push: Value, place: Value, pop: Value) -> Signal:
        """Where products go, in order; the next one's place. They follow one another in a turn at least."""
        beat = self.timing
        depth = 1 << (beat.write // beat.issue_cycles + 3).bit_length()
        m.submodules.places = places = memory.Memory(shape=len(place), depth=depth, init=[])
        write, read = places.write_port(), places.read_port(domain="comb")
        first, end = (Signal(range(depth), name=n) for n in ("first_place", "end_place"))
        m.d.comb += [write.addr.eq(end), write.data.eq(place), write.en.eq(push), read.addr.eq(first)]
        m.d.sync += [first.eq(first + pop), end.eq(end + push)]
        return later(m, read.data, "place")

    def _numbers(self, m: Module, idle: Signal) -> tuple[Value, Value, Value]:
        """Numbers from outside and back: when one is captured, when it is written, when sums are trimmed by it."""
        giving, placing = Signal(name="giving"), Signal(name="placing")
        setting = Signal(len(self.s_trim))
        _, storing = self._access(m, self.s_write & idle, self.s_ready, self.store_cycles, ("writing", "storing"))
        m.d.sync += [
            giving.eq(storing == 1), placing.eq((storing == _PLACED) & ~self.s_trim.any()),
            setting.eq(Mux(storing == _PLACED, self.s_trim, 0)),
        ]  # fmt: skip
        self._access(m, self.s_ask & idle, self.s_valid, self.read_cycles, ("asked", "asking"))
        return giving, placing, setting

    def _run(self, m: Module, idle: Signal, aligned: Signal, starting: Signal, done: Value, offering: Signal) -> None:
        """A first product that is forgotten shows when the multiplier takes one; then the turns; then all is written.

        The cycles that the first product did not wait are waited for at the end, so that a run takes the same time.
        """
        beat = self.timing
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
