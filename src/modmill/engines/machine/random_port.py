# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A port for random words, with the health tests of NIST SP 800-90B on every word that is taken.

    repetition count     C = 1 + ceil(a / H) equal words in a row (Section 4.4.1)
    adaptive proportion  C words equal to the first one of a window of W = 512 words (Section 4.4.2), C the least number
                         with P(1 + X >= C) <= 2^-a, X ~ Binomial(W - 1, 2^-H)

H bits is the min-entropy of a word, and 2^-a, `FALSE_ALARM`, the greatest probability of a false alarm, at a word and
in a window. Both C are exact: the sums are of integers. Deviation: Section 4.4.2 takes 1 + critbinom(W, 2^-H, 1 - 2^-a)
for the second C, which counts the first word of a window among W random ones. Words of high entropy would then exceed
the stated probability of a false alarm. The C here is that one or 1 more.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import comb

from amaranth.hdl import Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.contract import UnsupportedError

RANDOM_WORD = 32
"""Bits of a random word."""
ENTROPY = range(1, RANDOM_WORD + 1)
"""Accepted min-entropies of a random word, in bits."""
FALSE_ALARM = 40
"""The probability of a false alarm is at most 2^-FALSE_ALARM."""
WINDOW = 512
"""Words of a window of the adaptive proportion test, as SP 800-90B has it for words of several bits."""
WAIT = 1 << 16
"""Cycles for which a random word is awaited; then the alarm rises."""
KEPT = "_of_tests"
"""End of the names of registers whose contents depend on former words; no reset and no zeroising clears them."""
_COUNT = 16
"""Bits of the counter of words, of which two copies show that a reset has been."""
PORTS = {"random_valid": In(1), "random_ready": Out(1), "random_data": In(RANDOM_WORD)}
"""The port: a word is taken in a cycle in which valid and ready are high."""


@dataclass(frozen=True)
class HealthTests:
    """The cutoffs for words of ``entropy`` bits of min-entropy. Raises UnsupportedError for one outside `ENTROPY`."""

    entropy: int

    def __post_init__(self) -> None:
        if self.entropy not in ENTROPY:
            raise UnsupportedError(
                f"a random word has {ENTROPY[0]} to {ENTROPY[-1]} bits of entropy, not {self.entropy}"
            )

    @property
    def repetition(self) -> int:
        """So many equal words in a row raise the alarm."""
        return 1 + -(-FALSE_ALARM // self.entropy)

    @cached_property
    def proportion(self) -> int:
        """So many words of a window that are equal to its first one raise the alarm."""
        others, values = WINDOW - 1, 1 << self.entropy  # 2^-H = 1 / values
        tail, count = 0, others + 1  # values^others times P(X >= count)
        while count:
            tail += comb(others, count - 1) * (values - 1) ** (others - count + 1)
            if tail << FALSE_ALARM > values**others:
                break
            count -= 1
        return 1 + count


class RandomPort(wiring.Component):
    """Random words from the port for a block that takes ``word`` in a cycle in which ``there`` is high: while it wants
    one, ``take`` is high.

    ``repeated``, ``frequent``: one of the tests has failed. ``missing``: a word has been wanted for `WAIT` cycles.
    ``torn``: the two copies of the counter of words disagree, one of which is complemented. Each lasts until the reset.
    From ``stop`` on no word is taken.

    The counts go on after a reset, so that a front that resets the machine at an abort does not end a row or a window.
    At power-up the registers have arbitrary contents: a reset finds the two copies torn, and sets the counts.
    Cost: about 150 registers and 120 LUTs. Latency: 0 cycles; a test fails 2 cycles after the word.
    """

    def __init__(self, tests: HealthTests) -> None:
        self.tests = tests
        super().__init__({
            **PORTS, "word": Out(RANDOM_WORD), "there": Out(1), "take": In(1), "stop": In(1),
            "repeated": Out(1), "frequent": Out(1), "missing": Out(1), "torn": Out(1),
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += [
            self.word.eq(self.random_data), self.there.eq(self.random_valid & self.random_ready),
            self.random_ready.eq(self.take & ~self.stop),
        ]  # fmt: skip
        self._tests(m)
        waited = Signal(range(WAIT + 1), name="waited")
        with m.If(self.random_ready & ~self.random_valid & (waited != WAIT)):
            m.d.sync += waited.eq(waited + 1)
        with m.Elif(self.random_valid):
            m.d.sync += waited.eq(0)
        with m.If(waited == WAIT):
            m.d.sync += self.missing.eq(1)
        return m

    def _tests(self, m: Module) -> None:
        """Both tests, of each word a cycle after it is taken."""
        tests = self.tests
        word, before, first = (
            Signal(RANDOM_WORD, name=name, reset_less=True) for name in ("taken_word", "word_before", f"first{KEPT}")
        )
        words = Signal(_COUNT, name=f"words{KEPT}", reset_less=True)
        copy = Signal(_COUNT, name=f"words_not{KEPT}", init=-1, reset_less=True)
        row = Signal(range(tests.repetition), name="in_a_row", init=1, reset_less=True)
        count = Signal(range(tests.proportion), name=f"equal{KEPT}", reset_less=True)
        begun, taken, torn = Signal(name="begun", reset_less=True), Signal(name="taken"), ~(words ^ copy).all()
        m.d.sync += taken.eq(self.there)
        with m.If(self.there):
            m.d.sync += word.eq(self.random_data)
        again, place, next_words = begun & (word == before), words % WINDOW, words + 1
        with m.If(torn):
            m.d.sync += self.torn.eq(1)
        with m.If(ResetSignal() & torn):
            m.d.sync += [words.eq(0), copy.eq(-1), begun.eq(0), row.eq(1), count.eq(0)]
        with m.Elif(taken):
            m.d.sync += [before.eq(word), begun.eq(1), words.eq(next_words), copy.eq(~next_words)]
            with m.If(~again):
                m.d.sync += row.eq(1)
            with m.Elif(row == tests.repetition - 1):
                m.d.sync += self.repeated.eq(1)
            with m.Else():
                m.d.sync += row.eq(row + 1)
            with m.If(place == 0):
                m.d.sync += [first.eq(word), count.eq(1)]
            with m.Elif((word == first) & (count == tests.proportion - 1)):
                m.d.sync += self.frequent.eq(1)
            with m.Elif(word == first):
                m.d.sync += count.eq(count + 1)
