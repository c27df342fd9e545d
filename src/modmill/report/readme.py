# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The measured parts of the README and of docs/results.md, and the outputs of the README's commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from modmill.numbers.moduli import parse_modulus
from modmill.report.engine_rows import MeasuredEngine, Work, measured_engines
from modmill.report.measured import core_numbers
from modmill.report.result_tables import ENGINES_ON, all_rows, clock, cores, markdown_table, tables
from modmill.report.rows import Row

BEGIN = "<!-- results: written by `./mill readme` from results/*.jsonl -->"
END = "<!-- end of results -->"

HEADLINES = ("on one ECP5-85K (speed grade 6)", "time of one", "per second", "DSP", "LUT", "design", "MHz")
_SECONDS = re.compile(r"\b[\d.]+(?= s\b)")
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def headlines(folder: Path) -> str:
    """The README's five results: the best routed core or engine for each task. A task without rows is left out."""
    rows = all_rows(folder)
    found = [
        _product(rows, "product modulo P-256, built in", "P-256", loaded=False),
        _product(rows, "product modulo any odd number of 256 bits, loaded at run time", None, loaded=True),
        _operation(rows, "X25519", Work("ecc", "Curve25519", "ladder", 255), lambda e: e.numbers["rate"]),
        _operation(rows, "P-256, multiple of any point", Work("ecc", "P-256", "multiply", 256),
                   lambda e: -e.numbers["ms"]),
        _operation(rows, "RSA-2048 private operation (two powers of 1,024 bits with CRT)",
                   Work("rsa", "1024", "power", 1024), lambda e: e.numbers["rate"]),
    ]  # fmt: skip
    return markdown_table(HEADLINES, [line for line in found if line])


def _product(rows: Sequence[Row], words: str, modulus: str | None, *, loaded: bool) -> list[str] | None:
    """The multiplier of 256 bits with the most products a second for each DSP block."""
    best: tuple[float, list[str]] | None = None
    for check, synth, routes in cores(rows, modulus, ENGINES_ON):
        about, n = synth.about, core_numbers(check, synth, routes)
        bits = parse_modulus(about["modulus"]).value.bit_length()
        if not n["per_dsp"] or bits != 256 or bool(about.get("parameters", {}).get("loadable")) is not loaded:
            continue
        if best is None or n["per_dsp"] > best[0]:
            cells = [words, f"{n['us']:.2f} µs", f"{n['rate']:,.0f}", f"{n['dsp']:,}", f"{n['lut']:,}"]
            best = n["per_dsp"], [*cells, f"`{about['design']}`", clock(n["mhz"], routes)]
    return best[1] if best else None


def _operation(
    rows: Sequence[Row], words: str, work: Work, value: Callable[[MeasuredEngine], float]
) -> list[str] | None:
    """The routed engine for a task whose ``value`` is largest."""
    made = [e for e in measured_engines(rows) if e.work == work and e.target == ENGINES_ON and e.fits]
    made = [e for e in made if e.check and e.routes]
    if not made:
        return None
    e = max(made, key=value)
    n, powers = e.numbers, 2 if work.kind == "rsa" else 1
    jobs = e.about["threads"] * e.about["cores"]
    cells = [words, f"{float(n['ms']):.3g} ms" + (f", {jobs // powers} at a time" if jobs > 1 else "")]
    cells += [f"{float(n['rate']) / powers:,.0f}", f"{int(n['dsp']):,}", f"{int(n['lut']):,}"]
    return [*cells, f"`{e.design.name}`", clock(float(n["mhz"]), e.routes)]


def rewritten(text: str, content: str) -> str:
    """A page with a new part between its markers. Raises ValueError if a marker is missing."""
    if BEGIN not in text or END not in text:
        raise ValueError(f"the page has no place for results: it lacks {BEGIN} or {END}")
    before, rest = text.split(BEGIN, 1)
    return f"{before}{BEGIN}\n{content}{END}{rest.split(END, 1)[1]}"


def pages(root: Path, folder: Path) -> dict[Path, str]:
    """The README of a checkout and its docs/results.md, with the results of a folder of rows."""
    made = {root / "README.md": headlines(folder), root / "docs" / "results.md": tables(folder)}
    return {path: rewritten(path.read_text(encoding="utf-8"), content) for path, content in made.items()}


def replayed(text: str, run: Callable[[Sequence[str]], str]) -> str:
    """A page with new outputs of the commands in its ``console`` blocks.

    ``run`` takes the arguments of one command, the lines that begin with ``$ ./mill``, and returns its output. An
    output that differs only in seconds is kept.
    """

    def replay(block: re.Match[str]) -> str:
        out = []
        for part in re.split(r"^(?=\$ )", block[1], flags=re.MULTILINE)[1:]:
            command, _, old = part.partition("\n")
            new = run(shlex.split(command.removeprefix("$ ./mill ")))
            out.append(f"{command}\n{old if _SECONDS.sub('', old) == _SECONDS.sub('', new) else new}")
        return f"```console\n{''.join(out)}```"

    return _CONSOLE.sub(replay, text)
