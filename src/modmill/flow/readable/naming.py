# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Names for the nets that Yosys or Amaranth numbered."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from modmill.flow.readable.cases import compared
from modmill.flow.readable.expressions import Expr
from modmill.flow.readable.module import NUMBERED, Module, Statement

_RESULTS = {
    "+": "sum", "-": "difference", "*": "product", "&": "and", "|": "or", "^": "xor", "==": "equal", "!=": "differs",
    "<": "below", "<=": "at_most", ">": "above", ">=": "at_least", "<<": "shifted", ">>": "shifted", ">>>": "shifted",
    "<<<": "shifted", "~": "not", "!": "zero", "?": "choice", "{": "joined", "&&": "both", "||": "either", "~^": "same",
}  # fmt: skip


def name_connections(module: Module, ways: Mapping[str, Mapping[str, str]]) -> None:
    """Name nets between submodules, which have the name of a port and a number, after the submodule that drives them.

    ``ways``: module -> port -> input or output.
    """
    driven = {name for s in module.statements for name in s.driven()}
    found = {}
    for s in module.statements:
        kind = s.text().split(None, 1)[0] if s.kind == "instance" else ""
        for slot in s.slots if kind else ():
            net = slot.expression.text
            if slot.expression.kind == "name" and re.fullmatch(rf"{re.escape(slot.port)}(_\d+)?", net):
                inside = net not in module.ways and net not in driven
                if inside and ways.get(kind, {}).get(slot.port) == "output":
                    found[net] = f"{s.name}_{slot.port}"
    alike = Counter(_stem(net) for net in found)
    module.rename({net: module.unused(name) for net, name in found.items() if alike[_stem(net)] > 1})


def _stem(net: str) -> str:
    return re.sub(r"_\d+$", "", net)


def name_nets(module: Module) -> None:
    """Name the numbered nets that are left after what they are for: `phase_is_3`, or `x_sum` in the expression of x."""
    readers: dict[str, list[Statement]] = defaultdict(list)
    drivers: dict[str, list[Statement]] = defaultdict(list)
    for statement in module.statements:
        driven = list(statement.driven())
        for name in driven:
            drivers[name].append(statement)
        for name in statement.read():
            if name not in driven:
                readers[name].append(statement)
    new = {}
    for name in module.nets:
        if NUMBERED.fullmatch(name) and name not in module.selections and (name in readers or name in drivers):
            whole = [s.slots[0].expression for s in drivers[name] if s.numbered == name]
            value = whole[0] if whole else Expr("name", "")
            asked = compared(value, {}) if value.kind in ("unary", "binary") else None
            if asked and len(asked[1]) == 1 and asked[0].kind == "name" and not NUMBERED.fullmatch(asked[0].text):
                new[name] = module.unused(f"{asked[0].text}_is_{asked[1][0]}")
            else:
                result = _RESULTS.get(value.text) or _kind(module, name, drivers[name])
                new[name] = module.unused(f"{_purpose(name, readers, drivers)}_{result}")
    module.rename(new)


def _kind(module: Module, name: str, drivers: Iterable[Statement]) -> str:
    """What a net is that no single operator drives."""
    if name in module.registers:
        return "kept"
    if any(s.kind == "case" for s in drivers):
        return "chosen"
    return "whole" if any(s.target and s.target.kind == "joined" for s in drivers) else "net"


def _purpose(name: str, readers: Mapping[str, list[Statement]], drivers: Mapping[str, list[Statement]]) -> str:
    """The first named net or submodule on the way from a net to what reads it, or is driven with it."""
    ahead, seen = [name], {name}
    for net in ahead:
        for statement in (*readers.get(net, ()), *drivers.get(net, ())):
            for found in [statement.name] if statement.kind == "instance" else statement.driven():
                if not NUMBERED.fullmatch(found):
                    return found
                if found not in seen:
                    seen.add(found)
                    ahead.append(found)
    return "net"
