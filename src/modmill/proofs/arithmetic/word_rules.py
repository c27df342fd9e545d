# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What the cells of a netlist make of bits that are constants, unknown, or bits of integer expressions.

What depends on an unknown bit is unknown. A function that has no expression is a new number of which only the range is
known, the same one for the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from modmill.proofs.arithmetic.integers import Integers
from modmill.proofs.arithmetic.polynomials import Expression
from modmill.proofs.arithmetic.reasons import Sum, parts
from modmill.proofs.arithmetic.tables import form_of, has_form

Bit = int | None | tuple[Expression, int]
"""A constant, an unknown bit, or a bit of an expression (in two's complement without end)."""
Bits = tuple[Bit, ...]
Pins = Mapping[str, Bits]
"""The bits at the inputs of a cell."""
_SHIFTS = {"$shl", "$shr", "$sshl", "$sshr"}
_MOST_PRODUCTS = 300
"""Products of terms above which a word that is chosen by a bit stays one number."""
_MOST_SHORT = 5
"""Most terms of a bit that is multiplied by another."""
_MOST_DECIDED, _MOST_OF_RESIDUES = 4, 6
"""Most bits of a word whose value is decided when it is compared with a constant; where numbers are residues."""
_MOST_TERMS = 20_000
"""Terms of an expression above which a word is replaced by a new number."""


@dataclass
class WordCell:
    """A cell: nets of its ports, and its parameters, also as ``number`` where they are binary numbers. ``order``: after
    the cells that drive it."""

    name: str
    type: str
    inputs: Mapping[str, list[Any]]
    output: list[Any]
    parameters: Mapping[str, str]
    evaluate: Rule
    order: int = 0
    number: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.number = numbers(self.parameters)


class Words:
    """Words of bits as numbers, and the rules of cells. ``functions``: numbers for what has no expression; those who
    share them get the same. ``decide``: says of a bit that chooses between words which value it has, or None; it is
    told whether the choice is linear as it is."""

    def __init__(self, integers: Integers, functions: dict[Hashable, Expression] | None = None) -> None:
        self.integers = integers
        self._functions = {} if functions is None else functions
        self.decide: Callable[[Expression, int, bool], int | None] = lambda *_: None
        self.named: dict[int, Expression] | None = None
        """What words are that memories store and multipliers take, by the unknown numbers that stand for them; None if
        no word gets one."""
        self.modulus = 0
        """The number of which tables may have multiples; 0 for none."""
        self._name_of: dict[Expression, Bits] = {}
        self._any_of: dict[Bit, Bits] = {}
        self._inverse: dict[Expression, Expression] = {}
        self._bits_of: dict[tuple[str, frozenset[Bit]], Bit] = {}

    # ---- bits and numbers

    def integer(self, bits: Bits, signed: bool = False) -> Expression:
        """The number that the bits are; with ``signed`` in two's complement."""
        found: list[tuple[int, Expression]] = []
        k, make = 0, self.integers
        if signed and self.named is not None and bits and isinstance(top := bits[-1], tuple):
            make.extend(*top)
        while k < len(bits):
            bit = bits[k]
            sign = -1 if signed and k == len(bits) - 1 else 1
            if bit is None:
                end = k + 1
                found.append((sign << k, make.atom("unknown", 0, 1)))
            elif isinstance(bit, int):
                end = k + 1
                if bit:
                    found.append((sign << k, make.number(1)))
            else:
                word, at = bit
                end = k + 1
                last = len(bits) - (1 if signed else 0)
                while end < last and bits[end] == (word, at + end - k):
                    end += 1
                found.append((sign << k, self._slice(word, at, at + end - k)))
            k = end
        return make.sum(found)

    def _slice(self, word: Expression, low: int, high: int) -> Expression:
        """Bits ``low`` to ``high`` - 1 of a word as a number."""
        make = self.integers
        top = make.floor(word, high)
        found = make.sum([(1, make.floor(word, low)), (-(1 << high - low), top)])
        if low and top.constant is None:  # the bits below have a closer range if a carry above them is no part of it
            make.floor(make.sum([(1, word), (-1 << high, top)]), low)

        def why(sign: int) -> Sum:
            above = make.lemma(word, high)
            below = [make.lemma(word, low)] if low else []
            if sign > 0:
                return Sum(1 << low, parts([(1, above.most), *((1, one.least) for one in below)]))
            return Sum(1 << low, parts([(1, above.least), *((1, one.most) for one in below)]))

        return make.within(found, 0, (1 << high - low) - 1, why)

    def word(self, value: Expression, width: int) -> Bits:
        """The low bits of a number."""
        constant = value.constant
        if constant is not None:
            return tuple(constant >> k & 1 for k in range(width))
        if len(value.terms) > _MOST_TERMS:
            return self.unknown(width, "bits", value)
        return tuple((value, k) for k in range(width))

    def unknown(self, width: int, *of: Hashable) -> Bits:
        """A new number; the same one again for the same function ``of`` the same bits."""
        found = self._functions.get((width, of))
        if found is None:
            found = self._functions[width, of] = self.integers.atom("unknown", 0, (1 << width) - 1)
        return self.word(found, width)

    def looked_up(self, number: int, address: Bits, words: Sequence[Bits], first: int) -> Bits:
        """The word at an address, not all of whose bits are constants, of memory ``number``, whose lowest address is
        ``first``: bits of a multiple of the modulus if all words are, else the same new number for the same address
        and words."""
        width, make = len(words[0]), self.integers
        known = first == 0 and len(words) == 1 << len(address) and all(map(constant, words))
        values = list(map(value_of, words)) if known and self.modulus else []
        z = self.integer(address)
        form = make.choose("table", z, number, lambda: form_of(values, width, self.modulus) if values else None)
        if not values or form is None or not has_form(values, width, form):
            return self.unknown(width, "read", address, tuple(words))
        factor, multiple, shift = form
        k = self._slice(make.sum([(factor, z)]), 0, len(address))
        found = make.product(k, make.number(multiple))
        return tuple((found, shift + at) for at in range(width))

    def name(self, bits: Bits, terms: int) -> Bits:
        """The bits of an unknown number in place of a word of more than some ``terms``, if names are wanted."""
        if self.named is None or None in bits or constant(bits) or len((x := self.integer(bits)).terms) <= terms:
            return bits
        if x not in self._name_of:
            width = max(k for k, bit in enumerate(bits, 1) if bit != 0)
            number = self.integers.atom("named", 0, (1 << width) - 1)
            self.named[len(self.integers.atoms) - 1] = x
            self._name_of[x] = tuple((number, k) for k in range(width))
        found = self._name_of[x]
        return (*found, *(0,) * (len(bits) - len(found)))

    def invert(self, bit: Bit) -> Bit:
        """The other value of a bit."""
        if bit is None:
            return None
        if isinstance(bit, int):
            return 1 - bit
        word, k = bit
        found = self._inverse.get(word)
        if found is None:
            found = self._inverse[word] = self.integers.sum([(-1, word), (-1, self.integers.number(1))])
        return found, k

    def choose(self, select: Bit, one: Bits, zero: Bits) -> Bits:
        """``one`` if ``select`` is 1, else ``zero``."""
        if select == 1 and isinstance(select, int):
            return one
        if select == 0 and isinstance(select, int):
            return zero
        if one == zero:
            return one
        if select is None or None in one or None in zero:
            return tuple(a if a == b else None for a, b in zip(one, zero, strict=True))
        make = self.integers
        a, b = self.integer(one), self.integer(zero)
        apart = make.sum([(1, a), (-1, b)])
        linear = apart.constant is not None or (isinstance(select, tuple) and make.is_free(select[0]))
        if len(one) > 1 and isinstance(select, tuple) and (chosen := self.decide(*select, linear)) is not None:
            return one if chosen else zero
        return self.word(make.sum([(1, b), (1, make.product(self.integer((select,)), apart))]), len(one))

    # ---- rules of cells

    def _signed(self, cell: WordCell) -> bool:
        """Whether the operands are signed: both must be, but the amount of a shift does not count."""
        counted = "A" if cell.type in _SHIFTS else "ABC"
        return all(cell.number.get(f"{port}_SIGNED") for port in counted if port in cell.inputs)

    def _operand(self, cell: WordCell, pins: Pins, port: str, width: int) -> Bits:
        """An operand, extended or cut to ``width``."""
        bits = pins[port]
        fill: Bit = bits[-1] if bits and self._signed(cell) else 0
        return (*bits[:width], *(fill,) * (width - len(bits)))

    def _arithmetic(
        self, cell: WordCell, words: Sequence[Bits], combine: Callable[..., Expression], width: int
    ) -> Bits:  # fmt: skip
        """What is made of words: ``width`` bits of the number that ``combine`` makes of their numbers."""
        signed = self._signed(cell)
        known = min([width, *(k for bits in words for k, bit in enumerate(bits[:width]) if bit is None)])
        if known == 0:
            return (None,) * width
        values = [self.integer(bits[:known], signed and len(bits) <= known) for bits in words]
        found = combine(*values)
        if self.integers.choose("modulo", found, known, lambda: not self._within(found, known)):
            found = self.integers.modulo(found, known)
        return (*self.word(found, known), *(None,) * (width - known))

    def _within(self, value: Expression, width: int) -> bool:
        end = 1 << width
        if value.low >= -end and value.high < end:
            return True
        low, high = self.integers.bounds(value)
        return low >= -end and high < end

    def _add(self, cell: WordCell, pins: Pins) -> Bits:
        """A sum. If the lowest bit of a word is 1 and that of the other one says whether something is not 0, it is a
        carry into the sum of the bits above."""
        words, width = [pins["A"], pins["B"]], len(cell.output)

        def total(*values: Expression) -> Expression:
            return self.integers.sum((1, x) for x in values)

        for one, other in (words, words[::-1]) if width > 1 and not self._signed(cell) else ():
            if len(one) > 1 < len(other) and one[0] == 1 and other[0] in self._any_of:
                above = [words[0][1:], words[1][1:], other[:1]]
                return self.invert(other[0]), *self._arithmetic(cell, above, total, width - 1)
        return self._arithmetic(cell, words, total, width)

    def _sub(self, cell: WordCell, pins: Pins) -> Bits:
        words = [pins["A"], pins["B"]]
        return self._arithmetic(cell, words, lambda a, b: self.integers.sum([(1, a), (-1, b)]), len(cell.output))

    def _neg(self, cell: WordCell, pins: Pins) -> Bits:
        return self._arithmetic(cell, [pins["A"]], lambda a: self.integers.sum([(-1, a)]), len(cell.output))

    def _mul(self, cell: WordCell, pins: Pins) -> Bits:
        operands = [pins[p] for p in ("A", "B")]
        if any(all(bit == 0 for bit in bits) for bits in operands):
            return (0,) * len(cell.output)
        words = [self.name(bits, 1) for bits in operands]
        return self._arithmetic(cell, words, self.integers.product, len(cell.output))

    def _mux(self, cell: WordCell, pins: Pins) -> Bits:
        (select,) = pins["S"]
        return self.choose(select, pins["B"], pins["A"])

    def _pmux(self, cell: WordCell, pins: Pins) -> Bits:
        found, width = pins["A"], len(cell.output)
        choices, selects = pins["B"], pins["S"]
        for k in reversed(range(len(selects))):
            found = self.choose(selects[k], choices[k * width : (k + 1) * width], found)
        return found

    def _bitwise(self, cell: WordCell, pins: Pins, rule: Callable[[Bit, Bit], Bit | str]) -> Bits:
        width = len(cell.output)
        a, b = self._operand(cell, pins, "A", width), self._operand(cell, pins, "B", width)
        found: list[Bit] = []
        k = 0
        while k < width:
            simple = rule(a[k], b[k])
            if not isinstance(simple, str):
                found.append(simple)
                k += 1
                continue
            end = k + 1
            while end < width and isinstance(rule(a[end], b[end]), str):
                end += 1
            found += self._both(simple, a[k:end], b[k:end])
            k = end
        return tuple(found)

    def _both(self, what: str, a: Bits, b: Bits, *, added: bool = False) -> Bits:
        """The gate of two words without constants: a product if one of them repeats a bit and they are not ``added``,
        else the sum of both and a multiple of the word with ones where both have them."""
        make = self.integers
        width = len(a)
        if width == 1 and what != "xor" and not {*a, *b}.isdisjoint(self._any_of):
            return (
                self._truth((*a, *b))
                if what == "or"
                else self.invert(self._truth((self.invert(a[0]), self.invert(b[0])))),
            )
        for x, y in ((a, b), (b, a)) if width > 1 and not added else ():
            if len(set(x)) == 1:
                s, word = self.integer(x[:1]), self.integer(y)
                long = len(s.terms) * len(word.terms) > _MOST_PRODUCTS
                if make.choose("alone", make.sum([(1, word), (1 << width, s)]), width, lambda: long):  # noqa: B023
                    break
                full = make.number((1 << width) - 1)
                both = make.product(s, word)
                if what == "and":
                    return self.word(both, width)
                every = make.product(s, full)
                factor = 1 if what == "or" else 2
                return self.word(make.sum([(1, every), (1, word), (-factor, both)]), width)
        both = self.integer(self._shared("all", (a, b)))
        if what == "and":
            return self.word(both, width)
        found = make.sum([(1, self.integer(a)), (1, self.integer(b)), (-1 if what == "or" else -2, both)])
        return self.word(make.within(found, 0, (1 << width) - 1), width)

    def _shared(self, function: str, words: Sequence[Bits]) -> Bits:
        """A symmetric function of the bits at each place of the words: the same number for the same bits."""
        keys = [(function, frozenset(bits)) for bits in zip(*words, strict=True)]
        start = 0
        while start < len(keys):
            end = start
            while end < len(keys) and keys[end] not in self._bits_of:
                end += 1
            if end > start:
                made = self._product(keys[start][1]) if end == start + 1 and function == "all" else ()
                made = made or self.unknown(end - start, function, tuple(keys[start:end]))
                self._bits_of.update(zip(keys[start:end], made, strict=True))
            start = end + 1
        return tuple(map(self._bits_of.__getitem__, keys))

    def _product(self, bits: frozenset[Bit]) -> Bits:
        """The product of two bits of short expressions, longer ones for carries; nothing for others."""
        values = [self.integer((bit,)) for bit in bits]
        carries = all(isinstance(bit, tuple) and bit[0].low >= 0 and bit[0].high >> bit[1] <= 1 for bit in bits)
        long = max(len(value.terms) for value in values) > (_MOST_SHORT if carries else 2)
        if self.integers.choose("number", self.integers.sum((1, value) for value in values), 1, lambda: long):
            return ()
        return self.word(self.integers.product(*values), 1)

    def full_adder(self, words: Sequence[Bits]) -> tuple[Bits, Bits]:
        """The sum bits and the carry bits of three words: those once and these twice are the sum of the words."""
        places = list(zip(*words, strict=True))
        kinds = [tuple(bit if isinstance(bit, int) else -1 for bit in bits) for bits in places]
        sums, carries = list[Bit](), list[Bit]()
        start = 0
        while start < len(places):
            end = start + 1
            found = self._add_bits(places[start])
            if found is None:
                while end < len(places) and kinds[end] == kinds[start] and self._add_bits(places[end]) is None:
                    end += 1
                free = [word[start:end] for word, kind in zip(words, kinds[start], strict=True) if kind < 0]
                found = self._add_words(free, 1 in kinds[start])
            sums += found[0]
            carries += found[1]
            start = end
        return tuple(sums), tuple(carries)

    def _add_bits(self, bits: Sequence[Bit]) -> tuple[Bits, Bits] | None:
        """Sum and carry of three bits; None if at least two of them are different bits of expressions."""
        free, ones = [bit for bit in bits if not isinstance(bit, int)], bits.count(1)
        if len(free) < 2:
            if not free:
                return (ones & 1,), (ones >> 1,)
            return (self.invert(free[0]) if ones == 1 else free[0],), (free[0] if ones == 1 else ones >> 1,)
        if None in free:
            return (None,), (None,)
        for one, other, rest in ((0, 1, -1), (0, 2, 1), (1, 2, 0))[: 1 if len(free) == 2 else 3]:
            if free[one] == free[other]:
                return (free[rest] if len(free) == 3 else ones,), (free[one],)
        return None

    def _add_words(self, free: Sequence[Bits], one: bool) -> tuple[Bits, Bits]:
        """Sum and carry bits of two or three words without constants, with ones in place of a third one if ``one``."""
        if len(free) == 2:
            sums, carries = (self._both(what, *free, added=True) for what in ("xor", "or" if one else "and"))
            return tuple(map(self.invert, sums)) if one else sums, carries
        carries, make = self._shared("majority", free), self.integers
        total = make.sum([*((1, self.integer(word)) for word in free), (-2, self.integer(carries))])
        width = len(carries)
        return self.word(make.within(total, 0, (1 << width) - 1), width), carries

    def _full_adder(self, cell: WordCell, pins: Pins) -> Bits:
        width = len(cell.output)
        sums, carries = self.full_adder([self._operand(cell, pins, port, width) for port in "ABC"])
        return sums if cell.type == "$xor3" else carries

    def _and(self, cell: WordCell, pins: Pins) -> Bits:
        def rule(a: Bit, b: Bit) -> Bit | str:
            for x, y in ((a, b), (b, a)):
                if isinstance(x, int):
                    return y if x else 0
            return a if a == b or a is None else b if b is None else "and"

        return self._bitwise(cell, pins, rule)

    def _or(self, cell: WordCell, pins: Pins) -> Bits:
        def rule(a: Bit, b: Bit) -> Bit | str:
            for x, y in ((a, b), (b, a)):
                if isinstance(x, int):
                    return 1 if x else y
            return a if a == b or a is None else b if b is None else "or"

        return self._bitwise(cell, pins, rule)

    def _xor(self, cell: WordCell, pins: Pins) -> Bits:
        def rule(a: Bit, b: Bit) -> Bit | str:
            if a is None or b is None:
                return None
            for x, y in ((a, b), (b, a)):
                if isinstance(x, int):
                    return self.invert(y) if x else y
            return 0 if a == b else "xor"

        return self._bitwise(cell, pins, rule)

    def _xnor(self, cell: WordCell, pins: Pins) -> Bits:
        return tuple(self.invert(bit) for bit in self._xor(cell, pins))

    def _not(self, cell: WordCell, pins: Pins) -> Bits:
        return tuple(self.invert(bit) for bit in self._operand(cell, pins, "A", len(cell.output)))

    def _pos(self, cell: WordCell, pins: Pins) -> Bits:
        return self._operand(cell, pins, "A", len(cell.output))

    def _one(self, cell: WordCell, bit: Bit) -> Bits:
        return (bit, *(0,) * (len(cell.output) - 1))

    def _truth(self, bits: Bits) -> Bit:
        """Whether a bit is 1."""
        if any(bit == 1 and isinstance(bit, int) for bit in bits):
            return 1
        rest = tuple(bit for bit in bits if bit != 0 or not isinstance(bit, int))
        if not rest:
            return 0
        if None in rest:
            return None
        if len(rest) == 1:
            return rest[0]
        make = self.integers
        bits_ = {b for bit in rest for b in self._any_of.get(bit, (bit,)) if isinstance(b, tuple)}
        every = sorted(bits_, key=lambda b: (sorted(b[0].terms.items()), b[1]))
        below = make.floor(make.sum([(1, self.integer(tuple(every))), (-1, make.number(1))]), len(every))
        found = self.word(make.sum([(1, make.number(1)), (1, below)]), 1)[0]
        self._any_of[found] = tuple(every)
        return found

    def _reduce_or(self, cell: WordCell, pins: Pins) -> Bits:
        return self._one(cell, self._truth(pins["A"]))

    def _logic_not(self, cell: WordCell, pins: Pins) -> Bits:
        bits = pins["A"]
        if self.is_short(bits) and None not in bits:
            bits = self.case_of(bits)
        return self._one(cell, self.invert(self._truth(bits)))

    def _reduce_and(self, cell: WordCell, pins: Pins) -> Bits:
        return self._one(cell, self.invert(self._truth(tuple(map(self.invert, pins["A"])))))

    def _reduce_xor(self, cell: WordCell, pins: Pins) -> Bits:
        bits = pins["A"]
        if constant(bits):
            return self._one(cell, value_of(bits).bit_count() & 1)
        return self._one(cell, None if None in bits else self.unknown(1, "parity", bits)[0])

    def _logic(self, cell: WordCell, pins: Pins) -> Bits:
        a, b = (self._truth(pins[p]) for p in "AB")
        if cell.type == "$logic_or":
            return self._one(cell, self._truth((a, b)))
        return self._one(cell, self.invert(self._truth((self.invert(a), self.invert(b)))))

    def _compare(self, cell: WordCell, pins: Pins) -> Bits:
        width = max(len(cell.inputs["A"]), len(cell.inputs["B"]))
        a, b = self._operand(cell, pins, "A", width), self._operand(cell, pins, "B", width)
        signed, type_ = self._signed(cell), cell.type
        if type_ in ("$eq", "$ne", "$eqx", "$nex"):
            differ: Bit = self._differ(a, b)
            return self._one(cell, differ if type_ in ("$ne", "$nex") else self.invert(differ))
        if constant(a) and constant(b):
            u, v = value_of(a, signed), value_of(b, signed)
            return self._one(cell, int({"$lt": u < v, "$le": u <= v, "$gt": u > v, "$ge": u >= v}[type_]))
        if None in a or None in b:
            return self._one(cell, None)
        make = self.integers
        x, y = self.integer(a, signed), self.integer(b, signed)
        if type_ in ("$gt", "$le"):
            x, y = y, x
        less = make.floor(make.sum([(1, x), (-1, y)]), width)  # -1 if x < y, else 0
        bit = self.word(make.sum([(-1, less)]), 1)[0]
        return self._one(cell, bit if type_ in ("$lt", "$gt") else self.invert(bit))

    def _differ(self, a: Bits, b: Bits) -> Bit:
        if constant(a) and constant(b):
            return int(a != b)
        if any(x != y for x, y in zip(a, b, strict=True) if isinstance(x, int) and isinstance(y, int)):
            return 1
        if a == b and None not in a:
            return 0
        if None in a or None in b:
            return None
        make = self.integers
        if constant(b) and self.is_short(a) and constant(a := self.case_of(a)):
            return int(a != b)
        apart = make.sum([(1, self.integer(a)), (-1, self.integer(b))])
        if make.choose("apart", apart, 0, lambda: apart.low > 0 or apart.high < 0):
            return 1
        if all(y == 0 for y in b if isinstance(y, int)) and constant(b):
            return self._truth(a)
        return self.unknown(1, "differ", a, b)[0]

    def is_short(self, bits: Bits) -> bool:
        """Whether a word has its value in a case where it is compared with a constant."""
        return 1 < len(bits) <= (_MOST_DECIDED if self.named is None else _MOST_OF_RESIDUES)

    def case_of(self, bits: Bits) -> Bits:
        """Bits of a short word, the highest ones first, with their values in this case."""
        found = list(bits)
        for k in reversed(range(len(found))):
            bit = found[k]
            if isinstance(bit, tuple):
                value = self.decide(*bit, False)
                found[k] = self.word(self.integer((bit,)), 1)[0] if value is None else value
        return tuple(found)

    def _shift(self, cell: WordCell, pins: Pins) -> Bits:
        amount = pins["B"]
        width = len(cell.output)
        a = self._operand(cell, pins, "A", max(width, len(cell.inputs["A"])))
        if not constant(amount):
            return (None,) * width if None in amount or None in a else self.unknown(width, cell.type, a, amount)
        by = value_of(amount, bool(cell.number.get("B_SIGNED")))
        if cell.type in ("$shl", "$sshl"):
            by = -by
        fill: Bit = a[-1] if cell.type == "$sshr" and self._signed(cell) else 0
        return tuple(
            a[k + by] if 0 <= k + by < len(a) else 0 if k + by < 0 else fill for k in range(width)
        )  # fmt: skip


def numbers(parameters: Mapping[str, str]) -> dict[str, int]:
    """The parameters that are binary numbers."""
    return {name: int(text, 2) for name, text in parameters.items() if text and set(text) <= {"0", "1"}}


def constant(bits: Bits) -> bool:
    """Whether all bits are 0 or 1."""
    return all(isinstance(bit, int) for bit in bits)


def value_of(bits: Bits, signed: bool = False) -> int:
    """The number of constant bits."""
    value = sum(bit << k for k, bit in enumerate(bits) if isinstance(bit, int))
    return value - (1 << len(bits)) if signed and bits and bits[-1] else value


Rule = Callable[[Words, WordCell, Pins], Bits]
RULES: dict[str, Rule] = {
    "$add": Words._add, "$sub": Words._sub, "$neg": Words._neg, "$mul": Words._mul, "$mux": Words._mux,
    "$pmux": Words._pmux, "$and": Words._and, "$or": Words._or, "$xor": Words._xor, "$xnor": Words._xnor,
    "$not": Words._not, "$pos": Words._pos, "$reduce_or": Words._reduce_or,
    "$reduce_bool": Words._reduce_or, "$reduce_and": Words._reduce_and, "$reduce_xor": Words._reduce_xor,
    "$logic_not": Words._logic_not, "$logic_and": Words._logic, "$logic_or": Words._logic,
    **dict.fromkeys(_SHIFTS, Words._shift), **dict.fromkeys(("$xor3", "$majority"), Words._full_adder),
    **dict.fromkeys(("$lt", "$le", "$gt", "$ge", "$eq", "$ne", "$eqx", "$nex"), Words._compare),
}  # fmt: skip
"""The rule of each type of cell."""
