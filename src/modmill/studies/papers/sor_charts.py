# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Figures A1 to A3 of the sum of residues paper (`studies.papers.sor`): operation, operands and cycles of every cell of
the printed charts, compared with our schedules."""

from __future__ import annotations

from collections import Counter
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
REASONS = {
    "cells with another operation": "",
    "cells with other operands": "K starts with e_alpha; in print it starts with 0",
    "cells in other cycles": "ours starts K_i together with L_i; in print the multiplier of kappa is not idle between "
    "two of them. KP, the first operation that needs kappa, comes after L8 in both",
    "cells in a part of their columns": "a printed column lasts as long as its longest operation; an addition takes "
    "one cycle of it, and AL follows alpha",
}
"""The kinds of differences between a printed chart and our schedule, and their reasons."""


@dataclass(frozen=True)
class Cell:
    """A cell of a printed chart: name of the operation, first and last column, and for a sum what is added."""

    name: str
    first: int
    last: int
    added: frozenset[str] | None = None


@dataclass(frozen=True)
class PrintedChart:
    """A printed data-flow chart: the widths of its columns in cycles, and the cells of each unit."""

    figure: str
    paper: str
    widths: tuple[int, ...]
    cells: Mapping[str, Sequence[Cell]]

    def cycles(self, cell: Cell) -> tuple[int, int]:
        """The first cycle of a cell, and the cycle after its last."""
        return sum(self.widths[: cell.first]), sum(self.widths[: cell.last + 1])


def _row(names: str, first: int, step: int = 1, columns: int = 1) -> list[Cell]:
    """Cells of one name each, ``step`` columns apart."""
    return [Cell(name, first + k * step, first + k * step + columns - 1) for k, name in enumerate(names.split())]


def _sums(total: str, groups: Sequence[str], first: int, step: int = 1, columns: int = 1) -> list[Cell]:
    """Cells in which the values of each group are added to ``total``, ``step`` columns apart."""
    added = [group.split() for group in groups]
    return [
        Cell("+".join([total, *names]), first + k * step, first + k * step + columns - 1, frozenset(names))
        for k, names in enumerate(added)
    ]


_L, _K = ([f"{letter}{i}" for i in range(1, 9)] for letter in "LK")
_ALPHA = {"adder": _row("alpha", 2), "rom": _row("AL", 2)}
# Figure A1: names of kappa's rows stand in either of their two columns, or are split between them.
FIGURES = (
    PrintedChart("Figure A1", "SOR_1M_N", (2, 2, 2) + (1,) * 25, {
        "mul1": [*_row("Z G L1", 0), *_row("L2 L3 L4 L5 L6 L7 L8 KP", 4, 3, 2)],
        "acc": [*_sums("A", _L, 3, 3), *_sums("A", ["AL", "KP"], 25, 2)],
        "kmul1": [*_row("K1", 2), *_row("K2 K3 K4 K5 K6 K7 K8", 3, 2, 2)],
        "kacc": _sums("K", _K, 3, 2, 2),
        **_ALPHA,
    }),
    PrintedChart("Figure A2", "SOR_1M_P", (2,) * 10 + (1, 2, 1), {
        "mul1": [*_row("Z G L1 L2 L3 L4 L5 L6 L7 L8", 0), *_row("KP", 11)],
        "acc": _sums("A", [*_L, "AL", "KP"], 3),
        "kmul1": _row("K1 K2 K3 K4 K5 K6 K7 K8", 2),
        "kacc": _sums("K", _K, 3),
        **_ALPHA,
    }),
    PrintedChart("Figure A3", "SOR_2M", (2,) * 9, {
        "mul1": _row("Z G L1 L3 L5 L7", 0),
        "mul2": [*_row("L2 L4 L6 L8", 2), *_row("KP", 7)],
        "acc": [*_sums("A", ["L1 L2", "L3 L4", "L5 L6", "L7 L8"], 3), *_sums("A", ["AL KP"], 8)],
        "kmul1": _row("K1 K3 K5 K7", 2),
        "kmul2": _row("K2 K4 K6 K8", 2),
        "kacc": _sums("K", ["K1 K2", "K3 K4", "K5 K6", "K7 K8"], 3),
        **_ALPHA,
    }),
)  # fmt: skip


def chart_differences(printed: PrintedChart, plan: Schedule) -> Iterator[tuple[str, str]]:
    """Yield (kind, what differs) for each cell that is not as in our schedule, and for each unit without a row; the
    kinds are those of `REASONS`. Operands are compared where they are printed: what is added to A and K."""
    another, operands, cycles, part = REASONS
    for unit, cells in printed.cells.items():
        ours = [step.name for step in plan.on(unit)]
        if ours != (names := [cell.name for cell in cells]):
            yield another, f"{unit}: printed {' '.join(names)}, ours {' '.join(ours)}"
            continue
        for cell in cells:
            step, (begin, end) = plan[cell.name], printed.cycles(cell)
            added = {name for name in step.reads if plan[name].unit != unit}
            where = f"{unit}: {cell.name} printed in cycles {begin} to {end - 1}, ours {step.start} to {step.end - 1}"
            if cell.added is not None and cell.added != added:
                printed_and_ours = (" ".join(sorted(names)) for names in (cell.added, added))
                yield operands, f"{unit}: {cell.name} adds {', ours '.join(printed_and_ours)}"
            if step.start < begin or step.end > end:
                yield cycles, where
            elif (step.start, step.end) != (begin, end):
                yield part, where
    yield from ((another, f"{unit}: not in the chart") for unit in plan.units if unit not in printed.cells)


def charts() -> list[Section]:
    """The three charts of our schedules, and what differs from print."""
    out = []
    for printed in FIGURES:
        plan = design(NAMES[printed.paper]).fit(parse_modulus(FIELD).value).schedule
        found = Counter(kind for kind, _ in chart_differences(printed, plan))
        lines = [
            Line("cycles", sum(printed.widths), plan.latency),
            Line("cells", sum(map(len, printed.cells.values())), len(plan.steps)),
            *(Line(kind, 0, found[kind], why=why * (found[kind] > 0)) for kind, why in REASONS.items()),
        ]
        title = f"{printed.figure}: schedule of {printed.paper}"
        out.append(Section(title, lines, chart=chart(plan, 110).splitlines(), schedule=plan))
    return out
