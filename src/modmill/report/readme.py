# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The measured parts of the README and of two pages of docs, and the outputs of the README's commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from modmill.report.attack_tables import faults_table, leakage_table
from modmill.report.headlines import headlines, operations
from modmill.report.result_tables import tables

BEGIN = "<!-- {}: written by `./mill readme` from results/*.jsonl -->"
END = "<!-- end of {} -->"

_SECONDS = re.compile(r"\b[\d.]+(?= s\b)")
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def rewritten(text: str, content: str, name: str = "results") -> str:
    """A page with a new part between the markers of a name. Raises ValueError if a marker is missing."""
    begin, end = BEGIN.format(name), END.format(name)
    if begin not in text or end not in text:
        raise ValueError(f"the page has no place for {name}: it lacks {begin} or {end}")
    before, rest = text.split(begin, 1)
    return f"{before}{begin}\n{content}{end}{rest.split(end, 1)[1]}"


def pages(root: Path, folder: Path) -> dict[Path, str]:
    """The README of a checkout, its docs/results.md and its docs/attacks.md, with the results of a folder of rows."""
    readme, results, attacks = root / "README.md", root / "docs" / "results.md", root / "docs" / "attacks.md"
    text = rewritten(readme.read_text(encoding="utf-8"), headlines(folder))
    faults = rewritten(attacks.read_text(encoding="utf-8"), faults_table(folder), "faults")
    return {
        readme: rewritten(text, operations(folder), "operations"),
        results: rewritten(results.read_text(encoding="utf-8"), tables(folder)),
        attacks: rewritten(faults, leakage_table(folder), "leakage"),
    }


def replayed(text: str, run: Callable[[Sequence[str]], str]) -> str:
    """A page with new outputs of the commands in its ``console`` blocks.

    ``run`` takes the arguments of one command, the lines that begin with ``$ ./mill``, and returns its output. An
    output that differs only in seconds is kept.
    """

    def replay(block: re.Match[str]) -> str:
        out = []
        for part in re.split(r"^(?=\$ )", block[1], flags=re.MULTILINE)[1:]:
            command, _, old = part.partition("\n")
            new = run(shlex.split(command.removeprefix("$ ./mill ")))
            out.append(f"{command}\n{old if _SECONDS.sub('', old) == _SECONDS.sub('', new) else new}")
        return f"```console\n{''.join(out)}```"

    return _CONSOLE.sub(replay, text)
