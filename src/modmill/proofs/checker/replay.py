# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The checker runs the netlist of a certificate, once for each run of the proof and each case of a run."""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from modmill.proofs.checker.cell_rules import Bit, Bits, Cells, output
from modmill.proofs.checker.circuit import Circuit, parameters
from modmill.proofs.checker.recheck import Book, Poly, RefusedError, combined, numbers, require
from modmill.proofs.checker.residues import conclude

VERSION = 4
_OPERANDS = ("i_a", "i_b")
_PATIENCE = 4
Decision = tuple[tuple[int, str, str], int]


def check(module: Mapping[str, Any], claim: Mapping[str, Any], lines: Iterable[str]) -> int:
    """Check a certificate: that the core whose netlist is ``module`` has the ``claim``. Returns the number of runs.
    Raises RefusedError with the reason and the line if it does not show this."""
    return check_runs(module, claim, lines, None)


def check_runs(
    module: Mapping[str, Any], claim: Mapping[str, Any], lines: Iterable[str],
    runs: Sequence[tuple[int, bool]] | None,
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
    module: Mapping[str, Any], claim: Mapping[str, Any], lines: Iterator[str],
    runs: Sequence[tuple[int, bool]] | None,
) -> int:  # fmt: skip
    word, version, digest, said, order, adders, control = numbers(next(lines, "[0, 0]"))
    require((word, version) == ("products", VERSION), f"no certificate of version {VERSION}")
    text = json.dumps(module, sort_keys=True, separators=(",", ":"))
    require(digest == hashlib.sha256(text.encode()).hexdigest(), "another netlist")
    require(said == claim, "another claim")
    circuit = Circuit(module, order, adders, control)
    begun, phases = list[str](), list[tuple[int, bool]]()
    for full in (False, True):
        kind, other, bits = numbers(next(lines, "[0, 0, 0]"))
        require(kind == "idle" and other == full, "no interval without operands")
        begun.append(bits)
        phases += [(phase, full) for phase in Run(circuit, claim, Book(lines), False, False, bits).phases()]
    runs = phases if runs is None else runs
    for phase, full in runs:
        todo: list[list[Decision]] = [[]]
        while todo:
            kind, *start, known, cases = numbers(next(lines, "[0, 0, 0, 0, 0]"))
            require(kind == "run" and start == [phase, full], f"no run for {(phase, full)}")
            run, prefix = Run(circuit, claim, Book(lines), known, cases, begun[full]), todo.pop()
            run.follow(phase, full)
            require(run.decided[: len(prefix)] == prefix, "the case is another one")
            for k in range(len(prefix), len(run.decided)):
                where, bit = run.decided[k]
                todo.append([*run.decided[:k], (where, 1 - bit)])
    require(next(lines, None) is None, "there are lines after the last run")
    return len(runs)


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
        self._values: dict[Any, Bit] = {"0": 0, "1": 1, "x": None, "z": None}
        self._dirty = list(range(len(circuit.cells)))
        self._waiting = set(self._dirty)
        for cell in circuit.registers.values():
            self._set(cell["connections"]["Q"], [circuit.initial.get(b) for b in cell["connections"]["Q"]])
        require(len(start) == len(circuit.control) and not set(start) - {"0", "1"}, "malformed bits of control")
        self._set(circuit.control, [int(c) for c in start])
        self._memories = {name: self._contents(cell) for name, cell in circuit.memories.items()}
        if claim["result"]["kind"] == "residues":
            self._cells.named = {}
        names = [n for n in _OPERANDS if n in circuit.ports]
        self._nothing: dict[str, Bits] = {n: (None,) * len(circuit.ports[n]) for n in names}

    def _operand(self, form: Mapping[str, Any]) -> tuple[Poly, Bits, list[Poly]]:
        """The number of an operand, the bits of its port, and its words if they are residues."""
        largest, book = self._claim["largest"], self._book
        if form["kind"] == "binary":
            number = book.ranged(largest)
            return number, self._cells.bits(number, form["width"]), []
        if form["kind"] == "residues":
            words = [book.atom(form["bits"]) for _ in form["moduli"]]
            return {(): 1}, tuple(bit for word in words for bit in self._cells.bits(word, form["bits"])), words
        require(form["kind"] == "digits", "the form of the operands has no rule")
        size = form["radix_bits"] + 2
        words = [book.atom(size) for _ in range(form["digits"])]
        number = combined(*((1 << form["radix_bits"] * k, word) for k, word in enumerate(words)))
        book.given[book.id(number)] = 0, largest
        return number, tuple(bit for word in words for bit in self._cells.bits(word, size)), []

    def _contents(self, cell: Mapping[str, Any]) -> list[Bits]:
        n = parameters(cell)
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
        if self._cells.named is not None and self._cells.is_short(address):
            address = self._cells.case_of(address)
        if {*map(type, address)} - {int}:
            offset = self._circuit.numbers[name]["OFFSET"]
            return self._cells.looked_up(list(self._memories).index(name), address, words, offset)
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
        if cycle >= 0:  # a table may have no word for what a counter is before the reset
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
        most = self._claim["result"].get("bits", 0)
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
                    old, new = words[at], self._cells.name(new, 1) if {*mask} == {1} and width <= most else new
                    words[at] = tuple(
                        self._cells.choose(m, (b,), (a,))[0] for a, b, m in zip(old, new, mask, strict=True)
                    )
            self._mark(k for k, cell in enumerate(self._circuit.cells) if cell[1] == name)

    # ---- the product

    def _any(self) -> dict[str, Bits]:
        """Other operands."""
        if not self._known:
            return self._nothing
        return {n: self._cells.bits(self._book.atom(len(bits)), len(bits)) for n, bits in self._nothing.items()}

    def phases(self) -> list[int]:
        """The phases of an interval, without those whose state is one of those of an earlier phase, and those whose
        operands are first operands of the next phase."""
        cycle, interval = self._prepare(), self._claim["interval"]
        first, waits, seen = list[int](), list[bool](), list[tuple[int, list[Bits]]]()
        for phase in range(interval + 1):
            state = self._state()
            first.append(next((k for k, one in seen if self._covers(one, state)), phase))
            if first[-1] == phase:
                seen.append((phase, state))
            if phase < interval:
                waits.append(self._waits(cycle + phase))
        self._book.finish()
        kept = set[int]()
        for phase in range(interval):
            passed, k = list[int](), first[phase]
            while k not in passed and k < interval:
                passed.append(k)
                k = first[k + 1] if waits[k] else k
            kept.add(passed[-1])
        return sorted(kept)

    def _state(self) -> list[Bits]:
        """The bits of control, then of each register and each word of a memory."""
        words = [self._bits(cell["connections"]["Q"]) for cell in self._circuit.registers.values()]
        return [self._bits(self._circuit.control), *words, *(word for m in self._memories.values() for word in m)]

    @staticmethod
    def _covers(one: list[Bits], other: list[Bits]) -> bool:
        """Whether all bits that are known in one state are so in the other; those of control are the same."""
        pairs = zip(one[1:], other[1:], strict=True)
        return one[0] == other[0] and all(a in (None, b) for x, y in pairs for a, b in zip(x, y, strict=True))

    def _waits(self, cycle: int) -> bool:
        """A cycle without operands; whether operands would not be accepted in it and would leave the same state."""
        before = self._state()[1:]
        self._show(cycle, self._nothing, i_valid=1)
        ready = self._handshake("i_ready")
        self._clock(cycle)
        after, words = self._state(), iter(before)
        for cell in self._circuit.registers.values():
            self._set(cell["connections"]["Q"], next(words))
        for name, memory in self._memories.items():
            memory[:] = [next(words) for _ in memory]
            self._mark(k for k, one in enumerate(self._circuit.cells) if one[1] == name)
        self._idle(cycle)
        return not ready and self._state() == after

    def follow(self, phase: int, full: bool) -> None:
        """Run to the result and check the conclusion."""
        claim, names = self._claim, list(self._nothing)
        operands = [self._operand(claim["operand"]) for _ in names]
        wanted: Poly = {(): claim["factor"]}
        for number, _, _ in operands:
            wanted = self._book.times(wanted, number)
        own: dict[str, Bits] = {n: bits for n, (_, bits, _) in zip(names, operands, strict=True)}
        mine = claim["in_flight"] + 1 if full else 0
        offered = taken = 0
        cycle = self._prepare()
        for _ in range(phase):
            self._idle(cycle)
            cycle += 1
        if self._known:
            self._fill()
        data = self._any()
        for now in range(cycle, cycle + _PATIENCE * (claim["latency"] + claim["interval"] * (mine + 1))):
            offer = full or not offered
            if offer and offered == mine:
                data = own
            self._show(now, data if offer else self._any(), i_valid=int(offer))
            ready, valid = self._handshake("i_ready"), self._handshake("o_valid")
            if valid and taken == mine:
                bits = self._bits(self._circuit.ports["o_r"])
                if self._cells.named is None:
                    self._book.conclude(self._read(bits, claim["result"]), wanted, claim["p"], claim["end"])
                else:
                    size, (x, y) = claim["result"]["bits"], (operands[0][2], operands[-1][2])
                    words = [self._cells.value(bits[k : k + size]) for k in range(0, len(bits), size)]
                    conclude(self._book, self._cells.named, claim, (x, y, words))
                return
            taken += valid
            if offer and ready:
                offered += 1
                data = self._any()
            self._clock(now)
        raise RefusedError("no result")

    def _idle(self, cycle: int, rst: int = 0) -> None:
        self._show(cycle, self._nothing, rst=rst)
        self._clock(cycle)

    def _prepare(self) -> int:
        """Reset, and load the modulus if there are words for it; returns the first cycle for operands."""
        load, loading = self._claim["load"], self._claim["loading"]
        for cycle in range(-self._claim["reset"], 0):
            self._idle(cycle, rst=1)
        done = since = cycle = 0
        while load and (done < len(load) or since < loading):
            require(cycle < _PATIENCE * (self._claim["latency"] + loading), "the modulus is not loaded")
            word = load[done] if done < len(load) else 0
            self._show(cycle, self._nothing, k_valid=int(done < len(load)), k_m=word)
            done += self._handshake("k_ready") if done < len(load) else 0
            since += done > 0
            self._clock(cycle)
            cycle += 1
        return cycle

    def _show(self, cycle: int, data: Mapping[str, Bits], **given: int) -> None:
        """Put values at the input ports."""
        values = {"rst": 0, "k_valid": 0, "k_m": 0, "i_valid": 0, "o_ready": 1, **given}
        for name, nets in self._circuit.ports.items():
            if name in values:
                self._set(nets, [values[name] >> k & 1 for k in range(len(nets))])
            elif name in data:
                self._set(nets, data[name])
        self._settle(cycle)

    def _handshake(self, port: str) -> int:
        (bit,) = self._bits(self._circuit.ports[port])
        require(isinstance(bit, int), "the handshake is not known")
        assert isinstance(bit, int)
        return bit

    def _read(self, bits: Bits, form: Mapping[str, Any]) -> Poly:
        if form["kind"] == "binary":
            return self._cells.value(bits)
        size = form["radix_bits"] + 2
        words = (bits[k * size : (k + 1) * size] for k in range(form["digits"]))
        return combined(*((1 << form["radix_bits"] * k, self._cells.value(word)) for k, word in enumerate(words)))
