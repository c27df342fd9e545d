# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The redundant radix-2^r designs beyond what every design is tested for: other settings, loading, counts, refusals."""

import re

import pytest
from bench import first_difference, operands, run

import modmill
from components import run_bench
from marks import long
from modmill.contract import Binary, Digits, UnsupportedError
from modmill.designs import design
from modmill.numbers.moduli import parse_modulus
from modmill.proofs.handshake.constant_time import constant_time
from modmill.proofs.netlist import Netlist

NAMES = ["radix64k-mul", "radix64k-ram", "radix64k-table"]
TOYS = [3, 97, 2**61 - 1, 2**64 - 59]


def judge(fitted, contract, pairs, results):
    for (a, b), (r, seen, latency) in zip(pairs, results, strict=True):
        if contract.io == "native":
            trace = list(fitted.trace(a, b))
            assert seen.keys() == {step.name for step in fitted.schedule.steps}
            assert first_difference(trace, seen) == "" and trace[-1][1] == r
        x, y, z = contract.operand.decode(a), contract.operand.decode(b), contract.result.decode(r)
        assert z % contract.p == contract.expect(x, y) and z < contract.result_bound * contract.p
        assert latency == contract.timing.latency


def judge_both(fitted):
    """The native core step by step, the binary one by its results."""
    p = fitted.p
    contract = fitted.contract("native")
    pairs = operands(contract, 6) + fitted.corners()[::5]
    judge(fitted, contract, pairs, run(fitted.component(), pairs))
    contract = fitted.contract("montgomery")
    pairs = [(0, p - 1), (p - 1, p - 1), (1, 1), *operands(contract, 4)]
    judge(fitted, contract, pairs, run(fitted.core("montgomery"), pairs))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("p", TOYS)
@pytest.mark.parametrize("settings", [{"redundant": False}, {"operand": 5}, {"redundant": False, "operand": 4}])
def test_other_settings(name, p, settings):
    judge_both(design(name).fit(p, **settings))


FORMS = [
    {"feedback": True}, {"feedback": True, "redundant": False}, {"feedback": True, "r": 8},
    {"redundant": False, "tile": 17}, {"redundant": False, "tile": 18, "feedback": True, "chain": 8},
    {"redundant": False, "chain": 9},
]  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "p", "name"),
    [
        (long if (i + j + k) % 4 else pytest.param)(settings, p, name)
        for i, settings in enumerate(FORMS)
        for j, p in enumerate([*TOYS, 15, 251, 65521])
        for k, name in enumerate(NAMES)
    ],
    ids=str,
)
def test_feedback_tile_and_chain(name, p, settings):
    judge_both(design(name).fit(p, **settings))


@pytest.mark.parametrize(("bits", "d"), [(64, 4), (128, 8), (256, 16), (512, 32), (1024, 64)])
@pytest.mark.parametrize("redundant", [True, False])
def test_counts_with_feedback(bits, d, redundant):
    """d + 1 cycles from the operands of a product to those of the next, as in Theorem 11; with digits of 17 bits the
    multipliers of the paper's non-redundant form."""
    mul, ram = (
        design(name).fit((1 << bits) - 1, feedback=True, redundant=redundant, tile=0 if redundant else 17)
        for name in NAMES[:2]
    )
    for fitted in (mul, ram):
        assert fitted.schedule.latency - 1 == d + 1 and fitted.contract("native").closed
    assert (mul.schedule.interval, ram.schedule.interval) == (d, d + 1)
    pieces = -(-(bits + 1) // 17)  # of X < 2 M; the paper's X is below M
    assert ram.cost.dsp == (d if redundant else pieces)
    assert mul.cost.dsp == (2 * d + 1 if redundant else pieces + -(-bits // 17) + 1)


def test_chains_are_cut():
    """No adder of the emitted core with chain=8 is wider than a piece; without, one is as wide as the numbers."""

    def widest(**settings):
        text = modmill.build("radix64k-ram", 2**64 - 59, "montgomery", redundant=False, **settings).verilog
        bits = {name: int(high) for high, name in re.findall(r"(?:wire|reg) \[(\d+):0\] (\S+);", text)}
        return max(bits.get(name, 0) for name in re.findall(r"(\S+) (?:<?=) [^?:\n]* [+-] [^?:\n]*;", text))

    assert widest(chain=8) < 24 <= 64 <= widest()


@pytest.mark.parametrize(("name", "lookups"), [("radix64k-ram", 2), ("radix64k-ram", 3), ("radix64k-table", 2)])
@pytest.mark.parametrize("redundant", [True, False])
def test_z_made_more_than_once(name, lookups, redundant):
    """The same digits in the same cycles; the shares of the table are read through their own addresses."""
    p = 2**64 - 59
    once, fitted = (design(name).fit(p, lookups=k, redundant=redundant) for k in (1, lookups))
    assert fitted.cost.dsp == once.cost.dsp + lookups - 1
    assert fitted.cost.memory_bits > once.cost.memory_bits and fitted.schedule == once.schedule
    judge_both(fitted)


def test_lookups_stay_apart_in_synthesis():
    """Equal registers are not merged into one of high fan-out: their modules keep their borders."""
    for io in ("native", "montgomery"):
        found = [
            re.findall(r"^\(\* keep_hierarchy \*\)\nmodule \w*lookup", core.verilog, re.MULTILINE)
            for core in (modmill.build("radix64k-ram", 2**64 - 59, io, lookups=k) for k in (1, 3))
        ]
        assert list(map(bool, found)) == [False, True]


@pytest.mark.parametrize(
    ("name", "r"),
    [(n, r) for n in NAMES[:2] for r in (8, 10, 12, 14)] + [("radix64k-mul", 4), ("radix64k-mul", 5)]
    + [("radix64k-table", r) for r in (4, 5, 10)],
)  # fmt: skip
def test_other_radices(name, r):
    fitted = design(name).fit(2**89 - 1, r=r)
    contract = fitted.contract("native")
    pairs = operands(contract, 4) + fitted.corners()[::9]
    judge(fitted, contract, pairs, run(fitted.component(), pairs))


@pytest.mark.parametrize("name", NAMES)
def test_a_chain_of_results_as_they_stand(name):
    """Digits go in again as they came out, 200 times."""
    fitted = design(name).fit(2**64 - 59)
    contract = fitted.contract("native")
    port = contract.operand.encode(contract.largest_operand)
    number = contract.largest_operand
    for _ in range(200):
        *_, (_, port) = fitted.trace(port, port)
        number = number * number * fitted.factor % fitted.p
        assert contract.operand.decode(port) % fitted.p == number
        assert contract.operand.decode(port) <= contract.largest_operand


@pytest.mark.parametrize(("bits", "d"), [(64, 4), (128, 8), (256, 16), (512, 32), (1024, 64), (2048, 128), (4096, 256)])
def test_counts_of_the_paper(bits, d):
    """2 d + 1 multipliers (Theorem 9); d, and a table of 2^(r/2) words of d r bits (Theorem 10); d + 1 iterations."""
    p = 2**bits - 105
    mul, ram = (design(name).fit(p) for name in NAMES[:2])
    assert mul.cost.dsp == 2 * d + 1 and ram.cost.dsp == d
    assert ram.shape.table_bits == 8 and ram.shape.bits == d * 16
    assert mul.shape.m.n == ram.shape.m.n == d + 1
    assert mul.schedule.interval == d + 1 and ram.schedule.interval == d + 2
    assert mul.schedule.latency == d + 3 and ram.schedule.latency == d + 4
    for fitted in (mul, ram):
        assert fitted.contract("native").closed


def test_ports():
    fitted = design("radix64k-mul").fit(2**256 - 189)
    assert fitted.representation == Digits(16, 16) and fitted.representation.width == 288
    assert design("radix64k-mul").fit(2**256 - 189, redundant=False).representation == Binary(257)
    assert fitted.contract("montgomery").operand == Binary(256)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("radix64k-table", {"r": 16}, "r takes a whole number from 4 to 10, not 16"),
        ("radix64k-ram", {"r": 9}, "even r from 8 to 16, not 9"),
        ("radix64k-ram", {"r": 6}, "r takes a whole number from 8 to 16, not 6"),
        ("radix64k-mul", {"r": 17}, "r takes a whole number from 4 to 16, not 17"),
        ("radix64k-ram", {"lookups": 16}, "lookups takes 1 to 15 .*, not 16: one for each block RAM"),
        ("radix64k-mul", {"operand": 1}, "operand takes a whole number from 2 to 65536, not 1"),
        ("radix64k-ram", {"operand": 3, "feedback": True}, "operand takes 2 to 2 .*, not 3: 2 with feedback"),
        ("radix64k-ram", {"tile": 17}, "tile takes only 0 .*, not 17: only without redundancy"),
        ("radix64k-mul", {"tile": 15, "redundant": False}, "tile takes 0 or 16 to 18 .*, not 15"),
        ("radix64k-mul", {"tile": 16, "redundant": False, "feedback": True}, "tile takes 0 or 17 to 18 .*, not 16"),
        ("radix64k-mul", {"chain": 7, "redundant": False}, "chain takes 0 or 8 to 264 .*, not 7"),
    ],
)
def test_refusals(name, settings, message):
    with pytest.raises(UnsupportedError, match=message):
        design(name).fit(parse_modulus("P-256").value, **settings)


# ---------------------------------------------------------------------------------------------- loaded


def load_and_run(core, loads):
    """For each (words, pairs): cycles until operands are accepted, and the results."""
    out = []

    async def bench(ctx):
        ctx.set(core.o_ready, 1)
        for words, pairs in loads:
            ctx.set(core.i_valid, 1)  # offered all the time: a barrier must hold them back
            ctx.set(core.i_a, pairs[0][0])
            ctx.set(core.i_b, pairs[0][1])
            cycles = 0
            for word in words:
                ctx.set(core.k_valid, 1)
                ctx.set(core.k_m, word)
                while not ctx.get(core.k_ready):
                    assert not ctx.get(core.i_ready)
                    await ctx.tick()
                assert not ctx.get(core.i_ready)
                await ctx.tick()
                cycles += 1
            ctx.set(core.k_valid, 0)
            results = []
            for k, (a, b) in enumerate(pairs):
                ctx.set(core.i_a, a)
                ctx.set(core.i_b, b)
                ctx.set(core.i_valid, 1)
                while not ctx.get(core.i_ready):
                    await ctx.tick()
                    cycles += k == 0
                await ctx.tick()
                ctx.set(core.i_valid, 0)
                while not ctx.get(core.o_valid):
                    await ctx.tick()
                results.append(ctx.get(core.o_r))
                await ctx.tick()
            out.append((cycles, results))

    run_bench(core, bench)
    return out


@pytest.mark.parametrize(
    ("name", "settings"),
    [*((n, {}) for n in NAMES), ("radix64k-ram", {"lookups": 2}), *((n, {"feedback": True}) for n in NAMES)],
)
@pytest.mark.parametrize("redundant", [True, False])
@pytest.mark.parametrize("io", ["native", "montgomery"])
def test_moduli_loaded_one_after_another(name, settings, redundant, io):
    fitted = design(name).fit(2**40 - 87, redundant=redundant, loadable=True, r=8, **settings)
    turns = [fitted, *fitted.others(), fitted.at(97), fitted]
    assert {f.p for f in turns} >= {3, 97, 2**40 - 1, 2**39 + 1}
    loads, contracts = [], []
    for k, f in enumerate(turns):
        contract = f.contract(io)
        contracts.append(contract)
        loads.append((contract.load.words, operands(contract, 4, seed=k)))
    found = load_and_run(fitted.core(io), loads)
    for contract, (_, pairs), (cycles, results) in zip(contracts, loads, found, strict=True):
        assert cycles == contract.load.cycles
        for (a, b), r in zip(pairs, results, strict=True):
            z = contract.result.decode(r)
            expected = contract.expect(contract.operand.decode(a), contract.operand.decode(b))
            assert z % contract.p == expected and z < contract.result_bound * contract.p


def test_a_modulus_that_does_not_fit_is_refused():
    fitted = design("radix64k-mul").fit(97, loadable=True)
    for p in (1, 96, 129):
        with pytest.raises(UnsupportedError, match=rf"odd, at least 3 and below 2\^7, got {p}"):
            fitted.at(p)
    with pytest.raises(UnsupportedError, match="built in"):
        design("radix64k-mul").fit(97).at(99)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("io", "redundant"), [("native", True), ("montgomery", True), ("montgomery", False)])
@pytest.mark.parametrize("feedback", [False, True])
def test_nothing_of_operands_or_modulus_reaches_the_handshake(name, io, redundant, feedback):
    core = modmill.build(name, 2**24 - 3, io, r=8, redundant=redundant, loadable=True, feedback=feedback)
    found = constant_time(Netlist.read(core.verilog, core.top))
    assert {"i_a", "i_b", "k_m"} <= {*found.data} and {"i_ready", "o_valid", "k_ready"} == {*found.handshake}
    assert found.path == ()
