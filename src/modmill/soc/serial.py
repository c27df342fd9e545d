# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A board in simulation, with a host at its serial line."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from importlib import resources

from modmill.flow.emit import without_initial_values
from modmill.flow.library import U64, library
from modmill.flow.tools import ToolError, step
from modmill.soc.bitstream import TOP, BoardDesign

_BYTE = ctypes.c_uint8
_PLL = """
module EHXPLLL #(
  parameter PLLRST_ENA = "", INTFB_WAKE = "", STDBY_ENABLE = "", DPHASE_SOURCE = "", OUTDIVIDER_MUXA = "",
  OUTDIVIDER_MUXB = "", OUTDIVIDER_MUXC = "", OUTDIVIDER_MUXD = "", CLKI_DIV = 1, CLKFB_DIV = 1, CLKOP_ENABLE = "",
  CLKOP_DIV = 1, CLKOP_CPHASE = 0, CLKOP_FPHASE = 0, FEEDBK_PATH = ""
) (
  input RST, STDBY, CLKI, CLKFB, PHASESEL0, PHASESEL1, PHASEDIR, PHASESTEP, PHASELOADREG, PLLWAKESYNC, ENCLKOP,
  output CLKOP, CLKINTFB, LOCK
);
  assign CLKOP = CLKI;
  assign LOCK = 1'b1;
endmodule
"""
"""The PLL in simulation, where only the engine's clock counts."""


class SerialBoard:
    """A board after power-up with random contents of the engine's registers; ``design`` needs a divider. ``bit``:
    cycles of a bit of the host, if they are not the board's. Raises ToolError if it does not compile."""

    surplus = False
    """Whether a byte more than those that were wanted came last."""

    def __init__(self, design: BoardDesign, seed: int = 1, bit: int = 0) -> None:
        texts = [(resources.files("modmill.flow") / "model.cpp").read_text()]
        texts += [(resources.files("modmill.soc") / "uart.cpp").read_text()]
        verilog = {name: text for name, text in design.files.items() if name.endswith(".v")}
        engine = without_initial_values(verilog.pop(design.engine_file))
        path = library("\n".join([*verilog.values(), engine, _PLL]), TOP, "".join(texts))
        self._functions = functions = ctypes.CDLL(str(path))
        functions.modmill_line_start.argtypes, functions.modmill_line_start.restype = [U64, U64], ctypes.c_void_p
        for name, more, result in (
            ("end", (), None), ("hold", (ctypes.c_int, U64), None), ("cycles", (), U64), ("led", (), ctypes.c_int),
            ("exchange", (ctypes.POINTER(_BYTE), U64, ctypes.POINTER(_BYTE), U64, U64), U64),
        ):  # fmt: skip
            function = getattr(functions, f"modmill_line_{name}")
            function.argtypes, function.restype = [ctypes.c_void_p, *more], result
        self.divider, self._waiting = bit or design.divider, b""
        step("simulating")
        self._line = functions.modmill_line_start(seed, self.divider)
        self.hold(1, 64 * self.divider)

    def __del__(self) -> None:
        if getattr(self, "_line", None):
            self._functions.modmill_line_end(self._line)

    @property
    def led(self) -> bool:
        """Whether the pin of the LED is high."""
        return bool(self._functions.modmill_line_led(self._line))

    @property
    def cycles(self) -> int:
        """Cycles since power-up."""
        return int(self._functions.modmill_line_cycles(self._line))

    def hold(self, level: int, cycles: int) -> None:
        """Keep the line at a level."""
        self._functions.modmill_line_hold(self._line, level, cycles)

    def send_break(self) -> None:
        """A break, which resets the board, and the time that the reset takes."""
        self._waiting = b""
        self.hold(0, 40 * self.divider)
        self.hold(1, 40 * self.divider)

    def write(self, data: bytes) -> None:
        """Send bytes, as soon as others are received."""
        self._waiting += data

    def read(self, count: int, most: int = 2_000_000) -> bytes:
        """Send what was written and receive bytes; fewer than ``count`` if no more come within ``most`` cycles."""
        data, self._waiting = self._waiting, b""
        found = (_BYTE * max(1, count))()
        came = self._functions.modmill_line_exchange(
            self._line, (_BYTE * max(1, len(data))).from_buffer_copy(data or b"\0"), len(data), found, count, most
        )
        self.surplus = came > count
        return bytes(found)[: min(came, count)]

    def exchange(self, words: Sequence[int], count: int, most: int = 50_000_000) -> list[int]:
        """Send words, receive ``count`` words. Raises ToolError if other bytes come within ``most`` cycles."""
        self.write(struct.pack(f"<{len(words)}I", *words))
        found = self.read(4 * count, most)
        if len(found) < 4 * count or self.surplus:
            raise ToolError(f"simulation: {len(found) + self.surplus} of {4 * count} bytes came from the board")
        return list(struct.unpack(f"<{count}I", found))
