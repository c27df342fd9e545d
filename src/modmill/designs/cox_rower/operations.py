# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The operations of one product on the cox-rower machine, in the order of the algorithm.

Source:  S. Kawamura, M. Koike, F. Sano, A. Shimbo: Cox-Rower Architecture for Fast Parallel Montgomery Multiplication.
         EUROCRYPT, 2000 (KBE, Algorithm 1 of the HBE paper).
         L. Djath, K. Bigou, A. Tisserand: Hierarchical Approach in RNS Base Extension for Asymmetric Cryptography.
         ARITH, 2019 (HBE, Algorithm 2; RNS Montgomery reduction, Algorithm 3).

    s    = x y                        in A            the product
    xi   = s |-p^-1 T_(r,j)|          in A            the quotient Q, scaled for the first extension
    X_r  = sum_j xi_(r,j) A_r / a_(r,j)               HBE: one number for each row, not reduced; KBE: X_i = xi_i
    w~   = x~ y~                      in B            the product
    zeta = w~ |B_j A^-1| + sum_r X_r |p A_r^-1 B_j^-1|   in B     first extension (no cox), then (x y + Q p) / A
    Z_r  = sum_j zeta_(r,j) B_r / b_(r,j)             HBE; KBE: Z_j = zeta_j
    h    = floor((sum_r trunc(Z_r) + d) / 2^t)        the cox
    w    = sum_r Z_r |B / B_r| - h |B|   in A         second extension, exact

Letters: T_(r,j) = (A / a_(r,j))^-1 mod a_(r,j) and A_r, the product of row r, as in the paper; B_j = B / b_j. The
paper's x^_(i,j) is xi in the first extension and zeta in the second, its X^_A_i is X_r and Z_r, its P is p, and its
sigma starts at d / 2^t. Residues over B are kept as x~_j = x |B_j^-1|; zeta is therefore already the x^ of the second
extension.

The lines of the paper and the operations:

    Algorithm 3, RNS Montgomery reduction
    input X    MULTIPLY s (over A) and MULTIPLY w~ (over B); MULTIPLY_TWO for x y + v z
    1          MULTIPLY xi: the constant is |-p^-1 T|, so that line 3 of the first extension costs nothing
    2          the first extension: ROW_SUM X, LOAD and TERMS of ring X, added to sum zeta
    3          TERM: w~ |B_j A^-1| is added to the same sum; the factor P is in the constants of TERMS
    4          REDUCE zeta: the factor A^-1 is in the constants of TERM and TERMS
    5          the second extension: ROW_SUM Z, LOAD and TERMS of ring Z, COX, TERM and REDUCE w

    Algorithm 1 (KBE)   Algorithm 2 (HBE)   the base extensions
    1-3                 1-3                 MULTIPLY xi; REDUCE zeta (both carry the factor T, see above)
    -                   4-7                 ROW_SUM: X_r and Z_r
    4-5                 8                   LOAD, then the steps of TERMS: the ring moves every value past every rower
    6-8                 9-11                COX: one h instead of one h_i after another; none in the first extension
    9-10                12-13               all rowers in parallel
    -                   14                  TERMS: each rower folds the passing X_r modulo its own modulus
    11                  15                  TERMS; TERM for -h B; one REDUCE of the whole sum

Other methods are other lists (`Method`), on the same rowers:

    sQ-RNS            MULTIPLY xi at once from the stored x K_i and y K_i, without s; START sum zeta with a constant
    dQ-RNS            the same; MULTIPLY o, the result over B, which is zeta times a constant
    Shenoy-Kumaresan  one rower more, for the redundant modulus 2^w; the second extension without a cox:
                      v = sum_j zeta_j |B_j|, in the redundant rower h; SHARE h; START sum w with v; TERM and REDUCE w

This list is the only place where the order is written. `model` (integers), `schedule` (jobs for the solver), `chart`,
`control` (control words) and `constants` (addresses) are all made from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from modmill.schedule import ScheduleError

OPERANDS = ("xa", "xb", "ya", "yb")
"""Letters of the operands' words, for one channel of each base: x and y over A and B."""

NUMBER = ("a", "b")
"""Letters of a number's words that a slot machine takes: over A and over B."""


class Method(Enum):
    """The list of operations, with the letters of a product's words in a rower's memory (each exists once for each of
    the rower's channels) and the names of the tables with one constant for each channel."""

    MONTGOMERY = ("s", "xi", "w~", "zeta", "w"), ("xi", "w~", "h")
    """KBE and HBE. Tables: |-p^-1 A_i^-1|, |B_j A^-1|, |-B|."""
    ROOTS = ("xi", "w~", "zeta", "w"), ("start", "w~", "h")
    """sQ-RNS. Tables: N |p B_j^-1|, |B_j A^-1|, |-B K_i|."""
    DOUBLE_ROOTS = ("xi", "w~", "zeta", "o", "w"), ("start", "w~", "h", "o")
    """dQ-RNS. Tables: N |p B_j^-1|, the signs of the roots over B, |-B K_i|, |B_j C_j|."""
    REDUNDANT = ("s", "xi", "w~", "zeta", "v", "w"), ("xi", "w~", "h")
    """Shenoy-Kumaresan: the last rower serves the redundant modulus. Tables as for KBE."""

    @property
    def words(self) -> tuple[str, ...]:
        """Letters of a product's words in a rower's memory."""
        return (*OPERANDS, *self.value[0])

    @property
    def rooted(self) -> bool:
        """Whether the product of two words over A is xi or -xi."""
        return self in (Method.ROOTS, Method.DOUBLE_ROOTS)

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables with one constant for each channel."""
        return self.value[1]


@dataclass(frozen=True)
class Value:
    """An intermediate of the algorithm: its letter and ``k``, the channel within each rower (from 0, of one base).

    ``k`` is None for a value that belongs to no channel.
    """

    letter: str
    k: int | None = 0


H = Value("h", None)
"""h: the second extension subtracts h B."""

RINGS = Value("ring of X", None), Value("ring of Z", None)
"""Contents of the ring in the first and in the second extension."""


class Kind(Enum):
    """The kinds of operations of the machine's units."""

    TAKE = "write a word from the input port into the memory"
    MULTIPLY = "multiply and reduce"
    MULTIPLY_TWO = "multiply twice, add and reduce"
    ROW_SUM = "add words times cofactors over a row, without reduction"
    LOAD = "load the value of every row into the ring"
    TERMS = "multiply in each step of the ring and add to a sum"
    START = "set a sum to a word or a constant"
    TERM = "multiply once and add to a sum"
    REDUCE = "reduce a sum"
    COX = "compute h from the top bits of the values in the ring"
    SHARE = "send the residue of the last rower, which is h, to all rowers"
    GIVE = "read a word from the memory to the output port"


@dataclass(frozen=True)
class Operation:
    """One operation, which all rowers execute at the same time on the k-th of their channels.

    ``result``: the value that it computes; TERM and TERMS add to it, and the first of them ``opens`` (clears) the sum,
    unless START does. ``reads``: its operands. ``table``: the name (`Method.tables`) of the constants that it
    multiplies by, or that START takes; empty for none.
    ``over_b``: modulo b_j if set, else modulo a_i. ``extension``: the base extension that it belongs to, 1 or 2; 0 for
    neither.
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
        """The channel within each rower, from 0."""
        return self.result.k or 0


@dataclass(frozen=True)
class _Lists:
    """Parts of the lists for rowers with ``channels`` channels of each base; ``rows`` as in `operations`."""

    channels: range
    rows: bool

    def each(self, letter: str) -> tuple[Value, ...]:
        """The value of every channel."""
        return tuple(Value(letter, k) for k in self.channels)

    def multiply(self, letter: str, *reads: str, table: str = "", over_b: bool = False) -> Iterator[Operation]:
        """MULTIPLY, with four operands MULTIPLY_TWO."""
        for k in self.channels:
            kind = Kind.MULTIPLY_TWO if len(reads) > 2 else Kind.MULTIPLY
            yield Operation(kind, Value(letter, k), tuple(Value(read, k) for read in reads), table, over_b)

    def to_the_ring(self, extension: int, source: str, row_sum: str) -> Iterator[Operation]:
        """The values that base extension 1 or 2 converts, into the ring: lines 4-7 of Algorithm 2, then the load."""
        for k in self.channels if self.rows else ():
            yield Operation(Kind.ROW_SUM, Value(row_sum, k), (Value(source, k),), extension=extension)
        reads = self.each(row_sum if self.rows else source)
        yield Operation(Kind.LOAD, RINGS[extension - 1], reads, extension=extension)

    def terms(self, extension: int, letter: str) -> Iterator[Operation]:
        """The steps of the ring."""
        for k in self.channels:
            total, ring = Value(f"sum {letter}", k), (RINGS[extension - 1],)
            yield Operation(Kind.TERMS, total, ring, over_b=extension == 1, extension=extension, opens=extension == 2)

    def first_extension(self, method: Method, numbered: bool) -> Iterator[Operation]:
        """From xi to zeta."""
        yield from self.to_the_ring(1, "xi", "X")
        yield from self.terms(1, "zeta")
        if not numbered:
            yield from self.multiply("w~", "xb", "yb", over_b=True)
        for k in self.channels:
            total = Value("sum zeta", k)
            if method.rooted:
                yield Operation(Kind.START, total, (), "start", over_b=True, extension=1)
            opens = not method.rooted
            yield Operation(Kind.TERM, total, (Value("w~", k),), "w~", over_b=True, extension=1, opens=opens)
            yield Operation(Kind.REDUCE, Value("zeta", k), (total,), over_b=True, extension=1)

    def second_extension(self) -> Iterator[Operation]:
        """From zeta to w, with a cox."""
        yield from self.to_the_ring(2, "zeta", "Z")
        yield from self.terms(2, "w")
        yield Operation(Kind.COX, H, RINGS[1:], extension=2)
        for k in self.channels:
            total = Value("sum w", k)
            yield Operation(Kind.TERM, total, (H,), "h", extension=2)
            yield Operation(Kind.REDUCE, Value("w", k), (total,), extension=2)

    def redundant_extension(self) -> Iterator[Operation]:
        """From zeta to w, with a redundant modulus."""
        yield from self.to_the_ring(2, "zeta", "Z")
        yield from self.terms(2, "v")
        v, total = Value("v"), Value("sum w")
        yield Operation(Kind.REDUCE, v, (Value("sum v"),), extension=2)
        yield Operation(Kind.SHARE, H, (v,), extension=2)
        yield Operation(Kind.START, total, (v,), extension=2)
        yield Operation(Kind.TERM, total, (H,), "h", extension=2)
        yield Operation(Kind.REDUCE, Value("w"), (total,), extension=2)


def operations(
    channels_per_rower: int, *, rows: bool, numbered: bool, method: Method = Method.MONTGOMERY
) -> Iterator[Operation]:
    """Yield the operations of one product; every rower serves ``channels_per_rower`` channels of each base, one with a
    redundant modulus.

    ``rows``: with the hierarchical extension (HBE), else KBE. ``numbered``: of a slot machine, which computes
    (x y + v z) A^-1 from operands in its memory.
    """
    lists = _Lists(range(channels_per_rower), rows)
    for letter in NUMBER if numbered else OPERANDS:
        yield from (Operation(Kind.TAKE, value) for value in lists.each(letter))
    if numbered:
        yield from lists.multiply("s", "xa", "ya", "va", "za")
        yield from lists.multiply("w~", "xb", "yb", "vb", "zb", over_b=True)
    elif not method.rooted:
        yield from lists.multiply("s", "xa", "ya")
    if method.rooted:
        yield from lists.multiply("xi", "xa", "ya")
    else:
        yield from lists.multiply("xi", "s", table="xi")
    yield from lists.first_extension(method, numbered)
    yield from lists.redundant_extension() if method is Method.REDUNDANT else lists.second_extension()
    if method is Method.DOUBLE_ROOTS:
        yield from lists.multiply("o", "zeta", table="o", over_b=True)
    for letter in ("o" if method is Method.DOUBLE_ROOTS else "zeta", "w"):
        yield from (Operation(Kind.GIVE, value, (value,)) for value in lists.each(letter))


def require_order(found: Sequence[Operation]) -> None:
    """Raise ScheduleError if an operation reads a value that a later operation computes, or none.

    The message names the operation and the value.
    """
    for place, op in enumerate(found):
        for value in op.reads if op.kind is not Kind.MULTIPLY_TWO else ():  # its operands are numbers in the memory
            makers = [k for k, other in enumerate(found) if other.result == value and other.kind is not Kind.GIVE]
            if not makers or makers[-1] >= place:
                when = "a later operation computes" if makers else "no operation computes"
                raise ScheduleError(f"{op.kind.name} {op.result.letter} reads {value.letter}, which {when}")
