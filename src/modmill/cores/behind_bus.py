# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Cores and engines as devices behind a bus, and the check of bus.v: vectors through the bus, errors, an abort."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modmill.buses.adapters import Bus
from modmill.buses.clocks import clock_faults
from modmill.buses.crossing import CLOCK, DEPTH, LATENCY
from modmill.buses.device import PACE, SAME, WORD, Command, Device, Sent, is_separate
from modmill.buses.files import VERILOG, all_names
from modmill.buses.front import front_name, machine_name, module_name
from modmill.buses.operands import words
from modmill.buses.product_calls import ProductCalls
from modmill.buses.registers import ABORT, SELFTEST, ZEROISE, register_map
from modmill.buses.simulate import BusDriver, BusFault, BusSimulator, PacketDriver, driver_of
from modmill.buses.slots import SIDELOAD
from modmill.buses.stream import CONTROLS, PACKET_CYCLES
from modmill.contract import Contract
from modmill.cores.slot_check import slots_used
from modmill.cores.zeroise import multiplier_messages, refilled
from modmill.design import DesignInstance
from modmill.engines.machine.layout import words_of
from modmill.engines.machine.random_port import KEPT
from modmill.engines.machine.random_port import PORTS as RANDOM_PORT
from modmill.flow.emit import without_initial_values
from modmill.flow.lint import lint
from modmill.flow.simulate import patience, widths
from modmill.flow.tools import ToolError
from modmill.report.sheet import split

MULTIPLY = 1
"""Command of a product."""
POWER_UPS = 300
"""Most power-ups with further random contents; they take at most as many cycles as all exchanges."""
COUNTERS = ".value_jobs", ".jobs_coming", KEPT
"""Ends of the names of the registers that count jobs, and of those of tests of random words, which zeroising keeps."""


@dataclass(frozen=True)
class Exchange:
    """A message and its answer of ``count`` words, of which ``right`` says whether they are right. ``what``: its name
    in a message. ``cycles``: from its last word to its answer without the bus, 0 if not known."""

    command: int
    words: Sequence[int]
    count: int = 0
    right: Callable[[Sequence[int]], bool] = lambda _: True
    what: str = "command 0"
    cycles: int = 0


def bus_record(
    bus: Bus, top: str, *, with_calls: bool = False, clock: str = SAME, key_slots: int = 0
) -> dict[str, Any]:  # fmt: skip
    """The entry ``bus`` of a record: its name, the module with front and device, the files; with a separate clock also
    its port, and the most cycles of either clock of a word there and back; with key slots their number, and the ports
    of the key manager."""
    more: dict[str, Any] = {}
    if separate := is_separate(clock, bus.name):
        (gives, takes), name = LATENCY, "clk"
        crossing = {"to_engine": {name: gives, CLOCK: takes}, "from_engine": {CLOCK: gives, name: takes}}
        more = {"clock": clock, "clock_port": CLOCK, "crossing_cycles": crossing}
    more |= {"key_slots": key_slots, "key_ports": list(SIDELOAD)} if key_slots else {}
    files = all_names(top, bus, with_calls=with_calls, separate=separate)
    return {"name": bus.name, "module": module_name(top), **more, "files": list(files)}


def bus_files(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the files of a front that a record states; none if it states no bus."""
    bus = record.get("bus")
    names = bus.get("files") if isinstance(bus, dict) else ()
    return tuple(name for name in names if isinstance(name, str) and "/" not in name) if isinstance(names, list) else ()


def multiplier_device(
    fitted: DesignInstance, contract: Contract, top: str, digest: str, known: Sequence[tuple[int, int, int]] = (),
    calls: ProductCalls | None = None, *, separate: bool = False,
) -> Device:  # fmt: skip
    """A multiplier as a device: command 1 is a product; command 0 loads the modulus if it is loaded. ``known``: port
    values of operands and results for the self-test."""
    size = widths(contract)
    commands = [Command(MULTIPLY, "multiply", words(size.a) + words(size.b), words(size.r))]
    if contract.load:
        commands.insert(0, Command(0, "load", words(size.k) * len(contract.load.words), 0))
    wait = patience(contract) + 8 * max(c.words + c.answer for c in commands)
    return Device(
        "multiplier", top, digest, contract.p.bit_length(), words(size.a), 1, tuple(commands), contract.power_up,
        wait, (size.a, size.b, size.r, size.k), calls=calls, separate=separate, alarm=contract.alarm,
        zeroise=refilled(tuple(multiplier_messages(
            fitted, contract, commands[-1], [word for e in loading(contract) for word in e.words]
        )), commands, DEPTH if separate else 0),
        selftest=tuple(_sent(e) for e in loading(contract)) + tuple(
            _sent(product(contract, a, b, 0), words_of(r, words(size.r), WORD)) for a, b, r in known
        ),
    )  # fmt: skip


def _sent(exchange: Exchange, answer: Sequence[int] = ()) -> Sent:
    """An exchange as a message that the front sends by itself."""
    return Sent(exchange.command, tuple(exchange.words), answer=tuple(answer))


def loading(contract: Contract) -> list[Exchange]:
    """The message that loads the modulus of a multiplier; none if it is built in."""
    if contract.load is None:
        return []
    each = words(contract.load.width)
    return [Exchange(0, [part for word in contract.load.words for part in words_of(word, each, WORD)])]


def product(contract: Contract, a: int, b: int, wanted: int) -> Exchange:
    """A product of two port values, whose result is ``wanted`` modulo p."""
    size = widths(contract)
    sent = words_of(a, words(size.a), WORD) + (words_of(b, words(size.b), WORD) if size.b else [])

    def right(answer: Sequence[int]) -> bool:
        port = sum(word << WORD * k for k, word in enumerate(answer))
        return contract.result.decode(port) % contract.p == wanted

    return Exchange(MULTIPLY, sent, words(size.r), right, "a product", contract.timing.latency)


def bus_faults(text: str, device: Device, bus: Bus, exchanges: Sequence[Exchange]) -> Iterator[str]:
    """Yield the faults of a bus.v: what lint finds, and the first one of a simulation in which ``exchanges`` go through
    the bus, the last of them also after power-ups with other random contents. The first exchanges have no answer: they
    set the device up."""
    bare = without_initial_values(split(text)[1])
    faults = [f"{VERILOG}: {line}" for line in lint(bare, module_name(device.top))]
    if device.separate and not faults:
        boxes = {machine_name(device): "clk"}
        foreign = dict.fromkeys(RANDOM_PORT if device.random else (), CLOCK)
        found = clock_faults(bare, module_name(device.top), front_name(device), "clk", boxes, foreign)
        faults = [f"{VERILOG}: {line}" for line in found]
    yield from faults
    if faults:
        return
    try:
        driver, fresh = (driver_of(device, bus, BusSimulator(bare, device, bus, contents=True)) for _ in range(2))
        job = [*_before(exchanges, last := _last(exchanges)), last]
        if isinstance(driver, BusDriver) and isinstance(fresh, BusDriver):
            for cycle in _through(driver, exchanges):  # counters without a reset depend on when the engine was reset
                fresh.bus.wait(cycle - fresh.bus.cycles)
                fresh.write("CONTROL", ABORT)
            if device.key_slots:
                slots_used(driver, exchanges)
            if not device.operands:  # what a job leaves that is not aborted
                for exchange in job:
                    _exchange(driver, exchange)
            left = driver.bus.cycles
            zeroised(driver, fresh, job)
        elif isinstance(driver, PacketDriver):
            _in_packets(driver, exchanges)
            zeroised(driver, fresh, job)
            _wrong_packets(driver, exchanges)
            left = driver.bus.cycles
        self_tested(fresh)
        for exchange in job:
            _exchange(fresh, exchange, " after the self-test")
        for seed in range(2, 2 + POWER_UPS):
            again = BusSimulator(bare, device, bus, seed, contents=True)
            for exchange in job:
                _exchange(driver_of(device, bus, again), exchange, f" after power-up {seed}")
            if (left := left - again.cycles) < 0:
                break
    except BusFault as fault:
        yield f"{VERILOG}: {fault}"
    except ToolError as error:
        if "%Error" not in str(error):
            raise
        yield f"{VERILOG}: does not compile: {error}"


def _through(driver: BusDriver[BusSimulator], exchanges: Sequence[Exchange]) -> list[int]:
    """Raise BusFault at the first fault: of a constant register, an answer, an error that is not reported, an answer
    after an abort. Returns the cycles in which the accesses began that aborted."""
    device = driver.device
    driver.ready()
    for register in register_map(device).registers:
        if register.constant and driver.read(register.name) != register.reset:
            raise BusFault(f"{register.name} is {driver.read(register.name):#x}, not {register.reset:#x}")
    jobs = 0
    for exchange in exchanges:
        _exchange(driver, exchange)
        jobs += bool(exchange.count)
    if driver.read("JOBS") != jobs:
        raise BusFault(f"JOBS is {driver.read('JOBS')} after {jobs} jobs")
    last = _last(exchanges)
    for act, cause in (
        (lambda: driver.read("DATA_OUT"), "EMPTY"), (lambda: driver.write("DATA_IN", 1), "LONG"),
        (lambda: driver.write("COMMAND", device.commands[-1].number + 1), "COMMAND"),
        (lambda: driver.send(last.command, last.words[:1]), "NONE"),
        (lambda: driver.write("COMMAND", last.command), "BUSY" if len(last.words) < 2 else "SHORT"),
    ):  # fmt: skip
        start = driver.bus.cycles
        act()
        if (found := driver.error()) != cause:
            raise BusFault(f"the cause of an error is {found}, not {cause}")
    aborts = [start] * (cause == "SHORT")
    aborts.append(driver.bus.cycles)
    driver.write("CONTROL", ABORT)
    again = [*_before(exchanges, last), last]
    for _ in range(2):  # the second time after an abort in the middle of the job
        driver.ready()
        for exchange in again:
            _exchange(driver, exchange)
        for exchange in again[:-1]:
            _exchange(driver, exchange)
        driver.send(last.command, last.words)
        driver.bus.wait(7)
        aborts.append(driver.bus.cycles)
        driver.write("CONTROL", ABORT)
    return aborts


def _in_packets(driver: PacketDriver[BusSimulator], exchanges: Sequence[Exchange]) -> None:
    """Raise BusFault at the first fault of a constant register, an answer, the number of jobs."""
    registers = register_map(driver.device)
    for register in registers.registers:
        found = driver.constants()[register.offset // 4]
        if register.constant and found != register.reset:
            raise BusFault(f"{register.name} is {found:#x}, not {register.reset:#x}")
    for exchange in exchanges:
        _exchange(driver, exchange)
    found, jobs = driver.constants()[registers["JOBS"].offset // 4], sum(bool(e.count) for e in exchanges)
    if found != jobs:
        raise BusFault(f"JOBS is {found} after {jobs} jobs")


def _wrong_packets(driver: PacketDriver[BusSimulator], exchanges: Sequence[Exchange]) -> None:
    """Raise BusFault for an error that is not reported, a wrong answer after one or after an end of a job."""
    last = _last(exchanges)
    again, command = [*_before(exchanges, last), last], last.command
    for packet, cause in (
        ([driver.device.commands[-1].number + 1, 1], "COMMAND"), ([command], "SHORT"),
        ([command, *last.words[:-1]], "SHORT"), ([command, *last.words, 0], "LONG"),
    ):  # fmt: skip
        for exchange in again[:-1]:
            _exchange(driver, exchange)
        status, found = driver.exchange(packet[0], packet[1:])
        if driver.cause(status) != cause or found:
            raise BusFault(f"the cause of an error is {driver.cause(status)}, not {cause}")
    for exchange in [*again, *again[:-1]]:
        _exchange(driver, exchange, " after errors")
    driver.put([command, *last.words])
    driver.bus.wait(PACE * len(last.words))  # the job has begun
    driver.put([CONTROLS["abort"]])
    (status, *found), _ = driver.get(), driver.get()
    if (cause := driver.cause(status)) != "ABORTED" and not last.right(found):
        raise BusFault(f"the cause of a job that is ended is {cause}, not ABORTED")
    for exchange in again:
        _exchange(driver, exchange, " after an abort")


AnyDriver = BusDriver[BusSimulator] | PacketDriver[BusSimulator]


def zeroised(driver: AnyDriver, fresh: AnyDriver, job: Sequence[Exchange]) -> None:
    """Zeroise a device and another one that was ``fresh`` after the same power-up. Raises BusFault if it takes longer
    than stated, if messages are accepted meanwhile, and for registers and memories with different contents.

    A multiplier may have counters of its numbers that no reset sets. So the contents of a register of at most a byte
    may also be those of a device that had more products, of zeros. ``job``: the messages of a product."""
    driver.ready()  # after an abort this takes a while with a slow clock behind the bus
    fresh.bus.wait(driver.bus.cycles - fresh.bus.cycles)  # counters without a reset have the same values then
    for each in (driver, fresh):
        _zeroise(each)
    held = driver.bus.contents()
    left = [name for name, clean in fresh.bus.contents().items() if held[name] != clean and not name.endswith(COUNTERS)]
    if left and driver.device.operands:
        others = [*_zeroised_again(fresh, job)]
        left = [name for name in left if len(held[name]) > 1 or all(held[name] != other[name] for other in others)]
    if left:
        raise BusFault(f"zeroising leaves {len(left)} registers or memories, the first is {left[0]}")


def _zeroised_again(device: AnyDriver, job: Sequence[Exchange]) -> Iterator[dict[str, bytes]]:
    """The contents of a device that is zeroised a second time, and then a third time after a product of zeros."""
    _zeroise(device)
    yield device.bus.contents()
    for exchange in job:
        device.run(exchange.command, [0] * len(exchange.words) if exchange.count else exchange.words, exchange.count)
    _zeroise(device)
    yield device.bus.contents()


def _zeroise(each: AnyDriver) -> None:
    """Zeroise a device. Raises BusFault as `zeroised` does."""
    most = each.device.zeroise_cycles
    each.ready()
    if isinstance(each, BusDriver):
        for register, word in (("IRQ_STATUS", 3), ("IRQ_ENABLE", 1), ("CONTROL", ZEROISE)):
            each.write(register, word)
        start = each.bus.cycles
        each.write("COMMAND", 0)
        if (found := each.error()) != "BUSY":
            raise BusFault(f"the cause of a command while zeroising is {found}, not BUSY")
        each.bus.wait(each.bus.slower(most), interrupt=True)
        right, cycles = each.read("STATUS", "zeroised"), each.bus.cycles - start
    else:
        right, cycles = each.act(ZEROISE, "zeroised")
        right = right and cycles <= each.bus.slower(most) + PACKET_CYCLES
    if not right:
        raise BusFault(f"zeroising takes more than {cycles:,} cycles, {most:,} are stated")


def self_tested(driver: AnyDriver) -> None:
    """Run the self-test of a device that has one. Raises BusFault if it fails or has no end."""
    if not driver.device.selftest:
        return
    if not driver.act(SELFTEST, "passed")[0]:
        raise BusFault("the self-test fails, or has no end")


def _last(exchanges: Sequence[Exchange]) -> Exchange:
    """The last message with an answer."""
    return next(exchange for exchange in reversed(exchanges) if exchange.count)


def _before(exchanges: Sequence[Exchange], job: Exchange) -> list[Exchange]:
    """The last message without an answer before a job."""
    found = [exchange for exchange in exchanges[: exchanges.index(job)] if not exchange.count]
    return found[-1:]


def _exchange(driver: AnyDriver, exchange: Exchange, when: str = "") -> None:
    driver.ready()
    if not exchange.right(driver.run(exchange.command, exchange.words, exchange.count)):
        raise BusFault(f"{exchange.what} through the bus has a wrong result{when}")
