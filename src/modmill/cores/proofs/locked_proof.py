# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Constant time of two engines in lockstep: the module that joins and compares them, over all its states.

Both engines are taken out of the netlist. A state is what its registers hold: constants, and unknown bits of two kinds,
those that are equal in two runs with the same pauses, resets and header words, and those that may differ. Two bits are
the same only if they come from the same bit of a word. In each state, with all values of what steers the module, and
with any words, is shown

    delay       the second engine gets in each cycle what the first one got in the cycle before, and the reset also in
                the cycle in which the first one gets it
    words       the first engine takes and gives exactly the words at the ports, in cycles that are equal in both runs
    handshake   i_ready, o_valid and o_last are equal in both runs
    alarm       o_alarm is 0

Random words, where engines take them, are words too, and random_ready is a part of the handshake.

and that no gates lead from what an engine gives to what one gets in the same cycle.

Taken from the engines is that their handshake is equal in both runs, which `engine_proof` shows, and that the second
engine gives in each cycle what the first one gave in the cycle before: both are one module, and have been reset. While
the second one is in reset, anything comes from it, but no word when the reset has lasted as long as it needs, which
`sent_in_reset` shows for both.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from modmill.contract import ALARM
from modmill.proofs.arithmetic.integers import Integers
from modmill.proofs.arithmetic.symbolic import Symbolic
from modmill.proofs.arithmetic.word_rules import Bit, Bits
from modmill.proofs.handshake.constant_time import ConstantTime, dependent, path_to, require_clock, users_of
from modmill.proofs.handshake.gates import Gates
from modmill.proofs.netlist import Bit as Net
from modmill.proofs.netlist import Netlist, through_gates

_FIRST, _SECOND = "first", "second"
_GIVEN = ("i_ready", "o_valid", "o_last", "o_data")
_TAKEN = ("rst", "i_valid", "o_ready", "i_data")
"""Ports of an engine besides its clock and its alarm."""
_RANDOM = ("random_ready", "random_valid", "random_data")
"""Ports of an engine for random words: what it gives, and what it gets."""
_STEERING = ("rst", "o_ready", "o_valid")
"""What steers the module, each of whose values is followed: the reset, o_ready outside, o_valid of the first engine."""
_HANDSHAKE = ("i_ready", "o_valid", "o_last while o_valid is 1", ALARM)
_LATE, _NO_WORD, _ANYTHING = "what came from the first engine a cycle ago", "no word", "anything"
"""What comes from the second engine: while neither is in reset, at the end of its reset, and before."""
_MOST = 20_000
"""Most states that are visited."""
Kind = int | tuple[bool, int]
"""A bit of a state: a constant, or (whether it may differ, number) of an unknown bit."""
State = tuple[Kind, ...]


class LeakError(Exception):
    """What is not as stated, and the nets of a path to it."""

    def __init__(self, what: str, path: tuple[str, ...]) -> None:
        super().__init__(what)
        self.what, self.path = what, path


def locked_time(net: Netlist, engine: str, power_up: int = 1) -> ConstantTime:
    """Prove it of a netlist in which two modules ``engine`` are cells, after a reset of ``power_up`` cycles, with
    resets as long or longer at any time.

    Raises ValueError if the netlist has other cells or ports, or a clock besides clk."""
    require_clock(net)
    joined = _Joined(net, engine)
    data, handshake = joined.data, (*_HANDSHAKE[:1], *joined.random_ready, *_HANDSHAKE[1:])
    if joined.loops:
        return ConstantTime(data, handshake, (), (), "gates lead from an engine to the o_ready of one")
    path, remains = tuple[str, ...](), ""
    try:
        joined.visit(power_up)
    except LeakError as leak:
        path, remains = leak.path, leak.what
    return ConstantTime(data, handshake, path, (), remains)


def sent_in_reset(net: Netlist, cycles: int) -> str:
    """What may be sent when a reset has lasted so many cycles, from any contents of registers; empty if nothing is."""
    gates = Gates(net, ("o_valid",))
    V, U = [1] * gates.count, [1] * gates.count
    for n, bit in gates.inputs.items():
        U[n] = int(bit not in net.module["ports"]["rst"]["bits"])
    gates.evaluate(V, U, 1)
    for _ in range(cycles):
        following = {n: (V[f], U[f]) for n, f in gates.registers.items()}
        for n, (v, u) in following.items():
            V[n], U[n] = v, u
        gates.evaluate(V, U, 1)
    quiet = not any(V[n] or U[n] for n in gates.outputs)
    return "" if quiet else f"o_valid may be high after {cycles} cycles of a reset"


class _Joined(Symbolic):
    """The module without its engines."""

    def __init__(self, net: Netlist, engine: str) -> None:
        self._at = _opened(net, engine)
        random = _RANDOM if set(_RANDOM) <= self._at[_FIRST].keys() else ()
        self.random_ready, self.data = random[:1], ("i_data", *random[2:])
        self._sends, self._takes = (*_GIVEN, *random[:1]), (*_TAKEN, *random[1:])
        super().__init__(Netlist(net.module), Integers())
        self._held = [bit for cell in self._registers for bit in cell.output]
        self._kinds: dict[Bit, Kind] = {}
        given = {bit for at in self._at.values() for port in self._sends for bit in at[port]}
        self.loops = bool(through_gates(self.net, self._at[_FIRST]["o_ready"], given))
        """Whether what the first engine gets depends in the same cycle on what an engine gives."""

    # ---- bits

    def _bit(self, kind: Kind) -> Bit:
        if isinstance(kind, int):
            return kind
        (bit,) = self.words.unknown(1, *kind)
        self._kinds[bit] = kind
        return bit

    def _fresh(self, differs: bool, width: int) -> Bits:
        self._last += width
        return tuple(self._bit((differs, k)) for k in range(self._last - width, self._last))

    def _kind(self, bit: Bit) -> Kind | None:
        return bit if isinstance(bit, int) else self._kinds.get(bit)

    def _equal(self, bits: Bits) -> bool:
        """Whether bits are equal in both runs."""
        kinds = [self._kind(bit) for bit in bits]
        return all(isinstance(kind, int) or (kind is not None and not kind[0]) for kind in kinds)

    # ---- states

    def _named(self, found: Sequence[Bit]) -> State:
        """Bits as a state: unknown ones numbered in their order, equal ones alike; those of which no more is known may
        differ."""
        numbers: dict[Hashable, int] = {}
        state: list[Kind] = []
        for at, bit in enumerate(found):
            kind = self._kind(bit)
            if isinstance(kind, int):
                state.append(kind)
                continue
            key: Hashable = kind if kind is not None else ("alone", at if bit is None else bit)
            state.append((kind is None or kind[0], numbers.setdefault(key, len(numbers))))
        return tuple(state)

    def visit(self, power_up: int) -> None:
        """Visit all states. Raises LeakError if something is not as stated."""
        width = sum(len(self._at[_FIRST][port]) for port in (*self._sends, *self._takes))
        state: State = tuple((True, k) for k in range(len(self._held) + width))
        for _ in range(power_up):
            state = self._after(state, {"rst": 1}, _ANYTHING, started=False)
        first = state, power_up
        todo, seen = [first], {first}
        while todo:
            state, reset = todo.pop()
            for steering in self._steering(reset, power_up):
                second = _LATE if reset == steering["rst"] == 0 else _NO_WORD if reset == power_up else _ANYTHING
                found = self._after(state, steering, second), min(reset + 1, power_up) * steering["rst"]
                if found not in seen:
                    seen.add(found)
                    todo.append(found)
            if len(seen) > _MOST:
                raise ValueError(f"the module that compares has more than {_MOST:,} states")

    def _steering(self, reset: int, power_up: int) -> Iterator[dict[str, int]]:
        """All values of what steers the module, after so many cycles of a reset: it lasts at least ``power_up`` cycles,
        and then no word comes from the first engine while it goes on."""
        for k in range(1 << len(_STEERING)):
            found = {name: k >> at & 1 for at, name in enumerate(_STEERING)}
            lasts, quiet = 0 < reset < power_up, reset == power_up
            if (found["rst"] or not lasts) and not (found["rst"] and quiet and found["o_valid"]):
                yield found

    def _after(self, state: State, steering: dict[str, int], second: str, *, started: bool = True) -> State:
        """The state after a cycle. ``second``: what comes from the second engine. ``started``: whether the engines have
        been reset, so that this cycle is one of those of the statement."""
        count = len(self._held)
        self._last = len(state)
        bits = tuple(self._bit(kind) for kind in state)
        self._set(self._held, bits[:count])
        before, at = dict[str, Bits](), count
        for port in (*self._sends, *self._takes):
            size = len(self._at[_FIRST][port])
            before[port], at = bits[at : at + size], at + size
        known = {name: (value,) for name, value in steering.items()}
        free = not started
        self.ports |= {
            "rst": known["rst"], "o_ready": known.get("o_ready") or self._fresh(free, 1),
            "i_valid": self._fresh(free, 1), "i_data": self._fresh(True, len(self._at[_FIRST]["i_data"])),
        }  # fmt: skip
        if "random_data" in self._takes:
            size = len(self._at[_FIRST]["random_data"])
            self.ports |= {"random_valid": self._fresh(free, 1), "random_data": self._fresh(True, size)}
        for engine in (_FIRST, _SECOND):
            for port in self._sends:
                differs = free or port == "o_data" or (engine == _SECOND and second != _LATE)
                new = self._fresh(differs, len(self._at[engine][port]))
                self.ports[f"{engine}.{port}"] = before[port] if engine == _SECOND and second == _LATE else new
            if ALARM in self._at[engine]:
                self.ports[f"{engine}.{ALARM}"] = (0,)
        if "o_valid" in known:
            self.ports[f"{_FIRST}.o_valid"] = known["o_valid"]
        if second == _NO_WORD:
            self.ports[f"{_SECOND}.o_valid"] = (0,)
        self.settle()
        if started:
            self._check(before | ({"rst": (1,)} if steering["rst"] else {}))
        given = [bit for port in self._sends for bit in self.ports[f"{_FIRST}.{port}"]]
        taken = [bit for port in self._takes for bit in self._pin(_FIRST, port)]
        self.clock()
        return self._named([*self.bits(self._held), *given, *taken])

    def _pin(self, engine: str, port: str) -> Bits:
        return self.bits(self._at[engine][port])

    # ---- the statement

    def _check(self, before: dict[str, Bits]) -> None:
        for port in self._takes:
            if self._pin(_SECOND, port) != before[port]:
                raise self._leak(f"the second engine gets another {port} than the first one a cycle ago", _SECOND, port)
        for port in (port for port in self._takes if port != "o_ready"):
            if self._pin(_FIRST, port) != self.ports[port]:
                raise self._leak(f"the first engine gets another {port} than the module", _FIRST, port)
        if not self._equal(self._pin(_FIRST, "o_ready")):
            raise self._leak("the first engine's o_ready may depend on words", _FIRST, "o_ready")
        for port in (port for port in self._sends if port.endswith("_ready")):
            if self.output(port) != self.ports[f"{_FIRST}.{port}"]:
                raise self._leak(f"{port} is not that of the first engine", "", port)
        for port in ("o_valid", "o_last"):
            if not self._equal(self.output(port)) and (port == "o_valid" or self.output("o_valid") != (0,)):
                raise self._leak(f"{port} may depend on words", "", port)
        if self.output(ALARM) != (0,):
            raise self._leak(f"{ALARM} may be high", "", ALARM)

    def _leak(self, what: str, engine: str, port: str) -> LeakError:
        """The fault at a port, with the nets from a word to it in this cycle, and those by which it comes there."""
        nets: list[Any] = self._at[engine][port] if engine else self.net.module["ports"][port]["bits"]
        net = next((n for n in nets if not self._equal(self.bits([n]))), nets[0])
        inside = list(self._back(net))
        ports = self.net.module["ports"]
        words = [p["bits"] for name, p in ports.items() if p["direction"] == "input" and name.endswith("data")]
        first = [b for bits in words for b in bits]
        before = dependent(self.net, users_of(self.net), first)
        outside = path_to(self.net, before, inside[-1]) if inside[-1] in before else ()
        names = [*outside, *(self.net.name(n) or f"net {n}" for n in reversed(inside))]
        return LeakError(what, tuple(dict.fromkeys([*names, f"{engine}.{port}" if engine else port])))

    def _back(self, net: Net) -> Iterator[Net]:
        """The nets before a net, through gates, that may differ in this cycle."""
        done = set[Any]()
        found: Net | None = net
        while found is not None and found not in done:
            yield found
            done.add(found)
            name, _, _ = self.net.drivers.get(found, ("", "", 0))
            cell = self._combined.get(name)
            pins = [b for bits in cell.inputs.values() for b in bits] if cell else []
            found = next((b for b in pins if not self._equal(self.bits([b]))), None)


def _opened(net: Netlist, engine: str) -> dict[str, dict[str, list[Any]]]:
    """Take both engines out; what they give and get become ports. Returns the nets at the ports of each one. Raises
    ValueError if there are not two."""
    cells = {name: cell for name, cell in net.cells.items() if cell["type"] == engine}
    others = {cell["type"] for name, cell in net.cells.items() if name not in cells and cell["type"][0] != "$"}
    if set(cells) != {_FIRST, _SECOND} or others:
        raise ValueError(f"the netlist has other modules than two of {engine}, first and second")
    found = {}
    clock = net.module["ports"]["clk"]["bits"]
    for name, cell in cells.items():
        del net.cells[name]
        pins: dict[str, list[Any]] = cell["connections"]
        if pins["clk"] != clock or not {*_GIVEN, *_TAKEN} <= pins.keys():
            raise ValueError(f"the {name} engine has another clock or other ports")
        for port in (*_GIVEN, _RANDOM[0], ALARM):
            if port in pins:
                net.module["ports"][f"{name}.{port}"] = {"direction": "input", "bits": pins[port]}
        for port in (port for port in (*_TAKEN, *_RANDOM[1:]) if port in pins):
            net.module["ports"][f"{name}.{port}"] = {"direction": "output", "bits": pins[port]}
        found[name] = pins
    return found
