# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The parts of a program for points, executed on normal forms, and what its points and tables are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from modmill.contract import Contract
from modmill.engines.ecc import formulas
from modmill.engines.ecc.edwards import form as edwards_form
from modmill.engines.ecc.endomorphism import Endomorphism
from modmill.engines.ecc.isomorphism import isomorphism
from modmill.engines.ecc.points import BLIND, XYZ, PointProgram
from modmill.engines.ecc.recoding import Odd
from modmill.engines.ecc.weierstrass import SplitScalar, TwoScalars
from modmill.engines.ecc.weierstrass import form as weierstrass_form
from modmill.engines.microcode.assembly import Assembled
from modmill.engines.microcode.expressions import Name
from modmill.engines.theorem.instructions import execute, inputs
from modmill.engines.theorem.normal_forms import Form, Forms
from modmill.numbers.curves.affine import Curve, Edwards, Weierstrass


class _Constants:
    """Stands for a block and a domain in `form` of a curve: constants of any ring."""

    def __init__(self, constant: Callable[[int], Any], added: bool) -> None:
        self._constant, self.added = constant, added

    def constant(self, _block: object, value: int) -> Any:
        """A number of the field."""
        return self._constant(value)


FORMULAS: Any = formulas
"""The formulas of points: written for elements of a block, and run on normal forms."""


class PointRun:
    """The parts of a program, each executed from any values. ``curve``: of the operation, ``made`` and
    ``instructions``: the program; ``contract``: that of its multiplier."""

    def __init__(self, curve: Curve, made: PointProgram, instructions: Assembled, contract: Contract) -> None:
        self.curve, self.made, self.assembled, self.contract = curve, made, instructions, contract
        self.program, self.forms = instructions.program, Forms(contract.p)
        self.p, self.f = contract.p, contract.factor
        self.added = instructions.unit.added
        self.window = getattr(getattr(made.recoding, "signed", made.recoding), "window", 0)

    # ---- execution

    @cached_property
    def before(self) -> tuple[dict[Any, Form], int]:
        """Slots after the part before the loop, and the digits that it takes."""
        held = inputs(self.program, self.forms, self.f)
        return held, execute(self.program.before, held, self.forms)

    def from_names(self, instructions: Sequence[Any]) -> tuple[dict[Any, Form], int]:
        """Execute a part from any values of all variables and table entries."""
        held = inputs(replace(self.program, inputs=()), self.forms, self.f)
        held |= {(False, slot): self.forms.atom("held", name) for name, slot in self.assembled.named.items()}
        return held, execute(instructions, held, self.forms)

    @cached_property
    def loop(self) -> tuple[dict[Any, Form], int]:
        """The same of a pass, from any values."""
        return self.from_names(self.program.loop)

    def at(self, held: dict[Any, Form], name: Name) -> Form:
        """The value of a variable or table entry. Raises ValueError if it has none."""
        found = held.get((False, self.assembled.named.get(name, -1)))
        if found is None:
            raise ValueError(f"{name} has no value")
        return found

    def held(self, name: Name) -> Form:
        """Any value of a variable or table entry."""
        return self.forms.atom("held", name)

    def point(self, held: dict[Any, Form]) -> tuple[Form, ...]:
        """The coordinates of V."""
        return tuple(self.at(held, c) for c in XYZ)

    # ---- formulas

    @cached_property
    def image(self) -> Any:
        """The isomorphism to the curve of the program, of a Weierstrass curve; None of others."""
        return isomorphism(self.curve) if isinstance(self.curve, Weierstrass) else None

    def form(self, constant: Callable[[int], Any], added: bool) -> Any:
        """The formulas of the curve, with constants of any ring."""
        where: Any = _Constants(constant, added)
        if isinstance(self.curve, Weierstrass):
            return weierstrass_form(self.image.image, where, where)
        assert isinstance(self.curve, Edwards)
        return edwards_form(self.curve, where, where)

    @cached_property
    def form_here(self) -> Any:
        """The formulas on normal forms."""
        return self.form(self.forms.constant, self.added)

    # ---- points and tables

    @property
    def first_z(self) -> Form:
        """Z of the points before any formula: the blind in the domain, or 1."""
        blind = any(name == BLIND for _, name in self.program.inputs)
        return self.forms.atom(BLIND) * (self.f * self.f) if blind else self.forms.constant(1)

    def input_point(self) -> Any:
        """P in the coordinates of the program."""
        x, y, Z = self.forms.atom("x"), self.forms.atom("y"), self.first_z
        if isinstance(self.curve, Weierstrass):
            u = self.image.u
            return FORMULAS.Homogeneous(x * (u * u) * Z, y * u**3 * Z, Z)
        return FORMULAS.Extended(x * Z, y * Z, Z, x * y * Z)

    @cached_property
    def digit_values(self) -> list[int]:
        """Multiples of P in the tables of a thread, by digit; empty if there are none."""
        groups = dict(self.assembled.field_program.groups.tables)
        if not groups:
            return []
        half = 1 << self.window - 1
        if isinstance(self.made.recoding, Odd):
            return [2 * d + 1 - 2 * half for d in range(2 * half)]
        return [d - half for d in range(2 * half)]

    @property
    def own_names(self) -> tuple[str, ...]:
        """The names of the coordinates of a table of multiples of P."""
        return ("TX", "TY", "TZ") if isinstance(self.curve, Weierstrass) else ("TM", "TP", "TT", "TZ")

    @cached_property
    def shared_names(self) -> list[tuple[str, ...]]:
        """The names of the coordinates of each shared table, in order."""
        coordinates = "XY" if isinstance(self.curve, Weierstrass) else "MPT"
        count = len(self.assembled.field_program.shared) // len(coordinates)
        return [tuple(f"G{k}{c}" for c in coordinates) for k in range(count)]

    @property
    def split(self) -> Endomorphism | None:
        """The endomorphism by which scalars are split, if they are."""
        return self.made.recoding.split if isinstance(self.made.recoding, SplitScalar | TwoScalars) else None

    @property
    def columns(self) -> list[tuple[str, ...]]:
        """The tables of a pass, in order."""
        found = [self.own_names] if self.digit_values else []
        if self.split:
            found.append(("TB", "TY", "TZ"))
        return [*found, *self.shared_names]

    def second(self, entry: list[Form]) -> Any:
        """The second operand of a sum, from the coordinates of an entry."""
        if isinstance(self.curve, Edwards):
            return FORMULAS.Prepared(*entry)
        return FORMULAS.Homogeneous(*entry) if len(entry) == 3 else FORMULAS.AffinePoint(*entry)

    @property
    def doublings(self) -> int:
        """Doublings of a pass."""
        return self.window or 1
