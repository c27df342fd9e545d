# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Random engines, each built in a folder and checked there: RSA engines and coprocessors for small curves.

    rsa    modulus of 16 to 1,100 bits, odd lengths and shapes, built in or loaded; every multiplier, form, method,
           window, number of threads and of machines; the circuit of the radix-64K paper
    ecc    a random curve of every form over 6 to 20 bits with counted points; every operation, multiplier, form,
           window, comb, number of threads and of machines, blinded scalars, arithmetic modulo the order

Some of both are behind a bus, some in lockstep, some with parity. Some engines for curves blind scalars inside, with
random words.

A draw is a value (`EngineCase`), which gives one line of Python that builds the engine again. Failures are engines that
fail their check and exceptions that are not refusals.
"""

from __future__ import annotations

import random
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from math import isqrt
from pathlib import Path
from typing import Any

from modmill.buses.adapters import BUSES
from modmill.buses.device import KEY_SLOTS, WORD
from modmill.contract import UnsupportedError
from modmill.cores.ecc.check import check_ecc
from modmill.cores.ecc.machine import EccCore, ecc
from modmill.cores.rsa.check import check_engine
from modmill.cores.rsa.circuit import circuit_engine
from modmill.cores.rsa.machine import EngineCore, engine
from modmill.design import Design, Setting
from modmill.designs import DESIGNS
from modmill.engines.ecc.endomorphism import endomorphism
from modmill.engines.ecc.point_engine import OPERATIONS, Shape
from modmill.engines.rsa.exponentiation import PUBLIC
from modmill.numbers.curves.affine import Affine, Curve, Edwards, Montgomery, Weierstrass
from modmill.numbers.primes import next_prime, square_root

KINDS = ("rsa", "ecc")
LARGEST = 600_000
"""Largest Verilog, in characters, that is simulated; compiling it takes minutes."""
LONGEST = 3e12
"""Largest product of the longest job's cycles and the characters of Verilog that is simulated."""
SECONDS = 450.0
"""Time limit for an engine, its check included; a slower engine counts as a failure."""
WORDS = (16, 17, 24, 31, 32, 33, 48, 63, 64)
HALVED = 0.5
"""Share of engines that multiply points with the curve's endomorphism, if it has one."""
BEHIND_BUS = 2
"""One engine in this number, of those with words of a bus, is behind one."""
SLOTS = 2
"""One engine behind a bus in this number has key slots; a bus with packets refuses them."""
LOCKSTEP = 6
"""One engine in this number stands twice, in lockstep."""
CHECKED = 3
"""One engine in this number has checks of its results."""
PARITY = 4
"""One engine in this number has parity in its memories."""
FIXED = 4
"""One engine in this number has fixed addresses."""
EXPONENTS = (PUBLIC, PUBLIC, 3, 17, (1 << 40) + 1)
"""Public exponents of checks of powers."""
RANDOM = 3
"""One engine for a curve in this number has a port for random words."""
FAILURES = ("failed", "crash", "slow", "message")
_REFUSAL = 500
"""Largest number of characters of a refusal."""
_SELDOM = ("extension", "reduction", "channel")
"""Parts of the names of designs that serve few engines, or none."""


@dataclass(frozen=True)
class EngineCase:
    """A draw: ``kind`` of `KINDS`, and the arguments of `cores.rsa.machine.engine` or `cores.ecc.machine.ecc`;
    ``circuit``: those of `cores.rsa.circuit.circuit_engine`."""

    kind: str
    design: str
    arguments: tuple[tuple[str, Any], ...]
    settings: tuple[tuple[str, Any], ...] = ()
    curve: Curve | None = None
    circuit: bool = False

    @property
    def line(self) -> str:
        """Python that builds the engine again (with the Curve classes, Shape, `ecc`, `engine` and `circuit_engine`
        imported)."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.arguments)
        if self.curve is None:
            made = "circuit_engine" if self.circuit else "engine"
            return f"{made}({self.design!r}, settings={dict(self.settings)!r}, {given})"
        on = ", ".join(f"{k}={v:#x}" for k, v in self.curve.coefficients().items())
        c = self.curve
        text = f"{type(c).__name__}({c.p:#x}, ({c.base[0]:#x}, {c.base[1]:#x}), {c.n:#x}, {c.h}, {on})"
        return f"ecc({text}, {self.design!r}, {dict(self.settings)!r}, {given})"

    def make(self) -> EccCore | EngineCore:
        """The engine. Raises UnsupportedError if it cannot be built."""
        if self.curve is not None:
            return ecc(self.curve, self.design, dict(self.settings), **dict(self.arguments))
        make = circuit_engine if self.circuit else engine
        return make(self.design, settings=dict(self.settings), **dict(self.arguments))


@dataclass(frozen=True)
class EngineOutcome:
    """The outcome of a case.

    ``kind``: refused; checked; built, if it is too large for simulation; or a failure: ``failed`` (its check fails),
    ``crash`` (an exception that is not a refusal), ``slow`` (over `SECONDS`), ``message`` (a refusal of several lines
    or too many characters). ``text``: the refusal or the finding.
    """

    case: EngineCase
    kind: str
    text: str = ""
    seconds: float = 0.0

    @property
    def wrong(self) -> bool:
        """Whether the outcome is a failure."""
        return self.kind in FAILURES


# ---------------------------------------------------------------------------------------------- draws


def draw(rnd: random.Random, small: bool = False) -> EngineCase:
    """A random engine; ``small``: only engines that compile quickly."""
    return (_rsa if rnd.randrange(2) else _ecc)(rnd, small)


def _design(rnd: random.Random) -> Design:
    while True:
        found = rnd.choice(DESIGNS)
        if not any(word in found.name for word in _SELDOM) or not rnd.randrange(8):
            return found


def _settings(rnd: random.Random, design: Design, p: int) -> tuple[tuple[str, Any], ...]:
    """Up to two settings of a design, at or near their limits and defaults."""
    chosen = rnd.sample(design.settings, min(len(design.settings), rnd.choice((0, 0, 1, 1, 2))))
    values = {s.name: s.default for s in design.settings}
    return tuple((s.name, _value(rnd, s, p, values)) for s in chosen)


def _value(rnd: random.Random, setting: Setting, p: int, values: Mapping[str, Any]) -> Any:
    if setting.kind is bool:
        return rnd.random() < 0.5
    if setting.choices:
        return rnd.choice(setting.choices)
    if setting.kind is not int:
        return setting.default
    least, most = setting.least, setting.most
    with suppress(Exception):  # a design that does not serve the modulus refuses it when it is built
        least, most = setting.range(p, values)
    low = least if least is not None else max(1, setting.default - 2)
    high = min(most if most is not None else low + 8, low + 24)
    return rnd.choice((low, setting.default, rnd.randint(low, max(low, high))))


def _common(rnd: random.Random, small: bool) -> list[tuple[str, Any]]:
    return [
        ("threads", rnd.choice((0, 1, 1, 2, 2, 3, 4, 5) if not small else (1, 1, 2, 3))),
        *_surroundings(rnd),
        ("cores", rnd.choice((1,) * 12 + ((2, 3) if not small else (1,)))),
    ]


def _surroundings(rnd: random.Random) -> list[tuple[str, Any]]:
    """Bits of a stream word, and sometimes a bus, with key slots or without, or lockstep."""
    word = rnd.choice(WORDS)
    behind = rnd.randrange(BEHIND_BUS) == 0 and word == WORD
    bus: list[tuple[str, Any]] = [("bus", rnd.choice(BUSES).name)] if behind else []
    if behind and rnd.randrange(SLOTS) == 0:
        bus.append(("key_slots", rnd.choice((1, 2, 3, KEY_SLOTS))))
    return [("word", word), *bus, *([("lockstep", True)] if rnd.randrange(LOCKSTEP) == 0 else [])]


def _parity(rnd: random.Random) -> list[tuple[str, Any]]:
    return [("parity", True)] if rnd.randrange(PARITY) == 0 else []


def _modulus(rnd: random.Random, bits: int) -> int:
    """An odd number of ``bits`` bits: dense, sparse, all ones, next to a power of two, or prime."""
    top = 1 << bits - 1
    match rnd.randrange(6):
        case 0:
            return 2 * top - 1
        case 1:
            return top + 1
        case 2:
            return top | 1 << rnd.randrange(bits - 1) | 1
        case 3:
            found = next_prime(top | rnd.getrandbits(bits - 1))
            return found if found.bit_length() == bits else top + 1
    return top | rnd.getrandbits(bits - 1) | 1


def _rsa(rnd: random.Random, small: bool) -> EngineCase:
    size = rnd.random()
    bits = (
        rnd.randint(16, 64) if small or size < 0.75 else rnd.randint(65, 200) if size < 0.97 else rnd.randint(201, 1100)
    )
    design = _design(rnd)
    p = _modulus(rnd, bits)
    loads = any(s.name == "loadable" for s in design.settings)
    given = [("width", bits)] if loads and rnd.randrange(2) else [("p", p)]
    length = ("bits", rnd.choice((bits, bits, bits + rnd.randint(1, 64), rnd.randint(1, bits))))
    if any(s.name == "feedback" for s in design.settings) and rnd.randrange(2):
        arguments = (*given, length, *_surroundings(rnd))
        return EngineCase("rsa", design.name, arguments, _settings(rnd, design, p), circuit=True)
    check, blind = rnd.randrange(CHECKED) == 0, _blind(rnd)
    messages = blind > 0 and rnd.randrange(2) == 0
    if messages and rnd.randrange(4):  # mostly what such an engine takes
        given, length = (
            [("width", bits)] if loads else given,
            ("bits", rnd.choice((0, bits, bits + rnd.randint(1, 64)))),
        )
    options = [
        length,
        ("method", "window" if messages else rnd.choice(("window", "window", "ladder"))),
        ("window", rnd.randint(1, 5)),
        ("io", rnd.choice(("native", "native", _binary(design, p)))),
        ("native", bool(rnd.randrange(4))),
        *_common(rnd, small or bits > 200),
        *([("check_result", True)] if check else []),
        *([("public_exponent", rnd.choice(EXPONENTS))] if check or blind else []),
        *_parity(rnd),
        *([("fixed_addresses", True)] if rnd.randrange(FIXED) == 0 else []),
        *([("random_blind", blind), ("random_entropy", rnd.randint(1, 32))] if blind else []),
        *([("blind_messages", True)] if messages else []),
    ]
    return EngineCase("rsa", design.name, (*given, *options), _settings(rnd, design, p))


def _blind(rnd: random.Random) -> int:
    """Bits of blinding with random words from a port, mostly 0: without a port."""
    return rnd.choice((1, 2, 16, 31, 32, 33, rnd.randint(1, 128))) * (rnd.randrange(RANDOM) == 0)


def _binary(design: Design, p: int) -> str:
    """The form with binary operands; `montgomery` for a modulus that the design does not serve."""
    try:
        return design.fit(p).binary
    except ValueError:
        return "montgomery"


def _ecc(rnd: random.Random, small: bool) -> EngineCase:
    form, a = rnd.choice(FORMS)
    shortest = 6 if form is Weierstrass else 10  # a cofactor of 4 makes the order too small below 10 bits
    curve = random_curve(rnd, form, a, max(shortest, rnd.choice((6, 7, 8, 9, 10, 10, 11, 12, 13, 14, 15, 16, 17, 20))))
    design = _design(rnd)
    operations = OPERATIONS[:3]
    chosen = tuple(sorted(rnd.sample(operations, rnd.choice((1, 1, 1, 2) if small else (1, 1, 2, 3)))))
    field = (curve.p if isinstance(curve, Montgomery) else curve.n).bit_length()
    halved = isinstance(curve, Weierstrass) and curve.h == 1 and "multiply" in chosen
    halved = halved and endomorphism(curve) is not None and rnd.random() < HALVED
    secret = isinstance(curve, Montgomery) or chosen != ("multiply-two",)
    blind = _blind(rnd) * secret
    options: list[tuple[str, Any]] = [
        ("operations", ("ladder",) if isinstance(curve, Montgomery) else chosen),
        ("bits", 0 if blind else rnd.choice((0, 0, field, field if halved else field + rnd.randint(1, 20)))),
        ("shape", Shape(rnd.randint(1, 4), rnd.randint(1, 4), rnd.randint(1, 3), rnd.random() < 0.2, halved)),
        ("sums", rnd.choice((3, 3, 0, 1, 2, 4, 5))),
        ("io", rnd.choice(("", "", "native", _binary(design, curve.p)))),
        ("order", rnd.random() < 0.25),
        *_common(rnd, small),
        *([("check_result", True)] if rnd.randrange(CHECKED) == 0 else []),
        *_parity(rnd),
        *([("fixed_addresses", True)] if rnd.randrange(FIXED) == 0 else []),
        *([("random_blind", blind), ("random_entropy", rnd.randint(1, 32))] if blind else []),
    ]
    return EngineCase("ecc", design.name, tuple(options), _settings(rnd, design, curve.p), curve)


FORMS: tuple[tuple[type[Curve], int | None], ...] = (
    (Weierstrass, None), (Weierstrass, -3), (Weierstrass, 0), (Montgomery, None), (Edwards, None), (Edwards, -1),
)  # fmt: skip
"""Forms of curves, each with its a; None: a random one."""


def random_curve(rnd: random.Random, form: type[Curve], a: int | None, bits: int) -> Curve:
    """A curve over a random prime of ``bits`` bits, with counted points, that passes its validation.

    ``form``, ``a``: one of FORMS; Montgomery and Edwards curves have a cofactor of 4 or more and need 10 bits. All
    multiples of a random point in Hasse's interval are computed; if only one is neutral, its factor is the number of
    points.
    """
    while True:
        p = next_prime(1 << bits - 1 | rnd.getrandbits(bits - 1))
        curve = _equation(rnd, form, a, p)
        P = None if curve is None else _point(rnd, curve)
        if curve is None or P is None:
            continue
        least, most = p + 1 - isqrt(4 * p), p + 1 + isqrt(4 * p)
        Q, found = curve.multiply(least, P), list[int]()
        for m in range(least, most + 1):
            if curve.zero == Q:
                found.append(m)
            Q = curve.add(Q, P)
        if len(found) != 1:
            continue
        n = max(_prime_factors(found[0]))
        h = found[0] // n
        made = replace(curve, base=curve.multiply(h, P) or (0, 0), n=n, h=h)
        with suppress(ValueError):
            made.validate()
            return made


def _equation(rnd: random.Random, form: type[Curve], a: int | None, p: int) -> Curve | None:
    """A random curve without base point; None if a drawn number is unsuitable."""
    one, two = rnd.randrange(p), rnd.randrange(p)
    first = one if a is None else a % p
    if form is Weierstrass:
        return Weierstrass(p, (0, 0), 1, a=first, b=two)
    if form is Montgomery:
        return Montgomery(p, (0, 0), 1, A=one, B=rnd.choice((1, 1, max(1, two))))
    made = Edwards(p, (0, 1), 1, a=first, d=two)
    with suppress(ValueError):
        made._check_equation()
        return made
    return None


def _point(rnd: random.Random, curve: Curve) -> Affine | None:
    p, x = curve.p, rnd.randrange(1, curve.p)
    match curve:
        case Weierstrass():
            y = square_root(curve.right(x), p)
        case Montgomery():
            y = square_root(curve.right(x) * pow(curve.B, -1, p), p)
        case Edwards() if (1 - curve.d * x * x) % p:
            y = square_root((1 - curve.a * x * x) * pow(1 - curve.d * x * x, -1, p), p)
        case _:
            y = None
    return None if not y else (x, y)


def _prime_factors(number: int) -> list[int]:
    found = []
    for q in range(2, isqrt(number) + 1):
        while number % q == 0:
            found.append(q)
            number //= q
    return [*found, number] if number > 1 else found or [1]


# ---------------------------------------------------------------------------------------------- trials


def attempt_engine(tell: Callable[[str, float], None], case: EngineCase) -> EngineOutcome:
    """Build an engine in a folder and check it. ``tell`` is called with each stage and its time limit in seconds."""
    start = time.monotonic()
    try:
        kind, text = _attempt(tell, case)
    except UnsupportedError as refusal:
        text = str(refusal)
        kind = "message" if "\n" in text or not 0 < len(text) <= _REFUSAL else "refused"
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        kind = "crash"
        text = f"{type(error).__name__} in {Path(frame.filename).name}:{frame.lineno}: {' '.join(str(error).split())}"
    seconds = time.monotonic() - start
    if kind == "checked" and seconds > SECONDS:
        kind, text = "slow", f"{seconds:.0f} s, at most {SECONDS:.0f} are allowed"
    return EngineOutcome(case, kind, text[:600], seconds)


def _attempt(tell: Callable[[str, float], None], case: EngineCase) -> tuple[str, str]:
    tell("to choose its parameters", SECONDS)
    core = case.make()
    longest = max(map(core.cycles, core.jobs)) if isinstance(core, EccCore) else core.cycles(0)
    tell("to write its files", SECONDS)
    if len(core.verilog) > LARGEST or len(core.verilog) * longest > LONGEST:
        return "built", ""
    tell("to check it", SECONDS)
    with tempfile.TemporaryDirectory(prefix="modmill-explore-") as folder:
        place = core.write(Path(folder) / case.kind, "modmill explore")
        report = check_ecc(place) if isinstance(core, EccCore) else check_engine(place)
    return ("failed", report.failures[0]) if report.failures else ("checked", "")
