# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What stands beside a coprocessor's Verilog: ecc.json with its curve, vectors.json, and the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from modmill.cores.engine_files import packets_section, ports_table, reset_line, stream_ports
from modmill.flow.emit import digest
from modmill.numbers.curves.affine import Curve, Edwards, Montgomery, Weierstrass
from modmill.numbers.curves.named import CURVES, PAIRING_CURVES, find_curve
from modmill.version import __version__

if TYPE_CHECKING:
    from modmill.cores.ecc.machine import EccCore

_FORMS: dict[str, Any] = {"weierstrass": Weierstrass, "montgomery": Montgomery, "edwards": Edwards}


def describe(curve: Curve) -> dict[str, Any]:
    """A curve's form and parameters, numbers as texts; a named one also by its name."""
    form = next(name for name, kind in _FORMS.items() if isinstance(curve, kind))
    return {
        "form": form, "name": curve.name, "p": hex(curve.p),
        **{letter: hex(value) for letter, value in curve.coefficients().items()},
        "base": [hex(c) for c in curve.base], "n": hex(curve.n), "h": curve.h,
        **({"arithmetic": curve.unsuited()} if curve.arithmetic else {}),
    }  # fmt: skip


def restored(record: Mapping[str, Any]) -> Curve:
    """The curve that ``describe`` described. Raises KeyError or ValueError when the record is malformed."""
    if any(curve.name == record["name"] for curve in (*CURVES, *PAIRING_CURVES)):
        return find_curve(record["name"], pairing=True)
    kind = _FORMS[record["form"]]
    known = ("form", "name", "p", "base", "n", "h", "arithmetic")
    letters = {key: int(value, 16) for key, value in record.items() if key not in known}
    x, y = (int(c, 16) for c in record["base"])
    return kind(int(record["p"], 16), (x, y), int(record["n"], 16), record["h"], record["name"],
                arithmetic="arithmetic" in record, **letters)  # fmt: skip


def record(core: EccCore) -> dict[str, Any]:
    """ecc.json."""
    lay, beat = core.layout, core.rhythm
    return {
        "modmill": __version__,
        "design": core.design,
        "given": dict(core.given),
        "curve": describe(core.curve),
        "options": {
            "operations": list(core.operations), "bits": core.bits, "shape": asdict(core.shape),
            "contexts": lay.contexts, "sums": core.sums, "word": core.word, "io": core.io, "top": core.top,
            "cores": core.cores, **({"order": True} if core.order else {}),
        },
        "modulus": "loaded" if core.contract.load else hex(core.curve.p),
        "power_up_reset": core.power_up,
        "number_words": lay.number_words,
        "digits_in_a_word": lay.per_word,
        "digit_bits": lay.digit_bits,
        "rounds": lay.rounds,
        "cycles_of_a_row": beat.turn,
        "setup_words": len(core.setup()),
        "programmes": [
            {
                "command": 1 + k, "operation": held.operation, "rows": held.rows.programme.rows,
                "products": held.rows.programme.products, "digits": held.rows.programme.digits,
                "digit_words": lay.digit_words(k), "window": held.rows.programme.window,
                "inputs": [name for _, name in held.rows.programme.inputs],
                "results": list(held.rows.recipe.results), "cycles": core.cycles(held.operation),
                **({"modulus": "p" if held.modulus == core.curve.p else "n"} if core.order else {}),
            } for k, held in enumerate(core.held)
        ],
        "slots_in_use": lay.used,
        "ports": stream_ports(core.word),
        "multiplier": core.contract.describe(),
        "digest": digest(core.verilog),
    }  # fmt: skip


def vectors(core: EccCore) -> dict[str, Any]:
    """vectors.json: words in and out for jobs of each programme, after SETUP, from the arithmetic of `numbers`."""
    lay, sent = core.layout, core.packets.sent

    def setup(modulus: int) -> dict[str, Any]:
        what = {} if modulus == core.curve.p else {"modulus": "n"}
        return {"curve": core.curve.title, **what, "in": list(map(hex, sent(core.setup(modulus)))), "out": []}

    out, loaded, number = [setup(core.curve.p)], core.curve.p, 0
    for held in core.held:
        if held.modulus != loaded:
            loaded = held.modulus
            out.append(setup(loaded))
        for pairs in core.vector_jobs(held.operation):
            head = [number % core.cores] * core.packets.head
            results = [x for _, expected in pairs for x in expected]
            out.append({
                "operation": held.operation,
                "runs": [
                    {"scalars": list(map(hex, scalars)), **{k: hex(x) for k, x in inputs.items()},
                     "results": list(map(hex, expected))}
                    for (scalars, inputs), expected in pairs
                ],
                "in": list(map(hex, sent(core.job(held.operation, [run for run, _ in pairs]), number))),
                "out": [hex(w) for w in (*head, *(w for x in results for w in lay.number(x)))] if lay.binary else [],
            })  # fmt: skip
            number += 1
    return {"digest": digest(core.verilog), "messages": out}


def page(record: Mapping[str, Any]) -> str:
    """README.md of a coprocessor."""
    words, options = record["number_words"], record["options"]
    programmes = "\n".join(
        f"| {p['command']} | {p['operation']} | {p['digit_words']} | {', '.join(p['inputs'])} | "
        f"{', '.join(p['results'])} | {p['products']} | {p['rows']} | {p['cycles']} |"
        for p in record["programmes"]
    )
    modulo_n = ", ".join(f"`{p['operation']}`" for p in record["programmes"] if p.get("modulus") == "n")
    loading = (
        f"""
{modulo_n}: modulo the order n. The message that loads n and the constants of these programmes stands before them in
`vectors.json`; what is done modulo p needs the first one again."""
        if modulo_n else ""
    )  # fmt: skip
    name = record["curve"]["name"] or "a curve of its own"
    why = record["curve"].get("arithmetic")
    alone = (
        f"\nFor arithmetic alone, no ECDH or ECDSA: {why}.\n"
        "A point that is given must be a multiple of the base point.\n"
        if why else ""
    )  # fmt: skip
    return f"""# Elliptic-curve coprocessor: {name} on {record["design"]}

Made by `{record["command"]}`; RTL digest {record["digest"]}.
Generated cores belong to you: use, change and ship them as you like.
{alone}
`ecc.v` holds the module `{options["top"]}`:

{ports_table(record["ports"])}

{reset_line(record["power_up_reset"])}
A word moves in every cycle in which valid and ready are high; `o_last` goes with the last word of an answer. Numbers
are sent least significant word first, {words} words each.
{options["contexts"]} runs are done in step; a row of the programme takes {record["cycles_of_a_row"]} cycles for each.
{packets_section(options["cores"])}
## Messages

`0`, then {record["setup_words"] - 1} words: modulus and constants. They stand first in `vectors.json`.{loading}

`1 + programme`: a job
- for each of the {options["contexts"]} contexts the words of its digits, {record["digits_in_a_word"]} digits of
  {record["digit_bits"]} bits in each from the least significant bit on, the first used first; then its numbers
- out: for each context its results

| command | operation | words of digits | numbers in | results | products | rows | cycles |
|---|---|---|---|---|---|---|---|
{programmes}

`cycles`: from the last word of a job to the first word of its results, one number for all scalars and points.
{_waiting(record)}`blind` is a number in [1, p) that the projective coordinates are multiplied by, 1 for none. A result
(0, 0) of a Weierstrass curve is the point at infinity. `vectors.json` holds messages with their answers.
"""


def _waiting(record: Mapping[str, Any]) -> str:
    """What is said of the first job after a modulus, where loading it takes time."""
    load = record["multiplier"].get("load")
    return f"The first job after a modulus may wait up to {load['cycles']} cycles more for it.\n" if load else ""
