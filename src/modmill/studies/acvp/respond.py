# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The response to a whole file of vector sets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from modmill.contract import UnsupportedError
from modmill.numbers.shown import name
from modmill.studies.acvp import curves, rsa
from modmill.studies.acvp.engines import Engines
from modmill.studies.acvp.files import Answer, Item, Unserved, sets_of

ANSWERS: dict[tuple[str, str], Callable[[Item, Sequence[Item], Engines], Answer]] = {
    ("RSA", "keyGen"): rsa.new_keys,
    ("RSA", "sigGen"): rsa.siggen,
    ("RSA", "sigVer"): rsa.sigver,
    ("ECDSA", "keyGen"): curves.ecdsa_keygen,
    ("ECDSA", "keyVer"): curves.ecdsa_keyver,
    ("ECDSA", "sigGen"): curves.ecdsa_siggen,
    ("ECDSA", "sigVer"): curves.ecdsa_sigver,
    ("DetECDSA", "sigGen"): curves.deterministic_siggen,
    ("EDDSA", "keyGen"): curves.eddsa_keygen,
    ("EDDSA", "keyVer"): curves.eddsa_keyver,
    ("EDDSA", "sigGen"): curves.eddsa_siggen,
    ("EDDSA", "sigVer"): curves.eddsa_sigver,
    ("KAS-ECC-SSC", ""): curves.shared_secrets,
    ("KAS-ECC", "CDH-Component"): curves.cofactor_secrets,
}
"""(algorithm, mode) -> what answers a group."""
Note = Callable[[str], None]


def read(path: Path) -> Any:
    """The JSON of a file. Raises UnsupportedError if it is none, or nested too deeply to be read."""
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise UnsupportedError(f"{name(str(path))} is no JSON that can be read: {error}") from None


def respond(document: Any, engines: Engines, *, partial: bool = False, note: Note = lambda _: None) -> Any:
    """The response to a document of JSON, in the same form: a vector set, or a list.

    ``partial``: leave out the sets and groups that cannot be answered, and pass the reason of each to ``note``, which
    also gets a line for each set. Raises Unserved for the first of them without it, UnsupportedError for a malformed
    document and, with ``partial``, if nothing remains.
    """
    parts, answered = [], 0
    for part in sets_of(document):
        if not isinstance(part, Item):
            parts.append(part)
            continue
        groups = list(_groups(part, engines, note if partial else None))
        tests = sum(len(group["tests"]) for group in groups)
        note(f"{part.where}: {len(groups):,} groups, {tests:,} tests")
        answered += len(groups)
        kept = {key: part.values[key] for key in ("vsId", "algorithm", "mode", "revision") if key in part.values}
        parts.append({**kept, "testGroups": groups})
    if partial and not answered:
        raise Unserved("no group of the file can be answered with these engines")
    return parts if isinstance(document, list) else parts[0]


def _groups(one: Item, engines: Engines, note: Note | None) -> Iterator[dict[str, Any]]:
    """The responses to a set's groups; with ``note`` those that can be answered."""
    asked = one.text("algorithm"), one.text("mode", "")
    answer = ANSWERS.get(asked)
    for group in one.items("testGroups", "group", "tgId"):
        tests = list(group.items("tests", "test", "tcId"))
        try:
            if answer is None:
                known = ", ".join(" ".join(kind).strip() for kind in ANSWERS)
                raise Unserved(f"{one.where} is not served; served are {known}")
            values, found = answer(group, tests, engines)
        except Unserved as error:
            if note is None:
                raise
            note(f"left out: {error}")
            continue
        shown = [{"tcId": test.integer("tcId"), **made} for test, made in zip(tests, found, strict=True)]
        yield {"tgId": group.integer("tgId"), **values, "tests": shown}
