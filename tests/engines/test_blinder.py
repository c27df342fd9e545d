# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Blinding in front of a machine: the digits of k + r N leave it, for every recoding, with every r."""

import random
from functools import lru_cache

import pytest
from small_curves import edwards, montgomery, weierstrass

from components import run_bench
from marks import long
from modmill.contract import ALARM, UnsupportedError
from modmill.cores.ecc.machine import ecc
from modmill.engines.ecc.point_engine import SECRET, Shape
from modmill.engines.ecc.recoding import Both, Comb, Gray, Odd, Signed, Unsigned
from modmill.engines.ecc.serial import serial
from modmill.engines.machine import blinder
from modmill.engines.machine.blinder import Blinder

RECODINGS = [
    *(Unsigned(7, w) for w in (1, 3, 4)), *(Signed(7, w) for w in (2, 3, 5)), Odd(7, 2, 101), Odd(7, 4, 127),
    Comb(7, 3, 1), Comb(7, 2, 3), Comb(8, 5, 2), Gray(7),
]  # fmt: skip


@pytest.mark.parametrize("recoding", RECODINGS, ids=repr)
def test_bits_of_the_sum_are_the_digits(recoding):
    made = serial(recoding)
    assert all(made.digits(k) == recoding.digits(k) for k in range(128))


def test_two_scalars_are_refused():
    with pytest.raises(UnsupportedError, match="build without --endomorphism"):
        serial(Both(Unsigned(4, 2), Signed(4, 2)))


@lru_cache
def core_of(curve, **options):
    return ecc(curve, "montgomery-array", {"loadable": False}, **{"threads": 2, **options})


def passed(core, messages, *, pauses=0.0, made=None):
    """(words to the machine, random words that were taken, the cycle of each word to the machine)."""
    dut, rnd = made or Blinder(core.blinding, core.layout, core.commands[0].words), random.Random(3)
    words, out, taken, times = [word for message in messages for word in message], [], [], []

    async def bench(ctx):
        at = cycle = quiet = 0
        while quiet < 2000:
            valid, ready, there = (rnd.random() >= pauses for _ in range(3))
            drawn = rnd.getrandbits(32)
            ctx.set(dut.i_valid, valid and at < len(words))
            ctx.set(dut.i_data, words[at] if valid and at < len(words) else rnd.getrandbits(16))
            ctx.set(dut.c_ready, ready)
            ctx.set(dut.random_valid, there)
            ctx.set(dut.random_data, drawn)
            quiet += 1
            if ctx.get(dut.c_valid) and ready:
                out.append(ctx.get(dut.c_data))
                times.append(cycle)
                quiet = 0
            if ctx.get(dut.random_ready) and there:
                taken.append(drawn)
                quiet = 0
            at += bool(ctx.get(dut.i_valid) and ctx.get(dut.i_ready))
            cycle += 1
            await ctx.tick()
        assert at == len(words) and not ctx.get(getattr(dut, ALARM))

    run_bench(dut, bench)
    return out, taken, times


def wanted(core, messages, taken):
    """The words that the machine must get, from the words of the messages and the random words."""
    made, lay, words = core.blinding, core.layout, iter(taken)
    found = []
    for message in messages:
        number = message[0] - 1
        if message[0] == 0 or made.recodings[number] is None:
            found += message
            continue
        found.append(message[0])
        size, front = made.scalar_words(core.word), made.extra_words(number, lay)
        each = front + made.number_words(number, lay)
        for at in range(1, len(message), each):
            part = message[at : at + each]
            k = sum(x << core.word * i for i, x in enumerate(part[:size]))
            r = sum(next(words) << 32 * i for i in range(made.random_words)) % (1 << made.bits)
            order = made.orders[part[size] if made.flagged else 0]
            found += lay.pack(number, core.held[number].made.digits(k + r * order))
            if made.factor_bits:
                found += factor(core, [next(words) for _ in range(made.factor_words(lay))])
            found += [] if made.alone(number, lay) else part[front:]
    assert next(words, None) is None
    return found


def factor(core, taken):
    """The words of the random factor of coordinates from these random words, which is in [1, p)."""
    word, each = core.word, -(-core.word // 32)
    parts = [taken[k : k + each] for k in range(0, len(taken), each)]
    tops = [sum(x << 32 * k for k, x in enumerate(part)) for part in parts]
    b = sum((top & (1 << word) - 1) << word * k for k, top in enumerate(tops))
    b = b % (1 << core.curve.p.bit_length() - 1) | 1
    assert 0 < b < core.curve.p  # never 0
    return core.layout.number(b)


def messages_of(core, jobs=2):
    """SETUP, then jobs of all operations by turns."""
    drawn = {name: core.vector_jobs(name)[:jobs] for name in core.operations}
    return [core.setup(), *(core.message(name, drawn[name][k]).words for k in range(jobs) for name in core.operations)]


ALL = ("multiply", "multiply-base", "multiply-two")
CASES = [
    (weierstrass(251, -3), {"operations": ALL, "random_blind": 16}),
    (weierstrass(251, -3), {"operations": ("multiply",), "random_blind": 2}),  # odd digits
    (montgomery(251), {"random_blind": 40, "threads": 1, "word": 17}),
    long(edwards(1009, -1), {"operations": ALL, "random_blind": 64, "shape": Shape(window=2, teeth=3, columns=3)}),
    long(weierstrass(1009, 5), {"operations": ALL, "random_blind": 1, "word": 64, "threads": 3}),
    long(montgomery(1009), {"random_blind": 128, "threads": 3}),
]


@pytest.mark.parametrize(("curve", "options"), CASES)
def test_the_machine_gets_the_digits_of_blinded_scalars(curve, options):
    core = core_of(curve, **options)
    messages = messages_of(core)
    for pauses in (0.0, 0.4)[len(core.jobs) > 1 :]:
        out, taken, _ = passed(core, messages, pauses=pauses)
        secret = sum(core.layout.threads for m in messages[1:] if core.jobs[m[0] - 1] in SECRET)
        each = core.blinding.random_words + core.blinding.factor_words(core.layout)
        assert len(taken) == secret * each > secret * core.blinding.random_words
        assert out == wanted(core, messages, taken)


def test_the_cases_have_every_recoding_and_both_constants():
    made = [core_of(*(case if isinstance(case, tuple) else case.values)[:1], **case[1]) for case in CASES[:3]]
    kinds = {type(held.made.recoding) for core in made for held in core.held if held.operation in SECRET}
    assert kinds == {Signed, Comb, Odd, Gray}
    assert [core.blinding.by_parity for core in made] == [False, True, False]
    assert [core.blinding.flagged for core in made] == [False, False, True]


def test_the_random_factor_has_every_odd_value():
    """All that fit its bits, and no others."""
    core = core_of(weierstrass(31, -3), operations=("multiply-base",), random_blind=1, threads=8)
    size = core.layout.number_words
    jobs = [core.message("multiply-base", core.vector_jobs("multiply-base")[0]).words] * 12
    out, _, _ = passed(core, [core.setup(), *jobs])
    words, each = out[len(core.setup()) :], core.layout.digit_words(0) + size
    found = [words[1 + at : 1 + at + 8 * each] for at in range(0, len(words), 1 + 8 * each)]
    ends = range(each, 9 * each, each)
    factors = {core.layout.numbers(job[end - size : end], 31)[0] for job in found for end in ends}
    assert factors == set(range(1, 16, 2))


def test_cycles_depend_on_no_number():
    core = core_of(weierstrass(251, -3), operations=("multiply",), random_blind=16)
    jobs = [core.message("multiply", batch).words for batch in core.vector_jobs("multiply")[:2]]
    one, two = (passed(core, [core.setup(), job]) for job in jobs)
    assert one[2] == two[2] and one[0] != two[0]


class Ignoring(blinder.RandomPort):
    """A planted fault: a port that takes words and gives 0."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.word.eq(0)
        return m


def test_engines_with_residues_keep_the_number_of_the_host():
    core = ecc(weierstrass(251, -3), "kbe", threads=1, random_blind=16)
    assert core.blinding.factor_bits == 0 and core.inputs(0) == ("x", "y", "blind")
    assert core_of(weierstrass(251, -3), random_blind=16).inputs(0) == ("x", "y")


def test_a_port_that_is_ignored_is_noticed(monkeypatch):
    """The results would be right, but the digits are those of k, and the random factor is 1."""
    core = core_of(weierstrass(251, -3), operations=("multiply",), random_blind=16)
    messages = messages_of(core, 1)
    monkeypatch.setattr(blinder, "RandomPort", Ignoring)
    out, taken, _ = passed(core, messages)
    assert out == wanted(core, messages, [0] * len(taken)) != wanted(core, messages, taken)
