# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Read the folder of a core; words that load another modulus into the core."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from modmill.buses.device import SAME
from modmill.contract import UnsupportedError
from modmill.cores.behind_bus import bus_files
from modmill.cores.folder import json_object, read_text
from modmill.cores.multiplier.build import FILES, RECORD, Core, build
from modmill.designs import design as find_design
from modmill.flow.emit import digest
from modmill.numbers.moduli import Modulus, parse_modulus
from modmill.report import seal, sheet


@dataclass(frozen=True)
class Folder:
    """Contents of a core's folder, not yet checked."""

    path: Path
    record: dict[str, Any]
    header: str
    verilog: str
    vectors: list[tuple[int, int, int]]
    texts: dict[str, str]
    """All files by name, line ends unchanged."""

    @classmethod
    def read(cls, path: str | Path) -> Folder:
        """Read a folder. Raises ValueError, naming the file, if one is missing, truncated or malformed."""
        folder = Path(path)
        if not folder.is_dir():
            raise ValueError(f"{folder} is not a folder")
        contract, vectors_file = folder / RECORD, folder / "vectors.json"
        record = json_object(read_text(contract), contract)
        for key, kind in _KINDS.items():
            if not isinstance(record.get(key), kind):
                raise ValueError(f"{contract}: {key!r} is missing or malformed (or the folder is of another version)")
        try:
            int(record["modulus"], 16)
            int(record.get("made_for", "0x0"), 16)
        except (TypeError, ValueError):
            raise ValueError(f"{contract}: 'modulus' is not a hexadecimal number") from None
        rows: Any = json_object(read_text(vectors_file), vectors_file).get("vectors")
        try:
            two = record.get("operands") != 1
            vectors = [(int(v["a"], 16), int(v["b"], 16) if two else 0, int(v["value"], 16)) for v in rows]
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"{vectors_file}: 'vectors' is missing or malformed") from None
        header, verilog = sheet.split(read_text(folder / "core.v"))
        if not verilog.strip():
            raise ValueError(f"{folder / 'core.v'} holds no Verilog")
        known = (*FILES, *bus_files(record))
        names = [f.name for f in folder.iterdir() if f.name in known or f.suffix == ".core"]
        return cls(folder, record, header, verilog, vectors, seal.folder_texts(folder, names))

    def refit(self) -> Core:
        """Build the core that contract.json describes, from its design, modulus, io and given parameters.

        Raises ValueError (UnsupportedError) if it cannot be built.
        """
        r = self.record
        given = find_design(r["design"]).checked(r["given"])  # refuses names that are not parameters
        bus = {"bus": r["bus"]["name"], "bus_clock": r["bus"].get("clock", SAME)} if bus_files(r) else {}
        return build(r["design"], int(r.get("made_for", r["modulus"]), 16), r["io"], r["top"], **bus, **given)


_KINDS = {"design": str, "modulus": str, "io": str, "given": dict, "top": str, "digest": str, "netlist": str}


def load(path: str | Path) -> Core:
    """Read the core in a folder, with the folder's RTL.

    Raises ValueError if a file is missing or malformed, or if the digest of the RTL is not the one in contract.json.
    Whether the core fulfils its contract is not tested here but in `check`.
    """
    folder = Folder.read(path)
    if digest(folder.verilog) != folder.record["digest"]:
        core = folder.path / "core.v"
        raise ValueError(f"{core} has another digest than contract.json says; run modmill check for details")
    return replace(folder.refit(), stored=folder.verilog, stored_digest=folder.record["netlist"])


def words_for(path: str | Path, modulus: str | int | Modulus) -> Core:
    """Return the core in a folder with another modulus loaded; ``contract.load`` holds the words that load it.

    Raises ValueError (UnsupportedError) if the core's modulus is built in, or if the core cannot load this one.
    """
    core = Folder.read(path).refit()
    if core.contract.load is None:
        raise UnsupportedError(
            f"{path}: the modulus of this core is built in; build the core with --set loadable=true to load others"
        )
    wanted = parse_modulus(str(modulus)) if isinstance(modulus, (str, int)) else modulus
    if wanted.bits > core.modulus.bits:
        most = core.modulus.bits
        raise UnsupportedError(f"moduli of this core must have at most {most} bits, got {wanted.bits} bits")
    return replace(core, modulus=wanted, fitted=core.fitted.at(wanted.value))
