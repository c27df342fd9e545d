# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Powers as rows: every step of an exponentiation is one product, and a unit without sums does it.

Numbers that belong to the modulus are shared by all contexts. Slots of a context: first what digits pick, each table
at a multiple of its size and the two slots of a choice at an even number; then the others. A digit of the exponent
chooses an address, as a scalar's does for a curve.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from modmill.contract import Refusal
from modmill.engines.microcode.program import ENTRY as TABLE
from modmill.engines.microcode.program import PAIR, Place, Row, RowProgramme, Task
from modmill.engines.rsa.exponentiation import EITHER, ENTRY, Exponentiation, Programme, Step

BASE = "base"
"""The number that each context is given."""


def numbers_of(programme: Programme) -> tuple[str, ...]:
    """The numbers of the modulus, in the order of their shared slots."""
    return tuple(name for _, name in sorted(programme.loads) if name != BASE)


def power_rows(power: Exponentiation, distance: int, subtractions: int = 0) -> RowProgramme:
    """The rows of a power, for a unit on which a product can be read ``distance`` rows later.

    ``subtractions``: how often p may be subtracted from the result; at least as often as the power's bounds ask for.
    Raises Refusal for a programme that writes or picks a number of the modulus, or has no product.
    """
    p = power.programme
    slots = _Slots(p)
    before, loop, after = (_rows(steps, slots, distance) for steps in (p.before, p.loop, p.after))
    first, each, last = (sum(step.advance for step in steps) for steps in (p.before, p.loop, p.after))
    return RowProgramme(
        name=p.name,
        inputs=tuple((slots.own(slot), name) for slot, name in p.loads if name == BASE),
        shared=tuple((k, power.numbers[name]) for k, name in enumerate(numbers_of(p))),
        before=before, loop=loop, after=after, passes=p.passes(power.bits),
        results=((slots.own(p.result), int(max(power.subtractions, subtractions))),),
        window=p.window, each=each, first=first, last=last,
    )  # fmt: skip


class _Slots:
    """Where a programme's slots are among those of a context and the shared ones."""

    def __init__(self, programme: Programme) -> None:
        steps = (*programme.before, *programme.loop, *programme.after)
        if not steps:
            raise Refusal(f"{programme.name} has no products")
        self._window = programme.window
        constants = sorted(slot for slot, name in programme.loads if name != BASE)
        self._shared = {slot: k for k, slot in enumerate(constants)}
        runs = set(chain.from_iterable(_picked(step, programme.window) for step in steps))
        self._own: dict[int, int] = {}
        for size, first in sorted(((size, first) for first, size in runs), key=lambda run: (-run[0], run[1])):
            for slot in range(first, first + size):
                if slot in self._own:
                    raise Refusal(f"{programme.name}: slot {slot} is picked in two ways")
                self._own[slot] = len(self._own)
        others = {programme.result, *(s for s, _ in programme.loads), *(s.destination for s in steps)}
        for slot in sorted((others | {s for step in steps for s in (step.a, step.b)}) - self._own.keys()):
            if slot not in self._shared:
                self._own[slot] = len(self._own)
        for slot in (*self._own, *(s.destination for s in steps), programme.result):
            if slot in self._shared:
                raise Refusal(f"{programme.name}: slot {slot}, in which a number must stay, is picked or written")

    def own(self, slot: int) -> int:
        """Number of a slot of the programme among those of a context."""
        return self._own[slot]

    def place(self, slot: int) -> Place:
        """A slot of the programme."""
        return Place(self._shared[slot], shared=True) if slot in self._shared else Place(self._own[slot])

    def task(self, step: Step) -> Task:
        """The product of a step."""
        if step.pick == EITHER:  # slot b, and a where the digit is odd: they are neighbours
            both = Place(self._own[step.b], PAIR)
            return Task("mul", self.place(step.destination), both, both)
        second = Place(self._own[step.b], TABLE, size=1 << self._window) if step.pick == ENTRY else self.place(step.b)
        return Task("mul", self.place(step.destination), self.place(step.a), second)


def _picked(step: Step, window: int) -> Iterator[tuple[int, int]]:
    """(first slot, number of slots) of those that a digit picks from."""
    if step.pick == ENTRY:
        yield step.b, 1 << window
    elif step.pick == EITHER:
        if abs(step.a - step.b) != 1:
            raise Refusal(f"slots {step.a} and {step.b}, of which a digit picks one, are no neighbours")
        yield min(step.a, step.b), 2


def _rows(steps: Iterable[Step], slots: _Slots, distance: int) -> tuple[Row, ...]:
    """One row for each step, and rows without a product where it must wait for one; at the end all can be read."""
    rows: list[Row] = []
    readable: dict[tuple[bool, int], int] = {}

    def wait(until: int) -> None:
        rows.extend([Row()] * (until - len(rows)))

    for step in steps:
        task = slots.task(step)
        wait(max((readable.get((its, n), 0) for place in (task.destination, *task.reads) for its, n in place.all)))
        rows.append(Row(task, advance=step.advance))
        readable |= dict.fromkeys(task.destination.all, len(rows) - 1 + distance)
    wait(max(readable.values(), default=0))
    return tuple(rows)
