# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Data sheet of an engine on the circuit of the radix-64K paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modmill.cores.engine_files import sheet_head, waiting


def page(record: Mapping[str, Any]) -> str:
    """README.md of an engine, from its record."""
    words, bits = record["number_words"], record["options"]["word"]
    rows = "\n".join(
        f"| {p['command']} | {p['name']} | {p['time']} | {p['exponent_bits']} | {p['products']} | {p['cycles']} | "
        f"{p['cycles_65537']} |"
        for p in record["programs"]
    )
    loaded = f"- {record['key_words']} words with the digits of the modulus, then\n" if record["key_words"] else ""
    title = f"Exponentiation circuit: {record['design']}, {record['modulus_bits']}-bit moduli"
    shown = {**record, "options": {**record["options"], "threads": 1, "cores": 1}}
    return f"""{sheet_head(title, "engine", shown, "power is computed at a time.")}
## Messages

`0`: the modulus and its constants. `modmill rsa setup DIR --modulus M` prints the words of this message for M.
{loaded}- two numbers of {words} words: R mod p, then R^2 mod p, with R = 1 / factor

`1` or `2`: a power
- a word with the number of bits of the exponent, at least 1
- the bits of the exponent, {bits} in a word, in order of use from the least significant bit on: the highest bit first
- the base, {words} words
- answer: the power, {words} words, in [0, p)

| command | name | time | exponent bits, at most | products, at most | cycles, at most | cycles for 65537 |
|---|---|---|---|---|---|---|
{rows}

**Command `2` is for public exponents only: its time shows the number and the places of the exponent's ones.** Its first
bit should be 1. Command `1` squares and multiplies for every bit, by R mod p where the bit is 0. `cycles`: from the
last word of a job to the first word of its power.
{waiting(record)}`vectors.json` has messages with their answers.
"""
