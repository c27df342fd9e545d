# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The machine of kbe and hbe with its check: right products, and words that change where they are stored."""

import random
import re
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import ClassVar

import pytest
from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.lib import wiring
from bench import judge, operands, run_bench
from test_cox_check import Bench

from marks import long
from modmill.contract import ALARM, UnsupportedError
from modmill.cores.ecc.machine import ecc
from modmill.cores.multiplier.build import build
from modmill.cores.multiplier.verify import SHORT, Report, rtl_faults, verify
from modmill.designs import design
from modmill.designs.cox_rower import rowers
from modmill.designs.cox_rower.multiplier import CoxRower
from modmill.flow.simulate import Simulator, widths
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


@pytest.mark.parametrize(("name", "p", "settings"), SMALL)
def test_a_word_that_changes_where_it_is_stored_is_found(name, p, settings, flipping):
    """Any word of any rower: the alarm, a right result, or a result over A that raises it in the next product."""
    f = design(name).fit(p, check=True, **settings)
    shape, found = f.params.shape, flips(f, 3)
    assert set(found) <= {"detected", "right", "by the next", "next right"}
    # xa, ya, s, xi over A, xb, yb, w~, zeta over B, and h do harm in this product, w in the next one
    each = 3 * shape.rowers * shape.channels_per_rower
    assert 7 * each <= found["detected"] <= 10 * each + 20 and 0 < found["by the next"] <= 2 * each


def test_a_check_that_is_removed_is_noticed(flipping, monkeypatch):
    """The planted fault: the residue of one extension is compared with itself."""
    compare = CoxRower._compare
    one = lambda check: SimpleNamespace(w_out=check.zeta_out, zeta_out=check.zeta_out)  # noqa: E731
    monkeypatch.setattr(CoxRower, "_compare", lambda self, m, check: compare(self, m, one(check)))
    found = flips(design("kbe").fit(29, check=True, n=1, w=12))
    assert found["detected"] == 0 < found["missed"]


@pytest.mark.parametrize("name", ["kbe", "hbe"])
def test_machines_without_an_alarm_refuse_the_check(name):
    with pytest.raises(UnsupportedError, match="slot machine does not check its products: take check=false"):
        design(name).fit(P61, check=True).slot_machine(4)
    with pytest.raises(UnsupportedError, match=f"an engine does not look at the alarm of {name}: take check=false"):
        ecc("secp256k1", name, {"check": True, "loadable": False})
