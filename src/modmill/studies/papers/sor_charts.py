# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Figures A1 to A3 of the sum of residues paper (`studies.papers.sor`): every cell of the printed charts, compared with
our schedules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from modmill.designs import design
from modmill.numbers.moduli import parse_modulus
from modmill.report.chart import chart
from modmill.report.reproduction import Line, Section
from modmill.schedule import Schedule

NAMES = {"SOR_1M_N": "sor-1m-n", "SOR_1M_P": "sor-1m-p", "SOR_2M": "sor-2m"}
"""Our designs by the names of the paper."""
FIELD = "secp256k1"
"""The modulus of our cores."""


@dataclass(frozen=True)
class PrintedChart:
    """A printed data-flow chart: widths of its columns in cycles, and for each unit its cells (operation, first column,
    last column). Columns are None if only the order of the cells can be read."""

    figure: str
    paper: str
    widths: tuple[int, ...]
    cells: Mapping[str, Sequence[tuple[str, int | None, int | None]]]

    def cycles(self, first: int, last: int) -> tuple[int, int]:
        """The first cycle of a cell, and the cycle after its last."""
        return sum(self.widths[:first]), sum(self.widths[: last + 1])


def _row(names: str, first: int, step: int = 1, columns: int = 1) -> list[tuple[str, int | None, int | None]]:
    """Cells of one name each, ``step`` columns apart."""
    return [(name, first + k * step, first + k * step + columns - 1) for k, name in enumerate(names.split())]


_L, _K = ("L1 L2 L3 L4 L5 L6 L7 L8", "K1 K2 K3 K4 K5 K6 K7 K8")
_A_L = " ".join(f"A+{name}" for name in _L.split())
_K_K = " ".join(f"K+{name}" for name in _K.split())
_ALPHA = {"adder": _row("alpha", 2), "rom": _row("AL", 2)}
FIGURES = (
    PrintedChart("Figure A1", "SOR_1M_N", (2, 2, 2) + (1,) * 25, {
        "mul1": [*_row("Z G L1", 0), *_row("L2 L3 L4 L5 L6 L7 L8 KP", 4, 3, 2)],
        "acc": [*_row(_A_L, 3, 3), *_row("A+AL", 25), *_row("A+KP", 27)],
        "kmul1": [("K1", 2, 2), *((name, None, None) for name in _K.split()[1:])],
        "kacc": [("K+K1", 3, 3), *((name, None, None) for name in _K_K.split()[1:])],
        **_ALPHA,
    }),
    PrintedChart("Figure A2", "SOR_1M_P", (2,) * 10 + (1, 2, 1), {
        "mul1": [*_row(f"Z G {_L}", 0), *_row("KP", 11)],
        "acc": _row(f"{_A_L} A+AL A+KP", 3),
        "kmul1": _row(_K, 2),
        "kacc": _row(_K_K, 3),
        **_ALPHA,
    }),
    PrintedChart("Figure A3", "SOR_2M", (2,) * 9, {
        "mul1": _row("Z G L1 L3 L5 L7", 0),
        "mul2": [*_row("L2 L4 L6 L8", 2), *_row("KP", 7)],
        "acc": [*_row("A+L1+L2 A+L3+L4 A+L5+L6 A+L7+L8", 3), *_row("A+AL+KP", 8)],
        "kmul1": _row("K1 K3 K5 K7", 2),
        "kmul2": _row("K2 K4 K6 K8", 2),
        "kacc": _row("K+K1+K2 K+K3+K4 K+K5+K6 K+K7+K8", 3),
        **_ALPHA,
    }),
)  # fmt: skip


def chart_differences(printed: PrintedChart, plan: Schedule) -> Iterator[str]:
    """Cells that our schedule has on another unit, in another order or in other cycles; units without a row."""
    for unit, cells in printed.cells.items():
        names = [step.name for step in plan.on(unit)]
        if names != [name for name, _, _ in cells]:
            yield f"{unit}: printed {' '.join(name for name, _, _ in cells)}, ours {' '.join(names)}"
            continue
        for name, first, last in cells:
            if first is None or last is None:
                continue
            begin, end = printed.cycles(first, last)
            step = plan[name]
            if step.start < begin or step.end > end:
                yield f"{unit}: {name} printed in cycles {begin} to {end - 1}, ours {step.start} to {step.end - 1}"
    yield from (f"{unit}: not in the chart" for unit in plan.units if unit not in printed.cells)


def charts() -> list[Section]:
    """The three charts of our schedules, and what differs from print."""
    out = []
    for printed in FIGURES:
        plan = design(NAMES[printed.paper]).fit(parse_modulus(FIELD).value).schedule
        columns = [first for row in printed.cells.values() for _, first, _ in row]
        unread = columns.count(None)
        lines = [
            Line("cycles", sum(printed.widths), plan.latency),
            Line("cells", len(columns), len(plan.steps)),
            Line("cells with another operation or in other cycles", 0, len(list(chart_differences(printed, plan)))),
        ]
        if unread:
            why = "the columns of kappa's rows are not aligned in print; their order is compared"
            lines.append(Line("cells compared by their order alone", unread, unread, why=why))
        title = f"{printed.figure}: schedule of {printed.paper}"
        out.append(Section(title, lines, chart=chart(plan, 110).splitlines(), schedule=plan))
    return out
