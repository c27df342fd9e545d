# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Names that the shell completes, with what they mean: typer asks these functions."""

from __future__ import annotations

import typer

Found = list[tuple[str, str]]


def designs(incomplete: str) -> Found:
    """Names of designs."""
    from modmill.designs import DESIGNS

    return [(d.name, d.title) for d in DESIGNS if d.name.startswith(incomplete)]


def moduli(incomplete: str) -> Found:
    """Names of moduli."""
    from modmill.numbers.moduli import MODULI

    return [(m.name, f"{m.bits} bits, {m.source}") for m in MODULI if m.name and m.name.startswith(incomplete)]


def curves(incomplete: str) -> Found:
    """Names of curves."""
    from modmill.numbers.curves.named import CURVES

    names = ((name, c) for c in CURVES for name in (c.name, *c.aliases))
    return [(name, f"{type(c).__name__}, {c.bits} bits") for name, c in names if name.startswith(incomplete)]


def buses(incomplete: str) -> Found:
    """Names of buses."""
    from modmill.buses.adapters import BUSES

    return [(bus.name, bus.title) for bus in BUSES if bus.name.startswith(incomplete)]


def targets(incomplete: str) -> Found:
    """Names of devices."""
    from modmill.flow.targets import TARGETS

    return [(t.name, f"{t.vendor} {t.device}") for t in TARGETS if t.name.startswith(incomplete)]


def settings(context: typer.Context, incomplete: str) -> Found:
    """Settings, each with =, of the design in front of the cursor; of all designs if there is none."""
    from modmill.designs import DESIGNS

    given = [context.params.get(name) for name in ("design", "multiplier")]
    words = {word for value in given if value for word in ([value] if isinstance(value, str) else value)}
    chosen = {d.name for d in DESIGNS} & {*words, *context.args}  # typer leaves arguments before an open option in args
    found = {
        f"{s.name}=": f"{s.meaning} ({s.accepts})"
        for d in DESIGNS if d.name in chosen or not chosen for s in d.settings
    }  # fmt: skip
    return [(name, text) for name, text in found.items() if name.startswith(incomplete)]


def papers(incomplete: str) -> list[str]:
    """Names of papers with tables."""
    from modmill.studies.papers.reproduce import PAPERS

    return [name for name in PAPERS if name.startswith(incomplete)]


def errata(incomplete: str) -> Found:
    """Names of papers with errata."""
    from modmill.studies.papers.errata import ALSO, ERRATA, errata_of

    return [(key, errata_of(key).title) for key in (*ERRATA, *ALSO) if key.startswith(incomplete)]


def operations(incomplete: str) -> list[str]:
    """Names of operations on a curve."""
    from modmill.engines.ecc.point_engine import OPERATIONS

    return [name for name in OPERATIONS if name.startswith(incomplete)]
