# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The machine of kbe and hbe with its check: right products, and words that change where they are stored."""

import random
import re
from collections import Counter
from dataclasses import replace
from itertools import product
from typing import ClassVar

import pytest
from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.lib import wiring
from bench import judge, operands, run_bench
from test_cox_check import Bench

from marks import long
from modmill.contract import ALARM, UnsupportedError
from modmill.cores.ecc.machine import ecc
from modmill.cores.ecc.samples import sample
from modmill.cores.multiplier.build import build
from modmill.cores.multiplier.verify import SHORT, Report, rtl_faults, verify
from modmill.cores.rsa.machine import engine
from modmill.designs import design
from modmill.designs.cox_rower import multiplier, rowers
from modmill.designs.cox_rower.kbe import placed
from modmill.designs.cox_rower.operations import Kind
from modmill.designs.cox_rower.slot_machine import CoxSlots
from modmill.flow.simulate import Simulator, widths
from modmill.numbers.curves.affine import Weierstrass
from modmill.report.packaging import streams
from modmill.rtl.memory import BlockRam

P61 = 2**61 - 1
OTHER = str.maketrans("0123456789abcdef", "1032547698badcfe")
"""Another last bit of a digit."""


@pytest.mark.parametrize(
    ("name", "modulus", "settings"),
    [
        ("kbe", 29, {"n": 1, "w": 12}), ("kbe", P61, {}), ("hbe", P61, {}), ("kbe", P61, {"rowers": 2}),
        ("hbe", P61, {"rowers": 2, "loadable": True}), ("hbe", P61, {"columns": 3}), ("kbe", P61, {"w": 34}),
        long("kbe", P61, {"rowers": 1, "n": 4}), long("hbe", 2**256 - 2**32 - 977, {}),
    ],
)  # fmt: skip
def test_the_machine_computes_what_its_algorithm_does(name, modulus, settings):
    """Every intermediate of every rower, that of the check too; and it takes the cycles of the machine without it."""
    f, plain = (design(name).fit(modulus, **settings, **more) for more in ({"check": True}, {}))
    judge(f, operands(f.contract("native"), 2) + f.corners()[-3:])
    assert f.contract("native").timing == plain.contract("native").timing
    assert (f.cost.dsp, f.alarm, plain.alarm) == (plain.cost.dsp + f.params.shape.tiles, True, False)
    assert f.representation.moduli == (*plain.params.a.moduli, 1 << plain.params.a.w, *plain.params.b.moduli)


@pytest.mark.parametrize("form", ["native", "montgomery", "plain"])
def test_a_core_with_a_check(form):
    """Corners, random operands, pauses, stalls, resets: right results and no alarm. It is at the ports."""
    core, report = build("kbe", 29, form, n=1, w=12, check=True), Report("core")
    verify(core, core.verilog, report, effort=replace(SHORT, starts=12, cuts=3, corners=40, chain=10), four_state=True)
    assert report.failures == [] and report.counts["corner"] > 20
    assert core.contract.describe()["ports"][ALARM] == {"direction": "out", "width": 1}
    assert ALARM in core.record()["alarm"] and "check_rower" in core.verilog
    maps = [each["physical"] for stream in streams(core.record()["ports"]) for each in stream["maps"]]
    assert "o_r" in maps and ALARM not in maps, "the alarm belongs to no stream"
    without = core.verilog.replace(ALARM, "o_other")
    assert any("port o_alarm is missing" in line for line in rtl_faults(without, core.contract))


@pytest.mark.parametrize(
    ("right", "wrong", "caught"),
    [
        (r"assign o_alarm = [^;]*;", "assign o_alarm = 1'h0;", "wrong, and no alarm: "),
        (r"assign o_alarm = alarm \| ~calm \| ", "assign o_alarm = ", "o_alarm low again without a reset"),
        (r"assign o_alarm = ([^;]*);", r"assign o_alarm = 1'h1;", "o_alarm high"),
    ],
)
def test_an_alarm_that_is_removed_is_noticed_by_the_check_of_a_core(right, wrong, caught):
    """The planted fault: no alarm, one that does not stay, and one without a reason."""
    core, report = build("kbe", 29, "native", n=1, w=12, check=True), Report("core")
    text, count = re.subn(right, wrong, core.verilog)
    assert count == 1
    verify(core, text, report, effort=replace(SHORT, starts=2, cuts=1, corners=8, chain=2, randoms=8))
    assert report.failures and caught in report.failures[0]


def test_a_core_without_a_check_has_no_alarm():
    core = build("kbe", 29, n=1, w=12)
    assert ALARM not in core.verilog + str(core.record()) and "check" not in core.fitted.settings


def test_a_wrong_constant_raises_the_alarm():
    """The planted fault: one bit of one constant of one rower. The check of the core tells of the alarm."""
    core = build("kbe", 29, "plain", n=1, w=12, check=True)

    def alarmed(text):
        run = Simulator(text, widths=widths(core.contract), power_up=core.contract.power_up).run([5, 6], [7, 8])
        return any("o_alarm high" in line for line in run.violations)

    assert not alarmed(core.verilog)
    changed = [
        alarmed(core.verilog[: at.start(1)] + at[1].translate(OTHER) + core.verilog[at.end(1) :])
        for at in re.finditer(r"\.INIT\(\d+'h[0-9a-f]+([0-9a-f])\)", core.verilog)
    ]
    assert sorted(changed) == [False, True], "the rower of the check has no use for its xi"


class FlippingRam(wiring.Component):
    """A block RAM; what is written to it changes by the bits of ``flip``."""

    made: ClassVar[list["FlippingRam"]] = []

    def __init__(self, *contents):
        self.inner = BlockRam(*contents)
        self.flip = Signal(self.inner.width)
        self.made.append(self)
        super().__init__(self.inner.signature)

    def elaborate(self, _platform):
        m = Module()
        m.submodules.inner = inner = self.inner
        for name, member in self.signature.members.items():
            one, other = getattr(self, name), getattr(inner, name)
            value = one ^ self.flip if name == "b_d" else one
            m.d.comb += other.eq(value) if member.flow == wiring.In else one.eq(other)
        return m


def flips(f, times=1):
    """The outcomes (`Bench.outcome`) of products in which one word changes while it is stored: each of a product's
    words, in each rower, ``times`` times. A result that is wrong over A alone goes into another product."""
    FlippingRam.made.clear()
    bench, core, rnd = Bench(f), f.component(), random.Random(1)
    reset, found, n, slot = Signal(), Counter(), bench.n, bench.shape.slot

    def outcome(x, y, port):
        words = f.representation.unpack(port)
        return bench.outcome(x, y, ([*words[:n], words[n]], [*words[n + 1 :], words[n]]))

    async def multiply(ctx, a, b, ram, flips=(), stored=None):
        """Alarm and result. ``flips``: in these cycles the word that ``ram`` stores changes; those in which it stores
        one are added to ``stored``, apart from words that belong to no product."""
        ctx.set(reset, 1)
        await ctx.tick().repeat(f.power_up)
        ctx.set(reset, 0)
        ctx.set(core.i_a, a), ctx.set(core.i_b, b), ctx.set(core.i_valid, 1), ctx.set(core.o_ready, 1)
        for now in range(400):
            ctx.set(ram.flip, rnd.randrange(1, 1 << len(ram.flip)) if now in flips else 0)
            if stored is not None and ctx.get(ram.b_write) and ctx.get(ram.b_address) < ram.inner.depth - slot:
                stored.append(now)
            alarm, port, valid, taken = map(ctx.get, (core.o_alarm, core.o_r, core.o_valid, core.i_ready))
            await ctx.tick()
            if valid:
                assert ctx.get(core.o_alarm) == alarm, "the alarm does not stay"
                return alarm, port
            if taken:
                ctx.set(core.i_valid, 0)
        raise AssertionError("no result")

    async def testbench(ctx):
        x, y, z = (rnd.randrange(1, bench.top + 1) for _ in "xyz")
        a, b, c = map(f.representation.encode, (x, y, z))
        for ram in FlippingRam.made:
            stored = []
            assert await multiply(ctx, a, b, ram, (), stored) == (0, [*f.trace(a, b)][-1][1])
            for cycle in stored * times:
                alarm, port = await multiply(ctx, a, b, ram, (cycle,))
                seen = "detected" if alarm else outcome(x, y, port)
                if seen == "over A":
                    wrong = bench.q.b.from_gammas(f.representation.unpack(port)[n + 1 :])
                    alarm, after = await multiply(ctx, port, c, ram)
                    seen = "by the next" if alarm else f"next {outcome(wrong, z, after)}"
                found[seen] += 1

    run_bench(ResetInserter(reset)(core), testbench)
    return found


@pytest.fixture
def flipping(monkeypatch):
    monkeypatch.setattr(rowers, "BlockRam", FlippingRam)


SMALL = [("kbe", 29, {"n": 1, "w": 12}), ("kbe", 8191, {"n": 2, "w": 12}), ("hbe", 29, {"n": 2, "w": 12}),
         long("hbe", P61, {"rowers": 2}), long("kbe", P61, {})]  # fmt: skip


@pytest.mark.parametrize("times", [1, long(3)])
@pytest.mark.parametrize(("name", "p", "settings"), SMALL)
def test_a_word_that_changes_where_it_is_stored_is_found(name, p, settings, times, flipping):
    """Any word of any rower: the alarm, a right result, or a result over A that raises it in the next product."""
    f = design(name).fit(p, check=True, **settings)
    shape, found = f.params.shape, flips(f, times)
    assert set(found) <= {"detected", "right", "by the next", "next right"}
    # xa, ya, s, xi over A, xb, yb, w~, zeta over B, and h do harm in this product, w in the next one
    each = times * shape.rowers * shape.channels_per_rower
    assert 7 * each <= found["detected"] <= 10 * each + 20 and 0 < found["by the next"] <= 2 * each


def test_a_check_that_is_removed_is_noticed(flipping, monkeypatch):
    """The planted fault: a difference raises nothing."""
    monkeypatch.setattr(multiplier, "raise_alarm", lambda *_: None)
    found = flips(design("kbe").fit(29, check=True, n=1, w=12))
    assert found["detected"] == 0 < found["missed"]


class SlotBench:
    """x y, then (x y) z in a slot machine that is reset before; the result is read."""

    def __init__(self, f):
        self.f, self.machine, self.reset, self.rnd = f, f.slot_machine(5), Signal(), random.Random(1)
        form, one = f.representation, dict.fromkeys(("i_c", "i_e", "i_sum"), 0)
        x, y, z = (self.rnd.randrange(1, f.contract("native").largest_operand + 1) for _ in "xyz")
        self.wanted = x * y * z * f.factor**2 % f.p
        numbers = [("x", {"x_slot": k, "x_number": form.encode(number)}) for k, number in enumerate((x, y, z))]
        first, second = (("i", {**one, "i_destination": d, "i_a": a, "i_b": b}) for d, a, b in ((3, 0, 1), (4, 3, 2)))
        self.steps = (*numbers, first, ("", {}), second, ("", {}), ("q", {"q_slot": 4}), ("", {}))

    async def run(self, ctx, ram=None, at=0):
        """Whether there was an alarm, the result over B modulo p, and the cycles in which rowers store words of the
        operations. ``ram``: what it stores in cycle ``at`` changes."""
        machine, params = self.machine, self.f.params
        alarms, numbers, stores = [], [], []
        p = placed(replace(params.shape, numbered=True), 0)
        made = [p.residue(op) for op in p.shape.of(Kind.MULTIPLY, Kind.MULTIPLY_TWO, Kind.REDUCE)]
        made += [p.start(op) for op in p.shape.of(Kind.COX)]

        async def tick():
            now = len(alarms)
            if ram:
                ctx.set(ram.flip, self.rnd.randrange(1, 1 << params.a.w) if now == at else 0)
            numbers.extend([ctx.get(machine.o_number)] * ctx.get(machine.o_valid))
            alarms.append(ctx.get(machine.o_alarm))
            await ctx.tick()

        ctx.set(self.reset, 1)
        await ctx.tick().repeat(self.f.power_up)
        ctx.set(self.reset, 0), ctx.set(machine.o_ready, 1)
        for stream, values in self.steps:
            for name, value in values.items():
                ctx.set(getattr(machine, name), value)
            if not stream:
                for _ in range((machine.distance + 2) * machine.interval):
                    await tick()
                continue
            valid, ready = (getattr(machine, f"{stream}_{name}") for name in ("valid", "ready"))
            ctx.set(valid, 1)
            while not ctx.get(ready):
                await tick()
            stores.extend(len(alarms) + at - (p.origin - 1) for at in made if stream == "i")
            await tick()
            ctx.set(valid, 0)
        words = self.f.representation.unpack(numbers[0])
        return any(alarms), params.b.from_gammas(words[-params.b.n :]) % self.f.p, stores

    def flips(self):
        """The outcomes of runs in which one word changes where it is stored: each word of both operations, in each
        rower."""
        FlippingRam.made.clear()
        found = Counter()

        async def testbench(ctx):
            alarm, result, stores = await self.run(ctx)
            assert not alarm and result == self.wanted
            for ram, at in product(FlippingRam.made, stores):
                alarm, result, _ = await self.run(ctx, ram, at)
                found["detected" if alarm else "right" if result == self.wanted else "missed"] += 1

        run_bench(ResetInserter(self.reset)(self.machine), testbench)
        return found


@pytest.mark.parametrize(("name", "p", "n"), [("kbe", 29, 2), ("hbe", 29, 2), long("kbe", P61, 5)])
def test_the_slot_machine_checks_every_operation(name, p, n, flipping):
    """A word that changes: the alarm, or a right result over B. s, xi, w~, zeta and h of every rower do harm, and w of
    the first operation."""
    found = SlotBench(design(name).fit(p, check=True, n=n, w=12 if p == 29 else 17)).flips()
    assert found["detected"] >= 11 * n - 2 and not found["missed"]


def test_a_check_that_is_removed_from_the_slot_machine_is_noticed(flipping, monkeypatch):
    """The planted fault: nothing is compared."""
    monkeypatch.setattr(CoxSlots, "_compare", lambda *_: None)
    found = SlotBench(design("kbe").fit(29, check=True, n=2, w=12)).flips()
    assert found["missed"] > 0 == found["detected"]


SMALL_CURVE = Weierstrass(251, (0, 2), 271, a=1, b=4)


def test_an_engine_has_the_alarm_of_its_slot_machine():
    """Right results raise none; one bit of a constant in a block RAM does, and zeros leave. Without the comparison they
    are wrong."""
    core = ecc(SMALL_CURVE, "kbe", {"check": True, "w": 12}, threads=1)
    assert core.alarmed and core.numbered and ALARM in core.record()["ports"]
    pairs = sample(SMALL_CURVE, "multiply", core.bits, 2)
    runs, results = [run for run, _ in pairs], [found for _, found in pairs]
    assert core.simulate("multiply", runs).results == results
    constants = re.finditer(r"block_ram_12x\d+[^;]*?\.INIT\(\d+'h[0-9a-f]+([0-9a-f])\)", core.verilog)
    wrong = [core.verilog[: at.start(1)] + at[1].translate(OTHER) + core.verilog[at.end(1) :] for at in constants]
    found = [replace(core, stored=text).simulate("multiply", runs).results for text in wrong]
    zeros = [(0, 0)] * len(runs)
    assert sorted(found) == sorted([zeros, results]), "the rower of the check has no use for its xi"
    text, count = re.subn(r"assign o_alarm = [^;]*check\d[^;]*;", "assign o_alarm = 1'h0;", wrong[found.index(zeros)])
    assert count == 1
    removed = replace(core, stored=text).simulate("multiply", runs).results
    assert removed not in (zeros, results), "a check that is removed is not noticed"


def test_an_engine_beside_the_multiplier_refuses_the_check():
    with pytest.raises(UnsupportedError, match="check=true must keep its numbers in a slot machine: take check=false"):
        engine("hbe", width=61, settings={"check": True}, io="montgomery")
