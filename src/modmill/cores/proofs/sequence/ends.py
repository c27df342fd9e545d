# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The start of a run, and its end."""

from __future__ import annotations

from collections.abc import Iterator

from modmill.cores.proofs.closed_machine import QUEUE
from modmill.cores.proofs.sequence.rows import (
    DRAIN,
    END_PLACE,
    FIRST_PLACE,
    IDLE_RUN,
    MARGIN,
    first_entry,
    kept,
    more,
    slot,
)
from modmill.cores.proofs.surroundings import (
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
    RUN,
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
from modmill.engines.machine.sequencer import ENTRY_AT
from modmill.proofs.arithmetic.word_rules import Bit, Bits

_MARGIN_LEFT = "sequencer.margin"
_STARTED = "message_started"
_PASSES = "passes"


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


def start(around: Surroundings) -> Iterator[str]:
    """What is other from a reset or a start to the first slot."""
    m, lay = around.m, around.layout
    m.restore(around.nothing, 0)
    m.ports["rst"] = (1,)
    _quiet_cycle(around, None)
    m.step()
    m.ports["rst"] = (0,)
    yield from _is_between(around, "after a reset")
    for name in (STATE, START, FIRST_PLACE, END_PLACE):
        if not m.hold(name, (0,) * len(m.named(name))):
            yield f"after a reset: {name} is not 0"
    for state in (IDLE_RUN, MARGIN):
        _between(around, state)
        for name in (FIRST_PLACE, END_PLACE):
            m.put(name, m.free(name))
        _quiet_cycle(around)
        m.step()
        yield from _is_between(around, "without a start")
        if not all(m.hold(name, m.free(name)) for name in (FIRST_PLACE, END_PLACE)):
            yield "without a start: the queue changes"
        if m.bits(m.named(STATE))[:2] != (0, 0) or (state == IDLE_RUN and not m.hold(STATE, number(IDLE_RUN, 3))):
            yield "without a start: the state of a run changes"
    for program, first in enumerate(lay.table[1]):
        _begin(around)
        m.put(PROGRAMME, number(program, len(m.named(PROGRAMME))))
        if lay.counted:
            m.put(_PASSES, m.free(_PASSES))
            left = more(around, m.free(_PASSES), -1)
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
    _between(around, IDLE_RUN)
    for name, bits in around.pinned().items():
        m.put(name, (int(name == _STARTED),) * len(bits))
    m.put(START, (1,))
    for name in (FIRST_PLACE, END_PLACE):
        m.put(name, m.free(name))


def _aligned(around: Surroundings, late: int) -> Iterator[str]:
    """From a start to the first slot, and to the end of the first product, which is stored nowhere. The multiplier is
    ready ``late`` cycles after the start, and again in its period."""
    m, timing, core = around.m, around.timing, around.core
    name = f"multiplier ready after {late} cycles"
    _begin(around)
    there: dict[str, Bits] = {}
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
            there = {r: m.free(r) for r in (BASE, LEFT, PROGRAMME)}
            for register, bits in there.items():
                m.put(register, bits)
        if t > timing.alignment + timing.run_up + 1:
            yield f"{name}: no first slot begins"
            return
    assert accepted is not None and first is not None
    for register, bits in {**there, ACTIVE: (1,), STATE: number(RUN, 3)}.items():
        if not m.hold(register, bits):
            yield f"{name}: {register} has another value in the first slot"
    taken = int(around.first_arrives + timing.write - timing.arrive <= 0)
    for register, by in ((FIRST_PLACE, taken), (END_PLACE, 1)):
        if not m.equal(m.bits(m.named(register)), more(around, m.free(register), by)):
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


def end(around: Surroundings) -> Iterator[str]:
    """What is other from the last row to the end of a run."""
    m, lay, timing, n = around.m, around.layout, around.timing, around.cycles
    yes, no = (1,), (0,)
    for again, left in ((no, m.free(LEFT)), (yes, number(0, len(m.named(LEFT))))):
        entry = first_entry(around, again=again, last=yes)
        around.begin(Row([entry], {**slot(around, lay.threads - 1), LEFT: left}, last=True))
        t = 0
        while not m.hold(STATE, number(MARGIN, 3)) and t < n + timing.drain + 2:
            if t >= n and not (m.hold(ACTIVE, (0,)) and m.hold(STATE, number(DRAIN, 3))):
                yield "a run does not end after its last row"
                return
            around.cycle(t)
            t += 1
        if t <= around.last or t != n + timing.drain:
            yield f"a run ends in cycle {t}, not {n + timing.drain}, and the last write is in cycle {around.last}"
        yield from kept(around, range(1, t))
        for w in (w for w in m.written if w.where != QUEUE):
            since = w.cycle - w.where[0] * timing.chained
            end = around.tile(timing.write).stop if since % n in timing.free else ENTRY_AT + 1 + n + timing.delay
            if since >= end:
                yield f"slice {w.where[0]} is written after the last row"
        yield from _is_between(around, "after the last write")
    for margin in range(timing.alignment + 1):
        _between(around, MARGIN)
        m.put(_MARGIN_LEFT, number(margin, len(m.named(_MARGIN_LEFT))))
        _quiet_cycle(around)
        m.step()
        if not m.hold(STATE, number(MARGIN if margin else IDLE_RUN, 3)) or (
            margin and not m.hold(_MARGIN_LEFT, number(margin - 1, len(m.named(_MARGIN_LEFT))))
        ):  # fmt: skip
            yield f"a run does not end {margin} cycles after its drain"
