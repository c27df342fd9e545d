# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The rows of a core or an engine on one device, and the numbers that follow from them, each traced to its rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Any

from modmill.design import Design
from modmill.designs import design as find_design
from modmill.report.families import Family, family_of
from modmill.report.rows import Row
from modmill.report.traces import traced


@dataclass(frozen=True)
class Measured:
    """A core or an engine of a design on one device, from its rows."""

    check: Row | None
    synth: Row
    routes: Sequence[Row]

    @property
    def about(self) -> Mapping[str, Any]:
        """Its description in the synthesis row."""
        return self.synth.about

    @property
    def target(self) -> str:
        """The name of the device."""
        return self.synth.target

    @property
    def spread(self) -> str:
        """The clocks of its slowest and its fastest seed over the median; empty for less than two seeds."""
        clocks = [float(row.values["mhz"]) for row in self.routes]
        ends = (min(clocks), max(clocks)) if len(clocks) > 1 else ()
        return " ".join(f"{end / median(clocks):.4f}" for end in ends)

    @property
    def digest(self) -> str:
        """The digest of its RTL."""
        return self.synth.digest

    @cached_property
    def design(self) -> Design:
        """Its design, or that of its multiplier."""
        return find_design(self.about["design"])

    @cached_property
    def family(self) -> Family:
        """The family of its design, which is a multiplier."""
        return family_of(self.design.page)


def by_device(
    rows: Iterable[Row], identity: Callable[[Row], str], digest: Callable[[Row], str] | None = None
) -> Iterator[tuple[Row | None, Row, list[Row]]]:
    """Check row (if there is one), synthesis row and routes by seed: of each core with a synthesis row, on each device.

    Rows of one core have the same ``identity``. ``digest`` returns the digest of the RTL that is emitted now for the
    core of a row; it is called if rows of several digests describe one core. Without it the last row counts.
    """
    checks: dict[str, Row] = {}
    routes: dict[tuple[str, str], list[Row]] = defaultdict(list)
    synths: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in rows:
        if row.kind == "check":
            checks[row.digest] = row
        elif row.kind == "route":
            routes[row.digest, row.target].append(row)
        elif row.kind == "synth":
            synths[f"{identity(row)} {row.target}"][row.digest] = row
    for several in synths.values():
        *_, last = several.values()
        row = several.get(digest(last), last) if digest and len(several) > 1 else last
        yield checks.get(row.digest), row, sorted(routes[row.digest, row.target], key=lambda r: r.seed or 0)


def _numbers(
    check: Row | None, synth: Row | None, routes: Sequence[Row], cycles: Sequence[str], at_once: float
) -> dict[str, Any]:
    """The numbers of cycles with these names, of which the last is the time from start to start of ``at_once``
    operations; ``dsp``, ``lut``, ``ff``, ``bram``; ``mhz``, the median of the seeds; ``rate``: operations a second;
    ``per_dsp``, ``per_lut``: the same for each block. None without a row."""
    found = {name: traced(check.values[name], check) if check else None for name in cycles}
    found |= {name: traced(synth.values[name], synth) if synth else None for name in ("dsp", "lut", "ff", "bram")}
    mhz = traced(median(row.values["mhz"] for row in routes), *routes) if routes else None
    interval = found[cycles[-1]]
    rate = mhz * 1e6 * at_once / interval if mhz and interval else None
    per = {f"per_{name}": rate / found[name] if rate and found[name] else None for name in ("dsp", "lut")}
    return found | {"mhz": mhz, "rate": rate, **per}


def core_numbers(check: Row | None, synth: Row, routes: Sequence[Row]) -> dict[str, Any]:
    """``latency``, ``interval``, resources and ``mhz`` of a multiplier; ``us`` of a product; ``rate``: products a
    second, also ``per_dsp`` and ``per_lut``. None without a row."""
    found = _numbers(check, synth, routes, ("latency", "interval"), 1)
    return found | {"us": found["latency"] / found["mhz"] if found["mhz"] and found["latency"] else None}


def engine_numbers(
    check: Row | None, synth: Row | None, routes: Sequence[Row], operations: float,
    names: tuple[str, str] = ("latency", "period"),
) -> dict[str, Any]:  # fmt: skip
    """``latency`` and ``period`` in cycles, resources and ``mhz`` of an engine; ``ms`` of a job; ``rate``: operations a
    second if ``operations`` finish in a period, also ``per_dsp`` and ``per_lut``. None without a row."""
    found = _numbers(check, synth, routes, names, operations)
    found |= {"latency": found.pop(names[0]), "period": found.pop(names[1])}
    return found | {"ms": found["latency"] / found["mhz"] / 1000 if found["mhz"] and found["latency"] else None}
