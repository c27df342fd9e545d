# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Exact integer expressions: polynomials with integer coefficients over numbers of which only ranges are known, and
over floors of such polynomials divided by powers of two.

The words of a netlist are such expressions. Bits k, k + 1, ... of an expression E are the number floor(E / 2^k); so the
parts into which hardware cuts a number come together again when they are added, whatever was done in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from modmill.proofs.arithmetic.polynomials import ONE, End, Expression, Monomial, Number, centred, newer
from modmill.proofs.arithmetic.ranges import Ranges
from modmill.proofs.arithmetic.reasons import Choice, Cut, Equality, Fact, Lemma, Sum, parts

T = TypeVar("T")
Way = tuple[Expression, Sequence[Equality]]
"""An expression, and what another one that is equal to it has more."""


@dataclass
class Integers(Ranges):
    """All expressions of a proof, with floors."""

    _atom_of: dict[tuple[Expression, int], int] = field(default_factory=dict)
    _lemmas: dict[tuple[Expression, int], Lemma] = field(default_factory=dict)
    _choices: dict[tuple[str, Expression, int], Any] = field(default_factory=dict)
    _equal: list[tuple[int, Expression, Equality]] = field(default_factory=list)

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

    def extend(self, x: Expression, bits: int) -> None:
        """Note that floor(x / 2^(bits + 1)) is floor(x / 2^bits) if that is -1 or 0: bit ``bits`` of x is its sign."""
        value = self.floor(x, bits)
        if bits and (value.low, value.high) == (-1, 0) and (x, bits + 1) not in self._lemmas:
            of, size = self._lemmas[x, bits], 1 << bits
            most, least = ((1, of.most), (size, value.least)), ((1, of.least), (size, value.most))
            self._lemma(x, bits + 1, value, Sum(1, parts(most)), Sum(1, parts(least)))

    def _narrow(self, lemma: Lemma, least: End, most: End) -> None:
        """Note the range of a floor, from that of what it is of."""

        def why(sign: int) -> Sum:
            pair = (most[1], lemma.least) if sign > 0 else (least[1], lemma.most)
            return Sum(1 << lemma.bits, parts((1, fact) for fact in pair))

        value = self.within(lemma.value, least[0] >> lemma.bits, most[0] >> lemma.bits, why)
        if value.high == value.low + 1 and len(value.terms.keys() - {ONE}) > 1:
            newest = max((m[0] for m in value.terms if self._is_floor(m)), default=-1)
            tells = bool(lemma.x.terms.keys() - value.terms.keys() - {ONE})  # more than the range of its value
            closest = newest not in self._pairs or lemma.bits <= self._pairs[newest].bits
            if newest >= 0 and value.terms[newest,] in (1, -1) and tells and closest:
                self._pairs[newest] = lemma

    def _lemma(self, x: Expression, bits: int, value: Expression, most: Sum, least: Sum) -> Lemma:
        found = self._lemmas[x, bits] = Lemma(x, bits, value, (most, least))
        self.steps.append(found)
        return found

    def _constant(self, x: Expression, bits: int, least: End, most: End) -> Lemma:
        value = self.number(least[0] >> bits)
        return self._lemma(x, bits, value, Sum(1, parts([(1, most[1])])), Sum(1, parts([(1, least[1])])))

    def _floored(self, x: Expression, bits: int) -> Lemma:
        multiples = {m: c >> bits for m, c in x.terms.items() if not c & (1 << bits) - 1}
        below = self.make({m: c for m, c in x.terms.items() if m not in multiples})
        if multiples.keys() - {ONE} and below.constant is None:  # their range is closer without these
            value = self._plus(multiples, self.floor(below, bits))
            of = self._lemmas[below, bits]
            return self._lemma(x, bits, value, Sum(1, ((1, of.most),)), Sum(1, ((1, of.least),)))
        whole: dict[Monomial, int] = {}
        rest: dict[Monomial, int] = {}
        for m, c in x.terms.items():
            r = c & (1 << bits) - 1 if m == ONE else centred(c, bits)
            if r:
                rest[m] = r
            if c != r:
                whole[m] = (c - r) >> bits
        variable = [c for m, c in rest.items() if m != ONE]
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
            other = self._plus({ONE: -1}, self.make({m: -c for m, c in part.terms.items()}))
            value = self.sum([(-1, self.floor(other, bits)), (-1, self.number(1))])
            of = self._lemmas[other, bits]
            return self._lemma(part, bits, value, Sum(1, ((1, of.least),)), Sum(1, ((1, of.most),)))
        number = self._atom_of.get((part, bits))
        if number is None:
            if (again := self._again(part, bits)) is not None:
                return again
            least, most = self.ends(part)
            low, high = least[0] >> bits, most[0] >> bits
            if low == high:
                return self._constant(part, bits, least, most)
            if (sign := self._sign(part, bits)) is not None:
                return sign
            number = self._atom_of[part, bits] = len(self.atoms)
            cut = Cut(number, part, bits, (least[1], most[1]))
            self.steps.append(cut)
            self._new(Number("", low, high, part, bits, cut))
        known = self.atoms[number].cut
        assert known is not None
        value = self.make({(number,): 1})
        return self._lemma(part, bits, value, Sum(1, ((1, known.most),)), Sum(1, ((1, known.least),)))

    def _again(self, x: Expression, bits: int) -> Lemma | None:
        """floor(x / 2^bits) as the newest floor in x, or minus it, and a constant, as of a number that is folded once
        more than it needs; None if it is not."""
        newest = max((m[0] for m in x.terms if self._is_floor(m)), default=-1)
        for sign in (1, -1) if newest in self._pairs else ():
            floor = self.make({(newest,): sign})
            least, most = self.case_ends(self.sum([(1, x), (-1 << bits, floor)]))
            if (constant := least[0] >> bits) == most[0] >> bits:
                value = self._plus({ONE: constant}, floor)
                return self._lemma(x, bits, value, Sum(1, parts([(1, most[1])])), Sum(1, parts([(1, least[1])])))
        return None

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
        end = self.fact(found, 1, 0, Sum(1 << fewer, parts([(1, most), (1, down)])))
        begin = self.fact(found, -1, 1, Sum(1 << fewer, parts([(1, least), (1, up)])))
        found = self.sum([(1, found), (1, self.number(value))])
        times = (1 << bits) - (1 << fewer)
        return self._lemma(
            x, bits, found, Sum(1, parts([(1, up), (times, begin)])), Sum(1, parts([(1, down), (times, end)]))
        )

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
            total[ONE] = total.get(ONE, 0) + (1 << j) - 1
        merged = self.make(total)
        value = self.floor(merged, j + bits)
        of, (up, down) = self._lemmas[merged, j + bits], (atom.cut.most, atom.cut.least)[::sign]
        return self._lemma(
            x, bits, value, Sum(1 << j, ((1, of.most), (1, down))), Sum(1 << j, ((1, of.least), (1, up)))
        )

    def choose(self, kind: str, x: Expression, bits: int, value: Callable[[], T | None]) -> T | None:
        """A decision about x, always the same one."""
        key = kind, x, bits
        if key not in self._choices:
            self._choices[key] = made = value()
            self.steps.append(Choice(kind, x, bits, made, (x.least, x.most) if made and kind == "apart" else ()))
        found: T | None = self._choices[key]
        return found

    def asked(self, kind: str, x: Expression, bits: int) -> bool:
        """Whether this was decided already."""
        return (kind, x, bits) in self._choices

    def assume(self, x: Expression, bits: int, value: int) -> None:
        """From now on floor(x / 2^bits) is ``value``."""
        floor = self.floor(x, bits)
        lemma = self._lemmas.get((x, bits))  # none for 0 bits
        up, down = (lemma.most, lemma.least) if lemma else (None, None)
        self.steps.append(Choice("decide", x, bits, value, (x.least, x.most)))
        self.within(x, value << bits, (value + 1 << bits) - 1)
        self._facts.append(x)
        if (whole := self._unfloored(x)) is not None:
            self._whole.append(whole)
        newest = max((m[0] for m in floor.terms if len(m) == 1), default=-1)
        if newest >= 0 and floor.terms[newest,] in (1, -1):
            sign = floor.terms[newest,]
            other = self.sum([(sign, self.number(value)), (-sign, floor), (1, self.make({(newest,): 1}))])
            most = self.fact(floor, 1, value, Sum(1 << bits, parts([(1, x.most), (1, down)])))
            least = self.fact(floor, -1, -value, Sum(1 << bits, parts([(1, x.least), (1, up)])))
            self._equal.append((newest, other, Equality(sign, floor, value, most, least)))
            if len(floor.terms.keys() - {ONE}) > 1:
                self._one_value(floor, value, most, least)
            else:
                self._assume_inner(newest, other.constant or 0, (most, least) if sign > 0 else (least, most))
        self._lemmas.clear()
        self._exact.clear()

    def assumed(self, x: Expression) -> list[Expression]:
        """Expressions of which a case says the range, and that are x and a constant."""
        return [fact for fact in self._facts if self.sum([(1, fact), (-1, x)]).constant is not None]

    def _assume_inner(self, number: int, value: int, ends: tuple[Fact, Fact]) -> None:
        """Note the range of what an atom is the floor of, and of its terms: the atom is ``value``, which ``ends`` say
        of both sides."""
        atom = self.atoms[number]
        if atom.inner is None or atom.cut is None:
            return
        x, cut, size = atom.inner, (atom.cut.most, atom.cut.least), 1 << atom.shift
        self.within(
            x, value * size, (value + 1) * size - 1,
            lambda side: Sum(1, parts([(1, cut[side < 0]), (size, ends[side < 0])])),
        )  # fmt: skip
        constant, common, rest = self._parts(x)
        for sign in (1, -1):
            low, high = sorted((sign * (x.low - constant), sign * (x.high - constant)))

            def why(side: int, sign: int = sign) -> Sum:
                return Sum(common, parts([(1, x.most if side == sign else x.least)]))

            self.within(self.sum([(sign, rest)]), -(-low // common), high // common, why)

    def _one_value(self, x: Expression, value: int, most: Fact, least: Fact) -> None:
        """Note that x is ``value``."""
        self.within(x, value, value, lambda sign: Sum(1, parts([(1, most if sign > 0 else least)])))
        self._facts.append(x)
        self._exact.clear()

    def _unfloored(self, x: Expression) -> Expression | None:
        """2^j x with C in place of 2^j floor(C / 2^j), the newest number in x, whose range follows from that of x;
        None if this is no floor or has another coefficient than 1 and -1."""
        newest = max((m for m in x.terms if m), key=newer)
        if not self._is_floor(newest) or (sign := x.terms[newest]) not in (1, -1):
            return None
        atom = self.atoms[newest[0]]
        assert atom.inner is not None and atom.cut is not None
        size, cut = 1 << atom.shift, atom.cut
        found = self.sum([(size, x), (sign, atom.inner), (-sign * size, self.make({newest: 1}))])
        left = (0, size - 1) if sign > 0 else (1 - size, 0)

        def why(end: int) -> Sum:
            return Sum(1, parts([(size, x.most if end > 0 else x.least), (1, cut.most if sign == end else cut.least)]))

        return self.within(found, size * x.low + left[0], size * x.high + left[1], why)

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
        for k, later in reversed(list(enumerate(sorted(numbers)))):
            for older in sorted(numbers)[:k]:
                apart = self.make({(later,): 1, (older,): -1})
                (low, least), (high, most) = self.close_ends(apart)
                if low == high and (c := x.terms.get((later,), 0)):
                    x = self.sum([(1, x), (-c, apart), (c, self.number(low))])
                    sides = [fact or self.end(apart, sign) for sign, fact in ((1, most), (-1, least))]
                    equal.append(Equality(c, apart, low, *sides))
        return x

    def cancelled(self, x: Expression, wrong: dict[Monomial, int], equal: list[Equality]) -> Expression:
        """x without the newest number of ``wrong``, or without ``wrong``, if that has one value. ``equal`` gets what x
        has more."""
        _, factor, apart = self._parts(self.make(wrong))
        newest = max(apart.terms, key=newer)
        if newest not in x.terms:  # only what x should be has it
            return x
        if apart.terms[newest] in (1, -1):
            factor = x.terms[newest] * apart.terms[newest]
        ways = [(apart, []), *self.replaced(apart, apart, [])]
        most, least = (self.side(apart, sign, ways) for sign in (1, -1))
        if most.bound != -least.bound:
            most, least = self.side(apart, 1, ways, -least.bound), self.side(apart, -1, ways, -most.bound)
        if most.bound != -least.bound:
            return x
        self._one_value(apart, most.bound, most, least)
        equal.append(Equality(factor, apart, most.bound, most, least))
        return self.sum([(1, x), (-factor, apart), (factor, self.number(most.bound))])

    def replaced(
        self, x: Expression, other: Expression, equal: Sequence[Equality]
    ) -> Iterator[Way]:  # fmt: skip
        """Expressions that are equal to ``other``, with a multiple of the floors of which the value is assumed; their
        factors are those of floors in x. What x has more is ``equal`` for ``other``."""
        for factor in sorted({c for m, c in x.terms.items() if self._is_floor(m)}):
            for atom, older, known in self._equal:
                found = self.sum([(1, other), (factor, self.make({(atom,): 1})), (-factor, older)])
                yield found, [*equal, replace(known, factor=-factor * known.factor)]

    def side(self, x: Expression, sign: int, ways: Sequence[Way], enough: int | None = None) -> Fact:
        """An upper bound of x, or of -x if ``sign`` is -1: the least that is found, or the first that is at most
        ``enough``; without this the search that takes longer is not made. ``ways``: expressions that x is, and what x
        has more than they."""
        tries = [(ends, *way) for ends in (self.ends, self.case_ends, self.digit_ends) for way in ways]
        best: Fact | None = None
        for ends, other, equal in tries if enough is None else [*tries, (self.close_ends, *ways[0])]:
            bound, why = ends(other)[sign > 0]
            if best is None or sign * bound < best.bound:
                pairs = [(abs(e.factor), e.most if sign * e.factor > 0 else e.least) for e in equal]
                best = self.fact(x, sign, sign * bound, Sum(1, parts([(1, why), *pairs])))
            if enough is not None and best.bound <= enough:
                break
        assert best is not None
        return best
