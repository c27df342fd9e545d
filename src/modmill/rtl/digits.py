# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Numbers as digits, one in each cycle: from a port, through a memory, and to a port."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.rtl.memory import BlockRam

GROUP = 4
"""Digits that share one multiplexer of a Scan."""

MEMORY = 3
"""Cycles from an address to the digit of a DigitMemory."""

LANES = 2
"""Digits of a result that leave in each cycle, if nothing else is said."""

_WORDS = 1 << 10


def widest(width: int, bits: int, digits: int) -> int:
    """Bits of the widest of ``digits`` digits of a number of ``width`` bits: ``bits``, or the rest in the highest."""
    return max(bits, width - bits * (digits - 1))


class Scan(wiring.Component):
    """The digits of a number that is stable at port ``number``, one in each cycle; the highest has all remaining bits.

    ``order``: the digits' places, in the order in which they leave. With ``go`` in cycle -1, digit n leaves at
    ``digit`` in cycle n + 1; it is read from the port in cycle `read_in` (n), which is 0 to n. The least distance
    between two ``go`` is the number of digits. The registers have no reset: a number that was under way leaves ahead of
    the first number after the reset if that number's ``go`` comes at least CLEAR cycles after the reset. An earlier
    ``go`` is then GROUP cycles ahead and does not meet this number in a multiplexer.
    Cost: for each digit and bit about 0.75 LUTs, and a register for every GROUP digits. All nets are local.
    """

    def __init__(self, width: int, bits: int, order: Sequence[int]) -> None:
        self.bits, self.order = bits, tuple(order)
        super().__init__({"number": In(width), "go": In(1), "digit": Out(widest(width, bits, len(self.order)))})

    @property
    def latency(self) -> int:
        """Cycles from ``go`` to the first digit."""
        return 2

    CLEAR = GROUP - 1
    """Fewest cycles from the end of a reset to the first ``go``."""

    @staticmethod
    def read_in(n: int) -> int:
        """Cycle in which digit n is read from the port, ``go`` being in cycle -1."""
        return n // GROUP * (GROUP - 1) + n % GROUP

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        bits, highest = self.bits, max(self.order)
        groups = [self.order[k : k + GROUP] for k in range(0, len(self.order), GROUP)]
        tokens = Signal((GROUP - 1) * len(groups) + 1, reset_less=True)
        m.d.comb += tokens[0].eq(self.go)
        m.d.sync += tokens[1:].eq(tokens)
        stages = [Signal.like(self.digit, name=f"stage{g}", reset_less=True) for g in range(len(groups))]
        for g, (group, stage) in enumerate(zip(groups, stages, strict=True)):
            own = tokens[(GROUP - 1) * g :][:GROUP]
            here = Signal(name=f"here{g}", reset_less=True)
            place = Signal(2, name=f"place{g}", reset_less=True)
            m.d.sync += [here.eq(own.any()), place.eq(Cat(own[1] | own[3], own[2] | own[3]))]
            following: Value = stages[g + 1] if g + 1 < len(stages) else Const(0)
            m.d.sync += stage.eq(following)
            with m.If(here), m.Switch(place):
                for k, j in enumerate(group):
                    with m.Case(k):
                        m.d.sync += stage.eq(self.number[bits * j : None if j == highest else bits * (j + 1)])
        m.d.comb += self.digit.eq(stages[0])
        return m


class DigitMemory(wiring.Component):
    """``digits`` digits of each of ``numbers`` numbers, in block RAM: one write and one read in each cycle.

    The digit at (``r_number``, ``r_digit``) of cycle t is at ``q`` in cycle t + MEMORY. A digit that is written in
    cycle t can be read from cycle t + 1 on; reading it in the cycle of the write is undefined.
    ``init``: digits of number 0 at configuration. Cost on ECP5: one DP16KD for every 1,024 digits; digits and numbers
    are rounded up to powers of two.
    """

    def __init__(self, bits: int, digits: int, numbers: int, init: Sequence[int] = ()) -> None:
        self.init = tuple(init)
        self._place = max(1, (digits - 1).bit_length())
        self._number = (numbers - 1).bit_length()
        super().__init__({
            "w_number": In(self._number), "w_digit": In(self._place), "w_enable": In(1), "w_d": In(bits),
            "r_number": In(self._number), "r_digit": In(self._place), "q": Out(bits),
        })  # fmt: skip

    @property
    def latency(self) -> int:
        """Cycles from an address to its digit."""
        return MEMORY

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        total = self._place + self._number
        banks = max(1, (1 << total) // _WORDS)
        select = (banks - 1).bit_length()
        depth = max(16, (1 << total) // banks)
        write, read = Cat(self.w_digit, self.w_number), Cat(self.r_digit, self.r_number)
        chosen: Value = read[:select]
        for k in range(2):
            later = Signal(max(1, select), name=f"bank_{k}", reset_less=True)
            m.d.sync += later.eq(chosen)
            chosen = later
        out = Signal(len(self.q), name="out", reset_less=True)
        with m.Switch(chosen):
            for bank in range(banks):
                block = BlockRam(len(self.q), depth, self.init[bank::banks])
                m.submodules[f"bank{bank}"] = block
                m.d.comb += [
                    block.a_address.eq(read[select:]),
                    block.b_address.eq(write[select:]),
                    block.b_d.eq(self.w_d),
                    block.b_write.eq(self.w_enable & (write[:select] == bank if select else 1)),
                ]
                with m.Case(bank):
                    m.d.sync += out.eq(block.a_q)
        m.d.comb += self.q.eq(out)
        return m


class Results(wiring.Component):
    """Results that arrive digit by digit and wait until they are taken at stream ``o``.

    A result arrives in ``digits`` cycles, the first one cycle after ``coming``: most significant digit first, with
    ``rising`` least significant digit first. The highest digit has all remaining bits. Up to ``room`` results can wait.
    If none waits, a result is valid ``latency`` cycles after its last digit; results leave at least ``spacing`` cycles
    apart.
    With ``groups`` > 1 a result arrives in that many runs of ``places`` / ``groups`` digits, the lowest run first. Each
    run has its own ``coming`` and arrives most significant digit first; places from ``digits`` on are not stored.
    ``lanes`` digits leave in each cycle, a power of 2. At least 3 digits. Cost: ``width`` flip-flops and a DigitMemory
    for each lane.
    """

    def __init__(
        self, bits: int, digits: int, width: int, room: int, *, rising: bool = False, groups: int = 1, places: int = 0,
        lanes: int = LANES,
    ) -> None:  # fmt: skip
        self.bits, self.digits, self.room, self.rising = bits, digits, room, rising
        self.groups, self.places, self.lanes = groups, places or digits, lanes
        super().__init__({
            "coming": In(1), "digit": In(widest(width, bits, digits)),
            "o_valid": Out(1), "o_ready": In(1), "o_r": Out(width),
        })  # fmt: skip

    @property
    def latency(self) -> int:
        """Cycles from the last digit to the valid result."""
        return self.latency_of(self.digits, self.groups, self.lanes)

    @staticmethod
    def latency_of(digits: int, groups: int = 1, lanes: int = LANES) -> int:
        """Cycles from the last digit to the valid result."""
        return -(-digits // lanes) + MEMORY + (1 if groups == 1 else 3)

    @staticmethod
    def spacing(digits: int, lanes: int = LANES) -> int:
        """Fewest cycles between results."""
        return -(-digits // lanes) + MEMORY + 2

    @staticmethod
    def stands(digits: int, place: int, interval: int, lanes: int = LANES) -> int:
        """Cycles for which the digit at ``place`` stays at ``o`` after its result became valid.

        Each result is taken at once, and the next one is valid at least ``interval`` cycles later: its digits replace
        those of this result ``lanes`` in each cycle.
        """
        return interval - -(-digits // lanes) + place // lanes

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        digits, bits, lanes = self.digits, self.bits, self.lanes
        rows = -(-digits // lanes)
        which = (lanes - 1).bit_length()
        numbers = 1 << self.room.bit_length()

        # ---- arriving digits
        place = Signal(range(self.places))
        number = Signal(range(numbers))
        writing, arrived = self._runs(m, place, number) if self.groups > 1 else self._run(m, place, number)
        memories = [DigitMemory(len(self.digit), -(-self.places // lanes), numbers) for _ in range(lanes)]
        for lane, memory in enumerate(memories):
            m.submodules[f"lane{lane}"] = memory
            m.d.comb += [
                memory.w_number.eq(number),
                memory.w_digit.eq(place[which:]),
                memory.w_d.eq(self.digit),
                memory.w_enable.eq(writing & (place[:which] == lane)),
            ]

        # ---- leaving results, a row of digits a cycle
        there = Signal(range(numbers + 1))
        busy, start, done = Signal(), Signal(), Signal()
        passed = rows + MEMORY
        row = Signal(range(passed), name="pair", reset_less=True)
        leaving = Signal(range(numbers))
        m.d.comb += start.eq((there != 0) & ~busy & ~self.o_valid)
        m.d.sync += there.eq(there + arrived - start)
        # values from before a reset have left the stages before the first result arrives
        stages = Signal(passed, reset_less=True)
        m.d.sync += [stages.eq(Cat(start, stages)), row.eq(row + 1), done.eq(busy & (row == passed - 2))]
        with m.If(start):
            m.d.sync += [busy.eq(1), row.eq(0)]
        with m.If(done):
            m.d.sync += [busy.eq(0), self.o_valid.eq(1), leaving.eq(leaving + 1)]
        with m.Elif(self.o_ready):
            m.d.sync += self.o_valid.eq(0)
        held = []
        for k in range(digits):
            digit = Signal(bits if k < digits - 1 else len(self.o_r) - bits * k, name=f"held{k}", reset_less=True)
            with m.If(stages[MEMORY + k // lanes]):
                m.d.sync += digit.eq(memories[k % lanes].q)
            held.append(digit)
        for memory in memories:
            m.d.comb += [memory.r_number.eq(leaving), memory.r_digit.eq(row[: len(memory.r_digit)])]
        m.d.comb += self.o_r.eq(Cat(*held))
        return m

    def _run(self, m: Module, place: Signal, number: Signal) -> tuple[Value, Value]:
        """Count the places of one run. Returns whether a digit arrives, and whether it is the last but one."""
        first, last = (0, self.digits - 1) if self.rising else (self.digits - 1, 0)
        step = 1 if self.rising else -1
        writing, ending, early = Signal(), Signal(), Signal()
        m.d.sync += [
            place.eq(place + step),
            ending.eq(writing & (place == last - step)),
            early.eq(writing & (place == last - 2 * step)),
        ]
        with m.If(self.coming):
            m.d.sync += [writing.eq(1), place.eq(first)]
        with m.Elif(ending):
            m.d.sync += writing.eq(0)
        with m.If(ending):
            m.d.sync += number.eq(number + 1)
        return writing, early

    def _runs(self, m: Module, place: Signal, number: Signal) -> tuple[Value, Value]:
        """Count the places of several runs. Returns whether a digit arrives, and whether the last one has arrived."""
        run = self.places // self.groups
        writing, arrived = Signal(), Signal()
        left = Signal(range(run))
        highest = Signal(range(self.places), init=run - 1)
        ends = writing & (left == 0)
        m.d.sync += [place.eq(place - 1), left.eq(left - 1), arrived.eq(0)]
        with m.If(self.coming):
            m.d.sync += [writing.eq(1), left.eq(run - 1), place.eq(highest)]
            m.d.sync += highest.eq(Mux(highest == self.places - 1, run - 1, highest + run))
        with m.Elif(ends):
            m.d.sync += writing.eq(0)
        with m.If(ends & (highest == run - 1)):
            m.d.sync += [number.eq(number + 1), arrived.eq(1)]
        return writing, arrived
