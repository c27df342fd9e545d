# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The cox-rower machine: its cycles, its schedule, and that operands at the edge find faults in its cox."""

import re
from dataclasses import replace

import pytest
from bench import first_difference, judge, operands, run, run_loads

from marks import long
from modmill.contract import UnsupportedError
from modmill.cores.multiplier.build import build
from modmill.designs import design
from modmill.designs.cox_rower import shape as shapes
from modmill.designs.cox_rower.kbe import Params, RnsMontgomery, tables
from modmill.designs.cox_rower.model import Model
from modmill.designs.cox_rower.multiplier import CoxRower
from modmill.designs.cox_rower.operations import Kind, Value, operations
from modmill.designs.cox_rower.schedule import Program, folded_bound, jobs, memory_plan, program
from modmill.designs.cox_rower.shape import PRODUCT
from modmill.numbers.moduli import parse_modulus
from modmill.numbers.rns.base_pairs import Sufficiency, sufficiency
from modmill.numbers.rns.residues import signed_digits
from modmill.placement import verify
from modmill.schedule import ScheduleError

CURVES = ["secp256k1", "P-256", "P-384", "P-521"]


def fitted(name, modulus):
    return design(name).fit(parse_modulus(modulus).value)


@pytest.mark.parametrize("modulus", CURVES)
def test_kbe_takes_2n_plus_5_cycles_a_product(modulus):
    f = fitted("kbe", modulus)
    n = f.params.shape.n
    assert f.schedule.interval == 2 * n + 5
    assert f.schedule.utilisation()["multiplier"] == 1


def test_one_kbe_product_alone():
    """First to last multiplication within 2n + 5 + 3L; L: from an address to the residue that can be read again."""
    f = fitted("kbe", "secp256k1")
    shape = f.params.shape
    alone = program(shape, 120)
    depth = PRODUCT + 2 + len(shape.bounds(shape.sum_bound)) * shape.loop_pass + 1
    assert alone.last_slot + 1 <= 2 * shape.n + 5 + 3 * depth
    assert alone.valid - alone.accept <= alone.last_slot + depth + 6


@pytest.mark.parametrize(("modulus", "interval"), [("secp256k1", 24), ("P-256", 24), ("P-384", 32), ("P-521", 40)])
def test_hbe_takes_n_plus_8_cycles_a_product(modulus, interval):
    f = fitted("hbe", modulus)
    assert f.schedule.interval == interval == f.params.shape.n + 8


@pytest.mark.long
def test_no_hbe_schedule_with_n_plus_7_cycles():
    with pytest.raises(ScheduleError, match="there is no schedule with interval 23"):
        program(fitted("hbe", "secp256k1").params.shape, 23)


@pytest.mark.parametrize(
    ("name", "settings", "why"),
    [
        ("hbe", {"interval": 10}, "interval takes 0 or 19 to 36 for this 3-bit modulus, not 10: .*schedule"),
        ("kbe", {"interval": 7}, "interval takes 0 or 19 to 28 for this 3-bit modulus, not 7: .*schedule"),
        ("kbe", {"rowers": 1, "n": 2, "interval": 18}, "interval = 18 does not serve n = 2: .*take a longer one, or 0"),
        (
            "kbe",
            {"rowers": 1, "n": 2, "interval": 37, "loadable": True},
            "port of the block RAMs in 37 cycles, and a load",
        ),
    ],
)
def test_an_interval_without_a_schedule_is_refused(name, settings, why):
    chosen = design(name)
    with pytest.raises(UnsupportedError, match=why):
        chosen.fit(7, **settings)
    least, _ = chosen.range("interval", 7, **{k: v for k, v in settings.items() if k != "interval"})
    if "rowers" not in settings:
        assert chosen.fit(7, interval=least).period == chosen.fit(5).period == least


@pytest.mark.parametrize("name", ["kbe", "hbe"])
def test_an_offset_one_too_small_is_found_at_the_edge(name):
    f = fitted(name, "secp256k1")
    proof = f.params.proof

    class Less(Sufficiency):
        offset = proof.offset - 1

    wrong = RnsMontgomery(f.p, Params(f.params.pair, Less(proof.pair, proof.p, proof.t)), f.settings)
    found = [pair for pair in f.corners() if list(f.trace(*pair)) != list(wrong.trace(*pair))]
    assert found, "no corner sees the offset"
    *_, (_, result) = wrong.trace(*found[0])
    form = f.representation
    x, y = (form.decode(port) for port in found[0])
    assert form.decode(result) >= f.bounds[2] * f.p or (form.decode(result) - x * y * f.factor) % f.p


@pytest.mark.parametrize("name", ["kbe", "hbe"])
def test_a_job_moved_by_a_cycle_is_refused(name):
    f = fitted(name, "secp256k1")
    p, todo = f.program, jobs(f.params.shape)
    verify(todo, p.interval, p.starts)
    for job in todo:
        for other in (-1, 1):
            moved = dict(p.starts) | {job.name: p.starts[job.name] + other}
            try:
                verify(todo, p.interval, moved)
            except ScheduleError:
                break
        else:
            assert job.name in ("h", "out zeta", "out w", "in xa", "in ya", "in xb", "in yb", "w~", "w~ fold"), job.name


@pytest.fixture
def forgotten():
    """Programs are kept by shape, whatever its operations."""
    program.cache_clear()
    yield
    program.cache_clear()


def reordered(monkeypatch, change):
    """Fit kbe for a small modulus with other operations; nothing else is told."""
    monkeypatch.setattr(shapes, "operations", lambda *a, **k: change(list(operations(*a, **k))))
    program.cache_clear()
    return design("kbe").fit(29, n=1, w=12)


def moved(ops, letter, before):
    """The operations with the product of that letter before that of another."""
    (op,) = [op for op in ops if op.kind is Kind.MULTIPLY and op.result.letter == letter]
    ops.remove(op)
    ops.insert(next(k for k, other in enumerate(ops) if other.result.letter == before), op)
    return ops


def test_another_order_of_operations_changes_all_together(monkeypatch, forgotten):
    """Model, chart, control and cycle count; the machine made from it computes each value in its new cycle."""
    usual = design("kbe").fit(29, n=1, w=12)
    pairs = usual.corners()[-3:]
    trace, schedule, latency = dict(usual.trace(*pairs[0])), usual.schedule, usual.contract("native").timing.latency
    other = reordered(monkeypatch, lambda ops: moved(ops, "w~", "s"))
    names = [name for name, _ in other.trace(*pairs[0])]
    assert names.index("w~") < names.index("s") and dict(other.trace(*pairs[0])) == trace
    assert [job.name for job in jobs(other.params.shape)] != [job.name for job in jobs(usual.params.shape)]
    assert [step.name for step in other.schedule.steps] != [step.name for step in schedule.steps]
    assert other.schedule["w~"].start != schedule["w~"].start and other.program.starts != usual.program.starts
    assert other.contract("native").timing.latency == other.schedule.latency != latency == schedule.latency
    assert all(set(seen) == {step.name for step in other.schedule.steps} for seen in judge(other, pairs))


def test_an_order_that_breaks_a_dependence_is_refused(monkeypatch, forgotten):
    with pytest.raises(UnsupportedError, match="MULTIPLY xi reads s, which a later operation computes"):
        assert reordered(monkeypatch, lambda ops: moved(ops, "xi", "s")).program
    without = [op for op in operations(1, rows=False, numbered=False) if op.kind is not Kind.COX]
    with pytest.raises(UnsupportedError, match="TERM sum w reads h, which no operation computes"):
        assert reordered(monkeypatch, lambda _: without).program


class Widest(Model):
    """Carries out the operations on the largest words, and notes the largest value that each fold sees."""

    def folded(self, op, values):
        seen[op] = max(seen.get(op, 0), *values)
        return [[(1 << self.shape.w) - 1] * len(values)]


seen = {}


@pytest.mark.parametrize("numbered", [False, True])
@pytest.mark.parametrize(
    ("name", "settings"), [("kbe", {}), ("hbe", {}), ("hbe", {"columns": 3}), ("kbe", {"rowers": 2})]
)
def test_every_fold_is_as_wide_as_its_operation_needs(name, settings, numbered):
    """The bounds pass: all words and constants at their largest, h too."""
    f = design(name).fit(parse_modulus("2^61-1").value, **settings)
    q, shape = f.params, replace(f.params.shape, numbered=numbered)
    top = (1 << shape.w) - 1
    k = tables(f.p, q, plain=False)
    row = [top] * shape.n
    largest = replace(k, xi=row, wt=row, h=row, first=[row] * shape.steps, second=[row] * shape.steps)
    letters = "xyvz" if numbered else "xy"
    inputs = {
        Value(x + b, j): [top] * shape.rowers for x in letters for b in "ab" for j in range(shape.channels_per_rower)
    }
    seen.clear()
    (h,) = (made[0] for op, _, _, made in Widest(shape, largest, q.cox).run(inputs) if op.kind is Kind.COX)
    assert h <= shape.h_max
    folds = [op for op in seen if op.kind in (Kind.MULTIPLY, Kind.MULTIPLY_TWO, Kind.REDUCE)]
    assert len(folds) == shape.channels_per_rower * 5
    for op in folds:
        assert seen[op] < folded_bound(shape, op) <= shape.fold_bound, op
    assert max(seen.values()) < shape.fold_bound


def test_memory_holds_constants_and_slots():
    depth, first, slots = memory_plan(fitted("kbe", "secp256k1").program)
    assert (depth, first) == (256, 3) and slots >= 7


def test_more_constants_than_a_block_ram_holds_are_refused():
    why = (
        r"n = 128 moduli on rowers = 32 need 1,036 constants in each block RAM.*room for 1,024: lower n or raise rowers"
    )
    with pytest.raises(UnsupportedError, match=why):
        design("kbe").fit(2**64 - 2**32 + 1, n=128, w=34, rowers=32)


def test_shapes_that_do_not_fit_are_refused():
    shape = fitted("kbe", "secp256k1").params.shape
    with pytest.raises(ScheduleError):
        program(shape, 36)
    assert replace(shape, offset=0).h_max < shape.h_max


@pytest.mark.parametrize(("columns", "n", "interval"), [(3, 18, 22), (4, 16, 23)])
def test_rows_of_three_and_four(columns, n, interval):
    f = design("hbe").fit(parse_modulus("secp256k1").value, columns=columns)
    assert (f.params.shape.n, f.schedule.interval) == (n, interval)
    judge(f, operands(f.contract("native"), 2) + f.corners()[-3:])


@pytest.mark.parametrize("name", ["kbe", "hbe"])
def test_another_modulus_is_loaded_and_the_first_again(name):
    f = fitted(name, "secp256k1")
    p = parse_modulus("P-256").value
    proof = sufficiency(f.params.pair, p, t=f.params.proof.t).require()
    assert proof.offset == f.params.proof.offset, "the cox would differ"
    other = RnsMontgomery(p, Params(f.params.pair, proof), f.settings)
    core = CoxRower(f.program, tables(f.p, f.params, plain=False), loadable=True)
    form = f.representation
    pairs = [(form.encode(123**30), form.encode(77**40)), (form.encode(p - 1), form.encode(p - 1))]
    loads = (f, other, f)
    found = run_loads(core, [(modulus_words(g), pairs) for g in loads])
    for g, results in zip(loads, found, strict=True):
        for pair, (result, seen, _) in zip(pairs, results, strict=True):
            trace = list(g.trace(*pair))
            assert first_difference(trace, seen) == "" and trace[-1][1] == result
    assert found[0][0][0] != found[1][0][0], "the modulus made no difference"


def modulus_words(f):
    """What stream k must bring for a fitted design."""
    return f.component().modulus_words()


@pytest.mark.parametrize(
    ("name", "modulus", "rowers", "interval"),
    [
        ("kbe", "secp256k1", 8, 74), ("hbe", "secp256k1", 4, 104), ("kbe", "2^61-1", 2, 38), ("hbe", "2^61-1", 2, 38),
        long("kbe", "P-256", 8, 74), long("kbe", "secp256k1", 4, 160), long("kbe", "P-256", 4, 160),
        long("hbe", "secp256k1", 8, 50), long("hbe", "P-256", 8, 50), long("hbe", "P-256", 4, 104),
    ],
)  # fmt: skip
def test_fewer_rowers(name, modulus, rowers, interval):
    """n / 2 and n / 4 rowers, each for two or four channels of each base: machine = algorithm = specification."""
    f = design(name).fit(parse_modulus(modulus).value, rowers=rowers)
    shape = f.params.shape
    assert (shape.rowers, f.cost.dsp, shape.rowers * shape.channels_per_rower) == (rowers, rowers, f.params.a.n)
    assert shape.least_interval <= f.schedule.interval == interval
    pairs = operands(f.contract("native"), 2) + f.corners()[-3:]
    for pair, seen in zip(pairs, judge(f, pairs), strict=True):
        assert len(seen.keys() & dict(f.trace(*pair))) >= 4 * shape.channels_per_rower, "the probes saw too little"


def test_a_channel_in_another_place_of_the_ring_is_found(monkeypatch):
    """The planted fault: coefficients in the order of a ring that is loaded the other way round."""
    f = design("kbe").fit(parse_modulus("2^61-1").value, rowers=2)
    pairs = operands(f.contract("native"), 1)
    trace, passing = list(f.trace(*pairs[0])), Program.passing
    monkeypatch.setattr(Program, "passing", lambda p, op: passing(p, op)[1:] + passing(p, op)[:1])
    (result, seen, _), *_ = run(f.component(), pairs)
    assert first_difference(trace, seen) == "q1 1" and trace[-1][1] != result


def test_rowers_that_do_not_share_evenly_are_refused():
    p = parse_modulus("secp256k1").value
    assert design("kbe").fit(p, rowers=5).params.a.n == 20
    with pytest.raises(UnsupportedError, match="rowers must fill rows of 2, got rowers = 5"):
        design("hbe").fit(p, rowers=5)
    with pytest.raises(UnsupportedError, match="n must be a multiple of rowers, got n = 16 and rowers = 6"):
        design("kbe").fit(p, n=16, rowers=6)


@pytest.mark.parametrize(
    ("name", "modulus", "w", "dsp", "blocks"),
    [
        ("kbe", "secp256k1", 24, "18x18", 44), long("hbe", "P-256", 20, "18x18", 56),
        long("hbe", "secp256k1", 34, "18x18", 32), ("hbe", "97", 24, "25x18", 4), ("kbe", "2^61-1", 34, "18x18", 8),
        long("kbe", "P-256", 24, "25x18", 22),
        long("hbe", "secp256k1", 24, "18x18", 48), long("kbe", "P-256", 28, "25x18", 40),
    ],
)  # fmt: skip
def test_channels_wider_than_a_dsp_block(name, modulus, w, dsp, blocks):
    """Multipliers of several blocks: machine = algorithm = specification, and the blocks that `cost` states."""
    f = design(name).fit(parse_modulus(modulus).value, w=w, dsp=dsp)
    judge(f, operands(f.contract("native"), 2) + f.corners()[-3:])
    assert f.cost.dsp == blocks == dsp_blocks(build(name, modulus, "native", w=w, dsp=dsp).verilog, "core")


@pytest.mark.parametrize(
    ("name", "w", "moduli", "largest", "digits"),
    [("kbe", 34, "light", 4095, 33), ("hbe", 24, "light", 257, 60), ("hbe", 17, "short", 141, 99)],
)
def test_forms_of_moduli(name, w, moduli, largest, digits):
    """Light and short moduli in place of the nearest of three signed digits: the bases suffice, with as many moduli."""
    p = parse_modulus("secp256k1").value
    near, found = (design(name).fit(p, w=w, moduli=kind).params for kind in ("near", moduli))
    assert found.proof.holds and found.pair.n == near.pair.n
    assert found.pair.largest_u == largest
    assert sum(len(signed_digits(u)) for u in (*found.a.u, *found.b.u)) == digits


@pytest.mark.parametrize(("name", "w", "moduli"), [("kbe", 34, "light"), ("hbe", 12, "short"), ("hbe", 24, "light")])
def test_forms_of_moduli_in_the_machine(name, w, moduli):
    f = design(name).fit(2**61 - 1, w=w, moduli=moduli)
    judge(f, operands(f.contract("native"), 2) + f.corners()[-3:])


def dsp_blocks(verilog, top):
    """Tiles in a module and all that it instantiates."""
    modules = dict(re.findall(r"^module (\w+)(.*?)^endmodule", verilog, re.MULTILINE | re.DOTALL))

    def count(name):
        inside = [x for x in re.findall(r"^  (\w+) \w+ \($", modules[name], re.MULTILINE) if x in modules]
        return 1 if "dsp_mul_" in name else sum(map(count, inside))

    return count(top)


@pytest.mark.long
def test_a_modulus_is_loaded_into_fewer_rowers():
    f = design("kbe").fit(parse_modulus("2^61-1").value, rowers=2, loadable=True)
    assert len(f.load.words) == 2 * (1 + f.params.a.n) and f.load.width == 2 * 17
    assert all(other.load.words != f.load.words for other in f.others())
