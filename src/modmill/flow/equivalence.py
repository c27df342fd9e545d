# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Equivalence of mutants with the original, proved over all states that a reset reaches.

A miter joins original and mutant on the same inputs; logic that the mutation cannot change is shared. Both start from
the same arbitrary contents of registers and memories, and outputs must be equal after the first reset: data while it is
valid, and only as long as all operands were in range. ABC (in Yosys) searches for a state that violates this, with
`pdr` and, in the exact view, `reach`; if there is none, the mutant is equivalent. There are three views of the netlist:

    words   Control is exact: registers that a reset sets, registers on which the handshake depends, and the gates
            before them. All other registers, memories, products and sums give arbitrary values, equal on both sides
            unless a flag allows a difference; a register's flag is 1 if the last value stored in it may have differed.
    bits    The same with a flag for each bit of a register, and with exact sums.
    exact   If there are few registers: everything is exact except large products and memories that are written.

A counterexample in a view may come from its abstraction and proves nothing.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modmill.flow import tools
from modmill.flow.mutate import ENABLES, Mutated
from modmill.flow.netlist import REGISTERS, UNWRITTEN, Bit, Cell, Netlist, register

REACHED = "same outputs in every state that a reset reaches"
HANDSHAKE = ("i_ready", "o_valid", "k_ready", "o_last")
OUTPUTS = ("Y", "Q", "RD_DATA")
"""Output ports of cells."""
_DUMMY = ".model netlist\n.inputs ys__n0 ys__n1\n.outputs ys__n2\n.names ys__n0 ys__n1 ys__n2\n11 1\n.end\n"
_MOST_BITS = 800
"""Most bits of control registers without reset; with more of them control is abstract."""
_EXACT_BITS = 400
"""Most bits of all registers in an exact view."""
_PRODUCT_BITS = 20
"""Most bits of a product that stays exact."""
_WORD_BITS = 6
"""Most address bits of a memory with a flag for each word."""
_ARITHMETIC = ("$add", "$sub", "$neg", "$lt", "$le", "$gt", "$ge", "$eq", "$ne")


def equivalent(
    mutated: Mutated,
    numbers: Sequence[int],
    seconds: float = 20,
    *,
    power_up: int = 1,
    operands: Operands | None = None,
) -> set[int]:
    """The numbers of the mutants that are proved equivalent, with ``seconds`` for each view and more for the last.

    ``power_up``: cycles of the reset after power-up. ``operands``: range of i_a and i_b. Raises ToolError if Yosys
    cannot be run."""
    found = set[int]()
    for view in _views(mutated):
        left = [k for k in numbers if k not in found]
        miters = {f"m{k}": _miter(mutated, k, view, power_up, operands) for k in left}
        if miters:
            found |= {int(name[1:]) for name in _unreached(miters, seconds * view.patience, exact=view.tables)}
    return found


@dataclass(frozen=True)
class Operands:
    """Numbers up to ``largest``: binary integers, or, unless ``digit`` is 0, sums of digits of ``digit`` bits, each
    ``step`` bits above the previous one."""

    largest: int
    digit: int = 0
    step: int = 0


@dataclass(frozen=True)
class _View:
    """``kept``: exact registers. ``cut``: gates that are abstract. ``words``: one flag for each other register, not one
    for each of its bits. ``tables``: memories that are never written are exact. ``patience``: factor of its time
    limit."""

    kept: Set[str]
    cut: Set[str]
    words: bool = False
    tables: bool = False
    patience: int = 1


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
    sums = {n for n, c in cells.items() if c["type"] in _ARITHMETIC and n not in gates}
    yield _View(kept, products | sums, words=True)
    yield _View(kept, products)
    if bits(registers) <= _EXACT_BITS:
        large = {n for n in products if len(cells[n]["connections"]["Y"]) > _PRODUCT_BITS}
        yield _View(registers, large, tables=True, patience=4)


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


def _unreached(miters: Mapping[str, dict[str, Any]], seconds: float, exact: bool) -> set[str]:
    """The miters whose output is never 1. ``exact``: also by `reach`, which needs few registers."""
    write = [f"setattr -mod -unset top *; setattr -mod -set top 1 {n}; write_aiger -zinit {n}.aig" for n in miters]
    tidy = "opt_expr; opt_merge; opt_clean"
    script = (
        f"read_json miters.json; memory_map; {tidy}; techmap; {tidy}; dffunmap; simplemap; aigmap; {'; '.join(write)}"
    )
    found, left = set[str](), list(miters)
    with tempfile.TemporaryDirectory(prefix="modmill-miter-") as path:
        folder = Path(path)
        (folder / "miters.json").write_text(json.dumps({"creator": "modmill", "modules": miters}))
        tools.run(tools.yosys("-q", "-p", script), name="yosys", cwd=folder)
        proofs = [f"scleanup; scorr; write_aiger {{0}}.aig; pdr -T {seconds:.0f}", f"reach -T {seconds:.0f}"]
        for prove in proofs[: 1 + exact]:
            answers = _asked(folder, left, prove, 60 + 3 * seconds * len(left))
            found |= {name for name, answer in answers.items() if answer == "UNSAT"}
            left = [name for name, answer in answers.items() if answer == "UNK"]
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


class _Miter(Netlist):
    """A netlist, built cell by cell. ``clk``: its clock."""

    def __init__(self, module: dict[str, Any], first: int, clk: list[Bit]) -> None:
        super().__init__(module)
        self._next, self._clk = first, clk

    def gate(self, type_: str, a: Sequence[Bit], b: Sequence[Bit] | None = None) -> Bit:
        """The output of a new cell with one output bit."""
        return (self.add(type_, A=list(a)) if b is None else self.add(type_, A=list(a), B=list(b)))[0]

    def held(self, bits: list[Bit], found: list[Bit] | None = None, first: str = "0") -> list[Bit]:
        """A word delayed by one cycle; at power-up all its bits are ``first``."""
        found = found or self.fresh(len(bits))
        name = f"held${found[0]}"
        self.cells[f"${name}"] = register(self._clk, bits, found)
        init = {"init": first * len(bits)}
        self.module["netnames"][name] = {"hide_name": 0, "bits": found, "attributes": init}
        return found

    def started(self, rst: list[Bit], cycles: int) -> tuple[Bit, Bit]:
        """A bit that is 1 after the first cycle, and the reset, which lasts for ``cycles`` cycles after power-up."""
        bits: list[Bit] = ["1"]
        for _ in range(cycles):
            bits += self.held(bits[-1:])
        return bits[1], self.gate("$or", rst, [self.gate("$not", bits[-1:])])

    def any_value(self, name: str, bits: list[Bit]) -> None:
        """A new input of the miter: an arbitrary value in each cycle."""
        self.module["ports"][name] = {"direction": "input", "bits": list(dict.fromkeys(bits))}

    def unlike(self, name: str, differs: list[Bit], one: list[Bit], two: list[Bit]) -> None:
        """Make ``two`` equal to ``one``, except for arbitrary values in the bits of ``differs``."""
        other = self.fresh(len(one))
        self.any_value(name, other)
        self.add("$xor", two, A=one, B=self.add("$and", width=len(one), A=differs, B=other))

    def after(self, cell: Cell, pins: Mapping[str, list[Bit]]) -> list[Bit]:
        """The next value of a register."""
        parameters, new = cell["parameters"], pins["D"]

        def chosen(port: str, low: list[Bit], high: list[Bit]) -> list[Bit]:
            if not int(parameters[f"{port}_POLARITY"], 2):
                low, high = high, low
            return self.add("$mux", width=len(new), A=low, B=high, S=pins[port])

        value: list[Bit] = [bit if bit in "01" else "0" for bit in reversed(parameters.get("SRST_VALUE", ""))]
        if cell["type"] == "$sdffce":
            new = chosen("SRST", new, value)
        if "EN" in pins:
            new = chosen("EN", pins["Q"], new)
        if cell["type"] in ("$sdff", "$sdffe"):
            new = chosen("SRST", new, value)
        return new

    def memory(self, name: str, cell: Cell, one: Mapping[str, list[Bit]], two: Mapping[str, list[Bit]]) -> None:
        """Reads give arbitrary values, equal on both sides unless a flag says that the words differ: one flag for each
        word, or one for all words of a large memory."""
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
                enables = [part(pins, "WR_EN", width, k) for pins in (one, two)]
                places = [part(pins, "WR_ADDR", bits, k) for pins in (one, two)]
                if words > 1:
                    here = [[self.gate("$eq", place, address)] * width for place in places]
                    enables = [self.add("$and", width=width, A=e, B=h) for e, h in zip(enables, here, strict=True)]
                data = [part(pins, "WR_DATA", width, k) for pins in (one, two)]
                stored = [self.add("$and", width=width, A=e, B=d) for e, d in zip(enables, data, strict=True)]
                spoilt = [self.gate("$ne", *enables), self.gate("$ne", *stored)]
                if words == 1:
                    spoilt.append(self.gate("$and", [self.gate("$ne", *places)], [self.gate("$reduce_or", enables[0])]))
                whole = "0" if words == 1 else self.gate("$reduce_and", enables[0])
                kept = self.gate("$and", [state], [self.gate("$not", [whole])])
                state = self.gate("$reduce_or", [*spoilt, kept])
            self.held([state], [differs[word]])
        for k in range(reads):
            read, other = (part(pins, "RD_DATA", width, k) for pins in (one, two))
            self.any_value(f"free${name}${k}", read)
            if read == other:
                continue
            places = [part(p, "RD_ADDR", bits, k) for p in (one, two)]
            stale = differs[0] if words == 1 else self.add("$shiftx", A=differs, B=places[0])[0]
            differ = self.gate("$or", [self.gate("$ne", *places)], [stale])
            self.unlike(f"other${name}${k}", [differ] * width, read, other)


def _miter(mutated: Mutated, number: int, view: _View, power_up: int, operands: Operands | None) -> dict[str, Any]:
    """Original and mutant ``number`` with one output, which is 1 if their relevant outputs differ."""
    mutant = mutated.mutants[number - 1]
    cells: dict[str, Cell] = mutated.module["cells"]
    ports = mutated.module["ports"]
    loose = mutated.places[number - 1] if mutant.kind == "initial" and mutant.cell != "$mem_v2" else ""
    enables = ports[ENABLES]["bits"]
    highest = max(b for c in cells.values() for bits in c["connections"].values() for b in bits if isinstance(b, int))
    highest = max(highest, *(b for p in ports.values() for b in p["bits"] if isinstance(b, int)))
    touched = _touched(cells, cells[loose]["connections"]["Q"] if loose else [enables[number]])
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
    drivers = {
        cell["connections"]["Y"][0]: cell for cell in cells.values() if len(cell["connections"].get("Y", ())) == 1
    }

    def known(bit: Bit, side: int) -> str:
        """0 or 1 for a constant, also behind the cells of other mutations; empty for other nets."""
        bit = seen(bit, side)
        cell = drivers.get(bit) if isinstance(bit, int) else None
        if cell is None or cell["type"] not in ("$or", "$xor", "$and"):
            return bit if isinstance(bit, str) and bit in "01" else ""
        one, two = (known(cell["connections"][port][0], side) for port in "AB")
        if not one or not two:
            return ""
        return {"$or": max(one, two), "$and": min(one, two), "$xor": "01"[one != two]}[cell["type"]]

    for name, cell in cells.items():
        pins, type_ = cell["connections"], cell["type"]
        sides = [{port: [seen(b, side) for b in bits] for port, bits in pins.items()} for side in (0, 1)]
        both = sides[0] != sides[1]
        if (
            type_ == "$mem_v2"
            and view.tables
            and all(known(bit, side) == "0" for bit in pins["WR_EN"] for side in (0, 1))
        ):
            for side in range(1 + both):
                net.cells[f"{name}${side}"] = {**cell, "connections": sides[side], "attributes": {}}
        elif type_ == "$mem_v2":
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
                unlike = [net.gate("$ne", one, two)] if view.words else net.add("$xor", width=len(one), A=one, B=two)
                differs = net.held(unlike, first="1" if name == loose else "0") * (len(one) // len(unlike))
                net.unlike(f"other${name}", differs, sides[0]["Q"], sides[1]["Q"])
        elif type_ in REGISTERS:
            for side in range(1 + both):  # at power-up an arbitrary value, equal on both sides
                if side == 0 or name == loose:
                    first = net.fresh(len(pins["Q"]))
                    net.any_value(f"first${name}${side}", first)
                stored = net.fresh(len(first))
                net.add("$mux", sides[side]["Q"], A=first, B=stored, S=[started])
                net.cells[f"{name}${side}"] = {**cell, "connections": sides[side] | {"Q": stored}, "attributes": {}}
        else:
            for side in range(1 + both):
                net.cells[f"{name}${side}"] = {**cell, "connections": sides[side], "attributes": {}}
    running = net.gate("$not", [reset])
    counts = [running] if operands is None else [running, _in_range(net, ports, operands, running)]
    wrong = net.gate("$reduce_or", [*_outputs(net, ports, seen), "0"])
    net.module["ports"]["bad"] = {"direction": "output", "bits": net.add("$reduce_and", A=[wrong, *counts])}
    return net.module


def _in_range(net: _Miter, ports: Mapping[str, Any], operands: Operands, running: Bit) -> Bit:
    """A bit that is 1 until an operand above the largest is offered outside a reset."""
    wrong = []
    for name in ("i_a", "i_b"):
        if name in ports:
            bits = _number(net, ports[name]["bits"], operands)
            wrong.append(net.gate("$gt", bits, ["1" if operands.largest >> k & 1 else "0" for k in range(len(bits))]))
    now = net.gate("$reduce_and", [*ports["i_valid"]["bits"], net.gate("$reduce_or", wrong), running])
    before = net.fresh(1)
    either = net.gate("$or", before, [now])
    net.held([either], before)
    return net.gate("$not", [either])


def _number(net: _Miter, bits: list[Bit], operands: Operands) -> list[Bit]:
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


def _touched(cells: Mapping[str, Cell], first: Sequence[Bit]) -> set[Bit]:
    """Nets that depend on ``first``."""
    users = defaultdict(list)
    for name, cell in cells.items():
        for port, bits in cell["connections"].items():
            if port not in OUTPUTS:
                for bit in bits:
                    users[bit].append(name)
    todo, found, done = [*first], {*first}, set[str]()
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
    """Bits that are 1 if outputs differ; data outputs count only while valid."""
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
