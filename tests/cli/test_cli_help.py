# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Help, examples and completion of every command; commands in the documentation."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from command import SOURCE, modmill

from modmill.cli.commands import app
from modmill.designs import DESIGNS, design
from modmill.flow.targets import TARGETS, target
from modmill.numbers.curves.named import CURVES
from modmill.numbers.curves.text import parse_curve
from modmill.numbers.moduli import MODULI, parse_modulus

ROOT = Path(__file__).resolve().parents[2]
TREE = typer.main.get_command(app)
GROUPS = ["", "rsa", "ecc", "ecc run", "parameters", "rows"]


def commands(group=TREE, path=()):
    """Every visible command by its words."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        elif not command.hidden:
            yield " ".join((*path, name)), command


COMMANDS = dict(commands())


def examples(command):
    return [line.strip() for line in (command.epilog or "").split("\n\n")[1:]]


def parsed(line):
    """The context of a command line that is parsed but not run. Raises typer's error if it is refused."""
    words = shlex.split(line)
    assert words[0] in ("modmill", "./mill")
    found, path, words = TREE, ["modmill"], words[1:]
    while hasattr(found, "commands"):
        found, path, words = found.commands[words[0]], [*path, words[0]], words[1:]
    return found.make_context(" ".join(path), words)


def require_names(line):
    """Parse a line, and refuse designs, settings, moduli, curves and targets that there are not."""
    given = parsed(line).params
    named = given.get("design") or given.get("multiplier") or []
    chosen = [design(name) for name in ([named] if isinstance(named, str) else named)]
    for setting in given.get("sets") or [] if chosen else []:
        chosen[0].checked(dict([setting.split("=")]))
    if modulus := given.get("modulus") or given.get("raced_modulus"):
        parse_modulus(modulus)
    curves = given.get("curve") or given.get("raced_curve") or given.get("curves") or []
    for curve in [curves] if isinstance(curves, str) else curves:
        parse_curve(curve)
    if given.get("target"):
        target(given["target"])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_examples_that_are_accepted(name):
    lines = examples(COMMANDS[name])
    assert 1 <= len(lines) <= 3
    for line in lines:
        assert line.startswith(f"modmill {name}")
        require_names(line)


def test_an_example_that_is_wrong_is_caught():
    for line in ("modmill build wide -m P-256 --modulo 3", "modmill race P-256 --json FILE", "modmill build wide"):
        with pytest.raises(Exception, match=r"option|argument|Missing"):
            require_names(line)
    wrong = (
        "build wyde -m P-256", "build wide -m P-265", "ecc race P-265", "race P-265", "race P-256 --target abacus",
        "build wide -m P-256 --set level=2",
    )  # fmt: skip
    for line in wrong:
        with pytest.raises(ValueError, match=r"nearest|must be"):
            require_names(f"modmill {line}")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_how_to_be_quiet_and_shows_the_examples(name):
    shown = modmill(*name.split(), "-h", COLUMNS="160")
    assert shown.returncode == 0 and shown.stderr == ""
    text = " ".join(shown.stdout.split())
    for option in ("--quiet -q", "--verbose -v", "--help -h"):
        assert option in re.sub(r" +", " ", text)
    for line in examples(COMMANDS[name]):
        assert line in text


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_alone_shows_its_help(group):
    for words, status in ((["-h"], 0), ([], 2)):
        shown = modmill(*group.split(), *words)
        assert shown.returncode == status and "Commands" in shown.stdout
        assert shown.stderr.count("\n") == (status == 2)


def documented():
    """Command lines of the README and docs/, without comments, pipes and commands with a placeholder."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for page in pages:
        for block in re.findall(r"^```[a-z]*\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
            for line in block.replace("\\\n", " ").splitlines():
                line = re.split(r"\s+#|\s[|>&]+(?:\s|$)", line.removeprefix("$ "))[0].strip()
                if line.startswith(("./mill ", "modmill ")) and not re.search(r"\.\.\.|\b[A-Z]{3,}\b(?!-)", line):
                    yield pytest.param(line, id=f"{page.stem}: {line}")


@pytest.mark.parametrize("line", list(documented()))
def test_commands_in_the_documentation_are_accepted(line):
    if line.split()[1] not in ("test", "install", "--version"):  # of mill
        parsed(line)


def completed(line, word):
    """What the shell is offered behind a line."""
    words = [*line.split(), word]
    environment = {
        **os.environ, "PYTHONPATH": SOURCE, "_MODMILL_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }  # fmt: skip
    run = subprocess.run([sys.executable, "-m", "modmill"], capture_output=True, text=True, env=environment)
    assert run.stderr == ""
    return run.stdout.split()


@pytest.mark.parametrize(("line", "word", "names"), [
    ("modmill", "", ["build", "race", "rsa", "ecc"]),
    ("modmill build", "", [d.name for d in DESIGNS]),
    ("modmill race P-256 --design", "sor", [d.name for d in DESIGNS if d.name.startswith("sor")]),
    ("modmill ecc race P-256 --multiplier", "h", ["hbe", "hbe-extension"]),
    ("modmill build wide -m", "", [m.name for m in MODULI if m.name]),
    ("modmill race", "secp", [m.name for m in MODULI if m.name and m.name.startswith("secp")]),
    ("modmill ecc curve", "", [c.name for c in CURVES]),
    ("modmill ecc build --curve", "X", ["X25519", "X448"]),
    ("modmill race P-256 --target", "", [t.name for t in TARGETS]),
    ("modmill build wide -m P-256 --set", "", [f"{s.name}=" for s in design("wide").settings]),
    ("modmill ecc race P-256 --operation", "multiply-", ["multiply-base", "multiply-two"]),
    ("modmill errata", "h", ["hbe", "hbe-slides"]),
    ("modmill build wide", "--mod", ["--modulus"]),
])  # fmt: skip
def test_the_shell_completes(line, word, names):
    assert set(completed(line, word)) >= set(names)


def test_a_setting_of_another_design_is_not_completed():
    offered = completed("modmill build wide -m P-256 --set", "")
    assert offered == [f"{s.name}=" for s in design("wide").settings]


def test_help_is_quick():
    """The limit of half a second of processor time would depend on the machine; what makes it slow does not."""
    heavy = ("amaranth", "numpy", "ortools", "jinja2", "modmill.designs", "modmill.cores", "modmill.studies")
    code = f"import sys, modmill.cli.commands; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": SOURCE}
    )
    assert run.stdout == "[]\n"
