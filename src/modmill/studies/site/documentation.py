# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The pages of docs/ as a site with search, by Sphinx with MyST and the theme Furo.

The sources are plain Markdown, readable without Sphinx. What Sphinx needs beside them is made here: the trees of
contents, from the links of each index.md, and Markdown from the notebook with its stored outputs. The pages work from
the file system and fetch nothing.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from modmill.flow.tools import ToolError
from modmill.parts import need
from modmill.report.architecture import CHART, drawn
from modmill.report.mathematics import inline, typeset
from modmill.version import __version__

CONFIGURATION = f"""\
project = "Modmill"
html_title = "Modmill {__version__}"
extensions = ["myst_parser", "{__name__}"]
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]
myst_dmath_allow_space = False
myst_fence_as_directive = ["math"]
html_math_renderer = "mathml"
highlight_language = "text"
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["modmill.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_use_index = False
"""
STYLE = """\
.main { min-width: 0; }
.content { flex: 1 1 auto; min-width: 0; max-width: 66em; }
table.docutils { font-size: 0.9em; }
details pre { overflow-x: auto; }
math { font-size: 1.06em; }
math[display="block"] { width: fit-content; margin: 0; }
math mtd { padding: 0.28rem 0; text-align: left; }
math mtd:first-child { text-align: right; }
math mtd:nth-child(2) { padding-right: 1.6rem; }
.formula { overflow-x: auto; margin: 1rem 0; }
svg.chart { max-width: 100%; height: auto; }
"""
"""Wide tables use wide screens."""

_LINK = re.compile(r"\]\(([^)\s#]+)\.(?:md|ipynb)(?:#[^)\s]*)?\)")
_BACK = '\n```{raw} html\n<p><a href="../index.html">Races, engines, designs and papers as pages</a></p>\n```\n'
_NAMED = (
    ("<pre>", '<pre tabindex="0">'),
    ('<div class="table-wrapper', '<div tabindex="0" role="group" aria-label="table" class="table-wrapper'),
    ('<aside class="sidebar-drawer">', '<aside class="sidebar-drawer" aria-label="Pages">'),
    ('<aside class="toc-drawer', '<aside aria-label="On this page" class="toc-drawer'),
    ('<div id="search-results">', '<h1>Search</h1>\n<div id="search-results">'),
)
"""What pages of Sphinx and Furo lack for readers with a keyboard or a screen reader: what scrolls can be reached, and
landmarks have names."""
_FETCHED = (".html", ".css", ".js", ".svg")
"""What a page fetches. Other files, such as the inventory for other projects, are left out."""


def documentation(docs: Path) -> dict[str, str]:
    """Name, relative to the new site, and text of every file.

    Raises ToolError with Sphinx's warnings, also for a link to a page or a heading that does not exist.
    """
    need("site")
    with tempfile.TemporaryDirectory() as folder:
        source, built = Path(folder, "docs"), Path(folder, "site")
        shutil.copytree(docs, source)
        _prepare(source)
        options = ["-q", "-W", "--no-color", "--keep-going", "-d", str(Path(folder, "trees"))]
        command = [sys.executable, "-m", "sphinx", "-b", "html", *options, str(source), str(built)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise ToolError(f"sphinx: {done.stderr.strip().replace(f'{source}/', '')}")
        files = (path for path in sorted(built.rglob("*")) if path.suffix in _FETCHED)
        return {path.relative_to(built).as_posix(): _named(path) for path in files}


def _named(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    for old, new in _NAMED if path.suffix == ".html" else ():
        text = text.replace(old, new)
    return text


def setup(app: Any) -> None:
    """Let Sphinx typeset formulas as the other pages have them. Sphinx calls this, since its configuration names this
    module as an extension."""
    app.add_html_math_renderer("mathml", (partial(_formula, inline), None), (partial(_formula, typeset), None))


def _formula(made: Callable[[str], str], page: Any, node: Any) -> None:
    from docutils.nodes import SkipNode

    page.body.append(made(node.astext()))
    raise SkipNode


def _prepare(source: Path) -> None:
    """Add Sphinx's configuration, the trees of contents and the notebooks as Markdown."""
    (source / "conf.py").write_text(CONFIGURATION, encoding="utf-8")
    (source / "_static").mkdir()
    (source / "_static" / "modmill.css").write_text(STYLE, encoding="utf-8")
    for notebook in source.rglob("*.ipynb"):
        text = "\n".join(_notebook(json.loads(notebook.read_text(encoding="utf-8"))["cells"]))
        notebook.with_suffix(".md").write_text(text, encoding="utf-8")
        notebook.unlink()
    for page in source.rglob("*.md"):
        text = page.read_text(encoding="utf-8").replace(".ipynb)", ".md)")
        text = CHART.sub(lambda chart: f"```{{raw}} html\n{drawn(chart[1])}\n```", text)
        if page.name == "index.md":
            text += "\n".join(["", "```{toctree}", ":hidden:", *contents(text), "```", ""])
            text += _BACK if page.parent == source else ""
        page.write_text(text, encoding="utf-8")


def contents(index: str) -> list[str]:
    """The pages that an index links, in its order, without those outside its folder."""
    return list(dict.fromkeys(name for name in _LINK.findall(index) if "://" not in name and not name.startswith("..")))


def _notebook(cells: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The cells of a notebook, with their outputs, as Markdown."""
    for cell in cells:
        text = "".join(cell["source"])
        yield text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```"
        yield ""
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "text/html" in data:
                shown = "".join(data["text/html"]).replace("h4>", "h2>")  # below the title of the page
                yield f"```{{raw}} html\n{shown}\n```\n"
            else:
                yield f"```text\n{''.join(output.get('text') or data.get('text/plain', ''))}\n```\n"
