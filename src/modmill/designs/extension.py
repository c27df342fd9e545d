# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Base extensions as cores of their own: residues over base A in, residues of the same number over base B out.

Source:  S. Kawamura, M. Koike, F. Sano, A. Shimbo: Cox-Rower Architecture for Fast Parallel Montgomery Multiplication.
         EUROCRYPT, 2000, Section 3 (KBE).
         L. Djath, K. Bigou, A. Tisserand: Hierarchical Approach in RNS Base Extension for Asymmetric Cryptography.
         ARITH, 2019, Algorithms 1 (KBE) and 2 (HBE), Table III; rows of c = 3 and 4 are its future work.
Formula: xi_i = x T_i mod a_i,  T_i = A_i^-1,  A_i = A / a_i
         KBE  x_j = sum_i xi_i |A_i| - h A mod b_j
         HBE  X_r = xi_2r a_(2r+1) + xi_(2r+1) a_2r,  x_j = sum_r |X_r| |A / (a_2r a_(2r+1))| - h A mod b_j
         h    = floor((sum trunc(X_r) + d) / 2^t)
Range:   exact: the same x for x < (1 - d / 2^t) A, d = floor(2^t E) (numbers.rns.cox);
         not exact: x + h A for every x < A, h up to the sum of the largest X_r / A_r.

Lines of Algorithms 1 and 2, in `run_pass`: xi (lines 1-3), X (HBE: 4-7), h (KBE: 6-8, HBE: 9-11), "X mod" (HBE:
14), x and sum (KBE: 11, HBE: 15), "x mod" (the reduction in the same line).

Deviations from the papers:
- By default two rowers (rtl.extension) serve all channels, one pair after another. With ``rowers`` there is any number
  (rtl.passes), 0 for one a channel, as in the papers; the base is the paper's r x c matrix in rows of ``columns``.
- The offset of HBE's cox follows from the exact error of its own truncation; ARITH 2019 takes that of KBE (IV-B).
- With exact=false there is no cox, and B has two more moduli, so that its range includes x + h A.
- The paper takes the smallest even n with n w > log2 p. Here the range of A must include every x < p, which takes two
  moduli more if n w exceeds log2 p only slightly. A value of ``n`` set by the user is not changed.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from modmill.contract import Residues, Timing, UnsupportedError
from modmill.design import Cost, Design, DesignInstance, Setting, Source
from modmill.designs.cox_rower import hbe, kbe
from modmill.interface import Multiplier
from modmill.numbers.folding import reduce
from modmill.numbers.rns.base_pairs import approximate
from modmill.numbers.rns.choice_of_moduli import choose_moduli
from modmill.numbers.rns.cox import Cox
from modmill.numbers.rns.cox_edges import cox_edges
from modmill.numbers.rns.extension import HBE, KBE
from modmill.numbers.rns.residues import Base
from modmill.rtl.extension import BaseExtension, Tables
from modmill.rtl.extension_shape import LEAST, ROWERS, Kind
from modmill.rtl.extension_shape import Shape as TwoRowers
from modmill.rtl.passes import Passes
from modmill.rtl.passes_shape import Pass, Shape, digit_numbers, power
from modmill.rtl.product import BLOCKS
from modmill.schedule import Operations, Schedule

MOST = 32
"""Most moduli in a base; with more, the table of -h A does not fit in a block RAM."""


@dataclass(frozen=True)
class Params:
    """Bases ``a`` and ``b``, the cox, and the structure of the machine. If ``exact`` is false, the cox is not built."""

    a: Base
    b: Base
    cox: Cox
    exact: bool
    shape: TwoRowers | Shape

    @property
    def offset(self) -> int:
        """d, the offset of the cox in units of 2^-t."""
        return self.shape.offset

    @cached_property
    def limit(self) -> int:
        """Exclusive bound of the operand x."""
        return min(self.cox.limit(self.offset), self.b.M) if self.exact else self.a.M


@dataclass(frozen=True)
class Wanted:
    """What a machine must have: settings ``w``, ``columns``, ``n``, ``exact``, ``dsp``, ``reduce`` and ``rowers``."""

    w: int
    columns: int
    n: int
    exact: bool
    dsp: str
    rowers: int
    reduce: str

    @property
    def step(self) -> int:
        """n is a multiple of this number: of the rowers, or of the columns; even, as in the paper, for one column."""
        return self.rowers or max(2, self.columns)

    @property
    def least(self) -> int:
        """Fewest moduli of a base."""
        return self.step * -(-LEAST // self.step)

    def shape(self, a: Base, b: Base, t: int, d: int) -> TwoRowers | Shape:
        """The structure of the machine; t = 0 without a cox. Raises its ValueError."""
        block = BLOCKS[self.dsp]
        reducer = block if self.reduce == "dsp" else None
        if self.rowers == ROWERS:
            return TwoRowers(self.w, self.columns, a.u, b.u, t, d, block, reducer)
        one = Pass(a.u, b.u, d if t else None)
        return Shape(self.w, self.columns, self.rowers or a.n, (one,), t, block, reducer)


def choose(p: int, wanted: Wanted) -> Params:
    """Parameters for operands x < p: ``n`` moduli in base A, 0 for the fewest, and the least t exact for x < A / 2.

    Raises UnsupportedError if ``n`` does not fill the rows and the rowers, and ValueError, with the numbers, if no
    bases suffice.
    """
    w, n, step = wanted.w, wanted.n, wanted.step
    if n % step:
        raise UnsupportedError(f"n must be {'even' if step == 2 else f'a multiple of {step}'}, got {n}")
    reason = ValueError(f"a modulus of {p.bit_length()} bits needs more than {MOST} moduli of {w} bits")
    least = max(wanted.least, -(-p.bit_length() // w) - 1)
    for count in (n,) if n else range(-(-least // step) * step, MOST + 1, step):
        more = 0 if wanted.exact else max(2, count // (wanted.rowers or count))
        try:
            moduli = choose_moduli(w, 2 * count + more, even=False).moduli
            found = _over(moduli, count, wanted)
        except ValueError as error:
            reason = error
            break
        if n or found.limit >= p:
            return found
        reason = ValueError(f"{count} moduli of {w} bits cover x below {approximate(found.limit)} only")
    raise reason


def _over(moduli: tuple[int, ...], n: int, wanted: Wanted) -> Params:
    w, columns = wanted.w, wanted.columns
    a, b = Base(w, moduli[: 2 * n : 2]), Base(w, (*moduli[1 : 2 * n : 2], *moduli[2 * n :]))
    if not wanted.exact:
        bound = Cox(a, 1, columns).most
        if bound * a.M >= b.M:
            raise ValueError(f"results reach {approximate(bound)} A, B is only {approximate(Fraction(b.M, a.M))} A")
        return Params(a, b, Cox(a, 1, columns), False, wanted.shape(a, b, 0, 0))
    for t in range(1, columns * w + 1):
        cox = Cox(a, t, columns)
        d = cox.offset
        if 2 * d <= 1 << t:
            return Params(a, b, cox, True, wanted.shape(a, b, t, d))
    raise ValueError(f"no cox is exact for x < A / 2 over {n} moduli of {w} bits: E = {approximate(cox.error)}")


def tables(q: Params) -> Tables:
    """The constants of the machine."""
    sums = [q.b.residues(q.a.M // row) for row in q.cox.products]
    return Tables(xi=q.a.inverses, partner=q.cox.cofactors, sums=sums, minus=q.b.residues(-q.a.M))


def in_groups(values: Sequence[int], size: int) -> list[list[int]]:
    """``values`` in lists of ``size``: what all rowers have at one time."""
    return [list(values[k : k + size]) for k in range(0, len(values), size)]


Intermediates = Generator[tuple[str, Any], None, list[int]]


def run_pass(
    cox: Cox, b: Base, k: Tables, x: Sequence[int], start: Sequence[int], *, lanes: int, rowers: int,
    offset: int | None, of: type[Operations] = Kind,
) -> Intermediates:  # fmt: skip
    """One extension from the words ``x`` over the base of ``cox`` to ``b``, with the intermediates of the machine;
    returns the words. ``start``: words over b that enter the sums (a reduction), or none. ``lanes``, ``rowers``: those
    that serve the first base, and the second. ``offset``: d, None without a cox. ``of``: the kinds of operations."""
    a, w, c = cox.base, cox.base.w, cox.columns

    def named(kind: str, *numbers: int) -> str:
        return of[kind](*numbers).name

    products = [v * t for v, t in zip(x, k.xi, strict=True)]
    xi = [reduce(v, 1 << 2 * w, w, u) for v, u in zip(products, a.u, strict=True)]
    for slot, (made, residues) in enumerate(zip(in_groups(products, lanes), in_groups(xi, lanes), strict=True), 1):
        yield named("XI", slot), made
        yield named("XI_RESIDUE", slot), residues
    hats = cox.hats(xi)
    if c > 1:
        for numbers in digit_numbers(c):
            low = (c - 1 - (numbers[0] if numbers else 1)) * w
            digits = [v * (f >> low & (1 << w) - 1) for v, f in zip(xi, k.partner, strict=True)]
            for slot, made in enumerate(in_groups(digits, lanes), 1):
                yield named("PARTNERS", slot, *numbers), made
        for slot, made in enumerate(in_groups(hats, lanes // c), 1):
            yield named("HAT", slot), made
    h = 0
    if offset is not None:
        h = cox.h(hats, offset)
        yield named("H"), h
    result: list[int] = []
    for j, channels in enumerate(in_groups(range(b.n), rowers), 1):
        total = [0] * rowers
        if start:
            total = [start[i] * k.start[i] for i in channels]
            yield named("START", j), total
        for r, v in enumerate(hats):
            terms = [v] * rowers
            if c > 1:
                terms = [reduced_hat(v, c, w, b.u[i]) for i in channels]
                yield named("HAT_RESIDUE", r + 1, j), terms
            products = [term * k.sums[r][i] for term, i in zip(terms, channels, strict=True)]
            yield named("TERM", j, r + 1), products
            total = [a + b for a, b in zip(total, products, strict=True)]
        yield named("SUM", j), total
        for i, v in zip(channels, total, strict=True):
            whole = v + h * k.minus[i] % b.moduli[i]
            result.append(reduce(whole, 1 << 3 * w, w, b.u[i]))
        yield named("RESIDUE", j), result[-rowers:]
    return result


def reduced_hat(hat: int, columns: int, w: int, u: int) -> int:
    """The lazy residue of an X_r modulo 2^w - u: with more than two columns the digits above the second are multiplied
    by powers of 2^w first."""
    short = hat & (1 << 2 * w) - 1 if columns > 2 else hat
    for k in range(2, columns):
        digit = hat >> k * w if k == columns - 1 else hat >> k * w & (1 << w) - 1
        short += digit * power(w, u, k)
    return reduce(short, 1 << 3 * w, w, u)


class Extension(DesignInstance):
    """A base extension for numbers below some modulus. The result is congruent modulo A, so ``p`` = A, factor 1.

    ``trace`` names values of the two channels of a row, counted from 1: xi1 = (xi_(1,1), xi_(1,2)) in the papers. The
    word mod marks a value after the fold.
    """

    operands = 1
    forms = ("native",)

    def __init__(self, params: Params, settings: dict[str, Any]) -> None:
        self.params, self.settings = params, settings
        self.p = params.a.M

    @property
    def factor(self) -> int:
        return 1

    @property
    def schedule(self) -> Schedule:
        return self.params.shape.schedule

    @property
    def representation(self) -> Residues:
        return Residues(self.params.a)

    @property
    def result_form(self) -> Residues:
        return Residues(self.params.b)

    @cached_property
    def bounds(self) -> tuple[Fraction, Fraction, Fraction]:
        q = self.params
        below = Fraction(q.limit, self.p)
        return below, below, below if q.exact else q.cox.most + Fraction(1, self.p)

    @cached_property
    def cost(self) -> Cost:
        s = self.params.shape
        return Cost(
            dsp=s.rowers * s.tiles,
            memory_bits=s.rowers * s.w * (s.tables + s.multiplications),
            multiplications=s.rowers * s.multiplications,
        )

    def trace(self, a: int, b: int = 0) -> Iterator[tuple[str, Any]]:
        q = self.params
        result = yield from run_pass(
            q.cox, q.b, tables(q), self.representation.unpack(a), (), lanes=q.shape.lanes, rowers=q.shape.rowers,
            offset=q.offset if q.exact else None,
        )  # fmt: skip
        yield "x", self.result_form.pack(result)

    def component(self, *, scaled: bool = False) -> Multiplier:
        q = self.params
        if isinstance(q.shape, TwoRowers):
            return BaseExtension(q.shape, tables(q), q.b.moduli)
        return Passes(q.shape, [tables(q)], [q.b.moduli])

    def binary_component(self) -> Multiplier:
        raise UnsupportedError("a base extension has no form with binary operands; build it with --io native")

    def binary_timing(self) -> Timing:
        raise UnsupportedError("a base extension has no form with binary operands; build it with --io native")

    def corners(self) -> list[tuple[int, int]]:
        return [(self.representation.encode(x), 0) for x in edge_numbers(self.params)]

    def facts(self) -> list[tuple[str, str]]:
        q, s = self.params, self.params.shape
        operand, _, result = self.bounds
        return [
            ("base A", f"n = {s.n} moduli 2^{s.w} - u, u = {', '.join(map(str, q.a.u))}"),
            ("base B", f"u = {', '.join(map(str, q.b.u))}"),
            ("rowers", f"{s.rowers}, each for {s.m} channels of A and {s.targets} of B"),
            ("cox", f"t = {q.cox.t}, offset d = {q.offset} / 2^{q.cox.t}; h <= {s.h_max}" if q.exact else "none"),
            ("operands", f"below {approximate(operand)} A"),
            ("results", "equal to the operand" if q.exact else f"below {approximate(result)} A"),
            ("slots", f"{s.multiplications} multiplications of each rower, interval {s.interval}"),
        ]


def edge_numbers(q: Params, seed: int = 1) -> list[int]:
    """Operands at the edges of the cox and of the contract, and those whose xi are all largest, 1, or 0."""
    rnd = random.Random(seed)
    out = [0, 1, q.limit - 1, q.limit - 2, q.limit // 2]
    top = [m - 1 for m in q.a.moduli]
    xis = [top, [1] * q.a.n, [0, *top[1:]], *([rnd.choice((0, 1, x)) for x in top] for _ in range(6))]
    out += [q.a.from_gammas(xi) for xi in xis]
    if q.exact:
        kind = KBE if q.shape.columns == 1 else HBE
        edges = [x for x in cox_edges(kind(q.cox, q.b.moduli, q.offset)) if x < q.limit]
        out += edges[:: max(1, len(edges) // 60)]
    return [x for x in dict.fromkeys(out) if 0 <= x < q.limit]


def fit(p: int, *, columns: int = 1, rowers: int, **settings: Any) -> Extension:
    """The base extension for operands below ``p``. Raises the errors of `choose`, and UnsupportedError for rowers that
    do not suit the columns."""
    if rowers % columns or (rowers == ROWERS and columns > 2):
        raise UnsupportedError(f"rowers must be 0 or a multiple of the {columns} moduli in a row, got {rowers}")
    params = choose(p, Wanted(columns=columns, rowers=rowers, **settings))
    named = {"columns": columns} if columns > 1 else {}
    return Extension(params, {**settings, "n": params.a.n, "rowers": params.shape.lanes, **named})


def rower_limits(p: int, settings: Mapping[str, Any]) -> tuple[int, int]:
    """The limits of the setting ``rowers``."""
    return 0, settings["n"] or MOST


SETTINGS = (
    Setting("w", int, 17, "bits of a channel, up to four DSP blocks", least=12, most=34),
    Setting(
        "n", int, 0, "moduli of base A, even, 0 for the fewest whose range includes the modulus", least=0, most=MOST,
        depends=f"an even number from {LEAST} to {MOST}; with rowers or more columns a multiple of them",
        limits=lambda p, settings: (LEAST, MOST),
    ),
    Setting("exact", bool, True, "true: with a cox, the result is x; false: without a cox, the result is x + h A"),
    Setting("dsp", str, "18x18", "DSP block that channel multipliers are tiled to", tuple(BLOCKS)),
    Setting(
        "rowers", int, ROWERS, "rowers, each for the same number of moduli of base A; 0: one rower for each modulus",
        least=0, most=MOST, depends="they must fill rows, and n must be a multiple of them", limits=rower_limits,
    ),
    Setting("reduce", str, "logic", "what multiplies by u in the folds: logic, or DSP blocks", ("logic", "dsp")),
)  # fmt: skip
COLUMNS = Setting("columns", int, 2, "moduli in a row; three and four with a number of rowers", (2, 3, 4))


def _design(name: str, title: str, columns: int, source: Source) -> Design:
    return Design(
        name=name, page="extension", title=title, source=source,
        needs="any odd modulus; numbers below it are extended",
        settings=SETTINGS if columns == 1 else (*SETTINGS, COLUMNS),
        solve=fit,
        paper="KBE" if columns == 1 else "HBE",
        operands=1,
    )  # fmt: skip


OURS = "machine and schedule are ours"
DESIGNS = (
    _design(
        "kbe-extension", "base extension of Kawamura on two rowers", 1,
        replace(kbe.DESIGNS[0].source, section=f"Section 3; {OURS}"),
    ),
    _design(
        "hbe-extension", "hierarchical base extension, two moduli a row, on two rowers", 2,
        replace(hbe.DESIGNS[0].source, section=f"Algorithm 2, Table III; {OURS}"),
    ),
)  # fmt: skip
