# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The front of a device: bus adapter, registers, control of jobs; and its Verilog with the device inside."""

from __future__ import annotations

from amaranth.hdl import Module, ResetInserter, ResetSignal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from modmill.buses.accesses import RegisterAccess
from modmill.buses.adapters import Bus
from modmill.buses.dealer import Dealer, machine_ports
from modmill.buses.device import WORD, Device
from modmill.buses.jobs import JobControl
from modmill.buses.operands import OperandWords, words
from modmill.buses.registers import register_map
from modmill.engines.machine.cluster import machine_of
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
        super().__init__({**bus.adapter.ports, INTERRUPT: Out(1), "core_rst": Out(1), **self._core_ports()})

    def _core_ports(self) -> dict[str, object]:
        if self.device.machines > 1:
            return {name: port for k in range(self.device.machines) for name, port in machine_ports(k).items()}
        if self.device.operands is None:
            return {f"core_{name}": port for name, port in _STREAMS.items()}
        return {name: port for name, port in self._words().signature.members.items() if name.startswith("core_")}

    def _words(self) -> OperandWords:
        assert self.device.operands is not None
        setup, key = self.device.setup, words(self.device.operands[3])
        return OperandWords(*self.device.operands, setup.words // key if setup else 0)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        adapter, access = self.bus.adapter(), RegisterAccess(self._registers)
        jobs = JobControl(self.device, self._registers)
        m.submodules.adapter, m.submodules.access, m.submodules.jobs = adapter, access, jobs
        for one, other in ((self, adapter), (adapter, access), (access, jobs), (adapter, jobs)):
            _join(m, one, other)
        # at power-up the device must be in reset at once, or what its registers contain could change its constants
        m.d.comb += [self.irq.eq(jobs.irq), self.core_rst.eq(jobs.engine_rst | ResetSignal())]
        if self.device.operands is None and self.device.machines == 1:
            _join(m, self, jobs, "core_")
            return m
        stream = self._words() if self.device.operands else Dealer(self.device.machines)
        m.submodules.words = ResetInserter(jobs.engine_rst)(stream)
        _join(m, jobs, stream)
        _join(m, self, stream)
        return m


def _join(m: Module, one: wiring.Component, other: wiring.Component, prefix: str = "") -> None:
    """Connect the ports of two components that have the same name, apart from a ``prefix`` of those of the first."""
    for name, member in other.signature.members.items():
        if prefix + name in one.signature.members:
            first, second = getattr(one, prefix + name), getattr(other, name)
            m.d.comb += second.eq(first) if member.flow == In else first.eq(second)


def front_verilog(device: Device, bus: Bus) -> str:
    """Verilog of the front alone, module ``<top>_front`` first."""
    return readable(emit.netlist(BusFront(device, bus), f"{device.top}_front"))


def module_name(top: str) -> str:
    """Name of the module with front and device, whose module is ``top``."""
    return f"{top}_bus"


def whole(device: Device, bus: Bus, core: str) -> str:
    """Verilog of the device behind the bus: module ``<top>_bus`` first, then the front, then the text ``core``."""
    front, top = front_verilog(device, bus), f"{device.top}_front"
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
        return {"clk": "clk", **own, "rst": "core_rst"}

    if device.machines == 1:
        machines = [instance(device.top, device.top.rsplit("_", 1)[-1], machine("core_"))]
    else:
        core, name = machine_of(core, device.top)
        machines = [instance(name, f"core{k}", machine(f"core{k}_")) for k in range(device.machines)]
    behind = f"{device.machines} machines of " * (device.machines > 1) + device.top
    return "".join([
        f"// {bus.title} front and {behind}. Latency: the cycles of {device.top} and those of the accesses.\n"
        f"// Source: a block of Modmill ({__name__})\nmodule {module_name(device.top)}({', '.join(outside)});\n",
        *(declared(f"{p['direction']}put", name, p["width"]) for name, p in outside.items()),
        *(declared("wire", name, p["width"]) for name, p in inside.items()),
        instance(top, "front", {name: name for name in ports}), *machines, "endmodule\n\n",
        front, "\n", core,
    ])  # fmt: skip
