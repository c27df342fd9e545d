# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Bit-serial Montgomery multiplication in carry-save with B + M made beforehand: one carry-save addition a bit.

Source:  C. McIvor, M. McLoone, J. V. McCanny, A. Daly, W. Marnane, Fast Montgomery Modular Multiplication and RSA
         Cryptographic Processor Architectures, the four-to-two form.
Formula: q_i = (S + a_i B) mod 2,  S <- (S + T) / 2,  T = 0, B, M or B + M by a_i and q_i, for i = 0 ... N - 1
Range:   S < B + M at every step. A, B < p leave S < 2 p, one subtraction remains; without it N + 2 steps take operands
         below 2 p to results below 2 p.

q_(i+1) is found beside step i from the two lowest places, so a step is a choice and one carry-save addition.

Deviations from the paper: operands and results are binary, not carry-save pairs; B + M is added up word by word before
the loop, and the result after it, beside the next product.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal

from modmill.design import Cost, Design, Multiplier, Setting, Source
from modmill.designs.multistep.design import PLACES, SHARED_SETTINGS, BinaryMontgomery, added_bits, majority
from modmill.numbers.moduli import MAX_BITS
from modmill.rtl.acceptance import Acceptance
from modmill.rtl.words import CarrySaveWords, WordSubtraction, widened
from modmill.schedule import Schedule, Step

# ---------------------------------------------------------------------------------------------- parameters


@dataclass(frozen=True)
class Params:
    """``steps`` bits of A; operands of ``operand_bits``; ``word`` bits of the adders a cycle."""

    steps: int
    operand_bits: int
    word: int

    @property
    def width(self) -> int:
        """Bits of S1, S2 and B + M."""
        return self.operand_bits + 1

    @property
    def words(self) -> int:
        """Cycles of an addition, of B + M or of S1 + S2."""
        return -(-self.width // self.word)

    @property
    def latency(self) -> int:
        """Accepting, B + M, the loop, the final addition, the subtraction one word behind it, the choice."""
        return 1 + self.words + self.steps + self.words + 2

    @property
    def interval(self) -> int:
        """B + M and the loop, unless the result would not be out in time."""
        return max(self.words + self.steps, -(-(self.latency + 1) // PLACES))


# ---------------------------------------------------------------------------------------------- algorithm


class McIvor(BinaryMontgomery):
    """The bit-serial multiplier for one modulus, or for all of at most its width."""

    @cached_property
    def params(self) -> Params:
        """Steps and words."""
        steps = self.bits + 2 * (not self.settings["subtract"])
        return Params(steps, self.operand_bits, min(self.settings["word"], self.operand_bits + 1))

    @property
    def R(self) -> int:
        return 1 << self.params.steps

    @property
    def schedule(self) -> Schedule:
        q = self.params
        steps = [Step(f"D{j}", "adder of B + M", 1 + j, 1, (f"D{j - 1}",) if j else ()) for j in range(q.words)]
        before = f"D{q.words - 1}"
        for i in range(q.steps):
            steps.append(Step(f"S{i + 1}", "step", 1 + q.words + i, 1, (before,)))
            before = f"S{i + 1}"
        start = 1 + q.words + q.steps
        name, unit = ("d", "subtractor") if self.subtract else ("w", "words")
        for j in range(q.words):
            steps.append(Step(f"v{j}", "adder", start + j, 1, (before,)))
            before = f"v{j}"
            steps.append(Step(f"{name}{j}", unit, start + j + 1, 1, (before,)))
        steps.append(Step("z", "choice", start + q.words + 1, 1, (f"{name}{q.words - 1}",)))
        return Schedule(tuple(steps), q.interval)

    @property
    def cost(self) -> Cost:
        """No DSP block, no table."""
        return Cost(dsp=0, memory_bits=0, multiplications=1)

    @property
    def size(self) -> int:
        """Two additions a bit; the final one has a choice among all its words."""
        return self.params.width // 16 + self.params.words // 8

    def trace(self, a: int, b: int) -> Iterator[tuple[str, Any]]:
        s = c = 0
        yield "D", b + self.p
        for i in range(self.params.steps):
            bit = a >> i & 1
            q = (s ^ c ^ bit & b) & 1
            t = (0, self.p, b, b + self.p)[2 * bit + q]
            s, c = (s ^ c ^ t) >> 1, majority(s, c, t)
            yield f"S{i + 1}", [s, c]
        v = s + c
        yield "z", v - self.p if self.subtract and v >= self.p else v

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


# ---------------------------------------------------------------------------------------------- machine


class Machine(Multiplier):
    """One carry-save addition around (S1, S2), an adder before it and one behind, and the subtractor.

    The machine never stalls: operands are accepted while one of two places for a result is left. Timing does not
    depend on values. Cost: about 12 LUTs a bit, and 10 flip-flops.
    """

    def __init__(self, fitted: McIvor) -> None:
        self._fitted = fitted
        width = fitted.operand_bits
        super().__init__(width, width, width, k=fitted.bits if fitted.loadable else 0)

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        fitted, p = self._fitted, self._fitted.params
        word, count = p.word, p.words
        front = Acceptance(m, self, fitted.p, fitted.bits, PLACES)
        modulus = front.modulus

        # ---- control: cycles 1 ... words add, then the loop
        cycle = Signal(range(p.interval + 1))
        adding, looping, last = Signal(), Signal(), Signal()
        front.connect((cycle == 0) | (cycle == p.interval))
        with m.If(front.accept):
            m.d.sync += [cycle.eq(1), adding.eq(1), looping.eq(0)]
        with m.Else():
            with m.If(cycle == p.interval):
                m.d.sync += cycle.eq(0)
            with m.Elif(cycle != 0):
                m.d.sync += cycle.eq(cycle + 1)
            with m.If(cycle == count):
                m.d.sync += [adding.eq(0), looping.eq(1)]
            with m.If(last):
                m.d.sync += looping.eq(0)
        m.d.comb += last.eq(cycle == count + p.steps)

        # ---- B + M, word by word; B turns once around
        a = Signal(max(2, p.steps), name="A", reset_less=True)
        b = Signal(word * count, name="B", reset_less=True)
        d, carry = Signal(word * count, name="D", reset_less=True), Signal(name="D_carry")
        index = Signal(range(count + 1))
        words = widened(modulus, word * count)
        modulus_word = Signal(word, name="M_word", reset_less=True)  # a cycle ahead of its addition
        total = Signal(word + 1, name="D_total")
        m.d.comb += total.eq(b[:word] + modulus_word + carry)
        m.d.sync += modulus_word.eq(Array(words.word_select(j, word) for j in range(count))[index])
        with m.If(front.accept):
            m.d.sync += [a.eq(self.i_a), b.eq(self.i_b), carry.eq(0)]
            m.d.sync += index.eq(1 if count > 1 else 0)
        with m.Elif(adding):
            m.d.sync += [b.eq(Cat(b[word:], b[:word])), d.eq(Cat(d[word:], total[:word])), carry.eq(total[word])]
            m.d.sync += index.eq(Mux(cycle >= count - 1, 0, index + 1) if count > 1 else 0)
        with m.Else():
            m.d.sync += a.eq(a >> 1)

        # ---- the step, and the next q beside it
        s, c = Signal(p.width, name="S1", reset_less=True), Signal(p.width, name="S2", reset_less=True)
        q, bit = Signal(name="q", reset_less=True), Signal(name="a_i")
        m.d.comb += bit.eq(a[0])
        chosen = Signal(p.width, name="T")
        m.d.comb += chosen.eq(Mux(bit, Mux(q, d, b), Mux(q, modulus, 0)))
        after_s, after_c = Signal(p.width, name="S1_after"), Signal(p.width, name="S2_after")
        m.d.comb += [after_s.eq((s ^ c ^ chosen) >> 1), after_c.eq((s & c) | (s & chosen) | (c & chosen))]
        with m.If(front.accept):
            m.d.sync += [s.eq(0), c.eq(0), q.eq(self.i_a[0] & self.i_b[0])]
        with m.Elif(looping):
            m.d.sync += [s.eq(after_s), c.eq(after_c), q.eq(after_s[0] ^ after_c[0] ^ (a[1] & b[0]))]
        self.probes += [("D", d, 1 + count)]
        self.probes += [(f"S{i + 1}", [s, c], count + i + 2) for i in range(p.steps - 1)]

        # ---- the end
        ends = CarrySaveWords(m, last, after_s, after_c, modulus, word=word, count=count)
        WordSubtraction(
            m, self, ends.z, ends.modulus_word, ends.valid, ends.last, count=count, subtract=fitted.subtract
        )
        return m


# ---------------------------------------------------------------------------------------------- design

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
        settings=(
            Setting(
                "word", int, 32, "bits that B + M and the final addition take a cycle", least=1, most=MAX_BITS + 2,
                depends="a sum is 1 bit longer than an operand, which has the bits of p, 1 more without subtract",
                limits=lambda p, settings: (1, added_bits(p, settings)),
            ),
            *SHARED_SETTINGS,
        ),
        solve=lambda p, **settings: McIvor(p, settings),
    ),
)  # fmt: skip
