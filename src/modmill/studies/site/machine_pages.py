# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The pages of RSA engines and of curve coprocessors, from the engines that have rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from modmill.cores.ecc.machine import ecc
from modmill.cores.rsa.circuit import circuit_engine
from modmill.cores.rsa.machine import engine
from modmill.engines.ecc.point_engine import Shape
from modmill.flow.targets import TARGETS
from modmill.numbers.curves.named import PAIRING_CURVES
from modmill.report.attack_tables import PROTECTIONS
from modmill.report.engine_rows import MeasuredEngine, Work
from modmill.report.rows import Row

COLUMNS = (
    ("latency", "one job, cycles"), ("period", "period, cycles"), ("cycles", "cycles an operation"),
    ("dsp", "DSP"), ("lut", "LUT"), ("ff", "FF"), ("bram", "BRAM"), ("mhz", "MHz"),
    ("ms", "ms a job"), ("rate", "operations/s"), ("per_dsp", "/s/DSP"), ("per_lut", "/s/LUT"),
)  # fmt: skip
CRT = ("crt", "CRT/s")
"""A column of RSA engines: private operations of a key of twice the length, each of two powers."""


@dataclass(frozen=True)
class EnginePage:
    """One of the two pages: its engines, its texts, and the command that measures a first engine."""

    kind: str
    title: str
    lead: str
    work_words: str
    command: str
    first: Work
    """The task that is listed first if an engine has it."""

    @property
    def file(self) -> str:
        """The file name of the page."""
        return f"{self.kind}.html"

    def values(self, found: Sequence[MeasuredEngine]) -> dict[str, Any]:
        """The values for its template."""
        engines = [e for e in found if e.kind == self.kind]
        works = list(dict.fromkeys(e.work for e in engines))
        first = works.index(self.first) if self.first in works else 0
        seen = {e.target for e in engines}
        return {
            "title": self.title, "lead": self.lead, "work_words": self.work_words, "command": self.command,
            "engines": engines, "works": works, "first": first,
            "clocked": sum(bool(e.routes) for e in engines if e.work == works[first]) > 2 if works else False,
            "targets": [t for t in TARGETS if t.name in seen], "anchor": anchor,
            "columns": (*COLUMNS, CRT) if self.kind == "rsa" else COLUMNS,
        }  # fmt: skip


PAGES = (
    EnginePage(
        "rsa", "RSA engines",
        "Powers modulo a number that is loaded, on machines around each multiplier. An operation is one power. A "
        "private operation with CRT is two powers of half the key's length; CRT/s counts those of a key twice as long "
        "as the modulus.",
        "Modulus", "modmill rsa race --bits 1024 --no-crt --multiplier montgomery-array --route --seeds 1",
        Work("rsa", "1024", "power", 1024),
    ),
    EnginePage(
        "ecc", "Elliptic-curve coprocessors",
        "Whole operations on points, on coprocessors around each multiplier. The cycles are the same for every scalar "
        "of a length.",
        "Operation", "modmill ecc race P-256 --route --seeds 1", Work("ecc", "P-256", "multiply", 256),
    ),
)  # fmt: skip


def anchor(e: MeasuredEngine) -> str:
    """The anchor of an engine and its task on its page."""
    return f"e-{e.digest.removeprefix('sha256:')[:10]}-{e.target}{'-public' * e.public}"


def digest_today(row: Row) -> str:
    """The digest of the RTL that is now emitted for the engine of a row (seconds to a minute).

    Raises UnsupportedError if the engine can no longer be built.
    """
    a = row.about
    names = ("bits", "threads", "word", "io", "cores")
    protection = {name: True for name in PROTECTIONS if a.get(name)}
    options = {name: a[name] for name in names} | protection
    options |= {name: a[name] for name in ("random_blind", "random_entropy") if name in a}
    if "curve" in a:
        options |= {"operations": tuple(a["operations"]), "shape": Shape(**a["shape"]), "sums": a["sums"]}
        pairing = a["curve"] in {curve.name for curve in PAIRING_CURVES}
        return ecc(a["curve"], a["design"], a["parameters"], allow_pairing=pairing, **options).digest
    if a.get("circuit"):
        own = {name: a[name] for name in ("bits", "word")} | protection
        return circuit_engine(a["design"], 0, a["modulus_bits"], a["parameters"], **own).digest
    options |= {name: a[name] for name in ("method", "window", "native")}
    return engine(a["design"], width=a["modulus_bits"], settings=a["parameters"], **options).digest
