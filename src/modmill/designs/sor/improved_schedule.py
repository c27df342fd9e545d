# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The operations of Algorithm 2 in the cycles of Figures A1 to A3, for any number of multiplier sets.

Source:  M. A. Mehrabi, Improved Sum of Residues Modular Multiplication Algorithm, Cryptography 3 (2019) 14.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from modmill.designs.sor import family
from modmill.rtl.product import DspBlock
from modmill.schedule import Schedule, Step

MUL = 2
"""Cycles of one channel multiplication (Section 4)."""


@dataclass(frozen=True)
class Params(family.Params):
    """Parameters of one instance: ``k`` multiplier sets, pipelined or not.

    ``block``: DSP block of the channel multipliers, ``kappa_block`` of kappa's.
    """

    k: int
    pipelined: bool
    block: DspBlock
    kappa_block: DspBlock

    @property
    def accumulate(self) -> int:
        """Cycles of one accumulation: one for two summands, two for more."""
        return 1 if self.k == 1 else 2


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
