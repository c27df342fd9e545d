# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The parts that a machine has many times, although its schedule shows the units of one: rowers and channels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from modmill.design import Design, DesignInstance
from modmill.report.diagram import Repeat, kinds


def _rowers(fitted: Any) -> int:
    return len(fitted.params.a.moduli) // int(fitted.params.channels_per_rower)


def _channels(fitted: Any) -> int:
    return len(fitted.params.base.moduli)


def _chosen(fitted: Any) -> int:
    return int(fitted.settings["rowers"])


@dataclass(frozen=True)
class _Machine:
    """``count``: how many parts of this name a design's machine has; ``outside``: kinds of units outside of them;
    ``shared`` and ``fed`` as in `Repeat`."""

    name: str
    count: Callable[[Any], int]
    by: Literal["ring", "bus", "buses"]
    outside: frozenset[str]
    shared: frozenset[str] = frozenset()
    fed: str = ""


MACHINES = {
    **dict.fromkeys(
        ("kbe", "sq-rns", "shenoy-kumaresan"),
        _Machine("rower", _rowers, "ring", frozenset({"cox"}), fed="multiplier"),
    ),
    "hbe": _Machine("rower", _rowers, "ring", frozenset({"cox"}), frozenset({"hat", "ring"}), fed="fold"),
    **dict.fromkeys(("extension", "reduction"), _Machine("rower", _chosen, "bus", frozenset({"cox", "adder"}))),
    "sor": _Machine("channel", _channels, "bus", frozenset({"adder", "rom", "kmul", "kacc"})),
    "sor-ring": _Machine("rower", _channels, "ring", frozenset({"alpha", "kappa", "bus", "queue"})),
    "sor-original": _Machine("channel", _channels, "buses", frozenset({"adder"})),
}
"""By the pages of designs whose schedules show one of many rowers or channels."""


def repeat(design: Design, fitted: DesignInstance) -> Repeat | None:
    """What a design's machine has many times; None if its schedule has every unit."""
    machine = MACHINES.get(design.page)
    if machine is None:
        return None
    inside = frozenset(kinds(fitted.schedule.units).values()) - machine.outside - machine.shared
    columns = int(fitted.settings["columns"]) if machine.shared else 1  # the rowers of a row share an adder
    return Repeat(machine.name, machine.count(fitted), inside, machine.by, columns, machine.shared, machine.fed)
