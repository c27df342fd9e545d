# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Objects of ACVP's JSON: each value is read with its type, and a wrong one is refused with its place.

A file has one vector set, or a list of sets and of objects that are not, such as the version of the protocol. A set has
test groups with their tests; numbers are hexadecimal texts, most significant digit first.

Source: C. Celi (ed.): Automated Cryptographic Validation Protocol, NIST, pages.nist.gov/ACVP, and its specifications
for RSA, ECDSA, EdDSA and KAS-ECC.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from modmill.contract import UnsupportedError
from modmill.engines.ecc.ecdsa import HASHES
from modmill.numbers.shown import shortened

_HEXADECIMAL = re.compile(r"(?:[0-9A-Fa-f]{2})*")
LONGEST = 1 << 20
"""Longest number or message that is accepted, in bytes."""


class Unserved(UnsupportedError):
    """A vector set or a group that the engines given, or Modmill, cannot answer."""


@dataclass(frozen=True)
class Item:
    """An object of a file; ``where`` says in a message which one. Methods raise UnsupportedError for a missing value
    and for one of another type."""

    values: Mapping[str, Any]
    where: str

    def wrong(self, name: str, wanted: str) -> UnsupportedError:
        """The refusal of a value."""
        got = shortened(self.values[name]) if name in self.values else "nothing"
        return UnsupportedError(f"{self.where}: {name} must be {wanted}, got {got}")

    def unserved(self, what: str) -> Unserved:
        """The refusal of something that cannot be answered."""
        return Unserved(f"{self.where}: {what}")

    def text(self, name: str, default: str | None = None) -> str:
        """A text; ``default`` if it is missing."""
        value = self.values.get(name, default)
        if not isinstance(value, str):
            raise self.wrong(name, "a text")
        return value

    def served(self, name: str, known: Iterable[str], default: str | None = None) -> str:
        """One of the texts of ``known``; raises Unserved for another text."""
        value, known = self.text(name, default), list(known)
        if value not in known:
            raise self.unserved(f"{name} {shortened(value)} is not served; served are {', '.join(known)}")
        return value

    def integer(self, name: str) -> int:
        """An integer of JSON, not negative."""
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.wrong(name, "an integer of at least 0")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        """Whether something holds; ``default`` if it is missing."""
        value = self.values.get(name, default)
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def data(self, name: str, default: str | None = None) -> bytes:
        """Bytes in hexadecimal; ``default`` if it is missing."""
        value = self.values.get(name, default)
        if not isinstance(value, str) or not _HEXADECIMAL.fullmatch(value) or len(value) > 2 * LONGEST:
            raise self.wrong(name, f"an even number of hexadecimal digits, of at most {LONGEST:,} bytes")
        return bytes.fromhex(value)

    def number(self, name: str) -> int:
        """A number in hexadecimal."""
        data = self.data(name)
        if not data:
            raise self.wrong(name, "a number in hexadecimal")
        return int.from_bytes(data, "big")

    def items(self, name: str, what: str, key: str) -> Iterator[Item]:
        """Objects of a list, each with an integer ``key``, by which a message names it."""
        values = self.values.get(name)
        if not isinstance(values, list):
            raise self.wrong(name, "a list")
        start = f"{self.where}, " if self.where else ""
        seen = set()
        for k, value in enumerate(values):
            if not isinstance(value, dict):
                raise UnsupportedError(f"{start}item {k} of {name} must be an object, got {shortened(value)}")
            number = Item(value, f"{start}item {k} of {name}").integer(key)
            if number in seen:
                raise UnsupportedError(f"{start}{key} {shortened(number)} occurs twice in {name}")
            seen.add(number)
            yield Item(value, f"{start}{what} {shortened(number)}")


Answer = tuple[dict[str, Any], list[dict[str, Any]]]
"""Values of a group's response, and those of each of its tests."""


def sets_of(document: Any) -> Iterator[Any]:
    """The parts of a file, vector sets and others, each as an `Item` if it is a set. Raises UnsupportedError for any
    other JSON, and if there is no set."""
    parts = document if isinstance(document, list) else [document]
    if not any(isinstance(part, dict) and "testGroups" in part for part in parts):
        raise UnsupportedError("the file has no vector set: an object with algorithm, mode and testGroups is needed")
    for part in parts:
        if not isinstance(part, dict):
            raise UnsupportedError(f"a file of vector sets is made of objects, got {shortened(part)}")
        if "testGroups" not in part:
            yield part
            continue
        name = f"{Item(part, '').text('algorithm')} {Item(part, '').text('mode', '')}".strip()
        yield Item(part, name[:40])


def hexadecimal(number: int, size: int = 0) -> str:
    """A number in hexadecimal, of ``size`` bytes or as many as it has."""
    return number.to_bytes(size or max(1, -(-number.bit_length() // 8)), "big").hex().upper()


def _acvp(name: str) -> str:
    """ACVP's name of a hash."""
    if name.startswith("shake"):
        return f"SHAKE-{name[5:]}"
    if name.startswith("sha3-"):
        return name.upper()
    return "SHA-1" if name == "sha1" else f"SHA2-{name[3:].replace('-', '/')}"


NAMES = {_acvp(name): name for name in HASHES if name.startswith("sh")}
"""ACVP's name of a hash -> Modmill's."""


def hash_of(group: Item, name: str = "hashAlg", usable: Callable[[str], bool] = lambda _: True) -> str:
    """Modmill's name of a group's hash. Raises Unserved for a hash that it does not have or that is not ``usable``."""
    return NAMES[group.served(name, [acvp for acvp, ours in NAMES.items() if usable(ours)])]


def ordinary(group: Item) -> None:
    """Raises Unserved if the group wants randomised messages (SP 800-106)."""
    group.served("conformance", [""], "")
