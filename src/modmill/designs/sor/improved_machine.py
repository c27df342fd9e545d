# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The machine of the improved sum of residues (Figures 1 to 5 of the paper), for any number of multiplier sets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from modmill.designs.sor.family import SumOfResiduesMachine
from modmill.designs.sor.improved_schedule import Kind, Params
from modmill.interface import Multiplier
from modmill.rtl import fold as rtl_fold
from modmill.rtl.product import product
from modmill.schedule import Step


class Counter:
    """A counter of the cycles of one product, and the handshake.

    ``cycle`` is 0 while the machine is idle and when operands are accepted; ``following`` is its next value.
    """

    def __init__(self, m: Module, core: Multiplier, latency: int) -> None:
        self._m = m
        self.cycle = cycle = Signal(range(latency + 1))
        self.following = following = Signal.like(cycle)
        last = latency - 1
        m.d.comb += core.i_ready.eq((cycle == 0) & (~core.o_valid | core.o_ready))
        accept = core.i_valid & core.i_ready
        with m.If(cycle == 0):
            m.d.comb += following.eq(Mux(accept, 1, 0))
        with m.Elif(cycle == last):
            m.d.comb += following.eq(0)
        with m.Else():
            m.d.comb += following.eq(cycle + 1)
        m.d.sync += cycle.eq(following)
        with m.If(cycle == last):
            m.d.sync += core.o_valid.eq(1)
        with m.Elif(core.o_ready):
            m.d.sync += core.o_valid.eq(0)

    def within(self, *cycles: int) -> Value:
        """High in these cycles; a register."""
        strobe = Signal(name="in_" + "_".join(map(str, cycles)))
        hits = [self.following == c for c in cycles]
        self._m.d.sync += strobe.eq(Cat(*hits).any())
        return strobe

    def number(self, steps: Sequence[Step], unit: str) -> Signal:
        """The index in ``steps`` of the step that the unit executes; it stays until the next step starts."""
        number = Signal(range(max(2, len(steps))), name=f"{unit}_step")
        with self._m.Switch(self.following):
            for i, step in enumerate(steps):
                with self._m.Case(step.start):
                    self._m.d.sync += number.eq(i)
        return number

    def sum_of_round(self, out: Signal, inputs: Sequence[Value], rounds: Sequence[Step]) -> None:
        """Write the sum of the products of each round to ``out``; the last round may have fewer products."""
        m, last = self._m, len(rounds[-1].does.channels)
        whole = sum(inputs[1:], inputs[0])
        if last == len(inputs):
            m.d.sync += out.eq(whole)
        else:
            with m.If(self.cycle == rounds[-1].start):
                m.d.sync += out.eq(sum(inputs[1:last], inputs[0]))
            with m.Else():
                m.d.sync += out.eq(whole)


class Machine(SumOfResiduesMachine):
    """k sets of N channel multipliers, an accumulator in each channel, k multipliers for kappa, run by the schedule.

    A multiplication takes two cycles: DSP tiles with a register, then the sum of their rows and the folds, and when
    pipelined a register for the residue. Without it (Figure 1) sums, folds and accumulator are one path, on which the
    product stands for two cycles.
    Handshake: operands are accepted in cycle 0 if the previous result was taken or is being taken (i_ready depends on
    o_ready). The result stays in the accumulators until it is taken.
    Latency and interval: the length of the schedule. Cost: see `Sor.cost`.
    """

    _params: Params

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        p = self._params
        counter = Counter(m, self, self._plan.latency)
        gamma = [Signal(p.base.w, name=f"gamma{j}", reset_less=True) for j in range(p.base.n)]
        kappa = Signal(p.words * p.base.w, name="kappa")
        products = [self._multipliers(m, counter, f"mul{s + 1}", gamma, kappa) for s in range(p.k)]
        alpha = self._alpha(m, counter, gamma)
        self._kappa(m, counter, gamma, alpha, kappa)
        self._accumulators(m, counter, alpha, products)
        return m

    def _multipliers(
        self, m: Module, counter: Counter, unit: str, gamma: Sequence[Signal], kappa: Signal
    ) -> list[Signal]:
        """One set of channel multipliers. Returns its residues: registers (Q3 of Figure 4) if pipelined, else wires.
        The first set also writes ``gamma``, which is Q1 of Figure 1 and has Z first if not pipelined."""
        p, base = self._params, self._params.base
        n, w = base.n, base.w
        steps = list(self._plan.on(unit))
        number = counter.number(steps, unit)
        done = counter.within(*(step.end - 1 for step in steps)) if p.pipelined else None
        kept = [s for s in steps if s.does.kind is Kind.INVERSE or (s.does.kind is Kind.PRODUCT and not p.pipelined)]
        factor = Signal(w, name=f"{unit}_gamma")
        with m.Switch(number):
            for i, step in enumerate(steps):
                if step.does.kind is Kind.TERM:
                    with m.Case(i):
                        m.d.comb += factor.eq(gamma[step.does.channels[0]])
        q = [Signal(w, name=f"{unit}_q{j}", reset_less=True) for j in range(n)]
        for j in range(n):
            a, b = Signal(w, name=f"{unit}_a{j}"), Signal(w, name=f"{unit}_b{j}")
            m.d.comb += a.eq(factor)
            with m.Switch(number):
                for i, step in enumerate(steps):
                    with m.Case(i):
                        self._operands(m, step, j, a, b, q[j] if p.pipelined else gamma[j], kappa)
            full = product(m, a, b, p.block, name=f"{unit}_c{j}")
            residue = rtl_fold.reduce(m, full, 1 << 2 * w, w, base.u[j], name=f"{unit}_c{j}")
            if done is None:
                m.d.comb += q[j].eq(residue)
            else:
                with m.If(done):
                    m.d.sync += q[j].eq(residue)
            if kept:
                with m.If(reduce(or_, (counter.cycle == step.end - 1 for step in kept))):
                    m.d.sync += gamma[j].eq(residue)
        self.probes += [(s.name, list(q if p.pipelined or s not in kept else gamma), s.end) for s in steps]
        return q

    def _operands(self, m: Module, step: Step, j: int, a: Signal, b: Signal, before: Signal, kappa: Signal) -> None:
        """Set operands a and b of channel j in a step. ``before``: the last product. If not set, ``a`` is gamma_i."""
        w, k = self._params.base.w, self._constants
        match step.does.kind:
            case Kind.PRODUCT:
                m.d.comb += [a.eq(self.i_a.word_select(j, w)), b.eq(self.i_b.word_select(j, w))]
            case Kind.INVERSE:
                m.d.comb += [a.eq(before), b.eq(k.inverses[j])]
            case Kind.KAPPA_ROW:
                (word,) = step.does.words
                m.d.comb += [a.eq(kappa.word_select(word, w)), b.eq(k.minus_p[word][j])]
            case Kind.TERM:
                m.d.comb += b.eq(k.rows[step.does.channels[0]][j])

    def _alpha(self, m: Module, counter: Counter, gamma: Sequence[Signal]) -> Signal:
        """alpha from the top q bits of each gamma_i (Algorithm 1), in a register."""
        p, rns, plan = self._params, self._params.rns, self._plan
        alpha_sum = Signal((p.base.n * ((1 << rns.q) - 1) + rns.d).bit_length())  # q >= 64: too large for a range
        alpha = Signal(range(max(2, rns.alpha_max + 1)))
        m.d.comb += alpha_sum.eq(sum((g[p.base.w - rns.q :] for g in gamma), Const(rns.d)))
        with m.If(counter.cycle == plan["alpha"].end - 1):
            m.d.sync += alpha.eq(alpha_sum >> rns.q)
        self.probes.append(("alpha", alpha, plan["alpha"].end))
        return alpha

    def _kappa(self, m: Module, counter: Counter, gamma: Sequence[Signal], alpha: Signal, kappa: Signal) -> None:
        """K = e_alpha + sum gamma_i c_i; kappa = floor(K / 2^T)."""
        p, rns, plan = self._params, self._params.rns, self._plan
        k_sum = Signal(((rns.kappa_max + 1) << rns.T).bit_length())
        k_products = [self._kappa_multiplier(m, counter, f"kmul{s + 1}", gamma) for s in range(p.k)]
        rounds = list(plan.on("kacc"))
        term: Value = k_products[0]
        if p.k > 1:
            term = Signal(len(term) + p.k.bit_length(), name="kacc_term")
            counter.sum_of_round(term, k_products, rounds)
        k_write = counter.within(*(step.end - 1 for step in rounds))
        with m.If(counter.cycle == plan["AL"].end - 1):
            with m.Switch(alpha):
                for i, e in enumerate(rns.e):
                    with m.Case(i):
                        m.d.sync += k_sum.eq(e)
        with m.Elif(k_write):
            m.d.sync += k_sum.eq(k_sum + term)
        m.d.comb += kappa.eq(k_sum >> rns.T)
        self.probes += [(step.name, k_sum, step.end) for step in (plan["AL"], *rounds)]
        self.probes.append(("kappa", kappa, rounds[-1].end))

    def _kappa_multiplier(self, m: Module, counter: Counter, unit: str, gamma: Sequence[Signal]) -> Signal:
        """A multiplier of kappa: one gamma_i c_i after another, not reduced. Returns its output register."""
        p, rns, w = self._params, self._params.rns, self._params.base.w
        steps = list(self._plan.on(unit))
        number = counter.number(steps, unit)
        a, c = Signal(w, name=f"{unit}_a"), Signal(rns.constant_bits, name=f"{unit}_c")
        with m.Switch(number):
            for i, step in enumerate(steps):
                with m.Case(i):
                    (channel,) = step.does.channels
                    m.d.comb += [a.eq(gamma[channel] >> rns.s << rns.s), c.eq(rns.c[channel])]
        out = Signal(w + rns.constant_bits, name=f"{unit}_q", reset_less=True)
        full = product(m, a, c, p.kappa_block, name=unit)
        with m.If(counter.within(*(step.end - 1 for step in steps))):
            m.d.sync += out.eq(full)
        self.probes += [(step.name, out, step.end) for step in steps]
        return out

    def _accumulators(self, m: Module, counter: Counter, alpha: Signal, products: Sequence[list[Signal]]) -> None:
        """The accumulator A of each channel, which has the result after the last step."""
        p, base = self._params, self._params.base
        w = base.w
        steps = list(self._plan.on("acc"))
        write = counter.within(*(step.end - 1 for step in steps))
        al_now = counter.within(*(step.start for step in steps if step.does.alpha))
        most = max(len(op.channels) + len(op.words) + op.alpha for op in (step.does for step in steps))
        words = []
        for j in range(base.n):
            al = self._looked_up(m, alpha, j)
            total = Signal(w, name=f"A{j}")
            summand = Signal(w if p.k == 1 else w + most.bit_length(), name=f"acc_term{j}")
            inputs = [q[j] for q in products]
            if p.k == 1:
                m.d.comb += summand.eq(Mux(al_now, al, inputs[0]))
            else:
                with m.If(al_now):
                    m.d.sync += summand.eq(sum((inputs[p.k - 1 - word] for word in range(p.words)), al))
                with m.Else():
                    counter.sum_of_round(summand, inputs, steps[:-1])
            bound = (most + 1) << w
            wide = Signal(rtl_fold.bits(bound), name=f"acc_sum{j}")
            m.d.comb += wide.eq(total + summand)
            folded = rtl_fold.reduce(m, wide, bound, w, base.u[j], name=f"acc{j}")
            with m.If(counter.cycle == 1):
                m.d.sync += total.eq(0)
            with m.Elif(write):
                m.d.sync += total.eq(folded)
            words.append(total)
        m.d.comb += self.o_r.eq(Cat(*words))
        self.probes += [(step.name, list(words), step.end) for step in steps]
