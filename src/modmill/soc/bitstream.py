# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""An engine behind the serial line of a board: its Verilog, its bitstream (nextpnr, ecppack), a script for the host.

An engine that was built with a bus has its registers there, and the host reaches them by requests with a check
(`modmill.buses.uart`). Without a bus the line carries the words of the engine's streams as they are.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from modmill.buses import uart
from modmill.buses.adapters import find_bus
from modmill.buses.device import WORD
from modmill.buses.files import VERILOG, bus_texts
from modmill.contract import UnsupportedError
from modmill.cores.built import BuiltEngine
from modmill.flow import tools
from modmill.flow.emit import digest
from modmill.flow.route import timed, tool
from modmill.flow.synthesise import synthesise
from modmill.flow.targets import target as find_target
from modmill.report.rows import Row
from modmill.report.sheet import split
from modmill.soc.boards import Board, Pll, find_pll
from modmill.soc.system import Part, rendered, text_of

BAUD = 115200
BAUDS = (9600, 19200, 38400, 57600, 115200, 230400)
"""Rates that hosts know and boards of 25 MHz reach."""
TOP = "board"
OURS = ("uart.v", "bridges.v")
"""Files of Verilog that are the same for all boards."""
LINK, MAP = "modmill_uart.py", "registers.py"
"""Modules of the script for the host: the way to the registers, and their map."""
BITSTREAM = "board.bit"
_NUMBERS = "mhz", "mhz_routed", "lut", "ff", "dsp", "bram", "seconds"


@dataclass(frozen=True)
class BoardDesign:
    """An ``engine`` on a ``board``. ``mhz``: its clock, by the PLL if it is not the pin's; 0: the board's default.
    ``divider``: cycles of a bit; 0: those of ``baud``. Raises UnsupportedError for an engine with words of another size
    than 32 bits, for a clock that the PLL does not make, and for a rate that hosts do not know."""

    engine: BuiltEngine
    board: Board
    baud: int = BAUD
    mhz: float = 0
    divider: int = 0

    def __post_init__(self) -> None:
        if self.engine.word != WORD:
            raise UnsupportedError(f"a board takes an engine with words of {WORD} bits, not {self.engine.word}")
        if self.engine.blinding:
            raise UnsupportedError(f"a board has no random words; build {self.engine.top} without --random port")
        if self.baud not in BAUDS:
            raise UnsupportedError(f"baud must be one of {', '.join(map(str, BAUDS))}, not {self.baud}")
        _ = self.pll

    @property
    def clock(self) -> float:
        """The engine's clock in MHz."""
        return self.mhz or self.board.engine_mhz

    @cached_property
    def pll(self) -> Pll | None:
        """The PLL; None if the engine has the pin's clock."""
        return None if self.clock == self.board.mhz else find_pll(self.board.mhz, self.clock)

    @cached_property
    def _bus_texts(self) -> dict[str, str]:
        """The files of the engine behind its bus, by name; none without a bus."""
        return bus_texts(self.engine.device, find_bus(self.engine.bus), self.engine.verilog) if self.engine.bus else {}

    @property
    def engine_file(self) -> str:
        """The file with the engine."""
        return VERILOG if self.engine.bus else f"{self.engine.top}.v"

    @property
    def _shown(self) -> dict[str, Any]:
        divider = self.divider or round(1e6 * self.clock / self.baud)
        made = self._bus_texts
        return {
            "board": self.board, "top": self.engine.top, "baud": self.baud, "divider": divider,
            "clock": self.clock, "pll": self.pll,
            "width": divider.bit_length() + 1, "reset_bits": max(4, self.engine.power_up.bit_length()),
            "part": Part(self.engine.device, find_bus(self.engine.bus), made[VERILOG], 0) if made else None,
            "uart": uart, "link": LINK.removesuffix(".py"), "map": MAP.removesuffix(".py"),
        }  # fmt: skip

    @cached_property
    def files(self) -> dict[str, str]:
        """The files without the bitstream, by name."""
        made = self._bus_texts
        behind = (
            {VERILOG: made[VERILOG], "bridges.v": text_of("bridges.v"), MAP: made[f"{self.engine.top}.py"]}
            if made
            else {}
        )
        engine = behind or {self.engine_file: self.engine.verilog}
        return {
            "board.v": rendered("board.v.j2", self._shown), "uart.v": text_of("uart.v"), **engine,
            "board.lpf": rendered("board.lpf.j2", self._shown), "host.py": rendered("host.py.j2", self._shown),
            LINK: (resources.files("modmill.buses") / "uart.py").read_text(encoding="utf-8"),
            "vectors.json": json.dumps(self.engine.vectors(), indent=1) + "\n",
        }  # fmt: skip

    @property
    def verilog(self) -> str:
        """All Verilog, module ``board`` first."""
        return "\n".join(text if name in OURS else split(text)[1] for name, text in self._texts)

    @property
    def _texts(self) -> list[tuple[str, str]]:
        return [(name, text) for name, text in self.files.items() if name.endswith(".v")]

    def make(self, seed: int = 1) -> tuple[dict[str, Any], dict[str, str | bytes]]:
        """Synthesise, place, route and pack. Returns the report and all files.

        Raises ToolError if a tool fails, the engine does not fit the device, or its clock is below that of the board.
        """
        with tempfile.TemporaryDirectory(prefix="modmill-bitstream-") as folder:
            work = Path(folder)
            start = time.monotonic()
            target = find_target(self.board.target)
            made = synthesise(self.verilog, TOP, target, work, hierarchy=True, delay=False)
            if why := target.capacity.lacks(made.values):
                raise tools.ToolError(f"the engine does not fit {self.board.title}: it {why}")
            (work / "board.lpf").write_text(self.files["board.lpf"])
            command = tools.nextpnr(
                "ecp5", self.board.option, "--package", self.board.package, "--speed", self.board.speed,
                "--seed", str(seed), "--json", made.netlist.name, "--lpf", "board.lpf", "--report", "report.json",
                "--textcfg", "board.config", "--timing-allow-fail",
            )  # fmt: skip
            tools.run(command, name="nextpnr", cwd=work)
            routed = timed(json.loads((work / "report.json").read_text()), None, target, seed, 0, "")
            if routed.mhz < self.clock:
                raise tools.ToolError(f"nextpnr: {routed.mhz:.1f} MHz is below the clock of {self.clock:g} MHz")
            tools.run(tools.ecppack("--compress", "board.config", BITSTREAM), name="ecppack", cwd=work)
            report = {
                "board": self.board.name, "engine": self.engine.about(), "digest": self.engine.digest,
                "baud": self.baud, "mhz": self.clock, "mhz_routed": round(routed.mhz, 2),
                "lut": made.lut, "ff": made.ff, "dsp": made.dsp, "bram": made.bram, "seed": seed,
                "seconds": round(time.monotonic() - start, 1),
                "tools": {name: tools.version(name) for name in ("yosys", "nextpnr")},
            }  # fmt: skip
            packed = (work / BITSTREAM).read_bytes()
        return report, {**self.files, "report.json": json.dumps(report, indent=2) + "\n", BITSTREAM: packed}

    def row(self, report: Mapping[str, Any]) -> Row:
        """The row of a bitstream by its report, keyed by all its Verilog."""
        engine = report["engine"]
        about = {"board": self.board.name, "name": engine["design"], "curve": engine.get("curve", ""),
                 "bits": engine["bits"], "bus": self.engine.bus, "baud": self.baud}  # fmt: skip
        values = {name: report[name] for name in _NUMBERS}
        return Row(
            "bitstream",
            digest(self.verilog),
            tool(find_target(self.board.target)),
            self.board.target,
            report["seed"],
            values,
            about,
        )


def rows_table(rows: Iterable[Row]) -> list[str]:
    """The rows of bitstreams as a Markdown table."""
    lines = [
        "| engine | bus | board | MHz used | MHz routed | LUT | flip-flops | DSP blocks | block RAMs | seconds |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in (row for row in rows if row.kind == "bitstream"):
        about, n = row.about, row.values
        lines.append(
            f"| {about['curve'] or 'powers'}, {about['bits']} bits, `{about['name']}` | {about['bus'] or 'none'} "
            f"| `{about['board']}` | {n['mhz']:g} | {n['mhz_routed']} | {n['lut']:,} | {n['ff']:,} | {n['dsp']} "
            f"| {n['bram']} | {n['seconds']:.0f} |"
        )
    return lines
