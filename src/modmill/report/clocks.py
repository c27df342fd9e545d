# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The origin of the clocks of a table, in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from modmill.report.rows import Row
from modmill.report.traces import rows


def tool_options(routes: Iterable[Row]) -> list[str]:
    """The options of the tool that made routes, which follow its version behind commas."""
    return sorted({option for row in routes for option in row.tool.split(", ")[1:]})


def origin(routes: Mapping[str, Sequence[Row]]) -> str:
    """Seeds and limits of clocks, and the designs with fewer seeds than others or with other options of the tool.

    ``routes``: the rows of each design or engine, by its name. Returns "" if there are no rows.
    """
    routes = {name: some for name, some in routes.items() if some}
    if not routes:
        return ""
    seeds = {name: tuple(sorted(row.seed for row in some if row.seed is not None)) for name, some in routes.items()}
    most = max(seeds.values(), key=len)
    text = f"clock placed and routed, median of {_seeds(most)}"
    fewer: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for name, numbers in seeds.items():
        if numbers != most:
            fewer[numbers].append(name)
    text += "".join(f"; {', '.join(names)}: {_seeds(numbers)}" for numbers, names in fewer.items())
    options: dict[str, list[str]] = defaultdict(list)
    for name, some in routes.items():
        for option in tool_options(some):
            options[option].append(name)
    text += "".join(f"; by {option}: {', '.join(names)}" for option, names in options.items())
    caps = sorted({row.values["cap_mhz"] for some in routes.values() for row in some if row.values.get("cap_mhz")})
    return f"{text}; capped at the blocks' limit of {', '.join(f'{c:g}' for c in caps)} MHz" if caps else text


def routed_by(value: object) -> str:
    """The tool's options of the routes from which a traced number comes; "" if there are none."""
    options = tool_options(row for row in rows(value) if row.kind == "route")
    return f"by {', '.join(options)}" if options else ""


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed{'s' * (len(seeds) != 1)} {', '.join(map(str, seeds))}"
