# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A rower of `sor-ring`: one channel with a multiplier of one DSP block, run by the operations of the schedule.

In the cycle in which a multiplication starts, the multiplier reads an operand from one of four sources, and a constant
(or the second operand of the product). A product enters the folding loop at once, or it is added to an accumulator; the
sum is reduced once, after its last term. A local free-running counter controls the rower, so no control net leaves it.

    cycle t          operand multiplexer and constant table, with a register
    cycle t + 1 ...  DSP block: input, pipeline and output register, and one more register
    cycle t + 5      the product is visible; it enters the fold or the accumulator
    cycle t + 6      the sum is visible
    fold at cycle e  entry register, then ceil(log2(digits + 1)) adder stages; visible ``fold_cycles`` later
"""

from __future__ import annotations

from collections.abc import Callable

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from modmill.designs.sor.ring_schedule import CLEAR, PRODUCT, Kind, Operation, fold_cycles
from modmill.numbers.folding import fold_bound
from modmill.numbers.rns.residues import signed_digits
from modmill.rtl.fold import bits
from modmill.rtl.periodic import Phase
from modmill.rtl.product import one_tile
from modmill.schedule import Schedule

SUMMANDS = (Kind.TERM, Kind.BUS_TERM)
"""The multiplications whose products are added."""


class Rower(wiring.Component):
    """One channel modulo 2^w - u.

    ``plan``: the operations of one product. ``constant``: returns the factor of an INVERSE, TERM or BUS_TERM in this
    rower, below 2^w. ``digits``: signed digits of u that the folding loop is built for; the same in all rowers.
    ``offset``: start value of the local counter. It differs between rowers, so no two have equal control logic. Cost:
    one DSP block; about 60 LUTs for the tables, 35 for the multiplexers, 45 for the accumulator and 30 to 100 for the
    folding loop (w = 17).
    """

    def __init__(
        self, w: int, u: int, plan: Schedule, constant: Callable[[Operation], int], *, digits: int, offset: int = 0
    ) -> None:
        self._w, self._u, self._plan, self._digits, self._offset = w, u, plan, digits, offset
        top = (1 << w) - 1
        factors = {step: constant(step.does) for step in plan.on("mul") if step.does.kind is not Kind.PRODUCT}
        summed = sum(top * factor for step, factor in factors.items() if step.does.kind in SUMMANDS)
        self._factors = {step.start: factor for step, factor in factors.items()}
        self._bound = max(summed, top * top) + 1  # exclusive, of the accumulator over one sum and of a product
        self.held = Signal(w, name="hold", reset_less=True)
        self.waiting = Signal(w, name="waiting", reset_less=True)
        self.product = Signal(2 * w, name="product", reset_less=True)
        self.total = Signal(bits(self._bound), name="total", reset_less=True)
        self.folded = Signal(bits(max(fold_bound(self._bound, w, u), 1 << w)), name="folded", reset_less=True)
        super().__init__({
            "x": In(w), "y": In(w), "ring_in": In(w), "bus": In(w), "ring": Out(w), "result": Out(w),
        })  # fmt: skip

    @property
    def latency(self) -> int:
        """Cycles from the choice of an operand to the product."""
        return PRODUCT

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        w, interval = self._w, self._plan.interval
        phase = Phase(m, interval, self._offset % interval)
        result = Signal(w)
        ring = Signal(w, reset_less=True)
        self._multiply(m, phase, ring)
        self._add_up(m, phase)
        self._fold(m, phase)
        m.d.comb += [result.eq(self.folded[:w]), self.result.eq(result)]
        with m.If(self._strobe(phase, "hold_now", lambda op: op.kind is Kind.HOLD)):
            m.d.sync += self.held.eq(result)
        with m.If(self._strobe(phase, "wait_now", lambda op: op.kind is Kind.WAIT)):
            m.d.sync += self.waiting.eq(result)
        loading = self._strobe(phase, "ring_load", lambda op: op.kind is Kind.RING)
        m.d.sync += ring.eq(Mux(loading, self.waiting, self.ring_in))
        m.d.comb += self.ring.eq(ring)
        return m

    def _strobe(self, phase: Phase, name: str, wanted: Callable[[Operation], bool], delay: int = 0) -> Signal:
        """High ``delay`` cycles after the start of each operation for which ``wanted`` is true."""
        starts = (step.start + delay for step in self._plan.steps if wanted(step.does))
        return phase.strobe(name, *sorted(start % self._plan.interval for start in starts))

    def _multiply(self, m: Module, phase: Phase, ring: Signal) -> None:
        """The multiplier, with registers for operand and constant."""
        w, interval = self._w, self._plan.interval
        select = Signal(2)
        outside = self._strobe(phase, "outside", lambda op: op.kind is Kind.PRODUCT)
        odd = self._strobe(phase, "select_odd", lambda op: op.kind in (Kind.INVERSE, Kind.BUS_TERM))
        high = self._strobe(phase, "select_high", lambda op: op.kind in SUMMANDS)
        m.d.comb += select.eq(Cat(odd, high))
        a, b = Signal(w, reset_less=True), Signal(w, reset_less=True)
        with m.Switch(select):
            for i, source in enumerate((self.x, self.held, ring, self.bus)):
                with m.Case(i):
                    m.d.sync += a.eq(source)
        table = [0] * interval
        for start, factor in self._factors.items():
            table[(start + self._offset - 1) % interval] = factor  # read one cycle before the multiplication
        m.submodules.constants = constants = Memory(shape=w, depth=interval, init=table)
        read = constants.read_port(domain="comb")
        constant = Signal(w, reset_less=True)
        m.d.comb += read.addr.eq(phase.signal)
        m.d.sync += [constant.eq(read.data), b.eq(Mux(outside, self.y, constant))]
        m.d.sync += self.product.eq(one_tile(m, a, b, 3, "tile"))

    def _add_up(self, m: Module, phase: Phase) -> None:
        """The accumulator of unreduced products."""
        total = self.total
        clear = self._strobe(phase, "clear", lambda op: op == Operation(Kind.TERM, 0), PRODUCT - CLEAR)
        add = self._strobe(phase, "add", lambda op: op.kind in SUMMANDS, PRODUCT)
        with m.If(clear):
            m.d.sync += total.eq(0)
        with m.Elif(add):
            m.d.sync += total.eq(total + self.product)

    def _fold(self, m: Module, phase: Phase) -> None:
        """The folding loop: an entry register, and adders with a register after each stage."""
        w, folded = self._w, self.folded
        entry = Signal(bits(self._bound), reset_less=True)
        products = [Operation(Kind.FOLD, 0, of) for of in (Kind.PRODUCT, Kind.INVERSE)]
        from_sum = self._strobe(phase, "fold_sum", lambda op: op == Operation(Kind.FOLD, 0, Kind.SUM))
        from_product = self._strobe(phase, "fold_product", lambda op: op in products)
        with m.If(from_sum):
            m.d.sync += entry.eq(self.total)
        with m.Elif(from_product):
            m.d.sync += entry.eq(self.product)
        with m.Else():
            m.d.sync += entry.eq(folded)
        upper, lower = entry[w:], entry[:w]
        shifted = [(upper << k if k else upper, sign) for k, sign in signed_digits(self._u)]
        plus: list[Value] = [lower, *(term for term, sign in shifted if sign > 0)]
        minus: list[Value] = [term for term, sign in shifted if sign < 0]
        both = min(len(plus), len(minus))
        pairs = [a - b for a, b in zip(plus[:both], minus[:both], strict=True)]
        pairs += [sum(plus[i + 1 : i + 2], plus[i]) for i in range(both, len(plus), 2)]
        pairs += [-sum(minus[i + 1 : i + 2], minus[i]) for i in range(both, len(minus), 2)]
        for stage in range(fold_cycles(self._digits) - 2):
            registered = [Signal(x.shape(), name=f"fold_{stage}_{i}", reset_less=True) for i, x in enumerate(pairs)]
            m.d.sync += [q.eq(pair) for q, pair in zip(registered, pairs, strict=True)]
            pairs = [sum(registered[i + 1 : i + 2], registered[i]) for i in range(0, len(registered), 2)]
        m.d.sync += folded.eq(sum(pairs[1:], pairs[0]))
