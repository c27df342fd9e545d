# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Whether mutants do the same as the original: all states that a reset reaches, by property-directed reachability.

Original and mutant stand side by side on the same inputs; what the mutation cannot touch stands there once. Only the
control keeps its registers: those that `valid` and `ready` depend on, and those with bits that a reset sets. All other
registers, memories and products of words are cut: what they give is any value, the same on both sides, and what they
take must be the same on both sides whenever it counts. Nothing is compared during a reset: what data registers and
memories hold at its end is taken to be without effect, which `check` sees to with random contents. ABC's `pdr` (in
Yosys) looks for a state that breaks this; where there is none, the mutant is equivalent. A break may be of the cuts'
making, and says nothing.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from modmill.flow import tools
from modmill.flow.mutate import ENABLES, REGISTERS, UNWRITTEN, Bit, Cell, Mutated, Netlist, register

REACHED = "same outputs in every state that a reset reaches"
HANDSHAKE = ("i_ready", "o_valid", "k_ready", "o_last")
_DUMMY = ".model netlist\n.inputs ys__n0 ys__n1\n.outputs ys__n2\n.names ys__n0 ys__n1 ys__n2\n11 1\n.end\n"
_MOST_BITS = 800
"""Bits of registers that a proof keeps, at most."""


def equivalent(mutated: Mutated, numbers: Sequence[int], resets: Collection[str], seconds: float = 20) -> set[int]:
    """Those of the mutants that are proved equivalent, with ``seconds`` for each. ``resets``: names of the registers
    with bits that a reset sets. Raises ToolError when Yosys cannot be run."""
    if not numbers:
        return set()
    kept = _control(mutated.module, resets)
    modules = {f"m{k}": _miter(mutated.module, k, kept) for k in numbers}
    files = [f"m{k}" for k in numbers]
    whole = "; ".join(
        f"setattr -mod -unset top *; setattr -mod -set top 1 {name}; write_aiger -zinit {name}.aig" for name in files
    )
    prove = "; ".join(f"read_aiger {n}.aig; pdr -T {seconds:.0f}; write_status {n}.status" for n in files)
    with tempfile.TemporaryDirectory(prefix="modmill-miter-") as name:
        folder = Path(name)
        (folder / "miters.json").write_text(json.dumps({"creator": "modmill", "modules": modules}))
        (folder / "pdr.abc").write_text(f"{prove}; read_blif end.blif; strash\n")
        (folder / "end.blif").write_text(_DUMMY)
        (folder / "end.v").write_text("module end_(input a, b, output c); assign c = a & b; endmodule\n")
        tidy = "opt_expr; opt_merge; opt_clean"
        script = f"read_json miters.json; {tidy}; techmap; {tidy}; dffunmap; simplemap; aigmap; {whole}"
        tools.run(tools.yosys("-q", "-p", script), name="yosys", cwd=folder)
        script = "read_verilog end.v; techmap; abc -script pdr.abc"  # ABC's own input and output do not matter here
        tools.run(tools.yosys("-q", "-p", script), name="yosys", cwd=folder, timeout=60 + 2 * seconds * len(numbers))
        found = {k: (folder / f"m{k}.status").read_text() for k in numbers if (folder / f"m{k}.status").exists()}
    return {k for k, text in found.items() if text.startswith("snl_UNSAT")}


def _control(module: Mapping[str, Any], resets: Collection[str]) -> set[str]:
    """Registers that the handshake depends on, and those of ``resets``; these alone where all are too many."""
    cells = module["cells"]
    drivers = {b: n for n, c in cells.items() for p in ("Y", "Q") for b in c["connections"].get(p, ())}
    todo = [bit for name in HANDSHAKE for bit in module["ports"].get(name, {"bits": []})["bits"]]
    seen = set[str]()
    while todo:
        name = drivers.get(todo.pop())
        if name is None or name in seen:
            continue
        seen.add(name)
        if cells[name]["type"] != "$mul":
            todo += [b for p, bits in cells[name]["connections"].items() if p not in ("Y", "Q", "CLK") for b in bits]
    cone = {name for name in seen if cells[name]["type"] in REGISTERS}
    least = {name for name in cells if name.startswith(f"${UNWRITTEN}")} | set(resets)
    both = cone | least
    return both if sum(len(cells[n]["connections"]["Q"]) for n in both) <= _MOST_BITS else least


class _Miter(Netlist):
    """A netlist that is built cell by cell."""

    def __init__(self, module: dict[str, Any], first: int) -> None:
        super().__init__(module)
        self._next = first

    def gate(self, type_: str, a: Sequence[Bit], b: Sequence[Bit] | None = None) -> Bit:
        """A cell with one bit of output."""
        return (self.add(type_, A=list(a)) if b is None else self.add(type_, A=list(a), B=list(b)))[0]

    def put(self, name: str, cell: Cell, nets: Mapping[str, list[Bit]]) -> None:
        """A copy of a cell on other nets."""
        self.cells[name] = {**cell, "connections": dict(nets), "attributes": {}}


def _miter(module: Mapping[str, Any], number: int, kept: Collection[str]) -> dict[str, Any]:
    """Original and mutant ``number`` with one output, which is 1 when they differ where it counts."""
    cells: dict[str, Cell] = module["cells"]
    ports = module["ports"]
    enables = ports[ENABLES]["bits"]
    highest = max(b for c in cells.values() for bits in c["connections"].values() for b in bits if isinstance(b, int))
    highest = max(highest, *(b for p in ports.values() for b in p["bits"] if isinstance(b, int)))
    rst = ports["rst"]["bits"][0]
    cut = {
        n for n, c in cells.items() if (c["type"] in REGISTERS and n not in kept) or c["type"] in ("$mem_v2", "$mul")
    }
    touched = _touched(cells, cut, enables[number])
    net = _Miter({"cells": {}, "ports": {}, "netnames": {}}, 2 * highest + 2)

    def input_(name: str, bits: list[Bit]) -> None:
        net.module["ports"][name] = {"direction": "input", "bits": bits}

    for name, port in ports.items():
        if port["direction"] == "input" and name != ENABLES:
            input_(name, port["bits"])
    clk = ports["clk"]["bits"]
    started, reset = net.fresh(1), net.fresh(1)[0]
    net.cells["$started"] = register(clk, ["1"], started)
    net.module["netnames"]["started"] = {"hide_name": 0, "bits": started, "attributes": {"init": "0"}}
    net.add("$or", [reset], A=[rst], B=[net.gate("$not", started)])

    def seen(bit: Bit, side: int) -> Bit:
        if bit in seen_enables:
            return "1" if side and bit == enables[number] else "0"
        if bit == rst:
            return reset
        return bit + highest if side and bit in touched and isinstance(bit, int) else bit

    seen_enables = set(enables)
    bad: list[Bit] = []
    for name, cell in cells.items():
        pins = cell["connections"]
        sides = [{port: [seen(b, side) for b in bits] for port, bits in pins.items()} for side in (0, 1)]
        if name in cut:
            for port in ("Q", "Y", "RD_DATA"):
                if port in pins:
                    input_(f"free${name}${port}", list(dict.fromkeys(pins[port])))
            if sides[0] != sides[1]:
                bad += _obligations(net, cell, *sides)
            continue
        out = "Q" if cell["type"] in REGISTERS else "Y"
        both = any(b in touched for b in pins[out]) or sides[0] != sides[1]
        power_up = net.fresh(len(pins[out])) if out == "Q" else []
        if power_up:
            input_(f"first${name}", power_up)
        for side in range(1 + both):
            nets = dict(sides[side])
            if power_up:  # at power-up any value, the same on both sides
                held = net.fresh(len(power_up))
                net.add("$mux", nets["Q"], A=power_up, B=held, S=started)
                nets["Q"] = held
            net.put(f"{name}${side}", cell, nets)
    bad += _outputs(net, ports, seen)
    running = net.add("$not", A=[reset])
    wrong = net.add("$and", A=net.add("$reduce_or", A=bad or ["0"]), B=running)
    net.module["ports"]["bad"] = {"direction": "output", "bits": wrong}
    return net.module


def _touched(cells: Mapping[str, Cell], cut: Collection[str], enable: Bit) -> set[Bit]:
    """Nets that a mutation may change, up to the cuts."""
    users = defaultdict(list)
    for name, cell in cells.items():
        for port, bits in cell["connections"].items():
            if port not in ("Y", "Q", "RD_DATA"):
                for bit in bits:
                    users[bit].append(name)
    todo, found, done = [enable], {enable}, set[str]()
    while todo:
        for name in users[todo.pop()]:
            if name in done or name in cut:
                continue
            done.add(name)
            new = [b for port in ("Y", "Q") for b in cells[name]["connections"].get(port, ()) if b not in found]
            found.update(new)
            todo += new
    return found


def _obligations(net: _Miter, cell: Cell, one: Mapping[str, list[Bit]], two: Mapping[str, list[Bit]]) -> Iterator[Bit]:
    """Bits that are 1 when the two sides of a cut take different values that count."""
    clocks = ("CLK", "RD_CLK", "WR_CLK")
    outs = ("Q", "Y", "RD_DATA")
    unlike = {p: net.gate("$ne", one[p], two[p]) for p in one if p not in (*clocks, *outs) and one[p] != two[p]}
    counts: dict[str, list[Bit]] = {}
    if "EN" in one:
        counts["D"] = one["EN"] if int(cell["parameters"]["EN_POLARITY"], 2) else [net.gate("$not", one["EN"])]
    elif "WR_EN" in one and int(cell["parameters"]["WR_PORTS"], 2) == 1:
        counts["WR_ADDR"] = counts["WR_DATA"] = [net.gate("$reduce_or", one["WR_EN"])]
    for port, differ in unlike.items():
        yield net.gate("$and", counts[port], [differ]) if port in counts else differ


def _outputs(net: _Miter, ports: Mapping[str, Any], seen: Callable[[Bit, int], Bit]) -> Iterator[Bit]:
    """Bits that are 1 when outputs differ, data while it is valid."""
    for name, port in ports.items():
        if port["direction"] != "output":
            continue
        one, two = ([seen(b, side) for b in port["bits"]] for side in (0, 1))
        if one == two:
            continue
        differ = net.gate("$ne", one, two)
        if name.startswith("o_") and name != "o_valid":
            differ = net.gate("$and", [differ], [seen(ports["o_valid"]["bits"][0], 0)])
        yield differ
