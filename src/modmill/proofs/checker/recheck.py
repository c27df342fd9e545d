# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The checker of certificates of products: integers only, no search, and nothing from the prover.

It runs the netlist again with rules of its own (`cell_rules`), reads a line when a word needs it, and checks each
line by one step of arithmetic. docs/certificate.md says what the lines mean and what is trusted.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Poly = dict[tuple[int, ...], int]
"""Coefficients that are not 0, by monomial: the numbers of its atoms, in order."""


class RefusedError(ValueError):
    """The certificate proves nothing; the message says where it ends."""


def require(condition: object, what: str) -> None:
    """Raise RefusedError unless the condition holds."""
    if not condition:
        raise RefusedError(what)


def combined(*pairs: tuple[int, Mapping[tuple[int, ...], int]]) -> Poly:
    """The sum of multiples."""
    total: Poly = {}
    for factor, poly in pairs:
        for m, c in poly.items():
            total[m] = total.get(m, 0) + factor * c
    return {m: c for m, c in total.items() if c}


class Book:
    """The lines of one run. ``polys``: all polynomials by number; ``facts``: (polynomial, bound), it is at most this;
    ``given``: (low, high) of polynomials of which the replay knows the range; ``floors``, ``choices``: what was read,
    by polynomial and bits."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self._ids: dict[frozenset[tuple[tuple[int, ...], int]], int] = {}
        self.polys: list[Poly] = []
        self.low: dict[int, int] = {}
        self.high: dict[int, int] = {}
        self._terms: list[int] = []
        self.facts: list[tuple[Poly, int]] = []
        self.given: dict[int, tuple[int, int]] = {}
        self.floors: dict[tuple[int, int], int] = {}
        self.choices: dict[tuple[str, int, int], Any] = {}
        self._free: deque[tuple[int, int, int]] = deque()
        self._last: list[Any] | None = None

    # ---- what the replay asks

    def id(self, poly: Poly) -> int:
        """The number of a polynomial."""
        found = self._ids.setdefault(frozenset(poly.items()), len(self.polys))
        if found == len(self.polys):
            self.polys.append(poly)
        return found

    def atom(self, width: int) -> Poly:
        """The next atom without a meaning, which becomes any word of this width."""
        return self.ranged((1 << width) - 1)

    def ranged(self, most: int) -> Poly:
        """The next atom without a meaning, which becomes a number from 0 to ``most``."""
        while not self._free:
            self._read()
        number, low, high = self._free.popleft()
        require((low, high) == (0, most), f"atom {number} has another range")
        return {(number,): 1}

    def floor(self, word: int, bits: int) -> Poly:
        """floor(word / 2^bits)."""
        if not bits:
            return self.polys[word]
        while (word, bits) not in self.floors:
            self._read()
        return self.polys[self.floors[word, bits]]

    def choice(self, kind: str, poly: Poly, bits: int) -> Any:
        """What was decided of a polynomial."""
        key = kind, self.id(poly), bits
        while key not in self.choices:
            self._read()
        return self.choices[key]

    def times(self, x: Poly, y: Poly) -> Poly:
        """The product; b b = b for an atom of a bit, -b if it is 0 or -1."""
        total: Poly = {}
        for m, c in x.items():
            for n, d in y.items():
                kept, value = list(m), c * d
                for a in n:
                    ends = self.low[a], self.high[a]
                    if a in m and ends in ((0, 1), (-1, 0)):
                        value *= sum(ends)
                    else:
                        kept.append(a)
                key = tuple(sorted(kept))
                total[key] = total.get(key, 0) + value
        return {m: c for m, c in total.items() if c}

    def finish(self) -> None:
        """Read to the last line of a run, or of an interval without operands."""
        while self._last is None:
            self._read()

    def last(self) -> list[Any]:
        """The last line of a run."""
        self.finish()
        require(not self._free, "an atom has no meaning")
        return list(self._last or [])

    def poly(self, number: int) -> Poly:
        """The polynomial with a number in the certificate."""
        return self.polys[self._terms[_index(number)]]

    def end(self, fact: int, poly: Poly) -> int:
        """The upper bound that a fact says of a polynomial."""
        return self._end(_index(fact), poly)

    def conclude(self, number: Poly, wanted: Poly, p: int, end: int) -> None:
        """The last line: ``number`` is from 0 to ``end`` - 1, and congruent to ``wanted`` modulo ``p``."""
        most, least, equal = self.last()
        require(self._end(most, number) < end and self._end(least, combined((-1, number))) <= 0, "the range is open")
        rest = combined((1, number), (-1, wanted))
        for factor, up, down in equal:
            (poly, bound), (other, below) = self._fact(up), self._fact(down)
            require(other == combined((-1, poly)) and bound == -below, "an equality has two values")
            rest = combined((1, rest), (-factor, poly), (factor * bound, {(): 1}))
        require(all(c % p == 0 for c in rest.values()), "the result is not congruent")

    # ---- lines

    def _read(self) -> None:
        require(self._last is None, "the certificate ends before the run")
        line = next(self._lines, None)
        require(line is not None, "the certificate ends early")
        kind, *rest = numbers(str(line))
        if kind == "end":
            self._last = rest
            return
        require(kind in _LINES, f"there are no lines of the kind {kind}")
        _LINES[kind](self, *rest)

    def _fact(self, number: int) -> tuple[Poly, int]:
        return self.facts[_index(number)]

    def _end(self, fact: int | None, poly: Poly) -> int:
        """The upper bound that a fact says of a polynomial, or else its terms."""
        if fact is None:
            return self.top(poly)
        known, bound = self._fact(fact)
        require(known == poly, f"fact {fact} is about something else")
        return bound

    def top(self, poly: Poly, others: Mapping[int, tuple[int, int]] | None = None) -> int:
        """The upper bound of a polynomial by the ranges of its atoms. ``others``: of numbers that are no atoms."""
        total = 0
        for m, c in poly.items():
            low = high = 1
            for a in m:
                least, most = (self.low[a], self.high[a]) if a >= 0 else (others or {})[a]
                ends = low * least, low * most, high * least, high * most
                low, high = min(ends), max(ends)
            total += c * (high if c > 0 else low)
        return total

    def _learn(self, poly: Poly, bound: int) -> None:
        self.facts.append((poly, bound))
        if len(poly) == 1:
            ((m, c),) = poly.items()
            if len(m) == 1 and c == 1:
                self.high[m[0]] = min(self.high[m[0]], bound)
            if len(m) == 1 and c == -1:
                self.low[m[0]] = max(self.low[m[0]], -bound)

    def _bound(
        self, poly: Poly, scale: int, parts: Sequence[tuple[int, int]], digits: Sequence[Any] = (), *,
        assumed: tuple[int, Poly, int] = (0, {}, 0),
    ) -> int:  # fmt: skip
        """The upper bound of a polynomial from ``scale`` times it as a sum of facts and a rest."""
        facts = [(factor, *self._fact(number)) for factor, number in parts]
        require(scale > 0 and assumed[0] >= 0 and all(f[0] > 0 for f in facts), "a factor has the wrong sign")
        facts.append(assumed)
        rest = combined((scale, poly), *((-factor, known) for factor, known, _ in facts))
        ranges: dict[int, tuple[int, int]] = {}
        for cut, number, least, most in digits:
            digit, name = self.poly(number), -1 - len(ranges)
            ranges[name] = -self._end(least, combined((-1, digit))), self._end(most, digit)
            rest = _replaced(rest, tuple(cut), digit, name)
        return (sum(factor * bound for factor, _, bound in facts) + self.top(rest, ranges)) // scale

    def _read_terms(self, *terms: list[int]) -> None:
        poly = {tuple(m): c for c, *m in terms}
        require(len(poly) == len(terms) and all(c and list(m) == sorted(m) for m, c in poly.items()), "malformed terms")
        require(all(a >= 0 for m in poly for a in m), "malformed terms")
        self._terms.append(self.id(poly))

    def _read_atom(self, number: int, low: int, high: int) -> None:
        require(number not in self.low and low <= high, f"atom {number} is not new")
        self.low[_index(number)], self.high[number] = low, high
        self._free.append((number, low, high))

    def _read_cut(self, number: int, of: int, bits: int, least: int | None, most: int | None) -> None:
        x = self.poly(of)
        require(number not in self.low and bits > 0, f"atom {number} is not new")
        ends = -self._end(least, combined((-1, x))) >> bits, self._end(most, x) >> bits
        require(all(a in self.low for m in x for a in m), "a floor of something unknown")
        self.low[_index(number)], self.high[number] = ends
        self._floor_facts(x, bits, {(number,): 1})

    def _floor_facts(self, x: Poly, bits: int, value: Poly) -> None:
        rest = combined((1, x), (-1 << bits, value))
        self.facts += [(rest, (1 << bits) - 1), (combined((-1, rest)), 0)]

    def _read_floor(self, of: int, bits: int, value: int, most: Sequence[Any], least: Sequence[Any]) -> None:
        x, found = self.poly(of), self.poly(value)
        rest = combined((1, x), (-1 << bits, found))
        require(self._bound(rest, *most) < 1 << bits, f"{len(self.facts)}: a floor is less")
        require(self._bound(combined((-1, rest)), *least) <= 0, f"{len(self.facts)}: a floor is more")
        self.floors[self.id(x), bits] = self.id(found)
        self._floor_facts(x, bits, found)

    def _read_sum(self, of: int, sign: int, bound: int, scale: int, parts: Any, digits: Any = ()) -> None:
        poly = self._signed(of, sign)
        require(self._bound(poly, scale, parts, digits) <= bound, f"{len(self.facts)}: a bound does not follow")
        self._learn(poly, bound)

    def _signed(self, of: int, sign: int) -> Poly:
        require(sign in (1, -1), "malformed sign")
        return combined((sign, self.poly(of)))

    def _read_split(self, of: int, sign: int, bound: int, on: int, end: int, *cases: Any) -> None:
        poly, what = self._signed(of, sign), self.poly(on)
        below, above = (what, end), (combined((-1, what)), -end - 1)
        for (factor, scale, parts), case in zip(cases, (below, above), strict=True):
            found = self._bound(poly, scale, parts, assumed=(factor, *case))
            require(found <= bound, f"{len(self.facts)}: a case does not follow")
        self._learn(poly, bound)

    def _read_product(self, of: int, sign: int, bound: int, x: int, y: int, ends: Sequence[int | None]) -> None:
        poly, factors = self._signed(of, sign), (self.poly(x), self.poly(y))
        require(self.times(*factors) == self.poly(of), f"{len(self.facts)}: a product is another one")
        (a, b), (c, d) = (
            (-self._end(least, combined((-1, factor))), self._end(most, factor))
            for factor, least, most in zip(factors, ends[::2], ends[1::2], strict=True)
        )
        require(max(sign * e for e in (a * c, a * d, b * c, b * d)) <= bound, f"{len(self.facts)}: a product is larger")
        self._learn(poly, bound)

    def _read_given(self, of: int, sign: int, bound: int) -> None:
        low, high = self.given[self._terms[_index(of)]]
        require((high if sign > 0 else -low) <= bound, f"{len(self.facts)}: nothing gives this bound")
        self._learn(self._signed(of, sign), bound)

    def _read_choice(self, kind: str, of: int, bits: int, value: int | None, facts: Sequence[int | None]) -> None:
        poly, made = self.poly(of), value
        if kind in ("apart", "decide") and value is not None and value is not False:
            least, most = -self._end(facts[0], combined((-1, poly))), self._end(facts[1], poly)
            if kind == "apart":
                require(least > 0 or most < 0, "two words may be equal")
            else:
                require(most >> bits == (least >> bits) + 1 and value in (least >> bits, most >> bits), "not two cases")
        self.choices[kind, self._terms[of], bits] = made


def _index(number: int) -> int:
    require(number >= 0, "a number is below 0")
    return number


def numbers(line: str) -> list[Any]:
    """A line: a list, of integers but for names. Raises RefusedError if it is something else."""

    def no(text: str) -> None:
        raise RefusedError(f"{text} is no integer")

    found = json.loads(line, parse_float=no, parse_constant=no)
    require(isinstance(found, list) and found, "a line is no list")
    return list(found)


def _replaced(poly: Poly, cut: tuple[int, ...], digit: Poly, name: int) -> Poly:
    """A polynomial with number ``name``, which is ``digit``, in place of ``cut``, a monomial of the digit."""
    sign = digit[cut]
    require(sign in (1, -1) and cut, "a digit has another factor")
    other = combined((sign, {(name,): 1}), (-sign, {m: c for m, c in digit.items() if m != cut}))
    require(not any(cut[0] in m for m in other) or len(cut) > 1, "a digit has its number twice")
    done, todo = Poly(), dict(poly)
    while todo:
        m, c = todo.popitem()
        if m != cut and (len(cut) > 1 or cut[0] not in m):
            done[m] = done.get(m, 0) + c
            continue
        rest = list(m)
        for a in cut:
            rest.remove(a)
        for n, d in other.items():
            key = tuple(sorted((*rest, *n)))
            todo[key] = todo.get(key, 0) + c * d
    return {m: c for m, c in done.items() if c}


_LINES: dict[str, Callable[..., None]] = {
    "terms": Book._read_terms, "atom": Book._read_atom, "cut": Book._read_cut, "floor": Book._read_floor,
    "sum": Book._read_sum, "split": Book._read_split, "product": Book._read_product, "given": Book._read_given,
    "choice": Book._read_choice,
}  # fmt: skip
