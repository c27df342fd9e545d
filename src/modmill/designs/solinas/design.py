# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Montgomery multiplication for sparse primes p = -1 or 1 mod 2^z: the digits of the quotient are digits of the sum.

Source:  J. A. Solinas: Generalized Mersenne Numbers. Technical Report CORR 99-39, University of Waterloo, 1999, for the
         primes; P. L. Montgomery: Modular Multiplication Without Trial Division. Mathematics of Computation 44, 1985,
         pages 519-521, for the method. Columns, word-by-word quotient and schedule are ours.
Formula: p = 2^z c - 1:  V = x y + Q (p + 1),          Q = V mod R,  z = (V - Q) / R = (x y + Q p) / R
         p = 2^z c + 1:  V = x y - Q (p - 1) + p R,    Q = V mod R,  z = (V - Q) / R = (x y - Q p) / R + p
         with R = 2^(r d); p + 1 or p - 1 is a few signed powers of 2, so Q (p +- 1) is a few shifts of Q
Range:   x, y < 2^b give 0 <= z < 2^(2 b) / R + p <= 2^b for p < 2^(b - 1) and b <= r d - 1; z = x y / R (mod p)

Only x y needs multipliers. Word i of Q depends on lower words through Q 2^z, which is z / W words higher.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import fifo

from modmill.contract import Timing, UnsupportedError
from modmill.design import Cost, Design, Setting, Source
from modmill.designs.digit_serial import BinaryMontgomery
from modmill.designs.solinas.carry_select import LATENCY, carry_select_sum
from modmill.designs.solinas.product_columns import ProductColumns, overflow
from modmill.designs.solinas.shape import Kind, Params
from modmill.designs.solinas.sparse_quotient import NEAREST, QuotientWords, Term, stages
from modmill.interface import Multiplier
from modmill.numbers.moduli import MAX_BITS
from modmill.numbers.rns.residues import signed_digits
from modmill.rtl.acceptance import Acceptance
from modmill.rtl.delay import DelayLines, later
from modmill.schedule import Schedule

DIGIT, DIGIT_MIN = 17, 8
"""Most and fewest bits of a digit: a DSP block multiplies two digits of 17 bits."""
TERMS_MAX = 6
"""Most signed powers of 2 of p + 1 or p - 1."""
LEAST_STEPS = 4
"""Fewest cycles in which the digits of y enter."""


def shape(p: int) -> tuple[int, int, int]:
    """(sign, z, p + sign) with p = -sign mod 2^z, sign = 1 or -1, and the largest z."""
    sign = 1 if p % 4 == 3 else -1
    near = p + sign
    return sign, (near & -near).bit_length() - 1, near


def sparse_terms(p: int) -> tuple[Term, ...]:
    """The signed powers of 2 in p + 1 or p - 1, as terms of V. Raises UnsupportedError for more than TERMS_MAX."""
    sign, _, near = shape(p)
    powers = signed_digits(near)
    if len(powers) > TERMS_MAX:
        raise UnsupportedError(
            f"p {'-+'[sign > 0]} 1 has {len(powers)} signed digits, at most {TERMS_MAX} are accepted"
        )
    return tuple(Term(e, sign_e != sign) for e, sign_e in powers)


def made(p: int, settings: Mapping[str, Any]) -> Params:
    """The parameters for setting ``rows``, with the least interval. Raises UnsupportedError as `fit` does."""
    return fit(p, settings["rows"], 1, 0).params


def fit(p: int, rows: int, spare: int, interval: int) -> Solinas:
    """The design for p. The settings: ``rows`` digits of y in each cycle, ``spare`` bits of operands above those of p,
    ``interval`` in cycles, 0: the least.

    Raises UnsupportedError if p does not have the form, or if ``rows`` is too large for p.
    """
    bits = p.bit_length()
    sign, z, _ = shape(p)
    form = f"p = {-sign} mod 2^{z}"
    r = min(DIGIT, z // (NEAREST * rows))
    if r < DIGIT_MIN:
        raise UnsupportedError(
            f"solinas: {form}; {rows} digits of at least {DIGIT_MIN} bits per cycle need "
            f"p = 1 or -1 mod 2^{NEAREST * rows * DIGIT_MIN}"
        )
    terms = sparse_terms(p)
    steps = max(-(-(bits + 2) // (r * rows)), LEAST_STEPS)
    n = steps * rows * r
    params = Params(r, steps * rows, rows, min(n - 1, bits + spare), interval or steps, terms, p if sign < 0 else 0)
    try:
        stages(terms, params.word)
    except ValueError as error:
        raise UnsupportedError(f"solinas: {form}: {error}") from None
    return Solinas(p, params, {"rows": rows, "spare": spare, "interval": interval})


class LazyMontgomery(BinaryMontgomery):
    """Montgomery multiplication without the last subtraction: operands and results are below 2^`operand_bits`."""

    params: Any
    one_block = True

    def __init__(self, p: int, params: Any, settings: dict[str, Any]) -> None:
        super().__init__(p, settings)
        self.params = params

    @property
    def operand_bits(self) -> int:
        return int(self.params.operand_bits)

    @property
    def bounds(self) -> tuple[Fraction, Fraction, Fraction]:
        operand = Fraction(1 << self.operand_bits, self.p)
        return operand, operand**2, operand**2 * self.gain + 1

    @property
    def schedule(self) -> Schedule:
        found: Schedule = self.params.schedule
        return found


class Solinas(LazyMontgomery):
    """The multiplier for one modulus."""

    params: Params

    @property
    def R(self) -> int:
        return 1 << self.params.n

    @property
    def cost(self) -> Cost:
        """A DSP block for each digit of x and each row; the rest are shifts."""
        q = self.params
        return Cost(dsp=q.digits * q.rows, memory_bits=0, multiplications=q.digits**2)

    def trace(self, a: int, b: int) -> Iterator[tuple[str, Any]]:
        q = self.params
        mask, words = (1 << q.r) - 1, (1 << q.word) - 1
        x = [a >> q.r * j & mask for j in range(q.digits)]
        c = [0] * q.digits
        Q, carry, groups = 0, sum(t.negative for t in q.terms), stages(q.terms, q.word)

        def moved(columns: list[int]) -> list[int]:
            """The columns after each carry has moved one place."""
            return [(v & mask) + (below >> q.r) for below, v in pairwise([0, *columns])]

        for i in range(q.steps):
            T = moved([*c, *[0] * q.rows])
            added = [0] * len(T)
            for e in range(q.rows):
                y = b >> q.r * (q.rows * i + e) & mask
                for j, digit in enumerate(x):
                    added[j + e] += digit * y & mask
                    added[j + e + 1] += digit * y >> q.r
            yield f"x y{i}", added
            T = [t + m_k for t, m_k in zip(T, added, strict=True)]
            yield f"T{i}", T
            c = T[q.rows :]
            v = 0
            for stage in (3, 2, 1, 0):
                if stage == 1:
                    v += sum(t << q.r * k for k, t in enumerate(T[: q.rows]))
                for term in groups.get(stage, ()):
                    piece = (Q << term.e) >> q.word * i & words
                    v += piece ^ words if term.negative else piece
                if (name := f"V{i}.{stage}") in self.schedule:
                    yield name, v
            v += carry
            yield f"Q{i}", v & words
            Q, carry = Q | (v & words) << q.word * i, v >> q.word
        h = moved(c)
        yield "h", h
        numbers = [q.added, *(~(Q >> q.n - t.e) if t.negative else Q >> q.n - t.e for t in q.terms)]
        f = [digit + sum(number >> q.r * k & mask for number in numbers) for k, digit in enumerate(h)]
        yield "f", f
        yield "z", (sum(digit << q.r * k for k, digit in enumerate(f)) + carry) % self.R

    def component(self, *, scaled: bool = False) -> Multiplier:
        return Machine(self)

    def facts(self) -> list[tuple[str, str]]:
        q = self.params
        powers = " ".join(f"{'+-'[t.negative]} Q 2^{t.e}" for t in q.terms)
        return [
            ("V", f"x y {powers}{' + p R' if q.added else ''}, Q = V mod R, z = (V - Q) / R"),
            ("R", f"2^{q.n}"),
            ("digits", f"{q.digits} of {q.r} bits, {q.rows} of y a cycle: {q.steps} cycles"),
            ("operands", f"below 2^{q.operand_bits}, about {float(self.bounds[0]):.6g} p"),
            ("additions at the end", f"{len(q.additions)} stages, then chunks of {2 * q.r} bits"),
        ]

    def binary_timing(self) -> Timing:
        return self.params.timing(self.params.binary_arrival)

    def binary_component(self) -> Multiplier:
        return Machine(self, binary=True)


class Machine(Multiplier):
    """Columns, quotient, final additions and a queue. The machine never stalls; timing does not depend on values.

    Operands are accepted in any cycle from ``interval`` after the last ones on, if there is room for the result. The
    binary form subtracts p conditionally once: for x, y < p the unreduced result is below p^2 / R + p < 2 p.
    Cost for 256 bits and one row on ECP5: 16 DSP blocks, about 4,600 LUTs and 3,700 flip-flops.
    """

    kept = ProductColumns.kept

    def __init__(self, fitted: Solinas, *, binary: bool = False) -> None:
        self._fitted, self._binary = fitted, binary
        width = fitted.bits if binary else fitted.operand_bits
        super().__init__(width, width, width)

    @property
    def timing(self) -> Timing:
        q = self._fitted.params
        return q.timing(q.binary_arrival if self._binary else q.arrival)

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        q = self._fitted.params
        arrival, room = self.timing.latency, self.timing.in_flight + 1
        front = Acceptance(m, self, self._fitted.p, self._fitted.bits, room)
        ages = Signal(arrival, name="ages")
        m.d.sync += ages.eq(Cat(front.accept, ages))
        taken = Signal()
        with m.If(ages[q.interval - 2]):
            m.d.sync += taken.eq(0)
        with m.Elif(front.accept):
            m.d.sync += taken.eq(1)
        front.connect(~taken)

        def at(cycle: int) -> Value:
            return ages[cycle - 1]

        x, y = (Signal(q.n, name=name, reset_less=True) for name in "xy")
        m.d.sync += y.eq(y >> q.word)
        with m.If(front.accept):
            m.d.sync += [x.eq(self.i_a), y.eq(self.i_b)]
        m.submodules.columns = columns = ProductColumns(q.r, q.digits, q.rows)
        m.d.comb += [columns.x.eq(x), columns.y.eq(y[: q.word]), columns.first.eq(at(q.first - 2))]
        lowest = [columns.out[k] for k in range(q.rows)]
        most = sum(overflow(q.rows) << q.r * (k + 1) for k in range(q.rows))
        quotient = QuotientWords(m, lowest, q.r, q.terms, words=q.steps, digits_most=most, start=q.first, at=at)
        state = [columns.c[k] for k in range(q.digits)]
        z, registers = self._end(m, state, quotient, at(q.last))
        if self._binary:
            z = self._below_p(m, z)
        # a result that is not taken in its first cycle waits in a queue
        m.submodules.queue = queue = fifo.SyncFIFO(width=len(self.o_r), depth=room)
        m.d.comb += [
            queue.w_data.eq(z),
            queue.w_en.eq(at(arrival) & (queue.r_rdy | ~self.o_ready)),
            self.o_r.eq(Mux(queue.r_rdy, queue.r_data, z)),
            self.o_valid.eq(queue.r_rdy | at(arrival)),
            queue.r_en.eq(self.o_ready),
        ]
        seen = Signal(q.word, name="q")
        m.d.comb += seen.eq(quotient.word)
        registers |= {Kind.PRODUCT: columns.added, Kind.COLUMNS: lowest + state, Kind.QUOTIENT: seen}
        for step in self._fitted.schedule.steps:
            kind, numbers = step.does.kind, step.does.numbers
            register = quotient.sums[numbers[1]] if kind is Kind.TERMS else registers[kind]
            self.probes.append((step.name, register, step.end))
        return m

    def _end(
        self, m: Module, columns: Sequence[Value], quotient: QuotientWords, done: Value
    ) -> tuple[Value, dict[Kind, Any]]:
        """z = high columns + shifts of Q + p, if it is added, + carry, ``arrival`` cycles after acceptance.

        ``done``: the last T is in its register. Returns z and the registers of these operations.
        """
        q = self._fitted.params
        h = [Signal(q.r + 1, name=f"h{k}", reset_less=True) for k in range(q.digits)]
        with m.If(done):
            for k, digit in enumerate(h):
                m.d.sync += digit.eq(columns[k][: q.r] + (columns[k - 1][q.r :] if k else 0))
        whole = Cat(*reversed(quotient.history))
        numbers: list[list[Value]] = [list(h)]
        for term in q.terms:
            shifted = Cat(whole[q.n - term.e :], Const(0, q.n - term.e))
            numbers.append(_digits(~shifted if term.negative else shifted, q.r))
        if q.added:
            numbers.append(_digits(Const(q.added, q.n), q.r))
        for stage, groups in enumerate(q.additions):
            left, numbers = numbers, []
            for g, size in enumerate(groups):
                taken, left = left[:size], left[size:]
                sums = [sum(values[1:], values[0]) for values in zip(*taken, strict=True)]
                numbers.append([later(m, value, f"f{k}_{stage}_{g}") for k, value in enumerate(sums)])
        (f,) = numbers
        lines = DelayLines(m, len(q.additions), name="carry")
        carry = lines.line(quotient.carry, len(q.additions), name="carry_in")
        low = Cat(*(digit[: q.r] for digit in f))
        over = Cat(*(Cat(value, Const(0, q.r - len(value))) for value in (carry, *(digit[q.r :] for digit in f[:-1]))))
        z, _ = carry_select_sum(m, low[: q.operand_bits], over[: q.operand_bits], 0, 2 * q.r, "z", out=False)
        return z, {Kind.HIGH: h, Kind.SUM: list(f), Kind.RESULT: z}

    def _below_p(self, m: Module, z: Value) -> Value:
        """z or z - p, LATENCY + 1 cycles later, for z < 2 p."""
        p, bits = self._fitted.p, self._fitted.bits + 1
        whole: Value = later(m, z[:bits], "whole")
        minus = Const((1 << bits) - 1 - p, bits)
        difference, not_below = carry_select_sum(m, whole, minus, 1, 2 * self._fitted.params.r, "difference")
        for k in range(LATENCY):
            whole = later(m, whole, f"whole_{k}")
        return Mux(not_below, difference, whole)[:-1]


def _digits(value: Value, bits: int) -> list[Value]:
    """The digits of ``value``, the lowest first."""
    return [value[k : k + bits] for k in range(0, len(value), bits)]


DESIGNS = (
    Design(
        name="solinas", page="solinas",
        title="Montgomery multiplication for sparse primes, whose quotient needs no multiplier",
        source=Source(
            "J. A. Solinas",
            "Generalized Mersenne Numbers", "Technical Report CORR 99-39, University of Waterloo", 1999,
            "for the primes; P. L. Montgomery, Mathematics of Computation 44, for the method; machine ours",
        ),
        needs="p = 1 or -1 mod 2^16 at least, p - 1 or p + 1 of at most 6 signed powers of 2",
        settings=(
            Setting(
                "rows", int, 1, "digits of y per cycle, each with a row of DSP blocks; p = +-1 mod 2^(16 rows)",
                least=1, most=MAX_BITS // (NEAREST * DIGIT_MIN), depends="p = 1 or -1 mod 2^(16 rows)",
                limits=lambda p, settings: (1, shape(p)[1] // (NEAREST * DIGIT_MIN)), smaller="lower",
            ),
            Setting(
                "spare", int, 14, "most bits of operands above those of p: room for sums",
                least=1, most=MAX_BITS, depends="the digits have room for no more bits",
                limits=lambda p, settings: (1, made(p, settings).n - 1 - p.bit_length()),
            ),
            Setting(
                "interval", int, 0, "cycles between products; 0: the fewest", least=0, most=MAX_BITS,
                depends="at least the cycles of a product on the DSP blocks; at most the latency, with which the "
                "machine computes one product at a time",
                limits=lambda p, settings: (made(p, settings).steps, made(p, settings).arrival),
            ),
        ),
        solve=fit,
    ),
)  # fmt: skip
