# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Errors of the radix-64K paper in Sections 2 to 6: numbers out of range, digits that do not cancel, formulas.

Letters: digits of r + 2 bits, X of d digits, R bits, k M cancels the low digit.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction

from modmill.numbers.moduli import parse_modulus
from modmill.numbers.redundant_digits import (
    HALF_TABLES,
    Montgomery,
    Number,
    Radix,
    digits,
    least_r,
    printed_product,
    spread,
    theorem_9,
    theorem_10,
    value,
)
from modmill.report.errata import Figure, Item, Value, Verdict, decimal
from modmill.studies.papers.rsa64k import COUNTEREXAMPLE, TABLE_2

SECP = parse_modulus("secp256k1").value

Iteration = Callable[[Montgomery, Sequence[int], Sequence[int], int], Number]


def _twice(iterate: Iteration) -> tuple[Number, int, int]:
    """X1 = X0 Y0 / R by the printed rule; redundant bits of the highest digit of X1 X1 / R before -M; its error."""
    m = Montgomery(SECP, 16, HALF_TABLES)
    x0, y0 = (digits(n, 16, m.d) for n in COUNTEREXAMPLE)
    first = printed_product(m, x0, y0, iterate)
    second = printed_product(m, first, first, iterate)
    c: Number = (0,) * (m.d + 1)
    for digit in first:
        c = iterate(m, c, first, digit)
    back = pow(1 << 256, -1, SECP)
    return first, m.joined(c)[-1] >> 16, (value(second, 16) - value(first, 16) ** 2 * back) % SECP


FAILING = {2559: (theorem_9, (27, 41, 13), (30, 43, 14)), 4037: (theorem_10, (15, 34, 15), (29, 39, 15))}
"""Moduli of three digits with r = 4, the adders, and X, Y that a chain of products reaches."""


def _rule_against_overflow() -> Sequence[Value]:
    out: list[Value] = []
    for iterate in (theorem_9, theorem_10):
        first, bits, error = _twice(iterate)
        out += [format(first[-1] >> 16, "02b"), "yes" if value(first, 16) < 1 << 256 else "no", format(bits, "02b"),
                "0" if error == 0 else "-2^256" if error == -(1 << 256) % SECP else "another"]  # fmt: skip
    small = []
    for M, (iterate, x, y) in FAILING.items():
        m = Montgomery(M, 4, HALF_TABLES)
        small.append((value(printed_product(m, x, y, iterate), 4) << 12) % M == value(x, 4) * value(y, 4) % M)
    return [*out, small.count(True), safe_by_formula(2559, 4, 3), chains_that_fail(theorem_9, 100, 1023)]


def safe_by_formula(M: int, r: int, d: int) -> Value:
    """Whether M < 2^(d r) (1 - 2 e - e^2), e = 2^-(r-1): a condition that suggests itself and is not sufficient."""
    e = Fraction(1, 1 << (r - 1))
    bound = (1 << (d * r)) * (1 - 2 * e - e * e)
    return "yes" if bound > M else "no"


def chains_that_fail(iterate: Iteration, chains: int, most: int, seed: int = 77) -> int:
    """Chains of 12 products (r = 4, d = 3, M odd in ``most`` / 2 ... ``most``) in which the printed rule gives a wrong
    residue."""
    rnd, wrong = random.Random(seed), 0
    for _ in range(chains):
        M = rnd.randrange(most // 2, most) | 1
        m = Montgomery(M, 4, HALF_TABLES, bits=12)
        x = y = digits(rnd.randrange(M), 4, 3)
        for _ in range(12):
            z = printed_product(m, x, y, iterate)
            if (value(z, 4) << 12) % M != value(x, 4) * value(y, 4) % M:
                wrong += 1
                break
            x, y = y, z
    return wrong


def _function_g() -> Sequence[Value]:
    m = Montgomery(SECP, 16, HALF_TABLES)
    right = [0, 0, 0]
    for z in range(0, 1 << 16, 13):
        upper, c = (z % 256 * m.M) >> 8 & 255, z % 256 * m.M % 256 != 0
        readings = (upper * m.inverse + c, upper * (m.inverse + c), m.g(z))
        for k, g in enumerate(readings):
            km = m.multiple(z % 256, 8) + (m.multiple(((z >> 8) + g) % 256, 8) << 8)
            right[k] += (z + km) % (1 << 16) == 0
    tried = len(range(0, 1 << 16, 13))
    return [f"{decimal(Fraction(100 * n, tried), 1)} %" for n in right]


def _least_digit() -> Sequence[Value]:
    seen, longest, rnd = set(), 0, random.Random(9)
    m, radix = Montgomery((1 << 16) - 17, 4), Radix(4)
    for _ in range(200):
        x, y = (spread(digits(rnd.randrange(2 * m.M), 4, m.d), 4, rnd) for _ in range(2))
        c: Number = (0,) * (m.d + 1)
        for digit in y:
            xy = radix.scale(x, digit)
            z = radix.low(xy[0]) + radix.low(c[0])
            seen.add((z + m.addends(z % 16)[0] % 16) >> 4)
            longest = max([longest, *(k + 1 - m.d for k, one in enumerate(xy) if one)])
            c = theorem_9(m, c, x, digit)
    return [", ".join({0: "0", 1: "2^r"}.get(k, f"{k} 2^r") for k in sorted(seen)), f"d + {longest}"]


def _digits_of_the_products() -> Sequence[Value]:
    return _least_digit()[1:]


def _least_r() -> Sequence[Value]:
    def fits(r: int) -> bool:
        bound, full = Radix(r, largest=True), Radix(r).full
        return Radix(r).fits(bound.product_sum((full,) * 4, full, (full,) * 5))

    return [least_r(fits), *(f"{15 + 3 + 3 * (2**r - 1)} of {2 ** (r + 2) - 1}" for r in (3, 4, 5))]


def _lemma_1() -> Sequence[Value]:
    def holds(r: int) -> bool:
        return Radix(r).fits(Radix(r, largest=True).add((Radix(r).full,) * 4, (Radix(r).full,) * 4))

    return ["yes" if 4 + 2**2 + 4 + 2**2 < 2 ** (2 + 2) else "no", least_r(holds)]


EXAMPLE = (0b010011, 0b101001, 0b010001), (0b010011, 0b100011, 0b101111), 0b100101
"""X in the figure of 2.2, X in the text, Y; highest digit first."""
PRODUCT = (0b000010, 0b010000, 0b011111, 0b010100, 0b000101)


def _example() -> Sequence[Value]:
    figure, text, y = EXAMPLE
    return ["yes" if Radix(4).scale(x[::-1], y) == PRODUCT[::-1] else "no" for x in (text, figure)]


def _quotient() -> Sequence[Value]:
    M, R, r = SECP, 256, 16
    x, y = COUNTEREXAMPLE
    k = x * y * -pow(M, -1, 1 << R) % (1 << R)
    return ["yes" if (x * y + q * M) % (1 << R) == 0 else "no" for q in (k % (1 << r), k)]


def power(base: int, exponent: Sequence[int], M: int) -> int:
    """Section 4's loop on plain residues: square, then multiply for a 1, over the listed bits in their order."""
    c = 1
    for bit in exponent:
        c = c * c % M
        if bit:
            c = c * base % M
    return c


def _exponent() -> Sequence[Value]:
    e, M, p = 0b1101_0110_1101, 2**61 - 1, 12345
    bits = [e >> i & 1 for i in reversed(range(12))]
    return ["yes" if power(p, some, M) == pow(p, e, M) else "no" for some in (bits[:-1], bits, bits[::-1])]


def _width_of_the_table() -> Sequence[Value]:
    d, r = 64, 16
    widths = (d * (r + 2) + r // 2, d * r + r // 2, d * r)
    m = Montgomery((1 << 1024) - 105, r, HALF_TABLES)
    needed = max(m.words(8)).bit_length()
    fits = [sum(-(-w(row.bits // 16) // 36) == row.rams for row in TABLE_2[True])
            for w in (lambda d: d * 18 + 8, lambda d: d * 16 + 8, lambda d: d * 16)]  # fmt: skip
    return [", ".join(map(str, widths)), needed, *fits]


ITEMS = (
    Item(
        1, "Section 6",
        '"Since the redundant bits of the most significant digit are either 00 or 01, we can guarantee that, after '
        'the addition [of -M], they are 00"',
        "with the rule (add -M if they are not zero) all numbers stay below 2^(d r), so that the results are right.",
        Verdict.WRONG,
        "They can be 10, and a number can be 2^(d r) or more while they are 00. Then the rule gives a wrong residue, "
        "with the adders of Theorem 9 and of Theorem 10. r = 16, d = 16, M the prime of secp256k1: X0 = "
        f"{COUNTEREXAMPLE[0]:#x}, Y0 = {COUNTEREXAMPLE[1]:#x}. X1 = X0 Y0 / R has the highest digit 0xffff and is "
        "above 2^256; its square has 10, and the result is 2^256 too small. Of random chains (r = 4, d = 3) 2 in "
        "1,000 fail. The rule is right for M <= 2^(d r) / 4, where it never adds: operands below 2 M then give "
        "results below 2 M. One more iteration instead, with R = 2^(r (d + 1)), gives that for every M in the same d "
        "+ 1 cycles; so do two more bits, with R = 2^(r d + 2).",
        "after one addition of -M they are 00 for numbers whose bits were 01; this holds.",
        (
            Figure("Theorem 9: redundant bits of the highest digit of X1", "00", "00"),
            Figure("Theorem 9: X1 < 2^256", "yes", "no"),
            Figure("Theorem 9: redundant bits of the highest digit of X1 X1 / R, before -M", "00 or 01", "10"),
            Figure("Theorem 9: error of X1 X1 / R modulo M", "0", "-2^256"),
            Figure("Theorem 10: redundant bits of the highest digit of X1", "00", "00"),
            Figure("Theorem 10: X1 < 2^256", "yes", "no"),
            Figure("Theorem 10: redundant bits of the highest digit of X1 X1 / R, before -M", "00 or 01", "10"),
            Figure("Theorem 10: error of X1 X1 / R modulo M", "0", "-2^256"),
            Figure(
                "r = 4, d = 3, M = 2559 and 4037, a product in a chain with the adders of Theorems 9 and 10: right of "
                "2",
                2, 0,
            ),
            Figure(
                "M = 2559 is below 2^(d r) (1 - 2 e - e^2), e = 2^-(r-1), so this condition does not suffice", None,
                "yes",
            ),
            Figure("r = 4, d = 3, M <= 2^(d r) / 4: wrong of 100 random chains", None, 0),
        ),
        _rule_against_overflow,
        (
            "tests/numbers/test_redundant.py::test_random_chains_refute_the_printed_rule_and_not_the_corrected_one",
            "tests/numbers/test_redundant.py::test_closed_loop_exhaustively_at_one_digit",
        ),
    ),
    Item(
        2, "Section 5.3", '"g(Z) = ((Z[r/2-1, 0] M)[r-1, r/2] (-M^-1) + c"',
        "g(Z) = (Z M)[r-1, r/2] (-M^-1) + c; a parenthesis is missing or too much.", Verdict.WRONG,
        "With neither place of the parenthesis the digit cancels, but for a few z. h already multiplies by -M^-1, so "
        "g must be the addend of the upper half: bits [r-1, r/2] of h(z), plus 1 unless z = 0.",
        "g(Z) = (Z M)[r-1, r/2] ((-M^-1) + c).",
        (
            Figure("r = 16, M the prime of secp256k1: digits z that cancel, first reading", "100.0 %", "1.2 %"),
            Figure("other reading", "100.0 %", "1.6 %"), Figure("corrected", None, "100.0 %"),
        ),
        _function_g, ("tests/numbers/test_redundant.py::test_half_tables_cancel",),
    ),
    Item(
        3, "Section 5.1, before Lemma 6",
        '"Since the least significant digit of X Y and k M are zero, we can omit the addition of the least '
        'significant digit"',
        "the digit of the sum has no carry into the next.", Verdict.WRONG,
        "The principal parts of the two digits, with that of C, add up to 0, 2^r or 2 2^r: a carry of 0, 1 or 2 must "
        "enter digit 1. It fits, because digit 0 has free slots there.",
        "the digit of the sum is zero modulo 2^r; this holds.",
        (
            Figure("r = 4, 200 random products: the principal parts add up to", "0", "0, 2^r, 2 2^r"),
            Figure("r = 4, 200 random products: digits of X Y", None, "d + 2"),
        ),
        _least_digit, ("tests/numbers/test_redundant.py::test_adders_of_theorem_9_give_the_same_numbers",),
    ),
    Item(
        4, "Section 5.1, before Lemma 6", '"both X Y and k M are (d + 1)-digit"', "numbers of d + 1 digits.",
        Verdict.MISPRINT, "They have d + 2 digits, by Lemma 2 itself.",
        "without the digit 0, which is omitted; then d + 1 are left.",
        (Figure("r = 4, 200 random products: digits of X Y", "d + 1", "d + 2"),), _digits_of_the_products,
    ),
    Item(
        5, "Lemma 3", '"whenever r >= 5"', "5 is the least r.", Verdict.PARTLY,
        "r >= 4 suffices, and 3 does not. Theorems 9 and 10 hold from r = 4 on, too.",
        "a sufficient condition; this holds.",
        (
            Figure("least r", 5, 4), Figure("r = 3: largest digit, of the largest that fits", None, "39 of 31"),
            Figure("r = 4", None, "63 of 63"), Figure("r = 5", "111 of 127", "111 of 127"),
        ),
        _least_r, ("tests/numbers/test_redundant.py::test_lemma_3_needs_r_4_and_no_more",),
    ),
    Item(
        6, "Section 2.1, proof of Lemma 1", '"4 + 2^r + 4 + 2^r < 2^(r+2) holds if r >= 2"', "for r = 2 too.",
        Verdict.PARTLY, "It does not hold for r = 2 (16 < 16). The lemma is true for r = 2: each term is one less.",
        figures=(
            Figure("r = 2: 4 + 2^r + 4 + 2^r < 2^(r+2)", "yes", "no"), Figure("least r of Lemma 1", 2, 2),
        ),
        compute=_lemma_1, tests=("tests/numbers/test_redundant.py::test_lemma_1_exhaustively",),
    ),
    Item(
        7, "Section 2.2", "X = (010011, 100011, 101111) in the text of the example", "the X of the figure below it.",
        Verdict.MISPRINT, "The figure has X = (010011, 101001, 010001), and the product is that of the figure's X.",
        figures=(
            Figure("the printed product is that of the text's X", "yes", "no"),
            Figure("the printed product is that of the figure's X", None, "yes"),
        ),
        compute=_example,
    ),
    Item(
        8, "Section 3", '"k = ((X Y) (-M^-1))[r-1, 0]"', "r bits of k.", Verdict.MISPRINT,
        "It must be [R-1, 0], because R bits are to be cancelled; the next sentence of the paper has k < 2^R.",
        "R bits; this is meant.",
        (
            Figure("R = 256: r = 16 bits of k cancel R bits", "yes", "no"),
            Figure("R = 256: R bits of k cancel R bits", None, "yes"),
        ),
        _quotient,
    ),
    Item(
        9, "Section 4", 'the bits of E are "e_(R-1) ... e_1"; the algorithm is "based on the right-to-left method"',
        "bits without e_0, taken from the right.", Verdict.MISPRINT,
        "They end with e_0, and the algorithm goes from left to right, i = R - 1 down to 0. The induction calls both "
        "the old and the new value P^(e_(R-1) ... e_k).",
        "as the algorithm itself has it; this is right.",
        (
            Figure("the loop without e_0 gives P^E", "yes", "no"), Figure("with e_0, from left to right", None, "yes"),
            Figure("with e_0, from right to left", "yes", "no"),
        ),
        _exponent, ("tests/numbers/test_redundant.py::test_multiplications_are_those_of_the_algorithm",),
    ),
    Item(
        18, "Section 5.3, Lemma 8",
        "the memory of h has words of d(r+2) + r/2 bits, of d r + r/2 bits (Figure 3), and of d r bits (Lemma 8, "
        "Theorem 10)",
        "three widths of one table.", Verdict.PARTLY,
        "h(z) has d r + r/2 bits, and none is redundant. Its low r/2 bits are -z, so that d r bits suffice. The block "
        "RAMs of Table 2 fit the second and the third width, not the first. (The paper calls the function g there, "
        "and means h.)",
        "with or without redundant bits, and with or without the known low half; only the last is needed.",
        (
            Figure("d = 64, r = 16: the three widths", "1160, 1032, 1024", "1160, 1032, 1024"),
            Figure("bits of the longest word without its low half", "1160", 1024),
            Figure("of five sizes, block RAMs of Table 2 fit the first width (ports of 36 bits)", 5, 0),
            Figure("the second", 5, 5), Figure("the third", 5, 5),
        ),
        _width_of_the_table, ("tests/numbers/test_redundant.py::test_tables_hold_the_multiples_without_what_is_known",),
    ),
)  # fmt: skip
