# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""RNS Montgomery multiplication: results, bounds, chains, counted operations, and every refusal."""

import itertools
import random
from dataclasses import replace
from fractions import Fraction
from math import ceil, prod
from types import SimpleNamespace

import pytest
from predicted import predicted

from modmill.numbers.moduli import parse_modulus
from modmill.numbers.primes import is_prime
from modmill.numbers.rns.counting import Count
from modmill.numbers.rns.cox import Cox
from modmill.numbers.rns.cox_edges import cox_edges
from modmill.numbers.rns.double_level import DoubleLevel
from modmill.numbers.rns.exact_extension import MixedRadix
from modmill.numbers.rns.extension import KBE
from modmill.numbers.rns.hybrid_position import HybridPosition
from modmill.numbers.rns.quadratic_residues import DoubleQ, SingleQ, root
from modmill.numbers.rns.residues import Base, coprime, pseudo_mersenne
from modmill.numbers.rns.rns_montgomery import Full, Gandino, Guillermin, pair_of

P256, SECP = (parse_modulus(name).value for name in ("P-256", "secp256k1"))
P384, BP384 = (parse_modulus(name).value for name in ("P-384", "brainpoolP384r1"))
# bits of p, w, n, and the fewest bits in the coxes of KBE and of HBE with c = 2
SIZES = [
    (256, 17, 16, 5, 4), (256, 20, 14, 4, 3), (256, 24, 12, 4, 3), (256, 28, 10, 4, 3),
    (384, 17, 24, 5, 4), (384, 20, 20, 5, 4), (384, 24, 18, 5, 4), (384, 28, 14, 4, 3),
]  # fmt: skip


def dealt(w, moduli):
    return Base(w, tuple(moduli[::2])), Base(w, tuple(moduli[1::2]))


def greedy(w, n, even=True):
    return dealt(w, list(itertools.islice(pseudo_mersenne(w, even=even), 2 * n)))


def primes(w, n, residue):
    """The largest w-bit primes that are ``residue`` mod 4."""
    top = (1 << w) - 4 + residue
    return dealt(w, list(itertools.islice((m for m in range(top, 1 << (w - 1), -4) if is_prime(m)), 2 * n)))


def far(w, n, seed):
    """Odd moduli anywhere in [2^(w-1), 2^w)."""
    rnd = random.Random(seed)
    return dealt(
        w, list(itertools.islice(coprime(rnd.randrange(1 << (w - 1), 1 << w) | 1 for _ in range(9999)), 2 * n))
    )


METHODS = {
    "full": lambda p: Full.of(p, *greedy(17, 16)),
    "full, hierarchical": lambda p: Full.of(p, *greedy(17, 16), c=4),
    "full, no cox": lambda p: Full.without_cox(p, *greedy(17, 17, even=False), 32),
    "mixed radix": lambda p: Full(p, *(MixedRadix(s, t.moduli) for s, t in itertools.permutations(greedy(24, 12)))),
    "Gandino": lambda p: Gandino.of(p, *greedy(17, 16)),
    "Guillermin": lambda p: Guillermin.of(p, *greedy(20, 14)),
    "HBE c = 2": lambda p: Gandino.of(p, *greedy(17, 16), c=2),
    "HBE c = 3": lambda p: Gandino.of(p, *greedy(24, 12), c=3),
    "HBE c = 4": lambda p: Guillermin.of(p, *greedy(24, 12), c=4),
    "sQ": lambda p: SingleQ.of(p, *primes(17, 16, 3)),
    "dQ": lambda p: DoubleQ.of(p, *primes(17, 16, 3)),
    "dQ, hierarchical": lambda p: DoubleQ.of(p, *primes(20, 14, 3), c=2),
    "double level": lambda p: DoubleLevel.of(p, *greedy(17, 16, even=False)),
    "double level, fixed point": lambda p: DoubleLevel.fixed_point(p, *far(17, 18, 5), 22, 2),
}
# the n^2 and n terms of the MM of each, the n^2 term of MR, the n term of MUL
COSTS = {
    "full": (2, 7, 0, 0), "full, hierarchical": (Fraction(1, 2), 7, Fraction(1, 2), 2), "full, no cox": (2, 7, 0, 0),
    "mixed radix": (3, 2, 0, 0), "Gandino": (2, 4, 0, 0), "Guillermin": (2, 5, 0, 0), "HBE c = 2": (1, 4, 1, 2),
    "HBE c = 3": (Fraction(2, 3), 4, Fraction(2, 3), 2), "HBE c = 4": (Fraction(1, 2), 5, Fraction(1, 2), 2),
    "sQ": (2, 3, 0, 0), "dQ": (2, 3, 0, 0), "dQ, hierarchical": (1, 3, 1, 2),
    "double level": (2, 4, 0, 0), "double level, fixed point": (2, 4, 0, 0),
}  # fmt: skip


def operands(m, seed=1):
    """0, 1, around p, and the largest that the contract allows, among random ones."""
    rnd = random.Random(seed)
    top = -(-(m.bounds[0] * m.p).numerator // (m.bounds[0] * m.p).denominator) - 1
    return [0, 1, m.p - 1, m.p, m.p + 1, top, top - 1, rnd.randrange(m.p), rnd.randrange(top)]


@pytest.mark.parametrize("p", [P256, SECP], ids=["P-256", "secp256k1"])
@pytest.mark.parametrize("method", METHODS)
def test_products_and_chains(method, p):
    """All pairs of edge operands, then 100 dependent products that start from the largest operand."""
    m = METHODS[method](p)
    operand, result = m.bounds
    assert operand > 2 and result <= operand and m.factor * m.a.M % p == 1
    for x, y in itertools.product(operands(m)[:7], operands(m)[4:]):
        z = m.decode(m.multiply(m.encode(x), m.encode(y)))
        assert z < result * p and (z * m.a.M - x * y) % p == 0
    with pytest.raises(ValueError, match="operands are in 0"):
        m.encode(operands(m)[5] + 1)
    x = y = m.encode(operands(m)[5])
    value = other = operands(m)[5]
    for k in range(100):
        z = m.multiply(x, y)
        value, other = value * other * m.factor % p, value
        x, y = z, (x if k % 3 else z)
        other = value if k % 3 == 0 else other
        assert m.decode(z) % p == value and m.decode(z) < result * p


@pytest.mark.parametrize("method", METHODS)
def test_counted_operations_equal_the_formulas(method):
    """One product as run, and the literature's terms in n."""
    m = METHODS[method](P256)
    count = m.count
    assert count.multiplications == m.formula.count.multiplications
    if type(m) is Full:  # its formula has all kinds
        assert count == m.formula.count
    tally = m.tally()
    x = m.encode(operands(m)[5])
    m.multiply(x, x, tally)
    assert tally.count == count
    n = m.a.n
    square, linear, mr, mul = COSTS[method]
    assert count.multiplications == Count(int(square * n * n + linear * n), int(mr * n * n), mul * n)


def test_counted_operations_of_the_reduction():
    """Without the product of the operands: 2 n^2 + 5 n (Algorithm 3), 2 n^2 + 2 n (Gandino)."""
    for cls, linear in ((Full, 5), (Gandino, 2), (Guillermin, 3)):
        m = cls.of(P256, *greedy(20, 14))
        tally = m.tally()
        m.reduce(m.encode(5), tally)
        assert tally.count.mm == 2 * 14**2 + linear * 14


@pytest.mark.parametrize(("bits", "w", "n", "t_kbe", "t_hbe"), SIZES)
def test_full_sizes(bits, w, n, t_kbe, t_hbe):
    """The fewest bits of the cox, the same results with KBE and HBE, and edges of both coxes inside the product."""
    rnd = random.Random(w * n)
    ps = (P256, SECP) if bits == 256 else (P384, BP384)
    for p in ps:
        kbe, hbe = Gandino.of(p, *greedy(w, n)), Gandino.of(p, *greedy(w, n), c=2)
        assert (kbe.first.cox.t, hbe.first.cox.t) == (t_kbe, t_hbe)
        for m in (kbe, hbe):
            assert m.bounds[1] <= m.bounds[0]
            A, top = m.a.M, int(m.bounds[0] ** 2 * p * p) - 1
            for q in rnd.sample(cox_edges(m.first), 12):  # Q = q: the first extension at its edges
                s = top - (top + q * p) % A
                for x in (s, s % A):
                    pair = ([x % k for k in m.a.moduli], [x * v * v % k for v, k in zip(m.v, m.b.moduli, strict=True)])
                    z = m.decode(m.reduce(pair))
                    assert (z * A - x) % p == 0 and z == (x + predicted(m.first, q) * p) // A < m.bounds[1] * p
        # one subtraction finishes after a product by 1
        assert m.decode(m.multiply(m.encode(operands(m)[5]), m.encode(1))) < 2 * p
    with pytest.raises(ValueError, match="does not hold"):
        Gandino.of(ps[0], *greedy(w, n), t=t_kbe - 1)


def test_delta_of_algorithm_3():
    """S = X A^-1 mod P + delta P with delta in {0, 1, 2} for X < A P; all three occur, 2 only where Q + A comes out."""
    p = P256
    m = Full.of(p, *greedy(17, 16))
    A, top = m.a.M, m.a.M * p
    seen = {0: 0, 1: 0, 2: 0}
    rnd = random.Random(2)
    numbers = [rnd.randrange(top) for _ in range(60)]
    for q in cox_edges(m.first)[:60]:
        x = top - (top + q * p) % A
        numbers += [x if x < top else x - A, -q * p % A]
    for x in numbers:
        s = m.decode(m.reduce(([x % k for k in m.a.moduli], [x % k for k in m.b.moduli])))
        delta, rest = divmod(s, p)
        assert rest == x * m.factor % p
        seen[delta] += 1
        q = x * pow(-p, -1, A) % A
        assert delta < 2 or predicted(m.first, q) == q + A
    assert all(seen.values()) and sum(seen.values()) == 180
    x = 3 * top  # beyond A P the claim fails
    s = m.decode(m.reduce(([x % k for k in m.a.moduli], [x % k for k in m.b.moduli])))
    assert s // p > 2


@pytest.mark.parametrize("p", [3, 5, 7, 13])
def test_toys_exhaustively(p):
    """Every pair of operands below 4 p, on bases of 5 bits, with a cox that errs in the first extension."""
    a, b = Base(5, (31, 29)), Base(5, (32, 25 if p == 3 else 27))
    erred = 0
    for m in (
        Full.of(p, a, b, operand=Fraction(4)),
        Gandino.of(p, a, b, operand=Fraction(4)),
        Guillermin.of(p, a, b, operand=Fraction(4)),
        SingleQ.of(p, Base(5, (31, 23)), b, operand=Fraction(4)),
    ):
        stored = [m.encode(x) for x in range(4 * p)]
        for x, y in itertools.product(range(4 * p), repeat=2):
            z = m.decode(m.multiply(stored[x], stored[y]))
            assert z < m.bounds[1] * p and (z * m.a.M - x * y) % p == 0
        erred += sum(predicted(m.first, q) >= m.a.M for q in range(m.a.M))
    assert erred


def test_a_wrong_constant_is_found():
    m = Gandino.of(P256, *greedy(17, 16))
    x = m.encode(P256 - 2)
    right = m.decode(m.multiply(x, x))

    class Wrong(Gandino):
        changed = "k"

        @property
        def k(self):
            return self._one_more("k")

        @property
        def e(self):
            return self._one_more("e")

        def _one_more(self, name):
            values = getattr(super(), name)
            return (values[0] + 1, *values[1:]) if self.changed == name else values

    for name in ("k", "e", None):
        wrong = Wrong(m.p, m.first, m.second, m.operand)
        object.__setattr__(wrong, "changed", name)
        if name is None:
            assert wrong.decode(wrong.multiply(x, x)) == right
            continue
        try:
            found = wrong.decode(wrong.multiply(x, x))
        except ValueError as reason:
            assert "does not belong to" in str(reason)
        else:
            assert (found - right) % m.p


def test_decode_refuses_bases_that_disagree():
    m = Gandino.of(P256, *greedy(17, 16))
    in_a, in_b = m.encode(12345)
    assert m.decode((in_a, in_b)) == 12345
    with pytest.raises(ValueError, match="residue 12346 modulo 131072 does not belong to 12345"):
        m.decode(([in_a[0] + 1, *in_a[1:]], in_b))


def test_erratum_n_w_above_log2_p_is_not_enough():
    """384 bits, w = 24, n = 16 (n w >= 384): A is below p, and the first squaring of Algorithm 3 can be wrong."""
    a, b = greedy(24, 16)
    with pytest.raises(ValueError, match=r"A >= 4 g p does not hold: p / A = 1\.00\d*, g = 1\.\d+"):
        Full.of(P384, a, b)

    class Unchecked(Full):
        def conditions(self):
            return []

    first, second = pair_of(a, b, 8)
    m = Unchecked(P384, first, second, Fraction(1))
    x = m.multiply(m.encode(P384 - 1), m.encode(P384 - 1))
    assert m.b.number(x[1]) % P384 != m.factor
    assert Full.of(P384, *greedy(24, 18)).bounds[0] > 2


def planted(change):
    a, b = greedy(17, 16)
    first, second = pair_of(a, b, 6)
    return lambda: change(a, b, first, second)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a, b, f, s: Full(2, f, s), "p >= 3 does not hold: p = 2"),
        (lambda a, b, f, s: Full(P256, f, f), "the extensions run from A to B and back does not hold"),
        (lambda a, b, f, s: Full(131069 * P256, f, s), r"gcd\(p, A B\) = 1 does not hold: they share 131069"),
        (lambda a, b, f, s: Full(P256, replace(f, d=1), s), "Q from the first extension >= 0 does not hold"),
        (lambda a, b, f, s: Full(P256, f, replace(s, d=s.d - 1)), "the second extension is exact does not hold: .*E"),
        (lambda a, b, f, s: Full(P384, f, s), "A >= 4 g p does not hold: p / A = "),
        (lambda a, b, f, s: Full(P256, f, s, Fraction(1)), r"p lambda\^2 / A \+ g <= lambda does not hold"),
        (lambda a, b, f, s: Full(P256, f, s, Fraction(1 << 17)), r"lambda\^2 / A \+ g <= lambda does not hold"),
        (lambda a, b, f, s: Full(P256, f, KBE.of(b, a.moduli, 6, 60), Fraction(5000)), "lambda p <= exact limit"),
        (lambda a, b, f, s: DoubleLevel(P256, f, s), "all moduli odd does not hold: 131072 is even"),
        (lambda a, b, f, s: SingleQ(P256, f, s), r"K\^2 = \+-c mod m .* does not hold: m = 131072, composite"),
    ],
)
def test_conditions_name_the_one_that_fails(change, message):
    with pytest.raises(ValueError, match=message):
        planted(change)()


def test_more_refusals():
    a, b = greedy(17, 16, even=False)
    with pytest.raises(ValueError, match=r"some closed lambda does not hold: limit / p = 0\.\d+, p / A"):
        Full.of(P256, a, Base(17, b.moduli[:15]), t=5)
    with pytest.raises(ValueError, match="both coxes for lazy residues"):
        DoubleLevel(P256, *pair_of(a, b, 6))
    with pytest.raises(ValueError, match=r"2\^W2 >= \(n \+ 2\) 2\^w does not hold: W2 = 21, n = 16, w = 17"):
        DoubleLevel.of(P256, a, b, W2=21)
    with pytest.raises(ValueError, match=r"gcd\(A, b\) = 1"):
        Full.of(P256, a, a)
    with pytest.raises(ValueError, match=r"1 mod 4"):
        SingleQ.of(P256, *primes(17, 16, 1))


def test_double_level_sums_stay_in_range():
    """The inner reduction is below 2^w for every sum it accepts; W2 one smaller breaks it (planted)."""
    m = DoubleLevel.fixed_point(7, Base(5, (31, 29, 23)), Base(5, (27, 25, 19)), 9)
    assert m.inner == 5 + 3

    class Small(DoubleLevel):
        def conditions(self):
            return []

    small = Small(m.p, m.first, m.second, None, 6)
    for modulus in (31, 19):
        top = (5 << 5) * modulus
        results = [m.reduction(total, modulus) for total in range(top)]
        assert all(r < 32 and (r << m.inner) % modulus == t % modulus for t, r in enumerate(results))
        with pytest.raises(ValueError, match="a sum of"):
            m.reduction(top, modulus)
        assert max(small.reduction(total, modulus) for total in range(top)) >= 32


@pytest.mark.parametrize("residue", [1, 3])
def test_roots(residue):
    for m in [m for m in range(3, 400) if is_prime(m) and m % 4 == residue]:
        for c in range(1, m):
            K = root(c, m)
            squares = {x * x % m for x in range(1, m)}
            assert (K is None) == (residue == 1 and c not in squares)
            assert K is None or K * K % m in ((c, m - c) if residue == 3 else (c,))


def test_quadratic_residues_modulo_primes_that_are_1_mod_4():
    """The source's condition: such moduli serve when the constant happens to be a square."""
    p, found = 1009, 0
    for moduli in itertools.combinations((97, 101, 109, 113, 89, 73), 3):
        b = Base(7, (127, 103, 107))
        try:
            m = SingleQ.of(p, Base(7, moduli), b)
        except ValueError:
            continue
        found += 1
        for x, y in itertools.product(operands(m), repeat=2):
            z = m.decode(m.multiply(m.encode(x), m.encode(y)))
            assert (z * m.a.M - x * y) % p == 0 and z < m.bounds[1] * p
    assert found


def hybrid_bases(d, w, n, beta=2, seed=1):
    """A of n / d odd moduli with A^d - beta prime, and B of as few others as do (a multiple of 2 of them)."""
    rnd = random.Random(seed)
    pool = list(itertools.islice(pseudo_mersenne(w), 3 * n))
    for _ in range(2000):
        draw = tuple(sorted(rnd.sample(pool[:n], n // d), reverse=True))
        if is_prime(prod(draw) ** d - beta):
            rest = [m for m in pool if m not in draw]
            return Base(w, draw), Base(w, tuple(rest[: n // d + 2]))
    raise AssertionError("no prime in 2000 draws")


@pytest.mark.parametrize("c", [1, 2])
@pytest.mark.parametrize(("d", "w", "n"), [(2, 17, 16), (4, 17, 16), (4, 24, 16), (2, 28, 8)])
def test_hybrid_position_residues(d, w, n, c):
    """Products of edge digits and 100 dependent ones for a prime M^d - 2."""
    a, b = hybrid_bases(d, w, n)
    m = HybridPosition.of(d, 2, a, b, c=c)
    assert is_prime(m.p) and m.factor == 1 and m.kappa < 2
    rnd = random.Random(n)
    top = ceil(m.kappa * a.M) - 1
    kinds = [[0] * d, [1] + [0] * (d - 1), [top] * d, [0] * (d - 1) + [top], [top] + [0] * (d - 1)]
    kinds += [[x] * d for x in rnd.sample(cox_edges(m.first), 3)]
    for xs, ys in itertools.product(kinds, kinds):
        z = m.multiply(m.digits(xs), m.digits(ys))
        x, y = (sum(v * a.M**k for k, v in enumerate(values)) for values in (xs, ys))
        assert m.decode(z) % m.p == x * y % m.p and m.decode(z) < m.bounds[1] * m.p
    x, value = m.encode(m.p - 1), m.p - 1
    y, other = m.encode(3), 3
    for _ in range(100):
        x, y, value, other = m.multiply(x, y), x, value * other % m.p, value
        assert m.decode(x) % m.p == value
    assert m.count.multiplications == m.formula.count.multiplications


def test_hybrid_position_needs_the_digits_of_p():
    """1 * 1 where the cox errs: l = M + 1, h = -1. Without the digits of p a digit would be negative."""
    a, b = hybrid_bases(2, 17, 16)
    m = HybridPosition.of(2, 2, a, b)
    small = next(x for x in range(1, 2000) if predicted(m.first, x) == x + a.M)
    z = m.multiply(m.digits([small, 0]), m.digits([1, 0]))
    assert m.decode(z) % m.p == small

    class Without(HybridPosition):
        @property
        def _constants(self):
            return -self.beta, -1

    with pytest.raises(ValueError, match=r"digits in 0 \.\.\."):
        without = Without(m.d, m.beta, m.a, m.b, m.t)
        without.decode(without.multiply(m.digits([small, 0]), m.digits([1, 0])))


def test_hybrid_position_toy():
    """Digits all over 0 ... kappa M, both ends among them: M = 29 * 27, p = M^2 - 2."""
    a, b = Base(5, (29, 27)), Base(5, (32, 31, 25, 23))
    m = HybridPosition.of(2, 2, a, b)
    top = ceil(m.kappa * a.M) - 1
    reached = 0
    for x0, x1 in itertools.product([*range(0, top, 307), top], repeat=2):
        for y0, y1 in itertools.product(range(top, -1, -211), repeat=2):
            z = m.multiply(m.digits([x0, x1]), m.digits([y0, y1]))
            assert (m.decode(z) - (x0 + x1 * a.M) * (y0 + y1 * a.M)) % m.p == 0
            reached = max(reached, *(b.number(d[1]) for d in z))
    assert a.M < reached <= top


def refused(call, *arguments):
    try:
        call(*arguments)
    except ValueError:
        return True
    return False


def test_hybrid_position_refusals():
    a, b = hybrid_bases(2, 17, 16)
    for change, message in (
        (lambda: HybridPosition(1, 2, a, b, 5), "d >= 2 does not hold: d = 1"),
        (lambda: HybridPosition(2, 0, a, b, 5), "beta >= 1 does not hold: M has 136 bits, beta = 0"),
        (lambda: HybridPosition(2, 2, Base(17, (1 << 17, 131071)), b, 5), "M odd does not hold"),
        (lambda: HybridPosition(2, 2, a, a, 5), r"gcd\(A, B\) = 1 does not hold"),
        (lambda: HybridPosition(2, 2, a, Base(17, b.moduli[:8]), 6), r"h_max \+ 1 < exact limit over B does not hold"),
        (lambda: HybridPosition(2, 2, a, b, 2), r"E \+ 2 beta / M <= 1 does not hold: E = 2\.0"),
        (lambda: HybridPosition(2, 1 << 20, a, b, 5), "g < w does not hold"),
        (lambda: HybridPosition(2, 1 << 134, a, b, 5), r"1 \+ E \+ beta q_max / M <= kappa does not hold"),
    ):
        with pytest.raises(ValueError, match=message):
            change()
    m = HybridPosition.of(2, 2, a, b)
    with pytest.raises(ValueError, match="encode takes"):
        m.encode(a.M**2)
    in_a, in_b, side = m.encode(5)[0]
    with pytest.raises(ValueError, match="disagree"):
        m.decode([(in_a, in_b, side ^ 1), m.encode(5)[1]])
    top = ceil(m.kappa * a.M)
    assert [v for v in (-1, 0, top - 1, top, top + 1) if not refused(m.digits, [v, 0])] == [0, top - 1]


def test_hybrid_position_needs_an_exact_extension_of_h_plus_1():
    """The bound is strict: h_max + 1 itself must be exact over B."""
    m = HybridPosition.of(2, 2, *hybrid_bases(2, 17, 16))
    h, _ = m.largest(m.kappa)
    for limit, failed in ((h + 1, ["h_max + 1 < exact limit over B"]), (h + 2, [])):
        m.__dict__["second"] = SimpleNamespace(exact=SimpleNamespace(limit=limit))
        assert [condition.text for condition in m.conditions() if not condition.holds] == failed


def test_the_loop_of_lazy_coxes():
    """E of lazy residues is the larger: what DoubleLevel needs, what the others may."""
    a, _ = greedy(17, 16, even=False)
    assert Cox(a, 6, 1, True).error > Cox(a, 6, 1, False).error
