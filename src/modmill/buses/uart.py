# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A device that is reached by requests: at a socket, or at the serial line of a board. Needs nothing but Python.

A request is three words of 32 bits, little-endian: operation, address, data. Its reply is two: status, data.

    operation 0   read the register at the address; data of the reply: its value
              1   write data to the register at the address
              2   let at most `data` cycles pass, until the interrupt is high; data of the reply: the cycles
              3   reset for `data` cycles (not over a serial line, where a break resets)
    status    0   done
              1   the device refused the access
              2   no such operation, or data out of range; nothing happened

Over a serial line a fourth word ends each request, and a third one each reply: the CRC-32 of all words of requests and
replies since the reset, without these. A board answers nothing after a wrong one, and a host accepts nothing, so that
bytes that are lost, changed, repeated or late end the connection instead of giving a wrong answer.
"""

import os
import select
import struct
import time
import zlib

READ, WRITE, WAIT, RESET = range(4)
DONE, REFUSED, UNKNOWN = range(3)
MOST_CYCLES = 1 << 20
"""Most cycles of one request to wait."""
REQUEST, REPLY = struct.Struct("<III"), struct.Struct("<II")
_CHECK = struct.Struct("<I")


class RequestBus:
    """The bus of a device that is reached by requests, for `BusDriver`; abstract."""

    def request(self, operation: int, address: int, data: int) -> tuple[int, int]:
        """Status and data of the reply to a request."""
        raise NotImplementedError

    def read(self, address: int) -> tuple[int, bool]:
        """(word, whether the access was refused)."""
        status, word = self.request(READ, address, 0)
        return word, status != DONE

    def write(self, address: int, word: int) -> bool:
        """Whether the write was refused."""
        return self.request(WRITE, address, word)[0] != DONE

    def wait(self, cycles: int, *, interrupt: bool = True) -> int:
        """Let cycles pass, at most `MOST_CYCLES`, until irq is high. Returns their number."""
        return self.request(WAIT, 0, min(cycles, MOST_CYCLES))[1]


class SerialLine:
    """A serial line of this machine, for example ``/dev/ttyUSB0``: 8 bits, no parity, one stop bit. ``seconds``:
    longest wait for a byte. Raises OSError if there is no such line, ValueError for a rate that it does not know."""

    def __init__(self, path: str, baud: int = 115200, seconds: float = 2) -> None:
        import termios

        self._termios, self._seconds = termios, seconds
        rate = getattr(termios, f"B{baud}", None)
        if rate is None:
            raise ValueError(f"a serial line of this machine has no rate of {baud} baud")
        self._file = os.open(path, os.O_RDWR | os.O_NOCTTY)
        try:
            flags = termios.CS8 | termios.CREAD | termios.CLOCAL
            before = termios.tcgetattr(self._file)
            termios.tcsetattr(self._file, termios.TCSANOW, [0, 0, flags, 0, rate, rate, before[6]])
        except termios.error as error:
            os.close(self._file)
            raise OSError(f"{path} is no serial line: {error}") from error

    def close(self) -> None:
        """Close the line."""
        os.close(self._file)

    def send_break(self) -> None:
        """Send a break, which resets a board, and forget what came before it."""
        self._termios.tcsendbreak(self._file, 0)
        time.sleep(0.3)
        self._termios.tcflush(self._file, self._termios.TCIOFLUSH)

    def write(self, data: bytes) -> None:
        """Send bytes."""
        while data:
            data = data[os.write(self._file, data) :]

    def read(self, count: int) -> bytes:
        """Receive bytes; fewer than ``count`` if none comes in time."""
        found = b""
        while len(found) < count and select.select([self._file], [], [], self._seconds)[0]:
            found += os.read(self._file, count - len(found))
        return found


class UartBus(RequestBus):
    """The bus of a board's device, for `BusDriver`. ``line``: a `SerialLine`, or what has its methods. The board is
    reset at the start. Each call raises TimeoutError if the board does not answer and ConnectionError if its answer is
    damaged; from then on all do, until `reset`."""

    def __init__(self, line: SerialLine) -> None:
        self._line = line
        self.reset()

    def close(self) -> None:
        """Close the line."""
        self._line.close()

    def reset(self) -> None:
        """Reset the board with its device."""
        self._line.send_break()
        self._check, self._broken = 0, False

    def wait(self, cycles: int, *, interrupt: bool = True) -> int:
        """Let cycles pass, and those that a request takes. Returns their number, at least 4096 without interrupt."""
        return super().wait(max(cycles, 4096), interrupt=interrupt)

    def request(self, operation: int, address: int, data: int) -> tuple[int, int]:
        if self._broken:
            raise ConnectionError("the connection to the board is broken; reset it")
        self._broken = True
        sent = self._checked(REQUEST.pack(operation, address, data))
        self._line.write(sent)
        wanted = REPLY.size + _CHECK.size
        if len(found := self._line.read(wanted)) < wanted:
            raise TimeoutError(
                f"{len(found)} of {wanted} bytes of a reply came from the board: bytes were lost or damaged, "
                f"or the line has another rate than the board"
            )
        if self._checked(found[: REPLY.size]) != found:
            raise ConnectionError(f"the reply {found.hex()} is damaged, or belongs to another request")
        self._broken = False
        status, word = REPLY.unpack_from(found)
        return status, word

    def _checked(self, words: bytes) -> bytes:
        """Words with the check behind them."""
        self._check = zlib.crc32(words, self._check)
        return words + _CHECK.pack(self._check)
