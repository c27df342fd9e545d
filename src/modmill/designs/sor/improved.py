# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Improved sum of residues (SOR).

Source:  M. A. Mehrabi, Improved Sum of Residues Modular Multiplication Algorithm, Cryptography 3 (2019) 14,
         Algorithm 2, Figures 1 to 5 and A1 to A3.
Formula: Z = X Y,  gamma_i = Z M_i^-1 mod m_i,  z = sum gamma_i <M_i>_p + <-alpha M>_p - kappa p
Range:   X Y < (1 - d/2^q) M gives 0 <= z < beta p, beta exact (numbers.rns.sum_of_residues); z = X Y (mod p).

Deviations from the paper:
- z is not always below p: beta is 1.125... for secp256k1 (T = 72) and 1.25... for 2^255 - 19 (T = 71). Operands may
  be that large, so the loop closes; the binary form ends with the one subtraction that is needed.
- kappa's constants are floor(r_i 2^T / p) for any p, with an offset for alpha where beta < 2 needs it; the paper
  divides by 2^W, which fails for P-256 and all others that break its condition (22). A kappa wider than a channel is
  multiplied in two words (KP, KQ).
- Residues stay lazy, in [0, 2^n), so alpha may reach N and its table has rows 1 ... N.
- The first modulus is 2^n - 1, not t = 0 of 2^n - 2^t - 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from modmill.contract import Residues, Timing
from modmill.design import Cost, Design, Fitted, Multiplier, Setting, Source
from modmill.numbers.folding import reduce
from modmill.numbers.rns.edges import edge_operands
from modmill.numbers.rns.residues import Base, growing_bases, mersenne_like, pseudo_mersenne
from modmill.numbers.rns.sum_of_residues import SumOfResidues, alpha_offset, solve_over
from modmill.rtl import fold as rtl_fold
from modmill.rtl.convert import BinaryShell
from modmill.rtl.product import DSP18, DSP25, DspBlock, product
from modmill.schedule import Schedule, Step

SECP256K1 = 2**256 - 2**32 - 977
ED25519 = 2**255 - 19
PRINTED_T = {SECP256K1: 72, ED25519: 71}
"""T as printed after equation (24); everywhere else the solver's least T is taken."""

PRINTED_Q, PRINTED_D = 8, 16
"""q and 2^q Delta of Section 2.2, for the base of Table 1."""

MUL = 2
"""Cycles of one channel multiplication (Section 4)."""


# ---------------------------------------------------------------------------------------------- parameters


@dataclass(frozen=True)
class Params:
    """Parameters of one instance: ``k`` multiplier sets, pipelined or not, over ``rns.base``.

    ``block``: DSP block of the channel multipliers, ``kappa_block`` of kappa's.
    """

    rns: SumOfResidues
    k: int
    pipelined: bool
    block: DspBlock
    kappa_block: DspBlock

    @property
    def base(self) -> Base:
        """The channels."""
        return self.rns.base

    @property
    def words(self) -> int:
        """Channel-wide words of kappa."""
        return -(-self.rns.kappa_bits // self.base.w)

    @property
    def accumulate(self) -> int:
        """Cycles of one accumulation: one for two summands, two for more."""
        return 1 if self.k == 1 else 2


KINDS = {"2^n-2^t-1": mersenne_like, "2^n-u": pseudo_mersenne}


def choose_bases(p: int, n: int, kind: str, operand: Fraction) -> Iterator[Base]:
    """Bases that might serve products of operands below ``operand`` * p, shortest first.

    ``kind`` auto: 2^n - 2^t - 1 as long as there are enough of them, then 2^n - u.
    """
    enough = int((operand * p) ** 2)
    for name in KINDS if kind == "auto" else (kind,):
        try:
            yield from growing_bases(n, KINDS[name](n), enough)
            return
        except ValueError as error:
            reason = error
    raise reason


class SumOfResiduesDesign(Fitted):
    """What all sum-of-residues designs share: residues over one base, factor 1, conversions around the binary form."""

    rns: SumOfResidues
    period = 1
    """Operands are accepted every so many cycles."""

    @property
    def largest_result(self) -> int:
        """Largest value of a result."""
        return self.rns.z_max

    @property
    def factor(self) -> int:
        return 1

    @property
    def representation(self) -> Residues:
        return Residues(self.rns.base)

    @cached_property
    def bounds(self) -> tuple[Fraction, Fraction, Fraction]:
        return (
            Fraction(self.rns.operand_limit + 1, self.p),
            Fraction(self.rns.product_limit, self.p**2),
            Fraction(self.largest_result + 1, self.p),
        )

    def binary_component(self) -> Multiplier:
        native = self.component(scaled=True)
        return BinaryShell(native, self.rns.base, self.p, self.largest_result, self.binary_timing())

    def binary_timing(self) -> Timing:
        native = self.contract("native").timing
        return BinaryShell.timing(native, self.rns.base, self.p, self.largest_result, self.period)

    def corners(self) -> list[tuple[int, int]]:
        return [(self.representation.pack(x), self.representation.pack(y)) for x, y in edge_operands(self.rns)]


# ---------------------------------------------------------------------------------------------- schedule


class Kind(Enum):
    """What the units of the machine do, in the letters of Algorithm 2 and Figures A1 to A3."""

    PRODUCT = "Z = X Y"
    INVERSE = "G = gamma = Z M_i^-1"
    ALPHA = "alpha = floor((sum trunc(gamma_i) + d) / 2^q)"
    ALPHA_ROW = "AL = <-alpha M>_p, from a table; e_alpha for kappa"
    TERM = "L_i = gamma_i <M_i>_p"
    KAPPA_TERM = "K_i = gamma_i c_i"
    KAPPA_ROW = "KP, KQ = a word of kappa times -p"
    ADD = "A = A + ..."
    ADD_KAPPA = "K = K + ..."


@dataclass(frozen=True)
class Operation:
    """One operation of all channels. ``channels``: which gamma_i it takes; ``words``: which words of kappa;
    ``alpha``: whether an ADD takes AL."""

    kind: Kind
    channels: tuple[int, ...] = ()
    words: tuple[int, ...] = ()
    alpha: bool = False

    @property
    def name(self) -> str:
        """Its name in the paper's charts."""
        kappa = [f"K{'PQ'[word]}" for word in self.words]
        match self.kind:
            case Kind.PRODUCT | Kind.INVERSE | Kind.ALPHA | Kind.ALPHA_ROW:
                return self.kind.value.split(" ", 1)[0]
            case Kind.TERM | Kind.KAPPA_TERM:
                return f"{'L' if self.kind is Kind.TERM else 'K'}{self.channels[0] + 1}"
            case Kind.KAPPA_ROW:
                return kappa[0]
            case Kind.ADD:
                return "+".join(["A", *(["AL"] if self.alpha else []), *(f"L{i + 1}" for i in self.channels), *kappa])
            case _:
                return "+".join(["K", *(f"K{i + 1}" for i in self.channels)])

    @property
    def terms(self) -> int:
        """Summands of an ADD beside what is there."""
        return len(self.channels) + len(self.words) + self.alpha


def schedule(p: Params) -> Schedule:
    """Figures A1 (k = 1, not pipelined), A2 (k = 1, pipelined), A3 (k = 2), and every other number of sets.

    Length: 3N + 7, 2(N + 4), 2(ceil(N/k) + 5); one more multiplication where kappa has two words and k = 1.
    """
    n_channels, k, acc = p.base.n, p.k, p.accumulate
    steps: list[Step] = []

    def step(op: Operation, unit: str, start: int, cycles: int, *reads: Operation) -> Operation:
        steps.append(Step(op.name, unit, start, cycles, tuple(read.name for read in reads), does=op))
        return op

    z = step(Operation(Kind.PRODUCT), "mul1", 0, MUL)
    gamma = step(Operation(Kind.INVERSE), "mul1", MUL, MUL, z)
    alpha = step(Operation(Kind.ALPHA), "adder", 2 * MUL, 1, gamma)
    row = step(Operation(Kind.ALPHA_ROW), "rom", 2 * MUL + 1, 1, alpha)
    stride, start = MUL if p.pipelined else MUL + acc, 2 * MUL
    total: tuple[Operation, ...] = ()
    kappa = row
    for r, first in enumerate(range(0, n_channels, k)):
        channels = tuple(range(first, min(first + k, n_channels)))
        start = 2 * MUL + r * stride
        terms, kappa_terms = [], []
        for s, i in enumerate(channels, 1):
            terms.append(step(Operation(Kind.TERM, (i,)), f"mul{s}", start, MUL, gamma))
            kappa_terms.append(step(Operation(Kind.KAPPA_TERM, (i,)), f"kmul{s}", start, MUL, gamma))
        total = (step(Operation(Kind.ADD, channels), "acc", start + MUL, acc, *terms, *total),)
        kappa = step(Operation(Kind.ADD_KAPPA, channels), "kacc", start + MUL, acc, *kappa_terms, kappa)
    ready = start + MUL + acc
    rows = [Operation(Kind.KAPPA_ROW, words=(word,)) for word in range(p.words)]
    for word, op in enumerate(rows):
        step(op, *(("mul1", ready + word * MUL) if k == 1 else (f"mul{k - word}", ready)), MUL, kappa)
    if k > 1:
        step(Operation(Kind.ADD, words=tuple(range(p.words)), alpha=True), "acc", ready + MUL, acc, *rows, row, *total)
    else:
        last = step(Operation(Kind.ADD, alpha=True), "acc", ready, 1, *total, row)
        for word, op in enumerate(rows):
            last = step(Operation(Kind.ADD, words=(word,)), "acc", ready + (word + 1) * MUL, 1, op, last)
    return Schedule(tuple(steps), interval=max(s.end for s in steps))


# ---------------------------------------------------------------------------------------------- algorithm


@dataclass(frozen=True)
class Constants:
    """Tables of Algorithm 2, each row over the channels j; ``scaled`` ones carry M_j^-1 for conversion to binary."""

    inverses: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]
    al: tuple[tuple[int, ...], ...]
    minus_p: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, p: Params, scaled: bool = False) -> Constants:
        """rows[i][j] = <<M_i>_p>_mj, al[a][j] = <<-a M>_p>_mj, minus_p[word][j] = <-p 2^(n word)>_mj."""
        base = p.base
        return cls(
            inverses=base.inverses,
            rows=tuple(base.row(r, scaled=scaled) for r in p.rns.r),
            al=tuple(base.row(v, scaled=scaled) for v in p.rns.v),
            minus_p=tuple(base.row(-p.rns.p << (base.w * word), scaled=scaled) for word in range(p.words)),
        )


class Sor(SumOfResiduesDesign):
    """Improved SOR for one modulus."""

    def __init__(self, params: Params, settings: dict[str, Any]) -> None:
        self.params = params
        self.rns = params.rns
        self.p = params.rns.p
        self.settings = settings

    @cached_property
    def schedule(self) -> Schedule:
        return schedule(self.params)

    @cached_property
    def cost(self) -> Cost:
        """DSP blocks: k sets of N channel multipliers and k kappa multipliers. Constants: N((2N + 2)n + n'), as
        printed in Section 4: per channel one inverse, N rows, N rows of alpha, -p, and per row n' bits for kappa."""
        p = self.params
        n, w = p.base.n, p.base.w
        return Cost(
            dsp=p.k * (n * p.block.tiles(w, w) + p.kappa_block.tiles(w, p.rns.constant_bits)),
            memory_bits=n * ((n + p.rns.alpha_max + 1 + p.words) * w + p.rns.constant_bits),
            multiplications=n * (2 + n + p.words),
        )

    def trace(self, a: int, b: int, *, scaled: bool = False) -> Iterator[tuple[str, Any]]:
        p, base, rns = self.params, self.params.base, self.params.rns
        k = Constants.of(p, scaled)
        form = self.representation
        x, y = form.unpack(a), form.unpack(b)
        square = 1 << 2 * base.w

        def mod(j: int, t: int, bound: int) -> int:
            return reduce(t, bound, base.w, base.u[j])

        channels, mask = range(base.n), (1 << base.w) - 1
        z, gamma, total, alpha, kappa = [0] * base.n, [0] * base.n, [0] * base.n, 0, 0

        def times(word: int, constants: tuple[int, ...]) -> list[int]:
            return [mod(j, word * constants[j], square) for j in channels]

        def added(op: Operation) -> list[int]:
            terms = [times(gamma[i], k.rows[i]) for i in op.channels]
            terms += [times(kappa >> (base.w * word) & mask, k.minus_p[word]) for word in op.words]
            terms += [list(k.al[alpha])] if op.alpha else []
            return [mod(j, total[j] + sum(t[j] for t in terms), (op.terms + 1) << base.w) for j in channels]

        kappa_sum = 0
        for op in (step.does for step in self.schedule.steps):
            match op.kind:
                case Kind.TERM:
                    yield op.name, times(gamma[op.channels[0]], k.rows[op.channels[0]])
                case Kind.KAPPA_TERM:
                    yield op.name, (gamma[op.channels[0]] >> rns.s << rns.s) * rns.c[op.channels[0]]
                case Kind.KAPPA_ROW:
                    yield op.name, times(kappa >> (base.w * op.words[0]) & mask, k.minus_p[op.words[0]])
                case Kind.PRODUCT:
                    z = [mod(j, x[j] * y[j], square) for j in channels]
                    yield op.name, z
                case Kind.INVERSE:
                    gamma = [mod(j, z[j] * k.inverses[j], square) for j in channels]
                    yield op.name, gamma
                case Kind.ALPHA:
                    alpha = rns.alpha(gamma)
                    yield op.name, alpha
                case Kind.ALPHA_ROW:
                    kappa_sum = rns.e[alpha]
                    yield op.name, kappa_sum
                case Kind.ADD_KAPPA:
                    kappa_sum += sum((gamma[i] >> rns.s << rns.s) * rns.c[i] for i in op.channels)
                    yield op.name, kappa_sum
                    if op.channels[-1] == base.n - 1:
                        kappa = kappa_sum >> rns.T
                        yield "kappa", kappa
                case Kind.ADD:
                    total = added(op)
                    yield op.name, total
        yield "z", form.pack(total)

    # ------------------------------------------------------------------------------------------ machine

    def component(self, *, scaled: bool = False) -> Multiplier:
        return Machine(self, scaled)

    # ------------------------------------------------------------------------------------------ showing

    def facts(self) -> list[tuple[str, str]]:
        p, rns = self.params, self.params.rns
        return [
            ("base", f"N = {p.base.n} moduli 2^{p.base.w} - u, u = {', '.join(map(str, p.base.u))}"),
            ("range M", f"{p.base.M.bit_length()} bits"),
            ("multiplier sets k", f"{p.k}, {'pipelined' if p.pipelined else 'not pipelined'}"),
            (
                "alpha",
                f"q = {rns.q}, offset d = {rns.d} / 2^{rns.q}, least that is exact: "
                f"{alpha_offset(p.base, rns.q, rns.lazy)}; alpha <= {rns.alpha_max}",
            ),
            (
                "kappa",
                f"T = {rns.T}, constants of {rns.constant_bits} bits, "
                f"{'with' if rns.offset else 'without'} offset; {rns.kappa_bits} bits, {p.words} word(s)",
            ),
            (
                "result z < beta p",
                f"beta = {rns.beta} ~ {float(rns.beta):.9f}"
                if len(str(rns.beta)) < 60
                else f"beta ~ {float(rns.beta):.9f} (exact fraction in contract.json)",
            ),
            ("operands", f"below {float(self.bounds[0]):.6g} p each"),
        ]


class Machine(Multiplier):
    """k sets of N channel multipliers, an accumulator in each channel, kappa's multipliers, driven by the schedule.

    A multiplication takes two cycles: rows of DSP tiles into a register, then the sum of the rows and the folds.
    Handshake: operands are accepted in cycle 0 while the previous result is being taken or was taken
    (i_ready depends on o_ready); the result stays in the accumulators until it is taken.
    Latency and interval: the length of the schedule.
    """

    def __init__(self, fitted: Sor, scaled: bool) -> None:
        self._fitted = fitted
        self._scaled = scaled
        width = fitted.representation.width
        super().__init__(width, width, width)

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        p, plan = self._fitted.params, self._fitted.schedule
        base, rns = p.base, p.rns
        n, w = base.n, base.w
        k = Constants.of(p, self._scaled)
        last = plan.latency - 1

        # ---- control: a cycle counter, 0 while idle and in the cycle of acceptance
        cycle = Signal(range(plan.latency + 1))
        following = Signal.like(cycle)
        m.d.comb += self.i_ready.eq((cycle == 0) & (~self.o_valid | self.o_ready))
        accept = self.i_valid & self.i_ready
        with m.If(cycle == 0):
            m.d.comb += following.eq(Mux(accept, 1, 0))
        with m.Elif(cycle == last):
            m.d.comb += following.eq(0)
        with m.Else():
            m.d.comb += following.eq(cycle + 1)
        m.d.sync += cycle.eq(following)
        with m.If(cycle == last):
            m.d.sync += self.o_valid.eq(1)
        with m.Elif(self.o_ready):
            m.d.sync += self.o_valid.eq(0)

        def in_cycles(*cycles: int) -> Value:
            """High in these cycles; registered, one flip-flop each."""
            strobe = Signal(name="in_" + "_".join(map(str, cycles)))
            hits = [following == c for c in cycles]
            m.d.sync += strobe.eq(Cat(*hits).any())
            return strobe

        # ---- channel multipliers
        gamma = [Signal(w, name=f"gamma{j}", reset_less=True) for j in range(n)]
        kappa = Signal(p.words * w, name="kappa")
        products: dict[str, list[Signal]] = {}
        for s in range(p.k):
            unit = f"mul{s + 1}"
            steps = list(plan.on(unit))
            number = Signal(range(max(2, len(steps))), name=f"{unit}_step")
            with m.Switch(following):
                for i, step in enumerate(steps):
                    with m.Case(step.start):
                        m.d.sync += number.eq(i)
            done = in_cycles(*(step.end - 1 for step in steps))
            rows = [step.does.channels[0] if step.does.kind is Kind.TERM else None for step in steps]
            factor = Signal(w, name=f"{unit}_gamma")
            with m.Switch(number):
                for i, row in enumerate(rows):
                    if row is not None:
                        with m.Case(i):
                            m.d.comb += factor.eq(gamma[row])
            q = [Signal(w, name=f"{unit}_q{j}", reset_less=True) for j in range(n)]
            for j in range(n):
                a, b = Signal(w, name=f"{unit}_a{j}"), Signal(w, name=f"{unit}_b{j}")
                m.d.comb += a.eq(factor)
                with m.Switch(number):
                    for i, step in enumerate(steps):
                        with m.Case(i):
                            row = rows[i]
                            match step.does.kind:
                                case Kind.PRODUCT:
                                    m.d.comb += [a.eq(self.i_a.word_select(j, w)), b.eq(self.i_b.word_select(j, w))]
                                case Kind.INVERSE:
                                    m.d.comb += [a.eq(q[j]), b.eq(k.inverses[j])]
                                case Kind.KAPPA_ROW:
                                    (word,) = step.does.words
                                    m.d.comb += [a.eq(kappa.word_select(word, w)), b.eq(k.minus_p[word][j])]
                                case _ if row is not None:
                                    m.d.comb += b.eq(k.rows[row][j])
                full = product(m, a, b, p.block, name=f"{unit}_c{j}")
                residue = rtl_fold.reduce(m, full, 1 << 2 * w, w, base.u[j], name=f"{unit}_c{j}")
                with m.If(done):
                    m.d.sync += q[j].eq(residue)
                if s == 0:
                    with m.If(cycle == plan["G"].end - 1):
                        m.d.sync += gamma[j].eq(residue)
            products[unit] = q
            self.probes += [(step.name, list(q), step.end) for step in steps]

        # ---- alpha and its table
        alpha_sum = Signal((n * ((1 << rns.q) - 1) + rns.d).bit_length())  # too large for a range where q is 64 or more
        alpha = Signal(range(max(2, rns.alpha_max + 1)))
        m.d.comb += alpha_sum.eq(sum((g[w - rns.q :] for g in gamma), Const(rns.d)))
        with m.If(cycle == plan["alpha"].end - 1):
            m.d.sync += alpha.eq(alpha_sum >> rns.q)
        self.probes.append(("alpha", alpha, plan["alpha"].end))

        # ---- kappa: K = sum gamma_i c_i, starting from the offset of alpha
        k_width = ((rns.kappa_max + 1) << rns.T).bit_length()
        k_sum = Signal(k_width)
        k_products = []
        for s in range(p.k):
            steps = list(plan.on(f"kmul{s + 1}"))
            number = Signal(range(max(2, len(steps))), name=f"kmul{s + 1}_step")
            with m.Switch(following):
                for i, step in enumerate(steps):
                    with m.Case(step.start):
                        m.d.sync += number.eq(i)
            a, c = Signal(w, name=f"kmul{s + 1}_a"), Signal(rns.constant_bits, name=f"kmul{s + 1}_c")
            with m.Switch(number):
                for i, step in enumerate(steps):
                    with m.Case(i):
                        (channel,) = step.does.channels
                        m.d.comb += [a.eq(gamma[channel] >> rns.s << rns.s), c.eq(rns.c[channel])]
            out = Signal(w + rns.constant_bits, name=f"kmul{s + 1}_q", reset_less=True)
            full = product(m, a, c, p.kappa_block, name=f"kmul{s + 1}")
            with m.If(in_cycles(*(step.end - 1 for step in steps))):
                m.d.sync += out.eq(full)
            k_products.append(out)
            self.probes += [(step.name, out, step.end) for step in steps]
        rounds = list(plan.on("kacc"))
        sizes = [len(step.does.channels) for step in rounds]
        term = self._sum(m, k_products, sizes, rounds, cycle, "kacc") if p.k > 1 else k_products[0]
        k_write = in_cycles(*(step.end - 1 for step in rounds))
        with m.If(cycle == plan["AL"].end - 1):
            with m.Switch(alpha):
                for i, e in enumerate(rns.e):
                    with m.Case(i):
                        m.d.sync += k_sum.eq(e)
        with m.Elif(k_write):
            m.d.sync += k_sum.eq(k_sum + term)
        m.d.comb += kappa.eq(k_sum >> rns.T)
        self.probes += [(step.name, k_sum, step.end) for step in (plan["AL"], *rounds)]
        self.probes.append(("kappa", kappa, rounds[-1].end))

        # ---- accumulators A
        steps = list(plan.on("acc"))
        write = in_cycles(*(step.end - 1 for step in steps))
        al_now = in_cycles(*(step.start for step in steps if step.does.alpha))
        words = []
        for j in range(n):
            al = Signal(w, name=f"al{j}")
            with m.Switch(alpha):
                for i, entries in enumerate(k.al):
                    with m.Case(i):
                        m.d.comb += al.eq(entries[j])
            total = Signal(w, name=f"A{j}")
            if p.k == 1:
                summand: Value = Signal(w, name=f"acc_term{j}")
                m.d.comb += summand.eq(Mux(al_now, al, products["mul1"][j]))
                bound = 2 << w
            else:
                sizes = [step.does.terms for step in steps]
                inputs = [products[f"mul{s + 1}"][j] for s in range(p.k)]
                final = len(steps) - 1
                extra = [inputs[p.k - 1 - word] for word in range(p.words)]
                summand = Signal(w + max(sizes).bit_length(), name=f"acc_term{j}")
                body = sum(inputs[1:], inputs[0])
                tail = sum(extra, al)
                options = {size: sum(inputs[1:size], inputs[0]) for size in sizes[:final]}
                with m.If(al_now):
                    m.d.sync += summand.eq(tail)
                with m.Else():
                    if len(options) == 1:
                        m.d.sync += summand.eq(next(iter(options.values())))
                    else:  # the last round has fewer products
                        with m.If(cycle == steps[final - 1].start):
                            m.d.sync += summand.eq(options[sizes[final - 1]])
                        with m.Else():
                            m.d.sync += summand.eq(body)
                bound = (max(sizes) + 1) << w
            wide = Signal(rtl_fold.bits(bound), name=f"acc_sum{j}")
            m.d.comb += wide.eq(total + summand)
            folded = rtl_fold.reduce(m, wide, bound, w, base.u[j], name=f"acc{j}")
            with m.If(cycle == 1):
                m.d.sync += total.eq(0)
            with m.Elif(write):
                m.d.sync += total.eq(folded)
            words.append(total)
        m.d.comb += self.o_r.eq(Cat(*words))
        for step in steps:
            self.probes.append((step.name, list(words), step.end))
        return m

    def _sum(
        self, m: Module, inputs: list[Signal], sizes: list[int], rounds: list[Step], cycle: Signal, name: str
    ) -> Signal:
        """Registered sum of the products of one round; the last round may have fewer."""
        out = Signal(len(inputs[0]) + len(inputs).bit_length(), name=f"{name}_term")
        whole = sum(inputs[1:], inputs[0])
        if sizes[-1] == len(inputs):
            m.d.sync += out.eq(whole)
        else:
            with m.If(cycle == rounds[-1].start):
                m.d.sync += out.eq(sum(inputs[1 : sizes[-1]], inputs[0]))
            with m.Else():
                m.d.sync += out.eq(whole)
        return out


# ---------------------------------------------------------------------------------------------- named instances


OPERAND_MAX = 1 << 16
"""Largest multiple of the modulus for operands: as for a modulus 16 bits longer."""
SETS_MAX = 1024
"""Most sets: more channels than any modulus takes."""
N_MAX = 256
"""Most bits of a channel."""


def constants(
    p: int, *, n: int, base: str, operand: int, T: int = 0, q: int = 0, as_printed: bool = True
) -> SumOfResidues:
    """The channels and their constants, the least T and q where they are 0. Raises ValueError where none serve.

    ``as_printed``: the paper's T and q instead, where it has them.
    """
    printed = as_printed and n == 66 and base != "2^n-u" and p in PRINTED_T
    size = Fraction(operand)
    options: dict[str, Any] = {"T": T or None, "q": q or None, "operand": size}
    if printed and T in (0, PRINTED_T[p]) and q in (0, PRINTED_Q):
        options |= {"T": PRINTED_T[p], "q": PRINTED_Q, "d": PRINTED_D, "offset": False}
    return solve_over(choose_bases(p, n, base, size), p, **options)


def least_constants(p: int, settings: Mapping[str, Any], *kept: str) -> SumOfResidues:
    """The constants with the least T and q; those of ``kept`` as they are set."""
    return constants(p, **{name: settings[name] for name in ("n", "base", "operand", *kept)}, as_printed=False)


def most_sets(p: int, settings: Mapping[str, Any]) -> int:
    """N: channels of the base."""
    return constants(p, **{name: settings[name] for name in ("n", "base", "operand", "T", "q")}).base.n


def _solver(k: int | None, pipelined: bool) -> Any:
    def fit(p: int, *, n: int, base: str, sets: int, operand: int, T: int, q: int, dsp: str) -> Sor:
        rns = constants(p, n=n, base=base, operand=operand, T=T, q=q)
        count = sets or rns.base.n
        if (rns.kappa_bits > min(count, 2) * n and count > 1) or rns.kappa_bits > 2 * n:
            raise ValueError(f"kappa has {rns.kappa_bits} bits, more than {2 * n}")
        block = {"18x18": DSP18, "25x18": DSP25}
        settings = {"n": n, "base": base, "sets": count, "operand": operand, "T": rns.T, "q": rns.q, "dsp": dsp}
        return Sor(Params(rns, count, pipelined, DSP18, block[dsp]), settings)

    return fit


SOURCE = Source(
    "M. A. Mehrabi", "Improved Sum of Residues Modular Multiplication Algorithm", "Cryptography 3(2):14", 2019,
    "Algorithm 2, Section 4",
)  # fmt: skip

NEEDS = "any odd modulus of at least 2 bits; channels wide enough that the solver finds constants"


def _settings(sets: int) -> tuple[Setting, ...]:
    return (
        Setting("n", int, 66, "bits of a channel", least=12, most=N_MAX),
        Setting("base", str, "auto", "kind of moduli", ("auto", "2^n-2^t-1", "2^n-u")),
        Setting(
            "sets", int, sets, "sets of channel multipliers, 0 for one set a channel", least=0, most=SETS_MAX,
            depends="one set for each of the N channels at most",
            limits=lambda p, settings: (0, most_sets(p, settings)),
            smaller="lower",
        ),
        Setting(
            "operand", int, 2, "operands up to this multiple of the modulus must be accepted",
            least=1, most=OPERAND_MAX,
        ),
        Setting(
            "T", int, 0, "fraction bits of kappa's constants, 0 for the printed ones or else the least",
            least=0, most=2 * N_MAX,
            depends="results must stay below 2 p; 2 n at most: constants are then twice as long as channels",
            limits=lambda p, settings: (least_constants(p, settings, "q").T, 2 * settings["n"]),
        ),
        Setting(
            "q", int, 0, "bits of gamma that enter alpha, 0 for the printed ones or else the least",
            least=0, most=N_MAX, depends="alpha must be exact; n at most: all bits of gamma",
            limits=lambda p, settings: (least_constants(p, settings).q, settings["n"]),
        ),
        Setting("dsp", str, "18x18", "DSP block that kappa's multiplier is tiled to", ("18x18", "25x18")),
    )  # fmt: skip


def _named(name: str, paper: str, title: str, sets: int, pipelined: bool) -> Design:
    return Design(
        name=name, page="sor", title=title, source=SOURCE, needs=NEEDS, settings=_settings(sets),
        solve=_solver(sets, pipelined), paper=paper,
    )  # fmt: skip


DESIGNS = (
    _named("sor-1m-n", "SOR_1M_N", "Improved SOR, one multiplier set, not pipelined", 1, False),
    _named("sor-1m-p", "SOR_1M_P", "Improved SOR, one multiplier set, pipelined", 1, True),
    _named("sor-2m", "SOR_2M", "Improved SOR, two multiplier sets", 2, True),
    _named("sor-nm", "N parallel multipliers", "Improved SOR, one multiplier set a channel: the limit", 0, True),
)
