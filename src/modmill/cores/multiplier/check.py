# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Check the core in a folder: recompute every file, verify the RTL (`verify`). No file is trusted."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from modmill.buses.adapters import find_bus
from modmill.buses.files import VERILOG
from modmill.contract import Contract
from modmill.cores.behind_bus import bus_faults, loading, product
from modmill.cores.folder import CERTIFICATE
from modmill.cores.multiplier import operands
from modmill.cores.multiplier.build import RECORD, Core
from modmill.cores.multiplier.folder import Folder
from modmill.cores.multiplier.verify import Report, verify
from modmill.cores.proofs.certified import certificate_digest
from modmill.flow import four_state as icarus
from modmill.flow.emit import digest
from modmill.flow.tools import ToolError
from modmill.report import seal, sheet
from modmill.version import __version__


def check(path: str | Path, vectors: int | None = None, *, four_state: bool = False) -> Report:
    """Check the core in a folder: seal and contents of every file, lint, and simulation.

    ``vectors``: number of random products; by default 2000, fewer if the core is slow to simulate. ``four_state``: also
    some products in Icarus, where registers start at x.
    Raises ValueError if a file is missing, truncated or malformed, ToolError if a tool cannot be run.
    """
    start = time.monotonic()
    if four_state and not icarus.available():
        raise ToolError(icarus.MISSING)
    folder = Folder.read(path)
    report = Report(folder.path.resolve().name)
    report.failures += seal.seal_differences(folder.texts, RECORD)
    try:
        core = folder.refit()
    except ValueError as error:
        report.failures.append(f"contract.json: the core that it describes cannot be built: {error}")
    else:
        report.name = core.name
        report.failures += record_differences(folder.record, core.record())
        report.failures += digest_differences(folder)
        report.failures += measured_differences(folder.record, core.measured)
        report.failures += proof_differences(folder)
        report.failures += vector_differences(core.contract, folder)
        report.failures += text_differences(core, folder)
        extra = [(a, b) for a, b, _ in folder.vectors]
        verify(core, folder.verilog, report, vectors=vectors, extra=extra, four_state=four_state)
        if core.bus:
            _check_bus(core, folder, report)
    report.seconds = time.monotonic() - start
    return report


def _check_bus(core: Core, folder: Folder, report: Report) -> None:
    """Send vectors of the folder through the bus of its bus.v."""
    core, contract = replace(core, stored=folder.verilog, stored_digest=folder.record["netlist"]), core.contract
    exchanges = loading(contract) + [product(contract, *vector) for vector in folder.vectors]
    report.failures += bus_faults(folder.texts.get(VERILOG, ""), core.device, find_bus(core.bus), exchanges)
    report.counts["through the bus"] += len(folder.vectors)


def record_differences(written: dict[str, Any], recomputed: dict[str, Any]) -> Iterator[str]:
    """Yield the fields of contract.json that differ from those recomputed, except versions, digests and the record of
    the check at build time."""
    recomputed = json.loads(json.dumps(recomputed))
    apart = {"modmill", "tools", "digest", "netlist", "build_check", "proved", "measured", *seal.KEYS}
    by = ""
    if written.get("modmill") != recomputed["modmill"]:
        by = f" (made by Modmill {_short(written.get('modmill'))}, this is {recomputed['modmill']})"
    for key in [key for key in dict.fromkeys([*recomputed, *written]) if key not in apart]:
        if key not in written:
            yield f"contract.json: {key} is missing{by}"
        elif key not in recomputed:
            yield f"contract.json: {key} is not a field of a contract{by}"
        elif type(written[key]) is not type(recomputed[key]) or written[key] != recomputed[key]:
            yield f"contract.json: {key} is {_short(written[key])}, recomputed {_short(recomputed[key])}{by}"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 70 else f"{text[:50]}...{text[-15:]}"


def digest_differences(folder: Folder) -> Iterator[str]:
    """Yield a fault for each digest in contract.json and the header of core.v that is not that of the RTL."""
    actual, recorded = digest(folder.verilog), folder.record["digest"]
    header = sheet.DIGEST_LINE.search(folder.header)
    if header is None:
        yield "core.v: its header has no RTL digest"
    elif header[1] != actual:
        yield f"core.v: the RTL has digest {actual[:23]}..., its header says {header[1][:23]}..."
    if recorded != actual:
        yield f"core.v: the RTL has digest {actual[:23]}..., contract.json says {recorded[:23]}..."


def measured_differences(record: Mapping[str, Any], known: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a fault for each measurement in a record that is not ``known`` to the same Modmill, or has other values."""
    if record.get("modmill") != __version__:
        return
    for entry in record.get("measured", ()):
        if entry not in known:
            yield f"contract.json: measured: no recorded row says {_short(entry)}"


def proof_differences(folder: Folder) -> Iterator[str]:
    """Yield a fault if the record names the certificate of a proof that is not in the folder."""
    proved = folder.record.get("proved")
    if proved is None and folder.record.get("modmill") != __version__:
        return
    if not isinstance(proved, dict):
        yield f"contract.json: proved is {_short(proved)}, which is no state of proofs"
    elif proved.get("products") == "PROVED" or "certificate" in proved:
        try:
            found = certificate_digest(folder.path)
        except ValueError as error:
            yield f"contract.json: proved: {error}"
        else:
            if found != proved.get("certificate"):
                yield f"{CERTIFICATE}: its digest is {found[:23]}..., contract.json has another one"


def vector_differences(contract: Contract, folder: Folder) -> Iterator[str]:
    """Yield a fault if vectors.json has too few vectors, and for each one not covered by the contract or with a wrong
    value."""
    if len(folder.vectors) < 64 and contract.p**2 > len(folder.vectors):
        yield f"vectors.json: {len(folder.vectors)} vectors, at least 64 are expected"
    for k, (a, b, value) in enumerate(folder.vectors):
        if not operands.covered(contract, a, b):
            yield f"vectors.json: operands of vector {k} are not covered by the contract"
        elif value != (expected := operands.judged(contract, [(a, b)])[0].value):
            yield f"vectors.json: value of vector {k} is {value:#x}, recomputed {expected:#x}"


def text_differences(core: Core, folder: Folder) -> Iterator[str]:
    """Yield the first line of each file that differs from the recomputed file; none for a folder of another version."""
    if folder.record.get("modmill") != __version__:
        return
    record = {key: value for key, value in folder.record.items() if key not in seal.KEYS}
    try:
        wanted = core.texts(record, folder.verilog)
    except Exception as error:  # an edited record may contain anything
        yield f"contract.json: the other files cannot be made from it: {type(error).__name__} {_short(str(error))}"
        return
    for name, text in wanted.items():
        found = folder.texts.get(name)
        if found is not None and found != text:
            pairs = itertools.zip_longest(found.splitlines(), text.splitlines(), fillvalue="")
            line, (one, two) = next(((k, p) for k, p in enumerate(pairs, 1) if p[0] != p[1]), (0, ("", "")))
            yield f"{name}: line {line} is {_short(one)}, the contract gives {_short(two)}"
