# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The calls in C: compiled strictly, their jobs compared word for word with those of Python, protocols, planted faults.

`StandIn` answers at the registers as a front does, by the instructions of the core, interpreted on integers.
"""

import contextlib
import ctypes
import hashlib
import random
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from modmill.buses.adapters import find_bus
from modmill.buses.device import Device
from modmill.buses.files import bus_texts, descriptions, section
from modmill.buses.registers import register_map
from modmill.buses.simulate import BusSimulator
from modmill.contract import UnsupportedError
from modmill.cores.ecc.machine import EccCore, ecc
from modmill.cores.ecc.samples import drawn, expected, sample
from modmill.engines.ecc.point_engine import Shape
from modmill.engines.ecc.points import BLIND
from modmill.engines.machine.layout import words_of
from modmill.engines.microcode.interpreter import run as interpreted
from modmill.numbers.curves.encoding import decode_edwards
from modmill.numbers.curves.projective import multiples
from modmill.studies.explore_engines import draw

BUS = find_bus("wishbone")
STRICT = ("-std=c99", "-pedantic", "-O2", "-Wall", "-Wextra", "-Werror", "-Wconversion", "-Wshadow")
ZIG = (sys.executable, "-m", "ziglang", "cc")
RANGE, POINT, NEUTRAL, RESULT, NONCE = range(258, 263)
TIMEOUT = 256
MASK = 2**32 - 1
Read, Write = (
    ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32),
    ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32),
)
HOOKS = """#include <stdint.h>
extern uint32_t (*bus_read)(uint32_t offset);
extern void (*bus_write)(uint32_t offset, uint32_t word);
#define ECC_READ32(device, offset) ((void)(device), bus_read(offset))
#define ECC_WRITE32(device, offset, word) ((void)(device), bus_write((offset), (word)))
"""
POINTS = ("multiply", "multiply-base", "multiply-two")


def described(core: EccCore) -> Device:
    """The device of a core, without its Verilog."""
    digest = "sha256:" + "12345678" * 8
    commands, bits, lay = core.commands, core.curve.bits, core.layout
    return Device("curve", core.top, digest, bits, lay.number_words, lay.threads, commands, calls=core.calls)


def compiled(core, folder, device=None):
    """The calls and the driver as a library of this machine."""
    for name, text in descriptions(device or described(core), BUS).items():
        (folder / name).write_text(text)
    return linked(folder)


def linked(folder):
    """The library of the files in a folder; undefined behaviour ends the process."""
    (folder / "hooks.h").write_text(HOOKS)
    (folder / "hooks.c").write_text("uint32_t (*bus_read)(uint32_t);\nvoid (*bus_write)(uint32_t, uint32_t);\n")
    traps = ("-fsanitize=undefined", "-fsanitize-trap=undefined")
    command = [*ZIG, *STRICT, *traps, "-shared", "-fPIC", "-include", "hooks.h", "ecc.c", "ecc_calls.c", "hooks.c"]
    subprocess.run([*command, "-o", "calls.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "calls.so"))


@dataclass
class StandIn:
    """A front at its registers. ``messages``: those received. ``fault``: edits the numbers of an answer."""

    core: EccCore
    messages: list = field(default_factory=list)
    fault: object = None
    loaded: int = 0

    def __post_init__(self):
        self.device = described(self.core)
        self.map = register_map(self.device)
        self.at = {r.offset: r.name for r in self.map.registers}
        self.commands = {c.number: c for c in self.device.commands}
        self.moduli = {tuple(self.core.setup(h.modulus)): h.modulus for h in self.core.held}
        self.message, self.answer, self.cause = [], [], 0

    def read(self, offset):
        name = self.at[offset]
        if name == "STATUS":
            self.work()
            fields = {"ready": not self.answer, "done": bool(self.answer), "loaded": bool(self.loaded)}
            fields |= {"error": bool(self.cause), "cause": self.cause}
            return sum(int(fields.get(f.name, 0)) << f.low for f in self.map["STATUS"].fields)
        if name == "LEVEL":
            return 1000 | len(self.answer) << 16
        return self.answer.pop(0) if name == "DATA_OUT" else self.map[name].reset

    def write(self, offset, word):
        name = self.at[offset]
        if name in ("COMMAND", "DATA_IN"):
            self.message.append(word)
        elif name == "CONTROL":
            self.message, self.answer, self.loaded = [], [], 0
        elif name == "IRQ_STATUS" and word & 2:
            self.cause = 0

    def work(self):
        """Do the message that is complete."""
        if not self.message:
            return
        command, *words = message = self.message
        assert len(words) == self.commands[command].words
        self.messages.append(message)
        self.message = []
        if command == 0:
            self.loaded = self.moduli[tuple(message)]
            return
        held, lay = self.core.held[command - 1], self.core.layout
        assert self.loaded == held.modulus
        known, numbers = {}, []
        each = len(words) // lay.threads
        for k in range(0, len(words), each):
            part = tuple(words[k : k + each])
            if part not in known:
                known[part] = self.run(command - 1, held, part)
            numbers += known[part]
        if self.fault:
            numbers = self.fault(held.operation, numbers)
        self.answer = [w for x in numbers for w in words_of(x, lay.number_words, 32)]

    def run(self, number, held, words):
        core, lay = self.core, self.core.layout
        program = held.instructions.program
        size, contract = lay.digit_words(number), core.fitted if held.modulus == core.curve.p else core._loaded
        mask = (1 << max(1, program.window)) - 1
        digits = [words[k // lay.per_word] >> lay.digit_bits * (k % lay.per_word) & mask for k in range(program.digits)]
        values = [
            sum(w << 32 * k for k, w in enumerate(words[at : at + lay.number_words]))
            for at in range(size, len(words), lay.number_words)
        ]
        inputs = {name: x for (_, name), x in zip(program.inputs, values, strict=True)}
        return interpreted(program, core.unit(lay.threads), contract.contract(core.io), inputs, tuple(digits))


class Calls:
    """The calls on a stand-in, or on a simulated bus."""

    def __init__(self, core, library, bus):
        self.core, self.library, self.bus, c = core, library, bus, core.calls
        self.kept = Read(bus.read), Write(bus.write)
        for name, hook in zip(("bus_read", "bus_write"), self.kept, strict=True):
            ctypes.c_void_p.in_dll(library, name).value = ctypes.cast(hook, ctypes.c_void_p).value
        fields = [
            ("base", ctypes.c_void_p), ("patience", ctypes.c_uint32), ("pad", ctypes.c_uint32),
            ("loaded", ctypes.c_int), ("blind", ctypes.c_uint32 * c.words), ("words", ctypes.c_uint32 * c.job_words),
        ]  # fmt: skip
        self.engine = type("Engine", (ctypes.Structure,), {"_fields_": fields})()
        self.c = c
        assert self.call("engine_open", None) == 0

    def call(self, name, *arguments):
        return getattr(self.library, f"ecc_{name}")(ctypes.byref(self.engine), *arguments)

    def many(self, operation, runs):
        """(error, results of the call for many runs)."""
        c, size = self.c, 1 if operation == "ladder" else 2
        found = (ctypes.c_uint32 * (len(runs) * size * c.words))(*[7] * (len(runs) * size * c.words))
        length = c.order_words if operation == "multiply-two" else c.scalar_words
        given = [words(length, *column) for column in zip(*(scalars for scalars, _ in runs), strict=True)]
        names = {"ladder": ["u"], "multiply-base": []}.get(operation, ["x", "y"])
        if names:
            given.append(words(c.words, *(numbers[name] for _, numbers in runs for name in names)))
        error = self.call(operation.replace("-", "_") + "_many", ctypes.c_size_t(len(runs)), found, *given)
        numbers = [number(found[k : k + c.words]) for k in range(0, len(found), c.words)]
        return error, [tuple(numbers[k : k + size]) for k in range(0, len(numbers), size)]

    def bytes(self, name, outputs, *inputs):
        """(error, byte strings that a protocol returns)."""
        made = [ctypes.create_string_buffer(b"\7" * size, size) for size in outputs]
        given = [x if isinstance(x, bytes) else ctypes.c_size_t(x) for x in inputs]
        return self.call(name, *made, *given), *(x.raw for x in made)


def words(size, *numbers):
    return (ctypes.c_uint32 * (size * len(numbers)))(*(w for x in numbers for w in words_of(x, size, 32)))


def number(found):
    return sum(w << 32 * k for k, w in enumerate(found))


CORES = {
    "p256": ("P-256", "montgomery-array", {"operations": POINTS, "order": True, "threads": 2}),
    "p256-signed": ("P-256", "montgomery-array", {
        "operations": ("multiply", "multiply-base"), "threads": 1, "bits": 300, "window": 5, "teeth": 4, "columns": 3}),
    "p384": ("P-384", "montgomery-array", {"operations": POINTS, "threads": 1, "window": 3, "teeth": 6, "columns": 1}),
    "secp256k1": ("secp256k1", "montgomery-array", {"operations": POINTS, "order": True, "threads": 1}),
    "joint": ("secp256k1", "montgomery-array", {
        "operations": ("multiply-two",), "threads": 3, "window": 3, "joint": True}),
    "no-two": ("P-256", "montgomery-array", {"operations": ("multiply-base",), "order": True, "threads": 2}),
    "p521": ("P-521", "montgomery-array", {"operations": POINTS, "order": True, "threads": 1}),
    "ed25519": ("Ed25519", "montgomery-array", {"operations": POINTS, "order": True, "threads": 2}),
    "x25519": ("Curve25519", "pseudo-mersenne", {"threads": 3}),
    "x448": ("Curve448", "montgomery-array", {"threads": 1}),
}  # fmt: skip
_MADE: dict = {}


@pytest.fixture
def calls(request, tmp_path_factory):
    """The calls of a core of `CORES` on a fresh stand-in."""
    name = request.param
    if name not in _MADE:
        curve, design, options = CORES[name]
        shape = {key: options[key] for key in ("window", "teeth", "columns", "joint") if key in options}
        others = {key: value for key, value in options.items() if key not in shape}
        core = ecc(curve, design, **others, **({"shape": Shape(**shape)} if shape else {}))
        folder = tmp_path_factory.mktemp(name)
        _MADE[name] = core, compiled(core, folder), folder
    core, library, _ = _MADE[name]
    return Calls(core, library, StandIn(core))


def on(*names):
    return pytest.mark.parametrize("calls", names, indirect=True)


@on(*CORES)
def test_they_compile_without_a_warning_for_rv32i(calls):
    """Nothing but the driver and memcpy or memset is missing in the object."""
    core, _, folder = _MADE[next(name for name, made in _MADE.items() if made[0] is calls.core)]
    target = ("-target", "riscv32-freestanding", "-mcpu=generic_rv32")
    done = subprocess.run(
        [*ZIG, *STRICT, *target, "-c", "ecc_calls.c", "-o", "calls.o"], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert b"__mul" not in (folder / "calls.o").read_bytes()
    assert len(core.calls.operations) == len(core.jobs)


@on("x25519")
def test_the_example_of_the_docs_compiles(calls, tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "buses.md").read_text()
    (example,) = re.findall(r'^```c\n(#include "ecc_calls.h".*?)^```', page, re.DOTALL | re.MULTILINE)
    declared = "int shared(uint8_t *secret, const uint8_t *scalar, const uint8_t *peer);\n"
    for name, text in descriptions(described(calls.core), BUS).items():
        (tmp_path / name).write_text(text)
    (tmp_path / "example.c").write_text(example.replace("static ecc_engine", declared + "static ecc_engine"))
    done = subprocess.run(
        [*ZIG, *STRICT, "-Wno-array-parameter", "-c", "example.c", "-o", "example.o"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@on("ed25519")
def test_a_planted_error_of_the_recoding_is_caught(calls, tmp_path):
    """One more is added to a scalar before it is split into windows: another job than Python's."""
    core = calls.core
    run = sample(core.curve, "multiply", core.bits, 5)[4][0]
    for text in ("ecc.h", "ecc.c", "ecc_calls.h", "ecc_calls.c"):
        (tmp_path / text).write_text(descriptions(described(core), BUS)[text])
    source = (tmp_path / "ecc_calls.c").read_text()
    wrong = source.replace(
        "carry += (uint64_t)*sum + (*number++ & mask);", "carry += 1u + (uint64_t)*sum + (*number++ & mask);"
    )
    assert wrong != source
    (tmp_path / "ecc_calls.c").write_text(wrong)
    planted = Calls(core, linked(tmp_path), StandIn(core))
    planted.bus.run = lambda number, held, part: (0, 1)
    planted.many("multiply", [(run[0], {**run[1], BLIND: 1})])
    assert [m for m in planted.bus.messages if m[0]] != [core.job("multiply", [(run[0], {**run[1], BLIND: 1})] * 2)]


@on(*CORES)
def test_jobs_have_the_words_of_python(calls):
    """Edge scalars and random ones; a job is filled with its last run."""
    core, rnd = calls.core, random.Random(3)
    threads, front = core.layout.threads, calls.bus
    answers = {}
    front.run = lambda number, held, part: answers.get(part) or [0] * len(held.instructions.program.results)
    for operation in core.operations:
        runs = [run for run, _ in sample(core.curve, operation, core.bits, 8)]
        runs += [drawn(core.curve, operation, core.bits, rnd) for _ in range(13)]
        if operation == "multiply-two":
            n = core.curve.n
            runs += [((a, b), runs[3][1]) for a in (0, 1, n - 1) for b in (0, 1, 2, n // 2, n - 2, n - 1)]
        else:
            runs += [((k,), runs[3][1]) for k in (2, core.curve.n + 1, 1 << core.bits - 1) if k >> core.bits == 0]
        runs = [(scalars, {**numbers, BLIND: 1} if BLIND in numbers else numbers) for scalars, numbers in runs]
        front.messages.clear()
        error, _ = calls.many(operation, runs)
        assert error in (0, NEUTRAL, RESULT)
        if error == RESULT:  # of an Edwards curve the stand-in's zeros are no point
            assert core.calls.form == "edwards"
        wanted = []
        for at in range(0, len(runs), threads):
            batch = runs[at : at + threads]
            wanted.append(core.job(operation, batch + batch[-1:] * (threads - len(batch))))
        assert [m for m in front.messages if m[0]] == wanted


@on("p256", "p384", "secp256k1", "joint", "ed25519", "x25519", "x448")
def test_results(calls):
    """Multiples by the core's own instructions; the blinding factor is that of the caller."""
    core, curve, rnd = calls.core, calls.core.curve, random.Random(5)
    calls.engine.blind[:] = words(core.calls.words, 12345)[:]
    for operation in core.operations:
        runs = [drawn(curve, operation, core.bits, rnd) for _ in range(2)]
        assert calls.many(operation, runs) == (0, [expected(curve, operation, run) for run in runs])


def random_engine(seed):
    """An engine for a small random curve, of any form, with random windows, threads and lengths."""
    rnd = random.Random(seed)
    while True:
        case = draw(rnd)
        options = {name: x for name, x in case.arguments if name in ("operations", "bits", "shape", "sums", "threads")}
        with contextlib.suppress(UnsupportedError):
            if case.kind == "ecc":
                core = ecc(case.curve, "montgomery-array", **options)
                assert core.calls
                return core


@pytest.mark.parametrize("seed", range(6))
def test_engines_of_any_shape(seed, tmp_path):
    """Each job is that of Python, and each result the multiple."""
    core = random_engine(seed)
    calls, rnd = Calls(core, compiled(core, tmp_path), StandIn(core)), random.Random(seed)
    for operation in core.operations:
        runs = [run for run, _ in sample(core.curve, operation, core.bits, 6)]
        runs += [drawn(core.curve, operation, core.bits, rnd) for _ in range(6)]
        for scalars, numbers in runs:
            run = scalars, {**numbers, BLIND: 1} if BLIND in numbers else numbers
            calls.bus.messages.clear()
            error, results = calls.many(operation, [run])
            assert error in (0, NEUTRAL) and results == [expected(core.curve, operation, run)]
            jobs = [message for message in calls.bus.messages if message[0]]
            assert jobs == [core.job(operation, [run] * core.layout.threads)]


@on("p256", "x25519")
def test_refusals_before_the_engine(calls):
    core, curve = calls.core, calls.core.curve
    operation = core.operations[0]
    runs = [run for run, _ in sample(curve, operation, core.bits, 2)]
    coordinate = "u" if operation == "ladder" else "x"
    jobs = len(calls.bus.messages)
    for value, error in ((curve.p, RANGE), (runs[0][1][coordinate] ^ 1, POINT), (0, POINT)):
        if error != RANGE and operation == "ladder":
            continue
        numbers = {**runs[1][1], coordinate: value, **({"y": 0} if value == 0 else {})}
        found, results = calls.many(operation, [runs[0], (runs[1][0], numbers)])
        assert found == error and not any(map(any, results))
    if core.bits % 32:
        assert calls.many(operation, [((1 << core.bits,), runs[0][1])])[0] == RANGE
    if "multiply-two" in core.operations:
        assert calls.many("multiply-two", [((1, curve.n), runs[0][1])])[0] == RANGE
    for blind in (0, curve.p):
        calls.engine.blind[:] = words(core.calls.words, blind)[:]
        assert calls.many(operation, runs)[0] == RANGE
    assert len(calls.bus.messages) == jobs


def flipped(operation, bit=0):
    """A fault that flips a bit of the first result of an operation."""

    def fault(name, numbers):
        return [numbers[0] ^ 1 << bit, *numbers[1:]] if name == operation else numbers

    return fault


@on("p256", "ed25519")
@pytest.mark.parametrize("operation", POINTS)
def test_a_wrong_point_is_not_released(operation, calls):
    run = sample(calls.core.curve, operation, calls.core.bits, 5)[4][0]
    for bit in (0, 100, 32 * calls.core.calls.words):
        calls.bus.fault = flipped(operation, bit)
        error, results = calls.many(operation, [run])
        assert error == RESULT and not any(map(any, results))


@on("p256")
def test_the_modulus_is_loaded_on_demand(calls):
    """Once for many jobs, and again after an error, an abort and a reset."""
    run = sample(calls.core.curve, "multiply-base", 256, 5)[4][0]
    front = calls.bus
    count = lambda: sum(m[0] == 0 for m in front.messages)  # noqa: E731
    for _ in range(2):
        assert calls.many("multiply-base", [run])[0] == 0
    assert count() == 1
    calls.library.ecc_abort(ctypes.byref(calls.engine))
    assert calls.many("multiply-base", [run])[0] == 0 and count() == 2
    work, calls.engine.patience, front.work = front.work, 10, lambda: None
    assert calls.many("multiply-base", [run]) == (TIMEOUT, [(0, 0)])
    front.work = work
    assert calls.many("multiply-base", [run])[0] == 0 and count() == 3


RFC_7748 = {
    "x25519": (
        "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
        "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
        "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
    ),
    "x448": (
        "3d262fddf9ec8e88495266fea19a34d28882acef045104d0d1aae121700a779c984c24f8cdd78fbff44943eba368f54b29259a4f1c600ad3",
        "06fce640fa3487bfda5f6cf2d5263f8aad88334cbd07437f020f08f9814dc031ddbdc38c19c6da2583fa5429db94ada18aa7a7fb4ef8a086",
        "ce3e4ff95a60dc6697da1db1d85e6afbdf79b50a2412d7546d5f239fe14fbaadeb445fc66a01b0779d98223961111e21766282f73dd96b6f",
    ),
}


@on("x25519", "x448")
def test_the_vectors_of_rfc_7748(calls):
    name = calls.core.calls.x
    size = calls.core.curve.size
    scalar, u, wanted = map(bytes.fromhex, RFC_7748[name])
    assert calls.bytes(name, [size], scalar, u) == (0, wanted)
    above = (calls.core.curve.p + 1).to_bytes(size, "little")  # u = 1, of small order
    assert calls.bytes(name, [size], scalar, above) == (NEUTRAL, bytes(size))


def pair(curve, rnd):
    """A private key and its public point as bytes."""
    d = rnd.randrange(1, curve.n)
    x, y = multiples(curve, [(d, curve.base)])
    return d, x.to_bytes(curve.size, "big") + y.to_bytes(curve.size, "big")


@on("p256", "p384", "p521")
def test_ecdh(calls):
    curve, rnd = calls.core.curve, random.Random(7)
    size = curve.size
    order = -(-curve.n.bit_length() // 8)
    (a, A), (b, _) = pair(curve, rnd), pair(curve, rnd)
    shared = multiples(curve, [(a * b % curve.n, curve.base)])[0].to_bytes(size, "big")
    assert calls.bytes("ecdh", [size], b.to_bytes(order, "big"), A) == (0, shared)
    assert calls.bytes("public", [2 * size], a.to_bytes(order, "big")) == (0, A)
    for wrong in (0, curve.n):
        assert calls.bytes("ecdh", [size], wrong.to_bytes(order, "big"), A) == (RANGE, bytes(size))
        assert calls.bytes("public", [2 * size], wrong.to_bytes(order, "big")) == (RANGE, bytes(2 * size))
    off = A[:-1] + bytes([A[-1] ^ 1])
    beyond = curve.p.to_bytes(size, "big") + A[size:]
    for peer, error in ((off, POINT), (beyond, RANGE), (bytes(2 * size), NEUTRAL)):
        assert calls.bytes("ecdh", [size], b.to_bytes(order, "big"), peer) == (error, bytes(size))


CURVES = {"P-256": ec.SECP256R1, "secp256k1": ec.SECP256K1, "P-521": ec.SECP521R1}


def verified(curve, Q, hashed, r, s):
    """Whether `cryptography` accepts a signature of a SHA-256."""
    key = ec.EllipticCurvePublicKey.from_encoded_point(CURVES[curve.name](), b"\4" + Q)
    signature = utils.encode_dss_signature(int.from_bytes(r, "big"), int.from_bytes(s, "big"))
    key.verify(signature, hashed, ec.ECDSA(utils.Prehashed(hashes.SHA256())))
    return True


def signing(curve, rnd):
    """Sizes of r and s, arguments of a signature, the public key, the hash."""
    order = -(-curve.n.bit_length() // 8)
    d, Q = pair(curve, rnd)
    hashed = hashlib.sha256(b"message").digest()
    k = rnd.randrange(1, curve.n)
    return [order, order], [hashed, len(hashed), d.to_bytes(order, "big"), k.to_bytes(order, "big")], Q, hashed


@on("p256", "secp256k1", "p521")
def test_signatures(calls):
    curve = calls.core.curve
    sizes, given, Q, hashed = signing(curve, random.Random(11))
    error, r, s = calls.bytes("ecdsa_sign", sizes, *given)
    assert error == 0 and verified(curve, Q, hashed, r, s)
    assert calls.bytes("ecdsa_verify", [], r, s, hashed, len(hashed), Q) == (0,)
    zero, order = bytes(sizes[0]), curve.n.to_bytes(sizes[0], "big")
    wrong = [(r, s[:-1] + bytes([s[-1] ^ 1])), (zero, s), (r, zero), (order, s), (r, order)]
    for one, other in wrong:
        assert calls.bytes("ecdsa_verify", [], one, other, hashed, len(hashed), Q) == (RESULT,)
    assert calls.bytes("ecdsa_verify", [], r, s, hashed[::-1], len(hashed), Q) == (RESULT,)
    off = Q[:-1] + bytes([Q[-1] ^ 1])
    assert calls.bytes("ecdsa_verify", [], r, s, hashed, len(hashed), off) == (POINT,)


@on("p256", "p521")
def test_a_longer_hash_is_cut(calls):
    """72 bytes: the leftmost bits count, as many as n has."""
    curve, rnd = calls.core.curve, random.Random(13)
    sizes, given, _, _ = signing(curve, rnd)
    long = rnd.randbytes(72)
    error, r, s = calls.bytes("ecdsa_sign", sizes, long, 72, *given[2:])
    z = int.from_bytes(long, "big") >> 8 * 72 - curve.n.bit_length()
    d, k = (int.from_bytes(x, "big") for x in given[2:])
    R = int.from_bytes(r, "big")
    assert error == 0 and multiples(curve, [(k, curve.base)])[0] % curve.n == R
    assert int.from_bytes(s, "big") == pow(k, -1, curve.n) * (z + R * d) % curve.n


@on("p256")
@pytest.mark.parametrize("operation", ["multiply-base", "signature", "quotients", "multiply-two"])
def test_a_signature_with_a_fault_is_not_released(operation, calls):
    sizes, given, _, _ = signing(calls.core.curve, random.Random(17))
    calls.bus.fault = flipped(operation, 3)
    assert calls.bytes("ecdsa_sign", sizes, *given) == (RESULT, bytes(32), bytes(32))


@on("p256")
def test_another_point_of_the_curve_is_not_signed_with(calls):
    """A fault that gives k G a wrong value on the curve is found by the verification."""
    curve = calls.core.curve
    sizes, given, _, _ = signing(curve, random.Random(19))
    wrong = multiples(curve, [(5, curve.base)])
    calls.bus.fault = lambda name, numbers: [*wrong, *numbers[2:]] if name == "multiply-base" else numbers
    assert calls.bytes("ecdsa_sign", sizes, *given) == (RESULT, bytes(32), bytes(32))


@on("p256")
def test_zero_is_no_signature(calls):
    sizes, given, _, _ = signing(calls.core.curve, random.Random(23))
    calls.bus.fault = lambda name, numbers: [0] * len(numbers) if name == "signature" else numbers
    assert calls.bytes("ecdsa_sign", sizes, *given) == (NONCE, bytes(32), bytes(32))
    assert calls.library.ecc_check_scalar(given[2]) == 0
    for beyond in (bytes(32), calls.core.curve.n.to_bytes(32, "big"), b"\xff" * 32):
        assert calls.library.ecc_check_scalar(beyond) == RANGE
    for place in (2, 3):
        wrong = [bytes(32) if k == place else x for k, x in enumerate(given)]
        assert calls.bytes("ecdsa_sign", sizes, *wrong) == (RANGE, bytes(32), bytes(32))


@on("no-two")
def test_without_verification_the_name_says_so(calls):
    curve = calls.core.curve
    sizes, given, Q, hashed = signing(curve, random.Random(29))
    error, r, s = calls.bytes("ecdsa_sign_unverified", sizes, *given)
    assert error == 0 and verified(curve, Q, hashed, r, s)
    assert not hasattr(calls.library, "ecc_ecdsa_sign") and not hasattr(calls.library, "ecc_ecdsa_verify")


@on("p256")
def test_secrets_are_overwritten(calls):
    sizes, given, _, _ = signing(calls.core.curve, random.Random(31))
    assert calls.bytes("ecdsa_sign", sizes, *given)[0] == 0
    assert not any(calls.engine.words)


def test_numbers_that_are_not_binary_have_no_calls():
    core = ecc("P-256", "hbe", threads=1)
    device = described(core)
    assert core.calls is None and "ecc_calls.h" not in descriptions(device, BUS)
    assert "not binary" in section(device, BUS)


def simulated(core, folder):
    """The calls on the simulated bus.v."""
    device = core.device
    text = bus_texts(device, BUS, core.verilog)["bus.v"]
    bus = BusSimulator(text, device, BUS)

    class Port:
        def read(self, offset):
            word, refused = bus.read(offset)
            assert not refused
            return word

        def write(self, offset, word):
            assert not bus.write(offset, word)

    return Calls(core, compiled(core, folder, device), Port())


def test_x25519_on_the_simulated_bus(tmp_path):
    calls = simulated(ecc("Curve25519", "pseudo-mersenne", bus="wishbone"), tmp_path)
    scalar, u, wanted = map(bytes.fromhex, RFC_7748["x25519"])
    assert calls.bytes("x25519", [32], scalar, u) == (0, wanted)


def test_a_signature_on_the_simulated_bus(tmp_path):
    core = ecc("P-256", "montgomery-array", operations=("multiply-base", "multiply-two"), order=True, bus="wishbone")
    calls = simulated(core, tmp_path)
    sizes, given, Q, hashed = signing(core.curve, random.Random(37))
    error, r, s = calls.bytes("ecdsa_sign", sizes, *given)
    assert error == 0 and verified(core.curve, Q, hashed, r, s)
    assert calls.bytes("ecdsa_verify", [], r, s, hashed, len(hashed), Q) == (0,)


def ed25519(calls, seed, message):
    """(error, signature, public key) of a message by the calls."""
    error, key = calls.bytes("ed25519_public", [32], seed)
    signed, signature = calls.bytes("ed25519_sign", [64], message, len(message), seed)
    return error or signed, signature, key


@on("ed25519")
@pytest.mark.parametrize("size", [0, 1, 47, 48, 63, 64, 79, 80, 200, 1023])
def test_ed25519_signs_and_verifies_as_another_library_does(size, calls):
    """Lengths at which a hash input fills a block or its length needs another one."""
    rnd = random.Random(size)
    seed, message = rnd.randbytes(32), rnd.randbytes(size)
    key = Ed25519PrivateKey.from_private_bytes(seed)
    public = key.public_key().public_bytes_raw()
    assert ed25519(calls, seed, message) == (0, key.sign(message), public)
    assert calls.bytes("ed25519_verify", [], key.sign(message), message, size, public) == (0,)
    for at in (0, 31, 32, 40):
        wrong = bytearray(key.sign(message))
        wrong[at] ^= 1
        assert calls.bytes("ed25519_verify", [], bytes(wrong), message, size, public) == (RESULT,)
    assert calls.bytes("ed25519_verify", [], key.sign(message), message + b"x", size + 1, public) == (RESULT,)


@on("ed25519")
def test_an_ed25519_signature_has_one_form(calls):
    """S + n is refused, and as a public key a y that is not below p, one without an x, and x = 0 with a sign."""
    curve, message, key = calls.core.curve, b"message", Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    public, signature = key.public_key().public_bytes_raw(), key.sign(message)
    longer = signature[:32] + (int.from_bytes(signature[32:], "little") + curve.n).to_bytes(32, "little")
    assert calls.bytes("ed25519_verify", [], longer, message, 7, public) == (RESULT,)
    alone = next(y for y in range(2, 20) if not encodes(curve, y))
    for y in (curve.p, curve.p + 1, alone, 1 | 1 << 255, curve.p - 1 | 1 << 255):
        assert calls.bytes("ed25519_verify", [], signature, message, 7, y.to_bytes(32, "little")) == (POINT,)
    for y in (1, 3):  # points, of which the first is the neutral element
        assert encodes(curve, y)
        assert calls.bytes("ed25519_verify", [], signature, message, 7, y.to_bytes(32, "little")) == (RESULT,)


def encodes(curve, y):
    """Whether a number encodes a point."""
    try:
        decode_edwards(curve, y.to_bytes(32, "little"))
    except ValueError:
        return False
    return True


@on("ed25519")
@pytest.mark.parametrize("operation", ["multiply-base", "multiply-add", "multiply-two"])
def test_an_ed25519_signature_with_a_fault_is_not_released(operation, calls):
    calls.bus.fault = flipped(operation, 3)
    assert calls.bytes("ed25519_sign", [64], b"message", 7, bytes(range(32))) == (RESULT, bytes(64))


@on("ed25519")
def test_another_point_is_not_signed_with(calls):
    """A fault that gives r B a wrong value on the curve is found by the verification."""
    curve = calls.core.curve
    wrong = multiples(curve, [(5, curve.base)])
    calls.bus.fault = lambda name, numbers: [*wrong, *numbers[2:]] if name == "multiply-base" else numbers
    assert calls.bytes("ed25519_sign", [64], b"message", 7, bytes(range(32))) == (RESULT, bytes(64))
