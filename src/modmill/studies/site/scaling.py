# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Cost against width: predictions of the designs' formulas and schedules for 64 to 4096 bits, beside measured numbers.

Predicted: ``DesignInstance.cost`` and ``DesignInstance.schedule`` for one modulus of each width without a special form,
floor(2^k / sqrt 2) made odd. Designs for special primes get 2^k - 189 instead.
Measured: routed cores on ecp5-85k, the best of each kind (residues, positions) at each width.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any, cast

from modmill.contract import UnsupportedError
from modmill.design import Design
from modmill.designs import DESIGNS
from modmill.flow.targets import target
from modmill.report.families import Family, family, family_of
from modmill.report.plots import Plot, Series
from modmill.studies.race.measured_cores import Contender

WIDTHS = (64, 128, 256, 512, 1024, 2048, 4096)
WIDER: tuple[dict[str, int], ...] = ({}, {"w": 20})
"""Settings that are tried in turn if a design has such a parameter, because narrow channels have too few moduli."""
SLOW: tuple[tuple[str, dict[str, int], int], ...] = (
    ("kbe", {}, 512), ("kbe", {}, 2048), ("kbe", {"w": 20}, 4096), ("hbe", {"w": 20}, 2048), ("hbe", {"w": 20}, 4096),
)  # fmt: skip
"""Design, settings and width of schedules that take long to place; their placements are in the package."""
NEAREST = "ecp5-85k"
CLOCK = cast(float, target(NEAREST).dsp_cap_mhz) * 1e6
"""Fastest clock of its DSP blocks in hertz, from memory of the data sheet."""
SHARES = 200
"""Least width in bits of the cores whose share of the limit is shown."""
_X = "bits of the modulus"


@dataclass(frozen=True)
class Prediction:
    """One design at one width, with the settings that are not default."""

    design: Design
    bits: int
    settings: dict[str, int]
    dsp: int
    memory_bits: int
    latency: int
    interval: int

    @property
    def family(self) -> Family:
        """The family of its design."""
        return family_of(self.design.page)

    @property
    def block_cycles(self) -> int:
        """DSP blocks x interval: the cost of a product at any clock."""
        return self.dsp * self.interval


def modulus(design: Design, bits: int) -> int:
    """The modulus of ``bits`` bits for a design's predictions."""
    kind = family(design.page)
    return (1 << bits) - 189 if kind and kind.special else isqrt(1 << (2 * bits - 1)) | 1


def predictions(designs: Iterable[Design] = DESIGNS) -> tuple[list[Prediction], list[str]]:
    """All designs at all widths that they serve, and the reasons for the other widths."""
    found: list[Prediction] = []
    refused: dict[str, list[str]] = defaultdict(list)
    for design in designs:
        if design.operands != 2 or not family(design.page):
            continue
        names = {s.name for s in design.settings}
        for bits in WIDTHS:
            why = ""
            for settings in (settings for settings in WIDER if settings.keys() <= names):
                try:
                    fitted = design.fit(modulus(design, bits), **settings)
                    plan, cost = fitted.schedule, fitted.cost
                except UnsupportedError as refusal:
                    why = why or str(refusal)  # the reason for the narrowest channels, which are tried first
                    continue
                found.append(
                    Prediction(design, bits, settings, cost.dsp, cost.memory_bits, plan.latency, plan.interval)
                )
                break
            else:
                refused[why if design.name in why else f"{design.name}: {why}"].append(f"{bits:,}")
    return found, [f"{why} ({', '.join(bits)} bits)" if len(bits) > 1 else why for why, bits in refused.items()]


def curves(design: Design, found: Sequence[Prediction]) -> list[Plot]:
    """The cost of one design against width."""
    own = [p for p in found if p.design == design]
    if len(own) < 2:
        return []

    def series(name: str, which: str) -> Series:
        return Series(name, "predicted", [(p.bits, getattr(p, which)) for p in own], own[0].family.key)

    interval = Series("interval", "predicted", [(p.bits, p.interval) for p in own])
    plots = [Plot("Cycles", _X, "cycles", [series("latency", "latency"), interval], log="xy")]
    for title, y, which in (
        ("DSP blocks", "DSP blocks", "dsp"),
        ("Constants", "bits of constants", "memory_bits"),
    ):
        if any(getattr(p, which) for p in own):
            plots.append(Plot(title, _X, y, [series(y, which)], log="xy"))
    return plots


def plots(found: Sequence[Prediction], measured: Sequence[Contender]) -> list[Plot]:
    """All designs on one pair of axes, for each cost."""
    routed = [c for c in measured if c.target == NEAREST and c.modulus.bit_length() >= WIDTHS[0] // 2]
    made = []
    for title, y, of, point in (
        ("Block-cycles a product", "DSP blocks × interval", lambda p: p.block_cycles, _block_cycles),
        ("Cycles from product to product", "interval, cycles", lambda p: p.interval, lambda c: c.numbers["interval"]),
        ("DSP blocks", "DSP blocks", lambda p: p.dsp, lambda c: c.numbers["dsp"]),
    ):
        by_design: dict[str, list[Prediction]] = defaultdict(list)
        for p in found:
            if of(p):
                by_design[p.design.name].append(p)
        series = [
            Series(name, "predicted", [(p.bits, of(p)) for p in some], some[0].family.key)
            for name, some in by_design.items()
        ]
        made.append(Plot(title, _X, y, [*series, *_measured(routed, point)], log="xy"))
    limits = defaultdict[str, list[Prediction]](list)
    for p in found:
        if p.dsp:
            limits[p.design.name].append(p)
    lines = [
        Series(
            f"{name}, limit", "predicted", [(p.bits, round(limit(p.block_cycles))) for p in some], some[0].family.key
        )
        for name, some in limits.items()
    ]
    y = "Products a second for each DSP block"
    made.append(Plot(f"{y}, and the limits", _X, y, [*lines, *_measured(routed, _per_dsp)], log="xy"))
    y = "Products a second for each LUT"
    points = _measured(routed, lambda c: c.numbers["per_lut"])
    made.append(Plot(f"{y}, measured", _X, y, points, style="points", log="xy"))
    return made


def limit(block_cycles: int) -> float:
    """Most products a second for each DSP block of a design that takes this number of block-cycles a product."""
    return CLOCK / block_cycles


def shares(measured: Sequence[Contender]) -> list[dict[str, Any]]:
    """The core with the most products a second for each DSP block of each design and width, with its limit and the
    share of it, the best core first."""
    best: dict[tuple[str, int], Contender] = {}
    for c in measured:
        if c.target == NEAREST and c.modulus.bit_length() >= SHARES and _per_dsp(c):
            key = c.design.name, c.modulus.bit_length()
            best[key] = max(best.get(key, c), c, key=_per_dsp)
    lines = [
        {
            "core": c.label, "modulus": c.modulus_words, "bits": c.modulus.bit_length(), "slots": _block_cycles(c),
            "limit": limit(_block_cycles(c)), "measured": _per_dsp(c), "share": c.numbers["mhz"] * 1e6 / CLOCK,
        } for c in best.values()
    ]  # fmt: skip
    return sorted(lines, key=lambda line: (line["bits"], -line["measured"]))


def _per_dsp(c: Contender) -> Any:
    return c.numbers["per_dsp"]


def _block_cycles(c: Contender) -> Any:
    n = c.numbers
    return n["dsp"] * n["interval"] if n["dsp"] and n["interval"] else None


def _measured(cores: Sequence[Contender], point: Any) -> list[Series]:
    """Points of each design, at the widths of its measured moduli."""
    by_name: dict[str, dict[int, Any]] = defaultdict(dict)
    for c in cores:
        if value := point(c):
            by_name[c.label][c.modulus.bit_length()] = value
    keys = {c.label: c.family.key for c in cores}
    return [
        Series(f"{name}, measured", "measured", sorted(points.items()), keys[name]) for name, points in by_name.items()
    ]


def duel(measured: Sequence[Contender]) -> list[dict[str, Any]]:
    """Residues against positions at each width with routed cores of both kinds: for each DSP block and each LUT; for
    any modulus, and also with the designs for special primes among the positions."""
    routed = [c for c in measured if c.target == NEAREST and c.routes]
    lines = []
    for bits in sorted({c.modulus.bit_length() for c in routed}):
        here = [c for c in routed if c.modulus.bit_length() == bits]
        for primes, allowed in (("any", False), ("2^k - c", True)):
            if allowed and not any(c.family.special for c in here):
                continue
            for unit, name in (("DSP block", "per_dsp"), ("LUT", "per_lut")):
                residues = _best([c for c in here if c.family.residues], name)
                others = [c for c in here if not c.family.residues]
                positions = _best([c for c in others if allowed or not c.family.special], name)
                if residues and positions:
                    a, b = residues.numbers[name], positions.numbers[name]
                    lines.append({
                        "bits": bits, "primes": primes, "unit": unit, "residues": a, "residues_core": residues.label,
                        "positions": b, "positions_core": positions.label, "ratio": a / b,
                    })  # fmt: skip
    return lines


def _best(cores: Sequence[Contender], name: str) -> Contender | None:
    return max((c for c in cores if c.numbers[name]), key=lambda c: float(c.numbers[name]), default=None)


def predicted_duel(found: Sequence[Prediction]) -> list[dict[str, Any]]:
    """The predicted comparison, in block-cycles, at each width that both kinds serve."""
    lines = []
    for bits in WIDTHS:
        here = [p for p in found if p.bits == bits and p.dsp]

        def least(wanted: Any, here: Sequence[Prediction] = here) -> Prediction | None:
            return min((p for p in here if wanted(p.family)), key=lambda p: p.block_cycles, default=None)

        residues, special = least(lambda f: f.residues), least(lambda f: f.special)
        positions = least(lambda f: not f.residues and not f.special)
        if residues and positions:
            lines.append({
                "bits": bits, "residues": residues.block_cycles, "residues_design": _named(residues),
                "positions": positions.block_cycles, "positions_design": _named(positions),
                "special": special.block_cycles if special else None,
                "ratio": residues.block_cycles / positions.block_cycles,
            })  # fmt: skip
    return lines


def _named(p: Prediction) -> str:
    return " ".join([p.design.name, *(f"{k}={v}" for k, v in p.settings.items())])


def answers(lines: Sequence[dict[str, Any]]) -> list[str]:
    """The duel in sentences, with no numbers but those of the table."""
    out = []
    for primes, start in (
        ("any", "For any modulus"),
        ("2^k - c", "For primes 2^k - c, where positions may use the form"),
    ):
        parts = []
        for unit in ("DSP block", "LUT"):
            some = [line for line in lines if line["primes"] == primes and line["unit"] == unit]
            said = [
                f"{words} at {_and(widths)} bits"
                for words, more in (("residues give more products a second", True), ("positions do", False))
                if (widths := [str(line["bits"]) for line in some if (line["ratio"] > 1) == more])
            ]
            if said:
                parts.append(f"for each {unit}, {', '.join(said)}")
        if parts:
            out.append(f"{start}: {'; '.join(parts)}.")
    if lines:
        shared = _and([str(bits) for bits in sorted({line["bits"] for line in lines})])
        out.append(f"Both kinds have routed cores at {shared} bits; other widths are predicted only.")
    return out


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
