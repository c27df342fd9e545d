# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The handshake of a multiplier, proved for every history: each pair of operands has one result, and in order.

Monitors are added to the netlist, and all states that a reset reaches are visited one by one under all inputs of the
handshake (`monitors`, `proofs.states`). Registers are unknown before the reset; data is not followed. There are
three proofs:

    tokens  A counter of the pairs under way. It shows results without operands, lost results, valid results that are
            withdrawn, and a core that accepts nothing more.
    order   One pair, any, is marked when it is accepted. The words that lead to port o_r have a flag each: whether they
            are what their register or memory took in exactly those cycles after the acceptance in which it takes the
            result of a pair that is alone. While the result of the marked pair is at the port, its flag is 1.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product

from modmill.proofs.handshake.constant_time import HANDSHAKE, PUBLIC, dependent, require_clock, users_of
from modmill.proofs.handshake.hours import Hours
from modmill.proofs.handshake.monitors import MOST, PATIENCE, STREAM, Monitored, OpenError, Pace, alone, replayed
from modmill.proofs.handshake.result_way import Results
from modmill.proofs.netlist import REGISTERS, Bit, Cell, Netlist, ahead

_MOST_GATES = 200
"""Most nets behind i_valid among which those are looked for that are 1 when a pair is accepted."""
_LEVELS = 4
"""Most registers and memories one behind the other through which a result is followed."""


@dataclass(frozen=True)
class Part:
    """One statement. ``state``: PROVED, OPEN or REFUTED; ``remains``: why it is not proved; ``states``: number of those
    visited; ``schedule``: inputs in each cycle after the first of a reset that refute it; ``made``: the registers,
    memories or gates that have the results, and when; ``taken``: the same by the names of cells; ``steady``: an offered
    pair must stay."""

    name: str
    theorem: str
    state: str
    remains: str = ""
    states: int = 0
    schedule: tuple[Mapping[str, int], ...] = ()
    made: tuple[str, ...] = ()
    taken: Mapping[str, Collection[int]] = field(default_factory=dict)
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
    if missing := [name for name in ("rst", *STREAM) if name not in ports]:
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
        proof.parts.append(stalls(net, pace, second.taken, seconds, steady=first.steady))
    else:
        proof.parts.append(Part("stalls", _STALLS, "OPEN", "it needs the proof of the order"))
    return proof


_TOKENS = (
    "each accepted pair of operands has exactly one result, whatever is offered and taken: none is valid without a "
    "pair, a valid one stays until it is taken, one is valid at most {} cycles after its pair or the result before it"
)
_ORDER = "results leave in the order of their pairs, each as it was made in the same cycles after its acceptance"
_STALLS = "what is made there depends on when pairs are accepted, but not on when results are taken"
_STEADY = ", if a pair that is offered stays until it is accepted"


_MANY = f"more than {MOST} pairs are under way"


def _token_faults(net: Monitored, loadable: bool) -> Iterator[tuple[str, Bit]]:
    """What must never happen, in words, and the signal."""
    pace = net.pace
    yield "a result is valid though no pair is under way", net.all_of([net.o_valid, net.empty])
    yield _MANY, net.all_of([net.accept, net.equal(net.under_way, MOST)])
    stays = net.cleared([net.all_of([net.o_valid, net.inverse(net.o_ready)])])
    yield "a valid result is withdrawn before it is taken", net.all_of([*stays, net.inverse(net.o_valid)])
    silent = net.all_of([net.inverse(net.empty), net.inverse(net.o_valid)])
    late = net.equal(net.age(pace.latency, silent), pace.latency)
    yield f"a pair is under way, and no result is valid for {pace.latency + 1} cycles", net.all_of([late, silent])
    if not loadable:
        most = PATIENCE * (pace.latency + pace.interval)
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
    wrong = watched.one_of(wrong for _, wrong in faults)
    found = watched.never(wrong, seconds)
    if found.answer != "never":
        found = watched.search(wrong, seconds)
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


# ---- order


def order(net: Netlist, pace: Pace, marked: Collection[Bit], seconds: float, *, steady: bool) -> Part:
    """Prove that results leave in the order of their pairs. ``marked``: nets that depend on data."""
    part = Part("order", _ORDER + steady * _STEADY, "OPEN", steady=steady)
    for search in (Monitored.never, Monitored.search):
        left, before = seconds, dict[str, set[int]]()
        for levels, through in product(range(1, _LEVELS + 1), (False, True)):
            if left <= 0:
                break

            def of_slot(slot: int, levels: int = levels, through: bool = through) -> tuple[Monitored, Results]:
                watched = Monitored(net, pace, steady=steady)
                return watched, Results(watched, marked, levels, through=through, slot=slot)

            try:
                watched, results = of_slot(0)
                if through and results.stored == before:
                    continue
                before, wrong = results.stored, results.wrong()
                begin = time.process_time()
                found = search(watched, wrong, left)
                left -= time.process_time() - begin
                for slot in range(1, results.slots if found.answer == "never" else 1):
                    watched, other = of_slot(slot)
                    more = search(watched, other.wrong(), seconds)
                    found = replace(more, states=found.states + more.states)
                    if found.answer != "never":
                        break
            except OpenError as error:
                part = replace(part, remains=part.remains or str(error))
                continue
            if found.answer == "never":
                made = tuple(results.made())
                return replace(part, state="PROVED", remains="", states=found.states, made=made, taken=results.stored)
            why = "a result may be at the port that is not the one whose turn it is"
            if found.answer == "too many":
                why = f"there are more than {found.states:,} states"
            part = replace(part, remains=why, states=found.states)
            if found.answer == "too many" or not found.states:
                break
    return part


def stalls(net: Netlist, pace: Pace, taken: Mapping[str, Collection[int]], seconds: float, *, steady: bool) -> Part:
    """Prove that nothing that the registers, memories and gates ``taken`` take in their cycles after an acceptance
    depends on o_ready, unless through the acceptance of a pair: nets that are 1 exactly then, or always so many cycles
    before, in all states."""
    ports, part = net.module["ports"], Part("stalls", _STALLS, "PROVED", steady=steady)
    words = {name: _taken(net, net.cells[name]) for name in taken if name in net.cells}
    ((ready,), (source,)) = ports["i_ready"]["bits"], ports["o_ready"]["bits"]
    try:
        hours = Hours(net, [ready, *(b for bits in words.values() for b in bits)], pace.reset)
    except ValueError as error:
        return replace(part, state="OPEN", remains=str(error))
    begins = [hour for hour in range(hours.count()) if hours.may(ready, hour)]
    starts = [
        (b, hours.after(hour, age)) for name, bits in words.items() for age in taken[name] for hour in begins
        for b in bits if isinstance(b, int)
    ]  # fmt: skip
    if path := hours.path(starts, source, set(_accepting(net, pace, seconds, steady=steady))):
        names = " -> ".join(dict.fromkeys(filter(None, map(net.name, path))))
        return replace(part, state="OPEN", remains=f"a path of nets, which values may or may not take: {names}")
    return part


def _taken(net: Netlist, cell: Cell) -> list[Bit]:
    """What a register, memory or gate takes."""
    ends = ("D",) if cell["type"] in REGISTERS else ("WR_DATA",) if cell["type"] == "$mem_v2" else ("A", "B", "S")
    return [_written(net, b) for port in ends for b in cell["connections"].get(port, ())]


def _accepting(net: Netlist, pace: Pace, seconds: float, *, steady: bool) -> Iterator[Bit]:
    """Outputs of gates behind i_valid that are 1 exactly when a pair is accepted, or always so many cycles before."""
    (valid,) = net.module["ports"]["i_valid"]["bits"]
    users = users_of(net)
    todo, seen = [valid], {valid}
    while todo and len(seen) < _MOST_GATES:
        for name, port, k in users.get(todo.pop(), ()):
            cell = net.cells[name]
            if cell["type"] not in REGISTERS and cell["type"] != "$mem_v2":
                new = {cell["connections"][out][j] for out, j in ahead(cell, port, k)} - seen
                seen |= new
                todo += new
    gates = [bit for bit in seen if bit != valid]
    values, accepted, _ = alone(Monitored(net, pace, steady=steady), gates, 0)
    for bit in gates:
        when = [cycle for cycle in range(accepted + 1) if values[cycle][bit]]
        if len(when) != 1:
            continue
        watched = Monitored(net, pace, steady=steady)
        early = bit
        for _ in range(accepted - when[0]):
            (early,) = watched.cleared([early])
        if watched.search(watched.gate("$xor", [early], [watched.accept]), seconds).answer == "never":
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
