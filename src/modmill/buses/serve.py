# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A simulated core behind its bus as a device on this machine: accesses come through a socket.

Requests and replies are those of `modmill.buses.uart`; a reset takes 1 to 1000 cycles, and fewer than the device needs
count as that.

A connection owns the device until it ends; others wait. The device aborts what it does before the first request of a
connection, so that no answer of a former one can be read; one with packets is reset. Its registers are the ends of its
queues (`simulate.PACKET_WORD` and others). A connection that sends nothing for a while is closed.

With a self-test the device is tested before the first connection and after each reset, and is reset again. While the
test fails, every request is refused, except a reset.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from modmill.buses.device import Device
from modmill.buses.registers import ABORT, SPAN, register_map
from modmill.buses.simulate import BusSimulator
from modmill.buses.uart import (
    DONE,
    MOST_CYCLES,
    READ,
    REFUSED,
    REPLY,
    REQUEST,
    RESET,
    UNKNOWN,
    WAIT,
    WRITE,
    RequestBus,
)

MOST_RESET = 1000
"""Most cycles of a reset."""
SOCKET = "device.sock"
"""Name of the socket in the folder of a core."""
_PATH = 107  # bytes of the longest path of a Unix socket on Linux
_CHUNK = 1 << 16


@dataclass
class Served:
    """What a server did so far."""

    connections: int = 0
    requests: int = 0
    unknown: int = 0


class Server:
    """Serve a simulated device at a Unix socket, one connection after another; ``idle``: seconds after which one that
    sends nothing is closed. ``tested``: a self-test, which returns what is wrong, or nothing.

    Raises ValueError for a path that is too long, OSError for one that cannot be used.
    """

    def __init__(
        self, device: Device, simulator: BusSimulator, path: Path, idle: float = 30,
        tested: Callable[[], str] | None = None,
    ) -> None:  # fmt: skip
        self.device, self.path, self.served = device, path, Served()
        self._bus, self._idle, self._tested = simulator, idle, tested
        self.failed = ""
        self._abort = register_map(device)["CONTROL"].offset
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        _free(path)
        self._socket.bind(str(path))
        os.chmod(path, 0o600)
        self._socket.listen()
        if tested is not None:
            self._reset(device.power_up)

    def close(self) -> None:
        """End, and remove the socket."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits for a connection
        self._socket.close()
        self.path.unlink(missing_ok=True)

    def run(self) -> None:
        """Serve until `close`."""
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:  # closed by another thread
                return
            with client:
                client.settimeout(self._idle)
                self.served.connections += 1
                with suppress(OSError):  # a client that goes away, falls silent, or does not read its replies
                    self._serve(client)

    def _serve(self, client: socket.socket) -> None:
        if self._bus.packets:
            self._bus.reset(self.device.power_up)
        elif not self.failed:
            self._bus.write(self._abort, ABORT)
        waiting = b""
        while received := client.recv(_CHUNK):
            waiting += received
            whole = len(waiting) - len(waiting) % REQUEST.size
            replies = [REPLY.pack(*self._done(*request)) for request in REQUEST.iter_unpack(waiting[:whole])]
            self.served.requests += len(replies)
            waiting = waiting[whole:]
            client.sendall(b"".join(replies))

    def _reset(self, cycles: int) -> None:
        """Reset the device, test it, and reset it again."""
        self._bus.reset(cycles)
        if self._tested is not None:
            self.failed = self._tested()
            self._bus.reset(cycles)

    def _done(self, operation: int, address: int, data: int) -> tuple[int, int]:
        """Status and data of the reply to a request."""
        known = address < SPAN and not address % 4
        if self.failed and operation != RESET:
            return REFUSED, 0
        if operation == READ and known:
            word, refused = self._bus.read(address)
            return (REFUSED, 0) if refused else (DONE, word)
        if operation == WRITE and known:
            return REFUSED if self._bus.write(address, data) else DONE, 0
        if operation == WAIT and data <= MOST_CYCLES:
            return DONE, self._bus.wait(data, interrupt=True)
        if operation == RESET and 0 < data <= MOST_RESET:
            self._reset(max(data, self.device.power_up))
            return DONE, 0
        self.served.unknown += 1
        return UNKNOWN, 0


def _free(path: Path) -> None:
    """Remove a socket that nobody serves any more. Raises ValueError for a path that is too long, FileExistsError for
    a socket in use and for any other file."""
    if (size := len(os.fsencode(path))) > _PATH:
        raise ValueError(
            f"the path of the socket has {size} bytes, at most {_PATH} are possible; give one with --socket"
        )
    if not path.exists():
        return
    if not path.is_socket():
        raise FileExistsError(f"{path} exists and is not a socket; give another path with --socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        with suppress(ConnectionRefusedError):
            other.connect(str(path))
            raise FileExistsError(f"another device is served at {path}; give another path with --socket")
    path.unlink()


class SocketBus(RequestBus):
    """The bus of a device at a socket, for `BusDriver`. Raises OSError if nobody serves there, or no more."""

    def __init__(self, path: Path, seconds: float = 60) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(seconds)
        self._socket.connect(str(path))

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def reset(self, cycles: int) -> None:
        """Reset the device."""
        self.request(RESET, 0, cycles)

    def request(self, operation: int, address: int, data: int) -> tuple[int, int]:
        self._socket.sendall(REQUEST.pack(operation, address, data))
        reply = b""
        while len(reply) < REPLY.size:
            part = self._socket.recv(REPLY.size - len(reply))
            if not part:
                raise ConnectionError("the device has closed the connection")
            reply += part
        status, word = REPLY.unpack(reply)
        return status, word
