# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A state machine with one register for each state: next-state logic of two or three LUTs for any number of states."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from amaranth.hdl import Cat, Module, Signal


class OneHot:
    """States as in Amaranth's FSM.

    The first state that is named is the state after reset. The machine stays in a state unless `next` is called in
    it; of several active calls the last one counts. Use it as ``with OneHot(m, name) as machine``. At the end of that
    block it raises ValueError if `next` or `ongoing` names a state that `state` does not define.
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
            raise ValueError(f"{self._name}: undefined state {', '.join(missing)}")
        for state, here in self._here.items():
            self._m.d.sync += here.eq(Cat(*self._ways.get(state, [])).any())

    @contextmanager
    def state(self, state: str) -> Iterator[None]:
        """Define a state: statements in this context take effect in it."""
        self._described.add(state)
        self._now, self._chosen = state, {}
        with self._m.If(self.ongoing(state)):
            self.next(state)
            yield

    def ongoing(self, state: str) -> Signal:
        """High while the machine is in this state."""
        if state not in self._here:
            name = f"{self._name}_{state.lower().replace(' ', '_')}"
            self._here[state] = Signal(name=name, init=not self._here)
        return self._here[state]

    def next(self, state: str) -> None:
        """Go to ``state`` in the next cycle, under the conditions around this call."""
        self.ongoing(state)
        for other in self._chosen.values():
            self._m.d.comb += other.eq(0)
        if state not in self._chosen:
            way = self._chosen[state] = Signal(
                name=f"{self._here[self._now].name}_to_{state.lower().replace(' ', '_')}"
            )
            self._ways.setdefault(state, []).append(way)
        self._m.d.comb += self._chosen[state].eq(1)
