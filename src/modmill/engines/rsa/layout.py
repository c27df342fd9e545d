# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Layout of an exponentiation engine: a coprocessor's layout whose programs are powers.

The constants are numbers of the modulus, and the only input of a thread is the base. A job states the number of passes
of the loop, so that one engine serves exponents of different lengths. Exponents that are blinded inside fill whole
words of digits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from modmill.contract import Contract, UnsupportedError
from modmill.engines.machine.layout import MicrocodeLayout, digits_in_word
from modmill.engines.machine.serial import Serial
from modmill.engines.machine.timing import MachineTiming, SlotTiming, paced, unit
from modmill.engines.microcode.hazards import check_hazards
from modmill.engines.microcode.program import Program
from modmill.engines.rsa.exponentiation import Exponentiation, PowerProgram

_DISTANCES = range(1, 9)
"""Distances that are tried, in instructions from a product to its first reader. With few threads, more instructions
with shorter issue slots may take fewer cycles."""
_NEARLY = Fraction(21, 20)
"""Accept up to 5 % more cycles for fewer instructions in program memory."""


@dataclass(frozen=True)
class PowerLayout(MicrocodeLayout):
    """Slots, program memory and messages of an engine; made by `power_layout`. ``powers``: programs with their bounds,
    all for one contract; if the modulus is loaded, that of one of the moduli."""

    powers: tuple[Exponentiation, ...] = ()

    @property
    def distance(self) -> int:
        """Number of instructions from a product to the first instruction that can read it."""
        return self.timing.distances(self.threads)[0]

    @property
    def numbers_of_modulus(self) -> tuple[str, ...]:
        """Names of the constants, in the order of their slots."""
        found = [""] * self.constants
        for offset, power in zip(self.offsets, self.powers, strict=True):
            names = power.program.constants
            found[offset : offset + len(names)] = names
        return tuple(found)

    @property
    def subtractions(self) -> int:
        """Number of possible subtractions of p at the end; 0 if the ports have residues or digits."""
        return max(times for p in self.programs for _, times in p.results) * self.binary

    def passes(self, program: int, bits: int) -> int:
        """Passes of the loop for exponents of ``bits`` bits. Raises UnsupportedError for more than the engine has."""
        power = self.powers[program]
        if bits > power.bits:
            raise UnsupportedError(f"exponents of this engine must have at most {power.bits} bits, got {bits}")
        return power.program.passes(bits)

    def setup(self, contract: Contract, programs: Mapping[int, Program] | None = None) -> list[int]:
        """The message that loads a modulus and its constants. Raises UnsupportedError if a program could overflow with
        this modulus, or needs more subtractions than the engine has."""
        return super().setup(contract, self._at(contract) if programs is None else programs)

    def _at(self, contract: Contract) -> dict[int, Program]:
        """The programs for another modulus."""
        made = {}
        product, selected = self.timing.distances(self.threads)
        for k, own in enumerate(self.powers):
            power = own if contract == own.contract else Exponentiation(own.program, contract, own.bits)
            ((_, times),) = results = self.programs[k].results
            if power.subtractions > times and self.binary:
                raise UnsupportedError(
                    f"this modulus needs {power.subtractions} subtractions of p at the end; the engine has {times}"
                )
            instructions = power.instructions(product, selected=selected)
            made[k] = replace(instructions, results=results, checks=self.programs[k].checks)
        return made

    def power_job(self, program: int, pairs: Sequence[tuple[int, int]], bits: int = 0) -> list[int]:
        """The message with one (base, exponent) for each thread; exponents have ``bits`` bits (0: the maximum)."""
        power = self.powers[program]
        bits = bits or power.bits
        passes = self.passes(program, bits)
        runs = [(power.program.digits(exponent, bits), (base,)) for base, exponent in pairs]
        return self.job(program, runs, passes)


def words_of_digits(program: PowerProgram, bits: int) -> int:
    """Words that hold all digits of exponents of ``bits`` bits."""
    per = digits_in_word(program.window) // program.exponents
    return -(-(bits + 2) // per) if program.gray else -(-bits // (per * program.window))


def whole_words(program: PowerProgram, count: int) -> int:
    """Bits of the longest exponents whose digits fill ``count`` words."""
    per = digits_in_word(program.window) // program.exponents
    return count * per - 2 if program.gray else count * per * program.window


def serial(program: PowerProgram, bits: int) -> Serial:
    """The digits of exponents of ``bits`` bits as bits of a sum, in which the digits of a second exponent lie above
    those of the first one."""
    w, count = program.window, program.digit_count(bits)
    starts = (w * (k + count * j) for k in reversed(range(count)) for j in range(program.exponents))
    return Serial(tuple(tuple(range(start, start + w)) for start in starts), gray=program.gray)


def power_layout(
    powers: Sequence[Exponentiation], timing: MachineTiming | SlotTiming, threads: int, word: int = 32, spare: int = 0
) -> PowerLayout:
    """The layout with the longest issue slots among those whose first power takes at most 5 % more cycles than the
    minimum.

    ``threads``: number of interleaved powers. ``word``: bits of a word of the streams. ``spare``: minimum number of
    subtractions of p at the end, for moduli that need more than the powers' own. Raises UnsupportedError if the
    programs do not fit the unit.
    """
    if threads < 1:
        raise UnsupportedError(f"an engine must have at least 1 thread, got {threads}")
    timings = [timing]
    if isinstance(timing, MachineTiming):
        timings[:0] = [paced(timing, threads, distance) for distance in _DISTANCES]
    found = []
    for each in timings:
        product, selected = each.distances(threads)
        instructions = tuple(power.instructions(product, spare, selected) for power in powers)
        found.append(PowerLayout(instructions, each, threads, word, counted=True, powers=tuple(powers)))
    cycles = [layout.timing.cycles(layout.programs[0].instructions, threads) for layout in found]
    best = next(layout for layout, taken in zip(found, cycles, strict=True) if taken <= _NEARLY * min(cycles))
    for program in best.programs:
        check_hazards(program, unit(best.timing, threads))
    return best
