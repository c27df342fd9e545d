# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Numbers that depend on the cycle, built in or loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from amaranth.hdl import Array, Const, Module, Mux, Signal, Value
from amaranth.lib.memory import Memory

from modmill.rtl.delay import later
from modmill.rtl.free_running import free_running

TABLES = 4
"""Loaded tables that a word and an address reach in one cycle."""


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


@dataclass
class _Loading:
    """What loads some tables: a word, the number of its table, its digit, whether it is one; and the word a cycle
    later. ``place``: the address that is read. ``turned``: the address that is written, a cycle after the digit, for
    each distance between the two."""

    word: Signal
    table: Signal
    digit: Signal
    take: Signal
    later: Signal
    place: Signal
    turned: dict[int, Signal] = field(default_factory=dict)


class LoadedTables(Tables):
    """The same in distributed RAM. ``word`` is a value of the table with number ``table``, that of ``digit``, if
    ``take`` is high. The tables are numbered in their order. Each `TABLES` of them pass words and addresses to the next
    ones, a cycle later, so that no net reaches many of them.

    Cost on ECP5: a DPR16X4 for four bits and 16 values of each table; for each `TABLES` of them registers for two
    words, a number and three digits.
    """

    def __init__(
        self, m: Module, n: int, at: Callable[..., Value], tables: Sequence[Table], *, take: Value, table: Value,
        digit: Value, word: Value,
    ) -> None:  # fmt: skip
        super().__init__(m, n, at, tables)
        self._loading: list[_Loading] = []
        place = self._place
        for k in range(-(-len(tables) // TABLES)):
            taken = Signal(name=f"load_take{k}")
            m.d.sync += taken.eq(take)
            word, table, digit, take = (
                later(m, word, f"load_word{k}"), later(m, table, f"load_table{k}"), later(m, digit, f"load_digit{k}"),
                taken,
            )  # fmt: skip
            if k:
                place = later(m, place, f"table_place{k}")
            self._loading.append(_Loading(word, table, digit, take, later(m, word, f"load_written{k}"), place))

    def _of(self, name: str) -> tuple[int, int, _Loading]:
        """The number of a table, that of its part of the chain, and this part."""
        number = list(self._tables).index(name)
        return number, number // TABLES, self._loading[number // TABLES]

    def written(self, name: str) -> Value:
        """Whether a value of this table is written: that of `port`."""
        number, _, loading = self._of(name)
        return loading.take & (loading.table == number)

    def port(self, name: str) -> tuple[Value, Value]:
        """The digit and the word of this table that are written."""
        _, _, loading = self._of(name)
        return loading.digit, loading.word

    def highest(self, name: str, bits: int) -> Signal:
        """A register of ``bits`` bits: those of the last word of this table above the table's."""
        out = Signal(bits, name=f"{name}_above", reset_less=True)
        digit, word = self.port(name)
        with self._m.If(self.written(name) & (digit == self._n - 1)):
            self._m.d.sync += out.eq(word[self._tables[name].bits :])
        return out

    def _turned(self, name: str) -> Value:
        """The address of the value that is written, a cycle after `port`."""
        _, part, loading = self._of(name)
        by = (self._tables[name].cycle - 1 - part) % self._n
        if by not in loading.turned:
            place = Signal(range(self._n), name=f"load_place{part}_{by}", reset_less=True)
            total = Signal(range(2 * self._n), name=f"load_total{part}_{by}")
            self._m.d.comb += total.eq(loading.digit + by)
            self._m.d.sync += place.eq(Mux(total < self._n, total, total - self._n))
            loading.turned[by] = place
        return loading.turned[by]

    def register(self, name: str) -> Signal:
        _, _, loading = self._of(name)
        memory = Memory(shape=self._tables[name].bits, depth=self._n, init=[])
        self._m.submodules[f"{name}_ram"] = memory
        write, read = memory.write_port(), memory.read_port(domain="comb")
        self._m.d.comb += [
            write.addr.eq(self._turned(name)), write.data.eq(loading.later), read.addr.eq(loading.place),
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
