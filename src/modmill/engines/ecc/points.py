# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Programs for multiples of points: what those of all forms of curves have in common.

The programs of one kind do the same for all scalars of a length: only addresses follow from digits. Coordinates are
multiplied by the input ``blind`` b before anything else is done, b in [1, p), so that with a factor f = R^-1

    Z = b f = l R    X = x b f = x l R    with b = l R^2        and without one Z = b, X = x b
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from modmill.engines.ecc.addition_chains import power
from modmill.engines.microcode.expressions import BasicBlock, Element
from modmill.engines.microcode.field_program import Domain, FieldProgram

BLIND = "blind"


@dataclass(frozen=True)
class PointProgram:
    """A field program, and the digits of the scalars that it multiplies by. ``curve``: its name; ``operation``: what it
    does."""

    operation: str
    curve: str
    field_program: FieldProgram
    recode: Callable[..., tuple[int, ...]]

    def digits(self, *scalars: int) -> tuple[int, ...]:
        """All digits in the order in which they are used. Raises UnsupportedError for a scalar out of range."""
        return self.recode(*scalars)


def inverse(x: Element, p: int) -> Element:
    """x^(p - 2), which is 0 for 0, by a fixed chain."""
    return power(x, p - 2, lambda a, b: a * b)


def blinded(domain: Domain, block: BasicBlock, *plain: Element) -> tuple[Element, ...]:
    """Numbers from outside the domain, or constants that stand as themselves, times l; and l itself [1 each]."""
    b = block.variable(BLIND)
    return (*(x * b for x in plain), domain.leave(b))


def give_affine(domain: Domain, block: BasicBlock, X: Element, Y: Element | None, Z: Element, u: int = 1) -> None:
    """Set the results x = X / (u^2 Z) and y = Y / (u^3 Z), out of the domain; both are 0 where Z is."""
    z = inverse(Z, domain.p)
    block.set("x", X * domain.leave(z, pow(u, -2, domain.p)))
    if Y is not None:
        block.set("y", Y * domain.leave(z, pow(u, -3, domain.p)))
