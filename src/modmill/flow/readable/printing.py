# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The text of a module."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from modmill.flow.readable.module import Module, Statement

_LINE = 118


def printed(module: Module) -> str:
    """Verilog-2001: ports, nets, memories, assignments, registers, submodules."""
    return "".join(_parts(module))


def _parts(module: Module) -> Iterator[str]:
    yield f"{module.attributes}module {module.name}("
    if module.ports:
        yield "\n" + ",\n".join(f"  {_port(module, port)}" for port in module.ports) + "\n"
    yield ");\n"
    yield from _declarations(module)
    yield from (f"{memory}\n" for memory in module.memories)
    texts = [s.text() for s in module.statements if s.kind == "text"]
    yield from (text for text in texts if not text.startswith("`"))
    called = {name for s in module.statements for name in s.read()}
    yield from (text for name, text in module.functions.items() if name in called)
    for s in module.statements:
        if s.kind in ("assign", "case"):
            yield _case(module, s) if s.kind == "case" else s.text()
    blocks = defaultdict(list)
    for k, s in enumerate(module.statements):
        if s.kind in ("register", "memory"):  # a register with an asynchronous reset has a block of its own
            blocks[s.name, k if "," in s.name else 0].append(s.text())
    yield from (f"  always @({clock}) begin\n{''.join(lines)}  end\n" for (clock, _), lines in blocks.items())
    yield from (s.text() for s in module.statements if s.kind == "instance")
    yield from (text for text in texts if text.startswith("`"))
    yield "endmodule\n"


def _port(module: Module, name: str) -> str:
    kind = "reg " if name in module.registers else "wire"
    return f"{module.ways[name]:6} {kind} {_range(module.nets[name])}{name}"


def _range(bits: int) -> str:
    return f"[{bits - 1}:0] " if bits > 1 else ""


def _declarations(module: Module) -> Iterator[str]:
    alive = {name for s in module.statements for name in (*s.read(), *s.driven())}
    for kind in ("reg", "wire"):
        nets: dict[int, list[str]] = defaultdict(list)
        for name, bits in module.nets.items():
            inside = name in alive and name not in module.ways and name not in module.selections
            if inside and (name in module.registers) == (kind == "reg"):
                nets[bits].append(name)
        for bits, names in sorted(nets.items()):
            yield from _lines(f"  {kind} {_range(bits)}", names)


def _lines(start: str, names: Iterable[str]) -> Iterator[str]:
    line = start
    for name in names:
        if len(line) + len(name) + 2 > _LINE and line != start:
            yield line.rstrip() + "\n"
            line = " " * 6
        line += f"{name}, "
    yield line.removesuffix(", ") + ";\n"


def _case(module: Module, s: Statement) -> str:
    """A function, whose arguments are all nets in it, and the assignment that calls it."""
    value, default, *items = (slot.expression for slot in s.slots)
    nets = list(dict.fromkeys(name for e in (value, *items, default) for name in e.names()))
    assert s.target is not None
    name = module.unused(f"{s.target.text}_of")
    lines = "".join(f"      {', '.join(n)}: {name} = {item};\n" for n, item in zip(s.items, items, strict=True))
    inputs = "".join(f"    input {_range(module.nets[net])}{net};\n" for net in nets)
    return f"""  function {_range(module.width(s.target))}{name};
{inputs}    case ({value})
{lines}      default: {name} = {default};
    endcase
  endfunction
  assign {s.target} = {name}({", ".join(nets)});
"""
