# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What an address of the program memory and of the digits leads to."""

from __future__ import annotations

from collections.abc import Iterator

from modmill.cores.proofs.sequence.rows import POINTER
from modmill.cores.proofs.surroundings import DIGIT_WORD, DIGITS_AT, FOUND, INDEX, Row, Surroundings, number
from modmill.engines.machine.program_memory import BANK, DIGITS, ProgramMemory


def tables(around: Surroundings) -> Iterator[str]:
    """What an address of the table and of the digits leads to."""
    m, lay = around.m, around.layout
    width = len(m.named(POINTER))
    for kind, bank in sorted(m.banks):
        if kind == "bank" and bank * BANK < len(lay.table[0]):
            yield from _read(around, POINTER, FOUND, kind, bank, bank * BANK, min(width, BANK.bit_length() - 1))
    if ("digits", 0) not in m.banks:
        low = (lay.digit_depth - 1).bit_length()
        made = ProgramMemory(lay)
        yield from _read(around, DIGITS_AT, DIGIT_WORD, "bank", made.digits_bank, 0, low, made.digits_first)
        return
    low = BANK.bit_length() - 1
    for kind, bank in sorted(m.banks):
        if kind == "digits":
            used = min(BANK, lay.digit_depth - bank * BANK)
            yield from _read(
                around, DIGITS_AT, DIGIT_WORD, kind, bank, bank * BANK, min(low, (max(16, used) - 1).bit_length())
            )


def _read(
    around: Surroundings, register: str, shown: str, kind: str, bank: int, place: int, low: int, first: int = 0
) -> Iterator[str]:
    """An address with unknown low bits, in a register, and the word after DIGITS cycles."""
    m = around.m
    around.begin(Row())
    at = 0
    if register == DIGITS_AT and not m.named(register):
        register, at = INDEX, (around.layout.per_word - 1).bit_length()
    width = len(m.named(register)) - at
    free = m.words.unknown(min(low, width), "address", register)
    address = (*free, *number(place >> low, width - len(free)))[:width]
    if register == DIGITS_AT:
        m.put(INDEX, number(0, len(m.named(INDEX))))
    m.put(register, address, at)
    name = m.banks[kind, bank]
    wanted = m.words.integer((*free, *number(first >> len(free), m.address_bits(name))))
    at_ports = m.addresses(name)
    for t in range(DIGITS):
        around.cycle(t)
        at_ports += m.addresses(name)
    around.prepare(DIGITS)
    m.settle()
    reached = [m.word_of(name, address) for address in at_ports if m.equal(address, wanted)]
    if not any(m.equal(m.seen(shown), m.words.integer(word[: len(m.seen(shown))])) for word in reached):
        yield f"{shown} is not the word of {kind} {bank} at the address"
