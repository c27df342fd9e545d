# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The page beside a coprocessor, and its curve as it stands in ecc.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modmill.numbers.curves import Curve, Edwards, Montgomery, Weierstrass
from modmill.numbers.named_curves import CURVES, find_curve

_FORMS: dict[str, Any] = {"weierstrass": Weierstrass, "montgomery": Montgomery, "edwards": Edwards}


def describe(curve: Curve) -> dict[str, Any]:
    """A curve's form and parameters, numbers as texts; a named one also by its name."""
    form = next(name for name, kind in _FORMS.items() if isinstance(curve, kind))
    return {
        "form": form, "name": curve.name, "p": hex(curve.p),
        **{letter: hex(value) for letter, value in curve.coefficients().items()},
        "base": [hex(c) for c in curve.base], "n": hex(curve.n), "h": curve.h,
    }  # fmt: skip


def restored(record: Mapping[str, Any]) -> Curve:
    """The curve that ``describe`` described. Raises KeyError or ValueError when the record is malformed."""
    if any(curve.name == record["name"] for curve in CURVES):
        return find_curve(record["name"])
    kind = _FORMS[record["form"]]
    known = ("form", "name", "p", "base", "n", "h")
    letters = {key: int(value, 16) for key, value in record.items() if key not in known}
    x, y = (int(c, 16) for c in record["base"])
    return kind(int(record["p"], 16), (x, y), int(record["n"], 16), record["h"], record["name"], **letters)


def page(record: Mapping[str, Any]) -> str:
    """README.md of a coprocessor."""
    words, options = record["number_words"], record["options"]
    programmes = "\n".join(
        f"| {p['command']} | {p['operation']} | {p['digit_words']} | {', '.join(p['inputs'])} | "
        f"{', '.join(p['results'])} | {p['products']} | {p['rows']} | {p['cycles']} |"
        for p in record["programmes"]
    )
    name = record["curve"]["name"] or "a curve of its own"
    return f"""# Elliptic-curve coprocessor: {name} on {record["design"]}

Made by `{record["command"]}`; RTL digest {record["digest"]}.
Generated cores belong to you: use, change and ship them as you like.

`ecc.v` holds the module `{options["top"]}`: `clk`, `rst` (synchronous, active high), `i_valid i_ready i_data` in
and `o_valid o_ready o_data` out, words of {options["word"]} bits. A word moves in every cycle in which valid and
ready are high. Numbers are sent least significant word first, {words} words each.
{options["contexts"]} runs are done in step; a row of the programme takes {record["cycles_of_a_row"]} cycles for each.

## Messages

`0`, then {record["setup_words"] - 1} words: modulus and constants. They stand first in `vectors.json`.

`1 + programme`: a job
- for each of the {options["contexts"]} contexts the words of its digits, {record["digits_in_a_word"]} digits of
  {record["digit_bits"]} bits in each from the least significant bit on, the first used first; then its numbers
- out: for each context its results

| command | operation | words of digits | numbers in | results | products | rows | cycles |
|---|---|---|---|---|---|---|---|
{programmes}

`cycles`: from the last word of a job to the first word of its results, one number for all scalars and points. `blind`
is a number in [1, p) that the projective coordinates are multiplied by, 1 for none. A result (0, 0) of a Weierstrass
curve is the point at infinity. `vectors.json` holds messages with their answers.
"""
