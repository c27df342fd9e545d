# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Values of a program as sums of monomials modulo p, in a form that is the same for equal computations.

A monomial is a product of powers of atoms. Atoms are variables, values that a digit selects, and sums: a product of a
sum of several monomials takes the sum as one atom, divided by its first coefficient. So x (y + z) stays a product, and
(2 y + 2 z) x is twice that. Equal forms are equal numbers modulo p, for all values of the variables; different forms
may be equal numbers. An addition chain for x^n gives the monomial x^n.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

Monomial = tuple[tuple[int, int], ...]
"""Pairs of an atom and its exponent, in the order of the atoms."""


class Forms:
    """The atoms of a proof modulo ``p``."""

    def __init__(self, p: int) -> None:
        self.p = p
        self._atoms: dict[Hashable, int] = {}
        self._chosen: dict[Hashable, list[Form]] = {}

    def constant(self, value: int) -> Form:
        """A number."""
        return Form(self, {(): value})

    def atom(self, *name: Hashable) -> Form:
        """An unknown number, by its name."""
        number = self._atoms.setdefault(name, len(self._atoms))
        return Form(self, {((number, 1),): 1})

    def selected(self, digit: int, values: Iterable[Form]) -> Form:
        """The value that has the number of a digit, or of the digit's lowest bit if there are two."""
        return self.atom("selected", digit, tuple(value.key for value in values))

    def chosen(self, digit: int, bit: int, a: Form, b: Form) -> Form:
        """a if a digit has a 1 at ``bit``, else b. Raises ValueError unless both were chosen by all bits below."""
        values = []
        for x in (b, a):
            below = self._chosen.get((digit, x.key), []) if bit else [x]
            if len(below) != 1 << bit:
                raise ValueError(f"a selection by bit {bit} of numbers that bits below did not select")
            values += below
        found = self.selected(digit, values)
        self._chosen[digit, found.key] = values
        return found


class Form:
    """A number: coefficients modulo p of monomials. Supports the operations of `Element`."""

    def __init__(self, forms: Forms, terms: Mapping[Monomial, int]) -> None:
        self.forms = forms
        self.terms = {m: c % forms.p for m, c in terms.items() if c % forms.p}

    @property
    def key(self) -> tuple[tuple[Monomial, int], ...]:
        """The same for equal forms."""
        return tuple(sorted(self.terms.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Form) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(self.key)

    def __add__(self, other: Form) -> Form:
        terms = dict(self.terms)
        for m, c in other.terms.items():
            terms[m] = terms.get(m, 0) + c
        return Form(self.forms, terms)

    def __neg__(self) -> Form:
        return self * -1

    def __sub__(self, other: Form) -> Form:
        return self + -other

    def __mul__(self, other: Form | int) -> Form:
        if isinstance(other, int):
            return Form(self.forms, {m: c * other for m, c in self.terms.items()})
        if not self.terms or not other.terms:
            return self.forms.constant(0)
        for one, two in ((self, other), (other, self)):
            if one.terms.keys() == {()}:
                return two * one.terms[()]
        (m, c), (n, d) = self._single(), other._single()
        powers = dict(m)
        for atom, exponent in n:
            powers[atom] = powers.get(atom, 0) + exponent
        return Form(self.forms, {tuple(sorted((a, e) for a, e in powers.items() if e)): c * d})

    __rmul__ = __mul__

    def __pow__(self, exponent: int) -> Form:
        """A power of a form with one monomial or one atom."""
        m, c = self._single()
        return Form(self.forms, {tuple((a, e * exponent) for a, e in m): pow(c, exponent, self.forms.p)})

    def _single(self) -> tuple[Monomial, int]:
        """The form as one monomial and its coefficient; a sum becomes an atom."""
        if len(self.terms) == 1:
            return next(iter(self.terms.items()))
        first = min(self.terms)
        c = self.terms[first]
        scaled = self * pow(c, -1, self.forms.p)
        ((m, _),) = self.forms.atom("sum", scaled.key).terms.items()
        return m, c
