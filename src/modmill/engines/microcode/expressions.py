# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Formulas on field elements, written as Python expressions and traced into a graph of products, sums and differences.

A block is straight-line: it reads variables, constants and tables, and sets variables and table entries at its end.
Equal operations are done once, and those that nothing needs are dropped. A table's entry and a pair's member are chosen
by the digit that is seen where they are read; ``next_digit`` moves on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from modmill.contract import UnsupportedError
from modmill.engines.microcode.program import ENTRY, FIXED, PAIR

Name = str | tuple[str, int]
"""A variable, or an entry of a table: (table, number)."""
READ, MUL, ADD, SUB = "read", "mul", "add", "sub"


@dataclass(frozen=True)
class Source:
    """What is read: the variable or table ``name``, or the constant ``value`` where there is no name.

    ``pick``: how the digit chooses, as of a ``Place``; ``epoch``: how many digits of the block were used up before.
    """

    name: str = ""
    value: int = 0
    pick: str = FIXED
    epoch: int = 0


@dataclass(frozen=True)
class Node:
    """A number of the graph: read, or made from others. ``args`` are two nodes, or four for a b + c e. ``copy`` tells
    copies of a number apart."""

    kind: str
    args: tuple[int, ...] = ()
    source: Source | None = None
    copy: int = 0


class Element:
    """A number of a block, for expressions with + - * of elements and of small whole numbers."""

    def __init__(self, block: BasicBlock, node: int) -> None:
        self.block, self.node = block, node

    def __add__(self, other: Element) -> Element:
        return self.block.operate(ADD, self, other)

    def __sub__(self, other: Element) -> Element:
        return self.block.operate(SUB, self, other)

    def __neg__(self) -> Element:
        return self.block.constant(0) - self

    def __mul__(self, other: Element | int) -> Element:
        if isinstance(other, Element):
            return self.block.operate(MUL, self, other)
        if other == 0:
            return self.block.constant(0)
        if other < 0:
            return -(self * -other)
        total = self
        for bit in bin(other)[3:]:
            total = total + total
            if bit == "1":
                total = total + self
        return total

    __rmul__ = __mul__


class BasicBlock:
    """Part of a program: its graph, and what it sets at its end."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: list[Node] = []
        self.outputs: dict[Name, int] = {}
        self.digits = 0
        self._known: dict[Node, int] = {}

    def _node(self, node: Node) -> Element:
        if node not in self._known:
            self._known[node] = len(self.nodes)
            self.nodes.append(node)
        return Element(self, self._known[node])

    def variable(self, name: str) -> Element:
        """What the variable holds when the block begins."""
        return self._node(Node(READ, source=Source(name)))

    def constant(self, value: int) -> Element:
        """A number that all threads share, as it stands in its slot."""
        return self._node(Node(READ, source=Source(value=value)))

    def entry(self, table: str) -> Element:
        """The entry of a table that the digit picks."""
        return self._node(Node(READ, source=Source(table, pick=ENTRY, epoch=self.digits)))

    def pair(self, name: str) -> Element:
        """The variable, or where the digit is odd the other of its pair."""
        return self._node(Node(READ, source=Source(name, pick=PAIR, epoch=self.digits)))

    def operate(self, kind: str, a: Element, b: Element) -> Element:
        """A product, sum or difference."""
        if a.block is not self or b.block is not self:
            raise ValueError(f"an element of block {self.name} meets one of another block")
        args = (a.node, b.node) if kind == SUB or a.node <= b.node else (b.node, a.node)
        return self._node(Node(kind, args))

    def combine(self, a: Element, b: Element, c: Element, e: Element) -> Element:
        """a b + c e as one operation, for units that add up products."""
        return self._node(Node(MUL, (a.node, b.node, c.node, e.node)))

    def copied(self, value: Element, one: int | None = None) -> Element:
        """The number once more, as an operation of its own: plus 0, or times the constant ``one``."""
        count = sum(node.copy > 0 for node in self.nodes)
        other = self.constant(0 if one is None else one)
        return self._node(Node(ADD if one is None else MUL, (value.node, other.node), copy=count + 1))

    def set(self, name: Name, value: Element) -> None:
        """Set a variable or a table entry, (table, number), at the end of the block."""
        self.outputs[name] = value.node

    def next_digit(self) -> None:
        """What is read from here on sees the next digit."""
        self.digits += 1

    # ------------------------------------------------------------------------------------------ the graph

    def pruned(self) -> BasicBlock:
        """The same block without operations that no output needs."""
        needed = set(self.outputs.values())
        for k in reversed(range(len(self.nodes))):
            if k in needed:
                needed.update(self.nodes[k].args)
        out = BasicBlock(self.name)
        out.digits = self.digits
        moved: dict[int, int] = {}
        for k in sorted(needed):
            node = self.nodes[k]
            moved[k] = out._node(replace(node, args=tuple(moved[a] for a in node.args))).node
        out.outputs = {name: moved[k] for name, k in self.outputs.items()}
        return out

    def reduced(self, nodes: Iterable[int], one: int) -> BasicBlock:
        """The same block with these nodes multiplied by the constant ``one`` before they are used."""
        wanted, out = set(nodes), BasicBlock(self.name)
        moved: dict[int, int] = {}
        out.digits = self.digits
        for k, node in enumerate(self.nodes):
            made = out._node(replace(node, args=tuple(moved[a] for a in node.args)))
            moved[k] = (made * out.constant(one)).node if k in wanted else made.node
        out.outputs = {name: moved[k] for name, k in self.outputs.items()}
        return out

    @cached_property
    def users(self) -> list[list[int]]:
        """For each node the nodes that read it. To be asked when the block is complete."""
        found: list[list[int]] = [[] for _ in self.nodes]
        for k, node in enumerate(self.nodes):
            for a in dict.fromkeys(node.args):
                found[a].append(k)
        return found

    @property
    def products(self) -> int:
        """Operations with a product."""
        return sum(node.kind == MUL for node in self.nodes)

    @property
    def sums(self) -> int:
        """Sums and differences."""
        return sum(node.kind in (ADD, SUB) for node in self.nodes)

    def evaluate(
        self,
        values: Mapping[Name, int],
        p: int,
        *,
        factor: int = 1,
        digits: tuple[int, ...] = (),
        pairs: Mapping[str, str] = {},
    ) -> dict[Name, int]:
        """What it sets, modulo p, for products with a factor. ``values``: of variables and table entries; ``pairs``:
        the other of each pair. Raises UnsupportedError for a variable that has no value."""
        held: list[int] = []
        for node in self.nodes:
            a = [held[k] for k in node.args]
            if node.kind == READ:
                source = node.source or Source()
                name: Name = source.name
                if source.pick == ENTRY:
                    name = source.name, digits[source.epoch]
                elif source.pick == PAIR and digits[source.epoch] & 1:
                    name = pairs[source.name]
                if source.name and name not in values:
                    raise UnsupportedError(f"block {self.name} reads {name}, which nothing has set")
                held.append(values[name] if source.name else source.value)
            elif node.kind == MUL:
                held.append(sum(a[k] * a[k + 1] for k in range(0, len(a), 2)) * factor % p)
            else:
                held.append((a[0] + a[1] if node.kind == ADD else a[0] - a[1]) % p)
        return {name: held[k] for name, k in self.outputs.items()}
