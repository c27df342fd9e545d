# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The sum of residues paper: every printed cell of its five tables stands in our sections."""

from dataclasses import replace

import pytest

from modmill.designs import design
from modmill.numbers.moduli import parse_modulus
from modmill.schedule import Schedule
from modmill.studies.papers import sor
from modmill.studies.papers.bench import Bench
from modmill.studies.papers.sor_charts import FIGURES, NAMES, REASONS, chart_differences

# Transcribed from the paper once more, row by row as it prints them.
TABLE_1 = """
    2^66 - 1        2^66 - 2^2 - 1  2^66 - 2^3 - 1  2^66 - 2^4 - 1
    2^66 - 2^5 - 1  2^66 - 2^6 - 1  2^66 - 2^8 - 1  2^66 - 2^9 - 1
"""
TABLE_2 = """
    ED25519    | 2^255 - 19                       | 8  | 66 | 2^186   | 19
    SECP160K1  | 2^160 - 2^32 - 21389             | 5  | 66 | 2^94/5  | 2^32 + 21389
    SECP160R1  | 2^160 - 2^32 - 1                 | 5  | 66 | 2^94/5  | 2^32 + 1
    SECP192K1  | 2^192 - 2^32 - 4553              | 6  | 66 | 2^125/3 | 2^32 + 4553
    SECP192R1  | 2^192 - 2^64 - 1                 | 6  | 66 | 2^125/3 | 2^64 + 1
    SECP224K1  | 2^224 - 2^32 - 6803              | 7  | 66 | 2^158/7 | 2^32 + 6803
    SECP224R1  | 2^224 - 2^96 + 1                 | 7  | 66 | 2^158/7 | 2^96 - 1
    SECP256K1  | 2^256 - 2^32 - 977               | 8  | 66 | 2^187   | 2^32 + 977
    SECP2384R1 | 2^384 - 2^128 - 2^96 + 2^31 - 1  | 12 | 66 | 2^316/3 | 2^128 + 2^96 - 2^31 + 1
    SECP521R1  | 2^521 - 1                        | 16 | 66 | 2^451   | 1
"""
TABLE_3 = """
    ARTIX 7     16.206 5.112 109.00   6.017 2.303 109.00
    VIRTEX 7    11.525 3.793 125.00   3.931 1.469 125.00
    VIRTEX US+   5.910 4.099 185.18   2.139 2.454 185.18
    KINTEX 7    11.964 4.711 116.27   4.613 1.599 116.27
    KINTEX US+   5.789 4.099 187.13   2.018 2.454 187.13
"""
TABLE_4 = """
    SOR_1M_N, ARTIX 7     92.5   335   8.17  3758 140 1671
    SOR_1M_N, VIRTEX 7    128.8  241   8.17  3758 140 2323
    SOR_1M_N, KINTEX 7    117.67 263   8.29  3758 140 2129
    SOR_1M_N, VIRTEX US+  192    157   8.14  3758 140 3567
    SOR_1M_N, KINTEX US+  198    156.5 8.29  3758 140 3578
    SOR_1M_P, ARTIX 7     92.5   259.5 8.73  4279 140 2158
    SOR_1M_P, VIRTEX 7    138.8  173   8.73  4279 140 3237
    SOR_1M_P, KINTEX 7    117.6  204   8.89  4279 140 2745
    SOR_1M_P, VIRTEX US+  185.18 130   8.71  4279 140 4307
    SOR_1M_P, KINTEX US+  187.13 128.3 8.89  4279 140 4364
    SOR_2M, ARTIX 7       92.5   194.6 10.11 4797 280 2877
    SOR_2M, VIRTEX 7      128.5  140   10.11 4797 280 3998
    SOR_2M, KINTEX 7      121.9  147.6 10.27 4797 280 3794
    SOR_2M, VIRTEX US+    185.18 97.3  10.11 4797 280 5761
    SOR_2M, KINTEX US+    187.13 96.3  10.26 4797 280 5821
"""
TABLE_5 = """
    MM_PA_P [20], VIRTEX 6        71.40  14.20  36.5  2016 14798
    MM_PA_N [20], VIRTEX 6        21.16  47.25  34.34 2016 5120
    MM_PA_P [27], VIRTEX 7        62.11  48.3   29.17 2799 15900
    MM_SPA [27], VIRTEX 7         54.34  239.2  11.43 512  1391
    (Ours) SOR_1M_P, VIRTEX 7     138.8  173    8.73  140  3237
    (Ours) SOR_2M, VIRTEX 7       128.5  140    10.11 280  3998
    sQ-RNS [18], KINTEX US+       139.5  107.53 4.247 84   4835
    dQ-RNS [18], KINTEX US+       142.7  126.14 4.076 84   4122
    (Ours) SOR_1M_P, KINTEX US+   187.13 128.3  8.89  140  4364
    (Ours) SOR_2M, KINTEX US+     187.13 96.3   10.26 280  5821
"""
ESTIMATED = {"sQ-RNS [18], KINTEX US+": 150.53, "dQ-RNS [18], KINTEX US+": 168.18}
"""In brackets behind the latency in Table 5."""


def rows(text, numbers):
    """(name, cells) of each line, the last ``numbers`` words its cells."""
    for line in text.strip().splitlines():
        words = line.split()
        yield " ".join(words[:-numbers]), [float(word) for word in words[-numbers:]]


def printed_cells():
    """{(start of the section's title, what a line must be called): the printed cell}."""
    cells = {}
    moduli = [text.strip() for line in TABLE_1.strip().splitlines() for text in line.split("  ") if text.strip()]
    cells |= {("Table 1", f"m_{i}"): text for i, text in enumerate(moduli, 1)}
    for line in TABLE_2.strip().splitlines():
        curve, *texts = (part.strip() for part in line.split("|"))
        for name, text in zip(("modulus p", "N", "n", "2^(W-n)/N", "epsilon"), texts, strict=True):
            cells["Table 2", f"{curve}: {name}"] = int(text) if name in ("N", "n") else text
    for device, numbers in rows(TABLE_3, 6):
        for k, number in enumerate(numbers):
            name = ("logic delay ns", "net delay ns", "clock MHz")[k % 3]
            cells["Table 3", f"RNS {('Multiplier', 'Adder')[k // 3]}, {device}: {name}"] = number
    names = ("clock MHz", "latency ns", "KLUT", "FF", "DSP", "throughput Mbps")
    for title, text, columns in (("Table 4", TABLE_4, names), ("Table 5", TABLE_5, [n for n in names if n != "FF"])):
        for where, numbers in rows(text, len(columns)):
            cells |= {(title, f"{where}: {name}"): n for name, n in zip(columns, numbers, strict=True)}
    return cells | {("Table 5", f"{w}: latency ns, estimated with the product"): ns for w, ns in ESTIMATED.items()}


def faults(sections):
    """Cells of the tables that no line accounts for, that two do, or that are wrong."""
    found = {}
    for section in sections:
        for line in section.lines:
            if line.printed is not None:
                found.setdefault((section.title[:7], line.what), []).append(line.printed)
    for key, cell in printed_cells().items():
        if found.get(key) != [cell]:
            yield f"{key}: {found.get(key)}, the paper has {cell}"


@pytest.fixture(scope="module")
def sections():
    return sor.sections(Bench(recorded=True))


def test_every_printed_cell_is_there(sections):
    assert len(printed_cells()) == 8 + 10 * 5 + 5 * 6 + 15 * 6 + 10 * 5 + 2
    assert list(faults(sections)) == []


@pytest.mark.parametrize("what", ["m_7", "SECP224R1: epsilon", "SOR_2M, KINTEX 7: KLUT", "MM_SPA [27], VIRTEX 7: DSP"])
def test_a_missing_double_or_wrong_cell_is_found(sections, what):
    for change in (lambda line: [], lambda line: [line, line], lambda line: [replace(line, printed="else")]):
        broken = [
            replace(s, lines=[x for line in s.lines for x in (change(line) if line.what == what else [line])])
            for s in sections
        ]
        assert len([fault for fault in faults(broken) if what in fault]) >= 1


def test_what_differs_from_print_has_its_reason(sections):
    """Where a formula, a schedule or a prime test gives something else, the line says why; measured values are another
    device's or another tool's and need none."""
    silent = [
        (s.title, line.what)
        for s in sections
        for line in s.lines
        if line.printed is not None and line.predicted not in (None, line.printed) and not line.why
    ]
    epsilons = {"SECP160R1: epsilon", "SECP2384R1: epsilon"}  # follow from the moduli, whose lines say it
    assert {what for _, what in silent} - epsilons == {
        what for title, what in silent if title.startswith(("Section 4.1", "Table 3", "Table 4"))
    }


def not_printed(sections):
    """Lines of Tables 3 to 5 whose printed value is no cell of the paper."""
    cells = printed_cells()
    return [
        line.what
        for s in sections
        if s.title.startswith(("Table 3", "Table 4", "Table 5"))
        for line in s.lines
        if line.printed is not None and cells.get((s.title[:7], line.what)) != line.printed
    ]


def test_nothing_else_is_called_printed(sections):
    """Cycles follow from latency and clock, and stand as such. The planted fault: they are called printed."""
    assert not_printed(sections) == []
    broken = [
        replace(s, lines=[replace(x, printed=x.predicted) if x.what.endswith(": cycles") else x for x in s.lines])
        for s in sections
    ]
    assert len(not_printed(broken)) == 15
    (line,) = (x for s in sections for x in s.lines if x.what == "SOR_1M_N, ARTIX 7: cycles")
    assert line.predicted == 31 and line.why == "printed latency times printed clock: 30.99"


def test_the_clock_of_table_3_follows_from_its_delays(sections):
    """The multiplier has two periods and limits each clock. Above that are Artix 7, and Virtex 7 in Table 4."""
    found = {line.what: line for s in sections if s.title.startswith("Table 3") for line in s.lines}
    limits = {}
    for device, (mul, mul_net, mhz, add, add_net, _) in rows(TABLE_3, 6):
        for unit, period in (("Multiplier", (mul + mul_net) / 2), ("Adder", add + add_net)):
            line = found[f"RNS {unit}, {device}: clock MHz"]
            assert line.printed == mhz and line.predicted == round(1000 / period, 1)
        limits[device] = found[f"RNS Multiplier, {device}: clock MHz"].predicted
        assert limits[device] <= found[f"RNS Adder, {device}: clock MHz"].predicted
    assert {device for device, (_, _, mhz, _, _, _) in rows(TABLE_3, 6) if mhz > limits[device]} == {"ARTIX 7"}
    best = {device: max(mhz for _, where, mhz, *_ in sor.TABLE_4 if where == device) for device in limits}
    assert best["VIRTEX 7"] == 138.8 > limits["VIRTEX 7"] == 130.6


def test_no_clock_without_routing_stands_beside_the_papers(sections):
    for s in sections:
        if s.title.startswith(("Table 4", "Table 5")):
            assert not [x.what for x in s.lines if x.what.endswith(("clock MHz", "latency ns")) and x.measured
                        and "ECP5" not in x.what]  # fmt: skip


def test_machines_without_a_table(sections):
    cycles = next(s for s in sections if s.title.startswith("Section 4: cycles"))
    assert [(x.predicted, x.measured) for x in cycles.lines[:4]] == [(31, 31), (24, 24), (18, 18), (12, 12)]
    lines = {x.what: x for s in sections for x in s.lines}
    less = lines["FF that SOR_1M_N has less"]
    assert (less.predicted, less.measured) == (528, 529)  # Q3 and its enable
    slow, fast = (lines[f"{name}: longest path of logic ns"].measured for name in ("SOR_1M_N", "SOR_1M_P"))
    assert slow > fast > 0
    ring, one = (lines[f"{name}: DSP blocks times cycles between products"] for name in
                 ("our ring of rowers", "SOR_1M_P, ours"))  # fmt: skip
    assert 2 * ring.measured < one.measured and ring.measured == ring.predicted


def test_the_search_is_drawn(sections):
    plots = next(s.plots for s in sections if "the search for q and T" in s.title)
    assert [plot.y for plot in plots] == ["beta", "bits", "mean difference"]
    for plot in plots:
        assert [dict(series.points).keys() >= {71, 72} for series in plot.series] == [True, True]


def test_figure_6_draws_table_4(sections):
    plots = next(s.plots for s in sections if s.title.startswith("Figure 6"))
    cells = printed_cells()
    for plot, name in zip(plots, ("latency ns", "throughput Mbps"), strict=True):
        drawn = [(s.name.split(",")[0], *point) for s in plot.series if s.kind == "printed" for point in s.points]
        assert len(drawn) == 15
        assert all(y == cells["Table 4", f"{who}, {where}: {name}"] for who, where, y in drawn)


KAPPA = range(2, 9)
# What of Figures A1 to A3 our schedules do in other cycles; elsewhere they start and end inside the printed columns.
ELSEWHERE = {"Figure A1": {f"K{i}" for i in KAPPA} | {f"K+K{i}" for i in KAPPA[1:]}}


def secp256k1(printed):
    return design(NAMES[printed.paper]).fit(parse_modulus("secp256k1").value).schedule


def cells_of(printed, plan):
    """The differences by kind, and what each says of its cell."""
    found = {kind: [] for kind in REASONS}
    for kind, text in chart_differences(printed, plan):
        found[kind].append(text)
    return found.values()


@pytest.mark.parametrize("printed", FIGURES, ids=lambda printed: printed.figure)
def test_charts_differ_where_we_say(printed):
    plan = secp256k1(printed)
    another, operands, cycles, part = cells_of(printed, plan)
    first = plan.on("kacc")[0]
    assert another == [] and [text.partition(", ours ")[::2] for text in operands] == [
        (f"kacc: {first.name} adds {' '.join(first.reads[:-1])}", " ".join(sorted(first.reads)))
    ]
    assert {text.split()[1] for text in cycles} == ELSEWHERE.get(printed.figure, set())
    assert all(plan[text.split()[1]].cycles == 1 for text in part)


@pytest.mark.parametrize("printed", FIGURES, ids=lambda printed: printed.figure)
def test_every_cell_of_the_charts_is_compared(printed):
    """Another operation, other operands and another column are found, cell by cell."""
    plan = secp256k1(printed)
    usual = set(chart_differences(printed, plan))
    for unit, row in printed.cells.items():
        for k, cell in enumerate(row):
            wrong = [replace(cell, name="other"), replace(cell, first=cell.first + 1, last=cell.last + 1)]
            wrong += [replace(cell, added=frozenset({"other"}))] if cell.added else []
            for planted in wrong:
                cells = {**printed.cells, unit: [*row[:k], planted, *row[k + 1 :]]}
                found = set(chart_differences(replace(printed, cells=cells, widths=(*printed.widths, 1)), plan))
                changed = found ^ usual  # a cell that is moved to where ours is differs no longer
                assert changed and all(text.startswith(f"{unit}: ") for _, text in changed), planted


@pytest.mark.parametrize("printed", FIGURES, ids=lambda printed: printed.figure)
def test_every_step_that_comes_a_cycle_later_is_found(printed):
    plan = secp256k1(printed)
    later = Schedule(tuple(replace(step, start=step.start + 1) for step in plan.steps), plan.interval + 1)
    changed = set(chart_differences(printed, plan)) ^ set(chart_differences(printed, later))
    cells = {f"{unit}: {cell.name}" for unit, row in printed.cells.items() for cell in row}
    assert {text.split(" printed ")[0] for _, text in changed} == cells
