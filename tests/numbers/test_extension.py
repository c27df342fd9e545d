# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Base extensions: what comes out, exactly, on both sides of every bound; what they cost."""

import itertools
import random
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor, gcd, log2

import pytest
from predicted import outcomes, predicted, truncation_error

from modmill.numbers.rns.counting import Count, Tally
from modmill.numbers.rns.cox import Cox
from modmill.numbers.rns.cox_edges import cox_edges
from modmill.numbers.rns.exact_extension import MixedRadix, ShenoyKumaresan
from modmill.numbers.rns.extension import HBE, KBE, Approximate
from modmill.numbers.rns.fixed_point import FixedPoint, FixedPointCox
from modmill.numbers.rns.residues import Base, coprime, pseudo_mersenne

TOY = Base(4, (16, 15, 13, 11))
FAR = Base(5, (17, 19, 23, 29))
# bits of p, w, n: the smallest n that carry a closed loop, with the largest u of the greedy moduli 2^w - u
SIZES = [
    (256, 17, 16, 145), (256, 20, 14, 159), (256, 24, 12, 125), (256, 28, 10, 95),
    (384, 17, 24, 273), (384, 20, 20, 245), (384, 24, 18, 189), (384, 28, 14, 153),
]  # fmt: skip
T_MIN = {256: (5, 4, 4, 4), 384: (5, 5, 5, 4)}
FULL = [(w, n, t, c) for (bits, w, n, _), t in zip(SIZES, T_MIN[256] + T_MIN[384], strict=True)
        for c in (2, 3, 4) if n % c == 0]  # fmt: skip


def bases(w, n):
    """Greedy moduli dealt alternately."""
    moduli = tuple(itertools.islice(pseudo_mersenne(w, even=True), 2 * n))
    return Base(w, moduli[::2]), Base(w, moduli[1::2])


def extended(extension, x):
    return extension.extend([x % m for m in extension.reads])


def residues(x, target):
    return [x % b for b in target]


def differs(extension, numbers):
    """The x below the limit of exactness that do not come out as themselves."""
    return [x for x in numbers if x < extension.exact.limit and extended(extension, x) != residues(x, extension.target)]


@pytest.mark.parametrize(("bits", "w", "n", "largest"), SIZES)
def test_the_greedy_bases(bits, w, n, largest):
    a, b = bases(w, n)
    assert max(a.u + b.u) == largest and min(a.M, b.M) > 4 << bits
    assert n % 2 == 0 and gcd(a.M, b.M) == 1


TOYS = [
    kind(cox, (7,), d)
    for c, kind in ((1, KBE), (2, HBE), (4, HBE))
    for t in (2, 3, 4)
    for cox in [Cox(TOY, t, c, False)]
    for d in {0, cox.offset, 1 << (t - 1)}
    if d < 1 << t
]


@pytest.mark.parametrize("extension", TOYS, ids=lambda e: f"{type(e).__name__}-t{e.cox.t}-c{e.cox.columns}-d{e.d}")
def test_toys_exhaustively(extension):
    """Every 17th x: the result is the predicted one, inside the bounds, and x itself below the limit."""
    A, limit = TOY.M, extension.exact.limit
    assert limit == ceil(extension.exact.bound * A)
    for x in range(0, A, 17):
        value = predicted(extension, x)
        assert extended(extension, x) == [value % 7]
        assert value in outcomes(extension, x) and value < extension.bound * A
        assert x >= limit or value == x
        assert not extension.never_below or value >= x


@pytest.mark.parametrize(("kind", "t", "c"), [(KBE, 4, 1), (KBE, 3, 1), (HBE, 7, 2)])
def test_offset_and_limit_of_toys_are_needed(kind, t, c):
    """Planted faults: one less in the offset, or x at the limit or above, and a result is wrong."""
    exact = kind.of(TOY, (7,), t) if c == 1 else kind.of(TOY, (7,), t, c)
    limit = exact.exact.limit
    assert 0 < limit < TOY.M
    assert all(predicted(exact, x) == x for x in range(0, limit, 3))
    assert any(predicted(exact, x) != x for x in range(limit, TOY.M))
    smaller = replace(exact, d=exact.d - 1)
    assert smaller.exact.limit == 0 and smaller.exact.bound == 0, "an offset that is too small is exact nowhere"
    assert c > 1 or any(predicted(smaller, x) != x for x in range(limit)), "E of a single column is a maximum"


@pytest.mark.parametrize(("w", "n", "t", "c"), FULL)
def test_hbe_equals_kbe_where_both_are_exact(w, n, t, c):
    """On the edges of either, KBE with t bits, HBE with as many of the c w (and with as few as its own E allows)."""
    a, b = bases(w, n)
    kbe = KBE.of(a, b.moduli, t)
    for bits in (t, t - 1):
        hbe = HBE.of(a, b.moduli, bits, c)
        limit = min(kbe.exact.limit, hbe.exact.limit)
        assert limit > a.M // 10
        inside = [x for x in cox_edges(kbe)[::5] + cox_edges(hbe)[::3] if x < limit]
        assert len(inside) > 20
        for x in inside:
            assert extended(kbe, x) == extended(hbe, x) == residues(x, b.moduli)


@pytest.mark.parametrize(("w", "n", "t", "c"), [(w, n, t, 1) for _, w, n, _ in SIZES for t in (5, 7)] + FULL)
def test_edges_reach_both_bounds(w, n, t, c):
    """The edges find an offset that is one too small and an x just above the limit; wrong constants too."""
    a, b = bases(w, n)
    exact = KBE.of(a, b.moduli[:2], t) if c == 1 else HBE.of(a, b.moduli[:2], t, c)
    limit, numbers = exact.exact.limit, cox_edges(exact)
    assert differs(exact, numbers) == []
    above = [x for x in numbers if x >= limit and predicted(exact, x) != x]
    assert above and min(above) - limit < a.M >> 6
    assert all(extended(exact, x) == residues(x - a.M, exact.target) for x in above)
    smaller = replace(exact, d=exact.d - 1)
    wrong = [x for x in numbers if x < limit and predicted(smaller, x) != x]
    assert wrong and max(wrong) < (exact.cox.error - Fraction(smaller.d, 1 << t)) * a.M
    assert all(extended(smaller, x) == residues(x + a.M, exact.target) for x in wrong)


def test_a_wrong_constant_is_found():
    a, b = bases(17, 16)

    class Wrong(KBE):
        @property
        def weights(self):
            first, *rest = super().weights[0]
            return ((first ^ 1, *rest), *super().weights[1:])

    right = KBE.of(a, b.moduli, 5)
    wrong = Wrong(right.cox, right.target, right.d)
    assert differs(right, cox_edges(right)) == []
    assert len(differs(wrong, cox_edges(right))) > 10


def hidden(cox, hats):
    """e from the low bits: what truncation drops, and 2^-cw in place of 1 / A_i."""
    full = 1 << cox.columns * cox.base.w
    return sum(
        (Fraction(x % (1 << cox.drop), full) + Fraction(x * (full - p), full * p)
         for x, p in zip(hats, cox.products, strict=True)), Fraction(0),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("w", "n", "t", "c"), [(17, 16, 5, 1), (17, 16, 5, 2), (24, 12, 4, 3), (17, 16, 6, 4), (28, 10, 4, 1)]
)
def test_erratum_without_offset_small_numbers_gain_A(w, n, t, c):
    """sigma = 0: x + A exactly when x / A < e, else x; so for small x, and never for x close to A (as printed)."""
    a, b = bases(w, n)
    extension = KBE.of(a, b.moduli, t, 0) if c == 1 else HBE.of(a, b.moduli, t, c, 0)
    E = extension.cox.error
    assert E < 1 and extension.bound == 1 + E == extension.cox.bound
    gained, kept = [], []
    for x in cox_edges(extension):
        e = hidden(extension.cox, extension.cox.hats(extension.cox.base.gammas(x)))
        assert e == truncation_error(extension, x) and 0 <= e <= E
        (gained if Fraction(x, a.M) < e else kept).append(x)
    assert len(gained) > 30 and len(kept) > 30
    assert all(extended(extension, x) == residues(x + a.M, b.moduli) for x in gained)
    assert all(extended(extension, x) == residues(x, b.moduli) for x in kept)
    assert max(gained) < E * a.M
    assert extended(extension, a.M - 1) == residues(a.M - 1, b.moduli)
    # both signs occur for x of the same size: the truncated bits decide
    assert min(x for x in kept if x > 1) < max(gained)


@pytest.mark.parametrize("c", [2, 3, 4])
@pytest.mark.parametrize("w", [10, 17, 24])
def test_h_and_hat_reach_their_widths(w, c):
    """h_i = c needs ceil(log2(c + 1)) bits, X^_i needs c w + ceil(log2 c)."""
    moduli = tuple(itertools.islice(pseudo_mersenne(w), 13))
    a, target = Base(w, moduli[:12]), moduli[12:]
    extension = HBE.of(a, target, 2 * w, c, 0)
    x = a.from_gammas([m - 1 for m in a.moduli])
    hats = extension.hats(a.gammas(x), extension.tally())
    h = extension.h(hats, extension.tally())
    assert max(h) == c
    assert max(h).bit_length() == ceil(log2(c + 1))
    assert max(hats).bit_length() == c * w + ceil(log2(c)) == extension.tally().hat_bits
    with pytest.raises(ValueError, match=f"MR takes {c * w + ceil(log2(c))} bits"):
        extension.tally().mr(2 * max(hats), target[0])


def test_erratum_additional_constraint():
    """Section IV-B2: KBE meets n (d_m + e_m) < 1/2 and is exact; HBE on the same base is not (e_m counts c times)."""
    a, t, c, x = Base(7, (128, 127, 125, 123, 121, 119)), 7, 3, 16_099_609_826
    target = (113, 109, 107, 103, 101, 97)
    d_m = max(Fraction(2 ** (7 - t), m) for m in a.moduli)  # as the paper assumes; no residue loses more
    e_m = max(Fraction(128 - m, 128) for m in a.moduli)
    assert 6 * (d_m + e_m) < Fraction(1, 2) and f"{float(6 * (d_m + e_m)):.4f}" == "0.4723"
    half = 1 << (t - 1)
    kbe, hbe = KBE.of(a, target, t, half), HBE.of(a, target, t, c, half)
    assert x < a.M // 2 == kbe.exact.limit
    assert extended(kbe, x) == residues(x, target)
    assert hbe.exact.limit == 0 and hbe.cox.offset > half
    assert extended(hbe, x) == residues(x + a.M, target) and predicted(hbe, x) == x + a.M
    assert differs(HBE.of(a, target, t, c), cox_edges(HBE.of(a, target, t, c))) == []


def test_lazy_representatives():
    """Any x^ below 2^w: exhaustive on a toy. The offset for least residues does not do."""
    t, target = 4, (7,)
    a = Base(4, (16, 15, 13))
    lazy, least = KBE.of(a, target, t, lazy=True), KBE.of(a, target, t)
    assert lazy.d > least.d
    wrong = 0
    for x in range(lazy.exact.limit):
        for xhat in itertools.product(*[range(g, 16, m) for g, m in zip(a.gammas(x), a.moduli, strict=True)]):
            for extension in (lazy, least):
                tally = extension.tally()
                hats = extension.hats(xhat, tally)
                out = extension.spread(hats, extension.h(hats, tally), tally)
                assert extension is least or out == [x % 7]
                wrong += out != [x % 7]
    assert wrong


@pytest.mark.parametrize("a", [TOY, FAR, Base(5, (32, 31, 27, 25, 23))])
def test_exact_extensions_exhaustively(a):
    """Szabo-Tanaka and Shenoy-Kumaresan are exact for every x < A."""
    target = tuple(m for m in (7, 14, 3, 29, 31, 23) if gcd(m, a.M) == 1 and m <= 1 << a.w)[:2]
    m_r = next(m for m in range(a.n, 99) if gcd(m, a.M) == 1)
    for extension in (MixedRadix(a, target), ShenoyKumaresan(a, target, m_r)):
        assert extension.exact.limit == a.M and extension.bound == 1 and extension.never_below
        for x in range(0, a.M, 1 + a.M // 2000):
            assert extended(extension, x) == residues(x, target) and predicted(extension, x) == x
        assert extended(extension, a.M - 1) == residues(a.M - 1, target)


def test_mixed_radix_digits():
    a = bases(17, 16)[0]
    x = a.M - 12345
    digits = MixedRadix(a, (3,)).digits(a.residues(x))
    value, weight = 0, 1
    for v, m in zip(digits, a.moduli, strict=True):
        assert 0 <= v < m
        value, weight = value + v * weight, weight * m
    assert value == x


def test_the_redundant_modulus_must_hold_h():
    """m_r = n - 1 is refused; planted past the check, it loses the largest h."""
    a = Base(5, (31, 29, 27, 25, 23))
    with pytest.raises(ValueError, match=r"m_r >= n does not hold: m_r = 4, n = 5"):
        ShenoyKumaresan(a, (7,), 4)
    with pytest.raises(ValueError, match=r"gcd\(A, m_r\) = 1"):
        ShenoyKumaresan(a, (7,), 5)

    class Small(ShenoyKumaresan):
        def conditions(self):
            return []

    x = a.from_gammas([m - 1 for m in a.moduli])
    small = Small(a, (19,), 4)
    assert extended(small, x) == [predicted(small, x) % 19] != [x % 19]
    assert extended(ShenoyKumaresan(a, (19,), 7), x) == [x % 19]


def test_redundant_modulus_beyond_A():
    """After an approximate extension x + h A goes back exactly only if h fits: the prediction says which."""
    a = Base(5, (31, 29, 27, 25))
    extension = ShenoyKumaresan(a, (23,), 32)
    for x in range(0, 4 * a.M, 997):
        assert extended(extension, x) == [predicted(extension, x) % 23]


@pytest.mark.parametrize("c", [1, 2, 4])
def test_approximate_extension(c):
    a, b = bases(17, 16)
    extension = Approximate.of(a, b.moduli, c)
    assert extension.bound < 16 and extension.exact.limit == 0
    rnd = random.Random(c)
    seen = set()
    top = a.from_gammas([m - 1 for m in a.moduli])
    for x in [0, 1, top, a.M - 1, *(rnd.randrange(a.M) for _ in range(200))]:
        value = predicted(extension, x)
        assert extended(extension, x) == residues(value, b.moduli)
        assert value in outcomes(extension, x) and value < extension.bound * a.M
        seen.add((value - x) // a.M)
    assert max(seen) == 15 == floor(extension.cox.most) and 0 in seen


@pytest.mark.parametrize(("s", "u"), [(7, 0), (8, 1), (9, 2)])
def test_fixed_point_cox_exhaustively(s, u):
    """Moduli far from 2^w: exact below the limit, predicted everywhere; Kawamura's cox has no offset there."""
    extension = FixedPoint.of(FAR, (31, 7), s, u)
    limit = extension.exact.limit
    assert 0 < limit < FAR.M and Cox(FAR, 5, 1, False).error > 1
    for x in range(0, FAR.M, 101):
        value = predicted(extension, x)
        assert extended(extension, x) == residues(value, (31, 7))
        assert value in outcomes(extension, x) and (x >= limit or value == x)
    assert any(predicted(extension, x) != x for x in range(limit, FAR.M))
    smaller = replace(extension, d=extension.d // 2)
    assert any(predicted(smaller, x) != x for x in range(limit))


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("a", [TOY, FAR])
def test_the_error_of_one_column_is_the_maximum(a, lazy):
    """E of Cox (c = 1) and of FixedPointCox by trying every x^."""
    w = a.w
    coxes = [Cox(a, t, 1, lazy) for t in range(1, w + 1)]
    coxes += [FixedPointCox(a, s, 1, lazy, u) for s in (w, w + 1, w + 3) for u in range(w)]
    for cox in coxes:
        total = Fraction(0)
        for i, (m, top) in enumerate(zip(a.moduli, cox.tops, strict=True)):
            assert top == ((1 << w) - 1 if lazy else m - 1)
            scaled = (
                [(x >> cox.drop << cox.drop) * cox.k[i] for x in range(top + 1)]
                if isinstance(cox, FixedPointCox)
                else [x >> cox.drop for x in range(top + 1)]
            )
            total += max(Fraction(x, m) - Fraction(v, 1 << cox.t) for x, v in enumerate(scaled))
        assert total == cox.error


def test_fixed_point_cox_full_size():
    rnd = random.Random(9)
    moduli = tuple(itertools.islice(coprime(rnd.randrange(1 << 16, 1 << 17) | 1 for _ in itertools.count()), 40))
    a, b = Base(17, moduli[::2]), Base(17, moduli[1::2])
    for lazy in (False, True):
        for s, u in ((22, 0), (24, 9)):
            extension = FixedPoint.of(a, b.moduli, s, u, lazy=lazy)
            assert extension.exact.limit > a.M // 4
            assert differs(extension, [*cox_edges(extension), *(rnd.randrange(a.M) for _ in range(20))]) == []
            for x in (rnd.randrange(a.M) for _ in range(20)):
                hats = extension.cox.base.gammas(x)
                assert extension.cox.h(hats, extension.d) == sum(extension.h(hats, extension.tally()))
    with pytest.raises(ValueError, match="s must be at least 17, got 16"):
        FixedPointCox(a, 16)
    with pytest.raises(ValueError, match=r"u must be in 0 \.\.\. 16, got 17"):
        FixedPointCox(a, 20, dropped=17)
    with pytest.raises(ValueError, match="rows of 1"):
        FixedPointCox(a, 20, 2)


def test_counts_are_those_of_the_formulas():
    """Counted while running, on edge operands and on zeros, for n_B = n and n_B = 3, and with a narrow channel."""
    a, b = bases(17, 16)
    for target in (b.moduli, b.moduli[:3], (*b.moduli[:3], 101)):
        extensions = [
            MixedRadix(a, target), ShenoyKumaresan(b, a.moduli, 89), ShenoyKumaresan(b, a.moduli, (1 << 17) - 163),
            KBE.of(a, target, 5), FixedPoint.of(a, target, 20), Approximate.of(a, target),
            *(HBE.of(a, target, 5, c) for c in (2, 4, 8)), Approximate.of(a, target, 4),
        ]  # fmt: skip
        for extension in extensions:
            assert extension.count == extension.formula.count, extension
            tally = extension.tally()
            extension.extend([m - 1 for m in extension.reads], tally)
            assert tally.count == extension.count


@pytest.mark.parametrize("n", [8, 12, 16])
def test_counts_of_the_paper(n):
    """Section IV-C: KBE n^2 + n CMM; HBE r^2 c (CMM + 2 CADD + CMR) + r c (CMM + CMUL + CADD(cw, cw))."""
    a, b = bases(20, n)
    assert KBE.of(a, b.moduli, 5).count == Count(mm=n * n + n, add=2 * n * n, small=n)
    for c in (2, 4):
        r = n // c
        expected = Count(mm=r * r * c + n, mr=r * r * c, mul=n, add=2 * r * r * c, wide=n, small=r)
        assert HBE.of(a, b.moduli, 5, c).count == expected
    m_r = 89  # narrow: its n + 1 products are small
    shenoy = ShenoyKumaresan(a, b.moduli, m_r).count
    assert shenoy.mm + n + 1 == n + n * (n + 1) + 1
    assert MixedRadix(a, b.moduli).count.mm == n * (n - 1) // 2 + n * (n - 1)


def test_the_h_of_an_extension_is_that_of_its_cox():
    a, b = bases(17, 4)
    x = 987654321987
    for extension in (KBE.of(a, b.moduli, 6), HBE.of(a, b.moduli, 6)):
        hats = extension.hats(a.gammas(x), extension.tally())
        h = sum(extension.h(hats, extension.tally()))
        assert hats == extension.cox.hats(a.gammas(x)) and h == extension.cox.h(hats, extension.d)
        assert x == sum(v * (a.M // p) for v, p in zip(hats, extension.cox.products, strict=True)) - h * a.M
        assert extended(extension, x) == residues(x, b.moduli)


def test_refusals():
    a, b = bases(17, 4)
    with pytest.raises(ValueError, match=r"gcd\(A, b\) = 1 does not hold: 131071 shares 131071 with A"):
        KBE.of(Base(17, (131071, 131069)), (131071,), 5)
    with pytest.raises(ValueError, match=r"0 <= d < 2\^t does not hold: d = 32, t = 5"):
        KBE.of(a, b.moduli, 5, 32)
    with pytest.raises(ValueError, match="4 moduli do not fill rows of 3"):
        HBE.of(a, b.moduli, 5, 3)
    with pytest.raises(ValueError, match="one scale for each target does not hold: 1 scales, 4 targets"):
        KBE.of(a, b.moduli, 5).scaled((1,))


def test_the_tally_refuses_what_does_not_fit():
    tally = Tally(8, 3)
    assert tally.hat_bits == 26
    for call, message in (
        (lambda: tally.mm(256, 1, 200), "MM takes 8 bits, got 256 of 9 bits"),
        (lambda: tally.mul(1, (1 << 16) + 1), "MUL takes 16 bits"),
        (lambda: tally.mr(1 << 26, 200), "MR takes 26 bits"),
        (lambda: tally.mac(0, -1, 1), "MM takes 8 bits, got -1"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert tally.count == Count()
    tally.mm(3, 5, 128)
    tally.mm(3, 5, 129)
    assert tally.count == Count(mm=1, small=1)
    assert Count(1, 2, 3, 4, 5, 6) + Count(10, 20, 30, 40, 50, 60) == Count(11, 22, 33, 44, 55, 66)
    for ratio in (0, -2):
        with pytest.raises(ValueError, match=f"ratio CMM/CMR must be positive, got {ratio}"):
            Count(1, 1).cmm(ratio)
