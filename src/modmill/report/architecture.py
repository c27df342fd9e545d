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

BEGIN = "<!-- picture: written by `./mill readme` from the imports -->"
END = "<!-- end of picture -->"
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


def redrawn(text: str, package: Path) -> str:
    """The page with the picture of this package between its marks. Raises ValueError when a mark is missing."""
    if BEGIN not in text or END not in text:
        raise ValueError(f"the page lacks {BEGIN} or {END}")
    between = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    return between.sub(lambda _: f"{BEGIN}\n{picture(package)}\n{END}", text)
