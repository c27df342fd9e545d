# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Bit-serial Montgomery multiplication in carry-save with B + M computed first: one carry-save addition per bit.

Source:  C. McIvor, M. McLoone, J. V. McCanny, A. Daly, W. Marnane: Fast Montgomery Modular Multiplication and RSA
         Cryptographic Processor Architectures. Asilomar Conference on Signals, Systems and Computers, 2003, the
         four-to-two form.
Formula: q_i = (S + a_i B) mod 2,  S <- (S + T) / 2,  T = 0, B, M or B + M by a_i and q_i, for i = 0 ... N - 1
Range:   S < B + M at every step. A, B < p give S < 2 p, and one subtraction remains. Without it, 2 more steps take
         operands below 2 p to results below 2 p.

q_(i+1) is computed during step i from the two lowest bits. So a step is a selection and one carry-save addition.

Deviations from the paper: operands and results are binary numbers instead of carry-save pairs. B + M is added word by
word before the loop. The result is added word by word after the loop, during the next product.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value

from modmill.design import Design, Source
from modmill.designs.digit_serial import LOADABLE, SUBTRACT, DigitSerial, SerialMachine, put, scanned_bits, word_setting
from modmill.interface import Multiplier
from modmill.rtl.acceptance import Acceptance
from modmill.rtl.words import widened
from modmill.schedule import Operation, Operations, Schedule, Step


@dataclass(frozen=True)
class Params:
    """``steps``: N, bits of A; ``operand_bits``: bits of an operand; ``word``: bits of an adder."""

    steps: int
    operand_bits: int
    word: int

    @property
    def width(self) -> int:
        """Bits of S1, S2 and B + M."""
        return self.operand_bits + 1

    @property
    def words(self) -> int:
        """Words, and so cycles, of the additions B + M and S1 + S2."""
        return -(-self.width // self.word)


class Kind(Operations):
    """The operations of the first addition and of the loop."""

    WORD = "D{}"  # a word of B + M, and the carry
    STEP = "S{}"  # (S1, S2) after i steps, and the next q


class McIvor(DigitSerial):
    """The bit-serial multiplier for one modulus, or for all moduli of at most its width."""

    @cached_property
    def params(self) -> Params:
        """Steps and widths."""
        steps = scanned_bits(self.bits, self.settings)
        return Params(steps, self.operand_bits, min(self.settings["word"], self.operand_bits + 1))

    @property
    def R(self) -> int:
        return 1 << self.params.steps

    @cached_property
    def schedule(self) -> Schedule:
        q = self.params
        loop: list[Step] = []
        for j in range(q.words):
            loop.append(put(Kind.WORD(j), "adder of B + M", 1 + j, loop[-1:]))
        for i in range(q.steps):
            loop.append(put(Kind.STEP(i + 1), "step", 1 + q.words + i, loop[-1:]))
        return self.planned(loop + self.addition(loop[-1], q.words), q.words + q.steps)

    def evaluate(self, op: Operation, read: Mapping[Operation, Any], a: int, b: int) -> Any:
        q, M = self.params, self.p
        match op.kind:
            case Kind.WORD:
                mask, place = (1 << q.word) - 1, q.word * op.numbers[0]
                total = (b >> place & mask) + (M >> place & mask) + sum(carry for _, carry in read.values())
                return [total & mask, total >> q.word]
            case Kind.STEP:
                (i,) = op.numbers
                s, c, quotient = read.get(Kind.STEP(i - 1), (0, 0, a & b & 1))
                t = (0, M, b, b + M)[2 * (a >> i - 1 & 1) + quotient]
                s, c = (s ^ c ^ t) >> 1, s & c | s & t | c & t
                return [s, c, (s ^ c ^ (a >> i & b)) & 1] if i < q.steps else [s, c]
            case _:
                return self.ended(op, read, q.word)

    @property
    def size(self) -> int:
        """Two additions for each bit; the final one selects one of its words."""
        return self.params.width // 16 + self.params.words // 8

    def component(self, *, scaled: bool = False) -> Multiplier:
        return Machine(self)

    def facts(self) -> list[tuple[str, str]]:
        q = self.params
        return [
            ("steps", f"N = {q.steps}, one a clock"),
            ("additions", f"{q.word} bits a cycle, {q.words} cycles, before and after"),
            ("R", f"2^{q.steps}"),
            ("operands", "below p" if self.subtract else "below 2 p"),
            ("modulus", "loaded, one word" if self.loadable else "built in"),
        ]


class Machine(SerialMachine):
    """A carry-save adder with the registers (S1, S2), an adder before it, an adder and a subtractor behind it.

    Cost: about 12 LUTs and 10 flip-flops for each bit.
    """

    _fitted: McIvor

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        fitted, p = self._fitted, self._fitted.params
        front = self.acceptance(m, fitted.p, fitted.bits)

        # ---- control: B + M is added up in cycles 1 ... ``words`` of a product, then the loop runs
        interval = fitted.schedule.interval
        cycle = Signal(range(interval + 1))
        adding, looping, last = Signal(), Signal(), Signal()
        front.connect((cycle == 0) | (cycle == interval))
        with m.If(front.accept):
            m.d.sync += [cycle.eq(1), adding.eq(1), looping.eq(0)]
        with m.Else():
            with m.If(cycle == interval):
                m.d.sync += cycle.eq(0)
            with m.Elif(cycle != 0):
                m.d.sync += cycle.eq(cycle + 1)
            with m.If(cycle == p.words):
                m.d.sync += [adding.eq(0), looping.eq(1)]
            with m.If(last):
                m.d.sync += looping.eq(0)
        m.d.comb += last.eq(cycle == p.words + p.steps)
        a, b, d, carry = self._sum_of_b_and_m(m, front, cycle, adding)

        # ---- one step in each cycle, with the next q
        s, c = Signal(p.width, name="S1", reset_less=True), Signal(p.width, name="S2", reset_less=True)
        q, bit, chosen = Signal(name="q", reset_less=True), Signal(name="a_i"), Signal(p.width, name="T")
        after_s, after_c = Signal(p.width, name="S1_after"), Signal(p.width, name="S2_after")
        m.d.comb += [
            bit.eq(a[0]),
            chosen.eq(Mux(bit, Mux(q, d, b), Mux(q, front.modulus, 0))),
            after_s.eq((s ^ c ^ chosen) >> 1),
            after_c.eq((s & c) | (s & chosen) | (c & chosen)),
        ]
        with m.If(front.accept):
            m.d.sync += [s.eq(0), c.eq(0), q.eq(self.i_a[0] & self.i_b[0])]
        with m.Elif(looping):
            m.d.sync += [s.eq(after_s), c.eq(after_c), q.eq(after_s[0] ^ after_c[0] ^ (a[1] & b[0]))]
        where = {Kind.WORD: [d[-p.word :], carry], Kind.STEP: [s, c, q]}
        pair = Kind.STEP(p.steps)
        self.add_and_finish(m, last, after_s, after_c, front.modulus, p.word, p.words, pair, where)
        return m

    def _sum_of_b_and_m(
        self, m: Module, front: Acceptance, cycle: Value, adding: Value
    ) -> tuple[Signal, Signal, Signal, Signal]:
        """Registers of A and B, B + M and its carry. The addition goes word by word while B rotates once."""
        word, count = self._fitted.params.word, self._fitted.params.words
        a = Signal(max(2, self._fitted.params.steps), name="A", reset_less=True)
        b = Signal(word * count, name="B", reset_less=True)
        d, carry = Signal(word * count, name="D", reset_less=True), Signal(name="D_carry")
        index = Signal(range(count + 1))
        words = widened(front.modulus, word * count)
        modulus_word = Signal(word, name="M_word", reset_less=True)  # read one cycle before its addition
        total = Signal(word + 1, name="D_total")
        m.d.comb += total.eq(b[:word] + modulus_word + carry)
        m.d.sync += modulus_word.eq(Array(words.word_select(j, word) for j in range(count))[index])
        with m.If(front.accept):
            m.d.sync += [a.eq(self.i_a), b.eq(self.i_b), carry.eq(0), index.eq(count > 1)]
        with m.Elif(adding):
            m.d.sync += [b.eq(Cat(b[word:], b[:word])), d.eq(Cat(d[word:], total[:word])), carry.eq(total[word])]
            m.d.sync += index.eq(Mux(cycle >= count - 1, 0, index + 1) if count > 1 else 0)
        with m.Else():
            m.d.sync += a.eq(a >> 1)
        return a, b, d, carry


DESIGNS = (
    Design(
        name="mcivor",
        page="mcivor",
        title="bit-serial Montgomery multiplication in carry-save with B + M made beforehand",
        source=Source(
            "C. McIvor, M. McLoone, J. V. McCanny, A. Daly, W. Marnane",
            "Fast Montgomery Modular Multiplication and RSA Cryptographic Processor Architectures",
            "Asilomar Conference on Signals, Systems and Computers",
            2003,
            "the four-to-two form; machine and schedule are ours",
        ),
        needs="any odd modulus",
        settings=(word_setting("word", 32, "bits of B + M and of the result added in each cycle"), SUBTRACT, LOADABLE),
        solve=lambda p, **settings: McIvor(p, settings),
    ),
)
