# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What the program of a Montgomery ladder computes, for all scalars."""

from __future__ import annotations

from typing import Any

from modmill.engines.ecc.recoding import Gray
from modmill.engines.theorem.group_law import ladder_steps
from modmill.engines.theorem.normal_forms import Form
from modmill.engines.theorem.parts import Check
from modmill.engines.theorem.point_runs import PointRun
from modmill.engines.theorem.scalars import Scalar
from modmill.engines.theorem.scalars import ladder_faults as ladder_digit_faults
from modmill.numbers.curves.affine import Montgomery


class LadderProof:
    """The parts of a proof of one ladder."""

    def __init__(self, run: PointRun) -> None:
        self._run = run

    def checks(self) -> list[Check]:
        """The parts besides the formulas, in the order of the argument."""
        return [
            ("pass", "a pass takes (K P, (K + 1) P) to (K' P, (K' + 1) P), K' = 2 K + bit", self._pass),
            ("start", "the first pass finds (O, P)", self._start),
            ("scalar", "the digits say whether neighbouring bits differ, for all scalars", self._digits),
            ("result", "u = X / Z, and 0 if Z = 0", self._result),
        ]

    def _pair(self, name: str) -> Form:
        """The variable or the other one of its pair, as the first digit says."""
        run = self._run
        partner = run.assembled.field_program.groups.partner
        return run.forms.selected(0, [run.held(name), run.held(partner[name])])

    def _pass(self) -> list[str]:
        run = self._run
        held, digits = run.loop
        assert isinstance(run.curve, Montgomery)
        if digits != 1 or run.at(held, "u1") != run.held("u1"):
            return ["a pass uses another number of digits than 1, or changes u"]
        names = ("X2", "Z2", "X3", "Z3")
        got = tuple(run.at(held, name) for name in names)
        for step, factor in ladder_steps(run.curve):
            constant: Any = run.forms.constant(factor)
            if got == step(*map(self._pair, names), run.held("u1"), constant):
                return []
        return ["a pass computes other coordinates"]

    def _start(self) -> list[str]:
        run = self._run
        held, digits = run.before
        X2, Z2, X3, Z3, u1 = (run.at(held, name) for name in ("X2", "Z2", "X3", "Z3", "u1"))
        u, Z = run.forms.atom("u"), run.first_z
        wanted = (Z, run.forms.constant(0), u * Z, Z, u)
        return [] if (X2, Z2, X3, Z3, u1) == wanted and not digits else ["the first points are others"]

    def _digits(self) -> list[str]:
        recoding = self._run.made.recoding
        if not isinstance(recoding, Gray) or self._run.program.passes != recoding.bits:
            return ["the recoding is not that of a ladder with a pass for each bit"]
        k = Scalar.unknown("k", 0, (1 << recoding.bits) - 1)
        digits = recoding.digits(k)  # type: ignore[arg-type]
        return ladder_digit_faults(digits, k, recoding.bits)

    def _result(self) -> list[str]:
        run = self._run
        held, digits = run.from_names(run.program.after)
        wanted = self._pair("X2") * self._pair("Z2") ** (run.p - 2) * run.f
        got = [held[False, slot] for slot, _ in run.program.results]
        return [] if got == [wanted] and digits == 1 else ["the instructions compute another u"]
