# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Memory of a sequencer: the table entries of all programs, and behind them the digits of all threads."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from modmill.engines.machine.layout import PACK, Entry, MicrocodeLayout
from modmill.rtl.delay import later
from modmill.rtl.memory import BlockRam, even, with_parity

DIGITS = 3
"""Cycles from the address of a word of digits to the word."""
_PRODUCT = ("active", "two", "count", "advance", "again", "last")
_SUM = ("invert", "trim", "lift", "select")
BANK = 1024
"""Words of a bank."""


def chosen(which: Value, values: Sequence[Value | int]) -> Value:
    """The value with number ``which``, the last value for a number beyond the end."""
    found = Value.cast(values[-1])
    for k, value in enumerate(values[:-1]):
        found = Mux(which == k, value, found)
    return found


class ProgramMemory(wiring.Component):
    """Table entries and, behind them in the same block RAMs, the digits of all threads.

    The entry at address ``at`` of cycle t appears at ``product`` and ``sum`` in cycle t + 3, the word of digits at
    address ``d_at`` at ``digits`` in cycle t + DIGITS. ``d_write`` stores ``d_data`` at ``d_place`` one cycle later; no
    digits are read in that cycle. The digits begin at a multiple of their size, so that no write can change an entry,
    not even one before a reset. Where their bits are also those of an entry that steer it, and not only its addresses,
    or no address may depend on a digit, they begin behind all that ``at`` can be. More than 1,024 words of digits have
    separate banks.
    With parity, ``wrong`` and ``digits_wrong`` tell one cycle after an entry or a word of digits whether its parity is
    wrong; words that are neither an entry nor written have any.
    Cost on ECP5: ceil(bits of an entry / 18) block RAMs for every 1,024 words up to the last one of digits. Latency: 3
    cycles from ``at`` to ``product`` and ``sum``.
    """

    def __init__(self, layout: MicrocodeLayout) -> None:
        self.layout = layout
        shapes = table_shapes(layout)
        self.words = [self._word(entry, shapes) for entry in layout.table[0]]
        self.width = max(PACK, *(shape.size for shape in shapes.values()))
        self.digits_room = min(BANK, 1 << (layout.digit_depth - 1).bit_length())  # in one bank
        self.digits_banks = -(-layout.digit_depth // self.digits_room)
        size = self.digits_room
        if layout.selecting_bits or any(shape[kind[0]].offset < PACK for kind, shape in shapes.items()):
            size = max(size, 1 << (len(self.words) - 1).bit_length())
        first = -(-len(self.words) // size) * size
        self.digits_bank, self.digits_first = divmod(first, BANK)
        digit = range(max(2, layout.digit_depth))
        super().__init__({
            "at": In(range(max(2, len(self.words)))), "product": Out(shapes[_PRODUCT]), "sum": Out(shapes[_SUM]),
            "d_at": In(digit), "digits": Out(PACK), "d_write": In(1), "d_place": In(digit), "d_data": In(PACK),
            **({"wrong": Out(1), "digits_wrong": Out(1)} if layout.timing.parity else {}),
        })  # fmt: skip

    def _word(self, entry: Entry, shapes: dict[tuple[str, ...], data.StructLayout]) -> int:
        fields: dict[str, int] = {}
        for name, (number, how) in zip(self.layout.fields, entry.addresses, strict=True):
            fields[name], fields[f"{name}_add"] = number, self.layout.bases(name).index(how)
        kind = _PRODUCT if entry.count else _SUM
        fields |= {name: int(getattr(entry, name)) for name, _ in shapes[kind] if name in kind}
        return int(shapes[kind].const(fields).as_bits())

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parity = self.layout.timing.parity
        shared = self.digits_banks == 1
        banks = 1 + max(self.digits_bank if shared else 0, (len(self.words) - 1) // BANK)
        found = Signal(self.width + parity, reset_less=True)
        place = Cat(self.at, Const(0, BANK.bit_length()))
        bank: Value = place[BANK.bit_length() - 1 :][: (banks - 1).bit_length()]
        for k in range(2):
            bank = later(m, bank, f"bank_{k}")
        with m.Switch(bank):
            for number in range(banks):
                words = self.words[number * BANK : (number + 1) * BANK]
                width = self.width if words else PACK
                with_digits = shared and number == self.digits_bank
                used = self.digits_first + self.digits_room if with_digits else len(words)
                depth = max(16, 1 << (used - 1).bit_length())
                if parity:
                    words = [word | (1 - word.bit_count() % 2) << width for word in words]
                m.submodules[f"bank{number}"] = ram = BlockRam(width + parity, depth, words)
                digit = depth.bit_length() - 1
                m.d.comb += ram.a_address.eq(place[:digit])
                if with_digits:
                    write = Signal(name="d_write_here")
                    m.d.sync += write.eq(self.d_write)
                    low = self.digits_room.bit_length() - 1
                    at = later(m, Cat(Mux(self.d_write, self.d_place, self.d_at), Const(0, low))[:low], "digits_at")
                    m.d.comb += [
                        ram.b_address.eq(self.digits_first | at),
                        ram.b_write.eq(write),
                        ram.b_d.eq(self._given(m, width)),
                        self.digits.eq(ram.b_q),
                    ]
                    if parity:
                        m.d.sync += self.digits_wrong.eq(even(ram.b_q))
                with m.Case(number):
                    m.d.sync += found.eq(ram.a_q)
        m.d.comb += [self.product.eq(found), self.sum.eq(found)]
        if parity:
            m.d.sync += self.wrong.eq(even(found))
        if not shared:
            self._digits(m)
        return m

    def _given(self, m: Module, width: int) -> Value:
        """The word of digits that is written, with its parity in bit ``width``."""
        word = later(m, self.d_data, "d_data_here")
        return with_parity(Cat(word, Const(0, width - PACK))) if self.layout.timing.parity else word

    def _digits(self, m: Module) -> None:
        """Add the banks that hold digits only."""
        low = BANK.bit_length() - 1
        at = later(m, Mux(self.d_write, self.d_place, self.d_at), "digits_at")
        write, word = Signal(name="d_write_here"), self._given(m, PACK)
        m.d.sync += write.eq(self.d_write)
        which: Value = at[low:]
        for k in range(2):
            which = later(m, which, f"digits_bank_{k}")
        found = []
        for k in range(self.digits_banks):
            used = min(BANK, self.layout.digit_depth - k * BANK)
            depth = max(16, 1 << (used - 1).bit_length())
            m.submodules[f"digits{k}"] = ram = BlockRam(len(word), depth, ())
            m.d.comb += [
                ram.b_address.eq(at[: depth.bit_length() - 1]),
                ram.b_d.eq(word),
                ram.b_write.eq(write & (at[low:] == k)),
            ]
            found.append(ram.b_q)
        m.d.comb += self.digits.eq(chosen(which, found))
        if self.layout.timing.parity:
            m.d.sync += self.digits_wrong.eq(even(chosen(which, found)))


def table_shapes(layout: MicrocodeLayout) -> dict[tuple[str, ...], data.StructLayout]:
    """Fields of an instruction's first entry and of the entries of its sums, with the widths that the layout needs."""
    number = max(n for entry in layout.table[0] for n, _ in entry.addresses).bit_length()
    same = dict.fromkeys(layout.fields, number)
    same |= {f"{name}_add": (len(layout.bases(name)) - 1).bit_length() for name in layout.fields}
    widths = {
        "lift": (len(layout.offset_multiples) - 1).bit_length(),
        "trim": len(layout.conditional_subtracts).bit_length(),
        "select": layout.selecting_bits.bit_length(),
        "count": (1 + layout.timing.sums).bit_length(),
    }
    kinds = _PRODUCT, _SUM if layout.selecting_bits else _SUM[:-1]
    return {
        used: data.StructLayout({**same, **{name: widths.get(name, 1) for name in kind}})
        for used, kind in zip((_PRODUCT, _SUM), kinds, strict=True)
    }
