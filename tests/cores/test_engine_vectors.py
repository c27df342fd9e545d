# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Vectors of engines: answers that a dead engine does not give, for every number of threads; a folder's own Verilog is
what is simulated."""

import json
import random
import shutil
from dataclasses import replace
from itertools import pairwise

import pytest
from command import refused
from forged import spoiled, stamped
from small_curves import edwards, montgomery, weierstrass

from modmill.contract import UnsupportedError
from modmill.cores.batches import batches
from modmill.cores.ecc.check import check_ecc
from modmill.cores.ecc.machine import ecc, read
from modmill.cores.ecc.samples import jobs
from modmill.cores.rsa.engine import Stored
from modmill.cores.rsa.machine import engine
from modmill.cores.rsa.machine import read as read_engine
from modmill.flow.words import WordSimulator


@pytest.mark.parametrize("machines", [1, 2, 3])
@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_no_answer_comes_twice_and_every_context_has_one_that_counts(threads, machines):
    rnd = random.Random(threads)
    edges = [0, 1, 0, 1, 0]
    made = list(batches(edges, lambda: rnd.randrange(9), lambda run: run, lambda run: run < 2, threads, machines))
    assert all(len(job) == threads for job in made) and len(made) >= max(3, 2 * machines)
    for k, job in enumerate(made):
        assert all(made[j] != job for j in (k - 1, k - machines) if j >= 0)
        assert threads == 1 or len(set(job)) > 1
    for machine in range(machines):
        for place in range(threads):
            assert any(job[place] > 1 for job in made[machine::machines])
    runs = [run for job in made for run in job]
    assert runs.count(0) >= 3 and runs.count(1) >= 2


@pytest.mark.parametrize("curve", [weierstrass(1009, -3, 900), edwards(1009, 1), montgomery(251)], ids=repr)
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_operation_has_edges_and_answers_that_count(curve, threads):
    operations = ("multiply", "multiply-base", "multiply-two", "signature") if curve.n > 1 else ("ladder",)
    for operation in operations:
        made = jobs(curve, operation, curve.n.bit_length() if curve.n > 1 else 8, threads)
        answers = [[result for _, result in job] for job in made]
        assert all(one != two for one, two in pairwise(answers))
        for place in range(threads):
            assert any(set(job[place]) - {0, 1} for job in answers)
        scalars = [run[0] for job in made for run, _ in job]
        assert operation == "signature" or any(0 in scalar for scalar in scalars)


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    """One context: the vectors of a core whose only job had the scalar 0 were passed by a dead one."""
    made = ecc(montgomery(251), "montgomery-array", {"loadable": False}, threads=1)
    return made.write(tmp_path_factory.mktemp("vectors") / "core", "made for a test")


DEAD = {
    "zeros": "  assign o_data = 0;",
    "ones": "  assign o_data = 32'hffffffff;",
    "the job before": "  reg [31:0] held;\n  assign o_data = held;\n"
    "  always @(posedge clk) if (rst) held <= 0; else if (there & taken) held <= word;",
}


@pytest.mark.parametrize("answer", DEAD)
def test_a_dead_core_passes_neither_the_check_nor_the_written_vectors(core, tmp_path, answer):
    copy = shutil.copytree(core, tmp_path / "ecc")
    spoiled(copy, f"  assign taken = o_ready; assign o_valid = there;\n{DEAD[answer]}", "ecc")
    (line,) = check_ecc(copy).failures
    assert line.startswith("at full rate: ladder ") and line.endswith(" modulo 0xfb is wrong")
    right, wrong = (answers(folder) for folder in (core, copy))
    wanted = [job["out"] for job in messages(core) if job["out"]]
    assert right == wanted
    assert len(wanted) > 5 and all(word != ["0x0"] for word in wanted[:1])
    assert sum(one != two for one, two in zip(wrong, wanted, strict=True)) >= len(wanted) // 2


def messages(folder):
    return json.loads((folder / "vectors.json").read_text())["messages"]


def answers(folder):
    """What the Verilog in a folder answers to its vectors."""
    text = (folder / "ecc.v").read_text()
    words = [int(word, 16) for message in messages(folder) for word in message["in"]]
    count = sum(len(message["out"]) for message in messages(folder))
    found = list(map(hex, WordSimulator(text, 32, top="ecc").run(words, count, timeout=20_000).words))
    lengths = [len(message["out"]) for message in messages(folder) if message["out"]]
    return [found[sum(lengths[:k]) : sum(lengths[: k + 1])] for k in range(len(lengths))]


def test_what_lies_in_a_folder_is_simulated(core, tmp_path):
    """An edit that is stamped shows in the results; one that is not is refused in one line."""
    copy = shutil.copytree(core, tmp_path / "ecc")
    run = (5,), {"u": 9}
    (right,) = read(core).simulate("ladder", [run]).results
    spoiled(copy, "  assign taken = o_ready; assign o_valid = there; assign o_data = word ^ 1;", "ecc")
    (wrong,) = read(copy).simulate("ladder", [run]).results
    assert wrong != right
    text = (copy / "ecc.v").read_text()
    (copy / "ecc.v").write_text(text.replace("word ^ 1", "word ^ 3"))
    with pytest.raises(ValueError, match=r"ecc\.v: the RTL has another digest than it says; run modmill ecc check "):
        read(copy)
    (copy / "ecc.v").write_text(text.replace("// Command: ", "// command: "))
    with pytest.raises(ValueError, match=r"ecc\.v: was edited"):
        read(copy)
    stamped(copy, "ecc")
    assert read(copy).verilog == read(copy).stored
    record = (copy / "ecc.json").read_text()
    (copy / "ecc.json").write_text(record.replace('"bits": 8', '"bits": 9'))
    with pytest.raises(ValueError, match=r"ecc\.json: was edited"):
        read(copy)


def test_an_rsa_engine_in_a_folder_is_simulated(tmp_path):
    made = engine("multistep", width=32, bits=40, threads=1, window=2)
    folder = made.write(tmp_path / "engine", "made for a test")
    machine, pairs = Stored.read(folder), [(5, 0x12345), (7, 0xFFFFFFFF)]
    p = 0xFFFFFFFB
    assert machine.secret(p, pairs, 32) == [pow(*pair, p) for pair in pairs]
    (work,) = machine.work
    assert (work.powers, work.modulus_bits, work.cycles) == (2, 32, made.cycles(0, 32))
    assert machine.public(p, [3], 65537) == [pow(3, 65537, p)]
    with pytest.raises(UnsupportedError, match="must have at most 32 bits, got 33: with CRT they are the primes"):
        machine.secret(2**32 + 1, pairs, 33)
    with pytest.raises(UnsupportedError, match="exponents of this engine must have at most 40 bits, got 41"):
        machine.secret(p, pairs, 41)
    spoiled(folder, "  assign taken = o_ready; assign o_valid = there; assign o_data = word ^ 1;")
    assert Stored.read(folder).secret(p, pairs, 32) == [pow(*pair, p) ^ 1 for pair in pairs]
    text = (folder / "engine.v").read_text()
    (folder / "engine.v").write_text(text.replace("word ^ 1", "word ^ 3"))
    with pytest.raises(ValueError, match=r"engine\.v: the RTL has another digest than it says; run modmill rsa check "):
        read_engine(folder)
    line = refused("rsa", "setup", folder, "--modulus", p)
    assert "engine.v: the RTL has another digest than it says" in line


def test_a_cluster_has_jobs_for_every_machine():
    made = ecc(weierstrass(1009, -3, 900), "multistep", operations=("multiply-base",), threads=1, cores=3)
    heads = [message["in"][0] for message in made.vectors()["messages"][1:]]
    assert {*heads} == {"0x0", "0x1", "0x2"}
    assert replace(made, threads=2).layout.threads == 2
