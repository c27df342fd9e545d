# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Explain the operations of a curve on a design: numbers of instructions, products and slots, bounds, and charts."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from modmill.contract import Binary, Contract, UnsupportedError
from modmill.design import DesignInstance
from modmill.designs import design as find_design
from modmill.engines.ecc.point_engine import OPERATIONS, MicrocodePointEngine, Shape
from modmill.engines.ecc.variable_time import variable_time_two
from modmill.engines.microcode.assembly import assemble
from modmill.engines.microcode.expressions import READ
from modmill.engines.microcode.interpreter import exact
from modmill.engines.microcode.program import DatapathSpec
from modmill.engines.microcode.scheduling import Placed
from modmill.numbers.curves.affine import Curve, Montgomery, Weierstrass
from modmill.numbers.shown import shortened
from modmill.report.chart import chart

ROOM = 1024
"""Number of slots that stands for unlimited memory."""


@dataclass(frozen=True)
class OnDesign:
    """A curve's programs on a design, for a unit of unlimited memory.

    ``distances``: instructions from a product, and from a sum, to the first instruction that can read it; 1, 1 if
    threads hide the latency. ``sums``: maximum number of sums in an instruction, ignored if the design adds up
    products. Raises UnsupportedError if the design does not support the curve's p.
    """

    curve: Curve
    design: str
    io: str = "native"
    sums: int = 3
    distances: tuple[int, int] = (1, 1)
    shape: Shape = field(default_factory=Shape)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def fitted(self) -> DesignInstance:
        """The design for the curve's p."""
        return find_design(self.design).fit(self.curve.p, **self.settings)

    @property
    def contract(self) -> Contract:
        """The multiplier's contract. Raises UnsupportedError for a form that the design does not have."""
        forms = self.fitted.engine_forms
        if self.io not in forms:
            raise UnsupportedError(f"an engine around {self.design} takes --io {' or '.join(forms)}, not {self.io}")
        return self.fitted.contract(self.io)

    @property
    def unit(self) -> DatapathSpec:
        """The unit. It has a conditional subtract after sums if numbers are binary and operands must be below 4 p.

        Raises UnsupportedError for distances or sums below 1.
        """
        contract = self.contract
        added = self.io == "native" and hasattr(self.fitted, "combine")
        conditional_subtracts = not added and isinstance(contract.operand, Binary) and contract.operand_bound < 4
        if min(self.distances) < 1:
            raise UnsupportedError(f"distances must be at least 1 instruction, got {min(self.distances)}")
        if not added and self.sums < 1:
            raise UnsupportedError(f"the number of sums in an instruction must be at least 1, got {self.sums}")
        sums = 0 if added else self.sums
        return DatapathSpec(sums, *self.distances, ROOM, ROOM, added=added, conditional_subtracts=conditional_subtracts)

    def engine(self) -> MicrocodePointEngine:
        """The bit-exact point engine."""
        fitted, contract = self.fitted, self.contract
        return MicrocodePointEngine(self.curve, contract, self.unit, self.shape, lambda _: exact(fitted, contract))

    @property
    def operations(self) -> tuple[str, ...]:
        """Names of the curve's operations."""
        return OPERATIONS[3:] if isinstance(self.curve, Montgomery) else OPERATIONS[:3]

    @property
    def bits(self) -> int:
        """Length of a scalar in bits: that of n, or of p for a ladder."""
        return (self.curve.p if isinstance(self.curve, Montgomery) else self.curve.n).bit_length()


def table(on: OnDesign) -> str:
    """Table of all operations: instructions, products and slots. On a Weierstrass curve also u1 G + u2 P in variable
    time, for one pair of random scalars."""
    engine = on.engine()
    lines = [("operation", "instructions", "products", "used", "stored", "slots", "shared", "conditional subtracts",
              "reductions")]  # fmt: skip
    made = [(operation, engine.program(operation, on.bits)[1]) for operation in on.operations]
    if isinstance(on.curve, Weierstrass):
        rnd = random.Random(1)
        pair = rnd.randrange(1, on.curve.n), rnd.randrange(1, on.curve.n)
        if field_program := variable_time_two(on.curve, engine.domain, *pair):
            made.append(("multiply-two, variable time", assemble(field_program, engine.contract, engine.unit)))
    for operation, found in made:
        p = found.program
        lines.append((
            operation, str(p.instructions), str(p.products), f"{p.products / p.instructions:.1%}",
            str(len(p.before) + len(p.loop) + len(p.after)), str(p.slots), str(p.shared_slots),
            str(found.legal.subtract_count), str(len(found.legal.reductions)),
        ))  # fmt: skip
    first, *widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join([f"{name:<{first}}", *(f"{cell:>{w}}" for cell, w in zip(cells, widths, strict=True))])
        for name, *cells in lines
    )


def explanation(on: OnDesign, operation: str, width: int = 100) -> str:
    """Facts of one operation, then a chart of each basic block, with instructions as columns, wrapped at ``width``.

    Raises UnsupportedError for an operation that the curve does not have.
    """
    if operation not in on.operations:
        known = ", ".join(on.operations)
        raise UnsupportedError(f"{on.curve.title} has the operations {known}, not {shortened(operation)}")
    engine = on.engine()
    made, found = engine.program(operation, on.bits)
    facts = [("program", made.field_program.name), ("design", f"{on.design}, {on.io} form"), *found.facts()]
    label = max(len(name) for name, _ in facts)
    lines = [f"{name:<{label}}  {text}" for name, text in facts]
    for part, times in zip(found.parts, found.field_program.repeats, strict=True):
        if part.length:
            head = f"{part.block.name}: {part.length} instructions, {times} times (columns are instructions)"
            lines += ["", head, "", chart(part.schedule(engine.unit, _names(part)), width)]
    return "\n".join(lines)


def _names(part: Placed) -> dict[int, str]:
    """Label of each operation of a block: its sign, and the variable that it sets or else its number."""
    signs = {"mul": "×", "add": "+", "sub": "−", READ: ""}
    nodes = part.block.nodes
    names = {k: f"{signs[node.kind]}{k}" for k, node in enumerate(nodes)}
    for name, k in part.block.outputs.items():
        text = name if isinstance(name, str) else f"{name[0]}{name[1]}"
        names[k] = f"{signs[nodes[k].kind]}{text}"
    return names
