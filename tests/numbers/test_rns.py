# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Bases: coprimality, the Chinese remainder theorem, searches."""

import random
from itertools import islice, pairwise
from math import gcd

import pytest

from modmill.numbers.rns.residues import Base, growing_bases, mersenne_like, pseudo_mersenne, signed_digits

TABLE_1 = tuple((1 << 66) - u for u in (1, 5, 9, 17, 33, 65, 257, 513))


def test_table_1_of_the_sor_paper():
    base = Base(66, TABLE_1)
    assert base.M.bit_length() == 528
    assert tuple(islice(mersenne_like(66), 8)) == TABLE_1


def test_erratum_larger_n_has_more_moduli():
    """Table 2 needs N = 12 and 16; Table 1 lists eight moduli, the family has at least twenty."""
    assert len(list(mersenne_like(66))) >= 30


@pytest.mark.parametrize("kind", [mersenne_like, pseudo_mersenne])
@pytest.mark.parametrize("w", [14, 17, 24, 34, 64, 66])
def test_moduli_are_coprime(kind, w):
    moduli = list(islice(kind(w), 12))
    assert all(gcd(a, b) == 1 for i, a in enumerate(moduli) for b in moduli[:i])
    Base(w, tuple(moduli))


def test_crt_round_trip():
    base = Base(17, tuple(islice(pseudo_mersenne(17), 9)))
    rnd = random.Random(1)
    for x in [0, 1, base.M - 1, *(rnd.randrange(base.M) for _ in range(50))]:
        assert base.number(base.residues(x)) == x
        assert base.from_gammas(base.gammas(x)) == x
        assert (
            base.number([r + m if r + m < 1 << 17 else r for r, m in zip(base.residues(x), base.moduli, strict=False)])
            == x
        )


def test_refusals():
    with pytest.raises(ValueError, match="share the factor 3"):
        Base(4, (9, 15))
    with pytest.raises(ValueError, match="not in"):
        Base(4, (7,))
    with pytest.raises(ValueError, match=r"only .* moduli"):
        next(growing_bases(4, pseudo_mersenne(4), 1 << 60))
    with pytest.raises(ValueError, match="residues for"):
        Base(4, (13, 15)).number([1])


@pytest.mark.parametrize("u", [0, 1, 3, 7, 11, 145, 511, 1023, 65535])
def test_signed_digits(u):
    digits = signed_digits(u)
    assert sum(sign << k for k, sign in digits) == u
    assert all(a - b >= 2 for (a, _), (b, _) in pairwise(digits))
