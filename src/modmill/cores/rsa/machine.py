# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Exponentiation engines around a design."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from modmill.buses.device import WORD, Command, Counted
from modmill.buses.power_calls import PowerCalls, loading
from modmill.contract import Binary, UnsupportedError
from modmill.cores import engine_files
from modmill.cores.batches import batches
from modmill.cores.behind_bus import Exchange
from modmill.cores.built import BuiltEngine, Message, Simulated, Trial
from modmill.cores.rsa import pairs as powers
from modmill.cores.rsa.page import page
from modmill.design import DesignInstance
from modmill.designs import design as find_design
from modmill.engines.machine.blinder import Blinding
from modmill.engines.machine.layout import DIGIT_WORDS, words_of
from modmill.engines.machine.random_port import HealthTests
from modmill.engines.machine.timing import SlotTiming, busy_threads
from modmill.engines.ranges import require_range
from modmill.engines.rsa.exponentiation import (
    PUBLIC,
    Exponentiation,
    PowerProgram,
    blinded_window,
    checked,
    fixed_window,
    ladder,
    left_to_right,
    with_selections,
)
from modmill.engines.rsa.layout import PowerLayout, power_layout, serial, whole_words, words_of_digits
from modmill.engines.rsa.rsa import require_public
from modmill.flow.emit import digest
from modmill.numbers.primes import prev_prime
from modmill.numbers.shown import shortened
from modmill.rtl.memory import DEPTHS
from modmill.version import __version__

METHODS = ("window", "ladder")
POWERS = ("power", "public")
"""Names of the two programs as commands: exponents that are secret, and 65537."""
SHORT = 48
"""Length in bits of the exponents in most messages of vectors and checks."""


def uniform(
    method: str, window: int, converted: bool, check: int = 0, fixed_addresses: bool = False, blinds: int = 0
) -> PowerProgram:
    """The program for secret exponents; ``converted`` as in `fixed_window`. ``check``: the exponent with which it
    checks its result, 0 for none. ``fixed_addresses``: as in `BuiltEngine`. ``blinds``: the exponent with which it
    blinds its base, as in `blinded_window`, 0 for none. Raises UnsupportedError for an unknown method, for a window out
    of range, and for a ladder that blinds."""
    if method not in METHODS:
        raise UnsupportedError(f"the method must be one of {', '.join(METHODS)}, not {shortened(method)}")
    if blinds and method == "ladder":
        raise UnsupportedError("the ladder does not blind messages: take --method window or --no-blind-messages")
    if blinds:
        made = blinded_window(window, blinds, converted)
    else:
        made = ladder(converted) if method == "ladder" else fixed_window(window, converted)
    made = with_selections(made) if fixed_addresses else made
    return checked(made, check) if check else made


@dataclass(frozen=True)
class EngineCore(BuiltEngine):
    """A coprocessor for modular powers, around a design fitted to the modulus; made by `engine`.

    Program 0 is for secret exponents of up to ``bits`` bits (0: the length of the modulus), program 1 for the
    exponent 65537. ``method``: of `METHODS`. ``window``: bits of a digit. ``native``: whether numbers stay in the
    design's own slot machine, if it has one and ``io`` is native. ``public_exponent``: e, with which program 0 checks
    its result, if ``check_result``, and blinds exponents, with ``random_blind``: d + r (e d - 1), r of so many bits.
    Then program 0 is for inverses of e only. The numbers of bits are those before blinding. ``blind_messages``: bases
    are blinded too, as in `blinded_window`, by random factors from the port. Then moduli have all bits, and exponents
    are inverses of e modulo the order of every number, as those of an RSA key are. Other options as in `BuiltEngine`.
    Raises UnsupportedError as that does, for a public exponent that has no use or is out of range, and for
    ``blind_messages`` without random words, with numbers that are not binary, exponents shorter than the modulus, and a
    modulus that `pairs.whole` does not accept.
    """

    method: str = "window"
    window: int = 5
    native: bool = True
    public_exponent: int = PUBLIC
    blind_messages: bool = False

    STEM = "engine"
    KIND = "powers"
    BLINDED = "the blinding of an exponent"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_public(self.public_exponent)
        if self.public_exponent != PUBLIC and not self.inverts:
            raise UnsupportedError(
                "a public exponent is that of a check or of blinding inside: give --public-exponent with "
                "--check-result or --random port"
            )
        if self.blind_messages:
            self._require_blinding()

    def _require_blinding(self) -> None:
        """Raise UnsupportedError if this engine cannot blind messages."""
        p, e = self.fitted.p, self.public_exponent
        size = p.bit_length()
        if not self.random_blind:
            raise UnsupportedError("messages are blinded with random words: --blind-messages needs --random port")
        if not isinstance(self.contract.operand, Binary):
            raise UnsupportedError(
                f"an engine around {self.design} has residues at its ports, and draws binary numbers only: take "
                "--no-blind-messages, or a design with binary numbers, such as montgomery-array"
            )
        if self.bits and self.bits < size:
            raise UnsupportedError(
                f"exponents of {self.bits} bits are no inverses of {e} for all messages modulo numbers of {size} bits: "
                f"take {size} bits or more, or --no-blind-messages"
            )
        if not powers.whole(p, e):
            raise UnsupportedError(
                f"with blinded messages an engine is made for a prime p with p - 1 coprime to {e}, so that its results "
                f"can be checked; {shortened(p)} is none: load the modulus, or take --no-blind-messages"
            )

    @property
    def blinds(self) -> int:
        """The public exponent with which program 0 blinds its base, 0 if it does not."""
        return self.public_exponent if self.blind_messages else 0

    @property
    def checked_by(self) -> int:
        """The public exponent with which program 0 checks its result, 0 for none."""
        return self.public_exponent if self.check_result else 0

    @property
    def inverts(self) -> int:
        """The public exponent whose inverses the exponents of program 0 must be, 0 if it computes any power."""
        return self.public_exponent if self.check_result or self.random_blind else 0

    @property
    def blinding(self) -> Blinding | None:
        if not self.random_blind:
            return None
        power, tests = self.layout.powers[0], HealthTests(self.random_entropy)
        recodings = serial(power.program, power.bits), None
        factor = self.fitted.p.bit_length() - 1 if self.blind_messages else 0
        return Blinding(
            self.random_blind, self.exponent_bits, (), recodings, tests, factor, inverse=self.public_exponent
        )  # fmt: skip

    def tried_length(self, bits: int) -> int:
        """The length of exponents for a test in place of ``bits``: the longest if they are shorter, and if messages are
        blinded."""
        return self.exponent_bits if self.blind_messages else min(bits, self.exponent_bits)

    def require_length(self, bits: int) -> None:
        """Raise UnsupportedError if exponents of so many bits are too short for blinded messages."""
        least = self.fitted.p.bit_length() if self.blind_messages else 0
        if bits < least:
            raise UnsupportedError(
                f"this engine blinds messages: exponents must be inverses modulo p - 1, of {least} bits or more, "
                f"not {bits}"
            )

    def tried(self) -> list[DesignInstance]:
        """The multiplier with each modulus with which an engine is tried, its own first."""
        if not self.blind_messages:
            return [self.fitted, *self.fitted.others()]
        size = self.fitted.p.bit_length() if self.fitted.load else 0
        return [self.fitted, *map(self.at, powers.primes_for(size, self.public_exponent, self.fitted.p))]

    def serves(self, p: int) -> bool:
        """Whether all powers modulo a number that the design can load may be tried."""
        return not self.blind_messages or (
            p.bit_length() == self.fitted.p.bit_length() and powers.whole(p, self.public_exponent)
        )

    def drawn(self, rnd: random.Random, p: int, bits: int, order: int = 0) -> tuple[int, int]:
        """A random base and exponent of program 0; ``order`` as in `pairs.drawn`. If messages are blinded, exponents
        have at least the bits of p."""
        if self.blind_messages:
            bits, order = max(bits, p.bit_length()), p - 1
        return powers.drawn(rnd, p, bits, self.inverts, order)

    def released(self, p: int, pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Those of some (base, exponent) modulo p whose powers program 0 computes and releases. If messages are
        blinded, the bases with other exponents, or nothing if there are none."""
        if self.blind_messages:
            rnd, known = random.Random(len(pairs)), powers.whole(p, self.public_exponent)
            return [(base, self.drawn(rnd, p, self.exponent_bits)[1]) for base, _ in pairs if known]
        return [pair for pair in pairs if powers.released(p, pair, self.inverts)]

    @cached_property
    def numbered(self) -> bool:
        if not self.native or self.io != "native":
            return False
        try:
            self.fitted.slot_machine(1)
        except UnsupportedError:
            return False
        return True

    @property
    def _sums(self) -> tuple[int, bool]:
        return uniform(self.method, self.window, True, fixed_addresses=self.fixed_addresses).selections, False

    @property
    def _adders(self) -> bool:
        return False

    @cached_property
    def layout(self) -> PowerLayout:
        contract, timing = self.contract, self.timing
        others = [x.contract(self.io) for x in self.fitted.others()]
        converted = any(c.factor % c.p != 1 for c in (contract, *others))  # R may be 1 for one modulus only
        secret = uniform(
            self.method, self.window, converted, self.checked_by, self.fixed_addresses, self.blinds
        )  # fmt: skip
        programs = (
            (secret, self._blinded(secret, self.bits or contract.p.bit_length())),
            (left_to_right(PUBLIC, converted=converted), PUBLIC.bit_length()),
        )
        powers = tuple(Exponentiation(program, contract, length) for program, length in programs)
        least = others if isinstance(contract.operand, Binary) else []
        spare = max((Exponentiation(p, c, n).subtractions for p, n in programs for c in least), default=0)
        threads = self.threads
        if not threads:
            one = power_layout(powers, timing, 1, self.word, spare)
            room = min((DEPTHS[-1] - one.constants) // one.slots, DIGIT_WORDS // one.stride)
            threads = min(timing.distance if isinstance(timing, SlotTiming) else busy_threads(timing), room)
        layout = power_layout(powers, timing, threads, self.word, spare)
        if self.numbered:
            self.fitted.slot_machine(layout.used)  # raises if there are too few slots
        return layout

    @property
    def exponent_bits(self) -> int:
        """Length of the longest exponent of program 0."""
        return (self.bits or self.contract.p.bit_length()) if self.random_blind else self.layout.powers[0].bits

    def _words_of_digits(self, program: PowerProgram, bits: int) -> int:
        """Words of the digits of exponents of ``bits`` bits that are blinded inside."""
        return words_of_digits(program, bits + self.public_exponent.bit_length() + self.random_blind)

    def _blinded(self, program: PowerProgram, bits: int) -> int:
        """Length of exponents of ``bits`` bits for the program: if they are blinded, that of whole words of digits."""
        return whole_words(program, self._words_of_digits(program, bits)) if self.random_blind else bits

    def _length(self, program: int, bits: int) -> int:
        """Length for the program of exponents of ``bits`` bits (0: the maximum). Raises UnsupportedError for more."""
        chosen = self.layout.powers[program]
        if program or not self.random_blind:
            return bits or chosen.bits
        if bits > self.exponent_bits:
            raise UnsupportedError(f"exponents of this engine must have at most {self.exponent_bits} bits, got {bits}")
        return self._blinded(chosen.program, bits or self.exponent_bits)

    def described(self, program: int, bits: int = 0) -> tuple[str, int]:
        """Name of a program, and its products for exponents of ``bits`` bits (0: the maximum)."""
        chosen = self.layout.powers[program]
        return chosen.program.name, chosen.program.products(self._length(program, bits))

    def job(self, program: int, pairs: Sequence[tuple[int, int]], bits: int = 0) -> list[int]:
        """The message with one (base, exponent) for each thread; exponents have ``bits`` bits (0: the maximum). Raises
        UnsupportedError for numbers out of range."""
        made, lay = self.blinding, self.layout
        if made is None or program:
            return lay.power_job(program, pairs, bits)
        if len(pairs) != lay.threads:
            raise UnsupportedError(f"this engine does {lay.threads} powers at once, not {len(pairs)}")
        length, size = self._length(program, bits), made.scalar_words(self.word)
        bits = bits or self.exponent_bits
        require_range([exponent for _, exponent in pairs], 1 << bits, f"exponents must be in [0, 2^{bits})")
        words = [1, words_of_digits(lay.powers[0].program, length), size]
        for base, exponent in pairs:
            words += [*words_of(exponent, size, self.word), *lay.number(base)]
        return words

    def public_exponents(self) -> Iterator[tuple[int, int]]:
        """(exponent, bits) that a check gives to program 1 besides 65537: none."""
        return iter(())

    def cycles(self, program: int, bits: int = 0) -> int:
        """Cycles from the last word of a job to the first word of its powers; exponents have ``bits`` bits (0: the
        maximum)."""
        return self._sample.cycles(program, self.layout.passes(program, self._length(program, bits))) + self.waits

    @property
    def commands(self) -> tuple[Command, ...]:
        return Command(0, "setup", len(self.setup(self.fitted)) - 1, 0), *(
            Command(1 + k, name, shape.words(shape.most), self.layout.answer_words(k), shape,
                    secret=0 if k else shape.varying(shape.most))
            for k, (name, shape) in enumerate(zip(POWERS, map(self._counted, range(len(POWERS))), strict=True))
        )  # fmt: skip

    def _counted(self, program: int) -> Counted:
        """How the length of a job depends on its number of passes; a program without a loop has 0 passes."""
        lay, made = self.layout, self.layout.programs[program]
        if made_inside := self.blinding:
            size = made_inside.scalar_words(self.word) * (not program)
            most = lay.digit_words(program)
            return Counted(most, 0, size, 0, made_inside.number_words(program, lay), lay.threads, True)
        times = max(sum(instruction.advance for instruction in p.loop) for p in lay.programs)
        outside = sum(instruction.advance for instruction in (*made.before, *made.after))
        shift, numbers = lay.per_word.bit_length() - 1, len(made.inputs) * lay.number_words
        return Counted(made.passes, times, outside + lay.per_word - 1, shift, numbers, lay.threads, True)

    @property
    def calls(self) -> PowerCalls | None:
        lay, bits = self.layout, self.fitted.p.bit_length()
        if not lay.binary or self.word != WORD or lay.offset_multiples or lay.conditional_subtracts:
            return None
        found = loading([x.contract(self.io) for x in (self.fitted, *self.fitted.others())], bits)
        if found is None:
            return None
        program, instructions = lay.powers[0].program, lay.programs[0]
        each = sum(instruction.advance for instruction in instructions.loop)
        most = max(max(dealt.words, dealt.answer) for dealt in (c.dealt(self.cores) for c in self.commands))
        if self.key_slots:
            setup, power, _ = self.commands
            most = max(most, setup.words + power.head + power.secret)
        return PowerCalls(
            bits, self.exponent_bits, lay.number_words, self.cores * lay.threads, program.window, program.gray, each,
            lay.digit_bits, lay.per_word, max(1, lay.rounds), lay.key_words, found, lay.numbers_of_modulus, most,
            self.checked_by, self.inverts,
            self.public_exponent.bit_length() + self.random_blind if self.random_blind else 0, program.exponents,
        )  # fmt: skip

    def messages_for_bus(self) -> Iterator[Message]:
        return self.messages(full=False)

    def exchanges(self) -> Iterator[Exchange]:
        """With key slots also a job of random powers, which depend on each digit of an exponent."""
        yield from super().exchanges()
        if self.key_slots:
            p, bits, rnd = self.fitted.p, self.tried_length(SHORT), random.Random(3)
            pairs = [self.drawn(rnd, p, bits) for _ in range(self.results)]
            yield from self._dealt({0: [self.message(p, 0, bits, pairs)]})

    def at(self, p: int) -> DesignInstance:
        """The multiplier with ``p`` loaded. Raises UnsupportedError if p cannot be loaded, and if it is shorter than
        random factors."""
        size = self.fitted.p.bit_length()
        if self.blind_messages and p.bit_length() != size:
            raise UnsupportedError(
                f"this engine blinds messages with numbers of {size - 1} bits: moduli must have {size} bits, got "
                f"{p.bit_length()}"
            )
        return self.fitted if p == self.fitted.p else self.fitted.at(p)

    def setup(self, fitted: DesignInstance) -> list[int]:
        """Words of SETUP. Raises UnsupportedError if the programs could overflow with this modulus."""
        return self.layout.setup(self.contract_at(fitted))

    def simulate(
        self, fitted: DesignInstance, program: int, pairs: Sequence[tuple[int, int]], bits: int = 0
    ) -> Simulated:
        """Simulate powers of any number of (base, exponent), exponents of ``bits`` bits (0: the maximum).

        Raises ToolError for a violation of the stream protocol and for missing words.
        """
        setups = [self.setup(fitted)]
        return self._simulated(program, fitted.p, setups, pairs, lambda batch: self.job(program, batch, bits))

    def trial(self) -> Trial:
        """Simulate two jobs with exponents of full length for each machine, and two with 65537."""
        p, bits = self.fitted.p, self.exponent_bits
        rnd = random.Random(1)
        pairs = [self.drawn(rnd, p, bits) for _ in range(2 * self.cores * self.results)]
        found = self._tried(self.simulate(self.fitted, 0, pairs), [(pow(*pair, p),) for pair in pairs], "power")
        return replace(found, more=self._tried_public())

    def _tried_public(self) -> dict[str, int]:
        """Simulate two jobs of program 1 for each machine: cycles of one alone, and between answers of a machine.
        Raises ToolError for a wrong result."""
        p, rnd = self.fitted.p, random.Random(2)
        bases = [rnd.randrange(p) for _ in range(2 * self.cores * self.results)]
        found = self.simulate(self.fitted, 1, [(base, PUBLIC) for base in bases], PUBLIC.bit_length())
        made = self._tried(found, [(pow(base, PUBLIC, p),) for base in bases], "power")
        return {"e65537": made.latency, "e65537_period": made.period}

    @property
    def options(self) -> dict[str, Any]:
        lay = self.layout
        return {
            "bits": self.exponent_bits, "method": self.method, "window": self.window, "threads": lay.threads,
            "word": lay.word, "io": self.io, "native": self.numbered, "cores": self.cores, "top": self.top,
            **self.behind, **self.protection, **self.from_port,
            **({"public_exponent": self.public_exponent} if self.public_exponent != PUBLIC else {}),
        }  # fmt: skip

    def about(self) -> dict[str, Any]:
        modulus = "loaded" if self.fitted.load else hex(self.fitted.p)
        return {"modulus_bits": self.fitted.p.bit_length(), "modulus": modulus, **super().about()}

    def stated(self) -> dict[str, Any]:
        """What `record` states of every engine for powers."""
        contract = self.contract
        return {
            "modmill": __version__,
            "design": self.design,
            "given": dict(self.given),
            "options": self.options,
            "made_for": hex(self.fitted.p),
            "parameters": dict(self.fitted.settings),
            "modulus": "loaded" if contract.load else hex(contract.p),
            "modulus_bits": contract.p.bit_length(),
            "power_up_reset": self.power_up,
            "number_words": self.layout.number_words,
            "ports": engine_files.stream_ports(self.layout.word, alarm=self.alarmed, random=bool(self.random_blind)),
            "multiplier": contract.describe(),
            "digest": digest(self.verilog),
            "netlist": self.digest,
            **engine_files.bus_entry(self),
        }

    def record(self) -> dict[str, Any]:
        lay, contract = self.layout, self.contract
        return {
            **self.stated(),
            "number": contract.operand.describe(),
            "setup": {
                "modulus_words": lay.number_words * max(1, lay.rounds) if contract.load else 0,
                "key_words": len(contract.load.words) * lay.key_words if contract.load else 0,
                "numbers": list(lay.numbers_of_modulus),
            },
            "subtractions": lay.subtractions,
            "rounds": lay.rounds,
            "digits_in_a_word": lay.per_word,
            "digit_bits": lay.digit_bits,
            "cycles_per_instruction": lay.timing.issue_cycles,
            "slots_in_use": lay.used,
            "programs": [
                {
                    "command": 1 + k, "name": e.program.name, "exponent_bits": e.bits if k else self.exponent_bits,
                    "products": e.products,
                    "digits": instructions.digits, "digit_words": lay.digit_words(k), "passes": instructions.passes,
                    "instructions": instructions.instructions,
                    **({"checked_by": e.program.check_exponent} if e.program.check_exponent else {}),
                    **({"scalar_words": self._counted(k).plus} if self.random_blind and not k else {}),
                    "cycles": self.cycles(k),
                } for k, (e, instructions) in enumerate(zip(lay.powers, lay.programs, strict=True))
            ],
        }  # fmt: skip

    def setting(self, fitted: DesignInstance) -> Message:
        """The SETUP message for a modulus."""
        return Message(self.setup(fitted), {"modulus": hex(fitted.p)})

    def message(self, p: int, program: int, bits: int, pairs: Sequence[tuple[int, int]]) -> Message:
        """A job modulo p; ``bits``: length of the exponents; ``pairs``: (base, exponent) for each thread."""
        powers = [pow(*pair, p) for pair in pairs]
        shown = [[hex(x) for x in (*pair, power)] for pair, power in zip(pairs, powers, strict=True)]
        return Message(
            self.job(program, pairs, bits), {"exponent_bits": bits, "powers": shown}, "power", program,
            p, [(power,) for power in powers], self.cycles(program, bits), self.fitted.choice,
        )  # fmt: skip

    def messages(self, *, full: bool = True) -> Iterator[Message]:
        """Yield SETUP, with ``full`` a job with exponents of full length, then edge cases and random runs (`batches`)
        with short exponents and with 65537."""
        p, longest = self.fitted.p, self.exponent_bits
        rnd = random.Random(1)

        def jobs(bits: int, edges: list[tuple[int, int]], exponent: int = 0) -> list[list[tuple[int, int]]]:
            return list(batches(
                edges, lambda: (rnd.randrange(p), exponent) if exponent else self.drawn(rnd, p, bits),
                lambda pair: pow(*pair, p), lambda power: power in (0, 1, p - 1), self.results, self.cores,
            ))  # fmt: skip

        short = self.tried_length(SHORT)
        ones = (1 << short) - 1
        yield self.setting(self.fitted)
        if full and longest > short:
            yield self.message(p, 0, longest, jobs(longest, [])[0])
        edges = self.released(p, [(p - 1, ones), (0, 0), (1, ones), (p - 1, 1), (2 % p, 0), (0, 1)])
        yield from (self.message(p, 0, short, pairs) for pairs in jobs(short, edges))
        public = [(base, PUBLIC) for base in (0, 1, p - 1)]
        yield from (self.message(p, 1, PUBLIC.bit_length(), pairs) for pairs in jobs(0, public, PUBLIC))

    def page(self, record: Mapping[str, Any]) -> str:
        return page(record)

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Self:
        chosen = find_design(record["design"])
        fitted = chosen.fit(int(record["made_for"], 16), **chosen.checked(record["given"]))
        return cls(record["design"], fitted, record["given"], **record["options"])


def prepared(
    design: str, p: int, width: int, settings: Mapping[str, Any] | None, e: int = 0
) -> tuple[str, DesignInstance, dict[str, Any]]:
    """Design, instance and settings for an engine, for a prime of `pairs.whole` if there is an ``e``; raises as
    `engine` does."""
    chosen = find_design(design)
    given = chosen.checked(settings or {})
    if any(s.name == "loadable" for s in chosen.settings) and "loadable" not in given and not p:
        given["loadable"] = True
    fitted = chosen.fit(p or (powers.primes_for(width, e)[0] if e else prev_prime(1 << width)), **given)
    if not p and fitted.load is None:
        raise UnsupportedError(
            f"{design} has its modulus built in: give the modulus or key for the engine, or take a design that loads it"
        )
    return design, fitted, given


def engine(
    design: str, p: int = 0, width: int = 0, settings: Mapping[str, Any] | None = None, **options: Any
) -> EngineCore:
    """Make an engine around ``design`` for the modulus ``p`` or, if ``p`` is 0, for moduli of ``width`` bits that are
    loaded; ``options`` as in `EngineCore`.

    Raises UnsupportedError if the design does not support the modulus, or cannot load one.
    """
    e = options.get("public_exponent", PUBLIC) if options.get("blind_messages") else 0
    return EngineCore(*prepared(design, p, width, settings, e), **options)


read = EngineCore.read
