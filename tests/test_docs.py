# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What the README and docs/ say is true: examples run, commands, designs and linked files exist."""

import re
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from modmill.designs import DESIGNS
from modmill.report.rows import read

ROOT = Path(__file__).resolve().parents[1]
PAGES = {d.page for d in DESIGNS}

_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_COMMAND = re.compile(r"^(?:\$ )?(?:\./mill|modmill)((?: [^#\n]*)?)")
_QUOTED = re.compile(r"(?:\./mill|modmill) [^`\n]*")
_FAMILY = re.compile(r"\b(?:sor|mm)-[a-z0-9]+(?:-[a-z0-9]+)*\b")
_TAKES_DESIGN = {"build", "explain"}
_NOT_DESIGNS = {"mm-pa"}
"""Names of an architecture with several designs."""


def pages(root):
    """The README and all pages under docs."""
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def commands():
    """The subcommands that there are."""
    import typer

    from modmill.cli.commands import app

    return {*typer.main.get_command(app).commands, "test"}


def command_lines(text):
    """Words after ``./mill`` or ``modmill`` in code blocks (start of a line) and in inline code."""
    for block in _FENCE.findall(text):
        for line in block.splitlines():
            if found := _COMMAND.match(line):
                yield found[1].split()
    for quoted in re.findall(r"`([^`\n]+)`", _FENCE.sub("", text)):
        if _QUOTED.fullmatch(quoted):
            yield quoted.split()[1:]


def faults(root):
    """Everything in the pages that does not exist, one line each."""
    known, designs = commands(), {d.name for d in DESIGNS}
    for page in pages(root):
        text = page.read_text(encoding="utf-8")
        where = page.relative_to(root)
        for words in command_lines(text):
            if not words or words[0].startswith("-") or words[0] in ("X", "ARGUMENTS"):
                continue
            if words[0] not in known:
                yield f"{where}: no command {words[0]}"
            named = words[1:2] if words[0] in _TAKES_DESIGN else []
            named += [value for flag, value in pairwise(words) if flag == "--design"]
            for name in named:
                if name not in designs and not name.isupper():
                    yield f"{where}: no design {name}"
        prose = _LINK.sub(lambda link: link[0].split("](")[0], text)
        for name in set(_FAMILY.findall(re.sub(r"[\w./-]+\.(?:md|py|txt|jsonl)", "", prose))):
            made_from_one = any(name.startswith(f"{d}-") for d in designs)  # sor-ring-P-256-binary
            if name not in designs | _NOT_DESIGNS and not made_from_one:
                yield f"{where}: no design {name}"
        for link in _LINK.findall(_FENCE.sub("", text)):
            if "://" in link or link.startswith(("#", "mailto:")):
                continue
            if not (page.parent / link.split("#")[0]).exists():
                yield f"{where}: broken link {link}"
    for page in PAGES:
        if not (root / "docs" / "designs" / f"{page}.md").exists():
            yield f"docs/designs: no page {page}.md"


def test_commands_designs_and_links_exist():
    assert list(faults(ROOT)) == []


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "README.md", tmp_path)
    for page in pages(tmp_path):  # links out of the pages stay whole
        for link in _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
            target = page.parent / link.split("#")[0]
            if "://" not in link and not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.touch()
    assert list(faults(tmp_path)) == []
    return tmp_path


@pytest.mark.parametrize(
    ("page", "addition", "fault"),
    [
        ("docs/guide.md", "Take `sor-3m`.", "no design sor-3m"),
        ("README.md", "```\n./mill build sor1mp --modulus 97\n```", "no design sor1mp"),
        ("docs/guide.md", "```\n./mill race 97 --design sor-9\n```", "no design sor-9"),
        ("docs/designs/sor.md", "Run `modmill bild sor-1m-p`.", "no command bild"),
        ("docs/api.md", "```\nmodmill synthesise sor-1m-p\n```", "no command synthesise"),
        ("docs/designs/sor-ring.md", "[gone](../gone.md)", "broken link ../gone.md"),
    ],
)
def test_planted_faults_are_caught(copy, page, addition, fault):
    with (copy / page).open("a", encoding="utf-8") as file:
        file.write(f"\n{addition}\n")
    assert f"{page}: {fault}" in list(faults(copy))


def test_a_missing_page_of_a_design_is_caught(copy):
    (copy / "docs" / "designs" / "sor-ring.md").unlink()
    assert "docs/designs: no page sor-ring.md" in list(faults(copy))


def examples(page):
    """The Python of a page, each block at its line, so that a failure names the line."""
    text = page.read_text(encoding="utf-8")
    for block in _PYTHON.finditer(text):
        yield "\n" * text.count("\n", 0, block.start(1)) + block[1]


def run(page):
    """Run the examples of a page in one namespace; return how many there were."""
    names: dict = {"__name__": "example"}
    count = 0
    for code in examples(page):
        exec(compile(code, str(page), "exec"), names)
        count += 1
    return count


@pytest.mark.parametrize(("page", "least"), [("README.md", 1), ("docs/api.md", 8), ("docs/ecc.md", 1)])
def test_examples_run(page, least, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(ROOT / page) >= least


def test_an_example_that_is_wrong_is_caught(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("Text.\n\n```python\nimport modmill\nassert modmill.DESIGNS == ()\n```\n")
    with pytest.raises(AssertionError) as caught:
        run(page)
    assert caught.traceback[-1].lineno + 1 == 5


def told(text, rows):
    """Whether a page tells of as many files, vectors and refusals as there are rows of the algorithm and of the RTL."""
    exact, rtl = ([row for row in rows if row.about["by"] == by] for by in ("exact", "rtl"))
    vectors, through = (sum(row.values["vectors"] for row in some) for some in (exact, rtl))
    refused = sum(row.values["refused"] for row in exact)
    count = (
        f"all {len(exact)} files with keys of up to 4096 bits, {vectors + refused:,} vectors, {refused} of them "
        f"refused for their keys of 8192 bits and {vectors:,} run bit-exactly, and {through} of {len(rtl)} files "
        "through RTL"
    )
    return count in " ".join(text.split()) and not any(row.values["faults"] for row in rows)


def test_the_vectors_of_rsa_are_those_of_the_rows():
    text, rows = (ROOT / "docs" / "rsa.md").read_text(), list(read(ROOT / "results" / "rsa-vectors.jsonl"))
    assert told(text, rows) and not told(text, rows[1:]) and not told(text, rows[:-1])
