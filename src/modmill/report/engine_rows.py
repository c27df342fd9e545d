# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Whole engines that have rows: RSA engines and coprocessors of curves, with what follows from their rows.

An operation is a power, or a point multiplied. A job brings as many as are in step: ``contexts``. With ``cores``
machines, an engine at full load finishes

    rate = MHz 10^6 contexts cores / period

operations a second, one every period / (contexts cores) cycles; one job alone takes latency / (1000 MHz) ms. Latency
and period are simulated, the clock is routed.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from statistics import median
from typing import Any

from modmill.contract import Digits
from modmill.design import Design
from modmill.designs import DESIGNS
from modmill.engines.ecc.point_engine import Shape
from modmill.engines.rsa.rsa import BITS
from modmill.flow.targets import target as find_target
from modmill.numbers.curves.named import find_curve
from modmill.numbers.primes import prev_prime
from modmill.report.families import Family, family
from modmill.report.rows import Row
from modmill.report.traces import traced

_DESIGNS = {d.name: d for d in DESIGNS if d.operands == 2 and family(d.page)}
_WORDS = {
    "multiply": "any point", "multiply-base": "fixed base", "multiply-two": "sum of two multiples", "ladder": "ladder",
}  # fmt: skip
_FIXED = ("modulus_bits", "curve", "operations", "method", "bits", "window", "shape", "contexts", "cores", "sums",
          "word", "io", "native", "modulus")  # fmt: skip
"""What tells engines around one design apart, beside its parameters."""

_RSA = {"method": "window", "window": 5, "word": 32, "io": "native"}
_ECC = {"sums": 3, "word": 32}
"""What the commands take by themselves."""


@dataclass(frozen=True)
class Work:
    """What an engine does: a power modulo a number of so many bits, or an operation on a curve."""

    kind: str
    subject: str
    operation: str
    bits: int

    @property
    def title(self) -> str:
        """In words."""
        if self.kind == "rsa":
            return f"{int(self.subject):,} bits, exponents of {self.bits:,} bits"
        return f"{self.subject}, {_WORDS.get(self.operation, self.operation)}, scalars of {self.bits} bits"


@dataclass(frozen=True)
class MeasuredEngine:
    """One engine on one device, as its rows have it. Numbers are traced; None where there is no row."""

    design: Design
    about: Mapping[str, Any]
    target: str
    digest: str
    check: Row | None
    synth: Row
    routes: Sequence[Row] = field(default_factory=tuple)

    @property
    def family(self) -> Family:
        """Of its multiplier."""
        found = family(self.design.page)
        assert found is not None
        return found

    @property
    def kind(self) -> str:
        """``rsa`` or ``ecc``."""
        return "ecc" if "curve" in self.about else "rsa"

    @property
    def work(self) -> Work:
        """What it does."""
        return work_of(self.about)

    @cached_property
    def choices(self) -> dict[str, Any]:
        """What is not as the commands take it by themselves, under the names that they have for it."""
        a = self.about
        if self.kind == "rsa":
            return {name: a[name] for name, usual in _RSA.items() if a.get(name, usual) != usual}
        shape = {name: a["shape"].get(name, x) for name, x in asdict(Shape()).items()}
        found = {name: shape[name] for name, usual in asdict(Shape()).items() if shape[name] != usual}
        _, io = _usual(self.design.name, self.kind, self.work.subject)
        usual_of = {**_ECC, "io": io}
        return found | {name: a[name] for name, usual in usual_of.items() if a.get(name, usual) != usual}

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The design's settings that it does not take by itself for this modulus. The target settles its blocks."""
        usual, _ = _usual(self.design.name, self.kind, self.work.subject)
        return {k: v for k, v in self.about["parameters"].items() if k != "dsp" and usual.get(k, v) != v}

    @property
    def label(self) -> str:
        """Its multiplier, with what is not usual, and how many operations are in step on how many machines."""
        shown = (f"{k}={v}" for k, v in (self.settings | self.choices).items())
        machines = f"{self.about['cores']} × " if self.about["cores"] > 1 else ""
        return f"{' '.join([self.design.name, *shown])}, {machines}{self.about['contexts']} in step"

    @property
    def fits(self) -> bool:
        """Whether the device has the blocks for it."""
        room = find_target(self.target).capacity
        return all(self.synth.values[name] <= getattr(room, name) for name in ("dsp", "lut", "ff", "bram"))

    @property
    def command(self) -> str:
        """The command that measures it: the one that made its rows, with every choice that is not usual."""
        a, w = self.about, self.about.get("modulus_bits", 0)
        if self.kind == "rsa":
            blind = a["bits"] - w
            words = ["rsa", "race", "--bits", *([w, "--no-crt"] if w in BITS else [2 * w])]
            words += ["--blind", blind] if blind else []
        else:
            words = ["ecc", "race", a["curve"], "--operation", *a["operations"]]
        words += ["--multiplier", self.design.name]
        words += [word for name, x in self.settings.items() for word in ("--set", f"{name}={x}")]
        words += [
            part for name, x in self.choices.items() for part in ([f"--{name}"] if x is True else [f"--{name}", x])
        ]
        words += ["--contexts", a["contexts"], *(["--cores", a["cores"]] if a["cores"] > 1 else [])]
        words += ["--target", self.target] if self.target != "ecp5-85k" else []
        words += ["--route", "--seeds", max(row.seed or 1 for row in self.routes)] if self.routes else []
        for option in sorted({option for row in self.routes for option in row.tool.split(", ")[1:]}):
            words += ["--floorplan"] if option == "floorplan" else ["--router", option]
        return shlex.join(["modmill", *map(str, words)])

    @cached_property
    def numbers(self) -> dict[str, Any]:
        """Cycles, resources, MHz (median of the seeds), and what follows: ms of a job, operations a second, and those
        for each block."""
        check, synth = self.check, self.synth
        found: dict[str, Any] = {
            name: traced(check.values[name], check) if check else None for name in ("latency", "period", "results")
        }
        found |= {name: traced(synth.values[name], synth) for name in ("dsp", "lut", "ff", "bram")}
        mhz = traced(median(row.values["mhz"] for row in self.routes), *self.routes) if self.routes else None
        operations = self.about["contexts"] * self.about["cores"]
        rate = mhz * 1e6 * operations / found["period"] if mhz and found["period"] else None
        return found | {
            "mhz": mhz,
            "cycles": found["period"] / operations if found["period"] else None,
            "ms": found["latency"] / mhz / 1000 if mhz and found["latency"] else None,
            "rate": rate,
            "crt": rate / 2 if rate and self.kind == "rsa" else None,
            "per_dsp": rate / found["dsp"] if rate and found["dsp"] else None,
            "per_lut": rate / found["lut"] if rate and found["lut"] else None,
        }


def measured_engines(rows: Iterable[Row], digest: Callable[[Row], str] | None = None) -> list[MeasuredEngine]:
    """Every engine that has a synthesis row, once for each device: by work, then in the order of DESIGNS.

    ``digest`` tells which RTL the engine of a row has today; it is asked where rows of several digests are about one
    engine. Without it the row that comes last counts.
    """
    kept = [row for row in rows if is_engine(row)]
    checks = {row.digest: row for row in kept if row.kind == "check"}
    routes: dict[tuple[str, str], list[Row]] = {}
    for row in kept:
        if row.kind == "route":
            routes.setdefault((row.digest, row.target), []).append(row)
    by_engine: dict[str, dict[str, Row]] = {}
    for row in kept:
        if row.kind == "synth":
            by_engine.setdefault(f"{_identity(row)} {row.target}", {})[row.digest] = row
    made = []
    for several in by_engine.values():
        *_, last = several.values()
        row = several.get(digest(last), last) if digest and len(several) > 1 else last
        made.append(MeasuredEngine(
            _DESIGNS[row.about["design"]], row.about, row.target, row.digest, checks.get(row.digest), row,
            sorted(routes.get((row.digest, row.target), ()), key=lambda r: r.seed or 0),
        ))  # fmt: skip
    order = {name: k for k, name in enumerate(_DESIGNS)}
    return sorted(made, key=lambda e: (
        e.kind, e.target != "ecp5-85k", e.target, _place(e.work), order[e.design.name], e.label,
    ))  # fmt: skip


def work_of(about: Mapping[str, Any]) -> Work:
    """What the engine that a row is about does."""
    if "curve" in about:
        return Work("ecc", about["curve"], ", ".join(about["operations"]), about["bits"])
    return Work("rsa", str(about["modulus_bits"]), "power", about["bits"])


def is_engine(row: Row) -> bool:
    """Whether a row is about an engine for powers modulo any number of a length, or about a coprocessor."""
    about = row.about
    named = {"contexts", "cores", "bits", "parameters"} <= about.keys() and about.get("design") in _DESIGNS
    power = {"modulus_bits", "method", "window"} <= about.keys() and about.get("modulus") == "loaded"
    return "engine" in about and named and (power or {"curve", "operations", "shape"} <= about.keys())


def _identity(row: Row) -> str:
    """What settles which engine it is. Settings that a row does not name had their defaults."""
    defaults = {s.name: s.default for s in _DESIGNS[row.about["design"]].settings}
    about = {name: row.about.get(name) for name in ("design", *_FIXED)}
    return json.dumps(about | {"parameters": {**defaults, **row.about["parameters"]}}, sort_keys=True, default=str)


def _place(work: Work) -> tuple[Any, ...]:
    """Powers by length, curves by name."""
    return (int(work.subject), "", work.bits) if work.kind == "rsa" else (0, work.subject, work.operation, work.bits)


@cache
def _usual(name: str, kind: str, subject: str) -> tuple[Mapping[str, Any], str]:
    """What the command takes by itself for a curve, or for a loaded modulus of so many bits: settings and form.

    The settings' defaults and the native form where the design does not take it so, or the curve is a user's own.
    """
    chosen = _DESIGNS[name]
    defaults = {s.name: s.default for s in chosen.settings}
    try:
        if kind == "rsa":
            loaded = {"loadable": True} if "loadable" in defaults else {}
            return chosen.fit(prev_prime(1 << int(subject)), **loaded).settings, "native"
        fitted = chosen.fit(find_curve(subject).p)
        return fitted.settings, "binary" if isinstance(fitted.representation, Digits) else "native"
    except ValueError:
        return defaults, "native"
