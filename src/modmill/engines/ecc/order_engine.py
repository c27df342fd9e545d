# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Arithmetic modulo the prime order n of a base point, as programs for a multiplier with n loaded.

    signature       s = k^-1 (z + r d)              ECDSA, FIPS 186-5, 6.4.1
    quotients       u1 = z s^-1, u2 = r s^-1        its verification, 6.4.2
    multiply-add    S = r + k s                     EdDSA, RFC 8032, 5.1.6

An inverse is x^(n - 2) by a fixed addition chain; the inverse of 0 is 0. The programs depend on n, through this chain
and their constants. They do not depend on their inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from modmill.contract import Contract, UnsupportedError
from modmill.engines.ecc.blinding import NUMBERS, OrderArithmetic
from modmill.engines.ecc.points import inverse
from modmill.engines.microcode.assembly import Assembled, assemble
from modmill.engines.microcode.expressions import BasicBlock, Element
from modmill.engines.microcode.field_program import Domain, FieldProgram
from modmill.engines.microcode.interpreter import Product, run
from modmill.engines.microcode.program import DatapathSpec
from modmill.numbers.curves.affine import Curve, Edwards, Weierstrass
from modmill.numbers.primes import is_prime
from modmill.numbers.shown import shortened


def order_operations(curve: Curve) -> tuple[str, ...]:
    """Operations modulo n for the signatures on a curve; none for a curve for arithmetic only."""
    if curve.arithmetic:
        return ()
    return {Weierstrass: ("signature", "quotients"), Edwards: ("multiply-add",)}.get(type(curve), ())


def _formula(operation: str, n: int, x: Mapping[str, Element]) -> tuple[Element, ...]:
    """Results of an operation modulo n."""
    match operation:
        case "signature":
            return (inverse(x["k"], n) * (x["z"] + x["r"] * x["d"]),)
        case "quotients":
            w = inverse(x["s"], n)
            return x["z"] * w, x["r"] * w
    return (x["r"] + x["k"] * x["s"],)


def order_program(operation: str, domain: Domain) -> FieldProgram:
    """The program of an operation of `NUMBERS` modulo the domain's p. Raises UnsupportedError for another operation,
    and if the modulus is not prime."""
    n = domain.p
    if operation not in NUMBERS:
        raise UnsupportedError(
            f"an operation modulo the order must be one of {', '.join(NUMBERS)}, not {shortened(operation)}"
        )
    if not is_prime(n):
        raise UnsupportedError(f"inverses need a prime modulus; this modulus of {n.bit_length()} bits is not prime")
    block = BasicBlock(operation)
    inputs, results = NUMBERS[operation]
    variables = [block.variable(name) for name in inputs]
    found = _formula(operation, n, dict(zip(inputs, map(domain.enter, variables), strict=True)))
    for name, value in zip(results, found, strict=True):
        block.set(name, domain.leave(value))
    title = f"{operation} modulo a number of {n.bit_length()} bits"
    return FieldProgram(title, domain, inputs, results, (block,), None, BasicBlock("end"))


@dataclass(frozen=True)
class MicrocodeOrder(OrderArithmetic):
    """An `OrderArithmetic` on a field unit: ``contract`` gives the multiplier's contract while n is loaded.
    ``product``: returns the product function for a program; default plain integers."""

    contract: Callable[[int], Contract]
    unit: DatapathSpec
    product: Callable[[Assembled], Product] | None = None
    where: str = "engine"
    _made: dict[tuple[int, str], tuple[Contract, Assembled]] = field(default_factory=dict, repr=False)

    def program(self, n: int, operation: str) -> tuple[Contract, Assembled]:
        """The contract for n and the operation's instructions. Raises UnsupportedError as `order_program` does."""
        if (n, operation) not in self._made:
            contract = self.contract(n)
            instructions = assemble(order_program(operation, Domain.of(contract, self.unit.added)), contract, self.unit)
            self._made[n, operation] = contract, instructions
        return self._made[n, operation]

    def results(self, n: int, operation: str, runs: Sequence[Mapping[str, int]]) -> list[tuple[int, ...]]:
        contract, instructions = self.program(n, operation)
        product = self.product(instructions) if self.product else None
        return [run(instructions.program, self.unit, contract, given, (), product) for given in runs]
