# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The calls in C as a library of this machine, on a stand-in for the front or on a simulated bus.

`StandIn` answers at the registers as a front does, by the instructions of the core, interpreted on integers.
"""

import ctypes
import subprocess
import sys
from dataclasses import dataclass, field

import pytest

from modmill.buses.adapters import find_bus
from modmill.buses.device import Device
from modmill.buses.files import bus_texts, descriptions
from modmill.buses.registers import register_map
from modmill.buses.simulate import BusSimulator
from modmill.cores.ecc.machine import EccCore, ecc
from modmill.engines.ecc.point_engine import Shape
from modmill.engines.machine.layout import words_of
from modmill.engines.microcode.interpreter import run as interpreted

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


def flipped(operation, bit=0):
    """A fault that flips a bit of the first result of an operation."""

    def fault(name, numbers):
        return [numbers[0] ^ 1 << bit, *numbers[1:]] if name == operation else numbers

    return fault


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
