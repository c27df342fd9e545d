# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The Montgomery ladder on u-coordinates: u(k P) for every u of the curve or its twist; 0 if k P is neutral.

The two points are in pairs of slots. A digit says whether a bit differs from the one before; it selects by address
which point is doubled. Every bit takes 9 products and one by a constant: on units with sums 10 successive instructions.
"""

from __future__ import annotations

from modmill.engines.ecc.formulas import early_ladder_step, ladder_step
from modmill.engines.ecc.points import BLIND, PointProgram, blinded, inverse
from modmill.engines.ecc.recoding import Gray
from modmill.engines.ecc.result_checks import CHECK, coherence, set_check, unset_check
from modmill.engines.microcode.expressions import BasicBlock
from modmill.engines.microcode.field_program import Domain, FieldProgram
from modmill.engines.microcode.scheduling import RegisterGroups
from modmill.numbers.curves.affine import Montgomery

_STATE = ("X2", "Z2", "X3", "Z3")
_PAIRS = (("X2", "X3"), ("Z2", "Z3"))


def ladder(curve: Montgomery, domain: Domain, bits: int, *, checked: bool = False) -> PointProgram:
    """The program of the ladder for k in [0, 2^bits): inputs u and blind in [0, p), result x = u(k P). ``checked``:
    with a check that both points of the ladder belong together."""
    recoding = Gray(bits)
    before, loop, after = BasicBlock("start"), BasicBlock("bit"), BasicBlock("affine")
    u, zero = before.variable("u"), before.constant(0)
    X3, one = blinded(domain, before, u)
    for name, value in (("X2", one + zero), ("Z2", zero), ("X3", X3), ("Z3", one), ("u1", domain.enter(u))):
        before.set(name, value)
    if checked:
        unset_check(before)
    X2, Z2, X3, Z3 = (loop.pair(name) for name in _STATE)
    one_step, factor = (ladder_step, curve.a24) if domain.added else (early_ladder_step, (curve.A - 2) % curve.p)
    step = one_step(X2, Z2, X3, Z3, loop.variable("u1"), domain.constant(loop, factor))
    for name, value in zip(_STATE, step, strict=True):
        loop.set(name, value)
    loop.next_digit()
    X, Z, X3, Z3 = (after.pair(name) for name in _STATE)
    after.next_digit()
    x = X * domain.leave(inverse(Z, domain.p))
    after.set("x", x)
    if checked:
        u1 = after.variable("u1")
        set_check(domain, after, coherence(curve, domain, after, u1, domain.enter(x), Z, X3, Z3))
    field_program = FieldProgram(
        f"{curve.title} ladder", domain, ("u", BLIND), ("x",), (before,), loop, after,
        passes=bits, window=1, groups=RegisterGroups(pairs=_PAIRS), checks=(CHECK,) if checked else (),
    )  # fmt: skip
    return PointProgram("ladder", curve.title, field_program, recoding)
