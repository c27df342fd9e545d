# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Common parts of the programs for multiples of points of all curve forms.

A program executes the same instructions for all scalars of one length; digits select addresses only. The first products
multiply the coordinates by the input ``blind`` b in [1, p). For a multiplier with factor f = R^-1

    Z = b f = l R    X = x b f = x l R    with b = l R^2        and for factor 1: Z = b, X = x b
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from modmill.engines.ecc.addition_chains import power
from modmill.engines.ecc.formulas import Homogeneous
from modmill.engines.microcode.expressions import BasicBlock, Element
from modmill.engines.microcode.field_program import Domain, FieldProgram

BLIND = "blind"
XYZ = ("X", "Y", "Z")


class Recoding(Protocol):
    """A recoding of a program's scalars."""

    @property
    def digits(self) -> Callable[..., tuple[int, ...]]:
        """The function from scalars to digits in order of use; raises UnsupportedError for a scalar out of range."""


@dataclass(frozen=True)
class PointProgram:
    """A field program, and the ``recoding`` of its scalars. ``operation``: of `OPERATIONS`; ``curve``: title of the
    curve."""

    operation: str
    curve: str
    field_program: FieldProgram
    recoding: Recoding

    @property
    def digits(self) -> Callable[..., tuple[int, ...]]:
        """The function ``digits`` of the recoding."""
        return self.recoding.digits


def inverse(x: Element, p: int) -> Element:
    """x^-1 = x^(p - 2) by a fixed addition chain; 0 for x = 0."""
    return power(x, p - 2, lambda a, b: a * b)


def blinded(domain: Domain, block: BasicBlock, *plain: Element) -> tuple[Element, ...]:
    """Inputs or constants that are not in the domain, times l, in the domain; then l itself [1 product each]."""
    b = block.variable(BLIND)
    return (*(x * b for x in plain), domain.leave(b))


def point(block: BasicBlock, name: str = "") -> Homogeneous:
    """The point in the variables ``name`` + X, Y and Z."""
    return Homogeneous(*(block.variable(name + coordinate) for coordinate in XYZ))


def set_point(block: BasicBlock, P: Homogeneous, name: str = "") -> None:
    """Set these variables."""
    for coordinate, value in zip(XYZ, (P.X, P.Y, P.Z), strict=True):
        block.set(name + coordinate, value)


def double_and_add(
    block: BasicBlock, form: Any, P: Homogeneous, doublings: int, tables: Sequence[Sequence[str]],
    second: Callable[..., Any],
) -> None:  # fmt: skip
    """Set the point 2^doublings P plus, for each of ``tables``, the entry that the next digit selects.

    ``form``: formulas of the curve. ``tables``: names of the tables of each coordinate. ``second``: function from these
    coordinates to the second operand of ``form.add``.
    """
    for _ in range(doublings):
        P = form.double(P)
    for names in tables:
        P = form.add(P, second(*map(block.entry, names)))
        block.next_digit()
    set_point(block, P)


def affine_block(domain: Domain, u: int = 1) -> BasicBlock:
    """A block that sets x = X / (u^2 Z) and y = Y / (u^3 Z), outside the domain; both are 0 if Z = 0."""
    block = BasicBlock("affine")
    P = point(block)
    z = inverse(P.Z, domain.p)
    block.set("x", P.X * domain.leave(z, pow(u, -2, domain.p)))
    block.set("y", P.Y * domain.leave(z, pow(u, -3, domain.p)))
    return block
