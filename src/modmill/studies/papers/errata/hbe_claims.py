# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Errors of the HBE paper and its slides in costs, tables and claims about them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from modmill.numbers.rns.rns_costs import (
    BE_MM,
    HPR_2,
    HPR_4,
    RATIOS,
    Algorithm,
    asymptote,
    extension_ratio,
    first_faster,
    first_saving,
    product_ratio,
)
from modmill.report.errata import Figure, Item, Value, Verdict, decimal
from modmill.studies.papers.hbe_tables import CMM, CMR, PAIRS, TABLE_I, TABLE_III, WIDTHS, Implementation, paper_n

AT = {(row.bits, row.w, row.algorithm): row for row in TABLE_III}


def _ratios(quantity: str) -> list[Fraction]:
    """CMM / CMR of a column of Table I, for w = 17, 20, 24, 28."""
    of = {(op.name, op.w): Fraction(str(getattr(op, quantity))) for op in TABLE_I}
    return [of[CMM, w] / of[CMR, w] for w in WIDTHS]


def _ratio_of_table_i() -> Sequence[Value]:
    times, blocks = _ratios("ns"), _ratios("dsp")
    inside = [sum(2 <= r <= 4 for r in some) for some in (times, blocks)]
    return [*(decimal(r, 2) for r in times), inside[0], ", ".join(decimal(r, 1) for r in blocks), inside[1]]


def percent(ratio: Fraction) -> str:
    """What is saved, in percent."""
    return f"{decimal(100 * (1 - ratio), 1)} %"


def _thirty_five() -> Sequence[Value]:
    most = max((1 - extension_ratio(n, r), n) for n in range(6, 33) for r in RATIOS)[1]
    return [percent(extension_ratio(most, 4)), most, first_saving(Fraction(35, 100), 4) or 0, percent(asymptote(4))]


def _where_hpr_wins() -> Sequence[Value]:
    return [first_faster(HPR_4, HPR_2, r) or 0 for r in (None, 2, 4)]


def _pessimistic() -> Sequence[Value]:
    by_saving = sorted(RATIOS, key=lambda r: extension_ratio(16, r))
    measured = sum(r >= 4 for r in _ratios("ns"))
    better = extension_ratio(16, 6) < extension_ratio(16, 4)
    return [f"r = {by_saving[0]}", measured, "yes" if better else "no"]


def _spans() -> Sequence[Value]:
    def span(algorithm: Algorithm, low: int, high: int) -> str:
        least, most = (100 * (1 - product_ratio(algorithm, n, r)) for n, r in ((low, 2), (high, 4)))
        return f"{decimal(least, 1)} to {decimal(most, 1)} %"

    return [span(HPR_4, 32, 32), span(BE_MM, 16, 32), span(HPR_2, 16, 16), span(HPR_2, 32, 32)]


def less(pair: tuple[Implementation, Implementation], quantity: str) -> Fraction:
    """By how many percent the second column of Table III is below the first."""
    old, new = (Fraction(str(getattr(row, quantity))) for row in pair)
    return 100 * (1 - new / old)


def _twenty_bits() -> Sequence[Value]:
    at = {(k.bits, k.w): (k, h) for k, h in PAIRS}
    return [f"{decimal(less(at[256, w], quantity), 1)} %" for w in (20, 24) for quantity in ("ns", "dsp")]


def _wider_channels() -> Sequence[Value]:
    out = []
    for algorithm in ("HBE", "KBE"):
        pair = AT[384, 17, algorithm], AT[384, 28, algorithm]
        out += [f"{decimal(less(pair, 'ns'), 1)} %", f"{decimal(-less(pair, 'dsp'), 1)} %"]
    return out


def _blocks_of_kbe() -> Sequence[Value]:
    of_table_i = {op.w: op.dsp for op in TABLE_I if op.name == CMM}
    kbe = {(k.bits, k.w): k.dsp for k, _ in PAIRS}
    suggested = {key: dsp // of_table_i[key[1]] - 1 for key, dsp in kbe.items() if dsp % of_table_i[key[1]] == 0}
    as_by_rule = sum(n == (18 if key == (384, 24) else paper_n(*key)) for key, n in suggested.items())
    return [paper_n(384, 17), suggested[384, 17], as_by_rule, len(suggested)]


def _slides() -> Sequence[Value]:
    times, periods = ([less(pair, quantity) for pair in PAIRS] for quantity in ("ns", "period"))
    return [f"{decimal(value, 1)} %" for value in (max(times), -min(periods), -min(times))]


ITEMS = (
    Item(
        6, "Section IV-C",
        '"CMR requires about half of the time and half of area" of CMM; "we assume CMM / 4 <= CMR <= CMM / 2"',
        "the times of Table I lie between these bounds.", Verdict.WRONG,
        "Only w = 17 does; w = 20 misses it by two per cent, and for 24 and 28, where HBE gains least, the ratio is "
        "clearly outside the assumption.",
        "DSP blocks instead of times; they do not either.",
        (
            Figure("w = 17: CMM / CMR, times", None, "3.25"), Figure("w = 20", None, "4.08"),
            Figure("w = 24", None, "1.18"), Figure("w = 28", None, "1.78"),
            Figure("widths with a ratio of times from 2 to 4", 4, 1),
            Figure("CMM / CMR, DSP blocks", "2.0, 2.0, 2.0, 2.0", "1.5, 1.5, 4.0, 5.0"),
            Figure("widths with a ratio of DSP blocks from 2 to 4", 4, 1),
        ),
        _ratio_of_table_i, ("tests/studies/papers/test_hbe.py::test_ratios_of_table_i",),
    ),
    Item(
        7, "Section IV-C, VII", '"improvements up to 35 %" for 6 to 32 moduli',
        "the largest saving in Figure 2 for n <= 32.", Verdict.WRONG,
        "35 % needs more moduli than the claim covers, and 37.5 % is the limit.",
        "the range of the figure, which ends at n = 60; there it holds.",
        (
            Figure("the largest saving for n = 6 ... 32, r = 4", "35.0 %", "33.3 %"), Figure("it is at n =", None, 32),
            Figure("35 % from n =", None, 54), Figure("limit for r = 4", None, "37.5 %"),
        ),
        _thirty_five,
    ),
    Item(
        8, "Section V", '"The number of moduli is assumed to be at least 16 (below HPR with d = 2 is faster)"',
        "HPR with d = 2 costs less than with d = 4 below n = 16, by Table II.", Verdict.WRONG,
        "By Table II d = 4 is cheaper earlier, with every base extension.",
        "faster in an implementation; the paper has none.",
        (
            Figure("KBE: d = 4 is cheaper from n =", 16, 9), Figure("HBE, r = 2: from n =", 16, 11),
            Figure("HBE, r = 4: from n =", 16, 13),
        ),
        _where_hpr_wins,
    ),
    Item(
        9, "Section V", '"Our evaluations assume a pessimistic ratio CMM / CMR = 4"',
        "of the ratios considered, 4 is the one with which HBE costs most.", Verdict.PARTLY,
        "Of the curves r = 2, 3, 4 it is the most favourable to HBE, and in only one of four widths does Table I "
        "reach it. As the authors mean it, with the next sentence, better moduli would give a larger ratio, and then "
        "4 is cautious; no such moduli are shown.",
        "a ratio below that of well chosen moduli, which the authors plan; HBE would indeed gain more with r = 6.",
        (
            Figure("HBE costs least, of r = 2, 3, 4, with", "another", "r = 4"),
            Figure("widths of Table I with a ratio of times of 4 or more", 4, 1),
            Figure("a larger ratio would save more", "yes", "yes"),
        ),
        _pessimistic,
    ),
    Item(
        13, "Section V, Figure 6", '"For n = 32, HBE is 8 to 15 % faster"', "HPR with d = 4, r = 2 to 4.",
        Verdict.PARTLY, "7.1 to 14.3 %. The other spans are right as rounded numbers.",
        figures=(
            Figure("HPR with d = 4, n = 32", "8.0 to 15.0 %", "7.1 to 14.3 %"),
            Figure("BE MM, n = 16 to 32 (paper: 17 to 32)", None, "16.7 to 32.4 %"),
            Figure("HPR with d = 2, n = 16 (paper: 8 to 17)", None, "8.3 to 16.7 %"),
            Figure("HPR with d = 2, n = 32", "15.0 to 25.0 %", "15.0 to 25.0 %"),
        ),
        compute=_spans, tests=("tests/numbers/test_rns_costs.py::test_claims_about_the_figures",),
    ),
    Item(
        14, "Section VI", '"for 256-bit F_P elements and 20-bit channels, HBE is 10 % faster and 19 % smaller in DSPs"',
        "the cells of Table III for w = 20.", Verdict.MISPRINT, "These numbers belong to w = 24.",
        "the cells for w = 24; this is meant.",
        (
            Figure("w = 20: faster by", "10 %", "12.6 %"), Figure("w = 20: fewer DSP blocks by", "19 %", "13.3 %"),
            Figure("w = 24: faster by", None, "9.9 %"), Figure("w = 24: fewer DSP blocks by", None, "19.2 %"),
        ),
        _twenty_bits, ("tests/studies/papers/test_hbe.py::test_what_follows_from_table_iii",),
    ),
    Item(
        15, "Section VI",
        '384 bits: "speedup the computation by 40 % for a 28 % increase of the number of DSP slices by increasing the '
        'channels width"',
        "HBE, w = 17 to 28.", Verdict.WRONG,
        "The two numbers are of different algorithms: 40 % is HBE's time, 28 % the increase for KBE, whose time falls "
        "much less.",
        "KBE, w = 17 to 28; then the time is wrong.",
        (
            Figure("HBE: less time by (paper: 40 %)", None, "39.5 %"),
            Figure("HBE: more DSP blocks by", "28 %", "27.0 %"), Figure("KBE: less time by", "40 %", "18.7 %"),
            Figure("KBE: more DSP blocks by (paper: 28 %)", None, "28.4 %"),
        ),
        _wider_channels, ("tests/studies/papers/test_hbe.py::test_what_follows_from_table_iii",),
    ),
    Item(
        16, "Table III", "384 bits, w = 17: 81 DSP blocks for KBE",
        "n + 1 multipliers of Table I, as in the other columns of KBE.", Verdict.UNEXPLAINED,
        "In the five other columns that are a multiple of one multiplier's DSP blocks, n is that of the rule (item 2: "
        "18 for w = 24). 81 = 3 (26 + 1) would need n = 26.",
        figures=(
            Figure("n by the rule", None, 24), Figure("n that 81 DSP blocks suggest", 24, 26),
            Figure("columns of KBE with n as by the rule", None, 5),
            Figure("of columns with a multiple of a multiplier's DSP blocks", None, 6),
        ),
        compute=_blocks_of_kbe, tests=("tests/studies/papers/test_hbe.py::test_number_of_moduli",),
    ),
    Item(
        17, "slides, results and conclusion", '"up to 18 % in total time", "no impact on ... periods"',
        "of the table on the slides, which is Table III.", Verdict.WRONG,
        "The best time is 19.0 % less (384 bits, w = 24); at 384 bits, w = 17 the period grows by a third, and HBE is "
        "slower.",
        figures=(
            Figure("the largest saving of time", "18.0 %", "19.0 %"),
            Figure("the period grows by up to", "0.0 %", "32.9 %"), Figure("the time grows by up to", None, "15.2 %"),
        ),
        compute=_slides, tests=("tests/studies/papers/test_hbe.py::test_what_follows_from_table_iii",),
    ),
)  # fmt: skip
