# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Costs of base extensions and RNS Montgomery multiplications, in units of a modular multiplication (CMM).

Source: L. Djath, K. Bigou, A. Tisserand: Hierarchical Approach in RNS Base Extension for Asymmetric Cryptography.
ARITH, 2019, Section IV-C, Table II, Figures 2, 4, 5 and 6. r = CMM / CMR, n moduli (HPR: in all d digits), c columns:

    KBE   n^2 + n                                         BE MM          2 n^2 + 4 n
    HBE   n^2 / c (1 + 1 / r) + n + n CMUL(w, (c-1) w)    HPR, d digits  2 n^2 / d + (2 d + 4) n

with KBE; with HBE n^2 becomes n^2 / c (1 + 1 / r), and 2 n CMUL(w, (c-1) w) are added.

These add times, as if a rower did one operation after another. In a pipelined rower the reduction is a unit of its own,
which works on one number while the multiplier works on the next. There an operation costs cycles of a unit, and the
interval between products is the largest of the units' sums (`Rower`), not their total: the term 1 / r vanishes, and the
ratio tends to 1 / c instead of (1 + 1 / r) / c.

Deviations: any c; CMUL(w, (c-1) w) = (c - 1) CMM, which for c = 2 is the paper's CMUL = CMM. "Up to 35 %" (IV-C, for n
= 6 ... 32) is reached only from n = 54 (r = 4; 33.3 % at n = 32, 37.5 % in the limit). "Below n = 16 HPR with d = 2 is
faster" (V): by Table II d = 4 is faster from n = 9 (KBE), 11 (r = 2) and 13 (r = 4). Of r = 2, 3, 4 HBE costs
least with 4, which the paper calls pessimistic: better moduli than its own would give more.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

RATIOS = (Fraction(2), Fraction(3), Fraction(4))
"""r of the curves: an MR costs one half to one quarter of an MM."""


@dataclass(frozen=True)
class Algorithm:
    """A column of Table II: Montgomery multiplication over two bases (``d`` = 1), or HPR with d digits."""

    name: str
    d: int = 1


BE_MM = Algorithm("BE MM")
HPR_2 = Algorithm("HPR d = 2", 2)
HPR_4 = Algorithm("HPR d = 4", 4)
TABLE_II = (BE_MM, HPR_2, HPR_4)


def kbe(n: int) -> Fraction:
    """Cost in CMM of one Kawamura extension between bases of n >= 1 moduli."""
    return Fraction(_positive(n) ** 2 + n)


def hbe(n: int, r: Fraction | int, c: int = 2) -> Fraction:
    """Cost in CMM of one hierarchical extension, for n >= 1, r > 0, c >= 2; n need not be a multiple of c."""
    return Fraction(_positive(n) ** 2, _columns(c)) * _pair(r) + n + n * (c - 1)


def product(algorithm: Algorithm, n: int, r: Fraction | int | None = None, c: int = 2) -> Fraction:
    """Cost in CMM of one modular multiplication, with HBE, or with KBE if r is None. KBE: 2 n^2 / d + k n with k = 4
    for d = 1 (Gandino's order), else 2 d + 4. HBE: 2 n^2 / (c d) (1 + 1/r) + (k + 2 (c - 1)) n."""
    d = algorithm.d
    linear = 4 if d == 1 else 2 * d + 4
    square = Fraction(2 * _positive(n) ** 2, d)
    if r is None:
        return square + linear * n
    return square / _columns(c) * _pair(r) + (linear + 2 * (c - 1)) * n


@dataclass(frozen=True)
class Rower:
    """Cycles in which a pipelined rower's units are busy with one product of a Montgomery multiplication.

    ``n``: moduli in a base; ``c``: moduli in a row, 1 for KBE; ``share``: channels of each base for one rower. The
    machine is that of `designs.cox_rower`: a multiplier, a reduction that takes a number in each cycle, and a memory of
    one port for operands and residues. A test counts the same in its schedule.
    """

    n: int
    c: int = 1
    share: int = 1

    @property
    def multiplier(self) -> int:
        """Multiplications: the paper's 2 n / c + 4 + 2 (c - 1), and h |B|."""
        return self.share * (2 * self.n // self.c + 2 * self.c + 3)

    @property
    def reduction(self) -> int:
        """Numbers that enter the reduction: the X_r and Z_r of all rows, and five residues; KBE reduces in a loop that
        is never the busiest unit, counted as 0."""
        return self.share * (2 * self.n // self.c + 5) if self.c > 1 else 0

    @property
    def memory(self) -> int:
        """Accesses to the memory's port: operands, residues, constants that are no sums, results, and h."""
        return self.share * (18 + 2 * max(0, self.c - 2)) + 1

    @property
    def interval(self) -> int:
        """Least cycles between products: those of the busiest unit."""
        return max(self.multiplier, self.reduction, self.memory)


def pipelined_extension(n: int, c: int = 1) -> Fraction:
    """Multiplications of one extension by pipelined rowers, in CMM: n^2 / c + c n, for KBE (c = 1) n^2 + n."""
    return Fraction(_positive(n) ** 2, c) + c * n


def pipelined_product(algorithm: Algorithm, n: int, c: int = 1) -> Fraction:
    """`product` in the busiest unit of pipelined rowers: its multiplications, c = 1 for KBE. Reductions run beside them
    and are not more: one for each of the 2 n^2 / (c d) sums' terms, and at most one for each other product."""
    linear = 4 if algorithm.d == 1 else 2 * algorithm.d + 4
    return Fraction(2 * _positive(n) ** 2, algorithm.d * c) + (linear + 2 * (c - 1)) * n


def pipelined_ratio(algorithm: Algorithm | None, n: int, c: int = 2) -> Fraction:
    """Cost with HBE / cost with KBE by pipelined rowers: of a product, or of one extension if ``algorithm`` is None."""
    if algorithm is None:
        return pipelined_extension(n, c) / pipelined_extension(n)
    return pipelined_product(algorithm, n, c) / pipelined_product(algorithm, n)


def extension_ratio(n: int, r: Fraction | int, c: int = 2) -> Fraction:
    """Figure 2: cost(HBE) / cost(KBE)."""
    return hbe(n, r, c) / kbe(n)


def product_ratio(algorithm: Algorithm, n: int, r: Fraction | int, c: int = 2) -> Fraction:
    """Figures 4 (BE_MM), 5 (HPR_2) and 6 (HPR_4): cost with HBE / cost with KBE."""
    return product(algorithm, n, r, c) / product(algorithm, n)


def asymptote(r: Fraction | int, c: int = 2) -> Fraction:
    """Limit of all these ratios for large n: (1 + 1/r) / c."""
    return _pair(r) / _columns(c)


def figure(
    algorithm: Algorithm | None, ns: Iterable[int], ratios: Iterable[Fraction] = RATIOS, c: int = 2
) -> dict[Fraction, list[tuple[int, Fraction]]]:
    """Points (n, ratio) of each curve r of Figure 2 (``algorithm`` None), 4, 5 or 6."""
    points = list(ns)
    return {
        r: [(n, extension_ratio(n, r, c) if algorithm is None else product_ratio(algorithm, n, r, c)) for n in points]
        for r in ratios
    }


def first_saving(saving: Fraction, r: Fraction | int, c: int = 2, algorithm: Algorithm | None = None) -> int | None:
    """The least n from which HBE saves this share of an extension, or of a product; None if it never does.

    With the ratio (q n + l) / (k n + m) (without the common factor n) the saving is reached if
    ((1 - saving) k - q) n >= l - (1 - saving) m.
    """
    if algorithm is None:
        q, l, k, m = asymptote(r, c), Fraction(c), Fraction(1), Fraction(1)
    else:
        k = Fraction(2, algorithm.d)
        q = k * asymptote(r, c)
        m = product(algorithm, 1) - k
        l = product(algorithm, 1, r, c) - q
    slope, need = (1 - saving) * k - q, l - (1 - saving) * m
    if slope <= 0:
        return 1 if slope == 0 and need <= 0 else None
    return max(1, -(-need // slope))


def first_faster(better: Algorithm, other: Algorithm, r: Fraction | int | None = None, c: int = 2) -> int | None:
    """The least n from which ``better``, with the smaller n^2 term, costs less than ``other``; None: never."""
    at_1 = [product(algorithm, 1, r, c) for algorithm in (better, other)]
    square = [Fraction(2, algorithm.d) * (1 if r is None else asymptote(r, c)) for algorithm in (better, other)]
    gain = square[1] - square[0]
    return max(1, (at_1[0] - at_1[1] + gain) // gain + 1) if gain > 0 else None


def _pair(r: Fraction | int) -> Fraction:
    """Cost of an MM and its MR."""
    if r <= 0:
        raise ValueError(f"the ratio CMM/CMR must be positive, got {r}")
    return 1 + 1 / Fraction(r)


def _positive(n: int) -> int:
    if n < 1:
        raise ValueError(f"the number of moduli must be at least 1, got {n}")
    return n


def _columns(c: int) -> int:
    if c < 2:
        raise ValueError(f"HBE needs at least 2 columns, got {c}")
    return c
