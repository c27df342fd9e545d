# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""One rower by itself: its folding loop for every number of positive and negative digits of u, against the formula."""

import random

from components import run_bench
from modmill.designs.sor.ring_rower import Rower
from modmill.designs.sor.ring_schedule import PRODUCT, Kind, Operation, fold_cycles
from modmill.numbers.folding import fold_bounds, reduce
from modmill.numbers.rns.residues import signed_digits
from modmill.schedule import Schedule, Step


def signs(u):
    """Positive and negative digits of u."""
    found = [sign for _, sign in signed_digits(u)]
    return found.count(1), found.count(-1)


def every_choice_of_signs(w):
    """For each number of positive and negative digits that a u below 2^(w - 1) can have, the least and largest u."""
    found = {}
    for u in range(1, 1 << (w - 1), 2):
        first, _ = found.get(signs(u), (u, u))
        found[signs(u)] = first, u
    return sorted({u for pair in found.values() for u in pair if makes_progress(w, u)})


def makes_progress(w, u):
    try:
        return bool(fold_bounds(1 << 2 * w, w, u))
    except ValueError:
        return False


def products(w, u, pairs):
    """Residues of products that a rower makes, one after another; its folding loop is made for the digits of u."""
    digits = len(signed_digits(u))
    bound = ((1 << w) - 1) ** 2 + 1
    passes, cycles = len(fold_bounds(bound, w, u)), fold_cycles(digits)
    starts = [PRODUCT + k * cycles for k in range(passes + 1)]
    steps = [Step("Z", "mul", 0, PRODUCT, does=Operation(Kind.PRODUCT))]
    steps += [Step(f"fold{k}", "fold", starts[k], cycles, does=Operation(Kind.FOLD, k)) for k in range(passes)]
    steps.append(Step("hold Z", "hold", starts[-1], 1, does=Operation(Kind.HOLD)))
    interval = starts[-1] + 2
    rower, out = Rower(w, u, Schedule(tuple(steps), interval), lambda op: 0, digits=digits), []

    async def bench(ctx):
        for a, b in [(0, 0), *pairs]:
            ctx.set(rower.x, a)
            ctx.set(rower.y, b)
            await ctx.tick().repeat(interval)
            out.append(ctx.get(rower.held))

    run_bench(rower, bench)
    return out[1:]


def test_folding_loop_for_every_choice_of_signs():
    w, rnd = 13, random.Random(13)
    us, top = every_choice_of_signs(w), (1 << w) - 1
    assert {(1, 3), (1, 5), (2, 4), (3, 0), (6, 0)} <= set(map(signs, us))
    for u in us:
        pairs = [(top, top), (top, 1), (0, top), *((rnd.randrange(top), rnd.randrange(top)) for _ in range(5))]
        assert products(w, u, pairs) == [reduce(a * b, top * top + 1, w, u) for a, b in pairs], (u, signs(u))
