# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The interface of a design: one value of ``Design`` for each named instance, and ``DesignInstance`` for one modulus.

Each design has an algorithm (``trace``, integers in the paper's letters), a machine (``component``) and a schedule
(``schedule``, data). Contract, cycle counts, chart and cost are derived from these three.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from amaranth.hdl import UnusedElaboratable

from modmill.contract import Binary, Contract, Form, Load, Timing, UnsupportedError
from modmill.interface import Multiplier, SlotMachine
from modmill.numbers.moduli import MAX_BITS
from modmill.numbers.shown import name as shown_name
from modmill.numbers.shown import near, shortened
from modmill.schedule import Schedule
from modmill.twice import Twice, plain

IO: tuple[str, ...] = ("plain", "montgomery", "native")
"""The forms of a core: binary operands and the product a b mod p; binary operands and a b R^-1 mod p; the design's own
representation. Only a Montgomery multiplier offers the second."""
PLAIN: tuple[str, ...] = ("plain", "native")
"""The forms of a design that is no Montgomery multiplier."""
SIZE_MAX = 8000
"""Largest predicted size of a core that is built, in parts (`DesignInstance.size`): about three minutes."""
_TRUTH = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}

# Cores of this package are often made only to be asked for ports or timing.
warnings.filterwarnings("ignore", category=UnusedElaboratable, module=r".*\bmodmill\b")


def loadable_modulus(p: int, bits: int) -> int:
    """``p`` itself. Raises UnsupportedError unless it is odd, at least 3 and below 2^bits."""
    if p < 3 or p % 2 == 0 or p >> bits:
        raise UnsupportedError(f"the modulus must be odd, at least 3 and below 2^{bits}, got {shortened(p)}")
    return p


Limits = Callable[[int, Mapping[str, Any]], tuple[int, int]]
"""Maps a modulus and all settings of the design to the least and the largest value of one setting."""


@dataclass(frozen=True)
class Setting:
    """One parameter that a user can set: its type, default, meaning, and the values it may take.

    ``least``, ``most``: limits of a whole number for every modulus. ``limits`` narrows them for a modulus and the other
    settings; ``depends`` explains this in words. The default is accepted for every modulus; a design lowers it if it is
    too large. If `automatic`, 0 lets the design choose and is accepted outside ``limits`` too. ``smaller``: how to
    change the setting for a smaller core, such as ``lower``; empty if it has little effect. ``room``: more of it leaves
    an engine's sums more room in an operand.
    """

    name: str
    kind: type
    default: Any
    meaning: str
    choices: tuple[Any, ...] = ()
    least: int | None = None
    most: int | None = None
    depends: str = ""
    limits: Limits | None = None
    smaller: str = ""
    room: bool = False

    @property
    def automatic(self) -> bool:
        """Whether 0 lets the design choose: for a whole number whose default and least value are 0."""
        return self.kind is int and self.default == 0 and self.least == 0

    def range(self, p: int, values: Mapping[str, Any]) -> tuple[int | None, int | None]:
        """The least and the largest value for modulus p, without an automatic 0; None: no limit. ``values``: all
        settings of the design. Raises the design's ValueError if it has no parameters for the modulus."""
        if self.limits is None:
            return (1 if self.automatic else self.least), self.most
        least, most = self.limits(p, values)
        return max(least, self.least or 0), min(most, most if self.most is None else self.most)

    def check_for(self, p: int, values: Mapping[str, Any]) -> None:
        """Raise UnsupportedError if this setting's value in ``values`` is outside `range`, and not the default."""
        value = values[self.name]
        if self.limits is None or value == self.default:
            return
        least, most = self.range(p, values)
        if least is None or most is None or least <= value <= most:
            return
        zero = "0 or " if self.automatic else ""
        accepted = f"only {self.default}" if most < least else f"{zero}{least} to {most}"
        where = f"for this {p.bit_length()}-bit modulus"
        raise UnsupportedError(f"{self.name} takes {accepted} {where}, not {shortened(value)}: {self.depends}")

    def parse(self, given: Any) -> Any:
        """The value of a text, or ``given`` itself. Raises UnsupportedError for a text that is no value of the type,
        for another type, and for a value that no modulus accepts."""
        value = given
        try:
            if isinstance(given, str):
                value = _TRUTH[given.lower()] if self.kind is bool else self.kind(given)
            wrong = type(value) is not self.kind or (self.choices and value not in self.choices)
            if not wrong and self.kind is int:
                wrong = (self.least is not None and value < self.least) or (self.most is not None and value > self.most)
        except (KeyError, ValueError):
            wrong = True
        if wrong:
            raise UnsupportedError(f"{self.name} takes {self.accepts}, not {shortened(value)}")
        return value

    @property
    def accepts(self) -> str:
        """The values that the setting takes for any modulus, in words."""
        if self.choices:
            return "one of " + ", ".join(map(str, self.choices))
        if self.least is not None:
            return f"a whole number from {self.least} {'on' if self.most is None else f'to {self.most}'}"
        return {int: "a whole number", bool: "true or false", str: "a text"}[self.kind]

    def describe(self) -> dict[str, Any]:
        """The setting as plain data for JSON, without its functions."""
        return {
            "name": self.name, "type": self.kind.__name__, "default": self.default, "meaning": self.meaning,
            "choices": list(self.choices), "least": self.least, "most": self.most, "depends": self.depends,
        }  # fmt: skip


@dataclass(frozen=True)
class Cost:
    """Predicted cost: DSP blocks, bits of constants, and channel multiplications of one product."""

    dsp: int
    memory_bits: int
    multiplications: int


@dataclass(frozen=True)
class Source:
    """The publication of an algorithm or architecture."""

    authors: str
    title: str
    venue: str
    year: int
    section: str

    def __str__(self) -> str:
        return f"{self.authors}: {self.title}. {self.venue}, {self.year}, {self.section}"

    @property
    def part(self) -> str:
        """Authors, year and the part of the publication, for the comments of modules."""
        return f"{self.authors}, {self.year}: {self.section}"


class DesignInstance(ABC):
    """A design with all parameters chosen for one modulus."""

    p: int
    settings: dict[str, Any]
    operands = 2
    """1 for a core with one operand, o = a * factor (mod p); ``trace`` and ``corners`` then have b = 0."""
    forms: tuple[str, ...] = PLAIN
    """The forms that the design offers, of `IO`."""
    one_block = False
    """Whether each of `Cost.multiplications` takes one DSP block for one cycle: a slot."""
    power_up = 1
    """Least number of cycles of the first reset after power-up (see Contract)."""

    @property
    def starts(self) -> int:
        """The time slot after a reset in which the idle core takes its first operands in the form ``native``, if it
        takes them only at the start of a time slot; slot 0 begins with the cycle after the reset."""
        return 1

    @property
    def places(self) -> int:
        """Most products in the core in the form ``native``, those whose results wait included."""
        return self.schedule.in_flight + 1

    @property
    def alarm(self) -> bool:
        """Whether the cores check their products and have an alarm (see Contract)."""
        return False

    @property
    @abstractmethod
    def factor(self) -> int:
        """The factor in o = a * b * factor (mod p): 1, or R^-1 mod p."""

    @property
    @abstractmethod
    def schedule(self) -> Schedule:
        """The steps of one product on the machine's units."""

    @property
    @abstractmethod
    def representation(self) -> Form:
        """Native representation of operands; also of results, unless ``result_form`` differs."""

    @property
    def result_form(self) -> Form:
        """Native representation of results."""
        return self.representation

    @property
    @abstractmethod
    def bounds(self) -> tuple[Fraction, Fraction, Fraction]:
        """Operand bound (multiple of p), product bound (of p^2), result bound (of p), exclusive."""

    @property
    def gain(self) -> Fraction:
        """Slope of the result bound over the product bound (see Contract)."""
        return Fraction(0)

    @property
    def load(self) -> Load | None:
        """The words that load p, if the modulus is loaded and the RTL depends only on its width; else None."""
        return None

    def at(self, p: int) -> DesignInstance:
        """The same core with another modulus loaded. Raises UnsupportedError if the core cannot load it."""
        raise UnsupportedError("the modulus of this core is built in; only a core with a loaded modulus takes another")

    @property
    def choices(self) -> int:
        """Number of choices of bases that can be loaded with the modulus; 1 if they are built in."""
        return 1

    @property
    def choice(self) -> int:
        """The number of the bases that are loaded; 0: the first ones, or those that are built in."""
        return 0

    def choose(self, choice: int) -> DesignInstance:
        """The same core with other bases loaded, a number below `choices`: the same products, with another factor and
        other constants. Raises UnsupportedError for another number."""
        if not 0 <= choice < self.choices:
            raise UnsupportedError(f"a choice of bases of this core is below {self.choices}, not {shortened(choice)}")
        return self

    def others(self) -> list[DesignInstance]:
        """The same core with edge moduli loaded: all bits set, only the first and last bit set, and a small modulus."""
        if self.load is None:
            return []
        bits = self.p.bit_length()
        found = []
        for first, step in (((1 << bits) - 1, -2), ((1 << bits - 1) + 1, 2), (3, 2)):
            for p in range(first, first + 100 * step, step):  # tries 100 moduli around each edge
                with suppress(UnsupportedError):
                    found.append(self.at(p))
                    break
        return [fitted for fitted in found if fitted.p != self.p]

    def slot_machine(self, numbers: int) -> SlotMachine:
        """A machine with ``numbers`` slots for numbers in the design's native representation. Raises UnsupportedError
        if the design has none, or if ``numbers`` exceeds its memory."""
        raise UnsupportedError("this design has no slot machine")

    def slot_contract(self, numbers: int) -> Contract:
        """The native contract, with the words of stream k in the order of `slot_machine`; raises as that does."""
        contract = self.contract("native")
        words = tuple(self.slot_machine(numbers).modulus_words)
        return replace(contract, load=replace(contract.load, words=words)) if contract.load else contract

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """Predicted cost of the native core."""

    @property
    def size(self) -> int:
        """Predicted size in parts, each emitted in 10 to 50 ms: a DSP block, or, without these, 32 bits of adders."""
        return self.cost.dsp

    @abstractmethod
    def trace(self, a: int, b: int) -> Iterator[tuple[str, Any]]:
        """The bit-exact algorithm on port values: (name, value) of every intermediate, the result last."""

    @abstractmethod
    def component(self, *, scaled: bool = False) -> Multiplier:
        """The native core. ``scaled``: results as gamma_i = r_i * M_i^-1 mod m_i (for conversion to binary)."""

    @abstractmethod
    def facts(self) -> list[tuple[str, str]]:
        """Constants and bounds for `explain` and the data sheet: (name, value)."""

    @abstractmethod
    def corners(self) -> list[tuple[int, int]]:
        """Operand pairs, as native port values, at the edges of every approximation in the algorithm."""

    def contract(self, io: str) -> Contract:
        """The contract of the core in one form of `IO`."""
        if io == "plain" and self.twice:
            return plain(self.contract("montgomery"), self.binary_component().lead)
        operand: Form
        result: Form
        if io == "native":
            operand, result, bounds, gain = self.representation, self.result_form, self.bounds, self.gain
            timing = self.schedule.timing
        else:
            operand = result = Binary(self.width)
            bounds, gain, timing = (Fraction(1), Fraction(1), Fraction(1)), Fraction(0), self.binary_timing()
        factor, load = (self.factor, self.load) if io == "native" else (self.binary_factor, self.binary_load)
        return Contract(
            self.p, factor, io, operand, result, *bounds, timing, gain, self.operands, load, self.power_up, self.alarm
        )

    @property
    def width(self) -> int:
        """Bits of a binary operand: those of p, or of the largest modulus that can be loaded."""
        return self.p.bit_length()

    @property
    def binary_factor(self) -> int:
        """`factor` of the form `binary`."""
        return self.factor

    @property
    def binary_load(self) -> Load | None:
        """`load` of the form `binary`."""
        return self.load

    @property
    def binary(self) -> str:
        """The form with binary operands that multiplies once: ``montgomery`` if the design has it, else ``plain``."""
        return "montgomery" if "montgomery" in self.forms else "plain"

    @property
    def engine_forms(self) -> tuple[str, ...]:
        """The forms for an engine: those of `forms` that multiply once."""
        return tuple(form for form in self.forms if form in ("native", self.binary))

    @property
    def twice(self) -> bool:
        """Whether the plain form multiplies twice, to remove the factor of this modulus, or of one that is loaded."""
        return self.binary == "montgomery" and (self.binary_factor != 1 or self.load is not None)

    @abstractmethod
    def binary_timing(self) -> Timing:
        """Timing of the form `binary`."""

    @abstractmethod
    def binary_component(self) -> Multiplier:
        """The core with binary operands below p and canonical results, a b factor mod p."""

    def core(self, io: str) -> Multiplier:
        """The core in one form of `IO`."""
        if io == "native":
            return self.component()
        once = self.binary_component()
        return Twice(once, self.contract("montgomery")) if io == "plain" and self.twice else once

    def multiply(self, a: int, b: int) -> int:
        """a b factor, or a factor with one operand, by the bit-exact algorithm: congruent modulo p, not always below p.
        Raises ValueError for an operand that the representation cannot hold."""
        form = self.representation
        *_, (_, result) = self.trace(form.encode(a), form.encode(b) if self.operands == 2 else 0)
        return self.result_form.decode(result)

    def binary_multiply(self, a: int, b: int) -> int:
        """a b `binary_factor`, or a `binary_factor` with one operand, below p. Raises ValueError as `multiply`."""
        return self.multiply(a, b) * self.binary_factor * pow(self.factor, -1, self.p) % self.p


@dataclass(frozen=True)
class Design:
    """A named instance of a published design.

    ``name``: its name on the command line; ``page``: its page in the documentation; ``needs``: the accepted moduli, in
    words; ``solve``: chooses the parameters for a modulus and all settings; ``paper``: the paper's name of the
    instance; ``operands``: 1 for a design whose cores have one operand.
    """

    name: str
    page: str
    title: str
    source: Source
    needs: str
    settings: tuple[Setting, ...]
    solve: Callable[..., DesignInstance]
    paper: str = ""
    operands: int = 2

    def fit(self, p: int, **settings: Any) -> DesignInstance:
        """Choose every parameter for the modulus ``p``, an odd number of 2 to 8192 bits. Raises UnsupportedError, with
        the numbers, if the design does not serve the modulus or a setting is wrong."""
        given = self.checked(settings)
        values = {s.name: s.default for s in self.settings} | given
        if p < 3 or p % 2 == 0:
            raise UnsupportedError(f"the modulus must be odd and at least 3, got {shortened(p)}")
        if p.bit_length() > MAX_BITS:
            raise UnsupportedError(f"the modulus has {p.bit_length():,} bits; at most {MAX_BITS:,} are accepted")
        try:
            for setting in self.settings:
                if setting.name in given:
                    setting.check_for(p, values)
            return self.solve(p, **values)
        except UnsupportedError:
            raise
        except ValueError as error:
            raise UnsupportedError(f"{self.name} does not serve this {p.bit_length()}-bit modulus: {error}") from error

    def roomier(self, p: int, given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """``given``, then with ever more `room` for sums where no value is given."""
        yield dict(given)
        values = {s.name: s.default for s in self.settings} | dict(given)
        for setting in self.settings:
            if setting.room and setting.name not in given:
                _, most = setting.range(p, values)
                yield from ({**given, setting.name: k} for k in range(setting.default + 1, (most or 0) + 1))

    def require_size(self, fitted: DesignInstance) -> None:
        """Raise UnsupportedError, with the predicted size and the setting to change, for a core above SIZE_MAX."""
        if fitted.size <= SIZE_MAX:
            return
        hints = [f"{s.smaller} {s.name} (now {fitted.settings[s.name]})" for s in self.settings if s.smaller]
        raise UnsupportedError(
            f"{self.name} for this {fitted.p.bit_length()}-bit modulus has a predicted size of {fitted.size:,} parts "
            f"(DSP blocks, or 32 bits of adders each); at most {SIZE_MAX:,} are built: "
            f"{' or '.join(hints) or 'take a shorter modulus'}"
        )

    def range(self, name: str, p: int, **settings: Any) -> tuple[int | None, int | None]:
        """`Setting.range` of the setting ``name``, the others given or at their defaults. Raises UnsupportedError for
        an unknown name, and if the design does not serve the modulus."""
        values = {s.name: s.default for s in self.settings} | self.checked(settings)
        return self._setting(name).range(p, values)

    def checked(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Settings with texts parsed. Raises UnsupportedError for an unknown name, a wrong type or value."""
        known = {name: self._setting(name) for name in settings}
        return {name: known[name].parse(value) for name, value in settings.items()}

    def _setting(self, name: str) -> Setting:
        known = {s.name: s for s in self.settings}
        if name not in known:
            takes = "; ".join(filter(None, [near(name, known), f"it takes {', '.join(known) or 'none'}"]))
            raise UnsupportedError(f"{self.name} has no parameter {shortened(name)}; {takes}")
        return known[name]


def parse_set(texts: Sequence[str]) -> dict[str, str]:
    """``key=value`` texts as a mapping. Raises UnsupportedError for a text without ``=`` and for a key given twice."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UnsupportedError(f"--set takes KEY=VALUE, not {shortened(text)}")
        if name in found:
            raise UnsupportedError(f"--set {shown_name(name)} is given twice")
        found[name] = value
    return found
