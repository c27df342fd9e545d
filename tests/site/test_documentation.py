# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The documentation as a site: complete, linked, searchable, without requests."""

import posixpath
import re
from pathlib import Path

import markup
import pytest

from modmill.flow.tools import ToolError
from modmill.report.architecture import CHART
from modmill.studies.site.documentation import contents, documentation

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def made():
    return documentation(DOCS)


def broken(made):
    """Every link of a page to a file or an id that is not there; links to the pages above are left out."""
    ids = {name: set(re.findall(r'\bid="([^"]+)"', text)) for name, text in made.items() if name.endswith(".html")}
    for name, text in made.items():
        if not name.endswith(".html"):
            continue
        for link in re.findall(r'<(?:a|link|script|img)\b[^>]*?\b(?:href|src)="([^"]*)"', text):
            if re.match(r"(?:[a-z]+:)?//|data:|mailto:", link):
                continue
            path, _, anchor = link.split("?")[0].partition("#")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            if target.startswith("../"):
                assert target == "../index.html"
            elif target not in made or (anchor and anchor not in ids.get(target, ())):
                yield f"{name}: {link}"


def test_there_is_a_page_for_every_page_of_docs(made):
    sources = [p.relative_to(DOCS).with_suffix(".html").as_posix() for suffix in ("md", "ipynb")
               for p in DOCS.rglob(f"*.{suffix}")]  # fmt: skip
    assert sorted(name for name in made if name.endswith(".html")) == sorted([*sources, "search.html"])
    assert all("toctree-l1" in made[name] for name in sources), "every page has the contents beside it"


def test_links_lead_somewhere(made):
    assert list(broken(made)) == []
    assert len(list(broken({"a.html": '<a href="b.html">b</a><a href="#c">c</a><script src="d/e.js"></script>'}))) == 3


@pytest.mark.parametrize("fault", ["[gone](gone.md)", "[gone](guide.md#gone)"])
def test_sphinx_refuses_a_broken_link(tmp_path, fault):
    (tmp_path / "index.md").write_text(f"# Start\n\n[Guide](guide.md)\n\n{fault}\n")
    (tmp_path / "guide.md").write_text("# Guide\n\n## Here\n")
    with pytest.raises(ToolError, match=r"sphinx: index\.md:\d+: WARNING: .*gone"):
        documentation(tmp_path)


def test_pages_fetch_nothing(made):
    for name, text in made.items():
        fetching = re.sub(r"<a\b[^>]*>", "", text)  # a link is followed by the reader only
        assert name.endswith(".js") or list(markup.foreign(fetching)) == [], name


def test_search_knows_words_of_the_pages(made):
    index = made["searchindex.js"]
    assert "montgomeri" in index and "cox" in index and "Search" in made["index.html"]


def test_the_notebook_has_its_outputs(made):
    text = made["first-core.html"]
    assert "PASS pseudo-mersenne" in text and "Measured rows about this core" in text and "<summary>" in text
    faults = [
        name for name, page in made.items() if name.endswith(".html") and re.search(r"object at 0x[0-9a-f]{6}", page)
    ]
    assert faults == []


def test_contents_are_the_links_of_an_index_in_their_order():
    text = "[b](b.md#x) [a](a.md), [up](../c.md), [w](https://x.org/d.md), [b](b.md), [n](n.ipynb)"
    assert contents(text) == ["b", "a", "n"]


def test_the_chart_of_the_architecture_is_drawn(made):
    """With a box for each folder, what is in it, and an arrow for each import, and no Mermaid left."""
    page, source = made["architecture.html"], (DOCS / "architecture.md").read_text()
    chart = CHART.search(source)[1]
    assert "flowchart" not in page
    assert page.count('class="edge"') == chart.count(" --> ") > 10
    assert page.count('class="node"') == chart.count('["<b>') > 10
    assert "montgomery_array" in page and 'stroke="black"' not in page
