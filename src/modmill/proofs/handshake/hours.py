# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""On what nets depend, in each cycle of the counters that only the reset steers.

A core whose program is a table of a counter uses one path in one cycle and another in the next. The counter depends on
nothing but the reset. So its values, and those of all that follows from them, are known in each cycle: an hour. After
some hours they come again. What a net depends on is looked for hour by hour, through the inputs that count then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from modmill.proofs.handshake.gates import Gates
from modmill.proofs.netlist import Bit, Netlist

_ENDS = "ends"
_MOST_HOURS = 10_000


class Hours:
    """The hours of a netlist, for the nets on which ``ends`` depend. ``reset``: cycles of a reset. Hour 0 is the first
    behind it.

    Raises ValueError if a cell has no rule."""

    def __init__(self, net: Netlist, ends: Sequence[Bit], reset: int) -> None:
        ports = {**net.module["ports"], _ENDS: {"direction": "output", "bits": list(ends)}}
        self.gates = gates = Gates(Netlist({**net.module, "ports": ports}), [_ENDS])
        self._made = {out: (kind, ins) for kind, ins, out in gates.made}
        self._next = self._run(net.module["ports"]["rst"]["bits"], reset)
        self._reads = {data: (read, k) for read in gates.reads for k, data in read.data.items()}

    def _run(self, rst: Sequence[Bit], reset: int) -> list[int]:
        """The hour after each hour; also the unknown nets of each."""
        gates = self.gates
        known: dict[int, tuple[int, int]] = dict.fromkeys(gates.registers, (0, 1))
        hours: dict[tuple[tuple[int, int], ...], int] = {}
        self._unknown: list[Sequence[int]] = []
        self._ones: list[Sequence[int]] = []
        for cycle in range(_MOST_HOURS):
            if cycle >= reset and (state := tuple(known.values())) in hours:
                return [*range(1, len(hours)), hours[state]]
            V, U = [0] * gates.count, [0] * gates.count
            for n, bit in gates.inputs.items():
                V[n], U[n] = (int(cycle < reset), 0) if bit in rst else (0, 1)
            for n, value in known.items():
                V[n], U[n] = value
            gates.evaluate(V, U, 1)
            if cycle >= reset:
                hours[state] = len(hours)
                self._unknown.append(U)
                self._ones.append(V)
            known = {n: (V[f], U[f]) for n, f in gates.registers.items()}
        raise ValueError(f"the counters that only the reset steers have more than {_MOST_HOURS:,} states")

    def count(self) -> int:
        """Number of hours."""
        return len(self._next)

    def after(self, hour: int, cycles: int) -> int:
        """The hour some cycles later."""
        for _ in range(cycles):
            hour = self._next[hour]
        return hour

    def may(self, bit: Bit, hour: int) -> bool:
        """Whether a net may be 1."""
        n = self.gates.index[bit]
        return bool(self._unknown[hour][n] or self._ones[hour][n])

    def path(self, starts: Sequence[tuple[Bit, int]], source: Bit, stops: Collection[Bit]) -> list[Bit]:
        """Nets on a path from ``source`` to one of ``starts``, each a net and an hour; empty if none of them depends on
        it. What a net among ``stops`` depends on does not count, nor what was before the reset."""
        gates = self.gates
        first, ends = gates.index.get(source, -1), {gates.index[b] for b in stops if b in gates.index}
        before: dict[tuple[int, int], tuple[int, int] | None] = {(gates.index[b], hour): None for b, hour in starts}
        todo = list(before)
        while todo:
            at = todo.pop()
            if at[0] == first:
                return self._named(before, at)
            if at[0] not in ends:
                new = {each for each in self._sources(*at) if each not in before and self._unknown[each[1]][each[0]]}
                before |= dict.fromkeys(new, at)
                todo += new
        return []

    def _named(self, before: dict[tuple[int, int], tuple[int, int] | None], at: tuple[int, int] | None) -> list[Bit]:
        bits = {n: b for b, n in self.gates.index.items()}
        found: list[Bit] = []
        while at:
            found += [bits[at[0]]] if at[0] in bits else []
            at = before[at]
        return found

    def _sources(self, n: int, hour: int) -> Iterator[tuple[int, int]]:
        """The nets, and their hours, on which an unknown net depends."""
        unknown, ones = self._unknown[hour], self._ones[hour]
        if n in self.gates.registers:
            yield from ((self.gates.registers[n], h) for h, after in enumerate(self._next) if after == hour)
        elif n in self._reads:
            read, column = self._reads[n]
            yield from ((address, hour) for address in read.address)
            for address, columns in read.memory.writes:
                data, enable = columns[column]
                for h in range(len(self._next)):
                    if self._unknown[h][enable] or self._ones[h][enable]:
                        yield from ((net, h) for net in (data, enable, *address))
        elif n in self._made:
            kind, ins = self._made[n]
            if kind == "mux" and not unknown[ins[2]]:
                yield ins[ones[ins[2]]], hour
            else:
                yield from ((each, hour) for each in ins)
