# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Polynomials with integer coefficients over numbers of which only ranges are known, each made only once, with the
facts that give its range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd, prod

from modmill.proofs.arithmetic.reasons import GIVEN, Atom, Cut, Fact, Product, Step, Sum, Why, parts

Monomial = tuple[int, ...]
"""Numbers of atoms, in order; the empty one is 1."""
ONE: Monomial = ()
End = tuple[int, Fact | None]
"""A bound, and the fact that says so; None: the ranges of the terms."""
Known = tuple[int, tuple[tuple[Monomial, int], ...], int, tuple[int, Fact], tuple[int, Fact]]
"""f, other terms, a constant, and the ends of f times a number plus these terms and the constant."""


class Expression:
    """A polynomial: coefficients that are not 0, by monomial; ``low`` and ``high``: it is in this range, which
    ``least`` and ``most`` say; None: the ranges of the terms. `Polynomials` makes each only once."""

    __slots__ = ("hash", "high", "least", "low", "most", "terms")

    def __init__(self, terms: dict[Monomial, int], hash_: int, low: int, high: int) -> None:
        self.terms, self.hash, self.low, self.high = terms, hash_, low, high
        self.least: Fact | None = None
        self.most: Fact | None = None

    def __hash__(self) -> int:
        return self.hash

    @property
    def constant(self) -> int | None:
        """The value, if it has no atoms."""
        if not self.terms:
            return 0
        return self.terms.get(ONE) if len(self.terms) == 1 else None


@dataclass
class Number:
    """A number in [low, high]; floor(``inner`` / 2^``shift``) if there is an ``inner``."""

    name: str
    low: int
    high: int
    inner: Expression | None = None
    shift: int = 0
    cut: Cut | None = None


@dataclass
class Polynomials:
    """All expressions of a proof. ``atoms``: what their monomials name by number, in the order in which they came.
    ``steps``: why everything is so."""

    atoms: list[Number] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    _made: dict[frozenset[tuple[Monomial, int]], Expression] = field(default_factory=dict)
    _facts: list[Expression] = field(default_factory=list)
    _known: dict[Monomial, list[Expression]] = field(default_factory=dict)
    _digits: dict[Monomial, list[Expression]] = field(default_factory=dict)
    _of_newest: dict[tuple[Monomial, bool], Known] = field(default_factory=dict)
    _whole: list[Expression] = field(default_factory=list)

    def make(self, terms: dict[Monomial, int]) -> Expression:
        """The expression of these terms, without those of coefficient 0."""
        terms = {m: c for m, c in terms.items() if c}
        key = frozenset(terms.items())
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = Expression(terms, hash(key), *self._range(terms))
        return found

    def number(self, value: int) -> Expression:
        """A constant."""
        return self.make({ONE: value})

    def atom(self, name: str, low: int, high: int) -> Expression:
        """A new number of which only the range is known, both ends included."""
        self.steps.append(Atom(len(self.atoms), low, high))
        return self._new(Number(name, low, high))

    def _new(self, atom: Number) -> Expression:
        self.atoms.append(atom)
        return self.make({(len(self.atoms) - 1,): 1})

    def sum(self, terms: Iterable[tuple[int, Expression]]) -> Expression:
        """The sum of multiples."""
        total: dict[Monomial, int] = {}
        low = high = 0
        given = list(terms)
        for factor, part in given:
            for monomial, c in part.terms.items():
                total[monomial] = total.get(monomial, 0) + factor * c
            ends = factor * part.low, factor * part.high
            low, high = low + min(ends), high + max(ends)

        def why(sign: int) -> Sum:
            return Sum(1, parts((abs(f), part.most if sign * f > 0 else part.least) for f, part in given))

        return self.within(self.make(total), low, high, why)

    def product(self, x: Expression, y: Expression) -> Expression:
        """x y."""
        total: dict[Monomial, int] = {}
        for m, c in x.terms.items():
            for n, d in y.terms.items():
                monomial, sign = self._times(m, n) if m and n else (m or n, 1)
                total[monomial] = total.get(monomial, 0) + sign * c * d
        ends = x.low * y.low, x.low * y.high, x.high * y.low, x.high * y.high
        of = Product(x, y, (x.least, x.most, y.least, y.most))
        return self.within(self.make(total), min(ends), max(ends), lambda _: of)

    def _times(self, m: Monomial, n: Monomial) -> tuple[Monomial, int]:
        """The product of monomials, and its sign: x x = x if x is 0 or 1, x x = -x if it is 0 or -1."""
        kept, sign = list(m), 1
        for a in n:
            atom = self.atoms[a]
            if a in m and (atom.low, atom.high) in ((0, 1), (-1, 0)):
                sign *= atom.low + atom.high
            else:
                kept.append(a)
        return tuple(sorted(kept)), sign

    def modulo(self, x: Expression, bits: int) -> Expression:
        """An expression congruent to x modulo 2^bits, with coefficients from -2^(bits - 1) to 2^(bits - 1)."""
        return self.make({m: centred(c, bits) for m, c in x.terms.items()})

    def _plus(self, terms: dict[Monomial, int], other: Expression) -> Expression:
        total = dict(terms)
        for m, c in other.terms.items():
            total[m] = total.get(m, 0) + c
        return self.make(total)

    def within(self, x: Expression, low: int, high: int, why: Callable[[int], Why] = lambda _: GIVEN) -> Expression:
        """x, which is in [low, high]; ``why``: of an end (1: the upper one, -1: the lower one), which is given if
        nothing is said."""
        if low > x.low or high < x.high:
            if low > x.low:
                x.low, x.least = low, self.fact(x, -1, -low, why(-1))
            if high < x.high:
                x.high, x.most = high, self.fact(x, 1, high, why(1))
            self._remember(x)
            if len(x.terms) == 1:
                ((m, c),) = x.terms.items()
                if len(m) == 1 and c == 1:
                    self.atoms[m[0]].low, self.atoms[m[0]].high = x.low, x.high
        return x

    def fact(self, x: Expression, sign: int, bound: int, why: Why) -> Fact:
        """A new step: ``sign`` times x is at most ``bound``."""
        fact = Fact(x, sign, bound, why)
        self.steps.append(fact)
        return fact

    def end(self, x: Expression, sign: int) -> Fact:
        """The fact of an end of x."""
        if sign > 0:
            x.most = x.most or self.fact(x, 1, x.high, Sum())
            return x.most
        x.least = x.least or self.fact(x, -1, -x.low, Sum())
        return x.least

    def _remember(self, x: Expression) -> None:
        """Note that the range of x says more than those of its atoms."""
        newest = max(x.terms, key=newer)
        if len(x.terms) > 1 and self._is_floor(newest):
            widest = max((m for m in x.terms if m), key=lambda m: (self._width(m), m))
            alone = len(widest) > 1 or sum(widest[0] in m for m in x.terms) == 1
            if alone and x.terms[widest] in (1, -1) and x not in (digits := self._digits.setdefault(widest, [])):
                digits.append(x)
        if len(x.terms) > 1:
            facts = self._known.setdefault(newest, [])
            if x not in facts:
                facts.append(x)
            for closest in (False, True):
                self._of_newest.pop((newest, closest), None)

    def _width(self, m: Monomial) -> int:
        low, high = self.span(m)
        return high - low

    def _is_floor(self, m: Monomial) -> bool:
        return len(m) == 1 and self.atoms[m[0]].inner is not None

    def is_free(self, x: Expression) -> bool:
        """Whether x is one number that is no floor."""
        return len(x.terms) == 1 and all(len(m) == 1 and not self._is_floor(m) for m in x.terms)

    def _parts(self, x: Expression) -> tuple[int, int, Expression]:
        """x = constant + common expression, with the largest ``common``."""
        terms = {m: c for m, c in x.terms.items() if m}
        common = gcd(*terms.values())
        return x.terms.get(ONE, 0), common, self.make({m: c // common for m, c in terms.items()})

    def _range(
        self, terms: Mapping[Monomial, int], others: Mapping[int, tuple[int, int]] | None = None
    ) -> tuple[int, int]:  # fmt: skip
        """Bounds of a polynomial from the ranges of its monomials. ``others``: of numbers that are no atoms."""
        low = high = 0
        for m, c in terms.items():
            a, b = self._monomial(m, others) if others else self.span(m)
            if c > 0:
                low, high = low + c * a, high + c * b
            else:
                low, high = low + c * b, high + c * a
        return low, high

    def span(self, m: Monomial) -> tuple[int, int]:
        """The range of a monomial, from those of its atoms."""
        if len(m) == 1:
            atom = self.atoms[m[0]]
            return atom.low, atom.high
        return self._monomial(m, {})

    def _monomial(self, m: Monomial, others: Mapping[int, tuple[int, int]]) -> tuple[int, int]:
        low = high = 1
        for a in m:
            least, most = others[a] if a in others else (self.atoms[a].low, self.atoms[a].high)
            ends = (low * least, low * most, high * least, high * most)
            low, high = min(ends), max(ends)
        return low, high


def newer(m: Monomial) -> Monomial:
    """The order of monomials: that of their newest atoms."""
    return m[::-1]


def centred(c: int, bits: int) -> int:
    """c modulo 2^bits, above -2^(bits - 1) and not above 2^(bits - 1)."""
    half = 1 << bits - 1
    r = c & (half << 1) - 1
    return r - (half << 1) if r > half else r


def value(x: Expression, atoms: Sequence[Number], known: dict[int, int]) -> int:
    """The number that x is, for values of the atoms that are no floors; those of floors are added to ``known``."""

    def of(number: int) -> int:
        if number not in known:
            atom = atoms[number]
            if atom.inner is None:
                raise KeyError(f"no value for {atom.name or number}")
            known[number] = value(atom.inner, atoms, known) >> atom.shift
        return known[number]

    return sum(c * prod(map(of, m)) for m, c in x.terms.items())
