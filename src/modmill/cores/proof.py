# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Proofs of the RTL in a folder, for all operands. Only record and Verilog are read; the core is not built again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSUMED = (
    "Yosys {yosys} reads the Verilog as synthesis does",
    "an output bit of a cell depends on no other inputs than Modmill's rules say",
    "a memory takes the same time for every address, and its contents at power-up do not depend on data",
)


@dataclass(frozen=True)
class Proof:
    """A proof of constant time. ``about``: what the record of the folder says; ``notes``: what does not fit it."""

    folder: str
    about: Mapping[str, Any]
    found: ConstantTime
    notes: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """PROVED or OPEN."""
        return self.found.state

    @property
    def theorem(self) -> str:
        """The statement."""
        found = self.found
        return f"{_listed(found.handshake)} do not depend on {_listed(found.data)} in any cycle"

    @property
    def assumed(self) -> tuple[str, ...]:
        """What the proof assumes."""
        return tuple(line.format(yosys=tools.version("yosys")) for line in _ASSUMED)

    @property
    def lines(self) -> list[str]:
        """The proof as text."""
        found, out = self.found, [f"{self.state} constant time of {self.about['name']}: {self.theorem}"]
        if found.path:
            out += [
                "  remains: a path in the netlist, which values may or may not take:",
                f"  {' -> '.join(found.path)}",
            ]
        else:
            out += [f"  {table.line}; a word reaches data only" for table in found.tables]
            out += [] if found.tables else ["  no address of a memory depends on data"]
        out += [f"  {'; '.join(f'assumed: {line}' for line in self.assumed)}"]
        return [*out, f"  RTL {self.about['digest']}", *(f"  note: {note}" for note in self.notes)]

    def describe(self) -> dict[str, Any]:
        """The proof as JSON."""
        found = self.found
        return {
            **self.about,
            "folder": self.folder,
            "constant_time": {
                "state": self.state, "theorem": self.theorem, "path": list(found.path),
                "memories": [vars(table) for table in found.tables],
            },
            "assumed": list(self.assumed),
            "notes": list(self.notes),
        }  # fmt: skip


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def prove(path: str | Path, *, public_modulus: bool = False) -> Proof:
    """Prove that timing does not depend on operands, nor on a loaded modulus unless it is ``public_modulus``.

    Raises ValueError if a file of the folder is missing or malformed, ToolError if Yosys cannot read the Verilog.
    """
    folder = Path(path)
    kind = kind_of(folder)
    record_file, verilog_file = (folder / name for name in _FILES[kind])
    record = json_object(read_text(record_file), record_file)
    verilog = sheet.split(read_text(verilog_file))[1]
    top = record.get("top")
    if not isinstance(top, str) or not _NAME.fullmatch(top):
        raise ValueError(f"{record_file}: 'top' is missing or no name of a module")
    found = constant_time(Netlist.read(verilog, top), (*PUBLIC, *(["k_m"] if public_modulus else [])))
    about: dict[str, Any] = {
        "name": folder.resolve().name,
        **{key: record.get(key) for key in ("design", "modulus_name", "modulus_bits", "io") if key in record},
        "top": top,
        "digest": digest(verilog),
    }
    notes = [] if record.get("digest") == about["digest"] else [f"{record_file.name} has the digest of another RTL"]
    return Proof(str(path), about, found, tuple(notes))
