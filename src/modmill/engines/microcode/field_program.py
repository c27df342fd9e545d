# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Field programs: programs as blocks of formulas, for one multiplier's domain and before they have slots and
instructions.

A number x stands in the domain as x R mod p, R = 1 / factor, so that products of such numbers are such numbers again:

    into the domain   x R^2 factor = x R        out of it   x R 1 factor = x        nothing to do where factor = 1
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from modmill.contract import Contract, UnsupportedError
from modmill.engines.microcode.expressions import BasicBlock, Element, Name
from modmill.engines.microcode.scheduling import RegisterGroups


@dataclass(frozen=True)
class Domain:
    """The numbers x R mod p of a multiplier with a factor. ``added``: whether the unit adds up two products, so that
    formulas had better use a b + c d as it stands."""

    p: int
    factor: int
    added: bool = False

    @classmethod
    def of(cls, contract: Contract, added: bool = False) -> Domain:
        """The domain of a contract. Raises UnsupportedError for a core with one operand, or whose results are no
        operands."""
        if contract.operands != 2 or contract.operand != contract.result:
            raise UnsupportedError("a field unit needs a core with two operands whose results can be operands")
        return cls(contract.p, contract.factor, added)

    @property
    def plain(self) -> bool:
        """Whether R = 1."""
        return self.factor % self.p == 1

    @property
    def one(self) -> int:
        """R mod p."""
        return pow(self.factor, -1, self.p)

    def value(self, x: int) -> int:
        """x as it stands in the domain, x any whole number."""
        return x * self.one % self.p

    def constant(self, block: BasicBlock, x: int) -> Element:
        """A constant of the domain."""
        return block.constant(self.value(x))

    def enter(self, x: Element, times: int = 1) -> Element:
        """A number in [0, p) from outside, in the domain, times a constant [1 product]."""
        factor = times * self.one * self.one % self.p
        return x if factor == 1 else x * x.block.constant(factor)

    def leave(self, x: Element, times: int = 1) -> Element:
        """A number of the domain as itself, times a constant [1 product]."""
        return x if self.plain and times == 1 else x * x.block.constant(times % self.p)


@dataclass(frozen=True)
class FieldProgram:
    """A program in blocks: some before the loop, the loop, one after it.

    ``inputs``: variables that are given, in [0, p) and outside the domain unless a formula enters them. ``results``:
    variables that are given out. ``shared``: tables of constants, as they stand in the domain, that all threads read.
    ``layers``: pairs and tables of each thread. The loop is done ``passes`` times. ``window``: bits of a digit.
    """

    name: str
    domain: Domain
    inputs: tuple[str, ...]
    results: tuple[str, ...]
    before: tuple[BasicBlock, ...]
    loop: BasicBlock | None
    after: BasicBlock
    passes: int = 0
    window: int = 0
    layers: RegisterGroups = field(default_factory=RegisterGroups)
    shared: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def blocks(self) -> tuple[BasicBlock, ...]:
        """All blocks: those before, the loop, the one after."""
        return (*self.before, *((self.loop,) if self.loop else ()), self.after)

    @property
    def repeats(self) -> tuple[int, ...]:
        """How often each block is done."""
        return tuple(self.passes if block is self.loop else 1 for block in self.blocks)

    @property
    def products(self) -> int:
        """Products of one run, of two numbers each where nothing is fused."""
        return sum(times * s.pruned().products for s, times in zip(self.blocks, self.repeats, strict=True))

    @property
    def digits(self) -> int:
        """Digits that one run uses up."""
        return sum(times * s.digits for s, times in zip(self.blocks, self.repeats, strict=True))

    def with_blocks(self, blocks: tuple[BasicBlock, ...]) -> FieldProgram:
        """The same field program with other blocks."""
        first = len(self.before)
        loop = blocks[first] if self.loop else None
        return replace(self, before=blocks[:first], loop=loop, after=blocks[-1])

    def evaluate(self, inputs: Mapping[str, int], digits: tuple[int, ...] = ()) -> tuple[int, ...]:
        """The results modulo p by the formulas alone, without instructions and bounds. Raises UnsupportedError where
        digits are
        missing."""
        if len(digits) != self.digits:
            raise UnsupportedError(f"{self.name} uses up {self.digits} digits, not {len(digits)}")
        held: dict[Name, int] = dict(inputs.items())
        held.update({(name, k): v for name, table in self.shared.items() for k, v in enumerate(table)})
        at = 0
        for block in (s for s, times in zip(self.blocks, self.repeats, strict=True) for _ in range(times)):
            seen = digits[at : at + block.digits]
            at += block.digits
            held.update(
                block.evaluate(
                    held, self.domain.p, factor=self.domain.factor, digits=(*seen, 0), pairs=self.layers.partner
                )
            )
        return tuple(held[name] for name in self.results)
