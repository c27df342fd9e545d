# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A system around devices, each behind its own bus: the Verilog, and what firmware has to know of it.

The processor is PicoRV32 (RV32IM, ISC licence), from the package pythondata-cpu-picorv32.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from amaranth.lib.wiring import In

from modmill.buses.adapters import BUSES, Bus
from modmill.buses.device import Device
from modmill.buses.front import module_name
from modmill.buses.registers import SPAN, register_map
from modmill.parts import need
from modmill.report.sheet import identifier
from modmill.version import __version__

WORDS = 1 << 16
"""Words of the memory: 256 KiB."""
CONSOLE = 0x10000000
"""Address of the console, a multiple of 8; behind its word is that of the end."""
FIRST_ADDRESS = 0x20000000
"""Address of the first device; each of the others is `SPAN` bytes behind the one before."""
FIRST_INTERRUPT = 3
"""Interrupt of the first device; 0 to 2 are PicoRV32's own."""
MOST_DEVICES = 16
_MODULE = re.compile(r"^module\s+(\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Part:
    """A device of a system. ``verilog``: its bus.v. ``number``: its place among the devices."""

    device: Device
    bus: Bus
    verilog: str
    number: int

    def __post_init__(self) -> None:
        if self.device.separate:
            raise ValueError(f"a system and a board have one clock; build {self.top} without --bus-clock separate")
        if self.device.random:
            raise ValueError(f"a system and a board have no random words; build {self.top} without --random port")
        if self.bus.packets:
            others = ", ".join(bus.name for bus in BUSES if not bus.packets)
            raise ValueError(f"a system and a board reach registers; build {self.top} with --bus {others}")

    @property
    def top(self) -> str:
        """Name of the device."""
        return self.device.top

    @property
    def address(self) -> int:
        """Address of its registers."""
        return FIRST_ADDRESS + SPAN * self.number

    @property
    def interrupt(self) -> int:
        """Number of its interrupt."""
        return FIRST_INTERRUPT + self.number

    @property
    def pins(self) -> dict[str, tuple[str, int]]:
        """Direction and width of the ports of its bus, as the device has them."""
        ports = self.bus.adapter.ports.items()
        return {name: ("input" if member.flow == In else "output", member.shape) for name, member in ports}


@dataclass(frozen=True)
class System:
    """A system around ``parts``. Raises ValueError if they have no or the same names, or are too many."""

    parts: Sequence[Part]

    @classmethod
    def of(cls, devices: Sequence[tuple[Device, Bus, str]]) -> System:
        """The system around devices, each with its bus and its bus.v."""
        return cls([Part(device, bus, text, k) for k, (device, bus, text) in enumerate(devices)])

    def __post_init__(self) -> None:
        if not 1 <= len(self.parts) <= MOST_DEVICES:
            raise ValueError(f"a system has 1 to {MOST_DEVICES} devices, not {len(self.parts)}")
        for part in self.parts:
            if module_name(part.top) not in _MODULE.findall(part.verilog):
                raise ValueError(f"the Verilog of {part.top} has no module {module_name(part.top)}")
        counted = Counter(name for part in self.parts for name in _MODULE.findall(part.verilog))
        if double := [name for name, count in counted.items() if count > 1]:
            raise ValueError(f"two devices have the module {double[0]}; build them with different names (--top)")

    @cached_property
    def verilog(self) -> str:
        """The system: module ``system`` first, then bridges, processor and devices."""
        devices = "\n".join(part.verilog for part in self.parts)
        return "\n".join([self.rendered("system.v.j2"), text_of("bridges.v"), processor(), devices])

    @cached_property
    def bench(self) -> str:
        """Module ``bench`` around the system, for simulation."""
        return self.rendered("bench.v.j2")

    def rendered(self, name: str) -> str:
        """A template of this folder for the system."""
        return rendered(name, {
            "parts": self.parts, "words": WORDS, "address_bits": (WORDS - 1).bit_length(),
            "first_interrupt": FIRST_INTERRUPT, "console": CONSOLE,
            "irq_enable": register_map(self.parts[0].device)["IRQ_ENABLE"].offset,
        })  # fmt: skip


def rendered(name: str, shown: Mapping[str, Any]) -> str:
    """A template of this folder."""
    made = f"Made by Modmill {__version__}. Generated cores belong to you: use, change and ship them as you like."
    return _templates().get_template(name).render(shown, made=made)


def text_of(name: str) -> str:
    """A file of this folder."""
    return (resources.files("modmill.soc") / "files" / name).read_text(encoding="utf-8")


def processor() -> str:
    """Verilog of PicoRV32. Raises MissingPartError if its package is neither there nor can be installed."""
    need("soc")
    import pythondata_cpu_picorv32

    return (Path(pythondata_cpu_picorv32.data_location) / "picorv32.v").read_text(encoding="utf-8")


@cache
def _templates() -> jinja2.Environment:
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("modmill.soc", "files"), undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    found.filters["identifier"] = identifier
    return found
