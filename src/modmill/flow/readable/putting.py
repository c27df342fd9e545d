# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Put operators into the expressions that use them, where the value stays the same.

Verilog evaluates an operator at the width of its context: of the target and of all operands beside it. A net of n bits
cuts its value to n bits and extends it with zeros. The operator may stand in its place if its context has n bits too;
or if its own width is n and a wider context extends it with zeros; or if only its own width counts, and is n.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from modmill.flow.readable.expressions import COMPARISONS, SHIFTS, Expr
from modmill.flow.readable.module import NUMBERED, Module, Slot, Statement

_LONGEST = 110
"""Characters of an expression, beyond which nothing more is put into it."""
_Widths = tuple[int | None, int | None]
_ALIKE = ("name", "part", "number")
"""Kinds of expressions that are only another name."""


def put_together(module: Module) -> None:
    """Put operators together, use the names of parts, and leave out what nothing reads."""
    uses = module.uses()
    defined = {s.numbered: s.slots[0].expression for s in module.statements if s.numbered}
    inside = {name: e for name, e in defined.items() if uses[name] == 1 or e.kind in _ALIKE}
    for statement in module.statements:
        for slot in statement.slots:
            slot.expression = _Putting(module, inside, slot, pure=statement.kind == "case").result
    _use_names_of_parts(module)
    _drop_unread(module)
    _merge_equal(module)


class _Putting:
    """One expression, with the nets of ``inside`` put into it to a length of `_LONGEST`. ``pure``: no memories."""

    def __init__(self, module: Module, inside: Mapping[str, Expr], slot: Slot, *, pure: bool) -> None:
        self._module, self._inside, self._simple, self._pure = module, inside, slot.simple, pure
        self._length = len(str(slot.expression))
        context = None if slot.width is None else max(slot.width, module.width(slot.expression))
        self.result = self._put(slot.expression, slot.width, context, alone=True)

    def _put(self, e: Expr, outer: int | None, context: int | None, *, alone: bool = False) -> Expr:
        """``context``: the width at which this place is evaluated, None for the expression's own; ``outer``: the part
        of it that does not come from the operands; ``alone``: nothing else is in the expression."""
        width = self._module.width
        if e.kind == "name":
            value = self._inside.get(e.text)
            if value is None or not self._fits(value, width(e), outer, context, alone=alone):
                return e
            self._length += len(str(value))
            return self._put(value, outer, context, alone=alone)
        own: list[_Widths] = [(None, None)] * len(e.parts)
        inner: _Widths = (
            (outer, max(context or 0, width(e))) if e.kind in ("unary", "binary", "choice") else (None, None)
        )
        if e.kind == "unary" and e.text in "~-":
            own = [inner]
        elif e.kind == "binary" and e.text in SHIFTS:
            own = [inner, (None, None)]
        elif e.kind == "binary" and e.text in COMPARISONS and e.text not in ("&&", "||"):
            own = [(None, max(map(width, e.parts)))] * 2
        elif e.kind == "binary" and e.text not in COMPARISONS:
            own = [inner] * 2
        elif e.kind == "choice":
            own = [(None, None), inner, inner]
        return Expr(e.kind, e.text, tuple(self._put(part, *of) for part, of in zip(e.parts, own, strict=True)))

    def _fits(self, value: Expr, bits: int, outer: int | None, context: int | None, *, alone: bool) -> bool:
        """Whether an expression has the value of its net of ``bits`` bits in this place, and may stand there."""
        if self._pure and any(name in self._module.words or name in self._module.selections for name in value.names()):
            return False
        if value.kind not in _ALIKE:
            joined = value.kind in ("joined", "repeated")
            if self._length + len(str(value)) > _LONGEST or (self._simple and not joined):
                return False
        own = self._module.width(value)
        if context is None:
            return own == bits
        if value.signed():
            return alone and outer == context == bits
        return (own == bits and (context == bits or value.extended_by_zeros())) or outer == context == bits


def _use_names_of_parts(module: Module) -> None:
    """Write the name of a part of a net, `control_load` for `control[35]`, where that part is meant."""
    formals = {slot.port for s in module.statements for slot in s.slots}
    names: dict[Expr, Statement] = {}
    for s in module.statements:
        if s.kind == "assign" and s.target and s.target.kind == "name" and s.target.text not in module.ways:
            name, value = s.target.text, s.slots[0].expression
            given = re.search(r"_\d+_?$", name) or name in formals or value.kind != "part" or value.text in module.words
            known = names[value].target if value in names else None
            if not given and (known is None or (name.startswith(value.text) and not known.text.startswith(value.text))):
                names[value] = s

    def named(e: Expr) -> Expr:
        target = names[e].target if e in names else None
        return target or Expr(e.kind, e.text, tuple(map(named, e.parts)))

    for s in module.statements:
        for slot in s.slots:
            if names.get(slot.expression) is not s and slot.expression != s.target:
                slot.expression = named(slot.expression)


def _drop_unread(module: Module) -> None:
    while True:
        read = module.uses().keys()
        kept = [
            s for s in module.statements if not (_is_name_only(module, s) and s.target and s.target.text not in read)
        ]
        if len(kept) == len(module.statements):
            return
        module.statements = kept


def _is_name_only(module: Module, s: Statement) -> bool:
    """Whether it assigns a numbered net, or gives what exists another name inside the module."""
    if s.kind not in ("assign", "case") or s.target is None or s.target.kind != "name" or s.target.text in module.ways:
        return False
    value = s.slots[0].expression
    joined = value.kind == "joined" and all(part.kind in _ALIKE for part in value.parts)
    return bool(NUMBERED.fullmatch(s.target.text)) or (s.kind == "assign" and (joined or value.kind in _ALIKE))


def _merge_equal(module: Module) -> None:
    """Keep the first of the numbered nets that have one expression and one width."""
    while True:
        first: dict[tuple[str, int], str] = {}
        again: dict[str, str] = {}
        for s in module.statements:
            if s.numbered:
                kept = first.setdefault((str(s.slots[0].expression), module.nets[s.numbered]), s.numbered)
                if kept != s.numbered:
                    again[s.numbered] = kept
        if not again:
            return
        module.statements = [s for s in module.statements if s.numbered not in again]
        module.rename(again)
