# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""One channel of a residue number system as a core: multiplication and reduction modulo 2^w - u.

Source:  L. Djath, K. Bigou, A. Tisserand: Hierarchical Approach in RNS Base Extension for Asymmetric Cryptography.
         ARITH, 2019, Section IV-C, Table I: CMM(w, w), a product of w x w bits modulo a pseudo-Mersenne modulus, and
         CMR(2w + 1, w), the reduction of 2w + 1 bits.
Formula: P = a b (or P = T, an operand of 2w + 1 bits),  fold: P -> (P >> w) u + P mod 2^w,  as often as needed
Range:   operands in [0, 2^w) (T in [0, 2^(2w+1))), results in [0, 2^w): lazy residues, not always the least. The
         bound after each fold is exact and attained (numbers.folding), so the number of folds is the least possible.
         The binary form gives the least residue: 2^w - 1 < 2 p, so one conditional subtraction is enough.

Deviations from the paper: the product is divided into tiles of one DSP block each. The folds multiply by the constant u
with shifts and additions in logic. The paper leaves both to high-level synthesis, which uses 1 or 2 DSP blocks for the
reduction. Both cores accept operands in every cycle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import isqrt
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from modmill.contract import Binary, Contract, Timing, UnsupportedError
from modmill.design import Cost, Design, DesignInstance, Setting
from modmill.designs.cox_rower import hbe
from modmill.interface import Multiplier
from modmill.numbers.folding import fold, fold_bounds
from modmill.numbers.rns.residues import signed_digits
from modmill.rtl.delay import later
from modmill.rtl.fold import SelectedFold, bits, fold_step, times
from modmill.rtl.periodic import every_cycle
from modmill.rtl.product import BLOCKS, DspBlock, one_tile, tile_rows, tiled, tiled_rows
from modmill.schedule import Operation, Operations, Schedule, Step

MOST_FOLDS = 8
"""Most folds that are built. A modulus further below 2^w needs more; each has an adder for every signed digit of u."""


@dataclass(frozen=True)
class Params:
    """Parameters for modulus 2^``w`` - ``u``. ``multiplies``: a product, else a reduction of 2w + 1 bits.

    ``block``: the DSP block that the product is tiled to. ``registers``: registers in a tile, 1 to 3. With 1 there is
    one register after the sum of the tiles and one after each fold; with 2 and 3 there is one after every adder.
    ``blocks``: so many of the first folds multiply by u in a DSP block. ``cycles``, if not 0, replaces ``registers``:
    there is a register behind each of the first ``cycles`` - 1 steps (product, folds) and behind the last.
    """

    w: int
    u: int
    multiplies: bool
    block: DspBlock
    registers: int
    blocks: int = 0
    cycles: int = 0

    @property
    def bound(self) -> int:
        """Exclusive bound of the value before the first fold."""
        return ((1 << self.w) - 1) ** 2 + 1 if self.multiplies else 1 << (2 * self.w + 1)

    @cached_property
    def folds(self) -> tuple[int, ...]:
        """Exclusive bound before each fold, then the bound after the last."""
        return (self.bound, *fold_bounds(self.bound, self.w, self.u))

    @property
    def operand_bits(self) -> int:
        """Bits of an operand."""
        return self.w if self.multiplies else 2 * self.w + 1

    @cached_property
    def rows(self) -> list[list[tuple[int, int]]]:
        """The tiles of the product, each (first bit of a, first bit of b), in the fewest rows without overlap."""
        return tile_rows(self.w, self.w, self.block)

    @property
    def sum_cycles(self) -> int:
        """Cycles for the sum of the rows of tiles."""
        levels = (len(self.rows) - 1).bit_length() if self.multiplies and not self.cycles else 0
        return levels if self.registers > 1 else min(1, levels)

    def fold_cycles(self, k: int) -> int:
        """Cycles of fold ``k``, counted from 0."""
        if self.cycles or self.registers == 1 or self._one_bit(k):
            return 1
        return self.registers + 1 if self.in_block(k) else len(signed_digits(self.u)).bit_length()

    def _one_bit(self, k: int) -> bool:
        """Whether the high part of fold ``k`` is one bit, which takes no multiplication."""
        return self.folds[k] <= 2 << self.w

    def in_block(self, k: int) -> bool:
        """Whether fold ``k`` multiplies in a DSP block."""
        return k < self.blocks and not self._one_bit(k)

    @property
    def dsp(self) -> int:
        """DSP blocks: the tiles of the product, and one for each fold that has one."""
        tiles = self.block.tiles(self.w, self.w) if self.multiplies else 0
        return tiles + sum(self.in_block(k) for k in range(len(self.folds) - 1))

    @property
    def chain(self) -> list[Operation]:
        """The steps that ``cycles`` counts."""
        return [Kind.P()] * self.multiplies + [Kind.FOLD(k + 1) for k in range(len(self.folds) - 1)]

    def registered(self, operation: Operation) -> bool:
        """With ``cycles``: whether there is a register behind a step of `chain`."""
        at = self.chain.index(operation)
        return at < self.cycles - 1 or at == len(self.chain) - 1

    def schedule(self, canonical: bool) -> Schedule:
        """The operations, one after another. ``canonical``: with the conditional subtraction."""
        plan = [(Kind.P(), 1 if self.sum_cycles or not self.multiplies else self.registers)]
        if self.sum_cycles:
            sums = [(Kind.SUM(k), 1) for k in range(1, self.sum_cycles)]
            plan = [(Kind.ROWS(), self.registers), *sums, *plan]
        plan += [(Kind.FOLD(k + 1), self.fold_cycles(k)) for k in range(len(self.folds) - 1)]
        if self.cycles:
            plan = [(operation, 1) for operation in self.chain if self.registered(operation)]
        plan += [(Kind.LEAST(), 1)] * canonical + [(Kind.R(), 1)]
        steps: list[Step] = []
        for operation, cycles in plan:
            start, reads = (steps[-1].end, [steps[-1].does]) if steps else (0, [])
            steps.append(operation.on(operation.name, start, cycles, reads, busy=1))
        return Schedule(tuple(steps), 1)


class Kind(Operations):
    """The operations, in their order; the machine has a register behind each."""

    ROWS = "rows"
    """Sums of tiles that do not overlap; only if there are several."""
    SUM = "sum{}"
    """A level of their adder tree, except the last."""
    P = "P"
    FOLD = "fold{}"
    LEAST = "least"
    """The least residue (binary form)."""
    R = "r"


class Channel(DesignInstance):
    """Multiplication or reduction modulo 2^w - u for one modulus."""

    def __init__(self, p: int, params: Params, settings: dict[str, Any]) -> None:
        self.p, self.params, self.settings = p, params, settings
        self.operands = 2 if params.multiplies else 1

    @property
    def factor(self) -> int:
        return 1

    @cached_property
    def schedule(self) -> Schedule:
        return self.params.schedule(False)

    @property
    def representation(self) -> Binary:
        return Binary(self.params.operand_bits)

    @property
    def result_form(self) -> Binary:
        return Binary(self.params.w)

    @property
    def bounds(self) -> tuple[Fraction, Fraction, Fraction]:
        operand = Fraction(1 << self.params.operand_bits, self.p)
        return operand, operand**self.operands, Fraction(self.params.folds[-1], self.p)

    @property
    def cost(self) -> Cost:
        return Cost(dsp=self.params.dsp, memory_bits=0, multiplications=int(self.params.multiplies))

    def trace(self, a: int, b: int = 0) -> Iterator[tuple[str, Any]]:
        q = self.params
        if q.sum_cycles:
            low_a, low_b = (1 << q.block.a) - 1, (1 << q.block.b) - 1
            rows = [sum((a >> i & low_a) * (b >> j & low_b) << i + j for i, j in tiles) for tiles in q.rows]
            yield Kind.ROWS().name, rows
            for level in range(1, q.sum_cycles):
                rows = [sum(rows[k : k + 2]) for k in range(0, len(rows), 2)]
                yield Kind.SUM(level).name, rows
        t = a * b if q.multiplies else a
        yield Kind.P().name, t
        for k in range(len(q.folds) - 1):
            t = fold(t, q.w, q.u)
            yield Kind.FOLD(k + 1).name, t
        yield Kind.R().name, t

    def component(self, *, scaled: bool = False) -> Multiplier:
        return Pipeline(self.params, False)

    def binary_component(self) -> Multiplier:
        return Pipeline(self.params, True)

    def binary_timing(self) -> Timing:
        return self.params.schedule(True).timing

    def contract(self, io: str) -> Contract:
        """The contract of one form. Native: lazy results. Plain: least residues; the operands of a product are below
        p, that of a reduction has 2w + 1 bits."""
        contract = super().contract(io)
        if io == "plain" and not self.params.multiplies:
            operand, product, _ = self.bounds
            contract = replace(contract, operand=self.representation, operand_bound=operand, product_bound=product)
        return contract

    def facts(self) -> list[tuple[str, str]]:
        q = self.params
        digits = len(signed_digits(q.u))
        lengths = ", ".join(str(bits(bound)) for bound in q.folds)
        return [
            ("modulus", f"2^{q.w} - {q.u}, u of {digits} signed digit{'s' * (digits > 1)}"),
            *([("product", f"{q.block.tiles(q.w, q.w)} tiles in {len(q.rows)} rows")] * q.multiplies),
            *([("folds in DSP blocks", str(sum(q.in_block(k) for k in range(len(q.folds) - 1))))] if q.blocks else []),
            ("folds", f"{len(q.folds) - 1}; bits before each and after the last: {lengths}"),
            ("results", f"below {q.folds[-1]}"),
        ]

    def edge_values(self) -> list[int]:
        """Values before the first fold for which the operand of a fold, or the result, is at an edge of its range."""
        q = self.params
        top = (1 << q.w) - 1
        out: list[int] = []
        for k, bound in enumerate(q.folds):
            edges = {0, 1, self.p - 1, self.p, self.p + 1, top - 1, top, top + 1, bound - 2, bound - 1}
            edges |= {((bound - 1) >> q.w << q.w) + d for d in (-2, -1, 0)}
            for value in sorted(e for e in edges if 0 <= e < bound):
                t = value
                for before in reversed(q.folds[:k]):
                    high = min(t // q.u, (before - 1) >> q.w)
                    while (high << q.w) + t - high * q.u >= before:
                        high -= 1
                    if not 0 <= t - high * q.u <= top:
                        break
                    t = (high << q.w) + t - high * q.u
                else:
                    out.append(t)
        return list(dict.fromkeys(out))

    def corners(self) -> list[tuple[int, int]]:
        if not self.params.multiplies:
            return [(t, 0) for t in self.edge_values()]
        top = (1 << self.params.w) - 1
        ends = [x for x in (0, 1, self.p - 1, self.p, top) if x <= top]
        pairs = [(a, b) for a in ends for b in ends]
        for t in self.edge_values():
            a = min(top, isqrt(t) + 1)
            pairs += [(a, min(top, t // a)), (top, min(top, t // top))]
        return list(dict.fromkeys(pairs))


class Pipeline(Multiplier):
    """The machine: tiles, adders of their rows, folds and, if ``canonical``, one conditional subtraction.

    Interval 1. Operands are accepted if the queue has room for their result, so the pipeline never stalls and has no
    enable. Latency: that of the schedule. Cost: one DSP block for each tile, an adder for each row of tiles after the
    first, an adder for each signed digit of u in every fold but the last, and a queue with one result for each cycle
    of the latency.
    """

    def __init__(self, params: Params, canonical: bool) -> None:
        self._params, self._canonical = params, canonical
        super().__init__(params.operand_bits, params.operand_bits if params.multiplies else 0, params.w)

    @property
    def timing(self) -> Timing:
        return self._params.schedule(self._canonical).timing

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        q = self._params
        plan = q.schedule(self._canonical)
        made: dict[Operation, Any] = {Kind.R(): self.o_r}
        t = self._product(m, made) if q.multiplies else self.i_a if q.cycles else later(m, self.i_a, "T")
        made[Kind.P()] = _named(m, t, "P")
        for k, bound in enumerate(q.folds[:-1]):
            name = Kind.FOLD(k + 1).name
            if q.in_block(k):
                t = self._block_fold(m, t, k, name)
            elif q.registers == 1 or q.cycles:
                sums, _ = fold_step(m, t, bound, q.w, q.u, name=f"{name}_sum")
                t = later(m, sums, f"{name}_q") if self._keeps(Kind.FOLD(k + 1)) else sums
            else:
                step = SelectedFold(m, t, bound, q.w, (q.u,), Const(0), name=name)
                assert step.latency == q.fold_cycles(k)
                t = step.out
            made[Kind.FOLD(k + 1)] = _named(m, t, name)
        residue: Value = Cat(t, Const(0, q.w))[: q.w]
        if self._canonical:
            total = Signal(q.w + 1)  # r + u = r - p + 2^w
            m.d.comb += total.eq(residue + q.u)
            residue = made[Kind.LEAST()] = later(m, Mux(total[q.w], total[: q.w], residue), "least")
        else:
            _named(m, residue, "r")
        self.probes = [(step.name, made[step.does], step.end) for step in plan.steps]
        every_cycle(m, self, residue, plan.latency - 1)
        return m

    def _keeps(self, operation: Operation) -> bool:
        """Whether a step whose logic is one adder ends in a register."""
        return not self._params.cycles or self._params.registered(operation)

    def _block_fold(self, m: Module, t: Value, k: int, name: str) -> Value:
        """Fold ``k``: a DSP block multiplies its first high bits by u, logic those that exceed the block."""
        q = self._params
        high, low = t[q.w : bits(q.folds[k])], t[: q.w]
        inside = 0 if q.cycles or q.registers == 1 else q.registers
        product = one_tile(m, Const(q.u, q.u.bit_length()), high[: q.block.b], inside, name)
        rest: Value = times(high[q.block.b :], q.u) if len(high) > q.block.b else Const(0, 1)
        for cycle in range(inside):
            low, rest = later(m, low, f"{name}_low{cycle}"), later(m, rest, f"{name}_rest{cycle}")
        total = Signal(bits(max(q.folds[k + 1], 1 << q.w)), name=f"{name}_sum")
        m.d.comb += total.eq(low + product + (rest << q.block.b))
        return later(m, total, f"{name}_q") if self._keeps(Kind.FOLD(k + 1)) else total

    def _product(self, m: Module, made: dict[Operation, Any]) -> Value:
        """a b. Adds the rows of tiles and the levels of their adder tree to ``made``."""
        q = self._params
        if q.cycles:
            whole = tiled(m, self.i_a, self.i_b, q.block, 0, name="product")
            return later(m, whole, "product_q") if q.registered(Kind.P()) else whole
        rows = made[Kind.ROWS()] = tiled_rows(m, self.i_a, self.i_b, q.block, q.registers)
        level = 0
        while len(rows) > 1:
            level += 1
            sums: list[Value] = []
            for k in range(0, len(rows), 2):
                total = sum(rows[k + 1 : k + 2], rows[k])
                keep = q.registers > 1 or len(rows) == 2
                sums.append(later(m, total[: 2 * q.w], f"sum{level}_{k // 2}") if keep else total)
            rows = made[Kind.SUM(level)] = sums
        return rows[0][: 2 * q.w]


def _named(m: Module, value: Value, name: str) -> Signal:
    """A signal with this value for a waveform."""
    out = Signal(len(value), name=f"at_{name}")
    m.d.comb += out.eq(value)
    return out


def fit(p: int, multiplies: bool, *, dsp: str, registers: int, blocks: int, cycles: int) -> Channel:
    """The channel of modulus p = 2^w - u, w being the length of p in bits.

    Raises UnsupportedError if folding makes no progress, if it takes more than MOST_FOLDS folds, if u does not fit a
    DSP block that multiplies by it, and for more cycles than steps.
    """
    w = p.bit_length()
    params = Params(w, (1 << w) - p, multiplies, BLOCKS[dsp], registers, blocks, cycles)
    shown = f"2^{w} - {params.u}" if w <= 128 else f"2^{w} - u with u of {params.u.bit_length()} bits"
    try:
        count = len(params.folds) - 1
    except ValueError as error:
        raise UnsupportedError(f"{shown}: {error}") from error
    if count > MOST_FOLDS:
        raise UnsupportedError(
            f"{shown} is too far below 2^{w}: it takes {count} folds, at most {MOST_FOLDS} are built"
        )
    if blocks and params.u.bit_length() > params.block.a:
        raise UnsupportedError(
            f"u has {params.u.bit_length()} bits, a DSP block multiplies by at most {params.block.a}"
        )
    if cycles > len(params.chain):
        raise UnsupportedError(f"cycles takes 0 to {len(params.chain)} for {shown}, one for each step, not {cycles}")
    return Channel(p, params, {"dsp": dsp, "registers": registers, "blocks": blocks, "cycles": cycles})


def _design(name: str, paper: str, title: str, multiplies: bool) -> Design:
    return Design(
        name=name, page="channel", title=title, paper=paper,
        source=replace(hbe.DESIGNS[0].source, section="Section IV-C, Table I; the reduction in logic is ours"),
        needs=f"a modulus 2^w - u with u small enough that at most {MOST_FOLDS} folds suffice",
        settings=(
            Setting(
                "registers", int, 2, "registers in a tile; 1: and after each sum and fold; 2, 3: and after each adder",
                least=1, most=3,
            ),
            Setting("dsp", str, "18x18", "DSP block that the product is tiled to", tuple(BLOCKS)),
            Setting("blocks", int, 0, "folds that multiply by u in a DSP block, the first ones", choices=(0, 1, 2)),
            Setting(
                "cycles", int, 0, "cycles of the operator: registers behind its first steps and behind the last; 0: "
                "those of registers", least=0, most=3,
            ),
        ),
        solve=lambda p, **settings: fit(p, multiplies, **settings),
        operands=2 if multiplies else 1,
    )  # fmt: skip


DESIGNS = (
    _design("channel-multiply", "CMM(w, w)", "multiplication modulo 2^w - u", True),
    _design("channel-reduce", "CMR(2w + 1, w)", "reduction of 2w + 1 bits modulo 2^w - u", False),
)
