# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The values of all digits of a program for points make the scalars: by induction on the passes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from modmill.engines.ecc.endomorphism import Endomorphism
from modmill.engines.ecc.recoding import Comb, Odd, Signed
from modmill.engines.ecc.weierstrass import SplitScalar
from modmill.engines.theorem.point_runs import PointRun
from modmill.engines.theorem.point_tables import PointTables
from modmill.engines.theorem.scalars import Scalar, digits_worth
from modmill.numbers.curves.affine import Edwards


class PointScalars:
    """The digits of a program's recoding, of unknown scalars, with the values of the ``tables`` they select from."""

    def __init__(self, run: PointRun, tables: PointTables) -> None:
        self._run, self._tables = run, tables

    def faults(self) -> list[str]:
        """What is other than the scalars, for all scalars of the length."""
        found = [line for scalars, wanted in self._cases() for line in self._case(scalars, wanted)]
        if self._run.split:
            found += _split_faults(self._run.split)
        return found

    def _cases(self) -> Iterator[tuple[tuple[Any, ...], dict[str, Scalar]]]:
        """Unknown scalars, and the multiples of P, lambda P and G that must come out."""
        run = self._run
        recoding: Any = run.made.recoding
        n = run.curve.n

        def any_below(end: int, name: str = "k", odd: bool | None = None) -> Scalar:
            return Scalar.unknown(name, 0, end - 1, odd)

        if isinstance(recoding, Odd):
            if run.curve.h != 1 or recoding.n != n:
                raise ValueError("an even scalar is replaced by k - n, and n P may be other than O")
            for odd in (False, True):
                k = any_below(1 << recoding.bits, odd=odd)
                yield (k,), {"P": k if odd else k - n}
        elif isinstance(recoding, Signed):
            k = any_below(1 << recoding.bits)
            yield (k,), {"P": k}
        elif isinstance(recoding, Comb):
            k = any_below(1 << recoding.bits)
            yield (k,), {"G": k}
        elif isinstance(recoding, SplitScalar):
            yield (0,), {}
        else:
            u1, u2 = any_below(n, "u1"), any_below(n, "u2")
            yield (u1, u2), {"G": u1, "P": u2}

    def _case(self, scalars: tuple[Any, ...], wanted: dict[str, Scalar]) -> list[str]:
        run = self._run
        recoding: Any = run.made.recoding
        if split := run.split:
            top = (1 << split.bits) - 1
            k1, k2 = (Scalar.unknown(name, -top, top) for name in ("k1", "k2"))
            recoding = replace(recoding, split=_Parts(k1, k2, split.bits))
            scalars, wanted = (*scalars[:-1], 0), {**wanted, "P": k1, "lambda P": k2}
        digits = recoding.digits(*scalars)
        columns = run.columns
        passes = run.program.passes
        first = 1 if run.before[1] else 0
        if len(digits) != len(columns) * (passes + first) or len(digits) != run.program.digits:
            return [f"{len(digits)} digits, {passes} passes of {len(columns)} tables"]
        own = [["P", "lambda P"][k] for k in range(len(columns) - len(run.shared_names))]
        tables = [run.digit_values] * len(own)
        offset = self._tables.offset if run.shared_names else 0
        tables += [[v + offset for v in factors] for factors in self._tables.factors] if run.shared_names else []
        worth = digits_worth(digits, tables, 1 << run.doublings)
        total: dict[str, Scalar] = {}
        for of, value in zip([*own, *["G"] * len(run.shared_names)], worth, strict=True):
            total[of] = total[of] + value if of in total else value
        found = self._start(total, first, passes)
        for of, value in wanted.items():
            got = total[of].whole()
            if not got.same(value):
                found.append(f"the digits give another multiple of {of} than the scalar")
        return found

    def _start(self, total: dict[str, Scalar], first: int, passes: int) -> list[str]:
        """Add what the point before the first pass is worth to ``total``."""
        run = self._run
        held = run.before[0]
        X, Y, Z = run.point(held)
        if first:
            if run.before[1] != len(run.columns):
                return [f"{run.before[1]} digits select the first point, of {len(run.columns)} tables"]
            entry, *others = (
                [run.forms.selected(k, [run.at(held, (name, d)) for d in range(1 << run.window)]) for name in names]
                for k, names in enumerate(run.columns)
            )
            for other in others:
                R = run.form_here.add(run.second(entry), run.second(other))
                entry = [R.X, R.Y, R.Z]
            if isinstance(run.curve, Edwards):
                minus, plus, _, TZ = entry
                entry = [plus - minus, plus + minus, TZ] if run.form_here.minus_one else [minus, plus, TZ]
            return [] if entry == [X, Y, Z] else ["the first point is not the sum of the entries of the first digits"]
        if run.first_z != Z:
            return ["the first point has another Z than the blind"]
        if isinstance(run.curve, Edwards):
            return [] if (run.forms.constant(0), Z) == (X, Y) else ["the first point is not neutral"]
        scale = pow(2, run.doublings * passes, run.curve.n)
        curve: Any = run.image.image
        start = -total["G"].whole().offset  # the offsets of all entries and digits
        multiple = start * pow(scale, -1, run.curve.n) % run.curve.n
        A = curve.multiply(multiple, curve.base)
        if A is None or (Z * A[0], Z * A[1]) != (X, Y):
            return [f"the first point is not {multiple} G"]
        total["G"] = total["G"] + start
        return []


@dataclass(frozen=True)
class _Parts:
    """Stands for an endomorphism in a recoding: any two parts of a scalar."""

    k1: Scalar
    k2: Scalar
    bits: int

    def split(self, _k: int) -> tuple[Scalar, Scalar]:
        """The parts."""
        return self.k1, self.k2


def _split_faults(found: Endomorphism) -> list[str]:
    """What is false of: k = k1 + k2 lambda mod n, and |k1|, |k2| < 2^bits, for every k.

    (k1, k2) = (k, 0) - c1 v1 - c2 v2; both vectors are 0 mod n at lambda. Without rounding the coefficients give
    (0, 0), so with an error of at most 1/2 in each, |k1| and |k2| are at most half the sum of the vectors'
    coordinates."""
    (a1, b1), (a2, b2) = found.vectors
    determinant = a1 * b2 - a2 * b1
    lines = []
    if any((a + b * found.eigenvalue) % found.n for a, b in found.vectors):
        lines.append("a short vector is not 0 at lambda")
    if determinant == 0:
        lines.append("the short vectors are not independent")
    if max(abs(a1) + abs(a2), abs(b1) + abs(b2)) >= 2 << found.bits:
        lines.append(f"half of a scalar may have more than {found.bits} bits")
    return lines
