# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""One product on the cox-rower machine: its operations, in the order of the algorithm.

Source: S. Kawamura et al., EUROCRYPT 2000 (KBE: Algorithm 1 of the HBE paper); L. Djath, K. Bigou, A. Tisserand,
        ARITH 2019 (HBE: Algorithm 2, merged into the Montgomery multiplication as in Section V).

    s    = x y                        in A            the product
    xi   = s |-p^-1 A_i^-1|           in A            the quotient, as the first extension needs it
    X_r  = sum_j xi_(r,j) A_r / a_(r,j)               HBE: the row's number, not reduced; KBE: X_i = xi_i
    w~   = x~ y~                      in B
    zeta = w~ |B_j A^-1| + sum_r X_r |p A_r^-1 B_j^-1|  in B      the first extension, without a cox
    Z_r  = sum_j zeta_(r,j) B_r / b_(r,j)             HBE; KBE: Z_j = zeta_j
    h    = floor((sum_r trunc(Z_r) + d) / 2^t)        the cox
    w    = sum_r Z_r |B / B_r| - h |B|  in A          the second extension, exact

The base extensions line by line, KBE (Algorithm 1) and HBE (Algorithm 2):

    KBE     HBE      here
    1-3     1-3      MULTIPLY: xi, which takes |-p^-1| of the Montgomery multiplication along; for the second extension
                     the REDUCE before it, because residues over B are kept as x~_j = x_j |B_j^-1|
    -       4-7      ROW_SUM: X_r and Z_r
    4-5     8        LOAD and the steps of TERMS: the ring brings everything past every rower
    6-8     9-11     COX: one h for all, not bit by bit; the first extension has none
    -       14       TERMS: each rower folds the X_r that passes modulo its own modulus
    11      15       TERMS, TERM for -h A, and one REDUCE when the sum is whole

`operations` is the only place where this order stands. The algorithm on integers (`model`), the jobs that the solver
places (`schedule`), the chart, the control words (`control`) and the constants' addresses are made from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from modmill.schedule import ScheduleError

OPERANDS = ("xa", "xb", "ya", "yb")
"""Words of the operands for one channel of each base: x and y over A and B."""

NUMBER = ("a", "b")
"""Words of a number that comes into a slot machine: over A and B."""

WORDS = (*OPERANDS, "s", "xi", "w~", "zeta", "w")
"""Words of a product in a rower's memory, one for each of its channels."""

TABLES = ("xi", "w~", "h")
"""Tables with one constant for each channel: |-p^-1 A_i^-1|, |B_j A^-1|, |-B|."""


@dataclass(frozen=True)
class Value:
    """An intermediate of the algorithm: its letter, and for which of each rower's channels (of one base) it is, None
    for what is of no channel."""

    letter: str
    k: int | None = 0


H = Value("h", None)
"""The multiple of B that the second extension takes away."""

RINGS = Value("ring of X", None), Value("ring of Z", None)
"""What stands in the ring in the first and in the second extension."""


class Kind(Enum):
    """What the machine's units can do."""

    TAKE = "a word from outside into the memory"
    MULTIPLY = "a product, reduced"
    MULTIPLY_TWO = "the sum of two products, reduced"
    ROW_SUM = "the sum over a row of words times cofactors, not reduced"
    LOAD = "what every row has into the ring"
    TERMS = "a product for each step of the ring, added to a sum"
    TERM = "one product, added to a sum"
    REDUCE = "a sum, reduced"
    COX = "the number of moduli in what the ring held"
    GIVE = "a word from the memory to the outside"


@dataclass(frozen=True)
class Operation:
    """One operation of all rowers, on the k-th of their channels.

    ``result``: what it makes; a TERM or TERMS adds to it, the first of them ``opens`` the sum. ``reads``: its operands.
    ``table``: the constants that it multiplies by, of `TABLES`. ``over_b``: modulo the b_j, else the a_i.
    ``extension``: to which base extension it belongs, 1 or 2; 0 for neither.
    """

    kind: Kind
    result: Value
    reads: tuple[Value, ...] = ()
    table: str = ""
    over_b: bool = False
    extension: int = 0
    opens: bool = False

    @property
    def k(self) -> int:
        """Which of each rower's channels."""
        return self.result.k or 0


def operations(channels_per_rower: int, *, rows: bool, numbered: bool) -> Iterator[Operation]:
    """The operations of one product where every rower serves ``channels_per_rower`` channels of each base.

    ``rows``: the hierarchical extension. ``numbered``: of two products, whose operands x, y and v, z are in the memory.
    """
    channels = range(channels_per_rower)

    def each(letter: str) -> tuple[Value, ...]:
        return tuple(Value(letter, k) for k in channels)

    def multiply(letter: str, *reads: str, table: str = "", over_b: bool = False) -> Iterator[Operation]:
        for k in channels:
            kind = Kind.MULTIPLY_TWO if len(reads) > 2 else Kind.MULTIPLY
            yield Operation(kind, Value(letter, k), tuple(Value(read, k) for read in reads), table, over_b)

    def to_the_ring(extension: int, source: str, row_sum: str) -> Iterator[Operation]:
        """What the first or second base extension extends, in the ring."""
        for k in channels if rows else ():
            yield Operation(Kind.ROW_SUM, Value(row_sum, k), (Value(source, k),), extension=extension)
        yield Operation(Kind.LOAD, RINGS[extension - 1], each(row_sum if rows else source), extension=extension)

    def terms(extension: int, letter: str) -> Iterator[Operation]:
        for k in channels:
            total, ring = Value(f"sum {letter}", k), (RINGS[extension - 1],)
            yield Operation(Kind.TERMS, total, ring, over_b=extension == 1, extension=extension, opens=extension == 2)

    for letter in NUMBER if numbered else OPERANDS:
        yield from (Operation(Kind.TAKE, value) for value in each(letter))
    if numbered:
        yield from multiply("s", "xa", "ya", "va", "za")
        yield from multiply("w~", "xb", "yb", "vb", "zb", over_b=True)
    else:
        yield from multiply("s", "xa", "ya")
    yield from multiply("xi", "s", table="xi")
    yield from to_the_ring(1, "xi", "X")
    yield from terms(1, "zeta")
    if not numbered:
        yield from multiply("w~", "xb", "yb", over_b=True)
    for k in channels:
        total = Value("sum zeta", k)
        yield Operation(Kind.TERM, total, (Value("w~", k),), "w~", over_b=True, extension=1, opens=True)
        yield Operation(Kind.REDUCE, Value("zeta", k), (total,), over_b=True, extension=1)
    yield from to_the_ring(2, "zeta", "Z")
    yield from terms(2, "w")
    yield Operation(Kind.COX, H, RINGS[1:], extension=2)
    for k in channels:
        total = Value("sum w", k)
        yield Operation(Kind.TERM, total, (H,), "h", extension=2)
        yield Operation(Kind.REDUCE, Value("w", k), (total,), extension=2)
    for letter in ("zeta", "w"):
        yield from (Operation(Kind.GIVE, value, (value,)) for value in each(letter))


def require_order(found: Sequence[Operation]) -> None:
    """Raise ScheduleError, with the dependence, when an operation reads what is made after it or by none."""
    for place, op in enumerate(found):
        for value in op.reads if op.kind is not Kind.MULTIPLY_TWO else ():  # its operands lie in the memory
            makers = [k for k, other in enumerate(found) if other.result == value and other.kind is not Kind.GIVE]
            if not makers or makers[-1] >= place:
                when = "an operation after it makes" if makers else "no operation makes"
                raise ScheduleError(f"{op.kind.name} {op.result.letter} reads {value.letter}, which {when}")
