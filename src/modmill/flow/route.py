# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Place and route by nextpnr, inside a shell that needs three pins.

The shell (`shell`) registers every port of the core: inputs sit on one long shift register, outputs are captured and
folded into a second one by XOR. Each register of the shell drives its neighbour and one port, so the shell has no net
of high fan-out and no path that limits the clock of a good core.
"""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from modmill.contract import ALARM
from modmill.flow import floorplan, nexus, tools
from modmill.flow.modules import module_ports
from modmill.flow.simulate import Widths
from modmill.flow.synthesise import synthesise
from modmill.flow.targets import PINS, ROUTED, Target
from modmill.numbers.shown import shortened

SHELL = "modmill_shell"
PORTS = ("clk", "serial_in", "serial_out")
"""The shell's ports."""
ROUTERS = ("router1", "router2")
"""nextpnr's routers: the default, and one that often ends sooner if wires are scarce. ``router2@MHZ`` has a target
clock: it reroutes slower paths."""
_CONSTRAINT_MHZ = 250  # above the clock of most cores, so that the tool keeps optimising


@dataclass(frozen=True)
class CriticalPath:
    """The slowest path within the clock domain: end points, delays in ns, and number of cells."""

    start: str
    end: str
    logic_ns: float
    routing_ns: float
    cells: int


@dataclass(frozen=True)
class Routed:
    """One place and route run.

    `mhz_reported` is the clock that nextpnr reports. nextpnr does not time paths inside DSP blocks and block RAMs, so
    `cap_mhz` is the documented limit of the blocks that the core uses (None without such blocks), and `mhz` the smaller
    of the two. `utilisation` counts (used, available) sites of each kind, shell included. `seconds` is wall-clock time
    of place and route alone.
    """

    mhz: float
    mhz_reported: float
    cap_mhz: float | None
    critical_path: CriticalPath | None
    utilisation: dict[str, tuple[int, int]]
    seconds: float
    seed: int
    target: str
    tool: str

    @property
    def values(self) -> dict[str, Any]:
        """The numbers of a row of results."""
        return {
            "mhz": self.mhz, "mhz_reported": self.mhz_reported, "cap_mhz": self.cap_mhz,
            "utilisation": self.utilisation, "seconds": round(self.seconds, 1),
            "critical_path": asdict(self.critical_path) if self.critical_path else None,
        }  # fmt: skip


def tool(target: Target, router: str = "", floorplanned: bool = False) -> str:
    """The tool's name in a row of results: name, version, options.

    Raises ValueError for an unknown router and a target that cannot be routed.
    """
    nextpnr = target.nextpnr
    if nextpnr is None:
        raise ValueError(f"{target.name} cannot be routed here; {ROUTED}")
    _routing(router or nextpnr.router)
    options = ["floorplan"] * floorplanned + [router] * (router not in ("", nextpnr.router))
    known = "nextpnr" if nextpnr.family == "ecp5" else f"nextpnr-{nextpnr.family}"
    return ", ".join([f"{nextpnr.package} {tools.version(known)}", *options])


def _routing(router: str) -> list[str]:
    """nextpnr's options for a router. Raises ValueError for an unknown router."""
    name, at, aim = router.partition("@")
    if name not in ROUTERS or (at and not (name == ROUTERS[1] and aim.isdecimal() and 0 < int(aim) <= _CONSTRAINT_MHZ)):
        raise ValueError(f"router must be one of {', '.join(ROUTERS)}, {ROUTERS[1]}@MHZ, not {shortened(router)}")
    return ["--router", name, "--freq", aim or str(_CONSTRAINT_MHZ), *["--tmg-ripup"] * bool(at)]


def port_widths(verilog: str, top: str) -> Widths:
    """Widths of a core's data ports, and whether it has an alarm, read from its Verilog; 0 for a missing i_b or k_m.

    Raises ValueError if the module or another port is missing.
    """
    ports = module_ports(verilog, top)
    if ports is None:
        raise ValueError(f"the text has no module {top}")
    if missing := [port for port in ("i_a", "o_r") if port not in ports]:
        raise ValueError(f"module {top} has no port {', '.join(missing)}")
    a, b, r, k = (ports[port]["width"] if port in ports else 0 for port in ("i_a", "i_b", "o_r", "k_m"))
    return Widths(a, b, r, k, ALARM in ports)


def shell(top: str, widths: Widths) -> str:
    """Verilog of the measuring shell around a core: ports clk, serial_in and serial_out.

    Cost: one flip-flop for each input bit of the core; two flip-flops and a LUT for each output bit.
    """
    inputs = {"rst": 1, "i_valid": 1, "o_ready": 1, "i_a": widths.a} | ({"i_b": widths.b} if widths.b else {})
    outputs = {"i_ready": 1, "o_valid": 1, "o_r": widths.r} | ({ALARM: 1} if widths.alarm else {})
    if widths.k:
        inputs |= {"k_valid": 1, "k_m": widths.k}
        outputs |= {"k_ready": 1}
    return _shell(top, inputs, outputs)


def _shell(top: str, inputs: Mapping[str, int], outputs: Mapping[str, int]) -> str:
    """The shell around a module with these ports, apart from clk, and their widths."""
    n_in, n_out = sum(inputs.values()), sum(outputs.values())
    wires = "".join(f"  wire [{bits - 1}:0] {port};\n" for port, bits in {**inputs, **outputs}.items())
    connections = ", ".join(f".{port}({port})" for port in ("clk", *inputs, *outputs))
    return f"""module {SHELL}(input clk, input serial_in, output reg serial_out);
  reg [{n_in - 1}:0] feed;
  reg [{n_out - 1}:0] captured;
  reg [{n_out - 1}:0] folded;
{wires}  assign {{{", ".join(inputs)}}} = feed;
  {top} core_under_test({connections});
  always @(posedge clk) begin
    feed <= {{feed[{n_in - 2}:0], serial_in}};
    captured <= {{{", ".join(outputs)}}};
    folded <= {{folded[{n_out - 2}:0], 1'b0}} ^ captured;
    serial_out <= folded[{n_out - 1}];
  end
endmodule
"""


def shell_for(verilog: str, top: str) -> str:
    """The shell around module ``top``, a multiplier or any other module with the port clk. Raises ValueError if it is
    missing."""
    ports = module_ports(verilog, top)
    if ports is None or "i_a" in ports:
        return shell(top, port_widths(verilog, top))
    inputs, outputs = (
        {name: p["width"] for name, p in ports.items() if p["direction"] == way and name != "clk"}
        for way in ("in", "out")
    )
    return _shell(top, inputs, outputs)


def route(
    verilog: str,
    top: str,
    target: Target,
    workdir: Path,
    *,
    seed: int = 1,
    hierarchy: bool = False,
    plan: floorplan.Plan | None = None,
    router: str = "",
) -> Routed:
    """Synthesise a core in its shell (once for each text and `workdir`), then place and route it with one seed.

    `hierarchy` as in `synthesise`. `plan`: sites of DSP blocks and block RAMs (floorplan.py); None: the placer chooses
    them. `router` as in `ROUTERS`. Equal inputs give an equal result.

    Raises ValueError for a target that cannot be routed, a device without a floorplan and an unknown router; ToolError
    if a tool fails, NoRoomError if that is so because the core needs more than the device has.
    """
    named = tool(target, router, plan is not None)
    assert target.nextpnr is not None
    if plan and target.device != floorplan.DEVICE:
        raise ValueError(f"the only floorplan is for {floorplan.DEVICE}, not for {target.device}")
    netlist, cap, lack = shell_netlist(verilog, top, target, workdir, hierarchy)
    if plan:
        cells = json.loads(netlist.read_text())
        floorplan.apply(cells, SHELL, plan)
        netlist = workdir / "placed.json"
        netlist.write_text(json.dumps(cells))
    report = workdir / f"report-{seed}.json"
    start = time.monotonic()
    nextpnr = target.nextpnr
    (workdir / PINS).write_text(
        "".join(nextpnr.pin.format(port=port, pin=pin) for port, pin in zip(PORTS, nextpnr.pins, strict=False))
    )
    command = tools.nextpnr(
        nextpnr.family, *nextpnr.device, "--seed", str(seed), *_routing(router or nextpnr.router),
        "--timing-allow-fail", "--json", netlist.name, "--report", report.name,
    )  # fmt: skip
    run(command, "nextpnr", workdir, seed, lack and f"{top} {lack} on {target.device}")
    return timed(json.loads(report.read_text()), cap, target, seed, time.monotonic() - start, named)


def run(command: Sequence[str], name: str, workdir: Path, seed: int, lack: str) -> None:
    """Run a nextpnr. Raises ToolError if it fails; NoRoomError with the text ``lack`` if that is not empty."""
    try:
        tools.run(command, name=name, log=workdir / f"nextpnr-{seed}.log", cwd=workdir)
    except tools.ToolError as error:
        raise tools.NoRoomError(f"{name}: {lack}") if lack else error from None


def timed(found: dict, cap: float | None, target: Target, seed: int, seconds: float, tool: str) -> Routed:
    """The result in a nextpnr report. Raises ToolError if the report has no clock."""
    if not found.get("fmax"):
        raise tools.ToolError("nextpnr: no clock was timed, so the core has no register-to-register path")
    mhz = min(clock["achieved"] for clock in found["fmax"].values())
    sites = found.get("utilization", {})
    used = {kind: (count["used"], count["available"]) for kind, count in sites.items() if count["used"]}
    capped = min(mhz, cap) if cap else mhz
    return Routed(capped, mhz, cap, _critical_path(found), used, seconds, seed, target.name, tool)


def shell_netlist(
    verilog: str, top: str, target: Target, workdir: Path, hierarchy: bool = False
) -> tuple[Path, float | None, str]:
    """Path of the netlist of core and shell, the lowest documented limit of its blocks in MHz, and the first resource
    that the device lacks for it, in words, or nothing."""
    text = verilog + "\n" + shell_for(verilog, top)
    key = hashlib.sha256(json.dumps([text, target.device, hierarchy, tools.version("yosys")]).encode()).hexdigest()
    netlist, kept = workdir / "shell.json", workdir / "shell.key"
    if not (netlist.exists() and kept.exists() and kept.read_text().startswith(f"{key} {{")):
        kept.unlink(missing_ok=True)
        pads = target.nextpnr is not None
        result = synthesise(text, SHELL, target, workdir / "shell", hierarchy=hierarchy, delay=False, pads=pads)
        cells = json.loads(result.netlist.read_text())
        if target.family == "nexus":
            nexus.free_carries(cells, SHELL)
        netlist.write_text(json.dumps(cells))
        kept.write_text(f"{key} {json.dumps(result.values)}\n")
    needed = json.loads(kept.read_text().removeprefix(f"{key} "))
    caps = [target.dsp_cap_mhz] if needed["dsp"] else []
    caps += [target.bram_cap_mhz] if needed["bram"] else []
    return netlist, min((cap for cap in caps if cap is not None), default=None), target.capacity.lacks(needed)


def _critical_path(report: dict) -> CriticalPath | None:
    """The slowest path that stays within one clock domain."""
    candidates = []
    for path in report.get("critical_paths", []):
        steps = path["path"]
        if "async" in path["from"] or "async" in path["to"] or not steps:
            continue
        routing = sum(step["delay"] for step in steps if step["type"] == "routing")
        logic = sum(step["delay"] for step in steps if step["type"] != "routing")
        ends = steps[0]["from"], steps[-1]["to"]
        start, end = (f"{site['cell']}.{site['port']}" for site in ends)
        cells = sum(step["type"] == "logic" for step in steps)
        candidates.append(CriticalPath(start, end, round(logic, 3), round(routing, 3), cells))
    return max(candidates, key=lambda c: c.logic_ns + c.routing_ns, default=None)
