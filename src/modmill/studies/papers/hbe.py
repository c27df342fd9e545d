# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The HBE paper: every table, the curves of Figures 2, 4, 5 and 6 as numbers, and every claim that has a number.
`hbe_costs` has Section IV-C, Table II and the figures.

L. Djath, K. Bigou, A. Tisserand: Hierarchical Approach in RNS Base Extension for Asymmetric Cryptography. ARITH, 2019.

Printed values are the paper's own (Vivado HLS 2017.4, XC7Z020); values of the talk's slides are marked. Predicted
values follow from the cost formulas (numbers.rns.rns_costs), from the proof of a pair of bases (base_pairs), from a
core's schedule, or from printed cells, as the text of the section states. Measured values are rows of this repository:
cycles from simulation, resources from Yosys, delays of the logic without routing from Yosys' sta (a lower limit,
marked), clocks from nextpnr on ECP5. A missing row is shown as ``-``.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from operator import attrgetter

from modmill.contract import UnsupportedError
from modmill.numbers.moduli import parse_modulus
from modmill.numbers.rns.base_pairs import base_pair
from modmill.report.reproduction import Line, Section, cells
from modmill.studies.papers import hbe_rower, hbe_rowers
from modmill.studies.papers.bench import Bench
from modmill.studies.papers.hbe_costs import charts_and_claims, costs
from modmill.studies.papers.hbe_tables import (
    CMM,
    CMR,
    FIELDS,
    LOWER,
    PAIRS,
    TABLE_I,
    TABLE_III,
    WIDTHS,
    Implementation,
    paper_n,
)  # fmt: skip
from modmill.studies.papers.measured_core import NO_ROW, ROUTED, MeasuredCore, over, seeds, shown, times

CHANNELS = {17: "2^17-145", 20: "2^20-159", 24: "2^24-125", 28: "2^28-95"}
"""Our modulus for Table I, which the paper measures for random ones: the furthest from 2^w in the greedy bases for 256
bits. Each u has three signed digits."""

ZYNQ, ECP5 = "xc7z020", ROUTED
DSP = {ZYNQ: "25x18", ECP5: "18x18"}
"""The DSP block of each target."""

EXTENSIONS = {"KBE": "kbe-extension", "HBE": "hbe-extension"}
MACHINES = ("kbe", "hbe")


def sections(bench: Bench) -> Sequence[Section]:
    """All tables and figures, and the claims about them, with the rows of ``bench``."""
    operations = _operations(bench)
    by_latency = [x.measured for x in operations[1].lines if x.what.endswith("time of CMM / time of CMR")]
    pairs = list(hbe_rower.pairs(bench))
    return [
        *operations, hbe_rower.model(pairs, [x for x in by_latency if isinstance(x, float)]), *costs(),
        *charts_and_claims(pairs), _implementations(bench), _derived(), _moduli(), _ours(bench),
        *hbe_rowers.sections(bench), _products(bench), hbe_rower.forms(bench),
    ]  # fmt: skip


def _operations(bench: Bench) -> list[Section]:
    lines: list[Line] = []
    ours: dict[tuple[str, int], MeasuredCore] = {}
    names = {CMR: "channel-reduce", CMM: "channel-multiply"}
    for op in TABLE_I:
        where = f"{op.name}, w = {op.w}"
        zynq, ecp5 = (
            MeasuredCore(bench, names[op.name], CHANNELS[op.w], target, registers=2, dsp=dsp)
            for target, dsp in DSP.items()
        )
        ours[op.name, op.w] = zynq
        tiles = "folding in logic: no DSP block reduces" + (
            "" if op.name == CMR else "; the product has one for each 17 x 24 tile"
        )
        lines += cells(
            where,
            ("slices", op.slices, None, None, "placement by the vendor's tool; LUT and FF below"),
            ("LUT", None, None, shown(zynq.resource("lut")), "ours, with handshake and a queue"),
            ("FF", None, None, shown(zynq.resource("ff")), "ours, with a register behind every adder"),
            ("DSP", op.dsp, zynq.predicted_dsp, shown(zynq.resource("dsp")), tiles),
            ("cycles", op.cycles, zynq.latency, shown(zynq.seen),
             "ours includes the queue and takes operands every cycle"),
            ("time ns", op.ns, None, shown(zynq.time(zynq.latency)), f"ours: all cycles; {LOWER}"),
            ("ns a result at full throughput", None, None, shown(zynq.period, 2), f"ours; {LOWER}"),
        )  # fmt: skip
        lines += cells(
            f"{where}, ECP5",
            ("DSP", None, ecp5.predicted_dsp, shown(ecp5.resource("dsp")), "ours, 18 x 18 blocks"),
            ("LUT", None, None, shown(ecp5.resource("lut")), "ours"),
            ("routed clock MHz", None, None, shown(ecp5.mhz), seeds(ecp5)),
        )
    ratios: list[Line] = []
    printed = {(op.name, op.w): op for op in TABLE_I}
    for w in WIDTHS:
        mm, mr = printed[CMM, w], printed[CMR, w]
        ratio = _exact(mm.ns) / _exact(mr.ns)
        here, there = ours[CMM, w], ours[CMR, w]
        time = over(here.time(here.latency), there.time(there.latency))
        inside = "holds" if 2 <= ratio <= 4 else "does not hold" + (" by 2 %" if 4 < ratio < Fraction("4.1") else "")
        ratios += cells(
            f"w = {w}",
            ("time of CMM / time of CMR", "2 to 4", round(float(ratio), 2), shown(time, 2),
             f"CMM/4 <= CMR <= CMM/2 {inside}: {mm.ns} / {mr.ns} ns"),
            ("DSP of CMM / DSP of CMR", "2", round(mm.dsp / mr.dsp, 2), None, '"half of the area"'),
            ("LUT of CMM / LUT of CMR", None, None, shown(over(here.resource("lut"), there.resource("lut")), 2),
             "ours"),
        )  # fmt: skip
    moduli = ", ".join(CHANNELS.values())
    return [
        Section("Table I: CMR and CMM in an XC7Z020", lines,
                f"Ours for the moduli {moduli}; the paper's are random and not named. Measured on {ZYNQ} if no other "
                "target is named."),
        Section("Section IV-C: the ratio CMM / CMR", ratios,
                '"About half of the time and half of the area ... CMM/4 <= CMR <= CMM/2". Predicted: from the printed '
                "Table I."),
    ]  # fmt: skip


def _ours_of(bench: Bench, row: Implementation, target: str) -> MeasuredCore | None:
    """Our core for a column of Table III, or None if there is no such design."""
    try:
        return MeasuredCore(bench, EXTENSIONS[row.algorithm], FIELDS[row.bits], target, w=row.w, dsp=DSP[target])
    except UnsupportedError:
        return None


def _implementations(bench: Bench) -> Section:
    lines = []
    for row in TABLE_III:
        core = _ours_of(bench, row, ZYNQ)
        moduli = core and f"ours: n = {core.fitted.settings['n']} moduli"
        lines += cells(
            row.where,
            ("slices", row.slices, None, None, "placement by the vendor's tool; LUT below"),
            ("LUT", None, None, shown(core and core.resource("lut")), "ours"),
            ("DSP", row.dsp, core and core.predicted_dsp, shown(core and core.resource("dsp")),
             "ours has two rowers, and reduces in logic"),
            ("BRAM", row.bram, None, shown(core and core.resource("bram")), "ours: of 18 kbit"),
            ("period ns", row.period, None, shown(core and core.period, 2), f"ours; {LOWER}"),
            ("cycles", row.cycles, core and core.latency, shown(core and core.seen), moduli or ""),
            ("interval in cycles", None, core and core.interval, None,
             "ours: from one operand to the next; the paper gives none"),
            ("time ns", row.ns, None, shown(core and core.time(core.latency)), f"ours, one extension alone; {LOWER}"),
        )  # fmt: skip
    return Section(
        "Table III: base extensions in an XC7Z020", lines,
        f"Ours: extensions between bases of {FIELDS[256]} and {FIELDS[384]} by two rowers, not one a channel; the same "
        "two for both algorithms.",
    )  # fmt: skip


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
    lines = [
        Line(f"{row.where}: period x cycles in ns", row.ns, round(float(_exact(row.period) * row.cycles), 1))
        for row in TABLE_III
    ]
    less, fewer, longer = {}, {}, {}
    for kbe, hbe in PAIRS:
        key = kbe.bits, kbe.w
        less[key], fewer[key] = percent_less(hbe.ns, kbe.ns), percent_less(hbe.dsp, kbe.dsp)
        longer[key] = percent_more(hbe.period, kbe.period)
        lines += cells(
            f"{kbe.bits} bits, w = {kbe.w}, HBE against KBE",
            ("time less by %", None, less[key]),
            ("DSP fewer by %", None, fewer[key]),
            ("period longer by %", None, longer[key]),
            ("DSP x time, ratio", None, product_ratio(kbe, hbe)),
        )
    best, slower = (choose(less, key=lambda key: less[key]) for choose in (max, min))
    worst = max(longer, key=lambda key: longer[key])
    at = {(row.bits, row.w, row.algorithm): row for row in TABLE_III}
    narrow, wide = at[384, 17, "HBE"], at[384, 28, "HBE"]
    of_kbe = percent_more(at[384, 28, "KBE"].dsp, at[384, 17, "KBE"].dsp)
    lines += [
        Line("256 bits, w = 20: faster by %", 10, less[256, 20], why=f"10 % belongs to w = 24: {less[256, 24]} %"),
        Line("256 bits, w = 20: smaller in DSP by %", 19, fewer[256, 20],
             why=f"19 % belongs to w = 24: {fewer[256, 24]} %"),
        Line("256 bits, w = 17: smaller in DSP by %", 31, fewer[256, 17], why="rounded in print"),
        Line("256 bits, w = 17: faster by %", 2, less[256, 17], why="rounded in print"),
        Line("384 bits, wider channels: faster by %", 40, percent_less(wide.ns, narrow.ns),
             why="HBE, w = 17 to 28; rounded in print"),
        Line("384 bits, wider channels: more DSP by %", 28, percent_more(wide.dsp, narrow.dsp),
             why=f"HBE, w = 17 to 28; 28 % are KBE's {of_kbe}"),
        Line("HBE needs fewer DSP", "always", f"{sum(h.dsp < k.dsp for k, h in PAIRS)} of 8"),
        Line("HBE is faster", "in most of cases", f"{sum(h.ns < k.ns for k, h in PAIRS)} of 8",
             why=f"{slower[0]} bits, w = {slower[1]}: {-less[slower]} % slower"),
        Line("HBE has fewer slices", "in most of cases", f"{sum(h.slices < k.slices for k, h in PAIRS)} of 8"),
        Line("slides: faster by up to %", 18, less[best], why=f"{best[0]} bits, w = {best[1]}"),
        Line("slides: the period grows by up to %", 0, longer[worst],
             why=f'"no impact on periods"; {worst[0]} bits, w = {worst[1]}'),
    ]  # fmt: skip
    return Section(
        "Table III and Section VI: what follows from the printed cells", lines, "Predicted: from the printed cells."
    )


def _moduli() -> Section:
    lines = []
    of_table_i = {op.w: op.dsp for op in TABLE_I if op.name == CMM}
    for kbe, _ in PAIRS:
        p, w, each = parse_modulus(FIELDS[kbe.bits]).value, kbe.w, of_table_i[kbe.w]
        where, rule = f"{kbe.bits} bits, w = {w}", paper_n(kbe.bits, w)
        for algorithm, n in (("KBE", base_pair(p, w)[0].n), ("HBE", base_pair(p, w, 2)[0].n)):
            why = f"A >= 4 g P does not hold for n = {rule}" if n > rule else "any n, not only even" if n < rule else ""
            lines.append(Line(f"{where}, {algorithm}: least n of a Montgomery multiplication", rule, n, why=why))
        suggested, rest = divmod(kbe.dsp - each, each)
        why = f"is no multiple of {each}" if rest else f"= {each} ({suggested} + 1)"
        lines.append(Line(f"{where}: n that KBE's DSP suggest", rule, None if rest else suggested,
                          why=f"{kbe.dsp} DSP {why}"))  # fmt: skip
    return Section(
        "Section VI: the number of moduli", lines,
        "Printed: the smallest even n with n w > log2 P. Predicted: the least n whose bases are proved to close the "
        f"loop ({FIELDS[256]}, {FIELDS[384]}); or n from printed DSP, if n + 1 multipliers of Table I make it up.",
    )  # fmt: skip


_CYCLES = {"alone": attrgetter("latency"), "at full throughput": attrgetter("interval")}


def _ours(bench: Bench) -> Section:
    lines = []
    for pair, target in product(PAIRS, (ZYNQ, ECP5)):
        cores = [_ours_of(bench, row, target) for row in pair]
        where = f"{pair[0].bits} bits, w = {pair[0].w}, {target}"
        found: dict[tuple[str, str], list[float | None]] = {key: [] for key in product(_CYCLES, ("DSP", "LUT"))}
        for row, core in zip(pair, cores, strict=True):
            period = core and (core.period if target == ZYNQ else over(1000, core.mhz))
            if target == ECP5:
                lines.append(Line(f"{where}, {row.algorithm}: routed clock MHz", None, None, shown(core and core.mhz),
                                  seeds(core) if core else NO_ROW))  # fmt: skip
            for (how, resource), values in found.items():
                time = times(core and _CYCLES[how](core), period)
                values.append(times(core and core.resource(resource.lower()), time))
                printed = float(round(row.dsp * row.ns, 1)) if (how, resource) == ("alone", "DSP") else None
                lines.append(Line(f"{where}, {row.algorithm}: {resource} x time {how}, ns", printed, None,
                                  shown(values[-1]), LOWER if target == ZYNQ else "routed"))  # fmt: skip
        for (how, resource), (one, other) in found.items():
            k, h = cores
            predicted = None
            if resource == "DSP" and k and h:
                cycles = _CYCLES[how]
                predicted = round(h.predicted_dsp * cycles(h) / (k.predicted_dsp * cycles(k)), 3)
            lines.append(
                Line(f"{where}: {resource} x time {how}, HBE / KBE",
                     product_ratio(*pair) if (how, resource) == ("alone", "DSP") else None, predicted,
                     shown(over(other, one), 3), "predicted: for equal clocks" if predicted else "")
            )  # fmt: skip
    return Section(
        "Our base extensions: area x time", lines,
        "Printed: the paper's DSP x time, from its cells. Ours: two rowers for either algorithm, DSP blocks only for "
        "products; the saving is in cycles, where the paper's is in DSP blocks and some time.",
    )  # fmt: skip


def _products(bench: Bench) -> Section:
    lines = []
    for modulus, name in product((FIELDS[256], "P-256"), MACHINES):
        core = MeasuredCore(bench, name, modulus, ECP5)
        per_dsp = over(core.rate, core.resource("dsp"))
        lines += cells(
            f"{name}, {modulus}",
            ("multiplications of a rower for a product", None, core.fitted.cost.multiplications // core.predicted_dsp),
            ("interval in cycles", None, core.interval, shown(core.seen_interval)),
            ("latency in cycles", None, core.latency, shown(core.seen)),
            ("DSP", None, core.predicted_dsp, shown(core.resource("dsp"))),
            ("LUT", None, None, shown(core.resource("lut"))),
            ("routed clock MHz", None, None, shown(core.mhz), seeds(core)),
            ("products per second", None, None, shown(core.rate and round(core.rate))),
            ("products per second and DSP", None, None, shown(per_dsp and round(per_dsp))),
            ("products per second and LUT", None, None, shown(over(core.rate, core.resource("lut")))),
        )
    return Section(
        "Our Montgomery multiplications with KBE and HBE", lines,
        f"Not the paper's: it builds no multiplication. {ECP5}, native io; machine and schedule are ours.",
    )  # fmt: skip
