# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Messages by which a bus front overwrites everything in a core or an engine that depends on former messages.

They are messages of zeros, so that the core or engine is the one that is proved and measured, without another port at a
memory. All addresses that programs write are fixed, so the slots that a program overwrites are known. `behind_bus`
checks in simulation that nothing is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from modmill.buses.device import Command, Sent
from modmill.contract import Contract
from modmill.design import DesignInstance
from modmill.designs.radix64k.design import Radix64K
from modmill.engines.machine.blinder import Blinding
from modmill.engines.machine.io_register import ROUND
from modmill.engines.machine.layout import MicrocodeLayout
from modmill.engines.machine.sequencer import Sequencer
from modmill.engines.microcode.program import Program

_STEPS = 16
"""Most cycles of a coprocessor between two numbers of a message or an answer, besides their words and accesses."""


def setup_sent(fitted: DesignInstance, modulus: Sequence[int], cycles: int) -> Sent:
    """The message that overwrites a modulus and constants: zeros. A table that is written at addresses that follow from
    the modulus needs an odd one, so there the message begins with ``modulus``: the words that load the modulus that the
    core is made for, none if it is built in."""
    return Sent(0, tuple(modulus) if isinstance(fitted, Radix64K) else (), zeros=True, cycles=cycles)


def _slots(program: Program, *, always: bool) -> set[int]:
    """The slots that a run writes; ``always``: with every digit 0, which a run of zeros has."""
    found = {slot for slot, _ in program.inputs}
    for instruction in program.written:
        for task in instruction.tasks:
            found |= {number for _, number in ((task.destination.at(0),) if always else task.destination.all)}
    return found


def covering(programs: Sequence[Program], cycles: Callable[[int], int]) -> list[int]:
    """Numbers of programs whose runs overwrite every slot that any of them writes: always the one that overwrites most
    for its ``cycles``. Raises ValueError if there are none, because a slot is only written with some digits."""
    left = set().union(*(_slots(p, always=False) for p in programs))
    chosen: list[int] = []
    while left:
        gains = {k: len(left & _slots(p, always=True)) for k, p in enumerate(programs)}
        best = max(gains, key=lambda k: (gains[k] == len(left), gains[k] / cycles(k)))
        if not gains[best]:
            raise ValueError(f"no program overwrites slots {sorted(left)} with digits 0")
        chosen.append(best)
        left -= _slots(programs[best], always=True)
    return [k for k in chosen if not _needless(programs, chosen, k)]


def _needless(programs: Sequence[Program], chosen: Sequence[int], number: int) -> bool:
    """Whether programs chosen later overwrite all that this one does."""
    later = [k for k in chosen if chosen.index(k) > chosen.index(number)]
    return _slots(programs[number], always=False) <= set().union(*(_slots(programs[k], always=True) for k in later))


def engine_messages(
    fitted: DesignInstance, layout: MicrocodeLayout, run: Sequencer, cycles: Callable[[int, int | None], int],
    commands: Sequence[Command], modulus: Sequence[int], machines: int = 1, blinding: Blinding | None = None,
) -> Iterator[Sent]:  # fmt: skip
    """The messages for a coprocessor: one that overwrites all digits, whose job is aborted at its start, and another
    one that overwrites the memories of a ``blinding``; one that overwrites modulus and constants; jobs that overwrite
    the slots. With parity the third one also comes first: the aborted job may begin, and must not read a constant that
    was never written. ``cycles``: of a job, by program and passes of its loop. ``modulus``: as of `setup_sent`.
    ``machines``: number of machines, whose words come one after another."""
    contract = layout.contract
    longest = max(range(len(layout.programs)), key=layout.digit_words)
    subtracting = 2 * layout.rounds * layout.number_words * ROUND
    after_reset = layout.timing.earliest

    def head(number: int, *, whole: bool) -> tuple[int, ...]:
        if (counted := commands[1 + number].counted) is None:
            return ()
        count = counted.most if whole else min(1, counted.most)
        return (count, counted.varying(count)) if counted.stated else (count,)

    def storing(numbers: int) -> int:
        return numbers * (run.store_cycles + _STEPS)

    def passes(number: int) -> int | None:
        if blinding and layout.counted and blinding.recodings[number]:
            return blinding.passes(number, layout, 1)
        return 1 if layout.counted and layout.programs[number].passes else None

    def products(number: int) -> int:
        return layout.threads * layout.counting(number, passes(number)).products

    def blinded(number: int) -> int:
        return blinding.cycles(number, layout) if blinding else 0

    def aborted(number: int) -> Sent:
        cut = machines * (storing(layout.threads * len(layout.programs[number].inputs)) + blinded(number))
        return Sent(1 + number, head(number, whole=True), zeros=True, cut=True, cycles=after_reset + cut)

    def job(number: int) -> Sent:
        program = layout.programs[number]
        reading = len(program.answers) * (run.read_cycles + subtracting + _STEPS) + storing(len(program.inputs))
        own = layout.threads * reading + layout.answer_words(number) * _STEPS
        each = cycles(number, passes(number)) + machines * (own + blinded(number))
        return Sent(1 + number, head(number, whole=False), zeros=True, cycles=each)

    load = contract.load
    constants = layout.constants + len(layout.offset_multiples) + len(layout.conditional_subtracts)
    loading = load.cycles + _STEPS * len(load.words) if load else 0
    setup = setup_sent(fitted, modulus, after_reset + storing(constants) + loading)
    yield from [setup] * layout.timing.parity
    yield aborted(longest)
    if blinding and (widest := blinding.widest) != longest:
        yield aborted(widest)
    yield setup
    chosen = covering(layout.programs, lambda k: job(k).cycles)
    yield from map(job, chosen)
    # results and their destinations wait in places that products take by turns
    places = max(2 * (fitted.places + contract.timing.in_flight), run.destinations)
    for _ in range(-(-places // products(chosen[-1])) - 1):
        yield job(chosen[-1])


def refilled(messages: Sequence[Sent], commands: Sequence[Command], words: int) -> tuple[Sent, ...]:
    """The messages, the last one repeated until the answers have so many words, as many as a queue behind the device
    holds."""
    answers = {command.number: command.answer for command in commands}
    found = list(messages)
    while sum(answers[sent.command] for sent in found if not sent.cut) < words:
        found.append(found[-1])
    return tuple(found)


def circuit_messages(
    fitted: DesignInstance, commands: Sequence[Command], cycles: int, modulus: Sequence[int]
) -> Iterator[Sent]:
    """The messages for an engine on the circuit of powers, of which a job with one bit takes ``cycles``. ``modulus``:
    as of `setup_sent`."""
    counted = commands[1].counted
    assert counted is not None
    yield Sent(1, (counted.most,), zeros=True, cut=True)
    yield setup_sent(fitted, modulus, cycles)
    yield Sent(1, (1,), zeros=True, cycles=cycles)


def multiplier_messages(
    fitted: DesignInstance, contract: Contract, product: Command, modulus: Sequence[int]
) -> Iterator[Sent]:
    """The messages for a multiplier: the modulus if it is loaded (as of `setup_sent`), and products of zeros in every
    place in which one can be or wait. Forms other than ``native`` have more places, in front of it and behind it."""
    if contract.load:
        yield setup_sent(fitted, modulus, contract.load.cycles + _STEPS * len(contract.load.words))
    timing = contract.timing
    for _ in range(2 * (fitted.places + timing.in_flight)):
        yield Sent(product.number, zeros=True, cycles=timing.latency + timing.interval + _STEPS * (1 + product.answer))
