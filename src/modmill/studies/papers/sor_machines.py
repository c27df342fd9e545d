# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Sections 4 and 5 of the sum of residues paper: cycles of its machines, cost and use of the pipeline register, and
the area of our ring of rowers, an answer to the paper's future work."""

from __future__ import annotations

from collections.abc import Sequence

from modmill.designs.sor.improved import Sor
from modmill.report.reproduction import Line, Section, cells
from modmill.studies.papers.bench import Bench
from modmill.studies.papers.measured_core import ROUTED, MeasuredCore, over, rounded, seeds, times
from modmill.studies.papers.sor_charts import FIELD

SETTINGS = {"dsp": "25x18"}
"""The settings of our cores that stand beside the paper's."""
DEVICE = "xc7v"
SMALL = "secp160k1"
"""The modulus for which both machines with one multiplier set fit the routed device."""
CYCLES = (("SOR_1M_N", "sor-1m-n", "3N + 7", None), ("SOR_1M_P", "sor-1m-p", "2(N + 4)", None),
          ("SOR_2M", "sor-2m", "2(N/2 + 5)", None), ("N multipliers", "sor-nm", "as small as 12", 12))  # fmt: skip
"""Machine, our design, the cycles as the paper prints them, and the printed number if there is one."""
REGISTERS = {"SOR_1M_N": 3758, "SOR_1M_P": 4279}
"""FFs of Table 4."""


def sections(bench: Bench) -> list[Section]:
    """The sections, with the rows of ``bench``."""
    return [_cycles(bench), _pipeline(bench), _future(bench)]


def _cycles(bench: Bench) -> Section:
    lines = []
    for paper, name, formula, printed in CYCLES:
        core = MeasuredCore(bench, name, FIELD, DEVICE, **SETTINGS)
        lines.append(Line(f"{paper}: cycles, N = 8", printed, core.latency, core.seen, f"printed: {formula}"))
    core = MeasuredCore(bench, "sor-nm", FIELD, DEVICE, **SETTINGS)
    lines += _area("N multipliers, VIRTEX 7", core)
    return Section("Section 4: cycles, and the machine with N multipliers", lines, "Measured: cycles in simulation, "
                   "resources by Yosys. The paper does not build the machine with N multipliers.")  # fmt: skip


def _area(item: str, core: MeasuredCore) -> Sequence[Line]:
    return cells(
        item,
        ("KLUT", None, None, over(core.resource("lut"), 1000)),
        ("FF", None, None, core.resource("ff")),
        ("DSP", None, core.predicted_dsp, core.resource("dsp")),
    )


def _pipeline(bench: Bench) -> Section:
    names = {"SOR_1M_N": "sor-1m-n", "SOR_1M_P": "sor-1m-p"}
    wide = {paper: MeasuredCore(bench, name, FIELD, DEVICE, **SETTINGS) for paper, name in names.items()}
    routed = {paper: MeasuredCore(bench, name, SMALL, ROUTED) for paper, name in names.items()}
    without, with_q3 = (core.resource("ff") for core in wide.values())
    fewer = None if without is None or with_q3 is None else with_q3 - without
    lines = [Line(f"{paper}: FF", REGISTERS[paper], None, wide[paper].resource("ff")) for paper in names]
    printed = REGISTERS["SOR_1M_P"] - REGISTERS["SOR_1M_N"]
    why = f"N n bits of Q3, the register behind the multiplier; ours also its enable; printed numbers: {printed} less"
    fitted = wide["SOR_1M_N"].fitted
    assert isinstance(fitted, Sor)
    base = fitted.rns.base
    lines.append(Line("FF that SOR_1M_N has less", None, base.n * base.w, fewer, why))
    for paper, core in wide.items():
        delay = core.synth["logic_delay_ns"] if core.synth else None
        lines.append(Line(f"{paper}: longest path of logic ns", None, None, rounded(delay, 2),
                          "Yosys sta for the 7 series, without routing"))  # fmt: skip
    for paper, core in routed.items():
        lines += cells(
            f"{paper}, {SMALL}, ECP5-85k",
            ("routed clock MHz", None, None, rounded(core.mhz), seeds(core)),
            ("time of a product ns", None, None, rounded(times(core.latency, over(1000, core.mhz))),
             f"{core.latency} cycles"),
        )  # fmt: skip
    text = (
        "Without Q3 the sums of the multiplier's rows, the folds and the accumulator are one path. It has two periods "
        "in the schedule, because the multiplier idles; Yosys and nextpnr count it as one."
    )
    return Section("Figures 1 and 4: SOR_1M_N against SOR_1M_P", lines, text)


def _future(bench: Bench) -> Section:
    ring = MeasuredCore(bench, "sor-ring", FIELD, DEVICE)
    one = MeasuredCore(bench, "sor-1m-p", FIELD, DEVICE, **SETTINGS)
    lines: list[Line] = []
    for item, core in (("our ring of rowers", ring), ("SOR_1M_P, ours", one)):
        lines += _area(f"{item}, VIRTEX 7", core)
        lines += cells(
            item,
            ("cycles", None, core.latency, core.seen),
            ("cycles between products", None, core.interval, core.seen_interval),
            ("DSP blocks times cycles between products", None, core.predicted_dsp * core.interval,
             times(core.resource("dsp"), core.seen_interval)),
        )  # fmt: skip
    text = (
        "The paper leaves an area-efficient variant to future work. sor-ring has the same algorithm with channels of "
        "17 bits, one DSP block each, and several products in flight: fewer DSP blocks, more LUTs, FFs and latency."
    )
    return Section("Section 5: an area-efficient variant", lines, text)
