# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""M. A. Mehrabi: Improved Sum of Residues Modular Multiplication Algorithm. Cryptography 3(2):14, 2019. Every table.

Printed values are the paper's own. Predicted values follow from the schedule and from the solver. Measured values are
rows of this repository: cycles from simulation, resources from Yosys, delays of the logic without
routing from Yosys' sta (a lower limit; the paper's clocks are routed by Vivado 2017.4), routed clocks from nextpnr on
ECP5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal

from modmill.design import Multiplier
from modmill.designs import design
from modmill.designs.sor.improved import Sor
from modmill.numbers.moduli import parse_modulus
from modmill.numbers.primes import is_prime
from modmill.numbers.rns.residues import Base
from modmill.numbers.rns.sum_of_residues import SumOfResidues
from modmill.report.chart import chart
from modmill.report.plots import Plot, Series
from modmill.report.reproduction import Line, Section
from modmill.rtl import fold
from modmill.rtl.product import DSP18, product
from modmill.schedule import Schedule
from modmill.studies.papers.bench import Bench

TABLE_1 = tuple((1 << 66) - u for u in (1, 5, 9, 17, 33, 65, 257, 513))

TABLE_1_TEXT = ("1", "2^2 - 1", "2^3 - 1", "2^4 - 1", "2^5 - 1", "2^6 - 1", "2^8 - 1", "2^9 - 1")
"""Table 1 as printed, without 2^66."""

TABLE_2_TEXT = (
    "2^255 - 19", "2^160 - 2^32 - 21389", "2^160 - 2^32 - 1", "2^192 - 2^32 - 4553", "2^192 - 2^64 - 1",
    "2^224 - 2^32 - 6803", "2^224 - 2^96 + 1", "2^256 - 2^32 - 977", "2^384 - 2^128 - 2^96 + 2^31 - 1", "2^521 - 1",
)  # fmt: skip
"""The moduli of Table 2 as printed."""

TABLE_2 = (
    # curve, printed modulus, our name for it, N, printed bound 2^(W-n)/N as text
    ("ED25519", 2**255 - 19, "2^255-19", 8, "2^186"),
    ("SECP160K1", 2**160 - 2**32 - 21389, "secp160k1", 5, "2^94/5"),
    ("SECP160R1", 2**160 - 2**32 - 1, "secp160r1", 5, "2^94/5"),
    ("SECP192K1", 2**192 - 2**32 - 4553, "secp192k1", 6, "2^125/3"),
    ("SECP192R1", 2**192 - 2**64 - 1, "P-192", 6, "2^125/3"),
    ("SECP224K1", 2**224 - 2**32 - 6803, "secp224k1", 7, "2^158/7"),
    ("SECP224R1", 2**224 - 2**96 + 1, "P-224", 7, "2^158/7"),
    ("SECP256K1", 2**256 - 2**32 - 977, "secp256k1", 8, "2^187"),
    ("SECP2384R1", 2**384 - 2**128 - 2**96 + 2**31 - 1, "P-384", 12, "2^316/3"),
    ("SECP521R1", 2**521 - 1, "P-521", 16, "2^451"),
)
MISPRINTS = {
    "SECP160R1": "misprint: 2^160 - 2^31 - 1 is the prime; the printed number is composite",
    "SECP2384R1": "misprints: the name is P-384, the term +2^32; the printed number is composite",
    "SECP256K1": "from SEC 2, not a NIST curve",
}
EXCLUDED = (
    "P-256",
    "SM2",
    "brainpoolP256r1",
    "brainpoolP384r1",
    "brainpoolP512r1",
    "BN254-p",
    "BLS12-381-p",
    "BLS12-381-r",
)

TABLE_3 = (
    # unit, device, logic delay ns, net delay ns, MHz
    ("RNS Multiplier", "ARTIX 7", 16.206, 5.112, 109.00),
    ("RNS Adder", "ARTIX 7", 6.017, 2.303, 109.00),
    ("RNS Multiplier", "VIRTEX 7", 11.525, 3.793, 125.00),
    ("RNS Adder", "VIRTEX 7", 3.931, 1.469, 125.00),
    ("RNS Multiplier", "VIRTEX US+", 5.910, 4.099, 185.18),
    ("RNS Adder", "VIRTEX US+", 2.139, 2.454, 185.18),
    ("RNS Multiplier", "KINTEX 7", 11.964, 4.711, 116.27),
    ("RNS Adder", "KINTEX 7", 4.613, 1.599, 116.27),
    ("RNS Multiplier", "KINTEX US+", 5.789, 4.099, 187.13),
    ("RNS Adder", "KINTEX US+", 2.018, 2.454, 187.13),
)

TABLE_4 = (
    # architecture, platform, MHz, latency ns, KLUT, FF, DSP, throughput Mbps
    ("SOR_1M_N", "ARTIX 7", 92.5, 335.0, 8.17, 3758, 140, 1671),
    ("SOR_1M_N", "VIRTEX 7", 128.8, 241.0, 8.17, 3758, 140, 2323),
    ("SOR_1M_N", "KINTEX 7", 117.67, 263.0, 8.29, 3758, 140, 2129),
    ("SOR_1M_N", "VIRTEX US+", 192.0, 157.0, 8.14, 3758, 140, 3567),
    ("SOR_1M_N", "KINTEX US+", 198.0, 156.5, 8.29, 3758, 140, 3578),
    ("SOR_1M_P", "ARTIX 7", 92.5, 259.5, 8.73, 4279, 140, 2158),
    ("SOR_1M_P", "VIRTEX 7", 138.8, 173.0, 8.73, 4279, 140, 3237),
    ("SOR_1M_P", "KINTEX 7", 117.6, 204.0, 8.89, 4279, 140, 2745),
    ("SOR_1M_P", "VIRTEX US+", 185.18, 130.0, 8.71, 4279, 140, 4307),
    ("SOR_1M_P", "KINTEX US+", 187.13, 128.3, 8.89, 4279, 140, 4364),
    ("SOR_2M", "ARTIX 7", 92.5, 194.6, 10.11, 4797, 280, 2877),
    ("SOR_2M", "VIRTEX 7", 128.5, 140.0, 10.11, 4797, 280, 3998),
    ("SOR_2M", "KINTEX 7", 121.9, 147.6, 10.27, 4797, 280, 3794),
    ("SOR_2M", "VIRTEX US+", 185.18, 97.3, 10.11, 4797, 280, 5761),
    ("SOR_2M", "KINTEX US+", 187.13, 96.3, 10.26, 4797, 280, 5821),
)

TABLE_5 = (
    # design, our instance, platform, MHz, latency ns, KLUT, DSP, throughput Mbps
    ("MM_PA_P [20]", "mm-pa-p", "VIRTEX 6", 71.40, 14.20, 36.5, 2016, 14798),
    ("MM_PA_N [20]", "mm-pa-n", "VIRTEX 6", 21.16, 47.25, 34.34, 2016, 5120),
    ("MM_PA_P [27]", "mm-pa-p", "VIRTEX 7", 62.11, 48.3, 29.17, 2799, 15900),
    ("MM_SPA [27]", "mm-spa", "VIRTEX 7", 54.34, 239.2, 11.43, 512, 1391),
    ("(MeasuredCore) SOR_1M_P", "sor-1m-p", "VIRTEX 7", 138.8, 173.0, 8.73, 140, 3237),
    ("(MeasuredCore) SOR_2M", "sor-2m", "VIRTEX 7", 128.5, 140.0, 10.11, 280, 3998),
    ("sQ-RNS [18]", "", "KINTEX US+", 139.5, 107.53, 4.247, 84, 4835),
    ("dQ-RNS [18]", "", "KINTEX US+", 142.7, 126.14, 4.076, 84, 4122),
    ("(MeasuredCore) SOR_1M_P", "sor-1m-p", "KINTEX US+", 187.13, 128.3, 8.89, 140, 4364),
    ("(MeasuredCore) SOR_2M", "sor-2m", "KINTEX US+", 187.13, 96.3, 10.26, 280, 5821),
)


@dataclass(frozen=True)
class PrintedChart:
    """A printed data-flow chart: widths of its columns in cycles, and for each unit its cells (operation, first column,
    last column). Columns are None if only the order of the cells can be read."""

    figure: str
    paper: str
    widths: tuple[int, ...]
    cells: Mapping[str, Sequence[tuple[str, int | None, int | None]]]

    def cycles(self, first: int, last: int) -> tuple[int, int]:
        """The first cycle of a cell, and the cycle after its last."""
        return sum(self.widths[:first]), sum(self.widths[: last + 1])


def _row(names: str, first: int, step: int = 1, columns: int = 1) -> list[tuple[str, int | None, int | None]]:
    """Cells of one name each, ``step`` columns apart."""
    return [(name, first + k * step, first + k * step + columns - 1) for k, name in enumerate(names.split())]


_L, _K = ("L1 L2 L3 L4 L5 L6 L7 L8", "K1 K2 K3 K4 K5 K6 K7 K8")
_A_L = " ".join(f"A+{name}" for name in _L.split())
_K_K = " ".join(f"K+{name}" for name in _K.split())
_ALPHA = {"adder": _row("alpha", 2), "rom": _row("AL", 2)}
FIGURES = (
    PrintedChart("Figure A1", "SOR_1M_N", (2, 2, 2) + (1,) * 25, {
        "mul1": [*_row("Z G L1", 0), *_row("L2 L3 L4 L5 L6 L7 L8 KP", 4, 3, 2)],
        "acc": [*_row(_A_L, 3, 3), *_row("A+AL", 25), *_row("A+KP", 27)],
        "kmul1": [("K1", 2, 2), *((name, None, None) for name in _K.split()[1:])],
        "kacc": [("K+K1", 3, 3), *((name, None, None) for name in _K_K.split()[1:])],
        **_ALPHA,
    }),
    PrintedChart("Figure A2", "SOR_1M_P", (2,) * 10 + (1, 2, 1), {
        "mul1": [*_row(f"Z G {_L}", 0), *_row("KP", 11)],
        "acc": _row(f"{_A_L} A+AL A+KP", 3),
        "kmul1": _row(_K, 2),
        "kacc": _row(_K_K, 3),
        **_ALPHA,
    }),
    PrintedChart("Figure A3", "SOR_2M", (2,) * 9, {
        "mul1": _row("Z G L1 L3 L5 L7", 0),
        "mul2": [*_row("L2 L4 L6 L8", 2), *_row("KP", 7)],
        "acc": [*_row("A+L1+L2 A+L3+L4 A+L5+L6 A+L7+L8", 3), *_row("A+AL+KP", 8)],
        "kmul1": _row("K1 K3 K5 K7", 2),
        "kmul2": _row("K2 K4 K6 K8", 2),
        "kacc": _row("K+K1+K2 K+K3+K4 K+K5+K6 K+K7+K8", 3),
        **_ALPHA,
    }),
)  # fmt: skip


def chart_differences(printed: PrintedChart, plan: Schedule) -> Iterator[str]:
    """Cells that our schedule has on another unit, in another order or in other cycles; units without a row."""
    for unit, cells in printed.cells.items():
        names = [step.name for step in plan.on(unit)]
        if names != [name for name, _, _ in cells]:
            yield f"{unit}: printed {' '.join(name for name, _, _ in cells)}, ours {' '.join(names)}"
            continue
        for name, first, last in cells:
            if first is None or last is None:
                continue
            begin, end = printed.cycles(first, last)
            step = plan[name]
            if step.start < begin or step.end > end:
                yield f"{unit}: {name} printed in cycles {begin} to {end - 1}, ours {step.start} to {step.end - 1}"
    yield from (f"{unit}: not in the chart" for unit in plan.units if unit not in printed.cells)


NAMES = {"SOR_1M_N": "sor-1m-n", "SOR_1M_P": "sor-1m-p", "SOR_2M": "sor-2m"}
TARGETS = {
    "ARTIX 7": "xc7a200t", "VIRTEX 7": "xc7v", "KINTEX 7": "xc7v", "VIRTEX US+": "xcku", "KINTEX US+": "xcku",
    "VIRTEX 6": "xc7v",
}  # fmt: skip
"""Yosys' target for the platform or its nearest relative (Kintex-7 is of the same family as Virtex-7)."""
PAPER_SETTINGS = {"dsp": "25x18"}
OTHER_BASE = 560
"""Bits of the forty 14-bit moduli of the compared designs, which the paper's throughput counts."""


class RnsUnit(Multiplier):
    """One RNS multiplier or adder of Table 3, between registers: eight channels of Table 1. Latency 2."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._base = Base(66, TABLE_1)
        super().__init__(528, 528, 528)

    def elaborate(self, _platform: object) -> Module:
        """Registers at the inputs and the outputs, and eight channels between them."""
        m = Module()
        a, b = Signal(528, reset_less=True), Signal(528, reset_less=True)
        valid = Signal()
        m.d.comb += self.i_ready.eq(1)
        m.d.sync += [a.eq(self.i_a), b.eq(self.i_b), valid.eq(self.i_valid), self.o_valid.eq(valid)]
        words = []
        for j, u in enumerate(self._base.u):
            x, y = a.word_select(j, 66), b.word_select(j, 66)
            if self._kind == "RNS Multiplier":
                full = product(m, x, y, DSP18, name=f"c{j}", register=None)
                words.append(fold.reduce(m, full, 1 << 132, 66, u, name=f"c{j}"))
            else:
                total = Signal(67, name=f"sum{j}")
                m.d.comb += total.eq(x + y)
                words.append(fold.reduce(m, total, 2 << 66, 66, u, name=f"c{j}"))
        m.d.sync += self.o_r.eq(Mux(valid, Cat(*words), self.o_r))
        return m


def sections(bench: Bench) -> Sequence[Section]:
    """All tables and charts, with the rows of ``bench``."""
    return [
        _moduli(), _primes(), _constants(), _units(bench), *_implementations(bench), _comparison(bench),
        _improvements(), *_charts(),
    ]  # fmt: skip


def _moduli() -> Section:
    base = Base(66, TABLE_1)  # raises ValueError if two moduli share a factor
    first = (1 << 66) - 2
    fitted = design("sor-1m-p").fit(parse_modulus("secp256k1").value)
    assert isinstance(fitted, Sor)
    ours = [f"2^66 - {_of_ones(u)}" for u in fitted.params.base.u]
    return Section("Table 1: eight 66-bit moduli", [
        *(Line(f"m_{i}", f"2^66 - {printed}", found)
          for i, (printed, found) in enumerate(zip(TABLE_1_TEXT, ours, strict=True), 1)),
        Line("pairwise coprime", "yes", "yes"),
        Line("dynamic range in bits", 528, base.M.bit_length()),
        Line("form of the first modulus (App. A)", "2^n - 2^t - 1, t = 0", "2^66 - 1",
             why=f"t = 0 would give an even number that shares {gcd(first, (1 << 66) - 33)} with t = 5"),
        Line("moduli for N = 12 and 16 (Table 2)", 8, 20, why="Table 1 has eight; the family has more than thirty"),
    ])  # fmt: skip


def _of_ones(u: int) -> str:
    """u = 2^t + 1 as the paper prints it after ``2^n - ``."""
    return "1" if u == 1 else f"2^{(u - 1).bit_length() - 1} - 1"


def _primes() -> Section:
    lines = []
    for (curve, printed, name, n_channels, bound), text in zip(TABLE_2, TABLE_2_TEXT, strict=True):
        p = parse_modulus(name).value
        bits = p.bit_length()
        rns = design("sor-1m-p").fit(p)
        assert isinstance(rns, Sor)
        k = rns.params
        valid = (2**bits - p) * n_channels < 2 ** (bits - 66)
        lines += [
            Line(f"{curve}: modulus p", text, text if p == printed else _corrected(name), why=MISPRINTS.get(curve, "")),
            Line(f"{curve}: prime", "yes", "yes" if is_prime(printed) else "no", why=MISPRINTS.get(curve, "")),
            Line(f"{curve}: N", n_channels, k.base.n, why="" if n_channels == k.base.n else "by the exact condition"),
            Line(f"{curve}: n", 66, k.base.w),
            Line(f"{curve}: 2^(W-n)/N", bound, _quotient(bits - 66, n_channels)),
            Line(f"{curve}: epsilon", _below(text), _below(text if p == printed else _corrected(name))),
            Line(f"{curve}: (22) holds", "yes", "yes" if valid else "no"),
        ]
    for name in EXCLUDED:
        p = parse_modulus(name).value
        served = design("sor-1m-p").fit(p)
        assert isinstance(served, Sor)
        k = served.params
        lines.append(
            Line(
                f"{name}: (22) holds",
                None,
                "yes" if (2 ** p.bit_length() - p) * k.base.n < 2 ** (p.bit_length() - 66) else "no",
                why=f"served by the general kappa: T = {k.rns.T}, {k.words} word(s), z < {float(k.rns.beta):.3f} p",
            )
        )
    return Section(
        "Table 2: condition (22) for standard primes",
        lines,
        "The general kappa divides by p, not by 2^W, and needs no such condition.",
    )


def _corrected(name: str) -> str:
    """The intended prime if the paper prints another number."""
    return {"secp160r1": "2^160 - 2^31 - 1", "P-384": "2^384 - 2^128 - 2^96 + 2^32 - 1"}[name]


def _quotient(exponent: int, n: int) -> str:
    """2^exponent / n in lowest terms."""
    while n % 2 == 0:
        exponent, n = exponent - 1, n // 2
    return f"2^{exponent}" + (f"/{n}" if n > 1 else "")


def _below(text: str) -> str:
    """Epsilon of a modulus printed as 2^W - epsilon."""
    _, *rest = text.split()
    turned = [{"-": "+", "+": "-"}.get(word, word) for word in rest]
    return " ".join(turned).removeprefix("+ ")


def _constants() -> Section:
    lines = []
    for name, T, const, kappa, v, memory in (
        ("secp256k1", 72, 55, 52, 308, 9944), ("2^255-19", 71, 44, 42, 297, 9856),
    ):  # fmt: skip
        p = parse_modulus(name).value
        rns = SumOfResidues(p, Base(66, TABLE_1), 8, 16, T, offset=False, lazy=False)
        fitted = design("sor-1m-p").fit(p)
        lines += [
            Line(f"{name}: bits of kappa's constants (T = {T})", const, rns.constant_bits),
            Line(
                f"{name}: bits of kappa",
                kappa,
                rns.kappa_bits,
                why="" if kappa == rns.kappa_bits else "one too many in print",
            ),
            Line(
                f"{name}: bits of the uncorrected V",
                v,
                rns.v_max.bit_length(),
                why="" if v == rns.v_max.bit_length() else "one too many in print",
            ),
            Line(
                f"{name}: z below",
                "p",
                f"{float(rns.beta):.9f} p",
                why="the dropped terms of (20), (22), (24) leave z up to beta p; operands may be that large",
            ),
            Line(
                f"{name}: memory in bits",
                memory,
                fitted.cost.memory_bits,
                why="N rows of alpha, which lazy residues need; the listed rows 1 ... N-1 would give 528 fewer",
            ),
        ]
    return Section("Sections 2.2 to 4: constants, bounds, memory", lines)


def _why(values: Mapping[str, Any] | None, delay: float | None) -> str:
    """The reason for a missing delay."""
    if values is None:
        return "no row: run with --measure"
    return "" if delay else "Yosys has no delays for the family"


def _units(bench: Bench) -> Section:
    lines = []
    for kind, device, logic, net, mhz in TABLE_3:
        values = bench.block(RnsUnit(kind), kind, TARGETS[device])
        delay = values["logic_delay_ns"] if values else None
        lines += [
            Line(f"{kind}, {device}: logic delay ns", logic, None, delay, _why(values, delay)),
            Line(f"{kind}, {device}: net delay ns", net, why="needs place and route by the vendor's tool"),
            Line(f"{kind}, {device}: clock MHz", mhz, why="as printed; one multiplication takes two periods"),
        ]
    return Section(
        "Table 3: RNS multiplier and adder",
        lines,
        "Measured: Yosys sta, logic without routing, of the same unit between registers.",
    )


def _implementations(bench: Bench) -> list[Section]:
    lines, bars = [], []
    floors: dict[str, list[tuple[str, float]]] = {}
    for paper, platform, mhz, ns, klut, ff, dsp, mbps in TABLE_4:
        name, target = NAMES[paper], TARGETS[platform]
        fitted = design(name).fit(parse_modulus("secp256k1").value, **PAPER_SETTINGS)
        cycles = fitted.schedule.latency
        values = bench.core(name, "secp256k1", target, **PAPER_SETTINGS)
        seen = bench.checked(name, "secp256k1", **PAPER_SETTINGS)
        where = f"{paper}, {platform}"
        predicted = round(1000 * cycles / mhz, 1)
        delay = values["logic_delay_ns"] if values else None
        missing = _why(values, delay)
        lines += [
            Line(
                f"{where}: clock MHz",
                mhz,
                None,
                round(1000 / delay, 1) if delay else None,
                "measured: logic without routing: an upper limit" if delay else missing,
            ),
            Line(f"{where}: cycles", round(ns * mhz / 1000), cycles, seen["latency"] if seen else None),
            Line(
                f"{where}: latency ns",
                ns,
                predicted,
                round(cycles * delay, 1) if delay else None,
                "" if abs(predicted - ns) < 1 else f"{cycles} cycles at {mhz} MHz are {predicted} ns",
            ),
            Line(f"{where}: KLUT", klut, None, values["lut"] / 1000 if values else None),
            Line(f"{where}: FF", ff, None, values["ff"] if values else None),
            Line(f"{where}: DSP", dsp, fitted.cost.dsp, values["dsp"] if values else None),
            Line(
                f"{where}: throughput Mbps",
                mbps,
                round(256e3 / ns),
                why=f"print counts {OTHER_BASE} bits a product, the range of the others' base; an operand has 256",
            ),
        ]
        bars.append(f"{where:<22} printed  {'█' * round(ns / 6):<56} {ns:g} ns")
        if delay:
            floors.setdefault(paper, []).append((platform, round(cycles * delay, 1)))
            bars.append(f"{'':<22} measured {'▒' * round(cycles * delay / 6):<56} {cycles * delay:.0f} ns at least")
    for paper, name in (*NAMES.items(), ("our ring of rowers", "sor-ring")):
        clocks = sorted(bench.routed(name, "secp256k1", "ecp5-85k"))
        if clocks:
            plan = design(name).fit(parse_modulus("secp256k1").value).schedule
            middle = clocks[len(clocks) // 2]
            lines.append(
                Line(
                    f"{paper}, ECP5-85k: routed clock MHz",
                    None,
                    None,
                    round(middle, 1),
                    f"median of {len(clocks)} seed(s); {plan.interval} cycles a product",
                )
            )
            rate = round(middle * 1e6 / plan.interval)
            lines.append(Line(f"{paper}, ECP5-85k: products per second", None, None, rate))
    return [
        Section("Table 4: implementations", lines, "Measured for one modulus, secp256k1, native io, no conversions."),
        Section(
            "Figure 6: latency and throughput",
            chart=bars,
            text="The printed numbers are those of Table 4.",
            plots=_figure_6(floors),
        ),
    ]


def _figure_6(floors: Mapping[str, Sequence[tuple[str, float]]]) -> list[Plot]:
    """Latencies and throughputs of Table 4; ``floors``: our latencies with the delay of the logic without routing."""
    latency, throughput = (
        [
            Series(f"{name}, printed", "printed", [(row[1], (row[3], row[7])[k]) for row in TABLE_4 if row[0] == name])
            for name in NAMES
        ]
        for k in (0, 1)
    )
    ours = [
        Series(f"{name}, ours at least (logic without routing)", "measured", points) for name, points in floors.items()
    ]
    same = [
        Series(f"{name}, 256 bits a product", "predicted",
               [(row[1], round(256e3 / row[3])) for row in TABLE_4 if row[0] == name])
        for name in NAMES
    ]  # fmt: skip
    return [
        Plot("Latency", "platform", "ns", [*latency, *ours], "bars"),
        Plot("Throughput", "platform", "Mbit/s", [*throughput, *same], "bars"),
    ]


def _comparison(bench: Bench) -> Section:
    lines = []
    for label, name, platform, mhz, ns, klut, dsp, mbps in TABLE_5:
        where = f"{label}, {platform}"
        if not name:
            lines += [
                Line(f"{where}: clock MHz", mhz, why="the other paper's row, as printed"),
                Line(
                    f"{where}: latency ns",
                    ns,
                    round(1000 * (15 if label[0] == "s" else 18) / mhz, 2),
                    why="15 and 18 cycles",
                ),
                Line(
                    f"{where}: latency ns, estimated with the product",
                    150.53 if label[0] == "s" else 168.18,
                    round(1000 * (21 if label[0] == "s" else 24) / mhz, 2),
                    why="an estimate of the paper: two products of three cycles before the reduction",
                ),
                Line(f"{where}: KLUT", klut),
                Line(f"{where}: DSP", dsp),
                Line(f"{where}: throughput Mbps", mbps, why="520 bits a product, an estimate of the paper"),
            ]
            continue
        settings = PAPER_SETTINGS if name.startswith("sor") else {}
        fitted = design(name).fit(parse_modulus("secp256k1").value, **settings)
        cycles = fitted.schedule.latency
        values = bench.core(name, "secp256k1", TARGETS[platform], **settings)
        delay = values["logic_delay_ns"] if values else None
        old = label == "MM_PA_P [20]"
        lines += [
            Line(
                f"{where}: clock MHz",
                mhz,
                None,
                round(1000 / delay, 1) if delay else None,
                "measured: logic without routing: an upper limit" if delay else _why(values, delay),
            ),
            Line(
                f"{where}: latency ns",
                ns,
                round(1000 * cycles / mhz, 1),
                round(cycles * delay, 1) if delay else None,
                "print gives one period, not the three of the pipeline" if old else f"{cycles} cycles",
            ),
            Line(
                f"{where}: KLUT",
                klut,
                None,
                values["lut"] / 1000 if values else None,
                "" if name.startswith("sor") else "folding instead of Barrett's reduction",
            ),
            Line(
                f"{where}: DSP",
                dsp,
                fitted.cost.dsp,
                values["dsp"] if values else None,
                "" if name.startswith("sor") else "folding needs no multipliers, Barrett's method two a reduction",
            ),
            Line(
                f"{where}: throughput Mbps",
                mbps,
                round(256 * mhz / fitted.schedule.interval),
                why="256 bits a product; print counts 256 for [27], 560 for SOR: not comparable",
            ),
        ]
    return Section("Table 5: comparison", lines, "MM_PA and MM_SPA are our own build of the published architectures.")


def _improvements() -> Section:
    def less(new: float, old: float) -> float:
        return round(100 * (old - new) / old, 1)

    return Section("Section 4.1: improvements in latency", [
        Line("SOR_2M against sQ-RNS, %", 36.0, less(96.3, 150.53)),
        Line("SOR_2M against MM_SPA, %", 41.1, less(140.0, 239.2)),
        Line("SOR_1M_P against sQ-RNS, %", 14.9, less(128.3, 150.53)),
        Line("SOR_1M_P against MM_SPA, %", 27.6, less(173.0, 239.2)),
        Line("[20, 26, 27] can multiply twice in a row", "no", "yes",
             why="forty 14-bit moduli: V < 2^275.4, V^2 stays in range; true only of wide channels"),
    ], "Predicted: from the printed latencies.")  # fmt: skip


def _charts() -> list[Section]:
    out = []
    for printed in FIGURES:
        plan = design(NAMES[printed.paper]).fit(parse_modulus("secp256k1").value).schedule
        cells = [cell for row in printed.cells.values() for cell in row]
        unread = sum(first is None for _, first, _ in cells)
        lines = [
            Line("cycles", sum(printed.widths), plan.latency),
            Line("cells", len(cells), len(plan.steps)),
            Line("cells with another operation or in other cycles", 0, len(list(chart_differences(printed, plan)))),
        ]
        if unread:
            why = "the columns of kappa's rows are not aligned in print; their order is compared"
            lines.append(Line("cells compared by their order alone", unread, unread, why=why))
        title = f"{printed.figure}: schedule of {printed.paper}"
        out.append(Section(title, lines, chart=chart(plan, 110).splitlines(), schedule=plan))
    return out
