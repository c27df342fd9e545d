# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A schedule as a cycle chart for the terminal: rows are units, columns are cycles, wrapped into bands."""

from __future__ import annotations

from modmill.schedule import Schedule

_CELL_MIN, _CELL_MAX = 3, 7


def chart(schedule: Schedule, width: int = 80) -> str:
    """The chart as text, at most ``width`` columns wide (but at least one cycle).

    A step is drawn between bars in the cycles in which its unit is occupied; a name that is too long ends in ``…``.
    A dot is an idle cycle. A unit that is idle in a whole band is left out of it, except of the last band, whose last
    column is the share of the interval for which the unit is occupied.
    """
    rows = schedule.chart()
    used = schedule.utilisation()
    label = max(len(unit) for unit, _ in rows)
    cell = _cell(rows)
    end = max(schedule.latency, *(first + cycles for _, steps in rows for first, cycles, _ in steps))
    room = max(1, (width - label - 8) // cell)
    bands = _bands(rows, end, room)
    lines = []
    for band in bands:
        last = band is bands[-1]
        head = "".join(f"{cycle:>{cell - 1}} " for cycle in band)
        lines.append(f"{'cycle':<{label}}  {head}{' used' if last else ''}".rstrip())
        for unit, steps in rows:
            if not last and not any(first < band.stop and first + cycles > band.start for first, cycles, _ in steps):
                continue
            text = "".join(_row(steps, end, cell))[band.start * cell : band.stop * cell]
            lines.append(f"{unit:<{label}} {text}│{f'{used[unit]:>5.0%}' if last else ''}")
        lines.append("")
    return "\n".join(lines[:-1])


def _bands(rows: list[tuple[str, list[tuple[int, int, str]]]], end: int, room: int) -> list[range]:
    """Ranges of at most ``room`` cycles; each ends up to two cycles early to cut the fewest steps."""
    steps = [(first, first + cycles) for _, of_unit in rows for first, cycles, _ in of_unit]
    cut = [sum(first < cycle < last for first, last in steps) for cycle in range(end)]
    bands = []
    first = 0
    while end - first > room:
        stop = min(range(first + room, first + max(1, room - 2) - 1, -1), key=lambda cycle: cut[cycle])
        bands.append(range(first, stop))
        first = stop
    return [*bands, range(first, end)]


def _cell(rows: list[tuple[str, list[tuple[int, int, str]]]]) -> int:
    """Columns of one cycle: enough for most names."""
    needed = sorted(-(-(len(name) + 1) // max(1, cycles)) for _, steps in rows for _, cycles, name in steps)
    return min(max(needed[len(needed) * 9 // 10], _CELL_MIN), _CELL_MAX)


def _row(steps: list[tuple[int, int, str]], end: int, cell: int) -> list[str]:
    """The characters of one unit over all cycles."""
    line = list((" " * (cell // 2) + "·" + " " * (cell - cell // 2 - 1)) * end)
    for first, cycles, name in steps:
        size = max(1, cycles) * cell
        room = size - 1
        text = name if len(name) <= room else name[: room - 1] + "…"
        line[first * cell : first * cell + size] = "│" + f"{text:^{room}}"
        if first + cycles < end and line[first * cell + size] == " ":
            line[first * cell + size] = "│"
    return line
