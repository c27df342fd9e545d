# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Whole engines that have rows: RSA engines and coprocessors of curves, with the numbers derived from their rows.

An operation is a power or a point multiplication. A job has ``threads`` operations, which run interleaved. With
``cores`` machines, an engine at full load finishes

    rate = MHz 10^6 threads cores / period

operations a second, one every period / (threads cores) cycles; one job alone takes latency / (1000 MHz) ms. Latency
and period come from simulation, the clock from place and route.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from typing import Any

from modmill.contract import Digits
from modmill.designs import DESIGNS
from modmill.engines.ecc.blinding import scalar_bits
from modmill.engines.ecc.point_engine import Shape
from modmill.engines.rsa.exponentiation import PUBLIC
from modmill.engines.rsa.rsa import BITS
from modmill.flow.targets import target as find_target
from modmill.numbers.curves.named import PAIRING_CURVES, find_curve
from modmill.numbers.primes import prev_prime
from modmill.report.clocks import tool_options
from modmill.report.families import family
from modmill.report.measured import Measured, by_device, engine_numbers
from modmill.report.rows import Row
from modmill.report.traces import traced

_DESIGNS = {d.name: d for d in DESIGNS if d.operands == 2 and family(d.page)}
_WORDS = {
    "multiply": "any point", "multiply-base": "fixed base", "multiply-two": "sum of two multiples", "ladder": "ladder",
}  # fmt: skip
_FIXED = ("modulus_bits", "curve", "operations", "method", "bits", "window", "shape", "threads", "cores", "sums",
          "word", "io", "native", "modulus", "circuit", "lockstep", "check_result", "parity", "fixed_addresses",
          "blind_messages", "public_exponent", "random_blind", "random_entropy")  # fmt: skip
"""Keys that distinguish engines around one design, in addition to its parameters."""

OF_PUBLIC = "public"
"""Name of an RSA engine's second task: the exponent PUBLIC."""

_RSA = {
    "method": "window", "window": 5, "word": 32, "io": "native", "lockstep": False, "check_result": False,
    "parity": False, "fixed_addresses": False, "blind_messages": False, "public_exponent": PUBLIC, "random_blind": 0,
    "random_entropy": 32,
}  # fmt: skip
_ECC = {
    "sums": 3, "word": 32, "lockstep": False, "check_result": False, "parity": False, "fixed_addresses": False,
    "random_blind": 0, "random_entropy": 32,
}  # fmt: skip
"""Defaults of the commands."""
_OPTIONS = {"random_blind": "--random port --blind"}
"""Options whose names differ from those in rows."""


@dataclass(frozen=True)
class Work:
    """The task of an engine: a power modulo a number of ``subject`` bits, or an operation on a curve. ``bits``: length
    of its exponents or scalars."""

    kind: str
    subject: str
    operation: str
    bits: int

    @property
    def title(self) -> str:
        """The task in words."""
        if self.kind == "rsa":
            if self.operation == OF_PUBLIC:
                return f"{int(self.subject):,} bits, the exponent {PUBLIC}"
            return f"{int(self.subject):,} bits, exponents of {self.bits:,} bits"
        return f"{self.subject}, {_WORDS.get(self.operation, self.operation)}, scalars of {self.bits} bits"


@dataclass(frozen=True)
class MeasuredEngine(Measured):
    """One engine on one device, at one of its tasks. ``public``: its task is the exponent 65537. Numbers are traced;
    None without a row."""

    public: bool = False

    @property
    def kind(self) -> str:
        """``rsa`` or ``ecc``."""
        return "ecc" if "curve" in self.about else "rsa"

    @property
    def work(self) -> Work:
        """Its task."""
        work = work_of(self.about)
        return replace(work, operation=OF_PUBLIC, bits=PUBLIC.bit_length()) if self.public else work

    @cached_property
    def choices(self) -> dict[str, Any]:
        """Options that differ from the commands' defaults, by the commands' names."""
        a = self.about
        if a.get("circuit"):
            own = {name: a[name] for name in ("word", "lockstep") if a.get(name, _RSA[name]) != _RSA[name]}
            return {"circuit": True, **own}
        if self.kind == "rsa":
            return {name: a[name] for name, usual in _RSA.items() if a.get(name, usual) != usual}
        shape = {name: a["shape"].get(name, x) for name, x in asdict(Shape()).items()}
        found = {name: shape[name] for name, usual in asdict(Shape()).items() if shape[name] != usual}
        _, io = _usual(self.design.name, self.kind, self.work.subject)
        usual_of = {**_ECC, "io": io}
        return found | {name: a[name] for name, usual in usual_of.items() if a.get(name, usual) != usual}

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Settings that differ from the design's defaults for this modulus, without those that the target or the
        circuit determines."""
        usual, _ = _usual(self.design.name, self.kind, self.work.subject)
        fixed = {"dsp", "feedback"} if self.about.get("circuit") else {"dsp"}
        return {k: v for k, v in self.about["parameters"].items() if k not in fixed and usual.get(k, v) != v}

    @property
    def label(self) -> str:
        """Its multiplier with options that are not default, the number of machines, and the operations interleaved."""
        shown = (k if v is True else f"{k}={v}" for k, v in (self.settings | self.choices).items())
        machines = f"{self.about['cores']} × " if self.about["cores"] > 1 else ""
        return f"{' '.join([self.design.name, *shown])}, {machines}{self.about['threads']} interleaved"

    @property
    def fits(self) -> bool:
        """Whether the device has enough blocks for it."""
        room = find_target(self.target).capacity
        return all(self.synth.values[name] <= getattr(room, name) for name in ("dsp", "lut", "ff", "bram"))

    @property
    def command(self) -> str:
        """The command that made its rows, with every option that is not default."""
        a, w = self.about, self.about.get("modulus_bits", 0)
        if self.kind == "rsa":
            blind = a["bits"] - w
            words = ["rsa", "race", "--bits", *([w, "--no-crt"] if w in BITS else [2 * w])]
            words += ["--blind", blind] if blind else []
        else:
            words = ["ecc", "race", a["curve"], *self._pairing, "--operation", *a["operations"], *self._host_blind]
        words += self._options
        words += ["--target", self.target] if self.target != "ecp5-85k" else []
        words += ["--route", "--seeds", max(row.seed or 1 for row in self.routes)] if self.routes else []
        for option in tool_options(self.routes):
            words += ["--floorplan"] if option == "floorplan" else ["--router", option]
        return shlex.join(["modmill", *map(str, words)])

    @property
    def build(self) -> list[str]:
        """The words of the command that writes it as a folder, without its name; an RSA engine is for the primes of a
        modulus of twice its length, or for 65537 and moduli of its length."""
        a = self.about
        if self.kind == "rsa":
            width = a["modulus_bits"]
            words = ["rsa", "build", "--bits", *([width, "--no-crt"] if self.public else [2 * width])]
            words += [] if a.get("random_blind") else ["--blind", a["bits"] - width]
        else:
            words = ["ecc", "build", "--curve", a["curve"], *self._pairing]
            words += [word for name in a["operations"] for word in ("--operation", name)] + self._host_blind
        return [str(word) for word in (*words, *self._options)]

    @property
    def _pairing(self) -> list[str]:
        """The option that the commands need for a curve for pairings."""
        return ["--allow-pairing"] if any(curve.name == self.about["curve"] for curve in PAIRING_CURVES) else []

    @property
    def _host_blind(self) -> list[Any]:
        """The option for scalars of a curve with room for blinding on the host."""
        with suppress(ValueError):  # a user's own curve
            curve = find_curve(self.about["curve"], pairing=True)
            if self.about["bits"] > scalar_bits(curve) and not self.about.get("random_blind"):
                return ["--blind", self.about["bits"] - (scalar_bits(curve, 1) - 1)]
        return []

    @property
    def _options(self) -> list[Any]:
        """Multiplier, settings and options that are not default, for ``race`` and ``build`` alike."""
        words: list[Any] = ["--multiplier", self.design.name]
        words += [word for name, x in self.settings.items() for word in ("--set", f"{name}={x}")]
        words += [
            part
            for name, x in self.choices.items()
            for option in (_OPTIONS.get(name, f"--{name.replace('_', '-')}"),)
            for part in (*option.split(), *([] if x is True else [x]))
        ]
        return [*words, "--threads", self.about["threads"], *(["--cores", n] if (n := self.about["cores"]) > 1 else [])]

    @cached_property
    def numbers(self) -> dict[str, Any]:
        """Cycles, resources, MHz (median of the seeds), ms of a job, operations per second, and the same for each DSP
        block and LUT."""
        operations = self.about["threads"] * self.about["cores"]
        names = ("e65537", "e65537_period") if self.public else ("latency", "period")
        found = engine_numbers(self.check, self.synth, self.routes, operations, names)
        rate, period = found["rate"], found["period"]
        return found | {
            "results": traced(self.check.values["results"], self.check) if self.check else None,
            "cycles": period / operations if period else None,
            "crt": rate / 2 if rate and self.kind == "rsa" and not self.public else None,
        }


def measured_engines(rows: Iterable[Row], digest: Callable[[Row], str] | None = None) -> list[MeasuredEngine]:
    """Every engine that has a synthesis row, once for each device and task: by work, then in the order of DESIGNS.

    ``digest`` as in `by_device`.
    """
    found = by_device((row for row in rows if is_engine(row)), _identity, digest)
    made = [MeasuredEngine(*rows_of_one) for rows_of_one in found]
    made += [replace(e, public=True) for e in made if e.check and "e65537_period" in e.check.values]
    order = {name: k for k, name in enumerate(_DESIGNS)}
    return sorted(made, key=lambda e: (
        e.kind, e.target != "ecp5-85k", e.target, _place(e.work), order[e.design.name], e.label,
    ))  # fmt: skip


def work_of(about: Mapping[str, Any]) -> Work:
    """The task of the engine that a row describes."""
    if "curve" in about:
        return Work("ecc", about["curve"], ", ".join(about["operations"]), about["bits"])
    return Work("rsa", str(about["modulus_bits"]), "power", about["bits"])


def is_engine(row: Row) -> bool:
    """Whether a row describes an engine for powers modulo any number of one length, or a coprocessor."""
    about = row.about
    named = {"threads", "cores", "bits", "parameters"} <= about.keys() and about.get("design") in _DESIGNS
    power = {"modulus_bits", "method", "window"} <= about.keys() and about.get("modulus") == "loaded"
    return "engine" in about and named and (power or {"curve", "operations", "shape"} <= about.keys())


def _identity(row: Row) -> str:
    """The key of the engine that a row describes. Settings that the row does not name had their defaults."""
    defaults = {s.name: s.default for s in _DESIGNS[row.about["design"]].settings}
    about = {name: row.about.get(name) for name in ("design", *_FIXED)}
    return json.dumps(about | {"parameters": {**defaults, **row.about["parameters"]}}, sort_keys=True, default=str)


def _place(work: Work) -> tuple[Any, ...]:
    """Sort key: powers by length, curves by name."""
    length, name = (int(work.subject), "") if work.kind == "rsa" else (0, work.subject)
    return length, name, work.operation, work.bits


@cache
def _usual(name: str, kind: str, subject: str) -> tuple[Mapping[str, Any], str]:
    """The command's default settings and form for a curve, or for a loaded modulus of ``subject`` bits.

    The design's defaults and the native form if the design does not serve it, or the curve is a user's own.
    """
    chosen = _DESIGNS[name]
    defaults = {s.name: s.default for s in chosen.settings}
    try:
        if kind == "rsa":
            loaded = {"loadable": True} if "loadable" in defaults else {}
            return {**defaults, **chosen.fit(prev_prime(1 << int(subject)), **loaded).settings}, "native"
        fitted = chosen.fit(find_curve(subject, pairing=True).p)
        return {**defaults, **fitted.settings}, fitted.binary if isinstance(fitted.representation, Digits) else "native"
    except ValueError:
        return defaults, "native"
