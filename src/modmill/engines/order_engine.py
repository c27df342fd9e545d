# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Arithmetic modulo a prime n, the order of a base point, as programmes of rows for a multiplier that n is loaded into.

    inverse    x^(n - 2) by a fixed chain, 0 for 0          signature    s = k^-1 (z + r d)  (ECDSA, FIPS 186-5, 6.4.1)
    product    x y

The chain depends on n, so that the programmes do, as their constants; no number that is given changes what is done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from modmill.contract import Contract, Refusal
from modmill.engines.assembly import Assembled, assemble
from modmill.engines.expressions import Element, Section
from modmill.engines.points import inverse
from modmill.engines.recipe import Domain, Recipe
from modmill.engines.row_machine import Product, run
from modmill.engines.rows import Unit
from modmill.numbers.primes import is_prime


def inverse_recipe(domain: Domain) -> Recipe:
    """result = x^-1."""
    return _straight("inverse", domain, ("x",), lambda x: inverse(x, domain.p))


def product_recipe(domain: Domain) -> Recipe:
    """result = x y."""
    return _straight("product", domain, ("x", "y"), lambda x, y: x * y)


def signature_recipe(domain: Domain) -> Recipe:
    """result = k^-1 (z + r d)."""
    return _straight("signature", domain, ("k", "z", "r", "d"), lambda k, z, r, d: inverse(k, domain.p) * (z + r * d))


def _straight(name: str, domain: Domain, inputs: tuple[str, ...], formula: Callable[..., Element]) -> Recipe:
    section = Section(name)
    result = formula(*(domain.enter(section.variable(x)) for x in inputs))
    section.set("result", domain.leave(result))
    title = f"{name} modulo a number of {domain.p.bit_length()} bits"
    return Recipe(title, domain, inputs, ("result",), (section,), None, Section("end"))


@dataclass(frozen=True)
class RowOrder:
    """An `OrderArithmetic` on a field unit: ``contract`` gives the multiplier's contract while n is loaded.

    ``product``: what makes the product function for a programme, default plain integers.
    """

    contract: Callable[[int], Contract]
    unit: Unit
    product: Callable[[Assembled], Product] | None = None
    where: str = "engine"
    _made: dict[tuple[int, str], tuple[Contract, Assembled]] = field(default_factory=dict, repr=False)

    def programme(self, n: int, recipe: Callable[[Domain], Recipe]) -> tuple[Contract, Assembled]:
        """The contract for n and a recipe's rows; made once. Raises Refusal where n is not prime."""
        key = n, recipe.__name__
        if key not in self._made:
            if not is_prime(n):
                raise Refusal(f"inverses are powers modulo a prime, and a number of {n.bit_length()} bits is none")
            contract = self.contract(n)
            self._made[key] = contract, assemble(recipe(Domain.of(contract)), contract, self.unit)
        return self._made[key]

    def inverses(self, n: int, values: Sequence[int]) -> list[int]:
        """x^-1 mod n of each x."""
        return [self._run(n, inverse_recipe, {"x": x}) for x in values]

    def products(self, n: int, pairs: Sequence[tuple[int, int]]) -> list[int]:
        """x y mod n of each pair."""
        return [self._run(n, product_recipe, {"x": x, "y": y}) for x, y in pairs]

    def signature(self, n: int, k: int, z: int, r: int, d: int) -> int:
        """k^-1 (z + r d) mod n."""
        return self._run(n, signature_recipe, {"k": k, "z": z, "r": r, "d": d})

    def _run(self, n: int, recipe: Callable[[Domain], Recipe], inputs: dict[str, int]) -> int:
        contract, rows = self.programme(n, recipe)
        product = self.product(rows) if self.product else None
        (result,) = run(rows.programme, self.unit, contract, inputs, (), product)
        return result
