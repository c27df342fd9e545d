# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The tables of a program for points: each entry is a sum or a doubling of entries before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

from modmill.engines.ecc.formulas import EdwardsForm, Extended
from modmill.engines.ecc.recoding import Both
from modmill.engines.theorem.normal_forms import Form
from modmill.engines.theorem.point_runs import FORMULAS, PointRun
from modmill.numbers.curves.affine import Edwards, Point, Weierstrass

_OFFSETS = 1000
"""Offsets of tables of constants that are tried."""


class PointTables:
    """The tables of a program: multiples of P from the inputs, of lambda P, and constants that are multiples of G."""

    def __init__(self, run: PointRun) -> None:
        self._run = run

    def faults(self) -> list[str]:
        """Entries that are not the multiple that their digit stands for."""
        run = self._run
        found = self._own_tables()
        if run.shared_names:
            found += self._shared_tables()
        if split := run.split:
            values = [run.at(run.before[0], ("TX", d)) * split.beta for d in range(len(run.digit_values))]
            if values != [run.at(run.before[0], ("TB", d)) for d in range(len(values))]:
                found.append("a table of lambda P has other x than beta x")
            curve = run.image.image
            x, y = curve.base
            if pow(split.beta, 3, run.p) != 1 or curve.a % run.p:
                found.append("(beta x, y) is no endomorphism")
            elif curve.multiply(split.eigenvalue, curve.base) != (split.beta * x % run.p, y):
                found.append("(beta x, y) is not lambda times the base point")
            if curve.h != 1 and not curve.arithmetic:
                found.append("an input point may be other than a multiple of the base point")
        return found

    def selected(self, digit: int, names: Sequence[str]) -> list[Form]:
        """The coordinates of the entry that a digit selects."""
        run = self._run
        found = []
        for name in names:
            if name in run.assembled.field_program.shared:
                at, values = run.assembled.tables[name], dict(run.program.shared)
                entries = [run.forms.constant(values[at.number + d] * run.f) for d in range(at.size)]
            else:
                entries = [run.held((name, d)) for d in range(1 << run.window)]
            found.append(run.forms.selected(digit, entries))
        return found

    # ---- multiples of the input

    def _own_tables(self) -> list[str]:
        run = self._run
        found = []
        names = run.own_names
        if run.digit_values:
            multiples = self._of_input()
            for d, v in enumerate(run.digit_values):
                got = [run.at(run.before[0], (name, d)) for name in names]
                if not any(got == wanted for wanted in multiples(v)):
                    found.append(f"entry {d} of the table is not {v} P")
        return found

    def _of_input(self) -> Callable[[int], Iterator[list[Form]]]:
        """A function that yields entries for v P; each multiple comes from those before it by one sum or doubling."""
        E, P = self._run.form_here, self._run.input_point()
        known: dict[int, list[Any]] = {1: [P]}
        first = E.prepared(P) if isinstance(P, Extended) else P

        def of(v: int) -> list[Any]:
            if v not in known:
                known[v] = [E.double(Q) for Q in (of(v // 2) if v % 2 == 0 else [])]
                if v % 2 or isinstance(P, Extended):
                    known[v] += [E.add(Q, first) for Q in of(v - 1)[:1]]
                if v % 2 and v > 2 and not isinstance(P, Extended):
                    known[v] += [E.add(of(v - 2)[0], of(2)[0])]
                known[v] = self._those_in_table(v, known[v])
            return known[v]

        def entries(v: int) -> Iterator[list[Form]]:
            for Q in of(abs(v)) if v else [self._neutral()]:
                yield self._entry(Q, v < 0)

        return entries

    def _neutral(self) -> Any:
        run = self._run
        zero, one = run.forms.constant(0), run.forms.constant(1)
        if isinstance(run.curve, Weierstrass):
            return FORMULAS.Homogeneous(zero, one, zero)
        return FORMULAS.Extended(zero, one, one, zero)

    def _entry(self, Q: Any, negative: bool) -> list[Form]:
        """The coordinates of Q or -Q in a table."""
        if not isinstance(Q, Extended):
            return [Q.X, -Q.Y if negative else Q.Y, Q.Z]
        E: EdwardsForm = self._run.form_here
        R: Any = E.prepared(Q)
        minus, plus, dT = R.minus, R.plus, R.dT
        if negative:
            minus, plus, dT = (plus, minus, -dT) if E.minus_one else (-minus, plus, -dT)
        return [minus, plus, dT, R.Z]

    def _those_in_table(self, v: int, candidates: list[Any]) -> list[Any]:
        """The candidates for v P that the table has, or else all."""
        run = self._run
        names = run.own_names
        for d, value in enumerate(run.digit_values):
            if abs(value) == v:
                got = [run.at(run.before[0], (name, d)) for name in names]
                here = [Q for Q in candidates if self._entry(Q, value < 0) == got]
                if here:
                    return here
        return candidates

    # ---- multiples of the base point

    def _shared_points(self, names: Sequence[str]) -> list[Point]:
        """The points of a shared table, on the program's curve."""
        run = self._run
        values = dict(run.program.shared)
        tables = []
        for name in names:
            at = run.assembled.tables[name]
            tables.append([values[at.number + d] * run.f % run.p for d in range(at.size)])
        if isinstance(run.curve, Weierstrass):
            return list(zip(*tables, strict=True))
        E: EdwardsForm = run.form_here
        assert isinstance(run.curve, Edwards)
        found: list[Point] = []
        for m, q, t in zip(*tables, strict=True):
            half = pow(2, -1, run.p)
            x, y = ((q - m) * half % run.p, (q + m) * half % run.p) if E.minus_one else (m, q)
            if t != (2 if E.minus_one else 1) * run.curve.d * x * y % run.p:
                raise ValueError(f"a table of constants has a wrong {names[2]}")
            found.append((x, y))
        return found

    @cached_property
    def factors(self) -> list[list[int]]:
        """The multiples of G that the recoding wants from each shared table."""
        recoding: Any = self._run.made.recoding
        if isinstance(recoding, Both):
            return [list(range(1 << recoding.plain.window))]
        return list(recoding.factors() if callable(getattr(recoding, "factors", None)) else recoding.factors)

    @cached_property
    def offset(self) -> int:
        """The multiple of G that each entry of a shared table has more than its digit stands for."""
        run = self._run
        if not isinstance(run.curve, Weierstrass):
            return 0
        curve: Any = run.image.image
        first = self._shared_points(run.shared_names[0])[0]
        Q = curve.multiply(self.factors[0][0], curve.base)
        for u in range(_OFFSETS):
            if first == Q:
                return u
            Q = curve.add(Q, curve.base)
        raise ValueError("the first entry of a table of constants is no small multiple of G")

    def _shared_tables(self) -> list[str]:
        run = self._run
        found = []
        curve: Any = run.image.image if run.image else run.curve
        for names, factors in zip(run.shared_names, self.factors, strict=True):
            points = self._shared_points(names)
            if len(points) != len(factors):
                found.append(f"table {names[0]} has {len(points)} entries, not {len(factors)}")
                continue
            first = curve.multiply((factors[0] + self.offset) % curve.n, curve.base)
            steps = [curve.multiply((factors[1 << t] - factors[0]) % curve.n, curve.base)
                     for t in range((len(factors) - 1).bit_length())]  # fmt: skip
            wanted = [first]
            for d in range(1, len(factors)):  # entry d is that without its lowest bit, plus the point of this bit
                low = (d & -d).bit_length() - 1
                if factors[d] != factors[d & (d - 1)] + factors[1 << low] - factors[0]:
                    found.append(f"table {names[0]}: the multiple of entry {d} is not that of its bits")
                wanted.append(curve.add(wanted[d & (d - 1)], steps[low]))
            found += [
                f"entry {d} of table {names[0]} is not {factors[d] + self.offset} G"
                for d, (P, Q) in enumerate(zip(points, wanted, strict=True)) if P != Q
            ]  # fmt: skip
        return found
