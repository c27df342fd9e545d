# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""RNS Montgomery reduction as a core of its own: X over bases A and B in, S = X A^-1 mod p + delta p over both out.

Source:  L. Djath, K. Bigou, A. Tisserand: Hierarchical Approach in RNS Base Extension for Asymmetric Cryptography.
         ARITH, 2019, Algorithm 3, on rowers for every channel as in Figures 1 and 3. The schedule is ours.
Formula: Q^ = Q + k A,  Q = -X p^-1 mod A, extended from A to B          xi_i = X_i |-p^-1 A_i^-1| mod a_i
         S  = (X + Q^ p) / A                                 S_j = X_j |A^-1| + sum_r |X_r| |p A_r^-1| - h p mod b_j
         S extended from B to A, exactly                     zeta_j = S_j |B_j^-1| mod b_j
Range:   X < A p and k = 0 or 1 with a cox of offset 0 and error E < 1 in the first extension: S < (2 + E) p, so delta
         is 0, 1 or 2. Without that cox, k is at most the sum g of the largest X_r / A_r: S < (1 + g) p.
         A >= (1 + k_max)^2 p, so that the product of two results is an operand again.

Deviations from the paper: the product with -p^-1 (line 1) is merged into the first constants of the extension, those
with p and A^-1 (lines 3, 4) into its sums. The residues of X are plain in both bases. ``cox`` = false is our first
extension, without a cox.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import gcd
from typing import Any

from modmill.contract import Residues, Timing, UnsupportedError
from modmill.design import Cost, Design, DesignInstance, Setting, Source
from modmill.designs.cox_rower import hbe, kbe
from modmill.designs.extension import run_pass
from modmill.interface import Multiplier
from modmill.numbers.rns.base_pairs import approximate
from modmill.numbers.rns.choice_of_moduli import choose_moduli
from modmill.numbers.rns.cox import Cox
from modmill.numbers.rns.cox_edges import cox_edges
from modmill.numbers.rns.extension import HBE
from modmill.numbers.rns.residues import Base
from modmill.rtl.extension import Tables
from modmill.rtl.passes import Passes
from modmill.rtl.passes_shape import Back, Pass, Shape, lanes_for
from modmill.rtl.product import BLOCKS
from modmill.schedule import Schedule

MOST = 32
"""Most moduli in a base, as for the extensions."""


@dataclass(frozen=True)
class Params:
    """Bases, and the coxes of both extensions with the same t. ``first``: whether the first extension has its cox."""

    p: int
    a: Base
    b: Base
    columns: int
    t: int
    first: bool

    @cached_property
    def coxes(self) -> tuple[Cox, Cox]:
        """The cox of the extension from A and of that from B."""
        return Cox(self.a, self.t, self.columns), Cox(self.b, self.t, self.columns)

    @property
    def offset(self) -> int:
        """d of the second extension."""
        return self.coxes[1].offset

    @cached_property
    def gain(self) -> Fraction:
        """Q^ <= gain A."""
        return self.coxes[0].bound if self.first else self.coxes[0].most

    @property
    def result(self) -> Fraction:
        """Exclusive bound of S as a multiple of p, for X < A p."""
        return 1 + self.gain

    @property
    def most_delta(self) -> int:
        """Largest delta that the bound admits: the largest integer below ``result``."""
        return -(-self.result.numerator // self.result.denominator) - 1

    def failure(self) -> str:
        """The first condition that fails, with its numbers, or an empty text."""
        p, (of_a, of_b) = self.p, self.coxes
        if gcd(self.a.M * self.b.M, p) != 1:
            return f"A B shares {gcd(self.a.M * self.b.M, p)} with the modulus"
        if self.first and of_a.error >= 1:
            return f"E < 1 fails for the first cox: E = {approximate(of_a.error)}, t = {self.t}"
        if self.result * p > of_b.limit():
            return f"S < {approximate(self.result)} p, the second extension is exact below {approximate(of_b.limit())}"
        if self.result**2 * p > self.a.M:
            return f"({approximate(self.result)})^2 p <= A fails: A / p = {approximate(Fraction(self.a.M, p))}"
        return ""


def choose(p: int, columns: int, w: int, n: int, rowers: int, cox: bool) -> Params:
    """The parameters with ``n`` moduli in each base, 0 for the fewest, and the least t. Raises UnsupportedError for
    rowers or an n that do not fill, and ValueError with the condition that fails, or for too few moduli."""
    if rowers % columns:
        raise UnsupportedError(f"rowers must be 0 or a multiple of the {columns} moduli in a row, got {rowers}")
    step = rowers or columns
    if n % step:
        raise UnsupportedError(f"n must be a multiple of {step}, got {n}")
    reason = f"a modulus of {p.bit_length()} bits needs more than {MOST} moduli of {w} bits"
    least = max(2, p.bit_length() // w)
    for count in (n,) if n else range(-(-least // step) * step, MOST + 1, step):
        moduli = choose_moduli(w, 2 * count, even=False, avoid=p).moduli
        bases = Base(w, moduli[::2]), Base(w, moduli[1::2])
        for t in range(1, columns * w + 1):
            found = Params(p, *bases, columns, t, cox)
            if not (failed := found.failure()):
                return found
        reason = f"{count} + {count} moduli of {w} bits do not suffice: {failed}"
    raise ValueError(reason)


def tables(q: Params) -> tuple[Tables, Tables]:
    """The constants of both passes."""
    a, b, p = q.a, q.b, q.p
    of_a, of_b = q.coxes
    first = Tables(
        xi=[-pow(p, -1, m) * k % m for k, m in zip(a.inverses, a.moduli, strict=True)],
        partner=of_a.cofactors,
        sums=[[p * pow(row, -1, m) % m for m in b.moduli] for row in of_a.products],
        minus=b.residues(-p),
        start=[pow(a.M, -1, m) for m in b.moduli],
    )
    second = Tables(
        xi=b.inverses,
        partner=of_b.cofactors,
        sums=[a.residues(b.M // row) for row in of_b.products],
        minus=a.residues(-b.M),
    )
    return first, second


class Reduction(DesignInstance):
    """Algorithm 3 for one modulus. Operands and results are residues over A, then over B.

    ``trace`` names values of the first extension as `Extension` does; the second has zeta, Z and s for xi, X and x."""

    operands = 1
    forms = ("native",)

    def __init__(self, params: Params, shape: Shape, settings: dict[str, Any]) -> None:
        self.params, self.shape, self.settings = params, shape, settings
        self.p = params.p

    @property
    def factor(self) -> int:
        return pow(self.params.a.M, -1, self.p)

    @property
    def schedule(self) -> Schedule:
        return self.shape.schedule

    @property
    def representation(self) -> Residues:
        return Residues(Base(self.params.a.w, self.params.a.moduli + self.params.b.moduli))

    @property
    def bounds(self) -> tuple[Fraction, Fraction, Fraction]:
        operand = Fraction(self.params.a.M)
        return operand, operand, self.params.result

    @cached_property
    def cost(self) -> Cost:
        s = self.shape
        return Cost(
            dsp=s.rowers * s.tiles,
            memory_bits=s.rowers * s.w * (s.tables + s.multiplications),
            multiplications=s.rowers * s.multiplications,
        )

    def trace(self, a: int, b: int = 0) -> Iterator[tuple[str, Any]]:
        q, words, lanes = self.params, self.representation.unpack(a), self.shape.lanes
        first, second = tables(q)
        (of_a, of_b), n = q.coxes, q.a.n
        in_b = yield from run_pass(
            of_a, q.b, first, words[:n], words[n:], lanes=lanes, rowers=lanes, offset=0 if q.first else None
        )
        in_a = yield from run_pass(of_b, q.a, second, in_b, (), lanes=lanes, rowers=lanes, offset=q.offset, of=Back)
        yield "S", self.representation.pack([*in_a, *in_b])

    def delta(self, x: int) -> int:
        """(S - X A^-1 mod p) / p for operand ``x``, by the bit-exact algorithm."""
        return (self.multiply(x, 1) - x * self.factor % self.p) // self.p

    def component(self, *, scaled: bool = False) -> Multiplier:
        q = self.params
        return Passes(self.shape, tables(q), [q.b.moduli, q.a.moduli])

    def binary_component(self) -> Multiplier:
        raise UnsupportedError("a reduction of residues has no form with binary operands; build it with --io native")

    def binary_timing(self) -> Timing:
        raise UnsupportedError("a reduction of residues has no form with binary operands; build it with --io native")

    def corners(self) -> list[tuple[int, int]]:
        return [(self.representation.encode(x), 0) for x in edge_operands(self.params)]

    def facts(self) -> list[tuple[str, str]]:
        q, s = self.params, self.shape
        first = f"offset 0, E = {approximate(q.coxes[0].error)} / A" if q.first else "none"
        return [
            ("base A", f"n = {s.n} moduli 2^{s.w} - u, u = {', '.join(map(str, q.a.u))}"),
            ("base B", f"u = {', '.join(map(str, q.b.u))}"),
            ("rowers", f"{s.rowers}, each for {s.m} channels of A and of B"),
            ("cox of the first", first),
            ("cox of the second", f"t = {q.t}, offset d = {q.offset} / 2^{q.t}; h <= {s.h_max}"),
            ("operands", "below A p"),
            ("results", f"below {approximate(q.result)} p: delta = 0 ... {q.most_delta}"),
            ("slots", f"{s.multiplications} multiplications of each rower, interval {s.interval}"),
        ]


def edge_operands(q: Params, seed: int = 1) -> list[int]:
    """Operands at the edges of the contract and of both coxes, built by the Chinese remainder theorem.

    X = (-Q p mod A) + k A has the quotient Q, and S = (X + Q^ p) / A. Q runs through the edges of the first cox, where
    it is missed by 1 for a small Q; k is the least, some and the largest with X < A p. Others give an S at the edges of
    the second cox.
    """
    rnd = random.Random(seed)
    a, b, p = q.a.M, q.b.M, q.p
    out = [0, 1, p, a - 1, a, a * p - 1, a * p // 2]
    top = [m - 1 for m in q.a.moduli]
    edges = cox_edges(HBE(q.coxes[0], q.b.moduli, 0))
    small = sorted(edges)[: len(edges) // 3]
    quotients = [*small[:: max(1, len(small) // 20)], *edges[:: max(1, len(edges) // 20)], q.a.from_gammas(top)]
    for quotient in quotients:
        rest = -quotient * p % a
        ks = (0, (a * p - 1 - rest) // a, rnd.randrange(p))
        out += [rest + k * a for k in ks]
    results = [s for s in cox_edges(HBE(q.coxes[1], q.a.moduli, q.offset)) if s < q.result * p]
    for s in results[:: max(1, len(results) // 20)]:
        quotient = rnd.randrange(min(a, s * a // p + 1))
        out.append(s * a - quotient * p)
    return [x for x in dict.fromkeys(out) if 0 <= x < min(a * p, a * b)]


def fit(p: int, *, columns: int = 1, w: int, n: int, rowers: int, cox: bool, dsp: str, reduce: str) -> Reduction:
    """The reduction modulo ``p``. Raises the errors of `choose`."""
    q = choose(p, columns, w, n, rowers, cox)
    block = BLOCKS[dsp]
    passes = Pass(q.a.u, q.b.u, 0 if cox else None, start=True), Pass(q.b.u, q.a.u, q.offset)
    shape = Shape(w, columns, rowers or q.a.n, passes, q.t, block, block if reduce == "dsp" else None)
    named = {"columns": columns} if columns > 1 else {}
    settings = {"w": w, "n": q.a.n, "rowers": shape.lanes, "cox": cox, "dsp": dsp, "reduce": reduce, **named}
    return Reduction(q, shape, settings)


def n_limits(p: int, settings: Mapping[str, Any]) -> tuple[int, int]:
    """The limits of the setting ``n``."""
    found = choose(p, settings.get("columns", 1), settings["w"], 0, settings["rowers"], settings["cox"])
    return found.a.n, MOST


def rower_limits(p: int, settings: Mapping[str, Any]) -> tuple[int, int]:
    """The limits of the setting ``rowers``."""
    columns, n = settings.get("columns", 1), settings["n"]
    return columns, max(lanes_for(n, columns), default=columns) if n else MOST - MOST % columns


SETTINGS = (
    Setting("w", int, 17, "bits of a channel, up to four DSP blocks", least=12, most=34),
    Setting(
        "n", int, 0, "moduli in each base, 0 for the fewest that suffice", least=0, most=MOST,
        depends="A >= (largest result / p)^2 p and the range of the second extension set the least; n must be a "
        "multiple of the rowers and of the columns",
        limits=n_limits,
    ),
    Setting(
        "rowers", int, 0, "rowers, each for the same number of moduli of each base; 0: one rower for each modulus",
        least=0, most=MOST, depends="they must fill rows, and n must be a multiple of them", limits=rower_limits,
    ),
    Setting("cox", bool, True, "a cox in the first extension: delta is at most 2; without it at most about n"),
    Setting("dsp", str, "18x18", "DSP block that channel multipliers are tiled to", tuple(BLOCKS)),
    Setting("reduce", str, "logic", "what multiplies by u in the folds: logic, or DSP blocks", ("logic", "dsp")),
)  # fmt: skip


def _design(name: str, title: str, paper: str, source: Source, more: tuple[Setting, ...]) -> Design:
    return Design(
        name=name, page="reduction", title=title, paper=paper, operands=1, settings=(*SETTINGS, *more), solve=fit,
        source=replace(source, section="Algorithm 3; the schedule is ours"),
        needs="any odd modulus of at least 2 bits, as long as enough coprime channel moduli exist",
    )  # fmt: skip


DESIGNS = (
    _design("kbe-reduction", "RNS Montgomery reduction with Kawamura's base extensions, both with a cox", "KBE",
            kbe.DESIGNS[0].source, ()),
    _design("hbe-reduction", "RNS Montgomery reduction with hierarchical base extensions, both with a cox", "HBE",
            hbe.DESIGNS[0].source, (Setting("columns", int, 2, "moduli in a row", (2, 3, 4)),)),
)  # fmt: skip
