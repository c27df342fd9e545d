# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""All multipliers that have rows, for all moduli and devices."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from modmill.contract import UnsupportedError
from modmill.designs import DESIGNS
from modmill.designs import design as find_design
from modmill.numbers.moduli import parse_modulus
from modmill.report.families import family
from modmill.report.measured import Measured, by_device, core_numbers
from modmill.report.picture import Point, picture
from modmill.report.rows import Row, read
from modmill.studies.papers.bench import modulus_value

_NEAR = 1 << 24
"""Maximum c for which an unnamed modulus is written as 2^k ± c."""


@dataclass(frozen=True)
class Contender(Measured):
    """One core on one device. All numbers are traced; None without a row.

    ``serves``: all raced moduli that it supports, several if it loads them.
    """

    serves: tuple[int, ...]

    @cached_property
    def modulus(self) -> int:
        """The modulus that it was measured with."""
        return parse_modulus(self.about["modulus"]).value

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """Settings that differ from the design's defaults, without the DSP block, which depends on the target."""
        fitted = {s.name: s.default for s in self.design.settings} | self.design.fit(self.modulus).settings
        return {k: v for k, v in self.about["parameters"].items() if k != "dsp" and fitted.get(k, v) != v}

    @property
    def label(self) -> str:
        """Name of the design, with settings that are not default."""
        shown = ("loaded" if k == "loadable" and v else f"{k}={v}" for k, v in self.settings.items())
        return " ".join([self.design.name, *shown])

    @property
    def loaded(self) -> bool:
        """Whether the modulus is loaded at run time."""
        return bool(self.about["parameters"].get("loadable"))

    @property
    def command(self) -> str:
        """The command that builds it."""
        sets = "".join(f" --set {k}={v}" for k, v in self.settings.items())
        return f"modmill build {self.design.name} --modulus {shell(modulus_name(self.modulus))} --io native{sets}"

    @property
    def modulus_words(self) -> str:
        """The name of its modulus, and whether it is loaded."""
        return modulus_name(self.modulus) + (", loaded" if self.loaded else "")

    @cached_property
    def numbers(self) -> dict[str, Any]:
        """Its numbers as in `core_numbers`, and ``share``: of the limit of its slots, in percent."""
        found = core_numbers(self.check, self.synth, self.routes)
        return found | {"share": self._share(found["per_dsp"])}

    def _share(self, per_dsp: Any) -> Any:
        """Products a second and DSP block, in percent of what a block reaches that multiplies in every cycle at the cap
        of the device. None without a rate or a cap, and where a multiplication takes several blocks."""
        if not per_dsp or not (cap := self.routes[0].values.get("cap_mhz")):
            return None
        fitted = self.design.fit(self.modulus, **self.about["parameters"])
        return 100 * per_dsp * fitted.cost.multiplications / (cap * 1e6) if fitted.one_block else None


def contenders(rows: Iterable[Row], digest: Callable[[Row], str] | None = None) -> list[Contender]:
    """Return every native multiplier that has a synthesis row, once for each device, in the order of DESIGNS.

    ``digest`` as in `by_device`.
    """
    order = {d.name: k for k, d in enumerate(DESIGNS) if d.operands == 2 and family(d.page)}
    kept = [
        row
        for row in rows
        if row.about.get("design") in order and row.about.get("io") == "native" and "engine" not in row.about
    ]
    found = list(by_device(kept, _identity, digest))
    raced = sorted({value for _, synth, _ in found if (value := modulus_value(synth.about["modulus"]))})
    made = [Contender(check, synth, routes, _serves(synth, raced)) for check, synth, routes in found]
    return sorted(made, key=lambda c: (c.target != "ecp5-85k", c.target, c.modulus, order[c.design.name], c.label))


def _identity(row: Row) -> str:
    about = {k: row.about.get(k) for k in ("design", "parameters")} | {"p": modulus_value(row.about["modulus"])}
    return json.dumps(about, sort_keys=True)


def _serves(synth: Row, raced: Sequence[int]) -> tuple[int, ...]:
    p, parameters = parse_modulus(synth.about["modulus"]).value, synth.about["parameters"]
    if not parameters.get("loadable"):
        return (p,)
    core = find_design(synth.about["design"]).fit(p, **parameters)
    found = []
    for other in (other for other in raced if other.bit_length() == p.bit_length()):
        with suppress(UnsupportedError):
            core.at(other)
            found.append(other)
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
    title = f"Multipliers for {modulus} on {target}, placed and routed"
    return picture(points, title, "LUT + 100 × DSP", "products per second")


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
