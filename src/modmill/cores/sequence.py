# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The rows that a machine's sequencer takes, in the order of the interpreter: from the start of a run, by induction.

Each run begins with a state that holds all states that the machine can have there: all that is not stated is unknown.

    start     after `start` the first issue slot begins with the program's first row and the first thread, whenever the
              multiplier accepts; the first product, which belongs to no row, is stored nowhere
    steps     one issue slot leads to the next: the same row for the next thread, or after the last thread the next row,
              or the loop's first row with one pass less, or the end; with the next digit if the row says so
    sums      a row has as many sums as its first entry says
    products  a row's product is offered, accepted and stored in its cycles, or there is none; the queue of destinations
              gives them in their order
    tables    an entry and a word of digits are those of their address
    end       after the last row no row begins, and the machine becomes idle as it was before the start

`surroundings` lists what each run takes from the others.
"""

from __future__ import annotations

from collections.abc import Iterator

from modmill.cores.closed_machine import QUEUE
from modmill.cores.surroundings import (
    ACTIVE,
    ALIGNED,
    BASE,
    DIGIT_WORD,
    DIGITS_AT,
    FOUND,
    IDLE,
    INDEX,
    LEFT,
    MOVES,
    OF_ROW,
    OFFERING,
    PHASE,
    PLACE,
    PROGRAMME,
    SLOTS_AT,
    START,
    STARTING,
    STATE,
    SUMS,
    THREAD,
    WAITING,
    Row,
    Surroundings,
    number,
)
from modmill.engines.machine.program_memory import BANK, DIGITS, table_shapes
from modmill.engines.machine.sequencer import ENTRY_AT
from modmill.engines.machine.timing import FIRST
from modmill.flow.polynomials import Expression
from modmill.flow.word_rules import Bit, Bits

THEOREM = (
    "from a start to the end of a run the netlist takes the rows of the program in the interpreter's order, each for "
    "all threads, with the loop's passes and the next digit where a row says so; products are stored in their order"
)
_IDLE, _ALIGN, _RUN, _DRAIN, _MARGIN = range(5)
"""Codes of the states of a run, in the order of `sequencer`."""
_FIRST_PLACE, _END_PLACE, _POINTER, _MARGIN_LEFT = (
    f"sequencer.{name}" for name in ("first_place", "end_place", "at", "margin")
)
_STARTED = "message_started"
_PASSES = "passes"


def sequence_faults(around: Surroundings) -> Iterator[str]:
    """What of the statement is not seen, as lines."""
    for name, part in (
        ("start", _start), ("steps", _steps), ("sums", _sums), ("products", _products), ("tables", _tables),
        ("end", _end),
    ):  # fmt: skip
        yield from (f"{name}: {what}" for what in part(around))


# ---- one slot


def _first_entry(around: Surroundings, **known: Bits) -> Bits:
    """The first entry of a row, unknown but for some fields."""
    shape = next(iter(table_shapes(around.layout).values()))
    bits: list[Bit] = [None] * len(around.m.named(FOUND))
    for name, values in known.items():
        field = shape[name]
        bits[field.offset : field.offset + field.width] = values[: field.width]
    return tuple(bits)


def _counted(around: Surroundings) -> tuple[Bits, Expression]:
    """An unknown number of entries."""
    width = next(iter(table_shapes(around.layout).values()))["count"].width
    bits = around.m.words.unknown(width, "count")
    return bits, around.m.words.integer(bits)


def _steps(around: Surroundings) -> Iterator[str]:
    m, lay = around.m, around.layout
    per = lay.per_word
    within, count = (per - 1).bit_length(), _counted(around)
    for thread in range(lay.threads - 1):
        row = Row([_first_entry(around, count=count[0])], _slot(around, thread))
        yield from _step(around, row, f"thread {thread}", thread + 1)
    last = _slot(around, lay.threads - 1)
    no, yes = (0,), (1,)
    high = m.free(INDEX)[within:]
    for place in range(per):
        for advance in (0, 1):
            entry = _first_entry(around, count=count[0], advance=(advance,), again=no, last=no)
            registers = {**last, INDEX: (*number(place, within), *high)}
            yield from _step(around, Row([entry], registers), f"digit {place}", 0, count[1], advance)
        yield from _digit(around, place, (*number(place, within), *high))
    entry = _first_entry(around, count=count[0], advance=no, again=yes, last=no)
    none = {**last, LEFT: number(0, len(m.named(LEFT)))}
    yield from _step(around, Row([entry], none), "last pass", 0, count[1])
    entry = _first_entry(around, count=count[0], advance=no, again=yes)
    for program, loop in enumerate(lay.table[2]):
        for top in range(len(m.named(LEFT))):
            left = (*m.free(LEFT)[:top], 1, *(0,) * (len(m.named(LEFT)) - top - 1))
            registers = {**last, LEFT: left, PROGRAMME: number(program, len(m.named(PROGRAMME)))}
            name = f"program {program}, {1 << top} passes or more left"
            yield from _step(around, Row([entry], registers), name, 0, None, 0, loop)
            if around.layout.programs[program].passes >> top + 1 == 0:
                break


def _slot(around: Surroundings, thread: int) -> dict[str, Bits]:
    """Registers of a thread, of an unknown row."""
    m, lay = around.m, around.layout
    found = {name: m.free(name) for name in (BASE, INDEX, LEFT)}
    for name, value in ((THREAD, thread), (DIGITS_AT, thread * lay.stride), (SLOTS_AT, thread * lay.slots)):
        found[name] = number(value, len(m.named(name)))
    return found | {PROGRAMME: m.free(PROGRAMME)}


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
            (STATE, _RUN),
        )},
    }  # fmt: skip
    for register, value in wanted.items():
        if not m.equal(m.bits(m.named(register)), value):
            yield f"{name}: {register} has another value in the next slot"
    for what in (name for found in m.beyond(around.start, OF_ROW) for name in found):
        yield f"{name}: {what} is not as before in the next slot"
    yield from _kept(around, range(1, around.cycles))


def _kept(around: Surroundings, cycles: range) -> Iterator[str]:
    if any(around.kept[t] != (0, 0, 0) for t in cycles):
        yield "a run begins or ends while another one goes on"


def _digit(around: Surroundings, place: int, index: Bits) -> Iterator[str]:
    """The digit of a row is that at the index, in the words of the thread."""
    m, lay = around.m, around.layout
    word = m.free(DIGIT_WORD)
    row = Row([], {**_slot(around, 0), DIGITS_AT: m.free(DIGITS_AT), INDEX: index}, word)
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


# ---- sums and products


def _sums(around: Surroundings) -> Iterator[str]:
    m, timing, n = around.m, around.timing, around.cycles
    if not timing.sums:
        return
    width = next(iter(table_shapes(around.layout).values()))["count"].width
    own = range(ENTRY_AT + 1, ENTRY_AT + 1 + n)
    for count in range(1, timing.sums + 2):
        entry = _first_entry(around, count=number(count, width))
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


def _products(around: Surroundings) -> Iterator[str]:
    m, timing, n = around.m, around.timing, around.cycles
    place = (*m.words.unknown(len(m.named(PLACE)) - 1, "destination"), 1)
    product = m.words.unknown(around.layout.contract.operand.width, "product")
    pushes = range(ENTRY_AT + 1, ENTRY_AT + 1 + n)
    first, end = m.free(_FIRST_PLACE), m.free(_END_PLACE)
    of_queue = m.words.integer
    in_queue = 0
    accepting, writing = around.tile(timing.accept), around.tile(timing.write)
    # the next product may be offered just when this one was accepted
    meets = (timing.move - timing.accept) % n == 0
    for active, following in ((a, f) for a in (0, 1) for f in ((0, 1) if meets else (0,))):
        entry = _first_entry(around, active=(active,))
        row = Row(
            [entry], {BASE: m.free(BASE)}, active=active, product=product if active else (), place=place,
            free=frozenset({OFFERING, WAITING}),
        )  # fmt: skip
        name = "a product" if active else "no product"
        around.begin(row)
        head: tuple[Bits, Bits] = (), ()
        for t in range(max(writing.stop + timing.skew, accepting.stop, pushes.stop) + 2):
            if t == pushes.start:
                m.put(_END_PLACE, end)
            if t == writing.start:
                m.put(_FIRST_PLACE, first)
            if t == pushes.stop and not m.equal(m.bits(m.named(_END_PLACE)), _more(around, end, active)):
                yield f"{name}: the queue of destinations does not grow with it"
            if t == timing.write - 1 and not m.equal(m.bits(m.named(_FIRST_PLACE)), of_queue(first)):
                yield f"{name}: a destination is taken before its write"
            if t == timing.write and not m.equal(m.bits(m.named(_FIRST_PLACE)), _more(around, first, active)):
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


def _more(around: Surroundings, bits: Bits, by: int) -> Expression:
    return around.m.make.sum([(1, around.m.words.integer(bits)), (by, around.m.make.number(1))])


def _stored(around: Surroundings, product: Bits) -> Iterator[str]:
    """Slices that do not store their bits of a product."""
    m, timing, first = around.m, around.timing, 0
    for s, width in enumerate(timing.slices):
        word: list[Bit] = []
        for k in range(len(m.parts(s))):
            cycle = timing.write + s * timing.chained
            word += next((w.word for w in m.written if w.where == (s, k) and w.cycle == cycle), ())
        if tuple(word) != product[first : first + width]:
            yield f"slice {s} stores other bits"
        first += width


# ---- memories


def _tables(around: Surroundings) -> Iterator[str]:
    """What an address of the table and of the digits leads to."""
    m, lay = around.m, around.layout
    digits_first = _digits_first(around)
    width = len(m.named(_POINTER))
    for kind, bank in sorted(m.banks):
        if kind == "bank" and bank * BANK < len(lay.table[0]):
            yield from _read(around, _POINTER, FOUND, kind, bank, bank * BANK, min(width, BANK.bit_length() - 1))
    if ("digits", 0) not in m.banks:
        low = (lay.digit_depth - 1).bit_length()
        bank, first = divmod(digits_first, BANK)
        yield from _read(around, DIGITS_AT, DIGIT_WORD, "bank", bank, 0, low, first)
        return
    low = BANK.bit_length() - 1
    for kind, bank in sorted(m.banks):
        if kind == "digits":
            used = min(BANK, lay.digit_depth - bank * BANK)
            yield from _read(
                around, DIGITS_AT, DIGIT_WORD, kind, bank, bank * BANK, min(low, (max(16, used) - 1).bit_length())
            )


def _digits_first(around: Surroundings) -> int:
    """Address of the first word of digits, in the banks of rows."""
    room = min(BANK, 1 << (around.layout.digit_depth - 1).bit_length())
    return -(-len(around.layout.table[0]) // room) * room


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


# ---- start and end


def _of_rows(around: Surroundings) -> tuple[str, ...]:
    """Registers of control that are 0 if there was no row."""
    return OFFERING, MOVES, "sequencer.live", *((SUMS,) if around.timing.sums else ())


def _quiet(around: Surroundings) -> tuple[str, ...]:
    """Registers that are 0 between runs."""
    names = (ACTIVE, STARTING, ALIGNED, WAITING, "sequencer.ending", "sequencer.coming")
    return *names, *_of_rows(around)


def _before(around: Surroundings) -> Iterator[str]:
    """Before what the first row writes and offers there is nothing."""
    m, timing, n = around.m, around.timing, around.cycles
    around.begin(Row(first=True))
    for name in _of_rows(around):
        m.put(name, (0,) * len(m.named(name)))
    around.run(timing.write + timing.skew + 1)
    writes, accepts = around.tile(timing.write).start, around.tile(timing.accept).start
    for s in range(len(timing.slices)):
        late = s * timing.chained
        for w in (w for w in m.written if w.where[0] == s):
            t = w.cycle - late
            if 0 < t < (writes if t % n in timing.free else ENTRY_AT + 1 + timing.delay):
                yield f"slice {s} is written in cycle {w.cycle}, before the first row writes"
    if any(around.offered[t] != 0 for t in range(accepts) if (t - timing.accept) % around.core.period == 0):
        yield "operands are offered before those of the first row"


def _between(around: Surroundings, state: int) -> None:
    """A state between runs, with no products under way."""
    m = around.m
    m.restore(around.nothing, 0)
    m.count_freely()
    for name in (*_quiet(around), START):
        m.put(name, (0,) * len(m.named(name)))
    m.put(STATE, number(state, len(m.named(STATE))))
    around.row, around.offered = Row(last=True), {}


def _is_between(around: Surroundings, what: str) -> Iterator[str]:
    m = around.m
    for name in _quiet(around):
        if not m.hold(name, (0,) * len(m.named(name))):
            yield f"{what}: {name} is not 0"


def _quiet_cycle(around: Surroundings, valid: Bit = 0, ready: Bit = None) -> None:
    """A cycle in which `IDLE` is what it is."""
    m = around.m
    m.ports["core_o_valid"], m.ports["core_i_ready"] = (valid,), (ready,)
    for port in {port for port, _ in m.result}:
        m.ports[port] = (None,) * len(m.ports[port])
    m.give(FOUND, (None,) * len(m.named(FOUND)))
    m.give(DIGIT_WORD, (None,) * len(m.named(DIGIT_WORD)))
    m.settle()
    m.give(IDLE, m.seen(IDLE))
    m.settle()


def _start(around: Surroundings) -> Iterator[str]:
    m, lay = around.m, around.layout
    m.restore(around.nothing, 0)
    m.ports["rst"] = (1,)
    _quiet_cycle(around, None)
    m.step()
    m.ports["rst"] = (0,)
    yield from _is_between(around, "after a reset")
    for name in (STATE, START, _FIRST_PLACE, _END_PLACE):
        if not m.hold(name, (0,) * len(m.named(name))):
            yield f"after a reset: {name} is not 0"
    for state in (_IDLE, _MARGIN):
        _between(around, state)
        for name in (_FIRST_PLACE, _END_PLACE):
            m.put(name, m.free(name))
        _quiet_cycle(around)
        m.step()
        yield from _is_between(around, "without a start")
        if not all(m.hold(name, m.free(name)) for name in (_FIRST_PLACE, _END_PLACE)):
            yield "without a start: the queue changes"
        if m.bits(m.named(STATE))[:2] != (0, 0) or (state == _IDLE and not m.hold(STATE, number(_IDLE, 3))):
            yield "without a start: the state of a run changes"
    for program, first in enumerate(lay.table[1]):
        _begin(around)
        m.put(PROGRAMME, number(program, len(m.named(PROGRAMME))))
        if lay.counted:
            m.put(_PASSES, m.free(_PASSES))
            left = _more(around, m.free(_PASSES), -1)
        else:
            left = m.make.number(max(0, lay.programs[program].passes - 1))
        _quiet_cycle(around)
        m.step()
        wanted = {BASE: m.make.number(first), LEFT: left}
        wanted |= {name: m.make.number(0) for name in (THREAD, INDEX, DIGITS_AT, SLOTS_AT)}
        for name, value in wanted.items():
            if not m.equal(m.bits(m.named(name)), value):
                yield f"program {program}: {name} begins with another value"
    for late in range(around.core.period):
        yield from _aligned(around, late)
    yield from _before(around)


def _begin(around: Surroundings) -> None:
    """The cycle in which a run starts."""
    m = around.m
    _between(around, _IDLE)
    for name, bits in around.pinned().items():
        m.put(name, (int(name == _STARTED),) * len(bits))
    m.put(START, (1,))
    for name in (_FIRST_PLACE, _END_PLACE):
        m.put(name, m.free(name))


def _aligned(around: Surroundings, late: int) -> Iterator[str]:
    """From a start to the first slot, and to the end of the first product, which is stored nowhere. The multiplier is
    ready ``late`` cycles after the start, and again in its period."""
    m, timing, core = around.m, around.timing, around.core
    name = f"multiplier ready after {late} cycles"
    _begin(around)
    slot: dict[str, Bits] = {}
    accepted = first = None
    offered: dict[int, Bit] = {}
    t = 0
    while first is None or t < first:
        due = accepted is not None and t == accepted + timing.contract.timing.latency
        early = offered.get(t - core.lead, 0) if core.lead else 1
        ready = early if (t - late) % core.period == 0 else 0
        m.give(PLACE, (*(None,) * (len(m.named(PLACE)) - 1), 0))
        _quiet_cycle(around, int(due), ready)
        (offered[t],) = m.bits(m.valid)
        if t == 0:
            push, _, word, _, _ = m.queue()
            if push != (1,) or word[-1] != 0:
                yield f"{name}: the first product has a destination"
        if offered[t] == 1 and ready == 1 and accepted is None:
            accepted, first = t, t + timing.run_up
        elif ready not in (0,) and offered[t] != 0:
            yield f"{name}: another product is offered in cycle {t}"
            return
        m.step()
        t += 1
        if t == 1:
            slot = {r: m.free(r) for r in (BASE, LEFT, PROGRAMME)}
            for register, bits in slot.items():
                m.put(register, bits)
        if t > timing.alignment + timing.run_up + 1:
            yield f"{name}: no first slot begins"
            return
    assert accepted is not None and first is not None
    for register, bits in {**slot, ACTIVE: (1,), STATE: number(_RUN, 3)}.items():
        if not m.hold(register, bits):
            yield f"{name}: {register} has another value in the first slot"
    taken = int(around.first_arrives + timing.write - timing.arrive <= 0)
    for register, by in ((_FIRST_PLACE, taken), (_END_PLACE, 1)):
        if not m.equal(m.bits(m.named(register)), _more(around, m.free(register), by)):
            yield f"{name}: the queue has other places than that of the first product"
    for register in (THREAD, INDEX, DIGITS_AT, SLOTS_AT, PHASE, *_of_rows(around)):
        if not m.hold(register, (0,) * len(m.named(register))):
            yield f"{name}: {register} is not 0 in the first slot"
    others, lines = m.beyond(around.start, OF_ROW)
    yield from (f"{name}: {what} is not as in each slot" for what in lines)
    before = [w for w in m.written if w.where != QUEUE and w.cycle > ENTRY_AT + timing.skew]
    if before:
        yield f"{name}: a slot is written before the first row"
    # the first product is as that of a row that began so many cycles before the first slot
    virtual = accepted - timing.accept - first
    if virtual % around.cycles:
        yield f"{name}: the first product is not aligned with those of rows"
    around.allow(others)


def _end(around: Surroundings) -> Iterator[str]:
    m, lay, timing, n = around.m, around.layout, around.timing, around.cycles
    yes, no = (1,), (0,)
    for again, left in ((no, m.free(LEFT)), (yes, number(0, len(m.named(LEFT))))):
        entry = _first_entry(around, again=again, last=yes)
        around.begin(Row([entry], {**_slot(around, lay.threads - 1), LEFT: left}, last=True))
        t = 0
        while not m.hold(STATE, number(_MARGIN, 3)) and t < n + timing.drain + 2:
            if t >= n and not (m.hold(ACTIVE, (0,)) and m.hold(STATE, number(_DRAIN, 3))):
                yield "a run does not end after its last row"
                return
            around.cycle(t)
            t += 1
        if t <= around.last or t != n + timing.drain:
            yield f"a run ends in cycle {t}, not {n + timing.drain}, and the last write is in cycle {around.last}"
        yield from _kept(around, range(1, t))
        for w in (w for w in m.written if w.where != QUEUE):
            since = w.cycle - w.where[0] * timing.chained
            end = around.tile(timing.write).stop if since % n in timing.free else ENTRY_AT + 1 + n + timing.delay
            if since >= end:
                yield f"slice {w.where[0]} is written after the last row"
        yield from _is_between(around, "after the last write")
    for margin in range(timing.alignment + 1):
        _between(around, _MARGIN)
        m.put(_MARGIN_LEFT, number(margin, len(m.named(_MARGIN_LEFT))))
        _quiet_cycle(around)
        m.step()
        if not m.hold(STATE, number(_MARGIN if margin else _IDLE, 3)) or (
            margin and not m.hold(_MARGIN_LEFT, number(margin - 1, len(m.named(_MARGIN_LEFT))))
        ):  # fmt: skip
            yield f"a run does not end {margin} cycles after its drain"
