# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Faults while an engine runs: each kind has the outcome that follows from the text of a small engine."""

import re
from collections import Counter
from dataclasses import replace
from itertools import product

import pytest
from toy import ANSWERS, GIVES, TOP, TOY, UNCHECKED, WORDS

from modmill.flow.tools import ToolError
from modmill.studies.attack import faults, state
from modmill.studies.attack.faults import Attacked, Fault
from modmill.studies.attack.state import named

FIRST = 1 + GIVES
"""Cycle in which the first word is given: it is accepted in cycle 1, the first in which one is offered."""


@pytest.fixture(scope="module")
def checked():
    return Attacked(TOY, TOP, WORDS, len(WORDS), 100, alarm="o_alarm")


@pytest.fixture(scope="module")
def unchecked():
    return Attacked(UNCHECKED, TOP, WORDS, len(WORDS), 100, alarm="o_alarm")


def fault(attacked, kind, name, bit, cycle, word=0):
    """The fault in the register that has this bit of a register of the source."""
    (found,) = [
        k for k, each in enumerate(attacked.places) if each.name == name and each.low <= bit < each.low + each.width
    ]
    return Fault(kind, found, word, bit - attacked.places[found].low, cycle)


def outcome(attacked, kind, name, bit, cycle, word=0):
    with attacked.runner() as runner:
        return runner.run([fault(attacked, kind, name, bit, cycle, word)])[0]


def test_every_register_and_memory_of_the_text_belongs_to_it(checked):
    found = Counter(
        (each.name, word, each.low + bit)
        for each in checked.places
        for word in range(each.words)
        for bit in range(each.width)
    )
    declared = re.findall(r"^  reg \[(\d+):0\] (\w+)(?: \[0:(\d+)\])?;", TOY, re.MULTILINE)
    assert len(declared) == 3
    bits = (
        (name, word, bit)
        for high, name, depth in declared
        for word in range(1 + int(depth or 0))
        for bit in range(1 + int(high))
    )
    assert found == Counter(bits)
    assert [each.name for each in checked.places if each.memory] == ["store"]


def test_the_answer_without_a_fault(checked):
    assert checked.answer == list(ANSWERS)
    assert checked.cycles > 2 * FIRST


@pytest.mark.parametrize(
    ("kind", "name", "bit", "word", "cycle", "found", "unfound"),
    [
        ("flip", "word", 3, 0, 9, "detected", "released"),
        ("flip", "store", 3, 2, 9, "detected", "released"),
        ("flip", "store", 3, 1, 9, "no effect", "no effect"),  # a word that nothing reads
        ("flip", "word", 3, 0, 0, "no effect", "no effect"),  # written over in the next cycle
        ("flip", "word", 15, 0, 9, "detected", "released"),
        ("flip", "count", 4, 0, 5, "no effect", "no effect"),  # 4 becomes 20: the answer is right, and early
        ("flip", "count", 0, 0, FIRST + 1, "released", "released"),  # 0 becomes 1: the old answer again
        ("skip", "word", 0, 0, 0, "detected", "released"),  # the word is never taken
        ("skip", "count", 0, 0, 9, "no effect", "no effect"),  # a cycle later
        ("stuck at 0", "count", 2, 0, 9, "withheld", "withheld"),  # 20 is never reached
        ("stuck at 1", "word", 3, 0, 9, "detected", "released"),
        ("stuck at 1", "word", 4, 0, 9, "no effect", "no effect"),  # both words have this bit
    ],
)
def test_each_kind_has_its_outcome(checked, unchecked, kind, name, bit, word, cycle, found, unfound):
    assert outcome(checked, kind, name, bit, cycle, word) == found
    assert outcome(unchecked, kind, name, bit, cycle, word) == unfound


@pytest.mark.long
@pytest.mark.parametrize(("given", "found"), [("16'h0", "detected"), ("16'h1", "released")])
def test_a_word_0_beside_an_alarm_is_no_result(given, found):
    text = TOY.replace(" && !o_alarm", "").replace("else if (o_alarm) count <= count;", "")
    text = text.replace("o_data = word", f"o_data = o_alarm ? {given} : word")
    attacked = Attacked(text, TOP, WORDS, len(WORDS), 100, alarm="o_alarm")
    assert outcome(attacked, "flip", "word", 3, FIRST + 9) == found  # in the last word: this alarm ends with it


def test_faults_do_not_depend_on_those_before_them(unchecked):
    some = [fault(unchecked, "flip", "word", bit, cycle) for cycle in (30, 9, 0, 15) for bit in (0, 15)]
    with unchecked.runner() as runner:
        found = runner.run(some)
        assert runner.run(some[::-1]) == found[::-1]
    assert {"no effect", "released"} == set(found)


def every(attacked):
    """Every flip, stuck bit and skip in every cycle."""
    kinds = ("flip", "stuck at 0", "stuck at 1")
    for k, place in enumerate(attacked.places):
        for cycle in range(attacked.cycles):
            yield Fault("skip", k, 0, 0, cycle)
            bits = product(kinds, range(place.words), range(place.width))
            yield from (Fault(kind, k, word, bit, cycle) for kind, word, bit in bits)


def differing(attacked):
    """Number of all faults that have another outcome if cycles are left out."""
    found = []
    for jumps in (False, True):
        with attacked.runner(jumps=jumps) as runner:
            found.append(runner.run(list(every(attacked))))
    return sum(one != other for one, other in zip(*found, strict=True))


@pytest.mark.parametrize("snapshots", [512, 7])
def test_cycles_that_are_left_out_change_no_outcome(checked, unchecked, monkeypatch, snapshots):
    monkeypatch.setattr(faults, "_SNAPSHOTS", snapshots)
    assert all(place.ports for place in checked.places if place.memory)
    assert differing(checked) == differing(unchecked) == 0


@pytest.mark.parametrize("port", [0, 1])
def test_a_port_that_is_not_watched_changes_outcomes(monkeypatch, port):
    def without(*args, **options):
        text, places = named(*args, **options)
        return text, [replace(place, ports=place.ports[:port] + place.ports[port + 1 :]) for place in places]

    monkeypatch.setattr(faults, "named", without)
    text = UNCHECKED.replace("word + store[2]", f"word + store[count == {GIVES} ? 2 : 0]")  # read after it is written
    attacked = Attacked(text, TOP, WORDS, len(WORDS), 100, alarm="o_alarm")
    assert [len(place.ports) for place in attacked.places if place.memory] == [1]
    assert differing(attacked) > 0


def test_a_register_that_the_list_lacks_is_noticed(monkeypatch):
    monkeypatch.setattr(state, "REGISTERS", state.REGISTERS - {"$dffe"})
    with pytest.raises(ToolError, match=r"the netlist has [34] registers and memories, the campaign [23]$"):
        named(TOY, TOP)


def test_an_engine_that_does_not_answer_is_refused():
    with pytest.raises(ToolError, match="2 of 3 words of an answer without a fault"):
        Attacked(TOY, TOP, WORDS, 3, 100, alarm="o_alarm")
