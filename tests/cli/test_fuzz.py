# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Files and requests that are damaged at random: one line each, in time, and no error of Python.

The suite takes a few inputs of each kind. `MODMILL_FUZZ=N ./mill test -m long tests/cli/test_fuzz.py` takes N of each.
"""

import json
import os
import socket
import threading
import time
from base64 import b64decode, b64encode
from copy import deepcopy
from functools import cache

import pytest
from Crypto.IO import PEM, PKCS8
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa, x448
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from stub_engine import DEVICE
from test_acvp import engines, one

from marks import long
from modmill.buses.serve import Server, SocketBus
from modmill.buses.uart import REPLY, REQUEST
from modmill.cli.statuses import one_line
from modmill.cores.ecc.machine import EccCore, ecc
from modmill.cores.multiplier.build import build
from modmill.cores.multiplier.check import record_differences
from modmill.cores.multiplier.folder import Folder
from modmill.cores.rsa.circuit import engine_class
from modmill.cores.rsa.machine import engine
from modmill.engines.ecc import ecdsa, keys
from modmill.engines.ecc.point_engine import Shape
from modmill.engines.rsa import padding
from modmill.numbers.curves.named import find_curve
from modmill.numbers.curves.text import parse_curve
from modmill.numbers.moduli import parse_modulus
from modmill.studies.acvp.respond import ANSWERS, read, respond

MANY = int(os.environ.get("MODMILL_FUZZ", 1000))
SECONDS = 10
"""Time of the processor in which an input must be refused or taken; of the clock for the socket."""
EXPLICIT = """-----BEGIN EC PRIVATE KEY-----
MIIBaAIBAQQgzuvJY94hTGj9lfQHjDGDayQ+G0xwktf+6sjV4Lw4qfOggfowgfcC
AQEwLAYHKoZIzj0BAQIhAP////8AAAABAAAAAAAAAAAAAAAA////////////////
MFsEIP////8AAAABAAAAAAAAAAAAAAAA///////////////8BCBaxjXYqjqT57Pr
vVV2mIa8ZR0GsMxTsPY7zjw+J9JgSwMVAMSdNgiG5wSTamZ44ROdJreBn36QBEEE
axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54W
K84zV2sxXs7LtkBoN79R9QIhAP////8AAAAA//////////+85vqtpxeehPO5ysL8
YyVRAgEBoUQDQgAE1wXANZOabM79d0xvEK5OM+aHv53r/EFOVFqs+wlRAznciGX4
FwF1CfSC3EnYh/D56PVfe4bX2okl09Sf3w59lg==
-----END EC PRIVATE KEY-----
"""
SMALL = "weierstrass p=251 a=1 b=4 x=0 y=2 n=271 h=1"


# Edits of bytes: a place as a part of the length, and what happens there.
KINDS = "flip", "cut", "drop", "insert", "repeat", "set"
EDITS = st.lists(
    st.tuples(st.floats(0, 1), st.sampled_from(KINDS), st.binary(max_size=9)), min_size=1, max_size=5
)  # fmt: skip


def edited(data, edits):
    """Damaged bytes."""
    for part, what, more in edits:
        at = int(part * len(data))
        size = more[0] if more else 1
        match what:
            case "flip":
                data = data[:at] + bytes(b ^ 1 << size % 8 for b in data[at : at + 1]) + data[at + 1 :]
            case "cut":
                data = data[:at]
            case "drop":
                data = data[:at] + data[at + size :]
            case "insert":
                data = data[:at] + more + data[at:]
            case "repeat":
                data = data[: at + size] + data[at:]
            case "set":
                data = data[:at] + more + data[at + len(more) :]
    return data


# What stands in a place of JSON where something else is expected.
STRANGE = st.one_of(
    st.sampled_from([
        None, True, False, 0, 1, -1, 2, 255, 1 << 31, 1 << 64, 1 << 4000, -(1 << 4000), 0.5, 1e300, float("nan"),
        float("inf"), "", "0", "00", "0x", "-1", "0x-1", "1" * 5000, "F" * 5000, "\0", "é", "../..", [], {},
        [[]], [0], {"": 0}, [[[[[[]]]]]], "P-256", "hbe", "montgomery-array", "native",
    ]),
    st.text(max_size=8), st.integers(), st.binary(max_size=40).map(bytes.hex),
)  # fmt: skip
JSON_KINDS = "set", "delete", "copy", "swap"
JSON_EDITS = st.lists(
    st.tuples(st.integers(0, 1 << 20), st.sampled_from(JSON_KINDS), STRANGE), min_size=1, max_size=4
)  # fmt: skip


def places(value):
    """Every (container, key) of a document."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from places(value[key])


def damaged(document, edits):
    """Damaged JSON."""
    document = json.loads(json.dumps(document))
    for number, what, drawn in edits:
        strange = deepcopy(drawn)
        every = list(places(document))
        if not every:
            return strange
        (holder, key), (other, name) = every[number % len(every)], every[number // 7 % len(every)]
        match what:
            case "set":
                holder[key] = strange
            case "delete":
                del holder[key]
            case "copy":
                holder[key] = json.loads(json.dumps(other[name]))
            case "swap" if isinstance(holder, dict):
                holder[str(strange)[:20]] = holder.pop(key)
    return document


def orderly(do, *arguments):
    """Do it; an error that the command turns into one line is in order, if it is in time."""
    start = time.process_time()
    try:
        do(*arguments)
    except (ValueError, OSError, RuntimeError) as error:
        line = one_line(error)
        assert line, repr(error)
        assert "\n" not in line
    assert time.process_time() - start < SECONDS


def counts(few):
    """A test with ``few`` inputs in the suite, and `MANY` in the long run."""
    return pytest.mark.parametrize("count", [few, pytest.param(MANY, marks=pytest.mark.long)])


def every(count, strategy, function):
    """Call a function with ``count`` inputs, in a fixed order."""
    options = settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    options(seed(1)(given(strategy)(function)))()


@cache
def key_files():
    """Key files of all kinds that are read."""
    made = [
        rsa.generate_private_key(65537, 1024), ec.derive_private_key(5, ec.SECP256R1()),
        ed25519.Ed25519PrivateKey.from_private_bytes(b"1" * 32), x448.X448PrivateKey.from_private_bytes(b"1" * 56),
    ]  # fmt: skip
    files, plain = [EXPLICIT.encode(), b64decode("".join(EXPLICIT.splitlines()[1:-1]))], form.NoEncryption()
    for key in made:
        for encoding in (form.Encoding.PEM, form.Encoding.DER):
            files.append(key.private_bytes(encoding, form.PrivateFormat.PKCS8, plain))
            files.append(key.public_key().public_bytes(encoding, form.PublicFormat.SubjectPublicKeyInfo))
    for key in made[:2]:
        files.append(key.private_bytes(form.Encoding.PEM, form.PrivateFormat.TraditionalOpenSSL, plain))
        files.append(key.private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH, plain))
        for protection in ("PBKDF2WithHMAC-SHA256AndAES128-CBC", "scryptAndAES128-CBC"):
            inner = key.private_bytes(form.Encoding.DER, form.PrivateFormat.PKCS8, plain)
            quick = {"iteration_count": 16, "block_size": 1, "parallelization": 1}
            sealed_der = PKCS8.wrap(inner, "1.2.840.10045.2.1", b"secret", protection, quick, None)
            files += [sealed_der, PEM.encode(sealed_der, "ENCRYPTED PRIVATE KEY").encode()]
    return files


@counts(60)
def test_key_files(count):
    """Also with the length of the DER inside a PEM file unchanged, which edits of base64 seldom leave."""

    def run(drawn):
        file, edits, inside, passphrase = drawn
        if inside and b"-----BEGIN" in file:
            first, *lines, last = file.decode().split("\n")[:-1]
            text = b64encode(edited(b64decode("".join(lines)), edits)).decode()
            damaged = "\n".join([first, *(text[k : k + 64] for k in range(0, len(text), 64)), last, ""]).encode()
        else:
            damaged = edited(file, edits)
        for reader in (padding.read_key, keys.read_key):
            orderly(reader, damaged, passphrase)
        orderly(keys.read_curve, damaged)

    passphrases = st.sampled_from([None, "", "secret", "secret"])
    every(count, st.tuples(st.sampled_from(key_files()), EDITS, st.booleans(), passphrases), run)


@counts(50)
def test_signatures(count):
    curve = find_curve("P-256")
    signature = ecdsa.encode(curve, (5, curve.n - 1))

    def run(edits):
        for shape in ("der", "raw"):
            orderly(ecdsa.decode, curve, edited(signature, edits), shape)

    every(count, EDITS, run)


def requests():
    """Request files of all kinds of groups."""
    point = {"qx": "01", "qy": "02", "r": "03", "s": "04", "message": "00", "e": "010001", "pRand": "FB" * 64}
    point |= {"qRand": "C5" * 64, "context": "00", "signature": "00", "z": "00", "q": "00" * 32}
    for side in ("Server", "Iut"):
        point |= {f"{kind}Public{side}{end}": "03" for kind in ("static", "ephemeral") for end in "XY"}
    point |= {"publicServerX": "03", "publicServerY": "04", "staticPrivateIut": "01", "ephemeralPrivateIut": "02"}
    options = {"hashAlg": "SHA2-256", "domainParameterGenerationMode": "P-256", "scheme": "fullUnified", "modulo": 1024}
    options |= {"kasRole": "initiator", "sigType": "pss", "saltLen": 20, "n": "C1" * 128, "e": "010001"}
    options |= {"randPQ": "probable", "pubExp": "fixed", "fixedPubExp": "010001", "keyFormat": "crt"}
    for algorithm, mode in ANSWERS:
        curve = "ED-25519" if algorithm == "EDDSA" else "P-256"
        for kind in ("AFT", "KAT", "VAL"):
            yield one(algorithm, mode, [point], **{**options, "curve": curve, "testType": kind})


@counts(30)
def test_request_files_of_acvp(count, tmp_path):
    served = engines("P-256", "Ed25519", widths=(1024,))
    served.keys = {1024: padding.read_key(key_files()[2])}

    def run(drawn):
        document, edits, partial, bits = drawn
        strange = damaged(document, edits)
        orderly(partial_response, strange, served, partial)
        try:
            text = json.dumps(strange).encode()
        except ValueError:  # a number of too many digits
            return
        (tmp_path / "request").write_bytes(edited(text, bits))
        orderly(read, tmp_path / "request")

    every(count, st.tuples(st.sampled_from(list(requests())), JSON_EDITS, st.booleans(), EDITS), run)


def partial_response(document, served, partial):
    json.dumps(respond(document, served, partial=partial))


@cache
def records():
    """Records of built folders: file -> its content."""
    small = {"settings": {"loadable": False}, "threads": 1, "operations": ("multiply-base",)}
    shape = Shape(teeth=1, columns=1)
    return {
        "ecc.json": json.loads(json.dumps(ecc(parse_curve(SMALL), "montgomery-array", shape=shape, **small).record())),
        "engine.json": json.loads(json.dumps(engine("montgomery-array", width=24, threads=1).record())),
        "contract.json": {
            **json.loads(json.dumps(build("wide", "251").record())), "digest": "0", "netlist": "0",
        },
    }  # fmt: skip


@pytest.mark.parametrize("name", [long("ecc.json"), "engine.json", "contract.json"])
@counts(4)
def test_records_of_folders(count, name, tmp_path):
    """A record that is damaged gives another engine, or one line."""
    record = records()[name]
    (tmp_path / "core.v").write_text("module core(); endmodule\n")
    (tmp_path / "vectors.json").write_text('{"vectors": []}')

    def remake():
        if name == "contract.json":
            folder = Folder.read(tmp_path)
            list(record_differences(folder.record, folder.refit().record()))
        else:
            made = (EccCore if name == "ecc.json" else engine_class(tmp_path)).remade(tmp_path)
            assert made.layout.threads

    (tmp_path / name).write_text(json.dumps(record))
    remake()  # what is not damaged is taken

    def run(drawn):
        edits, bits = drawn
        strange = damaged(record, edits)
        try:
            text = json.dumps(strange).encode()
        except ValueError:
            return
        (tmp_path / name).write_bytes(edited(text, bits) if bits else text)
        orderly(remake)

    every(count, st.tuples(JSON_EDITS, st.one_of(st.none(), EDITS)), run)


@counts(60)
def test_texts_of_curves_and_moduli(count):
    texts = [SMALL, "P-256", "edwards p=13 a=1 d=2 x=6 y=9 n=5 h=4", "montgomery p=2^255-19 A=486662 x=9", "2^255-19",
             "0x1ffff", "2^64-59"]  # fmt: skip

    def run(drawn):
        text, edits = drawn
        strange = edited(text.encode(), edits).decode("latin-1")
        orderly(parse_curve, strange)
        orderly(parse_modulus, strange)

    every(count, st.tuples(st.sampled_from(texts), EDITS), run)


class Idle:
    """A simulated device that does nothing."""

    packets = False

    def read(self, address):
        return address, False

    def write(self, address, data):
        return False

    def wait(self, cycles, interrupt=False):
        return 0

    def reset(self, cycles):
        pass


@counts(60)
def test_the_socket_of_a_served_device(count, tmp_path):
    """After any bytes on one connection, the next one is answered."""
    server = Server(DEVICE, Idle(), tmp_path / "s", idle=1)
    threading.Thread(target=server.run, daemon=True).start()
    whole = b"".join(REQUEST.pack(operation, 4 * operation, 1 << operation) for operation in range(8))

    def run(edits):
        start = time.monotonic()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.connect(str(server.path))
            client.settimeout(SECONDS)
            data = edited(whole, edits)
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            replies = b""
            while part := client.recv(1 << 16):
                replies += part
        assert len(replies) == len(data) // REQUEST.size * REPLY.size
        bus = SocketBus(server.path)
        assert bus.read(8) == (8, False)
        bus.close()
        assert time.monotonic() - start < SECONDS

    every(count, EDITS, run)
    server.close()


@pytest.mark.parametrize("error", [KeyError("x"), AssertionError(), IndexError(), OverflowError(), TypeError()])
def test_an_error_of_python_is_noticed(error):
    def wrong():
        raise error

    with pytest.raises(type(error)):
        orderly(wrong)
