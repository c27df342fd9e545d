# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Formulas on field elements, written as Python expressions and traced into a graph of products, sums and differences.

A basic block is straight-line: it reads variables, constants and tables, and sets variables and table entries at its
end. Equal operations become one node; `BasicBlock.pruned` drops unused ones. The current digit selects a table's entry
and a pair's member; ``next_digit`` advances to the next digit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from modmill.contract import UnsupportedError
from modmill.engines.microcode.program import ENTRY, FIXED, PAIR

Name = str | tuple[str, int]
"""A variable, or an entry of a table: (table, number)."""
READ, MUL, ADD, SUB, SELECT = "read", "mul", "add", "sub", "select"


@dataclass(frozen=True)
class Source:
    """Origin of a read: the variable, table or entry ``name``, or the constant ``value`` if the name is empty.
    ``pick``: how the digit selects, as in `OperandAddress`; ``epoch``: number of digits that the block consumed
    before."""

    name: Name = ""
    value: int = 0
    pick: str = FIXED
    epoch: int = 0


@dataclass(frozen=True)
class Node:
    """A value of the graph: read, or computed from others. ``args``: none for a read, two operands, or four for a sum
    of two products. ``copy``: distinguishes copies of a value; 0: none. ``bit``, ``epoch``: of a selection, the bit of
    the digit, as in `Task`, and the number of digits that the block consumed before."""

    kind: str
    args: tuple[int, ...] = ()
    source: Source | None = None
    copy: int = 0
    bit: int = 0
    epoch: int = 0


class Element:
    """A value in a basic block. Supports + and - with elements and * with elements and small integers."""

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
    """A straight-line part of a program: its graph, and the variables and table entries that it sets at its end.

    ``nodes``: in topological order. ``outputs``: node of each name that is set. ``digits``: number of digits consumed.
    """

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
        """The variable's value at the beginning of the block."""
        return self._node(Node(READ, source=Source(name)))

    def constant(self, value: int) -> Element:
        """A constant that all threads share, as it is stored in its slot: in [0, p), in the multiplier's domain."""
        return self._node(Node(READ, source=Source(value=value)))

    def entry(self, table: str) -> Element:
        """The entry of a table that the current digit selects."""
        return self._node(Node(READ, source=Source(table, pick=ENTRY, epoch=self.digits)))

    def pair(self, name: str) -> Element:
        """The variable, or the other member of its pair if the current digit is odd."""
        return self._node(Node(READ, source=Source(name, pick=PAIR, epoch=self.digits)))

    def operate(self, kind: str, a: Element, b: Element) -> Element:
        """A product, sum or difference; ``kind``: MUL, ADD or SUB. Raises ValueError for elements of other blocks."""
        if a.block is not self or b.block is not self:
            raise ValueError(f"an expression combines elements of block {self.name} and of another block")
        args = (a.node, b.node) if kind == SUB or a.node <= b.node else (b.node, a.node)
        return self._node(Node(kind, args))

    def combine(self, a: Element, b: Element, c: Element, e: Element) -> Element:
        """a b + c e as one operation, for units that add two products."""
        return self._node(Node(MUL, (a.node, b.node, c.node, e.node)))

    def copied(self, value: Element, one: int | None = None) -> Element:
        """A copy of the value, made by a separate operation: plus 0, or times the constant ``one`` if given."""
        count = sum(node.copy > 0 for node in self.nodes)
        other = self.constant(0 if one is None else one)
        return self._node(Node(ADD if one is None else MUL, (value.node, other.node), copy=count + 1))

    def set(self, name: Name, value: Element) -> None:
        """Set a variable or a table entry, (table, number), at the end of the block."""
        self.outputs[name] = value.node

    def next_digit(self) -> None:
        """Advance to the next digit, which later reads use."""
        self.digits += 1

    def pruned(self) -> BasicBlock:
        """The same block without nodes on which no output depends."""
        needed = set(self.outputs.values())
        for k in reversed(range(len(self.nodes))):
            if k in needed:
                needed.update(self.nodes[k].args)
        return self._copy(sorted(needed))

    def reduced(self, node: int, one: int) -> BasicBlock:
        """The same block, in which a node is multiplied by the constant ``one`` before its use."""
        return self._copy(range(len(self.nodes)), node, one)

    def with_selections(self, sizes: Mapping[str, int], partner: Mapping[str, str]) -> BasicBlock:
        """The same block, in which selections replace addresses that a digit selects: all entries of the table are
        read, or both members of the pair, and a tree of selections keeps one, the lowest bit of the digit first.
        ``sizes``: entries of each table; ``partner``: the other member of each pair."""
        out = BasicBlock(self.name)
        out.digits = self.digits
        moved: dict[int, int] = {}
        for k, node in enumerate(self.nodes):
            source = node.source
            if source is None or source.pick == FIXED:
                moved[k] = out._node(replace(node, args=tuple(moved[a] for a in node.args))).node
                continue
            assert isinstance(source.name, str)
            names: list[Name] = [source.name, partner.get(source.name, "")]
            if source.pick == ENTRY:
                names = [(source.name, entry) for entry in range(sizes[source.name])]
            kept = [out._node(Node(READ, source=Source(name))).node for name in names]
            for bit in range((len(kept) - 1).bit_length()):
                pairs = zip(kept[1::2] + kept[-1:] * (len(kept) % 2), kept[::2], strict=True)
                kept = [out._node(Node(SELECT, pair, bit=bit, epoch=source.epoch)).node for pair in pairs]
            (moved[k],) = kept
        out.outputs = {name: moved[k] for name, k in self.outputs.items()}
        return out

    def _copy(self, nodes: Iterable[int], reduced: int = -1, one: int = 0) -> BasicBlock:
        out = BasicBlock(self.name)
        out.digits = self.digits
        moved: dict[int, int] = {}
        for k in nodes:
            made = out._node(replace(self.nodes[k], args=tuple(moved[a] for a in self.nodes[k].args)))
            moved[k] = (made * out.constant(one)).node if k == reduced else made.node
        out.outputs = {name: moved[k] for name, k in self.outputs.items()}
        return out

    @cached_property
    def users(self) -> list[list[int]]:
        """For each node the nodes that read it. Cached: use it only on a complete block."""
        found: list[list[int]] = [[] for _ in self.nodes]
        for k, node in enumerate(self.nodes):
            for a in dict.fromkeys(node.args):
                found[a].append(k)
        return found

    @property
    def products(self) -> int:
        """Number of operations with a product."""
        return sum(node.kind == MUL for node in self.nodes)

    def evaluate(
        self, values: Mapping[Name, int], p: int, *, factor: int = 1, digits: tuple[int, ...] = (),
        pairs: Mapping[str, str] = {},
    ) -> dict[Name, int]:  # fmt: skip
        """The values that the block sets, modulo p, for a multiplier that computes a b ``factor``.

        ``values``: of variables and table entries. ``digits``: of the block, with one more if it reads behind the last.
        ``pairs``: the other member of each pair. Raises UnsupportedError for a variable without a value.
        """
        held: list[int] = []
        for node in self.nodes:
            a = [held[k] for k in node.args]
            if node.kind == READ:
                source = node.source or Source()
                name: Name = source.name
                if source.pick == ENTRY:
                    name = str(source.name), digits[source.epoch]
                elif source.pick == PAIR and digits[source.epoch] & 1:
                    name = pairs[str(source.name)]
                if source.name and name not in values:
                    raise UnsupportedError(f"block {self.name} reads {name}, which has no value")
                held.append(values[name] if source.name else source.value)
            elif node.kind == SELECT:
                held.append(a[0] if digits[node.epoch] >> node.bit & 1 else a[1])
            elif node.kind == MUL:
                held.append(sum(a[k] * a[k + 1] for k in range(0, len(a), 2)) * factor % p)
            else:
                held.append((a[0] + a[1] if node.kind == ADD else a[0] - a[1]) % p)
        return {name: held[k] for name, k in self.outputs.items()}
