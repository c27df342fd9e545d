# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Fully parallel multiplication modulo p: all products of digits at once, carry-save trees, reduction by tables.

Source:  E. Ozturk: Design and Implementation of a Low-Latency Modular Multiplication Algorithm. IEEE Transactions on
         Circuits and Systems I 67(6), 2020 (products of all digits, carry-save columns, tables for the columns above
         the modulus); S. Kawamura, K. Hirano: A Fast Modular Arithmetic Algorithm Using a Residue Table. EUROCRYPT,
         1988 (tables of multiples modulo p); A. Weimerskirch, C. Paar: Generalizations of the Karatsuba Algorithm for
         Efficient Implementations. 2003 (pairs of digits). Shape, bounds and pipeline are ours.
Formula: T = x y (mod p) in two rows; T mod 2^k + sum over the digits i of T above 2^k of |i 2^j|_p, in two rows; their
         sum (`shape` has the sums in full)
Range:   x, y < 2^W give results below 2^W, where W is the least width for which the largest sum of all tables, or of
         all shifts, fits; with canonical results W = k, and the sums are folded again and p is subtracted

Deviations: Ozturk keeps redundant digits between products; here results are binary, so they serve any core. Digits are
multiplied in pairs by Karatsuba's trick, d (d + 1) / 2 DSP blocks for d digits.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cached_property, lru_cache
from math import gcd
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from modmill.contract import Binary, Timing, UnsupportedError
from modmill.design import Cost, Design, DesignInstance, Setting, Source
from modmill.designs.parallel import shape
from modmill.designs.parallel.network import Kind, Operation, Row, computed
from modmill.designs.parallel.pipeline import Group, Pipeline, longest, most_stages, period
from modmill.designs.parallel.shape import Options, Shape, shaped
from modmill.interface import Multiplier
from modmill.rtl.delay import later
from modmill.rtl.periodic import every_cycle
from modmill.rtl.product import one_tile
from modmill.schedule import Schedule, Step

DIGIT_MAX = 17
"""Most bits of a digit: the sum of two digits is an operand of a DSP block of 18 x 18 bits."""
STAGES_MAX = 64
PERIOD = 60
"""Period of a stage, in 0.1 ns, for the default number of stages."""
BITS_MAX = 640
"""Longest modulus."""
DIGITS_MAX = 40
"""Most digits of a modulus."""


@lru_cache(64)
def smallest(p: int, options: Options) -> Shape:
    """The network with the shortest operands for which results can be operands."""
    width = p.bit_length()
    while True:
        made = shaped(p, width, options)
        if options.canonical or made.result.width <= width:
            return made
        width = made.result.width


class Parallel(DesignInstance):
    """The fully parallel multiplier for one modulus."""

    def __init__(self, p: int, settings: dict[str, Any], *, canonical: bool = False) -> None:
        self.p, self.settings = p, settings
        self.options = Options(settings["digit"], settings["index"], settings["fold"], canonical)
        self.shape = smallest(p, self.options)

    @cached_property
    def pipeline(self) -> Pipeline:
        """The network in stages."""
        net, stages = self.shape.network, self.settings["stages"]
        return Pipeline(net, period(net, stages) if stages else max(PERIOD, longest(net)))

    @cached_property
    def _canonical(self) -> Parallel:
        return Parallel(self.p, self.settings, canonical=True)

    @property
    def factor(self) -> int:
        return 1

    @property
    def representation(self) -> Binary:
        return Binary(self.shape.width)

    @property
    def result_form(self) -> Binary:
        return Binary(self.shape.width)

    @property
    def bounds(self) -> tuple[Fraction, Fraction, Fraction]:
        operand = Fraction(1 << self.shape.width, self.p)
        return operand, operand**2, Fraction(self.shape.bound, self.p)

    @cached_property
    def schedule(self) -> Schedule:
        return Schedule(tuple(step(group) for group in self.pipeline.groups), 1)

    @property
    def cost(self) -> Cost:
        """DSP blocks for all pairs of digits; the tables."""
        return Cost(self.shape.tiles, self.shape.table_bits, self.shape.tiles)

    @property
    def size(self) -> int:
        return self.shape.tiles + sum(operation.lut for operation in self.shape.network.operations) // 32

    def trace(self, a: int, b: int) -> Iterator[tuple[str, Any]]:
        net = self.shape.network
        words = [0] * len(net.widths)
        words[:2] = a, b
        for word, value in net.constants.items():
            words[word] = value
        for operation in net.operations:
            for word, value in zip(operation.words, computed(operation, words), strict=True):
                words[word] = value
        for group in self.pipeline.groups:
            values = [words[word] for word in group.words]
            yield named(group), values[0] if group.kind is Kind.RESULT else values

    def component(self, *, scaled: bool = False) -> Multiplier:
        return Machine(self)

    def binary_component(self) -> Multiplier:
        return Machine(self._canonical)

    def binary_timing(self) -> Timing:
        return self._canonical.schedule.timing

    def facts(self) -> list[tuple[str, str]]:
        made, p = self.shape, self.p
        d = -(-made.width // self.options.w)
        return [
            ("digits", f"d = {d} of {self.options.w} bits; {d} squares and {d * (d - 1) // 2} pairs"),
            ("T", f"{made.sums[0].bound.bit_length()} bits in two rows"),
            *(
                (f"fold {j + 1}", f"by {way}; then below {float(Fraction(after.bound, p)):.6g} p")
                for j, (way, after) in enumerate(zip(made.ways, made.sums[1:], strict=True))
            ),
            ("operands", f"below 2^{made.width}, about {float(self.bounds[0]):.6g} p"),
            ("stages", f"{self.pipeline.depth} of about {self.pipeline.period / 10:g} ns of logic"),
        ]

    def corners(self) -> list[tuple[int, int]]:
        """Operands at the edges of the sums: all digits full or empty, carries through all bits, results near 0 and p,
        and those with the largest sums of a random sample."""
        rnd = random.Random(1)
        width, p, w = self.shape.width, self.p, self.options.w
        top = (1 << width) - 1
        ends = sorted({x for x in (0, 1, 2, p - 1, p, 2 * p - 1, top - 1, top) if 0 <= x <= top})
        pairs = [(x, y) for x in ends for y in ends]
        full = [((1 << w) - 1) << at & top for at in range(0, width, w)]
        stripes = [int("01" * width, 2) & top, int("10" * width, 2) & top, sum(full[::2]), sum(full[1::2])]
        lone = [1 << k for k in {*range(0, width, max(1, width // 16)), width - 1, p.bit_length() - 1}]
        for x in (*stripes, *full, *lone):
            pairs += [(x, top), (top, x), (x, x)]
        for _ in range(12):
            y = rnd.randrange(1, top + 1)
            pairs += [(v * pow(y, -1, p) % p, y) for v in (1, 2, p - 2, p - 1)] if gcd(y, p) == 1 else []
        tried = [(rnd.randrange(top // 2, top + 1), rnd.randrange(top // 2, top + 1)) for _ in range(64)]
        pairs += sorted(tried, key=lambda pair: -self.multiply(*pair))[:4]
        return list(dict.fromkeys(pairs))


def named(group: Group) -> str:
    """The name of a group's step."""
    return group.kind(group.stage).name


def step(group: Group) -> Step:
    """The step that computes a group."""
    unit = group.kind.name.lower() + (f" {group.stage}" if group.kind is not Kind.RESULT else "")
    reads = [kind(stage) for kind, stage in group.reads]
    return group.kind(group.stage).on(unit, group.first, group.stage + 1 - group.first, reads, busy=1)


class Machine(Multiplier):
    """The network and its registers. Operands are accepted in every cycle if there is room for the result; they pass
    logic before their first register, and the result is written to a queue without another one.

    Timing does not depend on values. Cost: a DSP block for each pair of digits; with tables about 3 LUTs for a bit of p
    and an index; a flip-flop for each bit that a later stage reads.
    """

    def __init__(self, fitted: Parallel) -> None:
        self._fitted = fitted
        width = fitted.shape.width
        super().__init__(width, width, width)

    @property
    def timing(self) -> Timing:
        return self._fitted.schedule.timing

    def elaborate(self, _platform: object) -> Module:
        self._m = m = Module()
        fitted = self._fitted
        self._pipeline = fitted.pipeline
        net = fitted.shape.network
        self._here: dict[tuple[int, int], Value] = {(0, 0): self.i_a, (1, 0): self.i_b}
        self._constants = {word: Const(value, net.widths[word]) for word, value in net.constants.items()}
        for operation, stage in zip(net.operations, self._pipeline.stages, strict=True):
            self._place(operation, stage)
        depth = self._pipeline.depth
        every_cycle(m, self, self._here[fitted.shape.result.word, depth - 1], depth - 1)
        for group in self._pipeline.groups:
            last = group.kind is Kind.RESULT
            registers = self.o_r if last else [self._at(word, group.stage + 1) for word in group.words]
            self.probes.append((named(group), registers, group.stage + 1))
        return m

    def _at(self, word: int, stage: int) -> Value:
        """The word in a stage."""
        if word in self._constants:
            return self._constants[word]
        if (word, stage) not in self._here:
            self._here[word, stage] = later(self._m, self._at(word, stage - 1), f"w{word}_{stage}")
        return self._here[word, stage]

    def _row(self, row: Row, stage: int, low: int, width: int) -> Value:
        """A row divided by 2^``low``, in ``width`` bits."""
        parts: list[Value] = []
        at = low
        for piece in sorted(row, key=lambda piece: piece.place):
            bits = self._at(piece.word, stage)[piece.start : piece.start + piece.width]
            parts += [Const(0, piece.place - at), ~bits if piece.inverted else bits]
            at = piece.end
        return Cat(*parts, Const(0, width))[:width]

    def _place(self, operation: Operation, stage: int) -> None:
        """Build an operation in its stage."""
        m, kind = self._m, operation.kind
        spans = [max((piece.end - operation.low for piece in row), default=1) for row in operation.reads]
        if kind is Kind.PRODUCT:
            captures, leaves = (f(operation, stage) for f in (self._pipeline.captures, self._pipeline.leaves))
            a, b = (self._row(row, stage - captures, 0, bits) for row, bits in zip(operation.reads, spans, strict=True))
            word = operation.words[0]
            made = Signal(operation.widths[0], name=f"w{word}")
            m.d.comb += made.eq(one_tile(m, a, b, captures + leaves, f"tile{word}"))
            self._here[word, stage + leaves] = made
            return
        widest = max(*spans, *operation.widths)
        rows = [self._row(row, stage, operation.low, widest) for row in operation.reads]
        outs = [Signal(width, name=f"w{word}") for word, width in zip(operation.words, operation.widths, strict=True)]
        self._here.update({(word, stage): out for word, out in zip(operation.words, outs, strict=True)})
        values: list[Value]
        match kind:
            case Kind.COUNT:
                a, b, c = rows
                either = Signal(widest, name=f"w{operation.words[0]}_either")  # or it would be emitted twice
                m.d.comb += either.eq(a ^ b)
                values = [either ^ c, (a & b) | (either & c)]
            case Kind.TABLE:
                with m.Switch(rows[0][: (len(operation.table) - 1).bit_length()]):
                    for i, entry in enumerate(operation.table):
                        with m.Case(i):
                            m.d.comb += outs[0].eq(entry)
                return
            case Kind.CARRY:
                g, h = rows
                values = [(g + h) ^ g ^ h]
            case Kind.CHOICE | Kind.RESULT if len(rows) > 2:
                values = [selected(rows, operation.parts)]
            case Kind.BLOCK if operation.carry:
                values = [(Cat(Const(1, 1), rows[0]) + Cat(Const(1, 1), rows[1]))[1:]]
            case _:
                values = [rows[0] + rows[1]]
        m.d.comb += [out.eq(value) for out, value in zip(outs, values, strict=True)]


def selected(rows: list[Value], parts: tuple[int, ...]) -> Value:
    """The value of a selection (see `Operation`)."""
    *numbers, selecting = rows
    if not parts:
        chosen = numbers[0]
        for j, other in enumerate(numbers[1:]):
            chosen = Mux(selecting[j], chosen, other)
        return chosen
    chunks: list[Value] = []
    at = 0
    for part, bits in enumerate(parts):
        chunks.append(Mux(selecting[part], *(one[at : at + bits] for one in numbers[::-1])))
        at += bits
    return Cat(*chunks)


def stages_limits(p: int, settings: Mapping[str, Any]) -> tuple[int, int]:
    """Fewest and most stages: those of the shortest period."""
    options = Options(settings["digit"], settings["index"], settings["fold"], canonical=False)
    return 1, most_stages(smallest(p, options).network)


def fit(p: int, **settings: Any) -> Parallel:
    """The design for p. Raises UnsupportedError for a p that is too long."""
    if p.bit_length() > BITS_MAX:
        raise UnsupportedError(f"the modulus must have at most {BITS_MAX} bits, this one has {p.bit_length():,}")
    return Parallel(p, settings)


DESIGNS = (
    Design(
        name="parallel", page="parallel",
        title="fully parallel multiplication: all pairs of digits, carry-save trees, reduction by tables or shifts",
        source=Source(
            "E. Ozturk", "Design and Implementation of a Low-Latency Modular Multiplication Algorithm",
            "IEEE Transactions on Circuits and Systems I 67(6)", 2020,
            "tables for the columns above the modulus; pairs of digits, bounds and pipeline are ours",
        ),
        needs=f"any odd modulus of at most {BITS_MAX} bits",
        settings=(
            Setting("index", int, 4, "bits of an index of a table", least=2, most=6, smaller="change"),
            Setting("digit", int, DIGIT_MAX, "bits of a digit", least=2, most=DIGIT_MAX, smaller="raise",
                    limits=lambda p, settings: (-(-p.bit_length() // DIGITS_MAX), DIGIT_MAX),
                    depends=f"at most {DIGITS_MAX} digits"),
            Setting("stages", int, 0, "stages of the pipeline, the latency; 0: about six nanoseconds of logic in each",
                    least=0, most=STAGES_MAX, limits=stages_limits,
                    depends="at most as many as if each had the delay of the slowest operation"),
            Setting("fold", str, "auto", "how the part above 2^k is reduced; auto: shifts if they have fewer bits",
                    shape.FOLDS),
        ),
        solve=fit,
    ),
)  # fmt: skip
