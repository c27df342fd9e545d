# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Run the quick tests of the files in `src` that differ from the last commit; all quick ones when none differs.

    python tests/changed.py

A file's tests are those in tests/numbers that import it, else those in tests/designs and tests/rtl, else the same for
its folder. A mutation run (tests/mutation.toml) starts this for each mutant.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
FOLDERS = (("numbers",), ("designs", "rtl"))
"""Folders with quick tests, in groups; the first group with a test that imports the file is taken."""


def imported(test: Path) -> set[str]:
    """Return the dotted names that a test imports."""
    nodes = ast.walk(ast.parse(test.read_text(encoding="utf-8")))
    return {f"{node.module}.{a.name}" for node in nodes if isinstance(node, ast.ImportFrom) for a in node.names}


def within(name: str, whole: str) -> bool:
    """Say whether a dotted name is a part of another one, or the same."""
    return f"{name}.".startswith(f"{whole}.")


def tests_of(source: str) -> list[Path]:
    """Return the tests of a file, given by its path below `src`; among them those that import a whole package of it."""
    file = target = source.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    while True:  # ends at the latest with target == "modmill", which every test imports
        for group in FOLDERS:
            tests = {t: imported(t) for folder in group for t in sorted((TESTS / folder).glob("test_*.py"))}
            found = [t for t, names in tests.items() if any(within(name, target) for name in names)]
            if found:
                return [t for t, names in tests.items() if t in found or any(within(file, name) for name in names)]
        target = target.rpartition(".")[0]


def main() -> int:
    """Run the tests; return pytest's exit status, 0 for "no test collected": a change that no test sees has passed."""
    git = ["git", "diff", "--name-only", "--relative=src", "HEAD", "--", "src/*.py"]
    changed = subprocess.run(git, cwd=ROOT, capture_output=True, check=True, text=True).stdout.split()
    tests = {test for source in changed for test in tests_of(source)}
    chosen = sorted(map(str, tests)) or [str(TESTS / folder) for group in FOLDERS for folder in group]
    status = pytest.main(["-qx", "-m", "not slow and not long", "-p", "no:cacheprovider", f"--rootdir={ROOT}", *chosen])
    return 0 if status == pytest.ExitCode.NO_TESTS_COLLECTED else status


if __name__ == "__main__":
    sys.exit(main())
