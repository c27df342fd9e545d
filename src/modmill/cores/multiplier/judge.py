# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Find faults in finished simulations: values, handshake, latency, interval, equal timing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from modmill.contract import Contract
from modmill.cores.multiplier.operands import Product
from modmill.flow.simulate import ALARM_HIGH, Run


def values(contract: Contract, products: Sequence[Product], run: Run) -> Iterator[str]:
    """Yield violations of the handshake, missing results, and results that are not congruent or not below the bound."""
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
            bound = f"right modulo p but not below the bound {contract.result_bound} p"
            yield f"product {k}: {what} gave {result:#x}, {bound}"


def alarm(contract: Contract, product: Product, run: Run) -> Iterator[str]:
    """Yield a fault if a product with a wrong word raised no alarm, and gave a wrong result; if an alarm did not stay;
    and violations of the handshake."""
    raised = [line for line in run.violations if line.startswith(ALARM_HIGH)]
    others = replace(run, violations=[line for line in run.violations if line not in raised])
    yield from others.violations if raised else values(contract, [product], others)


def latency(contract: Contract, run: Run) -> Iterator[str]:
    """Yield products that were alone in the core and whose latency differs from the contract's."""
    for k, cycles in enumerate(run.latencies):
        if cycles != contract.timing.latency:
            yield f"product {k}: latency {cycles} cycles, the contract says {contract.timing.latency}"


def load(contract: Contract, run: Run) -> Iterator[str]:
    """Yield a fault if the first operands waited for the modulus longer than the contract says."""
    if contract.load and run.loaded and run.accepted:
        cycles, most = run.accepted[0] - run.loaded[0], contract.load.cycles
        if not 0 < cycles <= most:
            yield f"operands accepted {cycles} cycles after the modulus, the contract says at most {most}"


def interval(contract: Contract, run: Run) -> Iterator[str]:
    """Yield a fault if results of a full core do not come at the contract's interval; neither stream pauses."""
    wanted = contract.timing.interval
    first = 2 * contract.timing.in_flight + 2
    for k, (early, late) in enumerate(pairwise(run.valid[first:]), first + 1):
        if late - early != wanted:
            yield f"result {k} came {late - early} cycles after the one before, the contract says {wanted}"
            return


def starts(contract: Contract, accepted: Mapping[int, int], slot: int = 1) -> Iterator[str]:
    """Yield a fault if an idle core does not accept its first operands when it should: at once, or in its next time
    slot; after a reset in time slot ``slot``.

    Time slots begin with the cycle after the reset and last for one interval. ``accepted``: first cycle after a reset
    in which operands were offered -> cycle in which the core accepted them. A core may decide some cycles before a time
    slot begins. Only native cores are judged: a conversion accepts operands before the multiplier does.
    """
    if contract.io != "native":
        return
    step, delays = contract.timing.interval, {at - n for n, at in accepted.items()}
    if delays == {0} or (contract.load and len(delays) == 1):
        return
    for n, at in accepted.items():
        if at % step:
            where = f"neither at once nor at the start of a time slot of {step}"
            yield f"operands offered in cycle {n} were taken in cycle {at}, {where}"
            return
    first = accepted[min(accepted)]
    if min(accepted) == 0 and first != slot * step and not contract.load:
        yield f"operands offered in cycle 0 were taken in cycle {first}, not in cycle {slot * step}"
    if any(at - step - n >= min(delays) for n, at in accepted.items() if at > first):
        yield f"operands were not always taken in the next time slot of {step}"


def held(contract: Contract, run: Run, places: int) -> Iterator[str]:
    """Yield a fault if more products were in the core at once than its ``places``. Only native cores are judged: a
    conversion holds products of its own."""
    if contract.io != "native":
        return
    for early, (accepted, taken) in enumerate(zip(run.accepted[places:], run.taken, strict=False)):
        if accepted < taken:
            yield f"product {early + places} was taken while {places} products were in the core: it has no more places"
            return


def waits(contract: Contract, run: Run) -> Iterator[str]:
    """Yield operands that were accepted later than possible, for a core that accepts operands at once when it is idle.

    The earliest possible cycle is the first in which the interval is over and there is space for the result. Space is
    free in the cycle in which a result is taken, or in the next one.
    """
    step, places = contract.timing.interval, contract.timing.in_flight
    for k in range(1, len(run.accepted)):
        soonest = max(run.offered[k], run.accepted[k - 1] + step)
        freed = run.taken[k - places] if k >= places else -1
        if run.accepted[k] not in ((soonest,) if freed < soonest else (freed, freed + 1)):
            yield f"product {k}: operands were taken in cycle {run.accepted[k]}, they could be in cycle {soonest}"
            return


def same_timing(one: Run, other: Run, differs: str = "the operands") -> Iterator[str]:
    """Yield a fault if two runs with the same pauses and stalls differ in any cycle; ``differs``: in what their
    inputs differ, as text."""
    for what in ("accepted", "valid", "taken"):
        first, second = getattr(one, what), getattr(other, what)
        if first != second:
            k = next((k for k, (x, y) in enumerate(zip(first, second, strict=False)) if x != y), None)
            k = min(len(first), len(second)) if k is None else k
            yield f"timing depends on {differs}: {what} differs at product {k}"
            return
