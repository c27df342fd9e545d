# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Numbers as words that are residues, and polynomials of such words modulo a word's modulus.

A word that has a name is an unknown number; modulo m_k it may be replaced by the polynomial of which it is the value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from math import prod
from typing import Any

from modmill.proofs.arithmetic.integers import Integers
from modmill.proofs.arithmetic.polynomials import Expression, Monomial
from modmill.proofs.arithmetic.reasons import Fact

Named = Mapping[int, Expression]
"""The polynomials whose values words are, by the atoms that stand for the words."""


@dataclass(frozen=True)
class Channels:
    """The form of a number as words of ``bits`` bits, the first in the least significant bits: any representatives of
    the number times its scale, modulo its modulus."""

    bits: int
    moduli: tuple[int, ...]
    scales: tuple[int, ...]

    @property
    def width(self) -> int:
        """Bits of a port."""
        return self.bits * len(self.moduli)

    def describe(self) -> dict[str, Any]:
        """The form as JSON."""
        return {"kind": "residues", "bits": self.bits, "moduli": [*self.moduli], "scales": [*self.scales]}


@dataclass(frozen=True)
class Product:
    """What is known of a product: the words of the operands and of the result, the words with names, and those of them
    that memories store."""

    form: Channels
    x: Sequence[Expression]
    y: Sequence[Expression]
    result: Sequence[Expression]
    named: Named
    stored: Set[int]


@dataclass(frozen=True)
class Guess:
    """Numbers D, R and Q (`residues`). ``ends``: upper bounds of D R - Q p and of its negative, if they are known."""

    divisor: int
    number: Expression
    quotient: Expression
    ends: tuple[Fact, Fact] | None = None


class Factors(dict[Monomial, dict[int, int]]):
    """The factor of each monomial modulo each of some moduli."""

    def add(self, x: Expression, modulus: int, times: int) -> None:
        """Note the coefficients of x, with a factor."""
        for monomial, c in x.terms.items():
            self.setdefault(monomial, {})[modulus] = c * times % modulus

    def lifted(
        self, moduli: Sequence[int], zero: Mapping[Monomial, Sequence[int]], wanted: int
    ) -> dict[Monomial, int]:  # fmt: skip
        """The factors: ``wanted`` if it is one, else the least in size. ``zero``: moduli of which a factor is a
        multiple besides."""
        found = {}
        for monomial, factor in self.items():
            every = prod(all_ := [*moduli, *zero.get(monomial, ())])
            c = sum(factor.get(m, 0) * pow(every // m, -1, m) * (every // m) for m in all_) % every
            found[monomial] = wanted if (c - wanted) % every == 0 else (c + every // 2) % every - every // 2
        return found


def _modulo(make: Integers, x: Expression, modulus: int) -> Expression:
    return make.make({m: c % modulus for m, c in x.terms.items()})


def replaced(make: Integers, x: Expression, atom: int, by: Expression) -> Expression:
    """x with an expression in place of an atom."""
    parts = [(1, make.make({m: c for m, c in x.terms.items() if atom not in m}))]
    for m, c in x.terms.items():
        if atom in m:
            rest = list(m)
            rest.remove(atom)
            parts.append((c, make.product(make.make({tuple(rest): 1}), by)))
    return make.sum(parts)


def expanded(make: Integers, x: Expression, modulus: int, named: Named) -> Expression:
    """x modulo the modulus after words, newest first, are replaced by what they are."""
    x = _modulo(make, x, modulus)
    while (newest := max((a for m in x.terms for a in m if a in named), default=None)) is not None:
        x = _modulo(make, replaced(make, x, newest, named[newest]), modulus)
    return x
