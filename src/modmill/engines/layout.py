# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What an engine's parts agree on: slots, addresses, digits, the messages at its ports, and its cycles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

from modmill.contract import Binary, Contract, Refusal
from modmill.engines.exponentiation import Exponentiation
from modmill.rtl.memory import DEPTHS

SETUP = 0
"""The message that sets the modulus; 1 + programme asks for powers."""
COUNT_BITS = 16
"""Bits of a number of digits or passes."""


class Paced(Protocol):
    """A sequencer's cycles: a step that waits for no product, one that does, and for a base in and a power out."""

    @property
    def rate(self) -> int:
        """Cycles of a step of all contexts that waits for no product, at most."""

    @property
    def round(self) -> int:
        """Cycles of a step that waits for products of the step before, at most."""

    @property
    def access(self) -> int:
        """Cycles for a base to be stored and a power to be read, at most."""


def words_of(number: int, count: int, word: int) -> list[int]:
    """A number as ``count`` words, least significant first."""
    return [number >> (word * k) & ((1 << word) - 1) for k in range(count)]


@dataclass(frozen=True)
class Layout:
    """Slots, table and messages of a machine for some programmes.

    ``engines``: the programmes with their bounds, all for one contract (that of any modulus, if it is loaded).
    ``contexts``: exponentiations in step. ``word``: bits of a word of the streams.
    ``spare``: subtractions of p at the end at least, for moduli that need more than the engines' own.
    Raises Refusal when the programmes do not fit together.
    """

    engines: tuple[Exponentiation, ...]
    contexts: int
    word: int
    spare: int = 0

    def __post_init__(self) -> None:
        if self.contexts < 1:
            raise Refusal(f"a machine has at least 1 context, not {self.contexts}")
        if not 8 <= self.word <= 64:
            raise Refusal(f"words have 8 to 64 bits, not {self.word}")
        places: dict[int, str] = {}
        for slot, number in chain.from_iterable(e.programme.loads for e in self.engines):
            if number != "base" and places.setdefault(slot, number) != number:
                raise Refusal(f"two programmes keep {places[slot]} and {number} in slot {slot}")
        for engine in self.engines:
            p = engine.programme
            steps = chain(p.before, p.loop, p.after)
            written = {*(s.destination for s in steps), *(slot for slot, number in p.loads if number == "base")}
            if lost := written & places.keys():
                raise Refusal(f"programme {p.name} writes slot {min(lost)}, in which a number must stay")

    @property
    def contract(self) -> Contract:
        """The multiplier's contract."""
        return self.engines[0].contract

    @property
    def commons(self) -> tuple[tuple[int, str], ...]:
        """(slot, number) of the numbers that stay: they are sent with the modulus."""
        found = chain.from_iterable(e.programme.loads for e in self.engines)
        return tuple(sorted({(slot, number) for slot, number in found if number != "base"}))

    @property
    def slots(self) -> int:
        """Slots of one context."""
        return max(e.programme.slots for e in self.engines)

    @property
    def depth(self) -> int:
        """Addresses of the slot memory."""
        return max(DEPTHS[0], 1 << (self.slots * self.contexts - 1).bit_length())

    def require_memory(self) -> None:
        """Raise Refusal when the slots of all contexts do not fit the sequencer's memory."""
        if self.depth > DEPTHS[-1]:
            raise Refusal(
                f"{self.slots} slots of {self.contexts} contexts do not fit {DEPTHS[-1]} addresses; take a smaller "
                f"window or fewer contexts"
            )

    def place(self, slot: int) -> int:
        """Address of a slot in the first context; the others follow."""
        return slot * self.contexts

    @property
    def binary(self) -> bool:
        """Whether numbers stand at the ports as themselves."""
        return isinstance(self.contract.operand, Binary)

    @property
    def number_words(self) -> int:
        """Words of a number."""
        return -(-self.contract.operand.width // self.word)

    @property
    def key_words(self) -> int:
        """Words of the stream i for one of stream k."""
        return -(-self.contract.load.width // self.word) if self.contract.load else 0

    @property
    def digit_bits(self) -> int:
        """Bits of the widest digit."""
        return max(1, *(e.programme.window for e in self.engines))

    @property
    def digits(self) -> int:
        """Digits of the longest exponent, rounded up to a power of two."""
        return 1 << (max(2, *(e.programme.digit_count(e.bits) for e in self.engines)) - 1).bit_length()

    @property
    def subtractions(self) -> int:
        """How often p is subtracted at the end: not where the ports have residues."""
        return int(max(self.spare, *(e.subtractions for e in self.engines))) * self.binary

    def setup(self, contract: Contract) -> list[int]:
        """The message that sets the modulus and its numbers.

        Raises Refusal when a programme could overflow with this modulus, or needs more subtractions than there are.
        """
        for e in self.engines:
            engine = e if contract == e.contract else Exponentiation(e.programme, contract, e.bits)
            if self.binary and engine.subtractions > self.subtractions:
                raise Refusal(
                    f"this modulus needs {engine.subtractions} subtractions at the end, not {self.subtractions}"
                )
        out = [SETUP]
        if load := contract.load:
            out += words_of(contract.p, self.number_words, self.word)
            out += chain.from_iterable(words_of(w, self.key_words, self.word) for w in load.words)
        for _, name in self.commons:
            out += self.number(engine.numbers[name])
        return out

    def job(self, programme: int, pairs: Sequence[tuple[int, int]], bits: int = 0) -> list[int]:
        """The message for one (base, exponent) for each context, exponents of ``bits`` bits (default: the longest)."""
        if len(pairs) != self.contexts:
            raise Refusal(f"this machine takes {self.contexts} powers at once, not {len(pairs)}")
        engine = self.engines[programme]
        bits = bits or engine.bits
        if bits > engine.bits:
            raise Refusal(f"this machine takes exponents of up to {engine.bits} bits, not {bits}")
        p = engine.programme
        out = [1 + programme, p.passes(bits), p.digit_count(bits)]
        for base, exponent in pairs:
            out += p.digits(exponent, bits)
            out += self.number(base)
        return out

    def number(self, x: int) -> list[int]:
        """The words of a number."""
        return words_of(self.contract.operand.encode(x), self.number_words, self.word)

    def powers(self, words: Sequence[int], p: int) -> list[int]:
        """The numbers that the words at ``o`` stand for, least ones."""
        n = self.number_words
        packets = [words[k : k + n] for k in range(0, len(words), n)]
        ports = [sum(w << (self.word * k) for k, w in enumerate(packet)) for packet in packets]
        return [port if self.binary else self.contract.operand.decode(port) % p for port in ports]

    def cycles(self, programme: int, bits: int, sequencer: Paced) -> int:
        """Cycles from the last word of a job to the first word of its powers, at most.

        A step takes ``rate``, for which the multiplier or the fetch of operands is busy with all contexts; ``round``
        where the next step needs its product, which comes after the multiplier's latency.
        """
        rate, longest = sequencer.rate, sequencer.round
        engine = self.engines[programme]
        p, passes = engine.programme, engine.programme.passes(bits)
        before, loop = len(p.before), len(p.before) + len(p.loop)
        far = [distance > 1 for distance in p.distances]
        overlapped = sum(far[:before]) + passes * sum(far[before:loop]) + sum(far[loop:])
        steps = p.products(bits) + 1
        subtracting = 2 * self.subtractions * (self.number_words + 1)
        return (steps - overlapped) * longest + overlapped * rate + subtracting + sequencer.access
