# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""An engine behind the serial line of a board, driven at its pins; what a bitstream's folder holds."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from modmill.contract import UnsupportedError
from modmill.cores.ecc.machine import ecc
from modmill.cores.rsa.machine import engine
from modmill.flow import tools
from modmill.report.rows import Row, read
from modmill.soc.bitstream import BITSTREAM, BoardDesign, rows_table
from modmill.soc.boards import BOARDS, find_board, find_pll
from modmill.soc.serial import SerialBoard

DIVIDER = 20
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def small():
    return engine("montgomery-array", width=64, bits=16, threads=1)


@pytest.fixture(scope="module")
def x25519():
    return ecc("X25519", "montgomery-array", threads=1)


def exchanged(board, core):
    """All messages of the vectors, with the words that came and those that are right."""
    for message in core.vectors()["messages"]:
        words, wanted = ([int(word, 16) for word in message[key]] for key in ("in", "out"))
        yield board.exchange(words, len(wanted), most=500_000), wanted


@pytest.mark.parametrize(("name", "mhz"), [*((board.name, 0) for board in BOARDS), ("ulx3s-85f", 100)])
def test_every_board_answers_all_vectors(name, mhz, small):
    """With the board's default clock, and with one of the PLL."""
    board = SerialBoard(BoardDesign(small, find_board(name), mhz=mhz, divider=DIVIDER))
    for found, wanted in exchanged(board, small):
        assert found == wanted
    assert board.led == find_board(name).led_high


def test_x25519_of_rfc_7748(x25519):
    """The first vector of Section 5.2, through the pins of a board."""
    core = x25519
    board = SerialBoard(BoardDesign(core, find_board("ulx3s-85f"), divider=DIVIDER))
    scalar, u, wanted = (int(text, 16) for text in (
        "449a44ba44226a50185afcc10a4c1462dd5e46824b15163b9d7c52f06be346a0",
        "4c1cabd0a603a9103b35b326ec2466727c5fb124a4c19435db3030586768dbe6",
        "5285a2775507b454f7711c4903cfec324f088df24dea948e90c6e99d3755dac3",
    ))  # fmt: skip
    clamped = scalar & ~7 & (1 << 255) - 1 | 1 << 254
    message = core.message("ladder", [(((clamped,), {"u": u, "blind": 1}), (wanted,))])
    board.exchange(core.setup(), 0)
    assert core.layout.results(0, board.exchange(message.words, core.layout.answer_words(0)), core.curve.p) == [
        (wanted,)
    ]


def test_a_break_resets_the_board(small):
    """Half a message is forgotten; what comes after the break is right. Noise on the line is no byte."""
    board = SerialBoard(BoardDesign(small, find_board("ulx3s-85f"), divider=DIVIDER))
    setup, *_ = small.vectors()["messages"]
    board.exchange([int(word, 16) for word in setup["in"]][:-1], 0)
    board.send_break()
    for _ in range(3):
        board.hold(0, DIVIDER // 4)
        board.hold(1, 30 * DIVIDER)
    assert all(found == wanted for found, wanted in exchanged(board, small))


def test_words_that_are_lost_turn_the_led_off(x25519):
    """More words than the queue holds, while the engine works on a job."""
    board = SerialBoard(BoardDesign(x25519, find_board("ulx3s-85f"), divider=DIVIDER))
    setup, job = ([int(word, 16) for word in message["in"]] for message in x25519.vectors()["messages"][:2])
    board.exchange(setup, 0)
    for times, lit in ((1, True), (3, False)):
        with pytest.raises(tools.ToolError, match="0 of 4 bytes came from the board"):
            board.exchange(job * times, 1, most=100_000)
        assert board.led == lit


@pytest.mark.parametrize(
    ("old", "new"),
    [("left <= 10;\n      count <= DIVIDER - 1;", "left <= 9;\n      count <= DIVIDER - 1;"),
     ("place == 2'd3;\n\n  assign valid", "place == 2'd2;\n\n  assign valid"),
     ("{seen[1], data[7:1]}", "{data[6:0], seen[1]}"),
     ("written - read == 5'd16", "written - read == 5'd0")],
)  # fmt: skip
def test_a_planted_fault_of_the_line_is_found(old, new, small, monkeypatch):
    design = BoardDesign(small, find_board("ulx3s-85f"), divider=DIVIDER)
    assert old in design.files["uart.v"]
    design.files["uart.v"] = design.files["uart.v"].replace(old, new)
    board = SerialBoard(design)
    try:
        assert any(found != wanted for found, wanted in exchanged(board, small))
    except tools.ToolError as error:
        assert "bytes came from the board" in str(error)


def test_the_script_for_the_host_compares_all_answers(small, tmp_path):
    """With a pseudo-terminal as the serial line and a board that answers from the vectors."""
    pytest.importorskip("termios")
    try:
        list(map(os.close, os.openpty()))
    except OSError as error:
        pytest.skip(f"no pseudo-terminals here: {error}")
    for name, text in BoardDesign(small, find_board("ulx3s-85f")).files.items():
        (tmp_path / name).write_text(text)
    messages = small.vectors()["messages"]

    def answer(master, wrong):
        for message in messages if not wrong else messages[:2]:
            left = 4 * len(message["in"])
            while left:
                left -= len(os.read(master, left))
            for word in message["out"]:
                os.write(master, (int(word, 16) ^ wrong).to_bytes(4, "little"))

    for wrong, status in ((0, 0), (1, 1)):
        master, slave = os.openpty()
        thread = threading.Thread(target=answer, args=(master, wrong), daemon=True)
        command = [sys.executable, tmp_path / "host.py", os.ttyname(slave)]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        thread.start()
        shown, errors = running.communicate(timeout=60)
        assert running.returncode == status, errors
        assert "is right" in shown if not wrong else "wrong answer after 0 right ones" in errors
        os.close(slave)


def test_what_no_board_takes_is_refused(small):
    with pytest.raises(ValueError, match=r"one of ulx3s-85f, .*, not 'ulx3s'; the nearest is ulx3s-85f"):
        find_board("ulx3s")
    with pytest.raises(UnsupportedError, match="words of 32 bits, not 16"):
        BoardDesign(engine("montgomery-array", width=64, bits=16, threads=1, word=16), BOARDS[0])
    with pytest.raises(UnsupportedError, match=r"baud must be one of 9600, .*, not 1000"):
        BoardDesign(small, BOARDS[0], 1000)


@pytest.mark.parametrize("pin", [25, 100])
def test_every_clock_of_the_pll_is_that_of_its_dividers(pin):
    for mhz in (10, 12.5, 50, 62.5, 100, 125, 150, 200, 400):
        pll = find_pll(pin, mhz)
        assert pin * pll.feedback == mhz * pll.input and 400 <= mhz * pll.output <= 800
        assert pin / pll.input >= 3.125
    with pytest.raises(UnsupportedError, match=r"no clock of 33\.3 MHz of one of \d+ MHz; 32\.\d+ is possible"):
        find_pll(pin, 33.3)
    with pytest.raises(UnsupportedError, match=r"no clock of 1 MHz of one of \d+ MHz$"):
        find_pll(pin, 1)


@pytest.mark.long
@pytest.mark.parametrize(("name", "mhz"), [("ulx3s-85f", 100), ("icesugar-pro", 0), ("ecpix5", 0)])
def test_a_bitstream(name, mhz, small):
    design = BoardDesign(small, board := find_board(name), mhz=mhz)
    report, files = design.make()
    assert report["mhz_routed"] >= report["mhz"] == (mhz or board.engine_mhz)
    assert len(files[BITSTREAM]) > 50_000 and json.loads(files["report.json"]) == report
    row = design.row(report)
    assert Row.parse(row.line()) == row and row.values["seconds"] == report["seconds"]
    assert f"| powers, 16 bits, `montgomery-array` | none | `{name}` |" in rows_table([row])[-1]


def test_an_engine_that_is_too_large_is_refused(small, monkeypatch):
    """Before it is placed, with the numbers."""
    needed = {"dsp": 5, "lut": 24_289, "ff": 9, "bram": 1}
    monkeypatch.setattr("modmill.soc.bitstream.synthesise", lambda *_, **__: SimpleNamespace(values=needed))
    with pytest.raises(tools.ToolError, match=r"does not fit iCESugar-Pro: it needs 24,289 LUT of 24,288$"):
        BoardDesign(small, find_board("icesugar-pro")).make()


def test_the_page_has_the_rows():
    """With and without a bus."""
    rows = list(read(ROOT / "results" / "boards.jsonl"))
    assert {bool(row.about["bus"]) for row in rows} == {True, False}
    assert "\n".join(rows_table(rows)) in (ROOT / "docs" / "boards.md").read_text()
