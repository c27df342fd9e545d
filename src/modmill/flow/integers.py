# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Exact integer expressions: polynomials with integer coefficients over numbers of which only ranges are known, and
over floors of such polynomials divided by powers of two.

The words of a netlist are such expressions. Bits k, k + 1, ... of an expression E are the number floor(E / 2^k); so the
parts into which hardware cuts a number come together again when they are added, whatever was done in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import gcd, prod

Monomial = tuple[int, ...]
"""Numbers of atoms, in order; the empty one is 1."""
_ONE: Monomial = ()
_MOST_FACTORS = 3
"""Most multiples of what a floor leaves that are tried for a bound."""


class Expression:
    """A polynomial: coefficients that are not 0, by monomial; ``low`` and ``high``: it is in this range. `Integers`
    makes each only once."""

    __slots__ = ("hash", "high", "low", "terms")

    def __init__(self, terms: dict[Monomial, int], hash_: int, low: int, high: int) -> None:
        self.terms, self.hash, self.low, self.high = terms, hash_, low, high

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


@dataclass
class Integers:
    """All expressions of a proof. ``atoms``: what their monomials name by number, in the order in which they came."""

    atoms: list[_Atom] = field(default_factory=list)
    _made: dict[frozenset[tuple[Monomial, int]], Expression] = field(default_factory=dict)
    _floors: dict[tuple[Expression, int], Expression] = field(default_factory=dict)
    _atom_of: dict[tuple[Expression, int], int] = field(default_factory=dict)
    _exact: dict[Expression, tuple[int, int]] = field(default_factory=dict)
    _facts: list[Expression] = field(default_factory=list)
    _equal: list[tuple[int, Expression]] = field(default_factory=list)
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
        return self._new(_Atom(name, low, high))

    def _new(self, atom: _Atom) -> Expression:
        self.atoms.append(atom)
        return self.make({(len(self.atoms) - 1,): 1})

    def sum(self, parts: Iterable[tuple[int, Expression]]) -> Expression:
        """The sum of multiples."""
        total: dict[Monomial, int] = {}
        low = high = 0
        for factor, part in parts:
            for monomial, c in part.terms.items():
                total[monomial] = total.get(monomial, 0) + factor * c
            ends = factor * part.low, factor * part.high
            low, high = low + min(ends), high + max(ends)
        return self.within(self.make(total), low, high)

    def product(self, x: Expression, y: Expression) -> Expression:
        """x y."""
        total: dict[Monomial, int] = {}
        for m, c in x.terms.items():
            for n, d in y.terms.items():
                monomial, sign = self._times(m, n) if m and n else (m or n, 1)
                total[monomial] = total.get(monomial, 0) + sign * c * d
        ends = x.low * y.low, x.low * y.high, x.high * y.low, x.high * y.high
        return self.within(self.make(total), min(ends), max(ends))

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
        low, high = x.low >> bits, x.high >> bits
        if low == high:
            return self.number(low)
        found = self._floors.get((x, bits))
        if found is None:
            for bounds in (self.bounds, self.case_bounds):
                low, high = (bound >> bits for bound in bounds(x))
                if low == high:
                    return self.number(low)
            found = self._floors[x, bits] = self._sign(x, bits) or self._floored(x, bits)
        return self.within(found, low, high)

    def _floored(self, x: Expression, bits: int) -> Expression:
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
            return self.make(whole)
        zeros = min((c & -c).bit_length() - 1 for c in variable)
        part = self.make({m: c >> zeros for m, c in rest.items()})
        bits -= zeros
        low, high = part.low, part.high
        if low >> bits == high >> bits:
            return self._plus(whole, self.number(low >> bits))
        merged = self._merged(part, bits)
        if merged is not None:
            return self._plus(whole, self.floor(*merged))
        if part.terms[max(m for m in part.terms if m)] < 0:  # floor(-x / 2^k) = -1 - floor((x - 1) / 2^k)
            other = self.floor(self._plus({_ONE: -1}, self.make({m: -c for m, c in part.terms.items()})), bits)
            return self._plus(whole, self.sum([(-1, other), (-1, self.number(1))]))
        key = (part, bits)
        if key not in self._atom_of:
            low, high = self.bounds(part)
            if low >> bits == high >> bits:
                return self._plus(whole, self.number(low >> bits))
            if (sign := self._sign(part, bits)) is not None:
                return self._plus(whole, sign)
            self._atom_of[key] = len(self.atoms)
            self._new(_Atom("", low >> bits, high >> bits, part, bits))
        return self._plus(whole, self.make({(self._atom_of[key],): 1}))

    def _sign(self, x: Expression, bits: int) -> Expression | None:
        """floor(x / 2^bits) with fewer bits, if it has two values v - 1 and v: v if x >= v 2^bits, however small the
        power of two that is above \\|x - v 2^bits\\|. None if there is no smaller one."""
        low, high = self.bounds(x)
        value = high >> bits
        if low >> bits != value - 1:
            return None
        offset = value << bits
        least = max(offset - low - 1, high - offset).bit_length()
        coefficients = [c for m, c in x.terms.items() if m]
        while least < bits and not all(2 * abs(c) <= 1 << least or not c & (1 << least) - 1 for c in coefficients):
            least += 1
        if least >= bits:
            return None
        found = self.floor(self.sum([(1, x), (-1, self.number(offset))]), least)
        return self.sum([(1, found), (1, self.number(value))])

    def _plus(self, terms: dict[Monomial, int], other: Expression) -> Expression:
        total = dict(terms)
        for m, c in other.terms.items():
            total[m] = total.get(m, 0) + c
        return self.make(total)

    def _merged(self, x: Expression, bits: int) -> tuple[Expression, int] | None:
        """floor((D +- floor(C / 2^j)) / 2^bits) as one floor, of the newest such part; None if there is none."""
        newest = max(
            (m[0] for m, c in x.terms.items() if len(m) == 1 and c in (1, -1) and self.atoms[m[0]].inner is not None),
            default=-1,
        )
        if newest < 0:
            return None
        atom = self.atoms[newest]
        assert atom.inner is not None
        sign, j = x.terms[newest,], atom.shift
        total = {m: c << j for m, c in x.terms.items() if m != (newest,)}
        for m, c in atom.inner.terms.items():
            total[m] = total.get(m, 0) + sign * c
        if sign < 0:
            total[_ONE] = total.get(_ONE, 0) + (1 << j) - 1
        return self.make(total), j + bits

    # ---- ranges

    def within(self, x: Expression, low: int, high: int) -> Expression:
        """x, which is in [low, high]."""
        if low > x.low or high < x.high:
            x.low, x.high = max(x.low, low), min(x.high, high)
            self._remember(x)
            if len(x.terms) == 1:
                ((m, c),) = x.terms.items()
                if len(m) == 1 and c == 1:
                    self.atoms[m[0]].low, self.atoms[m[0]].high = x.low, x.high
        return x

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
        self.within(x, value << bits, (value + 1 << bits) - 1)
        self._facts.append(x)
        newest = max((m[0] for m in floor.terms if len(m) == 1), default=-1)
        if newest >= 0 and floor.terms[newest,] in (1, -1):
            sign = floor.terms[newest,]
            other = self.sum([(sign, self.number(value)), (-sign, floor), (1, self.make({(newest,): 1}))])
            self._equal.append((newest, other))

    def settled(self, x: Expression) -> Expression:
        """x with what is assumed in place of the floors of which it is known."""
        for atom, other in self._equal:
            if c := x.terms.get((atom,), 0):
                x = self.sum([(1, x), (-c, self.make({(atom,): 1})), (c, other)])
        return x

    def matched(self, x: Expression, numbers: Sequence[int]) -> Expression:
        """x with each of these atoms replaced by an older one of them, if their difference is known."""
        for k, newer in reversed(list(enumerate(sorted(numbers)))):
            for older in sorted(numbers)[:k]:
                apart = self.make({(newer,): 1, (older,): -1})
                low, high = self.close_bounds(apart)
                if low == high and (c := x.terms.get((newer,), 0)):
                    x = self.sum([(1, x), (-c, apart), (c, self.number(low))])
        return x

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
        found = self._exact.get(x)
        if found is None:
            low, high = max(x.low, -self._most(self.sum([(-1, x)]))), min(x.high, self._most(x))
            constant, common, rest = self._parts(x)
            if common > 1:  # the rest is a whole number, whose ends may be closer
                least, most = (constant + common * end for end in self.bounds(rest))
                low, high = max(low, least), min(high, most)
            found = self._exact[x] = low, high
        return found

    def _most_of_digits(self, terms: Mapping[Monomial, int]) -> int:
        """An upper bound of a polynomial after its numbers, widest first, are replaced by the digits into which they
        were cut: of the ways to cut a number that which leaves fewest terms."""
        ranges = dict[int, tuple[int, int]]()
        used = {*((a,) for m in terms for a in m), *terms}
        for cut in sorted(used & self._digits.keys(), key=lambda m: (-self._width(m), m)):
            digits = [d for d in self._digits[cut] if d.terms.keys() - {_ONE} <= used]
            found = [(_replaced(terms, cut, digit, -1 - len(ranges)), digit) for digit in digits]
            if found:
                terms, digit = min(found, key=lambda one: (len(one[0]), one[1].high - one[1].low))
                ranges[-1 - len(ranges)] = digit.low, digit.high
        return self._range(terms, ranges)[1]

    def case_bounds(self, x: Expression) -> tuple[int, int]:
        """Bounds of x, case by case if the newest floor in it has two values."""
        newest = max((m[0] for m in x.terms if self._is_floor(m)), default=-1)
        if newest < 0:
            return self.bounds(x)
        atom = self.atoms[newest]
        if atom.inner is None or atom.high != atom.low + 1:
            return self.bounds(x)
        older = max((m[0] for m in x.terms if self._is_floor(m) and m != (newest,)), default=newest)
        merged = {Fraction(sign, 1 << self.atoms[older].shift) for sign in (1, -1)}  # this floor may be merged in inner
        found = []
        for value in (atom.low, atom.high):
            case = self.sum([(1, x), (-x.terms[newest,], self.make({(newest,): 1, _ONE: -value}))])
            low, high = self.bounds(case)
            within = value << atom.shift, (value + 1 << atom.shift) - 1
            pairs = ((case.terms.get(m, 0), c) for m, c in atom.inner.terms.items() if m)
            for ratio in {*merged, *sorted({Fraction(a, b) for a, b in pairs if a})[:_MOST_FACTORS]}:
                factor, scale = ratio.numerator, ratio.denominator
                rest = self.bounds(self.sum([(scale, case), (-factor, atom.inner)]))
                ends = sorted(factor * end for end in within)
                low, high = max(low, -((-rest[0] - ends[0]) // scale)), min(high, (rest[1] + ends[1]) // scale)
            found.append((low, high))
        return min(low for low, _ in found), max(high for _, high in found)

    def close_bounds(self, x: Expression, depth: int = 4) -> tuple[int, int]:
        """Closer bounds of x, which take longer: what a floor leaves, C - 2^k floor(C / 2^k), is from 0 to 2^k - 1."""
        low, high = self.bounds(x)
        return max(low, -self._closest(self.sum([(-1, x)]), depth)), min(high, self._closest(x, depth))

    def _closest(self, x: Expression, depth: int) -> int:
        constant, common, rest = self._parts(x)
        if not common:
            return constant
        best = self.bounds(rest)[1]
        for fact in self._facts if depth else ():
            pairs = ((rest.terms.get(m, 0), c) for m, c in fact.terms.items() if m)
            for ratio in sorted({Fraction(a, b) for a, b in pairs if a})[:_MOST_FACTORS]:
                factor, scale = ratio.numerator, ratio.denominator
                most = factor * (fact.high if factor > 0 else fact.low)
                over = self._closest(self.sum([(scale, rest), (-factor, fact)]), depth - 1)
                best = min(best, (most + over) // scale)
        newest = max((m[0] for m in rest.terms if len(m) == 1 and self.atoms[m[0]].inner is not None), default=-1)
        if newest >= 0 and depth:
            atom, floor = self.atoms[newest], self.make({(newest,): 1})
            assert atom.inner is not None
            pairs = ((rest.terms.get(m, 0), c) for m, c in atom.inner.terms.items() if m)
            for factor in sorted({a // b for a, b in pairs if a and a % b == 0})[:_MOST_FACTORS]:
                end = 1 << atom.shift  # rest = factor (inner - end floor) + left
                left = self.sum([(1, rest), (-factor, atom.inner), (factor * end, floor)])
                best = min(best, max(0, factor * (end - 1)) + self._closest(left, depth - 1))
                if factor > 0:
                    best = min(best, self._split(rest, factor * (end - 1), left, newest, depth - 1))
        return constant + common * best

    def _parts(self, x: Expression) -> tuple[int, int, Expression]:
        """x = constant + common expression, with the largest ``common``."""
        terms = {m: c for m, c in x.terms.items() if m}
        common = gcd(*terms.values())
        return x.terms.get(_ONE, 0), common, self.make({m: c // common for m, c in terms.items()})

    def _split(self, x: Expression, most: int, left: Expression, newest: int, depth: int) -> int:
        """An upper bound of x, at most ``most`` + ``left``: either ``left`` is less than it can be, or the newest floor
        is known."""
        constant, common, rest = self._parts(left)
        sign = rest.terms.get((newest,), 0)
        if sign not in (1, -1):
            return x.high
        highest = self._closest(rest, depth)
        floor = self.make({(newest,): 1})
        other = self.sum([(sign, self.number(highest)), (-sign, rest), (1, floor)])
        equal = self.sum([(1, x), (-x.terms.get((newest,), 0), floor), (x.terms.get((newest,), 0), other)])
        return max(most + constant + common * (highest - 1), self._closest(equal, depth))

    def _most(self, x: Expression) -> int:
        """An upper bound of x."""
        terms, scale = dict(x.terms), 1  # the expression times scale
        best, in_digits = min(x.high, self._most_of_digits(terms)), False
        while replaceable := [m for m in terms if m in self._known or self._is_floor(m)]:
            newest = max(replaceable, key=_newer)
            if not in_digits and self._of_digits(terms):
                best, in_digits = min(best, self._most_of_digits(terms) // scale), True
            c, (f, rest, low, high) = terms.pop(newest), self._fact(newest)
            common = gcd(c, f)
            times, factor = abs(f) // common, c // common if f > 0 else -c // common
            if times > 1:
                terms = {m: value * times for m, value in terms.items()}
                scale *= times
            for m, d in rest.items():
                terms[m] = terms.get(m, 0) - factor * d
            terms[_ONE] = terms.get(_ONE, 0) + factor * (high if factor > 0 else low)
            terms = {m: value for m, value in terms.items() if value}
            best = min(best, self._range(terms)[1] // scale)
        if not in_digits and self._of_digits(terms):
            best = min(best, self._most_of_digits(terms) // scale)
        return best

    def _of_digits(self, terms: Mapping[Monomial, int]) -> bool:
        """Whether a polynomial has products, and no floors of products but in them."""
        inner = (self.atoms[m[0]].inner for m in terms if len(m) == 1)
        return any(len(m) > 1 for m in terms) and not any(x and any(len(m) > 1 for m in x.terms) for x in inner)

    def _fact(self, newest: Monomial) -> tuple[int, Mapping[Monomial, int], int, int]:
        """f, other terms, all older, and the range of f times ``newest`` and these terms."""
        if self._is_floor(newest):
            atom = self.atoms[newest[0]]
            assert atom.inner is not None
            return 1 << atom.shift, {m: -d for m, d in atom.inner.terms.items()}, 1 - (1 << atom.shift), 0
        best = min(self._known[newest], key=lambda fact: Fraction(fact.high - fact.low, abs(fact.terms[newest])))
        return best.terms[newest], {m: d for m, d in best.terms.items() if m != newest}, best.low, best.high


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
