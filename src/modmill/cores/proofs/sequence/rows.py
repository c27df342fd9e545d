# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What the parts of the proof of the order have in common: rows of which something is known, and names."""

from __future__ import annotations

from collections.abc import Iterator

from modmill.cores.proofs.surroundings import (
    BASE,
    DIGITS_AT,
    FOUND,
    INDEX,
    LEFT,
    PROGRAMME,
    SLOTS_AT,
    THREAD,
    Surroundings,
    number,
)
from modmill.engines.machine.program_memory import table_shapes
from modmill.proofs.arithmetic.polynomials import Expression
from modmill.proofs.arithmetic.word_rules import Bit, Bits

IDLE_RUN, _ALIGN, _RUN, DRAIN, MARGIN = range(5)
"""Codes of the states of a run, in the order of `sequencer`."""
FIRST_PLACE, END_PLACE, POINTER = (f"sequencer.{name}" for name in ("first_place", "end_place", "at"))


def first_entry(around: Surroundings, **known: Bits) -> Bits:
    """The first entry of a row, unknown but for some fields."""
    shape = next(iter(table_shapes(around.layout).values()))
    bits: list[Bit] = [None] * len(around.m.named(FOUND))
    for name, values in known.items():
        field = shape[name]
        bits[field.offset : field.offset + field.width] = values[: field.width]
    return tuple(bits)


def slot(around: Surroundings, thread: int) -> dict[str, Bits]:
    """Registers of a thread, of an unknown row."""
    m, lay = around.m, around.layout
    found = {name: m.free(name) for name in (BASE, INDEX, LEFT)}
    for name, value in ((THREAD, thread), (DIGITS_AT, thread * lay.stride), (SLOTS_AT, thread * lay.slots)):
        found[name] = number(value, len(m.named(name)))
    return found | {PROGRAMME: m.free(PROGRAMME)}


def kept(around: Surroundings, cycles: range) -> Iterator[str]:
    """Cycles in which a run begins or ends, of those of a slot."""
    if any(around.kept[t] != (0, 0, 0) for t in cycles):
        yield "a run begins or ends while another one goes on"


def more(around: Surroundings, bits: Bits, by: int) -> Expression:
    """The number of some bits and ``by``."""
    return around.m.make.sum([(1, around.m.words.integer(bits)), (by, around.m.make.number(1))])
