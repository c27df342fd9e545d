# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""R and Q of a sum of residues, with D = 1: the words are sum_i gamma_i r_i + v_alpha - kappa p modulo each m_k.

X Y is S = sum_i gamma_i M_i - alpha M, whose factors are known: gamma_i is modulo m_i what a channel makes of its own
words of the operands, so its factor is the inverse of that modulo m_i, 0 modulo all others, and that of R modulo p. So
Q = (R - S) / p. In a case of alpha the sum of the upper bits t_i of all gamma_i is known; the range of S follows from
gamma_i = 2^b t_i + what is left, with the least factor for all t_i and the rest of the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd
from typing import TYPE_CHECKING

from modmill.proofs.arithmetic.integers import Integers
from modmill.proofs.arithmetic.polynomials import Expression, Monomial
from modmill.proofs.arithmetic.reasons import GIVEN, Fact, Lemma, Sum, parts
from modmill.proofs.arithmetic.residue_words import Factors, Guess, Named, Product, expanded

if TYPE_CHECKING:
    from modmill.proofs.arithmetic.products import Claim

_Part = tuple[int, Expression, Fact, Fact]
"""A factor, and an expression with both ends, the upper one first."""


def sums(make: Integers, claim: Claim, found: Product) -> Iterator[Guess]:
    """R and Q, if the result is a sum of residues of this kind."""
    form, of = found.form, _Channels(make, found)
    if claim.factor % claim.p != 1 % claim.p or any(gcd(claim.p, m) > 1 for m in form.moduli):
        return
    terms = _whole(make, claim, found, of).terms
    factors = Factors({monomial: {claim.p: c} for monomial, c in terms.items()})
    for k, (m, scale) in enumerate(zip(form.moduli, form.scales, strict=True)):
        _, word = _divided(make, of.own(make.make(terms), k))
        (product,) = make.product(found.x[k], found.y[k]).terms
        factor = expanded(make, word, m, found.named).terms.get(product, 0)
        if gcd(factor, m) > 1:
            return
        factors.add(word, m, pow(factor * scale * scale, -1, m))
    whole = make.make(factors.lifted([*form.moduli, claim.p], {}, 0))
    number = _lifted(make, found, {a: x for a, x in found.named.items() if len(of.atom(a)) > 1})
    apart = make.sum([(1, number), (-1, whole)])
    if all(c % claim.p == 0 for c in apart.terms.values()):
        quotient = make.make({m: c // claim.p for m, c in apart.terms.items()})
        yield Guess(1, number, quotient, _ends(make, found, of, whole))


def _whole(make: Integers, claim: Claim, found: Product, of: _Channels) -> Expression:
    """A number of which the words of the result are residues. Words of several channels in it are replaced by what they
    are, but for multiples of p."""
    passed = dict[int, Expression]()
    while True:
        number = _lifted(make, found, passed)
        some = {a for monomial, c in number.terms.items() if c % claim.p for a in monomial if len(of.atom(a)) > 1}
        if not (some := some & found.named.keys()):
            return number
        passed |= {a: found.named[a] for a in some}


def _lifted(make: Integers, found: Product, passed: Named) -> Expression:
    """A number of which the words of the result are residues, after words are replaced by what they are."""
    form, number = found.form, Factors()
    for k, (m, scale) in enumerate(zip(form.moduli, form.scales, strict=True)):
        number.add(expanded(make, found.result[k], m, passed), m, pow(scale, -1, m))
    return make.make(number.lifted(form.moduli, {}, 0))


class _Channels:
    """The channels of which words of the operands are in an atom."""

    def __init__(self, make: Integers, found: Product) -> None:
        self._make, self._named, self._of = make, found.named, dict[int, frozenset[int]]()
        for k, words in enumerate(zip(found.x, found.y, strict=True)):
            for word in words:
                self._of.update({a: frozenset({k}) for monomial in word.terms for a in monomial})

    def own(self, x: Expression, k: int) -> Expression:
        """The terms of x with words of channel k only."""
        return self._make.make({m: c for m, c in x.terms.items() if self.monomial(m) == {k}})

    def monomial(self, monomial: Monomial) -> frozenset[int]:
        """Those of a product of atoms."""
        return frozenset().union(*map(self.atom, monomial))

    def atom(self, atom: int) -> frozenset[int]:
        """Those of an atom, by what it stands for or is the floor of."""
        if atom not in self._of:
            inner = self._named.get(atom) or self._make.atoms[atom].inner
            self._of[atom] = frozenset().union(*map(self.monomial, inner.terms if inner else ()))
        return self._of[atom]


# ---- the range of S


def _ends(make: Integers, found: Product, of: _Channels, whole: Expression) -> tuple[Fact, Fact] | None:
    """Upper bounds of S and of -S, in a case in which the sum of upper bits is known; None if it is not."""
    named, words = list[_Part](), list[tuple[int, dict[int, Lemma]]]()
    floors = _floors(make)
    for k in range(len(found.form.moduli)):
        own, new = _unnamed(make, found.named, of.own(whole, k))
        named += new
        factor, word = _divided(make, own)
        ways = (factor, word), (-factor, make.sum([(-1, word)]))
        words += [(f, floors[x]) for f, x in ways if x in floors]
    best, least = list[tuple[Fact, Fact]](), min((f for f, _ in words), key=abs, default=0)
    for bits in set[int]().union(*(known for _, known in words)):
        cuts = [(f, known[bits]) for f, known in words if bits in known]
        every = [part for f, cut in cuts for part in _cut(make, f, cut, least)]
        for total in make.assumed(make.sum((1, cut.value) for _, cut in cuts)):
            used = [*named, *every, (least << bits, total, make.end(total, 1), make.end(total, -1))]
            best.append((_end(make, whole, 1, used), _end(make, whole, -1, used)))
    return min(best, key=lambda ends: ends[0].bound + ends[1].bound, default=None)


def _floors(make: Integers) -> dict[Expression, dict[int, Lemma]]:
    """What was found of floors, by what they are of and the bits; of several the first."""
    found = dict[Expression, dict[int, Lemma]]()
    for step in make.steps:
        if isinstance(step, Lemma):
            found.setdefault(step.x, {}).setdefault(step.bits, step)
    return found


def _cut(make: Integers, factor: int, cut: Lemma, least: int) -> list[_Part]:
    """``factor`` times a word, but for ``least`` times its upper bits: what these leave, and the rest of them."""
    value = cut.value
    left = make.sum([(1, cut.x), (-1 << cut.bits, value)])
    upper = (factor - least << cut.bits, value, make.end(value, 1), make.end(value, -1))
    return [(factor, left, cut.most, cut.least), upper]


def _divided(make: Integers, x: Expression) -> tuple[int, Expression]:
    """The largest factor of all coefficients of x, and the rest."""
    factor = gcd(*x.terms.values())
    return factor, make.make({m: c // factor for m, c in x.terms.items()})


def _unnamed(make: Integers, named: Named, x: Expression) -> tuple[Expression, list[_Part]]:
    """x with words in place of their names, and what x has more, which is 0."""
    more = list[_Part]()
    for monomial, c in x.terms.items():
        if len(monomial) == 1 and monomial[0] in named:
            apart = make.sum([(1, make.make({monomial: 1})), (-1, named[monomial[0]])])
            more.append((c, apart, make.fact(apart, 1, 0, GIVEN), make.fact(apart, -1, 0, GIVEN)))
    return make.sum([(1, x), *((-c, apart) for c, apart, *_ in more)]), more


def _end(make: Integers, x: Expression, sign: int, of: list[_Part]) -> Fact:
    """An upper bound of x, or of -x if ``sign`` is -1, which has these parts and a rest."""
    rest = make.sum([(1, x), *((-f, part) for f, part, *_ in of)])
    used = [(abs(f), most if sign * f > 0 else least) for f, _, most, least in of]
    bound = sum(f * fact.bound for f, fact in used) + max(sign * rest.low, sign * rest.high)
    return make.fact(x, sign, bound, Sum(1, parts([*used, (1, rest.most if sign > 0 else rest.least)])))
