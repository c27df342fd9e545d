# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Recipes made into programmes of rows for a unit and a multiplier: bounds, rows, slots.

Slots of a context: first its tables, each at a multiple of its size, pairs at even numbers, then variables; then what
sections keep for themselves, in as few slots as their lifetimes allow, those of variables included that no later
section reads, and those of a table until its entries are written. Shared slots: tables of constants, then constants.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain

from modmill.contract import Contract, UnsupportedError
from modmill.engines.microcode.bounds import Settled, row_limits, settle
from modmill.engines.microcode.expressions import MUL, READ, SUB, Name
from modmill.engines.microcode.fusing import fused
from modmill.engines.microcode.hazards import check_rows
from modmill.engines.microcode.program import ENTRY, FIXED, PAIR, Place, Row, RowProgramme, Task, Unit
from modmill.engines.microcode.recipe import Recipe
from modmill.engines.microcode.scheduling import Placed, join, ready_to_place

_ALWAYS = 1 << 40
"""No row comes later."""


@dataclass(frozen=True)
class Assembled:
    """A programme of rows with what it was made from. ``parts``: its sections in rows."""

    programme: RowProgramme
    settled: Settled
    parts: tuple[Placed, ...]
    unit: Unit

    @property
    def recipe(self) -> Recipe:
        """The recipe as it is done, with inserted reductions."""
        return self.settled.recipe

    def facts(self) -> list[tuple[str, str]]:
        """What a report shows."""
        programme, settled = self.programme, self.settled
        inserted = len(settled.reductions)
        return [
            ("rows", str(programme.rows)),
            ("products", str(programme.products)),
            ("table rows", str(len(programme.before) + len(programme.loop) + len(programme.after))),
            ("digits", f"{programme.digits} of {programme.window} bits"),
            ("slots of a context", str(programme.slots)),
            ("shared slots", str(programme.shared_slots)),
            ("sums trimmed", str(settled.trims_in_all)),
            ("reductions inserted", f"{inserted} ({', '.join(sorted(set(settled.reductions)))})" if inserted else "0"),
        ]


def assemble(recipe: Recipe, contract: Contract, unit: Unit) -> Assembled:
    """Rows for a recipe. Raises UnsupportedError where numbers could overflow or the unit has no room; the rows have
    passed `check_rows` and `row_limits`, which share nothing with what made them."""
    if recipe.domain.p != contract.p or (recipe.domain.factor - contract.factor) % contract.p:
        raise UnsupportedError(f"{recipe.name} was made for another domain than that of the multiplier")
    one = recipe.domain.one
    sections = tuple(section.pruned() for section in recipe.sections)
    if unit.added:
        sections = tuple(fused(section, one, contract.p).pruned() for section in sections)
    sections = tuple(ready_to_place(section, recipe.layers, unit, one) for section in sections)
    settled = settle(recipe.with_sections(sections), contract, unit)
    recipe = settled.recipe
    loop = len(recipe.before) if recipe.loop else -1
    parts = join(recipe.sections, loop, recipe.layers, unit)
    slots = _Slots(recipe, parts, unit)
    rows = [_rows(part, slots, k, settled.lifts[k], settled.trims[k]) for k, part in enumerate(parts)]
    results = []
    for name, bound in zip(recipe.results, settled.results, strict=True):
        results.append((slots.named[name], int(-(-bound // 1)) - 1))
    programme = RowProgramme(
        name=recipe.name,
        inputs=tuple((slots.named[name], name) for name in recipe.inputs),
        shared=slots.constants,
        before=tuple(chain.from_iterable(rows[: len(recipe.before)])),
        loop=rows[loop] if recipe.loop else (),
        after=rows[-1],
        passes=recipe.passes if recipe.loop else 0,
        results=tuple(results),
        window=recipe.window,
        each=recipe.loop.digits if recipe.loop else 0,
        first=sum(section.digits for section in recipe.before),
        last=recipe.after.digits,
    )
    if programme.slots > unit.room or programme.shared_slots > unit.shared_room:
        raise UnsupportedError(
            f"{recipe.name} needs {programme.slots} slots a context and {programme.shared_slots} shared ones; the unit "
            f"has {unit.room} and {unit.shared_room}"
        )
    check_rows(programme, unit)
    row_limits(programme, contract)
    return Assembled(programme, settled, tuple(parts), unit)


def _size(entries: int) -> int:
    return 1 << (entries - 1).bit_length() if entries > 1 else 1


class _Slots:
    """Numbers of slots: of variables and entries, of constants, and of what each section makes for itself."""

    def __init__(self, recipe: Recipe, parts: list[Placed], unit: Unit) -> None:
        self._recipe, self._unit = recipe, unit
        self.named: dict[Name, int] = {}
        self.tables: dict[str, Place] = {}
        self._shared: dict[int, int] = {}
        self._values: list[tuple[int, int]] = []
        end = self._layers()
        end = self._variables(end)
        self._constants(parts)
        self.own: list[dict[int, int]] = []
        live = self._live(parts)
        for number, part in enumerate(parts):
            free = {slot: _ALWAYS for name, slot in self.named.items() if name not in live[number]}
            self.own.append(self._allocate(part, self._lent(number, parts) | free, end))

    @property
    def constants(self) -> tuple[tuple[int, int], ...]:
        """Shared slots and their values."""
        return tuple(self._values)

    def shared(self, value: int) -> int:
        """The shared slot of a constant."""
        return self._shared[value]

    def _layers(self) -> int:
        end = 0
        for name, entries in sorted(self._recipe.layers.tables, key=lambda table: -table[1]):
            size = _size(entries)
            end = -(-end // size) * size
            self.tables[name] = Place(end, ENTRY, size=size)
            self.named.update({(name, k): end + k for k in range(entries)})
            end += entries
        for a, b in self._recipe.layers.pairs:
            end += end % 2
            self.named |= {a: end, b: end + 1}
            end += 2
        return end

    def _variables(self, end: int) -> int:
        names: dict[str, None] = dict.fromkeys(self._recipe.inputs)
        for section in self._recipe.sections:
            names.update(dict.fromkeys(name for name in section.outputs if isinstance(name, str)))
        for name in names:
            if name not in self.named:
                self.named[name] = end
                end += 1
        return end

    def _constants(self, parts: list[Placed]) -> None:
        end = 0
        for name, table in sorted(self._recipe.shared.items(), key=lambda item: -len(item[1])):
            size = _size(len(table))
            end = -(-end // size) * size
            self.tables[name] = Place(end, ENTRY, shared=True, size=size)
            self._values += [(end + k, table[k] if k < len(table) else 0) for k in range(size)]
            end += size
        for part in parts:
            for node in part.section.nodes:
                if node.source and not node.source.name and node.source.value not in self._shared:
                    self._shared[node.source.value] = end
                    self._values.append((end, node.source.value))
                    end += 1

    def _live(self, parts: list[Placed]) -> list[set[Name]]:
        """For each section the variables and entries whose slots it must leave alone."""
        layers = self._recipe.layers
        read = []
        for part in parts:
            names = {n for k in range(len(part.section.nodes)) for n in layers.touched(part.section, k)}
            read.append(names)
        later = set(self._recipe.results)
        live: list[set[Name]] = []
        after: set[Name] = set(later)
        for number in reversed(range(len(parts))):
            loop = parts[number].section is self._recipe.loop
            here = after | read[number] | set(parts[number].section.outputs)
            live.insert(0, here)
            after = here if loop else (after - set(parts[number].section.outputs)) | read[number]
        return live

    def _lent(self, number: int, parts: list[Placed]) -> dict[int, int]:
        """Slots that a section writes at its row and that hold nothing before: it may use them until then."""
        part, layers = parts[number], self._recipe.layers
        taken: set[Name] = {*self._recipe.inputs, *(n for p in parts if p is not part for n in p.section.outputs)}
        for k in range(len(part.section.nodes)):
            taken.update(layers.touched(part.section, k))
        outputs = part.section.outputs.items()
        return {self.named[name]: part.rows[node] for name, node in outputs if name not in taken}

    def _allocate(self, part: Placed, free: dict[int, int], end: int) -> dict[int, int]:
        """Slots for what a section makes and no later one reads: from the row in which it is made to its last read.
        ``free``: slots, and the row before which each must be read for the last time."""
        section = part.section
        fixed = {node: self.named[name] for name, node in section.outputs.items()}
        found: dict[int, int] = dict(fixed)
        waiting = sorted(
            (k for k, node in enumerate(section.nodes) if node.kind != READ and k not in fixed),
            key=lambda k: part.rows[k],
        )
        until = dict(free)
        ready = set(free)
        busy: list[tuple[int, int, int]] = []  # (last row that reads it, the only reader there or -1, slot)
        for k in waiting:
            row = part.rows[k]
            ready.update(slot for last, _, slot in busy if last < row)
            busy = [item for item in busy if item[0] >= row]
            readers = section.users[k]
            last = max(part.rows[r] for r in readers)
            own = [item for item in busy if item[:2] == (row, k) and until[item[2]] > last]
            fitting = [slot for slot in ready if until[slot] > last]
            if own:  # what only this operation reads it may overwrite
                busy.remove(own[0])
                slot = own[0][2]
            elif fitting:
                slot = min(fitting, key=lambda s: (until[s], s))
                ready.remove(slot)
            else:
                slot, end = end, end + 1
                until[slot] = _ALWAYS
            found[k] = slot
            ends = [r for r in readers if part.rows[r] == last]
            busy.append((last, ends[0] if len(ends) == 1 else -1, slot))
        return found


def _rows(
    part: Placed, slots: _Slots, number: int, lifts: Mapping[int, int], trims: Mapping[int, int]
) -> tuple[Row, ...]:
    section, own = part.section, slots.own[number]
    rows = [Row(advance=row in part.advances) for row in range(part.length)]

    def place(k: int) -> Place:
        source = section.nodes[k].source
        if source is None:
            return Place(own[k])
        if not source.name:
            return Place(slots.shared(source.value), shared=True)
        if source.pick == ENTRY:
            return slots.tables[source.name]
        return Place(slots.named[source.name], PAIR if source.pick == PAIR else FIXED)

    for k, node in enumerate(section.nodes):
        if node.kind == READ:
            continue
        at = part.rows[k]
        a, b, c, e = ([place(arg) for arg in node.args] + [None, None])[:4]
        assert a is not None and b is not None
        if node.kind == MUL:
            rows[at] = replace(rows[at], product=Task(MUL, Place(own[k]), a, b, c, e))
        else:
            lift = lifts.get(k, 0) if node.kind == SUB else 0
            task = Task(node.kind, Place(own[k]), a, b, lift=lift, trim=trims.get(k, 0))
            rows[at] = replace(rows[at], sums=(*rows[at].sums, task))
    return tuple(rows)
