# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Calls in C of engines that blind scalars inside: they send plain scalars, and the flag of a ladder."""

import random

import pytest
from calls_bench import Calls, StandIn, compiled, compiles_for_rv32i
from small_curves import edwards, montgomery, weierstrass

from marks import long
from modmill.cores.ecc.machine import ecc
from modmill.cores.ecc.samples import drawn, expected, sample
from modmill.engines.ecc.blinding import on_twist

NEUTRAL = 260
ALL = ("multiply", "multiply-base", "multiply-two")


class PlainStandIn(StandIn):
    """A front of an engine that blinds inside: here by nothing, which the results do not show; the factor is 1."""

    def run(self, number, held, words):
        made, lay = self.core.blinding, self.core.layout
        if made.recodings[number] is None:
            return super().run(number, held, words)
        size, front = made.scalar_words(32), made.extra_words(number, lay)
        k = sum(w << 32 * i for i, w in enumerate(words[:size]))
        numbers = [] if made.alone(number, lay) else words[front:]
        one = lay.number(1) if made.factor_bits else []
        return super().run(number, held, [*lay.pack(number, held.made.digits(k)), *one, *numbers])


CASES = [
    (montgomery(251), {"random_blind": 16}),
    long(weierstrass(1009, -3), {"operations": ALL, "random_blind": 40, "threads": 2}),
    long("Curve25519", {"random_blind": 64}),
    long(edwards(1009, -1), {"operations": ALL[:2], "random_blind": 64}),
    long("P-256", {"operations": ALL, "random_blind": 64, "order": True}),
]


@pytest.mark.parametrize(("curve", "options"), CASES)
def test_jobs_have_the_words_of_python(curve, options, tmp_path):
    core = ecc(curve, "montgomery-array", **{"threads": 1, **options})
    calls, rnd = Calls(core, compiled(core, tmp_path), PlainStandIn(core)), random.Random(1)
    flags = set()
    for operation in core.operations:
        runs = [run for run, _ in sample(core.curve, operation, core.scalar_bits, 5)]
        runs += [drawn(core.curve, operation, core.scalar_bits, rnd) for _ in range(12)]
        for scalars, numbers in runs:
            run = scalars, {**numbers, "blind": 1} if "blind" in numbers else numbers
            calls.bus.messages.clear()
            error, results = calls.many(operation, [run])
            assert error in (0, NEUTRAL) and results == [expected(core.curve, operation, run)]
            jobs = [message for message in calls.bus.messages if message[0]]
            assert jobs == [core.job(operation, [run] * core.layout.threads)]
            if operation == "ladder":
                flags.add(on_twist(core.curve, numbers["u"]))
    assert flags in (set(), {False, True})
    compiles_for_rv32i(tmp_path, core.top)


def test_every_u_has_its_flag(tmp_path):
    """The Legendre symbol in C is that of Python, 0 and points of order two included."""
    core = ecc(montgomery(251), "montgomery-array", threads=1, random_blind=16)
    calls = Calls(core, compiled(core, tmp_path), PlainStandIn(core))
    calls.many("ladder", [((3,), {"u": u}) for u in range(251)])
    sent = [message[2] for message in calls.bus.messages if message[0]]
    assert sent == [int(on_twist(core.curve, u)) for u in range(251)]
