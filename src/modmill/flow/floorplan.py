# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Sites for DSP blocks and block RAMs: a region for each of several equal machines, or the whole device for one.

Without a floorplan the placer mixes the blocks of all machines, and cannot separate them later if most blocks are used.
Here the blocks of a machine get neighbouring sites in the order of the data flow; the placer places the logic between
them. The sites are nextpnr's for LFE5U-85F: three rows of DSP blocks and four of block RAMs.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from modmill.contract import UnsupportedError

DEVICE = "LFE5U-85F"
"""The device that has these sites."""
DSP, RAM = "MULT18X18D", "DP16KD"
Plan = Callable[[Iterable[tuple[str, str]]], dict[str, str]]
"""Sites by cell name, for (name, type) of all cells: `along`, or `places` for machines of a pattern."""
_GROUPS = (4, 13, 22, 31, 40, 49, 58, 69, 78, 87, 96, 105, 114)
"""Columns at which groups of blocks begin."""
_DSP_ROWS = (10, 34, 58)
_RAM_ROWS = (22, 46, 70, 82)
_HALF = 26
"""Number of sites in each half of a row."""
_SPARSE = 11
"""Sites in the highest row of DSP blocks for the machine whose other blocks are in the row below."""
_FIRST = ("results", "table", "core.high", "core.y", "core.low")
"""Block RAMs placed before those of the slices: those read by control and those at the multiplier's inputs and outputs.
A message waits for all of them, so they are placed together."""
_ENDS = ("core.results", "core.y", "core.modulus")
"""Block RAMs at the multiplier's inputs and outputs, for one machine."""


def spread(sites: Sequence[str], count: int) -> list[str]:
    """``count`` of these sites, evenly spaced."""
    return [sites[(2 * k + 1) * len(sites) // (2 * count)] for k in range(count)]


def _rows() -> tuple[list[list[str]], list[list[str]]]:
    """The sites of DSP blocks and of block RAMs, row by row, from left to right."""
    dsp = [[f"X{x + at}/Y{y}/MULT18_{at}" for x in _GROUPS for at in (0, 1, 4, 5)] for y in _DSP_ROWS]
    return dsp, [[f"X{x + 2 * at}/Y{y}/EBR{at}" for x in _GROUPS for at in range(4)] for y in _RAM_ROWS]


def regions() -> Iterator[dict[str, list[str]]]:
    """The sites of each of eight regions, two in each row of block RAMs, in serpentine order, so that neighbours
    touch."""
    dsp, ram = _rows()
    halves = []
    for first in (0, _HALF):
        low, middle, high = (row[first : first + _HALF] for row in dsp)
        sparse = spread(high, _SPARSE)
        halves.append((low, middle[:-4], [*sparse, *middle[:-5:-1]], [s for s in high if s not in sparse]))
    for k, row in enumerate(ram):
        for side in (0, 1) if k % 2 == 0 else (1, 0):
            yield {DSP: halves[side][k], RAM: row[side * _HALF : (side + 1) * _HALF]}


def _sides() -> list[dict[str, list[str]]]:
    """The sites of the left and of the right half of the device, row by row in serpentine order."""
    return [
        {
            kind: [site for k, row in enumerate(rows) for site in row[first : first + _HALF][:: -1 if k % 2 else 1]]
            for kind, rows in zip((DSP, RAM), _rows(), strict=True)
        }
        for first in (0, _HALF)
    ]


def along(cells: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Sites by cell name for one machine: its columns along the rows in serpentine order, the slices beside the columns
    with the same digits, other block RAMs near the lowest column. A small machine gets a third more of the rows than
    it needs.

    Raises UnsupportedError if there are more blocks than sites.
    """
    found: dict[str, list[str]] = {DSP: [], RAM: []}
    for name, kind in cells:
        if kind in found:
            found[kind].append(name)
    dsp, ram = ([*low, *reversed(middle), *high] for low, middle, high, *_ in _rows())
    for (kind, names), sites in zip(found.items(), (dsp, ram), strict=True):
        if len(names) > len(sites):
            raise UnsupportedError(f"the machine has {len(names)} {kind}, the rows of the floorplan {len(sites)}")
    length = -(-4 * max(map(len, found.values())) // 3)
    dsp, ram = dsp[:length], ram[:length]
    out = dict(zip(sorted(found[DSP], key=_column), spread(dsp, len(found[DSP])), strict=True))
    slices = sorted((name for name in found[RAM] if _slice(name)), key=_order)
    out |= zip(slices, spread(ram, len(slices)), strict=True)
    free = [site for site in ram if site not in out.values()]
    return out | dict(zip(sorted(set(found[RAM]) - out.keys(), key=_near), free, strict=False))


def places(cells: Iterable[tuple[str, str]], machine: str) -> dict[str, str]:
    """Sites by cell name, for (name, type) of all cells. ``machine``: a pattern whose group is a machine's number.

    One or two machines get half of the device each. Raises UnsupportedError if there are no machines or too many, or
    one has more blocks than its part of the device.
    """
    found: dict[int, dict[str, list[str]]] = defaultdict(lambda: {DSP: [], RAM: []})
    for name, kind in cells:
        if kind in (DSP, RAM) and (match := re.search(machine, name)):
            found[int(match[1])][kind].append(name)
    parts = list(regions())
    if not found or max(found) >= len(parts):
        raise UnsupportedError(f"a floorplan is for 1 to {len(parts)} machines, not {max(found, default=-1) + 1}")
    if max(found) <= 1:
        parts = _sides()
    out: dict[str, str] = {}
    for number, blocks in found.items():
        for kind, names in blocks.items():
            sites = parts[number][kind]
            if len(names) > len(sites):
                raise UnsupportedError(f"machine {number} has {len(names)} {kind}, its part of the device {len(sites)}")
            out.update(zip(sorted(names, key=_order), spread(sites, len(names)), strict=True))
    return out


def _column(name: str) -> tuple[int, str]:
    """Sort key of the array's columns, the head, its lowest column, first."""
    column = re.search(r"column(\d+)", name)
    return int(column[1]) if column else -1, name


def _near(name: str) -> tuple[int, str]:
    """Sort key: block RAMs at the multiplier's inputs and outputs, then the sequencer's."""
    return next((k for k, part in enumerate(_ENDS) if part in name), len(_ENDS)), name


def _slice(name: str) -> re.Match[str] | None:
    return re.search(r"slice_(\d+)", name)


def _order(name: str) -> tuple[int, int, str]:
    """Sort key: DSP blocks by column; block RAMs of the sequencer and the lowest column, of the slices, then others."""
    if column := re.search(r"column(\d+)", name):
        return 0, int(column[1]), name
    if piece := _slice(name):
        return len(_FIRST), int(piece[1]), name
    return next((k for k, part in enumerate(_FIRST) if part in name), len(_FIRST) + 1), 0, name


def apply(netlist: Mapping[str, dict], top: str, plan: Plan) -> None:
    """Set the sites in a netlist, in nextpnr's attributes. Raises UnsupportedError as ``plan`` does."""
    cells = netlist["modules"][top]["cells"]
    for name, site in plan((name, cell["type"]) for name, cell in cells.items()).items():
        cells[name]["attributes"]["BEL"] = site
