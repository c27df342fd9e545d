# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Products are proved of cores that read multiples of the modulus in tables; with a wrong word, or a carry lost, they
are not."""

import copy
import json
from io import StringIO

import pytest

from marks import long
from modmill.numbers.redundant_digits import TABLE, Montgomery
from modmill.proofs.arithmetic.certificate import VERSION, netlist_digest
from modmill.proofs.arithmetic.integers import Integers
from modmill.proofs.arithmetic.polynomials import value
from modmill.proofs.arithmetic.products import prove_products, starts
from modmill.proofs.arithmetic.tables import form_of, has_form
from modmill.proofs.arithmetic.word_rules import Words
from modmill.proofs.netlist import Netlist

from test_native_sums import refused  # isort: skip
from test_residue_products import read  # isort: skip

P = 65521
SMALL = ("radix64k-table", str(P), {"r": 4, "redundant": False})
HALVES = ("radix64k-ram", "2^31-1", {})
CORES = [
    SMALL, HALVES, ("radix64k-table", "2^31-1", {}), ("radix64k-table", "2^31-1", {"loadable": True, "r": 4}),
    ("radix64k-ram", str(P), {"loadable": True, "redundant": False}), ("radix64k-ram", "2^31-1", {"lookups": 2}),
    ("radix64k-ram", "2^31-1", {"feedback": True}),
    ("radix64k-table", "2^31-1", {"feedback": True, "redundant": False}),
    *(long(case) for case in (
        ("radix64k-table", "2^61-1", {}), ("radix64k-ram", "2^61-1", {}),
        *((design, p, {"redundant": False}) for design in ("radix64k-table", "radix64k-ram")
          for p in ("secp256k1", "P-256")),
    )),
]  # fmt: skip


def proved(case):
    """The claim, the netlist, the last run, and the lines of its certificate."""
    _, claim, net = read(*case)
    some, certificate = starts(net, claim)[-1:], StringIO()
    proof = prove_products(net, claim, certificate=certificate, some=some)
    assert proof.state == "PROVED", proof.open
    return claim, net, some, certificate.getvalue().splitlines()


@pytest.mark.parametrize("case", CORES, ids=lambda case: "-".join([*case[:2], *case[2]]))
def test_products_are_proved(case):
    claim, net, some, lines = proved(case)
    assert not refused(net, claim, lines, some)
    assert any(line.startswith('["choice","table",') and not line.endswith("null,[]]") for line in lines)


@pytest.mark.parametrize(("low", "width"), [(0, 18), (3, 5), (8, 12), (0, 20)])
def test_a_word_is_a_function_of_its_address(low, width):
    """What the rule gives is the word for every address, for a column of a table and for all of it; with one bit of
    one word changed nothing is said of the words."""
    words = [word >> low & (1 << width) - 1 for word in Montgomery(P, 4, TABLE, 2, least=2).words(4)]
    form = form_of(words, width, P)
    assert form and has_form(words, width, form)
    make = Integers()
    rules = Words(make)
    rules.modulus = P
    address = rules.word(make.atom("z", 0, 15), 4)
    found = rules.looked_up(0, address, [rules.word(make.number(word), width) for word in words], 0)
    for z, word in enumerate(words):
        assert sum((value(x, make.atoms, {0: z}) >> k & 1) << at for at, (x, k) in enumerate(found)) == word
    for z in range(16):
        for k in range(width):
            wrong = [*words[:z], words[z] ^ 1 << k, *words[z + 1 :]]
            assert form_of(wrong, width, P) is None
            assert not has_form(wrong, width, form)


def tables(net):
    """Names of the memories that have words at power-up."""
    return [n for n, c in net.cells.items() if c["type"] == "$mem_v2" and set(c["parameters"]["INIT"]) <= {"0", "1"}]


def with_wrong_word(net, name, at):
    """The netlist with the lowest bit of a word of a memory changed."""
    made = copy.deepcopy(net)
    parameters = made.cells[name]["parameters"]
    init, place = parameters["INIT"], len(parameters["INIT"]) - 1 - at * int(parameters["WIDTH"], 2)
    parameters["INIT"] = f"{init[:place]}{1 - int(init[place])}{init[place + 1 :]}"
    return made


@pytest.mark.parametrize("case", [long(SMALL), HALVES], ids=lambda case: case[0])
def test_a_wrong_word_is_not_proved(case):
    """Neither is it with the certificate of the right table for the netlist with a wrong one."""
    claim, net, some, lines = proved(case)
    _, _, _, *rest = json.loads(lines[0])
    for name in tables(net):
        for at in (0, 1, int(net.cells[name]["parameters"]["SIZE"], 2) - 1):
            wrong = with_wrong_word(net, name, at)
            assert prove_products(wrong, claim, some=some).state == "OPEN"
            head = json.dumps(["products", VERSION, netlist_digest(wrong), *rest])
            assert refused(wrong, claim, [head, *lines[1:]], some)
    assert tables(net)


def test_a_table_of_another_modulus_is_not_proved():
    _, claim, net = read(*SMALL)
    _, _, other = read(SMALL[0], str(P - 2), SMALL[2])
    for name in tables(net):
        made = copy.deepcopy(net)
        assert made.cells[name]["parameters"]["INIT"] != other.cells[name]["parameters"]["INIT"]
        made.cells[name]["parameters"]["INIT"] = other.cells[name]["parameters"]["INIT"]
        assert prove_products(made, claim, some=starts(net, claim)[:1]).state == "OPEN"


def test_a_changed_form_is_refused():
    """With another factor, multiple or shift, or without a form."""
    claim, net, some, lines = proved(SMALL)
    k = next(k for k, line in enumerate(lines) if line.startswith('["choice","table",'))
    *first, form, facts = json.loads(lines[k])
    others = [[*form[:n], form[n] + by, *form[n + 1 :]] for n in range(3) for by in (-1, 1)]
    for other in (*others, None, [], form[:2], [*form, 0], "form", [*form[:2], "0"]):
        assert refused(net, claim, [*lines[:k], json.dumps([*first, other, facts]), *lines[k + 1 :]], some)


@pytest.mark.parametrize(
    ("case", "right", "wrong"),
    [
        (SMALL, "|seen", "&seen"), (HALVES, "|seen[7:0]", "&seen[7:0]"), (HALVES, "first ? 1'h0 : seen[8]", "1'h0"),
        (HALVES, "(|seen[7:0]) + seen[8]", "(|seen[7:0])"),
    ],
)  # fmt: skip
def test_a_lost_carry_is_not_proved(case, right, wrong):
    core, claim, _ = read(*case)
    assert right in core.verilog
    net = Netlist.read(core.verilog.replace(right, wrong), core.top)
    assert prove_products(net, claim, some=starts(net, claim)[:1]).state == "OPEN"
