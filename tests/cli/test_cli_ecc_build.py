# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""``modmill ecc build``, ``check`` and ``race``, and keys through built coprocessors in simulated hardware."""

import json
import shutil

import pytest
from command import modmill, refused
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from messages import MESSAGE
from small_curves import montgomery
from test_cli_ecc import make, save
from typer.testing import CliRunner

from modmill.cli import commands, statuses
from modmill.contract import UnsupportedError
from modmill.cores.ecc.engine import RtlPointEngine
from modmill.cores.ecc.machine import ecc, read
from modmill.cores.engine_files import names

BUILD = "ecc", "build", "--curve", "secp160k1"


def done(*arguments):
    run = CliRunner().invoke(commands.app, [str(a) for a in arguments], catch_exceptions=False)
    assert run.exit_code == 0, run.output
    return run


def test_build(place):
    said = done(
        *BUILD, "--operation", "multiply-base", "--threads", "2", "--teeth", "3", "--columns", "1", "-o", "core"
    )
    record = json.loads((place / "core" / "ecc.json").read_text())
    (program,) = record["programs"]
    assert said.stdout.startswith(
        f"core: secp160k1, montgomery-array, 2 runs interleaved, multiply-base {program['cycles']:,} cycles, "
    )
    assert {path.name for path in (place / "core").iterdir()} == set(names("ecc"))
    assert "--no-order" in record["command"]  # its order has a bit more than its prime
    text = (place / "core" / "ecc.v").read_text()
    done(*record["command"].split()[1:], "-o", "again")  # the command in the files makes the same files
    assert (place / "again" / "ecc.v").read_text() == text


def test_signatures_have_their_arithmetic_on_the_core_where_n_can_be_loaded(place):
    build = "ecc", "build", "--curve", "Ed25519", "--operation", "multiply-base", "--threads", "1", "--teeth", "2"
    said = done(*build, "-o", "core").stdout
    record = json.loads((place / "core" / "ecc.json").read_text())
    assert [(p["operation"], p["modulus"]) for p in record["programs"]] == [
        ("multiply-base", "p"), ("multiply-add", "n"),
    ]  # fmt: skip
    assert f"multiply-add {record['programs'][1]['cycles']:,} cycles" in said and "--order" in record["command"]
    curve = "Ed25519"
    cores = [
        ecc(curve, "montgomery-array", operations=("multiply-base",)),
        ecc(curve, "pseudo-mersenne", operations=("multiply-base",)),
        read(place / "core"),
    ]
    assert [RtlPointEngine(core).order.where for core in cores] == [
        "host; the core was built without it", "host; the core's modulus is built in",
        f"this core, loaded with n by a message of {record['setup_words']:,} words",
    ]  # fmt: skip
    with pytest.raises(UnsupportedError, match="modulo the order of Ed25519 only"):
        RtlPointEngine(cores[-1]).order.multiply_adds(97, [(1, 2, 3)])


def test_check(place):
    core = ecc(montgomery(251), "montgomery-array", {"loadable": False}, threads=1)
    core.write(place / "core", "made for a test")
    assert done("ecc", "check", "core").stdout.startswith("PASS core: ")
    (place / "core" / "vectors.json").write_text('{"messages": []}')
    run = modmill("ecc", "check", "core", cwd=place)
    assert run.returncode == 1
    first, *rest = run.stdout.splitlines()
    assert first.startswith("FAIL core: 2 differences; ")
    assert rest[0] == "  vectors.json: was edited: it has another digest than ecc.json says"
    assert rest[1].startswith("  vectors.json: ")


def test_a_secret_and_a_signature_of_built_cores(place):
    ours, theirs = save(place, "ours", make("X25519")), save(place, "theirs", make("X25519"))
    core = ecc("Curve25519", "multistep", threads=1)
    core.write(place / "x", "made for a test")
    run = done("ecc", "run", "x25519", "ours.pem", "--peer", "theirs.pub", "--engine", "x", "-o", "secret")
    assert (place / "secret").read_bytes() == theirs.exchange(ours.public_key())
    ran = f"modmill: ladder, 1 run, {core.cycles('ladder'):,} cycles"
    assert run.stderr.splitlines() == ["modmill: secret: 32 bytes", ran]

    key = save(place, "key", make("P-192"))
    core = ecc("P-192", "multistep", {"loadable": True}, operations=("multiply-base",), threads=1, order=True)
    core.write(place / "p", "made for a test")
    sign = "ecdsa-sign", "key.pem", "--message", "message", "--engine"
    run = done("ecc", "run", *sign, "p", "--no-check", "-o", "signature")
    key.public_key().verify((place / "signature").read_bytes(), MESSAGE, ec.ECDSA(hashes.SHA256()))
    assert run.stderr.splitlines() == [
        f"modmill: signature: {(place / 'signature').stat().st_size} bytes",
        f"modmill: multiply-base, 1 run, {core.cycles('multiply-base'):,} cycles",
        f"modmill: signature, 1 run, {core.cycles('signature'):,} cycles",
        f"modmill: arithmetic modulo the order: this core, loaded with n by a message of {len(core.setup()):,} words",
    ]
    for arguments, why in [
        ((*sign, "x"), "the core in x is for Curve25519, the key for P-192"),
        ((*sign, "p"), "this core has the operations multiply-base, signature, quotients, not multiply-two"),
        ((*sign, "none"), "--engine takes reference or the folder of a built core; none is neither"),
    ]:
        assert why in one_line("ecc", "run", *arguments, "-o", "refused")
    assert why in refused("ecc", "run", *arguments, "-o", "refused", cwd=place)
    assert not (place / "refused").exists()
    shutil.rmtree(place / "p")
    (place / "p").mkdir()
    assert "ecc.json is missing" in one_line("ecc", "run", *sign, "p")


def one_line(*arguments):
    """The line of a refusal, raised in this process; `modmill` turns it into status 2."""
    with pytest.raises((ValueError, OSError)) as caught:
        CliRunner().invoke(commands.app, [str(a) for a in arguments], catch_exceptions=False)
    return statuses.one_line(caught.value)


def test_refusals(place):
    race = "ecc", "race", "secp160k1"
    for arguments, why in [
        ((*BUILD, "--top", "module"), "must not be a keyword of Verilog"),
        ((*BUILD, "--multiplier", "none"), "no design is called"),
        ((*BUILD, "--operation", "add"), "the operation must be scalar-multiplication or one of multiply"),
        ((*BUILD, "--operation", "ladder"), "has no operation 'ladder'"),
        (
            (*BUILD, "--order"),
            "no arithmetic modulo the order of secp160k1: the modulus must be odd, at least 3 and below 2^160",
        ),
        (("ecc", "build", "--curve", "X25519", "--order"), "Modmill has no signature scheme on Curve25519"),
        ((*BUILD, "--io", "gray"), "takes --io montgomery or native, not gray"),
        ((*BUILD, "--threads", "64"), "do not fit 1024 addresses"),
        (("ecc", "build", "--curve", "none"), "none"),
        (("ecc", "check", place), "contract.json, engine.json, ecc.json is needed"),
        ((*race, "--operation", "add"), "the operation must be scalar-multiplication or one of"),
        ((*race, "--multiplier", "none"), "there is no design 'none'"),
        ((*race, "--multiplier", "pseudo-mersenne", "--operation", "ladder"), "has no operation 'ladder'"),
        ((*race, "--route", "--target", "xc7v"), "xc7v cannot be placed and routed here"),
        (("ecc", "race", "2^61-1", "--operation", "multiply"), "2^61-1"),
    ]:
        line = one_line(*arguments)
        assert why in line, line
    assert "has no operation 'ladder'" in refused(*BUILD, "--operation", "ladder", cwd=place)
    assert "the operation must be" in refused("ecc", "race", "secp160k1", "--operation", "add", cwd=place)
    assert [path.name for path in place.iterdir()] == ["message"]


def test_random_words_of_the_engine(tmp_path):
    """The command in the record is the one that was given; the options need each other."""
    words = ["ecc", "build", "--curve", "weierstrass p=251 a=1 b=4 x=0 y=2 n=271 h=1", "--set", "loadable=false"]
    words += ["--operation", "multiply-base", "--threads", "1"]
    given = ["--random", "port", "--blind", "40", "--random-entropy", "16"]
    assert "--operations" in modmill(*words, *given, "-o", str(tmp_path / "core")).stdout
    command = json.loads((tmp_path / "core" / "ecc.json").read_text())["command"]
    assert "--blind 40" in command and "--random port --random-entropy 16" in command
    assert "--random port needs --blind BITS" in refused(*words, "--random", "port", cwd=tmp_path)
    assert "--random-entropy is for --random port" in refused(*words, "--random-entropy", "8", cwd=tmp_path)
