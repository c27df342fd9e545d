# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Tables of multiples of the modulus: memories whose word at address z is bits s, s + 1, ... of (c z mod 2^n) p.

The table of a Montgomery multiplication whose quotient is looked up (K. Nakano et al., IPDPS Workshops, 2009, Section
5). A word of it is a product and floors, as if a multiplier had made it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from modmill.proofs.arithmetic.word_rules import Bits, Words, numbers
from modmill.proofs.netlist import Cell, Netlist

_TRIED = 8
"""Words that are compared before all are."""


@dataclass(frozen=True)
class Multiples:
    """The word at address z is bits ``shift``, ``shift`` + 1, ... of (``factor`` z mod 2^``bits``) ``modulus``."""

    modulus: int
    factor: int
    bits: int
    shift: int

    def number(self, z: int, width: int) -> int:
        """The word of ``width`` bits at an address."""
        return ((self.factor * z & (1 << self.bits) - 1) * self.modulus >> self.shift) & (1 << width) - 1

    def read(self, words: Words, address: Bits, width: int) -> Bits:
        """The bits of the word at an address that is not constant."""
        make = words.integers
        product = make.sum([(self.factor, words.integer(address))])
        multiple = words.integer(tuple((product, k) for k in range(self.bits)))
        found = make.sum([(self.modulus, multiple)])
        return tuple((found, self.shift + k) for k in range(width))


@lru_cache(maxsize=4)
def tables(net: Netlist, modulus: int) -> dict[str, Multiples]:
    """The memories of a netlist with multiples of an odd modulus; none for 0. Where several shifts describe the words,
    it is the one that goes on where the table before it ends, else the least."""
    found, end = dict[str, Multiples](), 0
    memories = [(name, cell) for name, cell in net.cells.items() if cell["type"] == "$mem_v2"] if modulus & 1 else []
    for name, cell in sorted(memories):
        n, words = numbers(cell["parameters"]), _contents(cell)
        bits = n["ABITS"]
        if n["OFFSET"] or not words or len(words) != 1 << bits:
            continue
        factor = -pow(modulus, -1, 1 << bits) % (1 << bits)
        for shift in (end, *range(modulus.bit_length() + bits)):
            table = Multiples(modulus, factor, bits, shift)
            if any(words) and all(
                words[z] == table.number(z, n["WIDTH"]) for part in (range(_TRIED), range(len(words))) for z in part
                if z < len(words)
            ):
                found[name] = table
                end = shift + n["WIDTH"]
                break
    return found


def _contents(cell: Cell) -> list[int]:
    """The words of a memory; empty if bits are not known."""
    text, width = cell["parameters"]["INIT"][::-1], numbers(cell["parameters"])["WIDTH"]
    if set(text) - {"0", "1"} or len(text) % width:
        return []
    return [int(text[k : k + width][::-1], 2) for k in range(0, len(text), width)]
