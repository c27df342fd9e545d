# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Programs for y^2 = x^3 + a x + b without points of order two: multiples of any point, of the base point, of both.

The result is affine, O is (0, 0), which is no point of these groups: b is not 0, or the order is odd. Sums are the
complete ones. Doublings between them are done in Jacobian form where it is certain that none begins with O (recoding
``Odd``, a group of prime order without a blinded scalar), else in homogeneous form, which takes any point. All is done
on an isomorphic curve where that has better constants.

Tables of constants hold affine points, so none may be O: an entry is worth u more than its digits say, and what all
passes add too much is taken from the point that they begin with.
"""

from __future__ import annotations

from modmill.contract import UnsupportedError
from modmill.engines.ecc.endomorphism import endomorphism
from modmill.engines.ecc.formulas import SMALL, Homogeneous, WeierstrassForm
from modmill.engines.ecc.isomorphism import Isomorphism, isomorphism
from modmill.engines.ecc.points import BLIND, PointProgram, blinded, give_affine
from modmill.engines.ecc.recoding import Comb, Odd, Signed, Unsigned, together
from modmill.engines.microcode.expressions import BasicBlock, Element
from modmill.engines.microcode.field_program import Domain, FieldProgram
from modmill.engines.microcode.scheduling import RegisterGroups
from modmill.numbers.curves.affine import Weierstrass
from modmill.numbers.curves.projective import multiples
from modmill.numbers.shown import shortened

_XYZ = ("X", "Y", "Z")


def form(curve: Weierstrass, domain: Domain, block: BasicBlock) -> WeierstrassForm:
    """The curve's formulas in a block, small constants as additions."""
    a: int = curve.a if curve.a < 1 else -3 if curve.a == curve.p - 3 else 1
    b3 = 3 * curve.b % curve.p
    return WeierstrassForm(
        domain.constant(block, curve.a) if a == 1 else a,
        b3 if b3 <= SMALL else domain.constant(block, b3),
        domain.added,
    )


def require_odd_order(curve: Weierstrass) -> None:
    """Raise UnsupportedError for a curve with points of order two (those with y = 0) that is not for arithmetic alone.

    The complete sum P + Q is wrong where P - Q has order two, and only there. A program's points are multiples of the
    base point and of the point that is given: in a group of odd order none of their differences has.
    """
    if curve.arithmetic:
        return
    if curve.b == 0:
        raise UnsupportedError(
            f"{curve.title} has the point (0, 0) (b = 0), which stands for the point at infinity here"
        )
    if curve.h % 2 == 0:
        raise UnsupportedError(
            f"{curve.title} has points of order two (cofactor {shortened(curve.h)}), for which sums are not complete; "
            "--allow-pairing builds arithmetic in the group of the base point, which has none"
        )


def _point(block: BasicBlock) -> Homogeneous:
    return Homogeneous(*(block.variable(name) for name in _XYZ))


def _set(block: BasicBlock, P: Homogeneous) -> None:
    for name, value in zip(_XYZ, (P.X, P.Y, P.Z), strict=True):
        assert value is not None
        block.set(name, value)


def _entry(block: BasicBlock, table: str) -> Homogeneous:
    return Homogeneous(*(block.entry(table + name) for name in _XYZ))


def _table(curve: Weierstrass, domain: Domain, block: BasicBlock, P: Homogeneous, window: int, odd: bool) -> None:
    """Set a table of multiples of P, as ``Odd`` or ``Signed`` say what each is worth."""
    E = form(curve, domain, block)
    half = 1 << window - 1
    of = {1: P}
    if odd:
        twice = E.double(P)
        for k in range(3, 2 * half, 2):
            of[k] = E.add(of[k - 2], twice)
    else:
        for k in range(2, half + 1):
            of[k] = E.double(of[k // 2]) if k % 2 == 0 else E.add(of[k - 1], P)
        zero = block.constant(0)
        of[0] = Homogeneous(zero, domain.constant(block, 1), zero)
    for digit in range(2 * half):
        worth = 2 * digit + 1 - 2 * half if odd else digit - half
        Q = of[abs(worth)]
        assert Q.Z is not None
        for name, value in zip(_XYZ, (Q.X, Q.Y if worth >= 0 else -Q.Y, Q.Z), strict=True):
            block.set(("T" + name, digit), value)


def multiply(curve: Weierstrass, domain: Domain, bits: int, window: int = 4) -> PointProgram:
    """k P for any point P = (x, y) other than O and k in [0, 2^bits), ``window`` bits a pass.

    Raises UnsupportedError for a curve with points of order two.
    """
    require_odd_order(curve)
    most = curve.n.bit_length()  # odd digits make every scalar as long as n
    odd = curve.h == 1 and window > 1 and (1 << max(0, bits - window)) + 1 < curve.n and 4 * bits > 3 * most
    odd = odd and curve.n >> window > 0
    recoding = Odd(bits, window, curve.n) if odd else Signed(bits, max(2, window))
    window = recoding.window
    better = isomorphism(curve)
    before = BasicBlock("table")
    X, Y, Z = blinded(domain, before, before.variable("x"), before.variable("y"))
    if not better.trivial:
        X, Y = (c * domain.constant(before, better.u**k) for k, c in ((2, X), (3, Y)))
    _table(better.image, domain, before, Homogeneous(X, Y, Z), window, odd)
    first = BasicBlock("first digit")
    _set(first, _entry(first, "T"))
    first.next_digit()
    loop, after = BasicBlock("pass"), BasicBlock("affine")
    E, P = form(better.image, domain, loop), _point(loop)
    if odd:
        J = E.first_double(P)
        for _ in range(window - 1):
            J = E.double_jacobian(J)
        P = E.homogeneous(J)
    else:
        for _ in range(window):
            P = E.double(P)
    _set(loop, E.add(P, _entry(loop, "T")))
    loop.next_digit()
    _finish(domain, after, better)
    name = f"{curve.title} multiple, window {window}, {'Jacobian' if odd else 'complete'} doublings"
    tables = tuple(("T" + coordinate, 1 << window) for coordinate in _XYZ)
    field_program = FieldProgram(
        name, domain, ("x", "y", BLIND), ("x", "y"), (before, first), loop, after,
        passes=recoding.count - 1, window=window, groups=RegisterGroups(tables=tables),
    )  # fmt: skip
    return PointProgram("multiply", curve.title, field_program, recoding.digits)


def base(curve: Weierstrass, domain: Domain, bits: int, teeth: int = 5, columns: int = 2) -> PointProgram:
    """k G for k in [0, 2^bits) by a comb: a doubling and ``columns`` sums a pass, columns 2^teeth shared entries.

    Raises UnsupportedError for a curve with points of order two, or whose group is too small for the tables.
    """
    require_odd_order(curve)
    comb = Comb(bits, teeth, columns)
    worth = [[comb.worth(digit, column) for digit in range(1 << teeth)] for column in range(columns)]
    passes = (1 << comb.passes) - 1
    better = isomorphism(curve)
    shared, start = _constants(better.image, domain, worth, columns * passes, 1 << comb.passes)
    before, loop, after = BasicBlock("start"), BasicBlock("pass"), BasicBlock("affine")
    _set(before, Homogeneous(*blinded(domain, before, *(before.constant(c) for c in start))))
    E, P = form(better.image, domain, loop), _point(loop)
    P = E.double(P)
    for column in range(columns):
        P = E.add(P, _constant_entry(loop, column))
        loop.next_digit()
    _set(loop, P)
    _finish(domain, after, better)
    field_program = FieldProgram(
        f"{curve.title} base multiple, comb {teeth} x {columns}", domain, (BLIND,), ("x", "y"), (before,), loop, after,
        passes=comb.passes, window=teeth, shared=shared,
    )  # fmt: skip
    return PointProgram("multiply-base", curve.title, field_program, comb.digits)


def _constants(
    curve: Weierstrass, domain: Domain, worth: list[list[int]], times: int, scale: int
) -> tuple[dict[str, tuple[int, ...]], tuple[int, int]]:
    """Tables of (worth + u) G, and the affine point A with scale A + times u G = O; u is the least without an O."""
    n = curve.n
    for u in range(1, min(n, 1000)):
        start = -times * u * pow(scale, -1, n) % n
        if start and all((w + u) % n for table in worth for w in table):
            break
    else:
        raise UnsupportedError(f"{curve.title} has too few points for tables of {len(worth[0])} entries")
    shared = {}
    for column, table in enumerate(worth):
        points = [multiples(curve, [((w + u) % n, curve.base)]) for w in table]
        for place, name in enumerate("XY"):
            shared[f"G{column}{name}"] = tuple(domain.value(P[place]) for P in points if P is not None)
    A = multiples(curve, [(start, curve.base)])
    assert A is not None
    return shared, A


def _constant_entry(block: BasicBlock, column: int) -> Homogeneous:
    return Homogeneous(block.entry(f"G{column}X"), block.entry(f"G{column}Y"))


def two(curve: Weierstrass, domain: Domain, window: int = 4, joint: bool = False) -> PointProgram:
    """u1 G + u2 P for u1, u2 in [0, n] and any point P = (x, y) other than O, both with windows of ``window`` bits.

    Where the curve has an endomorphism both scalars have two halves, and half the doublings are done. ``joint``: one
    shared table for both halves of u1, of 2^(2 window) entries. Raises UnsupportedError as `base` does.
    """
    require_odd_order(curve)
    better = isomorphism(curve)
    half = endomorphism(better.image)
    window = max(2, window)  # a signed digit has two bits at least
    recoding = Signed(half.bits, window, both=True) if half else Signed(curve.n.bit_length(), window)
    count = recoding.count
    if window * count * (2 if half else 1) < curve.n.bit_length():
        raise UnsupportedError(f"{count} digits of {window} bits do not hold the scalars of {curve.title}")
    plain = Unsigned(window * count * (2 if half else 1), window)
    high = 1 << window * count
    entries, once = range(1 << window), sum(1 << window * i for i in range(count))
    worth = [list(entries), [d * high for d in entries]] if half else [list(entries)]
    if half and joint:
        worth = [[low + h * high for h in entries for low in entries]]
    shared, start = _constants(better.image, domain, worth, len(worth) * once, high)

    before, loop, after = BasicBlock("table"), BasicBlock("pass"), BasicBlock("affine")
    x, y = (domain.enter(before.variable(c), better.u**k) for k, c in ((2, "x"), (3, "y")))
    P = Homogeneous(x, y, domain.constant(before, 1))
    _table(better.image, domain, before, P, window, odd=False)
    tables = [("T" + name, 1 << window) for name in _XYZ]
    if half:
        for digit in entries:
            moved = Element(before, before.outputs["TX", digit]) * domain.constant(before, half.beta)
            before.set(("TB", digit), moved)
        tables.append(("TB", 1 << window))
    _set(before, Homogeneous(*(domain.constant(before, c) for c in (*start, 1))))
    E, P = form(better.image, domain, loop), _point(loop)
    for _ in range(window):
        P = E.double(P)
    P = E.add(P, _entry(loop, "T"))
    loop.next_digit()
    if half:
        P = E.add(P, Homogeneous(loop.entry("TB"), loop.entry("TY"), loop.entry("TZ")))
        loop.next_digit()
    for column in range(len(worth)):
        P = E.add(P, _constant_entry(loop, column))
        loop.next_digit()
    _set(loop, P)
    _finish(domain, after, better)

    def digits(u1: int, u2: int) -> tuple[int, ...]:
        first = plain.digits(u1)
        if half is None:
            return together(recoding.digits(u2), first)
        parts = [recoding.digits(k) for k in half.split(u2 % curve.n)]
        upper, lower = first[:count], first[count:]
        if joint:
            return together(*parts, tuple(low + (h << window) for low, h in zip(lower, upper, strict=True)))
        return together(*parts, lower, upper)

    field_program = FieldProgram(
        f"{curve.title} sum of two multiples, window {window}", domain, ("x", "y"), ("x", "y"), (before,), loop, after,
        passes=count, window=window * (2 if half and joint else 1),
        groups=RegisterGroups(tables=tuple(tables)), shared=shared,
    )  # fmt: skip
    return PointProgram("multiply-two", curve.title, field_program, digits)


def _finish(domain: Domain, after: BasicBlock, better: Isomorphism) -> None:
    P = _point(after)
    assert P.Z is not None
    give_affine(domain, after, P.X, P.Y, P.Z, better.u)
