# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What every published design offers: one value of ``Design`` per named instance, and ``Fitted`` for one modulus.

Three things are kept apart: the algorithm (``trace``, integers in the paper's letters), the machine (``component``)
and the schedule (``schedule``, data). Everything else - contract, cycles, chart, cost - follows from them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.contract import Binary, Contract, Form, Load, Refusal, Timing
from modmill.numbers.moduli import MAX_BITS
from modmill.numbers.shown import name as shown_name
from modmill.numbers.shown import shortened
from modmill.schedule import Schedule

IO = ("binary", "native")
SIZE_MAX = 8000
"""Largest predicted size of a core that is built, in parts (`Fitted.size`): about three minutes."""
_TRIED = 100
"""Moduli that are tried around an edge."""


def multiplier_ports(a: int, b: int, r: int, k: int = 0) -> dict[str, Any]:
    """Members of the multiplier interface for operands of ``a`` and ``b`` bits and results of ``r`` bits.

    A core with one operand (a conversion or a reduction) has ``b`` = 0 and no port i_b; ``k`` is the width of the words
    that load a modulus, 0 if it is fixed.
    """
    return {
        **({"k_valid": In(1), "k_ready": Out(1), "k_m": In(k)} if k else {}),
        "i_valid": In(1),
        "i_ready": Out(1),
        "i_a": In(a),
        **({"i_b": In(b)} if b else {}),
        "o_valid": Out(1),
        "o_ready": In(1),
        "o_r": Out(r),
    }


def numbered_ports(slot: int, number: int, k: int = 0) -> dict[str, Any]:
    """Members of a slot machine's interface, for slot numbers and numbers of so many bits. Streams, in which a transfer
    happens in every cycle in which valid and ready are both high:

    i    an operation: slot[i_destination] = slot[i_a] slot[i_b] factor, and with i_sum
         (slot[i_a] slot[i_b] + slot[i_c] slot[i_e]) factor
    x    a number for slot x_slot; an operation accepted after it can read it
    q    a slot whose number is asked for. The numbers leave at o, in order
    k    words of a modulus, as of a multiplier, where ``k`` is their width
    """
    return {
        **({"k_valid": In(1), "k_ready": Out(1), "k_m": In(k)} if k else {}),
        "i_valid": In(1), "i_ready": Out(1), "i_sum": In(1),
        **{f"i_{name}": In(slot) for name in ("destination", "a", "b", "c", "e")},
        "x_valid": In(1), "x_ready": Out(1), "x_slot": In(slot), "x_number": In(number),
        "q_valid": In(1), "q_ready": Out(1), "q_slot": In(slot),
        "o_valid": Out(1), "o_ready": In(1), "o_number": Out(number),
    }  # fmt: skip


class SlotMachine(wiring.Component):
    """A machine with numbered slots: numbers stay in it between operations.

    It takes one operation every ``interval`` cycles at most and does not wait for results: an operation may read what
    another wrote if at least ``distance`` intervals lie between their acceptances. ``kept`` as of a multiplier.
    """

    kept: tuple[str, ...] = ()
    modulus_words: Sequence[int] = ()
    """The words of stream k that load the modulus it was made for. They need not be those of the design's multiplier:
    the machine's schedule settles the order of its constants."""

    def __init__(self, slot: int, number: int, *, interval: int, distance: int, k: int = 0) -> None:
        self.interval, self.distance = interval, distance
        super().__init__(numbered_ports(slot, number, k))


class Multiplier(wiring.Component):
    """A core with the multiplier interface.

    ``probes`` lists (name, signal, cycle): the value that the algorithm calls ``name`` stands in ``signal`` in that
    cycle after the operands were accepted in cycle 0 (a list of signals for a vector). ``period``: operands are
    accepted only in every such cycle after reset, the first of them included, and only when they were valid ``lead``
    cycles earlier. ``kept``: names of submodules that synthesis must not dissolve before it has optimised them.
    ``k``: width of the words of stream k, which loads the modulus, 0 if the modulus is fixed.
    """

    kept: tuple[str, ...] = ()

    def __init__(self, a: int, b: int, r: int, *, period: int = 1, lead: int = 0, k: int = 0) -> None:
        self.period, self.lead = period, lead
        self.probes: list[tuple[str, Any, int]] = []
        super().__init__(multiplier_ports(a, b, r, k))

    def read_in(self, operand: int, bit: int) -> tuple[int, int]:
        """First and last cycle in which a bit of operand 0 (a) or 1 (b) is looked at, acceptance being in cycle 0.

        It need not stand in any other: a subclass says less than from ``lead`` cycles earlier on where it knows.
        """
        return -self.lead, 0

    def stands(self, bit: int) -> int:
        """Cycles for which a bit of a result stays at the port after that in which the result is valid, where each
        result is taken at once."""
        return 0


def unused(component: Any) -> Any:
    """The same component, made for what it says of itself and not to be built: Amaranth does not warn of it or of the
    components that it holds."""
    waiting = [component]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Elaboratable) and not part._MustUse__used:
            part._MustUse__used = True
            waiting += vars(part).values()
        elif isinstance(part, list | tuple):
            waiting += part
    return component


Limits = Callable[[int, Mapping[str, Any]], tuple[int, int]]
"""The least and the largest value of a setting for a modulus, all settings of the design being given."""


@dataclass(frozen=True)
class Setting:
    """One parameter that a user can set: its type, default, meaning, and the values it may take.

    ``least``, ``most``: limits of a whole number for every modulus. ``limits`` narrows them for a modulus and the other
    settings, and ``depends`` says in words how. The default serves every modulus: a design lowers it where it is too
    large. Where ``least`` is 0 and ``automatic`` is set, 0 lets the design choose, whatever ``limits`` gives.
    ``smaller``: what to do with it for a smaller core, such as ``lower``; empty where it has little to say.
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

    @property
    def automatic(self) -> bool:
        """Whether 0 lets the design choose."""
        return self.kind is int and self.default == 0 and self.least == 0

    def check(self, value: Any) -> Any:
        """``value`` itself. Raises Refusal when it has another type or lies outside what any modulus accepts."""
        wrong = type(value) is not self.kind or (self.choices and value not in self.choices)
        if not wrong and self.kind is int:
            wrong = (self.least is not None and value < self.least) or (self.most is not None and value > self.most)
        if wrong:
            raise Refusal(f"{self.name} takes {self.accepts}, not {shortened(value)}")
        return value

    def range(self, p: int, values: Mapping[str, Any]) -> tuple[int | None, int | None]:
        """The least and the largest value for a modulus, 0 not counted where it is automatic. ``values``: of all
        settings of the design. Raises what the design's parameters raise where it has none for the modulus."""
        if self.limits is None:
            return (1 if self.automatic else self.least), self.most
        least, most = self.limits(p, values)
        return max(least, self.least or 0), min(most, most if self.most is None else self.most)

    def check_for(self, p: int, values: Mapping[str, Any]) -> None:
        """Raise Refusal when the value among ``values`` is outside `range`. The default always passes."""
        value = values[self.name]
        if self.limits is None or value == self.default:
            return
        least, most = self.range(p, values)
        if most is not None and least is not None and most < least:
            raise Refusal(
                f"{self.name} takes nothing but {self.default} for this {p.bit_length()}-bit modulus, "
                f"not {shortened(value)}: {self.depends}"
            )
        if not (least or 0) <= value <= (value if most is None else most):
            zero = "0 or " if self.automatic else ""
            raise Refusal(
                f"{self.name} takes {zero}{least} to {most} for this {p.bit_length()}-bit modulus, "
                f"not {shortened(value)}: {self.depends}"
            )

    def parse(self, text: str) -> Any:
        """The value that ``text`` stands for. Raises Refusal with what would be accepted."""
        try:
            value = (
                {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}[text.lower()]
                if self.kind is bool
                else self.kind(text)
            )
        except (KeyError, ValueError):
            raise Refusal(f"{self.name} takes {self.accepts}, not {shortened(text)}") from None
        return self.check(value)

    @property
    def accepts(self) -> str:
        """What the setting takes, in words, for every modulus."""
        if self.choices:
            return "one of " + ", ".join(map(str, self.choices))
        if self.least is not None:
            return f"a whole number from {self.least} {'on' if self.most is None else f'to {self.most}'}"
        return {int: "a whole number", bool: "true or false", str: "a text"}[self.kind]

    def describe(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "name": self.name, "type": self.kind.__name__, "default": self.default, "meaning": self.meaning,
            "choices": list(self.choices), "least": self.least, "most": self.most, "depends": self.depends,
        }  # fmt: skip


@dataclass(frozen=True)
class Cost:
    """What the formulas predict: DSP blocks, bits of constants, channel multiplications for one product."""

    dsp: int
    memory_bits: int
    multiplications: int


@dataclass(frozen=True)
class Source:
    """Where an algorithm or architecture was published."""

    authors: str
    title: str
    venue: str
    year: int
    section: str

    def __str__(self) -> str:
        return f"{self.authors}: {self.title}. {self.venue}, {self.year}, {self.section}"


class Fitted(ABC):
    """A design with all parameters chosen for one modulus."""

    p: int
    settings: dict[str, Any]
    operands = 2
    """1 for a core with one operand, whose second is taken as 1: ``trace`` and ``corners`` have b = 0 there."""
    forms: tuple[str, ...] = IO
    """The forms that there are, of ``binary`` and ``native``."""
    power_up = 1
    """Cycles of the first reset after power-up, at least (see Contract)."""

    @property
    @abstractmethod
    def factor(self) -> int:
        """What the product is multiplied by: 1, or R^-1 mod p."""

    @property
    @abstractmethod
    def schedule(self) -> Schedule:
        """The steps of one product on the machine's units."""

    @property
    @abstractmethod
    def representation(self) -> Form:
        """How the design itself represents operands and, unless ``result_form`` says otherwise, results."""

    @property
    def result_form(self) -> Form:
        """How the design itself represents results."""
        return self.representation

    @property
    @abstractmethod
    def bounds(self) -> tuple[Fraction, Fraction, Fraction]:
        """Operand bound (multiple of p), product bound (of p^2), result bound (of p), exclusive."""

    @property
    def gain(self) -> Fraction:
        """How much of the result's bound depends on the operands' product (see Contract)."""
        return Fraction(0)

    @property
    def load(self) -> Load | None:
        """What loads p, for a core whose modulus is loaded. Its RTL then depends on the width of p only."""
        return None

    def at(self, p: int) -> Fitted:
        """The same core while another modulus is loaded. Raises Refusal when the core cannot take it."""
        raise Refusal("the modulus of this core is built in")

    def others(self) -> list[Fitted]:
        """The same core with moduli at the edges: all bits set, only the first and last, and a small one."""
        if self.load is None:
            return []
        bits = self.p.bit_length()
        found = []
        for first, step in (((1 << bits) - 1, -2), ((1 << bits - 1) + 1, 2), (3, 2)):
            for p in range(first, first + _TRIED * step, step):
                try:
                    found.append(self.at(p))
                    break
                except Refusal:
                    continue
        return [fitted for fitted in found if fitted.p != self.p]

    def slot_machine(self, numbers: int) -> SlotMachine:
        """A machine on ``numbers`` numbered slots in which numbers stay in the design's own representation.

        Raises Refusal when the design has none, or no room for so many numbers.
        """
        raise Refusal("this design has no slot machine of its own")

    def slot_contract(self, numbers: int) -> Contract:
        """The native contract with stream k as a slot machine takes it: the modulus's words in the machine's own order.

        Raises Refusal as `slot_machine` does.
        """
        contract = self.contract("native")
        words = tuple(unused(self.slot_machine(numbers)).modulus_words)
        return replace(contract, load=replace(contract.load, words=words)) if contract.load else contract

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """Predicted cost of the native core."""

    @property
    def size(self) -> int:
        """Predicted size in parts, each of which takes about as long to emit: a DSP block, or 32 bits of adders where
        these come in rows beside no DSP block. 10 to 50 milliseconds a part."""
        return self.cost.dsp

    @abstractmethod
    def trace(self, a: int, b: int) -> Iterator[tuple[str, Any]]:
        """The bit-exact algorithm on port values: (name, value) of every intermediate, the result last."""

    @abstractmethod
    def component(self, *, scaled: bool = False) -> Multiplier:
        """The native core. ``scaled``: results as gamma_i = r_i * M_i^-1 mod m_i (for conversion to binary)."""

    @abstractmethod
    def facts(self) -> list[tuple[str, str]]:
        """Constants and bounds worth showing: (name, value)."""

    @abstractmethod
    def corners(self) -> list[tuple[int, int]]:
        """Native port values at the edges of every approximation in the algorithm."""

    def contract(self, io: str) -> Contract:
        """The contract of the core in its ``native`` or ``binary`` form."""
        if io == "native":
            operand, product, result = self.bounds
            s = self.schedule
            return Contract(
                p=self.p,
                factor=self.factor,
                io=io,
                operand=self.representation,
                result=self.result_form,
                operand_bound=operand,
                product_bound=product,
                result_bound=result,
                timing=Timing(s.latency, s.interval, s.in_flight),
                gain=self.gain,
                operands=self.operands,
                load=self.load,
                power_up=self.power_up,
            )
        one = Fraction(1)
        width = Binary(self.p.bit_length())
        return Contract(
            p=self.p,
            factor=self.factor,
            io=io,
            operand=width,
            result=width,
            operand_bound=one,
            product_bound=one,
            result_bound=one,
            timing=self.binary_timing(),
            operands=self.operands,
            load=self.load,
            power_up=self.power_up,
        )

    @abstractmethod
    def binary_timing(self) -> Timing:
        """Timing of the binary form."""

    @abstractmethod
    def binary_component(self) -> Multiplier:
        """The core with binary operands below p and canonical results."""

    def core(self, io: str) -> Multiplier:
        """The core in one of its two forms."""
        return self.component() if io == "native" else self.binary_component()

    def multiply(self, a: int, b: int) -> int:
        """Product of two numbers through the bit-exact algorithm: decoded from the design's representation."""
        form = self.representation
        *_, (_, result) = self.trace(form.encode(a), form.encode(b) if self.operands == 2 else 0)
        return self.result_form.decode(result)


@dataclass(frozen=True)
class Design:
    """A named instance of a published design.

    ``page`` is the name of its page in the documentation, ``paper`` the name of its instance in the paper,
    ``operands`` 1 for a design whose cores have one operand.
    """

    name: str
    page: str
    title: str
    source: Source
    needs: str
    settings: tuple[Setting, ...]
    solve: Callable[..., Fitted]
    paper: str = ""
    operands: int = 2

    def fit(self, p: int, **settings: Any) -> Fitted:
        """Choose every parameter for ``p``.

        Raises Refusal, in one line with the numbers, when the design cannot serve that modulus or a setting is wrong.
        """
        given = self.checked(settings)
        values = {s.name: s.default for s in self.settings} | given
        if p < 3 or p % 2 == 0:
            raise Refusal(f"the modulus must be odd and at least 3, got {shortened(p)}")
        if p.bit_length() > MAX_BITS:
            raise Refusal(f"the modulus has {p.bit_length():,} bits; at most {MAX_BITS:,} are accepted")
        try:
            for setting in self.settings:
                if setting.name in given:
                    setting.check_for(p, values)
            return self.solve(p, **values)
        except Refusal:
            raise
        except ValueError as error:
            raise Refusal(f"{self.name} does not serve this {p.bit_length()}-bit modulus: {error}") from error

    def require_size(self, fitted: Fitted) -> None:
        """Raise Refusal, with the predicted size and what to change, for a core that takes too long to emit."""
        if fitted.size <= SIZE_MAX:
            return
        hints = [f"{s.smaller} {s.name} (now {fitted.settings[s.name]})" for s in self.settings if s.smaller]
        raise Refusal(
            f"{self.name} for this {fitted.p.bit_length()}-bit modulus has a predicted size of {fitted.size:,} parts "
            f"(DSP blocks, or 32 bits of adders each); at most {SIZE_MAX:,} are built: "
            f"{' or '.join(hints) or 'take a shorter modulus'}"
        )

    def range(self, name: str, p: int, **settings: Any) -> tuple[int | None, int | None]:
        """The least and the largest value of a setting for a modulus, the others being given or at their defaults.

        0 is not counted where it lets the design choose. Raises Refusal for an unknown name, and where the design does
        not serve the modulus.
        """
        values = {s.name: s.default for s in self.settings} | self.checked(settings)
        for setting in self.settings:
            if setting.name == name:
                return setting.range(p, values)
        raise Refusal(f"{self.name} has no parameter {shortened(name)}; it takes {', '.join(values) or 'none'}")

    def checked(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Settings with texts parsed. Raises Refusal for an unknown name, a wrong type or a value out of range."""
        known = {s.name: s for s in self.settings}
        for name in settings:
            if name not in known:
                raise Refusal(f"{self.name} has no parameter {shortened(name)}; it takes {', '.join(known) or 'none'}")
        return {
            name: known[name].parse(value) if isinstance(value, str) else known[name].check(value)
            for name, value in settings.items()
        }


def parse_set(texts: Sequence[str]) -> dict[str, str]:
    """``key=value`` texts as a mapping. Raises Refusal for one without ``=`` or given twice."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise Refusal(f"--set takes key=value, not {shortened(text)}")
        if name in found:
            raise Refusal(f"--set {shown_name(name)} is given twice")
        found[name] = value
    return found
