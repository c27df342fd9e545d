# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What the programs of an engine for curves compute, for all inputs and scalars: by induction on the passes.

Each part of a program is executed on normal forms and compared with what it must do, written here with the formulas
whose law `group_law` proves. A table entry is compared with a sum or doubling of entries before it. A pass takes the
point V to scale V + the entries that its digits select; so the result is the sum of the values of all digits times
their weights, and `scalars` says that this is the scalar.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from modmill.contract import Contract, UnsupportedError
from modmill.engines.ecc.formulas import WeierstrassForm
from modmill.engines.ecc.points import XYZ, PointProgram
from modmill.engines.ecc.recoding import Odd
from modmill.engines.microcode.assembly import Assembled
from modmill.engines.theorem.group_law import edwards_faults, ladder_faults, ladder_steps, weierstrass_faults
from modmill.engines.theorem.ladder_programs import LadderProof
from modmill.engines.theorem.parts import Check, Part
from modmill.engines.theorem.point_runs import FORMULAS, PointRun
from modmill.engines.theorem.point_scalars import PointScalars
from modmill.engines.theorem.point_tables import PointTables
from modmill.numbers.curves.affine import Curve, Edwards, Montgomery, Weierstrass
from modmill.numbers.primes import square_root


class PointProof:
    """The parts of a proof of one program. ``curve``: of the operation, ``made`` and ``instructions``: the program.
    Call `parts`."""

    def __init__(self, curve: Curve, made: PointProgram, instructions: Assembled, contract: Contract) -> None:
        self._run = PointRun(curve, made, instructions, contract)
        self._tables = PointTables(self._run)
        self._scalars = PointScalars(self._run, self._tables)

    def parts(self) -> list[Part]:
        """All parts, in the order of the argument."""
        run = self._run
        title = run.curve.title
        checks: list[Check] = [
            ("formulas", f"the formulas are the group law of {title}, for all its points", self._formulas),
        ]
        checks += LadderProof(run).checks() if isinstance(run.curve, Montgomery) else self._of_digits()
        found = []
        for part, theorem, check in checks:
            try:
                remains = check()
            except (ValueError, UnsupportedError) as error:
                remains = [str(error)]
            found.append(Part(f"{part} of {run.made.operation}", theorem, tuple(remains)))
        return found

    def _of_digits(self) -> list[Check]:
        return [
            ("tables", "each entry is the multiple of P or G that its digit stands for", self._tables.faults),
            ("pass", "a pass takes V to 2^w V plus the entries of its digits, for every V", self._pass),
            (
                "scalar",
                "the values of all digits make the scalars, for all scalars of the length",
                self._scalars.faults,
            ),
            ("result", "x = X / Z, y = Y / Z, and (0, 0) if Z = 0", self._affine),
        ]

    def _formulas(self) -> list[str]:
        run = self._run
        curve = run.curve
        if isinstance(curve, Montgomery):
            return [line for step, factor in ladder_steps(curve) for line in ladder_faults(curve, step, factor)]
        if isinstance(curve, Edwards):
            root = square_root(curve.a, curve.p)
            return edwards_faults(curve, lambda one: run.form(lambda c: c * one, run.added), root)
        assert isinstance(curve, Weierstrass)
        image, u = run.image.image, run.image.u
        found = weierstrass_faults(image, lambda one: run.form(lambda c: c * one, run.added))
        if (image.a - u**4 * curve.a) % curve.p or (image.b - u**6 * curve.b) % curve.p or u % curve.p == 0:
            found.append("the program's curve is not isomorphic to the curve")
        if curve.n % 2 == 0 or (curve.h % 2 == 0 and not curve.arithmetic):
            found.append("the group has points of order two")
        return found

    def _doubled(self) -> Iterator[tuple[str, Any]]:
        """Points after the doublings of a pass, by kind: complete or Jacobian."""
        run = self._run
        E, P = run.form_here, FORMULAS.Homogeneous(*map(run.held, XYZ))
        Q = P
        for _ in range(run.doublings):
            Q = E.double(Q)
        yield "complete", Q
        if isinstance(E, WeierstrassForm):
            J = E.first_double(P)
            for _ in range(run.doublings - 1):
                J = E.double_jacobian(J)
            yield "Jacobian", E.homogeneous(J)

    def _pass(self) -> list[str]:
        run = self._run
        held, digits = run.loop
        if digits != len(run.columns):
            return [f"a pass uses {digits} digits, and has {len(run.columns)} tables"]
        kept = [name for name in run.assembled.named if isinstance(name, tuple)]
        if changed := [name for name in kept if run.at(held, name) != run.held(name)]:
            return [f"a pass changes {changed[0]}"]
        for kind, R in self._doubled():
            for digit, names in enumerate(run.columns):
                R = run.form_here.add(R, run.second(self._tables.selected(digit, names)))
            if run.point(held) == (R.X, R.Y, R.Z):
                return self._no_neutral() if kind == "Jacobian" else []
        return ["a pass computes other coordinates"]

    def _no_neutral(self) -> list[str]:
        """Jacobian doublings leave out O: why no pass begins with it."""
        recoding, curve = self._run.made.recoding, self._run.curve
        if not isinstance(recoding, Odd) or curve.h != 1 or recoding.n != curve.n or curve.n % 2 == 0:
            return ["Jacobian doublings may begin with O"]
        # before the last r > 0 digits the value V is odd, and |V| 2^(w r) < max(2^bits, n) + 2^(w r)
        if (max(1 << recoding.bits, curve.n) >> recoding.window) + 1 >= curve.n:
            return ["Jacobian doublings may begin with O: a prefix of the digits may be a multiple of n"]
        return []

    def _affine(self) -> list[str]:
        run = self._run
        held, digits = run.from_names(run.program.after)
        X, Y, Z = map(run.held, XYZ)
        u = run.image.u if run.image else 1
        inverse = Z ** (run.p - 2)
        wanted = [c * inverse * pow(u, -k, run.p) * run.f for c, k in ((X, 2), (Y, 3))]
        got = [held[False, slot] for slot, _ in run.program.results]
        return [] if got == wanted and not digits else ["the instructions compute other coordinates"]
