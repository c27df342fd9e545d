# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Programs for y^2 = x^3 + a x + b without points of order two: k P, k G, and u1 G + u2 P.

The result is affine. O is (0, 0), which is not a point of these groups: b is not 0, or the order is odd. Additions are
complete. Doublings are in Jacobian form if none of them can start from O (recoding ``Odd``, a group of prime order,
scalars without blinding), else in homogeneous form, which holds for all points. The program runs on an isomorphic curve
if that has cheaper constants.

Tables of constants hold affine points, so that no entry may be O. Each entry is therefore (v + u) G instead of v G, v
the value of its digits, and the start of the loop cancels the sum of all u G.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from modmill.contract import UnsupportedError
from modmill.engines.ecc.endomorphism import Endomorphism, endomorphism
from modmill.engines.ecc.formulas import SMALL, AffinePoint, Homogeneous, WeierstrassForm
from modmill.engines.ecc.isomorphism import isomorphism
from modmill.engines.ecc.points import BLIND, PointProgram, affine_block, blinded, double_and_add, point, set_point
from modmill.engines.ecc.recoding import Comb, Odd, Signed, Unsigned, together
from modmill.engines.microcode.expressions import BasicBlock, Element
from modmill.engines.microcode.field_program import Domain, FieldProgram
from modmill.engines.microcode.scheduling import RegisterGroups
from modmill.engines.ranges import require_range
from modmill.numbers.curves.affine import Weierstrass
from modmill.numbers.curves.projective import multiples
from modmill.numbers.shown import shortened

_TABLE = ("TX", "TY", "TZ")


def form(curve: Weierstrass, domain: Domain, block: BasicBlock) -> WeierstrassForm:
    """The curve's formulas in a block; products by small constants become additions."""
    a: int = curve.a if curve.a < 1 else -3 if curve.a == curve.p - 3 else 1
    b3 = 3 * curve.b % curve.p
    return WeierstrassForm(
        domain.constant(block, curve.a) if a == 1 else a,
        b3 if b3 <= SMALL else domain.constant(block, b3),
        domain.added,
    )


def require_odd_order(curve: Weierstrass) -> None:
    """Raise UnsupportedError for a curve with points of order two (y = 0), unless it is for arithmetic only.

    The complete sum P + Q is wrong if and only if P - Q has order two. All points of a program are multiples of the
    base point and of the input point: in a group of odd order no difference of two of them has order two.
    """
    if curve.arithmetic:
        return
    if curve.b == 0:
        raise UnsupportedError(
            f"{curve.title} has the point (0, 0) (b = 0), which is reserved for the point at infinity: b must not be 0"
        )
    if curve.h % 2 == 0:
        raise UnsupportedError(
            f"{curve.title} has points of order two (cofactor {shortened(curve.h)}), for which additions are not "
            "complete: the cofactor must be odd; --allow-pairing builds arithmetic in the group of the base point only"
        )


def _second(*coordinates: Element) -> AffinePoint:
    return Homogeneous(*coordinates) if len(coordinates) == 3 else AffinePoint(*coordinates)


def _table(curve: Weierstrass, domain: Domain, block: BasicBlock, P: Homogeneous, window: int, odd: bool) -> None:
    """Set a table of multiples of P: the values of the digits of ``Odd`` (``odd``) or ``Signed``."""
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
        factor = 2 * digit + 1 - 2 * half if odd else digit - half
        Q = of[abs(factor)]
        for table, value in zip(_TABLE, (Q.X, Q.Y if factor >= 0 else -Q.Y, Q.Z), strict=True):
            block.set((table, digit), value)


@dataclass(frozen=True)
class SplitScalar:
    """Recoding of k in [0, 2^bits): signed digits of the two parts of k by an endomorphism, one of each in turn."""

    bits: int
    window: int
    split: Endomorphism

    @cached_property
    def signed(self) -> Signed:
        """Recoding of each part."""
        return Signed(self.split.bits, self.window, both=True)

    def digits(self, k: int) -> tuple[int, ...]:
        """Digits in order of use. Raises UnsupportedError for a scalar out of range."""
        require_range([k], 1 << self.bits, f"a scalar of this program must be in [0, 2^{self.bits})")
        return together(*(self.signed.digits(part) for part in self.split.split(k)))


def _halved(curve: Weierstrass, bits: int) -> Endomorphism:
    """The endomorphism for `multiply`. Raises UnsupportedError."""
    found = endomorphism(curve)
    if found is None:
        raise UnsupportedError(
            f"{curve.title} has no endomorphism (x, y) -> (beta x, y): a must be 0, and p and n of the form 3 k + 1, "
            "as secp256k1 has"
        )
    if curve.h != 1 and not curve.arithmetic:
        raise UnsupportedError(
            f"{curve.title} has a cofactor of {shortened(curve.h)}, and the endomorphism multiplies by lambda only in "
            "the group of the base point: build without --endomorphism, or for this group only with --allow-pairing"
        )
    if bits > curve.n.bit_length():
        raise UnsupportedError(
            f"with an endomorphism a scalar is taken modulo n, of {curve.n.bit_length()} bits, so {bits} bits would "
            "blind nothing: build without --blind, or without --endomorphism"
        )
    return found


def multiply(
    curve: Weierstrass, domain: Domain, bits: int, window: int = 4, *, halved: bool = False
) -> PointProgram:  # fmt: skip
    """k P for any point P = (x, y) other than O and k in [0, 2^bits); a pass of the loop uses ``window`` bits.

    ``halved``: k is split by the curve's endomorphism, which halves the number of doublings; P must be a multiple of G.
    Raises UnsupportedError for a curve with points of order two; with ``halved`` also for a curve without endomorphism,
    and for more bits than n has.
    """
    require_odd_order(curve)
    most = curve.n.bit_length()  # with odd digits every scalar has the length of n
    odd = curve.h == 1 and window > 1 and (1 << max(0, bits - window)) + 1 < curve.n and 4 * bits > 3 * most
    odd = odd and curve.n >> window > 0 and not halved
    better = isomorphism(curve)
    recoding: Odd | Signed | SplitScalar
    if halved:
        recoding = SplitScalar(bits, max(2, window), _halved(better.image, bits))
    else:
        recoding = Odd(bits, window, curve.n) if odd else Signed(bits, max(2, window))
    window = recoding.window
    before = BasicBlock("table")
    X, Y, Z = blinded(domain, before, before.variable("x"), before.variable("y"))
    if better.u != 1:
        X, Y = (c * domain.constant(before, better.u**k) for k, c in ((2, X), (3, Y)))
    _table(better.image, domain, before, Homogeneous(X, Y, Z), window, odd)
    tables = [_TABLE]
    first = BasicBlock("first digit")
    set_point(first, Homogeneous(*map(first.entry, _TABLE)))
    first.next_digit()
    blocks = [before, first]
    if isinstance(recoding, SplitScalar):
        tables.append(_moved(before, domain, recoding.split, window))
        blocks.append(BasicBlock("first digit of the other half"))
        double_and_add(blocks[-1], form(better.image, domain, blocks[-1]), point(blocks[-1]), 0, tables[1:], _second)
    loop = BasicBlock("pass")
    E, P = form(better.image, domain, loop), point(loop)
    if odd:
        J = E.first_double(P)
        for _ in range(window - 1):
            J = E.double_jacobian(J)
        P = E.homogeneous(J)
    double_and_add(loop, E, P, 0 if odd else window, tables, _second)
    count = (recoding.signed if isinstance(recoding, SplitScalar) else recoding).count
    how = ", endomorphism" if halved else ""
    name = f"{curve.title} multiple, window {window}, {'Jacobian' if odd else 'complete'} doublings{how}"
    field_program = FieldProgram(
        name, domain, ("x", "y", BLIND), ("x", "y"), tuple(blocks), loop, affine_block(domain, better.u),
        passes=count - 1, window=window,
        groups=RegisterGroups(tables=tuple((table, 1 << window) for table in dict.fromkeys(chain(*tables)))),
    )  # fmt: skip
    return PointProgram("multiply", curve.title, field_program, recoding)


def _moved(block: BasicBlock, domain: Domain, split: Endomorphism, window: int) -> tuple[str, str, str]:
    """Set the table of lambda times the entries of the table of multiples of P; the names of its coordinates."""
    for digit in range(1 << window):
        block.set(("TB", digit), Element(block, block.outputs["TX", digit]) * domain.constant(block, split.beta))
    return "TB", "TY", "TZ"


def base(curve: Weierstrass, domain: Domain, bits: int, teeth: int = 5, columns: int = 2) -> PointProgram:
    """k G for k in [0, 2^bits) by a comb: 1 doubling and ``columns`` additions a pass, columns * 2^teeth entries.
    Raises UnsupportedError for a curve with points of order two, or whose group is too small for the tables."""
    require_odd_order(curve)
    comb = Comb(bits, teeth, columns)
    passes, better = (1 << comb.passes) - 1, isomorphism(curve)
    shared, start = _constants(better.image, domain, comb.factors, columns * passes, 1 << comb.passes)
    before, loop = BasicBlock("start"), BasicBlock("pass")
    set_point(before, Homogeneous(*blinded(domain, before, *(before.constant(c) for c in start))))
    E, P = form(better.image, domain, loop), point(loop)
    double_and_add(loop, E, P, 1, _constant_tables(columns), _second)
    field_program = FieldProgram(
        f"{curve.title} base multiple, comb {teeth} x {columns}", domain, (BLIND,), ("x", "y"), (before,), loop,
        affine_block(domain, better.u), passes=comb.passes, window=teeth, shared=shared,
    )  # fmt: skip
    return PointProgram("multiply-base", curve.title, field_program, comb)


def _constants(
    curve: Weierstrass, domain: Domain, factors: list[list[int]], times: int, scale: int
) -> tuple[dict[str, tuple[int, ...]], tuple[int, int]]:
    """Tables of (factor + u) G, and the affine point A with scale A + times u G = O. u is the smallest number for which
    neither A nor an entry is O. Raises UnsupportedError if there is none."""
    n = curve.n
    for u in range(1, min(n, 1000)):
        start = -times * u * pow(scale, -1, n) % n
        if start and all((k + u) % n for table in factors for k in table):
            break
    else:
        raise UnsupportedError(
            f"{curve.title} has too few points for tables of {len(factors[0])} entries; take a smaller window or comb"
        )
    shared = {}
    for names, table in zip(_constant_tables(len(factors)), factors, strict=True):
        points = [multiples(curve, [((k + u) % n, curve.base)]) for k in table]
        for place, name in enumerate(names):
            shared[name] = tuple(domain.value(P[place]) for P in points if P is not None)
    A = multiples(curve, [(start, curve.base)])
    assert A is not None
    return shared, A


def _constant_tables(columns: int) -> list[tuple[str, str]]:
    return [(f"G{column}X", f"G{column}Y") for column in range(columns)]


@dataclass(frozen=True)
class TwoScalars:
    """Recoding of (u1, u2): equal numbers of signed digits of u2 and plain digits of u1. With an endomorphism
    (``split``) u2 is recoded as its two parts, and u1 as its upper and lower half. ``joint``: one table for both halves
    of u1."""

    n: int
    window: int
    split: Endomorphism | None
    joint: bool

    @cached_property
    def signed(self) -> Signed:
        """Recoding of u2, or of its parts; its number of digits is that of the passes of the loop."""
        bits = self.split.bits if self.split else self.n.bit_length()
        return Signed(bits, self.window, both=self.split is not None)

    @property
    def bits(self) -> int:
        """Maximum length of u1."""
        return self.window * self.signed.count * (2 if self.split else 1)

    def factors(self) -> list[list[int]]:
        """Multiples of G, without the offset u, in each shared table."""
        entries, high = range(1 << self.window), 1 << self.window * self.signed.count
        if self.split is None:
            return [list(entries)]
        if self.joint:
            return [[low + upper * high for upper in entries for low in entries]]
        return [list(entries), [d * high for d in entries]]

    def digits(self, u1: int, u2: int) -> tuple[int, ...]:
        """Digits in order of use. Raises UnsupportedError for a scalar out of range."""
        plain = Unsigned(self.bits, self.window).digits(u1)
        if self.split is None:
            return together(self.signed.digits(u2), plain)
        parts = [self.signed.digits(k) for k in self.split.split(u2 % self.n)]
        upper, lower = plain[: len(plain) // 2], plain[len(plain) // 2 :]
        if self.joint:
            return together(*parts, tuple(low + (h << self.window) for low, h in zip(lower, upper, strict=True)))
        return together(*parts, lower, upper)


def two(curve: Weierstrass, domain: Domain, window: int = 4, joint: bool = False) -> PointProgram:
    """u1 G + u2 P for u1, u2 in [0, n] and any point P = (x, y) other than O, both by windows of ``window`` bits.

    On a curve with an endomorphism both scalars are split into halves, which halves the number of doublings. ``joint``:
    one shared table of 2^(2 window) entries for both halves of u1. Raises UnsupportedError as `base` does.
    """
    require_odd_order(curve)
    better = isomorphism(curve)
    half = endomorphism(better.image) if curve.h == 1 else None
    window = max(2, window)  # a signed digit has at least two bits
    scalars = TwoScalars(curve.n, window, half, joint)
    count, factors = scalars.signed.count, scalars.factors()
    if scalars.bits < curve.n.bit_length():
        raise UnsupportedError(
            f"{count} digits of {window} bits cannot hold scalars of {curve.title}, of {curve.n.bit_length()} bits: "
            "take another window"
        )
    offsets = len(factors) * sum(1 << window * i for i in range(count))
    shared, start = _constants(better.image, domain, factors, offsets, 1 << window * count)
    before, loop = BasicBlock("table"), BasicBlock("pass")
    x, y = (domain.enter(before.variable(c), better.u**k) for k, c in ((2, "x"), (3, "y")))
    P = Homogeneous(x, y, domain.constant(before, 1))
    _table(better.image, domain, before, P, window, odd=False)
    tables = [_TABLE, *_constant_tables(len(factors))]
    if half:
        tables.insert(1, _moved(before, domain, half, window))
    set_point(before, Homogeneous(*(domain.constant(before, c) for c in (*start, 1))))
    E, P = form(better.image, domain, loop), point(loop)
    double_and_add(loop, E, P, window, tables, _second)
    names = (*_TABLE, "TB") if half else _TABLE
    field_program = FieldProgram(
        f"{curve.title} sum of two multiples, window {window}", domain, ("x", "y"), ("x", "y"), (before,), loop,
        affine_block(domain, better.u), passes=count, window=window * (2 if half and joint else 1),
        groups=RegisterGroups(tables=tuple((table, 1 << window) for table in names)), shared=shared,
    )  # fmt: skip
    return PointProgram("multiply-two", curve.title, field_program, scalars)
