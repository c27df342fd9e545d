# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Sums, and products with their destinations, are written in the cycles of their rows."""

from __future__ import annotations

from collections.abc import Iterator

from modmill.cores.proofs.closed_machine import QUEUE
from modmill.cores.proofs.sequence.rows import END_PLACE, FIRST_PLACE, first_entry, more
from modmill.cores.proofs.surroundings import BASE, MOVES, OFFERING, PLACE, SUMS, WAITING, Row, Surroundings, number
from modmill.engines.machine.program_memory import table_shapes
from modmill.engines.machine.sequencer import ENTRY_AT
from modmill.engines.machine.timing import FIRST
from modmill.proofs.arithmetic.word_rules import Bit, Bits


def sums(around: Surroundings) -> Iterator[str]:
    """Sums in other cycles than those of the row, or another number of them."""
    m, timing, n = around.m, around.timing, around.cycles
    if not timing.sums:
        return
    width = next(iter(table_shapes(around.layout).values()))["count"].width
    own = range(ENTRY_AT + 1, ENTRY_AT + 1 + n)
    for count in range(1, timing.sums + 2):
        entry = first_entry(around, count=number(count, width))
        around.begin(Row([entry], {BASE: m.free(BASE)}, free=frozenset({SUMS})))
        begin = {FIRST + 2 * j for j in range(1, count)}
        for t in range(timing.delay + own.stop + timing.skew + 1):
            if t in own and m.bits(m.named(SUMS)[:1]) != (int(t in begin),):
                yield f"{count} entries: a sum begins in another cycle than its own, before cycle {t}"
            around.cycle(t)
        yield from (f"{count} entries: {what}" for what in _writes(around, begin, timing.delay, own, free=False))


def _writes(around: Surroundings, begin: set[int], delay: int, own: range, *, free: bool) -> Iterator[str]:
    """Writes to slots that are other than ``delay`` cycles after ``begin``, in the ``own`` cycles of a row, which are
    those of sums or those that are ``free`` for products."""
    m, timing, n = around.m, around.timing, around.cycles
    for s in range(len(timing.slices)):
        late = delay + s * timing.chained
        for k in range(len(m.parts(s))):
            found = {w.cycle - late: w.enable for w in m.written if w.where == (s, k) and w.cycle - late in own}
            for t in own:
                mine = ((t + delay) % n in timing.free) == free or t in begin
                if mine and found.get(t, 0) != int(t in begin):
                    yield f"slice {s} is written in cycle {t + late}, or is not"
                    return


def products(around: Surroundings) -> Iterator[str]:
    """Products that are offered, accepted or stored otherwise than in the cycles of their row."""
    m, timing, n = around.m, around.timing, around.cycles
    place = (*m.words.unknown(len(m.named(PLACE)) - 1, "destination"), 1)
    product = m.words.unknown(around.layout.contract.operand.width, "product")
    pushes = range(ENTRY_AT + 1, ENTRY_AT + 1 + n)
    first, end = m.free(FIRST_PLACE), m.free(END_PLACE)
    of_queue, in_queue = m.words.integer, 0
    accepting, writing = around.tile(timing.accept), around.tile(timing.write)
    # the next product may be offered just when this one was accepted
    meets = (timing.move - timing.accept) % n == 0
    for active, following in ((a, f) for a in (0, 1) for f in ((0, 1) if meets else (0,))):
        entry = first_entry(around, active=(active,))
        row = Row(
            [entry], {BASE: m.free(BASE)}, active=active, product=product if active else (), place=place,
            free=frozenset({OFFERING, WAITING}),
        )  # fmt: skip
        name = "a product" if active else "no product"
        around.begin(row)
        head: tuple[Bits, Bits] = (), ()
        for t in range(max(writing.stop + timing.skew, accepting.stop, pushes.stop) + 2):
            if t == pushes.start:
                m.put(END_PLACE, end)
            if t == writing.start:
                m.put(FIRST_PLACE, first)
            if t == pushes.stop and not m.equal(m.bits(m.named(END_PLACE)), more(around, end, active)):
                yield f"{name}: the queue of destinations does not grow with it"
            if t == timing.write - 1 and not m.equal(m.bits(m.named(FIRST_PLACE)), of_queue(first)):
                yield f"{name}: a destination is taken before its write"
            if t == timing.write and not m.equal(m.bits(m.named(FIRST_PLACE)), more(around, first, active)):
                yield f"{name}: a destination is not taken with its write"
            if meets and t == timing.accept:
                m.put(MOVES, (following,), around.offer)
            for register, after, value in ((OFFERING, timing.accept + 1, following), (WAITING, timing.write, 0)):
                if t == after and not m.hold(register, (value,)):
                    yield f"{name}: {register} is not {value} in cycle {t}"
            if t == timing.write - 1 and head[1] != m.seen(PLACE):
                yield f"{name}: another destination is at the head of the queue"
            around.cycle(t)
            head = m.queue()[3:]
            if t == timing.write - 2 and head[0] != (*first, *(0,) * (len(head[0]) - len(first))):
                yield f"{name}: the queue is read elsewhere"
        ready = [t for t in accepting if (t - timing.accept) % around.core.period == 0]
        offers = [around.offered[t] for t in ready]
        early = around.core.lead and active and around.offered[timing.accept - around.core.lead] != 1
        if offers != [int(t == timing.accept and active) for t in ready] or early:
            yield f"{name}: operands are offered in another cycle than {timing.accept}"
        pushed = [w for w in m.written if w.where == QUEUE and w.cycle in pushes]
        if [w.enable for w in pushed] != [1] * active or any(not m.equal(w.address, of_queue(end)) for w in pushed):
            yield f"{name}: another number of destinations enters the queue"
        in_queue = max([in_queue, *(2 + (timing.write - w.cycle) // n for w in pushed)])
        begin = {timing.write} if active else set[int]()
        yield from (f"{name}: {what}" for what in _writes(around, begin, 0, writing, free=True))
        for w in (w for w in m.written if active and w.where != QUEUE):
            s = w.where[0]
            if w.cycle == timing.write + s * timing.chained and w.address != place[:-1]:
                yield f"{name}: slice {s} is written at another address"
        yield from (f"{name}: {what}" for what in _stored(around, product) if active)
    if in_queue > 1 << len(first):
        yield f"the queue has {1 << len(first)} places for {in_queue} destinations"


def _stored(around: Surroundings, product: Bits) -> Iterator[str]:
    """Slices that do not store their bits of a product."""
    m, timing, first = around.m, around.timing, 0
    for s, width in enumerate(timing.slices):
        word: list[Bit] = []
        for k in range(len(m.parts(s))):
            cycle = timing.write + s * timing.chained
            word += next((w.word for w in m.written if w.where == (s, k) and w.cycle == cycle), ())
        if tuple(word[:width]) != product[first : first + width]:  # the parity is above
            yield f"slice {s} stores other bits"
        first += width
