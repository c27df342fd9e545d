# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Do the two interfaces carry what will come? Toy components in `trial/`, one block for each of four cases.

The answers, and what lost, are in docs/decisions/0001-two-interfaces.md.
"""

import random
from dataclasses import fields, replace
from itertools import pairwise

import pytest

from modmill.contract import Contract, UnsupportedError
from modmill.designs import design
from modmill.engines.microcode.assembly import assemble
from modmill.engines.microcode.bounds import program_bounds
from modmill.engines.microcode.expressions import BasicBlock
from modmill.engines.microcode.field_program import Domain, FieldProgram
from modmill.engines.microcode.interpreter import exact, largest, run
from modmill.engines.microcode.program import DatapathSpec, Instruction, OperandAddress, Program, Task
from modmill.flow import prove
from modmill.flow.emit import verilog
from trial import loadable
from trial.bench import drive
from trial.slot_machine import SlotMachine
from trial.words import WordAdapter

P = 2**31 - 1
SECP256K1 = 2**256 - 2**32 - 977
UNIT = DatapathSpec(1, 1, 1, 16, 16)


def instructions(*operations):
    """Instructions of one operation each, (kind, destination, a, b), on two inputs."""
    tasks = [Task(kind, *map(OperandAddress, slots)) for kind, *slots in operations]
    made = tuple(Instruction(task) if task.kind == "mul" else Instruction(sums=(task,)) for task in tasks)
    return Program("instructions", ((0, "a"), (1, "b")), (), made, (), (), 0, ())


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
    with pytest.raises(UnsupportedError, match=str(p)):
        loadable.contract(12, p)


def test_neither_operands_nor_modulus_reach_the_handshake_of_a_loadable_core():
    text = verilog(loadable.Loadable(12))
    outputs = ("i_ready", "o_valid", "k_ready")
    result = prove.prove_constant_latency(text, data=("i_a", "i_b", "k_m"), outputs=outputs)
    assert isinstance(result, prove.Proved), result


def test_a_result_bound_that_follows_its_operands_allows_what_one_number_refuses():
    steps = instructions(("mul", 2, 0, 1), ("add", 3, 2, 2), ("mul", 0, 3, 2))
    growing = loadable.contract(12, 511)
    assert program_bounds(steps, growing).tasks[0, 2, 0] < 2
    fixed = Contract(**{f.name: getattr(growing, f.name) for f in fields(Contract)} | {"gain": 0})
    with pytest.raises(UnsupportedError, match=r"before instruction 2: operands below 3.998\d+ p and 2 p exceed"):
        program_bounds(steps, fixed)


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


def doubling(contract, passes=3):
    """Point doublings on y^2 = x^3 + 7 in Jacobian coordinates, one in each pass of a loop."""
    s = BasicBlock("doubling")
    x, y, z = (s.variable(name) for name in "xyz")
    a, b = x * x, y * y
    d, e = 2 * ((x + b) * (x + b) - a - b * b), 3 * a
    x3 = e * e - 2 * d
    for name, value in zip("xyz", (x3, e * (d - x3) - 8 * (b * b), 2 * (y * z)), strict=True):
        s.set(name, value)
    names = ("x", "y", "z")
    return FieldProgram("doubling", Domain.of(contract), names, names, (), s, BasicBlock("end"), passes)


def doubled(p, x, y, z):
    a, b, e = x * x, y * y, 3 * x * x
    d = 4 * x * b
    x3 = e * e - 2 * d
    assert d == 2 * ((x + b) ** 2 - a - b * b)
    return x3 % p, (e * (d - x3) - 8 * b * b) % p, 2 * y * z % p


def test_a_formula_within_bounds_passes_and_its_results_enter_again():
    contract = design("sor-1m-p").fit(SECP256K1).contract("native")
    made = assemble(doubling(contract, 1000), contract, UNIT)
    assert not made.legal.reductions
    assert 2 < max(made.legal.results) <= max(program_bounds(made.program, contract).tasks.values())
    assert max(program_bounds(made.program, contract).tasks.values()) < contract.operand_bound
    differences = [task for instruction in made.program.loop for task in instruction.sums if task.kind == "sub"]
    assert 2 in {task.offset_multiple for task in differences}, "a product is below 1.13 p"


def test_a_formula_whose_sums_exceed_the_bound_is_refused_with_the_numbers():
    contract = design("sor-1m-p").fit(SECP256K1).contract("native")
    tight = design("sor-1m-p").fit(SECP256K1, n=43).contract("native")
    assert tight.closed
    made = assemble(doubling(contract), contract, UNIT).program
    with pytest.raises(
        UnsupportedError, match=r"loop instruction \d+: operands below \d.* exceed the core's limit of 10 p\^2"
    ):
        program_bounds(made, tight)
    assert assemble(doubling(tight), tight, UNIT).legal.reductions


def test_a_binary_core_takes_no_sums():
    contract = design("sor-1m-p").fit(P, n=16).contract("binary")
    with pytest.raises(UnsupportedError, match="before instruction 0: a sum below 2 p, a slot holds numbers below"):
        program_bounds(instructions(("add", 2, 0, 1), ("mul", 2, 2, 0)), contract)


def test_bounds_hold_for_the_largest_numbers():
    fitted = design("sor-1m-p").fit(SECP256K1)
    contract = fitted.contract("native")
    made = assemble(doubling(contract), contract, UNIT).program
    limits = program_bounds(made, contract).tasks

    def seen(where, result):
        assert result < limits[where] * SECP256K1

    for numbers in ([SECP256K1 - 1] * 3, [0, 0, 0], [0, SECP256K1 - 1, 0], [5, 7, 11]):
        wanted = numbers
        for _ in range(3):
            wanted = doubled(SECP256K1, *wanted)
        for product in (exact(fitted, contract), largest(made, contract)):
            given = dict(zip("xyz", numbers, strict=True))
            assert run(made, UNIT, contract, given, (), product, seen) == wanted


def test_a_difference_adds_the_least_multiple_of_p_that_serves():
    contract = design("sor-1m-p").fit(SECP256K1).contract("native")
    made = assemble(doubling(contract), contract, UNIT).program
    for k, instruction in enumerate(made.loop):
        for task in (task for task in instruction.sums if task.kind == "sub"):
            less = Instruction(
                instruction.product,
                tuple(replace(t, offset_multiple=t.offset_multiple - (t is task)) for t in instruction.sums),
                instruction.advance,
            )
            with pytest.raises(
                UnsupportedError,
                match=f"loop instruction {k}: {task.offset_multiple - 1} p is added, but what is subtracted",
            ):
                program_bounds(replace(made, loop=(*made.loop[:k], less, *made.loop[k + 1 :])), contract)


@pytest.mark.parametrize("name", ["sor-1m-p", "sor-ring"])
def test_a_slot_machine_made_from_any_multiplier_agrees_number_for_number(name):
    """Numbers that leave the last product of a pass enter the next without a conversion to least residues."""
    fitted = design(name).fit(P, **({"n": 16} if name == "sor-1m-p" else {"operand": 64}))
    contract = fitted.contract("native")
    made = assemble(doubling(contract), contract, UNIT).program
    machine = SlotMachine(fitted.core("native"), contract, made)
    rnd = random.Random(2)
    for stall in (0, 0.5):
        offers, wanted = [], []
        for _ in range(2):
            point = {name: rnd.randrange(P) for name in "xyz"}
            offers += machine.offers(made, point)
            slots = {}

            def seen(where, result, slots=slots):
                slots[made.loop[where[1]].tasks[where[2]].destination.number] = result

            run(made, UNIT, contract, point, (), exact(fitted, contract), seen)
            wanted += [slots[slot] for slot, _ in made.results]
        trace = drive(machine, offers, out=["o_number"], want=len(wanted), stall=stall)
        assert [contract.operand.decode(port) for (port,) in trace.out] == wanted
