# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A picture of t-tests: the largest |t| of each part of an operation, as SVG by matplotlib."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

from modmill.parts import need
from modmill.report.attack_tables import LEAK_LIMIT, blinding, leakage_place
from modmill.report.picture import STYLE
from modmill.report.result_tables import all_rows
from modmill.report.rows import Row

_LEAST = 0.1


def shipped_picture(folder: Path) -> str:
    """The picture of the engine that has the most t-tests in a folder of rows, of one key against random ones.
    Raises ValueError without such rows."""
    found = [row for row in all_rows(folder) if row.kind == "leakage" and not {"control", "fixed"} & set(row.about)]
    digests = Counter(row.digest for row in found)
    most = max(digests, key=lambda digest: digests[digest], default="")
    return picture(sorted((row for row in found if row.digest == most), key=leakage_place))


def picture(rows: Sequence[Row], title: str = "") -> str:
    """The first-order |t| of rows of kind leakage, a panel for each, over the cycles; the axis of |t| is logarithmic.
    Raises ValueError without rows."""
    if not rows:
        raise ValueError("there is nothing to draw: no t-test has a row")
    need("site")
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    with rc_context(STYLE):  # type: ignore[arg-type]
        figure = Figure(figsize=(9, 0.6 + 2.2 * len(rows)), layout="constrained")
        panels = figure.subplots(len(rows), squeeze=False, sharex=True, sharey=True)[:, 0]
        for axes, row in zip(panels, rows, strict=True):
            values = row.values
            cycles = values["cycles"]
            for kind, profile in values["profile"].items():
                size = -(-cycles // len(profile))
                axes.plot([k * size for k in range(len(profile))], [max(t, _LEAST) for t in profile], label=kind, lw=1)
            axes.axhline(LEAK_LIMIT, color="black", linestyle=":", lw=1)
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator())
            axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axes.yaxis.set_minor_formatter(NullFormatter())
            axes.spines[["top", "right"]].set_visible(False)
            axes.set_ylabel("|t|")
            axes.set_title(f"{blinding(row.about)}, {values['runs']:,} runs", loc="left")
        axes.set_xlabel("cycle")
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper right", ncols=3, frameon=False)
        if title:
            figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Title": title or "t-tests"})
    return text.getvalue()
