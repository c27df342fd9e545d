# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Errors of the sum-of-residues paper in formulas, constants and tables."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import count, islice
from math import gcd, prod

from modmill.designs import design
from modmill.numbers.moduli import parse_integer, parse_modulus
from modmill.numbers.primes import is_prime
from modmill.numbers.rns.residues import Base, mersenne_like
from modmill.numbers.rns.sum_of_residues import alpha_limit, alpha_offset
from modmill.report.errata import Figure, Item, Value, Verdict, decimal
from modmill.studies.papers.errata.sor_results import FIELDS, SECP, printed, products
from modmill.studies.papers.sor import BASE, INTENDED, OTHER_BASE, TABLE_2, TABLE_3, TABLE_4, TABLE_5
from modmill.studies.papers.sor_charts import NAMES

N = 66
"""Bits of a channel."""


def _first_modulus() -> Sequence[Value]:
    by_rule = 2**N - 2**0 - 1
    return [f"2^66 - {2**N - BASE.moduli[0]}", gcd(by_rule, 2), gcd(by_rule, 2**N - 2**5 - 1)]


def _range_in_bits() -> Sequence[Value]:
    bits = BASE.M.bit_length()  # ceil(log2 M), since M is no power of two
    return [f"512 < {bits}" if bits > 512 else "no", "yes" if bits < 8 * N else "no", "yes" if bits <= 8 * N else "no"]


def sum_of_8(b: int, t: int, top: int) -> int:
    """The sum of (8) for 2^66 - 2^t - 1, B = ``b``, and B_HH of the ``top`` most significant bits of B_H."""
    high, low = b >> N, b % 2**N
    first = high >> (N - top)
    return (first << t) + first + (high << t) % 2**N + high + low


def _bits_of_b_hh() -> Sequence[Value]:
    rnd = random.Random(8)
    right = dict.fromkeys((0, 2), 0)
    for t in (2, 3, 4, 5, 6, 8, 9):
        m = 2**N - 2**t - 1
        for b in (rnd.getrandbits(2 * N) for _ in range(20)):
            for more in right:
                right[more] += (sum_of_8(b, t, t + more) - b) % m == 0
    return [right[2], right[0]]


def _largest_quotient(t: int, limit: int) -> int:
    """floor(sum of (8) / m), the largest for B < ``limit``. The sum grows with B_H while B_HH is fixed."""
    m = 2**N - 2**t - 1
    highest = (limit - 1) >> N
    ends = {min(((first + 1) << (N - t)) - 1, highest) for first in range(2**t)} | {highest - 1}
    return max(sum_of_8(min((high << N) + 2**N - 1, limit - 1), t, t) // m for high in ends)


def _subtractions() -> Sequence[Value]:
    ts = (2, 3, 4, 5, 6, 8, 9)
    first = 2**N - 1
    of_product = max(_largest_quotient(t, (2**N - 2**t - 2) ** 2 + 1) for t in ts)
    of_any = max(_largest_quotient(t, 1 << 2 * N) for t in ts)
    folded = [max((b >> N) + b % 2**N for b in some) // first for some in (
        ((first - 1) ** 2, (((first - 1) ** 2 >> N) << N) - 1), (2 ** (2 * N) - 1,))]  # fmt: skip
    return [of_product, of_any, *folded]


def _indices_from_0() -> Sequence[Value]:
    good = 0
    for z in products(SECP, 200):
        alpha = (sum(g * c for g, c in zip(BASE.gammas(z), BASE.cofactors, strict=True)) - z) // BASE.M
        good += alpha == sum(Fraction(g, m) for g, m in zip(BASE.gammas(z), BASE.moduli, strict=True)) // 1
    return [BASE.n, good]


def _least_q() -> Sequence[Value]:
    sixteenth = next(q for q in count(4) if 1 << (q - 4) >= alpha_offset(BASE, q, lazy=False))
    short = next(q for q in count(1) if alpha_limit(BASE, q, alpha_offset(BASE, q, lazy=False)) > (2 * SECP) ** 2)
    return [f"{alpha_offset(BASE, 8, lazy=False)} / 2^8", sixteenth, short,
            f"{alpha_offset(BASE, short, lazy=False)} / 2^{short}"]  # fmt: skip


def _kappa_of_20() -> Sequence[Value]:
    p, T = FIELDS[0]
    as_printed = as_meant = 0
    for z in products(p):
        gammas = BASE.gammas(z)
        terms = [g * c % p for g, c in zip(gammas, BASE.cofactors, strict=True)]
        as_printed = max(as_printed, sum(terms) // p)
        as_meant = max(as_meant, sum(g * r for g, r in zip(gammas, printed(p, T).r, strict=True)) // p)
    return [as_printed.bit_length(), as_meant.bit_length()]


def _bits_of_ed25519() -> Sequence[Value]:
    rns = [printed(p, T) for p, T in FIELDS]
    return [v for r in rns for v in (r.constant_bits, r.kappa_bits, r.v_max.bit_length())]


def _memory() -> Sequence[Value]:
    out = []
    for p, T in FIELDS:
        bits = printed(p, T).constant_bits
        out += [8 * ((2 * 8 + 2) * N + bits), 8 * ((2 * 8 + 1) * N + bits)]
    lazy = design("sor-1m-p").fit(SECP)
    return [*out, lazy.cost.memory_bits]


def _is_prime(curve: str) -> Sequence[Value]:
    text = next(text for name, text, *_ in TABLE_2 if name == curve)
    return ["prime" if is_prime(parse_integer(t)) else "composite" for t in (text, INTENDED[curve])]


def _secp160r1() -> Sequence[Value]:
    return _is_prime("SECP160R1")


def _secp384r1() -> Sequence[Value]:
    p = parse_modulus("P-384")
    return [*_is_prime("SECP2384R1"), p.bits, "yes" if p.value == parse_integer(INTENDED["SECP2384R1"]) else "no"]


def _source_of_secp256k1() -> Sequence[Value]:
    return [parse_modulus("secp256k1").source.split(" v")[0]]


def _more_moduli() -> Sequence[Value]:
    family = list(mersenne_like(N))
    twelve = Base(N, tuple(islice(family, 12)))  # raises ValueError for a common factor
    return [len(BASE.moduli), "yes" if len(family) >= 16 else "no", len(family),
            "yes" if set(BASE.moduli) < set(twelve.moduli) else "no"]  # fmt: skip


def _latency_of_1m_n() -> Sequence[Value]:
    cycles = {paper: design(NAMES[paper]).fit(SECP).schedule.latency for paper in ("SOR_1M_N", "SOR_1M_P", "SOR_2M")}
    found = {row[:2]: (1000 * cycles[row[0]] / Fraction(str(row[2])), Fraction(str(row[3]))) for row in TABLE_4}
    near = sum(abs(ours - theirs) <= Fraction(1, 2) for ours, theirs in found.values())
    return [cycles["SOR_1M_N"], decimal(found["SOR_1M_N", "VIRTEX US+"][0], 1), near]


def _product(*values: float) -> Fraction:
    """The exact product of printed numbers."""
    return prod((Fraction(str(v)) for v in values), start=Fraction(1))


def _throughput() -> Sequence[Value]:
    own = [_product(mbps, ns) / 1000 for _, _, _, ns, _, _, _, mbps in TABLE_4]
    five = {row[0] + ("" if "Ours" not in row[0] else row[2]): row for row in TABLE_5}
    counted = {name: round(_product(row[7], row[4]) / 1000) for name, row in five.items()}
    issue = round(_product(five["MM_PA_P [27]"][7]) / _product(five["MM_PA_P [27]"][3]))
    cited = [counted[name] for name in ("MM_PA_P [20]", "MM_PA_N [20]")]
    best = [round(256000 / Fraction(str(row[3]))) for row in TABLE_4 if row[1] == "KINTEX US+" and row[0] != "SOR_1M_N"]
    return [
        OTHER_BASE if all(abs(bits - OTHER_BASE) < 1 for bits in own) else "several", BASE.M.bit_length(),
        counted["sQ-RNS [18]"], counted["dQ-RNS [18]"], issue,
        " and ".join(map(str, cited)), *best,
    ]  # fmt: skip


def _improvements() -> Sequence[Value]:
    pairs = ((140, 239.2), (128.3, 150.53), (173, 239.2), (96.3, 150.53))
    return [decimal(100 * (1 - Fraction(str(ours)) / Fraction(str(theirs))), 1) for ours, theirs in pairs]


def _periods() -> Sequence[Value]:
    return [decimal(_product(ns, mhz) / 1000, 3) for name, _, _, mhz, ns, *_ in TABLE_5 if name.startswith("MM_PA")]


def _accumulators() -> Sequence[Value]:
    mhz, ns, mbps = next((row[3], row[4], row[7]) for row in TABLE_5 if row[0] == "MM_SPA [27]")
    latency, interval = round(_product(ns, mhz) / 1000), round(256 * _product(mhz) / mbps)
    ours = design("mm-spa").fit(SECP)
    return [latency, interval, 40 // interval, ours.schedule.latency, ours.schedule.interval, 40 + 3]


def _clocks() -> Sequence[Value]:
    limits = {device: 2000 / (_product(logic) + _product(net)) for unit, device, logic, net, _ in TABLE_3
              if unit == "RNS Multiplier"}  # fmt: skip
    said = {device: mhz for _, device, _, _, mhz in TABLE_3}
    above = [f"{name} on {device}" for name, device, mhz, *_ in TABLE_4 if mhz > limits[device]]
    over = sum(mhz > said[device] for _, device, mhz, *_ in TABLE_4)
    return [*(decimal(limits[device], 1) for device in ("ARTIX 7", "VIRTEX 7", "KINTEX 7")), ", ".join(above), over]


ITEMS = (
    Item(
        8, "Appendix A", "m_i = 2^n - 2^t_i - 1, t_i in {0, 2, 3, 4, 5, 6, 8, 9}", "the first modulus has t = 0.",
        Verdict.WRONG,
        "2^66 - 2 is even and shares 31 with the member t = 5. The first modulus of Table 1 is 2^66 - 1, of another "
        "form: there B mod m = B_H + B_L.",
        figures=(
            Figure("the first modulus of Table 1", "2^66 - 2", "2^66 - 1"),
            Figure("common factor of 2^66 - 2 and 2", 1, 2),
            Figure("common factor of 2^66 - 2 and the member t = 5", 1, 31),
        ),
        compute=_first_modulus,
    ),
    Item(
        9, "Section 2", '"2 l < ceil(log2 M) < N n"', "the condition holds for the paper's own base.", Verdict.PARTLY,
        "The second sign must be <=.",
        figures=(
            Figure("2 l < ceil(log2 M) for l = 256 and Table 1", "512 < 528", "512 < 528"),
            Figure("ceil(log2 M) < N n", "yes", "no"), Figure("ceil(log2 M) <= N n", None, "yes"),
        ),
        compute=_range_in_bits,
    ),
    Item(
        10, "Section 2.1, before (7)", '"the most significant t_i bits of B_H, i.e. (b_(n-1) ... b_(n-t_i-2))"',
        "B_HH has the listed bits, which are t + 2.", Verdict.MISPRINT,
        "The t most significant bits are b_(n-1) ... b_(n-t), as Appendix A says. With t + 2 bits (8) is not "
        "congruent to B.",
        "B_HH has t bits; this is meant.",
        (
            Figure("of 140 random B, t + 2 bits in B_HH: (8) is congruent to B", 140, 2),
            Figure("of 140 random B, t bits in B_HH: (8) is congruent to B", None, 140),
        ),
        _bits_of_b_hh,
    ),
    Item(
        11, "Section 2.1, (8)", 'B mod m "at the cost of one 4-input n-bit CSA"', "the sum of (8) is the residue.",
        Verdict.WRONG,
        "The sum has n + 2 bits (n + 1 for 2^66 - 1) and is not reduced; each unit of its quotient is a subtraction "
        "of m. Here folding ends when the value is below 2^n, and the residue stays lazy (decision 3).",
        "the sum is congruent to the residue; this holds.",
        (
            Figure("subtractions of m, at most, for B <= (m - 1)^2", 0, 2),
            Figure("subtractions for any B of 2n bits", 0, 3),
            Figure("subtractions for 2^66 - 1 and B <= (m - 1)^2", 0, 1),
            Figure("subtractions for 2^66 - 1 and any B of 2n bits", 0, 2),
        ),
        _subtractions,
    ),
    Item(
        12, "(9), (10)", "sums of gamma_i / m_i from i = 0 to N", "there are N + 1 terms.", Verdict.MISPRINT,
        "They start at i = 1; there is no m_0. The N terms give alpha.",
        figures=(
            Figure("terms for Table 1", 9, 8),
            Figure("of 200 random products: the floor of the sum of N terms is alpha", None, 200),
        ),
        compute=_indices_from_0,
    ),
    Item(
        13, "Section 2.2", 'a program found "the optimal q and Delta": q = 8, Delta = 1/2^4',
        "no smaller q or Delta gives an exact alpha.", Verdict.WRONG, "Exact, not minimal.",
        '"suitable for the whole effective dynamic range", as the next sentence says; this holds.',
        (
            Figure("q = 8: the least exact Delta", "16 / 2^8", "8 / 2^8"),
            Figure("Delta = 1/16: the least exact q", 8, 7), Figure("operands below 2 p, secp256k1: the least q", 8, 4),
            Figure("operands below 2 p, secp256k1: Delta for it", "16 / 2^8", "8 / 2^4"),
        ),
        _least_q, ("tests/numbers/test_sum_of_residues.py::test_the_offset_and_the_limit_are_needed",),
    ),
    Item(
        14, "(20)", "kappa = floor(sum <gamma_i M_i>_p / p)", "each term is a residue modulo p.", Verdict.MISPRINT,
        "The intended term, as in (19) and (21), is gamma_i <M_i>_p. As printed kappa would be at most N - 1.",
        "gamma_i <M_i>_p; this is meant.",
        (
            Figure("secp256k1, 2,000 random products: bits of the largest kappa, as printed", 52, 3),
            Figure("secp256k1, 2,000 random products: bits of the largest kappa, as meant", None, 51),
        ),
        _kappa_of_20,
    ),
    Item(
        15, "Section 3.1", 'kappa is "maximum 52-bit" (secp256k1) and "42-bit long for ED25519"; V has "308(297) bits"',
        "bits of the largest kappa and V.", Verdict.PARTLY,
        "One bit too many for 2^255 - 19, both times. The other numbers are right.", "widths that suffice; they do.",
        (
            Figure("secp256k1: bits of kappa's constants", 55, 55), Figure("secp256k1: bits of kappa", 52, 52),
            Figure("secp256k1: bits of V", 308, 308), Figure("2^255 - 19: bits of kappa's constants", 44, 44),
            Figure("2^255 - 19: bits of kappa", 42, 41), Figure("2^255 - 19: bits of V", 297, 296),
        ),
        _bits_of_ed25519, ("tests/numbers/test_sum_of_residues.py::test_constants_of_the_paper",),
    ),
    Item(
        16, "Section 4", "memory: N((2N + 2) n + n') = 9944 and 9856 bits",
        "the formula counts the tables that Algorithm 2 requires, with alpha = 1 ... N - 1.", Verdict.PARTLY,
        "The arithmetic is right, but the formula counts one more row of alpha. Least residues do not need it (alpha "
        "= 0 is all zeros); lazy residues do, because alpha = N occurs, so that our machine has the printed number.",
        "the formula as such; its value is right.",
        (
            Figure("secp256k1: the formula", 9944, 9944), Figure("secp256k1: rows alpha = 1 ... N - 1", 9944, 9416),
            Figure("2^255 - 19: the formula", 9856, 9856), Figure("2^255 - 19: rows alpha = 1 ... N - 1", 9856, 9328),
            Figure("our sor-1m-p, secp256k1, lazy residues", None, 9944),
        ),
        _memory, ("tests/designs/test_sor.py::test_erratum_memory_rows_of_alpha",),
    ),
    Item(
        17, "Table 2", "SECP160R1: 2^160 - 2^32 - 1", "a prime.", Verdict.MISPRINT, "The prime is 2^160 - 2^31 - 1.",
        figures=(
            Figure("2^160 - 2^32 - 1 is", "prime", "composite"), Figure("2^160 - 2^31 - 1 is", None, "prime"),
        ),
        compute=_secp160r1,
        tests=("tests/numbers/test_moduli.py::test_misprints_of_the_sum_of_residues_paper_are_corrected",),
    ),
    Item(
        18, "Table 2", "SECP2384R1: 2^384 - 2^128 - 2^96 + 2^31 - 1", "a prime of 384 bits.", Verdict.MISPRINT,
        "P-384 has the term + 2^32 and is called SECP384R1.",
        figures=(
            Figure("the printed number is", "prime", "composite"), Figure("with + 2^32 it is", None, "prime"),
            Figure("bits", 2384, 384), Figure("with + 2^32 it is P-384", None, "yes"),
        ),
        compute=_secp384r1,
        tests=("tests/numbers/test_moduli.py::test_misprints_of_the_sum_of_residues_paper_are_corrected",),
    ),
    Item(
        19, "Section 3.1", 'p_S is the modulus of "the NIST recommended curve SECP256K1"', "a curve of FIPS 186.",
        Verdict.WRONG, "It comes from SEC 2; FIPS 186-4 has P-256.",
        figures=(Figure("source of secp256k1", "NIST", "SEC 2"),), compute=_source_of_secp256k1,
    ),
    Item(
        20, "Table 2", "N = 12 and 16 moduli of 66 bits", "moduli as in Table 1, which has eight.", Verdict.PARTLY,
        "Table 1 has too few, the family has enough pairwise coprime members. The paper does not list them.",
        "moduli of the same family; there are enough.",
        (
            Figure("moduli in Table 1, of the 16 that Table 2 needs", 16, 8),
            Figure("the family has 16 pairwise coprime members", "yes", "yes"),
            Figure("pairwise coprime members, taken greedily", None, 37),
            Figure("the first twelve contain Table 1", None, "yes"),
        ),
        _more_moduli, ("tests/numbers/test_rns.py::test_erratum_larger_n_has_more_moduli",),
    ),
    Item(
        21, "Table 4", "SOR_1M_N, Virtex UltraScale+: 157 ns at 192 MHz", "latency = 3N + 7 cycles at the clock.",
        Verdict.PARTLY, "31 cycles at 192 MHz are 161.5 ns; the other fourteen rows agree.",
        figures=(
            Figure("cycles of SOR_1M_N", 31, 31), Figure("ns at 192 MHz", "157.0", "161.5"),
            Figure("rows of Table 4 with the latency of their cycles, within 0.5 ns", 15, 14),
        ),
        compute=_latency_of_1m_n, tests=("tests/designs/test_sor.py::test_printed_cycles",),
    ),
    Item(
        22, "Tables 4 and 5, throughput", "Mbps of all designs in one column",
        "bits of one kind, divided by the latency or the interval.", Verdict.WRONG,
        "SOR rows count 560 bits in each latency, and 560 is the range of the forty 14-bit moduli of the other "
        "designs: SOR's own base has 528 bits, an operand 256. sQ-RNS and dQ-RNS count 520 bits, [27] 256 bits for "
        "each issue, and the rows of [20] fit neither. At 256 bits a product SOR_2M on Kintex UltraScale+ has 2,658 "
        "Mbps (printed 5,821).",
        figures=(
            Figure("bits that all 15 rows of Table 4 count in a latency", None, 560),
            Figure("bits of the base of Table 1", None, 528),
            Figure("bits that sQ-RNS counts in its latency", None, 520),
            Figure("bits that dQ-RNS counts in its latency", None, 520),
            Figure("bits that MM_PA_P [27] counts in a period", None, 256),
            Figure("bits that MM_PA_P and MM_PA_N [20] count in a latency", None, "210 and 242"),
            Figure("Mbps of SOR_1M_P on Kintex UltraScale+ at 256 bits a product", 4364, 1995),
            Figure("Mbps of SOR_2M on Kintex UltraScale+ at 256 bits a product", 5821, 2658),
        ),
        compute=_throughput,
    ),
    Item(
        23, "Section 4.1", 'improvements of "41.1 %", "14.9 %", "27.6 %" and "36 %"', "of the printed latencies.",
        Verdict.PARTLY, "From the printed latencies 41.5, 14.8 and 27.7; the 36 % is right.",
        figures=(
            Figure("SOR_2M against MM_SPA, %", "41.1", "41.5"), Figure("SOR_1M_P against sQ-RNS, %", "14.9", "14.8"),
            Figure("SOR_1M_P against MM_SPA, %", "27.6", "27.7"), Figure("SOR_2M against sQ-RNS, %", "36.0", "36.0"),
        ),
        compute=_improvements,
    ),
    Item(
        24, "Table 5", "MM_PA_P [20] on Virtex 6: 14.20 ns at 71.40 MHz",
        "the latency of a product in a pipeline of three stages.", Verdict.UNEXPLAINED,
        "14.20 ns are about one period, though not exactly, in a pipelined design. The row of [27] for the same "
        "architecture gives three periods, and that of MM_PA_N, which has no pipeline, one.",
        "one period, the time between two results; then the row is not comparable with the others.",
        (
            Figure("periods in the latency of MM_PA_P [20]", "3.000", "1.014"),
            Figure("periods in the latency of MM_PA_N [20]", "1.000", "1.000"),
            Figure("periods in the latency of MM_PA_P [27]", "3.000", "3.000"),
        ),
        _periods,
    ),
    Item(
        25, "Table 5, MM_SPA [27]", "239.2 ns at 54.34 MHz, 1391 Mbps, 512 DSP blocks",
        "one multiply-accumulator for each channel.", Verdict.UNSTATED,
        "The figures imply four multiply-accumulators for each channel, which the paper does not state: forty terms "
        "in 10 cycles are four in each cycle, and the three other cycles are product, gamma and the final reduction. "
        "One accumulator would take 43 cycles. Our mm-spa has four.",
        "four for each channel; the figures need it.",
        (
            Figure("cycles in the latency", None, 13),
            Figure("cycles from product to product, 256 bits each", None, 10), Figure("terms in a cycle", None, 4),
            Figure("latency of our mm-spa", None, 13), Figure("interval of our mm-spa", None, 10),
            Figure("latency with one accumulator", None, 43),
        ),
        _accumulators, ("tests/designs/test_sor.py::test_original_sor_closes_the_loop_with_forty_channels",),
    ),
    Item(
        30, "Tables 3 and 4",
        'the clock lets an RNS multiplication take two periods; Table 3 has its delays and the "max achieved '
        'frequency", Table 4 the clocks of the machines',
        "no clock exceeds 2 / (logic delay + net delay), nor the achieved frequency of the same device.", Verdict.WRONG,
        "Table 3 contradicts itself for Artix 7 (109 MHz), and Table 4 has two machines above the limit from Table "
        "3's delays: at 138.8 MHz two periods are 14.4 ns, the multiplication takes 15.3 ns on Virtex 7. Half of "
        "Table 4 lies above Table 3's achieved frequencies.",
        "Table 3 is of another run of the tools than Table 4; the paper does not say so.",
        (
            Figure("MHz, at most, by the delays of the multiplier on Artix 7", "109.0", "93.8"),
            Figure("MHz, at most, on Virtex 7", None, "130.6"), Figure("MHz, at most, on Kintex 7", None, "119.9"),
            Figure("machines of Table 4 above these limits", "none", "SOR_1M_P on VIRTEX 7, SOR_2M on KINTEX 7"),
            Figure("machines of Table 4 above the achieved frequency of Table 3", 0, 8),
        ),
        _clocks,
    ),
)  # fmt: skip
