# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A paper's tables and figures: printed values beside predicted and measured ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from modmill.contract import Refusal
from modmill.report.reproduction import Section
from modmill.studies.papers import hbe, multistep, rsa64k, sor

PAPERS: dict[str, Callable[..., Sequence[Section]]] = {
    "sor": sor.sections,
    "hbe": hbe.sections,
    "rsa64k": rsa64k.sections,
    "multistep": multistep.sections,
}
"""Names of papers, and what makes their sections."""


def require_papers(names: Iterable[str]) -> None:
    """Raise Refusal for a name that is no paper's."""
    for name in names:
        if name not in PAPERS:
            raise Refusal(f"no paper is called {name!r}; there are {', '.join(PAPERS)}")


def reproduce(
    paper: str,
    *,
    measure: bool = False,
    record: Path | None = None,
    progress: Callable[[str], None] | None = None,
    recorded: bool = False,
) -> Sequence[Section]:
    """The sections of one paper, with the rows there are; ``measure`` measures the missing ones first (minutes).

    ``record`` names a results file to which the rows used are added. ``recorded`` finds cores by what the rows are
    about, without emitting them (see studies.measured). Raises Refusal for an unknown paper.
    """
    require_papers([paper])
    return PAPERS[paper](measure=measure, record=record, progress=progress, recorded=recorded)
