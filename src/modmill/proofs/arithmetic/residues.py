# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Products of numbers as residues, over the integers: what is to be shown, and how it is found.

The words of the operands are any representatives x_k, y_k of X s_k and Y s_k modulo m_k. A proof names a number R, a
quotient Q, both polynomials in words that the core stores and in floors, and a divisor D, so that

    D R = X Y + Q p        modulo some m_k, or half of it, ..., and both sides differ by less than the product of these
    o_k = R s_k            modulo m_k, or D o_k = (X Y + Q p) s_k if D has an inverse, for each word of the result
    D factor = 1           modulo p

So D R = X Y + Q p, and R is congruent to X Y factor. Its range is that of R, or that of (X Y + Q p) / D. A word that is
stored is an unknown number; modulo m_k it may be replaced by the polynomial of which it is the value (`vanishes`). What
makes an approximate quotient of a base extension right, the ranges of its words and the error of the cox, is so in the
range of D R - Q p. R and Q are found here for two base extensions, and in `sums` for a sum of residues.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from math import gcd, prod
from typing import TYPE_CHECKING

from modmill.numbers.shown import shortened
from modmill.proofs.arithmetic.certificate import Witness
from modmill.proofs.arithmetic.integers import Integers
from modmill.proofs.arithmetic.polynomials import Expression, Monomial
from modmill.proofs.arithmetic.residue_words import Factors, Guess, Named, Product, expanded
from modmill.proofs.arithmetic.sums import sums

if TYPE_CHECKING:
    from modmill.proofs.arithmetic.products import Claim

_CONGRUENCE, _RANGE = "congruence", "range"


def remains(make: Integers, claim: Claim, found: Product) -> tuple[tuple[str, ...], Witness | None]:
    """What is not proved of a product, for the best of the numbers R that are found, and this one."""
    moduli = found.form.moduli
    if claim.operand != claim.result or any(gcd(m, prod(moduli[:k])) > 1 for k, m in enumerate(moduli)):
        return (f"{_CONGRUENCE}: operands and result must have the same moduli, without common factors",), None
    best: tuple[tuple[str, ...], Witness | None] = (f"{_CONGRUENCE}: no numbers R and Q are found",), None
    for guess in chain(_candidates(make, claim, found), sums(make, claim, found)):
        open_, every = _not_congruent(make, claim, found, guess)
        if open_:
            best = best if best[1] else (open_, None)
            continue
        witness = _ranged(make, claim, guess)
        open_ = _too_wide(claim, every, witness)
        if not open_:
            return (), witness
        best = open_, witness
    return best


def _not_congruent(make: Integers, claim: Claim, found: Product, guess: Guess) -> tuple[tuple[str, ...], int]:
    """The words that are not what R and Q say, and the product of the moduli for which D R = X Y + Q p."""
    divisor, number, quotient = guess.divisor, guess.number, guess.quotient
    form, wrong, every = found.form, list[int](), 1
    for k, (m, scale) in enumerate(zip(form.moduli, form.scales, strict=True)):
        product = (pow(scale, -2, m), make.product(found.x[k], found.y[k])), (claim.p, quotient)
        part, apart = m, make.sum([(divisor, number), *((-c, x) for c, x in product)])
        while not vanishes(make, apart, part, found.named):
            part = part // 2 if part % 2 == 0 else 1
        every *= part
        of_number = make.sum([(1, found.result[k]), (-scale, number)])
        of_product = make.sum([(divisor, found.result[k]), *((-scale * c, x) for c, x in product)])
        ways = [of_number, *([of_product] if gcd(divisor, m) == 1 else [])]
        if not any(vanishes(make, way, m, found.named) for way in ways):
            wrong.append(k)
    line = f"{_CONGRUENCE}: {len(wrong)} of {len(form.moduli)} words are no residues of the number R that was found"
    return ((line,) if wrong else ()), every


def _ranged(make: Integers, claim: Claim, guess: Guess) -> Witness:
    """R, Q and D with their ranges."""
    apart = make.sum([(guess.divisor, guess.number), (-claim.p, guess.quotient)])
    facts = [make.side(x, sign, [(x, [])]) for x in (apart, guess.quotient, guess.number) for sign in (1, -1)]
    return Witness(guess.number, guess.quotient, guess.divisor, (*(guess.ends or facts[:2]), *facts[2:]))


def _too_wide(claim: Claim, every: int, witness: Witness) -> tuple[str, ...]:
    """The ranges that are too wide."""
    most, least, q_most, q_least, r_most, r_least = (fact.bound for fact in witness.facts)
    square, found = claim.largest**2, list[str]()
    if most >= every or square + least >= every:
        ends = f"from {shortened(-least)} to {shortened(most)}"
        found.append(
            f"{_RANGE}: D R - Q p is {ends}, too wide for the moduli that have it, whose product is {shortened(every)}"
        )
    high = min(r_most, (square + claim.p * q_most) // witness.divisor)
    low = max(-r_least, -(claim.p * q_least // witness.divisor))
    if high >= claim.end:
        found.append(f"{_RANGE}: the upper bound that was found is {shortened(high)}, not below {shortened(claim.end)}")
    if low < 0:
        found.append(f"{_RANGE}: the lower bound that was found is {shortened(low)}")
    return tuple(found)


def vanishes(make: Integers, x: Expression, modulus: int, named: Named) -> bool:
    """Whether x is a multiple of the modulus, by its coefficients after the newest stored words in it, again and again,
    are replaced by what they are."""
    return not expanded(make, x, modulus, named).terms


# ---- R, Q and D


def _candidates(make: Integers, claim: Claim, found: Product) -> Iterator[Guess]:
    """D, R and Q: D is the product of the first moduli, those of base A. The first base extension adds a multiple of p
    to X Y: Q has the words in it, with their factors modulo all moduli of base B; a constant is a multiple of D. The
    second one has R from words over B, with their factors modulo all moduli of base A, and from h, whose factor is
    -B."""
    form, divisor = found.form, 1
    for n, m in enumerate(form.moduli, 1):
        divisor *= m
        if divisor * claim.factor % claim.p != 1 % claim.p:
            continue
        over_a, over_b = (
            range(n),
            [k for k in range(n, len(form.moduli)) if gcd(claim.p * divisor, form.moduli[k]) == 1],
        )
        first, second = Factors(), Factors({(): dict.fromkeys(form.moduli[:n], 0)})
        for k, x in _shared(make, found, over_b).items():
            first.add(x, form.moduli[k], divisor * pow(form.scales[k] * claim.p, -1, form.moduli[k]))
        for k, x in _shared(make, found, over_a).items():
            second.add(x, form.moduli[k], pow(form.scales[k], -1, form.moduli[k]))
        b = prod(m for k in over_b if (m := form.moduli[k]) % 2)
        quotient = first.lifted([form.moduli[k] for k in over_b], {(): form.moduli[:n]}, 0)
        yield Guess(divisor, make.make(second.lifted(form.moduli[:n], {}, -b)), make.make(quotient))


def _shared(make: Integers, found: Product, channels: Sequence[int]) -> dict[int, Expression]:
    """What words of the result are modulo their moduli, by words that are stored: not by those which only one of
    several words has or of which the word is a multiple, and without the products of the operands' own words."""
    passed = {a: x for a, x in found.named.items() if a not in found.stored}
    words, own = dict[int, Expression](), dict[int, Monomial]()
    for k in channels:
        m, word = found.form.moduli[k], found.result[k]
        own[k] = tuple(sorted(a for t in (*found.x[k].terms, *found.y[k].terms) for a in t))
        stored = {a: found.named[a] for t in word.terms for a in t if len(word.terms) == 1 and a in found.named}
        words[k] = expanded(make, word, m, {**passed, **stored})
    while True:
        uses = Counter(a for x in words.values() for t in x.terms for a in t if a in found.stored)
        some = {k: {a: found.named[a] for t in x.terms for a in t if a in found.stored and (
            (len(channels) > 1 and uses[a] == 1) or len(x.terms) == 1
            or expanded(make, found.named[a], found.form.moduli[k], found.named).terms.keys() <= {own[k]}
        )} for k, x in words.items()}  # fmt: skip
        if not any(some.values()):
            return {k: make.make({t: c for t, c in x.terms.items() if t != own[k]}) for k, x in words.items()}
        for k, one in some.items():
            words[k] = expanded(make, words[k], found.form.moduli[k], {**passed, **one})
