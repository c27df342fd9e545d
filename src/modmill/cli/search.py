# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The command ``modmill search``: the front of cores for a modulus and a device, with few measurements."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from modmill.cli.options import Designs, Json, Modulus, Target
from modmill.cli.progress import keep, note, show
from modmill.cli.recommend import MaxDsp, MaxLut, MaxUs, fits, lines
from modmill.cli.sweep import StoreFolder, store_of
from modmill.parts import need

if TYPE_CHECKING:
    from modmill.studies.search.front import Search
    from modmill.studies.search.knowledge import Figures

Most = Annotated[
    int | None, typer.Option(min=0, help="Most cores that are synthesised; default: what the search needs.")
]
MostRouted = Annotated[
    int | None, typer.Option(min=0, help="Most cores that are placed and routed; default as before.")
]


def search(
    modulus: Modulus,
    target: Target = "ecp5-85k",
    objective: Annotated[
        list[str], typer.Option(help="area, throughput, latency or interval; repeatable. Default: area, throughput.")
    ] = [],  # noqa: B006
    max_dsp: MaxDsp = None,
    max_lut: MaxLut = None,
    max_us: MaxUs = None,
    loaded: Annotated[bool, typer.Option("--loaded", help="Only cores that load the modulus at run time.")] = False,
    design: Designs = [],  # noqa: B006
    trials: Annotated[int, typer.Option(min=0, help="Combinations of settings that Optuna tries without tools.")] = 300,
    route: Annotated[bool, typer.Option("--route", help="Also place and route what may be on the front.")] = False,
    most: Most = None,
    most_routed: MostRouted = None,
    store: StoreFolder = None,
    jobs: Annotated[int, typer.Option(min=0, max=1024, help="Cores at a time; 0: one for each processor.")] = 0,
    as_json: Json = False,
) -> None:
    """Find the cores that no other core beats, and measure only what may be one of them.

    All figures are predicted first. What is beaten even at the good end of its error bar is not synthesised; what then
    is beaten is not routed. Without --route clocks are predicted. Rows are kept; the same command goes on from them.
    """
    from modmill.designs import design as find_design
    from modmill.flow.targets import target as find_target
    from modmill.numbers.moduli import parse_modulus
    from modmill.studies.race.measured_cores import modulus_name
    from modmill.studies.search.candidates import multipliers
    from modmill.studies.search.measuring import Swept
    from modmill.studies.search.measuring import search as searched
    from modmill.studies.search.recommend import Budget
    from modmill.studies.sweep import clusters
    from modmill.studies.sweep.measuring import tool_of

    p, device, kinds = parse_modulus(modulus).value, find_target(target), ("synth", "route") if route else ("synth",)
    objectives = _known(objective) or ["area", "throughput"]
    for kind in kinds:
        tool_of(kind, target)
    need("sweep")
    need("search")
    chosen = [*map(find_design, dict.fromkeys(design))] or multipliers()
    opened = store_of(store)
    keep(f"finished rows are in {opened.folder}; the same command goes on")
    show("reading rows and looking at cores")
    given = {kind: number for kind, number in (("synth", most), ("route", most_routed)) if number is not None}
    made = searched(
        device, p, chosen, objectives, Budget(max_dsp, max_lut, max_us),
        Swept(device, opened, partial(clusters.local, jobs), progress=show),
        loaded=loaded, trials=trials, kinds=kinds, most=given,
    )  # fmt: skip
    made.told = note
    found = made.go()
    if as_json:
        counts = {"cores": len(made.candidates), "measured": dict(made.measured), "failed": len(made.failed)}
        print(json.dumps({**counts, "front": [f.describe() for f in found]}, indent=2))
        return
    print(f"{modulus_name(p)} on {target}, the front of {', '.join(objectives)}:")
    _tell(made, found)


def _known(objectives: list[str]) -> list[str]:
    """Objectives, each once. Raises UnsupportedError for an unknown one."""
    from modmill.contract import UnsupportedError
    from modmill.numbers.shown import shortened
    from modmill.studies.search.front import OBJECTIVES

    if unknown := set(objectives) - set(OBJECTIVES):
        raise UnsupportedError(f"--objective takes {', '.join(OBJECTIVES)}, not {shortened(min(unknown))}")
    return [*dict.fromkeys(objectives)]


def _tell(made: Search, found: list[Figures]) -> None:
    """Print the front, and what it took."""
    from modmill.studies.search.knowledge import Knowledge

    for number, one in enumerate(found, 1):
        print("\n".join(["", *lines(number, one)]))
    counts = [f"{made.measured[kind]:,} {word}" for kind, word in (("synth", "synthesised"), ("route", "routed"))]
    known = Knowledge(made.target, made.rows)
    print(f"\n{len(made.candidates):,} cores, of which {' and '.join(counts)} now. {fits(known)}")
