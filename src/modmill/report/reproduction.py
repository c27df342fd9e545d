# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A paper's tables beside ours: printed, predicted by formula, and measured by a tool, in separate columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from modmill.report.plots import Plot
from modmill.schedule import Schedule

if TYPE_CHECKING:
    from rich.console import Console

Number = int | float | str | None

UNKNOWN = "-"
"""Placeholder of a missing measurement."""


@dataclass(frozen=True)
class Line:
    """One cell of a paper's table, or one statement: printed, predicted and measured value, and the reason for a
    difference."""

    what: str
    printed: Number = None
    predicted: Number = None
    measured: Number = None
    why: str = ""

    @property
    def differs(self) -> bool:
        """Whether prediction or measurement differs from print."""
        return any(v not in (None, UNKNOWN, self.printed) for v in (self.predicted, self.measured))


def cells(item: str, *rows: tuple[Any, ...]) -> list[Line]:
    """Lines about one item. Each row has the name of a quantity, then the other fields of its `Line` in order."""
    return [Line(f"{item}: {quantity}", *fields) for quantity, *fields in rows]


@dataclass(frozen=True)
class Section:
    """One table or figure: its lines, a text before them, a chart for the terminal, and the plots or the schedule that
    pages draw instead."""

    title: str
    lines: Sequence[Line] = ()
    text: str = ""
    chart: Sequence[str] = field(default_factory=tuple)
    plots: Sequence[Plot] = ()
    schedule: Schedule | None = None


def show(sections: Sequence[Section], console: Console) -> None:
    """Print the sections."""
    from rich.markup import escape
    from rich.table import Table

    for section in sections:
        console.print(f"\n[bold]{escape(section.title)}[/bold]")
        if section.text:
            console.print(escape(section.text), soft_wrap=False)
        for row in section.chart:
            console.print(escape(row), soft_wrap=True, highlight=False)
        if section.lines:
            table = Table(box=None, pad_edge=False, header_style="dim")
            table.add_column("", overflow="fold")
            for name in ("printed", "predicted", "measured"):
                table.add_column(name, justify="right")
            table.add_column("why", overflow="fold", style="dim")
            for line in section.lines:
                table.add_row(
                    escape(line.what),
                    *(escape(_text(v)) for v in (line.printed, line.predicted, line.measured)),
                    escape(line.why),
                )
            console.print(table)


def _text(value: Number) -> str:
    if value is None:
        return ""
    return f"{value:,.5g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value


def as_data(sections: Sequence[Section]) -> list[dict[str, Any]]:
    """The sections for JSON."""
    return [
        {"title": s.title, "text": s.text, "lines": [{**asdict(line), "differs": line.differs} for line in s.lines]}
        for s in sections
    ]
