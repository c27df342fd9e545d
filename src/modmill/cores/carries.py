# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Sums that hardware cuts into slices, compared with the sum as a whole.

A slice adds its bits and the carry of the slice below it, which is a floor; what leaves is a floor again. Both sides
get one form by

    floor((2 y + r) / 2^k) = floor(y / 2^(k - 1))                 for r from 0 to 1
    floor(x / 2^(j + k)) = floor(floor(x / 2^j) / 2^k)
    floor(-x / 2^k) = -1 - floor((x - 1) / 2^k)

where r is a number, a carry, or the difference of two, whose range follows from those of their floors.
"""

from __future__ import annotations

from collections.abc import Iterator

from modmill.flow.integers import Integers
from modmill.flow.polynomials import Expression


class Carries:
    """Forms of the expressions of ``make`` in which carries of slices come out."""

    def __init__(self, make: Integers) -> None:
        self._make = make
        self._known: dict[Expression, Expression] = {}

    def same(self, x: Expression, y: Expression) -> bool:
        """Whether the two are seen to be equal."""
        return self._make.sum([(1, self.form(x)), (-1, self.form(y))]).constant == 0

    def form(self, x: Expression) -> Expression:
        """The form of an expression."""
        if x not in self._known:
            make, terms = self._make, []
            for m, c in x.terms.items():
                atom = make.atoms[m[0]] if len(m) == 1 else None
                if atom is not None and atom.inner is not None:
                    terms.append((c, self._floor(self.form(atom.inner), atom.shift)))
                else:
                    terms.append((c, make.make({m: 1})))
            self._known[x] = make.sum(terms)
        return self._known[x]

    def _floor(self, inner: Expression, k: int) -> Expression:
        """The form of floor(inner / 2^k)."""
        make = self._make
        while k and (y := self._half(inner)) is not None:
            inner, k = y, k - 1
        if k == 0:
            return inner
        for j in sorted({(c & -c).bit_length() - 1 for c in inner.terms.values()}):
            if 0 < j < k:
                e = self._floor(inner, j)
                if self._half(e) is not None:
                    return self._floor(e, k - j)
        lead = min((m for m in inner.terms if m), default=None)
        if lead is not None and inner.terms[lead] < 0:
            negative = make.sum([(-1, inner), (-1, make.number(1))])
            return make.sum([(-1, make.floor(negative, k)), (-1, make.number(1))])
        return make.floor(inner, k)

    def _half(self, x: Expression) -> Expression | None:
        """y with x = 2 y + 0 or 1; None if none is found."""
        for rest in self._rests(x):
            low, high = rest.low, rest.high
            if low < 0 or high > 1:
                low, high = self._make.close_bounds(rest)
            if low >= 0 and high <= 1:
                y = self._make.sum([(1, x), (-1, rest)])
                return self._make.make({m: c // 2 for m, c in y.terms.items()})
        return None

    def _rests(self, x: Expression) -> Iterator[Expression]:
        """Expressions with the odd coefficients of x, at most two besides the constant."""
        make = self._make
        odd = [m for m, c in x.terms.items() if c & 1 and m]
        parity = x.terms.get((), 0) & 1
        if not odd:
            yield make.number(parity)
        elif len(odd) <= 2:
            signs = [(1,), (-1,)] if len(odd) == 1 else [(1, 1), (1, -1), (-1, 1), (-1, -1)]
            for some in signs:
                for k in (-2, 0, 2):
                    yield make.sum([(1, make.make(dict(zip(odd, some, strict=True)))), (parity + k, make.number(1))])
