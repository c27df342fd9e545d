# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""X. Zhang, X. Dong: A high speed Montgomery processor of 256-bit on FPGA. 2016. Table 1, the claims, the misprints.

Printed values are the paper's own. Predicted values follow from the schedules. Measured values are rows of this
repository: cycles from simulation, resources from Yosys, clocks routed by nextpnr on ECP5, which is none of the paper's
devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from modmill.designs import design
from modmill.designs.multistep.design import PRINTED_ALUTS, PRINTED_CLOCKS, PRINTED_MHZ, Multistep
from modmill.flow.targets import target
from modmill.numbers.moduli import parse_modulus
from modmill.report.chart import chart
from modmill.report.clocks import routed_by
from modmill.report.plots import Plot, Series
from modmill.report.reproduction import Line, Section, cells
from modmill.studies.papers.bench import Bench
from modmill.studies.papers.measured_core import ROUTED, MeasuredCore, over, rounded

MODULUS = "2^256-189"
"""Any 256-bit modulus serves, because it is loaded."""

BITS = 256

TABLE_1 = (
    # design, platform, algorithm, MHz, clocks, microseconds
    ("[12]", "0.13 ASIC", "systolic array", 100, 120, 1.2),
    ("[13]", "Xilinx Virtex2", "256 embedded multipliers", 45.6, 32, 0.7),
    ("[14]", "Altera Cyclone3", "81 embedded multipliers", 30.38, 15, 0.49),
    ("[15]", "Altera Cyclone3", "fully parallel", 30.05, 3, 0.1),
    ("[16]", "Altera Spartan3", "IDDMM, k = 32", 63.8, 79, 1.25),
    ("[16]", "Xilinx Virtex5", "IDDMM, k = 64", 68.24, 23, 0.35),
    ("This work", "Altera Stratix III", "serial-parallel", PRINTED_MHZ, PRINTED_CLOCKS, 0.2),
)

SIX_INPUTS = "xc7z020"
"""A device with LUTs of six inputs, as those of the paper's, for which Yosys knows the delays of the logic."""

CURVE = (1, 2, 4, 8, 16, 32)
"""Values of s, the steps in a clock cycle."""

COMPARED: tuple[tuple[str, dict[str, int | bool], str], ...] = (
    ("tenca-koc", {"loadable": True}, "row of elements, as [6]"),
    ("mcivor", {"loadable": True}, "one carry-save addition a bit"),
    ("iddmm", {"loadable": True}, "[16] with digits of 32 bits"),
    ("iddmm", {"digit": 64, "loadable": True}, "[16] with digits of 64 bits"),
    ("orup", {"loadable": True}, "quotient pipelining"),
    ("montgomery-array", {}, "[12], a systolic array; here of digits of 17 bits in DSP blocks"),
    ("wide", {"levels": 0}, "[13] with 256 multipliers"),
    ("wide", {}, "[14] with 81 multipliers"),
    ("wide", {"pipelined": False}, "[15], fully parallel: a clock for each of x y, q and q m"),
    ("multistep", {"s": PRINTED_CLOCKS, "loadable": True}, "this paper"),
)
"""Designs, their settings, and the algorithms that they represent."""

LARGER = "xc7v"
"""The target for cores with more blocks than that of the others."""

LOADED = {"montgomery-array": "secp256k1"}
"""The modulus with which a core that loads its modulus was measured, if not MODULUS."""

PRINTED_MS = Fraction("0.76")
"""Time of a scalar multiplication in the abstract, in ms."""

DOUBLING, ADDITION = 8, Fraction(25, 2)
"""Multiplications in Jacobian coordinates that explain the printed 0.76 ms, with an addition at every second bit."""


def sections(bench: Bench) -> Sequence[Section]:
    """All sections of the paper, with the rows of ``bench``."""
    return [
        _table(), _implementation(bench), _device(bench), _curve(bench), _compared(bench), _scalar(bench), _layers(),
        _misprints(), _chart(),
    ]  # fmt: skip


def _fit(name: str, **settings: Any) -> Any:
    return design(name).fit(parse_modulus(MODULUS).value, **settings)


def _multistep(s: int = PRINTED_CLOCKS) -> Multistep:
    fitted: Multistep = _fit("multistep", s=s, loadable=True)
    return fitted


def _table() -> Section:
    clocks = {"serial-parallel": (_multistep().params.loop, "t + [r > 0], the loop alone")}
    for k in (32, 64):
        cycles = _fit("iddmm", digit=k, loadable=True).params.cycles
        clocks[f"IDDMM, k = {k}"] = cycles, "n^2 + 2 n - 1, first q to last product"
    lines = []
    for name, platform, algorithm, mhz, cycles, microseconds in TABLE_1:
        time = round(cycles / mhz, len(str(microseconds).split(".")[1]))
        wrong = platform == "Altera Spartan3"
        predicted, why = clocks.get(algorithm, (None, ""))
        lines += cells(
            f"{name}, {algorithm}",
            ("platform", platform, "Xilinx Spartan3" if wrong else None, None, "Spartan is Xilinx's" if wrong else ""),
            ("clock MHz", mhz),
            ("clocks", cycles, predicted, None, why),
            ("time in us", microseconds, time, None,
             "" if time == microseconds else f"{cycles} clocks at {mhz} MHz: {float(f'{cycles / mhz:.3g}')}"),
        )  # fmt: skip
    for name, printed, levels, why in (
        ("[13]", 256, 0, "16^2: all products of digits of 16 bits"),
        ("[14]", 81, 4, "3^4: Karatsuba's method four times, 256 bits to 16"),
    ):
        blocks = _fit("wide", levels=levels).cost.dsp
        lines.append(Line(f"{name}: embedded multipliers", printed, blocks, why=why))
    return Section("Table 1: comparison", lines, "Predicted times: printed clocks at the printed frequency.")


def _core(bench: Bench, s: int) -> MeasuredCore:
    return MeasuredCore(bench, "multistep", MODULUS, ROUTED, s=s, loadable=True)


def _implementation(bench: Bench) -> Section:
    ours = _core(bench, PRINTED_CLOCKS)
    n = len(ours.clocks)
    lines = [
        Line("clocks between products", PRINTED_CLOCKS, ours.interval, ours.seen_interval),
        Line("clocks from operands to result", PRINTED_CLOCKS, ours.latency, ours.seen,
             "with acceptance, the final addition, the subtraction and the choice, which the paper does not count"),
        Line("LUTs (Stratix III: ALUTs)", PRINTED_ALUTS, _multistep().predicted_luts, ours.resource("lut"),
             "predicted: the loop alone, 4 k s; an ECP5 LUT has four inputs, an ALUT up to six"),
        Line("flip-flops", None, None, ours.resource("ff")),
        Line("DSP blocks", 0, ours.predicted_dsp, ours.resource("dsp")),
        Line("clock MHz (Stratix III; ECP5)", PRINTED_MHZ, None, rounded(ours.mhz),
             f"seeds: {n}; 32 LUTs in a row, and each q reaches 256 bits" if n
             else "no row: run modmill race with --route"),
        Line("products a second", round(PRINTED_MHZ * 1e6 / PRINTED_CLOCKS), None, rounded(ours.rate, None)),
    ]  # fmt: skip
    return Section("Section 4: the multiplier with s = 16 for 256 bits", lines, "Modulus loaded, as in the paper.")


def _device(bench: Bench) -> Section:
    """What of the difference between the clocks the device explains."""
    ours = _core(bench, PRINTED_CLOCKS)
    four, six = ours.depth.get("levels_4"), ours.depth.get("levels_6")
    zynq = MeasuredCore(bench, "multistep", MODULUS, SIX_INPUTS, s=PRINTED_CLOCKS, loadable=True)
    delay = zynq.synth["logic_delay_ns"] if zynq.synth else None
    printed = Fraction(1000) / Fraction(str(PRINTED_MHZ))
    lines = [
        Line("levels, LUTs with 4 inputs (ECP5)", None, 2 * PRINTED_CLOCKS, four,
             "predicted: two carry-save additions a step, each bit a function of 4 inputs"),
        Line("levels, LUTs with 6 inputs (ALUT)", None, None, six,
             "two additions of a step have more than 6 inputs together; wider LUTs merge parts of neighbouring steps"),
        Line("LUTs with 4 inputs", None, None, ours.depth.get("luts_4")),
        Line("LUTs with 6 inputs", PRINTED_ALUTS, None, ours.depth.get("luts_6"), "Stratix III: ALUTs"),
        Line("period, ns", float(round(printed, 1)), None, rounded(over(1000, ours.mhz)), "Stratix III; ECP5, routed"),
        Line("ns a level", rounded(over(float(printed), four), 2), None, rounded(over(over(1000, ours.mhz), four), 2),
             "a LUT and its routing; printed: with our levels"),
        Line(f"delay of the logic without routing, {SIX_INPUTS}, ns", None, None, rounded(delay),
             "28 nm, LUTs with 6 inputs; Yosys"),
    ]  # fmt: skip
    text = (
        "Levels by Yosys and ABC, apart from any device (modmill depth). The device's share is the time of a level: "
        "LUT and routing on ECP5 take three times as long as the printed clock allows, and each q drives 256 bits. "
        "What the device does not explain: whether the printed clock is routed or estimated, the paper does not say."
    )
    return Section("Section 4: the clock, and what the device explains", lines, text)


def _curve(bench: Bench) -> Section:
    lines = []
    points: list[tuple[int, float]] = []
    for s in CURVE:
        ours = _core(bench, s)
        lut = ours.resource("lut")
        per_lut = over(ours.rate, lut)
        lines += cells(
            f"s = {s}",
            ("clocks between products", None, ours.interval),
            ("LUTs", None, _multistep(s).predicted_luts, lut, "predicted: the loop alone"),
            ("clock MHz", None, None, rounded(ours.mhz), routed_by(ours.mhz)),
            ("products a second", None, None, rounded(ours.rate, None)),
            ("products a second and LUT", None, None, rounded(per_lut)),
        )
        if per_lut:
            points.append((s, per_lut))
    top = max((y for _, y in points), default=1.0)
    bars = [f"s = {s:<3} {'█' * max(1, round(60 * y / top)):<60} {y:,.1f}" for s, y in points]
    series = Series("multistep, 256 bits", "measured", [(s, round(y, 1)) for s, y in points])
    plot = Plot("Products a second and LUT", "s, steps a clock", "products a second and LUT", [series])
    text = "ECP5-85k, modulus loaded, one seed or more."
    return Section("Products a second and LUT over s", lines, text, bars, [plot] if points else ())


def _compared(bench: Bench) -> Section:
    lines = []
    for name, settings, about in COMPARED:
        modulus, note, no_clock = LOADED.get(name, MODULUS), "", "not routed here"
        ours = MeasuredCore(bench, name, modulus, ROUTED, **settings)
        if ours.predicted_dsp > target(ROUTED).capacity.dsp:
            ours = MeasuredCore(bench, name, modulus, LARGER, **settings)
            note = f"{LARGER}, because {target(ROUTED).capacity.dsp} blocks are all that {ROUTED} has"
            no_clock = f"{LARGER} is synthesised only"
        shown = "".join(f", {key} = {value}" for key, value in settings.items() if key not in ("loadable", "s"))
        lines += cells(
            f"{name}{shown.lower()} ({about})",
            ("clocks between products", None, ours.interval, ours.seen_interval),
            ("clocks to the result", None, ours.latency, ours.seen),
            ("LUTs", None, None, ours.resource("lut"), note and f"LUTs of 6 inputs, {note}"),
            ("DSP blocks", None, ours.predicted_dsp, ours.resource("dsp"), note),
            ("clock MHz", None, None, rounded(ours.mhz), routed_by(ours.mhz) if ours.mhz else no_clock),
            ("us to the result", None, None, rounded(over(ours.latency, ours.mhz), 3), "" if ours.mhz else no_clock),
        )
    text = (
        "Our own builds of the published algorithms, 256 bits, ECP5-85k; the modulus is loaded, but for wide. "
        "Latencies include acceptance, final subtraction and queue."
    )
    return Section("The compared multipliers on one device", lines, text)


def _scalar(bench: Bench) -> Section:
    time = Fraction(PRINTED_CLOCKS) / Fraction(str(PRINTED_MHZ))  # microseconds
    products = PRINTED_MS * 1000 / time
    each = DOUBLING + ADDITION / 2
    inversion = Fraction(3 * BITS, 2) * time / 1000
    lines = [
        Line("256-bit scalar multiplication, ms", float(PRINTED_MS), float(round(each * BITS * time / 1000, 2)),
             why=f"a fit of ours: {DOUBLING} products a doubling, {float(ADDITION)} an addition at every second bit"),
        Line("products in it", None, round(products), why=f"{float(each)} a bit, {float(time) * 1000:.1f} ns each"),
        Line("with the inversion at the end, ms", None, float(round(PRINTED_MS + inversion, 2)),
             why=f"p - 2 as exponent: {3 * BITS // 2} products, {float(inversion):.2f} ms; print leaves it out"),
    ]  # fmt: skip
    for threads, how in ((1, "alone"), (3, "three in step")):
        run = (
            bench.operation(curve="P-256", design="multistep", threads=threads, operations=["multiply"], cores=1) or {}
        )
        cycles = run.get("latency")
        ms = over(over(cycles, threads), PRINTED_MHZ * 1000)
        lines += cells(
            f"P-256 on multistep, {how}",
            ("clocks", None, None, cycles, "simulated, from the first word in to the last word out"),
            ("slots of 16 clocks for each", None, round(products),
             rounded(over(cycles, threads * PRINTED_CLOCKS), None),
             "predicted: what 0.76 ms implies; alone a product waits for the one before it"),
            ("ms for each at 76.8 MHz", float(PRINTED_MS), None, rounded(ms, 2), "inversion included"),
        )  # fmt: skip
    text = (
        "Printed: an estimate of the paper, and the products that it implies. Measured: any point times any scalar, "
        "affine in and out, in constant time, in the RTL of the coprocessor; its clock would be the paper's."
    )
    return Section("Abstract: scalar multiplication", lines, text)


LAYERS = (
    ("1, protocols", "ECC protocol", "ECDH, ECDSA, EdDSA", "engines/ecc/ecdh.py, ecdsa.py, eddsa.py; modmill ecc run"),
    ("2, point multiplication", "point multiplication", "windows of digits, constant time",
     "engines/ecc/point_engine.py, recoding.py; modmill ecc build"),
    ("3, points", "point doubling, point addition", "Jacobian doubling, addition, back to affine",
     "engines/ecc/formulas.py, points.py; modmill ecc explain"),
    ("4, field", "addition, subtraction, multiplication, inversion", "one multiplier, adders beside it, inversion by "
     "products", "engines/machine/datapath.py, designs/multistep; modmill build"),
)  # fmt: skip
"""Number and name of a layer, what the paper has there, what we have, and where."""


def _layers() -> Section:
    lines = [Line(f"layer {name}", theirs, why=f"ours: {ours}; {where}") for name, theirs, ours, where in LAYERS]
    text = "The paper builds the multiplier of the lowest layer; the whole structure is its future work (Section 5)."
    return Section("Figure 1: four layers", lines, text)


def _misprints() -> Section:
    q = _multistep().params
    this, other, parallel = Fraction("0.2"), Fraction("0.35"), Fraction("0.1")
    exact = Fraction(PRINTED_CLOCKS) / Fraction(str(PRINTED_MHZ))
    best = Fraction(23) / Fraction("68.24")
    return Section("What is wrong in print", [
        Line("Algorithm 1: lambda", "0 <= lambda <= R", "0 <= lambda < R", why="a residue modulo R"),
        Line("Equation (4)", "a2", "a 2^-1"),
        Line("Section 2.2: remainder of", "(x y) / p", "(x y) / m"),
        Line("Algorithm 3: steps for 256 bits", q.k // q.s * q.k, q.k,
             why="both loops use i and the inner one runs to k - 1; it must be i s + j with j < s"),
        Line("Algorithm 3: steps of the remainder", "k", "r", why="bits t s + j with j < r"),
        Line("Section 1: decrease in time, %", 42, float(round(100 * (1 - this / other), 1)),
             why=f"against [16] only, rounded times; {float(100 * (1 - exact / best)):.1f} by clocks and frequencies"),
        Line("Section 5: faster than all previous designs", "yes", "no",
             why=f"[15] takes {float(parallel)} us, {float(exact / parallel):.1f} times less"),
        Line("Section 3.2: clocks of a full parallel structure", 1, 3, why="[15] of Table 1, called fully parallel"),
        Line("Section 4: LEs of [14] and of [15]", "23405 and 23405", why="one number for two designs; unexplained"),
        Line("Section 5: portable", "due to using DSP units", "due to not using DSP units"),
    ])  # fmt: skip


def _chart() -> Section:
    plan = _multistep().schedule
    lines = [Line("clocks of the loop", PRINTED_CLOCKS, len(list(plan.on("steps"))))]
    rows = chart(plan, 110).splitlines()
    return Section("Schedule of one product, s = 16", lines, chart=rows, schedule=plan)
