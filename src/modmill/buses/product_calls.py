# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""TOP_calls.h and TOP_calls.c of a multiplier: the product of canonical numbers as a call in C99.

A multiplier gives a b factor, not always below the modulus. In C multiples of the modulus are subtracted, and where the
factor is not 1, a second product by factor^-2 removes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from modmill.buses.calls import FIRST_ERROR, shown, words_for
from modmill.buses.power_calls import Loading, loading
from modmill.contract import Binary, Digits, Form
from modmill.design import DesignInstance
from modmill.numbers.shown import shortened
from modmill.twice import square, square_words

ERRORS = (
    ("RANGE", "a number is out of range"),
    ("RESULT", "the result of the device is not below the bound of its contract"),
)
"""Names and meanings of the errors of the calls."""


@dataclass(frozen=True)
class Fields:
    """A number at a port: ``count`` fields of ``size`` bits, field k with weight 2^(``step`` k)."""

    step: int
    size: int
    count: int

    @property
    def end(self) -> int:
        """Exclusive bound of the numbers that the fields hold without lending."""
        return 1 << self.step * (self.count - 1) + self.size


@dataclass(frozen=True)
class ProductCalls:
    """What the calls need to know of a multiplier.

    ``p``, ``square``: its modulus, and factor^-2 modulo p; both 0 if the modulus is loaded. ``bits``: of the longest
    modulus. ``single``: whether the factor is 1. ``doublings``: results are below 2^doublings times the modulus.
    ``operand``, ``result``: numbers at its ports. ``loading``: how its modulus is loaded, ``key_bits``: bits of a word
    of stream k, ``squares``: words of factor^-2 behind those of the modulus. ``load_words``: words of the message.
    """

    p: int
    square: int
    bits: int
    single: bool
    doublings: int
    operand: Fields
    result: Fields
    loading: Loading | None = None
    key_bits: int = 0
    squares: int = 0
    load_words: int = 0

    TEMPLATES: ClassVar[tuple[str, str]] = ("products.h.j2", "products.c.j2")
    ABOUT: ClassVar[str] = "products of numbers below the modulus"
    enters: ClassVar[bool] = False
    messages: ClassVar[bool] = False

    @property
    def multiplies(self) -> bool:
        """Whether words are multiplied in C."""
        return self.loading is not None

    @property
    def adds(self) -> bool:
        """Whether numbers are added in C."""
        return bool(self.doublings or self.digits or self.loading)

    @property
    def digits(self) -> bool:
        """Whether a number has several fields."""
        return self.operand.count > 1 or self.result.count > 1

    @property
    def modulus(self) -> str:
        """The modulus in a comment."""
        return shortened(self.p)

    @property
    def words(self) -> int:
        """Words of a modulus."""
        return words_for(self.bits)

    @property
    def key_words(self) -> int:
        """Words of a word of stream k."""
        return words_for(self.key_bits)

    @property
    def operand_words(self) -> int:
        """Words of a port i_a."""
        return words_for(self.operand.size * self.operand.count)

    @property
    def result_words(self) -> int:
        """Words of the port o_r."""
        return words_for(self.result.size * self.result.count)

    @property
    def long(self) -> int:
        """Words of the longest number: a result, or the largest multiple of the modulus; no sum of fields exceeds
        twice the highest field."""
        return words_for(max(self.result.end.bit_length(), self.bits + self.doublings))

    @property
    def most_words(self) -> int:
        """Words of the longest message or answer."""
        return max(2 * self.operand_words, self.result_words, self.load_words)

    def context(self) -> dict[str, Any]:
        """What the templates need besides the names of the device."""
        return {"c": self, "errors": ERRORS, "first_error": FIRST_ERROR, "number": shown}


def product_calls(fitted: DesignInstance, io: str) -> ProductCalls | None:
    """The calls of a multiplier in one form of `IO`; None for numbers in residues, for one operand, and for a loaded
    modulus whose words C cannot make."""
    contract = fitted.contract(io)
    operand, result = _fields(contract.operand), _fields(contract.result)
    others = [fitted, *fitted.others()]
    if operand is None or result is None or contract.operands == 1 or max(x.p for x in others) > operand.end:
        return None
    bound = max(x.contract(io).result_bound for x in others)
    doublings = next(k for k in range(bound.numerator.bit_length() + 1) if bound <= 1 << k)
    bits = contract.p.bit_length()
    if contract.load is None:
        return ProductCalls(contract.p, square(contract), bits, contract.factor == 1, doublings, operand, result)
    twice = io == "plain" and fitted.twice
    once = [x.contract("montgomery" if twice else io) for x in others]
    found = loading(once, bits)
    if found is None:
        return None
    width, squares = contract.load.width, len(square_words(once[0])) if twice else 0
    size = words_for(width) * len(contract.load.words)
    single = twice or not found.radix
    return ProductCalls(0, 0, bits, single, doublings, operand, result, found, width, squares, size)


def _fields(form: Form) -> Fields | None:
    """The fields of a form; None for residues."""
    if isinstance(form, Binary):
        return Fields(form.width, form.width, 1)
    return Fields(form.r, form.r + 2, form.d) if isinstance(form, Digits) else None
