# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The check of kbe and hbe modulo 2^w: every single fault of a small machine, and faults planted in the RTL."""

import random
from collections import Counter
from itertools import product

import pytest

from marks import long
from modmill.designs.cox_rower.kbe import Params, RnsMontgomery
from modmill.designs.cox_rower.model import Model
from modmill.designs.cox_rower.operations import H, Value
from modmill.numbers.rns.base_pairs import deal, sufficiency
from modmill.numbers.rns.choice_of_moduli import choose_moduli


def machine(p, w, n, columns):
    """A checked machine with channels of few bits."""
    pair = deal(choose_moduli(w, 2 * n, even=False, avoid=p).moduli, columns)
    return RnsMontgomery(p, Params(pair, sufficiency(pair, p).require(), checked=True), {"interval": 0})


class Passing(Model):
    """The rowers ``wrong`` see ``word`` in place of the value ``place`` of the ring in one extension."""

    wrong, place, word, extension = frozenset(), 0, 0, 0

    def _turns(self, op, ring):
        if op.extension != self.extension:
            yield from super()._turns(op, ring)
            return
        shape, rows = self.shape, self.tables.rows(op)
        for step, value in enumerate(ring):
            seen = [self.word if step == self.place and i in self.wrong else value for i in shape.all_rowers]
            yield "multiplier", [x * rows[step][shape.channel(i, op.k)] for i, x in enumerate(seen)]


class Bench:
    """Products of a machine with one fault each."""

    def __init__(self, fitted):
        self.f, self.q, self.shape = fitted, fitted.params, fitted.params.shape
        self.tables, self.form = fitted.tables(), fitted.representation
        self.n, self.r = self.q.a.n, 1 << self.q.a.w
        self.top = fitted.contract("native").largest_operand
        self.compared = self.q.a.w

    def words(self, port):
        """The words of a number for each rower, over A and over B."""
        words = self.form.unpack(port)
        return [[words[self.shape.places(i)[side][0]] for i in self.shape.all_rowers] for side in (0, 1)]

    def run(self, x, y, fault=None, model=None):
        """(w, zeta) of all rowers of x y; x and y are words. ``fault(op, unit, number, made)`` may change what is
        made."""
        names = {"xa": x[0], "xb": x[1], "ya": y[0], "yb": y[1]}
        model, held = model or Model(self.shape, self.tables, self.q.cox), {}
        for op, unit, number, made in model.run({Value(k): list(v) for k, v in names.items()}):
            if fault:
                fault(op, unit, number, made)
            held[op.result.letter] = made
        return held["w"], held["zeta"]

    def values(self, x, y):
        """What each unit makes of each value in a product without a fault."""
        found = {}
        self.run(x, y, lambda op, unit, _number, made: found.update({(op.result.letter, unit): list(made)}))
        return found

    def outcome(self, x, y, found):
        """detected; right; over A: the words over A alone are wrong; missed: those over B or modulo 2^w."""
        w, zeta = found
        if (w[-1] ^ zeta[-1]) & (1 << self.compared) - 1:
            return "detected"
        over_b = self.q.b.from_gammas(zeta[: self.n])
        wanted = self.f.contract("native").expect(x, y)
        if over_b >= self.f.bounds[2] * self.f.p or over_b % self.f.p != wanted or over_b % self.r != zeta[-1]:
            return "missed"
        same = all(word % m == over_b % m for word, m in zip(w[: self.n], self.q.a.moduli, strict=True))
        return "right" if same else "over A"

    def others(self, word):
        return (x for x in range(self.r) if x != word)


LETTERS = ("s", "xi", "w~", "zeta", "w")


def flipped(letter, unit, i, word):
    """The fault that rower (or place of the ring) i makes ``word`` of a value."""

    def fault(op, at, _number, made):
        if op.result.letter == letter and at == unit:
            made[i] = word

    return fault


def single_faults(bench, x, y):
    """Yield (letter, rower, what a product makes) for every wrong word of every rower: operands, then results."""
    for letter, i in product(("xa", "xb", "ya", "yb"), bench.shape.all_rowers):
        number, side = (x, y)[letter[0] == "y"], letter[1] == "b"
        for word in bench.others(number[side][i]):
            wrong = [list(words) for words in number]
            wrong[side][i] = word
            yield letter, i, bench.run(*((wrong, y) if letter[0] == "x" else (x, wrong)))
    right = bench.values(x, y)
    for letter, i in product(LETTERS, bench.shape.all_rowers):
        for word in bench.others(right[letter, "fold"][i]):
            yield letter, i, bench.run(x, y, flipped(letter, "fold", i, word))


def ring_faults(bench, x, y, letter):
    """What a product makes, for every wrong number of a row in the ring."""
    right = bench.values(x, y)[letter, "ring"]
    for row, number in product(range(bench.shape.rows), range(1 << bench.shape.hat_bits)):
        if number != right[row]:
            yield bench.run(x, y, flipped(letter, "ring", row, number))


def passing_faults(bench, x, y, extension):
    """What a product makes, for every wrong word in the ring from each of its places on."""
    rowers = bench.shape.rowers
    ring = bench.values(x, y)[f"ring of {'-XZ'[extension]}", "ring"]
    for place, met in product(range(rowers), range(1, rowers)):
        wrong = {(place + k) % rowers for k in range(met, rowers)}
        wrong |= {rowers} if 0 in wrong else set()  # the rower of the check stands beside the first
        for word in bench.others(ring[place]):
            model = Passing(bench.shape, bench.tables, bench.q.cox)
            vars(model).update(wrong=wrong, place=place, word=word, extension=extension)
            yield bench.run(x, y, model=model)


def products_of(bench, count):
    """Operands as numbers and as words, the largest first."""
    rnd = random.Random(1)
    for k in range(count):
        numbers = [bench.top if k == 0 else rnd.randrange(bench.top + 1) for _ in "xy"]
        yield numbers, [bench.words(bench.form.any(number, rnd)) for number in numbers]


SMALL = [(251, 6, 2, 1), (97, 5, 2, 1), (251, 6, 2, 2)]
"""p, w, n, and columns: 1 for KBE, 2 for HBE."""


@pytest.mark.parametrize("small", [*SMALL, long((251, 6, 3, 1))])
def test_every_single_fault_is_found_or_does_no_harm(small):
    """A wrong word of one rower, at any step, is found; if it is only in the result over A, by the next product."""
    bench = Bench(machine(*small))
    found = Counter()
    for (x, y), words in products_of(bench, 2):
        assert bench.outcome(x, y, bench.run(*words)) == "right"
        for letter, i, made in single_faults(bench, *words):
            outcome = bench.outcome(x, y, made)
            found[letter, outcome] += 1
            if outcome == "over A":
                assert letter == "w" and i < bench.shape.rowers
                *_, (other, factor) = products_of(bench, 2)
                z = bench.q.b.from_gammas(made[1][: bench.n])
                later = bench.outcome(z, other[1], bench.run(made, factor[1]))
                assert later in ("detected", "right")
                found["next", later] += 1
    assert not [key for key in found if key[1] == "missed"]
    assert all(found[letter, "detected"] > 100 for letter in ("xa", "xb", "ya", "yb", *LETTERS[:4], "next"))
    assert found["w", "over A"] == found["next", "detected"] + found["next", "right"] > 100


@pytest.mark.parametrize("small", SMALL)
def test_every_wrong_h_is_found(small):
    bench = Bench(machine(*small))
    for (x, y), words in products_of(bench, 4):
        right = bench.values(*words)[H.letter, "cox"][0]
        for h in range(bench.r):
            wanted = "right" if h == right else "detected"
            assert bench.outcome(x, y, bench.run(*words, flipped(H.letter, "cox", 0, h))) == wanted


def counted(bench, faults):
    """Outcomes of ``faults(bench, x, y, ...)`` for two products."""
    return Counter(
        bench.outcome(x, y, made) for (x, y), words in products_of(bench, 2) for made in faults(*words)
    )  # fmt: skip


@pytest.mark.parametrize("small", [*SMALL[:-1], long(SMALL[-1])])
def test_faults_in_the_ring(small):
    """A number that changes when it enters the ring: always found for KBE. A row of HBE has more than w bits: about one
    in 2^w is missed in the first extension, and in the second one what changes only higher bits makes w wrong."""
    bench = Bench(machine(*small))
    first, second = (
        counted(bench, lambda x, y, letter=letter: ring_faults(bench, x, y, letter))
        for letter in ("ring of X", "ring of Z")
    )
    assert second["missed"] == first["over A"] == 0 and min(first["detected"], second["detected"]) > 100
    if bench.shape.loop:
        assert first["missed"] == second["over A"] == 0
    else:
        assert 0 < first["missed"] * bench.r < 2 * first.total() and second["over A"] > 0


@pytest.mark.parametrize("small", SMALL[:2])
def test_faults_on_the_way_in_the_ring(small):
    """Several channels take a wrong word: about one fault in 2^w is missed. In the second extension over A alone."""
    bench = Bench(machine(*small))
    first, second = (counted(bench, lambda x, y, e=e: passing_faults(bench, x, y, e)) for e in (1, 2))
    assert first["missed"] * bench.r < 2 * first.total() and first["detected"] > 100
    assert second["missed"] == 0 < second["over A"]


def test_a_smaller_redundant_modulus_misses_faults():
    """The planted fault: the comparison sees a bit less, so the redundant modulus is below the channels' moduli. And
    without a comparison every fault that does harm is missed."""
    bench = Bench(machine(*SMALL[0]))
    (_, words), *_ = products_of(bench, 1)
    for bits, least in ((5, 1), (0, 1000)):
        bench.compared = bits
        (x, y), *_ = (numbers for numbers, _ in products_of(bench, 1))
        outcomes = Counter(bench.outcome(x, y, made) for _, _, made in single_faults(bench, *words))
        assert outcomes["missed"] >= least, bits
