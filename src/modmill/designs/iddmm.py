# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Digit-digit Montgomery multiplication (IDDMM, the FIOS loop): two digit multipliers, one pair of products per cycle.

Source:  M. Morales-Sandoval, A. Diaz-Perez: Scalable GF(p) Montgomery multiplier based on a digit-digit computation
         approach. IET Computers & Digital Techniques 10(3), 2016.
Formula: for each digit y_i: q = (S_0 + x_0 y_i) m' mod b, m' = -m^-1 mod b;
         for j = 0 ... n: u = S_j + x_j y_i + q m_j + c;  S_(j-1) = u mod b;  c = floor(u / b)
Range:   c < 2 b and S < x + m at every digit, S_n is one bit, R = b^n. x, y < m give S < 2 m, and one subtraction
         remains. Without it, b^n > 4 m: operands below 2 m give results below 2 m.

The multiplier of x_j y_i starts with x_0 y_i, which q needs, and holds it until u_0. Meanwhile the multiplier of q m_j
computes q. So a digit takes n + 2 cycles if a product takes one cycle. From the first q to the last product there are
n^2 + 2 n - 1 cycles.

Deviations from the paper, of which we have only the figures: schedule and final subtraction are ours; the latter
processes the digits of the last S as they leave the adder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value

from modmill.contract import Load
from modmill.design import Cost, Design, Setting, Source
from modmill.designs.digit_serial import LOADABLE, SUBTRACT, DigitSerial, SerialMachine, put, scanned_bits
from modmill.interface import Multiplier
from modmill.rtl.acceptance import Acceptance
from modmill.rtl.product import BLOCKS, DspBlock, tiled
from modmill.rtl.words import widened
from modmill.schedule import Operation, Operations, Schedule, Step

DIGIT_MAX, PRINTED_MAX = 256, 64
"""Most bits of a digit, because its product adds all tiles in one cycle; most bits of a digit in the paper."""


@dataclass(frozen=True)
class Params:
    """``n`` digits of ``w`` bits; ``stages``: cycles of a product; ``count``: digits of the unreduced result."""

    w: int
    n: int
    stages: int
    count: int
    block: DspBlock

    @property
    def digit_cycles(self) -> int:
        """Cycles for each digit of y: x_0 y_i, q, n pairs of products; the next q needs S_0."""
        return max(self.n + 2 * self.stages, 2 * self.stages + 2)

    @property
    def cycles(self) -> int:
        """Cycles from the first q to the last product."""
        return (self.n - 1) * self.digit_cycles + self.stages + self.n


class Kind(Operations):
    """The operations of the loop, in the letters of the formula."""

    XY = "x y {}"  # x_j y_i, numbers j and i
    QUOTIENT = "q{}"
    QM = "q m {}"  # q_i m_j, numbers i and j
    SUM = "u{}"  # u mod b, which is the new S_(j-1), and the carry; numbers i and j
    TOP = "S_n"


class Iddmm(DigitSerial):
    """The digit-digit multiplier for one modulus, or for all moduli of at most its width."""

    @cached_property
    def params(self) -> Params:
        """Sizes and cycles."""
        w = self.settings["digit"]
        n = -(-scanned_bits(self.bits, self.settings) // w)
        return Params(w, n, self.settings["stages"], -(-(self.bits + 1) // w), BLOCKS[self.settings["dsp"]])

    @property
    def R(self) -> int:
        return 1 << self.params.w * self.params.n

    @property
    def m_prime(self) -> int:
        """-m^-1 mod b."""
        b = 1 << self.params.w
        return -pow(self.p, -1, b) % b

    @property
    def word(self) -> int:
        """The word that loads the modulus: m, and m' in the bits above it."""
        return self.p | self.m_prime << self.bits

    @property
    def load(self) -> Load | None:
        width, radix = self.bits + self.params.w, self.params.w * self.params.n
        return Load(width, (self.word,), 1, radix) if self.loadable else None

    @cached_property
    def schedule(self) -> Schedule:
        q = self.params
        made: list[Step] = []
        sums: list[Step] = []
        for i in range(q.n):
            start = 1 + i * q.digit_cycles
            at, before, sums = start + 2 * q.stages, sums, []
            xy = [put(Kind.XY(0, i), "x y", start, cycles=q.stages, busy=2 * q.stages + 1)]
            xy += [put(Kind.XY(j, i), "x y", at + j, cycles=q.stages, busy=1) for j in range(1, q.n)]
            quotient = put(Kind.QUOTIENT(i), "q m", start + q.stages, (xy[0], *before[1:2]), cycles=q.stages, busy=1)
            qm = [put(Kind.QM(i, j), "q m", at + j, (quotient,), cycles=q.stages, busy=1) for j in range(q.n)]
            for j in range(q.n + 1):
                reads = (*xy[j : j + 1], *qm[j : j + 1], *before[min(j + 1, q.n) :][:1], *sums[-1:])
                sums.append(put(Kind.SUM(i, j), "adder", start + 3 * q.stages + j, reads))
            made += [*xy, quotient, *qm, *sums]
        words = sums[1 : q.count + 1]
        if q.count > q.n:
            words.append(put(Kind.TOP(), "adder", sums[-1].end, sums[-1:]))
            made += words[-1:]
        return self.planned(made + self.subtraction(words), q.n * q.digit_cycles)

    def evaluate(self, op: Operation, read: Mapping[Operation, Any], a: int, b: int) -> Any:
        w, numbers = self.params.w, op.numbers
        mask = (1 << w) - 1
        match op.kind:
            case Kind.XY:
                return (a >> w * numbers[0] & mask) * (b >> w * numbers[1] & mask)
            case Kind.QUOTIENT:
                xy, *before = read.values()
                return (xy + sum(s for s, _ in before)) * self.m_prime & mask
            case Kind.QM:
                return sum(read.values()) * (self.p >> w * numbers[1] & mask)
            case Kind.SUM:
                digit = Kind.SUM(numbers[0] - 1, numbers[1] + 1)  # its first value is S_j; of other sums the carry
                terms = [v if one.kind is not Kind.SUM else v[one != digit] for one, v in read.items()]
                return [sum(terms) & mask, sum(terms) >> w]
            case Kind.TOP:
                return [value[1] for value in read.values()]
            case _:
                return self.ended(op, read, w)

    @property
    def cost(self) -> Cost:
        """Two digit multipliers and no table."""
        q = self.params
        return Cost(dsp=2 * q.block.tiles(q.w, q.w), memory_bits=0, multiplications=2 * q.n * (q.n + 1))

    @property
    def size(self) -> int:
        """The multipliers, and the n^2 pairs of products in the schedule."""
        return self.cost.dsp + self.params.n**2 // 256

    def component(self, *, scaled: bool = False) -> Multiplier:
        return Machine(self)

    def facts(self) -> list[tuple[str, str]]:
        q = self.params
        return [
            ("digits", f"n = {q.n} of {q.w} bits"),
            ("cycles a digit", f"{q.digit_cycles}, products of {q.stages}"),
            ("first q to last product", f"{q.cycles} cycles; n^2 + 2 n - 1 = {q.n**2 + 2 * q.n - 1}"),
            ("R", f"2^{q.w * q.n}"),
            ("operands", "below p" if self.subtract else "below 2 p"),
            ("modulus", "loaded, one word: m and m'" if self.loadable else "built in"),
        ]


class Control:
    """Control signals of the multipliers and, a product's latency later, of the adder.

    Multipliers: ``beat`` counts the cycles of digit y_i, i = ``digit`` (n: no product). Beat 0 starts x_0 y_i, beat
    ``stages`` starts q (``asking``), the n beats from 2 ``stages`` on start the pairs (``issue``; ``issue_last``).
    Adder: ``live`` marks the sum of a pair, ``first`` that of the first pair. ``zero`` and ``final`` mark the first and
    the last digit of y. In the cycle after the last pair, ``top_step`` marks the sum for S_(n-1), and ``top_zero`` and
    ``top_final`` are ``zero`` and ``final``. ``extra`` marks the cycle in which S_n follows as a digit of the result.
    """

    def __init__(self, m: Module, front: Acceptance, p: Params, interval: int) -> None:
        n, stages = p.n, p.stages
        cycle = Signal(range(interval + 1))
        beat, digit = Signal(range(p.digit_cycles + 1)), Signal(range(n + 1), init=n)
        front.connect((cycle == 0) | (cycle == interval))
        with m.If(front.accept):
            m.d.sync += [cycle.eq(1), beat.eq(0), digit.eq(0)]
        with m.Else():
            with m.If(cycle == interval):
                m.d.sync += cycle.eq(0)
            with m.Elif(cycle != 0):
                m.d.sync += cycle.eq(cycle + 1)
            with m.If(beat == p.digit_cycles - 1):
                m.d.sync += [beat.eq(0), digit.eq(Mux(digit == n, n, digit + 1))]
            with m.Else():
                m.d.sync += beat.eq(beat + 1)
        issue, issue_last, asking = Signal(), Signal(), Signal()
        m.d.comb += [
            asking.eq(beat == stages),
            issue.eq((beat >= 2 * stages) & (beat < 2 * stages + n)),
            issue_last.eq(beat == 2 * stages + n - 1),
        ]
        flags = Cat(issue, beat == 2 * stages, issue_last, digit == 0, digit == n - 1)
        for k in range(stages):
            delayed = Signal(5, name=f"flags{k}")
            m.d.sync += delayed.eq(flags)
            flags = delayed
        live, first, ending, zero, final = flags
        step, top_zero, top_final, extra = (Signal(name=f"top_{kind}") for kind in ("step", "zero", "final", "more"))
        m.d.sync += [step.eq(ending), top_zero.eq(zero), top_final.eq(final), extra.eq(step & top_final)]
        self.beat, self.digit, self.asking, self.issue, self.issue_last = beat, digit, asking, issue, issue_last
        self.live, self.first, self.zero, self.final = live, first, zero, final
        self.top_step, self.top_zero, self.top_final, self.extra = step, top_zero, top_final, extra


class Machine(SerialMachine):
    """Two digit multipliers, an adder, S in a shift register of n digits, and a subtractor behind the adder.

    Cost: two digit multipliers in tiles, about 16 LUTs for each bit of a digit, registers for about 6 operands.
    """

    _fitted: Iddmm

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        fitted, p = self._fitted, self._fitted.params
        w, n = p.w, p.n
        front = self.acceptance(m, fitted.word, fitted.bits + w)
        words = widened(front.modulus[: fitted.bits], w * max(n, p.count))
        control = Control(m, front, p, fitted.schedule.interval)
        x, y = Signal(w * n, name="x", reset_less=True), Signal(w * n, name="y", reset_less=True)
        with m.If(front.accept):
            m.d.sync += [x.eq(self.i_a), y.eq(self.i_b)]
        with m.Else():
            with m.If(control.issue):
                m.d.sync += x.eq(Cat(x[w:], x[:w]))
            with m.If(control.issue_last):
                m.d.sync += y.eq(y >> w)
        modulus = self._modulus_digits(m, control, words, front.modulus[fitted.bits :])
        s = [Signal(w, name=f"S{j}", reset_less=True) for j in range(n)]
        xy, qm = self._products(m, control, x[:w], y[:w], modulus, s)

        # ---- u, whose lower half is shifted into S, the carry, and S_n
        live, top_step = control.live, control.top_step
        carry, top = Signal(w + 1, name="c", reset_less=True), Signal(name="S_n", reset_less=True)
        total = Signal(2 * w + 1, name="u")
        kept = s[0] & (~(control.zero | top_step)).replicate(w)
        ahead = Mux(control.first, 0, carry) + (top & top_step & ~control.top_zero)
        m.d.comb += total.eq(kept + (xy & live.replicate(2 * w)) + (qm & live.replicate(2 * w)) + ahead)
        m.d.sync += carry.eq(total >> w)
        with m.If(live | top_step):
            m.d.sync += [s[j].eq(s[j + 1] if j + 1 < n else total[:w]) for j in range(n)]
        with m.If(top_step):
            m.d.sync += top.eq(total[w])

        z, word, valid, last = self._result_digits(m, control, total, top, words)
        where = {Kind.XY: xy, Kind.QUOTIENT: qm[:w], Kind.QM: qm, Kind.SUM: [s[-1], carry], Kind.TOP: [z]}
        self.finish(m, z, word, valid, last, p.count, where)
        return m

    def _modulus_digits(self, m: Module, control: Control, words: Value, m_prime: Value) -> Signal:
        """Second operand of the multiplier of q m_j: m' in the beat of q, then m_0, m_1, ..."""
        p, beat = self._fitted.params, control.beat
        w, n, stages = p.w, p.n, p.stages
        modulus = Signal(w, name="m_j", reset_less=True)
        digits = Array(words.word_select(j, w) for j in range(n))
        place = Signal(range(max(2, n)))
        with m.If(beat == 2 * stages - 2 if stages > 1 else beat == 0):
            m.d.sync += place.eq(0)
        with m.Elif(place != n - 1):
            m.d.sync += place.eq(place + 1)
        with m.If(beat == stages - 1):
            m.d.sync += modulus.eq(m_prime)
        with m.Else():
            m.d.sync += modulus.eq(digits[place])
        return modulus

    def _products(
        self, m: Module, control: Control, x: Value, y: Value, modulus: Value, s: Sequence[Value]
    ) -> tuple[Signal, Signal]:
        """Registers of the products x_j y_i and q m_j; q is the lower half of the latter's product with m'."""
        w = self._fitted.params.w
        operand, held, low = Signal(w, name="q_operand"), Signal(w, name="q", reset_less=True), Signal(w, name="S_0")
        xy, qm = self._product(m, x, y, "xy"), self._product(m, operand, modulus, "qm")
        fresh = Signal()
        m.d.comb += fresh.eq(control.beat == 2 * self._fitted.params.stages)
        with m.If(fresh):
            m.d.sync += held.eq(qm)
        # in the cycle of ``asking`` the last shift of S is pending: S_0 is in place 1, or in place 0 if there is one
        m.d.comb += low.eq(s[:2][-1] & (control.digit != 0).replicate(w))
        m.d.comb += operand.eq(Mux(control.asking, (low + xy[:w])[:w], Mux(fresh, qm[:w], held)))
        return xy, qm

    def _result_digits(
        self, m: Module, control: Control, total: Value, top: Value, words: Value
    ) -> tuple[Signal, Signal, Signal, Signal]:
        """A digit of the last S, the same digit of m, whether the digits are valid, and whether they are the last."""
        p = self._fitted.params
        w, n, live, extra = p.w, p.n, control.live, control.extra
        z, index = Signal(w, name="v", reset_less=True), Signal(range(p.count + 1))
        valid, last = Signal(name="v_valid"), Signal(name="v_last")
        word = Signal(w, name="v_modulus", reset_less=True)
        pushed = (live & control.final & ~control.first) | (control.top_step & control.top_final)
        pushed = pushed | (extra if p.count > n else 0)
        if p.count < n:  # the digits above those of a result are 0
            pushed = pushed & (index != p.count)
        m.d.comb += last.eq(valid & (index == p.count))
        m.d.sync += [
            valid.eq(pushed),
            z.eq(Mux(extra, top, total[:w])),
            word.eq(Array(words.word_select(j, w) for j in range(p.count))[index]),
        ]
        with m.If(pushed):
            m.d.sync += index.eq(index + 1)
        with m.Elif(~live):
            m.d.sync += index.eq(0)
        return z, word, valid, last

    def _product(self, m: Module, a: Value, b: Value, name: str) -> Signal:
        """a * b, ``stages`` cycles later."""
        p = self._fitted.params
        out = Signal(2 * p.w, name=name, reset_less=True)
        m.d.sync += out.eq(tiled(m, a, b, p.block, p.stages - 1, name=name))
        return out


DESIGNS = (
    Design(
        name="iddmm", page="iddmm", title="digit-digit Montgomery multiplication with two digit multipliers",
        source=Source(
            "M. Morales-Sandoval, A. Diaz-Perez",
            "Scalable GF(p) Montgomery multiplier based on a digit-digit computation approach",
            "IET Computers & Digital Techniques 10(3)", 2016,
            "the algorithm IDDMM; [16] of Zhang and Dong; machine and schedule are ours",
        ),
        needs="any odd modulus",
        settings=(
            Setting(
                "digit", int, 32, "bits of a digit; the paper has 32 and 64", least=2, most=DIGIT_MAX,
                depends=f"at most the bits of x, or {PRINTED_MAX} if x has fewer",
                limits=lambda p, settings: (2, max(PRINTED_MAX, scanned_bits(p.bit_length(), settings))),
                smaller="change",
            ),
            Setting("stages", int, 1, "cycles of a digit's product", (1, 2, 3)),
            Setting("dsp", str, "18x18", "DSP block for which products are tiled", tuple(BLOCKS)),
            SUBTRACT, LOADABLE,
        ),
        solve=lambda p, **settings: Iddmm(p, settings),
    ),
)  # fmt: skip
