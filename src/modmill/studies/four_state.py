# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Check a core in four states: no x reaches an output after reset, and its results and its timing are those of the two
states. A few products, because Icarus is slow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from modmill.contract import Contract
from modmill.flow.four_state import FourState, differences
from modmill.flow.simulate import Simulator
from modmill.flow.tools import ToolError
from modmill.studies import judge, operands
from modmill.studies.build import Core, loads, widths
from modmill.studies.operands import Product

CYCLES = 3000
"""About so many cycles are simulated for a core, if two products for each run take no more."""
MOST = 48
"""Products of one run at most."""


@dataclass
class Found:
    """What a check in four states found: ``failures`` one line each; products and cycles in all runs."""

    failures: list[str] = field(default_factory=list)
    products: int = 0
    cycles: int = 0


def check(
    core: Core, verilog: str, *, simulator: Simulator | None = None, seed: int = 1, cycles: int = CYCLES
) -> Found:
    """Simulate a Verilog text in four states against a core's contract.

    Three runs start from x: at full rate from the first cycle after a reset of one cycle, with pauses and stalls
    after a reset of three, and, where the modulus is loaded, with another modulus in between. With a ``simulator`` of
    the same text a fourth run of the same operands is compared with it cycle by cycle. ``cycles`` is how many are
    simulated, roughly.

    The text must have passed ``check.rtl_faults``. Raises ToolError when Icarus is not installed or fails.
    """
    contract, found = core.contract, Found()
    try:
        compiled = FourState(verilog, top=core.top, widths=widths(contract))
    except ToolError as error:
        if not str(error).startswith("iverilog:"):
            raise
        found.failures.append(f"four-state: core.v does not compile: {error}")
        return found
    runs = 3 + bool(contract.load)
    count = _count(contract, cycles // runs)
    edge = [pair for pair in operands.corners(core.fitted, core.io) if operands.covered(contract, *pair)]
    chosen = edge[:: max(1, 2 * len(edge) // count)][: count // 2]
    chosen += operands.randoms(contract, count - len(chosen), seed)[: count - len(chosen)]
    products = operands.judged(contract, chosen)
    bench = _Bench(contract, compiled, found, seed)
    own = (contract, products)
    bench.run("four-state, at full rate", [own], first=0)
    bench.run("four-state, with pauses and stalls", [own], gap=0.3, stall=0.3, reset=3, first=1)
    if others := core.fitted.others():
        other = others[seed % len(others)].contract(core.io)
        turn = (other, operands.judged(other, operands.randoms(other, 2, seed)[:2]))
        bench.run("four-state, loaded with others", [(contract, products[:1]), turn, (contract, products[:1])])
    if simulator:
        bench.compare(simulator, products)
    return found


def _count(contract: Contract, cycles: int) -> int:
    """Products that fit into so many cycles, at least two."""
    timing = contract.timing
    load = contract.load.cycles if contract.load else 0
    return max(2, min(MOST, (cycles - timing.latency - load) // timing.interval))


class _Bench:
    def __init__(self, contract: Contract, compiled: FourState, found: Found, seed: int) -> None:
        self._contract, self._compiled, self._found, self._seed = contract, compiled, found, seed
        timing = contract.timing
        load = contract.load.cycles if contract.load else 0
        self._patience = 8 * (timing.latency + timing.interval + load) + 200

    def run(
        self, label: str, turns: Sequence[tuple[Contract, Sequence[Product]]], *,
        gap: float = 0.0, stall: float = 0.0, reset: int = 1, first: int = 1,
    ) -> None:  # fmt: skip
        """One run of products under a contract each; where the modulus is loaded, it is before each turn."""
        starts = [0, *accumulate(len(products) for _, products in turns)]
        words = [load for start, (c, _) in zip(starts, turns, strict=False) for load in loads(c, start)]
        whole = [product for _, products in turns for product in products]
        seen = self._compiled.run(
            [p.a for p in whole], [p.b for p in whole], loads=words, gap=gap, stall=stall, seed=self._seed,
            reset=reset, first=first, timeout=self._patience,
        )  # fmt: skip
        self._note(label, seen.unknown)
        if not seen.unknown:
            self._note(label, seen.run.violations)
            for start, (contract, products) in zip(starts, turns, strict=False):
                results = seen.run.results[start : start + len(products)]
                part = products[: len(results)]
                alone = replace(seen.run, results=results, violations=[])
                self._note(label, judge.values(contract, part, alone))
        self._found.products += len(whole)
        self._found.cycles += seen.run.cycles

    def compare(self, simulator: Simulator, products: Sequence[Product]) -> None:
        """The same operands in two states and in four, cycle by cycle."""
        pair = [p.a for p in products], [p.b for p in products]
        stream = loads(self._contract)
        seen = self._compiled.run(*pair, loads=stream, timeout=self._patience)
        if simulator.instances == 2:
            two_state, _ = simulator.run_pair(pair, pair, loads=stream, timeout=self._patience)
        else:
            two_state = simulator.run(*pair, loads=stream, timeout=self._patience)
        self._note("four-state", seen.unknown)
        self._note("two states and four", differences(two_state, seen.run))
        self._found.products += len(products)
        self._found.cycles += seen.run.cycles

    def _note(self, label: str, lines: Iterable[str]) -> None:
        self._found.failures += [f"{label}: {line}" for line in lines]
