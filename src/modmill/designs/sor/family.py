# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The common part of all sum-of-residues designs: parameters, tables of Algorithm 2, contract, base of the machines."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from amaranth.hdl import Module, Signal, Value

from modmill.contract import Residues, Timing
from modmill.design import DesignInstance, Source
from modmill.interface import Multiplier
from modmill.numbers.rns.edges import edge_operands
from modmill.numbers.rns.residues import Base
from modmill.numbers.rns.sum_of_residues import SumOfResidues
from modmill.rtl.convert import BinaryShell, BinaryToResidues, ResiduesToBinary
from modmill.schedule import Schedule

SOURCE = Source(
    "M. A. Mehrabi", "Improved Sum of Residues Modular Multiplication Algorithm", "Cryptography 3(2):14", 2019,
    "Algorithm 2, Section 4",
)  # fmt: skip

OPERAND_MAX = 1 << 16
"""Largest value of the setting ``operand``: operands below 2^16 p, as for a modulus 16 bits longer."""


@dataclass(frozen=True)
class Params:
    """Parameters of one instance; ``rns``: base and constants of the reduction."""

    rns: SumOfResidues

    @property
    def base(self) -> Base:
        """The channels."""
        return self.rns.base

    @property
    def words(self) -> int:
        """Words of kappa, each as wide as a channel."""
        return -(-self.rns.kappa_bits // self.base.w)


@dataclass(frozen=True)
class Constants:
    """Pre-computed tables of Algorithm 2. The last index of each is the channel j, from 0.

    ``inverses[j]`` = <M_j^-1>_mj. ``rows[i][j]`` = <<M_i>_p>_mj. ``al[alpha][j]`` = <<-alpha M>_p>_mj.
    ``minus_p[word][j]`` = <-p 2^(n word)>_mj, for the words of kappa. If the base counts with -M_i, the first three are
    those of -M_i and -M.
    """

    inverses: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]
    al: tuple[tuple[int, ...], ...]
    minus_p: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, p: Params, scaled: bool) -> Constants:
        """The tables of an instance. ``scaled``: all but ``inverses`` are multiplied by M_j^-1, for results in the form
        that the conversion to binary needs. If alpha is a factor of a product instead of an address, ``al`` has only
        the row for alpha = 1."""
        base, rns = p.base, p.rns
        return cls(
            inverses=rns.inverses,
            rows=tuple(base.row(r, scaled=scaled) for r in rns.r),
            al=tuple(base.row(v, scaled=scaled) for v in (rns.v[1:2] if rns.multiplied else rns.v)),
            minus_p=tuple(base.row(-rns.p << (base.w * word), scaled=scaled) for word in range(p.words)),
        )


class SumOfResiduesDesign(DesignInstance):
    """A design with residues over one base and factor 1; the binary form adds conversions. Abstract."""

    params: Params
    factor = 1

    def __init__(self, params: Params, settings: dict[str, Any]) -> None:
        self.params, self.rns, self.p, self.settings = params, params.rns, params.rns.p, settings

    @property
    def period(self) -> int:
        """Cycles between accepted operands."""
        return self.schedule.interval

    @property
    def largest_result(self) -> int:
        """Largest value of a result."""
        return self.rns.z_max

    @property
    def representation(self) -> Residues:
        return Residues(self.rns.base)

    @cached_property
    def bounds(self) -> tuple[Fraction, Fraction, Fraction]:
        return (
            Fraction(self.rns.operand_limit + 1, self.p),
            Fraction(self.rns.product_limit, self.p**2),
            Fraction(self.largest_result + 1, self.p),
        )

    def _conversions(self) -> tuple[BinaryToResidues, ResiduesToBinary]:
        base = self.rns.base
        return BinaryToResidues(base, self.p.bit_length(), 2), ResiduesToBinary(base, self.p, self.largest_result)

    def binary_component(self) -> Multiplier:
        return BinaryShell(self.component(scaled=True), *self._conversions(), self.binary_timing())

    def binary_timing(self) -> Timing:
        before, after = self._conversions()
        return BinaryShell.timing_of(self.contract("native").timing, before.latency, after.latency, self.period)

    def corners(self) -> list[tuple[int, int]]:
        return [(self.representation.pack(x), self.representation.pack(y)) for x, y in edge_operands(self.rns)]

    def facts(self) -> list[tuple[str, str]]:
        base = self.rns.base
        return [
            ("base", f"N = {base.n} moduli 2^{base.w} - u, u = {', '.join(map(str, base.u))}"),
            ("range M", f"{base.M.bit_length()} bits"),
            *self.details(),
            ("operands", f"below {float(self.bounds[0]):.6g} p each"),
        ]

    @abstractmethod
    def details(self) -> list[tuple[str, str]]:
        """The facts that only this design has, for `facts`: (name, value)."""

    @property
    def alpha_shown(self) -> str:
        """The parameters of alpha as text."""
        return f"q = {self.rns.q}, offset d = {self.rns.d} / 2^{self.rns.q}; alpha <= {self.rns.alpha_max}"


class SumOfResiduesMachine(Multiplier):
    """A machine of the native form: operands and results are residue vectors. ``scaled``: results are multiplied by
    M_j^-1. ``plan``: the schedule of one product."""

    def __init__(self, params: Params, plan: Schedule, scaled: bool, *, period: int = 1) -> None:
        self._params, self._plan, self._constants = params, plan, Constants.of(params, scaled)
        width = params.base.n * params.base.w
        super().__init__(width, width, width, period=period)

    @property
    def timing(self) -> Timing:
        return self._plan.timing

    def _looked_up(self, m: Module, alpha: Value, j: int) -> Signal:
        """Entry ``alpha`` of the table <<-alpha M>_p>_mj of channel j."""
        al = Signal(self._params.base.w, name=f"al{j}")
        with m.Switch(alpha):
            for i, row in enumerate(self._constants.al):
                with m.Case(i):
                    m.d.comb += al.eq(row[j])
        return al
