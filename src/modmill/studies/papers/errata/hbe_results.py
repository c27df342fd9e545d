# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Errors of the HBE paper that concern its algorithms: exactness of the extensions, and their constants."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

from modmill.numbers.moduli import parse_modulus
from modmill.numbers.montgomery import unreduced
from modmill.numbers.rns.base_pairs import base_pair, deal, sufficiency
from modmill.numbers.rns.choice_of_moduli import choose_moduli
from modmill.numbers.rns.cox import Cox
from modmill.numbers.rns.extension import HBE
from modmill.numbers.rns.residues import Base
from modmill.report.errata import Figure, Item, Value, Verdict, decimal
from modmill.studies.papers.hbe_tables import FIELDS, TABLE_III, WIDTHS, paper_n

P256, P384 = (parse_modulus(FIELDS[bits]).value for bits in (256, 384))
COUNTEREXAMPLE = Base(7, (128, 127, 125, 123, 121, 119)), 16_099_609_826
"""A base of six moduli, and an X below A / 2."""


def bound(t: int, reading: int) -> Fraction:
    """n (d_m + e_m) of the counterexample. Reading 1: d_m = 2^(w-t) / a as assumed after (6); 2: the largest error that
    occurs, (2^(w-t) - 1) / a."""
    base, _ = COUNTEREXAMPLE
    d = max(Fraction(2 ** (7 - t) - (reading == 2), a) for a in base.moduli)
    return base.n * (d + max(Fraction(u, 128) for u in base.u))


def excess(cox: Cox, x: int, d: int) -> int:
    """k where the extension with offset ``d`` returns x + k A."""
    hats = cox.hats(cox.base.gammas(x))
    total = sum(hat * (cox.base.M // product) for hat, product in zip(hats, cox.products, strict=True))
    return (total - x) // cox.base.M - cox.h(hats, d)


def _additional_constraint() -> Sequence[Value]:
    base, x = COUNTEREXAMPLE
    kbe = [excess(Cox(base, 7, 1, lazy=False), x, 64)]
    hbe = {excess(Cox(base, t, 3, lazy=False), x, 1 << (t - 1)) for t in range(7, 22)}
    words = {0: "X", 1: "X + A"}
    return [
        *(decimal(bound(t, reading), 4) for t in (6, 7) for reading in (1, 2)),
        "yes" if 2 * x < base.M else "no",
        *("; ".join(words[k] for k in sorted(some)) for some in (kbe, hbe)),
        "refuses" if Cox(base, 21, 3, lazy=False).offset > 1 << 20 else "accepts", _refused_of_table_iii(),
    ]  # fmt: skip


def _refused_of_table_iii() -> str:
    refused = tried = 0
    for bits, w, t, c in product(FIELDS, WIDTHS, range(4, 8), (2, 4)):
        n = paper_n(bits, w)
        pair = deal(choose_moduli(w, 2 * n, even=True).moduli)
        for base in (pair.a, pair.b) if n % c == 0 else ():
            if n * Fraction(max(base.u), 1 << w) + n * Fraction(1 << (w - t), min(base.moduli)) < Fraction(1, 2):
                tried += 1
                refused += Cox(base, t, c, lazy=False).offset > 1 << (t - 1)
    return f"{refused} of {tried}"


def _rule_for_n() -> Sequence[Value]:
    rule = paper_n(384, 24)
    pair = deal(choose_moduli(24, 2 * rule, even=True).moduli, 2)
    result = unreduced(P384 - 1, P384 - 1, P384, pair.a.M)
    enough = [sum(base_pair(parse_modulus(FIELDS[bits]).value, w, 2)[0].n <= paper_n(bits, w) for w in WIDTHS)
              for bits in (256, 384)]  # fmt: skip
    kbe = next(row for row in TABLE_III if (row.bits, row.w, row.algorithm) == (384, 24, "KBE"))
    return [
        rule, "yes" if max(pair.a.M, pair.b.M) < P384 else "no", "yes" if result < pair.b.M else "no",
        base_pair(P384, 24, 2)[0].n, sum(enough), f"{kbe.dsp} = 4 ({kbe.dsp // 4 - 1} + 1)",
    ]  # fmt: skip


def _pair(columns: int = 1) -> tuple[Base, Base]:
    """Bases for 256 bits with w = 17, n = 16: the greedy choice, dealt."""
    pair = base_pair(P256, 17, columns, n=16)[0]
    return pair.a, pair.b


def _sum_of_h() -> Sequence[Value]:
    a, _ = _pair()
    cox, rnd = Cox(a, 5, 1, lazy=False), random.Random(4)
    short = sum(excess(cox, rnd.randrange(a.M), 0) for _ in range(400))
    near = sum(excess(cox, a.M - rnd.randrange(1, a.M >> 6), 0) for _ in range(400))
    small = sum(excess(cox, rnd.randrange(a.M >> 6), 0) for _ in range(400))
    return [short, near, small]


def _second_extension() -> Sequence[Value]:
    a, b = _pair()
    right = {0: 0, 1: 0}
    rnd = random.Random(6)
    for _ in range(200):
        s, y = rnd.randrange(P256), rnd.randrange(P256)
        for k in right:
            q = -(s + k * b.M) * y * pow(P256, -1, a.M) % a.M
            result = (s * y + q * P256) * pow(a.M, -1, b.M) % b.M  # what B holds of the next product
            right[k] += (result * a.M - s * y) % P256 == 0
    cox = Cox(b, 5, 1, lazy=False)
    return [right[1], right[0], "yes" if excess(cox, 1, 0) == 1 else "no"]


def _delta() -> Sequence[Value]:
    a, _ = _pair()
    rnd = random.Random(2)
    seen: set[int] = set()
    beyond: set[int] = set()
    for _ in range(300):
        for found, x in ((seen, rnd.randrange(a.M * P256)), (beyond, rnd.randrange(3 * a.M * P256, 4 * a.M * P256))):
            q = -x * pow(P256, -1, a.M) % a.M
            k = excess(Cox(a, 5, 1, lazy=False), q, 0)
            found.add((x + (q + k * a.M) * P256) // a.M // P256)
    q = 1  # the first extension returns Q + A for a small Q
    x = a.M * P256 - (a.M * P256 + q * P256) % a.M
    x -= a.M if x >= a.M * P256 else 0
    k = excess(Cox(a, 5, 1, lazy=False), -x * pow(P256, -1, a.M) % a.M, 0)
    seen.add((x + (q + k * a.M) * P256) // a.M // P256)
    return [", ".join(map(str, sorted(seen))), ", ".join(map(str, sorted(beyond)))]


def _range_of_exactness() -> Sequence[Value]:
    a, _ = _pair()
    cox = Cox(a, 5, 1, lazy=False)
    limit = cox.limit(16)
    beyond = any(excess(cox, limit + k * (a.M >> 12), 16) for k in range(1, 2000))
    return ["A / 2" if 2 * limit == a.M + a.M % 2 else "another", f"{limit // P256} P", "yes" if beyond else "no"]


def _constants() -> Sequence[Value]:
    a, b = _pair(2)
    hbe = HBE.of(a, b.moduli, 4, 2)
    first = hbe.spread([], [], hbe.tally())[0]  # x_b before the first row
    return [first, a.n, a.n + len(hbe.cox.cofactors) + sum(map(len, hbe.weights)) + len(hbe.minus)]


def _least_t() -> Sequence[Value]:
    out: list[Value] = []
    for bits in (256, 384):
        p = parse_modulus(FIELDS[bits]).value
        for c in (1, 2):
            ts = []
            for w in WIDTHS:
                n = 18 if (bits, w) == (384, 24) else paper_n(bits, w)  # item 2
                ts.append(sufficiency(base_pair(p, w, c, n=n)[0], p).t + c - 1)
            out.append(", ".join(map(str, ts)))
    row = Cox(_pair(2)[0], 4, 2)
    d_a = max(Fraction((1 << row.drop) - 1, product) for product in row.products)
    d_m = max(Fraction(1 << (row.base.w - 4), m) for m in row.base.moduli)
    return [*out, "yes" if d_a < 2 * d_m else "no", decimal(d_a / d_m, 3)]


ITEMS = (
    Item(
        1, "Section IV-B",
        "HBE has no additional constraint: a base for KBE with n (d_m + e_m) < 1/2 serves HBE with t' = t + 1 bits "
        "for c = 2, t + 2 for c = 3 and 4",
        "d_m = 2^(w-t) / min a, as assumed after (6).", Verdict.WRONG,
        "The proof of (5) bounds X^_i / A_i by 1; it reaches c, so the error of replacing A_i by 2^(c w) counts c "
        "times. Counterexample: A = (128, 127, 125, 123, 121, 119), w = 7, c = 3, t = 7, X = 16099609826. KBE is "
        "exact, but HBE returns X + A, with any number of bits from t + 2 up to all 3 w + 2. (With t = 6 the same "
        "happens, but the first reading of d_m then gives 0.5227, above the paper's own bound.) The exact error sum "
        "of the rows decides for each base; it refuses none of the bases of Table III.",
        "d_m = (2^(w-t) - 1) / min a, the largest error that occurs; the condition is fulfilled in both.",
        (
            Figure("n (d_m + e_m) at t = 6, first reading", None, "0.5227"),
            Figure("n (d_m + e_m) at t = 6, other reading", None, "0.4723"),
            Figure("n (d_m + e_m) at t = 7, first reading", None, "0.4723"),
            Figure("n (d_m + e_m) at t = 7, other reading", None, "0.4219"), Figure("X < A / 2", "yes", "yes"),
            Figure("KBE with t = 7, sigma = 1/2, returns", "X", "X"),
            Figure("HBE with t' = 9 ... 23, sigma = 1/2, returns", "X", "X + A"),
            Figure("our exact condition for rows", None, "refuses"),
            Figure(
                "bases of Table III, c = 2 and 4, t = 4 ... 7, with the paper's condition: refused", None, "0 of 62",
            ),
        ),
        _additional_constraint, ("tests/numbers/test_cox.py::test_counterexample_to_the_papers_condition_for_rows",),
    ),
    Item(
        2, "Section VI", '"n is the smallest multiple of c such that n w > log2 P"',
        "these n serve RNS Montgomery multiplication, for which the extensions are made.", Verdict.PARTLY,
        "Algorithm 3 in a loop needs A >= 4 g P, with g = 1 + E or more. For 384 bits and w = 24 the rule gives n = "
        "16, where A is below P and even the first squaring can be wrong; n = 18 is needed. The DSP blocks of Table "
        "III suggest that 18 were used. It is the only case of Table III where n w equals the bits of P.",
        "n for a single extension of a number below A; any n serves that.",
        (
            Figure("384 bits, w = 24: n by the rule", 16, 16), Figure("A and B below P-384", "no", "yes"),
            Figure("(P - 1)^2 A^-1 mod P of Algorithm 3 is below B", "yes", "no"),
            Figure("the least even n that is proved to close the loop", 16, 18),
            Figure("of the 8 cases of Table III, n by the rule suffices in", 8, 7),
            Figure("DSP blocks of KBE, 384 bits, w = 24", None, "76 = 4 (18 + 1)"),
        ),
        _rule_for_n, ("tests/numbers/test_rns_montgomery.py::test_erratum_n_w_above_log2_p_is_not_enough",),
    ),
    Item(
        3, "Section III-B",
        '"If X is close to A with X < A, choosing sigma = 0 leads to sum h = h - 1 and the output is X or X + A"',
        "for X close to A the sum is h - 1.", Verdict.PARTLY,
        "With sigma = 0 the sum is h or h - 1. The output is X + A if and only if X / A is smaller than the error of "
        "the truncations, that is for small X, and never for X close to A.",
        "X may be anywhere below A, and the output is X or X + A; this holds.",
        (
            Figure("of 400 random X: sum h = h - 1", 400, 102),
            Figure("of 400 numbers X within A / 64 of A: sum h = h - 1", 400, 0),
            Figure("of 400 numbers X below A / 64: sum h = h - 1", 400, 400),
        ),
        _sum_of_h, ("tests/numbers/test_extension.py::test_erratum_without_offset_small_numbers_gain_A",),
    ),
    Item(
        4, "Section IV-B2", 'X or X + A "is sufficient for ... the second extension in RNS Montgomery reduction"',
        "the second extension of Algorithm 3 may return S + B.", Verdict.WRONG,
        "It holds for the first extension. The second must be exact, as Section V itself states: residues of S + B in "
        "A and of S in B are no number, and the next product is wrong.",
        "the first extension, whose result is multiplied by P; this holds.",
        (
            Figure("200 products after a second extension that gave S + B: right", 200, 0),
            Figure("200 products after an exact one: right", 200, 200),
            Figure("S = 1 comes out as S + B with sigma = 0", None, "yes"),
        ),
        _second_extension,
    ),
    Item(
        5, "Algorithm 3", "delta in {0, 1, 2}", "for every X that the bases can represent.", Verdict.PARTLY,
        "True for X < A P, with all three values; delta grows with X.",
        "for X < A P, as the product of two numbers below P is; this holds.",
        (
            Figure("delta for X < A P", "0, 1, 2", "0, 1, 2"),
            Figure("delta for 3 A P <= X < 4 A P", "0, 1, 2", "3, 4, 5"),
        ),
        _delta, ("tests/numbers/test_rns_montgomery.py::test_delta_of_algorithm_3",),
    ),
    Item(
        10, "Section IV-B2", "X < (1 - alpha) M", "M is the modulus of the cryptosystem, as in Section III-A.",
        Verdict.MISPRINT, "The product of the base is A.", "M is the product of the base, as in [9]; this is meant.",
        (
            Figure("w = 17, n = 16, t = 5, alpha = 1/2: the extension is exact below", "P / 2", "A / 2"),
            Figure("A / 2 for the prime of secp256k1", None, "32540 P"),
            Figure("some X beyond it are not exact", None, "yes"),
        ),
        _range_of_exactness,
    ),
    Item(
        11, "Section IV-A, Algorithm 2", "line 14 reduces X^ modulo x_b; the only precomputed values are T",
        "as printed.", Verdict.MISPRINT,
        "Line 14 reduces modulo b_(k,l), as Algorithm 2 itself has it; x_b is the sum, which begins with 0. The rows' "
        "weights |A / A_i|, the cofactors in a row and |-A| are constants too.",
        figures=(
            Figure("line 14: x_b at the first reduction; a modulus cannot be 0", None, 0),
            Figure("w = 17, n = 16, c = 2: constants T", None, 16),
            Figure("w = 17, n = 16, c = 2: all constants", 16, 176),
        ),
        compute=_constants,
    ),
    Item(
        12, "Section IV-B2, (7)", "d_A < 2 d_m, so HBE with c = 2 keeps t' = t + 1 MSBs of the 2w + 1 bits of X^",
        "HBE needs one bit more than KBE.", Verdict.PARTLY,
        "True but very loose: d_A and d_m are nearly equal. Counted as the paper counts, from the top of 2w + 1 bits, "
        "HBE needs as many bits as KBE; counted from the top of 2w bits, one less.",
        "HBE needs at most one bit more; this holds.",
        (
            Figure("256 bits, w = 17, 20, 24, 28: t of KBE", None, "5, 4, 4, 4"),
            Figure("256 bits: t' of HBE, MSBs of 2w + 1 bits", "6, 5, 5, 5", "5, 4, 4, 4"),
            Figure("384 bits: t of KBE", None, "5, 5, 5, 4"),
            Figure("384 bits: t' of HBE, MSBs of 2w + 1 bits", "6, 6, 6, 5", "5, 5, 5, 4"),
            Figure("w = 17, t = 4: d_A < 2 d_m", "yes", "yes"), Figure("w = 17, t = 4: d_A / d_m", None, "1.001"),
        ),
        _least_t, ("tests/numbers/test_base_pairs.py::test_least_t",),
    ),
)  # fmt: skip
