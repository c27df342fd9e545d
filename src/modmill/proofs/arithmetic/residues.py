# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Products of numbers as residues, over the integers: what is to be shown, and how it is found.

The words of the operands are any representatives x_k, y_k of X s_k and Y s_k modulo m_k. A proof names a number R, a
quotient Q, both polynomials in words that the core stores and in floors, and a divisor D, so that

    o_k = R s_k            modulo m_k, for each word of the result
    D R = X Y + Q p        modulo each m_k, and both sides differ by less than the product of all m_k
    D factor = 1           modulo p

So D R = X Y + Q p, and R is congruent to X Y factor. Its range is that of R, or that of (X Y + Q p) / D. A word that is
stored is an unknown number; modulo m_k it may be replaced by the polynomial of which it is the value (`vanishes`). What
makes an approximate quotient of a base extension right, the ranges of its words and the error of the cox, is so in the
range of D R - Q p.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from math import gcd, prod
from typing import Any

from modmill.proofs.arithmetic.certificate import Witness
from modmill.proofs.arithmetic.integers import Integers
from modmill.proofs.arithmetic.polynomials import Expression, Monomial

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
class Goal:
    """The claim in numbers: as `products.Claim`."""

    p: int
    factor: int
    largest: int
    end: int


def remains(make: Integers, goal: Goal, found: Product) -> tuple[tuple[str, ...], Witness | None]:
    """What is not proved of a product, for the best of the numbers R that are found, and this one."""
    best: tuple[tuple[str, ...], Witness | None] = ("congruence: no numbers R and Q are found",), None
    for divisor, number, quotient in _candidates(make, goal, found):
        open_ = _not_congruent(make, goal, found, divisor, number, quotient)
        if open_:
            best = (open_, None) if best[0][0].startswith("congruence: no") else best
            continue
        witness = _ranged(make, goal, divisor, number, quotient)
        open_ = _too_wide(goal, found.form, witness)
        if not open_:
            return (), witness
        best = open_, None
    return best


def _not_congruent(
    make: Integers, goal: Goal, found: Product, divisor: int, number: Expression, quotient: Expression
) -> tuple[str, ...]:  # fmt: skip
    """The words that are not what R and Q say."""
    form, wrong, apart = found.form, list[int](), list[int]()
    for k, (m, scale) in enumerate(zip(form.moduli, form.scales, strict=True)):
        if not vanishes(make, make.sum([(1, found.result[k]), (-scale, number)]), m, found.named):
            wrong.append(k)
        own = pow(scale, -2, m), make.product(found.x[k], found.y[k])
        whole = make.sum([(divisor, number), (-goal.p, quotient), (-own[0], own[1])])
        if not vanishes(make, whole, m, found.named):
            apart.append(k)
    lines = ("are no residues of the number R that was found", wrong), ("do not have D R = X Y + Q p", apart)
    return tuple(f"congruence: {len(some)} of {len(form.moduli)} words {line}" for line, some in lines if some)


def _ranged(make: Integers, goal: Goal, divisor: int, number: Expression, quotient: Expression) -> Witness:
    """R, Q and D with their ranges."""
    apart = make.sum([(divisor, number), (-goal.p, quotient)])
    facts = [make.side(x, sign, [(x, [])]) for x in (apart, quotient, number) for sign in (1, -1)]
    return Witness(number, quotient, divisor, tuple(facts))


def _too_wide(goal: Goal, form: Channels, witness: Witness) -> tuple[str, ...]:
    """The ranges that are too wide."""
    most, least, q_most, q_least, r_most, r_least = (fact.bound for fact in witness.facts)
    every, square, found = prod(form.moduli), goal.largest**2, list[str]()
    if most >= every or square + least >= every:
        found.append(f"range: D R - Q p is from {-least / every:.3g} to {most / every:.3g} times all moduli")
    high = min(r_most, (square + goal.p * q_most) // witness.divisor)
    low = max(-r_least, -(goal.p * q_least // witness.divisor))
    if high >= goal.end:
        found.append(f"range: the upper bound that was found is {(high - goal.end + 1) / goal.p:.3g} p too large")
    if low < 0:
        found.append(f"range: the lower bound that was found is {-low / goal.p:.3g} p below 0")
    return tuple(found)


def vanishes(make: Integers, x: Expression, modulus: int, named: Named) -> bool:
    """Whether x is a multiple of the modulus, by its coefficients after the newest stored words in it, again and again,
    are replaced by what they are."""
    return not _expanded(make, x, modulus, named).terms


def _modulo(make: Integers, x: Expression, modulus: int) -> Expression:
    return make.make({m: c % modulus for m, c in x.terms.items()})


def _replaced(make: Integers, x: Expression, atom: int, by: Expression) -> Expression:
    """x with an expression in place of an atom."""
    parts = [(1, make.make({m: c for m, c in x.terms.items() if atom not in m}))]
    for m, c in x.terms.items():
        if atom in m:
            rest = list(m)
            rest.remove(atom)
            parts.append((c, make.product(make.make({tuple(rest): 1}), by)))
    return make.sum(parts)


# ---- R, Q and D


def _candidates(make: Integers, goal: Goal, found: Product) -> Iterator[tuple[int, Expression, Expression]]:
    """D, R and Q: D is the product of the first moduli, those of base A. The first base extension adds a multiple of p
    to X Y; its words, with their factors modulo all moduli of base B, are Q. The second one has R from words over B,
    with their factors modulo all moduli of base A, and from h, whose factor is -B."""
    form, divisor = found.form, 1
    for n, m in enumerate(form.moduli, 1):
        divisor *= m
        if divisor * goal.factor % goal.p != 1 % goal.p:
            continue
        over_a, over_b = range(n), range(n, len(form.moduli))
        first, second = dict[Monomial, _Factor](), dict[Monomial, _Factor]()
        for k in over_b:
            m, scale = form.moduli[k], form.scales[k]
            if gcd(goal.p, m) > 1 or gcd(divisor, m) > 1:
                continue
            for monomial, c in _local(make, found, k).terms.items():
                first.setdefault(monomial, {})[m] = divisor * c * pow(scale * goal.p, -1, m) % m
        for k in over_a:
            m, scale = form.moduli[k], form.scales[k]
            for monomial, c in _meaning(make, found, k).terms.items():
                second.setdefault(monomial, {})[m] = c * pow(scale, -1, m) % m
        b = prod(m for k in over_b if (m := form.moduli[k]) % 2)
        of_a, of_b = [form.moduli[k] for k in over_a], [form.moduli[k] for k in over_b if gcd(goal.p, form.moduli[k]) == 1]
        quotient = make.make({m: _lifted(c, of_b, 0) for m, c in first.items()})
        yield divisor, make.make({m: _lifted(c, of_a, -b) for m, c in second.items()}), quotient


_Factor = dict[int, int]
"""A factor modulo each of some moduli; 0 modulo the others."""


def _lifted(factor: _Factor, moduli: Sequence[int], wanted: int) -> int:
    """The factor: ``wanted`` if it is this one, else the least in size."""
    every = prod(moduli)
    found = sum(factor.get(m, 0) * pow(every // m, -1, m) * (every // m) for m in moduli) % every
    return wanted if (found - wanted) % every == 0 else (found + every // 2) % every - every // 2


def _meaning(make: Integers, found: Product, k: int) -> Expression:
    """Word k of the result modulo m_k, by words that are stored: if it is one itself, what it is."""
    m, word = found.form.moduli[k], found.result[k]
    atoms = [t[0] for t in word.terms if len(t) == 1]
    if len(word.terms) == 1 and atoms:
        word = found.named.get(atoms[0], word)
    return _expanded(make, word, m, {a: x for a, x in found.named.items() if a not in found.stored})


def _expanded(make: Integers, x: Expression, modulus: int, named: Named) -> Expression:
    """x modulo the modulus after words, newest first, are replaced by what they are."""
    x = _modulo(make, x, modulus)
    while (newest := max((a for m in x.terms for a in m if a in named), default=None)) is not None:
        x = _modulo(make, _replaced(make, x, newest, named[newest]), modulus)
    return x


def _local(make: Integers, found: Product, k: int) -> Expression:
    """Word k of the result modulo m_k without the product of the operands' own words, which stored words in it may
    be."""
    m = found.form.moduli[k]
    own = tuple(sorted(a for t in (*found.x[k].terms, *found.y[k].terms) for a in t))
    x = _meaning(make, found, k)
    for (atom,) in [t for t in x.terms if len(t) == 1 and t[0] in found.stored]:
        if _expanded(make, found.named[atom], m, found.named).terms.keys() <= {own}:
            x = _modulo(make, _replaced(make, x, atom, make.number(0)), m)
    return make.make({t: c for t, c in x.terms.items() if t != own})
