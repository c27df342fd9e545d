# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""``modmill rsa``: real keys in files, through model and simulated hardware; what openssl and others make of it."""

import json
import shutil
import subprocess

import pytest
from command import modmill, refused
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from messages import MESSAGE

from modmill.cores.engine_files import names
from modmill.cores.rsa.machine import engine


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """A folder with a key in two files and a message."""
    folder = tmp_path_factory.mktemp("rsa")
    key = rsa.generate_private_key(65537, 1024)
    encoding, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain))
    public = key.public_key().public_bytes(encoding, serialization.PublicFormat.SubjectPublicKeyInfo)
    (folder / "public.pem").write_bytes(public)
    (folder / "message").write_bytes(MESSAGE)
    return folder


@pytest.fixture(scope="module")
def key(keys):
    return serialization.load_pem_private_key((keys / "key.pem").read_bytes(), None)


def done(*arguments, cwd):
    run = modmill("rsa", *arguments, cwd=cwd)
    assert run.returncode == 0, run.stderr
    return run


@pytest.mark.parametrize("options", [
    (), ("--padding", "pkcs1", "--hash", "sha512"), ("--no-crt", "--method", "ladder"), ("--blind-exponent", "64"),
    ("--engine", "exact", "--no-blind-message"), ("--multiplier", "sor-2m", "--io", "plain"),
])  # fmt: skip
def test_signatures(keys, key, options):
    done("run", "key.pem", "--sign", "message", "-o", "signature", *options, cwd=keys)
    digest = hashes.SHA512() if "sha512" in options else hashes.SHA256()
    scheme = padding.PKCS1v15() if "pkcs1" in options else padding.PSS(padding.MGF1(digest), digest.digest_size)
    key.public_key().verify((keys / "signature").read_bytes(), MESSAGE, scheme, digest)
    ours = ["--verify", "message", "--signature", "signature", *options]
    assert done("run", "public.pem", *ours, cwd=keys).stdout == "the signature is right\n"
    (keys / "other").write_bytes(MESSAGE + b"!")
    wrong = modmill("rsa", "run", "public.pem", "--verify", "other", *ours[2:], cwd=keys)
    assert (wrong.returncode, wrong.stdout) == (1, "the signature is wrong\n")


def test_encryption_both_ways(keys, key):
    scheme = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), b"label")
    done("run", "public.pem", "--encrypt", "message", "--label", "label", "-o", "sealed", cwd=keys)
    assert key.decrypt((keys / "sealed").read_bytes(), scheme) == MESSAGE
    (keys / "sealed").write_bytes(key.public_key().encrypt(b"read me\n", scheme))
    assert done("run", "key.pem", "--decrypt", "sealed", "--label", "label", cwd=keys).stdout == "read me\n"


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")
def test_simulated_hardware_signs_for_openssl(keys):
    run = done("run", "key.pem", "--sign", "message", "-o", "signature", "--engine", "rtl", cwd=keys)
    assert run.stderr.count("1 power modulo 512 bits, window-5, 646 products") == 2
    options = ["-sigopt", "rsa_padding_mode:pss", "-signature", "signature"]
    command = ["openssl", "dgst", "-sha256", "-verify", "public.pem", *options, "message"]
    assert subprocess.run(command, cwd=keys, capture_output=True, check=True).stdout == b"Verified OK\n"


def test_a_built_engine_and_what_sets_its_modulus(keys):
    run = done("build", "--bits", "1024", "--threads", "2", "-o", "engine", cwd=keys)
    assert run.stdout.startswith("engine: montgomery-array, 512-bit moduli, 2 powers interleaved, ")
    folder = keys / "engine"
    assert {path.name for path in folder.iterdir()} == set(names("engine"))
    record = json.loads((folder / "engine.json").read_text())
    assert [p["exponent_bits"] for p in record["programs"]] == [576, 17]
    assert record["command"].startswith("modmill rsa build --bits 1024 --multiplier montgomery-array --io native")
    vectors = json.loads((folder / "vectors.json").read_text())["messages"]
    words = done("setup", "engine", "--modulus", vectors[0]["modulus"], cwd=keys).stdout.split()
    assert [int(word, 16) for word in words] == [int(word, 16) for word in vectors[0]["in"]]
    done("build", "--bits", "1024", "--threads", "2", "-o", "engine", cwd=keys)  # replaces it
    (folder / "notes").write_text("mine")
    assert "holds notes, which no build wrote" in refused("rsa", "build", "--bits", "1024", "-o", folder)


def test_a_circuit_is_built_checked_set_up_and_used(keys):
    run = done("build", "--circuit", "--bits", "1024", "--multiplier", "radix64k-mul", "-o", "circuit", cwd=keys)
    assert run.stdout.startswith("circuit: radix64k-mul, 512-bit moduli, one power at a time, 38,117 cycles for it, ")
    record = json.loads((keys / "circuit" / "engine.json").read_text())
    assert [p["time"][:7] for p in record["programs"]] == ["does no", "depends"]
    vectors = json.loads((keys / "circuit" / "vectors.json").read_text())["messages"]
    words = done("setup", "circuit", "--modulus", vectors[0]["modulus"], cwd=keys).stdout.split()
    assert [int(word, 16) for word in words] == [int(word, 16) for word in vectors[0]["in"]]
    done("build", "--circuit", "--modulus", "2^61-1", "--blind", "0", "-o", "small", cwd=keys)
    assert done("check", "small", cwd=keys).stdout.startswith("PASS small: ")
    run = done("run", "key.pem", "--sign", "message", "-o", "signature", "--engine", "circuit", cwd=keys)
    assert run.stderr.count("1 power modulo 512 bits, constant time, 1,026 products, 33,893 cycles") == 2


def test_a_check_of_a_built_engine(tmp_path):
    core = engine("radix64k-mul", width=64, bits=64, threads=2, window=3)
    core.write(tmp_path / "engine", "made for a test")
    assert done("check", "engine", "--short", cwd=tmp_path).stdout.startswith("PASS engine: ")
    text = (tmp_path / "engine" / "engine.v").read_text()
    (tmp_path / "engine" / "engine.v").write_text(f"{text}// more\n")
    run = modmill("rsa", "check", "engine", "--short", cwd=tmp_path)
    assert run.returncode == 1
    assert run.stdout.startswith("FAIL engine: 3 differences; ")
    assert "engine.v: was edited" in run.stdout


def test_refusals(keys):
    for arguments, why in [
        (("run", keys / "key.pem"), "give exactly one of --decrypt, --encrypt, --sign and --verify"),
        (("run", keys / "key.pem", "--verify", keys / "message"), "--verify and --signature must be given together"),
        (("run", keys / "message", "--sign", keys / "message"), "cannot be read as an RSA key"),
        (("run", keys / "public.pem", "--sign", keys / "message"), "need a private key"),
        (("build", "--circuit", "--window", "3"), "one power at a time, by squares and products; omit --window"),
        (("build", "--circuit", "--multiplier", "kbe"), "radix64k-mul, radix64k-ram or radix64k-table, not kbe"),
        (("build", "--circuit", "--set", "feedback=false"), "the circuit needs feedback=true"),
        (("build", "--modulus", "2^64"), "odd"),
        (("run", keys / "none.pem", "--sign", keys / "message"), "No such file"),
        (("run", keys / "key.pem", "--sign", keys / "message", "--engine", "fpga"), "one of model, exact, rtl"),
        (("run", keys / "key.pem", "--sign", keys / "message", "--multiplier", "none"), "no design is called"),
        (("run", keys / "key.pem", "--sign", keys / "message", "--method", "naive"), "one of window, ladder"),
        (("run", keys / "key.pem", "--sign", keys / "message", "--io", "gray"), "one of plain, montgomery, native"),
        (("run", keys / "key.pem", "--decrypt", keys / "message"), "must have 128 bytes, got 19"),
        (("build", "--top", "module"), "must not be a keyword of Verilog"),
        (("build", "--bits", "512"), "1024 to 4096 bits, not 512"),
        (("build", "--bits", "1024", "--multiplier", "sor-2m"), "sor-2m has its modulus built in"),
        (("setup", keys), "engine.json is missing"),
    ]:
        line = refused("rsa", *arguments, *(["--modulus", "97"] if arguments[0] == "setup" else []))
        assert why in line, line
