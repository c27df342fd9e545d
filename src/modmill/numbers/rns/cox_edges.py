# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Numbers at the edges of the cox of a base extension, built through the Chinese remainder theorem."""

import random
from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor

from modmill.numbers.rns.cox import Cox
from modmill.numbers.rns.extension import CoxExtension


class _Hats:
    """Random X^_i of all rows with chosen top and low bits, each the sum of residues xi below their moduli."""

    def __init__(self, extension: CoxExtension, seed: int) -> None:
        self.cox, self.A, self.rnd = extension.cox, extension.source.M, random.Random(seed)
        cox = self.cox
        self.last = len(cox.rows) - 1
        self._inverses = [
            [pow(product // a, -1, a) for a in row] for row, product in zip(cox.rows, cox.products, strict=True)
        ]
        spare = (cox.error * (1 << cox.t) - cox.offset) * (1 << cox.drop)
        self._noise_bits = max(0, int(spare / (8 * len(cox.rows))).bit_length() - 1)

    def _representable(self, i: int, hat: int) -> bool:
        cox = self.cox
        parts = zip(self._inverses[i], cox.rows[i], strict=True)
        return sum(hat * inverse % a * (cox.products[i] // a) for inverse, a in parts) == hat

    def number(self, hats: Sequence[int]) -> int:
        """x in [0, A) with these X^_i."""
        return sum(hat * (self.A // product) for hat, product in zip(hats, self.cox.products, strict=True)) % self.A

    def near(self, i: int, block: int, low: int) -> int | None:
        """A representable X^_i with these top bits and these low bits, except for a few of the lowest."""
        hat = block << self.cox.drop | low
        noise = (self.rnd.getrandbits(self._noise_bits) if k else 0 for k in range(20))
        return next((hat ^ bits for bits in noise if self._representable(i, hat ^ bits)), None)

    def patterned(self, low: int, blocks: range) -> list[int] | None:
        """X^_i with these low bits and top bits in ``blocks``, in all rows but the last."""
        hats: list[int] = []
        for i in range(self.last):
            tried = (self.near(i, self.rnd.choice(blocks), low) for _ in range(20))
            if (hat := next((hat for hat in tried if hat is not None), None)) is None:
                return None
            hats.append(hat)
        return hats

    def around(self, head: Sequence[int], place: Fraction) -> set[int]:
        """Four numbers whose X^_i are ``head`` and a last one that puts x / A just below or above ``place``."""
        product = self.cox.products[self.last]
        part = sum((Fraction(hat, p) for hat, p in zip(head, self.cox.products, strict=False)), Fraction(0))
        need = floor((place - part) % 1 * product)
        return {self.number([*head, (need + k) % product]) for k in (-1, 0, 1, 2)}


def cox_edges(extension: CoxExtension, seed: int = 1) -> list[int]:
    """Numbers in [0, A) at the edges of the cox: of each truncation, of 0 and of the limit of exactness.

    Low bits of X^_i all ones, top bits that sum to 2^t - floor(2^t E) modulo 2^t: x / A is just above 0 with a large
    error, so a smaller offset fails (X^_i is in the upper fifth where only such values reach E). Low bits all zeros,
    top bits that sum to 2^t - d: x / A is at the limit with a small error. Random X^_i with either pattern, and a last
    one that puts x / A just above or below 0 and the limit (the only kind for FixedPoint). Then 0, 1, A - 1 and the
    neighbours of the limit.
    """
    hats = _Hats(extension, seed)
    cox, A = hats.cox, hats.A
    limit, full = extension.exact.limit, (min(cox.tops) >> cox.drop) + 1
    ones = (1 << cox.drop) - 1
    found = {0, 1, A - 1, *(x for x in range(limit - 2, limit + 2) if 0 <= x < A)}
    kinds = (
        (ones, range(full), -cox.offset),
        (ones, range(full - max(1, full // 3), full), -cox.offset),
        (ones, range(full - max(1, full // 5), full), -cox.offset),
        (0, range(full), -extension.d),
        (0, range(max(1, full // len(cox.rows))), -extension.d),
    )
    for low, blocks, total in kinds:
        hits = 0
        for attempt in range(100):
            if (head := hats.patterned(low, blocks)) is None:
                continue
            block = (total - sum(hat >> cox.drop for hat in head)) % (1 << cox.t)
            ends = [hats.near(hats.last, block + (k << cox.t), low) for k in range(cox.columns)]
            exact = [hats.number([*head, hat]) for hat in ends if hat is not None]
            found.update(exact)
            hits += len(exact)
            if attempt < 10:
                found |= hats.around(head, Fraction(0)) | hats.around(head, Fraction(limit, A))
            elif hits >= 10:
                break
    return sorted(found)


def edge_zeta(cox: Cox, size: Fraction, rnd: random.Random) -> list[int]:
    """Residues zeta over the base B of ``cox`` at the edge of its truncation: the number x that they represent is
    about ``size`` * B.

    In all rows but the last, Z_r is just below a multiple of 2^drop, where the cox ignores most. The last row brings
    x / B near ``size``, in [0, 1).
    """
    zeta: list[int] = []
    part = Fraction(0)
    for row, product in zip(cox.rows[:-1], cox.products, strict=False):
        values = [rnd.randrange(m) for m in row[:-1]]
        partners = [product // m for m in row]
        low = sum(v * k for v, k in zip(values, partners, strict=False))
        unit = 1 << cox.drop
        edges = [(e * unit - 1 - low) // partners[-1] for e in range(1, (cox.tops[0] >> cox.drop) + 2)]
        usable = [v for v in edges if 0 <= v < row[-1]]
        values.append(rnd.choice(usable) if usable else rnd.randrange(row[-1]))
        zeta += values
        part += Fraction(low + values[-1] * partners[-1], product)
    row = cox.rows[-1]
    values = [rnd.randrange(m) for m in row[:-1]]
    part += sum((Fraction(v, m) for v, m in zip(values, row, strict=False)), Fraction(0))
    return [*zeta, *values, ceil((size - part) % 1 * row[-1]) % row[-1]]
