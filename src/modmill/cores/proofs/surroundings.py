# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""One issue slot of a machine, with anything before and after it.

All is unknown that other rows may decide: rows, digits, results, addresses, whether there is a product, how many sums
there are, which row follows. A bit of which this is not enough is given by a *guarantee*, at the same place in every
issue slot:

    idle, aligned, starting   are 0 from the beginning of the first issue slot to the end of the drain
    offering                  is 0 after the cycle in which the row's product would be accepted, but if the next one is
                              offered from then on
    sums                      no sum begins but in the cycles of the row's sums
    waiting                   no product waits after the cycle in which the row's product would be stored
    o_valid                   is 0 but in the cycle in which the row's product would arrive

`data_path` and `sequence` show each of them for the row that they follow. So by induction over the cycles they hold
in every slot. What is known of the registers at the beginning of a slot besides those of the row is found by running
some slots from nothing but the guarantees; `sequence` shows it of every slot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from modmill.cores.proofs.closed_machine import ClosedMachine, State, show_inverse
from modmill.engines.machine.layout import MicrocodeLayout
from modmill.engines.machine.program_memory import DIGITS
from modmill.engines.machine.sequencer import ENTRY_AT
from modmill.engines.machine.timing import FIRST, MachineTiming
from modmill.interface import Multiplier
from modmill.proofs.arithmetic.word_rules import Bit, Bits
from modmill.proofs.netlist import Netlist

IDLE, FOUND, DIGIT_WORD, PLACE, BELOW = (
    "sequencer.idle", "sequencer.table.found", "sequencer.table.digits", "sequencer.place", "sequencer.unit.below"
)  # fmt: skip
"""Nets that are cut."""
BASE, THREAD, INDEX, DIGITS_AT, SLOTS_AT, LEFT = (
    f"sequencer.{name}" for name in ("base", "context", "index", "digits_at", "slots_at", "left")
)
"""Registers of the row and the thread."""
ACTIVE, PHASE, WRAP, STATE, ALIGNED, STARTING, OFFERING, WAITING, REST = (
    f"sequencer.{name}" for name in (
        "active", "phase", "wrap", "run_state", "aligned", "starting", "offering", "waiting", "rest"
    )
)  # fmt: skip
PROGRAMME, POINTER, SUMS, MOVES, START = (
    "programme",
    "sequencer.at",
    "sequencer.sums",
    "sequencer.moves",
    "sequencer.start",
)
OF_ROW = (BASE, THREAD, INDEX, DIGITS_AT, SLOTS_AT, LEFT, ACTIVE, STATE, PROGRAMME)
"""Registers that depend on the row at the beginning of an issue slot."""
_MESSAGE, RUNNING = "message_", "message_run"
RUN = 2
"""Code of the state in which rows run."""
_TABLE = 3
"""Cycles from the address of an entry to the entry."""
_MOST_SLOTS = 80
"""Most slots until nothing more becomes known."""


@dataclass
class Row:
    """What a run knows of its row.

    ``entries``: bits of each entry of the table. ``registers``: what registers hold at the beginning. ``digits``: the
    word of digits. ``active``: whether there is a product, None if it may be. ``product``: its bits, and ``place``: the
    word of the queue with its destination. ``below``: by cycle, whether a sum is below its multiple. ``sums``: by
    cycle, whether a sum begins. ``free``: the guarantees that this run does not take for its own row, of OFFERING,
    WAITING and SUMS. ``first``: there is no row before it; ``last``: none follows."""

    entries: Sequence[Bits] = ()
    registers: Mapping[str, Bits] = field(default_factory=dict)
    digits: Bits = ()
    active: Bit = None
    product: Bits = ()
    place: Bits = ()
    below: Mapping[int, Bit] = field(default_factory=dict)
    sums: Mapping[int, int] = field(default_factory=dict)
    free: frozenset[str] = frozenset()
    first: bool = False
    last: bool = False


class Surroundings:
    """A machine ``m``, its state ``nothing`` of which nothing is known, and what is known at the beginning of each
    issue slot, ``start``.

    Of a run, by cycle: ``offered``, whether operands are offered; ``at_core``, the operands at the multiplier;
    ``kept``, what ALIGNED, STARTING and IDLE would be. ``seen_below``: whether a sum is seen to be below."""

    def __init__(self, net: Netlist, layout: MicrocodeLayout, core: Multiplier) -> None:
        assert isinstance(layout.timing, MachineTiming)
        self.layout, self.timing, self.core = layout, layout.timing, core
        self.cycles = self.timing.issue_cycles
        if self.timing.conditional_subtracts:  # ~carries_out of the highest slice, without a name if nothing delays it
            show_inverse(net, BELOW, f"sequencer.unit.slice_{len(self.timing.slices) - 1}.carries_out", 2)
            net = Netlist(net.module)
        cut = [IDLE, FOUND, DIGIT_WORD, PLACE, *([BELOW] if self.timing.conditional_subtracts else [])]
        absent = [
            *((THREAD, DIGITS_AT, SLOTS_AT) if layout.threads == 1 else ()),
            *([PROGRAMME][len(layout.programs) > 1 :]),
        ]
        self.m = ClosedMachine(net, layout, cut, absent)
        self.last = max(self.timing.write, FIRST + 2 * self.timing.sums + self.timing.delay) + self.timing.skew
        """Last cycle in which a row may write."""
        self.offered: dict[int, Bit] = {}
        self.at_core: dict[int, list[Bits]] = {}
        self.kept: dict[int, Bits] = {}
        self.row = Row()
        self.offer = self.timing.move - ENTRY_AT - 2
        """Bit of MOVES that offers operands in the next cycle."""
        self._next: Bit = None
        self._pointers: dict[int, Bits] = {}
        self.seen_below: Bits = ()
        self.nothing = self.m.state()
        self.start = self._settled()

    # ---- what is known

    def pinned(self) -> dict[str, Bits]:
        """Registers with known values at the beginning of each slot, which no row changes."""
        states = {name for name in self.m.net.module["netnames"] if name.startswith(_MESSAGE)}
        found: dict[str, Bits] = {}
        for name in states:
            nets = self.m.named(name)
            if self.m.is_register(nets[0]):
                found[name] = (int(name == RUNNING),)
        return found

    def _settled(self) -> State:
        m, timing = self.m, self.timing
        m.count_freely()
        for name, bits in {**self.pinned(), "busy": (1,), START: (0,), WRAP: (0,)}.items():
            m.put(name, bits)
        m.put(PHASE, (0,) * len(m.named(PHASE)))
        m.put(REST, number(timing.drain, len(m.named(REST))))
        before: Any = None
        for slot in range(_MOST_SLOTS):
            for t in range(self.cycles):
                m.put(STATE, number(RUN, len(m.named(STATE))))
                self.cycle(t - self.cycles * (_MOST_SLOTS - slot))
            known = sorted(str(k) for k, v in m.state().values.items() if v is not None)
            if known == before:
                break
            before = known
        else:
            raise ValueError(f"what is known at the beginning of a slot does not settle in {_MOST_SLOTS} slots")
        self.offered = {}
        for name in OF_ROW:
            m.forget([net for net in m.named(name) if m.is_register(net)])
        return m.state()

    # ---- a run

    def begin(self, row: Row) -> None:
        """Go to the beginning of an issue slot with this row."""
        self.m.restore(self.start, 0)
        self.row, self._pointers, self._next = row, {}, None
        self.offered, self.at_core, self.kept = {}, {}, {}
        for name, bits in {ACTIVE: (1,), STATE: number(RUN, len(self.m.named(STATE))), **row.registers}.items():
            self.m.put(name, bits)

    def tile(self, last: int) -> range:
        """The cycles of a row's slot around its cycle ``last``, the last ones up to it if they are in the run."""
        begin = max(0, last - self.cycles + 1)
        return range(begin, begin + self.cycles)

    def run(self, end: int) -> None:
        """Run up to and without cycle ``end``."""
        while self.m.cycle < end:
            self.cycle(self.m.cycle)

    def cycle(self, t: int) -> None:
        """Cycle ``t`` of the slot."""
        m = self.m
        self.prepare(t)
        m.settle()
        self.kept[t] += m.seen(IDLE)
        self._note(t)
        m.step()

    def prepare(self, t: int) -> None:
        """Set what the surroundings give in cycle t."""
        m, timing, row, n = self.m, self.timing, self.row, self.cycles
        self.kept[t] = (*m.bits(m.named(ALIGNED)), *m.bits(m.named(STARTING)))
        for name in (ALIGNED, STARTING):
            m.put(name, (0,))
        m.give(IDLE, (0,))
        for name, after, value in ((OFFERING, timing.accept + 1, self._next), (WAITING, timing.write, 0)):
            if (t - after) % n == 0 and (t != after or name not in row.free) and self._others(t, after, after):
                m.put(name, (value,))
        own = 0 <= t - ENTRY_AT - 1 < n
        if timing.sums and not (own and SUMS in row.free) and self._others(t, ENTRY_AT + 1, ENTRY_AT + n):
            if (t - FIRST) % n not in range(2, 2 * timing.sums + 1, 2):
                m.put(SUMS, (0,))
            elif own and t in row.sums:
                m.put(SUMS, (row.sums[t],))
        self._give_results(t)
        m.give(FOUND, self._entry(self._pointers.get(t - _TABLE, (None,))))
        mine = row.digits and DIGITS <= t < n + DIGITS
        m.give(DIGIT_WORD, row.digits if mine else (None,) * len(m.named(DIGIT_WORD)))
        mine = row.place and timing.write - n < t <= timing.write
        nowhere = 0 if row.first and t <= timing.write - n else None
        m.give(PLACE, row.place if mine else (*(None,) * (len(m.named(PLACE)) - 1), nowhere))
        if BELOW in m.cuts:
            m.give(BELOW, (row.below.get(t),))

    def _others(self, t: int, begin: int, end: int) -> bool:
        """Whether cycle t belongs to this row, from ``begin`` to ``end``, or another one, before or after it."""
        return not (self.row.first and t < begin) and not (self.row.last and t > end)

    @property
    def first_arrives(self) -> int:
        """Cycle of the first slot in which the first product arrives, which belongs to no row."""
        return self.timing.arrive - self.timing.accept - self.timing.run_up

    def _give_results(self, t: int) -> None:
        """Set the ports of the multiplier."""
        m, timing, row = self.m, self.timing, self.row
        late = t - timing.arrive
        if not self._others(t, timing.arrive, timing.arrive):  # the first product belongs to no row
            valid: Bit = int(row.first and t == self.first_arrives)
        else:
            valid = (None if late else row.active) if late % self.cycles == 0 else 0
        m.ports["core_o_valid"] = (valid,)
        early = self.offered.get(t - self.core.lead) if self.core.lead else 1
        m.ports["core_i_ready"] = (early if (t - timing.accept) % self.core.period == 0 else 0,)
        found: dict[str, dict[int, Bit]] = {}
        for bit, (port, k) in enumerate(m.result):
            shown = row.product and 0 <= late <= min(self.core.stands(bit), self.cycles - 1)
            found.setdefault(port, {})[k] = row.product[bit] if shown else None
        for port, bits in found.items():
            m.ports[port] = tuple(bits.get(k) for k in range(len(m.ports[port])))

    def _entry(self, pointer: Bits) -> Bits:
        base = self.row.registers.get(BASE)
        if base is not None and None not in pointer:
            for k, bits in enumerate(self.row.entries):
                if self.m.equal(
                    pointer, self.m.make.sum([(1, self.m.words.integer(base)), (k, self.m.make.number(1))])
                ):
                    return bits
        return (None,) * len(self.m.named(FOUND))

    def _note(self, t: int) -> None:
        m = self.m
        (self.offered[t],) = m.bits(m.valid)
        self.at_core[t] = [m.bits(nets) for nets in m.operands]
        self._pointers[t] = m.bits(m.named(POINTER))
        (self._next,) = m.bits(m.named(MOVES)[self.offer : self.offer + 1])
        if t in self.row.below:
            self.seen_below = m.seen(BELOW)

    def allow(self, registers: Sequence[str]) -> None:
        """Registers that may have any value at the beginning of a slot."""
        self.m.restore(self.start, 0)
        for name, nets in self.m.registers():
            if name in registers:
                self.m.forget(nets)
        self.start = self.m.state()


def number(value: int, width: int) -> Bits:
    """The bits of a number."""
    return tuple(value >> k & 1 for k in range(width))
