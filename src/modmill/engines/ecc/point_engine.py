# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A bit-exact point engine of a curve on a field unit, without simulated hardware."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from modmill.contract import Contract, UnsupportedError
from modmill.engines.ecc import edwards, weierstrass
from modmill.engines.ecc.blinding import PointEngine, Run
from modmill.engines.ecc.ladder import ladder
from modmill.engines.ecc.points import PointProgram
from modmill.engines.ecc.result_checks import checked
from modmill.engines.microcode.assembly import Assembled, assemble
from modmill.engines.microcode.field_program import Domain
from modmill.engines.microcode.interpreter import Product, run
from modmill.engines.microcode.program import DatapathSpec
from modmill.numbers.curves.affine import Curve, Edwards, Montgomery, Weierstrass
from modmill.numbers.shown import shortened

OPERATIONS = ("multiply", "multiply-base", "multiply-two", "ladder")
SECRET = ("multiply", "multiply-base", "ladder")
"""Operations whose scalars may be secret."""


@dataclass(frozen=True)
class Shape:
    """Parameters that trade products for slots.

    ``window``: bits of a digit of the scalar of an input point; its table of 2^window entries takes 3 or 4 slots an
    entry in every thread. ``teeth``, ``columns``: the comb, with columns * 2^teeth entries of 2 or 3 shared slots.
    ``joint``: one table of 2^(2 window) shared entries for both halves of a scalar, on a curve with an endomorphism.
    ``endomorphism``: multiply takes a scalar in two halves, on such a curve; the input point is a multiple of G.
    """

    window: int = 4
    teeth: int = 5
    columns: int = 2
    joint: bool = False
    endomorphism: bool = False


def point_program(
    operation: str, curve: Curve, domain: Domain, bits: int, shape: Shape = Shape(), *, check_result: bool = False,
    fixed_addresses: bool = False,
) -> PointProgram:  # fmt: skip
    """The program of an operation of `OPERATIONS` for scalars of ``bits`` bits; those of ``multiply-two`` are below n.
    ``check_result``: with a check of its results (`result_checks`). ``fixed_addresses``: digits select no addresses
    (`FieldProgram.with_selections`). Raises UnsupportedError for an operation that the curve does not have."""
    if isinstance(curve, Montgomery) and operation == "ladder":
        made = ladder(curve, domain, bits, checked=check_result)
    else:
        made = _on_points(operation, curve, domain, bits, shape)
        made = checked(made, curve) if check_result else made
    return replace(made, field_program=made.field_program.with_selections()) if fixed_addresses else made


def _on_points(operation: str, curve: Curve, domain: Domain, bits: int, shape: Shape) -> PointProgram:
    """The program of an operation on points (x, y)."""
    w, t, c = shape.window, shape.teeth, shape.columns
    match curve, operation:
        case Weierstrass(), "multiply":
            return weierstrass.multiply(curve, domain, bits, w, halved=shape.endomorphism)
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
    raise UnsupportedError(f"{curve.title} has no operation {shortened(operation)}")


@dataclass(frozen=True)
class MicrocodePointEngine(PointEngine):
    """A `PointEngine` that interprets programs for a ``unit`` with a multiplier of this ``contract``.

    ``product``: returns the product function for a program; default plain integers. Raises UnsupportedError if the
    contract's modulus is not the curve's p and, when a program is assembled, as `assemble` does.
    """

    curve: Curve
    contract: Contract
    unit: DatapathSpec
    shape: Shape = Shape()
    product: Callable[[Assembled], Product] | None = None
    _made: dict[tuple[str, int], tuple[PointProgram, Assembled]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.contract.p != self.curve.p:
            raise UnsupportedError(
                f"the multiplier's modulus of {self.contract.p.bit_length()} bits must be the p of {self.curve.title}"
            )

    @cached_property
    def domain(self) -> Domain:
        """The multiplier's domain."""
        return Domain.of(self.contract, self.unit.added)

    def program(self, operation: str, bits: int) -> tuple[PointProgram, Assembled]:
        """An operation's program and its instructions, cached."""
        if (operation, bits) not in self._made:
            made = point_program(operation, self.curve, self.domain, bits, self.shape)
            self._made[operation, bits] = made, assemble(made.field_program, self.contract, self.unit)
        return self._made[operation, bits]

    def results(self, operation: str, bits: int, runs: Sequence[Run]) -> list[tuple[int, ...]]:
        if not runs:
            return []
        made, instructions = self.program(operation, bits)
        return [self._run(instructions, inputs, made.digits(*scalars)) for scalars, inputs in runs]

    def _run(self, instructions: Assembled, inputs: Mapping[str, int], digits: tuple[int, ...] = ()) -> tuple[int, ...]:
        """The results of one run of a program on the unit."""
        product = self.product(instructions) if self.product else None
        return run(instructions.program, self.unit, self.contract, inputs, digits, product)
