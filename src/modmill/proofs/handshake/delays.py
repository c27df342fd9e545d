# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Shift registers of control, with what is not known of their contents left open: fewer states for a search.

A chain of m bits, each of which takes the one before it under one enable, has 2^m contents. Here a counter says how
many are 1, and each bit that leaves is arbitrary, as far as the counter allows. In addition, one of two things is
known. The oldest 1 leaves after at most m steps since the last one left or since the chain was empty. Or, if a pair is
marked, the place of its bit is followed exactly, and the number of those before it. So every history of the chain is
one of the histories here, and what never happens here never happens; what happens here may be wrong.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from modmill.proofs.netlist import REGISTERS, Bit, Netlist, behind
from modmill.proofs.states import PICK

if TYPE_CHECKING:
    from modmill.proofs.handshake.monitors import Monitored

_FEWEST = 3
"""Fewest bits of a chain that is replaced."""
_MOST = 4
"""Most chains that are replaced, the longest ones: each has an input of its own."""
_STEPS = ("EN", "SRST")


@dataclass(frozen=True)
class Chain:
    """Bits of registers, each of which feeds only the next. ``first``: what the first takes. ``end``: name of the cell
    that takes the last, and the bit of its port D. ``length``: number of bits."""

    first: Bit
    end: tuple[str, int]
    length: int


def shortened(net: Monitored, wrong: Bit, *, early: bool = False) -> Monitored | None:
    """A copy of the netlist in which the chains are replaced on which ``wrong`` depends; None if there are none.
    ``early``: the bit of the marked pair is the last one before its acceptance, not the first one from then on."""
    cone = _Cone(net, wrong)
    found = sorted(cone.chains(), key=lambda chain: -chain.length)[:_MOST]
    if not found:
        return None
    made = copy.copy(net)
    made.module = {**net.module, **{key: dict(net.module[key]) for key in ("cells", "ports", "netnames")}}
    made.cells = made.module["cells"]
    follow = "" if "mark" not in vars(net) or not cone.has(net.mark.start) else "early" if early else "late"
    for number, chain in enumerate(found):
        _replace(made, chain, f"{PICK}${number}", follow)
    return made


class _Cone:
    """The nets on which a net depends, over any number of cycles. Names of a net are one: gates that only hand on a bit
    count as wires."""

    def __init__(self, net: Monitored, wrong: Bit) -> None:
        self._net, self._drivers = net, Netlist({**net.module}).drivers
        self._users: dict[Bit, set[Bit]] = {}
        todo = [self._root(wrong)]
        self._users[todo[0]] = {"out"}
        seen = {*todo}
        while todo:
            bit = todo.pop()
            if bit in self._drivers:
                name, port, k = self._drivers[bit]
                cell = net.cells[name]
                for each in {self._root(cell["connections"][p][j]) for p, j in behind(cell, port, k)}:
                    self._users.setdefault(each, set()).add(bit)
                    if each not in seen:
                        seen.add(each)
                        todo.append(each)

    def has(self, bit: Bit) -> bool:
        """Whether a net is one of them."""
        return self._root(bit) in self._users

    def _root(self, bit: Bit) -> Bit:
        while bit in self._drivers:
            name, port, k = self._drivers[bit]
            cell = self._net.cells[name]
            bits = list(behind(cell, port, k))
            given = {cell["connections"][p][j] for p, j in bits} - {"0"}
            if cell["type"] not in ("$or", "$pos") or len(given) != 1 or any(j != k for _, j in bits):
                break
            (bit,) = given
        return bit

    def _before(self, bit: Bit) -> Bit | None:
        """The bit of a register that another one takes whenever it takes anything, if nothing else uses it and both are
        cleared together."""
        if bit not in self._drivers:
            return None
        name, _, k = self._drivers[bit]
        cell = self._net.cells[name]
        if cell["type"] not in REGISTERS:
            return None
        before = self._root(cell["connections"]["D"][k])
        steps = self._steps(before)
        return before if steps and steps == self._steps(bit) and self._users.get(before) == {bit} else None

    def _steps(self, bit: Bit) -> tuple[object, ...]:
        """When a bit of a register takes a new value and when 0; empty if it is no such bit."""
        if bit not in self._drivers:
            return ()
        name, _, k = self._drivers[bit]
        cell = self._net.cells[name]
        if cell["type"] not in ("$sdff", "$sdffe") or cell["parameters"]["SRST_VALUE"][-1 - k] != "0":
            return ()
        pins, parameters = cell["connections"], cell["parameters"]
        return tuple((port, *pins[port], parameters[f"{port}_POLARITY"]) for port in _STEPS if port in pins)

    def chains(self) -> Iterator[Chain]:
        """All chains that are long enough."""
        inner = {before for bit in self._users if (before := self._before(bit)) is not None}
        for bit in self._users:
            if bit in inner or (first := self._before(bit)) is None:
                continue
            length = 1
            while (before := self._before(first)) is not None:
                first, length = before, length + 1
            name, _, k = self._drivers[first]
            if length >= _FEWEST:
                given = self._root(self._net.cells[name]["connections"]["D"][k])
                yield Chain(given, (self._drivers[bit][0], self._drivers[bit][2]), length)


def _replace(net: Monitored, chain: Chain, port: str, follow: str) -> None:
    """Give the end of a chain what may leave it. ``port``: name of a new input, which chooses. ``follow``: the first
    bit from the acceptance of the marked pair on ("late"), the last one before it ("early"), or the oldest 1 ("")."""
    name, place = chain.end
    cell = net.cells[name]
    pins, parameters = cell["connections"], cell["parameters"]

    def pin(port: str) -> Bit:
        return pins[port][0] if int(parameters[f"{port}_POLARITY"], 2) else net.inverse(pins[port][0])

    step, clear = pin("EN") if "EN" in pins else "1", pin("SRST")
    size = chain.length.bit_length()
    last: list[Bit] = [str(chain.length - 1 >> k & 1) for k in range(size)]
    net.module["ports"][port] = {"direction": "input", "bits": (free := net.fresh(1))}
    count, left = net.fresh(size), net.fresh(size)

    def some(bits: list[Bit]) -> Bit:
        return net.gate("$reduce_or", bits)

    def less(bits: list[Bit], by: Bit) -> list[Bit]:
        return net.add("$sub", width=size, A=bits, B=[by])

    def held(new: list[Bit], out: list[Bit]) -> None:
        net.held(net.chosen(clear, net.chosen(step, out, new), ["0"] * len(out)), out)

    any_, here = net.all_of([*free, some(count)]), net.inverse(some(left))  # here: the followed one leaves
    if follow:
        ahead, follows = net.fresh(size), net.fresh(1)
        marked = net.fresh(1)  # the followed bit is that of the marked pair
        fixed = net.one_of([net.all_of([*follows, net.mark.start]), *marked])
        leaves = net.all_of([step, here])
        net.held(net.chosen(clear, [net.all_of([fixed, net.inverse(leaves)])], ["0"]), marked)
        enters = net.all_of([chain.first, net.inverse(fixed)])
        if follow == "late":
            waits = net.fresh(1)
            wanted = net.one_of([net.mark.start, *waits])
            enters = net.all_of([chain.first, wanted, net.inverse(*follows)])
            net.held(net.chosen(clear, [net.all_of([wanted, net.inverse(net.all_of([enters, step]))])], ["0"]), waits)
        full = net.gate("$eq", ahead, left)  # those before it fill all places before it
        any_ = net.choice(follows[0], any_, net.one_of([here, full, net.all_of([*free, some(ahead)])]))
        stays = [] if follow == "late" else [fixed]  # a bit whose pair is not accepted until the next step is forgotten
        held([net.one_of([enters, net.all_of([*follows, net.inverse(here), *stays])])], follows)
    else:
        any_ = net.one_of([any_, net.all_of([here, some(count)])])
    out = net.one_of([any_, net.equal(count, chain.length)])
    held(less(net.add("$add", width=size, A=count, B=[chain.first]), out), count)
    if follow:
        held(net.chosen(enters, less(ahead, net.all_of([out, some(ahead)])), less(count, out)), ahead)
        held(net.chosen(enters, less(left, some(left)), last), left)
    else:
        held(net.chosen(net.one_of([out, net.inverse(some(count))]), less(left, "1"), last), left)
    data = list(pins["D"])
    data[place] = out
    net.cells[name] = {**cell, "connections": {**pins, "D": data}}
