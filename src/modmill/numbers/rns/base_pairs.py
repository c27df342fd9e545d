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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import ceil, floor, gcd, log2
from typing import Any

from modmill.numbers.rns.choice_of_moduli import MAX_CHANNELS, choose_moduli, light_moduli
from modmill.numbers.rns.cox import Cox, EitherCox, Loop
from modmill.numbers.rns.residues import Base
from modmill.numbers.shown import shortened


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
    def largest_u(self) -> int:
        """The largest u over all moduli 2^w - u."""
        return max(*self.a.u, *self.b.u)


def deal(moduli: Sequence[int], columns: int = 1, *, proved: bool = False) -> BasePair:
    """Deal moduli of one width alternately to A and B, the first to A; rows are ``columns`` neighbours in a base.
    Raises ValueError if their number is odd or does not fill the rows, or if two share a factor."""
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
    1. ``wanted``: the operand bound lambda to check; None takes the largest that closes the loop. ``either``: the
    inequalities hold for all 2^n pairs of bases that exchange moduli a_i and b_i, with the same bounds for all. Raises
    ValueError for p < 3, products < 1 and a t out of range.
    """

    pair: BasePair
    p: int
    t: int
    products: int = 1
    first_cox: bool = False
    lazy: bool = True
    wanted: Fraction | None = None
    either: bool = False

    def __post_init__(self) -> None:
        if self.p < 3 or self.products < 1:
            raise ValueError(f"p must be at least 3 and products at least 1, got {self.p} and {self.products}")
        _ = self.coxes  # raises ValueError for a t out of range

    @cached_property
    def coxes(self) -> tuple[Cox, Cox]:
        """The cox of A (used only with ``first_cox``) and that of B, with t fraction bits."""
        a, b, columns = self.pair.a, self.pair.b, self.pair.columns
        return Cox(a, self.t, columns, self.lazy), Cox(b, self.t, columns, self.lazy)

    @cached_property
    def bounding(self) -> tuple[Cox, Cox]:
        """The coxes from which the bounds follow, of A and of B: `coxes`, or with ``either`` the worst of each."""
        if not self.either:
            return self.coxes
        smaller, larger = zip(*map(sorted, zip(self.pair.a.moduli, self.pair.b.moduli, strict=True)), strict=True)
        worst = EitherCox(Base(self.pair.w, smaller), self.t, self.pair.columns, self.lazy, larger)
        return worst, worst

    @cached_property
    def gain(self) -> Fraction:
        """g: the first extension returns Q <= g A."""
        a = self.bounding[0]
        return a.bound if self.first_cox else a.most

    @cached_property
    def offset(self) -> int:
        """d of the second extension, in units of 2^-t; at least 2^t if no offset makes it exact."""
        return self.bounding[1].offset

    @cached_property
    def limit(self) -> int:
        """Exclusive bound of the results for which the second extension is exact."""
        return self.bounding[1].limit()

    @cached_property
    def loop(self) -> Loop:
        """The closed loop of dependent products."""
        return Loop(self.p, self.bounding[0].base, self.gain, self.limit, self.products)

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
        return floor((at - self.gain) / at**2 * Fraction(self.loop.a.M, self.p))

    @cached_property
    def inequalities(self) -> tuple[Inequality, ...]:
        """All conditions. If they all hold, chains of multiplications of any length are correct."""
        a, b, w = self.pair.a, self.pair.b, self.pair.w
        moduli = a.moduli + b.moduli
        lam, scale = self.operand, Fraction(1, self.p)
        top = ceil(lam * self.p) - 1
        exact_below = Fraction((1 << self.t) - self.offset, 1 << self.t) * self.bounding[1].base.M
        rows: tuple[tuple[str, str, Fraction | int, Fraction | int, bool], ...] = (
            ("smallest modulus", "2^(w-1) < min m", 1 << (w - 1), min(moduli), True),
            ("largest modulus", "max m <= 2^w", max(moduli), 1 << w, False),
            ("coprime to p", "gcd(A B, p) <= 1", gcd(a.M * b.M, self.p), 1, False),
            ("offset", "floor(2^t E_B) / 2^t < 1", Fraction(self.offset, 1 << self.t), 1, True),
            ("range of A", "4 G g <= A / p", 4 * self.products * self.gain, self.loop.a.M * scale, False),
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
    pair: BasePair, p: int, *, products: int = 1, first_cox: bool = False, lazy: bool = True, t: int | None = None,
    either: bool = False,
) -> Sufficiency:  # fmt: skip
    """The inequalities for the smallest t for which they hold, or for the given ``t``. If they hold for no t, the t
    with the largest range for results."""
    made = Sufficiency(pair, p, pair.columns * pair.w if t is None else t, products, first_cox, lazy, None, either)
    return made if t is not None else fewest_bits(made)


def fewest_bits(made: Sufficiency) -> Sufficiency:
    """``made``, which has the largest t, with the smallest t for which its inequalities hold; else as `sufficiency`."""
    hopeless = {"coprime to p", "offset", "range of A"}  # E and g grow as t falls
    if any(row.name in hopeless and not row.holds for row in made.inequalities):
        return made
    best = made
    for fewer in range(1, made.t + 1):
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
    light: bool = False,
    either: bool = False,
) -> tuple[BasePair, Sufficiency]:
    """The pair of bases for modulus ``p`` with the least n, a multiple of ``columns``; or the given ``n``, checked.

    Moduli come from `choose_moduli`, or with ``light`` from `light_moduli`; they are coprime to p, and dealt
    alternately. The least n is the least for which all inequalities hold, not the least with n w > log2 p. ``p`` >= 3.
    ``either`` as in `Sufficiency`.
    Raises ValueError with the inequality that fails and its numbers, or if there are too few moduli.
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
            if light:
                choice = light_moduli(w, 2 * count, avoid=p)
            else:
                choice = choose_moduli(w, 2 * count, even=even, digits=digits, avoid=p)
        except ValueError:
            if failed is None:
                raise
            break
        pair = deal(choice.moduli, columns, proved=choice.proved)
        found = sufficiency(pair, p, products=products, first_cox=first_cox, either=either)
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
