# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The ports of multipliers and of slot machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.contract import ALARM, Timing


def multiplier_ports(a: int, b: int, r: int, k: int = 0, *, alarm: bool = False) -> dict[str, Any]:
    """Members of the multiplier interface for operands of ``a`` and ``b`` bits and results of ``r`` bits.

    ``b`` = 0: one operand (a conversion or a reduction), no port i_b. ``k``: width of the words of stream k, which
    loads the modulus; 0 if the modulus is built in. ``alarm``: with the output `ALARM` (see Contract).
    """
    return {
        **({"k_valid": In(1), "k_ready": Out(1), "k_m": In(k)} if k else {}),
        "i_valid": In(1), "i_ready": Out(1), "i_a": In(a), **({"i_b": In(b)} if b else {}),
        "o_valid": Out(1), "o_ready": In(1), "o_r": Out(r), **({ALARM: Out(1)} if alarm else {}),
    }  # fmt: skip


class SlotMachine(wiring.Component):
    """A multiplier with numbered slots, which hold numbers between operations.

    Slot numbers have ``slot`` bits, numbers ``number`` bits. A stream transfers a payload in every cycle in which its
    valid and ready are high:

    i    an operation, slot[i_destination] = slot[i_a] slot[i_b] factor, and with i_sum
         (slot[i_a] slot[i_b] + slot[i_c] slot[i_e]) factor
    x    a number for slot x_slot; operations accepted later can read it
    q    a slot whose number is requested; the numbers leave at o, in order
    k    words that load the modulus, each of ``k`` bits, as in `multiplier_ports`

    ``alarm``: with the output `ALARM`, which is high from a wrong result on, before that result can leave, until the
    reset. It accepts at most one operation every ``interval`` cycles and does not wait for results: an operation may
    read the result of another that was accepted at least ``distance`` intervals earlier. ``kept``: as for `Multiplier`.
    """

    kept: tuple[str, ...] = ()
    modulus_words: Sequence[int] = ()
    """The words of stream k that load the instance's modulus, not always in the order of the design's multiplier."""

    def __init__(
        self, slot: int, number: int, *, interval: int, distance: int, k: int = 0, alarm: bool = False
    ) -> None:
        self.interval, self.distance, self.alarm = interval, distance, alarm
        super().__init__({
            **({"k_valid": In(1), "k_ready": Out(1), "k_m": In(k)} if k else {}),
            "i_valid": In(1), "i_ready": Out(1), "i_sum": In(1),
            **{f"i_{name}": In(slot) for name in ("destination", "a", "b", "c", "e")},
            "x_valid": In(1), "x_ready": Out(1), "x_slot": In(slot), "x_number": In(number),
            "q_valid": In(1), "q_ready": Out(1), "q_slot": In(slot),
            "o_valid": Out(1), "o_ready": In(1), "o_number": Out(number), **({ALARM: Out(1)} if alarm else {}),
        })  # fmt: skip


class Multiplier(wiring.Component):
    """A core with the multiplier interface.

    ``probes`` lists (name, signal, cycle): ``signal`` (a list of signals for a vector) has the value that the algorithm
    calls ``name`` in that cycle; the operands are accepted in cycle 0. ``period``: operands are accepted only in cycles
    0, period, 2 period, ... after reset, and only if they were valid ``lead`` cycles earlier. ``kept``: names of
    submodules that synthesis must optimise before it flattens them. ``k``, ``alarm``: as in `multiplier_ports`.
    ``ranges``: of registers, for proofs.
    """

    kept: tuple[str, ...] = ()

    def __init__(
        self, a: int, b: int, r: int, *, period: int = 1, lead: int = 0, k: int = 0, alarm: bool = False
    ) -> None:
        self.period, self.lead, self.alarm = period, lead, alarm
        self.probes: list[tuple[str, Any, int]] = []
        self.ranges: dict[tuple[str, str], Mapping[int, int]] = {}
        super().__init__(multiplier_ports(a, b, r, k, alarm=alarm))

    @property
    def timing(self) -> Timing | None:
        """Timing of the core; None if nothing states it."""
        return None

    def read_in(self, operand: int, bit: int) -> tuple[int, int]:
        """First and last cycle in which a bit of operand 0 (a) or 1 (b) is read; in other cycles it may change. The
        operands are accepted in cycle 0. The default starts ``lead`` cycles early; a subclass may narrow it."""
        return -self.lead, 0

    def stands(self, bit: int) -> int:
        """Cycles for which a bit of a result, taken at once, stays at the port after its valid cycle."""
        return 0
