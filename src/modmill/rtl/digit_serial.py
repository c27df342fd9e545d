# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The multiplier interface around an array that takes and gives one digit a cycle.

The array works on ``streams`` products at once: a product starts every ``interval`` cycles, its digit y_i is due
i * streams cycles after y_0, and its x_j j cycles before. Numbers are scanned from the ports while they wait to be
accepted; y waits in block RAM, and so do results until they are taken. Nothing ever stalls inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from amaranth.hdl import Module, Mux, Signal, Value

from modmill.contract import Timing
from modmill.design import Multiplier
from modmill.rtl.delay import DelayLines
from modmill.rtl.digits import MEMORY, DigitMemory, Results, Scan, widest

START = 2
"""Cycle after acceptance in which y_0 and x_0 enter the array."""

DIGITS_MIN = 4
"""Fewest digits: y_0 must be through its memory when it is due."""


@dataclass(frozen=True)
class Frame:
    """Sizes and times.

    ``bits``: of a digit but the highest; ``width``: of a number; ``latency``: cycles from the array's start to its
    first digit of a result; ``rising``: results come least significant digit first.

    Raises ValueError where products would meet in the array.
    """

    bits: int
    digits: int
    width: int
    streams: int
    interval: int
    latency: int
    rising: bool = False
    kept: int = 0
    """Cycles after START in which more than y is addressed by a product's number; 0 if nothing is."""

    def __post_init__(self) -> None:
        least = max(self.digits, Results.spacing(self.digits))
        if self.digits < DIGITS_MIN:
            raise ValueError(f"there must be at least {DIGITS_MIN} digits, not {self.digits}")
        if self.interval < least or gcd(self.interval, self.streams) != 1:
            raise ValueError(
                f"the interval must be at least {least} and coprime to {self.streams}, not {self.interval}"
            )

    @property
    def widest(self) -> int:
        """Bits of the widest digit."""
        return widest(self.width, self.bits, self.digits)

    @property
    def arrival(self) -> int:
        """Cycle after acceptance in which the first digit of the result leaves the array."""
        return START + self.latency

    @property
    def timing(self) -> Timing:
        """Timing of the multiplier."""
        latency = self.arrival + self.digits - 1 + Results.latency(self.digits)
        return Timing(latency, self.interval, -(-latency // self.interval))

    @property
    def room(self) -> int:
        """Results that can wait: one more than products under way, so that none ever stops the producer."""
        return self.timing.in_flight + 1

    @property
    def numbers(self) -> int:
        """Numbers of products, a power of two: one for each whose digits are still due, and those being written."""
        due = max(self.kept, MEMORY + (self.digits - 1) * (self.streams + 1))
        return 1 << (due // self.interval + 2).bit_length()


def least_streams(digits: int, least: int) -> tuple[int, int]:
    """Streams and interval: the shortest interval that ``digits`` allow, then the fewest streams from ``least`` on."""
    interval = max(digits, Results.spacing(digits))
    streams = least
    while gcd(interval, streams) != 1:
        streams += 1
    return streams, interval


class DigitSerial(Multiplier):
    """A multiplier around an array. Subclasses say what the array is and how it is connected, in ``connect``.

    Operands are accepted in every ``interval``-th cycle after reset, when they were valid interval - 1 cycles earlier
    and there is room for the result. What is in the array without having been accepted is computed too, and forgotten.
    """

    def __init__(self, frame: Frame, *, width: int | None = None, k: int = 0) -> None:
        """``width``: bits of operands and results where they are narrower than the frame's numbers."""
        self.frame = frame
        width = width or frame.width
        super().__init__(width, width, width, period=frame.interval, lead=frame.interval - 1, k=k)

    def connect(self, m: Module, control: Control) -> tuple[Value, Value]:
        """The array's output (digit, z) and whether operands may be accepted (beyond what the frame asks for)."""
        raise NotImplementedError

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        frame = self.frame
        control = Control(m, frame)
        digit, permitted = self.connect(m, control)

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

        # ---- operands
        order = range(frame.digits)
        for name, port, places in (("scan_x", self.i_a, order[::-1]), ("scan_y", self.i_b, order)):
            scan = Scan(frame.width, frame.bits, places)
            m.submodules[name] = scan
            m.d.comb += [scan.number.eq(port), scan.go.eq(control.at(-frame.digits))]
        m.d.comb += control.scanned_x.eq(m.submodules.scan_x.digit)
        self._feed_y(m, control, m.submodules.scan_y.digit)

        # ---- results
        tokens = Signal(frame.arrival // frame.interval + 2)
        with m.If(control.at(0)):
            m.d.sync += tokens.eq((tokens << 1) | accept)
        results = Results(frame.bits, frame.digits, frame.width, frame.room, rising=frame.rising)
        m.submodules.results = results
        coming = Signal()
        at = frame.arrival - 2
        m.d.sync += coming.eq(control.at(at) & tokens[(at - 1) // frame.interval])
        m.d.comb += [
            results.coming.eq(coming), results.digit.eq(digit), results.o_ready.eq(self.o_ready),
            self.o_valid.eq(results.o_valid), self.o_r.eq(results.o_r),
        ]  # fmt: skip
        return m

    def _feed_y(self, m: Module, control: Control, scanned: Value) -> None:
        """y through its memory, and the flags of its first and last digit."""
        frame = self.frame
        memory = DigitMemory(frame.widest, frame.digits, frame.numbers)
        m.submodules.y = memory
        place = Signal(range(frame.interval), name="y_place", reset_less=True)
        number = control.number
        m.d.sync += place.eq(place + 1)
        with m.If(control.at(1 - frame.digits)):
            m.d.sync += [place.eq(0), number.eq(number + 1)]
        m.d.comb += [
            memory.w_number.eq(number), memory.w_digit.eq(place), memory.w_d.eq(scanned),
            memory.w_enable.eq(place < frame.digits),
        ]  # fmt: skip
        # what each product's turn is: the number that it reads and the digit
        width = len(number)
        turn = frame.interval.bit_length()
        lines = DelayLines(m, frame.streams, name="turn")
        out = Signal(width + turn)
        new = Signal(width + turn)
        due = lines.ring(control.at(START - MEMORY - 1), new, frame.streams, name="due", write=out)
        m.d.comb += [new[:width].eq(number), out.eq(due + (1 << width))]
        m.d.comb += [
            memory.r_number.eq(due[:width]),
            memory.r_digit.eq(due[width:]),
            control.turn.eq(due),
        ]
        m.d.comb += [
            control.first.eq(control.at(START)),
            control.last.eq(control.at(START + (frame.digits - 1) * frame.streams)),
            control.y.eq(memory.q),
        ]


class Control:
    """The phase, strobes made of it, and the array's inputs.

    ``x`` is what the array should get unless the machine has something else for it: ``scanned_x`` one cycle later.
    """

    def __init__(self, m: Module, frame: Frame) -> None:
        self._m, self._frame = m, frame
        self._strobes: dict[int, Signal] = {}
        interval = frame.interval
        self.phase = Signal(range(interval))
        wrap = Signal()
        m.d.sync += [wrap.eq(self.phase == interval - 2), self.phase.eq(Mux(wrap, 0, self.phase + 1))]
        self.scanned_x = Signal(frame.widest)
        self.y = Signal(frame.widest)
        self.first, self.last = Signal(), Signal()
        self.number = Signal(range(frame.numbers), name="y_number", reset_less=True)
        """Number of the product that is scanned, from cycle 2 - digits for one interval."""
        self.turn = Signal(len(self.number) + interval.bit_length(), name="turn")
        """Number and digit (in the upper bits) of the y that enters the array MEMORY cycles later."""
        self.idle = Signal()
        """Nothing is under way, and no result waits."""

    def at(self, cycle: int) -> Signal:
        """High in that cycle after acceptance, modulo the interval; registered."""
        phase = cycle % self._frame.interval
        if phase not in self._strobes:
            strobe = Signal(name=f"at{phase}", init=int(phase == 0))
            self._m.d.sync += strobe.eq(self.phase == (phase - 1) % self._frame.interval)
            self._strobes[phase] = strobe
        return self._strobes[phase]
