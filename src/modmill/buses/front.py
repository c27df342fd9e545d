# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The front of a device: bus adapter, registers, control of jobs; and its Verilog with the device inside."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from amaranth.hdl import ClockDomain, ClockSignal, DomainRenamer, Module, ResetInserter, ResetSignal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.buses.accesses import RegisterAccess
from modmill.buses.adapters import Bus
from modmill.buses.crossing import CLOCK, DOMAIN, Crossing, in_block_rams
from modmill.buses.dealer import Dealer, machine_ports
from modmill.buses.device import WORD, Device
from modmill.buses.jobs import JobControl
from modmill.buses.operands import OperandWords, words
from modmill.buses.registers import register_map
from modmill.buses.slots import SIDELOAD
from modmill.buses.stream import AxiStream
from modmill.contract import ALARM
from modmill.engines.machine.cluster import SharedRandom, machine_of
from modmill.engines.machine.lockstep import engine_module, machine_pair
from modmill.engines.machine.random_port import PORTS as RANDOM_PORT
from modmill.flow import emit
from modmill.flow.modules import module_ports
from modmill.flow.readable import readable

_STREAMS = {
    "i_valid": Out(1), "i_ready": In(1), "i_data": Out(WORD), "o_valid": In(1), "o_ready": Out(1), "o_data": In(WORD),
    "o_last": In(1),
}  # fmt: skip
INTERRUPT = "irq"
"""The port of the interrupt."""


class BusFront(wiring.Component):
    """A bus front: ports of the bus, the interrupt, and ports with the prefix core for the device behind it.

    Cost on ECP5: in docs/buses.md. Latency: that of the bus's adapter and 3 cycles of `RegisterAccess`.
    """

    def __init__(self, device: Device, bus: Bus) -> None:
        self.device, self.bus = device, bus
        self._registers = register_map(device)
        clock = {CLOCK: In(1)} if device.separate else {}
        irq = {} if bus.packets else {INTERRUPT: Out(1)}
        keys = SIDELOAD if device.key_slots else {}
        super().__init__({**clock, **bus.adapter.ports, **keys, **irq, "core_rst": Out(1), **self._core_ports()})

    def _core_ports(self) -> dict[str, object]:
        if self.device.machines > 1:
            return {
                name: port
                for k in range(self.device.machines)
                for name, port in machine_ports(k, self.device.alarm).items()
            }
        if self.device.operands is None:
            streams = {**_STREAMS, **({ALARM: In(1)} if self.device.alarm else {})}
            return {f"core_{name}": port for name, port in streams.items()}
        return {name: port for name, port in self._words().signature.members.items() if name.startswith("core_")}

    def _words(self) -> OperandWords:
        assert self.device.operands is not None
        setup, key = self.device.setup, words(self.device.operands[3])
        loads = setup.words // key if setup else 0
        return OperandWords(*self.device.operands, loads, alarm=self.device.alarm)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        jobs = JobControl(self.device, self._registers)
        if issubclass(self.bus.adapter, AxiStream):
            m.submodules.packets = packets = self.bus.adapter(self._registers)
            m.submodules.jobs = jobs
            ways: list[tuple[Any, Any]] = [(self, packets), (packets, jobs)]
        else:
            adapter, access = self.bus.adapter(), RegisterAccess(self._registers)
            m.submodules.adapter, m.submodules.access, m.submodules.jobs = adapter, access, jobs
            ways = [(self, adapter), (adapter, access), (access, jobs), (adapter, jobs), (self, jobs)]
        for one, other in ways:
            _join(m, one, other)
        streams: Any = jobs
        if self.device.separate:
            streams = self._crossing(m, jobs)
        else:
            # at power-up the device must be in reset at once, or what its registers contain could change its constants
            m.d.comb += self.core_rst.eq(jobs.engine_rst | ResetSignal())
        if self.device.operands is None and self.device.machines == 1:
            _join(m, self, streams, "core_")
            return m
        stream = self._words() if self.device.operands else Dealer(self.device.machines, self.device.alarm)
        m.submodules.words = (
            DomainRenamer(DOMAIN)(stream) if self.device.separate else ResetInserter(jobs.engine_rst)(stream)
        )
        _join(m, streams, stream)
        _join(m, self, stream)
        return m

    def _crossing(self, m: Module, jobs: JobControl) -> wiring.PureInterface:
        """The streams of the device in its own clock."""
        m.domains += ClockDomain(DOMAIN)
        m.submodules.crossing = crossing = Crossing(self.device)
        _join(m, jobs, crossing)
        m.d.comb += [
            ClockSignal(DOMAIN).eq(getattr(self, CLOCK)), ResetSignal(DOMAIN).eq(crossing.e_rst),
            self.core_rst.eq(crossing.e_rst), crossing.reset.eq(jobs.engine_rst),
        ]  # fmt: skip
        return crossing.e


def _join(m: Module, one: Any, other: Any, prefix: str = "") -> None:
    """Connect the ports of two components that have the same name, apart from a ``prefix`` of those of the first."""
    for name, member in other.signature.members.items():
        if prefix + name in one.signature.members:
            first, second = getattr(one, prefix + name), getattr(other, name)
            m.d.comb += second.eq(first) if member.flow == In else first.eq(second)


def front_name(device: Device) -> str:
    """Name of the module of the front, with which the names of its other modules begin."""
    return f"{device.top}_front"


def machine_name(device: Device) -> str:
    """Name of the module of the device, or of each of several machines."""
    return f"{device.top}_core" if device.machines > 1 else device.top


def front_verilog(device: Device, bus: Bus) -> str:
    """Verilog of the front alone, module ``<top>_front`` first."""
    return in_block_rams(readable(emit.netlist(BusFront(device, bus), front_name(device))))


def module_name(top: str) -> str:
    """Name of the module with front and device, whose module is ``top``."""
    return f"{top}_bus"


@lru_cache(maxsize=2)
def whole(device: Device, bus: Bus, core: str) -> str:
    """Verilog of the device behind the bus: module ``<top>_bus`` first, then the front, then the text ``core``."""
    front, top = front_verilog(device, bus), front_name(device)
    ports = module_ports(front, top)
    assert ports is not None
    outside = {name: p for name, p in ports.items() if not name.startswith("core")}
    inside = {name: p for name, p in ports.items() if name.startswith("core")}

    def declared(kind: str, name: str, width: int) -> str:
        return f"  {kind} {f'[{width - 1}:0] ' if width > 1 else ''}{name};\n"

    def instance(module: str, name: str, pins: dict[str, str]) -> str:
        return f"  {module} {name}_inside (\n" + ",\n".join(
            f"    .{port}({net})" for port, net in pins.items()
        ) + "\n  );\n"  # fmt: skip

    def machine(prefix: str) -> dict[str, str]:
        own = {name.removeprefix(prefix): name for name in inside if name.startswith(prefix)}
        return {"clk": CLOCK if device.separate else "clk", **own, "rst": "core_rst"}

    name = machine_name(device)
    shared = SharedRandom(device.machines, "core{}_random") if device.random else None
    if device.random:  # straight to the device
        outside |= {port: {"direction": "in" if member.flow == In else "out", "width": member.shape}
                    for port, member in RANDOM_PORT.items()}  # fmt: skip
    if device.machines == 1:
        straight = {port: port for port in RANDOM_PORT} if device.random else {}
        machines = [instance(name, name.rsplit("_", 1)[-1], machine("core_") | straight)]
    else:
        core = (machine_pair if engine_module(device.top) in core else machine_of)(core, device.top)
        machines = [
            instance(name, f"core{k}", machine(f"core{k}_") | (shared.nets_of(k) if shared else {}))
            for k in range(device.machines)
        ]
        machines[:0] = [shared.nets] if shared else []
    behind = f"{device.machines} machines of " * (device.machines > 1) + device.top
    return "".join([
        f"// {bus.title} front and {behind}. Latency: the cycles of {device.top} and those of the accesses.\n"
        f"// Source: a block of Modmill ({__name__})\nmodule {module_name(device.top)}({', '.join(outside)});\n",
        *(declared(f"{p['direction']}put", name, p["width"]) for name, p in outside.items()),
        *(declared("wire", name, p["width"]) for name, p in inside.items()),
        instance(top, "front", {name: name for name in ports}), *machines, "endmodule\n\n",
        front, "\n", core,
    ])  # fmt: skip
