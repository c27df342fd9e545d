# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The check of key slots in a simulated bus.v: answers with a key in a slot are those with the same key in the
message, and every wrong use is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from modmill.buses.registers import KEY_COMMAND
from modmill.buses.simulate import BusDriver, BusFault, BusSimulator

if TYPE_CHECKING:
    from modmill.cores.behind_bus import Exchange

Driver = BusDriver[BusSimulator]


def slots_used(driver: Driver, exchanges: Sequence[Exchange]) -> None:
    """Fill every slot of a device that has slots, by turns by the bus and by the key manager, and use the first ones,
    two of each command. Raises BusFault at the first fault. The slots stay filled."""
    device = driver.device
    before: dict[int, tuple[Exchange, Sequence[int]]] = {}
    setup: Sequence[int] = ()
    for exchange in exchanges:
        if not exchange.count:
            setup = exchange.words
        else:
            before[exchange.command] = exchange, setup
    for slot in range(device.key_slots):
        turn, number = divmod(slot, len(device.keyed))
        job, loaded = before[device.keyed[number].number]
        _used(driver, slot, job, loaded, by_bus=turn % 2 == 0, works=turn < 2)
    if driver.read("KEY_SLOTS", "filled") != (1 << device.key_slots) - 1:
        raise BusFault(f"KEY_SLOTS is {driver.read('KEY_SLOTS'):#x} when all slots are filled")


def _used(driver: Driver, slot: int, job: Exchange, setup: Sequence[int], *, by_bus: bool, works: bool) -> None:
    """Fill one slot; ``works``: use it too."""
    device, command = driver.device, job.command
    setup = device.key_setup or setup
    key, words = device.key_message(job.words, command)
    filled = [*(setup if device.key_own_setup else ()), *key]
    driver.ready()
    driver.use(slot)
    _refused(driver, lambda: driver.write("COMMAND", 0), "SLOT", "an empty key slot")
    if by_bus:
        driver.fill(slot, command, filled)
    else:
        driver.bus.sideload(slot, command, filled, lock=True)
        driver.bus.wait(16 * len(filled) + 64)
        if driver.bus.sideloads:
            raise BusFault("the words of the key manager are not taken")
        _refused(driver, lambda: driver.write("KEY_FILL", slot | command << KEY_COMMAND), "LOCKED", "a locked key slot")
    driver.use(None)
    if not works:
        return
    driver.run(0, setup, 0)
    driver.ready()
    wanted = driver.run(command, device.key_sent(key, words, command), job.count)
    driver.use(slot)
    driver.ready()
    _refused(driver, lambda: driver.write("COMMAND", command), "SLOT", "a key slot without its own command 0")
    driver.run(0, [], 0)
    driver.ready()
    if driver.run(command, words, job.count) != wanted:
        raise BusFault(f"{job.what} with a key slot has another answer than without one")
    driver.ready()
    for other in device.commands:
        if other.number not in (0, command):
            _refused(driver, lambda n=other.number: driver.write("COMMAND", n), "SLOT", "the key of another command")  # type: ignore[misc]
    driver.use(None)


def _refused(driver: Driver, act: Callable[[], None], cause: str, what: str) -> None:
    act()
    if (found := driver.error()) != cause:
        raise BusFault(f"the cause of an error is {found}, not {cause}: {what}")
