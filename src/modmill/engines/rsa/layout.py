# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What the parts of an exponentiation engine agree on: a coprocessor's layout whose programs are powers.

The numbers of the modulus are the constants, the base is the only number of a thread, and a job says how many passes
the loop does, so that one engine serves exponents of different lengths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from modmill.contract import Contract, UnsupportedError
from modmill.engines.machine.layout import MicrocodeLayout
from modmill.engines.machine.timing import MachineTiming, SlotTiming, paced
from modmill.engines.microcode.hazards import check_hazards
from modmill.engines.microcode.program import DatapathSpec, Program
from modmill.engines.rsa.exponentiation import Exponentiation
from modmill.rtl.memory import DEPTHS

_DISTANCES = range(1, 9)
"""Instructions after which a product may be read: with few threads, shorter turns may be worth more instructions."""
_NEARLY = Fraction(21, 20)
"""Fewer instructions of the table are worth so many times the fewest cycles."""


@dataclass(frozen=True)
class PowerLayout(MicrocodeLayout):
    """Slots, table and messages of an engine for some powers. ``powers``: the programs with their bounds, all for one
    contract (that of any modulus, if it is loaded). Made by ``power_layout``."""

    powers: tuple[Exponentiation, ...] = ()

    @property
    def distance(self) -> int:
        """After how many instructions a product can be read."""
        return self.timing.distances(self.threads)[0]

    @property
    def numbers_of_modulus(self) -> tuple[str, ...]:
        """The constants, in order."""
        found = [""] * self.constants
        for offset, power in zip(self.offsets, self.powers, strict=True):
            names = power.program.constants
            found[offset : offset + len(names)] = names
        return tuple(found)

    @property
    def subtractions(self) -> int:
        """How often p may be subtracted at the end: not at all where the ports have residues or digits."""
        return max(times for p in self.programs for _, times in p.results) * self.binary

    def passes(self, program: int, bits: int) -> int:
        """Passes of the loop for exponents of ``bits`` bits. Raises UnsupportedError for longer ones than the
        engine's."""
        power = self.powers[program]
        if bits > power.bits:
            raise UnsupportedError(f"this engine takes exponents of up to {power.bits} bits, not {bits}")
        return power.program.passes(bits)

    def setup(self, contract: Contract, programs: Mapping[int, Program] | None = None) -> list[int]:
        """The message that sets a modulus and its numbers.

        Raises UnsupportedError when a program could overflow with this modulus, or needs more subtractions than there
        are.
        """
        return super().setup(contract, self.at(contract) if programs is None else programs)

    def at(self, contract: Contract) -> dict[int, Program]:
        """The programs for another modulus. Raises UnsupportedError as ``setup`` does."""
        made = {}
        for k, own in enumerate(self.powers):
            power = own if contract == own.contract else Exponentiation(own.program, contract, own.bits)
            results = self.programs[k].results
            ((_, times),) = results
            if power.subtractions > times and self.binary:
                raise UnsupportedError(f"this modulus needs {power.subtractions} subtractions at the end, not {times}")
            made[k] = replace(power.instructions(self.distance), results=results)
        return made

    def power_job(self, program: int, pairs: Sequence[tuple[int, int]], bits: int = 0) -> list[int]:
        """The message for one (base, exponent) for each thread, exponents of ``bits`` bits (default: the longest)."""
        power = self.powers[program]
        bits = bits or power.bits
        passes = self.passes(program, bits)
        runs = [(power.program.digits(exponent, bits), (base,)) for base, exponent in pairs]
        return self.job(program, runs, passes)


def power_layout(
    powers: Sequence[Exponentiation], timing: MachineTiming | SlotTiming, threads: int, word: int = 32, spare: int = 0
) -> PowerLayout:
    """The layout with the longest turns of those that make the first power nearly as short as can be.

    ``threads``: powers interleaved. ``word``: bits of a word of the streams. ``spare``: subtractions of p at the end at
    least, for moduli that need more than the powers' own. Raises UnsupportedError where they do not fit the unit.
    """
    if threads < 1:
        raise UnsupportedError(f"an engine has at least 1 thread, not {threads}")
    found = [_layout(powers, beat, threads, word, spare) for beat in _timings(timing, threads)]
    cycles = [layout.timing.cycles(layout.programs[0].instructions, threads) for layout in found]
    best = next(layout for layout, taken in zip(found, cycles, strict=True) if taken <= _NEARLY * min(cycles))
    unit = DatapathSpec(0, best.distance, 1, DEPTHS[-1], DEPTHS[-1], added=best.timing.added)
    for program in best.programs:
        check_hazards(program, unit)
    return best


def _timings(timing: MachineTiming | SlotTiming, threads: int) -> Iterator[MachineTiming | SlotTiming]:
    if isinstance(timing, MachineTiming):
        yield from (paced(timing, threads, distance) for distance in _DISTANCES)
    yield timing


def _layout(
    powers: Sequence[Exponentiation], timing: MachineTiming | SlotTiming, threads: int, word: int, spare: int
) -> PowerLayout:
    distance, _ = timing.distances(threads)
    instructions = tuple(power.instructions(distance, spare) for power in powers)
    return PowerLayout(instructions, timing, threads, word, counted=True, powers=tuple(powers))
