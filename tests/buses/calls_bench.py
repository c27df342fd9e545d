# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The calls in C as a library of this machine, on a stand-in for the front or on a simulated bus.

A stand-in answers at the registers as a front does: `StandIn` by the instructions of a core for a curve, interpreted on
integers, `PowerStandIn` by powers of integers.
"""

import ctypes
import random
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from modmill.buses.adapters import find_bus
from modmill.buses.device import Device
from modmill.buses.files import bus_texts, descriptions
from modmill.buses.registers import register_map
from modmill.buses.simulate import BusSimulator
from modmill.cores.behind_bus import multiplier_device
from modmill.cores.ecc.machine import EccCore, ecc
from modmill.cores.multiplier.build import Core
from modmill.cores.rsa.machine import EngineCore
from modmill.engines.ecc.point_engine import Shape
from modmill.engines.machine.layout import words_of
from modmill.engines.microcode.interpreter import run as interpreted
from modmill.engines.rsa.exponentiation import PUBLIC

BUS = find_bus("wishbone")
STRICT = ("-std=c99", "-pedantic", "-O2", "-Wall", "-Wextra", "-Werror", "-Wconversion", "-Wshadow")
ZIG = (sys.executable, "-m", "ziglang", "cc")
GCC = {"here": ("gcc",), "rv32i": ("riscv64-unknown-elf-gcc", "-march=rv32i", "-mabi=ilp32", "-ffreestanding")}
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
#define {0}_READ32(device, offset) ((void)(device), bus_read(offset))
#define {0}_WRITE32(device, offset, word) ((void)(device), bus_write((offset), (word)))
"""
POINTS = ("multiply", "multiply-base", "multiply-two")
KEY = ("n", "e", "p", "q", "d_p", "d_q", "q_inverse")


def described(core: EccCore | EngineCore | Core) -> Device:
    """The device of a core, without its Verilog."""
    digest = "sha256:" + "12345678" * 8
    if isinstance(core, Core):
        return multiplier_device(core.fitted, core.contract, core.top, digest, calls=core.calls)
    commands, bits, lay = core.commands, core.fitted.p.bit_length(), core.layout
    return Device(core.KIND, core.top, digest, bits, lay.number_words, lay.threads, commands, calls=core.calls)


def compiled(core, folder, device=None):
    """The calls and the driver as a library of this machine."""
    for name, text in descriptions(device or described(core), BUS).items():
        (folder / name).write_text(text)
    return linked(folder, core.top)


def compiles(folder, *words):
    """The compiler of the tests takes these words without a warning."""
    done = subprocess.run([*ZIG, *STRICT, *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def compiles_for_rv32i(folder, top):
    """The calls compile for RISC-V, and need no multiplication from a library."""
    compiles(folder, "-target", "riscv32-freestanding", "-mcpu=generic_rv32", "-c", f"{top}_calls.c", "-o", "calls.o")
    assert b"__mul" not in (folder / "calls.o").read_bytes()


def compiles_with_gcc(machine, folder, *files):
    """GCC for this machine or for RV32I takes these files without a warning."""
    command = GCC[machine]
    if not shutil.which(command[0]):
        pytest.skip(f"needs {command[0]}")
    for file in files:
        done = subprocess.run(
            [*command, *STRICT, "-c", file, "-o", "gcc.o"], cwd=folder, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr


def documented_example_compiles(core, bus, folder, declared, *options):
    """The example of docs/buses.md for these calls compiles. ``declared``: the prototype of its function."""
    page, top = (Path(__file__).parents[2] / "docs" / "buses.md").read_text(), core.top
    (example,) = re.findall(rf'^```c\n(#include "{top}_calls.h".*?)^```', page, re.DOTALL | re.MULTILINE)
    for name, text in descriptions(described(core), bus).items():
        (folder / name).write_text(text)
    first = f"static {top}_engine"
    (folder / "example.c").write_text(example.replace(first, f"{declared};\n{first}"))
    compiles(folder, *options, "-c", "example.c", "-o", "example.o")


def linked(folder, top="ecc"):
    """The library of the files in a folder; undefined behaviour ends the process."""
    (folder / "hooks.h").write_text(HOOKS.format(top.upper()))
    (folder / "hooks.c").write_text("uint32_t (*bus_read)(uint32_t);\nvoid (*bus_write)(uint32_t, uint32_t);\n")
    traps = ("-fsanitize=undefined", "-fsanitize-trap=undefined")
    command = [*ZIG, *STRICT, *traps, "-shared", "-fPIC", "-include", "hooks.h", "hooks.c"]
    subprocess.run([*command, f"{top}.c", f"{top}_calls.c", "-o", "calls.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "calls.so"))


@dataclass
class _Front:
    """A front at its registers. ``messages``: those received. ``fault``: edits the numbers of an answer."""

    core: EccCore | EngineCore | Core
    messages: list = field(default_factory=list)
    fault: object = None
    loaded: int = 0

    def __post_init__(self):
        self.device = described(self.core)
        self.map = register_map(self.device)
        self.at = {r.offset: r.name for r in self.map.registers}
        self.commands = {c.number: c for c in self.device.commands}
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
        number, *words = message = self.message
        command = self.commands[number]
        assert len(words) == (command.counted.words(words[0]) if command.counted else command.words)
        self.messages.append(message)
        self.message = []
        if number == 0:
            self.loaded = self.modulus(message)
            return
        numbers = self.numbers(number, words)
        if self.fault:
            numbers = self.fault(command.name, numbers)
        self.answer = self.words(numbers)

    def words(self, numbers):
        """The answer with these results."""
        return [w for x in numbers for w in words_of(x, self.core.layout.number_words, 32)]


class StandIn(_Front):
    """A front of a core for a curve."""

    def modulus(self, message):
        """The modulus that a message loads."""
        return {tuple(self.core.setup(h.modulus)): h.modulus for h in self.core.held}[tuple(message)]

    def numbers(self, command, words):
        """The results of a job."""
        held, lay = self.core.held[command - 1], self.core.layout
        assert self.loaded == held.modulus
        known, numbers = {}, []
        each = len(words) // lay.threads
        for k in range(0, len(words), each):
            part = tuple(words[k : k + each])
            if part not in known:
                known[part] = self.run(command - 1, held, part)
            numbers += known[part]
        return numbers

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


class PowerStandIn(_Front):
    """A front of an engine for powers that can load the ``moduli``."""

    moduli = ()

    def modulus(self, message):
        """The modulus that a message loads."""
        return next(p for p in self.moduli if self.core.setup(self.core.at(p)) == message)

    def numbers(self, command, words):
        """The powers of a job."""
        lay, program = self.core.layout, self.core.layout.powers[command - 1].program
        (passes, size), found = words[:2], []
        if command == 1 and self.core.blinding:  # here by nothing, which the powers do not show
            assert 1 <= passes <= lay.digit_words(0) and size == self.core.blinding.scalar_words(32)
            each = size + lay.number_words
            parts = [words[at : at + each] for at in range(2, len(words), each)]
            return [pow(number(part[size:]), number(part[:size]), self.loaded) for part in parts]
        assert passes or not size
        count = sum(i.advance for i in program.loop) * passes + 1 if size else 0
        each = size + lay.number_words
        for at in range(2, len(words), each):
            part = words[at : at + each]
            exponent = PUBLIC if command == 2 else 0
            for k in range(count):
                digit = part[k // lay.per_word] >> lay.digit_bits * (k % lay.per_word) & (1 << program.window) - 1
                exponent = exponent << program.window | digit ^ (exponent & 1 if program.gray else 0)
            if program.gray:  # the digits are the Gray code of twice the exponent
                assert exponent & 1 == 0
                exponent >>= 1
            found.append(pow(number(part[size:]), exponent, self.loaded))
        return found


class ProductStandIn(_Front):
    """A front of a multiplier that can load the ``moduli``: results are any within the bound, in any representation."""

    moduli = ()
    rnd = random.Random(9)

    def __post_init__(self):
        super().__post_init__()
        self.contract, self.known = self.core.contract, {}

    def modulus(self, message):
        """The modulus that a message loads."""
        for p in self.moduli:
            if p not in self.known:
                fitted = self.core.fitted if p == self.core.fitted.p else self.core.fitted.at(p)
                self.known[p] = fitted.contract(self.core.io)
            load = self.known[p].load
            if message[1:] == [w for word in load.words for w in words_of(word, -(-load.width // 32), 32)]:
                self.contract = self.known[p]
                return p
        raise AssertionError("another message than any modulus has")

    def numbers(self, command, words):
        """Port value of the result."""
        contract, half = self.contract, len(words) // 2
        ports = number(words[:half]), number(words[half:])
        a, b = (contract.operand.decode(port) for port in ports)
        assert (contract.operand.encode(a), contract.operand.encode(b)) == ports
        assert max(a, b) < contract.p
        most = (contract.result_bound * contract.p - contract.expect(a, b) - 1) // contract.p
        times = self.rnd.choice([0, most, self.rnd.randrange(most + 1)])
        return [contract.result.any(contract.expect(a, b) + times * contract.p, self.rnd)]

    def words(self, numbers):
        return words_of(numbers[0], self.commands[1].answer, 32)


class _Library:
    """The calls on a stand-in, or on a simulated bus; an engine's structure ends with ``fields``."""

    def __init__(self, core, library, bus, fields):
        self.core, self.library, self.bus, self.c = core, library, bus, core.calls
        self.kept = Read(bus.read), Write(bus.write)
        for name, hook in zip(("bus_read", "bus_write"), self.kept, strict=True):
            ctypes.c_void_p.in_dll(library, name).value = ctypes.cast(hook, ctypes.c_void_p).value
        driver = [("base", ctypes.c_void_p), ("patience", ctypes.c_uint32), ("failed", ctypes.c_int)]
        driver += [("key", ctypes.c_uint32), ("_", ctypes.c_uint32)] * bool(getattr(core, "key_slots", 0))  # padded
        self.engine = structure(*driver, *fields)()
        assert self.call("engine_open", None) == 0

    def call(self, name, *arguments):
        return self.plain(name, ctypes.byref(self.engine), *arguments)

    def plain(self, name, *arguments):
        """Call a function that takes no engine."""
        return getattr(self.library, f"{self.core.top}_{name}")(*arguments)


def structure(*fields):
    """A structure in C; an integer is a number of words."""
    made = [(name, ctypes.c_uint32 * kind if isinstance(kind, int) else kind) for name, kind in fields]
    return type("Structure", (ctypes.Structure,), {"_fields_": made})


class Calls(_Library):
    """The calls of a core for a curve."""

    def __init__(self, core, library, bus):
        c = core.calls
        blind = [] if c.draws else [("blind", c.words)]
        super().__init__(core, library, bus, [("loaded", ctypes.c_int), *blind, ("words", c.job_words)])

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
    "halves": ("secp256k1", "montgomery-array", {"operations": POINTS, "threads": 2, "endomorphism": True}),
    "no-two": ("P-256", "montgomery-array", {"operations": ("multiply-base",), "order": True, "threads": 2}),
    "p521": ("P-521", "montgomery-array", {"operations": POINTS, "order": True, "threads": 1}),
    "ed25519": ("Ed25519", "montgomery-array", {"operations": POINTS, "order": True, "threads": 2}),
    "ed448": ("Ed448", "montgomery-array", {"operations": POINTS, "order": True, "threads": 1}),
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
        shape = {key: options[key] for key in ("window", "teeth", "columns", "joint", "endomorphism") if key in options}
        others = {key: value for key, value in options.items() if key not in shape}
        core = ecc(curve, design, **others, **({"shape": Shape(**shape)} if shape else {}))
        folder = tmp_path_factory.mktemp(name)
        _MADE[name] = core, compiled(core, folder), folder
    core, library, _ = _MADE[name]
    return Calls(core, library, StandIn(core))


def on(*names):
    return pytest.mark.parametrize("calls", names, indirect=True)


def flipped(operation, bit=0):
    """A fault that flips a bit of the first result of an operation."""

    def fault(name, numbers):
        return [numbers[0] ^ 1 << bit, *numbers[1:]] if name == operation else numbers

    return fault


class Powers(_Library):
    """The calls of an engine for powers."""

    def __init__(self, core, library, bus):
        c = core.calls
        super().__init__(core, library, bus, [("loaded", c.words), ("words", c.most_words)])
        number = c.words
        self.modulus_type = structure(
            ("number", number), ("enter", number), ("square", number), ("minus_inverse", ctypes.c_uint64)
        )
        self.key_type = structure(
            ("bytes", ctypes.c_size_t), ("bits", ctypes.c_size_t), ("n", c.rsa_words), ("enter", c.rsa_words),
            ("e", c.public_words), ("minus_inverse", ctypes.c_uint64), ("p", self.modulus_type),
            ("q", self.modulus_type), ("d_p", number), ("d_q", number), ("q_inverse", number),
        )  # fmt: skip
        part = structure(("bytes", ctypes.c_char_p), ("size", ctypes.c_size_t))
        self.numbers_type = structure(*((name, part) for name in KEY))

    def modulus(self, p):
        """(error, the prepared modulus)."""
        made = self.modulus_type()
        return self.plain("modulus_set", ctypes.byref(made), words(self.c.words, p)), made

    def powers(self, modulus, runs, bits=None):
        """(error, powers): (base, exponent) for each; without ``bits`` the exponent is 65537."""
        c, count = self.c, ctypes.c_size_t(len(runs))
        found = words(c.words, *[7] * len(runs))
        given = [ctypes.byref(modulus), count, found, words(c.words, *(base for base, _ in runs))]
        if bits is None:
            error = self.call("modexp_65537_many", *given)
        else:
            exponents = words(c.exponent_words, *(exponent for _, exponent in runs))
            error = self.call("modexp_many", *given, exponents, ctypes.c_size_t(bits))
        return error, [number(found[k : k + c.words]) for k in range(0, len(found), c.words)]

    def product(self, modulus, a, b):
        """(error, a b modulo the modulus)."""
        found = words(self.c.words, 7)
        given = [words(self.c.words, x) for x in (a, b)]
        return self.plain("modmul", ctypes.byref(modulus), found, *given), number(found)

    def key(self, numbers, *, private=True, spare=0):
        """(error, key) from the numbers of `KEY` by name, with ``spare`` zeros before each."""
        made, given = self.key_type(), self.numbers_type()
        for name in KEY:
            text = bytes(spare) + numbers[name].to_bytes(-(-numbers[name].bit_length() // 8) or 1, "big")
            part = getattr(given, name)
            part.bytes, part.size = text, len(text)
        name = "rsa_private_key" if private else "rsa_public_key"
        return self.plain(name, ctypes.byref(made), ctypes.byref(given)), made

    def private(self, key, x, random):
        """(error, x^d mod n)."""
        out = ctypes.create_string_buffer(b"\7" * key.bytes, key.bytes)
        error = self.call("rsa_private", ctypes.byref(key), out, x.to_bytes(key.bytes, "big"), random)
        return error, int.from_bytes(out.raw, "big")

    def public(self, key, x):
        """(error, x^e mod n)."""
        out = ctypes.create_string_buffer(b"\7" * key.bytes, key.bytes)
        error = self.plain("rsa_public", ctypes.byref(key), out, x.to_bytes(key.bytes, "big"))
        return error, int.from_bytes(out.raw, "big")


class Products(_Library):
    """The calls of a multiplier."""

    def __init__(self, core, library, bus):
        c = core.calls
        super().__init__(core, library, bus, [("loaded", c.words)] * bool(c.loading) + [("words", c.most_words)])
        self.modulus_type = structure(("number", c.words), ("square", c.words), ("minus_inverse", ctypes.c_uint64))

    def modulus(self, p):
        """(error, the prepared modulus), for a multiplier whose modulus is loaded."""
        made = self.modulus_type()
        return self.plain("modulus_set", ctypes.byref(made), words(self.c.words, p)), made

    def product(self, a, b, modulus=None):
        """(error, result)."""
        found, given = words(self.c.words, 7), [ctypes.byref(modulus)] if modulus else []
        error = self.call("modmul", *given, found, words(self.c.words, a), words(self.c.words, b))
        return error, number(found)


def simulated(core, folder, kind=Calls):
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

    return kind(core, compiled(core, folder, device), Port())
