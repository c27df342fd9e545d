# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A page as a tree, and what can be said of a page without a browser. Each rule yields its faults in words."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
_PYTHON = re.compile(
    r"<[a-z_][^<>]* at 0x[^<>]*>|<(?:function|class|built-in|bound)\b[^<>]*>|\bNone\b|\b(?:nan|inf)\b|\{'|\['|\(\d+,\)"
    r"|\b(?:Fraction|PosixPath|Markup|TracedInt|TracedFloat|defaultdict|Undefined)\("
)
_MEASURED = re.compile(r"\d[\d,.]*\s*(?:MHz|LUTs?|FFs?|flip-flops|µs|us|ns|products (?:a|per) second)\b")
_MEASURED_HEAD = re.compile(r"\b(?:LUTs?|FFs?|MHz|µs|products)\b")


@dataclass
class Element:
    """An element with its place in the tree."""

    tag: str
    attrs: dict
    parent: "Element | None" = None
    children: list = field(default_factory=list)

    def all(self, *tags):
        """All elements below, of these tags if any is given, in the order of the text."""
        for child in self.children:
            if isinstance(child, Element):
                if not tags or child.tag in tags:
                    yield child
                yield from child.all(*tags)

    @property
    def text(self):
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    @property
    def classes(self):
        return (self.attrs.get("class") or "").split()

    def above(self):
        """The elements around it, the nearest first."""
        place = self.parent
        while place is not None:
            yield place
            place = place.parent


class _Tree(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.root = self.at = Element("", {})
        self.faults = []

    def handle_starttag(self, tag, attrs):
        if len(dict(attrs)) != len(attrs):
            self.faults.append(f"line {self.getpos()[0]}: <{tag}> has an attribute twice")
        element = Element(tag, dict(attrs), self.at)
        self.at.children.append(element)
        if tag not in VOID:
            self.at = element

    def handle_startendtag(self, tag, attrs):
        self.at.children.append(Element(tag, dict(attrs), self.at))

    def handle_endtag(self, tag):
        if self.at.tag != tag:
            self.faults.append(f"line {self.getpos()[0]}: </{tag}> closes <{self.at.tag}>")
            return
        self.at = self.at.parent

    def handle_data(self, data):
        self.at.children.append(data)


def tree(text):
    """The root of a page, and the faults of its nesting."""
    parser = _Tree()
    parser.feed(text)
    parser.close()
    if parser.at is not parser.root:
        parser.faults.append(f"<{parser.at.tag}> is never closed")
    return parser.root, parser.faults


def validity(root):
    """Ids given once, the parts that every page has, lists and tables that hold what they may."""
    ids = [e.attrs["id"] for e in root.all() if "id" in e.attrs]
    yield from (f"id {i} is given twice" for i in {i for i in ids if ids.count(i) > 1})
    for tag in ("html", "title", "main", "h1", "nav"):
        if not any(True for _ in root.all(tag)):
            yield f"there is no <{tag}>"
    for row in root.all("tr"):
        yield from (
            f"<tr> holds <{c.tag}>" for c in row.children if isinstance(c, Element) and c.tag not in ("td", "th")
        )
    for p in root.all("p"):
        yield from (f"<p> holds <{e.tag}>" for e in p.all("div", "p", "table", "ul", "ol", "figure", "section", "pre"))
    for table in root.all("table"):
        heads = [sum(int(c.attrs.get("colspan", 1)) for c in row.all("th", "td")) for row in table.all("tr")]
        if len(set(heads)) > 1:
            yield f"a table has rows of {sorted(set(heads))} cells"


def accessibility(root):
    """What axe would say of the text alone."""
    html = next(root.all("html"))
    if html.attrs.get("lang") != "en":
        yield "the page does not name its language"
    if len(list(root.all("h1"))) != 1:
        yield "there is not one h1"
    last = 1
    for heading in root.all("h1", "h2", "h3", "h4", "h5", "h6"):
        level = int(heading.tag[1])
        if level > last + 1:
            yield f"h{level} {heading.text!r} follows h{last}"
        last = level
        if not heading.text.strip():
            yield f"an empty {heading.tag}"
    for e in root.all("a", "button", "summary"):
        if not (e.text.strip() or e.attrs.get("aria-label")):
            yield f"<{e.tag}> has no name"
    for e in root.all("input", "select", "textarea"):
        if not any(parent.tag == "label" for parent in e.above()) and not e.attrs.get("aria-label"):
            yield f"<{e.tag} name={e.attrs.get('name')}> has no label"
    for e in root.all():
        if e.attrs.get("role") in ("img", "region") and not e.attrs.get("aria-label"):
            yield f"<{e.tag} role={e.attrs['role']}> has no label"
        if "scroll" in e.classes and e.attrs.get("tabindex") != "0":
            yield "what scrolls cannot be reached with the keyboard"
        if e.tag == "svg" and not e.attrs.get("aria-label"):
            yield "an <svg> has no label"
        if e.tag == "th" and not (e.attrs.get("scope") or not any("scroll" in p.classes for p in e.above())):
            in_prose = any(p.attrs.get("aria-label") == "table" for p in e.above())
            if not in_prose:
                yield f"<th> {e.text.strip()!r} has no scope"


def links(root, name, ids):
    """Links to what is not there. ``ids`` has the ids of every page, None for files that are no pages."""
    for a in root.all("a", "link", "script"):
        target = a.attrs.get("href", a.attrs.get("src"))
        if target is None or target == "data:,":
            continue
        page, _, anchor = target.partition("#")
        page = page or name
        if page not in ids:
            yield f"{name}: {target} is not there"
        elif anchor and anchor not in ids[page]:
            yield f"{name}: {target} has no such place"


def unreadable(root):
    """What no reader can use: objects as Python writes them, None, nan, and cells without a word."""
    for e in root.all("td", "th"):
        if not e.text.strip():
            yield f"an empty <{e.tag}> in {e.parent.text.strip()[:60]!r}"
    yield from (f"{found!r} stands on the page" for found in _PYTHON.findall(_words(root)))
    for e in root.all():
        yield from (
            f"{found!r} in {name}"
            for name in ("title", "aria-label")
            for found in _PYTHON.findall(e.attrs.get(name) or "")
        )


def _words(element):
    """The text outside of scripts."""
    return "".join(
        child if isinstance(child, str) else _words(child) for child in element.children
        if isinstance(child, str) or child.tag not in ("script", "style")
    )  # fmt: skip


def contradicted(root, shown_by):
    """Measured numbers whose link leads to a row that does not show them. ``shown_by`` has the texts of each row's
    numbers. A number that is computed from rows says so."""
    for a in root.all("a"):
        if "data-rows" in a.attrs:
            row = a.attrs["href"].partition("#r-")[2]
            if row != a.attrs["data-rows"].split()[0]:
                yield f"{a.text!r} links to {row} and names {a.attrs['data-rows']}"
            elif "data-computed" in a.attrs:
                if not a.attrs["title"].startswith("computed from "):
                    yield f"{a.text!r} does not say that it is computed"
            elif a.text not in shown_by[row]:
                yield f"{a.text!r} links to {row}, which shows {sorted(shown_by[row])}"


def foreign(text):
    """Whatever a browser would fetch from elsewhere."""
    yield from re.findall(r"""(?:src|href|action|data)\s*=\s*["']?\s*((?:https?:)?//[^"'\s>]+)""", text)
    yield from re.findall(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""", text)


def untraced(root, known):
    """Measured numbers without their rows: marked ones whose rows are not there, and prose that sounds measured."""
    for e in root.all():
        if "m" in e.classes and any(c.isdigit() for c in e.text):
            if "data-run" in e.attrs:
                continue
            ids = (e.attrs.get("data-rows") or "").split()
            if not ids:
                yield f"{e.text!r} has no row"
            yield from (f"{e.text!r} names row {i}, which is not there" for i in ids if i not in known)
    for table in root.all("table"):
        head = [th.text for row in table.all("thead") for th in row.all("th", "td")]
        for row in table.all("tr"):
            cells = list(row.all("th", "td"))
            for title, cell in zip(head, cells, strict=False):
                marked = {"p", "f", "m"} & {c for e in cell.all() for c in e.classes}
                plain_number = cell.tag == "td" and any(c.isdigit() for c in cell.text) and not marked
                if plain_number and _MEASURED_HEAD.search(title):
                    yield f"{cell.text!r} stands in the column {title!r}"
    main = next(root.all("main"))
    yield from (f"{found!r} stands in the text" for found in _MEASURED.findall(_prose(main)))


def _prose(element):
    """The text outside of marked numbers, captions, scripts and quotations of the papers."""
    parts = []
    for child in element.children:
        if isinstance(child, str):
            parts.append(child)
        elif not {"p", "f", "m", "why", "notes", "facts"} & set(child.classes) and child.tag not in (
            "script",
            "svg",
            "th",
        ):
            parts.append(_prose(child))
    return "".join(parts)
