# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Whether a mutant does the same as the original at its ports, by bit vectors (bitwuzla).

Both run side by side on the same inputs. Outputs are the same when valid and ready are, and data while it is valid.
Three proofs are tried; that of `miter.py` comes between these two:

    1. From any state, the same in both, outputs and next states are the same.
    2. After power-up in the same state and a reset, each register and memory is the same in both: always, or while a
       bit of the control stands at a value; and that is enough for the same outputs. Which ones, and which bits, is
       found by giving up what a counterexample breaks, until induction over one cycle holds (resets at any time
       included). It helps to know states that the original never reaches: bits that never change after a reset, and
       pairs of bits of which one stands at a value or the other does; such clauses come from a simulation here, and
       those stay that an induction of their own proves.

A product of two words is an unknown function of them. So a mutant that has a proof is equivalent; one that has none
may be.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modmill.flow import miter, tools
from modmill.flow.mutate import ENABLES, REGISTERS, Bit, Cell, Mutated

STATELESS = "same outputs and next state in every state"
GUARDED = "same outputs by induction from reset"
_CYCLES = 2000
"""Of the simulation that candidates come from."""
_CLAUSES = 4000
"""Most candidates."""
_RESET_ONE_IN = 150
"""Cycles between resets there, on average."""
_SPLIT = {"$and", "$or", "$xor", "$xnor", "$not", "$mux"}

Term = Any
Where = tuple[Term, int] | str
"""A bit: of a term, or a constant."""
State = dict[str, Term]


@dataclass
class _Plan:
    """Cells of a module in an order in which each comes after what drives it."""

    ports: Mapping[str, Any]
    gates: list[tuple[str, Cell]]
    registers: dict[str, Cell]
    memories: dict[str, Cell]

    @classmethod
    def of(cls, module: Mapping[str, Any]) -> _Plan:
        cells = module["cells"]
        registers = {name: cell for name, cell in cells.items() if cell["type"] in REGISTERS}
        memories = {name: cell for name, cell in cells.items() if cell["type"] == "$mem_v2"}
        gates = [(name, cell) for name, cell in cells.items() if name not in registers and name not in memories]
        gates += [read for name, cell in memories.items() for read in _reads(name, cell)]
        ordered = _ordered(gates)
        if ordered is None:  # a word whose bits depend on one another
            ordered = _ordered([bit for name, cell in gates for bit in _bits(name, cell)])
        if ordered is None:
            raise tools.ToolError("yosys: the netlist has a loop of whole words, and no proof is tried")
        return cls(module["ports"], ordered, registers, memories)


def _reads(name: str, cell: Cell) -> Iterator[tuple[str, Cell]]:
    """A gate for each read port of a memory."""
    width, bits = int(cell["parameters"]["WIDTH"], 2), int(cell["parameters"]["ABITS"], 2)
    for port in range(int(cell["parameters"]["RD_PORTS"], 2)):
        pins = cell["connections"]
        inputs = {"ADDR": pins["RD_ADDR"][port * bits : (port + 1) * bits]}
        yield f"{name}:{port}", {
            "type": "read", "memory": name, "parameters": {},
            "connections": inputs | {"Y": pins["RD_DATA"][port * width : (port + 1) * width]},
        }  # fmt: skip


def _bits(name: str, cell: Cell) -> Iterator[tuple[str, Cell]]:
    """A gate for each bit of a bitwise cell, the cell itself else."""
    pins = cell["connections"]
    if cell["type"] not in _SPLIT or any(len(pins[p]) < len(pins["Y"]) for p in "AB" if p in pins):
        yield name, cell
        return
    for k, y in enumerate(pins["Y"]):
        own = {port: bits if port == "S" else [bits[k]] for port, bits in pins.items() if port != "Y"}
        yield f"{name}:{k}", {**cell, "connections": {**own, "Y": [y]}}


def _ordered(gates: Sequence[tuple[str, Cell]]) -> list[tuple[str, Cell]] | None:
    driver = {bit: k for k, (_, cell) in enumerate(gates) for bit in cell["connections"]["Y"]}
    needs, users = [0] * len(gates), defaultdict(list)
    for k, (_, cell) in enumerate(gates):
        sources = {driver[b] for p, bits in cell["connections"].items() if p != "Y" for b in bits if b in driver}
        needs[k] = len(sources)
        for source in sources:
            users[source].append(k)
    ready = [k for k, count in enumerate(needs) if not count]
    out = []
    while ready:
        k = ready.pop()
        out.append(gates[k])
        for user in users[k]:
            needs[user] -= 1
            if not needs[user]:
                ready.append(user)
    return out if len(out) == len(gates) else None


class _Words:
    """Terms of bitwuzla from bits and words, with what is constant worked out."""

    def __init__(self) -> None:
        try:
            import bitwuzla
        except ImportError:
            raise tools.ToolError("bitwuzla: the Python package bitwuzla is not installed") from None
        self.z = bitwuzla
        self.terms = bitwuzla.TermManager()
        self.k = bitwuzla.Kind
        self._count = 0
        self._products: dict[int, Term] = {}

    def variable(self, bits: int) -> Term:
        self._count += 1
        return self.terms.mk_const(self.terms.mk_bv_sort(bits), f"v{self._count}")

    def memory(self, address: int, width: int) -> Term:
        self._count += 1
        sort = self.terms.mk_array_sort(self.terms.mk_bv_sort(address), self.terms.mk_bv_sort(width))
        return self.terms.mk_const(sort, f"m{self._count}")

    def value(self, bits: int, value: int) -> Term:
        return self.terms.mk_bv_value(self.terms.mk_bv_sort(bits), value)

    def product(self, a: Term, b: Term) -> Term:
        """A product as an unknown function of its factors: equal factors give equal products, and no more is known."""
        bits = a.sort().bv_size()
        if bits not in self._products:
            sort = self.terms.mk_bv_sort(bits)
            self._products[bits] = self.terms.mk_const(self.terms.mk_fun_sort([sort, sort], sort), f"product{bits}")
        return self.op(self.k.APPLY, [self._products[bits], a, b])

    def op(self, kind: Any, terms: Sequence[Term], indices: Sequence[int] = ()) -> Term:
        return self.terms.mk_term(kind, list(terms), list(indices))

    def word(self, bits: Sequence[Where]) -> Term:
        """A word of bits, the least significant first."""
        parts: list[Term] = []
        at = 0
        while at < len(bits):
            first, end = bits[at], at + 1
            if isinstance(first, str):
                while end < len(bits) and isinstance(bits[end], str):
                    end += 1
                parts.append(self.value(end - at, int("".join(map(str, bits[at:end]))[::-1], 2)))
            else:
                term, low = first
                while end < len(bits) and not isinstance(bits[end], str) and bits[end] == (term, low + end - at):
                    end += 1
                whole = low == 0 and end - at == term.sort().bv_size()
                parts.append(term if whole else self.op(self.k.BV_EXTRACT, [term], [low + end - at - 1, low]))
            at = end
        out = parts[0]
        for part in parts[1:]:
            out = self.op(self.k.BV_CONCAT, [part, out])
        return out

    def true(self, bit: Where) -> Term:
        """Whether a bit is 1."""
        if isinstance(bit, str):
            return self.terms.mk_true() if bit == "1" else self.terms.mk_false()
        return self.op(self.k.EQUAL, [self.word([bit]), self.value(1, 1)])

    def bit(self, condition: Term) -> list[Where]:
        return [(self.op(self.k.ITE, [condition, self.value(1, 1), self.value(1, 0)]), 0)]

    def any(self, conditions: Sequence[Term]) -> Term:
        if len(conditions) < 2:
            return conditions[0] if conditions else self.terms.mk_false()
        return self.op(self.k.OR, conditions)

    def different(self, one: Term, two: Term) -> Term:
        return self.op(self.k.DISTINCT, [one, two])

    def solve(self, conditions: Iterable[Term], seconds: float, *, model: bool = False) -> tuple[str, Any]:
        """ "sat", "unsat" or "unknown", and the solver."""
        options = self.z.Options()
        options.set(self.z.Option.TIME_LIMIT_PER, max(1, int(seconds * 1000)))
        options.set(self.z.Option.PRODUCE_MODELS, model)
        solver = self.z.Bitwuzla(self.terms, options)
        for condition in conditions:
            solver.assert_formula(condition)
        answer = solver.check_sat()
        if answer == self.z.Result.SAT:
            return "sat", solver
        return ("unsat" if answer == self.z.Result.UNSAT else "unknown"), solver


class _Cycle:
    """One cycle of the module: state and inputs to outputs and the next state. ``enable``: the mutant that runs."""

    def __init__(self, words: _Words, plan: _Plan, state: State, inputs: Mapping[str, Term], enable: int) -> None:
        self.w, self._plan, self._state = words, plan, state
        self._at: dict[Bit, Where] = {"0": "0", "1": "1", "x": "0", "z": "0"}
        for name, port in plan.ports.items():
            if name == ENABLES:
                self._at.update((bit, "1" if k == enable and k else "0") for k, bit in enumerate(port["bits"]))
            elif port["direction"] == "input" and name in inputs:
                self._at.update((bit, (inputs[name], k)) for k, bit in enumerate(port["bits"]))
        for name, cell in plan.registers.items():
            self._at.update((bit, (state[name], k)) for k, bit in enumerate(cell["connections"]["Q"]))
        for _, cell in plan.gates:
            out = self._gate(cell)
            self._at.update(zip(cell["connections"]["Y"], out, strict=True))

    def bits(self, nets: Sequence[Bit]) -> list[Where]:
        return [self._at.get(bit, "0") for bit in nets]

    def output(self, name: str) -> list[Where]:
        return self.bits(self._plan.ports[name]["bits"])

    def _all(self, term: Term) -> list[Where]:
        return [(term, k) for k in range(term.sort().bv_size())]

    def _gate(self, cell: Cell) -> list[Where]:
        pins = {port: self.bits(bits) for port, bits in cell["connections"].items() if port != "Y"}
        width, kind = len(cell["connections"]["Y"]), cell["type"]
        if kind == "read":
            memory = self._state[cell["memory"]]
            return self._all(self.w.op(self.w.k.ARRAY_SELECT, [memory, self.w.word(pins["ADDR"])]))
        if kind == "$mux":
            return self._mux(pins["S"][0], pins["A"], pins["B"])
        if kind == "$pmux":
            out = pins["A"]
            for k in reversed(range(len(pins["S"]))):
                out = self._mux(pins["S"][k], out, pins["B"][k * width : (k + 1) * width])
            return out
        if width == 1 and kind in ("$and", "$or", "$xor", "$not") and (known := self._folded(kind, pins)) is not None:
            return known
        signed = all(int(cell["parameters"][f"{p}_SIGNED"], 2) for p in ("A", "B") if p in pins)
        if kind in _BOOLEAN:
            return self._padded(self.w.bit(_BOOLEAN[kind](self, pins)), width)
        if kind in _COMPARED:
            return self._padded(self._compared(kind, pins, signed), width)
        if kind in _SHIFTS:
            size = max(width, len(pins["A"]), len(pins["B"]))
            a, b = self._extended(pins["A"], size, signed), self._extended(pins["B"], size, False)
            return self._all(self.w.op(getattr(self.w.k, _SHIFTS[kind]), [a, b]))[:width]
        if kind not in _ARITHMETIC:
            raise tools.ToolError(f"no proof: cells {kind} are not known here")
        terms = [self._extended(pins[p], width, signed) for p in ("A", "B") if p in pins]
        if kind == "$pos":
            return self._all(terms[0])
        if kind == "$mul":
            return self._all(self.w.product(*terms))
        return self._all(self.w.op(getattr(self.w.k, _ARITHMETIC[kind]), terms))

    def _folded(self, kind: str, pins: Mapping[str, list[Where]]) -> list[Where] | None:
        """What gates of one bit give when an input is constant: enables are."""
        if kind == "$not":
            a = pins["A"][0]
            return ["1" if a == "0" else "0"] if isinstance(a, str) else None
        a, b = pins["A"][0], pins["B"][0]
        if isinstance(a, str):
            a, b = b, a
        if not isinstance(b, str):
            return None
        if kind == "$and":
            return [a] if b == "1" else ["0"]
        if kind == "$or":
            return [a] if b == "0" else ["1"]
        if b == "0":
            return [a]
        return ["1" if a == "0" else "0"] if isinstance(a, str) else None

    def _mux(self, choice: Where, low: list[Where], high: list[Where]) -> list[Where]:
        if isinstance(choice, str):
            return high if choice == "1" else low
        if low == high:
            return low
        return self._all(self.w.op(self.w.k.ITE, [self.w.true(choice), self.w.word(high), self.w.word(low)]))

    def _padded(self, bits: list[Where], width: int) -> list[Where]:
        return [*bits, *(["0"] * (width - 1))]

    def _extended(self, bits: list[Where], width: int, signed: bool) -> Term:
        fill: Where = bits[-1] if signed and bits else "0"
        return self.w.word([*bits, *([fill] * (width - len(bits)))][:width])

    def _compared(self, kind: str, pins: Mapping[str, list[Where]], signed: bool) -> list[Where]:
        width = max(len(pins["A"]), len(pins["B"]))
        a, b = (self._extended(pins[p], width, signed) for p in ("A", "B"))
        if kind in ("$eq", "$ne"):
            return self.w.bit(self.w.op(self.w.k.EQUAL if kind == "$eq" else self.w.k.DISTINCT, [a, b]))
        return self.w.bit(self.w.op(getattr(self.w.k, _COMPARED[kind].format("S" if signed else "U")), [a, b]))

    def nonzero(self, bits: list[Where]) -> Term:
        return self.w.different(self.w.word(bits), self.w.value(len(bits), 0))

    def ones(self, bits: list[Where]) -> Term:
        return self.w.op(self.w.k.EQUAL, [self.w.word(bits), self.w.value(len(bits), (1 << len(bits)) - 1)])

    def odd(self, bits: list[Where]) -> Term:
        return self.w.true((self.w.op(self.w.k.BV_REDXOR, [self.w.word(bits)]), 0))

    def negated(self, condition: Term) -> Term:
        return self.w.op(self.w.k.NOT, [condition])

    def after(self) -> State:
        """The next state."""
        out = {name: self._next(name, cell) for name, cell in self._plan.registers.items()}
        return out | {name: self._written(name, cell) for name, cell in self._plan.memories.items()}

    def _next(self, name: str, cell: Cell) -> Term:
        pins, parameters, kind = cell["connections"], cell["parameters"], cell["type"]
        old, new = self._all(self._state[name]), self.bits(pins["D"])

        def gated(port: str) -> Where:
            (bit,) = self.bits(pins[port])
            if int(parameters[f"{port}_POLARITY"], 2):
                return bit
            return (
                ("1" if bit == "0" else "0") if isinstance(bit, str) else self.w.bit(self.negated(self.w.true(bit)))[0]
            )

        value = [c if c in "01" else "0" for c in reversed(parameters.get("SRST_VALUE", ""))]
        if kind == "$sdffce":
            new = self._mux(gated("SRST"), new, list(value))
        if "EN" in pins:
            new = self._mux(gated("EN"), old, new)
        if kind in ("$sdff", "$sdffe"):
            new = self._mux(gated("SRST"), new, list(value))
        return self.w.word(new)

    def _written(self, name: str, cell: Cell) -> Term:
        pins, parameters = cell["connections"], cell["parameters"]
        width, bits = int(parameters["WIDTH"], 2), int(parameters["ABITS"], 2)
        memory, k = self._state[name], self.w.k
        for port in range(int(parameters["WR_PORTS"], 2)):
            enables = self.bits(pins["WR_EN"][port * width : (port + 1) * width])
            address = self.w.word(self.bits(pins["WR_ADDR"][port * bits : (port + 1) * bits]))
            data = self.bits(pins["WR_DATA"][port * width : (port + 1) * width])
            if any(enable != enables[0] for enable in enables):
                old = self._all(self.w.op(k.ARRAY_SELECT, [memory, address]))
                data = [self._mux(e, [o], [d])[0] for e, o, d in zip(enables, old, data, strict=True)]
                stored = self.w.op(k.ARRAY_STORE, [memory, address, self.w.word(data)])
            else:
                stored = self.w.op(k.ARRAY_STORE, [memory, address, self.w.word(data)])
                if enables[0] != "1":
                    stored = self.w.op(k.ITE, [self.w.true(enables[0]), stored, memory])
            memory = stored
        return memory


_BOOLEAN: dict[str, Callable[[_Cycle, Mapping[str, list[Where]]], Term]] = {
    "$reduce_or": lambda c, p: c.nonzero(p["A"]), "$reduce_bool": lambda c, p: c.nonzero(p["A"]),
    "$logic_not": lambda c, p: c.negated(c.nonzero(p["A"])), "$reduce_and": lambda c, p: c.ones(p["A"]),
    "$reduce_xor": lambda c, p: c.odd(p["A"]), "$reduce_xnor": lambda c, p: c.negated(c.odd(p["A"])),
    "$logic_and": lambda c, p: c.w.op(c.w.k.AND, [c.nonzero(p["A"]), c.nonzero(p["B"])]),
    "$logic_or": lambda c, p: c.w.op(c.w.k.OR, [c.nonzero(p["A"]), c.nonzero(p["B"])]),
}  # fmt: skip
_COMPARED = {"$eq": "", "$ne": "", "$lt": "BV_{}LT", "$le": "BV_{}LE", "$gt": "BV_{}GT", "$ge": "BV_{}GE"}
_SHIFTS = {"$shl": "BV_SHL", "$shr": "BV_SHR", "$shiftx": "BV_SHR", "$shift": "BV_SHR", "$sshl": "BV_SHL"}
_ARITHMETIC = {
    "$add": "BV_ADD", "$sub": "BV_SUB", "$mul": "BV_MUL", "$and": "BV_AND", "$or": "BV_OR", "$xor": "BV_XOR",
    "$xnor": "BV_XNOR", "$not": "BV_NOT", "$neg": "BV_NEG", "$pos": "",
}  # fmt: skip


class Prover:
    """Proofs about the mutants of one text. ``largest``: the largest value that a data input takes while valid."""

    def __init__(self, mutated: Mutated, seconds: float = 30) -> None:
        self._mutated = mutated
        self._plan = _Plan.of(mutated.module)
        self._w = _Words()
        self._seconds = seconds
        self._known: _Known | None = None

    def prove(self, numbers: Sequence[int], seconds: float = 20) -> dict[int, str]:
        """How mutants were proved equivalent, those that were; ``seconds`` is for one mutant and one proof."""
        found = {k: STATELESS for k in numbers if not self._initial(k) and self._equal_again(k, seconds)}
        left = [k for k in numbers if k not in found and not self._initial(k)]
        resets = {name for name, _ in _traces(self._plan)}
        found |= dict.fromkeys(miter.equivalent(self._mutated, left, resets, seconds), miter.REACHED)
        left = [k for k in numbers if k not in found]
        return found | {k: GUARDED for k in left if self._guarded(k, seconds)}

    def _initial(self, number: int) -> bool:
        """Whether a mutant changes the initial value of a register."""
        mutant = self._mutated.mutants[number - 1]
        return mutant.kind == "initial" and mutant.cell != "$mem_v2"

    def _guarded(self, number: int, seconds: float) -> bool:
        """The second proof."""
        end = time.monotonic() + seconds
        if self._known is None:
            self._known = _known(self._w, self._plan, self._seconds)
            end += self._seconds
        initial = self._initial(number)
        loose = self._mutated.places[number - 1] if initial else ""
        return _Pair(self._w, self._plan, self._known, 0 if initial else number, end, loose).proof()

    def _equal_again(self, number: int, seconds: float) -> bool:
        """From one state, outputs are equal and then the states are."""
        state = _state(self._w, self._plan)
        inputs = _inputs(self._w, self._plan)
        a, b = (_Cycle(self._w, self._plan, state, inputs, k) for k in (0, number))
        wrong = [*_outputs_differ(self._w, self._plan, a, b), *_states_differ(self._w, a.after(), b.after())]
        return not wrong or self._w.solve([self._w.any(wrong)], seconds)[0] == "unsat"


def _state(w: _Words, plan: _Plan) -> State:
    out: State = {name: w.variable(len(cell["connections"]["Q"])) for name, cell in plan.registers.items()}
    for name, cell in plan.memories.items():
        out[name] = w.memory(int(cell["parameters"]["ABITS"], 2), int(cell["parameters"]["WIDTH"], 2))
    return out


def _inputs(w: _Words, plan: _Plan, reset: int | None = None) -> dict[str, Term]:
    """Inputs of a cycle."""
    ports = {n: p for n, p in plan.ports.items() if p["direction"] == "input" and n not in (ENABLES, "clk")}
    out = {name: w.variable(len(port["bits"])) for name, port in ports.items()}
    return out if reset is None else out | {"rst": w.value(1, reset)}


def _outputs_differ(w: _Words, plan: _Plan, one: _Cycle, two: _Cycle) -> list[Term]:
    """Conditions under which the outputs of a cycle differ; data counts while it is valid."""
    found = []
    for name, port in plan.ports.items():
        a, b = one.output(name), two.output(name)
        if port["direction"] == "output" and a != b:
            differ = w.different(w.word(a), w.word(b))
            if name.startswith("o_") and name != "o_valid":
                differ = w.op(w.k.AND, [w.true(one.output("o_valid")[0]), differ])
            found.append(differ)
    return found


def _states_differ(w: _Words, one: State, two: State) -> list[Term]:
    return [w.different(one[n], two[n]) for n in one if one[n] != two[n]]


# ---------------------------------------------------------------------------------------------- simulation


class _Text:
    """The module as a Python function of one cycle: registers and inputs to the next registers, memories in place."""

    def __init__(self, plan: _Plan) -> None:
        self._plan = plan
        self._at: dict[Bit, tuple[str, int] | str] = {"0": "0", "1": "1", "x": "0", "z": "0"}
        self.inputs = [n for n, p in plan.ports.items() if p["direction"] == "input" and n not in (ENABLES, "clk")]
        self.registers, self.memories = list(plan.registers), list(plan.memories)
        lines = [f"def step({', '.join([*(f'r{k}' for k in range(len(self.registers))), 'i', 'm'])}):"]
        for k, name in enumerate(self.registers):
            self._define(f"r{k}", plan.registers[name]["connections"]["Q"])
        for k, name in enumerate(self.inputs):
            lines.append(f"    i{k} = i[{k}]")
            self._define(f"i{k}", plan.ports[name]["bits"])
        for k, (_, cell) in enumerate(plan.gates):
            lines.append(f"    g{k} = {self._gate(cell)}")
            self._define(f"g{k}", cell["connections"]["Y"])
        after = [self._next(k, plan.registers[name]) for k, name in enumerate(self.registers)]
        lines.append(f"    after = [{', '.join(after)}]")
        for k, name in enumerate(self.memories):
            lines += self._writes(k, plan.memories[name])
        lines.append("    return after")
        names: dict[str, Any] = {}
        exec(compile("\n".join(lines), "netlist", "exec"), names)
        self.step: Callable[..., list[int]] = names["step"]

    def _define(self, name: str, nets: Sequence[Bit]) -> None:
        self._at.update((bit, (name, k)) for k, bit in enumerate(nets))

    def _word(self, nets: Sequence[Bit], signed: bool = False) -> str:
        parts, at = [], 0
        bits = [self._at.get(bit, "0") for bit in nets]
        while at < len(bits):
            first, end = bits[at], at + 1
            if isinstance(first, str):
                if first == "1":
                    parts.append(str(1 << at))
            else:
                name, low = first
                while end < len(bits) and bits[end] == (name, low + end - at):
                    end += 1
                part = f"({name} >> {low} & {(1 << end - at) - 1})"
                parts.append(f"({part} << {at})" if at else part)
            at = end
        word = f"({' | '.join(parts) or '0'})"
        top = 1 << len(nets) - 1
        return f"(({word} ^ {top}) - {top})" if signed else word

    def _gate(self, cell: Cell) -> str:
        pins, kind, width = cell["connections"], cell["type"], len(cell["connections"]["Y"])
        if kind == "read":
            return f"m[{self.memories.index(cell['memory'])}][{self._word(pins['ADDR'])}]"
        signed = kind not in ("$mux", "$pmux") and all(
            int(cell["parameters"][f"{p}_SIGNED"], 2) for p in "AB" if p in pins
        )
        a = self._word(pins["A"], signed)
        if kind == "$pmux":
            out = a
            for k in reversed(range(len(pins["S"]))):
                out = (
                    f"({self._word(pins['B'][k * width : (k + 1) * width])} if {self._word([pins['S'][k]])} else {out})"
                )
            return out
        b = self._word(pins["B"], signed) if "B" in pins else "0"
        ones = (1 << len(pins["A"])) - 1
        forms = {
            "$mux": "({b} if {s} else {a})", "$not": "~{a} & {m}", "$pos": "{a} & {m}", "$neg": "-{a} & {m}",
            "$add": "{a} + {b} & {m}", "$sub": "{a} - {b} & {m}", "$mul": "{a} * {b} & {m}", "$and": "{a} & {b} & {m}",
            "$or": "({a} | {b}) & {m}", "$xor": "({a} ^ {b}) & {m}", "$xnor": "~({a} ^ {b}) & {m}",
            "$eq": "int({a} == {b})", "$ne": "int({a} != {b})", "$lt": "int({a} < {b})", "$le": "int({a} <= {b})",
            "$gt": "int({a} > {b})", "$ge": "int({a} >= {b})", "$reduce_or": "int({a} != 0)",
            "$reduce_bool": "int({a} != 0)", "$logic_not": "int({a} == 0)", "$reduce_and": "int({a} == {o})",
            "$reduce_xor": "{a}.bit_count() & 1", "$reduce_xnor": "~{a}.bit_count() & 1",
            "$logic_and": "int({a} != 0 and {b} != 0)", "$logic_or": "int({a} != 0 or {b} != 0)",
            "$shl": "({a} << min({b}, 9999)) & {m}", "$shr": "({a} >> {b}) & {m}", "$shiftx": "({a} >> {b}) & {m}",
            "$sshl": "({a} << min({b}, 9999)) & {m}", "$shift": "({a} >> {b}) & {m}",
        }  # fmt: skip
        if kind not in forms:
            raise tools.ToolError(f"no proof: cells {kind} are not known here")
        s = self._word(pins["S"]) if "S" in pins else "0"
        return forms[kind].format(a=a, b=b, s=s, m=(1 << width) - 1, o=ones)

    def _active(self, cell: Cell, port: str) -> str:
        bit = self._word(cell["connections"][port])
        return bit if int(cell["parameters"][f"{port}_POLARITY"], 2) else f"(not {bit})"

    def _next(self, k: int, cell: Cell) -> str:
        pins, kind = cell["connections"], cell["type"]
        new = self._word(pins["D"])
        value = int(cell["parameters"].get("SRST_VALUE", "0").replace("x", "0"), 2)
        if kind == "$sdffce":
            new = f"({value} if {self._active(cell, 'SRST')} else {new})"
        if "EN" in pins:
            new = f"({new} if {self._active(cell, 'EN')} else r{k})"
        if kind in ("$sdff", "$sdffe"):
            new = f"({value} if {self._active(cell, 'SRST')} else {new})"
        return new

    def _writes(self, k: int, cell: Cell) -> Iterator[str]:
        pins, parameters = cell["connections"], cell["parameters"]
        width, bits = int(parameters["WIDTH"], 2), int(parameters["ABITS"], 2)
        for port in range(int(parameters["WR_PORTS"], 2)):
            enable = self._word(pins["WR_EN"][port * width : (port + 1) * width])
            address = self._word(pins["WR_ADDR"][port * bits : (port + 1) * bits])
            data = self._word(pins["WR_DATA"][port * width : (port + 1) * width])
            yield f"    e, a = {enable}, {address}"
            yield f"    m[{k}][a] = m[{k}][a] & ~e | {data} & e"


def _traces(plan: _Plan) -> dict[tuple[str, int], int]:
    """Values of the bits that a reset sets, over `_CYCLES` cycles of noise at the inputs: bit k is that of cycle k."""
    rnd, text = random.Random(1), _Text(plan)
    sizes = [len(plan.registers[name]["connections"]["Q"]) for name in text.registers]
    ports = [len(plan.ports[name]["bits"]) for name in text.inputs]
    memories = []
    for name in text.memories:
        parameters = plan.memories[name]["parameters"]
        words = range(1 << int(parameters["ABITS"], 2))
        memories.append([rnd.getrandbits(int(parameters["WIDTH"], 2)) for _ in words])

    def noise(reset: int) -> list[int]:
        return [reset if name == "rst" else rnd.getrandbits(n) for name, n in zip(text.inputs, ports, strict=True)]

    def start() -> list[int]:
        return text.step(*map(rnd.getrandbits, sizes), noise(1), memories)

    starts = [start() for _ in range(40)]
    same = [~(min(values) ^ max(values)) for values in zip(*starts, strict=True)]
    for each in starts:
        same = [known & ~(value ^ first) for known, value, first in zip(same, each, starts[0], strict=True)]
    state, found = start(), [[0] * n for n in sizes]
    for cycle in range(_CYCLES):
        for bits, value in zip(found, state, strict=True):
            for k in range(len(bits)):
                bits[k] |= (value >> k & 1) << cycle
        state = text.step(*state, noise(int(rnd.randrange(_RESET_ONE_IN) == 0)), memories)
    return {
        (name, k): trace
        for name, bits, known in zip(text.registers, found, same, strict=True)
        for k, trace in enumerate(bits)
        if known >> k & 1
    }


# ---------------------------------------------------------------------------------------------- what always holds

Literal = tuple[str, int, int]
"""A register, a bit of it, and its value."""


@dataclass(frozen=True)
class _Known:
    """Of the original: bits that a reset sets, and clauses of one or two literals that hold in every state after the
    first reset."""

    controls: tuple[tuple[str, int], ...]
    clauses: tuple[tuple[Literal, ...], ...]


def _known(w: _Words, plan: _Plan, seconds: float) -> _Known:
    """Clauses that a simulation does not break, and of these those that hold by induction."""
    traces = _traces(plan)
    controls = tuple(traces)
    every = (1 << _CYCLES) - 1
    held = {(*bit, value): trace if value else every ^ trace for bit, trace in traces.items() for value in (0, 1)}
    fixed = [literal for literal, trace in held.items() if trace == every]
    literals = [literal for literal, trace in held.items() if trace not in (0, every)]
    found: list[tuple[Literal, ...]] = [(literal,) for literal in fixed]
    for k, one in enumerate(literals):
        found += [(one, two) for two in literals[k + 1 :] if held[one] | held[two] == every and one[:2] != two[:2]]
    return _Known(controls, tuple(_inductive(w, plan, found[:_CLAUSES], time.monotonic() + seconds)))


def _inductive(
    w: _Words, plan: _Plan, clauses: Sequence[tuple[Literal, ...]], end: float
) -> Sequence[tuple[Literal, ...]]:
    """The clauses that hold after a reset and, together, from each cycle to the next; none if time runs out."""
    state = _state(w, plan)
    for reset in (1, None):
        later = _Cycle(w, plan, state, _inputs(w, plan, reset), 0).after()
        while clauses:
            broken = [w.op(w.k.NOT, [_clause(w, later, clause)]) for clause in clauses]
            given = [] if reset else [_clause(w, state, clause) for clause in clauses]
            answer, solver = w.solve([*given, w.any(broken)], end - time.monotonic(), model=True)
            if answer == "unsat":
                break
            if answer == "unknown":
                return ()
            clauses = [c for c, term in zip(clauses, broken, strict=True) if not solver.get_value(term).value()]
    return clauses


def _clause(w: _Words, state: State, clause: Sequence[Literal]) -> Term:
    return w.any([_literal(w, state, literal) for literal in clause])


def _literal(w: _Words, state: State, literal: Literal) -> Term:
    name, k, value = literal
    return w.op(w.k.EQUAL, [w.word([(state[name], k)]), w.value(1, value)])


class _Pair:
    """Original and mutant side by side, and what stays equal in them: registers and memories, always or while a bit of
    the control stands at a value. ``loose``: what may differ at power-up."""

    def __init__(self, w: _Words, plan: _Plan, known: _Known, number: int, end: float, loose: str) -> None:
        self._w, self._plan, self._known, self._number, self._end = w, plan, known, number, end
        self._loose = loose
        self._state = _state(w, plan), _state(w, plan)
        self._guards: dict[str, list[Literal] | None] = dict.fromkeys(self._state[0])  # None: always equal

    def proof(self) -> bool:
        """Whether the mutant is proved equivalent."""
        w = self._w
        one = two = self._state[0]
        if self._loose:
            two = one | {self._loose: self._state[1][self._loose]}
        inputs = _inputs(w, self._plan, 1)
        first = (
            _Cycle(w, self._plan, one, inputs, 0).after(),
            _Cycle(w, self._plan, two, inputs, self._number).after(),
        )
        cycles = self._cycles(None)
        later = tuple(cycle.after() for cycle in cycles)
        running = self._cycles(0)
        wrong = w.any(_outputs_differ(w, self._plan, *running))
        while True:
            changed = self._weaken([], *first)
            if changed is False:
                changed = self._weaken(self._given(), *later)
            if changed is None:
                return False
            if not changed:
                break
        answer, _ = w.solve([*self._given(), wrong], self._end - time.monotonic())
        return answer == "unsat"

    def _cycles(self, reset: int | None) -> tuple[_Cycle, _Cycle]:
        inputs = _inputs(self._w, self._plan, reset)
        one, two = self._state
        return (
            _Cycle(self._w, self._plan, one, inputs, 0),
            _Cycle(self._w, self._plan, two, inputs, self._number),
        )

    def _given(self) -> list[Term]:
        """What is assumed of the two states."""
        w, (one, two) = self._w, self._state
        out = [_clause(w, one, clause) for clause in self._known.clauses]
        for name, guards in self._guards.items():
            equal = w.op(w.k.EQUAL, [one[name], two[name]])
            if guards is None:
                out.append(equal)
            elif guards:
                out.append(w.op(w.k.IMPLIES, [w.any([_literal(w, one, g) for g in guards]), equal]))
        return out

    def _weaken(self, given: list[Term], one: State, two: State) -> bool | None:
        """Give up what one counterexample breaks; whether there was one, None when time has run out."""
        w = self._w
        broken: dict[tuple[str, Literal | None], Term] = {}
        for name, guards in self._guards.items():
            if one[name] == two[name]:
                continue
            differ = w.different(one[name], two[name])
            if guards is None:
                broken[name, None] = differ
            for guard in guards or ():
                broken[name, guard] = w.op(w.k.AND, [_literal(w, one, guard), differ])
        if (rest := self._end - time.monotonic()) <= 0:
            return None
        answer, solver = w.solve([*given, w.any(list(broken.values()))], rest, model=True)
        if answer == "unsat":
            return False
        if answer == "unknown":
            return None
        for (name, given_up), term in broken.items():
            if solver.get_value(term).value():
                kept = self._guards[name]
                if given_up is None or kept is None:
                    self._guards[name] = [(*bit, value) for bit in self._known.controls for value in (0, 1)]
                else:
                    kept.remove(given_up)
        return True
