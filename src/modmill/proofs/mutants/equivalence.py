# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Equivalence of mutants with the original, proved over all states that a reset reaches.

A miter joins original and mutant on the same inputs; logic that the mutation cannot change is shared. Both start from
the same arbitrary contents of registers and memories, and outputs must be equal after the first reset: data while it is
valid, and only as long as all operands were in range. ABC (in Yosys) searches for a state that violates this, with
`pdr` and, in the first view and the last, `reach`; in the first view all states are also visited one by one (`states`).
If there is none, the mutant is equivalent. There are four views of the netlist:

    flags   Control that no operand, product or word of a written memory reaches is exact, and the gates that the
            mutation reaches in the same cycle. All other data is a flag alone (`taint`).
    words   Control is exact: registers that a reset sets, registers on which the handshake depends, and the gates
            before them. All other registers, memories, products and sums give arbitrary values, equal on both sides
            unless a flag allows a difference; a register's flag is 1 if the last value stored in it may have differed.
    bits    The same with a flag for each bit of a register, and with exact sums.
    exact   If there are few registers: everything is exact except large products and memories that are written.

A counterexample in a view may come from its abstraction and proves nothing. A second proof, in the view of flags alone,
uses the design's bounds of its registers (`contract.Ranges`): the mutation has an effect only while these hold.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from modmill.contract import Ranges
from modmill.flow import tools
from modmill.proofs.miter import OUTPUTS, Miter, outputs
from modmill.proofs.mutants.mutate import ENABLES, Mutated
from modmill.proofs.mutants.taint import Taint
from modmill.proofs.netlist import REGISTERS, UNWRITTEN, Bit, Cell
from modmill.proofs.states import REGISTER, Graph, never

REACHED = "same outputs in every state that a reset reaches"
RANGED = "same outputs in every state that a reset reaches with values within the bounds of the design"
TIMING = ("clk", "rst", "i_valid", "o_ready", "k_valid", ENABLES)
"""Input ports that carry no data."""
HANDSHAKE = ("i_ready", "o_valid", "k_ready", "o_last")
_DUMMY = ".model netlist\n.inputs ys__n0 ys__n1\n.outputs ys__n2\n.names ys__n0 ys__n1 ys__n2\n11 1\n.end\n"
_MOST_BITS = 800
"""Most bits of control registers without reset; with more of them control is abstract."""
_EXACT_BITS = 400
"""Most bits of all registers in an exact view."""
_MEMORY_BITS = 128
"""Most bits of a memory of control words that is exact."""
_PRODUCT_BITS = 20
"""Most bits of a product that stays exact."""
_VISITS = 12
"""Time for visiting all states, in units of that for the other proofs."""
_STATE = frozenset({*REGISTERS, "$mem_v2", "$mul"})
_ARITHMETIC = ("$add", "$sub", "$neg", "$lt", "$le", "$gt", "$ge", "$eq", "$ne")


def equivalent(
    mutated: Mutated,
    numbers: Sequence[int],
    seconds: float = 20,
    *,
    power_up: int = 1,
    operands: Operands | None = None,
    ranges: Ranges | None = None,
) -> set[int]:
    """The numbers of the mutants that are proved equivalent, with ``seconds`` for each view and more for the last.

    ``power_up``: cycles of the reset after power-up. ``operands``: range of i_a and i_b. ``ranges``: a mutation is
    active only while all registers in its instance, and in those around it, are in range; this is proved in the first
    view alone. Raises ToolError if Yosys cannot be run."""
    found, graph = set[int](), _Graph(mutated.module)
    names = mutated.module["netnames"]
    allowed = {name: bounds for name, bounds in (ranges or {}).items() if names.keys() >= {*name} - {""}}
    for view in islice(_views(mutated, graph), 1 if allowed else None):
        left = [k for k in numbers if k not in found]
        miters = {f"m{k}": _Pair(mutated, graph, k, view, power_up, allowed).miter(operands) for k in left}
        if miters:
            limit, visited = seconds * view.patience, bool(view.data) and power_up == 1
            found |= {int(name[1:]) for name in _unreached(miters, limit, exact=view.reach, visited=visited)}
    return found


@dataclass(frozen=True)
class Operands:
    """Numbers up to ``largest``: binary integers, or, unless ``digit`` is 0, sums of digits of ``digit`` bits, each
    ``step`` bits above the previous one."""

    largest: int
    digit: int = 0
    step: int = 0


class _Graph:
    """The cells of a module, and what depends on what. ``highest``: the highest number of a net."""

    def __init__(self, module: Mapping[str, Any]) -> None:
        self.cells: Mapping[str, Cell] = module["cells"]
        self._users = defaultdict[Bit, list[str]](list)
        for name, cell in self.cells.items():
            for port, bits in cell["connections"].items():
                if port not in OUTPUTS:
                    for bit in bits:
                        self._users[bit].append(name)
        nets = [*self._users, *(b for cell in self.cells.values() for b in outputs(cell))]
        nets += [b for port in module["ports"].values() for b in port["bits"]]
        self.highest = max(b for b in nets if isinstance(b, int))

    def touched(self, first: Sequence[Bit], through: bool = True) -> tuple[set[Bit], set[str]]:
        """Nets and cells that depend on ``first``; ``through``: also in later cycles and behind products."""
        todo, found, done = [*first], {*first}, set[str]()
        while todo:
            for name in self._users.get(todo.pop(), ()):
                if name not in done and (through or self.cells[name]["type"] not in _STATE):
                    done.add(name)
                    new = [b for b in outputs(self.cells[name]) if b not in found]
                    found.update(new)
                    todo += new
        return found, done


@dataclass(frozen=True)
class _View:
    """``kept``: exact registers. ``cut``: gates that are abstract. ``data``: cells with flags alone, except gates
    behind the mutation. ``words``: one flag for each other register, not one for each of its bits. ``tables``: memories
    that are never written are exact, and written ones outside ``loose``. ``reach``: also searched by `reach`.
    ``patience``: factor of its time limit."""

    kept: Set[str]
    cut: Set[str] = frozenset()
    data: Set[str] = frozenset()
    words: bool = False
    tables: bool = False
    loose: Set[str] = frozenset()
    reach: bool = False
    patience: int = 1


def _views(mutated: Mutated, graph: _Graph) -> Iterator[_View]:
    cells = mutated.module["cells"]
    registers = {name for name, cell in cells.items() if cell["type"] in REGISTERS}

    def bits(names: Set[str]) -> int:
        return sum(len(cells[name]["connections"]["Q"]) for name in names)

    data = _data(mutated.module, graph)
    yield _View(registers - data, data=data, tables=True, loose=data, reach=True)
    least = {name for name in cells if name.startswith(f"${UNWRITTEN}")} | mutated.resets
    control = least | (_behind(mutated.module, (), through=True) & registers)
    kept = control if bits(control) <= _MOST_BITS else least
    gates = _behind(mutated.module, kept, through=False)
    products = {name for name, cell in cells.items() if cell["type"] == "$mul"}
    sums = {n for n, c in cells.items() if c["type"] in _ARITHMETIC and n not in gates}
    yield _View(kept, products | sums, words=True)
    yield _View(kept, products)
    if bits(registers) <= _EXACT_BITS:
        large = {n for n in products if len(cells[n]["connections"]["Y"]) > _PRODUCT_BITS}
        written = {name for name, cell in cells.items() if _is_written(cell)}
        yield _View(registers, large, tables=True, loose=written, reach=True, patience=4)


def _is_written(cell: Cell) -> bool:
    return cell["type"] == "$mem_v2" and int(cell["parameters"]["WR_PORTS"], 2) > 0


def _behind(module: Mapping[str, Any], registers: Iterable[str], through: bool) -> set[str]:
    """Cells on which the handshake and the next values of these registers depend in the same cycle; ``through``: also
    in any earlier cycle, but not through a product."""
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


def _data(module: Mapping[str, Any], graph: _Graph) -> set[str]:
    """Cells that an operand reaches in some cycle, or a word of a memory that is written and not small."""
    ports = [p for name, p in module["ports"].items() if p["direction"] == "input" and name not in TIMING]
    first = [b for port in ports for b in port["bits"]]
    for cell in graph.cells.values():
        if (
            _is_written(cell)
            and int(cell["parameters"]["SIZE"], 2) * int(cell["parameters"]["WIDTH"], 2) > _MEMORY_BITS
        ):
            first += outputs(cell)
    reached, _ = graph.touched(first)
    return {name for name, cell in graph.cells.items() if not reached.isdisjoint(outputs(cell))}


def _unreached(miters: Mapping[str, dict[str, Any]], seconds: float, exact: bool, visited: bool = False) -> set[str]:
    """The miters whose output is never 1. ``exact``: also by `reach`, which needs few registers; ``visited``: also by
    visiting all states after a reset of one cycle."""
    top = "setattr -mod -unset top *; setattr -mod -set top 1"
    write = [f"{top} {n}; write_aiger -zinit -symbols {n}.aig" for n in miters]
    tidy = "opt_expr; opt_merge; opt_clean"
    script = (
        f"read_json miters.json; memory_map; {tidy}; techmap; {tidy}; dffunmap; simplemap; aigmap; {'; '.join(write)}"
    )
    found, left = set[str](), list(miters)
    with tempfile.TemporaryDirectory(prefix="modmill-miter-") as path:
        folder = Path(path)
        (folder / "miters.json").write_text(json.dumps({"creator": "modmill", "modules": miters}))
        tools.run(tools.yosys("-q", "-p", script), name="yosys", cwd=folder)
        tidied = "strash; scleanup; fraig; write_aiger -s {0}.states.aig; " if visited else ""
        proofs = [
            f"{tidied}scleanup; scorr; scleanup; scorr; write_aiger {{0}}.aig; pdr -T {seconds:.0f}",
            f"reach -T {seconds:.0f}",
        ]
        for number, prove in enumerate(proofs[: 1 + exact]):
            answers = _asked(folder, left, prove, 60 + 3 * seconds * len(left))
            found |= {name for name, answer in answers.items() if answer == "UNSAT"}
            left = [name for name, answer in answers.items() if answer == "UNK"]
            if visited and number == 0:
                graphs = {name: Graph.read(folder / f"{name}.states.aig") for name in left}
                found |= {name for name, graph in graphs.items() if never(graph, _VISITS * seconds)}
                left = [name for name in left if name not in found]
    return found


def _asked(folder: Path, names: Sequence[str], prove: str, timeout: float) -> dict[str, str]:
    """ABC's answer for each miter: UNSAT, SAT, or UNK if it is undecided or stops early. ABC's standard input and
    output are not used."""
    asked = [f"read_aiger {n}.aig; {prove.format(n)}; write_status {n}.status" for n in names]
    (folder / "prove.abc").write_text("; ".join([*asked, "read_blif end.blif", "strash"]) + "\n")
    (folder / "end.blif").write_text(_DUMMY)
    (folder / "end.v").write_text("module end_(input a, b, output c); assign c = a & b; endmodule\n")
    script = "read_verilog end.v; techmap; abc -script prove.abc"
    for name in names:
        (folder / f"{name}.status").write_text("UNK")
    with suppress(tools.ToolError):
        tools.run(tools.yosys("-q", "-p", script), name="yosys", cwd=folder, timeout=timeout)
    found = {n: (folder / f"{n}.status").read_text().split()[0].removeprefix("snl_") for n in names}
    return {n: "UNSAT" if _never(folder / f"{n}.aig") else answer for n, answer in found.items()}


def _never(aiger: Path) -> bool:
    """Whether the only output is the constant 0, for which `pdr` gives no answer."""
    header, *lines = aiger.read_bytes().split(b"\n")
    latches = int(header.split()[3])
    return lines[latches : latches + 1] == [b"0"]


class _Pair:
    """Original and mutant ``number`` side by side in one netlist."""

    def __init__(
        self, mutated: Mutated, graph: _Graph, number: int, view: _View, power_up: int,
        ranges: Ranges,
    ) -> None:  # fmt: skip
        mutant, self._ports = mutated.mutants[number - 1], mutated.module["ports"]
        self._cells, self._view, self._highest = graph.cells, view, graph.highest
        initial = mutant.kind == "initial" and mutant.cell != "$mem_v2"
        self._first = mutated.places[number - 1] if initial else ""  # a register with other contents at power-up
        self._enables = set(self._ports[ENABLES]["bits"])
        self._enable: Bit = "x" if initial else self._ports[ENABLES]["bits"][number]
        start = self._cells[self._first]["connections"]["Q"] if initial else [self._enable]
        self._touched, _ = graph.touched(start)
        self._net = Miter({"cells": {}, "ports": {}, "netnames": {}}, 2 * graph.highest + 2, self._ports["clk"]["bits"])
        for name, port in self._ports.items():
            if port["direction"] == "input" and name != ENABLES:
                self._net.module["ports"][name] = {"direction": "input", "bits": port["bits"]}
        self._started, self._reset = self._net.started(self._ports["rst"]["bits"], power_up)
        names, above = mutated.module["netnames"], f"{mutant.path}."
        self._active = self._net.all_of(
            _below(self._net, names, *pair, bounds) for pair, bounds in ranges.items()
            if above.startswith("".join(pair[0].rpartition(".")[:2]))
        )  # fmt: skip
        self._drivers = {c["connections"]["Y"][0]: c for c in self._cells.values() if len(outputs(c)) == 1
                         and "Y" in c["connections"]}  # fmt: skip
        self._taint, self._zone = None, set[str]()
        if view.data:
            data = {name: self._cells[name] for name in self._cells if name in view.data}
            reached, inexact = self._touched, {b for cell in data.values() for b in outputs(cell)}
            self._zone = set() if initial else graph.touched(start, through=False)[1] & data.keys()
            self._touched = (reached - inexact) | {b for name in self._zone for b in outputs(data[name])}
            self._taint = Taint(self._net, self._seen, data, reached, self._zone, first=self._first)

    def miter(self, operands: Operands | None) -> dict[str, Any]:
        """A module whose output is 1 if relevant outputs of original and mutant differ."""
        net = self._net
        for name, cell in self._cells.items():
            self._put(name, cell)
        running = net.gate("$not", [self._reset])
        counts = [running] if operands is None else [running, _in_range(net, self._ports, operands, running)]
        wrong = net.gate("$reduce_or", [*self._outputs(), "0"])
        net.module["ports"]["bad"] = {"direction": "output", "bits": net.add("$reduce_and", A=[wrong, *counts])}
        net.prune("bad")
        return net.module

    def _seen(self, bit: Bit, side: int) -> Bit:
        """The net of a bit on one side."""
        if bit in self._enables:
            return self._active if side and bit == self._enable else "0"
        if bit == self._ports["rst"]["bits"][0]:
            return self._reset
        return bit + self._highest if side and bit in self._touched and isinstance(bit, int) else bit

    def _known(self, bit: Bit, side: int) -> str:
        """0 or 1 for a constant, also behind the cells of other mutations; empty for other nets."""
        bit = self._seen(bit, side)
        cell = self._drivers.get(bit) if isinstance(bit, int) else None
        if cell is None or cell["type"] not in ("$or", "$xor", "$and"):
            return bit if isinstance(bit, str) and bit in "01" else ""
        one, two = (self._known(cell["connections"][port][0], side) for port in "AB")
        if not one or not two:
            return ""
        return {"$or": max(one, two), "$and": min(one, two), "$xor": "01"[one != two]}[cell["type"]]

    def _put(self, name: str, cell: Cell) -> None:
        """Add a cell, once or for each side, or what the view has in its place."""
        net, view, pins, type_ = self._net, self._view, cell["connections"], cell["type"]
        if name in view.data and type_ in _STATE:
            net.any_value(f"free${name}", outputs(cell))
            return
        sides = [{port: [self._seen(b, side) for b in bits] for port, bits in pins.items()} for side in (0, 1)]
        both = sides[0] != sides[1] and (name not in view.data or name in self._zone)
        if type_ == "$mem_v2" and not self._is_table(pins):
            if view.tables and name not in view.loose:
                net.exact_memory(name, cell, sides[: 1 + both], self._started)
            else:
                net.memory(name, cell, *sides)
        elif name in view.cut:
            net.any_value(f"free${name}", sides[0]["Y"])
            if both:
                inputs = [[*side["A"], *side.get("B", ())] for side in sides]
                differs = [net.gate("$ne", *inputs)] * len(pins["Y"])
                net.unlike(f"other${name}", differs, sides[0]["Y"], sides[1]["Y"])
        elif type_ in REGISTERS:
            self._put_register(name, cell, sides, both)
        else:
            for side in range(1 + both):
                net.cells[f"{name}${side}"] = {**cell, "connections": sides[side], "attributes": {}}

    def _is_table(self, pins: Mapping[str, list[Bit]]) -> bool:
        return self._view.tables and all(self._known(bit, side) == "0" for bit in pins["WR_EN"] for side in (0, 1))

    def _put_register(self, name: str, cell: Cell, sides: Sequence[Mapping[str, list[Bit]]], both: bool) -> None:
        """An exact register has an arbitrary value at power-up, equal on both sides."""
        net = self._net
        if name not in self._view.kept:
            net.any_value(f"free${name}", sides[0]["Q"])
            if both:
                one, two = (net.after(cell, side) for side in sides)
                words = self._view.words
                unlike = [net.gate("$ne", one, two)] if words else net.add("$xor", width=len(one), A=one, B=two)
                differs = net.held(unlike, first="1" if name == self._first else "0") * (len(one) // len(unlike))
                net.unlike(f"other${name}", differs, sides[0]["Q"], sides[1]["Q"])
            return
        for side in range(1 + both):
            if side == 0 or name == self._first:
                first = net.fresh(len(cell["connections"]["Q"]))
                net.any_value(f"first${name}${side}", first)
            stored = net.fresh(len(first))
            net.add("$mux", sides[side]["Q"], A=first, B=stored, S=[self._started])
            net.module["netnames"][f"{REGISTER}{name}${side}"] = {"hide_name": 0, "bits": stored, "attributes": {}}
            net.cells[f"{name}${side}"] = {**cell, "connections": {**sides[side], "Q": stored}, "attributes": {}}

    def _outputs(self) -> Iterator[Bit]:
        """Bits that are 1 if outputs differ; data outputs count only while valid."""
        net = self._net
        for name, port in self._ports.items():
            if port["direction"] != "output":
                continue
            if self._taint:
                differ = self._taint.any(map(self._taint.of, port["bits"]))
            else:
                one, two = ([self._seen(b, side) for b in port["bits"]] for side in (0, 1))
                differ = "0" if one == two else net.gate("$ne", one, two)
            if name.startswith("o_") and name != "o_valid":
                differ = net.all_of([differ, self._seen(self._ports["o_valid"]["bits"][0], 0)])
            yield differ


def _in_range(net: Miter, ports: Mapping[str, Any], operands: Operands, running: Bit) -> Bit:
    """A bit that is 1 until an operand above the largest is offered outside a reset."""
    wrong = []
    for name in ("i_a", "i_b"):
        if name in ports:
            bits = _number(net, ports[name]["bits"], operands)
            wrong.append(net.gate("$gt", bits, _constant(operands.largest, len(bits))))
    now = net.gate("$reduce_and", [*ports["i_valid"]["bits"], net.gate("$reduce_or", wrong), running])
    before = net.fresh(1)
    either = net.gate("$or", before, [now])
    net.held([either], before)
    return net.gate("$not", [either])


def _below(net: Miter, names: Mapping[str, Any], value: str, selector: str, bounds: Mapping[int, int]) -> Bit:
    """Whether a register's value is below the bound of its selector."""
    found, bits = list[Bit](), names[value]["bits"]
    for selected, bound in bounds.items():
        chosen: list[Bit] = []
        if selector:
            select = names[selector]["bits"]
            chosen = [net.gate("$eq", select, _constant(selected, len(select)))]
        below = net.gate("$lt", bits, _constant(bound, max(len(bits), bound.bit_length())))
        found.append(net.all_of([*chosen, below]))
    return net.one_of(found)


def _constant(value: int, width: int) -> list[Bit]:
    return ["1" if value >> k & 1 else "0" for k in range(width)]


def _number(net: Miter, bits: list[Bit], operands: Operands) -> list[Bit]:
    """The binary integer at a port."""
    if not operands.digit:
        return bits
    digits = [bits[k : k + operands.digit] for k in range(0, len(bits), operands.digit)]
    width = operands.step * len(digits) + operands.digit
    total = digits[0]
    for k, digit in enumerate(digits[1:], 1):
        above: list[Bit] = ["0"] * (operands.step * k)
        total = net.add("$add", width=width, A=total, B=above + digit)
    return total
