# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Runs with unknown integers: they have the results of simulation, and tell a wrong mutant from one that is right."""

import random

import pytest

from modmill.cores.multiplier.build import build
from modmill.proofs.arithmetic.integers import Integers
from modmill.proofs.arithmetic.polynomials import value
from modmill.proofs.arithmetic.symbolic import Symbolic
from modmill.proofs.mutants.all_operands import AllOperands, schedules
from modmill.proofs.mutants.equivalence import Operands
from modmill.proofs.mutants.mutate import mutate
from modmill.proofs.netlist import Netlist

CORES = [
    ("montgomery-array", "2^61-1", {"loadable": False}), ("pseudo-mersenne", "2^61-1", {}), ("iddmm", "2^61-1", {}),
    ("wide", "2^61-1", {}), ("solinas", "2^17-1", {}),
]  # fmt: skip


@pytest.mark.parametrize("case", CORES, ids=lambda case: case[0])
def test_a_run_has_the_results_of_the_contract(case):
    """Product after product with other operands, from random control and unknown data. Not for designs with carry-save
    sums: those have no expressions."""
    design, modulus, settings = case
    core = build(design, modulus, "native", **settings)
    contract, net, make = core.contract, Netlist.read(core.verilog, core.top), Integers()
    ports = net.module["ports"]
    run = Symbolic(net, make)
    rnd = random.Random(1)
    run.begin(rnd)
    run.fill()
    accepted, known, results, offered, data = [], dict[int, int](), [], [], {}
    for cycle in range(-contract.power_up, 3 * contract.timing.latency + 20):
        run.ports = {"rst": (int(cycle < 0),), "i_valid": (1,), "o_ready": (1,)}
        for n in ("i_a", "i_b") if not offered else ():
            most = contract.largest_operand
            offered.append(rnd.choice([0, most, rnd.randint(0, most)]))
            known[len(make.atoms)] = offered[-1]
            atom = make.atom(n, 0, most)
            data[n] = tuple((atom, k) for k in range(len(ports[n]["bits"])))
        run.ports |= data
        run.settle()
        if cycle >= 0 and run.output("i_ready") == (1,):
            accepted.append(offered)
            offered = []
        if cycle >= 0 and run.output("o_valid") == (1,):
            results.append(run.words.integer(run.output("o_r")))
        run.clock()
        if len(results) == 2:
            break
    for number, atom in enumerate(make.atoms):
        if atom.inner is None:
            known.setdefault(number, rnd.randint(atom.low, atom.high))
    assert len(results) == 2
    for (a, b), result in zip(accepted[:2], results, strict=True):
        found = contract.result.decode(value(result, make.atoms, known))
        assert found % contract.p == contract.expect(contract.operand.decode(a), contract.operand.decode(b))


def test_a_mutant_is_alike_only_if_it_is_right():
    """The original is alike; most mutants are wrong, and are not."""
    core = build("wide", "251", "native")
    contract = core.contract
    mutated = mutate(core.verilog, core.top, 8, 1)
    runs = AllOperands(mutated, Operands(contract.largest_operand))
    at = contract.timing
    given = list(schedules(at.latency, at.interval, at.in_flight, contract.power_up))[1:3]
    assert all(runs.alike(0, schedule) for schedule in given)
    same = [number for number in range(1, 9) if all(runs.alike(number, schedule) for schedule in given)]
    assert len(same) < 4
