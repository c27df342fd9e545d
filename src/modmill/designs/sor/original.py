# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The original sum of residues, without kappa, and its parallel and sequential architectures.

Source:  B. Phillips, Y. Kong, Z. Lim: Highly Parallel Modular Multiplication in the Residue Number System Using Sum of
         Residues Reduction. AAECC 21, 2010 (algorithm).
         S. Asif, Y. Kong: Highly Parallel Modular Multiplier for Elliptic Curve Cryptography in Residue Number
         System. Circuits Syst. Signal Process. 36, 2017 (MM_PA).
         S. Asif: High-Speed Low-Power Modular Arithmetic for Elliptic Curve Cryptosystems Based on the Residue Number
         System. PhD thesis, Macquarie University, 2016 (MM_SPA).
         M. A. Mehrabi: Improved Sum of Residues Modular Multiplication Algorithm. Cryptography 3(2):14, 2019, equations
         (14) to (18) and Table 5, where the paper compares itself with both.
Formula: Z = X Y,  gamma_i = Z M_i^-1 mod m_i,  V = sum gamma_i <M_i>_p + <-alpha M>_p
Range:   X Y < (1 - d/2^q) M gives V = X Y (mod p), V <= sum gamma_max <M_i>_p + max <-alpha M>_p, up to about
         N 2^n p. Results can be operands again if V^2 is below the range: with forty 14-bit channels this holds for
         256-bit moduli. (The SOR paper, Section 3.1, excludes two products in a row. This is true for wide channels.)

Deviations from the papers, which are known here only by their figures in the SOR paper:
- Channels are reduced by folding, not by Barrett's method. This saves the DSP blocks of the reductions.
- The forty moduli are 2^14 - u; the papers' moduli are not known.
- MM_SPA has four multiplier-accumulators for each channel, derived from its printed latency: 10 cycles for 40 terms, 13
  in all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import add, mul
from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value

from modmill.design import Cost, Design, Setting, Source
from modmill.designs.sor import family
from modmill.designs.sor.family import Constants, SumOfResiduesDesign, SumOfResiduesMachine
from modmill.interface import Multiplier
from modmill.numbers.folding import reduce
from modmill.numbers.rns.residues import Base, growing_bases, pseudo_mersenne
from modmill.numbers.rns.sum_of_residues import SumOfResidues, alpha_limit, alpha_offset
from modmill.rtl import fold as rtl_fold
from modmill.rtl.periodic import Period
from modmill.schedule import Schedule, Step

STAGES = {"combinational": 1, "pipelined": 3}
"""Latency of the two forms of MM_PA, in cycles."""
FEW = 200
"""Largest length of a modulus, in bits, for which the setting ``channels`` is ignored and the fewest are taken."""
CHANNELS_MAX = 172
"""Most channels: with more 17-bit channels alpha is not exact."""
CHAIN = 4
"""Products that are added in one chain, which maps to the adders of DSP blocks."""


@dataclass(frozen=True)
class Params(family.Params):
    """``rns`` has the constants (kappa is not used). ``form``: combinational, pipelined or sequential; ``macs``: number
    of multiplier-accumulators of each channel in the sequential form."""

    form: str
    macs: int

    @property
    def sums(self) -> list[tuple[str, range]]:
        """(name, channels) of each sum S: it adds gamma_i <M_i>_p of these channels to the sum before."""
        if self.form in STAGES:
            return [("S", range(self.base.n))]
        starts = range(0, self.base.n, self.macs)
        return [(f"S{k}", range(i, min(i + self.macs, self.base.n))) for k, i in enumerate(starts, 1)]

    @property
    def sum_bound(self) -> int:
        """Exclusive bound of N products and one entry of alpha's table, in any channel."""
        top = (1 << self.base.w) - 1
        return self.base.n * top * top + top + 1


def schedule(p: Params) -> Schedule:
    """The steps of one product: one cycle (MM_PA_N), three cycles (MM_PA_P), or ceil(N / macs) + 3 (MM_SPA): Z, gamma,
    the accumulations, the final fold."""
    if p.form == "combinational":
        return Schedule((Step("V", "array", 0, 1),), 1)
    if p.form == "pipelined":
        return Schedule((
            Step("G", "front", 0, 1), Step("S", "array", 1, 1, ("G",)), Step("alpha", "adder", 1, 1, ("G",)),
            Step("V", "folds", 2, 1, ("S", "alpha")),
        ), 1)  # fmt: skip
    names, rounds = ["G", *(name for name, _ in p.sums)], len(p.sums)
    steps = [Step("Z", "zmul", 0, 1), Step("G", "gmul", 1, 1, ("Z",))]
    steps += [Step(name, "macs", 2 + r, 1, (names[r],)) for r, name in enumerate(names[1:])]
    steps.append(Step("alpha", "adder", 1 + rounds, 1, ("G",)))
    steps.append(Step("V", "folds", 2 + rounds, 1, ("alpha", names[-1])))
    return Schedule(tuple(steps), interval=max(2, rounds))


class SorOriginal(SumOfResiduesDesign):
    """The original sum of residues for one modulus."""

    params: Params

    @property
    def largest_result(self) -> int:
        return self.rns.v_max

    @cached_property
    def schedule(self) -> Schedule:
        return schedule(self.params)

    @cached_property
    def cost(self) -> Cost:
        """DSP blocks: N (or ``macs``) + 2 multipliers for each of N channels. Constants of each channel: one inverse, N
        rows and alpha_max rows of alpha."""
        p = self.params
        n, w = p.base.n, p.base.w
        return Cost(
            dsp=n * ((n if p.form in STAGES else p.macs) + 2),
            memory_bits=n * (n + 1 + p.rns.alpha_max) * w,
            multiplications=n * (n + 2),
        )

    def trace(self, a: int, b: int, *, scaled: bool = False) -> Iterator[tuple[str, Any]]:
        p, base = self.params, self.params.base
        k = Constants.of(p, scaled)
        form = self.representation

        def residues(numbers: Iterable[int], bound: int) -> list[int]:
            return [reduce(t, bound, base.w, u) for t, u in zip(numbers, base.u, strict=True)]

        z = residues(map(mul, form.unpack(a), form.unpack(b)), 1 << 2 * base.w)
        yield "Z", z
        gamma = residues(map(mul, z, base.inverses), 1 << 2 * base.w)
        yield "G", gamma
        alpha = self.rns.alpha(gamma)
        yield "alpha", alpha
        sums = [0] * base.n
        for name, added in p.sums:
            sums = [s + sum(gamma[i] * k.rows[i][j] for i in added) for j, s in enumerate(sums)]
            yield name, sums
        yield "V", form.pack(residues(map(add, sums, k.al[alpha]), p.sum_bound))

    def component(self, *, scaled: bool = False) -> Multiplier:
        machine = Parallel if self.params.form in STAGES else Sequential
        return machine(self.params, self.schedule, scaled, period=self.period)

    def details(self) -> list[tuple[str, str]]:
        bits = self.rns.v_max.bit_length()
        return [
            ("alpha", self.alpha_shown),
            ("result V", f"at most {bits} bits, below {float(self.bounds[2]):.6g} p; not reduced"),
        ]


def _residues(m: Module, a: list[Value], b: list[Any], base: Base, name: str) -> list[Value]:
    """a_j b_j mod m_j in every channel, combinational."""
    w, out = base.w, []
    for j, u in enumerate(base.u):
        full = Signal(2 * w, name=f"{name}_product{j}")
        m.d.comb += full.eq(a[j] * b[j])
        out.append(rtl_fold.reduce(m, full, 1 << 2 * w, w, u, name=f"{name}{j}"))
    return out


def _chains(m: Module, terms: list[tuple[Value, Any]], w: int, name: str) -> list[Value]:
    """Sums of CHAIN products of w-bit operands each, combinational; the last may have fewer."""
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
    """The sum of ``values``, as a balanced tree of adders."""
    while len(values) > 1:
        values = [sum(values[i + 1 : i + 2], values[i]) for i in range(0, len(values), 2)]
    return values[0]


def _alpha(rns: SumOfResidues, gamma: list[Value]) -> Value:
    """alpha from the top bits, combinational."""
    w = rns.base.w
    return _tree([g[w - rns.q :] for g in gamma] + [Const(rns.d)])[rns.q :]


class Parallel(SumOfResiduesMachine):
    """MM_PA: N x N multipliers in parallel. Latency 1 (combinational) or 3 (pipelined), interval 1.

    All stages advance together, in each cycle in which the output is empty or its result is taken.
    """

    _params: Params

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        p, base, rows = self._params, self._params.base, self._constants.rows
        n, w = base.n, base.w
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
            return registers

        x = [self.i_a.word_select(j, w) for j in range(n)]
        y = [self.i_b.word_select(j, w) for j in range(n)]
        z = _residues(m, x, y, base, "Z")
        gamma = stage(_residues(m, z, [Const(k, w) for k in base.inverses], base, "G"), "gamma")
        alpha = _alpha(p.rns, gamma)
        sums = []
        for j in range(n):
            terms = [(g, Const(row[j], w)) for g, row in zip(gamma, rows, strict=True)]
            sums.append(_tree(_chains(m, terms, w, f"S{j}"))[: rtl_fold.bits(p.sum_bound)])
        *sums, alpha = stage([*sums, alpha], "S")
        words = []
        for j in range(n):
            total = Signal(rtl_fold.bits(p.sum_bound), name=f"total{j}")
            m.d.comb += total.eq(sums[j] + self._looked_up(m, alpha, j))
            words.append(rtl_fold.reduce(m, total, p.sum_bound, w, base.u[j], name=f"V{j}"))
        with m.If(advance):
            m.d.sync += [self.o_valid.eq(valid), self.o_r.eq(Cat(*words))]
        registers = {"G": gamma, "S": sums, "alpha": alpha, "V": self.o_r}
        self.probes = [(step.name, registers[step.name], step.end) for step in self._plan.steps]
        return m


class Sequential(SumOfResiduesMachine):
    """MM_SPA: ``macs`` multiplier-accumulators for each channel. The next product starts during the accumulation.

    Latency ceil(N / macs) + 3, interval ceil(N / macs), at least 2.
    """

    _params: Params

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        p, plan, base, rows = self._params, self._plan, self._params.base, self._constants.rows
        n, w = base.n, base.w
        period = Period(m, self, plan.interval, plan["V"].start)

        x = [self.i_a.word_select(j, w) for j in range(n)]
        y = [self.i_b.word_select(j, w) for j in range(n)]
        z = [Signal(w, name=f"z{j}", reset_less=True) for j in range(n)]
        m.d.sync += [r.eq(v) for r, v in zip(z, _residues(m, x, y, base, "Z"), strict=True)]
        gamma = [Signal(w, name=f"gamma{j}", reset_less=True) for j in range(n)]
        g = _residues(m, z, [Const(k, w) for k in base.inverses], base, "G")
        with m.If(period.strobe("gamma_now", plan["G"].start)):
            m.d.sync += [r.eq(v) for r, v in zip(gamma, g, strict=True)]
        alpha = Signal(range(max(2, p.rns.alpha_max + 1)), reset_less=True)
        with m.If(period.strobe("alpha_now", plan["alpha"].start)):
            m.d.sync += alpha.eq(_alpha(p.rns, gamma))

        starts = [plan[name].start % plan.interval for name, _ in p.sums]
        operands = [Signal(w, name=f"operand{s}") for s in range(p.macs)]
        with m.Switch(period.signal):
            for start, (_, added) in zip(starts, p.sums, strict=True):
                with m.Case(start):
                    m.d.comb += [operands[s].eq(gamma[i]) for s, i in enumerate(added)]
        first = period.strobe("first", starts[0])
        last = [Signal(rtl_fold.bits(p.sum_bound), name=f"sum{j}", reset_less=True) for j in range(n)]
        words = []
        for j in range(n):
            constants = [Signal(w, name=f"row{j}_{s}") for s in range(p.macs)]
            with m.Switch(period.signal):
                for start, (_, added) in zip(starts, p.sums, strict=True):
                    with m.Case(start):
                        m.d.comb += [constants[s].eq(rows[i][j]) for s, i in enumerate(added)]
            kept = Signal(len(last[j]), name=f"kept{j}")
            m.d.comb += kept.eq(last[j] & ~first.replicate(len(last[j])))
            partial = _tree(_chains(m, list(zip(operands, constants, strict=True)), w, f"S{j}"))
            m.d.sync += last[j].eq(kept + partial)
            total = Signal(rtl_fold.bits(p.sum_bound), name=f"total{j}")
            m.d.comb += total.eq(last[j] + self._looked_up(m, alpha, j))
            words.append(rtl_fold.reduce(m, total, p.sum_bound, w, base.u[j], name=f"V{j}"))
        registers = {"Z": z, "G": gamma, "alpha": alpha, "V": self.o_r}
        self.probes = [(step.name, registers.get(step.name, last), step.end) for step in plan.steps]
        period.finish(Cat(*words))
        return m


def closed_base(p: int, n: int, channels: int) -> SumOfResidues:
    """The constants over at least ``channels`` moduli 2^n - u, as many as needed so that results can be operands again,
    with the least q. Raises ValueError if there are too few coprime moduli, or if they are too far from 2^n for alpha
    to be exact."""
    enough = (1 << 2 * p.bit_length()) - 1
    for base in growing_bases(n, pseudo_mersenne(n), enough, least=max(channels, 2), count=1 << n):
        if alpha_offset(base, n, lazy=True) >= 1 << n:
            raise ValueError(f"alpha is not exact over {base.n} moduli of {n} bits (u up to {max(base.u)})")
        for q in range(1, n + 1):
            d = alpha_offset(base, q, lazy=True)
            if d < 1 << q:
                rns = SumOfResidues(p, base, q, d, 1, 0, False, True)
                if rns.v_max**2 < alpha_limit(base, q, d):
                    return rns
    raise ValueError(f"there are only {base.n} coprime moduli of {n} bits; results need more to be operands again")


def constants(p: int, n: int, channels: int) -> SumOfResidues:
    """The constants over channels of ``n`` bits; 0: the narrowest from 14 bits on that suffices. Raises ValueError,
    with the reason for the narrowest, if no width suffices."""
    reason = ""
    for width in (n,) if n else range(14, 18):
        try:
            return closed_base(p, width, channels if p.bit_length() > FEW else 2)
        except ValueError as error:
            reason = reason or str(error)
    raise ValueError(reason)


def fit(p: int, form: str, *, n: int, channels: int, macs: int = 1) -> SorOriginal:
    """The design for p in one of the forms of `Params`. Raises ValueError as `constants` does."""
    rns = constants(p, n, channels)
    macs = min(macs, rns.base.n // 2)  # a small modulus has few channels
    settings = {"n": rns.base.w, "channels": channels} | ({"macs": macs} if form == "sequential" else {})
    return SorOriginal(Params(rns, form, macs), settings)


_SETTINGS = (
    Setting(
        "n", int, 0, "bits of a channel, 0 for the fewest from 14 on that suffice", least=0, most=17,
        depends="there are too few moduli of less than 10 bits", limits=lambda p, settings: (10, 17),
    ),
    Setting(
        "channels", int, 40, f"least number of channels for moduli above {FEW} bits; ignored for shorter ones",
        least=2, most=CHANNELS_MAX, smaller="lower",
    ),
)  # fmt: skip


def _design(name: str, paper: str, title: str, form: str, section: str, *more: Setting) -> Design:
    return Design(
        name=name, page="sor-original", title=title, paper=paper, settings=(*_SETTINGS, *more),
        solve=lambda p, **settings: fit(p, form, **settings),
        source=Source(
            "S. Asif, Y. Kong",
            "Highly Parallel Modular Multiplier for Elliptic Curve Cryptography in Residue Number System",
            "Circuits Syst. Signal Process. 36", 2017, section,
        ),
        needs="any odd modulus; narrow channels, so that the square of an unreduced result is below the range",
    )  # fmt: skip


DESIGNS = (
    _design("mm-pa-n", "MM_PA_N", "Original SOR, all products in one cycle", "combinational", "MM_PA, one cycle"),
    _design("mm-pa-p", "MM_PA_P", "Original SOR, all products in parallel, pipelined", "pipelined", "MM_PA, pipelined"),
    _design(
        "mm-spa", "MM_SPA", "Original SOR, a few multiplier-accumulators for each channel", "sequential", "MM_SPA",
        Setting(
            "macs", int, 4, "multiplier-accumulators of each channel, at most half the number of channels",
            least=1, most=CHANNELS_MAX // 2, depends="at most half the number of channels",
            limits=lambda p, settings: (1, constants(p, settings["n"], settings["channels"]).base.n // 2),
            smaller="lower",
        ),
    ),
)  # fmt: skip
