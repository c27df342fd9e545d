# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The operations of the paper's Algorithm 2 in the cycles of Figures A1 to A3, for any number of multiplier sets.

The steps of Algorithm 2 (with the names of Figures A1 to A3) and the operations:

    1    Z            xy_i = <x_i y_i>_mi                          PRODUCT
    2    G            gamma_i = <xy_i <M_i^-1>_mi>_mi              INVERSE
    3    L_i          Y_ij = gamma_i <<M_i>_p>_mj                  TERM, one for each i
    4.1  alpha        Algorithm 1 of the paper                     ALPHA
    4.2  K_i, K+K_i   K = sum gamma_i c_i, kappa = floor(K / 2^T)  KAPPA_TERM and ADD_KAPPA
    5.1  KP           <kappa <-p>_mi>_mi                           KAPPA_ROW, one for each word of kappa
    5.2  AL           <alpha <-M>_p>_mi from the table             ALPHA_ROW; it also starts K with e_alpha
    5.3  A+L_i        sum_i = <sum_j Y_ji>_mi                      ADD of the L_i to the accumulator A
    6    A+AL, A+KP   z_i = <sum_i + AL + KP>_mi                   ADD of AL and of the words of kappa

Deviation: c_i = floor(<M_i>_p 2^T / p), and K starts with e_alpha. In the paper c_i = floor(<M_i>_p / 2^(W-T)), and K
starts with 0.
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

    ``block``: DSP block of the channel multipliers; ``kappa_block``: DSP block of the multiplier of kappa.
    """

    k: int
    pipelined: bool
    block: DspBlock
    kappa_block: DspBlock


class Kind(Enum):
    """The kinds of operations, in the letters of Algorithm 2 and Figures A1 to A3."""

    PRODUCT = "Z"  # X Y
    INVERSE = "G"  # gamma = Z M_i^-1
    ALPHA = "alpha"  # floor((sum trunc(gamma_i) + d) / 2^q)
    ALPHA_ROW = "AL"  # <-alpha M>_p, from a table; e_alpha for kappa
    TERM = "L"  # gamma_i <M_i>_p
    KAPPA_TERM = "K"  # gamma_i c_i
    KAPPA_ROW = "KP, KQ"  # a word of kappa times -p
    ADD = "A+"  # added to A
    ADD_KAPPA = "K+"  # added to K


@dataclass(frozen=True)
class Operation:
    """One operation, which all channels execute at the same time.

    ``channels``: the i, from 0, of the gamma_i or L_i that it reads. ``words``: the numbers, from 0, of the words of
    kappa that it reads. ``alpha``: whether an ADD reads AL.
    """

    kind: Kind
    channels: tuple[int, ...] = ()
    words: tuple[int, ...] = ()
    alpha: bool = False

    @property
    def name(self) -> str:
        """The name of its result in Figures A1 to A3, without "A=" or "K="."""
        kappa = [f"K{'PQ'[word]}" for word in self.words]
        match self.kind:
            case Kind.PRODUCT | Kind.INVERSE | Kind.ALPHA | Kind.ALPHA_ROW:
                return self.kind.value
            case Kind.TERM | Kind.KAPPA_TERM:
                return f"{self.kind.value}{self.channels[0] + 1}"
            case Kind.KAPPA_ROW:
                return kappa[0]
            case Kind.ADD:
                return "+".join(["A", *(["AL"] if self.alpha else []), *(f"L{i + 1}" for i in self.channels), *kappa])
            case _:
                return "+".join(["K", *(f"K{i + 1}" for i in self.channels)])


def schedule(p: Params) -> Schedule:
    """The schedule of Figures A1 (k = 1, not pipelined), A2 (k = 1, pipelined) and A3 (k = 2), and for any other k.
    Length in cycles: 3N + 7, 2(N + 4), 2(ceil(N/k) + 5); for k = 1 and two words of kappa one multiplication more."""
    n_channels, k = p.base.n, p.k
    acc = 1 if k == 1 else 2  # cycles of one accumulation; of one product, if k = 1
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
