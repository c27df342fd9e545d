# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Rows of proofs: what `modmill prove --record` found for one RTL.

A row of the kind ``proof`` belongs to a digest of RTL, as all rows do, so a proof of other RTL is never shown for a
core. Its values are the states by name, as in the record of a folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from modmill.report.rows import Row, put, read

KIND = "proof"
_OF = ("design", "modulus", "made_for", "io", "parameters", "curve", "options")
"""Keys of a folder's record that tell cores and engines apart."""


def record_proof(file: Path, record: Mapping[str, Any], states: Mapping[str, Any], tool: str) -> Row:
    """Add the ``states`` of proofs, made with ``tool``, of the core with this ``record`` to a file of rows; states in
    an older row of the same RTL stay, and rows of other RTL of the core go."""
    described = {key: record[key] for key in _OF if key in record}
    if isinstance(curve := described.get("curve"), dict):
        described["curve"] = curve.get("name")
    digest = str(record["netlist"])
    former: dict[str, Any] = {}
    for row in read(file):
        if row.key == (KIND, digest, tool, "", None):
            former = row.values
    date = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    row = Row(KIND, digest, tool, "", None, {**former, **states}, {"proof_of": described, "date": date})
    put(file, row)
    return row


def proofs_by_digest(rows: Iterable[Row]) -> dict[str, Row]:
    """The rows of proofs by digest; the last one counts."""
    return {row.digest: row for row in rows if row.kind == KIND}


def proved(row: Row | None) -> list[str]:
    """The names of what is PROVED, in words; none without a row."""
    states = row.values if row else {}
    return [name.replace("_", " ") for name, state in states.items() if isinstance(state, str) and state == "PROVED"]
