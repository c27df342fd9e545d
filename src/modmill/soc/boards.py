# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Boards with an ECP5 and a serial line, and the pins that a bitstream needs.

Pins, devices and clocks are those of the platforms of LiteX-Boards. No bitstream was run on a board here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from modmill.contract import UnsupportedError
from modmill.numbers.shown import near, shortened


@dataclass(frozen=True)
class Board:
    """A board. ``option``, ``package``, ``speed``: of nextpnr; ``target``: the device of `flow.targets` for synthesis.
    ``mhz``: of the clock pin. ``engine_mhz``: default clock of the engine. ``rx``: from the host."""

    name: str
    title: str
    option: str
    package: str
    speed: str
    target: str
    mhz: int
    engine_mhz: int
    clk: str
    rx: str
    tx: str
    led: str
    led_high: bool = True

    @property
    def pins(self) -> dict[str, str]:
        """The pin of each port of the module ``board``."""
        return {"clk_pin": self.clk, "uart_rx": self.rx, "uart_tx": self.tx, "led": self.led}


BOARDS = (
    Board("ulx3s-85f", "ULX3S with LFE5U-85F", "--85k", "CABGA381", "6", "ecp5-85k", 25, 25, "G2", "M1", "L4", "B2"),
    Board("colorlight-i5", "Colorlight i5 7.0 on its extension board", "--25k", "CABGA381", "6", "ecp5-25k", 25, 25,
          "P3", "H18", "J17", "U16", led_high=False),
    Board("icesugar-pro", "iCESugar-Pro", "--25k", "CABGA256", "6", "ecp5-25k", 25, 25, "P6", "A9", "B9", "A11",
          led_high=False),
    Board("ecpix5", "ECPIX-5 with LFE5UM5G-85F", "--um5g-85k", "CABGA554", "8", "ecp5-85k", 100, 50, "K23", "R26",
          "R24", "W21", led_high=False),
)  # fmt: skip
"""The boards."""


def find_board(name: str) -> Board:
    """The board with this name. Raises ValueError for another one."""
    for board in BOARDS:
        if board.name == name:
            return board
    known = [board.name for board in BOARDS]
    raise ValueError("; ".join(filter(None, [
        f"board must be one of {', '.join(known)}, not {shortened(name)}", near(name, known),
    ])))  # fmt: skip


@dataclass(frozen=True)
class Pll:
    """A clock of ``mhz`` from the pin's: the PLL (EHXPLLL) divides the pin's clock by ``input``, compares it with its
    output divided by ``feedback``, and its output is its oscillator's clock divided by ``output``."""

    mhz: Fraction
    input: int
    feedback: int
    output: int


def find_pll(pin_mhz: int, mhz: float) -> Pll:
    """The PLL for a clock of the engine. Raises UnsupportedError if it makes no such clock, with the next lower one.

    The limits (phase detector from 3.125 MHz on, oscillator from 400 to 800 MHz, dividers to 128, 80 and 128) are those
    of the family's data sheet, entered from memory.
    """
    wanted = Fraction(str(mhz))
    lower = [pll for pll in _plls(pin_mhz) if pll.mhz <= wanted]
    best = max(lower, key=lambda pll: (pll.mhz, -pll.input), default=None)
    if best is None or best.mhz != wanted:
        nearest = f"; {float(best.mhz):g} is possible" if best else ""
        raise UnsupportedError(f"the PLL makes no clock of {mhz:g} MHz of one of {pin_mhz} MHz{nearest}")
    return best


def _plls(pin_mhz: int) -> Iterator[Pll]:
    for divider in range(1, min(128, 8 * pin_mhz // 25) + 1):
        for feedback in range(1, 81):
            made = Fraction(pin_mhz * feedback, divider)
            output = int(600 / made) or 1  # near the middle of the oscillator's range
            if output <= 128 and 400 <= made * output <= 800:
                yield Pll(made, divider, feedback, output)
