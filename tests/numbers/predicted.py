# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The results of base extensions, by rational arithmetic."""

from fractions import Fraction
from math import floor

from modmill.numbers.rns.exact_extension import MixedRadix, ShenoyKumaresan
from modmill.numbers.rns.extension import Approximate


def truncation_error(extension, x):
    """e of the cox at the X^_i of x."""
    cox = extension.cox
    hats = cox.hats(cox.base.gammas(x))
    true = sum((Fraction(hat, p) for hat, p in zip(hats, cox.products, strict=True)), Fraction(0))
    return true - Fraction(sum(cox.term(i, hat) for i, hat in enumerate(hats)), 1 << cox.t)


def predicted(extension, x):
    """The integer whose residues the extension returns for x."""
    A = extension.source.M
    if isinstance(extension, MixedRadix):
        return x % A
    total = sum(g * c for g, c in zip(extension.source.gammas(x), extension.source.cofactors, strict=True))
    if isinstance(extension, ShenoyKumaresan):  # x itself if the true h is in [0, m_r)
        return total - (total - x) // A % extension.m_r * A
    if isinstance(extension, Approximate):
        return total
    part = Fraction(x, A) + Fraction(extension.d, 1 << extension.cox.t)
    return x - floor(part - truncation_error(extension, x)) * A


def outcomes(extension, x):
    """All results for x that some x^ can give."""
    A = extension.source.M
    if isinstance(extension, Approximate):
        return {x + k * A for k in range(floor(extension.cox.most) + 1)}
    middle = Fraction(x, A) + Fraction(extension.d, 1 << extension.cox.t)
    return {x + k * A for k in range(-floor(middle), -floor(middle - extension.cox.error) + 1)}
