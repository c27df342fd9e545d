# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Verdicts on what a simulation showed, without running one: values, handshake, latency, interval, equal timing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from modmill.contract import Contract
from modmill.cores.multiplier.operands import Product
from modmill.flow.simulate import Run


def values(contract: Contract, products: Sequence[Product], run: Run) -> Iterator[str]:
    """Faults of the handshake, missing results, and results that are not congruent or not below the bound."""
    yield from run.violations
    if len(run.results) != len(products) and not run.violations:
        yield f"{len(run.results)} results of {len(products)} products"
    limit = contract.result_bound * contract.p
    for k, (product, port) in enumerate(zip(products, run.results, strict=False)):
        result = contract.result.decode(port)
        what = f"{product.a:#x} * {product.b:#x}" if contract.operands == 2 else f"{product.a:#x}"
        if result % contract.p != product.value:
            yield f"product {k}: {what} gave {result:#x}, not congruent to {product.value:#x}"
        elif result >= limit:
            yield (
                f"product {k}: {what} gave {result:#x}, right modulo p "
                f"but not below the bound {contract.result_bound} p"
            )


def latency(contract: Contract, run: Run) -> Iterator[str]:
    """Products that were alone in the core and took another number of cycles than the contract says."""
    for k, cycles in enumerate(run.latencies):
        if cycles != contract.timing.latency:
            yield f"product {k}: latency {cycles} cycles, the contract says {contract.timing.latency}"


def load(contract: Contract, run: Run) -> Iterator[str]:
    """Whether the first operands had to wait for the modulus longer than the contract says."""
    if contract.load and run.loaded and run.accepted:
        cycles, most = run.accepted[0] - run.loaded[0], contract.load.cycles
        if not 0 < cycles <= most:
            yield f"operands accepted {cycles} cycles after the modulus, the contract says at most {most}"


def interval(contract: Contract, run: Run) -> Iterator[str]:
    """Whether results come at the contract's interval once the core is full; operands never wait, nor results."""
    wanted = contract.timing.interval
    first = 2 * contract.timing.in_flight + 2
    for k, (early, late) in enumerate(pairwise(run.valid[first:]), first + 1):
        if late - early != wanted:
            yield f"result {k} came {late - early} cycles after the one before, the contract says {wanted}"
            return


def starts(contract: Contract, accepted: Mapping[int, int]) -> Iterator[str]:
    """Whether an idle core takes its first operands when it should: at once, or in turns, which begin with the cycle
    after the reset and last for the interval each. ``accepted``: for each cycle after a reset from which operands were
    offered, the cycle in which the core took them. A core may decide some cycles before its turn. Of a core that
    converts binary integers nothing is said: what converts them takes operands before the machine does."""
    if contract.io != "native":
        return
    step, offered = contract.timing.interval, min(accepted)
    first = accepted[offered]
    wait = first - offered
    if wait == 0 or (contract.load and all(at - n == wait for n, at in accepted.items())):
        late = next((n for n, at in accepted.items() if at != n + wait), None)
        if late is not None:
            yield f"operands offered in cycle {late} were taken in cycle {accepted[late]}, others at once"
        return
    for n, at in accepted.items():
        if at % step:
            yield f"operands offered in cycle {n} were taken in cycle {at}, where no turn of {step} begins"
            return
    most = min(at - n for n, at in accepted.items())
    if any(at - step - n >= most for n, at in accepted.items() if at > first):
        yield f"operands were not always taken in the next turn of {step}"


def waits(contract: Contract, run: Run) -> Iterator[str]:
    """Operands that a core which takes them at once when it is idle took later than it could: when the interval was
    over and a place for the result was free. A place is free in the cycle in which a result is taken, or after it."""
    step, places = contract.timing.interval, contract.timing.in_flight
    for k in range(1, len(run.accepted)):
        soonest = max(run.offered[k], run.accepted[k - 1] + step)
        freed = run.taken[k - places] if k >= places else -1
        if run.accepted[k] not in ((soonest,) if freed < soonest else (freed, freed + 1)):
            yield f"product {k}: operands were taken in cycle {run.accepted[k]}, they could be in cycle {soonest}"
            return


def same_timing(one: Run, other: Run, differs: str = "the operands") -> Iterator[str]:
    """Whether two runs under the same pauses and stalls behaved alike in every cycle; ``differs``: what they do not
    have in common."""
    for what in ("accepted", "valid", "taken"):
        first, second = getattr(one, what), getattr(other, what)
        if first != second:
            k = next((k for k, (x, y) in enumerate(zip(first, second, strict=False)) if x != y), None)
            k = min(len(first), len(second)) if k is None else k
            yield f"timing depends on {differs}: {what} differs at product {k}"
            return
