# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A system with three engines, each behind another bus: X25519, ECDSA on P-256, RSA of 1,024 bits with the CRT.

Firmware in C runs each of them by polling and by interrupt. Sources of the inputs: RFC 7748, Section 5.2; RFC 6979,
Appendix A.2.5 (the message "sample"). The RSA key is new in each run, or made from a seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from math import ceil

from Crypto.Hash import SHA256
from Crypto.PublicKey import ECC, RSA
from Crypto.Signature import DSS, pkcs1_15
from rich.table import Table

from modmill.buses.adapters import find_bus
from modmill.buses.files import VERILOG, bus_texts
from modmill.cores.ecc.machine import EccCore, ecc
from modmill.cores.rsa.machine import EngineCore, engine
from modmill.flow.library import prepare
from modmill.flow.tools import ToolError
from modmill.soc.firmware import SCRIPT, START, compiled
from modmill.soc.fusesoc import NAMES as DESCRIBED
from modmill.soc.fusesoc import described
from modmill.soc.simulate import SystemRun, SystemSimulator
from modmill.soc.system import System, text_of

RSA_BITS = 1024
SCALAR = bytes.fromhex("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4")
U = bytes.fromhex("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c")
SECRET = bytes.fromhex("c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552")
"""X25519 of RFC 7748, Section 5.2, first vector: scalar, u-coordinate, result."""
MESSAGE = b"sample"
D = 0xC9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721
K = 0xA6E3C57DD01ABE90086538398355DD4C3B17AA873382B0F24D6129493D8AAD60
R = 0xEFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716
S = 0xF7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8
"""ECDSA of RFC 6979, Appendix A.2.5, with SHA-256: private key, nonce, signature."""


JOBS = {
    "x25519": ("ladder",), "p256": ("multiply-base", "multiply-base", "signature", "quotients", "multiply-two"),
    "rsa": ("power", "power"),
}  # fmt: skip
"""The jobs of an operation; the last two of p256 verify the signature before it is released."""
TITLES = {"x25519": "X25519", "p256": "ECDSA on P-256", "rsa": f"RSA-{RSA_BITS} with the CRT"}
NAMES = (
    *DESCRIBED, "bench.v", "board.c", "board.h", "demo.c", "data.h", START, SCRIPT,
    "modmill_socket.h", "modmill_uio.h",
    *(f"{top}{end}" for top in JOBS for end in (".c", ".h", "_calls.c", "_calls.h")),
)  # fmt: skip
"""The files of the demonstration."""
MODES = ("polling", "interrupt")


@dataclass(frozen=True)
class Operation:
    """One operation: ``mode`` polling or interrupt, cycles of the processor, interrupts that it took, and the cycles of
    each job from its last word to its first answer, which are those that the engine's schedule states."""

    name: str
    mode: str
    cycles: int
    interrupts: int
    engine: tuple[int, ...]


@dataclass(frozen=True)
class Demo:
    """The system, its firmware, and the data for it. ``seed``: of the RSA key and its random bytes; None: new ones."""

    seed: int | None = None

    @cached_property
    def engines(self) -> tuple[EccCore | EngineCore, ...]:
        """The three engines."""
        both = ("multiply-base", "multiply-two")
        return (
            ecc("X25519", "montgomery-array", threads=1, top="x25519", bus="wishbone"),
            ecc("P-256", "montgomery-array", operations=both, order=True, threads=1, top="p256", bus="axi4-lite"),
            engine("montgomery-array", width=RSA_BITS // 2, bits=RSA_BITS // 2 + 64, threads=2, top="rsa", bus="apb"),
        )

    @cached_property
    def _files(self) -> list[dict[str, str]]:
        """The files of each engine behind its bus. Yosys works on one of them while another one is emitted, and what
        the simulator needs is compiled."""
        with ThreadPoolExecutor() as pool:
            compiling = pool.submit(prepare)
            found = list(pool.map(lambda core: bus_texts(core.device, find_bus(core.bus), core.verilog), self.engines))
            compiling.result()
        return found

    @cached_property
    def system(self) -> System:
        """The system around the engines."""
        found = zip(self.engines, self._files, strict=True)
        return System.of([(core.device, find_bus(core.bus), files[VERILOG]) for core, files in found])

    @cached_property
    def key(self) -> RSA.RsaKey:
        """The RSA key."""
        return (
            RSA.generate(RSA_BITS) if self.seed is None else RSA.generate(RSA_BITS, random.Random(self.seed).randbytes)
        )

    @cached_property
    def padded(self) -> bytes:
        """The message of the RSA signature: the hash with the padding of PKCS #1 v1.5."""
        prefix = bytes.fromhex("3031300d060960864801650304020105000420")
        tail = b"\0" + prefix + sha256(MESSAGE).digest()
        return b"\0\1" + b"\xff" * (RSA_BITS // 8 - 2 - len(tail)) + tail

    @property
    def data(self) -> str:
        """data.h: the inputs of the firmware."""
        key, source = self.key, random.SystemRandom() if self.seed is None else random.Random(self.seed + 1)
        (rsa_calls,) = (
            core.calls.context()["c"] for core in self.engines if isinstance(core, EngineCore) and core.calls
        )
        arrays: Mapping[str, bytes] = {
            "x25519_scalar": SCALAR, "x25519_u": U, "p256_hash": sha256(MESSAGE).digest(),
            "p256_d": _bytes(D, 32), "p256_k": _bytes(K, 32), "rsa_message": self.padded,
            "rsa_random": source.randbytes(rsa_calls.random_bytes),
            **{f"rsa_{name}": _bytes(value) for name, value in (
                ("n", key.n), ("e", key.e), ("p", key.p), ("q", key.q), ("d_p", key.d % (key.p - 1)),
                ("d_q", key.d % (key.q - 1)), ("q_inverse", pow(key.q, -1, key.p)),
            )},
        }  # fmt: skip
        lines = [f"static const uint8_t {name}[] = {{{', '.join(map(str, value))}}};" for name, value in arrays.items()]
        return "\n".join(["/* Inputs, in the order of bytes of their standards. */", *lines, ""])

    @cached_property
    def sources(self) -> dict[str, str]:
        """The files of the firmware, by name."""
        found = {name: text_of(name) for name in (START, "board.c", "demo.c")}
        found |= {"board.h": self.system.rendered("board.h.j2"), SCRIPT: self.system.rendered("link.ld.j2")}
        for files in self._files:
            found |= {name: text for name, text in files.items() if name.endswith((".c", ".h"))}
        return found | {"data.h": self.data}

    @cached_property
    def words(self) -> list[int]:
        """The compiled firmware."""
        return compiled(self.sources)

    def files(self, run: SystemRun) -> dict[str, str]:
        """All files: Verilog, firmware and its words, and FuseSoC's description, which repeats ``run``."""
        return {"bench.v": self.system.bench, **self.sources, **described(self.system, self.words, run)}

    def run(self, progress: Callable[[int], None] | None = None) -> tuple[list[Operation], SystemRun]:
        """Simulate the system. Raises ToolError for a wrong result, and if something does not compile."""
        run = SystemSimulator(self.system).run(self.words, progress=progress)
        return list(self._operations(run)), run

    def _operations(self, run: SystemRun) -> Iterator[Operation]:
        if run.status or run.refused:
            raise ToolError(f"simulation: firmware ended with status {run.status}, {run.refused} accesses were refused")
        lines = [line.split() for line in run.text.splitlines()]
        names = [(core.top, mode) for core in self.engines for mode in MODES]
        if [tuple(line[:2]) for line in lines] != names:
            raise ToolError(f"simulation: the console shows {run.text!r}")
        counted = [(self.engines[device].top, cycles) for device, cycles in run.jobs]
        stated = {core.top: tuple(self._stated(core)) for core in self.engines}
        if counted != [(name, cycles) for name, _ in names for cycles in stated[name]]:
            raise ToolError(f"simulation: the engines took {counted} cycles, by their schedules {stated}")
        for name, mode, cycles, interrupts, result in (line[:5] for line in lines):
            if not self._right(name, result):
                raise ToolError(f"simulation: {name} by {mode}: the result {result} is wrong")
            least = len(stated[name]) if mode == "interrupt" else 0
            if int(interrupts) < least or (int(interrupts) and not least):
                raise ToolError(f"simulation: {name} by {mode} took {interrupts} interrupts")
            yield Operation(name, mode, int(cycles), int(interrupts), stated[name])

    def _stated(self, core: EccCore | EngineCore) -> Iterator[int]:
        """Cycles of the jobs of an operation, by the schedule of its engine."""
        for job in JOBS[core.top]:
            yield core.cycles(job) if isinstance(core, EccCore) else core.cycles(0)

    def _right(self, name: str, result: str) -> bool:
        """Whether a result is right; signatures are verified by another library."""
        try:
            found = bytes.fromhex(result)
        except ValueError:
            return False
        if name == "x25519":
            return found == SECRET
        hashed = SHA256.new(MESSAGE)
        try:
            if name == "p256":
                public = ECC.construct(curve="P-256", d=D).public_key()
                DSS.new(public, "fips-186-3").verify(hashed, found)
                return found == _bytes(R, 32) + _bytes(S, 32)
            pkcs1_15.new(self.key.public_key()).verify(hashed, found)
        except ValueError:
            return False
        return True


def table(found: Sequence[Operation]) -> Table:
    """The operations as a table."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    made.add_column("operation")
    made.add_column("mode")
    for head in ("cycles of the processor", "interrupts", "cycles of the engine"):
        made.add_column(head, justify="right")
    for each in found:
        cycles = f"{sum(each.engine):,} in {len(each.engine)} jobs" if len(each.engine) > 1 else f"{each.engine[0]:,}"
        made.add_row(TITLES[each.name], each.mode, f"{each.cycles:,}", str(each.interrupts), cycles)
    return made


def _bytes(number: int, size: int = 0) -> bytes:
    """A number, the most significant byte first; without ``size`` as short as it is."""
    return number.to_bytes(size or ceil(number.bit_length() / 8), "big")
