# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Montgomery multiplication on redundant radix-2^r numbers, one digit of Y in each clock cycle.

Source:  K. Nakano, K. Kawakami, K. Shigemoto: RSA Encryption and Decryption using the Redundant Number System on the
         FPGA. IPDPS Workshops, 2009, Section 5: Theorem 9 (multipliers), Lemma 7 (table), Theorem 10 (half tables).
Formula: T = X y_i + C,  z = T mod 2^r,  C <- (T + k M) / 2^r with z + k M = 0 (mod 2^r),  i = 0 ... n - 1
         k M by a multiplier for k = z (-M^-1) and one for each digit of M; or f(z) from a table; or h(z_lo) +
         h(z_hi + g(z_lo)) 2^(r/2) from one table with two ports
Range:   X, Y < operand M give C = X Y 2^(-r n) (mod M), C < operand M (numbers.redundant_digits.Montgomery)

Deviations from the paper:
- One more digit, so R = 2^(r n) >= 4 M, instead of the paper's subtraction of M, which does not keep numbers in range.
- g and h are corrected.
- The two halves of each k M_j enter the last adder of a digit directly; the adders of Lemma 2 for k M are not needed.
- X y_i passes the multipliers' output registers, which are outside the loop.
- With feedback, two more bits are cancelled in the cycle in which the paper adds -M: R = 2^(r d + 2) >= 4 M. With
  tables X y_i has no register then.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from modmill.contract import Binary, Contract, Digits, Form, Load, Timing, UnsupportedError
from modmill.design import IO, Cost, Design, DesignInstance, Setting, Source, loadable_modulus
from modmill.designs.radix64k.blocks import Multiples, columns
from modmill.designs.radix64k.machine import Canonical, DigitLoop
from modmill.designs.radix64k.shape import Shape
from modmill.interface import Multiplier
from modmill.numbers.moduli import MAX_BITS
from modmill.numbers.montgomery import carrying
from modmill.numbers.redundant_digits import HALF_TABLES, MULTIPLIERS, TABLE, Montgomery, Radix, digits, largest_spread
from modmill.rtl.memory import DEPTHS
from modmill.schedule import Schedule

R_MAX = 16
"""Most bits r: a digit of r + 2 bits is an operand of an 18 x 18 bit DSP block."""
R_LIMITS = {MULTIPLIERS: (4, R_MAX), HALF_TABLES: (8, R_MAX), TABLE: (4, DEPTHS[-1].bit_length() - 1)}
"""Fewest and most bits r of a digit: a table has 2^(r / 2) or 2^r words, 16 to 1,024."""
OPERAND_MAX = 1 << 16
"""Largest multiple of the modulus for operands; it costs as much as a modulus with 16 more bits."""
CHAIN_LEAST = 8
"""Least limit of a carry chain in bits; the largest is that many bits above the modulus."""
LOOKUPS_MAX = 1024
"""Most copies of the logic for z."""


class Radix64K(DesignInstance):
    """Montgomery multiplication digit by digit, for one modulus or for all moduli of at most its width."""

    forms = IO

    def __init__(self, p: int, shape: Shape, settings: dict[str, Any]) -> None:
        self.p, self.shape, self.settings = p, shape, settings

    @property
    def factor(self) -> int:
        return pow(self.shape.m.R, -1, self.p)

    @property
    def schedule(self) -> Schedule:
        return self.shape.schedule

    @property
    def representation(self) -> Form:
        return self.shape.form

    @property
    def bounds(self) -> tuple[Fraction, Fraction, Fraction]:
        operand = Fraction(self.shape.m.operand)
        return operand, operand**2, self.shape.m.result_below(operand**2)

    @property
    def gain(self) -> Fraction:
        return Fraction(self.p, self.shape.m.R)

    @property
    def cost(self) -> Cost:
        q = self.shape
        d, e = len(q.x_digits), len(q.m_digits)
        more = q.lookups - 1
        g = q.table_bits if q.m.quotient == HALF_TABLES else 0
        words = q.bits + g + more * (q.lookup_bits + g)
        return Cost(
            dsp=d + more if q.tables else d + e + 1,
            memory_bits=words << q.table_bits if q.tables else 0,
            multiplications=d * min(q.m.d, q.m.n) + (0 if q.tables else q.m.n * (e + 1)),
        )

    def trace(self, a: int, b: int) -> Iterator[tuple[str, Any]]:
        q, m, form = self.shape, self.shape.m, self.representation
        mask = (1 << m.r) - 1
        shown: Any  # the type of shown values: a list of digits, or an int
        if isinstance(form, Digits):
            x, y, shown = form.unpack(a), form.unpack(b), list
            iterations: Iterator[Any] = m.steps(x, y)
        else:
            x = [a >> q.x_size * j & (1 << bits) - 1 for j, bits in enumerate(q.x_digits)]
            y, shown = [m.plain_digit(b, i) for i in range(q.y_digits)], int
            iterations = m.plain_steps(a, b)
        yield "X, Y", [a, b]
        c: Any = 0
        for i, (t, c) in enumerate(iterations):
            if i < q.y_digits and q.registered:
                yield f"Xy{i}", [digit * y[i] for digit in x]
            if q.tables:
                yield f"T{i}", shown(t)
                yield f"kM{i}", [word >> m.r for word in m.addends((t if shown is int else t[0]) & mask)]
            else:
                yield f"C{i}", shown(c)
        if q.tables:
            if shown is list:
                c = (*c, 0) if m.feedback else Radix(m.r).product_sum(x, 0, c)
            yield f"T{m.n}", shown(c)
        yield "r", form.pack(m.joined(c)) if isinstance(form, Digits) else c

    def component(self, *, scaled: bool = False) -> Multiplier:
        return DigitLoop(self.shape)

    def binary_component(self) -> Multiplier:
        return Canonical(self.shape)

    def binary_timing(self) -> Timing:
        return Canonical.timing_of(self.shape)

    def contract(self, io: str) -> Contract:
        """The contract; in the binary form ports are as wide as the largest modulus that can be loaded."""
        contract = super().contract(io)
        width = Binary(self.shape.bits)
        return contract if io == "native" else replace(contract, operand=width, result=width)

    @cached_property
    def load(self) -> Load | None:
        q, m = self.shape, self.shape.m
        unit = Multiples.cycles(q.bits, q.table_bits) if q.tables else m.r
        cycles, radix = len(m.modulus_digits) + unit + 1, m.R.bit_length() - 1
        return Load(m.r, m.modulus_digits, cycles, radix) if q.loadable else None

    def at(self, p: int) -> DesignInstance:
        if not self.shape.loadable:
            return super().at(p)
        arithmetic = replace(self.shape.m, M=loadable_modulus(p, self.shape.bits))
        return Radix64K(p, replace(self.shape, m=arithmetic), self.settings)

    def facts(self) -> list[tuple[str, str]]:
        q, m = self.shape, self.shape.m
        t, c = m.digit_limits()
        kind = f"{m.d} redundant digits of {m.r + 2} bits" if q.redundant else f"{q.form.width} bits, no redundancy"
        how = {
            MULTIPLIERS: f"{len(q.m_digits)} multipliers, and one for k",
            TABLE: f"f: 2^{m.r} words of {q.bits} bits",
            HALF_TABLES: f"h: 2^{m.half} words of {q.bits} bits, two ports; g: 2^{m.half} words of {m.half} bits",
        }[m.quotient]
        return [
            ("numbers", kind),
            ("iterations", f"n = {m.n} for d = {m.d} digits; R = 2^{m.r * m.n + m.rest}"),
            ("k M", how),
            *([("feedback", f"a result is an operand after {q.first + q.steps - 1} cycles")] if m.feedback else []),
            *(
                [("largest digits", f"T {max(t)}, C {max(c)}, of {(1 << m.r + 2) - 1}"),
                 ("highest digit of C", f"at most {c[-1]}")] if q.redundant else []
            ),
            ("operands", f"below {m.operand} p give results below (p / R {m.operand}^2 + 1) p"),
            *([("z", f"{q.lookups} copies of its logic, each for a share of the table")] if q.lookups > 1 else []),
            *([("modulus", f"loaded: {len(self.load.words)} words, {self.load.cycles} cycles")] if self.load else []),
        ]  # fmt: skip

    def corners(self) -> list[tuple[int, int]]:
        """Operands at the ends of the range, and with digits at the ends of theirs; an operand beyond the range with a
        smaller other operand; z = 0, and z with one half zero; binary operands with a carry into the highest bit of the
        sum."""
        m, form = self.shape.m, self.representation
        top = m.operand * self.p - 1
        half = 1 << m.half
        numbers = [0, 1, 2, self.p - 1, self.p, self.p + 1, top - 1, top, m.R % self.p, top // 2]
        numbers += [(top >> s) << s for s in (1, m.half, m.r, m.r + 1)] + [half, half - 1, (half - 1) * half]
        numbers += [value for k in (m.r, m.r + 1) for value in (1 << k, (1 << k) - 1)]
        chosen = list(dict.fromkeys(x for x in numbers if 0 <= x <= top))
        ports = [form.encode(x) for x in chosen]
        if isinstance(form, Digits):
            ports += [form.pack(largest_spread(digits(x, m.r, m.d), m.r)) for x in chosen]
        pairs = [*zip(ports, reversed(ports), strict=True), *((a, form.encode(top)) for a in ports)]
        pairs += [(a, a) for a in ports]
        if not isinstance(form, Digits):
            pairs += carrying(self.p, 1 << m.r * m.d, top + 1)
        largest = (1 << form.width) - 1  # the port's largest value, and the largest value allowed at the other port
        least = min((top + 1) ** 2 // form.decode(largest) - 1, form.end - 1)
        if least >= 0:
            others = [form.encode(least), form.any(least, random.Random(1)), min(least, (1 << (m.r + 2)) - 1)]
            pairs += [pair for y in others for pair in ((largest, y), (y, largest))]
        return list(dict.fromkeys(pairs))


def fit(
    p: int, quotient: str, *, r: int, redundant: bool, operand: int, loadable: bool, feedback: bool, tile: int,
    chain: int, lookups: int = 1,
) -> Radix64K:  # fmt: skip
    """The design for p: digits and iterations for its length. ``quotient``: as of `Montgomery`; others: see settings.
    Raises UnsupportedError for an odd r with half tables."""
    if quotient == HALF_TABLES and r % 2:
        raise UnsupportedError(f"half tables need an even r from 8 to {R_MAX}, not {r}")
    arithmetic = Montgomery(p, r, quotient, operand, least=2, bits=p.bit_length(), feedback=feedback)
    shape = Shape(arithmetic, redundant, loadable, lookups, tile, chain)
    settings = {
        "r": r, "redundant": redundant, "operand": operand, "loadable": loadable, "feedback": feedback, "tile": tile,
        "chain": chain,
    }  # fmt: skip
    if quotient != MULTIPLIERS:
        settings["lookups"] = lookups
    return Radix64K(p, shape, settings)


def _operands(_p: int, settings: Mapping[str, Any]) -> tuple[int, int]:
    """Limits of ``operand``."""
    return 2, 2 if settings["feedback"] else OPERAND_MAX


def _tiles(p: int, settings: Mapping[str, Any]) -> tuple[int, int]:
    """Limits of ``tile``: none with redundant digits."""
    if settings["redundant"]:
        return 1, 0
    r, feedback = settings["r"], settings["feedback"]
    m = Montgomery(p, r, MULTIPLIERS, 2 if feedback else settings["operand"], least=2, feedback=feedback)
    return Shape(m, redundant=False, loadable=False).y_digit, R_MAX + 2


def _chains(p: int, settings: Mapping[str, Any]) -> tuple[int, int]:
    """Limits of ``chain``: none with redundant digits."""
    return (1, 0) if settings["redundant"] else (CHAIN_LEAST, CHAIN_LEAST + p.bit_length())


def _settings(quotient: str, r: int) -> tuple[Setting, ...]:
    """The settings of a design."""
    least, most = R_LIMITS[quotient]
    lookups = Setting(
        "lookups", int, 1, "copies of the logic for z, each for a share of the table's block RAMs",
        least=1, most=LOOKUPS_MAX, depends="one for each block RAM of the table's width at most",
        limits=lambda p, settings: (1, columns(p.bit_length())),
    )  # fmt: skip
    return (
        Setting(
            "r", int, r, f"bits of a digit{', even' if quotient == HALF_TABLES else ''}",
            least=least, most=most, smaller="raise",
        ),
        Setting("redundant", bool, True, "digits of r + 2 bits without carries between them"),
        Setting(
            "operand", int, 2, "operands up to this multiple of the modulus are accepted",
            least=2, most=OPERAND_MAX, limits=_operands, depends="2 with feedback",
        ),
        Setting("loadable", bool, False, "load the modulus at run time: any odd one of at most that width"),
        Setting("feedback", bool, False, "a result can be an operand d + 1 cycles after the operands of its product"),
        Setting(
            "tile", int, 0, "bits of X and M at one multiplier without redundancy; 0: as many as a digit of Y",
            least=0, most=R_MAX + 2, limits=_tiles, depends="only without redundancy; at least a digit of Y",
        ),
        Setting(
            "chain", int, 0, "most bits of a carry chain without redundancy; 0: no limit",
            least=0, most=CHAIN_LEAST + MAX_BITS, limits=_chains, depends="only without redundancy",
        ),
        *((lookups,) if quotient != MULTIPLIERS else ()),
    )  # fmt: skip


def _design(name: str, section: str, title: str, quotient: str, r: int) -> Design:
    return Design(
        name=name, page="radix64k", title=title, paper=section,
        source=Source(
            "K. Nakano, K. Kawakami, K. Shigemoto",
            "RSA Encryption and Decryption using the Redundant Number System on the FPGA",
            "IPDPS Workshops", 2009, f"{section}; the range of operands is ours",
        ),
        needs="any odd modulus of at least 2 bits",
        settings=_settings(quotient, r),
        solve=lambda p, **settings: fit(p, quotient, **settings),
    )  # fmt: skip


DESIGNS = (
    _design("radix64k-mul", "Theorem 9", "Redundant radix-2^r Montgomery, k M by multipliers", MULTIPLIERS, 16),
    _design(
        "radix64k-ram", "Theorem 10", "Redundant radix-2^r Montgomery, k M from tables of half digits", HALF_TABLES, 16
    ),
    _design("radix64k-table", "Lemma 7", "Redundant radix-2^r Montgomery, k M from a table of all digits", TABLE, 8),
)
