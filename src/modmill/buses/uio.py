# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A real device that Linux's UIO gives to programs: its registers are map 0, its interrupt is a read of the file."""

from __future__ import annotations

import ctypes
import mmap
import os
import select
from pathlib import Path

from modmill.buses.registers import SPAN


class UioBus:
    """The bus of a device ``/dev/uioN``, for `BusDriver`; ``seconds``: longest wait for an interrupt. Programs do not
    learn of an access that the bus refuses. Raises OSError if there is no such device."""

    def __init__(self, path: Path, seconds: float = 1) -> None:
        self._seconds = seconds
        self._file = self._interrupts = os.open(path, os.O_RDWR)
        try:
            self._registers = mmap.mmap(self._file, SPAN)
        except OSError:
            os.close(self._file)
            raise

    def close(self) -> None:
        """Give the device back."""
        self._registers.close()
        os.close(self._file)

    def read(self, address: int) -> tuple[int, bool]:
        """(word, False)."""
        return ctypes.c_uint32.from_buffer(self._registers, address).value, False

    def write(self, address: int, word: int) -> bool:
        """Write a register. Returns False."""
        ctypes.c_uint32.from_buffer(self._registers, address).value = word
        return False

    def wait(self, cycles: int, *, interrupt: bool = False) -> int:
        """Wait for an interrupt, if asked for, at most the seconds of the bus. Returns ``cycles``; none are counted."""
        if interrupt:
            os.write(self._interrupts, (1).to_bytes(4, "little"))  # the kernel masks an interrupt that it reports
            if select.select([self._interrupts], [], [], self._seconds)[0]:
                os.read(self._interrupts, 4)
        return cycles
