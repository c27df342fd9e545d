# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Numbers that depend on the cycle, built in or loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from amaranth.hdl import Array, Const, Module, Mux, Signal, Value
from amaranth.lib.memory import Memory

from modmill.rtl.delay import later
from modmill.rtl.free_running import free_running


@dataclass(frozen=True)
class Table:
    """values[u], of at most ``bits`` bits, in cycle ``cycle`` + u, modulo their number."""

    name: str
    bits: int
    values: tuple[int, ...]
    cycle: int


class Tables:
    """Tables of ``n`` constants, each with a register. ``at(c, ...)``: high in cycles c modulo ``n``."""

    def __init__(self, m: Module, n: int, at: Callable[..., Value], tables: Sequence[Table]) -> None:
        self._m, self._n = m, n
        self._tables = {table.name: table for table in tables}
        self._place = free_running(range(n), name="table_place")
        m.d.sync += self._place.eq(Mux(at(n - 1), 0, self._place + 1))

    def register(self, name: str) -> Signal:
        """A register with values[u] of this table in its cycles."""
        table = self._tables[name]
        values = table.values
        out = Signal(max(1, max(values).bit_length()), name=name, reset_less=True)
        turned = [Const(values[(t + 1 - table.cycle) % self._n], len(out)) for t in range(self._n)]
        self._m.d.sync += out.eq(Array(turned)[self._place])
        return out


class LoadedTables(Tables):
    """The same in distributed RAM. ``word`` is a value of the table with number ``table``, that of ``digit``, if
    ``take`` is high. The tables are numbered in their order.

    Cost on ECP5: a DPR16X4 for four bits and 16 values of each table.
    """

    def __init__(
        self, m: Module, n: int, at: Callable[..., Value], tables: Sequence[Table], *, take: Value, table: Value,
        digit: Value, word: Value,
    ) -> None:  # fmt: skip
        super().__init__(m, n, at, tables)
        self._word, self._digit, self._number = (
            later(m, value, f"load_{name}") for name, value in (("word", word), ("digit", digit), ("table", table))
        )
        self._take = Signal(name="load_take")
        m.d.sync += self._take.eq(take)
        self._later_word = later(m, self._word, "load_word_written")
        self._places: dict[int, Value] = {}

    def written(self, name: str) -> Value:
        """Whether a value of this table is written: ``word`` and ``digit`` of the cycle before."""
        return self._take & (self._number == list(self._tables).index(name))

    @property
    def port(self) -> tuple[Value, Value]:
        """The digit and the word that are written."""
        return self._digit, self._word

    def highest(self, name: str, bits: int) -> Signal:
        """A register of ``bits`` bits: those of the last word of this table above the table's."""
        out = Signal(bits, name=f"{name}_above", reset_less=True)
        with self._m.If(self.written(name) & (self._digit == self._n - 1)):
            self._m.d.sync += out.eq(self._word[self._tables[name].bits :])
        return out

    def _turned(self, cycle: int) -> Value:
        """The address of the value that is written, a cycle after `port`, for tables of this cycle."""
        by = (cycle - 1) % self._n
        if by not in self._places:
            place = Signal(range(self._n), name=f"load_place{by}", reset_less=True)
            total = Signal(range(2 * self._n), name=f"load_total{by}")
            self._m.d.comb += total.eq(self._digit + by)
            self._m.d.sync += place.eq(Mux(total < self._n, total, total - self._n))
            self._places[by] = place
        return self._places[by]

    def register(self, name: str) -> Signal:
        table = self._tables[name]
        memory = Memory(shape=table.bits, depth=self._n, init=[])
        self._m.submodules[f"{name}_ram"] = memory
        write, read = memory.write_port(), memory.read_port(domain="comb")
        self._m.d.comb += [
            write.addr.eq(self._turned(table.cycle)), write.data.eq(self._later_word), read.addr.eq(self._place),
        ]  # fmt: skip
        enable = Signal(name=f"{name}_write")
        self._m.d.sync += enable.eq(self.written(name))
        self._m.d.comb += write.en.eq(enable)
        return later(self._m, read.data, name)


def multiples(value: Value, factor: int | Value) -> Iterator[tuple[int, Value]]:
    """(k, what is multiplied by 2^k), for the bits of ``factor``; together they are ``value`` times ``factor``."""
    if isinstance(factor, int):
        yield from ((k, value) for k in range(factor.bit_length()) if factor >> k & 1)
    else:
        yield from ((k, Mux(bit, value, 0)) for k, bit in enumerate(factor))
