# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The rules of the house: which room may import which, what every file carries, and what no file carries."""

import ast
import re
import subprocess
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "modmill"

# A module imports from its own room and from those before it.
ROOMS = (
    "version", "parts", "numbers", "contract", "schedule", "placement", "interface", "twice", "design", "rtl",
    "designs", "engines", "flow", "proofs", "report", "buses", "cores", "soc", "studies", "__init__", "cli",
)  # fmt: skip
# Two rooms may import less: an engine runs on any multiplier and names no design; a flow knows a core by its contract.
ALLOWED = {room: set(ROOMS[: place + 1]) for place, room in enumerate(ROOMS)}
ALLOWED["engines"] -= {"designs"}
ALLOWED["flow"] = {"parts", "numbers", "contract", "flow"}
ALLOWED["__init__"].add("?")  # the interface looks its names up in a table
NAMELESS = {"utils", "common", "core", "base"}


def imported(tree, package):
    """Yield (line, dotted name) of all that a module in `package` imports, at any depth, `from a import b` as a.b."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            start = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{start}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in {
            "import_module",
            "__import__",
        }:
            name = node.args[0] if node.args else None
            yield node.lineno, str(name.value) if isinstance(name, ast.Constant) else "modmill.?"


def violations(package):
    """Return one line for each import in the package `modmill` at this path that goes up, or to a room unknown here."""
    found = []
    paths = sorted(package.rglob("*.py"))
    assert paths, f"no source under {package}"
    for path in paths:
        place = path.relative_to(package)
        here = ["modmill", *place.parts[:-1]]
        room = place.parts[0].removesuffix(".py")
        room = "cli" if room == "__main__" else room
        if room not in ALLOWED:
            found.append(f"{place}: room {room} is not in ROOMS")
            continue
        for line, name in imported(ast.parse(path.read_text(encoding="utf-8")), here):
            parts = name.split(".")
            if parts[0] != "modmill" or parts[1:] in ([], ["__version__"]):
                continue
            if parts[1] not in ALLOWED.get(room, set()):
                found.append(f"{place}:{line}: {room} imports {name}")
    return found


def circles(package):
    """Return the circles of imports between the files of the package at this path, those for type checkers left out."""
    files = {}
    for path in package.rglob("*.py"):
        parts = ["modmill", *path.relative_to(package).with_suffix("").parts]
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    assert files, f"no source under {package}"
    graph = {}
    for name, path in files.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
                node.body = []
        here = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
        wanted = {full for _, full in imported(tree, here)}
        graph[name] = {full if full in files else full.rpartition(".")[0] for full in wanted} & set(files) - {name}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [" -> ".join(error.args[1])]
    return []


def tracked():
    """Return the paths that git tracks and that are there."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [path for name in listing.split("\0") if name and (path := ROOT / name).is_file()]
    assert paths, "git tracks no file here: an empty run proves nothing"
    return paths


def without_licence(paths):
    """Return the sources among the paths whose first five lines hold no SPDX line."""
    sources = [path for path in paths if path.suffix in {".py", ".v", ".sh"}]
    return [path for path in sources if "SPDX-License-Identifier: Apache-2.0" not in _head(path)]


def _head(path):
    return "\n".join(path.read_text(encoding="utf-8").splitlines()[:5])


def nameless(paths):
    """Return the paths of modules whose name says nothing."""
    return [path for path in paths if path.suffix == ".py" and NAMELESS & {path.stem, path.parent.name}]


def with_path_of_this_machine(paths):
    """Return the files that hold an absolute path below the folder in which this project is developed."""
    pattern = re.compile(rb"(?<![\w.}-])/work" + b"/")
    return [path for path in paths if pattern.search(path.read_bytes())]


def test_imports_run_downward():
    assert violations(PACKAGE) == []


def test_no_circle_between_files():
    assert circles(PACKAGE) == []


def test_a_planted_circle_is_caught(tmp_path):
    package = tmp_path / "modmill"
    package.mkdir()
    (package / "one.py").write_text("from modmill import two\nfrom typing import TYPE_CHECKING\n")
    (package / "two.py").write_text("if TYPE_CHECKING:\n    from modmill.one import f\n")
    assert circles(package) == []
    (package / "two.py").write_text("def g():\n    from modmill.one import f\n")
    (found,) = circles(package)
    assert set(found.split(" -> ")) == {"modmill.one", "modmill.two"}


@pytest.mark.parametrize(
    ("module", "source", "caught"),
    [
        ("numbers/rns/residues.py", "import modmill.designs.sor.improved", "modmill.designs.sor.improved"),
        ("numbers/rns/residues.py", "from modmill import contract", "modmill.contract"),
        ("numbers/deep/er.py", "from ...rtl import fold", "modmill.rtl.fold"),
        ("contract.py", "from .schedule import Schedule", "modmill.schedule.Schedule"),
        ("rtl/fold.py", "def f():\n    from modmill.designs import DESIGNS", "modmill.designs.DESIGNS"),
        ("designs/sor/improved.py", "from modmill.engines.rsa.rsa import Rsa", "modmill.engines.rsa.rsa.Rsa"),
        ("designs/sor/improved.py", "from modmill.flow import emit", "modmill.flow.emit"),
        ("designs/__init__.py", "from ..flow import emit", "modmill.flow.emit"),
        ("engines/rsa/rsa.py", "from modmill.designs import DESIGNS", "modmill.designs.DESIGNS"),
        (
            "engines/rsa/rsa.py",
            "import importlib\nimportlib.import_module('modmill.designs.sor.improved')",
            "modmill.designs.sor.improved",
        ),
        ("flow/emit.py", "from modmill.designs import DESIGNS", "modmill.designs.DESIGNS"),
        ("flow/emit.py", "from modmill.rtl import fold", "modmill.rtl.fold"),
        ("report/table.py", "from modmill.studies import race", "modmill.studies.race"),
        ("studies/race/cores.py", "from modmill.cli import main", "modmill.cli.main"),
        ("__init__.py", "from modmill.cli import main", "modmill.cli.main"),
        ("studies/race/cores.py", "from importlib import import_module\nimport_module(name)", "modmill.?"),
        ("extra/thing.py", "", "room extra is not in ROOMS"),
    ],
)
def test_planted_upward_import_is_caught(tmp_path, module, source, caught):
    path = tmp_path / "modmill" / module
    path.parent.mkdir(parents=True)
    path.write_text(source)
    assert len(found := violations(tmp_path / "modmill")) == 1
    assert caught in found[0]


def test_downward_imports_are_accepted(tmp_path):
    sources = {
        "designs/sor/improved.py": "import os\nfrom modmill.numbers import rns\nfrom ...rtl import fold",
        "flow/emit.py": "from modmill.contract import Contract\nfrom modmill.flow.tools import run",
        "cli.py": "from modmill import __version__, engines, studies\nfrom modmill.designs import DESIGNS",
        "__main__.py": "from modmill.cli import main",
    }
    for name, source in sources.items():
        path = tmp_path / "modmill" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    assert violations(tmp_path / "modmill") == []


def unlisted(package):
    """Return what the door of each folder, the docstring of its __init__, does not name in backticks."""
    found = []
    for door in sorted(package.rglob("__init__.py")):
        inside = {path.stem for path in door.parent.glob("*.py")} | {
            p.parent.name for p in door.parent.glob("*/__init__.py")
        }
        named = set(re.findall(r"`([a-z0-9_]+)`", ast.get_docstring(ast.parse(door.read_text(encoding="utf-8"))) or ""))
        missing = inside - named - {"__init__", "__main__"}
        found += [f"{door.parent.name}: {name}" for name in sorted(missing) if door.parent != package]
    return found


def test_every_door_names_what_is_behind_it():
    assert unlisted(PACKAGE) == []


def test_a_planted_file_without_a_place_in_the_door_is_caught(tmp_path):
    room = tmp_path / "modmill" / "room"
    (room / "inner").mkdir(parents=True)
    (room / "__init__.py").write_text('"""A room: `one`."""\n')
    (room / "inner" / "__init__.py").write_text('"""Nothing."""\n')
    for name in ("one", "two"):
        (room / f"{name}.py").write_text("")
    assert unlisted(tmp_path / "modmill") == ["room: inner", "room: two"]


def long_functions(package, most):
    """Return the functions with more lines than ``most``."""
    return [
        f"{path.name}: {node.name}, {node.end_lineno - node.lineno + 1} lines"
        for path in sorted(package.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno >= most
    ]


def test_functions_are_short(tmp_path):
    assert long_functions(PACKAGE, 100) == [] and len(long_functions(PACKAGE, 60)) <= 3
    (tmp_path / "long.py").write_text("def f():\n" + "    x = 1\n" * 60)
    assert long_functions(tmp_path, 60) == ["long.py: f, 61 lines"] and long_functions(tmp_path, 61) == []


def test_every_source_has_its_licence_line():
    assert without_licence(tracked()) == []


def test_no_module_has_a_name_that_says_nothing():
    assert nameless(tracked()) == []


def test_no_file_names_a_path_of_this_machine():
    assert with_path_of_this_machine(tracked()) == []


def test_planted_file_faults_are_caught(tmp_path):
    bad, good = tmp_path / "utils.py", tmp_path / "fold.py"
    bad.write_text('"""No licence."""\nHOME = "' + "/work" + '/main"\n')
    good.write_text("#!/usr/bin/env python3\n# SPDX-License-Identifier: Apache-2.0\nBUILD = 'net/work" + "/x'\n")
    for check in (without_licence, nameless, with_path_of_this_machine):
        assert check([bad, good]) == [bad]


def test_every_design_file_is_in_the_table_of_designs():
    from modmill.designs import DESIGNS

    files = [path for path in (PACKAGE / "designs").rglob("*.py") if "\nDESIGNS" in path.read_text(encoding="utf-8")]
    assert len(files) > 10
    names = {".".join(("modmill", *path.relative_to(PACKAGE).with_suffix("").parts)) for path in files}
    found = {d.name for name in names - {"modmill.designs.__init__"} for d in import_module(name).DESIGNS}
    assert found == {d.name for d in DESIGNS}
