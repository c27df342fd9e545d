# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A rower: one channel of an RNS machine, one multiplier of one DSP block wide, run by a periodic programme.

Each cycle the multiplier takes one slot of the programme: an operand from one of four sources times a constant (or an
operand from outside). Products either go to the folding loop at once or add up in a lazy accumulator that is reduced
only when its sum is whole. The programme repeats every ``interval`` cycles; a local free-running counter drives it,
so no control net leaves the rower.

    cycle t          slot: operand multiplexer and constant table, registered
    cycle t + 1 ...  DSP block: input, pipeline and output register, and one register behind it
    cycle t + 5      the product is visible: fold entry or accumulation
    cycle t + 6      the accumulator is visible
    fold at cycle e  entry register, then ceil(log2(digits + 1)) adder stages; the sum is visible ``fold_cycles`` later
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from modmill.numbers.folding import fold_bound
from modmill.numbers.rns.residues import signed_digits
from modmill.rtl.fold import bits
from modmill.rtl.periodic import Phase
from modmill.rtl.product import Tile

PRODUCT = 5
"""Cycles from a slot to its visible product."""

CLEAR = 1
"""Cycles before the first product of a sum in which the accumulator is cleared."""

ACCUMULATE = 1
"""Cycles from a visible product to the accumulator that holds it."""


SOURCES = ("in", "hold", "ring", "bus")
"""Where the operand of a slot comes from: outside, the operand register, the ring, the bus."""


def fold_cycles(digits: int) -> int:
    """Cycles of one pass of the folding loop for distances u of at most that many signed digits."""
    return 1 + max(1, digits.bit_length())


@dataclass(frozen=True)
class Slot:
    """One multiplication: operand ``source`` (of SOURCES) times ``constant`` (None: the second input).

    ``sum``: 'first' starts the accumulator with the product, 'add' adds to it, '' leaves it alone.
    """

    source: str
    constant: int | None
    sum: str = ""


@dataclass(frozen=True)
class Programme:
    """What a rower does in each cycle of its period, all cycles modulo ``interval``.

    ``slots``: multiplier; ``folds``: entry of the folding loop from 'product', 'sum' or 'loop'; ``hold``: the fold's
    result into the operand register; ``wait``: the fold's result into the register before the ring; ``ring_load``:
    from there into the ring.
    """

    interval: int
    slots: dict[int, Slot]
    folds: dict[int, str]
    hold: frozenset[int]
    wait: frozenset[int]
    ring_load: frozenset[int]


class Rower(wiring.Component):
    """One channel modulo 2^w - u. ``offset`` shifts the local counter, so that no two rowers have equal control.

    ``digits``: folding loop built for that many signed digits of u, equal in all rowers of a machine.
    Cost: one DSP block; about 60 LUTs for the tables, 35 for the multiplexers, 45 for the accumulator and 30 to 100 for
    the folding loop (w = 17).
    """

    def __init__(self, w: int, u: int, programme: Programme, *, digits: int, offset: int = 0) -> None:
        self.w, self.u, self.programme, self.digits, self.offset = w, u, programme, digits, offset
        folded = bits(max(fold_bound(self.sum_bound, w, u), 1 << w))
        self.held = Signal(w, name="hold", reset_less=True)
        self.waiting = Signal(w, name="waiting", reset_less=True)
        self.product = Signal(2 * w, name="product", reset_less=True)
        self.total = Signal(bits(self.sum_bound), name="total", reset_less=True)
        self.folded = Signal(folded, name="folded", reset_less=True)
        super().__init__({
            "x": In(w), "y": In(w), "ring_in": In(w), "bus": In(w), "ring": Out(w), "result": Out(w),
        })  # fmt: skip

    @property
    def sum_bound(self) -> int:
        """Exclusive bound of the accumulator over one sum, and of a single product."""
        top = (1 << self.w) - 1
        total = sum(top * (s.constant or 0) for s in self.programme.slots.values() if s.sum)
        return max(total, top * top) + 1

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        w, programme = self.w, self.programme
        phase = Phase(m, programme.interval, self.offset % programme.interval)
        result = Signal(w)
        ring = Signal(w, reset_less=True)
        self._multiply(m, phase, ring)
        self._add_up(m, phase)
        self._fold(m, phase)
        m.d.comb += [result.eq(self.folded[:w]), self.result.eq(result)]
        with m.If(phase.strobe("hold_now", *programme.hold)):
            m.d.sync += self.held.eq(result)
        with m.If(phase.strobe("wait_now", *programme.wait)):
            m.d.sync += self.waiting.eq(result)
        m.d.sync += ring.eq(Mux(phase.strobe("ring_load", *programme.ring_load), self.waiting, self.ring_in))
        m.d.comb += self.ring.eq(ring)
        return m

    def _starts(self, wanted: Callable[[Slot], object], delay: int = 0) -> list[int]:
        """Cycles of the period so many after the slots that are wanted."""
        programme = self.programme
        return sorted({(t + delay) % programme.interval for t, slot in programme.slots.items() if wanted(slot)})

    def _multiply(self, m: Module, phase: Phase, ring: Signal) -> None:
        """Operand and constant of a slot, registered, and their product."""
        w, programme, product = self.w, self.programme, self.product
        interval = programme.interval
        select = Signal(2)
        outside = phase.strobe("outside", *self._starts(lambda slot: slot.constant is None))
        odd = phase.strobe("select_odd", *self._starts(lambda slot: SOURCES.index(slot.source) % 2))
        high = phase.strobe("select_high", *self._starts(lambda slot: SOURCES.index(slot.source) >= 2))
        m.d.comb += select.eq(Cat(odd, high))
        a, b = Signal(w, reset_less=True), Signal(w, reset_less=True)
        with m.Switch(select):
            for i, source in enumerate((self.x, self.held, ring, self.bus)):
                with m.Case(i):
                    m.d.sync += a.eq(source)
        table = [programme.slots.get((t + 1 - self.offset) % interval) for t in range(interval)]  # read a cycle early
        m.submodules.constants = constants = Memory(
            shape=w, depth=interval, init=[(slot.constant or 0) if slot else 0 for slot in table]
        )
        read = constants.read_port(domain="comb")
        constant = Signal(w, reset_less=True)
        m.d.comb += read.addr.eq(phase.signal)
        m.d.sync += [constant.eq(read.data), b.eq(Mux(outside, self.y, constant))]
        tile = Tile(w, w, 3)
        m.submodules.tile = tile
        m.d.comb += [tile.a.eq(a), tile.b.eq(b)]
        m.d.sync += product.eq(tile.p)

    def _add_up(self, m: Module, phase: Phase) -> None:
        """The lazy accumulator."""
        total = self.total
        clear = phase.strobe("clear", *self._starts(lambda slot: slot.sum == "first", PRODUCT - CLEAR))
        add = phase.strobe("add", *self._starts(lambda slot: slot.sum, PRODUCT))
        with m.If(clear):
            m.d.sync += total.eq(0)
        with m.Elif(add):
            m.d.sync += total.eq(total + self.product)

    def _fold(self, m: Module, phase: Phase) -> None:
        """The folding loop: an entry register, and adders with a register behind each stage."""
        w, folded = self.w, self.folded
        entry = Signal(bits(self.sum_bound), reset_less=True)
        from_sum, from_product = (
            phase.strobe(f"fold_{name}", *sorted(t for t, source in self.programme.folds.items() if source == name))
            for name in ("sum", "product")
        )
        with m.If(from_sum):
            m.d.sync += entry.eq(self.total)
        with m.Elif(from_product):
            m.d.sync += entry.eq(self.product)
        with m.Else():
            m.d.sync += entry.eq(folded)
        upper, lower = entry[w:], entry[:w]
        shifted = [(upper << k if k else upper, sign) for k, sign in signed_digits(self.u)]
        plus: list[Value] = [lower, *(term for term, sign in shifted if sign > 0)]
        minus: list[Value] = [term for term, sign in shifted if sign < 0]
        both = min(len(plus), len(minus))
        pairs = [a - b for a, b in zip(plus[:both], minus[:both], strict=True)]
        pairs += [sum(plus[i + 1 : i + 2], plus[i]) for i in range(both, len(plus), 2)]
        pairs += [-sum(minus[i + 1 : i + 2], minus[i]) for i in range(both, len(minus), 2)]
        for stage in range(fold_cycles(self.digits) - 2):
            registered: list[Value] = []
            for i, pair in enumerate(pairs):
                q = Signal(pair.shape(), name=f"fold_{stage}_{i}", reset_less=True)
                m.d.sync += q.eq(pair)
                registered.append(q)
            pairs = [sum(registered[i + 1 : i + 2], registered[i]) for i in range(0, len(registered), 2)]
        m.d.sync += folded.eq(sum(pairs[1:], pairs[0]))
