# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Mutant and original in the same schedules, for all operands at once: operands are unknown integers, and both must
have the same handshake and equal expressions as results.

Registers that no operand reaches begin with random bits, the same in both. All other registers and all memories are
further unknown integers, and so are the ports while nothing is offered, the same ones in all these cycles.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from modmill.proofs.arithmetic.integers import Integers
from modmill.proofs.arithmetic.symbolic import OPERANDS, Symbolic
from modmill.proofs.arithmetic.word_rules import Bits
from modmill.proofs.mutants.equivalence import Operands
from modmill.proofs.mutants.mutate import ENABLES, Mutated
from modmill.proofs.netlist import Netlist

_END = "end"
_MORE = 3
"""Products beyond those in flight."""


@dataclass(frozen=True)
class Schedule:
    """Signals at the handshake. ``seed``: of the random bits. ``after``: cycles between reset and first operands.
    ``offered``, ``taken``: percentage of the cycles in which operands are offered and results are taken. ``again``: the
    cycle of a second reset, or 0. ``reset``: cycles of each reset. ``products``: number of products offered after each
    reset. ``cycles``: the most cycles after it."""

    seed: int
    after: int
    offered: int
    taken: int
    again: int
    reset: int
    products: int
    cycles: int


def schedules(latency: int, interval: int, in_flight: int, reset: int, seed: int = 1) -> Iterator[Schedule]:
    """First operands in every cycle of an interval after the reset; by turns without pauses, with pauses, with stalls,
    and with a reset while products are in flight."""
    rnd = random.Random(seed)
    products = in_flight + _MORE
    cycles = 4 * (latency + interval * products) + 100
    for k in range(4 * -(-(interval + 1) // 4)):
        plain = Schedule(seed + k, k % (interval + 1), 100, 100, 0, reset, products, cycles)
        yield (
            plain,
            replace(plain, offered=60),
            replace(plain, taken=30),
            replace(plain, offered=80, again=rnd.randrange(1, latency + interval)),
        )[k % 4]


class AllOperands:
    """The mutants of a core. ``operands``: range of i_a and i_b, all bits if None. Raises ValueError if a cell has no
    rule."""

    def __init__(self, mutated: Mutated, operands: Operands | None) -> None:
        self._net = Netlist(mutated.module)
        self._operands = operands
        self._ports: dict[str, list[Any]] = {n: p["bits"] for n, p in self._net.module["ports"].items()}
        self._integers = Integers()
        self._functions: dict[Any, Any] = {}
        self._atoms: dict[tuple[str, int], Bits] = {}
        self._original: dict[Schedule, list[Any]] = {}

    def alike(self, number: int, schedule: Schedule) -> bool:
        """Whether mutant ``number`` has the results of the original. False also if a result is not known exactly."""
        if schedule not in self._original:
            self._original[schedule] = list(self._run(0, schedule))
        original = self._original[schedule]
        return original[-1:] == [_END] and list(self._run(number, schedule)) == original

    def _operand(self, port: str, number: int) -> Bits:
        key = (port, number)
        if key not in self._atoms:
            width = len(self._ports[port])
            given = self._operands
            most = given.largest if given and not given.digit else (1 << width) - 1
            atom = self._integers.atom(f"{port}{number}", 0, most)
            self._atoms[key] = tuple((atom, k) for k in range(width))
        return self._atoms[key]

    def _run(self, number: int, schedule: Schedule) -> Iterator[Any]:
        """The handshake of each cycle with the results, and `_END` if all of them came and are known."""
        core = Symbolic(self._net, self._integers, self._functions)
        rnd = random.Random(schedule.seed)
        core.begin(rnd)
        core.fill()
        core.ports[ENABLES] = tuple(int(k == number != 0) for k in range(len(self._ports[ENABLES])))
        count = 0
        for again in range(1 + bool(schedule.again)):
            accepted = taken = 0
            offer = False
            for cycle in range(-schedule.reset, schedule.cycles):
                if not offer and cycle >= schedule.after and accepted < schedule.products:
                    offer = rnd.randrange(100) < schedule.offered
                ready = rnd.randrange(100) < schedule.taken
                core.ports |= {"rst": (int(cycle < 0),), "i_valid": (int(offer),), "o_ready": (int(ready),)}
                for n in OPERANDS:
                    if n in self._ports:
                        core.ports[n] = self._operand(n, count if offer else -1)
                core.settle()
                if cycle >= 0:
                    (i_ready,), (o_valid,) = core.output("i_ready"), core.output("o_valid")
                    result = core.output("o_r") if o_valid else ()
                    if i_ready is None or o_valid is None or None in result:
                        return
                    yield i_ready, o_valid, result
                    taken += o_valid == 1 and ready
                    if offer and i_ready == 1:
                        accepted, count, offer = accepted + 1, count + 1, False
                core.clock()
                if (schedule.again and schedule.again == cycle and not again) or taken == schedule.products:
                    break
            else:
                return
        yield _END
