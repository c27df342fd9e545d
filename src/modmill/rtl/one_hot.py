# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A state machine with a register for each state: where it goes next is two or three LUTs, however many there are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from amaranth.hdl import Cat, Module, Signal


class OneHot:
    """States as Amaranth's FSM has them: the first one named is that after a reset, and the machine stays where it is
    unless the state says what comes ``next``; of several the last counts.

    Used as ``with OneHot(m, name) as machine``; when that ends, the states are complete. Raises ValueError then for a
    state that is gone to and nowhere described.
    """

    def __init__(self, m: Module, name: str) -> None:
        self._m, self._name = m, name
        self._here: dict[str, Signal] = {}
        self._described: set[str] = set()
        self._ways: dict[str, list[Signal]] = {}
        self._chosen: dict[str, Signal] = {}
        self._now = ""

    def __enter__(self) -> OneHot:
        return self

    def __exit__(self, kind: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        if kind is not None:
            return
        if missing := sorted(set(self._here) - self._described):
            raise ValueError(f"{self._name}: nothing is said about state {', '.join(missing)}")
        for state, here in self._here.items():
            self._m.d.sync += here.eq(Cat(*self._ways.get(state, [])).any())

    @contextmanager
    def state(self, state: str) -> Iterator[None]:
        """What is done in a state."""
        self._described.add(state)
        self._now, self._chosen = state, {}
        with self._m.If(self.ongoing(state)):
            self.next(state)
            yield

    def ongoing(self, state: str) -> Signal:
        """Whether the machine is in a state."""
        if state not in self._here:
            name = f"{self._name}_{state.lower().replace(' ', '_')}"
            self._here[state] = Signal(name=name, init=not self._here)
        return self._here[state]

    def next(self, state: str) -> None:
        """The state after this one, under the conditions that this is said in."""
        self.ongoing(state)
        for other in self._chosen.values():
            self._m.d.comb += other.eq(0)
        if state not in self._chosen:
            way = self._chosen[state] = Signal(
                name=f"{self._here[self._now].name}_to_{state.lower().replace(' ', '_')}"
            )
            self._ways.setdefault(state, []).append(way)
        self._m.d.comb += self._chosen[state].eq(1)
