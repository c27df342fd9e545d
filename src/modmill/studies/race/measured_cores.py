# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""All multipliers that have rows, for all moduli and devices."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

from modmill.contract import UnsupportedError
from modmill.design import Design
from modmill.designs import DESIGNS
from modmill.numbers.moduli import parse_modulus
from modmill.report.families import Family, family
from modmill.report.picture import Point, picture
from modmill.report.rows import Row, read
from modmill.report.traces import traced
from modmill.studies.papers.bench import modulus_value, values

_NEAR = 1 << 24
"""Maximum c for which an unnamed modulus is written as 2^k ± c."""


@dataclass(frozen=True)
class Contender:
    """One core on one device, from its rows. All numbers are traced; None without a row.

    ``modulus``: the one that it was measured with. ``serves``: all raced moduli that it supports, several if it loads
    them. ``settings``: those that differ from the defaults.
    """

    design: Design
    family: Family
    modulus: int
    serves: tuple[int, ...]
    settings: Mapping[str, Any]
    target: str
    digest: str
    check: Row | None
    synth: Row
    routes: Sequence[Row] = field(default_factory=tuple)

    @property
    def label(self) -> str:
        """Name of the design, with settings that are not default."""
        shown = ("loaded" if k == "loadable" and v else f"{k}={v}" for k, v in self.settings.items())
        return " ".join([self.design.name, *shown])

    @property
    def loaded(self) -> bool:
        """Whether the modulus is loaded at run time."""
        return bool(self.synth.about["parameters"].get("loadable"))

    @property
    def command(self) -> str:
        """The command that builds it."""
        sets = "".join(f" --set {k}={v}" for k, v in self.settings.items())
        return f"modmill build {self.design.name} --modulus {shell(modulus_name(self.modulus))} --io native{sets}"

    @cached_property
    def numbers(self) -> dict[str, Any]:
        """Cycles, resources, MHz (median of the seeds); derived: us, products a second, also per DSP and per LUT."""
        found: dict[str, Any] = dict.fromkeys(("latency", "interval"))
        if self.check:
            found |= {name: values(self.check)[name] for name in found}
        found |= {name: values(self.synth)[name] for name in ("dsp", "lut", "ff", "bram")}
        mhz = traced(median(row.values["mhz"] for row in self.routes), *self.routes) if self.routes else None
        rate = mhz * 1e6 / found["interval"] if mhz and found["interval"] else None
        found |= {
            "mhz": mhz,
            "us": found["latency"] / mhz if mhz and found["latency"] else None,
            "rate": rate,
            "per_dsp": rate / found["dsp"] if rate and found["dsp"] else None,
            "per_lut": rate / found["lut"] if rate and found["lut"] else None,
        }
        return found


def contenders(rows: Iterable[Row], digest: Callable[[Row], str] | None = None) -> list[Contender]:
    """Return every native multiplier that has a synthesis row, once for each device, in the order of DESIGNS.

    ``digest``: row -> digest of the RTL that its core has today; called if rows of several digests describe one core.
    Without it the last row counts.
    """
    designs = {d.name: d for d in DESIGNS if d.operands == 2 and family(d.page)}
    kept = [
        row
        for row in rows
        if row.about.get("design") in designs and row.about.get("io") == "native" and "engine" not in row.about
    ]
    checks = {row.digest: row for row in kept if row.kind == "check"}
    routes: dict[tuple[str, str], list[Row]] = {}
    for row in kept:
        if row.kind == "route":
            routes.setdefault((row.digest, row.target), []).append(row)
    synths = _latest([row for row in kept if row.kind == "synth"], digest)
    raced = sorted({value for row in synths if (value := modulus_value(row.about["modulus"]))})
    made = []
    for row in synths:
        design = designs[row.about["design"]]
        value, parameters = parse_modulus(row.about["modulus"]).value, row.about["parameters"]
        of_modules = family(design.page)
        assert of_modules is not None
        made.append(Contender(
            design, of_modules, value, _serves(design, value, parameters, raced), _unusual(design, value, parameters),
            row.target, row.digest, checks.get(row.digest), row,
            sorted(routes.get((row.digest, row.target), ()), key=lambda r: r.seed or 0),
        ))  # fmt: skip
    order = {name: k for k, name in enumerate(designs)}
    return sorted(made, key=lambda c: (c.target != "ecp5-85k", c.target, c.modulus, order[c.design.name], c.label))


def _latest(rows: Sequence[Row], digest: Callable[[Row], str] | None) -> list[Row]:
    """One row for each core and device."""
    by_core: dict[str, dict[str, Row]] = {}
    for row in rows:
        about = {k: row.about.get(k) for k in ("design", "parameters")} | {"p": modulus_value(row.about["modulus"])}
        by_core.setdefault(f"{json.dumps(about, sort_keys=True)} {row.target}", {})[row.digest] = row
    found = []
    for several in by_core.values():
        *_, last = several.values()
        found.append(several.get(digest(last), last) if digest and len(several) > 1 else last)
    return found


def _unusual(design: Design, p: int, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that differ from the design's defaults, without the DSP block, which depends on the target."""
    fitted = design.fit(p).settings
    return {k: v for k, v in parameters.items() if k != "dsp" and fitted.get(k, v) != v}


def _serves(design: Design, p: int, parameters: Mapping[str, Any], raced: Sequence[int]) -> tuple[int, ...]:
    if not parameters.get("loadable"):
        return (p,)
    core = design.fit(p, **parameters)
    found = []
    for other in raced:
        if other.bit_length() == p.bit_length():
            try:
                core.at(other)
                found.append(other)
            except UnsupportedError:
                continue
    return tuple(found)


def race_picture(folder: Path, modulus: str = "secp256k1", target: str = "ecp5-85k") -> str:
    """Picture of the README from the rows of a folder: cores of all families, with fixed and with loaded moduli."""
    p = parse_modulus(modulus).value
    found = contenders(row for path in sorted(folder.glob("*.jsonl")) for row in read(path))
    points = [
        Point(c.label, c.family, float(c.numbers["lut"] + 100 * c.numbers["dsp"]), float(c.numbers["rate"]))
        for c in found
        if p in c.serves and c.target == target and c.numbers["rate"]
    ]
    return picture(
        points, f"Multipliers for {modulus} on {target}, placed and routed", "LUT + 100 × DSP", "products per second"
    )


def modulus_name(p: int) -> str:
    """Name of a modulus, or ``2^k - c`` near a power of two, or hexadecimal."""
    name = parse_modulus(str(p)).name
    if name:
        return name
    for k in (p.bit_length(), p.bit_length() - 1):
        off = p - (1 << k)
        if abs(off) < _NEAR:
            return f"2^{k} {'-' if off < 0 else '+'} {abs(off)}"
    return hex(p)


def shell(name: str) -> str:
    """Name of a modulus without spaces."""
    return name.replace(" ", "")
