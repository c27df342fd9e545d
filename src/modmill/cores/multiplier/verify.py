# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Verify RTL against a fitted design: ports, lint, and simulation against Python's integers."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Unpack

from modmill.contract import ALARM, PORTS, Contract, ResiduePair
from modmill.cores.digests import emitted_size
from modmill.cores.multiplier import four_state as four_states
from modmill.cores.multiplier import judge, operands
from modmill.cores.multiplier.operands import Product
from modmill.design import DesignInstance
from modmill.flow.emit import without_initial_values
from modmill.flow.library import Start
from modmill.flow.lint import foreign_words, lint
from modmill.flow.modules import module_ports
from modmill.flow.simulate import CorePace, Run, Simulator, loads, patience, widths
from modmill.flow.tools import ToolError

if TYPE_CHECKING:
    from modmill.cores.multiplier.build import Core

CHAINS = 2
"""Number of interleaved chains in each of the two instances."""
OTHER = 64
"""Number of products with each other modulus of a core that loads moduli, and with its own before and after."""
RESETS = (1, 3, 40)
"""Lengths of a reset, in cycles."""
AT_START = 3
"""Number of products after a reset."""
PLACES = 16
"""Length of a long stall in intervals, in addition to twice the latency: more than any core can store results."""
AT_ONCE = 24
"""Number of starts with operands in the first cycle after the reset, the most sensitive to former register contents."""


@dataclass(frozen=True)
class Effort:
    """Maximum extent of the simulations other than streams of operands; less if one takes more than about ``cycles``.

    ``chain``: dependent products in a chain. ``starts``: different first cycles of operands after a reset. ``cuts``:
    runs that a reset interrupts. ``lone``: single products into an idle core, to measure the latency. ``corners``,
    ``randoms``: pairs of operands in a stream.
    """

    chain: int
    starts: int
    cuts: int
    cycles: int
    lone: int = 64
    corners: int = 1 << 14
    randoms: int = 2000

    def fitted(self, contract: Contract, characters: int) -> Effort:
        """The effort for a core whose Verilog has ``characters`` characters."""
        timing = contract.timing
        cycles = min(self.cycles, int(WORK / characters))
        one = timing.latency + timing.interval
        run = 3 * timing.latency + timing.in_flight * timing.interval

        def most(wanted: int, each: int) -> int:
            return min(wanted, max(FEWEST, cycles // each))

        chain, cuts, lone = most(self.chain, -(-one // 4)), most(self.cuts, run), most(self.lone, 3 * one)
        corners, randoms = most(self.corners, timing.interval), most(self.randoms, timing.interval)
        return Effort(chain, self.starts, cuts, cycles, lone, corners, randoms)


FULL = Effort(chain=1000, starts=1 << 14, cuts=48, cycles=4_000_000)
WORK = 2e11
"""Maximum of cycles times characters of Verilog for each kind of run: about 20 seconds."""
FEWEST = 3
"""Minimum number of products, resets or steps of each kind, independent of their duration."""
SHORT = Effort(chain=40, starts=60, cuts=6, cycles=400_000, randoms=120)
"""Check of `build` before it writes a folder."""


@dataclass
class Report:
    """Result of a check: ``failures``, one line each; ``counts``: number of judged products of each kind."""

    name: str
    failures: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    latency: int | None = None
    interval: int | None = None
    load: int | None = None
    cycles: int = 0
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether no fault was found."""
        return not self.failures

    @property
    def products(self) -> int:
        """Number of judged products."""
        return self.counts.total()

    @property
    def line(self) -> str:
        """The verdict in one line."""
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.counts.items())
        timing = f"latency {self.latency}, interval {self.interval}; " if self.latency is not None else ""
        if self.load is not None:
            timing = f"load {self.load}, {timing}"
        found = "" if self.passed else f"{len(self.failures)} difference{'s' * (len(self.failures) != 1)}; "
        return (
            f"{'PASS' if self.passed else 'FAIL'} {self.name}: {found}{timing}"
            f"{self.products} products{f' ({kinds})' if kinds else ''} in {self.cycles} cycles, {self.seconds:.1f} s"
        )

    def describe(self) -> dict[str, Any]:
        """The report as JSON."""
        return {
            "passed": self.passed, "name": self.name, "failures": self.failures, "products": self.products,
            "counts": dict(self.counts), "latency": self.latency, "interval": self.interval,
            **({"load": self.load} if self.load is not None else {}),
            "cycles": self.cycles, "seconds": round(self.seconds, 3),
        }  # fmt: skip


def rtl_faults(verilog: str, contract: Contract, top: str = "core") -> Iterator[str]:
    """Yield faults that are found without simulation: system tasks and directives, missing module, wrong ports.

    Verilog with such a fault is not simulated, because foreign Verilog could have any effect.
    """
    for word in foreign_words(verilog):
        yield f"core.v: uses {word}, which no generated core does"
    found = module_ports(verilog, top)
    if found is None:
        yield f"core.v: there is no module {top}"
        return
    described = contract.describe()["ports"]
    for name in (name for name in (*PORTS, ALARM) if name in described or name in found):
        ports = described.get(name), found.get(name)
        wanted, real = (port and f"{port['direction']}put of {port['width']} bits" for port in ports)
        if not wanted:
            yield f"core.v: port {name} is there, the contract has none"
        elif wanted != real:
            yield f"core.v: port {name} is {real or 'missing'}, the contract says {wanted}"


def verify(
    core: Core,
    verilog: str,
    report: Report,
    *,
    vectors: int | None = None,
    extra: Sequence[tuple[int, int]] = (),
    seed: int = 1,
    effort: Effort = FULL,
    loaded: Sequence[DesignInstance] = (),
    four_state: bool = False,
) -> None:
    """Lint and simulate a Verilog text against a core's contract; findings and counts go to ``report``.

    Two instances run side by side in one simulation, from random contents of all registers and memories; initial
    values are removed, because a core must be correct without them:

    - corner cases, ``extra`` and random operands, at full rate and with pauses of the producer and stalls
      of the consumer; single products for the latency
    - first operands in each cycle after resets of 1, 3 and 40 cycles; runs that a reset interrupts
    - if results can be operands without limit, chains of dependent products
    - if the modulus is loaded, other moduli and those of ``loaded``, one after another
    - if the core has an alarm and numbers are residues: operands with one wrong word

    ``vectors``: number of random products, by default as ``effort`` says. ``effort`` limits the simulations.
    ``four_state``: also the check of `four_state`, with initial values. Raises
    ToolError if a tool cannot be run.
    """
    contract = core.contract
    faults = list(rtl_faults(verilog, contract, core.top)) or [f"core.v: {line}" for line in lint(verilog, core.top)]
    report.failures += faults
    if faults:
        return
    try:
        text = without_initial_values(verilog)
        simulator = Simulator(text, top=core.top, widths=widths(contract), instances=2, power_up=contract.power_up)
    except ToolError as error:
        if "%Error" not in str(error):
            raise
        report.failures.append(f"core.v: does not compile: {error}")
        return
    before = len(report.failures)
    simulate(core, simulator, report, vectors=vectors, extra=extra, seed=seed, effort=effort, loaded=loaded)
    if four_state and len(report.failures) == before:
        four_states.check(core, verilog, report, simulator=simulator, seed=seed)


def simulate(
    core: Core,
    simulator: Simulator,
    report: Report,
    *,
    vectors: int | None = None,
    extra: Sequence[tuple[int, int]] = (),
    seed: int = 1,
    effort: Effort = FULL,
    loaded: Sequence[DesignInstance] = (),
) -> None:
    """The simulations of `verify`, on a compiled simulator with two instances."""
    effort = effort.fitted(core.contract, emitted_size(core))
    corners = operands.covered_corners(core.fitted, core.io) + [p for p in extra if operands.covered(core.contract, *p)]
    _Bench(core.fitted, core.io, simulator, report, seed, effort).run(
        [corners[k] for k in spread(len(corners), effort.corners)],
        operands.randoms(core.contract, effort.randoms if vectors is None else vectors, seed),
        [_sample(fitted, core.io, seed) for fitted in [*core.fitted.others(), *loaded]],
    )


def exhaust(core: Core, simulator: Simulator, report: Report) -> None:
    """Simulate every pair of operands at full rate, half of them in each of the two instances."""
    products = operands.judged(core.contract, operands.all_pairs(core.contract))
    half = -(-len(products) // 2)
    _Bench(core.fitted, core.io, simulator, report, 1, FULL).all(products[:half], products[half:])


def _sample(fitted: DesignInstance, io: str, seed: int) -> tuple[Contract, list[Product]]:
    """A contract, and `OTHER` products that it covers; half of them are corner cases."""
    contract, corners = fitted.contract(io), operands.covered_corners(fitted, io)
    random.Random(seed).shuffle(corners)
    chosen = corners[: OTHER // 2]
    return contract, operands.judged(contract, chosen + operands.randoms(contract, OTHER - len(chosen), seed)[:OTHER])


def spread(end: int, most: int) -> list[int]:
    """Return up to ``most`` numbers below ``end``: all, or half of them 0, 1, ... and the others evenly spaced."""
    if end <= most:
        return list(range(end))
    dense = most // 2
    rest = most - dense
    return [*range(dense), *(dense + (end - dense) * k // rest for k in range(rest))]


class _Bench:
    """Simulations of a compiled pair of cores; each is judged when it ends."""

    def __init__(
        self, fitted: DesignInstance, io: str, simulator: Simulator, report: Report, seed: int, effort: Effort
    ) -> None:
        self._contract, self._simulator, self._report, self._seed = fitted.contract(io), simulator, report, seed
        self._effort, self._slot, self._places = effort, fitted.starts, fitted.places
        self._at_once = False  # whether an idle core accepts operands in any cycle
        self._before = len(report.failures)

    def run(
        self,
        corners: Sequence[tuple[int, int]],
        randoms: Sequence[tuple[int, int]],
        others: Sequence[tuple[Contract, list[Product]]],
    ) -> None:
        """Run all simulations; stop after the first with a fault."""
        contract = self._contract
        edge, free = operands.judged(contract, corners), operands.judged(contract, randoms)
        half = len(free) // 2
        for phase in (
            lambda: self._lone([*edge, *free[: self._effort.lone]]),
            lambda: self._starts([*free, *edge]),
            lambda: self._cuts([*free, *edge]),
            lambda: self._stream("at full rate", edge, free[:half], 0.0, 0.0),
            lambda: self._stream("with pauses and stalls", edge, free[half:], 0.3, 0.3),
            lambda: self._stream("with pauses", edge, [], 0.5, 0.0),
            lambda: self._stream("with stalls", edge, [], 0.0, 0.6),
            lambda: self._holds([*edge[:OTHER], *free[:OTHER]]),
            lambda: self._waits([*edge[:OTHER], *free[:OTHER]]),
            lambda: self._alarms(free[:OTHER] or edge[:OTHER]),
            lambda: self._moduli([*edge[: OTHER // 2], *free[: OTHER // 2]], others),
            self._chains,
        ):
            phase()
            if self._found():
                return

    def all(self, *halves: Sequence[Product]) -> None:
        """A stream at full rate for each of the two cores."""
        one, two = halves
        for products, run in zip(halves, self._pair(one, two), strict=True):
            self._note("all operands", judge.values(self._contract, products, run))
            self._report.counts["of all operands"] += len(products)

    def _found(self) -> bool:
        return len(self._report.failures) > self._before

    def _pair(
        self,
        first: Sequence[Product],
        second: Sequence[Product],
        step: int = 0,
        starts: tuple[Start, Start] = (Start(), Start()),
        **pace: Unpack[CorePace],
    ) -> tuple[Run, Run]:
        """Simulate products in the two cores; ``step``: of the phase, for another seed."""
        usual: CorePace = {"loads": loads(self._contract), "timeout": patience(self._contract)}
        pace = {**usual, "seed": self._seed + step, **pace}
        runs = self._simulator.run_pair(operands.columns(first), operands.columns(second), starts=starts, **pace)
        self._report.cycles += max(run.cycles for run in runs)
        return runs

    def _judged(
        self, labels: str | Sequence[str], kind: str, halves: Sequence[Sequence[Product]], *how: Any,
        **pace: Unpack[CorePace],
    ) -> tuple[Run, Run]:  # fmt: skip
        """As `_pair`; also judge the results, and count them as products of this kind. ``labels``: of both or each."""
        first, second = halves
        runs = self._pair(first, second, *how, **pace)
        for label, half, run in zip([labels] * 2 if isinstance(labels, str) else labels, halves, runs, strict=True):
            self._note(label, judge.values(self._contract, half, run))
            self._report.counts[kind] += len(half)
        return runs

    def _note(self, label: str, lines: Iterable[str]) -> None:
        self._report.failures += [f"{label}: {line}" for line in lines]

    def _stream(self, label: str, edge: list[Product], free: list[Product], gap: float, stall: float) -> None:
        """The same products in different order in the two cores, then exchanged, to compare timing between operands."""
        products = edge + free
        mixed = products[::-1]
        one, two = self._pair(products, mixed, gap=gap, stall=stall)
        self._note(label, judge.values(self._contract, products, one))
        self._note(f"{label}, second core", judge.values(self._contract, mixed, two))
        if not gap and not stall:
            self._note(label, judge.interval(self._contract, one))
            full = one.valid[-2:]
            self._report.interval = full[-1] - full[0] if len(full) == 2 else None
        again, _ = self._pair(mixed, products, gap=gap, stall=stall)
        self._note(label, judge.values(self._contract, mixed, again))
        self._note(label, judge.same_timing(one, again))
        self._report.counts["corner"] += 3 * len(edge)
        if free:
            self._report.counts["random"] += 3 * len(free)

    def _lone(self, products: Sequence[Product]) -> None:
        """Single products into an idle core."""
        chosen = list(products[:: max(1, len(products) // self._effort.lone)])
        for k, (first, second) in enumerate(zip(chosen, reversed(chosen), strict=True)):
            for run in self._judged("alone", "alone", ([first], [second]), k):
                self._note("alone", judge.latency(self._contract, run))
                self._note("alone", judge.load(self._contract, run))
                if run.loaded and run.accepted:
                    self._report.load = max(self._report.load or 0, run.accepted[0] - run.loaded[0])
                if run.latencies:
                    self._report.latency = run.latencies[0]
            if self._found():
                return

    def _starts(self, products: Sequence[Product]) -> None:
        """First operands, or words of a modulus, in each cycle after a reset, with and without random inputs before."""
        contract, timing = self._contract, self._contract.timing
        each = 200 + 2 * (timing.latency + AT_START * timing.interval) + (contract.load.cycles if contract.load else 0)
        most = min(self._effort.starts, 2 * self._effort.cycles // (each * len(RESETS)) + 2)
        firsts = [0] * min(AT_ONCE, most) + spread(timing.latency + timing.interval + 1, most)
        accepted: dict[int, int] = {}
        for k, (reset, place) in enumerate(itertools.product(RESETS, range(0, len(firsts), 2))):
            pair = firsts[place], firsts[min(place + 1, len(firsts) - 1)]
            one, two = (Start(reset, first, noise=k % 2 == 1) for first in pair)
            halves = [[products[(2 * k + h + i) % len(products)] for i in range(AT_START)] for h in range(2)]
            labels = [f"a reset of {reset}, first operands in cycle {first}" for first in pair]
            runs = self._judged(labels, "started", halves, k, (one, two))
            for first, label, run in zip(pair, labels, runs, strict=True):
                self._note(label, judge.latency(contract, replace(run, valid=run.valid[:1])))
                if accepted.setdefault(first, run.accepted[0] if run.accepted else -1) not in run.accepted[:1]:
                    self._note(label, ["the first operands were taken in another cycle than after another reset"])
            if self._found():
                return
        self._note("starts", judge.starts(contract, accepted, self._slot))
        idle = all(at == first for first, at in accepted.items())
        self._at_once = contract.io == "native" and not contract.load and idle

    def _cuts(self, products: Sequence[Product]) -> None:
        """A reset while products are in flight; the products after it are judged. The two cores have different initial
        register contents and must still behave the same in every cycle."""
        rnd, timing = random.Random(self._seed), self._contract.timing
        count = timing.in_flight + AT_START
        for k in range(self._effort.cuts):
            start = Start(RESETS[k % len(RESETS)], rnd.randrange(timing.interval + 1), k % 4 == 3,
                          1 + rnd.randrange(2 * timing.latency + count * timing.interval))  # fmt: skip
            halves = rnd.choices(products, k=count), rnd.choices(products, k=count)
            pause = 0.3 * (k % 2)
            label = f"a reset of {start.reset} in cycle {start.restart}"
            runs = self._judged(label, "after a reset", halves, k, (start, start), gap=pause, stall=pause)
            if not pause:
                self._note(label, judge.same_timing(*runs, "register contents before the reset, or the operands"))
            if self._found():
                return

    def _holds(self, products: Sequence[Product]) -> None:
        """A consumer that repeatedly stalls until the core has no space for another result."""
        timing = self._contract.timing
        hold = 2 * timing.latency + PLACES * timing.interval
        chosen = products[: max(AT_START, self._effort.cycles // (4 * hold))]
        for run in self._judged("with long stalls", "after long stalls", (chosen, chosen[::-1]), stall=0.05, hold=hold):
            self._note("with long stalls", judge.held(self._contract, run, self._places))

    def _waits(self, products: Sequence[Product]) -> None:
        """Long pauses: the core must accept operands whenever it can."""
        for run in self._judged("with long pauses", "after pauses", (products, products), gap=0.9):
            if self._at_once:
                self._note("with long pauses", judge.waits(self._contract, run))

    def _alarms(self, products: Sequence[Product]) -> None:
        """For a core with an alarm and numbers as residues: operands with one wrong word, each word in turn."""
        form = self._contract.operand
        if not self._contract.alarm or not isinstance(form, ResiduePair):
            return
        for place, product in zip(range(len(form.moduli)), itertools.cycle(products), strict=False):
            wrong = [form.unpack(port) for port in (product.a, product.b)]
            for words in wrong:
                words[place] ^= 1
            a, b = map(form.pack, wrong)
            runs = self._pair([replace(product, a=a)], [replace(product, b=b)], place)
            for letter, run in zip("ab", runs, strict=True):
                label = f"word {place} of i_{letter} wrong, and no alarm"
                self._note(label, judge.alarm(self._contract, product, run))
            self._report.counts["with a wrong word"] += 2

    def _moduli(self, own: list[Product], others: Sequence[tuple[Contract, list[Product]]]) -> None:
        """Several moduli one after another in the same core; the core's own before, between and after."""
        if not others:
            return
        batches = [(self._contract, own)]
        for other in others:
            batches += [other, (self._contract, own)]
        starts = [0, *itertools.accumulate(len(products) for _, products in batches)]
        words = [load for start, (c, _) in zip(starts, batches, strict=False) for load in loads(c, start)]
        whole = [product for _, products in batches for product in products]
        for pause in (0.0, 0.3):
            for run in self._pair(whole, whole, gap=pause, stall=pause, loads=words):
                self._note("loading", run.violations)
                for start, (c, products) in zip(starts, batches, strict=False):
                    part = replace(run, results=run.results[start : start + len(products)], violations=[])
                    self._note(f"loaded with {c.p:#x}", judge.values(c, products, part))
            self._report.counts["loaded"] += 2 * len(whole)

    def _chains(self) -> None:
        """Chains of dependent products: port values of results become operands unchanged."""
        contract = self._contract
        if not contract.closed:
            return
        rnd = random.Random(self._seed)
        x = [operands.port(contract, rnd) for _ in range(2 * CHAINS)]
        x[0] = contract.operand.any(contract.largest_operand, rnd)
        y = [operands.port(contract, rnd) for _ in x]
        for step in range(self._effort.chain):
            pairs = [(a, a if step % 3 == 0 else b) for a, b in zip(x, y, strict=True)]  # a square in every third step
            if contract.operands == 1:
                pairs = [(a, 0) for a in x]
            products = operands.judged(contract, pairs)
            runs = self._judged(f"chain, step {step}", "chained", (products[:CHAINS], products[CHAINS:]), step)
            if self._found():
                return
            x = [result for run in runs for result in run.results]
