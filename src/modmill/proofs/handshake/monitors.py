# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The netlist of a multiplier with monitors of its handshake, as a graph that is searched and as gates that are run."""

from __future__ import annotations

import copy
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count

from modmill.proofs.handshake.delays import shortened
from modmill.proofs.handshake.gates import Gates
from modmill.proofs.miter import Miter
from modmill.proofs.netlist import Bit, Netlist
from modmill.proofs.states import PICK, REGISTER, Found, Graph, search

_WATCHED = "watched"
"""Output port of the nets in question."""
STREAM = ("i_valid", "i_ready", "o_valid", "o_ready")
PATIENCE = 4
"""Latencies and intervals after which an idle core must have accepted operands, and a result must have come."""
MOST = 255
"""Most pairs under way that are counted."""
_MOST_BYTES = 1 << 30
"""Most memory of the states of one search."""
_POWER_UPS = 64
"""Contents of registers at power-up with which a schedule is tried."""


@dataclass(frozen=True)
class Pace:
    """Timing of a core, in cycles. ``reset``: the fewest of a reset."""

    latency: int
    interval: int
    reset: int = 1


@dataclass(frozen=True)
class Mark:
    """Signals of one pair, any. ``start``: it is accepted. ``under``: it was, and its result is not taken. ``due``: the
    next result is its. ``lasts``: ``under`` in the next cycle."""

    start: Bit
    under: Bit
    due: Bit
    lasts: Bit


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
    ``under_way``: the number of pairs accepted and not taken.
    ``only``: when pairs may be marked."""

    def __init__(self, net: Netlist, pace: Pace, *, steady: bool) -> None:
        """``steady``: only histories count in which an offered pair stays until it is accepted."""
        ports = net.module["ports"]
        super().__init__(copy.deepcopy(net.module), 0, ports["clk"]["bits"])
        self.pace = pace
        self.only: Bit = "1"
        own = list(self.cells.values())
        self.i_valid, self.i_ready, self.o_valid, self.o_ready = (ports[name]["bits"][0] for name in STREAM)
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
        self.under_way = self.counter(MOST + 1, self.accept, self.take)
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

    @cached_property
    def mark(self) -> Mark:
        """Pairs, any but only one at a time, are marked when they are accepted."""
        self.module["ports"][PICK] = {"direction": "input", "bits": (pick := self.fresh(1))}
        under, ahead = self.fresh(1), self.fresh(size := len(self.under_way))
        none = self.gate("$logic_not", ahead)
        start = self.all_of([*pick, self.accept, self.only, self.inverse(under[0])])
        lasts = self.one_of([start, self.all_of([*under, self.inverse(self.all_of([self.take, none]))])])
        self.cleared([lasts], under)
        before = self.add("$sub", width=size, A=self.under_way, B=[self.take])
        less = self.add("$sub", width=size, A=ahead, B=[self.all_of([self.take, *under, self.inverse(none)])])
        self.cleared(self.chosen(start, self.chosen(under[0], ["0"] * size, less), before), ahead)
        return Mark(start, under[0], self.all_of([*under, none]), lasts)

    def marked_age(self, end: int) -> list[Bit]:
        """For how many cycles the marked pair has been under way, at most ``end``; 0 in the cycle of its acceptance."""
        out = self.fresh(end.bit_length())
        more = self.chosen(self.equal(out, end), self.add("$add", width=len(out), A=out, B=["1"]), out)
        return self.cleared(self.chosen(self.mark.lasts, ["0"] * len(out), more), out)

    def never(self, wrong: Bit, seconds: float) -> Found:
        """The same as `search`, but not all is known of shift registers (`delays`), so "perhaps" may be wrong; it
        is said of no states at all if there are none that can be replaced."""
        found = Found("perhaps", 0, ())
        for early in (False, True):
            if found.answer == "perhaps" and (short := shortened(self, wrong, early=early)):
                found = short.search(wrong, seconds)
        return found

    def search(self, wrong: Bit, seconds: float) -> Found:
        """Whether a signal is never 1 outside resets."""
        return search(graph_of(self.gates([self.all_of([wrong, self.inverse(self.reset)])])), seconds, _MOST_BYTES)

    def gates(self, bits: list[Bit]) -> Gates:
        """The gates on which these nets depend."""
        ports = {**self.module["ports"], _WATCHED: {"direction": "output", "bits": bits}}
        return Gates(Netlist({**self.module, "ports": ports}), [_WATCHED])


# ---- runs


def replayed(net: Monitored, wrong: list[Bit], schedule: Sequence[Mapping[str, int]]) -> list[int]:
    """The places of the signals that are 1 at the end of a schedule, which begins behind the first cycle of a reset, in
    one of several runs from other contents of registers."""
    run = Run(net, wrong, _POWER_UPS)
    run.cycle({"rst": 1})
    for inputs in schedule:
        run.clock()
        run.cycle(inputs)
    return [k for k, bit in enumerate(wrong) if run.ones(bit)]


class OpenError(ValueError):
    """The message says why something cannot be shown."""


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


def alone(net: Monitored, nets: Collection[Bit], waits: int) -> tuple[list[dict[Bit, int | None]], int, int]:
    """Values of nets, and of the handshake, in each cycle of a run with one pair, the cycle of its acceptance, and one
    in which its result is valid, ``waits`` cycles after the first.

    Raises OpenError if there is no result."""
    nets = {*nets} | {net.i_valid, net.i_ready, net.o_valid, net.o_ready}
    run, pace = Run(net, sorted(nets, key=str)), net.pace
    run.reset()
    values: list[dict[Bit, int | None]] = []
    end = PATIENCE * (pace.latency + pace.interval)
    accepted, loaded = -1, end if "k_valid" in net.module["ports"] else 0
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
    raise OpenError("a pair that is alone has no result")
