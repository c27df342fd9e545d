# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""u1 G + u2 P in variable time, for public scalars and points only: a program for each pair of scalars.

    w-NAF of k    k = sum d_i 2^i, d_i = 0 or odd with |d_i| < 2^(w - 1), at most one of any w successive digits not 0
    u1 G + u2 P   both NAFs from the highest digit on: a doubling for each bit, an addition for each digit other than 0

Doublings between additions are Jacobian. They take fewer products than complete ones, but they turn O into (0 : 0 : 0),
which stays until the end and gives the result (0, 0). In this case, and if the sum is O, the complete program of
`point_engine` computes the result. The number of instructions depends on the scalars, the use of the complete program
on the points. The program memory of a coprocessor is fixed, so these programs run only on a multiplier's bit-exact
algorithm.

Sources: w-NAF, H. Cohen, A. Miyaji, T. Ono: Efficient elliptic curve exponentiation using mixed coordinates, ASIACRYPT
'98; both multiples in one run, B. Moeller: Algorithms for multi-exponentiation, SAC 2001, Section 3.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from modmill.contract import UnsupportedError
from modmill.engines.ecc.blinding import Run
from modmill.engines.ecc.formulas import AffinePoint, Homogeneous
from modmill.engines.ecc.isomorphism import isomorphism
from modmill.engines.ecc.point_engine import MicrocodePointEngine
from modmill.engines.ecc.points import affine_block, point, set_point
from modmill.engines.ecc.weierstrass import form, require_odd_order
from modmill.engines.microcode.assembly import assemble
from modmill.engines.microcode.expressions import BasicBlock
from modmill.engines.microcode.field_program import Domain, FieldProgram
from modmill.numbers.curves.affine import Weierstrass
from modmill.numbers.curves.projective import multiples


def wnaf(k: int, width: int) -> tuple[int, ...]:
    """Digits of the w-NAF of k >= 0 with w = ``width``, the lowest first; the highest is not 0. Raises UnsupportedError
    for a negative number and for a width below 2."""
    if k < 0 or width < 2:
        raise UnsupportedError(
            f"a non-adjacent form needs a number of at least 0 and a width of at least 2, got {k} and {width}"
        )
    digits, full = [], 1 << width
    while k:
        digit = 0
        if k % 2:
            digit = k % full
            digit -= full if 2 * digit >= full else 0
        digits.append(digit)
        k = (k - digit) >> 1
    return tuple(digits)


@dataclass(frozen=True)
class Widths:
    """Widths of the two NAFs: ``given`` for the input point, whose odd multiples are computed, ``base`` for G."""

    given: int = 5
    base: int = 7


def variable_time_two(
    curve: Weierstrass, domain: Domain, u1: int, u2: int, widths: Widths = Widths()
) -> FieldProgram | None:
    """The program for u1 G + u2 P with these two scalars in [0, n]; None if both are 0 modulo n. Its result is (0, 0)
    if any partial sum is O. Raises UnsupportedError for a curve with points of order two."""
    require_odd_order(curve)
    both = wnaf(u1 % curve.n, widths.base), wnaf(u2 % curve.n, widths.given)
    length = max(map(len, both))
    if not length:
        return None
    better = isomorphism(curve)
    before = BasicBlock("odd multiples")
    x, y = (domain.enter(before.variable(c), better.u**k) for k, c in ((2, "x"), (3, "y")))
    E, P = form(better.image, domain, before), Homogeneous(x, y, domain.constant(before, 1))
    most = max(map(abs, both[1]), default=0)
    twice = E.double(P) if most > 1 else P
    for k in range(1, most + 1, 2):
        P = P if k == 1 else E.add(P, twice)
        set_point(before, P, f"P{k}")
    blocks = [before]
    doublings, started = 0, False
    for at in reversed(range(length)):
        doublings += started
        for number, digits in enumerate(both):
            digit = digits[at] if at < len(digits) else 0
            if digit:
                blocks.append(_step(better.image, domain, doublings if started else -1, digit, given=number == 1))
                doublings, started = 0, True
    if doublings:
        blocks.append(_step(better.image, domain, doublings))
    name = f"{curve.title} sum of two multiples in variable time, widths {widths.base} and {widths.given}"
    return FieldProgram(name, domain, ("x", "y"), ("x", "y"), tuple(blocks), None, affine_block(domain, better.u))


def _step(curve: Weierstrass, domain: Domain, doublings: int, digit: int = 0, *, given: bool = False) -> BasicBlock:
    """``doublings``, then the addition of ``digit`` times the input point (``given``) or G; -1 doublings: start with
    that multiple."""
    block = BasicBlock(f"{max(0, doublings)} doublings, {digit} {'P' if given else 'G'}")
    if doublings < 0:
        zero = block.constant(0)  # a variable needs a computed value, not one that is only read
        Q = _multiple(curve, domain, block, digit, given)
        X, Y = Q.X + zero, Q.Y + zero
        Z = Q.Z if isinstance(Q, Homogeneous) else domain.constant(block, 1)
        set_point(block, Homogeneous(X, Y, Z + zero))
        return block
    E, P = form(curve, domain, block), point(block)
    if doublings:
        J = E.first_double(P)
        for _ in range(doublings - 1):
            J = E.double_jacobian(J)
        P = E.homogeneous(J)
    set_point(block, E.add(P, _multiple(curve, domain, block, digit, given)) if digit else P)
    return block


def _multiple(curve: Weierstrass, domain: Domain, block: BasicBlock, digit: int, given: bool) -> AffinePoint:
    """The odd multiple ``digit`` of the input point or, affine, of G."""
    if given:
        P = point(block, f"P{abs(digit)}")
        return P if digit > 0 else Homogeneous(P.X, -P.Y, P.Z)
    G = multiples(curve, [(digit % curve.n, curve.base)])
    assert G is not None
    return AffinePoint(*(domain.constant(block, c) for c in G))


@dataclass(frozen=True)
class VariableTimeEngine(MicrocodePointEngine):
    """A `MicrocodePointEngine` whose `multiply_two` takes variable time; its scalars and points are public. Other
    operations are inherited unchanged. Raises UnsupportedError for a curve that is not in Weierstrass form."""

    widths: Widths = Widths()

    def results(self, operation: str, bits: int, runs: Sequence[Run]) -> list[tuple[int, ...]]:
        if operation != "multiply-two":
            return super().results(operation, bits, runs)
        return [self._two((u1, u2), given) for (u1, u2), given in runs]

    def _two(self, scalars: tuple[int, int], given: Mapping[str, int]) -> tuple[int, ...]:
        if not isinstance(self.curve, Weierstrass):
            raise UnsupportedError(
                f"{self.curve.title} is not a Weierstrass curve: variable-time u1 G + u2 P needs one"
            )
        field_program = variable_time_two(self.curve, self.domain, *scalars, self.widths)
        if field_program is None:
            return 0, 0
        found = self._run(assemble(field_program, self.contract, self.unit), given)
        return found if any(found) else super().results("multiply-two", 0, [(scalars, given)])[0]
