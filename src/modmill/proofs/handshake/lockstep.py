# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Two runs of a netlist in lock-step, over all states that a choice of its registers can have.

`explore` follows some registers, the tracked ones, from the reset through all values that they can have. All others are
unknown, and equal in both runs unless they were found to differ; so the result holds for all values of what is not
tracked. A net's four values are those of `gates`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from modmill.proofs.handshake.gates import DIFFERS, EQUAL, Gates, lanes_of, plane

_MOST_SPLITS, _MOST_LANES = 64, 1024
"""Most unknown nets of one step whose two values are followed, and most states of one step; what stays unknown then is
unknown in the next states."""
State = tuple[int, ...]
"""Values of the tracked registers."""


@dataclass(frozen=True)
class View:
    """What `explore` follows. ``data``: inputs that may differ. ``tracked``: registers. ``kept``: tracked registers
    whose unknown next value stays unknown; for the others both values are followed. ``words``: tracked registers of
    which only is followed whether they are equal. ``public``: pairs (conditions, nets): while all of the pairs (net,
    value) of a condition hold, these nets are equal in both runs by declaration.
    ``inputs``: inputs both of whose values are followed in every step."""

    data: Collection[int]
    tracked: Sequence[int]
    kept: Collection[int] = ()
    words: Collection[int] = ()
    public: Sequence[tuple[Sequence[Sequence[tuple[int, int]]], Sequence[int]]] = ()
    inputs: Sequence[int] = ()


@dataclass
class Explored:
    """The result. ``differing``: registers and outputs that may differ in some state, each with the net that is a
    reason for it; not all of them if an output is among them. ``states``: number of values of the tracked registers."""

    differing: dict[int, int]
    states: int

    def path(self, net: int) -> list[int]:
        """The nets from which a difference comes to a net, the first one first."""
        out = [net]
        while (net := self.differing.get(net, net)) not in out:
            out.append(net)
        return out[::-1]


def explore(gates: Gates, view: View, *, power_up: int = 1, most: int = 200_000) -> Explored:
    """Follow the tracked registers from a reset of ``power_up`` cycles, after which they may be reset at any time.

    Before the reset all tracked registers may differ. Raises ValueError if there are more than ``most`` states."""
    differing: dict[int, int] = {}
    while True:
        before = len(differing), [len(m.causes) for m in gates.memories.values()]
        run = _Exploration(gates, view, differing, most)
        run.all(power_up)
        leaks = any(n in differing for n in gates.outputs)
        if leaks or before == (len(differing), [len(m.causes) for m in gates.memories.values()]):
            return Explored(differing, len(run.seen))


class _Exploration:
    """One pass over all states, in which ``differing`` grows."""

    def __init__(self, gates: Gates, view: View, differing: dict[int, int], most: int) -> None:
        self.gates, self.view, self.differing, self._most = gates, view, differing, most
        self.seen = set[State]()
        resets = gates.net.module["ports"].get("rst", {"bits": []})["bits"]
        self._reset = next((n for n, bit in gates.inputs.items() if bit in resets), -1)
        self._others = {n for n in (*gates.registers, *gates.inputs) if n not in set(view.tracked)}
        self._free = {n for n in (*gates.registers, *gates.inputs) if n != self._reset}
        self._resolved = [n for n in view.tracked if n not in {*view.kept, *view.words}]
        self._start: State = (DIFFERS,) * len(view.tracked)

    def all(self, power_up: int) -> None:
        """Visit all states."""
        for _ in range(power_up):
            (self._start,) = self._next(*self._evaluated([self._start], 1, {}))
        frontier = [self._start]
        while frontier and not any(n in self.differing for n in self.gates.outputs):
            self.seen.update(frontier)
            if len(self.seen) > self._most:
                raise ValueError(f"control has more than {self._most:,} states")
            found = dict.fromkeys(state for reset in (0, 1) for state in self._step(frontier, reset))
            frontier = [state for state in found if state not in self.seen]

    def _evaluated(
        self, states: Sequence[State], reset: int, pinned: Mapping[int, _Planes]
    ) -> tuple[list[int], list[int], int]:
        """All nets for these states. ``pinned``: chosen values of unknown nets, as planes (mask, value)."""
        gates, lanes = self.gates, len(states)
        M = (1 << lanes) - 1
        V, U = [0] * gates.count, [0] * gates.count
        for n in self._others:
            U[n] = M
            V[n] = M if n in self.differing or n in self.view.data else 0
        if self._reset >= 0:
            V[self._reset], U[self._reset] = M * reset, 0
        for k, n in enumerate(self.view.tracked):
            V[n], U[n] = plane(s[k] & 1 for s in states), plane(s[k] >> 1 for s in states)
        for n, (mask, value) in pinned.items():
            V[n], U[n] = (V[n] & ~mask) | (value & mask), U[n] & ~mask
        for conditions, nets in self.view.public:
            held = 0
            for condition in conditions:
                fulfilled = M
                for n, value in condition:
                    fulfilled &= ~U[n] & (V[n] if value else ~V[n])
                held |= fulfilled
            for n in nets:
                V[n] &= ~(held & U[n])
        gates.evaluate(V, U, lanes)
        return V, U, lanes

    def _next(self, V: list[int], U: list[int], lanes: int) -> list[State]:
        M, words = (1 << lanes) - 1, set(self.view.words)
        following = [(self.gates.registers[n], n in words) for n in self.view.tracked]
        planes = [(V[f] & U[f], M) if word else (V[f], U[f]) for f, word in following]
        return [tuple((v >> lane & 1) + 2 * (u >> lane & 1) for v, u in planes) for lane in range(lanes)]

    def _step(self, states: list[State], reset: int) -> list[State]:
        """The next values of the tracked registers; unknown ones are followed with both values."""
        pinned: dict[int, _Planes] = {}
        for n in self.view.inputs:
            states, pinned = _split(states, pinned, {n: [*range(len(states))]})
        for _ in range(_MOST_SPLITS):
            V, U, lanes = self._evaluated(states, reset, pinned)
            leaves = self._leaves(V, U)
            if not leaves or len(states) > _MOST_LANES:
                break
            states, pinned = _split(states, pinned, leaves)
        self._record(V, U)
        found = self._next(V, U, lanes)
        return [state for state in found if not reset or not self._covered(state)]

    def _covered(self, state: State) -> bool:
        """Whether the first state after a reset contains this one."""
        pairs = zip(self._start, state, strict=True)
        return all(a in (b, DIFFERS) or (a == EQUAL and b != DIFFERS) for a, b in pairs)

    def _leaves(self, V: list[int], U: list[int]) -> dict[int, list[int]]:
        """For unknown nets on which unknown next values depend, the lanes in which their value is to be chosen."""
        leaves = dict[int, list[int]]()
        done = set[int]()
        for n in self._resolved:
            f = self.gates.registers[n]
            if unknown := U[f] & ~V[f]:
                for lane in lanes_of(unknown):
                    leaf = None if lane in done else self.gates.leaf(f, lane, V, U, self._free)
                    if leaf is not None:
                        leaves.setdefault(leaf, []).append(lane)
                        done.add(lane)
        return leaves

    def _record(self, V: list[int], U: list[int]) -> None:
        """Note what may differ: registers' next values, outputs, and words of memories."""
        gates = self.gates
        following = [*gates.registers.items(), *((n, n) for n in gates.outputs)]
        for n, f in following:
            if n not in self.differing and (there := V[f] & U[f]):
                self.differing[n] = self._cause(f, there, V, U)
        for memory in gates.memories.values():
            for address, columns in memory.writes:
                for k, (d, e) in columns.items():
                    may = V[e] | U[e]
                    for n in (d, e, *address):
                        if k not in memory.causes and (there := V[n] & U[n] & may):
                            memory.causes[k] = self._cause(n, there, V, U)

    def _cause(self, net: int, where: int, V: list[int], U: list[int]) -> int:
        return self.gates.cause(net, (where & -where).bit_length() - 1, V, U)


_Planes = tuple[int, int]


def _split(
    states: list[State], pinned: Mapping[int, _Planes], leaves: Mapping[int, list[int]]
) -> tuple[list[State], dict[int, _Planes]]:
    """Duplicate lanes: in the copy the leaf is 1, in the original 0."""
    order = [*range(len(states)), *(lane for where in leaves.values() for lane in where)]
    planes = {n: [plane(p >> lane & 1 for lane in order) for p in pinned.get(n, (0, 0))] for n in {*pinned, *leaves}}
    at = len(states)
    for n, where in leaves.items():
        copies = ((1 << len(where)) - 1) << at
        planes[n][0] |= copies | plane(int(lane in where) for lane in range(len(states)))
        planes[n][1] |= copies
        at += len(where)
    return [states[lane] for lane in order], {n: (mask, value) for n, (mask, value) in planes.items()}
