# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Shipped rows of one RTL, for a data sheet: resources and clock on each target, with the tools that measured them."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from modmill.report.rows import Row, Store

RESOURCES = ("dsp", "lut", "ff", "bram")
_NAMES: Mapping[str, tuple[str, ...]] = {"synth": RESOURCES, "route": ("mhz",), "bus": ("front", "commands")}
"""The values of an entry, by its kind."""


def recorded(*digests: str, folder: Path | None = None) -> list[dict[str, Any]]:
    """The shipped rows of synthesis, route and bus front with one of these digests of RTL, as entries of a core's
    record, in one order.

    Rows measured on this machine are left out, so that a core is written with the same record everywhere.
    """
    rows = (row for row in Store(Path(os.devnull), folder).rows if row.digest in digests)
    return sorted((_entry(row) for row in rows if row.kind in _NAMES), key=_place)


def _entry(row: Row) -> dict[str, Any]:
    said: dict[str, Any] = {"kind": row.kind, "target": row.target, "tool": row.tool}
    said |= {} if row.seed is None else {"seed": row.seed}
    return said | {name: row.values[name] for name in _NAMES[row.kind]}


def _place(entry: Mapping[str, Any]) -> tuple[str, str, str, int]:
    return entry["target"], entry["kind"], entry["tool"], entry.get("seed", 0)


def lines(entries: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of a data sheet's table: for each target and tools the resources, and the median of the routed clocks with
    its seeds (``mhz`` None without a route)."""
    entries = list(entries)
    routes: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for entry in entries:
        if entry["kind"] == "route":
            routes[entry["target"], entry["tool"]].append(entry)
    found = []
    for synth in (entry for entry in entries if entry["kind"] == "synth"):
        for routed in [r for (target, _), r in routes.items() if target == synth["target"]] or [[]]:
            found.append({
                **{name: synth[name] for name in ("target", *RESOURCES)},
                "mhz": round(median(r["mhz"] for r in routed), 1) if routed else None,
                "seeds": [r["seed"] for r in routed if "seed" in r],
                "tools": [synth["tool"], *dict.fromkeys(r["tool"] for r in routed)],
            })  # fmt: skip
    return found


def nanoseconds(entries: Iterable[Mapping[str, Any]]) -> float | None:
    """The period, in ns rounded up, of the slowest routed median among the entries; None without a route."""
    clocks = [line["mhz"] for line in lines(entries) if line["mhz"]]
    return -(-(10**6) // min(clocks)) / 1000 if clocks else None
