# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Engines in folders, and which of them answers a group: for a curve one with the operations, for RSA the narrowest."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from modmill.cores.ecc.engine import ExactPointEngine, RtlPointEngine
from modmill.cores.ecc.machine import EccCore
from modmill.cores.rsa.engine import Stored
from modmill.engines.ecc.blinding import Ecc
from modmill.engines.rsa import keygen
from modmill.engines.rsa.rsa import BITS, PrivateKey, Rsa, engine_width
from modmill.numbers.curves.affine import Curve
from modmill.studies.acvp.files import Item


@dataclass
class Engines:
    """Engines that answer requests. ``keys``: length of a modulus -> the key that signs; for other lengths a new key
    pair is made, once. ``below``: function that returns a random number below its argument."""

    points: Sequence[RtlPointEngine] = ()
    powers: Sequence[Stored] = ()
    keys: dict[int, PrivateKey] = field(default_factory=dict)
    below: Callable[[int], int] = secrets.randbelow

    @classmethod
    def read(cls, folders: Sequence[Path], *, rtl: bool = False, keys: Sequence[PrivateKey] = ()) -> Engines:
        """Read folders of `rsa build` and `ecc build`. ``rtl``: simulate their Verilog, else interpret their programs
        with the bit-exact algorithm of their multiplier. Raises ValueError if a folder has no engine, or an edited
        one."""
        kind = RtlPointEngine if rtl else ExactPointEngine
        points, powers = [], []
        for folder in folders:
            if (folder / f"{EccCore.STEM}.json").exists():
                points.append(kind(EccCore.read(folder)))
            else:
                powers.append(Stored.read(folder, whole=True, modelled=not rtl))
        return cls(points, powers, {key.bits: key for key in keys})

    def on(self, group: Item, curve: Curve, *operations: str) -> Ecc:
        """The protocols on an engine for a curve with these operations. Raises Unserved if there is none."""
        here = [engine for engine in self.points if engine.curve == curve]
        for engine in here:
            if set(operations) <= set(engine.core.operations):
                return Ecc(engine, order=engine.order, below=self.below)
        options = "".join(f" --operation {name}" for name in operations)
        what = f"the engine of {curve.title} lacks an operation" if here else f"there is no engine for {curve.title}"
        raise group.unserved(f"{what}; modmill ecc build --curve {curve.title}{options} makes one")

    def rsa(self, group: Item, bits: int, *, private: bool) -> Rsa:
        """RSA on the narrowest engine that can have the primes of a modulus of ``bits`` bits (``private``), or the
        modulus. Raises Unserved if there is none, or Modmill has no RSA of that length."""
        if bits not in BITS:
            raise group.unserved(f"RSA moduli have {BITS[0]} to {BITS[-1]} bits, got {bits:,}")
        width = engine_width(bits, private)
        wide = sorted((engine for engine in self.powers if engine.width >= width), key=lambda engine: engine.width)
        if not wide:
            crt = "" if private else " --no-crt"
            raise group.unserved(
                f"there is no engine for moduli of {width:,} bits; modmill rsa build --bits {bits}{crt} makes one"
            )
        return Rsa(wide[0], below=self.below)

    def key(self, rsa: Rsa, bits: int) -> PrivateKey:
        """The key pair of a length that signs."""
        if bits not in self.keys:
            self.keys[bits] = keygen.generate(rsa, bits)
        return self.keys[bits]

    @property
    def work(self) -> Mapping[str, int]:
        """Name of an engine -> cycles that it was simulated for."""
        found = {f"{engine.curve.title}": sum(sum(w.cycles) for w in engine.work) for engine in self.points}
        found |= {f"powers, {engine.width:,} bits": sum(w.cycles for w in engine.work) for engine in self.powers}
        return {name: cycles for name, cycles in found.items() if cycles}
