# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""One issue slot leads to the next."""

from __future__ import annotations

from collections.abc import Iterator

from modmill.cores.proofs.sequence.rows import first_entry, kept, slot
from modmill.cores.proofs.surroundings import (
    ACTIVE,
    BASE,
    DIGIT_WORD,
    DIGITS_AT,
    INDEX,
    LEFT,
    OF_ROW,
    PROGRAMME,
    RUN,
    SLOTS_AT,
    STATE,
    THREAD,
    Row,
    Surroundings,
    number,
)
from modmill.engines.machine.program_memory import table_shapes
from modmill.engines.machine.sequencer import ENTRY_AT
from modmill.proofs.arithmetic.polynomials import Expression
from modmill.proofs.arithmetic.word_rules import Bits


def _counted(around: Surroundings) -> tuple[Bits, Expression]:
    """An unknown number of entries."""
    width = next(iter(table_shapes(around.layout).values()))["count"].width
    bits = around.m.words.unknown(width, "count")
    return bits, around.m.words.integer(bits)


def steps(around: Surroundings) -> Iterator[str]:
    """Steps to another slot than the next, or with another digit."""
    m, lay = around.m, around.layout
    per = lay.per_word
    within, count = (per - 1).bit_length(), _counted(around)
    for thread in range(lay.threads - 1):
        row = Row([first_entry(around, count=count[0])], slot(around, thread))
        yield from _step(around, row, f"thread {thread}", thread + 1)
    last = slot(around, lay.threads - 1)
    no, yes = (0,), (1,)
    high = m.free(INDEX)[within:]
    for place in range(per):
        for advance in (0, 1):
            entry = first_entry(around, count=count[0], advance=(advance,), again=no, last=no)
            registers = {**last, INDEX: (*number(place, within), *high)}
            yield from _step(around, Row([entry], registers), f"digit {place}", 0, count[1], advance)
        yield from _digit(around, place, (*number(place, within), *high))
    entry = first_entry(around, count=count[0], advance=no, again=yes, last=no)
    none = {**last, LEFT: number(0, len(m.named(LEFT)))}
    yield from _step(around, Row([entry], none), "last pass", 0, count[1])
    entry = first_entry(around, count=count[0], advance=no, again=yes)
    for program, loop in enumerate(lay.table[2]):
        for top in range(len(m.named(LEFT))):
            left = (*m.free(LEFT)[:top], 1, *(0,) * (len(m.named(LEFT)) - top - 1))
            registers = {**last, LEFT: left, PROGRAMME: number(program, len(m.named(PROGRAMME)))}
            name = f"program {program}, {1 << top} passes or more left"
            yield from _step(around, Row([entry], registers), name, 0, None, 0, loop)
            if around.layout.programs[program].passes >> top + 1 == 0:
                break


def _step(
    around: Surroundings, row: Row, name: str, thread: int, count: Expression | None = None, advance: int = 0,
    loop: int | None = None,
) -> Iterator[str]:  # fmt: skip
    """Faults of the step to the next slot: of ``thread``, ``count`` entries further if it is the next row, or the first
    row of a ``loop`` with one pass less."""
    m, lay, make = around.m, around.layout, around.m.make
    around.begin(row)
    around.run(around.cycles)
    old = {register: m.words.integer(bits) for register, bits in row.registers.items()}
    one = make.number(1)
    wanted = {
        BASE: make.number(loop) if loop is not None else make.sum([(1, old[BASE]), *([(1, count)] if count else [])]),
        INDEX: make.sum([(1, old[INDEX]), (advance, one)]),
        LEFT: make.sum([(1, old[LEFT]), (-1 if loop is not None else 0, one)]),
        PROGRAMME: old[PROGRAMME],
        **{r: make.number(v) for r, v in (
            (THREAD, thread), (DIGITS_AT, thread * lay.stride), (SLOTS_AT, thread * lay.slots), (ACTIVE, 1),
            (STATE, RUN),
        )},
    }  # fmt: skip
    for register, value in wanted.items():
        if not m.equal(m.bits(m.named(register)), value):
            yield f"{name}: {register} has another value in the next slot"
    for what in (name for found in m.beyond(around.start, OF_ROW) for name in found):
        yield f"{name}: {what} is not as before in the next slot"
    yield from kept(around, range(1, around.cycles))


def _digit(around: Surroundings, place: int, index: Bits) -> Iterator[str]:
    """The digit of a row is that at the index, in the words of the thread."""
    m, lay = around.m, around.layout
    word = m.free(DIGIT_WORD)
    row = Row([], {**slot(around, 0), DIGITS_AT: m.free(DIGITS_AT), INDEX: index}, word)
    around.begin(row)
    around.run(1)
    high = m.words.integer(index[(lay.per_word - 1).bit_length() :])
    wanted = m.make.sum([(1, m.words.integer(m.free(DIGITS_AT))), (1, high)])
    if m.named(DIGITS_AT) and not m.equal(m.bits(m.named("sequencer.d_at")), wanted):
        yield f"digit {place}: another word of digits is read"
    around.run(ENTRY_AT - 1)
    bits = lay.digit_bits
    if m.bits(m.named("sequencer.digit")) != word[place * bits : (place + 1) * bits]:
        yield f"digit {place}: another digit is taken"
