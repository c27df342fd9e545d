# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Errors of the sum-of-residues paper that concern results: the range of z, kappa, V, and the size of the base."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import count, islice

from modmill.designs import design
from modmill.designs.sor.original import SorOriginal
from modmill.numbers.moduli import parse_modulus
from modmill.numbers.primes import prev_prime
from modmill.numbers.rns.residues import Base, mersenne_like
from modmill.numbers.rns.sum_of_residues import SumOfResidues
from modmill.report.errata import Figure, Item, Value, Verdict, decimal
from modmill.studies.papers.sor import BASE, EXCLUDED, TABLE_2

SECP = parse_modulus("secp256k1").value
ED = parse_modulus("2^255-19").value
FIELDS = ((SECP, 72), (ED, 71))
"""The paper's two primes, each with its T."""

TRIALS = 2000


@lru_cache
def printed(p: int, T: int, base: Base = BASE) -> SumOfResidues:
    """The paper's parameters: q = 8, Delta = 1/16, kappa without offset, least residues."""
    return SumOfResidues(p, base, 8, 16, T, offset=False, lazy=False)


def kappa_24(p: int, T: int, gammas: Sequence[int], base: Base = BASE) -> int:
    """(24): division by 2^W, constants cut to T fraction bits."""
    W = p.bit_length()
    return sum(g * (r >> (W - T)) for g, r in zip(gammas, printed(p, T, base).r, strict=True)) >> T


def kappa_23(p: int, T: int, gammas: Sequence[int]) -> int:
    """(23): division by 2^W, whole constants."""
    return sum(g * r for g, r in zip(gammas, printed(p, T).r, strict=True)) >> p.bit_length()


def kappa_20(p: int, T: int, gammas: Sequence[int]) -> int:
    """(20) as meant, with gamma_i <M_i>_p: division by p."""
    return sum(g * r for g, r in zip(gammas, printed(p, T).r, strict=True)) // p


def algorithm_2(p: int, T: int, product: int, base: Base = BASE) -> int:
    """The z of Algorithm 2 for X Y = ``product``, as an integer."""
    rns = printed(p, T, base)
    gammas = base.gammas(product)
    V = sum(g * r for g, r in zip(gammas, rns.r, strict=True)) + -rns.alpha(gammas) * base.M % p
    return V - kappa_24(p, T, gammas, base) * p


def products(p: int, trials: int = TRIALS, seed: int = 5) -> Iterator[int]:
    """Products of random X, Y < p."""
    rnd = random.Random(seed)
    return (rnd.randrange(p) * rnd.randrange(p) for _ in range(trials))


def _range_of_z() -> Sequence[Value]:
    bounds = [f"{decimal(printed(p, T).beta, 9)} p" for p, T in FIELDS]
    above = [sum(algorithm_2(p, T, z) >= p for z in products(p)) for p, T in FIELDS]
    congruent = all((algorithm_2(p, T, z) - z) % p == 0 for p, T in FIELDS for z in products(p))
    return [*bounds, *above, "yes" if congruent else "no", "yes" if all(printed(*f).closed for f in FIELDS) else "no"]


COUNTEREXAMPLES = (
    (0xC381E88F38C0C8FD8712B8BC076F3787B9D179E06C0FD4F5F8130C4237730EDF,
     0xAD45F23D3B1A11DF587FD2803BAB6C398D88348A7EED8D14F06D3FEF701966A0),
    (0x2245F4ECF87EE454AE40A8E620D4647C0608217790F3347DD4A1B6D153251678,
     0x399395DC9C92294B8BA5F5C0BAD47AFE3B82584458AC25F272417C631C2D19C7),
)  # fmt: skip
"""X, Y for secp256k1 and for 2^255 - 19."""


def _counterexamples() -> Sequence[Value]:
    found = [
        (algorithm_2(p, T, x * y) - x * y % p) // p for (p, T), (x, y) in zip(FIELDS, COUNTEREXAMPLES, strict=True)
    ]
    return ["yes" if all(max(xy) < p for (p, _), xy in zip(FIELDS, COUNTEREXAMPLES, strict=True)) else "no", *found]


def condition_22(p: int, channels: int) -> bool:
    """(22): epsilon < 2^(W-n) / N for n = 66."""
    W = p.bit_length()
    return ((1 << W) - p) * channels < 1 << (W - 66)


def _condition_22() -> Sequence[Value]:
    own = sum(condition_22(parse_modulus(name).value, n) for _, _, name, n, _ in TABLE_2)
    channels = {name: -(-2 * parse_modulus(name).bits // 66) for name in EXCLUDED}
    others = sum(condition_22(parse_modulus(name).value, n) for name, n in channels.items())
    p = parse_modulus("P-256").value
    worst = max(algorithm_2(p, 72, z) for z in products(p, 500, 7))
    return [own, others, f"above 2^{(worst // p).bit_length() - 1} p", "yes" if worst**2 < BASE.M else "no"]


def _floors() -> Sequence[Value]:
    out: list[Value] = []
    for p, T in FIELDS:
        differ = sum(kappa_20(p, T, g) != kappa_23(p, T, g) for g in map(BASE.gammas, products(p)))
        gammas = BASE.gammas(_multiple_of_p(p, T))
        out += [differ, kappa_20(p, T, gammas) - kappa_23(p, T, gammas)]
    return out


def _multiple_of_p(p: int, T: int) -> int:
    """A product X Y of numbers below p for which sum gamma_i <M_i>_p is a positive multiple of p."""
    rnd = random.Random(1)
    while True:
        y, alpha = rnd.randrange(1, p), rnd.randrange(1, 8)
        product = -alpha * BASE.M * pow(y, -1, p) % p * y
        total = sum(g * r for g, r in zip(BASE.gammas(product), printed(p, T).r, strict=True))
        if total and total % p == 0:
            return product


def _cut_constants() -> Sequence[Value]:
    out: list[Value] = []
    for p, T in FIELDS:
        cut = p.bit_length() - T
        rest = [Fraction(r % (1 << cut), 1 << cut) for r in printed(p, T).r]
        mean = sum(((m - 1) * f / 2 for m, f in zip(BASE.moduli, rest, strict=True)), Fraction(0)) / (1 << T)
        differ = sum(kappa_23(p, T, g) != kappa_24(p, T, g) for g in map(BASE.gammas, products(p)))
        out += [f"{decimal(100 * mean, 2)} %", differ, next(T for T in count(40) if printed(p, T).closed)]
    return out


def _tandem() -> Sequence[Value]:
    fitted = design("mm-spa").fit(SECP)
    assert isinstance(fitted, SorOriginal)
    cited, own = fitted.params.rns, printed(SECP, 72)
    return [
        f"{cited.base.n} of {cited.base.w} bits", cited.v_max.bit_length(),
        "yes" if cited.v_max**2 < cited.product_limit else "no", own.v_max.bit_length(),
        "yes" if own.v_max**2 < own.product_limit else "no",
    ]  # fmt: skip


def _operands_below_m() -> Sequence[Value]:
    rns = printed(SECP, 72)
    largest = BASE.M - (BASE.M >> 4) - 1
    right = [(algorithm_2(SECP, 72, z) - z) % SECP == 0 for z in (largest**2, BASE.M - 1, rns.operand_limit**2)]
    safe = decimal(Fraction(rns.operand_limit + 1, SECP), 2)
    return [*("yes" if r else "no" for r in right), f"{safe} p"]


def _number_of_moduli() -> Sequence[Value]:
    p = prev_prime(1 << 264)
    z = (p - 1) ** 2
    right = (algorithm_2(p, 72, z) - z) % p == 0
    return [-(-2 * 264 // 66), "yes" if condition_22(p, 8) else "no", "yes" if z < BASE.M else "no",
            "yes" if right else "no", "yes" if printed(prev_prime(1 << 263), 72).closed else "no"]  # fmt: skip


def _wide_kappas() -> Sequence[Value]:
    bits = {}
    for curve, _, name, n, _ in TABLE_2:
        p, base = parse_modulus(name).value, Base(66, tuple(islice(mersenne_like(66), n)))
        bits[curve] = (
            sum((m - 1) * (c % p) for m, c in zip(base.moduli, base.cofactors, strict=True)) // p
        ).bit_length()
    wide = [curve for curve, b in bits.items() if b > 66]
    return [len(bits) - len(wide), ", ".join(wide), max(bits.values()), bits["SECP256K1"]]


def _four_formulas() -> Sequence[Value]:
    out: list[Value] = []
    for name, n in (("secp256k1", 8), ("P-384", 12)):
        p, M = parse_modulus(name).value, Base(66, tuple(islice(mersenne_like(66), n))).M
        out += [decimal(Fraction(term - _term(16, 4, M, p), p), 1) for term in (_term(k, 4, M, p) for k in (14, 17, 2))]
    below = dict.fromkeys((16, 14, 17, 2), 0)
    least = 0
    for product in products(SECP):
        alpha = printed(SECP, 72).alpha(BASE.gammas(product))
        rest = algorithm_2(SECP, 72, product) - _term(16, alpha, BASE.M, SECP)
        for formula in below:
            below[formula] += (z := rest + _term(formula, alpha, BASE.M, SECP)) < 0
            least = min(least, z)
    return [*out, *below.values(), f"{decimal(Fraction(least, SECP), 2)} p",
            f"{decimal(Fraction(_term(17, 7, BASE.M, SECP), SECP), 2)} p"]  # fmt: skip


def _term(formula: int, alpha: int, M: int, p: int) -> int:
    """The alpha term of V: of (14), (16), (17), or of Algorithm 2 (formula 2)."""
    return {14: -(alpha * M % p), 16: -alpha * M % p, 17: -alpha * (M % p), 2: alpha * (-M % p)}[formula]


def _sign_of_15() -> Sequence[Value]:
    right = reverse = 0
    for product in products(SECP, 200):
        gammas = BASE.gammas(product)
        nu = [c // SECP for c in BASE.cofactors]
        total = sum(g * c for g, c in zip(gammas, BASE.cofactors, strict=True))
        kappa, rest = divmod(sum(g * r for g, r in zip(gammas, printed(SECP, 72).r, strict=True)) - total % SECP, SECP)
        printed_value = sum(g * n for g, n in zip(gammas, nu, strict=True)) - total // SECP
        right += rest == 0 and printed_value == kappa
        reverse += rest == 0 and printed_value == -kappa
    return [right, reverse, len({c // SECP for c in BASE.cofactors})]


ITEMS = (
    Item(
        1, "abstract, Section 3, Algorithm 2", '"The precise value of X mod p"', "z = X Y mod p with 0 <= z < p.",
        Verdict.PARTLY,
        "z is never negative and always congruent, but not always below p: (20) drops <-alpha M>_p / p, (22) another "
        "term below 1, (24) another, and each may leave kappa one too small. The exact bound is beta p. The method "
        "remains usable: such z can be operands again, because (beta p)^2 is far below (1 - Delta) M, and one "
        "conditional subtraction after conversion to binary gives the canonical number.",
        "some number congruent to X Y modulo p; this holds.",
        (
            Figure("secp256k1, T = 72: z below", "p", "1.125000192 p"),
            Figure("2^255 - 19, T = 71: z below", "p", "1.250000384 p"),
            Figure("secp256k1: results z >= p in 2,000 random products X, Y < p", 0, 129),
            Figure("2^255 - 19: results z >= p in 2,000 random products", 0, 257),
            Figure("all of these are congruent to X Y", "yes", "yes"),
            Figure("results can be operands again", "yes", "yes"),
        ),
        _range_of_z, ("tests/numbers/test_sum_of_residues.py::test_beta_exhaustively",),
    ),
    Item(
        2, "Algorithm 2", '"output: presentation of Z = X Y mod p"', "z < p for all X, Y < p.", Verdict.WRONG,
        f"Algorithm 2 returns (X Y mod p) + p for secp256k1 and X = {COUNTEREXAMPLES[0][0]:#x}, Y = "
        f"{COUNTEREXAMPLES[0][1]:#x}; and for 2^255 - 19 and X = {COUNTEREXAMPLES[1][0]:#x}, Y = "
        f"{COUNTEREXAMPLES[1][1]:#x}.",
        figures=(
            Figure("X and Y are below p", None, "yes"), Figure("secp256k1: (z - X Y mod p) / p", 0, 1),
            Figure("2^255 - 19: (z - X Y mod p) / p", 0, 1),
        ),
        compute=_counterexamples,
    ),
    Item(
        3, "Section 3.1, (22)", '(22) "is a valid condition for most known prime modulus p"',
        "it holds for the primes of the standards.", Verdict.PARTLY,
        f"It holds for the paper's own list (as meant, items 17 and 18) and fails for {', '.join(EXCLUDED)}. The "
        "paper does not state the consequence: with (24) and T = 72, P-256 gives z whose square is outside M, so that "
        "the next product is wrong. Division by p instead of 2^W, c_i = floor(<M_i>_p 2^T / p), with an offset for "
        "alpha where needed, serves all moduli.",
        "it holds for most of the curves in Table 2; this is right.",
        (
            Figure("primes of Table 2, as meant, that fulfil (22)", 10, 10),
            Figure(f"of the {len(EXCLUDED)} other primes", len(EXCLUDED), 0),
            Figure("P-256, T = 72: the largest z of 500 random products is", "below p", "above 2^36 p"),
            Figure("P-256: its square is below M", "yes", "no"),
        ),
        _condition_22, ("tests/studies/test_chains.py",),
    ),
    Item(
        4, "Section 3.1, (22) and (23)", 'With (22) "the value of kappa resulted from (21) is" (23)',
        "the two floors are equal for every product.", Verdict.PARTLY,
        "(22) bounds the dropped term by 1, which does not make two floors equal: where sum gamma_i <M_i>_p is a "
        "multiple of p, (23) is one smaller. For the paper's primes the term is so small that random products do not "
        "show it. It is harmless, because z may be as large as in item 1.",
        "they are equal in practice; this holds.",
        (
            Figure("secp256k1: products of 2,000 random ones for which (20) and (23) differ", 0, 0),
            Figure("secp256k1: (20) - (23) for a product with sum gamma_i <M_i>_p = j p", 0, 1),
            Figure("2^255 - 19: products of 2,000 random ones for which (20) and (23) differ", 0, 0),
            Figure("2^255 - 19: (20) - (23) for a product with sum gamma_i <M_i>_p = j p", 0, 1),
        ),
        _floors,
    ),
    Item(
        5, "Section 3.1", '"The hardware introduced in [20,26,27] cannot calculate two tandem modular multiplications"',
        "V of the cited hardware, squared, exceeds its range.", Verdict.PARTLY,
        "This is true for wide channels and false for the cited hardware, which has forty 14-bit moduli: the original "
        "method closes its loop there without kappa.",
        "V of the original method on this paper's base, squared, exceeds its range; this holds.",
        (
            Figure("moduli of our mm-spa, as of [20] and [27]", "40 of 14 bits", "40 of 14 bits"),
            Figure("bits of the largest V there", None, 275), Figure("V^2 < (1 - Delta) M there", "no", "yes"),
            Figure("bits of the largest V on the base of Table 1, secp256k1", 308, 308),
            Figure("V^2 < (1 - Delta) M on the base of Table 1", "no", "no"),
        ),
        _tandem, ("tests/designs/test_sor.py::test_original_sor_closes_the_loop_with_forty_channels",),
    ),
    Item(
        6, "Algorithm 2, input", '"0 <= X, Y < M^"', "every X and Y below M^ = (1 - Delta) M are allowed.",
        Verdict.WRONG,
        "The condition of (12) must hold for the product: X Y < (1 - Delta) M. `./mill explain sor-1m-p --modulus "
        "secp256k1` prints the bound of safe operands.",
        "the condition of Table A1, 0 <= X Y < M; this is not enough either, because alpha is exact only below (1 - "
        "Delta) M.",
        (
            Figure("secp256k1, X = Y = M^ - 1: z is congruent to X Y", "yes", "no"),
            Figure("secp256k1, X Y = M - 1 (Table A1): z is congruent to X Y", "yes", "no"),
            Figure("secp256k1, X = Y = the largest safe operand: z is congruent to X Y", None, "yes"),
            Figure("safe operands are below", None, "247.87 p"),
        ),
        _operands_below_m,
    ),
    Item(
        7, "Algorithm 2, requirements", '"N >= ceil(2 W / n)"', "this N suffices.", Verdict.WRONG,
        "The base must satisfy Zmax < (1 - Delta) M with Zmax the square of the largest result, beta p. The largest "
        "prime below 2^264 fulfils N = 8 >= 2 W / n and (22), and its products leave the range.",
        "together with 2 l < ceil(log2 M) of Section 2 it suffices for Table 1's base; Algorithm 2 does not repeat "
        "that condition, and item 9 corrects it.",
        (
            Figure("W = 264, n = 66: ceil(2 W / n)", 8, 8),
            Figure("the largest prime p below 2^264 fulfils (22) for N = 8", "yes", "yes"),
            Figure("(p - 1)^2 < M", "yes", "no"), Figure("X = Y = p - 1: z is congruent to X Y", "yes", "no"),
            Figure("Table 1, the largest prime below 2^263 (2 l = 526 < 528): results can be operands", None, "yes"),
        ),
        _number_of_moduli, ("tests/designs/test_designs.py::test_a_base_that_cannot_close_the_loop_is_refused",),
    ),
    Item(
        26, "Section 3.1, (24)",
        'T "must be selected such that the equality of (23) and (24) is guaranteed"; T = 72 and 71',
        "with these T the two floors are equal for every product.", Verdict.WRONG,
        "The cut constants make kappa of (24) smaller by one for one product in 20 and one in 8. A larger T makes the "
        "difference rarer. It is harmless for the same reason as in item 4.",
        "T large enough that results can be operands again; smaller T suffice for that.",
        (
            Figure("secp256k1, T = 72: share of products with (24) < (23), for evenly spread fractions", "0", "5.05 %"),
            Figure("secp256k1: products of 2,000 random ones for which they differ", 0, 99),
            Figure("secp256k1: the least T that closes the loop", 72, 62),
            Figure(
                "2^255 - 19, T = 71: share of products with (24) < (23), for evenly spread fractions", "0", "12.50 %",
            ),
            Figure("2^255 - 19: products of 2,000 random ones for which they differ", 0, 257),
            Figure("2^255 - 19: the least T that closes the loop", 71, 61),
        ),
        _cut_constants,
    ),
    Item(
        27, "Section 3.1, Section 1",
        '"RNS conversion is not required (kappa_i = kappa mod m_i = kappa)"; the method "can be extended to other '
        'prime fields using the same methodology"',
        "kappa fits in a channel of 66 bits for the primes of Table 2.", Verdict.PARTLY,
        "For half of the primes, those whose <M_i>_p fill all W bits, kappa has up to 69 bits. It must be reduced in "
        "every channel or taken in two words, each of which is multiplied by a constant: two more cycles with one "
        "multiplier set, of which the paper does not speak.",
        "kappa fits for the paper's two primes; this holds.",
        (
            Figure("primes of Table 2 whose kappa has at most 66 bits", 10, 5),
            Figure("primes whose kappa has more", "none", "SECP192R1, SECP224K1, SECP224R1, SECP2384R1, SECP521R1"),
            Figure("bits of the largest kappa", None, 69), Figure("secp256k1: bits of kappa", 52, 52),
        ),
        _wide_kappas, ("tests/designs/test_sor.py::test_cycles",),
    ),
    Item(
        28, "(14), (16), (17), Algorithm 2",
        "V has the term -<alpha M>_p in (14), <-alpha M>_p in (16), -alpha <M>_p in (17), and alpha <-M>_p in "
        "Algorithm 2",
        "all four define the same integer V.", Verdict.WRONG,
        "They are congruent modulo p, but as integers they differ by multiples of p, and kappa is the same for all. "
        "Only (16) keeps z in [0, beta p) for every p. With (14) and (17) z is negative in most products, that is, a "
        "number close to M for the next one. The term of Algorithm 2 equals that of (16) only while alpha <-M>_p < p, "
        "as for the paper's two primes.",
        "they are congruent; this holds.",
        (
            Figure("secp256k1, alpha = 4: V of (14) - V of (16), in p", "0.0", "-1.0"),
            Figure("secp256k1, alpha = 4: V of (17) - V of (16), in p", "0.0", "-4.0"),
            Figure("secp256k1, alpha = 4: V of Algorithm 2 - V of (16), in p", "0.0", "0.0"),
            Figure("P-384, alpha = 4: V of (14) - V of (16), in p", "0.0", "-1.0"),
            Figure("P-384, alpha = 4: V of (17) - V of (16), in p", "0.0", "-1.0"),
            Figure("P-384, alpha = 4: V of Algorithm 2 - V of (16), in p", "0.0", "3.0"),
            Figure("secp256k1, 2,000 random products: negative z with (16)", 0, 0),
            Figure("secp256k1, 2,000 random products: negative z with (14)", 0, 1871),
            Figure("secp256k1, 2,000 random products: negative z with (17)", 0, 2000),
            Figure("secp256k1, 2,000 random products: negative z with Algorithm 2", 0, 0),
            Figure("the least z of these", "0", "-5.90 p"), Figure("the term of (17) for alpha = 7", None, "-6.98 p"),
        ),
        _four_formulas,
    ),
    Item(
        29, "(15)", "V - <Z>_p = (sum gamma_i nu - mu) p = kappa p",
        "kappa = sum gamma_i nu_i - mu, with <M_i>_p = M_i - nu_i p and <sum gamma_i M_i>_p = sum gamma_i M_i - mu p.",
        Verdict.WRONG,
        "The sign is wrong: the subtraction of <sum gamma_i M_i>_p adds mu p, so that kappa = mu - sum gamma_i nu_i. "
        "Also nu depends on i, and the alpha terms of (14) and (5) are left out.",
        figures=(
            Figure("of 200 random products: kappa = sum gamma_i nu_i - mu", 200, 0),
            Figure("of 200 random products: kappa = mu - sum gamma_i nu_i", 0, 200), Figure("different nu_i", 1, 8),
        ),
        compute=_sign_of_15,
    ),
)  # fmt: skip
