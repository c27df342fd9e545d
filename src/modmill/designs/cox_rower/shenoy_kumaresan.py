# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""RNS Montgomery multiplication with the Shenoy-Kumaresan extension, exact by a redundant modulus, on cox rowers.

Source:  A. P. Shenoy, R. Kumaresan: Fast Base Extension Using a Redundant Modulus in RNS. IEEE Transactions on
         Computers, 1989 (second extension). J.-C. Bajard, L.-S. Didier, P. Kornerup: Modular Multiplication and Base
         Extensions in Residue Number Systems. ARITH, 2001 (first extension without correction, second by a redundant
         modulus). The order is Gandino's, as in `kbe`; machine and schedule are ours, with another list of operations
         (`operations.Method.REDUNDANT`).
Formula: s, xi, zeta and x~ as in `kbe`;  r = 2^w, S the result,
         S_r = x_r y_r |A^-1| + sum xi_i |p a_i^-1| mod r          as zeta, in the rower of r
         h   = sum zeta_j |b_j^-1| - S_r |B^-1| mod r              in the rower of r
         v_i = sum zeta_j |B_j| mod a_i,  w_i = v_i - h |B| mod a_i
Range:   x, y < lambda p gives w < lambda p, w = x y A^-1 (mod p), where lambda p <= B: h is exact for every result
         below B, since the largest h, floor(sum of (2^w - 1) / b_j), is below r.

There is one rower more than moduli in a base. It serves r in place of a_i and of b_i: a residue modulo 2^w is unique.
In the first extension it puts x_r y_r |A^-1| into the ring, which only it adds; in the second it puts S_r there, which
only it multiplies, by |-B^-1|. It sends h to all rowers by the wires that bring the cox's h in `kbe`. The sum v is
reduced before h is known, so that the accumulators are free; the last sum starts with v. A product takes 2 n + 7
multiplications in every rower (2 n + 5 for `kbe`), and waits for one reduction more.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import floor

from modmill.contract import UnsupportedError
from modmill.design import Design, Source
from modmill.designs.cox_rower.constants import Tables
from modmill.designs.cox_rower.kbe import Params, RnsMontgomery, dealt_alike, tables
from modmill.designs.cox_rower.operations import Method
from modmill.designs.cox_rower.shape import Shape
from modmill.designs.cox_rower.slot_machine import CoxSlots
from modmill.designs.cox_rower.variants import NO_SLOTS, fewest_moduli, fitted, settings_of
from modmill.numbers.rns.base_pairs import Inequality, Sufficiency, deal
from modmill.numbers.rns.choice_of_moduli import choose_moduli
from modmill.numbers.rns.residues import Base
from modmill.rtl.product import BLOCKS


@dataclass(frozen=True)
class RedundantSufficiency(Sufficiency):
    """`Sufficiency` with a redundant modulus 2^w in place of the cox; ``t`` means nothing."""

    @cached_property
    def offset(self) -> int:
        """No offset."""
        return 0

    @cached_property
    def limit(self) -> int:
        """Exclusive bound of the results for which the second extension is exact."""
        return self.pair.b.M

    @property
    def h_max(self) -> int:
        """The largest h."""
        return floor(self.coxes[1].most)

    @cached_property
    def inequalities(self) -> tuple[Inequality, ...]:
        """All conditions: that on the redundant modulus in place of that on the offset."""
        redundant = Inequality(
            "redundant modulus", "sum of (2^w - 1) / b_j < 2^w", self.coxes[1].most, Fraction(1 << self.pair.w), True
        )
        return tuple(redundant if row.name == "offset" else row for row in super().inequalities)


@dataclass(frozen=True)
class RedundantParams(Params):
    """Parameters of the Shenoy-Kumaresan design; ``proof`` is a `RedundantSufficiency`."""

    proof: RedundantSufficiency

    @property
    def over_a(self) -> Base:
        """Base A and the redundant modulus."""
        return Base(self.a.w, (*self.a.moduli, 1 << self.a.w))

    @cached_property
    def shape(self) -> Shape:
        """The structure of the machine."""
        plain = super().shape
        return replace(plain, u=(*plain.u, (0, 0)), offset=self.proof.h_max, method=Method.REDUNDANT)


class ShenoyKumaresan(RnsMontgomery):
    """The machine for one modulus. A number is its residues over A, that modulo 2^w, then its x~_j over B."""

    params: RedundantParams

    def tables(self, *, plain: bool = False) -> Tables:
        q, made = self.params, tables(self.p, self.params, plain=plain)
        a, b, r = q.a, q.b, 1 << q.a.w
        return replace(
            made,
            xi=[*made.xi, pow(a.M, -1, r)],
            wt=[*made.wt, 0],
            h=[*made.h, 0],
            first=[
                *([*row, self.p * pow(m, -1, r) % r] for row, m in zip(made.first, a.moduli, strict=True)),
                [0] * b.n + [1],
            ],
            second=[
                *([*row, pow(m, -1, r)] for row, m in zip(made.second, b.moduli, strict=True)),
                [0] * a.n + [-pow(b.M, -1, r) % r],
            ],
        )

    def slot_machine(self, numbers: int) -> CoxSlots:
        raise UnsupportedError(NO_SLOTS)

    def second_extension(self) -> tuple[str, str]:
        return "redundant modulus", f"2^{self.params.a.w}, h <= {self.params.shape.h_max}"

    def edge_result(self, rnd: random.Random) -> int:
        """A possible result with the smallest h, the largest, or any other: its zeta_j are about equal parts of b_j."""
        q, n = self.params, self.params.b.n
        h = rnd.choice((0, n - 1, rnd.randrange(n)))
        wanted = h + q.proof.gain * self.p / q.b.M * rnd.randrange(256, 768) / 1024  # as results of small operands
        zeta = [int(wanted / n * m) for m in q.b.moduli[:-1]]
        rest = wanted - sum(Fraction(x, m) for x, m in zip(zeta, q.b.moduli, strict=False))
        return q.b.from_gammas([*zeta, int(rest * q.b.moduli[-1])])


def fit(p: int, *, w: int, n: int, interval: int, dsp: str) -> ShenoyKumaresan:
    """The instance for modulus ``p`` with the least n for which the bases suffice. Raises UnsupportedError if the
    settings do not fit together, and ValueError if there are no such bases."""

    def proved(count: int, digits: int) -> Sufficiency:
        return RedundantSufficiency(deal(choose_moduli(w, 2 * count, even=False, digits=digits, avoid=p).moduli), p, w)

    proof = fewest_moduli(p, w, n, proved)
    alike = RedundantSufficiency(dealt_alike(proof.pair, 1), p, w)
    if alike.holds or not isinstance(proof, RedundantSufficiency):
        proof = alike
    params = RedundantParams(proof.pair, proof, block=BLOCKS[dsp])
    settings = {"w": w, "n": n, "interval": interval, "dsp": dsp}
    return fitted(ShenoyKumaresan(p, params, settings))


DESIGNS = (
    Design(
        name="shenoy-kumaresan",
        page="shenoy-kumaresan",
        title="RNS Montgomery multiplication with an extension by a redundant modulus on the cox-rower machine",
        source=Source(
            "A. P. Shenoy, R. Kumaresan",
            "Fast Base Extension Using a Redundant Modulus in RNS",
            "IEEE Transactions on Computers",
            1989,
            "the extension; in a Montgomery multiplication as in Bajard, Didier, Kornerup, 2001; machine and schedule "
            "are ours",
        ),
        needs="any odd modulus of at least 2 bits, as long as enough coprime channel moduli exist",
        settings=settings_of(fit),
        solve=fit,
    ),
)
