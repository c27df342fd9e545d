# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Whether mutants do the same as the original in all states that a reset reaches, by property-directed reachability.

Original and mutant stand side by side on the same inputs; what the mutation cannot change stands there once. Both start
from the same contents of registers and memories, which may be any, and outputs must be the same after the first reset:
data while it is valid, and only as long as all operands were in range. ABC's `pdr` (in Yosys) looks for a state that
breaks this; where there is none, the mutant is equivalent. There are two views of the data:

    abstract  Control is exact: registers that a reset sets and those that the handshake depends on. Any other register,
              memory, product or sum gives any value, the same on both sides unless a bit of it says that it may differ:
              for a register one for each of its bits, which is 1 when what was stored there was not the same.
    exact     All registers are, and products of few bits; there must not be too many.

A break of an abstract view may be of its own making, and says nothing.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modmill.flow import tools
from modmill.flow.mutate import ENABLES, REGISTERS, UNWRITTEN, Bit, Cell, Mutated, Netlist, register

ONLY = slice(None)
REACHED = "same outputs in every state that a reset reaches"
HANDSHAKE = ("i_ready", "o_valid", "k_ready", "o_last")
OUTPUTS = ("Y", "Q", "RD_DATA")
"""Ports by which cells give their values."""
_DUMMY = ".model netlist\n.inputs ys__n0 ys__n1\n.outputs ys__n2\n.names ys__n0 ys__n1 ys__n2\n11 1\n.end\n"
_MOST_BITS = 800
"""Bits of the control that depends on no reset, at most; it is abstract where there are more."""
_EXACT_BITS = 400
"""Bits of all registers of an exact view, at most."""
_PRODUCT_BITS = 16
"""Bits of products that stay exact, at most."""
_WORD_BITS = 6
"""Bits of the addresses of memories whose words are looked at one by one, at most."""
_ARITHMETIC = ("$add", "$sub", "$neg", "$lt", "$le", "$gt", "$ge", "$eq", "$ne")


def equivalent(
    mutated: Mutated, numbers: Sequence[int], seconds: float = 20, *, power_up: int = 1, largest: int | None = None
) -> set[int]:
    """Those of the mutants that are proved equivalent, with ``seconds`` for each and view. ``power_up``: cycles of the
    reset after power-up. ``largest``: of the numbers at i_a and i_b. Raises ToolError when Yosys cannot be run."""
    found = set[int]()
    for view in list(_views(mutated))[ONLY]:
        left = [k for k in numbers if k not in found]
        miters = {f"m{k}": _miter(mutated.module, k, view, power_up, largest) for k in left}
        if miters:
            found |= {int(name[1:]) for name in _unreached(miters, seconds)}
    return found


@dataclass(frozen=True)
class _View:
    """``kept``: registers that are exact. ``cut``: gates that are not. ``words``: one bit for each other register says
    that it may differ, not one for each of its bits."""

    kept: Set[str]
    cut: Set[str]
    words: bool = False


def _views(mutated: Mutated) -> Iterator[_View]:
    cells = mutated.module["cells"]
    registers = {name for name, cell in cells.items() if cell["type"] in REGISTERS}

    def bits(names: Set[str]) -> int:
        return sum(len(cells[name]["connections"]["Q"]) for name in names)

    least = {name for name in cells if name.startswith(f"${UNWRITTEN}")} | mutated.resets
    control = least | (_behind(mutated.module, (), through=True) & registers)
    kept = control if bits(control) <= _MOST_BITS else least
    gates = _behind(mutated.module, kept, through=False)
    products = {name for name, cell in cells.items() if cell["type"] == "$mul"}
    cut = products | {n for n, c in cells.items() if c["type"] in _ARITHMETIC and n not in gates}
    yield _View(kept, cut, words=True)
    yield _View(kept, cut)
    if bits(registers) <= _EXACT_BITS:
        large = {n for n in products if len(cells[n]["connections"]["Y"]) > _PRODUCT_BITS}
        yield _View(registers, large)


def _behind(module: Mapping[str, Any], registers: Iterable[str], through: bool) -> set[str]:
    """Cells on which the handshake and the next values of these registers depend in the same cycle; ``through``: in any
    earlier cycle too, but not by a product."""
    cells = module["cells"]
    outs = ("Y", "Q") if through else ("Y",)
    drivers = {b: n for n, c in cells.items() for port in outs for b in c["connections"].get(port, ())}
    todo = [b for name in HANDSHAKE for b in module["ports"].get(name, {"bits": []})["bits"]]
    todo += [b for name in registers for port, bits in cells[name]["connections"].items() if port != "Q" for b in bits]
    seen = set[str]()
    while todo:
        name = drivers.get(todo.pop())
        if name is None or name in seen:
            continue
        seen.add(name)
        if not (through and cells[name]["type"] == "$mul"):
            pins = cells[name]["connections"]
            todo += [b for port, bits in pins.items() if port not in (*OUTPUTS, "CLK") for b in bits]
    return seen


def _unreached(miters: Mapping[str, dict[str, Any]], seconds: float) -> Iterator[str]:
    """Those of the miters whose output is never 1."""
    write = [f"setattr -mod -unset top *; setattr -mod -set top 1 {n}; write_aiger -zinit {n}.aig" for n in miters]
    prove = [f"read_aiger {n}.aig; scleanup; scorr; pdr -T {seconds:.0f}; write_status {n}.status" for n in miters]
    with tempfile.TemporaryDirectory(prefix="modmill-miter-") as path:
        folder = Path(path)
        (folder / "miters.json").write_text(json.dumps({"creator": "modmill", "modules": miters}))
        (folder / "pdr.abc").write_text(f"{'; '.join(prove)}; read_blif end.blif; strash\n")
        (folder / "end.blif").write_text(_DUMMY)
        (folder / "end.v").write_text("module end_(input a, b, output c); assign c = a & b; endmodule\n")
        tidy = "opt_expr; opt_merge; opt_clean"
        script = f"read_json miters.json; {tidy}; techmap; {tidy}; dffunmap; simplemap; aigmap; {'; '.join(write)}"
        tools.run(tools.yosys("-q", "-p", script), name="yosys", cwd=folder)
        script = "read_verilog end.v; techmap; abc -script pdr.abc"  # ABC's own input and output do not matter here
        tools.run(tools.yosys("-q", "-p", script), name="yosys", cwd=folder, timeout=60 + 3 * seconds * len(miters))
        for name in miters:
            status = folder / f"{name}.status"
            if status.exists() and status.read_text().startswith("snl_UNSAT"):
                yield name


class _Miter(Netlist):
    """A netlist that is built cell by cell. ``clk``: its clock."""

    def __init__(self, module: dict[str, Any], first: int, clk: list[Bit]) -> None:
        super().__init__(module)
        self._next, self._clk = first, clk

    def gate(self, type_: str, a: Sequence[Bit], b: Sequence[Bit] | None = None) -> Bit:
        """A cell with one bit of output."""
        return (self.add(type_, A=list(a)) if b is None else self.add(type_, A=list(a), B=list(b)))[0]

    def held(self, bits: list[Bit], found: list[Bit] | None = None) -> list[Bit]:
        """A word one cycle later; 0 at power-up."""
        found = found or self.fresh(len(bits))
        name = f"held${found[0]}"
        self.cells[f"${name}"] = register(self._clk, bits, found)
        init = {"init": "0" * len(bits)}
        self.module["netnames"][name] = {"hide_name": 0, "bits": found, "attributes": init}
        return found

    def started(self, rst: list[Bit], cycles: int) -> tuple[Bit, Bit]:
        """A bit that is 1 after the first cycle, and the reset, which lasts for so many cycles after power-up."""
        bits: list[Bit] = ["1"]
        for _ in range(cycles):
            bits += self.held(bits[-1:])
        return bits[1], self.gate("$or", rst, [self.gate("$not", bits[-1:])])

    def any_value(self, name: str, bits: list[Bit]) -> None:
        """An input of the miter: any value, another one in each cycle."""
        self.module["ports"][name] = {"direction": "input", "bits": list(dict.fromkeys(bits))}

    def unlike(self, name: str, differs: list[Bit], one: list[Bit], two: list[Bit]) -> None:
        """``two`` is ``one``, but any value in the bits of ``differs``."""
        other = self.fresh(len(one))
        self.any_value(name, other)
        self.add("$xor", two, A=one, B=self.add("$and", width=len(one), A=differs, B=other))

    def after(self, cell: Cell, pins: Mapping[str, list[Bit]]) -> list[Bit]:
        """What a register holds next."""
        if "EN" not in pins:
            return pins["D"]
        held, new = pins["Q"], pins["D"]
        if not int(cell["parameters"]["EN_POLARITY"], 2):
            held, new = new, held
        return self.add("$mux", width=len(new), A=held, B=new, S=pins["EN"])

    def memory(self, name: str, cell: Cell, one: Mapping[str, list[Bit]], two: Mapping[str, list[Bit]]) -> None:
        """Reads give any value, the same on both sides unless their words differ: one bit for each word, or one for
        all where there are many."""
        parameters = cell["parameters"]
        width, bits = (int(parameters[key], 2) for key in ("WIDTH", "ABITS"))
        reads, writes = (int(parameters[key], 2) for key in ("RD_PORTS", "WR_PORTS"))

        def part(pins: Mapping[str, list[Bit]], port: str, size: int, k: int) -> list[Bit]:
            return pins[port][k * size : (k + 1) * size]

        words = 1 << bits if bits <= _WORD_BITS else 1
        differs = [self.fresh(1)[0] for _ in range(words)]
        for word in range(words):
            state = differs[word]
            address: list[Bit] = ["1" if word >> k & 1 else "0" for k in range(bits)]
            for k in range(writes):
                ends = [(part(p, "WR_EN", width, k), part(p, "WR_DATA", width, k)) for p in (one, two)]
                if words > 1:
                    here = [[self.gate("$eq", part(p, "WR_ADDR", bits, k), address)] * width for p in (one, two)]
                    ends = [(self.add("$and", width=width, A=e, B=h), d) for (e, d), h in zip(ends, here, strict=True)]
                enables, data = zip(*ends, strict=True)
                stored = [self.add("$and", width=width, A=e, B=d) for e, d in ends]
                spoilt = [self.gate("$ne", *enables), self.gate("$ne", *stored)]
                if words == 1:
                    elsewhere = self.gate("$ne", *(part(p, "WR_ADDR", bits, k) for p in (one, two)))
                    spoilt.append(self.gate("$and", [elsewhere], [self.gate("$reduce_or", enables[0])]))
                whole = "0" if words == 1 else self.gate("$reduce_and", enables[0])
                kept = self.gate("$and", [state], [self.gate("$not", [whole])])
                state = self.gate("$reduce_or", [*spoilt, kept])
            self.held([state], [differs[word]])
        for k in range(reads):
            data = part(one, "RD_DATA", width, k)
            self.any_value(f"free${name}${k}", data)
            if data == part(two, "RD_DATA", width, k):
                continue
            places = [part(p, "RD_ADDR", bits, k) for p in (one, two)]
            stale = differs[0] if words == 1 else self.add("$shiftx", A=differs, B=places[0])[0]
            differ = self.gate("$or", [self.gate("$ne", *places)], [stale])
            self.unlike(f"other${name}${k}", [differ] * width, data, part(two, "RD_DATA", width, k))


def _miter(
    module: Mapping[str, Any], number: int, view: _View, power_up: int, largest: int | None
) -> dict[str, Any]:
    """Original and mutant ``number`` with one output, which is 1 when they differ where it counts."""
    cells: dict[str, Cell] = module["cells"]
    ports = module["ports"]
    enables = ports[ENABLES]["bits"]
    highest = max(b for c in cells.values() for bits in c["connections"].values() for b in bits if isinstance(b, int))
    highest = max(highest, *(b for p in ports.values() for b in p["bits"] if isinstance(b, int)))
    touched = _touched(cells, enables[number])
    net = _Miter({"cells": {}, "ports": {}, "netnames": {}}, 2 * highest + 2, ports["clk"]["bits"])
    for name, port in ports.items():
        if port["direction"] == "input" and name != ENABLES:
            net.module["ports"][name] = {"direction": "input", "bits": port["bits"]}
    started, reset = net.started(ports["rst"]["bits"], power_up)

    def seen(bit: Bit, side: int) -> Bit:
        if bit in seen_enables:
            return "1" if side and bit == enables[number] else "0"
        if bit == ports["rst"]["bits"][0]:
            return reset
        return bit + highest if side and bit in touched and isinstance(bit, int) else bit

    seen_enables = set(enables)
    for name, cell in cells.items():
        pins, type_ = cell["connections"], cell["type"]
        sides = [{port: [seen(b, side) for b in bits] for port, bits in pins.items()} for side in (0, 1)]
        both = sides[0] != sides[1]
        if type_ == "$mem_v2":
            net.memory(name, cell, *sides)
        elif name in view.cut:
            net.any_value(f"free${name}", sides[0]["Y"])
            if both:
                inputs = [[*side["A"], *side.get("B", ())] for side in sides]
                differs = [net.gate("$ne", *inputs)] * len(pins["Y"])
                net.unlike(f"other${name}", differs, sides[0]["Y"], sides[1]["Y"])
        elif type_ in REGISTERS and name not in view.kept:
            net.any_value(f"free${name}", sides[0]["Q"])
            if both:
                one, two = (net.after(cell, side) for side in sides)
                if view.words:
                    differs = net.held([net.gate("$ne", one, two)]) * len(one)
                else:
                    differs = net.held(net.add("$xor", width=len(one), A=one, B=two))
                net.unlike(f"other${name}", differs, sides[0]["Q"], sides[1]["Q"])
        elif type_ in REGISTERS:
            first = net.fresh(len(pins["Q"]))
            net.any_value(f"first${name}", first)
            for side in range(1 + both):  # at power-up any value, the same on both sides
                stored = net.fresh(len(first))
                net.add("$mux", sides[side]["Q"], A=first, B=stored, S=[started])
                net.cells[f"{name}${side}"] = {**cell, "connections": sides[side] | {"Q": stored}, "attributes": {}}
        else:
            for side in range(1 + both):
                net.cells[f"{name}${side}"] = {**cell, "connections": sides[side], "attributes": {}}
    counts = net.add("$not", A=[reset]) + ([] if largest is None else [_in_range(net, ports, largest)])
    wrong = net.gate("$reduce_or", [*_outputs(net, ports, seen), "0"])
    net.module["ports"]["bad"] = {"direction": "output", "bits": net.add("$reduce_and", A=[wrong, *counts])}
    return net.module


def _in_range(net: _Miter, ports: Mapping[str, Any], largest: int) -> Bit:
    """A bit that is 1 as long as no operand above ``largest`` was offered."""
    wrong = []
    for name in ("i_a", "i_b"):
        if name in ports:
            bits = ports[name]["bits"]
            wrong.append(net.gate("$gt", bits, ["1" if largest >> k & 1 else "0" for k in range(len(bits))]))
    now = net.gate("$and", ports["i_valid"]["bits"], [net.gate("$reduce_or", wrong)])
    before = net.fresh(1)
    either = net.gate("$or", before, [now])
    net.held([either], before)
    return net.gate("$not", [either])


def _touched(cells: Mapping[str, Cell], enable: Bit) -> set[Bit]:
    """Nets that a mutation may change."""
    users = defaultdict(list)
    for name, cell in cells.items():
        for port, bits in cell["connections"].items():
            if port not in OUTPUTS:
                for bit in bits:
                    users[bit].append(name)
    todo, found, done = [enable], {enable}, set[str]()
    while todo:
        for name in users[todo.pop()]:
            if name in done:
                continue
            done.add(name)
            pins = cells[name]["connections"]
            new = [b for port in OUTPUTS for b in pins.get(port, ()) if b not in found]
            found.update(new)
            todo += new
    return found


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
