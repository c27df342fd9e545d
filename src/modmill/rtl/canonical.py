# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A multiplier whose results are congruent modulo M but longer, with canonical results."""

from __future__ import annotations

from types import SimpleNamespace

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import fifo

from modmill.contract import Load, Timing
from modmill.interface import Multiplier
from modmill.rtl.excess import CELL_CYCLES, Cell
from modmill.rtl.words import WordSubtraction, widened


class Canonical(Multiplier):
    """``native`` with results below M: V enters `Cell` after `Cell`, and then M is subtracted once if it fits.

    Each cell shortens V by ``word`` bits; in the end it is below 2 M. ``p``: M; ``bits``: those of the largest M;
    ``timing``: what `timing_of` returns. V passes in digits of ``word`` bits, at most as many as the interval has
    cycles.
    If the modulus is loaded, ``load`` is what loads it, and a subclass defines `loaded`.
    Cost beyond the multiplier: the cells, a register for V, the subtraction, a queue for as many results as there are
    products under way.
    """

    def __init__(
        self, native: Multiplier, p: int, bits: int, timing: Timing, *, word: int, cells: int = 0,
        load: Load | None = None,
    ) -> None:  # fmt: skip
        self.native, self._p, self._bits, self._timing = native, p, bits, timing
        self._word, self._cells, self._load = word, cells, load
        self.kept = native.kept
        super().__init__(bits, bits, bits, period=native.period, lead=native.lead, k=load.width if load else 0)

    @staticmethod
    def timing_of(native: Timing, bits: int, word: int, cells: int = 0) -> Timing:
        """Timing of the whole."""
        latency = native.latency + CELL_CYCLES * cells + words(bits, word) + 4
        return Timing(latency, native.interval, -(-latency // native.interval))

    def read_in(self, operand: int, bit: int) -> tuple[int, int]:
        return self.native.read_in(operand, bit)

    def loaded(self, m: Module, empty: Value) -> tuple[Value, Value, Value]:
        """Connect stream k. Returns M, -M^-1 mod 2^word (without cells any value), and whether operands may be
        accepted. ``empty``: no product is in the core, so that words may be."""
        raise NotImplementedError

    @property
    def timing(self) -> Timing:
        return self._timing

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        native, word = self.native, self._word
        m.submodules.multiplier = native
        places = self._timing.in_flight + 1
        room = Signal(range(places + 1), name="room", init=places)
        if self._load:
            modulus, inverse, allowed = self.loaded(m, room == places)
        else:
            modulus, inverse = Const(self._p, self._bits), Const(-pow(self._p, -1, 1 << word) % (1 << word), word)
            allowed = Const(1, 1)
        may = (room != 0) & allowed
        m.d.comb += [
            native.i_valid.eq(self.i_valid & may), self.i_ready.eq(native.i_ready & may),
            native.i_a.eq(self.i_a), native.i_b.eq(self.i_b), native.o_ready.eq(1),
        ]  # fmt: skip
        m.d.sync += room.eq(room - (self.i_valid & self.i_ready) + (self.o_valid & self.o_ready))

        v = Signal(max(len(native.o_r), word), name="V", reset_less=True)
        first: Value = Signal(name="V_first")
        m.d.sync += [v.eq(Mux(native.o_valid, native.o_r, v >> word)), first.eq(native.o_valid)]
        digit: Value = v[:word]
        count = -(-self._bits // word)
        for j in range(self._cells):
            m.submodules[f"cell{j}"] = cell = Cell(word, count)
            m.d.comb += [cell.first.eq(first), cell.v.eq(digit), cell.m.eq(modulus), cell.inverse.eq(inverse)]
            first, digit = cell.r_first, cell.r
        self._subtract(m, first, digit, modulus, places)
        return m

    def _subtract(self, m: Module, first: Value, digit: Value, modulus: Value, places: int) -> None:
        """The digits of a number below 2 M, from ``first`` on, to a canonical result in the queue."""
        word, count = self._word, words(self._bits, self._word)
        left, place = Signal(range(count + 1), name="digits_left"), Signal(range(count + 1), name="place")
        with m.If(first):
            m.d.sync += [left.eq(count - 1), place.eq(1)]
        with m.Elif(left != 0):
            m.d.sync += [left.eq(left - 1), place.eq(place + 1)]
        z, subtrahend = (Signal(word, name=name, reset_less=True) for name in ("z", "modulus_digit"))
        valid, last = Signal(name="z_valid"), Signal(name="z_last")
        digits = widened(modulus, word * (count + 1))
        m.d.sync += [
            z.eq(digit), subtrahend.eq(digits.word_select(Mux(first, 0, place), word)),
            valid.eq(first | (left != 0)), last.eq((first & (count == 1)) | (left == 1)),
        ]  # fmt: skip
        end = SimpleNamespace(
            o_valid=Signal(name="end_valid"), o_ready=Const(1, 1), o_r=Signal(self._bits, name="end_r")
        )
        WordSubtraction(m, end, z, subtrahend, valid, last, count=count, subtract=True)
        m.submodules.queue = queue = fifo.SyncFIFO(width=self._bits, depth=places)
        m.d.comb += [
            queue.w_data.eq(end.o_r), queue.w_en.eq(end.o_valid),
            self.o_r.eq(queue.r_data), self.o_valid.eq(queue.r_rdy), queue.r_en.eq(self.o_ready),
        ]  # fmt: skip


def words(bits: int, word: int) -> int:
    """Digits of a number below 2 M, for M of ``bits`` bits."""
    return -(-(bits + 1) // word)
