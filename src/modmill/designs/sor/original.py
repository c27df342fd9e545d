# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The original sum of residues, without kappa, and its parallel and sequential architectures.

Source:  B. Phillips, Y. Kong, Z. Lim, Highly parallel modular multiplication in the residue number system using sum of
         residues reduction, AAECC 21 (2010) 249-255, for the algorithm; S. Asif, Y. Kong, Highly Parallel Modular
         Multiplier for Elliptic Curve Cryptography in Residue Number System, CSSP 36 (2017) 1027-1051, and S. Asif's
         thesis (Macquarie University, 2016) for MM_PA and MM_SPA. M. A. Mehrabi's SOR paper compares itself with them.
Formula: Z = X Y,  gamma_i = Z M_i^-1 mod m_i,  V = sum gamma_i <M_i>_p + <-alpha M>_p
Range:   X Y < (1 - d/2^q) M gives V = X Y (mod p), V <= sum gamma_max <M_i>_p + max <-alpha M>_p, up to about
         N 2^n p. With narrow channels the loop still closes: forty of 14 bits carry 256-bit moduli without end. (The
         SOR paper says that two products in a row are not possible; that is so for wide channels only.)

Deviations from the papers, of which only the figures are at hand: channels are reduced by folding instead of Barrett's
method, so three DSP blocks a reduction are saved; the forty moduli are 2^14 - u, the papers do not list theirs;
MM_SPA has four multiplier-accumulators a channel, which is what its figures imply (10 cycles for 40 terms, 13 in all).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value

from modmill.design import Cost, Design, Multiplier, Setting, Source
from modmill.designs.sor import family
from modmill.designs.sor.family import Constants, SumOfResiduesDesign, SumOfResiduesMachine
from modmill.numbers.folding import reduce
from modmill.numbers.rns.residues import Base, pseudo_mersenne
from modmill.numbers.rns.sum_of_residues import SumOfResidues, alpha_limit, alpha_offset
from modmill.rtl import fold as rtl_fold
from modmill.rtl.periodic import Period
from modmill.schedule import Schedule, Step

STAGES = {"combinational": 1, "pipelined": 3}
"""Cycles of MM_PA's two forms."""

FEW = 200
"""Moduli up to this length take as few channels as serve."""

CHANNELS_MAX = 172
"""Most channels: with more of 17 bits, alpha is not exact."""

CHAIN = 4
"""Products that are added one after the other, in the adders of DSP blocks where they have them."""


# ---------------------------------------------------------------------------------------------- parameters


@dataclass(frozen=True)
class Params(family.Params):
    """``rns`` holds the constants (its kappa is not used); ``form``: combinational, pipelined, or sequential with
    ``macs`` multiplier-accumulators a channel."""

    form: str
    macs: int

    @property
    def rounds(self) -> int:
        """Cycles of accumulation."""
        return -(-self.base.n // self.macs)

    @property
    def sums(self) -> list[tuple[str, range]]:
        """Names of the sums S, and the channels whose gamma_i each adds to the one before."""
        if self.form in STAGES:
            return [("S", range(self.base.n))]
        starts = range(0, self.base.n, self.macs)
        return [(f"S{k}", range(i, min(i + self.macs, self.base.n))) for k, i in enumerate(starts, 1)]

    @property
    def sum_bound(self) -> int:
        """Exclusive bound of a channel's sum of N products and one entry of alpha's table."""
        top = (1 << self.base.w) - 1
        return self.base.n * top * top + top + 1


def schedule(p: Params) -> Schedule:
    """MM_PA: everything in one cycle, or in three. MM_SPA: Z, gamma, ceil(N / macs) accumulations, the final fold."""
    if p.form == "combinational":
        return Schedule((Step("V", "array", 0, 1),), 1)
    if p.form == "pipelined":
        return Schedule((
            Step("G", "front", 0, 1), Step("S", "array", 1, 1, ("G",)), Step("alpha", "adder", 1, 1, ("G",)),
            Step("V", "folds", 2, 1, ("S", "alpha")),
        ), 1)  # fmt: skip
    steps = [Step("Z", "zmul", 0, 1), Step("G", "gmul", 1, 1, ("Z",))]
    previous = ("G",)
    for r, (name, _) in enumerate(p.sums):
        steps.append(Step(name, "macs", 2 + r, 1, previous))
        previous = (name,)
    steps.append(Step("alpha", "adder", 1 + p.rounds, 1, ("G",)))
    steps.append(Step("V", "folds", 2 + p.rounds, 1, ("alpha", *previous)))
    return Schedule(tuple(steps), interval=max(2, p.rounds))


# ---------------------------------------------------------------------------------------------- algorithm


class SorOriginal(SumOfResiduesDesign):
    """Original SOR for one modulus."""

    params: Params

    def __init__(self, params: Params, settings: dict[str, Any]) -> None:
        super().__init__(params, settings)
        self.period = 1 if params.form in STAGES else self.schedule.interval

    @property
    def largest_result(self) -> int:
        return self.rns.v_max

    @cached_property
    def schedule(self) -> Schedule:
        return schedule(self.params)

    @cached_property
    def cost(self) -> Cost:
        """N channels of N (or ``macs``) multipliers and two more; one inverse, N rows and alpha's rows a channel."""
        p = self.params
        n, w = p.base.n, p.base.w
        return Cost(
            dsp=n * ((n if p.form in STAGES else p.macs) + 2),
            memory_bits=n * (n + 1 + p.rns.alpha_max) * w,
            multiplications=n * (n + 2),
        )

    def trace(self, a: int, b: int, *, scaled: bool = False) -> Iterator[tuple[str, Any]]:
        p, base, rns = self.params, self.params.base, self.params.rns
        k = Constants.of(p, scaled)
        form = self.representation
        x, y = form.unpack(a), form.unpack(b)
        channels = range(base.n)
        square = 1 << 2 * base.w
        z = [reduce(x[j] * y[j], square, base.w, base.u[j]) for j in channels]
        yield "Z", z
        gamma = [reduce(z[j] * base.inverses[j], square, base.w, base.u[j]) for j in channels]
        yield "G", gamma
        alpha = rns.alpha(gamma)
        yield "alpha", alpha
        sums = [0] * base.n
        for name, added in p.sums:
            sums = [s + sum(gamma[i] * k.rows[i][j] for i in added) for j, s in enumerate(sums)]
            yield name, sums
        v = [reduce(s + k.al[alpha][j], p.sum_bound, base.w, base.u[j]) for j, s in zip(channels, sums, strict=True)]
        yield "V", form.pack(v)

    def component(self, *, scaled: bool = False) -> Multiplier:
        return (Parallel if self.params.form in STAGES else Sequential)(
            self.params, self.schedule, scaled, period=self.period
        )

    def details(self) -> list[tuple[str, str]]:
        bits = self.rns.v_max.bit_length()
        return [
            ("alpha", self.alpha_shown),
            ("result V", f"at most {bits} bits, below {float(self.bounds[2]):.6g} p; not reduced"),
        ]


# ---------------------------------------------------------------------------------------------- machines


def _residues(m: Module, a: list[Value], b: list[Any], base: Base, name: str) -> list[Value]:
    """a_j b_j mod m_j in every channel, combinational."""
    w = base.w
    out = []
    for j in range(base.n):
        full = Signal(2 * w, name=f"{name}_product{j}")
        m.d.comb += full.eq(a[j] * b[j])
        out.append(rtl_fold.reduce(m, full, 1 << 2 * w, w, base.u[j], name=f"{name}{j}"))
    return out


def _chains(m: Module, terms: list[tuple[Value, Any]], w: int, name: str) -> list[Value]:
    """Sums of products of w-bit operands in chains of CHAIN."""
    top = ((1 << w) - 1) ** 2
    sums = []
    for i in range(0, len(terms), CHAIN):
        previous: Value = Const(0, 1)
        for k, (a, b) in enumerate(terms[i : i + CHAIN]):
            partial = Signal((top * (k + 1)).bit_length(), name=f"{name}_{i + k}")
            m.d.comb += partial.eq(a * b + previous)
            previous = partial
        sums.append(previous)
    return sums


def _tree(values: list[Value]) -> Value:
    """Balanced sum."""
    while len(values) > 1:
        values = [sum(values[i + 1 : i + 2], values[i]) for i in range(0, len(values), 2)]
    return values[0]


def _alpha(rns: SumOfResidues, gamma: list[Value]) -> Value:
    """alpha from the top bits, combinational."""
    w = rns.base.w
    return _tree([g[w - rns.q :] for g in gamma] + [Const(rns.d)])[rns.q :]


class Parallel(SumOfResiduesMachine):
    """MM_PA: N x N products side by side. Latency 1 (combinational) or 3 (pipelined), one product every cycle.

    All stages advance together, whenever the last result is absent or taken.
    """

    _params: Params

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        p = self._params
        base, rns = p.base, p.rns
        n, w = base.n, base.w
        rows = self._constants.rows
        staged = p.form == "pipelined"
        advance = Signal()
        m.d.comb += [advance.eq(~self.o_valid | self.o_ready), self.i_ready.eq(advance)]
        valid: Value = self.i_valid

        def stage(values: list[Value], names: str) -> list[Value]:
            """A pipeline register, or nothing in the combinational form."""
            nonlocal valid
            if not staged:
                return values
            token = Signal(name=f"{names}_valid")
            registers = [Signal(len(v), name=f"{names}{j}", reset_less=True) for j, v in enumerate(values)]
            with m.If(advance):
                m.d.sync += [token.eq(valid), *(r.eq(v) for r, v in zip(registers, values, strict=True))]
            valid = token
            return list(registers)

        x = [self.i_a.word_select(j, w) for j in range(n)]
        y = [self.i_b.word_select(j, w) for j in range(n)]
        z = _residues(m, x, y, base, "Z")
        gamma = stage(_residues(m, z, [Const(k, w) for k in base.inverses], base, "G"), "gamma")
        if staged:
            self.probes.append(("G", list(gamma), 1))
        alpha = _alpha(rns, gamma)
        sums = []
        for j in range(n):
            terms = [(gamma[i], Const(rows[i][j], w)) for i in range(n)]
            sums.append(_tree(_chains(m, terms, w, f"S{j}"))[: rtl_fold.bits(p.sum_bound)])
        *sums, alpha = stage([*sums, alpha], "S")
        if staged:
            self.probes.append(("S", list(sums), 2))
            self.probes.append(("alpha", alpha, 2))
        words = []
        for j in range(n):
            total = Signal(rtl_fold.bits(p.sum_bound), name=f"total{j}")
            m.d.comb += total.eq(sums[j] + self._looked_up(m, alpha, j))
            words.append(rtl_fold.reduce(m, total, p.sum_bound, w, base.u[j], name=f"V{j}"))
        with m.If(advance):
            m.d.sync += [self.o_valid.eq(valid), self.o_r.eq(Cat(*words))]
        self.probes.append(("V", self.o_r, self._plan["V"].end))
        return m


class Sequential(SumOfResiduesMachine):
    """MM_SPA: ``macs`` multiplier-accumulators a channel; the next product starts while this one adds up.

    Latency ceil(N / macs) + 3, interval ceil(N / macs).
    """

    _params: Params

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        p, plan = self._params, self._plan
        base, rns = p.base, p.rns
        n, w = base.n, base.w
        rows = self._constants.rows
        period = Period(m, self, plan.interval, plan["V"].start)

        x = [self.i_a.word_select(j, w) for j in range(n)]
        y = [self.i_b.word_select(j, w) for j in range(n)]
        z = [Signal(w, name=f"z{j}", reset_less=True) for j in range(n)]
        m.d.sync += [r.eq(v) for r, v in zip(z, _residues(m, x, y, base, "Z"), strict=True)]
        gamma = [Signal(w, name=f"gamma{j}", reset_less=True) for j in range(n)]
        g = _residues(m, z, [Const(k, w) for k in base.inverses], base, "G")
        with m.If(period.strobe("gamma_now", plan["G"].start)):
            m.d.sync += [r.eq(v) for r, v in zip(gamma, g, strict=True)]
        alpha = Signal(range(max(2, rns.alpha_max + 1)), reset_less=True)
        with m.If(period.strobe("alpha_now", plan["alpha"].start)):
            m.d.sync += alpha.eq(_alpha(rns, gamma))

        starts = [plan[name].start % plan.interval for name, _ in p.sums]
        operands = [Signal(w, name=f"operand{s}") for s in range(p.macs)]
        with m.Switch(period.signal):
            for r, start in enumerate(starts):
                with m.Case(start):
                    for s in range(p.macs):
                        if r * p.macs + s < n:
                            m.d.comb += operands[s].eq(gamma[r * p.macs + s])
        first = period.strobe("first", starts[0])
        last = [Signal(rtl_fold.bits(p.sum_bound), name=f"sum{j}", reset_less=True) for j in range(n)]
        words = []
        for j in range(n):
            constants = [Signal(w, name=f"row{j}_{s}") for s in range(p.macs)]
            with m.Switch(period.signal):
                for r, start in enumerate(starts):
                    with m.Case(start):
                        for s in range(p.macs):
                            if r * p.macs + s < n:
                                m.d.comb += constants[s].eq(rows[r * p.macs + s][j])
            kept = Signal(len(last[j]), name=f"kept{j}")
            m.d.comb += kept.eq(last[j] & ~first.replicate(len(last[j])))
            partial = _tree(_chains(m, list(zip(operands, constants, strict=True)), w, f"S{j}"))
            m.d.sync += last[j].eq(kept + partial)
            total = Signal(rtl_fold.bits(p.sum_bound), name=f"total{j}")
            m.d.comb += total.eq(last[j] + self._looked_up(m, alpha, j))
            words.append(rtl_fold.reduce(m, total, p.sum_bound, w, base.u[j], name=f"V{j}"))
        self.probes = [
            ("Z", list(z), plan["Z"].end),
            ("G", list(gamma), plan["G"].end),
            ("alpha", alpha, plan["alpha"].end),
            *((name, list(last), plan[name].end) for name, _ in p.sums),
            ("V", self.o_r, plan["V"].end),
        ]
        period.finish(Cat(*words))
        return m


# ---------------------------------------------------------------------------------------------- designs


def closed_base(p: int, n: int, channels: int) -> SumOfResidues:
    """At least ``channels`` moduli 2^n - u, as many as the loop V <- V V needs, with the least q.

    Raises ValueError when the moduli run out, or when they are too far from 2^n for alpha to be exact.
    """
    taken: list[int] = []
    for modulus in pseudo_mersenne(n):
        taken.append(modulus)
        if len(taken) < max(channels, 2):
            continue
        base = Base(n, tuple(taken))
        if base.M.bit_length() <= 2 * p.bit_length():
            continue
        if alpha_offset(base, n, lazy=True) >= 1 << n:
            raise ValueError(f"alpha is not exact over {base.n} moduli of {n} bits (u up to {max(base.u)})")
        for q in range(1, n + 1):
            d = alpha_offset(base, q, lazy=True)
            if d < 1 << q:
                rns = SumOfResidues(p, base, q, d, 1, 0, False, True)
                if rns.v_max**2 < alpha_limit(base, q, d):
                    return rns
    raise ValueError(f"only {len(taken)} moduli of {n} bits are coprime, more are needed to close the loop")


def constants(p: int, n: int, channels: int) -> SumOfResidues:
    """The channels of ``n`` bits, 0 for the least from 14 on that serves. Raises ValueError where none serve."""
    reason = ""
    for width in (n,) if n else range(14, 18):
        try:
            return closed_base(p, width, channels if p.bit_length() > FEW else 2)
        except ValueError as error:
            reason = reason or str(error)
    raise ValueError(reason)


def _solver(form: str) -> Any:
    def fit(p: int, *, n: int, channels: int, macs: int = 1) -> SorOriginal:
        rns = constants(p, n, channels)
        macs = min(macs, rns.base.n // 2)  # small moduli have few channels
        settings = {"n": rns.base.w, "channels": channels} | ({"macs": macs} if form == "sequential" else {})
        return SorOriginal(Params(rns, form, macs), settings)

    return fit


_SETTINGS = (
    Setting(
        "n", int, 0, "bits of a channel, 0 for the least from 14 on that serves", least=0, most=17,
        depends="of fewer than 10 bits there are too few moduli", limits=lambda p, settings: (10, 17),
    ),
    Setting(
        "channels", int, 40, f"at least that many channels (for moduli above {FEW} bits; fewer below)",
        least=2, most=CHANNELS_MAX,
        smaller="lower",
    ),
)  # fmt: skip


def _design(name: str, paper: str, title: str, form: str, section: str, *more: Setting) -> Design:
    return Design(
        name=name, page="sor-original", title=title, paper=paper, settings=(*_SETTINGS, *more), solve=_solver(form),
        source=Source(
            "S. Asif, Y. Kong",
            "Highly Parallel Modular Multiplier for Elliptic Curve Cryptography in Residue Number System",
            "Circuits Syst. Signal Process. 36", 2017, section,
        ),
        needs="any odd modulus; narrow channels, so that the unreduced result squared stays below the range",
    )  # fmt: skip


DESIGNS = (
    _design("mm-pa-n", "MM_PA_N", "Original SOR, all products in one cycle", "combinational", "MM_PA, one cycle"),
    _design("mm-pa-p", "MM_PA_P", "Original SOR, all products in parallel, pipelined", "pipelined", "MM_PA, pipelined"),
    _design(
        "mm-spa", "MM_SPA", "Original SOR, a few multiplier-accumulators a channel", "sequential", "MM_SPA",
        Setting(
            "macs", int, 4, "multiplier-accumulators a channel, at most half the channels",
            least=1, most=CHANNELS_MAX // 2, depends="at most half the channels",
            limits=lambda p, settings: (1, constants(p, settings["n"], settings["channels"]).base.n // 2),
            smaller="lower",
        ),
    ),
)  # fmt: skip
