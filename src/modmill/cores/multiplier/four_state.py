# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Check a core in four-state simulation: no x may reach an output after reset, and results and timing must be those of
two-state simulation. Few products are simulated, because Icarus is slow."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, islice
from typing import TYPE_CHECKING

from modmill.contract import Contract
from modmill.cores.multiplier import judge, operands
from modmill.cores.multiplier.operands import Product
from modmill.flow.four_state import FourState, FourStateRun, differences
from modmill.flow.simulate import Simulator, loads, patience, widths
from modmill.flow.tools import ToolError

if TYPE_CHECKING:
    from modmill.cores.multiplier.build import Core
    from modmill.cores.multiplier.verify import Report

CYCLES = 3000
"""Approximate limit of simulated cycles for a core; exceeded if the minimum number of products needs more."""
SECONDS = 40.0
"""Approximate limit of Icarus' time for a core, in seconds; a core that simulates slowly gets fewer products, or only
the first run."""
LEAST = 2
"""Minimum number of products in one run."""
MOST = 48
"""Maximum number of products in one run."""


def check(
    core: Core,
    verilog: str,
    report: Report,
    *,
    simulator: Simulator | None = None,
    seed: int = 1,
    cycles: int = CYCLES,
    seconds: float = SECONDS,
) -> None:
    """Simulate a Verilog text in four states against a core's contract; findings and counts go to ``report``.

    All runs start from x. The first has two products from the first cycle after a reset of one cycle. The second has a
    later start after a reset of three cycles, pauses and stalls. If the modulus is loaded, a third loads another one
    in between. The last runs at full rate; its cycles are compared with those of a ``simulator`` of the same text with
    two instances, if given. ``cycles`` and ``seconds`` limit the number of products, but each run has at least two. If
    the first run takes more than ``seconds``, it is the only one.

    The text must have passed `verify.rtl_faults`. Raises ToolError if Icarus is not installed or fails.
    """
    contract, before = core.contract, report.cycles
    try:
        compiled = FourState(verilog, top=core.top, widths=widths(contract))
    except ToolError as error:
        if not str(error).startswith("iverilog:"):
            raise
        report.failures.append(f"four-state: core.v does not compile: {error}")
        return
    corners = operands.covered_corners(core.fitted, core.io)
    bench = _Bench(contract, compiled, report, seed)
    start = time.monotonic()
    products = operands.judged(contract, _some(contract, corners, LEAST, seed))
    bench.run("four-state, at once", [(contract, products)], first=0)
    if (spent := time.monotonic() - start) > seconds:
        return
    rate = (report.cycles - before) / spent
    count = _count(contract, min(cycles, seconds * rate) / 3)
    products = operands.judged(contract, _some(contract, corners, count, seed))
    bench.run(
        "four-state, with pauses and stalls", [(contract, products)], gap=0.3, stall=0.3, reset=3,
        first=2 + contract.timing.latency,
    )  # fmt: skip
    if others := core.fitted.others():
        other = others[seed % len(others)].contract(core.io)
        loaded = (other, operands.judged(other, operands.randoms(other, LEAST, seed)[:LEAST]))
        bench.run("four-state, loaded with others", [(contract, products[:1]), loaded, (contract, products[1:2])])
    bench.compare(simulator, products[::-1])


def _count(contract: Contract, cycles: float) -> int:
    """Number of products that fit into ``cycles`` cycles."""
    timing = contract.timing
    load = contract.load.cycles if contract.load else 0
    return max(LEAST, min(MOST, int(cycles - timing.latency - load) // timing.interval))


def _some(contract: Contract, corners: Sequence[tuple[int, int]], count: int, seed: int) -> list[tuple[int, int]]:
    """Return ``count`` pairs of operands, fewer if p is tiny; half of them are corner cases."""
    chosen = list(corners[:: max(1, 2 * len(corners) // count)][: count // 2])
    return chosen + operands.randoms(contract, count - len(chosen), seed)[: count - len(chosen)]


class _Bench:
    def __init__(self, contract: Contract, compiled: FourState, report: Report, seed: int) -> None:
        self._contract, self._compiled, self._report, self._seed = contract, compiled, report, seed
        self._patience = patience(contract)

    def run(
        self, label: str, batches: Sequence[tuple[Contract, Sequence[Product]]], *,
        gap: float = 0.0, stall: float = 0.0, reset: int = 1, first: int = 1,
    ) -> None:  # fmt: skip
        """One run of several batches, each with its contract; a loadable modulus is loaded before each batch."""
        starts = [0, *accumulate(len(products) for _, products in batches)]
        words = [load for start, (c, _) in zip(starts, batches, strict=False) for load in loads(c, start)]
        whole = [product for _, products in batches for product in products]
        seen = self._compiled.run(
            *operands.columns(whole), loads=words, gap=gap, stall=stall, seed=self._seed,
            reset=max(reset, self._contract.power_up), first=first, timeout=self._patience,
        )  # fmt: skip
        self._judge(label, seen, batches)

    def compare(self, simulator: Simulator | None, products: Sequence[Product]) -> None:
        """Simulate at full rate, and compare with two-state simulation, cycle by cycle."""
        label, pair = "four-state, at full rate", operands.columns(products)
        stream = loads(self._contract)
        seen = self._compiled.run(*pair, loads=stream, reset=self._contract.power_up, timeout=self._patience)
        self._judge(label, seen, [(self._contract, products)])
        if simulator:
            two_state, _ = simulator.run_pair(pair, pair, loads=stream, timeout=self._patience)
            self._note(label, differences(two_state, seen.run))

    def _judge(self, label: str, seen: FourStateRun, batches: Sequence[tuple[Contract, Sequence[Product]]]) -> None:
        self._note(label, [*seen.unknown, *seen.run.violations])
        self._report.counts["in four states"] += len(seen.run.results)
        self._report.cycles += seen.run.cycles
        rest = iter(seen.run.results)
        for contract, products in batches if not seen.unknown else ():
            results = list(islice(rest, len(products)))
            part = replace(seen.run, results=results, violations=[])
            self._note(label, judge.values(contract, products[: len(results)], part))

    def _note(self, label: str, lines: Iterable[str]) -> None:
        self._report.failures += [f"{label}: {line}" for line in lines]
