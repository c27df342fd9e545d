# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The command ``modmill recommend``: which core for a modulus, a device and a budget."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from modmill.cli.options import Designs, Json, Modulus, Target
from modmill.cli.progress import show

if TYPE_CHECKING:
    from modmill.studies.search.estimate import Estimate, Process
    from modmill.studies.search.knowledge import Figures, Knowledge

MaxDsp = Annotated[int | None, typer.Option("--max-dsp", min=0, help="Most DSP blocks; default: those of the device.")]
MaxLut = Annotated[int | None, typer.Option("--max-lut", min=0, help="Most LUTs; default: those of the device.")]
MaxUs = Annotated[float | None, typer.Option("--max-us", min=0, help="Most microseconds from operands to result.")]


def recommend(
    modulus: Modulus,
    target: Target = "ecp5-85k",
    max_dsp: MaxDsp = None,
    max_lut: MaxLut = None,
    max_us: MaxUs = None,
    want: Annotated[
        str,
        typer.Option(help="throughput: products per second; latency: time of one product; area: LUTs + 100 × DSP."),
    ] = "throughput",
    loaded: Annotated[bool, typer.Option("--loaded", help="Only cores that load the modulus at run time.")] = False,
    design: Designs = [],  # noqa: B006
    as_json: Json = False,
) -> None:
    """Recommend three cores for a modulus, a device and a budget, each with the command that builds it.

    Numbers are measured where there are rows, else predicted from the rows of other cores, with error bars. All are
    for the form native, as in `modmill race`. Status 2, with the nearest core, if none fits.
    """
    from modmill.designs import design as find_design
    from modmill.flow.targets import target as find_target
    from modmill.numbers.moduli import parse_modulus
    from modmill.studies.race.measured_cores import modulus_name
    from modmill.studies.search.candidates import multipliers
    from modmill.studies.search.knowledge import Knowledge, all_rows
    from modmill.studies.search.recommend import Budget
    from modmill.studies.search.recommend import recommend as recommended

    p, device = parse_modulus(modulus).value, find_target(target)
    chosen = [*map(find_design, dict.fromkeys(design))] or multipliers()
    show("reading rows")
    known = Knowledge(device, all_rows())
    show("looking at cores")
    found = recommended(known, p, Budget(max_dsp, max_lut, max_us), want, chosen, loaded=loaded)
    if as_json:
        errors = {name: vars(process.error) for name, process in (("lut", known.lut), ("mhz", known.mhz))}
        print(json.dumps({"cores": [f.describe() for f in found], "left_out": errors}, indent=2))
        return
    print(f"{modulus_name(p)} on {target}, best {want} first:")
    for number, figures in enumerate(found, 1):
        print("\n".join(["", *lines(number, figures)]))
    print(f"\n{fits(known)}")


def fits(known: Knowledge) -> str:
    """How good the predictions are, in words."""
    from modmill.studies.search.estimate import HELD

    return f"{_error('LUTs', known.lut)}; {_error('MHz', known.mhz)}. Bars hold for {HELD:.0%} of these."


def lines(number: int, f: Figures) -> list[str]:
    """A core with its numbers and its command."""
    core = f.core
    return [
        f"{number}. {core.label}",
        f"   {_bar(f.rate, ',.0f')} products/s, {_bar(f.us, '.3g')} µs, {f.dsp:,} DSP, {_bar(f.lut, ',.0f')} LUT, "
        f"{_bar(f.mhz, '.1f')} MHz; latency {core.latency:,}, interval {core.interval:,}",
        f"   LUT {f.lut.how}; clock {f.mhz.how}",
        f"   {core.command}",
    ]


def _bar(e: Estimate, form: str) -> str:
    if e.low == e.high:
        return f"{e.value:{form}}"
    return f"{e.value:{form}} ({e.low:{form}} to {e.high:{form}})"


def _error(what: str, process: Process) -> str:
    e = process.error
    return (
        f"{what} are fitted to {e.cores} cores: one that is left out is predicted within {e.middle:.0%} half of the "
        f"time, {e.mean:.0%} on average"
    )
