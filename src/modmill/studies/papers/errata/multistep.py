# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Errors of the multi-step paper. Letters: m of k bits, s steps in a clock, k = s t + r."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from modmill.designs import design
from modmill.designs.multistep.design import Multistep, step
from modmill.numbers.moduli import parse_modulus
from modmill.report.errata import Figure, Item, Value, Verdict, decimal
from modmill.studies.papers.multistep import ADDITION, BITS, DOUBLING, MODULUS, PRINTED_MS, TABLE_1

CLOCKS = {(name, algorithm): (Fraction(str(mhz)), clocks, Fraction(str(us)))
          for name, _, algorithm, mhz, clocks, us in TABLE_1}  # fmt: skip
THIS, FULL = CLOCKS["This work", "serial-parallel"], CLOCKS["[15]", "fully parallel"]
BEFORE = [CLOCKS["[16]", f"IDDMM, k = {k}"] for k in (32, 64)]


def loop(x: int, y: int, m: int, bits: Iterable[int]) -> int:
    """The steps of Algorithm 2 for the listed bits of x, and its last subtraction."""
    p = 0
    for i in bits:
        a = p + (x >> i & 1) * y
        p = (a + a % 2 * m) // 2
    return p - m if p >= m else p


def _algorithm_3() -> Sequence[Value]:
    k, s = 256, 16
    t, r = divmod(k, s)
    m, x, y = 13, 6, 9
    right = []
    for steps in (2, 3):  # of 4 bits: without and with a remainder
        t3, r3 = divmod(4, steps)
        printed = [i for _ in range(t3 + (r3 > 0)) for i in range(4)]
        meant = [*(i * steps + j for i in range(t3) for j in range(steps)), *(t3 * steps + j for j in range(r3))]
        right.append([loop(x, y, m, bits) == x * y * pow(2, -4, m) % m for bits in (printed, meant)])
    return [t * k + k * (r > 0), t * s + r, sum(p for p, _ in right), sum(q for _, q in right)]


def _clocks_of_a_product() -> Sequence[Value]:
    fitted = design("multistep").fit(parse_modulus(MODULUS).value, s=16, loadable=True)
    assert isinstance(fitted, Multistep)
    return [fitted.params.loop, fitted.schedule.interval, fitted.schedule.latency, fitted.params.adder]


def _decrease() -> Sequence[Value]:
    exact = 100 * (1 - (THIS[1] / THIS[0]) / (BEFORE[1][1] / BEFORE[1][0]))
    return [f"{100 * (1 - THIS[2] / BEFORE[1][2]) // 1} %", f"{decimal(exact, 1)} %",
            "yes" if THIS[1] / THIS[0] < FULL[1] / FULL[0] else "no"]  # fmt: skip


def _faster() -> Sequence[Value]:
    own = THIS[1] / THIS[0]
    slower = [f"{name}" for (name, _), (mhz, clocks, _) in CLOCKS.items() if clocks / mhz < own]
    return [", ".join(slower), f"{decimal(own, 3)} us", f"{decimal(FULL[1] / FULL[0], 3)} us"]


def _scalar_multiplication() -> Sequence[Value]:
    time = THIS[1] / THIS[0]
    least, most = ((PRINTED_MS + Fraction(k, 200)) * 1000 / time / BITS for k in (-1, 1))
    inversion = Fraction(3 * BITS, 2) * time / 1000
    return [
        int(PRINTED_MS * 1000 / time), decimal(PRINTED_MS * 1000 / time / BITS, 2),
        f"{decimal(least, 2)} to {decimal(most, 2)}", decimal(DOUBLING + ADDITION / 2, 2),
        f"{decimal(inversion, 2)} ms", f"{decimal(PRINTED_MS + inversion, 2)} ms",
    ]  # fmt: skip


def _more_steps() -> Sequence[Value]:
    def largest(extra: int) -> Fraction:
        """The largest result / m of k + ``extra`` steps without subtraction, operands below 2 m."""
        found = Fraction(0)
        for m in (9, 11, 15):
            for x in range(2 * m):
                for y in range(2 * m):
                    s = c = 0
                    for i in range(m.bit_length() + extra):
                        s, c = step(s, c, y if x >> i & 1 else 0, m)
                    found = max(found, Fraction(s + c, m))
        return found

    one, two = largest(1), largest(2)
    return [decimal(one, 2), decimal(two, 2), "yes" if two < 2 else "no"]


def _lambda() -> Sequence[Value]:
    most = 0
    for m in range(3, 16, 2):
        R = 1 << m.bit_length()
        most = max(most, R - max(b * -pow(m, -1, R) % R for b in range(R)))
    return [f"R - {most}"]


def _half() -> Sequence[Value]:
    m, tried = 13, range(26)
    return [sum((a * factor - (a + a % 2 * m) // 2) % m == 0 for a in tried) for factor in (2, pow(2, -1, m))]


def _times() -> Sequence[Value]:
    return [f"{decimal(clocks / mhz, 2)} us" for mhz, clocks, _ in BEFORE]


def _full_parallel() -> Sequence[Value]:
    return [FULL[1]]


ITEMS = (
    Item(
        1, "Algorithm 3", "for i = 0 to t - 1: for i = 0 to k - 1; then, if r > 0, for i = 0 to k - 1",
        "as printed: both loops use i, and the inner one runs to k - 1.", Verdict.WRONG,
        "The bit index is i s + j for j < s, and t s + j for j < r in the remainder. As printed there are t k (+ k) "
        "steps, and the result has another factor.",
        "s steps of the inner loop in each clock, as the text says; this is meant.",
        (
            Figure("steps for k = 256, s = 16", 256, 4096), Figure("steps as meant", None, 256),
            Figure("k = 4, m = 13, s = 2 and 3: right as printed", 2, 0), Figure("right as meant", None, 2),
        ),
        _algorithm_3,
    ),
    Item(
        2, "abstract, conclusion", '"a completion of modular multiplication requires only 16 clock circles"',
        "from operands to the result below m.", Verdict.PARTLY,
        "This is the loop only, and in our machine the interval between products. The carry-save result must still be "
        "added up and m subtracted; this can hide behind the next product's loop, but it is in the latency.",
        "the loop, or the interval in a pipeline; this holds.",
        (
            Figure("clocks of the loop", 16, 16), Figure("clocks between products of our multistep", 16, 16),
            Figure("clocks to the result of our multistep", 16, 31),
            Figure("bits that its final adder adds in a clock", None, 22),
        ),
        _clocks_of_a_product, ("tests/designs/test_multistep.py::test_the_final_addition_hides_behind_the_loop",),
    ),
    Item(
        3, "abstract", '"decreasing 42%"', "the time of a product against all compared multipliers.", Verdict.PARTLY,
        "Against [16] alone, from rounded times (0.2 and 0.35 us); by clocks and frequencies it is 38 %. [15] takes "
        "half the time.",
        "against [16] with k = 64, from the printed times; this holds.",
        (
            Figure("from the printed times of this work and of [16], cut", "42 %", "42 %"),
            Figure("from clocks and frequencies", "42 %", "38.2 %"), Figure("less than the time of [15]", "yes", "no"),
        ),
        _decrease, ("tests/studies/papers/test_multistep.py::test_the_decrease_is_against_one_row_only",),
    ),
    Item(
        4, "Section 5", '"more faster than previous designs on ASIC or FPGA devices"', "than every design of Table 1.",
        Verdict.WRONG, "[15] is faster, by the paper's own Table 1; Section 4 says so too.",
        "than those designs that use no or few DSP blocks; then the sentence leaves out the condition.",
        (
            Figure("designs of Table 1 with less time", "none", "[15]"), Figure("time of this work", None, "0.208 us"),
            Figure("time of [15]", None, "0.100 us"),
        ),
        _faster,
    ),
    Item(
        5, "abstract", '"the computation of a 256-bit scalar point multiplication over GF(p) would take about 0.76 ms"',
        "the time of all products, inversion included.", Verdict.UNSTATED,
        "The paper derives the number nowhere. It is the time of 3,648 products of 208.3 ns, or 14.25 for each bit of "
        "the scalar. 8 for a doubling and 12.5 for an addition at every second bit is a fit of ours, not the paper's: "
        "any method with 14.16 to 14.34 products a bit gives the rounded number. An inversion by exponentiation, "
        "which such a count leaves out, would take 0.08 ms more.",
        "the loop of the scalar multiplication without conversion to affine coordinates.",
        (
            Figure("products of 16 clocks at 76.8 MHz in 0.76 ms", None, 3648), Figure("products a bit", None, "14.25"),
            Figure("products a bit for 0.755 to 0.765 ms", None, "14.16 to 14.34"),
            Figure("8 + 12.5 / 2", None, "14.25"), Figure("an inversion by exponentiation", None, "0.08 ms"),
            Figure("together", None, "0.84 ms"),
        ),
        _scalar_multiplication, ("tests/studies/papers/test_multistep.py::test_the_scalar_multiplication",),
    ),
    Item(
        6, "Algorithm 2", "step 3 subtracts m once", "how many steps make it unnecessary.", Verdict.UNSTATED,
        "A question that the paper does not raise: k + 2 steps keep results of operands below 2 m below 2 m, k + 1 do "
        "not.",
        figures=(
            Figure("m = 9, 11, 15: the largest result of k + 1 steps, in m", None, "2.60"),
            Figure("of k + 2 steps", None, "1.80"), Figure("it is below 2 m", None, "yes"),
        ),
        compute=_more_steps,
    ),
    Item(
        7, "Algorithm 1", "0 <= lambda <= R", "lambda = R is possible.", Verdict.MISPRINT,
        "lambda is a residue modulo R, so below R.",
        figures=(Figure("odd m below 16, all B: the largest lambda", "R", "R - 1"),), compute=_lambda,
    ),
    Item(
        8, "(4)", '"a2 = a / 2 mod m if a mod 2 = 0, a2 = (a + m) / 2 mod m" otherwise', "a times 2.", Verdict.MISPRINT,
        "It must be a times 2^-1.",
        figures=(
            Figure("m = 13, a = 0 ... 25: congruent with factor 2", 26, 2),
            Figure("congruent with factor 2^-1", None, 26),
        ),
        compute=_half,
    ),
    Item(
        9, "Section 2.2", '"calculate remainder by division (x y) / p"', "a modulus p.", Verdict.MISPRINT,
        "The modulus is m, by (1) of the paper; p is the running sum of Algorithm 2.",
    ),
    Item(
        10, "Table 1, [16]", '"Altera Spartan3"', "a device of Altera.", Verdict.MISPRINT,
        "Spartan is Xilinx's name, and the other row of [16] has a Xilinx device.",
    ),
    Item(
        11, "Table 1, [16]", "79 clocks at 63.8 MHz: 1.25 us; 23 at 68.24: 0.35 us", "clocks over frequency.",
        Verdict.WRONG, "1.24 and 0.34 us.",
        figures=(
            Figure("k = 32", "1.25 us", "1.24 us"), Figure("k = 64", "0.35 us", "0.34 us"),
        ),
        compute=_times, tests=("tests/studies/papers/test_multistep.py::test_what_is_predicted_of_table_1",),
    ),
    Item(
        12, "Section 4", '"81 embedded multipliers and 23405 LES" for [14], "23405LE and 16DSP" for [15]',
        "the LEs of each design.", Verdict.UNEXPLAINED,
        "One number for two designs, one of 15 clocks and one of 3: by comparison of the two sentences.",
    ),
    Item(
        13, "Section 5", '"can also be performed other platform due to using internal DSP units"', "as printed.",
        Verdict.MISPRINT,
        'It must be "due to not using" them: by comparison with Section 1, which says "without occupying internal DSP '
        'units".',
    ),
    Item(
        14, "Section 3.2", '"Full parallel structure need to complete all operations in one clock cycle"',
        "every fully parallel design takes one clock.", Verdict.WRONG,
        "[15] of Table 1 is called fully parallel there and takes 3 clocks.",
        "a definition, to which [15] would not belong; then Table 1 names it wrongly.",
        (Figure("clocks of [15]", 1, 3),), _full_parallel,
    ),
)  # fmt: skip
