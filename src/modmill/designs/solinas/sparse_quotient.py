# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The quotient of a Montgomery multiplication modulo a sparse prime, word by word.

    V = x y + sum of +-Q 2^e over the terms,  Q = V mod R        word i of Q needs only words up to i - floor(e / W)

The additions of a word are spread over stages of one cycle each. A term is added in the last stage if it is ``NEAREST``
words away, earlier if it is farther away. A number A is subtracted by adding its complement, -A = ~A + 1 modulo a power
of two above V, so no sum is negative; the ones are the carry into word 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from modmill.rtl.delay import later

NEAREST = 2
"""Least floor(e / W) of a term, because a word of Q can be used that many words later."""
CYCLES = 3
"""Cycles from the digits of a word to the word of Q."""
_MOST = 3
"""Most distant terms that one stage adds; if there are more, an earlier stage adds half of them."""


@dataclass(frozen=True)
class Term:
    """Q 2^``e`` is added, or subtracted if ``negative``."""

    e: int
    negative: bool


def stages(terms: Sequence[Term], word: int) -> dict[int, tuple[Term, ...]]:
    """Maps each stage to the terms that it adds. Stage 0 is the last one before the carry is added.

    ``word``: W in bits. Raises ValueError if a term has e < NEAREST W.
    """
    nearest = min(terms, key=lambda term: term.e)
    if nearest.e < NEAREST * word:
        raise ValueError(f"the term Q 2^{nearest.e} must have an exponent of at least {NEAREST} x {word} bits")
    slack = {term: term.e // word - NEAREST for term in terms}
    found: dict[int, tuple[Term, ...]] = {k: tuple(t for t in terms if slack[t] == k) for k in (0, 1)}
    far = sorted((t for t in terms if slack[t] > 1), key=lambda t: t.e)
    ahead = [t for t in far if slack[t] > 2][-(len(far) // 2) :] if len(far) > _MOST else []
    found[2], found[3] = tuple(t for t in far if t not in ahead), tuple(ahead)
    return {k: group for k, group in found.items() if group}


def needed(group: Sequence[Term], word: int, i: int) -> list[int]:
    """The words of Q that the terms of ``group`` need for word ``i``."""
    lags = {term.e // word + over for term in group for over in (0, term.e % word > 0)}
    return sorted(i - lag for lag in lags if lag <= i)


def carry_most(digits_most: int, terms: Sequence[Term], word: int) -> int:
    """Largest carry out of a word of ``word`` bits, if its digits together are at most ``digits_most``."""
    carry, before = sum(t.negative for t in terms), -1
    while carry > before:
        before = carry
        carry = max(carry, (digits_most + len(terms) * ((1 << word) - 1) + carry) >> word)
    return carry


class QuotientWords:
    """The words of Q, and the carry out of each.

    ``digits``: digits of word i, of ``bits`` bits and carries above them, in cycle ``start`` + i of a product.
    ``words``: words of Q; ``digits_most``: largest value of ``digits`` together; ``at(c)`` is high in cycle c of a
    product. ``word`` has word i in cycle start + CYCLES + i, ``carry`` the carry out of it, ``history`` word i and the
    lower words, the latest first. ``sums``: the register of each stage; it has the stage's sum for word i in cycle
    start + 2 + i - stage.
    Cost on ECP5: about 3 W LUTs and W for each term, and a register for each bit of Q.
    """

    def __init__(
        self, m: Module, digits: Sequence[Value], bits: int, terms: Sequence[Term], *,
        words: int, digits_most: int, start: int, at: Callable[[int], Value],
    ) -> None:  # fmt: skip
        self._m, self._at, self._start, self._words = m, at, start, words
        self._width = width = bits * len(digits)
        self._flags: dict[tuple[int, int], Signal] = {}
        most = carry_most(digits_most, terms, width)
        v = Signal(width + most.bit_length(), name="v", reset_less=True)
        self.word, self.carry = v[:width], v[width:]
        self.history: list[Value] = [self.word]
        for k in range(1, words):
            self.history.append(later(m, self.history[-1], f"q_before_{k}"))

        groups = stages(terms, width)
        low = Cat(*(digit[:bits] for digit in digits[:-1]), digits[-1])
        over = Cat(Const(0, bits), *(Cat(digit[bits:], Const(0, 2 * bits - len(digit))) for digit in digits[:-1]))
        total: Value | None = None
        self.sums: dict[int, Value] = {}
        for stage in (3, 2, 1, 0):
            parts = [self._piece(term, stage) for term in groups.get(stage, ())]
            parts += [total] if total is not None else []
            parts += [low, over][: len(digits)] if stage == 1 else []
            if parts:
                value = sum(parts[1:], parts[0])
                self.sums[stage] = total = later(m, value, f"v_{stage}")
        into = Signal(name="word_0", reset_less=True)
        m.d.sync += into.eq(at(start + 1))
        m.d.sync += v.eq(total + Mux(into, sum(t.negative for t in terms), self.carry))

    def _reached(self, stage: int, word: int) -> Value:
        """Whether a stage processes this word of a product or a later one."""
        if (stage, word) not in self._flags:
            flag = Signal(name=f"reached_{word}_{stage}", reset_less=True)
            first = self._start - stage  # a cycle before the stage adds to word 0
            with self._m.If(self._at(first + word)):
                self._m.d.sync += flag.eq(1)
            with self._m.Elif(self._at(first)):
                self._m.d.sync += flag.eq(0)
            self._flags[stage, word] = flag
        return self._flags[stage, word]

    def _piece(self, term: Term, stage: int) -> Value:
        """The addend of a term for the word in a stage."""
        back, shift = divmod(term.e, self._width)
        parts = []
        for lag, bits in ((back + 1, slice(self._width - shift, None)), (back, slice(0, self._width - shift))):
            if lag < self._words and len(range(*bits.indices(self._width))):
                part = self.history[lag - NEAREST - stage][bits]
                parts.append(part & self._reached(stage, lag).replicate(len(part)))
            else:
                parts.append(Const(0, len(range(*bits.indices(self._width)))))
        piece = Cat(*parts)
        return ~piece if term.negative else piece
