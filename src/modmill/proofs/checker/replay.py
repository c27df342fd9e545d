# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The checker runs the netlist of a certificate, once for each run of the proof and each case of a run."""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from modmill.proofs.checker.cell_rules import Bit, Bits, Cells, output
from modmill.proofs.checker.recheck import Book, Poly, RefusedError, combined, numbers, require

VERSION = 1
_OPERANDS = ("i_a", "i_b")
_OUT = {"Y", "Q", "RD_DATA"}
_CLOCKS = {"CLK", "RD_CLK", "WR_CLK"}
_REGISTERS = {"$dff", "$dffe", "$sdff", "$sdffe", "$sdffce"}
_GATES: dict[str, Callable[[int, int], int]] = {"$and": int.__and__, "$or": int.__or__, "$xor": int.__xor__}
_PATIENCE = 4
Decision = tuple[tuple[int, str, str], int]


def check(module: Mapping[str, Any], claim: Mapping[str, Any], lines: Iterable[str]) -> int:
    """Check a certificate: that the core whose netlist is ``module`` has the ``claim``. Returns the number of runs.
    Raises RefusedError with the reason and the line if it does not show this."""
    return check_runs(module, claim, lines, list(product(range(claim["interval"]), (False, True))))


def check_runs(
    module: Mapping[str, Any], claim: Mapping[str, Any], lines: Iterable[str], runs: Sequence[tuple[int, bool]]
) -> int:  # fmt: skip
    """`check` of some runs only: each a phase and whether there are other products."""
    count = 0

    def counted() -> Iterator[str]:
        nonlocal count
        for line in lines:
            count += 1
            yield line

    try:
        return _check(module, claim, counted(), runs)
    except RefusedError as error:
        raise RefusedError(f"line {count}: {error}") from None
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise RefusedError(f"line {count} is malformed: {type(error).__name__} {error}") from None


def _check(
    module: Mapping[str, Any], claim: Mapping[str, Any], lines: Iterator[str], runs: Sequence[tuple[int, bool]]
) -> int:  # fmt: skip
    word, version, digest, said, order, adders, control = numbers(next(lines, "[0, 0]"))
    require((word, version) == ("products", VERSION), f"no certificate of version {VERSION}")
    text = json.dumps(module, sort_keys=True, separators=(",", ":"))
    require(digest == hashlib.sha256(text.encode()).hexdigest(), "another netlist")
    require(said == claim, "another claim")
    circuit = Circuit(module, order, adders, control)
    for phase, full in runs:
        todo: list[list[Decision]] = [[]]
        while todo:
            kind, *start, known, cases, bits = numbers(next(lines, "[0, 0, 0, 0, 0, 0]"))
            require(kind == "run" and start == [phase, full], f"no run for {(phase, full)}")
            run, prefix = Run(circuit, claim, Book(lines), known, cases, bits), todo.pop()
            run.follow(phase, full)
            require(run.decided[: len(prefix)] == prefix, "the case is another one")
            for k in range(len(prefix), len(run.decided)):
                where, bit = run.decided[k]
                todo.append([*run.decided[:k], (where, 1 - bit)])
    require(next(lines, None) is None, "there are lines after the last run")
    return len(runs)


class Circuit:
    """A netlist. ``order``: names of the cells between registers, which is checked; ``adders``: sums and majorities of
    three words that cells make, which is checked; ``control``: nets of registers that begin with given bits."""

    def __init__(
        self, module: Mapping[str, Any], order: Sequence[str], adders: Sequence[Any], control: Sequence[int]
    ) -> None:  # fmt: skip
        self.ports: dict[str, list[Any]] = {name: port["bits"] for name, port in module["ports"].items()}
        cells = {n: c for n, c in module["cells"].items() if c["type"] != "$scopeinfo"}
        self.registers = {n: c for n, c in cells.items() if c["type"] in _REGISTERS}
        self.memories = {n: c for n, c in cells.items() if c["type"] == "$mem_v2"}
        self.numbers = {name: _parameters(cell) for name, cell in cells.items()}
        self._require_clock()
        self.initial = _initial(module)
        self.control = control
        held = {b for c in self.registers.values() for b in c["connections"]["Q"]}
        require(held.issuperset(control) and not self.initial.keys() & set(control), "control is no register")
        require(len(set(control)) == len(control), "control twice")
        gates = {b: (c, k) for c in cells.values() if c["type"] in _GATES for k, b in enumerate(c["connections"]["Y"])}
        self.cells: list[tuple[str, str, dict[str, list[Any]], list[Any]]] = []
        merged = {name: (type_, words) for name, type_, *words in adders}
        known = {
            *held,
            *(b for n, bits in self.ports.items() if module["ports"][n]["direction"] == "input" for b in bits),
        }
        for name in order:
            made = self._cell(name, cells, merged, gates)
            require(
                known.issuperset(b for w in made[2].values() for b in w if isinstance(b, int)), f"{name} is too early"
            )
            known.update(made[3])
            self.cells.append(made)
        self.users: dict[Any, list[int]] = {}
        for k, (_, _, inputs, _) in enumerate(self.cells):
            for bit in {b for bits in inputs.values() for b in bits}:
                self.users.setdefault(bit, []).append(k)
        needed = [b for n, bits in self.ports.items() for b in bits]
        needed += [
            b for c in (*self.registers.values(), *self.memories.values())
            for p, bits in c["connections"].items() if p not in _OUT | _CLOCKS for b in bits
        ]  # fmt: skip
        require(known.issuperset(b for b in needed if isinstance(b, int)), "a cell is missing")

    def _require_clock(self) -> None:
        """Everything is clocked by the rising edge of port clk."""
        for name, cell in self.registers.items():
            rising = self.numbers[name]["CLK_POLARITY"] == 1
            require(rising and cell["connections"]["CLK"] == self.ports["clk"], f"{name} has another clock")
        for name, cell in self.memories.items():
            n = self.numbers[name]
            every = (1 << n["WR_PORTS"]) - 1
            rising = not every or n["WR_CLK_POLARITY"] == n["WR_CLK_ENABLE"] == every
            require(rising and not {*cell["connections"]["WR_CLK"]} - {*self.ports["clk"]}, f"{name} has another clock")
            wide = n.get("RD_WIDE_CONTINUATION", 0) or n.get("WR_WIDE_CONTINUATION", 0)
            require(not wide and not n["RD_CLK_ENABLE"], f"{name} has a port without a rule")

    def _cell(
        self, name: str, cells: Mapping[str, Any], merged: Mapping[str, Any], gates: Mapping[Any, Any]
    ) -> tuple[str, str, dict[str, list[Any]], list[Any]]:  # fmt: skip
        if name not in cells:  # a port of a memory
            memory, _, port = name.rpartition("$")
            pins, n = self.memories[memory]["connections"], self.numbers[memory]
            k, bits, width = int(port), n["ABITS"], n["WIDTH"]
            require(0 <= k < n["RD_PORTS"], f"{memory} has no port {k}")
            data = pins["RD_DATA"][k * width : (k + 1) * width]
            return name, memory, {"A": pins["RD_ADDR"][k * bits : (k + 1) * bits]}, data
        cell = cells[name]
        out = cell["connections"]["Y"]
        if name not in merged:
            return name, cell["type"], {p: w for p, w in cell["connections"].items() if p != "Y"}, out
        type_, words = merged[name]
        require(type_ in ("$xor3", "$majority"), f"{name} is no full adder")
        for bit, *places in zip(out, *words, strict=True):
            for values in product((0, 1), repeat=3):
                given: dict[Any, int] = {}
                if all(given.setdefault(p, v) == v for p, v in (*zip(places, values, strict=True), ("0", 0), ("1", 1))):
                    wanted = sum(values) & 1 if type_ == "$xor3" else sum(values) >> 1
                    require(_gate(bit, given, gates) == wanted, f"{name} is no full adder")
        return name, type_, dict(zip("ABC", words, strict=True)), out


def _gate(net: Any, given: dict[Any, int], gates: Mapping[Any, Any], depth: int = 4) -> int:
    """The value of a net that gates make of given ones."""
    if net not in given:
        cell, k = gates[net]
        require(depth and not all(map(int, (_parameters(cell)[f"{p}_SIGNED"] for p in "AB"))), "no full adder")
        pins = [(cell["connections"][p][k : k + 1] or ["0"])[0] for p in "AB"]
        a, b = (_gate(pin, given, gates, depth - 1) for pin in pins)
        given[net] = _GATES[cell["type"]](a, b)
    return given[net]


def _parameters(cell: Mapping[str, Any]) -> dict[str, int]:
    return {name: int(text, 2) for name, text in cell["parameters"].items() if text and not set(text) - {"0", "1"}}


def _initial(module: Mapping[str, Any]) -> dict[Any, int]:
    """Values at power-up, by net."""
    found = {}
    for net in module["netnames"].values():
        text = net.get("attributes", {}).get("init", "")
        found.update({b: int(c) for b, c in zip(net["bits"], reversed(text), strict=False) if c in "01"})
    return found


class Run:
    """One run from the reset to the result of the product. ``known``: what may be anything is an atom, not an unknown
    bit; ``cases``: bits that choose between words may have a value in this case; ``start``: the bits of control."""

    def __init__(
        self, circuit: Circuit, claim: Mapping[str, Any], book: Book, known: bool, cases: bool, start: str
    ) -> None:  # fmt: skip
        self._circuit, self._claim, self._book, self._known = circuit, claim, book, known
        self.decided: list[Decision] = []
        self._bits_decided: dict[tuple[int, int], int] = {}
        self._place = 0, ""
        self._cells = Cells(book, self._decide) if cases else Cells(book)
        operands = [self._operand(claim["operand"]) for n in _OPERANDS if n in circuit.ports]
        self._wanted: Poly = {(): claim["factor"]}
        for number, _ in operands:
            self._wanted = book.times(self._wanted, number)
        names = [n for n in _OPERANDS if n in circuit.ports]
        self._mine: dict[str, Bits] = {n: bits for n, (_, bits) in zip(names, operands, strict=True)}
        self._values: dict[Any, Bit] = {"0": 0, "1": 1, "x": None, "z": None}
        self._dirty = list(range(len(circuit.cells)))
        self._waiting = set(self._dirty)
        for cell in circuit.registers.values():
            self._set(cell["connections"]["Q"], [circuit.initial.get(b) for b in cell["connections"]["Q"]])
        require(len(start) == len(circuit.control) and not set(start) - {"0", "1"}, "malformed bits of control")
        self._set(circuit.control, [int(c) for c in start])
        self._memories = {name: self._contents(cell) for name, cell in circuit.memories.items()}
        if known:
            self._fill()

    def _operand(self, form: Mapping[str, Any]) -> tuple[Poly, Bits]:
        """The number of an operand, and the bits of its port."""
        largest, book = self._claim["largest"], self._book
        if form["kind"] == "binary":
            number = book.ranged(largest)
            return number, self._cells.bits(number, form["width"])
        require(form["kind"] == "digits", "the form of the operands has no rule")
        size = form["radix_bits"] + 2
        words = [book.atom(size) for _ in range(form["digits"])]
        number = combined(*((1 << form["radix_bits"] * k, word) for k, word in enumerate(words)))
        book.given[book.id(number)] = 0, largest
        return number, tuple(bit for word in words for bit in self._cells.bits(word, size))

    def _contents(self, cell: Mapping[str, Any]) -> list[Bits]:
        n = _parameters(cell)
        text = cell["parameters"]["INIT"][::-1].ljust(n["SIZE"] * n["WIDTH"], "x")
        bits = tuple(int(c) if c in "01" else None for c in text)
        return [bits[k * n["WIDTH"] : (k + 1) * n["WIDTH"]] for k in range(n["SIZE"])]

    def _fill(self) -> None:
        """Atoms in place of unknown bits of registers and memories."""

        def full(bits: Sequence[Bit]) -> Bits:
            new = self._cells.bits(self._book.atom(len(bits)), len(bits))
            return tuple(b if a is None else a for a, b in zip(bits, new, strict=True))

        for cell in self._circuit.registers.values():
            nets = cell["connections"]["Q"]
            self._set(nets, full(self._bits(nets)))
        for words in self._memories.values():
            words[:] = map(full, words)

    def _decide(self, bit: tuple[int, int], place: str) -> int | None:
        """The value of a bit in this case."""
        if bit not in self._bits_decided:
            value = self._book.choice("decide", self._book.polys[bit[0]], bit[1])
            if value is None:
                return None
            self._bits_decided[bit] = value & 1
            self.decided.append(((*self._place, place), value & 1))
            self._book.given[bit[0]] = value << bit[1], (value + 1 << bit[1]) - 1
            self._book.floors.clear()
        return self._bits_decided[bit]

    # ---- one cycle

    def _bits(self, nets: Sequence[Any]) -> Bits:
        return tuple(self._values.get(b) for b in nets)

    def _mark(self, cells: Iterable[int]) -> None:
        for k in cells:
            if k not in self._waiting:
                self._waiting.add(k)
                heapq.heappush(self._dirty, k)

    def _set(self, nets: Sequence[Any], bits: Sequence[Bit]) -> None:
        for net, bit in zip(nets, bits, strict=True):
            if net not in self._values or self._values[net] != bit:
                self._values[net] = bit
                self._mark(self._circuit.users.get(net, ()))

    def _settle(self, cycle: int) -> None:
        while self._dirty:
            k = heapq.heappop(self._dirty)
            self._waiting.discard(k)
            name, type_, inputs, out = self._circuit.cells[k]
            pins = {p: self._bits(nets) for p, nets in inputs.items()}
            self._place = cycle, name
            if type_ in self._memories:
                found = self._stored(type_, pins["A"], len(out))
            else:
                found = output(self._cells, type_, self._circuit.numbers[name], pins, len(out))
            self._set(out, found)

    def _stored(self, name: str, address: Bits, width: int) -> Bits:
        words = self._memories[name]
        if None in address:
            return (None,) * width
        if {*map(type, address)} - {int}:
            return self._cells.function(width, "read", address, tuple(words))
        at = self._cells.value(address).get((), 0) - self._circuit.numbers[name]["OFFSET"]
        return words[at] if 0 <= at < len(words) else (None,) * width

    def _clock(self, cycle: int) -> None:
        found = []
        for name, cell in self._circuit.registers.items():
            self._place = cycle, name
            found.append((cell["connections"]["Q"], self._next(cell, self._circuit.numbers[name])))
        for name in self._memories:
            self._write(name, self._circuit.memories[name]["connections"], self._circuit.numbers[name])
        for nets, bits in found:
            self._set(nets, bits)
        require(all(self._fixed(self._values[b]) for b in self._circuit.control), "control depends on data")

    def _fixed(self, bit: Bit) -> bool:
        """Whether a bit has one value, whatever the atoms are."""
        if isinstance(bit, tuple):
            return all(c % (2 << bit[1]) == 0 for m, c in self._book.polys[bit[0]].items() if m)
        return bit is not None

    def _next(self, cell: Mapping[str, Any], n: Mapping[str, int]) -> Bits:
        pins, type_ = cell["connections"], cell["type"]
        now, then = self._bits(pins["Q"]), self._bits(pins["D"])

        def pin(port: str) -> Bit:
            (bit,) = self._bits(pins[port])
            return bit if n[f"{port}_POLARITY"] else self._cells.invert(bit)

        def enabled(bits: Bits) -> Bits:
            return self._cells.choose(pin("EN"), bits, now, "EN") if type_[-1] == "e" else bits

        if type_ in ("$dff", "$dffe"):
            return enabled(then)
        value: Bits = tuple(int(c) if c in "01" else None for c in reversed(cell["parameters"]["SRST_VALUE"]))
        if type_ == "$sdffce":
            return enabled(self._cells.choose(pin("SRST"), value, then, "SRST"))
        after = enabled(then)
        return self._cells.choose(pin("SRST"), value, after, "SRST")

    def _write(self, name: str, pins: Mapping[str, Any], n: Mapping[str, int]) -> None:
        words, bits, width = self._memories[name], n["ABITS"], n["WIDTH"]
        for k in range(n["WR_PORTS"]):
            address = self._bits(pins["WR_ADDR"][k * bits : (k + 1) * bits])
            new, mask = (self._bits(pins[p][k * width : (k + 1) * width]) for p in ("WR_DATA", "WR_EN"))
            if not any(mask) and None not in mask:
                continue
            if {*map(type, address)} - {int}:
                words[:] = [(None,) * width] * len(words)
            else:
                at = self._cells.value(address).get((), 0) - n["OFFSET"]
                if 0 <= at < len(words):
                    old = words[at]
                    words[at] = tuple(
                        self._cells.choose(m, (b,), (a,))[0] for a, b, m in zip(old, new, mask, strict=True)
                    )
            self._mark(k for k, cell in enumerate(self._circuit.cells) if cell[1] == name)

    # ---- the product

    def _any(self) -> dict[str, Bits]:
        """Other operands."""
        found: dict[str, Bits] = {}
        for name in self._mine:
            width = len(self._circuit.ports[name])
            found[name] = self._cells.bits(self._book.atom(width), width) if self._known else (None,) * width
        return found

    def follow(self, phase: int, full: bool) -> None:
        """Run to the result and check the conclusion."""
        claim, ports = self._claim, self._circuit.ports
        mine = claim["in_flight"] + 1 if full else 0
        offered = taken = 0
        data = self._any()
        end = phase + _PATIENCE * (claim["latency"] + claim["interval"] * (mine + 1))
        for cycle in range(-claim["reset"], end):
            offer = cycle >= phase and (full or not offered)
            if offer and offered == mine:
                data = self._mine
            shown = data if offer else self._any()
            for name, bits in {"rst": (int(cycle < 0),), "i_valid": (int(offer),), "o_ready": (1,), **shown}.items():
                self._set(ports[name], bits)
            self._settle(cycle)
            if cycle >= 0:
                (ready,), (valid,) = self._bits(ports["i_ready"]), self._bits(ports["o_valid"])
                require(isinstance(ready, int) and isinstance(valid, int), "the handshake is not known")
                if valid and taken == mine:
                    result = self._read(self._bits(ports["o_r"]), claim["result"])
                    self._book.conclude(result, self._wanted, claim["p"], claim["end"])
                    return
                taken += 1 if valid else 0
                if offer and ready:
                    offered += 1
                    data = self._any()
            self._clock(cycle)
        raise RefusedError(f"no result within {end} cycles")

    def _read(self, bits: Bits, form: Mapping[str, Any]) -> Poly:
        if form["kind"] == "binary":
            return self._cells.value(bits)
        size = form["radix_bits"] + 2
        words = (bits[k * size : (k + 1) * size] for k in range(form["digits"]))
        return combined(*((1 << form["radix_bits"] * k, self._cells.value(word)) for k, word in enumerate(words)))
