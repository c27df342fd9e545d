# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What the programs of an engine for powers compute, for all bases and exponents: by induction on the passes.

The factor f of the multiplier is an unknown number too, with f^-1 in the constants, so that the algebra holds for every
modulus. A value of a program is x^i f^j: the exponents are followed, not the numbers. With a random factor u of the
base it is x^i u^k f^j, and the theorem is that of a power of two bases: x^K u^(e K + L) for the exponents K and L. It
is x^K if e K + L is a multiple of the order of u.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from modmill.contract import UnsupportedError
from modmill.engines.microcode.program import Program
from modmill.engines.rsa.exponentiation import BASE, FACTOR, Exponentiation
from modmill.engines.theorem.instructions import execute
from modmill.engines.theorem.normal_forms import Form, Forms
from modmill.engines.theorem.parts import Part
from modmill.engines.theorem.scalars import Scalar, digits_worth, ladder_faults


class PowerProof:
    """The parts of a proof of one program. ``power``: the algorithm, ``program``: its instructions. Call `parts`."""

    def __init__(self, power: Exponentiation, program: Program) -> None:
        self._power, self._program, self._made = power, program, power.program
        self._forms = Forms(power.contract.p)
        converted = "square" in self._made.constants
        self._f = self._forms.atom("f") if converted else self._forms.constant(1)
        self._x, self._u = self._forms.atom(BASE), self._forms.atom(FACTOR)
        first = [] if self._made.factor is None else [(0, self._x * self._u**self._made.factor_exponent)]
        self._tables = [*first, (1 << self._made.window, self._u)] if first else [(0, self._x)]

    def parts(self) -> list[Part]:
        """All parts, in the order of the argument."""
        w = self._made.window
        checks: list[tuple[str, str, Callable[[], list[str]]]]
        if not w:
            what = f"the result is x^{self._made.exponent} mod p"
            checks = [("result", what, self._fixed)]
        elif self._made.gray:
            checks = [
                ("start", "the first pass finds (x^0, x^1)", self._ladder_start),
                ("pass", "a pass takes (x^K, x^(K + 1)) to (x^K', x^(K' + 1)), for two bits", self._ladder_pass),
                ("exponent", "the digits say whether neighbouring bits differ, for all exponents", self._ladder_digits),
                ("result", "the result is x^K mod p", self._ladder_result),
            ]
        else:
            entry, step = "entry d is x^d", "x^d"
            if self._made.factor is not None:
                entry = f"entries d are (x u^{self._made.factor_exponent})^d and u^d"
                step = f"(x u^{self._made.factor_exponent})^d u^d', by two digits"
            checks = [
                ("table", f"{entry}, and the first power is that of the first digit", self._table),
                ("pass", f"a pass takes y to y^{1 << w} {step}", self._pass),
                ("exponent", "the digits make the exponent, for all exponents of the length", self._digits),
                ("result", "the result is the last power, mod p", self._result),
            ]
        if self._made.check is not None:
            what = f"the number that must be the base is the result to the power of {self._made.check_exponent}, mod p"
            checks.append(("check", what, self._check))
        checks.append(("constants", "the constants are 1, R^2 mod p and R mod p", self._constants))
        found = []
        for part, theorem, check in checks:
            try:
                remains = check()
            except (ValueError, UnsupportedError) as error:
                remains = [str(error)]
            found.append(Part(f"{part} of {self._made.name}", theorem, tuple(remains)))
        return found

    # ---- execution

    def _shared(self) -> dict[Any, Form]:
        values = {"one": self._f, "square": self._f**-1, "radix": self._forms.constant(1)}
        return {(True, k): values[name] for k, name in enumerate(self._made.constants)}

    def _before(self) -> tuple[dict[Any, Form], int]:
        given = {BASE: self._x * self._f, FACTOR: self._u * self._f}
        held = self._shared() | {(False, slot): given[name] for slot, name in self._program.inputs}
        return held, execute(self._program.before, held, self._forms)

    def _from_any(self, part: str) -> tuple[dict[Any, Form], int]:
        held = self._shared()
        held |= {(False, slot): self._forms.atom("held", slot) for slot in range(self._program.slots)}
        return held, execute(getattr(self._program, part), held, self._forms)

    def _held(self, slot: int) -> Form:
        return self._forms.atom("held", slot)

    def _constants(self) -> list[str]:
        p, f = self._power.contract.p, self._power.contract.factor
        wanted = {"one": 1, "square": pow(f, -2, p), "radix": pow(f, -1, p)}
        names, shared = self._made.constants, dict(self._program.shared)
        found = [f"constant {k} is not {n}" for k, n in enumerate(names) if shared.get(k) != wanted[n] % p]
        if "square" not in names and f % p != 1:
            found.append("the factor is not 1, and the program does not convert")
        return found

    # ---- programs

    def _answers(self, held: dict[Any, Form], wanted: Form) -> list[str]:
        got = [held[False, slot] for slot, _ in self._program.results]
        return [] if got == [wanted * self._f] else ["the instructions compute another power"]

    def _fixed(self) -> list[str]:
        held, digits = self._before()
        if digits or self._program.loop:
            return ["a program for one exponent uses digits"]
        execute(self._program.after, held, self._forms)
        return self._answers(held, self._x**self._made.exponent)

    def _entries(self) -> range:
        return range(1 << self._made.window)

    def _table(self) -> list[str]:
        held, digits = self._before()
        found, first = list[str](), self._forms.constant(1)
        for k, (start, base) in enumerate(self._tables):
            wanted = [base**d if d else self._forms.constant(1) for d in self._entries()]
            found += [
                f"entry {d} is another power" for d in self._entries() if held.get((False, start + d)) != wanted[d]
            ]
            first *= self._forms.selected(k, wanted)
        if held.get((False, self._made.result)) != first or digits != len(self._tables):
            found.append("the first power is not the entry of the first digit")
        return found

    def _pass(self) -> list[str]:
        held, digits = self._from_any("loop")
        wanted = self._held(self._made.result) ** (1 << self._made.window)
        slots = [start + d for start, _ in self._tables for d in self._entries()]
        for k, (start, _) in enumerate(self._tables):
            wanted *= self._forms.selected(k, (self._held(start + d) for d in self._entries()))
        if held[False, self._made.result] != wanted or digits != len(self._tables):
            return ["a pass computes another power"]
        return [f"a pass changes slot {slot}" for slot in slots if held[False, slot] != self._held(slot)]

    def _result(self) -> list[str]:
        held, digits = self._from_any("after")
        return self._answers(held, self._held(self._made.result)) if not digits else ["digits after the loop"]

    def _check(self) -> list[str]:
        """After the last pass: what the result is, is the theorem of the part of the result."""
        held, _ = self._from_any("after")
        ((result, _),), checks = self._program.results, [slot for slot, _ in self._program.checks]
        wanted = [(held[False, result] * self._f**-1) ** self._made.check_exponent * self._f]
        if self._made.factor is not None:  # it is compared with itself
            wanted.insert(0, self._held(self._made.factor))
        found = [] if [held[False, slot] for slot in checks] == wanted else ["the check is another power of the result"]
        return found if self._program.matched else [*found, "the check is not compared with the base"]

    def _lengths(self, each: int) -> list[str]:
        """Shorter exponents: a job has as many passes as its digits need, and the digits have all bits."""
        made, found = self._made, []
        for bits in range(1, self._power.bits + 1):
            count = made.digit_count(bits)
            if count != each * made.passes(bits) + 1 or (count - made.gray) * made.window < bits:
                found.append(f"{count} digits and {made.passes(bits)} passes for exponents of {bits} bits")
        return found[:1]

    def _digits(self) -> list[str]:
        k = Scalar.unknown("k", 0, (1 << self._power.bits) - 1)
        digits = self._made.digits(k, self._power.bits)  # type: ignore[arg-type]
        (worth,) = digits_worth(digits, [self._entries()], 1 << self._made.window)
        found = self._lengths(1)
        if not worth.whole().same(k) or len(digits) * self._made.exponents != self._program.digits:
            found.append("the digits make another exponent")
        return found

    # ---- the ladder: slots 0 and 1 at its start and end, 2 and 3 between two bits

    def _ladder_start(self) -> list[str]:
        held, digits = self._before()
        wanted = [self._forms.constant(1), self._x]
        if [held.get((False, slot)) for slot in (0, 1)] != wanted or digits:
            return ["the first powers are others"]
        return []

    def _ladder_pass(self) -> list[str]:
        """After a bit the square is in the lower slot and the product in the upper one. So if the bit was 0 these are
        x^K and x^(K + 1), else x^(K + 1) and x^K; the digit, which says whether the next bit differs, selects the one
        that is squared."""
        held, digits = self._from_any("loop")
        pair = [self._held(0), self._held(1)]
        for digit in range(2):
            pair = [self._forms.selected(digit, pair) ** 2, pair[0] * pair[1]]
        return [] if [held[False, 0], held[False, 1]] == pair and digits == 2 else ["a pass computes other powers"]

    def _ladder_digits(self) -> list[str]:
        k = Scalar.unknown("k", 0, (1 << self._power.bits) - 1)
        digits = self._made.digits(k, self._power.bits)  # type: ignore[arg-type]
        found = self._lengths(2)
        if len(digits) != 2 * self._program.passes + 1:
            found.append(f"{len(digits)} digits for {self._program.passes} passes")
        return found + ladder_faults(digits, k, len(digits) - 1)

    def _ladder_result(self) -> list[str]:
        held, digits = self._from_any("after")
        last = self._forms.selected(0, [self._held(0), self._held(1)])
        return self._answers(held, last) if digits == 1 else [f"{digits} digits after the loop"]
