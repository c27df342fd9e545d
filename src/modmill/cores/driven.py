# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Devices behind a bus as engines of Python's protocols: multiples of points, powers and products through a driver.

    DrivenPointEngine   multiples of points, for `ecdh`, `ecdsa`, `eddsa` and `sm2`
    DrivenPowers        powers, for `Rsa`
    DrivenMultiplier    products

The driver is that of a simulated device, or of a real one over a socket, a serial line or Linux's UIO. Each object has
a device of its own, and knows what it has loaded: the modulus of a job is loaded on demand. Before its first message,
and after an error, it aborts what the device does. Numbers in residues are taken too. ``fill`` and ``by_slot`` are for
devices with key slots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, TypeVar

from modmill.buses.registers import ABORT
from modmill.buses.simulate import BusDriver, BusFault, PacketDriver
from modmill.contract import Contract, UnsupportedError
from modmill.cores.behind_bus import loading, product
from modmill.cores.built import BuiltEngine
from modmill.cores.ecc.engine import RtlPointEngine
from modmill.cores.multiplier.build import Core
from modmill.cores.rsa.engine import Stored
from modmill.engines.ecc.blinding import Run
from modmill.engines.ranges import require_range

AnyDriver = BusDriver[Any] | PacketDriver[Any]
_Run = TypeVar("_Run")


class Session:
    """A device, and the message that was loaded into it last."""

    def __init__(self, driver: AnyDriver) -> None:
        self._driver = driver
        self._loaded: list[int] | None = None  # what is loaded is not known

    def begin(self) -> list[int] | None:
        """What is loaded, which is forgotten, because the device may fail. The device is ready; raises BusFault if it
        never is."""
        loaded, self._loaded = self._loaded, None
        if loaded is None and not self._driver.act(ABORT, "ready")[0]:
            raise BusFault("the device is not ready after an abort")
        return loaded

    def fill(self, slot: int, message: Sequence[int], setup: Sequence[int]) -> None:
        """Fill a key slot with the secret words of a message; ``setup`` is for a device whose slots have their own.
        Raises BusFault for an error of the device."""
        loaded = self.begin()
        command, *words = message
        key, _ = self._driver.device.key_message(words, command)
        self._keys.fill(slot, command, [*(setup[1:] if self._driver.device.key_own_setup else ()), *key])
        self._loaded = loaded

    @property
    def _keys(self) -> BusDriver[Any]:
        """The driver of a device with key slots. Raises UnsupportedError for a device without them."""
        if not isinstance(self._driver, BusDriver) or not self._driver.device.key_slots:
            raise UnsupportedError("this device has no key slots; build it with --key-slots")
        return self._driver

    def by_slot(self, slot: int, message: Sequence[int], count: int) -> list[int]:
        """The words of the answer to a message whose secret words are those of a key slot. Raises BusFault for an error
        of the device."""
        self.begin()
        command, *words = message
        _, sent = self._driver.device.key_message(words, command)
        self._keys.use(slot)
        try:
            self._sent([0], 0)
            return self._sent([command, *sent], count)
        finally:
            self._keys.use(None)

    def run(self, setup: list[int], message: Sequence[int], count: int) -> list[int]:
        """The ``count`` words of the answer to a message, with ``setup`` loaded before, which may be empty. Raises
        BusFault for an error of the device."""
        loaded = self.begin()
        if setup and loaded != setup:
            self._sent(setup, 0)
        found = self._sent(message, count)
        self._loaded = setup
        return found

    def _sent(self, message: Sequence[int], count: int) -> list[int]:
        command, *words = message
        self._driver.ready()
        return self._driver.run(command, words, count)

    def results(
        self, core: BuiltEngine, program: int, p: int, setup: list[int], runs: Sequence[_Run],
        job: Callable[[list[_Run]], list[int]], slot: int | None = None,
    ) -> list[tuple[int, ...]]:  # fmt: skip
        """The results of runs of a program modulo p, as many in a message as all machines take; the last message is
        filled up with repeated runs. ``job`` gives the words of a job of one machine, ``slot`` the secret ones."""
        each, found = core.results, list[tuple[int, ...]]()
        for first in range(0, len(runs), size := each * core.cores):
            batch = list(runs[first : first + size])
            batch += batch[:1] * (size - len(batch))
            message = core.dealt([job(batch[k : k + each]) for k in range(0, size, each)])
            answers = core.cores * core.layout.answer_words(program)
            words = self.run(setup, message, answers) if slot is None else self.by_slot(slot, message, answers)
            found += core.layout.results(program, words, p)
        return found[: len(runs)]


class _Driven:
    """What has a driver has a session with its device."""

    driver: AnyDriver

    @cached_property
    def _session(self) -> Session:
        return Session(self.driver)


def _require(what: str, numbers: Iterable[int], p: int) -> None:
    require_range(numbers, p, f"{what} must be in [0, p), p of {p.bit_length()} bits")


@dataclass(frozen=True)
class DrivenPointEngine(_Driven, RtlPointEngine):
    """A `PointEngine` that runs ``core`` through a driver of its device; ``work`` stays empty.

    Raises BusFault for an error of the device, and UnsupportedError as `RtlPointEngine` does.
    """

    driver: AnyDriver = field(kw_only=True)

    def run(self, operation: str, runs: Sequence[Run]) -> list[tuple[int, ...]]:
        core = self.core
        number, p = core.number(operation), core.modulus(operation)
        return self._session.results(core, number, p, core.setup(p), runs, lambda batch: core.job(operation, batch))

    def fill(self, slot: int, operation: str, scalar: int) -> None:
        """Write the digits of a scalar into a key slot of the device, which is then for this operation."""
        core = self.core
        given = {name: 1 for _, name in core.held[core.number(operation)].instructions.program.inputs}
        message = core.dealt([core.job(operation, [((scalar,), given)] * core.results)] * core.cores)
        self._session.fill(slot, message, core.setup())

    def by_slot(self, slot: int, operation: str, inputs: Sequence[Mapping[str, int]]) -> list[tuple[int, ...]]:
        """Results of runs of an operation with these inputs and the scalar of a key slot."""
        core = self.core
        runs: list[Run] = [((1,), given) for given in inputs]  # this scalar is not sent
        job = lambda batch: core.job(operation, batch)  # noqa: E731
        return self._session.results(core, core.number(operation), core.curve.p, [], runs, job, slot)


@dataclass
class DrivenPowers(_Driven, Stored):
    """An engine for powers that runs ``core`` through a driver of its device; ``work`` stays empty.

    Raises BusFault for an error of the device, and UnsupportedError as `Stored` does.
    """

    driver: AnyDriver = field(kw_only=True)

    def powers(self, modulus: int, program: int, pairs: Sequence[tuple[int, int]], bits: int) -> list[int]:
        core = self.core
        _require("a base", (base for base, _ in pairs), modulus)
        job = lambda batch: core.job(program, batch, bits)  # noqa: E731
        setup = core.setup(core.at(modulus))
        return [power for (power,) in self._session.results(core, program, modulus, setup, pairs, job)]

    def fill(self, slot: int, modulus: int, exponent: int, bits: int) -> None:
        """Write an exponent of ``bits`` bits, and a loaded modulus with it, into a key slot of the device."""
        core = self.core
        job = core.job(0, [(1, exponent)] * core.results, bits)
        self._session.fill(slot, core.dealt([job] * core.cores), core.setup(core.at(modulus)))

    def by_slot(self, slot: int, modulus: int, bases: Sequence[int]) -> list[int]:
        """Powers of bases by the exponent of a key slot, whose modulus this is."""
        core = self.core
        _require("a base", bases, modulus)
        pairs = [(base, 0) for base in bases]  # this exponent is not sent
        job = lambda batch: core.job(0, batch)  # noqa: E731
        return [power for (power,) in self._session.results(core, 0, modulus, [], pairs, job, slot)]


class DrivenMultiplier:
    """Products on the device of ``core`` through its driver, without the core's factor: a core with a factor multiplies
    a second time, by factor^-2. Raises UnsupportedError for a core with one operand."""

    def __init__(self, core: Core, driver: AnyDriver) -> None:
        if core.contract.operands == 1:
            raise UnsupportedError(f"{core.design.name} reduces one number; there is no product")
        self._core, self._session = core, Session(driver)

    def multiply(self, pairs: Sequence[tuple[int, int]], modulus: int = 0) -> list[int]:
        """a b mod p for each pair in [0, p); ``modulus``: a loaded one, 0 for that of the core. Raises BusFault for an
        error of the device and a result outside its bound, UnsupportedError for numbers out of range and a modulus that
        cannot be loaded."""
        fitted = self._core.fitted
        if modulus not in (0, fitted.p):
            fitted = fitted.at(modulus)
        contract = fitted.contract(self._core.io)
        p, found = contract.p, list[int]()
        _require("an operand", chain.from_iterable(pairs), p)
        for a, b in pairs:
            found.append(self._product(contract, a, b))
            if contract.factor % p != 1:
                found[-1] = self._product(contract, found[-1], pow(contract.factor, -2, p))
        return found

    def _product(self, contract: Contract, a: int, b: int) -> int:
        """a b factor mod p."""
        sent = product(contract, contract.operand.encode(a), contract.operand.encode(b), 0)
        setup = [word for message in loading(contract) for word in (message.command, *message.words)]
        words = self._session.run(setup, [sent.command, *sent.words], sent.count)
        result = contract.result.decode(sum(word << 32 * k for k, word in enumerate(words)))
        if not result < contract.result_bound * contract.p:
            raise BusFault("a result is outside its bound")
        return result % contract.p
