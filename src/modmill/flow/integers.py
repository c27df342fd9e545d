# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Exact integer expressions: polynomials with integer coefficients over numbers of which only ranges are known, and
over floors of such polynomials divided by powers of two.

The words of a netlist are such expressions. Bits k, k + 1, ... of an expression E are the number floor(E / 2^k); so the
parts into which hardware cuts a number come together again when they are added, whatever was done in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import gcd, prod

from modmill.flow.reasons import (
    GIVEN,
    Atom,
    Choice,
    Cut,
    Equality,
    Fact,
    Lemma,
    Parts,
    Product,
    Split,
    Step,
    Sum,
    Why,
    parts,
)  # fmt: skip

Monomial = tuple[int, ...]
"""Numbers of atoms, in order; the empty one is 1."""
_ONE: Monomial = ()
_MOST_FACTORS = 3
"""Most multiples of what a floor leaves that are tried for a bound."""


class Expression:
    """A polynomial: coefficients that are not 0, by monomial; ``low`` and ``high``: it is in this range, which
    ``least`` and ``most`` say; None: the ranges of the terms. `Integers` makes each only once."""

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
        return self.terms.get(_ONE) if len(self.terms) == 1 else None


@dataclass
class _Atom:
    """A number in [low, high]; floor(``inner`` / 2^``shift``) if there is an ``inner``."""

    name: str
    low: int
    high: int
    inner: Expression | None = None
    shift: int = 0
    cut: Cut | None = None


End = tuple[int, Fact | None]
"""A bound, and the fact that says so; None: the ranges of the terms."""
_Case = tuple[int, tuple[int, Sum]]
"""A bound in one case, the factor of what is assumed in it, and why."""


@dataclass
class Integers:
    """All expressions of a proof. ``atoms``: what their monomials name by number, in the order in which they came.
    ``steps``: why everything is so."""

    atoms: list[_Atom] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    _made: dict[frozenset[tuple[Monomial, int]], Expression] = field(default_factory=dict)
    _atom_of: dict[tuple[Expression, int], int] = field(default_factory=dict)
    _lemmas: dict[tuple[Expression, int], Lemma] = field(default_factory=dict)
    _choices: dict[tuple[str, Expression, int], int | None] = field(default_factory=dict)
    _exact: dict[Expression, tuple[End, End]] = field(default_factory=dict)
    _facts: list[Expression] = field(default_factory=list)
    _equal: list[tuple[int, Expression, Equality]] = field(default_factory=list)
    _known: dict[Monomial, list[Expression]] = field(default_factory=dict)
    _digits: dict[Monomial, list[Expression]] = field(default_factory=dict)

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
        return self.make({_ONE: value})

    def atom(self, name: str, low: int, high: int) -> Expression:
        """A new number of which only the range is known, both ends included."""
        self.steps.append(Atom(len(self.atoms), low, high))
        return self._new(_Atom(name, low, high))

    def _new(self, atom: _Atom) -> Expression:
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
        return self.make({m: _centred(c, bits) for m, c in x.terms.items()})

    def floor(self, x: Expression, bits: int) -> Expression:
        """floor(x / 2^bits)."""
        if not bits:
            return x
        lemma = self._lemmas.get((x, bits))
        if lemma is None:
            least, most = (x.low, x.least), (x.high, x.most)
            if x.low >> bits != x.high >> bits:
                for ends in (self.ends, self.case_ends):
                    least, most = ends(x)
                    if least[0] >> bits == most[0] >> bits:
                        break
            if least[0] >> bits == most[0] >> bits:
                lemma = self._constant(x, bits, least, most)
            else:
                lemma = self._sign(x, bits) or self._floored(x, bits)
                self._narrow(lemma, least, most)
        elif lemma.value.constant is None:
            self._narrow(lemma, (x.low, x.least), (x.high, x.most))
        return lemma.value

    def lemma(self, x: Expression, bits: int) -> Lemma:
        """What is known of floor(x / 2^bits), which was asked for."""
        return self._lemmas[x, bits]

    def _narrow(self, lemma: Lemma, least: End, most: End) -> None:
        """Note the range of a floor, from that of what it is of."""

        def why(sign: int) -> Sum:
            pair = (most[1], lemma.least) if sign > 0 else (least[1], lemma.most)
            return Sum(1 << lemma.bits, parts((1, fact) for fact in pair))

        self.within(lemma.value, least[0] >> lemma.bits, most[0] >> lemma.bits, why)

    def _lemma(self, x: Expression, bits: int, value: Expression, most: Sum, least: Sum) -> Lemma:
        found = self._lemmas[x, bits] = Lemma(x, bits, value, (most, least))
        self.steps.append(found)
        return found

    def _constant(self, x: Expression, bits: int, least: End, most: End) -> Lemma:
        value = self.number(least[0] >> bits)
        return self._lemma(x, bits, value, Sum(1, parts([(1, most[1])])), Sum(1, parts([(1, least[1])])))

    def _floored(self, x: Expression, bits: int) -> Lemma:
        whole: dict[Monomial, int] = {}
        rest: dict[Monomial, int] = {}
        for m, c in x.terms.items():
            r = c & (1 << bits) - 1 if m == _ONE else _centred(c, bits)
            if r:
                rest[m] = r
            if c != r:
                whole[m] = (c - r) >> bits
        variable = [c for m, c in rest.items() if m != _ONE]
        if not variable:
            return self._lemma(x, bits, self.make(whole), Sum(), Sum())
        zeros = min((c & -c).bit_length() - 1 for c in variable)
        part = self.make({m: c >> zeros for m, c in rest.items()})
        lemma = self._lemmas.get((part, bits - zeros)) or self._part(part, bits - zeros)
        if part is x:
            return lemma
        most, least = Sum(1, ((1 << zeros, lemma.most),)), Sum(1, ((1 << zeros, lemma.least),))
        return self._lemma(x, bits, self._plus(whole, lemma.value), most, least)

    def _part(self, part: Expression, bits: int) -> Lemma:
        """The floor of an expression whose coefficients are below 2^bits and not all even."""
        least, most = (part.low, part.least), (part.high, part.most)
        if part.low >> bits == part.high >> bits:
            return self._constant(part, bits, least, most)
        if (merged := self._merged(part, bits)) is not None:
            return merged
        if part.terms[max(m for m in part.terms if m)] < 0:  # floor(-x / 2^k) = -1 - floor((x - 1) / 2^k)
            other = self._plus({_ONE: -1}, self.make({m: -c for m, c in part.terms.items()}))
            value = self.sum([(-1, self.floor(other, bits)), (-1, self.number(1))])
            of = self._lemmas[other, bits]
            return self._lemma(part, bits, value, Sum(1, ((1, of.least),)), Sum(1, ((1, of.most),)))
        number = self._atom_of.get((part, bits))
        if number is None:
            least, most = self.ends(part)
            low, high = least[0] >> bits, most[0] >> bits
            if low == high:
                return self._constant(part, bits, least, most)
            if (sign := self._sign(part, bits)) is not None:
                return sign
            number = self._atom_of[part, bits] = len(self.atoms)
            cut = Cut(number, part, bits, (least[1], most[1]))
            self.steps.append(cut)
            self._new(_Atom("", low, high, part, bits, cut))
        known = self.atoms[number].cut
        assert known is not None
        value = self.make({(number,): 1})
        return self._lemma(part, bits, value, Sum(1, ((1, known.most),)), Sum(1, ((1, known.least),)))

    def _sign(self, x: Expression, bits: int) -> Lemma | None:
        """floor(x / 2^bits) with fewer bits, if it has two values v - 1 and v: v if x >= v 2^bits, however small the
        power of two that is above \\|x - v 2^bits\\|. None if there is no smaller one."""
        (low, least), (high, most) = self.ends(x)
        value = high >> bits
        if low >> bits != value - 1:
            return None
        offset = value << bits
        fewer = max(offset - low - 1, high - offset).bit_length()
        coefficients = [c for m, c in x.terms.items() if m]
        while fewer < bits and not all(2 * abs(c) <= 1 << fewer or not c & (1 << fewer) - 1 for c in coefficients):
            fewer += 1
        if fewer >= bits:
            return None
        apart = self.sum([(1, x), (-1, self.number(offset))])
        found = self.floor(apart, fewer)
        of = self._lemmas.get((apart, fewer))  # none for 0 bits
        up, down = (of.most, of.least) if of else (None, None)
        end = self._fact(found, 1, 0, Sum(1 << fewer, parts([(1, most), (1, down)])))
        begin = self._fact(found, -1, 1, Sum(1 << fewer, parts([(1, least), (1, up)])))
        found = self.sum([(1, found), (1, self.number(value))])
        times = (1 << bits) - (1 << fewer)
        return self._lemma(
            x, bits, found, Sum(1, parts([(1, up), (times, begin)])), Sum(1, parts([(1, down), (times, end)]))
        )

    def _plus(self, terms: dict[Monomial, int], other: Expression) -> Expression:
        total = dict(terms)
        for m, c in other.terms.items():
            total[m] = total.get(m, 0) + c
        return self.make(total)

    def _merged(self, x: Expression, bits: int) -> Lemma | None:
        """floor((D +- floor(C / 2^j)) / 2^bits) as one floor, of the newest such part; None if there is none."""
        newest = max(
            (m[0] for m, c in x.terms.items() if len(m) == 1 and c in (1, -1) and self.atoms[m[0]].inner is not None),
            default=-1,
        )
        if newest < 0:
            return None
        atom = self.atoms[newest]
        assert atom.inner is not None and atom.cut is not None
        sign, j = x.terms[newest,], atom.shift
        total = {m: c << j for m, c in x.terms.items() if m != (newest,)}
        for m, c in atom.inner.terms.items():
            total[m] = total.get(m, 0) + sign * c
        if sign < 0:
            total[_ONE] = total.get(_ONE, 0) + (1 << j) - 1
        merged = self.make(total)
        value = self.floor(merged, j + bits)
        of, (up, down) = self._lemmas[merged, j + bits], (atom.cut.most, atom.cut.least)[::sign]
        return self._lemma(
            x, bits, value, Sum(1 << j, ((1, of.most), (1, down))), Sum(1 << j, ((1, of.least), (1, up)))
        )

    def choose(self, kind: str, x: Expression, bits: int, value: Callable[[], int | None]) -> int | None:
        """A decision about x, always the same one."""
        key = kind, x, bits
        if key not in self._choices:
            self._choices[key] = made = value()
            self.steps.append(Choice(kind, x, bits, made, (x.least, x.most) if made and kind == "apart" else ()))
        return self._choices[key]

    def asked(self, kind: str, x: Expression, bits: int) -> bool:
        """Whether this was decided already."""
        return (kind, x, bits) in self._choices

    # ---- ranges

    def within(self, x: Expression, low: int, high: int, why: Callable[[int], Why] = lambda _: GIVEN) -> Expression:
        """x, which is in [low, high]; ``why``: of an end (1: the upper one, -1: the lower one), which is given if
        nothing is said."""
        if low > x.low or high < x.high:
            if low > x.low:
                x.low, x.least = low, self._fact(x, -1, -low, why(-1))
            if high < x.high:
                x.high, x.most = high, self._fact(x, 1, high, why(1))
            self._remember(x)
            if len(x.terms) == 1:
                ((m, c),) = x.terms.items()
                if len(m) == 1 and c == 1:
                    self.atoms[m[0]].low, self.atoms[m[0]].high = x.low, x.high
        return x

    def _fact(self, x: Expression, sign: int, bound: int, why: Why) -> Fact:
        fact = Fact(x, sign, bound, why)
        self.steps.append(fact)
        return fact

    def end(self, x: Expression, sign: int) -> Fact:
        """The fact of an end of x."""
        if sign > 0:
            x.most = x.most or self._fact(x, 1, x.high, Sum())
            return x.most
        x.least = x.least or self._fact(x, -1, -x.low, Sum())
        return x.least

    def _remember(self, x: Expression) -> None:
        """Note that the range of x says more than those of its atoms."""
        newest = max(x.terms, key=_newer)
        if len(x.terms) > 1 and self._is_floor(newest):
            widest = max((m for m in x.terms if m), key=lambda m: (self._width(m), m))
            alone = len(widest) > 1 or sum(widest[0] in m for m in x.terms) == 1
            if alone and x.terms[widest] in (1, -1) and x not in (digits := self._digits.setdefault(widest, [])):
                digits.append(x)
        if len(x.terms) > 1 and not self._is_floor(newest):
            facts = self._known.setdefault(newest, [])
            if x not in facts:
                facts.append(x)

    def _width(self, m: Monomial) -> int:
        low, high = self._monomial(m, {})
        return high - low

    def _is_floor(self, m: Monomial) -> bool:
        return len(m) == 1 and self.atoms[m[0]].inner is not None

    def assume(self, x: Expression, bits: int, value: int) -> None:
        """From now on floor(x / 2^bits) is ``value``."""
        floor = self.floor(x, bits)
        lemma = self._lemmas.get((x, bits))  # none for 0 bits
        up, down = (lemma.most, lemma.least) if lemma else (None, None)
        self.steps.append(Choice("decide", x, bits, value, (x.least, x.most)))
        self.within(x, value << bits, (value + 1 << bits) - 1)
        self._facts.append(x)
        newest = max((m[0] for m in floor.terms if len(m) == 1), default=-1)
        if newest >= 0 and floor.terms[newest,] in (1, -1):
            sign = floor.terms[newest,]
            other = self.sum([(sign, self.number(value)), (-sign, floor), (1, self.make({(newest,): 1}))])
            most = self._fact(floor, 1, value, Sum(1 << bits, parts([(1, x.most), (1, down)])))
            least = self._fact(floor, -1, -value, Sum(1 << bits, parts([(1, x.least), (1, up)])))
            self._equal.append((newest, other, Equality(sign, floor, value, most, least)))
        self._lemmas.clear()

    def settled(self, x: Expression, equal: list[Equality]) -> Expression:
        """x with what is assumed in place of the floors of which it is known. ``equal`` gets what x has more."""
        for atom, other, known in self._equal:
            if c := x.terms.get((atom,), 0):
                x = self.sum([(1, x), (-c, self.make({(atom,): 1})), (c, other)])
                equal.append(replace(known, factor=c * known.factor))
        return x

    def matched(self, x: Expression, numbers: Sequence[int], equal: list[Equality]) -> Expression:
        """x with each of these atoms replaced by an older one of them, if their difference is known. ``equal`` gets
        what x has more."""
        for k, newer in reversed(list(enumerate(sorted(numbers)))):
            for older in sorted(numbers)[:k]:
                apart = self.make({(newer,): 1, (older,): -1})
                (low, least), (high, most) = self.close_ends(apart)
                if low == high and (c := x.terms.get((newer,), 0)):
                    x = self.sum([(1, x), (-c, apart), (c, self.number(low))])
                    sides = [fact or self.end(apart, sign) for sign, fact in ((1, most), (-1, least))]
                    equal.append(Equality(c, apart, low, *sides))
        return x

    def whole(self, x: Expression, end: End, sign: int, equal: Sequence[Equality]) -> Fact:
        """The bound of x, of which all but ``equal`` has this end."""
        pairs = [(abs(e.factor), e.most if sign * e.factor > 0 else e.least) for e in equal]
        return self._fact(x, sign, sign * end[0], Sum(1, parts([(1, end[1]), *pairs])))

    def _range(
        self, terms: Mapping[Monomial, int], others: Mapping[int, tuple[int, int]] | None = None
    ) -> tuple[int, int]:  # fmt: skip
        """Bounds of a polynomial from the ranges of its monomials. ``others``: of numbers that are no atoms."""
        low = high = 0
        for m, c in terms.items():
            a, b = self._monomial(m, others or {})
            if c > 0:
                low, high = low + c * a, high + c * b
            else:
                low, high = low + c * b, high + c * a
        return low, high

    def _monomial(self, m: Monomial, others: Mapping[int, tuple[int, int]]) -> tuple[int, int]:
        low = high = 1
        for a in m:
            least, most = others[a] if a in others else (self.atoms[a].low, self.atoms[a].high)
            ends = (low * least, low * most, high * least, high * most)
            low, high = min(ends), max(ends)
        return low, high

    def bounds(self, x: Expression) -> tuple[int, int]:
        """Bounds of x after the floors in it, newest first, are replaced by what they are the floors of."""
        (low, _), (high, _) = self.ends(x)
        return low, high

    def ends(self, x: Expression) -> tuple[End, End]:
        """`bounds`, with the facts that say so."""
        found = self._exact.get(x)
        if found is None:
            over, least, most = self._most(self.sum([(-1, x)])), (x.low, x.least), self._most(x)
            if -over[0] > least[0]:
                least = -over[0], over[1]
            constant, common, rest = self._parts(x)
            if common > 1:  # the rest is a whole number, whose ends may be closer
                (low, below), (high, above) = self.ends(rest)
                if (end := constant + common * low) > least[0]:
                    least = end, self._fact(x, -1, -end, Sum(1, parts([(common, below)])))
                if (end := constant + common * high) < most[0]:
                    most = end, self._fact(x, 1, end, Sum(1, parts([(common, above)])))
            found = self._exact[x] = least, most
        return found

    def _most_of_digits(self, terms: Mapping[Monomial, int]) -> tuple[int, list[tuple[Monomial, Expression]]]:
        """An upper bound of a polynomial after its numbers, widest first, are replaced by the digits into which they
        were cut: of the ways to cut a number that which leaves fewest terms; the numbers with their digits."""
        ranges, made = dict[int, tuple[int, int]](), list[tuple[Monomial, Expression]]()
        used = {*((a,) for m in terms for a in m), *terms}
        for cut in sorted(used & self._digits.keys(), key=lambda m: (-self._width(m), m)):
            digits = [d for d in self._digits[cut] if d.terms.keys() - {_ONE} <= used]
            found = [(_replaced(terms, cut, digit, -1 - len(ranges)), digit) for digit in digits]
            if found:
                terms, digit = min(found, key=lambda one: (len(one[0]), one[1].high - one[1].low))
                ranges[-1 - len(ranges)] = digit.low, digit.high
                made.append((cut, digit))
        return self._range(terms, ranges)[1], made

    def case_bounds(self, x: Expression) -> tuple[int, int]:
        """Bounds of x, case by case if the newest floor in it has two values."""
        (low, _), (high, _) = self.case_ends(x)
        return low, high

    def case_ends(self, x: Expression) -> tuple[End, End]:
        """`case_bounds`, with the facts that say so."""
        newest = max((m[0] for m in x.terms if self._is_floor(m)), default=-1)
        if newest < 0 or self.atoms[newest].high != self.atoms[newest].low + 1:
            return self.ends(x)
        atom = self.atoms[newest]
        found = [self._case(x, newest, value) for value in (atom.low, atom.high)]
        on = self.make({(newest,): 1})
        ends = list[End]()
        for k, sign in enumerate((-1, 1)):
            bound = max(case[k][0] for case in found)
            why = Split(on, atom.low, (found[0][k][1], found[1][k][1]))
            ends.append((sign * bound, self._fact(x, sign, bound, why)))
        return ends[0], ends[1]

    def _case(self, x: Expression, newest: int, value: int) -> tuple[_Case, _Case]:
        """Upper bounds of -x and of x where the newest floor has one of its two values."""
        atom = self.atoms[newest]
        assert atom.inner is not None and atom.cut is not None
        older = max((m[0] for m in x.terms if self._is_floor(m) and m != (newest,)), default=newest)
        merged = {Fraction(sign, 1 << self.atoms[older].shift) for sign in (1, -1)}  # this floor may be merged in inner
        c, up = x.terms[newest,], 1 if value == atom.low else -1  # the floor is at most, or at least, its value

        def assumed(coefficient: int) -> int:
            return max(up * coefficient, 0)

        case = self.sum([(1, x), (-c, self.make({(newest,): 1, _ONE: -value}))])
        (low, least), (high, most) = self.ends(case)
        below: _Case = -low, (assumed(-c), Sum(1, parts([(1, least)])))
        above: _Case = high, (assumed(c), Sum(1, parts([(1, most)])))
        within = value << atom.shift, (value + 1 << atom.shift) - 1
        pairs = ((case.terms.get(m, 0), d) for m, d in atom.inner.terms.items() if m)
        for ratio in {*merged, *sorted({Fraction(a, b) for a, b in pairs if a})[:_MOST_FACTORS]}:
            factor, scale = ratio.numerator, ratio.denominator
            (low, least), (high, most) = self.ends(self.sum([(scale, case), (-factor, atom.inner)]))
            ends = sorted(factor * end for end in within)
            cut = (atom.cut.most, atom.cut.least)[:: 1 if factor > 0 else -1]
            slope = (factor << atom.shift) + scale * c
            if (end := (-low - ends[0]) // scale) < below[0]:
                below = end, (assumed(-slope), Sum(scale, parts([(1, least), (abs(factor), cut[1])])))
            if (end := (high + ends[1]) // scale) < above[0]:
                above = end, (assumed(slope), Sum(scale, parts([(1, most), (abs(factor), cut[0])])))
        return below, above

    def close_bounds(self, x: Expression, depth: int = 4) -> tuple[int, int]:
        """Closer bounds of x, which take longer: what a floor leaves, C - 2^k floor(C / 2^k), is from 0 to 2^k - 1."""
        (low, _), (high, _) = self.close_ends(x, depth)
        return low, high

    def close_ends(self, x: Expression, depth: int = 4) -> tuple[End, End]:
        """`close_bounds`, with the facts that say so."""
        least, most = self.ends(x)
        over, above = self._closest(self.sum([(-1, x)]), depth), self._closest(x, depth)
        return (-over[0], over[1]) if -over[0] > least[0] else least, min(most, above, key=_bound)

    def _closest(self, x: Expression, depth: int) -> End:
        constant, common, rest = self._parts(x)
        if not common:
            return constant, None
        best = self.ends(rest)[1]
        for fact in self._facts if depth else ():
            pairs = ((rest.terms.get(m, 0), c) for m, c in fact.terms.items() if m)
            for ratio in sorted({Fraction(a, b) for a, b in pairs if a})[:_MOST_FACTORS]:
                factor, scale = ratio.numerator, ratio.denominator
                most, why = (fact.high, fact.most) if factor > 0 else (fact.low, fact.least)
                over = self._closest(self.sum([(scale, rest), (-factor, fact)]), depth - 1)
                if (end := (factor * most + over[0]) // scale) < best[0]:
                    best = end, self._fact(rest, 1, end, Sum(scale, parts([(abs(factor), why), (1, over[1])])))
        newest = max((m[0] for m in rest.terms if len(m) == 1 and self.atoms[m[0]].inner is not None), default=-1)
        if newest >= 0 and depth:
            atom, floor = self.atoms[newest], self.make({(newest,): 1})
            assert atom.inner is not None and atom.cut is not None
            pairs = ((rest.terms.get(m, 0), c) for m, c in atom.inner.terms.items() if m)
            for factor in sorted({a // b for a, b in pairs if a and a % b == 0})[:_MOST_FACTORS]:
                end = 1 << atom.shift  # rest = factor (inner - end floor) + left
                left = self.sum([(1, rest), (-factor, atom.inner), (factor * end, floor)])
                over = self._closest(left, depth - 1)
                cut = abs(factor), atom.cut.most if factor > 0 else atom.cut.least
                if (bound := max(0, factor * (end - 1)) + over[0]) < best[0]:
                    best = bound, self._fact(rest, 1, bound, Sum(1, parts([cut, (1, over[1])])))
                if factor > 0:
                    split = self._split(rest, factor * (end - 1), cut, left, newest, depth - 1)
                    best = min(best, split, key=_bound)
        bound = constant + common * best[0]
        return bound, self._fact(x, 1, bound, Sum(1, parts([(common, best[1])])))

    def _parts(self, x: Expression) -> tuple[int, int, Expression]:
        """x = constant + common expression, with the largest ``common``."""
        terms = {m: c for m, c in x.terms.items() if m}
        common = gcd(*terms.values())
        return x.terms.get(_ONE, 0), common, self.make({m: c // common for m, c in terms.items()})

    def _split(
        self, x: Expression, most: int, cut: tuple[int, Fact], left: Expression, newest: int, depth: int
    ) -> End:  # fmt: skip
        """An upper bound of x, at most ``most`` (``cut`` says so) + ``left``: either ``left`` is less than it can be,
        or the newest floor is known."""
        constant, common, rest = self._parts(left)
        sign = rest.terms.get((newest,), 0)
        if sign not in (1, -1):
            return x.high, x.most
        highest, top = self._closest(rest, depth)
        floor, c = self.make({(newest,): 1}), x.terms.get((newest,), 0)
        other = self.sum([(sign, self.number(highest)), (-sign, rest), (1, floor)])
        equal = self.sum([(1, x), (-c, floor), (c, other)])  # x = equal + c sign (rest - highest)
        known = self._closest(equal, depth)
        bound = max(most + constant + common * (highest - 1), known[0])
        lower = common, Sum(1, parts([cut]))
        same = max(-c * sign, 0), Sum(1, parts([(1, known[1]), (max(c * sign, 0), top)]))
        return bound, self._fact(x, 1, bound, Split(rest, highest - 1, (lower, same)))

    def _most(self, x: Expression) -> End:
        """An upper bound of x."""
        terms, scale = dict(x.terms), 1  # the expression times scale
        parts_ = list[tuple[int, int, Fact]]()  # factors at a scale
        best, why = x.high, (0, 1, list[tuple[Monomial, Expression]]())

        def note(bound: int, digits: list[tuple[Monomial, Expression]]) -> None:
            nonlocal best, why
            if bound // scale < best:
                best, why = bound // scale, (len(parts_), scale, digits)

        note(*self._most_of_digits(terms))
        in_digits = False
        while replaceable := [m for m in terms if m in self._known or self._is_floor(m)]:
            newest = max(replaceable, key=_newer)
            if not in_digits and self._of_digits(terms):
                note(*self._most_of_digits(terms))
                in_digits = True
            c, (f, rest, (low, least), (high, most)) = terms.pop(newest), self._fact_of(newest)
            common = gcd(c, f)
            times, factor = abs(f) // common, c // common if f > 0 else -c // common
            if times > 1:
                terms = {m: value * times for m, value in terms.items()}
                scale *= times
            for m, d in rest.items():
                terms[m] = terms.get(m, 0) - factor * d
            terms[_ONE] = terms.get(_ONE, 0) + factor * (high if factor > 0 else low)
            terms = {m: value for m, value in terms.items() if value}
            parts_.append((abs(factor), scale, most if factor > 0 else least))
            note(self._range(terms)[1], [])
        if not in_digits and self._of_digits(terms):
            note(*self._most_of_digits(terms))
        if best >= x.high:
            return x.high, x.most
        count, scale, digits = why
        used: Parts = tuple((factor * (scale // at), fact) for factor, at, fact in parts_[:count])
        in_range = tuple((cut, digit, self.end(digit, -1), self.end(digit, 1)) for cut, digit in digits)
        return best, self._fact(x, 1, best, Sum(scale, used, in_range))

    def _of_digits(self, terms: Mapping[Monomial, int]) -> bool:
        """Whether a polynomial has products, and no floors of products but in them."""
        inner = (self.atoms[m[0]].inner for m in terms if len(m) == 1)
        return any(len(m) > 1 for m in terms) and not any(x and any(len(m) > 1 for m in x.terms) for x in inner)

    def _fact_of(self, newest: Monomial) -> tuple[int, Mapping[Monomial, int], tuple[int, Fact], tuple[int, Fact]]:
        """f, other terms, all older, and the ends of f times ``newest`` and these terms."""
        if self._is_floor(newest):
            atom = self.atoms[newest[0]]
            assert atom.inner is not None and atom.cut is not None
            ends = (1 - (1 << atom.shift), atom.cut.most), (0, atom.cut.least)
            return 1 << atom.shift, {m: -d for m, d in atom.inner.terms.items()}, *ends
        best = min(self._known[newest], key=lambda fact: Fraction(fact.high - fact.low, abs(fact.terms[newest])))
        ends = (best.low, self.end(best, -1)), (best.high, self.end(best, 1))
        return best.terms[newest], {m: d for m, d in best.terms.items() if m != newest}, *ends


def _replaced(terms: Mapping[Monomial, int], cut: Monomial, digit: Expression, number: int) -> dict[Monomial, int]:
    """Terms with ``number``, which is ``digit``, and what else is in the digit in place of ``cut``, whose coefficient
    there is 1 or -1: in all products if it is one atom."""
    sign = digit.terms[cut]
    other = [((number,), sign), *((m, -sign * c) for m, c in digit.terms.items() if m != cut)]
    done, todo = dict[Monomial, int](), dict(terms)
    while todo:
        monomial, factor = todo.popitem()
        if monomial != cut and (len(cut) > 1 or cut[0] not in monomial):
            done[monomial] = done.get(monomial, 0) + factor
            continue
        rest = list(monomial)
        for a in cut:
            rest.remove(a)
        for m, c in other:
            product = tuple(sorted((*rest, *m)))
            todo[product] = todo.get(product, 0) + factor * c
    return {m: c for m, c in done.items() if c}


def _bound(end: End) -> int:
    return end[0]


def _newer(m: Monomial) -> Monomial:
    """The order of monomials: that of their newest atoms."""
    return m[::-1]


def _centred(c: int, bits: int) -> int:
    """c modulo 2^bits, above -2^(bits - 1) and not above 2^(bits - 1)."""
    half = 1 << bits - 1
    r = c & (half << 1) - 1
    return r - (half << 1) if r > half else r


def value(x: Expression, atoms: Sequence[_Atom], known: dict[int, int]) -> int:
    """The number that x is, for values of the atoms that are no floors; those of floors are added to ``known``."""

    def of(number: int) -> int:
        if number not in known:
            atom = atoms[number]
            if atom.inner is None:
                raise KeyError(f"no value for {atom.name or number}")
            known[number] = value(atom.inner, atoms, known) >> atom.shift
        return known[number]

    return sum(c * prod(map(of, m)) for m, c in x.terms.items())
