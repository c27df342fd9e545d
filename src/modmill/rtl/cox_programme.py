# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What the cox-rower machine (rtl.cox_rower) does in which cycle: the jobs of one product and their places in time.

cycle t       addresses at the block RAM
cycle t + 3   operands at the multiplier, behind a register
cycle t + 7   product behind the DSP block's three registers and one more
cycle t + 8   sum with that product
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from modmill import placement
from modmill.numbers.folding import fold_bound
from modmill.numbers.rns import signed_digits
from modmill.placement import Job
from modmill.schedule import Schedule, Step

OPERAND = 3
"""Cycles from an address to the operand at the multiplier."""

PRODUCT = 7
"""Cycles from an address to the visible product."""

TREE = 2
"""Registers between the machine's control word and the rower's."""

WORDS = ("xa", "xb", "ya", "yb", "s", "xi", "wt", "zeta", "w", "h")
"""Words of one product's slot in each rower's memory."""

H_STAYS = 8
"""Cycles for which h may wait in its register."""

SLOT = 16
"""Words set aside for a slot."""

CONSTANTS = ("xi", "wt", "h")
"""Constants before the cofactors of the row and those of the two extensions."""


@dataclass(frozen=True)
class Shape:
    """What the machine's structure depends on.

    ``w``: bits of a channel, ``columns``: rowers in a row, ``u``: for each rower the pair (u of a_i, u of b_i),
    ``fraction``: t of the cox, ``offset``: its d.
    """

    w: int
    columns: int
    u: tuple[tuple[int, int], ...]
    fraction: int
    offset: int

    @property
    def n(self) -> int:
        """Rowers."""
        return len(self.u)

    @property
    def rows(self) -> int:
        """Steps of the ring."""
        return self.n // self.columns

    @property
    def hat_bits(self) -> int:
        """Bits of what travels in the ring."""
        return self.w if self.columns == 1 else self.columns * self.w + (self.columns - 1).bit_length()

    @property
    def top_bits(self) -> int:
        """Bits of the cox's summands."""
        return self.hat_bits - (self.columns * self.w - self.fraction)

    @property
    def cox_levels(self) -> int:
        """Levels of the cox's adder tree."""
        return max(1, (self.rows - 1).bit_length())

    @cached_property
    def h_max(self) -> int:
        """Largest h."""
        return (self.rows * ((1 << self.top_bits) - 1) + self.offset) >> self.fraction

    @cached_property
    def sum_bound(self) -> int:
        """Exclusive bound of the lazy sums of both extensions."""
        top = (1 << self.w) - 1
        return top * top * (self.rows + 1) + top * self.h_max + 1

    @cached_property
    def product_bound(self) -> int:
        """Exclusive bound of one product."""
        return ((1 << self.w) - 1) ** 2 + 1

    @property
    def loop(self) -> bool:
        """Whether sums are folded in a loop (else in a pipeline)."""
        return self.columns == 1

    @cached_property
    def digits(self) -> int:
        """Signed digits of u that every fold is built for."""
        return max(len(signed_digits(u)) for pair in self.u for u in pair)

    @property
    def loop_pass(self) -> int:
        """Cycles of one pass of the loop: entry register, multiplexer register and adder tree."""
        return 2 + max(1, self.digits.bit_length())

    def passes(self, bound: int) -> int:
        """Passes that bring any value below ``bound`` below 2^w in every channel."""
        return len(self.bounds(bound))

    def bounds(self, bound: int) -> list[int]:
        """Exclusive bounds before each pass, worst channel."""
        out = []
        while bound > 1 << self.w:
            out.append(bound)
            smaller = max(fold_bound(bound, self.w, u) for pair in self.u for u in pair)
            if smaller >= bound:
                raise ValueError(f"folding makes no progress below {bound}")
            bound = smaller
        return out

    @cached_property
    def fold_bound(self) -> int:
        """Exclusive bound of all that enters the fold."""
        return max(self.sum_bound, self.product_bound, 1 << self.hat_bits)

    @cached_property
    def fold_latency(self) -> int:
        """Cycles of the pipelined fold: entry register, a multiplexer register in the first pass, and adder trees."""
        tree = max(1, self.digits.bit_length())
        return 1 + sum(1 if b <= 2 << self.w else tree + (k == 0) for k, b in enumerate(self.bounds(self.fold_bound)))

    @property
    def parts(self) -> int:
        """Words of a row's cofactor A_r / a_(r,j), and so multiplications for X_r."""
        return self.columns - 1

    @property
    def hat_cycles(self) -> int:
        """Cycles from the first of them to the whole X_r."""
        return PRODUCT + 1 if self.parts == 1 else PRODUCT + 1 + self.parts

    @property
    def fixed(self) -> int:
        """Constants before those of the two extensions."""
        return len(CONSTANTS) + 2 * self.parts

    @property
    def least_interval(self) -> int:
        """Multiplications of one product in each rower."""
        return 5 + 2 * self.rows + 2 * self.parts


def jobs(shape: Shape) -> list[Job]:
    """What one product does, to be placed in time; cycle 0 is the first multiplication."""
    n = shape.rows
    latency = shape.fold_latency
    made: dict[str, Job] = {}

    def fold(bound: int) -> tuple[tuple[tuple[str, int, int], ...], int]:
        """Uses of the fold, and cycles from entry to the visible residue."""
        if not shape.loop:
            return (("fold", 0, 1),), latency
        passes = shape.passes(bound)
        return tuple(("fold", i * shape.loop_pass, 1) for i in range(passes)), passes * shape.loop_pass

    def add(
        name: str,
        uses: Sequence[tuple[str, int, int]] = (),
        after: Sequence[tuple[str, int]] = (),
        within: Sequence[tuple[str, int]] = (),
        holds: Sequence[tuple[str, str, int, int]] = (),
    ) -> None:
        made[name] = Job(name, tuple(uses), tuple(after), tuple(within), tuple(holds))

    operand = ("multiplier", 0, 1), ("memory", 0, 1)
    single, single_cycles = fold(shape.product_bound)
    whole, whole_cycles = fold(shape.sum_bound)

    def product(name: str, *after: tuple[str, int]) -> None:
        """One product, folded and stored."""
        add(name, operand, after)
        add(
            f"{name} fold", (*single, ("memory", single_cycles, 1)), ((name, PRODUCT + 1),),
            holds=(("caught product", name, PRODUCT + 1, 0),),
        )  # fmt: skip

    def ring(k: int, source: str, ready: int) -> int:
        """Ring ``k`` loaded from a stored word, and its run; returns the run's first slot, counted from its start."""
        run = f"ring {k}"
        if shape.loop:
            add(f"read {k}", (("memory", 0, 1),), ((source, ready + 1),))
            add(f"load {k}", (), ((f"read {k}", OPERAND),), holds=(("waiting", f"read {k}", OPERAND, 0),))
            first = -1
            uses: tuple[tuple[str, int, int], ...] = (("multiplier", first, n),)
        else:
            words = ("multiplier", 0, shape.parts), ("memory", 0, shape.parts)
            begun = min(shape.hat_cycles, PRODUCT + 2)  # the register changes from here on
            add(f"hat {k}", words, ((source, ready + 1),))
            add(f"load {k}", (), ((f"hat {k}", shape.hat_cycles),), holds=(("hat", f"hat {k}", begun, 0),))
            first = latency - 1
            uses = ("fold", 1, n), ("multiplier", first, n)
        load = f"load {k}"
        add(run, uses, ((load, 0),), ((load, n),), ((("ring", load, 1, n)),))
        return first

    def total(k: int, name: str, first: tuple[str, int], last: Sequence[tuple[str, int]]) -> None:
        """The sum over ring ``k``, caught, folded and stored."""
        add(f"catch {k}", (), last, holds=(("sum", first[0], first[1] + PRODUCT, 0),))
        add(
            name, (*whole, ("memory", whole_cycles, 1)), ((f"catch {k}", 1),),
            holds=(("caught sum", f"catch {k}", 1, 0),),
        )  # fmt: skip

    near = tuple((f"in {word}", 10) for word in WORDS[:4])
    loads = [
        Job(f"in {word}", (("memory", 0, 1),), within=tuple(x for x in near if x[0] != f"in {word}"))
        for word in WORDS[:4]
    ]
    product("s", *((f"in {word}", 1) for word in WORDS[:4]))
    product("xi", ("s fold", single_cycles + 1))
    first = ring(1, "xi fold", single_cycles)
    product("w~", ("in xb", 1), ("in yb", 1))
    add("w~ c", operand, (("w~ fold", single_cycles + 1), ("ring 1", first - 3)), (("ring 1", first - 1),))
    total(1, "zeta fold", ("w~ c", 0), (("ring 1", first + n + PRODUCT),))
    first = ring(2, "zeta fold", whole_cycles)
    cox = 1 + 1 + shape.cox_levels + 1 + TREE + 1  # load, tap, tree, h, tree of control, operand bus
    add("h", (("memory", 0, 1),), (("load 2", cox),), (("load 2", cox + H_STAYS),))
    add("h B", operand, (("h", 1), ("ring 2", first + n)), (("ring 2", max(first + n, cox) + 4),))
    total(2, "w fold", ("ring 2", first), (("h B", PRODUCT + 1),))
    add("out zeta", (("memory", 0, 1),), (("zeta fold", whole_cycles + 1), ("w fold", whole_cycles - 5)))
    add("out w", (("memory", 0, 1),), (("w fold", whole_cycles + 1), ("out zeta", 1)), (("out zeta", 12),))
    return [made["s"], *loads, *(job for name, job in made.items() if name != "s")]


@dataclass(frozen=True)
class Programme:
    """Start cycles of the jobs of one product, and what follows from them."""

    shape: Shape
    interval: int
    starts: Mapping[str, int]

    def __getitem__(self, name: str) -> int:
        return self.starts[name]

    @property
    def n(self) -> int:
        """Steps of the ring."""
        return self.shape.rows

    def residue(self, name: str) -> int:
        """Cycle in which the residue of a fold job is visible and stored."""
        shape = self.shape
        bound = shape.sum_bound if name in ("zeta fold", "w fold") else shape.product_bound
        cycles = shape.passes(bound) * shape.loop_pass if shape.loop else shape.fold_latency
        return self[name] + cycles

    def entries(self, name: str) -> list[int]:
        """Cycles in which a fold job enters the fold."""
        shape = self.shape
        if not shape.loop:
            return [self[name]]
        bound = shape.sum_bound if name in ("zeta fold", "w fold") else shape.product_bound
        return [self[name] + k * shape.loop_pass for k in range(shape.passes(bound))]

    def first(self, k: int) -> int:
        """First slot of ring ``k``."""
        return self[f"ring {k}"] + (-1 if self.shape.loop else self.shape.fold_latency - 1)

    def turned(self, k: int) -> int:
        """Steps that ring ``k`` has made before its first slot."""
        return self[f"ring {k}"] - self[f"load {k}"]

    @property
    def accept(self) -> int:
        """Cycle in which the operands are accepted: the last of their words is taken."""
        return max(self[f"in {word}"] for word in WORDS[:4]) - 1

    @property
    def origin(self) -> int:
        """Cycle from which the product's slot number is visible to the machine's control."""
        return min(self[f"in {word}"] for word in WORDS[:4]) - TREE - 1

    @property
    def lead(self) -> int:
        """Cycles before the acceptance in which the operands must already be valid: then it is decided."""
        return self.accept - self.origin + 1

    @property
    def valid(self) -> int:
        """First cycle in which the result is valid at the output."""
        return self["out w"] + 3

    @property
    def last_slot(self) -> int:
        """The last multiplication."""
        return max(self["h B"], self.first(2) + self.n - 1)

    @cached_property
    def schedule(self) -> Schedule:
        """The steps on the machine's units, cycle 0 the accepted operands."""
        shape, at = self.shape, self.accept
        out: list[Step] = []

        def step(name: str, unit: str, start: int, cycles: int, reads: Sequence[str] = (), busy: int = 1) -> None:
            out.append(Step(name, unit, start - at, cycles, tuple(reads), busy))

        def folded(name: str, label: str, reads: tuple[str, ...]) -> str:
            entries = self.entries(name)
            cycles = shape.loop_pass if shape.loop else shape.fold_latency
            for k, entry in enumerate(entries):
                label_k = f"{label}/{k + 1}" if len(entries) > 1 else label
                step(label_k, "fold", entry, cycles, reads)
                reads = (label_k,)
            return reads[0]

        def product(name: str, label: str, reads: tuple[str, ...]) -> str:
            step(label, "multiplier", self[name], PRODUCT, reads)
            return folded(f"{name} fold", f"{label} mod", (label,))

        def ring(k: int, label: str, source: str) -> list[str]:
            letter = "XZ"[k - 1]
            load, run = self[f"load {k}"], self[f"ring {k}"]
            if not shape.loop:
                made = self[f"hat {k}"] + shape.hat_cycles
                step(f"hat {letter}", "multiplier", self[f"hat {k}"], shape.hat_cycles - 1, (source,), shape.parts)
                step(f"{letter} held", "hat", made, max(1, load - made), (f"hat {letter}",), max(1, load - made))
                source = f"{letter} held"
            step(letter, "ring", load + 1, 1, (source,), run - load + self.n)
            names = []
            for i in range(self.n):
                if not shape.loop:
                    step(f"{letter}{i + 1} mod", "fold", run + 1 + i, shape.fold_latency)
                step(f"{label}{i + 1}", "multiplier", self.first(k) + i, PRODUCT)
                names.append(f"{label}{i + 1}")
            return names

        def lasting(name: str, first: int, catch: int, reads: tuple[str, ...]) -> None:
            step(name, "sum", first, catch - first + 1, reads, catch - first + 1)

        s = product("s", "s", ())
        xi = product("xi", "xi", (s,))
        terms = ring(1, "q", xi)
        wt = product("w~", "w~", ())
        step("w~ c", "multiplier", self["w~ c"], PRODUCT, (wt,))
        lasting("sum zeta", self["w~ c"] + PRODUCT, self["catch 1"], ("w~ c",))
        zeta = folded("zeta fold", "zeta", ("sum zeta", *terms))
        terms = ring(2, "e", zeta)
        step("h", "cox", self["load 2"] + 2, self["h"] - self["load 2"] - 2, ("Z",))
        step("h B", "multiplier", self["h B"], PRODUCT, ("h",))
        lasting("sum w", self.first(2) + PRODUCT, self["catch 2"], ())
        result = folded("w fold", "w", ("sum w", *terms, "h B"))
        step("out", "output", self["out w"], 3, (result,))
        return Schedule(tuple(out), self.interval)


@lru_cache(maxsize=64)
def programme(shape: Shape, interval: int = 0) -> Programme:
    """The programme with the least interval (or the given one), and for it a latency as small as the solver finds.

    Raises ScheduleError when there is none.
    """
    least = shape.least_interval
    if shape.loop:
        entries = 3 * shape.passes(shape.product_bound) + 2 * shape.passes(shape.sum_bound)
        least = max(least, entries)
    trials = [interval] if interval else range(least, 4 * least)
    found, starts = placement.least_interval(jobs(shape), trials, {"out w": 2, "in xa": -1, "in xb": -1})
    return Programme(shape, found, starts)


def memory_plan(p: Programme) -> tuple[int, int, int]:
    """(depth, first slot, slots): a power of two of words that holds the constants and enough slots, one spare."""
    constants = p.shape.fixed + 2 * p.n
    first = -(-constants // SLOT)
    needed = -(-(p.valid - p.origin) // p.interval) + 2
    depth = SLOT
    while depth < (first + needed + 1) * SLOT:
        depth *= 2
    if depth > 1024:
        raise ValueError(f"{constants} constants and {needed} slots need more than 1024 words of block RAM")
    return depth, first, depth // SLOT - first - 1
