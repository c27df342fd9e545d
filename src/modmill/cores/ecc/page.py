# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Description of a curve as JSON, and the data sheet of a coprocessor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modmill.cores.engine_files import health, sheet_head, waiting
from modmill.engines.machine.random_port import RANDOM_WORD
from modmill.numbers.curves.affine import Curve, Edwards, Montgomery, Weierstrass
from modmill.numbers.curves.named import CURVES, PAIRING_CURVES, find_curve

_FORMS: dict[str, Any] = {"weierstrass": Weierstrass, "montgomery": Montgomery, "edwards": Edwards}


def describe(curve: Curve) -> dict[str, Any]:
    """Form, name and parameters of a curve for JSON; numbers are hexadecimal."""
    form = next(name for name, kind in _FORMS.items() if isinstance(curve, kind))
    return {
        "form": form, "name": curve.name, "p": hex(curve.p),
        **{letter: hex(value) for letter, value in curve.coefficients().items()},
        "base": [hex(c) for c in curve.base], "n": hex(curve.n), "h": curve.h,
        **({"arithmetic": curve.unsuited()} if curve.arithmetic else {}),
    }  # fmt: skip


def restored(record: Mapping[str, Any]) -> Curve:
    """The curve of a record that `describe` made. Raises KeyError or ValueError for a malformed record."""
    if any(curve.name == record["name"] for curve in (*CURVES, *PAIRING_CURVES)):
        return find_curve(record["name"], pairing=True)
    kind = _FORMS[record["form"]]
    known = ("form", "name", "p", "base", "n", "h", "arithmetic")
    letters = {key: int(value, 16) for key, value in record.items() if key not in known}
    x, y = (int(c, 16) for c in record["base"])
    return kind(int(record["p"], 16), (x, y), int(record["n"], 16), record["h"], record["name"],
                arithmetic="arithmetic" in record, **letters)  # fmt: skip


def page(record: Mapping[str, Any]) -> str:
    """README.md of a coprocessor, from its record."""
    threads = record["options"]["threads"]
    programs = "\n".join(
        f"| {p['command']} | {p['operation']} | {p['digit_words']} | {', '.join(p['inputs']) or 'none'} | "
        f"{', '.join(p['results'])} | {p['products']} | {p['instructions']} | {p['cycles']} |"
        for p in record["programs"]
    )
    modulo_n = ", ".join(f"`{p['operation']}`" for p in record["programs"] if p.get("modulus") == "n")
    loading = (
        f"""
{modulo_n}: modulo the order n. The message that loads n and the constants of these programs precedes their jobs in
`vectors.json`. Jobs modulo p then need the first message again."""
        if modulo_n
        else ""
    )
    name = record["curve"]["name"] or "unnamed curve"
    why = record["curve"].get("arithmetic")
    alone = (
        f"\nFor arithmetic only, no ECDH or ECDSA: {why}.\nInput points must be multiples of the base point.\n"
        if why
        else ""
    )
    cycles = record["cycles_per_instruction"]
    instructions = f"runs are interleaved; an instruction of the program takes {cycles} cycles for each of them."
    title = f"Elliptic-curve coprocessor: {name} on {record['design']}"
    return f"""{sheet_head(title, "ecc", record, instructions, alone)}
## Messages

`0`, then {record["setup_words"] - 1} words: modulus and constants. This message is first in `vectors.json`.{loading}

`1 + program`: a job
- for each of the {threads} threads: the words of its digits, then its numbers; a word has {record["digits_in_a_word"]}
  digits of {record["digit_bits"]} bits, in order of use from the least significant bit on
{_blinded(record)}- answer: the results of each thread

| command | operation | words of digits | numbers | results | products | instructions | cycles |
|---|---|---|---|---|---|---|---|
{programs}

`cycles`: from the last word of a job to the first word of its results, the same for all scalars and points.
{waiting(record)}{_factor(record)} A result
(0, 0) of a Weierstrass curve is the point at infinity. `vectors.json` has messages with their answers.
"""


def _factor(record: Mapping[str, Any]) -> str:
    """What a data sheet says of the random factor of projective coordinates."""
    if any("drawn" in p for p in record["programs"]):
        return "The random factor of the projective coordinates, `blind`, is in no message."
    return "`blind` is a number in [1, p) that multiplies the projective coordinates; 1 for no blinding."


def _blinded(record: Mapping[str, Any]) -> str:
    """What a data sheet says of scalars that are blinded inside; nothing of others."""
    options = record["options"]
    if not (blind := options.get("random_blind")):
        return ""
    secret = [p for p in record["programs"] if "scalar_words" in p]
    names, words = " and ".join(f"`{p['operation']}`" for p in secret), secret[0]["scalar_words"]
    ladder = record["curve"]["form"] == "montgomery"
    flag = "; then a word that is 1 if the point is on the twist, else 0" if ladder else ""
    tests, taken = health(options["random_entropy"]).replace("\n", "\n  "), -(-blind // RANDOM_WORD)
    bits, word = int(record["curve"]["p"], 16).bit_length() - 1, options["word"]
    drawn = f"""multiplies the projective coordinates
  by an odd random number of {bits} bits, from {-(-bits // word) * -(-word // RANDOM_WORD)} words of the port."""
    given = """leaves the random factor of the coordinates,
  `blind`, to the host, because numbers are residues."""
    factor = drawn if "drawn" in secret[0] else given
    alone = "; `multiply-base`: then a word of any value" if any(not p["inputs"] for p in secret) else ""
    return f"""- {names}: in place of digits the scalar itself, in {words} words{flag}{alone}. The engine adds a random
  multiple of the order of the point, of {blind} bits from {taken} words of its port for each thread, and {factor}
  {tests}
"""
