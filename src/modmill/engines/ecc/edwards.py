# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Programs for a x^2 + y^2 = 1 + d x^2 y^2, a a square, d a non-square: k P, k G, and u1 G + u2 P.

All additions are complete: they hold for all points, including those of small order and the neutral element (0, 1).
Tables hold points in the form ``Prepared``; those of constants have Z = 1.
"""

from __future__ import annotations

from modmill.engines.ecc.formulas import EdwardsForm, Extended, Prepared
from modmill.engines.ecc.points import BLIND, PointProgram, blinded, give_affine
from modmill.engines.ecc.recoding import Comb, Signed, Unsigned, together
from modmill.engines.microcode.expressions import BasicBlock
from modmill.engines.microcode.field_program import Domain, FieldProgram
from modmill.engines.microcode.scheduling import RegisterGroups
from modmill.numbers.curves.affine import Edwards
from modmill.numbers.curves.projective import multiples

_XYZ = ("X", "Y", "Z")
_PREPARED = ("M", "P", "T", "Z")


def form(curve: Edwards, domain: Domain, block: BasicBlock) -> EdwardsForm:
    """The curve's formulas in a block; for a = 1 and a = -1 they need no product by a."""
    a = 1 if curve.a == 1 else -1 if curve.a == curve.p - 1 else 0
    return EdwardsForm(a or domain.constant(block, curve.a), domain.constant(block, curve.d), domain.added)


def _point(block: BasicBlock) -> Extended:
    return Extended(*(block.variable(name) for name in _XYZ))


def _set(block: BasicBlock, P: Extended) -> None:
    for name, value in zip(_XYZ, (P.X, P.Y, P.Z), strict=True):
        block.set(name, value)


def _neutral(domain: Domain, block: BasicBlock) -> Extended:
    zero, one = block.constant(0), domain.constant(block, 1)
    return Extended(zero, one, one, zero)


def _entry(block: BasicBlock) -> Prepared:
    return Prepared(*(block.entry("T" + name) for name in _PREPARED))


def _table(curve: Edwards, domain: Domain, block: BasicBlock, P: Extended, window: int) -> None:
    """Set a table of the prepared multiples -2^(w-1) P to (2^(w-1) - 1) P, w = ``window``."""
    E, half = form(curve, domain, block), 1 << window - 1
    of = {0: _neutral(domain, block), 1: P}
    first = E.prepared(P)
    for k in range(2, half + 1):
        of[k] = E.double(of[k // 2]) if k % 2 == 0 else E.add(of[k - 1], first)
    prepared = {k: E.prepared(Q) for k, Q in of.items()}
    for digit in range(2 * half):
        factor = digit - half
        Q = prepared[abs(factor)]
        assert Q.Z is not None
        values = (Q.minus, Q.plus, Q.dT, Q.Z)
        if factor < 0:  # -(x, y) = (-x, y)
            values = (Q.plus, Q.minus, -Q.dT, Q.Z) if E.minus_one else (-Q.minus, Q.plus, -Q.dT, Q.Z)
        for name, value in zip(_PREPARED, values, strict=True):
            block.set(("T" + name, digit), value)


def _from_entry(curve: Edwards, domain: Domain, block: BasicBlock) -> Extended:
    """The point of a table entry, without T."""
    Q = _entry(block)
    assert Q.Z is not None
    if form(curve, domain, block).minus_one:
        return Extended(Q.plus - Q.minus, Q.plus + Q.minus, Q.Z)
    return Extended(Q.minus, Q.plus, Q.Z)


def _constants(curve: Edwards, domain: Domain, factors: list[list[int]]) -> dict[str, tuple[int, ...]]:
    """Shared tables of prepared multiples of the base point with Z = 1; ``factors``: one list for each table."""
    p = curve.p
    minus_one = curve.a == p - 1 and not domain.added
    shared = {}
    for column, table in enumerate(factors):
        points = [multiples(curve, [(k % curve.n, curve.base)]) for k in table]
        entries = []
        for P in points:
            assert P is not None
            x, y = P
            dT = curve.d * x * y
            entries.append((y - x, y + x, 2 * dT) if minus_one else (x, y, dT))
        for place, name in enumerate(_PREPARED[:3]):
            shared[f"G{column}{name}"] = tuple(domain.value(entry[place]) for entry in entries)
    return shared


def _constant_entry(block: BasicBlock, column: int) -> Prepared:
    return Prepared(*(block.entry(f"G{column}{name}") for name in _PREPARED[:3]))


def _finish(domain: Domain, after: BasicBlock) -> None:
    P = _point(after)
    give_affine(domain, after, P.X, P.Y, P.Z)


def multiply(curve: Edwards, domain: Domain, bits: int, window: int = 4) -> PointProgram:
    """k P for any point P = (x, y) and k in [0, 2^bits); a pass of the loop uses ``window`` bits, at least 2."""
    recoding = Signed(bits, max(2, window))
    window = recoding.window
    before, first, loop, after = (BasicBlock(name) for name in ("table", "first digit", "pass", "affine"))
    x, y = before.variable("x"), before.variable("y")
    X, Y, Z = blinded(domain, before, x, y)
    _table(curve, domain, before, Extended(X, Y, Z, domain.enter(x) * Y), window)
    _set(first, _from_entry(curve, domain, first))
    first.next_digit()
    E, P = form(curve, domain, loop), _point(loop)
    for _ in range(window):
        P = E.double(P)
    _set(loop, E.add(P, _entry(loop)))
    loop.next_digit()
    _finish(domain, after)
    tables = tuple(("T" + name, 1 << window) for name in _PREPARED)
    field_program = FieldProgram(
        f"{curve.title} multiple, window {window}", domain, ("x", "y", BLIND), ("x", "y"), (before, first), loop, after,
        passes=recoding.count - 1, window=window, groups=RegisterGroups(tables=tables),
    )  # fmt: skip
    return PointProgram("multiply", curve.title, field_program, recoding.digits)


def base(curve: Edwards, domain: Domain, bits: int, teeth: int = 5, columns: int = 2) -> PointProgram:
    """k G for k in [0, 2^bits) by a comb: 1 doubling and ``columns`` additions a pass, columns * 2^teeth entries."""
    comb = Comb(bits, teeth, columns)
    factors = [[comb.worth(digit, column) for digit in range(1 << teeth)] for column in range(columns)]
    before, loop, after = BasicBlock("start"), BasicBlock("pass"), BasicBlock("affine")
    zero = before.constant(0)
    (one,) = blinded(domain, before)
    _set(before, Extended(zero, one + zero, one))
    E, P = form(curve, domain, loop), _point(loop)
    P = E.double(P)
    for column in range(columns):
        P = E.add(P, _constant_entry(loop, column))
        loop.next_digit()
    _set(loop, P)
    _finish(domain, after)
    field_program = FieldProgram(
        f"{curve.title} base multiple, comb {teeth} x {columns}", domain, (BLIND,), ("x", "y"), (before,), loop, after,
        passes=comb.passes, window=teeth, shared=_constants(curve, domain, factors),
    )  # fmt: skip
    return PointProgram("multiply-base", curve.title, field_program, comb.digits)


def two(curve: Edwards, domain: Domain, window: int = 4) -> PointProgram:
    """u1 G + u2 P for u1, u2 below n and any point P = (x, y), both by windows of ``window`` bits, at least 2."""
    recoding = Signed(curve.n.bit_length(), max(2, window))
    window, count = recoding.window, recoding.count
    plain = Unsigned(curve.n.bit_length(), window, least=count)
    before, loop, after = BasicBlock("table"), BasicBlock("pass"), BasicBlock("affine")
    X, Y = domain.enter(before.variable("x")), domain.enter(before.variable("y"))
    _table(curve, domain, before, Extended(X, Y, domain.constant(before, 1), X * Y), window)
    _set(before, _neutral(domain, before))
    E, P = form(curve, domain, loop), _point(loop)
    for _ in range(window):
        P = E.double(P)
    P = E.add(P, _entry(loop))
    loop.next_digit()
    _set(loop, E.add(P, _constant_entry(loop, 0)))
    loop.next_digit()
    _finish(domain, after)
    field_program = FieldProgram(
        f"{curve.title} sum of two multiples, window {window}", domain, ("x", "y"), ("x", "y"), (before,), loop, after,
        passes=count, window=window,
        groups=RegisterGroups(tables=tuple(("T" + name, 1 << window) for name in _PREPARED)),
        shared=_constants(curve, domain, [list(range(1 << window))]),
    )  # fmt: skip
    return PointProgram(
        "multiply-two", curve.title, field_program, lambda u1, u2: together(recoding.digits(u2), plain.digits(u1))
    )
