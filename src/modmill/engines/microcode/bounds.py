# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Recipes and rows on bounds: exact multiples of p, exclusive, for all digits and all passes at once.

A loop is run on bounds until none grows any more; what holds then holds in every pass. Where a digit picks, the largest
bound is taken. ``settle`` finds the lift of each difference, and where a number would be too large trims a sum, on
units that can, or multiplies it by the domain's 1. ``row_limits`` knows nothing of recipes: it runs finished rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from modmill.contract import Contract, Refusal
from modmill.engines.microcode.expressions import MUL, SUB, Name, Node
from modmill.engines.microcode.program import ENTRY, PAIR, Row, RowProgramme, Task, Unit
from modmill.engines.microcode.recipe import Recipe
from modmill.slots import capacity

_ROUNDING = 1 << 40
_PASSES = 300
"""Passes after which bounds that still grow are refused."""
_REDUCTIONS = 100

Slot = tuple[bool, int]
"""(shared, number)."""


def up(bound: Fraction) -> Fraction:
    """The next multiple of 2^-40, so that thousands of products keep bounds short."""
    return Fraction(-(-bound * _ROUNDING // 1), _ROUNDING)


def product_bound(contract: Contract, total: Fraction) -> Fraction:
    """Bound of a product, or of two that are added up, below ``total`` p^2. Raises Refusal when it is too large."""
    return min(contract.result_bound, up(contract.product(total, Fraction(1))))


def sum_bound(p: int, a: Fraction, b: Fraction) -> Fraction:
    """Bound of a sum: where one of the two is at most a whole number, one less than both bounds together."""
    return a + b - (Fraction(1, p) if (a * p).denominator == 1 or (b * p).denominator == 1 else 0)


def trimmed(bound: Fraction, trim: int) -> Fraction:
    """Bound of a number below bound p from which trim p is subtracted unless it is below that; 0: never."""
    return min(bound, max(Fraction(trim), bound - trim)) if trim else bound


@dataclass(frozen=True)
class Settled:
    """A recipe whose numbers all fit, with the lift and trim of each node of each section, and what was done for it.

    ``reductions``: products by 1 that were inserted, with the section's name. ``results``: bounds of the results.
    """

    recipe: Recipe
    lifts: tuple[Mapping[int, int], ...]
    trims: tuple[Mapping[int, int], ...]
    reductions: tuple[str, ...]
    results: tuple[Fraction, ...]

    @property
    def trims_in_all(self) -> int:
        """Sums that are trimmed."""
        return sum(len(t) for t in self.trims)


class _TooLarge(Exception):
    """A node of a section whose number must become smaller first."""

    def __init__(self, section: int, node: int, why: str) -> None:
        super().__init__(why)
        self.section, self.node, self.why = section, node, why


def settle(recipe: Recipe, contract: Contract, unit: Unit) -> Settled:
    """Bounds of a whole recipe. Raises Refusal, with the operation and the bounds, where nothing helps."""
    inserted: list[str] = []
    trims: list[dict[int, int]] = [{} for _ in recipe.sections]
    for _ in range(_REDUCTIONS):
        run = _Run(recipe, contract, unit, trims)
        try:
            results = run.all()
        except _TooLarge as large:
            section = recipe.sections[large.section]
            node = section.nodes[large.node]
            if unit.trims or node.kind == MUL or (node.source and not node.source.name):
                raise Refusal(f"{recipe.name}, section {section.name}: {large.why}") from None
            made = section.reduced([large.node], recipe.domain.one)
            recipe = recipe.with_sections(
                tuple(made if k == large.section else s for k, s in enumerate(recipe.sections))
            )
            inserted.append(section.name)
            trims = [{} for _ in recipe.sections]
            continue
        if run.trims != trims:  # a trim that was found late holds from the start: its lifts are other ones
            trims = run.trims
            continue
        return Settled(recipe, tuple(run.lifts), tuple(run.trims), tuple(inserted), results)
    raise Refusal(f"{recipe.name}: numbers stay too large after {len(inserted)} reductions")


class _Run:
    """One run of a recipe on bounds."""

    def __init__(self, recipe: Recipe, contract: Contract, unit: Unit, trims: list[dict[int, int]]) -> None:
        self._recipe, self._contract, self._unit = recipe, contract, unit
        self._room = capacity(contract)
        self.lifts: list[dict[int, int]] = [{} for _ in recipe.sections]
        self.trims = [dict(t) for t in trims]
        self.held: dict[Name, Fraction] = {name: Fraction(1) for name in recipe.inputs}

    def all(self) -> tuple[Fraction, ...]:
        recipe = self._recipe
        for number, section in enumerate(recipe.sections):
            if section is recipe.loop:
                self._loop(number)
            else:
                self._section(number)
        return tuple(self.held[name] for name in recipe.results)

    def _loop(self, number: int) -> None:
        passes = self._recipe.passes
        for _ in range(min(passes, _PASSES)):
            old = dict(self.held)
            self._section(number)
            for name, bound in old.items():
                self.held[name] = max(bound, self.held[name])
            if self.held == old:
                return
        if passes > _PASSES:
            raise Refusal(f"{self._recipe.name}: bounds still grow after {_PASSES} passes of the loop")
        self._section(number)  # a short loop: the lifts of the largest bounds

    def _section(self, number: int) -> None:
        section = self._recipe.sections[number]
        bounds: list[Fraction] = []
        for k, node in enumerate(section.nodes):
            bounds.append(self._bound(number, k, node, bounds))
        self.held.update({name: bounds[k] for name, k in section.outputs.items()})

    def _bound(self, number: int, k: int, node: Node, bounds: list[Fraction]) -> Fraction:
        if node.source is not None:
            return self._read(number, node)
        a = [bounds[i] for i in node.args]
        if node.kind == MUL:
            total = sum((a[i] * a[i + 1] for i in range(0, len(a), 2)), Fraction(0))
            try:
                return product_bound(self._contract, total)
            except Refusal as refusal:
                large = max(node.args, key=lambda i: bounds[i])
                raise _TooLarge(number, large, str(refusal)) from None
        lift = self.lifts[number][k] = max(-(-a[1] // 1), self.lifts[number].get(k, 0)) if node.kind == SUB else 0
        bound = a[0] + lift if node.kind == SUB else sum_bound(self._contract.p, a[0], a[1])
        trim = self.trims[number].get(k, 0)
        if self._unit.trims and trimmed(bound, trim) > min(self._room, self._contract.operand_bound):
            half = max(1, int(bound // 2)), int(-(-bound // 2))
            trim = self.trims[number][k] = max(min(half, key=lambda t: trimmed(bound, t)), trim)
        bound = trimmed(bound, trim)
        if bound > self._room:
            large = max(node.args, key=lambda i: bounds[i])
            raise _TooLarge(
                number, large, f"a sum below {float(bound):.6g} p, a slot holds numbers below {float(self._room):.6g} p"
            )
        return bound

    def _read(self, number: int, node: Node) -> Fraction:
        source = node.source
        assert source is not None
        if not source.name:
            return Fraction(source.value + 1, self._contract.p)
        if source.name in self._recipe.shared:
            return Fraction(1)
        layers = self._recipe.layers
        names: list[Name] = [source.name]
        if source.pick == ENTRY:
            names = [(source.name, i) for i in range(dict(layers.tables)[source.name])]
        elif source.pick == PAIR:
            names.append(layers.partner[source.name])
        missing = [name for name in names if name not in self.held]
        if missing:
            where = self._recipe.sections[number].name
            raise Refusal(f"{self._recipe.name}, section {where}: {missing[0]} is read before it is set")
        return max(self.held[name] for name in names)


# ---------------------------------------------------------------------------------------------- finished rows


@dataclass(frozen=True)
class Limits:
    """Bounds of the results of all tasks, by part (0 before, 1 loop, 2 after), row and task."""

    tasks: Mapping[tuple[int, int, int], Fraction]
    results: tuple[Fraction, ...]


def row_limits(programme: RowProgramme, contract: Contract) -> Limits:
    """A programme of rows on bounds, one row after the other. Raises Refusal, with the row, when some operands could
    overflow, a difference could be negative, a slot is read before it is written, or results need more subtractions."""
    room, found = capacity(contract), dict[tuple[int, int, int], Fraction]()
    held: dict[Slot, Fraction] = {(False, slot): Fraction(1) for slot, _ in programme.inputs}
    for slot, value in programme.shared:
        if not 0 <= value < contract.p:
            raise Refusal(f"{programme.name}: the constant in shared slot {slot} is not in [0, p)")
        held[True, slot] = Fraction(value + 1, contract.p)
    parts = (programme.before, programme.loop, programme.after)

    def run(part: int) -> None:
        for number, row in enumerate(parts[part]):
            where = f"{programme.name}, {('before', 'loop', 'after')[part]} row {number}"
            made = [_task(task, contract, room, held, where) for task in row.tasks]
            for k, (task, bound) in enumerate(zip(row.tasks, made, strict=True)):
                found[part, number, k] = max(bound, found.get((part, number, k), bound))
                slots = task.destination.all
                for slot in slots:
                    held[slot] = bound if len(slots) == 1 else max(bound, held.get(slot, bound))

    run(0)
    for _ in range(min(programme.passes, _PASSES)):
        old = dict(held)
        run(1)
        for place, bound in old.items():
            held[place] = max(bound, held[place])
        if held == old:
            break
    else:
        if programme.passes > _PASSES:
            raise Refusal(f"{programme.name}: bounds still grow after {_PASSES} passes of the loop")
    run(2)
    results = []
    for slot, subtractions in programme.results:
        if (False, slot) not in held:
            raise Refusal(f"{programme.name}: the result in slot {slot} is never written")
        bound = held[False, slot]
        if bound > subtractions + 1:
            raise Refusal(
                f"{programme.name}: the result in slot {slot} is below {float(bound):.6g} p, which {subtractions} "
                f"subtractions do not make least"
            )
        results.append(bound)
    return Limits(found, tuple(results))


def _task(task: Task, contract: Contract, room: Fraction, held: Mapping[Slot, Fraction], where: str) -> Fraction:
    bounds = []
    for place in task.reads:
        if any(slot not in held for slot in place.all):
            missing = next(slot for slot in place.all if slot not in held)
            raise Refusal(f"{where}: {'shared ' if missing[0] else ''}slot {missing[1]} is read before it is written")
        bounds.append(max(held[slot] for slot in place.all))
    if task.kind == MUL:
        total = sum((bounds[k] * bounds[k + 1] for k in range(0, len(bounds), 2)), Fraction(0))
        try:
            return product_bound(contract, total)
        except Refusal as refusal:
            raise Refusal(f"{where}: {refusal}") from None
    bound = bounds[0] + task.lift if task.kind == SUB else sum_bound(contract.p, bounds[0], bounds[1])
    if task.kind == SUB and bounds[1] > task.lift:
        raise Refusal(f"{where}: {task.lift} p is added, but what is subtracted is below {float(bounds[1]):.6g} p")
    bound = trimmed(bound, task.trim)
    if bound > room:
        raise Refusal(f"{where}: a sum below {float(bound):.6g} p, a slot holds numbers below {float(room):.6g} p")
    return bound


def rows_of(programme: RowProgramme) -> tuple[tuple[int, int, Row], ...]:
    """All rows of one run, as (part, number in the part, row)."""
    before, loop, after = (
        [(part, k, row) for k, row in enumerate(rows)]
        for part, rows in enumerate((programme.before, programme.loop, programme.after))
    )
    return (*before, *loop * programme.passes, *after)
