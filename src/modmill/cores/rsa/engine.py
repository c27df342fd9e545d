# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""RSA engines on a design: its contract (model), its bit-exact algorithm, or simulated RTL."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from modmill.contract import Contract, UnsupportedError
from modmill.cores.rsa.circuit import CircuitCore, read_any
from modmill.cores.rsa.machine import EngineCore, engine, uniform
from modmill.design import IO, DesignInstance
from modmill.designs import DESIGNS
from modmill.designs import design as find_design
from modmill.engines.rsa.exponentiation import PUBLIC
from modmill.engines.rsa.rsa import Engine, Modelled
from modmill.numbers.shown import shortened

KINDS = ("model", "exact", "rtl")
DEFAULT = "montgomery-array"
"""Default multiplier."""
CIRCUIT = "radix64k-ram"
"""Default multiplier of the circuit: that of Theorem 10."""


def loaded() -> list[str]:
    """Names of the designs that can load their modulus."""
    return [d.name for d in DESIGNS if any(s.name == "loadable" for s in d.settings)]


def circuits() -> list[str]:
    """Names of the designs that the circuit can have."""
    return [d.name for d in DESIGNS if any(s.name == "feedback" for s in d.settings)]


def engine_for(
    kind: str, design: str = DEFAULT, settings: Mapping[str, Any] | None = None, *, method: str = "window",
    window: int = 5, threads: int = 1, io: str = "native",
) -> Engine:  # fmt: skip
    """Make an engine around a design.

    ``kind``: ``model`` interprets the program on the design's contract, ``exact`` on its bit-exact algorithm, ``rtl``
    simulates the RTL. ``method``, ``window``: as in `uniform`. ``threads``: interleaved powers. ``io``: form of the
    multiplier.

    Raises UnsupportedError for an unknown kind, design, form or setting.
    """
    if io not in IO:
        raise UnsupportedError(f"io must be one of {', '.join(IO)}, not {shortened(io)}")
    if kind not in KINDS:
        known = f"{', '.join(KINDS)}, or a folder with a built engine"
        raise UnsupportedError(f"the engine must be one of {known}, not {shortened(kind)}")
    given = dict(settings or {})
    find_design(design).checked(given)
    uniform(method, window, True)
    if kind == "rtl":
        return Simulated(design, given, method, window, threads, io)

    def fit(p: int) -> tuple[Contract, Callable[[int, int], int] | None]:
        fitted = find_design(design).fit(p, **given)
        contract = fitted.contract(io)
        return contract, exact(fitted, contract) if kind == "exact" else None

    return Modelled(fit, lambda converted: uniform(method, window, converted))


def exact(fitted: DesignInstance, contract: Contract) -> Callable[[int, int], int]:
    """The bit-exact product of a design in the form of a contract."""
    canonical = contract.result_bound <= 1  # the binary form ends with a canonical result
    return (lambda a, b: fitted.multiply(a, b) % contract.p) if canonical else fitted.multiply


@dataclass(frozen=True)
class Work:
    """One call in simulation: numbers of powers and products, ``cycles`` of the longest job, digest of the Verilog."""

    modulus_bits: int
    program: str
    powers: int
    products: int
    cycles: int
    rtl: str


def simulated(
    core: EngineCore, modulus: int, program: int, pairs: Sequence[tuple[int, int]], bits: int, work: list[Work]
) -> list[int]:
    """Simulate powers on the RTL, exponents of ``bits`` bits (0: the maximum); append the call to ``work``. Bases that
    are loaded are drawn anew.

    Raises UnsupportedError and ToolError as `EngineCore.simulate` does.
    """
    core = core.choose(secrets.randbelow(core.fitted.choices))
    found = core.simulate(core.at(modulus), program, pairs, bits)
    name, count = core.described(program, bits)
    work.append(Work(
        modulus.bit_length(), name, len(pairs), count, max(found.cycles), core.digest,
    ))  # fmt: skip
    return found.powers


@dataclass
class Stored:
    """The engine in a folder, simulated with the folder's Verilog. ``work``: list of calls.

    It computes powers with secret exponents. The host computes powers with public exponents, by Python's integers; with
    ``whole`` the engine does if it is as wide as the modulus. ``modelled``: interpret the engine's programs with its
    multiplier's bit-exact algorithm instead of the simulation. Raises UnsupportedError for a modulus that the engine
    cannot load, for exponents that are too long for it, and for the model of a circuit.
    """

    core: EngineCore
    work: list[Work] = field(default_factory=list)
    whole: bool = False
    modelled: bool = False

    @classmethod
    def read(cls, folder: str | Path, *, whole: bool = False, modelled: bool = False) -> Stored:
        """Read a folder that `modmill rsa build` wrote. Raises ValueError if Verilog or record were edited."""
        return cls(read_any(folder), whole=whole, modelled=modelled)

    @property
    def width(self) -> int:
        """Bits of the longest modulus."""
        return self.core.fitted.p.bit_length()

    @property
    def inverts(self) -> int:
        """The public exponent whose inverses exponents must be, 0 if the engine computes any power."""
        return self.core.inverts

    def secret(self, modulus: int, pairs: Sequence[tuple[int, int]], bits: int) -> list[int]:
        """Powers by program 0."""
        if modulus.bit_length() > self.width:
            raise UnsupportedError(
                f"moduli of this engine must have at most {self.width} bits, got {modulus.bit_length()}: with CRT they "
                "are the primes of the key, without CRT its modulus"
            )
        if not self.modelled:
            return self.powers(modulus, 0, pairs, bits)
        if bits > self.core.exponent_bits:
            raise UnsupportedError(
                f"exponents of this engine must have at most {self.core.exponent_bits} bits, got {bits}"
            )
        return self._model.secret(modulus, pairs, bits)

    def public(self, modulus: int, bases: Sequence[int], exponent: int) -> list[int]:
        """Powers by program 1 for 65537 and by program 0 for others, or on the host; by an engine for inverses of a
        public exponent only those with 65537."""
        by_host = not self.whole or (exponent != PUBLIC and self.inverts)
        if by_host or modulus.bit_length() > self.width:
            return [pow(base, exponent, modulus) for base in bases]
        pairs = [(base, exponent) for base in bases]
        if exponent != PUBLIC:
            return self.secret(modulus, pairs, exponent.bit_length())
        if self.modelled:
            return self._model.public(modulus, bases, exponent)
        return self.powers(modulus, 1, pairs, exponent.bit_length())

    def powers(self, modulus: int, program: int, pairs: Sequence[tuple[int, int]], bits: int) -> list[int]:
        """Powers by a program, exponents of ``bits`` bits."""
        return simulated(self.core, modulus, program, pairs, bits, self.work)

    @cached_property
    def _model(self) -> Modelled:
        core = self.core
        if isinstance(core, CircuitCore):
            raise UnsupportedError("the circuit has no model that is interpreted; simulate its Verilog")

        def fit(p: int) -> tuple[Contract, Callable[[int, int], int]]:
            fitted = core.at(p)
            contract = core.contract_at(fitted)
            return contract, exact(fitted, contract)

        return Modelled(
            fit, lambda converted: uniform(core.method, core.window, converted, core.checked_by, core.fixed_addresses)
        )


@dataclass
class Simulated:
    """Engines in simulation, made on demand. ``work``: list of calls.

    Powers with secret exponents run on a machine as wide as the modulus; if the design loads its modulus, one machine
    serves all moduli of a length. The host computes powers with the public exponent, for the check and for blinding, by
    Python's integers; with ``whole`` they run on a machine as wide as n.
    """

    design: str
    given: Mapping[str, Any]
    method: str = "window"
    window: int = 5
    threads: int = 1
    io: str = "native"
    whole: bool = False
    work: list[Work] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._machine = lru_cache(maxsize=8)(self._made)

    def secret(self, modulus: int, pairs: Sequence[tuple[int, int]], bits: int) -> list[int]:
        """Powers by program 0 of the RTL."""
        return simulated(self._core(modulus, bits), modulus, 0, pairs, 0, self.work)

    def public(self, modulus: int, bases: Sequence[int], exponent: int) -> list[int]:
        """Powers by program 1 of the RTL with ``whole``, else on the host."""
        if self.whole and exponent == PUBLIC:
            core = self._core(modulus, modulus.bit_length())
            return simulated(core, modulus, 1, [(base, exponent) for base in bases], 0, self.work)
        return [pow(base, exponent, modulus) for base in bases]

    def _core(self, modulus: int, bits: int) -> EngineCore:
        loadable = self.design in loaded() and self.given.get("loadable") not in (False, "false", "no", "0")
        return self._machine(0 if loadable else modulus, modulus.bit_length(), bits)

    def _made(self, modulus: int, width: int, bits: int) -> EngineCore:
        return engine(
            self.design, modulus, 0 if modulus else width, self.given, bits=bits, method=self.method,
            window=self.window, threads=self.threads, io=self.io,
        )  # fmt: skip
