# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What two Verilog texts compute, compared as netlists: the logic before each named point, bit by bit."""

import json
import tempfile
from functools import cache
from hashlib import blake2b
from pathlib import Path

from modmill.flow import tools

_SCRIPT = (
    "design -reset; read_verilog {0}.v; proc -norom; opt_expr; opt_merge; opt_clean; memory_collect; "
    "simplemap t:$and t:$or t:$xor t:$not t:$mux t:$logic_not t:$reduce_or t:$reduce_bool t:$eq t:$ne t:$dff t:$dffe; "
    "opt_expr; opt_merge; opt_clean; write_json {0}.json; "
)
_SYMMETRIC = {"$_AND_", "$_OR_", "$_XOR_", "$_XNOR_", "$add", "$mul"}


def differences(one: str, other: str) -> list[str]:
    """The points of two texts, of the same modules, whose logic differs; and modules that only one has.

    Points are outputs, registers, memories and inputs of submodules. Registers that have a name in only one text are a
    part of the logic.
    """
    texts = _read(one, other)
    found = [f"module {name}" for name in texts[0].keys() ^ texts[1].keys()]
    for name in texts[0].keys() & texts[1].keys():
        common = set(texts[0][name]["netnames"]) & set(texts[1][name]["netnames"])
        first, second = (_Cones(text[name], common).points() for text in texts)
        found += [f"{name}: {point}" for point in first.keys() | second.keys() if first.get(point) != second.get(point)]
    return sorted(found)


def _read(*texts: str) -> list[dict[str, dict]]:
    """The modules of each text."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for k, text in enumerate(texts):
            (folder / f"{k}.v").write_text(text)
        script = "".join(_SCRIPT.format(k) for k in range(len(texts)))
        tools.run(tools.yosys("-q", "-p", script), name="yosys", cwd=folder)
        return [json.loads((folder / f"{k}.json").read_text())["modules"] for k in range(len(texts))]


def _digest(*parts: object) -> str:
    return blake2b(repr(parts).encode(), digest_size=12).hexdigest()


def _is_register(cell: dict) -> bool:
    return "dff" in cell["type"].lower()


def _is_block(cell: dict) -> bool:
    """Whether a cell is a memory or a submodule."""
    return cell["type"].startswith("$mem") or not cell["type"].startswith("$")


def _known(name: str, cell: dict) -> str:
    return f"memory {cell['parameters']['MEMID']}" if cell["type"].startswith("$mem") else name


class _Cones:
    """The logic of a module. ``common``: names at which a register is a point."""

    def __init__(self, module: dict, common: set[str]) -> None:
        self.module = module
        self.given: dict[int, str] = {}
        self.drivers: dict[int, tuple[dict, str, int]] = {}
        names: dict[int, list[str]] = {}
        for name in common & set(module["netnames"]):
            for k, bit in enumerate(module["netnames"][name]["bits"]):
                names.setdefault(bit, []).append(f"{name}[{k}]")
        for name, port in module["ports"].items():
            if port["direction"] == "input":
                self.given |= {bit: f"{name}[{k}]" for k, bit in enumerate(port["bits"])}
        for name, cell in module["cells"].items():
            for port in (port for port, way in cell["port_directions"].items() if way == "output"):
                for k, bit in enumerate(cell["connections"][port]):
                    self.drivers[bit] = cell, port, k
                    if _is_block(cell):
                        self.given.setdefault(bit, f"{_known(name, cell)}.{port}[{k}]")
                    elif _is_register(cell) and bit in names:
                        self.given.setdefault(bit, min(names[bit]))
        self.cone = cache(self._cone)

    def points(self) -> dict[str, str]:
        """Point -> the digest of its logic."""
        found = {}
        for name, port in self.module["ports"].items():
            if port["direction"] == "output":
                found[name] = _digest([self.cone(bit) for bit in port["bits"]])
        for name, cell in self.module["cells"].items():
            pins = {k: [self.cone(bit) for bit in bits] for k, bits in cell["connections"].items() if k != "Q"}
            if _is_register(cell):
                for q, d in zip(cell["connections"]["Q"], pins.pop("D"), strict=True):
                    found[f"register {self.given.get(q, '')}"] = _digest(cell["type"], d, pins)
            elif _is_block(cell):
                inputs = {k: pins[k] for k, way in cell["port_directions"].items() if way == "input"}
                parameters = sorted(cell["parameters"].items())
                found[_known(name, cell)] = _digest(cell["type"].split("$")[0], inputs, parameters)
        return found

    def _cone(self, bit: object) -> str:
        if not isinstance(bit, int):
            return str(bit)
        if bit in self.given:
            return self.given[bit]
        if bit not in self.drivers:
            return "undriven"
        cell, port, k = self.drivers[bit]
        pins = {name: cell["connections"][name] for name, way in cell["port_directions"].items() if way == "input"}
        if cell["type"] == "$pmux":  # the order of its inputs does not matter: at most one is selected
            width = len(pins["A"])
            chosen = sorted((self.cone(s), self.cone(pins["B"][n * width + k])) for n, s in enumerate(pins["S"]))
            return _digest("$pmux", self.cone(pins["A"][k]), chosen)
        operands = []
        for name, bits in sorted(pins.items()):
            signed = int(str(cell["parameters"].get(f"{name}_SIGNED", "0")), 2)
            digests = [self.cone(b) for b in bits]
            while name in "AB" and cell["type"] != "$mux" and not signed and digests[1:] and digests[-1] == "0":
                digests.pop()  # zeros before a number
            operands.append((name, signed, digests))
        if cell["type"] in _SYMMETRIC:
            operands = sorted((signed, digests) for _, signed, digests in operands)
        return _digest(cell["type"], operands, port, k)
