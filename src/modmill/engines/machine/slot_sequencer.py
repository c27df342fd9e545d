# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Sequencer of a slot machine: the numbers stay in the rowers from the first instruction to the last.

The machine accepts an operation once in every interval and signals the cycle, so the sequencer has no counter of
cycles. An instruction without an operation takes an interval too.
"""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value

from modmill.engines.machine.layout import DOWN, OWN, OWN_ENTRY, SHARED, SHARED_ENTRY, UP, MicrocodeLayout
from modmill.engines.machine.program_memory import DIGITS, ProgramMemory, chosen
from modmill.engines.machine.sequencer import Progress, Sequencer
from modmill.engines.machine.timing import SlotTiming
from modmill.interface import SlotMachine
from modmill.rtl.delay import later

_FETCH = max(DIGITS + 2, 4) + 3
"""Cycles from the address of an entry and of the digits to the operand addresses."""
_NAMELESS = "$signal"
"""Name of two registers in the emitted Verilog, kept because its digests and measurements are recorded."""
_STABLE = 3
"""Cycles until a number from outside is stable, and during which a number that is read is held."""


class SlotSequencer(Sequencer):
    """Sequencer of a slot machine. Ports as in `Sequencer`.

    A number is written or read in 4 intervals of the machine. Raises ValueError for an interval that is too short.
    Cost besides the machine: the table, and registers for five addresses. Latency: the ``cycles`` of the program from
    ``start`` to the end of ``busy``, independent of operands and digits.
    """

    def __init__(self, core: SlotMachine, layout: MicrocodeLayout) -> None:
        timing = layout.timing
        assert isinstance(timing, SlotTiming)
        if core.interval <= _FETCH:
            raise ValueError(f"an interval of {core.interval} cycles is too short; at least {_FETCH + 1} are needed")
        super().__init__(core, layout, address=len(core.i_a), ends=3, store=timing.access, read=timing.access)

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        lay, core = self.layout, self.core
        m.submodules.core = core
        m.submodules.table = table = ProgramMemory(lay)
        e = table.product
        self._numbers(m)
        at = self._progress(table, thread_name=_NAMELESS)
        following, again, last, last_thread = self._instructions(m, table, at)
        self._addresses(m, table, at)
        active = later(m, later(m, e.active, "active_0"), "active")
        two = later(m, later(m, e.two, "two_0"), "two")
        running = Signal()
        m.d.comb += [core.i_valid.eq(running & active), core.i_sum.eq(two)]
        if core.alarm:
            m.d.comb += self.o_alarm.eq(core.o_alarm)

        # ---- a run: it begins and ends when the machine accepts an operation
        margin = Signal(range(core.interval + 1), name=_NAMELESS)
        rest = Signal(range(core.distance + 2))
        with m.FSM(name="run") as fsm:
            with m.State("IDLE"):
                m.d.sync += [margin.eq(core.interval), rest.eq(core.distance)]
                with m.If(self.start):
                    self._restart(m, at)
                    m.next = "ALIGN"
            with m.State("ALIGN"):
                m.d.sync += margin.eq(margin - 1)
                with m.If(core.i_ready):
                    m.next = "RUN"
            with m.State("RUN"):
                m.d.comb += running.eq(1)
                with m.If(core.i_ready):
                    m.d.sync += [
                        at.thread.eq(at.thread + 1),
                        at.slots_at.eq(at.slots_at + lay.slots),
                        at.digits_at.eq(at.digits_at + lay.stride),
                    ]
                    with m.If(last_thread):
                        m.d.sync += [
                            at.thread.eq(0), at.slots_at.eq(0), at.digits_at.eq(0), at.base.eq(following),
                            at.index.eq(at.index + e.advance), at.left.eq(at.left - again),
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

    def _instructions(self, m: Module, table: ProgramMemory, at: Progress) -> tuple[Signal, Signal, Signal, Signal]:
        """Address of the next instruction; whether the loop repeats; whether instruction and thread are the last."""
        lay, e, (_, _, loops) = self.layout, table.product, self.layout.table
        again, last_thread, last = (Signal(name=name) for name in ("again", "last_context", "last"))
        following = Signal(len(at.base), reset_less=True)
        m.d.comb += table.at.eq(at.base)
        m.d.sync += [
            again.eq(e.again & (at.left != 0)),
            last_thread.eq(at.thread == lay.threads - 1),
            last.eq(e.last & ~(e.again & (at.left != 0))),
            following.eq(Mux(again, chosen(self.programme, loops), at.base + 1)),
        ]
        return following, again, last, last_thread

    def _addresses(self, m: Module, table: ProgramMemory, at: Progress) -> None:
        """Operand addresses of the operation: the entry's numbers plus their bases."""
        lay, e, slots_at = self.layout, table.product, at.slots_at
        which, words = self._digits(m, table, at)
        digit = later(m, chosen(which, words), "digit")
        adds: dict[int, Value] = {
            OWN: slots_at, OWN_ENTRY: later(m, slots_at + digit, "entry"), SHARED: Value.cast(lay.shared_base),
            UP: later(m, slots_at + digit[0], "up"), DOWN: later(m, slots_at - digit[0], "down")[: len(slots_at)],
            SHARED_ENTRY: later(m, lay.shared_base + digit, "shared_entry"),
        }  # fmt: skip
        for name in lay.fields:
            number, bases = later(m, getattr(e, name), f"{name}_number"), [adds[how] for how in lay.bases(name)]
            added = later(m, chosen(getattr(e, f"{name}_add"), bases), f"{name}_plus")
            m.d.sync += getattr(self.core, f"i_{name}").eq(number + added)

    def _numbers(self, m: Module) -> None:
        """Writes and reads from outside, each in constant time."""
        core = self.core
        writing, storing = self._access(m, self.s_write, self.s_ready, self.store_cycles, ("writing", "storing"))
        asked, _ = self._access(m, self.s_ask, self.s_valid, self.read_cycles, ("asked", "asking"))
        stored, going = Signal(name="stored"), Signal(name="going")
        m.d.sync += [
            stored.eq(writing & (stored | (core.x_valid & core.x_ready))),
            going.eq(asked & (going | (core.q_valid & core.q_ready))),
        ]
        kept = Signal(_STABLE + 2)  # hold the number until it is in the register of the port
        m.d.sync += kept.eq((kept << 1) | self.s_valid)
        m.d.comb += [
            core.x_valid.eq(writing & (storing >= _STABLE) & ~stored), core.x_slot.eq(self.s_address),
            core.x_number.eq(self.s_data), core.q_valid.eq(asked & ~going), core.q_slot.eq(self.s_read),
            core.o_ready.eq(kept[-1]), self.s_q.eq(core.o_number),
        ]  # fmt: skip
