# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Fuse the operations of a basic block for units that add two products and have no adder.

Every operation becomes (a b + c e) factor. With small constants such as 1 and -1 in the domain, a sum is a linear form:
x + y = (x 1 + y 1) factor. A sum or product with one sum as its only user is merged into that sum, so T terms take
T - 1 operations; a product counts as one term. A product that only sums use, each with coefficient 1, is merged into
every one of them. A term c a b with c != 1 scales a if a is a sum without other users; 2 a b alone becomes a b + a b.
"""

from __future__ import annotations

from modmill.engines.microcode.expressions import ADD, MUL, READ, SUB, BasicBlock, Element

Form = dict[int, int]
"""A linear form: the coefficient of each node."""


def fused(block: BasicBlock, one: int, p: int) -> BasicBlock:
    """The block with operations a b and a b + c e only. ``one``: 1 in the domain. The block must be pruned."""
    return _Fusion(block, one, p).out


class _Fusion:
    def __init__(self, block: BasicBlock, one: int, p: int) -> None:
        self._block, self._one, self._p = block, one, p
        self.out = BasicBlock(block.name)
        self.out.digits = block.digits
        self._uses = [len(u) for u in block.users]
        for k in block.outputs.values():
            self._uses[k] += 2  # never merge an output: it needs an operation of its own
        self._forms: dict[int, Form] = {}
        self._depth: list[int] = []
        for node in block.nodes:
            self._depth.append(1 + max((self._depth[a] for a in node.args), default=-1))
        self._merged = self._merged_products()
        self._done: dict[tuple[int, int], Element] = {}
        for k, node in enumerate(block.nodes):  # in topological order, which keeps the recursion shallow
            if node.kind == MUL and k not in self._merged:
                self._emit(k, 1)
        for name, k in block.outputs.items():
            self.out.set(name, self._emit(k, 1))

    def _is_sum(self, k: int) -> bool:
        return self._block.nodes[k].kind in (ADD, SUB)

    def _inlined(self, k: int) -> bool:
        """Whether the only user is a sum, into which this node is merged."""
        return self._uses[k] == 1 and self._is_sum(self._block.users[k][0])

    def _merged_products(self) -> set[int]:
        """Products that are merged into all their users and need no operation of their own."""
        coefficients: dict[int, list[int]] = {}
        for k in range(len(self._block.nodes)):
            if self._is_sum(k) and not self._inlined(k):
                for term, c in self._form(k).items():
                    coefficients.setdefault(term, []).append(c)
        found = set()
        for k, node in enumerate(self._block.nodes):
            users = self._block.users[k]
            if node.kind == MUL and k not in self._block.outputs.values() and all(map(self._is_sum, users)):
                of = coefficients.get(k, [])
                if len(of) == 1 or all(c == 1 for c in of):
                    found.add(k)
        return found

    def _form(self, k: int) -> Form:
        """The linear form of a sum; any other node is a form of one term, the constant 0 the empty form."""
        if not self._is_sum(k):
            node = self._block.nodes[k]
            zero = node.kind == READ and node.source is not None and not node.source.name and node.source.value == 0
            return {} if zero else {k: 1}
        if k not in self._forms:
            node = self._block.nodes[k]
            total: Form = {}
            for arg, sign in zip(node.args, (1, -1 if node.kind == SUB else 1), strict=True):
                form = self._form(arg)
                if self._is_sum(arg) and not self._inlined(arg) and len(form) > 1:
                    form = {arg: 1}
                for term, coefficient in form.items():
                    total[term] = total.get(term, 0) + sign * coefficient
            self._forms[k] = {term: c for term, c in total.items() if c}
        return self._forms[k]

    def _constant(self, c: int) -> Element:
        return self.out.constant(c * self._one % self._p)

    def _emit(self, k: int, scale: int) -> Element:
        """The node times a small integer, as an element of the new block."""
        if (k, scale) not in self._done:
            self._done[k, scale] = self._make(k, scale)
        return self._done[k, scale]

    def _make(self, k: int, scale: int) -> Element:
        node = self._block.nodes[k]
        if self._is_sum(k):
            return self._sum({term: scale * c for term, c in self._form(k).items()})
        if scale != 1:
            return self._emit(k, 1) * self._constant(scale)
        if node.kind == READ:
            return self.out._node(node)
        return self._emit(node.args[0], 1) * self._emit(node.args[1], 1)

    def _sum(self, form: Form) -> Element:
        if not form:
            return self.out.constant(0)
        if len(form) == 1:
            ((term, c),) = form.items()
            if c == 2 and term in self._merged:
                pair = self._term(term, 1)
                return self.out.combine(*pair, *pair)
            if term in self._merged:
                a, b = self._term(term, c)
                return a * b
            return self._emit(term, 1) if c == 1 else self._emit(term, 1) * self._constant(c)
        pairs = [self._term(term, form[term]) for term in sorted(form, key=lambda term: (self._depth[term], term))]
        total = self.out.combine(*pairs[0], *pairs[1])
        for pair in pairs[2:]:
            total = self.out.combine(total, self._constant(1), *pair)
        return total

    def _term(self, k: int, c: int) -> tuple[Element, Element]:
        """Two factors whose product is c times the node."""
        node = self._block.nodes[k]
        if k in self._merged:
            a, b = node.args
            if c == 1:
                return self._emit(a, 1), self._emit(b, 1)
            for x, y in ((a, b), (b, a)):
                if self._is_sum(x) and self._uses[x] == 1 and a != b:
                    return self._emit(x, c), self._emit(y, 1)
        return self._emit(k, 1), self._constant(c)
