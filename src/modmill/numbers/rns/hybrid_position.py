# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Hybrid position-residues numbers: multiplication modulo p = M^d - beta with d digits in radix M, each in an RNS.

Sources: K. Bigou, A. Tisserand: Single Base Modular Multiplication for Efficient Hardware RNS Implementations of ECC.
CHES, 2015 (d = 2). K. Bigou, A. Tisserand: Hybrid Position-Residues Number System. ARITH, 2016 (any d). Steps, bounds
and constants are our derivation; the cost with n_B = n_A agrees with L. Djath, K. Bigou, A. Tisserand: Hierarchical
Approach in RNS Base Extension for Asymmetric Cryptography. ARITH, 2019, Table II.

M = A has n / d moduli; X = sum X_i M^i with 0 <= X_i < kappa M, each X_i in A, in B and modulo 2^g.

    C_k = sum_(i+j=k) X_i Y_j + beta sum_(i+j=k+d) X_i Y_j
    split      l_k = C_k mod M (or that + M) extended from A, offset 0;  h_k = (C_k - l_k) / M >= -1 in B;
               h_k + 1 extended to A, exactly
    add        S_k = l_k + h_(k-1) + M - 1,   S_0 = l_0 + beta h_(d-1) + M - beta       (the digits of p)
    compress   q_k = (S_k - (S_k mod M or that + M)) / M modulo 2^g
               result digit S_k - q_k M + q_(k-1),   digit 0: S_0 - q_0 M + beta q_(d-1)

Range, with D_k = k + 1 + beta (d - 1 - k) and h_k <= D_k kappa^2 M: a result digit is below (1 + E) M + beta q_max, so
kappa must satisfy this bound for its own results. Deviation: the digits of p are added, because h_k = -1 (C_k = 1 can
give l_k = M + 1) would otherwise give a negative digit. They also make S_k >= M - 2 beta >= E M, where the extension of
the compression is exact: q_k >= 0.
Cost, n_B = n_A: 2 n^2 / d + (2 d + 4) n MM; with HBE 2 n^2 / (c d) + (2 d + 4) n MM, 2 n^2 / (c d) MR and 2 n MUL;
operations modulo 2^g or with beta are not counted.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice, repeat
from math import ceil, comb, gcd
from typing import Self

from modmill.numbers.primes import is_prime
from modmill.numbers.rns.conditions import Condition, require
from modmill.numbers.rns.counting import Count, Formula, Tally
from modmill.numbers.rns.cox import Cox
from modmill.numbers.rns.extension import HBE, KBE, CoxExtension
from modmill.numbers.rns.residues import Base, pseudo_mersenne
from modmill.numbers.rns.rns_montgomery import least_t

Digit = tuple[list[int], list[int], int]
"""One digit: its residues in A, in B and modulo 2^g."""


@dataclass(frozen=True)
class HybridPosition:
    """A multiplier modulo ``a.M``^d - beta; cox of ``t`` bits, extensions in rows of ``c`` (1: KBE). Raises ValueError
    with the first of `conditions` that fails. p need not be prime."""

    d: int
    beta: int
    a: Base
    b: Base
    t: int
    c: int = 1

    @classmethod
    def of(cls, d: int, beta: int, a: Base, b: Base, t: int | None = None, c: int = 1) -> Self:
        """The multiplier with ``t`` cox bits; None takes the least that satisfies `conditions`."""
        return least_t(lambda bits: cls(d, beta, a, b, bits, c), a.w * c, t)

    def __post_init__(self) -> None:
        require(self.conditions())

    @property
    def p(self) -> int:
        """The modulus."""
        return self.a.M**self.d - self.beta

    @property
    def factor(self) -> int:
        """The factor of the product: 1."""
        return 1

    @cached_property
    def first(self) -> CoxExtension:
        """From A to B and 2^g, offset 0."""
        return HBE.of(self.a, (*self.b.moduli, self.side), self.t, self.c, 0)

    @cached_property
    def second(self) -> CoxExtension:
        """From B to A, exact."""
        return HBE.of(self.b, self.a.moduli, self.t, self.c)

    @cached_property
    def narrow(self) -> KBE:
        """From A to 2^g for the compression, offset 0."""
        return KBE.of(self.a, (self.side,), min(self.t, self.a.w), 0)

    @cached_property
    def error(self) -> Fraction:
        """E: largest excess of either extension from A, as a multiple of M."""
        return max(Cox(self.a, self.t, self.c, False).error, Cox(self.a, min(self.t, self.a.w), 1, False).error)

    def largest(self, kappa: Fraction) -> tuple[int, int]:
        """Largest h and largest q for digits below kappa M."""
        M, d, beta = self.a.M, self.d, self.beta
        digit = ceil(kappa * M) - 1
        h = [(k + 1 + beta * (d - 1 - k)) * digit**2 // M for k in range(d)]
        low = (1 + self.error) * M
        sums = [low + beta * h[-1] + M - beta, *(low + h[k - 1] + M - 1 for k in range(1, d))]
        return max(h), int(max(sums) / M)

    @cached_property
    def kappa(self) -> Fraction:
        """Digits of operands and results are below kappa M. It is 2, which `conditions` refuses, if no kappa is
        closed."""
        kappa = Fraction(2)
        for _ in range(3):
            kappa = min(kappa, 1 + self.error + Fraction(self.beta * self.largest(kappa)[1], self.a.M))
        return kappa

    @property
    def side(self) -> int:
        """2^g, a power of two above q_max."""
        return 1 << self.largest(self.kappa)[1].bit_length()

    def conditions(self) -> list[Condition]:
        """All conditions on d, beta and the bases."""
        M, B, beta = self.a.M, self.b.M, self.beta
        h, q = self.largest(self.kappa)
        result = 1 + self.error + Fraction(beta * q, M)
        bits = f"M has {M.bit_length()} bits, beta = {beta}"
        error = f"E = {float(self.error):.6g}, t = {self.t}, {bits}"
        first = [
            Condition(self.d >= 2, "d >= 2", f"d = {self.d}"),
            Condition(beta >= 1, "beta >= 1", bits),
            Condition(M % 2 == 1, "M odd", "A holds an even modulus"),
            Condition(gcd(M, B) == 1, "gcd(A, B) = 1", f"they share {gcd(M, B)}"),
            Condition(self.error + Fraction(2 * beta, M) <= 1, "E + 2 beta / M <= 1", error),
            Condition(result <= self.kappa, "1 + E + beta q_max / M <= kappa", f"{float(result):.6g} > 2, {bits}"),
            Condition(self.side <= 1 << (self.a.w - 1), "g < w", f"2^g = {self.side}, w = {self.a.w}"),
        ]
        if not all(c.holds for c in first):
            return first
        limit = self.second.exact.limit
        return [*first, Condition(h + 1 < limit, "h_max + 1 < exact limit over B", f"{h + 1} >= {limit}")]

    @cached_property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """Exclusive bounds of operands and of results, as multiples of p: kappa (M + M^2 + ... + M^d) / p."""
        bound = self.kappa * sum(self.a.M ** (k + 1) for k in range(self.d)) / self.p
        return bound, bound

    def encode(self, x: int) -> list[Digit]:
        """The digits of x, each below M. Raises ValueError unless 0 <= x < M^d."""
        if not 0 <= x < self.a.M**self.d:
            raise ValueError(f"encode takes 0 <= x < M^{self.d} = p + {self.beta}, got {x}")
        return self.digits([x // self.a.M**k % self.a.M for k in range(self.d)])

    def digits(self, values: Sequence[int]) -> list[Digit]:
        """The stored form of d digits. Raises ValueError unless each is in 0 ... kappa M."""
        if len(values) != self.d or not all(0 <= v < self.kappa * self.a.M for v in values):
            raise ValueError(f"{self.d} digits in 0 ... {float(self.kappa):.6g} M are needed, got {list(values)}")
        return [(self.a.residues(v), self.b.residues(v), v % self.side) for v in values]

    def decode(self, x: Sequence[Digit]) -> int:
        """sum X_i M^i. Raises ValueError if a digit's residues disagree or the digit is not below kappa M."""
        values = [self.b.number(in_b) for _, in_b, _ in x]
        if self.digits(values) != list(x):
            raise ValueError(f"the residues of a digit disagree: {list(x)}")
        return sum(v * self.a.M**k for k, v in enumerate(values))

    def multiply(self, x: Sequence[Digit], y: Sequence[Digit], tally: Tally | None = None) -> list[Digit]:
        """Digits of a number congruent to x y modulo p."""
        tally = tally or self.first.tally()
        d, beta, M, side = self.d, self.beta, self.a.M, self.side
        C = self._products(x, y, tally)
        c_a, c_b = [k[: self.a.n] for k in C], [k[self.a.n :] for k in C]
        targets = (*self.b.moduli, side)
        low, high = [], []  # l_k in B, 2^g; h_k + 1 in A, B, 2^g
        for in_a, in_b in zip(c_a, c_b, strict=True):
            l = self.first.extend(in_a, tally)
            h = [
                tally.add(tally.mm(tally.add(s, -v, m), pow(M, -1, m), m), 1, m)
                for s, v, m in zip(in_b, l, targets, strict=True)
            ]
            low.append(l)
            high.append([*self.second.extend(h[:-1], tally), *h])
        S = []
        for k in range(d):
            from_below = high[k - 1] if k else [tally.small(beta * h) for h in high[-1]]
            parts = zip([*c_a[k], *low[k]], from_below, self._moduli, strict=True)
            S.append([tally.add(tally.add(l, h, m), self._constants[k], m) for l, h, m in parts])
        q = [self._excess(s, tally) for s in S]
        out: list[Digit] = []
        for k, s in enumerate(S):
            carry = q[k - 1] if k else tally.small(beta * q[-1])
            digit = [
                tally.add(tally.add(v, -tally.small(q[k] * (M % m)), m), carry, m)
                for v, m in zip(s, self._moduli, strict=True)
            ]
            out.append((digit[: self.a.n], digit[self.a.n : -1], digit[-1]))
        return out

    @property
    def _constants(self) -> tuple[int, ...]:
        """The digits of p minus 1, because every h_k is too large by 1."""
        return (self.a.M - 2 * self.beta, *(self.a.M - 2 for _ in range(1, self.d)))

    @property
    def _moduli(self) -> tuple[int, ...]:
        return (*self.a.moduli, *self.b.moduli, self.side)

    def _products(self, x: Sequence[Digit], y: Sequence[Digit], tally: Tally) -> list[list[int]]:
        """C_k in A, B, 2^g."""
        d = self.d
        xs, ys = ([[*in_a, *in_b, s] for in_a, in_b, s in v] for v in (x, y))
        C = []
        for k in range(d):
            digit = []
            for m, channel in zip(self._moduli, range(len(self._moduli)), strict=True):
                sums = [0, 0]
                for i in range(d):
                    part = tally.mm(xs[i][channel], ys[(k - i) % d][channel], m)
                    sums[i > k] = tally.add(sums[i > k], part, m)
                digit.append(tally.add(sums[0], tally.small(self.beta * sums[1]), m))
            C.append(digit)
        return C

    def _excess(self, s: Sequence[int], tally: Tally) -> int:
        """q_k."""
        low = self.narrow.extend(s[: self.a.n], tally)[0]
        return tally.mm((s[-1] - low) % self.side, pow(self.a.M, -1, self.side), self.side)

    @property
    def count(self) -> Count:
        """Operations of one product, counted in a run."""
        tally = self.first.tally()
        one = self.encode(1)
        self.multiply(one, one, tally)
        return tally.count

    @property
    def formula(self) -> Formula:
        """The closed formula of the multiplications in one product, n = d n_A."""
        d, n_a, n_b, c = self.d, self.a.n, self.b.n, self.c
        inner = d * (n_a // c * n_b + n_b // c * n_a)
        mm = d * d * (n_a + n_b) + inner + 2 * d * (n_a + n_b)
        text = "d^2 (n_A + n_B) + 2 d n_A n_B / c + 2 d (n_A + n_B) MM"
        if c == 1:
            return Formula(text, Count(mm=mm))
        return Formula(f"{text} + 2 d n_A n_B / c MR + d (n_A + n_B) MUL", Count(mm, inner, d * (n_a + n_b)))


@dataclass(frozen=True)
class HprPrime:
    """A prime p = M^d - beta, where M is the product of base ``a``."""

    p: int
    a: Base
    d: int
    beta: int


def hpr_primes(
    w: int, n: int, d: int, *, betas: Sequence[int] = (2,), pool: int | None = None, seed: int = 0
) -> Iterator[HprPrime]:
    """Primes M^d - beta, M a product of n / d odd moduli 2^w - u, drawn from the first ``pool`` coprime ones.

    The same seed gives the same primes; no product M is drawn twice. The default pool has 4 n / d moduli, at least 32.
    Raises ValueError if d < 2, d does not divide n, a beta is not even and positive, or the pool is too small.
    """
    if d < 2 or n < d or n % d:
        raise ValueError(f"d must be at least 2 and divide n, got d = {d}, n = {n}")
    if odd := [beta for beta in betas if beta < 1 or beta % 2]:
        raise ValueError(f"beta must be even and positive, because M is odd, got {odd[0]}")
    k = n // d
    pool = max(4 * k, 32) if pool is None else pool
    moduli = list(islice(pseudo_mersenne(w), pool))
    if len(moduli) < max(k, pool):
        raise ValueError(f"{max(k, pool)} coprime moduli of {w} bits are wanted, there are {len(moduli)}")
    products = map(Base, repeat(w), _draws(moduli, k, random.Random(seed)))
    found = (HprPrime(base.M**d - beta, base, d, beta) for base in products for beta in betas)
    return (prime for prime in found if is_prime(prime.p))


def _draws(moduli: Sequence[int], k: int, rnd: random.Random) -> Iterator[tuple[int, ...]]:
    """All choices of k moduli, the largest first, in random order."""
    seen: set[tuple[int, ...]] = set()
    while len(seen) < comb(len(moduli), k):
        drawn = tuple(sorted(rnd.sample(moduli, k), reverse=True))
        if drawn not in seen:
            seen.add(drawn)
            yield drawn
