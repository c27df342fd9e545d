# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Where the clocks of a table come from, in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from modmill.report.rows import Row


def origin(routes: Mapping[str, Sequence[Row]]) -> str:
    """Seeds and limits of clocks, and which have fewer seeds than others or other options of the tool.

    ``routes``: the rows of each design or engine, by its name; "" where none has any.
    """
    routes = {name: rows for name, rows in routes.items() if rows}
    if not routes:
        return ""
    seeds = {name: tuple(sorted(row.seed for row in rows if row.seed is not None)) for name, rows in routes.items()}
    most = max(seeds.values(), key=len)
    text = f"clock placed and routed, median of {_seeds(most)}"
    fewer = defaultdict(list)
    for name, some in seeds.items():
        if some != most:
            fewer[some].append(name)
    text += "".join(f"; {', '.join(names)}: {_seeds(some)}" for some, names in fewer.items())
    options = defaultdict(list)
    for name, rows in routes.items():
        for option in sorted({option for row in rows for option in row.tool.split(", ")[1:]}):
            options[option].append(name)
    text += "".join(f"; by {option}: {', '.join(names)}" for option, names in options.items())
    caps = sorted({row.values["cap_mhz"] for rows in routes.values() for row in rows if row.values.get("cap_mhz")})
    return f"{text}; capped at the blocks' limit of {', '.join(f'{c:g}' for c in caps)} MHz" if caps else text


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed{'s' * (len(seeds) != 1)} {', '.join(map(str, seeds))}"
