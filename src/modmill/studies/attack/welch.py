# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Welch's t of two groups from their sums of powers, which are integers.

    first order     t = (m_0 - m_1) / sqrt(v_0 / n_0 + v_1 / n_1)           m mean, v variance, n number of runs
    second order    the same for the squares of (x - m) of each group: mean c_2, variance c_4 - c_2^2,
                    c_k the central moment

A leak is a class and a cycle in which |t| is above `LEAK_LIMIT` in both halves of the runs, with the same sign, or
above `limit` of the number of all t in all runs.

Sources: G. Goodwill, B. Jun, J. Jaffe, P. Rohatgi: A testing methodology for side-channel resistance validation, NIST
Non-Invasive Attack Testing Workshop, 2011 (both halves, 4.5); T. Schneider, A. Moradi: Leakage assessment methodology,
CHES 2015, Section 3 (moments); A. Ding, L. Zhang, F. Durvaux, F.-X. Standaert, Y. Fei: Towards sound and optimal
leakage detection procedure, CARDIS 2017 (a limit for many t).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt
from statistics import NormalDist

from modmill.report.attack_tables import LEAK_LIMIT

CHANCE = 1e-5
"""Probability that, of all t without a leak, one is above `limit`."""
ORDERS = (1, 2)

Powers = tuple[int, int, int, int]


@dataclass(frozen=True)
class Group:
    """``count`` runs with the sums of powers 1 to 4 of their values less any constant."""

    count: int
    powers: Powers

    @classmethod
    def of(cls, values: Sequence[int]) -> Group:
        """The group of these values."""
        one, two, three, four = (sum(x**k for x in values) for k in (1, 2, 3, 4))
        return cls(len(values), (one, two, three, four))

    def __add__(self, other: Group) -> Group:
        one, two, three, four = (a + b for a, b in zip(self.powers, other.powers, strict=True))
        return Group(self.count + other.count, (one, two, three, four))

    def moments(self, order: int) -> tuple[float, float]:
        """Mean, less the constant, and its variance, for first or second order."""
        n, (s1, s2, s3, s4) = self.count, self.powers
        c2 = n * s2 - s1 * s1  # n^2 times the second central moment
        if order == 1:
            return s1 / n, c2 / (n * n * (n - 1))
        c4 = n**3 * s4 - 4 * n * n * s1 * s3 + 6 * n * s1 * s1 * s2 - 3 * s1**4  # n^4 times the fourth
        return c2 / n**2, (c4 - c2 * c2) / n**5


def welch(a: Group, b: Group, order: int = 1) -> float:
    """t of two groups of at least two runs each; infinite if both have no variance and different means."""
    (mean, variance), (other, its) = a.moments(order), b.moments(order)
    if not (spread := variance + its):
        return 0.0 if mean == other else inf if mean > other else -inf
    return (mean - other) / sqrt(spread)


def limit(count: int) -> float:
    """The |t| that one of ``count`` t without a leak exceeds with probability `CHANCE`, by the normal distribution."""
    return -NormalDist().inv_cdf(CHANCE / count / 2)


def leaks(whole: Sequence[float], halves: tuple[Sequence[float], Sequence[float]], most: float) -> list[int]:
    """The places of the t that show a leak. ``most``: `limit` of the number of all t."""
    return [
        k
        for k, (t, a, b) in enumerate(zip(whole, *halves, strict=True))
        if abs(t) > most or (min(abs(a), abs(b)) > LEAK_LIMIT and (a > 0) == (b > 0))
    ]
