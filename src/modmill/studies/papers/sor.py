# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""M. A. Mehrabi: Improved Sum of Residues Modular Multiplication Algorithm. Cryptography 3(2):14, 2019. Every table.

Its charts are in `sor_charts`, its parameters in `sor_parameters`, its machines without a table in `sor_machines`.
Printed values are the paper's own. Predicted values follow from the schedule, from the solver, or from other printed
values. Measured values are rows of this repository: cycles from simulation, resources from Yosys, delays of the logic
without routing from Yosys' sta, routed clocks from nextpnr on ECP5. The paper's clocks are routed by Vivado 2017.4 and
have no measured value beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import gcd
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal

from modmill.designs import design
from modmill.designs.sor.improved import Sor
from modmill.interface import Multiplier
from modmill.numbers.moduli import parse_modulus
from modmill.numbers.primes import is_prime
from modmill.numbers.rns.residues import Base
from modmill.numbers.rns.sum_of_residues import SumOfResidues
from modmill.report.plots import Kind, Plot, Series
from modmill.report.reproduction import Line, Section, cells
from modmill.rtl import fold
from modmill.rtl.product import DSP18, product
from modmill.studies.papers import sor_machines, sor_parameters
from modmill.studies.papers.bench import Bench
from modmill.studies.papers.measured_core import ROUTED, MeasuredCore, over
from modmill.studies.papers.sor_charts import FIELD, NAMES, charts

TABLE_1 = tuple(f"2^66 - {text}" for text in (
    "1", "2^2 - 1", "2^3 - 1", "2^4 - 1", "2^5 - 1", "2^6 - 1", "2^8 - 1", "2^9 - 1",
))  # fmt: skip
BASE = Base(66, tuple(parse_modulus(text).value for text in TABLE_1))
"""Table 1. `Base` refuses moduli that share a factor."""

TABLE_2 = (
    # curve, printed modulus, our name for it, N, printed bound 2^(W-n)/N
    ("ED25519", "2^255 - 19", "2^255-19", 8, "2^186"),
    ("SECP160K1", "2^160 - 2^32 - 21389", "secp160k1", 5, "2^94/5"),
    ("SECP160R1", "2^160 - 2^32 - 1", "secp160r1", 5, "2^94/5"),
    ("SECP192K1", "2^192 - 2^32 - 4553", "secp192k1", 6, "2^125/3"),
    ("SECP192R1", "2^192 - 2^64 - 1", "P-192", 6, "2^125/3"),
    ("SECP224K1", "2^224 - 2^32 - 6803", "secp224k1", 7, "2^158/7"),
    ("SECP224R1", "2^224 - 2^96 + 1", "P-224", 7, "2^158/7"),
    ("SECP256K1", "2^256 - 2^32 - 977", "secp256k1", 8, "2^187"),
    ("SECP2384R1", "2^384 - 2^128 - 2^96 + 2^31 - 1", "P-384", 12, "2^316/3"),
    ("SECP521R1", "2^521 - 1", "P-521", 16, "2^451"),
)
INTENDED = {"SECP160R1": "2^160 - 2^31 - 1", "SECP2384R1": "2^384 - 2^128 - 2^96 + 2^32 - 1"}
"""The primes of Table 2 for which the paper prints other numbers."""
MISPRINTS = {
    "SECP160R1": "misprint: 2^160 - 2^31 - 1 is the prime; the printed number is composite",
    "SECP2384R1": "misprints: the name is P-384, the term +2^32; the printed number is composite",
    "SECP256K1": "from SEC 2, not a NIST curve",
}
EXCLUDED = (
    "P-256", "SM2", "brainpoolP256r1", "brainpoolP384r1", "brainpoolP512r1", "BN254-p", "BLS12-381-p", "BLS12-381-r",
)  # fmt: skip
"""Other primes, none of which fulfils (22)."""

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
    ("(Ours) SOR_1M_P", "sor-1m-p", "VIRTEX 7", 138.8, 173.0, 8.73, 140, 3237),
    ("(Ours) SOR_2M", "sor-2m", "VIRTEX 7", 128.5, 140.0, 10.11, 280, 3998),
    ("sQ-RNS [18]", "", "KINTEX US+", 139.5, 107.53, 4.247, 84, 4835),
    ("dQ-RNS [18]", "", "KINTEX US+", 142.7, 126.14, 4.076, 84, 4122),
    ("(Ours) SOR_1M_P", "sor-1m-p", "KINTEX US+", 187.13, 128.3, 8.89, 140, 4364),
    ("(Ours) SOR_2M", "sor-2m", "KINTEX US+", 187.13, 96.3, 10.26, 280, 5821),
)
OTHERS = {"sQ-RNS [18]": (15, 150.53), "dQ-RNS [18]": (18, 168.18)}
"""Cycles of the designs of another paper, and their latency in ns with the product, an estimate of this paper."""

TARGETS = {
    "ARTIX 7": "xc7a200t", "VIRTEX 7": "xc7v", "KINTEX 7": "xc7v", "VIRTEX US+": "xcku", "KINTEX US+": "xcku",
    "VIRTEX 6": "xc7v",
}  # fmt: skip
"""Yosys' target for the platform or its nearest relative (Kintex-7 is of the same family as Virtex-7)."""
PAPER_SETTINGS = sor_machines.SETTINGS
OTHER_BASE = 560
"""Bits of the forty 14-bit moduli of the compared designs, which the paper's throughput counts."""


class RnsUnit(Multiplier):
    """One RNS multiplier or adder of Table 3, between registers: eight channels of Table 1. Latency 2."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        super().__init__(528, 528, 528)

    def elaborate(self, _platform: object) -> Module:
        """Registers at the inputs and the outputs, and eight channels between them."""
        m = Module()
        a, b = Signal(528, reset_less=True), Signal(528, reset_less=True)
        valid = Signal()
        m.d.comb += self.i_ready.eq(1)
        m.d.sync += [a.eq(self.i_a), b.eq(self.i_b), valid.eq(self.i_valid), self.o_valid.eq(valid)]
        words = []
        for j, u in enumerate(BASE.u):
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
        _moduli(), _primes(), _constants(),
        *sor_parameters.sections([(curve, name) for curve, _, name, _, _ in TABLE_2]),
        _units(bench), *_implementations(bench), *sor_machines.sections(bench), _comparison(bench), _improvements(),
        *charts(),
    ]  # fmt: skip


def _sor(modulus: str) -> Sor:
    fitted = design("sor-1m-p").fit(parse_modulus(modulus).value)
    assert isinstance(fitted, Sor)
    return fitted


def _moduli() -> Section:
    found = [f"2^66 - {_of_ones(u)}" for u in _sor(FIELD).params.base.u]
    first = (1 << 66) - 2
    return Section("Table 1: eight 66-bit moduli", [
        *(Line(f"m_{i}", *pair) for i, pair in enumerate(zip(TABLE_1, found, strict=True), 1)),
        Line("pairwise coprime", "yes", "yes"),
        Line("dynamic range in bits", 528, BASE.M.bit_length()),
        Line("form of the first modulus (App. A)", "2^n - 2^t - 1, t = 0", "2^66 - 1",
             why=f"t = 0 would give an even number that shares {gcd(first, (1 << 66) - 33)} with t = 5"),
        Line("moduli for N = 12 and 16 (Table 2)", 8, 20, why="Table 1 has eight; the family has more than thirty"),
    ])  # fmt: skip


def _of_ones(u: int) -> str:
    """u = 2^t + 1 as the paper prints it after ``2^n - ``."""
    return "1" if u == 1 else f"2^{(u - 1).bit_length() - 1} - 1"


def _primes() -> Section:
    lines = []
    for curve, text, name, n_channels, bound in TABLE_2:
        rns = _sor(name)
        n, bits = rns.params.base.n, rns.p.bit_length()
        intended, why = INTENDED.get(curve, text), MISPRINTS.get(curve, "")
        lines += cells(
            curve,
            ("modulus p", text, intended, None, why),
            ("prime", "yes", "yes" if is_prime(parse_modulus(text).value) else "no", None, why),
            ("N", n_channels, n, None, "" if n_channels == n else "by the exact condition"),
            ("n", 66, rns.params.base.w),
            ("2^(W-n)/N", bound, _quotient(bits - 66, n_channels)),
            ("epsilon", _below(text), _below(intended)),
            ("(22) holds", "yes", _condition(rns.p, n_channels)),
        )
    for name in EXCLUDED:
        rns = _sor(name)
        k = rns.params
        why = f"served by the general kappa: T = {k.rns.T}, {k.words} word(s), z < {float(k.rns.beta):.3f} p"
        lines.append(Line(f"{name}: (22) holds", None, _condition(rns.p, k.base.n), why=why))
    text = "The general kappa divides by p, not by 2^W, and needs no such condition."
    return Section("Table 2: condition (22) for standard primes", lines, text)


def _condition(p: int, n: int) -> str:
    """Whether (22) holds with n channels: epsilon < 2^(W-66) / n."""
    bits = p.bit_length()
    return "yes" if (2**bits - p) * n < 2 ** (bits - 66) else "no"


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
        fitted = _sor(name)
        rns = SumOfResidues(fitted.p, BASE, 8, 16, T, offset=False, lazy=False)
        v_bits = rns.v_max.bit_length()
        more = "one too many in print"
        lines += cells(
            name,
            (f"bits of kappa's constants (T = {T})", const, rns.constant_bits),
            ("bits of kappa", kappa, rns.kappa_bits, None, "" if kappa == rns.kappa_bits else more),
            ("bits of the uncorrected V", v, v_bits, None, "" if v == v_bits else more),
            ("z below", "p", f"{float(rns.beta):.9f} p", None,
             "the dropped terms of (20), (22), (24) leave z up to beta p; operands may be that large"),
            ("memory in bits", memory, fitted.cost.memory_bits, None,
             "N rows of alpha, which lazy residues need; the listed rows 1 ... N-1 would give 528 fewer"),
        )  # fmt: skip
    return Section("Sections 2.2 to 4: constants, bounds, memory", lines)


def _why(values: Mapping[str, Any] | None) -> str:
    """The origin of a delay in the values of a synthesis row, or the reason why there is none."""
    if values is None:
        return "no row: run with --measure"
    return "Yosys has one table for the 7 series" if values["logic_delay_ns"] else "Yosys has no delays for the family"


def _units(bench: Bench) -> Section:
    lines = []
    for kind, device, logic, net, mhz in TABLE_3:
        values = bench.block(RnsUnit(kind), kind, TARGETS[device])
        periods, words = (2, "two periods") if kind == "RNS Multiplier" else (1, "one period")
        lines += cells(
            f"{kind}, {device}",
            ("logic delay ns", logic, None, values and values["logic_delay_ns"], _why(values)),
            ("net delay ns", net, None, None, "needs place and route by the vendor's tool"),
            ("clock MHz", mhz, round(1000 * periods / (logic + net), 1), None,
             f"predicted: the printed delays, {logic + net:.3f} ns, in {words}"),
        )  # fmt: skip
    text = (
        "Measured: Yosys sta, logic without routing, of the same unit between registers. The slower unit of a device "
        "limits its clock: by the printed delays the multiplier's two periods for all devices."
    )
    return Section("Table 3: RNS multiplier and adder", lines, text)


VENDOR = "printed: routed by Vivado 2017.4, for which there is no equal here"


def _implementations(bench: Bench) -> list[Section]:
    lines, bars = [], []
    for paper, platform, mhz, ns, klut, ff, dsp, mbps in TABLE_4:
        core = MeasuredCore(bench, NAMES[paper], FIELD, TARGETS[platform], **PAPER_SETTINGS)
        where = f"{paper}, {platform}"
        cycles = core.latency
        predicted = round(1000 * cycles / mhz, 1)
        lines += cells(
            where,
            ("clock MHz", mhz, None, None, VENDOR),
            ("cycles", None, cycles, core.seen, f"printed latency times printed clock: {ns * mhz / 1000:.2f}"),
            ("latency ns", ns, predicted, None,
             "" if abs(predicted - ns) < 1 else f"{cycles} cycles at {mhz} MHz are {predicted} ns"),
            ("KLUT", klut, None, over(core.resource("lut"), 1000)),
            ("FF", ff, None, core.resource("ff")),
            ("DSP", dsp, core.predicted_dsp, core.resource("dsp")),
            ("throughput Mbps", mbps, round(256e3 / ns), None,
             f"print counts {OTHER_BASE} bits a product, the range of the others' base; an operand has 256"),
        )  # fmt: skip
        bars.append(f"{where:<22} printed  {'█' * round(ns / 6):<56} {ns:g} ns")
    for paper, name in (*NAMES.items(), ("our ring of rowers", "sor-ring")):
        core = MeasuredCore(bench, name, FIELD, ROUTED)
        if core.mhz and core.rate:
            why = f"median of {len(core.clocks)} seed(s); {core.interval} cycles a product"
            lines += cells(
                f"{paper}, ECP5-85k",
                ("routed clock MHz", None, None, round(core.mhz, 1), why),
                ("products per second", None, None, round(core.rate)),
            )
    return [
        Section("Table 4: implementations", lines, "Measured for one modulus, secp256k1, native io, no conversions."),
        Section("Figure 6: latency and throughput", (), "The printed numbers are those of Table 4.", bars,
                _figure_6()),
    ]  # fmt: skip


def _figure_6() -> list[Plot]:
    """Latencies and throughputs of Table 4."""

    def series(what: str, kind: Kind, value: Callable[[Any], float]) -> list[Series]:
        of = {name: [row for row in TABLE_4 if row[0] == name] for name in NAMES}
        return [Series(f"{name}, {what}", kind, [(row[1], value(row)) for row in of[name]]) for name in NAMES]

    throughput = series("printed", "printed", lambda row: row[7])
    throughput += series("256 bits a product", "predicted", lambda row: round(256e3 / row[3]))
    return [
        Plot("Latency", "platform", "ns", series("printed", "printed", lambda row: row[3]), "bars"),
        Plot("Throughput", "platform", "Mbit/s", throughput, "bars"),
    ]


def _comparison(bench: Bench) -> Section:
    lines = []
    for label, name, platform, mhz, ns, klut, dsp, mbps in TABLE_5:
        where = f"{label}, {platform}"
        if not name:
            cycles, estimated = OTHERS[label]
            lines += cells(
                where,
                ("clock MHz", mhz, None, None, "the other paper's row, as printed"),
                ("latency ns", ns, round(1000 * cycles / mhz, 2), None, "15 and 18 cycles"),
                ("latency ns, estimated with the product", estimated, round(1000 * (cycles + 6) / mhz, 2), None,
                 "an estimate of the paper: two products of three cycles before the reduction"),
                ("KLUT", klut),
                ("DSP", dsp),
                ("throughput Mbps", mbps, None, None, "520 bits a product, an estimate of the paper"),
            )  # fmt: skip
            continue
        own = name in NAMES.values()
        core = MeasuredCore(bench, name, FIELD, TARGETS[platform], **(PAPER_SETTINGS if own else {}))
        one_period = label == "MM_PA_P [20]"
        lines += cells(
            where,
            ("clock MHz", mhz, None, None, VENDOR if own else "printed: by the other paper's tools"),
            ("latency ns", ns, round(1000 * core.latency / mhz, 1), None,
             "print gives one period, not the three of the pipeline" if one_period else f"{core.latency} cycles"),
            ("KLUT", klut, None, over(core.resource("lut"), 1000),
             "" if own else "folding instead of Barrett's reduction"),
            ("DSP", dsp, core.predicted_dsp, core.resource("dsp"),
             "" if own else "folding needs no multipliers, Barrett's method two a reduction"),
            ("throughput Mbps", mbps, round(256 * mhz / core.interval), None,
             "256 bits a product; print counts 256 for [27], 560 for SOR: not comparable"),
        )  # fmt: skip
    return Section("Table 5: comparison", lines, "MM_PA and MM_SPA are our own build of the published architectures.")


def _improvements() -> Section:
    return Section("Section 4.1: improvements in latency", [
        *(Line(f"{new} against {old}, %", printed, round(100 * (1 - ns / of) , 1)) for new, old, printed, ns, of in (
            ("SOR_2M", "sQ-RNS", 36.0, 96.3, 150.53), ("SOR_2M", "MM_SPA", 41.1, 140.0, 239.2),
            ("SOR_1M_P", "sQ-RNS", 14.9, 128.3, 150.53), ("SOR_1M_P", "MM_SPA", 27.6, 173.0, 239.2),
        )),
        Line("[20, 26, 27] can multiply twice in a row", "no", "yes",
             why="forty 14-bit moduli: V < 2^275.4, V^2 stays in range; true only of wide channels"),
    ], "Predicted: from the printed latencies.")  # fmt: skip
