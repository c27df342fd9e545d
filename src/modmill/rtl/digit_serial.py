# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The multiplier interface around an array that takes and delivers one digit a cycle.

The array works on ``streams`` products at once. A product starts every ``interval`` cycles; its digit y_i enters
i * streams cycles after y_0, and x_j enters j cycles before x_0. Operands are scanned from the ports before they are
accepted. y waits in block RAM, and so do results until they are taken. The array never stalls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd

from amaranth.hdl import Cat, Module, Mux, Signal, Value

from modmill.contract import Timing
from modmill.interface import Multiplier
from modmill.rtl.delay import DelayLines
from modmill.rtl.digits import LANES, MEMORY, DigitMemory, Results, Scan, widest
from modmill.rtl.free_running import INITIAL, free_running
from modmill.rtl.strobe_ring import StrobeRing

START = 2
"""Cycle after acceptance in which y_0 and x_0 enter an array with a column for each digit."""

DIGITS_MIN = 4
"""Fewest digits: y_0 must have passed its memory when it enters the array."""


@dataclass(frozen=True)
class Frame:
    """Sizes in bits and times in cycles of an array and its multiplier.

    ``bits``: bits of a digit, except the highest; ``width``: bits of a number; ``latency``: cycles from the array's
    start to the first digit of the result; ``rising``: results leave least significant digit first; ``groups``,
    ``columns``: of an array with fewer columns than digits (FoldedArray), else 1 and 0; ``lanes``: digits of a result
    that leave in each cycle.

    Raises ValueError if there are too few digits, or if products would collide in the array.
    """

    bits: int
    digits: int
    width: int
    streams: int
    interval: int
    latency: int
    rising: bool = False
    kept: int = 0
    """Cycles after the start for which a product's number addresses more than y; 0: it addresses y only."""
    groups: int = 1
    columns: int = 0
    lanes: int = LANES

    def __post_init__(self) -> None:
        if self.digits < DIGITS_MIN:
            raise ValueError(f"there must be at least {DIGITS_MIN} digits, not {self.digits}")
        least = least_interval(self.digits, self.groups, self.columns, self.streams, self.lanes)
        if self.interval < least or gcd(self.interval, self.turn) != 1:
            raise ValueError(f"the interval must be at least {least} and coprime to {self.turn}, not {self.interval}")

    @property
    def turn(self) -> int:
        """Cycles from one iteration of a product to the next."""
        return self.groups * self.streams

    @property
    def start(self) -> int:
        """Cycle after acceptance in which y_0 and x_0 enter the array."""
        return START if self.groups == 1 else self.columns + MEMORY + 4

    @property
    def feeding(self) -> int:
        """Cycle after acceptance, two cycles before the first digit of x enters the array."""
        return self.start - (self.digits - 1 if self.groups == 1 else self.columns) - 2

    @property
    def starts(self) -> int:
        """Products that begin after a reset before the first operands are taken: one more if they would be scanned
        before `Scan` is clear."""
        return 1 + (self.interval - self.digits < Scan.CLEAR)

    @property
    def places(self) -> int:
        """Digits of a result, including those that are always zero."""
        return self.digits if self.groups == 1 else self.columns * self.groups

    def passes(self, cycle: int) -> tuple[int, ...]:
        """The cycles of all groups, for ``cycle`` of group 0."""
        return tuple(cycle + g * self.streams for g in range(self.groups))

    @property
    def widest(self) -> int:
        """Bits of the widest digit."""
        return widest(self.width, self.bits, self.digits)

    @property
    def arrival(self) -> int:
        """Cycle after acceptance in which the first digit of the result leaves the array."""
        return self.start + self.latency

    @property
    def timing(self) -> Timing:
        """Timing of the multiplier."""
        last = self.passes(self.arrival)[-1] + self.places // self.groups - 1
        latency = last + Results.latency_of(self.digits, self.groups, self.lanes)
        return Timing(latency, self.interval, -(-latency // self.interval))

    @property
    def room(self) -> int:
        """Results that can wait: one more than there are products under way, so that the array never stalls."""
        return self.timing.in_flight + 1

    @property
    def numbers(self) -> int:
        """Product numbers in use, a power of two: the products whose digits are still needed or are being written."""
        due = max(self.kept, self.start - START + MEMORY + (self.digits - 1) * (self.turn + 1))
        return 1 << (due // self.interval + 2).bit_length()


def least_interval(digits: int, groups: int, columns: int, streams: int, lanes: int = LANES) -> int:
    """Least interval, in cycles, for which products collide neither in the array's columns nor at its ports."""
    fed = (groups - 1) * streams + columns + 1
    return max(digits * groups, Results.spacing(digits, lanes), fed)


def least_streams(digits: int, least: int, groups: int = 1, columns: int = 0, lanes: int = 1) -> tuple[int, int]:
    """Streams and interval: the shortest interval with ``least`` to ``least`` + 7 streams, then the fewest streams.

    The interval is a multiple of ``lanes``. Raises ValueError if no such number of streams is coprime to ``lanes``.
    """
    found = []
    for streams in range(least, least + 8):
        if gcd(lanes, groups * streams) != 1:
            continue
        interval = -(-least_interval(digits, groups, columns, streams) // lanes) * lanes
        while gcd(interval, groups * streams) != 1:
            interval += lanes
        found.append((interval, streams))
    if not found:
        raise ValueError(f"no number of streams from {least} to {least + 7} suits {lanes} lanes")
    interval, streams = min(found)
    return streams, interval


class DigitSerial(Multiplier):
    """A multiplier around an array; abstract. A subclass defines and connects the array in `connect`.

    Operands are accepted in every ``interval``-th cycle after reset, if they were valid interval - 1 cycles earlier
    and there is room for the result. A machine with a fixed modulus accepts its first operands later if
    ``Frame.starts``. The array also computes products of operands that were not accepted; they are discarded.
    """

    def __init__(self, frame: Frame, *, width: int | None = None, k: int = 0) -> None:
        """``width``: bits of operands and results, if they are narrower than the frame's numbers."""
        self.frame = frame
        self.permitted: Signal | None = None
        """If a parent sets it to a signal, this machine drives the signal: whether operands may be accepted."""
        width = width or frame.width
        super().__init__(width, width, width, period=frame.interval, lead=frame.interval - 1, k=k)

    def read_in(self, operand: int, bit: int) -> tuple[int, int]:
        """x is read most significant digit first if each digit has a column; else, as y, least significant first."""
        frame = self.frame
        n = min(bit // frame.bits, frame.digits - 1)
        if operand == 0 and frame.groups == 1:
            n = frame.digits - 1 - n
        cycle = Scan.read_in(n) + 1 - frame.digits
        return cycle, cycle

    def stands(self, bit: int) -> int:
        """Until the next result reaches the digit's place."""
        frame = self.frame
        return Results.stands(frame.digits, min(bit // frame.bits, frame.digits - 1), frame.interval, frame.lanes)

    def connect(self, m: Module, control: Control) -> tuple[Value, Value]:
        """Connect the array. Returns its output digit and whether operands may be accepted, apart from room."""
        raise NotImplementedError

    def begun(self, m: Module, control: Control, starts: int) -> Value:
        """Whether the array has begun at least ``starts`` products since the reset, accepted or not."""
        settled = Signal()
        count = Signal(range(starts), name="starts")
        with m.If(control.at(0) & ~settled):
            m.d.sync += [count.eq(count + 1), settled.eq(count == starts - 1)]
        return settled

    @property
    def timing(self) -> Timing:
        return self.frame.timing

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        frame = self.frame
        control = Control(m, frame)
        digit, permitted = self.connect(m, control)

        if self.permitted is not None:
            m.d.comb += self.permitted.eq(permitted)

        # ---- accepting
        room = Signal(range(frame.room + 1), init=frame.room)
        taking, ready, accept = Signal(), Signal(), Signal()
        taken = self.o_valid & self.o_ready
        with m.If(control.at(1)):
            m.d.sync += taking.eq(self.i_valid & (room != 0) & permitted)
        m.d.sync += [ready.eq(control.at(-1) & taking), room.eq(room - accept + taken)]
        m.d.comb += [
            self.i_ready.eq(ready & permitted),
            accept.eq(self.i_valid & self.i_ready),
            control.idle.eq(room == frame.room),
        ]

        self._feed(m, control)

        # ---- results
        tokens = Signal(frame.passes(frame.arrival)[-1] // frame.interval + 2)
        with m.If(control.at(0)):
            m.d.sync += tokens.eq((tokens << 1) | accept)
        results = Results(
            frame.bits, frame.digits, frame.width, frame.room, rising=frame.rising, groups=frame.groups,
            places=frame.places, lanes=frame.lanes,
        )  # fmt: skip
        m.submodules.results = results
        coming = Signal()
        hits = [control.at(at) & tokens[(at - 1) // frame.interval] for at in frame.passes(frame.arrival - 2)]
        m.d.sync += coming.eq(Cat(hits).any() if len(hits) > 1 else hits[0])
        m.d.comb += [
            results.coming.eq(coming), results.digit.eq(digit), results.o_ready.eq(self.o_ready),
            self.o_valid.eq(results.o_valid), self.o_r.eq(results.o_r),
        ]  # fmt: skip
        return m

    def _feed(self, m: Module, control: Control) -> None:
        """The operands' digits: x from its port or through a memory, y through a memory."""
        frame = self.frame
        order = range(frame.digits)
        x = self._scanned(m, control, "scan_x", self.i_a, order[::-1] if frame.groups == 1 else order)
        y = self._scanned(m, control, "scan_y", self.i_b, order)
        written = self._feed_y(m, control, y)
        if frame.groups == 1:
            m.d.comb += control.x.eq(x)
        else:
            self._feed_x(m, control, x, written)

    def _scanned(self, m: Module, control: Control, name: str, port: Value, order: Sequence[int]) -> Value:
        """The digits of the number at ``port``, one in each cycle, the first in cycle 2 - digits."""
        scan = Scan(self.frame.width, self.frame.bits, order)
        m.submodules[name] = scan
        m.d.comb += [scan.number.eq(port), scan.go.eq(control.at(-self.frame.digits))]
        return scan.digit

    def _feed_y(self, m: Module, control: Control, scanned: Value) -> tuple[Value, Value]:
        """y through its memory, and the array's flags. Returns the scanned place and whether it is below ``digits``."""
        frame = self.frame
        memory = DigitMemory(frame.widest, frame.digits, frame.numbers)
        m.submodules.y = memory
        place = free_running(range(frame.interval), name="y_place")
        number = control.number
        m.d.sync += place.eq(place + 1)
        with m.If(control.at(1 - frame.digits)):
            m.d.sync += [place.eq(0), number.eq(number + 1)]
        scanning = place < frame.digits
        m.d.comb += [
            memory.w_number.eq(number),
            memory.w_digit.eq(place),
            memory.w_d.eq(scanned),
            memory.w_enable.eq(scanning),
        ]
        # for each product in turn: its number, the digit that it reads, the group
        width, group = len(number), len(control.group)
        digit = frame.interval.bit_length()
        lines = DelayLines(m, frame.turn, name="turn")
        strobes = control.passes(frame.start - MEMORY - 1)
        new, out = Signal(width + digit + group), Signal(width + digit + group)
        due = lines.ring(strobes.any(), new, frame.turn, name="due", write=out, steers=True)
        m.d.comb += [
            new[:width].eq(number), out.eq(due + (1 << width)),
            memory.r_number.eq(due[:width]), memory.r_digit.eq(due[width : width + digit]),
            control.turn.eq(due[: width + digit]), control.y.eq(memory.q),
            control.first.eq(control.passes(frame.start).any()),
            control.last.eq(control.passes(frame.start + (frame.digits - 1) * frame.turn).any()),
        ]  # fmt: skip
        if group:
            which = [Cat(*(s for g, s in enumerate(strobes) if g >> k & 1)).any() for k in range(group)]
            m.d.comb += [
                new[width + digit :].eq(Cat(*which)),
                control.group.eq(lines.line(due[width + digit :], MEMORY, name="group")),
            ]
        return place, scanning

    def _feed_x(self, m: Module, control: Control, scanned: Value, written: tuple[Value, Value]) -> None:
        """x through a memory: group by group, each most significant digit first, with zeros above the highest digit."""
        frame = self.frame
        memory = DigitMemory(frame.widest, frame.places + 1, frame.numbers)
        m.submodules.x = memory
        place, scanning = written
        begins = control.passes(frame.feeding - MEMORY)
        following = free_running(range(frame.places + frame.columns + 1), name="x_following")
        number = free_running(len(control.number), name="x_number")
        m.d.sync += control.x_place.eq(control.x_place - 1)
        with m.If(begins[0]):
            m.d.sync += [control.x_place.eq(frame.columns), following.eq(2 * frame.columns), number.eq(control.number)]
        with m.Elif(begins.any()):
            m.d.sync += [control.x_place.eq(following), following.eq(following + frame.columns)]
        m.d.comb += [
            memory.w_number.eq(control.number), memory.w_digit.eq(place), memory.w_d.eq(scanned),
            memory.w_enable.eq(scanning),
            memory.r_number.eq(number), memory.r_digit.eq(control.x_place), control.x.eq(memory.q),
        ]  # fmt: skip


class Control:
    """The phase of the interval, strobes derived from it, and the array's inputs.

    ``x`` is the digit for the array's next cycle, unless the machine replaces it. ``y``, ``first``, ``last`` and
    ``group`` are the array's other inputs.
    """

    def __init__(self, m: Module, frame: Frame) -> None:
        self._m, self._frame = m, frame
        self._strobes: dict[tuple[int, ...], Signal] = {}
        interval = frame.interval
        self.phase = Signal(range(interval), attrs=INITIAL)
        wrap = Signal(attrs=INITIAL)
        m.d.sync += [wrap.eq(self.phase == interval - 2), self.phase.eq(Mux(wrap, 0, self.phase + 1))]
        self.x = Signal(frame.widest)
        self.x_place = free_running(range(frame.places + 1), name="x_place")
        """With several groups: place of the digit that ``x`` is MEMORY cycles later."""
        self.y = Signal(frame.widest)
        self.first, self.last = Signal(), Signal()
        self.group = Signal((frame.groups - 1).bit_length())
        self.number = free_running(range(frame.numbers), name="y_number")
        """Number of the product that is being scanned; it changes in cycle 2 - digits."""
        self.turn = Signal(len(self.number) + interval.bit_length(), name="turn")
        """Number and digit (in the upper bits) of the y that enters the array MEMORY cycles later."""
        self.idle = Signal()
        """High if no product is under way and no result waits."""

    def at(self, cycle: int) -> Signal:
        """High in ``cycle`` after acceptance, modulo the interval; registered."""
        return self.any(cycle)

    def any(self, *cycles: int) -> Signal:
        """High in these ``cycles`` after acceptance, modulo the interval; one register."""
        phases = tuple(sorted({cycle % self._frame.interval for cycle in cycles}))
        if phases not in self._strobes:
            strobe = Signal(name=f"at{'_'.join(map(str, phases))}", init=int(0 in phases), attrs=INITIAL)
            hits = [self.phase == (phase - 1) % self._frame.interval for phase in phases]
            self._m.d.sync += strobe.eq(Cat(*hits).any() if len(hits) > 1 else hits[0])
            self._strobes[phases] = strobe
        return self._strobes[phases]

    @cached_property
    def ring(self) -> StrobeRing:
        """The same strobes from registers in a ring, for many strobes of a long interval."""
        return StrobeRing(self._m, self._frame.interval, self.at(0))

    def passes(self, cycle: int) -> Value:
        """One bit for each group: `at` for that group's ``cycle``."""
        return Cat(*(self.at(c) for c in self._frame.passes(cycle)))
