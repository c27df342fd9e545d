# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The README's tables: the best measured core or engine for each task, and the commands that build the engines."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from modmill.contract import UnsupportedError
from modmill.designs import design as find_design
from modmill.numbers.moduli import parse_modulus
from modmill.report.engine_rows import MeasuredEngine, Work, measured_engines
from modmill.report.engines import short
from modmill.report.measured import core_numbers
from modmill.report.result_tables import ENGINES_ON, all_rows, clock, cores, markdown_table
from modmill.report.rows import Row

HEAD = ("on one ECP5-85K (speed grade 6)", "time of one", "per second", "DSP", "per second per DSP", "LUT", "design",
        "MHz")  # fmt: skip
OPERATIONS_HEAD = ("whole operation", "best for", "command")

DENSE = "brainpoolP256r1"
"""A modulus without a special form, which only designs for any odd modulus serve."""

DSP, RATE, TIME = "most for each DSP block", "most per second", "shortest time"
_VALUES: dict[str, Callable[[MeasuredEngine], float]] = {
    DSP: lambda e: e.numbers["per_dsp"] or 0, RATE: lambda e: e.numbers["rate"], TIME: lambda e: -e.numbers["ms"],
}  # fmt: skip

PRODUCTS = (
    ("product modulo 2^255-19, built in", "2^255-19", False),
    ("product modulo P-256, built in", "P-256", False),
    ("product modulo any odd number of 256 bits, built in", DENSE, False),
    ("product modulo any odd number of 256 bits, loaded at run time", DENSE, True),
)
"""Label, modulus, and whether it is loaded. Any core for any modulus of the same length stands for DENSE."""

_X25519, _ANY = Work("ecc", "Curve25519", "ladder", 255), Work("ecc", "P-256", "multiply", 256)
OPERATIONS = (
    ("X25519", _X25519, DSP, "x25519-core"),
    ("X25519", _X25519, RATE, "x25519-array"),
    ("P-256, multiple of any point", _ANY, DSP, "p256-core"),
    ("P-256, multiple of any point", _ANY, TIME, "p256-fast"),
    ("Ed25519, multiple of the base point", Work("ecc", "Ed25519", "multiply-base", 253), DSP, "ed25519-core"),
    ("Ed25519, multiple of the base point", Work("ecc", "Ed25519", "multiply-base", 253), RATE, "ed25519-array"),
    ("Ed25519, sum of two multiples", Work("ecc", "Ed25519", "multiply-two", 253), DSP, "ed25519-verify"),
    ("Ed25519, sum of two multiples", Work("ecc", "Ed25519", "multiply-two", 253), RATE, "ed25519-verify-array"),
    ("RSA-2048 private operation (two powers of 1,024 bits with CRT)", Work("rsa", "1024", "power", 1024), RATE,
     "rsa-core"),
)  # fmt: skip
"""Label, task, what it is best for, and the folder that the command writes."""


def headlines(folder: Path) -> str:
    """The best routed core or engine for each line of PRODUCTS and OPERATIONS, without those that have no rows."""
    rows = all_rows(folder)
    found = [product(rows, *line) for line in PRODUCTS]
    found += [operation(rows, f"{words}, {goal}", work, goal) for words, work, goal, _ in OPERATIONS]
    return markdown_table(HEAD, [line for line in found if line])


def operations(folder: Path) -> str:
    """The command that builds the best engine for each line of OPERATIONS that has rows."""
    rows = all_rows(folder)
    lines = []
    for words, work, goal, name in OPERATIONS:
        if e := best_engine(rows, work, goal):
            lines.append([words, goal, f"`./mill {shlex.join([*e.build, '-o', name])}`"])
    return markdown_table(OPERATIONS_HEAD, lines)


def product(rows: Sequence[Row], words: str, modulus: str, loaded: bool) -> list[str] | None:
    """The routed multiplier for a modulus with the most products a second for each DSP block, as a line of HEAD."""
    wanted = parse_modulus(modulus).value
    found = []
    for check, synth, routes in cores(rows, None, ENGINES_ON):
        about, n = synth.about, core_numbers(check, synth, routes)
        value = parse_modulus(about["modulus"]).value
        same = value.bit_length() == wanted.bit_length() if modulus == DENSE else value == wanted
        if same and n["per_dsp"] and bool(about.get("parameters", {}).get("loadable")) is loaded:
            found.append((float(n["per_dsp"]), about["design"], n, routes))
    for per_dsp, name, n, routes in sorted(found, key=lambda one: -one[0]):
        if serves(name, wanted):
            cells = [words, f"{n['us']:.2f} µs", f"{n['rate']:,.0f}", f"{n['dsp']:,}", f"{per_dsp:,.0f}"]
            return [*cells, f"{n['lut']:,}", f"`{name}`", clock(n["mhz"], routes)]
    return None


def serves(name: str, p: int) -> bool:
    """Whether a design makes a core for p with its own choice of settings."""
    try:
        find_design(name).fit(p)
    except UnsupportedError:
        return False
    return True


def operation(rows: Sequence[Row], words: str, work: Work, goal: str) -> list[str] | None:
    """The best routed engine for a task as a line of HEAD."""
    e = best_engine(rows, work, goal)
    if e is None:
        return None
    n, powers = e.numbers, 2 if work.operation == "power" else 1
    jobs = e.about["threads"] * e.about["cores"]
    cells = [words, f"{float(n['ms']):.3g} ms" + (f", {jobs // powers} at a time" if jobs > powers else "")]
    cells += [f"{float(n['rate']) / powers:,.0f}", f"{int(n['dsp']):,}"]
    cells += [short(float(n["per_dsp"]) / powers, 3) if n["per_dsp"] else "no DSP", f"{int(n['lut']):,}"]
    return [*cells, f"`{e.design.name}`", clock(float(n["mhz"]), e.routes)]


def best_engine(rows: Sequence[Row], work: Work, goal: str) -> MeasuredEngine | None:
    """The engine for a task that is best for a goal, of those that were checked and routed and fit the device."""
    made = [e for e in measured_engines(rows) if e.work == work and e.target == ENGINES_ON and e.fits]
    return max((e for e in made if e.check and e.routes), key=_VALUES[goal], default=None)
