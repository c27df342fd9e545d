# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A front whose device raises its alarm: no word is left, messages are refused until the reset, zeroise works."""

import ctypes
import re
from dataclasses import replace

import pytest
import stub_engine as stub
from test_bus_driver import BUS, ZIG, Driver, compiled, with_hooks

from marks import long
from modmill.buses.adapters import BUSES, find_bus
from modmill.buses.device import Device
from modmill.buses.files import descriptions
from modmill.buses.front import whole
from modmill.buses.registers import NUMBERS, SELFTEST, ZEROISE, register_map
from modmill.buses.simulate import PERIODS, BusDriver, BusFault, BusSimulator, driver_of
from modmill.contract import ALARM
from modmill.flow.emit import without_initial_values

DEVICE = replace(stub.DEVICE, alarm=True, patience=500)
BAD, WORSE, LATE = 0xBAD, 0x1BAD, 0x1A7E
"""Words at which the stub raises its alarm: until a reset, at the next word of every message too, when it is given."""
WORDS = list(range(24))
KEY = [1, 2, 3]
TO_LATE = [*range(18), LATE - sum(KEY), *range(5)]
"""Words of an echo that raises the alarm with the word number 18 of its answer."""
VERILOG = (
    stub.VERILOG.replace("output reg o_last);", f"output reg o_last, output reg {ALARM});\n  reg worse = 0;")
    .replace("initial hold = 0;", "").replace("noise[0] & ~hold", f"noise[0] & ~{ALARM}")
    .replace("if (rst) begin", f"""if (take & (i_data == {BAD} | i_data == {WORSE} | worse)) {ALARM} <= 1;
    if (take & i_data == {WORSE}) worse <= 1;
    if (o_valid & o_ready & o_data == {LATE}) {ALARM} <= 1;
    if (rst) begin
      {ALARM} <= 0;""")
)  # fmt: skip


def verilog(bus, device=DEVICE):
    text = VERILOG if device.machines == 1 else VERILOG.replace("module stub(", "module stub_core(")
    return without_initial_values(whole(device, find_bus(bus), text)).replace("reg worse;", "reg worse = 0;")


SLOW = 1 + max(range(len(PERIODS)), key=PERIODS.__getitem__)
"""The seed of a simulation with the slowest separate clock."""


class Fault(Exception):
    """What the front does wrong."""


def require(right, what):
    if not right:
        raise Fault(what)


def refused(driver, command=stub.ECHO, words=tuple(WORDS)):
    """Whether a message has the error ALARM and no answer."""
    count = driver.device.commands[command].answer
    try:
        driver.run(command, words, count)
    except BusFault as fault:
        return "ALARM" in str(fault)
    return False


def status(driver, name):
    if isinstance(driver, BusDriver):
        return driver.read("STATUS", name)
    return driver.field(driver.exchange(0x100)[0], name)


def idle(driver):
    return not any(status(driver, name) for name in ("receiving", "busy", "done", "loaded"))


def started(text, device, bus, seed=1):
    """A driver of a device with its key."""
    driver = driver_of(device, find_bus(bus), BusSimulator(text, device, find_bus(bus), seed))
    try:
        driver.ready()
    except BusFault as fault:
        raise Fault(str(fault)) from None
    driver.run(stub.KEY, KEY, 0)
    words, machines = WORDS * device.machines, device.machines
    found = driver.run(stub.ECHO, words, len(words))
    require(found == stub.answer(sum(KEY), stub.ECHO, words, machines), "a wrong answer")
    require(not status(driver, "alarm"), "an alarm at the start")
    return driver


def attempt(text, bus, device=DEVICE):
    """Raise Fault at the first fault of a front."""
    driver = started(text, device, bus)
    others = [5] * (device.machines - 1)
    require(refused(driver, stub.ONE, [*others, BAD]), "an alarm in a job is no error")
    require(status(driver, "alarm"), "STATUS.alarm is 0")
    require(refused(driver) and refused(driver), "a message after an alarm")
    require(refused(driver, stub.KEY, KEY) and idle(driver), "command 0 after an alarm")
    try:
        passed = driver.act(SELFTEST, "passed")[0]
    except BusFault:
        passed = False
    require(not passed, "a self-test after an alarm")
    for _ in range(2):
        if isinstance(driver, BusDriver):
            driver.error()
        require(driver.act(ZEROISE, "zeroised")[0], "zeroise after an alarm")
        require(status(driver, "alarm") and refused(driver), "zeroise clears an alarm")
    driver.bus.reset(device.power_up)
    driver = started_again(driver)
    if device.machines > 1:
        return
    if isinstance(driver, BusDriver):
        in_registers(driver)
    else:
        late_in_packets(driver)
    worse = started(text, device, bus)
    require(refused(worse, stub.ONE, [*others, WORSE]), "an alarm that stays is no error")
    if isinstance(worse, BusDriver):
        worse.error()
    require(not worse.act(ZEROISE, "zeroised")[0], "zeroised in spite of an alarm")
    require(idle(worse), "zeroise has no end after an alarm")
    if isinstance(worse, BusDriver):
        at_once(started(text, device, bus, SLOW))


def started_again(driver):
    driver.ready()
    driver.run(stub.KEY, KEY, 0)
    require(not status(driver, "alarm"), "an alarm after a reset")
    machines = driver.device.machines
    require(driver.run(stub.ONE, [5] * machines, machines) == [11] * machines, "a wrong answer after a reset")
    return driver


def in_registers(driver):
    """The alarm as an interrupt of its own; no word of an answer that began is left."""
    driver.write("IRQ_ENABLE", 4)
    driver.write("COMMAND", stub.ECHO)
    for word in TO_LATE:
        while not driver.read("LEVEL", "free"):
            pass
        driver.write("DATA_IN", word)
    while driver.read("LEVEL", "words") < 8:
        pass
    require(driver.read("DATA_OUT") == sum(KEY), "the first word of an answer")
    while driver.bus.wait(1, interrupt=True) != 0:
        if driver.read("LEVEL", "words"):
            driver.read("DATA_OUT")
    require(driver.read("IRQ_STATUS", "alarm") and driver.read("STATUS", "alarm"), "an interrupt without its cause")
    require(driver.read("LEVEL", "words") == 0 and driver.read("DATA_OUT") == 0, "a word after an alarm")
    driver.write("IRQ_STATUS", 7)
    driver.bus.wait(8)
    require(driver.bus.wait(20, interrupt=True) == 20, "an interrupt that stays")
    driver.write("DATA_IN", 1)
    require(driver.read("STATUS", "cause") == NUMBERS["ALARM"], "a word after an alarm has another cause")
    require(driver.read("STATUS", "alarm") and not driver.read("STATUS", "ready"), "an alarm that does not stay")


def at_once(driver):
    """Zeroise in the cycle of the interrupt: with a slow clock behind the bus the device is not in reset yet."""
    driver.write("IRQ_ENABLE", 4)
    driver.send(stub.ONE, [BAD])
    require(driver.bus.wait(1000, interrupt=True) < 1000, "no interrupt")
    driver.write("CONTROL", ZEROISE)
    driver.bus.wait(driver.bus.slower(driver.device.zeroise_cycles))
    require(driver.read("STATUS", "zeroised"), "zeroise at once has no effect")


def late_in_packets(driver):
    """A packet of an answer that began ends; the next one has the error."""
    driver.put([stub.ECHO, *TO_LATE])
    first, *found = driver.get()
    require(driver.cause(first) == "NONE" and found[-1] == 0 and 0 < len(found) < 24, "a whole answer")
    require(found[:-1] == stub.answer(sum(KEY), stub.ECHO, TO_LATE)[: len(found) - 1], "a wrong word of an answer")
    require(refused(driver), "a message after a late alarm")


@pytest.mark.parametrize("bus", ["axi4-lite", *(long(bus.name) for bus in BUSES if bus.name != "axi4-lite")])
def test_after_an_alarm(bus):
    attempt(verilog(bus), bus)


@pytest.mark.long
@pytest.mark.parametrize("bus", ["apb", "axi-stream"])
def test_after_an_alarm_from_another_clock(bus):
    device = replace(DEVICE, separate=True)
    attempt(verilog(bus, device), bus, device)


@pytest.mark.parametrize(
    ("bus", "right", "wrong", "what"),
    [
        ("axi4-lite", rf"device_alarm <= {ALARM};", "device_alarm <= 0;", "an alarm in a job is no error"),
        long("axi4-lite", r"alarmed <= [^;]*;", "alarmed <= 0;", "STATUS.alarm is 0"),
        long("axi4-lite", r"allowed & ~alarmed", "allowed", "command 0 after an alarm"),
        long("axi4-lite", r"stop_begins \| halt", "stop_begins", "zeroise has no end"),
        long("axi4-lite", r"(out_level <= rst \? 5'h00 : )state_reset \? 5'h00 : ", r"\1", "a word after an alarm"),
        long("axi-stream", rf"device_alarm <= {ALARM};", "device_alarm <= 0;", "an alarm in a job is no error"),
        long("apb separate", r"device_alarm & ~state_reset", "device_alarm", "zeroise at once"),
    ],
)  # fmt: skip
def test_a_planted_fault_is_caught(bus, right, wrong, what):
    bus, _, separate = bus.partition(" ")
    device = replace(DEVICE, separate=bool(separate))
    text, count = re.subn(right, wrong, verilog(bus, device))
    assert count, f"nothing to change: {right}"
    with pytest.raises(Fault, match=what):
        attempt(text, bus, device)


@pytest.mark.long
def test_the_driver_in_c(tmp_path):
    for name, text in descriptions(DEVICE, BUS).items():
        (tmp_path / name).write_text(text)
    assert compiled(ZIG, tmp_path, "-o", "stub.o").returncode == 0
    driver = Driver(with_hooks(tmp_path), BusSimulator(verilog(BUS.name), DEVICE, BUS))
    assert driver.call("open", None) == 0
    driver.device.patience = 2000
    assert driver.run(stub.KEY, KEY, 0)[0] == 0
    assert driver.run(stub.ONE, [5], 1) == (0, [11])
    alarm = NUMBERS["ALARM"]
    assert driver.run(stub.ONE, [BAD], 1)[0] == alarm
    assert driver.run(stub.KEY, KEY, 0)[0] == alarm
    assert driver.call("selftest") == driver.call("abort") == alarm
    assert driver.call("zeroise") == driver.call("zeroise") == 0
    assert driver.call("open", None) == alarm
    driver.bus.reset(DEVICE.power_up)
    driver.call("interrupts", 0, 1)
    assert driver.run(stub.KEY, KEY, 0)[0] == 0
    words = (ctypes.c_uint32 * 1)(BAD)
    assert driver.call("send", stub.ONE, words, ctypes.c_size_t(1)) == 0
    assert driver.bus.wait(1000, interrupt=True) < 200
    assert driver.call("receive", words, ctypes.c_size_t(1)) == alarm


@pytest.mark.long
def test_the_driver_of_packets_in_c(tmp_path):
    """What it tells is in its header and in the word of status, as of other errors."""
    text = descriptions(DEVICE, find_bus("axi-stream"))["stub.h"]
    assert f"define STUB_ERROR_ALARM {NUMBERS['ALARM']} " in text and "STUB_STATUS_ALARM_MASK 0x00002000u" in text


@pytest.mark.long
@pytest.mark.parametrize(("bus", "separate"), [("axi4-lite", False), ("axi-stream", False), ("apb", True)])
def test_after_an_alarm_of_the_last_of_several_machines(bus, separate):
    """It is found, unless the dealer does not hear that machine."""
    device = replace(stub.several(3), alarm=True, patience=1500, separate=separate)
    text = verilog(bus, device)
    attempt(text, bus, device)
    deaf, count = re.subn(rf"\|\{{core2_{ALARM}, ", "|{", text)
    assert count == 1
    with pytest.raises(Fault, match="an alarm in a job is no error"):
        attempt(deaf, bus, device)


def test_only_a_device_with_an_alarm_has_its_fields():
    def names(device: Device) -> set[tuple[str, str]]:
        return {(register.name, field.name) for register, field in register_map(device).fields()}

    assert names(DEVICE) - names(stub.DEVICE) == {(r, "alarm") for r in ("STATUS", "IRQ_ENABLE", "IRQ_STATUS")}
