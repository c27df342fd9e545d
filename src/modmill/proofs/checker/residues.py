# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The end of a run whose numbers are residues: what a number R, a quotient Q and a divisor D show of the result.

With operands X and Y, whose words are representatives of X s_k and Y s_k modulo m_k, this is checked:

    D R = X Y + Q p      modulo some m_k, or half of it, a quarter of it, ..., where X Y is x_k y_k / s_k^2
    D R - Q p - X Y      is less in size than the product of these, which have no common factors
    o_k = R s_k          modulo m_k, or D o_k = (X Y + Q p) s_k if D has an inverse, for each word of the result
    D factor = 1         modulo p

So D R = X Y + Q p, R is congruent to X Y factor modulo p, and its range is that of R or of (X Y + Q p) / D.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd, prod
from typing import Any

from modmill.proofs.checker.recheck import Book, Poly, combined, require

Words = Sequence[Poly]


def conclude(
    book: Book, named: Mapping[int, Poly], claim: Mapping[str, Any], words: tuple[Words, Words, Words]
) -> None:  # fmt: skip
    """Check the last line. ``named``: what words are, by the atoms that stand for them; ``words``: of X, Y and the
    result. Raises RefusedError if it does not follow."""
    form, p, largest, end = claim["result"], claim["p"], claim["largest"], claim["end"]
    moduli, scales = form["moduli"], form["scales"]
    require(claim["operand"] == form and len(moduli) == len(scales) > 0, "operands and result have other forms")
    require(all(len(one) == len(moduli) for one in words), "a number has another count of words")
    first, second, divisor, facts = book.last()
    number, quotient = book.poly(first), book.poly(second)
    require(divisor > 0 and divisor * claim["factor"] % p == 1 % p, "the divisor belongs to another factor")
    require(all(m > 1 and gcd(m, s) == 1 for m, s in zip(moduli, scales, strict=True)), "a scale has no inverse")
    require(all(gcd(m, prod(moduli[:k])) == 1 for k, m in enumerate(moduli)), "two moduli have a common factor")
    apart = combined((divisor, number), (-p, quotient))
    every = 1
    for k, (m, s) in enumerate(zip(moduli, scales, strict=True)):
        x, y, result = (one[k] for one in words)
        product = combined((pow(s, -2, m), book.times(x, y)), (p, quotient))
        part = m
        while not _is_multiple(book, named, combined((divisor, number), (-1, product)), part):
            part = part // 2 if part % 2 == 0 else 1
        every *= part
        ways = [combined((1, result), (-s, number))]
        if gcd(divisor, m) == 1:
            ways.append(combined((divisor, result), (-s, product)))
        require(any(_is_multiple(book, named, way, m) for way in ways), f"word {k} of the result is another one")
    ends = [sign * book.end(fact, combined((sign, poly)))
            for poly, pair in zip((apart, quotient, number), (facts[:2], facts[2:4], facts[4:6]), strict=True)
            for sign, fact in zip((1, -1), pair, strict=True)]  # fmt: skip
    most, least, q_most, q_least, r_most, r_least = ends
    square = largest * largest
    require(most < every and square - least < every, "D R and X Y + Q p may differ")
    require(min(r_most, (square + p * q_most) // divisor) < end, "the result may be too large")
    require(max(r_least, -(-p * q_least // divisor)) >= 0, "the result may be below 0")


def _is_multiple(book: Book, named: Mapping[int, Poly], poly: Poly, modulus: int) -> bool:
    """Whether all coefficients of a polynomial are multiples of the modulus after its words, newest first, are replaced
    by what they are."""
    while poly := {m: c % modulus for m, c in poly.items() if c % modulus}:
        atom = max((a for m in poly for a in m if a in named), default=None)
        if atom is None:
            return False
        total = {m: c for m, c in poly.items() if atom not in m}
        for m, c in poly.items():
            if atom in m:
                place = m.index(atom)
                rest = {m[:place] + m[place + 1 :]: 1}
                total = combined((1, total), (c, book.times(rest, named[atom])))
        poly = total
    return True
