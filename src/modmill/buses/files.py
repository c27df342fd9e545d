# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The files of a bus front, all from one device, one bus and one description of the registers.

bus.v            the core or engine behind its front
registers.rdl    SystemRDL
registers.md     Markdown; packets.md for a front of packets, which has no SystemRDL, no HTML and no UIO
registers.html   the same as a page
bus.xml          IP-XACT (IEEE 1685-2014) of bus.v, with bus interface and memory map
TOP.h, TOP.c     C99 header and driver
TOP_calls.h, TOP_calls.c  calls in C99 above the driver
TOP.py           Python map
modmill_socket.h the driver's way to a device of ``modmill serve``
modmill_uio.h    the driver's way to a device of Linux's UIO
TOP_bus.core, bus_bench.v  FuseSoC's description of bus.v, and a bench
vivado.tcl, quartus.tcl    scripts that make a project of bus.v
crossing.xdc, crossing.sdc, crossing.lpf  constraints of an engine's own clock
TOP_litex.py     a peripheral of LiteX, for the buses that LiteX has
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

import jinja2
from amaranth.lib.wiring import In
from markdown_it import MarkdownIt

from modmill.buses import serve, simulate, stream
from modmill.buses.adapters import Bus
from modmill.buses.crossing import ALARM_CHAIN, ASYNCHRONOUS, CHAINS, CLOCK, LATENCY
from modmill.buses.device import Device
from modmill.buses.front import INTERRUPT, module_name, whole
from modmill.buses.registers import NUMBERS, SPAN, Field, Register, causes, register_map
from modmill.buses.slots import SIDELOAD
from modmill.engines.machine.random_port import PORTS
from modmill.flow.emit import digest, without_initial_values
from modmill.flow.lint import OPTIONS
from modmill.report.recorded import recorded
from modmill.report.sheet import identifier, packaging_name
from modmill.version import __version__

VERILOG = "bus.v"
LITEX = "axi4-lite", "wishbone"
"""The buses that a description for LiteX is written for."""
_OF_REGISTERS = "registers.rdl", "registers.md", "registers.html", "modmill_uio.h"
_RDL = {"ro": "sw = r;", "rw": "sw = rw;", "wo": "sw = w;", "w1c": "sw = rw; onwrite = woclr;", "pop": "sw = r;"}
_RDL_HARDWARE = {
    "ro": " hw = w;",
    "rw": " hw = r;",
    "wo": " hw = r;",
    "w1c": " hw = rw;",
    "pop": " onread = ruser; hw = w;",
}
_IPXACT = {"ro": "read-only", "rw": "read-write", "wo": "write-only", "w1c": "read-write", "pop": "read-only"}
_LOGICAL = {"wb_cyc_i": "CYC", "wb_stb_i": "STB", "wb_we_i": "WE", "wb_adr_i": "ADR", "wb_sel_i": "SEL",
            "wb_dat_i": "DAT_MOSI", "wb_dat_o": "DAT_MISO", "wb_ack_o": "ACK", "wb_err_o": "ERR", "wb_stall_o": "STALL",
            "hsel": "HSELx"}  # fmt: skip
_PREFIX = re.compile("^(?:s_axi|[sm]_axis)_")


def _html(text: str) -> str:
    """Markdown as HTML; the words of a heading are its id, in small letters."""
    made = MarkdownIt("commonmark").enable("table")
    tokens = made.parse(text)
    for heading, words in pairwise(tokens):
        if heading.type == "heading_open":
            heading.attrSet("id", words.content.lower().replace(" ", "-"))
    return str(made.renderer.render(tokens, made.options, {}))


@cache
def _templates() -> jinja2.Environment:
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("modmill.buses"), undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    found.filters |= {"identifier": identifier, "html": _html}
    return found


def logical(port: str) -> str:
    """The name of a bus's port in the definition of the bus."""
    return _LOGICAL.get(port, _PREFIX.sub("", port).upper())


def _interfaces(bus: Bus) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Each interface of a bus: its name, whether it is a slave or a master, its ports' logical and physical names."""
    names = list(bus.adapter.ports)
    if not bus.packets:
        return [(identifier(bus.name), "slave", [(logical(name), name) for name in names])]
    sides = {f"{side[0]}_axis": side for side in ("slave", "master")}
    return [(prefix, side, [(logical(name), name) for name in names if name.startswith(prefix)])
            for prefix, side in sides.items()]  # fmt: skip


def _field(register: Register, name: str) -> Field:
    return next(field for field in register.fields if field.name == name)


def _in_litex(bus: Bus, separate: bool) -> bool:
    """Whether a peripheral of LiteX is written: it has one clock."""
    return bus.name in LITEX and not separate


def names(top: str, bus: Bus, *, separate: bool = False) -> dict[str, str]:
    """The template of each file that is rendered, by the file's name; ``separate``: for a clock of its own."""
    crossing = [f"crossing.{kind}" for kind in ("xdc", "sdc", "lpf")] * separate
    litex = {f"{top}_litex.py": "litex.py.j2"} if _in_litex(bus, separate) else {}
    found = litex | {
        "registers.rdl": "registers.rdl.j2", "registers.md": "registers.md.j2", "registers.html": "registers.html.j2",
        "bus.xml": "bus.xml.j2",
        f"{top}.h": "driver.h.j2", f"{top}.c": "driver.c.j2", f"{top}.py": "map.py.j2",
        "modmill_socket.h": "socket.h.j2", "modmill_uio.h": "uio.h.j2",
        f"{top}_bus.core": "bus.core.j2", "bus_bench.v": "bench.v.j2", "vivado.tcl": "vivado.tcl.j2",
        "quartus.tcl": "quartus.tcl.j2", **{name: f"{name}.j2" for name in crossing},
    }  # fmt: skip
    if not bus.packets:
        return found
    found |= {f"{top}.{kind}": f"packets.{kind}.j2" for kind in ("h", "c", "py")} | {
        "bus_bench.v": "packets_bench.v.j2"
    }
    return {"packets.md": "packets.md.j2"} | {name: made for name, made in found.items() if name not in _OF_REGISTERS}


def call_names(top: str) -> tuple[str, str]:
    """The names of the files of the calls."""
    return f"{top}_calls.h", f"{top}_calls.c"


def all_names(top: str, bus: Bus, *, with_calls: bool = False, separate: bool = False) -> tuple[str, ...]:
    """The names of all files of a front."""
    return VERILOG, *names(top, bus, separate=separate), *(call_names(top) if with_calls else ())


def descriptions(device: Device, bus: Bus) -> dict[str, str]:
    """The text of every file but bus.v, by name."""
    made = f"Made by Modmill {__version__}. Generated cores belong to you: use, change and ship them as you like."
    clock = {CLOCK: ("in", 1)} if device.separate else {}
    members = {**bus.adapter.ports, **(SIDELOAD if device.key_slots else {}), **(PORTS if device.random else {})}
    ports = {"clk": ("in", 1), "rst": ("in", 1)} | clock | {
        name: ("in" if member.flow == In else "out", member.shape) for name, member in members.items()
    } | ({} if bus.packets else {INTERRUPT: ("out", 1)})  # fmt: skip
    shown = {
        "device": device, "bus": bus, "registers": register_map(device), "made": made,
        "causes": stream.stream_causes(device) if bus.packets else causes(device),
        "name": identifier(device.top), "p": device.top, "P": device.top.upper(), "module": module_name(device.top),
        "title": f"{device.top} behind {bus.title}", "version": __version__, "span": SPAN, "ports": ports,
        "logical_ports": [(logical(name), name) for name in bus.adapter.ports],
        "interfaces": _interfaces(bus), "stream": stream, "simulate": simulate,
        "interrupt": INTERRUPT,
        **(device.calls.context() if device.calls else {}),
        "serve": serve, "vlnv": packaging_name(module_name(device.top), __version__), "lint": OPTIONS, "field": _field,
        "cause_numbers": NUMBERS,
        "engine_clk": CLOCK, "chains": (*CHAINS, *[ALARM_CHAIN] * device.alarm), "asynchronous": ASYNCHRONOUS,
        "rdl": _RDL, "rdl_hardware": _RDL_HARDWARE, "ipxact": _IPXACT,
    }  # fmt: skip
    found = names(device.top, bus, separate=device.separate)
    if device.calls:
        found |= dict(zip(call_names(device.top), device.calls.TEMPLATES, strict=True))
    return {file: _templates().get_template(name).render(shown) for file, name in found.items()}


def bus_texts(device: Device, bus: Bus, core: str) -> dict[str, str]:
    """The text of every file, by name; ``core``: Verilog of the device."""
    made = (
        f"// SPDX-License-Identifier: Apache-2.0\n// {device.top} behind {bus.title}; made by Modmill {__version__}.\n"
    )
    about = "// Generated cores belong to you: use, change and ship them as you like.\n\n"
    return {VERILOG: made + about + whole(device, bus, core), **descriptions(device, bus)}


def _alarm(device: Device, bus: Bus) -> str:
    """The paragraph of a data sheet on the alarm; nothing without one."""
    if not device.alarm:
        return ""
    events = "every message" if bus.packets else "STATUS.alarm and IRQ_STATUS.alarm are 1, every message"
    return f"""After an alarm {events} has the error ALARM, no word of an
answer is left, and only `rst` ends that. Zeroise works then too, unless the fault lasts. The front itself is
neither doubled nor checked: a fault in it raises no alarm.
"""


def _random(device: Device) -> str:
    """The paragraph of a data sheet on the port for random words; nothing without one."""
    if not device.random:
        return ""
    clock = f", in the clock `{CLOCK}`" if device.separate else ""
    return f"""Random words enter `{device.top}` at `random_valid`, `random_ready` and `random_data`{clock}: the front
passes them on, and no access reads or writes them.
"""


def _keys(device: Device) -> str:
    """The paragraph of a data sheet on key slots; nothing without them."""
    if not device.key_slots:
        return ""
    operations = " and ".join(c.name for c in device.keyed)
    return f"""{device.key_slots} key slots hold secrets of {operations}: `registers.md` says how.
They are written by the bus or by a key manager at `key_valid`, `key_ready`, `key_data` and `key_last`, and no
access reads them. Without a key manager set `key_valid` to 0.
"""


def rows_of(device: Device, bus: Bus, core: str) -> list[dict[str, Any]]:
    """The shipped rows of the device and of the whole with its front, as `recorded` gives them; ``core`` as in
    `bus_texts`."""
    return recorded(device.digest, digest(without_initial_values(whole(device, bus, core))))


def _measured(entries: Iterable[Mapping[str, Any]]) -> str:
    """The lines of a data sheet on the measured front."""
    found = ""
    for entry in (entry for entry in entries if entry["kind"] == "bus"):
        if front := entry["front"]:
            found += f"Measured on {entry['target']} ({entry['tool']}): the front has {front['lut']:,} LUTs, "
            found += f"{front['ff']:,} flip-flops and {front['bram']} block RAMs.\n"
        for name, n in entry["commands"].items():
            if n["bare"]:
                runs = f"{n['runs']} runs take" if n["runs"] > 1 else "it takes"
                found += f"From COMMAND to the last word of the answer of {name} {runs} {n['cycles']:,} cycles, "
                found += f"{n['bare']:,} of them without the\nbus.\n"
    return found or "This front was not measured; `modmill bus .` does so.\n"


def section(device: Device, bus: Bus, measured: Iterable[Mapping[str, Any]] = ()) -> str:
    """The section of a data sheet on the bus; ``measured``: entries of `recorded`."""
    top, more = device.top, ""
    if device.calls:
        more = f"""`{top}_calls.h` and `{top}_calls.c` are calls in C99 above the
driver: {device.calls.ABOUT}.
"""
    elif device.kind == "curve":
        more = "There are no calls in C for multiples of points, because numbers of this core are not binary.\n"
    elif device.kind == "powers":
        more = "There are no calls in C for powers: they need a loaded modulus and binary numbers.\n"
    else:
        more = """There is no call in C for the product: it needs two operands, binary numbers or
digits, and a modulus whose words C can make.
"""
    vlnv = packaging_name(module_name(top), __version__)
    if (count := device.machines) > 1:
        more = f"""A job has {device.threads} runs, {device.threads // count} for each of {count} machines:
the words of the runs of machine 0, then those of machine 1, and so on; so has the answer. The command, a count in front
of the runs, and SETUP are sent once, for all machines. There are no packets.
{more}"""
    if device.separate:
        gives, takes = LATENCY
        stop = "the packet for an abort" if bus.packets else "CONTROL.abort"
        more = f"""`{CLOCK}` is the clock of `{top}`; `clk` is that of the bus. Neither has to be faster, or a multiple
of the other. A word takes {gives} cycle of `clk` and up to {takes} of `{CLOCK}` to `{top}`, and {gives} cycle of
`{CLOCK}` and up to {takes} of `clk` back; cycles of `{top}` are those of `{CLOCK}`. Cycles of
ZEROISE and of the driver's patience are those of the slower clock. `crossing.xdc`, `crossing.sdc` and `crossing.lpf`
are constraints for Vivado, Quartus, and Diamond or nextpnr; set the two periods there. After power-up `rst` needs one
rising edge of `clk` and none of `{CLOCK}`. Later, stop `{top}` with {stop} before `rst`: `rst` reaches its
registers at once, near an edge of their clock too.
{more}"""
    more = _alarm(device, bus) + _keys(device) + _random(device) + more
    litex = f" `{top}_litex.py` is a\nperipheral of LiteX." if _in_litex(bus, device.separate) else ""
    if bus.packets:
        about = f"""those of the two streams. `packets.md` describes the packets; `bus.xml` (IP-XACT) has the ports
and both interfaces; `{top}.h` and `{top}.c` are a driver in C99; `{top}.py` encodes and decodes packets in Python."""
        through = "sends packets"
    else:
        about = f"""those of the bus, and `{INTERRUPT}`, the interrupt, which is
high while an enabled event stands. `registers.md` and `registers.html` describe the registers; `registers.rdl`
(SystemRDL) and `bus.xml` (IP-XACT) say the same to tools;
`{top}.h` and `{top}.c` are a driver in C99; `{top}.py` is a map for Python."""
        through = "reads and writes registers"
    return f"""
## Behind {bus.title}
`{VERILOG}` holds the module `{module_name(device.top)}`: {bus.title} front and `{top}` in one file, which replaces the
Verilog file of `{top}` alone. Its ports are `clk`, `rst`, {about}
{more}`fusesoc --cores-root . run --target sim {vlnv}` {through}
through the bus, in Icarus Verilog (`iverilog` of Debian); `--target lint` is Verilator's, and `--target synth` counts
cells of ECP5 with a Yosys that knows Tcl (`yosys` of Debian). `vivado.tcl` and `quartus.tcl` make projects of
`{VERILOG}`; they were not run here.{litex}
{_measured(measured)}"""
