# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The faults of a campaign: fault k of a seed is the same for every number of faults.

Half of the faults hit registers, half memories, each in a random cycle of the operation. All registers are hit in turn,
in random order, in a random bit; of memories a random bit of all. Of five faults three are flips on average, one is a
stuck bit and one a skip.
"""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate

from modmill.studies.attack.faults import KINDS, Fault
from modmill.studies.attack.state import Place

FLIP, STUCK_0, STUCK_1, SKIP = KINDS
SHARES = {FLIP: 6, STUCK_0: 1, STUCK_1: 1, SKIP: 2}
"""Relative numbers of faults by kind."""


class Draw:
    """The faults for ``places`` in an operation of ``cycles`` cycles. Raises ValueError if there are no places."""

    def __init__(self, places: Sequence[Place], cycles: int, seed: int) -> None:
        self._places, self._cycles, self._seed = places, cycles, seed
        self.registers = [k for k, place in enumerate(places) if not place.memory]
        self.memories = [k for k, place in enumerate(places) if place.memory]
        if not places:
            raise ValueError("this netlist has no register and no memory")
        random.Random(seed).shuffle(self.registers)
        self._ends = list(accumulate(places[k].bits for k in self.memories))

    def __getitem__(self, number: int) -> Fault:
        rnd = random.Random(f"{self._seed} {number}")
        kind = rnd.choices(list(SHARES), list(SHARES.values()))[0]
        turn, second = divmod(number, 2)
        if self.registers and not (second and self.memories):
            if not self.memories:
                turn = number
            place = self.registers[turn % len(self.registers)]
            word, bit = 0, rnd.randrange(self._places[place].width)
        else:
            at = rnd.randrange(self._ends[-1])
            which = bisect(self._ends, at)
            place = self.memories[which]
            word, bit = divmod(at - (self._ends[which] - self._places[place].bits), self._places[place].width)
        return Fault(kind, place, word, bit, rnd.randrange(self._cycles))
