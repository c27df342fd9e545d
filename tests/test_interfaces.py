# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Do the two interfaces carry what will come? Toy components in `trial/`, one section for each of four cases.

The answers, and what lost, are in docs/decisions/0001-two-interfaces.md.
"""

import random
from dataclasses import fields
from fractions import Fraction
from itertools import pairwise

import pytest

from modmill.contract import Contract, Refusal
from modmill.designs import design
from modmill.flow import prove
from modmill.flow.emit import verilog
from modmill.slots import Bounded, Operation, bounded, run
from trial import loadable
from trial.bench import drive
from trial.slot_machine import SlotMachine
from trial.words import WordAdapter

P = 2**31 - 1
SECP256K1 = 2**256 - 2**32 - 977
DOUBLE = Operation("add", 0, 0, 0)


def operands(contract, number, seed=1):
    rnd = random.Random(seed)
    top = contract.largest_operand
    corners = [(0, top), (top, top), (1, top), (contract.p, contract.p - 1)]
    return (corners + [(rnd.randint(0, top), rnd.randint(0, top)) for _ in range(number)])[:number]


def assert_kept(contract, pairs, numbers):
    assert len(numbers) == len(pairs)
    for (a, b), result in zip(pairs, numbers, strict=True):
        assert result % contract.p == contract.expect(a, b)
        assert result < contract.result_bound * contract.p


# ---- 1: a modulus loaded at run time


def test_each_result_belongs_to_the_modulus_loaded_before_its_operands():
    core = loadable.Loadable(12)
    offers, wanted = [], []
    for p in (3, 4093, 2049, 5, 4095):
        contract = loadable.contract(12, p)
        offers.append(("k", {"k_m": p}))
        for a, b in operands(contract, 6):
            offers.append(("i", {"i_a": a, "i_b": b}))
            wanted.append((contract, (a, b)))
    for stall, gap in ((0, 0), (0.4, 0.3)):
        trace = drive(core, offers, out=["o_r"], want=len(wanted), stall=stall, gap=gap)
        for (contract, pair), (result,) in zip(wanted, trace.out, strict=True):
            assert_kept(contract, [pair], [result])


def test_bounds_are_multiples_of_the_loaded_modulus_and_timing_is_the_same_for_all():
    contracts = [loadable.contract(12, p) for p in range(3, 1 << 12, 2)]
    assert len({(c.operand_bound, c.product_bound, c.result_bound, c.timing) for c in contracts}) == 1
    assert all(c.product(c.operand_bound, c.operand_bound) <= c.result_bound for c in contracts)
    for p in (3, 4095):
        offers = [("k", {"k_m": p}), *(("i", {"i_a": 2 * p - 1, "i_b": b}) for b in (0, 1, p))]
        trace = drive(loadable.Loadable(12), offers, out=["o_r"], want=3, alone=True)
        accepted = [cycle for cycle, stream in trace.taken if stream == "i"]
        assert {v - a for v, a in zip(trace.valid, accepted, strict=True)} == {contracts[0].timing.latency}


@pytest.mark.parametrize("p", [4, 1, 4097])
def test_a_modulus_outside_the_family_is_refused(p):
    with pytest.raises(Refusal, match=str(p)):
        loadable.contract(12, p)


def test_neither_operands_nor_modulus_reach_the_handshake_of_a_loadable_core():
    text = verilog(loadable.Loadable(12))
    outputs = ("i_ready", "o_valid", "k_ready")
    result = prove.prove_constant_latency(text, data=("i_a", "i_b", "k_m"), outputs=outputs)
    assert isinstance(result, prove.Proved), result


def test_a_result_bound_that_follows_its_operands_allows_what_one_number_refuses():
    steps = [Operation("load", 0, 0), Operation("load", 1, 1)]
    steps += [Operation("mul", 2, 0, 1), Operation("add", 3, 2, 2), Operation("mul", 0, 3, 2)]
    growing = loadable.contract(12, 511)
    *_, last = bounded(steps, growing, [Fraction(2)] * 2, slots=4)
    assert last.bound < 2
    fixed = Contract(**{f.name: getattr(growing, f.name) for f in fields(Contract)})
    with pytest.raises(Refusal, match=r"operation 5, slot 0 = slot 3 \* slot 2: operands below 4 p and 2 p exceed"):
        bounded(steps, fixed, [Fraction(2)] * 2, slots=4)


# ---- 2: operands word by word


@pytest.mark.parametrize("word", [32, 8, 4])
def test_words_change_the_timing_and_nothing_else(word):
    fitted = design("sor-1m-p").fit(P, n=16)
    native = fitted.contract("native")
    adapter = WordAdapter(fitted.core("native"), word)
    contract = adapter.contract(native)
    form = contract.operand
    pairs = operands(contract, 8)
    offers = [offer for a, b in pairs for offer in adapter.packet(form.encode(a), form.encode(b))]
    want = len(pairs) * adapter.outgoing

    def numbers(trace):
        assert [last for _, last in trace.out] == ([0] * (adapter.outgoing - 1) + [1]) * len(pairs)
        return [form.decode(port) for port in adapter.numbers([word for word, _ in trace.out])]

    trace = drive(adapter, offers, out=["o_data", "o_last"], want=want)
    assert_kept(contract, pairs, numbers(trace))
    first_out = trace.valid[:: adapter.outgoing]
    assert {late - early for early, late in pairwise(first_out)} == {contract.timing.interval}
    for a, b in pairs:  # alone: with a packet ahead, the next one waits in the adapter, which buffers one
        alone = drive(adapter, adapter.packet(form.encode(a), form.encode(b)), out=["o_data"], want=1)
        assert alone.valid[0] - alone.taken[0][0] == contract.timing.latency
    assert contract.timing.interval == max(native.timing.interval, adapter.incoming, adapter.outgoing)
    trace = drive(adapter, offers, out=["o_data", "o_last"], want=want, stall=0.5, gap=0.2)
    assert_kept(contract, pairs, numbers(trace))


# ---- 3: several products in flight, results in order


def test_products_in_flight_leave_in_order_through_an_adapter():
    fitted = design("sor-ring").fit(P)
    core = fitted.core("native")
    adapter = WordAdapter(core)
    native, contract = fitted.contract("native"), adapter.contract(fitted.contract("native"))
    form = contract.operand
    pairs = operands(contract, 14)
    offers = [offer for a, b in pairs for offer in adapter.packet(form.encode(a), form.encode(b))]
    want = len(pairs) * adapter.outgoing
    for stall in (0, 0.6):
        trace = drive(adapter, offers, out=["o_data", "o_last"], want=want, stall=stall)
        words = [word for word, _ in trace.out]
        assert_kept(contract, pairs, [form.decode(port) for port in adapter.numbers(words)])
        entered = [cycle for cycle, _ in trace.taken][adapter.incoming - 1 :: adapter.incoming]
        left = trace.given[adapter.outgoing - 1 :: adapter.outgoing]
        inside = max(sum(e <= cycle for e in entered) - sum(o <= cycle for o in left) for cycle in entered)
        assert inside >= native.timing.in_flight > 1
        if not stall:
            first_in = [cycle for cycle, _ in trace.taken][:: adapter.incoming]
            first_out = trace.valid[:: adapter.outgoing]
            assert {late - early for early, late in pairwise(first_in)} == {contract.timing.interval}
            assert {o - i for i, o in zip(first_in, first_out, strict=True)} == {contract.timing.latency}
            assert contract.timing.interval == native.timing.interval


# ---- 4: residues that stay in their channels


def doubling():
    """Point doubling on y^2 = x^3 + 7 in Jacobian coordinates: X, Y, Z in slots 0, 1, 2, and out again."""
    x, y, z, a, b, c, d, e = range(8)
    return [
        *(Operation("load", k, k) for k in (x, y, z)),
        Operation("mul", a, x, x),
        Operation("mul", b, y, y),
        Operation("mul", z, y, z), Operation("add", z, z, z),
        Operation("mul", c, b, b),
        Operation("add", d, x, b), Operation("mul", d, d, d),
        Operation("sub", d, d, a), Operation("sub", d, d, c), Operation("add", d, d, d),
        Operation("add", e, a, a), Operation("add", e, e, a),
        Operation("mul", x, e, e), Operation("add", a, d, d), Operation("sub", x, x, a),
        Operation("add", c, c, c), Operation("add", c, c, c), Operation("add", c, c, c),
        Operation("sub", d, d, x), Operation("mul", y, e, d), Operation("sub", y, y, c),
        *(Operation("store", k, k) for k in (x, y, z)),
    ]  # fmt: skip


def doubled(p, x, y, z):
    a, b, e = x * x, y * y, 3 * x * x
    d = 4 * x * b
    x3 = e * e - 2 * d
    assert d == 2 * ((x + b) ** 2 - a - b * b)
    return x3 % p, (e * (d - x3) - 8 * b * b) % p, 2 * y * z % p


def test_a_formula_within_bounds_passes_and_its_results_can_enter_again():
    contract = design("sor-1m-p").fit(SECP256K1).contract("native")
    inputs = [Fraction(23), Fraction(12), Fraction(3)]
    programme = bounded(doubling(), contract, inputs, slots=8)
    assert [step.bound <= bound for step, bound in zip(programme[-3:], inputs, strict=True)] == [True] * 3
    assert max(step.bound for step in programme) < contract.operand_bound
    lifts = [(str(step.operation), step.lift) for step in programme if step.lift]
    assert lifts[0] == ("slot 6 = slot 6 - slot 3", 2)  # a product is below 1.13 p


def test_a_formula_whose_sums_exceed_the_bound_is_refused_with_the_numbers():
    contract = design("sor-1m-p").fit(SECP256K1, n=43).contract("native")
    assert contract.closed
    with pytest.raises(Refusal, match=r"operation 10, .* below 3.58\d+ p and 3.58\d+ p exceed .* 10 p\^2"):
        bounded(doubling(), contract, [contract.result_bound] * 3, slots=8)


def test_a_binary_core_takes_no_sums():
    contract = design("sor-1m-p").fit(P, n=16).contract("binary")
    steps = [Operation("load", 0, 0), Operation("add", 1, 0, 0), Operation("mul", 1, 1, 0)]
    with pytest.raises(Refusal, match=r"operation 2, slot 1 = slot 0 \+ slot 0: the result is below 2 p"):
        bounded(steps, contract, [Fraction(1)], slots=2)


@pytest.mark.parametrize(
    ("operations", "why"),
    [
        ([Operation("mul", 0, 0, 1)], "slot 0 is read before it is written"),
        ([Operation("load", 9, 0)], "there are 4 slots"),
        ([Operation("load", 0, 1)], "there are 1 inputs"),
        ([Operation("load", 0, 0), *[DOUBLE] * 2, Operation("store", 0, 0)], "operands must be below 3.16"),
        ([Operation("load", 0, 0), *[DOUBLE] * 300], "a slot holds numbers below"),
    ],
)
def test_programmes_that_cannot_run_are_refused(operations, why):
    contract = design("sor-1m-p").fit(SECP256K1, n=43).contract("native")
    with pytest.raises(Refusal, match=why):
        bounded(operations, contract, [Fraction(2)], slots=4)


def test_an_unknown_operation_is_refused():
    with pytest.raises(Refusal, match="not 'div'"):
        Operation("div", 0, 1, 2)


def test_bounds_hold_for_the_largest_numbers_and_are_needed():
    fitted = design("sor-1m-p").fit(SECP256K1)
    contract = fitted.contract("native")
    inputs = [Fraction(23), Fraction(12), Fraction(3)]
    programme = bounded(doubling(), contract, inputs, slots=8)
    for numbers in ([int(b * SECP256K1) - 1 for b in inputs], [0, 0, 0], [0, int(12 * SECP256K1) - 1, 0]):
        values = list(run(programme, SECP256K1, numbers, fitted.multiply))
        assert all(0 <= v < s.bound * SECP256K1 for v, s in zip(values, programme, strict=True))
        assert tuple(v % SECP256K1 for v in values[-3:]) == doubled(SECP256K1, *numbers)


def test_a_subtraction_adds_the_least_multiple_of_p_that_serves():
    contract = design("sor-1m-p").fit(SECP256K1).contract("native")
    steps = [Operation("load", 0, 0), Operation("load", 1, 1), Operation("sub", 2, 0, 1)]
    *start, last = bounded(steps, contract, [Fraction(1), Fraction(5, 2)], slots=3)
    assert (last.bound, last.lift) == (4, 3)
    largest = [0, SECP256K1 * 5 // 2]
    *_, value = run([*start, last], SECP256K1, largest, contract.expect)
    assert value >= 0
    *_, value = run([*start, Bounded(last.operation, last.bound, 2)], SECP256K1, largest, contract.expect)
    assert value < 0


@pytest.mark.parametrize("name", ["sor-1m-p", "sor-ring"])
def test_a_slot_machine_made_from_any_multiplier_agrees_number_for_number(name):
    fitted = design(name).fit(P, **({"n": 16} if name == "sor-1m-p" else {"operand": 64}))
    contract = fitted.contract("native")
    inputs = [Fraction(26), Fraction(14), Fraction(4)]
    programme = bounded(doubling(), contract, inputs, slots=8)
    machine = SlotMachine(fitted.core("native"), contract, 8, {step.lift for step in programme})
    rnd = random.Random(2)
    for stall in (0, 0.5):
        point = [rnd.randrange(int(b * P)) for b in inputs]
        offers, wanted = [], []
        for _ in range(3):  # what left enters again, without a conversion to its least residue
            offers += machine.offers(programme, point)
            point = list(run(programme, P, point, fitted.multiply))[-3:]
            wanted += point
        trace = drive(machine, offers, out=["o_number"], want=len(wanted), stall=stall)
        assert [contract.operand.decode(port) for (port,) in trace.out] == wanted
