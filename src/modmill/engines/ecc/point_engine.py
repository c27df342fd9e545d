# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The point engine of a curve over a field unit, bit by bit as the unit's multiplier gives it, without its hardware."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from modmill.contract import Contract, Refusal
from modmill.engines.ecc import edwards, weierstrass
from modmill.engines.ecc.ladder import ladder
from modmill.engines.ecc.points import BLIND, PointProgramme
from modmill.engines.microcode.assembly import Assembled, assemble
from modmill.engines.microcode.interpreter import Product, run
from modmill.engines.microcode.program import Unit
from modmill.engines.microcode.recipe import Domain
from modmill.numbers.curves.affine import Curve, Edwards, Montgomery, Point, Weierstrass
from modmill.numbers.shown import shortened

OPERATIONS = ("multiply", "multiply-base", "multiply-two", "ladder")


@dataclass(frozen=True)
class Shape:
    """Choices that trade products for slots.

    ``window``: bits of a digit of a point that is given, whose table takes 3 or 4 slots for each of its 2^window
    entries in every context. ``teeth``, ``columns``: of the comb, with columns 2^teeth entries of 2 or 3 shared slots.
    ``joint``: one table of 2^(2 window) shared entries for both halves of a scalar, where there are halves.
    """

    window: int = 4
    teeth: int = 5
    columns: int = 2
    joint: bool = False


def point_programme(operation: str, curve: Curve, domain: Domain, bits: int, shape: Shape = Shape()) -> PointProgramme:
    """The programme of an operation of `OPERATIONS` for scalars of ``bits`` bits (of n where there are two).

    Raises Refusal for an operation that the curve does not have.
    """
    w, t, c = shape.window, shape.teeth, shape.columns
    match curve, operation:
        case Weierstrass(), "multiply":
            return weierstrass.multiply(curve, domain, bits, w)
        case Weierstrass(), "multiply-base":
            return weierstrass.base(curve, domain, bits, t, c)
        case Weierstrass(), "multiply-two":
            return weierstrass.two(curve, domain, w, shape.joint)
        case Edwards(), "multiply":
            return edwards.multiply(curve, domain, bits, w)
        case Edwards(), "multiply-base":
            return edwards.base(curve, domain, bits, t, c)
        case Edwards(), "multiply-two":
            return edwards.two(curve, domain, w)
        case Montgomery(), "ladder":
            return ladder(curve, domain, bits)
    raise Refusal(f"{curve.title} has no operation {shortened(operation)}")


@dataclass(frozen=True)
class RowPointEngine:
    """A `PointEngine` that runs programmes of rows for a ``unit`` over a multiplier with this ``contract``.

    ``product``: what makes the product function for a programme, default plain integers. The contract is for the
    curve's p. Raises Refusal for another modulus, and where a programme is made, as `assemble` does.
    """

    curve: Curve
    contract: Contract
    unit: Unit
    shape: Shape = Shape()
    product: Callable[[Assembled], Product] | None = None
    _made: dict[tuple[str, int], tuple[PointProgramme, Assembled]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.contract.p != self.curve.p:
            raise Refusal(f"the multiplier is made for another modulus than that of {self.curve.title}")

    @cached_property
    def domain(self) -> Domain:
        """The multiplier's domain."""
        return Domain.of(self.contract, self.unit.added)

    def programme(self, operation: str, bits: int) -> tuple[PointProgramme, Assembled]:
        """An operation's programme and its rows; made once."""
        if (operation, bits) not in self._made:
            made = point_programme(operation, self.curve, self.domain, bits, self.shape)
            self._made[operation, bits] = made, assemble(made.recipe, self.contract, self.unit)
        return self._made[operation, bits]

    def results(
        self, operation: str, bits: int, scalars: tuple[int, ...], inputs: Mapping[str, int]
    ) -> tuple[int, ...]:
        """What one run of an operation gives."""
        made, rows = self.programme(operation, bits)
        product = self.product(rows) if self.product else None
        return run(rows.programme, self.unit, self.contract, inputs, made.digits(*scalars), product)

    def multiply(
        self, scalars: Sequence[int], points: Sequence[Point], bits: int, blinds: Sequence[int]
    ) -> list[Point]:
        """k P for each pair; P any point of the curve, but not the point at infinity."""
        return [
            self._point(self.results("multiply", bits, (k,), self._given(P) | {BLIND: blind}))
            for k, P, blind in zip(scalars, points, blinds, strict=True)
        ]

    def multiply_base(self, scalars: Sequence[int], bits: int, blinds: Sequence[int]) -> list[Point]:
        """k G for each scalar."""
        pairs = zip(scalars, blinds, strict=True)
        return [self._point(self.results("multiply-base", bits, (k,), {BLIND: blind})) for k, blind in pairs]

    def multiply_two(self, scalars: Sequence[tuple[int, int]], points: Sequence[Point]) -> list[Point]:
        """u1 G + u2 P for each pair (u1, u2)."""
        pairs = zip(scalars, points, strict=True)
        return [
            self._point(self.results("multiply-two", self.curve.n.bit_length(), both, self._given(P)))
            for both, P in pairs
        ]

    def ladder(self, scalars: Sequence[int], us: Sequence[int], bits: int, blinds: Sequence[int]) -> list[int]:
        """The u-coordinate of k P for each k and each u."""
        items = zip(scalars, us, blinds, strict=True)
        return [self.results("ladder", bits, (k,), {"u": u, BLIND: blind})[0] for k, u, blind in items]

    def _given(self, P: Point) -> dict[str, int]:
        if P is None:
            raise Refusal("the engine takes no point at infinity")
        return {"x": P[0], "y": P[1]}

    def _point(self, results: tuple[int, ...]) -> Point:
        x, y = results
        return None if isinstance(self.curve, Weierstrass) and x == y == 0 else (x, y)
