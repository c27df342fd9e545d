# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Sum of residues on a ring of rowers: our own machine for the improved SOR algorithm.

Source:  M. A. Mehrabi: Improved Sum of Residues Modular Multiplication Algorithm. Cryptography 3(2):14, 2019,
         Algorithm 2. The machine and its schedule are ours.
Formula: Z = X Y,  gamma_i = Z M_i^-1 mod m_i,  z = sum gamma_i <M_i>_p + alpha <-M>_p - kappa p
Range:   X Y < (1 - d/2^q) M gives 0 <= z < beta p, beta exact (numbers.rns.sum_of_residues); z = X Y (mod p).

Each of N channels of at most 17 bits has a rower with one DSP block. The gamma_i move through a ring, one rower in each
cycle, so a wire connects only neighbours. Each rower adds gamma_i <<M_i>_p>_mj without reduction and reduces the sum
once, in a folding loop beside the multiplier. Taps on the ring compute alpha and kappa during the accumulation; a
registered bus brings both to the rowers. A product takes N + 3 + (words of kappa) multiplications in each rower. The
interval has the same number of cycles, or a few more. alpha is multiplied by <-M>_p; the paper reads the product from a
table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from modmill.design import Cost, Design, Setting
from modmill.designs.sor.family import OPERAND_MAX, SOURCE, Constants, SumOfResiduesDesign
from modmill.designs.sor.ring_machine import Machine
from modmill.designs.sor.ring_schedule import ALPHA_WORD, Kind, Params, fold_cycles, search
from modmill.interface import Multiplier
from modmill.numbers.folding import fold
from modmill.numbers.rns.residues import growing_bases, pseudo_mersenne
from modmill.numbers.rns.sum_of_residues import solve_over
from modmill.schedule import Schedule


class SorRing(SumOfResiduesDesign):
    """The sum of residues on a ring of rowers for one modulus."""

    params: Params

    @cached_property
    def schedule(self) -> Schedule:
        return search(self.params)

    @cached_property
    def cost(self) -> Cost:
        """DSP blocks: one for each channel, and those of the taps. Constants: N(N + 2 + words) w bits, and N c_i."""
        p = self.params
        n, w = p.base.n, p.base.w
        return Cost(
            dsp=n + p.taps * p.kappa_tiles,
            memory_bits=n * ((n + 2 + p.words) * w + p.rns.constant_bits),
            multiplications=n * (n + 3 + p.words),
        )

    def trace(self, a: int, b: int, *, scaled: bool = False) -> Iterator[tuple[str, Any]]:
        base, rns, n = self.params.base, self.params.rns, self.params.base.n
        k = Constants.of(self.params, scaled)
        form = self.representation
        x, y = form.unpack(a), form.unpack(b)
        z, gamma, total, alpha, kappa = [0] * n, [0] * n, [0] * n, 0, 0
        last = [0] * n  # the last result of multiplier or folding loop in each rower
        for op in (step.does for step in self.schedule.steps):
            value: Any = None
            factor = alpha if op.number == ALPHA_WORD else kappa >> (base.w * op.number) & ((1 << base.w) - 1)
            match op.kind:
                case Kind.PRODUCT:
                    last = [v * c for v, c in zip(x, y, strict=True)]
                case Kind.INVERSE:
                    last = [v * c for v, c in zip(z, k.inverses, strict=True)]
                case Kind.TERM:
                    ring = [(j - op.number) % n for j in range(n)]
                    last = [gamma[i] * k.rows[i][j] for j, i in enumerate(ring)]
                case Kind.BUS_TERM:
                    last = [factor * c for c in (k.al[0] if op.number == ALPHA_WORD else k.minus_p[op.number])]
                case Kind.FOLD:
                    last = [fold(v, base.w, u) for v, u in zip(last, base.u, strict=True)]
                case Kind.HOLD:
                    z = last
                case Kind.WAIT | Kind.RING:
                    gamma = last
                case Kind.SUM:
                    last = total
                case Kind.ALPHA:
                    value = alpha = rns.alpha(gamma)
                case Kind.KAPPA:
                    value = kappa = rns.kappa(gamma, alpha)
                case Kind.BUS:
                    value = [factor] * self.params.buses
                case Kind.RESULT:
                    value = form.pack(last)
            if op.kind in (Kind.TERM, Kind.BUS_TERM):
                total = [t + v for t, v in zip(total, last, strict=True)]
            yield op.name, last if value is None else value

    def component(self, *, scaled: bool = False) -> Multiplier:
        return Machine(self.params, self.schedule, scaled, period=self.period)

    def details(self) -> list[tuple[str, str]]:
        p, rns = self.params, self.params.rns
        return [
            ("taps on the ring", f"{p.taps}, {p.kappa_tiles} DSP block(s) each"),
            ("folding", f"{p.passes} passes of {fold_cycles(p.digits)} cycles, u of at most {p.digits} signed digits"),
            ("alpha", self.alpha_shown),
            ("kappa", f"T = {rns.T}, constants of {rns.constant_bits} bits; {rns.kappa_bits} bits, {p.words} word(s)"),
            ("result z < beta p", f"beta ~ {float(rns.beta):.9f} (exact fraction in contract.json)"),
        ]

    def facts(self) -> list[tuple[str, str]]:
        slots = self.params.base.n + 3 + self.params.words
        return [*super().facts(), ("slots", f"{slots} of {self.period} are used")]


LEAST_CHANNELS = 4
"""Fewest channels, and therefore the most taps."""


def fit(p: int, *, w: int, taps: int, operand: int, digits: int) -> SorRing:
    """The instance for modulus ``p`` with the least N for which the constants exist. The moduli are 2^w - u with few
    signed digits in u. Raises ValueError if no base suffices, or if kappa is too wide."""
    attempts = [digits] if digits else [3, 7]
    for few in attempts:
        try:
            moduli = pseudo_mersenne(w, digits=few)
            bases = growing_bases(w, moduli, (operand * p) ** 2, least=LEAST_CHANNELS, count=7)
            rns = solve_over(bases, p, operand=Fraction(operand), multiplied=True, offset=True)
            break
        except ValueError:
            if few == attempts[-1]:
                raise
    params = Params(rns, min(taps, rns.base.n))
    if params.words > 4:
        raise ValueError(f"kappa has {rns.kappa_bits} bits; at most {4 * w}, four words of a channel, are supported")
    return SorRing(params, {"w": w, "taps": taps, "operand": operand, "digits": digits})


DESIGNS = (
    Design(
        name="sor-ring", page="sor-ring",
        title="Improved SOR on a ring of 17-bit rowers, several products in flight",
        source=replace(SOURCE, section="Algorithm 2; machine and schedule are ours"),
        needs="any odd modulus of at least 2 bits, as long as enough coprime channel moduli exist (about 1,000 bits)",
        settings=(
            Setting("w", int, 17, "bits of a channel, at most one DSP block", least=12, most=17),
            Setting("taps", int, 2, "taps on the ring that compute alpha and kappa", least=1, most=LEAST_CHANNELS),
            Setting(
                "operand", int, 4, "operands up to this multiple of the modulus are accepted", least=1, most=OPERAND_MAX
            ),
            Setting(
                "digits", int, 0, "largest number of signed digits in u, 0: the fewest that suffice", least=0, most=9,
                depends="u is odd, so 1 digit gives only one modulus; u < 2^(w - 1) limits the number of digits",
                limits=lambda p, settings: (2, (settings["w"] + 1) // 2),
            ),
        ),
        solve=fit,
    ),
)  # fmt: skip
