# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Full adders of words: found in a netlist, and nothing else for them; their sum and carry bits are right."""

import random
from math import prod

import pytest

from modmill.proofs.arithmetic.full_adders import with_full_adders
from modmill.proofs.arithmetic.integers import Integers
from modmill.proofs.arithmetic.polynomials import value
from modmill.proofs.arithmetic.word_rules import Words
from modmill.proofs.netlist import Netlist

SUM, CARRY = "i_a ^ i_b ^ c", "(i_a & i_b) | (i_a & c) | (i_b & c)"


def found(sums, carries):
    net = Netlist.read(
        "module core(input [7:0] i_a, input [7:0] i_b, input [7:0] c, input [7:0] d, output [7:0] s, output [8:0] t);\n"
        f"  assign s = {sums};\n  assign t = {{{carries}, 1'b0}};\nendmodule\n", "core",
    )  # fmt: skip
    used = frozenset(bit for port in ("s", "t") for bit in net.module["ports"][port]["bits"])
    return sorted(cell["type"] for cell in with_full_adders(net.cells, used).values())


@pytest.mark.parametrize("sums", [SUM, "i_a ^ (c ^ i_b)", "(c ^ i_a) ^ i_b"])
@pytest.mark.parametrize("carries", [CARRY, "(c & i_b) | ((i_a & i_b) | (c & i_a))"])
def test_a_full_adder_is_found(sums, carries):
    assert found(sums, carries) == ["$majority", "$xor3"]


@pytest.mark.parametrize(
    ("sums", "carries"),
    [
        ("i_a ^ i_b ^ d", CARRY), (SUM, "(i_a & i_b) | (i_a & c) | (i_b & d)"),
        (SUM, "(i_a & i_b) | (i_a & c) | (i_a & d)"),
        (SUM, "(i_a & i_b) | (i_a & c) | (i_b | c)"), (SUM, "(i_a & i_b) ^ (i_a & c) | (i_b & c)"),
    ],
)  # fmt: skip
def test_other_gates_are_none(sums, carries):
    """Planted: one other word, or one other gate."""
    types = found(sums, carries)
    assert "$xor3" not in types
    assert ("$majority" in types) == (carries == CARRY)


def numbers(words, known):
    """The values of all numbers that were made for bits of words, in the order in which they came."""

    def bit(b):
        return b if isinstance(b, int) else value(b[0], words.integers.atoms, known) >> b[1] & 1

    for (width, (function, keys)), number in words._functions.items():
        (atom,) = next(iter(number.terms))
        bits = [[bit(b) for b in key[1]] for key in keys]
        ones = [prod(some) if function == "all" else int(sum(some) >= 2) for some in bits]
        known[atom] = sum(one << k for k, one in enumerate(ones))
        assert len(ones) == width
    return bit


@pytest.mark.parametrize("seed", range(30))
def test_sum_and_carry_bits(seed):
    rnd, make = random.Random(seed), Integers()
    words = Words(make)
    first = [tuple((number, j) for j in range(8)) for number in (make.atom(f"w{k}", 0, 255) for k in range(3))]
    pool = [bit for word in first for bit in word]
    mixed = [
        tuple(rnd.choice([bit, bit, bit, bit, 0, 1, rnd.choice(pool)]) for bit in word) for word in (first + first)
    ]  # fmt: skip
    made = [(some, words.full_adder(some)) for some in (first, mixed[:3], mixed[3:])]
    again = [made[0][1][0], made[1][1][1], made[2][1][0]]
    made.append((again, words.full_adder(again)))
    for _ in range(20):
        known = {k: rnd.choice([0, 255, rnd.getrandbits(8)]) for k in range(3)}
        bit = numbers(words, known)
        for some, (sums, carries) in made:
            for k in range(8):
                assert sum(bit(word[k]) for word in some) == bit(sums[k]) + 2 * bit(carries[k])
        total = sum(value(words.integer(word), make.atoms, known) for word in again)
        sums, carries = (value(words.integer(word), make.atoms, known) for word in made[-1][1])
        assert total == sums + 2 * carries


def test_unknown_bits():
    words = Words(Integers())
    assert words.full_adder([(None, 1), (0, None), (0, 1)]) == ((None, None), (0, 1))
