# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The files beside a core: header of core.v, data sheet, cocotb bench, FuseSoC file.

All are rendered from contract.json, so that none can contradict it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction
from functools import cache
from typing import Any

import jinja2

from modmill.contract import ALARM
from modmill.report.recorded import lines, nanoseconds

DIGEST_LINE = re.compile(r"^// RTL digest: (sha256:[0-9a-f]{64})\b", re.MULTILINE)

MEANINGS = {
    "clk": "clock, rising edge",
    "rst": "synchronous reset, active high",
    "k_valid": "a word of the modulus is offered",
    "k_ready": "the word is accepted in this cycle if offered",
    "k_m": "word of the modulus",
    "i_valid": "operands are offered",
    "i_ready": "operands are accepted in this cycle if offered",
    "i_a": "operand a",
    "i_b": "operand b",
    "o_valid": "a result is there",
    "o_ready": "the result is taken in this cycle if there",
    "o_r": "result r",
    ALARM: "a check has failed: the results from now on do not count; only a reset ends it",
}


def template(name: str) -> jinja2.Template:
    """A template of the folder ``templates``."""
    return _templates().get_template(name)


@cache
def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("modmill.report"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def multiple(bound: str, *, up: bool) -> str:
    """A bound (a fraction as text) in words: ``p``, ``3 p``, or a decimal rounded to the safe side."""
    value = Fraction(bound)
    if value.denominator == 1:
        return "p" if value == 1 else f"{value} p"
    context = Context(prec=12, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    return f"{context.divide(context.create_decimal(value.numerator), value.denominator).normalize()} p"


def promises(record: Mapping[str, Any]) -> list[str]:
    """The contract in words, one line for each promise."""
    product = multiple(record["product_bound"], up=False)
    any_two = f", or any two whose product is below {product}^2" if record["io"] == "native" else ""
    operand = f"i_a, i_b  {_form(record['operand'])}, each below {multiple(record['operand_bound'], up=False)}{any_two}"
    if record.get("operands") == 1:
        operand = f"i_a       {_form(record['operand'])}, below {multiple(record['operand_bound'], up=False)}"
    return [
        operand,
        f"o_r       {_form(record['result'])}, below {multiple(record['result_bound'], up=True)}"
        + (" (canonical)" if record["result_bound"] == "1" else ""),
        f"timing    latency {record['latency']} cycles, interval {record['interval']}, the same for all operands",
    ]


def _form(form: Mapping[str, Any]) -> str:
    if form["kind"] == "residues":
        return f"{len(form['moduli'])} residues of {form['channel_bits']} bits, {form['order']}"
    if form["kind"] == "digits":
        return f"{form['digits']} redundant digits of {form['digit_bits']} bits, radix 2^{form['radix_bits']}"
    return f"binary integers of {form['width']} bits"


def render(file: str, record: Mapping[str, Any], name: str) -> str:
    """One file of the folder, rendered from contract.json and the core's name."""
    vlnv = packaging_name(name, record["modmill"])
    factor, p = int(record["factor"], 16), int(record["modulus"], 16)
    return _templates().get_template(f"{file}.j2").render(
        {"operands": 2, "made_for": "", "thing": "number" if record.get("operands") == 1 else "product", **record},
        name=name, promises=promises(record), proofs=proofs(record), rtl_file="core.v", bench="test_core",
        tools_section=other_tools("core.v", record["top"], "test_core", "core", vlnv), meanings=MEANINGS,
        r_squared=hex(pow(factor, -2, p)),
        clock=clock("core.v", "core", record.get("measured", ()), "the operands, results and loads in flight"
                    if "load" in record else "the operands and results in flight", _measuring(record),
                    record.get("bus")),
    )  # fmt: skip


NOT_RUN = "not run"
UNPROVED = dict.fromkeys(("constant_time", "products", "control"), NOT_RUN)
"""States of the proofs of a core that was built, by name."""
UNPROVED_ENGINE = dict.fromkeys(("constant_time", "operations"), NOT_RUN)
"""States of the proofs of an engine that was built."""
_FEW = 3
"""Parts of a proof that are all listed; of more parts only those that are not proved."""


def proving(unproved: Mapping[str, str], folder: str = ".") -> str:
    """The command that makes all proofs of a core or an engine."""
    return f"modmill prove {folder} {' '.join(f'--{name}' for name in unproved if name != 'constant_time')}"


def proofs(record: Mapping[str, Any], unproved: Mapping[str, str] = UNPROVED) -> str:
    """The states of the proofs in words; ``unproved``: those of a core or an engine that was built."""
    states = {**unproved, **record.get("proved", {})}
    if states == unproved:
        return f"{NOT_RUN}: `{proving(unproved)}`"
    said = [f"{name.replace('_', ' ')} {states[name]}" for name in unproved]
    if parts := states.get("parts"):
        shown = {name: state for name, state in parts.items() if len(parts) <= _FEW or state != "PROVED"}
        of = "" if len(parts) <= _FEW else f"of {len(parts)} parts: "
        said[-1] += f" ({of}{', '.join(f'{name} {state}' for name, state in shown.items()) or 'all PROVED'})"
    if certificate := states.get("certificate"):
        said.append(f"certificate of the products `{certificate}`, which `modmill prove . --certificate` checks")
    return "; ".join(said)


def clock(
    source: str, thing: str, measured: Sequence[Mapping[str, Any]], cleared: str, measure: str = "",
    bus: Mapping[str, Any] | None = None,
) -> str:  # fmt: skip
    """The sections on measurements, clock and reset of a data sheet.

    ``source``: name of the Verilog file; ``thing``: core or engine; ``measured``: entries of `recorded`; ``cleared``:
    what a reset clears; ``measure``: the command that measures the RTL; ``bus``: what a record states of the bus.
    """
    return template("clock.md.j2").render(
        source=source, thing=thing, lines=lines(measured), period=nanoseconds(measured), cleared=cleared,
        measure=measure, behind=(bus or {}).get("clock_port", ""),
    )  # fmt: skip


def other_tools(source: str, top: str, bench: str, thing: str, vlnv: str) -> str:
    """The lines of a data sheet on the bench, lint, FuseSoC and IP-XACT."""
    return template("tools.md.j2").render(source=source, top=top, bench=bench, thing=thing, vlnv=vlnv)


def packaging_name(name: str, version: str) -> str:
    """Vendor, library, name and version of a core or engine in FuseSoC."""
    return f"modmill:cores:{identifier(name)}:{version}"


def _measuring(record: Mapping[str, Any]) -> str:
    """The command that measures a core; empty for a core with another top, whose names differ."""
    if record["top"] != "core":
        return ""
    modulus = record.get("modulus_name") or record.get("made_for") or record["modulus"]
    sets = [word for name, value in record["given"].items() for word in ("--set", f"{name}={value}")]
    return shlex.join(
        ["modmill", "race", modulus, "--design", record["design"], *sets, "--io", record["io"], "--route"]
    )


def identifier(name: str) -> str:
    """A name of letters, digits and underscores."""
    return re.sub(r"\W+", "_", name).lower()


def core_text(body: str, record: Mapping[str, Any], name: str) -> str:
    """core.v: header, an empty line, the RTL."""
    return render("core_header.v", record, name) + "\n" + body


def split(text: str) -> tuple[str, str]:
    """Header and body of a core.v; the header is empty if there is none."""
    header, gap, body = text.partition("\n\n")
    if gap and all(line.startswith("//") for line in header.splitlines()):
        return header + "\n", body
    return "", text
