# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The HBE paper: every table, the curves of Figures 2, 4, 5 and 6 as numbers, and every claim that has a number.

L. Djath, K. Bigou, A. Tisserand: Hierarchical Approach in RNS Base Extension for Asymmetric Cryptography. ARITH, 2019.

Printed values are the paper's own (Vivado HLS 2017.4, XC7Z020); values of the talk's slides are marked. Predicted
values follow from the cost formulas (numbers.rns.rns_costs), from the proof of a pair of bases (base_pairs), from a
core's schedule, or from printed cells, as the text of the section states. Measured values are rows of this repository:
cycles from simulation, resources from Yosys, delays of the logic without routing from Yosys' sta (a lower limit,
marked), clocks from nextpnr on ECP5. A missing row is shown as ``-``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from modmill.contract import UnsupportedError
from modmill.designs import design
from modmill.numbers.moduli import parse_modulus
from modmill.numbers.rns import rns_costs
from modmill.numbers.rns.base_pairs import base_pair, deal
from modmill.numbers.rns.choice_of_moduli import choose_moduli
from modmill.numbers.rns.extension import HBE, KBE
from modmill.numbers.rns.rns_costs import BE_MM, HPR_2, HPR_4, Algorithm
from modmill.numbers.rns.rns_montgomery import Gandino
from modmill.report.plots import Plot, Series
from modmill.report.reproduction import Line, Section
from modmill.report.traces import counted
from modmill.studies.papers.bench import Bench
from modmill.studies.papers.measured_core import NO_ROW, ROUTED, MeasuredCore, Rows, over, seeds, shown, times

WIDTHS = (17, 20, 24, 28)
"""w of all implementations."""

CMR, CMM = "CMR(2w + 1, w)", "CMM(w, w)"


@dataclass(frozen=True)
class Operation:
    """A column of Table I."""

    name: str
    w: int
    slices: int
    dsp: int
    cycles: int
    ns: float


TABLE_I = (
    Operation(CMR, 17, 1, 2, 1, 2.4),
    Operation(CMR, 20, 1, 2, 1, 2.6),
    Operation(CMR, 24, 24, 1, 2, 9.0),
    Operation(CMR, 28, 35, 1, 2, 9.6),
    Operation(CMM, 17, 1, 3, 2, 7.8),
    Operation(CMM, 20, 24, 3, 2, 10.6),
    Operation(CMM, 24, 1, 4, 2, 10.6),
    Operation(CMM, 28, 39, 5, 3, 17.1),
)

TABLE_II: Mapping[str, Mapping[int | None, tuple[Fraction, int]]] = {
    # a and b of a n^2 + b n; None: with KBE, 2 and 4: with HBE and that ratio
    BE_MM.name: {None: (Fraction(2), 4), 2: (Fraction(3, 2), 6), 4: (Fraction(5, 4), 6)},
    HPR_2.name: {None: (Fraction(1), 8), 2: (Fraction(3, 4), 10), 4: (Fraction(5, 8), 10)},
    HPR_4.name: {None: (Fraction(1, 2), 12), 2: (Fraction(3, 8), 14), 4: (Fraction(5, 16), 14)},
}


@dataclass(frozen=True)
class Implementation:
    """A column of Table III."""

    bits: int
    w: int
    algorithm: str
    slices: int
    dsp: int
    bram: int
    period: float
    cycles: int
    ns: float


TABLE_III = (
    Implementation(256, 17, "KBE", 445, 51, 1, 9.8, 98, 960.4),
    Implementation(256, 17, "HBE", 758, 35, 1, 10.3, 91, 937.3),
    Implementation(256, 20, "KBE", 1073, 45, 1, 9.6, 88, 844.8),
    Implementation(256, 20, "HBE", 784, 39, 1, 8.9, 83, 738.7),
    Implementation(256, 24, "KBE", 785, 52, 1, 9.6, 89, 854.4),
    Implementation(256, 24, "HBE", 769, 42, 1, 9.5, 81, 769.5),
    Implementation(256, 28, "KBE", 753, 76, 1, 9.7, 77, 746.9),
    Implementation(256, 28, "HBE", 843, 60, 1, 9.6, 71, 681.6),
    Implementation(384, 17, "KBE", 587, 81, 1, 7.6, 165, 1254.0),
    Implementation(384, 17, "HBE", 644, 63, 1, 10.1, 143, 1444.3),
    Implementation(384, 20, "KBE", 1215, 63, 1, 9.6, 140, 1344.0),
    Implementation(384, 20, "HBE", 869, 54, 1, 9.0, 122, 1098.0),
    Implementation(384, 24, "KBE", 1251, 76, 1, 7.6, 163, 1238.8),
    Implementation(384, 24, "HBE", 1134, 60, 1, 7.6, 132, 1003.2),
    Implementation(384, 28, "KBE", 1031, 104, 1, 9.9, 103, 1019.7),
    Implementation(384, 28, "HBE", 1145, 80, 1, 9.4, 93, 874.2),
)

FIELDS = {256: "secp256k1", 384: "P-384"}
"""Our modulus of each width; the paper names none."""

CHANNELS = {17: "2^17-145", 20: "2^20-159", 24: "2^24-125", 28: "2^28-95"}
"""Our modulus for Table I, which the paper measures for random ones: the furthest from 2^w in the greedy bases for 256
bits. Each u has three signed digits."""

ZYNQ, ECP5 = "xc7z020", ROUTED
DSP = {ZYNQ: "25x18", ECP5: "18x18"}
"""The DSP block of each target."""

EXTENSIONS = {"KBE": "kbe-extension", "HBE": "hbe-extension"}
MACHINES = ("kbe", "hbe")

FIGURES: tuple[tuple[str, Algorithm | None, str, range], ...] = (
    ("Figure 2", None, "one base extension", range(6, 63, 4)),
    ("Figure 4", BE_MM, "one RNS Montgomery multiplication", range(6, 63, 4)),
    ("Figure 5", HPR_2, "one HPR multiplication, d = 2", range(6, 63, 4)),
    ("Figure 6", HPR_4, "one HPR multiplication, d = 4", range(16, 65, 4)),
)

LOWER = "lower limit: delay of the logic without routing"


def sections(bench: Rows) -> Sequence[Section]:
    """All tables and figures, and the claims about them, with the rows of ``bench``."""
    return [
        *_operations(bench),
        *_costs(),
        *(_figure(*figure) for figure in FIGURES),
        _claims(),
        _implementations(bench),
        _derived(),
        _moduli(),
        _ours(bench),
        _products(bench),
    ]


# ---------------------------------------------------------------------------------------------- Table I


def _operations(bench: Bench) -> list[Section]:
    lines: list[Line] = []
    ours: dict[tuple[str, int], dict[str, MeasuredCore]] = {}
    names = {CMR: "channel-reduce", CMM: "channel-multiply"}
    for op in TABLE_I:
        where = f"{op.name}, w = {op.w}"
        cores = {
            target: MeasuredCore.of(bench, names[op.name], CHANNELS[op.w], target, registers=2, dsp=dsp)
            for target, dsp in DSP.items()
        }
        ours[op.name, op.w] = cores
        zynq, ecp5 = cores[ZYNQ], cores[ECP5]
        tiles = "folding in logic: no DSP block reduces" + (
            "" if op.name == CMR else "; the product has one for each 17 x 24 tile"
        )
        lines += [
            Line(f"{where}: slices", op.slices, why="placement by the vendor's tool; LUT and FF below"),
            Line(f"{where}: LUT", None, None, shown(zynq.resource("lut")), "ours, with handshake and a queue"),
            Line(f"{where}: FF", None, None, shown(zynq.resource("ff")), "ours, with a register behind every adder"),
            Line(f"{where}: DSP", op.dsp, zynq.predicted_dsp, shown(zynq.resource("dsp")), tiles),
            Line(f"{where}: cycles", op.cycles, zynq.latency, shown(zynq.seen),
                 "ours includes the queue and takes operands every cycle"),
            Line(f"{where}: time ns", op.ns, None, shown(zynq.time(zynq.latency)), f"ours: all cycles; {LOWER}"),
            Line(f"{where}: ns a result at full throughput", None, None, shown(zynq.period, 2), f"ours; {LOWER}"),
            Line(f"{where}, ECP5: DSP", None, ecp5.predicted_dsp, shown(ecp5.resource("dsp")), "ours, 18 x 18 blocks"),
            Line(f"{where}, ECP5: LUT", None, None, shown(ecp5.resource("lut")), "ours"),
            Line(f"{where}, ECP5: routed clock MHz", None, None, shown(over(1000, ecp5.period)), seeds(ecp5)),
        ]  # fmt: skip
    ratios: list[Line] = []
    printed = {(op.name, op.w): op for op in TABLE_I}
    for w in WIDTHS:
        mm, mr = printed[CMM, w], printed[CMR, w]
        ratio = Fraction(str(mm.ns)) / Fraction(str(mr.ns))
        here, there = ours[CMM, w][ZYNQ], ours[CMR, w][ZYNQ]
        time = over(here.time(here.latency), there.time(there.latency))
        inside = "holds" if 2 <= ratio <= 4 else "does not hold" + (" by 2 %" if 4 < ratio < Fraction("4.1") else "")
        ratios += [
            Line(f"w = {w}: time of CMM / time of CMR", "2 to 4", round(float(ratio), 2), shown(time, 2),
                 f"CMM/4 <= CMR <= CMM/2 {inside}: {mm.ns} / {mr.ns} ns"),
            Line(f"w = {w}: DSP of CMM / DSP of CMR", "2", round(mm.dsp / mr.dsp, 2), None, '"half of the area"'),
            Line(f"w = {w}: LUT of CMM / LUT of CMR", None, None,
                 shown(over(here.resource("lut"), there.resource("lut")), 2), "ours"),
        ]  # fmt: skip
    moduli = ", ".join(CHANNELS.values())
    return [
        Section("Table I: CMR and CMM in an XC7Z020", lines,
                f"Ours for the moduli {moduli}; the paper's are random and not named. Measured on {ZYNQ} if no other "
                "target is named."),
        Section("Section IV-C: the ratio CMM / CMR", ratios,
                '"About half of the time and half of the area ... CMM/4 <= CMR <= CMM/2". Predicted: from the printed '
                "Table I."),
    ]  # fmt: skip


# ---------------------------------------------------------------------------------------------- costs


def _formula(square: Fraction, linear: Fraction | int) -> str:
    return f"{'' if square == 1 else f'{square} '}n^2 + {'' if linear == 1 else f'{linear} '}n"


def _coefficients(cost: Callable[[int], Fraction]) -> tuple[Fraction, Fraction]:
    """a and b of a cost a n^2 + b n. Raises ValueError if it has another form."""
    square = (cost(2) - 2 * cost(1)) / 2
    linear = cost(1) - square
    if any(cost(n) != square * n * n + linear * n for n in (3, 10, 31)):
        raise ValueError("the cost does not have the form a n^2 + b n")
    return square, linear


def _costs() -> list[Section]:
    n, w = 16, 17
    pair = deal(choose_moduli(w, 2 * n).moduli)
    a, b = pair.a, pair.b
    p = parse_modulus("secp256k1").value
    lines = [
        Line("one KBE", _formula(Fraction(1), 1), _formula(*_coefficients(rns_costs.kbe)), why="Section IV-C"),
        Line(f"one KBE at n = {n}, operations", None, int(rns_costs.kbe(n)),
             counted(int(KBE.of(a, b.moduli, 5).count.cmm(2)), f"KBE, n = {n}"), "measured: counted in a run"),
    ]  # fmt: skip
    for r in (2, 4):
        printed = Fraction(1, 2) * (1 + Fraction(1, r))
        found = _coefficients(lambda k, r=r: rns_costs.hbe(k, r))  # type: ignore[misc]
        run = counted(int(HBE.of(a, b.moduli, 5, 2).count.cmm(r, 1)), f"HBE, n = {n}, c = 2, r = {r}")
        lines += [
            Line(f"one HBE, r = {r}", _formula(printed, 2), _formula(*found), why="Section IV-C"),
            Line(f"one HBE, r = {r}, at n = {n}, operations", None, int(rns_costs.hbe(n, r)), run,
                 "measured: counted in a run; MUL as MM"),
        ]  # fmt: skip
    table = []
    ratio: int | None
    for algorithm in (BE_MM, HPR_2, HPR_4):
        for ratio, (square, linear) in TABLE_II[algorithm.name].items():
            found = _coefficients(lambda k, r=ratio, x=algorithm: rns_costs.product(x, k, r))  # type: ignore[misc]
            label = f"{algorithm.name}, " + ("KBE" if ratio is None else f"HBE (r = {ratio})")
            table.append(Line(label, _formula(square, linear), _formula(*found)))
            if algorithm == BE_MM:
                mm = int(Gandino.of(p, a, b, 6, c=1 if ratio is None else 2).count.cmm(ratio or 1, 1))
                cost = rns_costs.product(algorithm, n, ratio)
                table.append(Line(f"{label}, at n = {n}", None, int(cost),
                                  counted(mm, f"Montgomery multiplication, {label}, n = {n}"),
                                  "measured: counted in a run"))  # fmt: skip
    return [
        Section("Section IV-C: cost of one base extension in CMM", lines, "c = 2, r = CMM / CMR, CMUL = CMM."),
        Section("Table II: cost of one modular multiplication in CMM", table,
                "B with as many moduli as A; HPR needs one more there, which neither column counts."),
    ]  # fmt: skip


def _ratio(algorithm: Algorithm | None, n: int, r: Fraction | int) -> Fraction:
    if algorithm is None:
        return rns_costs.extension_ratio(n, r)
    return rns_costs.product_ratio(algorithm, n, r)


def _figure(figure: str, algorithm: Algorithm | None, what: str, ns: range) -> Section:
    """A figure with a curve for each ratio r: a table and bars."""
    rows = ["  n    r = 2   r = 3   r = 4"]
    for n in ns:
        values = [_ratio(algorithm, n, r) for r in rns_costs.RATIOS]
        rows.append(f"{n:3}    " + "   ".join(f"{float(v):.3f}" for v in values) + "   " + _marks(values))
    limits = [rns_costs.asymptote(r) for r in rns_costs.RATIOS]
    rows.append("limit  " + "   ".join(f"{float(v):.3f}" for v in limits) + "   " + _marks(limits))
    left = "0.6" + " " * 56 + "1.0"
    return Section(
        f"{figure}: {what}", chart=[*rows, " " * 30 + left],
        text="Predicted cost with HBE / cost with KBE (c = 2) against n; 2, 3, 4 mark the curves of r = CMM / CMR.",
        plots=[Plot(f"{figure}: {what}", "n, moduli in a base", "cost with HBE / cost with KBE", [
            Series(f"r = {r}", "predicted", [(n, round(float(_ratio(algorithm, n, r)), 4)) for n in ns])
            for r in rns_costs.RATIOS
        ])],
    )  # fmt: skip


def _marks(values: Iterable[Fraction], low: float = 0.6, high: float = 1.0, width: int = 60) -> str:
    """A line with a digit r at each value."""
    line = [" "] * width
    for r, value in zip(rns_costs.RATIOS, values, strict=True):
        at = round((float(value) - low) / (high - low) * (width - 1))
        if 0 <= at < width:
            line[at] = str(r)
    return "".join(line).rstrip()


def saving(algorithm: Algorithm | None, n: int, r: int) -> float:
    """Percent of the cost that HBE saves."""
    return round(float(100 * (1 - _ratio(algorithm, n, r))), 1)


def _claims() -> Section:
    def span(algorithm: Algorithm | None, low: int, high: int) -> str:
        return f"{saving(algorithm, low, 2):.1f} to {saving(algorithm, high, 4):.1f} %"

    first = rns_costs.first_saving(Fraction(35, 100), 4)
    limit = float(100 * (1 - rns_costs.asymptote(4)))
    wins = [rns_costs.first_faster(HPR_4, HPR_2, r) for r in (None, 2, 4)]
    ecc = base_pair(parse_modulus("secp256k1").value, 17, 2)[0].n
    rsa = base_pair((1 << 512) - 569, 17, 2)[0].n
    return Section("Claims about the figures", [
        Line("Figure 2, n = 6 to 32: a base extension is cheaper by", "up to 35 %",
             f"up to {saving(None, 32, 4):.1f} %", why=f"r = 4, n = 32; 35 % from n = {first} on, limit {limit} %"),
        Line("Figure 4: a multiplication is cheaper by", "17 % up to 32 %", span(BE_MM, 16, 32),
             why="n = 16, r = 2 and n = 32, r = 4"),
        Line("Figure 5, n = 16: HPR with d = 2 is cheaper by", "8 to 17 %", span(HPR_2, 16, 16), why="r = 2 and r = 4"),
        Line("Figure 5, n = 32: HPR with d = 2 is cheaper by", "15 to 25 %", span(HPR_2, 32, 32),
             why="r = 2 and r = 4"),
        Line("Figure 6, n = 32: HPR with d = 4 is cheaper by", "8 to 15 %", span(HPR_4, 32, 32), why="r = 2 and r = 4"),
        Line("HPR with d = 4 is cheaper than with d = 2 from n =", 16, wins[0],
             why=f"by Table II: n = {wins[0]} with KBE, {wins[1]} with HBE (r = 2), {wins[2]} with HBE (r = 4)"),
        Line("CMM / CMR = 4 is, for HBE, the", "pessimistic ratio", "optimistic ratio",
             why="HBE costs least with it: " + ", ".join(
                 f"{float(_ratio(None, 16, r)):.3f} for r = {r}" for r in (2, 3, 4)) + " (Figure 2, n = 16)"),
        Line("moduli of 17 bits for 256-bit ECC", 16, ecc, why="by the exact conditions, rows of two"),
        Line("moduli of 17 bits for 1024-bit RSA-CRT", 32, rsa,
             why="by the exact conditions, rows of two, for the modulus 2^512 - 569"),
    ])  # fmt: skip


# ---------------------------------------------------------------------------------------------- Table III


def _ours_of(bench: Bench, row: Implementation, target: str) -> MeasuredCore | None:
    """Our core for a column of Table III, or None if there is no such design."""
    try:
        return MeasuredCore.of(bench, EXTENSIONS[row.algorithm], FIELDS[row.bits], target, w=row.w, dsp=DSP[target])
    except UnsupportedError:
        return None


def _implementations(bench: Bench) -> Section:
    lines = []
    for row in TABLE_III:
        where = f"{row.bits} bits, w = {row.w}, {row.algorithm}"
        core = _ours_of(bench, row, ZYNQ)
        logic = core.period if core else None
        lines += [
            Line(f"{where}: slices", row.slices, why="placement by the vendor's tool; LUT below"),
            Line(f"{where}: LUT", None, None, shown(core.resource("lut") if core else None), "ours"),
            Line(f"{where}: DSP", row.dsp, core.predicted_dsp if core else None,
                 shown(core.resource("dsp") if core else None), "ours has two rowers, and reduces in logic"),
            Line(f"{where}: BRAM", row.bram, None, shown(core.resource("bram") if core else None),
                 "ours: of 18 kbit"),
            Line(f"{where}: period ns", row.period, None, shown(logic, 2), f"ours; {LOWER}"),
            Line(f"{where}: cycles", row.cycles, core.latency if core else None,
                 shown(core.seen if core else None), _channels(row)),
            Line(f"{where}: interval in cycles", None, core.interval if core else None, None,
                 "ours: from one operand to the next; the paper gives none"),
            Line(f"{where}: time ns", row.ns, None, shown(core.time(core.latency) if core else None),
                 f"ours, one extension alone; {LOWER}"),
        ]  # fmt: skip
    return Section(
        "Table III: base extensions in an XC7Z020", lines,
        f"Ours: extensions between bases of {FIELDS[256]} and {FIELDS[384]} by two rowers, not one a channel; the same "
        "two for both algorithms.",
    )  # fmt: skip


def _channels(row: Implementation) -> str:
    try:
        fitted = design(EXTENSIONS[row.algorithm]).fit(parse_modulus(FIELDS[row.bits]).value, w=row.w)
    except UnsupportedError:
        return ""
    return f"ours: n = {fitted.settings['n']} moduli"


def pairs() -> list[tuple[Implementation, Implementation]]:
    """The columns of Table III in pairs: KBE and HBE."""
    return list(zip(TABLE_III[::2], TABLE_III[1::2], strict=True))


def _exact(value: float) -> Fraction:
    """A printed number as an exact fraction."""
    return Fraction(str(value))


def percent_less(new: float, old: float) -> float:
    """Reduction from ``old`` to ``new`` in percent."""
    return round(float(100 * (1 - _exact(new) / _exact(old))), 1)


def percent_more(new: float, old: float) -> float:
    """Increase from ``old`` to ``new`` in percent."""
    return round(float(100 * (_exact(new) / _exact(old) - 1)), 1)


def product_ratio(kbe: Implementation, hbe: Implementation) -> float:
    """DSP x time of HBE / DSP x time of KBE, from printed cells."""
    return round(float(hbe.dsp * _exact(hbe.ns) / (kbe.dsp * _exact(kbe.ns))), 3)


def _derived() -> Section:
    lines = []
    for row in TABLE_III:
        where = f"{row.bits} bits, w = {row.w}, {row.algorithm}"
        lines.append(Line(f"{where}: period x cycles in ns", row.ns, round(float(_exact(row.period) * row.cycles), 1)))
    for kbe, hbe in pairs():
        where = f"{kbe.bits} bits, w = {kbe.w}, HBE against KBE"
        lines += [
            Line(f"{where}: time less by %", None, percent_less(hbe.ns, kbe.ns)),
            Line(f"{where}: DSP fewer by %", None, percent_less(hbe.dsp, kbe.dsp)),
            Line(f"{where}: period longer by %", None, percent_more(hbe.period, kbe.period)),
            Line(f"{where}: DSP x time, ratio", None, product_ratio(kbe, hbe)),
        ]
    at = {(row.bits, row.w, row.algorithm): row for row in TABLE_III}

    def gains(bits: int, w: int) -> tuple[float, float]:
        kbe, hbe = at[bits, w, "KBE"], at[bits, w, "HBE"]
        return percent_less(hbe.ns, kbe.ns), percent_less(hbe.dsp, kbe.dsp)

    times = {(k.bits, k.w): percent_less(h.ns, k.ns) for k, h in pairs()}
    best = max(times, key=lambda key: times[key])
    slower = min(times, key=lambda key: times[key])
    periods = {(k.bits, k.w): percent_more(h.period, k.period) for k, h in pairs()}
    worst = max(periods, key=lambda key: periods[key])
    narrow, wide = at[384, 17, "HBE"], at[384, 28, "HBE"]
    fewer = sum(h.slices < k.slices for k, h in pairs())
    faster = sum(h.ns < k.ns for k, h in pairs())
    twenty, twenty_four = gains(256, 20), gains(256, 24)
    lines += [
        Line("256 bits, w = 20: faster by %", 10, twenty[0], why=f"10 % belongs to w = 24: {twenty_four[0]} %"),
        Line("256 bits, w = 20: smaller in DSP by %", 19, twenty[1], why=f"19 % belongs to w = 24: {twenty_four[1]} %"),
        Line("256 bits, w = 17: smaller in DSP by %", 31, gains(256, 17)[1], why="rounded in print"),
        Line("256 bits, w = 17: faster by %", 2, gains(256, 17)[0], why="rounded in print"),
        Line("384 bits, wider channels: faster by %", 40, percent_less(wide.ns, narrow.ns),
             why="HBE, w = 17 to 28; rounded in print"),
        Line("384 bits, wider channels: more DSP by %", 28, percent_more(wide.dsp, narrow.dsp),
             why=f"HBE, w = 17 to 28; 28 % are KBE's {percent_more(at[384, 28, 'KBE'].dsp, at[384, 17, 'KBE'].dsp)}"),
        Line("HBE needs fewer DSP", "always", f"{sum(h.dsp < k.dsp for k, h in pairs())} of 8"),
        Line("HBE is faster", "in most of cases", f"{faster} of 8",
             why=f"{slower[0]} bits, w = {slower[1]}: {-times[slower]} % slower"),
        Line("HBE has fewer slices", "in most of cases", f"{fewer} of 8"),
        Line("slides: faster by up to %", 18, times[best], why=f"{best[0]} bits, w = {best[1]}"),
        Line("slides: the period grows by up to %", 0, periods[worst],
             why=f'"no impact on periods"; {worst[0]} bits, w = {worst[1]}'),
    ]  # fmt: skip
    return Section(
        "Table III and Section VI: what follows from the printed cells", lines, "Predicted: from the printed cells."
    )


def paper_n(bits: int, w: int) -> int:
    """The paper's rule: the smallest even n with n w > log2 P, for P of ``bits`` bits that is not a power of two."""
    n = -(-bits // w)
    return n + n % 2


def suggested_n(row: Implementation) -> int | None:
    """n if KBE's DSP equal those of n + 1 multipliers CMM of Table I; None if they are not a multiple."""
    each = next(op.dsp for op in TABLE_I if op.name == CMM and op.w == row.w)
    n, rest = divmod(row.dsp - each, each)
    return None if rest else n


def _moduli() -> Section:
    lines = []
    for bits, w in ((bits, w) for bits in FIELDS for w in WIDTHS):
        p = parse_modulus(FIELDS[bits]).value
        where = f"{bits} bits, w = {w}"
        rule = paper_n(bits, w)
        needed = {"KBE": base_pair(p, w)[0].n, "HBE": base_pair(p, w, 2)[0].n}
        for algorithm, n in needed.items():
            why = f"A >= 4 g P does not hold for n = {rule}" if n > rule else "any n, not only even" if n < rule else ""
            lines.append(Line(f"{where}, {algorithm}: least n of a Montgomery multiplication", rule, n, why=why))
        row = next(r for r in TABLE_III if (r.bits, r.w, r.algorithm) == (bits, w, "KBE"))
        suggested = suggested_n(row)
        each = next(op.dsp for op in TABLE_I if op.name == CMM and op.w == w)
        lines.append(
            Line(f"{where}: n that KBE's DSP suggest", rule, suggested,
                 why=f"{row.dsp} DSP " + (f"= {each} ({suggested} + 1)" if suggested else f"is no multiple of {each}"))
        )  # fmt: skip
    return Section(
        "Section VI: the number of moduli", lines,
        "Printed: the smallest even n with n w > log2 P. Predicted: the least n whose bases are proved to close the "
        f"loop ({FIELDS[256]}, {FIELDS[384]}); or n from printed DSP, if n + 1 multipliers of Table I make it up.",
    )  # fmt: skip


# ---------------------------------------------------------------------------------------------- ours


def _ours(bench: Bench) -> Section:
    lines = []
    for kbe, hbe in pairs():
        printed = product_ratio(kbe, hbe)
        for target in (ZYNQ, ECP5):
            cores = [_ours_of(bench, row, target) for row in (kbe, hbe)]
            where = f"{kbe.bits} bits, w = {kbe.w}, {target}"
            mark = LOWER if target == ZYNQ else "routed"
            values: dict[tuple[str, str], list[float | None]] = {}
            for row, core in zip((kbe, hbe), cores, strict=True):
                period = core.period if core and (target == ZYNQ or core.clocks) else None
                if target == ECP5:
                    lines.append(Line(f"{where}, {row.algorithm}: routed clock MHz", None, None,
                                      shown(over(1000, period)), seeds(core) if core else NO_ROW))  # fmt: skip
                for how in ("alone", "at full throughput"):
                    cycles = (core.latency if how == "alone" else core.interval) if core else None
                    time = times(cycles, period)
                    for resource in ("DSP", "LUT"):
                        area = core.resource(resource.lower()) if core else None
                        found = times(area, time)
                        values.setdefault((resource, how), []).append(found)
                        lines.append(
                            Line(f"{where}, {row.algorithm}: {resource} x time {how}, ns",
                                 float(round(row.dsp * row.ns, 1)) if (resource, how) == ("DSP", "alone") else None,
                                 None, shown(found), mark)
                        )  # fmt: skip
            for (resource, how), (one, other) in values.items():
                dsp_alone = (resource, how) == ("DSP", "alone")
                predicted = None
                if resource == "DSP" and all(cores):
                    k, h = cores
                    assert k and h
                    new, old = (h.latency, k.latency) if how == "alone" else (h.interval, k.interval)
                    predicted = round(h.predicted_dsp * new / (k.predicted_dsp * old), 3)
                lines.append(
                    Line(f"{where}: {resource} x time {how}, HBE / KBE", printed if dsp_alone else None, predicted,
                         shown(over(other, one), 3), "predicted: for equal clocks" if predicted else "")
                )  # fmt: skip
    return Section(
        "Our base extensions: area x time", lines,
        "Printed: the paper's DSP x time, from its cells. Ours: two rowers for either algorithm, DSP blocks only for "
        "products; the saving is in cycles, where the paper's is in DSP blocks and some time.",
    )  # fmt: skip


def _products(bench: Bench) -> Section:
    lines = []
    for modulus in (FIELDS[256], "P-256"):
        for name in MACHINES:
            fitted = design(name).fit(parse_modulus(modulus).value)
            core = MeasuredCore.of(bench, name, modulus, ECP5)
            where = f"{name}, {modulus}"
            rate = 1e9 / (core.interval * core.period) if core.clocks and core.period else None
            slots = fitted.cost.multiplications // fitted.cost.dsp
            lines += [
                Line(f"{where}: multiplications of a rower for a product", None, slots),
                Line(f"{where}: interval in cycles", None, core.interval,
                     shown(core.check["interval"] if core.check else None)),
                Line(f"{where}: latency in cycles", None, core.latency, shown(core.seen)),
                Line(f"{where}: DSP", None, core.predicted_dsp, shown(core.resource("dsp"))),
                Line(f"{where}: LUT", None, None, shown(core.resource("lut"))),
                Line(f"{where}: routed clock MHz", None, None, shown(over(1000, core.period)), seeds(core)),
                Line(f"{where}: products per second", None, None, shown(rate and round(rate))),
                Line(f"{where}: products per second and DSP", None, None,
                     shown(_rounded(over(rate, core.resource("dsp"))))),
                Line(f"{where}: products per second and LUT", None, None, shown(over(rate, core.resource("lut")))),
            ]  # fmt: skip
    return Section(
        "Our Montgomery multiplications with KBE and HBE", lines,
        f"Not the paper's: it builds no multiplication. {ECP5}, native io; machine and schedule are ours.",
    )  # fmt: skip


def _rounded(value: float | None) -> int | None:
    return None if value is None else round(value)
