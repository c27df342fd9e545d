# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What cells make of bits, written apart from `arithmetic.word_rules` for the checker of certificates.

A bit is 0, 1, None (unknown), or (number of a polynomial, k): bit k of it, in two's complement without end.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from modmill.proofs.checker.recheck import Book, Poly, RefusedError, combined, require

Bit = int | None | tuple[int, int]
Bits = tuple[Bit, ...]
Pins = Mapping[str, Bits]
_ONE: Poly = {(): 1}
_MOST_DECIDED, _MOST_OF_RESIDUES = 4, 6


class Cells:
    """The rules, with what is known of a run in its ``book``. ``select``: is asked which value a bit has that
    chooses between words, at which place of a cell."""

    def __init__(self, book: Book, select: Callable[[tuple[int, int], str], int | None] = lambda *_: None) -> None:
        self.book, self.select = book, select
        self.named: dict[int, Poly] | None = None
        self._name_of: dict[int, Bits] = {}
        self._functions: dict[Hashable, Bits] = {}
        self._places: dict[Hashable, Bit] = {}
        self._ors: dict[Bit, Bits] = {}

    def value(self, bits: Bits, signed: bool = False) -> Poly:
        """The number that bits are."""
        total, k = list[tuple[int, Poly]](), 0
        while k < len(bits):
            bit, end = bits[k], k + 1
            sign = -1 if signed and end == len(bits) else 1
            if isinstance(bit, tuple):
                while end < len(bits) - signed and bits[end] == (bit[0], bit[1] + end - k):
                    end += 1
                total.append((sign << k, self._piece(bit[0], bit[1], bit[1] + end - k)))
            else:
                require(bit is not None, "a number has unknown bits")
                total.append(((bit or 0) * sign << k, _ONE))
            k = end
        return combined(*total)

    def _piece(self, word: int, low: int, high: int) -> Poly:
        below, above = self.book.floor(word, low), self.book.floor(word, high)
        return combined((1, below), (-1 << high - low, above))

    def bits(self, poly: Poly, width: int) -> Bits:
        """The low bits of a number."""
        if not poly.keys() - {()}:
            return tuple(poly.get((), 0) >> k & 1 for k in range(width))
        word = self.book.id(poly)
        return tuple((word, k) for k in range(width))

    def ranged(self, poly: Poly, width: int) -> Bits:
        """The bits of a number of which a gate says that it is from 0 to 2^width - 1."""
        self.book.given[self.book.id(poly)] = 0, (1 << width) - 1
        return self.bits(poly, width)

    def function(self, width: int, *of: Hashable) -> Bits:
        """A word without an expression: the same atom for the same function of the same bits."""
        if (width, of) not in self._functions:
            self._functions[width, of] = self.bits(self.book.atom(width), width)
        return self._functions[width, of]

    def looked_up(self, number: int, address: Bits, words: Sequence[Bits], first: int) -> Bits:
        """The word of a memory at an address that is not known. If all words are what the certificate says, bits s and
        up of k m, where k is c z modulo the number of words, for the address z; else an atom."""
        z, width, count = self.value(address), len(words[0]), len(words)
        form = self.book.choice("table", z, number)
        if form is not None and first == 0 and count == 1 << len(address):
            c, m, s = form
            entries = (((c * at) % count * m >> s) % (1 << width) for at in range(count))
            if all(self.bits({(): x} if x else {}, width) == word for x, word in zip(entries, words, strict=True)):
                k = self._piece(self.book.id(combined((c, z))), 0, len(address))
                return tuple((self.book.id(combined((m, k))), s + at) for at in range(width))
        return self.function(width, "read", address, tuple(words))

    def name(self, bits: Bits, terms: int) -> Bits:
        """The bits of an atom for a word of more than some ``terms``, if words are ``named``: what each is, by its
        atom."""
        if self.named is None or None in bits or all(isinstance(bit, int) for bit in bits):
            return bits
        poly = self.value(bits)
        if len(poly) <= terms:
            return bits
        word = self.book.id(poly)
        if word not in self._name_of:
            width = len(bits)
            while bits[width - 1] == 0:
                width -= 1
            atom = self.book.atom(width)
            self.named[min(min(atom))] = poly
            self.book.given[self.book.id(combined((1, atom), (-1, poly)))] = 0, 0
            self._name_of[word] = self.bits(atom, width)
        return *self._name_of[word], *(0,) * (len(bits) - len(self._name_of[word]))

    def invert(self, bit: Bit) -> Bit:
        """Its other value: -1 - x has the other bits."""
        if isinstance(bit, tuple):
            return self.book.id(combined((-1, self.book.polys[bit[0]]), (-1, _ONE))), bit[1]
        return None if bit is None else 1 - bit

    def choose(self, select: Bit, one: Bits, zero: Bits, place: str = "") -> Bits:
        """``one`` if ``select`` is 1, else ``zero``."""
        if isinstance(select, int):
            return one if select else zero
        if one == zero:
            return one
        if select is None or None in one or None in zero:
            return tuple(a if a == b else None for a, b in zip(one, zero, strict=True))
        if len(one) > 1 and (chosen := self.select(select, place)) is not None:
            return one if chosen else zero
        a, b = self.value(one), self.value(zero)
        apart = self.book.times(self.value((select,)), combined((1, a), (-1, b)))
        return self.bits(combined((1, b), (1, apart)), len(one))

    # ---- words

    def arithmetic(self, type_: str, signed: bool, words: Sequence[Bits], width: int) -> Bits:
        """`$add`, `$sub`, `$mul`, `$neg`: bits below the first unknown one. In a sum, if the lowest bit of a word is 1
        and that of the other one says whether something is not 0, it is a carry into the sum of the bits above."""
        if type_ == "$mul" and any(not any(bits) and None not in bits for bits in words):
            return (0,) * width
        for one, other in (words, words[::-1]) if type_ == "$add" and width > 1 and not signed else ():
            if len(one) > 1 < len(other) and one[0] == 1 and other[0] in self._ors:
                above = [words[0][1:], words[1][1:], other[:1]]
                return self.invert(other[0]), *self.arithmetic("carry", False, above, width - 1)
        if type_ == "$mul":
            words = [self.name(bits, 1) for bits in words]
        end = min([width, *(bits.index(None) for bits in words if None in bits)])
        if not end:
            return (None,) * width
        values = [self.value(bits[:end], signed and len(bits) <= end) for bits in words]
        signs = {"$add": (1, 1), "carry": (1, 1, 1), "$sub": (1, -1), "$neg": (-1,)}
        found = self.book.times(*values) if type_ == "$mul" else combined(*zip(signs[type_], values, strict=True))
        if self.book.choice("modulo", found, end):
            half = 1 << end - 1
            found = {m: r for m, c in found.items() if (r := half - (half - c) % (2 * half))}
        return *self.bits(found, end), *(None,) * (width - end)

    def gate(self, what: str, a: Bits, b: Bits) -> Bits:
        """`and`, `or`, `xor` of two words, with stretches of places without constants as words."""
        found, k = list[Bit](), 0
        while k < len(a):
            end = k
            while end < len(a) and self._easy(what, a[end], b[end]) is Ellipsis:
                end += 1
            found += self._stretch(what, a[k:end], b[k:end]) if end > k else [self._easy(what, a[k], b[k])]
            k = max(end, k + 1)
        return tuple(found)

    def _easy(self, what: str, a: Bit, b: Bit) -> Any:
        """The bit at a place with constants, unknown or equal bits; ... for others."""
        if what == "xor" and None in (a, b):
            return None
        for x, y in ((a, b), (b, a)):
            if isinstance(x, int):
                return (self.invert(y) if x else y) if what == "xor" else y if x == (what == "and") else x
        if a == b:
            return 0 if what == "xor" else a
        return None if None in (a, b) else Ellipsis

    def _stretch(self, what: str, a: Bits, b: Bits, *, added: bool = False) -> Bits:
        width, both = len(a), Poly()
        if width == 1 and what != "xor" and (a[0] in self._ors or b[0] in self._ors):
            return (self.any((*a, *b)),) if what == "or" else (self.every((*a, *b)),)
        for x, y in ((a, b), (b, a)) if width > 1 and not added else ():
            if len(set(x)) == 1:
                s, word = self.value(x[:1]), self.value(y)
                if self.book.choice("alone", combined((1, word), (1 << width, s)), width):
                    break
                both = self.book.times(s, word)
                every = combined(((1 << width) - 1, s))
                factor = {"and": (0, 0, 1), "or": (1, 1, -1), "xor": (1, 1, -2)}[what]
                return self.bits(combined(*zip(factor, (every, word, both), strict=True)), width)
        both = self.value(self.shared("all", (a, b)))
        if what == "and":
            return self.bits(both, width)
        found = combined((1, self.value(a)), (1, self.value(b)), (-1 if what == "or" else -2, both))
        return self.ranged(found, width)

    def shared(self, function: str, words: Sequence[Bits]) -> Bits:
        """A symmetric function at each place: new places next to each other are one atom."""
        keys = [(function, frozenset(bits)) for bits in zip(*words, strict=True)]
        start = 0
        while start < len(keys):
            end = start
            while end < len(keys) and keys[end] not in self._places:
                end += 1
            if end > start:
                made = self._both_of(keys[start][1]) if end == start + 1 and function == "all" else ()
                made = made or self.function(end - start, function, tuple(keys[start:end]))
                self._places.update(zip(keys[start:end], made, strict=True))
            start = end + 1
        return tuple(self._places[key] for key in keys)

    def _both_of(self, bits: frozenset[Bit]) -> Bits:
        a, b = (self.value((bit,)) for bit in bits)
        return () if self.book.choice("number", combined((1, a), (1, b)), 1) else self.bits(self.book.times(a, b), 1)

    def adder(self, words: Sequence[Bits]) -> tuple[Bits, Bits]:
        """Sum and carry bits of three words."""
        places = list(zip(*words, strict=True))
        found = [self._place(bits) for bits in places]
        kinds = [tuple(bit if isinstance(bit, int) else -1 for bit in bits) for bits in places]
        sums, carries, k = list[Bit](), list[Bit](), 0
        while k < len(places):
            end, one = k + 1, found[k]
            if one is None:
                while end < len(places) and kinds[end] == kinds[k] and found[end] is None:
                    end += 1
                free = [word[k:end] for word, kind in zip(words, kinds[k], strict=True) if kind < 0]
                one = self._adder_words(free, 1 in kinds[k])
            sums += one[0]
            carries += one[1]
            k = end
        return tuple(sums), tuple(carries)

    def _place(self, bits: Sequence[Bit]) -> tuple[Bits, Bits] | None:
        """Sum and carry at a place with at most one bit of its own; None for others."""
        free, ones = [bit for bit in bits if not isinstance(bit, int)], bits.count(1)
        if not free:
            return (ones & 1,), (ones >> 1,)
        if len(free) == 1:
            return (self.invert(free[0]) if ones == 1 else free[0],), (free[0] if ones == 1 else ones >> 1,)
        if None in free:
            return (None,), (None,)
        for twin in free:
            if free.count(twin) > 1:
                free.remove(twin)
                free.remove(twin)
                return (free[0] if free else ones,), (twin,)
        return None

    def _adder_words(self, free: Sequence[Bits], one: bool) -> tuple[Bits, Bits]:
        if len(free) == 2:
            sums, carries = (self._stretch(what, *free, added=True) for what in ("xor", "or" if one else "and"))
            return tuple(map(self.invert, sums)) if one else sums, carries
        carries = self.shared("majority", free)
        total = combined(*((1, self.value(word)) for word in free), (-2, self.value(carries)))
        return self.ranged(total, len(carries)), carries

    # ---- truth

    def any(self, bits: Bits) -> Bit:
        """Whether a bit is 1: 1 + floor((V - 1) / 2^n) for the word V of n bits."""
        rest = [bit for bit in bits if bit != 0]
        if 1 in rest:
            return 1
        if None in rest or len(rest) < 2:
            return None if None in rest else rest[0] if rest else 0
        parts = {b for bit in rest for b in self._ors.get(bit, (bit,)) if isinstance(b, tuple)}
        every = tuple(sorted(parts, key=lambda b: (sorted(self.book.polys[b[0]].items()), b[1])))
        below = self.book.floor(self.book.id(combined((1, self.value(every)), (-1, _ONE))), len(every))
        (found,) = self.bits(combined((1, _ONE), (1, below)), 1)
        self._ors[found] = every
        return found

    def every(self, bits: Bits) -> Bit:
        """Whether all bits are 1."""
        return self.invert(self.any(tuple(map(self.invert, bits))))

    def compare(self, type_: str, signed: bool, a: Bits, b: Bits) -> Bit:
        """`$lt` and the like: the sign of a difference."""
        if type_ in ("$gt", "$le"):
            a, b = b, a
        less: Bit = None
        if not {*map(type, (*a, *b))} - {int}:
            x, y = (self.value(bits, signed).get((), 0) for bits in (a, b))
            less = int(x < y)
        elif None not in (*a, *b):
            apart = combined((1, self.value(a, signed)), (-1, self.value(b, signed)))
            floor = self.book.floor(self.book.id(apart), len(a))
            (less,) = self.bits(combined((-1, floor)), 1)
        return less if type_ in ("$lt", "$gt") else self.invert(less)

    def differ(self, a: Bits, b: Bits) -> Bit:
        """Whether two words differ."""
        pairs = list(zip(a, b, strict=True))
        if any(isinstance(x, int) and isinstance(y, int) and x != y for x, y in pairs):
            return 1
        if a == b and None not in a:
            return 0
        if None in (*a, *b):
            return None
        if self.is_short(a) and not {*map(type, b)} - {int}:
            a = self.case_of(a)
            if all(isinstance(bit, int) for bit in a):
                return int(a != b)
        if self.book.choice("apart", combined((1, self.value(a)), (-1, self.value(b))), 0):
            return 1
        return self.function(1, "differ", a, b)[0] if any(y != 0 for y in b) else self.any(a)

    def is_short(self, bits: Bits) -> bool:
        """Whether a word has its value in a case where it is compared with a constant."""
        return 1 < len(bits) <= (_MOST_DECIDED if self.named is None else _MOST_OF_RESIDUES)

    def case_of(self, bits: Bits) -> Bits:
        """Bits of a short word, each with its value if it has one in this case; the highest ones are asked first."""
        found = list(bits)
        for k in range(len(bits) - 1, -1, -1):
            if isinstance(bit := bits[k], tuple):
                chosen = self.select(bit, str(k))
                found[k] = self.bits(self.value((bit,)), 1)[0] if chosen is None else chosen
        return tuple(found)

    def shift(self, type_: str, a: Bits, amount: Bits, places: tuple[int, bool, bool]) -> Bits:
        """``places``: width of the result, whether the word has a sign, whether the amount has."""
        width, signed, signed_amount = places
        if {*map(type, amount)} - {int}:
            return (None,) * width if None in (*amount, *a) else self.function(width, type_, a, amount)
        by = self.value(amount, signed_amount).get((), 0) * (-1 if type_ in ("$shl", "$sshl") else 1)
        fill = a[-1] if type_ == "$sshr" and signed else 0
        return tuple(0 if k + by < 0 else a[k + by] if k + by < len(a) else fill for k in range(width))


def output(cells: Cells, type_: str, n: Mapping[str, int], pins: Pins, width: int) -> Bits:
    """What a cell gives. ``n``: its parameters. Raises RefusedError for a type without a rule."""
    words = [pins[port] for port in "ABC" if port in pins]
    counted = "A" if "sh" in type_ else "ABC"
    signed = all(n.get(f"{port}_SIGNED") for port in counted if port in pins)

    def wide(size: int) -> list[Bits]:
        return [(*w[:size], *((w[-1] if signed and w else 0,) * (size - len(w)))) for w in words]

    one: Bit
    match type_:
        case "$add" | "$sub" | "$mul" | "$neg":
            return cells.arithmetic(type_, signed, words, width)
        case "$mux":
            return cells.choose(pins["S"][0], pins["B"], pins["A"])
        case "$pmux":
            found = pins["A"]
            for k, select in reversed(list(enumerate(pins["S"]))):
                found = cells.choose(select, pins["B"][k * width : (k + 1) * width], found, str(k))
            return found
        case "$and" | "$or" | "$xor":
            return cells.gate(type_[1:], *wide(width))
        case "$xnor":
            return tuple(map(cells.invert, cells.gate("xor", *wide(width))))
        case "$not" | "$pos":
            return tuple(cells.invert(bit) if type_ == "$not" else bit for bit in wide(width)[0])
        case "$xor3" | "$majority":
            return cells.adder(wide(width))[type_ == "$majority"]
        case "$shl" | "$sshl" | "$shr" | "$sshr":
            (a,) = [(*w, *((w[-1] if signed else 0,) * (width - len(w)))) for w in words[:1]]
            return cells.shift(type_, a, pins["B"], (width, signed, bool(n.get("B_SIGNED"))))
        case "$reduce_or" | "$reduce_bool" | "$logic_not":
            (bits,) = words
            if type_ == "$logic_not" and cells.is_short(bits) and None not in bits:
                bits = cells.case_of(bits)
            one = cells.any(bits)
            one = cells.invert(one) if type_ == "$logic_not" else one
        case "$reduce_and":
            one = cells.every(words[0])
        case "$reduce_xor":
            bits = words[0]
            one = None
            if not {*map(type, bits)} - {int}:
                one = sum(map(bool, bits)) & 1
            elif None not in bits:
                (one,) = cells.function(1, "parity", bits)
        case "$logic_and" | "$logic_or":
            join = cells.any if type_ == "$logic_or" else cells.every
            one = join(tuple(map(cells.any, words)))
        case "$lt" | "$le" | "$gt" | "$ge":
            one = cells.compare(type_, signed, *wide(max(map(len, words))))
        case "$eq" | "$ne" | "$eqx" | "$nex":
            one = cells.differ(*wide(max(map(len, words))))
            one = one if type_ in ("$ne", "$nex") else cells.invert(one)
        case _:
            raise RefusedError(f"there is no rule for {type_}")
    return one, *(0,) * (width - 1)
