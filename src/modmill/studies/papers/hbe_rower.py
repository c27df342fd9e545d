# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The cost model of the HBE paper against measurement, and the model that holds for pipelined rowers.

The paper adds the times of its operations, CMM and CMR = CMM / r. Our rowers are pipelined: the interval between
products is that of the busiest unit (numbers.rns.rns_costs.Rower). Both predict the ratio of HBE to KBE; measured are
the intervals of pairs of cores that differ in the extension only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from modmill.designs import design
from modmill.designs.cox_rower.kbe import MODULI, Params
from modmill.numbers.moduli import parse_modulus
from modmill.numbers.rns import rns_costs
from modmill.numbers.rns.choice_of_moduli import signed_digits_of
from modmill.numbers.rns.rns_costs import BE_MM, Algorithm, Rower
from modmill.report.plots import Series
from modmill.report.reproduction import Line, Section, cells
from modmill.studies.papers.bench import Bench
from modmill.studies.papers.measured_core import NO_ROW, ROUTED, over, rounded

MACHINES: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("secp256k1", {}), ("secp256k1", {"w": 24}), ("secp256k1", {"w": 28}), ("secp256k1", {"w": 34}),
    ("2^512-569", {}), ("secp256k1", {"rowers": 8}), ("secp256k1", {"rowers": 4}),
)  # fmt: skip
"""Montgomery multiplications with KBE and with HBE: the modulus and the settings of both."""
EXTENSIONS = tuple((modulus, w) for modulus in ("secp256k1", "P-384") for w in (17, 20, 24, 28))
"""Base extensions of two rowers: the modulus, and the width of a channel."""


@dataclass(frozen=True)
class Pair:
    """Two cores that differ in the extension. ``n``: moduli in a base with KBE and with HBE; ``share``: channels of
    each base for a rower; ``measured``: intervals with KBE and HBE in cycles; ``algorithm``: None for an extension
    alone."""

    what: str
    n: tuple[int, int]
    share: int
    measured: tuple[int | None, int | None]
    algorithm: Algorithm | None = BE_MM

    @property
    def intervals(self) -> tuple[int, int]:
        """Predicted for pipelined rowers: for KBE and HBE."""
        if self.algorithm is None:  # two rowers, and a cycle for h
            kbe, hbe = (rns_costs.pipelined_extension(n, c) for n, c in zip(self.n, (1, 2), strict=True))
            return int(kbe / 2) + 1, int(hbe / 2) + 1
        return Rower(self.n[0], 1, self.share).interval, Rower(self.n[1], 2, self.share).interval

    @property
    def ratio(self) -> float | None:
        """Measured interval with HBE / interval with KBE."""
        return over(self.measured[1], self.measured[0])

    def printed_ratio(self, r: Fraction) -> Fraction:
        """The ratio by the paper's formula."""
        n = self.n[1]
        return rns_costs.extension_ratio(n, r) if self.algorithm is None else rns_costs.product_ratio(BE_MM, n, r)

    def error(self, ratio: Fraction) -> float | None:
        """Error of a predicted ratio against the measured one in percent."""
        return None if self.ratio is None else 100 * (float(ratio) / self.ratio - 1)


def _params(name: str, modulus: str, **settings: Any) -> Params:
    fitted: Any = design(name).fit(parse_modulus(modulus).value, **settings)
    found: Params = fitted.params
    return found


def pairs(bench: Bench) -> Iterator[Pair]:
    """All pairs of cores, with their check rows."""
    for modulus, settings in MACHINES:
        found = [(bench.checked(name, modulus, **settings) or {}).get("interval") for name in ("kbe", "hbe")]
        fitted = [_params(name, modulus, **settings) for name in ("kbe", "hbe")]
        shown = "".join(f", {key} = {value}" for key, value in settings.items())
        kbe, hbe = (q.pair.n for q in fitted)
        share = fitted[0].channels_per_rower
        yield Pair(f"multiplication, {modulus}{shown or ', w = 17'}", (kbe, hbe), share, (found[0], found[1]))
    for modulus, w in EXTENSIONS:
        names = ("kbe-extension", "hbe-extension")
        found = [(bench.checked(name, modulus, w=w) or {}).get("interval") for name in names]
        kbe, hbe = (design(name).fit(parse_modulus(modulus).value, w=w).settings["n"] for name in names)
        yield Pair(f"extension, {modulus}, w = {w}", (kbe, hbe), 1, (found[0], found[1]), None)


def fitted_share(found: Sequence[Pair]) -> float | None:
    """The 1 / r with which the paper's formula, linear in 1 / r, comes nearest to the measured ratios (least squares);
    None without rows."""
    above, below = 0.0, 0.0
    for pair in found:
        if pair.ratio is not None:
            at_1, at_2 = (float(pair.printed_ratio(Fraction(r))) for r in (1, 2))
            slope = 2 * (at_1 - at_2)  # of 1 / r
            above, below = above + slope * (pair.ratio - (at_1 - slope)), below + slope * slope
    return above / below if below else None


def model(found: Sequence[Pair], by_latency: Sequence[float]) -> Section:
    """Prediction against measurement. ``by_latency``: our measured CMM / CMR by latency, for several widths."""
    lines: list[Line] = []
    throughput = Fraction(1)
    for pair in found:
        kbe, hbe = pair.intervals
        lines += cells(
            pair.what,
            ("interval with KBE", None, kbe, pair.measured[0], f"n = {pair.n[0]}"),
            ("interval with HBE", None, hbe, pair.measured[1], f"n = {pair.n[1]}"),
            ("HBE / KBE", None, round(hbe / kbe, 3), rounded(pair.ratio, 3)),
            ("HBE / KBE by the paper's formula, r = 1", None, round(float(pair.printed_ratio(throughput)), 3),
             rounded(pair.ratio, 3), "r: both operations take operands in every cycle"),
        )  # fmt: skip
    ratios = {"by throughput": throughput}
    if by_latency:
        ratios["by latency, the largest"] = Fraction(max(by_latency)).limit_denominator(100)
    for what, some in (
        ("multiplications", [p for p in found if p.algorithm]), ("extensions", [p for p in found if not p.algorithm]),
    ):  # fmt: skip
        for how, r in ratios.items():
            lines.append(Line(f"{what}: largest error of the paper's formula, r {how}, %", None, None,
                              _largest([p.error(p.printed_ratio(r)) for p in some]),
                              f"r = {float(r):.3g}"))  # fmt: skip
        lines.append(Line(f"{what}: largest error of the busiest unit, %", None, None,
                          _largest([p.error(Fraction(*reversed(p.intervals))) for p in some])))  # fmt: skip
    lines.append(Line("1 / r of the paper's formula, fitted to all", "1/4 to 1/2", 0, rounded(fitted_share(found), 2),
                      "predicted: reductions run beside multiplications and cost no time"))  # fmt: skip
    text = (
        "The paper adds the times of CMM and CMR. In pipelined rowers both run at once, and the interval is that of "
        "the busiest unit: multiplications, reductions or accesses to the memory; for a rower of m channels the "
        "largest of m (2 n / c + 2 c + 3), m (2 n / c + 5) and 18 m + 1. Predicted by that model, but where the "
        "paper's formula is named. Measured: intervals in simulation."
    )
    return Section("Section IV-C: the cost model, and the one that holds for pipelined rowers", lines, text)


FORMS = (34, 24, 17)
"""Widths of a channel for which the forms of moduli are compared."""


def forms(bench: Bench) -> Section:
    """The moduli that the designs can take: what their reductions cost."""
    lines: list[Line] = []
    for w, name in product(FORMS, ("kbe", "hbe")):
        seen = []
        for kind in MODULI:
            pair = _params(name, "secp256k1", w=w, moduli=kind).pair
            u = sorted((*pair.a.u, *pair.b.u))
            if u in seen:
                continue
            seen.append(u)
            run = bench.checked(name, "secp256k1", w=w, moduli=kind) or {}
            synth = bench.core(name, "secp256k1", ROUTED, w=w, moduli=kind) or {}
            lines += cells(
                f"{name}, w = {w}, {kind}",
                ("largest u", None, u[-1]),
                ("signed digits in all u", None, signed_digits_of(u)),
                ("interval", None, None, run.get("interval")),
                ("latency", None, None, run.get("latency")),
                ("LUTs", None, None, synth.get("lut"), "" if synth else NO_ROW),
            )
    text = (
        "The paper's future work; it names no measure. near: the smallest u of three signed digits; light: the fewest "
        "signed digits; short: the smallest u; only those that differ. Digits are additions of a fold, the largest u "
        "sets the number of folds. For secp256k1 on ECP5-85k by Yosys; the front between both: modmill bases "
        "--objective reduction."
    )
    return Section("Section VII: well-suited forms of moduli", lines, text)


def _largest(errors: Sequence[float | None]) -> float | None:
    return rounded(max((abs(e) for e in errors if e is not None), default=None))


def points(found: Sequence[Pair], algorithm: Algorithm | None) -> Series | None:
    """Measured ratios over n as a series for the paper's figures; None without rows."""
    known = {p.n[1]: p.ratio for p in found if p.algorithm == algorithm and p.ratio is not None and p.share == 1}
    name = "our cores, intervals"
    return Series(name, "measured", [(n, round(ratio, 4)) for n, ratio in sorted(known.items())]) if known else None
