# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Python's driver over a serial line, at the simulated pins of a board; lost and damaged bytes, a wrong rate."""

import functools
import os
import random
import subprocess
import sys
import threading
from contextlib import suppress
from types import SimpleNamespace

import pytest
import stub_engine as stub

from modmill.buses.adapters import find_bus
from modmill.buses.files import bus_texts
from modmill.buses.registers import MAGIC, SELFTEST, register_map
from modmill.buses.simulate import BusDriver
from modmill.buses.uart import DONE, MOST_CYCLES, READ, REQUEST, RESET, UNKNOWN, WAIT, SerialLine, UartBus
from modmill.soc.bitstream import BoardDesign
from modmill.soc.boards import find_board
from modmill.soc.serial import SerialBoard

DIVIDER = 12
OFFSET = {register.name: register.offset for register in register_map(stub.DEVICE).registers}
WORDS = list(range(100, 124))
JOBS = [([stub.KEY, 1, 2, 3], []), ([stub.ECHO, *WORDS], stub.answer(6, stub.ECHO, WORDS)), ([stub.ONE, 7], [13])]


@functools.cache
def files(bus):
    return bus_texts(stub.DEVICE, find_bus(bus), stub.VERILOG)


def design(bus="wishbone"):
    """The stub behind a bus, behind a line."""
    messages = [{"in": [f"{w:x}" for w in sent], "out": [f"{w:x}" for w in got]} for sent, got in JOBS]
    engine = SimpleNamespace(
        word=32, top="stub", bus=bus, device=stub.DEVICE, verilog=stub.VERILOG, power_up=stub.DEVICE.power_up,
        blinding=None, vectors=lambda: {"messages": messages},
    )  # fmt: skip
    made = BoardDesign(engine, find_board("ulx3s-85f"), divider=DIVIDER)
    made.__dict__["_bus_texts"] = files(bus)
    return made


class Line:
    """A line to a simulated board that does ``spoil`` to what is sent and received; ``most``: cycles of patience."""

    def __init__(self, board, spoil=lambda data, sent: data, most=60 * 16 * DIVIDER):
        self.board, self.spoil, self.most = board, spoil, most

    def send_break(self):
        self.board.send_break()

    def write(self, data):
        self.board.write(self.spoil(data, True))

    def read(self, count):
        return self.spoil(self.board.read(count, self.most), False)


def jobs(bus):
    """The answers of the jobs that are wrong."""
    driver = BusDriver(stub.DEVICE, bus)
    for (command, *words), wanted in JOBS:
        driver.ready()
        if (found := driver.run(command, words, len(wanted))) != wanted:
            yield found


@pytest.fixture(scope="module")
def board():
    return SerialBoard(design())


@pytest.mark.parametrize(
    "name", ["wishbone", *(pytest.param(b, marks=pytest.mark.long) for b in ("apb", "ahb-lite", "axi4-lite"))]
)
def test_the_driver_over_a_line(name, board):
    if name != "wishbone":
        board = SerialBoard(design(name))
    bus = UartBus(Line(board, most=4 * MOST_CYCLES))
    driver = BusDriver(stub.DEVICE, bus)
    assert list(jobs(bus)) == [] and driver.read("JOBS") == 2 and board.led
    driver.write("CONTROL", SELFTEST)
    driver.ready()
    assert driver.read("STATUS", "passed") and driver.error() == "NONE"
    assert bus.read(0x40) == (0, True) and bus.write(OFFSET["MAGIC"], 1) and bus.read(OFFSET["MAGIC"]) == (MAGIC, False)
    driver.write("IRQ_STATUS", 3)
    assert bus.wait(5000) == 5000 and bus.wait(0) == 4096
    for request in ((RESET, 0, 1), (READ, 2, 0), (READ, 0x1000, 0), (WAIT, 0, MOST_CYCLES + 1), (1 << 31, 0, 0)):
        assert bus.request(*request) == (UNKNOWN, 0)
    assert bus.request(WAIT, 2, 1) == (DONE, 1)
    bus.reset()
    assert driver.read("JOBS") == 0


def spoiled(rnd, kind):
    """What loses, changes or repeats one byte of the requests or of the replies, at a random time."""
    wanted = rnd.random() < 0.5
    left = rnd.randrange(600)

    def spoil(data, sent):
        nonlocal left
        if sent != wanted or left < 0:
            return data
        left -= len(data)
        if left >= 0:
            return data
        place = left + len(data)
        one = {
            "lost": b"",
            "changed": bytes([data[place] ^ 1 << rnd.randrange(8)]),
            "repeated": data[place : place + 1] * 2,
        }
        changed = data[:place] + one[kind] + data[place + 1 :]
        return changed if sent else changed[: len(data)]

    return spoil


def outcome(line, kind=UartBus):
    """What became of the jobs: right, wrong, or the message of an error."""
    bus = kind(line)
    try:
        wrong = list(jobs(bus))
    except (TimeoutError, ConnectionError) as error:
        with pytest.raises(ConnectionError, match="is broken; reset it"):
            bus.read(OFFSET["MAGIC"])
        return str(error)
    return "wrong" if wrong else "right"


def test_no_fault_of_a_line_gives_an_answer(board):
    """After each of them a reset mends the connection."""
    rnd = random.Random(1)
    seen = [outcome(Line(board, spoiled(rnd, kind))) for kind in ("lost", "changed", "repeated") for _ in range(12)]
    assert {text.partition(" of ")[-1][:21] or text.partition(" is ")[-1][:7] for text in seen} == {
        "12 bytes of a reply c", "damaged",
    }  # fmt: skip
    assert list(jobs(UartBus(Line(board)))) == []


class Unchecked(UartBus):
    """A planted fault: the host believes every reply."""

    def _checked(self, words):
        return super()._checked(words) if len(words) == REQUEST.size else Anything(words)


class Anything(bytes):
    def __ne__(self, other):
        return False


def test_the_check_of_the_host_is_needed(board):
    def change(data, sent):
        return data if sent else data[:4] + bytes([data[4] ^ 1]) + data[5:]

    with pytest.raises(ConnectionError, match="is damaged"):
        UartBus(Line(board, change)).read(OFFSET["MAGIC"])
    assert Unchecked(Line(board, change)).read(OFFSET["MAGIC"]) == (MAGIC ^ 1, False)


@pytest.mark.long
def test_a_board_without_check_does_what_a_damaged_request_says():
    """The host finds it by the check of the reply, which covers the request, too; without both the answer is wrong."""
    planted = design()
    for old, new in (("if (i_data == ~sum) step", "step"), ("wrong <= i_data != ~sum", "wrong <= 0")):
        assert old in planted.files["uart.v"]
        planted.files["uart.v"] = planted.files["uart.v"].replace(old, new)

    def change_a_word(data, sent):
        return (
            data[:8] + (99).to_bytes(4, "little") + data[12:]
            if sent and data[8:12] == (7).to_bytes(4, "little")
            else data
        )

    board = SerialBoard(planted)
    assert "belongs to another request" in outcome(Line(board, change_a_word))
    assert outcome(Line(board, change_a_word), Unchecked) == "wrong"
    assert "0 of 12 bytes" in outcome(Line(SerialBoard(design()), change_a_word))


@pytest.mark.parametrize("bit", [DIVIDER // 2, DIVIDER + 2])
def test_a_line_with_another_rate_gives_no_answer(bit, board):
    assert "or the line has another rate" in outcome(Line(SerialBoard(design(), bit=bit)))


def test_the_script_of_the_host_at_the_pins(board, tmp_path):
    """Through a pseudo-terminal, which has no break: a board that is reset is behind it. Then one that is silent."""
    pytest.importorskip("termios")
    try:
        master, slave = os.openpty()
    except OSError as error:
        pytest.skip(f"no pseudo-terminals here: {error}")
    for name, text in design().files.items():
        (tmp_path / name).write_text(text)
    board.send_break()

    def pins():
        sent = 0
        with suppress(OSError):  # nobody has the line open any more
            while True:
                board.write(os.read(master, 1))
                sent += 1
                if sent % 16 == 0:
                    os.write(master, board.read(12))

    threading.Thread(target=pins, daemon=True).start()
    command = [sys.executable, tmp_path / "host.py", os.ttyname(slave)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.count("is right") == 2
    os.close(slave)
    with pytest.raises(OSError, match="is no serial line"):
        SerialLine(tmp_path / "host.py")
    with pytest.raises(ValueError, match="no rate of 1000 baud"):
        SerialLine("/dev/null", 1000)
    _, silent = os.openpty()
    with pytest.raises(TimeoutError, match="0 of 12 bytes"):
        UartBus(SerialLine(os.ttyname(silent), seconds=0.1)).read(0)
