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

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from modmill.numbers.folding import fold_bound, fold_bounds
from modmill.numbers.rns.residues import signed_digits
from modmill.rtl.fold import bits
from modmill.rtl.product import Tile

PRODUCT = 5
"""Cycles from a slot to its visible product."""

CLEAR = 1
"""Cycles before the first product of a sum in which the accumulator is cleared."""

ACCUMULATE = 1
"""Cycles from a visible product to the accumulator that holds it."""


def fold_cycles(digits: int) -> int:
    """Cycles of one pass of the folding loop for distances u of at most that many signed digits."""
    return 1 + max(1, digits.bit_length())


@dataclass(frozen=True)
class Slot:
    """One multiplication: operand ``source`` ('in', 'hold', 'ring', 'bus') times ``constant`` (None: the second input).

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
        self.held = Signal(w, name="hold", reset_less=True)
        self.waiting = Signal(w, name="waiting", reset_less=True)
        self.total = Signal(bits(self.sum_bound), name="total", reset_less=True)
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
        interval = programme.interval
        shift = self.offset % interval

        # ---- control: the counter is ahead of the machine's phase by the offset
        phase = Signal(range(interval), init=shift)
        wrap = Signal(init=int(shift == interval - 1))
        m.d.sync += [
            wrap.eq(phase == interval - 2),
            phase.eq(Mux(wrap, 0, phase + 1)),
        ]

        def strobe(name: str, cycles: set[int]) -> Signal:
            """High in these cycles of the machine's phase; registered."""
            q = Signal(name=name, init=int(0 in cycles))
            m.d.sync += q.eq(Cat(*(phase == (c - 1 + shift) % interval for c in sorted(cycles))).any())
            return q

        # ---- slot: operand and constant, registered
        hold = self.held
        result = Signal(w)
        ring = Signal(w, reset_less=True)
        select = Signal(2)
        sources = ("in", "hold", "ring", "bus")
        outside = strobe("outside", {t for t, s in programme.slots.items() if s.constant is None})
        for t in range(interval):
            slot = programme.slots.get(t)
            if slot and slot.source not in sources:
                raise ValueError(f"unknown operand source {slot.source!r}")
        high = {t for t, s in programme.slots.items() if sources.index(s.source) >= 2}
        odd = {t for t, s in programme.slots.items() if sources.index(s.source) % 2}
        m.d.comb += select.eq(Cat(strobe("select_odd", odd), strobe("select_high", high)))
        a, b = Signal(w, reset_less=True), Signal(w, reset_less=True)
        with m.Switch(select):
            for i, source in enumerate((self.x, hold, ring, self.bus)):
                with m.Case(i):
                    m.d.sync += a.eq(source)
        table = [programme.slots.get((t + 1 - shift) % interval) for t in range(interval)]  # read one cycle early
        m.submodules.constants = constants = Memory(
            shape=w, depth=interval, init=[(slot.constant or 0) if slot else 0 for slot in table]
        )
        read = constants.read_port(domain="comb")
        constant = Signal(w, reset_less=True)
        m.d.comb += read.addr.eq(phase)
        m.d.sync += [constant.eq(read.data), b.eq(Mux(outside, self.y, constant))]
        tile = Tile(w, w, 3)
        m.submodules.tile = tile
        product = Signal(2 * w, reset_less=True)
        m.d.comb += [tile.a.eq(a), tile.b.eq(b)]
        m.d.sync += product.eq(tile.p)

        # ---- lazy accumulator
        def later(cycles: set[int], delay: int) -> set[int]:
            return {(c + delay) % interval for c in cycles}

        bound = self.sum_bound
        total = self.total
        clear = strobe("clear", later({t for t, s in programme.slots.items() if s.sum == "first"}, PRODUCT - CLEAR))
        add = strobe("add", later({t for t, s in programme.slots.items() if s.sum}, PRODUCT))
        with m.If(clear):
            m.d.sync += total.eq(0)
        with m.Elif(add):
            m.d.sync += total.eq(total + product)

        # ---- folding loop
        after = fold_bound(bound, w, self.u)
        folded = Signal(bits(max(after, 1 << w)), reset_less=True)
        entry = Signal(bits(bound), reset_less=True)
        from_sum = strobe("fold_sum", {t for t, source in programme.folds.items() if source == "sum"})
        from_product = strobe("fold_product", {t for t, source in programme.folds.items() if source == "product"})
        with m.If(from_sum):
            m.d.sync += entry.eq(total)
        with m.Elif(from_product):
            m.d.sync += entry.eq(product)
        with m.Else():
            m.d.sync += entry.eq(folded)
        upper, lower = entry[w:], entry[:w]
        shifted = [(upper << k if k else upper, sign) for k, sign in signed_digits(self.u)]
        plus: list[Value] = [term for term, sign in shifted if sign > 0]
        minus: list[Value] = [term for term, sign in shifted if sign < 0]
        plus = [lower, *plus]
        both = min(len(plus), len(minus))
        pairs = [a - b for a, b in zip(plus[:both], minus[:both], strict=True)]
        pairs += [sum(plus[i + 1 : i + 2], plus[i]) for i in range(both, len(plus), 2)]
        pairs += [-sum(minus[i + 1 : i + 2], minus[i]) for i in range(both, len(minus), 2)]
        stages = fold_cycles(self.digits) - 1
        for stage in range(stages):
            if stage == stages - 1:
                m.d.sync += folded.eq(sum(pairs[1:], pairs[0]))
                break
            registered: list[Value] = []
            for i, pair in enumerate(pairs):
                q = Signal(pair.shape(), name=f"fold_{stage}_{i}", reset_less=True)
                m.d.sync += q.eq(pair)
                registered.append(q)
            pairs = [sum(registered[i + 1 : i + 2], registered[i]) for i in range(0, len(registered), 2)]
        m.d.comb += [result.eq(folded[:w]), self.result.eq(result)]
        with m.If(strobe("hold_now", set(programme.hold))):
            m.d.sync += hold.eq(result)
        with m.If(strobe("wait_now", set(programme.wait))):
            m.d.sync += self.waiting.eq(result)
        m.d.sync += ring.eq(Mux(strobe("ring_load", set(programme.ring_load)), self.waiting, self.ring_in))
        m.d.comb += self.ring.eq(ring)
        return m

    def passes(self) -> int:
        """Passes of the folding loop that bring any sum or product below 2^w."""
        return len(fold_bounds(self.sum_bound, self.w, self.u))
