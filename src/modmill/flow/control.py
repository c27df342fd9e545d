# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The handshake of a multiplier, proved for every history: each pair of operands has one result, and in order.

Monitors are added to the netlist, and all states that a reset reaches are visited one by one under all inputs of the
handshake (`flow.states`). Registers are unknown before the reset; data is not followed. There are three proofs:

    tokens  A counter of the pairs under way. It shows results without operands, lost results, valid results that are
            withdrawn, and a core that accepts nothing more.
    order   One pair, any, is marked when it is accepted. The words that lead to port o_r have a flag each: whether they
            are what their register or memory took in exactly those cycles after the acceptance in which it takes the
            result of a pair that is alone. While the result of the marked pair is at the port, its flag is 1.
"""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, product

from modmill.flow.constant_time import HANDSHAKE, PUBLIC, dependent, path_to, require_clock, users_of
from modmill.flow.gates import Gates
from modmill.flow.miter import Miter, memory_ports
from modmill.flow.netlist import REGISTERS, Bit, Cell, Netlist, behind
from modmill.flow.states import PICK, REGISTER, Found, Graph, search

_WATCHED = "watched"
"""Output port of the nets in question."""
_STREAM = ("i_valid", "i_ready", "o_valid", "o_ready")
_PATIENCE = 4
"""Latencies and intervals after which an idle core must have accepted operands."""
_MOST = 255
"""Most pairs under way that are counted."""
_MOST_BYTES = 1 << 30
"""Most memory of the states of one search."""
_MOST_FLAGS = 400
"""Most registers and words with a flag."""
_MOST_BITS = 30_000
"""Most bits of data through which a result is followed."""
_LEVELS = 4
"""Most registers and memories one behind the other through which a result is followed."""
_POWER_UPS = 64
"""Contents of registers at power-up with which a schedule is tried."""
_COPIES = ("$mux", "$pmux")


@dataclass(frozen=True)
class Pace:
    """Timing of a core, in cycles. ``reset``: the fewest of a reset."""

    latency: int
    interval: int
    reset: int = 1


@dataclass(frozen=True)
class Part:
    """One statement. ``state``: PROVED, OPEN or REFUTED; ``remains``: why it is not proved; ``states``: number of those
    visited; ``schedule``: inputs in each cycle after the first of a reset that refute it; ``made``, ``cells``: the
    registers, memories or gates that have the results, and when; ``steady``: an offered pair must stay."""

    name: str
    theorem: str
    state: str
    remains: str = ""
    states: int = 0
    schedule: tuple[Mapping[str, int], ...] = ()
    made: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    steady: bool = False

    @property
    def signals(self) -> Mapping[str, str]:
        """The schedule, signal by signal, the first cycle first."""
        return {name: "".join(str(inputs[name]) for inputs in self.schedule) for name in (self.schedule or ({},))[0]}


@dataclass
class ControlProof:
    """All statements."""

    parts: list[Part] = field(default_factory=list)

    @property
    def state(self) -> str:
        """PROVED, OPEN or REFUTED."""
        states = {part.state for part in self.parts}
        return next((s for s in ("REFUTED", "OPEN") if s in states), "PROVED")


def prove_control(net: Netlist, pace: Pace, seconds: float = 20) -> ControlProof:
    """Prove tokens, order and stalls. ``seconds``: processor time of one search.

    Raises ValueError if the core has no multiplier's handshake or a cell has another clock than clk, and ToolError if
    the search does not compile."""
    ports = net.module["ports"]
    if missing := [name for name in ("rst", *_STREAM) if name not in ports]:
        raise ValueError(f"a multiplier has a port {missing[0]}")
    require_clock(net)
    data = [b for n, p in ports.items() if p["direction"] == "input" and n not in PUBLIC for b in p["bits"]]
    marked = dependent(net, users_of(net), data).keys()
    if leaks := [n for n in HANDSHAKE if n in ports and not marked.isdisjoint(ports[n]["bits"])]:
        why = f"{leaks[0]} may depend on data, see constant time"
        return ControlProof([Part(name, "", "OPEN", why) for name in ("tokens", "order", "stalls")])
    proof = ControlProof([tokens(net, pace, seconds)])
    if proof.state == "PROVED":
        proof.parts.append(order(net, pace, marked, seconds, steady=proof.parts[0].steady))
    else:
        proof.parts.append(Part("order", _ORDER, "OPEN", "it needs the proof of the tokens"))
    if proof.state == "PROVED":
        first, second = proof.parts
        proof.parts.append(stalls(net, pace, second.cells, seconds, steady=first.steady))
    else:
        proof.parts.append(Part("stalls", _STALLS, "OPEN", "it needs the proof of the order"))
    return proof


# ---- the gates of control as a graph


def graph_of(gates: Gates) -> Graph:
    """The AND-inverter graph of gates with one output. What a memory gives, and gates without a rule, are inputs."""
    reads = [n for read in gates.reads for n in read.data.values()]
    free = [n for n in gates.inputs if n not in gates.constants.values()]
    free += [*reads, *(out for kind, _, out in gates.made if kind == "opaque")]
    ports = {b: name for name, port in gates.net.module["ports"].items() for b in port["bits"]}
    literal = {gates.constants["0"]: 0, gates.constants["1"]: 1}
    literal |= {n: 2 * k for k, n in enumerate((*free, *gates.registers), 1)}
    made: dict[tuple[int, int], int] = {}

    def both(a: int, b: int) -> int:
        for one, other in ((a, b), (b, a)):
            if one in (0, 1):
                return other if one else 0
        if a >> 1 == b >> 1:
            return a if a == b else 0
        a, b = max(a, b), min(a, b)
        return made.setdefault((a, b), 2 * (1 + len(free) + len(gates.registers) + len(made)))

    def mux(a: int, b: int, s: int) -> int:
        return both(both(a, s ^ 1) ^ 1, both(b, s) ^ 1) ^ 1

    unknown = count()  # each use of a constant x, or of a net outside the cone, is an input of its own

    def of(net: int) -> int:
        return literal[net] if net in literal else -2 - 2 * next(unknown)

    for kind, ins, out in gates.made:
        x = [of(n) for n in ins]
        match kind:
            case "copy":
                literal[out] = x[0]
            case "not":
                literal[out] = x[0] ^ 1
            case "and":
                literal[out] = both(*x)
            case "or":
                literal[out] = both(x[0] ^ 1, x[1] ^ 1) ^ 1
            case "xor":
                literal[out] = mux(x[0], x[0] ^ 1, x[1])
            case "mux":
                literal[out] = mux(*x)
    (output,) = gates.outputs
    after = [of(n) for n in gates.registers.values()]
    more = next(unknown)

    def placed(x: int) -> int:
        """A literal behind the inputs for what is unknown, which are counted downwards."""
        return 2 * (1 + len(free)) + (-2 - (x & ~1)) + (x & 1) if x < 0 else x + (x >= first) * 2 * more

    first = 2 * (1 + len(free))
    names = [*(ports.get(gates.inputs.get(n, ""), "") for n in free), *[""] * more]
    return Graph(
        tuple(names), (REGISTER,) * len(gates.registers), tuple(map(placed, after)),
        tuple((placed(a), placed(b)) for a, b in made), placed(literal[output]),
    )  # fmt: skip


# ---- monitors


class Monitored(Miter):
    """A copy of a netlist with monitors. ``reset``: high for ``pace.reset`` cycles from the one in which port rst is.
    ``under_way``: the number of pairs accepted and not taken."""

    def __init__(self, net: Netlist, pace: Pace, *, steady: bool) -> None:
        """``steady``: only histories count in which an offered pair stays until it is accepted."""
        ports = net.module["ports"]
        super().__init__(copy.deepcopy(net.module), 0, ports["clk"]["bits"])
        self.pace = pace
        own = list(self.cells.values())
        self.i_valid, self.i_ready, self.o_valid, self.o_ready = (ports[name]["bits"][0] for name in _STREAM)
        (rst,) = ports["rst"]["bits"]
        chain: list[Bit] = [rst]
        for _ in range(pace.reset - 1):
            chain += self.held(chain[-1:])
        self.reset = self.one_of(chain)
        given = {rst: self.reset}
        if steady:
            owed = self.fresh(1)
            given[self.i_valid] = self.one_of([self.i_valid, *owed])
            self.i_valid = given[self.i_valid]
            self.cleared([self.all_of([self.i_valid, self.inverse(self.i_ready)])], owed)
        for cell in own:
            for port, bits in cell["connections"].items():
                if cell["port_directions"][port] == "input":
                    cell["connections"][port] = [given.get(b, b) for b in bits]
        self.accept = self.all_of([self.i_valid, self.i_ready])
        self.take = self.all_of([self.o_valid, self.o_ready])
        self.under_way = self.counter(_MOST + 1, self.accept, self.take)
        self.empty = self.gate("$logic_not", self.under_way)

    def chosen(self, select: Bit, low: Sequence[Bit], high: Sequence[Bit]) -> list[Bit]:
        """The word ``high`` if ``select`` is 1, else ``low``."""
        return self.add("$mux", width=len(low), A=list(low), B=list(high), S=[select])

    def equal(self, bits: Sequence[Bit], number: int) -> Bit:
        """Whether a word has this value."""
        return self.gate("$eq", bits, [str(number >> k & 1) for k in range(len(bits))])

    def cleared(self, bits: Sequence[Bit], out: list[Bit] | None = None) -> list[Bit]:
        """A register that the reset clears."""
        return self.held(self.chosen(self.reset, bits, ["0"] * len(bits)), out)

    def counter(self, end: int, up: Bit, down: Bit) -> list[Bit]:
        """A counter from 0 to ``end``."""
        out = self.fresh(end.bit_length())
        more = self.add("$add", width=len(out), A=out, B=[up])
        return self.cleared(self.add("$sub", width=len(out), A=more, B=[down]), out)

    def age(self, end: int, runs: Bit) -> list[Bit]:
        """For how many cycles a signal has been high, at most ``end``; 0 in the first of them and while it is low."""
        out = self.fresh(end.bit_length())
        more = self.chosen(self.equal(out, end), self.add("$add", width=len(out), A=out, B=["1"]), out)
        return self.cleared(self.chosen(runs, ["0"] * len(out), more), out)

    def search(self, wrong: Bit, seconds: float) -> Found:
        """Whether a signal is never 1 outside resets."""
        return search(graph_of(self.gates([self.all_of([wrong, self.inverse(self.reset)])])), seconds, _MOST_BYTES)

    def gates(self, bits: list[Bit]) -> Gates:
        """The gates on which these nets depend."""
        ports = {**self.module["ports"], _WATCHED: {"direction": "output", "bits": bits}}
        return Gates(Netlist({**self.module, "ports": ports}), [_WATCHED])


_TOKENS = (
    "each accepted pair of operands has exactly one result, whatever is offered and taken: none is valid without a "
    "pair, a valid one stays until it is taken, one is valid at most {} cycles after its pair or the result before it"
)
_ORDER = "results leave in the order of their pairs, each as it was made in the same cycles after its acceptance"
_STALLS = "what is made there depends on when pairs are accepted, but not on when results are taken"
_STEADY = ", if a pair that is offered stays until it is accepted"


_MANY = f"more than {_MOST} pairs are under way"


def _token_faults(net: Monitored, loadable: bool) -> Iterator[tuple[str, Bit]]:
    """What must never happen, in words, and the signal."""
    pace = net.pace
    yield "a result is valid though no pair is under way", net.all_of([net.o_valid, net.empty])
    yield _MANY, net.all_of([net.accept, net.equal(net.under_way, _MOST)])
    stays = net.cleared([net.all_of([net.o_valid, net.inverse(net.o_ready)])])
    yield "a valid result is withdrawn before it is taken", net.all_of([*stays, net.inverse(net.o_valid)])
    silent = net.all_of([net.inverse(net.empty), net.inverse(net.o_valid)])
    late = net.equal(net.age(pace.latency, silent), pace.latency)
    yield f"a pair is under way, and no result is valid for {pace.latency + 1} cycles", net.all_of([late, silent])
    if not loadable:
        most = _PATIENCE * (pace.latency + pace.interval)
        idle = net.all_of([net.empty, net.i_valid, net.inverse(net.i_ready)])
        late = net.equal(net.age(most, idle), most)
        yield f"no pair is under way, and one is offered in vain for {most + 1} cycles", net.all_of([late, idle])


def tokens(net: Netlist, pace: Pace, seconds: float) -> Part:
    """Prove that every pair has one result, for all histories or at least for those in which offered pairs stay."""
    part, found = _tokens(net, pace, seconds, steady=False)
    return part if found != "perhaps" else _tokens(net, pace, seconds, steady=True)[0]


def _tokens(net: Netlist, pace: Pace, seconds: float, *, steady: bool) -> tuple[Part, str]:
    """The proof, and the answer of the search."""
    watched = Monitored(net, pace, steady=steady)
    faults = list(_token_faults(watched, "k_valid" in net.module["ports"]))
    found = watched.search(watched.one_of(wrong for _, wrong in faults), seconds)
    part = Part("tokens", _TOKENS.format(pace.latency) + steady * _STEADY, "PROVED", states=found.states, steady=steady)
    if found.answer == "never":
        return part, found.answer
    if found.answer == "too many":
        return replace(part, state="OPEN", remains=f"there are more than {found.states:,} states"), found.answer
    happens = [faults[k] for k in replayed(watched, [wrong for _, wrong in faults], found.trace)]
    if happens and happens[0][0] != _MANY:
        return replace(part, state="REFUTED", remains=happens[0][0], schedule=found.trace), found.answer
    remains = [text for text, wrong in faults if watched.search(wrong, seconds).answer != "never"]
    return replace(part, state="OPEN", remains=", or ".join(remains)), found.answer


def replayed(net: Monitored, wrong: list[Bit], schedule: Sequence[Mapping[str, int]]) -> list[int]:
    """The places of the signals that are 1 at the end of a schedule, which begins behind the first cycle of a reset, in
    one of several runs from other contents of registers."""
    run = Run(net, wrong, _POWER_UPS)
    run.cycle({"rst": 1})
    for inputs in schedule:
        run.clock()
        run.cycle(inputs)
    return [k for k, bit in enumerate(wrong) if run.ones(bit)]


class Run:
    """The gates on which some nets depend, cycle by cycle, in ``lanes`` runs at once from different contents of
    registers. What a memory or a cell without a rule gives is unknown."""

    def __init__(self, net: Monitored, bits: list[Bit], lanes: int = 1) -> None:
        self._gates, self._lanes, self._cycles = net.gates(bits), lanes, net.pace.reset
        self._V, self._U = [0] * self._gates.count, [0] * self._gates.count
        self._ports = {b: name for name, port in net.module["ports"].items() for b in port["bits"]}
        rnd = random.Random(1)
        for n in self._gates.registers:
            self._V[n] = rnd.getrandbits(lanes)

    def reset(self) -> None:
        """A reset."""
        for cycle in range(self._cycles):
            self.cycle({"rst": int(cycle == 0)})
            self.clock()

    def cycle(self, inputs: Mapping[str, int]) -> None:
        """Compute all nets of a cycle; inputs that are not named are 0."""
        for n, bit in self._gates.inputs.items():
            self._V[n] = ((1 << self._lanes) - 1) * inputs.get(self._ports.get(bit, ""), 0)
        self._gates.evaluate(self._V, self._U, self._lanes)

    def ones(self, bit: Bit) -> int:
        """The runs in which a net is 1."""
        n = self._gates.index[bit]
        return self._V[n] & ~self._U[n]

    def value(self, bit: Bit) -> int | None:
        """The value of a net in the first run; None if it is unknown."""
        n = self._gates.index[bit]
        return None if self._U[n] & 1 else self._V[n] & 1

    def clock(self) -> None:
        """The edge of the clock."""
        for plane in (self._V, self._U):
            for n, value in [(n, plane[f]) for n, f in self._gates.registers.items()]:
                plane[n] = value


# ---- order


class _OpenError(ValueError):
    """The message says why a result cannot be followed."""


def order(net: Netlist, pace: Pace, marked: Collection[Bit], seconds: float, *, steady: bool) -> Part:
    """Prove that results leave in the order of their pairs. ``marked``: nets that depend on data."""
    part = Part("order", _ORDER + steady * _STEADY, "OPEN", steady=steady)
    begin = time.process_time()
    for levels, through in product(range(1, _LEVELS + 1), (False, True)):
        left = seconds - (time.process_time() - begin)
        if left <= 0:
            break
        watched = Monitored(net, pace, steady=steady)
        try:
            results = Results(watched, marked, levels, through=through)
            found = watched.search(results.wrong(), left)
        except _OpenError as error:
            part = replace(part, remains=part.remains or str(error))
            continue
        if found.answer == "never":
            made, cells = tuple(results.made()), tuple(results.stored)
            return replace(part, state="PROVED", remains="", states=found.states, made=made, cells=cells)
        why = "a result may be at the port that is not the one whose turn it is"
        if found.answer == "too many":
            why = f"there are more than {found.states:,} states"
        part = replace(part, remains=why, states=found.states)
        if found.answer == "too many":
            break
    return part


def stalls(net: Netlist, pace: Pace, cells: Sequence[str], seconds: float, *, steady: bool) -> Part:
    """Prove that nothing before the registers, memories and gates ``cells`` depends on o_ready, unless through the
    acceptance of a pair: nets that are 1 exactly then, in all states."""
    ports, part = net.module["ports"], Part("stalls", _STALLS, "PROVED", steady=steady)
    accepted = set(_accepting(net, pace, seconds, steady=steady))
    reached = dependent(net, users_of(net), ports["o_ready"]["bits"], accepted)
    todo: list[Bit] = []
    for cell in (net.cells[name] for name in cells if name in net.cells):
        ends = ("D",) if cell["type"] in REGISTERS else ("WR_DATA",) if cell["type"] == "$mem_v2" else ("A", "B", "S")
        todo += [_written(net, b) for port in ends for b in cell["connections"].get(port, ())]
    seen = {*todo, *accepted}
    while todo:
        bit = todo.pop()
        if bit in reached:
            path = " -> ".join(path_to(net, reached, bit))
            return replace(part, state="OPEN", remains=f"a path of nets, which values may or may not take: {path}")
        if bit in net.drivers and bit not in accepted:
            name, port, k = net.drivers[bit]
            pins = net.cells[name]["connections"]
            more = {pins[p][j] for p, j in behind(net.cells[name], port, k)} - seen
            seen |= more
            todo += more
    return part


def _accepting(net: Netlist, pace: Pace, seconds: float, *, steady: bool) -> Iterator[Bit]:
    """Outputs of gates of i_valid that are 1 exactly when a pair is accepted, or never."""
    (valid,) = net.module["ports"]["i_valid"]["bits"]
    for cell in net.cells.values():
        if cell["type"] in REGISTERS or not any(valid in bits for bits in cell["connections"].values()):
            continue
        for bit in cell["connections"].get("Y", ()):
            watched = Monitored(net, pace, steady=steady)
            differs = watched.gate("$xor", [bit], [watched.accept])
            if any(watched.search(wrong, seconds).answer == "never" for wrong in (differs, bit)):
                yield bit


def _written(net: Netlist, bit: Bit) -> Bit:
    """The data behind the choice that gives x while a memory is not written."""
    while bit in net.drivers and net.cells[net.drivers[bit][0]]["type"] == "$mux":
        name, _, k = net.drivers[bit]
        pins = net.cells[name]["connections"]
        if pins["A"][k] != "x":
            break
        bit = pins["B"][k]
    return bit


class Results:
    """The way of a result to port o_r, backwards through ``levels`` registers with an enable, or memories. Gates that
    change data end it too, unless it goes ``through`` them.

    ``stored``: for each register, memory, gate or port with data at the other end the cycles after the acceptance in
    which it takes a result that is alone. Raises _OpenError if its way does not depend on control alone."""

    def __init__(self, net: Monitored, marked: Collection[Bit], levels: int, *, through: bool) -> None:
        self._net, self._marked, self._levels, self._through = net, marked, levels, through
        self._ports = net.module["ports"]
        self.stored: dict[str, set[int]] = {}
        self._drivers = Netlist({**net.module}).drivers
        self._controls: dict[Bit, set[int]] = {}
        self._flags: dict[tuple[Bit, int], Bit] = {}
        self._held: dict[tuple[str, int], list[Bit]] = {}
        self._follow()
        if any(len(values) > 1 for values in self._controls.values()):
            raise _OpenError("a gate behind registers with an enable does different things to results")
        self._aligned()
        if not self.stored:
            raise _OpenError("nothing takes a result that is alone")
        self._mark()

    def made(self) -> Iterator[str]:
        """In words: what took the results, and when."""
        for name, ages in self.stored.items():
            cell = self._net.cells.get(name)
            what = name if cell is None or cell["type"] == "$mem_v2" else ".".join(filter(None, self._net.source(name)))
            when = f"{min(ages)}" if len(ages) == 1 else f"{min(ages)} to {max(ages)}"
            yield f"{what.removesuffix('[0]')} in cycle {when}"

    # ---- cells

    def _driver(self, bit: Bit) -> tuple[str, str, int] | None:
        """The cell behind a net; None for a port with data."""
        return self._drivers.get(bit)

    def _control(self, name: str, cell: Cell, port: str) -> list[Bit]:
        bits: list[Bit] = cell["connections"][port]
        if not self._marked_of(bits):
            return bits
        raise _OpenError(f"{port} of {'.'.join(filter(None, self._net.source(name)))} depends on data")

    def _marked_of(self, bits: Sequence[Bit]) -> list[Bit]:
        return [b for b in dict.fromkeys(bits) if b in self._marked]

    def _copies(self, cell: Cell) -> bool:
        return cell["type"] in _COPIES and not self._marked_of(cell["connections"]["S"])

    def _below(self, cell: Cell, level: int) -> int:
        """The level in front of a register or memory."""
        return level - (cell["type"] == "$mem_v2" or "EN" in cell["connections"])

    def _inputs(self, name: str, cell: Cell, port: str, k: int) -> list[Bit]:
        """Inputs with data on which an output bit of a gate depends; none if it ends the way."""
        if cell["type"] == "$mem_v2":
            raise _OpenError(f"memory {name} has a register in a read port")
        if not self._passes(cell):
            return []
        return self._marked_of([cell["connections"][p][j] for p, j in behind(cell, port, k)])

    def _steers(self, cell: Cell, port: str, k: int) -> list[Bit]:
        """Inputs of control on which an output bit of a gate depends that changes data."""
        if self._copies(cell):
            return []
        bits = [cell["connections"][p][j] for p, j in behind(cell, port, k)]
        return [b for b in dict.fromkeys(bits) if isinstance(b, int) and b not in self._marked]

    def _passes(self, cell: Cell) -> bool:
        return self._through or self._copies(cell) or cell["type"] == "$pos"

    def _writes(self, name: str, cell: Cell) -> list[tuple[list[Bit], list[Bit], Bit]]:
        """Address, data and enable of each write port of a memory."""
        for port in ("RD_ADDR", "WR_ADDR", "WR_EN"):
            self._control(name, cell, port)
        if "1" in cell["parameters"]["RD_CLK_ENABLE"] or "1" in cell["parameters"]["OFFSET"]:
            raise _OpenError(f"memory {name} has a register in a read port, or its addresses do not begin with 0")
        found = list(memory_ports(cell, cell["connections"], "WR_ADDR", "WR_DATA", "WR_EN"))
        enables = [set(map(self._select, enable)) for _, _, enable in found]
        if any(len(bits) != 1 for bits in enables):
            raise _OpenError(f"memory {name} writes parts of its words")
        return [(a, d, enable.pop()) for (a, d, _), enable in zip(found, enables, strict=True)]

    def _select(self, bit: Bit) -> Bit:
        """A net with the same value: the select of a choice of 0 and 1."""
        while (driver := self._driver(bit)) is not None and self._net.cells[driver[0]]["type"] == "$mux":
            pins = self._net.cells[driver[0]]["connections"]
            if (pins["A"][driver[2]], pins["B"][driver[2]]) != ("0", "1"):
                break
            (bit,) = pins["S"]
        return bit

    def _address(self, cell: Cell, k: int) -> list[Bit]:
        """The address of the read port with this bit."""
        ((address, _),) = [
            (a, d) for at, (a, d) in enumerate(memory_ports(cell, cell["connections"], "RD_ADDR", "RD_DATA"))
            if at == k // int(cell["parameters"]["WIDTH"], 2)
        ]  # fmt: skip
        return address

    # ---- a result that is alone

    def _reached(self) -> set[Bit]:
        """Nets of control on which the way depends, and those of the handshake."""
        net = self._net
        found: set[Bit] = {net.i_valid, net.i_ready, net.o_valid, net.o_ready, net.reset}
        todo = [(b, self._levels) for b in self._marked_of(self._ports["o_r"]["bits"])]
        seen = set(todo)
        while todo:
            bit, level = todo.pop()
            if (driver := self._driver(bit)) is None:
                continue
            name, port, k = driver
            cell = net.cells[name]
            pins = cell["connections"]
            if cell["type"] in REGISTERS or (cell["type"] == "$mem_v2" and self._writes(name, cell)):
                level = self._below(cell, level)
                for p in ("EN", "SRST", "RD_ADDR", "WR_ADDR", "WR_EN"):
                    found.update(self._control(name, cell, p) if p in pins else ())
                if cell["type"] == "$mem_v2":
                    found.update(enable for _, _, enable in self._writes(name, cell))
                more = self._marked_of(pins.get("D", pins.get("WR_DATA", []))) if level else []
            elif self._copies(cell):
                found.update(pins["S"])
                more = self._inputs(name, cell, port, k)
            else:
                more = self._inputs(name, cell, port, k)
                found.update(self._steers(cell, port, k))
            new = [(b, level) for b in more if (b, level) not in seen]
            seen.update(new)
            todo += new
            if len(seen) > _MOST_BITS:
                raise _OpenError(f"a result comes from more than {_MOST_BITS:,} bits")
        return {b for b in found if isinstance(b, int)}

    def _alone(self, nets: set[Bit], waits: int) -> tuple[list[dict[Bit, int | None]], int, int]:
        """Values of nets in each cycle of a run with one pair, the cycle of its acceptance, and one in which its result
        is valid, ``waits`` cycles after the first."""
        net = self._net
        run, pace = Run(net, sorted(nets, key=str)), net.pace
        run.reset()
        values: list[dict[Bit, int | None]] = []
        end = _PATIENCE * (pace.latency + pace.interval)
        accepted, loaded = -1, end if "k_valid" in self._ports else 0
        for cycle in range(loaded + end):
            offer = int(accepted < 0 and cycle >= loaded)
            run.cycle({"i_valid": offer, "o_ready": int(waits == 0), "k_valid": int(cycle < loaded)})
            values.append({b: run.value(b) for b in nets})
            if offer and values[-1][net.i_valid] and values[-1][net.i_ready]:
                accepted = cycle
            if accepted >= 0 and values[-1][net.o_valid]:
                if waits == 0:
                    return values, accepted, cycle
                waits -= 1
            run.clock()
        raise _OpenError("a pair that is alone has no result")

    def _follow(self) -> None:
        """Find ``stored``."""
        nets = self._reached()
        for waits in (0, 2):
            self._trace(*self._alone(nets, waits))

    def _trace(self, values: Sequence[Mapping[Bit, int | None]], accepted: int, valid: int) -> None:
        """Add what one run shows: in cycle ``valid`` the result is at the port."""
        todo = [(b, self._levels, valid) for b in self._marked_of(self._ports["o_r"]["bits"])]
        seen = set(todo)

        def value(bits: Sequence[Bit], cycle: int) -> int:
            found = [values[cycle][b] if isinstance(b, int) else {"0": 0, "1": 1}.get(b) for b in bits]
            if None in found:
                raise _OpenError("the control of a result that is alone is not known")
            return sum((bit or 0) << k for k, bit in enumerate(found))

        def stored(name: str, bits: Sequence[Bit], level: int, cycle: int) -> None:
            if level == 0:
                self.stored.setdefault(name, set()).add(cycle - accepted)
                return
            new = [each for b in self._marked_of(bits) if (each := (b, level, cycle)) not in seen]
            seen.update(new)
            todo.extend(new)

        while todo:
            bit, level, cycle = todo.pop()
            if (driver := self._driver(bit)) is None:
                name = next(n for n, port in self._ports.items() if bit in port["bits"])
                self.stored.setdefault(name, set()).add(cycle - accepted)
                continue
            name, port, k = driver
            cell = self._net.cells[name]
            pins = cell["connections"]
            if cell["type"] in REGISTERS:
                self._last_stored(cell, level, cycle, value, lambda *found, n=name: stored(n, *found))
            elif cell["type"] == "$mem_v2":
                writes, at = self._writes(name, cell), value(self._address(cell, k), cycle)
                for before in range(cycle - 1, -1, -1):
                    hits = [d for a, d, e in writes if value([e], before) and value(a, before) == at]
                    if hits:
                        stored(name, hits[-1], self._below(cell, level), before)
                        break
            elif self._copies(cell):
                width = len(pins["Y"])
                selects = value(pins["S"], cycle)
                if selects == 0:
                    chosen = [pins["A"][k]]
                elif cell["type"] == "$mux":
                    chosen = [pins["B"][k]]
                else:
                    chosen = [pins["B"][k + j * width] for j in range(len(pins["S"])) if selects >> j & 1]
                self._add(todo, seen, chosen, level, cycle)
            elif self._passes(cell):
                for steer in self._steers(cell, port, k):
                    self._controls.setdefault(steer, set()).add(value([steer], cycle))
                self._add(todo, seen, self._inputs(name, cell, port, k), level, cycle)
            else:
                self.stored.setdefault(name, set()).add(cycle - accepted)
            if len(seen) > _MOST_BITS:
                raise _OpenError(f"a result comes from more than {_MOST_BITS:,} bits")

    def _aligned(self) -> None:
        """Raise _OpenError if a bit of a result, or of an input of a gate on its way, may come from several bits of a
        word, as behind a shift register."""
        checked = set[tuple[Bit, int]]()
        starts = [(b, self._levels) for b in self._marked_of(self._ports["o_r"]["bits"])]
        while starts:
            start = starts.pop()
            if start in checked:
                continue
            checked.add(start)
            if len(checked) > _MOST_BITS:
                raise _OpenError(f"a result comes from more than {_MOST_BITS:,} bits")
            ends: dict[str, int] = {}
            todo, seen = [start], {start}
            while todo:
                bit, level = todo.pop()
                if (driver := self._driver(bit)) is None:
                    continue
                name, port, k = driver
                cell = self._net.cells[name]
                pins = cell["connections"]
                below = level
                if cell["type"] in REGISTERS or cell["type"] == "$mem_v2":
                    below = self._below(cell, level)
                    k %= int(cell["parameters"]["WIDTH"], 2)
                    if ends.setdefault(f"{name} {below}", k) != k:
                        raise _OpenError(f"bits of {'.'.join(filter(None, self._net.source(name)))} change their place")
                    sources = [pins["D"]] if "D" in pins else [data for _, data, _ in self._writes(name, cell)]
                    more = [source[k] for source in sources] if below else []
                elif self._copies(cell):
                    width = len(pins["Y"])
                    more = [pins["A"][k], *pins["B"][k::width]]
                else:
                    starts += [(b, level) for b in self._inputs(name, cell, port, k)]
                    more = []
                new = [(b, below) for b in self._marked_of(more) if (b, below) not in seen]
                seen.update(new)
                todo += new

    def _add(self, todo: list[_Place], seen: set[_Place], bits: Sequence[Bit], level: int, cycle: int) -> None:
        new = [each for b in self._marked_of(bits) if (each := (b, level, cycle)) not in seen]
        seen.update(new)
        todo += new

    def _last_stored(
        self, cell: Cell, level: int, cycle: int, value: Callable[[Sequence[Bit], int], int],
        stored: Callable[[Sequence[Bit], int, int], None],
    ) -> None:  # fmt: skip
        """The last cycle before in which a register takes a word."""
        pins, parameters = cell["connections"], cell["parameters"]
        for before in range(cycle - 1, -1, -1):
            on = {p: value(pins[p], before) == int(parameters[f"{p}_POLARITY"], 2) for p in ("EN", "SRST") if p in pins}
            if on.get("SRST") and (on.get("EN", True) or cell["type"] != "$sdffce"):
                return
            if on.get("EN", True):
                stored(pins["D"], self._below(cell, level), before)
                return

    # ---- the flags

    def _mark(self) -> None:
        """Mark one pair, any. ``_due``: its result is the next."""
        net = self._net
        net.module["ports"][PICK] = {"direction": "input", "bits": (pick := net.fresh(1))}
        used, under, end = net.fresh(1), net.fresh(1), 2 + max(a for ages in self.stored.values() for a in ages)
        self._start = net.all_of([*pick, net.accept, net.inverse(used[0])])
        net.cleared([net.one_of([*used, self._start])], used)
        ahead = net.fresh(len(net.under_way))
        size = len(ahead)
        none = net.gate("$logic_not", ahead)
        self._due = net.all_of([*under, none])
        under_after = net.all_of([*under, net.inverse(net.all_of([net.take, none]))])
        net.cleared([net.one_of([self._start, under_after])], under)
        before = net.add("$sub", width=size, A=net.under_way, B=[net.take])
        less = net.add("$sub", width=size, A=ahead, B=[net.all_of([net.take, *under, net.inverse(none)])])
        net.cleared(net.chosen(self._start, less, before), ahead)
        self._age = net.age(end, net.one_of([self._start, *under]))

    def _at(self, name: str) -> Bit:
        """Whether it is a cycle in which a register, memory or port has what becomes the marked result."""
        net = self._net
        return net.one_of(
            self._start if age == 0 else net.all_of([net.equal(self._age, age), net.inverse(self._start)])
            for age in sorted(self.stored.get(name, ()))
        )

    def wrong(self) -> Bit:
        """Whether the marked pair's turn is at the port, and something else is there."""
        net = self._net
        flags = net.all_of(self._flag(b, self._levels) for b in self._marked_of(self._ports["o_r"]["bits"]))
        return net.all_of([self._due, net.o_valid, net.inverse(flags)])

    def _flag(self, bit: Bit, level: int) -> Bit:
        if bit not in self._marked:
            return "1"
        if (bit, level) not in self._flags:
            self._flags[bit, level] = self._made_flag(bit, level)
        return self._flags[bit, level]

    def _made_flag(self, bit: Bit, level: int) -> Bit:
        if (driver := self._driver(bit)) is None:
            return self._at(next(n for n, port in self._ports.items() if bit in port["bits"]))
        name, port, k = driver
        cell = self._net.cells[name]
        pins = cell["connections"]
        if cell["type"] in REGISTERS:
            return self._register(name, cell, level)
        if cell["type"] == "$mem_v2":
            words = self._memory(name, cell, level)
            for select in self._address(cell, k):
                pairs = zip(words[::2], [*words[1::2], *words[-1:]], strict=False)
                words = [self._net.choice(select, low, high) for low, high in pairs]
            return words[0]
        if not self._passes(cell):
            return self._at(name)
        if not self._copies(cell):
            return self._net.all_of([
                *(self._flag(b, level) for b in self._inputs(name, cell, port, k)),
                *(b if self._controls.get(b) == {1} else self._net.inverse(b) for b in self._steers(cell, port, k)),
            ])  # fmt: skip
        found = self._flag(pins["A"][k], level)
        for j, select in enumerate(pins["S"]):
            found = self._net.choice(select, found, self._flag(pins["B"][k + j * len(pins["Y"])], level))
        return found

    def _new(self, name: str, level: int, bits: Sequence[Bit]) -> Bit:
        """The flag of what a register or memory takes."""
        return self._at(name) if level == 0 else self._net.all_of(self._flag(b, level) for b in self._marked_of(bits))

    def _register(self, name: str, cell: Cell, level: int) -> Bit:
        net, pins, parameters = self._net, cell["connections"], cell["parameters"]
        if (name, level) not in self._held:
            (flag,) = self._held[name, level] = net.fresh(1)
            new = self._new(name, self._below(cell, level), pins["D"])
            on = {
                p: pins[p][0] if int(parameters[f"{p}_POLARITY"], 2) else net.inverse(pins[p][0])
                for p in ("EN", "SRST") if p in pins
            }  # fmt: skip
            if cell["type"] == "$sdffce":
                new = net.all_of([new, net.inverse(on["SRST"])])
            new = net.choice(on.get("EN", "1"), flag, new)
            if "SRST" in on and cell["type"] != "$sdffce":
                new = net.all_of([new, net.inverse(on["SRST"])])
            net.cleared([new], [flag])
        return self._held[name, level][0]

    def _memory(self, name: str, cell: Cell, level: int) -> list[Bit]:
        net, size = self._net, 1 << int(cell["parameters"]["ABITS"], 2)
        if (name, level) not in self._held:
            if size > _MOST_FLAGS:
                raise _OpenError(f"memory {name} has {size} words, more than {_MOST_FLAGS}")
            flags = self._held[name, level] = net.fresh(size)
            new = list(flags)
            for address, data, enable in self._writes(name, cell):
                flag = self._new(name, self._below(cell, level), data)
                for word in range(size):
                    here = net.all_of([enable, net.equal(address, word)])
                    new[word] = net.choice(here, new[word], flag)
            for word in range(size):
                net.cleared([new[word]], [flags[word]])
        return self._held[name, level]


_Place = tuple[Bit, int, int]
