# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Polynomials modulo a prime, in a few variables, and their remainders modulo equations of curves.

A remainder by rules ``leading monomial -> polynomial`` is unique if each rule lowers the degree and no two leading
monomials have a variable in common. Then a polynomial is in the ideal of the equations if its remainder is 0, which is
the only direction used here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce

Exponents = tuple[int, ...]
Rules = Mapping[Exponents, "Polynomial"]


class Polynomial:
    """A polynomial with coefficients modulo ``p``: by exponents of all variables, without those that are 0."""

    def __init__(self, p: int, terms: Mapping[Exponents, int]) -> None:
        self.p = p
        self.terms = {e: c % p for e, c in terms.items() if c % p}

    def __add__(self, other: Polynomial) -> Polynomial:
        terms = dict(self.terms)
        for e, c in other.terms.items():
            terms[e] = terms.get(e, 0) + c
        return Polynomial(self.p, terms)

    def __neg__(self) -> Polynomial:
        return self * -1

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + -other

    def __mul__(self, other: Polynomial | int) -> Polynomial:
        if isinstance(other, int):
            return Polynomial(self.p, {e: c * other for e, c in self.terms.items()})
        terms: dict[Exponents, int] = {}
        for e, c in self.terms.items():
            for f, d in other.terms.items():
                both = tuple(map(sum, zip(e, f, strict=True)))
                terms[both] = terms.get(both, 0) + c * d
        return Polynomial(self.p, terms)

    __rmul__ = __mul__

    def __pow__(self, exponent: int) -> Polynomial:
        return reduce(Polynomial.__mul__, [self] * exponent)

    def remainder(self, rules: Rules) -> Polynomial:
        """What is left when no rule applies to any term."""
        left, done = dict(self.terms), dict[Exponents, int]()
        while left:
            e, c = left.popitem()
            found = next((lead for lead in rules if all(a >= b for a, b in zip(e, lead, strict=True))), None)
            if found is None:
                done[e] = done.get(e, 0) + c
                continue
            rest = tuple(a - b for a, b in zip(e, found, strict=True))
            for f, d in rules[found].terms.items():
                both = tuple(map(sum, zip(rest, f, strict=True)))
                left[both] = (left.get(both, 0) + c * d) % self.p
        return Polynomial(self.p, done)

    def degrees(self, weights: Exponents) -> set[int]:
        """The degrees of its terms, each variable with a weight."""
        return {sum(a * w for a, w in zip(e, weights, strict=True)) for e in self.terms}

    def over(self, other: Polynomial) -> int | None:
        """The constant c other than 0 with self = c other; None if there is none."""
        if not other.terms or self.terms.keys() != other.terms.keys():
            return None
        e, c = next(iter(other.terms.items()))
        ratio = self.terms[e] * pow(c, -1, self.p) % self.p
        return ratio if not (self - other * ratio).terms else None


def variables(p: int, count: int) -> tuple[Polynomial, ...]:
    """The variables of a ring, in order, and the constant 1 after them."""
    return tuple(Polynomial(p, {tuple(int(j == k) for j in range(count)): 1}) for k in range(count + 1))


def faults(checks: Iterable[tuple[str, Polynomial]], rules: Rules | None = None) -> list[str]:
    """A line for each polynomial, with its name, that is not 0 modulo the rules."""
    found = []
    for name, polynomial in checks:
        if terms := polynomial.remainder(rules or {}).terms:
            found.append(f"{name}: {len(terms)} terms remain")
    return found
