# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Field programs: programs of basic blocks, for one multiplier's domain, without slots and instructions.

The domain represents x as x R mod p, R = 1 / factor; it is closed under the multiplier's product a b factor:

    into the domain   x R^2 factor = x R        out of it   x R 1 factor = x        no conversion if factor = 1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from modmill.contract import Contract, UnsupportedError
from modmill.engines.microcode.expressions import BasicBlock, Element, Name
from modmill.engines.microcode.scheduling import RegisterGroups


@dataclass(frozen=True)
class Domain:
    """The representation x R mod p, R = 1 / ``factor``, of a multiplier that computes a b factor mod p. ``added``:
    whether the unit adds two products, so that formulas should use a b + c d directly."""

    p: int
    factor: int
    added: bool = False

    @classmethod
    def of(cls, contract: Contract, added: bool = False) -> Domain:
        """The domain of a contract. Raises UnsupportedError for a core that has not two operands or whose results
        cannot be operands."""
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
        """The representation x R mod p of any integer x."""
        return x * self.one % self.p

    def constant(self, block: BasicBlock, x: int) -> Element:
        """The integer x as a constant of the block, in the domain."""
        return block.constant(self.value(x))

    def enter(self, x: Element, times: int = 1) -> Element:
        """Convert a number in [0, p) from outside into the domain, times a constant [1 product or none]."""
        if times * self.one % self.p == 1:
            return x
        return x * x.block.constant(times * self.one * self.one % self.p)

    def leave(self, x: Element, times: int = 1) -> Element:
        """Convert a number of the domain to its value, times a constant [1 product or none]."""
        return x if self.plain and times == 1 else x * x.block.constant(times % self.p)


@dataclass(frozen=True)
class FieldProgram:
    """A program of basic blocks: those before the loop, the loop, one after it.

    ``inputs``: variables that the host sends, in [0, p), outside the domain until a formula enters them. ``results``:
    variables that are returned. ``passes``: iterations of the loop. ``window``: bits of a digit. ``groups``: pairs and
    tables of each thread. ``shared``: tables of constants, in the domain, that all threads read. ``checks``: variables
    that are 1 modulo p at the end unless something is wrong.
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
    groups: RegisterGroups = field(default_factory=RegisterGroups)
    shared: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    checks: tuple[str, ...] = ()

    @property
    def answers(self) -> tuple[str, ...]:
        """The results, then the checks."""
        return self.results + self.checks

    @property
    def blocks(self) -> tuple[BasicBlock, ...]:
        """All basic blocks in order."""
        return (*self.before, *((self.loop,) if self.loop else ()), self.after)

    @property
    def repeats(self) -> tuple[int, ...]:
        """Number of executions of each block."""
        return tuple(self.passes if block is self.loop else 1 for block in self.blocks)

    @property
    def products(self) -> int:
        """Number of products of one run, before fusing."""
        return sum(times * block.pruned().products for block, times in zip(self.blocks, self.repeats, strict=True))

    @property
    def digits(self) -> int:
        """Number of digits that one run consumes."""
        return sum(times * block.digits for block, times in zip(self.blocks, self.repeats, strict=True))

    def with_blocks(self, blocks: Sequence[BasicBlock]) -> FieldProgram:
        """The same field program with these blocks, as many as before."""
        first = len(self.before)
        return replace(self, before=tuple(blocks[:first]), loop=blocks[first] if self.loop else None, after=blocks[-1])

    def with_selections(self) -> FieldProgram:
        """The same field program, in which digits select no addresses (`BasicBlock.with_selections`)."""
        sizes = {**dict(self.groups.tables), **{name: len(table) for name, table in self.shared.items()}}
        return self.with_blocks([block.with_selections(sizes, self.groups.partner) for block in self.blocks])

    def evaluate(self, inputs: Mapping[str, int], digits: tuple[int, ...] = ()) -> tuple[int, ...]:
        """The results and checks modulo p, computed from the formulas without instructions and bounds. Raises
        UnsupportedError for a wrong number of digits."""
        if len(digits) != self.digits:
            raise UnsupportedError(f"{self.name} uses {self.digits} digits, not {len(digits)}")
        held: dict[Name, int] = dict(inputs.items())
        held |= {(name, k): v for name, table in self.shared.items() for k, v in enumerate(table)}
        domain, at = self.domain, 0
        for block in (b for b, times in zip(self.blocks, self.repeats, strict=True) for _ in range(times)):
            seen = (*digits[at : at + block.digits], 0)
            at += block.digits
            held |= block.evaluate(held, domain.p, factor=domain.factor, digits=seen, pairs=self.groups.partner)
        return tuple(held[name] for name in self.answers)
