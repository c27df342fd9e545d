# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Pairs of bases for RNS Montgomery multiplication modulo p: a choice of moduli, and the proof that they suffice.

Sources: S. Kawamura, M. Koike, F. Sano, A. Shimbo: Cox-Rower Architecture for Fast Parallel Montgomery Multiplication.
EUROCRYPT, 2000 (one modulus per row: KBE). L. Djath, K. Bigou, A. Tisserand: Hierarchical Approach in RNS Base
Extension for Asymmetric Cryptography. ARITH, 2019 (rows of c moduli: HBE).

    S = (sum of G products X Y + Q p) / A,  X, Y < lambda p,  Q = -(sum X Y) p^-1 mod A, extended from A to B
    Q <= g A                                g = 1 + E_A with a cox of offset 0, sum of the largest Xhat_i / A_i without
    S < (G lambda^2 p / A + g) p            so results are operands again when G lambda^2 p / A + g <= lambda
    S extended from B to A exactly          when d = floor(2^t E_B) < 2^t and S < (1 - d / 2^t) B

The inequalities are evaluated in exact fractions, for the given moduli. The HBE paper's rule n w > log2 p does not
suffice: at n w = 384 the product A of the moduli can be below a 384-bit p, and A >= 4 G g p is needed. The papers'
sufficient conditions n (e + d) <= alpha are not used: they refuse bases that work (RSA-2048 in 17-bit channels) and,
applied to rows of c moduli, accept bases that fail, because Xhat_i / A_i may reach c.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import islice
from math import comb, gcd, log2
from typing import Any

from modmill.numbers.primes import is_prime
from modmill.numbers.rns.cox import Cox, Loop, first_bound
from modmill.numbers.rns.residues import Base, coprime, pseudo_mersenne
from modmill.numbers.shown import shortened

MAX_CHANNELS = 1024
"""Largest number of moduli in one base."""

_EXACT_CANDIDATES = 5000
_DEEPEST = 200


@dataclass(frozen=True)
class Choice:
    """Pairwise coprime moduli 2^w - u in ascending u; ``proved``: no choice of the same size has a smaller largest
    u."""

    w: int
    u: tuple[int, ...]
    proved: bool

    @property
    def moduli(self) -> tuple[int, ...]:
        """The moduli, largest first."""
        return tuple((1 << self.w) - u for u in self.u)


def choose_moduli(
    w: int, count: int, *, even: bool = True, digits: int | None = None, avoid: int = 1, effort: int = 1000
) -> Choice:
    """``count`` pairwise coprime moduli 2^w - u, 0 <= u < 2^(w-1), with the smallest largest u.

    u is odd, or 0 where ``even`` lets 2^w in; ``digits`` keeps only u with at most that many signed digits (folding is
    then a few additions); all moduli are coprime to ``avoid``. At most one multiple of each prime can be taken: this is
    a largest independent set in the graph of candidates that share a factor. The search stops after ``effort`` branches
    per bound on u, the same on every machine; when it does, or beyond 5000 candidates, the best choice known (at worst
    the greedy one) comes with ``proved`` = False. A solver such as CP-SAT finds as many moduli, but often others: the
    choice must not change with a solver's version, because the emitted RTL follows from it.

    Raises ValueError if there are fewer such moduli, and for w < 2, count outside 1 ... 2048 or digits < 1.
    """
    if w < 2:
        raise ValueError(f"moduli need at least 2 bits, got w = {w}")
    if not 1 <= count <= 2 * MAX_CHANNELS:
        raise ValueError(f"the number of moduli must be in 1 ... {2 * MAX_CHANNELS}, got {count}")
    if digits is not None and digits < 1:
        raise ValueError(f"u needs at least 1 signed digit, got digits = {digits}")
    for bits in range(1, w):
        candidates = [m for u in _distances(bits, even, digits) if gcd(m := (1 << w) - u, avoid) == 1]
        taken = list(islice(coprime(candidates), count))
        if len(taken) == count:
            candidates = candidates[: candidates.index(taken[-1]) + 1]
            break
    exact = len(candidates) <= _EXACT_CANDIDATES
    conflicts = _conflicts(candidates) if exact else []
    proved = exact
    # fewest candidates, in ascending u, that hold `count` coprime ones
    low, high = count, len(candidates) + (len(taken) < count)
    while exact and low < high:
        middle = (low + high) // 2
        try:
            found = _largest_independent(conflicts, (1 << middle) - 1, _Effort(effort))
        except _ExhaustedError:
            proved, found = False, 0
        if found.bit_count() >= count:
            high = middle
            taken = [m for i, m in enumerate(candidates) if found >> i & 1][:count]
        else:
            low = middle + 1
    if len(taken) < count:
        sort = f"2^{w} - u, {'u = 0 or ' if even else ''}u odd{f' with {digits} signed digits' if digits else ''}"
        raise ValueError(
            f"{'there are' if proved else 'the search finds'} fewer than {count} pairwise coprime moduli {sort}"
            f"{' and coprime to the modulus' if avoid != 1 else ''}: a greedy search finds {len(taken)}"
        )
    return Choice(w, tuple((1 << w) - m for m in taken), proved)


def _distances(bits: int, even: bool, digits: int | None) -> list[int]:
    """The candidates u < 2^bits in ascending order."""
    zero = [0] if even else []
    if digits is None or 2 * digits > bits:  # no u below 2^bits has more than bits / 2 + 1 signed digits
        return [*zero, *range(1, 1 << bits, 2)]
    steps = [sign << k for k in range(2, bits + 1) for sign in (1, -1)]
    sums = {1, -1}
    for _ in range(digits - 1):  # sums of a number's lowest digits never pass 2^bits
        sums |= {s + step for s in sums for step in steps if abs(s + step) < 1 << bits}
    return [*zero, *sorted(u for u in sums if 0 < u < 1 << bits)]


def _conflicts(moduli: Sequence[int]) -> list[int]:
    """For each modulus the set (as bits of an integer) of those that share a factor with it."""
    sets = [0] * len(moduli)
    for i, a in enumerate(moduli):
        for j in range(i):
            if gcd(a, moduli[j]) != 1:
                sets[i] |= 1 << j
                sets[j] |= 1 << i
    return sets


class _ExhaustedError(Exception):
    """The search has used up its effort."""


@dataclass
class _Effort:
    left: int

    def spend(self, depth: int) -> None:
        self.left -= 1
        if self.left < 0 or depth > _DEEPEST:
            raise _ExhaustedError


def _largest_independent(conflicts: Sequence[int], alive: int, effort: _Effort, depth: int = 0) -> int:
    """A largest set of vertices without a conflict, among those ``alive``. Raises _ExhaustedError."""
    effort.spend(depth)
    taken, alive = _without_dominated(conflicts, alive)
    while alive:
        part = _component(conflicts, alive)
        alive &= ~part
        vertex = max(_vertices(part), key=lambda v: (conflicts[v] & part).bit_count())
        rest = part & ~(1 << vertex)
        without = _largest_independent(conflicts, rest, effort, depth + 1)
        having = _largest_independent(conflicts, rest & ~conflicts[vertex], effort, depth + 1) | 1 << vertex
        taken |= max(without, having, key=int.bit_count)
    return taken


def _without_dominated(conflicts: Sequence[int], alive: int) -> tuple[int, int]:
    """Take vertices without conflicts; drop each vertex whose conflicts include all conflicts of a neighbour.

    In a largest independent set that neighbour can replace such a vertex. Returns (taken, still open).
    """
    taken = 0
    before = -1
    while alive != before:
        before = alive
        for v in _vertices(before):
            if not alive >> v & 1:
                continue
            closed = conflicts[v] & alive | 1 << v
            for x in _vertices(closed & ~(1 << v)):
                if not closed & ~(conflicts[x] | 1 << x):
                    alive &= ~(1 << x)
                    closed &= ~(1 << x)
            if closed == 1 << v:
                taken |= closed
                alive &= ~closed
    return taken, alive


def _component(conflicts: Sequence[int], alive: int) -> int:
    """The vertices connected with the first."""
    part = front = alive & -alive
    while front:
        v = front.bit_length() - 1
        new = conflicts[v] & alive & ~part
        part |= new
        front = front & ~(1 << v) | new
    return part


def _vertices(members: int) -> Iterator[int]:
    while members:
        low = members & -members
        yield low.bit_length() - 1
        members ^= low


@dataclass(frozen=True)
class BasePair:
    """Bases ``a`` and ``b`` of n moduli each, all 2n pairwise coprime, in rows of ``columns``.

    ``proved``: no other 2n moduli of the requested kind have a smaller largest u.
    Raises ValueError, with the numbers, if widths or lengths differ, rows are not full, or moduli share a factor.
    """

    a: Base
    b: Base
    columns: int = 1
    proved: bool = False

    def __post_init__(self) -> None:
        if (self.a.w, self.a.n) != (self.b.w, self.b.n):
            raise ValueError(f"A has {self.a.n} moduli of {self.a.w} bits, B {self.b.n} of {self.b.w}, not the same")
        if self.columns < 1 or self.n % self.columns:
            raise ValueError(f"{self.n} moduli do not fill rows of {self.columns}; take a multiple of {self.columns}")
        Base(self.w, self.a.moduli + self.b.moduli)  # raises ValueError for a common factor

    @property
    def w(self) -> int:
        """Channel width in bits."""
        return self.a.w

    @property
    def n(self) -> int:
        """Moduli in each base."""
        return self.a.n

    @property
    def r(self) -> int:
        """Rows in each base."""
        return self.n // self.columns

    @property
    def largest_u(self) -> int:
        """The largest u over all moduli 2^w - u."""
        return max(*self.a.u, *self.b.u)

    def cox(self, t: int, *, lazy: bool = True) -> tuple[Cox, Cox]:
        """The coxes of A and of B, with ``t`` fraction bits."""
        return Cox(self.a, t, self.columns, lazy), Cox(self.b, t, self.columns, lazy)


def deal(moduli: Sequence[int], columns: int = 1, *, proved: bool = False) -> BasePair:
    """Deal moduli of one width alternately to A and B, the first to A; rows are ``columns`` neighbours in a base.

    Raises ValueError if their number is odd or does not fill the rows, or if two share a factor.
    """
    if not moduli or len(moduli) % 2:
        raise ValueError(f"{len(moduli)} moduli cannot be dealt to two bases; give an even number, at least 2")
    w = (moduli[0] - 1).bit_length()
    return BasePair(Base(w, tuple(moduli[::2])), Base(w, tuple(moduli[1::2])), columns, proved)


@dataclass(frozen=True)
class Inequality:
    """One condition: ``left`` < ``right`` where ``strict``, else ``left`` <= ``right``; both sides exact."""

    name: str
    text: str
    left: Fraction
    right: Fraction
    strict: bool = False

    @property
    def holds(self) -> bool:
        """Whether the inequality is true."""
        return self.left < self.right if self.strict else self.left <= self.right

    @property
    def numbers(self) -> str:
        """Both sides and their true relation; ~ marks rounded numbers."""
        sign = "<" if self.left < self.right else ">" if self.left > self.right else "="
        return f"{approximate(self.left)} {sign} {approximate(self.right)}"


def approximate(x: Fraction | int) -> str:
    """A number for display: six digits, or a power of two from 10^6; ~ marks rounded numbers."""
    x = Fraction(x)
    if abs(x) < 10**6:
        text = f"{float(x):.6g}"
        return text if Fraction(text) == x else f"~{text}"
    return f"{'-' if x < 0 else ''}~2^{log2(abs(x.numerator)) - log2(x.denominator):.3f}"


@dataclass(frozen=True)
class Sufficiency:
    """The inequalities that make ``pair`` sufficient for Montgomery multiplication modulo ``p`` in a closed loop.

    ``t``: fraction bits of the cox of the second extension and, with ``first_cox`` (offset 0), of the first.
    ``products``: G, the number of products in the sum before one reduction. ``lazy``: residues reach 2^w - 1, not m -
    1. ``wanted``: the operand bound lambda to check; None takes the largest that closes the loop. Raises ValueError for
    p < 3, products < 1 and a t out of range.
    """

    pair: BasePair
    p: int
    t: int
    products: int = 1
    first_cox: bool = False
    lazy: bool = True
    wanted: Fraction | None = None

    def __post_init__(self) -> None:
        if self.p < 3 or self.products < 1:
            raise ValueError(f"p must be at least 3 and products at least 1, got {self.p} and {self.products}")
        _ = self.coxes  # raises ValueError for a t out of range

    @cached_property
    def coxes(self) -> tuple[Cox, Cox]:
        """The cox of A (used only with ``first_cox``) and that of B."""
        return self.pair.cox(self.t, lazy=self.lazy)

    @cached_property
    def gain(self) -> Fraction:
        """g: the first extension returns Q <= g A."""
        a = self.coxes[0]
        return first_bound(a if self.first_cox else None, self.pair.a, self.pair.columns, lazy=self.lazy)

    @cached_property
    def offset(self) -> int:
        """d of the second extension, in units of 2^-t; at least 2^t if no offset makes it exact."""
        return self.coxes[1].offset

    @cached_property
    def limit(self) -> int:
        """Exclusive bound of the results for which the second extension is exact."""
        return self.coxes[1].limit()

    @cached_property
    def loop(self) -> Loop:
        """The closed loop of dependent products."""
        return Loop(self.p, self.pair.a, self.gain, self.limit, self.products)

    @cached_property
    def operand(self) -> Fraction:
        """lambda: operands are below lambda p. If no loop closes, the lambda that comes nearest."""
        if self.wanted is not None:
            return self.wanted
        best = 2 * self.gain  # the lambda that needs the smallest A
        return self.loop.operand() or (min(best, self.loop.largest_result) if self.limit else best)

    @cached_property
    def result(self) -> Fraction:
        """Exclusive bound of results as a multiple of p, for operands below lambda p; at most lambda if `holds`."""
        return self.loop.result(self.products * self.operand**2)

    @cached_property
    def largest_products(self) -> int:
        """The largest G for which some lambda closes the loop over these bases; 0 if none does for G = 1."""
        at = min(2 * self.gain, self.loop.largest_result)  # (lambda - g) / lambda^2 is largest at 2 g
        if at <= self.gain:
            return 0
        most = (at - self.gain) / at**2 * Fraction(self.pair.a.M, self.p)
        return most.numerator // most.denominator

    @cached_property
    def inequalities(self) -> tuple[Inequality, ...]:
        """All conditions. If they all hold, chains of multiplications of any length are correct."""
        a, b, w = self.pair.a, self.pair.b, self.pair.w
        moduli = a.moduli + b.moduli
        lam, scale = self.operand, Fraction(1, self.p)
        top = -(-(lam * self.p).numerator // (lam * self.p).denominator) - 1
        exact_below = Fraction((1 << self.t) - self.offset, 1 << self.t) * b.M
        rows: tuple[tuple[str, str, Fraction | int, Fraction | int, bool], ...] = (
            ("smallest modulus", "2^(w-1) < min m", 1 << (w - 1), min(moduli), True),
            ("largest modulus", "max m <= 2^w", max(moduli), 1 << w, False),
            ("coprime to p", "gcd(A B, p) <= 1", gcd(a.M * b.M, self.p), 1, False),
            ("offset", "floor(2^t E_B) / 2^t < 1", Fraction(self.offset, 1 << self.t), 1, True),
            ("range of A", "4 G g <= A / p", 4 * self.products * self.gain, a.M * scale, False),
            ("closed loop", "G lambda^2 p / A + g <= lambda", self.result, lam, False),
            ("exact result", "(ceil(lambda p) - 1) / p < (1 - d / 2^t) B / p", top * scale, exact_below * scale, True),
        )
        return tuple(Inequality(name, text, Fraction(x), Fraction(y), strict) for name, text, x, y, strict in rows)

    @property
    def holds(self) -> bool:
        """Whether all inequalities hold."""
        return all(row.holds for row in self.inequalities)

    @property
    def refusal(self) -> str:
        """The first inequality that fails, in one line with its numbers; empty if all hold."""
        failed = next((row for row in self.inequalities if not row.holds), None)
        if failed is None:
            return ""
        return (
            f"{self.pair.n} + {self.pair.n} moduli of {self.pair.w} bits do not suffice for a modulus of "
            f"{self.p.bit_length()} bits (t = {self.t}): {failed.name}, {failed.text}, fails with {failed.numbers}"
        )

    def require(self) -> Sufficiency:
        """Returns itself. Raises ValueError with the text of ``refusal`` if an inequality fails."""
        if not self.holds:
            raise ValueError(self.refusal)
        return self

    def describe(self) -> dict[str, Any]:
        """Plain data; fractions are exact, as text."""
        return {
            "t": self.t,
            "offset": self.offset,
            "products": self.products,
            "largest_products": self.largest_products,
            "first_cox": self.first_cox,
            "lazy": self.lazy,
            "error_A": str(self.coxes[0].error),
            "error_B": str(self.coxes[1].error),
            "gain": str(self.gain),
            "operand_bound": str(self.operand),
            "result_bound": str(self.result),
            "holds": self.holds,
            "inequalities": [
                {"name": row.name, "text": row.text, "left": str(row.left), "right": str(row.right),
                 "numbers": row.numbers, "holds": row.holds} for row in self.inequalities
            ],
        }  # fmt: skip


def sufficiency(
    pair: BasePair, p: int, *, products: int = 1, first_cox: bool = False, lazy: bool = True, t: int | None = None
) -> Sufficiency:
    """The inequalities for the smallest t for which they hold, or for the given ``t``.

    If they hold for no t, the t with the largest range for results.
    """
    widest = pair.columns * pair.w
    made = Sufficiency(pair, p, widest if t is None else t, products, first_cox, lazy)
    hopeless = {"coprime to p", "offset", "range of A"}  # E and g grow as t falls
    if t is not None or any(row.name in hopeless and not row.holds for row in made.inequalities):
        return made
    best = made
    for fewer in range(1, widest + 1):
        made = replace(made, t=fewer)
        if made.holds:
            return made
        best = max(best, made, key=lambda s: s.limit)
    return best


def base_pair(
    p: int,
    w: int,
    columns: int = 1,
    *,
    n: int | None = None,
    products: int = 1,
    first_cox: bool = False,
    even: bool = True,
    digits: int | None = None,
    lazy: bool = True,
) -> tuple[BasePair, Sufficiency]:
    """The pair of bases for modulus ``p`` with the least n, a multiple of ``columns``; or the given ``n``, checked.

    Moduli come from `choose_moduli`, are coprime to p, and are dealt alternately. The least n is the least for which
    all inequalities hold, not the least with n w > log2 p. ``p`` >= 3. Raises ValueError with the inequality that fails
    and its numbers, or if there are too few moduli.
    """
    if p < 3:
        raise ValueError(f"the modulus must be at least 3, got {shortened(p)}")
    if columns < 1 or products < 1:
        raise ValueError(f"columns and products must be at least 1, got {columns} and {products}")
    if n is not None and (n < 1 or n > MAX_CHANNELS or n % columns):
        raise ValueError(f"n must be a multiple of {columns} in 1 ... {MAX_CHANNELS}, got {n}")
    # A <= 2^(n w) must reach 4 G p at least
    smallest = -(-(4 * products * p - 1).bit_length() // w) if w > 0 else 1
    tried = [n] if n is not None else range(-(-smallest // columns) * columns, MAX_CHANNELS + 1, columns)
    failed: Sufficiency | None = None
    for count in tried:
        try:
            choice = choose_moduli(w, 2 * count, even=even, digits=digits, avoid=p)
        except ValueError:
            if failed is None:
                raise
            break
        pair = deal(choice.moduli, columns, proved=choice.proved)
        found = sufficiency(pair, p, products=products, first_cox=first_cox, lazy=lazy)
        if found.holds:
            return pair, found
        failed = found
        if found.offset >= 1 << found.t:
            break  # further moduli are further from 2^w, and E is a sum over all
    if failed is None:
        raise ValueError(f"a modulus of {p.bit_length()} bits needs more than {MAX_CHANNELS} moduli of {w} bits")
    raise ValueError(failed.refusal)


def kawamura_condition(base: Base, t: int) -> Fraction:
    """n (e_m + d_m), at most alpha < 1 in Kawamura's theorems; e_m = max (2^w - m) / 2^w, d_m = max 2^-t-truncation.

    Sufficient for rows of one modulus and least residues, but not necessary: `Cox.error` has the exact sum.
    Raises ValueError for t outside 1 ... w.
    """
    if not 1 <= t <= base.w:
        raise ValueError(f"t must be in 1 ... {base.w}, got {t}")
    e = Fraction(max(base.u), 1 << base.w)
    d = Fraction((1 << (base.w - t)) - 1, min(base.moduli))
    return base.n * (e + d)


@dataclass(frozen=True)
class HprPrime:
    """A prime p = M^d - beta, where M is the product of base ``a``."""

    p: int
    a: Base
    d: int
    beta: int


def hpr_primes(
    w: int,
    n: int,
    d: int,
    *,
    betas: Sequence[int] = (2,),
    digits: int | None = None,
    pool: int | None = None,
    draws: int = 10_000,
    seed: int = 0,
) -> Iterator[HprPrime]:
    """Primes M^d - beta, M a product of n / d odd moduli 2^w - u, drawn from the first ``pool`` coprime ones.

    For hybrid position-residue numbers. K. Bigou, A. Tisserand: Single Base Modular Multiplication for Efficient
    Hardware RNS Implementations of ECC. CHES, 2015 (d = 2), and Hybrid Position-Residues Number System. ARITH, 2016.
    The same seed gives the same primes; no product M is drawn twice. The iterator ends after ``draws`` draws or when no
    products are left; the default pool has 4 n / d moduli, at least 32. Raises ValueError if d < 2, d does not divide
    n, a beta is not even and positive, or the pool is too small.
    """
    if d < 2 or n < d or n % d:
        raise ValueError(f"d must be at least 2 and divide n, got d = {d}, n = {n}")
    if odd := [beta for beta in betas if beta < 1 or beta % 2]:
        raise ValueError(f"beta must be even and positive, because M is odd, got {odd[0]}")
    k = n // d
    pool = max(4 * k, 32) if pool is None else pool
    moduli = list(islice(pseudo_mersenne(w, digits=digits), pool))
    if len(moduli) < max(k, pool):
        raise ValueError(f"{max(k, pool)} coprime moduli of {w} bits are wanted, there are {len(moduli)}")
    return _drawn_primes(w, k, d, betas, moduli, min(draws, comb(pool, k)), seed)


def _drawn_primes(
    w: int, k: int, d: int, betas: Sequence[int], moduli: Sequence[int], draws: int, seed: int
) -> Iterator[HprPrime]:
    rnd = random.Random(seed)
    seen: set[tuple[int, ...]] = set()
    while len(seen) < draws:
        drawn = tuple(sorted(sorted(moduli, key=lambda _: rnd.random())[:k], reverse=True))
        if drawn in seen:
            continue
        seen.add(drawn)
        base = Base(w, drawn)
        for beta in betas:
            if is_prime(p := base.M**d - beta):
                yield HprPrime(p, base, d, beta)
