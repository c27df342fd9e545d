# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What the cox-rower machine (`multiplier`) does in which cycle: the jobs of one product and their places in time.

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
from modmill.numbers.rns.residues import signed_digits
from modmill.placement import Job
from modmill.rtl.product import DSP18, DspBlock
from modmill.schedule import Schedule, Step

OPERAND = 3
"""Cycles from an address to the operand at the multiplier."""

PRODUCT = 7
"""Cycles from an address to the visible product."""

TREE = 2
"""Registers between the machine's control word and the rower's."""

OPERANDS = ("xa", "xb", "ya", "yb")
"""Words of the operands for one channel of each base."""

WORDS = (*OPERANDS, "s", "xi", "wt", "zeta", "w")
"""Words of one product for one channel of each base; beside them a rower's slot holds h."""

H_STAYS = 8
"""Cycles for which h may wait in its register."""

CONSTANTS = ("xi", "wt", "h")
"""Constants of a channel before the cofactors of the row and those of the two extensions."""


@dataclass(frozen=True)
class Shape:
    """What the machine's structure depends on.

    ``w``: bits of a channel, ``columns``: rowers in a row, ``u``: for each rower u of the a that it serves, then u of
    the b, ``fraction``: t of the cox, ``offset``: its d. ``numbered``: operands and results are numbers that stay in
    the rowers, and a product is the sum of two, x y + v z.
    """

    w: int
    columns: int
    u: tuple[tuple[int, ...], ...]
    fraction: int
    offset: int
    numbered: bool = False
    block: DspBlock = DSP18

    @property
    def rowers(self) -> int:
        """Rowers."""
        return len(self.u)

    @property
    def share(self) -> int:
        """Channels of each base that a rower serves; its k-th is channel k * rowers + its own number."""
        return len(self.u[0]) // 2

    @property
    def tiles(self) -> int:
        """DSP blocks of a rower's multiplier."""
        return self.block.tiles(self.w, self.w)

    @property
    def n(self) -> int:
        """Channels of each base."""
        return self.rowers * self.share

    @property
    def rows(self) -> int:
        """Rows of rowers."""
        return self.rowers // self.columns

    @property
    def steps(self) -> int:
        """Steps of the ring until it has passed everything by every rower."""
        return self.n // self.columns

    def named(self, name: str, k: int) -> str:
        """``name`` for the k-th channels of the rowers, counted from 0; the name itself where each serves one."""
        return name if self.share == 1 else f"{name} {k + 1}"

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Words of a product's slot in each rower's memory."""
        return (*(self.named(word, k) for word in WORDS for k in range(self.share)), "h")

    @property
    def inputs(self) -> tuple[str, ...]:
        """Words that come from outside: of both operands, or of a number."""
        if self.numbered:
            return "a", "b"
        return tuple(self.named(word, k) for word in OPERANDS for k in range(self.share))

    @property
    def slot(self) -> int:
        """Words set aside for a slot, a power of two."""
        return max(16, 1 << (len(self.words) - 1).bit_length())

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
        return (self.steps * ((1 << self.top_bits) - 1) + self.offset) >> self.fraction

    @cached_property
    def sum_bound(self) -> int:
        """Exclusive bound of the lazy sums of both extensions."""
        top = (1 << self.w) - 1
        return top * top * (self.steps + 1) + top * self.h_max + 1

    @cached_property
    def product_bound(self) -> int:
        """Exclusive bound of one product."""
        return ((1 << self.w) - 1) ** 2 + 1

    @cached_property
    def pair_bound(self) -> int:
        """Exclusive bound of a sum of two products."""
        return 2 * ((1 << self.w) - 1) ** 2 + 1

    @property
    def pair(self) -> bool:
        """Whether sums of two products wait for the fold in a register of their own. The pipelined fold is busy with
        one ring after the other, so that three values wait for the same gap between them."""
        return self.numbered and not self.loop

    @property
    def loop(self) -> bool:
        """Whether sums are folded in a loop (else in a pipeline)."""
        return self.columns == 1

    @cached_property
    def digits(self) -> int:
        """Signed digits of u that every fold is built for."""
        return max(len(signed_digits(u)) for own in self.u for u in own)

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
            smaller = max(fold_bound(bound, self.w, u) for own in self.u for u in own)
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
    def cox_cycles(self) -> int:
        """Cycles from the ring's load to the visible h: places of the ring, tap, tree, sum over the share."""
        return self.share + 1 + self.cox_levels + self.share

    @property
    def depth(self) -> int:
        """Cycles from the first multiplication to the last fold of a product that never waits, about."""
        product, whole = (
            self.passes(bound) * self.loop_pass if self.loop else self.fold_latency
            for bound in (self.product_bound, self.sum_bound)
        )
        extension = OPERAND + self.share * (self.steps + 2) + PRODUCT + whole
        return 2 * (PRODUCT + product) + 2 * (extension + (0 if self.loop else self.hat_cycles))

    @property
    def fixed(self) -> int:
        """Constants before those of the two extensions."""
        return self.share * (len(CONSTANTS) + 2 * self.parts)

    @property
    def constants(self) -> int:
        """All constants of a rower."""
        return self.fixed + 2 * self.share * self.steps

    @property
    def least_interval(self) -> int:
        """Multiplications of one product in each rower."""
        return self.share * (5 + 2 * self.steps + 2 * self.parts) + 2 * self.numbered


def jobs(shape: Shape) -> list[Job]:
    """What one product does, to be placed in time; cycle 0 is the first multiplication."""
    n, share, named = shape.steps, shape.share, shape.named
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

    def later(name: str, k: int, cycles: int) -> tuple[tuple[str, int], ...]:
        """The k-th of these jobs comes so many cycles after the one before."""
        return ((named(name, k - 1), cycles),) if k else ()

    operand = ("multiplier", 0, 1), ("memory", 0, 1)
    cox = shape.cox_cycles + TREE + 1  # tree of control, operand bus
    single, single_cycles = fold(shape.product_bound)
    whole, whole_cycles = fold(shape.sum_bound)

    def product(name: str, *after: tuple[str, int]) -> None:
        """One product, folded and stored."""
        add(name, operand, after)
        add(
            f"{name} fold", (*single, ("memory", single_cycles, 1)), ((name, PRODUCT + 1),),
            holds=(("caught product", name, PRODUCT + 1, 0),),
        )  # fmt: skip

    def products(name: str, *after: tuple[str, int]) -> None:
        """One for each channel of the rower, each ``after`` the same word's own jobs."""
        for k in range(share):
            ready = ((_renamed(job, shape, k), cycles) for job, cycles in after)
            product(named(name, k), *ready, *later(name, k, 1))

    def ring(k: int, source: str, ready: int) -> int:
        """Ring ``k`` loaded from stored words, and its runs; returns a run's first slot, counted from its start."""
        sources = [(_renamed(source, shape, j), ready + 1) for j in range(share)]
        load = f"load {k}"
        if shape.loop:
            read = f"read {k}"
            add(read, (("memory", 0, share),), sources)
            at_once = ((read, OPERAND),) if share > 1 else ()  # words follow one another through one register
            add(load, (), ((read, OPERAND),), at_once, holds=(("waiting", read, OPERAND, share - 1),))
            first = -1
            uses: tuple[tuple[str, int, int], ...] = (("multiplier", first, n),)
        else:
            words = ("multiplier", 0, shape.parts), ("memory", 0, shape.parts)
            begun = min(shape.hat_cycles, PRODUCT + 2)  # the register changes from here on
            for j in range(share):
                add(named(f"hat {k}", j), words, (sources[j], *later(f"hat {k}", j, shape.parts)))
            hats = named(f"hat {k}", 0), named(f"hat {k}", share - 1)
            add(load, (), ((hats[1], shape.hat_cycles),), holds=(("hat", hats[0], begun, share - 1),))
            first = latency - 1
            uses = ("fold", 1, n), ("multiplier", first, n)
        for j in range(share):
            held = (("ring", load, 1, n),) if j == share - 1 else ()
            before = later(f"ring {k}", j, n + 2 if share > 2 else n)
            # the more runs, the less choice, for the solver's sake
            latest = before if before and share > 2 else ((load, n + j * (max(n, cox) + 6)),)
            add(named(f"ring {k}", j), uses, ((load, 0), *before), latest, held)
        return first

    def total(k: int, j: int, name: str, first: tuple[str, int], last: Sequence[tuple[str, int]]) -> None:
        """The sum over a run of ring ``k``, caught, folded and stored."""
        catch = named(f"catch {k}", j)
        add(catch, (), last, holds=(("sum", first[0], first[1] + PRODUCT, 0),))
        add(
            name, (*whole, ("memory", whole_cycles, 1)), ((catch, 1),),
            holds=(("caught sum", catch, 1, 0),),
        )  # fmt: skip

    def two_products(name: str) -> None:
        """The sum of two products, folded and stored."""
        add(name, (("multiplier", 0, 2), ("memory", 0, 2)))
        add(f"catch {name}", (), ((name, PRODUCT + 2),), holds=(("sum", name, PRODUCT, 0),))
        add(
            f"{name} fold", (*whole, ("memory", whole_cycles, 1)), ((f"catch {name}", 1),),
            holds=(("caught pair" if shape.pair else "caught sum", f"catch {name}", 1, 0),),
        )  # fmt: skip

    inputs = [f"in {word}" for word in shape.inputs]
    loads = [
        Job(name, (("memory", 0, 1),), within=tuple((other, 10 * share) for other in inputs if other != name))
        for name in inputs
    ]
    summed_cycles = whole_cycles if shape.numbered else single_cycles
    if shape.numbered:
        two_products("s")
        two_products("w~")
    else:
        products("s", *((f"in {word}", 1) for word in OPERANDS))
    products("xi", ("s fold", summed_cycles + 1))
    first = ring(1, "xi fold", single_cycles)
    if not shape.numbered:
        products("w~", ("in xb", 1), ("in yb", 1))
    for k in range(share):
        run, summand = named("ring 1", k), named("w~ c", k)
        ready = (f"{named('w~', k)} fold", summed_cycles + 1)
        add(summand, operand, (ready, (run, first - 3)), ((run, first - 1),))
        total(1, k, f"{named('zeta', k)} fold", (summand, 0), ((run, first + n + PRODUCT),))
    first = ring(2, "zeta fold", whole_cycles)
    add("h", (("memory", 0, 1),), (("load 2", cox),), (("load 2", cox + H_STAYS),))
    for k in range(share):
        run, summand = named("ring 2", k), named("h B", k)
        add(summand, operand, (("h", 1), (run, first + n)), ((run, max(first + n, cox) + 4),))
        total(2, k, f"{named('w', k)} fold", (run, first), ((summand, PRODUCT + 1),))
    if shape.numbered:  # what leaves belongs to no operation under way
        add("out zeta", (("memory", 0, 1),))
        add("out w", (("memory", 0, 1),), (("out zeta", 1),), (("out zeta", 12),))
        return [made["s"], *loads, *(job for name, job in made.items() if name != "s")]
    before = f"{named('w', share - 1)} fold", whole_cycles - 5
    for k in range(share):
        ready = f"{named('zeta', k)} fold", whole_cycles + 1
        add(named("out zeta", k), (("memory", 0, 1),), (ready, before, *later("out zeta", k, 1)))
    for k in range(share):
        ready = f"{named('w', k)} fold", whole_cycles + 1
        zeta = named("out zeta", share - 1)
        add(named("out w", k), (("memory", 0, 1),), (ready, (zeta, 1), *later("out w", k, 1)), ((zeta, 12 * share),))
    start = named("s", 0)
    return [made[start], *loads, *(job for name, job in made.items() if name != start)]


def _renamed(job: str, shape: Shape, k: int) -> str:
    """The job of that name that belongs to the k-th channels: 'in xa' is 'in xa 2' and 's fold' is 's 2 fold'."""
    if job.endswith(" fold"):
        return f"{shape.named(job.removesuffix(' fold'), k)} fold"
    return shape.named(job, k)


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
        return self.shape.steps

    def _bound(self, name: str) -> int:
        """Exclusive bound of what a fold job folds."""
        sums = ("zeta", "w", "s", "w~") if self.shape.numbered else ("zeta", "w")
        return self.shape.sum_bound if name.split()[0] in sums else self.shape.product_bound

    def residue(self, name: str) -> int:
        """Cycle in which the residue of a fold job is visible and stored."""
        shape = self.shape
        cycles = shape.passes(self._bound(name)) * shape.loop_pass if shape.loop else shape.fold_latency
        return self[name] + cycles

    def entries(self, name: str) -> list[int]:
        """Cycles in which a fold job enters the fold."""
        shape = self.shape
        if not shape.loop:
            return [self[name]]
        return [self[name] + k * shape.loop_pass for k in range(shape.passes(self._bound(name)))]

    def run(self, k: int, j: int) -> int:
        """Start of run ``j`` of ring ``k``, in which the rowers' j-th channels take everything in it."""
        return self[self.shape.named(f"ring {k}", j)]

    def first(self, k: int, j: int) -> int:
        """First slot of that run."""
        return self.run(k, j) + (-1 if self.shape.loop else self.shape.fold_latency - 1)

    def turned(self, k: int, j: int) -> int:
        """Steps that ring ``k`` has made before it, since the first of its values was in it."""
        return self.run(k, j) - self[f"load {k}"]

    @property
    def _inputs(self) -> list[int]:
        """Starts of the operands' words."""
        return [self[f"in {word}"] for word in self.shape.inputs]

    @property
    def accept(self) -> int:
        """Cycle in which the operands are accepted: the last of their words is taken. Numbered: the operation is."""
        return self.origin - 1 if self.shape.numbered else max(self._inputs) - 1

    @property
    def origin(self) -> int:
        """Cycle from which the product's slot number is visible to the machine's control."""
        first = min(self["s"], self["w~"]) if self.shape.numbered else min(self._inputs)
        return first - TREE - 1

    @property
    def lead(self) -> int:
        """Cycles before the acceptance in which the operands must already be valid: then it is decided."""
        return self.accept - self.origin + 1

    @property
    def outputs(self) -> list[int]:
        """Starts of the jobs that read the result."""
        named, share = self.shape.named, range(self.shape.share)
        return [self[named(f"out {word}", k)] for word in ("zeta", "w") for k in share]

    @property
    def valid(self) -> int:
        """First cycle in which the result is valid at the output."""
        return max(self.outputs) + 3

    @cached_property
    def distance(self) -> int:
        """Numbered: how many operations later the result can be read."""
        ready = max(self.residue("w fold") + 1 - self["s"], self.residue("zeta fold") + 1 - self["w~"])
        return -(-ready // self.interval)

    @property
    def last_slot(self) -> int:
        """The last multiplication."""
        last = self.shape.share - 1
        return max(self[self.shape.named("h B", last)], self.first(2, last) + self.n - 1)

    @cached_property
    def schedule(self) -> Schedule:
        """The steps on the machine's units, cycle 0 the accepted operands."""
        shape, at = self.shape, self.accept
        named, share = shape.named, range(shape.share)
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

        def product(name: str, reads: tuple[str, ...]) -> str:
            step(name, "multiplier", self[name], PRODUCT, reads)
            return folded(f"{name} fold", f"{name} mod", (name,))

        def ring(k: int, sources: list[str]) -> None:
            letter = "XZ"[k - 1]
            load = self[f"load {k}"]
            if not shape.loop:
                for j, source in enumerate(sources):
                    begun, hat = self[named(f"hat {k}", j)], named(f"hat {letter}", j)
                    step(hat, "multiplier", begun, shape.hat_cycles - 1, (source,), shape.parts)
                made = self[named(f"hat {k}", 0)] + shape.hat_cycles
                waits = max(1, load + len(sources) - 1 - made)
                step(f"{letter} held", "hat", made, waits, (named(f"hat {letter}", 0),), waits)
                sources = [named(f"hat {letter}", len(sources) - 1)]
            step(letter, "ring", load + 1, 1, sources[-1:], self.run(k, shape.share - 1) - load + self.n)

        def terms(k: int, j: int, label: str) -> list[str]:
            names = []
            for i in range(self.n):
                if not shape.loop:
                    step(f"{named('XZ'[k - 1], j)}{i + 1} mod", "fold", self.run(k, j) + 1 + i, shape.fold_latency)
                step(f"{label}{i + 1}", "multiplier", self.first(k, j) + i, PRODUCT)
                names.append(f"{label}{i + 1}")
            return names

        def lasting(name: str, first: int, catch: int, reads: tuple[str, ...]) -> None:
            step(name, "sum", first, catch - first + 1, reads, catch - first + 1)

        xi = [product(named("xi", k), (product(named("s", k), ()),)) for k in share]
        ring(1, xi)
        zeta = []
        for k in share:
            run = terms(1, k, named("q", k))
            tilde, summand, total = product(named("w~", k), ()), named("w~ c", k), named("sum zeta", k)
            step(summand, "multiplier", self[summand], PRODUCT, (tilde,))
            lasting(total, self[summand] + PRODUCT, self[named("catch 1", k)], (summand,))
            zeta.append(folded(f"{named('zeta', k)} fold", named("zeta", k), (total, *run)))
        ring(2, zeta)
        step("h", "cox", self["load 2"] + 2, self["h"] - self["load 2"] - 2, ("Z",))
        result = []
        for k in share:
            run = terms(2, k, named("e", k))
            summand, total = named("h B", k), named("sum w", k)
            step(summand, "multiplier", self[summand], PRODUCT, ("h",))
            lasting(total, self.first(2, k) + PRODUCT, self[named("catch 2", k)], ())
            result.append(folded(f"{named('w', k)} fold", named("w", k), (total, *run, summand)))
        last = max(self.outputs)
        step("out", "output", last, 3, result)
        return Schedule(tuple(out), self.interval)


@lru_cache(maxsize=64)
def programme(shape: Shape, interval: int = 0) -> Programme:
    """The programme with the least interval (or the given one), and for it a latency as small as the solver finds.

    Raises ScheduleError when there is none.
    """
    least = shape.least_interval
    if shape.loop:
        sums = 4 if shape.numbered else 2
        entries = shape.share * ((5 - sums) * shape.passes(shape.product_bound) + sums * shape.passes(shape.sum_bound))
        least = max(least, entries)
    trials = [interval] if interval else [*range(least, 4 * least)]
    first, last = shape.named("out w", shape.share - 1), (shape.named("in xa", 0), shape.named("in xb", 0))
    minimise = {first: 2, last[0]: -1, last[1]: -1}
    if shape.numbered:
        minimise = {"w fold": 1, **({"zeta fold": 1, "w~": -1} if shape.pair else {})}
    if shape.pair:  # placements of many intervals' length are easy to find, and their operations too far apart
        span = shape.depth // trials[0] + 3
        return Programme(shape, *placement.least_interval(jobs(shape), trials, minimise, effort=4, span=span))
    if shape.share == 1:
        return Programme(shape, *placement.least_interval(jobs(shape), trials, minimise))
    if not interval:  # more jobs, and a trial takes up to a minute: in steps that double
        trials = [least, *(least + (max(1, least // 24) << k) for k in range(8))]
    span = shape.depth // trials[0] + 2
    return Programme(shape, *placement.least_interval(jobs(shape), trials, minimise, effort=4, span=span))


def memory_plan(p: Programme) -> tuple[int, int, int]:
    """(depth, first slot, slots): a power of two of words that holds the constants and enough slots, one spare."""
    constants, slot = p.shape.constants, p.shape.slot
    first = -(-constants // slot)
    needed = -(-(p.valid - p.origin) // p.interval) + 2
    depth = slot
    while depth < (first + needed + 1) * slot:
        depth *= 2
    if depth > 1024:
        raise ValueError(f"{constants} constants and {needed} slots of {slot} need more than 1024 words of block RAM")
    return depth, first, depth // slot - first - 1
