# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Boards with an ECP5 and a serial line, and the pins that a bitstream needs.

Pins, devices and clocks are those of the platforms of LiteX-Boards. No bitstream was run on a board here.
"""

from __future__ import annotations

from dataclasses import dataclass

from modmill.numbers.shown import near, shortened


@dataclass(frozen=True)
class Board:
    """A board. ``option``, ``package``, ``speed``: of nextpnr; ``target``: the device of `flow.targets` for synthesis.
    ``mhz``: of the clock pin; ``divide``: the engine's clock is the pin's, or half of it. ``rx``: from the host."""

    name: str
    title: str
    option: str
    package: str
    speed: str
    target: str
    mhz: float
    divide: int
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
    Board("ulx3s-85f", "ULX3S with LFE5U-85F", "--85k", "CABGA381", "6", "ecp5-85k", 25, 1, "G2", "M1", "L4", "B2"),
    Board("colorlight-i5", "Colorlight i5 7.0 on its extension board", "--25k", "CABGA381", "6", "ecp5-25k", 25, 1,
          "P3", "H18", "J17", "U16", led_high=False),
    Board("icesugar-pro", "iCESugar-Pro", "--25k", "CABGA256", "6", "ecp5-25k", 25, 1, "P6", "A9", "B9", "A11",
          led_high=False),
    Board("ecpix5", "ECPIX-5 with LFE5UM5G-85F", "--um5g-85k", "CABGA554", "8", "ecp5-85k", 100, 2, "K23", "R26", "R24",
          "W21", led_high=False),
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
