# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""RNS Montgomery multiplication with square roots as stored factors (sQ-RNS) on the cox-rower machine.

Source:  S. Kawamura, Y. Komano, H. Shimizu, T. Yonemura: RNS Montgomery Reduction Algorithms Using Quadratic
         Residuosity. Journal of Cryptographic Engineering, 2019 (our derivation; the costs agree). The machine and its
         schedule are ours; it is that of `kbe` with another list of operations (`operations.Method.ROOTS`).
Formula: K_i^2 = e_i (-p A_i)^-1 mod a_i with e_i = 1 or -1; numbers are stored as x K_i and x~_j = x |B_j^-1|,
         xi_i = (x K_i) (y K_i) mod a_i,
         zeta_j = N |p B_j^-1| + x~ y~ |B_j A^-1| + sum e_i xi_i |p a_i^-1 B_j^-1| mod b_j,
         w_i K_i = sum zeta_j |B_j K_i| - h |B K_i| mod a_i,  h as in `kbe`
Range:   as in `kbe`, with Q = sum e_i xi_i A_i + N A. N is the least integer with Q >= 0, N >= sum of (2^w - 1) / a_i
         over the channels with e_i = -1; Q <= (N + sum of (2^w - 1) / a_i over the others) A.

The product of two stored residues is xi or -xi at once: the multiplication by |-p^-1 A_i^-1| and its fold are gone. A
product takes 2 n + 4 multiplications in every rower.

Deviation: the source takes bases in which every e_i = 1; they depend on p and need a search. Modulo a prime that is
3 mod 4 either c or -c has a root, so here every a_i is such a prime, of any base, and the sign is in the constants. The
sum in B starts with N |p B_j^-1|, so that no result is negative. B has any odd moduli.
dQ-RNS (`Method.DOUBLE_ROOTS`) has roots over B too: C_j^2 = f_j (A B_j)^-1 mod b_j with f_j = 1 or -1, numbers are
stored as x C_j, zeta_j = N |p B_j^-1| + f_j (x C_j) (y C_j) + the same sum, and the result over B is zeta_j |B_j C_j|.
The literature counts as many multiplications as for sQ-RNS. Here f_j = -1 takes one more, because the rowers only add:
2 n + 5, as `kbe`.

The roots belong to the modulus, so no other modulus can be loaded. Binary operands are multiplied by K_i on the way, in
one more multiplier for each a_i: that is the multiplication that the roots save inside the machine.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import islice
from math import ceil, gcd, prod

from modmill.contract import ResiduePair, UnsupportedError
from modmill.design import Design, Source
from modmill.designs.cox_rower.constants import Tables
from modmill.designs.cox_rower.kbe import Params, RnsMontgomery, tables
from modmill.designs.cox_rower.operations import Method
from modmill.designs.cox_rower.shape import Shape
from modmill.designs.cox_rower.slot_machine import CoxSlots
from modmill.designs.cox_rower.variants import NO_SLOTS, fewest_moduli, fitted, settings_of
from modmill.numbers.primes import is_prime
from modmill.numbers.rns.base_pairs import BasePair, Sufficiency, fewest_bits
from modmill.numbers.rns.choice_of_moduli import distances
from modmill.numbers.rns.quadratic_residues import root
from modmill.numbers.rns.residues import Base, coprime
from modmill.rtl.convert import ScaledResidues
from modmill.rtl.fold import multiplexers
from modmill.rtl.product import BLOCKS


@dataclass(frozen=True)
class RootSufficiency(Sufficiency):
    """`Sufficiency` with signs of the xi: Q of the first extension is at most ``gain`` A, and not negative."""

    @cached_property
    def roots(self) -> tuple[tuple[int, int], ...]:
        """(K_i, e_i) of every channel of A."""
        return _roots(self.pair.a, -self.p)

    @cached_property
    def roots_b(self) -> tuple[tuple[int, int], ...]:
        """(C_j, f_j) of every channel of B, if it is of primes that are 3 mod 4."""
        return _roots(self.pair.b, self.pair.a.M)

    @cached_property
    def _sums(self) -> tuple[Fraction, Fraction]:
        """Sum of (2^w - 1) / a_i over the channels with e_i = -1, and over the others."""
        top, sums = (1 << self.pair.w) - 1, {-1: Fraction(0), 1: Fraction(0)}
        for m, (_, sign) in zip(self.pair.a.moduli, self.roots, strict=True):
            sums[sign] += Fraction(top, m)
        return sums[-1], sums[1]

    @cached_property
    def lift(self) -> int:
        """N."""
        return ceil(self._sums[0])

    @cached_property
    def gain(self) -> Fraction:
        """g: the first extension returns 0 <= Q <= g A."""
        return self._sums[1] + self.lift


def _roots(base: Base, factor: int) -> tuple[tuple[int, int], ...]:
    """For each modulus m (K, e) with K^2 = e (factor M / m)^-1 mod m and e = 1 or -1. Raises ValueError for a modulus
    without a root."""
    found = []
    for m, cofactor in zip(base.moduli, base.cofactors, strict=True):
        c = pow(factor * cofactor, -1, m)
        K = root(c, m)
        if K is None:
            raise ValueError(f"neither {c} nor {m - c} has a square root modulo {m}")
        found.append((K, 1 if K * K % m == c else -1))
    return tuple(found)


@dataclass(frozen=True)
class RootParams(Params):
    """Parameters of sQ-RNS, with ``double`` of dQ-RNS; ``proof`` is a `RootSufficiency`."""

    proof: RootSufficiency
    double: bool = False

    @cached_property
    def shape(self) -> Shape:
        """The structure of the machine."""
        return replace(super().shape, method=Method.DOUBLE_ROOTS if self.double else Method.ROOTS)


class SqRns(RnsMontgomery):
    """sQ-RNS on the cox-rower machine for one modulus."""

    params: RootParams

    @property
    def representation(self) -> ResiduePair:
        q = self.params
        over_b = [C for C, _ in q.proof.roots_b] if q.double else q.b.inverses
        return ResiduePair(q.a, q.b, (*(K for K, _ in q.proof.roots), *over_b))

    def tables(self, *, plain: bool = False) -> Tables:
        q, made = self.params, tables(self.p, self.params, plain=plain)
        if q.double and plain:
            made = replace(made, o=[1] * q.b.n)
        elif q.double:
            results = zip(q.proof.roots_b, q.b.cofactors, q.b.moduli, strict=True)
            made = replace(made, o=[C * B_j % m for (C, _), B_j, m in results],
                           wt=[f % m for (_, f), m in zip(q.proof.roots_b, q.b.moduli, strict=True)])  # fmt: skip
        roots = [K for K, _ in q.proof.roots]

        def rooted(row: Sequence[int]) -> list[int]:
            return [x * K % m for x, K, m in zip(row, roots, q.a.moduli, strict=True)]

        return replace(
            made,
            h=rooted(made.h),
            first=[
                [e * x % m for x, m in zip(row, q.b.moduli, strict=True)]
                for row, (_, e) in zip(made.first, q.proof.roots, strict=True)
            ],
            second=[rooted(row) for row in made.second],
            start=[q.proof.lift * self.p * k % m for k, m in zip(q.b.inverses, q.b.moduli, strict=True)],
        )

    def _to_residues(self) -> ScaledResidues:
        q = self.params
        both = Base(q.a.w, self.representation.moduli)
        return ScaledResidues(both, self.bits, [K for K, _ in q.proof.roots], q.block)

    def slot_machine(self, numbers: int) -> CoxSlots:
        raise UnsupportedError(NO_SLOTS)

    def edge_quotients(self, rnd: random.Random) -> list[list[int]]:
        pairs = list(zip(self.params.a.moduli, (e for _, e in self.params.proof.roots), strict=True))
        most = [m - 1 if e > 0 else 0 for m, e in pairs]
        least = [0 if e > 0 else 1 - m for m, e in pairs]
        return [most, least, *super().edge_quotients(rnd)]

    def corners(self) -> list[tuple[int, int]]:
        """Also products that are small beside Q p, with the least and the largest Q: results near 0 and near g p."""
        q, encode = self.params, self.representation.encode
        top, A = self.contract("native").largest_operand, q.a.M
        found = []
        for wanted in self.edge_quotients(random.Random(1))[:2]:
            target = -q.a.from_gammas(wanted) * self.p % A
            for x in range(A // top + 1, A // top + 100):
                y, rest = divmod(target + -target * pow(A, -1, x) % x * A, x) if gcd(x, A) == 1 else (0, 1)
                if rest == 0 and y <= top:
                    found.append((encode(x), encode(y)))
                    break
        return [*found, *super().corners()]

    def facts(self) -> list[tuple[str, str]]:
        proof = self.params.proof
        minus = sum(e < 0 for _, e in proof.roots)
        roots = f"of -c in {minus} channels, of c in the others; Q has {proof.lift} A added"
        return [*super().facts(), ("roots", roots)]


@lru_cache(256)
def _candidates(w: int, bits: int, digits: int) -> tuple[list[int], list[int]]:
    """All moduli 2^w - u with u < 2^bits of at most ``digits`` signed digits, and the primes 3 mod 4 of them."""
    moduli = [(1 << w) - u for u in distances(bits, False, digits)]
    return moduli, [m for m in moduli if m % 4 == 3 and is_prime(m)]


def root_pair(w: int, n: int, p: int, digits: int, *, double: bool = False) -> BasePair:
    """Bases A, of primes that are 3 mod 4, and B of other moduli (``double``: of more such primes), with the smallest u
    of at most ``digits`` signed digits. Raises ValueError if there are too few."""
    a: list[int] = []
    b: list[int] = []
    for bits in range(1, w):
        moduli, primes = _candidates(w, bits, digits)
        a = primes = [m for m in primes if p % m]
        if len(primes) < n:
            continue
        a = primes[: 2 * n : 2] if double else primes[:n]
        own = prod(a) * p
        b = primes[1 : 2 * n : 2] if double else list(islice(coprime(m for m in moduli if gcd(m, own) == 1), n))
        if len(a) == len(b) == n:
            break
    else:
        raise ValueError(
            f"of moduli 2^{w} - u with {digits} signed digits there are {len(a)} primes 3 mod 4 and {len(b)} others, "
            f"and n = {n} of each are needed"
        )
    return BasePair(Base(w, tuple(a)), Base(w, tuple(b)))


def matched(pair: BasePair) -> BasePair:
    """The same bases, each modulus of B beside that of A with which its u shares the most signed digits."""
    w, left, ordered = pair.a.w, list(pair.b.moduli), list[int]()
    for m in pair.a.moduli:
        ordered.append(min(left, key=lambda x: (multiplexers(((1 << w) - m, (1 << w) - x)), -x)))
        left.remove(ordered[-1])
    return BasePair(pair.a, Base(w, tuple(ordered)))


def fit(p: int, *, w: int, n: int, interval: int, dsp: str, double: bool = False) -> SqRns:
    """The instance for modulus ``p`` with the least n for which condition C4 holds; ``double``: dQ-RNS. Raises
    UnsupportedError if the settings do not fit together, and ValueError if there are no such bases."""

    def proved(count: int, digits: int) -> Sufficiency:
        return fewest_bits(RootSufficiency(root_pair(w, count, p, digits, double=double), p, w))

    proof = fewest_bits(RootSufficiency(matched(fewest_moduli(p, w, n, proved).pair), p, w))
    assert isinstance(proof, RootSufficiency)
    params = RootParams(proof.pair, proof, block=BLOCKS[dsp], double=double)
    settings = {"w": w, "n": n, "interval": interval, "dsp": dsp}
    return fitted(SqRns(p, params, settings))


def _design(name: str, title: str, double: bool) -> Design:
    solve = partial(fit, double=double)
    return Design(
        name=name,
        page="sq-rns",
        title=f"RNS Montgomery multiplication with square roots as stored factors ({title}) on the cox-rower machine",
        source=Source(
            "S. Kawamura, Y. Komano, H. Shimizu, T. Yonemura",
            "RNS Montgomery Reduction Algorithms Using Quadratic Residuosity",
            "Journal of Cryptographic Engineering",
            2019,
            f"{title}; derivation of the signs, machine and schedule are ours",
        ),
        needs="any odd modulus of at least 2 bits, as long as enough prime channel moduli exist",
        settings=settings_of(solve),
        solve=solve,
    )


DESIGNS = (_design("sq-rns", "sQ-RNS", False), _design("dq-rns", "dQ-RNS", True))
