# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The machine of `sor-ring`. Its control and its probes are made from the operations of the schedule."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from amaranth.hdl import Cat, Module, Mux, Signal

from modmill.designs.sor.family import SumOfResiduesMachine
from modmill.designs.sor.ring_rower import Rower
from modmill.designs.sor.ring_schedule import ALPHA, ALPHA_WORD, KAPPA, Kind, Operation, Params
from modmill.rtl.delay import later
from modmill.rtl.periodic import Period
from modmill.rtl.product import one_tile


class Machine(SumOfResiduesMachine):
    """N rowers in a ring, taps for alpha and kappa, and a queue for the results.

    Operands are accepted every ``interval`` cycles if the queue has room for the result. The machine never stalls;
    results wait in the queue. Timing does not depend on values. Cost: see `SorRing.cost` and `Rower`.
    """

    _params: Params

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        plan = self._plan
        period = Period(m, self, plan.interval, plan["z"].start)
        buses = [Signal(self._params.base.w, name=f"bus{k}", reset_less=True) for k in range(self._params.buses)]
        rowers = self._rowers(m, buses)
        tops, products = self._taps(m, period, rowers)
        alpha = self._alpha(m, period, tops)
        kappa = self._kappa(m, period, alpha, products)
        self._bus(m, period, alpha, kappa, buses)
        period.finish(Cat(*(r.result for r in rowers)))
        multiplications = (Kind.PRODUCT, Kind.INVERSE, Kind.TERM, Kind.BUS_TERM)
        registers: dict[Kind, Signal | list[Signal]] = {
            **{kind: [r.product for r in rowers] for kind in multiplications},
            Kind.FOLD: [r.folded for r in rowers],
            Kind.HOLD: [r.held for r in rowers],
            Kind.WAIT: [r.waiting for r in rowers],
            Kind.RING: [r.ring for r in rowers],
            Kind.SUM: [r.total for r in rowers],
            Kind.ALPHA: alpha, Kind.KAPPA: kappa, Kind.BUS: buses, Kind.RESULT: self.o_r,
        }  # fmt: skip
        self.probes = [(step.name, registers[step.does.kind], step.end) for step in plan.steps]
        return m

    def _constant(self, j: int, op: Operation) -> int:
        """The factor of an INVERSE, TERM or BUS_TERM in rower j."""
        k = self._constants
        if op.kind is Kind.INVERSE:
            return k.inverses[j]
        if op.kind is Kind.TERM:
            return k.rows[j - op.number][j]
        return (k.al[0] if op.number == ALPHA_WORD else k.minus_p[op.number])[j]

    def _rowers(self, m: Module, buses: Sequence[Signal]) -> list[Rower]:
        """The rowers, connected as a ring."""
        p, w = self._params, self._params.base.w
        rowers = []
        for j in range(p.base.n):
            rower = Rower(w, p.base.u[j], self._plan, partial(self._constant, j), digits=p.digits, offset=j)
            m.submodules[f"rower{j}"] = rower
            x, y = self.i_a.word_select(j, w), self.i_b.word_select(j, w)
            m.d.comb += [rower.x.eq(x), rower.y.eq(y), rower.bus.eq(buses[j // 4])]
            rowers.append(rower)
        m.d.comb += [rower.ring_in.eq(rowers[j - 1].ring) for j, rower in enumerate(rowers)]
        return rowers

    def _taps(self, m: Module, period: Period, rowers: Sequence[Rower]) -> tuple[list[Signal], list[Signal]]:
        """For each tap: the top q bits of the passing gamma_i, and the product gamma_i c_i."""
        p, rns, w = self._params, self._params.rns, self._params.base.w
        tops, products = [], []
        for i, segment in enumerate(p.segments):
            tap = later(m, rowers[segment[-1]].ring, f"tap{i}")
            seen = [(self._plan["ring"].end + turn) % self._plan.interval for turn in range(len(segment))]
            top = Signal(rns.q, name=f"tap{i}_top")
            m.d.comb += top.eq(Mux(period.strobe(f"tap{i}_seen", *(c + 1 for c in seen)), tap[w - rns.q :], 0))
            tops.append(top)
            parts = []
            for word in range(p.kappa_tiles):
                constant = Signal(w, name=f"tap{i}_c{word}", reset_less=True)
                with m.Switch(period.signal):
                    for s, cycle in enumerate(seen):
                        with m.Case(cycle):
                            m.d.sync += constant.eq(rns.c[segment[-1] - s] >> (w * word) & ((1 << w) - 1))
                    with m.Default():
                        m.d.sync += constant.eq(0)
                parts.append(one_tile(m, tap, constant, 3, f"tap{i}_tile{word}") << (w * word))
            product = Signal(w + rns.constant_bits, name=f"tap{i}_product", reset_less=True)
            m.d.sync += product.eq(sum(parts[1:], parts[0]))
            products.append(product)
        return tops, products

    def _alpha(self, m: Module, period: Period, tops: Sequence[Signal]) -> Signal:
        """alpha from the top bits of the taps (Algorithm 1), in a register."""
        p, rns, step = self._params, self._params.rns, self._plan["alpha"]
        top_sum = Signal(rns.q + p.taps.bit_length(), reset_less=True)
        alpha_sum = Signal(range(p.base.n * ((1 << rns.q) - 1) + rns.d + 1), reset_less=True)
        alpha = Signal(range(max(2, rns.alpha_max + 1)), reset_less=True)
        first = period.strobe("alpha_first", step.start + ALPHA - 1)
        m.d.sync += [top_sum.eq(sum(tops[1:], tops[0])), alpha_sum.eq(Mux(first, rns.d, alpha_sum) + top_sum)]
        with m.If(period.strobe("alpha_now", step.end - 1)):
            m.d.sync += alpha.eq(alpha_sum >> rns.q)
        return alpha

    def _kappa(self, m: Module, period: Period, alpha: Signal, products: Sequence[Signal]) -> Signal:
        """kappa from the products of the taps and the offset e_alpha, in a register."""
        p, rns, step = self._params, self._params.rns, self._plan["kappa"]
        e = Signal(max(1, max(x.bit_length() for x in rns.e)), reset_less=True)
        with m.Switch(alpha):
            for i, offset in enumerate(rns.e):
                with m.Case(i):
                    m.d.sync += e.eq(offset)
        product_sum = Signal(len(products[0]) + p.taps.bit_length(), reset_less=True)
        k_sum = Signal(((rns.kappa_max + 1) << rns.T).bit_length(), reset_less=True)
        k_total = Signal(len(k_sum))
        kappa = Signal(p.words * p.base.w, reset_less=True)
        first = period.strobe("kappa_first", step.start + KAPPA - 1)
        m.d.sync += [product_sum.eq(sum(products[1:], products[0])), k_sum.eq(Mux(first, 0, k_sum) + product_sum)]
        m.d.comb += k_total.eq(k_sum + e)
        with m.If(period.strobe("kappa_now", step.end - 1)):
            m.d.sync += kappa.eq(k_total >> rns.T)
        return kappa

    def _bus(self, m: Module, period: Period, alpha: Signal, kappa: Signal, buses: Sequence[Signal]) -> None:
        """The bus: alpha, or in the cycles of their BUS operations the words of kappa, to all rowers."""
        w = self._params.base.w
        source = Signal(w, reset_less=True)
        m.d.sync += source.eq(alpha)
        for step in self._plan.steps:
            word = step.does.number
            if step.does.kind is Kind.BUS and word != ALPHA_WORD:
                with m.If(period.strobe(f"bus_word{word}", step.start)):
                    m.d.sync += source.eq(kappa.word_select(word, w))
        m.d.sync += [bus.eq(source) for bus in buses]
