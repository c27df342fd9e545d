# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Build a core from a design and a modulus, and write its folder."""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from modmill.buses.adapters import find_bus
from modmill.buses.device import SAME, Device, is_separate
from modmill.buses.files import bus_texts, rows_of, section
from modmill.buses.product_calls import ProductCalls, product_calls
from modmill.contract import Contract, UnsupportedError
from modmill.cores.behind_bus import bus_record, multiplier_device
from modmill.cores.folder import BESIDE, listed, require_former, write_folder
from modmill.cores.multiplier import notebook, operands
from modmill.cores.multiplier.explain import explanation
from modmill.cores.multiplier.verify import SHORT, Report, verify
from modmill.design import IO, Design, DesignInstance
from modmill.designs import design as find_design
from modmill.flow import emit, tools
from modmill.flow.emit import digest, require_name
from modmill.flow.readable import readable
from modmill.flow.simulate import Simulator, loads, widths
from modmill.numbers.moduli import Modulus, parse_modulus
from modmill.numbers.shown import shortened
from modmill.report import packaging, seal, sheet
from modmill.report.recorded import recorded
from modmill.twice import square
from modmill.version import __version__

RECORD = "contract.json"
FILES = ("core.v", RECORD, "vectors.json", "test_core.py", "README.md", *packaging.FILES)
"""Files of a folder, in addition to the FuseSoC file."""
KNOWN = 2
"""Products of a self-test."""
_EMITTING = threading.Lock()  # emission patches Amaranth temporarily


class FaultyCore(RuntimeError):
    """A core with wrong results; the message names the first one and the commands that reproduce it."""


@dataclass(frozen=True)
class Core:
    """A design fitted to a modulus, with its RTL.

    ``given`` holds the parameters that the user set; all others follow from them. ``bus``: name of a bus, behind which
    the core is written too; empty: none. ``stored``: RTL that was read from a
    folder and replaces the RTL that the design emits; ``stored_digest``: that of its netlist. ``verilog`` is the RTL
    without the header of core.v.
    """

    design: Design
    modulus: Modulus
    fitted: DesignInstance
    io: str
    given: Mapping[str, Any] = field(default_factory=dict)
    top: str = "core"
    bus: str = ""
    bus_clock: str = SAME
    stored: str = field(default="", repr=False, compare=False)
    stored_digest: str = field(default="", repr=False, compare=False)

    @cached_property
    def _netlist(self) -> str:
        with _EMITTING:
            return emit.netlist(self.fitted.core(self.io), self.top, self.design.source.part)

    @cached_property
    def verilog(self) -> str:
        """Verilog-2001 of the core, module ``top`` first; all other modules' names begin with that name."""
        return self.stored or readable(self._netlist)

    @cached_property
    def contract(self) -> Contract:
        """Contract of the core: operands, result, factor, timing."""
        return self.fitted.contract(self.io)

    @cached_property
    def digest(self) -> str:
        """Digest of the netlist, by which measured rows are found, with the prefix ``sha256:``."""
        return self.stored_digest or emit.netlist_digest(self._netlist)

    @property
    def name(self) -> str:
        """Design, modulus and io in one word."""
        return f"{self.design.name}-{self.modulus.name or f'{self.modulus.bits}bit'}-{self.io}"

    @property
    def command(self) -> str:
        """The command that makes this core."""
        sets = [word for name, value in self.given.items() for word in ("--set", f"{name}={value}")]
        modulus = self.modulus.name or hex(self.modulus.value)
        top = ["--top", self.top] if self.top != "core" else []
        bus = ["--bus", self.bus] if self.bus else []
        bus += ["--bus-clock", self.bus_clock] if self.bus_clock != SAME else []
        return shlex.join(
            ["modmill", "build", self.design.name, "--modulus", modulus, *sets, "--io", self.io, *top, *bus]
        )

    @cached_property
    def calls(self) -> ProductCalls | None:
        """What a call in C for the product needs; None for a core without one."""
        return product_calls(self.fitted, self.io)

    @property
    def device(self) -> Device:
        """The core as a device behind a bus."""
        return multiplier_device(
            self.fitted, self.contract, self.top, self.digest, self._known, self.calls,
            separate=is_separate(self.bus_clock, self.bus),
        )  # fmt: skip

    @cached_property
    def _known(self) -> list[tuple[int, int, int]]:
        """Port values of the operands and the results of the self-test."""
        pairs = operands.randoms(self.contract, KNOWN, seed=1)
        if self.io == "native":
            return [(a, b, [*self.fitted.trace(a, b)][-1][1]) for a, b in pairs]
        return [(found.a, found.b, found.value) for found in operands.judged(self.contract, pairs)]

    def __repr__(self) -> str:
        t, set_ = self.contract.timing, "".join(f", {name}={value}" for name, value in self.given.items())
        modulus = self.modulus.name or f"a modulus of {self.modulus.bits} bits"
        return f"<Core {self.design.name} for {modulus}, {self.io}{set_}: latency {t.latency}, interval {t.interval}>"

    def _repr_html_(self) -> str:
        """Data sheet, schedule and measured rows, for a notebook."""
        return notebook.html(self)

    def _bus_record(self) -> dict[str, Any]:
        with_calls = self.calls is not None
        return bus_record(find_bus(self.bus), self.top, with_calls=with_calls, clock=self.bus_clock)

    @property
    def measured(self) -> list[dict[str, Any]]:
        """The shipped rows of this core, as entries of its record."""
        bus = find_bus(self.bus) if self.bus else None
        return rows_of(self.device, bus, self.verilog) if bus else recorded(self.digest)

    def record(self) -> dict[str, Any]:
        """Content of contract.json without the digest and the tools' versions."""
        return {
            "modmill": __version__,
            "command": self.command,
            "design": self.design.name,
            "paper": self.design.paper,
            "title": self.design.title,
            "source": str(self.design.source),
            "parameters": dict(self.fitted.settings),
            "given": dict(self.given),
            "top": self.top,
            **({"bus": self._bus_record()} if self.bus else {}),
            "modulus_name": self.modulus.name,
            **({"made_for": hex(self.modulus.value)} if self.contract.p != self.modulus.value else {}),
            "prime": self.modulus.prime,
            **self.contract.describe(),
            **({"once": self._once()} if self.io == "plain" and self.fitted.twice else {}),
            "cost": asdict(self.fitted.cost),
        }

    def _once(self) -> dict[str, int]:
        """Latency and interval of the form that multiplies once."""
        timing = self.fitted.contract("montgomery").timing
        return {"latency": timing.latency, "interval": timing.interval}

    def multiply(self, a: int, b: int = 0) -> int:
        """a * b * factor through the bit-exact algorithm: below result_bound * p for native io, else canonical.

        A core with one operand gives a * factor, whatever ``b``. Raises UnsupportedError for operands that the contract
        does not cover.
        """
        self._require(a, b if self.contract.operands == 2 else 0)
        if self.io == "native":
            return self.fitted.multiply(a, b)
        result = self.fitted.binary_multiply(a, b)
        if self.io == "plain" and self.fitted.twice:
            result = self.fitted.binary_multiply(result, square(self.fitted.contract("montgomery")))
        return result

    def simulate(self, pairs: Iterable[tuple[int, int]], *, gap: float = 0.0, stall: float = 0.0) -> list[int]:
        """Simulate the RTL for pairs of numbers; return the results as numbers. The first call compiles the core.

        For a core with one operand the second number of each pair must be 0. ``gap`` and ``stall`` are the
        probabilities that producer and consumer pause. Raises UnsupportedError for operands that the contract does not
        cover, ToolError if the RTL does not compile or gives fewer results than operands.
        """
        pairs = list(pairs)
        for a, b in pairs:
            self._require(a, b)
        form, c = self.contract.operand, self.contract
        second = [form.encode(b) if c.operands == 2 else b for _, b in pairs]
        run = self._simulator.run([form.encode(a) for a, _ in pairs], second, loads=loads(c), gap=gap, stall=stall)
        if run.violations:
            raise tools.ToolError(f"simulation: {run.violations[0]}")
        return [c.result.decode(r) for r in run.results]

    def explain(self) -> str:
        """Constants, bounds, schedule and an example product, as text."""
        return explanation(self)

    def write(self, folder: str | Path | None = None, *, check: bool = True) -> Path:
        """Check the core, then write core.v, contract.json, vectors.json, test_core.py, README.md, lint.vlt,
        component.xml (IP-XACT) and the FuseSoC file.

        The files are written to a temporary folder, which is then renamed. A folder of a former build is replaced.
        ``check=False`` leaves out the simulation (see `verify.SHORT`) and says so in the files. Returns the folder.
        Raises ValueError if the folder holds anything else, OSError if it cannot be written, FaultyCore if the check
        finds a fault; then nothing is written.
        """
        target = Path(folder) if folder is not None else Path(self.name)
        require_replaceable(target)
        if check:
            self._vouch()
        record = self.record()
        cost = record.pop("cost")
        record |= {
            "digest": digest(self.verilog),
            "netlist": self.digest,
            "build_check": "passed" if check else "none: --no-check",
            "proved": sheet.UNPROVED,
            "cost": cost,
        }
        record["measured"] = self.measured
        record = json.loads(json.dumps(record | {"tools": tools.versions()}))
        texts = self.texts(record, self.verilog)
        write_folder(target, {**texts, RECORD: seal.record_text(seal.sealed(record, texts))})
        return target

    def texts(self, record: Mapping[str, Any], verilog: str) -> dict[str, str]:
        """All files of the folder except contract.json, from that record and the RTL."""
        bus = find_bus(self.bus) if self.bus else None
        return {
            "core.v": sheet.core_text(verilog, record, self.name),
            "vectors.json": json.dumps(self._vectors(record["digest"]), indent=1) + "\n",
            "test_core.py": sheet.render("test_core.py", record, self.name),
            "README.md": sheet.render("README.md", record, self.name)
            + (section(self.device, bus, record["measured"]) if bus else ""),
            **self._package(record).files(),
            **(bus_texts(self.device, bus, verilog) if bus else {}),
        }

    def _package(self, record: Mapping[str, Any]) -> packaging.Package:
        statement, bits = record["statement"], record["modulus_bits"]
        return packaging.Package(
            "core.v", record["top"], record["ports"], sheet.MEANINGS, "test_core", (RECORD, "vectors.json"), self.name,
            record["modmill"], f"{statement}, {bits}-bit modulus, {record['design']} ({record['io']} ports)",
        )  # fmt: skip

    def _vouch(self) -> None:
        """Simulate corners, some random operands and starts. Raises FaultyCore with the first fault."""
        report = Report(self.name)
        verify(self, self.verilog, report, effort=SHORT)
        if report.failures:
            raise FaultyCore(
                f"{self.name} is wrong, so nothing was written ({report.failures[0]}); to examine it: "
                f"{self.command} --no-check -o DIR && modmill check DIR"
            )

    def _require(self, a: int, b: int) -> None:
        c = self.contract
        if a < 0 or b < 0:
            raise UnsupportedError(f"operands must not be negative, got {min(a, b)}")
        if not operands.numbers_covered(c, a, b):
            limit = sheet.multiple(str(c.operand_bound), up=False)
            raise UnsupportedError(
                f"operands must be below {limit}, got numbers of {a.bit_length()} and {b.bit_length()} bits"
            )

    @cached_property
    def _simulator(self) -> Simulator:
        return Simulator(self.verilog, top=self.top, widths=widths(self.contract), power_up=self.contract.power_up)

    def _vectors(self, digest: str) -> dict[str, Any]:
        pairs = operands.corners(self.fitted, self.io)
        pairs += operands.randoms(self.contract, 64, seed=int(digest[7:15], 16))
        two = self.contract.operands == 2
        return {
            "digest": digest,
            "operands": "port values",
            "value": f"a * {'b * ' if two else ''}factor mod the modulus; "
            "o_r is congruent to it and below the bound of contract.json",
            "vectors": [
                {"a": hex(p.a), **({"b": hex(p.b)} if two else {}), "value": hex(p.value)}
                for p in operands.judged(self.contract, pairs)
            ],
        }


def build(
    design: str | Design, modulus: str | int | Modulus, io: str = "plain", top: str = "core", *, bus: str = "",
    bus_clock: str = SAME, **settings: Any,
) -> Core:  # fmt: skip
    """Fit a design to a modulus and make its core.

    ``modulus``: a number, or a text for ``parse_modulus``. ``io``: ``plain`` (operands below p, a b mod p),
    ``montgomery`` (the same with a b R^-1 mod p, of a Montgomery multiplier) or ``native`` (the design's own
    representation). ``settings``: the design's parameters.
    ``top``: name of the Verilog module, and prefix of all other modules' names. ``bus``: a bus, behind which the core
    is written too: axi4-lite, wishbone, apb, ahb-lite or axi-stream. ``bus_clock``: the core's clock there, same or
    separate.
    Raises ValueError (UnsupportedError) for unknown names, and if the design does not support the modulus.
    """
    if io not in IO:
        raise UnsupportedError(f"io must be one of {', '.join(IO)}, not {shortened(io)}")
    require_name(top)
    is_separate(bus_clock, bus)
    if bus:
        find_bus(bus)
    chosen = find_design(design) if isinstance(design, str) else design
    wanted = parse_modulus(str(modulus)) if isinstance(modulus, (str, int)) else modulus
    given = chosen.checked(settings)
    fitted = chosen.fit(wanted.value, **given)
    if io not in fitted.forms:
        raise UnsupportedError(f"{chosen.name} has no {io} form; take --io {' or '.join(fitted.forms)}")
    chosen.require_size(fitted)
    return Core(chosen, wanted, fitted, io, given, top, bus, bus_clock)


def require_replaceable(folder: Path) -> None:
    """Raise ValueError unless the folder is missing, empty, or a former build without other files."""
    require_former(folder, FILES, ("*.core", *BESIDE, *listed(folder)))
