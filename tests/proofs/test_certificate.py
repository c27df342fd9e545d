# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Certificates of products are accepted as they were written; corrupted ones are refused, each with its line."""

import ast
import json
import sys
from copy import deepcopy
from hashlib import sha256
from io import StringIO
from pathlib import Path

import pytest

import modmill
from modmill.cores.multiplier.build import RECORD, build
from modmill.cores.multiplier.check import proof_differences, record_differences, text_differences
from modmill.cores.multiplier.folder import Folder
from modmill.cores.proofs.proof import prove, recheck
from modmill.proofs.arithmetic.full_adders import _Adders
from modmill.proofs.arithmetic.products import prove_products, starts
from modmill.proofs.checker.circuit import _Gates
from modmill.proofs.checker.recheck import RefusedError
from modmill.proofs.checker.replay import check_runs
from modmill.proofs.netlist import Netlist
from modmill.report.seal import seal_differences

from test_products import claim_of  # isort: skip

CHECKER = ("recheck", "cell_rules", "circuit", "replay", "residues")


def certificate(design, modulus, count):
    """Netlist, claim, lines and runs of the first runs of a proof."""
    core = build(design, modulus, "native")
    claim, net = claim_of(core), Netlist.read(core.verilog, core.top)
    some = starts(net, claim)[:count]
    text = StringIO()
    assert prove_products(net, claim, certificate=text, some=some).state == "PROVED"
    return net.module, claim.describe(), text.getvalue().splitlines(), [(start.phase, start.full) for start in some]


@pytest.fixture(scope="module")
def mcivor():
    return certificate("mcivor", "13", 1)


@pytest.fixture(scope="module")
def iddmm():
    return certificate("iddmm", "2^13-1", 1)


def refused(case, lines=None, module=None, claim=None):
    """Why the checker refuses; empty if it accepts."""
    try:
        check_runs(module or case[0], claim or case[1], lines or case[2], case[3])
    except RefusedError as error:
        return str(error)
    return ""


def changed(line, place, change):
    """A line with another number at a place."""
    parts = json.loads(line)
    inner = parts
    for k in place[:-1]:
        inner = inner[k]
    inner[place[-1]] = change(inner[place[-1]])
    return json.dumps(parts)


def spread(items, count):
    """At most so many of them, all parts of the certificate included."""
    return items[:: max(1, len(items) // count)][:count]


def of_kind(lines, *kinds):
    return [k for k, line in enumerate(lines) if json.loads(line)[0] in kinds]


def corruptions(lines, count):
    """(what, lines): at most ``count`` of each kind of fault."""

    def with_line(k, *new):
        return [*lines[:k], *new, *lines[k + 1 :]]

    def up(x):
        return x + 1

    for k in spread(of_kind(lines, "terms"), count):
        terms = json.loads(lines[k])
        yield f"coefficient in {k}", with_line(k, changed(lines[k], (1, 0), up))
        yield f"term lost in {k}", with_line(k, json.dumps(terms[:-1]))
        if len(terms[-1]) > 1:
            yield f"other atom in {k}", with_line(k, changed(lines[k], (len(terms) - 1, -1), lambda a: a ^ 1))
    for k in spread(of_kind(lines, "sum", "split", "product", "given", "floor", "cut", "atom", "choice"), 2 * count):
        yield f"{json.loads(lines[k])[0]} {k} lost", with_line(k)
    for k in spread(of_kind(lines, "cut"), count):
        yield f"floor of fewer bits in {k}", with_line(k, changed(lines[k], (3,), lambda bits: bits - 1))
        yield f"floor of more bits in {k}", with_line(k, changed(lines[k], (3,), up))
    for k, other in zip(of_kind(lines, "cut"), of_kind(lines, "cut")[1:count], strict=False):
        one, two = json.loads(lines[k]), json.loads(lines[other])
        one[1], two[1] = two[1], one[1]
        swapped = list(lines)
        swapped[k], swapped[other] = json.dumps(one), json.dumps(two)
        yield f"atoms of {k} and {other} swapped", swapped
    for k in spread(of_kind(lines, "floor"), count):
        yield f"floor {k} of other bits", with_line(k, changed(lines[k], (2,), up))
        yield f"floor {k} of another word", with_line(k, changed(lines[k], (1,), lambda x: max(x - 1, 0) or x + 1))
    for k in spread(of_kind(lines, "product"), count):
        for bound in (-1, -2):
            yield f"product {k} narrowed", with_line(k, changed(lines[k], (3,), lambda x: x + 8 * bound))  # noqa: B023
    for k in spread(of_kind(lines, "sum"), count):
        yield f"scale of {k}", with_line(k, changed(lines[k], (4,), lambda x: -x))
        yield f"end of {k} narrowed", with_line(k, changed(lines[k], (3,), lambda x: x - (1 << 70)))
        if json.loads(lines[k])[5]:
            yield f"factor in {k}", with_line(k, changed(lines[k], (5, 0, 0), lambda x: -x))
            yield f"fact in {k}", with_line(k, changed(lines[k], (5, 0, 1), lambda _: 10**6))
    for k in of_kind(lines, "given")[:count]:
        yield f"given {k} narrowed", with_line(k, changed(lines[k], (3,), lambda x: x - 1))
    for k in of_kind(lines, "atom")[:count]:
        yield f"atom {k} widened", with_line(k, changed(lines[k], (3,), up))
        yield f"atom {k} narrowed", with_line(k, changed(lines[k], (3,), lambda x: x - 1))
    *idle, end = of_kind(lines, "end")
    for k in idle:
        yield "no end of an interval", with_line(k)
    for place in ((1,), (2,)):
        yield "other end", with_line(end, changed(lines[end], place, lambda _: 0))
    yield "no end", lines[:end]
    yield "line after the end", [*lines, '["terms"]']
    yield "first line lost", lines[1:]
    yield "no number", with_line(end - 1, lines[end - 1].replace("1", "1.5"))
    yield "no JSON", with_line(end - 1, lines[end - 1][:-1])
    (run,) = of_kind(lines, "run")
    yield "other phase", with_line(run, changed(lines[run], (1,), up))
    head = json.loads(lines[0])
    for k in of_kind(lines, "idle"):
        yield "other start", with_line(k, changed(lines[k], (2,), lambda bits: bits[1:]))
        yield "no interval", with_line(k)
    for place in (4, 6):  # order of the cells, nets of control
        yield f"head {place}", [json.dumps([*head[:place], [*head[place][::-1], "2"], *head[place + 1 :]]), *lines[1:]]
    for k in range(3):
        order = [*head[4][:k], *head[4][k + 1 :]]
        yield f"cell {k} lost", [json.dumps([*head[:4], order, *head[5:]]), *lines[1:]]


def test_a_certificate_is_accepted_and_each_corrupted_one_refused(mcivor, iddmm):
    tried = 0
    for case, count in ((mcivor, 8), (iddmm, 2)):
        assert refused(case) == ""
        for what, lines in corruptions(case[2], count):
            assert refused(case, lines), what
            tried += 1
    assert tried > 200


@pytest.mark.long
@pytest.mark.parametrize(
    ("design", "modulus"), [("mcivor", "13"), ("orup", "2^13-1"), ("karatsuba", "2^61-1"), ("wide", "2^61-1")]
)
def test_hundreds_of_corrupted_certificates_are_refused(design, modulus):
    case = certificate(design, modulus, 1)
    found = list(corruptions(case[2], 40))
    assert [what for what, lines in found if not refused(case, lines)] == []
    assert len(found) > 200


def test_another_netlist_or_claim_is_refused(mcivor):
    module, claim, lines, _ = mcivor
    core = build("mcivor", "13", "native")
    claimed = claim_of(core)
    first = starts(Netlist.read(core.verilog, core.top), claimed)[0]
    head = json.loads(lines[0])
    for key, other in (("factor", 1), ("end", 12), ("p", 11), ("largest", 13), ("latency", 99)):
        assert "another claim" in refused(mcivor, claim=claim | {key: other})
        said = [json.dumps([*head[:3], head[3] | {key: other}, *head[4:]]), *lines[1:]]
        if key != "latency":  # only how long the checker waits
            assert refused(mcivor, lines=said, claim=claim | {key: other})
    swaps = {"$add": "$sub", "$and": "$or", "$or": "$and", "$xor": "$and", "$mux": "$mux", "$sub": "$add"}
    tried = 0
    for name, cell in module["cells"].items():
        if cell["type"] not in swaps:
            continue
        other = deepcopy(module)
        cell = other["cells"][name]
        pins = cell["connections"]
        if cell["type"] == "$mux":
            if "rst" in str(cell) or pins["A"] == pins["B"]:
                continue
            pins["A"], pins["B"] = pins["B"], pins["A"]
        cell["type"] = swaps[cell["type"]]
        assert "another netlist" in refused(mcivor, module=other)
        text = json.dumps(other, sort_keys=True, separators=(",", ":"))
        said = [json.dumps([*head[:2], sha256(text.encode()).hexdigest(), *head[3:]]), *lines[1:]]
        if refused(mcivor, lines=said, module=other):
            tried += 1
        else:  # a carry that is always 0: the core is still right
            assert prove_products(Netlist(deepcopy(other)), claimed, some=[first]).state == "PROVED", name
    assert tried > 10


def test_nets_that_are_alike_are_one_net_in_chains_and_loops():
    """A chain longer than Python recurses, made twice; a net that uses another operand of its gate; a loop."""
    count, plain = 3000, {"A_SIGNED": "0", "B_SIGNED": "0"}
    made = [(way * 10**5 + k, (way * 10**5 if k else 0) + k, 10**6 + k) for way in (1, 2) for k in range(count)]
    nets = [(y + 1, a, b) for y, a, b in made]
    nets += [(11, 1, 2), (12, 11, 1), (13, 12, 11), (21, 1, 2), (22, 21, 1), (23, 21, 22), (31, 31, 5)]
    cells = {
        f"g{y}": {"type": "$and", "connections": {"A": [a], "B": [b], "Y": [y]}, "parameters": plain}
        for y, a, b in nets
    }
    for first in (_Adders(cells)._net, _Gates(cells).first):
        assert first(10**5 + count) == first(2 * 10**5 + count) != first(10**5 + count - 1)
        assert first(13) == first(23) != first(12) and first(31) == 31


def test_the_checker_imports_nothing_of_the_prover():
    folder = Path(modmill.__file__).parent / "proofs" / "checker"
    assert {file.stem for file in folder.glob("*.py")} == {*CHECKER, "__init__"}
    for name in CHECKER:
        text = (folder / f"{name}.py").read_text()
        assert len(text.splitlines()) <= 400
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                modules = {node.module}
            else:
                modules = {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()
            for module in modules - {f"modmill.proofs.checker.{one}" for one in CHECKER}:
                assert module.partition(".")[0] in sys.stdlib_module_names, f"{name} imports {module}"


def test_a_folder_keeps_its_certificate(tmp_path):
    folder = build("mcivor", "13", "native").write(tmp_path / "core", check=False)
    with pytest.raises(ValueError, match="--products writes it"):
        recheck(folder)
    record = Folder.read(folder).record
    assert set(record["proved"].values()) == {"not run"}
    assert "| Proved | not run: `modmill prove . --products --control` |" in (folder / "README.md").read_text()
    proof = prove(folder, products=True)
    assert (proof.state, proof.notes) == ("PROVED", ())
    found = recheck(folder)
    wanted = {"constant_time": "PROVED", "products": "PROVED", "control": "not run", "certificate": found.certificate}
    noted = Folder.read(folder)
    assert noted.record["proved"] == wanted and noted.record["digest"] == record["digest"]
    assert (
        f"products PROVED; control not run; certificate of the products `{found.certificate}`"
        in (noted.texts["README.md"])
    )
    assert [*seal_differences(noted.texts, RECORD), *text_differences(noted.refit(), noted)] == []
    assert [*record_differences(noted.record, noted.refit().record()), *proof_differences(noted)] == []
    assert (found.refused, found.runs) == ("", 2)
    assert found.lines[0].startswith("ACCEPTED") and found.certificate in found.lines[-1]
    file = folder / "products.jsonl.gz"
    kept = file.read_bytes()
    prove(folder, products=True)
    assert file.read_bytes() == kept
    verilog = (folder / "core.v").read_text()
    (folder / "core.v").write_text(verilog.replace("fits ? difference : number", "number"))
    assert recheck(folder).lines[0].startswith("REFUSED")
    assert prove(folder).notes[1].startswith("contract.json and README.md do not take the result: core.v: was edited")
    assert prove(folder, products=True).state == "OPEN"
    assert file.read_bytes() == kept and not list(folder.glob(".products*"))
    (folder / "core.v").write_text(verilog)
    assert recheck(folder).refused == ""
    file.write_bytes(kept[:-40])
    assert "its digest is" in next(proof_differences(noted))
    assert "is damaged" in recheck(folder).refused
