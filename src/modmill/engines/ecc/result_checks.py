# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Checks of results inside a program: a number that is 1 if a run went right, and hardly ever otherwise.

It is 1 less a difference:

    Weierstrass   y^2 - x (x^2 + a) - b e + X - e X           e = Z Z^(p-2): 1, or 0 for O, whose x = y = X = 0
    Edwards       a x^2 + y^2 - 1 - d x^2 y^2                 Z is never 0
    ladder        (u e - x)^2 X3^2 - 2 ((u e + x) (u x + e) + 2 A u x e) X3 Z3 + (u x - e)^2 Z3^2
                  + u (1 - e) (X3 - u Z3)                     x = u(k P), X3 / Z3 = u((k + 1) P)

x and y are the results themselves, so that a fault in the inversion is seen, too. The equation is also evaluated on
the input point: two differences c and d are 0 if and only if c^2 - s d^2 is, for a number s that is no square. Until
the last instructions the check is not 1 but the difference of the input point, or 0. So a run that ends early is
seen, and a multiplier or memory that only gives zeros.

In the ladder the first line is 0 if and only if the three points u, x and X3 / Z3, or negatives of them, have the sum
O, for P on the curve or on its twist; the second line stands for it if kP is O. A step from a wrong pair of points
leaves a wrong pair.

What is not seen is a fault that leads to the right result of another run: in a scalar's digits, in an address that
picks another entry of a table, in a sign; one that makes X, Y and Z 0, which is taken for O; and one after the check.
I. Biehl, B. Meyer, V. Mueller: Differential fault attacks on elliptic curve cryptosystems, CRYPTO 2000, for the
points that a device must check.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from modmill.engines.ecc.points import PointProgram, inverse, point
from modmill.engines.microcode.expressions import BasicBlock, Element
from modmill.engines.microcode.field_program import Domain
from modmill.numbers.curves.affine import Curve, Edwards, Montgomery, Weierstrass
from modmill.numbers.primes import square_root

CHECK = "check"
"""Name of the variable that must be 1 at the end."""


def checked(made: PointProgram, curve: Curve) -> PointProgram:
    """The program of a curve with points (x, y), with a check of its results and of its input point. It sets the blocks
    of ``made``, which must not be used any more."""
    program = made.field_program
    domain, first, after = program.domain, program.before[0], program.after
    x, y = (domain.enter(Element(after, after.outputs[name])) for name in program.results)
    wrong = _difference(curve, domain, after, x, y, point(after).Z)
    if set(program.results) <= set(program.inputs):
        given = (domain.enter(first.variable(name)) for name in program.results)
        first.set(CHECK, _difference(curve, domain, first, *given))
        other = after.variable(CHECK)
        root = next(s for s in count(2) if square_root(s, curve.p) is None)
        wrong = wrong * wrong - other * other * domain.constant(after, root)
    else:
        unset_check(first)
    set_check(domain, after, wrong)
    return replace(made, field_program=replace(program, checks=(CHECK,)))


def set_check(domain: Domain, block: BasicBlock, wrong: Element) -> None:
    """Set the check to 1 - ``wrong``, outside the domain. The product is there also in a domain with R = 1, so that the
    check needs no more subtractions of p than other results."""
    block.set(CHECK, (domain.constant(block, 1) - wrong) * block.constant(1))


def unset_check(block: BasicBlock) -> None:
    """Set the check to 0."""
    zero = block.constant(0)
    block.set(CHECK, zero + zero)


def _difference(
    curve: Curve, domain: Domain, block: BasicBlock, x: Element, y: Element, Z: Element | None = None
) -> Element:
    """The difference of both sides of the curve's equation; ``Z``: that of the point, None for an input point."""
    xx, yy = x * x, y * y
    if isinstance(curve, Edwards):
        a, d, one = (domain.constant(block, c) for c in (curve.a, curve.d, 1))
        return a * xx + yy - (one + d * xx * yy)
    assert isinstance(curve, Weierstrass)
    a, b = domain.constant(block, curve.a), domain.constant(block, curve.b)
    right = x * (xx + a)
    if Z is None:
        return yy - (right + b)
    e, X = Z * inverse(Z, curve.p), point(block).X
    return yy - (right + b * e) + (X - e * X)


def coherence(
    curve: Montgomery, domain: Domain, block: BasicBlock, u: Element, x: Element, Z: Element, X3: Element, Z3: Element
) -> Element:
    """The number that is 0 if u(P) = ``u``, u(k P) = ``x`` and u((k + 1) P) = X3 / Z3; all in the domain. ``Z``: the
    denominator of x."""
    e = Z * inverse(Z, curve.p)
    ue, ux = u * e, u * x
    left, right = ue - x, ux - e
    middle = (ue + x) * (ux + e) + ux * e * domain.constant(block, 2 * curve.A)
    found = left * left * (X3 * X3) - (middle + middle) * (X3 * Z3) + right * right * (Z3 * Z3)
    return found + (u - ue) * (X3 - u * Z3)
