# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What the README and docs/ say is true: examples run, commands, designs and linked files exist."""

import re
import shlex
import shutil
from fnmatch import fnmatch
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from command import modmill

from modmill.designs import DESIGNS
from modmill.flow.modules import module_ports
from modmill.report.readme import replayed
from modmill.report.rows import read

ROOT = Path(__file__).resolve().parents[1]
PAGES = {d.page for d in DESIGNS}

_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_COMMAND = re.compile(r"^(?:\$ )?\./mill((?: [^#&\n]*)?)")
_QUOTED = re.compile(r"\./mill [^`\n]*")
_OTHER_NAME = re.compile(r"(?:^|`)(?:\$ )?modmill [a-z-][^`\n]*", re.MULTILINE)
_FAMILY = re.compile(r"\b(?:sor|mm)-[a-z0-9]+(?:-[a-z0-9]+)*\b")
_TAKES_DESIGN = {"build", "explain"}
_NOT_DESIGNS = {"mm-pa"}
"""Names of an architecture with several designs."""


def pages(root):
    """The README and all pages under docs."""
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


@cache
def root_command():
    """The whole command line."""
    import typer

    from modmill.cli.commands import app

    return typer.main.get_command(app)


@cache
def misuse(words, quoted):
    """Why the command line does not take these words; "" if it does. Words of capitals stand for anything, and text may
    quote the bare name of a command."""
    command, rest = root_command(), list(words)
    if not rest or rest[0] in ("test", "install", "X") or rest[0].startswith("-"):
        return ""
    while hasattr(command, "commands"):
        if not rest:
            return ""
        if rest[0] not in command.commands:
            return f"no command {rest[0]}"
        command = command.commands[rest.pop(0)]
    if quoted and (not rest or any(re.fullmatch("[A-Z]+", word) for word in rest)):
        return ""
    try:
        command.make_context(command.name, rest)
    except Exception as refused:
        return f"{shlex.join(words)}: {getattr(refused, 'message', '') or type(refused).__name__}"
    return ""


def command_lines(text):
    """Words after ``./mill`` in code blocks (start of a line) and in inline code, and whether they are inline."""
    for block in _FENCE.findall(text):
        for line in block.splitlines():
            if found := _COMMAND.match(line):
                yield shlex.split(found[1]), False
    for quoted in re.findall(r"`([^`\n]+)`", _FENCE.sub("", text)):
        if _QUOTED.fullmatch(quoted):
            yield shlex.split(quoted)[1:], True


def faults(root):
    """Everything in the pages that does not exist, one line each."""
    designs = {d.name for d in DESIGNS}
    for page in pages(root):
        text = page.read_text(encoding="utf-8")
        where = page.relative_to(root)
        for other in _OTHER_NAME.findall(text):
            yield f"{where}: {other.strip('`')} is written ./mill in docs"
        for words, quoted in command_lines(text):
            if why := misuse(tuple(words), quoted):
                yield f"{where}: {why}"
            named = words[1:2] if words[0] in _TAKES_DESIGN else []
            named += [value for flag, value in pairwise(words) if flag == "--design"]
            for name in named:
                if name not in designs and not name.isupper():
                    yield f"{where}: no design {name}"
        prose = _LINK.sub(lambda link: link[0].split("](")[0], text)
        for name in set(_FAMILY.findall(re.sub(r"[\w./-]+\.(?:md|py|txt|jsonl)", "", prose))):
            made_from_one = any(name.startswith(f"{d}-") for d in designs)  # sor-ring-P-256-plain
            if name not in designs | _NOT_DESIGNS and not made_from_one:
                yield f"{where}: no design {name}"
        for link in _LINK.findall(_FENCE.sub("", text)):
            if "://" in link or link.startswith(("#", "mailto:")):
                continue
            if not (page.parent / link.split("#")[0]).exists():
                yield f"{where}: broken link {link}"
        if page.name == "index.md":
            named = {link.split("#")[0] for link in _LINK.findall(text)}
            beside = {p.name for p in page.parent.iterdir() if p.suffix in (".md", ".ipynb")} - {"index.md"}
            for missing in sorted(beside - named):
                yield f"{where}: does not name {missing}"
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
        ("docs/designs/sor.md", "Run `./mill bild sor-1m-p`.", "no command bild"),
        ("docs/api.md", "```\n./mill synthesise sor-1m-p\n```", "no command synthesise"),
        ("docs/rsa.md", "Run `modmill rsa check engine`.", "modmill rsa check engine is written ./mill in docs"),
        ("docs/ecc.md", "```\n./mill ecc build P-256\n```", "ecc build P-256: MissingParameter"),
        ("docs/ecc.md", "Run `./mill race 97 --rout`.", "race 97 --rout: No such option: --rout"),
        ("docs/designs/sor-ring.md", "[gone](../gone.md)", "broken link ../gone.md"),
    ],
)
def test_planted_faults_are_caught(copy, page, addition, fault):
    with (copy / page).open("a", encoding="utf-8") as file:
        file.write(f"\n{addition}\n")
    assert f"{page}: {fault}" in list(faults(copy))


def test_a_page_that_no_index_names_is_caught(copy):
    (copy / "docs" / "decisions" / "9999-more.md").write_text("# 9999. More\n")
    assert "docs/decisions/index.md: does not name 9999-more.md" in list(faults(copy))


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


# ------------------------------------------------------------------------------------- the README's sixty seconds


@pytest.mark.slow
def test_outputs_of_the_readme_are_those_of_its_commands(tmp_path):
    """The commands run in an empty folder, and the instance in the README connects every port of the core."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    def run(words):
        done = modmill(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert replayed(text, run) == text, "run ./mill readme --replay"
    table = text.split("## What a build contains", 1)[1].split("##", 1)[0]
    patterns = re.findall(r"`([^`]+)`", "".join(re.findall(r"^\|([^|]+)\|", table, re.MULTILINE)))
    files = [path.name for path in (tmp_path / "p256").iterdir() if path.is_file()]
    assert [name for name in files if not any(fnmatch(name, pattern) for pattern in patterns)] == []
    (instance,) = re.findall(r"^```verilog\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    ports = re.findall(r"\.(\w+)\((\w+)\)", instance)
    assert {port for port, _ in ports} == module_ports((tmp_path / "p256" / "core.v").read_text(), "mul_p256").keys()
