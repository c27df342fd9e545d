# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A module as Yosys prints it, read into statements: text and expressions in turn."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from modmill.flow.readable import expressions
from modmill.flow.readable.expressions import Expr, parsed

MODULE = re.compile(
    r"^(?P<attributes>(?:\(\*[^\n]*\*\)\n)*)module (?P<name>\w+)\((?P<ports>[^)]*)\);\n(?P<body>.*?)^endmodule\n",
    re.MULTILINE | re.DOTALL,
)
NUMBERED = re.compile(r"_\d+_")
_PORT_TWICE = re.compile(r"  (?:in|out)put (.*;)\n  (?:wire|reg) \1\n")
_DECLARED = re.compile(r" +(input|output|wire|reg) (signed )?(?:\[(\d+):0\] )?(\w+)\s*( \[\d+:\d+\])?;")
_CLOCKED = re.compile(r"  always @\((.*)\)( begin)?")
_GUARD = re.compile(r"( *)((?:else )?if \()(.*?)\)( (?=\S)|$)")
_INSTANCE = re.compile(r"  (?:\) |\w+ )(\w+) \($")
_PIN = re.compile(r"(    \.(\w+)\()(.+)(\),?)")
_ENDS = {"  initial begin": "  end", "`ifndef": "`endif", "  function ": "  endfunction", r"  \w+ (#|\w+ )\($": "  );"}
_SELECTION = re.compile(r"  function (?:\[(\d+):0\] )?(\w+);\n    input (?:\[\d+:0\] )?a;\n    input \[\d+:0\] b;\n")


def is_printed(module: re.Match[str]) -> bool:
    """Whether Yosys printed a module: it declares each port twice."""
    return not module["ports"] or _PORT_TWICE.match(module["body"]) is not None


@dataclass
class Slot:
    """An expression of a statement.

    width: of what it is assigned to, in bits; None where its own width counts
    simple: only names, parts and joined nets may stand here
    port: of the submodule's port that it is connected to
    """

    expression: Expr
    width: int | None = None
    simple: bool = False
    port: str = ""


@dataclass
class Statement:
    """Text and expressions in turn.

    kind: assign, register, memory, instance, case, text
    target: what it drives, a net or a part of one
    name: the submodule of an instance, the clock of a register
    items: the numbers before each value of a case; its expressions are the value compared, the default, the others
    """

    kind: str
    pieces: list[str | Slot]
    target: Expr | None = None
    name: str = ""
    items: tuple[tuple[str, ...], ...] = ()

    @property
    def slots(self) -> list[Slot]:
        """Its expressions in order."""
        return [piece for piece in self.pieces if isinstance(piece, Slot)]

    @property
    def numbered(self) -> str:
        """The numbered net that it assigns whole, or nothing."""
        whole = self.kind == "assign" and self.target is not None and self.target.kind == "name"
        return self.target.text if whole and self.target and NUMBERED.fullmatch(self.target.text) else ""

    def text(self) -> str:
        """Its Verilog, unless it is a case."""
        return "".join(piece if isinstance(piece, str) else str(piece.expression) for piece in self.pieces)

    def read(self) -> Iterator[str]:
        """Every net and memory that it reads, with repeats."""
        for slot in self.slots:
            yield from slot.expression.names()
        if self.kind == "text":
            yield from re.findall(r"\w+", self.text())
        if self.target and self.target.kind == "element":
            yield from self.target.parts[0].names()

    def driven(self) -> Iterator[str]:
        """Every net and memory that it drives, but not those that the ports of an instance drive."""
        yield from self.target.names() if self.target else ()


class Module:
    """A module. ``ways``: port -> input or output; ``nets``: net -> bits; ``words``: memory -> bits of a word;
    ``selections``: function that Yosys prints for a selection -> bits; ``functions``: the same -> its text. Raises
    ValueError for an unknown item."""

    def __init__(self, found: re.Match[str]) -> None:
        self.attributes, self.name = found["attributes"], found["name"]
        self.ports = [port.strip() for port in found["ports"].split(",") if port.strip()]
        self.ways: dict[str, str] = {}
        self.nets: dict[str, int] = {}
        self.words: dict[str, int] = {}
        self.selections: dict[str, int] = {}
        self.functions: dict[str, str] = {}
        self.registers: set[str] = set()
        self.memories: list[str] = []
        self.statements: list[Statement] = []
        self._signed: set[str] = set()
        lines, at = found["body"].splitlines(), 0
        while at < len(lines):
            at = self._item(lines, at)
        self._used = {*self.nets, *self.words, *(statement.name for statement in self.statements)}

    def width(self, e: Expr) -> int:
        """Verilog's own width of an expression in bits."""
        return expressions.width(e, self.nets, self.words)

    def unused(self, stem: str) -> str:
        """A name that nothing has in this module: the stem, with a number if needed."""
        free, k = stem, 1
        while free in self._used:
            k += 1
            free = f"{stem}_{k}"
        self._used.add(free)
        return free

    def uses(self) -> Counter[str]:
        """How often each net and memory is read."""
        return Counter(name for statement in self.statements for name in statement.read())

    def rename(self, new: Mapping[str, str]) -> None:
        """Give nets their new names."""

        def renamed(e: Expr) -> Expr:
            return Expr(e.kind, new.get(e.text, e.text), tuple(map(renamed, e.parts)))

        for statement in self.statements if new else ():
            for slot in statement.slots:
                slot.expression = renamed(slot.expression)
            if statement.target:
                statement.target = renamed(statement.target)
            if statement.kind == "assign":
                statement.pieces[0] = f"  assign {statement.target} = "
            if statement.kind == "text":
                statement.pieces = [re.sub(r"\w+", lambda m: new.get(m[0], m[0]), statement.text())]
        self.nets = {new.get(name, name): bits for name, bits in self.nets.items()}
        self.registers = {new.get(name, name) for name in self.registers}

    def _item(self, lines: list[str], at: int) -> int:
        """Read the item that begins with line ``at``; return the line after it."""
        line = lines[at]
        if declared := _DECLARED.fullmatch(line):
            self._declare(line, *declared.groups())
            return at + 1
        if line.startswith("  assign "):
            left, value = line.removeprefix("  assign ").removesuffix(";").split(" = ", 1)
            target = parsed(left)
            slot = Slot(self._value(value, self.width(target)), self.width(target))
            self.statements.append(Statement("assign", [f"  assign {target} = ", slot, ";\n"], target))
            return at + 1
        if clocked := _CLOCKED.fullmatch(line):
            end = next((k for k in range(at + 1, len(lines)) if not lines[k].startswith("    ")), len(lines))
            self._clocked(clocked[1], lines[at + 1 : end])
            return end + bool(clocked[2])
        last = next((end for start, end in _ENDS.items() if re.match(start, line)), "")
        if not last:
            raise ValueError(f"unknown item in module {self.name}: {line}")
        end = lines.index(last, at) + 1
        block = lines[at:end]
        if last == "  endfunction":
            self._selection("\n".join(block))
        elif last == "  );":
            self._instance(block)
        else:
            self.statements.append(Statement("text", ["\n".join(block) + "\n"]))
        return end

    def _declare(
        self, line: str, kind: str, signed: str | None, high: str | None, name: str, memory: str | None
    ) -> None:
        bits = int(high or 0) + 1
        if memory:
            self.words[name] = bits
            self.memories.append(line)
            return
        self.nets[name] = bits
        if kind in ("input", "output"):
            self.ways[name] = kind
        if kind == "reg":
            self.registers.add(name)
        if signed:
            self._signed.add(name)

    def _value(self, text: str, bits: int | None = None) -> Expr:
        """An expression in which `$signed` marks signed nets that have operands beside them, or are assigned to another
        number of bits: nets are declared without a sign."""

        def marked(e: Expr, *, beside: bool) -> Expr:
            if e.kind == "name":
                return Expr("signed", "$signed", (e,)) if beside and e.text in self._signed else e
            inside = e.kind in ("binary", "choice", "unary")
            return Expr(e.kind, e.text, tuple(marked(part, beside=inside) for part in e.parts))

        e = parsed(text)
        return marked(e, beside=bits not in (None, self.width(e))) if self._signed else e

    def _clocked(self, clock: str, lines: list[str]) -> None:
        pieces: list[str | Slot] = []
        target = None
        for line in lines:
            guard = _GUARD.match(line)
            if guard:
                pieces += [guard[1] + guard[2], Slot(self._value(guard[3])), ")" + guard[4]]
            rest = line[guard.end() :] if guard else line
            if " <= " in rest:
                left, value = rest.rstrip(";").split(" <= ", 1)
                before = re.match(r" *(?:else )?", left)[0]  # type: ignore[index]  # matches the empty text too
                target = parsed(left.removeprefix(before))
                slot = Slot(self._value(value, self.width(target)), self.width(target))
                pieces += [before, Slot(target, simple=True), " <= ", slot, ";"]
            elif not guard:
                pieces.append(rest)
            pieces.append("\n")
        kind = "memory" if target and target.text in self.words else "register"
        self.statements.append(Statement(kind, pieces, target, clock))

    def _instance(self, lines: list[str]) -> None:
        pieces: list[str | Slot] = []
        name = ""
        for line in lines:
            name = found[1] if (found := _INSTANCE.match(line)) else name
            if pin := _PIN.fullmatch(line):
                pieces += [pin[1], Slot(parsed(pin[3]), simple=True, port=pin[2]), pin[4] + "\n"]
            else:
                pieces.append(line + "\n")
        self.statements.append(Statement("instance", pieces, None, name))

    def _selection(self, text: str) -> None:
        found = _SELECTION.match(text)
        if not found:
            raise ValueError(f"unknown function in module {self.name}: {text[:80]}")
        self.selections[found[2]] = self.nets[found[2]] = int(found[1] or 0) + 1
        self.functions[found[2]] = text + "\n"
