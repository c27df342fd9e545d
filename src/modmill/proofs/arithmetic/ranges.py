# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Bounds of polynomials in floors: from the ranges of their terms, after floors are replaced by what they are the
floors of or numbers by the digits into which they were cut, case by case, or from what a floor leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heappop, heappush
from math import gcd

from modmill.proofs.arithmetic.polynomials import ONE, End, Expression, Known, Monomial, Polynomials
from modmill.proofs.arithmetic.reasons import Fact, Floor, Lemma, Parts, Split, Sum, parts

_MOST_FACTORS = 3
"""Most multiples of what a floor leaves that are tried for a bound."""
Digits = list[tuple[Monomial, Expression]]
"""Numbers, and the digits that replace them."""
_Part = tuple[int, int, Fact]
"""A fact that a bound uses, its factor, and the scale of this."""
_Case = tuple[int, tuple[int, Sum]]
"""A bound in one case, the factor of what is assumed in it, and why."""


@dataclass
class Ranges(Polynomials):
    """Expressions with their bounds. A bound that is found is a step of the proof."""

    _exact: dict[Expression, tuple[End, End]] = field(default_factory=dict)
    _pairs: dict[int, Lemma] = field(default_factory=dict)
    """Floors that are sums of atoms and had two values at some time, by the newest atom: those of fewest bits."""

    def bounds(self, x: Expression) -> tuple[int, int]:
        """Bounds of x after the floors in it, newest first, are replaced by what they are the floors of."""
        (low, _), (high, _) = self.ends(x)
        return low, high

    def ends(self, x: Expression) -> tuple[End, End]:
        """`bounds`, with the facts that say so."""
        found = self._exact.get(x)
        if found is None:
            least, most = (x.low, x.least), (x.high, x.most)
            constant, common, rest = self._parts(x)
            if rest is not x:  # it is a whole number, whose ends may be closer
                (low, below), (high, above) = self.ends(rest)
                if (end := constant + common * low) > least[0]:
                    least = end, self.fact(x, -1, -end, Sum(1, parts([(common, below)])))
                if (end := constant + common * high) < most[0]:
                    most = end, self.fact(x, 1, end, Sum(1, parts([(common, above)])))
            elif x.terms:
                least, most = _Elimination(self, x, closest=False).ends()
            found = self._exact[x] = least, most
        return found

    def digit_ends(self, x: Expression) -> tuple[End, End]:
        """`bounds`, with closer ranges of digits in place of what floors leave, and the facts that say so."""
        return _Elimination(self, x, closest=True).ends()

    def case_bounds(self, x: Expression) -> tuple[int, int]:
        """Bounds of x, case by case if the newest floor in it has two values."""
        (low, _), (high, _) = self.case_ends(x)
        return low, high

    def case_ends(self, x: Expression) -> tuple[End, End]:
        """`case_bounds`, with the facts that say so."""
        newest = max((m[0] for m in x.terms if self._is_floor(m)), default=-1)
        two_valued = self._two_valued(newest) if newest >= 0 else None
        if two_valued is None:
            return self.ends(x)
        on, of = two_valued
        found = [self._case(x, newest, on, of, value) for value in (on.low, on.high)]
        ends = list[End]()
        for k, sign in enumerate((-1, 1)):
            bound = max(case[k][0] for case in found)
            why = Split(on, on.low, (found[0][k][1], found[1][k][1]))
            ends.append((sign * bound, self.fact(x, sign, bound, why)))
        return ends[0], ends[1]

    def _two_valued(self, newest: int) -> tuple[Expression, Floor] | None:
        """The newest floor, or a sum that is a floor and has it, if it has two values; and what is known of it."""
        atom = self.atoms[newest]
        assert atom.cut is not None
        if atom.high == atom.low + 1:
            return self.make({(newest,): 1}), atom.cut
        lemma = self._pairs.get(newest)
        return (lemma.value, lemma) if lemma and lemma.value.high == lemma.value.low + 1 else None

    def _case(self, x: Expression, newest: int, on: Expression, of: Floor, value: int) -> tuple[_Case, _Case]:
        """Upper bounds of -x and of x where the floor ``on``, in which ``newest`` is, has one of its two values."""
        older = max((m[0] for m in x.terms if self._is_floor(m) and m != (newest,)), default=newest)
        merged = {Fraction(sign, 1 << self.atoms[older].shift) for sign in (1, -1)}  # this floor may be merged in inner
        c = x.terms[newest,] * on.terms[newest,]
        up = 1 if value == on.low else -1  # the floor is at most, or at least, its value
        other = (on.least, on.most)[up < 0] if len(on.terms) > 1 else None

        def assumed(coefficient: int) -> int:
            return max(up * coefficient, 0)

        def rest(coefficient: int) -> tuple[int, Fact | None]:
            return max(-up * coefficient, 0), other

        case = self.sum([(1, x), (-c, on), (c, self.number(value))])
        (low, least), (high, most) = self.ends(case)
        below: _Case = -low, (assumed(-c), Sum(1, parts([(1, least), rest(-c)])))
        above: _Case = high, (assumed(c), Sum(1, parts([(1, most), rest(c)])))
        within = value << of.bits, (value + 1 << of.bits) - 1
        pairs = ((case.terms.get(m, 0), d) for m, d in of.x.terms.items() if m)
        for ratio in {*merged, *sorted({Fraction(a, b) for a, b in pairs if a})[:_MOST_FACTORS]}:
            factor, scale = ratio.numerator, ratio.denominator
            (low, least), (high, most) = self.ends(self.sum([(scale, case), (-factor, of.x)]))
            ends = sorted(factor * end for end in within)
            cut = (of.most, of.least)[:: 1 if factor > 0 else -1]
            slope = (factor << of.bits) + scale * c
            if (end := (-low - ends[0]) // scale) < below[0]:
                why = parts([(1, least), (abs(factor), cut[1]), rest(-slope)])
                below = end, (assumed(-slope), Sum(scale, why))
            if (end := (high + ends[1]) // scale) < above[0]:
                why = parts([(1, most), (abs(factor), cut[0]), rest(slope)])
                above = end, (assumed(slope), Sum(scale, why))
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
        newest = max((m[0] for m in rest.terms if self._is_floor(m)), default=-1)
        for fact, ratio, left_depth in self._tries(rest, newest, depth):
            factor, scale = ratio.numerator, ratio.denominator
            most, why = (fact.high, fact.most) if factor > 0 else (fact.low, fact.least)
            over = self._closest(self.sum([(scale, rest), (-factor, fact)]), left_depth)
            if (end := (factor * most + over[0]) // scale) < best[0]:
                best = end, self.fact(rest, 1, end, Sum(scale, parts([(abs(factor), why), (1, over[1])])))
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
                    best = bound, self.fact(rest, 1, bound, Sum(1, parts([cut, (1, over[1])])))
                if factor > 0:
                    split = self._split(rest, factor * (end - 1), cut, left, newest, depth - 1)
                    best = min(best, split, key=_bound)
        bound = constant + common * best[0]
        return bound, self.fact(x, 1, bound, Sum(1, parts([(common, best[1])])))

    def _tries(self, x: Expression, newest: int, depth: int) -> Iterator[tuple[Expression, Fraction, int]]:
        """Facts for a bound of x, each with a ratio by which it is taken from x, and the depth of the search for the
        rest. ``newest``: the newest floor in x, -1 for none."""
        for fact in self._whole if newest >= 0 and depth > 1 else ():
            for sign in (1, -1):
                yield fact, Fraction(sign, 1 << self.atoms[newest].shift), 1
        for fact in self._facts if depth else ():
            pairs = ((x.terms.get(m, 0), c) for m, c in fact.terms.items() if m)
            for ratio in sorted({Fraction(a, b) for a, b in pairs if a})[:_MOST_FACTORS]:
                yield fact, ratio, depth - 1

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
        return bound, self.fact(x, 1, bound, Split(rest, highest - 1, (lower, same)))

    def of_digits(self, terms: Mapping[Monomial, int]) -> tuple[int, int, Digits]:
        """Bounds of a polynomial after its numbers, widest first, are replaced by the digits into which they were cut:
        of the ways to cut a number that which leaves fewest terms; the numbers with their digits."""
        ranges, made = dict[int, tuple[int, int]](), Digits()
        used = {*((a,) for m in terms for a in m), *terms}
        for cut in sorted(used & self._digits.keys(), key=lambda m: (-self._width(m), m)):
            digits = [d for d in self._digits[cut] if d.terms.keys() - {ONE} <= used]
            found = [(_replaced(terms, cut, digit, -1 - len(ranges)), digit) for digit in digits]
            if found:
                terms, digit = min(found, key=lambda one: (len(one[0]), one[1].high - one[1].low))
                ranges[-1 - len(ranges)] = digit.low, digit.high
                made.append((cut, digit))
        return *self._range(terms, ranges), made

    def is_of_digits(self, terms: Mapping[Monomial, int]) -> bool:
        """Whether a polynomial has products, and no floors of products but in them."""
        inner = (self.atoms[m[0]].inner for m in terms if len(m) == 1)
        return any(len(m) > 1 for m in terms) and not any(x and any(len(m) > 1 for m in x.terms) for x in inner)

    def is_replaceable(self, m: Monomial) -> bool:
        """Whether more is known of a monomial than the ranges of its atoms."""
        return m in self._known or self._is_floor(m)

    def known_of(self, newest: Monomial, *, closest: bool) -> Known:
        """What is known of ``newest`` and older monomials: for a floor what it leaves, or with ``closest`` the range of
        a digit if that is closer."""
        found = self._of_newest.get((newest, closest))
        if found is None:
            ends: tuple[tuple[int, Fact], tuple[int, Fact]]
            if self._is_floor(newest) and not (closest and self.has_closer(newest)):
                atom = self.atoms[newest[0]]
                assert atom.inner is not None and atom.cut is not None
                f, terms = 1 << atom.shift, {m: -d for m, d in atom.inner.terms.items()}
                ends = (1 - f, atom.cut.most), (0, atom.cut.least)
            else:
                best = min(self._known[newest], key=lambda x: _width(x, newest))
                f, terms = best.terms[newest], {m: d for m, d in best.terms.items() if m != newest}
                ends = (best.low, self.end(best, -1)), (best.high, self.end(best, 1))
            rest = tuple((m, d) for m, d in terms.items() if m)
            found = self._of_newest[newest, closest] = f, rest, terms.get(ONE, 0), *ends
        return found

    def has_closer(self, m: Monomial) -> bool:
        """Whether a digit with a floor has a closer range, for a factor of 1 at the floor, than what the floor
        leaves."""
        known = self._known.get(m, ()) if self._is_floor(m) else ()
        return any(_width(x, m) < 1 - Fraction(1, 1 << self.atoms[m[0]].shift) for x in known)


class _Elimination:
    """Bounds of ``x`` while what is known replaces its newest number, again and again. ``scale`` times x has the
    ``terms``, which are from ``sum[0]`` to ``sum[1]``, and ``more``, one number for each end. ``closest``: as in
    `Ranges.known_of`."""

    def __init__(self, ranges: Ranges, x: Expression, *, closest: bool) -> None:
        self._ranges, self._x, self._scale, self._closest = ranges, x, 1, closest
        self._terms = dict[Monomial, int]()
        self._more, self._sum = [x.terms.get(ONE, 0)] * 2, [0, 0]
        self._parts: tuple[list[_Part], list[_Part]] = ([], [])
        self._heap: list[tuple[Monomial, Monomial]] = []
        self._best = [x.low, x.high]
        self._why: list[tuple[int, int, Digits] | None] = [None, None]
        self._add((m, c) for m, c in x.terms.items() if m)

    def ends(self) -> tuple[End, End]:
        """The best ends of all steps."""
        self._note_digits()
        in_digits = False
        while self._heap:
            newest = heappop(self._heap)[1]
            if newest not in self._terms:
                continue
            if not in_digits and self._ranges.is_of_digits(self._terms):
                self._note_digits()
                in_digits = True
            self._replace(newest)
            self._note(self._sum[0], self._sum[1], [])
        if not in_digits and self._ranges.is_of_digits(self._terms):
            self._note_digits()
        return self._end(0), self._end(1)

    def _add(self, added: Iterable[tuple[Monomial, int]]) -> None:
        """Add terms."""
        terms, span, (low, high) = self._terms, self._ranges.span, self._sum
        for m, c in added:
            if (old := terms.get(m, 0)) == -c:
                new = 0
                del terms[m]
            else:
                new = terms[m] = old + c
                if not old and self._ranges.is_replaceable(m):
                    heappush(self._heap, ((*(-a for a in reversed(m)), 1), m))  # `newer`, the last one first
            a, b = span(m)
            low += (new * a if new > 0 else new * b) - (old * a if old > 0 else old * b)
            high += (new * b if new > 0 else new * a) - (old * b if old > 0 else old * a)
        self._sum = [low, high]

    def _replace(self, newest: Monomial) -> None:
        f, rest, one, *ends = self._ranges.known_of(newest, closest=self._closest)
        c = self._terms[newest]
        common = gcd(c, f)
        if (times := abs(f) // common) > 1:
            self._terms = {m: c * times for m, c in self._terms.items()}
            self._scale *= times
            self._sum, self._more = [end * times for end in self._sum], [end * times for end in self._more]
        factor = c * times // f
        self._add([(newest, -c * times), *((m, -factor * d) for m, d in rest)])
        for side, done in enumerate(self._parts):
            bound, why = ends[(factor > 0) == side]
            self._more[side] += factor * (bound - one)
            done.append((abs(factor), self._scale, why))

    def _note(self, low: int, high: int, digits: Digits) -> None:
        for side, end in ((0, -low - self._more[0]), (1, high + self._more[1])):
            sign = 1 if side else -1
            if end < sign * self._best[side] * self._scale:
                self._best[side] = sign * (end // self._scale)
                self._why[side] = len(self._parts[0]), self._scale, digits

    def _note_digits(self) -> None:
        self._note(*self._ranges.of_digits(self._terms))

    def _end(self, side: int) -> End:
        why, x, best = self._why[side], self._x, self._best[side]
        if why is None:
            return (x.high, x.most) if side else (x.low, x.least)
        count, scale, digits = why
        used: Parts = tuple((factor * (scale // at), fact) for factor, at, fact in self._parts[side][:count])
        of = self._ranges
        in_range = tuple((cut, digit, of.end(digit, -1), of.end(digit, 1)) for cut, digit in digits)
        sign = 1 if side else -1
        return best, of.fact(x, sign, sign * best, Sum(scale, used, in_range))


def _width(x: Expression, m: Monomial) -> Fraction:
    """The width of the range of x for a factor of 1 at a monomial."""
    return Fraction(x.high - x.low, abs(x.terms[m]))


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
