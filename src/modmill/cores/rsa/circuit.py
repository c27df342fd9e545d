# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Engines on the circuit of the radix-64K paper (`designs/radix64k/circuit.py`): one power at a time, on one multiplier
whose result is an operand of the next product."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from modmill.buses.device import Counted, Sent
from modmill.contract import Contract, UnsupportedError
from modmill.cores.built import Message, judged
from modmill.cores.folder import json_object, read_text
from modmill.cores.rsa.circuit_page import page
from modmill.cores.rsa.machine import EngineCore, prepared
from modmill.cores.zeroise import circuit_messages
from modmill.designs import design as find_design
from modmill.designs.radix64k import circuit
from modmill.designs.radix64k.design import Radix64K
from modmill.engines.machine.layout import words_of
from modmill.engines.rsa.exponentiation import PUBLIC

NAMES = ("constant time", "variable time")
"""Names of the two programs."""


@dataclass(frozen=True)
class CircuitLayout:
    """Messages of a circuit. ``width``: bits of the moduli; ``bits``: of the longest exponent; ``word``: of a word."""

    width: int
    bits: int
    word: int

    threads = 1
    binary = True

    @property
    def number_words(self) -> int:
        """Number of words of a number."""
        return -(-self.width // self.word)

    def answer_words(self, _program: int) -> int:
        """Number of words of an answer."""
        return self.number_words

    def number(self, x: int) -> list[int]:
        """A number in words."""
        return words_of(x, self.number_words, self.word)

    def results(self, _program: int, words: Sequence[int], _p: int) -> list[tuple[int, ...]]:
        """The powers in the words of answers."""
        size = self.number_words
        groups = (words[k : k + size] for k in range(0, len(words), size))
        return [(sum(word << (self.word * k) for k, word in enumerate(group)),) for group in groups]

    def setup(self, contract: Contract) -> list[int]:
        """The message that loads a modulus and its constants."""
        radix = pow(contract.factor, -1, contract.p)
        modulus = self.modulus(contract)
        return [circuit.SETUP, *modulus, *self.number(radix), *self.number(radix * radix % contract.p)]

    def modulus(self, contract: Contract) -> list[int]:
        """The words of the message of `setup` that load the contract's modulus; none if it is built in."""
        return list(contract.load.words) if contract.load else []

    def power_job(self, program: int, pairs: Sequence[tuple[int, int]], bits: int = 0) -> list[int]:
        """The message for one (base, exponent); the exponent has ``bits`` bits (0: the maximum).

        Raises UnsupportedError for more bits than the engine has, and for an exponent that has more.
        """
        ((base, exponent),) = pairs
        bits = bits or self.bits
        if bits > self.bits or exponent >> bits:
            got = max(bits, exponent.bit_length())
            raise UnsupportedError(f"exponents of this engine must have at most {min(bits, self.bits)} bits, got {got}")
        order = int(f"{exponent:0{bits}b}"[::-1], 2)
        return [1 + program, bits, *words_of(order, -(-bits // self.word), self.word), *self.number(base)]


@dataclass(frozen=True)
class CircuitCore(EngineCore):
    """An engine on the circuit.

    Program 0 is for secret exponents of up to ``bits`` bits, at least 17, in constant time; program 1 for public
    exponents of that length, in a time that depends on them. ``native``, ``method``, ``window``, ``threads``, ``cores``
    and ``io`` keep their defaults. Raises UnsupportedError for another design, and for one without feedback.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.fitted, Radix64K) or not self.fitted.shape.m.feedback:
            raise UnsupportedError(f"the circuit needs feedback=true, and {self.design} has feedback=false here")
        if self.parity:
            raise UnsupportedError("the circuit has no parity in its memories: omit --parity, or take --lockstep")
        if self.fixed_addresses:
            raise UnsupportedError("the circuit reads no table by digits: omit --fixed-addresses")
        if self.random_blind:
            raise UnsupportedError("the circuit has no port for random words: omit --random port")
        if self.check_result:
            raise UnsupportedError("the circuit has no check of its results: omit --check-result, or take --lockstep")

    @property
    def numbered(self) -> bool:
        return False

    @cached_property
    def layout(self) -> CircuitLayout:  # type: ignore[override]
        width = self.fitted.p.bit_length()
        return CircuitLayout(width, max(self.bits or width, PUBLIC.bit_length()), self.word)

    @property
    def exponent_bits(self) -> int:
        return self.layout.bits

    @property
    def calls(self) -> None:
        return None

    @property
    def zeroise(self) -> tuple[Sent, ...]:
        load = self.contract.load
        cycles = self.cycles(0, 1) + 2 * (load.cycles if load else 0)
        return tuple(circuit_messages(self.fitted, self.commands, cycles, self.layout.modulus(self.contract)))

    def _counted(self, program: int) -> Counted:
        lay = self.layout
        return Counted(lay.bits, 1, lay.word - 1, lay.word.bit_length() - 1, lay.number_words, 1, False)

    @property
    def coprocessor(self) -> circuit.PowerCircuit:
        assert isinstance(self.fitted, Radix64K)
        return circuit.PowerCircuit(self.fitted.shape, self.exponent_bits, self.word)

    @property
    def feedback(self) -> int:
        """Cycles from the operands of a product to those of the next one."""
        return self.contract.timing.latency - 1

    def products(self, program: int, exponent: int, bits: int) -> int:
        """Products of a power."""
        return circuit.products(exponent, bits, variable=bool(program))

    def cycles(self, program: int, bits: int = 0, exponent: int = -1) -> int:
        """As in `EngineCore`; for program 1 with this ``exponent``, by default the slowest one."""
        assert isinstance(self.fitted, Radix64K)
        bits = bits or self.exponent_bits
        slowest = (1 << bits) - 1
        products = self.products(program, slowest if exponent < 0 else exponent, bits)
        return circuit.cycles(self.fitted.shape, products) + self.waits

    def described(self, program: int, bits: int = 0) -> tuple[str, int]:
        bits = bits or self.exponent_bits
        return NAMES[program], self.products(program, (1 << bits) - 1, bits)

    @property
    def patience(self) -> int:
        return 2 * max(self.cycles(0), (1 << circuit.COUNT_BITS) // 16) + 2000

    def setup(self, fitted: Any) -> list[int]:
        return self.layout.setup(fitted.contract("native"))

    def message(self, p: int, program: int, bits: int, pairs: Sequence[tuple[int, int]]) -> Message:
        made = super().message(p, program, bits, pairs)
        ((_, exponent),) = pairs
        return Message(
            made.words, made.shown, made.what, program, p, made.results, self.cycles(program, bits, exponent)
        )

    def public_exponents(self) -> Iterator[tuple[int, int]]:
        """(exponent, bits) of program 1 in a check: the same in both streams, because their time may depend on them."""
        yield from ((0, 1), (1, 1), (1, 3), (0b10110, 5), (0b10110, 9))
        yield random.Random(self.exponent_bits).getrandbits(PUBLIC.bit_length() - 1), PUBLIC.bit_length()

    @property
    def options(self) -> dict[str, Any]:
        return {
            "bits": self.exponent_bits, "word": self.word, "top": self.top, **self.behind, **self.protection
        }  # fmt: skip

    def about(self) -> dict[str, Any]:
        fixed = {"method": "binary", "window": 1, "threads": 1, "cores": 1, "io": "native", "native": False}
        return {**super().about(), **fixed, "circuit": True}

    def _tried_public(self) -> dict[str, int]:
        """The cycles of program 1 for an exponent in which half of the bits are 1, and for 65537."""
        p, bits, rnd = self.fitted.p, self.exponent_bits, random.Random(2)
        ones = sum(1 << k for k in [bits - 1, *rnd.sample(range(bits - 1), bits // 2 - 1)])
        seen = {}
        for name, exponent in (("half_ones", ones), ("e65537", PUBLIC)):
            pairs = [(rnd.randrange(p), exponent) for _ in range(2)]  # the first may wait for the modulus
            found = self.simulate(self.fitted, 1, pairs, exponent.bit_length())
            judged(found.powers, [pow(*pair, p) for pair in pairs], "power")
            seen[name] = found.cycles[1]
        return seen

    def record(self) -> dict[str, Any]:
        contract = self.contract
        longest = self.exponent_bits
        return {
            **self.stated(),
            "circuit": True,
            "key_words": len(contract.load.words) if contract.load else 0,
            "programs": [
                {
                    "command": 1 + k, "name": name, "exponent_bits": longest, "products": self.described(k)[1],
                    "time": ("does not depend on base or exponent" if k == 0 else
                             "depends on the exponent, so it must be public"),
                    "cycles": self.cycles(k), "cycles_65537": self.cycles(k, PUBLIC.bit_length(), PUBLIC),
                } for k, name in enumerate(NAMES)
            ],
        }  # fmt: skip

    def page(self, record: Mapping[str, Any]) -> str:
        return page(record)


def circuit_engine(
    design: str, p: int = 0, width: int = 0, settings: Mapping[str, Any] | None = None, **options: Any
) -> CircuitCore:
    """An engine on the circuit around ``design``, with feedback=true; the arguments are those of `engine`. Raises
    UnsupportedError as that does, and for a design that is not of the paper."""
    if not any(setting.name == "feedback" for setting in find_design(design).settings):
        raise UnsupportedError(f"the circuit needs radix64k-mul, radix64k-ram or radix64k-table, not {design}")
    return CircuitCore(*prepared(design, p, width, {"feedback": True, **(settings or {})}), **options)


def engine_class(folder: str | Path) -> type[EngineCore]:
    """The class of the engine in a folder. Raises ValueError if its record is missing or malformed."""
    file = Path(folder) / f"{EngineCore.STEM}.json"
    return CircuitCore if json_object(read_text(file), file).get("circuit") is True else EngineCore


def read_any(folder: str | Path) -> EngineCore:
    """Read an engine of either kind; raises as `EngineCore.read` does."""
    return engine_class(folder).read(folder)
