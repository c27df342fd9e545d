# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""X. Zhang, X. Dong: A high speed Montgomery processor of 256-bit on FPGA. 2014. Table 1, the claims, the misprints.

Printed values are the paper's own. Predicted values follow from the schedules. Measured values are rows of this
repository: cycles from simulation, resources from Yosys, clocks routed by nextpnr on ECP5, which is none of the paper's
devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from modmill.designs import design
from modmill.designs.iddmm import Iddmm
from modmill.designs.multistep import PRINTED_ALUTS, PRINTED_CLOCKS, PRINTED_MHZ, Multistep
from modmill.numbers.moduli import parse_modulus
from modmill.report.chart import chart
from modmill.report.clocks import routed_by
from modmill.report.plots import Plot, Series
from modmill.report.reproduction import Line, Section
from modmill.studies.papers.bench import Bench

MODULUS = "2^256-189"
"""Any 256-bit modulus serves, because it is loaded."""

TARGET = "ecp5-85k"
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

CURVE = (1, 2, 4, 8, 16, 32)
"""Values of s, the steps in a clock cycle."""

COMPARED: tuple[tuple[str, dict[str, int | bool], str], ...] = (
    ("tenca-koc", {"loadable": True}, "row of elements, as [6]"),
    ("mcivor", {"loadable": True}, "one carry-save addition a bit"),
    ("iddmm", {"loadable": True}, "[16] with digits of 32 bits"),
    ("iddmm", {"digit": 64, "loadable": True}, "[16] with digits of 64 bits"),
    ("orup", {"loadable": True}, "quotient pipelining"),
    ("wide", {}, "[14] with 81 multipliers"),
    ("multistep", {"s": PRINTED_CLOCKS, "loadable": True}, "this paper"),
)
"""Designs, their settings, and the algorithms that they represent."""

PRINTED_MS = Fraction("0.76")
"""Time of a scalar multiplication in the abstract, in ms."""

DOUBLING, ADDITION = 8, Fraction(25, 2)
"""Multiplications in Jacobian coordinates that explain the printed 0.76 ms, with an addition at every second bit."""


def sections(bench: Bench) -> Sequence[Section]:
    """All sections of the paper, with the rows of ``bench``."""
    return [_table(), _implementation(bench), _curve(bench), _compared(bench), _scalar(), _misprints(), _chart()]


def _multistep(s: int = PRINTED_CLOCKS) -> Multistep:
    fitted = design("multistep").fit(parse_modulus(MODULUS).value, s=s, loadable=True)
    assert isinstance(fitted, Multistep)
    return fitted


def _iddmm(digit: int) -> Iddmm:
    fitted = design("iddmm").fit(parse_modulus(MODULUS).value, digit=digit, loadable=True)
    assert isinstance(fitted, Iddmm)
    return fitted


def _table() -> Section:
    clocks = {
        "IDDMM, k = 32": (_iddmm(32).params.cycles, "n^2 + 2 n - 1, first q to last product"),
        "IDDMM, k = 64": (_iddmm(64).params.cycles, "n^2 + 2 n - 1, first q to last product"),
        "serial-parallel": (_multistep().params.loop, "t + [r > 0], the loop alone"),
    }
    lines = []
    for name, platform, algorithm, mhz, cycles, microseconds in TABLE_1:
        where = f"{name}, {algorithm}"
        predicted, why = clocks.get(algorithm, (None, ""))
        time = float(f"{cycles / mhz:.3g}")
        digits = len(str(microseconds).split(".")[1])
        lines += [
            Line(f"{where}: platform", platform, "Xilinx Spartan3" if platform == "Altera Spartan3" else None,
                 why="Spartan is Xilinx's" if platform == "Altera Spartan3" else ""),
            Line(f"{where}: clock MHz", mhz),
            Line(f"{where}: clocks", cycles, predicted, why=why),
            Line(f"{where}: time in us", microseconds, round(cycles / mhz, digits),
                 why="" if round(cycles / mhz, digits) == microseconds else f"{cycles} clocks at {mhz} MHz: {time}"),
        ]  # fmt: skip
    for name, printed, levels, why in (
        ("[13]", 256, 0, "16^2: all products of digits of 16 bits"),
        ("[14]", 81, 4, "3^4: Karatsuba's method four times, 256 bits to 16"),
    ):
        wide = design("wide").fit(parse_modulus(MODULUS).value, levels=levels)
        lines.append(Line(f"{name}: embedded multipliers", printed, wide.cost.dsp, why=why))
    return Section("Table 1: comparison", lines, "Predicted times: printed clocks at the printed frequency.")


def _implementation(bench: Bench) -> Section:
    fitted = _multistep()
    plan = fitted.schedule
    settings = {"s": PRINTED_CLOCKS, "loadable": True}
    seen = bench.checked("multistep", MODULUS, **settings)
    values = bench.core("multistep", MODULUS, TARGET, **settings)
    clocks = sorted(bench.routed("multistep", MODULUS, TARGET, **settings))
    middle = clocks[len(clocks) // 2] if clocks else None
    missing = "" if clocks else "no row: run modmill race with --route"
    lines = [
        Line("clocks between products", PRINTED_CLOCKS, plan.interval, seen["interval"] if seen else None),
        Line("clocks from operands to result", PRINTED_CLOCKS, plan.latency, seen["latency"] if seen else None,
             "with acceptance, the final addition, the subtraction and the choice, which the paper does not count"),
        Line("LUTs (Stratix III: ALUTs)", PRINTED_ALUTS, fitted.predicted_luts, values["lut"] if values else None,
             "predicted: the loop alone, 4 k s; an ECP5 LUT has four inputs, an ALUT up to six"),
        Line("flip-flops", None, None, values["ff"] if values else None),
        Line("DSP blocks", 0, fitted.cost.dsp, values["dsp"] if values else None),
        Line("clock MHz (Stratix III; ECP5)", PRINTED_MHZ, None, middle and round(middle, 1),
             missing or f"seeds: {len(clocks)}; 32 LUTs in a row, and each q reaches 256 bits"),
        Line("products a second", round(PRINTED_MHZ * 1e6 / PRINTED_CLOCKS), None,
             round(middle * 1e6 / plan.interval) if middle else None),
    ]  # fmt: skip
    return Section("Section 4: the multiplier with s = 16 for 256 bits", lines, "Modulus loaded, as in the paper.")


def _curve(bench: Bench) -> Section:
    lines, bars = [], []
    points: list[tuple[int, float]] = []
    for s in CURVE:
        settings = {"s": s, "loadable": True}
        plan = _multistep(s).schedule
        values = bench.core("multistep", MODULUS, TARGET, **settings)
        clocks = sorted(bench.routed("multistep", MODULUS, TARGET, **settings))
        lut = values["lut"] if values else None
        mhz = clocks[len(clocks) // 2] if clocks else None
        rate = mhz * 1e6 / plan.interval if mhz else None
        lines += [
            Line(f"s = {s}: clocks between products", None, plan.interval),
            Line(f"s = {s}: LUTs", None, _multistep(s).predicted_luts, lut, "predicted: the loop alone"),
            Line(f"s = {s}: clock MHz", None, None, mhz and round(mhz, 1), routed_by(mhz)),
            Line(f"s = {s}: products a second", None, None, rate and round(rate)),
            Line(f"s = {s}: products a second and LUT", None, None, round(rate / lut, 1) if rate and lut else None),
        ]
        if rate and lut:
            points.append((s, rate / lut))
    top = max((y for _, y in points), default=1.0)
    bars = [f"s = {s:<3} {'█' * max(1, round(60 * y / top)):<60} {y:,.1f}" for s, y in points]
    return Section("Products a second and LUT over s", lines, "ECP5-85k, modulus loaded, one seed or more.", bars,
                   [Plot("Products a second and LUT", "s, steps a clock", "products a second and LUT",
                         [Series("multistep, 256 bits", "measured", [(s, round(y, 1)) for s, y in points])])] if points
                   else ())  # fmt: skip


def _compared(bench: Bench) -> Section:
    p = parse_modulus(MODULUS).value
    lines = []
    for name, settings, about in COMPARED:
        fitted = design(name).fit(p, **settings)
        plan = fitted.schedule
        values = bench.core(name, MODULUS, TARGET, **settings)
        seen = bench.checked(name, MODULUS, **settings)
        clocks = sorted(bench.routed(name, MODULUS, TARGET, **settings))
        mhz = clocks[len(clocks) // 2] if clocks else None
        digit = f", {settings['digit']} bits" if "digit" in settings else ""
        where = f"{name}{digit} ({about})"
        lines += [
            Line(f"{where}: clocks between products", None, plan.interval, seen["interval"] if seen else None),
            Line(f"{where}: clocks to the result", None, plan.latency, seen["latency"] if seen else None),
            Line(f"{where}: LUTs", None, None, values["lut"] if values else None),
            Line(f"{where}: DSP blocks", None, fitted.cost.dsp, values["dsp"] if values else None),
            Line(f"{where}: clock MHz", None, None, mhz and round(mhz, 1), routed_by(mhz)),
            Line(f"{where}: us to the result", None, None, mhz and round(plan.latency / mhz, 3)),
        ]
    return Section(
        "The compared multipliers on one device",
        lines,
        "Our own builds of the published algorithms, 256 bits, ECP5-85k; the modulus is loaded, but for wide.",
    )


def _scalar() -> Section:
    time = Fraction(PRINTED_CLOCKS) / Fraction(str(PRINTED_MHZ))  # microseconds
    products = PRINTED_MS * 1000 / time
    each = DOUBLING + ADDITION / 2
    inversion = Fraction(3 * BITS, 2) * time / 1000
    return Section("Abstract: scalar multiplication", [
        Line("256-bit scalar multiplication, ms", float(PRINTED_MS), float(round(each * BITS * time / 1000, 2)),
             why=f"{DOUBLING} products a doubling, {float(ADDITION)} an addition at every second bit"),
        Line("products in it", None, round(products),
             why=f"{float(each)} a bit, {float(time) * 1000:.1f} ns each; not simulated"),
        Line("with the inversion at the end, ms", None, float(round(PRINTED_MS + inversion, 2)),
             why=f"p - 2 as exponent: {3 * BITS // 2} products, {float(inversion):.2f} ms; print leaves it out"),
    ])  # fmt: skip


def _misprints() -> Section:
    q = _multistep().params
    this, other, parallel = Fraction("0.2"), Fraction("0.35"), Fraction("0.1")
    exact = Fraction(PRINTED_CLOCKS) / Fraction(str(PRINTED_MHZ))
    best = Fraction(23) / Fraction("68.24")
    return Section("What is wrong in print", [
        Line("Algorithm 1: lambda", "0 <= lambda <= R", "0 <= lambda < R", why="a residue modulo R"),
        Line("Equation (4)", "a2", "a 2^-1"),
        Line("Section 2.2: remainder of", "(x y) / p", "(x y) / m"),
        Line("Algorithm 3: steps for 256 bits", q.t * q.k, q.k,
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
    return Section(
        "Schedule of one product, s = 16",
        [Line("clocks of the loop", PRINTED_CLOCKS, len(list(_multistep().schedule.on("steps"))))],
        chart=chart(_multistep().schedule, 110).splitlines(),
        schedule=_multistep().schedule,
    )
