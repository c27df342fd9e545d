# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Proofs of the RTL in a folder, for all operands. Only record and Verilog are read; the core is not built again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modmill.cores.engine_proof import HEADERS, machine_time, router_time
from modmill.cores.folder import json_object, kind_of, read_text
from modmill.flow import tools
from modmill.flow.constant_time import PUBLIC, ConstantTime, constant_time
from modmill.flow.emit import digest
from modmill.flow.netlist import Netlist
from modmill.report import sheet

_FILES = {
    "a multiplier": ("contract.json", "core.v"),
    "an RSA engine": ("engine.json", "engine.v"),
    "a coprocessor of a curve": ("ecc.json", "ecc.v"),
}
"""Record and Verilog of each kind of folder."""
_MOST_RESET = 10_000
"""Cycles of a reset that are followed at most."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSUMED = (
    "Yosys {yosys} reads the Verilog as synthesis does",
    "an output bit of a cell depends on no other inputs than Modmill's rules say",
    "a memory takes the same time for every address, and contents at power-up do not depend on data",
)
_HEADERS = "the words that the machine takes in the states {states} are the header words of README.md"
_APART = "machines and router have no loop of gates through each other"


@dataclass(frozen=True)
class Proof:
    """A proof of constant time. ``about``: what the record of the folder says; ``found``: the result of each module;
    ``but``: the words of data that are public; ``assumed``: what the proof assumes; ``notes``: what does not fit."""

    folder: str
    about: Mapping[str, Any]
    found: Mapping[str, ConstantTime]
    but: str = ""
    assumed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """PROVED or OPEN."""
        return "OPEN" if any(found.path for found in self.found.values()) else "PROVED"

    def theorem(self, found: ConstantTime) -> str:
        """The statement for a module."""
        return f"{_listed(found.handshake)} do not depend on {_listed(found.data)} in any cycle{self.but}"

    @property
    def lines(self) -> list[str]:
        """The proof as text."""
        out = [f"{self.state} constant time of {self.about['name']}"]
        for module, found in self.found.items():
            out.append(f"  {found.state} {module}: {self.theorem(found)}")
            if found.path:
                out += [
                    "    remains: a path of nets, which values may or may not take:",
                    f"    {' -> '.join(found.path)}",
                ]
            for kind in dict.fromkeys(table.kind for table in found.tables):
                names = [table.name for table in found.tables if table.kind == kind]
                more = f" and {len(names) - 1} more" if len(names) > 1 else ""
                out.append(f"    memory {names[0]}{more}: {kind}")
        out += [f"  assumed: {line}" for line in self.assumed]
        return [*out, f"  RTL {self.about['digest']}", *(f"  note: {note}" for note in self.notes)]

    def describe(self) -> dict[str, Any]:
        """The proof as JSON."""
        return {
            **self.about,
            "folder": self.folder,
            "constant_time": {
                "state": self.state,
                "modules": {
                    module: {
                        "state": found.state, "theorem": self.theorem(found), "path": list(found.path),
                        "memories": [vars(table) for table in found.tables],
                    } for module, found in self.found.items()
                },
            },
            "assumed": list(self.assumed),
            "notes": list(self.notes),
        }  # fmt: skip


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def prove(path: str | Path, *, public_modulus: bool = False) -> Proof:
    """Prove that timing does not depend on operands, nor on a loaded modulus unless it is ``public_modulus``; for a
    machine, that it depends on header words only.

    Raises ValueError if a file of the folder is missing or malformed, ToolError if Yosys cannot read the Verilog.
    """
    folder = Path(path)
    kind = kind_of(folder)
    record_file, verilog_file = (folder / name for name in _FILES[kind])
    record = json_object(read_text(record_file), record_file)
    verilog = sheet.split(read_text(verilog_file))[1]
    multiplier = kind == "a multiplier"
    options = record if multiplier else record.get("options")
    top = options.get("top") if isinstance(options, dict) else None
    if not isinstance(options, dict) or not isinstance(top, str) or not _NAME.fullmatch(top):
        raise ValueError(f"{record_file}: 'top' is missing or no name of a module")
    but, assumed = "", [line.format(yosys=tools.version("yosys")) for line in _ASSUMED]
    if multiplier:
        public = (*PUBLIC, *(["k_m"] if public_modulus else []))
        found = {top: constant_time(Netlist.read(verilog, top), public)}
    else:
        if public_modulus:
            raise ValueError("--public-modulus is for multipliers; the words of a machine's SETUP are secret")
        cores, power_up = options.get("cores", 1), record.get("power_up_reset", 1)
        if not isinstance(cores, int) or not isinstance(power_up, int) or not 0 < power_up < _MOST_RESET:
            raise ValueError(f"{record_file}: 'cores' or 'power_up_reset' is malformed")
        found = _machines(verilog, top, cores, power_up)
        but = ", except on header words"
        assumed += [_HEADERS.format(states=_listed(HEADERS)), *([_APART] if cores > 1 else [])]
    about: dict[str, Any] = {
        "name": folder.resolve().name,
        **{key: record[key] for key in ("design", "modulus_name", "modulus_bits", "io") if key in record},
        "top": top,
        "digest": digest(verilog),
    }
    notes = [] if record.get("digest") == about["digest"] else [f"{record_file.name} has the digest of another RTL"]
    return Proof(str(path), about, found, but, tuple(assumed), tuple(notes))


def _machines(verilog: str, top: str, cores: int, power_up: int) -> dict[str, ConstantTime]:
    """The results of one machine, or of the machine and the router of several."""
    if cores == 1:
        return {top: machine_time(Netlist.read(verilog, top), power_up)}
    machine, router = f"{top}_core", f"{top}_router"
    return {
        machine: machine_time(Netlist.read(verilog, machine), power_up),
        router: router_time(Netlist.read(verilog, router)),
    }
