# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The point engine of a curve over a field unit, bit by bit as the unit's multiplier gives it, without its hardware."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from modmill.contract import Contract, UnsupportedError
from modmill.engines.ecc import edwards, weierstrass
from modmill.engines.ecc.blinding import PointEngine, Run
from modmill.engines.ecc.ladder import ladder
from modmill.engines.ecc.points import PointProgram
from modmill.engines.microcode.assembly import Assembled, assemble
from modmill.engines.microcode.field_program import Domain
from modmill.engines.microcode.interpreter import Product, run
from modmill.engines.microcode.program import DatapathSpec
from modmill.numbers.curves.affine import Curve, Edwards, Montgomery, Weierstrass
from modmill.numbers.shown import shortened

OPERATIONS = ("multiply", "multiply-base", "multiply-two", "ladder")


@dataclass(frozen=True)
class Shape:
    """Choices that trade products for slots.

    ``window``: bits of a digit of a point that is given, whose table takes 3 or 4 slots for each of its 2^window
    entries in every thread. ``teeth``, ``columns``: of the comb, with columns 2^teeth entries of 2 or 3 shared slots.
    ``joint``: one table of 2^(2 window) shared entries for both halves of a scalar, where there are halves.
    """

    window: int = 4
    teeth: int = 5
    columns: int = 2
    joint: bool = False


def point_program(operation: str, curve: Curve, domain: Domain, bits: int, shape: Shape = Shape()) -> PointProgram:
    """The program of an operation of `OPERATIONS` for scalars of ``bits`` bits (of n where there are two).

    Raises UnsupportedError for an operation that the curve does not have.
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
    raise UnsupportedError(f"{curve.title} has no operation {shortened(operation)}")


@dataclass(frozen=True)
class MicrocodePointEngine(PointEngine):
    """A `PointEngine` that runs programs of instructions for a ``unit`` over a multiplier with this ``contract``.

    ``product``: what makes the product function for a program, default plain integers. The contract is for the
    curve's p. Raises UnsupportedError for another modulus, and where a program is made, as `assemble` does.
    """

    curve: Curve
    contract: Contract
    unit: DatapathSpec
    shape: Shape = Shape()
    product: Callable[[Assembled], Product] | None = None
    _made: dict[tuple[str, int], tuple[PointProgram, Assembled]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.contract.p != self.curve.p:
            raise UnsupportedError(f"the multiplier is made for another modulus than that of {self.curve.title}")

    @cached_property
    def domain(self) -> Domain:
        """The multiplier's domain."""
        return Domain.of(self.contract, self.unit.added)

    def program(self, operation: str, bits: int) -> tuple[PointProgram, Assembled]:
        """An operation's program and its instructions; made once."""
        if (operation, bits) not in self._made:
            made = point_program(operation, self.curve, self.domain, bits, self.shape)
            self._made[operation, bits] = made, assemble(made.field_program, self.contract, self.unit)
        return self._made[operation, bits]

    def results(self, operation: str, bits: int, runs: Sequence[Run]) -> list[tuple[int, ...]]:
        """What each run gives, by the instructions of the operation's program."""
        if not runs:
            return []
        made, instructions = self.program(operation, bits)
        return [self._run(instructions, inputs, made.digits(*scalars)) for scalars, inputs in runs]

    def _run(self, instructions: Assembled, inputs: Mapping[str, int], digits: tuple[int, ...] = ()) -> tuple[int, ...]:
        """The results of one run of a program on the unit."""
        product = self.product(instructions) if self.product else None
        return run(instructions.program, self.unit, self.contract, inputs, digits, product)
