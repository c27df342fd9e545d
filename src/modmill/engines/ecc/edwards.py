# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Programs for a x^2 + y^2 = 1 + d x^2 y^2, a a square, d a non-square: k P, k G, and u1 G + u2 P.

All additions are complete: they hold for all points, including those of small order and the neutral element (0, 1).
Tables hold points in the form ``Prepared``; those of constants have Z = 1.
"""

from __future__ import annotations

from modmill.engines.ecc.formulas import EdwardsForm, Extended, Homogeneous, Prepared
from modmill.engines.ecc.points import BLIND, PointProgram, affine_block, blinded, double_and_add, point, set_point
from modmill.engines.ecc.recoding import Both, Comb, Signed, Unsigned
from modmill.engines.microcode.expressions import BasicBlock
from modmill.engines.microcode.field_program import Domain, FieldProgram
from modmill.engines.microcode.scheduling import RegisterGroups
from modmill.numbers.curves.affine import Edwards
from modmill.numbers.curves.projective import multiples

_TABLE = ("TM", "TP", "TT", "TZ")


def form(curve: Edwards, domain: Domain, block: BasicBlock) -> EdwardsForm:
    """The curve's formulas in a block; for a = 1 and a = -1 they need no product by a."""
    a = 1 if curve.a == 1 else -1 if curve.a == curve.p - 1 else 0
    return EdwardsForm(a or domain.constant(block, curve.a), domain.constant(block, curve.d), domain.added)


def _neutral(domain: Domain, block: BasicBlock) -> Extended:
    zero, one = block.constant(0), domain.constant(block, 1)
    return Extended(zero, one, one, zero)


def _table(curve: Edwards, domain: Domain, block: BasicBlock, P: Extended, window: int) -> None:
    """Set a table of the prepared multiples -2^(w-1) P to (2^(w-1) - 1) P, w = ``window``."""
    E, half = form(curve, domain, block), 1 << window - 1
    of = {0: _neutral(domain, block), 1: P}
    first = E.prepared(P)
    for k in range(2, half + 1):
        of[k] = E.double(of[k // 2]) if k % 2 == 0 else E.add(of[k - 1], first)
    prepared = {k: E.prepared(Q) for k, Q in of.items()}
    for digit in range(2 * half):
        Q = prepared[abs(digit - half)]
        values = (Q.minus, Q.plus, Q.dT, Q.Z)
        if digit < half:  # -(x, y) = (-x, y)
            values = (Q.plus, Q.minus, -Q.dT, Q.Z) if E.minus_one else (-Q.minus, Q.plus, -Q.dT, Q.Z)
        for table, value in zip(_TABLE, values, strict=True):
            assert value is not None
            block.set((table, digit), value)


def _from_entry(curve: Edwards, domain: Domain, block: BasicBlock) -> Homogeneous:
    """The point of a table entry."""
    minus, plus, _, Z = map(block.entry, _TABLE)
    if form(curve, domain, block).minus_one:
        return Homogeneous(plus - minus, plus + minus, Z)
    return Homogeneous(minus, plus, Z)


def _constant_tables(columns: int) -> list[tuple[str, ...]]:
    return [(f"G{column}M", f"G{column}P", f"G{column}T") for column in range(columns)]


def _constants(curve: Edwards, domain: Domain, factors: list[list[int]]) -> dict[str, tuple[int, ...]]:
    """Shared tables of prepared multiples of the base point with Z = 1; ``factors``: one list for each table."""
    p = curve.p
    minus_one = curve.a == p - 1 and not domain.added
    shared = {}
    for names, table in zip(_constant_tables(len(factors)), factors, strict=True):
        entries = []
        for k in table:
            P = multiples(curve, [(k % curve.n, curve.base)])
            assert P is not None
            x, y = P
            dT = curve.d * x * y
            entries.append((y - x, y + x, 2 * dT) if minus_one else (x, y, dT))
        for place, name in enumerate(names):
            shared[name] = tuple(domain.value(entry[place]) for entry in entries)
    return shared


def multiply(curve: Edwards, domain: Domain, bits: int, window: int = 4) -> PointProgram:
    """k P for any point P = (x, y) and k in [0, 2^bits); a pass of the loop uses ``window`` bits, at least 2."""
    recoding = Signed(bits, max(2, window))
    window = recoding.window
    before, first, loop = (BasicBlock(name) for name in ("table", "first digit", "pass"))
    x, y = before.variable("x"), before.variable("y")
    X, Y, Z = blinded(domain, before, x, y)
    _table(curve, domain, before, Extended(X, Y, Z, domain.enter(x) * Y), window)
    set_point(first, _from_entry(curve, domain, first))
    first.next_digit()
    double_and_add(loop, form(curve, domain, loop), point(loop), window, [_TABLE], Prepared)
    field_program = FieldProgram(
        f"{curve.title} multiple, window {window}", domain, ("x", "y", BLIND), ("x", "y"), (before, first), loop,
        affine_block(domain), passes=recoding.count - 1, window=window,
        groups=RegisterGroups(tables=tuple((table, 1 << window) for table in _TABLE)),
    )  # fmt: skip
    return PointProgram("multiply", curve.title, field_program, recoding)


def base(curve: Edwards, domain: Domain, bits: int, teeth: int = 5, columns: int = 2) -> PointProgram:
    """k G for k in [0, 2^bits) by a comb: 1 doubling and ``columns`` additions a pass, columns * 2^teeth entries."""
    comb = Comb(bits, teeth, columns)
    before, loop = BasicBlock("start"), BasicBlock("pass")
    zero = before.constant(0)
    (one,) = blinded(domain, before)
    set_point(before, Homogeneous(zero, one + zero, one))
    double_and_add(loop, form(curve, domain, loop), point(loop), 1, _constant_tables(columns), Prepared)
    field_program = FieldProgram(
        f"{curve.title} base multiple, comb {teeth} x {columns}", domain, (BLIND,), ("x", "y"), (before,), loop,
        affine_block(domain), passes=comb.passes, window=teeth, shared=_constants(curve, domain, comb.factors),
    )  # fmt: skip
    return PointProgram("multiply-base", curve.title, field_program, comb)


def two(curve: Edwards, domain: Domain, window: int = 4) -> PointProgram:
    """u1 G + u2 P for u1, u2 below n and any point P = (x, y), both by windows of ``window`` bits, at least 2."""
    recoding = Signed(curve.n.bit_length(), max(2, window))
    window, count = recoding.window, recoding.count
    plain = Unsigned(curve.n.bit_length(), window, least=count)
    before, loop = BasicBlock("table"), BasicBlock("pass")
    X, Y = domain.enter(before.variable("x")), domain.enter(before.variable("y"))
    _table(curve, domain, before, Extended(X, Y, domain.constant(before, 1), X * Y), window)
    set_point(before, _neutral(domain, before))
    double_and_add(loop, form(curve, domain, loop), point(loop), window, [_TABLE, *_constant_tables(1)], Prepared)
    field_program = FieldProgram(
        f"{curve.title} sum of two multiples, window {window}", domain, ("x", "y"), ("x", "y"), (before,), loop,
        affine_block(domain), passes=count, window=window,
        groups=RegisterGroups(tables=tuple((table, 1 << window) for table in _TABLE)),
        shared=_constants(curve, domain, [list(range(1 << window))]),
    )  # fmt: skip
    return PointProgram("multiply-two", curve.title, field_program, Both(plain, recoding))
