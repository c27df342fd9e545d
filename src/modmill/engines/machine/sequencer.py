# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Sequencer of a coprocessor: it reads instructions from the program table and controls the field unit in each cycle.

`Sequencer` is the common part: ports, program counter, digits, access from outside. `DatapathSequencer` controls a
field unit: a counter counts the cycles of an issue slot, and strobes decoded from it start each action in the cycle
that `timing.py` gives. `slot_sequencer.py` controls a slot machine. The only data-dependent addresses are those that
digits select; the timing does not depend on data. In a program with selections digits steer which operands are dropped.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from modmill.contract import ALARM
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
from modmill.interface import Multiplier
from modmill.rtl.delay import DelayLines, later

ENTRY_AT = FIRST - 2
"""Cycle of an issue slot in which the instruction's first entry is at the output of the table."""
_WRITTEN = 4  # cycles of an access from its start to the write, registers not counted
_STEADY = 4  # cycles of an access after which the address of the number that is read no longer changes
_FROM_DIGITS = (OWN_ENTRY, UP, DOWN, SHARED_ENTRY)


class Progress(NamedTuple):
    """Registers of a run.

    ``base``: address of the instruction's first entry. ``index``: of the current digit. ``digits_at``, ``slots_at``:
    first word of digits and first slot of the thread. ``left``: remaining passes of the loop after this one.
    """

    base: Signal
    thread: Signal
    index: Signal
    digits_at: Signal
    slots_at: Signal
    left: Signal


class Sequencer(wiring.Component):
    """Run one program for all threads when ``start`` is high. Abstract; instantiate a subclass.

    While not ``busy``: ``s_write`` stores ``s_data`` at ``s_address``, or with a bit of ``s_trim`` as that multiple for
    conditional subtractions; hold it until ``s_ready`` is high. ``s_ask`` reads the slot ``s_read``; hold it until
    ``s_valid`` is high and ``s_q`` has the number. ``d_write`` stores a word of digits. Keep ``programme``, the number
    of the program, and ``passes`` of the loop (if the layout is ``counted``) constant while busy. A run takes
    ``cycles`` cycles from ``start``, independent of operands and digits. A core with an alarm has it as an output here;
    so has a layout with parity, for a cycle at a time: a word that was read and used had a wrong one.
    """

    def __init__(self, core: Any, layout: MicrocodeLayout, *, address: int, ends: int, store: int, read: int) -> None:
        """``address``: bits of a slot's address. ``ends``: cycles of a run in addition to those of the timing.
        ``store``, ``read``: cycles to write and to read one number."""
        self.core, self.layout, self._ends = core, layout, ends
        self.store_cycles, self.read_cycles = store, read
        width = layout.contract.operand.width
        super().__init__({
            "start": In(1), "busy": Out(1), "programme": In(range(max(2, len(layout.programs)))),
            "s_write": In(1), "s_ready": Out(1), "s_address": In(address), "s_data": In(width),
            "s_trim": In(len(layout.conditional_subtracts)),
            "s_ask": In(1), "s_valid": Out(1), "s_read": In(address), "s_q": Out(width),
            "d_write": In(1), "d_address": In(range(max(2, layout.digit_depth))), "d_data": In(PACK),
            **({"passes": In(COUNT_BITS)} if layout.counted else {}), **({ALARM: Out(1)} if self.alarmed else {}),
        })  # fmt: skip

    @property
    def alarmed(self) -> bool:
        """Whether it has the output `ALARM`."""
        return bool(self.core.alarm or self.layout.timing.parity)

    @property
    def destinations(self) -> int:
        """Number of places in which addresses of results wait, by turns."""
        return 0

    def cycles(self, program: int, passes: int | None = None) -> int:
        """Cycles from ``start`` until ``busy`` is low, independent of operands and digits. ``passes``: of the loop, the
        program's own by default. Raises UnsupportedError as `MicrocodeLayout.counting`."""
        lay = self.layout
        return lay.timing.cycles(lay.counting(program, passes).instructions, lay.threads) + self._ends

    def _progress(self, table: ProgramMemory, thread_name: str = "context") -> Progress:
        lay = self.layout
        return Progress(
            Signal(len(table.at), name="base", reset_less=True),
            Signal(range(max(2, lay.threads)), name=thread_name),
            Signal(range(lay.per_word * lay.stride + 1), name="index"),
            Signal(len(self.d_address), name="digits_at"),
            Signal(len(self.s_read), name="slots_at"),
            Signal(COUNT_BITS, name="left", reset_less=True),
        )

    def _restart(self, m: Module, at: Progress) -> None:
        """Go to the first instruction of the program and the first thread."""
        lay, (_, firsts, _) = self.layout, self.layout.table
        if lay.counted:
            more: Value = (self.passes - 1)[:COUNT_BITS]
        else:  # not used in a program without a loop
            more = chosen(self.programme, [max(0, p.passes - 1) for p in lay.programs])
        m.d.sync += [
            at.base.eq(chosen(self.programme, firsts)), at.thread.eq(0), at.index.eq(0), at.digits_at.eq(0),
            at.slots_at.eq(0), at.left.eq(more),
        ]  # fmt: skip

    def _digits(self, m: Module, table: ProgramMemory, at: Progress) -> tuple[Value, list[Value | int]]:
        """Return the position of the current digit in its word and all digits of that word."""
        lay = self.layout
        within = (lay.per_word - 1).bit_length()
        m.d.comb += [
            table.d_at.eq(at.digits_at + at.index[within:]),
            table.d_place.eq(self.d_address),
            table.d_write.eq(self.d_write),
            table.d_data.eq(self.d_data),
        ]
        bits, packed = lay.digit_bits, later(m, table.digits, "digits")
        return at.index[:within], [packed[bits * k : bits * (k + 1)] for k in range(lay.per_word)]

    def _access(
        self, m: Module, wanted: Value, ready: Signal, cycles: int, names: tuple[str, str]
    ) -> tuple[Signal, Signal]:
        """Time a write or read of ``cycles`` cycles; return whether it is going on, and its cycle."""
        going, count = Signal(name=names[0]), Signal(range(cycles + 1), name=names[1])
        m.d.sync += [going.eq(wanted & ~ready), count.eq(Mux(going, count + 1, 0)), ready.eq(count == cycles - 3)]
        return going, count


class _IssueCounter:
    """Counter of the cycles of an issue slot. ``aligned`` sets it when the multiplier accepts a run's first product."""

    def __init__(self, m: Module, timing: MachineTiming, aligned: Signal) -> None:
        self._m, self._cycles = m, timing.issue_cycles
        self.phase, self.wrap = Signal(range(timing.issue_cycles), name="phase"), Signal(name="wrap")
        self._strobes: dict[frozenset[int], Signal] = {}
        synced, phase, wrap = (2 - timing.run_up) % timing.issue_cycles, self.phase, self.wrap
        m.d.sync += [
            phase.eq(Mux(aligned, synced, Mux(wrap, 0, phase + 1))),
            wrap.eq(Mux(aligned, synced == timing.issue_cycles - 1, phase == timing.issue_cycles - 2)),
        ]

    def before(self, cycle: int) -> Value:
        """High in the cycle before this cycle of an issue slot."""
        return self.phase == (cycle - 1) % self._cycles

    def at(self, *cycles: int) -> Signal:
        """High in these cycles of an issue slot, from a register."""
        wanted = frozenset(cycle % self._cycles for cycle in cycles)
        if wanted not in self._strobes:
            self._strobes[wanted] = strobe = Signal(name="at_" + "_".join(map(str, sorted(wanted)[:3])))
            self._m.d.sync += strobe.eq(Cat(*(self.before(cycle) for cycle in sorted(wanted))).any())
        return self._strobes[wanted]


class DatapathSequencer(Sequencer):
    """Sequencer of a field unit. Ports as in `Sequencer`.

    Latency: the ``cycles`` of the program from ``start`` to the end of ``busy``, independent of operands and digits.
    """

    def __init__(self, core: Multiplier, layout: MicrocodeLayout) -> None:
        timing = layout.timing
        assert isinstance(timing, MachineTiming)
        self.timing = timing
        address, store = layout.depth.bit_length() - 1, max(_WRITTEN, timing.skew + 3) + 4
        super().__init__(core, layout, address=address, ends=2, store=store, read=timing.skew + 10)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lay, timing, core = self.layout, self.timing, self.core
        load, p = lay.contract.load, lay.contract.p
        m.submodules.unit = unit = FieldUnit(
            core, timing, lay.depth, [None if load else k * p for k in lay.conditional_subtracts],
            selects=lay.selecting_bits > 0,
        )  # fmt: skip
        m.submodules.table = table = ProgramMemory(lay)
        plus = table.sum
        idle, active, starting, aligned = (Signal(name=n) for n in ("idle", "active", "starting", "aligned"))
        issue, progress = _IssueCounter(m, timing, aligned), self._progress(table)
        count, done = self._instructions(m, table, issue, progress, active, starting)
        second, number, live = self._entries(m, table, issue, progress, active)
        digit = self._digit(m, table, issue, progress)
        adds = self._bases(m, issue, progress, digit)
        read, destination, lift = self._addresses(m, table, adds, idle, second)
        product, moves, offering, storing = self._products(m, issue, live, table.product.active)
        place = self._destinations(m, moves[0] | self.start, Cat(destination, ~self.start), storing)
        due = live & second & (number != 0) & (number < count)
        summing, adding, choose, sum_place = self._sums(m, unit, due, plus.trim, destination)
        giving, placing, setting, reading = self._numbers(m, idle)
        capture, given = core.o_valid | giving, idle
        if not timing.adding:  # wide numbers: registers drive all slices; an instruction without product writes nothing
            capture, given = Signal(name="capture"), later(m, idle, "given")
            m.d.sync += capture.eq(issue.before(timing.arrive) | giving)
        word, address = unit.control, len(self.s_read)
        m.d.comb += [
            word.read.eq(read),
            word.place.eq(Mux(summing, sum_place, Mux(storing, place[:address], lift))),
            word.write.eq(summing | (storing & place[address]) | placing),
            word.result.eq(~adding),
            word.choose.eq(choose),
            word.take.eq(product), word.invert.eq(later(m, plus.invert & ~second, "invert")),
            word.begin.eq(later(m, ~second, "begin")),
            word.trim.eq(later(m, (plus.trim - 1)[: len(word.trim)], "trim")),
            unit.move.eq(moves[timing.move - ENTRY_AT - 3]),
            unit.capture.eq(capture), unit.given.eq(given), unit.set_trim.eq(setting),
            unit.number.eq(self.s_data), self.s_q.eq(unit.q),
        ]  # fmt: skip
        if timing.parity:
            used, used_a, lifted = live & second & ((number == 0) | (number < count)), Signal(), Signal()
            lifts = due if timing.adders or not timing.sums else Const(0)
            m.d.sync += [used_a.eq(product | due), lifted.eq(lifts)]  # with a reset: after it nothing is used
            m.d.comb += [
                word.used.eq(product | due | used_a | reading), word.used_b.eq(lifted),
                self.o_alarm.eq(unit.wrong | self._wrong_entry(m, table, issue, used, number)),
            ]  # fmt: skip
        if lay.selecting_bits:
            m.d.comb += word.drop.eq(self._dropped(m, issue, digit, plus.select, second))
        self._run(m, idle, aligned, starting, done, offering)
        with m.If(self.start):
            self._restart(m, progress)
        return m

    def _wrong_entry(
        self, m: Module, table: ProgramMemory, issue: _IssueCounter, used: Value, number: Signal
    ) -> Value:  # fmt: skip
        """Check the entry of the last cycle if it is ``used``, and the digits if they select one of its addresses or
        operands. ``number``: of the entry, 0 for that of the product."""
        e, now = table.product, Signal(name="entry_used")
        selects = [
            getattr(e, f"{name}_add") == code
            for name in self.layout.fields
            for code, how in enumerate(self.layout.bases(name))
            if how in _FROM_DIGITS
        ]
        if self.layout.selecting_bits:
            selects.append((table.sum.select != 0) & (number != 0))
        taken, digit = (Signal(name=name, reset_less=True) for name in ("digits_wrong", "digit_wrong"))
        with m.If(issue.at(DIGITS + 1)):
            m.d.sync += taken.eq(table.digits_wrong)
        with m.If(issue.at(ENTRY_AT - 1)):
            m.d.sync += digit.eq(taken)
        m.d.sync += now.eq(used)
        return now & (table.wrong | later(m, digit & Cat(*selects).any(), "digit_used"))

    def _instructions(
        self, m: Module, table: ProgramMemory, issue: _IssueCounter, at: Progress, active: Signal, starting: Signal
    ) -> tuple[Signal, Signal]:
        """Step from thread to thread and from instruction to instruction. Returns the number of entries of the
        instruction and whether the run ends."""
        lay, e, (_, _, loops) = self.layout, table.product, self.layout.table
        following = Signal(len(at.base), name="next", reset_less=True)
        count = Signal(len(e.count), reset_less=True)
        advance, again, last = (Signal(name=name, reset_less=True) for name in ("advance", "again", "last"))
        more, last_thread, last_turn, ending, done = (
            Signal(name=name) for name in ("more_passes", "last_context", "last_turn", "ending", "done")
        )
        with m.If(issue.at(ENTRY_AT)):
            m.d.sync += [
                count.eq(e.count),
                advance.eq(e.advance),
                again.eq(e.again & more),
                last.eq(e.last & ~(e.again & more)),
            ]
        m.d.sync += [
            more.eq(at.left != 0),
            last_thread.eq(at.thread == lay.threads - 1),
            last_turn.eq(last_thread & last),
            following.eq(Mux(again, chosen(self.programme, loops), at.base + count)),
            ending.eq(issue.before(self.timing.issue_cycles - 1) & active),
        ]
        m.d.comb += done.eq(ending & last_turn)
        with m.If(ending):
            m.d.sync += [
                step.eq(Mux(last_thread, 0, step + by))
                for step, by in ((at.thread, 1), (at.digits_at, lay.stride), (at.slots_at, lay.slots))
            ]
            with m.If(last_thread):
                m.d.sync += [at.base.eq(following), at.index.eq(at.index + advance), at.left.eq(at.left - again)]
        with m.If(done):
            m.d.sync += active.eq(0)
        with m.Elif(issue.wrap & starting):
            m.d.sync += [active.eq(1), starting.eq(0)]
        return count, done

    def _entries(
        self, m: Module, table: ProgramMemory, issue: _IssueCounter, at: Progress, active: Signal
    ) -> tuple[Signal, Signal, Signal]:
        """Step through the entries of the instruction, two cycles each. Returns whether this is the second cycle of an
        entry, the number of the entry, and whether the issue slot belongs to a run."""
        last = self.timing.sums + 1
        pointer = Signal(len(table.at), name="at", reset_less=True)
        second, stepping, live = (Signal(name=n) for n in ("second", "stepping", "live"))
        number = Signal(range(last + 1))
        m.d.comb += table.at.eq(pointer)
        m.d.sync += stepping.eq(~stepping)
        with m.If(stepping):
            m.d.sync += pointer.eq(pointer + 1)
        with m.If(issue.at(ENTRY_AT - 4)):
            m.d.sync += [pointer.eq(at.base), stepping.eq(0)]
        m.d.sync += second.eq(~second)
        with m.If(second & (number != last)):
            m.d.sync += number.eq(number + 1)
        with m.If(issue.at(ENTRY_AT - 1)):
            m.d.sync += [second.eq(0), number.eq(0), live.eq(active)]
        return second, number, live

    def _digit(self, m: Module, table: ProgramMemory, issue: _IssueCounter, at: Progress) -> Signal:
        """The current digit of the thread, valid in cycle ENTRY_AT - 1."""
        digit = Signal(self.layout.digit_bits, reset_less=True)
        which, words = self._digits(m, table, at)
        with m.If(issue.at(DIGITS + 1)), m.Switch(which):
            for k, word in enumerate(words):
                with m.Case(k):
                    m.d.sync += digit.eq(word)
        return digit

    def _dropped(self, m: Module, issue: _IssueCounter, digit: Signal, select: Value, second: Signal) -> Value:
        """Whether a selection drops the operand that is read."""
        kept = Signal(self.layout.selecting_bits, name="selecting", reset_less=True)
        with m.If(issue.at(ENTRY_AT - 1)):
            m.d.sync += kept.eq(digit)
        return later(m, (select != 0) & (chosen(select, [0, *kept]) ^ second), "drop")

    def _bases(self, m: Module, issue: _IssueCounter, at: Progress, digit: Signal) -> dict[int, Value]:
        """The value of each base that is added to addresses, valid from cycle ENTRY_AT on for an issue slot."""
        lay, address, slots_at = self.layout, len(self.s_read), at.slots_at
        used = {*lay.bases("destination"), *lay.bases("a")}
        found: dict[int, Value] = {}
        for how, value in (
            (OWN, slots_at), (OWN_ENTRY, slots_at + digit), (UP, slots_at + digit[0]), (DOWN, slots_at - digit[0]),
            (SHARED_ENTRY, lay.shared_base + digit),
        ):  # fmt: skip
            if how in used:
                kept = Signal(address, name=f"add_{how}", reset_less=True)
                with m.If(issue.at(ENTRY_AT - 1)):
                    m.d.sync += kept.eq(value)
                found[how] = kept
        found[SHARED] = Const(lay.shared_base, address)
        return found

    def _addresses(
        self, m: Module, table: ProgramMemory, adds: dict[int, Value], idle: Signal, second: Signal
    ) -> tuple[Value, Signal, Signal]:
        """Addresses of the operand that is read, of the destination, and of a difference's multiple of p."""
        lay, e, plus, address = self.layout, table.product, table.sum, len(self.s_read)
        reads, writes = ([adds[how] for how in lay.bases(name)] for name in ("a", "destination"))
        one, plus_one, to, to_plus, destination = (
            Signal(address, name=name, reset_less=True) for name in ("read", "plus", "to", "to_plus", "destination")
        )
        read_add = Mux(second, e.a_add, e.b_add) if len(reads) > 1 else Const(0)
        m.d.sync += [
            one.eq(Mux(idle, self.s_read, Mux(second, e.a, e.b))),
            plus_one.eq(Mux(idle, 0, chosen(read_add, reads))),
            to.eq(e.destination),
            to_plus.eq(chosen(e.destination_add, writes)),
            destination.eq(to + to_plus),
        ]
        lift = Signal(address, reset_less=True)
        m.d.sync += lift.eq(Mux(idle, self.s_address, lay.offset_base + plus.lift))
        return one + plus_one, destination, lift

    def _products(
        self, m: Module, issue: _IssueCounter, live: Signal, active: Value
    ) -> tuple[Signal, Signal, Signal, Signal]:
        """Operands to the multiplier and products back. Returns whether the operands of a product are read, the history
        of that bit, whether operands are offered, and whether a product is stored."""
        timing, core = self.timing, self.core
        product = Signal()
        m.d.comb += product.eq(issue.at(ENTRY_AT + 1) & live & active)
        moves = Signal(timing.move - ENTRY_AT)
        m.d.sync += moves.eq(Cat(product, moves))
        offering = Signal()
        with m.If(moves[timing.move - ENTRY_AT - 2] | self.start):
            m.d.sync += offering.eq(1)
        with m.Elif(core.i_ready):
            m.d.sync += offering.eq(0)
        free = issue.at(*(cycle - 1 for cycle in timing.free))
        arrived, waiting, storing = (Signal(name=n) for n in ("arrived", "waiting", "storing"))
        coming = Signal(CAPTURE - 1)  # o_valid of the last cycles
        m.d.comb += arrived.eq(coming[-1])
        m.d.sync += [coming.eq(Cat(core.o_valid, coming)), waiting.eq((arrived | waiting) & ~storing)]
        m.d.comb += [core.i_valid.eq(offering), core.o_ready.eq(1), storing.eq((arrived | waiting) & free)]
        return product, moves, offering, storing

    def _sums(
        self, m: Module, unit: FieldUnit, due: Value, trim: Value, destination: Signal
    ) -> tuple[Value, Value, Value, Value]:
        """Delay the control of sums: whether a sum is stored in this cycle, whether one is stored in the next cycle,
        whether that one is stored after its conditional subtraction, and the address of this one."""
        timing = self.timing
        if not timing.sums:
            return Const(0), Const(0), Const(0), Const(0, len(destination))
        sums = Signal(timing.delay)
        trims = Signal(timing.delay, reset_less=True)
        m.d.sync += [sums.eq(Cat(due, sums)), trims.eq(Cat(trim != 0, trims))]
        lines = DelayLines(m, max(4, timing.delay), name="sum")
        place = lines.line(destination, timing.delay - 1, name="sum_place")
        below: Value = Const(0)
        if timing.conditional_subtracts:
            below = lines.line(unit.below, timing.delay - timing.least_delay, name="below")
        return sums[-1], sums[-2], trims[-2] & ~below, place

    @property
    def destinations(self) -> int:
        return 1 << (self.timing.write // self.timing.issue_cycles + 3).bit_length()

    def _destinations(self, m: Module, push: Value, place: Value, pop: Value) -> Signal:
        """A FIFO of the destinations of products; return the next one. Products are at least an issue slot apart."""
        depth = self.destinations
        m.submodules.places = places = memory.Memory(shape=len(place), depth=depth, init=[])
        write, read = places.write_port(), places.read_port(domain="comb")
        first, end = (Signal(range(depth), name=n) for n in ("first_place", "end_place"))
        m.d.comb += [write.addr.eq(end), write.data.eq(place), write.en.eq(push), read.addr.eq(first)]
        m.d.sync += [first.eq(first + pop), end.eq(end + push)]
        return later(m, read.data, "place")

    def _numbers(self, m: Module, idle: Signal) -> tuple[Value, Value, Value, Value]:
        """Writes and reads from outside: whether a number is captured, whether it is written to its slot, which
        multiple for conditional subtractions it sets, and whether the number at the address read is used."""
        giving, placing = Signal(name="giving"), Signal(name="placing")
        setting = Signal(len(self.s_trim))
        _, storing = self._access(m, self.s_write & idle, self.s_ready, self.store_cycles, ("writing", "storing"))
        m.d.sync += [
            giving.eq(storing == 1),
            placing.eq((storing == _WRITTEN) & ~self.s_trim.any()),
            setting.eq(Mux(storing == _WRITTEN, self.s_trim, 0)),
        ]
        _, asking = self._access(m, self.s_ask & idle, self.s_valid, self.read_cycles, ("asked", "asking"))
        return giving, placing, setting, asking >= _STEADY

    def _run(self, m: Module, idle: Signal, aligned: Signal, starting: Signal, done: Value, offering: Signal) -> None:
        """State machine of a run: align to the multiplier with a first, unused product; issue slots; drain. A run takes
        constant time: cycles that the first product did not have to wait are added at the end."""
        timing = self.timing
        margin = Signal(range(timing.alignment + 1))
        rest = Signal(range(timing.drain + 1))
        with m.FSM(name="run") as fsm:
            with m.State("IDLE"):
                m.d.sync += [margin.eq(timing.alignment), rest.eq(timing.drain)]
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
