# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A network of operations on words, without registers: what a fully parallel multiplier computes.

A number is a row: pieces of words, each at its place, which do not overlap. An operation reads rows and makes one or
two words. Each operation has an estimated delay, from which `pipeline` places the registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from modmill.schedule import Operations


class Kind(Operations):
    """What the operations make, by the stage in which they stand."""

    SUM = "a{}"  # sums of two digits of an operand
    PRODUCT = "P{}"  # products of digits, or of such sums
    PREFIX = "S{}"  # sums of squares that a column subtracts
    COUNT = "c{}"  # carry-save adders: sum and carry
    SEGMENT = "h{}"  # segments of the part above 2^k
    TABLE = "t{}"  # multiples of powers of two modulo p
    PAIR = "s{}"  # segments of sums of two such multiples
    BLOCK = "b{}"  # blocks of the last sum, without and with a carry
    CARRY = "g{}"  # the carries into the blocks
    CHOICE = "d{}"  # the sum less a multiple of p
    RESULT = "v"


@dataclass(frozen=True)
class Piece:
    """``width`` bits of ``word`` from bit ``start`` on, times 2^``place``; the bits are ``inverted`` if so said."""

    word: int
    start: int
    width: int
    place: int
    inverted: bool = False

    @property
    def end(self) -> int:
        """The place above the highest bit."""
        return self.place + self.width

    def clipped(self, low: int, high: int) -> Piece | None:
        """The bits at the places from ``low`` to below ``high``; None if there are none."""
        first, last = max(low, self.place), min(high, self.end)
        if first >= last:
            return None
        return Piece(self.word, self.start + first - self.place, last - first, first, self.inverted)

    def moved(self, by: int, *, inverted: bool = False) -> Piece:
        """The piece times 2^``by``, and inverted."""
        return Piece(self.word, self.start, self.width, self.place + by, self.inverted ^ inverted)


Row = tuple[Piece, ...]


def clipped(row: Row, low: int, high: int) -> Row:
    """The bits of ``row`` at the places from ``low`` to below ``high``."""
    return tuple(part for piece in row if (part := piece.clipped(low, high)))


def span(row: Row) -> tuple[int, int]:
    """The place of the lowest bit, and the one above the highest; (0, 0) for an empty row."""
    return (min(p.place for p in row), max(p.end for p in row)) if row else (0, 0)


@dataclass(frozen=True)
class Operation:
    """Makes words of ``widths`` bits from the rows ``reads``, divided by 2^``low``.

    PRODUCT: the product of two rows. COUNT: the exclusive or of three rows, and their majority. TABLE: entry
    ``table[i]`` for the row i. CARRY: for bits g and h of two rows, the carries into the places of g + h. CHOICE and
    RESULT of more than two rows: the last row selects from the others; with ``parts`` (their bits) the second for each
    part whose bit is set, else the first; without, the last one whose bit is not set, where the first has none. All
    others: the sum of two rows and ``carry``.
    """

    kind: Kind
    reads: tuple[Row, ...]
    words: tuple[int, ...]
    widths: tuple[int, ...]
    delay: int
    low: int = 0
    carry: int = 0
    table: tuple[int, ...] = ()
    parts: tuple[int, ...] = ()

    @property
    def lut(self) -> int:
        """Estimated number of look-up tables."""
        width = sum(self.widths)
        if self.kind is Kind.PRODUCT:
            return 0
        return width << max(0, len(self.table).bit_length() - 5) if self.table else width


ADDER, FOR_16_BITS = 17, 6
"""Delay of an adder without its carry chain, and of 16 bits of the chain. All delays are estimates in 0.1 ns, routing
included, for ecp5 of speed 6."""
TILE, LUT, CHOOSE = 50, 12, 18
"""Delays of a DSP block, of a look-up table, and of a selection by one net for many bits."""


@dataclass
class Network:
    """Operations in an order in which each reads only words made before. Words 0 and 1 are the operands.

    ``widths``, ``times``: of each word its bits, and the time in which it is ready; ``constants``: words that are
    constants.
    """

    widths: list[int]
    times: list[int]
    operations: list[Operation] = field(default_factory=list)
    constants: dict[int, int] = field(default_factory=dict)

    def constant(self, value: int, place: int = 0) -> Row:
        """The number ``value`` 2^``place``; its zeros are gaps of the row."""
        if not value:
            return ()
        word = self._word(value.bit_length(), 0)
        self.constants[word] = value
        bits = bin(value)[:1:-1]
        ones: list[Piece] = []
        at = 0
        while (first := bits.find("1", at)) >= 0:
            zero = bits.find("0", first)
            at = len(bits) if zero < 0 else zero
            ones.append(Piece(word, first, at - first, place + first))
        return tuple(ones)

    def time(self, row: Row) -> int:
        """The time in which a row is ready."""
        return max((self.times[piece.word] for piece in row), default=0)

    def sum(self, kind: Kind, rows: Sequence[Row], width: int, low: int = 0, carry: int = 0) -> Piece:
        """The sum of two rows, in ``width`` bits, at place ``low``; with ``carry`` one more at this place."""
        delay = ADDER + FOR_16_BITS * width // 16
        (word,) = self._append(kind, rows, [width], delay, low=low, carry=carry)
        return Piece(word, 0, width, low)

    def product(self, rows: Sequence[Row], width: int) -> Piece:
        """The product of two rows, in ``width`` bits."""
        (word,) = self._append(Kind.PRODUCT, rows, [width], TILE)
        return Piece(word, 0, width, 0)

    def count(self, rows: Sequence[Row], top: int) -> tuple[Piece, Piece]:
        """Sum and carry of three rows without a carry from place to place; ``top``: the place above all of them."""
        low = min(span(row)[0] for row in rows)
        total, carries = self._append(Kind.COUNT, rows, [top - low] * 2, LUT, low=low)
        return Piece(total, 0, top - low, low), Piece(carries, 0, top - low, low + 1)

    def table(self, index: Row, entries: Sequence[int]) -> Piece:
        """Entry i of ``entries`` for the row i, at place 0."""
        width = max(1, max(entries).bit_length())
        bits = (len(entries) - 1).bit_length()
        (word,) = self._append(Kind.TABLE, [index], [width], LUT + 3 * max(0, bits - 4), table=tuple(entries))
        return Piece(word, 0, width, 0)

    def carries(self, rows: Sequence[Row], width: int) -> Piece:
        """The carries into ``width`` places of the sum of two rows."""
        (word,) = self._append(Kind.CARRY, rows, [width], ADDER + FOR_16_BITS * width // 16 + LUT)
        return Piece(word, 0, width, 0)

    def choice(self, kind: Kind, rows: Sequence[Row], width: int, parts: Sequence[int] = ()) -> Piece:
        """A selection, in ``width`` bits (see `Operation`)."""
        delay = CHOOSE + LUT * (not parts and len(rows) > 3)
        (word,) = self._append(kind, rows, [width], delay, parts=tuple(parts))
        return Piece(word, 0, width, 0)

    def _word(self, width: int, time: int) -> int:
        self.widths.append(width)
        self.times.append(time)
        return len(self.widths) - 1

    def _append(
        self, kind: Kind, rows: Sequence[Row], widths: Sequence[int], delay: int, *, low: int = 0, carry: int = 0,
        table: tuple[int, ...] = (), parts: tuple[int, ...] = (),
    ) -> tuple[int, ...]:  # fmt: skip
        time = max(map(self.time, rows)) + delay
        words = tuple(self._word(width, time) for width in widths)
        self.operations.append(Operation(kind, tuple(rows), words, tuple(widths), delay, low, carry, table, parts))
        return words


def number(row: Row, words: Sequence[int], low: int = 0) -> int:
    """The value of ``row`` divided by 2^``low``, for the values ``words``."""
    total = 0
    for piece in row:
        ones = (1 << piece.width) - 1
        bits = words[piece.word] >> piece.start & ones
        total |= (bits ^ ones if piece.inverted else bits) << piece.place - low
    return total


def computed(operation: Operation, words: Sequence[int]) -> list[int]:
    """The values of the words that ``operation`` makes."""
    rows = [number(row, words, operation.low) for row in operation.reads]
    match operation.kind:
        case Kind.PRODUCT:
            made = [rows[0] * rows[1]]
        case Kind.COUNT:
            a, b, c = rows
            made = [a ^ b ^ c, a & b | a & c | b & c]
        case Kind.TABLE:
            made = [operation.table[rows[0]]]
        case Kind.CARRY:
            g, h = rows
            made = [(g + h) ^ g ^ h]
        case Kind.CHOICE | Kind.RESULT if len(rows) > 2:
            made = [chosen(rows, operation.parts)]
        case _:
            made = [sum(rows) + operation.carry]
    return [value & (1 << width) - 1 for value, width in zip(made, operation.widths, strict=True)]


def chosen(rows: Sequence[int], parts: Sequence[int]) -> int:
    """The value of a selection (see `Operation`)."""
    *numbers, selecting = rows
    if not parts:
        return [numbers[0], *(value for j, value in enumerate(numbers[1:]) if not selecting >> j & 1)][-1]
    total = place = 0
    for part, bits in enumerate(parts):
        total |= numbers[selecting >> part & 1] & ((1 << bits) - 1) << place
        place += bits
    return total
