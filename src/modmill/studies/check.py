# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Check a core: its contract by recomputing it, its RTL by simulation against Python's integers.

``verify`` judges any RTL against a fitted design; ``check`` judges a folder, and trusts nothing that lies in it.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from modmill.contract import PORTS, Contract
from modmill.design import Fitted
from modmill.flow.lint import lint
from modmill.flow.simulate import Run, Simulator
from modmill.flow.tools import ToolError
from modmill.report import sheet
from modmill.studies import judge, operands
from modmill.studies.build import Core, Folder, digest, loads, widths
from modmill.studies.operands import Product

CHAIN_STEPS = 1000
"""Dependent products in a chain."""
CHAINS = 2
"""Chains side by side in each of the two instances."""
OTHER = 64
"""Products with each modulus that a loaded core gets besides its own, and as many with its own before and after."""
LONE = 64
"""Products that are sent into an idle core, one by one, to measure the latency."""
SHOWN = 10
"""Differences that a report lists."""

_SYSTEM_TASK = re.compile(r"\$(?!(?:un)?signed\b)\w+|`\w+")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_PORT = re.compile(r"^\s*(input|output)\s+(?:wire\s+|reg\s+)?(?:\[(\d+):0\]\s*)?(\w+)\s*;", re.MULTILINE)


@dataclass
class Report:
    """What a check found. ``failures`` holds one line each; ``counts`` how many products of each kind were judged."""

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
        """Whether nothing was found."""
        return not self.failures

    @property
    def products(self) -> int:
        """Products judged in all."""
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
        """As JSON holds it."""
        return {
            "passed": self.passed,
            "name": self.name,
            "failures": self.failures,
            "products": self.products,
            "counts": dict(self.counts),
            "latency": self.latency,
            "interval": self.interval,
            **({"load": self.load} if self.load is not None else {}),
            "cycles": self.cycles,
            "seconds": round(self.seconds, 3),
        }


def check(path: str | Path, vectors: int = 2000) -> Report:
    """Check the core in a folder: contract, digest, lint, vectors.json, and ``vectors`` random products in simulation.

    Raises ValueError when a file is missing, truncated or malformed, ToolError when a tool cannot be run.
    """
    start = time.monotonic()
    folder = Folder.read(path)
    report = Report(folder.path.resolve().name)
    try:
        core = folder.refit()
    except ValueError as error:
        report.failures.append(f"contract.json: what it asks for cannot be built: {error}")
    else:
        report.name = core.name
        report.failures += record_differences(folder.record, core.record())
        report.failures += digest_differences(folder)
        report.failures += vector_differences(core.contract, folder)
        verify(core, folder.verilog, vectors, report, extra=[(a, b) for a, b, _ in folder.vectors])
    report.seconds = time.monotonic() - start
    return report


# ---------------------------------------------------------------------------------------------- what is written


def record_differences(written: dict[str, Any], recomputed: dict[str, Any]) -> Iterator[str]:
    """Fields of contract.json that differ from those recomputed; versions and the digest are not among them."""
    recomputed = json.loads(json.dumps(recomputed))
    apart = {"modmill", "tools", "digest"}
    by = (
        ""
        if written.get("modmill") == recomputed["modmill"]
        else (f" (made by Modmill {_short(written.get('modmill'))}, this is {recomputed['modmill']})")
    )
    for key in dict.fromkeys([*recomputed, *written]):
        if key in apart:
            continue
        if key not in written:
            yield f"contract.json: {key} is missing{by}"
        elif key not in recomputed:
            yield f"contract.json: {key} is not a field of a contract{by}"
        elif type(written[key]) is not type(recomputed[key]) or written[key] != recomputed[key]:
            yield f"contract.json: {key} is {_short(written[key])}, recomputed {_short(recomputed[key])}{by}"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 70 else f"{text[:50]}...{text[-15:]}"


def digest_differences(folder: Folder) -> Iterator[str]:
    """Whether core.v, its header and contract.json agree on the digest of the RTL."""
    actual, recorded = digest(folder.verilog), folder.record["digest"]
    header = sheet.DIGEST_LINE.search(folder.header)
    if header is None:
        yield "core.v: its header has no RTL digest"
    elif header[1] != actual:
        yield f"core.v: the RTL has digest {actual[:23]}..., its header says {header[1][:23]}..."
    if recorded != actual:
        yield f"core.v: the RTL has digest {actual[:23]}..., contract.json says {recorded[:23]}..."


def vector_differences(contract: Contract, folder: Folder) -> Iterator[str]:
    """Whether vectors.json holds enough vectors, covered by the contract, with the right products."""
    if len(folder.vectors) < 64 and contract.p**2 > len(folder.vectors):
        yield f"vectors.json: {len(folder.vectors)} vectors, at least 64 are expected"
    for k, (a, b, value) in enumerate(folder.vectors):
        if not operands.covered(contract, a, b):
            yield f"vectors.json: operands of vector {k} are not covered by the contract"
        elif value != (expected := operands.judged(contract, [(a, b)])[0].value):
            yield f"vectors.json: value of vector {k} is {value:#x}, recomputed {expected:#x}"


# ---------------------------------------------------------------------------------------------- what it does


def foreign_words(verilog: str) -> list[str]:
    """System tasks and directives in a Verilog text."""
    return sorted(set(_SYSTEM_TASK.findall(_COMMENT.sub(" ", verilog))))


def rtl_faults(verilog: str, contract: Contract, top: str = "core") -> Iterator[str]:
    """Faults seen without simulation: wrong ports, system tasks and directives, what lint finds.

    A core that has one is not simulated: a text that Modmill did not write could do anything.
    """
    text = _COMMENT.sub(" ", verilog)
    for word in foreign_words(verilog):
        yield f"core.v: uses {word}, which no generated core does"
    module = re.search(rf"\bmodule\s+{top}\b.*?\bendmodule\b", text, re.DOTALL)
    if module is None:
        yield f"core.v: there is no module {top}"
        return
    found = {name: (way, int(high or 0) + 1) for way, high, name in _PORT.findall(module[0])}
    described = contract.describe()["ports"]
    for name in (name for name in PORTS if name in described):
        wanted = f"{described[name]['direction']}put", described[name]["width"]
        if found.get(name) != wanted:
            is_ = "missing" if name not in found else f"{found[name][0]} of {found[name][1]} bits"
            yield f"core.v: port {name} is {is_}, the contract says {wanted[0]} of {wanted[1]} bits"
    for name in (name for name in PORTS if name in found and name not in described):
        yield f"core.v: port {name} is there, the contract has none"


def verify(
    core: Core,
    verilog: str,
    vectors: int,
    report: Report,
    *,
    extra: Sequence[tuple[int, int]] = (),
    seed: int = 1,
) -> None:
    """Lint and simulate a Verilog text against a core's contract; findings and counts go to ``report``.

    Two instances run side by side in one simulation: the corner operands, ``extra`` and ``vectors`` random ones, at
    full rate and with pauses of the producer and stalls of the consumer; single products for the latency; chains
    of ``CHAIN_STEPS`` dependent products where the contract is closed; and where the modulus is loaded, other moduli
    one after another.
    """
    contract = core.contract
    faults = list(rtl_faults(verilog, contract, core.top)) or [f"core.v: {line}" for line in lint(verilog, core.top)]
    report.failures += faults
    if faults:
        return
    try:
        simulator = Simulator(verilog, top=core.top, widths=widths(contract), instances=2)
    except ToolError as error:
        if "%Error" not in str(error):
            raise
        report.failures.append(f"core.v: does not compile: {error}")
        return
    _Bench(contract, simulator, report, seed).run(
        [pair for pair in [*operands.corners(core.fitted, core.io), *extra] if operands.covered(contract, *pair)],
        operands.randoms(contract, vectors, seed),
        [_sample(fitted, core.io, seed) for fitted in core.fitted.others()],
    )


def _sample(fitted: Fitted, io: str, seed: int) -> tuple[Contract, list[Product]]:
    """A contract, and ``OTHER`` products that it covers: half of them corners."""
    contract = fitted.contract(io)
    corners = [pair for pair in operands.corners(fitted, io) if operands.covered(contract, *pair)]
    random.Random(seed).shuffle(corners)
    chosen = corners[: OTHER // 2]
    return contract, operands.judged(contract, chosen + operands.randoms(contract, OTHER - len(chosen), seed)[:OTHER])


class _Bench:
    """Runs of one compiled pair of cores, judged as they come."""

    def __init__(self, contract: Contract, simulator: Simulator, report: Report, seed: int) -> None:
        self._contract, self._simulator, self._report, self._seed = contract, simulator, report, seed
        self._before = len(report.failures)
        timing = contract.timing
        load = contract.load.cycles if contract.load else 0
        self._patience = 8 * (timing.latency + timing.interval + load) + 200  # cycles; no stall is that long

    def run(
        self,
        corners: Sequence[tuple[int, int]],
        randoms: Sequence[tuple[int, int]],
        others: Sequence[tuple[Contract, list[Product]]] = (),
    ) -> None:
        """All runs, until one finds something."""
        contract = self._contract
        edge, free = operands.judged(contract, corners), operands.judged(contract, randoms)
        half = len(free) // 2
        for phase in (
            lambda: self._lone([*edge, *free[:LONE]]),
            lambda: self._stream("at full rate", edge, free[:half], 0.0, 0.0),
            lambda: self._stream("with pauses and stalls", edge, free[half:], 0.3, 0.3),
            lambda: self._stream("with pauses", edge, [], 0.5, 0.0),
            lambda: self._stream("with stalls", edge, [], 0.0, 0.6),
            lambda: self._moduli([*edge[: OTHER // 2], *free[: OTHER // 2]], others),
            self._chains,
        ):
            phase()
            if self._found():
                return

    def _found(self) -> bool:
        return len(self._report.failures) > self._before

    def _pair(
        self, first: Sequence[Product], second: Sequence[Product], gap: float, stall: float, seed: int
    ) -> list[Run]:
        one, two = (([p.a for p in products], [p.b for p in products]) for products in (first, second))
        runs = self._simulator.run_pair(
            one, two, loads=loads(self._contract), gap=gap, stall=stall, seed=seed, timeout=self._patience
        )
        self._report.cycles += max(run.cycles for run in runs)
        return list(runs)

    def _note(self, label: str, lines: Iterable[str]) -> None:
        self._report.failures += [f"{label}: {line}" for line in lines]

    def _stream(self, label: str, edge: list[Product], free: list[Product], gap: float, stall: float) -> None:
        """The same products in two orders in the two cores, and once more to see whether timing depends on them."""
        products = edge + free
        mixed = products[::-1]
        one, two = self._pair(products, mixed, gap, stall, self._seed)
        self._note(label, judge.values(self._contract, products, one))
        self._note(f"{label}, second core", judge.values(self._contract, mixed, two))
        if not gap and not stall:
            self._note(label, judge.interval(self._contract, one))
            full = one.valid[-2:]
            self._report.interval = full[-1] - full[0] if len(full) == 2 else None
        again, _ = self._pair(mixed, products, gap, stall, self._seed)
        self._note(label, judge.values(self._contract, mixed, again))
        self._note(label, judge.same_timing(one, again))
        self._report.counts["corner"] += 3 * len(edge)
        if free:
            self._report.counts["random"] += 3 * len(free)

    def _lone(self, products: Sequence[Product]) -> None:
        """Products one by one into an idle core."""
        chosen = list(products[:: max(1, len(products) // LONE)])
        for k, (first, second) in enumerate(zip(chosen, reversed(chosen), strict=True)):
            runs = self._pair([first], [second], 0.0, 0.0, self._seed + k)
            for run, product in zip(runs, (first, second), strict=True):
                self._note("alone", judge.values(self._contract, [product], run))
                self._note("alone", judge.latency(self._contract, run))
                self._note("alone", judge.load(self._contract, run))
                if run.loaded and run.accepted:
                    self._report.load = max(self._report.load or 0, run.accepted[0] - run.loaded[0])
                if run.latencies:
                    self._report.latency = run.latencies[0]
            self._report.counts["alone"] += 2
            if self._found():
                return

    def _moduli(self, own: list[Product], others: Sequence[tuple[Contract, list[Product]]]) -> None:
        """One modulus after another in the same core, its own before, between and after."""
        if not others:
            return
        turns = [(self._contract, own)]
        for other in others:
            turns += [other, (self._contract, own)]
        starts = [0, *accumulate(len(products) for _, products in turns)]
        words = [load for start, (c, _) in zip(starts, turns, strict=False) for load in loads(c, start)]
        whole = [product for _, products in turns for product in products]
        one = [p.a for p in whole], [p.b for p in whole]
        for gap, stall in ((0.0, 0.0), (0.3, 0.3)):
            for run in self._simulator.run_pair(
                one, one, loads=words, gap=gap, stall=stall, seed=self._seed, timeout=self._patience
            ):
                self._report.cycles += run.cycles
                self._note("loading", run.violations)
                for start, (c, products) in zip(starts, turns, strict=False):
                    part = replace(run, results=run.results[start : start + len(products)], violations=[])
                    self._note(f"loaded with {c.p:#x}", judge.values(c, products, part))
            self._report.counts["loaded"] += 2 * len(whole)

    def _chains(self) -> None:
        """Results become operands, as they stand at the port, step after step."""
        contract = self._contract
        if not contract.closed:
            return
        rnd = random.Random(self._seed)
        top = contract.largest_operand
        x = [operands.port(contract, v, rnd) for v in (top, *(rnd.randrange(top + 1) for _ in range(2 * CHAINS - 1)))]
        y = [operands.port(contract, rnd.randrange(top + 1), rnd) for _ in x]
        for step in range(CHAIN_STEPS):
            pairs = [(a, a if step % 3 == 0 else b) for a, b in zip(x, y, strict=True)]  # a square in every third step
            if contract.operands == 1:
                pairs = [(a, 0) for a in x]
            products = operands.judged(contract, pairs)
            halves = products[:CHAINS], products[CHAINS:]
            runs = self._pair(*halves, 0.0, 0.0, self._seed + step)
            for half, run in zip(halves, runs, strict=True):
                self._note(f"chain, step {step}", judge.values(contract, half, run))
            self._report.counts["chained"] += len(products)
            if self._found():
                return
            x = [result for run in runs for result in run.results]
