# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What the designs with other lists of operations than KBE and HBE share: settings, and the search for n.

They have one rower for each modulus, and their modulus is built in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from modmill.contract import UnsupportedError
from modmill.design import Setting
from modmill.designs.cox_rower.kbe import N_MAX, SEARCHED, SETTINGS, RnsMontgomery, placed
from modmill.designs.cox_rower.schedule import BLOCK_WORDS, LEAST_SLOTS, memory_words
from modmill.numbers.rns.base_pairs import Sufficiency

Made = TypeVar("Made", bound=RnsMontgomery)
NO_SLOTS = "the slot machine has the operations of kbe and hbe only"


def fewest_moduli(p: int, w: int, n: int, proved: Callable[[int, int], Sufficiency]) -> Sufficiency:
    """The proof that holds for the fewest moduli in each base; for ``n`` of them unless that is 0.

    ``proved(n, digits)``: the proof for n moduli 2^w - u with at most that many signed digits in u. Raises ValueError
    with the inequality that fails, or if there are too few moduli.
    """
    smallest = -(-(4 * p - 1).bit_length() // w)  # A <= 2^(n w) must reach 4 p at least
    if smallest > N_MAX:
        raise UnsupportedError(
            f"a modulus of {p.bit_length():,} bits needs at least {smallest} moduli of {w} bits in each base, and "
            f"{N_MAX} are the most: raise w"
        )
    failed = ""
    for digits in (3, 7):
        for count in (n,) if n else range(smallest, N_MAX + 1):
            try:
                proof = proved(count, digits)
            except ValueError as error:
                failed = str(error)
                break
            if proof.holds:
                return proof
            failed = proof.refusal
    raise ValueError(failed or f"a modulus of {p.bit_length()} bits needs more than {N_MAX} moduli of {w} bits")


def fitted(made: Made) -> Made:
    """``made``. Raises UnsupportedError if the block RAMs have no room, or if its interval has no schedule."""
    shape = made.params.shape
    if memory_words(shape, LEAST_SLOTS) > BLOCK_WORDS:
        raise UnsupportedError(
            f"n = {made.params.pair.n} moduli need {shape.constants:,} constants in each block RAM, and {shape.slot} "
            f"words for each product; it has room for {BLOCK_WORDS:,}: lower n"
        )
    if made.settings["interval"]:
        placed(shape, made.settings["interval"])
    return made


def settings_of(fit: Callable[..., RnsMontgomery]) -> tuple[Setting, ...]:
    """The settings w, n, interval and dsp of `kbe`, with the limits of the designs that ``fit`` makes."""

    def moduli(p: int, settings: Mapping[str, Any]) -> tuple[int, int]:
        return fit(p, **{**settings, "n": 0, "interval": 0}).params.pair.n, N_MAX

    def intervals(p: int, settings: Mapping[str, Any]) -> tuple[int, int]:
        shape = fit(p, **{**settings, "interval": 0}).params.shape
        least = placed(shape, 0).interval if shape.n <= SEARCHED else shape.least_interval
        return least, max(least, 4 * shape.least_interval)

    limits = {"n": moduli, "interval": intervals}
    return tuple(replace(s, limits=limits.get(s.name)) for s in SETTINGS if s.name in ("w", "n", "interval", "dsp"))
