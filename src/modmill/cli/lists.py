# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The commands that list what there is: ``modmill designs``, ``moduli`` and ``targets``."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from modmill.cli import complete
from modmill.cli.options import Json

if TYPE_CHECKING:
    from modmill.design import Design

Name = Annotated[
    str | None,
    typer.Argument(metavar="[DESIGN]", help="Only this design, with all settings.", autocompletion=complete.designs),
]


def designs(name: Name = None, as_json: Json = False) -> None:
    """List the designs, or print one: its source, the moduli that it serves, its settings and their limits."""
    from modmill.designs import DESIGNS, design

    chosen = DESIGNS if name is None else (design(name),)
    if as_json:
        rows = [_described(d) for d in chosen]
        print(json.dumps(rows if name is None else rows[0], indent=2, ensure_ascii=False))
        return
    if name is not None:
        print("\n".join(_page(chosen[0], min(shutil.get_terminal_size((110, 24)).columns, 110))))
        return
    for d in DESIGNS:
        print(f"{d.name:<18} {d.title}{f' ({d.paper})' if d.paper else ''}")
    print("\nmodmill designs DESIGN shows one with its settings")


def _described(d: Design) -> dict[str, Any]:
    return {
        "name": d.name, "paper": d.paper, "title": d.title, "source": str(d.source), "needs": d.needs,
        "parameters": [s.describe() for s in d.settings],
    }  # fmt: skip


def _page(d: Design, width: int) -> Iterator[str]:
    """A design in full, in lines of ``width`` characters."""
    yield f"{d.name}{f' ({d.paper})' if d.paper else ''}: {d.title}"
    yield ""
    for label, text in (("source", str(d.source)), ("needs", d.needs), ("more", f"docs/designs/{d.page}.md")):
        yield from wrap(text, width, initial_indent=f"{label:<9}", subsequent_indent=" " * 9)
    for s in d.settings:
        yield ""
        yield f"--set {s.name}={s.default}"
        limits = f"{s.accepts}{f': {s.depends}' if s.depends else ''}"
        yield from wrap(f"{s.meaning} ({limits})", width, initial_indent=" " * 9, subsequent_indent=" " * 9)
    yield ""
    yield f"modmill explain {d.name} -m MODULUS shows its schedule; modmill build {d.name} -m MODULUS makes a core"


def moduli(as_json: Json = False) -> None:
    """List the named moduli."""
    from modmill.numbers.moduli import MODULI

    if as_json:
        rows = [{"name": m.name, "bits": m.bits, "value": hex(m.value), "source": m.source} for m in MODULI]
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    for m in MODULI:
        text = m.text if len(m.text) < 50 else f"{hex(m.value)[:40]}…"
        print(f"{m.name or '':<18} {m.bits:>4} bits  {text}  [{m.source}]")


def targets(as_json: Json = False) -> None:
    """List the devices for synthesis."""
    from dataclasses import asdict

    from modmill.flow.targets import DEFAULT, TARGETS

    if as_json:
        rows = [
            {"name": t.name, "vendor": t.vendor, "device": t.device, "speed_grade": t.speed_grade,
             "dsp_block": t.dsp_block, "capacity": asdict(t.capacity), "place_and_route": t.routable,
             "nextpnr": t.nextpnr and t.nextpnr.package, "note": t.note, "default": t.name == DEFAULT} for t in TARGETS
        ]  # fmt: skip
        print(json.dumps(rows, indent=2))
        return
    name, vendor, device = (max(len(getattr(t, of)) for t in TARGETS) for of in ("name", "vendor", "device"))
    for t in TARGETS:
        c = t.capacity
        print(
            f"{t.name:<{name}} {t.vendor:<{vendor}} {t.device:<{device}} "
            f"{c.dsp:>5} DSP {c.lut:>7} LUT {c.ff:>7} FF {c.bram:>5} BRAM  "
            f"{'synthesis, place and route' if t.routable else 'synthesis'}{' (default)' if t.name == DEFAULT else ''}"
            f"{t.note and f': {t.note}'}"
        )
